"""Balls as units of association: a sequence with all sequences of its genes within one exchange.

A donor carries a ball if it has any sequence of the ball.  The n recombinations of a donor make at least one of them
with the probability 1 - exp(-x n), where x is the sum of their probabilities.  So the law of the carriers, given their
number, is that of single sequences (see `hpcvdj.association.law`).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcvdj.association.carriers import Carriers
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.cohorts.cohort import Cohort, Sequences, sequences_of
from hpcvdj.cohorts.holding import Holding
from hpcvdj.kernels.neighbours.exchanged_pairs import within_one_exchange
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.repertoires.genes import kinds_of

COLUMNS = PGEN_COLUMNS[1:]
"""Probabilities of a sequence, and of its ball."""


@dataclass(frozen=True)
class Balls:
    """The balls around sequences of a cohort; a rank has all sequences with the same genes and length.

    sequences  all sequences of the cohort, with V and J genes
    within     csr_array [sequences, sequences]: 1 for each sequence in the ball of each
    centres    int64 [centres]: sequences whose balls enough donors carry, ascending
    asked      int64 [asked]: sequences whose probability is needed, ascending: centres, and sequences of several donors
    """

    sequences: Sequences
    within: Any
    centres: Counts
    asked: Counts

    @staticmethod
    def of(cohort: Cohort, min_individuals: int) -> "Balls":
        """The balls of a cohort that at least `min_individuals` donors carry."""
        every = sequences_of(cohort, "vj-aa")
        sequences = every.only(np.arange(len(every.first)))
        within = within_one_exchange(sequences.letters, sequences.lengths, kinds_of(sequences.repertoire))
        numbers = (within @ sequences.has.matrix()).astype(bool).sum(axis=1)
        centre = numbers >= min_individuals
        asked = np.flatnonzero(centre | (sequences.has.numbers > 1))
        return Balls(sequences, within, np.flatnonzero(centre), asked)

    def carriers(self, alone: Carriers, p: Floats) -> Carriers:
        """Who carries the balls.

        alone  the carriers of each of the `asked` sequences by itself, without likely copies
        p      float64 [asked]: probabilities of their balls
        """
        has, asked = self.sequences.has, self.asked
        sequences = len(has.numbers)
        other = ~np.isin(has.sequence, asked)
        # Nobody shares the other sequences.
        source = None if alone.has.reads is None else np.concatenate([np.zeros(other.sum(), np.int64), alone.has.reads])
        carried = Holding.of(
            np.concatenate([has.sequence[other], asked[alone.has.sequence]]),
            np.concatenate([has.individual[other], alone.has.individual]),
            sequences, has.individuals, source, np.minimum,
        )  # fmt: skip
        balls = self.within[self.centres]
        own = carried if carried.reads is None else carried.entries(carried.reads == 0)
        by_own = (balls @ own.matrix()).tocoo()
        parts = [(by_own.row, by_own.col, np.zeros(len(by_own.row), dtype=np.int64))]
        if carried.reads is not None:
            perhaps, of_ball = carried.entries(carried.reads > 0), balls.tocoo()
            there = perhaps.numbers[of_ball.col] > 0
            members = perhaps.only(of_ball.col[there].astype(np.int64))
            assert members.reads is not None
            parts.append((of_ball.row[there][members.sequence], members.individual, members.reads))
        row, individual, sources = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        together = Holding.of(
            row, individual, len(self.centres), has.individuals, None if source is None else sources, np.minimum
        )
        copy = None
        if alone.copy is not None:
            copied = np.zeros(sequences, dtype=np.int64)
            copied[asked] = alone.copy
            copy = balls @ copied > 0
        centres = self.sequences.only(self.centres)
        centres = replace(centres, has=together, variants=balls @ self.sequences.variants)
        row = np.searchsorted(asked, self.centres)
        number = balls @ (carried.numbers > 0).astype(np.int64)
        return Carriers(centres, p[row], alone.log_factor[row], together, copy, alone.group, number)
