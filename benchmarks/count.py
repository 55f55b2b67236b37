"""Counting on CPU cores: hpcvdj's methods and command side by side, and the field's nearest peer.

python benchmarks/count.py                   measure, write results/count_cpu/{raw.csv,README.md}
python benchmarks/count.py --render          make README.md again from raw.csv
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
from _common import HPCVDJ, cores_used, durations, say, three_digits
from _pgen import MODEL, Peer

from hpcvdj.studies.pages import Block, Check
from hpcvdj.studies.tables import grouped, listing, middle, spread

MAX_N = 10
"""The paper's largest n-length."""

ENUMERATING = ("baseline", "bitwise")
"""The slower first: both are compared on its sample."""

EQUAL = "counters equal"
OTHER_QUANTITY = (
    "a different quantity (a generation probability under a fitted model), the nearest that the field computes"
)

KERNEL, COMMAND, LOAD, FIRST = "kernel", "command", "load", "first command"
ENUMERATION, SAME_SAMPLE, PROBABILITY = "enumeration", "enumeration on baseline's sample", "probability"

ONCE = {
    (LOAD, "direct"): "kernel loaded for the first time in the process, from numba's cache",
    (LOAD, "OLGA"): "model's first probability in the process, what numba compiles included",
    (FIRST, "direct"): "`hpcvdj count …` with an empty kernel cache: everything compiled",
}


@dataclass(frozen=True)
class Row:
    """One repeat of one measurement.

    measured       one of the constants above
    n_lengths      those counted: 0-10, or one
    sequences, of  how many were done, of how many in the set; pairs, pairs_of: likewise of V–J pairs
    seconds        wall; `setup_seconds` of them go to what a unit costs before its first task
    check          the outcome of a comparison of the counters; for probabilities, how many are above zero
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
        return self.work / self.sequences * self.of + self.setup_seconds / max(1, self.pairs) * self.pairs_of

    @property
    def work(self) -> float:
        """Seconds without the set-up of units."""
        return self.seconds - self.setup_seconds


class Set:
    """The junctions to count, and kernels loaded with them."""

    def __init__(self, options: argparse.Namespace) -> None:
        from hpcvdj.kernels.backends import open_backend
        from hpcvdj.recombination.germline import read_germline
        from hpcvdj.repertoires.inputs import Inputs

        self.germline = read_germline(common.ROOT / options.germline)
        self.repertoire = Inputs.of_file(common.ROOT / options.junctions).read(self.germline).repertoire
        self.backend = open_backend("cpu")

    def load(self, method: str, n_lengths: range, repertoire: Any = None) -> tuple[Any, list[Any]]:
        """The kernel of a method loaded with the set or a part of it, and the units of some n-lengths."""
        from hpcvdj.errors import choice
        from hpcvdj.kernels.pathways.methods import PathwayMethod
        from hpcvdj.recombination.repertoire import Problem

        chosen = choice(PathwayMethod, method, "method")
        problem = Problem(self.repertoire if repertoire is None else repertoire, self.germline, n_lengths[-1])
        missing = [(n_lengths, range(len(problem.repertoire)))]
        units = list(chosen.units(problem, self.backend.unit_work, missing))
        return self.backend.load(chosen, problem), units

    def sample(self, size: int, seed: int) -> Any:
        """Random sequences that the enumerating methods take."""
        from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3

        fits = np.flatnonzero(self.repertoire.lengths <= PAPER_LONGEST_CDR3)
        rows = np.random.default_rng(seed).choice(fits, min(size, len(fits)), replace=False)
        return self.repertoire.subset(np.sort(rows))

    def row(self, measured: str, method: str, repertoire: Any = None, **values: Any) -> Row:
        """A Row about the set or a part of it."""
        part = self.repertoire if repertoire is None else repertoire
        sizes = {"sequences": len(part), "pairs": len(part.pairs)}
        return Row(measured, method, of=len(self.repertoire), pairs_of=len(self.repertoire.pairs), **sizes | values)


def timed(kernel: Any, units: list[Any], *, tasks: bool = True) -> tuple[float, float, list[Any]]:
    """Wall and processor seconds of a kernel over units, and their counters; without their tasks, only set-up."""
    start, cpu = time.perf_counter(), time.process_time()
    counters = [kernel(unit, 0, unit.tasks if tasks else 0) for unit in units]
    return time.perf_counter() - start, time.process_time() - cpu, counters


def measure_direct(junctions: Set, threads: int, max_n: int, repeats: int) -> Iterator[Row]:
    """The `direct` kernel on all junctions and n-lengths at once, after one pass that is not timed."""
    import numba

    numba.set_num_threads(threads)
    kernel, units = junctions.load("direct", range(max_n + 1))
    timed(kernel, units)
    for repeat in range(repeats):
        seconds, cpu, _ = timed(kernel, units)
        yield junctions.row(
            KERNEL, "direct", repeat=repeat, n_lengths=f"0-{max_n}", threads=threads, seconds=seconds, cpu_seconds=cpu
        )


def measure_command(junctions: Set, options: argparse.Namespace, threads: int) -> Iterator[Row]:
    """`hpcvdj count` from start to end; the first run, in an empty kernel cache, apart."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("count", options.junctions, "-g", options.germline, "-o", Path(folder) / "counts.h5", "--overwrite")
        cache = {"NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
        for repeat in range(-1, options.command_repeats):
            done = common.run([*HPCVDJ, *words, "--max-n", MAX_N, "--threads", threads], **cache)
            yield junctions.row(
                FIRST if repeat < 0 else COMMAND, "direct", n_lengths=f"0-{MAX_N}", threads=threads,
                repeat=max(0, repeat), seconds=done.wall, cpu_seconds=done.cpu,
            )  # fmt: skip


def measure_probabilities(junctions: Set, options: argparse.Namespace) -> Iterator[Row]:
    """OLGA's fast class on one core; nothing if OLGA is not installed."""
    try:
        peer = Peer()
    except ImportError as error:
        say(f"generation probabilities skipped: OLGA is not installed ({error})")
        return
    queries = peer.queries(junctions.repertoire, options.pgen_sample, options.seed)
    size = {"sequences": len(queries), "pairs": len({query[1:] for query in queries})}
    for repeat in range(-1, options.command_repeats):
        # The first probability compiles what OLGA compiles.
        seconds, cpu, positive = peer.run(queries if repeat >= 0 else queries[:1])
        times = {"repeat": max(0, repeat), "seconds": seconds, "cpu_seconds": cpu}
        check = f"{positive} of {len(queries)} above zero" if repeat >= 0 else ""
        yield junctions.row(PROBABILITY if repeat >= 0 else LOAD, "OLGA", check=check, **times, **size)


def enumerate_sample(junctions: Set, measured: str, method: str, m: int, size: int, seed: int, repeat: int = 0) -> Row:
    """One n-length of an enumerating method on a random sample, checked against `direct`."""
    part = junctions.sample(size, seed)
    kernel, units = junctions.load(method, range(m, m + 1), part)
    timed(kernel, units, tasks=False)
    setup, _, _ = timed(kernel, units, tasks=False)
    seconds, cpu, counters = timed(kernel, units)
    _, _, expected = timed(*junctions.load("direct", range(m + 1), part))
    counted, reference = (np.concatenate([unit[:, -1] for unit in values]) for values in (counters, expected))
    different = int((counted != reference).sum())
    return junctions.row(
        measured, method, part, n_lengths=str(m), repeat=repeat, seconds=seconds, setup_seconds=min(setup, seconds),
        cpu_seconds=cpu, check=f"{different} counters differ" if different else EQUAL,
    )  # fmt: skip


def sample_size(junctions: Set, method: str, m: int, seconds: float, seed: int) -> int:
    """How many sequences take about `seconds`, by trying more and more of them."""
    size, most = 4, len(junctions.repertoire)
    while True:
        taken = max(1e-6, enumerate_sample(junctions, "pilot", method, m, size, seed).work)
        if size >= most or taken >= seconds / 10:
            return max(1, min(most, round(size * seconds / taken)))
        size = min(most, 4 * size)


def measure_enumeration(junctions: Set, options: argparse.Namespace) -> Iterator[Row]:
    """`baseline` and `bitwise` on one thread, each n-length on samples that fit the budget.

    One thread: a small sample has too few sequences in a V–J pair to keep several busy.  Each repeat has a sample of
    its own, so that the range shows the sampling as well as the clock.
    """
    import numba

    numba.set_num_threads(1)
    for m in range(options.enumerate_to + 1):
        for method in ENUMERATING:
            size = sample_size(junctions, method, m, options.budget / options.samples, options.seed)
            say(f"{method}, m = {m}: {options.samples} samples of {size:,}")
            for repeat in range(options.samples):
                seed = options.seed + 1 + repeat
                yield enumerate_sample(junctions, ENUMERATION, method, m, size, seed, repeat)
                if method == ENUMERATING[0]:
                    yield enumerate_sample(junctions, SAME_SAMPLE, ENUMERATING[1], m, size, seed, repeat)


class Count(common.Benchmark):
    """Methods, command and peer on one set of junctions."""

    name = "count_cpu"
    title = "Counting on CPU cores"
    row = Row
    renderer = "python benchmarks/count.py --render"
    about = "Time hpcvdj's methods and command on CPU cores, and the field's nearest peer, in one run."
    output = Path("results/count_cpu")

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What to count, and for how long."""
        add = parser.add_argument
        table = Path("inputs/mouse_trb/repertoire.tsv.gz")
        add("--junctions", metavar="TSV", type=Path, default=table, help="junctions to count")
        add("--germline", metavar="TSV", type=Path, default=common.GERMLINE, help="their germline table")
        add("--threads", metavar="N", type=int, default=0, help="most threads, timed on 1 and on N; 0: all cores")
        add("--repeats", metavar="N", type=int, default=15, help="repeats of the direct kernel")
        add("--command-repeats", metavar="N", type=int, default=5, help="repeats of the command, and of the peer")
        add("--budget", metavar="SECONDS", type=float, default=20.0, help="time for each method and n-length")
        add("--samples", metavar="N", type=int, default=3, help="random samples that share this budget")
        add("--enumerate-to", metavar="M", type=int, default=6, help="largest n-length to enumerate")
        add("--pgen-sample", metavar="N", type=int, default=5000, help="junctions given to OLGA")
        add("--seed", metavar="S", type=int, default=1, help="seed of the random samples")

    def facts(self, options: argparse.Namespace) -> dict[str, str]:
        """The inputs, and OLGA's version."""
        try:
            olga = metadata.version("olga")
        except metadata.PackageNotFoundError:
            olga = "not installed: generation probabilities skipped"
        return {"olga": olga, "junctions": str(options.junctions), "germline": str(options.germline)}

    def measure(self, options: argparse.Namespace) -> Iterator[Row]:
        """Everything, one after another."""
        junctions = Set(options)
        with tempfile.TemporaryDirectory() as folder:  # fills numba's cache, as after a first run
            common.run([*HPCVDJ, "count", options.junctions, "-g", options.germline, "-o", Path(folder) / "counts.h5"])
        start = time.perf_counter()
        junctions.load("direct", range(MAX_N + 1))
        yield junctions.row(LOAD, "direct", threads=options.threads, seconds=time.perf_counter() - start)
        for threads in sorted({1, options.threads}):
            say(f"direct on {threads} thread(s): kernel, command")
            for max_n in sorted({options.enumerate_to, MAX_N}):
                yield from measure_direct(junctions, threads, max_n, options.repeats)
            yield from measure_command(junctions, options, threads)
        say("generation probabilities")
        yield from measure_probabilities(junctions, options)
        yield from measure_enumeration(junctions, options)

    def page(self, rows: list[Row]) -> Iterator[Block]:
        """`direct`, OLGA, the enumerating methods."""
        measured = grouped(rows, "measured")
        kernels, enumerated = measured[KERNEL], measured[ENUMERATION]
        yield f"{kernels[0].of:,} junctions over {kernels[0].pairs_of:,} V–J pairs."
        checks = [row.check for row in (*enumerated, *measured[SAME_SAMPLE])]
        yield Check(all(check == EQUAL for check in checks), "counters", f"methods in {len(checks)} samples")
        yield "## Method `direct`"
        yield _direct_table([*kernels, *measured[COMMAND]])
        yield "Not included in these timings:"
        yield listing(
            [row for row in rows if row.measured in (LOAD, FIRST)],
            {
                "": lambda row: f"`{row.method}`",
                "once": lambda row: ONCE[row.measured, row.method],
                "threads": lambda row: row.threads,
                "wall": lambda row: durations([row.seconds]),
            },
        )
        yield "## The field's nearest: generation probabilities by OLGA"
        yield f"""
            This is {OTHER_QUANTITY}. OLGA gets each junction's CDR3 between its model's own anchor codons, with V and
            J; the sample is of junctions in frame whose genes have a CDR3 anchor in the model {MODEL}. Compare it with
            the kernel's row for one thread.
        """
        yield _probability_table(measured[PROBABILITY]) if PROBABILITY in measured else "OLGA was not installed."
        yield "## Methods that enumerate"
        yield """
            One thread. Every n-length has its own random samples. A sample's time is scaled to the whole set by its
            number of sequences (and what a V–J pair costs whatever its size, by the number of pairs).
        """
        yield _enumeration_table(enumerated)
        yield "On the same sequences, without what a V–J pair costs whatever its size:"
        yield _ratio_table([row for row in enumerated if row.method == ENUMERATING[0]], measured[SAME_SAMPLE])
        yield "All of these n-lengths together:"
        yield _total_table(kernels, enumerated)


def _direct_table(rows: list[Row]) -> str:
    names = {KERNEL: "`direct` kernel", COMMAND: "`hpcvdj count …`, start-up, reading and HDF5 included"}
    return listing(
        grouped(rows, "measured", "n_lengths", "threads").values(),
        {
            "measured": lambda group: names[group[0].measured],
            "n-lengths": lambda group: group[0].n_lengths.replace("-", "…"),
            "threads": lambda group: group[0].threads,
            "repeats": len,
            "wall, median (min…max)": lambda group: durations([row.seconds for row in group]),
            "junctions/s": lambda group: three_digits(group[0].sequences / middle(group, "seconds")),
            "cores used": cores_used,
        },
    )


def _probability_table(repeats: list[Row]) -> str:
    rates = [row.sequences / row.seconds for row in repeats]
    first = repeats[0]
    return listing(
        [first],
        {
            "measured": lambda row: f"nucleotide generation probability by `FastPgen`: {OTHER_QUANTITY}",
            "sample": lambda row: f"{row.sequences:,} of {row.of:,} junctions, random",
            "repeats": lambda row: len(repeats),
            "sequences/s, one core, median (min…max)": lambda row: spread(rates, three_digits),
            "cores used": lambda row: cores_used(repeats),
            "result": lambda row: row.check,
        },
    )


def whole_set(samples: list[Row]) -> float:
    """Seconds for the whole set by all samples together; they have one size."""
    return statistics.fmean(row.whole_set for row in samples)


def _how(samples: list[Row]) -> str:
    """How a figure for the whole set is made."""
    first = samples[0]
    if first.sequences == first.of:
        return f"measured on all {first.of:,} sequences"
    each = f", in each of {len(samples)} samples" if len(samples) > 1 else ""
    return f"scaled from {first.sequences:,} of {first.of:,} sequences{each}"


def _enumeration_table(rows: list[Row]) -> str:
    return listing(
        grouped(rows, "n_lengths", "method").values(),
        {
            "m": lambda samples: samples[0].n_lengths,
            "method": lambda samples: f"`{samples[0].method}`",
            "per sequence": lambda samples: durations([whole_set(samples) / samples[0].of]),
            "whole set, mean (min…max of samples)": lambda samples: durations(
                [row.whole_set for row in samples], whole_set(samples)
            ),
            "how": _how,
            "against `direct`": lambda samples: ", ".join(grouped(samples, "check")),
        },
    )


def _ratio_table(baseline: list[Row], bitwise: list[Row]) -> str:
    def ratio(slow: list[Row]) -> str:
        fast = [row for row in bitwise if row.n_lengths == slow[0].n_lengths]
        ratios = [a.work / b.work for a, b in zip(slow, fast, strict=True)]
        return spread(ratios, three_digits, sum(row.work for row in slow) / sum(row.work for row in fast))

    return listing(
        grouped(baseline, "n_lengths").values(),
        {
            "m": lambda samples: samples[0].n_lengths,
            "samples × sequences": lambda samples: f"{len(samples)} × {samples[0].sequences:,}",
            "`baseline` / `bitwise`, pooled (min…max of samples)": ratio,
        },
    )


def _total_table(kernels: list[Row], enumerated: list[Row]) -> str:
    last = max(int(row.n_lengths) for row in enumerated)
    direct = middle([row for row in kernels if row.threads == 1 and row.n_lengths == f"0-{last}"], "seconds")
    totals = {"direct": direct} | {
        method: sum(map(whole_set, grouped(rows, "n_lengths").values()))
        for method, rows in grouped(enumerated, "method").items()
    }
    return listing(
        totals,
        {
            "method": lambda method: f"`{method}`",
            f"whole set, m = 0…{last}, one thread": lambda method: (
                f"{durations([totals[method]])}, {'measured' if method == 'direct' else 'scaled from samples'}"
            ),
            "times `direct`": lambda method: three_digits(totals[method] / direct),
        },
    )


if __name__ == "__main__":
    raise SystemExit(Count().main())
