"""Inference as a whole: what comes out of junctions of a known model, with and without their V and J."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.generation.generate import generate
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.inference.infer import Expectations, Fit, infer
from hpcvdj.inference.parameters import GENE_USAGE, mixed, parameter_names, parameters, uniform
from hpcvdj.inference.rows import ChosenRows, choose
from hpcvdj.inference.search import Search
from hpcvdj.inference.settings import InferenceSettings, RowChoice
from hpcvdj.inference.tables import reading_for
from hpcvdj.kernels.inference.method import InferenceProblem
from hpcvdj.recombination.igor import load_model, olga_folder
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.run import Run
from tests.commands import hpcvdj_command
from tests.inference.test_parameters import inferable, require_distributions, require_kept
from tests.kernels.inference.test_expectation import random_rows
from tests.kernels.pgen.models import Junction, problem_of, sample


def chosen_rows(model: Model, rows: list[Junction]) -> ChosenRows:
    own, row_of = problem_of(model, rows)
    return ChosenRows(own.repertoire, np.argsort(row_of), {})


def fit_of(model: Model, rows: list[Junction], **options) -> Fit:
    """From some junctions; all parameters by default, and no row held out."""
    run = Run()
    plan = InferenceSettings(**{"only": parameter_names(model), "hold_out": 0.0, "prior": 0.0, **options})
    found = infer(chosen_rows(model, rows), model, plan, run, run.bind("cpu"))
    assert found is not None
    return found


def drawn(model: Model, number: int, seed: int) -> list[Junction]:
    """Junctions that the model makes, with their V and J."""
    rng, rows = np.random.default_rng(seed), []
    while len(rows) < number:
        own = sample(model, rng)
        if own.junction:
            rows.append((own.junction, (own.v,), (own.j,)))
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("has_d", [True, False])
def test_the_order_of_rows_does_not_matter(has_d):
    """Pairs in another order, and rows in another order within them."""
    model, rng = inferable(7, has_d), np.random.default_rng(7)
    rows = [row for row in random_rows(model, rng, 60) if row[0]]
    order = rng.permutation(len(rows))
    first = infer_chosen(model, chosen_rows(model, rows))
    other = chosen_rows(model, [rows[k] for k in order])
    second = infer_chosen(model, replace(other, row=order[other.row]))
    assert first.counted == second.counted
    assert min(first.counted) > 0
    for a, b in zip(parameters(first.model), parameters(second.model), strict=True):
        assert np.array_equal(a, b)


def infer_chosen(model: Model, chosen: ChosenRows) -> Fit:
    run = Run()
    plan = InferenceSettings(only=parameter_names(model), hold_out=0.2, iterations=10, tolerance=0.0)
    found = infer(chosen, model, plan, run, run.bind("cpu"))
    assert found is not None
    return found


def distance(a: Model, b: Model) -> float:
    """The largest sum of differences of a distribution of choices, insertions and steps."""
    pairs = [(a.p_segment(own), b.p_segment(own)) for own in ("V", "J")]
    pairs += [(x.lengths, y.lengths) for x, y in zip(a.insertions, b.insertions, strict=True)]
    return max(float(np.abs(x - y).sum()) for x, y in pairs)


def distinct_model(has_d: bool) -> Model:
    """A model of which a junction shows its V and J."""
    for seed in range(5000):
        model = inferable(seed, has_d)
        if (len(model.contributing("V")), len(model.contributing("J"))) != (2, 2):
            continue
        (v1, v2), (j1, j2) = ([model.templates(s)[k].segment for k in model.contributing(s)] for s in ("V", "J"))
        if min(map(len, (v1, v2, j1, j2))) > 2 and v1[:2] != v2[:2] and j1[-2:] != j2[-2:]:
            return model
    raise AssertionError("no such model")


KNOWN_AND_UNKNOWN = 1e-9
"""Sum of differences of P(V), P(J) and P(length) between fits of 1,000 rows with V and J known, and not.  It was 0: the
bases of these models tell their alleles apart."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("has_d", [True, False])
def test_known_and_unknown_genes_lead_to_one_model(has_d):
    model = distinct_model(has_d)
    rows = drawn(model, 1000, 3)
    options = {"iterations": 30, "tolerance": 0.0}
    known = fit_of(model, rows, **options)
    unknown = fit_of(model, [(text, None, None) for text, _, _ in rows], **options)
    assert distance(known.model, unknown.model) < KNOWN_AND_UNKNOWN
    # Known alleles are counted.
    shares = np.bincount([v for _, (v,), _ in rows], minlength=len(model.v)) / len(rows)
    np.testing.assert_allclose(known.model.p_segment("V"), shares, atol=1e-9)


def test_few_rows_give_gene_usage_only():
    model = inferable(7, True)
    rows = drawn(model, 50, 3)
    found = fit_of(model, rows, only=(), start="model")
    require_kept(found.model, model, frozenset(GENE_USAGE), 1e-13)
    assert "too few" in found.warnings[0]
    found = fit_of(model, rows, only=(), fix=("j_choice",), start="model")
    require_kept(found.model, model, frozenset({"v_choice"}), 1e-13)
    found = fit_of(model, rows, only=(), start="uniform", iterations=3)
    assert "few" in found.warnings[0]
    assert not np.array_equal(found.model.v_deletions, uniform(model).v_deletions)


def test_few_rows_with_fixed_gene_usage_have_nothing_to_infer():
    model = inferable(7, True)
    with pytest.raises(InputError, match="v_choice, j_choice are fixed, so there is nothing to infer"):
        fit_of(model, drawn(model, 50, 3), only=(), fix=GENE_USAGE, start="model")


def test_no_possible_row_is_an_input_error():
    model = inferable(7, True)
    with pytest.raises(InputError, match="no junction has a probability above 0"):
        fit_of(model, [("ACGT" * 30, None, None)] * 5)


def test_most_rows_must_be_possible():
    """As with a model of another species, many of whose genes have the same names."""
    model = inferable(7, True)
    possible, impossible = drawn(model, 10, 3), [("ACGT" * 30, None, None)]
    assert not [text for text in fit_of(model, possible + 10 * impossible, iterations=2).warnings if "another" in text]
    for number in (11, 30):
        (warning,) = [
            text for text in fit_of(model, possible + number * impossible, iterations=2).warnings if "another" in text
        ]
        assert warning.startswith(f"{number} of {10 + number} rows have probability 0")
    with pytest.raises(InputError, match=f"only 10 of 41 junctions have a probability above 0 .* {model.name}; give"):
        fit_of(model, possible + 31 * impossible, iterations=2)


def test_alleles_that_no_row_has_are_named():
    model = distinct_model(True)
    model = replace(model, v=tuple(replace(own, function="F") for own in model.v))
    rows = [row for row in drawn(model, 300, 3) if row[1] == (model.contributing("V")[0],)]
    missing = model.v[model.contributing("V")[1]].allele
    (warning, *_) = [text for text in fit_of(model, rows, iterations=2).warnings if "probability 0" in text]
    assert "because no row has them" in warning
    assert missing in warning
    kept = fit_of(model, rows, iterations=2, prior=1.0)
    assert not [text for text in kept.warnings if missing in text]


def test_alleles_that_become_common_with_deletions_of_the_start_are_named():
    model = distinct_model(True)
    first, second = model.contributing("V")
    chances = np.zeros(len(model.v))
    chances[[first, second]] = 0.9995, 0.0005
    rows = [row for row in drawn(model, 300, 3) if row[1] == (second,)][:20] + drawn(model, 100, 4)
    rare, allele = replace(model, p_v=chances), model.v[second].allele
    (warning,) = [text for text in fit_of(rare, rows, only=GENE_USAGE, iterations=2).warnings if "rare in" in text]
    assert f"deletions were not inferred: {allele};" in warning
    assert not [text for text in fit_of(rare, rows, iterations=2).warnings if "rare in" in text]


@pytest.mark.exhaustive
@pytest.mark.parametrize("has_d", [True, False])
def test_a_state_that_was_saved_ends_the_same(tmp_path, monkeypatch, has_d):
    """Also within the bootstrap."""
    model = inferable(7, has_d)
    chosen, states, folder = chosen_rows(model, drawn(model, 60, 1)), [], RunFolder(tmp_path, {})
    save = RunFolder.save

    def noted(self, name, *content):
        save(self, name, *content)
        states.append(self.file(name).read_bytes())

    monkeypatch.setattr(RunFolder, "save", noted)
    plan, run = InferenceSettings(only=parameter_names(model), iterations=5, tolerance=0.0, bootstrap=3), Run()
    backend = run.bind("cpu")
    whole = infer(chosen, model, plan, run, backend, folder)
    assert whole is not None
    assert whole.errors is not None
    assert len(states) == 5 + 3
    for state in states[1:8:2]:
        folder.file("search").write_bytes(state)
        again = infer(chosen, model, plan, run, backend, folder)
        assert again is not None
        for a, b in ((again.model, whole.model), (again.errors, whole.errors)):
            assert all(map(np.array_equal, parameters(a), parameters(b)))
        assert [replace(own, seconds=0) for own in again.trace] == [replace(own, seconds=0) for own in whole.trace]


def test_standard_errors_are_those_of_a_share():
    """P(V, J) of alleles that rows name: the square root of p (1 - p) / n."""
    model = distinct_model(False)
    rows = drawn(model, 400, 5)
    found = fit_of(model, rows, only=GENE_USAGE, bootstrap=40, iterations=4)
    assert found.errors is not None
    shares = np.zeros_like(model.p_vj)
    for _, (v,), (j,) in rows:
        shares[v, j] += 1 / len(rows)
    # The error of a standard deviation of 40 samples is 11 %.
    # A pair without rows has a little of the start's, which differs between samples.
    np.testing.assert_allclose(found.errors.p_vj, np.sqrt(shares * (1 - shares) / len(rows)), rtol=0.4, atol=1e-4)
    for own in (found.errors.v_deletions, found.errors.j_deletions, found.errors.insertions[0].lengths):
        assert not own.any()


@pytest.mark.exhaustive
@pytest.mark.parametrize("has_d", [True, False])
def test_each_sample_is_searched_to_its_end(has_d):
    """From the result; deletions and insertions need many evaluations."""
    model, samples = inferable(7, has_d), 4
    rows = drawn(model, 200, 3)
    order = chosen_rows(model, rows).row
    options = {"tolerance": 1e-4, "seed": 5}
    found = fit_of(model, rows, start="uniform", bootstrap=samples, **options)
    fits = []
    for number in range(samples):
        places = np.random.default_rng([5, number, 1]).integers(len(rows), size=len(rows))
        fits.append(fit_of(found.model, [rows[k] for k in order[places]], start="model", **options))
    spreads = [np.std(values, axis=0, ddof=1) for values in zip(*(parameters(fit.model) for fit in fits), strict=True)]
    assert found.errors is not None
    for own, spread in zip(parameters(found.errors), spreads, strict=True):
        # Counts are rounded to other units where rows are repeated, so that long steps are not the same to the digit.
        assert not spread.any() or np.abs(own - spread).max() < 0.005 * spread.max()


@pytest.mark.exhaustive
@pytest.mark.skipif(olga_folder() is None, reason="olga is not installed")
def test_standard_errors_of_slow_parameters():
    """Those of D deletions and insertion lengths were 0.8 of those at the end when samples had eight evaluations."""
    model, samples = load_model("mouse_trb", pseudogenes=True), 6
    run = Run()
    backend = run.bind("cpu")
    table = pa.Table.from_batches(list(generate(model, GenerationSettings(4_000, seed=1), backend, run)))
    plan = InferenceSettings(start="uniform", bootstrap=samples, hold_out=0.0)
    chosen = choose(read_table(table, model, reading_for(plan)), RowChoice())
    found = infer(chosen, model, plan, run, backend)
    assert found is not None
    assert found.errors is not None
    number = len(chosen.row)
    evaluate = Expectations(InferenceProblem(chosen.repertoire, np.ones(number, np.uint32), model), run, backend)
    to_the_end, at_the_end = InferenceSettings(iterations=100, tolerance=0.0), []
    for sample_number in range(samples):
        places = np.random.default_rng([0, sample_number, 1]).integers(number, size=number)
        evaluate.weigh(np.bincount(places, minlength=number).astype(np.uint32))
        search = Search(to_the_end, frozenset(parameter_names(model)), number, 0, found.model)
        while not search.done:
            search.take(evaluate(search.model, ""), 0.0)
        at_the_end.append(parameters(search.best))
    for own, *values in zip(parameters(found.errors), *at_the_end, strict=True):
        spread = np.std(values, axis=0, ddof=1)
        assert not spread.any() or np.sqrt((own**2).sum() / (spread**2).sum()) > 0.93


@pytest.mark.slow
@pytest.mark.skipif(olga_folder() is None, reason="olga is not installed")
@pytest.mark.parametrize("name", ["human_tra", "human_igk", "mouse_tra"])
def test_rare_pairs_do_not_end_the_search(name):
    """Of V and J that only junctions that are held out have: the result was the start."""
    model = load_model(name)
    rows = hpcvdj.generate(model, 10_000, seed=2, backend="cpu")
    found = hpcvdj.infer(rows, mixed(model, 0.5), rows="all", start="model", backend="cpu")
    assert found.best.iteration > 1
    assert found.best.held_out > found.trace[0].held_out + 0.5
    assert not any("is the start" in warning for warning in found.warnings)
    # Of few rows nothing can be learnt but chance events.
    few = hpcvdj.infer(rows.slice(0, 60), model, rows="all", start="model", only=("vj_ins", "v_3_del"), backend="cpu")
    assert few.best.iteration == 1
    assert any("is the start" in warning for warning in few.warnings)


RECOVERED = {"v": 0.12, "j": 0.06, "vd": 0.14, "dj": 0.14, "steps": 0.15}
"""Sums of differences that 10,000 rows and 12 evaluations leave; measured: 0.076, 0.030, 0.090, 0.085."""


@pytest.mark.skipif(olga_folder() is None, reason="olga is not installed")
def test_recovery_of_a_human_model():
    """On a small scale, from where everything is equally likely."""
    model = load_model("human_trb", pseudogenes=True)
    run = Run()
    backend = run.bind("cpu")
    batches = list(generate(model, GenerationSettings(13_500, seed=1), backend, run))
    plan = InferenceSettings(start="uniform", iterations=12)
    junctions = read_table(pa.Table.from_batches(batches), model, reading_for(plan))
    chosen = choose(junctions, RowChoice())
    found = infer(chosen, model, plan, run, backend)
    assert found is not None
    require_distributions(found.model, found.model)
    own = found.model
    differences = {
        "v": np.abs(own.p_v - model.p_v).sum(),
        "j": np.abs(own.p_segment("J") - model.p_segment("J")).sum(),
        "vd": np.abs(own.insertions[0].lengths - model.insertions[0].lengths).sum(),
        "dj": np.abs(own.insertions[1].lengths - model.insertions[1].lengths).sum(),
        "steps": max(np.abs(a.transitions - b.transitions).sum(axis=0).max()
                     for a, b in zip(own.insertions, model.insertions, strict=True)),
    }  # fmt: skip
    print({name: round(float(value), 4) for name, value in differences.items()}, found.counted, found.trace[-1])
    for name, value in differences.items():
        assert value < RECOVERED[name], differences


def test_the_seed_decides_what_the_bootstrap_draws():
    model = inferable(7, True)
    rows = drawn(model, 200, 3)
    a, again, b = (fit_of(model, rows, bootstrap=3, iterations=2, seed=seed) for seed in (1, 1, 2))
    assert a.errors is not None
    assert again.errors is not None
    assert b.errors is not None
    assert np.array_equal(a.errors.p_v, again.errors.p_v)
    assert not np.array_equal(a.errors.p_v, b.errors.p_v)


@pytest.mark.parametrize("held", [True, False])
def test_a_row_that_the_model_cannot_make_is_listed_whether_it_is_held_out_or_counted(held, tmp_path):
    """If each counted row is possible, only those that are held out are computed."""
    model = hpcvdj.load_model("human_trb_m15")
    rows = hpcvdj.generate(model, 1_500, seed=11, backend="cpu").drop_columns(["productive"]).to_pylist()
    rows[7]["junction"] = model.v[0].segment + 80 * "A" + model.j[0].segment
    share = InferenceSettings().hold_out
    seed = next(seed for seed in range(99) if (np.random.default_rng(seed).random(len(rows))[7] < share) == held)
    csv.write_csv(pa.Table.from_pylist(rows), tmp_path / "t.tsv", csv.WriteOptions(delimiter="\t"))
    hpcvdj_command(
        "infer", tmp_path / "t.tsv", "-m", model.name, "-o", tmp_path / "o", "--rows", "all", "--iterations", 2,
        "--seed", seed, "--backend", "cpu",
    )  # fmt: skip
    listed = (tmp_path / "o" / "unexplained.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in listed] == ["data_row", "8"]
    facts = json.loads((tmp_path / "o" / "inference.json").read_text())
    assert facts["rows_with_probability_0"] == (not held)
