"""Processor seconds of parts of a command, which are functions of hpcvdj, with all that they call.

python benchmarks/_parts.py SECONDS.json MODULE:FUNCTION ... -- WORDS OF THE COMMAND
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from hpcvdj.__main__ import main

seconds: dict[str, float] = {}


def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose seconds are added up under the name of a part."""

    def called(*given: Any, **named: Any) -> Any:
        start = time.process_time()
        try:
            return function(*given, **named)
        finally:
            seconds[part] = seconds.get(part, 0.0) + time.process_time() - start

    return called


if __name__ == "__main__":
    target, *parts = sys.argv[1 : sys.argv.index("--")]
    sys.argv[1:] = sys.argv[sys.argv.index("--") + 1 :]
    for part in parts:
        module, _, name = part.partition(":")
        owner: Any = import_module(module)
        *outer, name = name.split(".")
        for each in outer:
            owner = getattr(owner, each)
        setattr(owner, name, timed(part, getattr(owner, name)))
    # Modules, and the compiler, are loaded.
    seconds["start"] = time.process_time()
    try:
        main()
    finally:
        Path(target).write_text(json.dumps(seconds))
