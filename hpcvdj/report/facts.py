"""What was counted, what was excluded, and how: the sections without figures."""

import json
from collections import Counter
from collections.abc import Iterable

from hpcvdj.errors import few
from hpcvdj.recombination.exclusions import by_summary
from hpcvdj.report.elements import Cell, Section, Table, percent
from hpcvdj.report.survey import Survey

_MOST_REPERTOIRES = 100

_NOT_LISTED = ("calls", "config", "excluded_counts", "format", "format_version", "identity", "nonzero", "sums")
"""Attributes of results that other parts of the page show."""


def quantile(survey: Survey, share: float) -> str:
    """A quantile of pathways per junction, in words."""
    if not survey.counted:
        return "–"
    value, exact = survey.quantiles.quantile(share)
    return f"{'' if exact else 'about '}{value:,.1f}".removesuffix(".0")


def lead(survey: Survey) -> str:
    """A result in a sentence."""
    if not survey.counted:
        return f"0 of {survey.rows_read:,} rows could be counted."
    return (
        f"{survey.counted:,} junctions were counted; {percent(survey.with_pathway, survey.counted)} of them have a "
        f"pathway with at most {survey.max_n} n-nucleotides. Pathways per junction, median: {quantile(survey, 0.5)}."
    )


def summary(surveys: list[Survey]) -> Section:
    """What was counted."""

    def repertoires(survey: Survey) -> Iterable[list[Cell]]:
        ranked = sorted(survey.repertoires.items(), key=lambda item: -item[1])[:_MOST_REPERTOIRES]
        return [[name, junctions, survey.share(junctions)] for name, junctions in ranked]

    tables = [Table.beside("summary_table", "Summary of what was counted", surveys, _summary)]
    if any(survey.repertoires for survey in surveys):
        caption = f"The repertoires, at most the {_MOST_REPERTOIRES} largest"
        columns = "repertoire_id junctions share"
        tables.append(Table.of("repertoires_table", caption, columns, surveys, repertoires))
    words = [] if any(survey.counted for survey in surveys) else ["No junction was counted, so there are no figures."]
    return Section("summary", "Summary", _differences(surveys) + words, tables=tables)


def _differences(surveys: list[Survey]) -> list[str]:
    """A warning if the results were counted differently, so that their pathways cannot be compared."""
    asked = {
        "largest n-lengths": [str(survey.config.get("max_n_asked", survey.max_n)) for survey in surveys],
        "D forms": [str(survey.config.get("d_forms")) for survey in surveys],
        "D alleles": [str(survey.facts.get("d_alleles")) for survey in surveys],
        "numbers of P-nucleotides": [f"at most {survey.facts.get('max_p')}" for survey in surveys],
    }
    differ = [f"{name} ({', '.join(values)})" for name, values in asked.items() if len(set(values)) > 1]
    warning = "Numbers of pathways cannot be compared here: the results were counted with different"
    return [f"{warning} {'; '.join(differ)}."] if differ else []


def _summary(survey: Survey) -> dict[str, Cell]:
    counted = survey.counted

    def share(part: int, total: int = counted) -> str:
        return f"{part:,} ({percent(part, total)})"

    return {
        "repertoires": len(survey.repertoires) or 1,
        "rows read": survey.rows_read,
        "junctions counted": counted,
        "rows excluded": share(survey.rows_read - counted, survey.rows_read),
        "V–J pairs of alleles": survey.allele_pairs,
        "V–J pairs of genes": len(survey.pairs),
        "junctions in frame": share(int(survey.sizes[::3].sum())),
        "n-lengths counted": f"0–{survey.max_n}",
        "pathways in all": survey.pathways,
        "junctions with a pathway": share(survey.with_pathway),
        "junctions without a pathway": counted - survey.with_pathway,
        "junctions with a pathway without n-nucleotides": share(int(survey.reached[0])),
        "pathways per junction, mean": survey.pathways / counted if counted else None,
        "pathways per junction, median": quantile(survey, 0.5),
        "pathways per junction, middle half": f"{quantile(survey, 0.25)} to {quantile(survey, 0.75)}",
        "pathways per junction, most": survey.most,
    }


def excluded(surveys: list[Survey]) -> Section:
    """The rows that were not counted, by reason."""

    def rows(survey: Survey) -> Iterable[list[Cell]]:
        for reason, number, group in by_summary(survey.excluded):
            examples = few([f"{exclusion} ({count:,})" for exclusion, count in group], 5)
            yield [reason, number, 100 * number / survey.rows_read, group[0][0].kind.option or None, examples]

    columns = "reason rows of_rows option examples"
    table = Table.of("excluded_table", "Excluded rows by reason", columns, surveys, rows)
    if not table.rows:
        return Section("excluded", "Excluded rows", ["No row was excluded."])
    return Section("excluded", "Excluded rows", ["The result file lists each excluded row."], tables=[table])


def run_facts(surveys: list[Survey]) -> Section:
    """How the results were counted, and in what time."""
    facts = Table.beside("run_table", "Facts of the run, as the result file records them", surveys, _run)
    times = Table.beside("times_table", "Seconds of the slowest rank, summed over units of work", surveys, _times)
    return Section("run", "How it was counted", tables=[table for table in (facts, times) if table.rows])


def _run(survey: Survey) -> dict[str, Cell]:
    """The attributes of the file, its configuration, and the different facts of the ranks."""
    calls = json.loads(survey.facts.get("substituted_calls", "[]"))
    replaced = few([f"{call} → {allele} ({rows:,} rows)" for call, allele, rows in calls], 8)
    names = ("host", "hardware", "software")
    ranks = {name: few(dict.fromkeys(rank[name] for rank in survey.ranks), 8) for name in names}
    facts = survey.facts | survey.config | survey.config.get("calls", {}) | {"substituted_calls": replaced} | ranks
    listed = {name.replace("_", " "): str(value) or None for name, value in facts.items() if name not in _NOT_LISTED}
    return {"file": survey.path.name, **listed}


def _times(survey: Survey) -> dict[str, Cell]:
    times, seconds = survey.timings, Counter[str]()
    for unit, (first, stop) in enumerate(zip(times["n_first"], times["n_stop"], strict=True)):
        for stage in ("kernel", "reduce", "wall"):
            seconds[f"n-lengths {first}–{stop - 1}, {stage}"] += times[f"{stage}_seconds"][unit]
    return {name: float(value) for name, value in seconds.items()}
