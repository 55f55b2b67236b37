"""Scores: a number for each pair of sequences, computed from the counters of the pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, choices, option, require_choice
from hpcvdj.kernels.kmers.methods import array_module
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.recombination.alphabet import BASES, INVALID


@dataclass(frozen=True)
class Terms:
    """The facts about each sequence that scores need.

    kmers     int64 [sequences]: N, occurrences of k-mers
    own       float64 [d + 1, sequences]: D_h(i, i)
    expected  float64 [d + 1, sequences]: e_h, the sum over its k-mers of the probability that a random k-mer is at
              distance h
    chance    float64 [d + 1]: E_h, the probability that two random k-mers are at distance h

    A score that does not need them has NaN in all but kmers.
    """

    kmers: NDArray[np.int64]
    own: NDArray[np.float64]
    expected: NDArray[np.float64]
    chance: NDArray[np.float64]

    @staticmethod
    def joined(parts: Sequence["Terms"]) -> "Terms":
        """Return the terms of sequences that follow each other."""
        # Sequences are the last axis.
        kmers, own_counters, expected = (
            np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in ("kmers", "own", "expected")
        )
        return Terms(kmers, own_counters, expected, parts[0].chance)


class SideTerms(NamedTuple):
    """The terms of the rows, or of the columns, of counters, in a shape that broadcasts.

    own   each sequence's score with itself; NaN unless that is above 0
    """

    kmers: Any
    expected: Any
    own: Any


class Score:
    """A kind of score.

    name        the name for users
    formula     the formula in the documentation
    use         when to use the score, in the documentation
    normalised  whether scores are divided by the root of the product of both sequences' scores with themselves
    centred     whether the score needs `expected`
    """

    name: ClassVar[str]
    formula: ClassVar[str]
    use: ClassVar[str]
    normalised: ClassVar[bool] = True
    centred: ClassVar[bool] = False

    def __init__(self, weights: Sequence[float]) -> None:
        self.weights = tuple(weights)  # a weight for each distance

    def of(self, counters: Any, rows: SideTerms, columns: SideTerms, chance: NDArray[np.float64]) -> Any:
        """Return the scores of counters [d + 1, ...], float64 [...], on the GPU if the counters are there.

        A score that would be divided by one that is not above 0 is NaN.  Two sequences have the same score to the bit
        whichever is the row.
        """
        xp, shape = array_module(counters), counters.shape[1:]
        total, plane = xp.zeros(shape), xp.empty(shape)
        for h, weight in enumerate(self.weights):
            plane[...] = counters[h]
            self.centre(plane, rows, columns, h, float(chance[h]))
            plane *= weight
            total += plane
        if self.normalised:
            plane[...] = rows.own
            plane *= columns.own
            total /= np.sqrt(plane, out=plane)
        return total

    def centre(self, plane: Any, rows: SideTerms, columns: SideTerms, h: int, chance: float) -> None:
        """Subtract the expected counters of distance h, in place."""

    def own(self, terms: Terms) -> NDArray[np.float64]:
        """Return each sequence's score with itself, float64 [sequences]; NaN unless that is above 0."""
        total = np.zeros(len(terms.kmers))
        for h, weight in enumerate(self.weights):
            plane = terms.own[h].copy()
            if self.centred:
                plane += terms.kmers.astype(np.float64) ** 2 * terms.chance[h] - 2 * terms.kmers * terms.expected[h]
            total += weight * plane
        return np.where(total > 0, total, np.nan)


class WeightedSum(Score):
    """The weighted sum of the thesis (section 2.a), which does not give the weights."""

    name = "weights"
    formula = "S = sum of w_h D_h, as in the thesis"
    use = "sequences have equal lengths and you want numbers of positions. A k-mer that occurs a and b times adds a · b"
    normalised = False


class Cosine(Score):
    """The score of string-kernel programs; FastSK's kernel with weights that make S = R_m."""

    name = "cosine"
    formula = "S(i, j) / √(S(i, i) S(j, j)): 1 for a sequence and itself, 0 without a common k-mer"
    use = "lengths differ, or to compare with [string-kernel programs](#as-a-string-kernel): the usual choice"


class Background(Score):
    """The cosine of centred counters.

    C_h(i, j) = D_h(i, j) - N_i e_h(j) - N_j e_h(i) + N_i N_j E_h.  For h = 0 it is the centred count of Reinert, Chew,
    Sun and Waterman, Alignment-free sequence comparison (I): statistics and power, J Comput Biol 16 (2009) 1615; that
    it is centred for h > 0 as well follows from D_h being a sum of products of counts.
    """

    name = "background"
    formula = (
        "the cosine after subtracting the counters expected for sequences of independent bases with the base "
        "frequencies of the whole set; may be negative"
    )
    use = "the composition is skewed (AT-rich upstream regions) and k is small, so that there are many chance matches"
    centred = True

    def centre(self, plane: Any, rows: SideTerms, columns: SideTerms, h: int, chance: float) -> None:
        expected = rows.kmers * columns.expected[h]
        expected += rows.expected[h] * columns.kmers
        plane -= expected
        plane += rows.kmers.astype(np.float64) * columns.kmers * chance


class Scoring:
    """The score of the pairs of a set of sequences.

    terms  for each strand relation, the terms of the sequences or of their reverse complements
    """

    def __init__(self, score: Score, terms: Sequence[Terms]) -> None:
        self.score, self.terms = score, tuple(terms)
        self._own = [score.own(terms_of_strand) if score.normalised else None for terms_of_strand in self.terms]

    def rectangle(self, counters: Any, strand: int, row: int, column: int) -> Any:
        """Return the scores, float64 [rows, columns], of counters [d + 1, rows, columns] from `row` and `column` on."""
        rows, columns = np.ogrid[row : row + counters.shape[1], column : column + counters.shape[2]]
        return self.pairs(counters, strand, rows, columns)

    def pairs(self, counters: Any, strand: int, i: NDArray[Any], j: NDArray[Any]) -> Any:
        """Return the scores, float64 [...], of counters [d + 1, ...] of sequences i and j, which are broadcast."""
        xp = array_module(counters)
        return self.score.of(counters, self._side(xp, 0, i), self._side(xp, strand, j), self.terms[0].chance)

    def _side(self, xp: Any, strand: int, index: NDArray[Any]) -> SideTerms:
        terms, own = self.terms[strand], self._own[strand]
        expected = xp.asarray(terms.expected[:, index]) if self.score.centred else None
        return SideTerms(xp.asarray(terms.kmers[index]), expected, None if own is None else xp.asarray(own[index]))


def make_score(name: str, weights: Sequence[float] | None, k: int, d: int) -> Score:
    """Make the score called `name`.  Raise InputError for an unknown name, or unless there are d + 1 finite weights,
    or for a cosine with a weight below 0.

    weights  of D_0 … D_d; by default 1 / (C(k, h) 3^h), where C(k, h) 3^h k-mers are at distance h from a k-mer

    >>> make_score("cosine", None, 4, 1).weights
    (1.0, 0.08333333333333333)
    """
    require_choice("score", name, choices(Score))
    if weights is None:
        weights = [1 / (comb(k, h) * 3**h) for h in range(d + 1)]
    if len(weights) != d + 1 or not np.isfinite(weights).all():
        raise InputError(f"{option('weights')}: {len(weights)} given; give a finite number for each distance 0 … {d}")
    if name == Cosine.name and min(weights) < 0:
        raise InputError(
            f"{option('weights')}: with {min(weights):g}, a sequence may be unlike itself, and has no cosine; give "
            f"weights of 0 or more, or {option('score', WeightedSum.name)}"
        )
    return choices(Score)[name](weights)


def base_frequencies(profile: Profile, *, both_strands: bool) -> NDArray[np.float64]:
    """Return the share of each base among unambiguous bases, by code, float64 [4]; 1/4 for each if there are none."""
    counts = np.bincount(profile.sequences.codes, minlength=INVALID + 1)[: len(BASES)].astype(np.float64)
    if both_strands:
        counts += counts[[2, 3, 0, 1]]
    total = counts.sum()
    return counts / total if total else np.full(len(BASES), 0.25)


def terms_of(profile: Profile, d: int, frequencies: NDArray[np.float64]) -> Terms:
    """Return the terms of each sequence of a profile, for independent bases of the given frequencies."""
    from hpcvdj.kernels.kmers.kmers_cpu import own_and_expected  # compiled by numba, which is slow to import

    kmers = profile.kmers
    own_counters, expected = own_and_expected(kmers, d, frequencies)
    same = float((frequencies**2).sum())
    chance = np.array([comb(profile.k, h) * (1 - same) ** h * same ** (profile.k - h) for h in range(d + 1)])
    return Terms(kmers.totals, own_counters, expected, chance)


def kmer_totals(profile: Profile, d: int) -> Terms:
    """Return terms with the numbers of k-mers only; all others are NaN."""
    unknown = np.full((d + 1, len(profile)), np.nan)
    kmers = profile.kmers.totals if profile.distinct else profile.windows
    return Terms(kmers, unknown, unknown, np.full(d + 1, np.nan))


def markdown() -> str:
    """Return the table of scores in docs/motifs.md."""
    lines = ["| score | what it is | take it when |", "|---|---|---|"]
    lines += [f"| `{name}` | {kind.formula} | {kind.use} |" for name, kind in choices(Score).items()]
    return "\n".join(lines)
