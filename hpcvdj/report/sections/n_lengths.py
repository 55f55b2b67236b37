"""Junctions and pathways by number of n-nucleotides."""

from __future__ import annotations

import numpy as np

from hpcvdj.report.elements import Block, Section, Table, percent
from hpcvdj.report.figures.n_lengths import draw_mean_by_n, draw_reached, draw_spread_by_n
from hpcvdj.report.survey import Survey


def n_lengths(surveys: list[Survey]) -> Section:
    """The section."""
    words = (
        "Recombination adds n-nucleotides at random between V, D and J. A pathway with few of them asks little of "
        "chance; one with many exists for almost any sequence."
    )
    unfold = [("The numbers of these figures", _by_n(surveys))]
    blocks = [
        Block([words], [draw_reached(surveys), draw_mean_by_n(surveys)]),
        Block(drawings=draw_spread_by_n(surveys), unfold=unfold),
    ]
    return Section("n-nucleotides", "By number of n-nucleotides", blocks)


def _by_n(surveys: list[Survey]) -> Table:
    last = max(max(one.max_n, 0) for one in surveys)
    last = min(last, max(10, *(int(np.flatnonzero(one.reached).max(initial=0)) + 1 for one in surveys)))
    rows = []
    for m in range(last + 1):
        row = [str(m)]
        for one in surveys:
            if m > one.max_n:
                row += ["–"] * 4
                continue
            upto = int(one.reached[: m + 1].sum())
            mean = f"{one.by_n[m] / one.counted:,.2f}" if one.counted else "–"
            row += [f"{int(one.reached[m]):,}", percent(upto, one.counted), f"{one.by_n[m]:,}", mean]
        rows.append(row)
    columns = ["n"]
    for one in surveys:
        columns += [f"{one.name}: junctions whose most direct pathway has n", "reached with at most n",
                    "pathways with n", "pathways with n, per junction"]  # fmt: skip
    return Table("Junctions and pathways by number of n-nucleotides", columns, rows)
