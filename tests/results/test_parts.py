"""Results in parts: HDF5 reads zeros in silence where it cannot open a part, so such a result is refused."""

import os
import resource
import shutil
from contextlib import ExitStack

import h5py
import numpy as np
import pytest

from hpcvdj.errors import InputError, MachineError
from hpcvdj.results import parts
from hpcvdj.results.export import export
from hpcvdj.results.reader import Result
from tests.conftest import SMALL
from tests.problems import count_to

ROWS = 8


@pytest.fixture(scope="module")
def counted(paper_germline, tmp_path_factory):
    """A result in nine parts; of the third all rows are excluded."""
    folder = tmp_path_factory.mktemp("parts")
    header, *lines = SMALL.read_text().splitlines()[: 9 * ROWS + 1]
    lines[2 * ROWS : 3 * ROWS] = [line.replace("TRBV", "TRBX", 1) for line in lines[2 * ROWS : 3 * ROWS]]
    table = folder / "t.tsv"
    table.write_text("\n".join([header, *lines]) + "\n")
    count_to(folder / "o.h5", table, paper_germline, rows=ROWS)
    return folder


@pytest.fixture
def path(counted, tmp_path):
    """A copy of the result, which a test may damage."""
    shutil.copytree(counted, tmp_path, dirs_exist_ok=True)
    return tmp_path / "o.h5"


def part(path, index):
    return path.parent / f"{path.name}.parts" / f"part-{index:06}.h5"


def test_every_part_is_one_of_the_result(path):
    with Result(path) as result:
        assert result.parts == [part(path, index) for index in range(9)]
        assert len(result.excluded.row) == ROWS


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_part_is_not_exported(path, tmp_path, index):
    with pytest.raises(InputError, match=rf"part-00000{index}\.h5: is a part of a result, with some rows"):
        export(part(path, index), tmp_path / "t.out.tsv")
    assert not (tmp_path / "t.out.tsv").exists()


@pytest.mark.parametrize("index", [0, 2, 8])
def test_a_part_that_is_missing(path, index):
    part(path, index).unlink()
    with pytest.raises(InputError, match=rf"o\.h5: its part .*part-00000{index}\.h5 is missing"):
        Result(path)


def test_parts_in_another_order(path):
    one, other = part(path, 1), part(path, 3)
    one.rename(path.with_name("between"))
    other.rename(one)
    path.with_name("between").rename(other)
    with pytest.raises(InputError, match=r"the files in .*o\.h5\.parts are not the parts of this result"):
        Result(path)


def test_a_part_of_another_run_with_the_same_rows(path):
    with h5py.File(part(path, 3), "r+") as file:
        file.attrs["identity"] = np.bytes_(file.attrs["identity"].replace(b"{", b'{"other": 1, ', 1))
    with pytest.raises(InputError, match=r"the files in .*o\.h5\.parts are not the parts of this result"):
        Result(path)


@pytest.mark.parametrize("content", [b"", b"rubbish"])
def test_a_part_that_cannot_be_read(path, content):
    part(path, 4).write_bytes(content)
    with pytest.raises(InputError, match=r"its part .*part-000004\.h5: not a result file"):
        Result(path)


@pytest.mark.slow
@pytest.mark.parametrize("index", [pytest.param(0, marks=pytest.mark.exhaustive), 2])
def test_a_part_of_another_run(path, paper_germline, tmp_path, index):
    other = tmp_path / "other.h5"
    count_to(other, SMALL, paper_germline, rows=ROWS + 1)
    shutil.copy(part(other, 1), part(path, index))
    with pytest.raises(InputError, match=r"the files in .*o\.h5\.parts are not the parts of this result"):
        Result(path)


@pytest.fixture
def few_files():
    """As many files as are open, and some more, may be open; gives the number."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def let(more):
        limit = len(os.listdir("/proc/self/fd")) + more
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
        return limit

    yield let
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_more_parts_than_files_may_be_open(path, few_files, monkeypatch):
    monkeypatch.setattr(parts, "_OPEN_BEFORE", 8)
    with Result(path) as result:
        expected = result.counters[:]
    assert expected[-ROWS:].any()
    limit = few_files(6)
    with Result(path) as result:
        assert np.array_equal(result.counters[:], expected)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > limit


@pytest.mark.slow
def test_several_results_that_are_open_at_a_time(path, few_files, monkeypatch):
    """HDF5 opens the parts when a dataset is read, and closes them with the dataset."""
    monkeypatch.setattr(parts, "_OPEN_BEFORE", 8)
    with Result(path) as result:
        expected = result.counters[:]
    for copy in range(5):
        shutil.copytree(path.parent, path.parent / str(copy), ignore=shutil.ignore_patterns("[0-9]"))
    few_files(20)
    with ExitStack() as stack:
        some = [stack.enter_context(Result(path.parent / str(copy) / path.name)).counters for copy in range(5)]
        for counters in some:
            assert np.array_equal(counters[:], expected)
    assert sum(parts._held) == 0


def test_a_limit_that_cannot_be_raised_is_one_line(path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (40, 40))
    with pytest.raises(MachineError, match=r"o\.h5: has 9 parts, .* may open 40 files here; raise the limit"):
        Result(path)
    assert sum(parts._held) == 0
