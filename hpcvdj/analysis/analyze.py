"""An analysis: it does the steps in their order and records what it did, so that a stopped run can go on."""

import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import hpcvdj
from hpcvdj.analysis.settings import STEPS
from hpcvdj.analysis.steps import EACH, STEP, FinishedStep, Job, Outcome
from hpcvdj.association.phenotypes import phenotypes_of
from hpcvdj.chance.check import check_tables
from hpcvdj.cohorts.cohort import require_without_commas
from hpcvdj.cohorts.question import require_rows
from hpcvdj.errors import CompleteError, InputError, StoppedError, TooFewError, few, log, option
from hpcvdj.inference.tables import SUFFIX
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.inputs import together_of
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.sequence_fields import common_fields
from hpcvdj.repertoires.writers import is_table
from hpcvdj.reports.files import ANALYSIS, LEFT_OUT, NOT_ASKED
from hpcvdj.results.facts import facts_path, read_facts
from hpcvdj.runs.folder import Identity, RunFolder, differences
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.stopping import told_otherwise
from hpcvdj.storage.damage import damage
from hpcvdj.storage.files import atomic_path, exclusive_lock, require_apart, require_folder
from hpcvdj.storage.folders import MARK, mark_written
from hpcvdj.storage.inputs import file_digest
from hpcvdj.storage.json_text import json_text

BEGUN, DONE, REFUSED = "begun", "done", "refused"


@dataclass(frozen=True)
class Analysis:
    """What an analysis did.

    folder    where everything is written
    outcomes  the outcomes of the steps, in their order
    answers   what the Python function of its name returns, for each step that this run did
    """

    folder: Path
    outcomes: Sequence[Outcome]
    answers: dict[str, Any]

    def __repr__(self) -> str:
        """The steps that were done."""
        done = [outcome.step for outcome in self.outcomes if outcome.state == DONE]
        return f"<Analysis in {self.folder}: {', '.join(done) or 'nothing'}>"

    @property
    def refused(self) -> list[Outcome]:
        """The outcomes of steps that the data do not allow, if only for one table of several."""
        return [outcome for outcome in self.outcomes if outcome.state == REFUSED or outcome.refused]


def analyze(job: Job, tell: Callable[[Outcome], None] = lambda _: None) -> Analysis | None:
    """Do the steps that were asked for and that the tables allow, on all ranks; returns on root what was done.

    job   if its run resumes, a step that was done with the same tables and settings is not done again
    tell  called on root with each outcome

    If a step is refused, the others are still done.  HpcvdjError for tables that cannot be read, for a folder of
    something else, and, with `resume`, for a folder of another run.
    """
    run, opening = job.run, job.tables[0].opening
    with ExitStack() as stack:
        before = run.from_root(partial(_begin, job, stack))
        inputs = together_of(job.tables, productive_reading(common_fields(job.tables), opening, reads=True))
        # Several steps read the same rows.
        job = replace(job, inputs=surveyed(inputs, run), run=run.keeping())
        run.on_root(lambda: _require_suitable(job))
        run.on_root(lambda: _require_same(job, before))
        # A model of another species or locus would be refused by every step.
        run.on_root(lambda: check_tables(job.checks, [inputs], job.checks.adapted(job.model), run=job.run))
        # A run that is refused loses nothing.
        if run.overwrite:
            run.on_root(lambda: _clear(job, before.values()))
            before = {}
        # As far as the tables tell before the first step.
        asked = [step for step in STEPS if job.settings.asks(step)]
        planned = run.from_root(lambda: [step for step in asked if not STEP[step].why_not(job)])
        if run.is_root and "report" in asked and "report" not in planned:
            log.warning("there will be no page: %s", STEP["report"].why_not(job))
        answers: dict[str, Any] = {}

        def record(*begun: Outcome) -> None:
            # What an earlier run did stays on record until its turn comes, or nobody would know whose files these are.
            so_far = [*job.outcomes, *begun]
            later = [before[name] for name in STEPS[len(so_far) :] if name in before]
            _record(job, [*so_far, *later])

        for step in STEPS:
            try:
                outcome, answer, job = _do(step, planned, job, before.get(step), record)
            except StoppedError as error:
                if not any(earlier.state == DONE for earlier in job.outcomes):
                    raise
                raise told_otherwise(error, f"at the step {step}; {option('resume', True)} continues") from None
            job = replace(job, outcomes=[*job.outcomes, outcome])
            if answer is not None:
                answers[step] = answer
            if run.is_root and outcome.reason != NOT_ASKED:
                tell(outcome)
            run.on_root(record)
        return run.on_root(lambda: Analysis(job.folder, job.outcomes, answers))


def _require_suitable(job: Job) -> None:
    """Raise InputError, before any step begins, for tables or metadata that would make steps be refused."""
    require_rows(job.inputs)
    samples, donors = job.inputs.repertoires, job.cohort.donors()
    people = job.cohort.naming().people(samples)
    asked = [step for step in STEPS if job.settings.asks(step) and not STEP[step].why_not(job)]
    for step in asked:
        STEP[step].files(job)
    if {"contamination", "sharing"} & {*asked}:
        require_without_commas(people.subject.values())
    if "associate" in asked and donors is not None:
        donor_of = donors.people(samples).subject
        require_without_commas(donor_of.values())
        if donors.time is None:
            phenotypes_of(donors, donor_of, told=True)


def _require_same(job: Job, before: Mapping[str, Outcome]) -> None:
    """Raise InputError, before any step is done again, if one was done of other tables or with other settings."""
    # Steps may change the model.
    of_model = job.model.facts()
    for step, outcome in before.items():
        if job.settings.asks(step) and not STEP[step].why_not(job):
            now = {name: value for name, value in _identity(job, step).items() if name not in of_model}
            was = {name: value for name, value in outcome.identity.items() if name in now}
            _is_done(job, replace(outcome, identity=was, written={}), now)


def _do(
    step: str, planned: Sequence[str], job: Job, before: Outcome | None, record: Callable[[Outcome], None]
) -> tuple[Outcome, Any, Job]:
    """Do a step, unless it is left out or was done before.

    planned  the steps that are counted in messages
    record   called on root when the step begins

    Returns its outcome on all ranks, the answer on root, and the job of the next step.
    """
    run, plan = job.run, STEP[step]
    reason = NOT_ASKED if not job.settings.asks(step) else run.from_root(lambda: plan.why_not(job))
    if reason and before is not None and run.from_root(lambda: _is_kept(job, before)):
        # The page goes on showing what is in the folder.
        return before, None, job
    # Files of an earlier run stay on record; older versions recorded folders of tables, not their files.
    earlier = before.written if before is not None else {}
    written = {name: digest for name, digest in earlier.items() if name not in EACH}
    if reason:
        return Outcome(step, LEFT_OUT, reason, written=written), None, job
    identity = run.from_root(lambda: _identity(job, step))
    if before is not None and run.from_root(lambda: _is_done(job, before, identity)):
        return before, None, _with_model(job, before)
    if run.is_root:
        number = planned.index(step) + 1 if step in planned else len(planned)
        log.info("step %s of %s: %s", number, len(planned), step)
    run.on_root(lambda: record(Outcome(step, BEGUN, written={**written, **dict.fromkeys(plan.files(job), "")})))
    try:
        done = plan.do(job)
    except CompleteError:
        # The run was stopped between the end of the step and its record.
        done = FinishedStep()
    except InputError as error:
        if not error.on_every_rank:
            raise
        state = LEFT_OUT if isinstance(error, TooFewError) else REFUSED
        return Outcome(step, state, str(error), written=written), None, job

    def outcome() -> Outcome:
        digests = {**written, **{name: job.digest(name) for name in plan.files(job) if (job.folder / name).exists()}}
        present = {name: digest for name, digest in digests.items() if not digest or (job.folder / name).exists()}
        shown = [name for name in plan.shows(job) if name not in done.without]
        return Outcome(step, DONE, done.lacking, done.summary, identity, present, shown, done.model, done.refused)

    done_now = run.from_root(outcome)
    return done_now, done.answer, _with_model(job, done_now)


def _with_model(job: Job, outcome: Outcome) -> Job:
    """The job, with the model of a step if it has one."""
    if not outcome.model:
        return job
    return replace(job, model=job.run.from_root(lambda: load_model(job.folder / outcome.model)))


def _identity(job: Job, step: str) -> Identity:
    """What decides the numbers of a step."""
    identity = {
        "hpcvdj": hpcvdj.__version__,
        "tables": [[table.path.name, table.sha256] for table in job.tables],
        "opening": job.tables[0].opening.recorded(),
        **{name: value for name, value in job.model.facts().items() if name != "model"},
        **asdict(job.checks),
        **STEP[step].reads(job),
    }
    return dict(json.loads(json_text(identity)))


def _is_done(job: Job, before: Outcome, identity: Identity) -> bool:
    """Whether a step was done before, and its output has not changed.

    InputError if its identity has changed.  People correct metadata, so a step with other metadata is done again.
    """
    if before.state != DONE or job.run.overwrite:
        return False
    changes = differences(before.identity, identity)
    without_metadata = ({**facts, "metadata": None} for facts in (before.identity, identity))
    if differences(*without_metadata) and before.step != "report":
        raise InputError(
            f"{job.folder}: its {before.step} is of another run ({changes}); give another name, or "
            f"{option('overwrite', True)}"
        )
    return not changes and not _changed(job, before.written)


def _is_kept(job: Job, before: Outcome) -> bool:
    """Whether a step that is not asked for now was done before, of the same tables and metadata, and has not changed.

    A model that is not asked for is not taken, and a page is made anew.
    """
    identity, was = _identity(job, before.step), before.identity
    if before.state != DONE or not before.shown or was["tables"] != identity["tables"] or job.run.overwrite:
        return False
    if identity.get("metadata") and was.get("metadata") not in (None, identity["metadata"]):
        log.warning("%s is of other metadata, so the page leaves it out; ask for it, too", before.step)
        return False
    return not _changed(job, before.written)


def _changed(job: Job, written: Mapping[str, str]) -> list[str]:
    """The names of files and folders that no longer have the digests that a step recorded."""
    return [name for name, digest in written.items()
            if digest and not ((job.folder / name).exists() and job.digest(name) == digest)]  # fmt: skip


def _begin(job: Job, stack: ExitStack) -> dict[str, Outcome]:
    """Make the folder if there is none, and lock it until `stack` ends; returns the outcomes of its earlier run."""
    folder, run = job.folder, job.run
    require_folder(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; an analysis is written to a folder")
    copies = (folder / TABLES).resolve()
    files = [table.path for table in job.tables if not table.in_memory]
    require_apart(folder, *(path for path in files if path.parent.resolve() != copies))
    stack.enter_context(exclusive_lock(folder))
    record = folder / ANALYSIS
    # A run may have been stopped before it recorded its first step.
    others = [path.name for path in folder.iterdir() if path.name not in (ANALYSIS, TABLES)] if folder.exists() else []
    if not record.exists():
        if others:
            raise InputError(f"{folder}: has {few(sorted(others))}, and is not of an analysis; name another folder")
        folder.mkdir(exist_ok=True)
        stack.callback(_remove_if_nothing_was_done, folder)
        _record(job, [])
        return {}
    if not run.resume and not run.overwrite:
        raise InputError(
            f"{folder}: exists already; {option('resume', True)} continues it, {option('overwrite', True)} replaces it"
        )
    with damage(record):
        steps = [Outcome(**{**step, "said": [tuple(line) for line in step["said"]]})
                 for step in json.loads(record.read_text())["steps"]]  # fmt: skip
    return {step.step: replace(step, written=_digests(folder, step.written)) for step in steps}


def _remove_if_nothing_was_done(folder: Path) -> None:
    """Remove the record of an analysis that refused its input, so that the corrected command finds no other run."""
    record = folder / ANALYSIS
    others = {path.name for path in folder.iterdir()} - {ANALYSIS}
    steps = json.loads(record.read_text())["steps"]
    if not others <= {TABLES} or any(step["state"] != BEGUN for step in steps):
        return
    record.unlink()
    if not others:
        folder.rmdir()


TABLES = "tables"
"""The folder that keeps copies of tables that users give in memory."""


def _digests(folder: Path, written: Mapping[str, str]) -> dict[str, str]:
    """The digests of what a step wrote; of a step that was stopped, those that the facts of tables and folders tell."""
    digests = dict(written)
    for path in (folder / name for name, digest in written.items() if not digest):
        if (path / MARK).is_file():
            with damage(path / MARK):
                digests[path.name] = mark_written(path)
        elif is_table(path) and (facts := read_facts(path)):
            of_facts = facts_path(path)
            told = [*facts.get("outputs", []), (of_facts.name, file_digest(of_facts))]
            digests |= {str((path.parent / name).relative_to(folder)): digest for name, digest in told}
    return digests


def _clear(job: Job, before: Iterable[Outcome]) -> None:
    """Remove what the steps of an earlier run wrote, so that nobody takes it for output of this run."""
    digests = {name: digest for outcome in before for name, digest in outcome.written.items()}
    written = {name: digest for name, digest in digests.items() if digest and (job.folder / name).exists()}
    if changed := _changed(job, written):
        raise InputError(f"{job.folder}: {few(changed)} changed since hpcvdj wrote it; move the folder away")
    for name in digests:
        path = job.folder / name
        # Steps keep unfinished work there.
        for suffix in (".parts", SUFFIX):
            RunFolder(path.with_name(path.name + suffix), {}).remove()
        if name in written and path.is_dir():
            shutil.rmtree(path)
        elif name in written:
            path.unlink()
        if path.parent != job.folder:
            with suppress(OSError):
                path.parent.rmdir()


def _record(job: Job, outcomes: Sequence[Outcome]) -> None:
    """Write the record of the steps."""
    with atomic_path(job.folder / ANALYSIS, overwrite=True) as temporary:
        facts = {
            "command": "analyze",
            **job.run.provenance(),
            "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "steps": [asdict(outcome) for outcome in outcomes],
        }
        temporary.write_text(json_text(facts), encoding="utf-8", errors="backslashreplace")
