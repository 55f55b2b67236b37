"""Arrays of finished slices: hashes that repeat, and what is in memory of them."""

import numpy as np
import pytest

from hpcvdj.errors import InputError
from hpcvdj.results import slice_files
from hpcvdj.results.slice_files import IDS, SliceFiles
from hpcvdj.runs.folder import RunFolder


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "out.tsv.parts"
    folder.mkdir()
    return SliceFiles(RunFolder(folder, {"a": 1}), ".tsv")


def finish(files, slices):
    """Slices with these hashes of ids, in the order of their rows."""
    row = 0
    for index, hashes in enumerate(slices):
        files.rows(index).write_text("")
        order = np.argsort(hashes)
        files.finish(index, {}, {IDS: np.stack([hashes[order], (row + order).astype(np.uint64)])})
        row += len(hashes)


@pytest.mark.parametrize("at_once", [1 << 22, 50, 3])
@pytest.mark.parametrize("shares", [1, 2, 7])
def test_rows_with_repeated_hashes_are_those_of_a_loop(files, monkeypatch, shares, at_once):
    monkeypatch.setattr(slice_files, "HASHES", at_once)
    rng = np.random.default_rng(3)
    largest = np.iinfo(np.uint64).max
    slices = [rng.integers(0, largest, size, dtype=np.uint64) for size in (40, 0, 70, 1)]
    # Repeated within a slice, between slices, and at both ends.
    slices[0][:6] = [0, largest, 5, largest - 1, 1 << 63, 7]
    slices[2][:8] = [0, largest, 5, 5, 1 << 63, (1 << 63) - 1, 8, slices[0][30]]
    finish(files, slices)
    every = np.concatenate(slices)
    expected = [row for row, own in enumerate(every.tolist()) if (every == own).sum() > 1]
    found = [files.rows_with_repeated_hashes(share, shares) for share in range(shares)]
    assert sorted(np.concatenate(found).tolist()) == expected
    assert len(expected) == 11


def test_arrays_are_read_again_each_time(files):
    finish(files, [np.arange(3, dtype=np.uint64), np.arange(5, dtype=np.uint64)])
    arrays = files.arrays(IDS)
    assert [part.shape for part in arrays] == [(2, 3), (2, 5)] == [part.shape for part in arrays]
    next(iter(files.folder.path.glob("sorted_ids-000001.npy"))).write_bytes(b"no array")
    with pytest.raises(InputError, match=r"sorted_ids-000001\.npy: is damaged"):
        list(files.arrays(IDS))


def test_facts_of_another_run_are_known_by_its_identity(files):
    finish(files, [np.arange(3, dtype=np.uint64)])
    record = {"slice": 0, "files": {}}
    for identity, same in (({"a": 1}, True), ({"a": 2}, False), ({"a": 1, "b": 1}, False)):
        other = SliceFiles(RunFolder(files.folder.path, identity), ".tsv")
        assert (other._digest_of(record) == files._digest_of(record)) == same
        if same:
            other._record(0)
        else:
            with pytest.raises(ValueError, match="it is of another run, or was changed"):
                other._record(0)
