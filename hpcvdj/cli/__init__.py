"""The command `hpcvdj`: one module per subcommand, each a thin layer over one function of the package.

Results go to the named file, a short summary to stdout, log and progress to stderr.  Under MPI only root prints.
Exit codes: 0 done; 1 failed; 2 wrong usage or bad input; 75 stopped by a signal, with a checkpoint to resume from.
"""

import io
import logging
import sys
from importlib import import_module

import typer

from hpcvdj import __version__
from hpcvdj.cli.common import Command, complain, mute_nonroot_ranks
from hpcvdj.errors import HpcvdjError
from hpcvdj.runs.ranks import ROOT, abort, launched_rank, world

log = logging.getLogger(__name__)

app = typer.Typer(
    name="hpcvdj",
    help="Count, exactly, how many V(D)J recombination pathways produce each observed junction.",
    epilog="First look: hpcvdj count inputs/mouse_trb/small.tsv -g inputs/germline/mouse_trb_paper.tsv -o out.h5",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    add_completion=False,
)
PANELS = {
    "Count pathways": ("count", "verify", "simulate", "info"),
    "Generation probabilities": ("pgen", "generate", "infer", "models"),
    "See and use the counters": ("report", "export", "explain", "convergence"),
    "Junction tables": ("convert",),
    "Germline tables": ("germline", "forms"),
    "Compare sequences by k-mers": ("motifs",),
    "Measure on this machine": ("scaling", "study"),
}
"""The subcommands; each is the `command`, or the `app`, of the module of that name."""

for panel, names in PANELS.items():
    for name in names:
        module = import_module(f"hpcvdj.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name, rich_help_panel=panel)
        else:
            app.command(name, cls=Command, rich_help_panel=panel)(module.command)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"hpcvdj {__version__}")
        raise typer.Exit


@app.callback()
def common_options(
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Log only warnings and errors."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Show where in the program an unexpected error arose."),
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Count, exactly, how many V(D)J recombination pathways produce each observed junction."""
    level = logging.WARNING if quiet or launched_rank() != ROOT else logging.INFO
    logging.basicConfig(level=level, format="hpcvdj: %(message)s", stream=sys.stderr, force=True)
    log.setLevel(logging.DEBUG if verbose else logging.NOTSET)


def main() -> None:
    """Run the command; never returns."""
    for stream in (sys.stdout, sys.stderr):
        # Names of files and genes are UTF-8, whatever the locale says.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    mute_nonroot_ranks()
    try:
        app()
    except HpcvdjError as error:
        _leave(error)
    except Exception as error:
        log.debug("where the error arose:", exc_info=True)
        kind, said = type(error).__name__, (str(error).splitlines() or [""])[0]
        complain(HpcvdjError(f"unexpected {kind}: {said[:300]}; -v before the command shows where. Please report it"))
        abort(1)
        sys.exit(1)


def _leave(error: HpcvdjError) -> None:
    """Print one line from one rank, and end every rank."""
    orderly = error.on_every_rank or error.before_ranks
    if launched_rank() == ROOT or not orderly:
        complain(error)
    if not orderly and world().size > 1:
        # The other ranks wait in a collective that this one will never join.
        abort(error.exit_code)
    sys.exit(error.exit_code)
