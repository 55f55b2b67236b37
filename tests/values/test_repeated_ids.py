"""Hashes of ids that repeat in other slices."""

import numpy as np
import pytest

from hpcvdj.values import repeated_ids
from hpcvdj.values.repeated_ids import rows_with_repeated_hashes


@pytest.mark.parametrize("at_once", [1 << 22, 50, 3])
@pytest.mark.parametrize("shares", [1, 2, 7])
def test_rows_with_repeated_hashes_are_those_of_a_loop(monkeypatch, shares, at_once):
    monkeypatch.setattr(repeated_ids, "HASHES", at_once)
    rng = np.random.default_rng(3)
    largest = np.iinfo(np.uint64).max
    slices = [rng.integers(0, largest, size, dtype=np.uint64) for size in (40, 0, 70, 1)]
    # Repeated within a slice, between slices, and at both ends.
    slices[0][:6] = [0, largest, 5, largest - 1, 1 << 63, 7]
    slices[2][:8] = [0, largest, 5, 5, 1 << 63, (1 << 63) - 1, 8, slices[0][30]]
    stored, row = [], 0
    for hashes in slices:
        order = np.argsort(hashes)
        stored.append(np.stack([hashes[order], (row + order).astype(np.uint64)]))
        row += len(hashes)
    every = np.concatenate(slices)
    expected = [row for row, own in enumerate(every.tolist()) if (every == own).sum() > 1]
    found = [rows_with_repeated_hashes(stored, share, shares) for share in range(shares)]
    assert sorted(np.concatenate(found).tolist()) == expected
    assert len(expected) == 11
