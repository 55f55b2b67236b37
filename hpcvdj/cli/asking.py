"""The common part of the commands that ask a question about tables (`hpcvdj.chance.question`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hpcvdj.chance.settings import Checks
from hpcvdj.cli import common
from hpcvdj.cli.streams import is_stream
from hpcvdj.repertoires.settings import TableSettings
from hpcvdj.runs.settings import Launch

if TYPE_CHECKING:
    from hpcvdj.chance.question import AnswerOutput, Question
    from hpcvdj.runs.run import Run

A = TypeVar("A")


class QuestionOptions(Launch, Checks, TableSettings):
    """The options that all questions have: how tables are opened and checked, and how ranks start."""

    @property
    def checks(self) -> Checks:
        """What is done if the model does not fit the tables."""
        return Checks.of(vars(self))


def answer(
    run: "Run",
    question: "Question[A]",
    paths: Sequence[Path],
    model: str,
    asked: QuestionOptions,
    output: "AnswerOutput[A]",
) -> None:
    """Ask a question about tables, write the answer, and print its summary."""
    from hpcvdj.api.tables import used_model
    from hpcvdj.chance.question import ask
    from hpcvdj.repertoires.folders import tables_in

    with run.request:
        opened = question.opening(run.from_root(asked.opening))
        loaded = run.from_root(lambda: used_model(model))
        tables = run.from_root(lambda: tables_in(paths, opened))
        result = ask(question, tables, loaded, asked.checks, run, output)
    if result is not None:
        report(question, result, output)


def report(question: "Question[A]", result: A, output: "AnswerOutput[A]") -> None:
    """Print the summary of an answer."""
    written = ", ".join(map(str, output.written(hidden=is_stream(output.target))))
    lines = [*question.summary(result), *output.summary(result), (output.word, written)]
    width = max(10, *(len(word) for word, _ in lines))
    for word, text in lines:
        common.say(f"{word:<{width}} {text}")
