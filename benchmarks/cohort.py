"""What do all commands find in a cohort with planted signals, what else, how long do they take, how much memory?

python benchmarks/cohort.py --individuals 5 --junctions 5000 --output results/cohort/raw.csv

Makes a cohort (`_cohort.py`), runs each command on it in a process of its own, and writes a row for each: wall and
processor time, the largest resident memory, how many of the planted signals it found, and how many others at q < 0.05.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from _cohort import CLUSTER, PUBLIC, Clonotype, near
from _common import HPCVDJ, read_rows, record, run

MOST_Q = 0.05

STEPS = ["pgen", "infer", "infer-selection", "contamination", "sharing", "enrich", "report", "analyze"]

Found = dict[str, int]
"""Planted signals, those that were found, and others that were."""


def clonotype(row: dict[str, str]) -> Clonotype:
    """V gene, J gene, amino acids."""
    return row["v_call"].partition("*")[0], row["j_call"].partition("*")[0], row["junction_aa"]


def hits_of(table: Path) -> list[dict[str, str]]:
    """The rows of a table of tests that are hits."""
    return [row for row in read_rows(table) if float(row["q_value"]) < MOST_Q]


def found_clonotypes(folder: Path, kind: str, table: Path, repertoire: str | None = None) -> Found:
    """Planted signals of a kind, of all individuals or of one, among the clonotypes that are hits."""
    planted: dict[str, list[Clonotype]] = defaultdict(list)
    for row in read_rows(folder / "truth.tsv"):
        if row["kind"] == kind and repertoire in (None, row["repertoire_id"]):
            planted[row["number"]].append(clonotype(row))
    hits, found, others = list(map(clonotype, hits_of(table))), set(), 0
    for hit in hits:
        numbers = {number for number, own in planted.items() if any(near(hit, member) for member in own)}
        found |= numbers
        others += not numbers
    return {"planted": len(planted), "found": len(found), "others": others}


def found_pair(samples: list[Path], table: Path) -> Found:
    """The pair of individuals with carry-over."""
    hits = {frozenset((row["individual_1"], row["individual_2"])) for row in hits_of(table)}
    pair = frozenset(path.name.partition(".")[0] for path in samples[:2])
    return {"planted": 1, "found": int(pair in hits), "others": len(hits - {pair})}


def commands(folder: Path, model: str) -> Iterator[tuple[str, list[Any], Callable[[], Found] | None]]:
    """Name, words and what was found, of each command in the folder of a cohort, in their order."""
    samples, metadata = sorted((folder / "samples").iterdir()), ["--metadata", folder / "metadata.tsv"]
    grouped = [*metadata, "--group", "group"]
    for step, target in (("pgen", "pgen"), ("infer", "inferred"), ("infer-selection", "selected")):
        yield step, [step, *samples, "-m", model, "-o", folder / target], None
    pairs, shared = folder / "contamination.tsv", folder / "sharing.tsv"
    words = ["contamination", *samples, "-m", model, "-o", pairs, *grouped, "--write-clean", folder / "clean"]
    yield "contamination", words, partial(found_pair, samples, pairs)
    # Copies of clones are shared beyond chance, too.
    of = sorted((folder / "clean").glob("[!.]*")) or samples
    words = ["sharing", *of, "-m", model, "-o", shared, *grouped]
    yield "sharing", words, partial(found_clonotypes, folder, PUBLIC, shared)
    for path in samples:
        own = folder / f"enriched_{path.name}"
        words = ["enrich", path, "-m", model, "-o", own]
        yield f"enrich {path.stem}", words, partial(found_clonotypes, folder, CLUSTER, own, path.stem)
    tables = [path for path in (shared, pairs, *sorted(folder.glob("enriched_*.tsv"))) if path.exists()]
    results = sorted((folder / "pgen").glob("*.h5"))
    yield "report", ["report", *results, *tables, *grouped, "-o", folder / "report.html"], None
    words = ["analyze", *samples, "-m", model, "-o", folder / "analysis", *grouped, "--case", "group=A"]
    yield "analyze", words, None


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows: a process begins with the largest memory of this one, which therefore keeps little."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(options.folder or f"{name}/cohort").resolve()
        plan = {name: getattr(options, name) for name in ("individuals", "junctions", "seed", "selection")}
        done = run([HPCVDJ[0], "benchmarks/_cohort.py", folder, options.model, json.dumps(plan)])
        yield {"step": "making the cohort", "status": done.status, **done.used}
        launcher = ["mpiexec", "-n", options.ranks] if options.ranks > 1 else []
        given = ["--backend", options.backend, "--threads", options.threads]
        for step, words, found in commands(folder, options.model):
            if words[0] in options.steps:
                done = run([*launcher, *HPCVDJ, "-q", *words, *given * (step != "report")], check=False)
                row = {"step": step, "status": done.status, **done.used}
                yield row | (found() if found and done.status == 0 else {})


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
