"""The sections of a report's page, in their order: a module for each thing that they show."""

from __future__ import annotations

from collections.abc import Sequence

from hpcvdj.recombination.germline import Germline
from hpcvdj.report.elements import Block, Section
from hpcvdj.report.sections.alignment import alignments
from hpcvdj.report.sections.convergent import convergent
from hpcvdj.report.sections.distribution import distribution
from hpcvdj.report.sections.lengths import lengths
from hpcvdj.report.sections.n_lengths import n_lengths
from hpcvdj.report.sections.pairs import pairs
from hpcvdj.report.sections.run_facts import run_facts
from hpcvdj.report.sections.summary import differences, excluded, repertoires, summary
from hpcvdj.report.survey import Survey


def all_sections(surveys: list[Survey], tables: Sequence[tuple[str, Germline] | None], *, asked: bool) -> list[Section]:
    """All of them; `tables` are the results' germline tables and their paths, `asked` whether any was named."""
    one = surveys[0] if len(surveys) == 1 else None
    above = Block(differences(surveys), tables=[summary(surveys)], unfold=repertoires(surveys, one is None))
    sections = [
        Section("summary", "Summary", [above]),
        Section("excluded", "Rows that were not counted", [excluded(item, one is None) for item in surveys]),
    ]
    if not any(item.counted for item in surveys):
        above.words.append("No junction was counted, so there is nothing to draw.")
        return [*sections, run_facts(surveys)]
    return [
        *sections,
        pairs(surveys, one),
        distribution(surveys),
        n_lengths(surveys),
        lengths(surveys, one),
        convergent(surveys, one),
        alignments(surveys, tables, asked, one),
        run_facts(surveys),
    ]
