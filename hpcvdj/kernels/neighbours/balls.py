"""Balls: the sequences within one exchange of others; and where a sequence is among sorted ones."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Letters = NDArray[np.uint8]
Places = NDArray[np.int32]


def balls(
    letters: Letters, lengths: NDArray[np.int64], residues: Letters, mismatches: int
) -> tuple[Letters, NDArray[np.int64]]:
    """The sequences within so many exchanges, 0 or 1, of each centre, ends kept; and how many each has.

    letters   uint8 [centres, width]: of `residues`, padded
    residues  uint8: what there may be

    Returns uint8 [sequences, width], those of a centre behind one another, and int64 [centres].

    >>> rows, sizes = balls(np.array([[7, 7, 8]], dtype=np.uint8), np.array([3]), np.array([7, 8], dtype=np.uint8), 1)
    >>> rows.tolist(), sizes.tolist()
    ([[7, 7, 8], [7, 8, 8]], [2])
    """
    sizes = 1 + (lengths - 2) * (len(residues) - 1) * mismatches
    rows = np.repeat(letters, sizes, axis=0)
    if mismatches:
        _exchange(rows, np.cumsum(sizes) - sizes, lengths, residues)
    return rows, sizes


@njit(cache=True, nogil=True)
def _exchange(rows, begins, lengths, residues):  # type: ignore[no-untyped-def]
    for centre in range(len(begins)):
        row = begins[centre]
        for position in range(1, lengths[centre] - 1):
            known = rows[begins[centre], position]
            for residue in residues:
                if residue != known:
                    row += 1
                    rows[row, position] = residue


def find(
    members: tuple[Places, Places, Letters], rows: tuple[NDArray[np.int64], NDArray[np.int64], Letters]
) -> NDArray[np.int64]:
    """The member that each row is, int64 [rows]; -1 for others.

    members, rows   class, length and letters of each, padded to the same width; members sorted by these, each once

    >>> members = np.array([0, 0], np.int32), np.array([1, 2], np.int32), np.array([[9, 0], [7, 7]], np.uint8)
    >>> find(members, (np.array([0, 0]), np.array([2, 2]), np.array([[7, 7], [7, 8]], np.uint8))).tolist()
    [1, -1]
    """
    found = np.full(len(rows[0]), -1, dtype=np.int64)
    _find(*members, *rows, found)
    return found


@njit(cache=True, nogil=True)
def _find(kinds, lengths, letters, kind, length, letter, found):  # type: ignore[no-untyped-def]
    for row in range(len(kind)):
        low, high = 0, len(kinds)
        while low < high:
            middle = (low + high) // 2
            order = np.int64(kinds[middle]) - kind[row]
            if order == 0:
                order = np.int64(lengths[middle]) - length[row]
            position = 0
            while order == 0 and position < letters.shape[1]:
                order = np.int64(letters[middle, position]) - np.int64(letter[row, position])
                position += 1
            if order == 0:
                found[row] = middle
                break
            if order < 0:
                low = middle + 1
            else:
                high = middle
