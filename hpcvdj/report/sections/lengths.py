"""Junctions and pathways by CDR3 length."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcvdj.report.elements import Block, Section, Table
from hpcvdj.report.figures.lengths import draw_lengths, draw_spread_by_size
from hpcvdj.report.figures.spread import median_bin
from hpcvdj.report.survey import FINE_EDGES, Survey


def lengths(surveys: list[Survey], one: Survey | None) -> Section:
    """The section; `one` is the result if it is alone."""
    drawings = draw_spread_by_size(surveys)
    unfold = [("The numbers of these figures", _by_size(surveys))]
    if one:
        blocks = [Block(drawings=[draw_lengths(surveys), *drawings], unfold=unfold)]
    else:
        blocks = [Block(drawings=[draw_lengths(surveys)]), Block(drawings=drawings, unfold=unfold)]
    return Section("length", "By junction length", blocks)


def _by_size(surveys: list[Survey]) -> Table:
    def median(fine: Any) -> str:
        found = median_bin(fine)
        if found is None:
            return "–"
        if found == 0:
            return "0"
        low = int(FINE_EDGES[found - 1])
        high = int(FINE_EDGES[found]) - 1
        return f"{low:,}" if high <= low else f"{low:,}–{high:,}"

    sizes = np.flatnonzero(sum(one.totals_by_size.sum(axis=1) for one in surveys))
    rows = []
    for size in sizes.tolist():
        row = [str(size)]
        for one in surveys:
            fine = one.totals_by_size[size]
            row += [f"{int(fine.sum()):,}", f"{int(fine[0]):,}", median(fine)]
        rows.append(row)
    columns = ["CDR3, nt"]
    for one in surveys:
        columns += [f"{one.name}: junctions", "without a pathway", "median of pathways, between"]
    return Table("Junctions and their pathways by CDR3 length", columns, rows)
