"""Expected counts of events on a GPU: junctions and trees stay there, a model's numbers are copied for each E step."""

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import MachineError, option
from hpcvdj.kernels.device import DeviceClock, HostArrays, compile_kernels, fitting_threads, gpu_errors, on_gpu
from hpcvdj.kernels.inference.layout import LEAST
from hpcvdj.kernels.inference.method import InferenceProblem
from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pathways.tiles import TILE, split_pairs
from hpcvdj.recombination.alphabet import BASES_PER_WORD
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import LONGEST_CDR3

FILE = "kernels/inference/expectation.cu"

THREADS = 128
"""Threads per block, at most: a thread needs many registers."""

STEP, PAIRS = 4, 16
"""Nodes of a tree that go on together, and pairs of bases."""

CONSTANTS = {
    "BASES_PER_WORD": BASES_PER_WORD, "TILE_BYTES": TILE.itemsize, "MOST_THREADS": THREADS, "STEP": STEP,
    "PAIRS": PAIRS,
}  # fmt: skip
"""What host and device share."""

MOST_HERE = 1024
"""Nodes of a tree, or D forms, whose counts a block collects in shared memory; those of others go to global memory.
It is 8 bytes for a node, and 32 for a D form with its weight and links.  The first ones are the shortest texts of the
first alleles."""

MOST_TURNS, ROWS_OF_A_TURN = 8, 1 << 18
"""A thread takes a junction for each ROWS_OF_A_TURN that there are, up to MOST_TURNS, one after another."""


class ExpectationKernel(Kernel):
    """As `hpcvdj.kernels.inference.expectation_cpu.ExpectationKernel`, and with its counts, but for rounding.

    The junctions, their weights, trees and groups are copied to the GPU once; a model's numbers by each `take`.
    MachineError for junctions of more than LONGEST_CDR3 bases.
    """

    @gpu_errors()
    def __init__(self, problem: InferenceProblem, threads_per_block: int) -> None:
        own, layout = problem.repertoire, problem.layout
        if own.longest > LONGEST_CDR3:
            raise MachineError(
                f"a junction has {own.longest} bases, and {option('backend', 'cuda')} takes at most {LONGEST_CDR3}: "
                f"leave longer ones out, or use {option('backend', 'cpu')}"
            )
        self.problem, self.layout, self.clock = problem, layout, DeviceClock()
        self._host = HostArrays(sum(layout.sizes))
        trees = (layout.group_v, layout.v), (layout.group_j, layout.j)
        v_sizes, j_sizes = (_tree_sizes(roots, len(side.child)) for roots, side in trees)
        nodes = len(layout.forms)
        here = [min(MOST_HERE, int(most)) for most in (v_sizes.max(initial=0), j_sizes.max(initial=0), nodes)]
        self._junctions = on_gpu(own.words), on_gpu(own.lengths)
        groups = (layout.first_group, layout.group_v, layout.group_j, layout.group_d, v_sizes, j_sizes)
        children: list[Any] = []
        for child in (layout.v.child, layout.j.child, layout.forms):
            children += [on_gpu(child), np.int32(len(child))]
        numbers = map(np.int32, (len(layout.table_d), *here, *layout.lags))
        self._tables = (*(on_gpu(values.astype(np.int32)) for values in groups), *children, *numbers)
        self.weigh(problem)
        self.take(problem.model)

        lags = sum(layout.lags)
        counts = sum(here) + lags + 2 * (4 + PAIRS)
        doubles = lags + 2 * (STEP + PAIRS + 4) + here[2] * 3 + counts

        def shared(threads: int) -> int:
            return int(8 * (doubles + PAIRS * threads))

        name = f"expectation<{2 if own.longest <= 2 * BASES_PER_WORD else 4}>"
        self._kernel = compile_kernels(FILE, (name,), **CONSTANTS).get_function(name)
        threads = min(THREADS, max(32, threads_per_block // 32 * 32))
        self._threads = fitting_threads(self._kernel, threads, shared)
        self._shared = shared(self._threads)

    @gpu_errors()
    def weigh(self, problem: InferenceProblem) -> None:
        """Count the same junctions with other weights."""
        self.problem, self._row_weights = problem, on_gpu(problem.row_weights)
        unit, log_unit = self.layout.unit(problem.rows)
        self._units = np.float64(unit), np.float64(log_unit), np.float64(LEAST), np.int32(problem.repertoire.longest)

    @gpu_errors()
    def take(self, model: Model) -> None:
        """Count the events of another model with the same alleles."""
        own = self.layout.weights(model)
        arrays: list[NDArray[np.float64]] = [own.v, own.j, own.d]
        for chain in (own.vd, own.dj):
            arrays += [chain.lengths, chain.step, chain.first]
        self._weights = tuple(map(on_gpu, arrays))

    @gpu_errors()
    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Begin to count junctions first … last-1: int64 [1, counts]."""
        words, lengths = self._junctions
        turns = max(1, min(MOST_TURNS, (last - first) // ROWS_OF_A_TURN))
        tiles = split_pairs(self.problem.repertoire.offsets, first, last, self._threads * turns)
        out = cupy.zeros((1, sum(self.layout.sizes)), np.uint64)
        if len(tiles):
            arguments = (
                words[first:last], np.int32(words.shape[1]), lengths[first:last], self._row_weights[first:last],
                on_gpu(tiles.view(np.uint8)), *self._tables, *self._weights, *self._units, out,
            )  # fmt: skip
            self.clock.launch(self._kernel, (len(tiles),), self._threads, arguments, self._shared)
        counts = self._host.next(1)
        out.get(out=counts, blocking=False)
        return self.clock.pending(counts.view(np.int64))


def _tree_sizes(roots: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The number of nodes of the tree at each of `roots`: trees are one after another, `nodes` altogether."""
    first = np.unique(roots)
    return np.diff(np.append(first, nodes))[np.searchsorted(first, roots)]
