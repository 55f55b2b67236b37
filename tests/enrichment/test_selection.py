"""`hpcvdj enrich` with the selection factor of a model."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance.settings import ClonotypeChoice
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.productive import productive_of, productive_probability
from hpcvdj.recombination.productive import with_factor as given_factor
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.repertoires.writers import write_table
from tests.asked import enrich_table
from tests.cli.test_mpiexec import MPIEXEC, launch
from tests.commands import hpcvdj_command
from tests.selected import V_ALLELES, few_genes, log_factor_of, with_factor

# Only of genes and lengths, which neighbours have in common, so that the factor at the centre is exact.
WEIGHTS = {f"V_length:{v.split('*')[0]}:{size}": 0.45 * (14 - size) for v in V_ALLELES for size in range(9, 20)}


@pytest.fixture(scope="module")
def model():
    return with_factor(few_genes(), WEIGHTS)


@pytest.fixture(scope="module")
def selected(model):
    return hpcvdj.generate(model, 12_000, seed=5, selection=True, backend="cpu")


def enriched(table, model, **settings):
    return enrich_table(table, model, EnrichmentSettings(backend="cpu", **settings), ClonotypeChoice())


@pytest.mark.slow
def test_calibrated_on_selected_draws_and_not_without_the_factor(selected, model):
    own, without = (enriched(selected, model, max_q=0.05, selection=given) for given in (True, False))
    assert own.kappa == pytest.approx(1, abs=0.1)
    assert all(kappa == pytest.approx(1, abs=0.3) for kappa in own.by_length.values())
    assert own.hits <= 2
    assert without.kappa > 1.25
    assert max(without.by_length.values()) > 1.5
    assert "q_factor" not in without.table.column_names
    # With one factor for all lengths in place of the model's, chance neighbourhoods are hits.
    assert enriched(selected, model, max_q=0.05, selection=False, kappa=1.0).hits > 50


@pytest.mark.slow
def test_the_factor_of_each_clonotype(selected, model):
    own = enriched(selected, model, kappa=1.0)
    without = {tuple(row[:3]): row[3] for row in rows_of(enriched(selected, model, kappa=1.0, selection=False))}
    assert len(own.table) > 100
    means = model.selection.means
    for row in own.table.slice(0, 100).to_pylist():
        genes = row["v_call"], row["j_call"]
        expected = np.exp(log_factor_of(model.selection, *genes, row["junction_aa"])) / means[genes]
        assert row["q_factor"] == pytest.approx(expected, rel=1e-12)
        plain = without[(*genes, row["junction_aa"])]
        assert row["expected"] == pytest.approx(plain * expected, rel=1e-12)


def rows_of(found):
    columns = ["v_call", "j_call", "junction_aa", "expected"]
    return zip(*(found.table[name].to_pylist() for name in columns), strict=True)


@pytest.mark.slow
def test_the_command(selected, model, tmp_path):
    hpcvdj.write_model(model, tmp_path / "model")
    write_table(tmp_path / "t.tsv", selected.to_batches(), overwrite=False)
    words = ["enrich", tmp_path / "t.tsv", "-m", tmp_path / "model", "--backend", "cpu"]
    for options, there in ((["--no-selection"], False), ([], True)):
        hpcvdj_command(*words, *options, "-o", tmp_path / f"{there}.tsv")
        assert ("q_factor" in (tmp_path / f"{there}.tsv").read_text().splitlines()[0].split()) == there


def test_probabilities_after_selection(selected, model, tmp_path):
    """`hpcvdj pgen --selection` against the definition."""
    rows = selected.slice(0, 60).select(["sequence_id", "v_call", "j_call", "junction"]).to_pylist()
    rows += hpcvdj.generate(model, 40, seed=8, backend="cpu").select(list(rows[0])).to_pylist()
    rows.append({**rows[0], "sequence_id": "several", "v_call": "TRBV9,TRBV5-1"})
    rows.append({**rows[0], "sequence_id": "gene", "v_call": "TRBV9"})
    rows.append({**rows[0], "sequence_id": "unknown", "v_call": "TRBV99"})
    rows.append({**rows[0], "sequence_id": "short", "junction": "TGT"})
    table = pa.Table.from_pylist(rows).append_column("n", pa.array(range(len(rows))))
    with pytest.warns(hpcvdj.HpcvdjWarning, match="TRBV99"):
        found = hpcvdj.pgen(table, model, selection=True, backend="cpu").to_pylist()
    productive = productive_probability(model)
    reasons = set()
    for row in found:
        text = hpcvdj.translate([row["junction"]])[0]
        if row["pgen_excluded"]:
            assert [row[name] for name in ("q_factor", "p_post", "q_excluded")] == [None] * 3
            continue
        reason = "" if len(text) > 1 and text[0] == "C" and text[-1] in "FVW" and "*" not in text else "not productive"
        reason = "out of frame" if len(row["junction"]) % 3 else reason
        reason = "several V or J genes" if row["sequence_id"] == "several" else reason
        reasons.add(reason)
        assert row["q_excluded"] == reason
        if reason:
            assert row["q_factor"] is None
            assert row["p_post"] is None
            continue
        q = np.exp(log_factor_of(model.selection, row["v_call"].split("*")[0], row["j_call"].split("*")[0], text))
        assert row["q_factor"] == pytest.approx(q, rel=1e-12)
        assert row["p_post"] == pytest.approx(row["pgen_aa"] * q / productive, rel=1e-12)
    assert reasons == {"", "not productive", "out of frame", "several V or J genes"}
    plain = hpcvdj.pgen(table.slice(0, 60), model, backend="cpu")
    assert [row["pgen_aa"] for row in found[:60]] == plain["pgen_aa"].to_pylist()
    # Among productive recombinations already: the same probability after selection.
    among = hpcvdj.pgen(table.slice(0, 60), model, selection=True, normalize="productive", backend="cpu")
    np.testing.assert_allclose(among["p_post"], [row["p_post"] for row in found[:60]], rtol=1e-12)
    amino_acids = pa.table({
        "v_call": ["TRBV9"] * 3, "j_call": ["TRBJ2-7"] * 3, "junction_aa": ["CASSYEQYF", "CASXYEQYF", "ASSYEQYF"],
    })  # fmt: skip
    own = hpcvdj.pgen(amino_acids, model, selection=True, backend="cpu")
    assert own["q_excluded"].to_pylist() == ["", "has symbols for several amino acids", "not productive"]
    q = np.exp(log_factor_of(model.selection, "TRBV9", "TRBJ2-7", "CASSYEQYF"))
    assert own["q_factor"].to_pylist() == [pytest.approx(q, rel=1e-12), None, None]
    with pytest.raises(hpcvdj.InputError, match=r"last amino acid \(Phe/Trp 118\) cdr3_aa lacks; give junction_aa"):
        hpcvdj.pgen(amino_acids.rename_columns(["v_call", "j_call", "cdr3_aa"]), model, selection=True, backend="cpu")


# Genes that reads hardly tell apart; the first is made fifteen times as often as the second.
TWINS = "TRBV12-3", "TRBV12-4"
TIED = (TWINS, ("TRBV5-4", "TRBV5-5", "TRBV5-6", "TRBV5-8"))


@pytest.fixture(scope="module")
def twins():
    weights = {"V_length:TRBV12-3:13": 2.0, "V_length:TRBV12-4:13": -1.5, "V_J:TRBV12-4:TRBJ2-7": 4.0, "left:3:S": 0.5}
    weights |= {f"V_J:TRBV5-{gene}:TRBJ2-1": 0.4 * gene for gene in (4, 5, 6)}
    model = load_model("human_trb_m15")
    alone = np.isin([own.allele.partition("*")[0] for own in model.v], sum(TIED, ()))
    few = replace(model, p_v=model.p_v * alone / model.p_v[alone].sum(), p_vdj=None)
    means = {(gene, "TRBJ2-7"): mean for gene, mean in zip(TWINS, (3.0, 0.5), strict=True)}
    return given_factor(few, SelectionFactor(weights, 0.0, -1.0, 3.0, means=means))


def test_tied_genes_have_the_sum_of_their_probabilities(twins):
    """It was the probability with any of them, times the mean of Q in which each gene counts the same."""
    drawn = hpcvdj.generate(twins, 60, seed=3, productive=True, backend="cpu")
    drawn = pa.concat_tables([drawn, hpcvdj.generate(twins, 10, seed=4, backend="cpu")])
    group = [next(own for own in TIED if call.partition("*")[0] in own) for call in drawn["v_call"].to_pylist()]
    row, gene = zip(*((k, gene) for k, own in enumerate(group) for gene in own), strict=True)

    def values(table, model):
        found = hpcvdj.pgen(table, model, selection=True, backend="cpu")
        return (np.array(found[name], dtype=float) for name in ("pgen_aa", "p_post", "q_factor"))

    for field in ("junction", "junction_aa"):
        table = drawn.select(["v_call", "j_call", field])
        pgen, post, q = values(table, replace(twins, ties=TIED))
        assert np.isfinite(q).sum() >= 60
        each = table.take(list(row)).set_column(0, "v_call", pa.array(gene))
        for tied, alone in zip((pgen, post), values(each, twins), strict=False):
            np.testing.assert_allclose(tied, [alone[np.equal(row, k)].sum() for k in range(70)], rtol=1e-12)
        np.testing.assert_allclose(q, post / pgen * productive_probability(twins), rtol=1e-12)


def test_the_mean_over_genes_is_weighted_by_their_usage(twins):
    factor, text = twins.selection, b"CASSLAPGTYEQYF"
    one_each = [np.array([0]), np.frombuffer(text, np.uint8)[np.newaxis], np.array([len(text)])]
    for j in ("TRBJ2-7", "TRBJ2-7,TRBJ1-1"):
        pairs = [(v, own) for v in TWINS for own in j.split(",")]
        chance = productive_of(twins, [tuple(map(twins.resolve, "VJ", pair)) for pair in pairs])
        q = [np.exp(log_factor_of(factor, *pair, text.decode())) for pair in pairs]
        logs = factor.log_factor([",".join(TWINS)], [j], *one_each)
        assert np.exp(logs[0]) == pytest.approx(chance @ q / chance.sum(), rel=1e-12)
        mean = factor.log_mean([",".join(TWINS)], [j])[0]
        weighted = np.log(sum(p * factor.means.get(pair, np.nan) for p, pair in zip(chance, pairs, strict=True)))
        np.testing.assert_allclose(mean, weighted - np.log(chance.sum()), rtol=1e-12)


@pytest.mark.slow
def test_who_makes_junctions_with_and_without_selection(selected, model):
    """Of few genes, some junctions anyone would make; each is judged by the definition."""
    table = pa.concat_tables(
        [selected, hpcvdj.generate(model, 20_000, seed=8, backend="cpu").select(selected.column_names)]
    )
    found = hpcvdj.pgen(table, model, selection=True, backend="cpu")
    made = json.loads(found.schema.metadata[b"hpcvdj"])["makers"]
    rows = [row for row in found.to_pylist() if row["q_excluded"] == ""]
    chance = productive_probability(model)
    assert made["recombinations"] == len(rows) < len(table)
    for name, divisor in (("pgen_nt", chance), ("pgen_aa", chance), ("p_post", 1)):
        shares = [-math.expm1(-len(rows) * row[name] / divisor) for row in rows]
        assert made["anyone"][name] == sum(share >= 0.5 for share in shares) > 0
        assert made["hardly_anybody"][name] == sum(share < 1e-6 for share in shares)
    assert made["anyone"]["pgen_aa"] != made["anyone"]["p_post"]
    assert made["hardly_anybody"]["pgen_nt"] > made["hardly_anybody"]["pgen_aa"]


def test_a_result_file_with_the_factor(selected, model, tmp_path):
    hpcvdj.write_model(model, tmp_path / "model")
    write_table(tmp_path / "t.tsv", selected.slice(0, 90).to_batches(), overwrite=False)
    words = ["pgen", tmp_path / "t.tsv", "-m", tmp_path / "model", "--selection", "--backend", "cpu"]
    out, _ = hpcvdj_command(*words, "-o", tmp_path / "o.tsv")
    assert "90 of 90 junctions have a selection factor" in out
    hpcvdj_command(*words, "-o", tmp_path / "o.h5")
    hpcvdj_command("export", tmp_path / "o.h5", "-o", tmp_path / "exported.tsv")
    hpcvdj_command(*words, "-o", tmp_path / "sliced.tsv", "--batch-rows", "17")
    assert (tmp_path / "o.tsv").read_bytes() == (tmp_path / "exported.tsv").read_bytes()
    assert (tmp_path / "o.tsv").read_bytes() == (tmp_path / "sliced.tsv").read_bytes()
    with hpcvdj.open(tmp_path / "o.h5") as result:
        assert result.to_table()["q_excluded"].to_pylist() == [""] * 90
        assert set(PGEN_COLUMNS[:2]) < set(result.to_table().column_names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence": "nt"}, "the factor is one of amino acids"),
        ({"genes": "any"}, "leave genes='any' out"),
        ({"joint": True}, "leave joint out"),
    ],
)
def test_what_has_no_factor_is_refused(selected, model, options, message):
    with pytest.raises(hpcvdj.InputError, match=message):
        hpcvdj.pgen(selected.slice(0, 3), model, selection=True, **options)
    with pytest.raises(hpcvdj.InputError, match="has no selection factor; infer one with hpcvdj infer-selection"):
        hpcvdj.pgen(selected.slice(0, 3), "human_trb_m15", selection=True)


@pytest.mark.exhaustive
@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
def test_ranks(selected, model, tmp_path):
    """No command that takes the factor into account writes other bytes on three ranks."""
    hpcvdj.write_model(model, tmp_path / "model")
    write_table(tmp_path / "t.tsv", selected.slice(0, 3_000).to_batches(), overwrite=False)
    given = ["-m", tmp_path / "model", "--backend", "cpu"]
    for words in (
        ["pgen", tmp_path / "t.tsv", *given, "--selection"],
        ["enrich", tmp_path / "t.tsv", *given],
        ["generate", *given, "--selection", "-n", "5000"],
    ):
        written = []
        for ranks in (1, 3):
            target = tmp_path / f"{words[0]}_{ranks}.tsv"
            done = launch(ranks, "-m", "hpcvdj", *words, "-o", target)
            assert done.returncode == 0, done.stderr
            written.append(target.read_bytes())
        assert len(set(written)) == 1, words[0]
