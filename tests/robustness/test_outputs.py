"""What commands write, and what they leave alone."""

import os
import subprocess
import sys
from pathlib import Path

import h5py
import pyarrow.parquet as pq
import pytest

from tests.conftest import GERMLINE, ROOT, SMALL
from tests.robustness.processes import all_refused, count, ended, nothing_left, refused, table_of

pytestmark = pytest.mark.slow


SLICED = ("--batch-rows", 100)


@pytest.mark.parametrize(
    ("options", "sliced"),
    [
        (("--overwrite",), ()),
        (("--resume",), SLICED),
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive)
            for case in (((), ()), ((), SLICED), (("--overwrite",), SLICED), (("--resume",), ()))
        ),
    ],
)
def test_a_folder_of_somebody_else(tmp_path, sliced, options):
    folder = tmp_path / "o.h5.parts"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    assert "o.h5.parts: " in count(SMALL, tmp_path / "o.h5", *options, *sliced)
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
    # A pipe, not /dev/stdout: a fault here would replace a device of the machine.
    device, link = tmp_path / "pipe", tmp_path / "o.h5"
    os.mkfifo(device)
    link.symlink_to(device)
    assert "is not a regular file" in count(SMALL, link, "--overwrite")
    assert "must end in .h5" in count(SMALL, device, "--overwrite")
    assert device.is_fifo()
    assert link.is_symlink()


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
    commands = [
        ("count", t, "-g", g, "-o", t), ("count", t, "-g", g, "-o", g), ("count", t, "-g", g, "-o", link),
        ("export", o, "-o", o), ("export", o, "--junctions", t, "-o", t), ("report", o, "-o", o),
        ("report", o, "--metadata", g, "--group", "x", "-o", g), ("sharing", t, "-m", "human_trb", "-o", t),
        ("sharing", t, "-m", "human_trb", "-o", t.with_name("p.tsv"), "--overlap", t),
        ("contamination", t, "-m", "human_trb", "-o", t),
        ("simulate", "-g", g, "-n", 3, "-o", g), ("germline", "import", g, "-o", g),
        ("motifs", "compare", t, "-o", t), ("motifs", "export", m, "-o", m), ("motifs", "cluster", m, "-o", m),
        ("motifs", "plot", m, "-o", m),
    ]  # fmt: skip
    for command, line in zip(commands, all_refused(*((*own, "--overwrite") for own in commands)), strict=True):
        assert "is an input of this run" in line, (command, line)
    assert before == {path: path.read_bytes() for path in before}


def test_the_folder_where_one_is(tmp_path, result, monkeypatch):
    """ "." has no name, of which hidden files could be named."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    commands = [
        ("count", SMALL, "-g", GERMLINE), ("export", result, "--junctions", SMALL), ("report", result),
        ("infer", SMALL, "-m", "human_trb_m15"), ("simulate", "-g", GERMLINE, "-n", 3),
    ]  # fmt: skip
    for line in all_refused(*((*own, "-o", place, "--overwrite") for own in commands for place in (".", "/"))):
        assert any(said in line for said in ("name a file", "the name must end in", "another")), line
    assert not list(Path().iterdir())


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


@pytest.mark.parametrize(
    "env", [pytest.param({}, marks=pytest.mark.exhaustive), {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}], ids=str
)
def test_what_is_printed_cannot_spoil_a_result(tmp_path, env):
    table = tmp_path / "Mäuse.tsv"
    table.write_bytes(SMALL.read_bytes())
    with open(os.devnull if env else "/dev/full", "w") as out:
        code, err, _ = ended("count", table, "-g", GERMLINE, "-o", tmp_path / "ö.h5", env=env, stdout=out, quiet=False)
    assert code == 0, err
    assert "Traceback" not in err
    assert (tmp_path / "ö.h5").exists()


def test_a_table_that_standard_output_cannot_take(tmp_path):
    with open("/dev/full", "w") as out:
        code, err, _ = ended("count", SMALL, "-g", GERMLINE, "-o", "-", stdout=out)
    assert code == 1
    assert err.splitlines()[-1] == "hpcvdj: error: standard output: the disk is full; free space, or write elsewhere"


def test_a_reader_that_has_seen_enough(tmp_path):
    count = f"{sys.executable} -m hpcvdj count '{SMALL}' -g '{GERMLINE}' -o '{tmp_path}/p.h5'"
    words = ["bash", "-c", f"{count} | true; exit ${{PIPESTATUS[0]}}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0
    assert "rror" not in done.stderr


def test_a_path_that_is_too_long(tmp_path):
    long = "x" * 5000
    o = tmp_path / "o.h5"
    files = (long, GERMLINE, o), (SMALL, long, o), (SMALL, GERMLINE, tmp_path / long)
    for line in all_refused(*(("count", table, "-g", germline, "-o", target) for table, germline, target in files)):
        assert "…: File name too long; give a shorter path" in line


def test_an_unexpected_error_is_one_line():
    code = "import hpcvdj.cli.info as info\nfrom hpcvdj.__main__ import main\nimport hpcvdj.cli.common as c\n"
    code += "def wrong(*a, **k): raise RuntimeError('first line\\nsecond')\nc.begin = wrong\nmain()"
    for options, lines in (([], 1), (["-v"], None)):
        done = subprocess.run(
            [sys.executable, "-c", code, *options, "info"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "unexpected RuntimeError: first line; -v shows where" in done.stderr
        assert ("Traceback" in done.stderr) == (lines is None)
