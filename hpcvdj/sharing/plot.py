"""The figure of `hpcvdj convergence`: the share of public junctions by their pathways, and the ROC curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.sharing.convergence import LENGTH, Level
from hpcvdj.sharing.ranking import auc, roc_curve
from hpcvdj.plotting import COLOURS, pyplot, save

BINS_PER_DECADE = 4

FEWEST = 20
"""A bin of fewer junctions is joined to the one below."""

_Z = 1.959964


def draw(levels: list[Level], target: Path, public: int, max_n: int, *, overwrite: bool = False) -> None:
    """Draw a row of two panels for each level to `target` (.png or .svg)."""
    figure, axes = pyplot().subplots(
        len(levels), 2, figsize=(10, 4.2 * len(levels)), layout="constrained", squeeze=False
    )
    for (left, right), level in zip(axes, levels, strict=True):
        _draw_share(left, level, public, max_n)
        _draw_roc(right, level, public)
        for panel in (left, right):
            panel.spines[["top", "right"]].set_visible(False)
    save(figure, target, overwrite=overwrite)


def bins(pathways: NDArray[np.uint64], positive: NDArray[np.bool_]) -> list[tuple[float, float, int]]:
    """(median pathways, share of positives, junctions) of bins of a quarter of a decade, junctions with none apart.

    pathways  uint64 [junctions]; positive bool [junctions]
    """
    if not len(pathways):
        return []
    step = np.floor(np.log10(np.maximum(pathways, 1)) * BINS_PER_DECADE).astype(np.int64)
    place = np.where(pathways > 0, step + 1, 0)
    sizes = np.bincount(place)
    for k in range(len(sizes) - 1, 0, -1):
        if 0 < sizes[k] < FEWEST and (below := np.flatnonzero(sizes[:k])).size:
            place[place == k] = below[-1]
            sizes[below[-1]] += sizes[k]
            sizes[k] = 0
    return [
        (float(np.median(pathways[place == k])), float(positive[place == k].mean()), int(sizes[k]))
        for k in np.flatnonzero(sizes)
    ]


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `count` (Journal of the American Statistical Association 22, 1927)."""
    middle = (share + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * np.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    return float(middle - half), float(middle + half)


def _draw_share(axes: Any, level: Level, public: int, max_n: int) -> None:
    positive = level.individuals >= public
    points = bins(level.columns["pathways_total"], positive)
    x = [point[0] for point in points]
    y = np.array([100 * share for _, share, _ in points])
    ends = [wilson(share, count) for _, share, count in points]
    spread = [[value - 100 * low for value, (low, _) in zip(y, ends, strict=True)],
              [100 * high - value for value, (_, high) in zip(y, ends, strict=True)]]  # fmt: skip
    axes.errorbar(x, y, np.maximum(spread, 0), marker="o", color=COLOURS[0], capsize=2, linewidth=1.2)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)
    summed = "nucleotide_junctions" in level.columns
    axes.set(
        title=f"{level.name} junctions ({len(level):,})",
        xlabel=f"recombination pathways, n-lengths 0-{max_n}" + ", summed" * summed,
        ylabel=f"in {public} individuals or more, %",
    )


def _draw_roc(axes: Any, level: Level, public: int) -> None:
    positive = level.individuals >= public
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
    for colour, (name, score) in zip(COLOURS, level.scores.items(), strict=False):
        area = auc(score, positive)
        if area is None:
            axes.text(0.5, 0.5, "no junction, or each, is public", ha="center", va="center")
            break
        low, high = area.interval
        style = "--" if name == LENGTH else "-"
        label = f"{name}: {area.area:.3f} ({low:.3f}–{high:.3f})"
        axes.plot(*roc_curve(score, positive), color=colour, linestyle=style, linewidth=1.4, label=label)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, loc="lower right", fontsize="small", title="AUC (95 % interval, DeLong)")
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1), aspect="equal")
