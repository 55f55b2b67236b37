"""V and J genes."""

from __future__ import annotations

from hpcvdj.report.elements import Block, Section, Table, of_result, percent
from hpcvdj.report.figures.pairs import draw_pairs, few_in_common
from hpcvdj.report.survey import Survey

_MOST_PAIRS = 15


def pairs(surveys: list[Survey], one: Survey | None) -> Section:
    """The section; `one` is the result if it is alone."""
    words = [
        "A pair is a V gene with a J gene, the alleles of a gene taken together. Small dots: no junctions; 0: "
        "junctions, but no pathway. The scales are logarithmic"
        + ("." if one else ", and the same for all results.")
        + (" The results have few genes in common, so each shows its own." if few_in_common(surveys) else "")
    ]
    blocks = [Block(words)]
    for item, row in zip(surveys, draw_pairs(surveys), strict=True):
        unfold = (f"The {_MOST_PAIRS} V–J pairs with the most junctions{of_result(item, one)}", _pairs(item))
        blocks.append(Block(heading="" if one else item.name, drawings=row, small=True, unfold=[unfold]))
    return Section("pairs", "V and J genes", blocks)


def _pairs(one: Survey) -> Table:
    ranked = sorted(one.pairs.items(), key=lambda item: (-item[1][0], item[0]))[:_MOST_PAIRS]
    rows = [
        [f"{v} {j}", f"{count:,}", percent(count, one.counted), f"{ways:,}", percent(ways, one.pathways),
         f"{ways / count:,.1f}"]
        for (v, j), (count, ways) in ranked
    ]  # fmt: skip
    return Table(
        f"V–J pairs with the most junctions, {one.name}",
        ["V and J gene", "junctions", "of all", "pathways", "of all", "pathways per junction"],
        rows,
    )
