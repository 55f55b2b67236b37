"""The heatmap of the most convergent junctions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcvdj.report.figures.drawing import Drawing
from hpcvdj.report.figures.n_lengths import n_shown
from hpcvdj.report.figures.scales import SCALE, colourbar, log_norm
from hpcvdj.report.figures.style import WIDTH, junction_label, new_figure, short
from hpcvdj.report.survey import Survey


def draw_convergent(surveys: Sequence[Survey]) -> list[Drawing | None]:
    """For each result: pathways by n-length of its most convergent junctions; None without any."""
    norm = log_norm([one.convergent[k].counters.astype(float) for one in surveys for k in range(len(one.convergent))]
                     or [np.ones(1)])  # fmt: skip
    last = n_shown(surveys)
    out: list[Drawing | None] = []
    for number, one in enumerate(surveys, start=1):
        if not one.convergent:
            out.append(None)
            continue
        figure = new_figure(WIDTH, 1.5 + 0.2 * len(one.convergent))
        axes = figure.subplots()
        matrix = np.array([junction.counters[: last + 1] for junction in one.convergent], dtype=np.float64)
        axes.pcolormesh(np.ma.masked_equal(matrix, 0), cmap=SCALE, norm=norm, edgecolors="white", linewidth=0.6)
        axes.set(xlabel="n-nucleotides", ylim=(len(matrix), 0), xticks=np.arange(matrix.shape[1]) + 0.5)
        axes.set_xticklabels(map(str, range(matrix.shape[1])))
        if matrix.shape[1] > 16:
            axes.set_xticks(np.arange(0, matrix.shape[1], 5) + 0.5, labels=map(str, range(0, matrix.shape[1], 5)))
        axes.set_yticks(np.arange(len(matrix)) + 0.5, labels=[junction_label(junction) for junction in one.convergent])
        axes.tick_params(length=0)
        axes.spines[["left", "bottom"]].set_visible(False)
        colourbar(figure, axes, norm, "pathways")
        first = one.convergent[0]
        words = f"The first, {junction_label(first)} ({first.v_call}, {first.j_call}), has {first.pathways:,} pathways"
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
