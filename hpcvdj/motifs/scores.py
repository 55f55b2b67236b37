"""Scores: one number for a pair of sequences, from its counters.

- weights     S = sum over h of w_h D_h, the thesis's weighted sum (section 2.a), which names no weights
- cosine      S(i, j) / sqrt(S(i, i) S(j, j)): what string-kernel programs give, FastSK with weights that make S = R_m
- background  the same of counters less what sequences of independent bases would share:
              C_h(i, j) = D_h(i, j) - N_i e_h(j) - N_j e_h(i) + N_i N_j E_h,
              N_i being sequence i's k-mers, e_h(j) the sum over its k-mers y of the probability that a random k-mer
              lies at distance h from y, E_h that of two random k-mers.  For h = 0 it is the centred count of Reinert,
              Chew, Sun and Waterman, Alignment-free sequence comparison (I): statistics and power, J Comput Biol 16
              (2009) 1615; that it is centred for h > 0 as well follows from D_h being a sum of products of counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any, Literal

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from hpcvdj.kernels.bits import popcount
from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.profile import Profile, array_module
from hpcvdj.recombination.alphabet import INVALID

Score = Literal["weights", "cosine", "background"]

SCORES: tuple[Score, ...] = ("weights", "cosine", "background")


def default_weights(k: int, d: int) -> list[float]:
    """1 for D_0, and for D_h one over the number of k-mers at distance h from one: C(k, h) 3^h.

    >>> default_weights(4, 1)
    [1.0, 0.08333333333333333]
    """
    return [1 / (comb(k, h) * 3**h) for h in range(d + 1)]


@dataclass(frozen=True)
class Terms:
    """What a score needs to know of each sequence.

    kmers     int64 [sequences]: N, occurrences of k-mers
    own       float64 [d + 1, sequences]: D_h(i, i)
    expected  float64 [d + 1, sequences]: e_h
    chance    float64 [d + 1]: E_h
    """

    kmers: NDArray[np.int64]
    own: NDArray[np.float64]
    expected: NDArray[np.float64]
    chance: NDArray[np.float64]

    def part(self, first: int, last: int) -> Terms:
        """Those of sequences first … last-1."""
        these = slice(first, last)
        return Terms(self.kmers[these], self.own[:, these], self.expected[:, these], self.chance)

    @staticmethod
    def of_parts(parts: list[Terms]) -> Terms:
        """The terms of sequences that follow each other."""
        kmers = np.concatenate([part.kmers for part in parts])
        own, expected = (
            np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("own", "expected")
        )
        return Terms(kmers, own, expected, parts[0].chance)


def without_terms(some: Profile, d: int) -> Terms:
    """Terms for a score that needs none but the numbers of k-mers; NaN for the others."""
    nothing = np.full((d + 1, len(some)), np.nan)
    return Terms(some.kmers.totals, nothing, nothing, np.full(d + 1, np.nan))


def base_frequencies(some: Profile, *, both_strands: bool) -> NDArray[np.float64]:
    """The share of each base among the unambiguous ones, by code, float64 [4]; a quarter each if there are none."""
    counts = np.bincount(some.sequences.codes, minlength=INVALID + 1)[:4].astype(np.float64)
    if both_strands:
        counts += counts[[2, 3, 0, 1]]
    total = counts.sum()
    return counts / total if total else np.full(4, 0.25)


def terms_of(some: Profile, d: int, frequencies: NDArray[np.float64]) -> Terms:
    """The terms of each sequence of a profile, against bases of the given frequencies."""
    kmers = some.kmers
    own = np.zeros((d + 1, len(some)))
    expected = np.zeros((d + 1, len(some)))
    _own_terms(kmers.key, kmers.count, kmers.offsets, some.k, frequencies, own, expected)
    same = float((frequencies**2).sum())
    chance = np.array([comb(some.k, h) * (1 - same) ** h * same ** (some.k - h) for h in range(d + 1)])
    return Terms(kmers.totals, own, expected, chance)


@numba.njit(parallel=True, cache=True)
def _own_terms(key, count, offsets, k, frequencies, own, expected):  # type: ignore[no-untyped-def]
    d = own.shape[0] - 1
    pairs = np.uint64(0x5555555555555555)
    for i in prange(own.shape[1]):
        polynomial = np.zeros(d + 1)
        for p in range(offsets[i], offsets[i + 1]):
            polynomial[:] = 0.0
            polynomial[0] = 1.0
            for q in range(k):
                same = frequencies[np.int64((key[p] >> np.uint64(2 * q)) & np.uint64(3))]
                for h in range(d, 0, -1):
                    polynomial[h] = polynomial[h] * same + polynomial[h - 1] * (1 - same)
                polynomial[0] *= same
            for h in range(d + 1):
                expected[h, i] += count[p] * polynomial[h]
            own[0, i] += np.float64(count[p]) * np.float64(count[p])
            for q in range(p + 1, offsets[i + 1]):
                z = key[p] ^ key[q]
                h = popcount((z | (z >> np.uint64(1))) & pairs)
                if h <= d:
                    own[h, i] += 2.0 * np.float64(count[p]) * np.float64(count[q])


@dataclass(frozen=True)
class Scoring:
    """A kind of score and its weights, one for each distance."""

    kind: Score
    weights: tuple[float, ...]

    def of(self, counters: Any, rows: Terms, columns: Terms) -> Any:
        """Scores float64 [rows, columns] of counters [d + 1, rows, columns], on the GPU if they are there.

        NaN where a sequence has no k-mers and the score divides by that.
        """
        xp = array_module(counters)
        if xp is np:
            return _scores(
                counters, np.array(self.weights), self.kind == "background", rows.kmers, rows.expected, columns.kmers,
                columns.expected, columns.chance, *self._divisors(rows, columns),
            )  # fmt: skip
        total = xp.zeros(counters.shape[1:])
        for h, weight in enumerate(self.weights):
            plane = counters[h].astype(np.float64)
            if self.kind == "background":
                plane -= xp.asarray(rows.kmers[:, None]) * xp.asarray(columns.expected[h][None, :])
                plane -= xp.asarray(rows.expected[h][:, None]) * xp.asarray(columns.kmers[None, :])
                both = xp.asarray(rows.kmers[:, None]).astype(np.float64) * xp.asarray(columns.kmers[None, :])
                plane += both * columns.chance[h]
            plane *= weight
            total += plane
        if self.kind != "weights":
            total /= xp.asarray(self._norm(rows)[:, None])
            total /= xp.asarray(self._norm(columns)[None, :])
        return total

    def of_pairs(
        self, counters: NDArray[np.uint32], rows: Terms, columns: Terms, i: NDArray[np.int64], j: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Scores float64 [pairs] of counters [d + 1, pairs] of row i and column j: to the bit those of `of`."""
        total = np.zeros(counters.shape[1])
        for h, weight in enumerate(self.weights):
            plane = counters[h].astype(np.float64)
            if self.kind == "background":
                plane -= rows.kmers[i] * columns.expected[h][j]
                plane -= rows.expected[h][i] * columns.kmers[j]
                plane += rows.kmers[i].astype(np.float64) * columns.kmers[j] * columns.chance[h]
            plane *= weight
            total += plane
        if self.kind != "weights":
            total /= self._norm(rows)[i]
            total /= self._norm(columns)[j]
        return total

    def _divisors(self, rows: Terms, columns: Terms) -> list[NDArray[np.float64]]:
        """What scores are divided by, of rows and of columns."""
        if self.kind == "weights":
            return [np.ones(len(some.kmers)) for some in (rows, columns)]
        return [self._norm(some) for some in (rows, columns)]

    def _norm(self, some: Terms) -> NDArray[np.float64]:
        """The square root of each sequence's score with itself; NaN if that is not above 0."""
        total = np.zeros(len(some.kmers))
        for h, weight in enumerate(self.weights):
            plane = some.own[h].copy()
            if self.kind == "background":
                plane += some.kmers.astype(np.float64) ** 2 * some.chance[h] - 2 * some.kmers * some.expected[h]
            total += weight * plane
        return np.sqrt(np.where(total > 0, total, np.nan))


@numba.njit(parallel=True, cache=True, error_model="numpy")
def _scores(  # type: ignore[no-untyped-def]
    counters, weights, background, row_kmers, row_expected, kmers, expected, chance, row_norm, norm
):  # fmt: skip
    """`Scoring.of` on a CPU: the same operations in the same order, so that the bits are those of `of_pairs`."""
    planes, rows, columns = counters.shape
    found = np.empty((rows, columns))
    for i in prange(rows):
        for j in range(columns):
            total = 0.0
            for h in range(planes):
                value = np.float64(counters[h, i, j])
                if background:
                    value -= row_kmers[i] * expected[h, j]
                    value -= row_expected[h, i] * kmers[j]
                    value += np.float64(row_kmers[i]) * kmers[j] * chance[h]
                total += value * weights[h]
            found[i, j] = total / row_norm[i] / norm[j]
    return found


def scoring(kind: str, weights: list[float] | None, k: int, d: int) -> Scoring:
    """The scoring called `kind`; InputError for an unknown one or for other than d + 1 finite weights."""
    if kind not in SCORES:
        raise InputError(f"no score {kind!r}; there are {', '.join(SCORES)}")
    chosen = default_weights(k, d) if weights is None else weights
    if len(chosen) != d + 1 or not np.isfinite(chosen).all():
        raise InputError(f"--weights: {len(chosen)} given; one finite number is needed for each distance 0 … {d}")
    return Scoring(kind, tuple(chosen))  # type: ignore[arg-type]
