"""Hostile files, one process each: one line on stderr, a non-zero exit, little memory, and nothing under the target."""

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import GERMLINE, ROOT, SMALL

pytestmark = pytest.mark.slow

SECONDS = 20
"""A refusal may take this long, the program's start included."""

MEMORY = 1 << 30
"""Bytes of memory that a refusal may take."""

HEADER = "sequence_id\tv_call\tj_call\tjunction\n"
ROW = "TRBV1*01\tTRBJ1-1*01\tTGTACTTGTTTT"


def ended(*arguments, env=None, stdout=subprocess.PIPE):
    """(exit code, stderr, stdout, bytes of memory) of a command."""
    words = [sys.executable, "-m", "hpcvdj", "-q", *map(str, arguments)]
    process = subprocess.Popen(
        words, stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=ROOT,
        env={**os.environ, "COLUMNS": "200", **(env or {})},
    )  # fmt: skip
    deadline = time.monotonic() + SECONDS
    try:
        out, err = process.communicate(timeout=deadline - time.monotonic())
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, err.decode(errors="replace"), (out or b"").decode(errors="replace")


def refused(*arguments, exit_code=2):
    """The one line of a command that refuses its input within memory and time."""
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY}, {MEMORY}))"
    words = [sys.executable, "-c", f"{limited}; from hpcvdj.cli import main; main()", "-q", *map(str, arguments)]
    done = subprocess.run(
        words, capture_output=True, timeout=SECONDS, check=False, cwd=ROOT, stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200", "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    err = done.stderr.decode(errors="replace")
    assert done.returncode == exit_code, err[-3000:]
    lines = err.strip().splitlines()
    assert len(lines) == 1, err[-3000:]
    assert "unexpected" not in lines[0]
    return lines[0]


def count(table, target, *options):
    return refused("count", table, "-g", GERMLINE, "-o", target, *options)


def nothing_left(folder, *known):
    """Whether a folder has only the files that a test put there."""
    return sorted(path.name for path in folder.iterdir()) == sorted(known)


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


def bomb(path, head, middle, size, tail=b""):
    with gzip.open(path, "wb", 9) as stream:
        stream.write(head)
        block = middle * (1 << 20)
        for _ in range(size // len(block)):
            stream.write(block)
        stream.write(tail)


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


def table_of(**columns):
    defaults = {"sequence_id": ["a", "b"], "v_call": ["TRBV1*01"] * 2, "j_call": ["TRBJ1-1*01"] * 2,
                "junction": ["TGTACTTGTTTT"] * 2}  # fmt: skip
    return pa.table(defaults | columns)


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
    line = refused("germline", "import", tmp_path / "s.json", "-o", tmp_path / "g.tsv", "--format", "airr")
    assert "s.json: " in line
    assert nothing_left(tmp_path, "s.json")


def test_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "g")
    for arguments in (
        ("count", SMALL, "-g", tmp_path / "g", "-o", tmp_path / "o.h5"),
        ("count", tmp_path / "g", "-g", GERMLINE, "-o", tmp_path / "o.h5"),
        ("motifs", "compare", tmp_path / "g", "-o", tmp_path / "o.h5"),
        ("report", tmp_path / "g", "-o", tmp_path / "o.html"),
    ):
        assert "g: " in refused(*arguments)
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
    code, err, out = ended("count", tmp_path / "t.tsv.gz", "-g", GERMLINE, "-o", tmp_path / "o.h5")
    assert code == 0, err
    assert "500 read = 500 counted" in out


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A small result that others are made from."""
    path = tmp_path_factory.mktemp("result") / "o.h5"
    code, err, _ = ended("count", SMALL, "-g", GERMLINE, "-o", path, "--max-n", 4)
    assert code == 0, err
    return path


@pytest.fixture
def tampered(result, tmp_path):
    """A copy of the result, and how to change it."""
    path = tmp_path / "o.h5"
    path.write_bytes(result.read_bytes())
    return path


def all_refuse(path, said):
    """Every command that reads a result refuses this one in one line."""
    folder = path.parent
    for arguments in (
        ("export", path, "-o", folder / "t.tsv", "--junctions", SMALL),
        ("report", path, "-o", folder / "r.html"),
        ("convergence", path, "-o", folder / "c.tsv", "--junctions", SMALL),
    ):
        line = refused(*arguments)
        assert said in line, line
    assert not {"t.tsv", "r.html", "c.tsv"} & {other.name for other in folder.iterdir()}


SECRET = "the content of another file"


def replace_dataset(file, name, data=None, **options):
    del file[name]
    file.create_dataset(name, data=data, **options)


@pytest.mark.parametrize("where", ["sequences/sequence_id", "counters", "pairs/v_call"])
def test_storage_in_another_file(tampered, where):
    secret = tampered.with_name("secret")
    secret.write_bytes((SECRET * 10000).encode())
    with h5py.File(tampered, "r+") as file:
        old = file[where]
        replace_dataset(file, where, shape=old.shape, dtype=old.dtype, external=[(str(secret), 0, h5py.h5f.UNLIMITED)])
    all_refuse(tampered, "is stored in another file; do not trust this file")


@pytest.mark.parametrize("link", [h5py.ExternalLink("other.h5", "/x"), h5py.SoftLink("/sequences/cdr3")])
def test_a_link(tampered, link):
    with h5py.File(tampered.with_name("other.h5"), "w") as other:
        other["x"] = np.array([SECRET.encode()] * 500)
    with h5py.File(tampered, "r+") as file:
        del file["sequences/sequence_id"]
        file["sequences/sequence_id"] = link
    all_refuse(tampered, "is a link, which no result has")


def test_a_view_of_another_file(tampered):
    with h5py.File(tampered.with_name("other.h5"), "w") as other:
        other["x"] = np.array([SECRET.encode()] * 500)
    layout = h5py.VirtualLayout((500,), "S27")
    layout[:] = h5py.VirtualSource("other.h5", "x", (500,), "S27")
    with h5py.File(tampered, "r+") as file:
        del file["sequences/sequence_id"]
        file.create_virtual_dataset("sequences/sequence_id", layout)
    all_refuse(tampered, "which is not a part; do not trust this file")


CHANGES = {
    "80 TiB declared": lambda f: replace_dataset(
        f, "counters", shape=(10**12, 11), dtype="u8", chunks=(1 << 16, 11), compression="gzip"
    ),
    "negative": lambda f: replace_dataset(f, "counters", data=-f["counters"][:].astype("i8")),
    "float": lambda f: replace_dataset(f, "counters", data=f["counters"][:] * np.nan),
    "one column less": lambda f: replace_dataset(f, "counters", data=f["counters"][:, 0]),
    "no columns": lambda f: replace_dataset(f, "counters", data=f["counters"][:, :0]),
    "one row less": lambda f: replace_dataset(f, "counters", data=f["counters"][:-1]),
    "no counters": lambda f: f.__delitem__("counters"),
    "counters as a group": lambda f: (f.__delitem__("counters"), f.create_group("counters")),
    "no rows": lambda f: f.__delitem__("sequences/row"),
    "no group": lambda f: f.__delitem__("sequences"),
    "text as numbers": lambda f: replace_dataset(f, "sequences/cdr3", data=np.arange(500)),
    "variable text": lambda f: replace_dataset(f, "sequences/cdr3", data=["A"] * 500, dtype=h5py.string_dtype()),
    "no pairs": lambda f: f.__delitem__("pairs/offset"),
    "pairs backwards": lambda f: replace_dataset(f, "pairs/offset", data=np.flip(f["pairs/offset"][:])),
    "pairs beyond": lambda f: replace_dataset(f, "pairs/offset", data=f["pairs/offset"][:] * 2),
    "rows read": lambda f: f.attrs.__setitem__("rows_read", 7),
    "rows read as text": lambda f: f.attrs.__setitem__("rows_read", "many"),
    "no rows read": lambda f: f.attrs.__delitem__("rows_read"),
    "quantity": lambda f: f.attrs.__setitem__("quantity", "wishes"),
    "format as a number": lambda f: f.attrs.__setitem__("format", 7),
    "version as text": lambda f: f.attrs.__setitem__("format_version", "two"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tampered_result(tampered, change):
    with h5py.File(tampered, "r+") as file:
        CHANGES[change](file)
    all_refuse(tampered, str(tampered))


@pytest.mark.parametrize("rows", [0, -1, 500], ids=["all zero", "negative", "beyond"])
def test_rows_that_are_not_those_of_the_table(tampered, rows):
    with h5py.File(tampered, "r+") as file:
        wrong = np.zeros(500, np.int64) if rows == 0 else np.r_[file["sequences/row"][:-1], rows]
        replace_dataset(file, "sequences/row", data=wrong)
    line = refused("export", tampered, "-o", tampered.with_name("t.tsv"), "--junctions", SMALL)
    assert "o.h5: is damaged: /sequences/row does not name each row of the table once" in line


def test_a_chunk_with_a_wrong_checksum(tampered):
    with h5py.File(tampered) as file:
        offset = file["counters"].id.get_chunk_info(0).byte_offset
    data = bytearray(tampered.read_bytes())
    data[offset + 5] ^= 1
    tampered.write_bytes(bytes(data))
    all_refuse(tampered, "o.h5: is damaged: /counters cannot be read")


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "m.h5"
    code, err, _ = ended("motifs", "compare", SMALL, "-o", path, "-k", 8, "-d", 1, "--top", 2)
    assert code == 0, err
    return path


MOTIF_CHANGES = {
    "negative rows": lambda f: f["edges/row"].__setitem__(0, -5),
    "rows beyond": lambda f: f["edges/column"].__setitem__(0, 10**6),
    "a strand": lambda f: f["edges/strand"].__setitem__(0, 2),
    "10^9 distances": lambda f: f.attrs.__setitem__("d", 10**9),
    "10^11 edges": lambda f: replace_dataset(f, "edges/row", shape=(10**11,), dtype="i4", chunks=(1 << 20,)),
    "no k": lambda f: f.attrs.__delitem__("k"),
    "weights": lambda f: f.attrs.__setitem__("weights", "{"),
    "score": lambda f: f.attrs.__setitem__("score", "luck"),
}


@pytest.mark.parametrize("change", MOTIF_CHANGES)
def test_a_tampered_comparison(edges, tmp_path, change):
    path = tmp_path / "m.h5"
    path.write_bytes(edges.read_bytes())
    with h5py.File(path, "r+") as file:
        MOTIF_CHANGES[change](file)
    for command, target in (("export", "g.graphml"), ("cluster", "c.tsv")):
        assert str(path) in refused("motifs", command, path, "-o", tmp_path / target)
    assert nothing_left(tmp_path, "m.h5")


RECORDS = [
    "7",
    "[]",
    '{"format": "hpcvdj-run"}',
    '{"format": "hpcvdj-run", "identity": 1, "facts": 2}',
    '{"format": "hpcvdj-run", "identity": {}, "facts": {"slice_rows": "many"}}',
]


@pytest.mark.parametrize("text", RECORDS)
def test_a_record_of_other_types(tmp_path, text):
    folder = tmp_path / "o.h5.parts"
    folder.mkdir()
    (folder / "run.json").write_text(text)
    (folder / "part-000000.h5").write_bytes(b"x")
    line = count(SMALL, tmp_path / "o.h5", "--batch-rows", 100, "--resume")
    assert "o.h5.parts: " in line
    assert (folder / "run.json").read_text() == text


@pytest.mark.parametrize("suffix", ["checkpoint", "parts"])
@pytest.mark.parametrize("options", [(), ("--overwrite",), ("--resume",)])
def test_a_folder_of_somebody_else(tmp_path, suffix, options):
    folder = tmp_path / f"o.h5.{suffix}"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    sliced = ("--batch-rows", 100) if suffix == "parts" else ()
    assert f"o.h5.{suffix}: " in count(SMALL, tmp_path / "o.h5", *options, *sliced)
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_a_lock_that_is_a_link(tmp_path):
    (tmp_path / "precious").write_text("years of work")
    (tmp_path / ".o.h5.lock").symlink_to(tmp_path / "precious")
    line = refused("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5", exit_code=1)
    assert ".o.h5.lock: cannot be locked" in line
    assert (tmp_path / "precious").read_text() == "years of work"


def test_a_lock_that_is_a_folder(tmp_path):
    (tmp_path / ".o.h5.lock").mkdir()
    line = refused("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5", exit_code=1)
    assert ".o.h5.lock: cannot be locked" in line


def test_a_device(tmp_path):
    assert "is not a regular file" in count(SMALL, "/dev/stdout", "--overwrite")
    assert Path("/dev/stdout").is_symlink()


def test_a_link_as_target_stays(tmp_path):
    (tmp_path / "o.h5").symlink_to(tmp_path / "elsewhere.h5")
    code, err, _ = ended("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5")
    assert code == 0, err
    assert (tmp_path / "o.h5").is_symlink()
    with h5py.File(tmp_path / "elsewhere.h5") as file:
        assert len(file["counters"]) == 500


def test_no_command_overwrites_what_it_reads(tmp_path, result, edges):
    o, m, g = tmp_path / "o.h5", tmp_path / "m.h5", tmp_path / "g.tsv"
    t = tmp_path / "t.tsv"
    for copy, path in ((o, result), (m, edges), (g, GERMLINE), (t, SMALL)):
        copy.write_bytes(path.read_bytes())
    before = {path: path.read_bytes() for path in (o, m, g, t)}
    link = tmp_path / "link.tsv"
    link.symlink_to(g)
    for arguments in (
        ("count", t, "-g", g, "-o", t), ("count", t, "-g", g, "-o", g), ("count", t, "-g", g, "-o", link),
        ("export", o, "-o", o), ("export", o, "--junctions", t, "-o", t), ("report", o, "-o", o),
        ("report", o, "-g", g, "-o", g), ("convergence", o, "-o", o), ("convergence", o, "-o", t, "--aa", o),
        ("simulate", "-g", g, "-n", 3, "-o", g), ("germline", "import", g, "-o", g),
        ("motifs", "compare", t, "-o", t), ("motifs", "export", m, "-o", m), ("motifs", "cluster", m, "-o", m),
        ("motifs", "plot", m, "-o", m),
    ):  # fmt: skip
        line = refused(*arguments, "--overwrite")
        assert "is an input of this run" in line, (arguments, line)
        assert before == {path: path.read_bytes() for path in before}


def test_a_tab_in_an_id(tmp_path):
    pq.write_table(table_of(sequence_id=["a\tb", "c"]), tmp_path / "t.parquet")
    code, err, _ = ended("count", tmp_path / "t.parquet", "-g", GERMLINE, "-o", tmp_path / "o.h5")
    assert code == 0, err
    line = refused("export", tmp_path / "o.h5", "-o", tmp_path / "o.tsv")
    assert "sequence_id has a tab or a line end, which a TSV cannot hold; write .parquet" in line
    code, err, _ = ended("export", tmp_path / "o.h5", "-o", tmp_path / "o.parquet")
    assert code == 0, err
    assert pq.read_table(tmp_path / "o.parquet")["sequence_id"].to_pylist() == ["a\tb", "c"]
    assert nothing_left(tmp_path, "t.parquet", "o.h5", "o.parquet")


def test_a_line_end_in_a_name(tmp_path):
    pq.write_table(
        table_of(sequence_id=["a\nb", "c"], junction=["TGTACTTGTTTT", "TGTACTTGTTTA"]), tmp_path / "t.parquet"
    )
    code, err, _ = ended("motifs", "compare", tmp_path / "t.parquet", "-o", tmp_path / "m.h5", "-k", 6, "-d", 1,
                         "--top", 1)  # fmt: skip
    assert code == 0, err
    assert "has a tab or a line end" in refused("motifs", "cluster", tmp_path / "m.h5", "-o", tmp_path / "c.tsv")


@pytest.mark.parametrize("env", [{}, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}], ids=str)
def test_what_is_printed_cannot_spoil_a_result(tmp_path, env):
    table = tmp_path / "Mäuse.tsv"
    table.write_bytes(SMALL.read_bytes())
    with open(os.devnull if env else "/dev/full", "w") as out:
        code, err, _ = ended("count", table, "-g", GERMLINE, "-o", tmp_path / "ö.h5", env=env, stdout=out)
    assert code == 0, err
    assert "Traceback" not in err
    assert (tmp_path / "ö.h5").exists()


def test_a_reader_that_has_seen_enough(tmp_path):
    count = f"{sys.executable} -m hpcvdj -q count '{SMALL}' -g '{GERMLINE}' -o '{tmp_path}/p.h5'"
    words = ["bash", "-c", f"{count} | true; exit ${{PIPESTATUS[0]}}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_path_that_is_too_long(tmp_path):
    long = "x" * 5000
    o = tmp_path / "o.h5"
    for table, germline, target in ((long, GERMLINE, o), (SMALL, long, o), (SMALL, GERMLINE, tmp_path / long)):
        assert "…: File name too long; give a shorter path" in refused("count", table, "-g", germline, "-o", target)


def test_an_unexpected_error_is_one_line():
    code = "import hpcvdj.cli.info as info\nfrom hpcvdj.cli import main\nimport hpcvdj.cli.common as c\n"
    code += "def wrong(*a, **k): raise RuntimeError('first line\\nsecond')\nc.begin = wrong\nmain()"
    for options, lines in (([], 1), (["-v"], None)):
        done = subprocess.run(
            [sys.executable, "-c", code, *options, "info"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "unexpected RuntimeError: first line; -v before the command shows where" in done.stderr
        assert ("Traceback" in done.stderr) == (lines is None)


def big_table(path, seed, rows=60_000):
    """A table of as many bytes for every seed."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("ACGT"))
    middles = ["".join(row) for row in letters[rng.integers(0, 4, (rows, 12))]]
    junctions = [f"TGTACTTGT{middle}TTT" for middle in middles]
    table = table_of(sequence_id=[f"s{k}" for k in range(rows)], v_call=["TRBV1*01"] * rows,
                     j_call=["TRBJ1-1*01"] * rows, junction=junctions)  # fmt: skip
    pq.write_table(table, path, compression="none", row_group_size=1000, use_dictionary=False)


def test_a_table_that_changes_between_slices(tmp_path):
    """Overwritten in place while slices are counted, then restored: the result has no slice of the other table."""
    big_table(tmp_path / "t.parquet", 1)
    big_table(tmp_path / "other.parquet", 2)
    own, other = (tmp_path / "t.parquet").read_bytes(), (tmp_path / "other.parquet").read_bytes()
    assert len(own) == len(other)
    arguments = ["count", tmp_path / "t.parquet", "-g", GERMLINE, "-o", tmp_path / "o.h5", "--batch-rows", "500"]
    words = [sys.executable, "-m", "hpcvdj", "-q", *map(str, arguments)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("o.h5.parts/part-*.h5")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    state = (tmp_path / "t.parquet").stat()
    with open(tmp_path / "t.parquet", "r+b") as stream:
        stream.write(other)
    os.utime(tmp_path / "t.parquet", ns=(state.st_atime_ns, state.st_mtime_ns))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert "t.parquet: changed while it was read" in err
    with open(tmp_path / "t.parquet", "r+b") as stream:
        stream.write(own)
    code, err, _ = ended(*arguments, "--resume")
    assert code == 0, err
    code, err, _ = ended(*arguments[:5], tmp_path / "whole.h5")
    assert code == 0, err
    with h5py.File(tmp_path / "o.h5") as one, h5py.File(tmp_path / "whole.h5") as whole:
        order = [np.argsort(file["sequences/row"][:]) for file in (one, whole)]
        assert (one["counters"][:][order[0]] == whole["counters"][:][order[1]]).all()
        assert json.loads(one.attrs["config"])["max_n"] == 10
