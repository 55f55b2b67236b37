"""Generation probabilities of a repertoire on a GPU: tiles, transfers, launches."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import (
    ROWS,
    DeviceClock,
    HostArrays,
    Struct,
    compile_kernels,
    fitting_threads,
    gpu_errors,
    in_batches,
    on_gpu,
    shared_limit,
)
from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pgen import aa_cuda, nt_cuda, pgen_cpu
from hpcvdj.kernels.pgen.tables import Tables
from hpcvdj.kernels.tiles import split_pairs
from hpcvdj.recombination.repertoire import LONGEST_CDR3, PgenProblem

CLASSES = {"pgen_nt": (48, 72, LONGEST_CDR3), "pgen_aa": (*range(30, 73, 3), LONGEST_CDR3)}
CLASSES["pgen_aa_1mm"] = CLASSES["pgen_aa"]
"""Sequences are computed together if their lengths are in the same range.  The longest needs the most shared memory;
amino-acid sequences of a warp also wait for the longest."""

THREADS = {"pgen_nt": 128, "pgen_aa": 64, "pgen_aa_1mm": 64}
"""Threads per block, at most: more would leave fewer blocks with enough shared memory."""


class PgenKernel(Kernel):
    """The model loaded for a problem; tasks are the sequences of the unit.

    The kernels take sequences of up to 128 bases.  The CPU kernel computes longer ones, and those for which a block of
    32 threads would need more shared memory than the GPU has.
    """

    @gpu_errors()
    def __init__(self, problem: PgenProblem, threads_per_block: int) -> None:
        self.problem, self.repertoire, self.names = problem, problem.repertoire, problem.names
        self.clock = DeviceClock()
        self._rows, self._most_threads = ROWS, max(32, threads_per_block // 32 * 32)
        self._host = HostArrays(len(self.names))
        self._cpu_kernels: dict[int, pgen_cpu.PgenKernel] = {}
        tables = Tables.of(problem.model, [(v.places, j.places) for v, j in self.repertoire.pairs])
        self._programs = {name: self._program(name, tables) for name in self.names}
        self._kernels = {
            name: compile_kernels(module.FILE, (program.name,), **module.CONSTANTS).get_function(program.name)
            for name, (module, program) in self._programs.items()
        }

    def _program(self, name: str, tables: Tables) -> tuple[Any, Any]:
        if name == "pgen_nt":
            return nt_cuda, nt_cuda.Nucleotides(tables, self.repertoire.words.shape[1])
        return aa_cuda, aa_cuda.AminoAcids(tables, self.problem, ball=name == "pgen_aa_1mm")

    @gpu_errors()
    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Begin to compute the unit's sequences `first` … `last`-1, in their rows; the other rows are zero."""
        values = self._host.next(len(unit.rows)).view(np.float64)
        values[:first] = values[last:] = 0
        start, too_long = unit.rows.start, list[tuple[int, NDArray[np.int64]]]()

        def batch(begin: int, end: int) -> None:
            too_long.extend(self._compute(start + begin, start + end, values[begin:end]))

        self._rows = in_batches(batch, first, last, self._rows)
        pending = self.clock.pending(values)
        return (lambda: self._completed(pending(), too_long, start)) if too_long else pending

    def _compute(self, first: int, last: int, values: NDArray[np.float64]) -> list[tuple[int, NDArray[np.int64]]]:
        """Launch the kernels for sequences; (column, sequences) that are left to the CPU."""
        repertoire, left = self.repertoire, []
        lengths = repertoire.lengths[first:last]
        if len(longer := np.flatnonzero(lengths > LONGEST_CDR3)):
            left += [(column, longer + first) for column in range(len(self.names))]
        counts = np.bincount(lengths, minlength=LONGEST_CDR3 + 1)
        on_device = cupy.empty((last - first, len(self.names)), dtype=np.float64)
        # Sequences out of frame have no amino acids.
        on_device.fill(np.nan)
        by_length, before = np.argsort(lengths, kind="stable"), np.concatenate(([0], counts.cumsum()))
        words, lengths_there = on_gpu(repertoire.words[first:last]), on_gpu(lengths)
        for column, name in enumerate(self.names):
            for shorter, longest in pairwise((-1, *CLASSES[name])):
                used = np.arange(shorter + 1, longest + 1)
                used = used[counts[used] > 0]
                if name != "pgen_nt":
                    used = used[(used % 3 == 0) & (used > 0)]
                if not len(used):
                    continue
                rows = by_length[before[used[0]] : before[used[0] + 1]]
                if len(used) > 1:
                    rows = _rows_of_lengths(lengths, used, int(counts[used].sum()))
                if not self._launch(name, words, lengths_there, rows, first, int(used[-1]), on_device[:, column:]):
                    left.append((column, rows + first))
        on_device.get(out=values, blocking=False)
        return left

    def _launch(
        self, name: str, words: Any, lengths: Any, rows: NDArray[np.int64], first: int, longest: int, out: Any
    ) -> bool:
        """Compute `rows`; False if a block for the longest of them has too little shared memory."""
        _, program = self._programs[name]
        kernel = self._kernels[name]
        offsets = np.searchsorted(rows, self.repertoire.offsets - first)

        def shared(threads: int) -> int:
            return int(program.shared(threads, longest)[1])

        if shared(32) > shared_limit():
            return False

        threads = fitting_threads(kernel, min(THREADS[name], self._most_threads), shared)
        tiles = split_pairs(offsets, 0, len(rows), program.rows_of_block(threads, len(rows)))
        arguments = (
            words, lengths, on_gpu(rows.astype(np.int32, copy=False)), on_gpu(tiles.view(np.uint8)), *program.tables,
            Struct(program.shared(threads, longest)[0]), np.int32(len(self.names)), out,
        )  # fmt: skip
        self.clock.launch(kernel, (len(tiles),), threads, arguments, shared(threads))
        return True

    def _completed(
        self, values: NDArray[np.float64], too_long: list[tuple[int, NDArray[np.int64]]], start: int
    ) -> NDArray[np.float64]:
        """The values, with those that the CPU kernel computes."""
        repertoire = self.repertoire
        for column, rows in too_long:
            sequences = repertoire.words[rows], repertoire.lengths[rows], np.searchsorted(rows, repertoire.offsets)
            values[rows - start, column] = self._on_cpu(column).values_of(*sequences)[:, 0]
        return values

    def _on_cpu(self, column: int) -> pgen_cpu.PgenKernel:
        """The CPU kernel of a column, whose tables are made when they are first needed."""
        if column not in self._cpu_kernels:
            self._cpu_kernels[column] = pgen_cpu.PgenKernel(replace(self.problem, names=(self.names[column],)), 0)
        return self._cpu_kernels[column]


def _rows_of_lengths(lengths: NDArray[np.uint8], used: NDArray[np.int64], count: int) -> NDArray[Any]:
    """The `count` rows that have one of the lengths `used`, ascending."""
    if count == len(lengths):
        return np.arange(count)
    chosen = np.zeros(np.iinfo(lengths.dtype).max + 1, dtype=bool)
    chosen[used] = True
    return np.flatnonzero(chosen[lengths])
