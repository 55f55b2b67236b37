"""Sources of CUDA kernels: packaged files with their headers in place, so that one text is compiled and cached."""

import re
from importlib.resources import files
from posixpath import dirname, join, normpath

from hpcvdj.kernels.structs import declarations
from hpcvdj.kernels.tiles import TILE
from hpcvdj.recombination.alphabet import BASES_PER_WORD

OPTIONS = ("-std=c++17", "-lineinfo")
"""Options that every kernel is compiled with."""

EVERYWHERE = {"BASES_PER_WORD": BASES_PER_WORD, "TILE_BYTES": TILE.itemsize}
"""What the host and every kernel share."""

_INCLUDE = re.compile(r'^#include "([\w./]+)"$', re.MULTILINE)


def source(name: str, **shared: int | type) -> str:
    """The text of a kernel file, named relative to the package, with each header that it includes in place, once.

    shared  what host and device share beside `EVERYWHERE`, before everything else: numbers as macros, NamedTuples as
            structs
    """
    seen: set[str] = set()

    def resolve(path: str) -> str:
        if path in seen:
            return ""
        seen.add(path)
        text = files("hpcvdj").joinpath(path).read_text().replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda match: resolve(normpath(join(dirname(path), match[1]))), text)

    structs = {key: value for key, value in shared.items() if isinstance(value, type)}
    numbers = {key: value for key, value in (shared | EVERYWHERE).items() if key not in structs}
    defines = "".join(f"#define {key} {value}\n" for key, value in numbers.items())
    return defines + declarations(structs) + resolve(name)
