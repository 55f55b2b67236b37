"""Which sequences individuals share, how many chance makes them share, and which are shared by more than that.

The test of a sequence that m individuals have is P(at least m have it | at least one has), because only sequences that
were seen are tested; q-values are over all sequences that were seen.  See `hpcvdj.cohorts.expected` for the expected
numbers, and docs/sharing.md.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.chance.calls import RARE_ALLELE, Others, contradicted, suspicious, with_other_genes
from hpcvdj.chance.check import BROKEN_GENE, CONTRADICTED_CALL, IMPOSSIBLE, OF_RARE_ALLELE, UNCHECKED, ModelFit
from hpcvdj.chance.dealing import ROWS_TOGETHER, hashes_of
from hpcvdj.chance.depth import Counts, Draws, Floats, recombinations_of
from hpcvdj.chance.draws import Chance, log_factors
from hpcvdj.chance.fit import TAIL
from hpcvdj.chance.shown import Shown
from hpcvdj.cohorts.cohort import Cohort, Grouping, Sequences, sequences_of, with_any_genes
from hpcvdj.cohorts.copies import Copies, LargeClones, copies_of
from hpcvdj.cohorts.expected import Numbers, band, survivors_share
from hpcvdj.cohorts.improbable import Improbable, Pairs, improbable_of
from hpcvdj.cohorts.ranking import Auc, auc, roc_curve
from hpcvdj.cohorts.settings import SharingSettings
from hpcvdj.cohorts.shared_table import (
    HIT,
    NOT_TESTED,
    Asked,
    Tests,
    shared_table,
)
from hpcvdj.errors import InputError, few, option
from hpcvdj.kernels.distinct import distinct
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.selection import Selection
from hpcvdj.repertoires.genes import amino_acids, as_read, without_genes
from hpcvdj.runs.run import Run

MOST_STEPS, SETTLED = 20, 1e-6
"""Steps in which q and the numbers of recombinations are found, each from the other, and the change of ln q that ends
them."""

REFUTED = 1e-6
"""The chance of so many shared sequences below which a share q that was given is not believed."""

WITHOUT_NUCLEOTIDES = ("nucleotide variants", "likely copies", "pairs that share improbable junctions")
"""What is not known of individuals of whom only amino acids are."""

PRIVATE = 200_000
"""Sequences of one individual that the AUC takes, at most: the error of the AUC is that of the fewer shared ones."""


@dataclass(frozen=True)
class Sharing(Shown):
    """Sequences that individuals share.

    table       pyarrow, a row for each of at least `SharingSettings.min_individuals` individuals, by p-value: see
                docs/sharing.md for the columns
    cohort      whose they are
    sizes       float64 [individuals]: recombinations of each, from its distinct junctions
    q           the share of sequences that survive selection
    q_at_bound  whether the fitted one is 1, its largest
    factor      whether a factor of selection was taken
    observed    int64 [individuals + 1]: sequences in so many individuals, of those that are tested
    expected    float64 [individuals + 1]
    expected_q1 the same, if all survive
    low, high   float64 [individuals + 1]: the 95 % interval of `expected` for the draws that were made
    shared, expected_shared  [individuals, individuals]: sequences that both have; on the diagonal those of each
    aucs        how well each predictor ranks sequences of two or more individuals above those of one
    curves      the scores of the predictors, and whether a sequence is shared, for the figure
    tested      sequences that were seen: the family of the q-values
    not_tested  shared sequences that are not tested, by the reason
    improbable  junctions, and pairs of individuals; None without nucleotides
    fit         how the model fits the tables
    """

    table: pa.Table
    cohort: Cohort
    sizes: Floats
    q: float
    q_at_bound: bool
    factor: bool
    observed: Counts
    expected: Floats
    expected_q1: Floats
    low: Floats
    high: Floats
    shared: Counts
    expected_shared: Floats
    aucs: dict[str, Auc]
    curves: tuple[dict[str, Floats], Any]
    tested: int
    not_tested: dict[str, int]
    improbable: Improbable | None
    fit: ModelFit

    def __repr__(self) -> str:
        """How many individuals and shared sequences there are."""
        several = int(self.observed[2:].sum()) + sum(self.not_tested.values())
        shared = f"{several:,} of {self.tested:,} sequences shared"
        return f"<Sharing of {len(self.cohort.individuals):,} individuals: {shared}>"

    def roc_curves(self) -> dict[str, tuple[Floats, Floats]]:
        """False and true positive rates of each predictor, by its name and area."""
        scores, public = self.curves
        return {
            f"{name}: {area.area:.3f} ({low:.3f}–{high:.3f})": roc_curve(scores[name], public)
            for name, area in self.aucs.items()
            for low, high in [area.interval]
        }

    @property
    def pairs(self) -> Pairs | None:
        """Improbable junctions of each two individuals; None without nucleotides."""
        return self.improbable.pairs if self.improbable is not None else None

    @property
    def not_available(self) -> tuple[str, ...]:
        """What is not known without nucleotides; nothing with them."""
        return WITHOUT_NUCLEOTIDES if self.improbable is None else ()

    @property
    def hits(self) -> int:
        """Sequences with a q-value of at most `HIT`."""
        return int(pc.sum(pc.less_equal(self.table["q_value"], HIT)).as_py() or 0)

    @property
    def refuted(self) -> bool:
        """Whether the share q that was given leaves far more sequences shared than are expected."""
        from scipy.special import gammainc

        shared = int(self.observed[2:].sum())
        # The chance of so many or more under Poisson's distribution.
        return shared > 0 and bool(gammainc(shared, self.expected[2:].sum()) < REFUTED)

    @property
    def likely_copies(self) -> int | None:
        """The hits that are likely copies; None without nucleotides."""
        if self.improbable is None:
            return None
        hits = pc.less_equal(self.table["q_value"], HIT)
        return int(pc.sum(pc.and_(hits, self.table["likely_copy"])).as_py() or 0)


@dataclass(frozen=True)
class _Drawn:
    """What a model makes by chance: draws of junctions as they are read, and of the unit; their probabilities."""

    junctions: Draws
    unit: Draws
    p: Floats
    p_unit: Floats


@dataclass(frozen=True)
class _Found:
    """A cohort with its probabilities: the sequences of this rank.

    everything   which junctions are one sequence
    chosen       the sequences whose probability is known: `p`, among productive recombinations
    spelling     amino-acid sequences, and their probabilities: of nucleotides, those that they spell
    p_junctions  float64 [junctions]; not computed without nucleotides
    doubtful     int64: those of `chosen` whose calls may contradict their bases
    with_others  them with other genes, and their probabilities; none for amino acids without genes
    """

    cohort: Cohort
    everything: Grouping
    chosen: Sequences
    p: Floats
    p_junctions: Floats | None
    spelling: Sequences
    p_spelling: Floats
    doubtful: Counts
    with_others: list[tuple[Others, Floats]]


@dataclass(frozen=True)
class _Summed:
    """What is known of the sequences of all ranks.

    observed    int64 [individuals + 1]: how many so many individuals have, of those that are tested
    shared      int64 [individuals, individuals]: that both have
    improbable  junctions, and pairs; None without nucleotides
    number      how many sequences there are
    """

    cohort: Cohort
    observed: Counts
    shared: Counts
    improbable: Improbable | None
    number: int


def share(
    cohort: Cohort,
    model: Model,
    settings: SharingSettings,
    run: Run,
    factor: Selection | None = None,
    fit: ModelFit = UNCHECKED,
) -> Sharing | None:
    """Test the sequences of a cohort against a model, on root; None on the other ranks, which have parts of it.

    factor  of selection; not used for amino acids without genes
    fit     how the model fits the tables: sequences of genes that it makes wrongly are not tested

    InputError, on every rank, as of `survivors_share`, and if two individuals are of one person.
    """
    chance = Chance(model, settings.draws, settings.seed, settings.backend, settings.strict_binding)
    asked = Asked(model, settings, factor if settings.unit != "aa" else None, fit, cohort.nucleotides)
    run.on_root(lambda: _require_nucleotides(asked))
    drawn = _draw(cohort, chance, asked, run)
    return _tested(_probabilities(cohort, drawn, chance, asked, run), drawn, asked, run)


def _require_nucleotides(asked: Asked) -> None:
    if asked.settings.unit == "nt" and not asked.nucleotides:
        raise InputError(
            f"{option('unit', 'nt')}: the tables have amino acids only; give {option('unit', 'vj-aa')} or "
            f"{option('unit', 'aa')}"
        )


def _draw(cohort: Cohort, chance: Chance, asked: Asked, run: Run) -> _Drawn:
    """The draws, on every rank: junctions like those of the cohort."""
    drawn = chance.drawn(run)
    if drawn is not None:
        drawn = as_read(drawn, cohort.example)
        if asked.settings.genes == "any":
            drawn = with_any_genes(drawn, np.arange(len(drawn)), chance.model)
    p = chance.among_productive(drawn, asked.read, run)
    spelled = drawn
    if drawn is not None and asked.without_calls:
        spelled = with_any_genes(drawn, np.arange(len(drawn)), chance.model)
    alike = asked.compared == asked.read and not asked.without_calls
    p_unit = p if alike else chance.among_productive(spelled, asked.compared, run)
    log_q = None
    if drawn is not None:
        log_q = log_factors(asked.factor, drawn, *amino_acids(drawn, np.arange(len(drawn))))
    root = {"p": p, "p_unit": p_unit, "log_q": log_q} if run.is_root else None
    shared = run.share_arrays(root)  # type: ignore[arg-type]
    own, unit, log_q = shared["p"][:, 0], shared["p_unit"][:, 0], shared["log_q"]
    weight = np.exp(log_q) / len(log_q)
    return _Drawn(Draws(np.log(own) + log_q, weight), Draws(np.log(unit) + log_q, weight), own, unit)


def _probabilities(cohort: Cohort, drawn: _Drawn, chance: Chance, asked: Asked, run: Run) -> _Found:
    """The sequences of each rank with their probabilities."""
    model, unit, name = chance.model, asked.settings.unit, asked.compared

    def among_productive(own: Cohort | Sequences, names: tuple[str, ...]) -> Floats:
        return chance.of_ranks([own.repertoire], names, run)[0][:, 0]

    p_junctions = among_productive(cohort, PGEN_COLUMNS[:1]) if asked.nucleotides else None
    everything = sequences_of(cohort, unit, model)
    chosen = everything.only(_computed(everything, asked.settings, run))
    p = among_productive(chosen, name)
    spelling, p_spelling = chosen, p
    if unit == "nt":
        spelling = _amino_acids_of(cohort, chosen, model)
        p_spelling = among_productive(spelling, PGEN_COLUMNS[1:2])
    doubtful, others = np.empty(0, dtype=np.int64), []
    if unit != "aa":
        improbable = suspicious(chosen.repertoire, p, float(drawn.p_unit.max(initial=0.0)), model)
        doubtful = np.intersect1d(improbable, np.flatnonzero(chosen.has.numbers >= 2))
        others = with_other_genes(chosen.repertoire.subset(doubtful), model)
    values = chance.of_ranks([other.repertoire for other in others], name, run)
    with_others = [(other, own[:, 0]) for other, own in zip(others, values, strict=True)]
    return _Found(cohort, everything, chosen, p, p_junctions, spelling, p_spelling, doubtful, with_others)


def _computed(everything: Grouping, settings: SharingSettings, run: Run) -> Counts:
    """The sequences whose probability is needed: shared ones, and some of the others, or all."""
    wanted = everything.has.numbers >= min(2, settings.min_individuals)
    private = np.flatnonzero(~wanted)
    number = int(run.sum(np.array([len(private)]))[0])
    if number <= PRIVATE:
        return np.arange(len(wanted))
    seed = np.random.SeedSequence(settings.seed).generate_state(1, np.uint64)
    for part in np.split(private, range(ROWS_TOGETHER, len(private), ROWS_TOGETHER)):
        # By what they are, so that the order of rows and individuals does not matter.
        scattered = hashes_of(*everything.letters(part)) ^ seed
        wanted[part] = scattered / 2.0**64 < PRIVATE / number
    return np.flatnonzero(wanted)


def _amino_acids_of(cohort: Cohort, chosen: Sequences, model: Model) -> Sequences:
    """The amino acids, with genes, of the junctions that several individuals have."""
    everything = sequences_of(cohort, "vj-aa", model)
    junctions = np.flatnonzero((chosen.spelled >= 0) & (cohort.has.numbers >= 2))
    return everything.only(distinct(everything.spelled[junctions]).astype(np.int64))


def _tested(found: _Found, drawn: _Drawn, asked: Asked, run: Run) -> Sharing | None:
    """With the tests of all sequences, on root."""
    cohort, everything, chosen = found.cohort, found.everything, found.chosen
    not_tested = _not_tested(found, drawn, asked)
    observed = np.bincount(everything.has.numbers, minlength=len(cohort.individuals) + 1)
    untested = chosen.has.numbers[(chosen.has.numbers >= 2) & (not_tested > 0)]
    observed = run.sum(observed - np.bincount(untested, minlength=len(observed)))
    improbable = None
    if found.p_junctions is not None:
        sizes = run.from_root(lambda: _recombinations(cohort, drawn, 1.0))
        kept = without_genes(cohort.repertoire, asked.fit.broken)
        improbable = improbable_of(cohort, found.p_junctions, sizes, drawn.p, None, kept)
        require_different_people(cohort, improbable.pairs)
    shared = cohort.summed(everything.has.only(np.flatnonzero(everything.has.numbers >= 2)))
    np.fill_diagonal(shared, run.sum(everything.has.sizes))
    number = int(run.sum(np.array([len(everything.first)]))[0])
    values: dict[str, Any] = {
        "p": found.p, "not_tested": not_tested,
        "log_factor": log_factors(asked.factor, chosen.repertoire, chosen.letters, chosen.lengths),
    }  # fmt: skip
    if improbable is not None and found.p_junctions is not None:
        contaminated = improbable.pairs.verdicts == "contaminated"
        large = LargeClones.of(cohort.has, cohort.sizes, run)
        copies = copies_of(
            cohort.has, found.p_junctions, found.spelling.spelled, found.p_spelling, chosen.spelled, contaminated, large
        )
        values |= vars(copies)
    gathered = chosen.on_root(run, **values)

    def answered() -> Sharing:
        assert gathered is not None
        return _answered(_Summed(cohort, observed, shared, improbable, number), *gathered, drawn, asked)

    return run.on_root(answered)


def _answered(found: _Summed, chosen: Sequences, values: dict[str, Any], drawn: _Drawn, asked: Asked) -> Sharing:
    """From what all ranks have found, and the `chosen` sequences of all with their values."""
    cohort, observed, improbable = found.cohort, found.observed, found.improbable
    settings, public, not_tested = asked.settings, chosen.has.numbers >= 2, values["not_tested"]
    q, at_bound, sizes = _fitted(cohort, observed, drawn, settings.q)
    numbers, weights = Numbers(sizes), drawn.unit.on_grid(np.log(q))
    low, high = band(numbers, drawn.unit, np.log(q), settings.seed)
    copies = None
    if improbable is not None:
        copies = Copies(**{name.name: values[name.name] for name in fields(Copies)})
    tests = Tests(values["p"], values["log_factor"], q, numbers, not_tested, copies, found.number)
    scores = {"pgen": np.log(np.where(tests.p > 0, tests.p, 1e-300))}
    if asked.factor is not None:
        scores["p_post"] = scores["pgen"] + tests.log_factor
    scores["length"] = -(chosen.repertoire.lengths if settings.unit == "nt" else chosen.lengths).astype(np.float64)
    return Sharing(
        table=shared_table(cohort, chosen, tests, asked),
        cohort=cohort,
        sizes=sizes,
        q=q,
        q_at_bound=at_bound,
        factor=asked.factor is not None,
        observed=observed,
        expected=numbers.spectrum(weights),
        expected_q1=Numbers(_recombinations(cohort, drawn, 1.0)).spectrum(drawn.unit.on_grid(0.0)),
        low=low,
        high=high,
        shared=found.shared,
        expected_shared=numbers.overlap(weights),
        aucs={name: area for name, score in scores.items() if (area := auc(score, public)) is not None},
        curves=(scores, public),
        tested=found.number,
        not_tested={reason: int((public & (not_tested == k)).sum()) for k, reason in enumerate(NOT_TESTED) if k},
        improbable=improbable,
        fit=asked.fit,
    )


def _recombinations(cohort: Cohort, drawn: _Drawn, q: float) -> Floats:
    return recombinations_of(cohort.sizes, drawn.junctions.on_grid(np.log(q)), cohort.names)


def _fitted(cohort: Cohort, observed: Counts, drawn: _Drawn, given: float | None) -> tuple[float, bool, Floats]:
    """q, whether it is 1, its largest, and the recombinations of each individual, each found from the other."""
    q, at_bound = given or 1.0, False
    for _ in range(MOST_STEPS):
        sizes = _recombinations(cohort, drawn, q)
        if given is not None:
            break
        before = q
        q, at_bound = survivors_share(observed, Numbers(sizes), drawn.unit)
        if abs(np.log(q / before)) < SETTLED:
            break
    return q, at_bound, sizes


def _not_tested(found: _Found, drawn: _Drawn, asked: Asked) -> NDArray[np.int8]:
    """Why sequences are not tested, int8 [sequences], as the place in `NOT_TESTED`."""
    own = found.chosen.repertoire
    reasons = np.where(without_genes(own, asked.fit.broken), 0, NOT_TESTED.index(BROKEN_GENE)).astype(np.int8)
    if found.with_others and not asked.fit.keep_misfits:
        smallest = float(np.quantile(drawn.p_unit, TAIL))
        rows = found.doubtful
        side = contradicted(own.subset(rows), found.p[rows], found.with_others, asked.model, smallest)
        why = np.where(side >= RARE_ALLELE, NOT_TESTED.index(OF_RARE_ALLELE), NOT_TESTED.index(CONTRADICTED_CALL))
        reasons[rows] = np.where((side > 0) & (reasons[rows] == 0), why, reasons[rows])
    return np.where(found.p <= 0, NOT_TESTED.index(IMPOSSIBLE), reasons).astype(np.int8)


def require_different_people(cohort: Cohort, pairs: Pairs) -> None:
    """Raise InputError, on every rank, for two individuals that are of one person."""
    same = pairs.of_one_person

    def require() -> None:
        if not same:
            return
        listed = [f"{cohort.names[i]} and {cohort.names[j]} ({pairs.verdicts[i, j]})" for i, j in same]
        raise InputError(
            f"{few(listed)}: samples of one person share far more than two people; leave one out, or take them "
            f"together: {option('metadata', 'TABLE')} {option('subject', 'COLUMN')}"
        )

    cohort.run.on_root(require)
