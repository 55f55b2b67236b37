"""What each method would cost: the grounds on which `auto` chooses.

Constants are nanoseconds, set by hand so that the estimates come near what `hpcvdj study motifs` measured
(results/motifs_cpu, results/motifs_h200, whose raw rows have both);
the numbers of candidates come from a sample of the k-mers, since real sequences agree far more often than random ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from hpcvdj.motifs.buckets import GROUP, bucket_bits
from hpcvdj.motifs.comparison import Profile
from hpcvdj.motifs.kmers import Kmers
from hpcvdj.motifs.masks import block_masks, wildcard_masks

SAMPLE = 1 << 15
_MASKS_LOOKED_AT = 3
MOST_BLOCKS = 8
_LONGEST_MATRIX = {"cpu": 11, "cuda": 9}
"""k up to which `matrix` has room for its 4^k tables."""


@dataclass(frozen=True)
class Rates:
    """Nanoseconds.

    entry      a k-mer of a table: sorting it and its lookup
    bucket     a bucket of a pair of groups (CPU), or a lookup of a k-mer of a row in a table (GPU)
    candidate  a pair of k-mers in one bucket
    spread     a neighbour of a k-mer (`matrix`)
    product    an occurrence times a column and a distance; on a GPU a term of the product, all 4^k of them
    shift      two bases laid against each other (`bitslice`)
    """

    entry: float
    bucket: float
    candidate: float
    spread: float
    product: float
    shift: float


CPU = Rates(entry=60.0, bucket=15.0, candidate=4.0, spread=5.0, product=0.24, shift=1.0)
"""On one core of an AMD EPYC with AVX-512."""

CUDA = Rates(entry=0.15, bucket=0.17, candidate=0.009, spread=0.007, product=1.6e-6, shift=0.0004)
"""On an NVIDIA H200."""


@dataclass(frozen=True)
class Choice:
    """A method with its setting, and the seconds it is expected to take."""

    method: str
    seconds: float
    blocks: int = 0

    def __str__(self) -> str:
        setting = f" with {self.blocks} blocks" if self.blocks else ""
        return f"{self.method}{setting} {self.seconds:.2g} s"


def estimates(some: Profile, d: int, backend: str, threads: int) -> list[Choice]:
    """Each method that can do it, the cheapest first, for all pairs of `some` within distance d."""
    kmers, n, k = some.kmers, len(some), some.k
    rates, ways = (CUDA, 1) if backend == "cuda" else (CPU, threads)
    sample = _sample(kmers)
    choices = [
        _pigeonhole(kmers, n, k, d, blocks, rates, backend, sample)
        for blocks in range(d + 1, max(d + 2, min(k, MOST_BLOCKS) + 1))
    ]
    choices.append(_index(kmers, n, k, d, rates, backend, sample))
    if k <= _LONGEST_MATRIX[backend]:
        neighbours = sum(comb(k, h) * 3**h for h in range(d + 1))
        terms = n * 4.0**k if backend == "cuda" else float(len(kmers.key))
        spread = len(kmers.key) * neighbours * rates.spread
        choices.append(Choice("matrix", (spread + terms * n / 2 * (d + 1) * rates.product) * 1e-9))
    bases = float(some.sequences.lengths.sum())
    choices.append(Choice("bitslice", bases**2 / 2 * rates.shift * 1e-9))
    return sorted((Choice(c.method, c.seconds / ways, c.blocks) for c in choices), key=lambda choice: choice.seconds)


def _sample(kmers: Kmers) -> NDArray[np.uint64]:
    return kmers.key[:: max(1, len(kmers.key) // SAMPLE)]


def _pairs(masks: list[int], kmers: Kmers, sample: NDArray[np.uint64]) -> float:
    """Pairs of k-mers, each once, that agree on a mask, summed over the masks; from some of them."""
    some = masks[:: max(1, len(masks) // _MASKS_LOOKED_AT)]
    found = 0.0
    for mask in some:
        _, groups = np.unique(sample & np.uint64(mask), return_counts=True)
        found += float((groups.astype(np.float64) * (groups - 1)).sum()) / 2
    return found * len(masks) / len(some) * (len(kmers.key) / max(1, len(sample))) ** 2


def _tables(kmers: Kmers, n: int, masks: list[int], rates: Rates, backend: str) -> float:
    """Nanoseconds for making tables and going through their buckets."""
    groups = -(-n // GROUP)
    walks = len(kmers.key) if backend == "cuda" else groups * (groups + 1) / 2 * 2.0 ** bucket_bits(kmers, masks)
    return len(masks) * (len(kmers.key) * rates.entry + walks * rates.bucket)


def _pigeonhole(
    kmers: Kmers, n: int, k: int, d: int, blocks: int, rates: Rates, backend: str, sample: NDArray[np.uint64]
) -> Choice:
    masks = block_masks(k, d, blocks)[1]
    # A GPU goes over both halves of a symmetric relation but where rows are columns themselves.
    both = 2.0 if backend == "cuda" else 1.0
    cost = _tables(kmers, n, masks, rates, backend) + both * _pairs(masks, kmers, sample) * rates.candidate
    return Choice("pigeonhole", cost * 1e-9, blocks)


def _index(kmers: Kmers, n: int, k: int, d: int, rates: Rates, backend: str, sample: NDArray[np.uint64]) -> Choice:
    both = 2.0 if backend == "cuda" else 1.0
    cost = 0.0
    for m in range(d + 1):
        masks = wildcard_masks(k, m)
        cost += _tables(kmers, n, masks, rates, backend)
        cost += both * _pairs(masks, kmers, sample) * rates.candidate
    return Choice("index", cost * 1e-9)
