"""The figure of `hpcvdj convergence`: the share of public junctions by their score, and the ROC curves."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.sharing.convergence import LENGTH, Level
from hpcvdj.sharing.ranking import Z, auc, roc_curve
from hpcvdj.storage.plots import COLOURS, pyplot, save

BINS_PER_DECADE = 4

FEWEST = 20
"""A bin of fewer junctions is joined to the one below."""


def draw(levels: list[Level], target: Path, public: int, max_n: int, *, overwrite: bool = False) -> None:
    """Draw a row of two panels for each level to `target` (.png or .svg)."""
    figure, axes = pyplot().subplots(
        len(levels), 2, figsize=(10, 4.2 * len(levels)), layout="constrained", squeeze=False
    )
    for (left, right), level in zip(axes, levels, strict=True):
        positive = level.column("individuals") >= public
        counted = f", n-lengths 0-{max_n}" if "weight" in level.score else ""
        left.set(
            title=f"{level.name} junctions ({len(level):,})",
            xlabel=f"{level.score}{counted}",
            ylabel=f"in {public} individuals or more, %",
        )
        _draw_share(left, level, positive)
        _draw_roc(right, level, positive)
        for panel in (left, right):
            panel.spines[["top", "right"]].set_visible(False)
    save(figure, target, overwrite=overwrite)


def bins(
    score: NDArray[Any], positive: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Median score, share of positives and number of junctions of bins [bins] of a quarter of a decade.

    Junctions of score 0 have a bin of their own.  score numbers >= 0 [junctions]; positive bool [junctions].
    """
    some = score > 0
    steps = np.floor(np.log10(score[some]) * BINS_PER_DECADE).astype(np.int64)
    number = np.zeros(len(score), np.int64)
    number[some] = steps - steps.min(initial=0) + 1
    sizes = np.bincount(number)
    for k in range(len(sizes) - 1, 0, -1):
        below = np.flatnonzero(sizes[:k])
        if 0 < sizes[k] < FEWEST and below.size:
            number[number == k] = below[-1]
            sizes[below[-1]] += sizes[k]
            sizes[k] = 0
    used = np.flatnonzero(sizes)
    medians = np.array([np.median(score[number == k]) for k in used])
    return medians, np.array([positive[number == k].mean() for k in used]), sizes[used]


def wilson(share: NDArray[np.float64], count: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's 95 % intervals of shares of `count` (Journal of the American Statistical Association 22, 1927)."""
    middle = (share + Z**2 / (2 * count)) / (1 + Z**2 / count)
    half = Z / (1 + Z**2 / count) * np.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    return middle - half, middle + half


def _draw_share(axes: Any, level: Level, positive: NDArray[np.bool_]) -> None:
    medians, share, count = bins(level.scores[level.score], positive)
    low, high = wilson(share, count)
    spread = 100 * np.maximum([share - low, high - share], 0)
    axes.errorbar(medians, 100 * share, spread, marker="o", color=COLOURS[0], capsize=2, linewidth=1.2)
    # Linear only between 0 and the smallest score, in a tenth of the axis.
    least, most = medians[medians > 0].min(initial=1), medians.max(initial=1)
    axes.set_xscale("symlog", linthresh=least, linscale=max(0.5, np.log10(most / least) / 10))
    axes.xaxis.get_major_locator().set_params(numticks=6)
    axes.set_xlim(left=-least / 4)
    axes.set_ylim(bottom=0)


def _draw_roc(axes: Any, level: Level, positive: NDArray[np.bool_]) -> None:
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
    for colour, (name, score) in zip(COLOURS[: len(level.scores)], level.scores.items(), strict=True):
        area = auc(score, positive)
        if area is None:
            axes.text(0.5, 0.5, "all junctions are public, or none", ha="center", va="center")
            break
        low, high = area.interval
        style = "--" if name == LENGTH else "-"
        label = f"{name}: {area.area:.3f} ({low:.3f}–{high:.3f})"
        axes.plot(*roc_curve(score, positive), color=colour, linestyle=style, linewidth=1.4, label=label)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, loc="lower right", fontsize="small", title="AUC (95 % interval, DeLong)")
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1), aspect="equal")
