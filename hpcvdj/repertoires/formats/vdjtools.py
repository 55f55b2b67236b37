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
    name = "vdjtools"
    summary = "vdjtools clonotypes"

    OLDEST = ("#Seq. Count", "N Sequence", "AA Sequence", "V segments", "D segment", "J segments")
    """Its columns before version 1."""

    signatures = (
        frozenset({"count", "cdr3nt", "cdr3aa", "v", "j"}),
        frozenset({"#count", "cdr3nt", "cdr3aa", "v", "j"}),
        frozenset({*OLDEST} - {"D segment"}),
    )
    first = ("#Seq. Count", "#count", "count")

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """cdr3nt is the junction."""
        later = "#count" if "#count" in columns else "count", "cdr3nt", "cdr3aa", "v", "d", "j"
        count, nucleotides, amino_acids, v, d, j = self.OLDEST if self.OLDEST[0] in columns else later
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
