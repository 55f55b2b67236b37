"""Sources of CUDA kernels: packaged files with their headers in place, so that one text is compiled and cached."""

import re
from importlib.resources import files
from posixpath import dirname, join, normpath

OPTIONS = ("-std=c++17", "-lineinfo")
"""Options that every kernel is compiled with."""

_INCLUDE = re.compile(r'^#include "([\w./]+)"$', re.MULTILINE)


def source(name: str, **constants: int) -> str:
    """The text of a kernel file, named relative to the package, with each header that it includes in place, once.

    constants  what host and device share: defined as macros before everything else
    """
    seen: set[str] = set()

    def resolve(path: str) -> str:
        if path in seen:
            return ""
        seen.add(path)
        text = files("hpcvdj").joinpath(path).read_text().replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda match: resolve(normpath(join(dirname(path), match[1]))), text)

    defines = "".join(f"#define {key} {value}\n" for key, value in constants.items())
    return defines + resolve(name)
