"""Which κ a sample with few hits gets from the others, and which sample stands out among them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from hpcvdj.annotation.annotate import _by_luck, _common_kappa, _of_the_others
from hpcvdj.annotation.settings import AnnotationSettings
from hpcvdj.annotation.statistics import FEWEST_HITS, HitKappa


def of_a_sample(source, value, records, decoys=(0, 0.0)):
    """What a sample says of κ: its source and value, hits of records and of decoys, found and expected."""
    none = np.zeros(2)
    return SimpleNamespace(
        kappa=HitKappa(value, source=source), of_records=records, of_decoys=decoys, k=none, alone=none
    )


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([("none", 1.0, (5, 2.5)), ("none", 1.0, (5, 2.5)), ("records", 99.0, (99, 1.0))], (2.0, "records")),
        ([("none", 1.0, (4, 2.5)), ("none", 1.0, (5, 2.5)), *[("records", 9.0, (99, 1.0))] * 2], None),
        ([("none", 1.0, (4, 2.5)), *[("records", k, (99, 1.0)) for k in (7.0, 2.0, 3.0)]], (3.0, "records")),
        ([("none", 1.0, (0, 2.5), (9, 3.0)), ("none", 1.0, (0, 2.5), (1, 2.0))], (2.0, "samples")),
        ([("none", 1.0, (9, 2.5), (9, 3.0)), ("none", 1.0, (0, 2.5), (0, 2.0))], None),
        ([("none", 1.0, (0, 0.0), (10, 0.0)), ("none", 1.0, (10, 0.0))], None),
        ([("none", 1.0, (50, 2.5)), ("epitopes", 1.5, (9, 2.0)), ("decoys", 2.5, (9, 2.0))], (2.0, "samples")),
        ([("epitopes", 1.5, (9, 2.0)), ("decoys", 2.5, (9, 2.0))], None), ([("none", 1.0, (50, 2.5))], None),
    ],
)  # fmt: skip
def test_kappa_of_samples_with_too_few_hits(samples, expected):
    union = SimpleNamespace(decoy=np.zeros(2, dtype=bool))
    tests = [of_a_sample(*sample) for sample in samples]
    found = _common_kappa(tests, union, AnnotationSettings())
    assert (found and (found.value, found.source)) == expected
    assert _common_kappa(tests, union, AnnotationSettings(kappa=2.0)) is None


def used(tests, common):
    """κ of each sample in the end."""
    return [
        test.kappa.value if test.kappa.source == "decoys" and not (common and _by_luck(test, common)) else common.value
        for test in tests
    ]


def of_decoys(found, expected):
    """A sample as its decoys tell it."""
    if found < FEWEST_HITS:
        return of_a_sample("none", 1.0, (0, 0.0), (found, expected))
    return of_a_sample("decoys", found / expected, (0, 0.0), (found, expected))


@pytest.mark.parametrize("expected", [9.0, 14.0, 30.0])
def test_samples_with_ten_hits_by_luck_do_not_decide(expected):
    """Of twelve drawn samples, those with ten hits gave κ to all: it was 1.3 where nine were expected."""
    rng, union = np.random.default_rng(1), SimpleNamespace(decoy=np.zeros(2, dtype=bool))
    kappas = []
    for _ in range(200):
        tests = [of_decoys(int(found), expected) for found in rng.poisson(expected, 12)]
        kappas += used(tests, _common_kappa(tests, union, AnnotationSettings()))
    # Four standard errors of the mean of 2,400 Poisson numbers.
    assert np.mean(kappas) == pytest.approx(1.0, abs=4 / np.sqrt(2_400 * expected))


def test_a_sample_whose_decoys_differ_has_its_own_kappa():
    """And does not decide for the others."""
    union, settings = SimpleNamespace(decoy=np.zeros(2, dtype=bool)), AnnotationSettings()
    tests = [of_decoys(40, 4.0), *[of_decoys(found, 9.0) for found in (8, 10, 9, 11)]]
    common = _common_kappa(tests, union, settings)
    assert common == HitKappa(38 / 36, source="samples")
    assert used(tests, common) == [10.0, *[38 / 36] * 4]
    assert used([of_decoys(25, 21.0), *tests[1:]], common)[0] == 25 / 21, "chance makes twenty"


@pytest.mark.parametrize(
    ("found", "source", "told"),
    [(40, "records", True), (40, "bound", True), (40, "decoys", False), (24, "records", False), (0, "records", False)],
)
def test_a_sample_is_compared_with_the_records_of_the_others(found, source, told):
    """Of 10 expected hits with κ = 1; the others have twice as many as expected."""
    tests = [
        of_a_sample(source, 4.0, (found, 10.0)),
        of_a_sample("none", 1.0, (4, 2.0)),
        of_a_sample("none", 1, (8, 4.0)),
    ]
    others = _of_the_others(tests, tests[0])
    assert (others is not None) == told
    if told:
        assert others.kappa == 2.0
        assert others.p_value == pytest.approx(stats.poisson.sf(found - 1, 20.0), rel=1e-9)
    tests[1] = of_a_sample("none", 1.0, (1, 0.5))
    assert _of_the_others(tests, tests[0]) is None, "nine hits of the others say nothing"
