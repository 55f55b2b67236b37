"""TRUST4 (github.com/liulab-dfci/TRUST4): its report; other tables of it are refused, or are AIRR tables."""

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.repertoires.formats.format import REASON, Field, Format
from hpcvdj.repertoires.formats.steps import after, counts, kept, known, locus, present, productive, reason, without


def _junction(nucleotides: pa.Array, amino_acids: pa.Array) -> pa.Array:
    return kept(known(nucleotides), pc.not_equal(amino_acids, "partial"))


def _why(amino_acids: pa.Array) -> pa.Array:
    return reason(ExclusionKind.PARTIAL_JUNCTION, pc.equal(amino_acids, "partial"))


def _productive(amino_acids: pa.Array) -> pa.Array:
    # A word is in lower case, and so no amino acids.
    return productive(without(".", "partial")(amino_acids))


class Trust4(Format):
    """Report of TRUST4."""

    name = "trust4"
    summary = "TRUST4 report (*_report.tsv)"

    marks = (frozenset({"#count", "CDR3nt", "CDR3aa", "V", "J"}),)

    @classmethod
    def recognises(cls, columns: Sequence[str]) -> bool:
        """By the columns of the CDR3, in this spelling; the count comes first."""
        return super().recognises(columns) and columns[0] == "#count"

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """CDR3nt is the junction, unless it is only part of one."""
        return {
            "v_call": Field(("V",), known),
            "j_call": Field(("J",), known),
            "junction": Field(("CDR3nt", "CDR3aa"), _junction),
            "junction_aa": Field(("CDR3aa",), without(".", "partial", "out_of_frame")),
            "productive": Field(("CDR3aa",), _productive),
            "locus": Field(("J",), after(known, locus)),
            "duplicate_count": Field(("#count",), counts),
            **present(columns, {"d_call": Field(("D",), known), "c_call": Field(("C",), known)}),
            REASON: Field(("CDR3aa",), _why),
        }


class Trust4Cells(Format):
    """Cells of TRUST4, with two chains a row."""

    name = "trust4_cells"
    summary = "TRUST4 barcode report"
    refusal = "it has several chains a row; give the file NAME_barcode_airr.tsv of the same run"

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the barcode, which comes first, and the chains."""
        return list(columns[:1]) in (["#barcode"], ["barcode"]) and {"chain1", "chain2"} <= set(columns)


class Trust4Contigs(Format):
    """Annotations of TRUST4's contigs, without a header."""

    name = "trust4_cdr3"
    summary = "TRUST4 annotations of contigs (*_cdr3.out)"
    refusal = "give the file NAME_report.tsv or NAME_airr.tsv of the same run"

    NAMES = ("contig", "number", "v_genes", "d_genes", "j_genes", "c_genes", "cdr1", "cdr2", "cdr3")

    @staticmethod
    def named(values: Sequence[str]) -> list[str] | None:
        """By a number and four genes, of which it knows some, and three regions."""
        first, names = list(values[:9]), Trust4Contigs.NAMES
        if len(first) < len(names) or not re.fullmatch("[0-9]+", first[1]):
            return None
        genes = [bool(re.match("(IG[HKL]|TR[ABDG])[A-Z]", gene)) for gene in first[2:6]]
        regions = all(re.fullmatch(r"[ACGTN]+|\*", region) for region in first[6:])
        return [*names, *(f"column {k}" for k in range(10, len(values) + 1))] if any(genes) and regions else None

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the names that its columns are given."""
        return tuple(columns[:9]) == Trust4Contigs.NAMES
