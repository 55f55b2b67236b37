"""Comparing motifs on CPU cores: hpcvdj beside FastSK, the same kernel of the same sequences, in one run.

python benchmarks/motifs.py --fasta some.fasta   measure, write results/motifs_fastsk/{raw.csv,README.md}
python benchmarks/motifs.py --render             remake README.md from raw.csv
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import _common as common
from _common import duration, markdown, say, spread_of_durations

PANEL = 2048
"""Rows at a time, of which hpcvdj holds all counters."""

MOST_DIFFERENT = 6.5 * 2**-53
"""Relative: hpcvdj divides by two roots, FastSK by the root of a product."""


ONE, BOTH, PEER = "hpcvdj", "hpcvdj, strands", "FastSK"


@dataclass(frozen=True)
class Row:
    """One repeat of one program.

    program      FastSK, hpcvdj, or hpcvdj of one strand with both: the same values, without those that are there twice
    sequences    so many of `of`; of both strands as many of each
    seconds      wall, from the sequences in memory to the kernel of all pairs in memory
    counters     hpcvdj: seconds of these until D_0 … D_m of all pairs were counted
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


def weights(k: int, m: int) -> list[float]:
    """With which the sum of w_h D_h is R_m."""
    return [float(math.comb(k - h, m - h)) for h in range(m + 1)]


def kernel_of(sequences: Any, k: int, m: int, threads: int, strands: int) -> tuple[Any, float, str]:
    """hpcvdj's: the cosine of R_m [strands, sequences, sequences] of all pairs on and above the diagonal; seconds of
    counting, and by which method.
    """
    import numpy as np

    from hpcvdj.kernels.kmers.profile import profile
    from hpcvdj.kernels.kmers.costs import estimates
    from hpcvdj.kernels.kmers.methods import load
    from hpcvdj.motifs.scores import base_frequencies, scoring, terms_of

    start = time.perf_counter()
    some = profile(sequences, k, m)
    choice = estimates(some, m, "cpu", threads)[0]
    counting = time.perf_counter() - start
    # A sequence has the same counters with itself as its other strand has.
    terms = terms_of(some, m, base_frequencies(some, both_strands=strands > 1))
    how = scoring("cosine", weights(k, m), k, m)
    kernel = np.empty((strands, len(some), len(some)))
    for strand, columns in enumerate([some, some.reverse_complement()][:strands]):
        start = time.perf_counter()
        comparison = load(choice, columns, m, "cpu")
        counting += time.perf_counter() - start
        for first in range(0, len(some), PANEL):
            last = min(len(some), first + PANEL)
            start = time.perf_counter()
            counters = (
                comparison.counters(some.part(first, last), first) if strand else comparison.counters(None, first, last)
            )
            counting += time.perf_counter() - start
            parts = terms.part(first, last), terms.part(first, len(some))
            kernel[strand, first:last, first:] = how.of(counters[:, :, first:], *parts)
    return kernel, counting, f"{choice.method}, {choice.blocks} blocks" if choice.blocks else choice.method


def measure_hpcvdj(
    options: argparse.Namespace, some: Any, threads: int, like: Row, strands: int
) -> tuple[list[Row], Any]:
    """Rows and the kernel, after a small comparison that is not timed and loads what is compiled."""
    kernel_of(some.part(0, 16), options.k, options.m, threads, strands)
    program, rows = BOTH if strands > 1 else ONE, []
    for repeat in range(options.repeats):
        start, cpu = time.perf_counter(), time.process_time()
        kernel, counters, method = kernel_of(some, options.k, options.m, threads, strands)
        times = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
        rows.append(row_like(like, program=program, repeat=repeat, counters=counters, method=method, **times))
        say(f"{like.source}, {like.sequences:,}: {program} {duration(rows[-1].seconds)}")
    return rows, kernel


def measure_fastsk(options: argparse.Namespace, some: Any, threads: int, like: Row, kernels: Any) -> Iterator[Row]:
    """The same of FastSK, compared with hpcvdj's `kernels` as far as it comes back."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "sequences.npz", Path(folder) / "kernel.npz"
        np.savez(source, codes=some.codes, offsets=some.offsets)
        arguments = (source, target, options.k, options.m, threads)
        for repeat in range(options.peer_repeats):
            common.run([sys.executable, "benchmarks/_fastsk.py", *map(str, arguments)])
            with np.load(target) as found:
                times = {name: float(found[name]) for name in ("seconds", "cpu_seconds")}
                other = found["kernel"]
            say(f"{like.source}, {like.sequences:,}: {PEER} {duration(times['seconds'])}")
            different = max(largest_difference(kernel, other) for kernel in kernels) if len(other) else math.nan
            yield row_like(like, program=PEER, repeat=repeat, different=different, **times)


def row_like(like: Row, **values: Any) -> Row:
    """`like` with other values."""
    return Row(**{**vars(like), **values})


def largest_difference(kernel: Any, other: Any) -> float:
    """Of the values of `kernel` [strands, sequences, sequences] on and above the diagonal, relative to FastSK's.

    FastSK has the other strands as so many sequences more.  Infinite if not the same values are above zero.
    """
    import numpy as np

    number = kernel.shape[1]
    corner = np.triu_indices(number)
    mine = np.concatenate([strand[corner] for strand in kernel])
    theirs = np.concatenate([other[:number, s * number : (s + 1) * number][corner] for s in range(len(kernel))])
    some = theirs > 0
    if not np.array_equal(mine > 0, some):
        return math.inf
    return float((np.abs(mine - theirs)[some] / theirs[some]).max())


def measure_source(options: argparse.Namespace, source: Any, name: str, threads: int) -> Iterator[Row]:
    """Both programs on more and more of the sequences; FastSK as long as it is expected to end in time."""
    from hpcvdj.motifs.sequences import SequenceSet

    theirs: list[Row] = []
    whole: SequenceSet = source.read()[0]
    if whole.ambiguous or whole.lengths.min() < options.k:
        sys.exit(f"{name}: ambiguous bases or sequences shorter than k, which FastSK does not take; leave them out")
    strands = 2 if source.both_strands else 1
    for size in sorted({min(size, len(whole)) for size in (*options.sizes, len(whole))}):
        some = replace(source, number=size // strands).read()[0].part(0, size // strands * strands)
        like = Row(
            source=name, k=options.k, m=options.m, bases=int(some.lengths.max()), sequences=len(some), of=len(whole)
        )
        kernels = []
        for part in range(1, strands + 1):
            ours, kernel = measure_hpcvdj(options, some.part(0, len(some) // part), threads, like, part)
            kernels.append(kernel)
            yield from ours
        if theirs and expected(theirs, len(some)) > options.longest:
            say(f"{name}, {len(some):,}: FastSK left out, it would take about {duration(expected(theirs, len(some)))}")
            continue
        for row in measure_fastsk(options, some, threads, like, kernels):
            theirs.append(row)
            yield row


def power(rows: list[Row]) -> float:
    """p of seconds that grow with sequences^p, between the two largest sizes; 2 if there is but one."""
    sizes = sorted({row.sequences for row in rows})[-2:]
    if len(sizes) < 2:
        return 2.0
    low, high = (median(rows, size) for size in sizes)
    return math.log(high / low) / math.log(sizes[1] / sizes[0])


def expected(rows: list[Row], size: int) -> float:
    """Seconds for `size` sequences, as the largest sizes measured let expect."""
    largest = max(row.sequences for row in rows)
    return median(rows, largest) * (size / largest) ** power(rows)


def median(rows: list[Row], size: int) -> float:
    """Median seconds of the rows of one size."""
    return statistics.median(row.seconds for row in rows if row.sequences == size)


def measure(options: argparse.Namespace) -> tuple[dict[str, str], list[Row]]:
    """Everything, as facts and raw rows."""
    from hpcvdj.runs.ranks import World, set_threads

    # numba reads its thread count when it is imported, so this comes before the first use of a kernel.
    common.forget_thread_settings()
    threads = set_threads(World(), options.threads)
    facts = common.environment("motifs.py", threads) | {"fastsk": fastsk_version()}
    from hpcvdj.studies.motif_sources import Source

    number = options.number
    sources = {"random": Source(None, number, seed=options.seed)}
    if options.fasta:
        name = f"{options.fasta.name}, first {number // 2:,}, both strands"
        sources[name] = Source(common.ROOT / options.fasta, number // 2, both_strands=True)
    rows: list[Row] = []
    for name, source in sources.items():
        rows += measure_source(options, source, name, threads)
    return facts, rows


def fastsk_version() -> str:
    """FastSK's version; ends the benchmark if it is absent."""
    from importlib import metadata

    try:
        return metadata.version("fastsk")
    except metadata.PackageNotFoundError:
        sys.exit("FastSK is not installed; CONTRIBUTING.md says how, or use --render")


def source_table(rows: list[Row]) -> str:
    """Both programs by the number of sequences."""
    ours = {name: [row for row in rows if row.program == name] for name in (ONE, BOTH)}
    theirs = [row for row in rows if row.program == PEER]
    lines = []
    for size in sorted({row.sequences for row in ours[ONE]}):
        other = [row for row in theirs if row.sequences == size]
        upto = [row for row in theirs if row.sequences <= size]
        mark = "" if other else " †"
        peer = median(other, size) if other else expected(theirs, size)
        cells = [f"{size:,}", spread_of_durations([row.seconds for row in other]) if other else duration(peer) + mark]
        cells.append(f"{power(upto):.2f}" if other and len({row.sequences for row in upto}) > 1 else "")
        for some in filter(None, ours.values()):
            mine = [row for row in some if row.sequences == size]
            cells.append(spread_of_durations([row.counters for row in mine]))
            cells.append(f"{spread_of_durations([row.seconds for row in mine])}, {mine[0].method}")
            cells.append(f"**{peer / median(mine, size):.3g}**{mark}")
        busy = [[row for row in some if row.sequences == size] for some in (theirs, *ours.values())]
        cells.append(", ".join(cores_used(repeats) for repeats in busy if repeats))
        lines.append(cells)
    head = ["sequences", "FastSK", "p", "hpcvdj: counters", "hpcvdj: kernel", "times as fast"]
    if ours[BOTH]:
        head += ["one strand with both: counters", "one strand with both: kernel", "times as fast"]
    return markdown([*head, "cores used"], lines)


def cores_used(repeats: list[Row]) -> str:
    """Processor seconds over wall seconds; less than the threads asked for when others use the machine too."""
    return f"{statistics.median(row.cpu_seconds / row.seconds for row in repeats):.2f}"


def verdict(rows: list[Row]) -> str:
    """Whether the kernels that were compared are the same."""
    compared = [row for row in rows if not math.isnan(row.different)]
    if not compared:
        return "none was compared"
    worst = max(row.different for row in compared)
    sets = f"{len(compared)} kernel(s) of up to {max(row.sequences for row in compared):,} sequences"
    same = "equal" if worst <= MOST_DIFFERENT else "DIFFERENT"
    return f"{same} in {sets}: the largest relative difference is {worst:.1e}"


def render(folder: Path) -> bool:
    """README.md from raw.csv; whether the kernels agree."""
    facts, rows = common.read_raw(folder, Row)
    first = rows[0]
    tables = "\n".join(
        f"## {some[0].of:,} sequences of up to {some[0].bases} bases: {source}\n\n{source_table(some)}"
        for source in dict.fromkeys(row.source for row in rows)
        for some in [[row for row in rows if row.source == source]]
    )
    strands = (
        "One strand with both: of sequences and their other strands half of all pairs say what the other half says.\n"
        "hpcvdj leaves them out if it is told so (`--strands both`); FastSK has no such setting.\n"
    )
    left_out = "† FastSK was left out, since it would take too long: scaled with the last p (2 where there is none).\n"
    text = f"""# Comparing motifs beside FastSK

The gapped k-mer kernel of all pairs, normalised: R_{first.m} at k = {first.k}; FastSK's g = {first.k}, m = {first.m}.
FastSK computes it exactly (`approx=False`). hpcvdj counts D_0 … D_{first.m} first, of which this kernel follows.
Made from `raw.csv` by `python benchmarks/motifs.py --render`; not edited by hand.

{common.facts_table(facts)}
{tables}
Wall time, median (min…max), from sequences in memory to the kernel in memory; FastSK in a process of its own, its
kernel left where it is. Its time grows with sequences^p from the line before. Cores used: in the order of the columns.
{strands if any(row.program == BOTH for row in rows) else ""}{left_out if "†" in tables else ""}
Values of the kernels: {verdict(rows)}.
"""
    (folder / common.REPORT).write_text(text)
    return not verdict(rows).startswith("DIFFERENT")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = common.parser(
        "Time hpcvdj and FastSK on the same kernel of the same sequences, on CPU cores, in one run.",
        Path("results/motifs_fastsk"),
    )
    add = parser.add_argument
    add("--fasta", metavar="FASTA", type=Path, default=None, help="both strands of its first N / 2 sequences as well")
    add("--number", metavar="N", type=int, default=9184, help="sequences, random ones of 500 bases")
    sizes = [500, 1000, 2000, 4000]
    add("--sizes", metavar="N", nargs="*", type=int, default=sizes, help="first so many of them, before all")
    add("-k", metavar="K", type=int, default=12, help="bases of a k-mer; FastSK calls it g")
    add("-m", metavar="M", type=int, default=2, help="mismatches")
    add("--threads", metavar="N", type=int, default=0, help="threads of either program; 0: all usable cores")
    add("--repeats", metavar="N", type=int, default=3, help="repeats of hpcvdj")
    add("--peer-repeats", metavar="N", type=int, default=1, help="repeats of FastSK")
    add("--longest", metavar="SECONDS", type=float, default=900.0, help="FastSK is left out if it would take longer")
    add("--seed", metavar="S", type=int, default=1, help="seed of the random sequences")
    return parser.parse_args()


def main() -> int:
    """Measure and render; 1 if the kernels differ."""
    return common.study(arguments(), measure, render, "kernels equal", "KERNELS DIFFER")


if __name__ == "__main__":
    raise SystemExit(main())
