"""The scores of donors, by hits that are found without each of them."""

from math import comb

import numpy as np
import pytest

from hpcvdj.association.law import laws_of_cases, rates
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.association.scores import scores_of
from hpcvdj.chance.p_values import benjamini_hochberg
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


def hits_without(donor, carriers, sizes, phenotype, tests, max_q):
    """The hits without a donor, by the test of the other donors alone."""
    others = np.flatnonzero(np.arange(len(sizes)) != donor)
    case, p_values = phenotype.case[others], []
    for own in carriers:
        has, of_strata = np.isin(others, own), []
        for k in range(len(phenotype.strata)):
            among = phenotype.stratum[others] == k
            numbers = np.array([int((has & among).sum())])
            fewest, law = laws_of_cases(sizes[others][among], case[among], numbers)[0]
            of_strata.append(np.append(np.zeros(fewest), law))
        of_sum = np.ones(1)
        for law in of_strata:
            of_sum = np.convolve(of_sum, law)
        p_values.append(of_sum[int((has & case.astype(bool)).sum()) :].sum())
    return benjamini_hochberg(np.array(p_values), tests) <= max_q


@pytest.mark.slow
def test_scores_are_those_of_the_other_donors():
    """Of donors of unequal depth, one of them without a recombination, in two strata; of each, without its own part."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(20_000, 200_000, 40).astype(float)
    sizes[5] = 0
    stratum = np.arange(40) % 2
    phenotype = Phenotype("disease=ill", "case", np.arange(40), CASES.astype(np.int64), stratum, ["a", "b"])
    carriers = [rng.choice(np.setdiff1d(np.arange(40), [5]), size=9 + k % 7, replace=False,
                           p=np.delete(np.where(CASES, 6, 1), 5) / np.delete(np.where(CASES, 6, 1), 5).sum())
                for k in range(30)]  # fmt: skip
    sequence = np.repeat(np.arange(len(carriers)), [len(own) for own in carriers])
    has = Holding.of(sequence, np.concatenate(carriers), len(carriers), 40, None, np.add)
    found = scores_of(has, np.arange(len(carriers)), 60, 0.2, phenotype, sizes)
    for donor in range(40):
        hits = hits_without(donor, carriers, sizes, phenotype, 60, 0.2)
        alike = (stratum == stratum[donor]) & (np.arange(40) != donor)
        chance = np.array([
            -np.expm1(-sizes[donor] * rates(sizes[alike], np.array([np.isin(np.flatnonzero(alike), own).sum()]))[0])
            for own in carriers
        ])  # fmt: skip
        hits &= (chance > 0) & (chance < 1)
        carried = sum(donor in own for own, hit in zip(carriers, hits, strict=True) if hit)
        assert found.carried[donor] == carried
        assert found.expected[donor] == pytest.approx(chance[hits].sum(), rel=1e-9)
        if not hits.any():
            assert found.none[donor]
            continue
        deviation = np.sqrt((chance[hits] * (1 - chance[hits])).sum())
        assert found.score[donor] == pytest.approx((carried - chance[hits].sum()) / deviation, rel=1e-9)
    assert found.none.tolist() == (np.arange(40) == 5).tolist(), "one without a recombination has no chance to carry"
