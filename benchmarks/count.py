"""Counting on CPU cores: hpcvdj's methods and command side by side, and the field's nearest peer.

python benchmarks/count.py                   measure, write results/count_cpu/{raw.csv,README.md}
python benchmarks/count.py --render          remake README.md from raw.csv
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _common as common
from _common import duration, markdown, say, spread, spread_of_durations, three_digits
from _pgen import MODEL, Peer

JUNCTIONS = Path("inputs/mouse_trb/repertoire.tsv.gz")
MAX_N = 10
"""The paper's largest n-length."""

ENUMERATING = ("baseline", "bitwise")
"""The slower first: its sample is the one that both are compared on."""

EQUAL = "counters equal"
OTHER_QUANTITY = (
    "a different quantity (a generation probability under a fitted model), the nearest that the field computes"
)


@dataclass(frozen=True)
class Row:
    """One repeat of one measurement.

    measured       load, kernel, command, first command, enumeration, enumeration on baseline's sample, probability
    n_lengths      those counted: 0-10, or one
    sequences, of  how many were done, of how many in the set; pairs, pairs_of: likewise of V–J pairs
    seconds        wall; `setup_seconds` of them go to what a unit costs before its first task
    check          what came of a comparison of the counters; for probabilities, how many are above zero
    """

    measured: str = ""
    method: str = ""
    n_lengths: str = ""
    threads: int = 1
    repeat: int = 0
    sequences: int = 0
    of: int = 0
    pairs: int = 0
    pairs_of: int = 0
    seconds: float = 0.0
    setup_seconds: float = 0.0
    cpu_seconds: float = 0.0
    check: str = ""

    @property
    def whole_set(self) -> float:
        """Seconds for the whole set: work grows with the sequences, set-up with the V–J pairs."""
        work, setup = self.work / self.sequences, self.setup_seconds / max(1, self.pairs)
        return work * self.of + setup * self.pairs_of

    @property
    def work(self) -> float:
        """Seconds without the set-up of units."""
        return self.seconds - self.setup_seconds


class Bench:
    """The set to count, read once, and how to time kernels on it."""

    def __init__(self, options: argparse.Namespace, threads: int) -> None:
        from hpcvdj.kernels.backends import open_backend
        from hpcvdj.recombination.germline import read_germline
        from hpcvdj.repertoires.junctions import read_repertoire

        self.options, self.threads = options, threads
        self.germline = read_germline(common.ROOT / options.germline)
        self.repertoire = read_repertoire(common.ROOT / options.junctions, self.germline)
        self.backend = open_backend("cpu")

    def load(self, method: str, max_n: int, repertoire: Any = None) -> tuple[Any, list[Any]]:
        """The kernel of `method` loaded with the repertoire, and all its units."""
        from hpcvdj.kernels.pathways.methods import Problem, method_named

        problem = Problem(self.repertoire if repertoire is None else repertoire, self.germline, max_n)
        return self.backend.load(method, problem), list(method_named(method).units(problem))

    def row(self, measured: str, method: str, repertoire: Any = None, **values: Any) -> Row:
        """A Row about a part of the set (all of it unless told otherwise)."""
        part = self.repertoire if repertoire is None else repertoire
        sizes = {"sequences": len(part), "pairs": len(part.pairs)}
        return Row(measured, method, of=len(self.repertoire), pairs_of=len(self.repertoire.pairs), **sizes | values)


def timed_units(kernel: Any, units: list[Any], *, tasks: bool = True) -> tuple[float, float, list[Any]]:
    """Wall and processor seconds of a kernel over units, and their counters; without their tasks, only set-up."""
    start, cpu = time.perf_counter(), time.process_time()
    counters = [kernel(unit, 0, unit.tasks if tasks else 0) for unit in units]
    return time.perf_counter() - start, time.process_time() - cpu, counters


def measure_load(bench: Bench) -> Iterator[Row]:
    """Loading the `direct` kernel; the first time ever it is compiled, `measure_command` tells that apart."""
    start = time.perf_counter()
    bench.load("direct", MAX_N)
    yield bench.row("load", "direct", threads=bench.threads, seconds=time.perf_counter() - start)


def measure_direct(bench: Bench, threads: int, max_n: int) -> Iterator[Row]:
    """The `direct` kernel over the whole set, all n-lengths at once, after one pass that is not timed."""
    import numba

    numba.set_num_threads(threads)
    kernel, units = bench.load("direct", max_n)
    timed_units(kernel, units)
    for repeat in range(bench.options.repeats):
        seconds, cpu, _ = timed_units(kernel, units)
        yield bench.row(
            "kernel", "direct", repeat=repeat, n_lengths=f"0-{max_n}", threads=threads, seconds=seconds, cpu_seconds=cpu
        )


def measure_command(bench: Bench, threads: int) -> Iterator[Row]:
    """`hpcvdj count` from start to end; the first run, in an empty kernel cache, apart."""
    options = bench.options
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "counts.h5"
        command = common.hpcvdj(
            "count", options.junctions, "-g", options.germline, "-o", output, "--overwrite",
            "--max-n", MAX_N, "--threads", threads,
        )  # fmt: skip
        cache = {"NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
        for repeat in range(-1, options.command_repeats):
            done = common.run(command, **cache)
            yield bench.row(
                "first command" if repeat < 0 else "command", "direct", n_lengths=f"0-{MAX_N}", threads=threads,
                repeat=max(0, repeat), seconds=done.wall, cpu_seconds=done.cpu,
            )  # fmt: skip


def measure_probabilities(bench: Bench) -> Iterator[Row]:
    """OLGA's fast class on one core; nothing when OLGA is absent."""
    options = bench.options
    try:
        peer = Peer()
    except ImportError as error:
        say(f"generation probabilities skipped: OLGA is not installed ({error})")
        return
    queries = peer.queries(bench.repertoire, options.pgen_sample, options.seed)
    size = {"sequences": len(queries), "pairs": len({query[1:] for query in queries})}
    yield bench.row("load", "OLGA", seconds=peer.warm_up(queries), **size)
    for repeat in range(options.command_repeats):
        done = peer.run(queries)
        yield bench.row(
            "probability", "OLGA", repeat=repeat, seconds=done.seconds, cpu_seconds=done.cpu_seconds,
            check=f"{done.positive} of {len(queries)} above zero", **size,
        )  # fmt: skip


def enumerate_sample(bench: Bench, measured: str, method: str, m: int, size: int, seed: int, repeat: int = 0) -> Row:
    """One n-length of an enumerating method on a random sample, checked against `direct`."""
    from hpcvdj.counting.verify import sample
    from hpcvdj.repertoires.junctions import PAPER_LONGEST_CDR3

    part = sample(bench.repertoire, size, seed, PAPER_LONGEST_CDR3)
    kernel, units = bench.load(method, m, part)
    units = [unit for unit in units if unit.n_lengths.start == m]
    timed_units(kernel, units, tasks=False)
    setup, _, _ = timed_units(kernel, units, tasks=False)
    seconds, cpu, counters = timed_units(kernel, units)
    expected = timed_units(*bench.load("direct", m, part))[2]
    different = int((column(counters, -1) != column(expected, m)).sum())
    return bench.row(
        measured, method, part, n_lengths=str(m), repeat=repeat, seconds=seconds, setup_seconds=min(setup, seconds),
        cpu_seconds=cpu, check=f"{different} counters differ" if different else EQUAL,
    )  # fmt: skip


def column(counters: list[Any], m: int) -> Any:
    """Column `m` of units' counters, sequence by sequence."""
    import numpy as np

    return np.concatenate([unit[:, m] for unit in counters])


def sample_size(bench: Bench, method: str, m: int, seconds: float) -> int:
    """How many sequences take about `seconds`, found by trying more and more of them."""
    size, most = 4, len(bench.repertoire)
    while True:
        taken = max(1e-6, enumerate_sample(bench, "pilot", method, m, size, bench.options.seed).work)
        if size >= most or taken >= seconds / 10:
            return max(1, min(most, round(size * seconds / taken)))
        size = min(most, 4 * size)


def measure_enumeration(bench: Bench) -> Iterator[Row]:
    """`baseline` and `bitwise` on one thread, each n-length on samples that fit the budget.

    One thread: a small sample has too few sequences in a V–J pair to keep several busy.  The repeats are samples
    of their own, so that their range shows the sampling as well as the clock.
    """
    import numba

    numba.set_num_threads(1)
    options = bench.options
    for m in range(options.enumerate_to + 1):
        for method in ENUMERATING:
            size = sample_size(bench, method, m, options.budget / options.samples)
            say(f"{method}, m = {m}: {options.samples} samples of {size:,}")
            for repeat in range(options.samples):
                seed = options.seed + 1 + repeat
                yield enumerate_sample(bench, "enumeration", method, m, size, seed, repeat)
                if method == ENUMERATING[0]:
                    on_the_same = "enumeration on baseline's sample"
                    yield enumerate_sample(bench, on_the_same, ENUMERATING[1], m, size, seed, repeat)


def measure(options: argparse.Namespace) -> tuple[dict[str, str], list[Row]]:
    """Everything, as facts and raw rows."""
    from hpcvdj.runs.ranks import World, set_threads

    # numba reads its thread count when it is imported, so this comes before the first use of a kernel.
    common.forget_thread_settings()
    threads = set_threads(World(), options.threads)
    facts = common.environment("count.py", threads) | {
        "olga": olga_version(), "junctions": str(options.junctions), "germline": str(options.germline),
    }  # fmt: skip
    bench = Bench(options, threads)
    warm_cache(options)
    rows = list(measure_load(bench))
    for count in sorted({1, threads}):
        say(f"direct on {count} thread(s): kernel, command")
        for max_n in sorted({options.enumerate_to, MAX_N}):
            rows += measure_direct(bench, count, max_n)
        rows += measure_command(bench, count)
    say("generation probabilities")
    rows += measure_probabilities(bench)
    rows += measure_enumeration(bench)
    return facts, rows


def warm_cache(options: argparse.Namespace) -> None:
    """Have numba's cache filled by another process, so that this one loads what users load from the second run on."""
    with tempfile.TemporaryDirectory() as folder:
        common.run(common.hpcvdj("count", options.junctions, "-g", options.germline, "-o", Path(folder) / "counts.h5"))


def olga_version() -> str:
    """OLGA's version, or that it is absent."""
    from importlib import metadata

    try:
        return metadata.version("olga")
    except metadata.PackageNotFoundError:
        return "not installed: generation probabilities skipped"


def groups(rows: list[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Repeats of one measurement together, in the order measured."""
    out: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        out.setdefault(tuple(getattr(row, name) for name in names), []).append(row)
    return out


def chosen(rows: list[Row], *measured: str) -> list[Row]:
    """Rows of some measurements."""
    return [row for row in rows if row.measured in measured]


def direct_table(rows: list[Row]) -> str:
    """The `direct` kernel and the whole command."""
    kinds = groups(chosen(rows, "kernel", "command"), "measured", "n_lengths", "threads")
    lines = [
        (
            "`direct` kernel" if measured == "kernel" else "`hpcvdj count …`, start-up, reading and HDF5 included",
            n_lengths.replace("-", "…"),
            str(threads),
            str(len(repeats)),
            spread_of_durations([row.seconds for row in repeats]),
            three_digits(repeats[0].sequences / statistics.median(row.seconds for row in repeats)),
            cores_used(repeats),
        )
        for (measured, n_lengths, threads), repeats in kinds.items()
    ]
    head = ("measured", "n-lengths", "threads", "repeats", "wall, median (min…max)", "junctions/s", "cores used")
    return markdown(head, lines)


def cores_used(repeats: list[Row]) -> str:
    """Processor seconds over wall seconds; less than the threads asked for when others use the machine too."""
    return f"{statistics.median(row.cpu_seconds / row.seconds for row in repeats):.2f}"


def first_time_table(rows: list[Row]) -> str:
    """What is kept out of the timings: loading kernels, and the first run of the command."""
    what = {
        ("load", "direct"): "kernel loaded for the first time in the process, from numba's cache",
        ("load", "OLGA"): "model's first probability in the process, what numba compiles included",
        ("first command", "direct"): "`hpcvdj count …` with an empty kernel cache: everything compiled",
    }
    firsts = chosen(rows, "load", "first command")
    cells = [(f"`{r.method}`", what[r.measured, r.method], str(r.threads), duration(r.seconds)) for r in firsts]
    return markdown(("", "once", "threads", "wall"), cells)


def probability_table(rows: list[Row]) -> str:
    """The peer, labelled as what it is."""
    repeats = chosen(rows, "probability")
    if not repeats:
        return "Skipped: OLGA was not installed.\n"
    first = repeats[0]
    rates = [row.sequences / row.seconds for row in repeats]
    cells = (
        f"nucleotide generation probability by `FastPgen`: {OTHER_QUANTITY}",
        f"{first.sequences:,} of {first.of:,} junctions, random",
        str(len(repeats)),
        spread(rates, three_digits),
        cores_used(repeats),
        first.check,
    )
    head = ("measured", "sample", "repeats", "sequences/s, one core, median (min…max)", "cores used", "result")
    return markdown(head, [cells])


def mean(samples: list[Row]) -> float:
    """Seconds for the whole set by all samples together; they are of one size."""
    return statistics.fmean(row.whole_set for row in samples)


def how(samples: list[Row]) -> str:
    """How a figure for the whole set came about."""
    one = samples[0]
    if one.sequences == one.of:
        return f"measured on all {one.of:,} sequences"
    each = f", in each of {len(samples)} samples" if len(samples) > 1 else ""
    return f"scaled from {one.sequences:,} of {one.of:,} sequences{each}"


def enumeration_table(rows: list[Row]) -> str:
    """The enumerating methods by n-length, scaled to the whole set."""
    kinds = groups(chosen(rows, "enumeration"), "n_lengths", "method")
    lines = []
    for (m, method), samples in kinds.items():
        whole = spread_of_durations([row.whole_set for row in samples], mean(samples))
        per_sequence = mean(samples) / samples[0].of
        checks = ", ".join(dict.fromkeys(row.check for row in samples))
        lines.append((m, f"`{method}`", duration(per_sequence), whole, how(samples), checks))
    head = ("m", "method", "per sequence", "whole set, mean (min…max of samples)", "how", "against `direct`")
    return markdown(head, lines)


def ratio_table(rows: list[Row]) -> str:
    """baseline over bitwise on the same sequences."""
    slow = groups([row for row in chosen(rows, "enumeration") if row.method == ENUMERATING[0]], "n_lengths")
    fast = groups(chosen(rows, "enumeration on baseline's sample"), "n_lengths")
    lines = []
    for (m,), repeats in slow.items():
        others = fast[(m,)]
        ratios = [a.work / b.work for a, b in zip(repeats, others, strict=True)]
        pooled = sum(row.work for row in repeats) / sum(row.work for row in others)
        lines.append((m, f"{len(repeats)} × {repeats[0].sequences:,}", spread(ratios, three_digits, pooled)))
    return markdown(("m", "samples × sequences", "`baseline` / `bitwise`, pooled (min…max of samples)"), lines)


def total_table(rows: list[Row]) -> str:
    """All n-lengths that were enumerated, on one thread: each method's total beside `direct`."""
    kinds = groups(chosen(rows, "enumeration"), "method")
    last = max(int(row.n_lengths) for row in chosen(rows, "enumeration"))
    direct = [r.seconds for r in chosen(rows, "kernel") if r.threads == 1 and r.n_lengths == f"0-{last}"]
    median = statistics.median(direct)
    lines = [("`direct`", f"{duration(median)}, measured", "1")]
    for (method,), samples in kinds.items():
        by_n = groups(samples, "n_lengths").values()
        total = sum(map(mean, by_n))
        lines.append((f"`{method}`", f"{duration(total)}, scaled from samples", three_digits(total / median)))
    return markdown(("method", f"whole set, m = 0…{last}, one thread", "times `direct`"), lines)


def verdict(rows: list[Row]) -> str:
    """Whether every counter that was enumerated equals direct's."""
    checks = [row.check for row in rows if row.measured.startswith("enumeration")]
    bad = sum(check != EQUAL for check in checks)
    return f"{bad} of {len(checks)} samples: COUNTERS DIFFER" if bad else f"{EQUAL} in {len(checks)} samples"


def render(folder: Path) -> bool:
    """README.md from raw.csv; whether all counters are equal."""
    facts, rows = common.read_raw(folder, Row)
    kernel = chosen(rows, "kernel")[0]
    text = f"""# Counting on CPU cores

{kernel.of:,} junctions over {kernel.pairs_of:,} V–J pairs. Made from `raw.csv` by
`python benchmarks/count.py --render`; not edited by hand.

{common.facts_table(facts)}
## Method `direct`

{direct_table(rows)}
Kept out of these timings:

{first_time_table(rows)}
## The field's nearest: generation probabilities by OLGA

This is {OTHER_QUANTITY}.
OLGA is given each junction's CDR3 between its model's own anchor codons, with V and J; the sample is of junctions in
frame whose genes have a CDR3 anchor in the model {MODEL}. To be read beside the kernel's row for one thread.

{probability_table(rows)}
## Methods that enumerate

One thread. Every n-length has its own random samples; a sample's time is scaled to the whole set by its number of
sequences (and what a V–J pair costs whatever its size, by the number of pairs).

{enumeration_table(rows)}
On the same sequences, without what a V–J pair costs whatever its size:

{ratio_table(rows)}
All of these n-lengths together:

{total_table(rows)}
Check against `direct`, sequence by sequence: {verdict(rows)}.
"""
    (folder / common.REPORT).write_text(text)
    return not verdict(rows).endswith("DIFFER")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = common.parser(
        "Time hpcvdj's methods and command on CPU cores, and the field's nearest peer, in one run.",
        Path("results/count_cpu"),
    )
    add = parser.add_argument
    add("--junctions", metavar="TSV", type=Path, default=JUNCTIONS, help="junctions to count")
    add("--germline", metavar="TSV", type=Path, default=common.GERMLINE, help="their germline table")
    add("--threads", metavar="N", type=int, default=0, help="most threads, timed on 1 and on N; 0: all usable cores")
    add("--repeats", metavar="N", type=int, default=15, help="repeats of the direct kernel")
    add("--command-repeats", metavar="N", type=int, default=5, help="repeats of the whole command, and of the peer")
    add("--budget", metavar="SECONDS", type=float, default=20.0, help="time for each enumerating method and n-length")
    add("--samples", metavar="N", type=int, default=3, help="random samples that share this budget")
    add("--enumerate-to", metavar="M", type=int, default=6, help="largest n-length to enumerate")
    add("--pgen-sample", metavar="N", type=int, default=5000, help="junctions given to OLGA")
    add("--seed", metavar="S", type=int, default=1, help="seed of the random samples")
    return parser.parse_args()


def main() -> int:
    """Measure and render; 1 if any counter differs between methods."""
    return common.study(arguments(), measure, render, EQUAL, "COUNTERS DIFFER")


if __name__ == "__main__":
    raise SystemExit(main())
