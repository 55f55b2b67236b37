"""Shared code of commands: how they start the ranks, and how they print."""

import errno
import io
import logging
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from hpcvdj.cli.helping import MORE, print_help
from hpcvdj.cli.streams import printing, standard_streams, summary_stream, with_stream_names
from hpcvdj.errors import CompleteError, HpcvdjError, InputError, MachineError, StoppedError
from hpcvdj.runs.launcher import ROOT, launched_rank
from hpcvdj.runs.ranks import log_if_serial, set_threads, starting, world
from hpcvdj.runs.settings import Launch
from hpcvdj.runs.stopping import stopped_by
from hpcvdj.storage.files import require_apart, require_distinct
from hpcvdj.storage.inputs import digest_ahead

if TYPE_CHECKING:
    from rich.console import Console

    from hpcvdj.runs.run import Run


_streams: list[Any] = []

_quiet: list[bool] = []
"""Not empty if commands print no summary."""

QUIET = "Print only warnings and errors: no log, no progress, no summary."
VERBOSE = "Show where in the program an unexpected error arose."

OUTPUTS = ("output", "overlap", "junctions_out", "donors", "write_clean", "plot", "figures")
"""The parameters of commands that name outputs.  All other paths are inputs."""

MODELS = ("model", "a", "b")
"""The parameters of commands that name models."""

TABLE_OUT = "OUT"
"""The metavar of outputs that are tables."""

FOLDER_OUT = "FOLDER"
"""The metavar of outputs that are folders, which appear when they are complete."""


class Command(TyperCommand):
    """A command with -q and -v, with `-` for standard input and output, and with a help of two parts.

    The help may contain `{tables}`: see `filled_in`.
    """

    def __init__(self, name: str | None, *, params: Any = None, **settings: Any) -> None:
        super().__init__(name, params=[*(params or []), *_manners()], **settings)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments.  Raise InputError, on every rank, for several models: click would take the last one."""
        names = [parameter.name for parameter in self.make_parser(ctx).parse_args(list(args))[2]]
        if names.count("model") > 1 and not ctx.resilient_parsing:
            text = "--model is given several times, and a model is of one locus; run once for each locus"
            raise InputError(text).everywhere()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command.  Raise InputError, on every rank, if it would write one of the files that it reads."""
        _make_paths(self.params, ctx.params)
        written = [param for param in self.params if param.name in OUTPUTS]
        tables = [param.name for param in written if param.metavar == TABLE_OUT]
        with standard_streams(ctx.params, OUTPUTS, tables):
            _require_distinct(ctx.params, [param.name for param in written if param.metavar == FOLDER_OUT])
            # From here on, a command can clean up.  Before, Ctrl-C ends the process, and with it all ranks.
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                raise stopped_by("SIGINT", "at once; start again with the same command") from None
            except HpcvdjError as error:
                error.args = (with_stream_names(str(error)),)
                raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line: the arguments, the required options, and [OPTIONS]."""
        # click shows required arguments in braces.
        arguments = [re.sub("[{}]", "", piece) for param in self.params for piece in param.get_usage_pieces(ctx)]
        required = [param for param in self.params if param.required and param.param_type_name == "option"]
        needed = [f"{min(param.opts, key=len)} {param.metavar}" for param in required]
        return [*arguments, *needed, "[OPTIONS]"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        print_help(self, ctx)


def _print_everything(ctx: typer.Context, asked: bool) -> None:
    if asked:
        print_help(ctx.command, ctx, everything=True)
        raise typer.Exit


class Group(TyperGroup):
    """Commands whose help looks like that of a command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        print_help(self, ctx)


@cache
def _manners() -> list[Any]:
    """Return -q, -v and --help-all, which every command takes after its name."""

    def flag(names: str, text: str, callback: Callable[..., None], *, eager: bool = False) -> Any:
        about: dict[str, Any] = {"help": text, "callback": callback, "is_eager": eager}
        return typer.Option(False, *names.split(), rich_help_panel=MORE, expose_value=False, **about)

    def declared(
        quiet: bool = flag("--quiet -q", QUIET, _set_quiet),
        verbose: bool = flag("--verbose -v", VERBOSE, _set_verbose),
        everything: bool = flag("--help-all", "Show all options and exit.", _print_everything, eager=True),
    ) -> None: ...

    alone = typer.Typer(add_completion=False)
    alone.command()(declared)
    return list(typer.main.get_command(alone).params)


def _make_paths(parameters: list[Any], values: dict[str, Any]) -> None:
    """Convert paths to Path, because older versions of typer leave them text until the command is called."""
    for parameter in parameters:
        value = values.get(parameter.name)
        if getattr(getattr(parameter, "type", None), "name", "") == "path" and value is not None:
            values[parameter.name] = [Path(path) for path in value] if isinstance(value, list | tuple) else Path(value)


def _require_distinct(values: dict[str, Any], written_whole: list[str]) -> None:
    """Raise InputError, on every rank, if no file can have a path, or if a file would be read and written.

    written_whole  the parameters that name folders to write, which appear when they are complete
    """
    folders = [values[name] for name in written_whole if values[name] is not None]
    read: list[Path] = []
    written: list[Path] = []
    for name, value in values.items():
        paths = value if isinstance(value, list | tuple) else [value]
        (written if name in OUTPUTS else read).extend(path for path in paths if isinstance(path, Path))
    try:
        for path in (*read, *written):
            _require_possible(path)
        models = _model_folders(values)
        for folder in folders:
            require_apart(folder, *read, *models)
        # Results may go to the folder that has the tables; the command itself checks the files in it.
        read = [path for path in read if not path.is_dir()]
        if models:
            from hpcvdj.inference.folder import MODEL_FILES

            read += [folder / name for folder in models for name in MODEL_FILES]
        for number, path in enumerate(written):
            require_distinct(path, *read)
            # Facts are written beside tables.
            require_distinct(Path(f"{path}.json"), *read)
            if path in written[:number]:
                raise InputError(f"{path}: is named for two outputs; name another file")
            for other in written:
                if path == Path(f"{other}.json"):
                    raise InputError(f"{path}: is the name of the facts of {other}; name another file")
                if other in folders and other.absolute() in path.absolute().parents:
                    raise InputError(
                        f"{path}: is within the folder {other}, which this run writes, too; name another place"
                    )
    except InputError as error:
        error.on_every_rank = True
        raise


def _model_folders(values: dict[str, Any]) -> list[Path]:
    """Return the folders of the models; a model is a name or the path of a folder."""
    models = [str(values[name]).removesuffix(":published") for name in MODELS if values.get(name) is not None]
    return [path for path in map(Path, models) if path.is_dir()]


def _require_possible(path: Path) -> None:
    """Raise InputError for a path that no file can have."""
    try:
        path.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{str(path)[:60]}…: {error.strerror}; give a shorter path") from None


def set_logging(*, quiet: bool = False, verbose: bool = False) -> None:
    """Log to stderr, on root.  If `quiet`, log only warnings, and show neither summary nor progress."""
    _quiet[:] = [True] * quiet
    level = logging.WARNING if quiet or launched_rank() != ROOT else logging.INFO
    logging.basicConfig(level=level, stream=sys.stderr, force=True)
    logging.root.handlers[0].setFormatter(_Formatter("hpcvdj: %(message)s"))
    logging.getLogger("hpcvdj.cli").setLevel(logging.DEBUG if verbose else logging.NOTSET)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return with_stream_names(super().format(record))


@contextmanager
def saying_once() -> Iterator[None]:
    """Within the block, print each line of the log only once.

    Lines `below` another one, or indented, belong to the line before them.
    """
    seen, again = set[str](), False

    def is_new(record: logging.LogRecord) -> bool:
        nonlocal again
        line = record.getMessage()
        if not line.startswith(" ") and not getattr(record, "below", False):
            again = line in seen
            seen.add(line)
        return not again

    handlers = logging.root.handlers[:]
    for handler in handlers:
        handler.addFilter(is_new)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_new)


def _set_quiet(quiet: bool) -> None:
    if quiet:
        _quiet[:] = [True]
        logging.root.setLevel(logging.WARNING)


def _set_verbose(verbose: bool) -> None:
    if verbose:
        logging.getLogger("hpcvdj.cli").setLevel(logging.DEBUG)


def mute_nonroot_ranks() -> None:
    """Silence the ranks above root until they begin work, so that only root prints a usage error."""
    if launched_rank() != ROOT:
        _streams[:] = [sys.stdout, sys.stderr]
        sys.stdout = sys.stderr = io.StringIO()


def unmute() -> None:
    """Let a rank above root print."""
    if _streams:
        sys.stdout, sys.stderr = _streams
        _streams.clear()


_ALONE = Launch()


def begin(launch: Launch = _ALONE, *, shared: bool = False, files: Sequence[Path] = ()) -> "Run":
    """Start work.  The arguments are well formed, so every rank may report its failures.

    shared  whether ranks share the work; if there is no MPI library, log how to use more ranks
    files   inputs; a single rank with several threads takes their digests while it imports modules

    Raises LauncherError if the ranks have different options or different versions of the software.
    """
    unmute()
    starting.patience = launch.patience
    current = world()
    current.patience = launch.patience
    current.require_same("options", shlex.join(sys.argv[1:]))
    if current.size > 1:
        from hpcvdj.runs.provenance import computing

        current.require_same("software", computing(), "start all ranks in the same environment")
    set_threads(current, launch.threads)
    if shared:
        log_if_serial(current)
    if current.size == 1 and starting.has_several_threads:
        digest_ahead(files)
    from hpcvdj.runs.run import Run

    return Run(current)


def complain(error: HpcvdjError) -> None:
    """Print an error, or that there is nothing to do, in one line to stderr."""
    kind = "" if isinstance(error, StoppedError | CompleteError) else "error: "
    # Texts from files may have line ends.
    print(f"hpcvdj: {kind}{' '.join(str(error).split(chr(10)))}", file=sys.stderr)


def say(line: str = "") -> None:
    """Print a line of the summary, unless -q is given.  The work is done even if the line cannot be printed."""
    if not _quiet:
        try:
            answer(with_stream_names(line), summary_stream())
        except MachineError as error:
            print(f"hpcvdj: the summary cannot be printed ({error})", file=sys.stderr)


def answer(line: str = "", stream: Any = None) -> None:
    """Print a line of the answer of a command, by default on stdout.  Raise MachineError if it cannot be printed."""
    with printing():
        print(line, file=stream, flush=True)


def console() -> "Console":
    """Return the console for tables, as wide as the terminal, if there is one."""
    from rich.console import Console

    terminal = Console(highlight=False)
    # A file or a pipe has no width, and rich would take 80 columns.
    has_width = terminal.is_terminal or os.environ.get("COLUMNS", "").isdigit()
    return terminal if has_width else Console(highlight=False, width=160)


def print_table(
    terminal: "Console", heads: list[str], rows: list[list[str]], title: str | None = None, left: int = 0
) -> None:
    """Print a table whose first `left` columns are text, the others numbers.

    The table is never cut.  Heads are wrapped, and columns that do not fit follow below, in another table that begins
    with the first column.
    """
    from rich import box
    from rich.table import Table

    def width_of(columns: list[int], widths: list[int]) -> int:
        """Return the width with two blanks for each column, one between two columns, and one at each end."""
        return sum(widths[k] + 3 for k in columns) + 1

    # A column is at least as wide as its longest cell, and as the longest word above.
    widths = [max(len(text) for text in ("", *head.split(), *(row[k] for row in rows))) for k, head in enumerate(heads)]
    unwrapped = [max(width, len(head)) for width, head in zip(widths, heads, strict=True)]
    parts = [[0]]
    for k in range(1, len(heads)):
        if len(parts[-1]) > 1 and width_of([*parts[-1], k], widths) > terminal.width:
            parts.append([0])
        parts[-1].append(k)
    for number, part in enumerate(parts):
        table = Table(title=None if number else title, title_justify="left", box=box.SIMPLE_HEAD)
        wrapped = width_of(part, unwrapped) > terminal.width
        for k in part:
            head = "\n".join(wrap(heads[k], widths[k], break_long_words=False)) if wrapped and heads[k] else heads[k]
            table.add_column(head, justify="right" if k >= left else "left", overflow="fold")
        for row in rows:
            table.add_row(*(row[k] for k in part))
        terminal.print(table)
