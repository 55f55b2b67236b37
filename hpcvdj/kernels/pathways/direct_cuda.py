"""The `direct` kernel on a GPU: tables, batches of one V–J pair, transfers, launches."""

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import (
    DeviceClock,
    HostArrays,
    Launched,
    allow_shared,
    compile_kernels,
    gpu_errors,
    on_gpu,
    shared_limit,
    shrinking,
)
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.pathways.d_table import DTable
from hpcvdj.kernels.pathways.tiles import split_pairs
from hpcvdj.recombination.alphabet import BASES_PER_WORD, encode, pack
from hpcvdj.recombination.germline import extended_j, extended_v
from hpcvdj.recombination.repertoire import Problem

ROWS = 1 << 24
"""Sequences on the GPU at a time, at most; fewer where memory is short."""

SMALL_COUNT = 1 << 30
"""Counters that stay below this are added up in 32 bits on the GPU."""

BATCH = np.dtype([("row", np.int64), ("rows", np.int32), ("pair", np.int32)])

CONSTANTS = {"BASES_PER_WORD": BASES_PER_WORD, "BATCH_BYTES": BATCH.itemsize}
"""What host and device share."""

_TYPES = {False: "long long", True: "int"}


class DirectKernel:
    """`direct` loaded with a problem; tasks are the sequences of the unit."""

    def __init__(self, problem: Problem, threads_per_block: int) -> None:
        self.repertoire, self.columns = problem.repertoire, problem.max_n + 1
        self.clock = DeviceClock()
        self._rows = ROWS
        self._host = HostArrays(self.columns)
        self.width = self.repertoire.words.shape[1]
        self._load_tables(problem)
        count = _TYPES[self._bound(problem) < SMALL_COUNT]
        name = f"direct<{self.width}, {count}>"
        self._kernel = compile_kernels("kernels/pathways/direct.cu", (name,), **CONSTANTS).get_function(name)
        self._count_bytes = 4 if count == "int" else 8
        self.threads = self._threads(threads_per_block)
        allow_shared(self._kernel, self._shared(self.threads))

    def _load_tables(self, problem: Problem) -> None:
        max_p, pairs = problem.germline.max_p, problem.repertoire.pairs
        loci = list(problem.germline.loci)
        self.d = DTable(problem, loci)
        distinct = problem.distinct_d_forms
        self.most_genes = self.d.genes.shape[2] if distinct else 0
        v = [extended_v(v.sequence, max_p) for v, _ in pairs]
        j = [extended_j(j.sequence, max_p) for _, j in pairs]
        facts = [[len(a), len(b), loci.index(p[0].locus)] for a, b, p in zip(v, j, pairs, strict=True)]
        self._tables = (
            on_gpu(np.array(facts, dtype=np.int32).reshape(-1, 3)),
            on_gpu(self._packed(v, at_end=False)),
            on_gpu(self._packed(j, at_end=True)),
            on_gpu(self.d.ends),
            on_gpu(self.d.genes),
            on_gpu(self.d.words.astype(np.int32)),
            on_gpu(self.d.empty.astype(np.int32)),
        )

    def _packed(self, texts: list[str], *, at_end: bool) -> NDArray[np.uint64]:
        """Each text in `width` words; what does not fit is cut where no sequence of that width can reach."""
        most = BASES_PER_WORD * self.width
        rows = []
        for text in texts:
            codes = encode(text[-most:] if at_end else text[:most])
            if at_end:
                codes = np.concatenate([np.zeros(most - len(codes), dtype=np.uint8), codes])
            rows.append(pack(codes, self.width))
        return np.array(rows, dtype=np.uint64).reshape(len(rows), self.width)

    def _bound(self, problem: Problem) -> int:
        """No second difference can pass this: D forms x places of a form x (V form, J form) pairs x impulses."""
        places: int = int(np.bitwise_count(self.d.ends).sum(axis=(1, 2)).max(initial=1))
        longest: int = BASES_PER_WORD * self.width + 1
        return 4 * (places + 1) * longest * longest * longest

    def _threads(self, asked: int) -> int:
        """Threads per block: 128, or as many as shared memory has room for the counters of."""
        threads = max(128, asked // 32 * 32)
        while threads > 32 and self._shared(threads) > shared_limit():
            threads //= 2
        return threads

    def _shared(self, threads: int) -> int:
        return 8 * 4 * self.d.ends.shape[1] + self._count_bytes * self.columns * threads

    def __call__(self, unit: Unit, first: int, last: int) -> NDArray[np.uint64]:
        """Counts of the unit's sequences `first` … `last`-1 in their rows; the other rows are zero."""
        return self.start(unit, first, last).result()

    @gpu_errors()
    def start(self, unit: Unit, first: int, last: int) -> Launched:
        """Begin to count the unit's sequences `first` … `last`-1."""
        counters = self._host.next(len(unit.rows))
        counters[:first] = counters[last:] = 0
        start, done = unit.rows.start, first

        def batch(rows: int) -> None:
            nonlocal done
            stop = min(last, done + rows)
            self._count(start + done, start + stop, counters[done:stop])
            done = stop

        while done < last:
            self._rows = shrinking(batch, self._rows)
        return Launched(self.clock, counters)

    def _count(self, first: int, last: int, counters: NDArray[np.uint64]) -> None:
        words = on_gpu(self.repertoire.words[first:last])
        lengths = on_gpu(self.repertoire.lengths[first:last])
        batches = on_gpu(self.batches(first, last))
        on_device = cupy.empty((last - first, self.columns), dtype=np.uint64)
        self.launch(words, lengths, batches, on_device)
        on_device.get(out=counters, blocking=False)

    def launch(self, words: cupy.ndarray, lengths: cupy.ndarray, batches: cupy.ndarray, counters: cupy.ndarray) -> None:
        """Count sequences that are on the GPU already; `batches` are those of `batches()`."""
        arguments = (
            words, lengths, batches, *self._tables,
            np.int32(self.d.ends.shape[1]), np.int32(self.most_genes), np.int32(self.columns - 1), counters,
        )  # fmt: skip
        self.clock.launch(self._kernel, (len(batches),), self.threads, arguments, self._shared(self.threads))

    def batches(self, first: int, last: int) -> NDArray[np.uint8]:
        """The blocks of sequences `first` … `last`-1: runs of one V–J pair of at most a block's threads."""
        pair, row, rows = split_pairs(self.repertoire.offsets, first, last, self.threads)
        out = np.zeros(len(pair), dtype=BATCH)
        out["row"], out["rows"], out["pair"] = row - first, rows, pair
        return out.view(np.uint8).reshape(len(out), BATCH.itemsize)
