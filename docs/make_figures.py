"""Draw docs/pathways.png from result files of `hpcvdj count`.

    python docs/make_figures.py "mouse TRB=mouse.h5" "human TRB=human.h5"

Left: the distribution of pathways per junction.  Right: the share of junctions that have a pathway with at most m
n-nucleotides, as a function of m.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt

from hpcvdj import Result

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
"""Okabe and Ito's palette, which colour-blind readers can distinguish."""


def main() -> None:
    """Read the arguments and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", metavar="NAME=OUT.h5", help="label and result file")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "pathways.png")
    arguments = parser.parse_args()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for colour, argument in zip(COLOURS, arguments.results, strict=False):
        name, _, path = argument.partition("=")
        with Result(path) as result:
            counters = result.to_numpy()
        draw_distribution(left, counters, colour, f"{name} ({len(counters):,} junctions)")
        draw_reached(right, counters, colour)
    left.set(xlabel="recombination pathways with at most 10 n-nucleotides", ylabel="share of junctions", xscale="log")
    figure.legend(frameon=False, loc="outside upper center", ncols=2)
    right.set(xlabel="n-nucleotides", ylabel="junctions with a pathway, %", ylim=(0, 101))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(arguments.output, dpi=150)


def draw_distribution(axes: plt.Axes, counters: np.ndarray, colour: str, label: str) -> None:
    """Histogram of the pathways with n-lengths 0 to 10, four bins per decade, without junctions that have none."""
    totals = counters[:, :11].sum(axis=1)
    edges = 10.0 ** np.arange(0, 5.1, 0.25)
    weights = np.full(len(totals), 1 / len(totals))
    axes.hist(totals.astype(float), edges, weights=weights, histtype="step", color=colour, label=label, linewidth=1.6)


def draw_reached(axes: plt.Axes, counters: np.ndarray, colour: str) -> None:
    """Percent of junctions that have a pathway with at most m n-nucleotides, against m."""
    reached = 100 * np.maximum.accumulate(counters > 0, axis=1).mean(axis=0)
    last = min(int(np.argmax(reached >= reached[-1])) + 1, len(reached) - 1)
    axes.plot(np.arange(last + 1), reached[: last + 1], color=colour, marker=".", linewidth=1.6)
    axes.axvline(10, color="0.7", linewidth=0.8, zorder=0)


if __name__ == "__main__":
    main()
