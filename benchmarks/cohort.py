"""What do all commands find in a cohort with planted signals, what else, how long do they take, how much memory?

python benchmarks/cohort.py --individuals 5 --junctions 5000 --output results/cohort/raw.csv

Makes a cohort (`_cohort.py`), runs each command on it in a process of its own, and writes a row for each: wall and
processor time, the largest resident memory, how many of the planted signals it found, and how many others at q < 0.05.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _common import HPCVDJ, ROOT, record, run

MOST_Q = 0.05

PUBLIC, CLUSTER = "public", "cluster"
"""Kinds of planted signals in truth.tsv."""

Found = tuple[int, int, int]
"""Planted signals, those that were found, and others that were."""


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


STEPS = ["pgen", "infer", "infer-selection", "contamination", "sharing", "enrich", "report", "analyze"]


def clonotype(row: dict[str, str]) -> tuple[str, str, str]:
    """V gene, J gene, amino acids."""
    return row["v_call"].partition("*")[0], row["j_call"].partition("*")[0], row["junction_aa"]


def near(a: tuple[str, str, str], b: tuple[str, str, str]) -> bool:
    """Whether two clonotypes are equal, or differ in one residue."""
    return a[:2] == b[:2] and len(a[2]) == len(b[2]) and sum(x != y for x, y in zip(a[2], b[2], strict=True)) <= 1


class Steps:
    """The commands, in their order, in the folder of a cohort."""

    def __init__(self, folder: Path, model: str, options: list[str]) -> None:
        self.folder, self.model, self.options = folder, model, options
        self.truth = rows_of(folder / "truth.tsv")
        self.samples = sorted((folder / "samples").iterdir())

    def all(self) -> Iterator[tuple[str, list[str], Callable[[], Found] | None]]:
        """Name, words and what was found, of each command."""
        tables, to = [str(path) for path in self.samples], self.folder
        given = ["-m", self.model, "-o"]
        yield "pgen", ["pgen", *tables, *given, str(to / "pgen"), *self.options], None
        yield "infer", ["infer", *tables, *given, str(to / "inferred"), *self.options], None
        selected = str(to / "selected")
        yield "infer-selection", ["infer-selection", *tables, *given, selected, *self.options], None
        metadata = ["--metadata", str(to / "metadata.tsv"), "--group", "group"]
        clean = ["--write-clean", str(to / "clean")]
        words = ["contamination", *tables, *given, str(to / "contamination.tsv"), *metadata, *clean, *self.options]
        yield "contamination", words, self.contamination
        # Copies of clones are shared beyond chance, too.
        of = sorted(map(str, (to / "clean").glob("[!.]*"))) if (to / "clean").is_dir() else tables
        yield "sharing", ["sharing", *of, *given, str(to / "sharing.tsv"), *metadata, *self.options], self.sharing
        for path in self.samples:
            own = to / f"enriched_{path.name}"
            words = ["enrich", str(path), *given, str(own), *self.options]
            yield f"enrich {path.stem}", words, lambda path=path, own=own: self.enrich(path.stem, own)
        tables = [to / "sharing.tsv", to / "contamination.tsv", *sorted(to.glob("enriched_*.tsv"))]
        results = [str(path) for path in [*sorted((to / "pgen").glob("*.h5")), *tables] if path.exists()]
        yield "report", ["report", *results, *metadata, "-o", str(to / "report.html")], None
        words = ["analyze", *map(str, self.samples), *given, str(to / "analysis"), *metadata, "--case", "group=A"]
        yield "analyze", [*words, *self.options], None

    def planted(self, kind: str, repertoire: str | None = None) -> dict[str, list[tuple[str, str, str]]]:
        """The clonotypes of each planted signal, of all individuals or of one."""
        found: dict[str, list[tuple[str, str, str]]] = {}
        for row in self.truth:
            if row["kind"] == kind and repertoire in (None, row["repertoire_id"]):
                found.setdefault(row["number"], []).append(clonotype(row))
        return found

    def _compared(self, planted: dict[str, list[tuple[str, str, str]]], hits: list[tuple[str, str, str]]) -> Found:
        found = {number for number, own in planted.items() if any(near(hit, member) for hit in hits for member in own)}
        members = [member for own in planted.values() for member in own]
        others = [hit for hit in hits if not any(near(hit, member) for member in members)]
        return len(planted), len(found), len(others)

    def sharing(self) -> Found:
        """Public clonotypes."""
        hits = [clonotype(row) for row in rows_of(self.folder / "sharing.tsv") if float(row["q_value"]) < MOST_Q]
        return self._compared(self.planted(PUBLIC), hits)

    def enrich(self, repertoire: str, path: Path) -> Found:
        """Clusters."""
        hits = [clonotype(row) for row in rows_of(path) if float(row["q_value"]) < MOST_Q]
        return self._compared(self.planted(CLUSTER, repertoire), hits)

    def contamination(self) -> Found:
        """The pair of individuals with carry-over."""
        rows = [row for row in rows_of(self.folder / "contamination.tsv") if float(row["q_value"]) < MOST_Q]
        hits = {frozenset((row["individual_1"], row["individual_2"])) for row in rows}
        pair = frozenset(path.name.partition(".")[0] for path in self.samples[:2])
        return 1, int(pair in hits), len(hits - {pair})


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows: a process begins with the largest memory of this one, which therefore keeps little."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(options.folder or f"{name}/cohort").resolve()
        words = [HPCVDJ[0], ROOT / "benchmarks/_cohort.py", folder, "--model", options.model]
        words += [f"--{option}={getattr(options, option)}" for option in ("individuals", "junctions", "seed")]
        done = run([*words, *["--selection"] * options.selection])
        yield {"step": "making the cohort", "status": done.status, **done.used}
        launcher = ["mpiexec", "-n", str(options.ranks)] if options.ranks > 1 else []
        given = ["--backend", options.backend, "--threads", str(options.threads)]
        for step, words, signals in Steps(folder, options.model, given).all():
            if words[0] in options.steps:
                done = run([*launcher, *HPCVDJ, "-q", *words], check=False)
                row = {"step": step, "status": done.status, **done.used}
                if signals is not None and done.status == 0:
                    row |= dict(zip(("planted", "found", "others"), signals(), strict=True))
                yield row


if __name__ == "__main__":
    record(
        __doc__, measured,
        folder=(None, "keep the cohort and all results in this new folder"),
        model=("human_trb_m15", "a recombination model"),
        individuals=(5, "tables"),
        junctions=(5_000, "productive junctions of each individual"),
        steps=(STEPS[:-1], "commands to run, or analyze, which does all of them in one"),
        selection=(False, "draw with the model's selection factor"),
        seed=(0, "of everything"),
        backend=("cpu", "cpu or cuda"),
        threads=(0, "of each command, or rank; 0: all cores"),
        ranks=(1, "of each command"),
    )  # fmt: skip
