"""Tables in memory are read like files: the same rows, several with the names of their individuals, and samples."""

import pickle

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import from_sequences
from hpcvdj.repertoires.formats.format import Opening
from hpcvdj.repertoires.inputs import Inputs, numbered, survey, tables_of, together_of
from hpcvdj.repertoires.readers import MemoryReader, open_table
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.table import table_at, table_of

GERMLINE = from_sequences(["GC"], ["G"], ["C"])
OTHER = {"count": [3, 1], "freq": [0.7, 0.3], "cdr3nt": ["TGTGCCTTT", "TGTGCTTTT"], "cdr3aa": ["CAF"] * 2,
         "v": ["V1"] * 2, "d": ["."] * 2, "j": ["J1"] * 2}  # fmt: skip


def rows(number, **columns):
    return pa.table(
        {"v_call": ["V1"] * number, "j_call": ["J1"] * number, "junction": ["TGTGCCTTT"] * number, **columns}
    )


@pytest.mark.parametrize("make", [pd.Series, pytest.importorskip("polars").Series, list])
def test_a_column_is_no_table(make):
    with pytest.raises(InputError, match=r"cannot read junctions from a (Series|list); give a pandas"):
        MemoryReader(make(["TGTGCCTTT"]))


def test_a_column_that_is_no_text_is_named():
    reader = MemoryReader(rows(1, notes=pa.array([b"x"])))
    with pytest.raises(InputError, match="the column notes is of type binary, no text; convert it, or leave it out"):
        list(reader.batches())


def surveyed(tables, reading=None):
    inputs = together_of(tables, reading or Reading())
    return numbered(inputs, [survey(inputs, table) for table in inputs.tables])


@pytest.mark.parametrize("opening", [Opening(), Opening(columns=(("repertoire_id", "d"),))], ids=["header", "columns"])
def test_a_table_of_another_program_is_read_as_its_file(tmp_path, opening):
    table = pa.table(OTHER)
    pq.write_table(table, tmp_path / "t.parquet")
    file, memory = open_table(tmp_path / "t.parquet", opening), MemoryReader(table, opening)
    assert memory.columns == file.columns
    assert [batch.to_pylist() for batch in memory.batches()] == [batch.to_pylist() for batch in file.batches()]
    assert memory.known_rows == file.known_rows == 2


def test_individuals_are_named_by_their_keys():
    """Whatever the rows say of themselves."""
    inputs = surveyed([table_of(rows(2, repertoire_id=["x", "y"]), individual="a"), table_of(rows(3), individual="b")])
    assert inputs.repertoires == ["a", "b"]
    assert [table.first_row for table in inputs.tables] == [0, 2]
    junctions = inputs.read(GERMLINE)
    assert junctions.repertoire_ids == ["a", "b"]
    assert sorted(zip(junctions.row.tolist(), junctions.repertoire_of.tolist(), strict=True)) == [
        (0, 0), (1, 0), (2, 1), (3, 1), (4, 1),
    ]  # fmt: skip


def test_rows_name_their_individuals_or_have_that_of_the_table(caplog):
    inputs = surveyed([table_of(rows(4, repertoire_id=["x", None, "y", "x"]))])
    assert inputs.tables[0].repertoires == {"x": 2, "the table": 1, "y": 1}
    assert inputs.tables[0].unnamed == 1
    assert (
        "the table: 1 rows have no repertoire_id, and are a repertoire of their own, the table; fill it" in caplog.text
    )
    caplog.clear()
    for names in (["x", "y"], [None, None]):
        surveyed([table_of(rows(2, repertoire_id=names))])
    assert caplog.text == ""
    assert inputs.read(GERMLINE).repertoire_ids == ["x", "the table", "y"]


def test_ids_in_memory_are_those_of_rows(tmp_path):
    """A file's ids must be unique; a table in memory may be made of several."""
    table = rows(2, sequence_id=["s", "s"])
    assert Inputs.of_table(table, Reading()).read(GERMLINE).row.tolist() == [0, 1]
    pq.write_table(table, tmp_path / "t.parquet")
    assert Inputs.of_file(tmp_path / "t.parquet").read(GERMLINE).row.tolist() == [0]


def test_samples_of_several_tables_are_those_of_one():
    junctions = ["TGTGCCTTT" if k % 3 else "TGTGCTTTT" for k in range(60)]
    one = rows(60).set_column(2, "junction", pa.array(junctions))
    parts = [table_of(one.slice(0, 25), individual="a"), table_of(one.slice(25), individual="b")]
    named = one.append_column("repertoire_id", pa.array(["a"] * 25 + ["b"] * 35))
    found, expected = (together_of(tables, Reading()).sample(GERMLINE, 20) for tables in (parts, [table_of(named)]))
    assert len(found) == len(expected) == 20
    assert found.repertoire_ids == expected.repertoire_ids == ["a", "b"]
    assert found.repertoire.words.tolist() == expected.repertoire.words.tolist()
    assert found.repertoire_of.tolist() == expected.repertoire_of.tolist()
    assert together_of(parts, Reading()).sample(GERMLINE, 100).rows_read == 60


def test_messages_name_the_table():
    with pytest.raises(InputError, match=r"^the table has no column j_call, junction; rename its columns to the AIRR"):
        surveyed([table_of(pa.table({"v_call": ["V1"]}))])
    with pytest.raises(InputError, match=r"^the table b has no column junction"):
        surveyed([table_of(rows(1), individual="a"), table_of(rows(1).drop_columns("junction"), individual="b")])


def test_other_ranks_open_files_themselves(tmp_path):
    """A table that is sent to them has no reader of a file, but one that is in memory."""
    pq.write_table(rows(2), tmp_path / "t.parquet")
    table = table_at(tmp_path / "t.parquet")
    table.open()
    sent = pickle.loads(pickle.dumps(table))
    assert (sent, sent.readers) == (table, [])
    assert tables_of([tmp_path], Reading()).tables[0].open().known_rows == 2
    assert pickle.loads(pickle.dumps(table_of(rows(2)))).open().known_rows == 2
