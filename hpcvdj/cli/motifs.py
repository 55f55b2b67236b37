"""`hpcvdj motifs`: the comparison of sequences by their common k-mers."""

from hpcvdj.cli import motifs_cluster, motifs_compare, motifs_export, motifs_plot, motifs_show
from hpcvdj.cli.declared import App

app = App(help="Compare all sequences of a set with all others by their common k-mers.")
for module in (motifs_compare, motifs_export, motifs_cluster, motifs_show, motifs_plot):
    app.command(module.__name__.rpartition("_")[2])(module.command)
