"""Junctions and pathways by number of n-nucleotides."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hpcvdj.report.figures.drawing import Drawing
from hpcvdj.report.figures.scales import bins_shown, power_or_less
from hpcvdj.report.figures.spread import draw_spread, in_words
from hpcvdj.report.figures.style import SERIES, WIDTH, new_figure, short
from hpcvdj.report.survey import Survey


def n_shown(surveys: Sequence[Survey]) -> int:
    """The last n-length worth showing: the largest that adds junctions or, above 10, until all are reached."""
    last = max((int(np.flatnonzero(one.reached).max(initial=0)) for one in surveys), default=0)
    return min(max(one.max_n for one in surveys), max(10, last + 1))


def draw_reached(surveys: Sequence[Survey]) -> Drawing:
    """Percent of junctions with a pathway of at most so many n-nucleotides."""
    figure = new_figure(WIDTH, 3.5)
    axes = figure.subplots()
    last = n_shown(surveys)
    said = []
    for number, one in enumerate(surveys):
        colour, line = SERIES[number]
        shares = 100 * np.cumsum(one.reached)[: last + 1] / max(1, one.counted)
        axes.plot(shares, color=colour, linestyle=line, marker="o", markersize=4, label=short(one.name))
        said.append(
            f"{one.name}: {shares[0]:.1f} % without any n-nucleotide, {shares[-1]:.1f} % with at most {len(shares) - 1}"
        )
    axes.set(xlabel="n-nucleotides, at most", ylabel="junctions with a pathway, %", ylim=(0, 103))
    _finish(figure, axes, surveys)
    words = "; ".join(said)
    return Drawing(
        "reached_by_n",
        f"Rising curve: share of junctions that recombination reaches with at most so many n-nucleotides. {words}.",
        f"Junctions that have a pathway with at most so many n-nucleotides. {words}.",
        figure,
    )


def _finish(figure: Figure, axes: Axes, surveys: Sequence[Survey]) -> None:
    """Whole numbers, a grid, and a legend if there are several curves."""
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
    axes.grid(axis="y", color="0.88", linewidth=0.8)
    if len(surveys) > 1:
        figure.legend(loc="outside upper center", ncols=2)


def draw_mean_by_n(surveys: Sequence[Survey]) -> Drawing:
    """Mean pathways per junction at each n-length."""
    figure = new_figure(WIDTH, 3.5)
    axes = figure.subplots()
    last = n_shown(surveys)
    said, highest, lowest = [], 1.0, 1.0
    for number, one in enumerate(surveys):
        colour, line = SERIES[number]
        means = np.array([float(ways) for ways in one.by_n[: last + 1]]) / max(1, one.counted)
        some = means > 0
        axes.plot(
            np.flatnonzero(some), np.log10(means[some]), color=colour, linestyle=line, marker="o", markersize=4,
            label=short(one.name),
        )  # fmt: skip
        highest, lowest = max(highest, means.max()), min(lowest, means[some].min(initial=1.0))
        said.append(f"{one.name}: from {means[0]:,.2f} with none to {means[-1]:,.0f} with {len(means) - 1}")
    places = range(int(np.floor(np.log10(lowest))), int(np.ceil(np.log10(highest))) + 1)
    axes.set(xlabel="n-nucleotides", ylabel="pathways per junction, mean", yticks=places)
    axes.set_yticklabels([power_or_less(e) for e in places])
    _finish(figure, axes, surveys)
    words = "; ".join(said)
    return Drawing(
        "mean_by_n",
        f"Curve of the mean number of pathways per junction against the number of n-nucleotides, logarithmic. {words}.",
        f"Pathways of a junction with so many n-nucleotides, mean over all junctions. {words}.",
        figure,
    )


def draw_spread_by_n(surveys: Sequence[Survey]) -> list[Drawing]:
    """For each result: the distribution of pathways per junction at each n-length."""
    last = n_shown(surveys)
    out = []
    for number, one in enumerate(surveys, start=1):
        stop = min(last, one.max_n)
        fine = one.totals_by_n[: stop + 1]
        figure = new_figure(WIDTH, 3.9)
        medians = draw_spread(figure, fine, bins_shown(surveys), np.arange(last + 1), "n-nucleotides", per_column=True)
        alt = (
            f"Heatmap: how many pathways junctions of {one.name} have at each number of n-nucleotides. The median is "
            f"{in_words(medians[0])} without n-nucleotides and {in_words(medians[-1])} with {stop}."
        )
        caption = (
            f"{short(one.name, 60)}: pathways of a junction with exactly so many n-nucleotides. Each column adds up to "
            "100 % of the junctions; circles are medians."
        )
        out.append(Drawing(f"pathways_by_n_{number}", alt, caption, figure))
    return out
