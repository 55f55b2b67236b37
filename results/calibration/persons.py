"""What `contamination` calls two people who contaminated each other, and two samples of one person, in six loci.

python results/calibration/persons.py SEED … > persons.csv

The sizes of 20,000 clones are Pareto numbers.  The amount of `mutual` is the share of the other's reads in each of two
people; that of `changed` is the standard deviation of the logarithms by which frequencies differ between two samples of
one person.  A third person shares nothing.  `without_correlation` is the verdict without the rule that the logarithms
of reads must correlate.
"""

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.cohorts import improbable
from hpcvdj.recombination.igor import load_model
from tests.cohorts.drawn import drawn
from tests.cohorts.test_improbable import found_in
from tests.loci import LOCI

CLONES = 20_000


def verdicts(model: Any, samples: Sequence[Any], reads: int, rng: np.random.Generator) -> tuple[str, str, str]:
    """The verdicts of a and b, of a and c, and of b and c."""
    given = [
        {**row, "repertoire_id": name, "duplicate_count": int(number)}
        for name, (own, share) in zip("abc", samples, strict=True)
        for row, number in zip(own, rng.multinomial(reads, share / share.sum()), strict=True)
        if number
    ]
    table = pa.Table.from_pylist([{**row, "sequence_id": f"m{k}"} for k, row in enumerate(given)])
    found = found_in(table, model, min_low=1).pairs.verdicts
    return found[0, 1], found[0, 2], found[1, 2]


def cases(rows: list[Any], seed: int) -> Iterator[tuple[Any, ...]]:
    """Yield the kind, the sizes, the reads, the amount, the samples, and the generator of each case."""
    first, both, third = rows[:CLONES], rows[: 2 * CLONES], rows[2 * CLONES :]
    for shape in (1.0, 1.5, 2.0, 3.0):
        for reads in (8_000, 40_000):
            for kind, amounts in (("mutual", (0.02, 0.05, 0.1)), ("changed", (0.0, 1.0))):
                for amount in amounts:
                    rng = np.random.default_rng([seed, int(100 * shape), reads, int(1_000 * amount), len(kind)])
                    one, other, of_third = (rng.pareto(shape, CLONES) + 1 for _ in range(3))
                    if kind == "mutual":
                        one, other = one / one.sum(), other / other.sum()
                        pair = [(both, np.append(one, amount * other)), (both, np.append(amount * one, other))]
                    else:
                        pair = [(first, one), (first, one * np.exp(rng.normal(0, amount, CLONES)))]
                    yield kind, shape, reads, amount, [*pair, (third, of_third)], rng


def main(seeds: Sequence[int]) -> None:
    print("model,seed,kind,pareto_shape,reads,amount,verdict,without_correlation,of_third")
    correlation = improbable._covariance
    for seed in seeds:
        for name in LOCI:
            model = load_model(name)
            rows = drawn(model, 3 * CLONES, seed).to_pylist()
            for kind, shape, reads, amount, samples, rng in cases(rows, seed):
                state = rng.bit_generator.state
                verdict, *others = verdicts(model, samples, reads, rng)
                rng.bit_generator.state = state
                improbable._covariance = lambda cohort, several, overlap: np.ones_like(overlap)
                without, *_ = verdicts(model, samples, reads, rng)
                improbable._covariance = correlation
                of_third = " ".join(sorted({*others} - {""}))
                print(name, seed, kind, shape, reads, amount, verdict, without, of_third, sep=",", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    main([int(seed) for seed in sys.argv[1:]])
