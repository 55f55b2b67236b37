"""The AIRR Community's Rearrangement schema (docs.airr-community.org), whose field names hpcvdj uses throughout."""

from collections.abc import Mapping, Sequence

from hpcvdj.repertoires.formats.format import Field, Format
from hpcvdj.repertoires.formats.steps import best_hits, present

REQUIRED = (
    "sequence_id", "sequence", "rev_comp", "productive", "v_call", "d_call", "j_call", "sequence_alignment",
    "germline_alignment", "junction", "junction_aa", "v_cigar", "d_cigar", "j_cigar",
)  # fmt: skip
"""The columns that an AIRR Rearrangement file must have, though they may be empty (the schema's `required`)."""


class MixcrAirr(Format):
    """AIRR table of `mixcr exportAirr`, whose calls are hit lists: the first hit is the call."""

    name = "mixcr_airr"
    summary = "AIRR table of mixcr exportAirr"

    COLUMNS = ("germline_alignment", "complete_vdj", "junction", "junction_aa", "np1", "np2")
    """Columns that only MiXCR writes in this order (its `CommandExportAirr`)."""

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the order of its columns: names are those of any AIRR table."""
        first = list(columns).index(MixcrAirr.COLUMNS[0]) if MixcrAirr.COLUMNS[0] in columns else 0
        return tuple(columns[first : first + len(MixcrAirr.COLUMNS)]) == MixcrAirr.COLUMNS

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """Only the calls differ."""
        return present(columns, {f"{letter}_call": Field((f"{letter}_call",), best_hits) for letter in "vdjc"})


class Airr(Format):
    """AIRR Rearrangement."""

    name = "airr"
    summary = "AIRR Rearrangement"

    IGBLAST = ("locus", "stop_codon", "vj_in_frame")
    """Columns that only IgBLAST writes in this order."""

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the calls and the junction or the CDR3."""
        has_sequence = not {"junction", "cdr3", "junction_aa"}.isdisjoint(columns)
        return {"v_call", "j_call"} <= set(columns) and has_sequence and not MixcrAirr.recognises(columns)

    @staticmethod
    def may_lack_from(columns: Sequence[str]) -> str | None:
        """IgBLAST leaves off the last fields of sequences in which it finds no junction."""
        first = list(columns).index(Airr.IGBLAST[0]) if Airr.IGBLAST[0] in columns else 0
        is_igblast = tuple(columns[first : first + len(Airr.IGBLAST)]) == Airr.IGBLAST
        return "junction" if is_igblast and "junction" in columns else None
