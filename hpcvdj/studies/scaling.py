"""Strong scaling, the paper's Table V: one set of junctions, more and more ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hpcvdj.plotting import pyplot
from hpcvdj.studies.measuring import Measurement, Point, commands, points, read, totals_identical

Series = dict[int, Point]


def render(folder: Path) -> str:
    """Make README.md and scaling.png of a study from its raw rows; returns the Markdown."""
    rows, facts = read(folder, Measurement)
    series: dict[tuple[str, int], Series] = {}
    for (method, m, ranks), point in points(rows, "method", "m", "ranks").items():
        series.setdefault((method, m), {})[ranks] = point
    parts = [_head(rows, facts), _overview(series), *(_table(key, part) for key, part in series.items())]
    _plot(series, folder / "scaling.png")
    text = "\n\n".join(parts) + "\n"
    (folder / "README.md").write_text(text)
    return text


def _head(rows: list[Measurement], facts: dict[str, dict[str, str]]) -> str:
    hardware = ", ".join(sorted({row.hardware for row in rows}))
    binding = "; one rank to a GPU" if any(row.device_max for row in rows) else ""
    same = "totals identical for all rank counts" if totals_identical(rows) else "TOTALS DIFFER between rank counts"
    return (
        f"# Strong scaling\n\nOn {hardware}{binding}. Made from the raw rows by `hpcvdj scaling render`.\n\n"
        f"**{same}**\n\n![wall time and efficiency against ranks](scaling.png)\n\n"
        "Wall seconds are the maximum over ranks, from a common start to the last all-reduced unit, compiling and\n"
        "warm-up apart; median (min…max) of the repeats. Imbalance is (slowest - fastest) / slowest rank by the GPUs'\n"
        "clocks.\n\n" + commands(facts)
    )


def _name(method: str, m: int) -> str:
    return f"{method}, n-lengths 0-{m} at once" if method == "direct" else f"{method}, m = {m}"


def _marked(point: Point) -> str:
    return f"{point.wall:.4g}" + (" †" if point.parts > 1 else "")


def _overview(series: dict[tuple[str, int], Series]) -> str:
    """Table V: seconds by n-length and ranks, all n-lengths that every rank count has in the last line."""
    ranks = sorted({r for part in series.values() for r in part})
    lines = [
        "## Seconds by n-length and ranks (the paper's Table V)",
        "",
        "| | " + " | ".join(map(str, ranks)) + " |",
        "|---" * (len(ranks) + 1) + "|",
    ]
    for (method, m), part in series.items():
        cells = [_marked(part[r]) if r in part else "-" for r in ranks]
        lines.append(f"| {_name(method, m)} | " + " | ".join(cells) + " |")
    if any(point.parts > 1 for part in series.values() for point in part.values()):
        lines += ["", "† measured on a part of the n-nucleotide strings and scaled."]
    return "\n".join(lines)


def _table(key: tuple[str, int], by_ranks: Series) -> str:
    base = by_ranks.get(1)
    lines = [
        f"## {_name(*key)}",
        "",
        "| ranks | wall, s | speed-up | efficiency | kernel, s | all-reduce, s | imbalance | repeats |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for ranks, point in by_ranks.items():
        walls = [row.scaled for row in point.rows]
        gain = f"{base.wall / point.wall:.2f}" if base else "-"
        efficiency = f"{100 * base.wall / point.wall / ranks:.1f} %" if base else "-"
        lines.append(
            f"| {ranks} | {point.wall:.4g} ({min(walls):.4g}…{max(walls):.4g}) | {gain} | {efficiency} | "
            f"{point.middle('kernel'):.4g} | {point.middle('reduce'):.3g} | {100 * point.imbalance:.1f} % | "
            f"{len(walls)} |"
        )
    for ranks, point in by_ranks.items():
        if point.parts > 1:
            lines += ["", f"{ranks} rank(s): 1/{point.parts} of the n-nucleotide strings was measured; wall is scaled."]
    first = next(iter(by_ranks.values())).rows[0]
    if first.sequences < first.of:
        lines += ["", f"Measured on a random sample of {first.sequences:,} of {first.of:,} sequences; not scaled."]
    return "\n".join(lines)


def _plot(series: dict[tuple[str, int], Series], path: Path) -> None:
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    drawn = {key: part for key, part in series.items() if 1 in part}
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(drawn)))
    for colour, (key, part) in zip(colours, drawn.items(), strict=True):
        ranks = list(part)
        walls = [part[r].wall for r in ranks]
        left.plot(ranks, walls, marker=".", color=colour, label=_name(*key))
        right.plot(
            ranks, [100 * walls[0] / wall / r for r, wall in zip(ranks, walls, strict=True)], marker=".", color=colour
        )
    left.set(xlabel="ranks (GPUs)", ylabel="wall seconds", yscale="log")
    right.set(xlabel="ranks (GPUs)", ylabel="efficiency, %", ylim=(0, 110))
    right.axhline(100, color="0.8", linewidth=0.8, zorder=0)
    if drawn:
        figure.legend(frameon=False, loc="outside right center")
    figure.savefig(path, dpi=130)
