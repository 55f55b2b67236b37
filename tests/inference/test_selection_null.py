"""`hpcvdj infer-selection` of drawn cohorts: nothing is found where nothing was selected, and a planted factor is."""

from __future__ import annotations

import numpy as np
import pytest

from hpcvdj.counting.tables import productive_reading
from hpcvdj.inference import selection as module
from hpcvdj.inference.selection import SelectionPlan, infer_selection
from hpcvdj.recombination.igor import OLGA_FOLDERS, load_model, model_folders
from hpcvdj.repertoires.junctions import read_table
from hpcvdj.runs.run import Run
from tests.cohorts.drawn import drawn, with_individuals

pytestmark = pytest.mark.skipif(not OLGA_FOLDERS.keys() <= model_folders().keys(), reason="olga is not installed")

SIZES = [12_000, 6_000, 3_000, 1_000]
"""Recombinations of each individual."""

LOCI = ["human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb"]


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    """As many draws as these tests need."""
    monkeypatch.setattr(module, "FRESH", 60_000)


def fitted(table, model, **options):
    """The factor of a table whose rows name their individuals."""
    junctions = read_table(table, model, productive_reading(), together=True)
    return infer_selection(junctions, model, SelectionPlan(**options), Run(), "cpu")


def slow_but(loci, *quick):
    """The loci as parameters, of which all but some are slow."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in loci]


@pytest.mark.parametrize("name", slow_but(LOCI, "human_igk"))
@pytest.mark.parametrize("rows", [300_000, 5_000])
def test_no_selection_is_invented(name, rows):
    """Individuals of different sizes, drawn from the model itself; also if some of their junctions take part."""
    model = load_model(name)
    fit = fitted(with_individuals(drawn(model, sum(SIZES), 11), SIZES), model, rows=rows)
    assert abs(fit.gain) < 3 * fit.error
    assert fit.auc == pytest.approx(0.5, abs=0.03)
    assert np.exp(fit.selection.largest - fit.selection.smallest) < 2
    assert any("explains no more" in warning for warning in fit.warnings)
