"""Hostile tables, sequences and germline files: one line on stderr, little memory, and nothing under the target."""

import gzip
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import GERMLINE, ROOT, SMALL
from tests.loci import exhaustive_but
from tests.robustness.processes import all_refused, count, ended, nothing_left, refused, table_of

pytestmark = pytest.mark.slow

HEADER = "sequence_id\tv_call\tj_call\tjunction\n"
ROW = "TRBV1*01\tTRBJ1-1*01\tTGTACTTGTTTT"


@pytest.mark.parametrize(("column", "size"), [("sequence_id", 15_000_000), ("v_call", 2_000_000), ("j_call", 5000)])
def test_a_text_that_is_too_long(tmp_path, column, size):
    long = {"sequence_id": "x", "v_call": "TRBV1*01", "j_call": "TRBJ1-1*01", "junction": "TGTACTTGTTTT"}
    rows = [dict(long, sequence_id=f"s{k}") for k in range(401)]
    rows[7][column] = "y" * size
    table = tmp_path / "t.tsv"
    table.write_text(HEADER + "".join("\t".join(row[name] for name in long) + "\n" for row in rows))
    line = count(table, tmp_path / "o.h5")
    assert f"t.tsv, data row 8: {column} of {size:,} bytes, at most 4,096 can be stored" in line
    assert nothing_left(tmp_path, "t.tsv")


def bomb(path, head, middle, size):
    """A gzip file that unpacks to `head` and `size` bytes: members one after another are one stream."""
    block = middle * (1 << 26)
    with open(path, "wb") as stream:
        stream.write(gzip.compress(head))
        member = gzip.compress(block, 9)
        for _ in range(size // len(block)):
            stream.write(member)


GIGABYTES = 5 << 30


def test_a_germline_bomb(tmp_path):
    bomb(tmp_path / "g.tsv.gz", b"locus\t", b"A", GIGABYTES)
    line = refused("count", SMALL, "-g", tmp_path / "g.tsv.gz", "-o", tmp_path / "o.h5")
    assert "g.tsv.gz: not a readable germline table (more than 64 MiB once it is unpacked" in line


@pytest.mark.parametrize(("name", "head"), [("s.json.gz", b'{"GermlineSet": "'), ("s.fasta.gz", b">a\n")])
def test_a_source_bomb(tmp_path, name, head):
    bomb(tmp_path / name, head, b"A", GIGABYTES)
    line = refused("germline", "import", tmp_path / name, "-o", tmp_path / "g.tsv")
    assert f"{name}: not a readable source file (more than 64 MiB once it is unpacked" in line


def test_a_fasta_bomb(tmp_path):
    bomb(tmp_path / "s.fasta.gz", b">a\n", b"A", GIGABYTES)
    line = refused("motifs", "compare", tmp_path / "s.fasta.gz", "-o", tmp_path / "o.h5", "-k", "8", "-d", "1")
    assert "s.fasta.gz: not a readable FASTA file (more than" in line


def test_a_line_bomb(tmp_path):
    bomb(tmp_path / "t.tsv.gz", HEADER.encode(), b"A", GIGABYTES)
    assert "line 2: longer than 16 MiB; is this a text table?" in count(tmp_path / "t.tsv.gz", tmp_path / "o.h5")
    bomb(tmp_path / "h.tsv.gz", b"sequence_id", b"A", GIGABYTES)
    assert "line 1: longer than 1,024 KiB" in count(tmp_path / "h.tsv.gz", tmp_path / "o.h5")


def raw_text(*values):
    """Text that is not checked: offsets and bytes as they come."""
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(b"".join(values)))


def test_a_nul_in_an_id(tmp_path):
    pq.write_table(table_of(sequence_id=["a", "a\0"]), tmp_path / "t.parquet")
    assert "t.parquet, data row 2: sequence_id has a NUL byte" in count(tmp_path / "t.parquet", tmp_path / "o.h5")


@pytest.mark.parametrize("column", ["sequence_id", "v_call", "junction"])
def test_bytes_that_are_not_text(tmp_path, column):
    pq.write_table(table_of(**{column: raw_text(b"a\xff", b"b")}), tmp_path / "t.parquet")
    line = count(tmp_path / "t.parquet", tmp_path / "o.h5")
    assert "t.parquet: the Parquet file is damaged (Invalid" in line
    assert nothing_left(tmp_path, "t.parquet")


def damaged_gzip(data):
    packed = bytearray(gzip.compress(data))
    packed[len(packed) // 2] ^= 0xFF
    return bytes(packed)


def test_a_damaged_stream(tmp_path):
    path = tmp_path / "g.tsv.gz"
    path.write_bytes(damaged_gzip(GERMLINE.read_bytes()))
    assert "g.tsv.gz: not a readable germline table" in refused("count", SMALL, "-g", path, "-o", tmp_path / "o.h5")
    fasta = tmp_path / "s.fasta.gz"
    rng = np.random.default_rng(1)
    text = "".join(f">s{k}\n{''.join(rng.choice(list('ACGT'), 200))}\n" for k in range(300))
    fasta.write_bytes(damaged_gzip(text.encode()))
    assert "s.fasta.gz: not a readable" in refused("motifs", "compare", fasta, "-o", tmp_path / "o.h5")
    assert "s.fasta.gz: not a readable" in refused("germline", "import", fasta, "-o", tmp_path / "g.tsv")


GERMLINE_SETS = [
    "1",
    '{"GermlineSet": 7}',
    '{"GermlineSet": "\\ud800"}',
    '[{"allele_descriptions": 1}]',
    "[" * 100_000,
    '{"GermlineSet": [{"allele_descriptions": [{"label": "\\ud800"}]}]}',
]


@pytest.mark.parametrize("text", GERMLINE_SETS)
def test_a_germline_set_of_other_types(tmp_path, text):
    (tmp_path / "s.json").write_text(text)
    line = refused("germline", "import", tmp_path / "s.json", "-o", tmp_path / "g.tsv", "--source-format", "airr")
    assert "s.json: " in line
    assert nothing_left(tmp_path, "s.json")


def test_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "g")
    for line in all_refused(
        ("count", SMALL, "-g", tmp_path / "g", "-o", tmp_path / "o.h5"),
        ("count", tmp_path / "g", "-g", GERMLINE, "-o", tmp_path / "o.h5"),
        ("motifs", "compare", tmp_path / "g", "-o", tmp_path / "o.h5"),
        ("report", tmp_path / "g", "-o", tmp_path / "o.html"),
    ):
        assert "g: " in line
    assert nothing_left(tmp_path, "g")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"a\t{ROW}\nb\tTRBV1*01\r\tTRBJ1-1*01\tTGT\n", "line 3: has a carriage return within the line"),
        (f"a\t{ROW}\n   \nb\t{ROW}\n", "line 3: 1 values for 4 columns"),
        (f"a\t{ROW}\n\nb\tTRBV1*01\n", "line 4: 2 values for 4 columns"),
    ],
)  # fmt: skip
def test_the_line_of_a_fault(tmp_path, text, said):
    (tmp_path / "t.tsv").write_bytes((HEADER + text).encode())
    assert said in count(tmp_path / "t.tsv", tmp_path / "o.h5")


def test_a_padded_gzip_stream_is_read(tmp_path):
    """Tapes and some archives pad files with zeros, which gzip ignores."""
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(SMALL.read_bytes()) + bytes(512))
    code, err, out = ended("count", tmp_path / "t.tsv.gz", "-g", GERMLINE, "-o", tmp_path / "o.h5", quiet=False)
    assert code == 0, err
    assert "500 read = 500 counted" in out


def big_table(path, seed, rows=12_000):
    """A table of as many bytes for every seed."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("ACGT"))
    middles = ["".join(row) for row in letters[rng.integers(0, 4, (rows, 12))]]
    junctions = [f"TGTACTTGT{middle}TTT" for middle in middles]
    table = table_of(sequence_id=[f"s{k}" for k in range(rows)], v_call=["TRBV1*01"] * rows,
                     j_call=["TRBJ1-1*01"] * rows, junction=junctions)  # fmt: skip
    pq.write_table(table, path, compression="none", row_group_size=1000, use_dictionary=False)


def sorted_counters(path):
    with h5py.File(path) as file:
        return file["counters"][:][np.argsort(file["sequences/row"][:])]


@pytest.mark.parametrize("signal_after", [pytest.param(None, marks=pytest.mark.exhaustive), signal.SIGTERM])
@pytest.mark.parametrize("options", exhaustive_but([(), ("--together",)], ()))
def test_a_table_that_changes_between_slices(tmp_path, options, signal_after):
    """Overwritten in place while slices are counted, then restored: the result has no slice of the other table."""
    tables = tmp_path / "tables"
    tables.mkdir()
    big_table(tables / "t.parquet", 1)
    big_table(tmp_path / "other.parquet", 2)
    own, other = (tables / "t.parquet").read_bytes(), (tmp_path / "other.parquet").read_bytes()
    assert len(own) == len(other)
    words = ["count", tables if options else tables / "t.parquet", *options, "-g", GERMLINE]
    arguments = [*words, "-o", tmp_path / "o.h5", "--batch-rows", "500"]
    command = [sys.executable, "-m", "hpcvdj", "-q", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("o.h5.parts/part-*.h5")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    # Most slices are still to be read, however long the writing takes.
    process.send_signal(signal.SIGSTOP)
    state = (tables / "t.parquet").stat()
    with open(tables / "t.parquet", "r+b") as stream:
        stream.write(other)
    os.utime(tables / "t.parquet", ns=(state.st_atime_ns, state.st_mtime_ns))
    if signal_after:
        process.send_signal(signal_after)
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert "t.parquet: changed while it was read" in err or (signal_after and "--resume continues" in err)
    assert process.returncode == (2 if "changed" in err else 75), err
    assert not (tmp_path / "o.h5").exists()
    # Nobody continues with parts of two tables; while the other table is there, a run that was stopped is another one.
    assert (tmp_path / "o.h5.parts").exists() == (process.returncode == 75)
    if process.returncode == 75:
        _, err, _ = ended(*arguments, "--resume")
        assert "belongs to another run" in err
    with open(tables / "t.parquet", "r+b") as stream:
        stream.write(own)
    code, err, _ = ended(*arguments, "--resume")
    assert code == 0, err
    code, err, _ = ended(*words, "-o", tmp_path / "whole.h5")
    assert code == 0, err
    assert (sorted_counters(tmp_path / "o.h5") == sorted_counters(tmp_path / "whole.h5")).all()


@pytest.mark.exhaustive
def test_a_part_of_another_table(tmp_path):
    """Parts without the facts of an unfinished run are not continued with: all is counted again."""
    for name, seed in (("a", 1), ("b", 2)):
        big_table(tmp_path / f"{name}.parquet", seed, rows=2000)
        code, err, _ = ended(
            "count", tmp_path / f"{name}.parquet", "-g", GERMLINE, "-o", tmp_path / f"{name}.h5", "--batch-rows", 500
        )
        assert code == 0, err
    part = "part-000001.h5"
    (tmp_path / "a.h5.parts" / part).write_bytes((tmp_path / "b.h5.parts" / part).read_bytes())
    (tmp_path / "a.h5").unlink()
    words = ["count", tmp_path / "a.parquet", "-g", GERMLINE, "--batch-rows", 500, "-o"]
    for name in ("a", "c"):
        code, err, _ = ended(*words, tmp_path / f"{name}.h5", "--resume")
        assert code == 0, err
    assert (sorted_counters(tmp_path / "a.h5") == sorted_counters(tmp_path / "c.h5")).all()
