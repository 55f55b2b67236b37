"""`hpcvdj infer-selection` of drawn cohorts: nothing is found where nothing was selected, and a planted factor is."""

from __future__ import annotations

import numpy as np
import pytest

import hpcvdj
from hpcvdj.inference import selection as module
from hpcvdj.inference.selection import infer_selection
from hpcvdj.inference.settings import SelectionSettings
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.selection import RESIDUES
from hpcvdj.repertoires.reading import productive_reading
from tests.cohorts.drawn import drawn, with_individuals
from tests.dealt import dealt_of, read_together
from tests.loci import LOCI, exhaustive_but
from tests.selected import distinct, with_factor

pytestmark = pytest.mark.olga

SIZES = [12_000, 6_000, 3_000, 1_000]
"""Recombinations of each individual."""

DEEP = {"human_igk": [60_000, 10_000]}
"""Selected ones of each of two individuals, where a planted factor needs other numbers."""


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    """As many draws as these tests need."""
    monkeypatch.setattr(module, "FRESH", 60_000)


def fitted(table, model, **options):
    """The factor of a table whose rows name their individuals."""
    junctions = read_together(table, model, productive_reading())
    return infer_selection(dealt_of(junctions, model), model, SelectionSettings(**options), "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_no_selection_is_invented(name):
    """Individuals of different sizes, drawn from the model itself; also if some of their junctions take part."""
    model = load_model(name)
    table = with_individuals(drawn(model, sum(SIZES), 11), SIZES)
    for rows in (300_000, 5_000) if name == "human_igk" else (300_000,):
        fit = fitted(table, model, max_junctions=rows)
        assert abs(fit.gain) < 3 * fit.error
        # Four standard errors of an area of so many junctions.
        assert fit.auc == pytest.approx(0.5, abs=4 / np.sqrt(12 * fit.rows[1]))
        assert np.exp(fit.selection.largest - fit.selection.smallest) < 2
        assert any("explains no more" in warning for warning in fit.warnings)


def weights_of(model):
    """The weights of a factor: of V genes with the length, and of residues at ten positions."""
    rng = np.random.default_rng(0)
    weights = {}
    for gene in sorted({own.allele.partition("*")[0] for own in model.v}):
        level, slope = rng.normal(0, 0.4), rng.normal(0, 0.06)
        weights |= {f"V_length:{gene}:{size}": level + slope * (size - 13) for size in range(5, 30)}
    for side in ("left", "right"):
        for position in range(2, 7):
            for residue in rng.choice(list(RESIDUES), 6, replace=False):
                weights[f"{side}:{position}:{residue}"] = rng.normal(0, 0.4)
    return weights


def require_recovered(name, fitted_to, seed=3):
    """The factor that `fitted_to` finds in a cohort of two deep individuals is the one that it was drawn with."""
    model = load_model(name)
    true = with_factor(model, weights_of(model), draws=30_000)
    sizes = DEEP.get(name, [36_000, 12_000])
    rows = hpcvdj.generate(true, sum(sizes), seed=seed, selection=True, backend="cpu")
    fit = fitted_to(with_individuals(rows, sizes), model)
    fresh = distinct(drawn(model, 20_000, seed + 9), model)
    logs, found = (fresh.log_factor(own) for own in (true.selection, fit.selection))
    slope, _ = np.polyfit(logs, found, 1, w=np.sqrt(fresh.times))
    # The penalty makes weights smaller: 0.78 to 0.98 in 24 cohorts, four of each locus.
    assert 0.7 < slope < 1.05
    of_selected = fresh.times * np.exp(logs)
    gains = [np.average(own, weights=of_selected) for own in (logs, found)]
    assert gains[1] > 0.8 * gains[0] > 0.12
    assert fit.gain > 5 * fit.error


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_a_planted_factor_is_recovered(name):
    """Of deep individuals as well, who have many common junctions with or without selection."""
    require_recovered(name, fitted)
