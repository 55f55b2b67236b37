"""The `direct` kernel on CPU cores.

For a start q in the sequence S, the places of the extended D segments at which S[q:e] ends are one machine
word: shift it by one and mask it with the places of the base S[e], and it belongs to S[q:e+1].  Its set bits
are the D forms equal to S[q:e], all D genes at once, and it is empty after a few steps.

For such a form, m is (n-nucleotides left of D) + (right of D), which run through two independent intervals
[left, q] and [right, L-e], so its contribution over m is a trapezoid: the second difference of four impulses.
The impulses are added up, and two running sums at the end give the counts.  The three factors of the sum are kept
apart: the part left of D (`left`, `lefts`), D's occurrences (`found`), and the part right of D (`right`, `rights`).
"""

import numpy as np
from numba import njit

from hpcvdj.kernels.bits import popcount
from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pathways.d_table import DTable
from hpcvdj.kernels.pathways.forms import Texts
from hpcvdj.kernels.text import base_at
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.recombination.germline import extended_j, extended_v
from hpcvdj.recombination.repertoire import LONGEST_CDR3, Problem

CHUNK = 512
"""Sequences that a thread takes at a time."""


class DirectKernel(Kernel):
    """`direct` loaded with a problem; tasks are the sequences of the unit."""

    def __init__(self, problem: Problem, threads_per_block: int) -> None:
        self.repertoire = problem.repertoire
        self.distinct = problem.distinct_d_forms
        self.d = DTable(problem)
        max_p, pairs = problem.germline.max_p, problem.repertoire.pairs
        v = [extended_v(v.sequence, max_p) for v, _ in pairs]
        # J is compared from its end, so its letters are stored last to first.
        j = [extended_j(j.sequence, max_p)[::-1] for _, j in pairs]
        self.segments = *Texts.of(v), *Texts.of(j), self.d.locus

    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Count the unit's sequences `first` … `last`-1, in their rows; the other rows are zero."""
        counters = np.zeros((len(unit.rows), len(unit.n_lengths)), dtype=np.uint64)
        start = unit.rows.start
        on_threads(
            count_rows, parts_of(last - first, CHUNK), self.repertoire.words, self.repertoire.lengths,
            self.repertoire.offsets, start + first, *self.segments, self.d.words, self.d.ends, self.d.genes,
            self.d.empty, self.distinct, counters[first:last],
        )  # fmt: skip
        return lambda: counters


@njit(cache=True, nogil=True, forceinline=True)
def _common(codes, step, length, other, other_length):  # type: ignore[no-untyped-def]
    """Longest common prefix of the codes (read backwards from the end if step is -1) and `other`."""
    most = min(length, other_length)
    k = 0
    while k < most and codes[k if step > 0 else length - 1 - k] == other[k]:
        k += 1
    return k


@njit(cache=True, nogil=True, forceinline=True)
def _add_trapezoid(second, m, lefts, rights, weight):  # type: ignore[no-untyped-def]
    """Add `weight` x (interval of `lefts` values) * (interval of `rights` values), starting at n-length `m`."""
    second[m] += weight
    second[m + lefts] -= weight
    second[m + rights] -= weight
    second[m + lefts + rights] += weight


@njit(cache=True, nogil=True)
def _weight(found, genes, distinct):  # type: ignore[no-untyped-def]
    """D forms among the places `found`: each place is one, or each gene that has any is one."""
    if not distinct:
        return popcount(found)
    weight = 0
    for gene in genes:
        if found & gene:
            weight += 1
    return weight


@njit(cache=True, nogil=True)
def _count_with_d(codes, length, a, b, ends, words, genes, distinct, max_n, second):  # type: ignore[no-untyped-def]
    """Second differences over m of the pathways of one sequence with a D form that is not empty."""
    for q in range(min(length - 1, a + max_n) + 1):
        left = max(0, q - a)
        lefts = q - left + 1
        # A form that ends before `earliest` leaves more than max_n n-nucleotides outside V, D and J.
        earliest = length - b - (max_n - left)
        for w in range(words):
            found = ends[w, codes[q]]
            e = q + 1
            while found:
                if e >= earliest:
                    right = max(0, length - e - b)
                    weight = _weight(found, genes[w], distinct)
                    _add_trapezoid(second, left + right, lefts, length - e - right + 1, weight)
                if e == length:
                    break
                found = (found << np.uint64(1)) & ends[w, codes[e]]
                e += 1


@njit(cache=True, nogil=True)
def _v_j_pairs(length, a, b, m):  # type: ignore[no-untyped-def]
    """Pairs (V form, J form) that leave m bases between them."""
    both = length - m
    return max(0, min(a, both) - max(0, both - b) + 1)


@njit(cache=True, nogil=True)
def count_rows(  # type: ignore[no-untyped-def]
    part, packed, lengths, offsets, first, v, v_length, j, j_length, locus,
    d_words, d_ends, d_genes, d_empty, distinct, out,
):  # fmt: skip
    """Count the sequences of a part (first, last) of those from `first` on, into `out` uint64 [rows, n-lengths]."""
    max_n = out.shape[1] - 1
    codes = np.empty(LONGEST_CDR3, dtype=np.uint8)
    second = np.empty(LONGEST_CDR3 + 4, dtype=np.int64)
    pair = np.searchsorted(offsets, first + part[0], side="right") - 1
    for row in range(first + part[0], first + part[1]):
        while offsets[pair + 1] <= row:
            pair += 1
        length = np.int64(lengths[row])
        for k in range(length):
            codes[k] = base_at(packed[row], k)
        a = _common(codes, 1, length, v[pair], v_length[pair])
        b = _common(codes, -1, length, j[pair], j_length[pair])
        where = locus[pair]
        target = out[row - first]
        top = min(max_n, length)
        second[: length + 3] = 0
        _count_with_d(
            codes, length, a, b, d_ends[where], d_words[where], d_genes[where], distinct, top, second
        )  # fmt: skip
        slope = np.int64(0)
        count = np.int64(0)
        for m in range(top + 1):
            slope += second[m]
            count += slope
            # An empty D form cuts the m n-nucleotides at any of m + 1 places; without D genes there is no cut.
            cuts = d_empty[where] * (m + 1) if d_words[where] else 1
            target[m] = np.uint64(count + cuts * _v_j_pairs(length, a, b, m))
