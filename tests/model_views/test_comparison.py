"""hpcvdj.model_views.comparison and `hpcvdj.compare_models`, against sums of 40 digits over the models' arrays."""

import logging
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.model_views.comparison import compare, js, kl, paired
from hpcvdj.recombination.igor import read_model
from hpcvdj.recombination.models import stationary
from tests.commands import error_line, hpcvdj_command
from tests.kernels.pgen.problems import OLGA_MODELS, olga_model, small_model
from tests.recombination.igor_files import Event, numbers, vdj_files, vj_files

MOST_ROUNDING = 3e-15
"""In bits; the largest difference from 40 digits that was measured, in 200 pairs of models, is 8.9e-16."""

AXES = {"V": {"v": 0, "v_deletions": 0, "p_v": 0, "p_vj": 0}, "D": {"d": 0, "d_deletions": 0, "p_dj": 0},
        "J": {"j": 0, "j_deletions": 0, "p_dj": 1, "p_vj": 1}}  # fmt: skip
"""Which axis of which field of a model is an allele of V, D, J."""


def with_alleles(model, segment, places):
    """The model with these alleles only, in this order; its choices are divided by their sums."""
    changes = {}
    for name, axis in AXES[segment].items():
        own = getattr(model, name)
        if name in "vdj":
            changes[name] = tuple(own[place] for place in places)
        elif own.size:
            changes[name] = np.take(own, places, axis)
    for name in ("p_v", "p_dj", "p_vj"):
        if name in changes:
            changes[name] = changes[name] / changes[name].sum()
    return replace(model, **changes)


def pair_of_models(seed, has_d):
    """Two models of which each has alleles that the other lacks, the others in another order."""
    a, b = small_model(seed, has_d=has_d), small_model(seed + 1000, has_d=has_d)
    a, b = with_alleles(a, "V", [0, 1, 2]), with_alleles(b, "V", [3, 1, 0])
    a, b = with_alleles(a, "J", [0, 1]), with_alleles(b, "J", [2, 1, 0])
    return (with_alleles(a, "D", [1]), b) if has_d else (a, b)


def decimals(values):
    return {key: Decimal(float(value)) for key, value in values.items()}


def divergences(p, q):
    """JS, KL(P‖Q) and KL(Q‖P) in bits by their definitions, of distributions that need not add up to 1."""
    p, q = decimals(p), decimals(q)
    p, q = ({key: value / sum(own.values()) for key, value in own.items()} for own in (p, q))
    two = Decimal(2).ln()

    def information(x, y):
        if any(x[key] and not y.get(key) for key in x):
            return Decimal("inf")
        return sum((value * (value / y[key]).ln() / two for key, value in x.items() if value), Decimal(0))

    m = {key: (p.get(key, 0) + q.get(key, 0)) / 2 for key in {*p, *q}}
    return (information(p, m) + information(q, m)) / 2, information(p, q), information(q, p)


def mean(values, weights):
    return sum(w * value for value, w in zip(values, weights, strict=True) if w) / sum(weights)


def conditional(p, q, weight_p, weight_q):
    """The divergences averaged over conditions, of distributions by condition."""
    shared = [key for key in p if key in q]
    values = [divergences(p[key], q[key]) for key in shared]
    in_p, in_q = ([Decimal(float(own[key])) for key in shared] for own in (weight_p, weight_q))
    both = [x / sum(in_p) + y / sum(in_q) for x, y in zip(in_p, in_q, strict=True)]
    return tuple(mean([value[k] for value in values], own) for k, own in enumerate((both, in_p, in_q)))


def arrays(model):
    """The distributions of a model by event; of events with a condition also the probability of each condition."""
    v, d, j = ([template.allele for template in own] for own in (model.v, model.d, model.j))
    p_v, p_j = (model.p_v, model.p_dj.sum(0)) if model.has_d else (model.p_vj.sum(1), model.p_vj.sum(0))
    found = {
        "v_3_del": ([dict(enumerate(own)) for own in model.v_deletions], v, p_v),
        "j_5_del": ([dict(enumerate(own)) for own in model.j_deletions], j, p_j),
    }
    if model.has_d:
        found["v_choice"] = dict(zip(product(v), p_v, strict=True))
        found["dj_choice"] = dict(zip(product(d, j), model.p_dj.ravel(), strict=True))
        found["d_del"] = [dict(np.ndenumerate(own)) for own in model.d_deletions], d, model.p_dj.sum(1)
    else:
        found["vj_choice"] = dict(zip(product(v, j), model.p_vj.ravel(), strict=True))
    for name, own in zip(("vd", "dj") if model.has_d else ("vj",), model.insertions, strict=True):
        found[f"{name}_ins"] = dict(enumerate(own.lengths))
        found[f"{name}_first"] = dict(enumerate(own.first))
        before = sum(
            own.lengths[length] * np.linalg.matrix_power(own.transitions, place) @ own.first
            for length in range(2, len(own.lengths)) for place in range(length - 1)
        )  # fmt: skip
        found[f"{name}_dinucl"] = [dict(enumerate(step)) for step in own.transitions.T], "ACGT", before
    return found


def expected(a, b):
    """Divergences by event and condition."""
    alleles = [{t.allele for own in (model.v, model.d, model.j) for t in own} for model in (a, b)]
    of_a, of_b = arrays(a), arrays(b)
    found = {}
    for name, p in of_a.items():
        q = of_b[name]
        if name.endswith("choice"):
            p, q = ({key: x for key, x in own.items() if set(key) <= alleles[0] & alleles[1]} for own in (p, q))
        if isinstance(p, dict):
            found[name, ""] = divergences(p, q)
            continue
        distributions = [dict(zip(own[1], own[0], strict=True)) for own in (p, q)]
        weights = [dict(zip(own[1], own[2], strict=True)) for own in (p, q)]
        found[name, ""] = conditional(*distributions, *weights)
        for key in distributions[0].keys() & distributions[1].keys():
            found[name, key] = divergences(distributions[0][key], distributions[1][key])
    return found


def bits(row):
    return row.js_bits, row.kl_ab_bits, row.kl_ba_bits


def by_event(comparison):
    return {(row.event, row.condition): bits(row) for row in comparison.rows}


@pytest.mark.parametrize("has_d", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_definition(seed, has_d):
    a, b = pair_of_models(seed, has_d)
    found = by_event(compare(a, b))
    with localcontext(prec=40):
        values = expected(a, b)
    assert {key for key, own in found.items() if own != (None, None, None)} == set(values)
    for key, own in values.items():
        np.testing.assert_allclose(found[key], np.array(own, float), rtol=0, atol=MOST_ROUNDING, err_msg=str(key))
    assert any(math.isinf(own[1]) for own in found.values() if own[1] is not None)
    assert len(found) > len(values)


def test_the_definition_where_d_and_j_depend_on_v(tmp_path):
    """Their joint distribution is compared, too, as soon as one of the models has it."""
    heavy = read_model(vdj_files(heavy=True).write(tmp_path / "heavy"))
    light = read_model(vdj_files().write(tmp_path / "light"))
    joint = [own.ravel() for own in (np.multiply.outer(light.p_v, light.p_dj), heavy.p_vdj)]
    for a, b, p, q in ((light, heavy, *joint), (heavy, light, *joint[::-1])):
        with localcontext(prec=40):
            values = divergences(dict(enumerate(p)), dict(enumerate(q)))
        np.testing.assert_allclose(
            by_event(compare(a, b))["vdj_choice", ""], np.array(values, float), rtol=0, atol=MOST_ROUNDING
        )
    assert ("vdj_choice", "") not in by_event(compare(light, light))


def test_by_hand():
    """P = (1/2, 1/2, 0), Q = (1/4, 1/4, 1/2), which share M = (3/8, 3/8, 1/4)."""
    pairs = paired({"a": 0.5, "b": 0.5}, {"b": 0.25, "a": 0.25, "c": 0.5})
    assert kl(pairs) == 1
    assert kl([(y, x) for x, y in pairs]) == math.inf
    assert js(pairs) == pytest.approx((math.log2(4 / 3) + (math.log2(2 / 3) + 1) / 2) / 2, rel=2**-52)
    nothing_shared = paired({"a": 0.5, "b": 0.5}, {"c": 2.0})
    assert (js(nothing_shared), kl(nothing_shared)) == (1, math.inf)
    assert kl(paired({"a": 1.0, "b": 0.0}, {"a": 0.125, "b": 0.875})) == 3
    # What rounding leaves of equal distributions is 0.
    nearly = [(0.3, 0.3 * (1 + 2**-52)), (0.7, 0.7 * (1 - 2**-52))]
    assert (js(nearly), kl(nearly)) == (0, 0)
    assert js([(0.5, 0.5 + 1e-7), (0.5, 0.5 - 1e-7)]) > 0
    # Sums of files differ from 1.
    assert kl(paired({"a": 1.0, "b": 1.0}, {"a": 0.25, "b": 0.25})) == 0


def test_the_mean_of_conditions_by_hand(tmp_path):
    """V1 has P = 3/4 in A and 1/4 in B; one bit for V1, nothing for V2."""
    models = []
    for name, p_v, own in (("a", [0.75, 0.25], [1.0, 0, 0, 0, 0]), ("b", [0.25, 0.75], [0.5, 0.5, 0, 0, 0])):
        files = vj_files()
        files.events["v_choice"].probabilities = np.array(p_v)
        files.events["v_3_del"].probabilities = np.array([own, [0, 0.5, 0.5, 0, 0]])
        models.append(read_model(files.write(tmp_path / name)))
    comparison = compare(*models)
    rows = {row.condition: row for row in comparison.rows if row.event == "v_3_del"}
    jensen_shannon = js(paired({0: 1.0}, {0: 0.5, 1: 0.5}))
    assert bits(rows["TRAV1*01"]) == (jensen_shannon, 1, math.inf)
    assert bits(rows["TRAV2/DV4*01"]) == (0, 0, 0)
    assert bits(rows[""]) == (jensen_shannon / 2, 0.75, math.inf)
    assert (rows[""].probability_a, rows[""].probability_b) == (1, 1)
    assert (rows["TRAV1*01"].probability_a, rows["TRAV1*01"].probability_b) == (0.75, 0.25)


@pytest.mark.parametrize("seed", range(3))
def test_divergences_of_choice_and_deletions_add_up(seed):
    """To that of both together, as KL does; all V alleles are in both models."""
    a, b = small_model(seed), small_model(seed + 50)
    found = by_event(compare(a, b))
    p, q = (dict(np.ndenumerate(own.p_v[:, None] * own.v_deletions)) for own in (a, b))
    with localcontext(prec=40):
        together = [float(value) for value in divergences(p, q)[1:]]
    apart = np.add(found["v_choice", ""][1:], found["v_3_del", ""][1:])
    np.testing.assert_allclose(apart, together, rtol=0, atol=MOST_ROUNDING)


@pytest.mark.parametrize("has_d", [True, False])
def test_the_other_way_round(has_d):
    """JS is the same to the last bit, KL is exchanged, and so is what only one model has."""
    a, b = pair_of_models(7, has_d)
    there, back = compare(a, b), compare(b, a)
    assert (back.only_a, back.only_b) == (there.only_b, there.only_a)
    exchanged = {
        (row.event, row.condition): (row.js_bits, row.kl_ba_bits, row.kl_ab_bits, row.probability_b, row.probability_a)
        for row in back.rows
    }
    for row in there.rows:
        assert (*bits(row), row.probability_a, row.probability_b) == exchanged[row.event, row.condition]
    assert len(there.rows) == len(exchanged)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vj", "vdj", "heavy", *OLGA_MODELS])
def test_a_model_does_not_differ_from_itself(name, tmp_path):
    if name in OLGA_MODELS:
        model = olga_model(name)
        if model is None:
            pytest.skip("needs olga")
    else:
        model = read_model((vj_files() if name == "vj" else vdj_files(heavy=name == "heavy")).write(tmp_path))
    comparison = compare(model, model)
    for row in comparison.rows:
        assert bits(row) in ((0, 0, 0), (None, None, None)), row
        # There is nothing to compare of what never happens: an allele without deletions, a base after another where no
        # insertion has two.
        assert row.js_bits == 0 or row.probability_a == 0
    assert (comparison.only_a.alleles, comparison.only_a.probability) == ({}, 0)


@pytest.mark.parametrize("has_d", [True, False])
def test_what_only_one_model_has(has_d):
    a, b = pair_of_models(3, has_d)
    comparison = compare(a, b)
    assert set(comparison.only_a.alleles) == {"TRBV3*01"}
    assert list(comparison.only_b.alleles) == ["TRBV4*01", *(["TRBD1*01"] if has_d else []), "TRBJ3*01"]
    for model, only in ((a, comparison.only_a), (b, comparison.only_b)):
        total = 0.0
        for v, j in product(range(len(model.v)), range(len(model.j))):
            for d in range(len(model.d)) if has_d else [None]:
                chance = model.p_v[v] * model.p_dj[d, j] if has_d else model.p_vj[v, j]
                names = {model.v[v].allele, model.j[j].allele} | ({model.d[d].allele} if has_d else set())
                total += chance if names & set(only.alleles) else 0
        # Sums of at most 24 numbers below 1.
        assert only.probability == pytest.approx(total, abs=24 * 2**-53)
    # Rows without divergences list them, with their probability.
    lone = {row.condition: row for row in comparison.rows if row.js_bits is None}
    assert set(lone) == {*comparison.only_a.alleles, *comparison.only_b.alleles}
    assert lone["TRBV3*01"].probability_a == comparison.only_a.alleles["TRBV3*01"]
    assert lone["TRBV3*01"].probability_b is None


def test_an_allele_without_deletions_is_not_compared(tmp_path):
    """IGoR writes only zeros for an allele that its data did not have."""
    a = read_model(vj_files().write(tmp_path / "a"))
    files = vj_files()
    files.events["v_choice"].probabilities = np.array([1.0, 0.0])
    files.events["v_3_del"].probabilities[1] = 0
    b = read_model(files.write(tmp_path / "b"))
    rows = {(row.event, row.condition): row for row in compare(a, b).rows}
    assert bits(rows["v_3_del", "TRAV2/DV4*01"]) == (None, None, None)
    assert rows["v_3_del", "TRAV2/DV4*01"].probability_b == 0
    assert bits(rows["v_3_del", ""]) == (0, 0, 0)
    assert rows["v_3_del", ""].probability_a == 0.75
    # B never chooses this V, which A does.
    assert rows["vj_choice", ""].kl_ab_bits == math.inf
    assert rows["vj_choice", ""].kl_ba_bits < math.inf


def test_an_infinite_divergence_without_weight_does_not_count(tmp_path):
    """A never chooses the allele of which B excludes a deletion."""
    models = []
    for name, p_v, own in (("a", [1.0, 0.0], [0, 0.5, 0.5, 0, 0]), ("b", [0.5, 0.5], [0, 1.0, 0, 0, 0])):
        files = vj_files()
        files.events["v_choice"].probabilities = np.array(p_v)
        files.events["v_3_del"].probabilities[1] = own
        models.append(read_model(files.write(tmp_path / name)))
    rows = by_event(compare(*models))
    assert rows["v_3_del", "TRAV2/DV4*01"][1:] == (math.inf, 1)
    assert rows["v_3_del", ""][1:] == (0, 0.5)


def test_choices_without_probability_have_no_divergence(tmp_path):
    """The only allele in common is never chosen in one of the models."""
    a = read_model(vj_files().write(tmp_path / "a"))
    files = vj_files()
    files.events["v_choice"] = Event(["TRAV1*01;GGTGTGCC", "TRAV3*01;GTGTA"], np.array([0.0, 1.0]))
    files.anchors["V"][1] = "TRAV3*01,1,F"
    rows = by_event(compare(a, read_model(files.write(tmp_path / "b"))))
    assert rows["vj_choice", ""] == (None, None, None)
    # The deletions of the allele are known all the same; B gives them no weight.
    assert rows["v_3_del", "TRAV1*01"] == (0, 0, 0)
    assert rows["v_3_del", ""] == (None, 0, None)


def test_names_are_compared_as_in_calls(tmp_path):
    a = read_model(vj_files().write(tmp_path / "a"))
    other = [("TRAV2/DV4*01", "TRAV02DV4*1")]
    files = vj_files()
    files.events["v_choice"].realisations = ["TRAV1*01;GGTGTGCC", "TRAV02DV4*1;GTGTA"]
    files.anchors["V"][1] = "TRAV02DV4*1,1,F"
    b = read_model(files.write(tmp_path / "b"))
    for first, second, name in ((a, b, other[0][0]), (b, a, other[0][1])):
        comparison = compare(first, second)
        assert not comparison.only_a.alleles
        assert not comparison.only_b.alleles
        assert name in {row.condition for row in comparison.rows}
        assert all(bits(row) == (0, 0, 0) for row in comparison.rows)


def test_deletions_are_compared_by_the_bases_that_are_deleted(tmp_path):
    """A model may allow more P-nucleotides than another, without using them."""
    models = []
    for name, first, zeros in (("a", -2, 0), ("b", -4, 2)):
        files = vdj_files()
        realisations = numbers(first, 1)
        for event in ("v_3_del", "j_5_del", "d_5_del"):
            own = files.events[event]
            files.events[event] = Event(realisations, np.pad(own.probabilities, ((0, 0), (zeros, 0))), own.parents)
        own = files.events["d_3_del"]
        padded = np.pad(own.probabilities, ((0, 0), (zeros, 0), (zeros, 0)))
        files.events["d_3_del"] = Event(realisations, padded, own.parents)
        files.events["d_gene"].realisations = ["TRBD1*01;GGGA", "TRBD2*01;GACT"]
        models.append(read_model(files.write(tmp_path / name)))
    assert len(models[1].v[0].extended) == len(models[0].v[0].extended) + 2
    for row in compare(*models).rows:
        # VD insertions have at most one base.
        assert bits(row) == ((None, None, None) if (row.event, row.condition) == ("vd_dinucl", "") else (0, 0, 0)), row


def test_a_first_base_of_its_own_is_compared():
    a, b = small_model(1), small_model(2)
    assert ("vd_first", "") in by_event(compare(a, b))
    a, b = (
        replace(own, insertions=tuple(replace(i, first=stationary(i.transitions)) for i in own.insertions))
        for own in (a, b)
    )
    events = {event for event, _ in by_event(compare(a, b))}
    assert not events & {"vd_first", "dj_first"}
    assert {"vd_dinucl", "dj_dinucl"} < events


def test_sequences_that_differ_are_named(tmp_path, caplog):
    """The models may be of two species, whose alleles have the same names."""
    a = read_model(vj_files().write(tmp_path / "a"))
    files = vj_files()
    files.events["v_choice"].realisations[0] = "TRAV1*01;GGTGTGCA"
    # The sequence of an allele without an anchor is not known in the junction.
    files.anchors["V"][1] = "TRAV2/DV4*01,0,P"
    with caplog.at_level(logging.WARNING):
        compare(a, a)
        assert not caplog.messages
        compare(a, read_model(files.write(tmp_path / "b")))
    (message,) = caplog.messages
    assert message.startswith("1 of the 4 alleles that ")
    assert message.endswith("differ in sequence (TRAV1*01); are the models of one species?")


def test_refusals(tmp_path):
    vj, vdj = vj_files().write(tmp_path / "vj"), vdj_files().write(tmp_path / "vdj")
    for a, b in ((vj, vdj), (vdj, vj)):
        with pytest.raises(InputError, match=r"vdj has D genes and .*vj does not.*; compare models of one locus"):
            hpcvdj.compare_models(a, b)
    for segment, event, old, new in (
        ("V", "v_choice", "TRBV", "IGHV"), ("D", "d_gene", "TRBD", "IGHD"), ("J", "j_choice", "TRBJ", "IGHJ")
    ):  # fmt: skip
        files = vdj_files()
        files.events[event].realisations = [text.replace(old, new) for text in files.events[event].realisations]
        with pytest.raises(InputError, match=f"have no {segment} allele in common; compare models of one locus"):
            hpcvdj.compare_models(vdj, files.write(tmp_path / segment))


def test_as_a_table():
    comparison = hpcvdj.compare_models(*pair_of_models(2, True))
    table = comparison.to_table()
    assert table.column_names == [
        "event", "distribution", "condition", "js_bits", "kl_ab_bits", "kl_ba_bits", "probability_a", "probability_b"
    ]  # fmt: skip
    assert [tuple(row.values()) for row in table.to_pylist()] == [tuple(vars(row).values()) for row in comparison.rows]
    assert [str(kind) for kind in table.schema.types] == ["string"] * 3 + ["double"] * 5


def test_a_folder_of_parquet_is_replaced_as_a_file_is(tmp_path):
    words = "models", "compare", "human_trb_m15", "human_trb_m15", "-o", tmp_path / "d.dataset"
    hpcvdj_command(*words)
    assert "exists already" in error_line(hpcvdj_command(*words, code=2)[1])
    hpcvdj_command(*words, "--overwrite")


@pytest.mark.parametrize("names", [("TRAV1*01", "TRAV1*01"), ("TRAV1-1*01", "TCRAV01-01*01")])
def test_two_alleles_of_one_name(tmp_path, names):
    """They would be compared as one."""
    model = read_model(vj_files().write(tmp_path))
    twice = replace(model, v=tuple(replace(own, allele=name) for own, name in zip(model.v, names, strict=True)))
    for a, b in ((model, twice), (twice, model)):
        with pytest.raises(InputError, match=r"has several alleles of one name .* give each its own name"):
            compare(a, b)
