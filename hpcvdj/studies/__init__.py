"""Studies: what the papers tabulate and plot, computed or measured again."""
