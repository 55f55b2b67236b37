"""Likely copies: shared sequences that too many individuals have in the same nucleotides.

Individuals that make an amino-acid sequence independently make it with different nucleotides.  Let e be the number of
pairs of an individual and a junction of it that spells the sequence.  The junction of each pair is x with the
probability r = P(x) / P(sequence), independently of the others.  So the chance that k individuals have the same
junction, as improbable as x or more, is at most

    C(e, k) r^(k - 1)

This is the number of choices of k pairs, times an upper bound of the sum of r^k over such junctions.  Selection acts on
the amino acids and does not change r.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.cohorts.holding import Holding, Places

SAME = 1e-3
"""The chance up to which the same nucleotides alone make a sequence a likely copy."""

PERHAPS_SAME, BOTH = 0.05, 1e-4
"""The chance up to which they do so together with other evidence: two of the individuals contaminated each other; or
one has so large a clone that the chance of this and of the same nucleotides is at most the second number."""

TIMES_THE_READS = 20
"""The smallest ratio of the reads of a source to those of the next largest clone."""


@dataclass(frozen=True)
class Copies:
    """The evidence that shared sequences are copies; all arrays are [sequences].

    same_nt     int64: the largest number of individuals that have the same junction
    p_same      float64: the chance that so many have it; 1 for fewer than two
    p_reads     float64: the chance that one of them has so large a clone, if it has `TIMES_THE_READS` times the reads
                of the next one; else 1
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


def copies_of(
    has: Holding, p: Floats, spelled: Places, p_spelled: Floats, sequence_of: Places, contaminated: NDArray[np.bool_],
    clones: Sequence[CloneSizes],
) -> Copies:  # fmt: skip
    """Collect the evidence that shared sequences are copies.

    has          the individuals that have each junction of the cohort
    p            float64 [junctions]: the probabilities of the junctions
    spelled      integers [junctions]: the amino-acid sequence that each junction spells; -1 if it is not asked for
    p_spelled    float64 [amino-acid sequences]: their probabilities
    sequence_of  integers [junctions]: the shared sequence that each junction belongs to; -1 for none
    contaminated bool [individuals, individuals]: pairs that share more than chance and selection explain
    clones       the clone sizes of each individual, over all ranks; empty without reads
    """
    sequences = int(sequence_of.max(initial=-1)) + 1
    entries = np.bincount(spelled[spelled >= 0], has.numbers[spelled >= 0], len(p_spelled)).astype(np.float64)
    shared = np.flatnonzero((sequence_of >= 0) & (spelled >= 0) & (has.numbers >= 2) & (p > 0))
    sequence, holders = sequence_of[shared], has.numbers[shared]
    share = np.minimum(p[shared] / p_spelled[spelled[shared]], 1.0)
    chance = np.minimum(_log_choices(entries[spelled[shared]], holders) + (holders - 1) * np.log(share), 0.0)
    # The junction whose sharing is the least probable; of equal ones, that of most individuals.
    order = np.lexsort((-holders, chance, sequence))
    first = order[np.diff(sequence[order], prepend=-1) > 0]
    same_nt = np.ones(sequences, dtype=np.int64)
    np.maximum.at(same_nt, sequence, holders)
    p_same, p_reads, of_pair = np.ones(sequences), np.ones(sequences), np.zeros(sequences, dtype=bool)
    # All shared junctions of a sequence are tried, so the smallest chance is multiplied by their number.
    p_same[sequence[first]] = np.minimum(np.exp(chance[first]) * np.bincount(sequence)[sequence[first]], 1.0)
    if clones:
        p_reads[sequence[first]] = _source(has, shared[first], clones)
    for row in first[p_same[sequence[first]] <= PERHAPS_SAME].tolist() if contaminated.any() else ():
        holding = has.individual[has.begins[shared[row]] : has.begins[shared[row] + 1]]
        of_pair[sequence[row]] = contaminated[np.ix_(holding, holding)].any()
    junction = np.full(sequences, -1, dtype=np.int64)
    junction[sequence[first]] = shared[first]
    return Copies(same_nt, p_same, p_reads, of_pair, junction)


def sources_of(has: Holding, group: Counts) -> Counts:
    """Which entries may be copies of each other, int64 [entries].

    group  int64 [individuals]: the group of those that share copies, -1 of others

    Entries of one junction in one group have the same number, which no other entries have.  It is 0 of an entry if
    nobody else of the group has the junction.
    """
    source = np.zeros(len(has.individual), dtype=np.int64)
    if (group < 0).all():
        return source
    asked = np.flatnonzero((group[has.individual] >= 0) & (has.numbers > 1)[has.sequence])
    key = has.sequence[asked] * np.int64(len(group) + 1) + group[has.individual[asked]]
    _, number, times = np.unique(key, return_inverse=True, return_counts=True)
    source[asked] = np.where(times[number] > 1, number + 1, 0)
    return source


def most_alike(has: Holding, sequence_of: Places, group: Counts, sequences: int) -> Counts:
    """The most individuals of one group that have the same junction of each sequence, int64 [sequences].

    sequence_of  integers [junctions]: as of `copies_of`
    group        as of `sources_of`

    It is 0 of sequences of which no two of a group have the same junction.
    """
    source, sequence = sources_of(has, group), sequence_of[has.sequence]
    asked = (source > 0) & (sequence >= 0)
    alike = np.zeros(sequences, dtype=np.int64)
    np.maximum.at(alike, sequence[asked], np.bincount(source)[source[asked]])
    return alike


def _log_choices(entries: Floats, holders: Counts) -> Floats:
    """Return log C(entries, holders)."""
    from scipy.special import gammaln

    return np.asarray(gammaln(entries + 1) - gammaln(holders + 1) - gammaln(entries - holders + 1))


def _source(has: Holding, junctions: Counts, clones: Sequence[CloneSizes]) -> Floats:
    """Return the chance that a holder has so large a clone of a junction; 1 if it is not much larger than the next."""
    part = has.only(junctions)
    assert part.reads is not None
    order = np.lexsort((-part.reads, part.sequence))
    first, second = order[part.begins[:-1]], order[part.begins[:-1] + 1]
    largest = part.reads[first]
    much = largest >= TIMES_THE_READS * part.reads[second]
    chance, holders = np.ones(len(junctions)), part.numbers
    for row in np.flatnonzero(much).tolist():
        individual = int(part.individual[first[row]])
        as_large, number = (clones[individual].at_least(reads) for reads in (int(largest[row]), 1))
        chance[row] = min(int(holders[row]) * as_large / number, 1.0)
    return chance
