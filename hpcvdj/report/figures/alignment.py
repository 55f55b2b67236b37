"""The picture of one junction's most direct pathways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from hpcvdj.report.divisions import Line
from hpcvdj.report.figures.drawing import Drawing
from hpcvdj.report.figures.style import INK, QUIET, junction_label, short
from hpcvdj.report.survey import Junction

_CELL = 0.155

_PARTS = {"V": "#9ecae9", "D": "#ffbf79", "J": "#9fd8c1", "n": "#ffffff"}
"""Fill of the letters of each part: dark letters on each have a contrast above 10."""


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
        axes.text(place + 0.5, -1.6, str(place + 1), ha="center", va="center", fontsize=8, color=QUIET)
    axes.text(size + 0.8, -0.6, "pathways", va="center", fontsize=8, color=QUIET)
    _letters(axes, junction.cdr3, -0.6, [None] * size, [False] * size)
    for row, line in enumerate(lines, start=1):
        parts, palindromic = parts_of(line)
        axes.text(-0.5, row, str(row), ha="right", va="center", fontsize=8, color=QUIET)
        axes.text(size + 0.8, row, f"× {line.pathways:,}", va="center", fontsize=8)
        _letters(axes, junction.cdr3, row, list(parts), palindromic)
    handles: list[Any] = [
        Patch(facecolor=_PARTS[part], edgecolor=QUIET, linewidth=0.6, label=label)
        for part, label in (("V", "V"), ("D", "D"), ("J", "J"), ("n", "n-nucleotide"))
    ]
    handles.append(Line2D([], [], color=INK, linewidth=2.2, label="P-nucleotide"))
    axes.legend(handles=handles, loc="upper left", ncols=5, handlelength=1.1, columnspacing=0.9, handletextpad=0.5,
                borderaxespad=0.2)  # fmt: skip
    shown = "all" if ways == total else f"{ways:,}"
    needs = f"{m} {'n-nucleotide' if m == 1 else 'n-nucleotides'}, the fewest it needs" if m else "no n-nucleotides"
    words = (
        f"{junction.sequence_id}, {junction_label(junction)}, {junction.v_call} with {junction.j_call}: {total:,} "
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
