"""Real launches from a plain pytest: the commands under mpiexec, and tests/mpi at 1 to 4 ranks.

Not in tests/mpi: pytest-mpi takes all that lies in a folder of that name for tests to run on every rank.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hpcvdj.results.reader import Result
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


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_rank_tests(ranks):
    """The tests of test_ranks.py, on every rank, under both guards against a stuck collective."""
    arguments = ["-m", "mpi4py", "-m", "pytest", "--with-mpi", "--timeout=60", "--timeout-method=thread"]
    done = launch(ranks, *arguments, "-q", "-p", "no:cacheprovider", ROOT / "tests" / "mpi" / "test_ranks.py")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    # Ranks write to one pipe, so their closing lines may run into one another: count, do not match lines.
    assert done.stdout.count(" passed") == ranks
    assert " failed" not in done.stdout
    assert " skipped" not in done.stdout


def counted(tmp_path, ranks, *options):
    path = tmp_path / f"{ranks}.h5"
    done = launch(ranks, "-m", "hpcvdj", "count", SMALL, "-g", GERMLINE, "-o", path, *options)
    assert done.returncode == 0, done.stderr
    with Result(path) as result:
        assert result.provenance["mpi_size"] == ranks
        return result.counters[:], done


@pytest.mark.parametrize("method", ["direct", "bitwise"])
def test_result_files_do_not_depend_on_ranks(tmp_path, method):
    one, _ = counted(tmp_path, 1, "--method", method, "--max-n", "2")
    for ranks in (2, 3, 4, 7):
        many, done = counted(tmp_path, ranks, "--method", method, "--max-n", "2")
        assert (one == many).all()
        assert done.stdout.count("500 counted") == 1, "root alone speaks"


def test_slices_do_not_depend_on_ranks(tmp_path):
    """More ranks than slices among them; the parts are the ranks' own work."""
    whole, _ = counted(tmp_path, 1, "--max-n", "4")
    with Result(tmp_path / "1.h5") as result:
        rows = result.row
    for ranks in (1, 2, 3, 7):
        (tmp_path / f"{ranks}.h5").unlink(missing_ok=True)
        many, done = counted(tmp_path, ranks, "--max-n", "4", "--batch-rows", "120")
        with Result(tmp_path / f"{ranks}.h5") as result:
            assert (many[np.argsort(result.row)] == whole[np.argsort(rows)]).all()
        assert done.stdout.count("500 counted") == 1, "root alone speaks"
        assert len(list((tmp_path / f"{ranks}.h5.parts").glob("part-*.h5"))) == 5


@pytest.fixture(scope="module")
def repertoires(tmp_path_factory):
    """Five tables of very different sizes with the same ids."""
    folder = tmp_path_factory.mktemp("repertoires")
    head, *rows = SMALL.read_text().splitlines(keepends=True)
    for name, (first, last) in {"a": (0, 10), "b": (5, 300), "c": (300, 301), "d": (0, 60), "e": (100, 220)}.items():
        (folder / f"{name}.tsv").write_text(head + "".join(rows[first:last]))
    return folder


@pytest.mark.parametrize(
    "options", [(), ("--batch-rows", "70"), ("--method", "bitwise")], ids=["whole", "parts", "bitwise"]
)
def test_tables_together_do_not_depend_on_ranks(tmp_path, repertoires, options):
    """More ranks than tables or parts among them; every table alone gives the same."""
    alone = []
    for path in sorted(repertoires.iterdir()):
        target = tmp_path / f"{path.stem}.h5"
        done = launch(1, "-m", "hpcvdj", "count", path, "-g", GERMLINE, "-o", target, "--max-n", "2")
        assert done.returncode == 0, done.stderr
        with Result(target) as result:
            alone.append(result.counters[:][np.argsort(result.row)])
    for ranks in (1, 2, 3, 7):
        target = tmp_path / f"{ranks}.h5"
        done = launch(ranks, "-m", "hpcvdj", "count", repertoires, "-g", GERMLINE, "-o", target, "--max-n", "2",
                      "--together", *options)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("tables     5, of 5 repertoire(s)") == 1, "root alone speaks"
        with Result(target) as result:
            order = np.argsort(result.row)
            assert (result.counters[:][order] == np.concatenate(alone)).all()
            whose = result.repertoire_id[order].tolist()
        assert whose == [name for name, size in zip((b"a", b"b", b"c", b"d", b"e"), map(len, alone), strict=True)
                         for _ in range(size)]  # fmt: skip


def test_a_bad_table_of_many_is_one_line_whoever_reads_it(tmp_path, repertoires):
    for name in "ad":
        bad = tmp_path / name / "bad.tsv"
        bad.parent.mkdir()
        head, *rows = (repertoires / f"{name}.tsv").read_text().splitlines(keepends=True)
        bad.write_text(head + "".join(rows) + "one\ttwo\n")
        done = launch(3, "-m", "hpcvdj", "count", repertoires, bad, "-g", GERMLINE, "-o", tmp_path / "o.h5",
                      "--together")  # fmt: skip
        assert done.returncode == 2
        assert f"bad.tsv: line {len(rows) + 2}: 2 values for 8 columns" in done.stderr
        assert done.stderr.count("error:") == 1
        assert "Traceback" not in done.stderr
        assert not list(tmp_path.glob("*o.h5*"))


def test_bad_input_is_one_line_from_one_rank(tmp_path):
    done = launch(3, "-m", "hpcvdj", "count", tmp_path / "none.tsv", "-g", GERMLINE, "-o", tmp_path / "o.h5")
    assert done.returncode == 2
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr


def test_a_usage_error_is_printed_once():
    done = launch(3, "-m", "hpcvdj", "count", "--nothing")
    assert done.returncode == 2
    assert (done.stdout + done.stderr).count("No such option") == 1


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_raises_ends_all(tmp_path, rank):
    """One rank fails while the others wait for it in a collective."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from hpcvdj.runs.ranks import world\n"
        "import hpcvdj.kernels.pathways.direct_cpu as direct\n"
        "right = direct.DirectKernel.__call__\n"
        "def wrong(self, unit, first, last):\n"
        f"    if unit.tasks and last > first and world().rank == {rank}:\n"
        "        raise ZeroDivisionError('planted')\n"
        "    return right(self, unit, first, last)\n"
        "direct.DirectKernel.__call__ = wrong\n"
        "from hpcvdj.cli import main\n"
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


def test_a_rank_that_hangs_is_given_up(tmp_path):
    """Stopped by SIGSTOP in the midst of counting; what was saved before is there to resume from."""
    output = tmp_path / "o.h5"
    options = [
        "--method",
        "bitwise",
        "--max-n",
        "4",
        "--backend",
        "cpu",
        "--patience",
        "3",
        "--checkpoint-every",
        "0.1",
    ]
    words = [MPIEXEC, "-n", "3", sys.executable, "-m", "hpcvdj", "-q", "count", SMALL, "-g", GERMLINE, "-o", output]
    running = subprocess.Popen(
        [*map(str, words), *options], stderr=subprocess.PIPE, text=True, env={**os.environ, "NUMBA_NUM_THREADS": "1"}
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("o.h5.checkpoint/part-*.zip")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    victim = ranks_of(running.pid)[1]
    os.kill(victim, signal.SIGSTOP)
    _, err = running.communicate(timeout=60)
    assert running.returncode != 0
    said = re.search(r"rank ([02]) waited (\d+) s for the other ranks", err)
    assert said, err
    assert int(said[2]) == 3 + int(said[1]), "ranks lose patience a second apart"
    assert "Traceback" not in err
    assert not output.exists()
    done = launch(2, "-m", "hpcvdj", "count", SMALL, "-g", GERMLINE, "-o", output, *options[:6], "--resume")
    assert done.returncode == 0, done.stderr
    direct, _ = counted(tmp_path, 1, "--max-n", "4")
    with Result(output) as result:
        assert (result.counters[:] == direct).all()


def test_an_uncaught_exception_in_a_script_ends_all(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from hpcvdj.runs.ranks import world\n"
        "if world().rank == 1:\n    raise ValueError('planted')\nworld().barrier()\n"
    )
    done = launch(2, program, timeout=60)
    assert done.returncode != 0
    assert "ValueError: planted" in done.stderr


def test_info_names_every_rank():
    done = launch(3, "-m", "hpcvdj", "info")
    assert done.returncode == 0
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("rank")] == ["0", "1", "2"]
