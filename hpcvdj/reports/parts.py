"""The parts that sections about findings have in common: tables of individuals, quantiles of p-values, cells."""

import math
from collections.abc import Iterator
from typing import Any

from hpcvdj.reports import charts
from hpcvdj.reports.elements import Figure, PageTable
from hpcvdj.reports.outputs import Finding, Outputs


def anchor(name: str, number: int) -> str:
    """The anchor of the section about the `number`-th file of a command."""
    return name if number == 1 else f"{name}-{number}"


def individuals_table(outputs: Outputs, finding: Finding, name: str, keys: str, /, **titles: str) -> PageTable:
    """A table with a row for each individual that was compared."""
    rows = [
        {**individual, "individual": individual["name"], "group": outputs.group(individual["name"]),
         "left_out": sum(left_out.values()),
         "reason": "; ".join(f"{reason}: {number:,}" for reason, number in left_out.items())}
        for individual in finding.individuals for left_out in [individual.get("left_out", {})]
    ]  # fmt: skip
    titles["left_out"] = "rows left out"
    return PageTable.of(name, "Individuals that were compared", f"individual group {keys}", rows, **titles)


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
            f"chance. Largest: {most}."
        )
        yield Figure(name, "Quantiles", caption, charts.quantiles(table), (table,))


def spaced(row: dict[str, Any]) -> dict[str, Any]:
    """The row with blanks in its list of individuals, so that lines can break there."""
    return {**row, "individuals": str(row.get("individuals") or "").replace(",", ", ")}


def number_of(value: Any) -> float | None:
    return None if value is None else float(value)
