"""What all figures look like: fonts, lines, colours, names that fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from hpcvdj.report.survey import Junction

SERIES = (
    ("#0072B2", "-"), ("#C44E00", "--"), ("#007A5A", "-."), ("#9B3F80", ":"),
    ("#1B1B1B", "-"), ("#7A6200", "--"), ("#4B6FC4", "-."), ("#8B2A2A", ":"),
)  # fmt: skip
"""Colour and line of each result: apart for the colour-blind, and in print by the line alone."""

MOST_RESULTS = len(SERIES)

INK = "#1b1b1b"

QUIET = "#6b6b6b"

WIDTH = 5.2

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
    "axes.edgecolor": QUIET,
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


@contextmanager
def style() -> Iterator[None]:
    """The look of all figures, for drawing and for saving."""
    with mpl.rc_context(_STYLE):
        yield


def new_figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def short(name: str, most: int = 26) -> str:
    """A name that fits into a figure, of printable letters only."""
    clean = "".join(letter if letter.isprintable() else "�" for letter in name)
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def junction_label(junction: Junction) -> str:
    frame = junction.amino_acids
    return short(f"out of frame, {len(junction.cdr3)} nt" if frame == "out of frame" else frame or "(empty)", 30)
