"""`hpcvdj infer-selection` of tables that have amino acids only."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.inference import selection as module
from hpcvdj.inference.distinct import SingleGeneJunctions
from hpcvdj.inference.selection import SelectionSettings, infer_selection
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.genes import as_read, by_gene
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.writers import write_table
from tests.cohorts.drawn import drawn, with_individuals
from tests.commands import error_line, hpcvdj_command
from tests.dealt import dealt_of, read_together
from tests.inference.test_selection_drawn import SIZES, require_recovered
from tests.loci import LOCI, exhaustive_but

pytestmark = [
    pytest.mark.filterwarnings("ignore::hpcvdj.errors.HpcvdjWarning"),
    pytest.mark.olga,
]


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    monkeypatch.setattr(module, "FRESH", 60_000)


def fitted(table, model):
    junctions = read_together(table.drop_columns("junction"), model, productive_reading(["junction_aa"]))
    return infer_selection(dealt_of(junctions, model), model, SelectionSettings(), "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_no_selection_is_invented(name):
    model = load_model(name)
    fit = fitted(with_individuals(drawn(model, sum(SIZES), 11), SIZES), model)
    assert abs(fit.gain) < 3 * fit.error
    # Four standard errors of an area of so many junctions.
    assert fit.auc == pytest.approx(0.5, abs=4 / np.sqrt(12 * fit.rows[1]))
    assert np.exp(fit.selection.largest - fit.selection.smallest) < 2


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_a_planted_factor_is_recovered(name):
    """As well as from nucleotides (`test_selection_drawn`)."""
    require_recovered(name, fitted)


def test_lots_do_not_depend_on_what_else_there_is():
    """A sequence is held out, or not, among real and among drawn ones: short ones among long ones are packed wider."""
    model = load_model("human_igh")
    rows = drawn(model, 4_000, 3)
    reading = productive_reading(["junction_aa"])
    table = rows.drop_columns("junction")
    short = table.filter(pa.array([len(text) <= 15 for text in table["junction_aa"].to_pylist()]))

    def lots_of(own):
        found = SingleGeneJunctions.of(own, np.zeros(len(own), dtype=np.int64), 1)[0]
        letters, lengths = found.amino_acids
        texts = [bytes(row[:size]) for row, size in zip(letters, lengths, strict=True)]
        keys = [(*found.genes[pair], text) for pair, text in zip(found.pair, texts, strict=True)]
        return dict(zip(keys, found.lots(10, 5).tolist(), strict=True))

    few, many = (by_gene(read_table(own, model, reading).repertoire, model)[0] for own in (short, table))
    assert few.words.shape[1] < many.words.shape[1]
    nucleotides = by_gene(read_table(rows, model, productive_reading()).repertoire, model)[0]
    own, every, made = lots_of(few), lots_of(many), lots_of(as_read(nucleotides, few))
    assert every == made
    assert own.items() <= every.items()


@pytest.mark.exhaustive
def test_the_command_and_the_function(tmp_path):
    model = load_model("human_igk")
    table = with_individuals(drawn(model, 8_000, 4), [4_000, 4_000]).drop_columns("junction")
    path, target = tmp_path / "t.tsv", tmp_path / "m"
    write_table(path, table.to_batches(), overwrite=False)
    out, err = hpcvdj_command("infer-selection", path, "-m", "human_igk", "-o", target)
    assert "amino acids are read, from junction_aa" in err
    texts = {
        *zip(*(table[name].to_pylist() for name in ("repertoire_id", "v_call", "j_call", "junction_aa")), strict=True)
    }
    assert "8,000 read, 0 excluded" in out
    found = hpcvdj.infer_selection(table, "human_igk", backend="cpu")
    assert found.selection.digest == hpcvdj.load_model(str(target)).selection.digest
    assert sum(found.rows) <= len(texts)
    facts = [json.loads(path.read_text()) for path in target.glob("*.json")]
    assert any(own.get("sequence_field") == "junction_aa" for own in facts)
    with pytest.raises(InputError, match="no column v_call, j_call"):
        hpcvdj.infer_selection(table.select(["junction_aa"]), "human_igk")
    (tmp_path / "a.txt").write_text("\n".join(table["junction_aa"].to_pylist()))
    _, err = hpcvdj_command("infer-selection", tmp_path / "a.txt", "-m", "human_igk", "-o", tmp_path / "n", code=2)
    assert "a list of junction_aa has no v_call, j_call" in error_line(err)
    assert not (tmp_path / "n").exists()
