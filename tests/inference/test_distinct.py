"""Distinct junctions of individuals and of draws; the parts they are divided into; gain and AUC by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance.depth import Holders
from hpcvdj.inference.distinct import of_individuals
from hpcvdj.inference.selection import SMALLEST, _auc, _gain, _Sample, _warnings
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.repertoires.reading import productive_reading
from tests.dealt import dealt_of, read_together
from tests.selected import distinct, few_genes


@pytest.fixture(scope="module")
def model():
    return few_genes()


@pytest.fixture(scope="module")
def drawn(model):
    rows = hpcvdj.generate(model, 3_000, seed=14, productive=True, backend="cpu")
    return rows.select(["v_call", "j_call", "junction"])


def keys(own):
    """The genes and letters of each junction."""
    return [
        (*own.genes[pair], text[:length].tobytes().decode(), own.repertoire.cdr3(row))
        for row, (pair, text, length) in enumerate(zip(own.pair, *own.amino_acids, strict=True))
    ]


def test_draws_count_as_often_as_they_are(drawn, model):
    twice = pa.concat_tables([drawn.slice(0, 1_000), drawn.slice(300, 5), drawn.slice(300, 1)])
    own = distinct(twice, model)
    assert own.times.sum() == 1_006
    rows = list(zip(*(twice[name].to_pylist() for name in twice.column_names), strict=True))
    genes = [(v.partition("*")[0], j.partition("*")[0], text) for v, j, text in rows]
    assert {key[:2] + key[3:]: times for key, times in zip(keys(own), own.times.tolist(), strict=True)} == {
        key: genes.count(key) for key in set(genes)
    }
    for *_, text, bases in keys(own):
        assert hpcvdj.translate([bases])[0] == text


def test_a_part_is_that_of_the_junction_alone(drawn, model):
    """Wherever a junction comes from, whatever is beside it; all parts are of one size."""
    every, some = distinct(drawn, model), distinct(drawn.slice(1_000, 700), model)
    table = drawn.slice(0, 900).append_column("repertoire_id", pa.array(["b", "a", "c"] * 300))
    real, _, _ = of_individuals(dealt_of(read_together(table, model, productive_reading()), model), model)
    part = dict(zip(keys(every), every.lots(10, 5).tolist(), strict=True))
    for own in (some, real):
        assert [part[key] for key in keys(own)] == own.lots(10, 5).tolist()
    # Beside a longer junction, all have more words.
    wider = replace(every.repertoire, words=np.pad(every.repertoire.words, ((0, 0), (0, 2))))
    assert replace(every, repertoire=wider).lots(10, 5).tolist() == every.lots(10, 5).tolist()
    sizes = np.bincount(every.lots(10, 5), minlength=10)
    assert len(sizes) == 10
    assert np.abs(sizes - len(every) / 10).max() < 5 * np.sqrt(len(every) / 10)
    other = every.lots(10, 6)
    together = np.bincount(every.lots(10, 5) * 10 + other, minlength=100)
    assert np.abs(together - len(every) / 100).max() < 5 * np.sqrt(len(every) / 100)
    # The same bases with another J are another junction.
    other_j = drawn.set_column(1, "j_call", pa.array(["TRBJ1-1*01"] * len(drawn)))
    swapped = distinct(other_j, model)
    by_bases = {key[3]: lot for key, lot in part.items()}
    same = [by_bases[key[3]] == lot for key, lot in zip(keys(swapped), swapped.lots(10, 5).tolist(), strict=True)]
    assert 0.2 < np.mean(same) < 0.6, "a third have TRBJ1-1 anyway, and a tenth are equal by chance"


def test_some_of_them(drawn, model):
    own = distinct(drawn, model)
    rows = np.arange(3, len(own), 7)
    taken = own.take(rows)
    every = keys(own)
    assert keys(taken) == [every[row] for row in rows]
    factor = SelectionFactor({"J_length:TRBJ2-7:13": 0.5, "left:3:S": -1.0}, 0.1, -5.0, 5.0)
    assert (taken.log_factor(factor) == own.log_factor(factor)[rows]).all()
    assert len(set(own.log_factor(factor).tolist())) == 4


@pytest.fixture(scope="module")
def samples(drawn, model):
    """Real and generated junctions with probabilities that are not their own."""
    rng = np.random.default_rng(3)
    own = [distinct(part, model) for part in (drawn.slice(0, 400), drawn.slice(400, 600))]
    return [
        _Sample(junctions, rng.uniform(-12, -3, len(junctions)), rng.integers(1, 5, len(junctions)).astype(float))
        for junctions in own
    ]


FACTOR = SelectionFactor({"J_length:TRBJ2-7:13": 0.5, "left:3:S": -1.0, "right:4:E": 0.7}, 0.1, -5.0, 5.0)

RECOMBINATIONS = np.array([2_000.0, 100.0])


def has(log_p):
    """The expected number of individuals."""
    return sum(-np.expm1(-n * np.exp(log_p)) for n in RECOMBINATIONS)


def test_gain(samples):
    """ln of the ratio of densities, whose mean over generated junctions is 1, over real ones."""
    real, generated = samples
    ratios = [has(own.log_p + own.junctions.log_factor(FACTOR)) / has(own.log_p) for own in samples]
    mean = np.average(ratios[1], weights=generated.times)
    logs = np.log(ratios[0] / mean)
    gain, error = _gain(real, generated, FACTOR, Holders.of(RECOMBINATIONS))
    assert gain == pytest.approx(np.average(logs, weights=real.times), abs=1e-4)
    # By drawing again from the junctions, real and generated.
    rng, found = np.random.default_rng(4), []
    for _ in range(2_000):
        a, b = (rng.integers(0, len(own.log_p), len(own.log_p)) for own in samples)
        of_generated = np.average(ratios[1][b], weights=generated.times[b])
        found.append(np.average(np.log(ratios[0][a]), weights=real.times[a]) - np.log(of_generated))
    assert error == pytest.approx(np.std(found), rel=0.06)


def test_auc(samples):
    real, generated = samples
    a, b = (own.junctions.log_factor(FACTOR) for own in samples)
    larger = (a[:, None] > b) + (a[:, None] == b) / 2
    expected = np.average(np.average(larger, weights=generated.times, axis=1), weights=real.times)
    assert _auc(real, generated, FACTOR) == pytest.approx(expected, rel=1e-12)
    assert _auc(real, real, FACTOR) == pytest.approx(0.5, rel=1e-12)


def test_draws_count_as_individuals_have_them(samples):
    own = samples[1].held_by(Holders.of(RECOMBINATIONS))
    expected = samples[1].times * has(samples[1].log_p) / np.exp(samples[1].log_p) / RECOMBINATIONS.sum()
    np.testing.assert_allclose(own.times, expected, rtol=1e-4)


def test_junctions_that_the_model_cannot_make(samples):
    junctions = samples[0].junctions
    own = _Sample.of(junctions, np.zeros((len(junctions), 1)))
    assert (own.log_p == np.log(SMALLEST)).all()
    assert (own.times == junctions.times).all()
    np.testing.assert_allclose(own.held_by(Holders.of(RECOMBINATIONS)).times, own.times, rtol=1e-9)


def test_warnings():
    assert _warnings(200, 1_001, 0.5, 0.1) == []
    (few,) = _warnings(202, 1_000, 0.5, 0.1)
    assert "202 weights from 1,000 junctions" in few
    assert "at least 0.10 nats" in few
    assert "Give 1,010 or more" in few
    assert _warnings(1, 1_000, 0.21, 0.1) == []
    (nothing,) = _warnings(1, 1_000, 0.19, 0.1)
    assert "no more of junctions that were held out than chance (+0.1900 ± 0.1000 nats)" in nothing
