"""Tables that are rare.  The message says which columns to name, or which other table to give."""

from hpcvdj.repertoires.formats.format import Format


class Migec(Format):
    name = "migec"
    summary = "MiGEC clonotypes"
    refusal = "read them with {columns=junction=CDR3 nucleotide sequence,v_call=V segments,j_call=J segments}"
    signatures = (frozenset({"CDR3 nucleotide sequence", "V segments", "J segments"}),)


class TcR(Format):
    name = "tcr"
    summary = "tcR clonotypes"
    refusal = "read them with {columns=junction=CDR3.nucleotide.sequence,v_call=V.gene,j_call=J.gene}"
    signatures = (frozenset({"CDR3.nucleotide.sequence", "V.gene", "J.gene"}),)


class Rtcr(Format):
    name = "rtcr"
    summary = "RTCR clonotypes"
    refusal = "read them with {columns=junction=Junction nucleotide sequence,v_call=V gene,j_call=J gene}"
    signatures = (frozenset({"Junction nucleotide sequence", "V gene", "J gene"}),)


class HighVQuest(Format):
    name = "highv_quest"
    summary = "IMGT/HighV-QUEST table"
    refusal = "give vquest_airr.tsv, the AIRR table of the same results"
    signatures = (frozenset({"Sequence ID", "V-GENE and allele"}),)
