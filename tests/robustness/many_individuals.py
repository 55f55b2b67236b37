"""Time and memory of commands by the number of individuals, each with a table of a few rows.

python tests/robustness/many_individuals.py --individuals 300 1000 3000 -o many_individuals.csv

The tables are drawn from a model.  A row has the CPU seconds (user and system) and the most memory of a command, in a
process of its own with compiled kernels.  The exponent between two numbers of individuals is that of the CPU seconds
beyond those for the fewest: 1 is linear, 2 quadratic.  More than `WORST` is a fault.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from campaign import append

ROOT = Path(__file__).parents[2]
MODEL = ("-m", "human_trb_m15", "--backend", "cpu")
COMMANDS = {
    "sharing": ("sharing", "tables", *MODEL, "--q", "1", "--draws", "20000", "-o", "o.tsv"),
    "contamination": ("contamination", "tables", *MODEL, "--min-low", "1", "--draws", "20000", "-o", "o.tsv"),
    "enrich": ("enrich", "tables", *MODEL, "--kappa", "1", "--min-neighbours", "1", "-o", "enriched"),
}
FEWEST = 10
"""Individuals of the run whose CPU seconds are those that do not depend on their number."""

ROWS = 5
WORST = 2.2
"""The largest exponent: quadratic, and what the clock of a machine with other work adds."""


@dataclass
class Measured:
    """One run."""

    command: str
    individuals: int
    rows: int
    exit_code: int
    cpu_seconds: float
    megabytes: int
    exponent: float = math.nan
    said: str = ""


def tables(folder: Path, individuals: int, seed: int) -> None:
    """A table of `ROWS` rows for each individual, of whom every tenth has a row of the one before it."""
    drawn = folder / "drawn.tsv"
    words = ("generate", *MODEL, "-n", str(individuals * ROWS), "--productive", "--seed", str(seed), "-o", str(drawn))
    subprocess.run([sys.executable, "-m", "hpcvdj", "-q", *words, "--overwrite"], check=True, cwd=ROOT,
                   stderr=subprocess.DEVNULL)  # fmt: skip
    head, *rows = drawn.read_text().splitlines()
    shutil.rmtree(folder / "tables", ignore_errors=True)
    (folder / "tables").mkdir()
    chance = random.Random(seed)
    for number in range(individuals):
        own = rows[number * ROWS : (number + 1) * ROWS]
        if number % 10 == 9:
            own[0] = "copy" + rows[number * ROWS - 1]
        lines = [f"{head}\tduplicate_count", *(f"{row}\t{chance.randrange(1, 50)}" for row in own)]
        (folder / "tables" / f"i{number:05}.tsv").write_text("\n".join(lines) + "\n")


def measured(command: str, folder: Path, individuals: int) -> Measured:
    """Run a command on the tables."""
    for left in (folder / "enriched", folder / "o.tsv", folder / "o.tsv.json"):
        shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    words = [sys.executable, "-m", "hpcvdj", "-q", *COMMANDS[command]]
    with open(folder / "said", "wb") as said:
        job = subprocess.Popen(
            words, cwd=folder, stdout=subprocess.DEVNULL, stderr=said,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        )  # fmt: skip
        _, status, usage = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
    last = (folder / "said").read_text().splitlines()[-1:] or [""]
    return Measured(
        command, individuals, individuals * ROWS, job.returncode, round(usage.ru_utime + usage.ru_stime, 1),
        usage.ru_maxrss >> 10, said=last[0][:150],
    )  # fmt: skip


def main() -> int:
    """Measure; 1 if a command fails, or takes more than about the square of the individuals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--individuals", nargs="*", type=int, default=[300, 1000])
    parser.add_argument("--commands", nargs="*", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="raw rows, CSV")
    options = parser.parse_args()
    done: dict[str, list[Measured]] = {name: [] for name in options.commands}
    with tempfile.TemporaryDirectory() as folder:
        # The first number compiles kernels, and does not count.
        for individuals in (FEWEST, FEWEST, *options.individuals):
            tables(Path(folder), individuals, options.seed)
            for name, before in done.items():
                own = measured(name, Path(folder), individuals)
                if len(before) > 2:
                    base = before[1].cpu_seconds
                    ratio = (own.cpu_seconds - base) / max(before[-1].cpu_seconds - base, 0.5)
                    own.exponent = round(math.log(max(ratio, 1.0)) / math.log(individuals / before[-1].individuals), 2)
                if options.output and before:
                    append(options.output, own, anew=not any(len(each) > 1 for each in done.values()))
                before.append(own)
                print(own, flush=True)
    return int(any(own.exit_code or own.exponent > WORST for each in done.values() for own in each[1:]))


if __name__ == "__main__":
    sys.exit(main())
