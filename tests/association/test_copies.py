"""Copies among the carriers of `hpcvdj associate`: who is no carrier, what is no hit, and that honest hits stay."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.association import tested
from hpcvdj.association.carriers import _doubtful
from hpcvdj.association.law import levels_of
from hpcvdj.association.multiplicity import q_values
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.association.question import AssociationQuestion
from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.cohorts.copies import sources_of
from hpcvdj.cohorts.holding import Holding
from tests.association.cohort import CASE, DONORS, SIZES, asked, carriers_by_loops, rows_of
from tests.association.drawn import Pool, metadata

pytestmark = pytest.mark.olga


@pytest.mark.slow
def test_copies_are_no_carriers_and_are_named(pool, model):
    """A rare junction of a large clone of one case in eight others."""
    tables = pool.donors(SIZES, seed=1)
    rare = pool.table.slice(int(np.flatnonzero(pool.numbers[pool.sequence] == 1)[-1]), 1)
    receivers = [f"d{k:03}" for k in range(0, 18, 2)]
    for name, table in tables.items():
        reads = pa.array(np.ones(len(table), dtype=int))
        tables[name] = table.append_column("duplicate_count", reads)
        if name in receivers:
            reads = pa.array([3_000 if name == "d004" else 1])
            tables[name] = pa.concat_tables([tables[name], rare.append_column("duplicate_count", reads)])
    text = hpcvdj.translate(rare["junction"].to_pylist())[0]
    found = asked(tables, model, min_individuals=2)
    rows = [row for row in found.table.to_pylist() if row["junction_aa"] == text]
    # One carrier is left, which is too few to be tested.
    assert rows == []
    has = carriers_by_loops(tables)
    others = [row for row in found.table.to_pylist() if not row["likely_copy"]]
    assert len(others) > 300
    for row in others:
        assert row["carriers"] == len(has[row["v_call"], row["j_call"], row["junction_aa"]])
    assert found.likely_copies >= 1
    without = asked({name: table.drop_columns(["duplicate_count"]) for name, table in tables.items()}, model)
    assert text not in without.table["junction_aa"].to_pylist()
    assert without.likely_copies >= 1


def test_the_summary_tells_hits_from_likely_copies(answer):
    """A row with a small q-value that is a likely copy is no hit, and the last line says so."""
    question = AssociationQuestion(Donors(metadata=metadata(CASE), case={"disease": "ill"}), AssociationSettings())
    (test,) = answer.tested
    hits = np.flatnonzero(test.q <= answer.max_q)
    assert len(hits) > 2
    why = "of one junction in donors that share others"
    for copies, doubted, more in (
        (0, 0, ""), (1, 0, "; 1 more is a likely copy"), (2, 0, "; 2 more are likely copies"),
        (0, 1, f"; 1 more may be a copy, {why}"),
        (1, 2, f"; 1 more is a likely copy, 2 more may be copies, {why}"),
    ):  # fmt: skip
        copy, p_told, q = np.zeros(len(answer.carriers.p), dtype=bool), test.p.copy(), test.q.copy()
        copy[test.rows[hits[:copies]]] = True
        unsure = hits[copies : copies + doubted]
        p_told[unsure], q[unsure] = 1.0, 1.0
        changed = replace(answer, carriers=replace(answer.carriers, copy=copy),
                          tested=[replace(test, p_told=p_told, q=q, q_of_p=test.q)])  # fmt: skip
        title, line = question.summary(changed)[-1]
        assert (title, line) == ("hits", f"{len(hits) - copies - doubted:,} with q_value <= 0.05{more}")
        (facts,) = question.facts(changed, rows_of(answer))["phenotypes"]
        assert (facts["hits_that_are_copies"], facts["hits_that_may_be_copies"]) == (copies, doubted)


def test_q_values_of_others_are_those_without_copies(answer):
    """Copies have the smallest p-values: counted among the tests, they made a sequence of p = 0.05 a hit."""
    (test,) = answer.tested
    number = len(answer.carriers.p)
    few = test.rows[np.argsort(test.p, kind="stable")[:4]]
    reached = tested.Reached(np.array([number]), np.array([2.0]), np.ones(number, dtype=bool))
    honest = replace(answer.carriers, copy=np.zeros(number, dtype=bool))
    (before,) = tested.tests_of(honest, [test.phenotype], answer.sizes, AssociationSettings(), reached)
    copy = honest.copy.copy()
    copy[few] = True
    (after,) = tested.tests_of(
        replace(honest, copy=copy), [test.phenotype], answer.sizes, AssociationSettings(), reached
    )
    is_few = np.isin(after.rows, few)
    assert after.q[~is_few].tolist() == q_values(after.p[~is_few]).tolist()
    assert after.q[is_few].tolist() == before.q[is_few].tolist()
    assert (after.q[~is_few] > before.q[~is_few]).any()
    assert after.in_family == len(after.p) - 4
    assert after.is_hit(1.0, copy).tolist() == (~is_few).tolist()


def test_sources_are_doubted_that_most_carriers_of_a_group_have():
    rng, donors = np.random.default_rng(8), 7
    doubted = 0
    for _ in range(40):
        group = rng.integers(-1, 3, donors)
        holders = [rng.choice(donors, rng.integers(1, 6), replace=False).tolist() for _ in range(30)]
        pairs = np.array([(k, donor) for k, own in enumerate(holders) for donor in own])
        has = Holding.of(pairs[:, 0], pairs[:, 1], 30, donors, None, np.maximum)
        spelled = rng.integers(-1, 12, 30).astype(np.int32)
        source = sources_of(has, group)
        found = _doubtful(source, spelled[has.sequence], has.individual, group)
        entries = list(zip(has.sequence.tolist(), has.individual.tolist(), source.tolist(), strict=True))
        for k, (junction, donor, own) in enumerate(entries):
            of_group = {b for a, b, _ in entries if spelled[a] == spelled[junction] and group[b] == group[donor]}
            alike = {b for _, b, of in entries if of == own}
            expected = own if own and 2 * len(alike) > len(of_group) else 0
            doubted += expected > 0
            if spelled[junction] >= 0:
                assert found[k] == expected
    assert doubted > 50


def test_which_of_equal_carriers_counts_does_not_depend_on_their_order():
    """With strata, q-values depended on the order of the tables."""
    value, stratum = {"a": 1, "b": 1, "c": 0, "d": 0, "e": 1}, {"a": 0, "b": 1, "c": 0, "d": 1, "e": 1}
    chosen = set()
    for order in permutations("abcde"):
        phenotype = Phenotype("x", "case", np.arange(5), np.array([value[name] for name in order]),
                              np.array([stratum[name] for name in order]), ["0", "1"])  # fmt: skip
        carriers = np.array(sorted(order.index(name) for name in "ab"))
        has = Holding.of(np.zeros(2, dtype=int), carriers, 1, 5, np.array([1, 1]), np.minimum)
        kept = [[order[k] for k in tested._once(has, phenotype, sign).individual] for sign in (1, -1)]
        chosen.add(str([[stratum[name] for name in names] for names in kept]))
    # Of two cases, the one in the stratum of most cases; if values are negated, in that of the fewest.
    assert chosen == {"[[1], [0]]"}


@pytest.mark.parametrize("kind", ["case", "trend"])
def test_p_values_of_perhaps_copies_by_loops(answer, kind):
    """Each test with groups as strata, and with one carrier of each source; the smaller one counts, but not below p."""
    (test,), rng = answer.tested, np.random.default_rng(4)
    phenotype = replace(test.phenotype, family=kind)
    if kind == "trend":
        phenotype = replace(phenotype, value=levels_of(rng.normal(size=len(phenotype.donors))))
    # The last donor has no value.
    part = {name: getattr(phenotype, name)[:-1] for name in ("donors", "value", "stratum")}
    phenotype = replace(phenotype, **part)
    number, has = len(answer.carriers.p), answer.carriers.has
    group = np.where(rng.random(DONORS) < 0.5, rng.integers(0, 3, DONORS), -1)
    source = np.where(group[has.individual] >= 0, rng.integers(0, 3, len(has.individual)), 0)
    # A number of its own for each source of a sequence in a group.
    source = np.where(source > 0, 1 + source + 3 * (group[has.individual] + 3 * has.sequence.astype(np.int64)), 0)
    copy = rng.random(number) < 0.1
    carriers = replace(answer.carriers, copy=copy, group=group, has=replace(has, reads=source))
    settings = AssociationSettings()

    def tested_as(has, phenotype, settings=settings):
        reached = tested.Reached(np.array([number]), np.array([2.0]), np.ones(number, dtype=bool))
        alone = replace(carriers, copy=None, group=None, has=replace(has, reads=None))
        (found,) = tested.tests_of(alone, [phenotype], answer.sizes, settings, reached)
        return dict(zip(found.rows.tolist(), found.p.tolist(), strict=True))

    reached = tested.Reached(np.array([number]), np.array([2.0]), np.ones(number, dtype=bool))
    (after,) = tested.tests_of(carriers, [phenotype], answer.sizes, settings, reached)
    pairs = [(int(a), int(b)) for a, b in zip(phenotype.stratum, group[phenotype.donors], strict=True)]
    names = sorted({*pairs})
    within = tested_as(has, replace(phenotype, strata=names, stratum=np.array([names.index(pair) for pair in pairs])))
    value_of = dict(zip(phenotype.donors.tolist(), phenotype.value.tolist(), strict=True))
    once = []
    mean = [phenotype.value[phenotype.stratum == k].mean() for k in range(len(phenotype.strata))]
    share_of = {donor: mean[k] for donor, k in zip(phenotype.donors.tolist(), phenotype.stratum.tolist(), strict=True)}
    for sign in (1, -1):
        kept = np.zeros(len(source), dtype=bool)
        for k in range(number):
            entries = range(has.begins[k], has.begins[k + 1])
            for of in {int(source[e]) for e in entries}:
                alike = [e for e in entries if source[e] == of and int(has.individual[e]) in value_of]
                if of == 0:
                    kept[alike] = True
                elif alike:
                    donors = {e: int(has.individual[e]) for e in alike}
                    kept[min(alike, key=lambda e: (sign * value_of[donors[e]], -sign * share_of[donors[e]], e))] = True
        once.append(tested_as(has.entries(kept), phenotype))
    larger = 0
    for k, (row, p) in enumerate(zip(after.rows.tolist(), after.p.tolist(), strict=True)):
        expected = p
        if source[has.begins[row] : has.begins[row + 1]].any():
            expected = max(p, min(within[row], max(one.get(row, 1.0) for one in once)))
            larger += expected > p
        assert after.p_told[k] == pytest.approx(expected, rel=1e-12)
    assert larger > 20
    honest = ~copy[after.rows]
    assert after.q[honest].tolist() == q_values(after.p_told[honest]).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["human_igk", pytest.param("mouse_tra", marks=pytest.mark.exhaustive)])
def test_hits_of_one_spelling_are_found_where_all_donors_share_copies(name):
    """As of a run whose indices hop: copies do not tell cases from controls, so they explain no hit."""
    size = {"human_igk": 400, "mouse_tra": 1_000}[name]
    pool = Pool(name, 64 * size, seed=9132)
    case, sizes = np.arange(24) % 2 == 1, np.full(24, size)
    junctions = np.unique(pool.table["junction"].to_numpy(), return_inverse=True)[1]
    different = np.bincount(np.unique(np.stack([pool.sequence, junctions]), axis=1)[0])
    places = np.flatnonzero((different == 1) & (pool.numbers >= 6) & (pool.numbers <= 8))[:4].tolist()
    tables = pool.donors(sizes, case, dict.fromkeys(places, 1e9))
    copies = pool.table.slice(60 * size, 30)
    for donor in tables:
        tables[donor] = pa.concat_tables([tables[donor], copies])
    found = hpcvdj.associate(
        tables, name, metadata=metadata(case), case={"disease": "ill"}, draws=2_000, backend="cpu", max_p=1.0
    )
    rows = {(row["v_call"], row["j_call"], row["junction_aa"]): row for row in found.table.to_pylist()}
    planted = [rows[tuple(pool.names[place].split("|"))] for place in places]
    # Each has one junction, which all its carriers share.
    assert [row["nt_variants"] for row in planted] == [1] * 4
    assert [row["q_value"] <= 0.05 for row in planted] == [True] * 4
    assert found.hits == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["human_igk", pytest.param("mouse_tra", marks=pytest.mark.exhaustive)])
def test_copies_that_cannot_be_told_are_no_hits(name):
    """Of 30 junctions of one case in all cases, about 8 are spelled alike by nearly all recombinations: each was a hit.

    Sequences that cases have in several junctions stay hits.
    """
    size = {"human_igk": 400, "mouse_tra": 1_000}[name]
    pool = Pool(name, 64 * size, seed=9131)
    case, sizes = np.arange(24) % 2 == 1, np.full(24, size)
    junctions = np.unique(pool.table["junction"].to_numpy(), return_inverse=True)[1]
    different = np.bincount(np.unique(np.stack([pool.sequence, junctions]), axis=1)[0])
    places = np.argsort(np.where(pool.numbers <= 16, -different, 0), kind="stable")[:4].tolist()
    tables = pool.donors(sizes, case, dict.fromkeys(places, 1e9))
    copies = tables["d001"].slice(0, 30)
    copied = {tuple(key) for key in carriers_by_loops({"d001": copies})}
    for donor in np.flatnonzero(case).tolist():
        tables[f"d{donor:03}"] = pa.concat_tables([tables[f"d{donor:03}"], copies])
    found = hpcvdj.associate(
        tables, name, metadata=metadata(case), case={"disease": "ill"}, draws=2_000, backend="cpu", max_p=1.0
    )
    rows = {(row["v_call"], row["j_call"], row["junction_aa"]): row for row in found.table.to_pylist()}
    hits = {key for key, row in rows.items() if row["q_value"] is not None and row["q_value"] <= 0.05
            and not row["likely_copy"]}  # fmt: skip
    assert hits <= {tuple(pool.names[place].split("|")) for place in places}
    assert found.hits == len(hits) >= 2
    unsure = [
        rows[key] for key in copied & rows.keys() if rows[key]["likely_copy"] is None and rows[key]["p_value"] < 1e-3
    ]
    assert len(unsure) >= 4
    assert all(row["q_value"] > 0.05 for row in unsure)
    (test,) = found.tested
    honest = [row for row in rows.values() if row["q_value"] is not None and not row["likely_copy"]]
    alone = q_values(np.array([row["p_value"] for row in honest]))
    perhaps = [k for k, row in enumerate(honest) if alone[k] <= 0.05 < row["q_value"]]
    assert test.may_be_copies(0.05).sum() == len(perhaps) >= 4
    assert all(honest[k]["likely_copy"] is None for k in perhaps)


@pytest.mark.slow
def test_the_p_values_that_are_shown_decide_nothing(public, model):
    """Only tests with p-values up to max_p were asked whether they may be copies."""
    tables, case = public
    about = pa.table({"donor": list(tables), "disease": np.where(case, "ill", "healthy").tolist()})
    found = [hpcvdj.associate(tables, model, metadata=about, case={"disease": "ill"}, draws=2_000, backend="cpu",
                              max_p=max_p) for max_p in (1.0, 1e-9)]  # fmt: skip
    q = [answer.tested[0].q[answer.tested[0].kept].tolist() for answer in found]
    assert q[0] == q[1]
    assert [answer.hits for answer in found] == [0, 0]
    assert found[1].auc is None


@pytest.fixture(scope="module")
def public(model):
    """42 donors of 600 junctions, of whom 12 cases have copies: of 30 public ones, and of 20 that nobody else has."""
    pool = Pool(model, 60 * 600, seed=77)
    tables, case = pool.donors(np.full(42, 600)), np.arange(42) < 12
    has = carriers_by_loops(tables)
    rest = pool.table.slice(42 * 600)
    keys = [next(iter(carriers_by_loops({"rest": rest.slice(k, 1)}))) for k in range(4_000)]
    first = {key: k for k, key in reversed(list(enumerate(keys)))}
    some = [first[key] for key in first if 4 <= len(has.get(key, ())) <= 12][:30]
    some += [first[key] for key in first if key not in has][:20]
    copies = rest.take(pa.array(some))
    for donor in np.flatnonzero(case).tolist():
        tables[f"d{donor:03}"] = pa.concat_tables([tables[f"d{donor:03}"], copies])
    return tables, case


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["vj-aa", "ball"])
@pytest.mark.parametrize("without_value", [0, 20])
def test_copies_of_what_controls_have_too_are_no_hits(public, model, unit, without_value):
    """Carriers among controls, and donors that are left out, made copies a minority of the carriers, and so hits."""
    tables, case = public
    disease = np.where(case, "ill", "healthy").astype(object)
    disease[len(case) - without_value :] = ""
    about = pa.table({"donor": list(tables), "disease": disease.tolist()})
    found = hpcvdj.associate(tables, model, metadata=about, case={"disease": "ill"}, unit=unit, draws=2_000,
                             backend="cpu", max_p=1.0)  # fmt: skip
    (test,) = found.tested
    assert test.may_be_copies(0.05).sum() >= 5
    hits = [row for row in found.table.to_pylist() if row["q_value"] is not None and row["q_value"] <= 0.05
            and not row["likely_copy"]]  # fmt: skip
    assert hits == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_one_improbable_junction_of_many_donors_tells_a_common_source(model, seed):
    """Of six copied clones, one or two are improbable: no pair shares enough of them, but twelve have each."""
    pool = Pool(model, 30 * 3_000, seed=seed)
    tables, case = pool.donors(np.full(24, 3_000)), np.arange(24) < 12
    pgen = hpcvdj.pgen(pool.table.slice(25 * 3_000, 2_000), model, sequence="nt", backend="cpu")["pgen_nt"].to_numpy()
    order = np.argsort(pgen)
    # The least probable one, and five as probable as most.
    chosen = [int(order[0]), *order[900:905].tolist()]
    copies = pool.table.take(pa.array([25 * 3_000 + k for k in chosen]))
    for donor in np.flatnonzero(case).tolist():
        tables[f"d{donor:03}"] = pa.concat_tables([tables[f"d{donor:03}"], copies])
    found = hpcvdj.associate(
        tables, model, metadata=metadata(case), case={"disease": "ill"}, draws=2_000, backend="cpu", max_p=1.0
    )
    assert (found.carriers.group[:12] == found.carriers.group[0]).all()
    assert (found.carriers.group[12:] == -1).all()
    assert found.hits == 0
