"""What was counted and what was not, in words and tables."""

from __future__ import annotations

import json

from hpcvdj.report.elements import Block, Table, percent, quantile
from hpcvdj.report.survey import Survey

_MOST_REPERTOIRES = 100


def lead(surveys: list[Survey]) -> list[str]:
    """Each result in a sentence."""
    out = []
    for one in surveys:
        name = f"{one.name}: " if len(surveys) > 1 else ""
        if not one.counted:
            out.append(f"{name}{one.counted:,} of {one.rows_read:,} rows could be counted.")
            continue
        median = quantile(one, 0.5)
        out.append(
            f"{name}{one.counted:,} junctions, {percent(one.with_pathway, one.counted)} of which recombination "
            f"reaches with at most {one.max_n} n-nucleotides, in {median} ways at the median."
        )
    return out


def differences(surveys: list[Survey]) -> list[str]:
    """A warning if the results count different things, so that their pathways cannot be compared."""
    asked: dict[str, list[str]] = {}
    for one in surveys:
        config = json.loads(one.facts.get("config", "{}"))
        values = {
            "n-lengths": f"0–{config.get('max_n_asked', one.max_n)}",
            "D forms": config.get("d_forms", "?"),
            "D alleles": one.facts.get("d_alleles", "?"),
            "P-nucleotides at an end": f"at most {one.facts.get('max_p', '?')}",
        }
        for what, value in values.items():
            asked.setdefault(what, []).append(str(value))
    differ = [f"{what} ({', '.join(values)})" for what, values in asked.items() if len(set(values)) > 1]
    if not differ:
        return []
    return [
        f"Numbers of pathways cannot be compared here: the results were counted with different {'; '.join(differ)}."
    ]


def summary(surveys: list[Survey]) -> Table:
    together = any(s.repertoires for s in surveys)
    rows: list[list[str]] = [
        *([["repertoires", *(f"{len(s.repertoires) or 1:,}" for s in surveys)]] if together else []),
        ["rows read", *(f"{s.rows_read:,}" for s in surveys)],
        ["junctions counted", *(f"{s.counted:,}" for s in surveys)],
        ["rows not counted", *(f"{s.excluded:,} ({percent(s.excluded, s.rows_read)})" for s in surveys)],
        ["V–J pairs of alleles", *(f"{s.allele_pairs:,}" for s in surveys)],
        ["V–J pairs of genes", *(f"{len(s.pairs):,}" for s in surveys)],
        ["junctions in frame", *(f"{s.in_frame:,} ({percent(s.in_frame, s.counted)})" for s in surveys)],
        ["n-lengths counted", *(f"0–{s.max_n}" for s in surveys)],
        ["pathways in all", *(f"{s.pathways:,}" for s in surveys)],
        ["junctions with a pathway", *(f"{s.with_pathway:,} ({percent(s.with_pathway, s.counted)})" for s in surveys)],
        ["junctions without a pathway", *(f"{s.counted - s.with_pathway:,}" for s in surveys)],
        ["junctions with a pathway without n-nucleotides",
         *(f"{int(s.reached[0]):,} ({percent(int(s.reached[0]), s.counted)})" for s in surveys)],
        ["pathways per junction, mean", *(f"{s.pathways / s.counted:,.1f}" if s.counted else "–" for s in surveys)],
        ["pathways per junction, median", *(quantile(s, 0.5) for s in surveys)],
        ["pathways per junction, middle half",
         *(f"{quantile(s, 0.25)} to {quantile(s, 0.75)}" if s.counted else "–" for s in surveys)],
        ["pathways per junction, most", *(f"{s.most:,}" for s in surveys)],
    ]  # fmt: skip
    return Table("Summary of what was counted", ["", *(s.name for s in surveys)], rows)


def repertoires(surveys: list[Survey], several: bool) -> list[tuple[str, Table]]:
    """Of each result of tables that were counted together, the largest repertoires."""
    out = []
    for item in surveys:
        if not item.repertoires:
            continue
        ranked = sorted(item.repertoires.items(), key=lambda pair: -pair[1])[:_MOST_REPERTOIRES]
        few = len(ranked) == len(item.repertoires)
        which = f" of {item.name}" if several else ""
        title = f"{'The' if few else f'The {len(ranked):,} largest'} repertoires{which}"
        rows = [[name, f"{count:,}", percent(count, item.counted)] for name, count in ranked]
        out.append((title, Table(title, ["repertoire_id", "junctions counted", "of all"], rows, wrap=frozenset({0}))))
    return out


def excluded(one: Survey, several: bool) -> Block:
    heading = one.name if several else ""
    if not one.excluded:
        said = f"All {one.counted:,} rows were counted." if one.counted else "The table has no rows."
        return Block([said], heading=heading)
    rows = []
    for kind, count, examples in one.reasons:
        said = "; ".join(f"{text} ({number:,})" for text, number in examples)
        rows.append([kind, f"{count:,}", percent(count, one.rows_read), said])
    words = [f"{one.excluded:,} of {one.rows_read:,} rows could not be counted; the result file names each of them."]
    columns = ["reason", "rows", "of all rows", "word for word, the commonest"]
    return Block(words, tables=[Table(f"Rows not counted{f' in {one.name}' if several else ''}, by reason", columns,
                                      rows, frozenset({0, 3}), wrap=frozenset({0, 3}))], heading=heading)  # fmt: skip
