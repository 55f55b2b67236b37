"""Junctions and pathways by CDR3 length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcvdj.report.figures.drawing import Drawing
from hpcvdj.report.figures.scales import bins_shown, codon_ticks
from hpcvdj.report.figures.spread import common_columns, draw_spread, in_words
from hpcvdj.report.figures.style import SERIES, WIDTH, new_figure, short
from hpcvdj.report.survey import Survey


def draw_lengths(surveys: Sequence[Survey]) -> Drawing:
    """How long the CDR3s are."""
    figure = new_figure(WIDTH, 3.5)
    axes = figure.subplots()
    first, last = sizes_shown(surveys)
    said = []
    for number, one in enumerate(surveys):
        colour, line = SERIES[number]
        counts = one.totals_by_size.sum(axis=1)
        shares = 100 * counts / max(1, one.counted)
        fill = len(surveys) == 1
        edges = np.arange(first, last + 2) - 0.5
        # Outlines of single lengths, every third of them high, would hide each other.
        steps = shares[first : last + 1] if fill else by_codon(shares)[first // 3 : last // 3 + 2]
        edges = edges if fill else 3 * np.arange(first // 3, first // 3 + len(steps) + 1) - 1.5
        axes.stairs(
            steps, edges, color=colour, linestyle=line, linewidth=1.8, fill=fill, label=short(one.name), baseline=0
        )
        if one.counted:
            said.append(f"{one.name}: most often {int(counts.argmax())} nt, {shares.max():.1f} % of the junctions")
    axes.set(xlabel="CDR3 length, nucleotides", ylabel="share of junctions, %", ylim=(0, None))
    codon_ticks(axes, last - first)
    if len(surveys) > 1:
        figure.legend(loc="outside upper center", ncols=2)
    words = "; ".join(said) or "no junctions"
    steps_said = ", in steps of three nucleotides" if len(surveys) > 1 else ""
    return Drawing(
        "lengths",
        f"Histogram of CDR3 lengths in nucleotides. {words}.",
        f"How long the CDR3s are, without the codons of Cys 104 and Phe/Trp 118{steps_said}. {words}.",
        figure,
    )


def by_codon(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over lengths 3 k - 1 to 3 k + 1, float64 [lengths] to float64 [codons]."""
    padded = np.zeros(3 * (len(values) // 3 + 2))
    padded[1 : len(values) + 1] = values
    return np.asarray(padded.reshape(-1, 3).sum(axis=1))


def sizes_shown(surveys: Sequence[Survey]) -> tuple[int, int]:
    sizes = np.flatnonzero(sum(one.totals_by_size.sum(axis=1) for one in surveys))
    return (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 1)


def draw_spread_by_size(surveys: Sequence[Survey]) -> list[Drawing]:
    """For each result: the distribution of pathways per junction at each CDR3 length."""
    first, last = sizes_shown(surveys)
    out = []
    for number, one in enumerate(surveys, start=1):
        figure = new_figure(WIDTH, 3.9)
        fine = one.totals_by_size[first : last + 1]
        sizes = np.arange(first, last + 1)
        medians = draw_spread(figure, fine, bins_shown(surveys), sizes, "CDR3 length, nucleotides", per_column=False)
        common = common_columns(fine)
        ends = "no junctions"
        if common:
            low, high = common[0], common[-1]
            ends = f"the median goes from {in_words(medians[low])} at {sizes[low]} nt to {in_words(medians[high])} at "
            ends += f"{sizes[high]} nt"
        alt = f"Heatmap: how many pathways junctions of {one.name} have at each CDR3 length; {ends}."
        caption = (
            f"{short(one.name, 60)}: pathways of a junction, all n-lengths, by the length of its CDR3; {ends}. "
            "Colour: share of all junctions; circles are medians, of lengths that a thousandth of the junctions have."
        )
        out.append(Drawing(f"pathways_by_length_{number}", alt, caption, figure))
    return out
