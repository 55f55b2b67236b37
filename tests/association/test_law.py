"""The law of carriers: equal to the enumeration of all sets of donors, and to Fisher's test where depths are equal."""

import itertools

import numpy as np
import pytest
from scipy import stats

from hpcvdj.association.law import (
    LEVELS,
    Laws,
    fisher,
    laws_of_cases,
    laws_of_levels,
    levels_of,
    rates,
)


def by_enumeration(sizes, value, carriers):
    """P(sum of `value` over the carriers) from all sets of so many donors."""
    x = rates(sizes, np.array([carriers]))[0]
    odds = np.expm1(x * sizes) if np.isfinite(x) else np.where(sizes > 0, 1.0, 0.0)
    mass = {}
    for chosen in map(list, itertools.combinations(range(len(sizes)), carriers)):
        total = int(value[chosen].sum())
        mass[total] = mass.get(total, 0.0) + float(np.prod(odds[chosen]))
    whole = sum(mass.values())
    return {total: own / whole for total, own in mass.items() if own}


def as_dict(law):
    return {law[0] + k: value for k, value in enumerate(law[1].tolist()) if value}


def random_cohorts(number, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(number):
        donors = int(rng.integers(2, 11))
        sizes = rng.lognormal(0, 1.5, donors) * (rng.random(donors) > 0.15)
        yield rng, sizes, rng.random(donors) < 0.5


def test_cases_among_carriers_are_those_of_all_sets_of_donors():
    compared = 0
    for _, sizes, case in random_cohorts(25):
        numbers = np.arange((sizes > 0).sum() + 1)
        for m, law in zip(numbers.tolist(), laws_of_cases(sizes, case, numbers), strict=True):
            expected = by_enumeration(sizes, case.astype(int), m)
            assert as_dict(law) == pytest.approx(expected, rel=1e-11, abs=1e-12)
            # As for sums of levels, impossible numbers would let all sequences seem to be testable.
            assert (law[0], law[0] + len(law[1]) - 1) == (min(expected), max(expected))
            compared += len(expected) > 1
    assert compared > 40


def test_sums_of_levels_are_those_of_all_sets_of_donors():
    for rng, sizes, _ in random_cohorts(20, seed=1):
        level = rng.integers(0, 6, len(sizes))
        numbers = np.arange((sizes > 0).sum() + 1)
        for m, law in zip(numbers.tolist(), laws_of_levels(sizes, level, numbers), strict=True):
            expected = by_enumeration(sizes, level, m)
            assert as_dict(law) == pytest.approx(expected, rel=1e-11, abs=1e-12)
            # Sums that no donors have would be p-values that no sequence reaches, and let all seem to be testable.
            laws = Laws.given(np.array([[m]]), lambda *_, law=law: [law])
            smallest = min(expected[min(expected)], expected[max(expected)])
            assert laws.least_of_both == pytest.approx(min(1.0, 2 * smallest), rel=1e-11)


def test_strata_are_those_of_all_sets_of_donors_in_each():
    rng = np.random.default_rng(2)
    sizes, case, stratum = rng.lognormal(0, 1, 12), rng.random(12) < 0.5, np.repeat([0, 1], 6)
    carriers = np.array(list(itertools.product(range(7), range(7))))
    laws = Laws.given(carriers, lambda k, numbers: laws_of_cases(sizes[stratum == k], case[stratum == k], numbers))
    for row, (first, second) in enumerate(carriers.tolist()):
        parts = [by_enumeration(sizes[stratum == k], case[stratum == k].astype(int), m)
                 for k, m in enumerate((first, second))]  # fmt: skip
        joint = {}
        for (a, p), (b, q) in itertools.product(*(part.items() for part in parts)):
            joint[a + b] = joint.get(a + b, 0.0) + p * q
        for a in joint:
            one = Laws(laws.of[row : row + 1], laws.lowest, laws.begins, laws.mass)
            reached, beyond = (float(tail[0]) for tail in one.tails(np.array([a])))
            assert reached == pytest.approx(sum(p for b, p in joint.items() if b >= a), rel=1e-11)
            assert beyond == pytest.approx(sum(p for b, p in joint.items() if b > a), rel=1e-11, abs=1e-15)
            assert one.at_most(np.array([a]))[0] == pytest.approx(sum(p for b, p in joint.items() if b <= a), rel=1e-11)
        assert one.mean[0] == pytest.approx(sum(a * p for a, p in joint.items()), rel=1e-11, abs=1e-13)
        assert one.least[0] == pytest.approx(joint[max(joint)], rel=1e-11)
        both = min(1, 2 * joint[max(joint)], 2 * joint[min(joint)])
        assert one.least_of_both[0] == pytest.approx(both, rel=1e-11)


def test_needed_values_are_the_smallest_with_small_tails():
    rng = np.random.default_rng(5)
    sizes, case = rng.lognormal(0, 1, 14), np.repeat([True, False], [6, 8])
    carriers = np.arange(1, 14)[:, None]
    laws = Laws.given(carriers, lambda _, numbers: laws_of_cases(sizes, case, numbers))
    for row, m in enumerate(carriers[:, 0].tolist()):
        expected = by_enumeration(sizes, case.astype(int), m)
        for p in (0.9, 0.05, 1e-3, 1e-9):
            small = [a for a in expected if sum(q for b, q in expected.items() if b >= a) <= p]
            assert laws.needed(row, p) == min(small, default=None)


def test_values_whose_probability_is_0_in_floating_point_are_beyond_the_law():
    """All carriers are among the shallow donors: it was the probability of a value of another law, or an IndexError."""
    sizes = np.exp(np.random.default_rng(0).normal(10, 1.5, 666))
    level, number = levels_of(-sizes), 222
    largest, smallest = (int(np.sort(level)[part].sum()) for part in (slice(-number, None), slice(number)))
    laws = Laws.given(np.full((3, 1), number), lambda _, numbers: laws_of_levels(sizes, level, numbers))
    value = np.array([largest, smallest, 0])
    assert value[0] > laws.lowest[0] + len(laws.mass) - 1
    # A sum of a law differs by processor in its last digit.
    assert laws.tails(value)[0].tolist() == [0.0, pytest.approx(1.0, rel=1e-15), 1.0]
    assert laws.tails(value)[1].tolist() == [0.0, pytest.approx(1.0), 1.0]
    assert laws.at_most(value)[0] == 1.0
    assert laws.at_most(value)[2] == 0.0
    alone = Laws(np.zeros(1, dtype=np.int64), np.array([3]), np.array([0, 1]), np.ones(1))
    for value, at_least, more, at_most in ((2, 1, 1, 0), (3, 1, 0, 1), (4, 0, 0, 1)):
        assert [part[0] for part in alone.tails(np.array([value]))] == [at_least, more]
        assert alone.at_most(np.array([value]))[0] == at_most


@pytest.mark.parametrize("depth", [1.0, 31_415.9])
def test_equal_depths_are_fishers_test(depth):
    cases, controls = 23, 38
    case = np.arange(cases + controls) < cases
    carriers = np.arange(len(case) + 1)
    laws = Laws.given(carriers[:, np.newaxis], lambda _, numbers: laws_of_cases(np.full(61, depth), case, numbers))
    for m in carriers[1:-1].tolist():
        a = min(m, cases)
        one = Laws(laws.of[m : m + 1], laws.lowest, laws.begins, laws.mass)
        expected = stats.fisher_exact([[a, m - a], [cases - a, controls - m + a]], alternative="greater").pvalue
        assert one.tails(np.array([a]))[0][0] == pytest.approx(expected, rel=1e-10)
        at_least, more = (float(tail[0]) for tail in fisher(np.array([a]), np.array([m]), 61, cases))
        assert at_least == pytest.approx(expected, rel=1e-10)
        assert at_least - more == pytest.approx(stats.hypergeom.pmf(a, 61, cases, m), rel=1e-8)
        assert one.mean[0] == pytest.approx(m * cases / 61, rel=1e-11)


def test_donors_without_junctions_are_no_carriers():
    sizes, case = np.array([0.0, 5, 7, 0, 3]), np.array([True, True, False, False, False])
    assert as_dict(laws_of_cases(sizes, case, np.array([3]))[0]) == {1: 1.0}
    assert rates(sizes, np.array([0, 3])).tolist() == [0.0, np.inf]
    assert rates(np.zeros(2), np.array([0])).tolist() == [0.0]


@pytest.mark.parametrize("case", [np.zeros(4, bool), np.ones(4, bool)])
def test_a_stratum_of_cases_or_controls_alone_says_nothing(case):
    for m, law in enumerate(laws_of_cases(np.arange(1.0, 5), case, np.arange(5))):
        assert as_dict(law) == {m * int(case[0]): 1.0}


def test_nothing_overflows_in_a_thousand_donors_of_unequal_depth():
    rng = np.random.default_rng(3)
    sizes, case = rng.lognormal(11, 1.5, 1_000), np.arange(1_000) < 400
    for first, mass in laws_of_cases(sizes, case, np.array([1, 17, 500, 999, 1_000])):
        assert np.isfinite(mass).all()
        assert mass.sum() == pytest.approx(1, abs=1e-12)
        assert first >= 0


def test_rates_give_the_number_of_carriers():
    sizes, carriers = np.random.default_rng(4).lognormal(8, 2, 300), np.arange(1, 300)
    sums = -np.expm1(-np.multiply.outer(rates(sizes, carriers), sizes)).sum(axis=1)
    np.testing.assert_allclose(sums, carriers, rtol=1e-12)


def test_the_odds_ratio_of_many_donors_that_differ_much():
    table = np.array([[480, 20], [20, 480]])
    case = np.arange(1_000) < 500
    laws = Laws.given(np.array([[500]]), lambda _, numbers: laws_of_cases(np.ones(1_000), case, numbers))
    found = stats.contingency.odds_ratio(table)
    interval = found.confidence_interval(0.95)
    assert laws.odds_ratio(0, 480) == pytest.approx((found.statistic, interval.low, interval.high), rel=1e-4)


def test_the_odds_ratio_is_that_of_the_conditional_test():
    table = [[9, 5], [11, 35]]
    case = np.arange(60) < 20
    laws = Laws.given(np.array([[14]]), lambda _, numbers: laws_of_cases(np.ones(60), case, numbers))
    found = stats.contingency.odds_ratio(table)
    interval = found.confidence_interval(0.95)
    assert laws.odds_ratio(0, 9) == pytest.approx((found.statistic, interval.low, interval.high), rel=1e-4)
    assert laws.odds_ratio(0, 0)[:2] == (0.0, 0.0)
    assert laws.odds_ratio(0, 14)[0] == np.inf
    assert laws.odds_ratio(0, 14)[1] > 1
    # Of donors that all are carriers, every ratio is as likely.
    all_of_them = Laws.given(np.array([[60]]), lambda _, numbers: laws_of_cases(np.ones(60), case, numbers))
    assert all_of_them.odds_ratio(0, 20) == pytest.approx((np.nan, 0, np.inf), nan_ok=True)


def test_odds_ratios_of_all_numbers_of_several_laws():
    """The smallest number of cases differs, and is not 0."""
    carriers, case = np.array([5, 7, 9]), np.arange(11) < 6
    laws = Laws.given(carriers[:, np.newaxis], lambda _, numbers: laws_of_cases(np.ones(11), case, numbers))
    for row, m in enumerate(carriers.tolist()):
        for a in range(max(0, m - 5), min(m, 6) + 1):
            found = stats.contingency.odds_ratio([[a, m - a], [6 - a, 5 - m + a]])
            interval = found.confidence_interval(0.95)
            expected = found.statistic, interval.low, interval.high
            assert laws.odds_ratio(row, a) == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_the_interval_of_odds_ratios_covers_them():
    rng = np.random.default_rng(5)
    sizes, case, true = rng.lognormal(0, 0.5, 60), np.arange(60) < 30, 4.0
    odds = np.expm1(0.4 * sizes) * np.where(case, true, 1)
    has = rng.random((150, 60)) < odds / (1 + odds)
    carriers, cases = has.sum(axis=1), has[:, case].sum(axis=1)
    laws = Laws.given(carriers[:, np.newaxis], lambda _, numbers: laws_of_cases(sizes, case, numbers))
    ends = np.array([laws.odds_ratio(k, int(cases[k])) for k in range(150)])
    covered = ((ends[:, 1] <= true) & (true <= ends[:, 2])).mean()
    assert 0.92 <= covered <= 1
    assert ((ends[:, 0] >= ends[:, 1]) & (ends[:, 0] <= ends[:, 2])).all()


def test_levels_are_ranks_in_classes():
    assert levels_of(np.arange(40.0)).tolist() == [k // 2 for k in range(40)], "20 classes"
    assert levels_of(np.arange(LEVELS * 3.0)).tolist() == np.repeat(np.arange(LEVELS), 3).tolist()
    assert len(set(levels_of(np.ones(7)).tolist())) == 1
    np.testing.assert_array_equal(levels_of(np.array([3.0, 1, 2])), levels_of(np.array([1e9, -5, 0])))


def test_published_p_values_of_equally_deep_donors():
    """All that differ of the 69 in test/correlations of phbradley/pubtcrs (DeWitt and others, eLife 7:e38358, 2018)."""
    published = {
        (6, 6): 0.00816104, (7, 7): 0.00363712, (8, 8): 0.00161777, (8, 9): 0.0088147, (9, 10): 0.00431804,
        (10, 12): 0.00753189, (12, 13): 0.000478961, (12, 14): 0.00199348, (13, 13): 2.73382e-05,
        (13, 15): 0.00100715, (13, 16): 0.00318936, (13, 17): 0.00806356, (14, 17): 0.00168961, (16, 17): 2.30912e-05,
        (16, 22): 0.00727154, (17, 24): 0.00863174, (18, 25): 0.00517961, (29, 45): 0.0053908, (31, 41): 4.16976e-05,
        (41, 65): 0.00163668, (46, 76): 0.00294366, (48, 80): 0.00306548,
    }  # fmt: skip
    case = np.arange(641) < 289
    cases, carriers = np.array(list(published)).T
    laws = Laws.given(carriers[:, np.newaxis], lambda _, numbers: laws_of_cases(np.ones(641), case, numbers))
    np.testing.assert_allclose(laws.tails(cases)[0], list(published.values()), rtol=6e-6)
