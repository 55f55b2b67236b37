"""What the commands do that ask a question about tables: `hpcvdj.chance.question`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hpcvdj.chance.settings import Checks
from hpcvdj.cli import common, options
from hpcvdj.cli.streams import is_stream
from hpcvdj.repertoires.settings import TableSettings
from hpcvdj.runs.ranks import log_if_serial
from hpcvdj.runs.settings import Launch

if TYPE_CHECKING:
    from hpcvdj.chance.question import Output, Question
    from hpcvdj.recombination.models import Model
    from hpcvdj.runs.run import Run

A = TypeVar("A")


def begin(launch: Launch) -> "Run":
    """Start the ranks; modules that compute may be imported from now on."""
    run = common.begin(launch)
    log_if_serial(run.world)
    return run


def answer(
    run: "Run",
    question: "Question[A]",
    given: tuple[Sequence[Path], TableSettings, str],
    checks: Checks,
    output: "Callable[[Model], Output[A]]",
) -> None:
    """Ask a question about tables, write the answer, and print its summary.

    given   the tables and how they are opened, and the model
    output  where the answer is written, of the model
    """
    from hpcvdj.chance.question import ask
    from hpcvdj.repertoires.inputs import tables_in

    paths, opening, name = given
    with run.request:
        opened = question.opening(run.from_root(opening.opening))
        model = run.from_root(lambda: options.used_model(name))
        tables = run.from_root(lambda: tables_in(paths, opened))
        target = output(model)
        result = ask(question, tables, model, checks, run, target)
    if result is not None:
        report(question, result, target)


def report(question: "Question[A]", result: A, output: "Output[A]") -> None:
    """Print the summary of an answer."""
    written = ", ".join(map(str, output.written(hidden=is_stream(output.target))))
    lines = [*question.summary(result), *output.summary(result), (output.word, written)]
    width = max(10, *(len(word) for word, _ in lines))
    for word, text in lines:
        common.say(f"{word:<{width}} {text}")
