"""How many recombinations made the distinct junctions of each class."""

from collections import Counter

import numpy as np
import pytest

import hpcvdj
from hpcvdj.annotation.depth import DRAWN, Depth, depth_of
from hpcvdj.chance.draws import Chance
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.models import ANY
from hpcvdj.runs.run import Run
from tests.loci import LOCI, exhaustive_but


def depth_from(model, *, genes, nucleotides=True):
    chance = Chance(model, DRAWN, 0, "cpu", False)
    return depth_of(model, nucleotides=nucleotides, selection=False, genes=genes, chance=chance, run=Run())


def test_equally_probable_junctions():
    """Of K, n recombinations make K (1 - (1 - 1 / K)^n) distinct ones; a single one is one."""
    number = 1_000
    depth = Depth([("V", "J")], np.zeros(200, dtype=np.int64), np.full(200, 1 / number), np.ones(200))
    distinct = np.array([0, 1, 100, 500, 900])
    for genes in ("V", "other"):
        for own in distinct.tolist():
            (n,) = depth.recombinations(np.array([own]), [(genes, "J")])
            assert n == pytest.approx(np.log(1 - own / number) / np.log(1 - 1 / number), rel=1e-4, abs=1e-9)


def test_other_classes_change_no_number():
    """A large class moved the numbers of the others by up to 8e-8."""
    rng = np.random.default_rng(1)
    pairs = [(f"V{k}", "J") for k in range(6)]
    depth = Depth(pairs, rng.integers(0, 6, 400), np.exp(rng.uniform(-12, -3, 400)), rng.uniform(0.5, 2, 400))
    distinct = np.array([1, 3, 20, 60, 200, 6_000])
    together = depth.recombinations(distinct, pairs)
    assert (together >= distinct).all()
    for places in ([0], [2, 4], [0, 1, 2, 3, 4]):
        alone = depth.recombinations(distinct[places], [pairs[place] for place in places])
        assert np.array_equal(alone, together[places])


@pytest.mark.slow
@pytest.mark.olga
@pytest.mark.parametrize("name", ["human_igk", pytest.param("mouse_tra", marks=pytest.mark.exhaustive)])
def test_rare_and_common_genes_alike(name):
    """Numbers of rare genes were 9 % too large, as they were drawn towards those of common ones."""
    model = load_model(name)
    drawn = hpcvdj.generate(model, 60_000, seed=6, productive=True, backend="cpu")
    columns = [drawn[column].to_pylist() for column in ("v_call", "j_call", "junction")]
    rows = [(v.partition("*")[0], j.partition("*")[0], junction) for v, j, junction in zip(*columns, strict=True)]
    made, distinct = Counter(row[:2] for row in rows), Counter(row[:2] for row in set(rows))
    depth = depth_from(model, genes="call")
    pairs = sorted(distinct, key=distinct.__getitem__)
    n = depth.recombinations(np.array([distinct[pair] for pair in pairs]), pairs)
    true = np.array([made[pair] for pair in pairs])
    # So that each part has as many recombinations.
    part = (4 * (np.cumsum(true) - 1)) // true.sum()
    for own in range(4):
        assert n[part == own].sum() == pytest.approx(true[part == own].sum(), rel=0.03)


@pytest.mark.olga
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "mouse_tra"))
@pytest.mark.parametrize("field", ["junction", "junction_aa"])
def test_without_genes(name, field):
    """Junctions repeat less than those of one pair of genes: the number was 3 to 7 times as large in these loci."""
    model = load_model(name)
    drawn = hpcvdj.generate(model, 40_000, seed=6, productive=True, backend="cpu")
    depth = depth_from(model, genes="any", nucleotides=field == "junction")
    (n,) = depth.recombinations(np.array([len({*drawn[field].to_pylist()})]), [(ANY, ANY)])
    # Human IGK makes so few different amino acids that 40,000 recombinations cannot be told from 40,400.
    assert n == pytest.approx(len(drawn), rel=0.03)
