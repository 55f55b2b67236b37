"""The most direct pathways of a junction."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hpcvdj.errors import InputError
from hpcvdj.recombination.explanation import Explanation
from hpcvdj.recombination.germline import Germline
from hpcvdj.report.divisions import Ends, Line, most_direct_lines
from hpcvdj.report.elements import Block, Section, Table, of_result
from hpcvdj.report.figures.alignment import draw_alignment
from hpcvdj.report.survey import Junction, Survey

MOST_LINES = 24
"""Lines of an alignment picture."""


def alignments(
    surveys: list[Survey], tables: Sequence[tuple[str, Germline] | None], asked: bool, one: Survey | None
) -> Section:
    words = [
        "Every way to divide a junction into V, D, J and as few n-nucleotides as it can have. Pathways that differ "
        "only in the D gene, or in how an empty D or one that occurs twice in its gene was chewed back, share a line."
    ]
    blocks = [Block(words)]
    for number, (item, table) in enumerate(zip(surveys, tables, strict=True), start=1):
        heading = "" if one else item.name
        if table is None:
            why = "none of the tables given with --germline is the one" if asked else "give --germline to see it"
            text = f"This picture needs the germline table that {item.name} was counted with: {why}."
            blocks.append(Block([text], heading=heading))
        elif not item.shown:
            blocks.append(Block([f"No junction{of_result(item, one)} to show: none has a pathway."], heading=heading))
        else:
            for kind, (of, junction) in enumerate(item.shown, start=1):
                blocks.append(
                    _alignment(item, table[1], junction, of, f"{number}_{kind}", heading if kind == 1 else "")
                )
    return Section("alignment", "The most direct pathways of a junction", blocks)


def _alignment(item: Survey, germline: Germline, junction: Junction, of: str, kind: str, heading: str) -> Block:
    if not junction.pathways:
        text = f"{junction.sequence_id}, {of}, has no pathway with at most {item.max_n} n-nucleotides."
        return Block([text], heading=heading)
    m, lines = _lines(item, germline, junction)
    total = sum(line.pathways for line in lines)
    rows = []
    for number, line in enumerate(lines[:MOST_LINES], start=1):
        left = junction.cdr3[line.v : line.d_start]
        right = junction.cdr3[line.d_stop : len(junction.cdr3) - line.j]
        for share in line.shares:
            rows.append(
                [str(number), _ends(line.v_3), left or "–", share.d_gene or "–",
                 junction.cdr3[line.d_start : line.d_stop] or "–", _ends(share.d_5), _ends(share.d_3), right or "–",
                 _ends(line.j_5), f"{share.pathways:,}"]
            )  # fmt: skip
    columns = ["line", "V, 3′ end", "n left", "D gene", "D form", "D, 5′ end", "D, 3′ end", "n right", "J, 5′ end",
               "pathways"]  # fmt: skip
    table = Table(
        f"The lines of the picture: {junction.v_call} with {junction.j_call}, CDR3 {junction.cdr3}. "
        "−3: three bases chewed off that end of the segment; +2 P: two P-nucleotides; 0: neither",
        columns, rows, frozenset(range(9)), frozenset({2, 4, 7}),
    )  # fmt: skip
    drawing = draw_alignment(junction, m, lines[:MOST_LINES], total, of, item.name, kind)
    rest = [f"Of {len(lines):,} lines the first {MOST_LINES} are drawn."] if len(lines) > MOST_LINES else []
    return Block(rest, heading=heading, drawings=[drawing], unfold=[("These pathways in a table", table)])


def _lines(item: Survey, germline: Germline, junction: Junction) -> tuple[int, list[Line]]:
    """The most direct pathways, checked against the counters."""
    v, j = germline.find("V", junction.v_call), germline.find("J", junction.j_call)
    forms = json.loads(item.facts["config"])["d_forms"]
    found = None
    if v and j:
        genes = germline.d_segments(v.locus)
        found = most_direct_lines(Explanation(junction.cdr3, v, j, genes, item.max_n, forms, germline.max_p))
    counted = next((m, int(ways)) for m, ways in enumerate(junction.counters) if ways)
    if not found or (found[0], sum(line.pathways for line in found[1])) != counted:
        raise InputError(
            f"{item.path}: {junction.sequence_id} has other pathways than the germline table gives; "
            "`hpcvdj verify` its table, and count again"
        )
    return found


def _ends(ends: Ends | None) -> str:
    """An end of a form, in the words of the table."""
    if ends is None:
        return "several"
    p, lost = ends
    return f"+{p} P" if p else f"−{lost}" if lost else "0"
