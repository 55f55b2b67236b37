"""Sources that are wrong, partial or mixed: one line that says what to do, and no allele lost without a word."""

from __future__ import annotations

import gc
import gzip
import json
import os
import re

import pytest

from hpcvdj.errors import InputError, choices, speaking_shell, told
from hpcvdj.germline_import import Source, import_germline, source_kind
from hpcvdj.germline_import.anchors import j_anchor, v_anchor
from hpcvdj.germline_import.genes import Gene, Reason, RefusalKind
from hpcvdj.recombination.anchors import read_anchors
from hpcvdj.recombination.germline import read_germline
from tests.conftest import ROOT
from tests.germline_import.conftest import (
    allele_description,
    fasta,
    gapped_v,
    imgt_header,
    region,
    shipped,
    whole_j,
)

TABLE = shipped("mouse_trb")
V1, V2 = (next(s for s in TABLE if s.allele == name) for name in ("TRBV1*01", "TRBV2*01"))
D1 = next(s for s in TABLE if s.segment_type == "D")
J1, J2 = (next(s for s in TABLE if s.allele == name) for name in ("TRBJ1-1*01", "TRBJ1-2*01"))
GOOD = fasta([V1, D1, J1], "Mus musculus")


def record(segment, sequence=None, **fields):
    return f">{imgt_header(segment, 'Mus musculus', **fields)}\n{region(segment) if sequence is None else sequence}\n"


def flipped(data, place):
    """`data` with one byte changed."""
    changed = bytearray(data)
    changed[place] ^= 0xFF
    return bytes(changed)


def imported_of(tmp_path, text, **options):
    path = tmp_path / "s.fasta"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_germline(path, **options)


def reasons(imported):
    return {refusal.allele: refusal.reason for refusal in imported.refusals}


def alleles(imported):
    return [row.allele for row in imported.rows]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "s.fasta: the file is empty"),
        (b"\n \n", "s.fasta: the file is empty"),
        (b"TRBV1*01\tACGT\n", "not a known kind of source; give one of fasta: .*; airr: .*; model: "),
        (b"{", "not readable JSON"),
        (b'{"GermlineSet": 3}', "no GermlineSet with allele_descriptions"),
        (b'{"GermlineSet": [{"allele_descriptions": []}]}', "no allele_descriptions"),
        (b'[{"allele_descriptions": [4]}]', "no GermlineSet with allele_descriptions"),
        (b">a\n\xff\xfe\n", r"not a readable source file \(not UTF-8 text\)"),
        (GOOD.encode("utf-16"), r"not a readable source file \(not UTF-8 text\)"),
        # mtime: the test workers must name this case alike, whatever second each collects it in.
        (gzip.compress(GOOD.encode(), mtime=0)[:60], "not a readable source file .*; copy it again"),
        (flipped(gzip.compress(GOOD.encode(), mtime=0), 40), "not a readable source file .*; copy it again"),
        (flipped(gzip.compress(GOOD.encode(), mtime=0), -6), "not a readable source file .*; copy it again"),
        (flipped(gzip.compress(b"[" + b" 1," * 999, mtime=0), 15), "not a readable source file .*; copy it again"),
        (b"[" * 100_000, "not readable JSON"),
        (b"[" + b"1" * 5_000 + b"]", "not readable JSON"),
        (b'{"allele_descriptions": [{"label": "TRBV1*01\\ud800"}]}', "not readable JSON .*surrogates"),
    ],
)
def test_files_that_are_no_source(tmp_path, content, message):
    with pytest.raises(InputError, match=message) as error:
        imported_of(tmp_path, content)
    assert "\n" not in str(error.value)
    assert str(tmp_path / "s.fasta") in str(error.value)


def test_names_that_are_no_source(tmp_path):
    with pytest.raises(InputError, match="no such source file; give one of fasta: "):
        import_germline(tmp_path / "none.fasta")
    with pytest.raises(InputError, match=r"no model_params.txt \(OLGA\)"):
        import_germline(tmp_path)
    with pytest.raises(InputError, match="no source"):
        import_germline([])
    with pytest.raises(InputError, match="is a folder; name a source file on disk"):
        import_germline(tmp_path, source_format="fasta")
    (tmp_path / "model_params.txt").write_text("@Event_list\n#GeneChoice;V_gene;x;7;v\n%TRBV1*01;ACGT\n")
    with pytest.raises(InputError, match="line 3: not NAME;SEQUENCE;NUMBER"):
        import_germline(tmp_path)
    (tmp_path / "model_params.txt").write_text("@Event_list\n#GeneChoice;V_gene;x;7;v\n%TRBV1*01;ACGT;0\n")
    with pytest.raises(InputError, match="no V or no J genes"):
        import_germline(tmp_path)


def test_a_pipe_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "p")
    for call in (lambda path: import_germline(path), lambda path: import_germline(ROOT, anchors=path), read_germline):
        with pytest.raises(InputError, match="p: not a regular file; name a"):
            call(tmp_path / "p")


@pytest.mark.parametrize("content", [b"5", b'"x"', b"null", b"[3]", b'{"GermlineSet": [null]}'])
def test_json_that_is_not_a_germline_set(tmp_path, content):
    with pytest.raises(InputError, match="no GermlineSet with allele_descriptions"):
        imported_of(tmp_path, content, source_format="airr")


def test_a_byte_order_mark_and_other_languages_do_no_harm(tmp_path):
    text = "\ufeff" + GOOD.replace("Mus musculus", "Souris é", 1)
    assert alleles(imported_of(tmp_path, text, species="mus musculus")) == [D1.allele, J1.allele]


def test_a_new_kind_of_source_is_one_class(tmp_path):
    class Names(Source):
        name = "names"
        summary = "one name a line"

        def recognises(self, path):
            return path.suffix == ".names"

        def read(self, path):
            return [Gene("D", name, "TRB", "GGG", path.name) for name in path.read_text().split()]

    path = tmp_path / "x.names"
    path.write_text("TRBD8*01 TRBD9*01")
    try:
        for source_format in ("auto", "names"):
            assert alleles(import_germline(path, source_format=source_format)) == ["TRBD8*01", "TRBD9*01"]
        with pytest.raises(InputError, match="model: folder of an IGoR or OLGA model; names: one name a line"):
            imported_of(tmp_path, "?")
    finally:
        del Names
        gc.collect()


def test_the_page_has_every_kind_of_source_and_of_refusal():
    page = (ROOT / "docs" / "germline_import.md").read_text()
    for kind in choices(Source).values():
        assert f"| `{kind.name}` | {kind.summary}" in page
    for refusal in RefusalKind:
        with speaking_shell():
            assert f"`{told(refusal.text)}`" in page or not refusal.text, refusal


def test_the_kind_is_detected_by_content(tmp_path):
    for name, content, kind in (("a.json", GOOD.encode(), "fasta"), ("b.fasta", b" [1]", "airr")):
        (tmp_path / name).write_bytes(content)
        assert source_kind(tmp_path / name).name == kind
    (tmp_path / "c").write_bytes(gzip.compress(b"\xef\xbb\xbf" + GOOD.encode()))
    assert source_kind(tmp_path / "c").name == "fasta"
    assert source_kind(tmp_path).name == "model"


@pytest.mark.parametrize("change", [str.upper, lambda t: t.replace("\n", "\r\n"), lambda t: t.replace("\n", "\n\n")])
def test_case_line_ends_and_empty_lines_do_not_matter(tmp_path, change):
    lines = GOOD.splitlines()
    text = "\n".join(line if line.startswith(">") or change is not str.upper else line.upper() for line in lines)
    text = text if change is str.upper else change(text + "\n")
    imported = imported_of(tmp_path, text)
    assert {row.allele: row.sequence for row in imported.rows} == {s.allele: s.sequence for s in (V1, D1, J1)}


def test_a_repeated_allele_is_kept_once(tmp_path):
    imported = imported_of(tmp_path, GOOD + record(V1))
    assert alleles(imported) == [V1.allele, D1.allele, J1.allele]
    assert reasons(imported) == {V1.allele: "listed again with the same segment; kept once"}


def test_an_allele_with_two_segments_is_not_chosen_between(tmp_path):
    other = gapped_v(V1)[:-1] + "t"
    imported = imported_of(tmp_path, GOOD + record(V1, other) + record(V2))
    assert alleles(imported) == [V2.allele, D1.allele, J1.allele]
    assert len(imported.refusals) == 2
    for refusal in imported.refusals:
        assert refusal.reason.startswith(
            "listed several times with different segments or functionality: keep one, here F"
        )
        assert refusal.reason.endswith("; the gene is lost")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record(V2, gapped_v(V2)[:300]), "truncated: the sequence ends before codon 104 is complete"),
        (record(V2, gapped_v(V2)[:311]), "truncated: the sequence ends before codon 104 is complete"),
        (record(V2, gapped_v(V2)[:312]), "truncated: the sequence ends with codon 104 and leaves no segment"),
        (record(V2, gapped_v(V2) + "n"), "ambiguous: the segment contains 'N', not only A, C, G, T"),
        (record(V2, gapped_v(V2).replace(".", "")), "no anchor: the sequence is not gapped by IMGT numbering"),
        (record(V2, "..." + gapped_v(V2)), "no anchor: codon 104 reads .* though the allele is F"),
        (record(V2, "." + gapped_v(V2)), "no anchor: codon 104 reads"),
        (record(V2, gapped_v(V2)[:309] + "..." + gapped_v(V2)[309:]), "no anchor: codon 104 is not complete"),
        (record(V2, partial="partial in 3'"), "truncated: partial in 3' in IMGT"),
        (record(V2, partial="partial in 5' and in 3'"), "truncated: partial in 3' in IMGT"),
        (record(V2, function="X"), "its functionality is not IMGT's F, ORF or P, in brackets or not: 'X'"),
        (record(V2, "MGTRLLCWVVLGFLGTDHTGAGVSQSPRYK"), "not a nucleotide sequence: it contains 'F'"),
        (record(V2, ""), "no sequence"),
        (record(V2, region="L-PART1"), "not a V, D or J region: L-PART1"),
        (
            record(J2, J2.sequence.lower() + "ttcagcagcagcacc"),
            "no anchor: the motif F/W-G-X-G does not occur in its frame",
        ),
        (record(J2, "a" + whole_j(J2)), "no anchor: the motif F/W-G-X-G does not occur in its frame"),
        (
            record(J2, J2.sequence + "tttggcaaaggc" * 2),
            "no anchor: the motif F/W-G-X-G occurs 2 times in its frame",
        ),
        (record(J2, partial="partial in 5'"), "truncated: partial in 5' in IMGT"),
        (record(J2, "n" + whole_j(J2)[1:]), "ambiguous: the segment contains 'N'"),
        (">TRBC1*01\nacgt\n", "not a V, D or J region: neither its name nor its header says"),
        (">IGHD*01\nacgt\n", "not a V, D or J region: neither its name nor its header says"),
        (">\nacgt\n", "not a V, D or J region: neither its name nor its header says"),
    ],
)
def test_an_allele_that_cannot_be_cut_is_refused_by_name(tmp_path, bad, reason):
    imported = imported_of(tmp_path, GOOD + bad)
    assert alleles(imported) == [V1.allele, D1.allele, J1.allele]
    assert len(imported.refusals) == 1
    assert re.match(reason, imported.refusals[0].reason)
    assert imported.refusals[0].allele


def test_what_is_partial_where_it_does_not_matter_is_kept(tmp_path):
    text = GOOD + record(V2, partial="partial in 5'") + record(J2, partial="partial in 3'")
    imported = imported_of(tmp_path, text + record(D1, region="D-REGION").replace(D1.allele, "TRBD9*01"))
    assert imported.refusals == ()
    row = next(row for row in imported.rows if row.allele == V2.allele)
    assert row.sequence == V2.sequence
    assert row.source.endswith("; partial in 5' in IMGT")


def test_an_ambiguous_base_outside_the_segment_does_no_harm(tmp_path):
    sequence = "nn" + gapped_v(V2)[2:]
    assert imported_of(tmp_path, GOOD + record(V2, sequence)).refusals == ()


def test_pseudogenes_are_kept_as_such(tmp_path):
    stop = gapped_v(V2)[:6] + "taa" + gapped_v(V2)[9:309] + "tac" + V2.sequence
    imported = imported_of(tmp_path, GOOD + record(V2, stop, function="P") + record(J2, function="ORF"))
    rows = {row.allele: row for row in imported.rows}
    assert (rows[V2.allele].functional, rows[J2.allele].functional) == ("P", "ORF")
    assert "; stop codon in frame before Cys 104; codon 104 reads TAC" in rows[V2.allele].source


def test_brackets_mean_what_imgt_says(tmp_path):
    shorter = record(V2, gapped_v(V2)[:-2], function="(F)").replace("TRBV2*01", "TRBV2*09")
    same = record(V2, function="[F]").replace("TRBV2*01", "TRBV2*08")
    longer = record(V2, gapped_v(V2) + "ac", function="(P)").replace("TRBV2*01", "TRBV2*07")
    imported = imported_of(tmp_path, GOOD + record(V2) + shorter + same + longer)
    kept = {row.allele: row for row in imported.rows}
    assert kept["TRBV2*08"].functional == "F"
    assert "not known whether germline or rearranged" in kept["TRBV2*08"].source
    assert reasons(imported) == {
        "TRBV2*07": "reads on beyond the germline end: IMGT (P), segment of 16 nt, germline alleles have 14",
        "TRBV2*09": "truncated: IMGT (F), segment of 12 nt, germline alleles have 14",
    }


def test_mixed_loci_make_one_table_or_are_left_out(tmp_path):
    other = shipped("mouse_igk")
    text = fasta([V1, J1]) + fasta([next(s for s in other if s.segment_type == kind) for kind in "VJ"])
    imported = imported_of(tmp_path, text)
    assert imported.germline().loci == ("IGK", "TRB")
    only = imported_of(tmp_path, text, loci=["trb"])
    assert alleles(only) == [V1.allele, J1.allele]
    assert all(reason == "of another locus: IGK" for reason in reasons(only).values())
    assert len(only.refusals) == 2
    with pytest.raises(InputError, match="no J allele of locus TRB could be used"):
        imported_of(tmp_path, fasta([V1])).germline()


def test_v_genes_of_two_loci(tmp_path):
    v = record(V1).replace("TRBV1*01", "TRAV14/DV4*01")
    j = record(J1).replace("TRBJ1-1*01", "TRDJ1*01")
    assert {row.locus for row in imported_of(tmp_path, v + j, loci=["TRD"]).rows} == {"TRD"}
    assert {row.locus for row in imported_of(tmp_path, v + j).rows} == {"TRA", "TRD"}


def test_names_that_tell_no_locus(tmp_path):
    text = GOOD.replace("TRBV1*01", "var7*01")
    assert reasons(imported_of(tmp_path, text)) == {"var7*01": "its name does not tell the locus; give locus"}
    assert [row.locus for row in imported_of(tmp_path, text, loci=["TRB"]).rows] == ["TRB"] * 3


def test_species_of_germline_sets_are_not_mixed(tmp_path):
    """Up to version 0.1.0 alleles of two species made one table without a word."""
    entries = [allele_description(segment, True) for segment in (V1, J1)]
    entries[1]["species"] = {"label": "Mus musculus"}
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"allele_descriptions": entries}))
    with pytest.raises(InputError, match="alleles of Homo sapiens, Mus musculus; choose one species with species"):
        import_germline(path)
    assert alleles(import_germline(path, species="mus MUSCULUS")) == [J1.allele]


def test_species_are_not_mixed(tmp_path):
    text = fasta([V1, J1], "Homo sapiens") + fasta([V2, J2], "Mus musculus_129/Sv")
    message = r"s\.fasta: alleles of Homo sapiens, Mus musculus; choose one species with species"
    with pytest.raises(InputError, match=message):
        imported_of(tmp_path, text)
    paths = [tmp_path / "v.fasta", tmp_path / "j.fasta"]
    paths[0].write_text(fasta([V1], "Homo sapiens"))
    paths[1].write_text(fasta([J1], "Mus musculus"))
    with pytest.raises(InputError, match=r"v\.fasta, .*j\.fasta: alleles of Homo sapiens, Mus musculus"):
        import_germline(paths)
    imported = imported_of(tmp_path, text, species="mus musculus")
    assert alleles(imported) == [V2.allele, J2.allele]
    assert reasons(imported)[V1.allele] == "of another species: Homo sapiens"


def test_anchors_that_are_given(tmp_path):
    anchors = tmp_path / "a.csv"
    text = GOOD + record(V2, gapped_v(V2).replace(".", ""))
    place = len(gapped_v(V2).replace(".", "")) - len(V2.sequence) - 3
    anchors.write_text(
        f"gene;anchor_index;reads;note\r\n{V2.allele};{place};TGT{V2.sequence[:4]};by hand\r\nTRBV99*01;1;;\r\n"
    )
    imported = imported_of(tmp_path, text, anchors=anchors)
    row = next(row for row in imported.rows if row.allele == V2.allele)
    assert row.sequence == V2.sequence
    assert row.source.endswith("; by hand")
    assert reasons(imported) == {"TRBV99*01": "the anchors file lists it, but no source has it"}
    anchors.write_text(f"allele,anchor_index,reads\n{V2.allele},{place},TTTT\n")
    assert reasons(imported_of(tmp_path, text, anchors=anchors))[V2.allele].startswith(
        f"the sequence differs from what the anchors file expects: TTTT from base {place} on, not TGT"
    )
    anchors.write_text(f"allele,anchor_index,strand,refuse\n{V1.allele},,,seen to be wrong\n{J1.allele},500,-,\n")
    found = reasons(imported_of(tmp_path, GOOD, anchors=anchors))
    assert found[V1.allele] == "seen to be wrong; the gene is lost"
    assert found[J1.allele] == "its anchor is outside the sequence: base 500 of 39 nt; the gene is lost"


@pytest.mark.parametrize("other", ["", "A"], ids=["as the entry says", "another sequence"])
def test_notes_and_refusals_of_one_sequence(tmp_path, other):
    """Without anchor_index, `reads` says which sequence is meant: how a V ends, how a J or a D begins."""
    anchors = tmp_path / "a.csv"
    d, j = (region(own)[:6].upper() + other for own in (D1, J1))
    v = V1.sequence[-6:] + other
    anchors.write_text(
        f"allele,anchor_index,reads,note,refuse\n{V1.allele},,{v.lower()},short,\n{J1.allele},,{j},,truncated\n"
        f"{D1.allele},500,{d},orphan,\n"
    )
    imported = imported_of(tmp_path, GOOD + record(J2), anchors=anchors)
    sources = {row.allele: row.source for row in imported.rows}
    assert sources[V1.allele].endswith("; short") == (not other)
    assert sources[D1.allele].endswith("; orphan") == (not other)
    assert reasons(imported) == ({} if other else {J1.allele: "truncated; the gene is lost"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no column allele"),
        ("name,place\n", "line 1: no column allele"),
        ("allele,anchor\n", "line 1: unknown column 'anchor'"),
        ("allele,anchor_index\nA*01,x\n", "line 2: anchor_index is 'x'"),
        ("allele,anchor_index\nA*01,-3\n", "line 2: anchor_index is '-3'"),
        ("allele,anchor_index\nA*01,1\nA*01,1\n", r"line 3: A\*01 is listed twice"),
        ("allele,anchor_index\n,1\n", "line 2: no allele"),
        ("allele,anchor_index,strand\nA*01,1,x\n", "line 2: strand is 'x'"),
        ("allele,anchor_index,strand\nA*01,,-\n", "line 2: strand - without anchor_index"),
        ("allele,note\nA*01," + "x" * 200_000 + "\n", "a.csv: not readable CSV"),
    ],
)
def test_anchors_files_that_are_refused(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_anchors(path)


def test_an_igor_folder(tmp_path):
    """IGoR's own layout: whole IMGT headers as names, anchors in ref_genome, no functionality there."""
    folder = tmp_path / "tcr_beta"
    for name in ("models", "ref_genome"):
        (folder / name).mkdir(parents=True)
    bare = {s.allele: region(s).replace(".", "").upper() for s in (V1, D1, J1)}
    lists = "".join(
        f"#GeneChoice;{s.segment_type}_gene;Undefined_side;7;x\n%{imgt_header(s, 'Mus musculus')};{bare[s.allele]};0\n"
        for s in (V1, D1, J1)
    )
    (folder / "models" / "model_parms.txt").write_text(
        "@Event_list\n" + lists + "#Deletion;V_gene;Three_prime;5;v_3_del\n%-4;0\n@Edges\n"
    )
    places = {"V": (V1, len(bare[V1.allele]) - len(V1.sequence) - 3), "J": (J1, len(J1.sequence))}
    for kind, (s, place) in places.items():
        (folder / "ref_genome" / f"{kind}_gene_CDR3_anchors.csv").write_text(
            f"gene;anchor_index\n{imgt_header(s, 'Mus musculus')};{place}\n"
        )
    imported = import_germline(folder)
    assert {row.allele: row.sequence for row in imported.rows} == {s.allele: s.sequence for s in (V1, D1, J1)}
    assert imported.rows[0].source == "model tcr_beta"
    unknown = {J1.allele: "the model gives no anchor for it; the gene is lost"}
    anchors = folder / "ref_genome" / "J_gene_CDR3_anchors.csv"
    # 0 says in models that an anchor is not known.
    anchors.write_text(f"gene;anchor_index\n{J1.allele};0\n")
    assert reasons(import_germline(folder)) == unknown
    anchors.unlink()
    assert reasons(import_germline(folder)) == unknown


def test_germline_set_entries_that_are_refused(tmp_path):
    def entry(segment, **fields):
        return {**allele_description(segment, True), **fields}

    entries = [
        entry(V1),
        entry(J1),
        entry(V2, label="TRBV2*02", curational_tags=["likely_truncated"]),
        entry(V2, label="TRBV2*03", status="retired"),
        entry(V2, label="TRBC1*01", sequence_type="C"),
        entry(V2, label=None, sequence_type=None),
        entry(V2, label="TRBV2*04", coding_sequence=None, sequence=None, v_gene_delineations=None),
        entry(V2, label="TRBV2*05", functional=None, inference_type=None),
        entry(V1, label="TRBV1*02", inference_type="Rearranged", coding_sequence=gapped_v(V1)[:-3]),
        entry(J2, label="TRBJ1-2*02", j_cdr3_end=3),
        entry(J2, label="TRBJ1-2*03", coding_sequence=None),
        entry(J2, label="TRBJ1-2*04", j_cdr3_end=True, j_codon_frame="x"),
    ]
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"allele_descriptions": entries}))
    imported = import_germline(path)
    assert reasons(imported) == {
        "TRBV2*02": "truncated: tagged likely_truncated in the set",
        "TRBV2*03": "not active in the set: retired",
        "TRBC1*01": "not a V, D or J region: its sequence_type is C",
        "allele description 6 of s.json": "not a V, D or J region: its sequence_type is missing",
        "TRBV2*04": "no sequence",
        "TRBV1*02": "truncated: AIRR rearranged_only (F), segment of 11 nt, germline alleles have 14",
    }
    rows = {row.allele: row for row in imported.rows}
    assert {rows[f"TRBJ1-2*0{k}"].sequence for k in (2, 3, 4)} == {J2.sequence}
    assert "j_cdr3_end is 3, the motif F/W-G-X-G begins at" in rows["TRBJ1-2*02"].source
    assert "functionality not stated in the source, taken as F" in rows["TRBV2*05"].source


def test_the_motif_is_looked_for_in_frame():
    """Mouse TRAJ7: codon 118 reads TTG, and one base upstream of it stands TTT GGG GAA GGG."""
    sequence = "TGACTACAGCAACAACAGACTTACTTTGGGGAAGGGAAGCCAGCTGACTGTGAAACCAA"
    assert sequence.index("TTTGGGGAAGGG") == 24
    assert isinstance(j_anchor(sequence, 1), Reason)
    assert j_anchor(sequence, 0) == 24


def test_gaps_of_either_kind():
    assert v_anchor(gapped_v(V1).replace(".", "-"), "F") == v_anchor(gapped_v(V1), "F") == 309 - 24


def test_bases_without_gaps_are_not_numbered_where_a_cys_happens_to_be():
    """One in thirty of such sequences was cut at random: TGT from base 310 on."""
    for codon in ("TGT", "TGC", "TCC"):
        reason = v_anchor("ACG" * 103 + codon + "ACG" * 9, "F")
        assert "not gapped by IMGT numbering" in str(reason)
    assert v_anchor("ACG" * 102 + "..." + "TGT" + "ACG" * 9, "F") == 306
