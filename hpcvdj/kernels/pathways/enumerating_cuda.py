"""The enumerating kernels on a GPU: tables of forms, tiles of sequences, runs of D forms that fit constant memory."""

from itertools import groupby
from typing import Any, ClassVar

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
    set_constant,
    shared_limit,
)
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.pathways.forms import PADDED, WORDS, Forms, FormTable, padded_codes
from hpcvdj.kernels.pathways.tiles import split_pairs
from hpcvdj.recombination.alphabet import BASES_PER_WORD
from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3, Problem

TILE_ROWS = 32
"""Sequences of one V–J pair that a block holds in shared memory at a time."""

TILE = np.dtype([("pair", np.int32), ("row", np.int32), ("rows", np.int32)])

BLOCKS_PER_MULTIPROCESSOR = 64
"""Blocks that a launch should have for each multiprocessor, so that none idles while the last ones end."""

MOST_SHARES = 64
"""Shares of the D forms that blocks may take, at most: each share makes the list of starts again."""

MOST_GRID_Y = 65535
"""Blocks along a grid's second dimension, on every GPU."""


class EnumeratingKernel:
    """`bitwise` or `baseline` loaded with a problem; tasks are the n-nucleotide strings of the unit.

    file       the kernel's, and its name
    constants  what host and device share
    """

    file: str
    constants: ClassVar[dict[str, int]]

    def __init__(self, problem: Problem, threads_per_block: int) -> None:
        self.repertoire = problem.repertoire
        self.clock = DeviceClock()
        self.forms = Forms(problem)
        self.loci = problem.loci
        self._module = compile_kernels(f"kernels/pathways/{self.file}.cu", (), **self.constants)
        self._kernel = self._module.get_function(self.file)
        self._multiprocessors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        self._load_pairs()
        self.threads = self._threads(threads_per_block)
        self._load_tiles()
        self._lengths = on_gpu(self.repertoire.lengths)
        self._counters = cupy.zeros(len(self.repertoire), dtype=np.uint64)
        self._host = HostArrays(1)
        self._constant_forms: tuple[str, int] | None = None

    def sequences(self) -> NDArray[Any]:
        """The in vivo sequences as the kernel reads them, a row for each."""
        raise NotImplementedError

    def table(self, forms: FormTable) -> NDArray[Any]:
        """V or J forms as the kernel reads them, a row for each."""
        raise NotImplementedError

    def d_constants(self, forms: FormTable) -> tuple[tuple[str, NDArray[Any]], ...]:
        """D forms as named constant arrays, a row for each form."""
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
        """V and J forms of every pair, each segment's once, and where they are in the tables."""
        first: dict[tuple[str, str], tuple[int, int]] = {}
        parts: dict[str, list[FormTable]] = {"V": [], "J": []}
        positions = []
        for pair in range(len(self.repertoire.pairs)):
            v_table, _, j_table, _ = self.forms.of(pair)
            v, j = self.repertoire.pairs[pair]
            position: tuple[int, ...] = ()
            for kind, segment, table in (("V", v, v_table), ("J", j, j_table)):
                key = (kind, segment.allele)
                if key not in first:
                    first[key] = (sum(len(part.lengths) for part in parts[kind]), len(table.lengths))
                    parts[kind].append(table)
                position += first[key]
            positions.append(position)
        self._pairs = on_gpu(np.array(positions, dtype=np.int32).reshape(-1, 4))
        self._most_v = max((len(part.lengths) for part in parts["V"]), default=0)
        self._tables: list[cupy.ndarray] = []
        for kind in ("V", "J"):
            if parts[kind]:
                self._tables.append(on_gpu(np.concatenate([self.table(part) for part in parts[kind]])))
                lengths = np.concatenate([part.lengths for part in parts[kind]])
                self._tables.append(on_gpu(lengths.astype(np.uint8)))
        self._sequences = on_gpu(self.sequences())

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

    @gpu_errors()
    def start(self, unit: Unit, first: int, last: int) -> Launched:
        """Begin to count the pathways with the n-nucleotide strings `first` … `last`-1."""
        counters = self._counters[unit.rows.start : unit.rows.stop]
        counters.fill(0)
        if last > first:
            for locus, members in groupby(unit.pairs, key=lambda pair: self.loci[pair]):
                pairs = list(members)
                self._count_locus(locus, range(pairs[0], pairs[-1] + 1), unit.n_lengths.start, first, last)
        on_host = self._host.next(len(unit.rows))
        counters.get(out=on_host[:, 0], blocking=False)
        return Launched(self.clock, on_host)

    def _count_locus(self, locus: str, pairs: range, m: int, first: int, last: int) -> None:
        _, d, _, has_d = self.forms.of(pairs.start)
        d = d.by_length
        first_tile, last_tile = int(self._first_tile[pairs.start]), int(self._first_tile[pairs.stop])
        blocks = -(-(last - first) // self.threads)
        capacity = TILE_ROWS * self._most_v
        most_d_forms = self.constants["MOST_D_FORMS"]
        for start in range(0, len(d.lengths), most_d_forms):
            count = min(most_d_forms, len(d.lengths) - start)
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
        """Copy the D forms `start` … into constant memory, unless they are there."""
        if self._constant_forms == (locus, start):
            return
        for name, values in self.d_constants(forms):
            set_constant(self._module, name, values[start : start + count])
        self._constant_forms = (locus, start)

    def memory(self) -> dict[str, int]:
        """Bytes on the GPU of the V, J and D forms and of the in vivo sequences, without lengths: Table III."""
        d = {self.loci[pair]: self.forms.of(pair)[1].by_length for pair in range(len(self.loci))}
        sizes = {"V": self._tables[0].nbytes, "J": self._tables[2].nbytes, "in vivo": self._sequences.nbytes}
        sizes["D"] = sum(self.d_constants(forms)[0][1].nbytes for forms in d.values())
        return sizes


class BitwiseKernel(EnumeratingKernel):
    """Two bits a base: Algorithms 2 and 3."""

    file = "bitwise"
    # 3,072 D forms of 16 bytes and a length each: 51 kB of the 64 kB of constant memory.
    constants: ClassVar[dict[str, int]] = {
        "BASES_PER_WORD": BASES_PER_WORD, "TILE_ROWS": TILE_ROWS, "TILE_BYTES": TILE.itemsize, "MOST_D_FORMS": 3072,
        "REST_BYTES": 24,
    }  # fmt: skip

    def sequences(self) -> NDArray[np.uint64]:
        """The paper's 16 bytes a sequence."""
        return self.repertoire.words[:, :WORDS]

    def table(self, forms: FormTable) -> NDArray[np.uint64]:
        """16 bytes a form."""
        return forms.packed

    def d_constants(self, forms: FormTable) -> tuple[tuple[str, NDArray[Any]], ...]:
        """Words and lengths."""
        return ("d_words", forms.packed), ("d_lengths", forms.lengths.astype(np.uint8))

    def shared(self, rows: int, capacity: int) -> int:
        """For each start the sequence behind it, 4 bytes for its head and 2 for whose head it is; 8 for a counter."""
        return (self.constants["REST_BYTES"] + 4 + 2) * capacity + 8 * rows


class BaselineKernel(EnumeratingKernel):
    """One byte a base."""

    file = "baseline"
    # 1,024 D forms of 60 bytes and a length each: 62 kB of the 64 kB of constant memory.
    constants: ClassVar[dict[str, int]] = {
        "BASES_PER_WORD": BASES_PER_WORD, "TILE_ROWS": TILE_ROWS, "TILE_BYTES": TILE.itemsize, "MOST_D_FORMS": 1024,
        "START_BYTES": 6, "PADDED": PADDED, "D_BYTES": PAPER_LONGEST_CDR3,
    }  # fmt: skip

    def sequences(self) -> NDArray[np.uint8]:
        """64 bytes a sequence."""
        return padded_codes(self.repertoire)

    def table(self, forms: FormTable) -> NDArray[np.uint8]:
        """64 bytes a form."""
        return np.pad(forms.codes, ((0, 0), (0, PADDED - forms.codes.shape[1])))

    def d_constants(self, forms: FormTable) -> tuple[tuple[str, NDArray[Any]], ...]:
        """Codes, 60 bytes a form, and lengths."""
        return ("d_codes", forms.codes), ("d_lengths", forms.lengths.astype(np.uint8))

    def shared(self, rows: int, capacity: int) -> int:
        """8 bytes a counter, 6 a start, 64 a sequence, 64 a thread for its nDn'."""
        return 8 * rows + self.constants["START_BYTES"] * capacity + PADDED * rows + PADDED * self.threads
