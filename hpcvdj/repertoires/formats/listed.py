"""Lists of CDR3s: one sequence a line, without a header, nucleotides or amino acids."""

import re
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.recombination.repertoire import JunctionField
from hpcvdj.repertoires.formats.format import Field, Format, RowError

Bools = NDArray[np.bool_]

_SEQUENCE = r"(?i:[ACGTN]{15,}|[ACDEFGHIKLMNPQRSTVWYX*_~]{8,}|C[ACDEFGHIKLMNPQRSTVWYX*_~]{3,}[FVW])"
"""The first line of a list: hardly the name of a column."""

NEARLY_ALL, FEW = 0.9, 0.1
"""Sequences are junctions if the first share of lines, or more, begins with C; CDR3s if the second, or less, does."""


class Listed(Format):
    """Sequences alone.  The first lines determine the kind of all."""

    name = "list"
    summary = "a list of junctions or CDR3s, one a line, without a header"

    COLUMN = "listed_sequence"
    signatures = (frozenset({COLUMN}),)

    @staticmethod
    def named(values: Sequence[str]) -> list[str] | None:
        """By the first row: one sequence and nothing else."""
        return [Listed.COLUMN] if len(values) == 1 and re.fullmatch(_SEQUENCE, values[0].strip()) else None

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """A junction in nucleotides or amino acids, or a CDR3 in amino acids; RowError if that is not clear."""
        rows = self.first_rows([Listed.COLUMN])
        if rows is None:
            return {}
        field = field_of(rows.column(0))
        return {field: Field((Listed.COLUMN,), partial(_only, nucleotides=field == "junction"))}


def has_amino_acids(column: pa.Array) -> bool:
    """Whether any sequence clearly is of amino acids."""
    return bool(_kinds(_cleaned(column))[0].any())


def field_of(column: pa.Array) -> JunctionField:
    """The AIRR field of the sequences of a list; RowError, with the line, if they are not all of one kind."""
    column = _cleaned(column)
    is_amino, is_nucleotides = _kinds(column)
    if is_nucleotides.any():
        _require_one_kind(is_amino, is_nucleotides, nucleotides=is_nucleotides.sum() >= is_amino.sum())
        begins = _matches(column, "^TG[CT]")
        _require(
            begins[is_nucleotides].mean() > FEW, is_nucleotides & ~begins,
            "does not begin with the codon of Cys 104 (TGT, TGC), and nucleotides are read as whole junctions; give "
            "these, or amino acids",
        )  # fmt: skip
        return "junction"
    _require(
        bool(is_amino.any()), ~is_amino,
        "neither clearly amino acids nor nucleotides; give a table with the column junction or junction_aa",
    )  # fmt: skip
    begins, ends = is_amino & _matches(column, "^C"), is_amino & _matches(column, "[FVW]$")
    share = begins.sum() / is_amino.sum()
    if share <= FEW:
        return "cdr3_aa"
    _require(
        share >= NEARLY_ALL, is_amino & (begins if share < 0.5 else ~begins),
        f"{100 * share:.0f} % of the first lines begin with C, so it is not clear whether the sequences have Cys 104 "
        "and Phe/Trp 118; give all of them with both, or all without",
    )  # fmt: skip
    _require(
        ends.sum() / is_amino.sum() >= 0.5, is_amino & ~ends,
        "begins with C, as most lines, and does not end with F, V or W: give Cys 104 and Phe/Trp 118, or neither",
    )  # fmt: skip
    return "junction_aa"


def _only(column: pa.Array, *, nucleotides: bool) -> pa.Array:
    """The sequences; RowError for a sequence of the other kind."""
    column = _cleaned(column)
    _require_one_kind(*_kinds(column), nucleotides=nucleotides)
    return column


def _require_one_kind(is_amino: Bools, is_nucleotides: Bools, *, nucleotides: bool) -> None:
    kinds = ("amino acids", "nucleotides") if nucleotides else ("nucleotides", "amino acids")
    wrong = is_amino if nucleotides else is_nucleotides
    _require(not wrong.any(), wrong, f"{kinds[0]}, and other lines are {kinds[1]}; give each kind its own list")


def _cleaned(column: pa.Array) -> pa.Array:
    return pc.utf8_upper(pc.utf8_trim_whitespace(column)).cast(pa.large_string())


def _matches(column: pa.Array, pattern: str) -> Bools:
    return np.asarray(pc.match_substring_regex(column, pattern).to_numpy(zero_copy_only=False), dtype=bool)


def _kinds(column: pa.Array) -> tuple[Bools, Bools]:
    """Which rows clearly are amino acids, and which clearly are nucleotides."""
    # No nucleotide has the first symbols, not even an ambiguous one.  A sequence of 15 or more amino acids hardly has
    # the other five symbols alone.
    return _matches(column, "[EFILPQ*_~]"), _matches(column, "^[ACGTN]{15,}$")


def _require(fulfilled: bool, wrong: Bools, text: str) -> None:
    """Raise RowError for the first wrong row unless a condition is fulfilled."""
    if not fulfilled:
        raise RowError(int(np.flatnonzero(wrong)[0]) if wrong.any() else 0, text)
