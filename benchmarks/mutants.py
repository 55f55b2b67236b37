"""Which random mutants of a module do the tests of its own folder catch?

pip install "mutmut==3.8.*"
python benchmarks/mutants.py --output mutants.csv

mutmut proposes the mutants; each is tested in a copy of the repository, so the clone stays as it is.  A mutant changes
one place of a function, or a number: no text, no annotation, no assertion, nothing that is raised.  Those that put None
in the place of a value or drop a positional argument are left out: almost any test that comes by catches them.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import libcst as cst
from _common import ROOT, record
from libcst import matchers
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

FIRST = {
    "annotation/statistics": "test_statistics",
    "association/law": "test_law",
    "association/multiplicity": "test_multiplicity",
    "enrichment/statistics": "test_statistics",
    "enrichment/enrich": "test_enrich",
    "chance/p_values": "test_p_values",
    "values/input_slices": "test_slices",
    "runs/run": "test_run",
    "recombination/likely": "test_likely",
}
"""The file of tests that most likely catches a mutant of each module, and runs first."""

UNDER_MPI = {"runs/run": "tests/mpi/test_ranks.py -k dealt"}
"""Tests that need ranks."""

SKIPPED = cst.Annotation, cst.Assert, cst.BaseString, cst.Decorator, cst.Import, cst.ImportFrom, cst.Raise

UNCHANGED, SURVIVED = "none", "survived"

SECONDS = 400
"""Tests of a folder that take longer have caught a mutant that hangs."""


@dataclass(frozen=True)
class Mutant:
    """A change of one place, and the module with it."""

    module: str
    line: int
    change: str
    source: str


def changes(node: cst.CSTNode) -> list[cst.CSTNode]:
    """What mutmut makes of a node."""
    made = [new for kind, operator in mutation_operators if isinstance(node, kind) for new in operator(node)]
    return [new for new in made if _nones(new) <= _nones(node) and _positional(new) >= _positional(node)]


def _nones(node: cst.CSTNode) -> int:
    return len(matchers.findall(node, matchers.Name("None")))


def _positional(node: cst.CSTNode) -> int:
    return len(matchers.findall(node, matchers.Arg(keyword=None)))


def places(node: cst.CSTNode, in_function: bool = False) -> Iterator[tuple[cst.CSTNode, list[cst.CSTNode]]]:
    """The nodes below one that can be changed, and into what."""
    if isinstance(node, SKIPPED):
        return
    if (in_function or isinstance(node, cst.BaseNumber)) and (changed := changes(node)):
        yield node, changed
    for child in node.children:
        yield from places(child, in_function or isinstance(node, cst.FunctionDef))


def mutants(module: str, number: int, seed: int) -> list[Mutant]:
    """Mutants of random places, one of each, from the top of the module to its end."""
    wrapper = MetadataWrapper(cst.parse_module((ROOT / "hpcvdj" / f"{module}.py").read_text()))
    lines, tree = wrapper.resolve(PositionProvider), wrapper.module
    rng = random.Random(f"{seed} {module}")
    candidates = list(places(tree))
    chosen = []
    for node, changed in rng.sample(candidates, min(number, len(candidates))):
        new = rng.choice(changed)
        change = " -> ".join(" ".join(tree.code_for_node(part).split()) for part in (node, new))
        chosen.append(Mutant(module, lines[node].start.line, change, tree.deep_replace(node, new).code))
    return sorted(chosen, key=lambda mutant: mutant.line)


def commands(module: str) -> Iterator[tuple[str, list[str]]]:
    """The tests of a module, those that most likely catch a mutant first."""
    folder = f"tests/{Path(module).parent}"
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "--timeout=120"]
    for kind, chosen in ("quick", "not slow"), ("slow", "slow and not exhaustive"):
        yield kind, [*pytest, "-m", chosen, f"{folder}/{FIRST[module]}.py", folder]
    if module in UNDER_MPI:
        ranks = ["mpiexec", "-n", "2", sys.executable, "-m", "mpi4py", *pytest[1:], "--with-mpi"]
        yield "mpi", ranks + shlex.split(UNDER_MPI[module])


def outcome(mutant: Mutant, copy: Path) -> str:
    """The tests that caught a mutant, or `survived`."""
    path = copy / "hpcvdj" / f"{mutant.module}.py"
    original = path.read_text()
    path.write_text(mutant.source)
    try:
        for kind, command in commands(mutant.module):
            # Bytecode is found by the second of its source.
            for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
                compiled.unlink()
            environment = {**os.environ, "PYTHONPATH": str(copy)}
            with tempfile.TemporaryFile() as output:
                child = subprocess.Popen(
                    command, cwd=copy, env=environment, stdout=output, stderr=output, start_new_session=True
                )
                try:
                    # 5: no test is of this kind.
                    if child.wait(SECONDS) not in (0, 5):
                        return kind
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
                    return f"{kind}, hung"
    finally:
        path.write_text(original)
    return SURVIVED


def measured(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Rows: the outcome of each mutant, after each module itself, which must survive."""
    drawn = [
        mutant
        for module in options.modules
        for mutant in (
            Mutant(module, 0, UNCHANGED, (ROOT / "hpcvdj" / f"{module}.py").read_text()),
            *mutants(module, options.mutants, options.seed),
        )
    ]
    copies = SimpleQueue[Path]()

    def tested(mutant: Mutant) -> dict[str, object]:
        copy = copies.get()
        try:
            return {
                "module": mutant.module,
                "line": mutant.line,
                "change": mutant.change,
                "outcome": outcome(mutant, copy),
            }
        finally:
            copies.put(copy)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.processes) as pool:
        for number in range(options.processes):
            # The path of a clone, as it is named in tests, and the times of files, by which numba finds its kernels.
            copies.put(
                Path(shutil.copytree(ROOT, f"{folder}/{number}/hpcvdj", symlinks=True, ignore=lambda *_: [".git"]))
            )
        for row in pool.map(tested, drawn):
            if row["change"] == UNCHANGED and row["outcome"] != SURVIVED:
                raise SystemExit(f"{row['module']}: its tests fail without a change ({row['outcome']})")
            yield row


if __name__ == "__main__":
    record(
        __doc__,
        measured,
        modules=(list(FIRST), "modules of hpcvdj/, which FIRST lists"),
        mutants=(12, "mutants of each"),
        seed=(1, "of the random places"),
        processes=(2, "mutants tested at a time"),
    )
