"""The question of `hpcvdj infer-selection`: a model with its factor, the folder of it, and the summary."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.chance.question import AnswerOutput, Lines, Question, Rows
from hpcvdj.inference.folder import write_with_selection
from hpcvdj.inference.selection import SelectionFit, infer_selection
from hpcvdj.inference.settings import SelectionSettings
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.exclusions import counts_json
from hpcvdj.recombination.igor import model_folder
from hpcvdj.recombination.models import Model
from hpcvdj.results.facts import Facts
from hpcvdj.runs.folder import Identity
from hpcvdj.runs.run import Run
from hpcvdj.storage.folders import exclusive_folder


@dataclass(frozen=True)
class SelectionQuestion(Question[SelectionFit]):
    """By which factor does selection make junctions more common than recombination does?"""

    settings: SelectionSettings
    backend: str = AUTO
    subject: Mapping[str, str] = field(default_factory=dict)
    """The individual of each sample; other samples are individuals of their own."""

    command = "infer-selection"
    reads = False
    shares_rows = True

    def answer(self, rows: Rows, model: Model, run: Run) -> SelectionFit | None:
        dealt = rows.dealt(model, run).of_people(self.subject)
        return infer_selection(dealt, model, self.settings, self.backend, rows.fit)

    def clones(self, answer: SelectionFit, rows: Rows, model: Model) -> Mapping[str, CloneSizes]:
        return {}

    def facts(self, answer: SelectionFit, rows: Rows) -> Facts:
        """Return the facts that docs/selection.md describes."""
        return {
            "rows_read": answer.rows_read,
            "rows_excluded": counts_json(answer.reasons),
            "rows_left_out": answer.left_out,
        }

    def warnings(self, answer: SelectionFit) -> list[str]:
        return list(answer.warnings)

    def summary(self, answer: SelectionFit) -> Lines:
        left_out = "".join(f", {number:,} {reason}" for reason, number in answer.left_out.items() if number)
        return [
            ("rows", f"{answer.rows_read:,} read, {answer.excluded:,} excluded{left_out}"),
            (
                "inferred",
                f"{len(answer.selection.weights):,} weights from {answer.rows[0]:,} distinct junctions of "
                f"{answer.individuals:,} individual(s), {answer.rows[1]:,} held out",
            ),
            ("held out", f"gain {answer.gain:.4f} ± {answer.error:.4f} nats per junction; AUC {answer.auc:.4f}"),
            *(("warning", warning) for warning in answer.warnings),
        ]


@dataclass(frozen=True)
class ModelOutput(AnswerOutput[SelectionFit]):
    """A copy of the model's folder, with the factor."""

    word = "model"

    target: Path
    overwrite: bool = False

    def begin(self, stack: ExitStack, files: Sequence[Path], run: Run, identity: Callable[[], Identity]) -> None:
        assert run.target is not None
        stack.enter_context(exclusive_folder(run.target, *files, overwrite=run.overwrite))

    def write(self, question: Question[SelectionFit], answer: SelectionFit, rows: Rows, facts: Facts, run: Run) -> None:
        assert run.target is not None
        # Readers know the settings by another name.
        source = model_folder(facts["model"])
        facts = {name: value for name, value in facts.items() if name != "settings"} | {"options": facts["settings"]}
        write_with_selection(source, run.target, answer.model, facts, overwrite=run.overwrite)
