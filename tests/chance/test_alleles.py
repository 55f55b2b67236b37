"""Alleles that a model lacks, never makes, or hardly ever chooses; and genes that count as one."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance import check
from hpcvdj.chance.check import OF_RARE_ALLELE
from hpcvdj.chance.settings import Checks
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import InputError
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.models import twin_genes
from tests.asked import enrich_table, warnings_said
from tests.chance.test_calls import with_allele
from tests.chance.test_fit import findings, fit_of, renamed, rows_of


def test_genes_whose_bases_before_the_junction_are_unknown_are_not_told_apart(model):
    """Of a model from a germline table, TRBV2 and TRBV6-1 counted as one, as the ends of their junctions are equal."""
    assert twin_genes(model.v) == []
    with pytest.raises(InputError, match=r"ties='auto' compares the 100 bases .* this model does not have them; leave"):
        model.with_ties()
    before, inside = "ACGT" * 30, "TGTGCC"

    def tied(sequence, more=""):
        """The groups of a gene with all bases and another one."""
        genes = {"A*01": (before + inside, inside), "B*01": (sequence + inside + more, inside + more)}
        return twin_genes([
            replace(model.v[0], allele=name, sequence=whole, segment=segment)
            for name, (whole, segment) in genes.items()
        ])  # fmt: skip

    assert tied(before) == tied(before[-100:], "A") == tied("N" + before[-100:]) == [("A", "B")]
    for other in (before[-99:], "N" * 20 + before[20:][-99:], "NNN", "", "T" + before[-99:], before[:-1] + "A"):
        assert tied(other) == []


@pytest.mark.olga
def test_only_genes_that_reads_hardly_tell_apart_count_as_one():
    model = load_model("human_trb")
    tied, of_gene = model.with_ties(), {}
    for k, template in enumerate(model.v):
        of_gene.setdefault(template.allele.partition("*")[0], []).append(k)
    for name in [*of_gene, *(template.allele for template in model.v)]:
        group = next((genes for genes in tied.ties if name.partition("*")[0] in genes), None)
        wanted = model.find("V", name) if group is None else tuple(sorted(k for gene in group for k in of_gene[gene]))
        assert tied.find("V", name) == wanted
    assert any(len(of_gene[name]) > 1 for name in of_gene if not any(name in genes for genes in tied.ties))


@pytest.mark.exhaustive
@pytest.mark.olga
def test_genes_called_by_habit():
    model = load_model("human_trb")
    assert ("TRBV12-3", "TRBV12-4") in twin_genes(model.v)
    assert ("TRBV6-2", "TRBV6-3") in twin_genes(model.v)
    table = renamed(rows_of(model), "v_call", lambda call: call.replace("TRBV12-3", "TRBV12-4").partition("*")[0])
    fit = fit_of(table, model)
    assert findings(fit) == {"TRBV12-4": "habit"}
    assert fit.genes[0].twins == ("TRBV12-3",)
    assert "(ties='auto', of commands that have it, takes them together)" in fit.lines()[0]
    tied = Checks(ties="auto").adapted(model)
    assert findings(fit_of(table, tied)) == {}
    rows = table.slice(0, 400)
    of_both = hpcvdj.pgen(rows, tied, sequence="nt", backend="cpu")["pgen_nt"].to_numpy()
    for k, call in enumerate(rows["v_call"].to_pylist()):
        group = next((genes for genes in model.with_ties().ties if call in genes), (call,))
        each = [rows.slice(k, 1).set_column(0, "v_call", pa.array([gene])) for gene in group]
        alone = sum(hpcvdj.pgen(own, model, sequence="nt", backend="cpu")["pgen_nt"][0].as_py() for own in each)
        assert of_both[k] == pytest.approx(alone, rel=1e-12)
    # Genes that count as one with no other are not affected: their alleles are told apart.
    drawn = rows_of(model).slice(0, 400)
    apart = [not any(call.partition("*")[0] in genes for genes in tied.ties) for call in drawn["v_call"].to_pylist()]
    with_ties, without = (
        hpcvdj.pgen(drawn, own, sequence="nt", backend="cpu")["pgen_nt"].to_numpy() for own in (tied, model)
    )
    assert sum(apart) > 200
    assert (with_ties[apart] == without[apart]).all()
    assert tied.facts()["ties"] != ""
    assert "ties" not in model.facts()
    assert tied.names_several("TRBV12-3*01,TRBV9*01")
    assert not tied.names_several("TRBV12-3*01,TRBV12-4*02")
    assert model.names_several("TRBV12-3,TRBV12-4")


@pytest.fixture
def few_draws(monkeypatch):
    """Draws are not what these tests are about."""
    monkeypatch.setattr(check, "DRAWN", 20_000)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.slow
def test_alleles_that_the_model_lacks_are_named(model):
    """A third of the rows has them; `missing_alleles` takes their genes, with the probability of a call of the gene."""
    table = rows_of(model, 300, productive=True)
    of_genes = renamed(table, "v_call", lambda call: call.partition("*")[0])
    number = iter(range(len(table)))
    lacking = renamed(of_genes, "v_call", lambda call: call if next(number) % 3 else f"{call}*99")
    line = "100 of 300 rows have alleles that the model lacks, of genes that it has: missing_alleles='gene' takes all"
    assert any(line in said for said in fit_of(lacking, model).lines())
    assert not any("alleles that the model lacks, of" in said for said in fit_of(lacking.slice(1, 8), model).lines())
    by_gene = Checks(missing_alleles="gene").adapted(model)
    assert fit_of(lacking, by_gene).lines() == fit_of(of_genes, by_gene).lines() == fit_of(of_genes, model).lines()
    expected = hpcvdj.pgen(of_genes, model, backend="cpu")["pgen_nt"].to_pylist()
    assert hpcvdj.pgen(lacking, model, missing_alleles="gene", backend="cpu")["pgen_nt"].to_pylist() == expected
    excluded = hpcvdj.pgen(lacking, model, backend="cpu")["pgen_excluded"].to_pylist()
    assert [bool(reason) for reason in excluded] == [not k % 3 for k in range(300)]


def test_each_name_of_a_tie_is_taken_for_its_own_gene(model):
    """`missing_alleles` took a tie for its first gene, also if no allele was missing."""
    by_gene = replace(model, by_gene=True)
    kept = ["TRBV7-2*01,TRBV7-3*01", "TRBV7-2*01,TRBV99", "TRBV7-2*01,TRAV1-1", "TRBV99*01", "TRBV7-2,TRBV9*01"]
    for segment, call in (*(("V", call) for call in kept), ("J", "TRBJ1-2*01,TRBJ1-1*01")):
        assert by_gene.resolve(segment, call) == model.resolve(segment, call)
        assert by_gene.lacks(segment, call) == model.lacks(segment, call)
    found = by_gene.resolve("V", "TRBV7-2*01,TRBV7-3*99,TRBV9*01")
    assert {*found.allele.split(",")} == {
        "TRBV7-2*01", "TRBV9*01", *(own.allele for own in model.v if own.allele.startswith("TRBV7-3*")),
    }  # fmt: skip
    table = rows_of(model, 3, productive=True).select(["j_call", "junction"])
    called = {call: table.append_column("v_call", pa.array([call] * 3)) for call in (found.allele, *kept[:1])}
    for call, tie in called.items():
        each = [tie.set_column(2, "v_call", pa.array([name] * 3)) for name in call.split(",")]
        alone = sum(np.array(hpcvdj.pgen(own, model, backend="cpu")["pgen_aa"]) for own in each)
        values = hpcvdj.pgen(tie, model, missing_alleles="gene", backend="cpu")["pgen_aa"]
        np.testing.assert_allclose(values, alone, rtol=1e-12)


@pytest.mark.parametrize("options", [{"ties": "auto"}, {"missing_alleles": "gene"}])
def test_options_about_genes_need_calls(model, options):
    table, options = rows_of(model, 30, productive=True), {**options, "backend": "cpu"}
    known = {"junction_aa": ["CASSF"], "v_call": ["TRBV9"], "j_call": ["TRBJ1-1"], "epitope": ["A"]}
    ask = (
        lambda: hpcvdj.pgen(table, model, genes="any", **options),
        lambda: hpcvdj.enrich(table, model, genes="any", **options),
        lambda: hpcvdj.sharing({"a": table, "b": table}, model, unit="aa", genes="any", **options),
        lambda: hpcvdj.annotate(table, pa.table(known), model, match="none", **options),
    )
    for asked in ask:
        with pytest.raises(InputError, match=r"='(auto|gene)': no V and J calls are read; leave it out"):
            asked()


@pytest.mark.usefixtures("few_draws")
@pytest.mark.slow
def test_alleles_that_the_model_never_makes_are_named(model):
    """Their rows have probability 0, as in OLGA; `missing_alleles` takes all alleles of the gene."""
    names = [template.allele for template in model.v]
    made = model.contributing("V")
    dropped = next(k for k in made if len(set(model.of_gene("V", names[k])).intersection(made)) > 1)
    without = replace(model, p_v=np.where(np.arange(len(names)) == dropped, 0, model.p_v), name="without")
    gene = names[dropped].partition("*")[0]
    table = rows_of(model, 3_000, productive=True)
    called = renamed(table, "v_call", lambda call: names[dropped] if call.partition("*")[0] == gene else call)
    of_genes = renamed(table, "v_call", lambda call: gene if call.partition("*")[0] == gene else call)
    has = [call == names[dropped] for call in called["v_call"].to_pylist()]
    line = (
        f"{sum(has)} of the rows that were checked have alleles that the model (nearly) never makes, of genes that it "
        f"makes: {names[dropped]} ({sum(has)}); their probability is 0, or far too small: missing_alleles='gene' takes "
        "all alleles of the gene"
    )
    assert sum(has) > 9
    assert fit_of(called, without).lines_of_alleles() == [line]
    assert fit_of(called, model).lines_of_alleles() == fit_of(of_genes, without).lines_of_alleles() == []
    # Commands that take all alleles of a gene are right, and say nothing.
    with warnings_said() as said:
        hpcvdj.enrich(called, without, kappa=1.0, backend="cpu")
        assert line not in said
        hpcvdj.pgen(called, without, backend="cpu")
    assert line in said
    values = hpcvdj.pgen(called, without, backend="cpu")["pgen_nt"].to_pylist()
    assert [value == 0 for value in values] == has
    expected = hpcvdj.pgen(of_genes, without, backend="cpu")["pgen_nt"].to_pylist()
    assert hpcvdj.pgen(called, without, missing_alleles="gene", backend="cpu")["pgen_nt"].to_pylist() == expected
    assert fit_of(called, replace(without, by_gene=True)).lines_of_alleles() == []
    for share, found in ((1e-7, True), (1e-5, False)):
        most = model.p_v[list(model.of_gene("V", names[dropped]))].max()
        rare = replace(model, p_v=np.where(np.arange(len(names)) == dropped, share * most, model.p_v), name="rare")
        assert bool(fit_of(called, rare).lines_of_alleles()) == found
        assert (rare.of_gene("V", names[dropped]) == replace(rare, by_gene=True).find("V", names[dropped])) == found
    of_gene = np.isin(np.arange(len(names)), model.of_gene("V", names[dropped]))
    nobody = replace(model, p_v=np.where(of_gene, 0, model.p_v))
    assert nobody.of_gene("V", names[dropped]) == ()


@pytest.mark.slow
@pytest.mark.olga
def test_an_allele_that_the_model_hardly_chooses(model):
    """A donor with TRBJ2-7*02, whose junctions end with Val: the model chooses it for 0.03 % of the gene."""
    olga = load_model("human_trb")
    rows = rows_of(with_allele(olga, "J", "TRBJ2-7*02"), 6_000, productive=True)
    rows = renamed(rows, "j_call", lambda call: call.partition("*")[0])
    fit = fit_of(rows, olga)
    ((name, number, of),) = fit.rare_alleles
    assert name == "TRBJ2-7*02"
    assert number > 0.8 * of > 500
    assert fit.facts()["fit"]["alleles"] == [(name, number, of)]
    (line,) = (line for line in fit.lines() if line.startswith("TRBJ2-7*02: only this allele makes "))
    assert "the probabilities of these rows are too low; tests that" in line
    normal = fit_of(rows_of(olga, 6_000, productive=True), olga)
    assert normal.rare_alleles == []
    found = enrich_table(rows, olga, EnrichmentSettings(max_q=0.05, backend="cpu"))
    assert found.hits == 0
    assert found.not_tested[OF_RARE_ALLELE] > 0
