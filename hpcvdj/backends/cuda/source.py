"""The kernels' source: packaged files, their includes resolved, so that one text is compiled and cached."""

from __future__ import annotations

import re
from importlib.resources import files

OPTIONS = ("-std=c++17", "-lineinfo")
"""Options that every kernel is compiled with."""

_INCLUDE = re.compile(r'^#include "([\w.]+)"$', re.MULTILINE)


def source(name: str) -> str:
    """The text of a kernel file of hpcvdj/backends/kernels with each header it includes in its place, once."""
    seen: set[str] = set()

    def resolve(file: str) -> str:
        if file in seen:
            return ""
        seen.add(file)
        text = files("hpcvdj.backends").joinpath("kernels", file).read_text()
        return _INCLUDE.sub(lambda match: resolve(match[1]), text.replace("#pragma once\n", ""))

    return resolve(name)
