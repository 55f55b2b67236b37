"""`hpcvdj enrich` and `infer-selection` of tables that the model does not fit: faults are no discoveries."""

import json

import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance.check import BROKEN_GENE, CONTRADICTED_CALL
from hpcvdj.chance.model_fit import ModelFit
from hpcvdj.chance.settings import Checks
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.recombination.alphabet import reverse_complement
from hpcvdj.repertoires.writers import write_table
from tests.asked import enrich_table, warnings_said
from tests.chance.test_fit import rows_of, with_segment
from tests.commands import error_line, hpcvdj_command
from tests.selected import few_genes

SETTINGS = EnrichmentSettings(backend="cpu", max_q=0.05)


@pytest.fixture(scope="module")
def model():
    return few_genes()


@pytest.fixture(scope="module")
def table(model):
    return rows_of(model, 8_000, productive=True)


@pytest.fixture(scope="module")
def reversed_gene(model):
    """A model that makes junctions of TRBV5-1 wrongly, as OLGA's makes those of mouse TRBV31."""
    return with_segment(model, "TRBV5-1", lambda segment: segment[:1] + reverse_complement(segment[1:]))


def enriched(table, model, **checks):
    with warnings_said() as said:
        found = enrich_table(table, model, SETTINGS, checks=Checks(**checks))
    return found, "\n".join(said)


@pytest.mark.slow
def test_a_gene_that_the_model_makes_wrongly(table, model, reversed_gene):
    kept, _ = enriched(table, reversed_gene, keep_misfits=True)
    assert kept.hits > 10, "the fault that looks like a discovery"
    found, said = enriched(table, reversed_gene)
    assert found.hits == enriched(table, model)[0].hits == 0
    assert "TRBV5-1" not in found.table["v_call"].to_pylist()
    assert found.not_tested[BROKEN_GENE] > 50
    assert "leave it out" in said


@pytest.mark.slow
def test_calls_that_contradict_the_bases(table, model, monkeypatch):
    calls = table["j_call"].to_pylist()
    wrong = ["TRBJ1-1" if k % 4 == 0 and calls[k].startswith("TRBJ2-7") else calls[k] for k in range(len(calls))]
    assert wrong != calls
    changed = table.set_column(1, "j_call", pa.array(wrong))
    assert enriched(changed, model, keep_misfits=True)[0].hits > 0, "the fault that looks like a discovery"
    found, said = enriched(changed, model)
    assert found.hits == 0
    turned = sum(a != b for a, b in zip(calls, wrong, strict=True))
    # Many junctions keep little of J, and other calls are as likely.
    assert turned / 2 < found.excluded < turned + 0.01 * len(calls)
    assert "rows have a call that contradicts the bases" in said
    assert "keeps them" in said
    # So few that no row is excluded: what could be a hit is judged all the same.
    monkeypatch.setattr(ModelFit, "miscall_bound", 0.0)
    found, _ = enriched(changed, model)
    assert (found.hits, found.excluded) == (0, 0)
    assert found.not_tested[CONTRADICTED_CALL] > 2


@pytest.mark.exhaustive
def test_selection_is_inferred_without_wrong_genes(table, reversed_gene):
    with pytest.warns(hpcvdj.HpcvdjWarning, match="TRBV5-1"):
        fit = hpcvdj.infer_selection(table, reversed_gene, backend="cpu")
    assert fit.left_out["with genes that the model makes wrongly"] > 1_000
    assert not any("TRBV5-1" in name for name in fit.selection.weights)
    kept = hpcvdj.infer_selection(table, reversed_gene, keep_misfits=True, backend="cpu")
    assert any("TRBV5-1" in name for name in kept.selection.weights)


@pytest.mark.olga
@pytest.mark.parametrize("command", ["enrich", "infer-selection"])
def test_another_species(command, table, tmp_path):
    rows = tmp_path / "rows.tsv"
    write_table(rows, table.to_batches(), overwrite=False)
    out = tmp_path / "out.tsv"
    _, err = hpcvdj_command(command, rows, "-m", "mouse_trb", "-o", out, code=2)
    assert "--force goes on" in error_line(err)
    assert list(tmp_path.iterdir()) == [rows]


@pytest.mark.olga
def test_the_facts_say_how_the_model_fits(table, tmp_path):
    rows, out = tmp_path / "rows.tsv", tmp_path / "out.tsv"
    write_table(rows, table.slice(0, 2_000).to_batches(), overwrite=False)
    hpcvdj_command("enrich", rows, "-m", "human_trb", "-o", out, "--ties", "auto")
    facts = json.loads(out.with_name("out.tsv.json").read_text())
    assert facts["fit"]["rows"] > 1_900
    assert "TRBV12-3,TRBV12-4" in facts["ties"]
