"""Sequences that individuals share, the number that chance explains, and sequences of more individuals than that.

The p-value of a sequence that m individuals have is P(at least m have it | at least one has it), because only sequences
that were seen are tested.  The q-values are over all sequences that were seen.  `hpcvdj.cohorts.expected` has the
expected numbers.  See also docs/sharing.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.chance.calls import RARE_ALLELE, sides_of
from hpcvdj.chance.check import BROKEN_GENE, CONTRADICTED_CALL, IMPOSSIBLE, OF_RARE_ALLELE
from hpcvdj.chance.dealing import ROWS_TOGETHER, hashes_of
from hpcvdj.chance.depth import Draws
from hpcvdj.chance.draws import Chance, log_factors
from hpcvdj.chance.fit import TAIL
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.chance.p_values import Counts, Floats, poisson_tail
from hpcvdj.chance.shown import Shown
from hpcvdj.cohorts.cohort import Cohort, Grouping, Sequences, sequences_of, with_any_genes
from hpcvdj.cohorts.copies import copies_of, most_alike
from hpcvdj.cohorts.expected import Numbers, band, bootstrapped, lots_of, share_interval
from hpcvdj.cohorts.holding import Holding
from hpcvdj.cohorts.improbable import Improbable, Pairs, improbable_of
from hpcvdj.cohorts.ranking import Auc, auc, roc_curve
from hpcvdj.cohorts.settings import SharingSettings
from hpcvdj.cohorts.shared_table import HIT, NOT_TESTED, SharedRows, SharingTest, Tests
from hpcvdj.cohorts.survivors import Depth, fitted_share, recombinations
from hpcvdj.errors import InputError, few, option
from hpcvdj.kernels.distinct import distinct
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.repertoires.genes import amino_acids, as_read, without_genes
from hpcvdj.results.blocks import TableBlocks
from hpcvdj.runs.run import Run
from hpcvdj.storage.memory import return_freed_memory

FEWEST_TO_FIT = 20
"""Individuals that did not contaminate each other must share so many sequences, or q is fitted to all individuals."""

REFUTED = 1e-6
"""The chance of so many shared sequences below which q is refuted."""

FAR_MORE, FAR_MORE_IN_A_PAIR = 1.1, 3.0
"""Times the expected number: a constant q leaves a few percent of what a large cohort shares unexplained.  Times what
other pairs share: people differ in HLA and age."""

WITHOUT_NUCLEOTIDES = ("nucleotide variants", "likely copies", "pairs that share improbable junctions")
"""What is not known if only amino acids are."""

PRIVATE, MOST_PUBLIC = 200_000, 1_000_000
"""The largest numbers of sequences of one individual, and of several, that the AUC takes.  Its standard error is then
less than 0.001."""

PUBLIC = "shared"
"""The name under which the scores have whether each sequence is shared."""


@dataclass(frozen=True)
class Sharing(Shown):
    """Sequences that individuals share.

    table       pyarrow, a row for each sequence of at least `SharingSettings.min_individuals` individuals, by p-value:
                see docs/sharing.md for the columns; empty in a command, which writes it
    cohort      the individuals
    sizes       float64 [individuals]: recombinations of each, from its distinct junctions
    q           the share of sequences that survive selection; fitted without likely copies
    q_interval  its 95 % interval; None if it was given
    q_at_bound  whether the fitted q is at its upper bound, 1
    factor      whether a selection factor was used
    observed    int64 [individuals + 1]: tested sequences in 0, 1, … individuals
    copied      int64 [individuals + 1]: likely copies among these
    fitted_to   the number of individuals to which q is fitted: no two of them contaminated each other, unless these
                share too few sequences
    expected    float64 [individuals + 1]
    expected_q1 float64 [individuals + 1]: expected if all sequences survive
    low, high   float64 [individuals + 1]: the 95 % interval of `expected` by a bootstrap of the draws
    shared, expected_shared  [individuals, individuals]: sequences that both have; on the diagonal those of each
    hits        the number of sequences with a q-value of at most `HIT`
    likely_copies         the number of hits that are likely copies; None without nucleotides
    hits_of_contaminated  the number of other hits of which most individuals have the same junction, and share copies of
                          others; None likewise
    aucs        how well each predictor ranks sequences of two or more individuals above those of one
    curves      the scores of the predictors, and whether each sequence is shared, for the figure
    tested      the number of sequences that were seen: the family of the q-values
    not_tested  the number of shared sequences that are not tested, by the reason
    improbable  improbable junctions, and pairs of individuals; None without nucleotides
    fit         how the model fits the tables
    """

    cohort: Cohort
    sizes: Floats
    q: float
    q_interval: tuple[float, float] | None
    q_at_bound: bool
    factor: bool
    observed: Counts
    copied: Counts
    fitted_to: int
    expected: Floats
    expected_q1: Floats
    low: Floats
    high: Floats
    shared: Counts
    expected_shared: Floats
    hits: int
    likely_copies: int | None
    hits_of_contaminated: int | None
    aucs: dict[str, Auc]
    curves: tuple[dict[str, Floats], Any]
    tested: int
    not_tested: dict[str, int]
    improbable: Improbable | None
    fit: ModelFit
    table: pa.Table = field(default_factory=lambda: pa.table({}))

    def __repr__(self) -> str:
        """Show the number of individuals and of shared sequences."""
        several = int(self.observed[2:].sum()) + sum(self.not_tested.values())
        shared = f"{several:,} of {self.tested:,} sequences shared"
        return f"<Sharing of {len(self.cohort.individuals):,} individuals: {shared}>"

    def roc_curves(self) -> dict[str, tuple[Floats, Floats]]:
        """Return the false and true positive rates of each predictor, by its name and area."""
        scores, public = self.curves
        return {
            f"{name}: {area.area:.3f}" + (f" ({low:.3f}–{high:.3f})" if low <= high else ""): roc_curve(
                scores[name], public
            )
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
    def refuted(self) -> str:
        """Why q is not to be believed, in words: it was set wrongly, or there are copies; empty if nothing says so."""
        number = (self.observed - self.copied)[2:].sum()
        if poisson_tail(number, FAR_MORE * self.expected[2:].sum()) < REFUTED:
            return f"far more is shared than q = {self.q:.4g} explains"
        if self.improbable is not None or len(self.cohort.individuals) < 3:
            return ""
        # Without nucleotides, copies in a pair are seen by its overlap alone, to which a fitted q adapts.
        upper = np.triu_indices(len(self.cohort.individuals), 1)
        shared, expected = self.shared[upper], self.expected_shared[upper]
        of_others = expected * min(1.0, float(np.median(shared / np.maximum(expected, 1e-300))))
        p_value = poisson_tail(shared, FAR_MORE_IN_A_PAIR * of_others + 1)
        most = int(np.lexsort((expected - shared, p_value))[0])
        if len(shared) * p_value[most] >= REFUTED:
            return ""
        a, b = (self.cohort.names[own[most]] for own in upper)
        return f"{a} and {b} share {shared[most]:,}, far more than other pairs ({expected[most]:,.1f} expected)"


@dataclass(frozen=True)
class _Drawn:
    """Draws from the model: of junctions as they are read and of sequences of the unit, with their probabilities.

    tested   those of the unit without genes that the model makes wrongly, whose sequences are not tested
    spelled  int64 [draws]: the number of the amino-acid sequence of each; root only
    """

    junctions: Draws
    unit: Draws
    tested: Draws
    p: Floats
    p_unit: Floats
    spelled: Counts | None


@dataclass(frozen=True)
class _Computed:
    """The sequences of this rank with their probabilities.

    everything   the sequence that each junction of the cohort spells
    chosen       the sequences whose probability is computed: `p`, among productive recombinations
    spelling     the amino-acid sequences that `chosen` has or spells, with their probabilities
    p_junctions  float64 [junctions]; None without nucleotides
    sides        int8 [`chosen`]: the calls of shared sequences that contradict what they are, as the index in `SIDES`
    """

    cohort: Cohort
    everything: Grouping
    chosen: Sequences
    p: Floats
    p_junctions: Floats | None
    spelling: Sequences
    p_spelling: Floats
    sides: NDArray[np.int8]


def share(
    cohort: Cohort, model: Model, settings: SharingSettings, run: Run, factor: SelectionFactor | None = None,
    fit: ModelFit = UNCHECKED,
) -> tuple[Sharing | None, TableBlocks]:  # fmt: skip
    """Test the sequences of a cohort against a model; return the answer, None on other ranks than root, and its table.

    factor  the selection factor; not used for amino acids without genes
    fit     how the model fits the tables: sequences whose genes it makes wrongly are not tested

    Raises InputError, on every rank, as `survivors_share` does, and if two individuals are of one person.
    """
    chance = Chance(model, settings.draws, settings.seed, settings.backend, settings.strict_binding)
    asked = SharingTest(model, settings, factor if settings.unit != "aa" else None, fit, cohort.nucleotides)
    run.on_root(lambda: _require_nucleotides(asked))
    drawn = _draw(cohort, chance, asked, run)
    computed = _probabilities(cohort, drawn, chance, asked, run)
    return_freed_memory()
    answer = _tested(computed, drawn, asked, run)
    del computed
    return_freed_memory()
    return answer


def _require_nucleotides(asked: SharingTest) -> None:
    if asked.settings.unit == "nt" and not asked.nucleotides:
        raise InputError(
            f"{option('unit', 'nt')}: the tables have amino acids only; give {option('unit', 'vj-aa')} or "
            f"{option('unit', 'aa')}"
        )


def _draw(cohort: Cohort, chance: Chance, asked: SharingTest, run: Run) -> _Drawn:
    """Draw junctions as those of the cohort were read; every rank gets them."""
    spelled = drawn = chance.drawn(run)
    log_q = amino_acid_sequences = None
    if drawn is not None:
        hashes = hashes_of(*amino_acids(drawn, np.arange(len(drawn))))
        amino_acid_sequences = np.unique(hashes, return_inverse=True)[1]
        spelled = drawn = as_read(drawn, cohort.example)
        if asked.settings.unit == "aa":
            spelled = with_any_genes(drawn, np.arange(len(drawn)), chance.model)
            drawn = drawn if asked.without_calls else spelled
        log_q = log_factors(asked.factor, drawn)
    p = chance.among_productive(drawn, asked.read, run)
    alike = asked.compared == asked.read and not asked.without_calls
    p_unit = p if alike else chance.among_productive(spelled, asked.compared, run)
    root = None
    if spelled is not None:
        root = {"p": p, "p_unit": p_unit, "log_q": log_q, "kept": without_genes(spelled, asked.fit.broken)}
    shared = run.broadcast(root)
    of_junctions, of_unit = shared["p"][:, 0], shared["p_unit"][:, 0]
    junctions, unit = (Draws.of(values, shared["log_q"]) for values in (of_junctions, of_unit))
    return _Drawn(junctions, unit, unit.only(shared["kept"]), of_junctions, of_unit, amino_acid_sequences)


def _probabilities(cohort: Cohort, drawn: _Drawn, chance: Chance, asked: SharingTest, run: Run) -> _Computed:
    """Compute the probabilities of the sequences of each rank."""
    unit, name = asked.settings.unit, asked.compared

    def among_productive(part: Sequences, names: tuple[str, ...]) -> Floats:
        return chance.of_ranks([part.repertoire], names, run)[0][:, 0]

    p_junctions = cohort.probabilities(chance, PGEN_COLUMNS[0]) if asked.nucleotides else None
    everything = sequences_of(cohort, unit)
    chosen = everything.only(_needed(everything, asked.settings, run))
    p = among_productive(chosen, name)
    spelling, p_spelling = chosen, p
    if unit == "nt":
        # Only junctions of several individuals may be copies.
        shared = np.flatnonzero((chosen.spelled >= 0) & (cohort.has.numbers >= 2))
        translated = sequences_of(cohort, "vj-aa")
        spelling = translated.only(distinct(translated.spelled[shared]).astype(np.int64))
        p_spelling = among_productive(spelling, PGEN_COLUMNS[1:2])
    sides = np.zeros(len(p), dtype=np.int8)
    if unit != "aa":
        shared = np.flatnonzero(chosen.has.numbers >= 2)
        limits = float(drawn.p_unit.max(initial=0.0)), float(np.quantile(drawn.p_unit, TAIL))
        sides[shared] = sides_of(
            chosen.repertoire.subset(shared), p[shared], limits, chance.model,
            lambda others: [values[:, 0] for values in chance.of_ranks(others, name, run)],
        )  # fmt: skip
    return _Computed(cohort, everything, chosen, p, p_junctions, spelling, p_spelling, sides)


def _needed(everything: Grouping, settings: SharingSettings, run: Run) -> Counts:
    """Select the sequences whose probability is needed: shared ones, and at most about `PRIVATE` others."""
    wanted = everything.has.numbers >= min(2, settings.min_individuals)
    wanted[_some(np.flatnonzero(~wanted), PRIVATE, everything.letters, settings, run)] = True
    return np.flatnonzero(wanted)


def _some(
    rows: Counts, most: int, letters: Callable[[Counts], tuple[Any, Counts]], settings: SharingSettings, run: Run
) -> Counts:
    """Select about `most` sequences of the `rows` of all ranks, or all of fewer, by a hash of their letters.

    So the order of rows and individuals does not matter.
    """
    number = int(run.sum(np.array([len(rows)]))[0])
    if number <= most:
        return rows
    seed = np.random.SeedSequence(settings.seed).generate_state(1, np.uint64)
    parts = np.split(rows, range(ROWS_TOGETHER, len(rows), ROWS_TOGETHER))
    return np.concatenate([part[(hashes_of(*letters(part)) ^ seed) / 2.0**64 < most / number] for part in parts])


def _tested(computed: _Computed, drawn: _Drawn, asked: SharingTest, run: Run) -> tuple[Sharing | None, TableBlocks]:
    """Test the sequences of all ranks."""
    cohort, everything, chosen, settings = computed.cohort, computed.everything, computed.chosen, asked.settings
    individuals, held = len(cohort.individuals), chosen.has.numbers
    not_tested = _not_tested(computed, asked)

    def numbers_of(holders: Counts) -> Counts:
        return np.bincount(holders, minlength=individuals + 1)

    sound = np.ones(len(everything.first), dtype=bool)
    if settings.unit != "aa":
        sound = without_genes(cohort.repertoire, asked.fit.broken)[everything.first]
    # Those with such genes are not among the sound ones.
    untested = held[(held >= 2) & (not_tested > 0) & without_genes(chosen.repertoire, asked.fit.broken)]
    observed = run.sum(numbers_of(everything.has.numbers[sound]) - numbers_of(untested))
    improbable, copies, likely, alike = None, None, np.zeros(len(held), dtype=bool), np.zeros_like(held)
    apart, contaminated = np.ones(individuals, dtype=bool), np.zeros((individuals, individuals), dtype=bool)
    if computed.p_junctions is not None:
        sizes = run.from_root(recombinations, cohort, drawn.junctions, 0.0)
        improbable = of_different_people(cohort, computed.p_junctions, sizes, drawn.p, asked.fit)
        contaminated = improbable.pairs.verdicts == "contaminated"
        copies = copies_of(
            cohort.has, computed.p_junctions, computed.spelling.spelled, computed.p_spelling, chosen.spelled,
            contaminated, [*cohort.clones.values()],
        )  # fmt: skip
        likely, apart = copies.likely, apart_from(contaminated, cohort.names)
        alike = most_alike(cohort.has, chosen.spelled, improbable.pairs.connected, len(held))
    copied = run.sum(numbers_of(held[(held >= 2) & (not_tested == 0) & likely]))
    # Copies look like selection, and not all of them look like copies.
    honest = _of_individuals(chosen.has, (not_tested == 0) & ~likely, apart, run)
    if honest[2:].sum() < FEWEST_TO_FIT and not apart.all():
        apart[:] = True
        honest = _of_individuals(chosen.has, (not_tested == 0) & ~likely, apart, run)
    # Of the sequences of one individual, only some are chosen.
    honest[1] = _of_individuals(everything.has, sound, apart, run)[1]
    depth = Depth(cohort, drawn.junctions)
    q, at_bound, sizes = run.from_root(lambda: fitted_share(honest, apart, drawn.tested, depth, settings.q))
    log_factor = log_factors(asked.factor, chosen.repertoire, (chosen.letters, chosen.lengths))
    number = int(run.sum(np.array([len(everything.first)]))[0])
    tests = Tests(computed.p, log_factor, q, Numbers(sizes), not_tested, copies, number)
    rows = SharedRows(cohort, chosen, tests, asked, run)
    hits = np.flatnonzero(rows.listed & (rows.q_values <= HIT) & (not_tested == 0))
    counted = [len(hits), likely[hits].sum(), (~likely & (2 * alike > held))[hits].sum()]
    counted += [((held >= 2) & (not_tested == k)).sum() for k in range(1, len(NOT_TESTED))]
    number_of_hits, copies_hit, suspect, *reasons = run.sum(np.array(counted, dtype=np.int64)).tolist()
    shared = cohort.summed(everything.has.only(np.flatnonzero(everything.has.numbers >= 2)))
    np.fill_diagonal(shared, run.sum(everything.has.sizes))
    scores = _scores(chosen, tests, asked, run)

    def answered(scores: dict[str, Any]) -> Sharing:
        weights, redrawn = drawn.tested.on_grid(np.log(q)), bootstrapped(drawn.tested, np.log(q), settings.seed)
        interval = None
        if settings.q is None and drawn.spelled is not None:
            fitted = Numbers(sizes[apart])
            lots = lots_of(fitted, drawn.tested, drawn.junctions, drawn.spelled, q, depth.deeper)
            interval = share_interval(honest, fitted, drawn.tested, q, redrawn, depth.deeper, lots)
        low, high = band(tests.numbers, redrawn)
        public = scores.pop(PUBLIC)
        return Sharing(
            cohort=cohort,
            sizes=sizes,
            q=q,
            q_interval=interval,
            q_at_bound=at_bound,
            factor=asked.factor is not None,
            observed=observed,
            copied=copied,
            fitted_to=int(apart.sum()),
            expected=tests.numbers.spectrum(weights),
            expected_q1=Numbers(recombinations(cohort, drawn.junctions, 0.0)).spectrum(drawn.tested.on_grid(0.0)),
            low=low,
            high=high,
            shared=shared,
            expected_shared=tests.numbers.overlap(drawn.unit.on_grid(np.log(q))),
            hits=number_of_hits,
            likely_copies=None if copies is None else copies_hit,
            hits_of_contaminated=None if copies is None else suspect,
            aucs={name: area for name, score in scores.items() if (area := auc(score, public)) is not None},
            curves=(scores, public),
            tested=number,
            not_tested=dict(zip(NOT_TESTED[1:], reasons, strict=True)),
            improbable=improbable,
            fit=asked.fit,
        )

    return run.on_root(answered, scores), rows.blocks()


def _scores(chosen: Sequences, tests: Tests, asked: SharingTest, run: Run) -> dict[str, Any] | None:
    """Return the scores of sequences of all ranks by predictor, and whether each is shared as `PUBLIC`, on root."""
    public = chosen.has.numbers >= 2

    def letters(rows: Counts) -> tuple[Any, Counts]:
        return chosen.letters[rows], chosen.lengths[rows]

    shown = _some(np.flatnonzero(public), MOST_PUBLIC, letters, asked.settings, run)
    rows = np.concatenate([shown, np.flatnonzero(~public)])
    lengths = chosen.repertoire.lengths if asked.settings.unit == "nt" else chosen.lengths
    gathered = run.gather((public[rows], tests.p[rows], tests.log_factor[rows], lengths[rows].astype(np.int16)))
    if gathered is None:
        return None
    shared, p, log_factor, lengths = map(np.concatenate, zip(*gathered, strict=True))
    scores = {PUBLIC: shared, "pgen": np.log(np.where(p > 0, p, 1e-300))}
    if asked.factor is not None:
        scores["p_post"] = scores["pgen"] + log_factor
    return scores | {"length": -lengths.astype(np.float64)}


def apart_from(contaminated: NDArray[np.bool_], names: Sequence[str]) -> NDArray[np.bool_]:
    """Choose individuals of whom no two contaminated each other, bool [individuals].

    Those with most partners are left out, one after another, the first by name of equal ones.
    """
    apart, order = np.ones(len(names), dtype=bool), np.argsort(np.array(names, dtype=object), kind="stable")
    partners = contaminated & ~np.eye(len(names), dtype=bool)
    while (number := (partners & apart & apart[:, np.newaxis]).sum(axis=1)).any():
        apart[order[np.argmax(number[order])]] = False
    return apart


def _of_individuals(has: Holding, kept: NDArray[np.bool_], individuals: NDArray[np.bool_], run: Run) -> Counts:
    """Count the kept sequences of all ranks that 0, 1, … of some individuals have."""
    numbers = np.bincount(has.sequence[individuals[has.individual]], minlength=len(kept))
    return run.sum(np.bincount(numbers[kept], minlength=int(individuals.sum()) + 1))


def _not_tested(computed: _Computed, asked: SharingTest) -> NDArray[np.int8]:
    """Return why sequences are not tested, int8 [sequences], as the index in `NOT_TESTED`."""
    junctions = computed.chosen.repertoire
    reasons = np.where(without_genes(junctions, asked.fit.broken), 0, NOT_TESTED.index(BROKEN_GENE)).astype(np.int8)
    if not asked.fit.keep_misfits:
        rare = computed.sides >= RARE_ALLELE
        why = np.where(rare, NOT_TESTED.index(OF_RARE_ALLELE), NOT_TESTED.index(CONTRADICTED_CALL))
        reasons = np.where((reasons == 0) & (computed.sides > 0), why, reasons)
    return np.where(computed.p <= 0, NOT_TESTED.index(IMPOSSIBLE), reasons).astype(np.int8)


def of_different_people(cohort: Cohort, p: Floats, sizes: Floats, of_drawn: Floats, fit: ModelFit) -> Improbable:
    """Find the improbable junctions, as `improbable_of`; raise InputError, on every rank, for samples of one person.

    fit  how the model fits the tables: junctions whose genes it makes wrongly take no part
    """
    improbable = improbable_of(cohort, p, sizes, of_drawn, None, without_genes(cohort.repertoire, fit.broken))
    pairs = improbable.pairs
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
    return improbable
