"""How often the check of decoys refuses a sample that is sound: README.md has what this prints."""

import numpy as np
from scipy import stats

from hpcvdj.annotation.statistics import decoys_pass
from hpcvdj.chance.p_values import benjamini_hochberg

SAMPLES, EPITOPES, MAX_Q = 4_000, 200, 0.05

rng = np.random.default_rng(1)
decoy = np.arange(EPITOPES) < EPITOPES // 2
for true in (0, 1, 5, 10, 20, 40):
    excess = refused = 0
    for _ in range(SAMPLES):
        mean = rng.gamma(1, 3, EPITOPES)
        found = rng.poisson(mean)
        found[EPITOPES // 2 : EPITOPES // 2 + true] += 25
        called = benjamini_hochberg(stats.poisson.sf(found - 1, mean), EPITOPES) <= MAX_Q
        of_decoys = int((called & decoy).sum())
        excess += of_decoys > MAX_Q * called.sum()
        refused += not decoys_pass(int(called.sum()), of_decoys, MAX_Q)
    print(f"| {true} | {excess / SAMPLES:.3f} | {refused / SAMPLES:.4f} |", flush=True)
