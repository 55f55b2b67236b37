"""hpcvdj.results.reader: what is in the file, and that nothing half-written is left under the final name."""

import json
import os
from fractions import Fraction

import h5py
import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.counting.verify import reference
from hpcvdj.errors import InputError, MachineError
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.repertoires.readers import TextReader
from hpcvdj.results.export import export
from hpcvdj.results.reader import Result
from tests.conftest import SMALL
from tests.problems import count_to, junctions_of_rows
from tests.rows import read_batches


@pytest.fixture
def table(tmp_path):
    """The small example with a few rows that cannot be counted, and one column more."""
    lines = SMALL.read_text().splitlines()[:60]
    rows = [lines[0] + "\tnote"] + [f"{line}\tr{k}" for k, line in enumerate(lines[1:])]
    rows[5] = rows[5].replace("TRBV", "TRBX", 1)
    rows[9] = rows[9].replace("TGT", "TGN", 1)
    path = tmp_path / "junctions.tsv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def result(tmp_path, table, paper_germline):
    path = tmp_path / "out.h5"
    count_to(path, table, paper_germline, Config(max_n=4))
    return path


def test_the_file_holds_all_that_the_format_says(result, table, paper_germline):
    with Result(result) as out:
        frame = out.to_table().to_pandas()
        rows = [row for batch in read_batches(table) for row in batch.to_pylist()]
        assert out.max_n == 4
        assert len(out) == 57 == len(frame)
        for record in frame.to_dict("records"):
            source = rows[record["row"]]
            assert record["sequence_id"] == source["sequence_id"]
            assert (record["v_call"], record["j_call"]) == (source["v_call"], source["j_call"])
            assert record["cdr3"] == source["junction"][3:-3]
        calls = [(r["v_call"], r["j_call"], r["cdr3"]) for r in frame.to_dict("records")]
        junctions = junctions_of_rows(paper_germline, calls)
        expected = reference(Problem(junctions.repertoire, paper_germline, 4))[np.argsort(junctions.row)]
        assert np.array_equal(out.counters[:], expected)
        assert frame["pathways_total"].tolist() == expected.sum(axis=1).tolist()
        assert list(map(int, json.loads(out.provenance["sums"]))) == expected.sum(axis=0).tolist()
        assert out.provenance["nonzero"] == np.count_nonzero(expected.any(axis=1))
        assert out.excluded.row.tolist() == [4, 8]
        assert out.excluded.messages[0].startswith("V gene TRBX")
        assert sorted([*out.row.tolist(), *out.excluded.row.tolist()]) == list(range(59))
        assert [frame["v_call"][rows].unique().tolist() for v, _, rows in out.pairs] == [[v] for v, _, _ in out.pairs]


def test_provenance(result, table):
    with Result(result) as out:
        facts = out.provenance
    assert facts["format"] == "hpcvdj-counts"
    assert facts["format_version"] == 2
    assert facts["junctions_path"] == str(table)
    assert facts["rows_read"] == 59
    assert facts["mpi_size"] == 1
    assert '"max_n": 4' in facts["config"]
    with h5py.File(result) as file:
        units = len(file["timings/tasks"])
        assert file["timings/kernel_seconds"].shape == (units,)
        assert (file["timings/wall_seconds"][:] >= file["timings/kernel_seconds"][:]).all()
        assert file["timings/rank_kernel_seconds"].shape == (1,)
        assert file["ranks/host"].shape == (1,)


def test_nothing_but_the_result_is_left(result, table):
    assert sorted(os.listdir(result.parent)) == ["junctions.tsv", "out.h5"]


def test_export_gives_the_input_back_in_its_order(result, table, tmp_path):
    for name in ("o.tsv", "o.tsv.gz", "o.parquet"):
        assert export(result, tmp_path / name) == 59
    original = [row for batch in read_batches(table) for row in batch.to_pylist()]
    text = [row for batch in read_batches(tmp_path / "o.tsv") for row in batch.to_pylist()]
    assert [{key: row[key] for key in original[0]} for row in text] == original
    packed = [row for batch in read_batches(tmp_path / "o.tsv.gz") for row in batch.to_pylist()]
    parquet = [row for batch in read_batches(tmp_path / "o.parquet") for row in batch.to_pylist()]
    assert text == packed == parquet
    with Result(result) as out:
        counted = {int(row): out.counters[k] for k, row in enumerate(out.row)}
    for k, row in enumerate(text):
        found = [row[f"pathways_n{m}"] for m in range(5)]
        assert found == ([str(c) for c in counted[k]] if k in counted else [""] * 5)
        assert (row["pathways_excluded"] == "") == (k in counted)
        assert row["pathways_total"] == (str(counted[k].sum()) if k in counted else "")
        weight = sum(Fraction(int(count), 4**m) for m, count in enumerate(counted.get(k, [])))
        assert (row["weight"] and float(row["weight"])) == (float(weight) if k in counted else "")


def test_export_wants_the_counted_table(result, table, tmp_path):
    moved = tmp_path / "moved.tsv"
    table.rename(moved)
    with pytest.raises(InputError, match="junctions"):
        export(result, tmp_path / "o.tsv")
    assert export(result, tmp_path / "o.tsv", junctions=moved) == 59
    before = moved.read_text()
    with pytest.raises(InputError, match=r"moved\.tsv: is an input of this run"):
        export(result, moved, junctions=moved, overwrite=True)
    assert moved.read_text() == before
    moved.write_text(moved.read_text().replace("r7", "r8"))
    with pytest.raises(InputError, match="SHA-256 differs"):
        export(result, tmp_path / "p.tsv", junctions=moved)
    with pytest.raises(InputError, match="exists already"):
        export(result, tmp_path / "o.tsv", junctions=moved)
    assert not (tmp_path / "p.tsv").exists()


def test_export_calls_between_batches(result, table, tmp_path):
    """So that other ranks hear of root while it writes a large table."""
    called = []
    export(result, tmp_path / "o.tsv", between=lambda: called.append(1))
    assert called


def test_export_of_a_table_that_changes_meanwhile(result, table, tmp_path, monkeypatch):
    read = TextReader.batches

    def read_and_change(reader, columns=None):
        yield from read(reader, columns)
        os.utime(reader.path)

    monkeypatch.setattr(TextReader, "batches", read_and_change)
    with pytest.raises(InputError, match=r"changed while it was read"):
        export(result, tmp_path / "o.tsv")
    assert not list(tmp_path.glob("*o.tsv*"))


def test_export_refuses_to_shadow_a_column(tmp_path, paper_germline):
    path = tmp_path / "t.tsv"
    path.write_text("sequence_id\tv_call\tj_call\tjunction\tpathways_n0\na\tTRBV1\tTRBJ1-1\tTGTTTT\t1\n")
    count_to(tmp_path / "o.h5", path, paper_germline, Config(max_n=1))
    with pytest.raises(InputError, match="has a column pathways_n0 already"):
        export(tmp_path / "o.h5", tmp_path / "o.tsv")


def test_an_existing_result_stays(result, table, paper_germline):
    before = result.read_bytes()
    with pytest.raises(InputError, match="overwrite=True"):
        count_to(result, table, paper_germline)
    assert result.read_bytes() == before
    count_to(result, table, paper_germline, overwrite=True)
    with Result(result) as out:
        assert out.max_n == 2


def test_unwritable_targets(tmp_path, table, paper_germline):
    for target, message in (
        (tmp_path / "none" / "o.h5", "no such folder"),
        (tmp_path, "is a folder"),
        ("/proc/o.h5", "cannot be written|no such folder"),
    ):
        with pytest.raises(InputError, match=message):
            count_to(type(tmp_path)(target), table, paper_germline)


def test_a_failing_write_leaves_the_old_result(result, table, paper_germline, monkeypatch):
    before = result.read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hpcvdj.results.result_output.write_packed", full)
    with pytest.raises(MachineError, match=r"out.h5: the disk is full"):
        count_to(result, table, paper_germline, overwrite=True)
    assert result.read_bytes() == before
    assert sorted(os.listdir(result.parent)) == ["junctions.tsv", "out.h5"]


def test_ids_and_sequences_of_every_width(tmp_path, paper_germline):
    """UTF-8 ids, an id of no letters, the empty CDR3, and one of 128 nt."""
    path = tmp_path / "t.tsv"
    rows = [("é✓", ""), ("", "ACGT" * 32), ("x" * 300, "A")]
    body = "".join(f"{name}\tTRBV1\tTRBJ1-1\tTGT{cdr3}TTT\n" for name, cdr3 in rows)
    path.write_text("sequence_id\tv_call\tj_call\tjunction\n" + body)
    count_to(tmp_path / "o.h5", path, paper_germline, Config(max_n="all"))
    with Result(tmp_path / "o.h5") as out:
        table = out.to_table()
        assert list(zip(table["sequence_id"].to_pylist(), table["cdr3"].to_pylist(), strict=True)) == rows
        assert out.max_n == 128
        assert (out.counters[:].sum(axis=1) > 0).all()
