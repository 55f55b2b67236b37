"""Sequences to compare, and what they have in common by the definition."""

from functools import cache

import numpy as np

from hpcvdj.kernels.kmers.kmers_cpu import kmers_of
from hpcvdj.kernels.kmers.sequences import sequence_set
from tests.kernels.kmers.reference import exact_counters, raw_counters

ENCODINGS = {"3x64": 21, "2x32": 16, "2x64": 32}
"""The largest k of each."""


def random_text(rng, length, letters="ACGT"):
    """`length` letters."""
    return "".join(rng.choice(list(letters), length))


def hostile(seed=3):
    """Repeats, poly-A, N runs, sequences shorter than k and empty ones, duplicates, near copies of each other."""
    rng = np.random.default_rng(seed)
    one = random_text(rng, 48)
    near = [one[:p] + "A" + one[p + 1 :] for p in (9, 24)]
    few = [random_text(rng, 40, "AT"), random_text(rng, 40, "AC")]
    return (
        one, *near, one, *few, "A" * 60, "ACAC" * 12, "N" * 45, one[:20] + "NN" + one[20:], "ACG", "",
        "TTTT" + "A" * 36, random_text(rng, 33),
    )  # fmt: skip


def kmers(texts, k):
    """Their k-mers."""
    return kmers_of(sequence_set(texts), k)


@cache
def exact(texts, k, d, *, distinct=False):
    """D of all pairs of a tuple of sequences."""
    return exact_counters(texts, k, d, distinct=distinct)


@cache
def raw(texts, k, d):
    """R of all pairs of a tuple of sequences."""
    return raw_counters(texts, k, d)


def upper(counters, first=0):
    """The counters on and above the diagonal of rows first … ; 0 below."""
    return np.stack([np.triu(plane, first) for plane in counters])
