"""hpcvdj.repertoires.filtering: what stays is byte by byte what it was."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hpcvdj.errors import InputError
from hpcvdj.repertoires.filtering import write_without
from hpcvdj.repertoires.inputs import Inputs, survey
from hpcvdj.repertoires.table import table_at
from tests.rows import read_batches

HEADER = "sequence_id\tv_call\tj_call\tjunction\tnote"
ROWS = [f"s{k}\tTRBV1\tTRBJ1-1\tTGTGCCTTT\tß {k}\t"[:-1] for k in range(6)]


def surveyed(path):
    return survey(Inputs.of_file(path), table_at(path))


def texts(end="\n", last="\n", between=""):
    return (HEADER + end + between + end.join(ROWS[:3]) + end + between + end.join(ROWS[3:]) + last).encode()


@pytest.mark.parametrize(
    "data", [texts(), texts("\r\n", "\r\n"), texts("\r", "\r"), texts(last=""), texts(between="\n"),
             b"\xef\xbb\xbf" + texts()],
    ids=["plain", "windows", "old macintosh", "no last line end", "empty lines", "byte order mark"],
)  # fmt: skip
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_text(tmp_path, data, packed):
    path, target = tmp_path / f"t.tsv{packed}", tmp_path / f"o.tsv{packed}"
    pack = {"": lambda own: own, ".gz": gzip.compress, ".zst": lambda own: pa.compress(own, "zstd", asbytes=True)}[
        packed
    ]
    path.write_bytes(pack(data))
    table = surveyed(path)
    write_without(table, np.array([], dtype=np.int64), target)
    unpack = {
        "": lambda own: own, ".gz": gzip.decompress,
        ".zst": lambda own: pa.CompressedInputStream(pa.BufferReader(own), "zstd").read(),
    }[packed]  # fmt: skip
    assert unpack(target.read_bytes()) == data
    write_without(table, np.array([1, 5]), target)
    (kept,) = [batch.column(0).to_pylist() for batch in read_batches(target, ["sequence_id"])]
    assert kept == ["s0", "s2", "s3", "s4"]
    assert set(unpack(target.read_bytes()).splitlines()) == set(data.splitlines()) - {
        ROWS[1].encode(),
        ROWS[5].encode(),
    }


def test_parquet(tmp_path):
    own = pa.table({"sequence_id": ["a", "b", "c"], "v_call": ["x"] * 3, "j_call": ["y"] * 3, "junction": ["TGT"] * 3,
                    "numbers": pa.array([1, None, 3], pa.int16()), "flag": [True, None, False]})  # fmt: skip
    pq.write_table(own, tmp_path / "t.parquet", row_group_size=2)
    write_without(surveyed(tmp_path / "t.parquet"), np.array([1]), tmp_path / "o.parquet")
    assert pq.read_table(tmp_path / "o.parquet").equals(own.take([0, 2]))


def test_a_table_that_changed(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_bytes(texts())
    table = surveyed(path)
    for data in (texts() + ROWS[0].encode() + b"\n", texts()[:-20]):
        path.write_bytes(data)
        with pytest.raises(InputError, match="changed while it was read"):
            write_without(table, np.array([1]), tmp_path / "o.tsv")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_of_several_lines(tmp_path, end):
    path, target = tmp_path / "t.csv", tmp_path / "o.csv"
    head = "sequence_id,v_call,j_call,junction,note"
    lines = [f's{k},TRBV1,TRBJ1-1,TGTGCCTTT,"a ""{k}"",\n\nb"{end}' for k in range(3)]
    path.write_text(head + end + "".join(lines), newline="")
    write_without(surveyed(path), np.array([1]), target)
    assert target.read_text() == (head + end + lines[0] + lines[2]).replace("\r\n", "\n")
