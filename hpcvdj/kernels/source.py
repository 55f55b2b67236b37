"""Sources of CUDA kernels: packaged files with their headers in place, so that one text is compiled and cached."""

import re
from importlib.resources import files
from posixpath import dirname, join, normpath

from hpcvdj.kernels.structs import declarations

OPTIONS = ("-std=c++17", "-lineinfo")
"""Options that every kernel is compiled with."""

_INCLUDE = re.compile(r'^#include "([\w./]+)"$', re.MULTILINE)


def source(name: str, **shared: int | type) -> str:
    """The text of a kernel file, named relative to the package, with each header that it includes in place, once.

    shared  what host and device share, before everything else: numbers as macros, NamedTuples as structs
    """
    seen: set[str] = set()

    def resolve(path: str) -> str:
        if path in seen:
            return ""
        seen.add(path)
        text = files("hpcvdj").joinpath(path).read_text().replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda match: resolve(normpath(join(dirname(path), match[1]))), text)

    defines = "".join(f"#define {key} {value}\n" for key, value in shared.items() if not isinstance(value, type))
    structs = {key: value for key, value in shared.items() if isinstance(value, type)}
    return defines + declarations(structs) + resolve(name)
