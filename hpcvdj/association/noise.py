"""How the reads of a clonotype vary between two samples of one person, given the total of both samples.

Reads of a sample have the mean m and the variance (1 + θ) m + φ m².  θ comes from cells that are drawn and read several
times, φ from amplification.  So reads are Poisson with the mean m G, where G is a gamma variable of mean 1 and shape r,
with 1 / r = θ / m + φ.  The density of abundances is proportional to f^-2 (Zipf's law).  Given the total k, the reads
after are then Binomial(k, Q), where Q = ρ' B / (ρ' B + 1 - B) and ρ' = ρ r_before / r_after; ρ is the depth after over
that before.  B is Beta(r_after + 1, r_before) with the probability ρ / (ρ + 1), else Beta(r_after, r_before + 1).  The
mean is k ρ / (ρ + 1), and samples of equal depth have a beta-binomial distribution.  This also holds for clonotypes of
one sample only, because whether any read is seen depends on k alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcvdj.association.law import TAIL
from hpcvdj.chance.p_values import Counts, Floats

BOUNDS = (1e-6, 1e3), (1e-6, 10.0)
"""The bounds of θ and of φ."""

HEAVIEST = 50
"""The largest weight of a clonotype, in reads, in the estimate of the depth ratio."""

EXACT = 16
"""The largest number of reads that figures show exactly."""

EXACTLY = 1e-8
"""How exactly the ln of the ends of intervals are known."""

_CELLS = 1 << 21
"""Entries of the largest temporary array."""

_OCTAVE = 8
"""Classes of reads in each octave."""


@dataclass(frozen=True)
class Noise:
    """θ (`linear`) and φ (`quadratic`).

    The mean m of a sample is estimated by its share of the total.  For small clonotypes that are seen, this is too
    large, so the θ of maximum likelihood is larger than that of reads.
    """

    linear: float
    quadratic: float


@dataclass(frozen=True)
class Counted:
    """The reads of clonotypes in two samples, or in two sums of samples; clonotypes with equal reads share a row.

    total, after  int64 [rows]: reads of both samples, and of the second
    number        int64 [rows]: how many clonotypes have these reads
    of            int64 [clonotypes]: the row of each
    spread        Σ n² / (Σ n)² over the depths n of the samples before, and after; sums vary less by amplification
    ratio         the depth after over that before, by clonotypes that do not change
    """

    total: Counts
    after: Counts
    number: Counts
    of: Counts
    spread: tuple[float, float]
    ratio: float

    @staticmethod
    def given(before: Counts, after: Counts, spread: tuple[float, float]) -> "Counted":
        """Count the reads of clonotypes, int64 [clonotypes]; each has a read in one of the samples."""
        keys = np.stack([before + after, after], axis=1)
        rows, of, number = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        # The share is unbiased with any weights that depend on totals alone.
        weight = number / (1 + rows[:, 0] / HEAVIEST)
        all_after, all_reads = (weight * rows[:, 1]).sum(), (weight * rows[:, 0]).sum()
        ratio = float(all_after / (all_reads - all_after))
        return Counted(rows[:, 0], rows[:, 1], number, of.reshape(-1), spread, ratio)

    def rounded(self) -> list[list[int]]:
        """Reads before and after, and how many clonotypes have them; above `EXACT` in classes of an eighth octave."""

        def rounded(reads: Counts) -> Counts:
            near = np.round(2 ** (np.round(_OCTAVE * np.log2(np.maximum(reads, 1))) / _OCTAVE))
            return np.where(reads <= EXACT, reads, near.astype(np.int64))

        keys = np.stack([rounded(self.total - self.after), rounded(self.after)], axis=1)
        rows, of = np.unique(keys, axis=0, return_inverse=True)
        often = np.bincount(of.reshape(-1), self.number, len(rows)).astype(np.int64)
        return np.column_stack([rows, often]).tolist()  # type: ignore[no-any-return]

    def probability(self, noise: Noise) -> Floats:
        """P(X = after), float64 [rows]."""
        from scipy.special import gammaln

        chosen = gammaln(self.total + 1) - gammaln(self.after + 1) - gammaln(self.total - self.after + 1)

        def binomial(rows: Counts, odds: Floats) -> Floats:
            after, before = self.after[rows, np.newaxis], (self.total - self.after)[rows, np.newaxis]
            logs = chosen[rows, np.newaxis] - after * np.logaddexp(0, -odds) - before * np.logaddexp(0, odds)
            return np.asarray(np.exp(logs))

        return self._mixed(noise, binomial)

    def at_least(self, noise: Noise, after: Counts | None = None, log_fold: Floats | None = None) -> Floats:
        """P(X >= after), float64 [rows].

        after     int64 [rows]: the reads of the second sample by default
        log_fold  float64 [rows]: ln of how many times as large the share of the clone is after; 0 by default
        """
        from scipy.special import betainc, expit

        reads = self.after if after is None else after

        def upper_tail(rows: Counts, odds: Floats) -> Floats:
            x, k = reads[rows, np.newaxis], self.total[rows, np.newaxis]
            inside = (x > 0) & (x <= k)
            tail = betainc(np.maximum(x, 1), np.maximum(k - x, 0) + 1, expit(odds))
            return np.asarray(np.where(inside, tail, x <= 0))

        return np.minimum(self._mixed(noise, upper_tail, log_fold), 1.0)

    def _mixed(self, noise: Noise, value: Callable[[Counts, Floats], Floats], log_fold: Floats | None = None) -> Floats:
        """The mean of a function of Q, by the trapezoidal rule in the logit of B, whose error is exponentially small.

        value  the function, of rows and of the logits of Q [rows, grid]

        The shapes are those of totals that are rounded to eighths of an octave.
        """
        result = np.empty(len(self.total))
        fold = np.zeros(len(self.total)) if log_fold is None else log_fold
        size = np.round(_OCTAVE * np.log2(self.total)).astype(np.int64)
        for octaves in np.unique(size).tolist():
            rows, total = np.flatnonzero(size == octaves), 2 ** (octaves / _OCTAVE)
            before, after = (1 / of_sample for of_sample in self._dispersions(noise, total))
            step = 0.75 / np.sqrt(1 / (1 / before + 1 / after) + total / 4)
            least, shift = min(before, after), np.log(self.ratio)
            most = np.log1p(total / least) + 30 / least + 8 * np.sqrt(2 / least)
            beyond = np.log(total) + 40 + abs(shift) + np.abs(fold[rows]).max()
            last = np.ceil(min(most, beyond) / step)
            grid = step * np.arange(-last, last + 1)
            logit = grid + np.log(after / before)
            log_density = -after * np.logaddexp(0, -logit) - (before + 1) * np.logaddexp(0, logit)
            # Beyond the ends only the density changes, and exponentially: the last terms are geometric series.
            log_density[[0, -1]] -= np.log(-np.expm1(-step * np.array([after, before])))
            for part in np.array_split(rows, -(-len(rows) * len(logit) // _CELLS)):
                odds = shift + fold[part, np.newaxis] + grid
                log_weight = log_density + np.logaddexp(0, odds)
                weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
                result[part] = (value(part, odds) * weight).sum(axis=1) / weight.sum(axis=1)
        return result

    def _dispersions(self, noise: Noise, total: Any) -> tuple[Any, Any]:
        """1 / r of the samples before and after, of clonotypes with so many reads in both."""
        share = self.ratio / (self.ratio + 1)
        before, after = (noise.linear / (total * part) + noise.quadratic * spread
                         for part, spread in zip((1 - share, share), self.spread, strict=True))  # fmt: skip
        return before, after

    def log_likelihood(self, noise: Noise) -> float:
        """The log-likelihood of all clonotypes."""
        return float((self.number * np.log(np.maximum(self.probability(noise), 1e-300))).sum())

    def folds(self, noise: Noise, rows: Counts) -> tuple[Floats, Floats, Floats]:
        """log2 of the fold change of the share, with half a read added to each side, and the ends of its 95 % interval.

        Each is float64 [rows].
        """
        # Slow to import.
        from scipy.optimize.elementwise import bracket_root, find_root

        total, after = self.total[rows], self.after[rows]
        estimate = np.log((after + 0.5) / (total - after + 0.5) / self.ratio)
        deviation = np.sqrt(1 / (after + 0.5) + 1 / (total - after + 0.5) + sum(self._dispersions(noise, total)))

        def end(side: int) -> Floats:
            """The lower ends for -1, the upper ones for 1; infinite for clonotypes of one sample."""
            reads, level = after + (side > 0), TAIL if side < 0 else 1 - TAIL
            some = np.flatnonzero((after > 0) if side < 0 else (after < total))

            def excess(log_fold: Floats, of: Counts) -> Floats:
                part = replace(self, total=total[of], after=reads[of])
                return part.at_least(noise, log_fold=log_fold) - level

            likely = np.sort([estimate[some], estimate[some] + side * (0.5 + 3 * deviation[some])], axis=0)
            around = bracket_root(excess, *likely, args=(some,)).bracket
            ends = np.full(len(rows), side * np.inf)
            ends[some] = find_root(excess, around, args=(some,), tolerances={"xatol": EXACTLY}).x / np.log(2)
            return ends

        return estimate / np.log(2), end(-1), end(1)


def noise_of(pairs: Sequence[Counted]) -> Noise:
    """θ and φ by maximum likelihood from pairs of samples."""
    from scipy.optimize import minimize

    fit = minimize(
        lambda logs: -sum(pair.log_likelihood(Noise(*np.exp(logs))) for pair in pairs),
        np.log([0.5, 0.1]), method="Nelder-Mead", bounds=np.log(BOUNDS), options={"xatol": 1e-2, "fatol": 1e-2},
    )  # fmt: skip
    return Noise(*np.exp(fit.x).tolist())
