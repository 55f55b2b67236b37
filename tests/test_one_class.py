"""A new method or a new reader is one class: commands, help and results know it without further declarations."""

import json
import subprocess
import sys

from hpcvdj.repertoires.tables import TableReader
from hpcvdj.results.reader import Result
from tests.conftest import GERMLINE, ROOT, SMALL

METHOD = """
import sys
from hpcvdj.kernels.pathways.methods import Direct

class Halves(Direct):
    name = "halves"
    summary = "every unit in two halves"

    def units(self, problem, unit_work, missing):
        for n_lengths, rows in missing:
            middle = (rows.start + rows.stop) // 2
            yield from super().units(problem, unit_work, [(n_lengths, range(rows.start, middle))])
            yield from super().units(problem, unit_work, [(n_lengths, range(middle, rows.stop))])

from hpcvdj.cli import main
main()
"""

READER = """
import sys
import pyarrow.csv as pacsv
from hpcvdj.repertoires.tables import TableReader, as_strings

class Semicolons(TableReader):
    name = "semicolons"
    summary = "columns separated by semicolons"
    suffixes = (".ssv",)

    @staticmethod
    def recognises(head):
        return b";" in head.partition(b"\\n")[0]

    @property
    def columns(self):
        return open(self.path).readline().strip().split(";")

    def _batches(self, columns):
        table = pacsv.read_csv(self.path, parse_options=pacsv.ParseOptions(delimiter=";"))
        yield from map(as_strings, table.select(columns).to_batches())

from hpcvdj.cli import main
main()
"""


def run(program, *arguments):
    """The output of a program with these arguments, which must succeed."""
    words = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={"COLUMNS": "200", "PATH": ""})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_method_is_one_class(tmp_path):
    shown = run(METHOD, "count", "--help")
    assert "halves: every unit in two halves" in " ".join(shown.replace("│", " ").split())
    run(METHOD, "count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5", "--method", "halves", "--max-n", 3)
    run(METHOD, "count", SMALL, "-g", GERMLINE, "-o", tmp_path / "p.h5", "--max-n", 3)
    assert " halves " in run(METHOD, "verify", SMALL, "-g", GERMLINE, "--sample", 3, "--max-n", 1)
    with Result(tmp_path / "o.h5") as one, Result(tmp_path / "p.h5") as other:
        assert json.loads(one.provenance["config"])["method"] == "halves"
        assert one.counters[:].tolist() == other.counters[:].tolist()
        assert len(one.dataset("timings/tasks")) == 2


def test_a_method_without_a_kernel_for_the_backend(tmp_path):
    program = METHOD.replace("    def units", '    kernels = {"cuda": "nowhere.Kernel"}\n\n    def units')
    words = [
        sys.executable,
        "-c",
        program,
        "count",
        SMALL,
        "-g",
        GERMLINE,
        "-o",
        tmp_path / "o.h5",
        "--method",
        "halves",
    ]
    done = subprocess.run(
        [*map(str, words), "--backend", "cpu"], capture_output=True, text=True, check=False, env={"PATH": ""}
    )
    assert done.returncode == 2
    assert "--method halves has no kernel for --backend cpu" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_reader_is_one_class(tmp_path):
    table = tmp_path / "in" / "a.ssv"
    table.parent.mkdir()
    table.write_text(SMALL.read_text().replace("\t", ";"))
    assert "*.ssv" in run(READER, "count", "--help")
    shown = run(READER, "count", table, "-g", GERMLINE, "-o", tmp_path / "o.h5")
    assert "500 read = 500 counted" in shown
    run(READER, "export", tmp_path / "o.h5", "-o", tmp_path / "o.tsv")
    assert "500 read = 500 counted" in run(READER, "count", table.parent, "-g", GERMLINE, "-o", tmp_path / "out")
    assert (tmp_path / "out" / "a.h5").exists()


def test_the_page_describes_every_reader():
    from hpcvdj.errors import choices

    page = (ROOT / "docs" / "file_format.md").read_text()
    for kind in choices(TableReader).values():
        assert kind.summary in page, kind.name
