"""The order of the rows of all ranks, of which each rank has some."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.runs.run import Run

Array = NDArray[Any]
Counts = NDArray[np.int64]

SAMPLES = 64
"""The number of keys that each rank shows the others for each rank, so that each rank gets about as many rows."""


@dataclass(frozen=True)
class Ordered:
    """The rows of all ranks, sorted: this rank has row `first` and those that follow.

    columns  arrays [rows here]: the keys by which the rows are sorted, then values that go with them
    """

    columns: list[Array]
    first: int
    run: Run
    _given: Counts
    _here: Counts
    _received: Counts

    @staticmethod
    def of(keys: Sequence[Array], values: Sequence[Array], run: Run) -> "Ordered":
        """Sort rows by keys, the first of which counts most; all ranks call this together.

        keys    arrays [rows of this rank], as many on each rank, of the same types; no two rows are equal in all
        values  further arrays [rows of this rank]
        """
        given = np.lexsort(keys[::-1])
        sent = [array[given] for array in (*keys, *values)]
        edges = [0, *_edges(sent[: len(keys)], run), len(given)]
        received = run.exchange([[array[a:b] for array in sent] for a, b in pairwise(edges)])
        sent.clear()
        columns = [np.concatenate(arrays) for arrays in zip(*received, strict=True)]
        here = np.lexsort(columns[: len(keys)][::-1])
        before = sum(run.gather_everywhere(len(here))[: run.rank])
        lengths = np.array([len(part[0]) for part in received], dtype=np.int64)
        return Ordered([array[here] for array in columns], before, run, given, here, lengths)

    def places(self) -> Counts:
        """Return the places of the rows in the order, int64 [rows here]."""
        return self.first + np.arange(len(self._here))

    def back(self, *values: Array) -> list[Array]:
        """Return arrays [rows here] as arrays [rows of this rank], as the rows were given."""
        unsorted = []
        for array in values:
            unsorted.append(np.empty_like(array))
            unsorted[-1][self._here] = array
        parts = [np.split(array, np.cumsum(self._received)[:-1]) for array in unsorted]
        received = self.run.exchange(list(zip(*parts, strict=True)))
        results = []
        for arrays in zip(*received, strict=True):
            joined = np.concatenate(arrays)
            results.append(np.empty_like(joined))
            results[-1][self._given] = joined
        return results


def _edges(keys: Sequence[Array], run: Run) -> list[int]:
    """Return where the rows of this rank, which are sorted, are cut into those of each rank."""
    rows = len(keys[0])

    def key(row: int) -> tuple[Any, ...]:
        return tuple(array[row].item() for array in keys)

    shown = np.linspace(0, rows, min(rows, SAMPLES * run.ranks), endpoint=False, dtype=np.int64)
    every = sorted(each for part in run.gather_everywhere([key(row) for row in shown.tolist()]) for each in part)
    # A rank with few rows shows them all, so these cuts are fair only if each rank has about as many.
    cuts = [every[len(every) * k // run.ranks] for k in range(1, run.ranks)] if every else [()] * (run.ranks - 1)
    return [bisect_left(range(rows), cut, key=key) for cut in cuts]
