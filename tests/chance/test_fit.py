"""hpcvdj.chance.fit and check: drawn junctions fit their model; a gene, a length, a call or a species that does not."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance.check import check_fit, likely_of_length, limits_of
from hpcvdj.chance.first_rows import other_amino_acids
from hpcvdj.chance.fit import BROKEN, MISFIT, GeneFit, Side, at_least, compare, truncated_genes
from hpcvdj.chance.model_fit import ModelFit
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.alphabet import reverse_complement
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.models import Template
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.reading import Reading, reading_of
from hpcvdj.repertoires.table import table_at
from tests.asked import sample_of_table
from tests.loci import exhaustive_but

COLUMNS = ["v_call", "j_call", "junction"]


def rows_of(model, number=20_000, seed=5, *, productive=False):
    return hpcvdj.generate(model, number, seed=seed, productive=productive, backend="cpu").select(COLUMNS)


def fit_of(table, model):
    return check_fit(sample_of_table(table, model, PgenConfig().reads(Reading())), model)


def findings(fit):
    return {own.gene: own.finding for own in fit.genes}


def renamed(table, column, change):
    values = [change(value) for value in table[column].to_pylist()]
    return table.set_column(table.column_names.index(column), column, pa.array(values))


TRUNCATED = {
    "human_tra": {"TRAV7"}, "human_trb": set(), "human_igk": {"IGKV5-2"}, "mouse_trb": set(),
    "human_igh": {"IGHV1-69-2", "IGHV2-26", "IGHV3-19", "IGHV3-69-1", "IGHV3-NL1"},
    "mouse_tra": {"TRAV9-2", "TRAV9N-2", "TRAJ24"},
}  # fmt: skip
"""Genes of which OLGA's models know no deletions: of truncated sequences, and of some that are hardly ever chosen."""


@pytest.mark.olga
@pytest.mark.parametrize("name", TRUNCATED)
def test_truncated_genes(name):
    model = load_model(name)
    assert truncated_genes(model, "V") | truncated_genes(model, "J") == TRUNCATED[name]


@pytest.mark.slow
@pytest.mark.olga
@pytest.mark.parametrize("name", exhaustive_but(TRUNCATED, "human_trb", "human_igk"))
def test_what_a_model_makes_fits_it(name):
    model = load_model(name)
    for productive in (False, True):
        rows = rows_of(model, productive=productive)
        whole = [not {v.partition("*")[0], j.partition("*")[0]} & TRUNCATED[name]
                 for v, j in zip(*(rows[column].to_pylist() for column in COLUMNS[:2]), strict=True)]  # fmt: skip
        # Without rows, a gene is not called truncated.
        assert "truncated" not in findings(fit_of(rows.filter(pa.array(whole)), model)).values()
        calls = [call.partition("*")[0] for call in rows["v_call"].to_pylist()]
        commonest = max(sorted(set(calls)), key=calls.count)
        lacking = fit_of(rows.filter(pa.array([gene != commonest for gene in calls])), model).genes
        # Its twin is too common, if reads hardly tell it from one.
        assert any((own.gene, own.finding) == (commonest, "usage") or commonest in own.twins for own in lacking)
        fit = fit_of(rows, model)
        assert fit.compared
        assert (fit.lengths, fit.contradicted, fit.better, fit.impossible) == ((), (), None, 0)
        truncated = {own.gene: own.finding for own in fit.genes}
        assert truncated == {gene: "truncated" for gene in TRUNCATED[name] if gene in truncated}
        assert fit.broken == truncated.keys()
        # The others are too rare to be worth a line.
        assert len(fit.lines()) == (name == "mouse_tra")


def test_few_rows_of_a_truncated_gene_are_not_worth_a_line():
    """One row of such a gene was a line of every command; the gene is left out as before."""
    for rows, said in ((1, False), (50, False), (51, True)):
        gene = GeneFit("V", "TRAV7", rows, 0.0, 0.0, 0.0, rows / 10_000, 2e-5, "productive", "truncated")
        fit = ModelFit(rows=10_000, genes=(gene,), compared=True)
        assert fit.broken == {"TRAV7"}
        assert [line.startswith(f"TRAV7: {rows} rows, and") for line in fit.lines()] == [True] * said


def with_segment(model, gene, change):
    """The model, in which the segments of a V gene are changed."""

    def changed(own):
        if own.allele.partition("*")[0] != gene:
            return own
        palindrome = len(own.extended) - len(own.segment)
        segment = change(own.segment)
        return Template(own.allele, segment, segment, segment + reverse_complement(segment[-palindrome:]))

    return replace(model, v=tuple(map(changed, model.v)), digest="changed")


@pytest.mark.slow
def test_a_gene_that_is_reversed(model):
    """As OLGA's mouse TRBV31: a junction that begins with TGT becomes 10^5 times too improbable or worse."""
    reversed_gene = with_segment(model, "TRBV5-1", lambda segment: segment[:1] + reverse_complement(segment[1:]))
    fit = fit_of(rows_of(model, productive=True), reversed_gene)
    assert findings(fit)["TRBV5-1"] == "broken"
    assert fit.broken == {"TRBV5-1"}
    assert set(findings(fit)) == {"TRBV5-1"}
    (own,) = fit.genes
    assert own.log10_shift < -5
    assert "leave it out" in fit.lines()[0]
    assert replace(fit, keep_misfits=True).broken == frozenset()


@pytest.mark.slow
@pytest.mark.olga
def test_deletions_that_the_model_lacks():
    """Many of the junctions of a gene are improbable: it fails, and takes part."""
    model = load_model("human_trb")
    deletions = model.v_deletions.copy()
    for k in range(len(model.v)):
        if model.v[k].allele.startswith("TRBV7-9*"):
            deletions[k, :12] = 0.0
    fit = fit_of(rows_of(model, productive=True), replace(model, v_deletions=deletions, digest="changed"))
    assert findings(fit)["TRBV7-9"] in ("improbable", "broken")
    own = next(own for own in fit.genes if own.gene == "TRBV7-9")
    assert own.log10_shift < -2


@pytest.mark.slow
def test_usage_and_lengths(model):
    table = rows_of(model, 30_000)
    texts = table["junction"].to_pylist()
    few = pa.array([v != "TRBV5-1*01" or k % 40 == 0 for k, v in enumerate(table["v_call"].to_pylist())])
    fit = fit_of(table.filter(few), model)
    assert findings(fit).get("TRBV5-1") == "usage"
    assert next(own for own in fit.genes if own.gene == "TRBV5-1").frame == "out-of-frame"
    for gene in ("TRBV5-1", "TRBJ2-7"):
        column = f"{gene[3].lower()}_call"
        none = pa.array([not call.startswith(f"{gene}*") for call in table[column].to_pylist()])
        (absent,) = fit_of(table.filter(none), model).genes
        assert (absent.gene, absent.rows, absent.share, absent.finding) == (gene, 0, 0.0, "usage")
        assert (absent.zero, absent.improbable, absent.log10_shift) == (0.0, 0.0, None)
        assert str(absent).startswith(f"{gene}: 0 % of the out-of-frame rows, ")
    short = pa.array([len(text) != 44 or k % 50 == 0 for k, text in enumerate(texts)])
    assert [own.nucleotides for own in fit_of(table.filter(short), model).lengths] == [44]
    in_frame = pa.array([len(text) % 3 == 0 for text in texts])
    fit = fit_of(table.filter(pa.array(np.array(few) & np.array(in_frame))), model)
    assert {own.frame for own in fit.genes} == {"productive"}


def test_amino_acids_of_other_rows(tmp_path):
    """As a column that was sorted alone; the nucleotides of rows out of frame and of stop codons say nothing."""
    rows = hpcvdj.generate("human_trb_m15", 200, seed=1, backend="cpu").to_pylist()
    texts = hpcvdj.translate([row["junction"] for row in rows])
    right = [text or "no frame" if "*" not in text else "stop" for text in texts]

    def lines(name, spelled):
        path = tmp_path / name
        columns = [[row[name] for row in rows] for name in ("v_call", "j_call", "junction")]
        table = zip(*columns, spelled, strict=True)
        path.write_text("\n".join(map("\t".join, [("v_call", "j_call", "junction", "junction_aa"), *table])) + "\n")
        return list(other_amino_acids([table_at(path)]))

    assert lines("right.tsv", right) == []
    assert lines("small.tsv", [text.lower() for text in right]) == []
    (line,) = lines("sorted.tsv", sorted(right))
    assert "sorted.tsv: junction_aa is not the translation of junction in" in line
    compared = sum(bool(text) and "*" not in text for text in texts)
    assert f"of the first {compared} rows" in line
    # A few may be spelled in another way.
    assert lines("few.tsv", ["X" if k == 0 else text for k, text in enumerate(right)]) == []


@pytest.mark.slow
def test_calls_of_several_genes_may_be_any_of_them(model):
    """Each of such names, and each gene that they name, was a misfit: the model makes no junction of two genes."""
    table = rows_of(model, 30_000)
    tied = {"TRBV5-1*01": "TRBV5-1*01,TRBV7-9*01", "TRBV7-9*01": "TRBV5-1*01,TRBV7-9*01"}
    assert not findings(fit_of(renamed(table, "v_call", lambda call: tied.get(call, call)), model))
    # Of more than the model makes of both together, it is one.
    names = table["v_call"].to_pylist()
    fit = fit_of(renamed(table, "v_call", lambda call: call if call < "TRBV4" else tied["TRBV5-1*01"]), model)
    assert sum(name < "TRBV4" for name in names) < len(names) / 2
    assert findings(fit)["TRBV5-1,TRBV7-9"] in ("usage", "broken", "improbable")


@pytest.mark.olga
def test_another_model_fits_better(model):
    fit = fit_of(rows_of(load_model("human_trb"), productive=True), model)
    assert fit.better[0] == "human_trb"
    assert fit.better[1] > 0.5
    assert fit.lines()[0].startswith("human_trb fits better")


@pytest.mark.slow
def test_amino_acids(model):
    table = hpcvdj.generate(model, 3_000, seed=5, productive=True, backend="cpu").select(
        ["v_call", "j_call", "junction_aa"]
    )
    reading = PgenConfig(("pgen_aa",)).reads(reading_of(table.column_names, None, None, strict=False))
    fit = check_fit(sample_of_table(table, model, reading), model)
    assert fit.compared
    assert fit.lines() == []
    assert fit.rows > 2_900


def test_wrong_calls_are_counted(model):
    table = rows_of(model, 4_000, productive=True)
    calls = table["j_call"].to_pylist()
    mixed = [calls[k - 1] if k % 10 == 0 else calls[k] for k in range(len(calls))]
    fit = fit_of(table.set_column(1, "j_call", pa.array(mixed)), model)
    side, number = fit.contradicted[0]
    assert side == "J"
    assert 200 < number < 400
    assert "contradicts the bases" in fit.lines()[-1]
    assert fit.facts()["fit"]["contradicted"] == dict(fit.contradicted)
    assert fit.facts()["fit"]["miscalled"] == fit.miscalled == sum(rows for _, rows in fit.contradicted)
    # Of so many right calls, one contradicts its bases by chance now and then.
    assert replace(fit, contradicted=(("J", 1),), calls=4_000).lines() == []
    assert replace(fit, contradicted=(("J", 2), ("V", 1)), calls=4_000).miscalled == 3


def by_hand(table, p, drawn, of_drawn, gene):
    """Of a gene: rows, share of them that are impossible, and below the draws' smallest hundredth."""
    own, made = p[table == gene], of_drawn[drawn == gene]
    smallest = np.quantile(np.log10(made if len(made) >= 300 else of_drawn), 0.01)
    with np.errstate(divide="ignore"):
        return len(own), float((own == 0).mean()), float((np.log10(own) < smallest).mean())


def test_numbers_by_hand(model):
    """Genes of made-up probabilities."""
    rng = np.random.default_rng(3)
    genes = [model.alleles("V", model.find("V", name)) for name in ("TRBV9", "TRBV2", "TRBV27")]
    names = [own.allele.partition("*")[0] for own in genes]
    j = model.alleles("J", model.find("J", "TRBJ2-1"))

    def side(sizes, shift):
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        number = int(offsets[-1])
        p = 10.0 ** (rng.normal(-12, 2, number) + shift)
        p[rng.random(number) < 0.02] = 0 if shift else 1e-12
        pairs = [(replace(own, allele=name), j) for own, name in zip(genes, names, strict=True)]
        own = Repertoire(np.zeros((number, 2), np.uint64), np.full(number, 42, np.uint8), pairs, offsets)
        return Side(own, p), np.repeat(names, sizes)

    empty = side([0, 0, 0], 0)[0]
    (own, of_own), (made, of_made) = side([500, 40, 20], -1.0), side([1_000, 200, 800], 0.0)
    found, _ = compare({"productive": own, "out-of-frame": empty}, {"productive": made, "out-of-frame": empty}, model)
    assert [fit.gene for fit in found] == [*sorted(names), "TRBJ2-1*01"] or len(found) == 4
    for fit in found[:3]:
        rows, zero, improbable = by_hand(of_own, own.p, of_made, made.p, fit.gene)
        assert (fit.rows, fit.zero, fit.improbable) == (rows, pytest.approx(zero), pytest.approx(improbable))
        assert fit.share == pytest.approx(rows / len(own))
        assert fit.model_share == pytest.approx((of_made == fit.gene).mean())
        assert (fit.finding in ("improbable", "broken")) == (
            rows >= 30 and at_least(round(improbable * rows), rows) >= MISFIT
        )
    assert 0 < MISFIT < BROKEN < 1


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (500, 1_000), (1, 100_000)])
def test_the_lower_end_of_a_share(successes, trials):
    """The smaller root of (p - share)² = 9 p (1 - p) / trials."""
    low, share = at_least(successes, trials), successes / trials
    assert (low - share) ** 2 == pytest.approx(9 * low * (1 - low) / trials, abs=1e-15)
    assert low <= share + 1e-15


def test_a_model_that_makes_no_productive_junction():
    """It was an IndexError."""
    model = load_model("human_trb_m15")
    none = replace(
        model, j=tuple(replace(own, segment="TAA" * 20, extended="TAA" * 20, p5=0) for own in model.j), digest="0"
    )
    assert limits_of(none, ("pgen_nt",)) == (0.0, 0.0)
    assert likely_of_length(none, ("pgen_nt",), 0.1).tolist() == [0.0] * 256


def renamed_rows(table, every):
    """One of `every` rows has the V call of the next of these."""
    calls = table["v_call"].to_pylist()
    calls[::every] = [*calls[::every][1:], calls[0]]
    return table.set_column(0, "v_call", pa.array(calls))
