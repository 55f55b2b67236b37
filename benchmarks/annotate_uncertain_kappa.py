"""How often is an epitope falsely called because κ or the dispersion of few decoys is taken for exact?

python benchmarks/annotate_uncertain_kappa.py > results/annotate/uncertain_kappa.txt

Numbers of hits are drawn, all of them by chance: no repertoire is.  A sample has a false call if an epitope has
q <= 0.05, and the check of decoys passes.
"""

import numpy as np

from hpcvdj.annotation import statistics
from hpcvdj.chance.p_values import benjamini_hochberg

SAMPLES = 1_000


def has_false_call(k, mean, decoy, kappa, *, exact):
    """Whether a sample has a false call; `exact` takes κ, and the dispersion of the decoys, as they are."""
    expected, of_decoys = kappa.value * mean, decoy.sum() >= statistics.FEWEST_EPITOPES
    phi, doubt = statistics.dispersion(k, expected, decoy), 0.0
    if not exact:
        doubt = kappa.doubt(phi)
    elif decoy.any():
        phi = max(1.0, float(((k - expected)[decoy] ** 2).sum() / expected[decoy].sum())) if of_decoys else 1.0
    p, _ = statistics.tail(k, expected, phi, [None] * len(k), doubt)
    called = benjamini_hochberg(p, len(p)) <= 0.05
    return called.any() and statistics.decoys_pass(int(called.sum()), int((called & decoy).sum()), 0.05)


def share(draw, mean, decoy, kappa_of, *, exact):
    rng = np.random.default_rng(0)
    return np.mean([has_false_call(k := draw(rng), mean, decoy, kappa_of(k), exact=exact) for _ in range(SAMPLES)])


others = np.exp(np.random.default_rng(1).normal(0, 1.8, 300))
print(f"# 300 epitopes; the five largest are hit {np.sort(others)[-5:].round()} times by chance.  The true kappa is 1;")
print(
    "# it is taken from decoys if these have ten hits, else from epitopes.  Samples with a false call: exact, uncertain"
)
for hits, decoys in ((12, 1), (20, 1), (20, 12), (40, 12), (100, 12), (400, 12)):
    mean = np.concatenate([np.full(decoys, hits / decoys), others])
    decoy = np.arange(len(mean)) < decoys

    def kappa_of(k, mean=mean, decoy=decoy):
        of_decoys = statistics.kappa_of_ratio(int(k[decoy].sum()), float(mean[decoy].sum()), "decoys")
        return of_decoys or statistics.kappa_of_epitopes(k[~decoy], mean[~decoy])

    shares = [
        share(lambda rng, mean=mean: rng.poisson(mean), mean, decoy, kappa_of, exact=own) for own in (True, False)
    ]
    print(f"{hits} hits of {decoys} decoys: {shares[0]:.3f} {shares[1]:.3f}")

mean = np.exp(np.random.default_rng(2).uniform(np.log(2), np.log(60), 60))
given = statistics.HitKappa(1.0)
print("# 60 epitopes that are hit 2 to 60 times, with a dispersion; kappa is given.  As before, and now")
for phi in (1.0001, 3.0):
    for decoys in (0, 1, 9, 10, 12, 20, 30):
        decoy = np.random.default_rng(3).permutation(60) < decoys
        shares = [
            share(lambda rng, phi=phi: rng.negative_binomial(mean / (phi - 1), 1 / phi), mean, decoy, lambda k: given,
                  exact=own)
            for own in (True, False)
        ]  # fmt: skip
        print(f"dispersion {phi:.0f}, {decoys} decoys: {shares[0]:.3f} {shares[1]:.3f}")
