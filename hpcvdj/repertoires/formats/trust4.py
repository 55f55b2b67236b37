"""TRUST4 (github.com/liulab-dfci/TRUST4): its report.  Its other tables are AIRR tables or are refused."""

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.repertoires.formats.format import REASON, Field, Format
from hpcvdj.repertoires.formats.steps import after, counts, kept, locus, present, productive, reason, stated, without


def _junction(nucleotides: pa.Array, amino_acids: pa.Array) -> pa.Array:
    return kept(stated(nucleotides), pc.not_equal(amino_acids, "partial"))


class Trust4(Format):
    name = "trust4"
    summary = "TRUST4 report (*_report.tsv)"
    signatures = (frozenset({"#count", "CDR3nt", "CDR3aa", "V", "J"}),)
    first = ("#count",)

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """CDR3nt is the junction, unless CDR3aa says that it is a part of one."""
        return {
            "v_call": Field(("V",), stated),
            "j_call": Field(("J",), stated),
            "junction": Field(("CDR3nt", "CDR3aa"), _junction),
            "junction_aa": Field(("CDR3aa",), without(".", "partial", "out_of_frame")),
            # The word out_of_frame is not productive, as it does not begin with C.
            "productive": Field(("CDR3aa",), after(without(".", "partial"), productive)),
            "locus": Field(("J",), after(stated, locus)),
            "duplicate_count": Field(("#count",), counts),
            **present(columns, {"d_call": Field(("D",), stated), "c_call": Field(("C",), stated)}),
            REASON: Field(
                ("CDR3aa",), lambda column: reason(ExclusionKind.PARTIAL_JUNCTION, pc.equal(column, "partial"))
            ),
        }


class Trust4Cells(Format):
    """Cells of TRUST4, with several chains a row."""

    name = "trust4_cells"
    summary = "TRUST4 barcode report"
    refusal = "it has several chains a row; give the file NAME_barcode_airr.tsv of the same run"
    signatures = (frozenset({"chain1", "chain2"}),)
    first = ("#barcode", "barcode")


class Trust4Contigs(Format):
    """Annotations of contigs of TRUST4, without a header."""

    name = "trust4_cdr3"
    summary = "TRUST4 annotations of contigs (*_cdr3.out)"
    refusal = "give the file NAME_report.tsv or NAME_airr.tsv of the same run"

    NAMES = ("contig", "number", "v_genes", "d_genes", "j_genes", "c_genes", "cdr1", "cdr2", "cdr3")
    signatures = (frozenset(NAMES),)

    @staticmethod
    def named(values: Sequence[str]) -> list[str] | None:
        """By a number, four genes, any of which may be missing, and three regions."""
        first, names = list(values[:9]), Trust4Contigs.NAMES
        if len(first) < len(names) or not re.fullmatch("[0-9]+", first[1]):
            return None
        genes = [bool(re.match("(IG[HKL]|TR[ABDG])[A-Z]", gene)) for gene in first[2:6]]
        regions = all(re.fullmatch(r"[ACGTN]+|\*", region) for region in first[6:])
        return [*names, *(f"column {k}" for k in range(10, len(values) + 1))] if any(genes) and regions else None
