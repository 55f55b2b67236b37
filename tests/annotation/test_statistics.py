"""The statistics of hits: sums of indicators, κ, dispersion, false discovery rates, against slow definitions."""

import numpy as np
import pytest
from scipy import stats

from hpcvdj.annotation import statistics
from hpcvdj.chance.p_values import benjamini_hochberg, two_rates_tail
from hpcvdj.reports.outputs import DIFFERS


def test_sums_of_indicators():
    rng = np.random.default_rng(1)
    p = rng.random(60) ** 3
    draws = (rng.random((200_000, 60)) < p).sum(axis=1)
    for found in (0, 8, 15, 25):
        at_least, more = statistics.tail(np.array([found]), np.array([p.sum()]), 1.0, [p])
        assert at_least[0] == pytest.approx((draws >= found).mean(), abs=4e-3)
        assert more[0] == pytest.approx((draws > found).mean(), abs=4e-3)
    found, mean = np.arange(12), np.full(12, 2.5)
    wide, _ = statistics.tail(found, mean, 1.6, [None] * 12)
    negative_binomial = stats.nbinom.sf(found - 1, 2.5 / 0.6, 1 / 1.6)
    np.testing.assert_allclose(wide[4:], negative_binomial[4:], rtol=1e-9)
    poisson, _ = statistics.tail(found, mean, 1.0, [None] * 12)
    np.testing.assert_allclose(poisson, stats.poisson.sf(found - 1, 2.5), rtol=1e-9)
    np.testing.assert_allclose(wide, np.maximum(poisson, negative_binomial), rtol=1e-9)


@pytest.mark.parametrize("phi", [1.05, 1.9, 6.0])
@pytest.mark.parametrize("expected", [1e-6, 0.00854, 0.4, 3.0, 40.0])
def test_a_dispersion_makes_no_p_value_smaller(phi, expected):
    """A negative binomial number is more often 0 than a Poisson number of its mean: 0.0061, not 0.0085, for one hit."""
    hits, mean = np.arange(80), np.full(80, expected)
    (dispersed, more), (poisson, _) = (statistics.tail(hits, mean, own, [None] * 80) for own in (phi, 1.0))
    assert (dispersed >= poisson).all()
    assert (dispersed >= stats.nbinom.sf(hits - 1, expected / (phi - 1), 1 / phi) * (1 - 1e-9)).all()
    assert (more <= dispersed).all()
    np.testing.assert_array_equal(more[:-1], dispersed[1:])


def test_a_dispersion_makes_no_p_value_of_probable_sequences_smaller():
    """Poisson's P(one hit or more) is smaller than that of the sum of their indicators."""
    p = [np.full(3, 0.3)] * 4
    hits, mean = np.arange(4), np.full(4, 0.9)
    of_sum, _ = statistics.tail(hits, mean, 1.0, p)
    dispersed, _ = statistics.tail(hits, mean, 1.5, p)
    negative_binomial = stats.nbinom.sf(hits - 1, 0.9 / 0.5, 1 / 1.5)
    assert of_sum[1] == pytest.approx(1 - 0.7**3)
    np.testing.assert_allclose(dispersed, np.maximum(of_sum, negative_binomial), rtol=1e-9)


def test_sums_of_indicators_of_which_most_are_improbable():
    """Those above 0.01 one by one, the others as a Poisson number."""
    large, small = np.array([0.7, 0.02, 0.3, 0.3]), np.full(150, 0.009)
    law = stats.poisson.pmf(np.arange(60), small.sum())
    for p in large:
        law = np.convolve(law, [1 - p, p])
    p = np.random.default_rng(4).permutation(np.concatenate([large, small]))
    for found in range(9):
        at_least, more = statistics.tail(np.array([found]), np.array([p.sum()]), 1.0, [p])
        assert (at_least[0], more[0]) == pytest.approx((law[found:].sum(), law[found + 1 :].sum()), rel=1e-11)


def test_dispersion_and_kappa():
    rng = np.random.default_rng(2)
    mean, decoys = rng.random(400) * 6, np.ones(400, dtype=bool)
    assert statistics.dispersion(rng.poisson(mean), mean, decoys) < 1.3
    wide = rng.negative_binomial(mean / 0.8, 1 / 1.8)
    assert statistics.dispersion(wide, mean, decoys) == pytest.approx(1.8, abs=0.35)
    assert statistics.dispersion(wide[:3], mean[:3], decoys[:3]) == 1.0
    kappa = statistics.kappa_of_epitopes(rng.poisson(1.7 * mean), mean)
    assert kappa.low < 1.7 < kappa.high
    made = rng.random(5_000) * 0.3
    seen = (rng.random(5_000) < 1 - np.exp(-1.4 * made)).astype(int)
    kappa = statistics.kappa_of_members(seen, made, "decoys")
    assert kappa.low < 1.4 < kappa.high
    assert statistics.kappa_of_members(seen[:3], made[:3], "decoys") is None


def falsely_called(k, mean, decoy):
    """Whether any epitope is called, with κ and φ as for a sample of which chance makes all hits."""
    kappa = statistics.kappa_of_ratio(int(k[decoy].sum()), float(mean[decoy].sum()), "decoys")
    kappa = kappa or statistics.kappa_of_epitopes(k[~decoy], mean[~decoy])
    phi = statistics.dispersion(k, kappa.value * mean, decoy)
    p, _ = statistics.tail(k, kappa.value * mean, phi, [None] * len(k), kappa.doubt(phi))
    return (benjamini_hochberg(p, len(p)) <= 0.05).any()


@pytest.mark.parametrize(("hits", "decoys"), [(12, 1), (20, 1), (20, 12), (100, 12)])
def test_few_hits_of_decoys_make_no_false_calls(hits, decoys):
    """κ of twenty hits is uncertain by a fifth, and chance hits some epitopes 250 times: 0.24 of samples had a call."""
    rng = np.random.default_rng(8)
    mean = np.concatenate([np.full(decoys, hits / decoys), np.exp(rng.normal(0, 1.8, 300))])
    decoy = np.arange(len(mean)) < decoys
    # Two standard errors above the rate that q allows.
    assert np.mean([falsely_called(rng.poisson(mean), mean, decoy) for _ in range(300)]) < 0.05 + 0.025


@pytest.mark.parametrize("decoys", [1, 9, 12, 30])
def test_few_decoys_do_not_hide_a_dispersion(decoys):
    """With less than ten, φ was 1, and 0.88 of samples had a false call."""
    rng = np.random.default_rng(9)
    mean = np.exp(rng.uniform(np.log(2), np.log(60), 60))
    decoy = np.arange(60) < decoys
    called = [falsely_called(rng.negative_binomial(mean / 2, 1 / 3), mean, decoy) for _ in range(300)]
    # 0.003 to 0.08 with this seed; 0.05 in the mean of four, and 0.13 at most, as φ is estimated.
    assert np.mean(called) < 0.13


def test_decoys_alone_tell_a_dispersion_if_chance_hits_enough_of_them():
    """Epitopes that are recognised make it no larger then; twelve decoys that it hardly hits say nothing."""
    rng, decoy = np.random.default_rng(10), np.arange(100) < 40
    mean = np.full(100, 8.0)
    hits = np.where(decoy, rng.poisson(mean), 5 * rng.poisson(mean))
    assert statistics.dispersion(hits, mean, decoy) < 1.6
    rarely = np.where(np.arange(100) < 12, 0.1, 8.0)
    few = [statistics.dispersion(rng.poisson(rarely), rarely, rarely < 1) for _ in range(200)]
    # 2.47 and 1.10 to 1.12 with four seeds.
    assert max(few) < 2.6
    assert np.mean(few) < 1.2
    assert statistics.dispersion(hits[:5], mean[:5], decoy[:5]) == 1.0


@pytest.mark.parametrize("phi", [1.0, 1.7])
def test_an_uncertain_kappa_is_in_the_tails(phi):
    """Of Poisson numbers, dispersed ones and sums of indicators, in the mean over many κ."""
    rng, doubt = np.random.default_rng(11), 0.04
    found, mean = np.array([60, 75, 90]), np.full(3, 50.0)
    many = rng.gamma(1 / doubt, doubt, 100_000)
    numbers = rng.poisson(50 * many) if phi == 1 else rng.negative_binomial(50 * many / (phi - 1), 1 / phi)
    tails, more = statistics.tail(found, mean, phi, [None] * 3, doubt)
    assert tails == pytest.approx([(numbers >= k).mean() for k in found], rel=0.1)
    assert more == pytest.approx([(numbers > k).mean() for k in found], rel=0.1)


@pytest.mark.parametrize("largest", [0.1, 0.9])
def test_an_uncertain_kappa_is_in_the_tails_of_sums(largest):
    """None is smaller than the mean over many κ; those of small probabilities are not much larger."""
    rng, doubt = np.random.default_rng(13), 0.04
    p = largest * rng.random(round(120 / largest))
    kappa = rng.gamma(1 / doubt, doubt, 20_000)
    sums = np.array([(rng.random(len(p)) < -np.expm1(own * np.log1p(-p))).sum() for own in kappa])
    mean = p.sum(keepdims=True)
    for above in (1.15, 1.3, 1.5):
        hits = np.round(above * mean).astype(int)
        drawn = (sums >= hits).mean()
        (told,), (more,) = statistics.tail(hits, mean, 1.0, [p], doubt)
        assert told > drawn - 3 * np.sqrt(drawn * (1 - drawn) / 20_000)
        assert more < told
        if largest < 0.5:
            assert told < 1.3 * drawn + 1e-3
    exact, _ = statistics.tail(hits, mean, 1.0, [p])
    assert exact[0] < told
    certain = np.append(p[:3], 1.0)
    assert statistics.tail(np.array([1]), certain.sum(keepdims=True), 1.0, [certain], doubt)[0][0] == pytest.approx(1)


@pytest.mark.parametrize("phi", [1.0, 1.5])
def test_what_an_uncertain_kappa_adds_to_a_sum(phi):
    """The variance is that of the sum for one κ, and the square of its slope in ln κ times the doubt."""
    p, hits, mean = np.full(100, 0.5), np.array([62]), np.array([50.0])
    slope = 100 * 0.5 * np.log(2)
    of_one = 25 if phi == 1 else phi * 50
    for doubt in (0.1, 0.03):
        (told,), _ = statistics.tail(hits, mean, phi, [p], doubt)
        wide = (of_one + doubt * slope**2) / 50
        assert told == pytest.approx(stats.nbinom.sf(61, 50 / (wide - 1), 1 / wide), rel=1e-9)
    # A sum of probable sequences varies less than a Poisson number, which is then the larger one.
    (told,), _ = statistics.tail(hits, mean, 1.0, [p], 0.001)
    assert told == pytest.approx(stats.poisson.sf(61, 50), rel=1e-9)


def test_the_error_of_kappa_is_no_dispersion():
    """κ of one decoy may be a quarter too large, and numbers of hits seemed to vary because of that."""
    rng, decoy = np.random.default_rng(16), np.arange(60) < 1
    mean = np.full(60, 300.0)
    for factor in (0.8, 1.25):
        assert statistics.dispersion(rng.poisson(mean), factor * mean, decoy) < 2
        assert 2 < statistics.dispersion(rng.negative_binomial(mean / 3, 1 / 4), factor * mean, decoy) < 8


def test_which_epitopes_tell_the_dispersion():
    """Ten decoys, or else the median of ten epitopes with two hits expected."""
    mean = np.full(21, 8.0)
    for decoys, phi in ((10, 2 * (1 + np.sqrt(10 * (8 + 128)) / 80)), (9, 1.0)):
        decoy = np.arange(21) < decoys
        assert statistics.dispersion(np.where(decoy, 12, 8), mean, decoy) == pytest.approx(phi)
    none, hits = np.zeros(10, dtype=bool), np.tile([0, 4], 5)
    # The median ratio, with a sixth of a hit more for each, is 13 / 12.
    squares = [(k - 13 / 6) ** 2 / (13 / 6) for k in (0, 4)]
    for number, expected, phi in ((10, 2.0, np.mean(squares) / stats.chi2.median(1)), (9, 2.0, 1.0), (10, 1.99, 1.0)):
        found = statistics.dispersion(hits[:number], np.full(number, expected), none[:number])
        assert found == pytest.approx(phi, rel=1e-3)


def test_a_kappa_that_samples_share_knows_how_they_differ():
    own = statistics.kappa_of_ratio(100, 50.0, "decoys")
    alone = statistics.shared([own], "samples")
    assert (alone.value, alone.source) == (2.0, "samples")
    assert alone.doubt(1.0) == pytest.approx(own.doubt(1.0), rel=0.03)
    spread = [statistics.kappa_of_ratio(100, expected, "decoys") for expected in (25.0, 50.0, 100.0)]
    together = statistics.shared(spread, "records")
    assert together.value == 2.0
    pair = statistics.shared(spread[:2], "samples")
    assert pair.doubt(1.0) == pytest.approx(np.log(2) ** 2 / 2 + own.doubt(1.0), rel=0.01)
    # The variance of ln 4, ln 2 and ln 1, and that of each.
    assert together.doubt(1.0) == pytest.approx(np.log(2) ** 2 + own.doubt(1.0), rel=0.01)
    rng = np.random.default_rng(14)
    p = [falsely_shared(rng) for _ in range(2_000)]
    # An interval between whole ranks of twelve epitopes is rough: 0.063 to 0.087 with four seeds.
    assert np.mean(np.array(p) <= 0.05) < 0.1


def falsely_shared(rng):
    """The p-value of an epitope of a sample that has κ of another one: 0.25 were at most 0.05."""
    of_other = np.full(12, 2.5)
    kappa = statistics.shared([statistics.kappa_of_epitopes(rng.poisson(of_other), of_other)], "samples")
    expected = kappa.value * np.array([100.0])
    return statistics.tail(rng.poisson([100]), expected, 1.0, [None], kappa.doubt(1.0))[0][0]


def test_comparing_a_sample_with_others_knows_that_both_are_counted():
    """Of 15 and 300 expected hits with one κ, a fifth had p < 0.001, as κ of the others was taken for exact."""
    rng = np.random.default_rng(15)
    few, many = rng.poisson(15, 20_000), rng.poisson(300, 20_000)
    p = two_rates_tail(many, np.full(20_000, 300.0), few, np.full(20_000, 15.0))
    assert (p < DIFFERS).mean() < 2 * DIFFERS
    assert (p < 0.05).mean() == pytest.approx(0.05, abs=0.02)
    for found, expected in ((1, 0.3), (2, 0.01), (7, 5.0)):
        share = expected / (expected + 0.2)
        told = two_rates_tail(np.array([found]), np.array([expected]), np.array([1]), np.array([0.2]))
        assert told[0] == pytest.approx(stats.binom.sf(found - 1, found + 1, share), rel=1e-9)
    assert two_rates_tail(np.array([0]), np.zeros(1), np.array([3]), np.array([2.0])) == [1.0]
    assert two_rates_tail(np.array([60]), np.array([15.0]), np.array([300]), np.array([300.0])) < 1e-9


def test_the_doubt_of_kappa():
    """That of a Poisson number is one over its mean, times the dispersion; the median of epitopes has this already."""
    kappa = statistics.kappa_of_ratio(400, 200.0, "decoys")
    assert (kappa.value, kappa.source) == (2.0, "decoys")
    ends = [stats.chi2.ppf(0.025, 800) / 400, stats.chi2.ppf(0.975, 802) / 400]
    assert (kappa.low, kappa.high) == pytest.approx(ends)
    assert statistics.HitKappa(2.0, 1.0).doubt(1.0) == statistics.HitKappa(2.0, None, 3.0).doubt(1.0) == 0
    assert kappa.doubt(1.0) == pytest.approx(1 / 400, rel=0.03)
    assert kappa.doubt(3.0) == pytest.approx(3 * kappa.doubt(1.0))
    rng, mean = np.random.default_rng(12), np.full(64, 25.0)
    medians = [statistics.kappa_of_epitopes(rng.poisson(mean), mean) for _ in range(400)]
    told = np.mean([own.doubt(1.0) for own in medians])
    # 1.04 to 1.25 times as much with four seeds: the ends of a median's interval are at whole ranks.
    assert told == pytest.approx(np.var([own.value for own in medians]), rel=0.3)
    assert medians[0].doubt(2.0) == medians[0].doubt(1.0)
    assert statistics.HitKappa(2.0).doubt(3.0) == 0
    assert statistics.kappa_of_ratio(9, 3.0, "decoys") is None
    assert statistics.kappa_of_ratio(10, 0.0, "decoys") is None


@pytest.mark.parametrize("kappa", [0.6, 1.0, 4.0])
def test_the_median_of_ratios_is_kappa(kappa):
    """Also of epitopes with few hits, of which a Poisson number has its median below its mean."""
    rng = np.random.default_rng(6)
    expected = rng.uniform(3, 8, 200_000)
    found = statistics.kappa_of_epitopes(rng.poisson(kappa * expected), expected)
    assert found.value == pytest.approx(kappa, rel=0.015)


@pytest.mark.parametrize(("epitopes", "expected", "tell"), [(10, 2.0, True), (9, 2.0, False), (10, 1.99, False)])
def test_the_fewest_epitopes_that_tell_kappa(epitopes, expected, tell):
    """Ten, of each of which chance makes two hits."""
    found = statistics.kappa_of_epitopes(np.full(epitopes, 4), np.full(epitopes, expected))
    assert (found is not None) == tell


@pytest.mark.parametrize("kappa", [0.02, 50])
def test_kappa_of_a_sum_far_from_one(kappa):
    expected = np.random.default_rng(7).random(100) * 0.1
    found = float((1 - np.exp(-kappa * expected)).sum())
    assert statistics.kappa_of_sum(found, expected) == pytest.approx(kappa, rel=1e-8)
    assert [statistics.kappa_of_sum(found, expected) for found in (0, len(expected))] == [0.001, 1000]


def test_kappa_that_differs_between_classes():
    rng = np.random.default_rng(5)
    mean = rng.random(30) * 40
    p = [statistics.difference(rng.poisson(1.4 * mean), mean, 1.0).p_value for _ in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3
    differs = np.where(np.arange(30) < 15, 1.0, 1.8)
    p = [statistics.difference(rng.poisson(differs * mean), mean, 1.0).p_value for _ in range(50)]
    assert max(p) < DIFFERS
    found = rng.poisson(differs * mean)
    whole = statistics.difference(found, mean, 1.0)
    assert statistics.difference(found, mean, 2.0).chi_square == pytest.approx(whole.chi_square / 2)
    shares = found.sum() * mean / mean.sum()
    enough = shares >= 5
    pooled = [np.append(values[enough], values[~enough].sum()) for values in (found, shares)]
    assert whole.p_value == pytest.approx(stats.chisquare(*pooled).pvalue)
    common = statistics.difference(np.array([30, 50]), np.array([10.0, 10.0]), 1.0)
    assert common.p_value == pytest.approx(stats.chisquare([30, 50]).pvalue), "no class is too small"
    assert statistics.difference(found, mean * 1e-9, 1.0).p_value == pytest.approx(whole.p_value), "only shares count"
    assert statistics.difference(np.array([3]), np.array([1.0]), 1.0).p_value == 1
    assert statistics.difference(np.zeros(4, int), np.ones(4), 1.0).p_value == 1


def test_false_discovery_rates_by_a_loop():
    rng = np.random.default_rng(3)
    all_, chance = rng.integers(0, 30, 500).astype(float), rng.random(500) * 0.1
    hits = all_[rng.random(500) < 0.1]
    rates = statistics.false_discovery_rates(hits, all_, chance)
    ratios = {t: chance[all_ <= t].sum() / (hits <= t).sum() for t in hits}
    for own, rate in zip(hits, rates, strict=True):
        assert rate == pytest.approx(min(1, min(value for t, value in ratios.items() if t >= own)), rel=1e-12)


@pytest.mark.parametrize(
    ("called", "of_decoys", "passes"),
    [(6, 1, True), (1, 1, True), (0, 0, True), (2, 2, False), (10, 4, False), (200, 10, True), (200, 20, False)],
)
def test_as_many_decoys_are_called_as_the_rate_allows(called, of_decoys, passes):
    assert statistics.decoys_pass(called, of_decoys, 0.05) == passes
    assert passes == (stats.binom.sf(of_decoys - 1, called, 0.05) >= 0.01)
