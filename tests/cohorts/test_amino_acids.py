"""`hpcvdj sharing` of tables that have amino acids only: as with nucleotides, but for what only these tell."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.cohorts.settings import Naming, SharingSettings
from hpcvdj.cohorts.sharing import WITHOUT_NUCLEOTIDES
from hpcvdj.cohorts.sharing_question import SharingQuestion
from hpcvdj.errors import InputError
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.writers import write_table
from tests.cohorts.drawn import drawn, with_individuals
from tests.cohorts.test_sharing import DRAWS, HOSTILE, gene, planted, randomised
from tests.commands import error_line, hpcvdj_command
from tests.loci import LOCI, exhaustive_but

NULL = ("nt_variants", "same_nt", "p_same_nt", "likely_copy")

pytestmark = pytest.mark.filterwarnings("ignore::hpcvdj.errors.HpcvdjWarning")


@pytest.fixture(autouse=True)
def fewer_of_one(monkeypatch):
    monkeypatch.setattr("hpcvdj.cohorts.sharing.PRIVATE", 3_000)


def shared_in(table, model, **settings):
    return hpcvdj.sharing(table, model, **{"draws": DRAWS, "backend": "cpu", **settings})


def without_nucleotides(table):
    return table.drop_columns("junction")


@pytest.mark.exhaustive
def test_where_each_has_one_spelling_all_is_as_with_nucleotides(rows, model):
    """Who has what, and the tests; so many distinct amino acids are of a few recombinations more, by 0.2 % here."""
    part = rows.slice(0, 20_000)
    columns = [part[name].to_pylist() for name in ("v_call", "j_call", "junction_aa")]
    keys = ["|".join([gene(v), gene(j), text]) for v, j, text in zip(*columns, strict=True)]
    places = np.unique(keys, return_index=True)[1]
    part = part.take(np.sort(places))
    one = with_individuals(part, [4_000] * 4)
    # The most probable ones are given to others, with the same nucleotides.
    again = one.slice(0, 300).set_column(5, "repertoire_id", pa.array(["b"] * 300))
    table = pa.concat_tables([one, again])
    for unit in ("vj-aa", "aa"):
        nt, aa = (shared_in(own, model, unit=unit, q=0.05) for own in (table, without_nucleotides(table)))
        assert nt.cohort.has.sizes.tolist() == aa.cohort.has.sizes.tolist()
        assert (aa.sizes > nt.sizes).all()
        np.testing.assert_allclose(aa.sizes, nt.sizes, rtol=5e-3)
        assert aa.observed.tolist() == nt.observed.tolist()
        own, other = (found.table.sort_by("junction_aa") for found in (nt, aa))
        same = ["junction_aa", "n_individuals", "individuals", "pgen"]
        assert own.select(same).equals(other.select(same))
        np.testing.assert_allclose(other["p_value"], own["p_value"], rtol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
@pytest.mark.olga
def test_calibrated_on_what_recombination_makes(name):
    """Sizes are the recombinations, p-values uniform, the spectrum that of the draws, and there is no hit."""
    model = load_model(name)
    sizes = [1_500, 6_000, 3_000, 4_500]
    recombinations = with_individuals(drawn(model, sum(sizes), 13), sizes)
    for unit, genes in (("vj-aa", "call"), ("aa", "call"), ("aa", "any")):
        given = without_nucleotides(recombinations)
        if genes == "any":
            given = given.drop_columns(["v_call", "j_call"])
        found = shared_in(given, model, unit=unit, genes=genes, q=1.0, draws=20_000, min_individuals=1)
        distinct = found.cohort.has.sizes
        assert (distinct <= sizes).all()
        # The number of repetitions is about Poisson, and each of them changes n by a little more than one.
        error = 4 * np.sqrt(sizes - distinct + 1) + 0.01 * np.array(sizes)
        assert (abs(found.sizes - sizes) < error).all(), (unit, genes)
        p = randomised(found, found.sizes)
        if len(p) > 300:
            assert stats.kstest(p, "uniform").pvalue > 1e-3, (unit, genes)
        noise = np.sqrt(found.expected + ((found.high - found.low) / 3.92) ** 2)
        assert (abs(found.observed - found.expected)[1:] < 4 * noise[1:] + 1).all(), (unit, genes)
        assert found.hits <= 1


@pytest.mark.exhaustive
@pytest.mark.olga
def test_distinct_sequences_taken_for_recombinations_would_expect_too_little():
    """The test above can fail: kappa has so little diversity that distinct sequences are a third fewer."""
    model = load_model("human_igk")
    table = without_nucleotides(with_individuals(drawn(model, 24_000, 13), [6_000] * 4))
    found = shared_in(table, model, unit="aa", q=1.0, min_individuals=1)
    assert (found.cohort.has.sizes < 0.85 * 6_000).all()
    assert stats.kstest(randomised(found, found.cohort.has.sizes.astype(float)), "uniform").pvalue < 1e-4


@pytest.mark.slow
def test_what_is_planted_is_found(model, rows, table):
    with_them, texts = planted(rows, table)
    for options in ({}, {"unit": "aa"}):
        found = shared_in(without_nucleotides(with_them), model, **options)
        hits = found.table.filter(pc.less_equal(found.table["q_value"], 0.05))
        assert {*texts} <= {*hits["junction_aa"].to_pylist()}
        assert len(hits) <= len(texts) + 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "mouse_tra"))
@pytest.mark.olga
def test_planted_of_every_locus_without_calls(name):
    """Rare sequences that four people have, as a list of CDR3s for each person."""
    model = load_model(name)
    table = drawn(model, 9_000, 17)
    values = hpcvdj.pgen(table.slice(8_000, 1_000), model, sequence="aa", genes="any", backend="cpu").to_pandas()
    rare = values.sort_values("pgen_aa")["junction_aa"].iloc[:6].str[1:-1].tolist()
    texts = [text[1:-1] for text in table["junction_aa"].to_pylist()]
    lists = {name: texts[2_000 * k : 2_000 * (k + 1)] + rare for k, name in enumerate("abcd")}
    found = shared_in(lists, model, unit="aa", genes="any", q=1.0)
    hits = found.table.filter(pc.less_equal(found.table["q_value"], 0.05))
    assert {*rare} <= {*hits["cdr3_aa"].to_pylist()}
    assert len(hits) <= len(rare) + 1


@pytest.mark.exhaustive
def test_what_is_not_known_is_said(model, table, tmp_path):
    part = without_nucleotides(table.slice(0, 12_000))
    path, target = tmp_path / "t.tsv", tmp_path / "o.tsv"
    write_table(path, part.to_batches(), overwrite=False)
    out, err = hpcvdj_command("sharing", path, "-m", model.name, "-o", target, "--draws", 2_000, "--q", 0.5)
    assert out.count("not known   for want of nucleotides: nucleotide variants, likely copies, pairs that share") == 1
    assert err.count("amino acids are read, from junction_aa: for nucleotides, all tables need") == 1
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    assert facts["sequence_field"] == "junction_aa"
    assert facts["not_available"] == list(WITHOUT_NUCLEOTIDES)
    assert [facts[name] for name in ("likely_copies", "max_pgen", "standing_out", "common_source")] == [None] * 4
    written = pd.read_csv(target, sep="\t", float_precision="round_trip")
    assert written[list(NULL)].isna().all(axis=None)
    assert len(written) > 0
    found = shared_in(part, model, draws=2_000, q=0.5)
    assert found.not_available == WITHOUT_NUCLEOTIDES
    assert found.likely_copies is None
    assert found.pairs is None
    assert found.table["p_value"].to_pylist() == written["p_value"].tolist()
    hpcvdj_command("report", target, "-o", tmp_path / "r.html")
    assert "Traceback" not in (tmp_path / "r.html").read_text()
    nucleotides = tmp_path / "n.tsv"
    write_table(nucleotides, table.slice(0, 12_000).to_batches(), overwrite=False)
    hpcvdj_command("sharing", nucleotides, "-m", model.name, "-o", target, "--draws", 2_000, "--q", 0.5, "--overwrite")
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    assert (facts["sequence_field"], facts["not_available"]) == ("junction", [])


def hostile():
    """The hostile rows in amino acids, and others that only amino acids can have."""
    from hpcvdj.recombination.alphabet import translate

    rows = [(who, v, j, translate([t.upper()])[0] or "CAS_F", n) for who, v, j, t, n in HOSTILE if t]
    others = ["CASXEQFF", "casseeff", "CAS~F", "CASS?F", "ASSEEF", "CASSEE", "CBSSF", "é"]
    rows += [("a", "TRBV9", "TRBJ2-1", text, 1) for text in (*others, "", "CASS EF", "C" * 65)]
    names = ("repertoire_id", "v_call", "j_call", "junction_aa", "duplicate_count")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def test_hostile_rows(model):
    found = shared_in(hostile(), model, min_individuals=1, q=0.5, draws=1_000)
    by_name = {own.name: own for own in found.cohort.individuals}
    assert by_name["a"].left_out == {
        "junction_aa with a symbol for several amino acids": 2,
        "junction_aa that is not productive": 2,
        "junction_aa with other letters than amino acids and symbols of the alphabet": 3,
        "junction_aa of a junction that is out of frame": 1,
        "no junction_aa": 1,
        "junction_aa longer than 64 amino acids": 1,
        "junction that another row of the individual has": 1,
    }
    assert by_name["a"].rows == 2
    given = hostile()["repertoire_id"].to_pylist()
    assert all(own.facts()["rows_read"] == given.count(name) for name, own in by_name.items())
    text = "CASSVEQFF"
    row = next(row for row in found.table.to_pylist() if row["v_call"] == "TRBV9" and row["junction_aa"] == text)
    assert row["individuals"] == "a,b,c"
    assert row["max_duplicate_count"] == 9
    assert found.cohort.has.reads.max() == 9


def test_copies_in_one_pair_refute_q(model):
    """The fit took them for selection: a narrow interval of q, and hundreds of hits, without a word."""
    people = {name: hpcvdj.generate(model, 3_000, seed=k, productive=True, backend="cpu").select(
        ["v_call", "j_call", "junction_aa"]) for k, name in enumerate("abcd")}  # fmt: skip
    clean = shared_in(people, model, draws=20_000)
    assert not clean.refuted
    copies = {**people, "b": pa.concat_tables([people["b"], people["a"].slice(0, 300)])}
    with pytest.warns(
        hpcvdj.HpcvdjWarning, match=r"a and b share \d{3}, far more than other pairs \(.* do not believe"
    ):
        found = shared_in(copies, model, draws=20_000)
    assert found.refuted
    lines = SharingQuestion(Naming(), SharingSettings()).summary(found)
    assert any(text.startswith("a and b share") for _, text in lines)
    # A number of individuals that should have many sequences has a line, though none was observed.
    shown = {int(head): text.split() for head, text in lines if head.strip().isdecimal()}
    expected = [k for k in range(1, 5) if found.observed[k] or found.expected[k] >= 0.5]
    assert max(shown) == max(2, *expected)


@pytest.mark.exhaustive
def test_refused(model, table, tmp_path):
    part = table.slice(0, 9_000)
    aa = without_nucleotides(part)
    with pytest.raises(InputError, match="unit='nt': the tables have amino acids only; give unit='vj-aa' or unit='aa'"):
        shared_in(aa, model, unit="nt", draws=1_000)
    with pytest.raises(InputError, match="genes='any': the unit vj-aa has V and J genes; give unit='aa'"):
        shared_in(aa, model, genes="any")
    with pytest.raises(InputError, match="genes must be one of"):
        shared_in(aa, model, genes="none", unit="aa")
    for name, own in (("a.tsv", part.drop_columns("junction_aa")), ("b.tsv", aa), ("c.tsv", part)):
        write_table(tmp_path / name, own.drop_columns("repertoire_id").to_batches(), overwrite=False)
    words = ("-m", model.name, "-o", tmp_path / "o.tsv", "--draws", 1_000)
    _, err = hpcvdj_command("sharing", tmp_path / "a.tsv", tmp_path / "b.tsv", *words, code=2)
    assert "b.tsv: has junction_aa, and " in error_line(err)
    assert "a.tsv has junction: give tables that all have nucleotides" in error_line(err)
    _, err = hpcvdj_command("contamination", tmp_path / "b.tsv", tmp_path / "c.tsv", *words, code=2)
    assert "b.tsv, line 1: no column junction; the table has amino acids only" in error_line(err)
    assert not (tmp_path / "o.tsv").exists()
    # Amino acids are what both have.
    _, err = hpcvdj_command("sharing", tmp_path / "b.tsv", tmp_path / "c.tsv", *words, "--q", 0.5)
    assert "amino acids are read, from junction_aa" in err


@pytest.mark.exhaustive
def test_individuals_in_memory(model, table):
    part = table.slice(0, 9_000)
    own = {
        "a": part.slice(0, 4_000).to_pandas().drop(columns=["junction", "repertoire_id"]),
        "b": part.slice(4_000, 4_000).drop_columns(["repertoire_id"]),
    }
    found = shared_in(own, model, draws=1_000, q=0.5)
    assert found.not_available == WITHOUT_NUCLEOTIDES
    lists = {"a": own["a"]["junction_aa"], "b": own["b"]["junction_aa"].to_pylist()}
    without = shared_in(lists, model, draws=1_000, q=0.5, unit="aa", genes="any")
    assert without.table.column_names[0] == "junction_aa"
    assert without.cohort.has.sizes.tolist() == [len({*texts}) for texts in lists.values()]
