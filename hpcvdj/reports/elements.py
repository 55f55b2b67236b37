"""The elements of a page: statements, tables, figures that show tables, and sections."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from string import Formatter
from typing import Any, Literal

Cell = int | float | str | None
"""A value of a table; None if there is no value."""

Chart = dict[str, Any]
"""A chart, or a part of one, in Vega-Lite."""

Kind = Literal["number", "text", "code", "long", "names"]

MOST_LISTED = 1000
"""The most rows of a list on the page; the file that it comes from has them all."""

_LARGEST_EXACT = 2**53

_TITLES = {
    "share": "share of junctions, %", "of_rows": "share of rows, %", "v": "V gene", "j": "J gene",
    "n": "n-nucleotides", "length": "CDR3 length", "v_call": "V", "j_call": "J", "aa": "CDR3, amino acids",
    "cdr3": "CDR3, nucleotides", "read": "rows read", "counted": "rows with a value",
    "option": "option that keeps them", "examples": "in detail (rows)", "weight_sum": "weight, sum",
    "pathways_total": "pathways", "pgen_nt": "Pgen, nucleotides", "pgen_aa": "Pgen, amino acids",
    "pgen_aa_1mm": "Pgen, one mismatch", "nt_variants": "nucleotide variants",
    "junction_aa": "junction, amino acids", "junction": "junction, nucleotides", "cdr3_aa": "CDR3, amino acids",
    "n_individuals": "individuals", "individuals": "which individuals", "max_duplicate_count": "reads of largest clone",
    "p_post": "probability after selection", "expected_individuals": "individuals, expected", "effect": "effect size",
    "p_value": "p-value", "q_value": "q-value", "duplicate_count": "reads", "class_size": "junctions with V and J",
    "pgen_ball": "Pgen, within one exchange", "p_productive_vj": "P(productive, V, J)",
    "control_neighbours": "neighbours in control", "control_size": "junctions in control",
    "individual_1": "individual 1", "individual_2": "individual 2", "low_1": "improbable junctions of 1",
    "low_2": "improbable junctions of 2", "shared_low": "improbable junctions shared",
    "expected_low": "shared, expected", "common_source": "of a common source",
    "share_of_1": "share of 1 in 2", "share_of_2": "share of 2 in 1", "more_reads_1": "more reads in 1",
    "more_reads_2": "more reads in 2", "third": "has them, too", "sample_1": "sample 1", "sample_2": "sample 2",
    "detectable": "share of copies that would be seen", "same_nt": "with the same nucleotides",
    "likely_copy": "likely copy", "not_tested": "not tested, because", "kappa": "κ", "kappa from": "κ from",
    "found": "hits", "hits_called": "hits called", "epitopes_called": "epitopes called", "record": "nearest record",
    "distance": "residues exchanged", "fdr": "false discovery rate", "precursor_frequency": "precursor frequency",
    "members": "sequences of the ball", "odds_ratio": "odds ratio", "hits_weighted": "hits with weights",
    "donors_in_strata_of_one_value": "donors in strata of one value",
    "hits_that_are_copies": "likely copies among hits",
    "hits_that_may_be_copies": "perhaps copies", "inflation_of_fisher": "inflation of Fisher's test",
    "depth_ratio": "depth ratio", "log2_fold_change": "fold change, log2",
    **dict.fromkeys(("odds_ratio_low", "log2_fold_change_low", "ratio_low"), "95 % interval, from"),
    **dict.fromkeys(("odds_ratio_high", "log2_fold_change_high", "ratio_high"), "to"),
}  # fmt: skip
"""The headers of columns, if they differ from their keys."""

_KINDS: dict[str, Kind] = {
    "individuals": "names",
    **dict.fromkeys((
        "v", "j", "v_call", "j_call", "option", "predictor", "series", "command", "gene", "verdict", "likely_copy",
        "hill_0_interval", "hill_1_interval", "hill_2_interval", "epitope", "antigen", "organism", "mhc", "decoy",
        "reference", "kappa from", "locus",
    ), "text"),
    **dict.fromkeys(("aa", "cdr3", "junction_aa", "cdr3_aa", "junction", "junction_aa_1", "junction_aa_2", "record"),
                    "code"),
    **dict.fromkeys((
        "sample", "group", "reason", "examples", "individual", "individual_1", "individual_2", "file", "made by",
        "when", "version", "model", "reads of the clone", "colour", "sample_1", "sample_2", "not_tested", "phenotype",
        "subject", "finding", "reads hardly tell it from", "frame",
    ), "long"),
}  # fmt: skip
"""The kinds of columns that do not hold numbers."""


@dataclass(frozen=True)
class PageColumn:
    """A column of a table.

    key    its name in the data of figures
    title  its header
    kind   what it holds: a `code` is a sequence, a `long` text may break over lines, commas and blanks join `names`
    """

    key: str
    title: str
    kind: Kind


@dataclass(frozen=True)
class PageTable:
    """A table of the page; `name` is unique.  `note` says which rows it has if it lacks some."""

    name: str
    caption: str
    columns: tuple[PageColumn, ...]
    rows: list[list[Cell]]
    note: str = ""

    @staticmethod
    def of(
        name: str, caption: str, keys: str | list[str], rows: Iterable[Mapping[str, Any]], /, **titles: str
    ) -> "PageTable":
        """A table of the columns `keys` of rows, without those that have no value.

        titles  the headers of columns by key, for those of other headers than usual
        """
        names = keys.split() if isinstance(keys, str) else keys
        cells = [[_cell(row.get(name)) for name in names] for row in rows]
        kept = [k for k in range(len(names)) if not cells or any(row[k] is not None for row in cells)]
        headers = {**_TITLES, **titles}
        columns = [PageColumn(key, headers.get(key, key), kind_of(key)) for key in (names[k] for k in kept)]
        return PageTable(name, caption, tuple(columns), [[row[k] for k in kept] for row in cells])

    def first(self, total: int, source: str) -> "PageTable":
        """The first rows, as many as a page lists; a note says if `source`, of `total` rows, has more."""
        rows = self.rows[:MOST_LISTED]
        note = f"The first {len(rows):,} of {total:,}; all are in {source}." if total > len(rows) else ""
        return replace(self, rows=rows, note=note)

    def has(self, key: str) -> bool:
        return any(column.key == key for column in self.columns)

    def column(self, key: str) -> PageColumn:
        return next(column for column in self.columns if column.key == key)

    def records(self) -> list[dict[str, Cell]]:
        """The rows as data of figures."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]

    def peak(self, key: str, words: str) -> str:
        """`words` with {keys} filled in from the row that has them and the largest value in the column `key`.

        Empty without such rows.
        """
        needed = [name for _, name, *_ in Formatter().parse(words) if name]
        having = [record for record in self.records() if all(record.get(name) is not None for name in needed)]
        rows = [record for record in having if isinstance(record[key], int | float)]
        best = max(rows, key=lambda record: float(record[key] or 0), default=None)
        return words.format(**{name: shown(cell) for name, cell in best.items()}) if best else ""


@dataclass(frozen=True)
class Figure:
    """A figure that shows tables of the page.

    name     the name of its files
    kind     the kind of chart, such as "Heat map"
    caption  what it shows, with its main numbers
    chart    in Vega-Lite; its data are the `tables`, by name
    wide     whether it takes the width of the page
    """

    name: str
    kind: str
    caption: str
    chart: Chart
    tables: tuple[PageTable, ...]
    wide: bool = False

    @property
    def spec(self) -> Chart:
        """The chart, with a description for those who cannot see it."""
        return {"description": f"{self.kind}. {self.caption}", **self.chart}


Verdict = Literal["yes", "with care", "no", "not checked"]


@dataclass(frozen=True)
class Statement:
    """What the data say about a question, and whether one can rely on it."""

    question: str
    verdict: Verdict
    answer: str


@dataclass(frozen=True)
class Section:
    """A heading and what follows it."""

    anchor: str
    heading: str
    words: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    tables: list[PageTable] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    @property
    def folded(self) -> list[PageTable]:
        """The tables of figures that are not among `tables`; the page folds them away."""
        drawn = {table.name: table for figure in self.figures for table in figure.tables}
        return [table for name, table in drawn.items() if name not in {table.name for table in self.tables}]


def kind_of(key: str) -> Kind:
    """What a column of this name holds, in tables of the page and of findings."""
    return _KINDS.get(key, "number")


def _cell(value: Any) -> Cell:
    """A value that JSON and JavaScript can hold: no NaN, infinity, larger integers or control characters."""
    if value is None or value == "":
        return None
    if isinstance(value, bool | str):
        return printable(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return int(value) if abs(int(value)) <= _LARGEST_EXACT else float(value)


def printable(text: str) -> str:
    """The text, with U+FFFD in place of letters that cannot be printed."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def shown(cell: Cell) -> str:
    """A value as text: integers in full, other numbers with three digits, a dash for no value."""
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def percent(part: float, total: float) -> str:
    """A share with two digits; above 99 % with five, which tell it from 100 %."""
    share = 100 * part / max(1, total)
    return f"{share:.2g} %" if share < 99 else f"{share:.5g} %"
