"""The figures of `hpcvdj sharing` and `hpcvdj contamination`."""

from pathlib import Path
from typing import Any

import numpy as np

from hpcvdj.cohorts.contamination import Contamination
from hpcvdj.cohorts.ranking import auc, roc_curve
from hpcvdj.cohorts.sharing import Sharing
from hpcvdj.storage.plots import COLOURS, pyplot, save

LENGTH = "length"


def draw_sharing(found: Sharing, target: Path, *, overwrite: bool = False) -> None:
    """Draw the spectrum, observed over expected, and ROC curves to `target` (.png or .svg)."""
    figure, axes = pyplot().subplot_mosaic(
        [["spectrum", "roc"], ["ratio", "roc"]], figsize=(10, 5), layout="constrained", height_ratios=[3, 1]
    )
    _draw_spectrum(axes["spectrum"], axes["ratio"], found)
    _draw_roc(axes["roc"], found)
    for panel in axes.values():
        panel.spines[["top", "right"]].set_visible(False)
    save(figure, target, overwrite=overwrite)


def _draw_spectrum(axes: Any, below: Any, found: Sharing) -> None:
    # Beyond these, less than a hundredth of a sequence is expected, and none was seen.
    some = np.flatnonzero((found.observed > 0) | (found.expected > 0.01))
    number = np.arange(1, max(2, int(some.max(initial=1))) + 1)
    kind = "Q and q" if found.factor else "q"
    axes.fill_between(number, found.low[number], found.high[number], color=COLOURS[0], alpha=0.25, linewidth=0)
    axes.plot(number, found.expected_q1[number], "--", color="0.5", label="expected, q = 1")
    axes.plot(number, found.expected[number], color=COLOURS[0], label=f"expected, {kind} = {found.q:.3g}")
    seen = number[found.observed[number] > 0]
    axes.plot(seen, found.observed[seen], "o", color=COLOURS[1], label="observed")
    axes.set(yscale="log", ylabel="sequences", title=f"{len(found.cohort.individuals):,} individuals")
    axes.set_ylim(bottom=max(0.01, found.expected[number].min() / 2))
    axes.legend(frameon=False, fontsize="small")
    below.axhline(1, color="0.7", linewidth=0.8)
    ratios = found.observed[seen] / found.expected[seen]
    below.plot(seen, ratios, "o", color=COLOURS[1])
    top = 1.2 * max(1, ratios.max(initial=0))
    below.set(
        xlabel="individuals that have a sequence", ylabel="observed/expected", xlim=axes.get_xlim(), ylim=(0, top)
    )
    for panel in (axes, below):
        panel.xaxis.get_major_locator().set_params(integer=True)


def _draw_roc(axes: Any, found: Sharing) -> None:
    scores, public = found.curves
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
    for colour, (name, score) in zip(COLOURS, scores.items(), strict=False):
        area = auc(score, public)
        if area is None:
            axes.text(0.5, 0.5, "no sequence is shared, or all are", ha="center", va="center")
            break
        low, high = area.interval
        label = f"{name}: {area.area:.3f} ({low:.3f}–{high:.3f})"
        style = "--" if name == LENGTH else "-"
        axes.plot(*roc_curve(score, public), style, color=colour, linewidth=1.4, label=label)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, loc="lower right", fontsize="small", title="AUC (95 % interval, DeLong)")
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_title("predictors of two individuals or more")


def draw_contamination(found: Contamination, target: Path, *, overwrite: bool = False) -> None:
    """Draw the rates of all pairs, individuals ordered by group, and carry-over by clone size to `target`."""
    own = found.cohort.individuals
    order = sorted(range(len(own)), key=lambda k: (own[k].group or "", k))
    sized = any(size.clones for size in found.carry_over)
    width = 5 + 0.15 * len(own)
    figure, panels = pyplot().subplots(
        1, 1 + sized, figsize=(width + 4.5 * sized, width), layout="constrained", squeeze=False,
        width_ratios=[width, 4.5][: 1 + sized],
    )  # fmt: skip
    axes = panels[0, 0]
    with np.errstate(divide="ignore"):
        shown = np.log10(found.rate[np.ix_(order, order)])
    shown[~np.isfinite(shown)] = np.nan
    if np.isnan(shown).all():
        axes.text(0.5, 0.5, "no improbable junction is shared", ha="center", va="center", transform=axes.transAxes)
    image = axes.imshow(shown, cmap="viridis")
    figure.colorbar(image, ax=axes, shrink=0.7, label="log10 of shared improbable junctions per pair of junctions")
    names = [own[k].name for k in order]
    axes.set_xticks(range(len(own)), names, rotation=90, fontsize="small")
    axes.set_yticks(range(len(own)), names, fontsize="small")
    for place in range(1, len(own)):
        if own[order[place]].group != own[order[place - 1]].group:
            axes.axhline(place - 0.5, color="0.6")
            axes.axvline(place - 0.5, color="0.6")
    if sized:
        _draw_carry_over(panels[0, 1], found)
    save(figure, target, overwrite=overwrite)


def _draw_carry_over(axes: Any, found: Contamination) -> None:
    places = np.arange(len(found.carry_over))
    for colour, kind, label in ((COLOURS[1], "same_group", "same group"), (COLOURS[0], "other_group", "other groups")):
        rates = [getattr(size, kind) for size in found.carry_over]
        some = [place for place in places if rates[place]]
        if some:
            axes.plot(some, [100 * rates[place] for place in some], "o-", color=colour, label=label)
    axes.set_xticks(places, [size.reads for size in found.carry_over], rotation=45)
    axes.set(xlabel="reads of the clone", ylabel="met in another individual, %")
    if axes.get_legend_handles_labels()[0]:
        axes.set_yscale("log")
        axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
