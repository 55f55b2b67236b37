"""Sources of CUDA kernels: packaged files with their headers in place, so that one text is compiled and cached."""

import re
from importlib.resources import files
from pathlib import PurePosixPath

OPTIONS = ("-std=c++17", "-lineinfo")
"""Options that every kernel is compiled with."""

_INCLUDE = re.compile(r'^#include "([\w./]+)"$', re.MULTILINE)


def source(name: str, **constants: int) -> str:
    """The text of a kernel file, named relative to the package, with each header that it includes in place, once.

    constants  what host and device share: defined as macros before everything else
    """
    seen: set[PurePosixPath] = set()

    def resolve(path: PurePosixPath) -> str:
        if path in seen:
            return ""
        seen.add(path)
        text = files("hpcvdj").joinpath(*path.parts).read_text()
        return _INCLUDE.sub(lambda match: resolve(_joined(path.parent, match[1])), text.replace("#pragma once\n", ""))

    defines = "".join(f"#define {key} {value}\n" for key, value in constants.items())
    return defines + resolve(PurePosixPath(name))


def _joined(folder: PurePosixPath, name: str) -> PurePosixPath:
    """A header's path as an including file in `folder` names it."""
    for part in PurePosixPath(name).parts:
        folder = folder.parent if part == ".." else folder / part
    return folder
