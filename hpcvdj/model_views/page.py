"""The page of `hpcvdj models show`: the distributions of a recombination model, drawn."""

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpcvdj.recombination.events import Event, events
from hpcvdj.recombination.germline import SEGMENT_TYPES, SegmentType
from hpcvdj.recombination.models import Array, Insertion, Model
from hpcvdj.recombination.origin import read_facts
from hpcvdj.recombination.possible import able
from hpcvdj.storage.plots import COLOURS, pyplot, save

MOST_D = 3
"""How many D alleles have a panel of joint deletions: those that are chosen most often."""

LINE = 120
"""Letters in a line of the title."""

_STYLE = {
    "font.size": 9, "axes.titlesize": "medium", "axes.spines.top": False, "axes.spines.right": False,
    "figure.titlesize": "medium", "legend.frameon": False,
    # A name may have a dollar sign.
    "text.parse_math": False,
}  # fmt: skip

Errors = Mapping[tuple[str, str, str], float]
"""Standard errors by (event, condition, outcome), as text."""

Row = list[tuple[float, Callable[[Any], None]]]
"""The panels of a row: the relative width of each, and the function that draws it on matplotlib axes."""


@dataclass(frozen=True)
class InferenceRecord:
    """How a model was inferred.

    evaluations  (iteration, log-likelihood per row, log-likelihood per held-out row or nan)
    result       the iteration of the model
    errors       standard errors; empty if there are none
    notes        lines of the title: the number of rows, warnings
    """

    evaluations: Sequence[tuple[int, float, float]]
    result: int
    errors: Errors
    notes: Sequence[str] = ()

    @staticmethod
    def read(folder: Path) -> "InferenceRecord | None":
        """Read the folder of a model of `hpcvdj infer`; None for any other model."""
        # Slow to import.
        from hpcvdj.inference.folder import read_errors, read_trace

        facts, trace = read_facts(folder), [point for point in read_trace(folder) if point.accepted]
        if facts is None or not trace:
            return None
        evaluations = [(point.iteration, point.log_likelihood, point.held_out) for point in trace]
        notes = [f"Inferred from {facts['rows_counted']:,} rows", *facts["warnings"]]
        return InferenceRecord(evaluations, facts["result_of_iteration"], read_errors(folder), notes)


def draw(model: Model, target: Path, inferred: InferenceRecord | None = None, *, overwrite: bool = False) -> None:
    """Draw the page of a model to `target` (.png or .svg), with how it was inferred if that is given."""
    with pyplot().rc_context(_STYLE):
        save(page(model, inferred), target, overwrite=overwrite)


def page(model: Model, inferred: InferenceRecord | None = None) -> Any:
    """A matplotlib figure with the distributions of a model; each row of panels is a subfigure."""
    rows = _rows(model, inferred.errors if inferred else {})
    if inferred:
        rows.append([(1, partial(_convergence, inferred=inferred))])
    figure = pyplot().figure(figsize=(12, 1 + 3 * len(rows)), layout="constrained")
    title = [*textwrap.wrap(f"Recombination model {model.name}", LINE), f"SHA-256 {model.digest}"]
    title += [f"{kind} alleles: {usable(model, kind)}" for kind in SEGMENT_TYPES.values() if model.templates(kind)]
    for note in inferred.notes if inferred else ():
        title += textwrap.wrap(note, LINE)
    figure.suptitle("\n".join(title))
    for part, row in zip(figure.subfigures(len(rows), 1, squeeze=False).flat, rows, strict=True):
        widths, panels = zip(*row, strict=True)
        subplots = part.subplots(1, len(row), squeeze=False, width_ratios=widths).flat
        for panel, axes in zip(panels, subplots, strict=True):
            panel(axes)
    return figure


def usable(model: Model, segment: SegmentType) -> str:
    """Say how many alleles there are, how many can make a junction, and how often one of these is chosen."""
    makers = able(model, segment)
    share = 100 * model.p_segment(segment)[makers].sum()
    number = f"{len(model.templates(segment)):,}, of which {len(makers):,} can make a junction"
    return f"{number}: {share:.2f} % of P({segment})"


def _rows(model: Model, errors: Errors) -> list[Row]:
    by_name = events(model)
    width = {segment: 16 + len(model.templates(segment)) for segment in SEGMENT_TYPES.values()}
    usage = {s: (width[s], partial(_usage, model=model, segment=s, errors=errors)) for s in width}
    deletions: Row = [(1, partial(_deletions, model=model, event=by_name[name])) for name in ("v_3_del", "j_5_del")]
    insertions: Row = [(1, partial(_lengths, model=model, errors=errors))]
    insertions += [(1, partial(_bases, name=name, insertion=i)) for name, i in model.named_insertions.items()]
    if not model.has_d:
        return [[usage["V"]], [usage["J"]], deletions, insertions]
    chosen = np.argsort(-model.p_segment("D"), kind="stable")[:MOST_D]
    joint: Row = [(1, partial(_joint_deletions, model=model, event=by_name["d_del"], index=int(k))) for k in chosen]
    choices: Row = [usage["J"], usage["D"], (width["D"], partial(_d_given_j, model=model))]
    return [[usage["V"]], choices, deletions, joint, insertions]


def _convergence(axes: Any, inferred: InferenceRecord) -> None:
    iterations, *values = zip(*inferred.evaluations, strict=True)
    for colour, series, label in zip(COLOURS, values, ("rows that were counted", "rows held out"), strict=False):
        if not np.isnan(series).all():
            axes.plot(iterations, series, color=colour, marker=".", label=label)
    axes.axvline(inferred.result, color="0.4", linestyle=":", linewidth=0.8, label="this model")
    # The first iterations gain so much that they would hide the others.
    last = np.concatenate([np.array(series)[len(series) // 4 :] for series in values])
    low, high = np.nanmin(last), np.nanmax(last)
    margin = 0.05 * (high - low) + 1e-9
    axes.set(title="Convergence", xlabel="iteration", ylabel="log-likelihood, nats per row")
    axes.set_ylim(low - margin, high + margin)
    axes.legend()
    _whole_numbers(axes.xaxis)


def _usage(axes: Any, model: Model, segment: SegmentType, errors: Errors) -> None:
    """Draw a bar for each allele that is chosen at all, the most frequent first."""
    chance, templates = 100 * model.p_segment(segment), model.templates(segment)
    order = [int(allele) for allele in np.argsort(-chance, kind="stable") if chance[allele] > 0]
    can = set(able(model, segment))
    bars = axes.bar(range(len(order)), chance[order], color=[COLOURS[0] if k in can else "0.7" for k in order])
    _error_bars(axes, chance[order], [(f"{segment.lower()}_choice", "", templates[k].allele) for k in order], errors)
    legend = {allele in can: bar for allele, bar in zip(order, bars, strict=True)}
    if False in legend:
        words = {True: "can make a junction", False: "cannot: not functional, anchor unknown, or always deleted"}
        axes.legend(legend.values(), [words[able] for able in legend])
    axes.set(title=f"{segment} usage", ylabel=f"P({segment}), %", xlim=(-0.6, len(order) - 0.4))
    axes.set_xlabel("alleles with P > 0")
    _label(axes.xaxis, [templates[allele].allele for allele in order])


def _error_bars(axes: Any, percent: Array, keys: Sequence[tuple[str, str, str]], errors: Errors) -> None:
    """Draw two standard errors on both sides of the values at 0, 1, …, where they are known."""
    if errors.keys() & set(keys):
        widths = [200 * errors.get(key, 0.0) for key in keys]
        # A probability is not below 0.
        sides = np.minimum(widths, percent), widths
        axes.errorbar(range(len(keys)), percent, sides, fmt="none", ecolor="black", elinewidth=0.8)


def _d_given_j(axes: Any, model: Model) -> None:
    percent = 100 * model.p_dj / np.maximum(model.p_segment("J"), np.finfo(float).tiny)
    _heatmap(axes, percent.T, "P(D | J), %")
    axes.set_title("D given J")
    _label(axes.xaxis, [template.allele for template in model.d])
    _label(axes.yaxis, [template.allele for template in model.j])


def _label(axis: Any, names: list[str]) -> None:
    """Name the bars or cells of an axis, in letters that are small enough to fit."""
    vertical = axis.axis_name == "y"
    box = axis.axes.get_window_extent()
    points = (box.height if vertical else box.width) * 72 / axis.figure.dpi
    size = max(3.0, min(8.0, 0.85 * points / max(1, len(names))))
    axis.set_ticks(range(len(names)), names, fontsize=size, rotation=0 if vertical else 90)


def _heatmap(axes: Any, percent: Array, label: str, **options: Any) -> None:
    """Draw values as colours, with a colour bar; cells of value 0 are white."""
    image = axes.imshow(np.where(percent > 0, percent, np.nan), aspect="auto", cmap="viridis_r", **options)
    axes.figure.colorbar(image, ax=axes, label=label)


def _deletions(axes: Any, model: Model, event: Event) -> None:
    """Draw the deletions from each V or J allele that can make a junction, and their mean."""
    segment: SegmentType = "V" if event.name.startswith("v") else "J"
    can = [model.templates(segment)[allele].allele for allele in able(model, segment)]
    profiles = event.distributions()
    weights = {allele: event.weights[allele,] for allele in can}
    total, most = sum(weights.values()), max(weights.values(), default=1)
    mean = Counter({0: 0.0})
    for allele, weight in weights.items():
        deleted = [outcome[0] for outcome in profiles[allele,]]
        percent = [100 * chance for chance in profiles[allele,].values()]
        mean.update(dict(zip(deleted, (weight / total * value for value in percent), strict=True)))
        axes.plot(deleted, percent, color="black", linewidth=0.5, alpha=0.1 + 0.5 * weight / most)
    axes.plot([], color="black", linewidth=0.5, alpha=0.6, label=f"each of {len(can):,} alleles, rare ones pale")
    deleted_bases = sorted(mean)
    label = f"mean, weighted by P({segment})"
    axes.plot(deleted_bases, [mean[bases] for bases in deleted_bases], color=COLOURS[1], marker=".", label=label)
    axes.axvline(0, color="0.4", linestyle=":", linewidth=0.8)
    axes.legend()
    # Rare alleles have few deletions, each with a large share.
    axes.set(title=f"{segment} deletions", ylabel=f"P(deletions | {segment}), %", ylim=(0, 3 * max(mean.values()) or 1))
    axes.set_xlabel(f"bases deleted from {segment}; below 0: P-nucleotides")
    _whole_numbers(axes.xaxis)


def _whole_numbers(*axes: Any) -> None:
    for axis in axes:
        axis.get_major_locator().set_params(integer=True)


def _joint_deletions(axes: Any, model: Model, event: Event, index: int) -> None:
    """Draw the deletions from both ends of the D allele at `index`."""
    from matplotlib.colors import PowerNorm

    allele = model.d[index].allele
    distribution = event.distributions()[allele,]
    left, right = (sorted({outcome[end] for outcome in distribution}) for end in (0, 1))
    percent = 100 * np.reshape(list(distribution.values()), (len(left), len(right)))
    edges = left[0] - 0.5, left[-1] + 0.5, right[0] - 0.5, right[-1] + 0.5
    # Few deletions are frequent and many are rare; a square-root scale shows both.
    _heatmap(axes, percent.T, "P(deletions | D), %", origin="lower", extent=edges, norm=PowerNorm(0.5, vmin=0))
    for line in (axes.axvline, axes.axhline):
        line(-0.5, color="0.4", linestyle=":", linewidth=0.8)
    axes.set_title(f"D deletions: {allele}, {100 * model.p_segment('D')[index]:.1f} % of P(D)")
    axes.set(xlabel="bases deleted from its 5′ end; below 0: P", ylabel="bases deleted from its 3′ end")
    _whole_numbers(axes.xaxis, axes.yaxis)


def _lengths(axes: Any, model: Model, errors: Errors) -> None:
    for colour, (name, insertion) in zip(COLOURS, model.named_insertions.items(), strict=False):
        axes.plot(100 * insertion.lengths, color=colour, marker=".", label=f"{name}, mean {insertion.mean_length:.2f}")
        keys = [(f"{name.lower()}_ins", "", str(length)) for length in range(len(insertion.lengths))]
        _error_bars(axes, 100 * insertion.lengths, keys, errors)
    axes.set(title="Inserted n-nucleotides", xlabel="n-nucleotides", ylabel="P(length), %", ylim=(0, None))
    axes.legend()


def _bases(axes: Any, name: str, insertion: Insertion) -> None:
    """Draw P(first base) and P(base | base before) as a table of colours with numbers."""
    percent: Array = 100 * np.vstack([insertion.first, insertion.transitions.T])
    _heatmap(axes, percent, "P(base), %", vmin=0, vmax=100)
    for (row, column), value in np.ndenumerate(percent):
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", color="white" if value > 50 else "black")
    axes.set_xticks(range(4), list("ACGT"))
    axes.set_yticks(range(5), ["first base", *(f"after {base}" for base in "ACGT")])
    axes.set(title=f"Bases of {name} insertions", xlabel=f"inserted base{', from J leftwards' if name == 'DJ' else ''}")
