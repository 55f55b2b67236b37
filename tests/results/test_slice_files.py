"""Arrays of finished slices, and the order of slices."""

import numpy as np
import pytest

from hpcvdj.errors import InputError
from hpcvdj.results.slice_files import SliceArrays, SliceFiles
from hpcvdj.runs.folder import RunFolder


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "out.tsv.parts"
    folder.mkdir()
    return SliceFiles(RunFolder(folder, {"a": 1}), ".tsv")


def finish(files, index, **arrays):
    files.rows(index).write_text("")
    files.finish(index, {}, arrays)


def test_arrays_are_read_again_each_time(files):
    for index in range(2):
        finish(files, index, ids=np.full((2, 3 + index), index))
    arrays = SliceArrays(files, "ids")
    assert [part.tolist() for part in arrays] == [[[0] * 3] * 2, [[1] * 4] * 2] == [part.tolist() for part in arrays]
    (files.folder.path / "part-000001.state").write_bytes(b"no array")
    with pytest.raises(InputError, match=r"part-000001\.state: is damaged"):
        list(arrays)


def test_slices_are_ordered_by_number(files):
    for index in (1_000_000, 999_999, 2):
        finish(files, index)
    assert files.finished == [2, 999_999, 1_000_000]
