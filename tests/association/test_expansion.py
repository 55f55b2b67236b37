"""`hpcvdj associate --time`: the law by brute force, calibration without changes, planted expansions, wrong input."""

import json
import warnings
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from scipy import integrate, stats

import hpcvdj
from hpcvdj.association.multiplicity import q_values
from hpcvdj.association.noise import Counted, Noise, noise_of
from hpcvdj.chance.p_values import randomised
from hpcvdj.errors import HpcvdjWarning, InputError
from hpcvdj.repertoires.writers import write_table
from tests.association.drawn import GENES, READS, abundances, distinct_junctions, reads_of, visits
from tests.commands import error_line, hpcvdj_command
from tests.loci import LOCI, exhaustive_but
from tests.report.conftest import Page

olga = pytest.mark.olga
COMMAND = ("-m", "human_igk", "--subject", "who", "--time", "month")


def every_share(total, ratio=None, spread=(1.0, 1.0)):
    """All divisions of a total."""
    after = np.arange(total + 1)
    counted = Counted.given(total - after, after, spread)
    return counted if ratio is None else Counted(*(getattr(counted, name) for name in ("total", "after", "number")),
                                                 counted.of, spread, ratio)  # fmt: skip


@pytest.mark.parametrize("shape", [0.3, 3.0, 200.0])
@pytest.mark.parametrize("total", [1, 7, 300])
def test_samples_of_equal_depth_are_beta_binomial(shape, total):
    own, noise = every_share(total, 1.0), Noise(0.0, 1 / shape)
    known = stats.betabinom(total, shape, shape).pmf(own.after)
    np.testing.assert_allclose(own.probability(noise), known, rtol=1e-8)
    np.testing.assert_allclose(own.at_least(noise), np.cumsum(known[::-1])[::-1], rtol=1e-8)


@pytest.mark.parametrize(("ratio", "spread"), [(3.0, (1.0, 1.0)), (0.25, (0.5, 1.0))])
def test_probabilities_are_those_of_integrals_over_abundances(ratio, spread):
    """Negative binomial reads of clonotypes whose abundances have a density in proportion to f^-2."""
    total, quadratic = 8, 0.4
    before, after = (1 / (quadratic * own) for own in spread)

    def read(mean, shape, x):
        return stats.nbinom.pmf(x, shape, shape / (shape + mean))

    def weight(t, x):
        return np.exp(-t) * read(ratio * np.exp(t), after, x) * read(np.exp(t), before, total - x)

    mass = np.array([
        integrate.quad(lambda t, x=x: weight(t, x), -30, 30, points=[0], limit=400)[0] for x in range(total + 1)
    ])  # fmt: skip
    mass /= mass.sum()
    own, noise = every_share(total, ratio, spread), Noise(0.0, quadratic)
    np.testing.assert_allclose(own.probability(noise), mass, rtol=1e-7)
    np.testing.assert_allclose(own.at_least(noise), np.cumsum(mass[::-1])[::-1], rtol=1e-7)
    assert (mass * own.after).sum() == pytest.approx(total * ratio / (ratio + 1))


def test_without_noise_it_is_binomial():
    own = every_share(40, 3.0)
    np.testing.assert_allclose(own.at_least(Noise(1e-9, 1e-9)), stats.binom.sf(own.after - 1, 40, 0.75), rtol=1e-5)


def test_probabilities_sum_to_one_with_both_kinds_of_noise():
    for total in (1, 2, 30, 500):
        for noise in (Noise(5.0, 0.3), Noise(500.0, 5.0), Noise(1e-6, 1e-6)):
            own = every_share(total, 0.3)
            mass = own.probability(noise)
            assert mass.sum() == pytest.approx(1, rel=1e-8)
            tail = np.minimum(np.cumsum(mass[::-1])[::-1], 1)
            np.testing.assert_allclose(own.at_least(noise), tail, rtol=1e-7, atol=1e-300)


@pytest.mark.parametrize("noise", [Noise(0.5, 0.1), Noise(1e-6, 1e-6), Noise(20.0, 1.5)])
def test_intervals_are_where_tails_are_a_fortieth(noise):
    own = every_share(60, 2.0)
    fold, low, high = own.folds(noise, np.arange(61))
    assert low[0] == -np.inf
    assert high[60] == np.inf
    assert (low[1:] < fold[1:]).all()
    assert (fold[:-1] < high[:-1]).all()
    upper = own.at_least(noise, None, np.where(own.after > 0, low, 0) * np.log(2))
    lower = 1 - own.at_least(noise, own.after + 1, np.where(own.after < 60, high, 0) * np.log(2))
    np.testing.assert_allclose(upper[1:], 0.025, rtol=1e-6)
    np.testing.assert_allclose(lower[:-1], 0.025, rtol=1e-6)


def test_clonotypes_of_one_sample_have_one_end():
    own = Counted.given(np.array([0, 5]), np.array([4, 0]), (1.0, 1.0))
    only_after = int(np.flatnonzero(own.after)[0])
    for rows in ([], [only_after], [1 - only_after]):
        fold, low, high = own.folds(Noise(0.5, 0.1), np.array(rows, dtype=np.int64))
        assert np.isfinite(fold).all()
        assert np.isfinite(low).tolist() == [row == only_after for row in rows]
        assert np.isfinite(high).tolist() == [row != only_after for row in rows]


def test_reads_of_figures_are_rounded_to_eighths_of_octaves():
    rng = np.random.default_rng(6)
    before, after = (np.floor(1 / rng.random(3_000)).astype(np.int64) - 1 for _ in range(2))
    either = before + after > 0
    counted = Counted.given(before[either], after[either], (1.0, 1.0))
    cells = counted.rounded()
    assert sum(often for *_, often in cells) == either.sum()
    assert len({tuple(cell[:2]) for cell in cells}) == len(cells) < len(counted.total)
    exact = {(b, a): often for b, a, often in cells if max(a, b) <= 16}
    for cell, often in exact.items():
        assert often == ((before == cell[0]) & (after == cell[1])).sum()
    ((lost, kept, number),) = Counted.given(np.array([1000]), np.array([16]), (1.0, 1.0)).rounded()
    assert (kept, number) == (16, 1)
    assert abs(np.log2(lost / 1000)) <= 1 / 16
    assert max(max(cell[:2]) for cell in cells) > 16


def pair_of(before, after):
    seen = before + after > 0
    return Counted.given(before[seen], after[seen], (1.0, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("linear", "quadratic", "ratio"),
    [
        (0.0, 0.001, 3),
        (0.0, 0.3, 1 / 3),
        (2.0, 0.1, 1 / 3),
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive)
            for case in ((0.0, 0.001, 1 / 3), (0.0, 0.3, 3), (2.0, 0.1, 3), (2.0, 0.001, 3), (2.0, 0.001, 1 / 3))
        ),
    ],
)
def test_noise_of_cells_and_of_amplification_is_told_by_replicates(linear, quadratic, ratio):
    rng = np.random.default_rng(4)
    own = abundances(rng, 60_000)
    counts = [reads_of(rng, own, depth, quadratic, linear) for depth in (20_000, 20_000, 20_000 * ratio)]
    noise = noise_of([pair_of(counts[0], counts[1])])
    if not linear:
        assert noise.quadratic == pytest.approx(quadratic, rel=0.3, abs=0.05)
        assert noise.linear < 0.1
    pair = pair_of(counts[1], counts[2])
    assert pair.ratio == pytest.approx(ratio, rel=0.1)
    at_least, more = pair.at_least(noise)[pair.of], pair.at_least(noise, pair.after + 1)[pair.of]
    uniform = randomised(at_least, more, 0)
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    # Large clones, of which there are few, are those that can be hits.
    for kept in (uniform, uniform[pair.total[pair.of] >= 20]):
        assert (kept < 0.01).mean() < 0.01 + 4 * np.sqrt(0.01 / len(kept))
    assert q_values(at_least).min() > 0.05


def test_the_depth_ratio_is_hardly_that_of_a_few_large_expansions():
    rng = np.random.default_rng(5)
    own = abundances(rng, 20_000)
    before, after = reads_of(rng, own, 8_000), reads_of(rng, own, 8_000)
    after[:5] += 20_000
    assert pair_of(before, after).ratio == pytest.approx(1, rel=0.1)
    assert after.sum() > 10 * before.sum()


@pytest.fixture(scope="module")
def sequences():
    """Distinct junctions, by model."""
    return cache(distinct_junctions)


def asked(visit, model="human_igk", **options):
    return hpcvdj.associate(visit[0], model, metadata=visit[1], subject="who", time="month", backend="cpu",
                            **{"max_p": 1.0, **options})  # fmt: skip


@olga
@pytest.mark.slow
@pytest.mark.parametrize("model", exhaustive_but(LOCI, "human_trb"))
@pytest.mark.parametrize("depths", [(4_000, 4_000, 24_000), (12_000, 12_000, 8_000)])
def test_without_changes_p_values_are_uniform_and_nothing_is_found(model, depths, sequences):
    found = asked(visits(sequences(model, 30_000), seed=21, number=30_000, depths=depths), model, max_p=0.01)
    assert found.replicates == 1
    assert stats.kstest(found.uniform, "uniform").pvalue > 1e-3
    assert (found.uniform < 0.01).mean() < 0.01 + 4 * np.sqrt(0.01 / len(found.p))
    assert found.hits == 0


@pytest.fixture(scope="module")
def visit(sequences):
    return visits(sequences("human_igk", 4_000), seed=22, number=4_000, depths=(8_000, 8_000, 24_000), planted=25)


@pytest.fixture(scope="module")
def answer(visit):
    return asked(visit)


@olga
@pytest.mark.slow
def test_planted_expansions_are_hits(answer, visit):
    hits = {
        row["junction"] for row in answer.table.to_pylist() if row["q_value"] is not None and row["q_value"] <= 0.05
    }
    assert len(hits) == answer.hits
    assert len(hits & visit[2]) >= 12
    assert len(hits - visit[2]) <= 2


@olga
@pytest.mark.slow
def test_rows_are_those_of_loops_over_clonotypes(answer, visit):
    tables = [dict(zip(zip(*(table[name].to_pylist() for name in GENES), strict=True), table[READS].to_pylist(),
                       strict=True)) for table in visit[0].values()]  # fmt: skip
    rows = answer.table.to_pylist()
    (pair,) = answer.pairs
    seen = {}
    for k, table in enumerate(tables):
        for (v, j, junction), reads in table.items():
            own = seen.setdefault((v.partition("*")[0], j.partition("*")[0], junction), [0, 0])
            own[int(k == 2)] += reads
    assert {(row["v_call"], row["j_call"], row["junction"]): [row["reads_before"], row["reads_after"]]
            for row in rows} == seen  # fmt: skip
    depths = [sum(sum(table.values()) for table in part) for part in (tables[:2], tables[2:])]
    assert all([row["depth_before"], row["depth_after"]] == depths for row in rows)
    assert all((row["subject"], row["time_before"], row["time_after"]) == ("anna", 0, 1) for row in rows)
    assert [row["junction_aa"] for row in rows] == hpcvdj.translate([row["junction"] for row in rows])
    share = pair.counted.ratio / (1 + pair.counted.ratio)
    p = [row["p_value"] for row in rows]
    assert p == sorted(p)
    reached = [row for row in rows if row["q_value"] is not None]
    assert [row["q_value"] for row in reached] == pytest.approx(q_values(np.array([row["p_value"] for row in reached])))
    for row in rows[:40]:
        total = row["reads_before"] + row["reads_after"]
        own = every_share(total, pair.counted.ratio, pair.counted.spread)
        assert row["p_value"] == pytest.approx(own.at_least(answer.noise)[row["reads_after"]])
        assert row["expected"] == pytest.approx(total * share)
    first, second = (sum(table.values()) for table in tables[:2])
    assert pair.counted.spread == pytest.approx(((first**2 + second**2) / (first + second) ** 2, 1))


@olga
@pytest.mark.slow
def test_each_subject_has_pairs_of_consecutive_times(answer, visit):
    """Bob's samples are Anna's, whose third time is her second again."""
    tables = {f"{who}_{name}": table for who in ("anna", "bob") for name, table in visit[0].items()}
    tables["anna_again"] = visit[0]["s2"]
    about = pa.table({
        "sample": list(tables), "who": [name.partition("_")[0] for name in tables],
        "month": ["0", "0.0", "1.5", "0", "0", "1.5", "10"],
    })  # fmt: skip
    found = asked((tables, about), max_p=0.05)
    assert [(pair.subject, pair.times) for pair in found.pairs] == [
        ("anna", (0, 1.5)), ("anna", (1.5, 10)), ("bob", (0, 1.5)),
    ]  # fmt: skip
    assert found.replicates == 2
    p = [found.p[found.pair == k] for k in range(3)]
    np.testing.assert_array_equal(p[0], p[2])
    np.testing.assert_allclose(p[0], answer.p[answer.pair == 0], rtol=0.1)
    rows = found.table.to_pylist()
    hits = [row for row in rows if row["q_value"] is not None and row["q_value"] <= 0.05]
    assert {(row["subject"], row["time_after"]) for row in hits} == {("anna", 1.5), ("bob", 1.5)}
    assert len(hits) == found.hits
    both = [[row["junction"] for row in hits if row["subject"] == who] for who in ("anna", "bob")]
    assert both[0] == both[1]


STRONG = {"planted": 400, "factor": 300.0}


@olga
@pytest.mark.slow
@pytest.mark.parametrize("model", exhaustive_but(LOCI, "human_trb", "human_igk"))
@pytest.mark.parametrize(
    ("number", "depths", "more", "compares"),
    [
        (8_000, (20_000, 20_000, 20_000), {}, True),
        (8_000, (20_000, 20_000, 60_000), STRONG, True),
        # Few reads, and a shallow sample after deep ones.
        (300, (600, 600, 600), {}, False),
        (8_000, (80_000, 80_000, 300), {}, False),
    ],
)
def test_times_of_two_people_are_told(model, number, depths, more, compares, sequences):
    """All clonotypes seemed to change if the metadata took two people for one."""
    people = [visits(sequences(model, number, seed), seed=seed, number=number, depths=depths, **more)
              for seed in (31, 32)]  # fmt: skip
    mixed = {**people[0][0], "s2": people[1][0]["s2"]}
    for tables, told in ((people[0][0], False), (mixed, compares)):
        found, lines = asked_with_warnings((tables, people[0][1]), model)
        assert [line.startswith("anna, month 0 and 1: large clonotypes") for line in lines] == [True] * told
        (shared,) = [pair.largest_shared for pair in found.pairs]
        assert (shared is not None) == compares
        if compares:
            assert max(shared) <= 1 if told else min(shared) >= 15


@olga
@pytest.mark.slow
def test_the_noise_of_three_replicates_does_not_depend_on_their_order(visit):
    """Neighbours in the order of the tables were pairs of replicates."""
    rng, first = np.random.default_rng(5), visit[0]["s0"]
    reads = pa.array(rng.poisson(first["duplicate_count"].to_numpy()) + 1)
    third = first.set_column(first.column_names.index("duplicate_count"), "duplicate_count", reads)
    tables = {"a": first, "b": visit[0]["s1"], "c": third, "later": visit[0]["s2"]}
    noises = set()
    for names in (["a", "b", "c", "later"], ["c", "a", "later", "b"]):
        about = pa.table({"sample": names, "who": ["anna"] * 4, "month": [str(int(n == "later")) for n in names]})
        found = asked(({name: tables[name] for name in names}, about))
        assert found.replicates == 2
        noises.add((found.noise.linear, found.noise.quadratic))
    assert len(noises) == 1


def asked_with_warnings(visit, model):
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        # Few rows of the table: to find the ends of their intervals takes longest.
        found = asked(visit, model, max_p=1e-300, max_q=1e-300)
    return found, [str(one.message) for one in raised if "as if these were two people" in str(one.message)]


@olga
@pytest.mark.slow
def test_samples_without_large_clones_are_not_of_two_people(sequences):
    """Naive cells, which unequal amplification makes large: samples of one person share none of them."""
    model, rng = "human_trb", np.random.default_rng(33)
    junctions, tables = sequences(model, 6_000), {}
    for k in range(3):
        reads = np.ceil(20 * np.exp(2 * rng.standard_normal(2_000))).astype(np.int64)
        tables[f"s{k}"] = junctions.slice(2_000 * k, 2_000).append_column(READS, pa.array(reads))
    about = pa.table({"sample": list(tables), "who": ["anna"] * 3, "month": ["0", "0", "1"]})
    found, lines = asked_with_warnings((tables, about), model)
    assert [pair.largest_shared for pair in (*found.pairs, *found.replicated)] == [(0, 0)] * 2
    assert lines == []


@olga
@pytest.mark.slow
def test_without_replicates_all_clonotypes_are_the_noise(visit, answer):
    with pytest.warns(HpcvdjWarning, match="no replicates"):
        found = asked(({name: visit[0][name] for name in ("s0", "s2")}, visit[1]))
    assert found.replicates == 0
    assert found.noise.quadratic > answer.noise.quadratic


@olga
@pytest.mark.slow
def test_amino_acids_alone_are_read(visit):
    tables = {
        name: table.select([*GENES[:2], READS]).append_column(
            "junction_aa", pa.array(hpcvdj.translate(table["junction"].to_pylist()))
        )
        for name, table in visit[0].items()
    }
    found = asked((tables, visit[1])).table
    assert "junction" not in found.column_names
    assert found["reads_after"].to_numpy().sum() == sum(tables["s2"][READS].to_pylist())


def on_disk(visit, folder):
    (folder / "visits").mkdir()
    for name, table in visit[0].items():
        write_table(folder / "visits" / f"{name}.tsv", table.to_batches(), overwrite=False)
    rows = visit[1].to_pylist()
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    (folder / "visits.tsv").write_text("".join("\t".join(line) + "\n" for line in lines))
    return ["associate", folder / "visits", *COMMAND, "--metadata", folder / "visits.tsv"]


@olga
@pytest.mark.slow
def test_any_number_of_ranks_writes_what_the_function_returns(visit, answer, tmp_path, on_ranks):
    words = on_disk(visit, tmp_path)
    out, _ = hpcvdj_command(*words, "-o", tmp_path / "one.tsv", "--plot", tmp_path / "one.svg")
    assert f"{answer.hits} with q_value <= 0.05" in out
    assert "from replicates (pairs: 1)" in out
    on_ranks(3, *words, "-o", tmp_path / "three.tsv")
    assert (tmp_path / "three.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()
    lines = (tmp_path / "one.tsv").read_text().splitlines()
    assert lines[0].split("\t") == answer.table.column_names
    assert len(lines) - 1 == sum(p <= 0.05 for p in answer.table["p_value"].to_pylist())
    facts = json.loads((tmp_path / "one.tsv.json").read_text())
    assert facts["asked"] == {"subject": "who", "time": "month", "names": "sample"}
    assert (facts["hits"], facts["noise"]["pairs_of_replicates"]) == (answer.hits, 1)
    (told,) = facts["pairs"]
    assert (told["hits"], told["clonotypes"]) == (answer.hits, len(answer.p))
    assert f"{answer.hits} hits in colour" in (tmp_path / "one.svg").read_text()
    hpcvdj_command("report", tmp_path / "one.tsv", "-o", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text())
    rows = page.rows("expansion_1_tests")
    assert [str(row["reads_after"]) for row in rows] == [line.split("\t")[8] for line in lines[1 : len(rows) + 1]]
    assert lines[0].split("\t")[8] == "reads_after"
    assert "Did clonotypes expand between times?" in page.text


@olga
@pytest.mark.slow
def test_wrong_input_is_one_line(visit, tmp_path):
    words = on_disk(visit, tmp_path)

    def refused(*more, words=words):
        _, err = hpcvdj_command(*words, *more, "-o", tmp_path / "out.tsv", code=2)
        assert not (tmp_path / "out.tsv").exists()
        return error_line(err)

    for option, value in (("--case", "who=anna"), ("--hla", "who"), ("--trend", "month"), ("--strata", "who")):
        assert f"{option} different people" in refused(option, value)
    without = [word for word in words if word not in ("--subject", "who")]
    assert "--time month: needs --subject" in refused(words=without)
    assert "must end in .png or .svg" in refused("--plot", tmp_path / "plot.pdf")
    assert "no scores" in refused("--donors", tmp_path / "donors.tsv")
    for words in (("--unit", "aa"), ("--depth", "none"), ("--min-individuals", "5")):
        assert "leave out --unit, --depth, --min-individuals" in refused(*words)
    about = tmp_path / "visits.tsv"
    text = about.read_text()
    about.write_text(text.replace("\t1\n", "\t0\n"))
    assert "no subject has samples of two times" in refused()
    about.write_text(text.replace("\t1\n", "\tspring\n"))
    assert "s2 has 'spring'; give a number" in refused()


@olga
@pytest.mark.slow
def test_tables_without_reads_are_refused(visit):
    with pytest.raises(InputError, match="no column duplicate_count"):
        asked(({name: table.drop_columns([READS]) for name, table in visit[0].items()}, visit[1]))


@olga
@pytest.mark.slow
def test_a_sample_without_junctions_is_refused(visit):
    with pytest.raises(InputError, match="the table s1: no data rows; leave such tables out"):
        asked(({**visit[0], "s1": visit[0]["s1"].slice(0, 0)}, visit[1]))
