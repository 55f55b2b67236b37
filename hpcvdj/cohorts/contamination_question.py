"""The question of `hpcvdj contamination`: its answer, its files and its summary."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from hpcvdj.chance.question import Lines, Question, Rows
from hpcvdj.cohorts.contamination import Contamination, contaminate
from hpcvdj.cohorts.improbable import COMMON, SELECTION, pairs_text, power_text
from hpcvdj.cohorts.question import CohortQuestion, rows_text
from hpcvdj.cohorts.settings import ContaminationSettings
from hpcvdj.errors import InputError, option
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.filtering import require_filterable, write_without
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.reports.plots import PlottedTable
from hpcvdj.results.facts import Facts, facts_path
from hpcvdj.runs.folder import Identity
from hpcvdj.runs.run import Run
from hpcvdj.storage.files import require_apart
from hpcvdj.storage.folders import atomic_folder, exclusive_folder

MOST_LISTED = 100
"""The number of junctions of a common source that OUT.json lists."""

WITHOUT_READS = "{}: keeps the largest clone of copies, and not all tables have a column duplicate_count"

JUNCTIONS = "junctions"
"""The table of the improbable junctions that several individuals have."""


@dataclass(frozen=True)
class ContaminationQuestion(CohortQuestion[Contamination]):
    """Which samples contaminated each other?"""

    settings: ContaminationSettings

    command = "contamination"
    shares_rows = True
    names_rows = True

    def answer(self, rows: Rows, model: Model, run: Run) -> Contamination | None:
        return contaminate(self.cohort(rows, model, run), model, self.settings, run, rows.fit)

    def facts(self, answer: Contamination, rows: Rows) -> Facts:
        """Return the facts that docs/contamination.md describes."""
        return {
            "max_pgen": answer.max_pgen,
            "selection_allowed": SELECTION,
            "individuals": answer.cohort.described(low=answer.low, zero=answer.zero, recombinations=answer.sizes),
            "rate": answer.rate,
            "shared_low": np.where(np.eye(len(answer.low), dtype=bool), answer.low, answer.pairs.shared),
            "expected_low": answer.pairs.expected,
            "carry_over": [
                {
                    "reads": size.reads, "clones": size.clones, "met_same_group": size.same_group,
                    "met_other_group": size.other_group,
                }
                for size in answer.carry_over
            ],
            "standing_out": answer.pairs.standing_out,
            "of_one_person": answer.pairs.of_one_person,
            "no_power": int(np.triu(answer.pairs.verdicts == "no power", 1).sum()),
            "common_source": {
                "people": COMMON, "junctions": answer.improbable.common,
                "listed": answer.junctions.slice(0, min(answer.improbable.common, MOST_LISTED)).to_pylist(),
            },
            "left_out": answer.left_out,
        }  # fmt: skip

    def table(self, answer: Contamination, name: str) -> pa.Table:
        return answer.junctions if name == JUNCTIONS else answer.table

    def summary(self, answer: Contamination) -> Lines:
        cohort, pairs = answer.cohort, answer.pairs
        used, low, zero = cohort.sizes.sum(), answer.low.sum(), answer.zero.sum()
        improbable = f"{low:,} improbable (p < {answer.max_pgen:g}); the model cannot make {zero:,}"
        more = f"{len(pairs.standing_out):,} share more than chance and selection explain"
        lines = [
            ("individuals", f"{len(cohort.individuals):,}"),
            ("rows", rows_text(cohort)),
            ("junctions", f"{used:,}, of which {improbable}"),
            ("pairs", f"{answer.table.num_rows:,}, of which {more}"),
            *(("", line) for line in pairs_text(cohort, answer.improbable)),
            *((str(pairs.verdicts[i, j]), f"{cohort.names[i]} and {cohort.names[j]}") for i, j in pairs.of_one_person),
        ]
        if line := power_text(cohort, pairs):
            lines.append(("power", line))
        return lines + _carry_over_lines(answer)


def _carry_over_lines(answer: Contamination) -> Lines:
    same = "other individuals of its group" if len(answer.cohort.groups) > 1 else "the other individuals"
    lines = []
    for size in answer.carry_over:
        if size.clones:
            rates = [
                f"{100 * rate:.3g} % of {name}"
                for rate, name in ((size.same_group, same), (size.other_group, "individuals of other groups"))
                if rate is not None
            ]
            text = f"{size.clones:,} clones with {size.reads} read(s): one is found in {' and in '.join(rates)}"
            lines.append(("carry-over", text))
    return lines


@dataclass(frozen=True)
class CleanOutput(PlottedTable[Contamination]):
    """An output that also writes the tables that were read, without copies of improbable junctions.

    The row of the largest clone of a junction stays.

    clean  the folder of these tables
    """

    clean: Path | None = None

    def begin(self, stack: ExitStack, files: Sequence[Path], run: Run, identity: Callable[[], Identity]) -> None:
        if self.clean is not None:
            stack.enter_context(exclusive_folder(self.clean, *files, overwrite=run.overwrite))
        super().begin(stack, files, run, identity)

    def require(self, rows: Rows) -> None:
        if self.clean is None:
            return
        if not rows.inputs.has_reads:
            raise InputError(WITHOUT_READS.format(option("write_clean")))
        # A folder of tables may have links to tables elsewhere.
        require_apart(self.clean, *rows.inputs.files)
        first: dict[str, Path] = {}
        for table in rows.inputs.tables:
            require_filterable(table)
            other = first.setdefault(table.path.name, table.path)
            if other != table.path:
                raise InputError(f"{option('write_clean')}: {other} and {table.path} have one name; rename one")

    def write(
        self, question: Question[Contamination], answer: Contamination, rows: Rows, facts: Facts, run: Run
    ) -> None:
        if self.clean is None:
            super().write(question, answer, rows, facts, run)
            return
        if answer.copies is None:
            raise InputError(WITHOUT_READS.format(option("write_clean")))
        with atomic_folder(self.clean, overwrite=run.overwrite) as folder:
            copies = np.array([copy.row for copy in answer.copies], dtype=np.int64)
            for table in rows.inputs.tables:
                of_table = (copies >= table.first_row) & (copies < table.first_row + table.rows)
                write_without(table, copies[of_table] - table.first_row, folder / table.path.name)
            super().write(question, answer, rows, {**facts, "removed": _removed(rows.inputs, answer)}, run)

    def summary(self, answer: Contamination) -> Lines:
        if self.clean is None:
            return []
        copies = answer.copies or []
        ties = sum(copy.reads == copy.of_reads for copy in copies)
        tied = f"; {ties:,} of them have as many reads as the row that stays" if ties else ""
        removed = ("removed", f"{len(copies):,} rows, which {facts_path(self.target).name} lists{tied}")
        if not answer.pairs.standing_out:
            return [removed]
        return [
            removed,
            ("", "copies of probable junctions stay, and nothing marks them then: leave one of the two out, or do not"),
            ("", "believe what they alone share"),
        ]

    def written(self, *, hidden: bool = False) -> list[Path]:
        return [*super().written(hidden=hidden), *([self.clean] if self.clean is not None else [])]


def _removed(inputs: Inputs, answer: Contamination) -> Facts:
    """Return the facts about the removed rows, by table; data rows are numbered from 1."""
    starts = np.array([table.first_row for table in inputs.tables])
    copies, names = answer.copies or [], answer.cohort.names
    of_table = (np.searchsorted(starts, [copy.row for copy in copies], side="right") - 1).tolist()
    listed = [
        {
            "table": str(inputs.tables[number].path), "data_row": copy.row - int(starts[number]) + 1,
            "individual": names[copy.individual], "duplicate_count": copy.reads, "largest_individual": names[copy.of],
            "largest_duplicate_count": copy.of_reads,
        }
        for number, copy in zip(of_table, copies, strict=True)
    ]  # fmt: skip
    rows = {str(table.path): of_table.count(number) for number, table in enumerate(inputs.tables)}
    return {"rows": len(copies), "by_table": rows, "listed": listed}
