"""The `bitwise` kernel on CPU cores: the paper's Algorithm 2 with its packing, task generator and early exits.

A thread of the paper is an iteration over one n-nucleotide string here.  Sequences are compared as 128-bit
values where the paper's GPU compares a byte at a time: the same bits, the same outcomes.
"""

import numpy as np
from numba import njit

from hpcvdj.kernels.pathways.forms import TASK_SLICE


@njit(cache=True, nogil=True, forceinline=True)
def _left(high, low, bases):  # type: ignore[no-untyped-def]
    """(high, low) shifted left by `bases` bases, 0 <= bases < 64: the paper's alignment."""
    bits = 2 * bases
    if bits < 64:
        # In two steps, as a shift by 64 is not defined.
        return (high << np.uint64(bits)) | (low >> np.uint64(1) >> np.uint64(63 - bits)), low << np.uint64(bits)
    return low << np.uint64(bits - 64), np.uint64(0)


@njit(cache=True, nogil=True, forceinline=True)
def _right(high, low, bases):  # type: ignore[no-untyped-def]
    """(high, low) shifted right by `bases` bases, 0 <= bases < 64."""
    bits = 2 * bases
    if bits < 64:
        return high >> np.uint64(bits), (low >> np.uint64(bits)) | (high << np.uint64(1) << np.uint64(63 - bits))
    return np.uint64(0), high >> np.uint64(bits - 64)


@njit(cache=True, nogil=True, forceinline=True)
def _starts_with(high, low, other_high, other_low, bases):  # type: ignore[no-untyped-def]
    """Whether two packed sequences agree in their first `bases` bases."""
    if bases == 0:
        return True
    if bases <= 32:
        return ((high ^ other_high) >> np.uint64(64 - 2 * bases)) == 0
    return high == other_high and ((low ^ other_low) >> np.uint64(128 - 2 * bases)) == 0


@njit(cache=True, nogil=True, forceinline=True)
def _n_nucleotides(task, m):  # type: ignore[no-untyped-def]
    """The packed n-nucleotide string of a task (Algorithm 3 as meant: base k is base-4 digit k of the task)."""
    packed = np.uint64(0)
    for k in range(m):
        digit = np.uint64((task >> (2 * k)) & 3)
        packed |= digit << np.uint64(62 - 2 * k)
    return packed


@njit(cache=True, nogil=True)
def _count_j(rest_high, rest_low, rest, j, j_length):  # type: ignore[no-untyped-def]
    """J forms equal to what is left of the in vivo sequence, `rest` bases (Algorithm 2, loop 5)."""
    count = 0
    for k in range(len(j_length)):
        if j_length[k] == rest and _starts_with(rest_high, rest_low, j[k, 0], j[k, 1], rest):
            count += 1
    return count


@njit(cache=True, nogil=True)
def _count_middles(high, low, rest, n, m, d, d_length, has_d, j, j_length):  # type: ignore[no-untyped-def]
    """Pathways whose nDn' and J make up the `rest` bases of (high, low) (Algorithm 2, loops 3 to 5)."""
    count = 0
    for k in range(len(d_length)):
        taken = m + d_length[k]
        if taken > rest:
            continue
        for p in range(m, -1 if has_d else m - 1, -1):
            # n[:p] + D + n[p:]
            head = (n >> np.uint64(64 - 2 * p)) << np.uint64(64 - 2 * p) if p else np.uint64(0)
            middle_high, middle_low = _right(d[k, 0], d[k, 1], p)
            tail_high, tail_low = _right(n << np.uint64(2 * p), np.uint64(0), p + d_length[k])
            middle_high, middle_low = middle_high | head | tail_high, middle_low | tail_low
            if not _starts_with(high, low, middle_high, middle_low, taken):
                continue
            rest_high, rest_low = _left(high, low, taken)
            count += _count_j(rest_high, rest_low, rest - taken, j, j_length)
    return count


@njit(cache=True, nogil=True)
def _count_task(high, low, length, n, m, v, v_length, d, d_length, has_d, j, j_length):  # type: ignore[no-untyped-def]
    """Pathways of one in vivo sequence with one n-nucleotide string (Algorithm 2, loops 2 to 5)."""
    count = 0
    for k in range(len(v_length)):
        a = v_length[k]
        # V forms are nested prefixes in growing length: after a mismatch, every later one mismatches too.
        if a > length or not _starts_with(high, low, v[k, 0], v[k, 1], a):
            break
        rest_high, rest_low = _left(high, low, a)
        count += _count_middles(rest_high, rest_low, length - a, n, m, d, d_length, has_d, j, j_length)
    return count


@njit(cache=True, nogil=True)
def count_tasks(  # type: ignore[no-untyped-def]
    part, packed, lengths, v, v_length, d, d_length, has_d, j, j_length, m, first, last, out
):
    """Pathways of each in vivo sequence with each slice of the strings first … last-1, into uint64 [slices, sequences].

    part  the first of the numbers of `out` that are computed, and the one after the last
    """
    sequences = len(lengths)
    for item in range(part[0], part[1]):
        strings, row = item // sequences, item % sequences
        count = np.uint64(0)
        for task in range(first + strings * TASK_SLICE, min(last, first + (strings + 1) * TASK_SLICE)):
            n = _n_nucleotides(task, m)
            count += np.uint64(
                _count_task(
                    packed[row, 0], packed[row, 1], np.int64(lengths[row]), n, m,
                    v, v_length, d, d_length, has_d, j, j_length,
                )
            )  # fmt: skip
        out[strings, row] = count
