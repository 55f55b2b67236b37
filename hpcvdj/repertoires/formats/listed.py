"""Lists of CDR3s: one sequence a line, without a header, nucleotides or amino acids."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.recombination.repertoire import JunctionField
from hpcvdj.repertoires.formats.format import Field, Format, RowError

Bools = NDArray[np.bool_]

_SEQUENCE = r"(?i:[ACGTN]{15,}|[ACDEFGHIKLMNPQRSTVWYX*_~]{8,}|C[ACDEFGHIKLMNPQRSTVWYX*_~]{3,}[FVW])"
"""What the first line of a list is; hardly the name of a column."""

_IS_AMINO = "[EFILPQ*_~]"
"""Symbols that no nucleotide has, not even an ambiguous one."""

_IS_NUCLEOTIDES = "^[ACGTN]{15,}$"
"""So many amino acids are hardly of these five alone."""

NEARLY_ALL, FEW = 0.9, 0.1
"""The shares of lines that begin with C from which on all sequences are junctions, and up to which they are CDR3s."""


class Listed(Format):
    """Sequences alone; the first lines say what all are."""

    name = "list"
    summary = "a list of junctions or CDR3s, one a line, without a header"

    COLUMN = "listed_sequence"

    @staticmethod
    def named(values: Sequence[str]) -> list[str] | None:
        """By the first row: one sequence and nothing else."""
        return [Listed.COLUMN] if len(values) == 1 and re.fullmatch(_SEQUENCE, values[0].strip()) else None

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the name that its column is given."""
        return list(columns) == [Listed.COLUMN]

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """A junction in nucleotides or amino acids, or a CDR3 in amino acids; RowError if that is not clear."""
        rows = self.first_rows([Listed.COLUMN])
        if rows is None:
            return {}
        field = field_of(rows.column(0))
        return {field: Field((Listed.COLUMN,), _only(nucleotides=field == "junction"))}


def has_amino_acids(column: pa.Array) -> bool:
    """Whether some sequences clearly are amino acids."""
    return bool(_kinds(_cleaned(column))[0].any())


def field_of(column: pa.Array) -> JunctionField:
    """The AIRR field that the sequences of a list are; RowError, with the line, if they are not all of one kind."""
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


def _only(*, nucleotides: bool) -> Callable[[pa.Array], pa.Array]:
    """A step that raises RowError for a sequence of the other kind."""

    def cleaned(column: pa.Array) -> pa.Array:
        column = _cleaned(column)
        _require_one_kind(*_kinds(column), nucleotides=nucleotides)
        return column

    return cleaned


def _require_one_kind(
    is_amino: Bools,
    is_nucleotides: Bools,
    *,
    nucleotides: bool,
) -> None:
    kinds = ("amino acids", "nucleotides") if nucleotides else ("nucleotides", "amino acids")
    wrong = is_amino if nucleotides else is_nucleotides
    _require(not wrong.any(), wrong, f"{kinds[0]}, and other lines are {kinds[1]}; give each kind its own list")


def _cleaned(column: pa.Array) -> pa.Array:
    return pc.utf8_upper(pc.utf8_trim_whitespace(column)).cast(pa.large_string())


def _matches(column: pa.Array, pattern: str) -> Bools:
    return np.asarray(pc.match_substring_regex(column, pattern).to_numpy(zero_copy_only=False), dtype=bool)


def _kinds(
    column: pa.Array,
) -> tuple[Bools, Bools]:
    """Which rows clearly are amino acids, and which nucleotides."""
    return _matches(column, _IS_AMINO), _matches(column, _IS_NUCLEOTIDES)


def _require(fulfilled: bool, wrong: Bools, text: str) -> None:
    """Raise RowError for the first row that is wrong, unless a condition is fulfilled."""
    if not fulfilled:
        raise RowError(int(np.flatnonzero(wrong)[0]) if wrong.any() else 0, text)
