"""What a page is made of: statements, tables, figures that are drawn from tables, and sections."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Cell = int | float | str | None
"""A value of a table; None if there is no value."""

Kind = Literal["number", "text", "code", "long", "names"]

MOST_LISTED = 1000
"""Rows of a list on the page; the file that it comes from has them all."""

_LARGEST_EXACT = 2**53

_TITLES = {
    "share": "share of junctions, %", "of_rows": "share of rows, %", "v": "V gene", "j": "J gene",
    "n": "n-nucleotides", "length": "CDR3 length", "v_call": "V", "j_call": "J", "aa": "CDR3, amino acids",
    "cdr3": "CDR3, nucleotides", "read": "rows read", "counted": "rows with a value",
    "option": "option that keeps them",
    "examples": "in detail (rows)", "weight": "weight", "weight_sum": "weight, sum", "pathways_total": "pathways",
    "pgen_nt": "Pgen, nucleotides", "pgen_aa": "Pgen, amino acids", "pgen_aa_1mm": "Pgen, one mismatch",
    "nt_variants": "nucleotide variants", "junction_aa": "junction, amino acids", "junction": "junction, nucleotides",
    "cdr3_aa": "CDR3, amino acids",
    "n_individuals": "individuals", "individuals": "which individuals", "max_duplicate_count": "reads of largest clone",
    "p_post": "probability after selection", "expected_individuals": "individuals, expected", "effect": "effect size",
    "p_value": "p-value", "q_value": "q-value", "neighbours": "neighbours", "expected": "expected",
    "duplicate_count": "reads", "class_size": "junctions with V and J", "pgen_ball": "Pgen, within one exchange",
    "p_productive_vj": "P(productive, V, J)", "control_neighbours": "neighbours in control",
    "control_size": "junctions in control", "individual_1": "individual 1", "individual_2": "individual 2",
    "low_1": "improbable junctions of 1", "low_2": "improbable junctions of 2",
    "shared_low": "improbable junctions shared", "expected_low": "shared, expected", "rate": "rate",
    "common_source": "of a common source", "detectable": "share of copies that would be seen", "rows": "rows",
    "same_nt": "with the same nucleotides", "likely_copy": "likely copy", "not_tested": "not tested, because",
}  # fmt: skip
"""The headers of columns that are not called by their keys."""

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("v", "j", "v_call", "j_call", "option", "predictor", "series", "command", "gene", "verdict",
                    "likely_copy", "hill_0_interval", "hill_1_interval", "hill_2_interval"), "text"),
    "individuals": "names",
    **dict.fromkeys(("epitope", "antigen", "organism", "mhc", "decoy", "reference", "kappa from"), "text"),
    **dict.fromkeys(("aa", "cdr3", "junction_aa", "cdr3_aa", "junction", "junction_aa_1", "junction_aa_2", "record"),
                    "code"),
    **dict.fromkeys(
        (
            "sample", "group", "reason", "examples", "individual", "individual_1", "individual_2",
            "file",
            "made by", "when", "version", "model", "reads of the clone", "colour", "sample_1", "sample_2",
            "not_tested", "phenotype", "subject", "finding", "reads hardly tell it from", "frame",
        ),
        "long",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column of a table: its name in the data of figures, its header, and what it has.

    A `code` is a sequence, a `long` text may be broken over lines, `names` are joined by commas and blanks.
    """

    key: str
    title: str
    kind: Kind


@dataclass(frozen=True)
class Table:
    """A table of the page; `name` is unique.  `note` says which rows it has, if not all."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: list[list[Cell]]
    note: str = ""

    @staticmethod
    def of(
        name: str, caption: str, keys: str | list[str], rows: Iterable[Mapping[str, Any]], /, **titles: str
    ) -> "Table":
        """The columns `keys` of rows, as JSON can hold them; columns without a value are left out."""
        names = keys.split() if isinstance(keys, str) else keys
        cells = [[_cell(row.get(name)) for name in names] for row in rows]
        kept = [k for k in range(len(names)) if not cells or any(row[k] is not None for row in cells)]
        headers = {**_TITLES, **titles}
        columns = [Column(key, headers.get(key, key), _KINDS.get(key, "number")) for key in (names[k] for k in kept)]
        return Table(name, caption, tuple(columns), [[row[k] for k in kept] for row in cells])

    def first(self, total: int, source: str) -> "Table":
        """The rows that a page lists, with a note if there are more: `total` rows in `source`."""
        rows = self.rows[:MOST_LISTED]
        note = f"The first {len(rows):,} of {total:,}; all are in {source}." if total > len(rows) else ""
        return replace(self, rows=rows, note=note)

    def has(self, key: str) -> bool:
        return any(column.key == key for column in self.columns)

    def column(self, key: str) -> Column:
        return next(column for column in self.columns if column.key == key)

    def records(self) -> list[dict[str, Cell]]:
        """The rows as data of figures."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]

    def peak(self, key: str, words: str) -> str:
        """The row with the largest value in the column `key`, in words with {keys}; empty without rows."""
        rows = [record for record in self.records() if isinstance(record[key], int | float)]
        best = max(rows, key=lambda record: float(record[key] or 0), default=None)
        return words.format(**{name: shown(cell) for name, cell in best.items()}) if best else ""


@dataclass(frozen=True)
class Figure:
    """A figure, drawn from tables of the page.

    name     of its files
    kind     what is to be seen, as "Heat map"
    caption  what it shows, with its main numbers
    chart    an Altair chart whose data are the `tables`, by name
    """

    name: str
    kind: str
    caption: str
    chart: Any
    tables: tuple[Table, ...]
    wide: bool = False

    @property
    def spec(self) -> dict[str, Any]:
        """The chart in Vega-Lite, without data, and with words for those who do not see it."""
        spec: dict[str, Any] = self.chart.properties(description=f"{self.kind}. {self.caption}").to_dict(validate=False)
        # The page names no addresses, and has one configuration for all figures.
        return {key: value for key, value in spec.items() if key not in ("$schema", "config")}


Verdict = Literal["yes", "with care", "no", "not checked"]


@dataclass(frozen=True)
class Statement:
    """What the data say of a question, and whether it can be relied on."""

    question: str
    verdict: Verdict
    answer: str


@dataclass(frozen=True)
class Section:
    """A heading, and what follows; other tables of the figures are folded."""

    anchor: str
    heading: str
    words: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    @property
    def folded(self) -> list[Table]:
        """The tables of figures that are not among `tables`."""
        drawn = {table.name: table for figure in self.figures for table in figure.tables}
        return [table for name, table in drawn.items() if name not in {table.name for table in self.tables}]


def _cell(value: Any) -> Cell:
    """A value as JSON can hold it: no NaN or infinity, no integers that JavaScript cannot hold, no control
    characters."""
    if isinstance(value, bool) or value is None or value == "":
        return None if value in (None, "") else str(value)
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return int(value) if abs(int(value)) <= _LARGEST_EXACT else float(value)


def printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def shown(cell: Cell) -> str:
    """A value as text: integers in full, other numbers with three digits."""
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def percent(part: float, total: float) -> str:
    """A share with two digits; above 99 % with those that tell it from 100 %."""
    share = 100 * part / max(1, total)
    return f"{share:.2g} %" if share < 99 else f"{share:.5g} %"
