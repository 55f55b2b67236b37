"""Every reader and format on hostile tables: rows keep their number and order, and each is accounted for."""

import csv
import io
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.errors import choices
from hpcvdj.recombination.exclusions import Exclusion
from hpcvdj.recombination.germline import read_germline
from hpcvdj.repertoires.formats.format import REASON, Opening
from hpcvdj.repertoires.junctions import read_junctions
from hpcvdj.repertoires.readers import TableReader, open_table
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.table import Table
from tests.conftest import GERMLINE
from tests.repertoires.program_tables import NT, TABLES

WORDS = [
    "", " ", ".", "None", "NA", "null", "region_not_covered", "partial", "out_of_frame", "Multi", "True", "false", "F",
    "12", "12.5", "-1", "1e400", "nan", "é", "\u200b", "*", "_", "CASSF", "C*SF", "TGT", "tgtgccttt", "TGTNNN", NT,
    "TRBV1", "TRBV1*01", "TRBV1*00(1e5),", "TRBV2*00(12),TRBV1*00(12.0)", "TRAV29DV5", "(", ",,,", "\"", "'", "a\"b",
    "TRBJ1-1", "TRBJ1-1*01", "A" * 300, "\0",
]  # fmt: skip


@contextmanager
def small_blocks():
    """Text in blocks of few bytes, Parquet and AnnData in few rows."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("text.BLOCK_BYTES", 6000), ("reader.BATCH_ROWS", 3), ("reader.READ_BYTES", 500)):
            patch.setattr(f"hpcvdj.repertoires.readers.{name}", value)
        yield


def tables(name):
    """Rows of a table of a format: its own first row, then hostile ones."""
    file, text = TABLES[name]
    own = list(csv.reader(io.StringIO(text), delimiter="," if file.endswith(".csv") else "\t"))
    values = st.sampled_from([value for row in own for value in row] + WORDS) | st.text("ACGT", max_size=70)
    row = st.lists(values, min_size=len(own[0]), max_size=len(own[0]))
    return st.lists(row.filter(any), max_size=40).map(lambda rows: own[:2] + rows)


def require_accounted(reader, own):
    """Rows in their order, each with a junction, a reason or neither; ranges are slices of batches."""
    names = [*reader.columns, *[REASON] * reader.explains]
    table = pa.Table.from_batches(list(reader.batches(names)))
    assert len(table) == len(own)
    assert all(not column.null_count for column in table.columns)
    for place, name in enumerate(reader.given_columns):
        if name not in reader.translation._fields:
            assert table[name].to_pylist() == [row[place] for row in own]
    if reader.translation._numbered:
        assert table["sequence_id"].to_pylist() == [str(k + 1) for k in range(len(own))]
    if reader.explains:
        for reason, junction in zip(table[REASON].to_pylist(), table["junction"].to_pylist(), strict=True):
            assert not (reason and junction)
            assert not reason or str(Exclusion.from_text(reason))
    ranges = [range(k, min(k + 4, len(own))) for k in range(0, len(own), 4)]
    parts = [pa.Table.from_batches(list(part)) for _, part in reader.ranges(names, ranges)]
    assert pa.concat_tables(parts).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("name", TABLES)
@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_every_row_of_a_hostile_table_is_accounted_for(name, data, tmp_path_factory):
    rows = data.draw(tables(name))
    folder = tmp_path_factory.mktemp("hostile")
    file, _ = TABLES[name]
    path = folder / file
    own = rows if name == "olga" else rows[1:]
    with path.open("w", newline="") as stream:
        if file.endswith(".csv"):
            csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
        else:
            stream.writelines("\t".join(row) + "\n" for row in rows)
    opening = Opening(name)
    with small_blocks():
        reader = open_table(path, opening)
        require_accounted(reader, own)
        packed = folder / "a.parquet"
        pq.write_table(pa.table(dict(zip(reader.given_columns, zip(*own, strict=True), strict=True))), packed)
        require_accounted(open_table(packed, opening), own)
        if not any("\0" in value for row in own for value in row):
            reading = Reading(opening=opening)
            batches = reader.batches([*reading.columns, *[REASON] * reader.explains])
            junctions = read_junctions(batches, read_germline(GERMLINE), reading, [Table(path)])
            assert len(junctions) + len(junctions.excluded) == junctions.rows_read == len(own)


anndata = pytest.importorskip("anndata")
ak = pytest.importorskip("awkward")


def written_cells(path, cells, names=None):
    """AnnData with the chains of cells, as scirpy stores them."""
    adata = anndata.AnnData(np.zeros((len(cells), 1), np.float32))
    adata.obs_names = names or [f"cell{k}" for k in range(len(cells))]
    adata.obsm["airr"] = ak.Array(cells)
    adata.write_h5ad(path)
    return path


CHAIN = {
    "locus": "TRB", "v_call": "TRBV2", "d_call": None, "j_call": "TRBJ2-7", "junction": NT, "junction_aa": "CASSEQYF",
    "productive": True, "umi_count": 7,
}  # fmt: skip


def test_chains_of_cells(tmp_path):
    path = written_cells(
        tmp_path / "a.h5ad", [[CHAIN, CHAIN | {"productive": False}], [], [CHAIN]], ["A-1", "B-1", "C"]
    )
    reader = open_table(path)
    rows = pa.Table.from_batches(reader.batches()).to_pylist()
    assert [(row["sequence_id"], row["cell_id"]) for row in rows] == [("A-1_1", "A-1"), ("A-1_2", "A-1"), ("C_1", "C")]
    wanted = {name: "" if value is None else str(value) for name, value in CHAIN.items()} | {"productive": "T"}
    assert {name: rows[0][name] for name in wanted} == wanted
    assert [row["productive"] for row in rows] == ["T", "F", "T"]
    assert reader.known_rows == 3
    assert reader.recognised


def test_texts_of_cells_are_columns_of_their_chains(tmp_path):
    path = written_cells(tmp_path / "a.h5ad", [[CHAIN, CHAIN], [], [CHAIN]])
    cells = anndata.read_h5ad(path)
    cells.obs["sample"] = pd.Categorical(["s1", "s2", None])
    cells.obs["donor"] = ["a", "b", "c"]
    cells.obs["genes"] = [1, 2, 3]
    cells.obs["locus"] = "not that of the chains"
    cells.write_h5ad(path)
    reader = open_table(path)
    rows = pa.Table.from_batches(reader.batches()).to_pylist()
    found = [(row["sample"], row["donor"], row["locus"]) for row in rows]
    assert found == [("s1", "a", "TRB"), ("s1", "a", "TRB"), ("", "c", "TRB")]
    assert "genes" not in reader.columns
    assert reader.columns[:2] == ["sequence_id", "cell_id"]


def test_the_command_reads_texts_of_cells_without_warnings(tmp_path):
    """Its start-up hides pandas from pyarrow, which then took a column of pandas for a list."""
    path = written_cells(tmp_path / "a.h5ad", [[CHAIN, CHAIN], [], [CHAIN]])
    cells = anndata.read_h5ad(path)
    cells.obs["sample"] = pd.Categorical(["s1", None, "s3"])
    cells.write_h5ad(path)
    words = ["convert", path, "-o", tmp_path / "a.tsv"]
    done = subprocess.run(
        [sys.executable, "-W", "always", "-m", "hpcvdj", *map(str, words)], capture_output=True, text=True, check=True
    )
    assert "FutureWarning" not in done.stderr
    assert "s3" in (tmp_path / "a.tsv").read_text()


def test_chains_of_cells_in_mudata(tmp_path):
    """MuData begins with a line of text; h5py finds what follows it."""
    mudata = pytest.importorskip("mudata")
    path = written_cells(tmp_path / "a.h5ad", [[CHAIN, CHAIN], [], [CHAIN]])
    cells = anndata.read_h5ad(path)
    mudata.MuData({"gex": anndata.AnnData(np.zeros((3, 1), np.float32)), "airr": cells}).write(tmp_path / "a.h5mu")
    of_cells, of_all = open_table(path), open_table(tmp_path / "a.h5mu")
    assert of_all.recognised
    assert list(of_all.batches()) == list(of_cells.batches())


def test_chains_keep_ids_of_their_own(tmp_path):
    path = written_cells(tmp_path / "a.h5ad", [[CHAIN | {"sequence_id": "x"}, CHAIN | {"sequence_id": None}]])
    rows = pa.Table.from_batches(open_table(path).batches(["sequence_id"])).to_pylist()
    assert [row["sequence_id"] for row in rows] == ["x", "cell0_2"]


@settings(deadline=None, max_examples=8)
@given(cells=st.lists(st.lists(st.fixed_dictionaries({
    name: st.none() | st.sampled_from(WORDS) for name in ("v_call", "j_call", "junction")
}), max_size=4), min_size=1, max_size=12))  # fmt: skip
def test_every_chain_is_accounted_for(cells, tmp_path_factory):
    cells = [[CHAIN], *cells]
    path = written_cells(tmp_path_factory.mktemp("cells") / "a.h5ad", cells)
    with small_blocks():
        reader = open_table(path)
        made = [
            [f"cell{k}_{n + 1}", f"cell{k}", *(chain.get(name) or "" for name in reader.given_columns[2:])]
            for k, cell in enumerate(cells) for n, chain in enumerate(cell)
        ]  # fmt: skip
        flags = reader.given_columns.index("productive")
        made[0][flags] = "T"
        for name in ("umi_count", "duplicate_count"):
            made[0][reader.given_columns.index(name)] = "7"
        require_accounted(reader, made)


def test_other_hdf5_files_are_refused(tmp_path, paper_germline):
    import h5py

    from hpcvdj.counting.config import Config
    from tests.conftest import SMALL
    from tests.problems import count_to

    plain = tmp_path / "a.h5ad"
    anndata.AnnData(np.zeros((2, 1), np.float32)).write_h5ad(plain)
    count_to(tmp_path / "b.h5", SMALL, paper_germline, Config())
    broken = tmp_path / "c.h5ad"
    with h5py.File(broken, "w") as file:
        file["obsm/airr"] = 1
    cut = tmp_path / "d.h5ad"
    cut.write_bytes(plain.read_bytes()[:2000])
    for path, message in (
        (plain, 'without obsm\\["airr"\\]'),
        (tmp_path / "b.h5", "a result of hpcvdj, not a table"),
        (broken, "not a readable AnnData file"),
        (cut, "not a readable AnnData file"),
    ):
        with pytest.raises(Exception, match=message) as raised:
            list(open_table(path).batches())
        assert type(raised.value).__name__ == "InputError"
        assert "\n" not in str(raised.value)


def test_without_the_packages_the_message_says_which(tmp_path, monkeypatch):
    path = written_cells(tmp_path / "a.h5ad", [[CHAIN]])
    monkeypatch.setitem(__import__("sys").modules, "awkward", None)
    with pytest.raises(Exception, match=r"pip install 'hpcvdj\[anndata\]' \(in a checkout: pip install -e"):
        list(open_table(path).batches())


def test_every_reader_is_tried_here():
    assert set(choices(TableReader)) == {"text", "parquet", "anndata"}
