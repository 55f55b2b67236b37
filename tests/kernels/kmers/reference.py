"""The definition in slow, obvious Python: what every method is tested against.

f_i(x) is how often k-mer x occurs in sequence i; k-mers with an ambiguous base do not count.

- exact: D_h(i, j) = sum over x, y with Hamming(x, y) = h of f_i(x) f_j(y): pairs of positions at distance exactly h
- raw:   R_m(i, j) = sum over the C(k, m) wildcard configurations, sum over z, of f_i(z) f_j(z), where f_i(z) counts
  the k-mers of sequence i that equal z beside the wildcards: what the thesis's sub-tables hold (section 2.b)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

_BASES = set("ACGT")


def kmer_counts(sequence: str, k: int, *, distinct: bool = False) -> Counter[str]:
    """f of one sequence (upper case): occurrences of each k-mer, 1 each if `distinct`."""
    windows = (sequence[p : p + k] for p in range(len(sequence) - k + 1))
    counts = Counter(window for window in windows if set(window) <= _BASES)
    return Counter(dict.fromkeys(counts, 1)) if distinct else counts


def exact_counters(sequences: Sequence[str], k: int, d: int, *, distinct: bool = False) -> NDArray[np.uint64]:
    """D of all pairs, uint64 [d + 1, sequences, sequences]."""
    counts = [kmer_counts(sequence, k, distinct=distinct) for sequence in sequences]
    return _all_pairs(counts, counts, d)


def opposite_strand_counters(sequences: Sequence[str], k: int, d: int, *, distinct: bool = False) -> NDArray[np.uint64]:
    """D of each sequence against the reverse complement of each, uint64 [d + 1, sequences, sequences]."""
    complement = str.maketrans("ACGT", "TGCA")
    forward = [kmer_counts(sequence, k, distinct=distinct) for sequence in sequences]
    reverse = [kmer_counts(sequence.translate(complement)[::-1], k, distinct=distinct) for sequence in sequences]
    return _all_pairs(forward, reverse, d)


def _all_pairs(rows: list[Counter[str]], columns: list[Counter[str]], d: int) -> NDArray[np.uint64]:
    counters = np.zeros((d + 1, len(rows), len(columns)), dtype=np.uint64)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            for x, f in row.items():
                for y, g in column.items():
                    distance = sum(a != b for a, b in zip(x, y, strict=True))
                    if distance <= d:
                        counters[distance, i, j] += np.uint64(f * g)
    return counters


def raw_counters(sequences: Sequence[str], k: int, d: int, *, distinct: bool = False) -> NDArray[np.uint64]:
    """R of all pairs, uint64 [d + 1, sequences, sequences], sub-table by sub-table."""
    counts = [kmer_counts(sequence, k, distinct=distinct) for sequence in sequences]
    counters = np.zeros((d + 1, len(counts), len(counts)), dtype=np.uint64)
    for m in range(d + 1):
        for wildcards in combinations(range(k), m):
            tables = [_masked(f, wildcards) for f in counts]
            for i, row in enumerate(tables):
                for j, column in enumerate(tables):
                    counters[m, i, j] += np.uint64(sum(f * column[z] for z, f in row.items() if z in column))
    return counters


def _masked(counts: Counter[str], wildcards: tuple[int, ...]) -> Counter[str]:
    table: Counter[str] = Counter()
    for x, f in counts.items():
        table["".join("*" if p in wildcards else base for p, base in enumerate(x))] += f
    return table
