"""How well hits separate cases from controls: the score of each donor by the hits of all other donors."""

from dataclasses import dataclass

import numpy as np

from hpcvdj.association.law import Laws, laws_of_cases, rates
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.chance.p_values import Bools, Counts, Floats, benjamini_hochberg
from hpcvdj.cohorts.holding import Holding

CANDIDATES = 100
"""Candidates for hits without a donor: their p-values are at most this many times the largest p-value of a hit."""


@dataclass(frozen=True)
class Scores:
    """The scores of donors.

    carried   int64 [donors]: how many hits of the other donors the donor carries
    expected  float64 [donors]: how many of these hits its depth explains
    score     float64 [donors]: their difference in standard deviations; NaN without hits
    """

    carried: Counts
    expected: Floats
    score: Floats

    @property
    def none(self) -> Bools:
        """Which donors have no score, because no sequence is a hit without them, bool [donors]."""
        return np.isnan(self.score)


def scores_of(has: Holding, rows: Counts, tests: int, max_q: float, phenotype: Phenotype, sizes: Floats) -> Scores:
    """The score of each donor of a phenotype.

    has     the carriers of all sequences
    rows    the candidates
    tests   how many sequences are tested
    max_q   the largest q-value of a hit, computed without the donor.  The largest p-value of a hit of all donors would
            be biased: a hit just below it is lost without a case that carries it, but not without another case
    sizes   float64 [donors]: recombinations
    """
    donors, strata, part = len(phenotype.donors), len(phenotype.strata), has.only(rows)
    every_carrier = np.zeros((len(rows), has.individuals), dtype=bool)
    every_carrier[part.sequence, part.individual] = True
    carries = every_carrier[:, phenotype.donors]
    of_stratum = np.equal.outer(phenotype.stratum, np.arange(strata)).astype(np.int64)
    carriers, cases = carries.astype(np.int64) @ of_stratum, (carries & phenotype.case).sum(axis=1)
    carried, expected, score = np.zeros(donors, dtype=np.int64), np.zeros(donors), np.zeros(donors)
    for donor in range(donors):
        others = np.arange(donors) != donor
        carried_by_donor, stratum = carries[:, donor], int(phenotype.stratum[donor])
        without = carriers - carried_by_donor[:, np.newaxis] * of_stratum[donor]

        def of(k: int, numbers: Counts, others: np.ndarray = others) -> list[tuple[int, Floats]]:
            among = others & (phenotype.stratum == k)
            return laws_of_cases(sizes[among], phenotype.case[among], numbers)

        laws = Laws.given(without, of)
        p, _ = laws.tails(cases - (carried_by_donor & phenotype.case[donor]))
        alike = others & (phenotype.stratum == stratum)
        numbers, row = np.unique(without[:, stratum], return_inverse=True)
        chance = -np.expm1(-rates(sizes[alike], numbers) * sizes[donor])[row] if sizes[donor] else np.zeros(len(rows))
        hits = (benjamini_hochberg(p, tests) <= max_q) & (chance > 0) & (chance < 1)
        carried[donor], expected[donor] = int(carried_by_donor[hits].sum()), chance[hits].sum()
        variance = float((chance[hits] * (1 - chance[hits])).sum())
        score[donor] = (carried[donor] - expected[donor]) / np.sqrt(variance) if variance > 0 else np.nan
    return Scores(carried, expected, score)
