"""The histogram of pathways per junction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcvdj.report.figures.drawing import Drawing
from hpcvdj.report.figures.scales import bins_shown, decades
from hpcvdj.report.figures.style import SERIES, WIDTH, new_figure, short
from hpcvdj.report.survey import Survey, coarse


def draw_distribution(surveys: Sequence[Survey]) -> Drawing:
    """Histogram of pathways per junction, those without any apart."""
    bins = bins_shown(surveys)
    figure = new_figure(WIDTH, 3.5)
    none, axes = figure.subplots(1, 2, sharey=True, width_ratios=(0.14, 1))
    width = 0.8 / len(surveys)
    for number, one in enumerate(surveys):
        colour, line = SERIES[number]
        shares = 100 * coarse(one.totals) / max(1, one.counted)
        none.bar((number - (len(surveys) - 1) / 2) * width, shares[0], 0.92 * width, color=colour)
        axes.stairs(
            shares[1 : bins + 1], np.arange(bins + 1), color=colour, linestyle=line, linewidth=1.8,
            fill=len(surveys) == 1, label=short(one.name), baseline=0,
        )  # fmt: skip
    none.set(xlim=(-0.6, 0.6), xticks=[0], ylabel="share of junctions, %", ylim=(0, None))
    none.set_xticklabels(["none"])
    places, labels = decades(bins)
    axes.set(xlim=(0, bins), xticks=places, xlabel="pathways of a junction")
    axes.set_xticklabels(labels)
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)
    if len(surveys) > 1:
        figure.legend(loc="outside upper center", ncols=2)
    said = "; ".join(f"{one.name}: {_typical(one)}" for one in surveys)
    return Drawing(
        "pathways_per_junction",
        f"Histogram of pathways per junction on a logarithmic scale, junctions without a pathway apart. {said}.",
        "How many pathways junctions have, all n-lengths counted together; four bins to a factor of ten. "
        f"Junctions without a pathway stand apart, on the left. {said}.",
        figure,
    )


def _typical(one: Survey) -> str:
    if not one.counted:
        return "no junctions"
    median, exact = one.per_junction.quantile(0.5)
    none = one.counted - one.with_pathway
    return (
        f"median {'' if exact else 'about '}{median:,.0f} pathways, at most {one.most:,}; {none:,} of {one.counted:,} "
        f"junctions ({100 * none / one.counted:.2f} %) without any"
    )
