"""Generation probabilities of nucleotide sequences on CPU cores.

A side of the junction is walked once: as long as the bases follow the tree, `ended` has the weight of everything that
ends there.  From the first base that leaves the tree, only insertions go on.  All that began within the tree's text
have the same last bases, so two products carry them: `stepped` for those that began before the last node, `begun` for
those that begin there.  D forms are read from the place where Left ends: those of up to four bases are one row of a
table, longer ones are walked, where the first five bases begin one.
"""

from itertools import chain
from typing import Any

import numpy as np
from numba import njit

from hpcvdj.kernels.pgen.tables import ROW_BASES, ROWS, Tables
from hpcvdj.kernels.text import base_at

CHUNK = 512
"""Sequences that a thread takes at a time."""


@njit(cache=True, nogil=True, forceinline=True)
def base_codes(packed, length, codes):  # type: ignore[no-untyped-def]
    """The bases of a packed sequence, and zeros for the bases that a row of D forms reads beyond its end."""
    for k in range(length):
        codes[k] = base_at(packed, k)
    codes[length : length + ROW_BASES] = 0


@njit(cache=True, nogil=True, forceinline=True)
def _side(codes, length, forwards, root, child, alone, ended, beyond, lengths, step, first, out):  # type: ignore[no-untyped-def]
    """The weight of all forms and insertions that end after q bases, q = 1 … length; for how many q there is any.

    Forwards they go into out[q]; else the codes are read from the end, and they go into out[length - q].
    """
    node, last = root, root
    q: Any = 0
    while q < length:
        base = np.int64(codes[q if forwards else length - 1 - q])
        following = child[node, base]
        if following < 0:
            break
        node, last = following, base
        q += 1
        out[q if forwards else length - q] = ended[node]
    if q == 0 or q == length:
        return q
    base = np.int64(codes[q if forwards else length - 1 - q])
    stepped, begun = step[last, base], first[base] * alone[node]
    for lag in range(1, min(length - q, len(lengths) - 1) + 1):
        q += 1
        out[q if forwards else length - q] = stepped * beyond[node, lag] + begun * lengths[lag]
        if q < length:
            last, base = base, np.int64(codes[q if forwards else length - 1 - q])
            stepped *= step[last, base]
            begun *= step[last, base]
    return q


@njit(cache=True, nogil=True)
def _middle(codes, length, t, left, most, right, child, weights, rows, longer):  # type: ignore[no-untyped-def]
    """The sum over q and e of left[q] x the D forms, of table t, equal to the bases q … e-1 x right[e].

    right  zero from `length` on, for as many places as a row has
    """
    total = 0.0
    empty = weights[t, 0]
    if len(child) == 1:
        # Without D genes.
        for q in range(1, most + 1):
            total += left[q] * right[q]
        return total * empty
    code = np.int64(0)
    for k in range(1, ROW_BASES + 1):
        code = code << 2 | int(codes[k])
    for q in range(1, most + 1):
        code = (code << 2 | np.int64(codes[q + ROW_BASES])) & (4 * ROWS - 1)
        part = empty * right[q]
        for k in range(ROW_BASES):
            part += rows[t, code >> 2, k] * right[q + 1 + k]
        node = longer[code]
        e = q + ROW_BASES + 1
        while node >= 0:
            part += weights[t, node] * right[e]
            if e >= length - 1:
                break
            node = child[node, codes[e]]
            e += 1
        total += left[q] * part
    return total


@njit(cache=True, nogil=True)
def nucleotide_rows(  # type: ignore[no-untyped-def]
    part, packed, lengths, offsets, longest, out, first_group, group_v, group_j, group_d, group_weight,
    v_child, v_alone, v_ended, v_beyond, j_child, j_alone, j_ended, j_beyond,
    vd_lengths, vd_step, vd_first, dj_lengths, dj_step, dj_first, d_child, weights, rows, longer,
):  # fmt: skip
    """The probabilities of the sequences of a part (first, last), into `out` float64 [sequences]."""
    codes = np.zeros(longest + ROW_BASES, dtype=np.uint8)
    left, right = np.empty(longest + 1), np.empty(longest + 1 + ROW_BASES)
    pair = np.searchsorted(offsets, part[0], side="right") - 1
    for row in range(part[0], part[1]):
        while offsets[pair + 1] <= row:
            pair += 1
        length = np.int64(lengths[row])
        base_codes(packed[row], length, codes)
        total = 0.0
        most, root = 0, np.int64(-1)
        for group in range(first_group[pair], first_group[pair + 1]):
            if j_child[group_j[group], codes[length - 1]] < 0:
                continue
            right[: length + 1 + ROW_BASES] = 0.0
            _side(
                codes, length, False, group_j[group], j_child, j_alone, j_ended, j_beyond,
                dj_lengths, dj_step, dj_first, right,
            )  # fmt: skip
            # Without an insertion before J, most J alleles have no form that fits.
            if len(dj_lengths) == 1 and not right[1:length].any():
                continue
            if group_v[group] != root:
                root = group_v[group]
                most = _side(
                    codes, length, True, root, v_child, v_alone, v_ended, v_beyond,
                    vd_lengths, vd_step, vd_first, left,
                )  # fmt: skip
            total += group_weight[group] * _middle(
                codes, length, group_d[group], left, min(most, length - 1), right, d_child, weights, rows, longer
            )
        out[row] = total


def arguments(tables: Tables) -> tuple[Any, ...]:
    """The tables as `nucleotide_rows` takes them: one by one, as named tuples were not shown to be as fast there."""
    sides = (side[1:] for side in (tables.v, tables.j))
    return (*tables.groups, *chain(*sides), *tables.vd, *tables.dj, *tables.forms)
