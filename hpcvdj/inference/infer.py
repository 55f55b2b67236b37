"""The inference of a recombination model from junctions, by expectation-maximisation over all ranks.

Every rank counts the events of its share of the junctions.  Counts are integers, which add up exactly.  Root takes the
M step, and all ranks go on from its model.  So the model is the same to the bit for any number of ranks and threads.
"""

import time
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, StoppedError, few, log, option
from hpcvdj.inference.gain import Gain, gain_of
from hpcvdj.inference.parameters import GENE_USAGE, free_parameters, parameters, shared_model, with_parameters
from hpcvdj.inference.rows import ChosenRows
from hpcvdj.inference.search import Evaluated, Search
from hpcvdj.inference.settings import InferenceSettings
from hpcvdj.inference.start import started
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.inference.layout import Expected
from hpcvdj.kernels.inference.method import Expectation, ExpectationWithErrors, InferenceProblem
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.threads import taken
from hpcvdj.recombination.models import Array, Model
from hpcvdj.recombination.origin import FEW_ROWS
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.runs.driver import Driver, Store
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.progress import COMPILING, told_if_slow
from hpcvdj.runs.run import Run

FEWEST_ROWS = 3000
"""With fewer rows, only P(V) and P(J) are inferred, unless the user names parameters."""

FEWEST_POSSIBLE = 0.25
"""With a smaller share of possible rows, the start is considered a model of another species or locus: the mouse model
makes one in seven rows of a human.  Rows with many sequencing errors have larger shares."""

RARE, COMMON = 1e-3, 1e-2
"""Probabilities of an allele: below the first, its deletions are hardly known; from the second on, they matter."""

FIRST_ERROR_RATE = 1e-3
"""The rate of sequencing errors that inference starts from."""

THREADS_PER_BLOCK = 256

_STATE = "search"
"""The name of the state in the folder of a run."""


@dataclass(frozen=True)
class Fit:
    """An inferred model.

    model        the model
    best         the evaluation at which the model was reached
    trace        all evaluations
    counted      the numbers of rows that were counted and held out
    errors       the standard error of each parameter, as a model; None without a bootstrap
    gain         over the model that inference began with; None if it began where everything is equally likely, without
                 rows held out, and with an error rate
    warnings     what to know before using the model
    """

    model: Model
    best: Evaluated
    trace: tuple[Evaluated, ...]
    counted: tuple[int, int]
    errors: Model | None
    gain: Gain | None
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        counted, held = self.counted
        return (
            f"<Fit of {self.model.name}: {counted:,} rows counted, {held:,} held out, evaluation {self.best.iteration} "
            f"of {len(self.trace)}, {self.best.log_likelihood:.5f} nats per row>"
        )


class _Sum(Store):
    """The store of the counts on root; an evaluation that is interrupted starts again."""

    def put(self, unit: Unit, values: NDArray[Any]) -> None:
        self.values = values


class Expectations:
    """The evaluation of models over the ranks."""

    def __init__(self, problem: InferenceProblem, run: Run, backend: Backend) -> None:
        self._problem, self._run = problem, run
        self._quiet = copy(run)
        self._quiet.shown = False
        self._method = ExpectationWithErrors() if problem.errors else Expectation()
        with told_if_slow(COMPILING, shown=run.is_root):
            self._kernel: Any = backend.load(self._method, problem, THREADS_PER_BLOCK)

    def weigh(self, row_weights: NDArray[np.uint32]) -> None:
        """Set how often each row counts from now on, as in `InferenceProblem`."""
        self._problem = self._problem.weighted(row_weights)
        self._kernel.weigh(self._problem)

    def __call__(self, model: Model | None, saved: str) -> Expected | None:
        """Return what is expected under root's model, on root; the other ranks pass None.

        saved  the end of the message if a signal stops the run
        """
        # The driver does not stop after the last piece of a unit, and small data are one piece.
        if self._run.target is not None and any(self._run.gather_everywhere(bool(self._run.request))):
            raise self._run.stopped(saved)
        model = shared_model(model, self._problem.model, self._run)
        self._kernel.take(model)
        (unit,) = self._method.units(self._problem, 0, range(0))
        store = _Sum() if self._run.is_root else None
        try:
            Driver(self._kernel, self._method, THREADS_PER_BLOCK, self._quiet).compute([unit], store)
        except StoppedError:
            raise self._run.stopped(saved) from None
        if store is None:
            return None
        expected: Expected = self._problem.layout.expected(store.values[0], model, self._problem.rows)
        return expected


def infer(
    chosen: ChosenRows | None,
    model: Model,
    plan: InferenceSettings,
    run: Run,
    backend: Backend,
    folder: RunFolder | None = None,
) -> Fit | None:
    """Infer a model, on root; return None on the other ranks, which pass no rows.

    model   the alleles, and the model to start from
    folder  where root saves the state after each iteration, and continues with that of an earlier run

    Raises StoppedError on every rank after a signal, and InputError if hardly any row is possible, or if the state is
    damaged.
    """
    free, warnings = run.from_root(lambda rows: _free(len(rows.repertoire), model, plan), chosen)
    first = started(model, plan.start or "mixed", free)
    first = replace(first, error_rate=FIRST_ERROR_RATE if plan.errors else 0.0, selection=None)
    repertoire, held = _shared(chosen, plan, run)
    evaluate = Expectations(InferenceProblem(repertoire, (~held).astype(np.uint32), first, plan.errors), run, backend)
    kept = _Kept(Search(plan, free, int((~held).sum()), int(held.sum()), first), folder)
    run.on_root(kept.restore)
    search = kept.search
    while not run.from_root(lambda: search.done):
        _step(search, evaluate, run, f"after iteration {len(search.trace)}")
        run.on_root(lambda: _after(kept))
    errors = _bootstrapped(kept, evaluate, held, run)
    gain = None
    if plan.start != "uniform" and not plan.errors and held.any():
        inferred = search.best if run.is_root else None
        gain = gain_of(repertoire.subset(np.flatnonzero(held)), inferred, replace(model, selection=None), run, backend)
    if not run.is_root:
        return None
    assert search.best is not None
    best = search.accepted[-1]
    if search.judged:
        best = max(search.accepted, key=lambda evaluation: (evaluation.held_out, -evaluation.iteration))
    if 2 * best.lost > search.rows:
        warnings.append(
            f"{best.lost:,} of {search.rows:,} rows have probability 0: are they of another species or locus than "
            f"{model.name}, or do they have many sequencing errors ({option('errors', True)})?"
        )
    if search.judged and best.iteration == 1 < len(search.trace):
        warnings.append(
            "the result is the start: each iteration made the junctions that were held out less probable; give more "
            f"rows, or infer fewer parameters with {option('only')}"
        )
    warnings += _changed_alleles(model, search.best, free, plan.prior)
    if gain is not None and gain.is_loss:
        warnings.append(
            f"junctions that were held out are less probable than under {model.name}, by {-gain.nats:.3f} ± "
            f"{gain.error:.3f} nats each: use that model, or infer from more rows"
        )
    # One number does not fit chance events, and an early iteration is still near where it began.
    result = replace(search.best, error_rate=search.accepted[-1].error_rate)
    return Fit(result, best, tuple(search.trace), (search.rows, search.held), errors, gain, tuple(warnings))


def _after(kept: "_Kept") -> None:
    """Log and save an iteration; raise InputError if too few of the junctions are possible."""
    search, plan = kept.search, kept.search.settings
    _report(search)
    possible = search.rows - search.trace[-1].lost
    if possible < max(1, FEWEST_POSSIBLE * search.rows):
        mixture = f", or start from a mixture with {option('start', 'mixed')}" if plan.start == "model" else ""
        errors = "" if plan.errors else f", or infer sequencing errors as well, with {option('errors', True)}"
        subject = f"only {possible:,} of {search.rows:,} junctions have" if possible else "no junction has"
        raise InputError(
            f"{subject} a probability above 0 under the model that inference starts from, {search.model.name}; give "
            f"the model of the rows' species and locus{mixture}{errors}"
        )
    kept.save()


def _changed_alleles(start: Model, result: Model, free: frozenset[str], prior: float) -> list[str]:
    """Warn of alleles of the start that the result never makes, or makes with unknown deletions."""
    lost, unknown = [], []
    for segment, deletions in (("V", "v_3_del"), ("D", "d_del"), ("J", "j_5_del")):
        before, after = (of.p_segment(segment) for of in (start, result))  # type: ignore[arg-type]
        names = [template.allele for template in start.templates(segment)]  # type: ignore[arg-type]
        lost += [names[k] for k in start.contributing(segment) if not after[k]]  # type: ignore[arg-type]
        if deletions not in free:
            unknown += [names[k] for k in np.flatnonzero((before < RARE) & (after >= COMMON))]
    warnings = []
    if lost:
        remedy = "" if prior else f"; {option('prior', 1)} keeps functional V and J"
        warnings.append(
            f"{len(lost):,} alleles of {start.name} have probability 0 in the result, because no row has them: "
            f"{few(lost, 8)}{remedy}"
        )
    if unknown:
        warnings.append(
            f"{len(unknown):,} alleles that are rare in {start.name} are common in the result, but their deletions "
            f"were not inferred: {few(unknown, 8)}; give more rows, or infer the deletions with {option('only')}"
        )
    return warnings


def _free(rows: int, model: Model, plan: InferenceSettings) -> tuple[frozenset[str], list[str]]:
    """Return the parameters that are inferred, and warnings about the number of rows."""
    only, warnings = plan.only, []
    if rows < FEWEST_ROWS and not only and plan.start != "uniform":
        only = GENE_USAGE
        warnings.append(
            f"{rows:,} rows are too few to infer deletions and insertions, so only P(V) and P(J) are inferred; "
            f"{option('only')} PARAMETER asks for others"
        )
    elif rows < FEW_ROWS:
        warnings.append(
            f"{rows:,} rows are few: what is rare is not known well; compare it with {option('bootstrap', 20)}"
        )
    return free_parameters(model, only, plan.fix), warnings


def held_out(chosen: ChosenRows, plan: InferenceSettings) -> NDArray[np.bool_]:
    """Draw the junctions that are held out, bool [junctions]; none if all would be."""
    # By the data row, so that the order in which rows are kept does not matter.
    drawn = taken(np.random.default_rng(plan.seed).random(int(chosen.row.max()) + 1) < plan.hold_out, chosen.row)
    return np.asarray(drawn & ~drawn.all())


def _shared(chosen: ChosenRows | None, plan: InferenceSettings, run: Run) -> tuple[Repertoire, NDArray[np.bool_]]:
    """Share the junctions, and which are held out, with every rank."""
    repertoire = run.broadcast(chosen.repertoire if chosen is not None else None)
    return repertoire, run.broadcast(None if chosen is None else held_out(chosen, plan))


def _step(search: Search, evaluate: Expectations, run: Run, saved: str) -> None:
    """Evaluate the model of root's search, which then chooses the next model.

    saved  where the search continues if a signal stops the run
    """
    before = time.perf_counter()
    expected = evaluate(search.model if run.is_root else None, f"{saved}; {option('resume', True)} continues")
    if expected is not None:
        search.take(expected, time.perf_counter() - before)


def _report(search: Search) -> None:
    evaluation, accepted = search.trace[-1], search.accepted
    gain = evaluation.log_likelihood - accepted[-2].log_likelihood if len(accepted) > 1 and evaluation.accepted else 0.0
    held = f", held out {evaluation.held_out:.5f}" if search.judged else ""
    change = f" ({gain:+.5f})" if len(accepted) > 1 else ""
    change = change if evaluation.accepted else ", not taken: less likely"
    rate = f", error rate {evaluation.error_rate:.3g}" if evaluation.error_rate else ""
    log.info(
        "iteration %d (%s): %.5f nats a junction%s%s%s, %.1f s", evaluation.iteration, evaluation.kind,
        evaluation.log_likelihood, change, held, rate, evaluation.seconds,
    )  # fmt: skip


class _Kept:
    """The state of a run: the search, and the means and sums of squared deviations of the samples so far."""

    def __init__(self, search: Search, folder: RunFolder | None) -> None:
        self.search, self.taken, self._folder = search, 0, folder
        self.sums: list[list[Array]] = [list(map(np.zeros_like, parameters(search.model))) for _ in range(2)]

    def add(self, model: Model) -> None:
        self.taken += 1
        for mean, squares, value in zip(*self.sums, parameters(model), strict=True):
            before = value - mean
            mean += before / self.taken
            squares += before * (value - mean)

    def errors(self) -> Model:
        """Return the standard deviation of each parameter over the samples, as a model."""
        values = [np.sqrt(squares / max(1, self.taken - 1)) for squares in self.sums[1]]
        return with_parameters(self.search.model, values)

    def save(self) -> None:
        """Save the state in the folder of the run, if it has one.  Raise MachineError if the disk is full."""
        if self._folder is not None:
            search, arrays = self.search.saved()
            sums = {f"bootstrap{k}/{n:02}": values for k, of in enumerate(self.sums) for n, values in enumerate(of)}
            self._folder.save(_STATE, {"search": search, "taken": self.taken}, arrays | sums)

    def restore(self) -> None:
        """Go on from the state in the folder of the run, if there is one; raise InputError if it is damaged."""
        if self._folder is None or _STATE not in self._folder.finished:
            return
        with self._folder.damage(_STATE):
            facts, stored = self._folder.read(_STATE)
            arrays = {name: values.copy() for name, values in stored.items()}
            self.search, self.taken = self.search.restored(facts["search"], arrays), facts["taken"]
            self.sums = [[arrays[f"bootstrap{k}/{n:02}"] for n in range(len(of))] for k, of in enumerate(self.sums)]


def _bootstrapped(kept: _Kept, evaluate: Expectations, held: NDArray[np.bool_], run: Run) -> Model | None:
    """Return the standard errors, on root; the search for each sample of the rows starts from the result."""
    plan, rows = kept.search.settings, np.flatnonzero(~held)
    if not plan.bootstrap:
        return None
    while (sample := run.from_root(lambda: kept.taken)) < plan.bootstrap:
        weights = None
        if run.is_root:
            drawn = np.random.default_rng([plan.seed, sample, 1]).integers(len(rows), size=len(rows))
            weights = np.bincount(rows[drawn], minlength=len(held)).astype(np.uint32)
        evaluate.weigh(run.broadcast(weights))
        begin = kept.search.best or kept.search.model
        search = Search(plan, kept.search.free, len(rows), 0, begin, pairs=kept.search.pairs)
        while not run.from_root(lambda search=search: search.done):  # type: ignore[misc]
            _step(search, evaluate, run, f"after {sample} samples")
        if run.is_root:
            kept.add(search.best or search.model)
            log.info("bootstrap: sample %d of %d", sample + 1, plan.bootstrap)
        run.on_root(kept.save)
    return kept.errors() if run.is_root else None
