"""A small comparison from file to result, and what it must give."""

import math
from functools import cache

import numpy as np

from hpcvdj.motifs import comparison as module
from hpcvdj.motifs import results
from hpcvdj.motifs.comparison import compare_sequences
from hpcvdj.motifs.results import MotifResult
from hpcvdj.motifs.sequences import inputs_of
from hpcvdj.motifs.settings import MotifConfig
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import StopRequest
from tests.kernels.kmers.cases import hostile, random_text
from tests.kernels.kmers.reference import exact_counters, opposite_strand_counters

K, D = 6, 2
TEXTS = (*hostile(), *(random_text(np.random.default_rng(s), 30, "AACGT") for s in range(9)))


@cache
def exact():
    """The counters of TEXTS by the definition: [strand, d, sequence, sequence]."""
    return np.stack([exact_counters(TEXTS, K, D), opposite_strand_counters(TEXTS, K, D)])


def compare(fasta, target, *, layout=None, monkeypatch=None, request=None, **options):
    chosen = {name: options.pop(name) for name in ("resume", "overwrite") if name in options}
    if layout is not None:
        monkeypatch.setattr(module, "layout_of", lambda *ignored: dict(zip(("load", "height"), layout, strict=True)))
        # Tiles begin chunks.
        monkeypatch.setattr(results, "CHUNK", math.gcd(*layout))
    config = MotifConfig(**{"k": K, "d": D, "backend": "cpu", **options})
    run = Run().to(target, **chosen)
    if request is not None:
        run.request = request
    return compare_sequences(inputs_of([fasta]), config, run)


def content(path):
    with MotifResult(path) as result:
        if result.dense:
            return np.stack([result.counters(strand) for strand in range(result.strands)])
        return [
            (int(s), int(r), int(c), tuple(counts), score)
            for part in result.edges()
            for r, c, s, counts, score in zip(*(part[name].tolist() for name in part.dtype.names), strict=True)
        ]


class StopWhen(StopRequest):
    """A signal that comes when there are so many files of a kind in a folder."""

    def __init__(self, folder, pattern, files=1):
        super().__init__()
        self._files = lambda: len(list(folder.glob(pattern))) >= files

    def __bool__(self):
        self.name = "SIGTERM" if self._files() else ""
        return bool(self.name)
