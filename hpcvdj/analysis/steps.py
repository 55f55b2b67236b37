"""The steps of an analysis: when each can be done, how its command would ask, and where it writes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from hpcvdj.analysis.settings import AnalysisSettings, Cohort
from hpcvdj.annotation.question import AnnotationOutput, AnnotationQuestion
from hpcvdj.annotation.settings import AnnotationSettings, DatabaseSettings
from hpcvdj.association.expansion_question import ExpansionQuestion
from hpcvdj.association.question import DONORS, AssociationQuestion
from hpcvdj.association.settings import AssociationSettings
from hpcvdj.chance.check import check_tables
from hpcvdj.chance.question import Lines, Output, Question, TableOutput, ask
from hpcvdj.chance.settings import Checks, ClonotypeChoice
from hpcvdj.cohorts.contamination_question import JUNCTIONS, CleanOutput, ContaminationQuestion
from hpcvdj.cohorts.settings import ContaminationSettings, SharingSettings
from hpcvdj.cohorts.sharing_question import SharingQuestion
from hpcvdj.enrichment.enrich import Enrichment
from hpcvdj.enrichment.question import EnrichmentQuestion
from hpcvdj.enrichment.settings import Settings as EnrichmentSettings
from hpcvdj.errors import CompleteError, InputError, TooFewError, installing, naming, option
from hpcvdj.inference.gain import Gain
from hpcvdj.inference.selection_question import ModelOutput, SelectionQuestion
from hpcvdj.inference.settings import InferenceSettings, SelectionSettings
from hpcvdj.inference.tables import infer_tables, reading_for
from hpcvdj.probabilities.settings import PgenSettings
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.origin import read_facts
from hpcvdj.repertoires.databases import database_of, read_database
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.reading import reading_of
from hpcvdj.repertoires.sequence_fields import common_fields
from hpcvdj.repertoires.tables import Table, repertoire_name
from hpcvdj.repertoires.writers import is_table
from hpcvdj.reports.page import LIBRARIES, write_report
from hpcvdj.reports.settings import Grouping
from hpcvdj.results.facts import facts_path
from hpcvdj.runs.run import Run
from hpcvdj.storage.folders import folder_digest
from hpcvdj.storage.inputs import file_digest
from hpcvdj.values.summary import total_of
from hpcvdj.values.tables import MOST_UNEVEN, compute_tables

T = TypeVar("T")

PAGE, MODEL, SELECTED = "report.html", "model", "model_selected"

FEWEST_TO_INFER = 3_000
"""Rows out of frame from which all parameters of a model are inferred: see docs/infer.md."""

MOST_SHOWN = 10
"""Individuals with hits that have a line of their own in the summary."""


@dataclass(frozen=True)
class Job:
    """What all steps work on.

    inputs  the tables, surveyed
    model   that of the next step
    folder  where everything is written
    run     its ranks; whether it resumes, and may overwrite
    shown   what earlier steps wrote for the report, by name
    undone  the steps that were asked for and not done, with the reason
    """

    inputs: Inputs
    model: Model
    cohort: Cohort
    database: DatabaseSettings
    settings: AnalysisSettings
    checks: Checks
    folder: Path
    run: Run
    shown: Sequence[str] = ()
    undone: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> Sequence[Table]:
        return self.inputs.tables

    def target(self, name: str) -> Path:
        return self.folder / name

    def digest(self, name: str) -> str:
        """SHA-256 of a file or a folder that a step wrote."""
        path = self.target(name)
        return folder_digest(path) if path.is_dir() else file_digest(path)

    def ask(self, question: Question[Any], output: Output[Any]) -> "Done":
        """Ask a question about the tables."""
        answer = ask(question, self.tables, self.model, self.checks, self.run, output)
        if answer is None:
            return Done()
        return Done(answer, [*question.summary(answer), *output.summary(answer)])


@dataclass(frozen=True)
class Done:
    """What a step did, on root.

    answer  as of the Python function of its name
    said    lines of a summary
    model   the folder of the model that the following steps take; empty if it stays
    """

    answer: Any = None
    said: Lines = field(default_factory=list)
    model: str = ""


@dataclass(frozen=True)
class Step:
    """A step of an analysis.

    do       does it, on all ranks; CompleteError if the run resumes, and there is nothing to do
    why_not  why it is not done; empty if it is
    written  what it writes in the folder: first the table or folder that the report reads, or that of a model
    reads    what decides its numbers, besides tables, model and checks
    """

    do: Callable[[Job], Done]
    why_not: Callable[[Job], str]
    written: tuple[str, ...]
    reads: Callable[[Job], dict[str, Any]] = lambda job: {}

    def shows(self, job: Job) -> list[str]:
        """What the report reads of it, by name."""
        if self.written[0] in (MODEL, SELECTED, PAGE):
            return []
        path = job.target(self.written[0])
        if path.is_dir():
            return [f"{path.name}/{table.name}" for table in sorted(path.iterdir()) if is_table(table)]
        return [path.name]


def _again(job: Job) -> bool:
    """Whether a step that cannot resume may replace what a run left that was killed."""
    return job.run.overwrite or job.run.resume


def _individuals(job: Job) -> str:
    people = job.cohort.naming().people(job.inputs.repertoires)
    return "" if len({*people.subject.values()}) > 1 else "it compares individuals, and there is one"


def _samples(job: Job) -> str:
    return "" if len(job.inputs.repertoires) > 1 else "it compares samples, and there is one"


def _nucleotides(job: Job) -> str:
    return "" if "junction" in common_fields(job.tables) else "the tables have amino acids only"


def _unselected(job: Job) -> str:
    return "" if job.model.selection is None else "the model has a selection factor already"


def _tables_of_one(job: Job) -> str:
    several = next((table for table in job.tables if len(table.repertoires) > 1), None)
    return "" if several is None else f"{several.path.name} has several individuals; give each its own table"


def _contamination(job: Job) -> Done:
    further = {JUNCTIONS: job.target("contamination.junctions.tsv")}
    output = CleanOutput(job.target("contamination.tsv"), _again(job), further=further)
    settings = ContaminationSettings(backend=job.settings.backend)
    return job.ask(ContaminationQuestion(job.cohort.naming(), settings), output)


def _why_not_infer(job: Job) -> str:
    reads = "" if job.inputs.has_reads else (
        "without duplicate_count, rearrangements out of frame cannot be told from sequencing errors"
    )  # fmt: skip
    return _unselected(job) or _nucleotides(job) or reads


def _infer(job: Job) -> Done:
    plan = InferenceSettings()
    reading = replace(reading_for(plan), opening=job.inputs.reading.opening)
    target = job.target(MODEL)
    to_target = job.run.to(target, resume=job.run.resume, overwrite=job.run.overwrite)
    inputs = replace(job.inputs, reading=reading)
    # Alleles that are not functional take part.
    start = job.run.from_root(lambda: load_model(job.model.name, pseudogenes=True))
    answer, said = None, list[tuple[str, str]]()
    try:
        inferred = infer_tables(inputs, start, plan, to_target, job.settings.backend, fewest=FEWEST_TO_INFER)
    except CompleteError:
        # The run was stopped before it recorded this.
        inferred = None
    if inferred is not None:
        counted, held = inferred.fit.counted
        answer, said = inferred.fit.model, [("inferred", f"from {counted:,} rows, {held:,} held out")]
    if job.run.from_root(lambda: _explains_less(target)):
        return Done(answer, [*said, ("", f"it explains held-out junctions worse than {job.model.name}, which the "
                                     "following steps keep")])  # fmt: skip
    return Done(answer, said, MODEL)


def _explains_less(folder: Path) -> bool:
    """Whether junctions that were held out are less probable under an inferred model than under that of the start."""
    gain = (read_facts(folder) or {}).get("gain_over_start")
    return gain is not None and Gain(**gain).is_loss


def _infer_selection(job: Job) -> Done:
    output = ModelOutput(job.target(SELECTED), job.model, _again(job))
    done = job.ask(SelectionQuestion(SelectionSettings(), job.settings.backend), output)
    if done.answer is not None and not done.answer.explains:
        return replace(done, said=[*done.said, ("", "the following steps do without it")])
    return replace(done, model=SELECTED)


def _pgen(job: Job) -> Done:
    settings = PgenSettings(selection=job.model.selection is not None, backend=job.settings.backend)
    reading = reading_of(common_fields(job.tables), None, None, job.inputs.reading.opening, strict=False)
    config = settings.config(amino_acids=reading.alphabet is not None)
    model = config.model(job.checks.model(job.model))
    each = [Inputs((table,), config.reads(reading)) for table in job.tables]
    fit = job.run.from_root(lambda: check_tables(job.checks, each, model, config.names[0]).facts())
    make_folder(job, "pgen")

    def compute(given: tuple[Inputs, Path], run: Run) -> Any:
        inputs, target = given
        to_target = run.to(target, resume=job.run.resume, overwrite=job.run.overwrite)
        return compute_tables(inputs, model, config, to_target, None, partial(dict, fit))

    targets = [job.target("pgen") / f"{repertoire_name(inputs.path)}.tsv.gz" for inputs in each]
    sizes = [table.rows for table in job.tables]
    outcomes = job.run.deal(list(zip(each, targets, strict=True)), compute, sizes=sizes, most_uneven=MOST_UNEVEN)
    computed = _sorted_out([inputs.path.name for inputs in each], outcomes)
    said: Lines = []
    if computed:
        total = total_of(computed)
        said = [
            ("rows", f"{total.rows_read:,} read = {total.counted:,} computed + "
             f"{total.rows_read - total.counted:,} excluded"),
            *total.quantity.summary(total.sums, total.nonzero, total.counted).items(),
        ]  # fmt: skip
    return Done(computed, said)


def _sharing(job: Job) -> Done:
    settings = SharingSettings(backend=job.settings.backend)
    output = TableOutput[Any](job.target("shared.tsv"), _again(job))
    return job.ask(SharingQuestion(job.cohort.naming(), settings), output)


def _why_not_associate(job: Job) -> str:
    donors = job.cohort.donors()
    if donors is None:
        return f"nothing is asked of the metadata ({option('case')}, {option('hla')}, {option('trend')})"
    return _individuals(job) if donors.time is None else _samples(job)


def _associate(job: Job) -> Done:
    donors, settings = job.cohort.donors(), AssociationSettings(backend=job.settings.backend)
    assert donors is not None
    further = {DONORS: job.target("donors.tsv")} if donors.time is None else {}
    output = TableOutput[Any](job.target("associated.tsv"), _again(job), further=further)
    question: Any = (AssociationQuestion if donors.time is None else ExpansionQuestion)(donors, settings)
    return job.ask(question, output)


def _enrich(job: Job) -> Done:
    question = EnrichmentQuestion(EnrichmentSettings(backend=job.settings.backend), ClonotypeChoice())
    make_folder(job, "enriched")

    def compute(given: tuple[Table, Path], run: Run) -> Any:
        table, target = given
        output = TableOutput[Any](target, job.run.overwrite, job.run.resume)
        with naming(table.path.name):
            return ask(question, [table], job.model, job.checks, run, output)

    targets = [job.target("enriched") / f"{repertoire_name(table.path)}.tsv" for table in job.tables]
    work, sizes = list(zip(job.tables, targets, strict=True)), [table.rows for table in job.tables]
    outcomes = job.run.deal(work, compute, sizes=sizes)
    answers = _sorted_out([table.path.name for table in job.tables], outcomes)
    if not job.run.is_root or not answers:
        return Done()
    hits = [
        (answer.hits, target.name)
        for answer, target in zip(outcomes, targets, strict=True)
        if isinstance(answer, Enrichment) and answer.hits
    ]
    clonotypes = sum(answer.clonotypes for answer in answers)
    said = [("clonotypes", f"{clonotypes:,} of {len(answers):,} individual(s)"),
            ("hits", f"{sum(number for number, _ in hits):,} of {len(hits):,} individual(s)")]  # fmt: skip
    said += [(name, f"{number:,} hits") for number, name in sorted(hits, reverse=True)[:MOST_SHOWN]]
    return Done(answers, said)


def _why_not_annotate(job: Job) -> str:
    return "" if job.settings.database is not None else f"no {option('database')} is given"


def _annotate(job: Job) -> Done:
    given = job.settings.database
    columns = job.database.database_columns
    read = isinstance(given, str | Path)
    records = job.run.from_root(lambda: read_database(Path(given), columns) if read else database_of(given, columns))
    settings = AnnotationSettings(decoys=job.settings.decoys, backend=job.settings.backend)
    question = AnnotationQuestion(records, job.database, settings, ClonotypeChoice())
    return job.ask(question, AnnotationOutput(job.target("annotated"), job.run.overwrite, job.run.resume))


def _why_not_report(_: Job) -> str:
    missing = [library for library in LIBRARIES if find_spec(library) is None]
    return f"{missing[0]} is not installed: {installing('report')}" if missing else ""


def _report(job: Job) -> Done:
    target, metadata, group = job.target(PAGE), job.cohort.metadata, job.cohort.group
    grouped = group is not None and isinstance(metadata, str | Path)
    grouping = Grouping(metadata=metadata, group=group) if grouped else Grouping()

    def write() -> int:
        if not job.shown:
            raise InputError("there is nothing to show: no other step was done")
        files = list(map(job.target, job.shown))
        return write_report(files, target, grouping=grouping, overwrite=_again(job), undone=job.undone)

    drawn = job.run.on_root(write)
    return Done(target, [("figures", str(drawn))])


def make_folder(job: Job, name: str) -> None:
    """A folder of tables, one of each individual; InputError, on every rank, if it cannot be made."""

    def make() -> None:
        try:
            job.target(name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{job.target(name)}: cannot be made ({error.strerror}); write elsewhere") from None

    job.run.on_root(make)


def _sorted_out(names: Sequence[str], outcomes: Sequence[Any]) -> list[Any]:
    """What `Run.deal` gave of each table; InputError that names the first that was refused.

    Those that are complete are left as they are.
    """
    refused = [
        (error, str(error) if name in str(error) else f"{name}: {error}")
        for name, error in zip(names, outcomes, strict=True)
        if isinstance(error, InputError)
    ]
    if refused:
        more = f", and {len(refused) - 1:,} more" if refused[1:] else ""
        kind = TooFewError if all(isinstance(error, TooFewError) for error, _ in refused) else InputError
        failure = kind(f"{len(refused):,} of {len(names):,} tables: {refused[0][1]}{more}")
        failure.on_every_rank = True
        raise failure
    return [answer for answer in outcomes if answer is not None and not isinstance(answer, CompleteError)]


def _with_facts(name: str) -> tuple[str, str]:
    return name, facts_path(Path(name)).name


def _of_metadata(job: Job, *names: str) -> dict[str, Any]:
    """What a step reads of the metadata."""
    metadata = job.cohort.metadata
    digest = file_digest(Path(metadata)) if isinstance(metadata, str | Path) else f"in memory, {time.time_ns()}"
    named = {name: getattr(job.cohort, name) for name in names}
    return {**named, "metadata": digest if any(named.values()) and metadata is not None else None}


def _of_individuals(job: Job) -> dict[str, Any]:
    return {"individual": job.cohort.individual, **_of_metadata(job, "group", "subject")}


def _of_donors(job: Job) -> dict[str, Any]:
    named = _of_metadata(job, "case", "hla", "trend", "strata", "subject", "time")
    return {"individual": job.cohort.individual, **named}


def _of_database(job: Job) -> dict[str, Any]:
    given = job.settings.database
    digest = file_digest(Path(given)) if isinstance(given, str | Path) else f"in memory, {time.time_ns()}"
    return {"database": digest, **asdict(job.database), "decoys": job.settings.decoys}


def _of_page(job: Job) -> dict[str, Any]:
    return {"shown": [[name, job.digest(name)] for name in job.shown], "undone": dict(job.undone)}


def _always(_: Job) -> str:
    return ""


STEP: dict[str, Step] = {
    "contamination": Step(
        _contamination, lambda job: _individuals(job) or _nucleotides(job),
        (*_with_facts("contamination.tsv"), "contamination.junctions.tsv"), _of_individuals,
    ),
    "infer": Step(_infer, _why_not_infer, (MODEL,)),
    "infer-selection": Step(_infer_selection, _unselected, (SELECTED,)),
    "pgen": Step(_pgen, _always, ("pgen",)),
    "sharing": Step(_sharing, _individuals, _with_facts("shared.tsv"), _of_individuals),
    "associate": Step(
        _associate, _why_not_associate, (*_with_facts("associated.tsv"), "donors.tsv"), _of_donors
    ),
    "enrich": Step(_enrich, _tables_of_one, ("enriched",)),
    "annotate": Step(_annotate, _why_not_annotate, ("annotated",), _of_database),
    "report": Step(_report, _why_not_report, (PAGE,), _of_page),
}  # fmt: skip
"""How each of `hpcvdj.analysis.settings.STEPS` is done."""
