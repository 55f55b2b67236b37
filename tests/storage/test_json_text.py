"""JSON that every reader takes: no NaN, no infinity."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from hpcvdj.storage.json_text import json_text


def test_what_json_cannot_hold_is_null():
    facts = {"a": float("nan"), 3: [np.inf, (1, -np.inf)], "c": np.array([[0.5, np.nan]]), "d": np.float64(2), "e": "κ",
             "f": Path("a/b")}  # fmt: skip
    text = json_text(facts)
    assert json.loads(text, parse_constant=lambda name: 1 / 0) == {
        "a": None, "3": [None, [1, None]], "c": [[0.5, None]], "d": 2.0, "e": "κ", "f": "a/b"
    }  # fmt: skip
    with pytest.raises(TypeError, match="object has no form in JSON"):
        json_text({"a": object()})


def test_a_list_is_one_line():
    facts = {"a": [1], "é": {}, "pairs": np.eye(2), "rows": [{"x": [], "y": "\n"}, {"x": (1.5, "b")}]}
    assert json_text(facts) == (
        '{\n "a": [1],\n "é": {},\n "pairs": [\n  [1.0, 0.0],\n  [0.0, 1.0]\n ],\n'
        ' "rows": [\n  {\n   "x": [],\n   "y": "\\n"\n  },\n  {\n   "x": [1.5, "b"]\n  }\n ]\n}\n'
    )


LEAVES = (0, -7, 2**70, 0.1, 1e-300, math.nan, math.inf, True, None, "", "a\n", "\u2028", "\ud800", np.int64(3),
          np.float32(0.5), np.float64("nan"), np.bool_(True), np.array([]), np.array([[1, 2]]))  # fmt: skip


def drawn(chance, depth=0):
    kind = chance.randrange(5) if depth < 4 else 4
    if kind < 2:
        return {chance.choice(("a", "b", "é", 7)): drawn(chance, depth + 1) for _ in range(chance.randrange(4))}
    if kind < 4:
        return (list, tuple)[kind - 2](drawn(chance, depth + 1) for _ in range(chance.randrange(4)))
    return chance.choice(LEAVES)


def plain(value):
    """What is read again, in plain Python."""
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(value, dict):
        return {str(key): plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [plain(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def test_whatever_is_written_is_read_again():
    chance = random.Random(1)
    for _ in range(3000):
        value = drawn(chance)
        assert json.loads(json_text(value), parse_constant=lambda name: 1 / 0) == plain(value), value
