"""Strong scaling, the paper's Table V: one set of junctions, more and more ranks."""

import math
from collections.abc import Iterator

from hpcvdj.studies.measuring import PART_NOTE, SAME_PATHWAYS, Measurement, seconds, seconds_cell
from hpcvdj.studies.pages import Block, Check, Figure, Study
from hpcvdj.studies.tables import distinct, grouped, listing, middle, number, pivot, same, spread


class Scaling(Study):
    """Time by ranks, n-length by n-length."""

    name = "scaling"
    title = "Strong scaling"
    row = Measurement
    notes = f"""
    Wall seconds are those of the slowest rank, from a common start to the last combined unit, without compiling and
    warm-up: medians (min…max) of the repeats. Imbalance is (slowest - fastest) / slowest rank, by the GPUs' clocks.
    {PART_NOTE}
    """
    renderer = "hpcvdj scaling render"

    def page(self, rows: list[Measurement]) -> Iterator[Block]:
        """Table V, then a table with efficiencies for each n-length."""
        rows = sorted(rows, key=lambda row: (row.method, row.m, row.ranks))
        series = {name: grouped(part, "ranks") for name, part in grouped(rows, "work").items()}
        walls = {
            name: {ranks: seconds(repeats) for ranks, repeats in by_ranks.items()}
            for name, by_ranks in series.items()
            if 1 in by_ranks
        }
        efficiencies = {
            name: {ranks: 100 * wall[1] / wall[ranks] / ranks for ranks in wall} for name, wall in walls.items()
        }
        yield f"Hardware of each rank: {distinct(rows, 'hardware')}."
        yield Check(same(rows, *SAME_PATHWAYS), "totals", "rank counts")
        wall_panel = walls, {"xlabel": "ranks (GPUs)", "ylabel": "wall seconds", "yscale": "log"}
        efficiency_panel = efficiencies, {"xlabel": "ranks (GPUs)", "ylabel": "efficiency, %", "ylim": (0, 110)}
        yield Figure("scaling", "wall time and efficiency by ranks", [wall_panel, efficiency_panel])
        yield "## Seconds by n-length and ranks (the paper's Table V)"
        yield pivot(rows, "work", "ranks", seconds_cell)
        for name, by_ranks in series.items():
            yield f"## {name}"
            yield _table(by_ranks)
            first = next(iter(by_ranks.values()))[0]
            if first.sequences < first.of:
                yield f"{first.sequences:,} of {first.of:,} sequences, drawn at random."


def _table(by_ranks: dict[int, list[Measurement]]) -> str:
    def speed_up(repeats: list[Measurement]) -> float:
        return seconds(by_ranks[1]) / seconds(repeats) if 1 in by_ranks else math.nan

    return listing(
        by_ranks.values(),
        {
            "ranks": lambda repeats: repeats[0].ranks,
            "wall, s": lambda repeats: spread([row.scaled for row in repeats], "{:.4g}".format),
            "speed-up": lambda repeats: number(speed_up(repeats), ".2f"),
            "efficiency": lambda repeats: number(100 * speed_up(repeats) / repeats[0].ranks, ".1f", " %"),
            "kernel, s": lambda repeats: f"{middle(repeats, 'kernel'):.4g}",
            "all-reduce, s": lambda repeats: f"{middle(repeats, 'reduce'):.3g}",
            "imbalance": lambda repeats: f"{100 * middle(repeats, 'imbalance'):.1f} %",
            "repeats": len,
        },
    )
