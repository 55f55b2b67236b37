"""Histograms of pathways beside each other, as a heatmap with medians."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hpcvdj.report.figures.scales import SCALE, codon_ticks, colourbar, decades, log_norm
from hpcvdj.report.figures.style import INK, QUIET
from hpcvdj.report.survey import BINS_PER_DECADE, FINE, coarse


def common_columns(fine: NDArray[np.int64]) -> list[int]:
    """The columns of int64 [columns, fine bins + 1] with a thousandth of all: a median of a handful says little."""
    sizes = fine.sum(axis=1)
    return [int(k) for k in np.flatnonzero(sizes >= max(1, sizes.sum() / 1000))]


def median_bin(fine: NDArray[np.int64]) -> int | None:
    """The fine bin that holds the (lower) median of a fine histogram, int64 [fine bins + 1]; None of nothing."""
    ends = np.cumsum(fine)
    return int(np.searchsorted(ends, (ends[-1] + 1) // 2)) if ends[-1] else None


def in_words(fine_bin: int | None) -> str:
    if fine_bin is None:
        return "unknown"
    if fine_bin == 0:
        return "0"
    middle = 10 ** ((fine_bin - 0.5) / (BINS_PER_DECADE * FINE))
    return f"about {middle:,.0f}" if middle >= 10 else f"about {middle:.0f}"


def draw_spread(
    figure: Figure, fine: NDArray[np.int64], bins: int, places: NDArray[np.int64], label: str, *, per_column: bool
) -> list[int | None]:
    """A heatmap of histograms, fine int64 [columns, fine bins + 1], with medians; returns their fine bins.

    Columns with fewer than a thousandth of all have no median drawn.
    """
    axes = figure.subplots()
    counts = coarse(fine)[:, : bins + 1].astype(np.float64)
    whole = np.maximum(1, counts.sum(axis=1, keepdims=True)) if per_column else max(1.0, counts.sum())
    shares = np.ma.masked_equal(100 * counts / whole, 0)
    # The square root, so that the many without a pathway leave something to see of the others.
    norm = PowerNorm(0.5, 0, 100) if per_column else log_norm([shares.filled(0)])
    edges = np.concatenate([places[: len(fine)], [places[len(fine) - 1] + 1]]) - 0.5
    axes.pcolormesh(edges, np.arange(bins + 1), shares[:, 1:].T, cmap=SCALE, norm=norm)
    axes.pcolormesh(edges, [-2, -1], shares[:, :1].T, cmap=SCALE, norm=norm)
    axes.axhline(-0.5, color=QUIET, linewidth=0.8, linestyle=":")
    medians = [median_bin(column) for column in fine]
    enough = common_columns(fine)
    for place, found in zip(places, medians, strict=False):
        if found is not None and place - places[0] in enough:
            height = (found - 0.5) / FINE if found else -1.5
            axes.plot(place, height, "o", markersize=3.5, markerfacecolor="white", markeredgecolor=INK)
    ticks, labels = decades(bins)
    axes.set(xlabel=label, ylabel="pathways of a junction", yticks=[-1.5, *ticks], ylim=(-2, bins))
    axes.set_yticklabels(["none", *labels])
    axes.set_xlim(places[0] - 0.5, places[-1] + 0.5)
    if per_column:
        axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
    else:
        codon_ticks(axes, int(places[-1] - places[0]))
    colourbar(figure, axes, norm, "share of junctions, %")
    return medians
