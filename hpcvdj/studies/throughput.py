"""Measure `direct` with more junctions than a file would comfortably have: scaling of the kernel and of the rest.

Each rank makes its own junctions, as row k of a set depends only on k and on the seed of the set.  Junctions are drawn
as in `hpcvdj simulate`, but independently, so rows may repeat.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from hpcvdj.counting.config import Config
from hpcvdj.generation.settings import PAPER_LARGEST_PAIR, PAPER_SEQUENCES
from hpcvdj.generation.simulate import pair_sizes, usable_pairs
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.method import THREADS_PER_BLOCK
from hpcvdj.kernels.neighbours.degrees_cpu import mixed
from hpcvdj.kernels.pathways.forms import Texts
from hpcvdj.kernels.pathways.methods import Direct
from hpcvdj.kernels.sums import exact_column_sums
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.recombination.alphabet import BASES_PER_WORD, NUCLEOTIDES
from hpcvdj.recombination.germline import Germline, d_forms, extended_j, extended_v
from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3, Problem, Repertoire
from hpcvdj.runs.partition import block_range
from hpcvdj.runs.run import Run
from hpcvdj.studies.pages import Block, IdentityCheck, Plot, Study
from hpcvdj.studies.rows import hardware
from hpcvdj.studies.tables import distinct, grouped, listing, middle, number, same

BATCH = 1 << 22
"""The number of junctions that a rank makes, counts and sums at a time."""

_LARGEST_N = 10
_CHUNK = 1 << 12
_BASES_PER_WORD = BASES_PER_WORD  # numba takes constants of this module only


@dataclass(frozen=True)
class ThroughputRow:
    """A repeat.  Seconds are sums over batches, and the maximum over ranks.

    make      seconds to make the junctions in host memory, which a file or a sequencer would do otherwise
    count     seconds of the kernel call: copy to the GPU, kernel, copy of the counters to host memory
    device    seconds of the kernel by the GPU's clock (0 on CPU cores)
    sum       seconds to sum the counters of each n-length on the host
    reduce    seconds to combine the sums of the ranks
    wall      seconds of all but `make`
    pathways  number of pathways of all junctions and n-lengths
    """

    ranks: int
    repeat: int
    junctions: int
    max_n: int
    seed: int
    make: float
    count: float
    device: float
    sum: float
    reduce: float
    wall: float
    pathways: int
    hardware: str

    @property
    def kernel(self) -> float:
        """Seconds in the kernel, by the GPU's clock or, on CPU cores, by the host's clock."""
        return self.device or self.count


def measure(junctions: "PackedSet", config: Config, run: Run, repeats: int) -> list[ThroughputRow]:
    """Count `junctions` with `direct`, each rank its block range, `repeats` times; the rows are complete on root."""
    backend = run.bind(config.backend, strict=config.strict_binding)
    first, last = block_range(len(junctions), THREADS_PER_BLOCK, run.rank, run.ranks)
    max_n = int(config.max_n)
    _count(backend, junctions, max_n, range(first, min(last, first + BATCH)))  # compiles, allocates
    rows = []
    for repeat in range(repeats):
        run.barrier()
        (make, count, device, summing), pathways = _count(backend, junctions, max_n, range(first, last))
        before = time.perf_counter()
        gathered = run.gather(pathways) or [pathways]
        reduce = time.perf_counter() - before
        make, count, device, summing, reduce, wall = run.slowest(make, count, device, summing, reduce, count + summing)
        rows.append(ThroughputRow(
            run.ranks, repeat, len(junctions), max_n, junctions.seed, make, count, device, summing, reduce, wall,
            sum(gathered), hardware(backend),
        ))  # fmt: skip
    return rows


def _count(backend: Backend, junctions: "PackedSet", max_n: int, rows: range) -> tuple[list[float], int]:
    """Count `rows` batch by batch: seconds (make, count, device, sum) and the number of pathways."""
    seconds = np.zeros(4)
    pathways = 0
    for start in rows[::BATCH]:
        begun = time.perf_counter()
        repertoire = junctions.rows(start, min(rows.stop, start + BATCH))
        packed = time.perf_counter()
        problem = Problem(repertoire, junctions.germline, max_n)
        kernel = backend.load(Direct(), problem, THREADS_PER_BLOCK)
        unit = Unit(range(len(repertoire.pairs)), range(len(repertoire)), range(max_n + 1), len(repertoire))
        loaded = time.perf_counter()
        counters = kernel(unit, 0, unit.tasks)
        counted = time.perf_counter()
        pathways += sum(exact_column_sums(counters))
        clock = getattr(kernel, "clock", None)
        device = clock.milliseconds / 1000 if clock else 0.0
        seconds += [packed - begun, counted - loaded, device, time.perf_counter() - counted]
    return seconds.tolist(), pathways


class PackedSet:
    """A set of `count` junctions of the functional V–J pairs of a germline: n-lengths 0 … 10, CDR3s of at most 60 nt.

    The sizes of the pairs decrease as in the paper's mouse set (see `hpcvdj.generation.simulate.pair_sizes`).
    """

    def __init__(self, germline: Germline, count: int, seed: int) -> None:
        self.germline, self.seed = germline, seed
        self.pairs = usable_pairs(germline, ("F",))
        sizes = pair_sizes(count, len(self.pairs), PAPER_LARGEST_PAIR / PAPER_SEQUENCES)
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        self._v = Texts.of([extended_v(v.sequence, germline.max_p) for v, _ in self.pairs])
        self._j = Texts.of([extended_j(j.sequence, germline.max_p) for _, j in self.pairs])
        ranges: dict[str, tuple[int, int]] = {}
        forms: list[str] = []
        for locus in germline.loci:
            genes = germline.d_segments(locus)
            of_locus = [form for gene in genes for form in d_forms(gene.sequence, max_p=germline.max_p)] or [""]
            ranges[locus] = (len(forms), len(of_locus))
            forms += of_locus
        self._d = Texts.of(forms)
        self._d_range = np.array([ranges[v.locus] for v, _ in self.pairs])

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def rows(self, first: int, last: int) -> Repertoire:
        """Make the rows `first` … `last`-1 as a repertoire of the same pairs, on all threads."""
        words = np.empty((last - first, NUCLEOTIDES.words_for(PAPER_LONGEST_CDR3)), dtype=np.uint64)
        lengths = np.empty(last - first, dtype=np.uint8)
        arguments = (
            np.uint64(self.seed),
            first,
            self.offsets,
            *self._v,
            *self._j,
            *self._d,
            self._d_range,
            words,
            lengths,
        )
        on_threads(_make, parts_of(len(lengths), _CHUNK), *arguments)
        offsets = np.clip(self.offsets, first, last) - first
        return Repertoire(words, lengths, self.pairs, offsets)


@njit(cache=True, nogil=True)
def _next(state):  # type: ignore[no-untyped-def]
    """Return the next state and its 64 random bits, by SplitMix64 of Steele, Lea and Flood."""
    state += np.uint64(0x9E3779B97F4A7C15)
    return state, mixed(state)


@njit(cache=True, nogil=True)
def _below(bits, shift, bound):  # type: ignore[no-untyped-def]
    """Return a number in 0 … bound-1 from 16 random bits."""
    return np.int64((((bits >> np.uint64(shift)) & np.uint64(0xFFFF)) * np.uint64(bound)) >> np.uint64(16))


@njit(cache=True, nogil=True)
def _append(codes, begin, count, words, row, length):  # type: ignore[no-untyped-def]
    """Append `count` of `codes` to a packed row that has `length` bases, and return the new length."""
    for k in range(begin, begin + count):
        words[row, length // _BASES_PER_WORD] |= np.uint64(codes[k]) << np.uint64(62 - 2 * (length % _BASES_PER_WORD))
        length += 1
    return length


@njit(cache=True, nogil=True)
def _make(part, seed, first, offsets, v, v_length, j, j_length, d, d_length, d_range, words, lengths):  # type: ignore[no-untyped-def]
    """Fill a part of the rows from `first` on of the set into `words` and `lengths`."""
    n = np.empty(_LARGEST_N, dtype=np.uint8)
    pair = np.searchsorted(offsets, first + part[0], side="right") - 1
    for row in range(part[0], part[1]):
        while offsets[pair + 1] <= first + row:
            pair += 1
        # The row number passes through the generator, so that the generators of rows start far apart.
        state, bits = _next(np.uint64(first + row) ^ (seed * np.uint64(0x9E3779B97F4A7C15)))
        state = bits
        while True:
            state, bits = _next(state)
            m = _below(bits, 0, _LARGEST_N + 1)
            cut = _below(bits, 16, m + 1)
            a = _below(bits, 32, v_length[pair] + 1)
            b = _below(bits, 48, j_length[pair] + 1)
            state, bits = _next(state)
            form = d_range[pair, 0] + _below(bits, 0, d_range[pair, 1])
            for k in range(m):
                n[k] = (bits >> np.uint64(16 + 2 * k)) & np.uint64(3)
            if a + m + d_length[form] + b <= PAPER_LONGEST_CDR3:
                break
        for word in range(words.shape[1]):
            words[row, word] = 0
        length = _append(v[pair], 0, a, words, row, 0)
        length = _append(n, 0, cut, words, row, length)
        length = _append(d[form], 0, d_length[form], words, row, length)
        length = _append(n, cut, m - cut, words, row, length)
        lengths[row] = _append(j[pair], j_length[pair] - b, b, words, row, length)


class Throughput(Study):
    """Junctions per second by ranks."""

    name = "throughput"
    title = "Throughput of `direct`"
    row = ThroughputRow
    notes = """
    Kernel: by the GPU's clock. All: from junctions in host memory to the sums of their counters in host memory, the
    slowest rank's, without making the junctions. Medians of the repeats.
    """

    def page(self, rows: list[ThroughputRow]) -> Iterator[Block]:
        by_ranks = grouped(sorted(rows, key=lambda row: row.ranks), "ranks")

        def rate(repeats: list[ThroughputRow], column: str) -> float:
            return repeats[0].junctions / middle(repeats, column)

        def speed_up(repeats: list[ThroughputRow], column: str) -> str:
            return number(rate(repeats, column) / rate(by_ranks[1], column) if 1 in by_ranks else math.nan, ".2f")

        sizes = distinct(rows, "junctions", ",")
        yield f"{sizes} in silico junctions, n-lengths 0-{rows[0].max_n}, on {distinct(rows, 'hardware')}."
        yield IdentityCheck(same(rows, "pathways", "junctions", "seed"), "totals", "rank counts")
        columns = {"kernel": "kernel", "all": "wall"}
        rates = {name: {ranks: rate(by_ranks[ranks], column) for ranks in by_ranks} for name, column in columns.items()}
        axes = {"xlabel": "ranks (GPUs)", "ylabel": "junctions per second", "yscale": "log"}
        yield Plot("throughput", "junctions per second by ranks", [(rates, axes)])
        yield listing(
            by_ranks.values(),
            {
                "ranks": lambda repeats: repeats[0].ranks,
                "kernel, s": lambda repeats: f"{middle(repeats, 'kernel'):.4g}",
                "junctions/s in the kernel": lambda repeats: f"{rate(repeats, 'kernel'):.3g}",
                "speed-up of the kernel": lambda repeats: speed_up(repeats, "kernel"),
                "to and from the GPU, s": lambda repeats: f"{middle(repeats, 'count') - middle(repeats, 'kernel'):.3g}",
                "sums, s": lambda repeats: f"{middle(repeats, 'sum'):.3g}",
                "all, s": lambda repeats: f"{middle(repeats, 'wall'):.4g}",
                "junctions/s": lambda repeats: f"{rate(repeats, 'wall'):.3g}",
                "speed-up": lambda repeats: speed_up(repeats, "wall"),
                "making, s": lambda repeats: f"{middle(repeats, 'make'):.3g}",
                "repeats": len,
            },
        )
