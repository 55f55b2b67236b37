"""JSON that every reader takes."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def json_text(facts: Any) -> str:
    """Facts as indented JSON that ends with a newline.

    JSON has no NaN and no infinity, which other programs refuse: they become null.  NumPy's arrays become lists.
    """
    return json.dumps(_finite(facts), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _finite(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
