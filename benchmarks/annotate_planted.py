"""Does `hpcvdj annotate` call what is planted, and nothing else, with κ from decoys, in all loci?

python benchmarks/annotate_planted.py 31 32 4711 > results/annotate/planted.txt

A line for each locus, seed and choice of decoys: half of the epitopes, or one of 40.  The samples are those of
tests/annotation/test_calibration.py.
"""

import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from tests.annotation.test_calibration import PLANTED, called_in, chance_and_planted
from tests.loci import LOCI


def line_of(job):
    seed, name, decoys = job
    warnings.simplefilter("ignore")
    alone, planted = chance_and_planted(name, seed, decoys)
    called = called_in(planted)
    found, others = PLANTED in called, [epitope for epitope in called if epitope != PLANTED]
    return (
        f"{name} seed {seed} decoys {decoys[0]}: by chance {called_in(alone)}, kappa {alone.kappa.value:.2f} of "
        f"{alone.kappa.source}, dispersion {alone.dispersion:.2f}; planted {'' if found else 'not '}called, "
        f"others {others}, kappa {planted.kappa.value:.2f} of {planted.kappa.source}"
    )


if __name__ == "__main__":
    jobs = list(product(map(int, sys.argv[1:]), LOCI, (("decoy",), ("E00",))))
    with ProcessPoolExecutor() as pool:
        for line in pool.map(line_of, jobs):
            print(line, flush=True)
