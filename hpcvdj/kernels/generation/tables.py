"""A recombination model as the drawing kernels take it.

Every choice is one look into an alias table (Walker 1977; Vose 1991).  A distribution over n outcomes has n slots with
two outcomes each; a 64-bit random number r chooses slot floor(r n / 2^64), and the remainder decides between the two.
Everything is compared as integers, so all processors draw the same.

The tables have only what makes a junction (`Possible`): no draw is thrown away, and a junction's frequency is its
generation probability, divided by that of all junctions.  An outcome's probability is met to about 10^-16; that of an
inserted base, which takes 32 random bits, to 2^-32.
"""

from collections.abc import Iterator, Sequence
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.pgen.tables import Chain, chains
from hpcvdj.recombination.alphabet import NUCLEOTIDES, encode
from hpcvdj.recombination.models import Array, Model
from hpcvdj.recombination.possible import Possible

EVENTS = ("v", "d", "j", "v_deleted", "d_deleted_5", "d_deleted_3", "j_deleted", "n1_length", "n2_length")
"""What the kernels note of each scenario: places of the alleles, bases missing from their extended segments, and
inserted bases.  Without D genes, D is 0 and n2_length too."""

FIRST_BASE = 4
"""The row of `DrawTables.bases` for the first base of an insertion."""

BASE_BLOCK = 3
"""Blocks of random numbers before this one have the six choices of a scenario, two each; bases begin here."""

MOST = (1 << 15) - 1
"""The most that a value of EVENTS can be."""

PAIR = 1 << 16
"""Deletions (l, r) of D are the outcome l x PAIR + r."""


class DrawTables(NamedTuple):
    """The distributions, one behind the other, and the text of the segments.

    Alleles are numbered through: V, then D, then J.  Distribution 0 chooses the alleles, 1 + allele their deletions,
    the last two the lengths of the insertions.

    slots       uint64 [slots, 2]: below which remainder the first outcome holds; first outcome + 2^32 x second outcome
    first       int64 [distributions + 1]: first slot of each
    choices     int32 [choices, 3]: places of V, D and J that distribution 0 chooses
    bases       uint64 [2, 5, 3]: of both insertions, after A, C, T, G or at the beginning: below which 32-bit number a
                base has at most the code 0, 1, 2
    text        uint8 [bases]: the extended segments in base codes
    text_first  int64 [alleles + 1]: first base of each
    v, d        how many V and D alleles there are
    longest     bases of the longest junction
    """

    slots: NDArray[np.uint64]
    first: NDArray[np.int64]
    choices: NDArray[np.int32]
    bases: NDArray[np.uint64]
    text: NDArray[np.uint8]
    text_first: NDArray[np.int64]
    v: int
    d: int
    longest: int

    @property
    def width(self) -> int:
        """64-bit words of a packed junction."""
        return NUCLEOTIDES.words_for(self.longest)

    @staticmethod
    def of(model: Model) -> "DrawTables":
        """The tables of a model; InputError if it makes no junction."""
        possible = Possible.of(model)
        if not possible.probability:
            raise InputError(
                f"{model.name}: makes no junction, as it never chooses a V and a J with a segment; correct it"
            )
        insertions = chains(model)
        distributions = list(_distributions(possible, insertions))
        alleles = [[template.extended for template in part] for part in (model.v, model.d, model.j)]
        alleles[1] = alleles[1] or [""]
        longest = sum(max(map(len, part)) for part in alleles) + sum(len(chain.lengths) - 1 for chain in insertions)
        if max(longest, *map(len, alleles)) > MOST:
            raise InputError(f"{model.name}: more than {MOST:,} alleles, or bases in a junction; use a smaller model")
        codes = [encode(text) for part in alleles for text in part]
        return DrawTables(
            slots=np.concatenate([_alias(*distribution) for distribution in distributions]),
            first=np.cumsum([0, *(len(outcomes) for outcomes, _ in distributions)]),
            # In C order always: numba compiles once for each order.
            choices=np.ascontiguousarray(np.argwhere(possible.choice > 0), dtype=np.int32),
            bases=np.array([_thresholds(chain) for chain in insertions]),
            text=np.concatenate(codes),
            text_first=np.cumsum([0, *map(len, codes)]),
            v=len(alleles[0]),
            d=len(alleles[1]),
            longest=longest,
        )


def _distributions(possible: Possible, insertions: Sequence[Chain]) -> Iterator[tuple[NDArray[np.uint64], Array]]:
    """(outcomes, their probabilities) of each distribution, without those of probability 0."""

    def positive(chances: Array, outcomes: NDArray[Any] | None = None) -> tuple[NDArray[np.uint64], Array]:
        kept = np.flatnonzero(chances > 0)
        found = kept if outcomes is None else outcomes[kept]
        return found.astype(np.uint64), chances[kept]

    chances = possible.choice[possible.choice > 0]
    yield np.arange(len(chances), dtype=np.uint64), chances
    yield from map(positive, possible.v_deletions)
    left, right = np.indices(possible.d_deletions.shape[1:])
    for deletions in possible.d_deletions:
        yield positive(deletions.ravel(), (left * PAIR + right).ravel())
    yield from map(positive, possible.j_deletions)
    for chain in insertions:
        yield positive(chain.lengths)


def _alias(outcomes: NDArray[np.uint64], chances: Array) -> NDArray[np.uint64]:
    """The slots of one distribution, uint64 [outcomes, 2]; none if there is no outcome."""
    slots = np.empty((len(outcomes), 2), dtype=np.uint64)
    if len(outcomes):
        # An exact sum is the same on every processor, so the tables are.
        _fill_alias(outcomes, chances * (len(outcomes) / fsum(chances)), slots)
    return slots


@njit(cache=True, nogil=True)
def _fill_alias(outcomes, filled, slots):  # type: ignore[no-untyped-def]
    """Vose's method; `filled` has the mean 1 and is used up."""
    size = len(outcomes)
    stack = np.empty(size, dtype=np.int64)
    # Too little from the left, too much from the right.
    few, many = 0, size
    for k in range(size):
        if filled[k] < 1.0:
            stack[few] = k
            few += 1
        else:
            many -= 1
            stack[many] = k
    for k in range(size):
        slots[k, 0] = np.uint64(0xFFFFFFFFFFFFFFFF)
        slots[k, 1] = outcomes[k] | outcomes[k] << np.uint64(32)
    while few and many < size:
        few -= 1
        small, large = stack[few], stack[many]
        slots[small, 0] = np.uint64(filled[small] * 18446744073709551616.0)
        slots[small, 1] = outcomes[small] | outcomes[large] << np.uint64(32)
        filled[large] -= 1.0 - filled[small]
        if filled[large] < 1.0:
            many += 1
            stack[few] = large
            few += 1


def _thresholds(chain: Chain) -> NDArray[np.uint64]:
    """The rows of `DrawTables.bases` for one insertion."""
    rows = [
        [fsum(chances[: k + 1]) / (fsum(chances) or 1.0) for k in range(3)] for chances in (*chain.step, chain.first)
    ]
    return np.rint(np.array(rows) * 2.0**32).astype(np.uint64)
