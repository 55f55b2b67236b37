"""What a page is made of: sections, blocks, tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hpcvdj.report.survey import Survey

if TYPE_CHECKING:
    from hpcvdj.report.figures.drawing import Drawing


@dataclass(frozen=True)
class Table:
    """A table of a page: texts, the first of each row its header.

    Columns: `text` are no numbers, `code` are sequences, `wrap` are long texts that may be broken.
    """

    caption: str
    columns: list[str]
    rows: list[list[str]]
    text: frozenset[int] = frozenset({0})
    code: frozenset[int] = frozenset()
    wrap: frozenset[int] = frozenset()


@dataclass
class Block:
    """Something under a heading, in this order: sentences, figures in columns, tables, tables that unfold."""

    words: list[str] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    unfold: list[tuple[str, Table]] = field(default_factory=list)
    heading: str = ""
    small: bool = False


@dataclass
class Section:
    """A heading of the page, and what stands under it."""

    anchor: str
    heading: str
    blocks: list[Block]


def percent(part: int, whole: int) -> str:
    """A share in percent, with two digits behind the point."""
    return f"{100 * part / whole:.2f} %" if whole else "–"


def quantile(one: Survey, share: float) -> str:
    if not one.counted:
        return "–"
    value, exact = one.per_junction.quantile(share)
    return f"{'' if exact else 'about '}{value:,.1f}".removesuffix(".0")


def of_result(item: Survey, one: Survey | None) -> str:
    return "" if one else f" of {item.name}"
