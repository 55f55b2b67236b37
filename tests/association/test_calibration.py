"""Nothing is found where nothing goes with the cases, however deep they are; planted sequences are."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.association.multiplicity import inflation, q_values
from tests.association.drawn import Pool, metadata
from tests.loci import LOCI, exhaustive_but

pytestmark = [pytest.mark.olga, pytest.mark.slow]

DONORS = 30

SIZES = {"human_igk": 400, "human_tra": 1_500, "mouse_tra": 1_000, "mouse_trb": 2_000, "human_trb": 6_000,
         "human_igh": 6_000}  # fmt: skip
"""Recombinations of a control; IGH shares hardly any."""


def asked(tables, model, case, columns=None, **options):
    about = metadata(case, **(columns or {}))
    return hpcvdj.associate(tables, model, metadata=about, case={"disease": "ill"}, draws=3_000, backend="cpu",
                            min_individuals=2, max_p=1.0, **options)  # fmt: skip


def uniform_and_fisher(found):
    (own,) = found.tested
    return own, own.uniform, own.fisher[1]


@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_cases_twice_as_deep_have_no_hits(name):
    case = np.arange(DONORS) % 2 == 0
    sizes = np.where(case, 2, 1) * SIZES[name]
    tables = Pool(name, int(sizes.sum()), seed=11).donors(sizes)
    own, uniform, of_fisher = uniform_and_fisher(asked(tables, name, case))
    assert not (own.q <= 0.05).any()
    assert not (own.q_weighted <= 0.05).any()
    if name == "human_igh":
        return
    assert len(uniform) > 50
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    assert (uniform < 0.05).mean() < 0.05 + 4 * np.sqrt(0.05 / len(uniform))
    # Fisher's test finds that cases are deeper.
    assert (of_fisher < 0.05).mean() > (uniform < 0.05).mean()
    assert stats.kstest(of_fisher, "uniform").pvalue < 1e-3


def test_batches_of_different_depth_pass_with_strata():
    """Cases are of the first batch alone, which is deep; of the others, controls."""
    batch = np.repeat(["deep", "shallow", "middle"], [14, 8, 8])
    case = (batch == "deep") & (np.arange(DONORS) % 2 == 0)
    sizes = np.select([batch == "deep", batch == "middle"], [1_200, 600], 200)
    tables = Pool("human_igk", int(sizes.sum()), seed=12).donors(sizes)
    found = asked(tables, "human_igk", case, {"batch": batch}, strata=("batch",))
    own, uniform, of_fisher = uniform_and_fisher(found)
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    assert not (own.q <= 0.05).any()
    assert inflation(of_fisher) > 1.5 * inflation(uniform)


def test_planted_odds_are_found_and_fishers_test_finds_depth():
    case = np.arange(40) % 2 == 0
    sizes = np.where(case, 1_200, 600)
    pool = Pool("human_igk", 45_000, seed=13)
    some = np.random.default_rng(1).permutation(np.flatnonzero((pool.numbers >= 10) & (pool.numbers <= 25)))[:30]
    tables = pool.donors(sizes, case, {int(own): 40.0 for own in some})
    found = asked(tables, "human_igk", case)
    own, _, _ = uniform_and_fisher(found)
    sequences = found.carriers.sequences
    from hpcvdj.repertoires.genes import as_text, kinds_of

    texts = as_text(sequences.letters, sequences.lengths).to_pylist()
    pairs = [sequences.repertoire.pairs[k] for k in kinds_of(sequences.repertoire).tolist()]
    names = np.array([f"{v.allele}|{j.allele}|{text}" for (v, j), text in zip(pairs, texts, strict=True)])[own.rows]
    is_planted = np.isin(names, pool.names[some])
    hit = own.is_hit(0.05, found.carriers.copy)
    of_fisher = np.zeros(len(hit), dtype=bool)
    of_fisher[own.kept] = q_values(own.fisher[0][own.kept]) <= 0.05
    assert (hit & is_planted).sum() >= 10
    assert (hit & ~is_planted).sum() <= 1
    assert (of_fisher & ~is_planted).sum() >= 5
    assert found.auc.area > 0.9


@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_what_cases_share_is_found_in_every_locus(name):
    """Amino acids, which have no likely copies: in IGH, hardly any two donors have a junction in common by chance."""
    case = np.arange(DONORS) % 2 == 0
    sizes = np.where(np.arange(DONORS) % 4 < 2, 2, 1) * SIZES[name] // 2
    pool = Pool(name, int(sizes.sum()), seed=14)
    once = np.random.default_rng(2).permutation(np.flatnonzero(pool.numbers == 1))[:5]
    planted = np.flatnonzero(np.isin(pool.sequence, once))
    tables = {}
    for k, (donor, table) in enumerate(pool.donors(sizes).items()):
        rows = [table, pool.table.take(pa.array(planted if case[k] and k >= 4 else planted[:0]))]
        junctions = pa.concat_tables(rows)
        texts = pa.array(hpcvdj.translate(junctions["junction"].to_pylist()))
        tables[donor] = junctions.drop_columns(["junction"]).append_column("junction_aa", texts)
    found = asked(tables, name, case)
    hits = {"|".join((row["v_call"], row["j_call"], row["junction_aa"])) for row in found.table.to_pylist()
            if row["q_value"] is not None and row["q_value"] <= 0.05}  # fmt: skip
    assert hits == set(pool.names[once])


@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_balls_of_cases_twice_as_deep_have_no_hits(name):
    case = np.arange(DONORS) % 2 == 0
    sizes = np.where(case, 2, 1) * SIZES[name]
    tables = Pool(name, int(sizes.sum()), seed=15).donors(sizes)
    found = asked(tables, name, case, unit="ball")
    own, uniform, of_fisher = uniform_and_fisher(found)
    assert not (own.q <= 0.05).any()
    assert not (own.q_weighted <= 0.05).any()
    # Balls that overlap have p-values that depend on each other: one of each family does not.
    family = found.carriers.family[own.rows]
    order = np.random.default_rng(4).permutation(len(family))
    apart = order[np.unique(family[order], return_index=True)[1]]
    assert len(apart) > 30
    assert stats.kstest(uniform[apart], "uniform").pvalue > 1e-3
    assert (uniform < 0.05).mean() < 0.05 + 4 * np.sqrt(0.05 / len(apart))
    if name != "human_igh":
        assert (of_fisher < 0.05).mean() > (uniform < 0.05).mean()


@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_a_family_that_cases_have_is_found_by_its_ball_alone(name):
    """Amino acids that differ from one sequence in one place: cases have the same family, hardly any the same one."""
    case = np.arange(DONORS) % 2 == 0
    sizes = np.where(np.arange(DONORS) % 4 < 2, 2, 1) * SIZES[name] // 2
    pool = Pool(name, int(sizes.sum()), seed=16)
    once = np.flatnonzero(pool.numbers == 1)
    centre = pool.names[max(once, key=lambda own: len(pool.names[own]))]
    v, j, text = centre.split("|")
    # Each of a place of its own, so that two of them are near to the centre, and not to each other.
    variants = [text, *(text[:k] + ("A" if text[k] != "A" else "S") + text[k + 1 :] for k in range(5, 12))]
    tables = {}
    for k, (donor, table) in enumerate(pool.donors(sizes).items()):
        texts = hpcvdj.translate(table["junction"].to_pylist())
        rows = [*zip(table["v_call"].to_pylist(), table["j_call"].to_pylist(), texts, strict=True)]
        rows += [(v, j, variants[k // 2 % len(variants)])] if case[k] else []
        tables[donor] = pa.table(dict(zip(("v_call", "j_call", "junction_aa"), zip(*rows, strict=True), strict=True)))
    found = {unit: asked(tables, name, case, unit=unit) for unit in ("vj-aa", "ball")}
    hits = {
        unit: {"|".join((row["v_call"], row["j_call"], row["junction_aa"])): row for row in own.table.to_pylist()
               if row["q_value"] is not None and row["q_value"] <= 0.05}
        for unit, own in found.items()
    }  # fmt: skip
    assert hits["vj-aa"] == {}
    assert hits["ball"].keys() == {centre}
    assert hits["ball"][centre]["case_carriers"] == 15
    assert hits["ball"][centre]["members"] >= len(variants)


@pytest.mark.parametrize("name", exhaustive_but(LOCI, "mouse_trb"))
def test_twelve_donors_of_unequal_depth(name):
    """No hit of drawn junctions; sequences of all cases are hits, though none alone reaches Tarone's threshold."""
    deep = np.where(np.arange(12) < 6, 3_000, 1_500)
    about = pa.table({"sample": [f"d{k}" for k in range(12)], "ill": ["y"] * 6 + ["n"] * 6})

    def hits(donors):
        named = {f"d{k}": table for k, table in enumerate(donors)}
        found = hpcvdj.associate(named, name, metadata=about, case={"ill": "y"}, draws=20_000, backend="cpu").table
        return {*found.filter(pc.less_equal(found["q_value"], 0.05))["junction_aa"].to_pylist()}

    for seed in range(3):
        rows = hpcvdj.generate(name, int(deep.sum()) + 200, seed=9_100 + seed, productive=True, backend="cpu")
        rows, ends = rows.select(["v_call", "j_call", "junction_aa"]), np.cumsum(deep)
        donors = [rows.slice(end - size, size) for end, size in zip(ends.tolist(), deep.tolist(), strict=True)]
        drawn, others = rows.slice(0, ends[-1])["junction_aa"], rows.slice(ends[-1])
        planted = others.filter(pc.invert(pc.is_in(others["junction_aa"], drawn.combine_chunks()))).slice(0, 8)
        assert hits(donors) == set()
        found = hits([*(pa.concat_tables([table, planted]) for table in donors[:6]), *donors[6:]])
        # Of human IGK, frequent sequences reach the threshold, since depth matters less for them, and rare ones do not.
        assert found == ({*planted["junction_aa"].to_pylist()} if name != "human_igk" else set())
