"""What the enumerating kernels share on the host: tables of forms, tiles of sequences, chunks of D forms."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.backends.cuda.device import DeviceClock, allow_shared, compile_kernels, set_constant, shared_limit
from hpcvdj.backends.forms import Forms, FormTable
from hpcvdj.methods.base import Problem, Unit

TILE_ROWS = 32
"""Sequences of one V–J pair that a block holds in shared memory at a time (enumeration.cuh has the same)."""

TILE = np.dtype([("pair", np.int32), ("row", np.int32), ("rows", np.int32)])
BLOCKS_PER_MULTIPROCESSOR = 64
"""Blocks that a launch should have for each multiprocessor, so that none idles while the last ones end."""

MOST_SHARES = 64
"""Shares of the D forms that blocks may take, at most: each share builds the list of starts anew."""

MOST_GRID_Y = 65535
"""Blocks along a grid's second dimension, on every GPU."""


class EnumeratingKernel:
    """`bitwise` or `baseline` loaded with a problem; tasks are the n-nucleotide strings of the unit."""

    file: str
    most_d_forms: int

    def __init__(self, problem: Problem, threads_per_block: int) -> None:
        self.repertoire = problem.repertoire
        self.clock = DeviceClock()
        self.forms = Forms(problem)
        self.loci = problem.loci
        self._module = compile_kernels(self.file + ".cu")
        self._kernel = self._module.get_function(self.file)
        self._multiprocessors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        self._load_pairs()
        self.threads = self._threads(threads_per_block)
        self._lengths = cupy.asarray(self.repertoire.lengths)
        self._constants: tuple[str, int] | None = None

    def sequences(self) -> cupy.ndarray:
        """The in vivo sequences as the kernel reads them."""
        raise NotImplementedError

    def table(self, forms: FormTable) -> NDArray[Any]:
        """V or J forms as the kernel reads them."""
        raise NotImplementedError

    def constants(self, forms: FormTable) -> tuple[tuple[str, NDArray[Any]], ...]:
        """D forms as named constant arrays, a row a form."""
        raise NotImplementedError

    def shared(self, rows: int, capacity: int) -> int:
        """Bytes of shared memory of a block for a tile of `rows` sequences and a list of `capacity` starts."""
        raise NotImplementedError

    def _threads(self, asked: int) -> int:
        """`asked`, or as many threads per block as shared memory has room for."""
        self.threads = asked
        while self.threads > 32 and self._shared() > shared_limit():
            self.threads = max(32, self.threads // 2)
        allow_shared(self._kernel, self._shared())
        return self.threads

    def _shared(self) -> int:
        return self.shared(TILE_ROWS, TILE_ROWS * self._most_v)

    def _load_pairs(self) -> None:
        """V and J forms of every pair, each segment's once, and where they stand."""
        first: dict[tuple[str, str], tuple[int, int]] = {}
        parts: dict[str, list[FormTable]] = {"V": [], "J": []}
        places = []
        for pair in range(len(self.repertoire.pairs)):
            v_table, _, j_table, _ = self.forms.of(pair)
            v, j = self.repertoire.pairs[pair]
            place: tuple[int, ...] = ()
            for kind, segment, table in (("V", v, v_table), ("J", j, j_table)):
                key = (kind, segment.allele)
                if key not in first:
                    first[key] = (sum(len(part.lengths) for part in parts[kind]), len(table.lengths))
                    parts[kind].append(table)
                place += first[key]
            places.append(place)
        self._pairs = cupy.asarray(np.array(places, dtype=np.int32).reshape(-1, 4))
        self._most_v = max((len(part.lengths) for part in parts["V"]), default=0)
        self._tables: list[cupy.ndarray] = []
        for kind in ("V", "J"):
            if parts[kind]:
                self._tables.append(cupy.asarray(np.concatenate([self.table(part) for part in parts[kind]])))
                lengths = np.concatenate([part.lengths for part in parts[kind]])
                self._tables.append(cupy.asarray(lengths.astype(np.uint8)))
        self._sequences = self.sequences()

    def __call__(self, unit: Unit, first: int, last: int) -> NDArray[np.uint64]:
        """Pathways with the n-nucleotide strings `first` … `last`-1."""
        counters = cupy.zeros(len(self.repertoire), dtype=np.uint64)
        if last > first:
            for locus in dict.fromkeys(self.loci[pair] for pair in unit.pairs):
                self._count_locus(unit, [p for p in unit.pairs if self.loci[p] == locus], first, last, counters)
        rows = slice(unit.rows.start, unit.rows.stop)
        counted = np.asarray(counters[rows].get())
        self.clock.collect()
        return counted[:, np.newaxis]

    def _count_locus(self, unit: Unit, pairs: list[int], first: int, last: int, counters: cupy.ndarray) -> None:
        _, d, _, has_d = self.forms.of(pairs[0])
        d = d.by_length
        tiles = self.tiles(pairs)
        blocks = -(-(last - first) // self.threads)
        capacity = TILE_ROWS * self._most_v
        for start in range(0, len(d.lengths), self.most_d_forms):
            count = min(self.most_d_forms, len(d.lengths) - start)
            self._set_d(self.loci[pairs[0]], d, start, count)
            for low in range(0, len(tiles), MOST_GRID_Y):
                some = cupy.asarray(tiles[low : low + MOST_GRID_Y])
                arguments = (
                    self._sequences, self._lengths, some, self._pairs, *self._tables,
                    np.int32(count), np.int32(has_d), np.int32(unit.n_lengths.start),
                    np.int64(first), np.int64(last), np.int32(capacity), counters,
                )  # fmt: skip
                wanted = BLOCKS_PER_MULTIPROCESSOR * self._multiprocessors
                shares = max(1, min(MOST_SHARES, count, -(-wanted // (blocks * len(some)))))
                self.clock.launch(self._kernel, (blocks, len(some), shares), self.threads, arguments, self._shared())

    def _set_d(self, locus: str, forms: FormTable, start: int, count: int) -> None:
        """The D forms `start` … into constant memory, unless they are there."""
        if self._constants == (locus, start):
            return
        for name, values in self.constants(forms):
            set_constant(self._module, name, values[start : start + count])
        self._constants = (locus, start)

    def tiles(self, pairs: list[int]) -> NDArray[np.uint8]:
        """The sequences of `pairs` in tiles of at most `TILE_ROWS`."""
        offsets = self.repertoire.offsets
        tiles = [
            (pair, row, min(TILE_ROWS, int(offsets[pair + 1]) - row))
            for pair in pairs
            for row in range(int(offsets[pair]), int(offsets[pair + 1]), TILE_ROWS)
        ]
        return np.array(tiles, dtype=TILE).view(np.uint8).reshape(len(tiles), -1)
