"""hpcvdj.repertoires.inputs: which tables there are, their repertoires, and where results go."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.cohorts.settings import Naming
from hpcvdj.errors import InputError
from hpcvdj.repertoires.folders import tables_in
from hpcvdj.repertoires.inputs import Inputs, numbered, survey, tables_of, targets_of
from hpcvdj.repertoires.readers import open_table
from hpcvdj.repertoires.readers.parquet import ParquetReader
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.table import Table, repertoire_name, table_at, table_of
from hpcvdj.repertoires.writers import write_table
from tests.commands import hpcvdj_command
from tests.rows import read_batches


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a.tsv", "a"),
        ("a.b.tsv.gz", "a.b"),
        ("x/a.parquet", "a"),
        ("a.csv.gz", "a"),
        ("a.xls", "a.xls"),
        (".tsv", ".tsv"),
    ],
)
def test_names(file, name):
    assert repertoire_name(Path(file)) == name


def targets(paths, output):
    """Each file, and where its result goes."""
    return [(table.path, target) for (table,), target in targets_of(paths, tables_in(paths), output)]


def test_one_file_goes_to_a_file():
    assert targets([Path("a.tsv")], Path("o.h5")) == [(Path("a.tsv"), Path("o.h5"))]


def test_several_files_and_folders_go_to_a_folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("b.tsv.gz", "a.parquet", "notes.txt"):
        (folder / name).touch()
    out = tmp_path / "out"
    assert targets([folder], out) == [(folder / "a.parquet", out / "a.h5"), (folder / "b.tsv.gz", out / "b.h5")]
    assert targets([Path("c.tsv"), folder], out)[0] == (Path("c.tsv"), out / "c.h5")


def test_parts_of_a_folder_that_hpcvdj_wrote_have_one_result(tmp_path, write_parts):
    rows = pa.table({name: ["x"] * 5 for name in ("sequence_id", "v_call", "j_call", "junction")})
    (tmp_path / "in").mkdir()
    for name in ("d.dataset", "e"):
        write_parts(tmp_path / "in" / name, rows, 2)
    one, other, alone = tmp_path / "in" / "d.dataset", tmp_path / "in" / "e", tmp_path / "in" / "a.tsv"
    alone.touch()
    parts = sorted(one.glob("*.parquet"))
    ((tables, target),) = targets_of([one], tables_in([one]), tmp_path / "o.h5")
    assert (target, len(parts)) == (tmp_path / "o.h5", 3)
    assert [table.path for table in tables] == parts
    several = targets_of([one, other, alone], tables_in([one, other, alone]), tmp_path / "out")
    assert [(len(tables), target.name) for tables, target in several] == [(3, "d.h5"), (3, "e.h5"), (1, "a.h5")]
    with pytest.raises(InputError, match=r"in/e: its result would be .*e\.h5, like that of .*e\.tsv; rename one"):
        targets_of([tmp_path / "e.tsv", other], tables_in([tmp_path / "e.tsv", other]), tmp_path / "out")


def test_a_folder_with_other_text(tmp_path, caplog):
    """What may be a table or something else is one if a format recognises its columns."""
    (tmp_path / "metadata.txt").write_text("#file.name\tsample.id\na.txt\ta\n")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "a.txt").write_text("count\tfreq\tcdr3nt\tcdr3aa\tv\td\tj\n")
    (tmp_path / "b.csv").write_text("sequence_id,v_call,j_call,junction\n")
    assert [table.path for table in tables_in([tmp_path])] == [tmp_path / "a.txt", tmp_path / "b.csv"]
    assert "empty.csv, metadata.txt: not tables of junctions" in caplog.text


def test_folders_within_a_folder(tmp_path, caplog):
    """Those with tables are named, as people may take them for read; also a table that hpcvdj wrote as a folder."""
    for name in ("batch1", "figures", "empty", ".hidden"):
        (tmp_path / name).mkdir()
    (tmp_path / "batch1" / "b.tsv").touch()
    (tmp_path / ".hidden" / "c.tsv").touch()
    (tmp_path / "figures" / "f.png").touch()
    (tmp_path / "a.tsv").touch()
    assert [table.path.name for table in tables_in([tmp_path])] == ["a.tsv"]
    assert f"{tmp_path}: batch1: folders, which are read only if you name them, left out" in caplog.text


def test_files_that_are_not_named_like_tables(tmp_path, caplog):
    """Donors whose tables have another ending were left out without a word."""
    packed = [f"donor{k}.tsv.bz2" for k in range(9)]
    for name in ["a.tsv", *packed, "c.airr", "README", "a.tsv.json", "a.PNG", ".hidden", "notes.md"]:
        (tmp_path / name).touch()
    assert [table.path.name for table in tables_in([tmp_path])] == ["a.tsv"]
    names = ", ".join(["c.airr", *packed])
    assert (
        f"{tmp_path}: {names}: no table is read from files of such endings, left out; give *.parquet, *.tsv"
        in caplog.text
    )
    assert f"{tmp_path}: README: not tables of junctions, left out" in caplog.text
    assert len(caplog.records) == 2


def test_metadata_beside_the_tables_are_no_table(tmp_path, caplog):
    (tmp_path / "a.tsv").write_text("v_call\tj_call\tjunction\nV1\tJ1\tTGTGCCTTT\n")
    (tmp_path / "donors.tsv").write_text("donor\tbatch\na\t1\n")
    (tmp_path / "link.tsv").symlink_to(tmp_path / "nowhere")
    for metadata in (tmp_path / "donors.tsv", str(tmp_path / ".." / tmp_path.name / "donors.tsv")):
        opening = Naming(metadata=metadata, group="batch").opening()
        assert [table.path.name for table in tables_in([tmp_path], opening)] == ["a.tsv", "link.tsv"]
    assert not caplog.records
    # A file that users name is read.
    assert len(tables_in([tmp_path / "donors.tsv"], opening)) == 1
    in_memory = Naming(group={"a": "1"}).opening()
    missing = Naming(metadata=tmp_path / "none.tsv", group="batch").opening()
    assert len(tables_in([tmp_path], in_memory)) == len(tables_in([tmp_path], missing)) == 3


def test_names_in_capitals_and_hidden_files(tmp_path, caplog):
    table = "v_call\tj_call\tjunction\nV1\tJ1\tTGTGCCTTT\n"
    for name in ("a.tsv", "B.TSV", "C.Tsv", "D.CSV", "._a.tsv", ".b.txt", ".notes"):
        (tmp_path / name).write_text(table.replace("\t", ",") if "CSV" in name else table)
    (tmp_path / "E.TSV.GZ").write_bytes(gzip.compress(table.encode()))
    tables = tables_in([tmp_path])
    assert [(table.path.name, table.repertoire_id) for table in tables] == [
        ("B.TSV", "B"), ("C.Tsv", "C"), ("D.CSV", "D"), ("E.TSV.GZ", "E"), ("a.tsv", "a"),
    ]  # fmt: skip
    assert all(len(list(table.open().batches())) == 1 for table in tables)
    assert f"{tmp_path}: ._a.tsv, .b.txt: hidden files, left out" in caplog.text
    assert ".notes" not in caplog.text


def test_targets_that_are_refused(tmp_path):
    with pytest.raises(InputError, match="has no table"):
        targets([tmp_path], tmp_path / "out")
    with pytest.raises(InputError, match="like that of"):
        targets([Path("x/a.tsv"), Path("y/a.parquet")], tmp_path / "out")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="need an output folder"):
        targets([Path("a.tsv"), Path("b.tsv")], tmp_path / "file")
    with pytest.raises(InputError, match=r"o\.h5: the results of several repertoires go to a folder.*together=True"):
        targets([Path("a.tsv"), Path("b.tsv")], tmp_path / "o.h5")
    (tmp_path / "o.h5").mkdir()
    assert len(targets([Path("a.tsv"), Path("b.tsv")], tmp_path / "o.h5")) == 2, "it is a folder already"


def test_a_link_to_nowhere_is_not_left_out(tmp_path):
    folder = tmp_path / "in"
    (folder / "b.tsv").mkdir(parents=True)
    (folder / "a.tsv").symlink_to(tmp_path / "nowhere")
    assert targets([folder], tmp_path / "out") == [(folder / "a.tsv", tmp_path / "out" / "a.h5")]


def of_sizes(sizes):
    tables = [Table(Path(f"{k}.tsv"), str(k), str(k), 0, n, n, {str(k): n}) for k, n in enumerate(sizes)]
    return numbered(Inputs((), together=True), tables).tables


@pytest.mark.parametrize(
    ("repertoires", "found"),
    [
        (None, {"t": 5}),
        (["b", "a", "b", "a", "c"], {"b": 2, "a": 2, "c": 1}),
        (["b", "", "t", "", "b"], {"b": 2, "t": 3}),
    ],
)
def test_the_repertoires_of_a_table(tmp_path, monkeypatch, repertoires, found):
    columns = {name: [f"{name}{k}" for k in range(5)] for name in ("sequence_id", "v_call", "j_call", "junction")}
    columns |= {} if repertoires is None else {"repertoire_id": repertoires}
    table = pa.table(columns)
    lines = ["\t".join(columns), *("\t".join(row.values()) for row in table.to_pylist())]
    (tmp_path / "t.tsv").write_text("\n".join(lines) + "\n")
    pq.write_table(table, tmp_path / "t.parquet")
    read, batches = [], ParquetReader.batches
    monkeypatch.setattr(ParquetReader, "batches", lambda self, names: read.append(names) or batches(self, names))
    for name in ("t.tsv", "t.parquet"):
        inputs = tables_of([tmp_path / name], Reading())
        surveyed = survey(inputs, inputs.tables[0])
        assert list(surveyed.repertoires.items()) == list(found.items())
        assert surveyed.rows == 5
        assert surveyed.unnamed == (5 if repertoires is None else repertoires.count(""))
    # Parquet says how many rows it has.
    assert read == ([] if repertoires is None else [["repertoire_id"]])


@pytest.mark.slow
def test_a_folder_of_parts_is_one_sample(tmp_path, write_parts):
    """pgen and enrich took each part alone."""
    drawn = hpcvdj.generate("human_trb_m15", 4_000, seed=8, productive=True, backend="cpu")
    write_table(tmp_path / "d.tsv", drawn.to_batches(), overwrite=False)
    write_parts(tmp_path / "d.dataset", drawn, 1_500)
    for name in ("d.tsv", "d.dataset"):
        for command in ("enrich", "pgen"):
            words = [command, tmp_path / name, "-m", "human_trb_m15"]
            hpcvdj_command(*words, "-o", tmp_path / f"{command}_{name}.tsv")
    assert (tmp_path / "enrich_d.tsv.tsv").read_bytes() == (tmp_path / "enrich_d.dataset.tsv").read_bytes()
    names = ["sequence_id", "pgen_nt", "pgen_aa"]
    one, parts = (
        [
            [row[name] for name in names]
            for batch in read_batches(tmp_path / f"pgen_{name}.tsv")
            for row in batch.to_pylist()
        ]
        for name in ("d.tsv", "d.dataset")
    )
    assert len(parts) == 4_000
    assert parts == one


def test_ranks_share_files_by_their_bytes(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("v_call\tj_call\tjunction\n" * 3)
    assert table_at(path).bytes == path.stat().st_size
    assert table_of(pa.table({"junction": ["TGT"]})).bytes == 0


@pytest.mark.parametrize("group_rows", [2, 1 << 20])
def test_a_parquet_file_that_loses_rows_while_it_is_read(tmp_path, group_rows, monkeypatch):
    """Large and small row groups; the file is replaced after its rows were counted."""
    monkeypatch.setattr("hpcvdj.repertoires.readers.reader.BATCH_ROWS", 4)
    path, table = tmp_path / "t.parquet", pa.table({"junction": ["TGT"] * 8})
    pq.write_table(table, path, row_group_size=group_rows)
    reader = open_table(path)
    assert reader.known_rows == 8
    assert [batch.num_rows for batch in reader.batches(["junction"])] == [4, 4]
    pq.write_table(table.slice(0, 7), path, row_group_size=group_rows)
    with pytest.raises(InputError, match=r"t\.parquet: the Parquet file is damaged \(it has fewer rows than it says\)"):
        list(reader.batches(["junction"]))


@pytest.mark.parametrize("group_rows", [2, 1 << 20])
def test_page_checksums_of_parquet_are_checked(tmp_path, group_rows):
    """If a file has them: one letter of a junction is another."""
    path, table = tmp_path / "t.parquet", pa.table({"junction": ["TGTGCCAGCAGCTTT", "TGTGCCAGCGGCTTT"] * 4})
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    for checked in (False, True):
        pq.write_table(table, path, row_group_size=group_rows, write_page_checksum=checked, **plain)
        content = path.read_bytes()
        place = content.index(b"AGCAGC")
        path.write_bytes(content[:place] + b"T" + content[place + 1 :])
        batches = open_table(path).batches(["junction"])
        if checked:
            with pytest.raises(InputError, match=r"t\.parquet: the Parquet file is damaged \(.*CRC"):
                list(batches)
        else:
            assert next(batches)["junction"][0].as_py() == "TGTGCCTGCAGCTTT"


def test_a_column_that_is_no_text_is_named_with_its_file(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"junction": [b"TGTTTT"]}), path)
    with pytest.raises(InputError, match=r"t\.parquet: the column junction is of type binary, no text"):
        list(open_table(path).batches(["junction"]))
