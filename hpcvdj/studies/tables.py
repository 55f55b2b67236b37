"""Make Markdown tables and lines of plots from raw rows: groups of repeats, their medians and ranges."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

T = TypeVar("T")


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with a head and rows of cells."""
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in [head, ["---"] * len(head), *rows])


def number(value: float, form: str, unit: str = "") -> str:
    """Return a number for a table; `-` for NaN, a number that is not known."""
    return "-" if math.isnan(value) else f"{value:{form}}{unit}"


def listing(items: Iterable[T], columns: Mapping[str, Callable[[T], object]]) -> str:
    """Return a Markdown table with a line for each item; the columns are functions of an item."""
    return table(list(columns), [[cell(item) for cell in columns.values()] for item in items])


def grouped(rows: Iterable[Any], *columns: str) -> dict[Any, list[Any]]:
    """Group rows by the value of a column, or by the values of several columns, in order of appearance."""
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        key = tuple(getattr(row, column) for column in columns)
        groups.setdefault(key if len(columns) > 1 else key[0], []).append(row)
    return groups


def distinct(rows: Iterable[Any], column: str, form: str = "") -> str:
    """Return the values of a column without repeats, separated by commas."""
    return ", ".join(f"{value:{form}}" for value in grouped(rows, column))


def middle(rows: Iterable[Any], column: str) -> float:
    """Return the median of a column."""
    return float(median(getattr(row, column) for row in rows))


def same(rows: Iterable[Any], column: str, *by: str) -> bool:
    """Return whether a column has a single value in each group of rows that agree in the columns `by`."""
    return all(len({getattr(row, column) for row in group}) == 1 for group in grouped(rows, *by).values())


def pivot(rows: Iterable[Any], down: str, across: str, cell: Callable[[list[Any]], str], corner: str = "") -> str:
    """Return a Markdown table with the values of two columns down and across, and a `cell` for rows with both."""
    groups = grouped(rows, down, across)
    head = list(dict.fromkeys(key[1] for key in groups))
    if not isinstance(head[0], str):
        head.sort()
    lines = [
        [key, *(cell(groups[key, other]) if (key, other) in groups else "-" for other in head)]
        for key in dict.fromkeys(key[0] for key in groups)
    ]
    return table([corner, *head], lines)


def lines(rows: Iterable[Any], label: str, x: str, y: Callable[[list[Any]], float]) -> dict[str, dict[float, float]]:
    """Return the lines of a plot: for each value of column `label`, `y` of the rows by the value of column `x`."""
    return {
        str(name): {value: y(repeats) for value, repeats in grouped(group, x).items()}
        for name, group in grouped(rows, label).items()
    }


def spread(values: Sequence[float], form: Callable[[float], str]) -> str:
    """Return the median of `values`, with their range if there are several values."""
    text = form(median(values))
    return f"{text} ({form(min(values))}…{form(max(values))})" if len(values) > 1 else text
