"""The enumerating kernels on a GPU: tables of forms, tiles of sequences, runs of D forms that fit constant memory."""

from itertools import groupby
from typing import Any, ClassVar

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import (
    DeviceClock,
    HostArrays,
    compile_kernels,
    fitting_threads,
    gpu_errors,
    on_gpu,
    set_constant,
)
from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pathways.forms import ONE_BYTE, PADDED, TWO_BITS, Encoding, Forms, FormTable
from hpcvdj.kernels.tiles import TILE, split_pairs
from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3, Problem

TILE_ROWS = 32
"""Sequences of one V–J pair that a block holds in shared memory at a time."""

BLOCKS_PER_MULTIPROCESSOR = 64
"""Blocks that a launch should have for each multiprocessor, so that none idles while the last ones end."""

MOST_SHARES = 64
"""Shares of the D forms that blocks may take, at most: each share makes the list of starts again."""

MOST_GRID_Y = 65535
"""Blocks along a grid's second dimension, on every GPU."""


class EnumeratingKernel(Kernel):
    """`bitwise` or `baseline` loaded with a problem; tasks are the n-nucleotide strings of the unit.

    file       the kernel's, and its name
    encoding   how it takes sequences and forms
    d_array    its constant array of D forms
    constants  what host and device share
    """

    file: ClassVar[str]
    encoding: ClassVar[Encoding]
    d_array: ClassVar[str]
    constants: ClassVar[dict[str, int]]

    @gpu_errors()
    def __init__(self, problem: Problem, threads_per_block: int) -> None:
        self.repertoire = problem.repertoire
        self.clock = DeviceClock()
        self.forms = Forms(problem)
        self.loci = problem.loci
        self._module = compile_kernels(f"kernels/pathways/{self.file}.cu", (), **self.constants)
        self._kernel = self._module.get_function(self.file)
        self._multiprocessors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        self._load_pairs()
        self.threads = fitting_threads(self._kernel, threads_per_block, self.shared)
        self._load_tiles()
        self._lengths = on_gpu(self.repertoire.lengths)
        self._counters = cupy.zeros(len(self.repertoire), dtype=np.uint64)
        self._host = HostArrays(1)
        self._constant_forms: tuple[str, int] | None = None

    def d_rows(self, forms: FormTable) -> NDArray[Any]:
        """D forms as in constant memory, a row for each."""
        return self.encoding.forms(forms)

    def shared(self, threads: int) -> int:
        """Bytes of shared memory of a block, for its counters and the list of starts."""
        raise NotImplementedError

    def _load_pairs(self) -> None:
        """V and J forms of every pair, each segment's once, and where they are in the tables."""
        pairs = [(v, j) for v, _, j, _ in map(self.forms.of, range(len(self.repertoire.pairs)))]
        positions = np.zeros((len(pairs), 2, 2), dtype=np.int32)
        self._tables: list[cupy.ndarray] = []
        for column in range(2):
            tables = list(dict.fromkeys(pair[column] for pair in pairs))
            first = dict(zip(tables, np.cumsum([0, *(len(table.lengths) for table in tables)]), strict=False))
            positions[:, column] = [(first[pair[column]], len(pair[column].lengths)) for pair in pairs] or 0
            if tables:
                self._tables.append(on_gpu(np.concatenate([self.encoding.forms(table) for table in tables])))
                self._tables.append(on_gpu(np.concatenate([table.lengths for table in tables]).astype(np.uint8)))
        self._pairs = on_gpu(positions)
        self._capacity = TILE_ROWS * max((len(v.lengths) for v, _ in pairs), default=0)
        self._sequences = on_gpu(self.encoding.sequences(self.repertoire))

    def _load_tiles(self) -> None:
        """The tiles of all sequences, in row order, and where those of each pair begin."""
        tiles = split_pairs(self.repertoire.offsets, 0, len(self.repertoire), TILE_ROWS)
        self._tiles = on_gpu(tiles.view(np.uint8).reshape(len(tiles), TILE.itemsize))
        self._first_tile = np.searchsorted(tiles["pair"], np.arange(len(self.repertoire.pairs) + 1))

    @gpu_errors()
    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Begin to count the pathways with the n-nucleotide strings `first` … `last`-1."""
        counters = self._counters[unit.rows.start : unit.rows.stop]
        counters.fill(0)
        if last > first:
            for locus, members in groupby(unit.pairs, key=lambda pair: self.loci[pair]):
                pairs = list(members)
                self._count_locus(locus, range(pairs[0], pairs[-1] + 1), unit.n_lengths.start, first, last)
        on_host = self._host.next(len(unit.rows))
        counters.get(out=on_host[:, 0], blocking=False)
        return self.clock.pending(on_host)

    def _count_locus(self, locus: str, pairs: range, m: int, first: int, last: int) -> None:
        _, d, _, has_d = self.forms.of(pairs.start)
        d = d.by_length
        first_tile, last_tile = int(self._first_tile[pairs.start]), int(self._first_tile[pairs.stop])
        blocks = -(-(last - first) // self.threads)
        wanted = BLOCKS_PER_MULTIPROCESSOR * self._multiprocessors
        most_d_forms = self.constants["MOST_D_FORMS"]
        for start in range(0, len(d.lengths), most_d_forms):
            count = min(most_d_forms, len(d.lengths) - start)
            if self._constant_forms != (locus, start):
                for name, values in ((self.d_array, self.d_rows(d)), ("d_lengths", d.lengths.astype(np.uint8))):
                    set_constant(self._module, name, values[start : start + count])
                self._constant_forms = (locus, start)
            for low in range(first_tile, last_tile, MOST_GRID_Y):
                tiles = self._tiles[low : min(low + MOST_GRID_Y, last_tile)]
                arguments = (
                    self._sequences, self._lengths, tiles, self._pairs, *self._tables,
                    np.int32(count), np.int32(has_d), np.int32(m),
                    np.int64(first), np.int64(last), np.int32(self._capacity), self._counters,
                )  # fmt: skip
                grid = blocks, len(tiles), max(1, min(MOST_SHARES, count, -(-wanted // (blocks * len(tiles)))))
                self.clock.launch(self._kernel, grid, self.threads, arguments, self.shared(self.threads))

    def memory(self) -> dict[str, int]:
        """Bytes on the GPU of the V, J and D forms and of the in vivo sequences, without lengths: Table III."""
        d = {self.loci[pair]: self.forms.of(pair)[1] for pair in range(len(self.loci))}
        sizes = {"V": self._tables[0].nbytes, "J": self._tables[2].nbytes, "in vivo": self._sequences.nbytes}
        sizes["D"] = sum(self.d_rows(forms).nbytes for forms in d.values())
        return sizes


class BitwiseKernel(EnumeratingKernel):
    """Two bits a base: Algorithms 2 and 3."""

    file = "bitwise"
    encoding = TWO_BITS
    d_array = "d_words"
    # 3,072 D forms of 16 bytes and a length each: 51 kB of the 64 kB of constant memory.
    constants: ClassVar[dict[str, int]] = {"TILE_ROWS": TILE_ROWS, "MOST_D_FORMS": 3072, "REST_BYTES": 24}

    def shared(self, threads: int) -> int:
        """For each start the sequence behind it, 4 bytes for its head and 2 for whose head it is; 8 for a counter."""
        return (self.constants["REST_BYTES"] + 4 + 2) * self._capacity + 8 * TILE_ROWS


class BaselineKernel(EnumeratingKernel):
    """One byte a base."""

    file = "baseline"
    encoding = ONE_BYTE
    d_array = "d_codes"
    # 1,024 D forms of 60 bytes and a length each: 62 kB of the 64 kB of constant memory.
    constants: ClassVar[dict[str, int]] = {
        "TILE_ROWS": TILE_ROWS, "MOST_D_FORMS": 1024, "START_BYTES": 6, "PADDED": PADDED, "D_BYTES": PAPER_LONGEST_CDR3,
    }  # fmt: skip

    def d_rows(self, forms: FormTable) -> NDArray[np.uint8]:
        """60 bytes a form."""
        return forms.codes[:, :PAPER_LONGEST_CDR3]

    def shared(self, threads: int) -> int:
        """8 bytes a counter, 6 a start, 64 a sequence, 64 a thread for its nDn'."""
        return (8 + PADDED) * TILE_ROWS + self.constants["START_BYTES"] * self._capacity + PADDED * threads
