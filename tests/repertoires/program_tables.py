"""A small table of every format, with rows of its own, as the programs write them."""

V = "TRBV2*01"
NT, AA = "TGTGCCAGCAGTGAACAGTACTTC", "CASSEQYF"
OUT = "TGTGCCAGCAGTGAAACAGTACTTC"
"""NT with one base more, out of frame."""

READ = "GATTACAGG" + NT + "GGGCCG"


def table(*rows: str, sep: str = "\t", end: str = "\n") -> str:
    """Rows, in which bars separate the values."""
    return "".join(sep.join(value.strip() for value in row.split("|")) + end for row in rows)


CONTIGS = "barcode|is_cell|contig_id|high_confidence|length|chain|v_gene|d_gene|j_gene|c_gene|full_length|productive"

LISTS: dict[str, tuple[str, str]] = {"list": ("a.txt", f"{NT}\n{OUT}\n")}
"""Formats without calls and ids."""

TABLES: dict[str, tuple[str, str]] = {
    "airr": ("a.tsv", table(
        "sequence_id|rev_comp|productive|v_call|d_call|j_call|junction|junction_aa|duplicate_count",
        f"s1|F|T|{V}||TRBJ2-7*01|{NT}|{AA}|12", f"s2|F|F|TRBV1|TRBD1|TRBJ1-1|{OUT}||3",
    )),
    "mixcr_airr": ("a.tsv", table(
        "sequence_id|v_call|d_call|j_call|c_call|germline_alignment|complete_vdj|junction|junction_aa|np1|np2|"
        "duplicate_count",
        f"clone.0|TRBV2*00,TRBV1*00||TRBJ2-7*00||||{NT}|{AA}|||12",
        f"clone.1|TRBV1*00|TRBD1*00|TRBJ1-1*00||||{OUT}||||3",
    )),
    "changeo": ("a.tab", table(
        "SEQUENCE_ID|FUNCTIONAL|STOP|V_CALL|D_CALL|J_CALL|JUNCTION|CONSCOUNT|DUPCOUNT|LOCUS|CELL",
        f"s1|T|F|{V}||TRBJ2-7*01|{NT}|40|12|TRB|c1", f"s2|False|None|TRBV1*01|TRBD1*01|TRBJ1-1|{OUT}|9|3|B|None",
    )),
    "mixcr": ("a.clones_TRB.tsv", table(
        "cloneId|readCount|uniqueMoleculeCount|allVHitsWithScore|allDHitsWithScore|allJHitsWithScore|nSeqFR3|nSeqCDR3|"
        "aaSeqCDR3|tagValueCELL",
        f"0|90.0|12.0|TRBV2*00(401.5),TRBV1*00(380)||TRBJ2-7*00(203.8)|region_not_covered|{NT}|{AA}|c1",
        f"0|9.0|3.0|TRBV1*00(300)|TRBD1*00(30)|TRBJ1-1*00(150)|region_not_covered|{OUT}|CASS_TVL|c2",
        "1|9.0|3.0|TRAV38-2DV8*00(300)||TRAJ1*00(150)||region_not_covered|region_not_covered|c2",
    )),
    "olga": ("a.tsv", table(f"{NT}|{AA}|TRBV2|TRBJ2-7", f"{NT}|{AA}|TRBV1|TRBJ1-1")),
    "tcrdist3": ("a.csv", table(
        "subject|count|v_b_gene|j_b_gene|cdr3_b_aa|cdr3_b_nucseq", f"d1|12|{V}|TRBJ2-7*01|{AA}|{NT}",
        f"d2|3|TRBV1*01|TRBJ1-1*01|{AA}|{READ}", f"d2|1|TRBV1*01|TRBJ1-1*01|CAWWF|{READ}", sep=",",
    )),
    "adaptive": ("a.tsv", table(
        "rearrangement|amino_acid|frame_type|rearrangement_type|templates|reads|cdr3_length|v_gene|v_allele|j_gene|"
        "j_allele|v_index|v_gene_ties|sample_name",
        f"{READ}|{AA}|In|VJ|12|40|24|TCRBV02-01|01|TCRBJ02-07|01|9||donor1",
        f"GATTACAGG{OUT}GGGCCG||Out|VDJ|null|3|25|unresolved||TCRBJ01-01|01|9|TCRBV06-02,TCRBV06-03|donor1",
        f"{READ}|CAWWF|In|VJ|1|1|24|TCRBV02-01|01|TCRBJ02-07|01|9||donor1",
        f"{READ}||Out|DJ|1|1|24|unresolved||TCRBJ02-07|01|-1||donor1",
    )),
    "immunarch": ("a.tsv", table(
        "Clones|Proportion|CDR3.nt|CDR3.aa|V.name|D.name|J.name|V.end|D.start|D.end|J.start|VJ.ins|VD.ins|DJ.ins|"
        "Sequence",
        f"12|0.8|{NT}|{AA}|TRBV2|NA|TRBJ2-7|9|NA|NA|15|NA|NA|NA|NA",
        f"3|0.2|{OUT}|CASS~TVL|TRBV1|TRBD1|TRBJ1-1|9|NA|NA|15|NA|NA|NA|NA",
    )),
    "10x_all": ("a.csv", table(
        f"{CONTIGS}|cdr3|cdr3_nt|reads|umis|raw_clonotype_id",
        f"A-1|True|A-1_1|True|520|TRB|TRBV2|None|TRBJ2-7|TRBC2|True|True|{AA}|{NT}|90|12|clonotype1",
        f"B-1|FALSE|B-1_1|True|480|TRB|TRBV1|None|TRBJ1-1|TRBC1|False|False|{AA}|{NT}|40|3|None", sep=",",
    )),
    "10x": ("a.csv", table(
        f"{CONTIGS}|fwr1|fwr1_nt|cdr3|cdr3_nt|reads|umis|raw_clonotype_id",
        f"A-1|true|A-1_1|true|520|TRB|TRBV2||TRBJ2-7|TRBC2|true|true|D|GAT|{AA}|{NT}|90|12|clonotype1",
        f"A-1|TRUE|A-1_2|TRUE|480|TRB|TRBV1||TRBJ1-1|TRBC1|FALSE|FALSE|||{AA}|{NT}|40|3|clonotype1",
        f"B-1|False|B-1_1|True|480|TRB|TRBV1|None|TRBJ1-1|TRBC1|False|None|None|None|{AA}|{NT}|40|3|None",
        f"A-1|true|A-1_3|false|480|TRA|TRAV29DV5||TRAJ1||false|false||||{NT}|40|3|clonotype1",
        f"A-1|true|A-1_4|true|480|Multi|TRAV29DV5||TRBJ1-1||false|false||||{NT}|40|3|clonotype1",
        "A-1|false|A-1_5|false|480|None|None|None|TRAJ10|TRBC1|False|None|None|None|None|None|40|1|None", sep=",",
    )),
    "10x_consensus": ("a.csv", table(
        "clonotype_id|consensus_id|length|chain|v_gene|d_gene|j_gene|c_gene|full_length|productive|cdr3|cdr3_nt|reads|"
        "umis",
        f"clonotype1|clonotype1_consensus_1|520|TRB|TRBV2||TRBJ2-7|TRBC2|true|true|{AA}|{NT}|90|12",
        f"clonotype2|clonotype2_consensus_1|520|TRB|TRBV1|None|TRBJ1-1|TRBC2|true|true|{AA}|{NT}|90|3", sep=",",
    )),
    "trust4": ("a_report.tsv", table(
        "#count|frequency|CDR3nt|CDR3aa|V|D|J|C|cid|cid_full_length",
        f"12.50|0.8|{NT}|{AA}|{V}|.|TRBJ2-7*01|TRBC2|a0|1",
        f"3|0.2|{OUT}|out_of_frame|TRBV1*01|TRBD1*01|TRBJ1-1*01|.|a1|0",
        f"3|0.2|{NT[3:]}|partial|TRBV1*01|.|TRBJ1-1*01|.|a1|0",
    )),
    "vdjtools": ("a.txt", table(
        "count|freq|cdr3nt|cdr3aa|v|d|j|VEnd", f"12|0.8|{NT}|{AA}|TRBV2|.|TRBJ2-7|13",
        f"3|0.2|{OUT}|CASS_TVL|TRBV1|TRBD1|TRBJ1-1|10",
    )),
}  # fmt: skip
"""Name of each format that can be read -> name and text of a table."""

REFUSED: dict[str, tuple[str, str]] = {
    "10x_clonotypes": ("clonotypes.csv", table(
        "clonotype_id|frequency|proportion|cdr3s_aa|cdr3s_nt", f"c1|2|0.6|TRB:{AA}|TRB:{NT}", sep=",",
    )),
    "trust4_cells": ("a_barcode_report.tsv", table(
        "#barcode|cell_type|chain1|chain2", f"A|abT|TRBV2*01,*,TRBJ2-7*01,*,{NT},{AA},12,a0,100.00,1|*",
    )),
    "trust4_cdr3": ("a_cdr3.out", table(
        f"a0|0|TRBV2*01,TRBV1*01|*|TRBJ2-7*01|TRBC2|GATTACA|*|{NT}|1.00|12.00|100.00|1",
    )),
    "tcrdist3_pairs": ("a.csv", table(
        "v_a_gene|j_a_gene|cdr3_a_aa|v_b_gene|j_b_gene|cdr3_b_aa|cdr3_b_nucseq",
        f"TRAV1*01|TRAJ1*01|CAVF|{V}|TRBJ2-7*01|{AA}|{NT}", sep=",",
    )),
    "migec": ("a.txt", table(
        "Count|CDR3 nucleotide sequence|CDR3 amino acid sequence|V segments|J segments|D segments",
        f"1|{NT}|{AA}|TRBV2|TRBJ2-7|",
    )),
    "tcr": ("a.txt", table(
        "Umi.count|CDR3.nucleotide.sequence|CDR3.amino.acid.sequence|V.gene|J.gene|D.gene",
        f"1|{NT}|{AA}|TRBV2|TRBJ2-7|",
    )),
    "rtcr": ("a.tsv", table(
        "Number of reads|Amino acid sequence|V gene|J gene|Junction nucleotide sequence",
        f"1|{AA}|TRBV2*01|TRBJ2-7*01|{NT}",
    )),
    "highv_quest": ("a.txt", table(
        "Sequence number|Sequence ID|V-DOMAIN Functionality|V-GENE and allele|J-GENE and allele|JUNCTION",
        f"1|s1|productive|Homsap TRBV2*01 F|Homsap TRBJ2-7*01 F|{NT.lower()}",
    )),
}  # fmt: skip
"""Name of each format that is refused -> name and text of a table."""


def written(folder, name: str):
    """The table of a format, as a file in a folder."""
    file, text = (TABLES | REFUSED)[name]
    path = folder / file
    path.write_text(text)
    return path
