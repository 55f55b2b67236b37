"""Expected counts with sequencing errors on a GPU: a warp has one junction at a time."""

from typing import Any, ClassVar, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import Struct, gpu_errors, on_gpu
from hpcvdj.kernels.inference.errors_layout import Masks, Weights
from hpcvdj.kernels.inference.expectation_cuda import PAIRS, THREADS, ExpectationKernel
from hpcvdj.kernels.inference.layout import Counts, begins
from hpcvdj.kernels.inference.method import InferenceProblem
from hpcvdj.kernels.pathways.forms import Texts
from hpcvdj.kernels.pgen.tables import Chain, chains
from hpcvdj.kernels.structs import places
from hpcvdj.recombination.alphabet import BASES_PER_WORD, pack
from hpcvdj.recombination.models import Array, Model
from hpcvdj.recombination.repertoire import LONGEST_CDR3

FILE = "kernels/inference/errors.cu"

WARP = 32

ROOMS = 7
"""Arrays of the length of a junction that a warp has in shared memory."""

BLOCKS = 32
"""Blocks for each multiprocessor: a warp takes one junction after another."""


class PackedTexts(NamedTuple):
    """Templates from one of their ends: packed bases, uint64 [alleles, words], and int64 [alleles], their numbers.

    longest  the largest number of bases
    """

    words: NDArray[np.uint64]
    lengths: NDArray[np.int64]
    longest: int

    @staticmethod
    def of(texts: Texts, words: int) -> "PackedTexts":
        """Pack the first bases, as many as so many words have."""
        kept = np.minimum(texts.lengths, words * BASES_PER_WORD)
        packed = [pack(codes[:length], words) for codes, length in zip(texts.codes, kept, strict=True)]
        return PackedTexts(np.array(packed, dtype=np.uint64), texts.lengths, texts.codes.shape[1])


class Powers(NamedTuple):
    """The probabilities that 0, 1, … bases are read, and that they are misread as the bases of a junction: float64."""

    hit: Array
    miss: Array

    @staticmethod
    def of(error_rate: float) -> "Powers":
        """The powers up to the longest junction."""
        exponents = np.arange(LONGEST_CDR3 + 1)
        return Powers(np.power(1.0 - error_rate, exponents), np.power(error_rate / 3.0, exponents))


class Shared(NamedTuple):
    """Parts of a block's shared memory: both insertions, and counts; of each warp, arrays, packed bases, and bases."""

    vd: int
    dj: int
    counts: int
    room: int
    packed: int
    codes: int


CONSTANTS: dict[str, int | type] = {
    "MOST_THREADS": THREADS, "PAIRS": PAIRS, "ROOMS": ROOMS, "Masks": Masks, "PackedTexts": PackedTexts, "Texts": Texts,
    "Weights": Weights, "Powers": Powers, "Insertion": Chain, "Counted": Counts, "Shared": Shared,
}  # fmt: skip
"""What host and device share."""


class ErrorsKernel(ExpectationKernel):
    """As `hpcvdj.kernels.inference.errors_cpu.ErrorsKernel`, and with its counts, but for rounding."""

    _program: ClassVar = (FILE, CONSTANTS, "expectation_with_errors")

    def _load(self, problem: InferenceProblem) -> None:
        layout = self.layout
        self._offsets = on_gpu(problem.repertoire.offsets.astype(np.int64))
        # Without D genes, their texts have no bases.
        d = Texts(np.pad(layout.d.codes, ((0, 0), (0, 1))), layout.d.lengths)
        sides = (PackedTexts.of(texts, self._words) for texts in (layout.v, layout.j))
        self._tables = tuple(map(Struct, (layout.v_masks, layout.j_masks, *sides, d)))
        self._places, self._behind = (np.int32(layout.shapes[-1][-1]), Struct(begins(layout.sizes))), ()

    def _shared(self, threads: int) -> tuple[Any, int]:
        """Where the parts of a block's shared memory begin, and its bytes."""
        warps, bases = threads // WARP, self._words * BASES_PER_WORD
        (vd, dj), sizes = self.layout.lags, self.layout.sizes
        counts = sum(sizes) - begins(sizes).vd_lengths
        chain = PAIRS + 4
        numbers = vd + chain, dj + chain, counts, warps * ROOMS * (bases + 2), warps * 2 * self._words
        return places(Shared(*(8 * number for number in numbers), codes=warps * 2 * bases))  # type: ignore[misc]

    @gpu_errors()
    def take(self, model: Model) -> None:
        """Count the events of another model with the same alleles."""
        self._weights = tuple(map(Struct, (Weights.of(model), Powers.of(model.error_rate), *chains(model))))

    def _blocks(self, first: int, last: int) -> tuple[int, tuple[Any, ...]]:
        blocks = -(-(last - first) // (self._threads // WARP))
        of_pairs = self._offsets, np.int32(len(self._offsets) - 1), np.int64(first), np.int64(last - first)
        return min(blocks, BLOCKS * int(cupy.cuda.Device().attributes["MultiProcessorCount"])), of_pairs
