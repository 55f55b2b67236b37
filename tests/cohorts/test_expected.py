"""hpcvdj.cohorts.expected against libraries, naive sums and draws."""

import itertools

import numpy as np
import pytest
from scipy import optimize, stats

from hpcvdj.chance.depth import GRID, HIGHEST, LOWEST, Draws, on_grid
from hpcvdj.cohorts.expected import Lots, Numbers, band, bootstrapped, lots_of, share_interval, survivors_share
from hpcvdj.cohorts.settings import SMALLEST_Q
from hpcvdj.errors import InputError

GRID_ERROR = 2e-3
"""Of linear interpolation between grid points; 1.4e-3 was found, for sequences that nearly all individuals have."""

NO_LOTS = Lots(0.0, 0.0)
"""It does not matter which sequences survive."""

SIZES = np.array([5_000, 20_000, 700, 20_000, 60_000])


@pytest.fixture(scope="module")
def numbers():
    return Numbers(SIZES)


def as_deep(log_q):
    """As many recombinations at any q."""
    return 0.0


def held_by(sizes, p):
    """P(0, 1, … individuals have a sequence of probability p), by all subsets."""
    has = -np.expm1(-sizes * p)
    out = np.zeros(len(sizes) + 1)
    for subset in itertools.product((0, 1), repeat=len(sizes)):
        out[sum(subset)] += np.prod(np.where(subset, has, np.exp(-sizes * p)))
    return out


def zipf(sequences=600, power=1.2):
    """Probabilities of a small world of sequences."""
    p = np.arange(1.0, sequences + 1) ** -power
    return p / p.sum()


@pytest.mark.parametrize("log_p", [-30.0, -12.0, -9.5, -7.0, -2.0])
def test_the_number_of_individuals_is_poisson_binomial(numbers, log_p):
    place = int(np.argmin(abs(GRID - log_p)))
    own = numbers.chance[place]
    np.testing.assert_allclose(own, held_by(SIZES, np.exp(GRID[place])), rtol=1e-9, atol=1e-300)
    assert own.sum() == pytest.approx(1, abs=1e-12)


def test_equal_sizes_are_binomial():
    own = Numbers(np.full(7, 1_000))
    for place in (3_000, 3_400, 3_700):
        has = -np.expm1(-1_000 * np.exp(GRID[place]))
        np.testing.assert_allclose(own.chance[place], stats.binom.pmf(np.arange(8), 7, has), rtol=1e-8, atol=1e-200)


def test_the_order_of_individuals_changes_no_digit(numbers):
    other = Numbers(SIZES[[3, 1, 4, 0, 2]])
    assert np.array_equal(other.chance, numbers.chance)
    log_p = np.linspace(-40, -3, 100)
    assert np.array_equal(other.expected(log_p), numbers.expected(log_p))


def every(p, factor=1.0):
    """All sequences of a world in place of draws: each with its share."""
    weight = p * factor
    return Draws(np.log(weight), weight)


def test_spectrum_and_overlap_are_the_naive_sums(numbers):
    p = zipf()
    for q in (1.0, 0.3):
        weights = every(p).on_grid(np.log(q))
        naive = q * sum(held_by(SIZES, one / q) for one in p)
        np.testing.assert_allclose(numbers.spectrum(weights)[1:], naive[1:], rtol=GRID_ERROR, atol=0.02)
        has = -np.expm1(-np.outer(SIZES, p / q))
        both = q * has @ has.T
        np.fill_diagonal(both, q * has.sum(axis=1))
        np.testing.assert_allclose(numbers.overlap(weights), both, rtol=GRID_ERROR)
        # All sequences that are seen, and all that are seen with each individual.
        spectrum = numbers.spectrum(weights)[1:]
        assert spectrum.sum() == pytest.approx(q * (-np.expm1(-SIZES.sum() * p / q)).sum(), rel=GRID_ERROR)
        assert spectrum @ np.arange(1, 6) == pytest.approx(q * has.sum(), rel=GRID_ERROR)


def test_two_individuals():
    p, own = zipf(), Numbers(SIZES[:2])
    spectrum = own.spectrum(every(p).on_grid(0.0))
    naive = (np.expm1(-SIZES[0] * p) * np.expm1(-SIZES[1] * p)).sum()
    assert spectrum[2] == pytest.approx(naive, rel=GRID_ERROR)
    assert own.overlap(every(p).on_grid(0.0))[0, 1] == pytest.approx(spectrum[2], rel=1e-12)


def test_a_factor_changes_the_probabilities(numbers):
    p = zipf()
    factor = np.random.default_rng(1).gamma(2.0, 0.5, len(p))
    factor /= p @ factor
    naive = sum(held_by(SIZES, one) for one in p * factor)
    np.testing.assert_allclose(numbers.spectrum(every(p, factor).on_grid(0.0))[1:], naive[1:], rtol=GRID_ERROR)
    same = every(p, 1.0)
    assert np.array_equal(same.on_grid(0.0), Draws(np.log(p) + np.log(np.ones(len(p))), p).on_grid(0.0))


def test_p_values(numbers):
    rng = np.random.default_rng(2)
    log_p, holders = rng.uniform(-45, -3, 300), rng.integers(1, 6, 300)
    found = numbers.p_values(log_p, holders)
    for value, own, number in zip(found, log_p, holders, strict=True):
        chance = held_by(SIZES, np.exp(own))
        assert value == pytest.approx(chance[number:].sum() / chance[1:].sum(), rel=2e-3)
    assert (found[holders == 1] == 1).all()
    assert numbers.p_values(np.array([-1e9, 1e9]), np.array([5, 5])).tolist() == pytest.approx([0, 1])


def test_expected_individuals_and_the_probability_behind_a_number(numbers):
    log_p = np.array([-20.0, -10.0, -5.0])
    naive = [(-np.expm1(-SIZES * np.exp(own))).sum() for own in log_p]
    np.testing.assert_allclose(numbers.expected(log_p), naive, rtol=1e-13)
    back = numbers.log_p_of_holders()
    np.testing.assert_allclose(numbers.expected(back[1:5]), [1, 2, 3, 4], rtol=1e-8)
    assert numbers.expected(back[5:]) == pytest.approx(4.5), "a lower bound, for there is no probability for all"


@pytest.mark.parametrize("sizes", [[500, 50_000], [3, 6_000, 6_000, 6_000], [1, 1, 1e7], [4e4] * 9, [7, 0, 7], [5]])
def test_the_probability_of_so_many_holders_of_unequal_depth(sizes):
    """Newton's steps overshot where few individuals are left that may have the sequence: the effect was no number."""
    numbers, held = Numbers(np.array(sizes, dtype=float)), sum(size > 0 for size in sizes)
    back = numbers.log_p_of_holders()
    assert np.isnan(back).tolist() == [True, *[False] * held, *[True] * (len(sizes) - held)]
    wanted = np.minimum(np.arange(1, held + 1), held - 0.5)
    np.testing.assert_allclose(numbers.expected(back[1 : held + 1]), wanted, rtol=1e-9)


def test_the_grid_keeps_its_ends():
    place, share = on_grid(np.array([-np.inf, LOWEST, HIGHEST, 99.0, LOWEST + 0.03]))
    assert place.tolist() == [0, 0, len(GRID) - 2, len(GRID) - 2, 1]
    assert share.tolist() == pytest.approx([0, 0, 1, 1, 0.5])


@pytest.mark.parametrize("truth", [0.05, 0.3, 0.9])
def test_the_share_of_survivors_is_found(numbers, truth):
    p = zipf(100_000, 0.8)
    rng = np.random.default_rng(3)
    alive = rng.random(len(p)) < truth
    held = sum((rng.random(len(p)) < -np.expm1(-size * p * alive / truth)).astype(int) for size in SIZES)
    observed = np.bincount(held, minlength=6)
    q, at_bound = survivors_share(observed, numbers, every(p), as_deep)
    assert not at_bound
    assert q == pytest.approx(truth, rel=0.1)


@pytest.mark.parametrize(("truth", "before"), [(0.3, 0.247), (0.9, 0.551)])
def test_public_sequences_do_not_decide_the_share(truth, before, monkeypatch):
    """Four sequences in 26 of 60 people, where next to none are expected: q came out as `before`."""
    numbers, draws = Numbers(np.full(60, 2_000.0)), Draws(np.log(np.full(9, 2e-8)), np.full(9, 1 / 9))
    observed = np.rint(numbers.spectrum(draws.on_grid(np.log(truth)))).astype(int)
    assert numbers.spectrum(draws.on_grid(0.0))[26] < 1e-12
    assert survivors_share(observed, numbers, draws, as_deep)[0] == pytest.approx(truth, rel=0.01)
    observed[26] += 4
    # They are 4 of 157 shared sequences, or of 468.
    assert survivors_share(observed, numbers, draws, as_deep)[0] == pytest.approx(truth, rel=0.03)
    monkeypatch.setattr("hpcvdj.cohorts.expected.FEWEST_IN_CLASS", -1.0)
    assert survivors_share(observed, numbers, draws, as_deep)[0] == pytest.approx(before, abs=0.001)


@pytest.mark.parametrize("growth", [0.0, 0.5])
def test_deeper_individuals_are_those_with_more_recombinations(numbers, growth):
    """The same q and interval as of tables for the larger numbers, also if these grow while q becomes smaller."""
    p = zipf(20_000, 0.9)
    deep, draws = Numbers(3 * SIZES), every(p)
    observed = np.rint(deep.spectrum(draws.on_grid(np.log(0.6)))).astype(int)

    def grown(log_q):
        return growth * (np.log(0.6) - log_q)

    def deeper(log_q):
        return np.log(3) + grown(log_q)

    q = survivors_share(observed, deep, draws, grown)[0]
    assert q == pytest.approx(0.6, rel=2e-3)
    assert survivors_share(observed, numbers, draws, deeper)[0] == pytest.approx(q, rel=1e-6)
    # As of other draws, from which three times the recombinations make these numbers.
    redrawn = 3 * bootstrapped(draws, np.log(q / 3), 1)
    expected = share_interval(observed, deep, draws, q, bootstrapped(draws, np.log(q), 1), grown, NO_LOTS)
    assert share_interval(observed, numbers, draws, q, redrawn, deeper, NO_LOTS) == pytest.approx(expected, rel=1e-4)
    assert expected[0] < q < expected[1]


@pytest.mark.parametrize("growth", [0.0, 0.5])
def test_the_scatter_of_few_draws_is_that_of_q_fitted_with_others(numbers, growth):
    """The number of all shared sequences hardly depends on q here: divided by its growth, the scatter was 1.1."""
    p, rng = zipf(20_000, 0.9), np.random.default_rng(1)
    few = rng.choice(len(p), 500, p=p)
    draws, at = Draws(np.log(p[few]), np.full(500, 1 / 500)), np.log(0.6)
    observed = np.rint(numbers.spectrum(draws.on_grid(at))).astype(int)

    def grown(log_q):
        return growth * (at - log_q)

    def below(redrawn):
        return at - np.log(share_interval(observed, numbers, draws, 0.6, redrawn, grown, NO_LOTS)[0])

    others = (Draws(np.log(p[rng.choice(few, 500)]), draws.weight) for _ in range(60))
    fitted = [np.log(survivors_share(observed, numbers, other, grown)[0]) for other in others]
    spread = np.sqrt(below(bootstrapped(draws, at, 1)) ** 2 - below(np.array([draws.on_grid(at)] * 2)) ** 2)
    # Of 60 fits, the standard deviation has an error of 9 %.
    assert spread / 1.96 == pytest.approx(np.std(fitted), rel=0.27)


def test_a_share_for_which_there_are_not_enough_junctions(numbers):
    """It is never fitted, and no end of an interval."""
    p = zipf(20_000, 0.9)
    draws = every(p)
    observed = np.rint(numbers.spectrum(draws.on_grid(np.log(0.3)))).astype(int)

    def deeper(log_q):
        return 0.0 if log_q > np.log(0.5) else np.inf

    q, at_bound = survivors_share(observed, numbers, draws, deeper)
    assert 0.5 <= q < 0.6
    assert not at_bound
    low, high = share_interval(observed, numbers, draws, q, bootstrapped(draws, np.log(q), 1), deeper, NO_LOTS)
    assert 0.45 < low <= q <= high


def intervals(numbers, truth, few):
    """q and its interval of 60 cohorts, with the right probabilities, or with 2,000 draws."""
    p = zipf(20_000, 0.9)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        alive = rng.random(len(p)) < truth
        held = sum((rng.random(len(p)) < -np.expm1(-size * p * alive / truth)).astype(int) for size in SIZES)
        draws = every(p)
        if few:
            draws = Draws(np.log(p[rng.choice(len(p), 2_000, p=p)]), np.full(2_000, 1 / 2_000))
        observed = np.bincount(held, minlength=6)
        q, _ = survivors_share(observed, numbers, draws, as_deep)
        yield q, share_interval(observed, numbers, draws, q, bootstrapped(draws, np.log(q), 1), as_deep, NO_LOTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "few"), [pytest.param(0.4, False, marks=pytest.mark.exhaustive), (0.4, True), (1.0, True)]
)
def test_the_interval_of_the_share_has_it_as_often_as_it_says(numbers, truth, few):
    found = list(intervals(numbers, truth, few))
    has = [low <= truth <= high for _, (low, high) in found]
    # Fewer than 51 of 60 are improbable (2 in 1,000) if intervals have it 95 times of 100; so are 60, but at the bound.
    assert 51 <= sum(has) < 60 + (truth == 1)
    assert all(low <= q <= high <= 1 for q, (low, high) in found)
    if truth < 1:
        widths = [np.log(high / low) for _, (low, high) in found]
        assert np.std([np.log(q) for q, _ in found]) == pytest.approx(np.median(widths) / (2 * 1.96), rel=0.2)


def test_lots_lack_what_poisson_numbers_have():
    lots = Lots(0.02, 0.005)
    assert lots.variance(1.0) == 0
    assert lots.variance(0.9) == 0, "Poisson's variance has more"
    assert lots.variance(0.5) == pytest.approx(0.02 - 0.005)
    assert lots.variance(0.25) == pytest.approx(0.06 - 0.005)


def test_lots_make_an_interval_wider_by_the_variance_at_its_ends(numbers):
    p = zipf(20_000, 0.9)
    draws = every(p)
    observed, redrawn = (
        np.rint(numbers.spectrum(draws.on_grid(np.log(0.6)))).astype(int), bootstrapped(draws, np.log(0.6), 1)
    )  # fmt: skip

    def squares(lots):
        ends = share_interval(observed, numbers, draws, 0.6, redrawn, as_deep, lots)
        return [(np.log(end / 0.6) ** 2, end) for end in ends]

    lots = Lots(0.005, 0.001)
    for (with_lots, end), (alone, _) in zip(squares(lots), squares(NO_LOTS), strict=True):
        assert with_lots - alone == pytest.approx(1.96**2 * lots.variance(end), rel=1e-3)
    assert squares(Lots(9.0, 0.0))[0][1] == pytest.approx(SMALLEST_Q)
    assert 0.99 < squares(Lots(9.0, 0.0))[1][1] < 1, "if all survive, there are no lots"


def test_lots_matter_where_few_sequences_make_much(numbers):
    """And more if several sequences survive together; of one lot for all, q is the share that survives."""
    p, rng = zipf(20_000, 0.9), np.random.default_rng(1)
    drawn = rng.choice(len(p), 100_000, p=p)
    draws = Draws(np.log(p[drawn]), np.full(len(drawn), 1 / len(drawn)))

    def junctions(log_q, log_deeper):
        return numbers.spectrum(draws.on_grid(log_q - log_deeper)) @ np.arange(6) * np.exp(log_deeper)

    def deeper(log_q):
        """For the same number of distinct junctions at any q."""
        at = np.log(0.4)
        return optimize.brentq(lambda log_deeper: junctions(log_q, log_deeper) - junctions(at, 0.0), -1, 1)

    def lots(spelled):
        return lots_of(numbers, draws, draws, spelled, 0.4, deeper)

    alone, together = lots(drawn), lots(drawn // 10)
    assert 0 < alone.counted < alone.squares < together.squares
    assert lots(np.zeros(len(drawn), dtype=int)).squares < 0.02 * together.squares
    even = Draws(np.full(100_000, -18.0), np.full(100_000, 1e-5))
    rare = lots_of(numbers, even, even, np.arange(100_000), 0.4, as_deep)
    assert rare.squares == 0
    assert rare.counted < 1e-3 * alone.counted


def test_lots_do_not_depend_on_the_depth_with_which_others_are_compared(numbers):
    p, rng = zipf(20_000, 0.9), np.random.default_rng(2)
    drawn = rng.choice(len(p), 50_000, p=p)
    draws = Draws(np.log(p[drawn]), np.full(len(drawn), 1 / len(drawn)))
    deep = lots_of(Numbers(3 * SIZES), draws, draws, drawn, 0.4, as_deep)
    same = lots_of(numbers, draws, draws, drawn, 0.4, lambda _: np.log(3))
    assert (same.squares, same.counted) == pytest.approx((deep.squares, deep.counted), rel=1e-3)


def test_no_lots_where_nothing_is_shared():
    draws = every(np.full(50, 0.02))
    assert lots_of(Numbers(np.zeros(3)), draws, draws, np.arange(50), 0.4, as_deep) == NO_LOTS


def test_the_interval_of_a_share_of_few_sequences(numbers):
    """By the likelihood ratio of Poisson numbers: nothing is so improbable if so many more are expected."""
    draws, few = every(np.full(20_000, 1 / 20_000)), Numbers(SIZES / 1_000)
    observed = np.array([0, 9, 0, 0, 0, 0])
    low, high = share_interval(observed, few, draws, 1.0, bootstrapped(draws, 0.0, 1), as_deep, NO_LOTS)
    assert high == 1
    shared = [few.spectrum(draws.on_grid(log_q))[2:].sum() for log_q in (np.log(low), 0.0)]
    assert shared[1] < 1
    assert shared[0] - shared[1] == pytest.approx(stats.chi2(1).ppf(0.95) / 2, rel=1e-6)
    draws, none = every(zipf(20_000, 0.9)), Numbers(SIZES / 1e6)
    interval = share_interval(observed, none, draws, 1.0, bootstrapped(draws, 0.0, 1), as_deep, NO_LOTS)
    assert interval == pytest.approx((SMALLEST_Q, 1)), "any share explains it"


def test_a_share_at_its_bounds(numbers):
    p = zipf(100_000, 0.8)
    expected = numbers.spectrum(every(p).on_grid(0.0))
    less = np.rint(expected * [1, 1, 0.7, 0.6, 0.5, 0.4]).astype(int)
    assert survivors_share(less, numbers, every(p), as_deep) == (1.0, True)
    assert survivors_share(np.array([0, 5, 0, 0, 0, 0]), numbers, every(p), as_deep) == (1.0, True), "nothing is shared"
    with pytest.raises(InputError, match="more sequences are shared than selection explains"):
        survivors_share(
            np.array([0, 10, 1_000, 0, 0, 0]), numbers, Draws(np.full(9, -25.0), np.full(9, 1 / 9)), as_deep
        )


def test_the_band_is_that_of_other_draws(numbers):
    p = zipf()
    cases = []
    for seed in range(60):
        drawn = np.random.default_rng(seed).choice(len(p), 2_000, p=p)
        draws = Draws(np.log(p[drawn]), np.full(2_000, 1 / 2_000))
        cases.append(numbers.spectrum(draws.on_grid(0.0))[1:])
    low, high = band(numbers, bootstrapped(draws, 0.0, 1))
    expected = 2 * 1.96 * np.std(cases, axis=0)
    np.testing.assert_allclose((high - low)[1:], expected, rtol=0.4)
    again = band(numbers, bootstrapped(draws, 0.0, 1))
    assert np.array_equal(low, again[0])
