"""Generation probabilities of amino-acid sequences on CPU cores.

The sum runs over all nucleotide sequences of the given codons at once.  `hpcvdj.kernels.pgen.codons` says what the four
components of a weight mean where a codon is cut.  Weights that begin at V end after q bases; those that begin at J are
made from the end, with mirrored codons, and mean the same components once they are turned round.
"""

import numpy as np
from numba import njit

from hpcvdj.kernels.fused import fma, weighted
from hpcvdj.kernels.pgen.form_trie import CUTS
from hpcvdj.kernels.pgen.symbol_tries import NO_WEIGHT, NOT_MADE

CHUNK = 64
"""Sequences that a thread takes at a time."""


# Weights are tuples here, which stay in registers; the compiler cannot know that an array is not part of another one.


@njit(nogil=True, forceinline=True)
def by_rows(w, a, b, c, d):  # type: ignore[no-untyped-def]
    """A weight after the 4 x 4 table of four rows."""
    return (
        weighted(w, a[0], b[0], c[0], d[0]),
        weighted(w, a[1], b[1], c[1], d[1]),
        weighted(w, a[2], b[2], c[2], d[2]),
        weighted(w, a[3], b[3], c[3], d[3]),
    )


@njit(nogil=True, forceinline=True)
def through(w, table, s):  # type: ignore[no-untyped-def]
    """A weight after the step of symbol s."""
    return by_rows(w, table[s, 0], table[s, 1], table[s, 2], table[s, 3])


@njit(nogil=True, forceinline=True)
def within(codons, forwards, k):  # type: ignore[no-untyped-def]
    """The place of a side's codon k, and the rows after its first, second and third base."""
    q, last = 3 * k, 3 * codons
    if forwards:
        return k, q + 1, q + 2, q + 3
    return codons - 1 - k, last - q - 1, last - q - 2, last - q - 3


@njit(cache=True, nogil=True)
def one_side(symbols, codons, forwards, row, side, out):  # type: ignore[no-untyped-def]
    """Segments with the insertions behind them, into out [3 codons + 1, 4]; whether there is any.

    row  in `child`, of the tree's root
    """
    child, after, ended, beyond, one, two, whole = side
    last, k = 3 * codons, 0
    for c in range(4):
        out[0 if forwards else last, c] = 0.0
    while k < codons and row >= 0:
        place, q1, q2, q3 = within(codons, forwards, k)
        node = child[row, symbols[place]]
        if node < 0:
            fill_rest(out, 3 * k, last, forwards, 0.0 if node == NO_WEIGHT else np.nan)
            return k > 0 or node == NOT_MADE
        for c in range(4):
            out[q1, c] = ended[node, c]
            out[q2, c] = ended[node, 4 + c]
        out[q3, 0] = ended[node, 8]
        row = after[node]
        k += 1
    # The rows of the product of the steps behind the leaf.
    r0, r1, r2, r3 = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0)
    leaf = -1 - row
    for j in range(min(codons - k, beyond.shape[1])):
        place, q1, q2, q3 = within(codons, forwards, k)
        s = symbols[place]
        begun = beyond[leaf, j, 0, 0], beyond[leaf, j, 0, 1], beyond[leaf, j, 0, 2], beyond[leaf, j, 0, 3]
        w = through(by_rows(begun, r0, r1, r2, r3), one, 0)
        begun = beyond[leaf, j, 1, 0], beyond[leaf, j, 1, 1], beyond[leaf, j, 1, 2], beyond[leaf, j, 1, 3]
        x = through(by_rows(begun, r0, r1, r2, r3), two, s)
        r0, r1 = through(r0, whole, s), through(r1, whole, s)
        r2, r3 = through(r2, whole, s), through(r3, whole, s)
        begun = beyond[leaf, j, 2, 0], beyond[leaf, j, 2, 1], beyond[leaf, j, 2, 2], beyond[leaf, j, 2, 3]
        y = by_rows(begun, r0, r1, r2, r3)
        out[q1, 0], out[q1, 1], out[q1, 2], out[q1, 3] = w
        out[q2, 0], out[q2, 1], out[q2, 2], out[q2, 3] = x
        out[q3, 0] = (y[0] + y[1]) + (y[2] + y[3])
        k += 1
    fill_rest(out, 3 * k, last, forwards, 0.0)
    return True


@njit(cache=True, nogil=True)
def fill_rest(out, q, last, forwards, value):  # type: ignore[no-untyped-def]
    """Set the weights after more than q bases."""
    for e in range(q + 1, last + 1):
        for c in range(out.shape[1]):
            out[e if forwards else last - e, c] = value


@njit(cache=True, nogil=True)
def _middle(symbols, codons, t, left, right, before, after, forms, trie):  # type: ignore[no-untyped-def]
    """The sum over D forms, of table t, of left x form x right.

    before, after  [CUTS], scratch: weights on both sides of whole codons, as `FormTrie` calls the bases between
    """
    total = 0.0
    for k in range(codons):
        q, s = 3 * k, symbols[k]
        l0, r3 = left[q, 0], right[q + 3, 0]
        part = forms.empty[t] * l0 * right[q, 0]
        for c in range(4):
            l1, l2, r1, r2 = left[q + 1, c], left[q + 2, c], right[q + 1, c], right[q + 2, c]
            part = fma(forms.empty[t], fma(l1, r1, l2 * r2), part)
            part = fma(l0, fma(forms.single[t, c], r1, forms.ends_two[t, s, c] * r2), part)
            part = fma(r3, fma(l1, forms.one_three[t, s, c], l2 * forms.single[t, c]), part)
            inner = 0.0
            for d in range(4):
                inner = fma(forms.one_two[t, s, c, d], right[q + 2, d], inner)
            part = fma(l1, inner, part)
        if k + 1 < codons:
            r = symbols[k + 1]
            for c in range(4):
                after_one = after_two = 0.0
                for d in range(4):
                    r1, r2 = right[q + 4, d], right[q + 5, d]
                    after_one = fma(
                        forms.one_over_two[t, s, r, c, d], r2, fma(forms.one_one[t, s, c, d], r1, after_one)
                    )
                    after_two = fma(forms.two_two[t, r, c, d], r2, fma(forms.across[t, c, d], r1, after_two))
                part = fma(left[q + 2, c], after_two, fma(left[q + 1, c], after_one, part))
        total += part
        # Forms whose first whole codon is this one.
        node = trie.child[0, s]
        if node < 0:
            continue
        before[:] = 0.0
        before[0] = l0
        if k > 0:
            through_codon(left, q - 1, q - 2, forms.first_open, symbols[k - 1], before)
        last = k
        while node >= 0:
            last += 1
            after[:] = 0.0
            after[0] = right[3 * last, 0]
            following = -1
            if last < codons:
                through_codon(right, 3 * last + 1, 3 * last + 2, forms.last_open, symbols[last], after)
                following = trie.child[node, symbols[last]]
            total += form_sum(trie.first[node], trie.first[node + 1], t, trie, before, after)
            node = following
    return total


@njit(cache=True, nogil=True)
def _without_d(codons, empty, left, right):  # type: ignore[no-untyped-def]
    """`_middle`, where the empty form is the only one."""
    total = 0.0
    for k in range(codons):
        q = 3 * k
        part = empty * left[q, 0] * right[q, 0]
        for c in range(4):
            part = fma(empty, fma(left[q + 1, c], right[q + 1, c], left[q + 2, c] * right[q + 2, c]), part)
        total += part
    return total


@njit(cache=True, nogil=True)
def has_forms(forms, trie):  # type: ignore[no-untyped-def]
    """Whether there are other D forms than the empty one: those of three bases or more have a whole codon somewhere."""
    return len(trie.cuts) > 0 or (forms.single != 0.0).any() or (forms.across != 0.0).any()


@njit(cache=True, nogil=True)
def through_codon(weights, one, two, fits, s, out):  # type: ignore[no-untyped-def]
    """The weights one base and two bases into a codon, in a row each, by these bases; `fits` is [symbols, 4, 16]."""
    for c in range(4):
        out[1 + c] = weights[one, c]
    w = weights[two, 0], weights[two, 1], weights[two, 2], weights[two, 3]
    for pair in range(16):
        out[5 + pair] = weighted(w, fits[s, 0, pair], fits[s, 1, pair], fits[s, 2, pair], fits[s, 3, pair])


@njit(cache=True, nogil=True)
def form_sum(first, last, t, trie, before, after):  # type: ignore[no-untyped-def]
    """The sum over the forms of a node."""
    total = other = 0.0
    for form in range(first, last - 1, 2):
        cuts, next_cuts = trie.cuts[form], trie.cuts[form + 1]
        total = fma(trie.weight[t, form], before[cuts >> 8] * after[cuts & 255], total)
        other = fma(trie.weight[t, form + 1], before[next_cuts >> 8] * after[next_cuts & 255], other)
    if (last - first) & 1:
        cuts = trie.cuts[last - 1]
        total = fma(trie.weight[t, last - 1], before[cuts >> 8] * after[cuts & 255], total)
    return total + other


@njit(cache=True, nogil=True)
def amino_acid_rows(rows, symbols, codons, offsets, out, groups, v, j, forms, trie):  # type: ignore[no-untyped-def]
    """The probabilities of sequences rows[0] … rows[1] - 1 of `symbols` [sequences, codons] into `out` [sequences].

    A sequence of no codons has no value: NaN.
    """
    places = 3 * symbols.shape[1] + 1
    more_forms = has_forms(forms, trie)
    left, right = np.empty((2, places, 4))
    before, after = np.empty((2, CUTS))
    for row in range(rows[0], rows[1]):
        pair = np.searchsorted(offsets, row, side="right") - 1
        n, text = np.int64(codons[row]), symbols[row]
        total, made = np.nan if n == 0 else 0.0, np.int64(-1)
        for group in range(groups.first[pair], groups.first[pair + 1]):
            if not one_side(text, n, False, groups.j[group], j, right):
                continue
            if groups.v[group] != made:
                made = groups.v[group]
                if not one_side(text, n, True, made, v, left):
                    # Nor is there any in another group with this V.
                    continue
            t = groups.d[group]
            if more_forms:
                part = _middle(text, n, t, left, right, before, after, forms, trie)
            else:
                part = _without_d(n, forms.empty[t], left, right)
            total += groups.weight[group] * part
        out[row] = total
