"""tcrdist3 (github.com/kmayerb/tcrdist3): clones of one chain.  Tables with two chains a row are refused."""

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.repertoires.formats.format import REASON, Field, Format
from hpcvdj.repertoires.formats.steps import counts, locus, present, productive, reason


def _cut(reads: pa.Array, amino_acids: pa.Array) -> pa.Array:
    """Junctions: in longer reads, the codons of the amino acids if these occur once, else empty.

    Tables made of immunoSEQ's data have its reads in this column.
    """
    has_its_codons = pc.equal(pc.utf8_length(reads), pc.multiply(pc.utf8_length(amino_acids), 3))
    is_junction = pc.or_(has_its_codons, pc.or_(pc.equal(reads, ""), pc.equal(amino_acids, "")))
    if pc.all(is_junction).as_py():
        return reads
    rows = zip(reads.to_pylist(), amino_acids.to_pylist(), is_junction.to_pylist(), strict=True)
    return pa.array([read if fits else _codons_of(letters, read.upper()) for read, letters, fits in rows], reads.type)


def _codons_of(amino_acids: str, read: str) -> str:
    if not re.fullmatch("[ACGT]+", read):
        return ""
    frames = translate(read[frame : len(read) - (len(read) - frame) % 3] for frame in range(3))
    starts = [
        frame + 3 * match.start()
        for frame, residues in enumerate(frames)
        for match in re.finditer(f"(?={re.escape(amino_acids)})", residues)
    ]
    return read[starts[0] : starts[0] + 3 * len(amino_acids)] if len(starts) == 1 else ""


def _why(reads: pa.Array, amino_acids: pa.Array) -> pa.Array:
    return reason(ExclusionKind.NOT_CUT, pc.and_(pc.equal(_cut(reads, amino_acids), ""), pc.not_equal(reads, "")))


def _chains(columns: Sequence[str]) -> list[str]:
    return [
        letter for letter in "abgd" if {f"cdr3_{letter}_aa", f"v_{letter}_gene", f"j_{letter}_gene"} <= set(columns)
    ]


class Tcrdist(Format):
    name = "tcrdist3"
    summary = "tcrdist3 table of one chain"

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the CDR3 and the genes of a chain."""
        return len(_chains(columns)) == 1

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """The junction is cut out of reads, by its amino acids."""
        chain = next(iter(_chains(columns)), "b")
        amino_acids, both = f"cdr3_{chain}_aa", (f"cdr3_{chain}_nucseq", f"cdr3_{chain}_aa")
        return {
            "v_call": Field((f"v_{chain}_gene",)),
            "j_call": Field((f"j_{chain}_gene",)),
            "junction_aa": Field((amino_acids,)),
            "productive": Field((amino_acids,), productive),
            "locus": Field((f"j_{chain}_gene",), locus),
            **present(columns, {
                "junction": Field(both, _cut),
                "duplicate_count": Field(("count",), counts),
                "repertoire_id": Field(("subject",)),
                REASON: Field(both, _why),
            }),
        }  # fmt: skip


class TcrdistPairs(Format):
    name = "tcrdist3_pairs"
    summary = "tcrdist3 table of two chains a row"
    refusal = (
        "read one chain after the other, with {columns=junction=cdr3_b_nucseq,v_call=v_b_gene,j_call=j_b_gene} or "
        "the like (junction_aa=cdr3_b_aa if it has no cdr3_b_nucseq)"
    )

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the CDR3s and the genes of several chains."""
        return len(_chains(columns)) > 1
