"""Programs whose tables are known, but seldom met: the message says which columns to name."""

from hpcvdj.repertoires.formats.format import Format


class Migec(Format):
    """MiGEC's clonotypes."""

    name = "migec"
    summary = "MiGEC clonotypes"
    refusal = "read them with {columns=junction=CDR3 nucleotide sequence,v_call=V segments,j_call=J segments}"
    marks = (frozenset({"CDR3 nucleotide sequence", "V segments", "J segments"}),)


class TcR(Format):
    """The R package tcR's clonotypes."""

    name = "tcr"
    summary = "tcR clonotypes"
    refusal = "read them with {columns=junction=CDR3.nucleotide.sequence,v_call=V.gene,j_call=J.gene}"
    marks = (frozenset({"CDR3.nucleotide.sequence", "V.gene", "J.gene"}),)


class Rtcr(Format):
    """RTCR's clonotypes."""

    name = "rtcr"
    summary = "RTCR clonotypes"
    refusal = "read them with {columns=junction=Junction nucleotide sequence,v_call=V gene,j_call=J gene}"
    marks = (frozenset({"Junction nucleotide sequence", "V gene", "J gene"}),)


class HighVQuest(Format):
    """IMGT/HighV-QUEST's own tables."""

    name = "highv_quest"
    summary = "IMGT/HighV-QUEST table"
    refusal = "give vquest_airr.tsv, the AIRR table of the same results"
    marks = (frozenset({"Sequence ID", "V-GENE and allele"}),)
