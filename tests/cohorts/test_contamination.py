"""`hpcvdj contamination`: planted copies are found and removed, nothing else is."""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.cohorts.contamination import contaminate
from hpcvdj.cohorts.contamination_question import CleanOutput
from hpcvdj.cohorts.improbable import SELECTION, pairs_text
from hpcvdj.cohorts.settings import ContaminationSettings
from hpcvdj.errors import InputError
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.packaged import model_paths
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.repertoires.writers import write_table
from hpcvdj.runs.run import Run
from tests.cohorts.drawn import cohort_in, drawn, with_individuals
from tests.commands import error_line, hpcvdj_command
from tests.rows import read_batches

ROWS, COPIES = 4_000, 400
GROUPS = dict(zip("abcde", "xxxyy", strict=True))


@pytest.fixture(scope="module")
def model():
    return load_model(model_paths()["human_trb_m15"])


@pytest.fixture(scope="module")
def table(model):
    """Five individuals, with read counts; of the second, a tenth more rows are copies of the first's, with one read."""
    own = with_individuals(drawn(model, 5 * ROWS, 41), [ROWS] * 5).drop_columns("junction_aa")
    rng = np.random.default_rng(1)
    own = own.append_column("duplicate_count", pa.array(2 + rng.geometric(0.05, len(own))))
    copies = own.take(pa.array(np.sort(rng.choice(ROWS, COPIES, replace=False))))
    values = {"sequence_id": [f"c{k}" for k in range(COPIES)], "repertoire_id": ["b"] * COPIES}
    values["duplicate_count"] = [1] * COPIES
    for name, column in values.items():
        copies = copies.set_column(copies.column_names.index(name), name, pa.array(column))
    return pa.concat_tables([own, copies])


def compared(table, model, groups=None, fit=UNCHECKED, **settings):
    asked = ContaminationSettings(**{"draws": 2_000, "backend": "cpu", **settings})
    return contaminate(cohort_in(table, model, groups), model, asked, Run(), fit)


@pytest.fixture(scope="module")
def found(table, model):
    return compared(table, model, GROUPS)


@pytest.fixture(scope="module")
def probabilities(table, model):
    """Of each row, among productive ones."""
    genes = table.select(["sequence_id", "junction"])
    for name in ("v_call", "j_call"):
        genes = genes.append_column(name, pa.array([call.partition("*")[0] for call in table[name].to_pylist()]))
    own = hpcvdj.pgen(genes, model, sequence="nt", backend="cpu")
    return own["pgen_nt"].to_numpy() / productive_probability(model)


def by_hand(table, probabilities, keep=lambda p: p < 1e-11):
    """The improbable junctions of each individual, and their reads."""
    out = {}
    for row, p in zip(table.to_pylist(), probabilities.tolist(), strict=True):
        if keep(p):
            key = row["v_call"].partition("*")[0], row["j_call"].partition("*")[0], row["junction"]
            own = out.setdefault(row["repertoire_id"], {})
            own[key] = own.get(key, 0) + row.get("duplicate_count", 0)
    return out


@pytest.mark.slow
def test_planted_copies(found, table, probabilities):
    rows = found.table.to_pylist()
    assert len(rows) == 10
    low = by_hand(table, probabilities)
    for row in rows:
        one, other = low[row["individual_1"]], low[row["individual_2"]]
        assert (row["low_1"], row["low_2"]) == (len(one), len(other))
        assert row["shared_low"] == len({*one} & {*other})
        assert row["rate"] == pytest.approx(row["shared_low"] / (len(one) * len(other)))
        assert row["more_reads_1"] == sum(one[key] > other[key] for key in {*one} & {*other})
        assert row["more_reads_2"] == sum(one[key] < other[key] for key in {*one} & {*other})
        if (row["individual_1"], row["individual_2"]) == ("a", "b"):
            assert row["share_of_1"] == pytest.approx(COPIES / ROWS, rel=0.1)
            assert row["q_value"] < 1e-100
        else:
            assert row["shared_low"] == 0
            assert row["p_value"] == row["q_value"] == 1
    assert found.pairs.standing_out == [(0, 1)]
    assert rows[0]["more_reads_1"] == rows[0]["shared_low"], "copies have one read"


def test_the_smallest_p_value_is_first(table, model):
    """Whatever the names: those of the contaminated pair are the last."""
    named = table["repertoire_id"].to_pylist()
    last = table.set_column(
        table.column_names.index("repertoire_id"), "repertoire_id",
        pa.array([{"a": "y", "b": "z"}.get(name, name) for name in named]),
    )  # fmt: skip
    order = pa.array(np.argsort(last["repertoire_id"].to_pylist(), kind="stable"))
    own = compared(last.take(order), model).table
    assert {own["individual_1"][0].as_py(), own["individual_2"][0].as_py()} == {"y", "z"}
    assert own["p_value"].to_pylist() == sorted(own["p_value"].to_pylist())


def test_expected_numbers_and_tests(found, model, table):
    draws = hpcvdj.generate(model, 2_000, productive=True, backend="cpu")
    p = hpcvdj.pgen(draws, model, sequence="nt", backend="cpu")["pgen_nt"].to_numpy() / productive_probability(model)
    sizes = found.cohort.has.sizes.tolist()
    mean = p[p < 1e-11].sum() / len(p)
    row = found.table.to_pylist()[0]
    # Calls of drawn rows name alleles; sequences are those of genes.
    assert row["expected_low"] == pytest.approx(sizes[0] * sizes[1] * mean, rel=0.1)
    upper = np.triu_indices(5, 1)
    pairs = found.pairs
    p_values = stats.poisson.sf(pairs.shared[upper] - 1, SELECTION * pairs.expected[upper])
    np.testing.assert_allclose(pairs.p_value[upper], p_values, rtol=1e-9)
    np.testing.assert_allclose(pairs.q_value[upper], stats.false_discovery_control(p_values), rtol=1e-9)
    assert np.array_equal(pairs.p_value, pairs.p_value.T)


def test_carry_over_by_the_size_of_clones(found, table, probabilities):
    low = by_hand(table, probabilities)
    for size in found.carry_over:
        clones, met, asked = 0, {True: 0, False: 0}, {True: 0, False: 0}
        for name, own in low.items():
            for key, reads in own.items():
                if size.first <= reads <= (size.last or 10**9):
                    clones += 1
                    for other in low:
                        same = GROUPS[name] == GROUPS[other]
                        met[same] += other != name and key in low[other]
                        asked[same] += other != name
        assert size.clones == clones
        if clones:
            assert size.same_group == pytest.approx(met[True] / asked[True])
            assert size.other_group == met[False] / asked[False] == 0
    assert {size.reads for size in found.carry_over} >= {"1", "2-3", "4-9", ">=1000"}
    assert found.carry_over[0].same_group > 10 * found.carry_over[1].same_group


def test_without_groups_or_read_counts(table, model):
    own = compared(table.drop_columns("duplicate_count"), model)
    assert own.copies is None
    assert own.carry_over == []
    assert own.table["shared_low"].to_pylist()[0] > 100
    assert "more_reads_1" not in own.table.column_names
    alone = compared(table, model)
    assert all(size.other_group is None for size in alone.carry_over)


def test_copies_are_not_of_the_largest_clone(found, table, probabilities):
    low = by_hand(table, probabilities)
    names = found.cohort.names
    for copy in found.copies:
        row = table.slice(copy.row, 1).to_pylist()[0]
        key = row["v_call"].partition("*")[0], row["j_call"].partition("*")[0], row["junction"]
        assert row["repertoire_id"] == names[copy.individual] == "b"
        assert names[copy.of] == "a"
        assert (copy.reads, copy.of_reads) == (low["b"][key], low["a"][key])
    assert len(found.copies) == found.table["shared_low"].to_pylist()[0]


def test_of_equal_copies_the_first_stays(table, model):
    equal = table.set_column(5, "duplicate_count", pa.array([1] * len(table)))
    copies = compared(equal, model).copies
    assert {copy.individual for copy in copies} == {1}


def test_of_equal_copies_those_of_the_source_stay(table, model):
    """Also if the source comes last, and most of the shared junctions have one read in both."""
    reads = table["duplicate_count"].to_numpy().copy()
    copied = pc.is_in(table["junction"], table["junction"].slice(5 * ROWS)).to_numpy(zero_copy_only=False)
    many = np.flatnonzero(copied)[::5]
    reads[copied] = 1
    reads[many[many < ROWS]] = 9
    # These have more reads in the other one, which keeps them.
    larger = np.flatnonzero(copied)[1::50]
    reads[larger[larger >= 5 * ROWS]] = 7
    named = pa.array(["z" if name == "a" else name for name in table["repertoire_id"].to_pylist()])
    turned = table.set_column(5, "duplicate_count", pa.array(reads)).set_column(
        table.column_names.index("repertoire_id"), "repertoire_id", named
    )
    found = compared(turned.take(pa.array(np.argsort(named.to_pylist(), kind="stable"))), model)
    assert [found.cohort.names[k] for k in (0, -1)] == ["b", "z"]
    assert {(copy.individual, copy.of) for copy in found.copies if copy.of_reads != 7} == {(0, 4)}
    assert {(copy.individual, copy.of, copy.reads) for copy in found.copies if copy.of_reads == 7} == {(4, 0, 1)}
    tied = [copy.reads == copy.of_reads for copy in found.copies]
    assert 0 < sum(tied) < len(tied)
    said = dict(CleanOutput(Path("o.tsv"), clean=Path("clean")).summary(found))["removed"]
    assert f"{len(tied):,} rows, " in said
    assert f"; {sum(tied):,} of them have as many reads as the row that stays" in said


def copied(own, source, rows, name):
    """Rows of a source as rows of another individual, with one read each."""
    copies = own.filter(pc.equal(own["repertoire_id"], source)).take(pa.array(rows))
    values = {"sequence_id": [f"{name}{k}" for k in rows], "repertoire_id": [name] * len(rows)}
    for column, value in {**values, "duplicate_count": [1] * len(rows)}.items():
        copies = copies.set_column(copies.column_names.index(column), column, pa.array(value, own[column].type))
    return copies


@pytest.mark.parametrize("own_copies", [0, 60])
def test_two_that_have_copies_of_a_third(table, model, own_copies):
    """They stand out; if they share copies of each other, too, the third does not explain the pair."""
    own = table.slice(0, 5 * ROWS)
    both = np.arange(300)
    parts = [copied(own, "a", both, "d"), copied(own, "a", both, "e"), copied(own, "a", np.arange(400, 500), "d")]
    parts += [copied(own, "a", np.arange(600, 700), "e"), copied(own, "d", np.arange(own_copies), "e")]
    found = compared(pa.concat_tables([own, *parts]), model)
    rows = {(row["individual_1"], row["individual_2"]): row for row in found.table.to_pylist()}
    assert {pair for pair, row in rows.items() if row["verdict"] == "contaminated"} == {
        ("a", "d"),
        ("a", "e"),
        ("d", "e"),
    }
    thirds = {pair: row["third"] for pair, row in rows.items() if row["third"] is not None}
    assert thirds == ({} if own_copies else {("d", "e"): "a"})
    lines = pairs_text(found.cohort, found.improbable)
    assert [line for line in lines if "has them, too" in line] == [
        line for line in lines if "; a has them, too" in line
    ]
    assert sum("; a has them, too" in line for line in lines) == len(thirds)


def test_without_sources_of_their_own_no_third_is_named(table, model):
    """Of three that share the same junctions, none explains the others."""
    own = table.slice(0, 5 * ROWS)
    parts = [copied(own, "a", np.arange(300), name) for name in "de"]
    found = compared(pa.concat_tables([own, *parts]), model)
    assert len(found.pairs.standing_out) == 3
    assert found.table["third"].null_count == len(found.table)


@pytest.mark.slow
def test_refused(table, model):
    with pytest.raises(InputError, match=r"min_low=10000: a has 2,\d+, b has .* a probability below 1e-11; leave"):
        compared(table, model, min_low=10_000)
    # No J of human TRB ends with G, and each keeps a base at least.
    texts = table["junction"].to_pylist()
    spoiled = [text if k % 5 else text[:-3] + "TGG" for k, text in enumerate(texts)]
    with pytest.raises(InputError, match=r"b: the model cannot make .* of its .* junctions.*force=True"):
        compared(table.set_column(3, "junction", pa.array(spoiled)), model)
    found = compared(table.set_column(3, "junction", pa.array(spoiled)), model, fit=ModelFit(force=True))
    assert found.zero.min() > 100
    # Too few junctions to judge their individual by.
    few = table.filter(pc.equal(table["repertoire_id"], "a")).slice(0, 20)
    texts = [text[:-3] + "TGG" for text in few["junction"].to_pylist()]
    for column, values in (("repertoire_id", ["tiny"] * 20), ("junction", texts)):
        few = few.set_column(few.column_names.index(column), column, pa.array(values))
    assert "tiny" in compared(pa.concat_tables([table, few]), model).cohort.names
    for wrong in ({"max_pgen": 0}, {"max_pgen": 1}, {"draws": 1}, {"min_low": 0}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}=.*: give"):
            hpcvdj.contamination(table, model, **wrong)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table):
    """The individuals' tables, in several formats."""
    place = tmp_path_factory.mktemp("contamination")
    (place / "in").mkdir()
    for name, suffix in zip("abcde", ("tsv", "tsv.gz", "parquet", "tsv", "csv"), strict=True):
        own = table.filter(pc.equal(table["repertoire_id"], name)).drop_columns("repertoire_id").combine_chunks()
        if suffix == "csv":
            pa.csv.write_csv(own, place / "in" / f"{name}.csv")
        else:
            write_table(place / "in" / f"{name}.{suffix}", own.to_batches(), overwrite=False)
    (place / "meta.tsv").write_text("id\tbatch\n" + "".join(f"{name}\t{group}\n" for name, group in GROUPS.items()))
    return place


WORDS = ["-m", "human_trb_m15", "--backend", "cpu", "--draws", 2_000]


@pytest.mark.slow
def test_the_command(folder, tmp_path, found, model):
    words = ["contamination", folder / "in", *WORDS, "--metadata", folder / "meta.tsv", "--group", "batch"]
    outputs = ["-o", tmp_path / "o.tsv", "--plot", tmp_path / "f.svg", "--write-clean", tmp_path / "clean"]
    out, _ = hpcvdj_command(*words, *outputs)
    assert "pairs       10, of which 1 share more than chance and selection explain" in out
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    assert facts["command"] == "contamination"
    assert [own["group"] for own in facts["individuals"]] == list(GROUPS.values())
    assert [own["low"] for own in facts["individuals"]] == found.low.tolist()
    assert [own["zero"] for own in facts["individuals"]] == [0] * 5
    assert facts["rate"][0][1] == found.rate[0, 1]
    assert facts["rate"][2][2] is None
    assert facts["standing_out"] == [[0, 1]]
    assert facts["shared_low"][1][0] == len(found.copies) == facts["removed"]["rows"] == len(facts["removed"]["listed"])
    assert facts["carry_over"][2]["reads"] == "4-9"
    table = pa.Table.from_batches(read_batches(tmp_path / "o.tsv"))
    assert [int(value) for value in table["shared_low"].to_pylist()] == found.table["shared_low"].to_pylist()
    before, after = folder / "in", tmp_path / "clean"
    for name in ("a.tsv", "d.tsv", "e.csv"):
        assert (after / name).read_bytes() == (before / name).read_bytes()
    assert pq.read_table(after / "c.parquet").equals(pq.read_table(before / "c.parquet"))
    lines = gzip.decompress((before / "b.tsv.gz").read_bytes()).splitlines()
    dropped = {row["data_row"] for row in facts["removed"]["listed"]}
    kept = [line for number, line in enumerate(lines) if number not in dropped]
    assert gzip.decompress((after / "b.tsv.gz").read_bytes()).splitlines() == kept
    assert len(kept) == len(lines) - len(found.copies)
    again, _ = hpcvdj_command("contamination", after, *WORDS, "-o", tmp_path / "p.tsv")
    assert "of which 0 share" in again
    _, err = hpcvdj_command(*words, "-o", tmp_path / "q.tsv", "--write-clean", after, code=2)
    assert "exists already" in error_line(err)
    assert {path.name for path in tmp_path.iterdir()} == {
        "o.tsv",
        "o.tsv.json",
        "f.svg",
        "clean",
        "p.tsv",
        "p.tsv.json",
    }


@pytest.mark.exhaustive
def test_from_python(table, model, found):
    frame = pa.table({"id": list(GROUPS), "batch": list(GROUPS.values())})
    options = {"draws": 2_000, "backend": "cpu", "metadata": frame, "group": "batch"}
    own = hpcvdj.contamination(table, model, **options)
    assert own.table.equals(found.table)
    assert repr(own) == "<Contamination of 5 individuals: 1 of 10 pairs stand out>"
    assert own.carry_over == found.carry_over
    with pytest.warns(hpcvdj.HpcvdjWarning, match=r"a and b: \d+ improbable junctions shared"):
        shared = hpcvdj.sharing(table, model, draws=1_000, backend="cpu", q=1)
    hits = [row for row in shared.table.to_pylist() if row["q_value"] is not None and row["q_value"] <= 0.05]
    copies = [row for row in hits if row["likely_copy"]]
    assert shared.likely_copies == len(copies) > 100
    assert {row["individuals"] for row in copies} == {"a,b"}


def test_clean_tables_need_read_counts(folder, tmp_path):
    for name in "ab":
        rows = (folder / "in" / "a.tsv").read_text().splitlines()[:: 2 if name == "b" else 1]
        (tmp_path / f"{name}.tsv").write_text("\n".join(row.rpartition("\t")[0] for row in rows) + "\n")
    words = ["contamination", tmp_path / "a.tsv", tmp_path / "b.tsv", *WORDS, "-o", tmp_path / "o.tsv"]
    _, err = hpcvdj_command(*words, "--write-clean", tmp_path / "clean", code=2)
    assert "not all tables have a column duplicate_count" in error_line(err)
    assert {path.name for path in tmp_path.iterdir()} == {"a.tsv", "b.tsv"}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_ranks(folder, tmp_path, ranks, on_ranks):
    words = ["contamination", folder / "in", *WORDS]
    hpcvdj_command(*words, "-o", tmp_path / "one.tsv")
    on_ranks(ranks, *words, "-o", tmp_path / "many.tsv")
    assert (tmp_path / "many.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()
