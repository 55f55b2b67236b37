"""Pathways per junction."""

from __future__ import annotations

import numpy as np

from hpcvdj.report.elements import Block, Section, Table, percent
from hpcvdj.report.figures.distribution import draw_distribution
from hpcvdj.report.survey import EDGES, Survey, coarse


def distribution(surveys: list[Survey]) -> Section:
    """The section."""
    unfold = [("The numbers of this figure", _distribution(surveys))]
    block = Block(drawings=[draw_distribution(surveys)], unfold=unfold)
    return Section("distribution", "Pathways per junction", [block])


def _distribution(surveys: list[Survey]) -> Table:
    histograms = [coarse(one.totals) for one in surveys]
    last = max(int(np.flatnonzero(histogram).max(initial=0)) for histogram in histograms)
    rows = []
    for k in range(last + 1):
        low, high = (0, 0) if k == 0 else (int(EDGES[k - 1]), int(EDGES[k]) - 1)
        label = "none" if k == 0 else f"{low:,}" if low == high else f"{low:,}–{high:,}"
        cells = [(int(h[k]), one.counted) for h, one in zip(histograms, surveys, strict=True)]
        rows.append([label, *(text for part, whole in cells for text in (f"{part:,}", percent(part, whole)))])
    names = [text for one in surveys for text in (f"{one.name}: junctions", "of all")]
    return Table("Junctions by number of pathways", ["pathways", *names], rows)
