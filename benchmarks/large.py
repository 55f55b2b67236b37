"""Many junctions: `hpcvdj count` from start to end on millions of simulated ones, its time, memory and stages.

python benchmarks/large.py --ranks 1 2       measure, write results/count_large/{raw.csv,README.md}
python benchmarks/large.py --render          make README.md again from raw.csv
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import _common as common
import h5py
from _common import HPCVDJ, durations, say, three_digits

from hpcvdj.studies.pages import Block, Check
from hpcvdj.studies.tables import grouped, listing, middle, spread

WARM_UP = Path("inputs/mouse_trb/small.tsv")

STAGES = ("read", "prepare", "kernel", "reduce", "write", "total")
"""As the command prints them; `save`, what checkpoints cost, is less than 0.1 s here."""


@dataclass(frozen=True)
class Row:
    """One run of a command: `simulate` (which makes the table) or `count`.

    seconds, cpu_seconds  of the process, from outside; cpu_seconds of all ranks together
    peak_rss              bytes, of the largest process
    read … total          seconds of the stages, as the command prints them
    kernel_file           seconds in the kernel from the result file's /timings, with all digits
    pathways, excluded    what the command counted: the same for each format and number of ranks
    """

    command: str = ""
    form: str = ""
    ranks: int = 1
    repeat: int = 0
    junctions: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_rss: int = 0
    read: float = 0.0
    prepare: float = 0.0
    kernel: float = 0.0
    reduce: float = 0.0
    write: float = 0.0
    total: float = 0.0
    kernel_file: float = 0.0
    pathways: int = 0
    excluded: int = 0
    hardware: str = ""

    @property
    def around(self) -> float:
        """Seconds of start-up and exit."""
        return self.seconds - self.total


class Large(common.Benchmark):
    """Whole commands on large tables."""

    name = "count_large"
    title = "Counting many junctions"
    row = Row
    renderer = "python benchmarks/large.py --render"
    about = "Time `hpcvdj count` on millions of simulated junctions: wall seconds, peak memory, stages."
    output = Path("results/count_large")
    notes = "Kernels were compiled before, by a count of a small table; the tables may be in the page cache."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What to simulate, and how to count it."""
        add = parser.add_argument
        work = Path(tempfile.gettempdir()) / "hpcvdj-large"
        forms = ["parquet", "tsv", "tsv.gz"]
        add("-n", "--number", metavar="N", type=int, default=10_000_000, help="junctions to simulate")
        add("--work", metavar="DIR", type=Path, default=work, help="folder for tables and results, with room for GBs")
        add("--forms", nargs="+", default=forms[:2], choices=forms, help="tables to count")
        add("--ranks", metavar="N", nargs="+", type=int, default=[1], help="numbers of ranks")
        add("--mpiexec", metavar="COMMAND", default="mpiexec", help="launcher that takes -n; for more than one rank")
        add("--threads", metavar="N", type=int, default=0, help="threads of all ranks together; 0: all usable cores")
        add("--repeats", metavar="N", type=int, default=3, help="runs of each")
        add("--germline", metavar="TSV", type=Path, default=common.GERMLINE, help="germline table")
        add("--seed", metavar="S", type=int, default=0, help="seed of the simulation")
        add("--keep", action="store_true", help="keep the tables in --work; a later run uses them")

    def facts(self, options: argparse.Namespace) -> dict[str, str]:
        """The input."""
        return {"germline": str(options.germline)}

    def measure(self, options: argparse.Namespace) -> Iterator[Row]:
        """Make the tables that do not exist yet, then count each."""
        options.work.mkdir(parents=True, exist_ok=True)
        count(options, WARM_UP, "tsv", 1, 0)  # compiles the kernel
        for form in options.forms:
            table = options.work / f"junctions_{options.number}_seed{options.seed}.{form}"
            if not table.exists():
                yield simulate(options, table, form)
            for ranks in options.ranks:
                for repeat in range(options.repeats):
                    say(f"counting {table.name}, {ranks} rank(s), repeat {repeat + 1} of {options.repeats}")
                    yield count(options, table, form, ranks, repeat)
            if not options.keep:
                table.unlink()

    def page(self, rows: list[Row]) -> Iterator[Block]:
        """Time and memory of the command, its stages, the kernel's rate, and what making the tables took."""
        counts = [row for row in rows if row.command == "count"]
        groups = list(grouped(counts, "form", "ranks").values())
        first = counts[0]
        totals = {(row.junctions, row.pathways, row.excluded) for row in counts}
        yield (
            f"{first.junctions:,} simulated junctions, method `direct`, the complete command `hpcvdj count …`. "
            f"Pathways in all: {first.pathways:,}; rows excluded: {first.excluded:,}."
        )
        yield Check(len(totals) == 1, "totals", "runs")
        table = {"table": lambda group: f"`.{group[0].form}`", "ranks": lambda group: group[0].ranks}
        yield listing(
            groups,
            table
            | {
                "repeats": len,
                "wall, median (min…max)": lambda group: durations([row.seconds for row in group]),
                "junctions/s": lambda group: three_digits(group[0].junctions / middle(group, "seconds")),
                "peak RSS of the largest process, GB": lambda group: spread(
                    [row.peak_rss / 1e9 for row in group], three_digits
                ),
                "table, MB": lambda group: three_digits(group[0].input_bytes / 1e6),
                "result, MB": lambda group: three_digits(group[0].output_bytes / 1e6),
            },
        )
        yield "## Stages"
        yield "Median (min…max), as the command prints them; the rest of the wall time is start-up and exit."

        def stage(name: str) -> Callable[[list[Row]], str]:
            return lambda group: spread([getattr(row, name) for row in group], "{:.2f}".format)

        stages = {f"{name}, s": stage(name) for name in STAGES}
        yield listing(groups, table | stages | {"start-up and exit, s": stage("around")})
        yield listing(
            groups,
            table
            | {
                "kernel, median (min…max)": lambda group: durations([row.kernel_file for row in group]),
                "junctions/s in the kernel": lambda group: spread(
                    [row.junctions / row.kernel_file for row in group], three_digits
                ),
                "method": lambda group: group[0].hardware,
            },
        )
        yield "## Making the tables with `hpcvdj simulate`"
        yield listing(
            [row for row in rows if row.command == "simulate"],
            {
                "table": lambda row: f"`.{row.form}`",
                "wall": lambda row: durations([row.seconds]),
                "peak RSS, GB": lambda row: three_digits(row.peak_rss / 1e9),
                "table, MB": lambda row: three_digits(row.output_bytes / 1e6),
            },
        )


def simulate(options: argparse.Namespace, table: Path, form: str) -> Row:
    """Make a table of junctions."""
    say(f"simulating {table.name}")
    words = ("simulate", "-g", options.germline, "-n", options.number, "--seed", options.seed, "-o", table)
    done = common.run([*HPCVDJ, *words])
    return Row(
        "simulate", form, junctions=options.number, output_bytes=table.stat().st_size, seconds=done.wall,
        cpu_seconds=done.cpu, peak_rss=done.peak_rss,
    )  # fmt: skip


def count(options: argparse.Namespace, table: Path, form: str, ranks: int, repeat: int) -> Row:
    """One run of `hpcvdj count`; its result is read and removed."""
    target = options.work / "counts.h5"
    words = ("count", table, "-g", options.germline, "-o", target, "--overwrite")
    threads = ("--threads", max(1, options.threads // ranks))
    done = common.run([*common.mpiexec(ranks, options.mpiexec), *HPCVDJ, *words, *threads])

    def printed(pattern: str) -> str:
        match = re.search(pattern, done.stdout)
        if match is None:
            raise SystemExit(f"the summary of `hpcvdj count` has nothing like {pattern!r}:\n{done.stdout}")
        return match.group(1).replace(",", "") if r"\d" in pattern else match.group(1)

    with h5py.File(target, "r") as stream:
        kernel_seconds = float(stream["timings/kernel_seconds"][:].sum())
    row = Row(
        "count", form, ranks, repeat,
        junctions=int(printed(r"rows +([\d,]+) read")), pathways=int(printed(r"pathways +([\d,]+)")),
        excluded=int(printed(r"\+ ([\d,]+) excluded")), hardware=printed(r"method +(.*)"),
        input_bytes=table.stat().st_size, output_bytes=target.stat().st_size, seconds=done.wall,
        cpu_seconds=done.cpu, peak_rss=done.peak_rss, kernel_file=kernel_seconds,
        **{stage: float(printed(rf"\b{stage} ([\d.]+) s")) for stage in STAGES},
    )  # fmt: skip
    target.unlink()
    return row


if __name__ == "__main__":
    raise SystemExit(Large().main())
