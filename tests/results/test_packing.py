"""hpcvdj.results.packing: what HDF5 reads of packed columns is what was written."""

import types
import zlib

import h5py
import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.counting.count import count
from hpcvdj.errors import MachineError
from hpcvdj.kernels.pathways.methods import Problem, Unit
from hpcvdj.runs.ranks import World
from hpcvdj.repertoires.junctions import read_repertoire
from hpcvdj.results import packing
from hpcvdj.results.reader import Result, ResultWriter
from hpcvdj.results.packing import Column, PackedColumn
from tests.conftest import SMALL

TYPES = [np.uint64, np.int64, np.uint8, h5py.string_dtype("utf-8", 1), h5py.string_dtype("utf-8", 23)]


def random_values(rng, shape, dtype):
    raw = rng.integers(1, 127, (*shape, np.dtype(dtype).itemsize), dtype=np.uint8)
    return raw.reshape(-1).view(dtype).reshape(shape)


@pytest.mark.parametrize("library", ["isal", "zlib"])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rest", [(), (1,), (11,)], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 2, 63, 64, 65, 1000])
def test_whatever_is_appended_is_read(tmp_path, monkeypatch, rows, rest, dtype, library):
    if library == "zlib":
        monkeypatch.setattr(packing, "deflate", zlib)
    row_bytes = np.dtype(dtype).itemsize * int(np.prod(rest))
    monkeypatch.setattr(packing, "CHUNK_BYTES", 64 * row_bytes + row_bytes // 2)
    rng = np.random.default_rng(rows)
    expected = random_values(rng, (rows, *rest), dtype)
    with h5py.File(tmp_path / "o.h5", "w") as file:
        for name, kind in (("packed", PackedColumn), ("plain", Column)):
            column = kind(file, name, expected.shape, dtype)
            done = 0
            while done < rows:
                step = int(rng.choice([1, 7, 64, 200]))
                column.append(expected[done : done + step])
                done += step
            column.close()
    with h5py.File(tmp_path / "o.h5") as file:
        packed, plain = file["packed"], file["plain"]
        assert packed.dtype == plain.dtype
        assert packed[:].tolist() == plain[:].tolist() == expected.tolist()
        if rows:
            assert packed.shuffle
            assert packed.compression == "gzip"
            assert packed.chunks == (min(rows, 64), *rest)
            assert packed[rows // 2 : rows // 2 + 3].tolist() == expected[rows // 2 : rows // 2 + 3].tolist()


def test_what_repeats_takes_less(tmp_path):
    values = np.arange(1 << 20, dtype=np.int64)
    with h5py.File(tmp_path / "o.h5", "w") as file:
        column = PackedColumn(file, "row", values.shape, np.int64)
        column.append(values)
        column.close()
        assert column.dataset.id.get_storage_size() < values.nbytes / 3


def test_a_row_larger_than_a_chunk_is_a_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "CHUNK_BYTES", 10)
    values = np.arange(12, dtype=np.uint64).reshape(3, 4)
    with h5py.File(tmp_path / "o.h5", "w") as file:
        column = PackedColumn(file, "counters", values.shape, np.uint64)
        column.append(values)
        column.close()
        assert column.dataset[:].tolist() == values.tolist()


@pytest.mark.parametrize("kind", [Column, PackedColumn])
def test_rows_that_are_missing_are_noticed(tmp_path, kind):
    with h5py.File(tmp_path / "o.h5", "w") as file:
        column = kind(file, "row", (5,), np.int64)
        column.append(np.arange(4))
        with pytest.raises(ValueError, match="4 rows of 5"):
            column.close()


def test_a_packed_result_is_the_plain_one(paper_germline, tmp_path, monkeypatch):
    monkeypatch.setattr("hpcvdj.kernels.pathways.direct.UNIT_COUNTERS", 200)
    problem = Problem(read_repertoire(SMALL, paper_germline), paper_germline, 3)
    for name in ("plain", "packed"):
        with ResultWriter(tmp_path / f"{name}.h5", problem.repertoire, 3, packed=name == "packed") as writer:
            tally = count(problem, Config(3), World(), writer)
            writer.finish({"max_n": 3}, [{"hardware": tally.hardware}], tally.timings)
    assert len(tally.timings.units) > 5
    with Result(tmp_path / "plain.h5") as plain, Result(tmp_path / "packed.h5") as packed:
        assert np.array_equal(plain.counters[:], packed.counters[:])
        assert plain.to_table().equals(packed.to_table())
        assert packed.counters.compression == "gzip"
        assert plain.counters.compression is None


def test_counters_out_of_order_are_refused(paper_germline, tmp_path):
    problem = Problem(read_repertoire(SMALL, paper_germline, longest=60), paper_germline, 1)
    with (
        pytest.raises(ValueError, match="does not follow row 0"),
        ResultWriter(tmp_path / "o.h5", problem.repertoire, 1, packed=True) as writer,
    ):
        count(problem, Config(1, "bitwise"), World(), writer)
    assert not list(tmp_path.iterdir())


def test_units_out_of_order_are_refused(paper_germline, tmp_path):
    problem = Problem(read_repertoire(SMALL, paper_germline, longest=60), paper_germline, 1)
    unit = Unit(range(1, 2), range(1, 2), range(2), 1)
    with (
        pytest.raises(ValueError, match="does not follow row 0"),
        ResultWriter(tmp_path / "o.h5", problem.repertoire, 1, packed=True) as writer,
    ):
        writer.put(unit, np.ones((1, 2), dtype=np.uint64))
    assert not list(tmp_path.iterdir())


def test_room_for_what_is_packed_is_not_asked_for_beforehand(paper_germline, tmp_path, monkeypatch):
    """How much it will be is not known; a disk that fills up is told then."""
    monkeypatch.setattr("shutil.disk_usage", lambda folder: types.SimpleNamespace(free=1000))
    repertoire = read_repertoire(SMALL, paper_germline)
    with ResultWriter(tmp_path / "o.h5", repertoire, 1, packed=True):
        pass
    with pytest.raises(MachineError, match=r"the disk has 0\.0 MB free"):
        ResultWriter(tmp_path / "p.h5", repertoire, 1)
