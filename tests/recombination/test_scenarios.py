"""tests.recombination.definition: the definition, against values by hand, the total mass, and lengths."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from hpcvdj.recombination.likely import insertion_probability
from hpcvdj.recombination.models import Insertion, Model, Template
from tests.kernels.pgen.models import length_distribution, random_model
from tests.recombination.definition import Scenario, pgen, scenarios

CHAIN = Insertion(
    np.array([0.5, 0.25, 0.125, 0.125]),
    np.array([[0.1, 0.2, 0.3, 0.4], [0.2, 0.2, 0.2, 0.2], [0.3, 0.1, 0.25, 0.4], [0.4, 0.5, 0.25, 0.0]]),
    np.array([0.125, 0.25, 0.5, 0.125]),
)


def template(allele: str, segment: str, extended: str) -> Template:
    return Template(allele, segment, segment, extended)


def tiny_vj() -> Model:
    """V is AC with the P-nucleotide G, J is TT with the P-nucleotide A."""
    return Model(
        "tiny", "", (template("V1*01", "AC", "ACG"),), (), (template("J1*01", "TT", "ATT"),),
        np.array([[0.125, 0.5, 0.25, 0.125]]), np.array([[0.25, 0.5, 0.125, 0.125]]), np.zeros((0, 0, 0)), (CHAIN,),
        np.zeros(0), np.zeros((0, 0)), np.array([[0.75]]),
    )  # fmt: skip


def tiny_vdj() -> Model:
    """V is A, D is G, J is T, without P-nucleotides."""
    return Model(
        "tiny", "", (template("V1*01", "A", "A"),), (template("D1*01", "G", "G"),), (template("J1*01", "T", "T"),),
        np.array([[1.0]]), np.array([[1.0]]), np.array([[[0.5, 0.25], [0.25, 0.0]]]),
        (CHAIN, Insertion(np.array([0.75, 0.25]), CHAIN.transitions, np.array([0.0, 0.5, 0.25, 0.25]))),
        np.array([0.75]), np.array([[0.5]]), np.zeros((0, 0)),
    )  # fmt: skip


def test_insertions():
    """P(length) first[m1] transitions[m2, m1] …"""
    assert insertion_probability("", CHAIN) == 0.5
    assert insertion_probability("C", CHAIN) == 0.25 * 0.25
    assert insertion_probability("GA", CHAIN) == 0.125 * 0.5 * 0.3
    assert insertion_probability("GAT", CHAIN) == 0.125 * 0.5 * 0.3 * 0.4
    assert insertion_probability("TT", CHAIN) == 0.0
    assert insertion_probability("GATC", CHAIN) == 0.0


def test_a_vj_junction_by_hand():
    """ACTT: V keeps AC or A, J keeps TT or T; what is between is inserted."""
    found = set(scenarios(tiny_vj(), "ACTT", [0], [0]))
    a, c, at, t = 0.25, 0.5, 0.5, 0.125  # P(V keeps A), P(V keeps AC), P(J keeps TT), P(J keeps T)
    assert found == {
        Scenario(0, None, 0, 1, None, 1, ("",), c * at * (0.75 * 0.5)),
        Scenario(0, None, 0, 1, None, 2, ("T",), c * t * (0.75 * (0.25 * 0.125))),
        Scenario(0, None, 0, 2, None, 1, ("C",), a * at * (0.75 * (0.25 * 0.25))),
        Scenario(0, None, 0, 2, None, 2, ("CT",), a * t * (0.75 * (0.125 * 0.25 * 0.5))),
    }
    assert pgen(tiny_vj(), "ACTT") == sum(scenario.probability for scenario in found)


def test_p_nucleotides_by_hand():
    """ACGATT can be all of V and all of J; V and J keep at least one base, which AC alone cannot have."""
    model = tiny_vj()
    assert next(scenarios(model, "ACGATT", [0], [0])).probability > 0
    whole = [scenario for scenario in scenarios(model, "ACGATT", [0], [0]) if scenario.inserted == ("",)]
    assert whole == [Scenario(0, None, 0, 0, None, 0, ("",), 0.125 * 0.25 * (0.75 * 0.5))]
    assert pgen(model, "AC") == pgen(model, "TT") == pgen(model, "A") == 0.0
    assert pgen(model, "AT") == 0.25 * 0.125 * (0.75 * 0.5)


def test_a_vdj_junction_by_hand():
    """AGT: G is D, or inserted beside an empty D (for whose deletions there are two ways)."""
    chance, empty = 0.75 * 0.5, 0.25
    expected = {
        (0, 0): [(("", ""), 0.5 * (0.5 * 0.75))],
        (0, 1): [(("G", ""), empty * (0.25 * 0.5 * 0.75)), (("", "G"), empty * (0.5 * (0.25 * 0.25)))],
    }
    expected[1, 0] = expected[0, 1]
    found = {
        (scenario.d_deleted, scenario.inserted): scenario.probability
        for scenario in scenarios(tiny_vdj(), "AGT", [0], [0])
    }
    assert found == {
        (deleted, inserted): chance * value for deleted, own in expected.items() for inserted, value in own
    }


def test_dj_insertions_are_read_from_j_leftwards():
    """AGCT: C is next to J.  AGGT with G as D: the other G is beside J and after D at once."""
    model = tiny_vdj()
    found = {s.inserted: s.probability for s in scenarios(model, "AGCT", [0], [0]) if s.d_deleted == (0, 0)}
    assert found == {("", "C"): 0.75 * 0.5 * 0.5 * (0.5 * (0.25 * 0.5))}
    longer = Insertion(np.array([0.0, 0.0, 1.0]), CHAIN.transitions, CHAIN.first)
    model = replace(model, insertions=(CHAIN, longer))
    found = {s.inserted: s.probability for s in scenarios(model, "AGCAT", [0], [0]) if s.d_deleted == (0, 0)}
    # The chain begins with A, which is next to J; C follows.
    assert found == {("", "CA"): 0.75 * 0.5 * 0.5 * (0.5 * (1.0 * 0.125 * 0.2))}


def test_only_the_given_alleles():
    model = random_model(14, True)
    v, j = model.contributing("V"), model.contributing("J")
    assert len(v) * len(j) > 1
    for text in ("TGA", "".join(template.segment for template in (model.v[v[0]], model.j[j[0]]))):
        parts = [pgen(model, text, [v_place], [j_place]) for v_place, j_place in product(v, j)]
        assert pgen(model, text) == pytest.approx(sum(parts), rel=1e-15)
        assert pgen(model, text, [], j) == pgen(model, text, v, []) == 0


@pytest.mark.parametrize("seed", range(12))
def test_all_junctions_of_a_length_add_up_to_its_probability(seed):
    """By convolution of the distributions of all parts; up to five bases."""
    model = random_model(seed, bool(seed % 2), longest_insertion=2, longest=3)
    lengths = length_distribution(model, 5)
    for length in range(1, 6):
        total = sum(pgen(model, "".join(bases)) for bases in product("ACGT", repeat=length))
        assert total == pytest.approx(lengths[length], rel=4e-15)


@pytest.mark.parametrize("model", [tiny_vj(), tiny_vdj()], ids=["VJ", "VDJ"])
def test_all_junctions_add_up_to_the_total_mass(model):
    """Of VJ, what is lost is V or J that keeps nothing: 1/8 each, which no junction has."""
    longest = sum(len(own.lengths) - 1 for own in model.insertions) + sum(
        len(template.extended) for template in (*model.v, *model.d, *model.j)
    )
    total = length_distribution(model, longest + 3).sum()
    mass = 0.75 * 0.875 * 0.875 if not model.has_d else 0.75 * 0.5
    assert total == pytest.approx(mass, rel=1e-15)
    if model.has_d:
        junctions = ("".join(bases) for length in range(1, longest + 1) for bases in product("ACGT", repeat=length))
        assert sum(pgen(model, text) for text in junctions if text[0] == "A") == pytest.approx(mass, rel=1e-14)
