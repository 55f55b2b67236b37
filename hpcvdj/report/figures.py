"""The figures of a report, drawn by matplotlib: each with the words that say what it shows.

Histograms are over `hpcvdj.report.survey.EDGES`; their axes count bins, labelled in pathways, so that the junctions
without a pathway have a place of their own beside the logarithmic scale.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from hpcvdj.report.divisions import Line
from hpcvdj.report.survey import BINS_PER_DECADE, FINE, Junction, Survey, coarse

SERIES = (
    ("#0072B2", "-"), ("#C44E00", "--"), ("#007A5A", "-."), ("#9B3F80", ":"),
    ("#1B1B1B", "-"), ("#7A6200", "--"), ("#4B6FC4", "-."), ("#8B2A2A", ":"),
)  # fmt: skip
"""Colour and line of each result: apart for the colour-blind, and in print by the line alone."""

MOST_RESULTS = len(SERIES)

INK = "#1b1b1b"
_QUIET = "#6b6b6b"
_WIDTH = 5.2
_PAIR_WIDTH = 4.1
_CELL = 0.155

_PARTS = {"V": "#9ecae9", "D": "#ffbf79", "J": "#9fd8c1", "n": "#ffffff"}
"""Fill of the letters of each part: dark letters on each have a contrast above 10."""

_SCALE = LinearSegmentedColormap.from_list("hpcvdj", mpl.colormaps["cividis_r"](np.linspace(0.0, 1.0, 64)))

_STYLE: Any = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.monospace": ["DejaVu Sans Mono", "Menlo", "Consolas"],
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": _QUIET,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "text.parse_math": False,  # names come from users: a $ is a $
    "svg.fonttype": "none",
    "svg.hashsalt": "hpcvdj",
    "figure.dpi": 100,
}


@dataclass(frozen=True)
class Drawing:
    """A figure: its file's name, its words for those who do not see it, its caption, and itself."""

    name: str
    alt: str
    caption: str
    figure: Figure
    wide: bool = False


@contextmanager
def style() -> Iterator[None]:
    """The look of all figures, for drawing and for saving."""
    with mpl.rc_context(_STYLE):
        yield


def svg_file(figure: Figure) -> bytes:
    """The figure as an SVG file, the same bytes from the same numbers."""
    stream = io.BytesIO()
    nothing: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with style():
        figure.savefig(stream, format="svg", metadata=nothing)
    return stream.getvalue()


def png_file(figure: Figure) -> bytes:
    """The figure as a PNG file of 200 dots to the inch."""
    stream = io.BytesIO()
    with style():
        figure.savefig(stream, format="png", dpi=200)
    return stream.getvalue()


_ATTRIBUTE = re.compile(r'<[^<>"]*(?:"[^"]*"[^<>"]*)*>')
_ID = re.compile(r'(\bid="|href="#|url\(#)')


def inline_svg(figure: Figure, prefix: str) -> str:
    """The figure as an element for a page: no prolog, no namespaces, ids that no other figure has."""
    text = svg_file(figure).decode()
    text = text[text.index("<svg") :]
    text = _ATTRIBUTE.sub(lambda tag: _ID.sub(lambda match: f"{match[1]}{prefix}-", tag[0]), text)
    head, end, rest = text.partition(">")
    width, height = figure.get_size_inches()
    head = (
        f'<svg viewBox="0 0 {72 * width:g} {72 * height:g}" width="{96 * width:.0f}" height="{96 * height:.0f}" '
        'aria-hidden="true" focusable="false"'
    )
    return head + end + rest.replace("xlink:href", "href")


def short(name: str, most: int = 26) -> str:
    """A name that fits into a figure, of printable letters only."""
    clean = "".join(letter if letter.isprintable() else "�" for letter in name)
    return clean if len(clean) <= most else clean[: most - 1] + "…"


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(exponent: int) -> str:
    """A power of ten as a label: 1, 10, 100, 1,000, 10⁴ …"""
    return f"{10**exponent:,}" if exponent < 4 else "10" + str(exponent).translate(_RAISED)


def _power_or_less(exponent: int) -> str:
    return power(exponent) if exponent >= 0 else f"{10.0**exponent:g}"


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _bins_shown(surveys: Sequence[Survey]) -> int:
    """Bins up to the last decade that any junction is in; one decade at least."""
    last = max((int(np.flatnonzero(coarse(one.totals)[1:]).max(initial=0)) for one in surveys), default=0)
    return (last // BINS_PER_DECADE + 1) * BINS_PER_DECADE


def _decades(bins: int) -> tuple[list[int], list[str]]:
    """Places and labels of the powers of ten on an axis of bins."""
    exponents = range(bins // BINS_PER_DECADE + 1)
    return [BINS_PER_DECADE * e for e in exponents], [power(e) for e in exponents]


# --- V and J ----------------------------------------------------------------------------------------------------------


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts TRBV2 before TRBV10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def pair_matrix(one: Survey, v: Sequence[str], j: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Junctions and pathways of each pair of genes, float64 [V, J]."""
    sequences, pathways = np.zeros((2, len(v), len(j)))
    for (a, b), (count, ways) in one.pairs.items():
        sequences[v.index(a), j.index(b)] = count
        pathways[v.index(a), j.index(b)] = ways
    return sequences, pathways


def draw_pairs(surveys: Sequence[Survey]) -> list[list[Drawing]]:
    """For each result: heatmaps of junctions, of pathways, and of pathways per junction, all on the same scales.

    The axes are the same too, unless the results have few genes in common, as two species have.
    """
    if not any(one.pairs for one in surveys):
        return [[] for _ in surveys]
    axes = [_genes([one]) for one in surveys] if few_in_common(surveys) else [_genes(surveys)] * len(surveys)
    by_kind = []
    for one, (v, j) in zip(surveys, axes, strict=True):
        sequences, pathways = pair_matrix(one, v, j)
        by_kind.append((sequences, pathways, pathways / np.maximum(sequences, 1)))
    words = ("junctions", "pathways", "pathways per junction")
    # Means over a few junctions scatter widely: their colours end where nine of ten pairs lie.
    norms = [_log_norm([matrices[kind] for matrices in by_kind], 0.05 if kind == 2 else 0.0) for kind in range(3)]
    out = []
    for number, (one, matrices, (v, j)) in enumerate(zip(surveys, by_kind, axes, strict=True), start=1):
        row: list[Drawing] = []
        out.append(row)
        if not one.pairs:
            continue
        for kind, (matrix, norm, word) in enumerate(zip(matrices, norms, words, strict=True)):
            figure = _figure(_PAIR_WIDTH, 1.35 + 0.165 * len(v))
            _heatmap(figure, matrix, matrices[0] > 0, norm, v, j, word)
            a, b = np.unravel_index(int(matrix.argmax()), matrix.shape)
            filled = int(np.count_nonzero(matrices[0]))
            main = f"most in {v[a]} with {j[b]}: {matrix[a, b]:,.0f}" if matrix.any() else "none anywhere"
            of_all = f", {100 * matrix[a, b] / matrix.sum():.1f} % of all" if kind < 2 and matrix.any() else ""
            alt = (
                f"Heatmap of {word} by V gene ({len(v)} rows) and J gene ({len(j)} columns) in {one.name}: "
                f"{filled} of {len(v) * len(j)} pairs have junctions; {main}{of_all}."
            )
            caption = f"{word.capitalize()} of each V–J pair; {main}{of_all}."
            if kind == 2:
                caption += " The colours end where nine of ten pairs lie."
            row.append(Drawing(f"vj_{('junctions', 'pathways', 'mean')[kind]}_{number}", alt, caption, figure))
    return out


def _genes(surveys: Sequence[Survey]) -> tuple[list[str], list[str]]:
    v, j = ({pair[k] for one in surveys for pair in one.pairs} for k in (0, 1))
    return sorted(v, key=natural), sorted(j, key=natural)


def few_in_common(surveys: Sequence[Survey]) -> bool:
    """Whether the results that have junctions share less than half of their V genes."""
    sets = [{v for v, _ in one.pairs} for one in surveys if one.pairs]
    return bool(sets) and 2 * len(set.intersection(*sets)) < len(set.union(*sets))


def _log_norm(matrices: Sequence[NDArray[np.float64]], cut: float = 0.0) -> LogNorm:
    """A logarithmic scale of what is above zero, less the shares `cut` at both ends."""
    positive = np.concatenate([matrix[matrix > 0] for matrix in matrices])
    low, high = np.quantile(positive, [cut, 1 - cut]) if len(positive) else (1.0, 1.0)
    return LogNorm(float(low), float(high if high > low else low * 10))


def _heatmap(
    figure: Figure,
    matrix: NDArray[np.float64],
    there: NDArray[np.bool_],
    norm: LogNorm,
    v: Sequence[str],
    j: Sequence[str],
    word: str,
) -> None:
    """`there`, bool [V, J]: the pairs that have junctions; a logarithmic scale has no colour for their zeros."""
    axes = figure.subplots()
    rows, columns = np.nonzero(~there)
    axes.plot(columns, rows, linestyle="", marker=".", markersize=1.6, color="0.75")
    for row, column in zip(*np.nonzero(there & (matrix == 0)), strict=True):
        axes.text(column, row, "0", ha="center", va="center_baseline", fontsize=7)
    # The borders of the cells, so that cell k lies around k.
    x, y = np.arange(len(j) + 1) - 0.5, np.arange(len(v) + 1) - 0.5
    axes.pcolormesh(x, y, np.ma.masked_equal(matrix, 0), cmap=_SCALE, norm=norm, edgecolors="white", linewidth=0.4)
    axes.set(xlim=(-0.5, len(j) - 0.5), ylim=(len(v) - 0.5, -0.5), xticks=range(len(j)), yticks=range(len(v)))
    axes.set_xticklabels([short(name) for name in j], rotation=90)
    axes.set_yticklabels([short(name) for name in v])
    axes.tick_params(length=0, labelsize=8)
    axes.spines[["left", "bottom"]].set_visible(False)
    low, high = norm.vmin or 0.0, norm.vmax or np.inf
    beyond = bool((matrix > high * 1.001).any() or ((matrix > 0) & (matrix < low * 0.999)).any())
    _colourbar(figure, axes, norm, word, beyond=beyond)


def _colourbar(figure: Figure, axes: Axes, norm: Normalize, label: str, *, beyond: bool = False) -> None:
    extend = "both" if beyond else "neither"
    bar = figure.colorbar(ScalarMappable(norm, _SCALE), ax=axes, location="top", aspect=40, pad=0.015, extend=extend)
    bar.set_label(label)
    bar.ax.minorticks_off()
    if isinstance(norm, LogNorm):
        low, high = np.log10([norm.vmin or 1, norm.vmax or 10])
        exponents = range(int(np.ceil(low - 1e-9)), int(np.floor(high + 1e-9)) + 1)
        if len(exponents) > 1:
            bar.set_ticks([10.0**e for e in exponents], labels=[_power_or_less(e) for e in exponents])
        else:
            ends = [float(norm.vmin or 1), float(norm.vmax or 10)]
            bar.set_ticks(ends, labels=[f"{end:,.0f}" if end >= 10 else f"{end:.2g}" for end in ends])


# --- pathways per junction --------------------------------------------------------------------------------------------


def draw_distribution(surveys: Sequence[Survey]) -> Drawing:
    """Histogram of pathways per junction, those without any apart."""
    bins = _bins_shown(surveys)
    figure = _figure(_WIDTH, 3.5)
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
    places, labels = _decades(bins)
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


# --- by n-length ------------------------------------------------------------------------------------------------------


def _n_shown(surveys: Sequence[Survey]) -> int:
    """The last n-length worth showing: the largest that adds junctions or, above 10, until all are reached."""
    last = max((int(np.flatnonzero(one.reached).max(initial=0)) for one in surveys), default=0)
    return min(max(one.max_n for one in surveys), max(10, last + 1))


def draw_reached(surveys: Sequence[Survey]) -> Drawing:
    """Percent of junctions with a pathway of at most so many n-nucleotides."""
    figure = _figure(_WIDTH, 3.5)
    axes = figure.subplots()
    last = _n_shown(surveys)
    said = []
    for number, one in enumerate(surveys):
        colour, line = SERIES[number]
        shares = 100 * np.cumsum(one.reached)[: last + 1] / max(1, one.counted)
        axes.plot(shares, color=colour, linestyle=line, marker="o", markersize=4, label=short(one.name))
        said.append(
            f"{one.name}: {shares[0]:.1f} % without any n-nucleotide, {shares[-1]:.1f} % with at most {len(shares) - 1}"
        )
    axes.set(xlabel="n-nucleotides, at most", ylabel="junctions with a pathway, %", ylim=(0, 103))
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
    axes.grid(axis="y", color="0.88", linewidth=0.8)
    if len(surveys) > 1:
        figure.legend(loc="outside upper center", ncols=2)
    words = "; ".join(said)
    return Drawing(
        "reached_by_n",
        f"Rising curve: share of junctions that recombination reaches with at most so many n-nucleotides. {words}.",
        f"Junctions that have a pathway with at most so many n-nucleotides. {words}.",
        figure,
    )


def draw_mean_by_n(surveys: Sequence[Survey]) -> Drawing:
    """Mean pathways per junction at each n-length."""
    figure = _figure(_WIDTH, 3.5)
    axes = figure.subplots()
    last = _n_shown(surveys)
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
    axes.set_yticklabels([_power_or_less(e) for e in places])
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
    axes.grid(axis="y", color="0.88", linewidth=0.8)
    if len(surveys) > 1:
        figure.legend(loc="outside upper center", ncols=2)
    words = "; ".join(said)
    return Drawing(
        "mean_by_n",
        f"Curve of the mean number of pathways per junction against the number of n-nucleotides, logarithmic. {words}.",
        f"Pathways of a junction with so many n-nucleotides, mean over all junctions. {words}.",
        figure,
    )


def draw_spread_by_n(surveys: Sequence[Survey]) -> list[Drawing]:
    """For each result: the distribution of pathways per junction at each n-length."""
    last = _n_shown(surveys)
    out = []
    for number, one in enumerate(surveys, start=1):
        stop = min(last, one.max_n)
        fine = one.totals_by_n[: stop + 1]
        figure = _figure(_WIDTH, 3.9)
        medians = _spread(figure, fine, _bins_shown(surveys), np.arange(last + 1), "n-nucleotides", per_column=True)
        alt = (
            f"Heatmap: how many pathways junctions of {one.name} have at each number of n-nucleotides. The median is "
            f"{_in_words(medians[0])} without n-nucleotides and {_in_words(medians[-1])} with {stop}."
        )
        caption = (
            f"{short(one.name, 60)}: pathways of a junction with exactly so many n-nucleotides. Each column adds up to "
            "100 % of the junctions; circles are medians."
        )
        out.append(Drawing(f"pathways_by_n_{number}", alt, caption, figure))
    return out


# --- by junction length -----------------------------------------------------------------------------------------------


def draw_lengths(surveys: Sequence[Survey]) -> Drawing:
    """How long the CDR3s are."""
    figure = _figure(_WIDTH, 3.5)
    axes = figure.subplots()
    first, last = _sizes_shown(surveys)
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
    _codons(axes, last - first)
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


def _sizes_shown(surveys: Sequence[Survey]) -> tuple[int, int]:
    sizes = np.flatnonzero(sum(one.totals_by_size.sum(axis=1) for one in surveys))
    return (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 1)


def _codons(axes: Axes, span: int) -> None:
    """Ticks at multiples of three nucleotides."""
    step = next((step for step in (3, 6, 12) if span <= 10 * step), 24)
    axes.xaxis.set_major_locator(mpl.ticker.MultipleLocator(step))


def draw_spread_by_size(surveys: Sequence[Survey]) -> list[Drawing]:
    """For each result: the distribution of pathways per junction at each CDR3 length."""
    first, last = _sizes_shown(surveys)
    out = []
    for number, one in enumerate(surveys, start=1):
        figure = _figure(_WIDTH, 3.9)
        fine = one.totals_by_size[first : last + 1]
        sizes = np.arange(first, last + 1)
        medians = _spread(figure, fine, _bins_shown(surveys), sizes, "CDR3 length, nucleotides", per_column=False)
        common = common_columns(fine)
        ends = "no junctions"
        if common:
            low, high = common[0], common[-1]
            ends = (
                f"the median goes from {_in_words(medians[low])} at {sizes[low]} nt to {_in_words(medians[high])} at "
            )
            ends += f"{sizes[high]} nt"
        alt = f"Heatmap: how many pathways junctions of {one.name} have at each CDR3 length; {ends}."
        caption = (
            f"{short(one.name, 60)}: pathways of a junction, all n-lengths, by the length of its CDR3; {ends}. "
            "Colour: share of all junctions; circles are medians, of lengths that a thousandth of the junctions have."
        )
        out.append(Drawing(f"pathways_by_length_{number}", alt, caption, figure))
    return out


def common_columns(fine: NDArray[np.int64]) -> list[int]:
    """The columns of int64 [columns, fine bins + 1] with a thousandth of all: a median of a handful says little."""
    sizes = fine.sum(axis=1)
    return [int(k) for k in np.flatnonzero(sizes >= max(1, sizes.sum() / 1000))]


def median_bin(fine: NDArray[np.int64]) -> int | None:
    """The fine bin that holds the (lower) median of a fine histogram, int64 [fine bins + 1]; None of nothing."""
    ends = np.cumsum(fine)
    return int(np.searchsorted(ends, (ends[-1] + 1) // 2)) if ends[-1] else None


def _in_words(fine_bin: int | None) -> str:
    if fine_bin is None:
        return "unknown"
    if fine_bin == 0:
        return "0"
    middle = 10 ** ((fine_bin - 0.5) / (BINS_PER_DECADE * FINE))
    return f"about {middle:,.0f}" if middle >= 10 else f"about {middle:.0f}"


def _spread(
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
    norm = PowerNorm(0.5, 0, 100) if per_column else _log_norm([shares.filled(0)])
    edges = np.concatenate([places[: len(fine)], [places[len(fine) - 1] + 1]]) - 0.5
    axes.pcolormesh(edges, np.arange(bins + 1), shares[:, 1:].T, cmap=_SCALE, norm=norm)
    axes.pcolormesh(edges, [-2, -1], shares[:, :1].T, cmap=_SCALE, norm=norm)
    axes.axhline(-0.5, color=_QUIET, linewidth=0.8, linestyle=":")
    medians = [median_bin(column) for column in fine]
    enough = common_columns(fine)
    for place, found in zip(places, medians, strict=False):
        if found is not None and place - places[0] in enough:
            height = (found - 0.5) / FINE if found else -1.5
            axes.plot(place, height, "o", markersize=3.5, markerfacecolor="white", markeredgecolor=INK)
    ticks, labels = _decades(bins)
    axes.set(xlabel=label, ylabel="pathways of a junction", yticks=[-1.5, *ticks], ylim=(-2, bins))
    axes.set_yticklabels(["none", *labels])
    axes.set_xlim(places[0] - 0.5, places[-1] + 0.5)
    if per_column:
        axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
    else:
        _codons(axes, int(places[-1] - places[0]))
    _colourbar(figure, axes, norm, "share of junctions, %")
    return medians


# --- the most convergent ----------------------------------------------------------------------------------------------


def draw_convergent(surveys: Sequence[Survey]) -> list[Drawing | None]:
    """For each result: pathways by n-length of its most convergent junctions; None without any."""
    norm = _log_norm([one.convergent[k].counters.astype(float) for one in surveys for k in range(len(one.convergent))]
                     or [np.ones(1)])  # fmt: skip
    last = _n_shown(surveys)
    out: list[Drawing | None] = []
    for number, one in enumerate(surveys, start=1):
        if not one.convergent:
            out.append(None)
            continue
        figure = _figure(_WIDTH, 1.5 + 0.2 * len(one.convergent))
        axes = figure.subplots()
        matrix = np.array([junction.counters[: last + 1] for junction in one.convergent], dtype=np.float64)
        axes.pcolormesh(np.ma.masked_equal(matrix, 0), cmap=_SCALE, norm=norm, edgecolors="white", linewidth=0.6)
        axes.set(xlabel="n-nucleotides", ylim=(len(matrix), 0), xticks=np.arange(matrix.shape[1]) + 0.5)
        axes.set_xticklabels(map(str, range(matrix.shape[1])))
        if matrix.shape[1] > 16:
            axes.set_xticks(np.arange(0, matrix.shape[1], 5) + 0.5, labels=map(str, range(0, matrix.shape[1], 5)))
        axes.set_yticks(np.arange(len(matrix)) + 0.5, labels=[_label(junction) for junction in one.convergent])
        axes.tick_params(length=0)
        axes.spines[["left", "bottom"]].set_visible(False)
        _colourbar(figure, axes, norm, "pathways")
        first = one.convergent[0]
        words = f"The first, {_label(first)} ({first.v_call}, {first.j_call}), has {first.pathways:,} pathways"
        out.append(
            Drawing(
                f"convergent_{number}",
                f"Heatmap of the pathways of the {len(matrix)} most convergent junctions of {one.name} by "
                f"number of n-nucleotides. {words}, {int(first.counters[0]):,} of them without n-nucleotides.",
                f"{short(one.name, 60)}: pathways of the most convergent junctions by n-nucleotides. {words}.",
                figure,
            )
        )
    return out


def _label(junction: Junction) -> str:
    frame = junction.amino_acids
    return short(f"out of frame, {len(junction.cdr3)} nt" if frame == "out of frame" else frame or "(empty)", 30)


# --- one junction's most direct pathways ------------------------------------------------------------------------------


def draw_alignment(
    junction: Junction, m: int, lines: Sequence[Line], total: int, of: str, name: str, kind: str
) -> Drawing:
    """The letters of a CDR3, once for each way to divide it, coloured by the part that they come from.

    `total` is how many pathways have `m` n-nucleotides, shown or not; `kind` says which junction it is.
    """
    size = len(junction.cdr3)
    rows = len(lines)
    ways = sum(line.pathways for line in lines)
    across = max(size, 31)
    figure = Figure(figsize=(_CELL * (across + 10), 0.225 * (rows + 5)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-3, across + 7), ylim=(rows + 0.8, -4.2))
    axes.axis("off")
    for place in [0, *range(9, size, 10)] if size else []:
        axes.text(place + 0.5, -1.6, str(place + 1), ha="center", va="center", fontsize=8, color=_QUIET)
    axes.text(size + 0.8, -0.6, "pathways", va="center", fontsize=8, color=_QUIET)
    _letters(axes, junction.cdr3, -0.6, [None] * size, [False] * size)
    for row, line in enumerate(lines, start=1):
        parts, palindromic = parts_of(line)
        axes.text(-0.5, row, str(row), ha="right", va="center", fontsize=8, color=_QUIET)
        axes.text(size + 0.8, row, f"× {line.pathways:,}", va="center", fontsize=8)
        _letters(axes, junction.cdr3, row, list(parts), palindromic)
    handles: list[Any] = [
        Patch(facecolor=_PARTS[part], edgecolor=_QUIET, linewidth=0.6, label=label)
        for part, label in (("V", "V"), ("D", "D"), ("J", "J"), ("n", "n-nucleotide"))
    ]
    handles.append(Line2D([], [], color=INK, linewidth=2.2, label="P-nucleotide"))
    axes.legend(handles=handles, loc="upper left", ncols=5, handlelength=1.1, columnspacing=0.9, handletextpad=0.5,
                borderaxespad=0.2)  # fmt: skip
    shown = "all" if ways == total else f"{ways:,}"
    needs = f"{m} {'n-nucleotide' if m == 1 else 'n-nucleotides'}, the fewest it needs" if m else "no n-nucleotides"
    words = (
        f"{junction.sequence_id}, {_label(junction)}, {junction.v_call} with {junction.j_call}: {total:,} "
        f"{'pathway' if total == 1 else 'pathways'} with {needs}"
    )
    lines_word = f"{rows} line" + ("" if rows == 1 else "s")
    return Drawing(
        f"alignment_{kind}",
        f"Alignment: the CDR3 {junction.cdr3 or '(empty)'} of {name}, {of}, one line for each way to divide it into "
        f"V, D, J and n-nucleotides. {words}; {shown} of them are shown, on {lines_word}.",
        f"{short(name, 60)}, {of}: {words}; {shown} of them are shown, on {lines_word}, numbered as in the table.",
        figure,
        wide=True,
    )


def parts_of(line: Line) -> tuple[str, list[bool]]:
    """For each base its part, V, n, D or J; and whether it is a P-nucleotide, of D in every share of the line."""
    left = line.d_start - line.v
    d = line.d_stop - line.d_start
    right = line.size - line.d_stop - line.j
    d_left = min(share.d_5[0] if share.d_5 else 0 for share in line.shares)
    d_right = min(share.d_3[0] if share.d_3 else 0 for share in line.shares)
    palindromic = (
        [place >= line.v - line.v_3[0] for place in range(line.v)]
        + [False] * left
        + [place < d_left or place >= d - d_right for place in range(d)]
        + [False] * right
        + [place < line.j_5[0] for place in range(line.j)]
    )
    return "V" * line.v + "n" * left + "D" * d + "n" * right + "J" * line.j, palindromic


def _letters(axes: Axes, cdr3: str, y: float, parts: Sequence[str | None], palindromic: Sequence[bool]) -> None:
    for place, (letter, part, marked) in enumerate(zip(cdr3, parts, palindromic, strict=True)):
        if part is not None:
            edge, order = (INK, 2) if part == "n" else ("white", 1)
            corner = (place, y - 0.44)
            axes.add_patch(Rectangle(corner, 1, 0.88, facecolor=_PARTS[part], edgecolor=edge, lw=0.6, zorder=order))
        if marked:
            axes.add_patch(Rectangle((place + 0.08, y + 0.3), 0.84, 0.12, facecolor=INK, zorder=2))
        axes.text(place + 0.5, y, letter, ha="center", va="center_baseline", fontsize=8.5, family="monospace", zorder=3)
