"""Which sequences individuals share, how many chance makes them share, and which are shared by more than that.

The test of a sequence that m individuals have is P(at least m have it | at least one has), because only sequences that
were seen are tested; q-values are over all sequences that were seen.  See `hpcvdj.cohorts.expected` for the expected
numbers, and docs/sharing.md.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.chance.calls import RARE_ALLELE, Others, contradicted, suspicious, with_other_genes
from hpcvdj.chance.check import BROKEN_GENE, CONTRADICTED_CALL, IMPOSSIBLE, OF_RARE_ALLELE, UNCHECKED, ModelFit
from hpcvdj.chance.depth import Counts, Draws, Floats, recombinations_of
from hpcvdj.chance.draws import Chance, log_factors
from hpcvdj.chance.fit import TAIL
from hpcvdj.cohorts.cohort import Cohort, Sequences, sequences_of, with_any_genes
from hpcvdj.cohorts.copies import copies_of
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
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.selection import Selection
from hpcvdj.repertoires.genes import amino_acids, as_read, has_nucleotides, without_genes
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
class Sharing:
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
    """A cohort with its probabilities.

    everything   all its sequences
    chosen       those whose probability is known: `p`, among productive recombinations
    spelling     amino-acid sequences, and their probabilities: of nucleotides, those that they spell
    p_junctions  float64 [junctions]; not computed without nucleotides
    doubtful     int64: those of `chosen` whose calls may contradict their bases
    with_others  them with other genes, and their probabilities; none for amino acids without genes
    """

    cohort: Cohort
    everything: Sequences
    chosen: Sequences
    p: Floats
    p_junctions: Floats | None
    spelling: Sequences
    p_spelling: Floats
    doubtful: Counts
    with_others: list[tuple[Others, Floats]]


def share(
    cohort: Cohort | None,
    model: Model,
    settings: SharingSettings,
    run: Run,
    factor: Selection | None = None,
    fit: ModelFit = UNCHECKED,
) -> Sharing | None:
    """Test the sequences of root's cohort against a model; None on the other ranks, which compute probabilities.

    factor  of selection; not used for amino acids without genes
    fit     how the model fits the tables: sequences of genes that it makes wrongly are not tested

    InputError as of `survivors_share`, and if two individuals are of one person.
    """
    chance = Chance(model, settings.draws, settings.seed, settings.backend, settings.strict_binding)
    known = run.from_root(lambda: cohort is not None and has_nucleotides(cohort.repertoire))
    asked = Asked(model, settings, factor if settings.unit != "aa" else None, fit, known)
    run.on_root(lambda: _require_nucleotides(asked))
    drawn = _draw(cohort, chance, asked, run)
    found = _probabilities(cohort, drawn, chance, asked, run)

    def tested() -> Sharing:
        assert drawn is not None
        assert found is not None
        return _tested(found, drawn, asked)

    return run.on_root(tested)


def _require_nucleotides(asked: Asked) -> None:
    if asked.settings.unit == "nt" and not asked.nucleotides:
        raise InputError(
            f"{option('unit', 'nt')}: the tables have amino acids only; give {option('unit', 'vj-aa')} or "
            f"{option('unit', 'aa')}"
        )


def _draw(cohort: Cohort | None, chance: Chance, asked: Asked, run: Run) -> _Drawn | None:
    """The draws, on root: junctions like those of the cohort."""
    drawn = chance.drawn(run)
    if drawn is not None and cohort is not None:
        drawn = as_read(drawn, cohort.repertoire)
        if asked.settings.genes == "any":
            drawn = with_any_genes(drawn, np.arange(len(drawn)), chance.model)
    p = chance.among_productive(drawn, asked.read, run)
    spelled = drawn
    if drawn is not None and asked.without_calls:
        spelled = with_any_genes(drawn, np.arange(len(drawn)), chance.model)
    alike = asked.compared == asked.read and not asked.without_calls
    p_unit = p if alike else chance.among_productive(spelled, asked.compared, run)
    if drawn is None:
        return None
    assert p is not None
    assert p_unit is not None
    log_q = log_factors(asked.factor, drawn, *amino_acids(drawn, np.arange(len(drawn))))
    weight = np.exp(log_q) / len(drawn)
    own, unit = p[:, 0], p_unit[:, 0]
    return _Drawn(Draws(np.log(own) + log_q, weight), Draws(np.log(unit) + log_q, weight), own, unit)


def _probabilities(
    cohort: Cohort | None, drawn: _Drawn | None, chance: Chance, asked: Asked, run: Run
) -> _Found | None:
    """The cohort's sequences with their probabilities, on root."""
    model, unit = chance.model, asked.settings.unit
    name = asked.compared

    def among_productive(own: Cohort | Sequences | None, names: tuple[str, ...]) -> Any:
        values = chance.among_productive(own.repertoire if own is not None else None, names, run)
        return None if values is None else values[:, 0]

    p_junctions = None
    if asked.nucleotides:
        p_junctions = among_productive(cohort, PGEN_COLUMNS[:1])
    everything = run.on_root(lambda: sequences_of(cohort, unit, model))  # type: ignore[arg-type]
    chosen = everything.only(_computed(everything, asked.settings)) if everything is not None else None
    p = among_productive(chosen, name)
    spelling, p_spelling = chosen, p
    if unit == "nt":
        spelling = run.on_root(lambda: _amino_acids_of(cohort, chosen, model))  # type: ignore[arg-type]
        p_spelling = among_productive(spelling, PGEN_COLUMNS[1:2])
    doubtful = np.empty(0, dtype=np.int64)
    if chosen is not None and p is not None and drawn is not None and unit != "aa":
        improbable = suspicious(chosen.repertoire, p, drawn.p_unit, model)
        doubtful = np.intersect1d(improbable, np.flatnonzero(chosen.has.numbers >= 2))
    others = []
    if chosen is not None and unit != "aa":
        others = with_other_genes(chosen.repertoire.subset(doubtful), model)
    with_others = []
    for place in range(run.from_root(lambda: len(others))):
        values = chance.among_productive(others[place].repertoire if others else None, name, run)
        if values is not None:
            with_others.append((others[place], values[:, 0]))
    if cohort is None or everything is None or chosen is None or spelling is None:
        return None
    return _Found(cohort, everything, chosen, p, p_junctions, spelling, p_spelling, doubtful, with_others)  # type: ignore[arg-type]


def _computed(everything: Sequences, settings: SharingSettings) -> Counts:
    """The sequences whose probability is needed: shared ones, and some of the others, or all."""
    numbers = everything.has.numbers
    wanted = numbers >= min(2, settings.min_individuals)
    private = np.flatnonzero(~wanted)
    if len(private) > PRIVATE:
        # Sequences are sorted, so the order of rows and individuals does not matter.
        private = np.random.default_rng(settings.seed).permutation(private)[:PRIVATE]
    wanted[private] = True
    return np.flatnonzero(wanted)


def _amino_acids_of(cohort: Cohort, chosen: Sequences, model: Model) -> Sequences:
    """The amino acids, with genes, of the junctions that several individuals have."""
    everything = sequences_of(cohort, "vj-aa", model)
    junctions = np.flatnonzero((chosen.spelled >= 0) & (cohort.has.numbers >= 2))
    return everything.only(np.unique(everything.spelled[junctions]))


def _tested(found: _Found, drawn: _Drawn, asked: Asked) -> Sharing:
    """With the tests of all sequences."""
    cohort, chosen, settings = found.cohort, found.chosen, asked.settings
    held, public = chosen.has.numbers, chosen.has.numbers >= 2
    not_tested = _not_tested(found, drawn, asked)
    observed = np.bincount(found.everything.has.numbers, minlength=len(cohort.individuals) + 1)
    observed -= np.bincount(held[public & (not_tested > 0)], minlength=len(observed))
    improbable = None
    if found.p_junctions is not None:
        improbable = improbable_of(
            cohort, found.p_junctions, _recombinations(cohort, drawn, 1.0), drawn.p, None,
            without_genes(cohort.repertoire, asked.fit.broken),
        )  # fmt: skip
        _require_different_people(cohort, improbable.pairs)
    q, at_bound, sizes = _fitted(cohort, observed, drawn, settings.q)
    numbers, weights = Numbers(sizes), drawn.unit.on_grid(np.log(q))
    low, high = band(numbers, drawn.unit, np.log(q), settings.seed)
    log_q = log_factors(asked.factor, chosen.repertoire, chosen.letters, chosen.lengths)
    shared_only = found.everything.has.only(np.flatnonzero(found.everything.has.numbers >= 2)).overlap()
    np.fill_diagonal(shared_only, found.everything.has.sizes)
    copies = None
    if improbable is not None and found.p_junctions is not None:
        copies = copies_of(
            cohort.has,
            found.p_junctions,
            found.spelling.spelled,
            found.p_spelling,
            chosen.spelled,
            improbable.pairs.verdicts == "contaminated",
        )
    tests = Tests(found.p, log_q, q, numbers, not_tested, copies, len(found.everything.variants))
    scores = {"pgen": np.log(np.where(found.p > 0, found.p, 1e-300))}
    if asked.factor is not None:
        scores["p_post"] = scores["pgen"] + log_q
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
        shared=shared_only,
        expected_shared=numbers.overlap(weights),
        aucs={name: area for name, score in scores.items() if (area := auc(score, public)) is not None},
        curves=(scores, public),
        tested=tests.number,
        not_tested={reason: int((public & (not_tested == k)).sum()) for k, reason in enumerate(NOT_TESTED) if k},
        improbable=improbable,
        fit=asked.fit,
    )


def _recombinations(cohort: Cohort, drawn: _Drawn, q: float) -> Floats:
    return recombinations_of(cohort.has.sizes, drawn.junctions.on_grid(np.log(q)), cohort.names)


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


def _require_different_people(cohort: Cohort, pairs: Pairs) -> None:
    """Raise InputError for two individuals that are of one person."""
    same = pairs.of_one_person
    if same:
        listed = [f"{cohort.names[i]} and {cohort.names[j]} ({pairs.verdicts[i, j]})" for i, j in same]
        raise InputError(
            f"{few(listed)}: samples of one person share far more than two people; leave one out, or take them "
            f"together: {option('metadata', 'TABLE')} {option('subject', 'COLUMN')}"
        )
