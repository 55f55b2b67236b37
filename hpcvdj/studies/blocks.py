"""Threads per block, the paper's Figure 4: which block size is fastest for each n-length."""

from __future__ import annotations

from pathlib import Path

from hpcvdj.plotting import pyplot
from hpcvdj.studies.measuring import Measurement, Point, commands, points, read, totals_identical

PAPER_SIZES = (32, 64, 128, 256)
"""Threads per block in Figure 4."""


def render(folder: Path) -> str:
    """Make README.md and blocks.png of a study from its raw rows; returns the Markdown."""
    rows, facts = read(folder, Measurement)
    whole = [row for row in rows if row.parts == 1]
    found = points(rows, "m", "threads_per_block")
    sizes = sorted({row.threads_per_block for row in rows})
    same = "identical" if totals_identical(whole) else "DIFFERENT"
    text = "\n\n".join(
        [
            f"# Threads per block\n\n`{rows[0].method}` on {rows[0].hardware}, {rows[0].sequences:,} sequences, "
            f"{rows[0].ranks} rank(s). Made from the raw rows by `hpcvdj study render`.",
            f"Totals of the whole passes: **{same}** for all block sizes.",
            "![time relative to the fastest block size](blocks.png)",
            _table(found, sizes),
            "Median wall seconds and, in brackets, relative to the fastest of the row (the paper's Figure 4).\n"
            "† measured on the first 1/N block range of the n-nucleotide strings and multiplied by N.",
            commands(facts),
        ]
    )
    _plot(found, sizes, folder / "blocks.png")
    (folder / "README.md").write_text(text + "\n")
    return text


def _fastest(found: dict[tuple[int, int], Point], m: int) -> float:
    return min(point.wall for (length, _), point in found.items() if length == m)


def _table(found: dict[tuple[int, int], Point], sizes: list[int]) -> str:
    lines = ["| n-length | " + " | ".join(map(str, sizes)) + " |", "|---" * (len(sizes) + 1) + "|"]
    for m in sorted({m for m, _ in found}):
        best = _fastest(found, m)
        cells = []
        for size in sizes:
            point = found.get((m, size))
            mark = f" †1/{point.parts}" if point and point.parts > 1 else ""
            cells.append(f"{point.wall:.4g} ({point.wall / best:.3f}){mark}" if point else "-")
        lines.append(f"| {m} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _plot(found: dict[tuple[int, int], Point], sizes: list[int], path: Path) -> None:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
    width = 0.8 / len(sizes)
    for k, size in enumerate(sizes):
        lengths = [m for m, s in found if s == size]
        heights = [found[m, size].wall / _fastest(found, m) for m in lengths]
        places = [m + (k - (len(sizes) - 1) / 2) * width for m in lengths]
        axes.bar(places, heights, width, label=f"{size} threads", color=plt.get_cmap("viridis")(k / len(sizes)))
    axes.set(xlabel="n-length", ylabel="time / fastest", xticks=sorted({m for m, _ in found}))
    axes.axhline(1, color="0.6", linewidth=0.8, zorder=0)
    axes.legend(frameon=False, ncols=len(sizes), loc="upper center", bbox_to_anchor=(0.5, 1.14))
    figure.savefig(path, dpi=130)
