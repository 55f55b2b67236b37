"""The listed pathways against the counters, the reference and what they claim of their junction."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import hpcvdj
from hpcvdj.api.counting import explain
from hpcvdj.recombination.germline import d_forms, extended_d, from_sequences, j_forms, read_germline, v_forms
from hpcvdj.recombination.pathways import algorithm_1, direct_sum
from hpcvdj.recombination.repertoire import Problem
from tests.commands import error_line, hpcvdj_command, new_process
from tests.conftest import GERMLINE, ROOT
from tests.problems import cases, count_with, repertoire_of_file, sample

JUNCTION = "TGTGCCAGCAGTCTGTCGACAGGCGGGGTTAACCAAGACACCCAGTACTTT"


def listed_sums(found):
    """Pathways by n-length, added up one listed group after another."""
    sums = [0] * (found.max_n + 1)
    for pathway in found.pathways():
        sums[pathway.n_length] += pathway.multiplicity
    return sums


def explain_cdr3(cdr3, *arguments, **options):
    """As a junction: an empty `cdr3` field would be a missing one."""
    return explain(f"TGT{cdr3}TTT", *arguments, **options)


def check_against_counters(repertoire, germline, max_n, forms):
    counters = count_with(Problem(repertoire, germline, max_n, forms), "direct")
    for pair, (v, j) in enumerate(repertoire.pairs):
        for row in range(int(repertoire.offsets[pair]), int(repertoire.offsets[pair + 1])):
            found = explain_cdr3(repertoire.cdr3(row), v.allele, j.allele, germline, max_n=max_n, d_forms=forms)
            assert listed_sums(found) == counters[row].tolist(), found.cdr3
            assert found.counters == counters[row].tolist(), found.cdr3


@pytest.fixture(scope="module")
def mouse(paper_germline):
    return repertoire_of_file(ROOT / "inputs" / "mouse_trb" / "repertoire.tsv.gz", paper_germline)


@pytest.mark.exhaustive
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_many_junctions(mouse, paper_germline, count):
    drawn = sample(mouse, count, seed=6)
    assert len(drawn) == count
    check_against_counters(drawn, paper_germline, 10, "paper")


def test_fifty_junctions_with_distinct_d_forms(mouse, paper_germline):
    check_against_counters(sample(mouse, 50, seed=7), paper_germline, 10, "distinct")


@pytest.mark.slow
def test_all_n_lengths(mouse, paper_germline):
    drawn = sample(mouse, 20, seed=8)
    check_against_counters(drawn, paper_germline, drawn.longest, "paper")


@pytest.mark.slow
@pytest.mark.parametrize("forms", ["paper", "distinct"])
@settings(max_examples=40, deadline=None)
@given(case=cases())
def test_hostile_junctions(forms, case):
    """Empty, overlapping and one-letter segments, loci with and without D, up to the end."""
    repertoire = case.problem(0).repertoire
    check_against_counters(repertoire, case.germline, max(3, repertoire.longest), forms)


def test_a_locus_without_d():
    germline = read_germline(ROOT / "inputs" / "germline" / "human_igk.tsv")
    v, j = germline.of("V")[0], germline.of("J")[0]
    for cdr3 in (v.sequence + "ACG" + j.sequence, v.sequence[:-3] + j.sequence[2:], v.sequence + j.sequence, "", "A"):
        for max_n in (2, "all"):
            found = explain_cdr3(cdr3, v.allele, j.allele, germline, max_n=max_n)
            forms = v_forms(v.sequence), None, j_forms(j.sequence)
            assert listed_sums(found) == found.counters == direct_sum(cdr3, *forms, found.max_n)
            assert [gene.allele for gene in found.genes] == [""]
            for pathway in found.most_direct(5):
                facts = found.describe(pathway)
                assert facts["d_call"] is facts["n2"] is facts["np2_length"] is None
                assert facts["n1"] == facts["n"]


@pytest.mark.parametrize("cdr3", ["G" * 128, "GC" * 64, "CATGATC", ""])
def test_long_and_monotonous_ones(cdr3):
    germline = from_sequences(["CAG"], ["GGGGG", "GCGC"], ["GTC"])
    d = [form for segment in germline.of("D") for form in d_forms(segment.sequence)]
    found = explain_cdr3(cdr3, "V1", "J1", germline, max_n="all")
    assert found.counters == direct_sum(cdr3, v_forms("CAG"), d, j_forms("GTC"), len(cdr3))
    assert sum(gene.total for gene in found.genes) == sum(found.counters)


def test_the_worked_example_of_the_docs():
    germline = from_sequences(["CA"], ["GA"], ["TC"], max_p=1)
    forms = ["", "C", "CA", "CAT"], d_forms("GA", max_p=1), ["", "C", "TC", "ATC"]
    found = explain("CATGATC", "V1", "J1", germline, max_n=2, sequence_field="cdr3")
    assert found.counters == [algorithm_1(["CATGATC"], *forms, m)[0] for m in range(3)]
    with_one = [found.describe(pathway) for pathway in found.pathways() if pathway.n_length == 1]
    # docs/algorithm.md lists twelve lines of two kinds: 4 empty D forms, whose two cuts are one group here.
    assert sorted(facts["pathways"] for facts in with_one) == [1] * 10 + [8]
    empty = next(facts for facts in with_one if facts["pathways"] == 8)
    assert (empty["n"], empty["d_chew_backs"], empty["n1"], empty["d_trim_5"]) == ("G", 4, None, None)


@pytest.mark.slow
@pytest.mark.parametrize("forms", ["paper", "distinct"])
def test_each_listed_pathway_makes_the_junction(mouse, paper_germline, forms):
    """Trims and P-nucleotides, applied to the germline, give the CDR3 back, and no pathway stands there twice."""
    max_p = paper_germline.max_p
    drawn = sample(mouse, 12, seed=9)
    for pair, (v, j) in enumerate(drawn.pairs):
        cdr3 = drawn.cdr3(int(drawn.offsets[pair]))
        found = explain(cdr3, v.allele, j.allele, paper_germline, d_forms=forms, sequence_field="cdr3")
        seen = set()
        for pathway in found.pathways():
            facts = found.describe(pathway)
            v_part = v_forms(v.sequence, max_p)[len(v.sequence) - facts["v_trim"] + facts["p3v_length"]]
            j_part = j_forms(j.sequence, max_p)[len(j.sequence) - facts["j_trim"] + facts["p5j_length"]]
            d = paper_germline.find("D", facts["d_call"]).sequence
            middle = facts["n"]
            if facts["d_form"]:
                extended = extended_d(d, max_p)
                assert extended[facts["d_chew_5"] : len(extended) - facts["d_chew_3"]] == facts["d_form"]
                assert facts["d_trim_5"] == min(max(0, facts["d_chew_5"] - max_p), len(d))
                assert facts["d_trim_3"] == min(max(0, facts["d_chew_3"] - max_p), len(d))
                core = len(facts["d_form"]) - facts["p5d_length"] - facts["p3d_length"]
                assert core == len(d) - facts["d_trim_5"] - facts["d_trim_3"]
                assert facts["n"] == facts["n1"] + facts["n2"]
                assert facts["n1_length"] + facts["n2_length"] == facts["n_length"]
                assert facts["np1_length"] == facts["p3v_length"] + facts["n1_length"] + facts["p5d_length"]
                assert facts["np2_length"] == facts["p3d_length"] + facts["n2_length"] + facts["p5j_length"]
                assert cdr3[len(v_part) - facts["p3v_length"] :].startswith(facts["np1"])
                middle = facts["n1"] + facts["d_form"] + facts["n2"]
            assert v_part + middle + j_part == cdr3
            track = found.track(pathway)
            assert len(track) == len(cdr3)
            assert (track.count("n"), track.count("v")) == (facts["n_length"], facts["p3v_length"])
            key = tuple(value for name, value in facts.items() if name != "pathways")
            key += () if facts["d_form"] else (pathway.v_length,)
            assert key not in seen
            seen.add(key)


def test_the_most_direct_come_first(paper_germline):
    found = explain(JUNCTION, "TRBV26", "TRBJ2-5", paper_germline)
    everything = list(found.pathways())
    listed = found.most_direct(500)
    assert listed == found.most_direct(600)[:500]
    assert [pathway.n_length for pathway in listed] == sorted(pathway.n_length for pathway in everything)[:500]
    assert found.most_direct(0) == []
    assert len(found.most_direct(10**6)) == len(everything)
    lost = [sum(found.describe(p)[name] or 0 for name in ("v_trim", "j_trim")) for p in listed if p.n_length == 1]
    assert lost == sorted(lost)


def test_same_as_counting_a_table(paper_germline):
    table = pa.table({"v_call": ["TRBV26*01"], "j_call": ["TRBJ2-5"], "junction": [JUNCTION.lower()]})
    counted = hpcvdj.count(table, paper_germline, max_n="all")
    found = explain(JUNCTION.lower(), "TRBV26*01", "TRBJ2-5", paper_germline, max_n="all")
    assert [counted[f"pathways_n{m}"][0].as_py() for m in range(found.max_n + 1)] == found.counters


def test_the_command_prints_tables(tmp_path):
    out, _ = hpcvdj_command("explain", JUNCTION, "--v", "TRBV26", "--j", "TRBJ2-5", "-g", GERMLINE, "--list", 4)
    assert re.search(r"pathways +15,943, n-lengths 0-10", out)
    assert re.search(r"TRBD1\*01 +3,649 +1 +3,920 +7,569", out)
    lines = out.splitlines()
    place = next(k for k, line in enumerate(lines) if JUNCTION in line)
    column = lines[place].index(JUNCTION)
    assert lines[place + 1][column:] == "···VVVVVVVVVVVVVVvvvvDDDdnjjjjJJJJJJJJJJJJJJJJJJ···"
    assert "\x1b[" not in out


@pytest.mark.slow
def test_a_terminal_gets_colours():
    arguments = ("--v", "TRBV26", "--j", "TRBJ2-5", "-g", GERMLINE, "--list", 1)
    out, _ = new_process("explain", JUNCTION, *arguments, env={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
    track = next(line for line in out.splitlines() if "VVVVVVVV" in line)
    assert re.findall(r"\x1b\[[\d;]+m([^\x1b]+)", track) == [
        "···", "V" * 14, "vvvv", "DDD", "d", "n", "jjjj", "J" * 18, "···",
    ]  # fmt: skip
    assert len(set(re.findall(r"\x1b\[([\d;]+)m", track))) >= 7


def test_the_command_prints_json():
    arguments = ("--v", "TRBV26*01", "--j", "TRBJ2-5*01", "-g", GERMLINE, "--output-format", "json")
    out, _ = hpcvdj_command("explain", JUNCTION[3:-3], *arguments, "--sequence-field", "cdr3", "--list", 100_000)
    found = json.loads(out)
    by_n = np.zeros(11, dtype=int)
    for one in found["listed"]:
        by_n[one["n_length"]] += one["pathways"]
    assert by_n.tolist() == found["pathways_by_n_length"]
    assert found["listed_pathways"] == found["pathways_total"] == 15_943
    assert sum(one["pathways"] for one in found["pathways_by_d_call"]) == 15_943


@pytest.mark.parametrize(
    ("junction", "v", "extra", "message"),
    [
        (JUNCTION + "N", "TRBV26", (), "junction contains 'N', not only A, C, G, T; give a junction"),
        ("TGTTT", "TRBV26", (), "junction of 5 nt is shorter than its two anchor codons"),
        ("", "TRBV26", (), "the empty sequence (TRBV26"),
        (JUNCTION, "TRBV99", (), "V gene TRBV99 is not in the germline table"),
        (JUNCTION, "TRBV26*07", (), "V allele TRBV26*07 is not in the germline table, other alleles of TRBV26 are"),
        (JUNCTION, "TRBV26,TRBV5", (), "ambiguous V call"),
        (JUNCTION, "TRBV26", ("--max-n", "many"), "give a number from 0 to 128, or all"),
        ("TGT" + "A" * 129 + "TTT", "TRBV26", (), "CDR3 of 129 nt is longer than 128 nt"),
    ],
)
def test_bad_input_is_one_line(junction, v, extra, message):
    arguments = ("explain", junction, "--v", v, "--j", "TRBJ2-5", "-g", GERMLINE, *extra)
    assert message in error_line(hpcvdj_command(*arguments, code=2)[1])


def test_calls_are_read_by_the_policies_of_count():
    arguments = ("--j", "TRBJ2-5", "-g", GERMLINE, "--output-format", "json")
    plain, _ = hpcvdj_command("explain", JUNCTION, "--v", "TRBV26", *arguments)
    several, _ = hpcvdj_command("explain", JUNCTION, "--v", "TRBV26,TRBV5", *arguments, "--ambiguous-calls", "first")
    other, _ = hpcvdj_command("explain", JUNCTION, "--v", "TRBV26*07", *arguments, "--unlisted-alleles", "first")
    assert plain == several == other


def test_no_pathway_is_said():
    out, _ = hpcvdj_command("explain", "TGTAAAAAAAAAAAAAAAATTT", "--v", "TRBV26", "--j", "TRBJ2-5", "-g", GERMLINE)
    assert "No pathway has at most 10 n-nucleotides; --max-n all counts every n-length." in out
