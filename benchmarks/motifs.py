"""How fast is the comparison of motifs on CPU cores, beside FastSK, with the same kernel of the same sequences?

python benchmarks/motifs.py --fasta some.fasta   measure, write results/motifs_fastsk/{raw.csv,README.md}
python benchmarks/motifs.py --render             make README.md again from raw.csv
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _common import ROOT, record, run, say, timed

from hpcvdj.recombination.alphabet import INVALID
from hpcvdj.studies.motifs import SequenceSource
from hpcvdj.studies.pages import Block, IdentityCheck, Study
from hpcvdj.studies.tables import grouped, listing, middle, spread

PANEL = 2048
"""Rows whose counters hpcvdj holds at a time."""

MOST_DIFFERENT = 6.5 * 2**-53
"""Relative: hpcvdj divides by two roots, FastSK by the root of a product."""

ONE, BOTH, PEER = "hpcvdj", "hpcvdj, strands", "FastSK"
"""The programs; BOTH is hpcvdj with the pairs of each sequence and each other strand only once."""

TITLES = {ONE: "hpcvdj", BOTH: "one strand with both"}


@dataclass(frozen=True)
class Row:
    """One repeat of one program.

    sequences    of the `of` sequences of the source; of both strands, the same number of each
    seconds      wall, from the sequences in memory to the kernel of all pairs in memory
    counters     of these, hpcvdj's seconds until D_0 … D_m of all pairs were counted
    different    the largest relative difference of a kernel's value from the other program's; NaN: not compared
    """

    program: str = ""
    source: str = ""
    k: int = 0
    m: int = 0
    bases: int = 0
    sequences: int = 0
    of: int = 0
    repeat: int = 0
    seconds: float = 0.0
    counters: float = 0.0
    cpu_seconds: float = 0.0
    different: float = math.nan
    method: str = ""


def kernel_of(sequences: Any, k: int, m: int, strands: int) -> tuple[Any, float, str]:
    """hpcvdj's cosine of R_m [strands, sequences, sequences] of all pairs on and above the diagonal.

    Also returns the seconds of counting, and the method.
    """
    from hpcvdj.kernels.kmers.methods import choose
    from hpcvdj.kernels.kmers.profile import profile
    from hpcvdj.motifs.scores import Cosine, Scoring, base_frequencies, terms_of

    start = time.perf_counter()
    forward = profile(sequences, k, m)
    method = choose("auto", k, m, "cpu")
    counting = time.perf_counter() - start
    # A sequence has the same counters with itself as its other strand has.
    terms = terms_of(forward, m, base_frequencies(forward, both_strands=strands > 1))
    scoring = Scoring(Cosine([math.comb(k - h, m - h) for h in range(m + 1)]), [terms] * strands)
    kernel = np.empty((strands, len(forward), len(forward)))
    for strand, columns in enumerate([forward, forward.reverse_complement()][:strands]):
        start = time.perf_counter()
        comparison = method.load(columns)
        counting += time.perf_counter() - start
        for first in range(0, len(forward), PANEL):
            last = min(len(forward), first + PANEL)
            start = time.perf_counter()
            counters = comparison.counters(forward.part(first, last) if strand else None, first, last)
            counting += time.perf_counter() - start
            kernel[strand, first:last, first:] = scoring.rectangle(counters[:, :, first:], strand, first, first)
    return kernel, counting, str(method)


def measure_hpcvdj(options: argparse.Namespace, sequences: Any, like: Row, strands: int) -> tuple[list[Row], Any]:
    """Rows and the kernel, after a small comparison that is not timed and loads what is compiled."""
    kernel_of(sequences.part(0, min(16, len(sequences))), options.k, options.m, strands)
    program, rows, kernel = BOTH if strands > 1 else ONE, [], None
    for repeat in range(options.repeats):
        (kernel, counters, method), times = timed(lambda: kernel_of(sequences, options.k, options.m, strands))
        rows.append(replace(like, program=program, repeat=repeat, counters=counters, method=method, **times))
        say(f"{like.source}, {like.sequences:,}: {program} {rows[-1].seconds:.3g} s")
    return rows, kernel


def measure_fastsk(options: argparse.Namespace, sequences: Any, like: Row, kernels: list[Any]) -> Iterator[Row]:
    """FastSK's rows; its kernel, if it comes back, is compared with hpcvdj's."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "sequences.npz", Path(folder) / "kernel.npz"
        np.savez(source, codes=sequences.codes, offsets=sequences.offsets)
        words = (source, target, options.k, options.m, options.threads)
        for repeat in range(options.peer_repeats):
            run([sys.executable, "benchmarks/_fastsk.py", *words])
            with np.load(target) as stored:
                times = {name: float(stored[name]) for name in ("seconds", "cpu_seconds")}
                other = stored["kernel"]
            say(f"{like.source}, {like.sequences:,}: {PEER} {times['seconds']:.3g} s")
            different = max(largest_difference(kernel, other) for kernel in kernels) if len(other) else math.nan
            yield replace(like, program=PEER, repeat=repeat, different=different, **times)


def largest_difference(kernel: Any, other: Any) -> float:
    """The largest relative difference of `kernel` [strands, sequences, sequences] from FastSK's.

    Only values on and above the diagonal count.  FastSK has the other strands as further sequences.  Infinite unless
    the same values are above zero.
    """
    number = kernel.shape[1]
    corner = np.triu_indices(number)
    own = np.concatenate([strand[corner] for strand in kernel])
    peer = np.concatenate([other[:number, s * number : (s + 1) * number][corner] for s in range(len(kernel))])
    positive = peer > 0
    if not np.array_equal(own > 0, positive):
        return math.inf
    return float((np.abs(own - peer)[positive] / peer[positive]).max())


def measure_source(options: argparse.Namespace, source: Any, name: str) -> Iterator[Row]:
    """Both programs on more and more of the sequences."""
    sequences, _ = source.read()
    if (sequences.codes == INVALID).any() or sequences.lengths.min() < options.k:
        sys.exit(f"{name}: FastSK takes neither ambiguous bases nor sequences shorter than k; leave them out")
    strands = 2 if source.both_strands else 1
    for size in sorted({min(size, len(sequences)) for size in (*options.sizes, len(sequences))}):
        part, _ = replace(source, number=size // strands).read()
        number = len(part)
        like = Row(
            source=name, k=options.k, m=options.m, bases=int(part.lengths.max()), sequences=number, of=len(sequences)
        )
        kernels = []
        for used in range(1, strands + 1):
            rows, kernel = measure_hpcvdj(options, part.part(0, number // used), like, used)
            kernels.append(kernel)
            yield from rows
        yield from measure_fastsk(options, part, like, kernels)


def measured(options: argparse.Namespace) -> Iterator[Row]:
    """Random sequences, and those of the file; ends the benchmark if FastSK is not installed."""
    if not find_spec("fastsk"):
        sys.exit("FastSK is not installed; CONTRIBUTING.md says how to install it")
    yield from measure_source(options, SequenceSource(None, options.number, seed=options.seed), "random")
    if options.fasta is not None:
        half = options.number // 2
        name = f"{Path(options.fasta).name}, first {half:,}, both strands"
        yield from measure_source(options, SequenceSource(ROOT / options.fasta, half, both_strands=True), name)


class Motifs(Study):
    """hpcvdj and FastSK."""

    name = "motifs_fastsk"
    title = "Comparing motifs beside FastSK"
    row = Row
    renderer = "python benchmarks/motifs.py --render"
    notes = """
    Wall time, median (min…max), from sequences in memory to the kernel in memory; FastSK in a process of its own, its
    kernel left where it is. Cores used: in the order of the columns.

    One strand with both: among sequences and their other strands, half of all pairs repeat the other half. hpcvdj
    leaves them out with `--strands both`; FastSK has no such setting.
    """

    def page(self, rows: list[Row]) -> Iterator[Block]:
        """A table for each source, and whether the kernels are equal."""
        first = rows[0]
        yield f"""
            The gapped k-mer kernel of all pairs, normalised: R_{first.m} at k = {first.k}; FastSK's g = {first.k}, m =
            {first.m}. FastSK computes it exactly (`approx=False`). hpcvdj counts D_0 … D_{first.m} first and computes
            this kernel from them.
        """
        compared = [row for row in rows if not math.isnan(row.different)]
        if compared:
            worst, most = (max(getattr(row, name) for row in compared) for name in ("different", "sequences"))
            yield IdentityCheck(worst <= MOST_DIFFERENT, "values of the kernels (to rounding)", "programs")
            yield f"{len(compared)} kernel(s), up to {most:,} sequences; largest relative difference {worst:.1e}."
        for source, part in grouped(rows, "source").items():
            yield f"## {part[0].of:,} sequences of up to {part[0].bases} bases: {source}"
            yield source_table(part)


def source_table(rows: list[Row]) -> str:
    """A line for each number of sequences."""
    programs = grouped(rows, "program", "sequences")

    def wall(program: str, column: str = "seconds") -> Callable[[int], str]:
        return lambda size: spread([getattr(row, column) for row in programs[program, size]], "{:.3g}".format)

    def cores(repeats: list[Row]) -> str:
        return f"{median(row.cpu_seconds / row.seconds for row in repeats):.2f}"

    columns: dict[str, Any] = {"sequences": "{:,}".format, f"{PEER}, s": wall(PEER)}
    names = [name for name in (ONE, BOTH) if name in grouped(rows, "program")]
    for program in names:
        title = TITLES[program]
        columns |= {
            f"{title}: counters, s": wall(program, "counters"),
            f"{title}: kernel, s": wall(program),
            f"{title}: method": lambda size, program=program: programs[program, size][0].method,
            f"{title}: times as fast": lambda size, program=program: (
                f"**{middle(programs[PEER, size], 'seconds') / middle(programs[program, size], 'seconds'):.3g}**"
            ),
        }
    columns["cores used"] = lambda size: ", ".join(cores(programs[name, size]) for name in (PEER, *names))
    return listing(sorted(grouped(rows, "sequences")), columns)


if __name__ == "__main__":
    record(
        __doc__, measured, Motifs(),
        fasta=(None, "also both strands of its first N / 2 sequences"),
        number=(9184, "N: sequences, random ones of 500 bases"),
        sizes=([500, 1000, 2000, 4000], "compare the first of them before all"),
        k=(12, "bases of a k-mer; FastSK calls it g"),
        m=(2, "mismatches"),
        threads=(0, "threads of each program; 0: all usable cores"),
        repeats=(3, "of hpcvdj"),
        peer_repeats=(1, "of FastSK"),
        seed=(1, "of the random sequences"),
    )  # fmt: skip
