"""hpcvdj.repertoires.slices, parts and batched: slice by slice, a repertoire gives what it gives as a whole."""

import errno
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hpcvdj import storage
from hpcvdj.counting.batched import count_in_slices, slice_rows
from hpcvdj.counting.config import Config, Inputs
from hpcvdj.counting.whole import count_file
from hpcvdj.errors import CompleteError, InputError, MachineError, StoppedError
from hpcvdj.runs.stopping import StopRequest
from hpcvdj.runs.ranks import World
from hpcvdj.repertoires.slices import slices
from hpcvdj.results import parts
from hpcvdj.results.export import Lookup
from hpcvdj.results.reader import Result
from tests.conftest import SMALL

ROWS = 137


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The small example with rows that cannot be counted among it: text, gzip, and Parquet of uneven row groups."""
    folder = tmp_path_factory.mktemp("tables")
    header, *rows = SMALL.read_text().splitlines(keepends=True)
    for k in (3, 140, 141, 410):
        cells = rows[k].split("\t")
        cells[1] = "TRBV999"
        rows[k] = "\t".join(cells)
    (folder / "t.tsv").write_text(header + "".join(rows))
    (folder / "t.tsv.gz").write_bytes(gzip.compress((folder / "t.tsv").read_bytes()))
    names = header.rstrip("\n").split("\t")
    columns = zip(*(row.rstrip("\n").split("\t") for row in rows), strict=True)
    table = pa.table(dict(zip(names, map(list, columns), strict=True)))
    with pq.ParquetWriter(folder / "t.parquet", table.schema) as writer:
        for first, last in ((0, 100), (100, 101), (101, 300), (300, 500)):
            writer.write_table(table.slice(first, last - first))
    return folder


def whole(tables, germline, tmp_path):
    target = tmp_path / "whole.h5"
    return count_file(Inputs(tables / "t.tsv"), germline, target, Config(6), World()), target


def by_row(path):
    """Counters in input order, excluded rows' missing; and why."""
    with Result(path) as result:
        read = int(result.provenance["rows_read"])
        return Lookup(result.counters[:], result.row, result.excluded).columns(0, read)


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz", "t.parquet"])
@pytest.mark.parametrize("rows", [1, 100, ROWS, 500, 9999])
def test_slices_are_the_table(tables, name, rows):
    names = ["sequence_id", "junction"]
    whole_text = [line.split("\t") for line in (tables / "t.tsv").read_text().splitlines()]
    places = [whole_text[0].index(column) for column in names]
    expected = [tuple(cells[k] for k in places) for cells in whole_text[1:]]
    for ranks in (1, 3):
        found = {}
        for rank in range(ranks):
            for one in slices(tables / name, names, rows, lambda index, r=(rank, ranks): index % r[1] == r[0]):
                batch_rows = [
                    row for batch in one.batches
                    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
                ]  # fmt: skip
                assert one.first_row == one.index * rows
                found[one.index] = batch_rows
        assert [row for index in sorted(found) for row in found[index]] == expected


@pytest.mark.parametrize("name", ["t.tsv", "t.parquet"])
def test_the_same_counters_and_exclusions(tables, paper_germline, tmp_path, name):
    summary, one = whole(tables, paper_germline, tmp_path)
    many = tmp_path / "many.h5"
    batches = count_in_slices(Inputs(tables / name), paper_germline, many, Config(6), World(), ROWS)
    assert len(list(parts.folder_of(many).glob("part-*.h5"))) == 4
    for field in ("rows_read", "counted", "excluded", "pairs", "max_n", "method", "pathways", "with_pathway"):
        assert getattr(batches, field) == getattr(summary, field), field
    expected, found = by_row(one), by_row(many)
    assert expected.keys() == found.keys()
    for column in expected:
        assert expected[column].to_pylist() == found[column].to_pylist()
    with Result(many) as result:
        counters = result.counters[:]
        for v, j, rows in result.pairs:
            cells = result.to_table().slice(rows.start, rows.stop - rows.start)
            assert set(cells["v_call"].to_pylist()) == {v}
            assert set(cells["j_call"].to_pylist()) == {j}
            assert rows.stop <= len(counters)


def test_an_interrupted_run_goes_on_with_the_parts_it_has(tables, paper_germline, tmp_path, signal_after_a_slice):
    target = tmp_path / "o.h5"
    request, counted = signal_after_a_slice
    arguments = (Inputs(tables / "t.parquet"), paper_germline, target, Config(6), World(), ROWS)
    with pytest.raises(StoppedError, match=r"SIGTERM: stopped with the parts in .* safe"):
        count_in_slices(*arguments, request=request)
    assert counted == [0]
    assert not target.exists()
    with pytest.raises(InputError, match="holds parts of a run; --resume"):
        count_in_slices(*arguments)
    with pytest.raises(InputError, match="max_n was 6, is 5"):
        count_in_slices(*arguments[:3], Config(5), World(), ROWS, resume=True)
    count_in_slices(*arguments, resume=True)
    assert counted == [0, 1, 2, 3]
    _, one = whole(tables, paper_germline, tmp_path)
    assert by_row(target)["pathways_total"].to_pylist() == by_row(one)["pathways_total"].to_pylist()
    with pytest.raises(CompleteError):
        count_in_slices(*arguments, resume=True)


@pytest.mark.parametrize("name", ["t.tsv", "t.parquet"])
def test_a_signal_while_a_slice_is_read(tables, paper_germline, tmp_path, monkeypatch, name):
    """Also of rows that another rank counts, and without waiting for the slice."""
    monkeypatch.setattr("hpcvdj.repertoires.slices._READ_ROWS", 10)
    monkeypatch.setattr("hpcvdj.repertoires.tables.BLOCK_BYTES", 1 << 10)
    request, asked = StopRequest(), []

    def at_the_third():
        asked.append(1)
        return len(asked) == 3

    monkeypatch.setattr(request, "asked", at_the_third)
    arguments = (Inputs(tables / name), paper_germline, tmp_path / "o.h5", Config(1), World(), ROWS)
    with pytest.raises(StoppedError, match=r"a signal: stopped with the parts in .* safe; --resume"):
        count_in_slices(*arguments, request=request)
    assert len(asked) == 3
    assert [path.name for path in tmp_path.rglob("*")] == ["o.h5.parts", "run.json"]
    assert count_in_slices(*arguments, resume=True).rows_read == 500


def test_slices_of_another_size_are_refused(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    count_in_slices(Inputs(tables / "t.tsv"), paper_germline, target, Config(2), World(), ROWS)
    target.unlink()
    with pytest.raises(InputError, match="slice_rows was 137, is 100"):
        count_in_slices(Inputs(tables / "t.tsv"), paper_germline, target, Config(2), World(), 100, resume=True)


@pytest.mark.parametrize("rows", [100, 200])
def test_the_first_slice_alone_tells_its_size(tables, paper_germline, tmp_path, rows):
    """It begins at row 0 whatever its size: rows were left out, or counted twice."""
    arguments = (Inputs(tables / "t.tsv"), paper_germline, tmp_path / "o.h5", Config(2), World())
    count_in_slices(*arguments, ROWS)
    (tmp_path / "o.h5").unlink()
    for path in sorted(parts.folder_of(tmp_path / "o.h5").glob("part-*.h5"))[1:]:
        path.unlink()
    with pytest.raises(InputError, match=f"slice_rows was 137, is {rows}"):
        count_in_slices(*arguments, rows, resume=True)
    assert count_in_slices(*arguments, ROWS, resume=True).rows_read == 500
    with pytest.raises(CompleteError):
        count_in_slices(*arguments, rows, resume=True)


@pytest.mark.parametrize("name", ["50%.h5", "%b.h5", "a%%b.h5"])
def test_a_percent_sign_in_the_name(tables, paper_germline, tmp_path, name):
    target = tmp_path / name
    count_in_slices(Inputs(tables / "t.tsv"), paper_germline, target, Config(6), World(), ROWS)
    with Result(target) as result:
        assert result.parts == sorted(parts.folder_of(target).glob("part-*.h5"))
    _, one = whole(tables, paper_germline, tmp_path)
    assert by_row(target)["pathways_total"].to_pylist() == by_row(one)["pathways_total"].to_pylist()


def test_overwriting_leaves_no_view_of_parts_that_are_gone(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    arguments = (Inputs(tables / "t.tsv"), paper_germline, target, Config(2), World(), ROWS)
    count_in_slices(*arguments)
    with pytest.raises(InputError, match="no such file"):
        count_in_slices(Inputs(tmp_path / "no.tsv"), *arguments[1:], overwrite=True)
    assert len(by_row(target)["pathways_total"]) == 500
    request = StopRequest()
    request.name = "SIGTERM"
    with pytest.raises(StoppedError):
        count_in_slices(*arguments, overwrite=True, request=request)
    assert not target.exists()
    count_in_slices(*arguments, resume=True)
    assert len(by_row(target)["pathways_total"]) == 500


def test_a_file_that_is_no_view_stays_until_the_parts_are_joined(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    arguments = (Inputs(tables / "t.tsv"), paper_germline, target, Config(2), World())
    count_file(*arguments)
    request = StopRequest()
    request.name = "SIGTERM"
    with pytest.raises(StoppedError):
        count_in_slices(*arguments, ROWS, overwrite=True, request=request)
    assert len(by_row(target)["pathways_total"]) == 500


def test_one_file_in_the_place_of_parts_leaves_none(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    count_in_slices(Inputs(tables / "t.tsv"), paper_germline, target, Config(2), World(), ROWS)
    count_file(Inputs(tables / "t.tsv"), paper_germline, target, Config(2), World(), overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["o.h5"]
    with Result(target) as result:
        assert len(result.counters)


def test_what_it_is_not_for(tables, paper_germline, tmp_path):
    arguments = (Inputs(tables / "t.tsv"), paper_germline, tmp_path / "o.h5")
    with pytest.raises(InputError, match="--method direct"):
        count_in_slices(*arguments, Config(2, "bitwise"), World(), ROWS)
    with pytest.raises(InputError, match="give a number"):
        count_in_slices(*arguments, Config("all"), World(), ROWS)
    assert slice_rows(Inputs(tables / "t.parquet"), "direct", None) == 0
    assert slice_rows(Inputs(tables / "t.parquet"), "direct", 7) == 7


def test_a_part_keeps_the_rows_of_the_table(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    count_in_slices(Inputs(tables / "t.tsv"), paper_germline, target, Config(1), World(), ROWS)
    with Result(parts.part_path(target, 1)) as part:
        everything = np.sort(np.concatenate([part.row, part.excluded.row]))
        assert everything.tolist() == list(range(ROWS, 2 * ROWS))
        assert part.excluded.row.tolist() == [140, 141]


def test_parts_are_packed(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    count_in_slices(Inputs(tables / "t.tsv"), paper_germline, target, Config(1), World(), ROWS)
    with Result(parts.part_path(target, 1)) as part:
        for name in ("counters", "sequences/row", "sequences/sequence_id", "sequences/cdr3"):
            assert part.dataset(name).compression == "gzip"


def test_ranks_may_share_a_gpu(tables, paper_germline, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("hpcvdj.runs.binding._check_binding", lambda uuids, strict: asked.append(strict))
    count_in_slices(Inputs(tables / "t.tsv"), paper_germline, tmp_path / "o.h5", Config(1), World(), ROWS)
    assert asked == []
    strict = Config(1, strict_binding=True)
    count_in_slices(Inputs(tables / "t.tsv"), paper_germline, tmp_path / "p.h5", strict, World(), ROWS)
    count_file(Inputs(tables / "t.tsv"), paper_germline, tmp_path / "q.h5", Config(1), World())
    assert asked == [True, False]


def test_a_full_disk_while_the_parts_are_joined(tables, paper_germline, tmp_path, monkeypatch):
    target, write = tmp_path / "o.h5", storage._SafeFile.write
    arguments = (Inputs(tables / "t.tsv"), paper_germline, target, Config(6), World(), ROWS)

    def failing(self, data):
        # As on a disk that has room for the parts, and the first few bytes of what joins them.
        if self.name.name == ".part-joined" and self.tell() > 2000:
            self.fault = self.fault or OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    with monkeypatch.context() as full:
        full.setattr(storage._SafeFile, "write", failing)
        with pytest.raises(MachineError, match="the disk is full; nothing was left there"):
            count_in_slices(*arguments)
    assert not target.exists()
    # What a run leaves that is killed while it joins.
    (parts.folder_of(target) / ".part-joined").write_bytes(b"half")
    count_in_slices(*arguments, resume=True)
    names = {path.name for path in tmp_path.rglob("*")}
    assert names == {"o.h5", "o.h5.parts", "run.json", *(f"part-{index:06}.h5" for index in range(4))}
    _, one = whole(tables, paper_germline, tmp_path)
    assert by_row(target)["pathways_total"].to_pylist() == by_row(one)["pathways_total"].to_pylist()
