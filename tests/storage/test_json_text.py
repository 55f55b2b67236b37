"""JSON that every reader takes: no NaN, no infinity."""

import json

import numpy as np

from hpcvdj.storage.json_text import json_text


def test_what_json_cannot_hold_is_null():
    facts = {"a": float("nan"), 3: [np.inf, (1, -np.inf)], "c": np.array([[0.5, np.nan]]), "d": np.float64(2), "e": "κ"}
    text = json_text(facts)
    assert json.loads(text, parse_constant=lambda name: 1 / 0) == {
        "a": None, "3": [None, [1, None]], "c": [[0.5, None]], "d": 2.0, "e": "κ"
    }  # fmt: skip
    assert json_text({"a": [1], "é": {}}) == '{\n "a": [\n  1\n ],\n "é": {}\n}\n'
