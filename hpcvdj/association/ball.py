"""Balls as units of association: a sequence with all sequences of its genes within one exchange.

A donor carries a ball if it has any sequence of the ball.  The n recombinations of a donor make at least one of them
with the probability 1 - exp(-x n), where x is the sum of their probabilities.  So the law of the carriers, given their
number, is that of single sequences (see `hpcvdj.association.law`).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.association.carriers import Carriers
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.cohorts.cohort import Cohort, Holding, Sequences, sequences_of
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.repertoires.genes import kinds_of, letter_words

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
    def of(cohort: Cohort, model: Model, min_individuals: int) -> "Balls":
        """The balls of a cohort that at least `min_individuals` donors carry."""
        every = sequences_of(cohort, "vj-aa", model)
        sequences = every.only(np.arange(len(every.first)))
        within = within_one_exchange(sequences.letters, sequences.lengths, kinds_of(sequences.repertoire))
        numbers = (within @ _matrix(sequences.has)).astype(bool).sum(axis=1)
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
        carried = Holding.of(
            np.concatenate([has.sequence[other], asked[alone.has.sequence]]),
            np.concatenate([has.individual[other], alone.has.individual]),
            sequences, has.individuals, None, np.maximum,
        )  # fmt: skip
        balls = self.within[self.centres]
        by_ball = (balls @ _matrix(carried)).tocoo()
        together = Holding.of(
            by_ball.row.astype(np.int64), by_ball.col.astype(np.int64), len(self.centres), has.individuals, None,
            np.maximum,
        )  # fmt: skip
        copy = None
        if alone.copy is not None:
            copied = np.zeros(sequences, dtype=np.int64)
            copied[asked] = alone.copy
            copy = balls @ copied > 0
        centres = self.sequences.only(self.centres)
        centres = replace(centres, has=together, variants=balls @ self.sequences.variants)
        row = np.searchsorted(asked, self.centres)
        members = balls @ (carried.numbers > 0).astype(np.int64)
        return Carriers(centres, p[row], alone.log_factor[row], together, copy, members)


def within_one_exchange(letters: NDArray[np.uint8], lengths: Counts, classes: Counts) -> Any:
    """Pairs of sequences of one class and length that differ in at most one position, equal ones included.

    letters  uint8 [sequences, width], the width a multiple of 8; the sequences of a class are distinct
    lengths  int64 [sequences]: how many letters count; the others are 0
    classes  int64 [sequences]

    Returns csr_array [sequences, sequences], with 1 for each pair.
    """
    from scipy.sparse import csr_array

    number = len(lengths)
    row, column, columns = [np.arange(number)], [np.arange(number)], number
    for position in range(int(lengths.max(initial=0))):
        others = letters.copy()
        others[:, position] = 0
        first, group = groups(letter_words(others), lengths, classes)
        several = np.flatnonzero(np.bincount(group, minlength=len(first))[group] > 1)
        row.append(several)
        column.append(columns + group[several])
        columns += len(first)
    at = np.concatenate(row), np.concatenate(column)
    grouped = csr_array((np.ones(len(at[0]), dtype=np.int64), at), shape=(number, columns))
    within = grouped @ grouped.T
    within.data[:] = 1
    return within


def _matrix(has: Holding) -> Any:
    """Who has which sequence: csr_array [sequences, individuals] of ones."""
    from scipy.sparse import csr_array

    shape = len(has.numbers), has.individuals
    return csr_array((np.ones(len(has.individual), dtype=np.int64), has.individual, has.begins), shape=shape)
