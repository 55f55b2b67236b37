"""`hpcvdj motifs`: the comparison of sequences by their common k-mers."""

from __future__ import annotations

import typer

from hpcvdj.cli import motifs_compare

NAME = "motifs"

app = typer.Typer(
    help="Compare all sequences of a set with all others by their common k-mers.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
for module in (motifs_compare,):
    app.command(module.NAME)(module.command)
