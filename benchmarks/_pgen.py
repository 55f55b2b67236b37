"""Generation probabilities by OLGA's fast class: the peer of benchmarks/count.py.

OLGA (GPL-3.0) is imported when it is installed, and nothing of it is copied.  What it computes is a different
quantity: the probability of a junction under a fitted model, where hpcvdj counts its pathways.  It is what the
field computes that comes nearest, from the same input: a junction, its V and its J.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "mouse_T_beta"

Query = tuple[str, str, str]
"""Junction, V and J as OLGA takes them."""


@dataclass(frozen=True)
class Timed:
    """One pass over a sample: wall and processor seconds, and how many probabilities were above zero."""

    seconds: float
    cpu_seconds: float
    positive: int


class Peer:
    """OLGA's model with its numba-compiled dynamic programming; ImportError when OLGA is absent."""

    def __init__(self) -> None:
        import olga
        from olga import generation_probability, load_model
        from olga.performance.fast_pgen import FastPgen

        folder = Path(olga.__file__).parent / "default_models" / MODEL
        anchors = (str(folder / f"{kind}_gene_CDR3_anchors.csv") for kind in "VJ")
        genomic, generative = load_model.GenomicDataVDJ(), load_model.GenerativeModelVDJ()
        genomic.load_igor_genomic_data(str(folder / "model_params.txt"), *anchors)
        generative.load_and_process_igor_model(str(folder / "model_marginals.txt"))
        self._fast = FastPgen(generation_probability.GenerationProbabilityVDJ(generative, genomic))
        # A gene without CDR3 anchor in the model has an empty segment here: no junction can be asked with it.
        self._v = {name: segment for name, segment, *_ in genomic.genV if segment}
        self._j = {name: segment for name, segment, *_ in genomic.genJ if segment}

    def queries(self, repertoire: Any, size: int, seed: int) -> list[Query]:
        """A random sample of the repertoire's CDR3s between the anchor codons that the model has for their V and J.

        In silico junctions may carry other anchor codons than the model's, and then OLGA would stop early with
        probability zero.  It takes junctions in frame only, and genes of the model only.
        """
        rows = list(range(len(repertoire)))
        random.Random(seed).shuffle(rows)
        chosen: list[Query] = []
        for row in rows:
            v, j = (segment.allele for segment in pair_of(repertoire, row))
            if repertoire.lengths[row] % 3 == 0 and v in self._v and j in self._j:
                chosen.append((self._v[v][:3] + repertoire.cdr3(row) + self._j[j][-3:], v, j))
            if len(chosen) == size:
                break
        return chosen

    def warm_up(self, queries: list[Query]) -> float:
        """Seconds of the first probability, which compiles what OLGA compiles."""
        return self.run(queries[:1]).seconds

    def run(self, queries: list[Query]) -> Timed:
        """The probability of each query, one after the other on one core."""
        start, cpu = time.perf_counter(), time.process_time()
        values = [self._fast.compute_nt_CDR3_pgen(junction, v, j, False) for junction, v, j in queries]
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        return Timed(seconds, cpu_seconds, sum(value > 0 for value in values))


def pair_of(repertoire: Any, row: int) -> Any:
    """The V–J pair of a row."""
    return repertoire.pairs[int(repertoire.offsets.searchsorted(row, side="right")) - 1]
