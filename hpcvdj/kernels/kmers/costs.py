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

from hpcvdj.kernels.kmers.buckets import GROUP, bucket_bits
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.kmers.matrix_cpu import WIDTH
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.kernels.kmers.masks import block_masks, wildcard_masks

SAMPLE = 1 << 15
_MASKS_LOOKED_AT = 3
MOST_BLOCKS = 8
_CACHED = 1 << 24
_LONGEST_MATRIX = {"cpu": 11, "cuda": 9}
"""k up to which `matrix` has room for its 4^k tables."""


@dataclass(frozen=True)
class Rates:
    """Nanoseconds.

    entry      a k-mer of a table: sorting it and its lookup
    bucket     a bucket of a pair of groups (CPU), or a lookup of a k-mer of a row in a table (GPU)
    candidate  a pair of k-mers in one bucket
    hit        one of these that is within distance d, beside that
    spread     a neighbour of a k-mer (`matrix`)
    far        the same where the tables are beyond the caches
    clear      a byte of these tables, for each 64 columns
    product    an occurrence times a column and a distance; on a GPU a term of the product, all 4^k of them
    shift      two bases laid against each other (`bitslice`)
    """

    entry: float
    bucket: float
    candidate: float
    hit: float
    spread: float
    far: float
    clear: float
    product: float
    shift: float


CPU = Rates(entry=10.0, bucket=20.0, candidate=1.0, hit=6.0, spread=5.0, far=15.0, clear=0.1, product=0.24, shift=1.0)
"""On one core of an AMD EPYC with AVX-512."""

CUDA = Rates(
    entry=0.15, bucket=0.17, candidate=0.009, hit=0.0, spread=0.007, far=0.007, clear=0.0, product=1.6e-6, shift=0.0004
)
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
        tables = (d + 1) * 4.0**k * WIDTH
        spread = len(kmers.key) * neighbours * (rates.spread if tables < _CACHED else rates.far)
        clear = tables * n / WIDTH * rates.clear
        choices.append(Choice("matrix", (spread + clear + terms * n / 2 * (d + 1) * rates.product) * 1e-9))
    bases = float(some.sequences.lengths.sum())
    choices.append(Choice("bitslice", bases**2 / 2 * rates.shift * 1e-9))
    return sorted((Choice(c.method, c.seconds / ways, c.blocks) for c in choices), key=lambda choice: choice.seconds)


def _sample(kmers: Kmers) -> NDArray[np.uint64]:
    return kmers.key[:: max(1, len(kmers.key) // SAMPLE)]


def _pairs(masks: list[int], d: int, kmers: Kmers, sample: NDArray[np.uint64]) -> tuple[float, float]:
    """Pairs of k-mers, each once, that agree on a mask, and those of them within distance d; summed over the masks.

    From some of the masks and the k-mers.
    """
    some = masks[:: max(1, len(masks) // _MASKS_LOOKED_AT)]
    pairs = near = 0.0
    for mask in some:
        kept = sample & np.uint64(mask)
        order = np.argsort(kept, kind="stable")
        kept, whole = kept[order], sample[order]
        groups = np.diff(np.flatnonzero(np.concatenate([[True], kept[1:] != kept[:-1], [True]]))).astype(np.float64)
        found = float((groups * (groups - 1)).sum()) / 2
        differing = (whole[1:] ^ whole[:-1])[kept[1:] == kept[:-1]]
        distance = np.bitwise_count((differing | (differing >> np.uint64(1))) & np.uint64(0x5555555555555555))
        pairs += found
        near += found * float((distance <= d).mean()) if len(distance) else 0.0
    scale = len(masks) / len(some) * (len(kmers.key) / max(1, len(sample))) ** 2
    return pairs * scale, near * scale


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
    pairs, near = _pairs(masks, d, kmers, sample)
    cost = _tables(kmers, n, masks, rates, backend) + both * (pairs * rates.candidate + near * rates.hit)
    return Choice("pigeonhole", cost * 1e-9, blocks)


def _index(kmers: Kmers, n: int, k: int, d: int, rates: Rates, backend: str, sample: NDArray[np.uint64]) -> Choice:
    both = 2.0 if backend == "cuda" else 1.0
    cost = 0.0
    for m in range(d + 1):
        masks = wildcard_masks(k, m)
        cost += _tables(kmers, n, masks, rates, backend)
        cost += both * _pairs(masks, d, kmers, sample)[0] * (rates.candidate + rates.hit)
    return Choice("index", cost * 1e-9)
