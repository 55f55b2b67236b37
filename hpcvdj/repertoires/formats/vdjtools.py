"""vdjtools (github.com/mikessh/vdjtools): clonotype tables of versions 1.0 and later."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.repertoires.formats.format import Field, Format


def known(column: pa.Array) -> pa.Array:
    """The column, empty where vdjtools writes a dot."""
    return pc.if_else(pc.equal(column, "."), pa.scalar("", column.type), column)


def productive(amino_acids: pa.Array) -> pa.Array:
    """T or F: whether a junction has neither a stop (*) nor a shifted frame (~ or _); empty if it is not known."""
    shown = pc.if_else(pc.match_substring_regex(amino_acids, r"[*~_]"), "F", "T")
    return pc.if_else(pc.equal(amino_acids, ""), "", shown).cast(pa.large_string())


class Vdjtools(Format):
    """Clonotypes of vdjtools."""

    name = "vdjtools"
    summary = "vdjtools clonotypes"

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the count, which comes first, and the columns of the clonotype, in lower case."""
        return columns[:1] in (["count"], ["#count"]) and {"cdr3nt", "cdr3aa", "v", "j"} <= set(columns)

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """cdr3nt is the junction."""
        has_d = {"d_call": Field(("d",), known)} if "d" in columns else {}
        return {
            "v_call": Field(("v",), known),
            **has_d,
            "j_call": Field(("j",), known),
            "junction": Field(("cdr3nt",), known),
            "junction_aa": Field(("cdr3aa",), known),
            "productive": Field(("cdr3aa",), productive),
            "duplicate_count": Field((columns[0],)),
        }
