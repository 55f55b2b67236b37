"""hpcvdj.recombination.pathways: the two references agree with each other and with counts made by hand."""

from hypothesis import given, settings

from hpcvdj.counting.verify import literal, reference
from hpcvdj.recombination.germline import d_forms, j_forms, v_forms
from hpcvdj.recombination.pathways import algorithm_1, direct_sum
from tests.problems import cases


def test_by_hand_without_d():
    # V forms "", A; J forms "", C: AC is V·J, V·n, n·J and n·n.
    assert direct_sum("AC", ["", "A"], None, ["", "C"], 2) == [1, 2, 1]
    assert [algorithm_1(["AC"], ["", "A"], None, ["", "C"], m)[0] for m in range(3)] == [1, 2, 1]


def test_by_hand_with_d():
    # D forms "", G: AGC with everything whole; n = A, G or C, where G also arises from an n left or right of "".
    v, d, j = ["", "A"], ["", "G"], ["", "C"]
    # m = 0: A·G·C.  m = 1: ·A·G·C, A·G·C·, and A·(G)·C with the empty D before or behind the n: 2.
    assert direct_sum("AGC", v, d, j, 1) == [1, 4]
    assert algorithm_1(["AGC"], v, d, j, 1) == [4]


def test_equal_forms_are_counted_apart():
    assert direct_sum("A", [""], ["A", "A", ""], [""], 1) == [2, 2]
    assert algorithm_1(["A"], [""], ["A", "A", ""], [""], 0) == [2]


def test_a_sequence_without_pathway():
    assert direct_sum("AAAA", ["", "C"], ["", "C"], ["", "C"], 2) == [0, 0, 0]


@settings(max_examples=25, deadline=None)
@given(cases())
def test_the_direct_sum_equals_algorithm_1(case):
    for kind in ("paper", "distinct"):
        problem = case.problem(2, kind)
        assert literal(problem, 2).tolist() == reference(problem).tolist()


def test_every_in_silico_sequence_is_counted_once():
    """Summed over all sequences that can arise, counters are the number of combinations (section IV)."""
    v, d, j = v_forms("AC"), d_forms("G"), j_forms("TC")
    m = 1
    made = {
        a + n[:p] + x + n[p:] + b for a in v for b in j for x in d for n in "ACGT" for p in range(m + 1)
    }  # fmt: skip
    assert sum(direct_sum(s, v, d, j, m)[m] for s in made) == len(v) * len(d) * len(j) * 4**m * (m + 1)
