"""The `baseline` kernel on CPU cores: one byte per base, Algorithm 1 with the V–J grouping.

The scheme that the paper compares against (its reference 9, as sections III to V describe it): a thread takes
one n-nucleotide string, builds every combination letter by letter and compares it letter by letter with every
in vivo sequence of the pair, each padded to 64 bytes.
"""

import numpy as np
from numba import njit

from hpcvdj.kernels.pathways.forms import PADDED, TASK_SLICE


@njit(cache=True, nogil=True, forceinline=True)
def _equal(text, start, form, length):  # type: ignore[no-untyped-def]
    """Whether `text` has `form` at `start`, letter by letter."""
    for k in range(length):
        if text[start + k] != form[k]:
            return False
    return True


@njit(cache=True, nogil=True, forceinline=True)
def _combine(n, m, p, d, d_length, out):  # type: ignore[no-untyped-def]
    """n[:p] + D + n[p:] into `out` (CombineString of Algorithm 1)."""
    for k in range(p):
        out[k] = n[k]
    for k in range(d_length):
        out[p + k] = d[k]
    for k in range(p, m):
        out[d_length + k] = n[k]


@njit(cache=True, nogil=True)
def _count_task(text, length, n, m, v, v_length, d, d_length, has_d, j, j_length, middle):  # type: ignore[no-untyped-def]
    """Pathways of one in vivo sequence with one n-nucleotide string."""
    count = 0
    for i in range(len(v_length)):
        a = v_length[i]
        if a > length or not _equal(text, 0, v[i], a):
            break
        for k in range(len(d_length)):
            taken = m + d_length[k]
            if a + taken > length:
                continue
            for p in range(m, -1 if has_d else m - 1, -1):
                _combine(n, m, p, d[k], d_length[k], middle)
                if not _equal(text, a, middle, taken):
                    continue
                for l in range(len(j_length)):  # noqa: E741
                    if a + taken + j_length[l] == length and _equal(text, a + taken, j[l], j_length[l]):
                        count += 1
    return count


@njit(cache=True, nogil=True)
def count_tasks(  # type: ignore[no-untyped-def]
    part, in_vivo, lengths, v, v_length, d, d_length, has_d, j, j_length, m, first, last, out
):
    """Pathways of each in vivo sequence with each slice of the strings first … last-1, into uint64 [slices, sequences].

    part  the first of the numbers of `out` that are computed, and the one after the last
    """
    sequences = len(lengths)
    for item in range(part[0], part[1]):
        strings, row = item // sequences, item % sequences
        n = np.empty(PADDED, dtype=np.uint8)
        middle = np.empty(2 * PADDED, dtype=np.uint8)
        count = np.uint64(0)
        for task in range(first + strings * TASK_SLICE, min(last, first + (strings + 1) * TASK_SLICE)):
            for k in range(m):
                n[k] = (task >> (2 * k)) & 3
            count += np.uint64(
                _count_task(
                    in_vivo[row], np.int64(lengths[row]), n, m,
                    v, v_length, d, d_length, has_d, j, j_length, middle,
                )
            )  # fmt: skip
        out[strings, row] = count
