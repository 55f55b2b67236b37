"""How reads of a clonotype vary between two samples of one person, given how many both have together.

Reads of a sample have the mean m and the variance (1 + θ) m + φ m²: θ of cells that are drawn and read several times, φ
of amplification.  So they are a mean m times a gamma variable G of the shape r, 1 / r = θ / m + φ, read by Poisson.
With a density of abundances in proportion to f^-2, Zipf's law, and given the total k, the reads after are Binomial(k,
Q), where Q = ρ' B / (ρ' B + 1 - B), ρ' = ρ r_before / r_after, and B is Beta(r_after + 1, r_before) with the chance
ρ / (ρ + 1), else Beta(r_after, r_before + 1); ρ is the depth after over that before.  The mean is k ρ / (ρ + 1), and
samples of equal depth have a beta-binomial distribution.  This holds for clonotypes of one sample, too: whether any
read is seen depends on k alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpcvdj.association.law import TAIL
from hpcvdj.chance.p_values import Counts, Floats

BOUNDS = (1e-6, 1e3), (1e-6, 10.0)
"""Of θ, and of φ."""

HEAVIEST = 50
"""A clonotype counts like at most so many reads when the depth ratio is estimated."""

EXACT = 16
"""Reads up to which numbers for figures are exact."""

CELLS = 1 << 21
_OCTAVE = 8
_STEP = 0.75
_HALVINGS = 32
_WIDEST = 25.0


@dataclass(frozen=True)
class Noise:
    """θ and φ.

    m of a sample is taken as its share of the total, which is more than the mean of a small clonotype that is seen: so
    the θ of maximum likelihood is larger than that of reads.
    """

    linear: float
    quadratic: float


@dataclass(frozen=True)
class Counted:
    """The reads of clonotypes in two samples, or sums of them; those with equal reads are one row.

    total, after  int64 [rows]: of both, and of the second
    number        int64 [rows]: how many clonotypes have them
    of            int64 [clonotypes]: the row of each
    spread        Σ n² / (Σ n)² of the reads n of the samples before, and after: their sums vary less by amplification
    ratio         the depth after over that before, of clonotypes that do not change
    """

    total: Counts
    after: Counts
    number: Counts
    of: Counts
    spread: tuple[float, float]
    ratio: float

    @staticmethod
    def given(before: Counts, after: Counts, spread: tuple[float, float]) -> "Counted":
        """Those of clonotypes with so many reads, int64 [clonotypes], of which each has any."""
        keys = np.stack([before + after, after], axis=1)
        rows, of, number = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        # The share is unbiased with any weights that depend on totals alone.
        weight = number / (1 + rows[:, 0] / HEAVIEST)
        all_after, everything = (weight * rows[:, 1]).sum(), (weight * rows[:, 0]).sum()
        ratio = float(all_after / (everything - all_after))
        return Counted(rows[:, 0], rows[:, 1], number, of.reshape(-1), spread, ratio)

    def rounded(self) -> list[list[int]]:
        """Reads before and after, those above `EXACT` rounded to eighths of an octave, and clonotypes of so many."""

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

        def given(rows: Counts, odds: Floats) -> Floats:
            after, before = self.after[rows, np.newaxis], (self.total - self.after)[rows, np.newaxis]
            logs = chosen[rows, np.newaxis] - after * np.logaddexp(0, -odds) - before * np.logaddexp(0, odds)
            return np.asarray(np.exp(logs))

        return self._mixed(noise, given)

    def at_least(self, noise: Noise, after: Counts | None = None, log_fold: Floats | None = None) -> Floats:
        """P(X >= after), float64 [rows]; of clones whose share is exp(log_fold) times as large."""
        from scipy.special import betainc, expit

        reads = self.after if after is None else after

        def given(rows: Counts, odds: Floats) -> Floats:
            x, k = reads[rows, np.newaxis], self.total[rows, np.newaxis]
            inside = (x > 0) & (x <= k)
            tail = betainc(np.maximum(x, 1), np.maximum(k - x, 0) + 1, expit(odds))
            return np.asarray(np.where(inside, tail, x <= 0))

        return np.minimum(self._mixed(noise, given, log_fold), 1.0)

    def _mixed(self, noise: Noise, given: Callable[[Counts, Floats], Floats], log_fold: Floats | None = None) -> Floats:
        """The mean over Q of what is given Q, by the trapezoidal rule in the logit of B, whose error is exponentially
        small; shapes are those of totals that are rounded to eighths of an octave."""
        result = np.empty(len(self.total))
        fold = np.zeros(len(self.total)) if log_fold is None else log_fold
        size = np.round(_OCTAVE * np.log2(self.total)).astype(np.int64)
        share = self.ratio / (self.ratio + 1)
        for own in np.unique(size).tolist():
            rows, total = np.flatnonzero(size == own), 2 ** (own / _OCTAVE)
            before, after = (1 / (noise.linear / (total * part) + noise.quadratic * spread)
                             for part, spread in zip((1 - share, share), self.spread, strict=True))  # fmt: skip
            step = _STEP / np.sqrt(1 / (1 / before + 1 / after) + total / 4)
            least, shift = min(before, after), np.log(self.ratio)
            most = np.log1p(total / least) + 30 / least + 8 * np.sqrt(2 / least)
            beyond = np.log(total) + 40 + abs(shift) + np.abs(fold[rows]).max()
            last = np.ceil(min(most, beyond) / step)
            grid = step * np.arange(-last, last + 1)
            logit = grid + np.log(after / before)
            log_density = -after * np.logaddexp(0, -logit) - (before + 1) * np.logaddexp(0, logit)
            # Beyond the ends only the density changes, exponentially.
            log_density[[0, -1]] -= np.log(-np.expm1(-step * np.array([after, before])))
            for part in np.array_split(rows, -(-len(rows) * len(logit) // CELLS)):
                odds = shift + fold[part, np.newaxis] + grid
                log_weight = log_density + np.logaddexp(0, odds)
                weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
                result[part] = (given(part, odds) * weight).sum(axis=1) / weight.sum(axis=1)
        return result

    def log_likelihood(self, noise: Noise) -> float:
        """Of all clonotypes."""
        return float((self.number * np.log(np.maximum(self.probability(noise), 1e-300))).sum())

    def folds(self, noise: Noise, rows: Counts) -> tuple[Floats, Floats, Floats]:
        """log2 of how many times as large the share is after, with half a read more on each side, and its 95 % interval
        from the tails; float64 [rows]."""
        part = replace(self, total=self.total[rows], after=self.after[rows], number=self.number[rows])
        estimate = np.log2((part.after + 0.5) / (part.total - part.after + 0.5) / self.ratio)
        low = _solved(len(rows), lambda log: part.at_least(noise, None, log) - TAIL)
        high = _solved(len(rows), lambda log: part.at_least(noise, part.after + 1, log) - (1 - TAIL))
        low, high = np.where(part.after > 0, low, -np.inf), np.where(part.after < part.total, high, np.inf)
        return estimate, low / np.log(2), high / np.log(2)


def _solved(rows: int, increasing: Callable[[Floats], Floats]) -> Floats:
    """The roots of functions that increase, by halving, float64 [rows]."""
    low, high = np.full(rows, -_WIDEST), np.full(rows, _WIDEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = increasing(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def noise_of(pairs: Sequence[Counted]) -> Noise:
    """θ and φ of maximum likelihood from pairs of samples."""
    from scipy.optimize import minimize

    found = minimize(
        lambda logs: -sum(pair.log_likelihood(Noise(*np.exp(logs))) for pair in pairs),
        np.log([0.5, 0.1]), method="Nelder-Mead", bounds=np.log(BOUNDS), options={"xatol": 1e-2, "fatol": 1e-2},
    )  # fmt: skip
    return Noise(*np.exp(found.x).tolist())
