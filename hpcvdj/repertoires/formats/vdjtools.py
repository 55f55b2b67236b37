"""vdjtools (github.com/mikessh/vdjtools): clonotype tables of all versions."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.repertoires.formats.format import Field, Format
from hpcvdj.repertoires.formats.steps import after, counts, locus, present, productive, stated


def calls(column: pa.Array) -> pa.Array:
    """Genes.  Version 0 writes a blank after each comma of a list."""
    return pc.replace_substring(stated(column), ", ", ",")


class Vdjtools(Format):
    """Clonotypes of vdjtools."""

    name = "vdjtools"
    summary = "vdjtools clonotypes"

    OLDEST = ("#Seq. Count", "N Sequence", "AA Sequence", "V segments", "D segment", "J segments")
    """Its columns before version 1."""

    signatures = (
        frozenset({"count", "cdr3nt", "cdr3aa", "v", "j"}),
        frozenset({"#count", "cdr3nt", "cdr3aa", "v", "j"}),
        frozenset({*OLDEST} - {"D segment"}),
    )

    @staticmethod
    def _columns(columns: Sequence[str]) -> tuple[str, ...]:
        if "#Seq. Count" in columns:
            return Vdjtools.OLDEST
        return ("#count" if "#count" in columns else "count", "cdr3nt", "cdr3aa", "v", "d", "j")

    @classmethod
    def recognises(cls, columns: Sequence[str]) -> bool:
        """By the columns of the clonotype, in lower case or as in version 0, and the first column, the count."""
        return super().recognises(columns) and columns[0] == cls._columns(columns)[0]

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """cdr3nt is the junction."""
        count, nucleotides, amino_acids, v, d, j = self._columns(columns)
        return {
            "v_call": Field((v,), calls),
            **present(columns, {"d_call": Field((d,), calls)}),
            "j_call": Field((j,), calls),
            "junction": Field((nucleotides,), stated),
            "junction_aa": Field((amino_acids,), stated),
            "productive": Field((amino_acids,), after(stated, productive)),
            "locus": Field((j,), locus),
            "duplicate_count": Field((count,), counts),
        }
