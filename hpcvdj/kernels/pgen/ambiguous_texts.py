"""Which texts of amino acids with ambiguous symbols the prefix trees of a problem need.

The trees have every text of amino acids that can be made.  Of those with ambiguous symbols, which are many more, they
have what the sequences need, and for sums over one mismatch all with a single X.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.errors import InputError, log, option
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.recombination.alphabet import AMINO_ACIDS
from hpcvdj.recombination.repertoire import PgenProblem
from hpcvdj.recombination.symbols import ANY_RESIDUE, Alphabet

STANDARD = frozenset(AMINO_ACIDS.values())
"""Amino acids and the stop."""

NO_SYMBOL = 255
"""Behind the end of a sequence."""

MOST_BYTES = 1 << 33
"""Of the prefix trees of one side."""


@dataclass(frozen=True)
class Ambiguous:
    """Which texts with ambiguous symbols there are.

    symbols  uint8 [sequences, codons]: the sequences with such symbols, NO_SYMBOL behind their end
    pair     int64 [sequences]: their V–J pairs
    ball     for sums over one mismatch: every text has an X in the place of any one of its symbols, too
    """

    symbols: NDArray[np.uint8]
    pair: NDArray[np.int64]
    ball: bool

    @staticmethod
    def of(problem: PgenProblem, *, ball: bool) -> "Ambiguous":
        """The texts of a problem."""
        alphabet, repertoire = problem.symbols, problem.repertoire
        if alphabet is None:
            return Ambiguous(np.zeros((0, 0), np.uint8), np.zeros(0, np.int64), ball)
        # Behind the end of a sequence there is symbol 0, an amino acid.
        packed = np.ascontiguousarray(repertoire.words).view(np.uint8)
        rows = np.flatnonzero(is_ambiguous(alphabet)[packed].any(axis=1))
        if len(rows):
            log.debug("preparing the tables for %s sequence(s) with ambiguous symbols", f"{len(rows):,}")
        symbols = repertoire.words[rows].astype(">u8").view(np.uint8)
        symbols[np.arange(symbols.shape[1]) >= (repertoire.lengths[rows] // np.uint8(alphabet.bases))[:, None]] = (
            NO_SYMBOL
        )
        return Ambiguous(symbols, np.searchsorted(repertoire.offsets, rows, side="right") - 1, ball)

    def free(self, alphabet: Alphabet) -> int:
        """The symbol that any text may have once; -1 for none."""
        return alphabet.symbols.index(ANY_RESIDUE) if self.ball else -1

    def sorted(
        self, alphabet: Alphabet, owner: NDArray[np.int64], texts: NDArray[np.uint8]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Owners and texts [texts, codons], of those with ambiguous symbols, each once and in their order.

        With those that have an X in the place of one symbol, for sums over one mismatch.
        """
        marked = np.append(is_ambiguous(alphabet), np.zeros(256 - len(alphabet.symbols), np.bool_))
        kept = marked[texts].any(axis=1)
        owner, texts = _unique(owner[kept], texts[kept])
        if self.ball:
            changed = np.repeat(texts[None], texts.shape[1] + 1, axis=0)
            for k in range(texts.shape[1]):
                changed[k + 1, texts[:, k] != NO_SYMBOL, k] = self.free(alphabet)
            owner, texts = _unique(np.tile(owner, len(changed)), changed.reshape(-1, texts.shape[1]))
        return owner, texts

    def check(self, size: int) -> None:
        """InputError if prefix trees of `size` bytes are too large."""
        if size > MOST_BYTES:
            raise InputError(
                f"the tables of amino acids for these V and J calls and {len(self.symbols):,} sequences with ambiguous "
                f"symbols need more than {MOST_BYTES / 1e9:.1f} GB; take fewer rows at a time "
                f"({option('batch_rows')}), or leave out mismatches"
            )


def is_ambiguous(alphabet: Alphabet) -> NDArray[np.bool_]:
    """Which symbols of an alphabet are ambiguous, bool [symbols]."""
    return np.array([symbol not in STANDARD for symbol in alphabet.symbols])


def cut(symbols: NDArray[np.uint8], first: int, width: int) -> NDArray[np.uint8]:
    """`width` symbols of each sequence from place `first` on, NO_SYMBOL where it has ended."""
    part = symbols[:, first : first + width]
    return np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=NO_SYMBOL)


def reversed_texts(symbols: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Sequences from their ends."""
    out = np.full_like(symbols, NO_SYMBOL)
    codons = (symbols != NO_SYMBOL).sum(axis=1)
    rows, places = np.nonzero(symbols != NO_SYMBOL)
    out[rows, codons[rows] - 1 - places] = symbols[rows, places]
    return out


def _unique(owner: NDArray[np.int64], texts: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Different (owner, text), ordered by owner, then by text."""
    # Eight bytes at a time are sorted faster than one.
    filled = np.pad(texts, ((0, 0), (0, -texts.shape[1] % 8))).view(">u8").astype(np.uint64)
    chosen, _ = groups(filled, np.zeros(len(owner), np.int64), owner)
    return owner[chosen], texts[chosen]


@njit(cache=True, nogil=True)
def range_of(symbol, texts, place, first, last):  # type: ignore[no-untyped-def]
    """Which of the sorted texts first … last-1, which begin alike, have `symbol` at `place`: first and last + 1."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if texts[middle, place] < symbol:
            low = middle + 1
        else:
            high = middle
    stop, high = low, last
    while stop < high:
        middle = (stop + high) // 2
        if texts[middle, place] <= symbol:
            stop = middle + 1
        else:
            high = middle
    return low, stop


PLAIN, ONE_FREE, NEEDED = range(3)
"""Texts of amino acids; those with one X, which any text may have; others, which are made if a sequence needs them."""


@njit(cache=True, nogil=True)
def kind_of(before, symbol, is_ambiguous, free):  # type: ignore[no-untyped-def]
    """The kind of a text that goes on with `symbol`."""
    if not is_ambiguous[symbol]:
        return before
    return ONE_FREE if before == PLAIN and symbol == free else NEEDED
