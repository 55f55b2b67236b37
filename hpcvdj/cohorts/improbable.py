"""Improbable junctions that individuals share: by contamination, from a common source, or as samples of one person.

Chance puts n_i n_j Σ p² of the junctions with a probability below a threshold into both of two individuals with n_i and
n_j recombinations.  Selection increases this number: about four times in pairs of human TRB repertoires of different
studies (docs/contamination.md).  The test allows for ten times.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.p_values import Counts, Floats, benjamini_hochberg, poisson_tail
from hpcvdj.cohorts.cohort import Cohort, Sequences, sequences_of
from hpcvdj.cohorts.holding import Holding
from hpcvdj.errors import few
from hpcvdj.kernels.distinct import distinct

MAX_PGEN, LARGEST_MAX_PGEN = 1e-11, 1e-6
"""Junctions of smaller probability, among productive ones, are improbable.  The threshold is raised up to the second
number where it leaves too few junctions to detect contamination, as in loci without D."""

MOST_EXPECTED = 0.05
"""The threshold is not raised if chance then puts more improbable junctions than this into both of two individuals of
the largest size."""

SELECTION = 10
"""The factor by which selection may increase the expected number."""

MAX_Q = 0.001
"""The q-value up to which a pair stands out."""

COMMON = 4
"""The number of people from which on an improbable junction is from a common source, not from one of a pair."""

SAME_SAMPLE, FEWEST_SHARED = 0.5, 50
"""Two individuals are the same sample if they share a larger part of the improbable junctions of one of them, and at
least so many."""

LARGEST, SIMILAR, SAME_PERSON = 50, 20, 0.5
"""Two individuals are of one person if each has this share of the 50 largest improbable clones of the other at similar
frequency, at least a twentieth."""

OF_BOTH, BALANCED, FEWEST_UNLIKE = 0.03, 0.25, 20
"""Two individuals are also of one person if each has such a share of the other's improbable junctions, neither is the
source (at least 20 shared junctions have unequal reads, and each has more reads in a quarter of them), and the larger
clones of one are the larger ones of the other."""

CLEAR_READS, NEAR, OF_LARGE, FEWEST_CLEAR = 16, 3, 0.125, 10
"""Two individuals are not of one person if copies explain the reads of their large clones: of at least 10 shared
improbable junctions, of which the larger clone would have 16 reads in the smaller sample, fewer than an eighth have
frequencies within a factor of 3."""

SEEN = 0.01
"""The share of an individual's junctions whose copies must be detectable."""

MOST_NEEDED = 1_000
"""The largest number of shared junctions that is considered when computing how many stand out."""

Verdict = Literal["same sample", "same person", "contaminated", "no power", ""]
"""What a pair is; empty if it shares no more than chance makes."""


@dataclass(frozen=True)
class Pairs:
    """Improbable junctions of each two individuals; arrays are [individuals, individuals] unless a shape is given.

    shared      int64: the number that both have, without those of a common source; on the diagonal those of each
    common      int64: the number from a common source that both have; on the diagonal those of each
    certain     int64: the number of these that more people have than chance and selection explain for any junction
    expected    float64: the number that chance makes them share, without selection
    p_value     float64: P(at least `shared` | Poisson with `SELECTION` times the expected number); 1 on the diagonal,
                and for two of one person
    q_value     float64: by Benjamini and Hochberg over the pairs; 1 likewise
    detectable  float64: the share of the smaller one's improbable junctions whose copies are detected in 95 % of cases
    person_of   int64 [individuals]: the number of the person
    same_sample bool
    third       int64: the individual that explains what a pair shares: without the junctions that it has, too, the pair
                does not stand out, while it stands out with each of both without them; -1 for none
    """

    shared: Counts
    common: Counts
    certain: Counts
    expected: Floats
    p_value: Floats
    q_value: Floats
    detectable: Floats
    person_of: Counts
    same_sample: NDArray[np.bool_]
    third: Counts

    @property
    def same_person(self) -> NDArray[np.bool_]:
        """Whether two different individuals are of one person; the same sample is included."""
        same = self.person_of[:, np.newaxis] == self.person_of
        np.fill_diagonal(same, False)
        return np.asarray(same)

    @property
    def linked(self) -> NDArray[np.bool_]:
        """Whether two share copies, bool [individuals, individuals].

        They contaminated each other, or have a junction that is certainly of a common source.
        """
        return np.asarray((self.verdicts == "contaminated") | (self.certain > 0))

    @property
    def connected(self) -> Counts:
        """The component of each individual, int64 [individuals], if those who share copies are joined; -1 if alone."""
        return _of_several(_connected(self.linked))

    @cached_property
    def group(self) -> Counts:
        """The group of each individual, int64 [individuals]; -1 if alone.

        Two who share copies are joined if more than a third of those who share copies with either do with both: a pair
        does not join two sources.
        """
        linked = (self.linked | np.eye(len(self.shared), dtype=bool)).astype(np.int64)
        both, number = linked @ linked, linked.sum(axis=0)
        return _of_several(_connected((linked > 0) & (3 * both > np.add.outer(number, number) - both)))

    @property
    def standing_out(self) -> list[tuple[int, int]]:
        """The pairs that share more than chance and selection explain, the most improbable first."""
        i, j = np.nonzero(np.triu(self.q_value <= MAX_Q, 1))
        order = np.lexsort((j, i, -self.shared[i, j], self.p_value[i, j]))
        return list(zip(i[order].tolist(), j[order].tolist(), strict=True))

    @property
    def of_one_person(self) -> list[tuple[int, int]]:
        """The pairs of one person; the same sample is included."""
        return [(int(i), int(j)) for i, j in np.argwhere(np.triu(self.same_person, 1))]

    @cached_property
    def verdicts(self) -> NDArray[np.object_]:
        """What each pair is, `Verdict` [individuals, individuals]."""
        kinds: list[Verdict] = ["same sample", "same person", "contaminated", "no power"]
        conditions = [self.same_sample, self.same_person, self.q_value <= MAX_Q, self.detectable > SEEN]
        return np.select(conditions, np.array(kinds, dtype=object), np.array("", dtype=object))


@dataclass(frozen=True)
class Improbable:
    """The improbable junctions of a cohort: those of this rank, and numbers over all ranks.

    max_pgen      the threshold
    is_low        bool [junctions]: whether each junction of this rank is improbable
    low           int64 [individuals]: the number of improbable junctions on all ranks
    several       the improbable junctions of this rank that several individuals have, also individuals of one person
    sequences     int64: the index of each of these junctions
    of_people     int64: the number of people that have each of these junctions
    common        the number of junctions of a common source on all ranks
    pairs         the numbers and tests of each two individuals
    """

    max_pgen: float
    is_low: NDArray[np.bool_]
    low: Counts
    several: Holding
    sequences: Counts
    of_people: Counts
    common: int
    pairs: Pairs


def improbable_of(
    cohort: Cohort, p: Floats, sizes: Floats, of_drawn: Floats, max_pgen: float | None, kept: NDArray[np.bool_]
) -> Improbable:
    """Find the improbable junctions of a cohort; all ranks call this together.

    p         float64 [junctions]: probabilities among productive recombinations
    sizes     float64 [individuals]: the number of recombinations
    of_drawn  float64 [draws]: the probabilities of junctions that are drawn
    max_pgen  the threshold; with None, it depends on power
    kept      bool [junctions]: whether each junction takes part
    """
    improbable = _at(cohort, p, sizes, of_drawn, max_pgen or MAX_PGEN, kept)
    # Of an individual with fewer junctions, no threshold lets copies be seen, so it does not decide that of others.
    able = np.flatnonzero(SEEN * cohort.sizes >= _needed(np.zeros(1))[0])
    largest = float(sizes.max()) ** 2
    raises = max_pgen is None
    while (
        raises
        and (improbable.pairs.detectable[np.ix_(able, able)] > SEEN).any()
        and improbable.max_pgen < LARGEST_MAX_PGEN / 2
    ):
        # Without the error of a product, which users would see.
        higher = float(f"{improbable.max_pgen * 10:.9g}")
        # Root decides for all ranks, which may round differently.
        if cohort.run.from_root(lambda: largest * _mean(of_drawn, higher) > MOST_EXPECTED):  # noqa: B023
            break
        improbable = _at(cohort, p, sizes, of_drawn, higher, kept)
    return improbable


def _mean(of_drawn: Floats, max_pgen: float) -> float:
    """Return Σ p² of improbable junctions."""
    return float((of_drawn * (of_drawn < max_pgen)).mean())


def _at(
    cohort: Cohort, p: Floats, sizes: Floats, of_drawn: Floats, max_pgen: float, kept: NDArray[np.bool_]
) -> Improbable:
    has, run = cohort.has, cohort.run
    is_low = (p > 0) & (p < max_pgen) & kept
    low = run.sum(np.bincount(has.individual[is_low[has.sequence]], minlength=has.individuals))
    sequences = np.flatnonzero(is_low & (has.numbers >= 2))
    several = has.only(sequences)
    overlap = cohort.summed(several)
    same_sample, same_person = _same(cohort, several, overlap, low, is_low)
    person_of = _connected(same_person)
    of_people = people_of(several, person_of).numbers
    is_common = of_people >= COMMON
    common = cohort.summed(several.only(np.flatnonzero(is_common)))
    fewest = run.from_root(lambda: _fewest_people(sizes, of_drawn[of_drawn < max_pgen], len(of_drawn)))
    certain = cohort.summed(several.only(np.flatnonzero(of_people >= fewest)))
    triples = run.gather(_triples(several.only(np.flatnonzero(several.numbers == 3))))

    def tested() -> Pairs:
        expected = np.asarray(np.multiply.outer(sizes, sizes) * _mean(of_drawn, max_pgen), dtype=np.float64)
        pairs = _tested(overlap - common, common, certain, expected, low, person_of, same_sample)
        _name_thirds(pairs, np.concatenate(triples or []))
        return pairs

    pairs = run.from_root(tested)
    number = int(run.sum(np.array([is_common.sum()]))[0])
    return Improbable(max_pgen, is_low, low, several, sequences, of_people, number, pairs)


def _fewest_people(sizes: Floats, low: Floats, draws: int) -> int:
    """The number of people from which on chance and selection hardly ever put one improbable junction into all of them.

    sizes  float64 [individuals]: numbers of recombinations
    low    float64: the probabilities of the improbable ones of so many `draws`

    The expected number of junctions of so many people, each of whom makes a junction `SELECTION` times as often as the
    model says, is at most `MAX_Q`: the sum of P(as many) of all junctions is the mean of P(as many) / p of draws.
    """
    low, number = low[low > 0], COMMON
    every = SELECTION * float(sizes.sum()) * low
    while number <= len(sizes) and float((poisson_tail(number, every) / low).sum()) > MAX_Q * draws:
        number += 1
    return number


def people_of(has: Holding, person_of: Counts) -> Holding:
    """Return the people that have each sequence; the largest clone counts if several samples are of one person."""
    people = int(person_of.max(initial=-1)) + 1
    return Holding.of(has.sequence, person_of[has.individual], len(has.begins) - 1, people, has.reads, np.maximum)


def more_reads(cohort: Cohort, several: Holding) -> Counts | None:
    """Count the junctions of which the first of two individuals has more reads; return None without reads.

    several  the shared junctions of this rank; all ranks count together

    Returns int64 [individuals, individuals].
    """
    if several.reads is None:
        return None
    more = np.zeros((several.individuals, several.individuals), dtype=np.int64)
    for first, stop in pairwise(several.begins.tolist()):
        holders, reads = several.individual[first:stop], several.reads[first:stop]
        more[np.ix_(holders, holders)] += reads[:, np.newaxis] > reads
    return cohort.run.sum(more)


def _same(
    cohort: Cohort, several: Holding, overlap: Counts, low: Counts, is_low: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether two individuals are the same sample, and whether they are of one person (same sample included)."""
    share = np.where(overlap >= FEWEST_SHARED, overlap, 0) / np.maximum(low, 1)[:, np.newaxis]
    same_sample = np.maximum(share, share.T) > SAME_SAMPLE
    np.fill_diagonal(same_sample, False)
    same_person = same_sample.copy()
    more = more_reads(cohort, several)
    if more is not None:
        unlike = more + more.T
        balanced = (np.minimum(more, more.T) >= BALANCED * unlike) & (unlike >= FEWEST_UNLIKE)
        same_person |= _alike(cohort, is_low) >= SAME_PERSON
        same_person |= balanced & (np.minimum(share, share.T) >= OF_BOTH) & (_covariance(cohort, several, overlap) > 0)
        copied = _copied(cohort, several)
        same_sample, same_person = same_sample & ~copied, same_person & ~copied
    return same_sample, same_person


def _reads_of(cohort: Cohort) -> Counts:
    """Return the reads of each individual on all ranks, int64 [individuals]."""
    has = cohort.has
    return cohort.run.sum(np.bincount(has.individual, has.reads, has.individuals).astype(np.int64))


def _copied(cohort: Cohort, several: Holding) -> NDArray[np.bool_]:
    """Return whether the large clones that two individuals share are copies: much rarer in one of the two.

    bool [individuals, individuals]
    """
    assert several.reads is not None
    total = _reads_of(cohort)
    clear, near = np.zeros((2, several.individuals, several.individuals), dtype=np.int64)
    # A clone of fewer reads would have fewer in the smaller sample, too.
    large = several.only(distinct(several.sequence[several.reads >= CLEAR_READS]).astype(np.int64))
    assert large.reads is not None
    frequency = large.reads / total[large.individual]
    for first, stop in pairwise(large.begins.tolist()):
        holders, own = large.individual[first:stop], frequency[first:stop, np.newaxis]
        higher = np.maximum(own, own.T)
        is_clear = higher * np.minimum.outer(total[holders], total[holders]) >= CLEAR_READS
        clear[np.ix_(holders, holders)] += is_clear
        near[np.ix_(holders, holders)] += is_clear & (higher <= NEAR * np.minimum(own, own.T))
    clear, near = cohort.run.sum(np.array([clear, near]))
    return np.asarray((clear >= FEWEST_CLEAR) & (near < OF_LARGE * clear))


def _covariance(cohort: Cohort, several: Holding, overlap: Counts) -> Counts:
    """Return the covariance of the reads that two individuals have of the junctions of both, on a logarithmic scale.

    int64 [individuals, individuals], times the squares of the numbers `overlap` of these junctions.
    """
    assert several.reads is not None
    has = several.matrix()
    # Binary digits are whole numbers, whose sums over ranks do not depend on the order.
    digits = has.copy()
    digits.data = np.frexp(several.reads)[1].astype(np.int64)
    products, sums = (cohort.run.sum((digits.T @ other).toarray()) for other in (digits, has))
    return np.asarray(overlap * products - sums * sums.T)


def _alike(cohort: Cohort, is_low: NDArray[np.bool_]) -> Floats:
    """Return the share of the largest improbable clones of an individual that another one has at similar frequency.

    float64 [individuals, individuals]: the smaller share of each two; 0 on the diagonal, and for an individual with
    fewer than `LARGEST` improbable clones.
    """
    has, run = cohort.has, cohort.run
    assert has.reads is not None
    total = _reads_of(cohort)
    # The largest of all ranks are among the largest of each.
    entries = np.flatnonzero(is_low[has.sequence])
    chosen = distinct(has.sequence[entries[_largest(has, entries)]]).astype(np.int64)
    largest = sequences_of(cohort, "nt").only(chosen).on_root(run)

    def share_alike(sequences: Sequences, _: dict[str, Counts]) -> Floats:
        has = sequences.has
        assert has.reads is not None
        frequency = has.reads / total[has.individual]
        entries = _largest(has, np.arange(len(has.individual)))
        number = np.bincount(has.individual[entries], minlength=has.individuals)
        holders = has.only(has.sequence[entries].astype(np.int64))
        assert holders.reads is not None
        own = entries[holders.sequence]
        similar = SIMILAR * (holders.reads / total[holders.individual]) >= frequency[own]
        alike = np.zeros((has.individuals, has.individuals))
        np.add.at(alike, (has.individual[own[similar]], holders.individual[similar]), 1)
        np.fill_diagonal(alike, 0)
        share = np.where(number >= LARGEST, alike.T / LARGEST, 0).T
        return np.minimum(share, share.T)

    return run.from_root(share_alike, *(largest or ()))


def _largest(has: Holding, entries: Counts) -> Counts:
    """Return the indices in `entries` of the `LARGEST` clones of each individual; the first of equal ones."""
    assert has.reads is not None
    order = np.lexsort((entries, -has.reads[entries], has.individual[entries]))
    owner = has.individual[entries[order]]
    return order[np.arange(len(order)) - np.searchsorted(owner, owner) < LARGEST]


def _of_several(group: Counts) -> Counts:
    """Return the groups, int64 [individuals], with -1 for an individual alone in one."""
    return np.where(np.bincount(group)[group] > 1, group, -1)


def _connected(same: NDArray[np.bool_]) -> Counts:
    """Number the people, int64 [individuals]: individuals that pairs of one person connect are one person."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(csr_array(same), directed=False)[1], dtype=np.int64)


def _tested(
    shared: Counts, common: Counts, certain: Counts, expected: Floats, low: Counts, person_of: Counts,
    same_sample: NDArray[np.bool_],
) -> Pairs:  # fmt: skip
    """Test the number of improbable junctions that each two individuals share."""
    shape = shared.shape
    none = np.full(shape, -1)
    pairs = Pairs(
        shared, common, certain, expected, np.ones(shape), np.ones(shape), np.zeros(shape), person_of, same_sample, none
    )
    upper = np.triu_indices(len(low), 1)
    different = ~pairs.same_person[upper]
    upper = upper[0][different], upper[1][different]
    mean = SELECTION * expected[upper]
    p_value = poisson_tail(shared[upper], mean)
    values = (
        (pairs.p_value, p_value),
        (pairs.q_value, benjamini_hochberg(p_value, len(p_value))),
        (pairs.detectable, _needed(mean) / np.maximum(np.minimum(low[upper[0]], low[upper[1]]), 1)),
    )
    for matrix, of_pair in values:
        matrix[upper] = of_pair
        matrix.T[upper] = of_pair
    return pairs


def _triples(has: Holding) -> Counts:
    """Return each three individuals once for each junction that they have, int64 [junctions, 3], in order."""
    return np.sort(has.individual.reshape(-1, 3).astype(np.int64), axis=1)


def _name_thirds(pairs: Pairs, triples: Counts) -> None:
    """Enter the third individuals, from the triples of all ranks, [junctions, 3]; that with most junctions counts."""
    holders, number = np.unique(triples, axis=0, return_counts=True)
    order = np.argsort(number, kind="stable")
    holders, number = holders[order].T, number[order]
    around = [(holders[k], holders[k - 1]) for k in range(3)]
    stands_out = [
        (poisson_tail(pairs.shared[pair] - number, SELECTION * pairs.expected[pair]) <= MAX_Q)
        & ~pairs.same_person[pair]
        for pair in around
    ]
    for k, (one, other) in enumerate(around):
        explained = stands_out[k - 1] & stands_out[k - 2] & ~stands_out[k] & (pairs.q_value[one, other] <= MAX_Q)
        for i, j in ((one, other), (other, one)):
            pairs.third[i[explained], j[explained]] = holders[k - 2][explained]


def _needed(mean: Floats) -> Floats:
    """Return the mean number of copies with which a pair stands out alone among all pairs, in 95 % of cases."""
    from scipy.special import gammaincinv

    numbers = np.arange(1, MOST_NEEDED + 1)
    # The largest expected number against which a number of shared junctions stands out.
    largest_mean = gammaincinv(numbers, MAX_Q / max(len(mean), 1))
    needed = np.append(gammaincinv(numbers, 0.95), np.inf)
    return np.asarray(needed[np.searchsorted(largest_mean, mean)])


def pairs_text(cohort: Cohort, improbable: Improbable | None) -> list[str]:
    """Return a line for each pair that stands out, up to five, and a line about junctions of a common source."""
    if improbable is None:
        return []
    pairs = improbable.pairs
    lines = [
        f"{cohort.names[i]} and {cohort.names[j]}: {int(pairs.shared[i, j]):,} improbable junctions shared, "
        f"{float(pairs.expected[i, j]):.2g} expected"
        f"{f'; {cohort.names[pairs.third[i, j]]} has them, too' if pairs.third[i, j] >= 0 else ''}"
        for i, j in pairs.standing_out[:5]
    ]
    if more := pairs.standing_out[5:]:
        lines.append(f"and {len(more):,} more pairs")
    if improbable.common:
        lines.append(f"{improbable.common:,} improbable junctions are in {COMMON} people or more, of a common source")
    return lines


def power_text(cohort: Cohort, pairs: Pairs) -> str:
    """Return a line about the individuals whose copies cannot be detected; empty if there are none."""
    lacking = np.triu(pairs.verdicts == "no power", 1)
    if not lacking.any():
        return ""
    often = np.argsort(-(lacking | lacking.T).sum(axis=0), kind="stable")
    names = [cohort.names[k] for k in often.tolist() if (lacking | lacking.T)[k].sum() > len(cohort.names) / 2]
    return (
        f"in {int(lacking.sum()):,} pairs, copies of {100 * SEEN:.0f} % of a sample would not be seen, for want of "
        f"improbable junctions{f': of {few(names)}' if names else ''}"
    )
