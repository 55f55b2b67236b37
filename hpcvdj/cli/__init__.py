"""The command `hpcvdj`: a module for each subcommand, as a thin layer over a function of the package.

Results go to the named file, a short summary to stdout, log and progress to stderr.  With `-o -`, a table goes to
stdout and the summary to stderr.  With -q, only warnings and errors are printed.  Under MPI, only root prints.
Exit codes: 0 done; 1 failed; 2 wrong usage or bad input; 75 stopped by a signal, with a checkpoint to resume from.
"""

import errno
import io
import logging
import re
import signal
import sys
from importlib import import_module
from pathlib import Path

import typer

import hpcvdj
from hpcvdj.cli.common import QUIET, VERBOSE, complain, mute_nonroot_ranks, set_logging, unmute
from hpcvdj.cli.declared import App
from hpcvdj.errors import HpcvdjError, MachineError, speaking_shell
from hpcvdj.runs.launcher import ROOT, launched_rank, let_root_speak
from hpcvdj.runs.ranks import abort
from hpcvdj.runs.stopping import SIGNALS
from hpcvdj.storage.files import write_failure

log = logging.getLogger(__name__)

PANELS = {
    "Count pathways": ("count", "verify", "simulate", "info"),
    "Generation probabilities": ("pgen", "generate", "infer", "infer-selection", "models", "olga"),
    "More than chance": ("analyze", "enrich", "annotate", "associate", "sharing", "contamination"),
    "See and use the counters": ("report", "export", "explain"),
    "Junction tables": ("convert", "formats"),
    "Germline tables": ("germline",),
    "Compare sequences by k-mers": ("motifs",),
    "Measure on this machine": ("study",),
}
"""The subcommands by panel.  Each is the `command`, or the `app`, of the module of that name."""


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"hpcvdj {hpcvdj.__version__}")
        raise typer.Exit


def common_options(
    quiet: bool = typer.Option(False, "--quiet", "-q", help=QUIET),
    verbose: bool = typer.Option(False, "--verbose", "-v", help=VERBOSE),
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Set what every command takes."""
    set_logging(quiet=quiet, verbose=verbose)


def program(words: list[str] | None = None) -> typer.Typer:
    """Return the commands, or only that which the first of `words` names that is no option, because it loads faster."""
    app = App(
        name="hpcvdj",
        help=(hpcvdj.__doc__ or "").partition("\n")[0],
        epilog="First look: hpcvdj count inputs/mouse_trb/small.tsv -g mouse_trb_paper -o out.h5",
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback()(common_options)
    named = next((word for word in words or () if not word.startswith("-")), None)
    alone = any(named in names for names in PANELS.values())
    for panel, names in PANELS.items():
        for name in (name for name in names if not alone or name == named):
            module = import_module(f"hpcvdj.cli.{name.replace('-', '_')}")
            if hasattr(module, "app"):
                app.add_typer(module.app, name=name, rich_help_panel=panel)
            else:
                app.command(name, rich_help_panel=panel)(module.command)
    return app


_MEMORY = re.compile("failed to map segment|Cannot allocate memory")
"""What libraries say if memory is short."""


def main() -> None:
    """Run the command.  This function never returns."""
    with speaking_shell():
        _run()


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        # Names of files and genes are UTF-8, whatever the locale says.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    mute_nonroot_ranks()
    try:
        program(sys.argv[1:])(prog_name="hpcvdj")
    except HpcvdjError as error:
        _leave(error)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
            # Files are written where `write_failure` names them.
            _leave(write_failure(Path("standard output"), error))
        log.debug("where the error arose:", exc_info=True)
        if isinstance(error, MemoryError) or _MEMORY.search(str(error)):
            _leave(MachineError("not enough memory: give fewer ranks or threads, fewer --batch-rows, or more memory"))
        kind, message = type(error).__name__, (str(error).splitlines() or [""])[0]
        _leave(HpcvdjError(f"unexpected {kind}: {message[:300]}; -v shows where. Please report it"))


def _leave(error: HpcvdjError) -> None:
    """Print the error on a single rank, and end every rank."""
    # A signal that comes now would end in a traceback.  A handler, unlike SIG_IGN, is not that of other programs, too.
    previous = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
    try:
        if error.on_every_rank or error.before_ranks:
            if launched_rank() == ROOT:
                complain(error)
        else:
            let_root_speak()
            unmute()
            complain(error)
            # The other ranks wait in a collective that this rank will never join.
            abort(error.exit_code)
    finally:
        for number, handler in previous.items():
            # None is what another library set, which Python cannot set again.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    sys.exit(error.exit_code)
