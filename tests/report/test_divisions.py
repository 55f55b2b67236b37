"""hpcvdj.report.divisions: its lines are the pathways of the definition with the fewest n-nucleotides, each once."""

import numpy as np
from hypothesis import given, settings

from hpcvdj.counting.verify import reference
from hpcvdj.recombination.explanation import Explanation
from hpcvdj.recombination.germline import extended_d, from_sequences
from hpcvdj.report.divisions import most_direct_lines
from hpcvdj.report.figures.alignment import parts_of
from tests.problems import cases


def lines_of(germline, v, j, cdr3, kind, max_n=8):
    v, j = germline.find("V", v), germline.find("J", j)
    return most_direct_lines(Explanation(cdr3, v, j, germline.d_segments(v.locus), max_n, kind, germline.max_p))


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_the_most_direct_pathways_are_those_of_the_definition(case):
    for kind in ("paper", "distinct"):
        problem = case.problem(8, kind)
        expected = reference(problem)
        for (v, j, cdr3), counters in zip(case.rows, expected[np.argsort(problem.repertoire.row)], strict=True):
            found = lines_of(case.germline, v, j, cdr3, kind)
            wanted = next(((m, int(ways)) for m, ways in enumerate(counters) if ways), None)
            assert (found and (found[0], sum(line.pathways for line in found[1]))) == wanted
            for line in found[1] if found else []:
                check_line(case.germline, line, v, j, cdr3, found[0])
            divisions = [(-line.v, -line.j) for line in found[1]] if found else []
            assert divisions == sorted(divisions)


def check_line(germline, line, v, j, cdr3, m):
    """The parts add up to the junction, and each end says what its form lost and gained."""
    size = line.d_stop - line.d_start
    assert line.size == len(cdr3) == line.v + size + line.j + m
    assert line.v + line.v_3[1] - line.v_3[0] == len(germline.find("V", v).sequence)
    assert line.j + line.j_5[1] - line.j_5[0] == len(germline.find("J", j).sequence)
    genes = {segment.gene: segment.sequence for segment in germline.of("D")}
    for share in line.shares:
        assert (share.d_gene == "") == (not genes)
        if share.d_5 and share.d_3:
            segment = genes[share.d_gene]
            (p5, lost5), (p3, lost3) = share.d_5, share.d_3
            assert max(0, len(segment) - lost5 - lost3) + p5 + p3 == size
            assert extended_d(segment, germline.max_p).count(cdr3[line.d_start : line.d_stop]) == 1


def test_a_line_joins_the_genes_and_forms_that_divide_alike():
    germline = from_sequences(["CA"], ["GG", "GGC"], ["TC"], max_p=0)
    m, lines = lines_of(germline, "V1", "J1", "CAGGTC", "paper")
    assert m == 0
    best = next(line for line in lines if (line.v, line.d_start, line.d_stop, line.j) == (2, 2, 4, 2))
    assert [(share.d_gene, share.d_5, share.d_3, share.pathways) for share in best.shares] == [
        ("D1", (0, 0), (0, 0), 1), ("D2", (0, 0), (0, 1), 1),
    ]  # fmt: skip
    # One G of GG is there twice, so which end lost the other is not known; without D's bases every cut is a line.
    m, lines = lines_of(germline, "V1", "J1", "CAGTC", "paper")
    assert [(share.d_5, share.pathways) for share in lines[0].shares] == [(None, 2), (None, 2)]
    m, lines = lines_of(germline, "V1", "J1", "CAAATC", "paper")
    assert m == 2
    assert [(line.d_start, line.pathways) for line in lines if (line.v, line.j) == (2, 2)] == [(2, 5), (3, 5), (4, 5)]


def test_a_form_of_p_nucleotides_alone_has_no_more_of_them_than_letters():
    germline = from_sequences(["CA"], ["AAAAAGG"], ["TT"], max_p=2)
    _, lines = lines_of(germline, "V1", "J1", "CACCTT", "paper", 0)
    line = next(line for line in lines if (line.v, line.d_stop, line.j) == (2, 4, 2))
    assert [(share.d_5, share.d_3) for share in line.shares] == [((0, 7), (2, 0))]
    assert parts_of(line) == ("VVDDJJ", [False, False, True, True, False, False])
