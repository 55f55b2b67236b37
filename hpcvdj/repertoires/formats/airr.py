"""The AIRR Community's Rearrangement schema (docs.airr-community.org), whose field names hpcvdj uses throughout."""

from collections.abc import Mapping, Sequence

from hpcvdj.repertoires.formats.format import Field, Format
from hpcvdj.repertoires.formats.steps import best_hits, present


def _adjacent(columns: Sequence[str], names: tuple[str, ...]) -> bool:
    """Whether `names` are columns that follow each other in this order."""
    first = list(columns).index(names[0]) if names[0] in columns else 0
    return tuple(columns[first : first + len(names)]) == names


class MixcrAirr(Format):
    """AIRR table of `mixcr exportAirr`: calls are hit lists, of which the best hits are the call."""

    name = "mixcr_airr"
    summary = "AIRR table of mixcr exportAirr"

    COLUMNS = ("germline_alignment", "complete_vdj", "junction", "junction_aa", "np1", "np2")
    """Columns that only MiXCR writes in this order (its `CommandExportAirr`)."""

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the order of its columns, which have the names of any AIRR table."""
        return _adjacent(columns, MixcrAirr.COLUMNS)

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """Only the calls differ from AIRR's fields."""
        return present(columns, {f"{letter}_call": Field((f"{letter}_call",), best_hits) for letter in "vdjc"})


class Airr(Format):
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
        """The column without whose value a row may omit its last fields and delimiters; None if no row may.

        IgBLAST omits the last fields of sequences in which it finds no junction.
        """
        return "junction" if _adjacent(columns, Airr.IGBLAST) and "junction" in columns else None
