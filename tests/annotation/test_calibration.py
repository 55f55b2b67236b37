"""`hpcvdj annotate` in all loci: chance calls nothing, hits are as many as expected, and what is planted is called."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.recombination.igor import load_model
from tests.annotation.drawn import records_of, sample_of
from tests.loci import LOCI, exhaustive_but

SIZES = dict.fromkeys(LOCI, (12_000, 12_000)) | {
    "human_tra": (3_000, 3_000), "mouse_tra": (3_000, 3_000), "human_igk": (1_200, 300),
}  # fmt: skip
"""Records and junctions: chance hits some, but less than are planted.  In human IGH it hits so few that κ is given."""

PLANTED = "E30"


@pytest.mark.slow
@pytest.mark.olga
@pytest.mark.parametrize("match", ["vj", "none"])
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_calibrated_and_planted_hits_are_found(name, match):
    """Without genes, 1.6 and 2.5 times as many hits as there are were expected in human IGK and mouse TRA."""
    number = 3_000 if name in ("human_igk", "human_tra", "mouse_tra") else 12_000
    own = load_model(name)
    drawn = hpcvdj.generate(own, 3 * number, seed=8, productive=True, backend="cpu")
    database = records_of(drawn.slice(0, number), 40)
    tables = {f"s{k}": sample_of(drawn.slice((k + 1) * number, number)) for k in range(2)}
    answer = hpcvdj.annotate(tables, database, own, kappa=1.0, match=match, backend="cpu")
    found, expected = (sum(getattr(each, what) for each in answer.samples) for what in ("found", "expected"))
    # Sequences that recombination makes often are in both samples, so numbers vary more than Poisson's.
    assert abs(found - expected) <= 0.02 * expected + 5 * np.sqrt(expected + 1)
    # In each sample, chance calls an epitope with a probability of 5 %.
    assert sum(each.called[0] for each in answer.samples) <= 1
    if name != "human_igh":
        uniform = np.concatenate([each.uniform for each in answer.samples])
        assert stats.kstest(uniform, "uniform").pvalue > 1e-3
        wrong = hpcvdj.annotate(tables, database, own, kappa=3.0, match=match, backend="cpu")
        assert stats.kstest(np.concatenate([each.uniform for each in wrong.samples]), "uniform").pvalue < 1e-3


def chance_and_planted(name, seed, decoys):
    """Annotate a drawn sample, alone and with up to 40 improbable records of an epitope; return both answers."""
    own, (number, junctions) = load_model(name), SIZES[name]
    drawn = hpcvdj.generate(own, number + junctions, seed=seed, productive=True, backend="cpu")
    database = records_of(drawn.slice(0, number), 40)
    records = database.select(["v_call", "j_call", "junction_aa"])
    p = hpcvdj.pgen(records, own, sequence="aa", backend="cpu")["pgen_aa"].to_numpy()
    rows = np.flatnonzero(np.array(database["epitope"].to_pylist()) == PLANTED)
    planted = drawn.take(rows[np.argsort(p[rows])[:40]])
    kappa = 1.0 if name == "human_igh" else None
    return [
        hpcvdj.annotate(sample_of(rows), database, own, decoys=decoys, kappa=kappa, backend="cpu").samples[0]
        for rows in (drawn.slice(number), pa.concat_tables([drawn.slice(number), planted]))
    ]


def called_in(sample):
    return [
        row["epitope"] for row in sample.epitopes.to_pylist() if row["q_value"] is not None and row["q_value"] <= 0.05
    ]


@pytest.mark.slow
@pytest.mark.olga
@pytest.mark.parametrize("decoys", [("decoy",), ("E00",)])
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_decoys_call_what_is_planted_and_nothing_else(name, decoys):
    """Half of the epitopes, or one of 40, which in some loci has too few hits to tell κ."""
    alone, planted = chance_and_planted(name, 31, decoys)
    assert called_in(alone) == []
    assert called_in(planted) == [PLANTED]
    assert planted.passed
    if name != "human_igh" and decoys == ("decoy",):
        assert planted.kappa.source == "decoys"
