"""The steps of an analysis: when each can be done, how it is done with the defaults of its command, what it writes."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hpcvdj.analysis.settings import AnalysisSettings, CohortSettings
from hpcvdj.annotation.question import AnnotationOutput, AnnotationQuestion
from hpcvdj.annotation.settings import AnnotationSettings, DatabaseSettings
from hpcvdj.association.question import DONORS, question_of
from hpcvdj.association.settings import AssociationSettings
from hpcvdj.chance.check import check_tables
from hpcvdj.chance.question import AnswerOutput, AnswerTable, Lines, Question, ask
from hpcvdj.chance.settings import Checks, ClonotypeChoice
from hpcvdj.cohorts.contamination_question import JUNCTIONS, CleanOutput, ContaminationQuestion
from hpcvdj.cohorts.settings import ContaminationSettings, SharingSettings
from hpcvdj.cohorts.sharing_question import SharingQuestion
from hpcvdj.enrichment.question import EnrichmentQuestion
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import CompleteError, InputError, TooFewError, few, installing, naming, option
from hpcvdj.inference.gain import Gain
from hpcvdj.inference.selection_question import ModelOutput, SelectionQuestion
from hpcvdj.inference.settings import InferenceSettings, SelectionSettings
from hpcvdj.inference.tables import infer_tables, reading_for
from hpcvdj.probabilities.settings import PgenSettings
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.origin import read_facts
from hpcvdj.repertoires.inputs import Inputs, name_of, repertoires_of, targets_in
from hpcvdj.repertoires.reading import reading_of
from hpcvdj.repertoires.sequence_fields import common_fields
from hpcvdj.repertoires.table import Table
from hpcvdj.repertoires.writers import is_table
from hpcvdj.reports.files import shown_and_not_done
from hpcvdj.reports.page import LIBRARIES, write_report
from hpcvdj.reports.settings import ReportSettings
from hpcvdj.results.facts import facts_path
from hpcvdj.runs.folder import Identity
from hpcvdj.runs.run import Run
from hpcvdj.storage.folders import folder_digest, make_folder
from hpcvdj.storage.inputs import file_digest
from hpcvdj.values.compute_tables import MOST_UNEVEN, compute_tables
from hpcvdj.values.summary import total_of

PAGE, MODEL, SELECTED = "report.html", "model", "model_selected"

EACH = {"pgen": ".tsv.gz", "enriched": ".tsv"}
"""The folders with a table of each individual, and the suffixes of these tables."""

FEWEST_TO_INFER = 3_000
"""How many rows out of frame the inference of all parameters of a model needs: see docs/infer.md."""

MOST_SHOWN = 10
"""The summary has a line each for at most this many individuals with hits."""


@dataclass(frozen=True)
class Outcome:
    """What became of a step.

    state     done; left out, as it was not asked for or does not apply; refused, as the data do not allow it; begun
    reason    why it was not done, or not for all tables
    said      the lines of its summary
    identity  what decides its numbers
    written   the SHA-256 of each file and folder that it wrote, by name; empty while the step is begun
    shown     the names of its files that the report reads
    model     the folder of the model that the following steps take; empty if the model stays
    refused   whether a table of several was refused; those with too few rows are not
    """

    step: str
    state: str
    reason: str = ""
    said: Lines = field(default_factory=list)
    identity: Identity = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    shown: Sequence[str] = ()
    model: str = ""
    refused: bool = False


@dataclass(frozen=True)
class Job:
    """What all steps work on.

    inputs    the tables, surveyed
    model     the model of the next step
    folder    where everything is written
    run       the ranks; whether the run resumes, and may overwrite
    outcomes  what became of the earlier steps
    """

    inputs: Inputs
    model: Model
    cohort: CohortSettings
    database: DatabaseSettings
    settings: AnalysisSettings
    checks: Checks
    folder: Path
    run: Run
    outcomes: Sequence[Outcome] = ()

    @property
    def tables(self) -> Sequence[Table]:
        return self.inputs.tables

    def digest(self, name: str) -> str:
        """SHA-256 of a file or a folder that a step wrote."""
        path = self.folder / name
        return folder_digest(path) if path.is_dir() else file_digest(path)

    def ask(self, question: Question[Any], output: AnswerOutput[Any]) -> "FinishedStep":
        """Ask a question about the tables."""
        answer = ask(question, self.tables, self.model, self.checks, self.run, output)
        if answer is None:
            return FinishedStep()
        return FinishedStep(answer, [*question.summary(answer), *output.summary(answer)])


@dataclass(frozen=True)
class FinishedStep:
    """What a step did, on root.

    answer   what the Python function of its name returns
    summary  the lines of its summary
    model    the folder of the model that the following steps take; empty if the model stays
    lacking  which tables were left out, and why; empty if there are none
    refused  whether one of these has another fault than too few rows
    without  the names of the files that these tables would have
    """

    answer: Any = None
    summary: Lines = field(default_factory=list)
    model: str = ""
    lacking: str = ""
    refused: bool = False
    without: Sequence[str] = ()


@dataclass(frozen=True)
class Step:
    """A step of an analysis.

    do       does it, on all ranks; CompleteError if the run resumes and there is nothing to do
    written  what it writes in the folder: first the table or folder that the report reads, or the folder of a model
    why_not  returns why it is not done; empty if it is
    reads    returns what decides its numbers, besides tables, model and checks
    """

    do: Callable[[Job], FinishedStep]
    written: tuple[str, ...]
    why_not: Callable[[Job], str] = lambda job: ""
    reads: Callable[[Job], dict[str, Any]] = lambda job: {}

    def files(self, job: Job) -> list[str]:
        """The names of the files and folders that it writes; InputError if tables would have the same file."""
        return [name for own in self.written
                for name in ([file for table in _tables_of(job, own) for file in _with_facts(table)] if own in EACH
                             else [own])]  # fmt: skip

    def shows(self, job: Job) -> list[str]:
        """The names of the files that the report reads."""
        if self.written[0] in (MODEL, SELECTED, PAGE):
            return []
        path = job.folder / self.written[0]
        if path.name in EACH:
            return [name for name in _tables_of(job, path.name) if (job.folder / name).exists()]
        if path.is_dir():
            return [f"{path.name}/{table.name}" for table in sorted(path.iterdir()) if is_table(table)]
        return [path.name]


def _again(job: Job) -> bool:
    """Whether a step that cannot resume may replace what a killed run left."""
    return job.run.overwrite or job.run.resume


# Each of the next functions returns why a step is not done; empty if it is.


def _needs_individuals(job: Job) -> str:
    people = job.cohort.naming().people(job.inputs.repertoires)
    return "" if len({*people.subject.values()}) > 1 else "it compares individuals, and there is one"


def _needs_samples(job: Job) -> str:
    return "" if len(job.inputs.repertoires) > 1 else "it compares samples, and there is one"


def _needs_nucleotides(job: Job) -> str:
    return "" if "junction" in common_fields(job.tables) else "the tables have amino acids only"


def _needs_no_selection(job: Job) -> str:
    return "" if job.model.selection is None else "the model has a selection factor already"


def _needs_separate_tables(job: Job) -> str:
    for tables in repertoires_of(job.tables):
        if len({name for table in tables for name in table.repertoires}) > 1:
            return f"{name_of(tables).name} has several individuals; give each its own table"
    return ""


def _contamination(job: Job) -> FinishedStep:
    further = {JUNCTIONS: job.folder / "contamination.junctions.tsv"}
    output = CleanOutput(job.folder / "contamination.tsv", _again(job), further=further)
    settings = ContaminationSettings(backend=job.settings.backend)
    return job.ask(ContaminationQuestion(job.cohort.naming(), settings), output)


MOST_MISCALLED = 0.05
"""The share of rows whose calls contradict the bases from which on an inferred model is not used.  Of 30,000 drawn rows
of mouse TRB with exchanged V calls in 30 %, the divergence of V deletions from the truth is 0.084 bits, without any
0.005."""


def _why_not_infer(job: Job) -> str:
    reads = "" if job.inputs.has_reads else (
        "without duplicate_count, rearrangements out of frame cannot be told from sequencing errors"
    )  # fmt: skip
    return _needs_no_selection(job) or _needs_nucleotides(job) or reads


def _infer(job: Job) -> FinishedStep:
    plan = InferenceSettings()
    reading = replace(reading_for(plan), opening=job.inputs.reading.opening)
    target = job.folder / MODEL
    to_target = job.run.to(target, resume=job.run.resume, overwrite=job.run.overwrite)
    inputs = replace(job.inputs, reading=reading)
    # Alleles that are not functional take part.
    start = job.run.from_root(lambda: load_model(job.model.name, pseudogenes=True))
    answer, summary = None, list[tuple[str, str]]()
    # A run may have been stopped between the end of the inference and its record.
    with suppress(CompleteError):
        inferred = infer_tables(inputs, start, plan, to_target, job.settings.backend, fewest=FEWEST_TO_INFER)
        if inferred is not None:
            counted, held = inferred.fit.counted
            answer, summary = inferred.fit.model, [("inferred", f"from {counted:,} rows, {held:,} held out")]
    if fault := job.run.from_root(lambda: _fault_of(target, job.model.name)):
        summary.append(("", fault))
        return FinishedStep(answer, summary)
    return FinishedStep(answer, summary, MODEL)


def _fault_of(folder: Path, start: str) -> str:
    """Say why an inferred model is not used; empty if it is."""
    facts = read_facts(folder) or {}
    gain = facts.get("gain_over_start")
    if gain is not None and Gain(**gain).is_loss:
        return f"it explains held-out junctions worse than {start}, which the following steps keep"
    compared, wrong = facts.get("rows_whose_calls_were_compared", 0), facts.get("rows_whose_calls_contradict_the_bases")
    miscalled = wrong and wrong > MOST_MISCALLED * compared
    return f"it learned calls that contradict the bases, so the following steps keep {start}" if miscalled else ""


def _infer_selection(job: Job) -> FinishedStep:
    output = ModelOutput(job.folder / SELECTED, _again(job))
    subject = job.run.from_root(lambda: job.cohort.naming().people(job.inputs.repertoires).subject)
    done = job.ask(SelectionQuestion(SelectionSettings(), job.settings.backend, subject), output)
    if done.answer is not None and not done.answer.explains:
        return replace(done, summary=[*done.summary, ("", "the following steps do without it")])
    return replace(done, model=SELECTED)


def _pgen(job: Job) -> FinishedStep:
    reading = reading_of(common_fields(job.tables), None, None, job.inputs.reading.opening, strict=False)
    selection = job.model.selection is not None and reading.sequence_field != "cdr3_aa"
    settings = PgenSettings(selection=selection, backend=job.settings.backend)
    config = settings.config(amino_acids=reading.alphabet is not None)
    model = config.model(job.checks.adapted(job.model))
    reads = config.reads(reading)

    def inputs_of(tables: Sequence[Table]) -> Inputs:
        return Inputs((*tables,), reads, together=len(tables) > 1)

    inputs = [inputs_of(tables) for tables in repertoires_of(job.tables)]
    # The analysis began with a warning of rows without nucleotides.
    fit = job.run.from_root(
        lambda: check_tables(job.checks, inputs, model, config.names[0], job.run, remedy="").facts()
    )

    def compute(tables: Sequence[Table], target: Path, run: Run) -> Any:
        to_target = run.to(target, resume=job.run.resume, overwrite=job.run.overwrite)
        return compute_tables(inputs_of(tables), model, config, to_target, None, partial(dict, fit))

    def summary_of(summaries: dict[str, Any]) -> Lines:
        total = total_of(list(summaries.values()))
        excluded = total.rows_read - total.counted
        rows = f"{total.rows_read:,} read = {total.counted:,} computed + {excluded:,} excluded"
        return [("rows", rows), *total.quantity.summary(total.sums, total.nonzero, total.counted).items()]

    return _of_tables(job, "pgen", compute, summary_of, MOST_UNEVEN)


def _sharing(job: Job) -> FinishedStep:
    settings = SharingSettings(backend=job.settings.backend)
    output = AnswerTable[Any](job.folder / "shared.tsv", _again(job))
    return job.ask(SharingQuestion(job.cohort.naming(), settings), output)


def _why_not_associate(job: Job) -> str:
    donors = job.cohort.donors()
    if donors is None:
        questions = ", ".join(map(option, ("case", "hla", "trend", "time")))
        return f"nothing is asked of the metadata ({questions})"
    return _needs_individuals(job) if donors.time is None else _needs_samples(job)


def _associate(job: Job) -> FinishedStep:
    donors, settings = job.cohort.donors(), AssociationSettings(backend=job.settings.backend)
    assert donors is not None
    further = {DONORS: job.folder / "donors.tsv"} if donors.time is None else {}
    output = AnswerTable[Any](job.folder / "associated.tsv", _again(job), further=further)
    return job.ask(question_of(donors, settings), output)


def _enrich(job: Job) -> FinishedStep:
    question = EnrichmentQuestion(EnrichmentSettings(backend=job.settings.backend), ClonotypeChoice())

    def compute(tables: Sequence[Table], target: Path, run: Run) -> Any:
        output = AnswerTable[Any](target, job.run.overwrite, job.run.resume)
        with naming(name_of(tables).name):
            return ask(question, tables, job.model, job.checks, run, output)

    def summary_of(answers: dict[str, Any]) -> Lines:
        hits = [(answer.hits, name) for name, answer in answers.items() if answer.hits]
        clonotypes = sum(answer.clonotypes for answer in answers.values())
        having = f" in {len(hits):,} individual(s)" if hits else ""
        summary = [("clonotypes", f"{clonotypes:,} of {len(answers):,} individual(s)"),
                   ("hits", f"{sum(number for number, _ in hits):,}{having}")]  # fmt: skip
        return [*summary, *((name, f"{number:,} hits") for number, name in sorted(hits, reverse=True)[:MOST_SHOWN])]

    done = _of_tables(job, "enriched", compute, summary_of)
    return done if done.answer else replace(done, answer=None)


def _why_not_annotate(job: Job) -> str:
    return "" if job.settings.database is not None else f"no {option('database')} is given"


def _annotate(job: Job) -> FinishedStep:
    records = job.run.from_root(lambda: job.database.records(job.settings.database))
    settings = AnnotationSettings(decoys=job.settings.decoys, backend=job.settings.backend)
    question = AnnotationQuestion(records, job.database, settings, ClonotypeChoice())
    return job.ask(question, AnnotationOutput(job.folder / "annotated", job.run.overwrite, job.run.resume))


def _why_not_report(_: Job) -> str:
    missing = [library for library in LIBRARIES if find_spec(library) is None]
    return f"{missing[0]} is not installed: {installing('report')}" if missing else ""


def _report(job: Job) -> FinishedStep:
    target, metadata, group = job.folder / PAGE, job.cohort.metadata, job.cohort.group
    grouped = group is not None and isinstance(metadata, str | Path)
    settings = ReportSettings(metadata=metadata, group=group) if grouped else ReportSettings()
    if not job.run.from_root(lambda: any(outcome.shown for outcome in job.outcomes)):
        raise InputError("there is nothing to show: no other step was done").everywhere()
    # The record in the folder says which files are shown.
    drawn = write_report([job.folder], target, settings, overwrite=_again(job), run=job.run)
    return FinishedStep(target, [("figures", str(drawn))])


def _tables_of(job: Job, name: str) -> list[str]:
    """The names of the tables in a folder of `EACH`."""
    return [f"{name}/{target.name}" for _, target in targets_in(job.folder / name, job.tables, EACH[name])]


def _of_tables(
    job: Job, name: str, compute: Callable[[Sequence[Table], Path, Run], Any],
    summary_of: Callable[[dict[str, Any]], Lines], most_uneven: float = math.inf,
) -> FinishedStep:  # fmt: skip
    """Do a step for each table, whose file is in the folder `name`, and which may have several parts.

    compute     returns the answer about a table
    summary_of  returns the summary of answers, by the name of the file that was written; those of complete files lack

    Tables that are refused are left out.  InputError, on every rank, that names the first of them if all are.
    """
    folder = job.folder / name
    job.run.on_root(lambda: make_folder(folder))
    work = targets_in(folder, job.tables, EACH[name])
    sizes = [sum(table.rows for table in tables) for tables, _ in work]
    done, refused = job.run.deal(work, lambda item, run: compute(*item, run), sizes, most_uneven=most_uneven)
    lacking = dict[str, str]()
    for (tables, target), error in refused:
        table = name_of(tables).name
        lacking[f"{name}/{target.name}"] = str(error) if table in str(error) else f"{table}: {error}"
    too_few = all(isinstance(error, TooFewError) for _, error in refused)
    if len(refused) == len(work):
        more = f", and {len(refused) - 1:,} more" if refused[1:] else ""
        kind = TooFewError if too_few else InputError
        raise kind(f"{len(refused):,} of {len(work):,} tables: {next(iter(lacking.values()))}{more}").everywhere()
    if not job.run.is_root:
        return FinishedStep()
    answers = {target.name: outcome for (_, target), outcome in done}
    summary, complete = summary_of(answers) if answers else [], len(work) - len(done) - len(refused)
    if complete and answers:
        summary.append(("", f"{complete:,} further tables were complete; their numbers are not among these"))
    reason = f"not tested: {few(lacking.values(), MOST_SHOWN)}" if lacking else ""
    summary += [("", reason)] * bool(reason)
    return FinishedStep(list(answers.values()), summary, lacking=reason, refused=not too_few, without=list(lacking))


def _with_facts(name: str) -> tuple[str, str]:
    """The names of a table and of its facts."""
    return name, str(facts_path(Path(name)))


def _digest_of(table: Any) -> str:
    """The SHA-256 of a file; a text that never comes again for a table in memory."""
    return file_digest(Path(table)) if isinstance(table, str | Path) else f"in memory, {time.time_ns()}"


def _reads_metadata(job: Job, *names: str) -> dict[str, Any]:
    """What a step reads of the metadata."""
    metadata, named = job.cohort.metadata, {name: getattr(job.cohort, name) for name in names}
    return {**named, "metadata": _digest_of(metadata) if any(named.values()) and metadata is not None else None}


def _reads_subject(job: Job) -> dict[str, Any]:
    return _reads_metadata(job, "subject") if job.cohort.subject is not None else {}


def _reads_individuals(job: Job) -> dict[str, Any]:
    return {"individual": job.cohort.individual, **_reads_metadata(job, "group", "subject")}


def _reads_donors(job: Job) -> dict[str, Any]:
    named = _reads_metadata(job, "case", "hla", "trend", "strata", "subject", "time")
    return {"individual": job.cohort.individual, **named}


def _reads_database(job: Job) -> dict[str, Any]:
    database = _digest_of(job.settings.database)
    return {"database": database, **asdict(job.database), "decoys": job.settings.decoys}


def _reads_page(job: Job) -> dict[str, Any]:
    shown, not_done = shown_and_not_done(list(map(vars, job.outcomes)))
    undone, left_out = (
        {step: why for step, (is_left_out, why) in not_done.items() if is_left_out == of_state}
        for of_state in (False, True)
    )
    digests = [[name, job.digest(name)] for name in shown]
    return {"shown": digests, "undone": undone, "left_out": left_out, **_reads_metadata(job, "group")}


STEP: dict[str, Step] = {
    "contamination": Step(
        _contamination, (*_with_facts("contamination.tsv"), "contamination.junctions.tsv"),
        lambda job: _needs_individuals(job) or _needs_nucleotides(job), _reads_individuals,
    ),
    "infer": Step(_infer, (MODEL,), _why_not_infer),
    "infer-selection": Step(_infer_selection, (SELECTED,), _needs_no_selection, _reads_subject),
    "pgen": Step(_pgen, ("pgen",)),
    "sharing": Step(_sharing, _with_facts("shared.tsv"), _needs_individuals, _reads_individuals),
    "associate": Step(
        _associate, (*_with_facts("associated.tsv"), "donors.tsv"), _why_not_associate, _reads_donors
    ),
    "enrich": Step(_enrich, ("enriched",), _needs_separate_tables),
    "annotate": Step(_annotate, ("annotated",), _why_not_annotate, _reads_database),
    "report": Step(_report, (PAGE,), _why_not_report, _reads_page),
}  # fmt: skip
"""How each of `hpcvdj.analysis.settings.STEPS` is done."""
