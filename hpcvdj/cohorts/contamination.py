"""Which individuals share improbable junctions, and how often large clones are met in others: contamination.

See `hpcvdj.cohorts.low` for the test of two individuals, and docs/contamination.md.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from hpcvdj.chance import DRAWS
from hpcvdj.chance.depth import Floats
from hpcvdj.chance.draws import Chance
from hpcvdj.cohorts.cohort import Cohort, Counts, Holding
from hpcvdj.cohorts.low import MAX_PGEN, Pairs
from hpcvdj.cohorts.sharing import same_sample
from hpcvdj.errors import InputError, few
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.runs.run import Run

CLONES = (1, 2, 4, 10, 30, 100, 1000)
"""The smallest clones, in reads, of the classes of which carry-over is told."""

MOST_ZERO = 0.05
"""The largest share of junctions that the model cannot make."""


@dataclass(frozen=True)
class Settings:
    """How contamination is found.

    max_pgen        junctions with a smaller probability, among productive recombinations, are improbable
    min_low         improbable junctions that each individual must have
    draws           productive sequences to draw from the model
    seed            of these
    backend         where probabilities are computed
    strict_binding  two ranks on one GPU are an error, not a warning
    """

    max_pgen: float = MAX_PGEN
    min_low: int = 10_000
    draws: int = DRAWS
    seed: int = 0
    backend: str = AUTO
    strict_binding: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.max_pgen <= 1e-6:
            raise InputError(f"--max-pgen {self.max_pgen}: give a number above 0, at most 1e-6")
        if self.min_low < 1:
            raise InputError(f"--min-low {self.min_low}: give at least 1")
        if self.draws < 1000:
            raise InputError(f"--draws {self.draws}: give at least 1000")


@dataclass(frozen=True)
class CarryOver:
    """How often improbable clones of a size are met in another individual.

    first, last  of their reads; None for no largest
    clones       how many clones there are
    same_group, other_group  in what share of the other individuals of the same group, and of other groups, a clone is
                 met; None without such individuals
    """

    first: int
    last: int | None
    clones: int
    same_group: float | None
    other_group: float | None

    @property
    def reads(self) -> str:
        """The reads, such as 4-9."""
        if self.last is None:
            return f">={self.first}"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class Copy:
    """A row whose junction another individual has in a larger clone.

    row         data row of the input, from 0
    individual  the place of its individual
    of          the place of the individual that has the largest clone
    reads, of_reads  of both clones
    """

    row: int
    individual: int
    of: int
    reads: int
    of_reads: int


@dataclass(frozen=True)
class Contamination:
    """Improbable junctions that individuals share.

    table       pyarrow, a row for each two individuals: see docs/contamination.md for the columns
    cohort      whose they are
    max_pgen    below which a junction is improbable
    low         int64 [individuals]: improbable junctions of each
    zero        int64 [individuals]: those that the model cannot make
    pairs       shared and expected numbers, and tests
    rate        float64 [individuals, individuals]: shared improbable junctions of all pairs of one of each
    carry_over  by the size of clones; empty without read counts
    copies      rows of improbable junctions that are not of the largest clone; None without read counts
    """

    table: pa.Table
    cohort: Cohort
    max_pgen: float
    low: Counts
    zero: Counts
    pairs: Pairs
    rate: Floats
    carry_over: list[CarryOver]
    copies: list[Copy] | None

    def __repr__(self) -> str:
        """How many pairs there are, and how many stand out."""
        return (
            f"<Contamination of {len(self.cohort.individuals):,} individuals: {len(self.pairs.standing_out):,} of "
            f"{self.table.num_rows:,} pairs stand out>"
        )


def contaminate(cohort: Cohort | None, model: Model, settings: Settings, run: Run) -> Contamination | None:
    """Compare root's individuals; None on the other ranks, which compute probabilities.

    InputError if an individual has too few improbable junctions, or too many that the model cannot make, and if two are
    the same sample.
    """
    chance = Chance(model, settings.draws, settings.seed, settings.backend, settings.strict_binding)
    of_drawn = chance.among_productive(chance.drawn(run), PGEN_COLUMNS[:1], run)
    p = chance.among_productive(cohort.repertoire if cohort is not None else None, PGEN_COLUMNS[:1], run)

    def found() -> Contamination:
        assert cohort is not None
        assert of_drawn is not None
        assert p is not None
        rare = of_drawn[:, 0] < settings.max_pgen
        return _found(cohort, p[:, 0], float((of_drawn[:, 0] * rare).mean()), settings)

    return run.on_root(found)


def _found(cohort: Cohort, p: Floats, mean: float, settings: Settings) -> Contamination:
    has, sizes = cohort.has, cohort.has.sizes
    zero = np.bincount(has.individual[p[has.sequence] <= 0], minlength=has.individuals)
    is_low = (p > 0) & (p < settings.max_pgen)
    low = np.bincount(has.individual[is_low[has.sequence]], minlength=has.individuals)
    _require_power(cohort, low, zero, settings)
    several = has.only(np.flatnonzero(is_low & (has.numbers >= 2)))
    overlap = several.overlap()
    pairs = Pairs.of(overlap, sizes, mean)
    same = pairs.duplicate(low)
    if same is not None:
        raise same_sample(cohort, *same)
    np.fill_diagonal(overlap, low)
    rate = np.divide(overlap, low[:, np.newaxis] * low.astype(np.float64))
    np.fill_diagonal(rate, np.nan)
    return Contamination(
        table=_table(cohort, low, pairs, rate, _more_reads(several)),
        cohort=cohort,
        max_pgen=settings.max_pgen,
        low=low,
        zero=zero,
        pairs=pairs,
        rate=rate,
        carry_over=_carry_over(cohort, is_low),
        copies=_copies(cohort, is_low) if has.reads is not None else None,
    )


def _require_power(cohort: Cohort, low: Counts, zero: Counts, settings: Settings) -> None:
    few_low = [f"{name} has {number:,}" for name, number in zip(cohort.names, low.tolist(), strict=True)
               if number < settings.min_low]  # fmt: skip
    if few_low:
        raise InputError(
            f"an individual needs {settings.min_low:,} junctions with a probability below {settings.max_pgen:g} "
            f"(--min-low), or contamination cannot be seen: {few(few_low)}; leave these out, or lower it"
        )
    share = zero / np.maximum(cohort.has.sizes, 1)
    if share.max() > MOST_ZERO:
        worst = int(share.argmax())
        raise InputError(
            f"{cohort.names[worst]}: the model cannot make {100 * share[worst]:.1f} % of its junctions, so a small "
            "probability means nothing; is the model that of the species and locus, with its alleles?"
        )


def _more_reads(several: Holding) -> Counts | None:
    """Of each two individuals, how many junctions both have, of which the first has more reads; None without reads."""
    if several.reads is None:
        return None
    more = np.zeros((several.individuals, several.individuals), dtype=np.int64)
    for first, stop in pairwise(several.begins.tolist()):
        holders, reads = several.individual[first:stop], several.reads[first:stop]
        more[np.ix_(holders, holders)] += reads[:, np.newaxis] > reads
    return more


def _table(cohort: Cohort, low: Counts, pairs: Pairs, rate: Floats, more: Counts | None) -> pa.Table:
    upper = np.triu_indices(len(low), 1)
    names = pa.array(cohort.names, pa.string())
    shared = pairs.shared[upper]
    made = pa.table({
        "individual_1": names.take(pa.array(upper[0])),
        "individual_2": names.take(pa.array(upper[1])),
        "low_1": low[upper[0]],
        "low_2": low[upper[1]],
        "shared_low": shared,
        "expected_low": pairs.expected[upper],
        "rate": rate[upper],
        "share_of_1": shared / low[upper[0]],
        "share_of_2": shared / low[upper[1]],
        **({} if more is None else {"more_reads_1": more[upper], "more_reads_2": more.T[upper]}),
        "p_value": pairs.p_value[upper],
        "q_value": pairs.q_value[upper],
    })  # fmt: skip
    return made.take(pa.array(np.lexsort((-shared, pairs.p_value[upper]))))


def _carry_over(cohort: Cohort, is_low: np.ndarray) -> list[CarryOver]:
    """By the reads of clones, each of which may be the source of what is met in others."""
    if cohort.has.reads is None:
        return []
    has = cohort.has.only(np.flatnonzero(is_low))
    assert has.reads is not None
    group_of, groups = cohort.group_of, max(1, len(cohort.groups))
    of_group = np.bincount(group_of, minlength=groups)
    held_by_group = np.zeros((len(has.begins) - 1, groups), dtype=np.int32)
    np.add.at(held_by_group, (has.sequence, group_of[has.individual]), 1)
    own_group = group_of[has.individual]
    met_same = held_by_group[has.sequence, own_group] - 1
    met_other = has.numbers[has.sequence] - 1 - met_same
    asked_same = of_group[own_group] - 1
    asked_other = has.individuals - 1 - asked_same
    size = np.searchsorted(CLONES, has.reads, side="right") - 1
    found = []
    for k, first in enumerate(CLONES):
        rows = size == k
        last = CLONES[k + 1] - 1 if k + 1 < len(CLONES) else None
        rates = [
            int(met[rows].sum()) / int(asked[rows].sum()) if asked[rows].sum() else None
            for met, asked in ((met_same, asked_same), (met_other, asked_other))
        ]
        found.append(CarryOver(first, last, int(rows.sum()), *rates))
    return found


def _copies(cohort: Cohort, is_low: np.ndarray) -> list[Copy]:
    """Rows of improbable junctions that several have, but for those of the largest clone, of equal ones the first."""
    has = cohort.has
    assert has.reads is not None
    chosen = np.flatnonzero(is_low & (has.numbers >= 2))
    keeper = np.full(len(is_low), -1, dtype=np.int64)
    largest = np.zeros(len(is_low), dtype=np.int64)
    reads_of: dict[tuple[int, int], int] = {}
    for sequence in chosen.tolist():
        own = slice(has.begins[sequence], has.begins[sequence + 1])
        place = int(has.reads[own].argmax())
        keeper[sequence], largest[sequence] = has.individual[own][place], has.reads[own][place]
        for individual, reads in zip(has.individual[own].tolist(), has.reads[own].tolist(), strict=True):
            reads_of[sequence, individual] = reads
    of_row = keeper[cohort.sequence_of]
    rows = np.flatnonzero((of_row >= 0) & (of_row != cohort.individual_of))
    rows = rows[np.argsort(cohort.row[rows])]
    facts = zip(
        cohort.row[rows].tolist(), cohort.individual_of[rows].tolist(), cohort.sequence_of[rows].tolist(), strict=True
    )
    return [
        Copy(row, individual, int(keeper[own]), reads_of[own, individual], int(largest[own]))
        for row, individual, own in facts
    ]  # fmt: skip
