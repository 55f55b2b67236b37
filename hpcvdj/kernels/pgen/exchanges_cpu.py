"""Probabilities of all amino-acid sequences with one residue exchanged, each by itself, on CPU cores.

Sequences that differ in one residue share all that is left of it and all that is right of it.  So the sums from both
ends are made once for a sequence, with what each of their weights is **worth**: the sum of all that it is multiplied
with.  A neighbour's probability is then the sum of three parts, all terms positive:

- weights of V and its insertion that have the exchanged residue, times what they are worth without it;
- the same of J and its insertion, from the other end;
- D forms with the second base of the exchanged codon, between weights of the sequence itself.

Weights within a codon are as in `hpcvdj.kernels.pgen.codons`: after its first base, those of V do not know its symbol,
and after its second, those of J do not.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.fused import fma, weighted
from hpcvdj.kernels.pgen.aa_cpu import CHUNK, form_sum, one_side, through, through_codon, within
from hpcvdj.kernels.pgen.ambiguous_texts import Ambiguous, is_ambiguous
from hpcvdj.kernels.pgen.form_trie import CUTS
from hpcvdj.kernels.pgen.symbol_tries import amino_acid_tables
from hpcvdj.kernels.pgen.tables import DForms, Tables
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.recombination.models import Array
from hpcvdj.recombination.repertoire import PgenProblem

OPEN = 5
"""The first of the cuts with two bases, of `FormTrie`."""


class Exchange(NamedTuple):
    """What an exchanged residue is, and what weights are multiplied with if a codon is one of so many residues.

    residues  int64 [residues]: their symbols
    of_codon  int64 [64]: the residue of each codon; -1 of others
    v, j      float64 [2, 4, 4, residues]: the steps `two` and `whole` of the insertions of each side
    short     float64 [t, CUTS, CUTS]: D forms without a whole codon, by the bases on both sides of a codon's border
    """

    residues: NDArray[np.int64]
    of_codon: NDArray[np.int64]
    v: Array
    j: Array
    short: Array


def exchanged(problem: PgenProblem, residues: str, kept: int) -> tuple[Array, NDArray[np.int64]]:
    """The probabilities of sequences and their neighbours, float64, and where those of each begin, int64 [rows + 1].

    Those of a sequence are its own and, by position and residue, those of its neighbours, in the order of
    `hpcvdj.kernels.neighbours.balls`.  They are NaN if there are other symbols than amino acids and stops.

    residues  what may be in the place of another one
    kept      residues on both ends that are not exchanged
    """
    repertoire, alphabet = problem.repertoire, problem.symbols
    assert alphabet is not None
    tables = Tables.of(problem.model, [(v.places, j.places) for v, j in repertoire.pairs])
    groups, v, j, forms, trie = amino_acid_tables(tables, alphabet, Ambiguous.of(problem, ball=False))
    codes = np.array([alphabet.symbols.index(residue) for residue in residues], dtype=np.int64)
    of_codon = np.full(64, -1)
    for number, code in enumerate(codes):
        of_codon[alphabet.codons[code].reshape(-1)] = number
    exchange = Exchange(codes, of_codon, _steps(v, codes), _steps(j, codes), _short(tables.forms))
    symbols, codons = repertoire.words.astype(">u8").view(np.uint8), repertoire.lengths.astype(np.int64) // 3
    position = np.arange(symbols.shape[1])
    inner = (position >= kept) & (position < codons[:, None] - kept)
    sizes = 1 + (inner * (len(codes) - np.isin(symbols, codes))).sum(axis=1)
    begins = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty(begins[-1])
    on_threads(
        exchange_rows, parts_of(len(codons), CHUNK), symbols, codons, repertoire.offsets, is_ambiguous(alphabet), kept,
        begins, out, exchange, groups, v, j, forms, trie,
    )  # fmt: skip
    return out, begins


def _steps(side: Any, codes: NDArray[np.int64]) -> Array:
    return np.ascontiguousarray(np.stack([side.two[codes], side.whole[codes]]).transpose(0, 2, 3, 1))


def _short(forms: DForms) -> Array:
    texts = [forms.of_length(length) for length in range(5)]
    blocks = [[texts[before + after].reshape(-1, 4**before, 4**after) for after in range(3)] for before in range(3)]
    return np.ascontiguousarray(np.block(blocks))


@njit(nogil=True, forceinline=True)
def _row(a, q):  # type: ignore[no-untyped-def]
    return a[q, 0], a[q, 1], a[q, 2], a[q, 3]


@njit(nogil=True, forceinline=True)
def _put(a, j, f, w):  # type: ignore[no-untyped-def]
    a[j, f, 0], a[j, f, 1], a[j, f, 2], a[j, f, 3] = w


@njit(nogil=True, forceinline=True)
def _product(w, x):  # type: ignore[no-untyped-def]
    """The sum of the products of components."""
    return weighted(w, x[0], x[1], x[2], x[3])


@njit(nogil=True, forceinline=True)
def _worth(table, s, w):  # type: ignore[no-untyped-def]
    """What a weight before the step of symbol s is worth, by what those behind it are."""
    return (
        weighted(w, table[s, 0, 0], table[s, 0, 1], table[s, 0, 2], table[s, 0, 3]),
        weighted(w, table[s, 1, 0], table[s, 1, 1], table[s, 1, 2], table[s, 1, 3]),
        weighted(w, table[s, 2, 0], table[s, 2, 1], table[s, 2, 2], table[s, 2, 3]),
        weighted(w, table[s, 3, 0], table[s, 3, 1], table[s, 3, 2], table[s, 3, 3]),
    )


@njit(cache=True, nogil=True)
def _side(symbols, codons, forwards, row, side, residues, out):  # type: ignore[no-untyped-def]
    """The weights of `one_side`; after the first base of a codon, which it has for those of its symbol alone, all."""
    one_side(symbols, codons, forwards, row, side, out)
    k = 0
    while k < codons and row >= 0:
        place, q1, _, _ = within(codons, forwards, k)
        for residue in residues:
            node = side.child[row, residue]
            if node >= 0:
                # Each residue has the weights of its own codons, and less of the others.
                for c in range(4):
                    out[q1, c] = max(out[q1, c], side.ended[node, c])
        node = side.child[row, symbols[place]]
        row = side.after[node] if node >= 0 else -1
        k += 1


@njit(cache=True, nogil=True)
def _insertions(symbols, codons, forwards, side, worth, later):  # type: ignore[no-untyped-def]
    """Set in later [k, j, f] what an insertion up to codon k is worth that ends in codon k + j after f + 1 bases."""
    width = side.beyond.shape[1]
    for k in range(codons - 1, -1, -1):
        place, q1, q2, q3 = within(codons, forwards, k)
        s, end = symbols[place], worth[q3, 0]
        if width > 0:
            _put(later[k], 0, 0, _worth(side.one, 0, _row(worth, q1)))
            _put(later[k], 0, 1, _worth(side.two, s, _row(worth, q2)))
            _put(later[k], 0, 2, _worth(side.whole, s, (end, end, end, end)))
        for j in range(1, min(width, codons - k)):
            for f in range(3):
                _put(later[k], j, f, _worth(side.whole, s, _row(later[k + 1, j - 1], f)))


@njit(cache=True, nogil=True)
def _exchange_side(  # type: ignore[no-untyped-def]
    symbols, codons, forwards, row, side, steps, residues, kept, worth, later, far, pair, out
):
    """Add, for each exchanged residue, the weights that have it, times what they are worth.

    row    in `child`, of the tree's root
    steps  as of `Exchange`
    worth  [3 codons + 1, 4]
    later  [codons, width, 3, 4], scratch: as of `_insertions`
    far    [width, 3, 4], scratch: insertions behind the leaf, from this codon on
    pair   [2, 4, 4], scratch: what the steps of a residue are multiplied with
    out    [codons, residues]
    """
    _insertions(symbols, codons, forwards, side, worth, later)
    width, k = side.beyond.shape[1], 0
    while k < codons and row >= 0:
        place, _, q2, q3 = within(codons, forwards, k)
        for r in range(len(residues) if kept <= k < codons - kept else 0):
            node, at, total = side.child[row, residues[r]], k, 0.0
            if residues[r] == symbols[place]:
                continue
            while node >= 0:
                _, q1, q2, q3 = within(codons, forwards, at)
                e = side.ended[node]
                if at > k:
                    total += _product((e[0], e[1], e[2], e[3]), _row(worth, q1))
                total += fma(e[8], worth[q3, 0], _product((e[4], e[5], e[6], e[7]), _row(worth, q2)))
                at += 1
                if at == codons:
                    break
                if side.after[node] < 0:
                    leaf = -1 - side.after[node]
                    for j in range(min(width, codons - at)):
                        for f in range(3):
                            total += _product(_row(side.beyond[leaf, j], f), _row(later[at, j], f))
                    break
                node = side.child[side.after[node], symbols[within(codons, forwards, at)[0]]]
            out[place, r] += total
        node = side.child[row, symbols[place]]
        if node < 0:
            return
        row = side.after[node]
        k += 1
    if row >= 0 or k == codons:
        return
    leaf = -1 - row
    for j in range(width):
        far[j] = side.beyond[leaf, j]
    while k < codons and width > 0:
        place, _, q2, q3 = within(codons, forwards, k)
        ahead = min(width, codons - k)
        if kept <= k < codons - kept:
            for x in range(4):
                for c in range(4):
                    pair[0, x, c] = far[0, 1, x] * worth[q2, c]
                    total = far[0, 2, x] * worth[q3, 0]
                    for j in range(1, ahead):
                        for f in range(3):
                            total = fma(far[j, f, x], later[k + 1, j - 1, f, c], total)
                    pair[1, x, c] = total
            for step in range(2):
                for x in range(4):
                    for c in range(4):
                        for r in range(len(residues)):
                            out[place, r] = fma(pair[step, x, c], steps[step, x, c, r], out[place, r])
        s = symbols[place]
        for j in range(1, ahead):
            for f in range(3):
                _put(far, j - 1, f, through(_row(far[j], f), side.whole, s))
        if ahead == width:
            far[width - 1] = 0.0
        k += 1


@njit(cache=True, nogil=True)
def _short_forms(codons, short, before, after, worth_before, worth_after):  # type: ignore[no-untyped-def]
    """Set what the weights at each border are worth, on both sides, by the D forms without a whole codon."""
    for k in range(codons + 1):
        worth_before[k] = 0.0
        worth_after[k] = 0.0
        for b in range(CUTS):
            total = 0.0
            for a in range(CUTS):
                total = fma(short[b, a], after[k, a], total)
                worth_after[k, a] = fma(short[b, a], before[k, b], worth_after[k, a])
            worth_before[k, b] = total


@njit(cache=True, nogil=True)
def _long_forms(  # type: ignore[no-untyped-def]
    symbols, codons, residues, kept, t, trie, before, after, worth_before, worth_after, out
):
    """The same, added, of D forms with whole codons; and, added to `out`, those with an exchanged residue."""
    # A form whose first whole codon is the sequence's first would leave no base to V, and so for J.
    for first in range(1, codons - 1):
        node = 0
        for k in range(first, codons - 1):
            for r in range(len(residues) if kept <= k < codons - kept else 0):
                longer, last, total = trie.child[node, residues[r]], k + 1, 0.0
                if residues[r] == symbols[k]:
                    continue
                while longer >= 0:
                    total += form_sum(trie.first[longer], trie.first[longer + 1], t, trie, before[first], after[last])
                    if last == codons - 1:
                        break
                    longer = trie.child[longer, symbols[last]]
                    last += 1
                out[k, r] += total
            node = trie.child[node, symbols[k]]
            if node < 0:
                break
            for form in range(trie.first[node], trie.first[node + 1]):
                b, a, weight = trie.cuts[form] >> 8, trie.cuts[form] & 255, trie.weight[t, form]
                worth_before[first, b] = fma(weight, after[k + 1, a], worth_before[first, b])
                worth_after[k + 1, a] = fma(weight, before[first, b], worth_after[k + 1, a])


@njit(cache=True, nogil=True)
def _within_codons(  # type: ignore[no-untyped-def]
    symbols, codons, of_codon, kept, forms, t, left, right, worth_before, worth_after, pair, worth_left, worth_right,
    out,
):  # fmt: skip
    """Set what the weights of both sides are worth, add exchanges where a D form ends in their codon; the probability.

    pair  [16], scratch: what two bases at a codon's end are worth
    """
    empty, single, value = forms.empty[t], forms.single[t], 0.0
    for k in range(codons):
        q, s = 3 * k, symbols[k]
        for b in range(4):
            for c in range(4):
                pair[4 * b + c] = fma(single[b], right[q + 2, c], worth_before[k + 1, OPEN + 4 * b + c])
        worth_right[q, 0] = worth_after[k, 0]
        worth_left[q + 3, 0] = worth_before[k + 1, 0]
        for c in range(4):
            worth_left[q + 2, c] = fma(empty, right[q + 2, c], worth_before[k + 1, 1 + c])
            worth_right[q + 1, c] = fma(empty, left[q + 1, c], worth_after[k, 1 + c])
            one, two = empty * right[q + 1, c], empty * left[q + 2, c]
            for a in range(4):
                for b in range(4):
                    one = fma(forms.first_open[s, c, 4 * a + b], pair[4 * a + b], one)
                    behind = fma(left[q + 1, a], single[b], worth_after[k, OPEN + 4 * a + b])
                    two = fma(forms.last_open[s, c, 4 * a + b], behind, two)
            worth_left[q + 1, c], worth_right[q + 2, c] = one, two
            value = fma(left[q + 1, c], one, fma(left[q + 2, c], worth_left[q + 2, c], value))
        value = fma(left[q + 3, 0], worth_left[q + 3, 0], value)
        if kept <= k < codons - kept:
            for codon in range(64):
                r, a, b, c = of_codon[codon], codon >> 4, codon >> 2 & 3, codon & 3
                if r >= 0:
                    out[k, r] = fma(left[q + 1, a], pair[4 * b + c], out[k, r])
                    out[k, r] = fma(worth_after[k, OPEN + 4 * a + b], right[q + 2, c], out[k, r])
    return value


@njit(cache=True, nogil=True)
def exchange_rows(  # type: ignore[no-untyped-def]
    rows, symbols, codons, offsets, is_ambiguous, kept, begins, out, exchange, groups, v, j, forms, trie
):
    """The probabilities of sequences rows[0] … rows[1] - 1 and their neighbours, as of `exchanged`, into `out`."""
    places, residues = symbols.shape[1], exchange.residues
    left, right, worth_left, worth_right = np.zeros((4, 3 * places + 1, 4))
    before, after, worth_before, worth_after = np.zeros((4, places + 1, CUTS))
    later = np.zeros((places + 1, max(v.beyond.shape[1], j.beyond.shape[1]), 3, 4))
    far, pair, single = np.zeros(later.shape[1:]), np.zeros((2, 4, 4)), np.zeros(16)
    values = np.zeros((places, len(residues)))
    for row in range(rows[0], rows[1]):
        kind = np.searchsorted(offsets, row, side="right") - 1
        n, text, total = codons[row], symbols[row], 0.0
        for k in range(n):
            if is_ambiguous[text[k]]:
                total = np.nan
        values[:n] = total
        for group in range(groups.first[kind], groups.first[kind + 1] if total == 0.0 else 0):
            t, row_v, row_j = groups.d[group], groups.v[group], groups.j[group]
            _side(text, n, False, row_j, j, residues, right)
            _side(text, n, True, row_v, v, residues, left)
            # All that has a weight of V has the group's; what V itself is worth gets it below.
            left[: 3 * n + 1] *= groups.weight[group]
            before[0] = 0.0
            after[n] = 0.0
            for k in range(1, n):
                before[k, 0], after[k, 0] = left[3 * k, 0], right[3 * k, 0]
                through_codon(left, 3 * k - 1, 3 * k - 2, forms.first_open, text[k - 1], before[k])
                through_codon(right, 3 * k + 1, 3 * k + 2, forms.last_open, text[k], after[k])
            after[0], before[n] = 0.0, 0.0
            _short_forms(n, exchange.short[t], before, after, worth_before, worth_after)
            _long_forms(text, n, residues, kept, t, trie, before, after, worth_before, worth_after, values)
            total += _within_codons(
                text, n, exchange.of_codon, kept, forms, t, left, right, worth_before, worth_after, single,
                worth_left, worth_right, values,
            )  # fmt: skip
            worth_left[: 3 * n + 1] *= groups.weight[group]
            _exchange_side(text, n, True, row_v, v, exchange.v, residues, kept, worth_left, later, far, pair,
                           values)  # fmt: skip
            _exchange_side(text, n, False, row_j, j, exchange.j, residues, kept, worth_right, later, far, pair,
                           values)  # fmt: skip
        at = begins[row]
        out[at] = total
        for k in range(kept, n - kept):
            for r in range(len(residues)):
                if residues[r] != text[k]:
                    at += 1
                    out[at] = values[k, r]
