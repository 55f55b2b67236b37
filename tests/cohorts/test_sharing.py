"""`hpcvdj sharing`: counts by brute force, calibrated on what a model makes, and it finds what was planted."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.chance.model_fit import UNCHECKED
from hpcvdj.chance.p_values import benjamini_hochberg
from hpcvdj.cohorts.cohort import sequences_of
from hpcvdj.cohorts.expected import Numbers
from hpcvdj.cohorts.settings import SharingSettings
from hpcvdj.cohorts.shared_table import _q_values
from hpcvdj.cohorts.sharing import share
from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.repertoires.genes import as_text, kinds_of
from hpcvdj.repertoires.writers import write_table
from hpcvdj.runs.run import Run
from tests.cohorts.drawn import SIZES, cohort_in, with_individuals
from tests.selected import few_genes, log_factor_of, with_factor

DRAWS = 8_000


def shared_in(table, model, factor=None, groups=None, fit=UNCHECKED, **settings):
    asked = SharingSettings(**{"draws": DRAWS, "backend": "cpu", **settings})
    found, blocks = share(cohort_in(table, model, groups), model, asked, Run(), factor, fit)
    return replace(found, table=blocks.on_root())


@pytest.fixture(scope="module")
def everything(table, model):
    """All sequences with their tests; of amino acids alone, of which most are shared."""
    return shared_in(table, model, min_individuals=1, q=1.0, unit="aa", draws=30_000)


@pytest.fixture(autouse=True)
def fewer_of_one(monkeypatch):
    """The AUC takes fewer sequences of one individual, so that tests are fast."""
    monkeypatch.setattr("hpcvdj.cohorts.sharing.PRIVATE", 3_000)


HOSTILE = [
    # individual, V, J, junction, reads
    ("a", "TRBV9*01", "TRBJ2-1*01", "TGTGCCAGCAGCGTAGAGCAGTTCTTC", 3),
    ("a", "TRBV9", "TRBJ2-1", "TGTGCCAGCAGCGTAGAGCAGTTCTTC", 4),  # the same, by gene
    ("b", "TRBV9*01", "TRBJ2-1", "tgtgccagcagcgtagagcagttcttc", 9),
    ("c", "TRBV9", "TRBJ2-1", "TGTGCCAGCAGCGTAGAACAGTTCTTC", 2),  # other bases, the same amino acids
    ("c", "TRBV5-1", "TRBJ2-1", "TGTGCCAGCAGCGTAGAGCAGTTCTTC", 1),  # another V
    ("d", "TRBV5-1", "TRBJ2-1", "TGTGCCAGCAGCGTAGAGCAGTTCTTC", 8),
    ("d", "TRBV5-1", "TRBJ2-1", "TGTGCCAGCAGCGTAGAGCAGTTCTT", 8),  # out of frame
    ("d", "TRBV5-1", "TRBJ2-1", "TGTGCCTAGAGCGTAGAGCAGTTCTTC", 8),  # a stop
    ("d", "TRBV99", "TRBJ2-1", "TGTGCCAGCAGCGTAGAGCAGTTCTTC", 8),  # no such gene
    ("e", "TRBV5-1", "TRBJ2-1", "", 8),
    ("e", "TRBV5-1,TRBV5-4", "TRBJ2-1", "TGTGCCAGCAGCGTAGAGCAGTTCTTC", 8),  # a class of its own
]


def hostile(order=None):
    rows = [HOSTILE[k] for k in (order if order is not None else range(len(HOSTILE)))]
    names = ("repertoire_id", "v_call", "j_call", "junction", "duplicate_count")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def gene(call):
    return ",".join(dict.fromkeys(name.partition("*")[0] for name in call.split(",")))


def by_hand(rows, unit, known):
    """Who has which sequence, with its junctions and its largest clone, by loops."""
    found, clones = {}, {}
    for who, v, j, junction, reads in rows:
        text = junction.upper()
        residues = translate([text])[0] if len(text) % 3 == 0 and text else ""
        if not residues or "*" in residues or residues[0] != "C" or residues[-1] not in "FVW":
            continue
        if not known(v, j):
            continue
        key = {"nt": (gene(v), gene(j), text), "vj-aa": (gene(v), gene(j), residues), "aa": (residues,)}[unit]
        own = found.setdefault(key, (set(), set()))
        own[0].add(who)
        own[1].add((gene(v), gene(j), text))
        clone = (gene(v), gene(j), text, who)
        clones[clone] = clones.get(clone, 0) + reads
    most = {key: max(n for (v, j, t, _), n in clones.items() if (v, j, t) in own[1]) for key, own in found.items()}
    return {key: (tuple(sorted(own[0])), len(own[1]), most[key]) for key, own in found.items()}


def in_table(found, unit):
    names = {
        "nt": ("v_call", "j_call", "junction"),
        "vj-aa": ("v_call", "j_call", "junction_aa"),
        "aa": ("junction_aa",),
    }
    return {
        tuple(row[name] for name in names[unit]): (
            tuple(row["individuals"].split(",")), row.get("nt_variants", 1), row["max_duplicate_count"],
        )
        for row in found.table.to_pylist()
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["nt", "vj-aa", "aa"])
def test_counts_by_hand(model, rows, unit):
    rng = np.random.default_rng(5)
    given = HOSTILE + [
        (str(rng.choice(list("abcde"))), row["v_call"], row["j_call"], row["junction"], int(rng.integers(1, 9)))
        for row in rows.slice(0, 40).to_pylist() * 3
    ]
    names = ("repertoire_id", "v_call", "j_call", "junction", "duplicate_count")
    table = pa.table(dict(zip(names, zip(*given, strict=True), strict=True)))
    found = shared_in(table, model, unit=unit, min_individuals=1, q=0.5, draws=1_000)
    expected = by_hand(given, unit, lambda v, j: "99" not in v)
    assert in_table(found, unit) == expected
    assert found.tested == len(expected)
    numbers = np.bincount([len(own[0]) for own in expected.values()], minlength=6)
    untested = [row["n_individuals"] for row in found.table.to_pylist() if row["not_tested"]]
    numbers -= np.bincount([number for number in untested if number >= 2], minlength=6)
    assert found.observed.tolist() == numbers.tolist()
    for i, one in enumerate("abcde"):
        for j, other in enumerate("abcde"):
            both = sum({one, other} <= {*own[0]} for own in expected.values())
            assert found.shared[found.cohort.names.index(one), found.cohort.names.index(other)] == both, (i, j)
    if unit == "nt":
        several = found.table.filter(pc.greater_equal(found.table["n_individuals"], 2))
        assert shared_in(table, model, unit=unit, q=0.5, draws=1_000).table.equals(several)


def test_every_row_is_accounted_for(model):
    found = cohort_in(hostile(), model)
    own = {one.name: one for one in found.individuals}
    assert {name: one.rows for name, one in own.items()} == {"a": 1, "b": 1, "c": 2, "d": 1, "e": 1}
    assert own["a"].left_out == {"junction that another row of the individual has": 1}
    assert sum(own["d"].left_out.values()) == 3
    assert all(one.facts()["rows_read"] == sum(row[0] == name for row in HOSTILE) for name, one in own.items())
    assert found.several_genes == 1


@pytest.mark.slow
def test_rows_and_individuals_in_any_order(model, table):
    part = table.slice(0, 12_000)
    named = dict(zip("abcde", "edcba", strict=True))
    other = part.take(np.random.default_rng(1).permutation(len(part)))
    other = other.set_column(5, "repertoire_id", pa.array([named[name] for name in other["repertoire_id"].to_pylist()]))
    one, two = (shared_in(own, model, q=0.7, draws=1_000) for own in (part, other))
    assert one.table.drop_columns("individuals").equals(two.table.drop_columns("individuals"))
    assert np.array_equal(one.expected[1:], two.expected[1:])
    assert {name: area.area for name, area in one.aucs.items()} == {name: area.area for name, area in two.aucs.items()}


@pytest.fixture(scope="module")
def tested(table, model):
    """Shared sequences with V and J genes."""
    return shared_in(table, model, q=1.0)


@pytest.mark.slow
def test_numbers_of_rows(model, everything, tested):
    """Probabilities are those of `hpcvdj pgen`, and tests those of naive sums."""
    assert tested.pairs.standing_out == []
    first = tested.table.slice(0, 30)
    sizes = tested.sizes
    given = hpcvdj.pgen(first.select(["v_call", "j_call", "junction_aa"]), model, backend="cpu")
    np.testing.assert_allclose(first["pgen"], given["pgen_aa"], rtol=1e-12)
    for row in first.to_pylist():
        p = row["pgen"] / productive_probability(model)
        has = -np.expm1(-sizes * p)
        assert row["p_post"] == pytest.approx(p, rel=1e-12)
        assert row["expected_individuals"] == pytest.approx(has.sum(), rel=1e-9)
        chance = stats.poisson_binom(has) if hasattr(stats, "poisson_binom") else None
        if chance is not None:
            exact = chance.sf(row["n_individuals"] - 1) / chance.sf(0)
            assert row["p_value"] == pytest.approx(exact, rel=2e-3)
        if row["n_individuals"] < len(sizes):
            solved = -np.expm1(-sizes * p * row["effect"])
            assert solved.sum() == pytest.approx(row["n_individuals"], rel=1e-6)
    p_values = everything.table["p_value"].to_numpy()
    assert (np.diff(p_values) >= 0).all()
    tests = len(p_values)
    assert tests == everything.tested
    naive, smallest = np.empty(tests), 1.0
    for k in range(tests - 1, -1, -1):
        smallest = min(smallest, p_values[k] * tests / (k + 1))
        naive[k] = smallest
    np.testing.assert_allclose(everything.table["q_value"], naive, rtol=1e-12)


def randomised(found, sizes):
    """P-values that are uniform by chance, of sequences that are probable enough to be shared."""
    own = found.table.filter(pc.greater(found.table["expected_individuals"], 0.02))
    log_p, held = np.log(own["p_post"].to_numpy()), own["n_individuals"].to_numpy()
    numbers = Numbers(sizes)
    at_least = numbers.p_values(log_p, held)
    more = np.where(held < len(sizes), numbers.p_values(log_p, np.minimum(held + 1, len(sizes))), 0)
    return at_least - np.random.default_rng(1).random(len(held)) * (at_least - more)


def test_calibrated_on_what_recombination_makes(everything):
    sizes = everything.sizes
    p = randomised(everything, sizes)
    assert len(p) > 1_000
    assert stats.kstest(p, "uniform").pvalue > 1e-3
    assert stats.kstest(randomised(everything, 3 * sizes), "uniform").pvalue < 1e-6, "reads in place of junctions"
    assert everything.hits == 0


def test_the_spectrum_is_that_of_the_draws(everything, table, model):
    error = np.sqrt(everything.expected + ((everything.high - everything.low) / 3.92) ** 2)
    assert (abs(everything.observed - everything.expected)[1:] < 4 * error[1:] + 1).all()
    assert everything.observed[2] > 300
    np.testing.assert_allclose(everything.expected, everything.expected_q1)
    pairs = np.triu_indices(len(SIZES), 1)
    shared, expected = everything.shared[pairs], everything.expected_shared[pairs]
    assert (abs(shared - expected) < 4 * np.sqrt(expected) + 1).all()
    assert everything.pairs.standing_out == []
    assert everything.aucs["pgen"].area > everything.aucs["length"].area > 0.6


@pytest.mark.slow
def test_survivors(rows, model):
    """A third of all amino-acid sequences survive, in everybody."""
    texts = rows["junction_aa"].to_pylist()
    alive = {text: rank < 0.3 for text, rank in zip(
        sorted({*texts}), np.random.default_rng(7).random(len({*texts})), strict=True
    )}  # fmt: skip
    kept = rows.filter(pa.array([alive[text] for text in texts]))
    found = shared_in(with_individuals(kept, [6_000] * 5), model, unit="aa")
    assert found.q == pytest.approx(0.3, rel=0.15)
    assert found.q_interval[0] < 0.3 < found.q_interval[1] < 0.5
    assert shared_in(with_individuals(kept, [6_000] * 5), model, unit="aa", q=0.3).q_interval is None
    assert found.hits <= 2
    assert not found.q_at_bound


class Shorter:
    """A factor of selection: shorter junctions of TRBV genes with an even number in the model survive more often."""

    def __init__(self, mean=1.0):
        self.mean = mean

    def log_factor(self, v_genes, j_genes, pair, letters, lengths):
        assert letters.shape[0] == len(lengths) == len(pair)
        assert (letters[np.arange(len(lengths)), lengths - 1] != 0).all()
        of_gene = np.array([0.3 * (name.startswith("TRBV2")) for name in v_genes])
        return -0.5 * np.clip(lengths - 11, 0, 8) + of_gene[pair] - np.log(self.mean)

    def of(self, rows):
        """Of rows of a table."""
        texts, v = rows["junction_aa"].to_pylist(), [gene(call) for call in rows["v_call"].to_pylist()]
        lengths = np.array([len(text) for text in texts])
        letters = np.zeros((len(texts), lengths.max()), dtype=np.uint8)
        for k, text in enumerate(texts):
            letters[k, : len(text)] = list(text.encode())
        return self.log_factor(v, v, np.arange(len(v)), letters, lengths)


@pytest.fixture(scope="module")
def selected(rows):
    """Rows that survived the factor, and the factor."""
    factor = Shorter(float(np.exp(Shorter().of(rows)).mean()))
    own = factor.of(rows)
    kept = np.random.default_rng(8).random(len(own)) < np.exp(own - own.max())
    return rows.filter(pa.array(kept)), factor


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["nt", "vj-aa"])
def test_the_spectrum_with_a_factor_of_selection(selected, model, unit):
    kept, factor = selected
    table = with_individuals(kept, [len(kept) // 5] * 5)
    found = shared_in(table, model, factor, unit=unit, q=1.0, draws=20_000)
    error = np.sqrt(found.expected + ((found.high - found.low) / 3.92) ** 2)
    assert (abs(found.observed - found.expected)[1:] < 4 * error[1:] + 1).all()
    assert found.observed[2] > 15


@pytest.mark.slow
def test_the_factor_of_a_model():
    own = with_factor(few_genes(), {f"J_length:TRBJ2-7:{length}": 1.5 for length in (13, 14, 15)} | {"left:3:S": 1.0})
    kept = hpcvdj.generate(own, 60_000, seed=5, selection=True, backend="cpu")
    size = len(kept) // 3
    tables = {name: kept.slice(size * k, size) for k, name in enumerate("abc")}
    found, without = (
        hpcvdj.sharing(tables, model, draws=20_000, backend="cpu") for model in (own, replace(own, selection=None))
    )
    error = np.sqrt(found.expected + ((found.high - found.low) / 3.92) ** 2)
    assert (abs(found.observed - found.expected)[2:] < 4 * error[2:] + 1).all()
    shared = found.observed[2:].sum()
    assert shared > 500
    # q is in proportion to what is shared, and its error that of a Poisson number: nearly 1, and 7 of these without Q.
    assert abs(np.log(found.q)) < 3 / np.sqrt(shared)
    assert np.log(found.q / without.q) > 5 / np.sqrt(shared)
    logs = np.log(found.table["q_factor"].to_numpy())
    rows = found.table.select(["v_call", "j_call", "junction_aa"]).to_pylist()
    slow = [log_factor_of(own.selection, *row.values()) for row in rows]
    np.testing.assert_allclose(logs, slow, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_a_factor_of_selection(selected, model):
    kept, factor = selected
    assert len(kept) > 20_000
    table = with_individuals(kept, [len(kept) // 5] * 5)
    found, without = shared_in(table, model, factor), shared_in(table, model)
    assert without.q < 0.8 * found.q
    assert found.q > 0.8
    row = found.table.to_pylist()[0]
    expected = row["pgen"] / productive_probability(model) * row["q_factor"] / found.q
    assert row["p_post"] == pytest.approx(expected, rel=1e-9)
    assert "q_factor" not in without.table.column_names
    assert found.aucs["p_post"].area > found.aucs["pgen"].area


def planted(rows, table):
    """The table, and junctions of small probability that four of five individuals have, spelled differently."""
    own, found = [], []
    for k, row in enumerate(rows.slice(100_000, 30).to_pylist()[:12]):
        found.append(row["junction_aa"])
        for name in "abcd":
            own.append({**row, "sequence_id": f"{name}{k}", "repertoire_id": name})
    return pa.concat_tables([table, pa.Table.from_pylist(own, table.schema)]), found


@pytest.mark.slow
def test_what_is_planted_is_found(model, rows, table):
    with_them, texts = planted(rows, table)
    found = shared_in(with_them, model)
    hits = found.table.filter(pc.less_equal(found.table["q_value"], 0.05))
    assert {*texts} <= {*hits["junction_aa"].to_pylist()}
    assert len(hits) <= len(texts) + 2
    assert found.hits == len(hits)
    assert set(hits["individuals"].to_pylist()) >= {"a,b,c,d"}


@pytest.mark.slow
def test_a_sequence_that_the_model_cannot_make(model, table, tested):
    """TRBV9 does not begin with TGC: the probability is 0, and nothing is tested."""
    rows = [
        {"sequence_id": f"x{k}", "v_call": "TRBV9", "j_call": "TRBJ2-1", "repertoire_id": name, "junction_aa": "",
         "junction": "TGCAAAAAAAAAAAAAAAAAAAAAAAATGG"}
        for k, name in enumerate("abc")
    ]  # fmt: skip
    with_it = pa.concat_tables([table, pa.Table.from_pylist(rows, table.schema)])
    found = shared_in(with_it, model, q=1.0, draws=1_000)
    assert found.not_tested["the model cannot make it"] == 1
    last = found.table.to_pylist()[-1]
    assert last["pgen"] == 0
    assert last["not_tested"] == "the model cannot make it"
    assert [last[name] for name in ("p_value", "q_value", "effect", "expected_individuals", "p_post")] == [None] * 5
    assert found.observed[3] == tested.observed[3]


@pytest.mark.slow
def test_one_sample_twice(model, table):
    copy = table.filter(pc.equal(table["repertoire_id"], "c"))
    copy = copy.set_column(5, "repertoire_id", pa.array(["z"] * len(copy)))
    with pytest.raises(InputError, match=r"^c and z \(same sample\): samples of one person .* subject='COLUMN'"):
        shared_in(pa.concat_tables([table, copy]), model)


def test_fewer_than_two_individuals(model, table):
    with pytest.raises(InputError, match="only a has productive junctions"):
        cohort_in(table.slice(0, 1_000), model)


def test_names_that_cannot_be(model, table):
    part = table.slice(0, 300)
    one, two = ([name] * 150 for name in ("a,b", "c"))
    with pytest.raises(InputError, match="'a,b', and commas separate individuals"):
        cohort_in(part.set_column(5, "repertoire_id", pa.array(one + two)), model)
    named = part.set_column(5, "repertoire_id", pa.array(["a"] * 150 + two))
    for group in ("individuals", "x\ty"):
        frame = pa.table({"name": ["a", "c"], "group": [group, "z"]})
        with pytest.raises(InputError, match="a group cannot be called"):
            hpcvdj.sharing(named, model, metadata=frame, group="group")


def test_nothing_to_write(model, table, tmp_path):
    found = shared_in(table.slice(0, 6_000), model, min_individuals=4, draws=1_000)
    assert len(found.table) == 0
    assert found.hits == 0
    write_table(tmp_path / "o.tsv", [pa.RecordBatch.from_pylist([], found.table.schema)], overwrite=False)
    assert (tmp_path / "o.tsv").read_text().startswith("v_call\tj_call\tjunction_aa\tn_individuals")


def test_sequences_of_units(model, table):
    cohort = cohort_in(table.slice(0, 8_000), model)
    groupings = {unit: sequences_of(cohort, unit) for unit in ("nt", "vj-aa", "aa")}
    sizes = {unit: len(grouping.first) for unit, grouping in groupings.items()}
    assert sizes["nt"] > sizes["vj-aa"] > sizes["aa"]
    for unit in sizes:
        own = groupings[unit].only(np.arange(sizes[unit]))
        assert own.variants.sum() == sizes["nt"]
        bases = [row.tobytes() for row in own.repertoire.words] if unit == "nt" else [b""] * sizes[unit]
        texts = as_text(own.letters, own.lengths).to_pylist()
        assert len(set(zip(kinds_of(own.repertoire).tolist(), texts, bases, strict=True))) == sizes[unit]


@pytest.mark.parametrize("unit", ["vj-aa", "v-aa", "aa"])
def test_sequences_are_the_same_however_many_are_grouped_together(model, table, monkeypatch, unit):
    together = sequences_of(cohort_in(table.slice(0, 6_000), model), unit)
    monkeypatch.setattr("hpcvdj.chance.dealing.ROWS_TOGETHER", 100)
    in_parts = sequences_of(cohort_in(table.slice(0, 6_000), model), unit)
    for own, other in ((in_parts, together), (in_parts.has, together.has)):
        for name in ("first", "spelled") if own is in_parts else ("begins", "individual"):
            assert np.array_equal(getattr(own, name), getattr(other, name))
    assert in_parts.cohort.repertoire.pairs == together.cohort.repertoire.pairs
    for name in ("words", "lengths", "offsets"):
        assert np.array_equal(getattr(in_parts.cohort.repertoire, name), getattr(together.cohort.repertoire, name))


@pytest.mark.exhaustive
def test_a_share_that_the_sharing_refutes(table, model):
    """With a smaller share than the true one, more is expected; copies are more than any share explains."""
    assert not shared_in(table, model).refuted
    assert not shared_in(table, model, q=0.5).refuted, "more is expected, which selection of another kind may explain"
    sorted_cells = with_copies(table)
    told_apart = shared_in(sorted_cells, model, q=1.0)
    assert told_apart.copied.sum() >= 90, "the others may be recombinations of their own"
    assert not told_apart.refuted, "of a hundred planted ones, hardly any is left"
    with pytest.warns(hpcvdj.HpcvdjWarning, match="far more is shared than q = 1 explains"):
        unknown = hpcvdj.sharing(sorted_cells.drop_columns("junction"), model, q=1.0, draws=DRAWS, backend="cpu")
    assert unknown.refuted, "without nucleotides no copy is known as such"


def with_copies(table):
    """Every individual has a hundred junctions of the first, as of cells that bind the same."""
    first = table["repertoire_id"][0].as_py()
    own = table.filter(pc.equal(table["repertoire_id"], first)).slice(0, 100)
    others = [name for name in pc.unique(table["repertoire_id"]).to_pylist() if name != first]
    place = table.column_names.index("repertoire_id")
    return pa.concat_tables(
        [table, *(own.set_column(place, "repertoire_id", pa.array([name] * len(own))) for name in others)]
    )


def test_copies_do_not_make_other_sequences_hits():
    """Of 100 sequences with uniform p-values, one was a hit as soon as enough copies were."""
    rng = np.random.default_rng(4)
    p_values = np.concatenate([np.full(40, 1e-9), rng.random(100)])
    likely = np.arange(140) < 40
    order = np.argsort(p_values)
    p_values, likely = p_values[order], likely[order]
    q_values = _q_values(p_values, likely, 140, Run())
    np.testing.assert_array_equal(q_values[~likely], benjamini_hochberg(p_values[~likely], 100))
    np.testing.assert_array_equal(q_values[likely], benjamini_hochberg(p_values, 140)[likely])
    without = _q_values(p_values, np.zeros(140, dtype=bool), 140, Run())
    np.testing.assert_array_equal(without, benjamini_hochberg(p_values, 140))
    assert (without[~likely] < q_values[~likely]).any()


def test_rows_are_ordered_by_p_value_then_individuals_then_what_they_are(table, model):
    """All are listed, also those of one individual, whose p-value is 1."""
    rows = shared_in(table, model, min_individuals=1).table.to_pylist()
    keys = [
        (1.0 if row["p_value"] is None else row["p_value"], row["not_tested"] or "", -row["n_individuals"],
         row["v_call"], row["j_call"], len(row["junction_aa"]), row["junction_aa"])
        for row in rows
    ]  # fmt: skip
    assert keys == sorted(keys)
    assert len({key[:3] for key in keys}) < len(keys) / 2, "most are equal in the first three"


def test_hits_are_among_the_rows_that_are_listed(rows, table, model):
    with_them, _ = planted(rows, table)
    found, fewer = (shared_in(with_them, model, min_individuals=least, q=1.0) for least in (2, 5))
    for each in (found, fewer):
        assert each.hits == (pc.sum(pc.less_equal(each.table["q_value"], 0.05)).as_py() or 0)
    assert fewer.hits < found.hits


def test_letters_of_all_ranks_are_compared(table, model):
    """Of a rank that has no long sequences, too."""
    cohort = cohort_in(table, model)
    chosen = sequences_of(cohort, "vj-aa").only(np.arange(10))
    other = SimpleNamespace(gather_everywhere=lambda own: [own, (own[0], own[1] + 2)])
    kind, length, *words = chosen.order(other)
    assert [array.tolist() for array in words[-2:]] == [[0] * 10] * 2
    same = chosen.order(Run())
    assert all(np.array_equal(a, b) for a, b in zip((kind, length, *words), same, strict=False))
    assert np.array_equal(np.lexsort(same[::-1]), np.arange(10)), "as sequences_of orders them"
