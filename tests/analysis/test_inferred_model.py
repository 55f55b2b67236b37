"""The model that an analysis infers: which steps take it."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv

import hpcvdj
from hpcvdj.recombination.igor import load_model
from tests.analysis.drawn import COLUMNS, MODEL
from tests.commands import hpcvdj_command
from tests.inference.test_gain import of_others


def table_of(model, seed, path, *, miscalled=0):
    """A person of whom enough rows are out of frame; of each `miscalled` rows, one has the V gene of another."""
    rows = hpcvdj.generate(model, 5_000, seed=seed, backend="cpu").select(COLUMNS)
    if miscalled:
        calls = rows["v_call"].to_pylist()
        calls[::miscalled] = [*calls[::miscalled][1:], calls[0]]
        rows = rows.set_column(1, "v_call", pa.array(calls))
    # Distinct junctions with many reads: none is a likely sequencing error.
    rows = rows.append_column("duplicate_count", pa.array([50] * len(rows)))
    csv.write_csv(rows, path, csv.WriteOptions(delimiter="\t", quoting_style="none"))


def analysis(path, output, *further):
    out, _ = hpcvdj_command("analyze", path, "-m", MODEL, "--only", "infer", "--only", "pgen", "--backend", "cpu", "-o",
                            output, *further)  # fmt: skip
    steps = {own["step"]: own for own in json.loads((output / "analysis.json").read_text())["steps"]}
    return out, steps["infer"]


@pytest.mark.slow
@pytest.mark.parametrize("better", [False, True])
def test_following_steps_take_it_if_it_is_not_worse(better, tmp_path):
    """One was taken that made held-out junctions less probable than the model that was given."""
    drawn = of_others(load_model(MODEL, pseudogenes=True)) if better else load_model(MODEL)
    table_of(drawn, 4, tmp_path / "d0.tsv")
    out, step = analysis(tmp_path / "d0.tsv", tmp_path / "out")
    assert step["state"] == "done"
    assert step["model"] == ("model" if better else "")
    assert ("worse than human_trb_m15, which the following steps keep" in out) == (not better)
    p = csv.read_csv(tmp_path / "out" / "pgen" / "d0.tsv.gz", parse_options=csv.ParseOptions(delimiter="\t"))
    used = hpcvdj.pgen(p.select(COLUMNS), tmp_path / "out" / "model" if better else MODEL, backend="cpu")
    assert pc.max(pc.abs(pc.subtract(p["pgen_nt"], used["pgen_nt"]))).as_py() == 0
    # A run was killed when it had written the model, and not yet recorded it.
    record = tmp_path / "out" / "analysis.json"
    facts = json.loads(record.read_text())
    facts["steps"] = []
    record.write_text(json.dumps(facts))
    _, again = analysis(tmp_path / "d0.tsv", tmp_path / "out", "--resume")
    assert again["model"] == step["model"]


@pytest.mark.slow
def test_following_steps_do_not_take_one_that_learned_wrong_calls(tmp_path):
    """Its gain over the model that was given is 0.46 nats a junction."""
    table_of(load_model(MODEL), 4, tmp_path / "d0.tsv", miscalled=3)
    out, step = analysis(tmp_path / "d0.tsv", tmp_path / "out")
    assert (step["state"], step["model"]) == ("done", "")
    assert "it learned calls that contradict the bases, so the following steps keep human_trb_m15" in out
    facts = json.loads((tmp_path / "out" / "model" / "inference.json").read_text())
    assert facts["gain_over_start"]["nats"] > 0.3
