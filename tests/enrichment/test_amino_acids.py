"""`hpcvdj enrich` of tables that have amino acids only."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.chance.clonotypes import distinct_junctions
from hpcvdj.enrichment import enrich as module
from hpcvdj.enrichment.enrich import WITHOUT_NUCLEOTIDES
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import open_backend
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.productive import productive_of
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.writers import write_table
from hpcvdj.runs.run import Run
from hpcvdj.values.compute import count_in_memory
from tests.commands import error_line, hpcvdj_command
from tests.dealt import dealt_of
from tests.enrichment.test_enrich import planted
from tests.loci import LOCI, exhaustive_but

RECOMBINATIONS = {"human_tra": 20_000, "human_trb": 40_000, "human_igk": 5_000, "human_igh": 40_000,
                  "mouse_tra": 20_000, "mouse_trb": 20_000}  # fmt: skip
"""Recombinations of each locus."""

KAPPA_DRAWS = {"human_tra": 10_000, "human_trb": 40_000, "human_igk": 1_500, "human_igh": 60_000, "mouse_tra": 6_000,
               "mouse_trb": 12_000}  # fmt: skip
"""Productive junctions of each locus: so many that some have neighbours, and so few that hardly any is drawn twice."""

COLUMNS = PGEN_COLUMNS[1:]

NAMES = ["sequence_id", "v_call", "j_call", "junction"]

pytestmark = [
    pytest.mark.filterwarnings("ignore::hpcvdj.errors.HpcvdjWarning"),
    pytest.mark.olga,
]


def drawn(model, number, seed=11):
    rows = hpcvdj.generate(model, number, seed=seed, productive=True, backend="cpu")
    return rows.select([*NAMES, "junction_aa"])


def one_spelling(table):
    """The first row of each clonotype."""
    columns = [table[name].to_pylist() for name in ("v_call", "j_call", "junction_aa")]
    names = [[value.partition("*")[0] for value in column] for column in columns]
    keys = ["|".join(own) for own in zip(*names, strict=True)]
    return table.take(np.sort(np.unique(keys, return_index=True)[1]))


@pytest.fixture(scope="module")
def rows():
    return drawn("human_trb", 24_000)


@pytest.fixture(scope="module")
def with_planted(rows):
    """Rows with clusters, in which no clonotype has two nucleotide junctions, and no read count."""
    table, centres = planted(load_model("human_trb"), rows.select(NAMES), clusters=4)
    table = hpcvdj.pgen(table, "human_trb", sequence="aa", backend="cpu").select(NAMES)
    from hpcvdj.recombination.alphabet import translate

    table = table.append_column("junction_aa", pa.array(translate(table["junction"].to_pylist())))
    return one_spelling(table), centres


def enriched(table, model="human_trb", **options):
    return hpcvdj.enrich(table, model, backend="cpu", **options)


def test_the_variants_of_amino_acids_are_not_known():
    table = pa.table({
        "v_call": ["TRBV9"] * 4, "j_call": ["TRBJ1-1"] * 4,
        "junction_aa": ["CASSVAGEAFF", "CASSVSGEAFF", "CASSVTGEAFF", "CASSLTGEAFF"],
    })  # fmt: skip
    found = enriched(table, kappa=1.0, min_neighbours=2)
    assert found.table["nt_variants"].to_pylist() == [None] * 3
    assert found.not_available == WITHOUT_NUCLEOTIDES


@pytest.mark.slow
def test_nearly_the_same_as_with_nucleotides_where_each_clonotype_has_one(with_planted):
    """All that does not tell what a clonotype is to itself, to the last digit."""
    table, centres = with_planted
    nt, found = enriched(table, kappa=1.0), enriched(table.drop_columns("junction"), kappa=1.0)
    assert (nt.not_available, found.not_available) == ((), WITHOUT_NUCLEOTIDES)
    clonotype = ["v_call", "j_call", "junction_aa"]
    both = found.table.join(nt.table, clonotype, right_suffix="_nt", join_type="full outer")
    assert len(both) == len(found.table) == len(nt.table) > 10
    assert both["nt_variants"].null_count == len(both)
    of = {name: both[name].to_numpy() for name in both.column_names if name not in clonotype}
    for name in ("neighbours", "class_size", "pgen_aa", "pgen_ball", "p_productive_vj"):
        np.testing.assert_array_equal(of[name], of[name + "_nt"])
    np.testing.assert_array_equal(of["pgen_itself"], of["pgen_aa"])
    assert (of["pgen_itself_nt"] < of["pgen_aa"]).all()
    for end in ("", "_nt"):
        rate = (of["pgen_ball"] - of["pgen_itself" + end]) / of["p_productive_vj"]
        np.testing.assert_allclose(of["expected" + end], (of["class_size"] - 1) * rate, rtol=1e-12)
    hits = found.table.filter(pc.less_equal(found.table["q_value"], 0.001))
    assert {*centres} <= {*hits["junction_aa"].to_pylist()}


@pytest.mark.slow
def test_the_same_as_with_nucleotides_against_a_control(with_planted):
    table, _ = with_planted
    control = one_spelling(drawn("human_trb", 24_000, 5))
    nt = enriched(table, control=control).table
    found = enriched(table.drop_columns("junction"), control=control.drop_columns("junction")).table
    assert found.drop_columns("nt_variants").equals(nt.drop_columns("nt_variants"))
    assert len(found) > 10


@pytest.mark.slow
@pytest.mark.parametrize("sequence", ["junction", "junction_aa"])
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "mouse_trb"))
def test_kappa_of_drawn_junctions(name, sequence):
    """1, but for the recombinations that junctions which are drawn twice hide."""
    model = load_model(name)
    table = drawn(model, KAPPA_DRAWS[name], seed=3).select(["v_call", "j_call", sequence])
    kappa = enriched(table, model).estimate
    assert kappa.low < 1.05, "too many neighbours"
    assert kappa.high > 1, "too few"


@pytest.mark.slow
@pytest.mark.parametrize("genes", ["call", "any"])
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "mouse_tra"))
def test_calibrated_on_what_recombination_makes(name, genes):
    """P-values are uniform, or, where one recombination in many is repeated, too large."""
    model = load_model(name)
    reading = productive_reading(["junction_aa"], genes=genes)
    own = distinct_junctions(
        dealt_of(read_table(drawn(model, RECOMBINATIONS[name]), model, reading), model).whole
    ).clonotypes()
    assert not own.nucleotides
    places = module.Places.of(own, Run())
    neighbours, *_ = module._counted(own, places, EnrichmentSettings(kappa=1.0), open_backend("cpu"))
    some = np.sort(np.random.default_rng(2).permutation(len(own))[:2_000])
    problem = PgenProblem(own.repertoire.subset(some), model, COLUMNS)
    aa, ball = count_in_memory(problem, PgenConfig(COLUMNS, backend="cpu"), Run()).T
    expected = (places.size[some] - 1) * (ball - aa) / productive_of(model, own.classes)[own.kind[some]]
    expected *= module.statistics.selection_factor(neighbours[some], expected, own.variants[some]).value
    above, at = stats.poisson.sf(neighbours[some], expected), stats.poisson.pmf(neighbours[some], expected)
    p = above + np.random.default_rng(1).random(len(at)) * at
    assert stats.kstest(p, "uniform", alternative="greater").pvalue > 1e-3, "p-values that are too small"
    assert module.benjamini_hochberg(p, len(p)).min() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_trb"))
def test_what_is_planted_is_found(name):
    """Eight sequences around a rare one; with genes, and in a list of CDR3s."""
    model = load_model(name)
    table = drawn(model, 6_000, 7).select(NAMES)
    with_them, centres = planted(model, pa.concat_tables([table] * 4).slice(0, 22_000), clusters=3)
    assert len(centres) == 3
    from hpcvdj.recombination.alphabet import translate

    texts = translate(with_them["junction"].to_pylist())
    amino = with_them.drop_columns("junction").append_column("junction_aa", pa.array(texts))
    found = enriched(amino, model, kappa=1.0)
    hits = found.table.filter(pc.less_equal(found.table["q_value"], 0.001))
    assert {*centres} <= {*hits["junction_aa"].to_pylist()}
    assert len(hits) <= 3 * 9
    listed = enriched(pa.table({"cdr3_aa": [text[1:-1] for text in texts]}), model, kappa=1.0, genes="any")
    hits = listed.table.filter(pc.less_equal(listed.table["q_value"], 0.001))
    assert {text[1:-1] for text in centres} <= {*hits["cdr3_aa"].to_pylist()}
    assert {*hits["v_call"].to_pylist()} == {"any"}


@pytest.mark.slow
def test_misread_junctions_cannot_be_told_and_that_is_said(rows, tmp_path):
    """A copy with one base exchanged and few reads takes part; its reads are those of the clonotype."""
    part = rows.slice(0, 2_000)
    reads = np.full(len(part), 2)
    reads[0] = 900
    text = part["junction"][0].as_py()
    place = len(text) // 2
    misread = [text[:place] + base + text[place + 1 :] for base in "ACGT" if base != text[place]]
    from hpcvdj.recombination.alphabet import translate

    added = pa.table({
        "sequence_id": [f"m{k}" for k in range(3)], "v_call": [part["v_call"][0].as_py()] * 3,
        "j_call": [part["j_call"][0].as_py()] * 3, "junction": misread, "junction_aa": translate(misread),
    })  # fmt: skip
    table = pa.concat_tables([part, added.cast(part.schema)]).append_column(
        "duplicate_count", pa.array([*reads.tolist(), 1, 1, 1])
    )
    path, target = tmp_path / "t.tsv", tmp_path / "o.tsv"
    write_table(path, table.drop_columns("junction").to_batches(), overwrite=False)
    out, err = hpcvdj_command("enrich", path, "-m", "human_trb", "-o", target, "--kappa", 1, "--min-neighbours", 1)
    assert "not known  for want of nucleotides: likely sequencing errors, nucleotide variants" in out
    assert err.count("amino acids only: likely sequencing errors cannot be told, and take part") == 1
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    assert (facts["not_available"], facts["sequence_field"]) == (list(WITHOUT_NUCLEOTIDES), "junction_aa")
    assert "likely sequencing errors" not in facts["rows_left_out"]
    assert facts["rows_read"] == 2_003
    distinct = len({*zip(*(table[name].to_pylist() for name in ("v_call", "j_call", "junction_aa")), strict=True)})
    assert facts["clonotypes"] == facts["junctions"] == pytest.approx(distinct, abs=5)
    options = ("--overwrite", "--min-reads", 2, "--kappa", 1, "--likely-errors")
    out, err = hpcvdj_command("enrich", path, "-m", "human_trb", "-o", target, *options)
    assert "cannot be told" not in err
    assert "fewer than 2 reads" in out


@pytest.mark.slow
def test_without_calls_all_junctions_are_one_class(rows):
    part = rows.slice(0, 3_000)
    found = enriched(part.select(["junction_aa"]), kappa=1.0, genes="any", min_neighbours=1)
    same = enriched(part["junction_aa"].to_pandas().to_frame(), kappa=1.0, genes="any", min_neighbours=1)
    assert found.table.equals(same.table)
    texts = {*part["junction_aa"].to_pylist()}
    assert found.table["class_size"].to_pylist() == [len(texts)] * len(found.table)
    for row in found.table.slice(0, 20).to_pylist():
        own = row["junction_aa"]
        near = sum(len(one) == len(own) and sum(a != b for a, b in zip(own, one, strict=True)) == 1 for one in texts)
        assert row["neighbours"] == near
    p = hpcvdj.pgen(found.table["junction_aa"].to_pylist(), "human_trb", genes="any", mismatches=1, backend="cpu")
    np.testing.assert_allclose(found.table["pgen_ball"], p["pgen_aa_1mm"], rtol=1e-12)


def test_refused(rows, tmp_path):
    with pytest.raises(InputError, match="no column v_call, j_call"):
        enriched(rows.select(["junction_aa"]))
    with pytest.raises(InputError, match="no clonotype is left"):
        enriched(pa.table({"junction_aa": ["CAXF", "CA*F", ""]}), genes="any", force=True)
    (tmp_path / "a.txt").write_text("\n".join(rows["junction_aa"].to_pylist()[:300]))
    _, err = hpcvdj_command("enrich", tmp_path / "a.txt", "-m", "human_trb", "-o", tmp_path / "o.tsv", code=2)
    assert "a list of junction_aa has no v_call, j_call" in error_line(err)
    words = ("-m", "human_trb", "-o", tmp_path / "o.tsv", "--genes", "any", "--kappa", 1)
    hpcvdj_command("enrich", tmp_path / "a.txt", *words)
    assert (tmp_path / "o.tsv.json").exists()
