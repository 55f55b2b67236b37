"""How well the hits tell cases from controls: the score of each donor by hits that were found without it."""

from dataclasses import dataclass

import numpy as np

from hpcvdj.association.law import Laws, laws_of_cases, rates
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.chance.p_values import Bools, Counts, Floats, benjamini_hochberg
from hpcvdj.cohorts.cohort import Holding

CANDIDATES = 100
"""Sequences with a p-value up to so many times that of the last hit may be hits without a donor."""


@dataclass(frozen=True)
class Scores:
    """The scores of donors, float64 and int64 [donors].

    carried   hits that the donor carries, of those found without it
    expected  how many of these its depth explains
    score     their difference, in standard deviations; NaN without hits
    """

    carried: Counts
    expected: Floats
    score: Floats

    @property
    def none(self) -> Bools:
        """Which donors have no score, as no sequence is a hit without them, bool [donors]."""
        return np.isnan(self.score)


def scores_of(has: Holding, rows: Counts, tests: int, max_q: float, phenotype: Phenotype, sizes: Floats) -> Scores:
    """The score of each donor of a phenotype.

    has     the carriers of all sequences
    rows    the candidates
    tests   how many sequences are tested
    max_q   the q-value, of the other donors alone, up to which one is a hit.  The p-value of the last hit of all donors
            would not do: a hit just below it is none without a case that carries it, and one without another case
    sizes   float64 [donors]: recombinations
    """
    donors, strata = len(phenotype.donors), len(phenotype.strata)
    place = np.full(has.individuals, -1, dtype=np.int64)
    place[phenotype.donors] = np.arange(donors)
    part = has.only(rows)
    known = place[part.individual] >= 0
    carries = np.zeros((len(rows), donors), dtype=bool)
    carries[part.sequence[known], place[part.individual[known]]] = True
    of_stratum = np.equal.outer(phenotype.stratum, np.arange(strata)).astype(np.int64)
    carriers, cases = carries.astype(np.int64) @ of_stratum, (carries & phenotype.case).sum(axis=1)
    carried, expected, score = np.zeros(donors, dtype=np.int64), np.zeros(donors), np.zeros(donors)
    for donor in range(donors):
        others = np.arange(donors) != donor
        own, stratum = carries[:, donor], int(phenotype.stratum[donor])
        without = carriers - own[:, np.newaxis] * of_stratum[donor]

        def of(k: int, numbers: Counts, others: np.ndarray = others) -> list[tuple[int, Floats]]:
            among = others & (phenotype.stratum == k)
            return laws_of_cases(sizes[among], phenotype.case[among], numbers)

        laws = Laws.given(without, of)
        p, _ = laws.tails(cases - (own & phenotype.case[donor]))
        alike = others & (phenotype.stratum == stratum)
        numbers, row = np.unique(without[:, stratum], return_inverse=True)
        chance = -np.expm1(-rates(sizes[alike], numbers) * sizes[donor])[row] if sizes[donor] else np.zeros(len(rows))
        hits = (benjamini_hochberg(p, tests) <= max_q) & (chance > 0) & (chance < 1)
        carried[donor], expected[donor] = int(own[hits].sum()), chance[hits].sum()
        variance = float((chance[hits] * (1 - chance[hits])).sum())
        score[donor] = (carried[donor] - expected[donor]) / np.sqrt(variance) if variance > 0 else np.nan
    return Scores(carried, expected, score)
