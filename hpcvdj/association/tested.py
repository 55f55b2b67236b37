"""The tests of phenotypes: p-values of all sequences, and q-values of those that can reach the threshold."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpcvdj.association import multiplicity
from hpcvdj.association.carriers import Carriers
from hpcvdj.association.law import Law, Laws, fisher, laws_of_cases, laws_of_levels
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.association.settings import AssociationSettings
from hpcvdj.chance.p_values import Bools, Counts, Floats, randomised
from hpcvdj.cohorts.holding import Holding
from hpcvdj.results.facts import Facts
from hpcvdj.runs.run import Run

MOST_NEEDED = 3
"""Numbers of carriers of which `Tested.needed` says how many cases a hit needs."""


@dataclass(frozen=True)
class Tested:
    """The tests of a phenotype.

    rows      int64 [tests]: the sequences, each of which enough donors have
    carriers  int64 [tests]: how many donors have it
    value     int64 [tests]: cases among the carriers; of a trend the sum of their levels
    laws      of `value`
    p         float64 [tests]
    p_told    float64 [tests]: p, or a larger one if carriers may be copies of each other; q-values are of these
    uniform   float64 [tests]: randomised p-values, which are uniform without an effect
    least     float64 [tests]: the smallest p-value that each test can have
    fisher    float64 [tests] each: p-values of Fisher's test, and randomised ones; None of a trend
    kept      bool [tests]: whether it can reach the threshold, and is tested; the others have q-values of 1
    q, q_weighted  float64 [tests]
    q_of_p    float64 [tests]: the q-values if all were of `p`; 1 for likely copies
    sequences  how many sequences enough donors have, whether they are among `rows` or not
    in_family  how many tests its family has, without those of likely copies
    """

    phenotype: Phenotype
    rows: Counts
    carriers: Counts
    value: Counts
    laws: Laws
    p: Floats
    p_told: Floats
    uniform: Floats
    least: Floats
    fisher: tuple[Floats, Floats] | None
    kept: Bools
    q: Floats
    q_weighted: Floats
    q_of_p: Floats
    sequences: int
    in_family: int = 0

    def needed(self, p: float) -> list[Facts]:
        """What is needed for a p-value of at most p: `carriers`, the `cases` among them, and the cases `expected`.

        The fewest carriers of which it can be, and the next ones of at least twice and four times as many.  Where
        strata have several laws of one number of carriers, it is the one that needs the fewest cases.
        """
        _, first = np.unique(self.laws.of[self.kept], return_index=True)
        mean, needed = self.laws.mean, []
        for k in np.flatnonzero(self.kept)[first].tolist():
            cases = self.laws.needed(k, p)
            if cases is not None:
                needed.append((int(self.carriers[k]), cases, float(mean[k])))
        shown: list[Facts] = []
        for carriers, cases, expected in sorted(needed):
            if len(shown) < MOST_NEEDED and (not shown or carriers >= 2 * shown[-1]["carriers"]):
                shown.append({"carriers": carriers, "cases": cases, "expected": expected})
        return shown

    def is_hit(self, max_q: float, copy: Bools | None, *, weighted: bool = False) -> Bools:
        """Which tests have a q-value of at most `max_q`, without likely copies, bool [tests]."""
        small = (self.q_weighted if weighted else self.q) <= max_q
        return small if copy is None else small & ~copy[self.rows]

    def may_be_copies(self, max_q: float) -> Bools:
        """Which tests are no hits, but would be if no carriers could be copies of each other, bool [tests]."""
        return np.asarray((self.q_of_p <= max_q) & (self.q > max_q))


@dataclass(frozen=True)
class Reached:
    """The tests of all ranks, before root gathers the sequences that matter.

    sequences  int64 [phenotypes]: how many sequences enough donors have
    threshold  float64 [phenotypes]: that of the family
    matters    bool [sequences of this rank]: whether it can reach the threshold, or has a p-value that the table shows
    """

    sequences: Counts
    threshold: Floats
    matters: Bools


def reached_of(
    carriers: Carriers, phenotypes: Sequence[Phenotype], sizes: Floats, settings: AssociationSettings, run: Run
) -> Reached:
    """Find the sequences of each rank that matter."""
    tests = [_tests(carriers.has, phenotype, sizes, settings) for phenotype in phenotypes]
    families = [phenotype.family for phenotype in phenotypes]
    threshold = np.zeros(len(tests))
    for family in dict.fromkeys(families):
        alike = [k for k, other in enumerate(families) if other == family]
        counted = np.unique(np.concatenate([tests[k].least for k in alike]), return_counts=True)
        values, numbers = (np.concatenate(parts) for parts in zip(*run.gather_everywhere(counted), strict=True))
        least, of = np.unique(values, return_inverse=True)
        times = np.bincount(of.reshape(-1), numbers, len(least)).astype(np.int64)
        threshold[alike] = multiplicity.reachable(least, times, settings.max_q)
    matters = np.zeros(len(carriers.p), dtype=bool)
    for test, most in zip(tests, threshold.tolist(), strict=True):
        matters[test.rows[(test.least <= most) | (test.p <= settings.max_p)]] = True
    return Reached(run.sum(np.array([len(test.rows) for test in tests])), threshold, matters)


def tests_of(
    carriers: Carriers, phenotypes: Sequence[Phenotype], sizes: Floats, settings: AssociationSettings, reached: Reached
) -> list[Tested]:
    """The tests of all phenotypes; a family, such as all HLA alleles, has q-values together.

    carriers  of the sequences of all ranks that matter
    """
    families: dict[str, list[Tested]] = {}
    for phenotype, most, number in zip(phenotypes, reached.threshold, reached.sequences.tolist(), strict=True):
        test = _tests(carriers.has, phenotype, sizes, settings)
        test = replace(test, kept=test.least <= most, sequences=number)
        test = replace(test, p_told=_p_told(test, carriers, sizes, settings))
        families.setdefault(phenotype.family, []).append(test)
    return [test for tests in families.values() for test in _with_q_values(carriers, tests, settings)]


def _p_told(test: Tested, carriers: Carriers, sizes: Floats, settings: AssociationSettings) -> Floats:
    """`Tested.p_told`.

    If carriers may be copies of each other, the p-value must be as small once those of a group that have one junction
    count as one, or once each group is a stratum: copies within a group do not tell which of its donors have them.
    """
    has, phenotype, p = carriers.has, test.phenotype, test.p.copy()
    if carriers.group is None or has.reads is None:
        return p
    perhaps = np.bincount(has.sequence[has.reads > 0], minlength=len(carriers.p)) > 0
    asked = np.flatnonzero(perhaps[test.rows] & (test.kept | (p <= settings.max_p)))
    if not len(asked):
        return p
    has = has.only(test.rows[asked])

    def p_of(has: Holding, phenotype: Phenotype) -> Floats:
        tested, p = _tests(has, phenotype, sizes, settings), np.ones(len(asked))
        p[tested.rows] = tested.p
        return p

    strata = np.stack([phenotype.stratum, carriers.group[phenotype.donors]])
    groups, stratum = np.unique(strata, axis=1, return_inverse=True)
    within = replace(phenotype, stratum=stratum.reshape(-1), strata=[""] * groups.shape[1])
    # The donor of the smallest and of the largest value: the one that has it by itself is not known.
    once = [p_of(_once(has, phenotype, sign), phenotype) for sign in (1, -1)]
    p[asked] = np.maximum(p[asked], np.minimum(p_of(has, within), np.maximum(*once)))
    return p


def _once(has: Holding, phenotype: Phenotype, sign: int) -> Holding:
    """The carriers, of those that may be copies of each other only the one with the smallest `sign` times its value."""
    assert has.reads is not None
    order_of, share = np.full((2, has.individuals), np.inf)
    order_of[phenotype.donors] = sign * phenotype.value
    # Of equal values, that of the stratum with the largest ones: which donor of a stratum it is does not matter.
    donors = np.bincount(phenotype.stratum, minlength=1)
    mean = np.bincount(phenotype.stratum, phenotype.value, len(donors)) / np.maximum(donors, 1)
    share[phenotype.donors] = -sign * mean[phenotype.stratum]
    order = np.lexsort((has.individual, share[has.individual], order_of[has.individual], has.reads, has.sequence))
    source = np.stack([has.sequence, has.reads])[:, order]
    is_first = np.append(True, (source[:, 1:] != source[:, :-1]).any(axis=0))[: len(order)]
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[is_first]] = True
    return has.entries(chosen | (has.reads == 0))


def _tests(has: Holding, phenotype: Phenotype, sizes: Floats, settings: AssociationSettings) -> Tested:
    """Test all sequences that enough donors have; `kept` and the q-values follow in `tests_of`."""
    trend = phenotype.family == "trend"
    stratum, level = np.full((2, has.individuals), -1, dtype=np.int64)
    stratum[phenotype.donors], level[phenotype.donors] = phenotype.stratum, phenotype.value
    of_strata = has.by_group(stratum, len(phenotype.strata))
    rows = np.flatnonzero(of_strata.sum(axis=1) >= settings.min_individuals)
    of_strata, number = of_strata[rows], of_strata[rows].sum(axis=1)
    levels = int(phenotype.value.max(initial=0)) + 1
    value = (has.only(rows).by_group(level, levels) * np.arange(levels)).sum(axis=1)
    sizes = sizes[phenotype.donors]

    def of_stratum(k: int, numbers: Counts) -> list[Law]:
        inside = phenotype.stratum == k
        if trend:
            return laws_of_levels(sizes[inside], phenotype.value[inside], numbers)
        return laws_of_cases(sizes[inside], phenotype.case[inside], numbers)

    laws = Laws.given(of_strata, of_stratum)
    at_least, more = laws.tails(value)
    uniform = randomised(at_least, more, settings.seed)
    if trend:
        p, least, of_fisher = np.minimum(2 * np.minimum(at_least, laws.at_most(value)), 1.0), laws.least_of_both, None
        uniform = 2 * np.minimum(uniform, 1 - uniform)
    else:
        tails = fisher(value, number, len(sizes), int(phenotype.case.sum()))
        p, least, of_fisher = at_least, laws.least, (tails[0], randomised(*tails, settings.seed))
    ones = np.ones(len(rows))
    return Tested(
        phenotype,
        rows,
        number,
        value,
        laws,
        p,
        p,
        uniform,
        least,
        of_fisher,
        ones.astype(bool),
        ones,
        ones,
        ones,
        len(rows),
    )


def _with_q_values(carriers: Carriers, tests: list[Tested], settings: AssociationSettings) -> list[Tested]:
    """The tests of a family with their q-values."""
    kept, alone, p, number, rows = (
        np.concatenate([getattr(test, name) for test in tests]) for name in ("kept", "p", "p_told", "carriers", "rows")
    )
    q, weighted, q_of_p = np.ones((3, len(p)))
    family, log_p = carriers.family[rows], carriers.log_p[rows]
    honest = kept if carriers.copy is None else kept & ~carriers.copy[rows]
    # Small p-values of copies would make the q-values of the others smaller, so these have theirs without copies.
    for among in (kept, honest) if (kept & ~honest).any() else (kept,):
        weight = multiplicity.weights(p[among], number[among], log_p[among], settings.seed, family[among])
        q[among], weighted[among] = multiplicity.q_values(p[among]), multiplicity.q_values(p[among], weight)
    q_of_p[honest] = multiplicity.q_values(alone[honest])
    ends = np.cumsum([len(test.rows) for test in tests])[:-1]
    parts = zip(tests, *(np.split(values, ends) for values in (q, weighted, q_of_p)), strict=True)
    return [replace(test, q=a, q_weighted=b, q_of_p=c, in_family=int(honest.sum())) for test, a, b, c in parts]
