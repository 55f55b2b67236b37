"""Heatmaps of V and J genes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hpcvdj.report.figures.drawing import Drawing
from hpcvdj.report.figures.scales import SCALE, colourbar, log_norm
from hpcvdj.report.figures.style import new_figure, short
from hpcvdj.report.survey import Survey

_PAIR_WIDTH = 4.1


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
    norms = [log_norm([matrices[kind] for matrices in by_kind], 0.05 if kind == 2 else 0.0) for kind in range(3)]
    out = []
    for number, (one, matrices, (v, j)) in enumerate(zip(surveys, by_kind, axes, strict=True), start=1):
        row: list[Drawing] = []
        out.append(row)
        if not one.pairs:
            continue
        for kind, (matrix, norm, word) in enumerate(zip(matrices, norms, words, strict=True)):
            figure = new_figure(_PAIR_WIDTH, 1.35 + 0.165 * len(v))
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
    axes.pcolormesh(x, y, np.ma.masked_equal(matrix, 0), cmap=SCALE, norm=norm, edgecolors="white", linewidth=0.4)
    axes.set(xlim=(-0.5, len(j) - 0.5), ylim=(len(v) - 0.5, -0.5), xticks=range(len(j)), yticks=range(len(v)))
    axes.set_xticklabels([short(name) for name in j], rotation=90)
    axes.set_yticklabels([short(name) for name in v])
    axes.tick_params(length=0, labelsize=8)
    axes.spines[["left", "bottom"]].set_visible(False)
    low, high = norm.vmin or 0.0, norm.vmax or np.inf
    beyond = bool((matrix > high * 1.001).any() or ((matrix > 0) & (matrix < low * 0.999)).any())
    colourbar(figure, axes, norm, word, beyond=beyond)
