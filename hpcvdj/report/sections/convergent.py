"""The most convergent junctions."""

from __future__ import annotations

from hpcvdj.report.elements import Block, Section, Table, of_result
from hpcvdj.report.figures.convergent import draw_convergent
from hpcvdj.report.survey import Survey


def convergent(surveys: list[Survey], one: Survey | None) -> Section:
    words = [
        "The junctions with the most pathways: those that recombination makes most easily, if every pathway counts "
        "the same. Rows that share V, J and CDR3 are one junction here. The amino acids are those of what the result "
        "stores, the CDR3, IMGT positions 105 to 117: the codons of Cys 104 before it and Phe/Trp 118 behind it are "
        "not stored, so their letters are not shown."
    ]
    blocks = [Block(words)]
    for item, drawing in zip(surveys, draw_convergent(surveys), strict=True):
        heading = "" if one else item.name
        if drawing is None:
            blocks.append(Block([f"No junction{of_result(item, one)} has a pathway."], heading=heading))
        else:
            blocks.append(Block(heading=heading, drawings=[drawing], tables=[_convergent_table(item)]))
    return Section("convergent", "The most convergent junctions", blocks)


def _convergent_table(one: Survey) -> Table:
    shown = min(10, one.max_n)
    beyond = one.max_n > shown
    lengths = [f"n = {m}" for m in range(shown + 1)] + [f"n > {shown}"] * beyond
    columns = ["", "CDR3, amino acids", "V", "J", "rows", "pathways", *lengths, "CDR3, nucleotides",
               "first sequence_id"]  # fmt: skip
    rows = []
    for number, junction in enumerate(one.convergent, start=1):
        counts = [int(value) for value in junction.counters]
        by_n = counts[: shown + 1] + [sum(counts[shown + 1 :])] * beyond
        rows.append(
            [str(number), junction.amino_acids, junction.v_call, junction.j_call, f"{junction.rows:,}",
             f"{junction.pathways:,}", *(f"{value:,}" for value in by_n), junction.cdr3, junction.sequence_id]
        )  # fmt: skip
    cdr3 = len(columns) - 2
    wrap = frozenset({cdr3 + 1} if any(len(junction.sequence_id) > 40 for junction in one.convergent) else ())
    return Table(
        f"The {len(rows)} junctions of {one.name} with the most pathways, by number of n-nucleotides",
        columns, rows, frozenset({1, 2, 3, cdr3, cdr3 + 1}), frozenset({1, cdr3}), wrap,
    )  # fmt: skip
