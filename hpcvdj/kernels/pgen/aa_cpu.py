"""Generation probabilities of amino-acid sequences on CPU cores.

The sum runs over all nucleotide sequences of the given codons at once.  `hpcvdj.kernels.pgen.codons` says what the four
components of a weight mean where a codon is cut.  Weights that begin at V end after q bases; those that begin at J are
made from the end, with mirrored codons, and mean the same components once they are turned round.
"""

from itertools import chain
from typing import Any

import numpy as np
from numba import njit, prange

from hpcvdj.kernels.pgen.codons import Alphabet, CodonForms
from hpcvdj.kernels.pgen.symbol_tries import NO_WEIGHT, NOT_MADE, Ambiguous, SymbolTries
from hpcvdj.kernels.pgen.tables import Tables

CHUNK = 64
"""Sequences that a thread takes at a time."""


# Rows of arrays are not taken out as arrays below: numba counts references to each.


@njit(cache=True, nogil=True)
def _side(  # type: ignore[no-untyped-def]
    symbols, codons, forwards, row, child, after, ended, beyond, one, two, whole, product, scratch, out
):
    """Segments with the insertions behind them, into out [3 codons + 1, 4]; whether there is any.

    row      in `child`, of the tree's root
    product  [2, 4, 4], scratch: of the steps through the codons behind the leaf
    scratch  [3, 4]
    """
    last = 3 * codons
    k = 0
    out[0 if forwards else last] = 0.0
    while k < codons and row >= 0:
        node = child[row, symbols[k if forwards else codons - 1 - k]]
        q = 3 * k
        if node < 0:
            for e in range(q + 1, last + 1):
                out[e if forwards else last - e] = 0.0 if node == NO_WEIGHT else np.nan
            return k > 0 or node == NOT_MADE
        q1, q2, q3 = (q + 1, q + 2, q + 3) if forwards else (last - q - 1, last - q - 2, last - q - 3)
        for c in range(4):
            out[q1, c] = ended[node, c]
            out[q2, c] = ended[node, 4 + c]
        out[q3, 0] = ended[node, 8]
        row = after[node]
        k += 1
    leaf, begun = ~row, k
    while k < codons:
        s, j, q = symbols[k if forwards else codons - 1 - k], k - begun, 3 * k
        if j == beyond.shape[1]:
            for e in range(q + 1, last + 1):
                out[e if forwards else last - e] = 0.0
            break
        q1, q2, q3 = (q + 1, q + 2, q + 3) if forwards else (last - q - 1, last - q - 2, last - q - 3)
        old, new = k % 2, 1 - k % 2
        if j == 0:
            for c in range(4):
                for x in range(4):
                    product[new, x, c] = whole[s, x, c]
                scratch[0, c], scratch[1, c] = beyond[leaf, 0, 0, c], beyond[leaf, 0, 1, c]
        else:
            for x in range(4):
                for c in range(4):
                    product[new, x, c] = (
                        product[old, x, 0] * whole[s, 0, c] + product[old, x, 1] * whole[s, 1, c]
                        + product[old, x, 2] * whole[s, 2, c] + product[old, x, 3] * whole[s, 3, c]
                    )  # fmt: skip
            for part in range(2):
                for c in range(4):
                    scratch[part, c] = (
                        beyond[leaf, j, part, 0] * product[old, 0, c] + beyond[leaf, j, part, 1] * product[old, 1, c]
                        + beyond[leaf, j, part, 2] * product[old, 2, c] + beyond[leaf, j, part, 3] * product[old, 3, c]
                    )  # fmt: skip
        total = 0.0
        for c in range(4):
            out[q1, c] = (
                scratch[0, 0] * one[0, c] + scratch[0, 1] * one[1, c]
                + scratch[0, 2] * one[2, c] + scratch[0, 3] * one[3, c]
            )  # fmt: skip
            out[q2, c] = (
                scratch[1, 0] * two[s, 0, c] + scratch[1, 1] * two[s, 1, c]
                + scratch[1, 2] * two[s, 2, c] + scratch[1, 3] * two[s, 3, c]
            )  # fmt: skip
            total += beyond[leaf, j, 2, c] * (
                (product[new, c, 0] + product[new, c, 1]) + (product[new, c, 2] + product[new, c, 3])
            )
        out[q3, 0] = total
        k += 1
    return True


@njit(cache=True, nogil=True, inline="always")
def _ends(chance, t, place, where, after_none, after_one, after_two):  # type: ignore[no-untyped-def]
    """Forms that begin at a place and end after a whole codon, or one or two bases later."""
    return (
        chance[t, place, where] * after_none
        + chance[t, place, where + 1] * after_one
        + chance[t, place, where + 2] * after_two
    )


@njit(cache=True, nogil=True)
def _middle(  # type: ignore[no-untyped-def]
    symbols, codons, t, left, right, fits, empty, single, double, ends_two, one_two, one_three, one_one, two_two,
    one_over_two, code, begin, end, found, of_symbol, chance,
):  # fmt: skip
    """The sum over D forms, of table t, of left x form x right."""
    total = 0.0
    if len(code) == 0:
        # Without D genes.
        for q in range(1, 3 * codons):
            for c in range(1 if q % 3 == 0 else 4):
                total += left[q, c] * right[q, c]
        return total * empty[t]
    for k in range(codons):
        q, s = 3 * k, symbols[k]
        l0, r3 = left[q, 0], right[q + 3, 0]
        part = empty[t] * l0 * right[q, 0]
        for c in range(4):
            l1, l2, r1, r2 = left[q + 1, c], left[q + 2, c], right[q + 1, c], right[q + 2, c]
            part += empty[t] * (l1 * r1 + l2 * r2)
            part += l0 * (single[t, c] * r1 + ends_two[t, s, c] * r2) + r3 * (
                l1 * one_three[t, s, c] + l2 * single[t, c]
            )
            inner = 0.0
            for d in range(4):
                inner += one_two[t, s, c, d] * right[q + 2, d]
            part += l1 * inner
        if k + 1 < codons:
            r = symbols[k + 1]
            for c in range(4):
                after_one = after_two = 0.0
                for d in range(4):
                    r1, r2 = right[q + 4, d], right[q + 5, d]
                    after_one += one_one[t, s, c, d] * r1 + one_over_two[t, s, r, c, d] * r2
                    after_two += double[t, c, d] * r1 + two_two[t, r, c, d] * r2
                part += left[q + 1, c] * after_one + left[q + 2, c] * after_two
        total += part
        # Forms whose first whole codon is this one.
        for which in range(of_symbol[s], of_symbol[s + 1]):
            place = found[which]
            before_one = before_two = 0.0
            if k > 0 and place > begin[place]:
                before_one = left[q - 1, code[place - 1]]
                if place - 1 > begin[place]:
                    for c in range(4):
                        before_two += left[q - 2, c] * fits[symbols[k - 1], 4 * c + code[place - 2], code[place - 1]]
            if l0 == 0 and before_one == 0 and before_two == 0:
                continue
            last, stop, part = k, place + 3, 0.0
            while True:
                after_none, after_one, after_two = right[3 * last + 3, 0], 0.0, 0.0
                if last + 1 < codons and stop < end[place]:
                    after_one = right[3 * last + 4, code[stop]]
                    if stop + 1 < end[place]:
                        pair = 4 * code[stop] + code[stop + 1]
                        for c in range(4):
                            after_two += fits[symbols[last + 1], pair, c] * right[3 * last + 5, c]
                where = stop - begin[place]
                form = l0 * _ends(chance, t, place, where, after_none, after_one, after_two)
                if before_one != 0:
                    form += before_one * _ends(chance, t, place - 1, where, after_none, after_one, after_two)
                if before_two != 0:
                    form += before_two * _ends(chance, t, place - 2, where, after_none, after_one, after_two)
                part += form
                last += 1
                if last >= codons or stop + 2 >= end[place]:
                    break
                if fits[symbols[last], 4 * code[stop] + code[stop + 1], code[stop + 2]] == 0.0:
                    break
                stop += 3
            total += part
    return total


@njit(cache=True, nogil=True)
def _pgen(  # type: ignore[no-untyped-def]
    symbols, codons, first_group, last_group, left, right, product, scratch, group_v, group_j, group_d,
    v_child, v_after, v_ended, v_beyond, v_one, v_two, v_whole,
    j_child, j_after, j_ended, j_beyond, j_one, j_two, j_whole, *forms,
):  # fmt: skip
    """The probability of one sequence, a sum over groups."""
    total, made = 0.0, np.int64(-1)
    for group in range(first_group, last_group):
        if not _side(
            symbols, codons, False, group_j[group], j_child, j_after, j_ended, j_beyond, j_one, j_two, j_whole,
            product, scratch, right,
        ):  # fmt: skip
            continue
        if group_v[group] != made:
            made = group_v[group]
            if not _side(
                symbols, codons, True, made, v_child, v_after, v_ended, v_beyond, v_one, v_two, v_whole,
                product, scratch, left,
            ):  # fmt: skip
                # Nor is there any in another group with this V.
                continue
        total += _middle(symbols, codons, group_d[group], left, right, *forms)
    return total


@njit(cache=True, nogil=True, parallel=True)
def amino_acid_rows(symbols, codons, offsets, first, last, any_residue, stop, out, first_group, *tables):  # type: ignore[no-untyped-def]
    """The probabilities of sequences first … last-1 of `symbols` [sequences, codons] into `out` [last - first].

    A sequence of no codons has no value: NaN.

    any_residue  the symbol of any residue, for the sums over sequences with up to one mismatch; else -1
    stop         the symbol of a stop
    """
    places = 3 * symbols.shape[1] + 1
    for chunk in prange((last - first + CHUNK - 1) // CHUNK):
        left, right = np.empty((2, places, 4))
        product, scratch = np.empty((2, 4, 4)), np.empty((2, 4))
        changed = np.empty(symbols.shape[1], dtype=symbols.dtype)
        start = first + chunk * CHUNK
        pair = np.searchsorted(offsets, start, side="right") - 1
        for row in range(start, min(last, start + CHUNK)):
            while offsets[pair + 1] <= row:
                pair += 1
            n = np.int64(codons[row])
            if n == 0:
                out[row - first] = np.nan
                continue
            begin, end = first_group[pair], first_group[pair + 1]
            changed[:n] = symbols[row, :n]
            own = total = _pgen(changed, n, begin, end, left, right, product, scratch, *tables)
            if any_residue >= 0:
                for k in range(n):
                    symbol = changed[k]
                    changed[k] = any_residue
                    neighbours = _pgen(changed, n, begin, end, left, right, product, scratch, *tables)
                    changed[k] = symbol
                    if symbol != stop:
                        # The sequence itself is one of them.
                        neighbours -= own
                    # Nothing but rounding makes it negative.
                    total += 0.0 if neighbours < 0.0 else neighbours
            out[row - first] = total


def arguments(tables: Tables, alphabet: Alphabet, ambiguous: Ambiguous) -> tuple[Any, ...]:
    """The tables as `amino_acid_rows` takes them."""
    sides = SymbolTries.of(tables, alphabet, ambiguous)
    arrays = (
        (own.child, own.after, own.ended, own.beyond, own.steps.one, own.steps.two, own.steps.whole) for own in sides
    )
    forms = CodonForms.of(alphabet.codons.astype(np.float64), tables)
    return (
        tables.first_group, sides[0].row_of(tables.group_v), sides[1].row_of(tables.group_j), tables.group_d,
        # einsum leaves the order of axes to itself; numba would compile each layout, for half a minute.
        *map(np.ascontiguousarray, (*chain(*arrays), sides[0].steps.fits, *vars(forms).values())),
    )  # fmt: skip
