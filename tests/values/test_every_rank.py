"""Every rank reads, computes and writes slices: any number of ranks writes the same bytes, stops and continues."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hpcvdj.errors import MachineError
from hpcvdj.results.slice_files import SliceFiles
from hpcvdj.runs.folder import RunFolder
from tests.cli.test_mpiexec import MPIEXEC, launch
from tests.commands import LITTLE, error_line, hpcvdj_command
from tests.conftest import GERMLINE, SMALL

ENDINGS = (".tsv", ".tsv.gz", ".tsv.zst", ".parquet", ".dataset")
FEW = {
    "hpcvdj.values.compute_tables.FEWEST_ROWS": 60,
    "hpcvdj.generation.generate.BATCH": 40,
    "hpcvdj.generation.generate.SMALLEST_BATCH": 40,
}
"""Slices of few rows, of which a small table has several."""

MODEL, EXAMPLE = ("-m", "mouse_trb"), ("-m", "human_trb_m15")

PROGRAM = f"""{LITTLE}
import json, sys
from pkgutil import resolve_name
from hpcvdj.results.slice_files import SliceFiles
from hpcvdj.runs.folder import RunFolder
import hpcvdj.cli as cli
for name, value in {FEW}.items():
    module, _, name = name.rpartition(".")
    setattr(resolve_name(module), name, value)
"""
"""Begins a program whose slices are those of few rows."""

ONE_AFTER_ANOTHER = """
*commands, last = json.loads(sys.argv[1])
code = int(sys.argv[2])
for words in commands:
    sys.argv[1:] = words
    try:
        cli.main()
    except SystemExit as end:
        assert (end.code or 0) == code, words
# The launcher sees how the last one ends.
sys.argv[1:] = last
cli.main()
"""
"""Commands that end with the same code."""

needs_mpiexec = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    for name, value in FEW.items():
        monkeypatch.setattr(name, value)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables of 500 rows: text, and Parquet in row groups that are no slices; and a folder of both."""
    folder = tmp_path_factory.mktemp("tables")
    hpcvdj_command("convert", SMALL, "-o", folder / "t.parquet")
    table = pq.read_table(folder / "t.parquet")
    pq.write_table(table, folder / "t.parquet", row_group_size=170)
    (folder / "several").mkdir()
    pq.write_table(table.slice(0, 130), folder / "several" / "a.parquet")
    pq.write_table(table.slice(0, 0), folder / "several" / "b.parquet")
    header, *rows = SMALL.read_text().splitlines(keepends=True)
    (folder / "several" / "c.tsv").write_text(header + "".join(rows[:200]))
    return folder


def commands(tables):
    """By name: the words of a command that writes a table of several slices."""
    return {
        "count": ["count", tables / "t.parquet", "-g", GERMLINE, "--max-n", "2"],
        "pgen": ["pgen", SMALL, *MODEL, "--sequence", "nt", "--force"],
        "generate": ["generate", *EXAMPLE, "-n", "700", "--seed", "3"],
        "generate productive": ["generate", *EXAMPLE, "-n", "500", "--productive", "--scenarios"],
        "convert": ["convert", tables / "t.parquet"],
        "convert text": ["convert", SMALL],
        "convert several": ["convert", tables / "several"],
    }


NAMES = tuple(commands(Path()))


def written(path):
    """The bytes of a table; of a folder, its rows."""
    return path.read_bytes() if path.is_file() else pq.read_table(path).to_pydict()


def parts_of(path):
    return sorted(path.with_name(f"{path.name}.parts").glob("part-*.state"))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.exhaustive) for ranks in (2, 7))])
def test_any_number_of_ranks_writes_the_same_bytes(tables, tmp_path, ranks, on_ranks):
    work = [
        (name, ending, words)
        for k, (name, words) in enumerate(commands(tables).items())
        for ending in (ENDINGS if name in ("pgen", "generate productive") else (ENDINGS[k % 2 * 3],))
    ]
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    for name, ending, words in work:
        hpcvdj_command(*words, "-o", tmp_path / "one" / f"{name}{ending}")
        on_ranks(ranks, *words, "-o", tmp_path / "many" / f"{name}{ending}", patched=FEW)
    for name, ending, _ in work:
        one, found = (tmp_path / folder / f"{name}{ending}" for folder in ("one", "many"))
        assert written(one) == written(found), (name, ending)
    names = [sorted(path.name for path in (tmp_path / folder).iterdir()) for folder in ("one", "many")]
    assert names[0] == names[1]


def stopped(words, target, monkeypatch, after):
    """A command that has a signal once it has written some slices."""
    finish, left = SliceFiles.finish, [after]

    def finishing(self, *arguments):
        finish(self, *arguments)
        left[0] -= 1
        if not left[0]:
            run.request.name = "SIGTERM"

    from hpcvdj.cli import common

    begin = common.begin

    def begun(*arguments):
        nonlocal run
        run = begin(*arguments)
        return run

    run, before = None, target.exists()
    with monkeypatch.context() as patch:
        patch.setattr(SliceFiles, "finish", finishing)
        patch.setattr(common, "begin", begun)
        _, err = hpcvdj_command(*words, "-o", target, code=75)
    assert f"SIGTERM: stopped with the part files in {target}.parts saved; --resume continues" in err
    assert len(parts_of(target)) == after
    assert target.exists() == before


@pytest.mark.slow_others("name")
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("count", "pgen")])
@pytest.mark.parametrize("ending", [".tsv.gz", ".dataset"])
def test_a_stopped_run_continues(tables, tmp_path, monkeypatch, name, ending):
    words, target = commands(tables)[name], tmp_path / f"o{ending}"
    hpcvdj_command(*words, "-o", tmp_path / f"whole{ending}")
    stopped(words, target, monkeypatch, 2)
    _, err = hpcvdj_command(*words, "-o", target, code=2)
    assert "has the work of an unfinished run; --resume continues it" in err
    kept = [path.stat().st_mtime_ns for path in parts_of(target)]
    with monkeypatch.context() as patch:
        # What is found of the parts when they are joined.
        join, seen = SliceFiles.digests, []
        patch.setattr(
            SliceFiles, "digests",
            lambda self, indices: seen.extend(self.folder.file(self.piece(k)).stat().st_mtime_ns for k in self.finished)
            or join(self, indices),
        )  # fmt: skip
        hpcvdj_command(*words, "-o", target, "--resume")
    assert seen[:2] == kept
    assert written(target) == written(tmp_path / f"whole{ending}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"o{ending}", f"whole{ending}"]
    assert "exists already" in hpcvdj_command(*words, "-o", target, "--resume", code=2)[1]


@pytest.mark.parametrize("files", [0, 2, -1])
def test_a_run_that_is_killed_while_it_removes_its_parts_is_complete(tables, tmp_path, monkeypatch, files):
    """The mark is the last file that is removed."""
    words, target = commands(tables)["convert"], tmp_path / "o.tsv"

    def removing(self):
        for path in sorted(self.path.iterdir(), key=lambda path: path.name == "run.json")[:files]:
            path.unlink()
        raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "remove", removing)
        hpcvdj_command(*words, "-o", target, code=9)
    complete = written(target)
    assert list(target.with_name("o.tsv.parts").iterdir())
    _, err = hpcvdj_command(*words, "-o", target, "--resume")
    assert f"{target}: is complete already; there is nothing to resume" in err
    assert written(target) == complete
    assert [path.name for path in tmp_path.iterdir()] == ["o.tsv"]


@pytest.mark.parametrize(("name", "ending"), [("convert", ".tsv"), ("generate", ".dataset")])
def test_a_stopped_run_replaces_what_it_began_to_replace_and_nothing_else(
    tables, tmp_path, monkeypatch, name, ending
):  # fmt: skip
    """Of other files that had got the name meanwhile, it replaced each."""
    words, target = commands(tables)[name], tmp_path / f"o{ending}"
    hpcvdj_command(*words, "-o", tmp_path / f"whole{ending}")
    if ending == ".tsv":
        stopped(words, target, monkeypatch, 2)
        target.write_text("my notes\n")
        _, err = hpcvdj_command(*words, "-o", target, "--resume", code=2)
        assert "o.tsv: " in error_line(err)
        assert target.read_text() == "my notes\n"
        assert len(parts_of(target)) == 2, "the work stays"
        target.unlink()
        hpcvdj_command(*words, "-o", target, "--resume")
        assert written(target) == written(tmp_path / f"whole{ending}")
        before = target.read_bytes()
    else:
        hpcvdj_command(*words[:-1], 5, "-o", target)
        before = None
    stopped([*words, "--overwrite"], target, monkeypatch, 2)
    assert before is None or target.read_bytes() == before
    hpcvdj_command(*words, "-o", target, "--resume")
    assert written(target) == written(tmp_path / f"whole{ending}")


@pytest.mark.parametrize("name", ["convert", "generate"])
def test_a_run_that_is_killed_once_its_table_has_its_name_goes_on(tables, tmp_path, monkeypatch, name):
    words, target = commands(tables)[name], tmp_path / "o.tsv"

    def finishing(self):
        raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "finish", finishing)
        hpcvdj_command(*words, "-o", target, code=9)
    complete = written(target)
    hpcvdj_command(*words, "-o", target, "--resume")
    assert written(target) == complete
    assert [path.name for path in tmp_path.iterdir()] == ["o.tsv"]


def test_a_file_that_got_the_name_after_a_disk_was_full_stays(tables, tmp_path, monkeypatch):
    words, target = commands(tables)["convert"], tmp_path / "o.tsv"

    def full(self, *arguments):
        raise MachineError("o.tsv: the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "record_result", full)
        hpcvdj_command(*words, "-o", target, code=1)
    target.write_text("my notes\n")
    _, err = hpcvdj_command(*words, "-o", target, "--resume", code=2)
    assert "o.tsv: exists already" in error_line(err)
    assert target.read_text() == "my notes\n"
    target.unlink()
    hpcvdj_command(*words, "-o", target, "--resume")
    hpcvdj_command(*words, "-o", tmp_path / "whole.tsv")
    assert written(target) == written(tmp_path / "whole.tsv")


def test_other_work_is_not_continued(tables, tmp_path, monkeypatch):
    target = tmp_path / "o.tsv"
    words = commands(tables)["generate"]
    stopped(words, target, monkeypatch, 2)
    _, err = hpcvdj_command("generate", *EXAMPLE, "-n", 700, "--seed", 4, "-o", target, "--resume", code=2)
    assert "belongs to another run (seed was 3, is 4)" in err
    hpcvdj_command("generate", *EXAMPLE, "-n", 700, "--seed", 4, "-o", target, "--overwrite")
    stopped(["convert", SMALL], tmp_path / "c.tsv", monkeypatch, 2)
    _, err = hpcvdj_command("convert", tables / "t.parquet", "-o", tmp_path / "c.tsv", "--resume", code=2)
    assert "belongs to another run" in err


def test_damaged_parts_are_refused(tables, tmp_path, monkeypatch):
    target = tmp_path / "o.tsv"
    words = commands(tables)["convert"]
    stopped(words, target, monkeypatch, 2)
    part = target.with_name("o.tsv.parts") / "part-000001.tsv"
    part.write_bytes(part.read_bytes().replace(b"TRBV", b"TRBW", 1))
    _, err = hpcvdj_command(*words, "-o", target, "--resume", code=2)
    assert "part-000001.tsv: is damaged: its SHA-256 differs; --overwrite starts again" in error_line(err)


@pytest.mark.slow
@needs_mpiexec
@pytest.mark.parametrize("ranks", [3, pytest.param(7, marks=pytest.mark.exhaustive)])
def test_a_rank_that_fails_ends_the_run_with_one_line(tables, tmp_path, ranks):
    """What the others wrote is kept, and any number of ranks continues."""
    names = "pgen", "generate productive", "convert"
    targets = {name: tmp_path / f"{name}.parquet" for name in names}
    many = [[str(word) for word in (*commands(tables)[name], "-o", target)] for name, target in targets.items()]
    program = tmp_path / "program.py"
    program.write_text(
        PROGRAM
        + """
from hpcvdj.errors import MachineError
from hpcvdj.runs.ranks import world
finish = SliceFiles.finish
def finishing(self, index, *arguments):
    if index == 4:
        raise MachineError("o.parquet: the disk is full")
    finish(self, index, *arguments)
SliceFiles.finish = finishing
"""
        + ONE_AFTER_ANOTHER
    )
    done = launch(ranks, program, json.dumps(many), 1)
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert errors == ["hpcvdj: error: o.parquet: the disk is full"] * len(names)
    assert "Traceback" not in done.stderr
    for target in targets.values():
        assert not target.exists()
        assert not list(target.with_name(f"{target.name}.parts").glob(".*"))
    for words in many:
        hpcvdj_command(*words, "--resume")
    for name, target in targets.items():
        hpcvdj_command(*commands(tables)[name], "-o", tmp_path / f"whole {name}.parquet")
        assert written(target) == written(tmp_path / f"whole {name}.parquet"), name


@pytest.mark.slow
def test_a_damaged_row_that_one_rank_reads(tmp_path, on_ranks):
    header, *rows = SMALL.read_text().splitlines(keepends=True)
    (tmp_path / "t.tsv").write_text(header + "".join(rows[:300]) + "one value\n" + "".join(rows[300:]))
    _, err = on_ranks(3, "convert", tmp_path / "t.tsv", "-o", tmp_path / "o.tsv", code=2, patched=FEW)
    assert "line 302: 1 values for" in error_line(err)
    assert [path.name for path in tmp_path.iterdir()] == ["t.tsv"]


def test_a_rank_takes_a_slice_once(tmp_path):
    folder = tmp_path / "o.tsv.parts"
    folder.mkdir()
    from hpcvdj.runs.folder import RunFolder

    files = SliceFiles(RunFolder(folder, {}), ".tsv")
    first, second = files.taken([1]), files.taken([1])
    assert [first(0), second(0), first(0), first(1), second(2), first(2)] == [True, False, True, False, True, False]
    files.rows(2).touch()
    files.finish(2, {})
    files.forget(2)
    assert files.taken([])(2)
