"""A new method or a new reader is one class: commands, help and results know it without further declarations."""

import json
import math

import h5py
import numpy as np
import pandas as pd
import pytest

from hpcvdj.repertoires.readers import TableReader
from hpcvdj.results.reader import Result
from tests.cli.test_mpiexec import MPIEXEC
from tests.commands import refused, run, succeeded
from tests.conftest import GERMLINE, ROOT, SMALL

METHOD = """
import sys
from dataclasses import replace
from hpcvdj.kernels.pathways.methods import Direct

class Halves(Direct):
    name = "halves"

    def units(self, problem, unit_work, columns):
        for unit in super().units(problem, unit_work, columns):
            middle = (unit.rows.start + unit.rows.stop) // 2
            for rows in (range(unit.rows.start, middle), range(middle, unit.rows.stop)):
                yield replace(unit, rows=rows, tasks=len(rows))
"""

QUANTITY = """
import numpy as np
from hpcvdj.kernels.kernel import Kernel, Unit
from hpcvdj.kernels.pathways.direct_cpu import DirectKernel
from hpcvdj.kernels.pathways.methods import Direct
from hpcvdj.kernels.quantities import Quantity

class Thirds(Quantity):
    name = "thirds"
    dataset = "thirds"
    dtype = np.float64
    axis = "1"
    meaning = "a third of the pathways of each junction"
    excluded = "thirds_excluded"
    number = float

    def width(self, max_n):
        return 1

    def columns(self, width):
        return ["third"]

class ThirdsKernel(Kernel):
    def __init__(self, problem, threads):
        self.counts, self.columns = DirectKernel(problem, threads), range(problem.max_n + 1)

    def start(self, unit, first, last):
        counters = self.counts.start(Unit(unit.pairs, unit.rows, self.columns, unit.tasks), first, last)()
        values = counters.sum(axis=1, keepdims=True) / 3
        return lambda: values

class InThirds(Direct):
    name = "in-thirds"
    quantity = Thirds
    kernels = {"cpu": "__main__.ThirdsKernel"}

    def units(self, problem, unit_work, columns):
        for unit in super().units(problem, unit_work, columns):
            yield Unit(unit.pairs, unit.rows, range(1), unit.tasks)
"""

READER = """
import sys
import pyarrow.csv as pacsv
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.readers import TableReader

class Semicolons(TableReader):
    name = "semicolons"
    summary = "columns separated by semicolons"
    suffixes = (".ssv",)

    @staticmethod
    def recognises(head):
        return b";" in head.partition(b"\\n")[0]

    @property
    def given_columns(self):
        return open(self.path).readline().strip().split(";")

    def given_batches(self, columns):
        table = pacsv.read_csv(self.path, parse_options=pacsv.ParseOptions(delimiter=";"))
        yield from map(as_strings, table.select(columns).to_batches())
"""


@pytest.mark.slow
def test_a_method_is_one_class(tmp_path):
    shown, *counts, verified = run(
        METHOD,
        ("count", "--help-all"),
        ("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "o.h5", "--method", "halves", "--max-n", 3),
        ("count", SMALL, "-g", GERMLINE, "-o", tmp_path / "p.h5", "--max-n", 3),
        ("verify", SMALL, "-g", GERMLINE, "--sample", 3, "--max-n", 1),
    )
    assert "|halves" in succeeded(*shown)
    for count in counts:
        succeeded(*count)
    assert " halves " in succeeded(*verified)
    with Result(tmp_path / "o.h5") as one, Result(tmp_path / "p.h5") as other:
        assert json.loads(one.provenance["config"])["method"] == "halves"
        assert one.counters[:].tolist() == other.counters[:].tolist()
        assert len(one.dataset("timings/tasks")) == 2


@pytest.mark.slow
def test_a_method_without_a_kernel_for_the_backend(tmp_path):
    program = METHOD.replace("    def units", '    kernels = {"cuda": "nowhere.Kernel"}\n\n    def units')
    # Quiet, as a busy machine may say that it still reads the table.
    counted = "-q", "count", SMALL, "-g", GERMLINE
    (done,) = run(program, (*counted, "-o", tmp_path / "o.h5", "--method", "halves", "--backend", "cpu"))
    assert "--method halves has no kernel for --backend cpu" in refused(*done)
    assert not list(tmp_path.iterdir())


@pytest.mark.exhaustive
def test_a_quantity_is_one_class(tmp_path):
    def count(name, *options):
        return "count", SMALL, "-g", GERMLINE, "-o", tmp_path / name, "--max-n", 3, *options

    def values(name):
        # This process does not know the quantity.
        with h5py.File(tmp_path / name) as file:
            return file["thirds"][:][np.argsort(file["sequences/row"])], dict(file.attrs)

    thirds, slices = ("--method", "in-thirds"), ("--batch-rows", 100)
    pathways, counted, parts, exported, verified, *others = run(
        QUANTITY,
        count("pathways.h5"),
        count("o.h5", *thirds),
        count("parts.h5", *thirds, *slices),
        ("export", tmp_path / "o.h5", "-o", tmp_path / "o.tsv"),
        ("verify", SMALL, "-g", GERMLINE, "--sample", 3, "--max-n", 1),
        ("report", tmp_path / "o.h5", "-o", tmp_path / "r.html"),
    )
    succeeded(*pathways)
    with Result(tmp_path / "pathways.h5") as result:
        expected = result.all().total[np.argsort(result.row)][:, None] / 3
    assert "thirds     258 of 500 junctions have a value other than 0" in succeeded(*counted)
    one, facts = values("o.h5")
    assert one.dtype == np.float64
    assert (one == expected).all()
    assert facts["quantity"] == b"thirds"
    assert math.isclose(float(json.loads(facts["sums"])[0]), expected.sum(), rel_tol=1e-14)
    (ranks,) = run(QUANTITY, count("ranks.h5", *thirds), launcher=[MPIEXEC, "-n", "3"])
    (both,) = run(QUANTITY, count("both.h5", *thirds, *slices), launcher=[MPIEXEC, "-n", "2"])
    for name, done in (("parts.h5", parts), ("ranks.h5", ranks), ("both.h5", both)):
        assert "thirds " in succeeded(*done)
        other, own = values(name)
        assert one.tobytes() == other.tobytes(), name
        assert math.isclose(*(float(json.loads(each["sums"])[0]) for each in (facts, own)), rel_tol=1e-14), name
    succeeded(*exported)
    table = pd.read_csv(tmp_path / "o.tsv", sep="\t", float_precision="round_trip")
    assert (table["third"].to_numpy() == one[:, 0]).all()
    assert table["thirds_excluded"].isna().all()
    for done in others:
        assert "o.h5: has thirds, not pathways" in refused(*done)
    assert "in-thirds" not in succeeded(*verified)


@pytest.mark.slow
def test_a_reader_is_one_class(tmp_path):
    table = tmp_path / "in" / "a.ssv"
    table.parent.mkdir()
    table.write_text(SMALL.read_text().replace("\t", ";"))
    shown, counted, exported, folder = run(
        READER,
        ("count", "--help-all"),
        ("count", table, "-g", GERMLINE, "-o", tmp_path / "o.h5"),
        ("export", tmp_path / "o.h5", "-o", tmp_path / "o.tsv"),
        ("count", table.parent, "-g", GERMLINE, "-o", tmp_path / "out"),
    )
    assert "*.ssv" in succeeded(*shown)
    assert "500 read = 500 counted" in succeeded(*counted)
    succeeded(*exported)
    assert "500 read = 500 counted" in succeeded(*folder)
    assert (tmp_path / "out" / "a.h5").exists()


def test_the_page_describes_every_reader():
    from hpcvdj.errors import choices

    page = (ROOT / "docs" / "file_format.md").read_text()
    for kind in choices(TableReader).values():
        assert kind.summary in page, kind.name
