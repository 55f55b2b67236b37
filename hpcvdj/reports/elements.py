"""What a page is made of: tables, figures that are drawn from them, and sections."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hpcvdj.reports.survey import Survey

Cell = int | float | str | None
"""A value of a table; None if there is no value."""

Kind = Literal["number", "text", "code", "long"]
Rows = Callable[[Survey], Iterable[list[Cell]]]
Facts = Callable[[Survey], dict[str, Cell]]

_LARGEST_EXACT = 2**53


@dataclass(frozen=True)
class Column:
    """A column of a table: its name in the data of figures, its header, and what it has.

    A `code` is a sequence, a `long` text may be broken over lines.
    """

    key: str
    title: str
    kind: Kind = "number"


_TITLES = {
    "share": "share of junctions, %", "of_rows": "share of all rows, %", "ways": "share of pathways, %",
    "median": "pathways of a junction, median", "mean": "pathways of a junction, mean", "low": "pathways, from",
    "high": "pathways, to", "v": "V gene", "j": "J gene", "n": "n-nucleotides", "size": "CDR3 length, nt",
    "first": "junctions that need that many", "reached": "junctions with a pathway, %",
    "none": "junctions without a pathway", "v_call": "V allele", "j_call": "J allele", "d_call": "D allele",
    "aa": "CDR3, amino acids", "cdr3": "CDR3, nucleotides", "id": "first sequence_id", "d_form": "D form",
    "track": "origin of each letter", "n1": "n left of D", "n2": "n right of D", "v_trim": "V, bases lost",
    "d_trim_5": "D, bases lost 5′", "d_trim_3": "D, bases lost 3′", "j_trim": "J, bases lost",
    "pgen": "generation probability", "option": "option that includes them", "examples": "in detail (rows)",
}  # fmt: skip
"""The headers of columns that are not called by their keys."""

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("result", "v", "j", "v_call", "j_call", "d_call", "option"), "text"),
    **dict.fromkeys(("aa", "cdr3", "track", "v_trim", "n1", "d_form", "d_trim_5", "d_trim_3", "n2", "j_trim"), "code"),
    **dict.fromkeys(("id", "reason", "examples", "repertoire_id"), "long"),
}


def columns(keys: Iterable[str]) -> tuple[Column, ...]:
    return tuple(Column(key, _TITLES.get(key, key), _KINDS.get(key, "number")) for key in keys)


@dataclass(frozen=True)
class Table:
    """A table of the page; `name` is unique.  `sortable`: the page offers to sort, filter and download it."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: list[list[Cell]]
    sortable: bool = True

    @staticmethod
    def of(name: str, caption: str, keys: str, surveys: Sequence[Survey], rows: Rows) -> "Table":
        """The rows of each result, with a column `result` if there are several."""
        if len(surveys) == 1:
            return Table(name, caption, columns(keys.split()), list(rows(surveys[0])))
        stacked: list[list[Cell]] = [[survey.name, *row] for survey in surveys for row in rows(survey)]
        return Table(name, caption, columns(["result", *keys.split()]), stacked)

    @staticmethod
    def beside(name: str, caption: str, surveys: Sequence[Survey], facts: Facts) -> "Table":
        """A row for each fact, and a column for each result."""
        known = [facts(survey) for survey in surveys]
        keys = dict.fromkeys(key for own in known for key in own)
        names = (Column(f"result{k}", survey.name, "long") for k, survey in enumerate(surveys))
        rows: list[list[Cell]] = [[key, *(own.get(key) for own in known)] for key in keys]
        return Table(name, caption, (Column("fact", "", "text"), *names), rows, sortable=False)

    def column(self, key: str) -> Column:
        return next(column for column in self.columns if column.key == key)

    def records(self) -> list[dict[str, Any]]:
        """The rows as data of figures; integers that JavaScript cannot hold become floats."""
        keys = [column.key for column in self.columns]
        rows = ([float(x) if isinstance(x, int) and x > _LARGEST_EXACT else x for x in row] for row in self.rows)
        return [dict(zip(keys, row, strict=True)) for row in rows]

    def peak(self, key: str, words: str) -> str:
        """The row with the largest value in the column `key`, in words with {keys}; of each result."""
        best: dict[str, dict[str, Any]] = {}
        for record in self.records():
            result = f"{record['result']}: " if "result" in record else ""
            if record[key] is not None and (result not in best or record[key] > best[result][key]):
                best[result] = record
        texts = {result: {name: shown(cell) for name, cell in record.items()} for result, record in best.items()}
        return "; ".join(result + words.format(**cells) for result, cells in texts.items())


@dataclass(frozen=True)
class Figure:
    """A figure, drawn from a table of the page.

    name     of its files
    kind     what is to be seen, as "Heatmap"
    caption  what it shows, with its main numbers
    chart    an Altair chart whose data is `table`, by its name
    """

    name: str
    kind: str
    caption: str
    chart: Any
    table: Table

    @property
    def spec(self) -> dict[str, Any]:
        """The chart in Vega-Lite, without data, and with words for those who do not see it."""
        spec: dict[str, Any] = self.chart.properties(description=f"{self.kind}. {self.caption}").to_dict(validate=False)
        # The page names no addresses, and has one configuration for all figures.
        return {key: value for key, value in spec.items() if key not in ("$schema", "config")}


@dataclass(frozen=True)
class Section:
    """A heading, and what follows: sentences, figures and tables; other tables of the figures are folded."""

    anchor: str
    heading: str
    words: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)

    @property
    def folded(self) -> list[Table]:
        """The tables of figures that are not among `tables`."""
        drawn = {figure.table.name: figure.table for figure in self.figures}
        return [table for table in drawn.values() if table not in self.tables]


def shown(cell: Cell) -> str:
    """A value as text: integers in full, other numbers with four digits."""
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def percent(part: int, total: int) -> str:
    """A share with two decimals."""
    return f"{100 * part / total:.2f} %" if total else "–"
