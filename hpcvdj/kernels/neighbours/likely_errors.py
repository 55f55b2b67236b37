"""Likely sequencing errors: the one definition, which all commands share.

A row is a likely sequencing error if its individual has another row

- of the same length, that differs in m bases and has 20^m times its reads or more, for m from 1 to 3; or
- of the same V and J, in frame, that differs in one inserted or deleted base and has more reads, if the row itself is
  out of frame.

Exchanged bases are looked for across genes, since a read with errors may be called with other genes.  Inserted and
deleted bases need no high ratio, because few rows out of frame are one base away from one in frame by chance; across
genes, there would be several times as many (results/likely_errors).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.neighbours.counted import CountedSequences
from hpcvdj.kernels.neighbours.exchanges import exchanged
from hpcvdj.kernels.neighbours.indels import one_indel_away

TIMES_THE_READS = 20
"""How many times the reads of an error with one exchanged base its original has at least; with m, the m-th power of it.
The ratio is that of VDJtools' `Correct` (Shugay et al., PLoS Computational Biology 11:e1004503, 2015)."""

MOST_EXCHANGES = 3
"""Exchanged bases of an error at most."""


def likely_errors(every: CountedSequences, pairs: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some rows are likely sequencing errors, bool [len(rows)].

    every  all rows that may be their originals
    pairs  int64 [len(every)]: V and J of each row, as a number
    rows   int64: those that are asked about

    The answer for a row does not depend on the order of the rows.
    """
    # Sequences of one length after another: so they are looked up faster.
    order = np.argsort(every.lengths[rows], kind="stable")
    asked, out = every[rows[order]], np.zeros(len(rows), dtype=bool)
    fewest = asked.reads.min(initial=np.iinfo(np.int64).max)
    likely = np.zeros(len(rows), dtype=bool)
    large = every[every.reads // TIMES_THE_READS >= fewest].largest_first()
    for most in range(1, MOST_EXCHANGES + 1):
        left = np.flatnonzero(~likely)
        likely[left] = exchanged(asked[left], large, most, TIMES_THE_READS**most)
    in_frame = every.lengths % 3 == 0
    left = np.flatnonzero(~likely & ~in_frame[rows[order]])
    if len(left):
        of_pair = replace(every, individuals=pairs * (every.individuals.max() + 1) + every.individuals)
        originals = of_pair[in_frame & (every.reads > fewest)].largest_first()
        likely[left] = one_indel_away(of_pair[rows[order[left]]], originals)
    out[order] = likely
    return out
