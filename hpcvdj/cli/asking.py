"""The common part of the commands that ask a question about tables (`hpcvdj.chance.question`)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hpcvdj.chance.settings import Checks
from hpcvdj.cli import common
from hpcvdj.cli.streams import is_stream
from hpcvdj.repertoires.settings import TableSettings

if TYPE_CHECKING:
    from hpcvdj.chance.question import Output, Question
    from hpcvdj.recombination.models import Model
    from hpcvdj.runs.run import Run

A = TypeVar("A")


def answer(
    run: "Run",
    question: "Question[A]",
    paths: Sequence[Path],
    opening: TableSettings,
    model: str,
    checks: Checks,
    output: "Callable[[Model], Output[A]]",
) -> None:
    """Ask a question about tables, write the answer, and print its summary.

    output  returns where to write the answer, given the model
    """
    from hpcvdj.api.tables import used_model
    from hpcvdj.chance.question import ask
    from hpcvdj.repertoires.inputs import tables_in

    with run.request:
        opened = question.opening(run.from_root(opening.opening))
        loaded = run.from_root(lambda: used_model(model))
        tables = run.from_root(lambda: tables_in(paths, opened))
        target = output(loaded)
        result = ask(question, tables, loaded, checks, run, target)
    if result is not None:
        report(question, result, target)


def report(question: "Question[A]", result: A, output: "Output[A]") -> None:
    """Print the summary of an answer."""
    written = ", ".join(map(str, output.written(hidden=is_stream(output.target))))
    lines = [*question.summary(result), *output.summary(result), (output.word, written)]
    width = max(10, *(len(word) for word, _ in lines))
    for word, text in lines:
        common.say(f"{word:<{width}} {text}")
