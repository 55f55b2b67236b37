"""What the enumerating kernels share on the host: tables of forms, tiles of sequences, chunks of D forms."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.backends.cuda.device import (
    DeviceClock,
    HostArrays,
    Launched,
    allow_shared,
    compile_kernels,
    failures_named,
    on_gpu,
    set_constant,
    shared_limit,
)
from hpcvdj.backends.cuda.tiles import split_pairs
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
        self._load_tiles()
        self._lengths = on_gpu(self.repertoire.lengths)
        self._counters = cupy.zeros(len(self.repertoire), dtype=np.uint64)
        self._host = HostArrays(1)
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
        self._pairs = on_gpu(np.array(places, dtype=np.int32).reshape(-1, 4))
        self._most_v = max((len(part.lengths) for part in parts["V"]), default=0)
        self._tables: list[cupy.ndarray] = []
        for kind in ("V", "J"):
            if parts[kind]:
                self._tables.append(on_gpu(np.concatenate([self.table(part) for part in parts[kind]])))
                lengths = np.concatenate([part.lengths for part in parts[kind]])
                self._tables.append(on_gpu(lengths.astype(np.uint8)))
        self._sequences = self.sequences()

    def _load_tiles(self) -> None:
        """The tiles of all sequences, in row order, and where those of each pair begin."""
        pair, row, rows = split_pairs(self.repertoire.offsets, 0, len(self.repertoire), TILE_ROWS)
        tiles = np.zeros(len(pair), dtype=TILE)
        tiles["pair"], tiles["row"], tiles["rows"] = pair, row, rows
        self._tiles = on_gpu(tiles.view(np.uint8).reshape(len(tiles), TILE.itemsize))
        self._first_tile = np.searchsorted(pair, np.arange(len(self.repertoire.pairs) + 1))

    def __call__(self, unit: Unit, first: int, last: int) -> NDArray[np.uint64]:
        """Pathways with the n-nucleotide strings `first` … `last`-1."""
        return self.start(unit, first, last).result()

    @failures_named()
    def start(self, unit: Unit, first: int, last: int) -> Launched:
        """Begin to count the pathways with the n-nucleotide strings `first` … `last`-1."""
        counters = self._counters[unit.rows.start : unit.rows.stop]
        counters.fill(0)
        if last > first:
            for locus, pairs in groupby(unit.pairs, key=lambda pair: self.loci[pair]):
                some = list(pairs)
                self._count_locus(locus, range(some[0], some[-1] + 1), unit.n_lengths.start, first, last)
        on_host = self._host.next(len(unit.rows))
        counters.get(out=on_host[:, 0], blocking=False)
        return Launched(self.clock, on_host)

    def _count_locus(self, locus: str, pairs: range, m: int, first: int, last: int) -> None:
        _, d, _, has_d = self.forms.of(pairs.start)
        d = d.by_length
        first_tile, last_tile = int(self._first_tile[pairs.start]), int(self._first_tile[pairs.stop])
        blocks = -(-(last - first) // self.threads)
        capacity = TILE_ROWS * self._most_v
        for start in range(0, len(d.lengths), self.most_d_forms):
            count = min(self.most_d_forms, len(d.lengths) - start)
            self._set_d(locus, d, start, count)
            for low in range(first_tile, last_tile, MOST_GRID_Y):
                tiles = self._tiles[low : min(low + MOST_GRID_Y, last_tile)]
                arguments = (
                    self._sequences, self._lengths, tiles, self._pairs, *self._tables,
                    np.int32(count), np.int32(has_d), np.int32(m),
                    np.int64(first), np.int64(last), np.int32(capacity), self._counters,
                )  # fmt: skip
                wanted = BLOCKS_PER_MULTIPROCESSOR * self._multiprocessors
                shares = max(1, min(MOST_SHARES, count, -(-wanted // (blocks * len(tiles)))))
                self.clock.launch(self._kernel, (blocks, len(tiles), shares), self.threads, arguments, self._shared())

    def _set_d(self, locus: str, forms: FormTable, start: int, count: int) -> None:
        """The D forms `start` … into constant memory, unless they are there."""
        if self._constants == (locus, start):
            return
        for name, values in self.constants(forms):
            set_constant(self._module, name, values[start : start + count])
        self._constants = (locus, start)

    def memory(self) -> dict[str, int]:
        """Bytes on the GPU of the V, J and D forms and of the in vivo sequences, their lengths apart: Table III."""
        d = {self.loci[pair]: self.forms.of(pair)[1].by_length for pair in range(len(self.loci))}
        sizes = {"V": self._tables[0].nbytes, "J": self._tables[2].nbytes, "in vivo": self._sequences.nbytes}
        sizes["D"] = sum(self.constants(forms)[0][1].nbytes for forms in d.values())
        return sizes
