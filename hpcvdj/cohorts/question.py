"""Questions about the individuals of a cohort, and how tables become a cohort."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.chance.dealing import Alike, Dealt
from hpcvdj.chance.question import Question, Rows
from hpcvdj.cohorts.cohort import Cohort, People, cohort_of
from hpcvdj.cohorts.settings import Individuals
from hpcvdj.errors import InputError, few, log, option
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.formats.format import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import Inputs, names_repertoires
from hpcvdj.repertoires.table import REPERTOIRE
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.memory import return_freed_memory

A = TypeVar("A")

SEVERAL_GENES = 0.05
"""The share of rows whose calls name several genes from which on there is a warning."""


@dataclass(frozen=True)
class CohortQuestion(Question[A]):
    """A question about individuals.

    naming  how individuals are named
    """

    naming: Individuals

    amino_acids = False
    least: ClassVar[int] = 2
    """The least number of individuals with junctions."""
    names_rows: ClassVar[bool] = False
    """Whether the answer names rows of the input, if their reads are known."""

    @property
    def fewest(self) -> int:
        """The number of individuals that a sequence must have to be listed; 0 if none are listed."""
        return 0

    @property
    def alike(self) -> Alike:
        """What rows that must be on one rank have in common."""
        return "amino acids"

    def opening(self, opening: Opening = BY_HEADER) -> Opening:
        return self.naming.opening(opening)

    def require(self, inputs: Inputs) -> None:
        require_rows(inputs)
        for table in inputs.tables:
            if table.in_memory and not (table.of_one or names_repertoires(table)):
                raise InputError(
                    f"the table does not name the individuals of its rows; {option('individual', 'COLUMN')} says "
                    "which column does"
                )
            # A table in which no row has a repertoire_id is of the individual that its name says.
            if table.unnamed and (self.naming.individual is not None or table.unnamed < table.rows):
                column = REPERTOIRE if self.naming.individual is None else self.naming.individual
                raise InputError(
                    f"{table.path}: {table.unnamed:,} rows have no {column}, and would be an individual; fill it"
                )
        number = len({*self.naming.people(inputs.repertoires).subject.values()})
        if self.fewest > number > 1:
            raise InputError(
                f"{option('min_individuals', self.fewest)}: there are {number} individuals; give at most {number}"
            )

    def clones(self, answer: A, rows: Rows, model: Model) -> Mapping[str, CloneSizes]:
        """Return the clone sizes of each individual of the cohort that was compared."""
        cohort: Cohort = answer.cohort  # type: ignore[attr-defined]
        return cohort.clones

    def cohort(self, rows: Rows, model: Model, run: Run) -> Cohort:
        """Build the cohort, of which each rank has a part; once for questions that compare the same, if a run keeps it.

        `Cohort.origins` may then be known without being asked for.
        """
        inputs = rows.inputs
        people = run.from_root(lambda: self.naming.people(inputs.repertoires))
        compared = (
            tuple(table.path for table in inputs.tables), inputs.reading, self.alike, tuple(people.subject.items()),
            str(model.facts(selection=False)), rows.fit.miscall_bound,
        )  # fmt: skip
        numbered = inputs.has_reads and (self.names_rows or run.is_keeping)

        def build() -> Cohort:
            dealt = rows.dealt(model, run, self.alike, numbered=numbered)
            return self._cohort_of(dealt, inputs, model, People(people.subject))

        cohort = run.once("cohort", compared, build)
        return_freed_memory()
        return cohort.grouped(people.group, run)

    def cohort_on_root(self, rows: Rows, model: Model, run: Run) -> Cohort | None:
        """Build the whole cohort on root; return None on the other ranks."""

        def build(dealt: Dealt) -> Cohort:
            return self._cohort_of(dealt, rows.inputs, model, self.naming.people(dealt.samples))

        return run.root_steps(build, NOTHING_YET, rows.on_root)

    def _cohort_of(self, dealt: Dealt, inputs: Inputs, model: Model, people: People) -> Cohort:
        cohort = cohort_of(dealt, model, people, self.least)
        if dealt.run.is_root and cohort.several_genes > SEVERAL_GENES * cohort.rows:
            log.warning(
                "%s of %s rows name several V or several J genes; they are sequences of their own, which drawn "
                "ones, of one V and one J, never are, so fewer seem to be shared than expected; %s, unless given, "
                "takes V genes together that reads hardly tell apart",
                f"{cohort.several_genes:,}", f"{cohort.rows:,}", option("ties", "auto"),
            )  # fmt: skip
        if dealt.run.is_root and cohort.has.reads is None:
            level = logging.WARNING if 0 < len(inputs.without_reads) < len(inputs.tables) else logging.INFO
            log.log(level, "%s; the sizes of clones are not known", inputs.lacking_reads)
        return cohort


def require_rows(inputs: Inputs) -> None:
    """Raise InputError if a table has no rows: the individual would seem to share nothing."""
    empty = [table.path.name for table in inputs.tables if not table.rows]
    if empty:
        raise InputError(f"{few(empty)}: no data rows; leave such tables out")


def rows_text(cohort: Cohort) -> str:
    """Say how many rows of all individuals were read and left out, and why."""
    reasons = sum((Counter(individual.left_out) for individual in cohort.individuals), Counter[str]())
    listed = few([f"{reason}: {number:,}" for reason, number in reasons.most_common()])
    read = int(cohort.sizes.sum()) + reasons.total()
    return f"{read:,} read, {reasons.total():,} left out{f' ({listed})' if reasons else ''}"
