"""Questions about tables that a model of chance answers, and the files of the answers.

`hpcvdj sharing`, `contamination`, `enrich` and `infer-selection`, and the Python functions of these names, are a
`Question` each.  `ask` does what they have in common: it surveys the tables, compares a sample of their rows with the
model, reads all rows, computes the answer over the ranks, and lets an `Output` write it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import hpcvdj
from hpcvdj.chance.check import check_tables
from hpcvdj.chance.clone_sizes import CloneSizes, sizes_in
from hpcvdj.chance.dealing import Alike, Dealt, deal
from hpcvdj.chance.first_rows import WITHOUT_COLUMN
from hpcvdj.chance.model_fit import ModelFit
from hpcvdj.chance.settings import Checks
from hpcvdj.errors import InputError, log
from hpcvdj.options import Settings
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.formats.format import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import Inputs, together_of
from hpcvdj.repertoires.reading import Reading, productive_reading
from hpcvdj.repertoires.sequence_fields import common_fields
from hpcvdj.repertoires.species import warn_of_rows
from hpcvdj.repertoires.table import Table
from hpcvdj.repertoires.tally import Tally
from hpcvdj.results.blocks import TableBlocks
from hpcvdj.results.facts import Facts, Targets, facts_path
from hpcvdj.results.facts import Rows as Written
from hpcvdj.runs.folder import Identity
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.files import exclusive_lock
from hpcvdj.storage.inputs import file_digest

A = TypeVar("A")

Lines = list[tuple[str, str]]
"""The lines of a summary: a word, and the text about it."""


@dataclass(frozen=True)
class Rows:
    """The rows that were read for a question.

    inputs   the tables
    on_root  all rows, on root; None on the other ranks, and if the question `shares_rows`
    fit      how the model fits the tables
    """

    inputs: Inputs
    on_root: Dealt | None
    fit: ModelFit

    @property
    def tally(self) -> Tally:
        """What became of the rows, on root."""
        assert self.on_root is not None
        assert self.on_root.tally is not None
        return self.on_root.tally

    def dealt(self, model: Model, run: Run, alike: Alike = "amino acids", *, numbered: bool = False) -> Dealt:
        """Read the rows on all ranks and distribute them as `deal` does; log which rows are excluded."""
        dealt = deal(self.inputs, model, run, alike, numbered=numbered, fit=self.fit)
        _tell_rows(dealt, self.inputs, model, run)
        return dealt


class Question(Generic[A]):
    """A question about the productive junctions of tables; `A` is the class of its answers.

    command   its name, as a command and in facts
    settings  the options of the test
    genes     whether V and J calls are read
    """

    command: ClassVar[str]
    amino_acids: ClassVar[bool] = True
    """Whether tables may have amino acids only."""
    reads: ClassVar[bool] = True
    """Whether read counts are read."""
    shares_rows: ClassVar[bool] = False
    """Whether the question distributes the rows over all ranks; otherwise root has them all."""

    settings: Settings
    genes: Genes = "call"

    @property
    def further_tables(self) -> Sequence[Table]:
        """Other tables that the question reads in the same way."""
        return ()

    def opening(self, opening: Opening = BY_HEADER) -> Opening:
        """Return how the tables are opened."""
        return opening

    def reading(self, tables: Sequence[Table]) -> Reading:
        """Return how junctions are read, from a field that all tables have."""
        fields = common_fields([*tables, *self.further_tables]) if self.amino_acids else ["junction"]
        return productive_reading(fields, tables[0].opening, reads=self.reads, genes=self.genes)

    def require_of(self, model: Model) -> None:
        """Raise InputError, on root and before tables are read, if the model cannot answer the question."""

    def require(self, inputs: Inputs) -> None:
        """Raise InputError, on root, if the surveyed tables do not suit the question."""

    def answer(self, rows: Rows, model: Model, run: Run) -> A | None:
        """Compute the answer over all ranks; return it on root, None on the other ranks."""
        raise NotImplementedError

    def answer_in_blocks(self, rows: Rows, model: Model, run: Run) -> tuple[A | None, TableBlocks | None]:
        """Compute the answer, and its table in blocks; None if root has the whole table in the answer."""
        return self.answer(rows, model, run), None

    def identity(self) -> Mapping[str, Any]:
        """Return what the numbers depend on besides tables, model and checks; empty if runs cannot be resumed."""
        return {}

    def facts(self, answer: A, rows: Rows) -> Facts:
        """Return what OUT.json has of the answer."""
        raise NotImplementedError

    def clones(self, answer: A, rows: Rows, model: Model) -> Mapping[str, CloneSizes]:
        """Return the clone sizes of each sample by its name; empty without read counts."""
        assert rows.on_root is not None
        return sizes_in(rows.on_root)

    def warnings(self, answer: A) -> list[str]:
        """Return the warnings that are logged, also in Python."""
        return []

    def summary(self, answer: A) -> Lines:
        """Return what the command prints."""
        raise NotImplementedError

    def table(self, answer: A, name: str) -> Written:
        """Return a table of the answer by its name; the main table has an empty name."""
        return answer.table  # type: ignore[attr-defined]

    def curves(self, answer: A) -> Mapping[str, tuple[Any, Any]]:
        """Return the ROC curves of the figure: false and true positive rates, by predictor."""
        return {}


class AnswerOutput(Generic[A]):
    """The place that an answer is written to.

    word  says in the summary what `target` is
    """

    word: ClassVar[str] = "written"
    target: Path
    overwrite: bool = False
    resume: bool = False

    def begin(self, stack: ExitStack, files: Sequence[Path], run: Run, identity: Callable[[], Identity]) -> None:
        """Check the target on root, before anything is read.

        stack     takes locks, and ends with the run
        files     the inputs, which must not be written to
        identity  of the run, to be compared with that of an existing result

        Raises InputError if the target cannot be written, and CompleteError if the run resumes and is complete.
        """

    def require(self, rows: Rows) -> None:
        """Raise InputError, on root, if the rows cannot be written as asked."""

    def write(self, question: Question[A], answer: A, rows: Rows, facts: Facts, run: Run) -> None:
        """Write the answer, on root; all files appear together."""
        raise NotImplementedError

    def draw(self, question: Question[A], answer: A, run: Run) -> None:
        """Draw the figure, on root, if it is asked for."""

    def summary(self, answer: A) -> Lines:
        """Return what the command prints about the output, except for the names of files."""
        return []

    def written(self, *, hidden: bool = False) -> list[Path]:
        """List the paths that are written; a `hidden` target has no file beside it that users could find."""
        return [self.target]


@dataclass(frozen=True)
class AnswerTable(AnswerOutput[A]):
    """A table with a file of facts beside it.

    further  the paths of other tables of the answer, by name
    """

    target: Path
    overwrite: bool = False
    resume: bool = False
    further: Mapping[str, Path] = field(default_factory=dict)

    @property
    def beside(self) -> tuple[Path, ...]:
        """The paths of all other files, except for the facts."""
        return tuple(self.further.values())

    def begin(self, stack: ExitStack, files: Sequence[Path], run: Run, identity: Callable[[], Identity]) -> None:
        targets = self._targets(run)
        if run.resume and targets.facts.exists():
            run.overwrite = targets.resume(identity(), overwrite=run.overwrite)
        targets.require(files, overwrite=run.overwrite)
        for path in (targets.table, *targets.further):
            stack.enter_context(exclusive_lock(path))

    def _targets(self, run: Run) -> Targets:
        assert run.target is not None
        return Targets(run.target, self.beside)

    def write(self, question: Question[A], answer: A, rows: Rows, facts: Facts, run: Run) -> None:
        targets = self._targets(run)
        tables = {path: question.table(answer, name) for name, path in self.further.items()}
        targets.write(facts, {targets.table: question.table(answer, ""), **tables}, overwrite=run.overwrite)

    def written(self, *, hidden: bool = False) -> list[Path]:
        return [self.target, *([] if hidden else [facts_path(self.target)]), *self.beside]


def ask(
    question: Question[A], tables: Sequence[Table], model: Model, checks: Checks, run: Run,
    output: AnswerOutput[A] | None = None,
) -> A | None:  # fmt: skip
    """Answer a question about tables; root returns the answer and writes it to `output`, other ranks return None.

    Raises HpcvdjError for bad input and failures, and leaves an existing result as it was.  Raises CompleteError if the
    run resumes, and there is a result of the same tables and settings.
    """
    model = run.from_root(partial(checks.adapted, model, question.genes))
    if output is not None:
        run = run.to(output.target, resume=output.resume, overwrite=output.overwrite)
    with ExitStack() as stack:

        def begin() -> None:
            if output is not None:
                files = [table.path for table in (*tables, *question.further_tables)]

                def identity() -> Identity:
                    digests = [[path.name, file_digest(path)] for path in files]
                    return _identity(question, digests, tables, model, checks)

                output.begin(stack, files, run, identity)

        def finish() -> A:
            assert answer is not None
            if output is not None:
                facts = _facts(question, answer, rows, model, checks, run)
                given = answer if written is None else replace(answer, table=written)  # type: ignore[type-var]
                output.write(question, given, rows, facts, run)
                output.draw(question, answer, run)
            for line in question.warnings(answer):
                log.warning("%s", line)
            return answer

        run.on_root(begin)
        run.on_root(partial(question.require_of, model))
        rows = read_rows(question, tables, model, checks, run)
        if output is not None:
            run.on_root(partial(output.require, rows))
            run.request.begin()
        answer, blocks = question.answer_in_blocks(rows, model, run)
        written = None if blocks is None or output is None else blocks.written(output.target, stack)
        if blocks is not None and (output is None or (run.is_keeping and run.ranks == 1)):
            # An analysis in Python, which is of one process, returns its answers with their tables.
            table = blocks.on_root()
            answer = run.on_root(lambda: replace(answer, table=table))  # type: ignore[type-var]
        return run.on_root(finish)


def read_rows(question: Question[A], tables: Sequence[Table], model: Model, checks: Checks, run: Run) -> Rows:
    """Read tables for a question; log what the model does not fit, and which rows are excluded."""
    together = run.from_root(lambda: together_of(tables, question.reading(tables)))
    outcome: list[ModelFit | InputError | OSError] = []

    def check() -> None:
        try:
            remedy = WITHOUT_COLUMN if question.amino_acids else ""
            outcome.append(check_tables(checks, [together], model, run=run, remedy=remedy))
        except (InputError, OSError) as error:
            # Errors of the survey of the tables come first.
            outcome.append(error)

    def checked() -> ModelFit:
        if not isinstance(outcome[0], ModelFit):
            raise outcome[0]
        return outcome[0]

    inputs = surveyed(together, run, check)
    run.on_root(lambda: question.require(inputs))
    fit = run.from_root(checked)
    return Rows(inputs, None if question.shares_rows else read_on_root(inputs, model, run, fit), fit)


def read_on_root(inputs: Inputs, model: Model, run: Run, fit: ModelFit) -> Dealt | None:
    """Read the rows of surveyed tables on root; log which rows are excluded.

    fit  as for `deal`
    """
    alone = run.alone()
    alone.request = run.request
    dealt = run.root_steps(lambda: deal(inputs, model, alone, numbered=False, fit=fit), NOTHING_YET)
    if dealt is not None:
        _tell_rows(dealt, inputs, model, run)
    return dealt


def _tell_rows(dealt: Dealt, inputs: Inputs, model: Model, run: Run) -> None:
    """Log which rows are excluded, once for each table and reading if the run is `keeping`."""
    told = run.once(("rows told", inputs.reading), None, set[Path])
    paths = {table.path for table in inputs.tables}
    if dealt.tally is not None and not paths <= told:
        warn_of_rows(dealt.tally, model, inputs.names)
    told |= paths


def _facts(question: Question[A], answer: A, rows: Rows, model: Model, checks: Checks, run: Run) -> Facts:
    facts = {
        "command": question.command,
        **run.provenance(),
        **model.facts(),
        "locus": model.locus,
        "tables": rows.inputs.recorded,
        "sequence_field": rows.inputs.reading.sequence_field,
        "settings": asdict(question.settings),  # type: ignore[call-overload]
        "checks": asdict(checks),
        **rows.fit.facts(),
        **question.facts(answer, rows),
        "clones": {name: sizes.recorded() for name, sizes in question.clones(answer, rows, model).items()},
    }
    if question.identity():
        read = [*rows.inputs.recorded, *facts.get("control", [])]
        digests = [[Path(path).name, digest] for path, digest, *_ in read]
        facts["identity"] = _identity(question, digests, rows.inputs.tables, model, checks)
    return facts


def _identity(
    question: Question[A], digests: list[list[str]], tables: Sequence[Table], model: Model, checks: Checks
) -> Identity:
    """Return what the numbers depend on: the tables, the program, the model and the settings."""
    elsewhere = {"model", "backend", "strict_binding"}
    numbers = {"hpcvdj": hpcvdj.__version__, **model.facts(), **question.identity(), **asdict(checks)}
    kept = {name: value for name, value in numbers.items() if name not in elsewhere}
    return {"tables": digests, "opening": tables[0].opening.recorded(), **kept}
