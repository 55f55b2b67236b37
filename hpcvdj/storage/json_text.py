"""JSON that every program can read."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def json_text(facts: Any) -> str:
    """Return facts as indented JSON that ends with a newline.  A list of numbers or of texts is one line.

    NaN and infinity become null, because JSON does not have them and other programs refuse them.  NumPy arrays become
    lists, and paths become texts.
    """
    return _text(facts, "\n") + "\n"


def _text(value: Any, line: str) -> str:
    """Return a value as JSON.  `line` is a line end, followed by the indent of the next line."""
    inner = f"{line} "
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping) and value:
        items = (f"{_dumped(str(key))}: {_text(item, inner)}" for key, item in value.items())
        return f"{{{inner}{f',{inner}'.join(items)}{line}}}"
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping | list | tuple | np.ndarray):
        return f"[{inner}{f',{inner}'.join(_text(item, inner) for item in value)}{line}]"
    try:
        return _dumped(value)
    except ValueError:
        # Python writes NaN and infinity as words that are not JSON.
        return _dumped(json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None))


def _dumped(value: Any) -> str:
    # Without an indent, json is some ten times as fast: a cohort of 3,000 has millions of pairs.
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
