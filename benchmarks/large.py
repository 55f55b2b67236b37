"""Many junctions: `hpcvdj count` from start to end on millions of simulated ones, its time, memory and stages.

python benchmarks/large.py --ranks 1 2       measure, write results/count_large/{raw.csv,README.md}
python benchmarks/large.py --render          remake README.md from raw.csv
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import _common as common
from _common import duration, markdown, say, spread, spread_of_durations, three_digits

WARM_UP = Path("inputs/mouse_trb/small.tsv")

STAGES = ("read", "prepare", "kernel", "reduce", "write", "total")
"""As the command prints them."""


@dataclass(frozen=True)
class Row:
    """One run of a command: `simulate` (which makes the table) or `count`.

    seconds, cpu_seconds  of the whole process, from outside; cpu_seconds of all ranks together
    peak_rss              bytes, of the largest process
    read … total          seconds of the stages, as the command prints them
    kernel_file           seconds in the kernel by the result file's /timings, to the clock's precision
    pathways, excluded    what the command counted: the same whatever the format and the ranks
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


def measure(options: argparse.Namespace) -> tuple[dict[str, str], list[Row]]:
    """Make the tables that are not there yet, then count each."""
    from hpcvdj.runs.ranks import usable_cores

    facts = common.environment("large.py", options.threads or len(usable_cores()))
    facts["germline"] = str(options.germline)
    options.work.mkdir(parents=True, exist_ok=True)
    warm_up(options)
    rows: list[Row] = []
    for form in options.forms:
        table = options.work / f"junctions_{options.number}_seed{options.seed}.{form}"
        if not table.exists():
            rows.append(simulate(options, table, form))
        for ranks in options.ranks:
            for repeat in range(options.repeats):
                say(f"counting {table.name}, {ranks} rank(s), repeat {repeat + 1} of {options.repeats}")
                rows.append(count(options, table, form, ranks, repeat))
        if not options.keep:
            table.unlink()
    return facts, rows


def warm_up(options: argparse.Namespace) -> None:
    """A small count, so that no run that is timed compiles a kernel."""
    target = options.work / "warm_up.h5"
    common.run(common.hpcvdj("count", WARM_UP, "-g", options.germline, "-o", target, "--overwrite"))
    target.unlink()


def simulate(options: argparse.Namespace, table: Path, form: str) -> Row:
    """The table of junctions; its time is recorded beside."""
    say(f"simulating {table.name}")
    done = common.run(
        common.hpcvdj("simulate", "-g", options.germline, "-n", options.number, "--seed", options.seed, "-o", table)
    )
    return Row(
        "simulate", form, junctions=options.number, output_bytes=table.stat().st_size, seconds=done.wall,
        cpu_seconds=done.cpu, peak_rss=done.peak_rss,
    )  # fmt: skip


def count(options: argparse.Namespace, table: Path, form: str, ranks: int, repeat: int) -> Row:
    """One run of `hpcvdj count`; its result file is read and thrown away."""
    target = options.work / "counts.h5"
    command = common.hpcvdj("count", table, "-g", options.germline, "-o", target, "--overwrite")
    if options.threads:
        command += ["--threads", str(options.threads)]
    done = common.run(common.mpiexec(ranks, options.mpiexec, command))
    said = Said(done.stdout)
    row = Row(
        "count", form, ranks, repeat,
        junctions=said.number(r"rows +([\d,]+) read"),
        input_bytes=table.stat().st_size, output_bytes=target.stat().st_size,
        seconds=done.wall, cpu_seconds=done.cpu, peak_rss=done.peak_rss,
        kernel_file=kernel_seconds(target),
        pathways=said.number(r"pathways +([\d,]+)"),
        excluded=said.number(r"\+ ([\d,]+) excluded"),
        hardware=said.text(r"method +(.*)"),
        **{stage: float(said.text(rf"\b{stage} ([\d.]+) s")) for stage in STAGES},
    )  # fmt: skip
    target.unlink()
    return row


class Said:
    """The summary that the command prints."""

    def __init__(self, stdout: str) -> None:
        self.stdout = stdout

    def text(self, pattern: str) -> str:
        """What the pattern's group matches; ends the benchmark if nothing does."""
        match = re.search(pattern, self.stdout)
        if match is None:
            raise SystemExit(f"the summary of `hpcvdj count` holds nothing like {pattern!r}:\n{self.stdout}")
        return match.group(1)

    def number(self, pattern: str) -> int:
        """The same as a number."""
        return int(self.text(pattern).replace(",", ""))


def kernel_seconds(path: Path) -> float:
    """Seconds in the kernel over all units, the slowest rank's."""
    import h5py

    with h5py.File(path, "r") as stream:
        return float(stream["timings/kernel_seconds"][:].sum())


def groups(rows: list[Row]) -> Iterator[tuple[Row, Callable[[str], list[float]]]]:
    """Of each file format and number of ranks: one row, and a function that gives a column over the repeats."""
    counts = [row for row in rows if row.command == "count"]
    for form, ranks in dict.fromkeys((row.form, row.ranks) for row in counts):
        repeats = [row for row in counts if (row.form, row.ranks) == (form, ranks)]
        yield repeats[0], lambda name, repeats=repeats: [getattr(row, name) for row in repeats]


def main_table(rows: list[Row]) -> str:
    """Wall time and memory of the whole command."""
    lines = [
        (
            form(one),
            str(one.ranks),
            str(len(column("seconds"))),
            spread_of_durations(column("seconds")),
            three_digits(one.junctions / statistics.median(column("seconds"))),
            spread([value / 1e9 for value in column("peak_rss")], three_digits),
            three_digits(one.input_bytes / 1e6),
            three_digits(one.output_bytes / 1e6),
        )
        for one, column in groups(rows)
    ]
    head = (
        "table", "ranks", "repeats", "wall, median (min…max)", "junctions/s", "peak RSS of the largest process, GB",
        "table, MB", "result, MB",
    )  # fmt: skip
    return markdown(head, lines)


def stage_table(rows: list[Row]) -> str:
    """Where the time goes, by the command's own clock; what is left of the wall time is start-up and exit."""
    lines = [
        (form(one), str(one.ranks), *(spread(column(name), "{:.2f}".format) for name in (*STAGES, "around")))
        for one, column in groups(rows)
    ]
    return markdown(("table", "ranks", *(f"{stage}, s" for stage in STAGES), "start-up and exit, s"), lines)


def kernel_table(rows: list[Row]) -> str:
    """The kernel's own rate."""
    lines = [
        (form(one), str(one.ranks), spread_of_durations(column("kernel_file")),
         spread([one.junctions / seconds for seconds in column("kernel_file")], three_digits), one.hardware)
        for one, column in groups(rows)
    ]  # fmt: skip
    return markdown(("table", "ranks", "kernel, median (min…max)", "junctions/s in the kernel", "method"), lines)


def simulation_table(rows: list[Row]) -> str:
    """What making the tables took, if this run made them."""
    made = [row for row in rows if row.command == "simulate"]
    if not made:
        return "The tables were there already.\n"
    lines = [
        (
            form(row),
            duration(row.seconds),
            three_digits(row.peak_rss / 1e9),
            three_digits(row.output_bytes / 1e6),
        )
        for row in made
    ]
    return markdown(("table", "wall", "peak RSS, GB", "table, MB"), lines)


def form(row: Row) -> str:
    """The file format as a cell."""
    return f"`.{row.form}`"


def same_totals(rows: list[Row]) -> bool:
    """Whether all runs counted the same."""
    return len({(row.junctions, row.pathways, row.excluded) for row in rows if row.command == "count"}) == 1


def render(folder: Path) -> bool:
    """README.md from raw.csv; whether all runs counted the same."""
    facts, rows = common.read_raw(folder, Row)
    first = next(row for row in rows if row.command == "count")
    totals = "the same in all runs" if same_totals(rows) else "DIFFERENT between runs"
    text = f"""# Counting {first.junctions:,} junctions

Simulated junctions, method `direct`, the whole command `hpcvdj count …`. Made from `raw.csv` by
`python benchmarks/large.py --render`; not edited by hand.

{common.facts_table(facts)}
{main_table(rows)}
Kernels were compiled before, by a count of a small table; the tables may lie in the page cache.

## Stages

As the command prints them, median (min…max).

{stage_table(rows)}
{kernel_table(rows)}
## The tables

Made by `hpcvdj simulate`:

{simulation_table(rows)}
Pathways in all: {first.pathways:,}; rows excluded: {first.excluded:,}; {totals}.
"""
    (folder / common.REPORT).write_text(text)
    return same_totals(rows)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = common.parser(
        "Time `hpcvdj count` on millions of simulated junctions: wall seconds, peak memory, stages.",
        Path("results/count_large"),
    )
    work = Path(tempfile.gettempdir()) / "hpcvdj-large"
    add = parser.add_argument
    add("-n", "--number", metavar="N", type=int, default=10_000_000, help="junctions to simulate")
    add("--work", metavar="DIR", type=Path, default=work, help="for the tables and results, outside the repository")
    add("--forms", nargs="+", default=["parquet", "tsv"], choices=["parquet", "tsv", "tsv.gz"], help="tables to count")
    add("--ranks", metavar="N", nargs="+", type=int, default=[1], help="numbers of ranks; 1 runs without a launcher")
    add("--mpiexec", metavar="COMMAND", default="mpiexec", help="launcher, one that takes -n")
    add("--threads", metavar="N", type=int, default=0, help="threads of a rank; 0: the host's cores over its ranks")
    add("--repeats", metavar="N", type=int, default=3, help="runs of each")
    add("--germline", metavar="TSV", type=Path, default=common.GERMLINE, help="germline table")
    add("--seed", metavar="S", type=int, default=0, help="seed of the simulation")
    add("--keep", action="store_true", help="keep the tables in --work; a later run uses them")
    options = parser.parse_args()
    options.work = (common.ROOT / options.work).resolve()
    if options.work.is_relative_to(common.ROOT):
        parser.error(f"--work {options.work} lies in the repository; gigabytes go there: name a folder elsewhere")
    return options


def main() -> int:
    """Measure and render; 1 if the runs counted differently."""
    return common.study(arguments(), measure, render, "totals identical", "TOTALS DIFFER")


if __name__ == "__main__":
    raise SystemExit(main())
