"""What commands share: starting the ranks, and what they print."""

import errno
import io
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from hpcvdj.errors import CompleteError, HpcvdjError, InputError, StoppedError
from hpcvdj.runs.ranks import PATIENCE_SECONDS, ROOT, launched_rank, set_threads, starting, world
from hpcvdj.storage.files import require_distinct

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from hpcvdj.runs.run import Run

_streams: list[Any] = []


OUTPUTS = ("output", "amino_acids", "plot")
"""The parameters of commands that name what is written; every other path is read."""


WIDTH_WITHOUT_TERMINAL = 160


class Command(TyperCommand):
    """A command whose help may name `{columns}`, `{formats}` and the like: see `fill`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; InputError, on every rank, if several models are given, of which click takes the last."""
        given = [parameter.name for parameter in self.make_parser(ctx).parse_args(list(args))[2]]
        if given.count("model") > 1 and not ctx.resilient_parsing:
            error = InputError("--model is given several times, and a model is of one locus; run once for each locus")
            error.on_every_rank = True
            raise error
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; InputError, on every rank, if it would write one of the files that it reads."""
        read: list[Path] = []
        written: list[Path] = []
        for name, given in ctx.params.items():
            values = given if isinstance(given, list | tuple) else [given]
            (written if name in OUTPUTS else read).extend(value for value in values if isinstance(value, Path))
        try:
            for path in (*read, *written):
                _require_possible(path)
            # Results may go to the folder that has the tables; which files they are is known later.
            read = [path for path in read if not path.is_dir()]
            for number, path in enumerate(written):
                require_distinct(path, *read)
                if path in written[:number]:
                    raise InputError(f"{path}: is named for two outputs; name another file")
        except InputError as error:
            error.on_every_rank = True
            raise
        return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        for described in (self, *self.params):
            if getattr(described, "help", None):
                described.help = fill(described.help)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def _require_possible(path: Path) -> None:
    """Raise InputError for a path that no file can have."""
    try:
        path.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{str(path)[:60]}…: {error.strerror}; give a shorter path") from None


def fill(text: str) -> str:
    """Help in which `{columns}` are those that `export` adds, `{tables}` the endings of tables that are read, and
    `{parameters}` those of models.

    They are read from where they are declared, and only here: those modules are slow to import.
    """
    if "{columns}" in text:
        from hpcvdj.kernels.quantities import Pathways
        from hpcvdj.results.schema import exported_columns

        names = ", ".join([*exported_columns(), *Pathways().columns(2), "..., pathways_total and weight"])
        columns = f"{names}, empty for a row that could not be counted, and {Pathways.excluded} with the reason"
        text = text.replace("{columns}", columns)
    if "{parameters}" in text:
        from hpcvdj.inference.parameters import PARAMETERS

        text = text.replace("{parameters}", ", ".join(PARAMETERS))
    if "{formats}" in text:
        from hpcvdj.repertoires.formats import readable

        text = text.replace("{formats}", "; ".join(f"{name}: {kind.summary}" for name, kind in readable().items()))
    if "{tables}" in text:
        from hpcvdj.repertoires.readers import table_suffixes

        text = text.replace("{tables}", ", ".join(f"*{suffix}" for suffix in table_suffixes()))
    return text


def mute_nonroot_ranks() -> None:
    """Silence the ranks above root until they begin work: a usage error is printed once, not once per rank."""
    if launched_rank() != ROOT:
        _streams[:] = [sys.stdout, sys.stderr]
        sys.stdout = sys.stderr = io.StringIO()


def begin(threads: int | None = None, patience: float = PATIENCE_SECONDS) -> "Run":
    """Start work: the arguments are well formed, so every rank may report its failures.

    patience  seconds to wait for a rank that hangs

    LauncherError if the ranks were started with different options.
    """
    if _streams:
        sys.stdout, sys.stderr = _streams
        _streams.clear()
    starting.patience = patience
    current = world()
    current.patience = patience
    current.require_same("options", shlex.join(sys.argv[1:]))
    set_threads(current, threads)
    from hpcvdj.runs.run import Run

    return Run(current)


def complain(error: HpcvdjError) -> None:
    """Print one line to stderr: an error, or that there is nothing to do."""
    kind = "" if isinstance(error, StoppedError | CompleteError) else "error: "
    # A file's own words may have line ends.
    print(f"hpcvdj: {kind}{' '.join(str(error).split(chr(10)))}", file=sys.stderr)


def say(line: str = "") -> None:
    """Print one line of the summary to stdout; the work is done even if the line cannot be printed."""
    try:
        print(line, flush=True)
    except OSError as error:
        # A closed pipe has a reader who has seen enough.
        if not isinstance(error, BrokenPipeError):
            print(f"hpcvdj: the summary cannot be printed ({error.strerror})", file=sys.stderr)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (until the program ends)


def console() -> "Console":
    """Where tables are printed; as wide as the terminal, if there is one."""
    from rich.console import Console

    terminal = Console(highlight=False)
    # A file or a pipe has no width, and rich would cut the rows at 80 columns.
    return terminal if terminal.is_terminal else Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)


def table(heads: list[str], rows: list[list[str]], title: str | None = None, left: int = 0) -> "Table":
    """A table whose first `left` columns are text, the others numbers."""
    from rich import box
    from rich.table import Table

    grid = Table(*heads, title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in grid.columns[left:]:
        column.justify = "right"
    for row in rows:
        grid.add_row(*row)
    return grid
