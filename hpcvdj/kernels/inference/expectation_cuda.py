"""Expected counts of events on a GPU: junctions and trees stay there, a model's numbers are copied for each E step."""

from typing import Any, ClassVar, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import MachineError, option
from hpcvdj.kernels.device import DeviceClock, HostArrays, Struct, compile_kernels, fitting_threads, gpu_errors, on_gpu
from hpcvdj.kernels.inference.layout import LEAST, Counts, NodeWeights, Trees, begins, unit_of
from hpcvdj.kernels.inference.method import InferenceProblem
from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pgen.tables import Chain, Groups
from hpcvdj.kernels.structs import places
from hpcvdj.kernels.tiles import split_pairs
from hpcvdj.recombination.alphabet import BASES_PER_WORD
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import LONGEST_CDR3

FILE = "kernels/inference/expectation.cu"

THREADS = 128
"""Threads per block, at most: a thread needs many registers."""

STEP, PAIRS = 4, 16
"""Nodes of a tree that go on together, and pairs of bases."""


class TreeSizes(NamedTuple):
    """The nodes of each group's trees of V and of J, int64 [groups]."""

    v: NDArray[np.int64]
    j: NDArray[np.int64]


class Here(NamedTuple):
    """The first nodes of a tree of V and of J, and D forms, whose counts a block collects in shared memory."""

    v: int
    j: int
    d: int


class Shared(NamedTuple):
    """Parts of a block's shared memory: both insertions, weights and links of D forms, counts of V, J, D and
    insertions, and steps of insertions for each thread."""

    vd: int
    dj: int
    weights: int
    child: int
    v: int
    j: int
    d: int
    insertions: int
    steps: int


CONSTANTS: dict[str, int | type] = {
    "MOST_THREADS": THREADS, "STEP": STEP, "PAIRS": PAIRS, "Groups": Groups, "Trees": Trees, "NodeWeights": NodeWeights,
    "Insertion": Chain, "Counted": Counts, "TreeSizes": TreeSizes, "Here": Here, "Shared": Shared,
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

    _program: ClassVar = (FILE, CONSTANTS, "expectation")

    @gpu_errors()
    def __init__(self, problem: InferenceProblem, threads_per_block: int) -> None:
        repertoire, layout = problem.repertoire, problem.layout
        if repertoire.longest > LONGEST_CDR3:
            raise MachineError(
                f"a junction has {repertoire.longest} bases, and {option('backend', 'cuda')} takes at most "
                f"{LONGEST_CDR3}: leave longer ones out, or use {option('backend', 'cpu')}"
            )
        self.problem, self.layout, self.clock = problem, layout, DeviceClock()
        self._host = HostArrays(sum(layout.sizes))
        self._junctions = on_gpu(repertoire.words), on_gpu(repertoire.lengths)
        self.weigh(problem)
        self.take(problem.model)
        self._words = 2 if repertoire.longest <= 2 * BASES_PER_WORD else 4
        self._load(problem)
        file, constants, kernel = self._program
        name = f"{kernel}<{self._words}>"
        self._kernel = compile_kernels(file, (name,), **constants).get_function(name)
        threads = min(THREADS, max(32, threads_per_block // 32 * 32))
        self._threads = fitting_threads(self._kernel, threads, lambda threads: self._shared(threads)[1])
        parts, self._bytes = self._shared(self._threads)
        self._parts = Struct(parts)

    def _load(self, problem: InferenceProblem) -> None:
        """Copy what does not change with the model or the weights."""
        layout = self.layout
        trees, groups = layout.trees, layout.groups
        sizes = TreeSizes(_tree_sizes(groups.v, len(trees.v)), _tree_sizes(groups.j, len(trees.j)))
        most = *(int(size.max(initial=0)) for size in sizes), len(trees.d)
        self._here = Here(*(min(MOST_HERE, size) for size in most))
        self._tables: tuple[Struct, ...] = Struct(groups), Struct(sizes), Struct(trees)
        self._places: tuple[Any, ...] = Struct(self._here), Struct(begins(layout.sizes))
        self._behind: tuple[Any, ...] = (np.int32(problem.repertoire.longest),)

    def _shared(self, threads: int) -> tuple[Any, int]:
        """Where the parts of a block's shared memory begin, and its bytes."""
        here, sizes = self._here, self.layout.sizes
        vd, dj = (lags + STEP + PAIRS + 4 for lags in self.layout.lags)
        of_insertions = begins(sizes).logs - begins(sizes).vd_lengths
        numbers = Shared(vd, dj, here.d, 2 * here.d, here.v, here.j, here.d, of_insertions, PAIRS * threads)
        return places(Shared(*(8 * number for number in numbers)))

    @gpu_errors()
    def weigh(self, problem: InferenceProblem) -> None:
        """Count the same junctions with other weights."""
        self.problem, self._row_weights = problem, on_gpu(problem.row_weights)
        unit, log_unit = unit_of(problem.rows)
        self._units = np.float64(unit), np.float64(log_unit), np.float64(LEAST)

    @gpu_errors()
    def take(self, model: Model) -> None:
        """Count the events of another model with the same alleles."""
        self._weights = tuple(map(Struct, self.layout.weights(model)))

    @gpu_errors()
    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Begin to count junctions first … last-1: int64 [1, counts]."""
        words, lengths = self._junctions
        out = cupy.zeros((1, sum(self.layout.sizes)), np.uint64)
        if last > first:
            blocks, of_pairs = self._blocks(first, last)
            arguments = (
                words[first:last], np.int32(words.shape[1]), lengths[first:last], self._row_weights[first:last],
                *of_pairs, *self._tables, *self._weights, *self._places, self._parts, *self._units, *self._behind, out,
            )  # fmt: skip
            self.clock.launch(self._kernel, (blocks,), self._threads, arguments, self._bytes)
        counts = self._host.next(1)
        out.get(out=counts, blocking=False)
        return self.clock.pending(counts.view(np.int64))

    def _blocks(self, first: int, last: int) -> tuple[int, tuple[Any, ...]]:
        """How many blocks count junctions first … last-1, and what says of which pairs these are."""
        turns = max(1, min(MOST_TURNS, (last - first) // ROWS_OF_A_TURN))
        tiles = split_pairs(self.problem.repertoire.offsets, first, last, self._threads * turns)
        return len(tiles), (on_gpu(tiles.view(np.uint8)),)


def _tree_sizes(roots: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The number of nodes of the tree at each of `roots`: trees are one after another, `nodes` altogether."""
    first = np.unique(roots)
    return np.diff(np.append(first, nodes))[np.searchsorted(first, roots)]
