"""Whether an inferred model explains junctions that were held out better than the model it began with."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hpcvdj
from hpcvdj.inference.gain import Gain, gain_of
from hpcvdj.kernels.backends import open_backend
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.igor import FUNCTIONAL, load_model
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.possible import Possible
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import Reading
from hpcvdj.runs.run import Run

pytestmark = pytest.mark.filterwarnings("ignore::hpcvdj.errors.HpcvdjWarning")


@pytest.fixture(scope="module")
def model():
    return load_model("human_trb_m15", pseudogenes=True)


def of_others(model: Model) -> Model:
    """A model in which other V genes are common."""
    functional = np.array([template.function in FUNCTIONAL for template in model.v]) & (model.p_v > 0)
    p_v = model.p_v.copy()
    p_v[functional] = np.roll(p_v[functional], 7)
    return replace(model, p_vdj=None, joint=False, p_v=p_v)


def out_of_frame(model, number, seed):
    rows = hpcvdj.generate(model, number, seed=seed, backend="cpu")
    keep = np.array(pc.utf8_length(rows["junction"])) % 3 != 0
    return rows.filter(pa.array(keep)).select(["sequence_id", "v_call", "j_call", "junction"])


def test_it_is_the_mean_of_the_logarithms(model):
    table = out_of_frame(model, 400, 3)
    other = of_others(model)
    held = read_table(table, model, PgenConfig(("pgen_nt",)).reads(Reading())).repertoire
    gain = gain_of(held, other, model, Run(), open_backend("cpu"))
    # Without pseudogenes, as of `hpcvdj pgen`.
    plain = load_model("human_trb_m15")
    p = [hpcvdj.pgen(table, own, backend="cpu")["pgen_nt"].fill_null(0).to_numpy() / Possible.of(own).probability
         for own in (replace(plain, p_vdj=None, joint=False, p_v=other.p_v), plain)]  # fmt: skip
    assert (p[0] == 0).sum() > 20, "rows of pseudogenes do not count"
    both = (p[0] > 0) & (p[1] > 0)
    logs = np.log(p[0][both] / p[1][both])
    gained, lost = ((own > 0).sum() - both.sum() for own in p)
    assert (gain.junctions, gain.gained, gain.lost) == (both.sum(), gained, lost)
    assert gain.nats == pytest.approx(logs.mean(), rel=1e-9)
    assert gain.error == pytest.approx(logs.std(ddof=1) / np.sqrt(len(logs)), rel=1e-9)
    assert gain.is_loss


@pytest.mark.parametrize(("nats", "gained", "lost", "is_loss"), [
    (-0.3, 0, 0, True), (-0.19, 0, 0, False), (0.3, 0, 5, False), (-0.3, 3, 2, False), (-0.3, 2, 3, True),
])  # fmt: skip
def test_a_loss_is_more_than_chance(nats, gained, lost, is_loss):
    assert Gain(nats, 0.1, 100, gained, lost).is_loss == is_loss


@pytest.mark.slow
def test_few_rows_of_the_model_itself_make_a_worse_one():
    """They have no pseudogenes: a model seemed to gain by never choosing one."""
    fit = hpcvdj.infer(out_of_frame(load_model("human_trb_m15"), 5_000, 5), "human_trb_m15", backend="cpu")
    assert fit.gain.is_loss
    assert any("are less probable than under human_trb_m15, by" in line for line in fit.warnings)


@pytest.mark.slow
def test_rows_of_another_model_make_a_better_one(model):
    fit = hpcvdj.infer(out_of_frame(of_others(model), 12_000, 5), "human_trb_m15", backend="cpu", iterations=10)
    assert fit.gain.nats > 10 * fit.gain.error > 0
    assert not any("less probable" in line for line in fit.warnings)
    rows = out_of_frame(model, 4_500, 5)
    for options in ({"hold_out": 0}, {"start": "uniform"}):
        assert hpcvdj.infer(rows, "human_trb_m15", backend="cpu", iterations=1, **options).gain is None
