"""Results in slices: slice by slice, a repertoire gives what it gives at once."""

import errno
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.counting.config import Config
from hpcvdj.errors import CompleteError, InputError, MachineError, StoppedError
from hpcvdj.repertoires.inputs import Inputs, numbered, survey
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.table import table_of
from hpcvdj.repertoires.tally import log_exclusions
from hpcvdj.results.lookup import Lookup
from hpcvdj.results.reader import Result
from hpcvdj.storage import hdf5
from hpcvdj.values.input_slices import SlicedInput, estimated_rows
from tests.conftest import SMALL
from tests.problems import count_to, signalled_run

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
    return count_to(target, tables / "t.tsv", germline, Config(max_n=6)), target


def by_row(path):
    """Counters in input order, excluded rows' missing; and why."""
    with Result(path) as result:
        read = int(result.provenance["rows_read"])
        return Lookup(result.quantity, result.counters[:], result.row, result.excluded).columns(0, read)


def part_files(target):
    return sorted((target.parent / f"{target.name}.parts").glob("part-*.h5"))


@pytest.mark.slow_others("name", "rows")
@pytest.mark.parametrize("block", [1 << 24, 5_000])
@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz", "t.parquet"])
@pytest.mark.parametrize("rows", [1, 100, ROWS, 500, 9999])
def test_slices_are_the_table(tables, monkeypatch, name, rows, block):
    """Also if slices begin and end within the blocks in which a text is read."""
    monkeypatch.setattr("hpcvdj.repertoires.readers.text.BLOCK_BYTES", block)
    names = ["sequence_id", "v_call", "j_call", "junction"]
    header, *lines = [line.split("\t") for line in (tables / "t.tsv").read_text().splitlines()]
    places = [header.index(column) for column in names]
    expected = [tuple(cells[k] for k in places) for cells in lines]
    for ranks in (1, 3):
        found = {}
        for rank in range(ranks):
            sliced = SlicedInput(Inputs.of_file(tables / name, Reading()), rows, all_columns=False)
            for part in sliced.slices(lambda index, rank=rank, ranks=ranks: index % ranks == rank, lambda: None):
                read = pa.Table.from_batches(list(sliced.packed(part))).select(names)
                found[part.first_row] = list(zip(*(column.to_pylist() for column in read.columns), strict=True))
                assert len(found[part.first_row]) == part.rows <= rows
            assert sliced.rows == 500
        assert [row for first in sorted(found) for row in found[first]] == expected


@given(st.lists(st.integers(0, 30), min_size=1, max_size=9).filter(any), st.integers(1, 20), st.integers(1, 5))
def test_slices_of_several_tables(sizes, rows, ranks):
    """Each has `rows` rows, of as many tables as it takes; one rank has it."""
    names = ["sequence_id", "v_call", "j_call", "junction", "note"]
    tables = [
        table_of(pa.table({name: [f"{name} {k} {row}" for row in range(size)] for name in names}), individual=str(k))
        for k, size in enumerate(sizes)
    ]
    inputs = Inputs(tuple(tables), Reading(), together=True)
    inputs = numbered(inputs, [survey(inputs, table) for table in tables])
    found = {}
    for rank in range(ranks):
        sliced = SlicedInput(inputs, rows)
        for part in sliced.slices(lambda index, rank=rank: index % ranks == rank, lambda: None):
            written = pa.Table.from_batches(list(sliced.written(part)))
            packed = pa.Table.from_batches([batch.select(["junction"]) for batch in sliced.packed(part)])
            assert written["junction"].to_pylist() == packed["junction"].to_pylist()
            found[part.index] = list(
                zip(written["note"].to_pylist(), written["repertoire_id"].to_pylist(), strict=True)
            )
            assert part.first_row == part.index * rows
    expected = [(f"note {k} {row}", str(k)) for k, size in enumerate(sizes) for row in range(size)]
    assert [row for index in sorted(found) for row in found[index]] == expected
    assert {len(found[index]) for index in sorted(found)[:-1]} <= {rows}


@pytest.mark.parametrize("name", ["t.tsv", "t.parquet"])
def test_the_same_counters_and_exclusions(tables, paper_germline, tmp_path, name):
    summary, one = whole(tables, paper_germline, tmp_path)
    many = tmp_path / "many.h5"
    sliced = count_to(many, tables / name, paper_germline, Config(max_n=6), rows=ROWS)
    assert len(part_files(many)) == 4
    for field in ("rows_read", "counted", "excluded", "pairs", "max_n", "method", "hardware", "ranks", "sums",
                  "nonzero"):  # fmt: skip
        assert getattr(sliced, field) == getattr(summary, field), field
    assert sliced.seconds.keys() == summary.seconds.keys()
    expected, found = by_row(one), by_row(many)
    assert expected.keys() == found.keys()
    for column in expected:
        assert expected[column].to_pylist() == found[column].to_pylist()
    with Result(many) as result, Result(one) as other:
        counters = result.counters[:]
        assert result.provenance["sums"] == other.provenance["sums"]
        assert result.provenance["nonzero"] == other.provenance["nonzero"]
        assert result.excluded_counts == other.excluded_counts == other.excluded.counts()
        table = result.to_table()
        for v, j, rows in result.pairs:
            cells = table.slice(rows.start, rows.stop - rows.start)
            assert set(cells["v_call"].to_pylist()) == {v}
            assert set(cells["j_call"].to_pylist()) == {j}
            assert rows.stop <= len(counters)


def test_exclusions_are_logged_as_of_a_whole_table(tables, paper_germline, tmp_path, caplog):
    logged = []
    for rows in (0, ROWS):
        caplog.clear()
        found = count_to(tmp_path / f"{rows}.h5", tables / "t.tsv", paper_germline, rows=rows)
        log_exclusions("t.tsv", found)
        logged.append([record.getMessage() for record in caplog.records if record.levelname == "WARNING"])
    assert logged[0] == logged[1]
    assert "t.tsv: 4 of 500 rows excluded:" in logged[0]


def test_more_exclusions_than_an_attribute_lists(tables, paper_germline, tmp_path, monkeypatch):
    monkeypatch.setattr("hpcvdj.results.slice_facts.MOST_COUNTED", 0)
    summary = count_to(tmp_path / "o.h5", tables / "t.tsv", paper_germline, rows=ROWS)
    assert [rows for _, rows in summary.excluded] == [4]
    with Result(tmp_path / "o.h5") as result:
        assert result.excluded_counts == summary.excluded


def test_an_interrupted_run_continues_with_its_parts(tables, paper_germline, tmp_path, signal_after_a_slice):
    target = tmp_path / "o.h5"
    run, counted = signal_after_a_slice
    arguments = target, tables / "t.parquet", paper_germline
    with pytest.raises(StoppedError, match=r"SIGTERM: stopped with the part files in .* saved"):
        count_to(*arguments, Config(max_n=6), rows=ROWS, run=run)
    assert counted == [0]
    assert not target.exists()
    with pytest.raises(InputError, match="has the work of an unfinished run; resume=True"):
        count_to(*arguments, Config(max_n=6), rows=ROWS)
    with pytest.raises(InputError, match="max_n was 6, is 5"):
        count_to(*arguments, Config(max_n=5), rows=ROWS, resume=True)
    # The slices of a run have the size that it began with.
    count_to(*arguments, Config(max_n=6), rows=ROWS + 100, resume=True)
    assert counted == [0, 1, 2, 3]
    with Result(target) as result:
        assert result.provenance["slice_rows"] == ROWS
    _, one = whole(tables, paper_germline, tmp_path)
    assert by_row(target)["pathways_total"].to_pylist() == by_row(one)["pathways_total"].to_pylist()
    with pytest.raises(CompleteError):
        count_to(*arguments, Config(max_n=6), rows=ROWS, resume=True)


def test_a_stopped_run_that_replaces_a_result_continues(tables, paper_germline, tmp_path, signal_after_a_slice):
    target, table = tmp_path / "o.h5", tables / "t.tsv"
    count_to(target, table, paper_germline, Config(max_n=1))
    run, _ = signal_after_a_slice
    with pytest.raises(StoppedError):
        count_to(target, table, paper_germline, Config(max_n=3), rows=ROWS, run=run, overwrite=True)
    with Result(target) as result:
        assert result.max_n == 1
    count_to(target, table, paper_germline, Config(max_n=3), rows=ROWS, resume=True)
    with Result(target) as result:
        assert result.max_n == 3


@pytest.mark.slow
def test_a_result_in_parts_stays_until_it_is_replaced(tables, paper_germline, tmp_path, request):
    target, table = tmp_path / "o.h5", tables / "t.tsv"
    count_to(target, table, paper_germline, Config(max_n=1), rows=ROWS)
    run, _ = request.getfixturevalue("signal_after_a_slice")
    with pytest.raises(StoppedError):
        count_to(target, table, paper_germline, Config(max_n=3), rows=ROWS, run=run, overwrite=True)
    assert len(by_row(target)["pathways_total"]) == 500
    with Result(target) as result:
        assert result.max_n == 1
    count_to(target, table, paper_germline, Config(max_n=3), rows=ROWS, resume=True)
    for max_n, folder in ((3, "o.h5.2.parts"), (2, "o.h5.parts")):
        if max_n == 2:
            count_to(target, table, paper_germline, Config(max_n=2), rows=ROWS, overwrite=True)
        with Result(target) as result:
            assert result.max_n == max_n
            assert {part.parent.name for part in result.parts} == {folder}
        assert sorted(path.name for path in tmp_path.iterdir()) == ["o.h5", folder]
        with pytest.raises(CompleteError):
            count_to(target, table, paper_germline, Config(max_n=max_n), rows=ROWS, resume=True)
        assert len(by_row(target)["pathways_total"]) == 500


@pytest.mark.parametrize(
    ("name", "step", "finished"),
    [
        ("t.tsv", 3, 0),
        ("t.tsv", 60, 1),
        ("t.parquet", 3, 0),
    ],
)
def test_a_signal_while_a_slice_is_read(tables, paper_germline, tmp_path, monkeypatch, name, step, finished):
    """It is heard between two batches, also of rows that another rank counts."""
    monkeypatch.setattr("hpcvdj.repertoires.readers.reader.BATCH_ROWS", 10)
    monkeypatch.setattr("hpcvdj.repertoires.readers.text.BLOCK_BYTES", 1 << 10)
    asked = []
    run = signalled_run()

    def at_that_step():
        asked.append(1)
        return len(asked) == step

    monkeypatch.setattr(type(run.request), "__bool__", lambda self: at_that_step())
    said = (
        r"stopped with the part files in .* saved; resume=True"
        if finished
        else "stopped before any result; start again"
    )
    with pytest.raises(StoppedError, match=said):
        count_to(tmp_path / "o.h5", tables / name, paper_germline, Config(max_n=1), rows=ROWS, run=run)
    assert len(asked) == step
    assert len(part_files(tmp_path / "o.h5")) == finished
    assert len(list(tmp_path.iterdir())) == finished
    monkeypatch.undo()
    assert (
        count_to(tmp_path / "o.h5", tables / name, paper_germline, Config(max_n=1), rows=ROWS, resume=True).rows_read
        == 500
    )


@pytest.mark.parametrize("rows", [100, 200])
def test_parts_that_are_left_tell_their_size(tables, paper_germline, tmp_path, rows):
    """The first part begins at row 0 whatever its size."""
    arguments = tmp_path / "o.h5", tables / "t.tsv", paper_germline
    count_to(*arguments, rows=ROWS)
    (tmp_path / "o.h5").unlink()
    for path in part_files(tmp_path / "o.h5")[1:]:
        path.unlink()
    assert count_to(*arguments, rows=rows, resume=True).rows_read == 500
    assert len(part_files(tmp_path / "o.h5")) == 4
    with pytest.raises(CompleteError):
        count_to(*arguments, rows=rows, resume=True)
    assert len(by_row(tmp_path / "o.h5")["pathways_total"]) == 500


@pytest.mark.parametrize("name", ["50%.h5", "%b.h5", "a%%b.h5"])
def test_a_percent_sign_in_the_name(tables, paper_germline, tmp_path, name):
    target = tmp_path / name
    count_to(target, tables / "t.tsv", paper_germline, Config(max_n=6), rows=ROWS)
    with Result(target) as result:
        assert result.parts == part_files(target)
    _, one = whole(tables, paper_germline, tmp_path)
    assert by_row(target)["pathways_total"].to_pylist() == by_row(one)["pathways_total"].to_pylist()


def test_a_failed_overwrite_leaves_a_result_in_parts(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    arguments = target, tables / "t.parquet", paper_germline
    count_to(*arguments, rows=ROWS)
    with pytest.raises(InputError, match="no such file"):
        count_to(target, tmp_path / "missing.tsv", paper_germline, rows=ROWS, overwrite=True)
    assert len(by_row(target)["pathways_total"]) == 500
    with pytest.raises(StoppedError):
        count_to(*arguments, rows=ROWS, overwrite=True, run=signalled_run())
    assert len(by_row(target)["pathways_total"]) == 500
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.h5", "o.h5.parts"]


def test_a_result_in_one_file_stays_until_the_parts_are_joined(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    arguments = target, tables / "t.tsv", paper_germline
    count_to(*arguments)
    with pytest.raises(StoppedError):
        count_to(*arguments, rows=ROWS, overwrite=True, run=signalled_run())
    assert len(by_row(target)["pathways_total"]) == 500


def test_one_file_in_place_of_parts_removes_them(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    count_to(target, tables / "t.tsv", paper_germline, rows=ROWS)
    count_to(target, tables / "t.tsv", paper_germline, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["o.h5"]
    with Result(target) as result:
        assert len(result.counters)


def test_what_slices_are_not_for(tables, paper_germline, tmp_path):
    arguments = tmp_path / "o.h5", tables / "t.tsv", paper_germline
    with pytest.raises(InputError, match="method='direct'"):
        count_to(*arguments, Config(max_n=2, method="bitwise"), rows=ROWS)
    with pytest.raises(InputError, match="give a number"):
        count_to(*arguments, Config(max_n="all"), rows=ROWS)


def test_a_part_has_the_row_numbers_of_the_table(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    count_to(target, tables / "t.tsv", paper_germline, rows=ROWS)
    with Result(part_files(target)[1]) as part:
        everything = np.sort(np.concatenate([part.row, part.excluded.row]))
        assert everything.tolist() == list(range(ROWS, 2 * ROWS))
        assert part.excluded.row.tolist() == [140, 141]


def test_parts_are_packed(tables, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    count_to(target, tables / "t.tsv", paper_germline, rows=ROWS)
    with Result(part_files(target)[1]) as part:
        for name in ("counters", "sequences/row", "sequences/sequence_id", "sequences/cdr3"):
            assert part.dataset(name).compression == "gzip"
            assert part.dataset(name).fletcher32


def test_ranks_may_share_a_gpu(tables, paper_germline, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("hpcvdj.runs.run._check_binding", lambda uuids, strict: asked.append(strict))
    arguments = tables / "t.tsv", paper_germline
    count_to(tmp_path / "o.h5", *arguments, Config(max_n=1), rows=ROWS)
    assert asked == []
    count_to(tmp_path / "p.h5", *arguments, Config(max_n=1, strict_binding=True), rows=ROWS)
    count_to(tmp_path / "q.h5", *arguments, Config(max_n=1))
    assert asked == [True, False]


def test_a_full_disk_while_the_parts_are_joined(tables, paper_germline, tmp_path, monkeypatch):
    target, write = tmp_path / "o.h5", hdf5._SafeFile.write
    arguments = target, tables / "t.tsv", paper_germline, Config(max_n=6)

    def failing(self, data):
        # As on a disk that has room for the parts, and the first few bytes of what joins them.
        if self.name.name == ".o.h5.part" and self.tell() > 2000:
            self.fault = self.fault or OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    with monkeypatch.context() as full:
        full.setattr(hdf5._SafeFile, "write", failing)
        with pytest.raises(MachineError, match="the disk is full; free space"):
            count_to(*arguments, rows=ROWS)
    assert not target.exists()
    # What a run leaves that is killed while it joins.
    (tmp_path / ".o.h5.part").write_bytes(b"half")
    count_to(*arguments, rows=ROWS, resume=True)
    names = {path.name for path in tmp_path.rglob("*")}
    assert names == {"o.h5", "o.h5.parts", "run.json", *(f"part-{index:06}.h5" for index in range(4))}
    _, one = whole(tables, paper_germline, tmp_path)
    assert by_row(target)["pathways_total"].to_pylist() == by_row(one)["pathways_total"].to_pylist()


def test_about_how_many_rows_a_table_has(tables, tmp_path):
    """Exactly of Parquet; of a short text its lines; of a packed one, as if a fifth of it were left."""
    for name, rows in (("t.parquet", 500), ("t.tsv", 501)):
        assert estimated_rows(Inputs.of_file(tables / name, Reading()).tables[0]) == rows
    text, packed = ((tables / name).stat().st_size for name in ("t.tsv", "t.tsv.gz"))
    found = estimated_rows(Inputs.of_file(tables / "t.tsv.gz", Reading()).tables[0])
    assert found == int(501 * 5 * packed / text)
    (tmp_path / "header.tsv").write_text("junction")
    assert estimated_rows(Inputs.of_file(tmp_path / "header.tsv", Reading()).tables[0]) == 1


@pytest.mark.parametrize(("group_rows", "of_first"), [(4, [0, 1, 2, 3, 8]), (1, [0, 2, 4, 6, 8])])
def test_a_rank_goes_on_within_a_row_group(tmp_path, group_rows, of_first):
    """Each of two ranks in turn takes a slice; what is left of a group that was not finished is taken at the end."""
    path = tmp_path / "t.parquet"
    table = pa.table({name: [f"{name}{row}" for row in range(10)] for name in Reading().columns})
    pq.write_table(table, path, row_group_size=group_rows)
    free = set(range(10))

    def take(index):
        return index in free and not free.remove(index)

    ranks = [SlicedInput(Inputs.of_file(path, Reading()), 1).slices(take, int) for _ in range(2)]
    taken = [], []
    while any(found := [next(rank, None) for rank in ranks]):
        for own, part in zip(taken, found, strict=True):
            own += [part] if part else []
    assert not free
    assert [part.index for part in taken[0]] == of_first
    ids = {
        part.index: [batch["sequence_id"].to_pylist() for _, batch in part.batches] for part in (*taken[0], *taken[1])
    }
    assert ids == {index: [[f"sequence_id{index}"]] for index in range(10)}
