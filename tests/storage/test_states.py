"""hpcvdj.storage.states: what is read is what was written, or an error."""

import io

import numpy as np
import pytest

from hpcvdj.storage.states import DAMAGED_STATE, digest_of, read_state, state_bytes

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(3), "c": np.zeros((0, 4), np.uint8), "d": np.arange(9)[::3]}


def test_a_state_is_read_as_it_was_written():
    facts, arrays = read_state(state_bytes({"x": [1, None, "ü"]}, ARRAYS))
    assert facts == {"x": [1, None, "ü"]}
    assert list(arrays) == list(ARRAYS)
    for name, values in ARRAYS.items():
        assert arrays[name].dtype == values.dtype
        np.testing.assert_array_equal(arrays[name], values)


@pytest.mark.parametrize(
    "other",
    [
        {"a": ARRAYS["a"] + 1e-9}, {"a": ARRAYS["a"].reshape(3, 2)}, {"b": np.array(3, np.int32)}, {"e": np.array(0)},
        {"meta": np.array("{}")}, {"sha256": np.array("0")}, {"a": None}, {"sha256": None}, {"meta": None},
    ],
)  # fmt: skip
def test_a_change_is_noticed(other):
    with np.load(io.BytesIO(state_bytes({"x": 1}, ARRAYS))) as stored:
        named = {name: values for name, values in {**stored, **other}.items() if values is not None}
    stream = io.BytesIO()
    np.savez(stream, **named)
    with pytest.raises(DAMAGED_STATE):
        read_state(stream.getvalue())


def test_a_state_is_of_one_run():
    state = state_bytes({"x": 1}, ARRAYS, {"prior": 2.0, "tables": [["a", "1"]]})
    assert read_state(state, {"tables": [["a", "1"]], "prior": 2.0})[0] == {"x": 1}
    for other in ({"prior": 1.0, "tables": [["a", "1"]]}, {"prior": 2.0}, {}, None):
        with pytest.raises(ValueError, match="not those that this run saved"):
            read_state(state, other)


def test_names_and_values_do_not_run_into_each_other():
    one, other = {"a": np.array(["b"])}, {"ab": np.array([""])}
    assert digest_of(one) != digest_of(other)


def test_a_type_is_part_of_the_digest():
    assert digest_of({"a": np.zeros(2, np.int64)}) != digest_of({"a": np.zeros(2)})
