"""The methods beside each other on the same processor, the paper's Table IV."""

from __future__ import annotations

from pathlib import Path

from hpcvdj.plotting import pyplot
from hpcvdj.studies.measuring import Measurement, Point, commands, points, read, totals_identical

PAPER_MINUTES = {
    0: (8.36, 9.16),
    1: (10.17, 9.82),
    2: (12.57, 10.62),
    3: (15.38, 11.40),
    4: (18.47, 11.95),
    5: (21.73, 13.04),
    6: (25.67, 14.17),
    7: (32.09, 16.71),
    8: (102.03, 50.30),
    9: (426.90, 197.24),
    10: (1755.35, 798.20),
}
"""Minutes on one P100, baseline and bit-wise, by n-length (Table IV)."""

ORDER = ("baseline", "bitwise", "direct")


def render(folder: Path) -> str:
    """Make README.md and methods.png of a study from its raw rows; returns the Markdown."""
    rows, facts = read(folder, Measurement)
    found = points(rows, "method", "m")
    hardware = ", ".join(sorted({row.hardware for row in rows}))
    same = "counters' totals identical for all methods" if totals_identical(rows) else "TOTALS DIFFER between methods"
    first = rows[0]
    whole = first.sequences == first.of
    text = "\n\n".join(
        [
            f"# Methods\n\nOn {hardware}, {first.sequences:,} sequences"
            + ("" if whole else f" (a random sample of {first.of:,})")
            + f", {first.ranks} rank(s). Made from the raw rows by `hpcvdj study render`.",
            f"**{same}**",
            "![seconds by n-length and method](methods.png)",
            _table(found),
            "Wall seconds: median of the repeats, compiling and warm-up apart. † measured on the first 1/N block\n"
            "range of the n-nucleotide strings and multiplied by N. `direct` counts the n-lengths 0 … m at once.\n"
            "The paper's minutes are those of its Table IV: one P100, its own data of the same size.",
            commands(facts),
        ]
    )
    _plot(found, folder / "methods.png")
    (folder / "README.md").write_text(text + "\n")
    return text


def _table(found: dict[tuple[str, int], Point]) -> str:
    lengths = sorted({m for _, m in found})
    lines = [
        "| n-length | baseline, s | bit-wise, s | baseline / bit-wise | direct (0 … m), s | paper: baseline, min "
        "| paper: bit-wise, min | paper: ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for m in lengths:
        baseline, bitwise, direct = (found.get((method, m)) for method in ORDER)
        ratio = f"{baseline.wall / bitwise.wall:.2f}" if baseline and bitwise else "-"
        paper = PAPER_MINUTES.get(m)
        printed = f"{paper[0]} | {paper[1]} | {paper[0] / paper[1]:.2f}" if paper else "- | - | -"
        lines.append(f"| {m} | {_cell(baseline)} | {_cell(bitwise)} | {ratio} | {_cell(direct)} | {printed} |")
    return "\n".join([*lines, _totals(found, lengths)])


def _cell(point: Point | None) -> str:
    if point is None:
        return "-"
    return f"{point.wall:.4g}" + (f" †1/{point.parts}" if point.parts > 1 else "")


def _totals(found: dict[tuple[str, int], Point], lengths: list[int]) -> str:
    """The last line: sums over the n-lengths, where a method has them all; `direct` has them in its last row."""
    sums = [
        sum(found[method, m].wall for m in lengths) if all((method, m) in found for m in lengths) else None
        for method in ORDER[:2]
    ]
    cells = [f"{total:.4g}" if total is not None else "-" for total in sums]
    ratio = f"{sums[0] / sums[1]:.2f}" if sums[0] and sums[1] else "-"
    last = _cell(found.get(("direct", lengths[-1])))
    paper = [sum(PAPER_MINUTES[m][k] for m in lengths if m in PAPER_MINUTES) for k in (0, 1)]
    printed = f"{paper[0]:.2f} | {paper[1]:.2f} | {paper[0] / paper[1]:.2f}" if all(paper) else "- | - | -"
    return f"| **all** | {cells[0]} | {cells[1]} | {ratio} | {last} | {printed} |"


def _plot(found: dict[tuple[str, int], Point], path: Path) -> None:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for method, colour in zip(ORDER, ("tab:red", "tab:blue", "tab:green"), strict=True):
        lengths = [m for name, m in found if name == method]
        if lengths:
            walls = [found[method, m].wall for m in lengths]
            axes.plot(lengths, walls, marker="o", color=colour, label=method)
            hollow = [m for m in lengths if found[method, m].parts > 1]
            axes.plot(hollow, [found[method, m].wall for m in hollow], "o", color=colour, markerfacecolor="white")
    axes.set(xlabel="n-length", ylabel="wall seconds", yscale="log")
    axes.legend(frameon=False, title="hollow: measured in part, scaled")
    figure.savefig(path, dpi=130)
