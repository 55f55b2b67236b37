"""In silico junctions made where they are counted: any rows of a set of any size, packed, without files.

Row k of a set depends on the set's seed and on k alone, so each rank makes its own rows, whatever the number of ranks.
They are drawn as `hpcvdj simulate` draws them, but each row on its own: rows may repeat.
"""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from hpcvdj.generation.simulate import PAPER_LARGEST_PAIR, PAPER_SEQUENCES, pair_sizes, usable_pairs
from hpcvdj.recombination.alphabet import BASES_PER_WORD, encode, words_for
from hpcvdj.recombination.germline import Germline, d_forms, extended_j, extended_v
from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3, Repertoire

_LARGEST_N = 10
_CHUNK = 1 << 12
_BASES_PER_WORD = BASES_PER_WORD  # numba takes constants of this module only


class PackedSet:
    """`count` junctions of a germline's functional V–J pairs, n-lengths 0 … 10, CDR3s of at most 60 nt.

    The pairs' sizes decrease as in the paper's mouse set (see `hpcvdj.generation.simulate.pair_sizes`).
    """

    def __init__(self, germline: Germline, count: int, seed: int) -> None:
        self.germline, self.seed = germline, seed
        self.pairs = usable_pairs(germline, ("F",))
        sizes = pair_sizes(count, len(self.pairs), PAPER_LARGEST_PAIR / PAPER_SEQUENCES)
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        self._v = _padded([extended_v(v.sequence, germline.max_p) for v, _ in self.pairs])
        self._j = _padded([extended_j(j.sequence, germline.max_p) for _, j in self.pairs])
        ranges: dict[str, tuple[int, int]] = {}
        forms: list[str] = []
        for locus in germline.loci:
            genes = germline.d_segments(locus)
            of_locus = [form for gene in genes for form in d_forms(gene.sequence, max_p=germline.max_p)] or [""]
            ranges[locus] = (len(forms), len(of_locus))
            forms += of_locus
        self._d = _padded(forms)
        self._d_range = np.array([ranges[v.locus] for v, _ in self.pairs])

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def rows(self, first: int, last: int) -> Repertoire:
        """Rows `first` … `last`-1 as a repertoire of the same pairs, on all threads."""
        words = np.empty((last - first, words_for(PAPER_LONGEST_CDR3)), dtype=np.uint64)
        lengths = np.empty(last - first, dtype=np.uint8)
        _make(np.uint64(self.seed), first, self.offsets, *self._v, *self._j, *self._d, self._d_range, words, lengths)
        offsets = np.clip(self.offsets, first, last) - first
        return Repertoire(words, lengths, self.pairs, offsets)


def _padded(texts: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Codes uint8 [texts, longest] and lengths of texts."""
    codes = np.zeros((len(texts), max(1, *map(len, texts))), dtype=np.uint8)
    for row, text in enumerate(texts):
        codes[row, : len(text)] = encode(text)
    return codes, np.array([len(text) for text in texts])


@njit(cache=True, nogil=True)
def _next(state):  # type: ignore[no-untyped-def]
    """The state after `state` and 64 random bits of it: Steele, Lea and Flood's SplitMix64."""
    state += np.uint64(0x9E3779B97F4A7C15)
    bits = state
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, bits ^ (bits >> np.uint64(31))


@njit(cache=True, nogil=True)
def _below(bits, shift, bound):  # type: ignore[no-untyped-def]
    """A number in 0 … bound-1 from 16 of the random bits."""
    return np.int64((((bits >> np.uint64(shift)) & np.uint64(0xFFFF)) * np.uint64(bound)) >> np.uint64(16))


@njit(cache=True, nogil=True)
def _append(codes, begin, count, words, row, length):  # type: ignore[no-untyped-def]
    """Append `count` of `codes` to a packed row that has `length` bases; returns its new length."""
    for k in range(begin, begin + count):
        words[row, length // _BASES_PER_WORD] |= np.uint64(codes[k]) << np.uint64(62 - 2 * (length % _BASES_PER_WORD))
        length += 1
    return length


@njit(cache=True, nogil=True, parallel=True)
def _make(seed, first, offsets, v, v_length, j, j_length, d, d_length, d_range, words, lengths):  # type: ignore[no-untyped-def]
    """Fill rows `first` … of the set into `words` and `lengths`."""
    rows = len(lengths)
    for chunk in prange((rows + _CHUNK - 1) // _CHUNK):
        n = np.empty(_LARGEST_N, dtype=np.uint8)
        begin = chunk * _CHUNK
        pair = np.searchsorted(offsets, first + begin, side="right") - 1
        for row in range(begin, min(rows, begin + _CHUNK)):
            while offsets[pair + 1] <= first + row:
                pair += 1
            # Rows' generators start far apart: the row number passes through the generator itself.
            state, bits = _next(np.uint64(first + row) ^ (seed * np.uint64(0x9E3779B97F4A7C15)))
            state = bits
            while True:
                state, bits = _next(state)
                m = _below(bits, 0, _LARGEST_N + 1)
                cut = _below(bits, 16, m + 1)
                a = _below(bits, 32, v_length[pair] + 1)
                b = _below(bits, 48, j_length[pair] + 1)
                state, bits = _next(state)
                form = d_range[pair, 0] + _below(bits, 0, d_range[pair, 1])
                for k in range(m):
                    n[k] = (bits >> np.uint64(16 + 2 * k)) & np.uint64(3)
                if a + m + d_length[form] + b <= PAPER_LONGEST_CDR3:
                    break
            for word in range(words.shape[1]):
                words[row, word] = 0
            length = _append(v[pair], 0, a, words, row, 0)
            length = _append(n, 0, cut, words, row, length)
            length = _append(d[form], 0, d_length[form], words, row, length)
            length = _append(n, cut, m - cut, words, row, length)
            lengths[row] = _append(j[pair], j_length[pair] - b, b, words, row, length)
