"""`hpcvdj enrich --control`: other people in place of the model."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.chance.p_values import quantiles
from hpcvdj.chance.p_values import randomised as with_random_part
from hpcvdj.chance.settings import ClonotypeChoice
from hpcvdj.enrichment.enrich import enrich_over
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import open_backend
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import load_model
from hpcvdj.runs.run import Run
from tests.asked import enrich_table
from tests.enrichment.test_enrich import clonotypes_of, planted, small_junctions
from tests.loci import LOCI, exhaustive_but


@pytest.fixture(scope="module")
def model():
    return load_model("human_trb_m15")


@pytest.mark.olga
@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "mouse_trb"))
def test_ten_people_as_a_control(name):
    """Drawn people have no hits; p-values are uniform or, of clonotypes with few neighbours, larger."""
    model = load_model(name)
    rows = hpcvdj.generate(model, 322_000, seed=17, productive=True)
    rows = rows.select(["sequence_id", "v_call", "j_call", "junction"])
    own, others = rows.slice(0, 22_000), rows.slice(22_000)
    people = others.append_column("repertoire_id", pa.array([f"p{k % 10}" for k in range(len(others))]))
    null = enrich_table(own, model, EnrichmentSettings(max_q=0.05), ClonotypeChoice(), people)
    assert null.hits == 0
    assert (np.array(null.qq["low"]) <= null.qq["observed"]).mean() > 0.8
    with_them, centres = planted(model, own, clusters=3, members=14)
    found = enrich_table(with_them, model, EnrichmentSettings(max_q=0.05), ClonotypeChoice(), people)
    hits = found.table.filter(pc.less_equal(found.table["q_value"], 0.05))
    assert {*centres} <= {*hits["junction_aa"].to_pylist()}


def test_a_control_by_hand(model):
    """Neighbours counted by comparison of all pairs; one class has no control, and one is of the controls only.

    Two controls have junctions in common, which count for each of them.
    """
    rng = np.random.default_rng(9)
    rows = [row for j in ("TRBJ1-1", "TRBJ1-2", "TRBJ2-1") for row in small_junctions(rng, "TRBV9", j, 40)]
    people = [
        [row for j in ("TRBJ1-1", "TRBJ1-2", "TRBJ2-7") for row in small_junctions(rng, "TRBV9", j, 30)],
        [row for j in ("TRBJ1-2", "TRBJ2-7") for row in small_junctions(rng, "TRBV9", j, 50)],
    ]
    assert {*people[0]} & {*people[1]}
    control = people[0] + people[1]
    own, others = clonotypes_of(rows, model), [clonotypes_of(person, model) for person in people]
    found = enrich_over(own, others, EnrichmentSettings(), Run(), open_backend("cpu"))

    def near(text, j, others):
        texts = translate([junction for _, of, junction in others if of == j])
        return sum(sum(a != b for a, b in zip(text, other, strict=True)) <= 1 for other in texts), len(texts)

    expected, tails = {}, []
    for kind, text in zip(own.kind.tolist(), own.texts(np.arange(len(own)))["junction_aa"].to_pylist(), strict=True):
        j = own.classes[kind][1].allele.partition("*")[0]
        (neighbours, size), (of_control, control_size) = near(text, j, rows), near(text, j, control)
        share = (size - 1) / (size - 1 + control_size)
        at_least, more = (
            stats.binom.sf(k - 1, k + of_control, share) if control_size and k else 1.0
            for k in (neighbours - 1, neighbours)
        )
        expected[j, text] = neighbours - 1, size, of_control, control_size, at_least
        if control_size:
            tails.append((at_least, more))
    names = "neighbours", "class_size", "control_neighbours", "control_size", "p_value"
    tested = {
        (row["j_call"].partition("*")[0], row["junction_aa"]): tuple(row[name] for name in names)
        for row in found.table.to_pylist()
    }
    assert tested.keys() == {key for key, values in expected.items() if values[0] >= 2}
    for key, values in tested.items():
        assert values == pytest.approx(expected[key], rel=1e-10)
    for row in found.table.to_pylist():
        rate = row["control_neighbours"] / row["control_size"] if row["control_size"] else 0
        assert row["expected"] == pytest.approx((row["class_size"] - 1) * rate)
    qq = quantiles(with_random_part(*np.array(tails).T, 0))
    assert found.qq["observed"] == pytest.approx(qq["observed"], rel=1e-10)


@pytest.mark.parametrize("number", [19, 20])
def test_the_fewest_clonotypes_that_tell_the_individual_itself(model, number):
    codons = itertools.product(["AGC", "GGA", "CTA", "AAC", "GAC"], repeat=2)
    rows = [("TRBV9", "TRBJ1-1", f"TGTGCC{one}{other}TTC") for one, other in itertools.islice(codons, number)]
    own = clonotypes_of(rows, model)
    assert len(own) == number
    if number < 20:
        assert enrich_over(own, [own], EnrichmentSettings(), Run(), open_backend("cpu")).hits == 0
    else:
        with pytest.raises(InputError, match="100% of the clonotypes that are tested, so it has the individual"):
            enrich_over(own, [own], EnrichmentSettings(), Run(), open_backend("cpu"))
