"""The tests of phenotypes: p-values of all sequences, and q-values of those that can reach the threshold."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpcvdj.association import multiplicity
from hpcvdj.association.carriers import Carriers, counts_of
from hpcvdj.association.law import Law, Laws, fisher, laws_of_cases, laws_of_levels
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.association.settings import AssociationSettings
from hpcvdj.chance.p_values import Bools, Counts, Floats, randomised
from hpcvdj.runs.run import Run


@dataclass(frozen=True)
class Tested:
    """The tests of a phenotype.

    rows      int64 [tests]: the sequences, of which enough donors have each
    carriers  int64 [tests]
    value     int64 [tests]: cases among the carriers; of a trend the sum of their levels
    laws      of `value`
    p         float64 [tests]
    uniform   float64 [tests]: randomised, uniform without an effect
    least     float64 [tests]: the smallest p-value that each can have
    fisher    float64 [tests], and randomised ones; None of a trend
    kept      bool [tests]: which can reach the threshold, and are tested; the others have q-values of 1
    q, q_weighted  float64 [tests]
    sequences  how many enough donors have: these, and those that neither reach the threshold nor have a small p-value
    """

    phenotype: Phenotype
    rows: Counts
    carriers: Counts
    value: Counts
    laws: Laws
    p: Floats
    uniform: Floats
    least: Floats
    fisher: tuple[Floats, Floats] | None
    kept: Bools
    q: Floats
    q_weighted: Floats
    sequences: int

    def is_hit(self, max_q: float, copy: Bools | None, *, weighted: bool = False) -> Bools:
        """Which tests have a q-value of at most `max_q`, without likely copies, bool [tests]."""
        small = (self.q_weighted if weighted else self.q) <= max_q
        return small if copy is None else small & ~copy[self.rows]


@dataclass(frozen=True)
class Reached:
    """What is known of the tests of all ranks before root has those that matter.

    sequences  int64 [phenotypes]: how many are tested, or would be if they could reach the threshold
    threshold  float64 [phenotypes]: that of the family
    matters    bool [sequences of this rank]: can reach it, or has a p-value that the table shows
    """

    sequences: Counts
    threshold: Floats
    matters: Bools


def reached_of(
    carriers: Carriers, phenotypes: Sequence[Phenotype], sizes: Floats, settings: AssociationSettings, run: Run
) -> Reached:
    """Which sequences matter, of each rank's."""
    tests = [_tests(carriers, own, sizes, settings) for own in phenotypes]
    families = [own.family for own in phenotypes]
    threshold = np.zeros(len(tests))
    for family in dict.fromkeys(families):
        alike = [k for k, other in enumerate(families) if other == family]
        own = np.unique(np.concatenate([tests[k].least for k in alike]), return_counts=True)
        every = [np.concatenate(values) for values in zip(*run.gather_everywhere(own), strict=True)]
        least, of = np.unique(every[0], return_inverse=True)
        times = np.bincount(of.reshape(-1), every[1], len(least)).astype(np.int64)
        threshold[alike] = multiplicity.reachable(least, times, settings.max_q)
    matters = np.zeros(len(carriers.p), dtype=bool)
    for test, most in zip(tests, threshold.tolist(), strict=True):
        matters[test.rows[(test.least <= most) | (test.p <= settings.max_p)]] = True
    return Reached(run.sum(np.array([len(own.rows) for own in tests])), threshold, matters)


def tests_of(
    carriers: Carriers, phenotypes: Sequence[Phenotype], sizes: Floats, settings: AssociationSettings, reached: Reached
) -> list[Tested]:
    """The tests of all phenotypes; those of one family, such as all HLA alleles, have q-values together.

    carriers  of the sequences of all ranks that matter
    """
    tests = []
    for own, most, number in zip(phenotypes, reached.threshold, reached.sequences.tolist(), strict=True):
        test = _tests(carriers, own, sizes, settings)
        tests.append(replace(test, kept=test.least <= most, sequences=number))
    done: list[Tested] = []
    for family in dict.fromkeys(own.family for own in phenotypes):
        done += _with_q_values(carriers, [own for own in tests if own.phenotype.family == family], settings)
    return done


def _tests(carriers: Carriers, phenotype: Phenotype, sizes: Floats, settings: AssociationSettings) -> Tested:
    has, strata = carriers.has, len(phenotype.strata)
    place = np.full(has.individuals, -1, dtype=np.int64)
    place[phenotype.donors] = np.arange(len(phenotype.donors))
    every = np.arange(len(has.numbers))
    of_strata = counts_of(has, every, place, phenotype.stratum, strata)
    rows = np.flatnonzero(of_strata.sum(axis=1) >= settings.min_individuals)
    of_strata, number = of_strata[rows], of_strata[rows].sum(axis=1)
    levels = int(phenotype.value.max(initial=0)) + 1
    value = (counts_of(has, rows, place, phenotype.value, levels) * np.arange(levels)).sum(axis=1)
    own = sizes[phenotype.donors]

    def of_stratum(k: int, numbers: Counts) -> list[Law]:
        inside = phenotype.stratum == k
        if phenotype.family == "trend":
            return laws_of_levels(own[inside], phenotype.value[inside], numbers)
        return laws_of_cases(own[inside], phenotype.case[inside], numbers)

    laws = Laws.given(of_strata, of_stratum)
    at_least, more = laws.tails(value)
    uniform = randomised(at_least, more, settings.seed)
    nothing = np.ones(len(rows), dtype=bool), np.ones(len(rows)), np.ones(len(rows)), len(rows)
    if phenotype.family == "trend":
        at_most, _ = laws.tails(value, upper=False)
        p = np.minimum(2 * np.minimum(at_least, at_most), 1.0)
        both = 2 * np.minimum(uniform, 1 - uniform)
        return Tested(phenotype, rows, number, value, laws, p, both, laws.least_of_both, None, *nothing)
    of_fisher = fisher(value, number, len(own), int(phenotype.case.sum()))
    others = of_fisher[0], randomised(*of_fisher, settings.seed)
    return Tested(phenotype, rows, number, value, laws, at_least, uniform, laws.least, others, *nothing)


def _with_q_values(carriers: Carriers, tests: list[Tested], settings: AssociationSettings) -> list[Tested]:
    """With the q-values of a family."""
    kept, p, number, rows = (
        np.concatenate([getattr(own, name) for own in tests]) for name in ("kept", "p", "carriers", "rows")
    )
    q, weighted = np.ones(len(p)), np.ones(len(p))
    family = carriers.family[rows[kept]]
    weight = multiplicity.weights(p[kept], number[kept], carriers.log_p[rows[kept]], settings.seed, family)
    q[kept], weighted[kept] = multiplicity.q_values(p[kept]), multiplicity.q_values(p[kept], weight)
    ends = np.cumsum([len(own.rows) for own in tests])[:-1]
    parts = zip(tests, *(np.split(values, ends) for values in (q, weighted)), strict=True)
    return [replace(own, q=a, q_weighted=b) for own, a, b in parts]
