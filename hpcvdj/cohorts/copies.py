"""Shared sequences that are likely copies: the same nucleotides in too many individuals.

Individuals that make a sequence honestly make it with different nucleotides.  Of e pairs of an individual and one of
its junctions that spell the sequence, each has a junction x with the probability r = P(x) / P(sequence), independently
of each other.  So the chance that k individuals have one and the same junction, as improbable as x or more, is at most

    C(e, k) r^(k - 1)

the number of choices of k times the sum of r^k over such junctions, which is at most r^(k - 1).  Selection of the
sequence, which is one of amino acids, does not change r.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.depth import Counts, Floats
from hpcvdj.cohorts.cohort import Holding, Places
from hpcvdj.runs.run import Run

SAME = 1e-3
"""The chance up to which the same nucleotides alone make a sequence a likely copy."""

PERHAPS_SAME, BOTH = 0.05, 1e-4
"""The chance up to which they do so with other evidence: two of the individuals contaminated each other; or one has a
clone so large that this and the same nucleotides together have at most the second chance."""

TIMES_THE_READS = 20
"""By how much the reads of a source are those of the next largest clone, at least."""


@dataclass(frozen=True)
class Copies:
    """What speaks for copies of shared sequences.

    same_nt     int64 [sequences]: the most individuals that have one and the same junction
    p_same      float64: the chance that so many do; 1 for fewer than two
    p_reads     float64: the chance that one of them has so large a clone, if its clone is `TIMES_THE_READS` as large as
                the next one; else 1
    of_pair     bool: whether two of them share more improbable junctions than chance and selection explain
    junction    int64: the junction whose sharing is the least probable; -1 if none is shared
    """

    same_nt: Counts
    p_same: Floats
    p_reads: Floats
    of_pair: NDArray[np.bool_]
    junction: Counts

    @property
    def likely(self) -> NDArray[np.bool_]:
        """Whether each sequence is a likely copy."""
        evidence = self.of_pair | (self.p_same * self.p_reads <= BOTH)
        return (self.p_same <= SAME) | ((self.p_same <= PERHAPS_SAME) & evidence)


@dataclass(frozen=True)
class LargeClones:
    """The clones of `TIMES_THE_READS` reads or more, of the junctions of all ranks.

    first   int64 [individuals + 1]: those of an individual are first[k]:first[k + 1]
    reads   int64: ascending within an individual
    number  int64: how many clones of an individual have so many or more
    sizes   int64 [individuals]: all clones of each
    """

    first: Counts
    reads: Counts
    number: Counts
    sizes: Counts

    @staticmethod
    def of(has: Holding, sizes: Counts, run: Run) -> "LargeClones | None":
        """Those of the junctions of all ranks, of individuals with so many; None without reads."""
        if has.reads is None:
            return None
        large = has.reads >= TIMES_THE_READS
        clones = np.stack([has.individual[large], has.reads[large]], axis=1)
        every = run.gather_everywhere(np.unique(clones, axis=0, return_counts=True))
        clones, counts = (np.concatenate(values) for values in zip(*every, strict=True))
        distinct, of = np.unique(clones, axis=0, return_inverse=True)
        number = np.bincount(of.reshape(-1), counts, len(distinct)).astype(np.int64)
        first = np.searchsorted(distinct[:, 0], np.arange(has.individuals + 1))
        # Those of an individual from the largest on.
        after = np.concatenate([np.cumsum(number[::-1])[::-1], [0]])
        owner = distinct[:, 0]
        return LargeClones(first, distinct[:, 1], after[:-1] - after[first[owner + 1]], sizes)

    def as_large(self, individual: int, reads: int) -> int:
        """How many clones of an individual have `reads` or more, of `TIMES_THE_READS` at least."""
        begin, end = int(self.first[individual]), int(self.first[individual + 1])
        place = begin + int(np.searchsorted(self.reads[begin:end], reads))
        return int(self.number[place]) if place < end else 0


def copies_of(
    has: Holding, p: Floats, spelled: Places, p_spelled: Floats, sequence_of: Places, contaminated: NDArray[np.bool_],
    large: LargeClones | None,
) -> Copies:  # fmt: skip
    """What speaks for copies of sequences.

    has          who has which junction, of all junctions of the cohort
    p            float64 [junctions]: their probabilities
    spelled      integers [junctions]: which amino-acid sequence each spells; -1 for one that is not asked for
    p_spelled    float64: the probabilities of these
    sequence_of  integers [junctions]: to which of the sequences that are shared each belongs; -1 for none
    contaminated bool [individuals, individuals]: pairs that share more than chance and selection explain
    large        the large clones of the cohort; None without reads
    """
    sequences = int(sequence_of.max(initial=-1)) + 1
    entries = np.bincount(spelled[spelled >= 0], has.numbers[spelled >= 0], len(p_spelled)).astype(np.float64)
    own = np.flatnonzero((sequence_of >= 0) & (spelled >= 0) & (has.numbers >= 2) & (p > 0))
    sequence, holders = sequence_of[own], has.numbers[own]
    share = np.minimum(p[own] / p_spelled[spelled[own]], 1.0)
    chance = np.minimum(_log_choices(entries[spelled[own]], holders) + (holders - 1) * np.log(share), 0.0)
    # The junction whose sharing is the least probable; of equal ones, that of most individuals.
    order = np.lexsort((-holders, chance, sequence))
    first = order[np.concatenate([[True], np.diff(sequence[order]) > 0])] if len(order) else order
    same_nt = np.ones(sequences, dtype=np.int64)
    np.maximum.at(same_nt, sequence, holders)
    p_same, p_reads, of_pair = np.ones(sequences), np.ones(sequences), np.zeros(sequences, dtype=bool)
    # As many junctions of a sequence as several individuals have are tried.
    p_same[sequence[first]] = np.minimum(np.exp(chance[first]) * np.bincount(sequence)[sequence[first]], 1.0)
    if large is not None:
        p_reads[sequence[first]] = _source(has, own[first], large)
    for row in first[(p_same[sequence[first]] <= PERHAPS_SAME)].tolist() if contaminated.any() else ():
        holding = has.individual[has.begins[own[row]] : has.begins[own[row] + 1]]
        of_pair[sequence[row]] = contaminated[np.ix_(holding, holding)].any()
    junction = np.full(sequences, -1, dtype=np.int64)
    junction[sequence[first]] = own[first]
    return Copies(same_nt, p_same, p_reads, of_pair, junction)


def _log_choices(entries: Floats, holders: Counts) -> Floats:
    """log C(entries, holders)."""
    from scipy.special import gammaln

    return np.asarray(gammaln(entries + 1) - gammaln(holders + 1) - gammaln(entries - holders + 1))


def _source(has: Holding, junctions: Counts, large: LargeClones) -> Floats:
    """The chance that one holder of each junction has so large a clone, if it is much larger than the next; else 1."""
    part = has.only(junctions)
    assert part.reads is not None
    order = np.lexsort((-part.reads, part.sequence))
    first, second = order[part.begins[:-1]], order[part.begins[:-1] + 1]
    largest = part.reads[first]
    much = largest >= TIMES_THE_READS * part.reads[second]
    chance, holders = np.ones(len(junctions)), part.numbers
    for row in np.flatnonzero(much).tolist():
        individual = int(part.individual[first[row]])
        # A source has `TIMES_THE_READS` or more, as each clone has one or more.
        as_large = large.as_large(individual, int(largest[row]))
        chance[row] = min(int(holders[row]) * as_large / int(large.sizes[individual]), 1.0)
    return chance
