"""Sums over all amino-acid sequences within one mismatch, on CPU cores.

A probability is linear in the codons of each symbol.  So the sum, over the positions, of the probability with any
residue (X) at that position is a derivative: that of the probability when every symbol gains a little of X.  Each
weight is followed by its own derivative, its **slope**: that of a product of two factors is the slope of the first
times the second, and the first times the slope of the second.  All terms are positive.

Where a codon is cut, the weights after its first base do not know its symbol, which those of the other side do (see
`hpcvdj.kernels.pgen.codons`); so the X of a codon is in the slopes of the one or of the other.
`hpcvdj.kernels.pgen.aa_cpu` has the same sums without slopes.
"""

import numpy as np
from numba import njit

from hpcvdj.kernels.fused import fma, weighted
from hpcvdj.kernels.pgen.aa_cpu import by_rows, fill_rest, has_forms, through, within
from hpcvdj.kernels.pgen.form_trie import CUTS
from hpcvdj.kernels.pgen.symbol_tries import NOT_MADE

BOTH = 8
"""Numbers of a weight: 4 components and their slopes."""


# As in `aa_cpu`, four components are a tuple here, which stays in registers; so are their four slopes.


@njit(nogil=True, forceinline=True)
def _added(w, x):  # type: ignore[no-untyped-def]
    """The sum of two weights."""
    return (w[0] + x[0], w[1] + x[1], w[2] + x[2], w[3] + x[3])


@njit(nogil=True, forceinline=True)
def _stepped(w, e, table, s, x):  # type: ignore[no-untyped-def]
    """A weight and its slope after the step of symbol s; x is any residue."""
    return through(w, table, s), _added(through(e, table, s), through(w, table, x))


@njit(nogil=True, forceinline=True)
def _products(w, x, total):  # type: ignore[no-untyped-def]
    """The products of two weights, component by component, added to `total`."""
    return (fma(w[0], x[0], total[0]), fma(w[1], x[1], total[1]), fma(w[2], x[2], total[2]), fma(w[3], x[3], total[3]))


@njit(nogil=True, forceinline=True)
def _total(w):  # type: ignore[no-untyped-def]
    """The sum of a weight's components."""
    return (w[0] + w[1]) + (w[2] + w[3])


@njit(nogil=True, forceinline=True)
def _at(a, q):  # type: ignore[no-untyped-def]
    """A weight and its slope in a row of an array."""
    return (a[q, 0], a[q, 1], a[q, 2], a[q, 3]), (a[q, 4], a[q, 5], a[q, 6], a[q, 7])


@njit(nogil=True, forceinline=True)
def _put(row, w, e):  # type: ignore[no-untyped-def]
    """Set a weight and its slope."""
    row[0], row[1], row[2], row[3] = w
    row[4], row[5], row[6], row[7] = e


@njit(nogil=True, forceinline=True)
def _put_sum(row, w, e):  # type: ignore[no-untyped-def]
    """Set a weight where a codon ends, which has one component."""
    row[:] = 0.0
    row[0], row[4] = _total(w), _total(e)


@njit(cache=True, nogil=True)
def _further(far, width, s, x, side, one, two, three):  # type: ignore[no-untyped-def]
    """Go through a codon with the insertions behind the leaves; those that end in it, into `one`, `two` and `three`."""
    w, e = _at(far[0], 0)
    _put(one, through(w, side.one, 0), through(e, side.one, 0))
    w, e = _at(far[0], 1)
    w, e = _stepped(w, e, side.two, s, x)
    _put(two, w, e)
    w, e = _at(far[0], 2)
    w, e = _stepped(w, e, side.whole, s, x)
    _put_sum(three, w, e)
    for j in range(1, width):
        for f in range(3):
            w, e = _at(far[j], f)
            w, e = _stepped(w, e, side.whole, s, x)
            _put(far[j - 1, f], w, e)
    far[width - 1] = 0.0


@njit(cache=True, nogil=True)
def _side(symbols, codons, x, forwards, row, side, texts, far, out):  # type: ignore[no-untyped-def]
    """Segments with the insertions behind them, into out [3 codons + 1, BOTH].

    x      the symbol of any residue
    row    in `child`, of the tree's root
    texts  [codons + 1], scratch: rows in `child`, of the texts with an X in the place of a symbol
    far    [codons, 3, BOTH], scratch: as `beyond`, of the insertions behind all leaves so far, from the next codon on
    """
    last, width, k, alive = 3 * codons, min(codons, side.beyond.shape[1]), 0, 0
    for c in range(BOTH):
        out[0 if forwards else last, c] = 0.0
    is_behind = False
    far[:width] = 0.0
    while k < codons and (row >= 0 or alive > 0):
        place, q1, q2, q3 = within(codons, forwards, k)
        s = symbols[place]
        if is_behind:
            _further(far, width, s, x, side, out[q1], out[q2], out[q3])
        else:
            out[q1] = out[q2] = out[q3] = 0.0
        # The texts with an X; that with an X here; the text itself.
        before, alive, itself = alive, 0, row
        row = -1
        for text in range(before + (2 if itself >= 0 else 0)):
            is_itself = text == before + 1
            node = side.child[texts[text] if text < before else itself, x if text == before else s]
            if node == NOT_MADE:
                fill_rest(out, 3 * k, last, forwards, np.nan)
                return
            if node < 0:
                continue
            own = 0 if is_itself else 4
            for c in range(4):
                # After a codon's first base, the other side has its symbol, and the slope: here it may be any.
                if not is_itself:
                    out[q1, c if text == before else 4 + c] += side.ended[node, c]
                out[q2, own + c] += side.ended[node, 4 + c]
            out[q3, own] += side.ended[node, 8]
            if side.after[node] >= 0 and is_itself:
                row = side.after[node]
            elif side.after[node] >= 0:
                texts[alive] = side.after[node]
                alive += 1
            else:
                is_behind = width > 0
                for j in range(width):
                    for f in range(3):
                        for c in range(4):
                            far[j, f, own + c] += side.beyond[-1 - side.after[node], j, f, c]
        k += 1
    # The rows of the product of the steps behind the last leaf, and their slopes.
    r0, r1, r2, r3 = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0)
    e0 = e1 = e2 = e3 = (0.0, 0.0, 0.0, 0.0)
    for j in range(min(codons - k, width) if is_behind else 0):
        place, q1, q2, q3 = within(codons, forwards, k)
        s = symbols[place]
        w, e = _at(far[j], 0)
        e = _added(by_rows(e, r0, r1, r2, r3), by_rows(w, e0, e1, e2, e3))
        w = by_rows(w, r0, r1, r2, r3)
        _put(out[q1], through(w, side.one, 0), through(e, side.one, 0))
        w, e = _at(far[j], 1)
        e = _added(by_rows(e, r0, r1, r2, r3), by_rows(w, e0, e1, e2, e3))
        w, e = _stepped(by_rows(w, r0, r1, r2, r3), e, side.two, s, x)
        _put(out[q2], w, e)
        r0, e0 = _stepped(r0, e0, side.whole, s, x)
        r1, e1 = _stepped(r1, e1, side.whole, s, x)
        r2, e2 = _stepped(r2, e2, side.whole, s, x)
        r3, e3 = _stepped(r3, e3, side.whole, s, x)
        w, e = _at(far[j], 2)
        e = _added(by_rows(e, r0, r1, r2, r3), by_rows(w, e0, e1, e2, e3))
        _put_sum(out[q3], by_rows(w, r0, r1, r2, r3), e)
        k += 1
    fill_rest(out, 3 * k, last, forwards, 0.0)


@njit(cache=True, nogil=True)
def _without_d(codons, left, right):  # type: ignore[no-untyped-def]
    """The sum of left x right, and its slope."""
    values = slopes = (0.0, 0.0, 0.0, 0.0)
    for q in range(3 * codons):
        w, e = _at(left, q)
        x, f = _at(right, q)
        values = _products(w, x, values)
        slopes = _products(e, x, _products(w, f, slopes))
    return _total(values), _total(slopes)


@njit(cache=True, nogil=True)
def _within_codons(symbols, codons, x, t, left, right, forms):  # type: ignore[no-untyped-def]
    """The sum over D forms without a whole codon of left x right, and its slope; x is any residue."""
    value = slope = 0.0
    for k in range(codons):
        q, s = 3 * k, symbols[k]
        r3, e3 = right[q + 3, 0], right[q + 3, 4]
        # What a weight at the codon's beginning is worth.
        worth = grown = 0.0
        for c in range(4):
            worth = fma(forms.ends_two[t, s, c], right[q + 2, c], fma(forms.single[t, c], right[q + 1, c], worth))
            grown = fma(forms.single[t, c], right[q + 1, 4 + c], grown)
            grown = fma(forms.ends_two[t, s, c], right[q + 2, 4 + c], grown)
            grown = fma(forms.ends_two[t, x, c], right[q + 2, c], grown)
        value = fma(left[q, 0], worth, value)
        slope = fma(left[q, 0], grown, fma(left[q, 4], worth, slope))
        has_next = k + 1 < codons
        r = symbols[k + 1] if has_next else s
        for c in range(4):
            # After its first base, and after its second.
            worth = forms.one_three[t, s, c] * r3
            grown = fma(forms.one_three[t, x, c], r3, forms.one_three[t, s, c] * e3)
            worth_two, grown_two = forms.single[t, c] * r3, forms.single[t, c] * e3
            for d in range(4):
                r2, e2 = right[q + 2, d], right[q + 2, 4 + d]
                worth = fma(forms.one_two[t, s, c, d], r2, worth)
                grown = fma(forms.one_two[t, x, c, d], r2, fma(forms.one_two[t, s, c, d], e2, grown))
            if has_next:
                for d in range(4):
                    r1, e1, r2, e2 = right[q + 4, d], right[q + 4, 4 + d], right[q + 5, d], right[q + 5, 4 + d]
                    one_over_two = forms.one_over_two[t, s, r, c, d]
                    worth = fma(one_over_two, r2, fma(forms.one_one[t, s, c, d], r1, worth))
                    grown = fma(one_over_two, e2, fma(forms.one_one[t, s, c, d], e1, grown))
                    grown = fma(forms.one_one[t, x, c, d], r1, grown)
                    grown = fma(forms.one_over_two[t, x, r, c, d] + forms.one_over_two[t, s, x, c, d], r2, grown)
                    worth_two = fma(forms.two_two[t, r, c, d], r2, fma(forms.across[t, c, d], r1, worth_two))
                    grown_two = fma(forms.two_two[t, r, c, d], e2, fma(forms.across[t, c, d], e1, grown_two))
                    grown_two = fma(forms.two_two[t, x, c, d], r2, grown_two)
            value = fma(left[q + 2, c], worth_two, fma(left[q + 1, c], worth, value))
            slope = fma(left[q + 1, c], grown, fma(left[q + 1, 4 + c], worth, slope))
            slope = fma(left[q + 2, c], grown_two, fma(left[q + 2, 4 + c], worth_two, slope))
    return value, slope


@njit(cache=True, nogil=True)
def _cut(weights, none, one, two, fits, s, x, out):  # type: ignore[no-untyped-def]
    """Weights at a codon's border, and one and two bases into the codon s beside it, as `FormTrie` calls these bases.

    out   [2, CUTS]: the weights and their slopes
    one, two  -1 where there is no codon
    """
    out[0, 0], out[1, 0] = weights[none, 0], weights[none, 4]
    if one < 0:
        out[:, 1:] = 0.0
        return
    for c in range(4):
        out[0, 1 + c], out[1, 1 + c] = weights[one, c], weights[one, 4 + c]
    w, e = _at(weights, two)
    for pair in range(16):
        a, b, c, d = fits[s, 0, pair], fits[s, 1, pair], fits[s, 2, pair], fits[s, 3, pair]
        out[0, 5 + pair] = weighted(w, a, b, c, d)
        grown = weighted(e, a, b, c, d)
        grown += weighted(w, fits[x, 0, pair], fits[x, 1, pair], fits[x, 2, pair], fits[x, 3, pair])
        out[1, 5 + pair] = grown


@njit(cache=True, nogil=True)
def _forms(first, last, t, trie, before, after):  # type: ignore[no-untyped-def]
    """The sum over the forms of a node, and its slope."""
    value = slope = 0.0
    for form in range(first, last):
        b, a = trie.cuts[form] >> 8, trie.cuts[form] & 255
        value = fma(trie.weight[t, form], before[0, b] * after[0, a], value)
        slope = fma(trie.weight[t, form], fma(before[1, b], after[0, a], before[0, b] * after[1, a]), slope)
    return value, slope


@njit(cache=True, nogil=True)
def _forms_of_x(first, last, t, trie, before, after):  # type: ignore[no-untyped-def]
    """The sum over the forms of a node whose text has an X."""
    slope = 0.0
    for form in range(first, last):
        cuts = trie.cuts[form]
        slope = fma(trie.weight[t, form], before[0, cuts >> 8] * after[0, cuts & 255], slope)
    return slope


@njit(cache=True, nogil=True)
def _with_codons(symbols, codons, x, t, left, right, forms, trie, before, afters, nodes):  # type: ignore[no-untyped-def]
    """The sum over D forms with whole codons of left x right, and its slope; x is any residue.

    before, afters  [2, CUTS] and [codons + 1, 2, CUTS], scratch: weights on both sides of whole codons
    nodes           [codons + 1], scratch: of the texts with an X in the place of a symbol
    """
    child, first = trie.child, trie.first
    value = slope = 0.0
    for k in range(1, codons + 1):
        q, has_one = 3 * k, k < codons
        s = symbols[k if has_one else 0]
        _cut(right, q, q + 1 if has_one else -1, q + 2, forms.last_open, s, x, afters[k])
    # A form whose first whole codon is the sequence's first would leave no base to V.
    for k in range(1, codons):
        q = 3 * k
        _cut(left, q, q - 1, q - 2, forms.first_open, symbols[k - 1], x, before)
        node, alive, last = 0, 0, k
        while last < codons and (node >= 0 or alive > 0):
            s, texts, alive = symbols[last], alive, 0
            last += 1
            # The texts with an X, and that with an X here; then the text itself.
            for text in range(texts + (1 if node >= 0 else 0)):
                longer = child[nodes[text], s] if text < texts else child[node, x]
                if longer >= 0:
                    slope += _forms_of_x(first[longer], first[longer + 1], t, trie, before, afters[last])
                    nodes[alive] = longer
                    alive += 1
            if node >= 0:
                node = child[node, s]
            if node >= 0:
                more, grown = _forms(first[node], first[node + 1], t, trie, before, afters[last])
                value += more
                slope += grown
    return value, slope


@njit(cache=True, nogil=True)
def ball_rows(  # type: ignore[no-untyped-def]
    rows, symbols, codons, offsets, x, stop, out, groups, v, j, forms, trie
):
    """The sums over all within one mismatch of sequences rows[0] … rows[1] - 1 into `out` [sequences].

    A sequence of no codons has no value: NaN.

    x, stop  the symbols of any residue and of a stop
    """
    places = symbols.shape[1] + 1
    more_forms = has_forms(forms, trie)
    left, right = np.empty((2, 3 * places, BOTH))
    far, before, afters = np.empty((places, 3, BOTH)), np.empty((2, CUTS)), np.empty((places, 2, CUTS))
    texts = np.empty(places, dtype=np.int64)
    for row in range(rows[0], rows[1]):
        pair = np.searchsorted(offsets, row, side="right") - 1
        n, text, made = np.int64(codons[row]), symbols[row], np.int64(-1)
        value = slope = np.nan if n == 0 else 0.0
        for group in range(groups.first[pair], groups.first[pair + 1]):
            t, weight = groups.d[group], groups.weight[group]
            _side(text, n, x, False, groups.j[group], j, texts, far, right)
            if groups.v[group] != made:
                made = groups.v[group]
                _side(text, n, x, True, made, v, texts, far, left)
            more, grown = _without_d(n, left, right)
            value = fma(weight * forms.empty[t], more, value)
            slope = fma(weight * forms.empty[t], grown, slope)
            if more_forms:
                more, grown = _within_codons(text, n, x, t, left, right, forms)
                value += weight * more
                slope += weight * grown
                more, grown = _with_codons(text, n, x, t, left, right, forms, trie, before, afters, texts)
                value += weight * more
                slope += weight * grown
        # Where there is no stop, the sequence itself is one of those with an X.
        for k in range(n):
            if text[k] != stop:
                slope -= value
        # Nothing but rounding makes it negative.
        out[row] = value + (0.0 if slope < 0.0 else slope)
