"""Generation probabilities of amino-acid sequences on CPU cores.

The sum runs over all nucleotide sequences of the given codons at once.  `CodonSteps` and `CodonForms` say what the four
components of a weight mean where a codon is cut.  Weights that begin at V end after q bases; those that begin at J are
made from the end, with mirrored codons, and mean the same components once they are turned round.
"""

from itertools import chain
from typing import Any

import numpy as np
from numba import njit, prange

from hpcvdj.kernels.pgen.codons import Alphabet, CodonForms, CodonSteps, weights_of
from hpcvdj.kernels.pgen.tables import Tables

CHUNK = 64
"""Sequences that a thread takes at a time."""


@njit(cache=True, nogil=True)
def _segments(symbols, codons, forwards, root, child, alone, fits, out, paths, weights):  # type: ignore[no-untyped-def]
    """The weight of segments alone that end after q bases, added to out[q]; the largest q with a weight.

    paths    int32 [2, most paths, 3]: scratch; node, and the first two bases of the codon
    weights  [2, most paths]: scratch; of the codons that are complete
    """
    paths[0, 0, 0], weights[0, 0] = root, 1.0
    active, most = 1, 0
    for q in range(3 * codons):
        symbol = symbols[q // 3 if forwards else codons - 1 - q // 3]
        now, made, phase, weighs = q % 2, 0, q % 3, False
        for k in range(active):
            node, c0, c1, weight = paths[now, k, 0], paths[now, k, 1], paths[now, k, 2], weights[now, k]
            for base in range(4):
                following = child[node, base]
                if following < 0:
                    continue
                chance, longer = alone[following], weight
                if phase == 0:
                    c0 = base
                    out[q + 1, base] += weight * chance
                elif phase == 1:
                    c1 = base
                    pair = 4 * c0 + base
                    if (fits[symbol, pair, 0] == 0 and fits[symbol, pair, 1] == 0
                            and fits[symbol, pair, 2] == 0 and fits[symbol, pair, 3] == 0):  # fmt: skip
                        continue
                    for c in range(4):
                        out[q + 1, c] += weight * fits[symbol, pair, c] * chance
                else:
                    fit = fits[symbol, 4 * c0 + c1, base]
                    # Two mismatches are too many.
                    if fit == 0 or (fit.real == 0 and weight.real == 0):
                        continue
                    longer = weight * fit
                    out[q + 1, 0] += longer * chance
                weighs |= chance > 0.0
                paths[1 - now, made, 0], paths[1 - now, made, 1], paths[1 - now, made, 2] = following, c0, c1
                weights[1 - now, made] = longer
                made += 1
        if made == 0:
            break
        active = made
        if weighs:
            most = q + 1
    return most


# Rows of arrays are not taken out as arrays below: numba counts references to each.


@njit(cache=True, nogil=True, inline="always")
def _through(w0, w1, w2, w3, table, s, c):  # type: ignore[no-untyped-def]
    """Component c of a weight after the step of symbol s."""
    return w0 * table[s, 0, c] + w1 * table[s, 1, c] + w2 * table[s, 2, c] + w3 * table[s, 3, c]


@njit(cache=True, nogil=True)
def _insertions(  # type: ignore[no-untyped-def]
    symbols, codons, forwards, alone, most, lengths, first,
    one, two, whole, first_one, first_two, first_whole, rest_two, rest_whole, last, out,
):  # fmt: skip
    """Segments (`alone`, up to `most` bases) with an insertion after them, into out [3 codons + 1, 4].

    last  float64 [.., 4], scratch: last[p] is the weight by last base of an insertion that began after p bases and has
          come to the end of a codon, without the probability of its length
    """
    lags = len(lengths)
    for k in range(codons):
        s = symbols[k if forwards else codons - 1 - k]
        q = 3 * k
        # Insertions that began before this codon: added up over p first, stepped once.
        begin, stop = max(1, q + 2 - lags), min(q - 1, most) + 1
        if begin < stop:
            a = b = c = d = e = f = g = h = 0.0
            for p in range(begin, stop):
                weight = lengths[q + 1 - p]
                longer = lengths[q + 2 - p] if q + 2 - p < lags else 0.0
                a += weight * last[p, 0]
                b += weight * last[p, 1]
                c += weight * last[p, 2]
                d += weight * last[p, 3]
                e += longer * last[p, 0]
                f += longer * last[p, 1]
                g += longer * last[p, 2]
                h += longer * last[p, 3]
            for x in range(4):
                out[q + 1, x] += a * one[0, x] + b * one[1, x] + c * one[2, x] + d * one[3, x]
                out[q + 2, x] += _through(e, f, g, h, two, s, x)
            total = 0.0
            for p in range(max(begin, q + 4 - lags), stop):
                a, b, c, d = last[p, 0], last[p, 1], last[p, 2], last[p, 3]
                part = 0.0
                for x in range(4):
                    last[p, x] = _through(a, b, c, d, whole, s, x)
                    part += last[p, x]
                total += lengths[q + 3 - p] * part
            out[q + 3, 0] += total
        if 0 < q <= most:
            weight = alone[q, 0]
            out[q, 0] += lengths[0] * weight
            for x in range(4):
                last[q, x] = weight * first_whole[s, x]
                if lags > 1:
                    out[q + 1, x] += lengths[1] * weight * first_one[x]
                if lags > 2:
                    out[q + 2, x] += lengths[2] * weight * first_two[s, x]
                if lags > 3:
                    out[q + 3, 0] += lengths[3] * last[q, x]
        if q + 1 <= most:
            a, b, c, d = alone[q + 1, 0], alone[q + 1, 1], alone[q + 1, 2], alone[q + 1, 3]
            for x in range(4):
                out[q + 1, x] += lengths[0] * alone[q + 1, x]
                last[q + 1, x] = _through(a, b, c, d, rest_whole, s, x)
                if lags > 1:
                    out[q + 2, x] += lengths[1] * _through(a, b, c, d, rest_two, s, x)
                if lags > 2:
                    out[q + 3, 0] += lengths[2] * last[q + 1, x]
        if q + 2 <= most:
            for x in range(4):
                out[q + 2, x] += lengths[0] * alone[q + 2, x]
                last[q + 2, x] = alone[q + 2, x] * first[x]
                if lags > 1:
                    out[q + 3, 0] += lengths[1] * last[q + 2, x]


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
    zero = fits[0, 0, 0] * 0.0
    total = zero
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
            inner = zero
            for d in range(4):
                inner += one_two[t, s, c, d] * right[q + 2, d]
            part += l1 * inner
        if k + 1 < codons:
            r = symbols[k + 1]
            for c in range(4):
                after_one = after_two = zero
                for d in range(4):
                    r1, r2 = right[q + 4, d], right[q + 5, d]
                    after_one += one_one[t, s, c, d] * r1 + one_over_two[t, s, r, c, d] * r2
                    after_two += double[t, c, d] * r1 + two_two[t, r, c, d] * r2
                part += left[q + 1, c] * after_one + left[q + 2, c] * after_two
        total += part
        # Forms whose first whole codon is this one.
        for which in range(of_symbol[s], of_symbol[s + 1]):
            place = found[which]
            weight = fits[s, 4 * code[place] + code[place + 1], code[place + 2]]
            before_one = before_two = zero
            if k > 0 and place > begin[place]:
                before_one = left[q - 1, code[place - 1]]
                if place - 1 > begin[place]:
                    for c in range(4):
                        before_two += left[q - 2, c] * fits[symbols[k - 1], 4 * c + code[place - 2], code[place - 1]]
            if l0 == 0 and before_one == 0 and before_two == 0:
                continue
            last, stop, part = k, place + 3, zero
            while True:
                after_none, after_one, after_two = right[3 * last + 3, 0], zero, zero
                if last + 1 < codons and stop < end[place]:
                    after_one = right[3 * last + 4, code[stop]]
                    if stop + 1 < end[place]:
                        pair = 4 * code[stop] + code[stop + 1]
                        for c in range(4):
                            after_two += fits[symbols[last + 1], pair, c] * right[3 * last + 5, c]
                where = stop - begin[place]
                if weight.real == 0:
                    # After a mismatch all the rest must fit: only real parts count.
                    part += weight * (
                        l0.real * _ends(chance, t, place, where, after_none.real, after_one.real, after_two.real)
                        + before_one.real
                        * _ends(chance, t, max(place - 1, 0), where, after_none.real, after_one.real, after_two.real)
                        + before_two.real
                        * _ends(chance, t, max(place - 2, 0), where, after_none.real, after_one.real, after_two.real)
                    )
                else:
                    form = l0 * _ends(chance, t, place, where, after_none, after_one, after_two)
                    if before_one != 0:
                        form += before_one * _ends(chance, t, place - 1, where, after_none, after_one, after_two)
                    if before_two != 0:
                        form += before_two * _ends(chance, t, place - 2, where, after_none, after_one, after_two)
                    part += weight * form
                last += 1
                if last >= codons or stop + 2 >= end[place]:
                    break
                fit = fits[symbols[last], 4 * code[stop] + code[stop + 1], code[stop + 2]]
                if fit == 0 or (fit.real == 0 and weight.real == 0):
                    break
                weight *= fit
                stop += 3
            total += part
    return total


@njit(cache=True, nogil=True, parallel=True)
def amino_acid_rows(  # type: ignore[no-untyped-def]
    symbols, codons, offsets, first, last, out, most_paths, first_group, group_v, group_j, group_d,
    v_child, v_alone, j_child, j_alone, vd_lengths, vd_first, dj_lengths, dj_first,
    v_one, v_two, v_whole, v_first_one, v_first_two, v_first_whole, v_rest_two, v_rest_whole, v_fits,
    j_one, j_two, j_whole, j_first_one, j_first_two, j_first_whole, j_rest_two, j_rest_whole, j_fits,
    empty, single, double, ends_two, one_two, one_three, one_one, two_two, one_over_two,
    code, begin, end, found, of_symbol, chance,
):  # fmt: skip
    """The probabilities of sequences first … last-1 of `symbols` [sequences, codons] into `out` [last - first].

    A sequence of no codons has no value: NaN.

    most_paths  of alleles of V or of J
    """
    chunks = (last - first + CHUNK - 1) // CHUNK
    places = 3 * symbols.shape[1] + 4
    for chunk in prange(chunks):
        alone, made, left, right, scratch = np.empty((5, places, 4), dtype=v_fits.dtype)
        paths, weights = np.empty((2, most_paths, 3), dtype=np.int32), np.empty((2, most_paths), dtype=v_fits.dtype)
        start = first + chunk * CHUNK
        pair = np.searchsorted(offsets, start, side="right") - 1
        for row in range(start, min(last, start + CHUNK)):
            while offsets[pair + 1] <= row:
                pair += 1
            n = np.int64(codons[row])
            if n == 0:
                out[row - first] = np.nan
                continue
            used, own = 3 * n + 1, symbols[row]
            total, root = v_fits[0, 0, 0] * 0.0, np.int64(-1)
            for group in range(first_group[pair], first_group[pair + 1]):
                alone[:used] = 0.0
                most = _segments(own, n, False, group_j[group], j_child, j_alone, j_fits, alone, paths, weights)
                if most == 0:
                    continue
                if len(dj_lengths) > 1:
                    made[:used] = 0.0
                    _insertions(
                        own, n, False, alone, most, dj_lengths, dj_first, j_one, j_two, j_whole, j_first_one,
                        j_first_two, j_first_whole, j_rest_two, j_rest_whole, scratch, made,
                    )  # fmt: skip
                    for e in range(used):
                        right[e] = made[used - 1 - e]
                else:
                    for e in range(used):
                        right[e] = alone[used - 1 - e]
                if group_v[group] != root:
                    root = group_v[group]
                    alone[:used] = 0.0
                    left[:used] = 0.0
                    most = _segments(own, n, True, root, v_child, v_alone, v_fits, alone, paths, weights)
                    if most == 0:
                        # No V form fits; nor does it in another group with this V.
                        continue
                    _insertions(
                        own, n, True, alone, most, vd_lengths, vd_first, v_one, v_two, v_whole, v_first_one,
                        v_first_two, v_first_whole, v_rest_two, v_rest_whole, scratch, left,
                    )  # fmt: skip
                total += _middle(
                    own, n, group_d[group], left, right, v_fits, empty, single, double, ends_two, one_two, one_three,
                    one_one, two_two, one_over_two, code, begin, end, found, of_symbol, chance,
                )  # fmt: skip
            out[row - first] = total


def arguments(tables: Tables, alphabet: Alphabet, mismatches: int = 0) -> tuple[Any, ...]:
    """The tables as `amino_acid_rows` takes them."""
    codons = weights_of(alphabet, mismatches)
    forms = CodonForms.of(codons, tables)
    steps = CodonSteps.of(codons, tables.vd, mirrored=False), CodonSteps.of(codons, tables.dj, mirrored=True)
    return (
        max(1, len(tables.model.v), len(tables.model.j)),
        tables.first_group, tables.group_v, tables.group_j, tables.group_d,
        tables.v.child, tables.v.alone, tables.j.child, tables.j.alone,
        tables.vd.lengths, tables.vd.first, tables.dj.lengths, tables.dj.first,
        # einsum leaves the order of axes to itself; numba would compile each layout, for half a minute.
        *map(np.ascontiguousarray, chain(*(vars(own).values() for own in (*steps, forms)))),
    )  # fmt: skip
