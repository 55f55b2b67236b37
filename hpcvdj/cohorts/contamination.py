"""Contamination: individuals that share improbable junctions, and how often large clones are also in others.

`hpcvdj.cohorts.improbable` has the test of two individuals.  See also docs/contamination.md.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.chance.draws import Chance
from hpcvdj.chance.fit import at_least
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.chance.shown import Shown
from hpcvdj.cohorts.cohort import Cohort, Sequences, names_of_holders, sequences_of
from hpcvdj.cohorts.holding import Holding
from hpcvdj.cohorts.improbable import COMMON, SEEN, Improbable, Pairs, improbable_of, more_reads, people_of
from hpcvdj.cohorts.settings import ContaminationSettings
from hpcvdj.cohorts.survivors import recombinations
from hpcvdj.errors import InputError, TooFewError, few, option
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.repertoires.genes import as_text, gene_columns, kinds_of, sequences, without_genes
from hpcvdj.runs.run import Run

CLONES = (1, 2, 4, 10, 30, 100, 1000)
"""The smallest number of reads of each class of clones whose carry-over is reported."""

MOST_ZERO, FEWEST_JUDGED = 0.05, 100
"""The largest share of an individual's junctions that the model may be unable to make, and the number of junctions from
which on an individual is judged by it."""


@dataclass(frozen=True)
class CarryOver:
    """How often improbable clones of a size are also in another person.

    first, last  the smallest and the largest number of reads; None for no largest
    clones       the number of clones
    same_group, other_group  the share of other people of the same group, and of other groups, that have a clone, too;
                 None without such people
    """

    first: int
    last: int | None
    clones: int
    same_group: float | None
    other_group: float | None

    @property
    def reads(self) -> str:
        """The range of the reads as text, such as 4-9."""
        if self.last is None:
            return f">={self.first}"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class Copy:
    """A row whose junction another individual has in a larger clone.

    row         the data row of the input, from 0
    individual  the index of its individual
    of          the index of the individual that has the largest clone
    reads, of_reads  the reads of both clones
    """

    row: int
    individual: int
    of: int
    reads: int
    of_reads: int


@dataclass(frozen=True)
class Contamination(Shown):
    """Improbable junctions that individuals share.

    table       pyarrow, a row for each two individuals: see docs/contamination.md for the columns
    junctions   pyarrow, a row for each improbable junction that several individuals have: see there
    cohort      the individuals
    improbable  the improbable junctions, and the verdict of each pair of individuals
    zero        int64 [individuals]: the number of junctions that the model cannot make
    left_out    the number of junctions of all individuals whose genes the model makes wrongly
    sizes       float64 [individuals]: the number of recombinations
    rate        float64 [individuals, individuals]: the share of pairs of improbable junctions, one of each individual,
                that are equal
    carry_over  by the size of clones; empty without read counts
    copies      the rows of improbable junctions that are not of the largest clone; None without read counts
    fit         how the model fits the tables
    """

    table: pa.Table
    junctions: pa.Table
    cohort: Cohort
    improbable: Improbable
    zero: Counts
    left_out: int
    sizes: Floats
    rate: Floats
    carry_over: list[CarryOver]
    copies: list[Copy] | None
    fit: ModelFit

    def __repr__(self) -> str:
        """Show the number of pairs, and of those that stand out."""
        return (
            f"<Contamination of {len(self.cohort.individuals):,} individuals: {len(self.pairs.standing_out):,} of "
            f"{self.table.num_rows:,} pairs stand out>"
        )

    @property
    def pairs(self) -> Pairs:
        """The shared and expected numbers of each two individuals, and their tests."""
        return self.improbable.pairs

    @property
    def max_pgen(self) -> float:
        """The probability below which a junction is improbable."""
        return self.improbable.max_pgen

    @property
    def low(self) -> Counts:
        """The number of improbable junctions of each individual, int64 [individuals]."""
        return self.improbable.low


def contaminate(
    cohort: Cohort, model: Model, settings: ContaminationSettings, run: Run, fit: ModelFit = UNCHECKED
) -> Contamination | None:
    """Compare the individuals of a cohort, on root; return None on the other ranks, which have parts of it.

    fit  how the model fits the tables: junctions whose genes it makes wrongly take no part

    Raises InputError, on every rank, if no pair has enough junctions to detect contamination, or if the model cannot
    make too many junctions of an individual.
    """
    chance = Chance(model, settings.draws, settings.seed, settings.backend, settings.strict_binding)
    of_drawn, draws = chance.sampled(PGEN_COLUMNS[:1], None, run)
    p = cohort.probabilities(chance, PGEN_COLUMNS[0])
    has, kept = cohort.has, without_genes(cohort.repertoire, fit.broken)
    sizes = run.from_root(recombinations, cohort, draws, 0.0)
    zero = run.sum(np.bincount(has.individual[((p <= 0) & kept)[has.sequence]], minlength=has.individuals))
    if not fit.force:
        run.on_root(lambda: _require_possible(cohort, zero))
    improbable = improbable_of(cohort, p, sizes, of_drawn, settings.max_pgen, kept)
    run.on_root(lambda: _require_power(cohort, improbable, settings))
    of_pairs = more_reads(cohort, improbable.several.only(np.flatnonzero(improbable.of_people < COMMON)))
    left_out = int(run.sum(np.array([(~kept[has.sequence]).sum()]))[0])
    carry_over, copies = _carry_over(cohort, improbable), _copies(cohort, improbable, of_pairs)
    shared = sequences_of(cohort, "nt").only(improbable.sequences)
    pgen = p[improbable.sequences] * productive_probability(model)
    gathered = shared.on_root(run, people=improbable.of_people, pgen=pgen)

    def answer(sequences: Sequences, values: dict[str, NDArray[Any]]) -> Contamination:
        rate = _rates(improbable)
        return Contamination(
            table=_table(cohort, improbable, rate, of_pairs),
            junctions=_junctions(cohort, sequences, **values),
            cohort=cohort,
            improbable=improbable,
            zero=zero,
            left_out=left_out,
            sizes=sizes,
            rate=rate,
            carry_over=carry_over,
            copies=copies,
            fit=fit,
        )

    return run.on_root(answer, *(gathered or ()))


def _rates(improbable: Improbable) -> Floats:
    """Return the share of pairs of improbable junctions, one of each individual, that are equal.

    float64 [individuals, individuals]; NaN on the diagonal, and without improbable junctions.
    """
    low, pairs = improbable.low, improbable.pairs
    with np.errstate(invalid="ignore"):
        rate = np.asarray(pairs.shared / (low[:, np.newaxis] * low.astype(np.float64)))
    np.fill_diagonal(rate, np.nan)
    return rate


def _require_possible(cohort: Cohort, zero: Counts) -> None:
    """Raise InputError if the model cannot make significantly too many junctions of an individual."""
    sizes = cohort.sizes
    least = [at_least(number, size) if size >= FEWEST_JUDGED else 0.0 for number, size in zip(zero, sizes, strict=True)]
    worst = int(np.argmax(least))
    if least[worst] > MOST_ZERO:
        raise InputError(
            f"{cohort.names[worst]}: the model cannot make {zero[worst]:,} of its {sizes[worst]:,} junctions, so a "
            "small probability means nothing; is the model that of the species and locus, with its alleles? Leave it "
            f"out, or go on with {option('force', True)}"
        )


def _require_power(cohort: Cohort, improbable: Improbable, settings: ContaminationSettings) -> None:
    """Raise InputError if an individual has fewer improbable junctions than `min_low`, or if no pair has enough."""
    low, name = improbable.low, f"a probability below {improbable.max_pgen:g}"
    listed = [f"{individual} has {number:,}" for individual, number in zip(cohort.names, low.tolist(), strict=True)]
    if settings.min_low is not None:
        lacking = [text for text, number in zip(listed, low.tolist(), strict=True) if number < settings.min_low]
        if lacking:
            raise InputError(
                f"{option('min_low', settings.min_low)}: {few(lacking)} junctions with {name}; leave these out, or "
                "lower it"
            )
        return
    pairs = ~improbable.pairs.same_person
    np.fill_diagonal(pairs, False)
    if pairs.any() and (improbable.pairs.detectable[pairs] > SEEN).all():
        raise TooFewError(
            f"no individual has junctions enough with {name} to see copies of {100 * SEEN:.0f} % of them "
            f"({few(listed)}); give deeper samples, or {option('min_low', 1)} to compare them all the same"
        )


def _table(cohort: Cohort, improbable: Improbable, rate: Floats, more: Counts | None) -> pa.Table:
    low, pairs = improbable.low, improbable.pairs
    upper = np.triu_indices(len(low), 1)
    names = pa.array(cohort.names, pa.string())
    shared, of_one = pairs.shared[upper], pairs.same_person[upper]
    table = pa.table({
        "individual_1": names.take(pa.array(upper[0])),
        "individual_2": names.take(pa.array(upper[1])),
        "verdict": pa.array(pairs.verdicts[upper].tolist(), pa.string()),
        "low_1": low[upper[0]],
        "low_2": low[upper[1]],
        "shared_low": shared,
        "expected_low": pairs.expected[upper],
        "common_source": pairs.common[upper],
        "rate": pa.array(rate[upper], from_pandas=True),
        "share_of_1": shared / np.maximum(low[upper[0]], 1),
        "share_of_2": shared / np.maximum(low[upper[1]], 1),
        **({} if more is None else {"more_reads_1": more[upper], "more_reads_2": more.T[upper]}),
        "detectable": pa.array(pairs.detectable[upper], mask=of_one | ~(pairs.detectable[upper] <= 1)),
        "third": names.take(pa.array(pairs.third[upper], mask=pairs.third[upper] < 0)),
        "p_value": pa.array(pairs.p_value[upper], mask=of_one),
        "q_value": pa.array(pairs.q_value[upper], mask=of_one),
    })  # fmt: skip
    return table.take(pa.array(np.lexsort((-shared, pairs.p_value[upper], ~of_one))))


def _junctions(cohort: Cohort, shared: Sequences, people: Counts, pgen: Floats) -> pa.Table:
    """Return the table of shared junctions, sorted by the number of people, then by probability.

    Junctions of a common source come first, as most people have them.
    """
    order = np.lexsort((np.arange(len(pgen)), pgen, -people))
    repertoire = shared.repertoire
    has, people = shared.has.only(order), people[order]
    columns: dict[str, Any] = {
        "kind": pa.array(np.where(people >= COMMON, "common source", "pair").tolist(), pa.string()),
        **gene_columns(repertoire.pairs, kinds_of(repertoire)[order]),
        "junction": sequences(repertoire, order),
        "junction_aa": as_text(shared.letters[order], shared.lengths[order]),
        "pgen": pgen[order],
        "n_individuals": has.numbers,
        "n_people": people,
        "individuals": names_of_holders(cohort, has),
    }
    if has.reads is not None:
        columns["duplicate_counts"] = names_of_holders(cohort, has, reads=True)
    return pa.table(columns)


def _carry_over(cohort: Cohort, improbable: Improbable) -> list[CarryOver]:
    """Count by size of clone, as each clone may be the source of the same junction in other people."""
    if cohort.has.reads is None:
        return []
    person_of = improbable.pairs.person_of
    has = people_of(cohort.has.only(np.flatnonzero(improbable.is_low)), person_of)
    assert has.reads is not None
    people, first = np.unique(person_of, return_index=True)
    group_of, groups = cohort.group_of[first], max(1, len(cohort.groups))
    of_group = np.bincount(group_of, minlength=groups)
    own_group = group_of[has.individual]
    met_same = has.by_group(group_of, groups)[has.sequence, own_group] - 1
    met_other = has.numbers[has.sequence] - 1 - met_same
    asked_same = of_group[own_group] - 1
    asked_other = len(people) - 1 - asked_same
    size = np.searchsorted(CLONES, has.reads, side="right") - 1
    numbers = (np.ones(len(size), dtype=np.int64), met_same, asked_same, met_other, asked_other)
    of_size = [np.bincount(size, number, len(CLONES)).astype(np.int64) for number in numbers]
    rows = []
    for k, (clones, *of_both) in enumerate(cohort.run.sum(np.stack(of_size)).T.tolist()):
        last = CLONES[k + 1] - 1 if k + 1 < len(CLONES) else None
        rates = [met / asked if asked else None for met, asked in (of_both[:2], of_both[2:])]
        rows.append(CarryOver(CLONES[k], last, clones, *rates))
    return rows


def _copies(cohort: Cohort, improbable: Improbable, more: Counts | None) -> list[Copy] | None:
    """List the rows whose improbable junction another person has in the largest clone.

    more  int64 [individuals, individuals]: of how many shared junctions the first of two has more reads

    On root, the rows of all ranks; None without reads.
    """
    has, person_of, origins = improbable.several, improbable.pairs.person_of, cohort.origins
    if more is None or has.reads is None or origins is None:
        return None
    kept = _sources(has, more)
    number = np.full(len(improbable.is_low), -1, dtype=np.int64)
    number[improbable.sequences] = np.arange(len(improbable.sequences))
    rows = np.flatnonzero(number[origins.junction] >= 0)
    largest = kept[number[origins.junction[rows]]]
    of_another = person_of[has.individual[largest]] != person_of[origins.individual[rows]]
    rows, largest = rows[of_another], largest[of_another]
    individual = origins.individual[rows]
    keys = has.sequence.astype(np.int64) * has.individuals + has.individual
    entry = np.searchsorted(keys, number[origins.junction[rows]] * has.individuals + individual)
    columns = origins.row[rows], individual, has.individual[largest], has.reads[entry], has.reads[largest]
    listed = [Copy(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
    gathered = cohort.run.gather(listed) or []
    return sorted((copy for part in gathered for copy in part), key=lambda copy: copy.row)


def _sources(has: Holding, more: Counts) -> Counts:
    """Return the entry of each junction that is the source, int64 [junctions]: that with the most reads.

    Of equal ones, it is the entry of the individual that has more reads than the others of them more often than less.
    """
    assert has.reads is not None
    sources = has.largest()
    is_largest = has.reads == has.reads[sources][has.sequence]
    for row in np.flatnonzero(np.bincount(has.sequence[is_largest]) > 1).tolist():
        entries = has.begins[row] + np.flatnonzero(is_largest[has.begins[row] : has.begins[row + 1]])
        equal = has.individual[entries]
        ahead = (more - more.T)[np.ix_(equal, equal)].sum(axis=1)
        sources[row] = entries[np.argmax(ahead)]
    return sources
