"""Programs whose tables are known, but seldom met: the message says which columns to name."""

from collections.abc import Sequence

from hpcvdj.repertoires.formats.format import Format


class Migec(Format):
    """MiGEC's clonotypes."""

    name = "migec"
    summary = "MiGEC clonotypes"
    refusal = "read them with --columns 'junction=CDR3 nucleotide sequence,v_call=V segments,j_call=J segments'"

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the CDR3 and the segments."""
        return {"CDR3 nucleotide sequence", "V segments", "J segments"} <= set(columns)


class TcR(Format):
    """The R package tcR's clonotypes."""

    name = "tcr"
    summary = "tcR clonotypes"
    refusal = "read them with --columns junction=CDR3.nucleotide.sequence,v_call=V.gene,j_call=J.gene"

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the CDR3 and the genes, with dots."""
        return {"CDR3.nucleotide.sequence", "V.gene", "J.gene"} <= set(columns)


class Rtcr(Format):
    """RTCR's clonotypes."""

    name = "rtcr"
    summary = "RTCR clonotypes"
    refusal = "read them with --columns 'junction=Junction nucleotide sequence,v_call=V gene,j_call=J gene'"

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the junction and the genes."""
        return {"Junction nucleotide sequence", "V gene", "J gene"} <= set(columns)


class HighVQuest(Format):
    """IMGT/HighV-QUEST's own tables."""

    name = "highv_quest"
    summary = "IMGT/HighV-QUEST table"
    refusal = "give vquest_airr.tsv, the AIRR table of the same results"

    @staticmethod
    def recognises(columns: Sequence[str]) -> bool:
        """By the calls."""
        return {"Sequence ID", "V-GENE and allele"} <= set(columns)
