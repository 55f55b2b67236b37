"""The parts that sections about findings have in common: tables of individuals, quantiles of p-values, cells."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpcvdj.reports import charts
from hpcvdj.reports.elements import Figure, PageTable
from hpcvdj.reports.outputs import Finding, Outputs
from hpcvdj.results.facts import Facts

ROW_TITLES = {"rows_read": "rows read", "rows": "rows used", "left_out": "rows left out"}
"""The titles of columns of `left_out_cells`."""


NOT_PRODUCTIVE = "not productive"
"""Part of the reason of rows that no question about receptors takes: most tables have such rows."""


ELSEWHERE = "of samples that the page lacks"
"""The reason of rows that a run of `annotate` read, if no file of the page is about their sample."""


def rows_of_run(samples: Sequence[Facts]) -> tuple[int, Counter[str]]:
    """How many rows a run of `enrich` or `annotate` used, and how many it left out, by reason.

    samples  the facts of its samples: they have the rows read and excluded of all, and the other rows of each
    """
    left_out = Counter[str]()
    for kind, *_, rows in samples[0].get("rows_excluded", []):
        left_out[kind.replace("_", " ").replace("unproductive", NOT_PRODUCTIVE)] += rows
    for facts in samples:
        left_out.update(facts.get("rows_left_out", {}))
    used: int = samples[0].get("rows_read", 0) - left_out.total()
    # Facts of older versions do not say how many rows of each sample were used.
    left_out[ELSEWHERE] = max(0, used - sum(facts.get("junctions", used) for facts in samples))
    return used - left_out[ELSEWHERE], left_out


def left_out_cells(used: int, left_out: Mapping[str, int]) -> dict[str, Any]:
    """The cells of a table about rows: read, used, left out, and why."""
    total = sum(left_out.values())
    reasons = "; ".join(f"{reason}: {number:,}" for reason, number in left_out.items() if number)
    return {"rows_read": used + total, "rows": used, "left_out": total, "reason": reasons}


def individuals_table(outputs: Outputs, finding: Finding, name: str, keys: str = "", /, **titles: str) -> PageTable:
    """A table with a row for each individual that was compared.

    keys  of further columns
    """
    rows = [
        {**individual, "individual": individual["name"], "group": outputs.group(individual["name"]),
         **left_out_cells(individual["rows"], individual.get("left_out", {}))}
        for individual in finding.individuals
    ]  # fmt: skip
    keys = f"individual group rows_read rows {keys} left_out reason"
    return PageTable.of(name, "Individuals that were compared", keys, rows, **ROW_TITLES, **titles)


def quantiles_figure(outputs: Outputs, findings: list[Finding], name: str, of: str) -> Iterator[Figure]:
    """The observed p-values of findings by the expected ones, if they have any.

    of  what has a p-value, such as clonotypes
    """
    names = ("expected", "observed", "low", "high")
    rows = [
        {"sample": finding.sample, "group": outputs.group(finding.sample),
         **{name: -math.log10(number) for name, number in zip(names, numbers, strict=True)}}
        for finding in findings if (qq := finding.facts.get("qq"))
        for numbers in zip(*(qq[name] for name in names), strict=True) if min(numbers) > 0
    ]  # fmt: skip
    table = PageTable.of(
        f"{name}_table", f"Quantiles of p-values of {of}, −log10", "sample group expected observed low high", rows,
        expected="expected p-value, −log10", observed="observed p-value, −log10", low="band, from", high="band, to",
    )  # fmt: skip
    if table.rows:
        most = table.peak("observed", "{observed} in {sample}, where {expected} is expected")
        caption = (
            f"Observed p-values of {of} by those expected without any effect, −log10; the band holds 95 % of "
            f"chance. As counts are whole numbers, these p-values are randomised: a single one may be smaller than all "
            f"p-values of the table. Largest: {most}."
        )
        yield Figure(name, "Quantiles", caption, charts.quantiles(table), (table,))


def spaced(row: dict[str, Any]) -> dict[str, Any]:
    """The row with blanks in its list of individuals, so that lines can break there."""
    return {**row, "individuals": str(row.get("individuals") or "").replace(",", ", ")}


def number_of(value: Any) -> float | None:
    return None if value is None else float(value)
