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
from hpcvdj.cohorts.cohort import Holding

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
    """

    same_nt: Counts
    p_same: Floats
    p_reads: Floats
    of_pair: NDArray[np.bool_]

    @property
    def likely(self) -> NDArray[np.bool_]:
        """Whether each sequence is a likely copy."""
        evidence = self.of_pair | (self.p_same * self.p_reads <= BOTH)
        return (self.p_same <= SAME) | ((self.p_same <= PERHAPS_SAME) & evidence)


def copies_of(
    has: Holding, p: Floats, spelled: Counts, p_spelled: Floats, sequence_of: Counts, contaminated: NDArray[np.bool_]
) -> Copies:
    """What speaks for copies of sequences.

    has          who has which junction, of all junctions of the cohort
    p            float64 [junctions]: their probabilities
    spelled      int64 [junctions]: which amino-acid sequence each spells; -1 for one that is not asked for
    p_spelled    float64: the probabilities of these
    sequence_of  int64 [junctions]: to which of the sequences that are shared each belongs; -1 for none
    contaminated bool [individuals, individuals]: pairs that share more than chance and selection explain
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
    if has.reads is not None:
        p_reads[sequence[first]] = _source(has, own[first])
    for row in first[(p_same[sequence[first]] <= PERHAPS_SAME)].tolist() if contaminated.any() else ():
        holding = has.individual[has.begins[own[row]] : has.begins[own[row] + 1]]
        of_pair[sequence[row]] = contaminated[np.ix_(holding, holding)].any()
    return Copies(same_nt, p_same, p_reads, of_pair)


def _log_choices(entries: Floats, holders: Counts) -> Floats:
    """log C(entries, holders)."""
    from scipy.special import gammaln

    return np.asarray(gammaln(entries + 1) - gammaln(holders + 1) - gammaln(entries - holders + 1))


def _source(has: Holding, junctions: Counts) -> Floats:
    """The chance that one holder of each junction has so large a clone, if it is much larger than the next; else 1."""
    assert has.reads is not None
    part = has.only(junctions)
    assert part.reads is not None
    order = np.lexsort((-part.reads, part.sequence))
    first, second = order[part.begins[:-1]], order[part.begins[:-1] + 1]
    largest = part.reads[first]
    much = largest >= TIMES_THE_READS * part.reads[second]
    # A source has so many reads at least, as each clone has one or more: few clones have.
    large = np.flatnonzero(has.reads >= TIMES_THE_READS)
    owner, reads = has.individual[large], has.reads[large]
    order = np.lexsort((reads, owner))
    owner, reads = owner[order], reads[order]
    total = np.bincount(has.individual, minlength=has.individuals)
    chance = np.ones(len(junctions))
    for row in np.flatnonzero(much).tolist():
        individual = int(part.individual[first[row]])
        begin, end = np.searchsorted(owner, [individual, individual + 1]).tolist()
        as_large = end - begin - int(np.searchsorted(reads[begin:end], largest[row]))
        chance[row] = min(int(part.numbers[row]) * as_large / int(total[individual]), 1.0)
    return chance
