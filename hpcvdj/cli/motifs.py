"""`hpcvdj motifs`: the comparison of sequences by their common k-mers."""

import typer

from hpcvdj.cli import motifs_cluster, motifs_compare, motifs_export, motifs_plot, motifs_show
from hpcvdj.cli.common import Command

app = typer.Typer(
    help="Compare all sequences of a set with all others by their common k-mers.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
for module in (motifs_compare, motifs_export, motifs_cluster, motifs_show, motifs_plot):
    app.command(module.__name__.rpartition("_")[2], cls=Command)(module.command)
