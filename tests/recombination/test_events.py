"""hpcvdj.recombination.events and `hpcvdj.model_tables`: a model's parameters as tables."""

from dataclasses import replace
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.recombination.events import events
from hpcvdj.recombination.igor import read_model
from hpcvdj.recombination.models import Insertion
from tests.kernels.pgen.problems import OLGA_MODELS, junctions, olga_model, small_model
from tests.recombination.definition import scenarios
from tests.recombination.igor_files import Event, mouse_files, numbers, vdj_files, vj_files


def rows(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def test_tables_of_a_vj_model(tmp_path):
    tables = hpcvdj.model_tables(vj_files().write(tmp_path))
    assert {name: table.column_names for name, table in tables.items()} == {
        "vj_choice": ["v_call", "j_call", "probability"],
        "v_3_del": ["v_call", "deleted", "probability"],
        "j_5_del": ["j_call", "deleted", "probability"],
        "vj_ins": ["length", "probability"],
        "vj_dinucl": ["base_before", "base", "probability"],
    }
    assert rows(tables["vj_choice"]) == [
        ("TRAV1*01", "TRAJ1*01", 0.375), ("TRAV1*01", "TRAJ2*01", 0.375),
        ("TRAV2/DV4*01", "TRAJ1*01", 0.0625), ("TRAV2/DV4*01", "TRAJ2*01", 0.1875),
    ]  # fmt: skip
    assert rows(tables["v_3_del"])[:5] == [("TRAV1*01", k, p) for k, p in enumerate([0.1, 0.1, 0.4, 0.2, 0.2], -2)]
    assert rows(tables["j_5_del"])[4:] == [("TRAJ2*01", k, p) for k, p in enumerate([0.0, 0.0, 1.0, 0.0], -2)]
    assert rows(tables["vj_ins"]) == [(0, 0.5), (1, 0.3), (2, 0.2)]
    assert rows(tables["vj_dinucl"])[4:8] == [("C", base, 0.25) for base in "ACGT"]
    frame = tables["v_3_del"].to_pandas()
    assert frame.groupby("v_call")["probability"].sum().tolist() == [1.0, 1.0]


def test_tables_of_a_vdj_model(tmp_path):
    tables = hpcvdj.model_tables(read_model(vdj_files().write(tmp_path)))
    assert list(tables) == [
        "v_choice", "dj_choice", "v_3_del", "d_del", "j_5_del", "vd_ins", "vd_dinucl", "dj_ins", "dj_dinucl"
    ]  # fmt: skip
    assert rows(tables["v_choice"]) == [("TRBV1*01", 0.7), ("TRBV2*01", 0.3)]
    assert [row[:2] for row in rows(tables["dj_choice"])] == list(
        product(["TRBD1*01", "TRBD2*01"], ["TRBJ1-1*01", "TRBJ1-2*01"])
    )
    # GGG has two P-nucleotides at each end; G has one.
    d_del = {row[:3]: row[3] for row in rows(tables["d_del"])}
    assert (d_del["TRBD1*01", -2, -1], d_del["TRBD1*01", 0, -2]) == (0.125, 0.25)
    assert (d_del["TRBD2*01", -1, 0], d_del["TRBD2*01", 1, -1]) == (0.125, 0.25)


def test_d_and_j_that_depend_on_v(tmp_path):
    """Their joint distribution is a parameter then."""
    model = read_model(vdj_files(heavy=True).write(tmp_path))
    table = hpcvdj.model_tables(model)["vdj_choice"]
    assert table.column_names == ["v_call", "d_call", "j_call", "probability"]
    for v, d, j, chance in rows(table):
        assert chance == model.p_vdj[int(v[4]) - 1, int(d[4]) - 1, int(j[6]) - 1]


def test_deletions_count_from_the_segment(tmp_path):
    """An allele with fewer P-nucleotides than others, and one whose segment is unknown."""
    files = vj_files()
    files.events["v_choice"] = Event(
        ["TRAV1*01;GGTGT", "TRAV2*01;GGTGTGCC", "TRAV3*01;GG"], np.array([0.5, 0.25, 0.25])
    )
    files.events["v_3_del"] = Event(numbers(-4, 0), np.full((3, 5), 0.2), ["v_choice"])
    files.events["j_choice"].probabilities = np.full((3, 2), 0.5)
    files.anchors["V"] = ["TRAV1*01,2,F", "TRAV2*01,2,F", "TRAV3*01,0,P"]
    table = hpcvdj.model_tables(files.write(tmp_path))["v_3_del"]
    assert table["deleted"].to_pylist() == [*range(-3, 2), *range(-4, 1), *range(-4, 1)]


def test_deletions_of_d_count_from_each_end(tmp_path):
    """Which may have different numbers of P-nucleotides: here 1 on the left and 2 on the right."""
    files = vdj_files()
    files.events["d_gene"].realisations = ["TRBD1*01;GACT", "TRBD2*01;GGGA"]
    own = files.events["d_5_del"]
    files.events["d_5_del"] = Event(numbers(-1, 2), own.probabilities, own.parents)
    table = hpcvdj.model_tables(files.write(tmp_path))["d_del"]
    assert sorted(set(table["deleted_5"].to_pylist())) == list(range(-1, 3))
    assert sorted(set(table["deleted_3"].to_pylist())) == list(range(-2, 2))


def test_a_first_base_of_its_own_is_a_parameter(tmp_path):
    """That of a model in files follows from the transitions."""
    model = read_model(vj_files().write(tmp_path))
    assert events(model)["vj_first"].derived
    own = replace(model, insertions=(replace(model.insertions[0], first=np.array([0.5, 0.25, 0.25, 0.0])),))
    tables = hpcvdj.model_tables(own)
    assert rows(tables["vj_first"]) == [("A", 0.5), ("C", 0.25), ("G", 0.25), ("T", 0.0)]


def test_weights_of_the_bases_before(tmp_path):
    """How often each base is followed by another, summed over all insertions; every number is exact in binary."""
    first = np.array([0.5, 0.25, 0.25, 0.0])
    steps = np.array([[0.25, 0.25, 0.5, 0], [0.5, 0, 0, 0.5], [0, 0.25, 0.25, 0.5], [1, 0, 0, 0]]).T
    lengths = np.array([0.125, 0.25, 0.125, 0.25, 0.25])
    model = replace(read_model(vj_files().write(tmp_path)), insertions=(Insertion(lengths, steps, first),))
    expected = np.zeros(4)
    for length in range(2, 5):
        for bases in product(range(4), repeat=length):
            chance = lengths[length] * first[bases[0]] * prod(steps[b, a] for a, b in pairwise(bases))
            for base in bases[:-1]:
                expected[base] += chance
    weights = events(model)["vj_dinucl"].weights
    assert list(weights) == [("A",), ("C",), ("G",), ("T",)]
    assert list(weights.values()) == (expected / expected.sum()).tolist()
    short = replace(model, insertions=(Insertion(np.array([0.5, 0.5]), steps, first),))
    assert list(events(short)["vj_dinucl"].weights.values()) == [0, 0, 0, 0]


@pytest.mark.parametrize("has_d", [True, False])
def test_tables_give_the_probability_of_each_scenario(has_d):
    """The product of the rows of its events, but for a rounding of each factor."""
    model = small_model(3, has_d=has_d)
    of = {name: {row[:-1]: row[-1] for row in rows(table)} for name, table in hpcvdj.model_tables(model).items()}
    checked = 0
    for v_place, j_place, junction in junctions(model, 20 if has_d else 400, 20):
        for scenario in scenarios(model, junction, [v_place], [j_place]):
            v, j = model.v[scenario.v], model.j[scenario.j]
            factors = [
                of["v_3_del"][v.allele, scenario.v_deleted - (len(v.extended) - len(v.segment))],
                of["j_5_del"][j.allele, scenario.j_deleted - (len(j.extended) - len(j.segment))],
            ]
            if has_d:
                d = model.d[scenario.d]
                factors += [of["v_choice"][v.allele,], of["dj_choice"][d.allele, j.allele]]
                factors.append(of["d_del"][d.allele, scenario.d_deleted[0] - 2, scenario.d_deleted[1] - 2])
            else:
                factors.append(of["vj_choice"][v.allele, j.allele])
            for name, bases in zip(("vd", "dj") if has_d else ("vj",), scenario.inserted, strict=True):
                read = bases[::-1] if name == "dj" else bases
                factors.append(of[f"{name}_ins"][len(read),])
                factors += [of[f"{name}_first"][base,] for base in read[:1]]
                factors += [of[f"{name}_dinucl"][pair] for pair in pairwise(read)]
            # Both products round each time they multiply.
            np.testing.assert_allclose(scenario.probability, prod(factors), rtol=2 * len(factors) * 2**-53)
            checked += 1
    assert checked > 500


@pytest.mark.parametrize("name", ["mouse", *OLGA_MODELS])
def test_conditions_have_weights_and_distributions(name, tmp_path):
    """Of every event; the sums of files with six digits are 1 within 0.001 (ALLOWED_ERROR)."""
    model = read_model(mouse_files().write(tmp_path)) if name == "mouse" else olga_model(name)
    if model is None:
        pytest.skip("needs olga")
    for event in events(model).values():
        distributions = event.distributions()
        assert sum(map(len, distributions.values())) == len(event.probability)
        assert set(distributions) == (set(event.weights) or {()})
        assert sum(event.weights.values() or [1]) == pytest.approx(1, abs=1e-3)
        for condition, distribution in distributions.items():
            if any(distribution.values()):
                assert sum(distribution.values()) == pytest.approx(1, abs=1e-3)
            else:
                assert event.weights[condition] == 0


def test_a_model_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="no model of that name"):
        hpcvdj.model_tables("klingon_trb")
    with pytest.raises(InputError, match=r"model_params\.txt"):
        hpcvdj.model_tables(tmp_path)


def test_deletions_of_a_d_segment_that_is_its_own_palindrome(tmp_path):
    """GCGC with two P-nucleotides at each end is GC GCGC GC, in which GCGC is found at once."""
    files = vdj_files()
    files.events["d_gene"].realisations[0] = "TRBD1*01;GCGC"
    model = read_model(files.write(tmp_path))
    assert (model.d[0].extended, model.d[0].p5) == ("GCGCGCGC", 2)
    deleted = {row[1:3] for row in rows(hpcvdj.model_tables(model)["d_del"]) if row[0] == "TRBD1*01"}
    assert {min(side) for side in zip(*deleted, strict=True)} == {-2}
