"""10x Genomics Cell Ranger, versions 2 to 8: annotations of contigs and of consensus sequences.

Versions differ in the order of columns and in the spelling of booleans and missing values.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.repertoires.formats import steps
from hpcvdj.repertoires.formats.format import REASON, Field, Format

stated = steps.without("None")


def _why(cdr3: pa.Array, cell: pa.Array, confidence: pa.Array, chain: pa.Array) -> pa.Array:
    """`REASON` of contigs that Cell Ranger does not count; empty for rows without a CDR3, which are excluded anyway."""
    why = steps.reason(ExclusionKind.LOW_CONFIDENCE, pc.equal(steps.truth(confidence), "F"))
    why = steps.reason(ExclusionKind.NOT_A_CELL, pc.equal(steps.truth(cell), "F"), why)
    return steps.kept(
        steps.reason(ExclusionKind.SEVERAL_CHAINS, pc.equal(pc.utf8_lower(chain), "multi"), why),
        pc.not_equal(stated(cdr3), ""),
    )


class Contigs(Format):
    name = "10x_all"
    summary = "10x contigs, with those that are of no cell, of low confidence or of several chains"

    ID = "contig_id"

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """10x calls the junction CDR3.  Its columns cdr1, cdr3 and so on are amino acids, AIRR's are nucleotides."""
        sample = steps.first_of(columns, "sample")
        regions = "fwr1", "cdr1", "fwr2", "cdr2", "fwr3", "fwr4"
        junction = ("cdr3_nt",)

        def amino_acids(protein: pa.Array, nucleotides: pa.Array) -> pa.Array:
            return steps.kept(stated(protein), pc.not_equal(stated(nucleotides), ""))

        return {
            "sequence_id": Field((sample, self.ID), steps.joined) if sample else Field((self.ID,)),
            "v_call": Field(("v_gene",), steps.after(stated, steps.slashed)),
            "j_call": Field(("j_gene",), steps.after(stated, steps.slashed)),
            "junction": Field(junction, stated),
            **steps.present(columns, {
                "d_call": Field(("d_gene",), stated),
                "c_call": Field(("c_gene",), stated),
                "junction_aa": Field(("cdr3", *junction), amino_acids),
                "cdr3": Field(junction, lambda column: steps.trimmed(stated(column), 3)),
                "cdr3_aa": Field(("cdr3", *junction), lambda *arrays: steps.trimmed(amino_acids(*arrays), 1)),
                "locus": Field(("chain",), steps.after(pc.utf8_upper, steps.without("NONE", "MULTI"))),
                "productive": Field(("productive",), steps.truth),
                "duplicate_count": Field(("umis",), steps.counts),
                "umi_count": Field(("umis",), steps.counts),
                "consensus_count": Field(("reads",), steps.counts),
                "cell_id": Field(("barcode",), stated),
                "clone_id": Field((steps.first_of(columns, "raw_clonotype_id", "clonotype_id") or "",), stated),
                "repertoire_id": Field(("sample",)),
                **{region: Field((f"{region}_nt",), stated) for region in regions},
                **{f"{region}_aa": Field((region,), stated) for region in regions if f"{region}_nt" in columns},
            }),
        }  # fmt: skip


class CellContigs(Contigs):
    name = "10x"
    summary = "10x contig annotations (all_contig_, filtered_contig_annotations.csv)"

    signatures = (frozenset({"barcode", "contig_id", "cdr3_nt", "v_gene", "j_gene"}),)

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """The fields of `Contigs`, and the reason of contigs that Cell Ranger does not count."""
        return {**super().fields(columns), REASON: Field(("cdr3_nt", "is_cell", "high_confidence", "chain"), _why)}


class Consensus(Contigs):
    name = "10x_consensus"
    summary = "10x consensus annotations (consensus_annotations.csv)"

    ID = "consensus_id"

    signatures = (frozenset({"clonotype_id", "consensus_id", "cdr3_nt", "v_gene", "j_gene"}),)


class TenXClonotypes(Format):
    """Clonotypes of Cell Ranger, which have no genes."""

    name = "10x_clonotypes"
    summary = "10x clonotypes"
    refusal = "they have no genes; give filtered_contig_annotations.csv, which is beside them"
    signatures = (frozenset({"clonotype_id", "cdr3s_nt"}),)
