"""How much faster are more ranks, in how much memory, and do they write the same?

python benchmarks/ranks.py --ranks 1 2 --output results/cohort_ranks/raw.csv
python benchmarks/ranks.py --commands pgen convert generate --ranks 1 2 --output results/end_to_end/raw.csv

`sharing`, `contamination` and `associate` compare the individuals of a cohort, of which every second one is a case;
`pgen` and `convert` read a Parquet table of `--rows` rows, and `generate` draws as many.  All tables are drawn from a
model.  A row for each command, ending of what it writes, and number of ranks, of `--threads` threads each: wall
seconds, the processor seconds of all ranks and of the one that took most, the memory of the largest rank, and the
SHA-256 of what was written, which must be the same for all numbers of ranks.  Exit code 1 if it is not, or if a command
failed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product, repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from _common import HPCVDJ, record, run, say

from hpcvdj.generation.generate import generate
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.kernels.backends import open_backend
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.packaged import model_paths
from hpcvdj.repertoires.writers import write_table
from hpcvdj.runs.ranks import set_threads
from hpcvdj.runs.run import Run
from hpcvdj.storage.folders import folder_digest
from hpcvdj.storage.inputs import file_digest

COMMANDS = ["sharing", "contamination", "associate"]
OF_TABLES = ["pgen", "convert", "generate"]
COLUMNS = ["sequence_id", "v_call", "j_call", "junction"]

PROGRAM = """
import atexit, os, resource, sys
folder = sys.argv.pop(1)
def note():
    used = resource.getrusage(resource.RUSAGE_SELF)
    open(os.path.join(folder, str(os.getpid())), "w").write(str(used.ru_utime + used.ru_stime))
atexit.register(note)
from hpcvdj.__main__ import main
sys.exit(main())
"""
"""A rank that notes its processor seconds when it ends."""


def draw(target: Path, plan: GenerationSettings, model: str) -> None:
    """The table of an individual, on one core."""
    set_threads(Run().world, 1)
    rows = generate(load_model(model_paths()[model]), plan, open_backend("cpu"), Run())
    write_table(target, (batch.select(COLUMNS) for batch in rows), overwrite=False)


def drawn(folder: Path, options: argparse.Namespace) -> Path:
    """The tables of the individuals, and the metadata beside their folder."""
    tables = folder / "tables"
    tables.mkdir()
    plans = {
        tables / f"d{k:04}.{options.format}": GenerationSettings(
            options.junctions, seed=options.seed + k, productive=True
        )
        for k in range(options.individuals)
    }
    # Not forked: OpenMP's threads, which numba may have started, do not survive that.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        list(pool.map(draw, plans, plans.values(), repeat(options.model)))
    lines = [f"d{k:04}\t{'yes' if k % 2 else 'no'}" for k in range(options.individuals)]
    (folder / "metadata.tsv").write_text("\n".join(["individual\till", *lines]) + "\n")
    return tables


def work_of(folder: Path, options: argparse.Namespace) -> Iterator[tuple[str, str, int, list[Any]]]:
    """The commands: the name, the ending of what it writes, the rows in all, and the words."""
    model = ["-m", options.model, "--backend", "cpu"]
    compared = [command for command in options.commands if command in COMMANDS]
    if compared:
        say(f"drawing {options.individuals} tables of {options.junctions:,} junctions")
        tables, rows = drawn(folder, options), options.individuals * options.junctions
    for command in compared:
        about = ["--metadata", folder / "metadata.tsv", "--case", "ill=yes"] if command == "associate" else []
        yield command, ".tsv", rows, [command, tables, *model, *about]
    table, generate = folder / "t.parquet", ["generate", *model, "-n", options.rows, "--seed", options.seed]
    if {"pgen", "convert"} & set(options.commands):
        say(f"drawing {options.rows:,} rows")
        run([*HPCVDJ, *generate, "-o", table])
    words = {"pgen": ["pgen", table, *model, "--sequence", "nt"], "convert": ["convert", table], "generate": generate}
    for command in options.commands:
        for ending in options.endings if command in OF_TABLES else ():
            yield command, ending, options.rows, words[command]


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    different = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        for command, ending, rows, words in work_of(folder, options):
            found = set()
            for _, ranks in product(range(options.repeats), options.ranks):
                target = folder / f"o{ending}"
                with tempfile.TemporaryDirectory(dir=folder) as noted:
                    program = [sys.executable, "-c", PROGRAM, noted, *words, "--threads", options.threads]
                    done = run(["mpiexec", "-n", ranks, *program, "-o", target])
                    seconds = [float(path.read_text()) for path in Path(noted).iterdir()]
                digest = (folder_digest(target) if target.is_dir() else file_digest(target))[:16]
                found.add(digest)
                yield {
                    "command": command, "ending": ending, "rows": rows, "ranks": ranks, "threads": options.threads,
                    **done.used, "most_cpu_seconds": max(seconds), "found": digest,
                }  # fmt: skip
                for path in folder.glob(f"{target.name}*"):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            different += [command] * (len(found) > 1)
    if different:
        sys.exit(f"what ranks write DIFFERS: {different}")


if __name__ == "__main__":
    record(
        __doc__, measured,
        individuals=(100, "how many"),
        junctions=(200_000, "productive junctions that are drawn for each"),
        ranks=([1, 2], "numbers of ranks"),
        threads=(1, "of each rank"),
        commands=(COMMANDS, f"what is measured, of {' '.join([*COMMANDS, *OF_TABLES])}"),
        rows=(10**7, "of the table that pgen and convert read, and that generate draws"),
        endings=([".parquet", ".dataset", ".tsv.gz"], "of what pgen, convert and generate write"),
        repeats=(1, "of each"),
        format=("tsv", "ending of the tables of a cohort: tsv, tsv.gz, tsv.zst or parquet"),
        model=("human_trb_m15", "a model that comes with hpcvdj"),
        seed=(1, "of the first individual"),
        folder=(None, "where tables are drawn, of some GB; by default the system's temporary folder"),
    )  # fmt: skip
