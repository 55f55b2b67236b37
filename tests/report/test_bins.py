"""hpcvdj.reports.bins: bins, medians and quantiles are as exact as the module says."""

import numpy as np
import pytest

from hpcvdj.reports.bins import EXACT, FINE, FINE_BINS, Quantiles, Scores, bin_start, doublings, log_bins, median


@pytest.fixture(scope="module")
def values():
    """Numbers of pathways of all sizes, many of them 0 or small."""
    rng = np.random.default_rng(3)
    large = np.floor(10 ** rng.uniform(0, 19, 5000)).astype(np.uint64)
    small = rng.integers(0, 300, 5000).astype(np.uint64)
    return np.concatenate([large, small, np.array([0, 1, 2, 3, 2**20 - 1, 2**20, 2**53, 2**63], np.uint64)])


def test_bins_are_in_the_order_of_values_and_one_percent_wide(values):
    ordered = np.sort(values)
    bins = log_bins(ordered)
    assert (np.diff(bins) >= 0).all()
    assert bins[0] == 0
    assert log_bins(np.full(1, 2**64 - 1, np.uint64))[0] < FINE_BINS
    for value, index in zip(ordered.tolist(), bins.tolist(), strict=True):
        first, last = bin_start(index), bin_start(index + 1) - 1
        assert first <= value <= last or value > 2**52
        assert last - first <= value / FINE
    assert [bin_start(int(k)) for k in log_bins(np.arange(128, dtype=np.uint64))] == list(range(128))


def test_bins_are_shown_as_doublings(values):
    histogram = np.bincount(log_bins(values), minlength=FINE_BINS)
    shown = doublings(histogram)
    assert shown.sum() == len(values)
    assert shown[0] == (values == 0).sum()
    for k in range(1, 64):
        assert shown[k] == ((values >= 2 ** (k - 1)) & (values < 2**k)).sum()


def test_medians(values):
    for chosen in (values, values[values < 256], values[:1], np.zeros(3, np.uint64)):
        true = int(np.sort(chosen)[(len(chosen) - 1) // 2])
        found = median(np.bincount(log_bins(chosen), minlength=FINE_BINS))
        assert found == true if true < 256 else abs(found / true - 1) < 0.01
    assert median(np.zeros(FINE_BINS, np.int64)) is None


def test_quantiles(values):
    quantiles = Quantiles()
    for part in np.array_split(values, 7):
        quantiles.add(part)
    for share in (0.0, 0.1, 0.25, 0.5, 0.75, 0.99, 1.0):
        value, exact = quantiles.quantile(share)
        true = np.quantile(values.astype(float), share)
        assert exact == (true < EXACT)
        assert value == true if exact else abs(value / true - 1) < 0.01


@pytest.mark.parametrize("scale", [1.0, 1e-30])
def test_medians_of_scores(values, scale):
    scored = np.where(values % 5 == 0, 0, values) * scale
    scores = Scores()
    for part in np.array_split(np.append(scored, [np.nan] * 3), 7):
        scores.add(part)
    ordered = np.sort(scored)
    true, found = ordered[(len(ordered) - 1) // 2], scores.median()
    assert found <= true <= found * 1.01
    some = ordered[ordered > 0]
    assert scores.typical() == Scores.bins(some[(len(some) - 1) // 2 :][:1])[0]
    assert Scores.bins(np.array([np.nan, 0.0, 1e-320])).tolist() == [-1, 0, 0]
    assert Scores().median() is None
    only_zeros = Scores()
    only_zeros.add(np.zeros(4))
    assert only_zeros.median() == 0
