"""hpcvdj.inference.folder: what the folder of an inferred model has, and what is read of it again."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from hpcvdj.errors import CompleteError, InputError
from hpcvdj.inference.folder import (
    ERRORS,
    ITERATIONS,
    UNEXPLAINED,
    fit_facts,
    named,
    raise_if_inferred,
    read_errors,
    read_trace,
    write_folder,
    write_with_selection,
)  # fmt: skip
from hpcvdj.inference.gain import Gain
from hpcvdj.inference.infer import Fit
from hpcvdj.inference.parameters import parameters, with_parameters
from hpcvdj.inference.search import Evaluated
from hpcvdj.recombination.events import events
from hpcvdj.recombination.igor import FILES, folder_texts, load_model
from hpcvdj.recombination.igor_writer import model_texts
from hpcvdj.recombination.origin import FACTS, SELECTION_FACTS, read_facts, read_selection_facts
from hpcvdj.recombination.packaged import model_paths
from hpcvdj.recombination.selection import FILE, SelectionFactor
from hpcvdj.storage.folders import MARK
from tests.inference.test_parameters import inferable
from tests.recombination.test_corrections import faulty

TRACE = (
    Evaluated(1, "start", True, -31.5, math.nan, 3, 0.25),
    Evaluated(2, "em", True, -30.125, -30.5, 0, 1.5),
    Evaluated(3, "long", False, -33.0, -34.0, 1, 0.5),
)
IDENTITY = {"tables": [["a.tsv", "0" * 64]], "seed": 3, "only": (1, 2)}


def rate_in(trace, rate):
    return tuple(replace(own, error_rate=rate) for own in trace)


@pytest.fixture(params=[True, False], ids=["D", "no D"])
def fit(request):
    model = named(inferable(7, request.param), "m")
    return Fit(model, TRACE[1], TRACE, (90, 10), None, Gain(-0.5, 0.125, 9, 1, 0), ("few rows",))


def written(fit, target, unexplained=(), *, overwrite=False, **facts):
    write_folder(target, fit, facts, unexplained, overwrite=overwrite)
    return target


def errors_of(model):
    """A standard error of each parameter, some of them 0."""
    rng = np.random.default_rng(1)
    return with_parameters(model, [rng.random(own.shape) * (rng.random(own.shape) < 0.5) for own in parameters(model)])


def rows_of(path):
    head, *lines = path.read_text().split("\n")
    assert lines.pop() == "", "each line ends"
    return head.split("\t"), [line.split("\t") for line in lines]


def test_the_name_and_the_digest(tmp_path, fit):
    own = named(replace(fit.model, corrected={"TRBV1*01": "wrong"}), "other")
    assert (own.name, own.corrected) == ("other", {})
    assert own.digest == fit.model.digest == named(own, "m").digest
    assert own.digest == load_model(written(fit, tmp_path / "m")).digest


def test_files_of_a_model(tmp_path, fit):
    target = written(fit, tmp_path / "m", rows_counted=5)
    assert {path.name for path in target.iterdir()} == {*FILES, MARK, FACTS, ITERATIONS}
    assert folder_texts(target) == model_texts(fit.model)
    assert read_facts(target) == {"format": "hpcvdj-inference", "rows_counted": 5}
    assert (target / ITERATIONS).read_text() == (
        "iteration\tkind\taccepted\tlog_likelihood\theld_out\tlost\tseconds\n"
        "1\tstart\tTrue\t-31.5\t\t3\t0.25\n2\tem\tTrue\t-30.125\t-30.5\t0\t1.5\n3\tlong\tFalse\t-33.0\t-34.0\t1\t0.5\n"
    )
    with pytest.raises(InputError, match="m: exists already"):
        written(fit, target)
    rows = [{"row": 3, "junction": "TGT", "pgen": 0.0}, {"row": 9, "junction": "TGC", "pgen": math.nan}]
    written(fit, target, rows, overwrite=True)
    assert (target / UNEXPLAINED).read_text() == "row\tjunction\tpgen\n3\tTGT\t0.0\n9\tTGC\t\n"


@pytest.mark.parametrize("rate", [0.0, 0.003])
def test_evaluations_are_read_as_they_were_written(tmp_path, fit, rate):
    trace = rate_in(TRACE, rate)
    target = written(replace(fit, trace=trace), tmp_path / "m")
    assert ("error_rate" in (target / ITERATIONS).read_text()) == (rate > 0)
    assert list(map(repr, read_trace(target))) == list(map(repr, trace))


HEAD = "iteration\tkind\taccepted\tlog_likelihood\theld_out\tlost\tseconds\terror_rate\n"


@pytest.mark.parametrize(
    "text",
    [
        None, "", "iteration\n1\n", "iteration\tkind\n1\n", "x\ty\n1\t2\n", "seconds\nx\n",
        HEAD + "1\tem\tTrue\t-3.0\t\t0\t0.5\n", HEAD + "1\tem\tTrue\t-3.0\t\t0\t0.5\t0.0\t1\n",
    ],
)  # fmt: skip
def test_what_are_no_evaluations_or_errors(tmp_path, text):
    if text is not None:
        (tmp_path / ITERATIONS).write_text(text)
        (tmp_path / ERRORS).write_text(text)
    assert read_trace(tmp_path) == []
    assert read_errors(tmp_path) == {}


@pytest.mark.parametrize("rate", [0.0, 0.25])
def test_standard_errors(tmp_path, fit, rate):
    """A row for each probability that is a parameter, unless it and its error are 0."""
    # First bases that do not follow from the steps from base to base are no parameters either.
    insertions = tuple(replace(own, first=np.full(4, 0.25)) for own in fit.model.insertions)
    model = replace(fit.model, error_rate=rate, insertions=insertions)
    assert not any(event.derived for name, event in events(model).items() if name.endswith("_first"))
    other = replace(errors_of(model), error_rate=0.0625)
    target = written(replace(fit, model=model, errors=other), tmp_path / "m")
    expected, error_of = {}, events(other)
    for name, event in events(model).items():
        if event.derived or name in ("vd_first", "dj_first", "vj_first"):
            continue
        for condition, outcomes in event.distributions().items():
            for outcome, chance in outcomes.items():
                error = error_of[name].distributions()[condition][outcome]
                if chance or error:
                    key = name, ",".join(map(str, condition)), ",".join(map(str, outcome))
                    expected[key] = chance, error
    assert min(error for _, error in expected.values()) == 0
    if rate:
        expected["error_rate", "", ""] = rate, 0.0625
    head, rows = rows_of(target / ERRORS)
    assert head == ["event", "condition", "outcome", "probability", "standard_error"]
    assert {tuple(key): (float(chance), float(error)) for *key, chance, error in rows} == expected
    assert len(rows) == len(expected)
    assert read_errors(target) == {key: error for key, (_, error) in expected.items()}


def test_what_is_said_of_a_fit(fit):
    said = {
        "rows_counted": 90, "rows_held_out": 10, "iterations": 3, "result_of_iteration": 2,
        "log_likelihood_per_row": -30.125, "held_out_log_likelihood_per_row": -30.5, "rows_with_probability_0": 0,
        "error_rate": None, "warnings": ["few rows"],
        "gain_over_start": {"nats": -0.5, "error": 0.125, "junctions": 9, "gained": 1, "lost": 0},
    }  # fmt: skip
    facts = fit_facts(fit)
    first, last = facts.pop("first_and_last_evaluation")
    assert facts == said
    assert (first["iteration"], first["kind"], last["iteration"], last["kind"]) == (1, "start", 3, "long")
    for rates, expected in (((0.0, 0.0, 0.5), 0.125), ((0.0, 0.0, 0.0), None)):
        trace = tuple(replace(own, error_rate=rate) for own, rate in zip(TRACE, rates, strict=True))
        own = fit_facts(replace(fit, trace=trace, model=replace(fit.model, error_rate=0.125)))
        assert own["error_rate"] == expected


def test_when_a_model_is_complete(tmp_path, fit):
    """Identities are compared as JSON, which has no tuples."""
    target = tmp_path / "m"
    raise_if_inferred(target, IDENTITY)
    written(fit, target, identity=IDENTITY)
    with pytest.raises(CompleteError, match="m: is complete already; there is nothing to resume"):
        raise_if_inferred(target, IDENTITY)
    with pytest.raises(
        InputError, match=r"m: is of another run \(seed was 3, is 4\); give another name, or overwrite=True"
    ):
        raise_if_inferred(target, {**IDENTITY, "seed": 4})
    (target / ITERATIONS).write_text("other")
    with pytest.raises(InputError, match=f"m: {ITERATIONS} changed since hpcvdj wrote it"):
        raise_if_inferred(target, IDENTITY)
    written(fit, tmp_path / "old")
    with pytest.raises(InputError, match=r"old: is of another run \(tables was not given, is a.tsv"):
        raise_if_inferred(tmp_path / "old", IDENTITY)


@pytest.mark.parametrize("kind", ["file", "empty folder", "dangling link", "other facts"])
def test_what_is_not_an_inferred_model(tmp_path, kind):
    target = tmp_path / "m"
    if kind == "file":
        target.write_text("")
    elif kind == "dangling link":
        target.symlink_to(tmp_path / "none")
    else:
        target.mkdir()
    if kind == "other facts":
        (target / FACTS).write_text('{"format": "other"}')
    with pytest.raises(InputError, match="m: exists, and is not the folder of an inferred model; give another name"):
        raise_if_inferred(target, IDENTITY)


def test_a_selection_factor_is_written_with_a_copy_of_the_model(tmp_path, fit):
    errors = errors_of(fit.model)
    source, target = (
        written(replace(fit, errors=errors), tmp_path / "m", [{"row": 3}], purpose="a test"),
        tmp_path / "s",
    )
    (source / "notes").write_text("not of the model")
    (source / SELECTION_FACTS).write_text("of an older factor")
    factor = SelectionFactor({"left:1:A": 0.5}, 0.125, -1.0, 1.0)
    model = replace(load_model(source), selection=factor)
    write_with_selection(source, target, model, {"rows": np.int64(7)}, overwrite=False)
    copied = {*FILES, FACTS, ITERATIONS, ERRORS, UNEXPLAINED}
    assert {path.name for path in target.iterdir()} == {*copied, FILE, SELECTION_FACTS, MARK}
    for name in copied:
        assert (target / name).read_bytes() == (source / name).read_bytes()
    assert (target / FILE).read_text() == factor.text(model.digest)
    assert read_selection_facts(target) == {"format": "hpcvdj-selection", "rows": 7}
    assert read_selection_facts(source) is None
    with pytest.raises(InputError, match="s: exists already"):
        write_with_selection(source, target, model, {}, overwrite=False)
    write_with_selection(source, target, model, {"rows": 8}, overwrite=True)
    assert json.loads((target / SELECTION_FACTS).read_text())["rows"] == 8
    changed = replace(model, digest="0" * 64)
    with pytest.raises(InputError, match="m: changed while it was read; start again when it is complete"):
        write_with_selection(source, tmp_path / "t", changed, {}, overwrite=False)
    assert not (tmp_path / "t").exists()


def test_a_factor_of_a_corrected_model(tmp_path):
    """The files of the factor's folder are those of the model that was used: corrected, or as they were published."""
    source, factor = faulty().write(tmp_path / "m"), SelectionFactor({"left:1:A": 0.5}, 0.1, -1.0, 1.0)
    for name, target, corrected in ((source, tmp_path / "a", True), (f"{source}:published", tmp_path / "b", False)):
        model = replace(load_model(name), selection=factor)
        assert bool(model.corrected) == corrected
        write_with_selection(source, target, model, {}, overwrite=False)
        assert (folder_texts(target) == folder_texts(source)) != corrected
        assert load_model(f"{target}:published").digest == model.digest


def test_a_packaged_model_has_no_factor():
    assert read_selection_facts(model_paths()["human_trb_m15"]) is None
