"""Random problems for the tests: short segments, and junctions with every hard case among them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from hpcvdj.counting.config import Config
from hpcvdj.errors import choice, choices
from hpcvdj.kernels.backends import open_backend
from hpcvdj.kernels.pathways.methods import PathwayMethod
from hpcvdj.recombination.germline import Germline, d_forms, from_sequences, j_forms, v_forms
from hpcvdj.recombination.repertoire import LONGEST_CDR3, Problem, Repertoire
from hpcvdj.repertoires.inputs import Inputs, tables_of
from hpcvdj.repertoires.junctions import Junctions, read_junctions
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.table import Table
from hpcvdj.runs.partition import block_range
from hpcvdj.runs.run import Run
from hpcvdj.values.compute_tables import compute_tables
from hpcvdj.values.summary import Summary

METHODS = list(choices(PathwayMethod))

bases = st.text("ACGT", max_size=7)
"""A segment; empty and one-letter ones are among them."""


def junction_table(rows: list[tuple[str, str, str]]) -> pa.RecordBatch:
    """A batch of (v_call, j_call, cdr3) rows as junctions."""
    return pa.RecordBatch.from_pydict(
        {
            "sequence_id": [f"s{k}" for k in range(len(rows))],
            "v_call": [row[0] for row in rows],
            "j_call": [row[1] for row in rows],
            "junction": [f"TGT{row[2]}TTT" for row in rows],
        }
    )


def method_named(name: str) -> PathwayMethod:
    """The method of that name."""
    return choice(PathwayMethod, name, "method")


def junctions_of_rows(
    germline: Germline, rows: list[tuple[str, str, str]], longest: int = LONGEST_CDR3, **options
) -> Junctions:
    """The junctions of (v_call, j_call, cdr3) rows."""
    reading = Reading(longest=longest, **options)
    return read_junctions([junction_table(rows)], germline, reading, [Table(Path("rows"))])


def repertoire_of_rows(germline: Germline, rows: list[tuple[str, str, str]], **options) -> Repertoire:
    """The repertoire of (v_call, j_call, cdr3) rows."""
    return junctions_of_rows(germline, rows, **options).repertoire


def repertoire_of_file(path: Path, germline: Germline, longest: int = LONGEST_CDR3) -> Repertoire:
    """The repertoire of a table file."""
    return Inputs.of_file(path, Reading(longest=longest)).read(germline).repertoire


def sample(repertoire: Repertoire, size: int, seed: int = 1) -> Repertoire:
    """Some random sequences of a repertoire."""
    rows = np.random.default_rng(seed).choice(len(repertoire), size, replace=False)
    return repertoire.subset(np.sort(rows))


@dataclass
class Case:
    """A germline and the junctions to count with it."""

    germline: Germline
    rows: list[tuple[str, str, str]]

    def problem(self, max_n: int, d_forms: str = "paper", **options) -> Problem:
        """The problem of this case."""
        return Problem(repertoire_of_rows(self.germline, self.rows, **options), self.germline, max_n, d_forms)


@st.composite
def cases(draw, with_d: bool | None = None) -> Case:
    """A germline of up to 2 V, 3 D, 2 J segments, and junctions made from it or at random."""
    v = draw(st.lists(bases, min_size=1, max_size=2))
    j = draw(st.lists(bases, min_size=1, max_size=2))
    most_d = 0 if with_d is False else 3
    d = draw(st.lists(st.text("ACGT", min_size=1, max_size=6), min_size=1 if with_d else 0, max_size=most_d))
    max_p = draw(st.integers(0, 4))
    germline = from_sequences(v, d, j, max_p=max_p)
    rows = [draw(_row(v, d, j, max_p)) for _ in range(draw(st.integers(1, 6)))]
    # The shortest there is, and V and J forms that overlap: the whole of one after the whole of the other.
    rows += [("V1", "J1", ""), ("V1", "J1", v[0] + j[0])]
    return Case(germline, rows)


@st.composite
def _row(draw, v: list[str], d: list[str], j: list[str], max_p: int) -> tuple[str, str, str]:
    a, b = draw(st.integers(0, len(v) - 1)), draw(st.integers(0, len(j) - 1))
    if draw(st.integers(0, 3)) == 0:  # most such sequences have no pathway with few n-nucleotides
        return f"V{a + 1}", f"J{b + 1}", draw(st.text("ACGT", max_size=30))
    n = st.text("ACGT", max_size=3)
    middle = draw(st.sampled_from(d_forms(draw(st.sampled_from(d)), "paper", max_p))) if d else ""
    parts = (
        draw(st.sampled_from(v_forms(v[a], max_p))),
        draw(n),
        middle,
        draw(n),
        draw(st.sampled_from(j_forms(j[b], max_p))),
    )
    return f"V{a + 1}", f"J{b + 1}", "".join(parts)


def count_with(
    problem: Problem, method: str, *, ranks: int = 1, threads_per_block: int = 4, backend: str = "cpu"
) -> np.ndarray:
    """Counters of a method on a backend, its tasks split over `ranks` as the driver splits them."""
    opened, chosen = open_backend(backend), method_named(method)
    kernel = opened.load(chosen, problem, threads_per_block)
    counters = np.zeros((len(problem.repertoire), problem.max_n + 1), dtype=np.uint64)
    for unit in chosen.units(problem, opened.unit_work, range(problem.columns)):
        rows = slice(unit.rows.start, unit.rows.stop)
        columns = slice(unit.n_lengths.start, unit.n_lengths.stop)
        for rank in range(ranks):
            counters[rows, columns] += kernel(unit, *block_range(unit.tasks, threads_per_block, rank, ranks))
    return counters


def count_to(
    target: Path,
    tables: Path | list[Path],
    germline: Germline,
    config: Config | None = None,
    *,
    rows: int = 0,
    run: Run | None = None,
    strict: bool = False,
    **options,
) -> Summary:
    """Count one table, or a list of tables together, into `target`, in slices of `rows` rows if that is not 0.

    run      its ranks and signals; `options` are those of `Run.to`
    """
    run = (run or Run()).to(target, **options)
    reading = Reading(strict=strict)
    inputs = tables_of(tables, reading) if isinstance(tables, list) else Inputs.of_file(tables, reading)
    return compute_tables(inputs, germline, config or Config(max_n=2), run, rows)


def signalled_run() -> Run:
    """A run that had a signal."""
    run = Run()
    run.request.name = "SIGTERM"
    return run
