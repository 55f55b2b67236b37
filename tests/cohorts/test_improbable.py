"""hpcvdj.cohorts.improbable: common sources, samples of one person, power; against loops, and planted."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats
from scipy.special import gammainc, gammaincinv

import hpcvdj
from hpcvdj.cohorts.contamination import contaminate
from hpcvdj.cohorts.holding import Holding
from hpcvdj.cohorts.improbable import (
    COMMON,
    MAX_Q,
    MOST_NEEDED,
    SEEN,
    SELECTION,
    _copied,
    _covariance,
    _fewest_people,
    _name_thirds,
    _needed,
    _tested,
)
from hpcvdj.cohorts.settings import ContaminationSettings
from hpcvdj.errors import InputError
from hpcvdj.recombination.igor import load_model
from hpcvdj.runs.run import Run
from tests.cohorts.drawn import cohort_in, drawn, with_individuals
from tests.loci import LOCI

SIZE = 5_000


@pytest.fixture(scope="module")
def model():
    return load_model("human_trb_m15")


@pytest.fixture(scope="module")
def clean(model):
    """Eight individuals, with reads."""
    rows = with_individuals(drawn(model, 8 * SIZE, 17), [SIZE] * 8)
    reads = np.minimum(np.random.default_rng(3).pareto(1.0, len(rows)) + 1, 1e5).astype(np.int64)
    return rows.append_column("duplicate_count", pa.array(reads))


def with_rows(table, rows):
    """The table with further rows, all with ids of their own."""
    added = pa.Table.from_pylist([{**row, "sequence_id": f"x{k}"} for k, row in enumerate(rows)], table.schema)
    return pa.concat_tables([table, added])


def found_in(table, model, groups=None, **settings):
    asked = ContaminationSettings(**{"draws": 4_000, "backend": "cpu", **settings})
    return contaminate(cohort_in(table, model, groups), model, asked, Run())


def rows_of(table, name):
    return table.filter(pc.equal(table["repertoire_id"], name)).to_pylist()


@pytest.mark.slow
def test_a_common_source(model, clean):
    """Thirty improbable junctions in four to seven people, and copies of 1 % of one in another."""
    rng = np.random.default_rng(5)
    low = hpcvdj.pgen(clean, model, sequence="nt", backend="cpu")
    spikes = low.filter(pc.less(low["pgen_nt"], 1e-14)).slice(0, 30).to_pylist()
    rows = []
    for row in spikes:
        own = {name: row[name] for name in clean.column_names}
        others = [name for name in "bcdefgh" if name != own["repertoire_id"]]
        for name in rng.choice(others, rng.integers(COMMON - 1, 6), replace=False):
            rows.append({**own, "repertoire_id": str(name), "duplicate_count": 1})
    for row in rows_of(clean, "g")[: SIZE // 50]:
        rows.append({**row, "repertoire_id": "h", "duplicate_count": 1})
    found = found_in(with_rows(clean, rows), model)
    assert found.improbable.common == 30
    assert found.pairs.standing_out == [(6, 7)]
    assert found.pairs.of_one_person == []
    table = found.table.to_pylist()[0]
    assert (table["individual_1"], table["individual_2"], table["verdict"]) == ("g", "h", "contaminated")
    assert table["share_of_1"] == pytest.approx(0.02, rel=0.3)
    listed = found.junctions.to_pylist()
    assert [row["kind"] for row in listed[:31]] == ["common source"] * 30 + ["pair"]
    assert {row["junction"] for row in listed[:30]} == {row["junction"] for row in spikes}
    for row in listed:
        holders = row["individuals"].split(",")
        assert len(holders) == row["n_individuals"] == row["n_people"] == len(row["duplicate_counts"].split(","))
        assert (row["kind"] == "common source") == (row["n_people"] >= COMMON)
        assert row["pgen"] < 1e-11
    of_pair = {(row["individual_1"], row["individual_2"]): row for row in found.table.to_pylist()}
    for (one, other), row in of_pair.items():
        both = [own for own in listed if {one, other} <= {*own["individuals"].split(",")}]
        assert row["common_source"] == sum(own["kind"] == "common source" for own in both)
        assert row["shared_low"] == sum(own["kind"] == "pair" for own in both)


def samples_of(person, sizes, rng, exponent):
    """Samples of one person, of so many reads each."""
    frequency = rng.pareto(exponent, len(person)) + 1
    out = []
    for reads in sizes:
        counts = rng.multinomial(reads, frequency / frequency.sum())
        out.append([{**person[k], "duplicate_count": int(counts[k])} for k in np.flatnonzero(counts)])
    return out


@pytest.fixture(scope="module")
def people(model):
    """Two samples of one person at the same time, one deep and one shallow of another; others; a contaminated pair."""
    rng = np.random.default_rng(6)
    rows = drawn(model, 90_000, 23).to_pylist()
    samples = {}
    samples["p1"], samples["p2"] = samples_of(rows[:40_000], (7_000, 7_000), rng, 1.2)
    samples["q1"], samples["q2"] = samples_of(rows[40_000:70_000], (40_000, 5_000), rng, 1.2)
    (samples["r"],) = samples_of(rows[70_000:80_000], (9_000,), rng, 1.2)
    (samples["s"],) = samples_of(rows[80_000:], (9_000,), rng, 1.2)
    # A tenth of r, large clones first, in s.
    largest = sorted(samples["r"], key=lambda row: -row["duplicate_count"])
    samples["s"] += [{**row, "duplicate_count": 1} for row in largest[: len(largest) // 10]]
    given = [{**row, "repertoire_id": name} for name, own in samples.items() for row in own]
    return pa.Table.from_pylist([{**row, "sequence_id": f"q{k}"} for k, row in enumerate(given)])


@pytest.mark.slow
def test_samples_of_one_person(model, people):
    found = found_in(people, model)
    names = found.cohort.names
    verdicts = {(row["individual_1"], row["individual_2"]): row["verdict"] for row in found.table.to_pylist()}
    assert verdicts["p1", "p2"] in ("same person", "same sample")
    assert verdicts["q1", "q2"] in ("same person", "same sample")
    assert verdicts["r", "s"] == "contaminated"
    assert sorted(verdicts.values()).count("") == len(verdicts) - 3
    assert {(names[i], names[j]) for i, j in found.pairs.of_one_person} == {("p1", "p2"), ("q1", "q2")}
    assert [(names[i], names[j]) for i, j in found.pairs.standing_out] == [("r", "s")]
    first = found.table.to_pylist()[0]
    assert first["p_value"] is None
    assert first["detectable"] is None
    kept = {names[copy.individual] for copy in found.copies}
    assert kept <= {"r", "s"}, "what two samples of one person share is no copy"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["human_trb_m15", *(pytest.param(name, marks=[pytest.mark.exhaustive, pytest.mark.olga]) for name in LOCI)]
)
@pytest.mark.parametrize(("shape", "reads", "rate"), [
    (1.5, 100_000, 0.01), (1.5, 100_000, 0.05), (1.5, 100_000, 0.1), (3.0, 40_000, 0.02), (3.0, 40_000, 0.05)
])  # fmt: skip
def test_people_who_contaminated_each_other_are_not_one_person(name, shape, reads, rate):
    """In both directions, so that neither is the source of all that they share: they were one person."""
    rng, model = np.random.default_rng(8), load_model(name)
    rows = drawn(model, 60_000, 31).to_pylist()
    one, other, third = (rng.pareto(shape, 20_000) + 1 for _ in range(3))
    one, other = one / one.sum(), other / other.sum()
    # The junctions and their shares of the reads.
    samples = {
        "a": (rows[:40_000], np.append(one, rate * other)),
        "b": (rows[:40_000], np.append(rate * one, other)),
        "c": (rows[40_000:], third),
    }
    given = [
        {**row, "repertoire_id": name, "duplicate_count": int(number)}
        for name, (own, share) in samples.items()
        for row, number in zip(own, rng.multinomial(reads, share / share.sum()), strict=True)
        if number
    ]
    found = found_in(pa.Table.from_pylist([{**row, "sequence_id": f"m{k}"} for k, row in enumerate(given)]), model)
    assert found.pairs.of_one_person == []
    assert found.pairs.standing_out == [(0, 1)]
    shares = found.table.to_pylist()[0]
    assert min(shares["share_of_1"], shares["share_of_2"]) > 0.03


@pytest.mark.exhaustive
def test_sharing_names_them_or_takes_them_together(model, people):
    with pytest.raises(InputError, match=r"p1 and p2 \(same \w+\), q1 and q2 .*: samples of one person .* subject="):
        hpcvdj.sharing(people, model, backend="cpu", draws=2_000)
    of_whom = pa.table({"sample": ["p1", "p2", "q1", "q2", "r", "s"], "who": ["p", "p", "q", "q", "r", "s"]})
    found = hpcvdj.sharing(people, model, backend="cpu", draws=2_000, metadata=of_whom, subject="who")
    assert found.cohort.names == ["p", "q", "r", "s"]
    distinct = {
        (row["v_call"], row["j_call"], row["junction"]) for row in rows_of(people, "p1") + rows_of(people, "p2")
    }
    genes = {(v.partition("*")[0], j.partition("*")[0], text) for v, j, text in distinct}
    assert found.cohort.individuals[0].rows == len(genes)
    read = sum(own.facts()["rows_read"] for own in found.cohort.individuals)
    assert read == len(people)


def test_subjects_and_groups(model, people):
    rows = {"sample": ["p1", "p2", "q1", "q2", "r", "s"], "who": ["p", "p", "q", "q", "r", "s"]}
    wrong = pa.table({**rows, "arm": ["x", "y", "x", "x", "y", "y"]})
    with pytest.raises(InputError, match="p: its samples are of the groups x and y"):
        hpcvdj.sharing(people, model, metadata=wrong, subject="who", group="arm")
    with pytest.raises(InputError, match="subject='who': needs metadata"):
        hpcvdj.sharing(people, model, subject="who")
    with pytest.raises(InputError, match="metadata: needs group, or subject"):
        hpcvdj.sharing(people, model, metadata=wrong)
    with pytest.raises(InputError, match="no subject for s"):
        hpcvdj.sharing(people, model, metadata=wrong.slice(0, 5), subject="who")


@pytest.mark.exhaustive
def test_power(model, clean):
    found = found_in(clean, model)
    assert (found.pairs.verdicts[np.triu_indices(8, 1)] == "").all()
    low, pairs = found.low, found.pairs
    for i, j in ((0, 1), (3, 7)):
        mean = SELECTION * pairs.expected[i, j]
        needed = next(k for k in range(1, 100) if stats.poisson.sf(k - 1, mean) * 28 <= MAX_Q)
        copies = pairs.detectable[i, j] * min(low[i], low[j])
        assert stats.poisson.sf(needed - 1, copies) == pytest.approx(0.95)
    few = pa.concat_tables([clean.filter(pc.equal(clean["repertoire_id"], name)).slice(0, 150) for name in "ab"])
    found = found_in(pa.concat_tables([few, clean.filter(pc.greater(clean["repertoire_id"], "b"))]), model)
    assert found.pairs.verdicts[0, 1] == found.pairs.verdicts[0, 5] == "no power"
    assert found.pairs.verdicts[3, 4] == ""
    assert found.pairs.detectable[0, 1] > SEEN >= found.pairs.detectable[3, 4]
    with pytest.raises(InputError, match="no individual has junctions enough"):
        found_in(few, model)
    assert found_in(few, model, min_low=1).table.num_rows == 1


def test_no_share_of_copies_is_above_one(model, clean):
    """It was 3, for a sample with one improbable junction."""
    a, b = (clean.filter(pc.equal(clean["repertoire_id"], name)) for name in "ab")
    found = found_in(pa.concat_tables([a.slice(0, 2), b]), model, min_low=1)
    (row,) = found.table.to_pylist()
    assert found.pairs.detectable[0, 1] > 1
    assert (row["detectable"], row["verdict"]) == (None, "no power")


@pytest.mark.slow
@pytest.mark.olga
def test_the_threshold_is_raised_where_it_leaves_too_few():
    """Hardly a junction of kappa is as improbable as most of TRB are."""
    model = load_model("human_igk")
    rows = with_individuals(drawn(model, 40_000, 19), [10_000] * 4)
    found = found_in(rows, model)
    assert found.max_pgen > 1e-11
    assert (found.pairs.verdicts[np.triu_indices(4, 1)] == "").all()
    copies = [{**row, "repertoire_id": "b"} for row in rows_of(rows, "a")[:400]]
    found = found_in(with_rows(rows, copies), model)
    assert found.pairs.standing_out == [(0, 1)]
    assert found_in(rows, model, max_pgen=1e-11, min_low=1).max_pgen == 1e-11


def test_an_individual_of_few_junctions_does_not_raise_the_threshold(model, clean):
    """One row, or none that is usable, raised it a hundred times, and --write-clean then removed rows of others."""
    alone = found_in(clean, model)
    for rows in (1, 100):
        few = [{**row, "repertoire_id": "tiny"} for row in clean.slice(0, rows).to_pylist()]
        found = found_in(with_rows(clean.slice(rows), few), model)
        assert found.max_pgen == alone.max_pgen
        tiny = found.cohort.names.index("tiny")
        others = np.arange(len(found.low)) != tiny
        assert (found.low[others][1:] == alone.low[1:]).all()
        assert (found.pairs.verdicts[tiny][others] == "no power").all()


@pytest.mark.exhaustive
@pytest.mark.olga
@pytest.mark.parametrize("name", LOCI)
def test_few_junctions_change_no_verdict_of_others(name):
    """Nothing is contaminated without copies, and copies are found, beside an individual of one row, as without it."""
    model = load_model(name)
    # Hardly a junction of kappa is improbable.
    size = 2 * SIZE if name == "human_igk" else SIZE
    rows = with_individuals(drawn(model, 4 * size + 1, 951), [size] * 4 + [1])
    tiny = rows_of(rows, "e")
    rows = rows.slice(0, 4 * size)
    copies = [{**row, "repertoire_id": "b"} for row in rows_of(rows, "a")[:200]]
    for copied, pairs in (([], []), (copies, [(0, 1)])):
        without, beside = (found_in(with_rows(rows, [*copied, *more]), model) for more in ([], tiny))
        assert without.pairs.standing_out == beside.pairs.standing_out == pairs
        assert without.max_pgen == beside.max_pgen


def test_how_many_copies_are_seen():
    """Against a search for the smallest number that stands out."""
    rng = np.random.default_rng(3)
    mean = np.concatenate([[0.0, 1e-12, 50.0, 1e4], rng.exponential(1.0, 40), rng.exponential(1e-3, 40)])
    expected = np.full(len(mean), np.inf)
    for place, own in enumerate(mean):
        for number in range(1, MOST_NEEDED + 1):
            if gammainc(number, own) * len(mean) <= MAX_Q:
                expected[place] = gammaincinv(number, 0.95)
                break
    assert np.isinf(expected).sum() == 1
    np.testing.assert_allclose(_needed(mean), expected, rtol=1e-12)


def test_copies_are_told_by_the_frequencies_of_large_clones():
    """As loops over pairs and junctions tell it, with few and many large clones, of equal and of other frequencies."""
    rng, copied = np.random.default_rng(4), 0
    for number in (9, 10, 40):
        for copies in (0.0, *np.linspace(0.75, 1, 11)):
            small = rng.random(number) < copies
            reads = np.zeros((3, 300), dtype=int)
            reads[0, :number] = rng.integers(40, 400, number)
            reads[1, :number] = np.maximum(1, reads[0, :number] * np.where(small, 0.05, rng.uniform(0.5, 1.5, number)))
            reads[:2, 40:80] = rng.integers(1, 16, (2, 40))
            reads[:, 80:] = rng.integers(0, 3, (3, 220))
            individual, junction = np.nonzero(reads)
            has = Holding.of(junction, individual, 300, 3, reads[individual, junction], np.add)
            found = _copied(SimpleNamespace(run=Run(), has=has), has)
            total = reads.sum(axis=1)
            for i, j in combinations(range(3), 2):
                clear, near = 0, 0
                for one, other in reads[[i, j]].T / total[[i, j]]:
                    if one and other and max(one, other) * min(total[i], total[j]) >= 16:
                        clear, near = clear + 1, near + (max(one, other) <= 3 * min(one, other))
                expected = clear >= 10 and near / clear < 1 / 8
                assert found[i, j] == found[j, i] == expected
                copied += expected
    assert 5 < copied < 30


def test_the_covariance_of_reads_is_that_of_numpy():
    """Of the junctions of both, times their number twice; in binary digits."""
    rng = np.random.default_rng(4)
    reads = np.where(rng.random((3, 200)) < 0.6, np.exp(rng.normal(3, 1.5, (3, 200))).astype(int) + 1, 0)
    individual, junction = np.nonzero(reads)
    has = Holding.of(junction, individual, 200, 3, reads[individual, junction], np.add)
    found = _covariance(SimpleNamespace(run=Run()), has, has.overlap())
    for i, j in combinations(range(3), 2):
        both = (reads[i] > 0) & (reads[j] > 0)
        digits = [[int(number).bit_length() for number in reads[k, both]] for k in (i, j)]
        expected = np.cov(digits, bias=True)[0, 1] * both.sum() ** 2
        assert found[i, j] == found[j, i] == pytest.approx(expected, abs=1e-6)


def test_thirds_are_those_of_a_loop():
    """Of random numbers, with samples of one person; a pair with several thirds has that of the most junctions."""
    rng, people, named = np.random.default_rng(4), np.array([0, 1, 2, 3, 4, 4]), 0
    for _ in range(200):
        holders = np.array([np.sort(rng.choice(6, 3, replace=False)) for _ in range(rng.integers(1, 5))])
        triples = np.repeat(holders, rng.integers(1, 30, len(holders)), axis=0)
        shared = rng.integers(0, 40, (6, 6))
        for row in triples:
            shared[np.ix_(row, row)] += 1
        shared = np.triu(shared, 1) + np.triu(shared, 1).T
        expected = rng.choice([1e-3, 0.1, 2.0], (6, 6))
        expected = np.triu(expected, 1) + np.triu(expected, 1).T
        pairs = _tested(shared, shared, 0 * shared, expected, np.full(6, 1_000), people, np.zeros((6, 6), dtype=bool))
        _name_thirds(pairs, triples)
        most = {}
        for i, j in combinations(range(6), 2):
            for k in {*range(6)} - {i, j}:
                number = int((triples == sorted((i, j, k))).all(axis=1).sum())

                def stands_out(a, b, rest=shared - number, mean=SELECTION * expected):
                    tail = 1.0 if rest[a, b] <= 0 else gammainc(rest[a, b], mean[a, b])
                    return people[a] != people[b] and tail <= MAX_Q

                alone = not stands_out(i, j) and stands_out(i, k) and stands_out(j, k)
                if number and alone and pairs.q_value[i, j] <= MAX_Q:
                    most.setdefault((i, j), []).append((number, k))
        for i, j in combinations(range(6), 2):
            options = most.get((i, j), [])
            largest = {k for number, k in options if number == max(options)[0]} or {-1}
            assert pairs.third[i, j] in largest
            assert pairs.third[j, i] == pairs.third[i, j]
            named += pairs.third[i, j] >= 0
    assert named > 20


def groups(links, people=10):
    """The sets of a graph of those who contaminated each other, whatever their order is."""
    found = set()
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(people) if seed else np.arange(people)
        shared = np.zeros((people, people), dtype=np.int64)
        for i, j in links:
            shared[[order[i], order[j]], [order[j], order[i]]] = 20
        pairs = _tested(shared, 0 * shared, 0 * shared, np.full(shared.shape, 1e-4), np.full(people, 1_000),
                        np.arange(people), np.zeros(shared.shape, dtype=bool))  # fmt: skip
        group = pairs.group[order]
        found.add(frozenset(frozenset(np.flatnonzero(group == k).tolist()) for k in set(group.tolist()) - {-1}))
    assert len(found) == 1
    return {tuple(sorted(each)) for each in found.pop()}


def test_groups_of_those_who_share_copies():
    """One pair does not join two sources, nor do groups depend on the order of the individuals."""
    clique = [*combinations(range(4), 2), *combinations(range(4, 9), 2)]
    assert groups([]) == set()
    assert groups([(0, 1), (2, 3)]) == {(0, 1), (2, 3)}
    assert groups(clique) == groups([*clique, (3, 4)]) == {(0, 1, 2, 3), (4, 5, 6, 7, 8)}
    assert groups([*clique, (0, 9), (1, 9), (2, 9)]) == {(0, 1, 2, 3, 9), (4, 5, 6, 7, 8)}
    assert groups([(0, 1), (1, 2), (2, 3)]) == {(0, 1, 2, 3)}
    # Of a run whose indices hop, of which three quarters of the pairs are seen.
    rng = np.random.default_rng(3)
    assert groups([pair for pair in combinations(range(9), 2) if rng.random() < 0.75]) == {tuple(range(9))}


def test_certain_junctions_link():
    certain = np.zeros((4, 4), dtype=np.int64)
    certain[:3, :3] = 1
    pairs = _tested(0 * certain, 9 * certain, certain, np.full((4, 4), 1e-4), np.full(4, 1_000), np.arange(4),
                    np.zeros((4, 4), dtype=bool))  # fmt: skip
    assert pairs.group.tolist() == pairs.connected.tolist() == [pairs.group[0]] * 3 + [-1]
    assert pairs.group[0] >= 0
    none = _tested(0 * certain, 9 * certain, 0 * certain, np.full((4, 4), 1e-4), np.full(4, 1_000), np.arange(4),
                   np.zeros((4, 4), dtype=bool))  # fmt: skip
    assert none.group.tolist() == none.connected.tolist() == [-1] * 4, "common junctions may be of selection"


@pytest.mark.parametrize(("number", "size", "largest"), [(24, 3_000, 1e-7), (24, 3_000, 1e-9), (600, 200_000, 1e-11)])
def test_so_many_people_that_chance_puts_no_junction_into_all(number, size, largest):
    """The expected number of junctions of k people or more, of drawn junctions, beside an integral over their density.

    Probabilities are log-uniform, so junctions of probability p are as many as 1 / p^2.
    """
    p = 10.0 ** np.random.default_rng(1).uniform(-14, -5, 200_000)
    low = p[p < largest]
    sizes = np.full(number, float(size))
    found = _fewest_people(sizes, low, len(p))
    grid = np.geomspace(1e-14, largest, 20_001)
    expected = {
        k: np.trapezoid(gammainc(k, SELECTION * sizes.sum() * grid) / grid**2, grid) / np.log(1e9)
        for k in (found - 1, found)
    }
    assert found >= COMMON
    assert expected[found] <= 1.1 * MAX_Q
    assert found == COMMON or expected[found - 1] > 0.9 * MAX_Q
