"""The comparison of every method with the reference, sequence by sequence, on a sample of a repertoire."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.counting.config import Config
from hpcvdj.errors import InputError, choices
from hpcvdj.kernels.pathways.methods import PathwayMethod
from hpcvdj.kernels.quantities import Pathways
from hpcvdj.recombination.germline import Germline, d_forms, j_forms, v_forms
from hpcvdj.recombination.pathways import algorithm_1, direct_sum
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.species import warn_of_rows
from hpcvdj.repertoires.tally import tally_of
from hpcvdj.runs.progress import Progress, told_if_slow
from hpcvdj.runs.run import Run
from hpcvdj.values.compute import count_in_memory


@dataclass(frozen=True)
class Check:
    """The comparison of a method with the reference: how many counters were compared, and how many differ.

    `first` describes the first counter that differs: CDR3, V, J, n-length and both counts.
    """

    name: str
    max_n: int
    counters: int
    differences: int
    first: str = ""


def sampled_problem(
    run: Run, inputs: Inputs, germline: Germline, max_n: int, sample: int | None, seed: int, d_forms: str
) -> tuple[Problem, int]:
    """Return a problem with `sample` random sequences of a table (None: all), and the number of all, on every rank.

    Warns of excluded rows.  Raises InputError if no row is left.
    """

    def read() -> Junctions:
        junctions = inputs.read(germline)
        tally = tally_of(junctions)
        if not len(junctions):
            raise InputError(f"{inputs.path}: {tally.exclusions}")
        warn_of_rows(tally, germline, inputs.names)
        return junctions

    with told_if_slow(f"reading {inputs.path.name}", shown=run.is_root):
        junctions = run.on_root(read)
    everything = chosen = run.broadcast(junctions.repertoire if junctions is not None else None)
    if sample is not None:
        rows = np.random.default_rng(seed).choice(len(everything), size=min(sample, len(everything)), replace=False)
        chosen = everything.subset(np.sort(rows))
    return Problem(chosen, germline, max_n, d_forms), len(everything)


def verify(problem: Problem, run: Run, *, literal_max_n: int = 1) -> list[Check]:
    """Compare every method, and the literal Algorithm 1 up to `literal_max_n`, with the direct sum in Python.

    Root computes the reference, and every rank counts.  This suits a sample: the reference takes about ten milliseconds
    per sequence, and Algorithm 1 about half a second per V–J pair at n-length 1.
    """
    checks = []
    with told_if_slow("computing the reference in plain Python", shown=run.is_root):
        expected = reference(problem) if run.is_root else np.zeros((0, 0), np.uint64)
    if run.is_root:
        counters = literal(problem, min(literal_max_n, problem.max_n))
        checks.append(_compare("Algorithm 1, literally", problem, expected, counters))
    for name, method in choices(PathwayMethod).items():
        if not isinstance(method().quantity(), Pathways):
            continue
        values = count_in_memory(problem, Config(max_n=problem.max_n, method=name, d_forms=problem.d_forms), run)
        if values is not None:
            checks.append(_compare(name, problem, expected, values))
    return checks


def reference(problem: Problem) -> NDArray[np.uint64]:
    """Compute the direct sum in plain Python, uint64 [sequences, n-lengths]."""
    repertoire = problem.repertoire
    rows = [
        direct_sum(repertoire.cdr3(row), *_forms(problem, pair), problem.max_n)
        for pair in range(len(repertoire.pairs))
        for row in repertoire.rows_of(pair)
    ]
    return np.array(rows, dtype=np.uint64).reshape(len(rows), problem.max_n + 1)


def literal(problem: Problem, max_n: int) -> NDArray[np.uint64]:
    """Compute Algorithm 1 literally, uint64 [sequences, max_n + 1]."""
    repertoire = problem.repertoire
    out = np.zeros((len(repertoire), max_n + 1), dtype=np.uint64)
    pairs = len(repertoire.pairs)
    with Progress(pairs, "V-J pairs", shown=True, what="Algorithm 1 in plain Python") as progress:
        for pair in range(pairs):
            rows = repertoire.rows_of(pair)
            in_vivo = [repertoire.cdr3(row) for row in rows]
            v, d, j = _forms(problem, pair)
            for m in range(max_n + 1):
                out[rows.start : rows.stop, m] = algorithm_1(in_vivo, v, d, j, m)
            progress.advance(1)
    return out


def _forms(problem: Problem, pair: int) -> tuple[list[str], list[str] | None, list[str]]:
    v, j = problem.repertoire.pairs[pair]
    germline = problem.germline
    genes = germline.d_segments(v.locus)
    d = [form for gene in genes for form in d_forms(gene.sequence, problem.d_forms, germline.max_p)]
    return v_forms(v.sequence, germline.max_p), d if genes else None, j_forms(j.sequence, germline.max_p)


def _compare(name: str, problem: Problem, expected: NDArray[np.uint64], values: NDArray[np.uint64]) -> Check:
    columns = values.shape[1]
    wrong = np.argwhere(expected[:, :columns] != values)
    first = ""
    if len(wrong):
        row, m = (int(k) for k in wrong[0])
        v, j = problem.repertoire.pairs[np.searchsorted(problem.repertoire.offsets, row, side="right") - 1]
        first = (
            f"{problem.repertoire.cdr3(row)} {v.allele} {j.allele} m={m}: reference {expected[row, m]}, "
            f"{name} {values[row, m]}"
        )
    return Check(name, columns - 1, values.size, len(wrong), first)
