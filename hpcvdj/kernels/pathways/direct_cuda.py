"""The `direct` kernel on a GPU: tables, tiles, transfers, launches."""

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import (
    ROWS,
    DeviceClock,
    HostArrays,
    compile_kernels,
    fitting_threads,
    gpu_errors,
    in_batches,
    on_gpu,
)
from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pathways.d_table import DTable
from hpcvdj.kernels.pathways.forms import packed_table
from hpcvdj.kernels.tiles import split_pairs
from hpcvdj.recombination.alphabet import BASES_PER_WORD
from hpcvdj.recombination.germline import extended_j, extended_v
from hpcvdj.recombination.repertoire import Problem

SMALL_COUNT = 1 << 30
"""Counters that stay below this are added up in 32 bits on the GPU."""


class DirectKernel(Kernel):
    """`direct` loaded with a problem; tasks are the sequences of the unit."""

    @gpu_errors()
    def __init__(self, problem: Problem, threads_per_block: int) -> None:
        self.repertoire, self.columns = problem.repertoire, problem.max_n + 1
        self.clock = DeviceClock()
        self._rows = ROWS
        self._host = HostArrays(self.columns)
        self.width = self.repertoire.words.shape[1]
        self._load_tables(problem)
        count, self._count_bytes = ("int", 4) if self._bound() < SMALL_COUNT else ("long long", 8)
        name = f"direct<{self.width}, {count}>"
        self._kernel = compile_kernels("kernels/pathways/direct.cu", (name,)).get_function(name)
        self.threads = fitting_threads(self._kernel, max(128, threads_per_block // 32 * 32), self._shared)

    def _load_tables(self, problem: Problem) -> None:
        max_p, pairs = problem.germline.max_p, problem.repertoire.pairs
        self.d = DTable(problem)
        self.most_genes = self.d.genes.shape[2] if problem.distinct_d_forms else 0
        v = [extended_v(v.sequence, max_p) for v, _ in pairs]
        j = [extended_j(j.sequence, max_p) for _, j in pairs]
        facts = [[len(a), len(b), locus] for a, b, locus in zip(v, j, self.d.locus, strict=True)]
        # What does not fit is cut where no sequence of that width can reach; A is all zeros.
        most = BASES_PER_WORD * self.width
        self._tables = (
            on_gpu(np.array(facts, dtype=np.int32).reshape(-1, 3)),
            on_gpu(packed_table([text[:most] for text in v], self.width)),
            on_gpu(packed_table([text[-most:].rjust(most, "A") for text in j], self.width)),
            on_gpu(self.d.ends),
            on_gpu(self.d.genes),
            on_gpu(self.d.words.astype(np.int32)),
            on_gpu(self.d.empty.astype(np.int32)),
        )

    def _bound(self) -> int:
        """No second difference can pass this: D forms x places of a form x (V form, J form) pairs x impulses."""
        places: int = int(np.bitwise_count(self.d.ends).sum(axis=(1, 2)).max(initial=1))
        longest: int = BASES_PER_WORD * self.width + 1
        return 4 * (places + 1) * longest * longest * longest

    def _shared(self, threads: int) -> int:
        return 8 * 4 * self.d.ends.shape[1] + self._count_bytes * self.columns * threads

    @gpu_errors()
    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Begin to count the unit's sequences `first` … `last`-1, in their rows; the other rows are zero."""
        counters = self._host.next(len(unit.rows))
        counters[:first] = counters[last:] = 0
        start = unit.rows.start

        def batch(begin: int, end: int) -> None:
            self._count(start + begin, start + end, counters[begin:end])

        self._rows = in_batches(batch, first, last, self._rows)
        return self.clock.pending(counters)

    def _count(self, first: int, last: int, counters: NDArray[np.uint64]) -> None:
        tiles = split_pairs(self.repertoire.offsets, first, last, self.threads)
        on_device = cupy.empty((last - first, self.columns), dtype=np.uint64)
        arguments = (
            on_gpu(self.repertoire.words[first:last]), on_gpu(self.repertoire.lengths[first:last]),
            on_gpu(tiles.view(np.uint8)), *self._tables,
            np.int32(self.d.ends.shape[1]), np.int32(self.most_genes), np.int32(self.columns - 1), on_device,
        )  # fmt: skip
        self.clock.launch(self._kernel, (len(tiles),), self.threads, arguments, self._shared(self.threads))
        on_device.get(out=counters, blocking=False)
