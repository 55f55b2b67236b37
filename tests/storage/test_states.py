"""hpcvdj.storage.states: what is read is what was written, or an error."""

import json

import numpy as np
import pytest

from hpcvdj.storage import states
from hpcvdj.storage.damage import MISREAD
from hpcvdj.storage.states import read_state, write_state

ARRAYS = {
    "a": np.arange(6.0).reshape(2, 3), "b": np.array(3), "c": np.zeros((0, 4), np.uint8), "d": np.arange(9)[::3],
    "e": np.asfortranarray(np.arange(6, dtype=np.uint16).reshape(2, 3)), "f": np.array([b"x", b"yz"]), "g": np.empty(0),
}  # fmt: skip
FACTS = {"x": [1, None, "ü"], "y": float("-inf")}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.state"


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("arrays", [ARRAYS, {}])
def test_a_state_is_read_as_it_was_written(path, arrays, checked):
    write_state(path, FACTS, arrays)
    facts, found = read_state(path, checked=checked)
    assert facts == FACTS
    assert list(found) == list(arrays)
    for name, values in arrays.items():
        assert (found[name].dtype, found[name].shape) == (values.dtype, values.shape)
        assert not found[name].flags.writeable
        np.testing.assert_array_equal(found[name], values)


def test_every_changed_byte_of_a_value_is_noticed(path):
    write_state(path, FACTS, ARRAYS)
    whole = path.read_bytes()
    values = b"".join(np.asarray(array, order="C").tobytes() for array in ARRAYS.values())
    noticed = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            facts, found = read_state(path)
        except MISREAD:
            noticed += 1
        else:
            # Bytes between two arrays.
            assert facts == FACTS
            assert all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)
    assert noticed == whole.rindex(b"\n") + 1 + len(values)


@pytest.mark.parametrize("length", [0, 1, 64, 65, 100, -1])
def test_a_state_that_is_cut_short(path, length):
    write_state(path, FACTS, {"a": np.arange(100)})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(MISREAD):
        read_state(path)


def test_a_state_is_of_one_identity(path):
    write_state(path, {"x": 1}, ARRAYS, {"prior": 2.0, "tables": [["a", "1"]]})
    assert read_state(path, {"tables": [["a", "1"]], "prior": 2.0})[0] == {"x": 1}
    for other in ({"prior": 1.0, "tables": [["a", "1"]]}, {"prior": 2.0}, {}, None):
        with pytest.raises(ValueError, match="it was changed, or is of another run"):
            read_state(path, other)


@pytest.mark.parametrize("kind", ["O", "|V8", "no type", "f8x"])
def test_types_that_no_state_has(path, kind):
    write_state(path, {}, {"a": np.zeros(2)})
    _, line, arrays = path.read_bytes().split(b"\n", 2)
    head = json.loads(line)
    head["arrays"]["a"][0] = kind
    line = json.dumps(head).encode()
    path.write_bytes(b"\n".join((states._digest(line, None).encode(), line, arrays)))
    if kind == "|V8":
        assert read_state(path)[1]["a"].dtype == np.void(8).dtype
        return
    with pytest.raises(MISREAD):
        read_state(path)
