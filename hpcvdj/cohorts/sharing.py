"""Which sequences individuals share, how many chance makes them share, and which are shared by more than that.

The test of a sequence that m individuals have is P(at least m have it | at least one has), because only sequences that
were seen are tested; q-values are over all sequences that were seen.  See `hpcvdj.cohorts.expected` for the expected
numbers, and docs/sharing.md.
"""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.chance import DRAWS
from hpcvdj.chance.depth import Draws, Floats
from hpcvdj.chance.draws import Chance, SelectionFactor, log_factors
from hpcvdj.cohorts import Unit
from hpcvdj.cohorts.cohort import Cohort, Counts, Sequences, sequences_of, with_any_genes
from hpcvdj.cohorts.expected import SMALLEST_Q, Numbers, band, survivors_share
from hpcvdj.cohorts.low import MAX_PGEN, Pairs
from hpcvdj.cohorts.ranking import Auc, auc
from hpcvdj.errors import InputError, require_choice
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.repertoires.genes import amino_acids, as_text, kinds_of, sequences
from hpcvdj.runs.run import Run

NAMES: dict[Unit, tuple[str, ...]] = {"nt": PGEN_COLUMNS[:1], "vj-aa": PGEN_COLUMNS[:2], "aa": PGEN_COLUMNS[1:2]}
"""The probabilities of drawn sequences: that of the unit last; of nucleotides to see contamination."""

HIT = 0.05
"""The q-value up to which a sequence is a hit."""

PRIVATE = 200_000
"""Sequences of one individual that the AUC takes, at most: the error of the AUC is that of the fewer shared ones."""


@dataclass(frozen=True)
class Settings:
    """How sharing is tested.

    unit               what counts as one sequence: `nt`, nucleotides with V and J genes; `vj-aa`, amino acids with V
                       and J genes; `aa`, amino acids alone
    min_individuals    the table has sequences of at least so many individuals
    q                  the share of sequences that survive selection; None fits it
    draws              productive sequences to draw from the model
    seed               of these
    backend            where probabilities are computed
    strict_binding     two ranks on one GPU are an error, not a warning
    """

    unit: Unit = "vj-aa"
    min_individuals: int = 2
    q: float | None = None
    draws: int = DRAWS
    seed: int = 0
    backend: str = AUTO
    strict_binding: bool = False

    def __post_init__(self) -> None:
        require_choice("--unit", self.unit, get_args(Unit))
        if self.min_individuals < 1:
            raise InputError(f"--min-individuals {self.min_individuals}: give at least 1")
        if self.q is not None and not SMALLEST_Q <= self.q <= 1:
            raise InputError(f"--q {self.q}: give a number from {SMALLEST_Q:g} to 1")
        if self.draws < 1000:
            raise InputError(f"--draws {self.draws}: give at least 1000")


@dataclass(frozen=True)
class Sharing:
    """Sequences that individuals share.

    table       pyarrow, a row for each of at least `Settings.min_individuals` individuals, by p-value: see
                docs/sharing.md for the columns
    cohort      whose they are
    q           the share of sequences that survive selection
    q_at_bound  whether the fitted one is 1, its largest
    factor      whether a factor of selection was taken
    observed    int64 [individuals + 1]: sequences in so many individuals; without those that the model cannot make
    expected    float64 [individuals + 1]
    expected_q1 the same, if all survive
    low, high   float64 [individuals + 1]: the 95 % interval of `expected` for the draws that were made
    shared, expected_shared  [individuals, individuals]: sequences that both have; on the diagonal those of each
    aucs        how well each predictor ranks sequences of two or more individuals above those of one
    curves      the scores of the predictors, and whether a sequence is shared, for the figure
    tested      sequences that were seen: the family of the q-values
    impossible  sequences of several individuals that the model cannot make: they are not tested
    pairs       of improbable junctions; None for amino acids without genes
    """

    table: pa.Table
    cohort: Cohort
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
    impossible: int
    pairs: Pairs | None

    def __repr__(self) -> str:
        """How many individuals and shared sequences there are."""
        several = int(self.observed[2:].sum()) + self.impossible
        shared = f"{several:,} of {self.tested:,} sequences shared"
        return f"<Sharing of {len(self.cohort.individuals):,} individuals: {shared}>"

    @property
    def hits(self) -> int:
        """Sequences with a q-value of at most `HIT`."""
        return int(pc.sum(pc.less_equal(self.table["q_value"], HIT)).as_py() or 0)

    @property
    def hits_of_pairs(self) -> int:
        """The hits that only two individuals have, which share improbable junctions as well: probably copies."""
        names = self.cohort.names
        pairs = {f"{names[i]},{names[j]}" for i, j in (self.pairs.standing_out if self.pairs is not None else [])}
        hits = self.table.filter(pc.less_equal(self.table["q_value"], HIT))
        return sum(holders in pairs for holders in hits["individuals"].to_pylist())


def share(
    cohort: Cohort | None, model: Model, settings: Settings, run: Run, factor: SelectionFactor | None = None
) -> Sharing | None:
    """Test the sequences of root's cohort against a model; None on the other ranks, which compute probabilities.

    factor  of selection; not used for amino acids without genes

    InputError as of `survivors_share`, and if two individuals are the same sample.
    """
    chance = Chance(model, settings.draws, settings.seed, settings.backend, settings.strict_binding)
    names = NAMES[settings.unit]
    drawn = chance.drawn(run)
    if drawn is not None and settings.unit == "aa":
        factor = None
        drawn = with_any_genes(drawn, np.arange(len(drawn)), model)
    of_drawn = chance.among_productive(drawn, names, run)
    everything = run.on_root(lambda: sequences_of(cohort, settings.unit, model))  # type: ignore[arg-type]
    chosen = everything.only(_computed(everything, settings)) if everything is not None else None
    p = chance.among_productive(chosen.repertoire if chosen is not None else None, names[-1:], run)
    improbable = None
    if settings.unit != "aa":
        several = np.flatnonzero(cohort.has.numbers >= 2) if cohort is not None else None
        own = cohort.repertoire.subset(several) if cohort is not None and several is not None else None
        improbable = chance.among_productive(own, PGEN_COLUMNS[:1], run)

    def tested() -> Sharing:
        assert cohort is not None
        assert drawn is not None
        assert of_drawn is not None
        assert everything is not None
        assert chosen is not None
        assert p is not None
        pairs = None
        if improbable is not None:
            pairs = _pairs(cohort, improbable[:, 0], of_drawn[:, 0])
        log_q = log_factors(factor, drawn, *amino_acids(drawn, np.arange(len(drawn))))
        draws = Draws(np.log(of_drawn[:, -1]) + log_q, np.exp(log_q) / len(drawn))
        return _tested(cohort, everything, chosen, p[:, 0], draws, _Asked(model, settings, factor, pairs))

    return run.on_root(tested)


@dataclass(frozen=True)
class _Asked:
    model: Model
    settings: Settings
    factor: SelectionFactor | None
    pairs: Pairs | None


def _computed(everything: Sequences, settings: Settings) -> Counts:
    """The sequences whose probability is needed: shared ones, and some of the others, or all."""
    numbers = everything.has.numbers
    wanted = numbers >= min(2, settings.min_individuals)
    private = np.flatnonzero(~wanted)
    if len(private) > PRIVATE:
        # Sequences are sorted, so the order of rows and individuals does not matter.
        private = np.random.default_rng(settings.seed).permutation(private)[:PRIVATE]
    wanted[private] = True
    return np.flatnonzero(wanted)


def _pairs(cohort: Cohort, p: Floats, of_drawn: Floats) -> Pairs:
    """Of junctions that several individuals have: those that are improbable, of each two individuals."""
    several = np.flatnonzero(cohort.has.numbers >= 2)
    low = several[(p > 0) & (p < MAX_PGEN)]
    rare = of_drawn < MAX_PGEN
    pairs = Pairs.of(cohort.has.only(low).overlap(), cohort.has.sizes, float((of_drawn * rare).mean()))
    found = pairs.duplicate(cohort.has.sizes * rare.mean())
    if found is not None:
        raise same_sample(cohort, *found)
    return pairs


def same_sample(cohort: Cohort, i: int, j: int) -> InputError:
    """The error for two individuals that are one."""
    return InputError(
        f"{cohort.names[j]} has more than half of the improbable junctions of {cohort.names[i]}: they are the same "
        "sample; leave one out, or give both the same name with --individual"
    )


def _tested(
    cohort: Cohort, everything: Sequences, chosen: Sequences, p: Floats, draws: Draws, asked: _Asked
) -> Sharing:
    """With the tests of all sequences.

    p  of `chosen`
    """
    settings, held = asked.settings, chosen.has.numbers
    numbers = Numbers(cohort.has.sizes)
    impossible = (p <= 0) & (held >= 2)
    observed = np.bincount(everything.has.numbers, minlength=numbers.individuals + 1)
    observed -= np.bincount(held[impossible], minlength=numbers.individuals + 1)
    q, at_bound = settings.q, False
    if q is None:
        q, at_bound = survivors_share(observed, numbers, draws)
    weights = draws.on_grid(np.log(q))
    expected = numbers.spectrum(weights)
    low, high = band(numbers, draws, np.log(q), settings.seed)
    possible = np.where(p > 0, p, 1.0)
    log_factor = log_factors(asked.factor, chosen.repertoire, chosen.letters, chosen.lengths)
    shared_only = everything.has.only(np.flatnonzero(everything.has.numbers >= 2)).overlap()
    np.fill_diagonal(shared_only, everything.has.sizes)
    scores = {"pgen": np.where(p > 0, np.log(possible), -np.inf)}
    if asked.factor is not None:
        scores["p_post"] = scores["pgen"] + log_factor
    scores["length"] = -(chosen.repertoire.lengths if settings.unit == "nt" else chosen.lengths).astype(np.float64)
    public = held >= 2
    return Sharing(
        table=_table(cohort, chosen, p, log_factor - np.log(q), len(everything.variants), numbers, asked),
        cohort=cohort,
        q=q,
        q_at_bound=at_bound,
        factor=asked.factor is not None,
        observed=observed,
        expected=expected,
        expected_q1=numbers.spectrum(draws.on_grid(0.0)),
        low=low,
        high=high,
        shared=shared_only,
        expected_shared=numbers.overlap(weights),
        aucs={name: area for name, score in scores.items() if (area := auc(score, public)) is not None},
        curves=(scores, public),
        tested=len(everything.variants),
        impossible=int(impossible.sum()),
        pairs=asked.pairs,
    )


def _table(
    cohort: Cohort, chosen: Sequences, p: Floats, log_factor: Floats, tests: int, numbers: Numbers, asked: _Asked
) -> pa.Table:
    """The rows that are written, by p-value.

    log_factor  log(Q / q)
    """
    from scipy.stats import false_discovery_control

    settings, held = asked.settings, chosen.has.numbers
    log_p = np.log(np.where(p > 0, p, 1.0)) + log_factor
    p_values = np.where(p > 0, numbers.p_values(log_p, held), 1.0)
    # One individual is certain for a sequence that was seen; those left out of `chosen` have one.
    p_values[held == 1] = 1.0
    q_values = false_discovery_control(np.concatenate([p_values, np.ones(tests - len(held))]))[: len(held)]
    rows = np.flatnonzero(held >= settings.min_individuals)
    kinds = kinds_of(chosen.repertoire)
    rows = rows[np.lexsort((rows, -held[rows], p[rows] <= 0, p_values[rows]))]
    missing = p[rows] <= 0
    expected = numbers.expected(log_p[rows])
    of_number = numbers.log_p_of_holders()[held[rows]]
    reads = chosen.has.largest_reads()
    has, group_of = chosen.has, cohort.group_of
    columns: dict[str, Any] = {}
    if settings.unit != "aa":
        for name, side in (("v_call", 0), ("j_call", 1)):
            genes = pa.array([pair[side].allele for pair in chosen.repertoire.pairs], pa.string())
            columns[name] = genes.take(pa.array(kinds[rows]))
    if settings.unit == "nt":
        columns["junction"] = sequences(chosen.repertoire, rows)
    columns |= {
        "junction_aa": as_text(chosen.letters[rows], chosen.lengths[rows]),
        "n_individuals": held[rows],
        "individuals": _names(cohort, chosen, rows),
    }
    for place, group in enumerate(cohort.groups):
        of_group = has.sequence[group_of[has.individual] == place]
        columns[f"n_{group}"] = np.bincount(of_group, minlength=len(held))[rows]
    if settings.unit != "nt":
        columns["nt_variants"] = chosen.variants[rows]
    if reads is not None:
        columns["max_duplicate_count"] = reads[rows]
    columns["pgen"] = p[rows] * productive_probability(asked.model)
    if asked.factor is not None:
        log_q = log_factors(asked.factor, chosen.repertoire, chosen.letters, chosen.lengths)
        columns["q_factor"] = np.exp(log_q[rows])
    columns |= {
        "p_post": pa.array(np.exp(log_p[rows]), mask=missing),
        "expected_individuals": pa.array(expected, mask=missing),
        "effect": pa.array(np.exp(of_number - log_p[rows]), mask=missing),
        "p_value": pa.array(p_values[rows], mask=missing),
        "q_value": pa.array(q_values[rows], mask=missing),
    }
    return pa.table(columns)


def _names(cohort: Cohort, chosen: Sequences, rows: Counts) -> Any:
    """The individuals of each sequence, joined by commas."""
    has = chosen.has
    counts = has.numbers[rows]
    ends = np.cumsum(counts)
    entries = np.repeat(has.begins[rows] - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)
    names = pa.array(cohort.names, pa.string()).take(pa.array(has.individual[entries]))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int64))
    return pc.binary_join(pa.LargeListArray.from_arrays(offsets, names), ",")
