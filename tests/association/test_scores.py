"""The scores of donors, by hits that are found without each of them."""

from math import comb

import numpy as np
import pytest

from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.association.scores import scores_of
from hpcvdj.cohorts.holding import Holding
from hpcvdj.cohorts.ranking import auc

CASES = np.arange(40) < 20
DISEASE = Phenotype("disease=ill", "case", np.arange(40), CASES.astype(np.int64), np.zeros(40, dtype=np.int64), ["all"])


def scored(carriers, tests=1_000, max_q=0.05):
    """The scores of 40 equally deep donors; of each sequence, the donors that carry it."""
    sequence = np.repeat(np.arange(len(carriers)), [len(own) for own in carriers])
    has = Holding.of(sequence, np.concatenate(carriers), len(carriers), 40, None, np.add)
    return scores_of(has, np.arange(len(carriers)), tests, max_q, DISEASE, np.full(40, 1e5))


def carried_by_cases(number, sequences, seed):
    rng = np.random.default_rng(seed)
    return [rng.permutation(20)[:number] for _ in range(sequences)]


@pytest.mark.parametrize("number", [12, 14, 17])
@pytest.mark.parametrize("seed", range(5))
def test_sequences_that_only_cases_have_tell_cases(number, seed):
    """Equally many cases carry each: none is the last hit, without which others are."""
    scores = scored(carried_by_cases(number, 6, seed))
    assert not scores.none.any()
    assert auc(scores.score, CASES).area > 0.9
    assert scores.carried[~CASES].max() == 0
    assert scores.carried[CASES].mean() == pytest.approx(6 * number / 20)


def test_hits_that_rest_on_single_donors_give_no_score():
    """One sequence, just a hit: without a carrier it is none."""
    p = comb(20, 10) / comb(40, 10)
    scores = scored([np.arange(10)], tests=int(0.05 / p))
    assert scores.none[:10].all()
    assert not scores.none[10:20].any(), "without another case it is a clearer hit"


@pytest.mark.parametrize("max_q", [0.5, 0.9])
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (3, 4, 5))])
def test_hits_by_chance_leave_donors_without_a_score(seed, max_q):
    """Of 4,000 sequences with carriers at random: so no AUC is given, which would be far from 0.5 of so few hits."""
    rng = np.random.default_rng(seed)
    carriers = [rng.permutation(40)[: rng.integers(6, 14)] for _ in range(4_000)]
    assert scored(carriers, tests=4_000, max_q=max_q).none.any()
