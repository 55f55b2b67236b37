"""hpcvdj convert: tables of every format as AIRR tables, for the AIRR library and for hpcvdj."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.repertoires import table as tables_module
from hpcvdj.repertoires.folders import tables_in
from hpcvdj.repertoires.formats.format import BY_HEADER, REASON, REQUIRED, Opening
from hpcvdj.repertoires.inputs import tables_of, targets_of
from hpcvdj.repertoires.readers import open_table
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.sequence_fields import first_fields
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from hpcvdj.storage.folders import atomic_folder, exclusive_folder
from hpcvdj.values import convert as conversion
from tests.commands import hpcvdj_command
from tests.repertoires.program_tables import NT, TABLES, written


def convert(paths, target, opening=BY_HEADER, overwrite=False):
    return conversion.convert(paths, opening, Run().to(target, overwrite=overwrite))


@pytest.fixture(scope="module")
def airr():
    """The AIRR library, which takes most of a second to import."""
    import airr
    import airr.schema

    return airr


def rows_of(path, opening=None):
    reader = open_table(path, opening or Opening())
    return pa.Table.from_batches(reader.batches([*reader.columns, *[REASON] * reader.explains])).to_pylist()


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz", ".parquet"])
@pytest.mark.parametrize("name", TABLES)
def test_every_format_makes_an_airr_table(airr, name, suffix, tmp_path):
    path, target = written(tmp_path, name), tmp_path / f"out{suffix}"
    source = rows_of(path, Opening(name))
    done = convert([path], target, Opening(name))
    assert done.rows == len(source)
    assert done.reasons.total() == sum(not row["junction"] for row in source)
    reader = open_table(target)
    # A table with AIRR fields is an AIRR table, whatever columns it keeps.
    assert not reader.translation._fields
    assert tuple(reader.columns[: len(REQUIRED)]) == REQUIRED
    again = rows_of(target)
    known = [{field: value for field, value in row.items() if field != REASON} for row in source]
    assert [{field: row[field] for field in kept} for row, kept in zip(again, known, strict=True)] == known
    if suffix == ".tsv":
        assert airr.validate_rearrangement(str(target))


@pytest.mark.parametrize("name", TABLES)
def test_no_column_is_called_as_an_airr_field_without_being_one(airr, name, tmp_path):
    reader = open_table(written(tmp_path, name), Opening(name))
    if not name.startswith(("airr", "mixcr_airr")):
        fields = set(airr.schema.RearrangementSchema.properties)
        assert fields & set(reader.given_columns) <= set(reader.translation._fields)


def test_several_tables_have_their_repertoires(airr, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "a.txt").write_text(TABLES["vdjtools"][1])
    (folder / "b.csv").write_text(TABLES["10x"][1])
    (folder / "notes.txt").write_text("no table\n")
    out, err = hpcvdj_command("convert", folder, "-o", tmp_path / "out.tsv")
    assert "tables     2\n" in out
    assert "rows       8 read, 4 without a junction:\n" in out
    reasons = "no junction", "contig is not of a cell", "contig of low confidence", "contig of several chains"
    for reason in reasons:
        assert f"  1  {reason}\n" in out
    assert err.count("notes.txt: not tables of junctions, left out") == 1
    assert err.count("a.txt: read as vdjtools clonotypes") == 1
    assert airr.validate_rearrangement(str(tmp_path / "out.tsv"))
    rows = rows_of(tmp_path / "out.tsv")
    assert [row["repertoire_id"] for row in rows] == ["a"] * 2 + ["b"] * 6
    assert rows[0]["cell_id"] == rows[-1]["cdr3nt"] == ""


def test_ids_of_several_tables_are_unique(tmp_path):
    """Numbers of rows and clones repeat in other tables; counting one table excludes ids that repeat."""
    (tmp_path / "a.txt").write_text(TABLES["vdjtools"][1])
    (tmp_path / "b.tsv").write_text(TABLES["mixcr"][1])
    (tmp_path / "c.tsv").write_text(TABLES["airr"][1])
    assert hpcvdj.convert([tmp_path], tmp_path / "out.tsv").tables == 3
    ids = [row["sequence_id"] for row in rows_of(tmp_path / "out.tsv")]
    assert ids == ["a.1", "a.2", "b.0_c1", "b.0_c2", "b.1_c2", "s1", "s2"]
    (tmp_path / "out.tsv").unlink()
    (tmp_path / "d.tsv").write_text(TABLES["airr"][1])
    hpcvdj.convert(tmp_path, tmp_path / "out.parquet")
    ids = [row["sequence_id"] for row in rows_of(tmp_path / "out.parquet")]
    assert ids[5:] == ["c.s1", "c.s2", "d.s1", "d.s2"]
    convert([tmp_path / "b.tsv"], tmp_path / "one.tsv")
    assert rows_of(tmp_path / "one.tsv")[0]["sequence_id"] == "0_c1"


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    """Its files are of one repertoire, which has the name of the folder."""
    one, row = tmp_path / "one.dataset", {"v_call": ["TRBV1"], "j_call": ["TRBJ1-1"], "junction": [NT]}
    with exclusive_folder(one, overwrite=False), atomic_folder(one, overwrite=False) as folder:
        for number in range(3):
            pq.write_table(pa.table(row), folder / f"part-00000{number}.parquet")
    inputs = surveyed(tables_of([one], Reading()), Run())
    assert inputs.repertoires == ["one"]
    convert([one], tmp_path / "c.tsv")
    assert [row["repertoire_id"] for row in rows_of(tmp_path / "c.tsv")] == ["one"] * 3
    numbers = [f"one.part-00000{number}.1" for number in range(3)]
    assert [row["sequence_id"] for row in rows_of(tmp_path / "c.tsv")] == numbers
    assert hpcvdj.read_table(one)["repertoire_id"].to_pylist() == ["one"] * 3
    # Files that somebody else put into a folder are tables of their own.
    (one / ".hpcvdj.json").unlink()
    assert len(surveyed(tables_of([one], Reading()), Run()).repertoires) == 3


def test_ids_of_folders_have_the_names_of_these(tmp_path, write_parts):
    """Both began with part-000000, which was refused, and a part cannot be renamed."""
    for name in ("a", "b"):
        rows = pa.table(
            {"sequence_id": ["x", "y", "z"], **{field: ["c"] * 3 for field in ("v_call", "j_call", "junction")}}
        )
        write_parts(tmp_path / f"{name}.dataset", rows, 2)
    convert([tmp_path / "a.dataset", tmp_path / "b.dataset"], tmp_path / "out.tsv")
    ids = [row["sequence_id"] for row in rows_of(tmp_path / "out.tsv")]
    assert ids == ["a.x", "a.y", "a.z", "b.x", "b.y", "b.z"]
    for again in (tmp_path / "a.dataset", tmp_path / "other" / "a.dataset"):
        if not again.exists():
            shutil.copytree(tmp_path / "a.dataset", again)
        with pytest.raises(InputError, match=r"a\.dataset: its rows would have the ids a\.1 .*a\.dataset; name each"):
            convert([tmp_path / "a.dataset", again], tmp_path / "new.tsv")


def test_missing_ids_stay_missing(tmp_path):
    """They repeat none of another table, and do not become an id that all of them have."""
    head = "sequence_id\tv_call\tj_call\tjunction\n"
    for name, ids in (("a", ["", "x"]), ("b", ["NA", "y"]), ("c", ["null", "x"])):
        rows = "".join(f"{own}\tTRBV1*01\tTRBJ1-1*01\t{NT}\n" for own in ids)
        (tmp_path / f"{name}.tsv").write_text(head + rows)
    for names, expected in (("ab", ["", "x", "NA", "y"]), ("abc", ["", "a.x", "", "b.y", "", "c.x"])):
        target = tmp_path / f"{names}.parquet"
        convert([tmp_path / f"{name}.tsv" for name in names], target)
        assert [row["sequence_id"] for row in rows_of(target)] == expected


def test_ids_of_tables_with_one_name_would_be_the_same(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.txt").write_text(TABLES["vdjtools"][1])
    with pytest.raises(InputError, match=r"b/t.txt: its rows would have the ids t\.1 .*a/t.txt; name each"):
        convert([tmp_path / "a", tmp_path / "b"], tmp_path / "out.tsv")
    (tmp_path / "c.tsv").write_text(TABLES["airr"][1])
    with pytest.raises(InputError, match="name each table once"):
        convert([tmp_path / "c.tsv"] * 2, tmp_path / "out.tsv")


def test_an_airr_table_without_ids_has_numbers(tmp_path):
    (tmp_path / "a.tsv").write_text(f"v_call\tj_call\tjunction\nTRBV1\tTRBJ1-1\t{NT}\n")
    convert([tmp_path / "a.tsv"], tmp_path / "out.tsv")
    assert rows_of(tmp_path / "out.tsv")[0]["sequence_id"] == "1"


def test_all_bad_tables_are_named(tmp_path):
    (tmp_path / "a.tsv").write_text(TABLES["airr"][1])
    (tmp_path / "b.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "c.tsv").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match=r"2 of 3 tables cannot be read: .*b\.tsv, line 1: no column .*c\.tsv: a zip"):
        convert([tmp_path], tmp_path / "out.tsv")
    assert not (tmp_path / "out.tsv").exists()


def test_reasons_are_grouped(tmp_path):
    lines = TABLES["adaptive"][1].splitlines()
    bad = [lines[1].replace("TGTGCCAGC", codon + "GCCAGC").replace("CASSEQYF", "") for codon in ("TAT", "TAC", "TAA")]
    (tmp_path / "a.tsv").write_text("\n".join([lines[0], *bad, ""]))
    out, _ = hpcvdj_command("convert", tmp_path / "a.tsv", "-o", tmp_path / "out.tsv")
    assert "         3  junction that does not begin with the codon of Cys 104\n" in out
    assert "                   1  TAC\n" in out


def test_a_relative_path_is_named_once(tmp_path):
    (tmp_path / "once.txt").write_text(TABLES["vdjtools"][1])
    _, err = hpcvdj_command("count", "once.txt", "-g", "human_trb", "-o", "o.tsv", cwd=tmp_path)
    assert err.count("read as vdjtools") == 1


def test_files_that_are_left_out_are_named_once_in_a_run(tmp_path, caplog):
    (tmp_path / "a.txt").write_text(TABLES["vdjtools"][1])
    (tmp_path / "notes.txt").write_text("no table\n")
    # What hpcvdj pgen asks of a folder before it computes.
    tables = tables_in([tmp_path])
    assert "junction" in first_fields(tables)
    assert [table.path.name for (table,), _ in targets_of([tmp_path], tables, tmp_path / "out")] == ["a.txt"]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [f"{tmp_path}: notes.txt: not tables of junctions, left out"]


def test_named_columns_and_tables_without_rows(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("gene_v\tgene_j\tseq\n")
    columns = (("v_call", "gene_v"), ("j_call", "gene_j"), ("junction", "seq"))
    assert convert([path], tmp_path / "out.tsv", Opening(columns=columns)).rows == 0
    header = "\t".join([*REQUIRED, "gene_v", "gene_j", "seq"])
    assert (tmp_path / "out.tsv").read_text() == header + "\n"
    path.write_text(f"gene_v\tgene_j\tseq\nTRBV1\tTRBJ1-1\t{NT}\n")
    convert([path], tmp_path / "out.tsv", Opening(columns=columns), overwrite=True)
    assert rows_of(tmp_path / "out.tsv")[0]["junction"] == NT


def test_nothing_is_written_for_what_is_no_table(tmp_path):
    path, target = tmp_path / "a.tsv", tmp_path / "out.tsv"
    path.write_text("a\tb\n1\t2\n")
    with pytest.raises(InputError, match=r"no column v_call, j_call, junction; hpcvdj\.read_table: columns="):
        convert([path], target)
    path.write_text(f"v_call\tj_call\tjunction\nTRBV1\tTRBJ1-1\t{NT}\nTRBV1\n")
    with pytest.raises(InputError, match="line 3: 1 values for 3 columns"):
        convert([path], target)
    with pytest.raises(InputError, match=r"\.tsv, \.tsv\.gz, \.tsv\.zst, \.parquet or \.dataset"):
        convert([path], tmp_path / "out.csv")
    with pytest.raises(InputError):
        convert([tmp_path], path, overwrite=True)
    assert not target.exists()
    assert path.read_text().startswith("v_call")


@pytest.mark.slow
@pytest.mark.olga
def test_a_table_that_olga_writes(airr, tmp_path):
    import subprocess
    import sys

    path = tmp_path / "olga.tsv"
    program = "from olga.generate_sequences import main; main()"
    command = [sys.executable, "-c", program, "--humanTRB", "-n", "200", "--seed", "1", "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    source = [line.split("\t") for line in path.read_text().splitlines()]
    convert([path], tmp_path / "out.tsv")
    assert airr.validate_rearrangement(str(tmp_path / "out.tsv"))
    fields = "junction", "junction_aa", "v_call", "j_call"
    assert [[row[field] for field in fields] for row in rows_of(tmp_path / "out.tsv")] == source
    assert len(source) == 200


def test_an_airr_table_that_the_airr_library_writes(airr, tmp_path):
    path = tmp_path / "a.tsv"
    row = {"sequence_id": "s1", "v_call": "TRBV1*01", "j_call": "TRBJ1-1*01", "junction": NT, "productive": True,
           "rev_comp": False, "duplicate_count": 4}  # fmt: skip
    with path.open("w") as stream:
        writer = airr.io.RearrangementWriter(stream, fields=["duplicate_count"])
        writer.write(row)
        writer.close()
    convert([path], tmp_path / "out.parquet")
    read = rows_of(tmp_path / "out.parquet")[0]
    assert (read["junction"], read["productive"], read["rev_comp"], read["duplicate_count"]) == (NT, "T", "F", "4")


def test_a_table_is_opened_once_whatever_columns_it_has(tmp_path, monkeypatch):
    opened = []
    right = tables_module.open_table
    monkeypatch.setattr(tables_module, "open_table", lambda path, opening: opened.append(path) or right(path, opening))
    times = []
    for further in (1, 40):
        names = [f"x{k}" for k in range(further)]
        (tmp_path / "t.tsv").write_text(
            "\t".join(["v_call", "j_call", "junction", *names])
            + "\n"
            + "\t".join(["TRBV1", "TRBJ1-1", "TGTTTT", *names])
            + "\n"
        )
        convert([tmp_path / "t.tsv"], tmp_path / f"o{further}.tsv")
        times.append(len(opened))
        opened.clear()
    assert times == [1, 1]
