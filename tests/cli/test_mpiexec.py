"""Real launches from a plain pytest: the commands under mpiexec, and tests/mpi on 1 to 4 ranks.

Not in tests/mpi: pytest-mpi takes all that lies in a folder of that name for tests to run on every rank.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.analysis import steps
from hpcvdj.results.reader import Result
from hpcvdj.values.at_once import BEGUN
from tests.commands import LITTLE, error_line, hpcvdj_command
from tests.conftest import GERMLINE, ROOT, SMALL
from tests.robustness.kill_and_resume import ranks_of

pytest.importorskip("mpi4py")
# The launcher of the MPI library that this Python has, before any other on the machine.
MPIEXEC = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")


def launch(ranks, *arguments, timeout=240):
    """Run a Python command line on `ranks` ranks."""
    # Ranks of a test share few cores; one thread each keeps them from treading on one another.
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "COLUMNS": "200"}
    return subprocess.run(
        [MPIEXEC, "-n", str(ranks), sys.executable, *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, env=environment, cwd=ROOT, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rank_tests():
    """The tests of tests/mpi on one rank to four, under both guards against a stuck collective."""
    ranks = 4
    arguments = ["-m", "mpi4py", "-m", "pytest", "--with-mpi", "--timeout=120", "--timeout-method=thread"]
    tests = ROOT / "tests" / "mpi"
    done = launch(ranks, *arguments, "-q", "-p", "no:cacheprovider", tests, timeout=500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    # Ranks write to one pipe, so their closing lines may run into one another: count, do not match lines.
    assert done.stdout.count(" passed") == ranks
    assert " failed" not in done.stdout
    assert " skipped" not in done.stdout


MODES = {
    "direct": ("table", "--max-n", "4"),
    "bitwise": ("table", "--max-n", "1", "--method", "bitwise"),
    "slices": ("table", "--max-n", "4", "--batch-rows", "120"),
    "together": ("folder", "--max-n", "1", "--together"),
    "together in slices": ("folder", "--max-n", "1", "--together", "--batch-rows", "70"),
    "together, bitwise": ("folder", "--max-n", "1", "--together", "--method", "bitwise"),
}
"""Ways to count: what is counted, and the options."""


@pytest.fixture(scope="module")
def repertoires(tmp_path_factory):
    """Five tables of very different sizes with the same ids."""
    folder = tmp_path_factory.mktemp("repertoires")
    head, *rows = SMALL.read_text().splitlines(keepends=True)
    for name, (first, last) in {"a": (0, 10), "b": (5, 300), "c": (300, 301), "d": (0, 60), "e": (100, 220)}.items():
        (folder / f"{name}.tsv").write_text(head + "".join(rows[first:last]))
    return folder


def count_words(mode, repertoires, target):
    what, *options = MODES[mode]
    path = SMALL if what == "table" else repertoires
    return ["count", str(path), "-g", str(GERMLINE), "-o", str(target), *options]


def digest(path):
    """All that a result says of its input's rows, in their order, whatever the ranks and the slices."""
    with Result(path) as result:
        assert result.provenance["config"]
        table = result.to_table().sort_by("row")
        excluded = result.excluded
        facts = [result.provenance[name] for name in ("sums", "nonzero", "rows_read", "excluded_counts")]
        text = json.dumps([table.to_pydict(), excluded.row.tolist(), excluded.messages, list(map(str, facts))])
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def expected(repertoires, tmp_path_factory):
    """The digest of each mode on one rank, in this process."""
    folder = tmp_path_factory.mktemp("expected")
    digests = {}
    for mode in MODES:
        target = folder / f"{mode}.h5"
        hpcvdj_command(*count_words(mode, repertoires, target))
        digests[mode] = digest(target)
    assert digests["together"] == digests["together in slices"] == digests["together, bitwise"]
    return digests


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.exhaustive) for ranks in (2, 4, 7))])
def test_results_do_not_depend_on_ranks(tmp_path, repertoires, expected, ranks, on_ranks):
    """More ranks than tables, slices or pairs among them."""
    said = "".join(on_ranks(ranks, *count_words(mode, repertoires, tmp_path / f"{mode}.h5"))[0] for mode in MODES)
    for mode in MODES:
        assert digest(tmp_path / f"{mode}.h5") == expected[mode], mode
        with Result(tmp_path / f"{mode}.h5") as result:
            assert result.provenance["mpi_size"] == ranks
            assert len(result.dataset("ranks/host")) == ranks
    assert said.count("500 counted") == 3, "root alone prints"
    assert said.count("tables     5, of 5 repertoire(s)") == 3
    assert len(list((tmp_path / "slices.h5.parts").glob("part-*.h5"))) == 5


def test_together_is_what_each_table_gives_alone(repertoires, tmp_path):
    alone = []
    for path in sorted(repertoires.iterdir()):
        hpcvdj_command("count", path, "-g", GERMLINE, "-o", tmp_path / f"{path.stem}.h5", "--max-n", 1)
        with Result(tmp_path / f"{path.stem}.h5") as result:
            alone += [(path.stem.encode(), values) for values in result.counters[:][np.argsort(result.row)].tolist()]
    hpcvdj_command(*count_words("together", repertoires, tmp_path / "all.h5"))
    with Result(tmp_path / "all.h5") as result:
        order = np.argsort(result.row)
        both = zip(result.repertoire_id[order].tolist(), result.counters[:][order].tolist(), strict=True)
        assert list(both) == alone


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a", pytest.param("d", marks=pytest.mark.exhaustive)])
def test_a_bad_table_of_many_is_one_line_whoever_reads_it(tmp_path, repertoires, name, on_ranks):
    head, *rows = (repertoires / f"{name}.tsv").read_text().splitlines(keepends=True)
    bad = tmp_path / "bad.tsv"
    bad.write_text(head + "".join(rows) + "one\ttwo\n")
    words = ["count", repertoires, bad, "-g", GERMLINE, "-o", tmp_path / "o.h5", "--together"]
    _, err = on_ranks(3, *words, code=2)
    assert f"bad.tsv: line {len(rows) + 2}: 2 values for 8 columns" in error_line(err)
    assert not list(tmp_path.glob("*o.h5*"))


@pytest.mark.slow
def test_bad_input_is_one_line_from_one_rank(tmp_path):
    done = launch(2, "-m", "hpcvdj", "count", tmp_path / "none.tsv", "-g", GERMLINE, "-o", tmp_path / "o.h5")
    assert done.returncode == 2
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["infer", SMALL, "-m", "human_trb_m15", "--hold-out", "2"],
        ["motifs", "compare", SMALL, "-k", "8", "--weights", "x"],
        ["generate", "-m", "human_trb_m15", "-n", "99999999999999"],
        ["verify", "none.tsv", "-g", GERMLINE],
    ],
    ids=lambda words: words[0],
)
def test_settings_that_are_wrong_are_printed_once(words, tmp_path, on_ranks):
    output = [] if words[0] == "verify" else ["-o", tmp_path / "out"]
    error_line(on_ranks(3, *words, *output, code=2)[1])


@pytest.mark.slow
def test_a_usage_error_is_printed_once(on_ranks):
    assert "".join(on_ranks(3, "count", "--nothing", code=2)).count("No such option") == 1


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_rank_that_raises_ends_all(tmp_path, rank):
    """One rank fails while the others wait for it in a collective."""
    program = tmp_path / "program.py"
    program.write_text(
        LITTLE + "import sys\n"
        "from hpcvdj.runs.ranks import world\n"
        "import hpcvdj.kernels.pathways.direct_cpu as direct\n"
        "right = direct.DirectKernel.start\n"
        "def wrong(self, unit, first, last):\n"
        f"    if unit.tasks and last > first and world().rank == {rank}:\n"
        "        raise ZeroDivisionError('planted')\n"
        "    return right(self, unit, first, last)\n"
        "direct.DirectKernel.start = wrong\n"
        "from hpcvdj.__main__ import main\n"
        f"sys.argv = ['hpcvdj', 'count', {str(SMALL)!r}, '-g', {str(GERMLINE)!r}, '-o', {str(tmp_path / 'o.h5')!r}]\n"
        "main()\n"
    )
    start = time.monotonic()
    done = launch(3, program, timeout=60)
    assert done.returncode != 0
    assert time.monotonic() - start < 30
    assert "ZeroDivisionError: planted" in done.stderr
    assert not (tmp_path / "o.h5").exists()


def test_a_rank_that_leaves_ends_all(tmp_path):
    """os._exit, as a crash in a library would end it."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os\nfrom hpcvdj.runs.ranks import world\nif world().rank == 1:\n    os._exit(3)\nworld().barrier()\n"
    )
    start = time.monotonic()
    done = launch(3, program, timeout=60)
    assert done.returncode != 0
    assert time.monotonic() - start < 30


@pytest.mark.slow
def test_a_rank_that_hangs_is_given_up(tmp_path):
    """Stopped by SIGSTOP in the midst of counting; what was saved before is there to resume from."""
    table, output = tmp_path / "t.tsv", tmp_path / "o.h5"
    table.write_text("".join(SMALL.read_text().splitlines(keepends=True)[:51]))
    options = ["--method", "bitwise", "--max-n", "5", "--backend", "cpu"]
    impatient = ["--patience", "3", "--checkpoint-every", "0.1"]
    words = [MPIEXEC, "-n", "3", sys.executable, "-m", "hpcvdj", "-q", "count", table, "-g", GERMLINE, "-o", output]
    running = subprocess.Popen(
        [*map(str, words), *options, *impatient],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "o.h5.parts" / f"{BEGUN}.state").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    victim = ranks_of(running.pid)[1]
    os.kill(victim, signal.SIGSTOP)
    _, err = running.communicate(timeout=60)
    assert running.returncode != 0
    found = re.search(r"rank ([02]) waited (\d+) s for the other ranks", err)
    assert found, err
    assert int(found[2]) == 3 + int(found[1]), "ranks lose patience a second apart"
    assert "Traceback" not in err
    assert not output.exists()
    done = launch(2, "-m", "hpcvdj", "count", table, "-g", GERMLINE, "-o", output, *options, "--resume")
    assert done.returncode == 0, done.stderr
    hpcvdj_command("count", table, "-g", GERMLINE, "-o", tmp_path / "direct.h5", "--max-n", 5)
    with Result(output) as result, Result(tmp_path / "direct.h5") as direct:
        assert (result.counters[:] == direct.counters[:]).all()


def test_an_uncaught_exception_in_a_script_ends_all(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from hpcvdj.runs.ranks import world\n"
        "if world().rank == 1:\n    raise ValueError('planted')\nworld().barrier()\n"
    )
    done = launch(2, program, timeout=60)
    assert done.returncode != 0
    assert "ValueError: planted" in done.stderr


@pytest.mark.slow
def test_info_names_every_rank(on_ranks):
    out, _ = on_ranks(3, "info")
    assert [line.split()[1] for line in out.splitlines() if line.startswith("rank")] == ["0", "1", "2"]


@pytest.mark.slow
def test_what_root_alone_does_is_printed_once(on_ranks):
    out, _ = on_ranks(2, "study", "forms", GERMLINE)
    assert out.count("threads of the V-J alternative") == 1


@pytest.mark.slow
def test_ranks_with_other_options_are_named(tmp_path):
    words = [sys.executable, "-m", "hpcvdj", "-q", "count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5", "--max-n"]
    both = [MPIEXEC, "-n", "1", *words, "2", ":", "-n", "1", *words, "3"]
    started = time.monotonic()
    done = subprocess.run([*map(str, both)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count("rank 1 has other options than rank 0") == 1
    assert time.monotonic() - started < 30
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_ranks_with_other_software_are_named(tmp_path):
    """Versions and settings on which digits may depend; here a setting of numba."""
    words = [sys.executable, "-m", "hpcvdj", "-q", "count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5"]
    both = [MPIEXEC, "-n", "1", *words, ":", "-n", "1", "env", "NUMBA_OPT=1", *words]
    done = subprocess.run([*map(str, both)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count("rank 1 has other software than rank 0") == 1
    assert "start all ranks in the same environment" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.exhaustive
def test_a_slice_may_take_longer_than_the_patience(tmp_path):
    """One slice for two ranks: the other rank waits, and hears of each step that this one is at work."""
    pq.write_table(pacsv.read_csv(SMALL, parse_options=pacsv.ParseOptions(delimiter="\t")), tmp_path / "t.parquet")
    slow = (
        "import time, hpcvdj.repertoires.readers.parquet as tables\n"
        "from hpcvdj.__main__ import main\n"
        "as_strings, tables.reader.BATCH_ROWS = tables.as_strings, 50\n"
        "tables.as_strings = lambda *given: (time.sleep(0.7), as_strings(*given))[1]\n"
        "main()"
    )
    words = [MPIEXEC, "-n", "2", sys.executable, "-c", slow, "-q", "count", tmp_path / "t.parquet"]
    words += ["-g", GERMLINE, "-o", tmp_path / "o.h5", "--batch-rows", "500", "--patience", "3"]
    started = time.monotonic()
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started > 7


@pytest.mark.exhaustive
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_hangs_while_root_reads_is_given_up(tmp_path, victim):
    table = tmp_path / "t.tsv"
    head, *lines = SMALL.read_text().splitlines(keepends=True)
    with open(table, "w") as stream:
        stream.write(head)
        for number in range(2000):
            stream.writelines(line.replace("\t", f"-{number}\t", 1) for line in lines)
    output = tmp_path / "o.h5"
    words = [MPIEXEC, "-n", "2", sys.executable, "-m", "hpcvdj", "-q", "count", table, "-g", GERMLINE, "-o", output]
    running = subprocess.Popen([*map(str, words), "--patience", "2"], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / ".o.h5.lock").exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(ranks_of(running.pid)[victim], signal.SIGSTOP)
    stopped = time.monotonic()
    _, err = running.communicate(timeout=60)
    # Root may still have to read to the end before it waits for the other rank.
    assert time.monotonic() - stopped < 2 + 5 + 15 * victim
    assert running.returncode != 0
    assert re.search(rf"rank {1 - victim} waited \d s for the other ranks", err), err
    assert "Traceback" not in err
    assert not output.exists()


FEW_DRAWS = (
    LITTLE
    + """
import sys
from functools import partial
from hpcvdj.analysis import steps
from hpcvdj.chance import check
from hpcvdj.inference import selection
for name in ("ContaminationSettings", "SharingSettings"):
    setattr(steps, name, partial(getattr(steps, name), draws=10_000))
check.DRAWN, selection.FRESH = 20_000, 30_000
from hpcvdj.__main__ import main
sys.argv[0] = "hpcvdj"
main()
"""
)
"""The command, with a tenth of the draws of each step."""


@pytest.mark.slow
def test_an_analysis_is_the_same_for_any_number_of_ranks(tmp_path, monkeypatch):
    """Of ranks that read, compute and write; one of the two tables is refused by a step, on every rank."""
    tables = tmp_path / "tables"
    tables.mkdir()
    drawn = hpcvdj.generate("human_trb_m15", 2_400, seed=3, productive=True, backend="cpu")
    for k, rows in enumerate((1_500, 100, 800)):
        part = drawn.slice(1_600 * (k > 0) + 100 * (k > 1), rows).select(
            ["sequence_id", "v_call", "j_call", "junction"]
        )
        pacsv.write_csv(part, tables / f"d{k}.tsv", pacsv.WriteOptions(delimiter="\t"))
    words = ["analyze", tables, "-m", "human_trb_m15", "--backend", "cpu", "--without", "report", "-o"]
    for name in ("ContaminationSettings", "SharingSettings"):
        monkeypatch.setattr(steps, name, partial(getattr(steps, name), draws=10_000))
    hpcvdj_command(*words, tmp_path / "ranks1")
    done = launch(2, "-c", FEW_DRAWS, *words, tmp_path / "ranks2")
    assert done.returncode == 0, done.stderr
    written = {}
    for ranks in (1, 2):
        output = tmp_path / f"ranks{ranks}"
        paths = [path for path in output.rglob("*") if path.name.endswith((".tsv", ".tsv.gz"))]
        written[ranks] = {path.relative_to(output): path.read_bytes() for path in paths}
    assert len(written[1]) > 6
    assert written[1] == written[2]
