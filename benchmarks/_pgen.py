"""Generation probabilities by OLGA's fast class: the peer of benchmarks/count.py.

OLGA (GPL-3.0) is imported if it is installed; nothing of it is copied.  It computes a different quantity from the same
input, a junction with its V and J: the junction's probability under a fitted model, where hpcvdj counts pathways.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

MODEL = "mouse_T_beta"

Query = tuple[str, str, str]
"""Junction, V and J as OLGA takes them."""


class Peer:
    """OLGA's model with its numba-compiled dynamic programming; ImportError without OLGA."""

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
        # A gene without CDR3 anchor in the model has an empty segment here, and no probabilities.
        self._v = {name: segment for name, segment, *_ in genomic.genV if segment}
        self._j = {name: segment for name, segment, *_ in genomic.genJ if segment}

    def queries(self, repertoire: Any, size: int, seed: int) -> list[Query]:
        """A random sample of the repertoire's CDR3s between the anchor codons that the model has for their V and J.

        For other anchor codons than the model's OLGA returns 0 at once.  It takes only junctions in frame and genes of
        the model.
        """
        rows = list(range(len(repertoire)))
        random.Random(seed).shuffle(rows)
        chosen: list[Query] = []
        for row in rows:
            pair = int(repertoire.offsets.searchsorted(row, side="right")) - 1
            v, j = (segment.allele for segment in repertoire.pairs[pair])
            if repertoire.lengths[row] % 3 == 0 and v in self._v and j in self._j:
                chosen.append((self._v[v][:3] + repertoire.cdr3(row) + self._j[j][-3:], v, j))
            if len(chosen) == size:
                break
        return chosen

    def run(self, queries: list[Query]) -> tuple[float, float, int]:
        """Wall and processor seconds for the probabilities of all queries on one core, and how many are above 0."""
        start, cpu = time.perf_counter(), time.process_time()
        values = [self._fast.compute_nt_CDR3_pgen(junction, v, j, False) for junction, v, j in queries]
        return time.perf_counter() - start, time.process_time() - cpu, sum(value > 0 for value in values)
