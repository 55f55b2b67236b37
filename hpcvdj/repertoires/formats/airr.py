"""The AIRR Community's Rearrangement schema (docs.airr-community.org), whose field names hpcvdj uses throughout."""

from collections.abc import Sequence

from hpcvdj.repertoires.formats.format import Format


class Airr(Format):
    """AIRR Rearrangement."""

    name = "airr"
    summary = "AIRR Rearrangement"

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the calls and the junction or the CDR3."""
        return {"v_call", "j_call"} <= set(columns) and not {"junction", "cdr3", "junction_aa"}.isdisjoint(columns)
