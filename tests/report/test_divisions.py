"""most_direct: its groups are the pathways of the definition with the fewest n-nucleotides, each once."""

import re

import numpy as np
from hypothesis import given, settings

from hpcvdj.counting.verify import reference
from hpcvdj.recombination.explanation import Explanation
from hpcvdj.recombination.germline import extended_d, extended_j, extended_v, from_sequences
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.reports.sections import FACTS, most_direct
from tests.problems import cases, junctions_of_rows


def groups_of(germline, v, j, cdr3, kind, max_n=8):
    v, j = germline.find("V", v), germline.find("J", j)
    return most_direct(Explanation(cdr3, v, j, germline.d_segments(v.locus), max_n, kind, germline.max_p))


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_the_most_direct_pathways_are_those_of_the_definition(case):
    for kind in ("paper", "distinct"):
        junctions = junctions_of_rows(case.germline, case.rows)
        expected = reference(Problem(junctions.repertoire, case.germline, 8, kind))[np.argsort(junctions.row)]
        for (v, j, cdr3), counters in zip(case.rows, expected.tolist(), strict=True):
            m, groups = groups_of(case.germline, v, j, cdr3, kind)
            assert (m, groups.total()) == next(((m, ways) for m, ways in enumerate(counters) if ways), (0, 0))
            assert all(groups.values())
            for group in groups:
                check_group(case.germline, group, v, j, cdr3, m, kind)
            lengths = [(-sum(map(track.count, "Vv")), -sum(map(track.count, "Jj"))) for track, *_ in groups]
            assert lengths == sorted(lengths)


def check_group(germline, group, v, j, cdr3, m, kind):
    """The letters add up to the junction, stand in the order of the parts, and come from the segments."""
    track, facts = group[0], dict(zip(FACTS, group[1:], strict=True))
    assert len(track) == len(cdr3)
    assert track.count("n") == m
    v_segment, j_segment = germline.find("V", v).sequence, germline.find("J", j).sequence
    size_v, size_j = sum(map(track.count, "Vv")), sum(map(track.count, "Jj"))
    assert extended_v(v_segment, germline.max_p).startswith(cdr3[:size_v])
    assert extended_j(j_segment, germline.max_p).endswith(cdr3[len(cdr3) - size_j :])
    assert track.count("V") == len(v_segment) - facts["v_trim"]
    assert track.count("J") == len(j_segment) - facts["j_trim"]
    assert re.fullmatch("V*v*n*d*D*d*n*j*J*", track)
    size_d = sum(map(track.count, "Dd"))
    genes = {segment.allele: segment.sequence for segment in germline.of("D")}
    assert (facts["d_call"] is None) == (not genes)
    assert len(facts["d_form"] or "") == size_d
    if size_d:
        start = min(track.index(letter) for letter in set("Dd") & set(track))
        assert facts["d_form"] == cdr3[start : start + size_d]
        assert facts["d_form"] in extended_d(genes[facts["d_call"]], germline.max_p)
        assert facts["n1"] == cdr3[size_v:start]
        assert facts["n2"] == cdr3[start + size_d : len(cdr3) - size_j]
        if "d" not in track and kind == "paper":
            assert len(genes[facts["d_call"]]) - facts["d_trim_5"] - facts["d_trim_3"] == size_d


def test_a_track_joins_the_genes_and_forms_that_divide_alike():
    germline = from_sequences(["CA"], ["GG", "GGC"], ["TC"], max_p=0)
    d1, d2 = (segment.allele for segment in germline.of("D"))
    m, groups = groups_of(germline, "V1", "J1", "CAGGTC", "paper")
    assert m == 0
    assert {group: ways for group, ways in groups.items() if group[0] == "VVDDJJ"} == {
        ("VVDDJJ", 0, "", d1, "GG", 0, 0, "", 0): 1,
        ("VVDDJJ", 0, "", d2, "GG", 0, 1, "", 0): 1,
    }
    # One G of GG occurs twice, so which end lost the other is not known: both are listed.
    m, groups = groups_of(germline, "V1", "J1", "CAGTC", "paper")
    ways = {(group[3], *group[5:7]): ways for group, ways in groups.items() if group[0] == "VVDJJ"}
    assert ways == {(d1, 0, 1): 1, (d1, 1, 0): 1, (d2, 0, 2): 1, (d2, 1, 1): 1}
    # A D without bases can be at each of the three cuts of two n-nucleotides, chewed back in 2 + 3 ways.
    m, groups = groups_of(germline, "V1", "J1", "CAAATC", "paper")
    assert m == 2
    empty = {group[3]: ways for group, ways in groups.items() if group[0] == "VVnnJJ"}
    assert empty == {d1: 3 * 2, d2: 3 * 3}


def test_p_nucleotides_have_letters_of_their_own():
    germline = from_sequences(["CA"], ["AAAAAGG"], ["TT"], max_p=2)
    _, groups = groups_of(germline, "V1", "J1", "CACCTT", "paper", 0)
    group = next(group for group in groups if group[0] == "VVddJJ")
    assert dict(zip(FACTS, group[1:], strict=True))["d_form"] == "CC"
    assert groups[group] == 1


def test_a_cdr3_without_a_pathway_has_no_group():
    germline = from_sequences(["CA"], [], ["TT"], max_p=0)
    assert groups_of(germline, "V1", "J1", "CAGGGTT", "paper", 2) == (0, {})
    assert groups_of(germline, "V1", "J1", "", "paper", 2)[1].total() == 1
