"""hpcvdj.repertoires.table: unreadable files are refused in one line that names file, place and remedy."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hpcvdj.errors import InputError, choices
from hpcvdj.repertoires.writers import TableWriter, write_table, writer_of
from tests.rows import read_batches

COLUMNS = ["sequence_id", "v_call", "j_call", "junction"]
TEXT = "\t".join(COLUMNS) + "\n" + "".join(f"s{k}\tTRBV1\tTRBJ1-1\tTGTGCCTTT\n" for k in range(2000))


def binary():
    return b"\x7fELF" + bytes(range(256)) * 20


BAD = {
    "empty file": (b"", "the file is empty"),
    "only a blank line": (b"\n", "the file is empty"),
    "a blank line first": (b"\nsequence_id\tv_call\n", "line 1: is blank; a table starts with a line of column names"),
    "missing column": (TEXT.replace("v_call", "v_gene").encode(), "line 1: no column v_call"),
    "semicolons": (TEXT.replace("\t", ";").encode(), "separated by semicolons"),
    "truncated gzip": (gzip.compress(TEXT.encode())[:-400], "gzip stream is damaged"),
    "corrupt gzip": (gzip.compress(TEXT.encode())[:60] + b"\0" * 60, "gzip stream is damaged"),
    "gzip of nothing": (gzip.compress(b""), "the file is empty"),
    "binary file": (binary(), "a binary file, or text|not UTF-8"),
    "latin-1": (TEXT.encode().replace(b"s1500", b"s\xe9500"), "line 1502: not UTF-8"),
    "parquet magic only": (b"PAR1 and then nothing", "not a readable Parquet file"),
    "short row": (TEXT.replace("s1500\tTRBV1", "s1500").encode(), "line 1502: 3 values for 4 columns"),
    "long row": (TEXT.replace("s7\t", "s7\tx\t").encode(), "line 9: 5 values for 4 columns"),
    "repeated column": (TEXT.replace("j_call", "v_call", 1).encode(), "no column j_call"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD.keys())
def test_bad_files(tmp_path, content, message):
    path = tmp_path / "table.tsv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        list(read_batches(path, COLUMNS))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_duplicate_column(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("sequence_id\tv_call\tj_call\tjunction\tv_call\na\tb\tc\td\te\n")
    with pytest.raises(InputError, match="line 1: duplicate column v_call"):
        list(read_batches(path, COLUMNS))


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        list(read_batches(tmp_path / "none.tsv"))
    with pytest.raises(InputError, match="is a folder; name a file on disk"):
        list(read_batches(tmp_path))


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_header_only(tmp_path, end):
    path = tmp_path / "t.tsv"
    path.write_text("\t".join(COLUMNS) + end)
    assert sum(batch.num_rows for batch in read_batches(path, COLUMNS)) == 0


def test_byte_order_mark(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert next(read_batches(path, COLUMNS)).column("sequence_id")[0].as_py() == "s0"


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz", ".tsv.zst", ".parquet"])
def test_written_tables_read_back(tmp_path, suffix):
    batch = pa.RecordBatch.from_pydict({"a": ['x "y"', "", "z"], "b": ["1", "2", ""]})
    path = tmp_path / f"t{suffix}"
    assert write_table(path, iter([batch, batch.slice(1), batch.slice(3)]), overwrite=False) == 5
    rows = [row for part in read_batches(path) for row in part.to_pylist()]
    assert rows == batch.to_pylist() + batch.slice(1).to_pylist()


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz", ".tsv.zst", ".parquet"])
@pytest.mark.parametrize("parts", [1, 3])
def test_parts_are_joined(tmp_path, suffix, parts):
    """Rows in their order under one header, as of a table that was written at once."""
    table = pa.table({"a": [f"s{k}" for k in range(90)], "x": [k / 7 for k in range(90)]})
    batches = table.to_batches(max_chunksize=90 // parts)
    kind, whole, joined = writer_of(tmp_path / f"t{suffix}"), tmp_path / f"t{suffix}", tmp_path / f"joined{suffix}"
    write_table(whole, batches, overwrite=False)
    for number, batch in enumerate(batches):
        with kind(tmp_path / f"{number}", first=number == 0) as writer:
            writer.write(batch)
    kind.join([tmp_path / f"{number}" for number in range(parts)], joined, lambda: None)
    rows = [[row for part in read_batches(path) for row in part.to_pylist()] for path in (whole, joined)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 90
    if suffix == ".tsv":
        assert joined.read_bytes() == whole.read_bytes()


def test_a_folder_is_written(tmp_path):
    batch = pa.RecordBatch.from_pydict({"a": ["x", "y"], "b": [1, 2]})
    for overwrite in (False, True):
        assert write_table(tmp_path / "o.dataset", [batch, batch], overwrite=overwrite) == 4
    assert pq.read_table(tmp_path / "o.dataset").num_rows == 4
    with pytest.raises(InputError, match="exists already"):
        write_table(tmp_path / "o.dataset", [batch], overwrite=False)
    (tmp_path / "mine.dataset").mkdir()
    (tmp_path / "mine.dataset" / "a").touch()
    with pytest.raises(InputError, match="is not a folder that hpcvdj wrote"):
        write_table(tmp_path / "mine.dataset", [batch], overwrite=True)


def test_suffixes(tmp_path):
    names = ("a.tsv", "a.TSV.GZ", "a.tsv.zst", "b.parquet", "c.dataset")
    kinds = ["tsv", "gzip", "zstd", "parquet", "parquet folder"]
    assert [writer_of(tmp_path / name).name for name in names] == kinds == list(choices(TableWriter))
    with pytest.raises(InputError, match="must end in"):
        writer_of(tmp_path / "a.csv")


def test_dictionaries_only_for_columns_that_repeat(tmp_path):
    rows = 1000
    batch = pa.RecordBatch.from_pydict({
        "id": [f"s{k}" for k in range(rows)], "v_call": [f"TRBV{k % 20}" for k in range(rows)],
        "value": [k / 7 for k in range(rows)],
    })  # fmt: skip
    write_table(tmp_path / "t.parquet", [batch, batch], overwrite=False)
    group = pq.read_metadata(tmp_path / "t.parquet").row_group(0)
    columns = {group.column(k).path_in_schema: group.column(k).has_dictionary_page for k in range(3)}
    assert columns == {"id": False, "v_call": True, "value": False}
    assert pq.read_table(tmp_path / "t.parquet").to_batches()[0].slice(0, rows).equals(batch)


@pytest.mark.parametrize("ending", [".tsv", ".tsv.gz", ".tsv.zst"])
def test_many_rows_of_a_batch_are_written_in_pieces(tmp_path, monkeypatch, ending):
    batch = pa.RecordBatch.from_pydict({"a": list(range(10)), "b": [True, None] * 5})
    for name, rows in (("whole", 10), ("pieces", 3)):
        monkeypatch.setattr("hpcvdj.repertoires.readers.reader.BATCH_ROWS", rows)
        write_table(tmp_path / f"{name}{ending}", [batch], overwrite=False)
    read = [pa.Table.from_batches(read_batches(tmp_path / f"{name}{ending}")) for name in ("whole", "pieces")]
    assert read[0].num_rows == 10
    assert read[0].equals(read[1])
