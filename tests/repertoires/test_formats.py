"""hpcvdj.repertoires.formats: tables of other programs, as AIRR fields."""

import gzip

import numpy as np
import pyarrow as pa
import pytest

from hpcvdj.errors import InputError
from hpcvdj.repertoires.formats.format import Opening
from hpcvdj.repertoires.readers import MemoryReader, open_table, text
from tests.rows import read_batches

VDJTOOLS = """count\tfreq\tcdr3nt\tcdr3aa\tv\td\tj
12\t0.8\tTGTGCCTTT\tCAF\tTRBV1\t.\tTRBJ1-1
3\t0.2\tTGTGCCATTT\tCA_F\tTRBV2\tTRBD1\tTRBJ1-2
"""


def rows_of(path, wanted=None, **opening):
    return pa.Table.from_batches(read_batches(path, wanted, Opening(**opening))).to_pylist()


@pytest.fixture
def vdjtools(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(VDJTOOLS)
    return path


def test_the_fields_come_first_then_the_other_columns(vdjtools):
    assert rows_of(vdjtools)[1] == {
        "sequence_id": "2", "v_call": "TRBV2", "d_call": "TRBD1", "j_call": "TRBJ1-2", "junction": "TGTGCCATTT",
        "junction_aa": "CA_F", "productive": "F", "locus": "TRB", "duplicate_count": "3", "count": "3", "freq": "0.2",
        "cdr3nt": "TGTGCCATTT", "cdr3aa": "CA_F", "v": "TRBV2", "d": "TRBD1", "j": "TRBJ1-2",
    }  # fmt: skip
    assert rows_of(vdjtools, ["d_call", "productive"])[0] == {"d_call": "", "productive": "T"}
    assert rows_of(vdjtools, ["sequence_id"]) == [{"sequence_id": "1"}, {"sequence_id": "2"}]


@pytest.mark.parametrize("header", ["junction_aa", "cdr3aa"])
def test_a_column_that_is_named_is_no_other_sequence(tmp_path, header):
    """Of AIRR or of another format, a column with CDR3s was read as junctions, too."""
    path = tmp_path / "a.tsv"
    path.write_text(VDJTOOLS.replace("cdr3aa", header))
    table = open_table(path, Opening(columns=(("cdr3_aa", header),)))
    assert {"junction", "junction_aa"} & {*table.columns} == ({"junction"} if header == "cdr3aa" else set())
    assert "cdr3_aa" in table.columns
    by_field = open_table(path, Opening(columns=(("cdr3_aa", "junction_aa"),)))
    assert {"cdr3_aa", "junction_aa"} & {*by_field.columns} == {"cdr3_aa"}, "as the message says"
    column = Opening(columns=(("cdr3_aa", header),))
    read, expected = ([batch.to_pylist() for batch in open_table(path, how).batches(["cdr3_aa"])]
                      for how in (by_field.opening, column))  # fmt: skip
    assert read == expected
    swapped = open_table(path, Opening(columns=(("v_call", "j"), ("j_call", "v"))))
    assert {"v_call", "j_call", "v", "j"} <= {*swapped.columns}


def test_columns_that_are_named_replace_those_of_the_format(vdjtools, tmp_path):
    named = rows_of(vdjtools, ["junction", "v_call"], columns=(("junction", "cdr3aa"),))
    assert named[0] == {"junction": "CAF", "v_call": "TRBV1"}
    (tmp_path / "s.csv").write_text("V gene;CDR3 (nt)\nTRBV1;TGT\n")
    named = Opening(columns=(("junction", "CDR3 (nt)"),))
    with pytest.raises(InputError, match=r"no column CDR3 \(nt\); its columns are separated by semicolons, .* tabs$"):
        open_table(tmp_path / "s.csv", named).columns  # noqa: B018
    with pytest.raises(InputError, match="no column nosuch; there are count, freq"):
        rows_of(vdjtools, columns=(("junction", "nosuch"),))


def test_rows_are_numbered_alike_in_every_range(vdjtools):
    reader = open_table(vdjtools)
    [(rows, part)] = reader.ranges(["sequence_id", "junction"], [range(1, 2)])
    assert rows == range(1, 2)
    assert pa.Table.from_batches(list(part))["sequence_id"].to_pylist() == ["2"]


def test_a_table_in_memory(vdjtools):
    table = pa.Table.from_batches(read_batches(vdjtools, ["count", "freq", "cdr3nt", "cdr3aa", "v", "d", "j"]))
    translated = pa.Table.from_batches(MemoryReader(table).batches(["sequence_id", "junction", "v_call"]))
    assert translated.to_pylist() == rows_of(vdjtools, ["sequence_id", "junction", "v_call"])


@pytest.mark.parametrize("packed", ["", "gzip", "zstd"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "# Exported from somewhere\n"])
def test_text_of_any_kind(tmp_path, packed, end, before):
    path = tmp_path / "a.txt"
    data = ("\ufeff" + before + VDJTOOLS).replace("\n", end).encode()
    if packed == "zstd":
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(data)
    else:
        path.write_bytes(gzip.compress(data) if packed else data)
    assert [row["junction"] for row in rows_of(path)] == ["TGTGCCTTT", "TGTGCCATTT"]


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_quoted_values(tmp_path, delimiter):
    path = tmp_path / "a.csv"
    row = delimiter.join(['"a, ""b"""', '"TRBV1,TRBV2"', '"TRBJ1-1"', '"TGT"'])
    path.write_text(delimiter.join(['"sequence_id"', '"v_call"', '"j_call"', '"junction"']) + "\n" + row + "\n")
    assert rows_of(path) == [{"sequence_id": 'a, "b"', "v_call": "TRBV1,TRBV2", "j_call": "TRBJ1-1", "junction": "TGT"}]
    path.write_text(path.read_text() + '"b"\n')
    with pytest.raises(InputError, match="line 3: 1 values for 4 columns"):
        rows_of(path)


def test_a_zstd_stream_that_is_cut(tmp_path):
    path = tmp_path / "a.tsv.zst"
    letters = np.random.default_rng(1).choice(list("ACGT"), (2000, 40))
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(("v_call\tj_call\tjunction\n" + "".join(f"a\tb\t{''.join(row)}\n" for row in letters)).encode())
    path.write_bytes(path.read_bytes()[:-9000])
    with pytest.raises(InputError, match="zstd stream is damaged"):
        rows_of(path)


def test_a_long_value_beside_quotes(tmp_path):
    """csv allows 131,072 letters of its own."""
    path = tmp_path / "a.csv"
    path.write_text(
        "sequence_id,v_call,j_call,junction,note\n" + "".join(f's{k},V,J,"{"A" * 150_000}",x\n' for k in range(20))
    )
    assert open_table(path).row_name(12) == "line 14"
    assert len(rows_of(path)) == 20
    path.write_text(path.read_text() + f'\ns,"{"A" * 150_000}"\n')
    with pytest.raises(InputError, match="line 23: 2 values for 5 columns"):
        rows_of(path)


def test_values_with_line_ends(tmp_path, monkeypatch):
    """They were read in small files, and an error in files of several blocks."""
    monkeypatch.setattr(text, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(text, "_HEADER_BYTES", 1 << 9)
    path, head = tmp_path / "a.csv", "sequence_id,v_call,j_call,junction,note\n"
    rows = [f's{k},TRBV1,TRBJ1-1,TGT,"a,\n""b"", {k}"\n' for k in range(200)]
    path.write_text(head + "".join(rows))
    assert [row["note"] for row in rows_of(path)] == [f'a,\n"b", {k}' for k in range(200)]
    (first,) = open_table(path).first_batches(["note"])
    assert 0 < first.num_rows < 20
    assert open_table(path).row_name(2) == "line 6"
    path.write_text(head + "".join(rows) + "x,y\n")
    with pytest.raises(InputError, match="line 402: 2 values for 5 columns"):
        rows_of(path)
    path.write_text(head + rows[0] + 's1,"TRBV1,TRBJ1-1,TGT,\n' + "s2,TRBV1,TRBJ1-1,TGT,\n" * 9_000)
    with pytest.raises(InputError, match="line 4: a quote that is not closed, or a carriage return"):
        rows_of(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (["x", '"5 prime', "y", "z"], 3),
        (["x", "y", '"z'], None),  # Nothing is lost: the last value of the last row.
        (['"x', '"y', "z"], 2),
        (["x", '"y', '', '"', "z"], None),  # One value of three lines: nothing tells that it is none.
        (['5" x', 'y "z"', "z"], None),
    ],
)  # fmt: skip
def test_a_quote_that_is_not_closed_swallows_no_rows(tmp_path, end, values, wrong):
    """Arrow and csv take all lines up to the end of the table for one value."""
    path, head = tmp_path / "a.csv", "sequence_id,v_call,j_call,junction,note"
    lines = [f"s{k},V,J,TGT,{value}" if value != '"' else '"' for k, value in enumerate(values)]
    path.write_bytes(end.join([head, *lines, ""]).encode())
    if wrong is None:
        rows = rows_of(path)
        assert len(rows) == len(values) - 2 * ('"' in values)
    else:
        for _ in range(2):
            with pytest.raises(InputError, match=rf"a\.csv, line {wrong}: a quote that is not closed"):
                rows_of(path)
            path.write_bytes(path.read_bytes().rstrip(b"\r\n"))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("blank", [0, 3])
def test_quotes_are_not_looked_for_where_no_row_has_several_lines(tmp_path, monkeypatch, end, blank):
    """To look at each row takes ten times as long as to read it."""
    monkeypatch.setattr(text, "BLOCK_BYTES", 1 << 10)

    def looking(self):
        raise AssertionError

    monkeypatch.setattr(text.TextReader, "_require_closed_quotes", looking)
    path = tmp_path / "a.csv"
    rows = [f's{k},TRBV1,TRBJ1-1,TGT,"a, {k}"{end}{end * (k % 7 == 0) * (blank > 0)}' for k in range(900)]
    path.write_bytes(f"sequence_id,v_call,j_call,junction,note{end}{''.join(rows)}{end * blank}".encode())
    assert len(rows_of(path)) == 900
    path.write_bytes(path.read_bytes().rstrip())
    assert len(rows_of(path)) == 900


def test_values_with_line_ends_between_tabs(tmp_path):
    path, head = tmp_path / "a.tsv", '"v_call"\tj_call\tjunction\tnote\n'
    path.write_text(f'{head}V\tJ\tTGT\t"a,\n""b"",\tc"\nV\tJ\tTGT\tx\n')
    assert [row["note"] for row in rows_of(path)] == ['a,\n"b",\tc', "x"]
    path.write_text(f'{head}V\tJ\tTGT\t"a,\nV\tJ\tTGT\t"b"\n')
    with pytest.raises(InputError, match="line 2: a quote that is not closed"):
        rows_of(path)


def test_quotes_of_spreadsheets(tmp_path):
    """Excel's text with tabs has quotes around values with commas, not around names of columns."""
    path = tmp_path / "a.tsv"
    path.write_text(
        'v_call\tj_call\tjunction\t5" note\n"TRBV6-2*01,TRBV6-3*01"\tTRBJ1-1\tTGT\t"a ""b"""\nTRBV1\t"\tTGT\t"5\n'
    )
    rows = rows_of(path)
    assert [row["v_call"] for row in rows] == ["TRBV6-2*01,TRBV6-3*01", "TRBV1"]
    assert [row["j_call"] for row in rows] == ["TRBJ1-1", '"']
    assert [row['5" note'] for row in rows] == ['a "b"', '"5']


@pytest.mark.parametrize("mark", ["# ", "#", "# made by x, y\n#", "# fields: id,v_call,j_call,junction\n"])
@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_a_header_that_is_a_comment(tmp_path, mark, delimiter):
    """The first row was the header, or the ids were those of no column."""
    names, row = ["sequence_id", "v_call", "j_call", "junction"], ["a", "TRBV1", "TRBJ1-1", "TGT"]
    path = tmp_path / "a.tsv"
    path.write_text(f"{mark}{delimiter.join(names)}\n{delimiter.join(row)}\n")
    assert rows_of(path) == [dict(zip(names, row, strict=True))]


def test_values_that_begin_and_end_with_a_quote_but_are_not_quoted(tmp_path):
    """Two ids became one."""
    path, ids = tmp_path / "a.tsv", ['"a"/"b"', 'a"/"b', '"5" and 6"']
    path.write_text("sequence_id\tv_call\tj_call\tjunction\n" + "".join(f"{name}\tV\tJ\tTGT\n" for name in ids))
    assert [row["sequence_id"] for row in rows_of(path)] == ids


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"BZh91AY&SY", "packed by bzip2; unpack it first"),
        (b"\xfd7zXZ\0\0", "packed by xz; unpack it first"),
        ("v_call\tj_call\tjunction\n".encode("utf-16-le"), "a binary file, or text in UTF-16"),
    ],
)
def test_files_that_are_no_text(tmp_path, data, message):
    (tmp_path / "a.tsv").write_bytes(data)
    with pytest.raises(InputError, match=message):
        rows_of(tmp_path / "a.tsv")


@pytest.mark.parametrize("comment", ["# sequence_id\tv_call\tj_call\tjunction", "# v_call,j_call are fields"])
def test_a_comment_before_the_header_that_names_fields(tmp_path, comment):
    """It was taken for the header, and the header for a row."""
    path = tmp_path / "a.tsv"
    path.write_text(f"{comment}\nsequence_id\tv_call\tj_call\tjunction\na\tTRBV1\tTRBJ1-1\tTGTTTT\n")
    (batch,) = open_table(path).batches(["sequence_id", "junction"])
    assert batch.to_pylist() == [{"sequence_id": "a", "junction": "TGTTTT"}]


def test_a_commented_header_may_begin_with_any_field(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("# cell_id\tsequence_id\tv_call\tj_call\tjunction\nc\ta\tTRBV1\tTRBJ1-1\tTGTTTT\n")
    (batch,) = open_table(path).batches(["sequence_id", "junction"])
    assert batch.to_pylist() == [{"sequence_id": "a", "junction": "TGTTTT"}]


def test_many_lines_before_the_header(tmp_path):
    path = tmp_path / "a.tsv"
    for lines in (100, 101):
        path.write_text("".join(f"# {k}\n" for k in range(lines)) + "v_call\tj_call\tjunction\nV\tJ\tTGT\n")
        if lines == 100:
            assert [row["junction"] for row in rows_of(path)] == ["TGT"]
        else:
            with pytest.raises(InputError):
                rows_of(path)
