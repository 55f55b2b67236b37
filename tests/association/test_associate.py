"""`hpcvdj associate`: tests of a small cohort by loops, copies, units, ranks, and what it writes."""

import json
from dataclasses import replace
from itertools import pairwise, permutations
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.association import tested
from hpcvdj.association.carriers import _doubtful
from hpcvdj.association.law import Laws, laws_of_cases, levels_of, rates
from hpcvdj.association.multiplicity import q_values
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.association.question import AssociationQuestion
from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.cohorts.copies import sources_of
from hpcvdj.cohorts.holding import Holding
from hpcvdj.errors import HpcvdjWarning, InputError
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.writers import write_table
from tests.association.drawn import GENES, Pool, metadata
from tests.commands import error_line, hpcvdj_command
from tests.report.conftest import Page

pytestmark = pytest.mark.olga

DONORS = 40
CASE = np.arange(DONORS) % 2 == 0
BATCH = np.repeat(["x", "y"], DONORS // 2)
SIZES = np.where(CASE, 500, 250)


@pytest.fixture(scope="module")
def model():
    return load_model("human_igk")


@pytest.fixture(scope="module")
def pool(model):
    return Pool(model, 40_000, seed=5)


@pytest.fixture(scope="module")
def planted(pool):
    some = np.flatnonzero((pool.numbers >= 10) & (pool.numbers <= 16))
    return {int(own): 60.0 for own in some[:8]}


@pytest.fixture(scope="module")
def tables(pool, planted):
    return pool.donors(SIZES, CASE, planted)


def asked(tables, model, *, columns=None, **options):
    given = {"case": {"disease": "ill"}, "draws": 2_000, "backend": "cpu", "max_p": 1.0, **options}
    about = metadata(CASE, lane=BATCH, age=range(DONORS), **(columns or {}))
    return hpcvdj.associate(tables, model, metadata=about, **given)


@pytest.fixture(scope="module")
def answer(tables, model):
    return asked(tables, model, strata=("lane",))


def carriers_by_loops(tables):
    """The donors of each V, J and amino acids."""
    has = {}
    for k, table in enumerate(tables.values()):
        columns = [table[name].to_pylist() for name in GENES]
        texts = hpcvdj.translate(columns[2])
        for v, j, text in zip(columns[0], columns[1], texts, strict=True):
            has.setdefault((v.partition("*")[0], j.partition("*")[0], text), set()).add(k)
    return has


@pytest.mark.slow
def test_rows_are_those_of_loops_over_donors(answer, tables):
    has = {key: own for key, own in carriers_by_loops(tables).items() if len(own) >= 3}
    rows = {(row["v_call"], row["j_call"], row["junction_aa"]): row for row in answer.table.to_pylist()}
    assert rows.keys() == has.keys()
    # Nobody shares copies, so no sequence is doubted.
    assert (answer.carriers.group == -1).all()
    assert not answer.carriers.has.reads.any()
    assert answer.table["likely_copy"].null_count == 0
    least = {}
    for key, own in has.items():
        row, law = rows[key], {0: 1.0}
        for name in ("x", "y"):
            inside = np.flatnonzero(name == BATCH)
            m = sum(k in own for k in inside)
            first, mass = laws_of_cases(answer.sizes[inside], CASE[inside], np.array([m]))[0]
            law = {a + first + b: sum(law.get(a + first + b - first - c, 0) * p for c, p in enumerate(mass.tolist()))
                   for a in law for b in range(len(mass))}  # fmt: skip
        cases = sum(CASE[k] for k in own)
        assert (row["carriers"], row["case_carriers"]) == (len(own), cases)
        assert row["control_carriers"] == len(own) - cases
        assert row["p_value"] == pytest.approx(sum(p for a, p in law.items() if a >= cases), rel=1e-9)
        assert row["expected"] == pytest.approx(sum(a * p for a, p in law.items()), rel=1e-9)
        expected = stats.hypergeom.sf(cases - 1, DONORS, 20, len(own))
        assert row["p_fisher"] == pytest.approx(expected, rel=1e-9)
        assert row["individuals"] == ",".join(f"d{k:03}" for k in sorted(own))
        least[key] = law[max(law)]
    number = 1
    while sum(own <= 0.05 / number for own in least.values()) > number:
        number += 1
    reaching = [key for key, own in least.items() if own <= 0.05 / number]
    assert sorted(reaching) == sorted(key for key, row in rows.items() if row["q_value"] is not None)
    q = q_values(np.array([rows[key]["p_value"] for key in reaching]))
    assert [rows[key]["q_value"] for key in reaching] == pytest.approx(q.tolist())


def rows_of(answer):
    """What facts need of rows: the names of the donors."""
    return SimpleNamespace(inputs=SimpleNamespace(repertoires=answer.cohort.names))


@pytest.mark.slow
def test_what_a_hit_needs(tables, model):
    """A sequence of so many carriers and cases is a hit if no other one is, and with one case fewer it is none."""
    answer = asked(tables, model)
    question = AssociationQuestion(Donors(metadata=metadata(CASE), case={"disease": "ill"}), AssociationSettings())
    (facts,) = question.facts(answer, rows_of(answer))["phenotypes"]
    needs, tested = facts["a_hit_needs"], facts["tested"]
    assert tested == int(answer.tested[0].kept.sum()) > 10
    assert [need["carriers"] for need in needs] == sorted(need["carriers"] for need in needs)
    assert all(b["carriers"] >= 2 * a["carriers"] for a, b in pairwise(needs))
    rows = [row for row in answer.table.to_pylist() if row["q_value"] is not None]
    assert needs[0]["carriers"] == min(row["carriers"] for row in rows)
    for need in needs:
        first, mass = laws_of_cases(answer.sizes, CASE, np.array([need["carriers"]]))[0]
        enough, fewer = (mass[need["cases"] - first - k :].sum() for k in (0, 1))
        assert enough <= 0.05 / tested < fewer
        assert need["expected"] == pytest.approx(((first + np.arange(len(mass))) * mass).sum())
    summary = [text for _, text in AssociationQuestion(None, AssociationSettings()).summary(answer)]
    first = needs[0]
    assert any(text.startswith(f"a single hit needs {first['cases']} cases among {first['carriers']} carriers (")
               for text in summary)  # fmt: skip


def hits_of(answer, max_q=0.05):
    return {"|".join((row["v_call"], row["j_call"], row["junction_aa"]))
            for row in answer.table.to_pylist() if row["q_value"] is not None and row["q_value"] <= max_q}  # fmt: skip


@pytest.mark.slow
def test_planted_sequences_are_hits_and_tell_cases_from_controls(answer, pool, planted):
    names = set(pool.names[list(planted)])
    hits = hits_of(answer)
    assert len(hits & names) >= 4
    assert len(hits - names) <= 1
    assert answer.hits == len(hits)
    assert answer.auc.area > 0.9


@pytest.mark.slow
def test_scores_are_those_of_hits_found_without_the_donor(answer):
    (own,) = answer.tested
    donors = answer.donors.to_pylist()
    rows = [row for row in answer.table.to_pylist() if row["q_value"] is not None]
    holders = [{int(name[1:]) for name in row["individuals"].split(",")} for row in rows]
    for donor in (0, 1, 13):
        carried, expected, variance = 0, 0.0, 0.0
        others = np.array([k for k in range(DONORS) if k != donor])
        p, chances = np.empty((2, len(holders)))
        for k, held in enumerate(holders):
            numbers = np.array([[sum(k in held for k in others if BATCH[k] == name) for name in ("x", "y")]])

            def of(k, own, others=others):
                inside = others[BATCH[others] == ("x", "y")[k]]
                return laws_of_cases(answer.sizes[inside], CASE[inside], own)

            p[k] = Laws.given(numbers, of).tails(np.array([sum(CASE[k] for k in held if k != donor)]))[0][0]
            place = int(BATCH[donor] == "y")
            inside = others[BATCH[others] == BATCH[donor]]
            chances[k] = -np.expm1(-rates(answer.sizes[inside], numbers[0, place : place + 1])[0] * answer.sizes[donor])
        ranked = np.sort(p)
        below = np.flatnonzero(ranked * own.kept.sum() / np.arange(1, len(p) + 1) <= 0.05)
        for k, held in enumerate(holders):
            if len(below) and p[k] <= ranked[below[-1]] and 0 < chances[k] < 1:
                carried += donor in held
                expected, variance = expected + chances[k], variance + chances[k] * (1 - chances[k])
        assert donors[donor]["carried"] == carried
        assert donors[donor]["expected"] == pytest.approx(expected)
        assert donors[donor]["score"] == pytest.approx((carried - expected) / np.sqrt(variance))
        assert donors[donor]["stratum"] == BATCH[donor]


@pytest.mark.slow
def test_without_depth_it_is_fishers_test(tables, model):
    found = asked(tables, model, depth="none").table
    np.testing.assert_allclose(found["p_value"].to_numpy(), found["p_fisher"].to_numpy(), rtol=1e-9)


@pytest.mark.slow
def test_a_trend_finds_what_older_donors_have(pool, model):
    names = np.flatnonzero((pool.numbers >= 12) & (pool.numbers <= 20))[:6]
    old = np.arange(DONORS) >= DONORS // 2
    tables = pool.donors(np.full(DONORS, 300), old, {int(own): 80.0 for own in names})
    found = asked(tables, model, case=None, trend="age")
    best = found.table.slice(0, 6).to_pylist()
    assert {"|".join((row["v_call"], row["j_call"], row["junction_aa"])) for row in best[:4]} <= set(pool.names[names])
    assert all(row["z"] > 2 and row["p_value"] < 0.05 and row["odds_ratio"] is None for row in best)
    (own,) = found.tested
    assert stats.kstest(own.uniform, "uniform").pvalue > 1e-3


@pytest.mark.slow
def test_units_without_genes_have_more_carriers(answer, tables, model):
    of_v = asked(tables, model, unit="v-aa", strata=("lane",)).table
    of_none = asked(tables, model, unit="aa", strata=("lane",)).table
    assert "j_call" not in of_v.column_names
    assert "v_call" not in of_none.column_names
    has = carriers_by_loops(tables)
    for table, key in ((of_v, lambda v, j, text: (v, text)), (of_none, lambda v, j, text: text)):
        held = {}
        for own, donors in has.items():
            held.setdefault(key(*own), set()).update(donors)
        rows = table.to_pylist()
        assert len(rows) == sum(len(donors) >= 3 for donors in held.values())
        for row in rows:
            known = len(held[key(row.get("v_call"), None, row["junction_aa"])])
            assert row["carriers"] <= known if row["likely_copy"] else row["carriers"] == known
    # Without J genes a sequence is as probable as with all of them together.
    some = of_v.slice(0, 5).to_pylist()
    every_j = [{"v_call": row["v_call"], "j_call": j, "junction_aa": row["junction_aa"]}
               for row in some for j in sorted({key[1] for key in has})]  # fmt: skip
    with_j = hpcvdj.pgen(pa.Table.from_pylist(every_j), model, sequence="aa", backend="cpu")["pgen_aa"].to_pylist()
    for row in some:
        parts = [p for own, p in zip(every_j, with_j, strict=True)
                 if (own["v_call"], own["junction_aa"]) == (row["v_call"], row["junction_aa"])]  # fmt: skip
        assert row["pgen"] == pytest.approx(sum(parts), rel=1e-9)


@pytest.mark.slow
def test_amino_acids_alone_have_the_same_carriers(answer, tables, model):
    short = {name: table.select(GENES[:2]).append_column(
        "junction_aa", pa.array(hpcvdj.translate(table["junction"].to_pylist()))
    ) for name, table in tables.items()}  # fmt: skip
    short_answer = asked(short, model, strata=("lane",))
    question = AssociationQuestion(None, AssociationSettings())
    of_both = [dict(question.summary(each)).get("not known") for each in (short_answer, answer)]
    assert of_both == ["for want of nucleotides: likely copies, and samples of one person", None]
    found = short_answer.table
    keys = ["v_call", "j_call", "junction_aa"]
    both = [table.select([*keys, "carriers", "case_carriers"]).sort_by([(key, "ascending") for key in keys])
            for table in (found, answer.table)]  # fmt: skip
    assert both[0].to_pylist() == both[1].to_pylist()
    assert found["likely_copy"].null_count == len(found)


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


def written(tables, folder):
    folder.mkdir()
    for name, table in tables.items():
        write_table(folder / f"{name}.tsv", table.to_batches(), overwrite=False)
    about = metadata(CASE, lane=BATCH).to_pylist()
    path = folder.parent / "donors.tsv"
    path.write_text("\n".join("\t".join(row) for row in [list(about[0]), *(list(row.values()) for row in about)]))
    return path


@pytest.fixture(scope="module")
def words(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    about = written(tables, folder / "tables")
    return ["associate", folder / "tables", "-m", "human_igk", "--metadata", about, "--case", "disease=ill", "--strata",
            "lane", "--draws", "2000"]  # fmt: skip


@pytest.fixture(scope="module")
def hits(words, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hits")
    hpcvdj_command(*words, "-o", folder / "hits.tsv", "--donors", folder / "donors.tsv")
    return folder / "hits.tsv"


@pytest.mark.slow
def test_any_number_of_ranks_writes_the_same(words, hits, tmp_path, on_ranks):
    balls = [*words, "--unit", "ball"]
    names = ["hits.tsv", "donors.tsv", "balls.tsv", "donors_by_balls.tsv"]
    here, there = ([folder / name for name in names] for folder in (tmp_path, hits.parent))
    for own, k in ((words, 0), (balls, 2)):
        on_ranks(3, *own, "-o", here[k], "--donors", here[k + 1])
    out, _ = hpcvdj_command(*balls, "-o", there[2], "--donors", there[3])
    assert "that 3 donors or more have, by their balls" in out
    for path, other in zip(here, there, strict=True):
        assert path.read_bytes() == other.read_bytes()
    assert "AUC" in out
    hpcvdj_command("report", there[2], "-o", tmp_path / "page.html")
    rows = Page((tmp_path / "page.html").read_text()).rows("associate_1_tests")
    members = there[2].read_text().splitlines()[0].split("\t").index("members")
    assert [str(row["members"]) for row in rows] == [
        line.split("\t")[members] for line in there[2].read_text().splitlines()[1 : len(rows) + 1]
    ]


@pytest.mark.slow
def test_the_command_writes_what_the_function_returns(hits, answer):
    facts = json.loads(hits.with_name("hits.tsv.json").read_text())
    assert facts["asked"] == {
        "case": {"disease": "ill"},
        "hla": None,
        "trend": None,
        "strata": ["lane"],
        "subject": None,
        "names": "donor",
    }
    (told,) = facts["phenotypes"]
    assert (told["cases"], told["strata"], told["hits"]) == (20, 2, answer.hits)
    assert facts["hits"] == answer.hits
    assert facts["auc"][0] == pytest.approx(answer.auc.area)
    lines = hits.read_text().splitlines()
    assert lines[0].split("\t") == answer.table.column_names
    assert len(lines) - 1 == sum(p <= 0.05 for p in answer.table["p_value"].to_pylist())


@pytest.mark.slow
def test_a_report_has_a_section(hits, tmp_path):
    hpcvdj_command("report", hits, "-o", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text())
    assert len(page.rows("associate_1_tests")) == len(hits.read_text().splitlines()) - 1
    assert [row["phenotype"] for row in page.rows("associate_1_phenotypes")] == ["disease=ill"]
    assert {row["sample"] for row in page.rows("associate_1_qq_table")} == {"disease=ill", "disease=ill, Fisher"}
    assert "Do sequences go with the phenotype?" in page.text


@pytest.mark.slow
def test_annotate_reads_hits(hits, answer, tmp_path):
    first = answer.table.slice(0, 1).to_pylist()[0]
    record = "\t".join((first["v_call"], first["j_call"], first["junction_aa"], "E"))
    database = tmp_path / "database.tsv"
    database.write_text(f"v_call\tj_call\tjunction_aa\tepitope\n{record}\n")
    hpcvdj_command("annotate", hits, "--database", database, "-m", "human_igk", "-o", tmp_path / "annotated", "--kappa",
                   "1")  # fmt: skip
    assert first["junction_aa"] in (tmp_path / "annotated" / "hits.hits.tsv").read_text()


@pytest.mark.slow
def test_cases_of_one_batch_are_refused_in_one_line(tables, tmp_path):
    about = written({name: table.slice(0, 5) for name, table in tables.items()}, tmp_path / "cohort")
    text = about.read_text().replace("lane", "batch")
    lines = [line if line.startswith("donor") or "ill" not in line.split("\t")[1] or "healthy" in line
             else "\t".join([*line.split("\t")[:2], "x"]) for line in text.splitlines()]  # fmt: skip
    about.write_text("\n".join(lines))
    _, err = hpcvdj_command("associate", tmp_path / "cohort", "-m", "human_igk", "--metadata", about, "--case",
                            "disease=ill", "-o", tmp_path / "hits.tsv", code=2)  # fmt: skip
    assert "all 20 cases are of one batch (x)" in error_line(err)
    assert "--strata batch" in error_line(err)
    assert not (tmp_path / "hits.tsv").exists()


@pytest.mark.slow
def test_two_samples_of_one_person_are_refused(tables, model):
    with pytest.raises(InputError, match=r"d000 and d001 .*samples of one person"):
        asked({**tables, "d001": tables["d000"]}, model)


@pytest.mark.slow
def test_donors_that_share_nothing_have_no_tests(pool, model, tmp_path):
    tables = pool.donors(np.full(DONORS, 2), seed=3)
    found = asked(tables, model, min_individuals=DONORS)
    assert (found.hits, len(found.table), found.auc) == (0, 0, None)
    about = written(tables, tmp_path / "cohort")
    out, _ = hpcvdj_command("associate", tmp_path / "cohort", "-m", "human_igk", "--metadata", about, "--case",
                            "disease=ill", "-o", tmp_path / "hits.tsv", "--draws", "1000", "--min-individuals",
                            DONORS)  # fmt: skip
    assert "0 of 0 sequences can be hits" in out
    assert len((tmp_path / "hits.tsv").read_text().splitlines()) == 1
    hpcvdj_command("report", tmp_path / "hits.tsv", "-o", tmp_path / "page.html")
    assert "Nothing could be tested" in Page((tmp_path / "page.html").read_text()).text


def without_calls(table):
    return table.set_column(table.column_names.index("v_call"), "v_call", pa.array([""] * len(table)))


@pytest.mark.slow
def test_donors_without_a_junction_are_left_out(tables, model):
    """They were controls without any sequence: the AUC was of single donors, and Fisher's p-values were too small."""
    empty = {"d001", "d003", "d005", "d006"}
    asked_for = {"draws": 2_000, "backend": "cpu", "max_p": 1.0, "case": {"disease": "ill"},
                 "metadata": metadata(CASE)}  # fmt: skip
    there = hpcvdj.associate({name: table for name, table in tables.items() if name not in empty}, model, **asked_for)
    with pytest.warns(HpcvdjWarning, match="without a junction that takes part: d001, d003, d005"):
        found = hpcvdj.associate(
            {name: without_calls(table) if name in empty else table for name, table in tables.items()}, model,
            **asked_for,
        )  # fmt: skip
    assert found.table.equals(there.table)
    assert (found.hits, found.unmatched) == (there.hits, "")
    assert (found.auc.area, found.auc.interval) == (there.auc.area, there.auc.interval)
    summary = dict(AssociationQuestion(None, AssociationSettings()).summary(found))
    assert summary["disease=ill"].startswith(
        "19 cases among 36 donors (d001, d003, d005 and 1 more left out, without a junction); "
    )


@pytest.mark.slow
@pytest.mark.parametrize("side", [True, False])
def test_no_case_or_no_control_with_a_junction_is_one_line(tables, model, side):
    """A division by zero."""
    sides = zip(tables.items(), CASE, strict=True)
    few = {name: table if of == side else without_calls(table) for (name, table), of in sides}
    message = "all donors have one value" if side else "no donor with a junction has ill in disease; there are healthy"
    with pytest.raises(InputError, match=message):
        asked(few, model)


@pytest.mark.slow
def test_samples_of_one_subject_are_one_donor(tables, answer, model):
    samples = {f"{name}_{k}": table.slice(k * 100, None if k else 100)
               for name, table in tables.items() for k in range(2)}  # fmt: skip
    about = pa.table({
        "sample": list(samples), "who": [name.partition("_")[0] for name in samples],
        "disease": np.repeat(np.where(CASE, "ill", "healthy"), 2), "lane": np.repeat(BATCH, 2),
    })  # fmt: skip
    # In the order of the metadata, donors had the values of others.
    about = about.take(pa.array(np.random.default_rng(1).permutation(len(about))))
    found = hpcvdj.associate(samples, model, metadata=about, subject="who", case={"disease": "ill"}, strata=("lane",),
                             draws=2_000, backend="cpu", max_p=1.0)  # fmt: skip
    assert found.table.equals(answer.table)


def test_individuals_are_those_that_take_part(tables, model):
    """Donors without a value were among the `individuals` of sequences, but not among their `carriers`."""
    without = [k for k in range(DONORS) if k % 7 == 0]
    years = ["" if k in without else k for k in range(DONORS)]
    for unit in ("vj-aa", "ball"):
        found = asked(tables, model, columns={"years": years}, case=None, trend="years", unit=unit).table
        names = [text.split(",") for text in found["individuals"].to_pylist()]
        assert list(map(len, names)) == found["carriers"].to_pylist()
        assert not {f"d{k:03}" for k in without} & set().union(*names)
