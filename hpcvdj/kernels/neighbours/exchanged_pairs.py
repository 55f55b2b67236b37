"""Pairs of sequences that differ in one letter at most, as a sparse matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.neighbours.blocks import groups


def within_one_exchange(letters: NDArray[np.uint8], lengths: NDArray[np.int64], classes: NDArray[np.int64]) -> Any:
    """Pairs of sequences of one class and length that differ in at most one position, equal ones included.

    letters  uint8 [sequences, width], the width a multiple of 8; the sequences of a class are distinct
    lengths  int64 [sequences]: how many letters count; the others are 0
    classes  int64 [sequences]

    Returns csr_array [sequences, sequences], with 1 for each pair.
    """
    from scipy.sparse import csr_array

    number = len(lengths)
    row, column, columns = [np.arange(number)], [np.arange(number)], number
    for position in range(int(lengths.max(initial=0))):
        others = letters.copy()
        others[:, position] = 0
        first, group = groups(others.view(">u8").astype(np.uint64), lengths, classes)
        several = np.flatnonzero(np.bincount(group, minlength=len(first))[group] > 1)
        row.append(several)
        column.append(columns + group[several])
        columns += len(first)
    at = np.concatenate(row), np.concatenate(column)
    grouped = csr_array((np.ones(len(at[0]), dtype=np.int64), at), shape=(number, columns))
    within = grouped @ grouped.T
    within.data[:] = 1
    return within
