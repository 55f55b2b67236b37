"""`hpcvdj infer --errors`: the rate is found again, and what is written is the same for any number of ranks."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.runs.folder import RunFolder
from tests.commands import hpcvdj_command
from tests.recombination.igor_files import mouse_files

RATE, ROWS = 0.02, 1500


def misread(junctions: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """The junctions with each base exchanged for another one with this probability, inserted bases too."""
    out = []
    for text in junctions:
        bases = list(text)
        for place in np.flatnonzero(rng.random(len(bases)) < rate):
            bases[place] = str(rng.choice([base for base in "ACGT" if base != bases[place]]))
        out.append("".join(bases))
    return out


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return mouse_files().write(tmp_path_factory.mktemp("model") / "mouse")


@pytest.fixture(scope="module")
def rows(model):
    """Junctions of the model with errors, V and J given."""
    table = hpcvdj.generate(model, ROWS, seed=3)
    texts = misread(table["junction"].to_pylist(), RATE, np.random.default_rng(3))
    return table.set_column(table.schema.get_field_index("junction"), "junction", pa.array(texts))


@pytest.fixture(scope="module")
def table(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.tsv"
    names = ["sequence_id", "v_call", "j_call", "junction"]
    lines = zip(*(rows[name].to_pylist() for name in names), strict=True)
    path.write_text("\n".join(["\t".join(names), *map("\t".join, lines), ""]))
    return path


@pytest.mark.slow
def test_the_rate_is_that_of_the_end(rows, model):
    """Junctions that are held out choose an early iteration, whose rate was on its way from the first guess."""
    fit = hpcvdj.infer(rows, model, rows="all", errors=True, hold_out=0.2)
    rates = [own.error_rate for own in fit.trace if own.accepted]
    assert fit.best.iteration < len(fit.trace)
    assert fit.model.error_rate == rates[-1] != fit.best.error_rate
    assert fit.model.error_rate == pytest.approx(RATE, abs=0.003)


@pytest.mark.slow
def test_the_rate_is_found_again(rows, model):
    fit = hpcvdj.infer(rows, model, rows="all", errors=True, hold_out=0.0, iterations=12, only=("v_choice", "vd_ins"))
    # The standard deviation of a share of about 40,000 template bases is 0.0007.
    assert fit.model.error_rate == pytest.approx(RATE, abs=0.003)
    accepted = [own for own in fit.trace if own.accepted]
    assert accepted[0].error_rate == 1e-3
    assert (np.diff([own.log_likelihood for own in accepted]) >= -1e-9).all()
    without = hpcvdj.infer(rows, fit.model, rows="all", hold_out=0.0, iterations=1)
    assert without.model.error_rate == 0
    # Most junctions have an error, and without a rate many of these are impossible.
    assert (without.best.lost > ROWS // 3, fit.best.lost) == (True, 0)


def test_generation_probabilities_do_not_take_the_rate(rows, model):
    loaded = hpcvdj.load_model(model)
    some = rows.slice(0, 20).select(["v_call", "j_call", "junction"])
    found = [hpcvdj.pgen(some, replace(loaded, error_rate=rate)) for rate in (0.0, 0.1)]
    assert found[0].equals(found[1])


@pytest.mark.slow
def test_ranks_write_the_same_bytes(table, model, tmp_path, on_ranks):
    digests = []
    for ranks, command in ((1, hpcvdj_command), (3, partial(on_ranks, 3))):
        folder = tmp_path / str(ranks)
        arguments = ["infer", table, "-m", model, "-o", folder, "--errors", "--rows", "all", "--iterations", "2"]
        out, _ = command(*arguments, "--bootstrap", "2", "--only", "v_choice", "--only", "d_del")
        names = ["model_params.txt", "model_marginals.txt", "standard_errors.tsv"]
        digests.append([(folder / name).read_bytes() for name in names])
        facts = json.loads((folder / "inference.json").read_text())
        assert 0.001 < facts["error_rate"] < 0.1
        # IGoR's format: the line after the kind of error.
        lines = (folder / "model_params.txt").read_text().splitlines()
        assert lines[-3:] == ["@ErrorRate", "#SingleErrorRate", repr(facts["error_rate"])]
        assert (folder / "iterations.tsv").read_text().splitlines()[0].endswith("\terror_rate")
        assert "\nerror_rate\t\t\t" in (folder / "standard_errors.tsv").read_text()
        assert f"error rate {facts['error_rate']:.3g} per base" in out
        assert hpcvdj.load_model(folder).error_rate == facts["error_rate"]
    assert digests[0] == digests[1]


@pytest.mark.slow
def test_a_stopped_run_goes_on_with_its_rate(table, model, tmp_path, monkeypatch):
    options = ["infer", table, "-m", model, "--errors", "--rows", "all", "--only", "v_choice", "--iterations", 4]
    hpcvdj_command(*options, "-o", tmp_path / "whole")
    save, saved = RunFolder.save, []

    def stop(self, name, *content):
        save(self, name, *content)
        saved.append(name)
        if len(saved) == 2:
            raise InputError("stopped here")

    with monkeypatch.context() as stopping:
        stopping.setattr(RunFolder, "save", stop)
        hpcvdj_command(*options, "-o", tmp_path / "parts", code=2)
    assert len(saved) == 2
    hpcvdj_command(*options, "-o", tmp_path / "parts", "--resume")
    for name in ("model_params.txt", "model_marginals.txt"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_without_errors_nothing_says_a_rate(table, model, tmp_path):
    out, _ = hpcvdj_command(
        "infer", table, "-m", model, "-o", tmp_path / "o", "--rows", "all", "--iterations", 2, "--backend", "cpu"
    )
    assert "error rate" not in out
    assert json.loads((tmp_path / "o" / "inference.json").read_text())["error_rate"] is None
    assert "error_rate" not in (tmp_path / "o" / "iterations.tsv").read_text()
    assert (tmp_path / "o" / "model_params.txt").read_text().endswith("#SingleErrorRate\n0.0\n")


def test_rows_that_errors_explain_are_not_unexplained(rows, table, model, tmp_path):
    """One row has more bases than segments and insertions together; others only a misread base."""
    long = tmp_path / "long.tsv"
    loaded = hpcvdj.load_model(model)
    junction = loaded.v[0].segment + 80 * "A" + loaded.j[0].segment
    long.write_text(table.read_text() + f"long\t{loaded.v[0].allele}\t{loaded.j[0].allele}\t{junction}\n")
    options = ["infer", long, "-m", model, "--rows", "all", "--iterations", 2, "--backend", "cpu"]
    found = {}
    for name, more in (("with", ["--errors"]), ("without", [])):
        hpcvdj_command(*options, *more, "-o", tmp_path / name)
        found[name] = [line.split("\t")[0] for line in (tmp_path / name / "unexplained.tsv").read_text().splitlines()]
    assert found["with"] == ["data_row", str(rows.num_rows + 1)]
    assert len(found["without"]) > 10
