"""An analysis: the steps in their order, and a record of what was done, from which a run that was stopped goes on."""

import json
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import hpcvdj
from hpcvdj.analysis.settings import STEPS
from hpcvdj.analysis.steps import STEP, Done, Job
from hpcvdj.association.phenotypes import phenotypes_of
from hpcvdj.chance.question import Lines
from hpcvdj.errors import CompleteError, InputError, TooFewError, few, option
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.inputs import together_of
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.sequence_fields import common_fields
from hpcvdj.reports.outputs import ANALYSIS
from hpcvdj.runs.folder import Identity, differences
from hpcvdj.runs.inputs import surveyed
from hpcvdj.storage.files import atomic_path, exclusive_lock, require_apart
from hpcvdj.storage.json_text import json_text
from hpcvdj.storage.opening import damage

log = logging.getLogger(__name__)

DONE, LEFT_OUT, REFUSED = "done", "left out", "refused"


@dataclass(frozen=True)
class Outcome:
    """What became of a step.

    state     done; left out, as it was not asked for or does not apply; refused, as the data do not allow it
    reason    why it was not done
    said      lines of its summary
    identity  what decides its numbers
    written   the SHA-256 of each file and folder that it wrote, by name
    shown     what the report reads of it, by name
    model     the folder of the model that the following steps take; empty if it stays
    """

    step: str
    state: str
    reason: str = ""
    said: Lines = field(default_factory=list)
    identity: Identity = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    shown: Sequence[str] = ()
    model: str = ""


@dataclass(frozen=True)
class Analysis:
    """What was done.

    folder    where everything is written
    outcomes  of the steps, in their order
    answers   of those that this run did, as of the Python functions of their names
    """

    folder: Path
    outcomes: list[Outcome]
    answers: dict[str, Any]

    def __repr__(self) -> str:
        """Which steps were done."""
        done = [own.step for own in self.outcomes if own.state == DONE]
        return f"<Analysis in {self.folder}: {', '.join(done) or 'nothing'}>"

    @property
    def refused(self) -> list[Outcome]:
        """Those of steps that the data do not allow."""
        return [own for own in self.outcomes if own.state == REFUSED]


def analyze(job: Job, tell: Callable[[Outcome], None] = lambda _: None) -> Analysis | None:
    """Do the steps that were asked for, and that the tables allow, on all ranks; on root what was done.

    job   its run may resume: what was done before of the same tables and settings is not done again
    tell  called on root with each outcome

    A step that is refused does not keep the others from being done.  HpcvdjError for tables that cannot be read, a
    folder of something else, and, with `resume`, one of another run.
    """
    run = job.run
    with ExitStack() as stack:

        def begin() -> dict[str, Outcome]:
            return _begin(job, stack)

        before = run.from_root(begin)
        inputs = together_of(job.tables, productive_reading(common_fields(job.tables), _opening(job), reads=True))
        job = replace(job, inputs=surveyed(inputs, run))
        run.on_root(lambda: _require_metadata(job))
        outcomes: list[Outcome] = []
        answers: dict[str, Any] = {}
        for step in STEPS:
            outcome, done, job = _done(step, job, before.get(step))
            outcomes.append(outcome)
            if done is not None and done.answer is not None:
                answers[step] = done.answer
            undone = {step: outcome.reason} if outcome.state == REFUSED else {}
            job = replace(job, shown=[*job.shown, *outcome.shown], undone={**job.undone, **undone})
            run.on_root(partial(_told, job, outcomes, tell))
        return run.on_root(lambda: Analysis(job.folder, outcomes, answers))


def _require_metadata(job: Job) -> None:
    """Raise InputError for metadata with which a step that is asked for would be refused, before any begins."""
    samples, donors = job.inputs.repertoires, job.cohort.donors()
    job.cohort.naming().people(samples)
    asked = job.settings.asks("associate") and not STEP["associate"].why_not(job)
    if asked and donors is not None and donors.time is None:
        phenotypes_of(donors, donors.people(samples).subject)


def _told(job: Job, outcomes: Sequence[Outcome], tell: Callable[[Outcome], None]) -> None:
    """Say, and record, what became of the last step."""
    if outcomes[-1].reason != _NOT_ASKED:
        tell(outcomes[-1])
    _record(job, outcomes)


_NOT_ASKED = "not asked for"


def _opening(job: Job) -> Any:
    return job.tables[0].opening


def _done(step: str, job: Job, before: Outcome | None) -> tuple[Outcome, Done | None, Job]:
    """Do a step, unless it is left out, or was done before: its outcome, on all ranks, and the job of the next step."""
    run, own, asked = job.run, STEP[step], [step for step in STEPS if job.settings.asks(step)]
    if step not in asked:
        return Outcome(step, LEFT_OUT, _NOT_ASKED), None, job
    if reason := run.from_root(lambda: own.why_not(job)):
        return Outcome(step, LEFT_OUT, reason), None, job
    identity = run.from_root(lambda: _identity(job, step))
    if before is not None and run.from_root(lambda: _is_done(job, before, identity)):
        return before, None, _with_model(job, before)
    if run.is_root:
        log.info("step %s of %s: %s", asked.index(step) + 1, len(asked), step)
    try:
        done = own.do(job)
    except CompleteError:
        # It was done, and the run was stopped before this could be recorded.
        done = Done()
    except InputError as error:
        if not error.on_every_rank:
            raise
        return Outcome(step, LEFT_OUT if isinstance(error, TooFewError) else REFUSED, str(error)), None, job

    def outcome() -> Outcome:
        written = {name: job.digest(name) for name in own.written if job.target(name).exists()}
        return Outcome(step, DONE, "", done.said, identity, written, own.shows(job), done.model)

    done_now = run.from_root(outcome)
    return done_now, done, _with_model(job, done_now)


def _with_model(job: Job, outcome: Outcome) -> Job:
    """The job with the model that a step made."""
    if not outcome.model:
        return job
    return replace(job, model=job.run.from_root(lambda: load_model(job.target(outcome.model))))


def _identity(job: Job, step: str) -> Identity:
    """What decides the numbers of a step."""
    given = {
        "hpcvdj": hpcvdj.__version__,
        "tables": [[table.path.name, table.sha256] for table in job.tables],
        "opening": _opening(job).recorded(),
        **{name: value for name, value in job.model.facts().items() if name != "model"},
        **asdict(job.checks),
        **STEP[step].reads(job),
    }
    return dict(json.loads(json_text(given)))


def _is_done(job: Job, before: Outcome, identity: Identity) -> bool:
    """Whether a step was done before, and its output is what it was.

    If only the metadata are others now, which people correct, it is done again.
    """
    if before.state != DONE or job.run.overwrite:
        return False
    changes = differences(before.identity, identity)
    without = ({**own, "metadata": None} for own in (before.identity, identity))
    if differences(*without) and before.step != "report":
        raise InputError(
            f"{job.folder}: its {before.step} is of another run ({changes}); give another name, or "
            f"{option('overwrite', True)}"
        )
    return not changes and all(_is(job, name, digest) for name, digest in before.written.items())


def _is(job: Job, name: str, digest: str) -> bool:
    """Whether a file or folder that a step wrote is what it was."""
    return job.target(name).exists() and job.digest(name) == digest


def _begin(job: Job, stack: ExitStack) -> dict[str, Outcome]:
    """Lock the folder, which is made if there is none; the outcomes of the run that it is of."""
    folder, run = job.folder, job.run
    if not folder.parent.is_dir():
        raise InputError(f"{folder.parent}: no such folder; create it first, or write elsewhere")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; an analysis is written to a folder")
    require_apart(folder, *(table.path for table in job.tables if not table.in_memory and not _copied(job, table.path)))
    stack.enter_context(exclusive_lock(folder))
    record = folder / ANALYSIS
    # A run may have been stopped before it recorded its first step.
    others = [path.name for path in folder.iterdir() if path.name not in (ANALYSIS, TABLES)] if folder.exists() else []
    if not record.exists():
        if others:
            raise InputError(f"{folder}: has {few(sorted(others))}, and is not of an analysis; name another folder")
        folder.mkdir(exist_ok=True)
        _record(job, [])
        return {}
    if not run.resume and not run.overwrite:
        raise InputError(
            f"{folder}: exists already; {option('resume', True)} continues it, {option('overwrite', True)} replaces it"
        )
    with damage(record):
        before = [Outcome(**{**own, "said": [tuple(line) for line in own["said"]]})
                  for own in json.loads(record.read_text())["steps"]]  # fmt: skip
    if run.overwrite:
        _clear(job, before)
        return {}
    return {own.step: own for own in before}


TABLES = "tables"
"""The folder in which tables are kept that were given in memory."""


def _copied(job: Job, path: Path) -> bool:
    return path.parent.resolve() == (job.folder / TABLES).resolve()


def _clear(job: Job, before: Sequence[Outcome]) -> None:
    """Remove what the steps of an earlier run wrote, so that nothing of it is taken for this run's."""
    written = {name: digest for own in before for name, digest in own.written.items() if job.target(name).exists()}
    changed = [name for name, digest in written.items() if not _is(job, name, digest)]
    if changed:
        raise InputError(f"{job.folder}: {few(changed)} changed since hpcvdj wrote it; move the folder away")
    for path in map(job.target, written):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _record(job: Job, outcomes: Sequence[Outcome]) -> None:
    """Write what is known of the steps."""
    with atomic_path(job.target(ANALYSIS), overwrite=True) as temporary:
        facts = {
            "command": "analyze",
            **job.run.provenance(),
            "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "steps": [asdict(own) for own in outcomes],
        }
        temporary.write_text(json_text(facts), encoding="utf-8", errors="backslashreplace")
