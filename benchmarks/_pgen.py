"""What the benchmarks of generation probabilities share: junctions, command line, versions; and OLGA's fast class.

OLGA (GPL-3.0) is imported if it is installed; nothing of it is copied.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import _common as common
import numpy as np

LARGEST_DIFFERENCE = 1e-12
"""Relative; hpcvdj promises that its values differ by no more from the definition."""

MODEL = "mouse_T_beta"

Query = tuple[str, str, str]
"""Junction, V and J as OLGA takes them."""


class PgenBenchmark(common.Benchmark):
    """A comparison of hpcvdj's generation probabilities with those of other programs.

    peers           the other programs, as pip takes them
    remedy          how to install them
    loci            default names of models
    junctions       default number of junctions of a locus
    threads         default number of threads of hpcvdj
    """

    peers: ClassVar[Sequence[str]]
    remedy: ClassVar[str] = ""
    loci: ClassVar[Sequence[str]]
    junctions: ClassVar[int]
    threads: ClassVar[int]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which loci, and how many junctions."""
        add = parser.add_argument
        add("--loci", metavar="NAME", nargs="*", default=list(self.loci), help="names of models")
        add("--number", metavar="N", type=int, default=self.junctions, help="junctions of a locus")
        add("--threads", metavar="N", type=int, default=self.threads, help="threads of hpcvdj; 0: all usable cores")
        add("--seed", metavar="S", type=int, default=1, help="seed of the junctions")

    def facts(self, options: argparse.Namespace) -> dict[str, str]:
        """The versions of the peers; ends the benchmark if one is not installed."""
        names = [peer.partition("==")[0] for peer in self.peers]
        try:
            return {name: metadata.version(name) for name in names}
        except metadata.PackageNotFoundError as error:
            sys.exit(f"{error.name} is not installed; pip install {' '.join(self.peers)}{self.remedy}")


def drawn(model: Any, number: int, seed: int) -> list[Any]:
    """Junctions in frame without a stop codon, of at most 128 bases."""
    from hpcvdj.recombination.alphabet import translate
    from tests.kernels.pgen.models import sample

    rng, rows = np.random.default_rng(seed), []
    while len(rows) < number:
        own = sample(model, rng)
        amino_acids = translate([own.junction])[0]
        if amino_acids and "*" not in amino_acids and len(own.junction) <= 128:
            rows.append(own)
    return rows


def asked_with(genes: str, model: Any, rows: list[Any], texts: Sequence[str] = ()) -> tuple[list[Any], list[Any]]:
    """What hpcvdj and its peers are asked: drawn junctions, or `texts` in their place, and the calls of V and J.

    genes  given (the V and J alleles that made each junction) or any
    """
    texts = texts or [row.junction for row in rows]
    if genes == "any":
        return [(text, None, None) for text in texts], [("", "")] * len(rows)
    asked = [(text, (row.v,), (row.j,)) for text, row in zip(texts, rows, strict=True)]
    return asked, [(model.v[row.v].allele, model.j[row.j].allele) for row in rows]


class Peer:
    """OLGA's model with its numba-compiled dynamic programming, the peer of benchmarks/count.py.

    It computes a different quantity from the same input, a junction with its V and J: the junction's probability under
    a fitted model, where hpcvdj counts pathways.  ImportError without OLGA.
    """

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
