"""The methods side by side on one processor, the paper's Table IV."""

import math
from collections.abc import Iterator, Sequence

from hpcvdj.studies.measuring import PART_NOTE, SAME_PATHWAYS, Measurement, part_mark, seconds
from hpcvdj.studies.pages import Block, Check, Figure, Study
from hpcvdj.studies.tables import grouped, lines, listing, number, same

PAPER_MINUTES = {
    "baseline": (8.36, 10.17, 12.57, 15.38, 18.47, 21.73, 25.67, 32.09, 102.03, 426.90, 1755.35),
    "bitwise": (9.16, 9.82, 10.62, 11.40, 11.95, 13.04, 14.17, 16.71, 50.30, 197.24, 798.20),
}
"""Minutes on one P100 for n-lengths 0 … 10 (Table IV)."""


class Methods(Study):
    """Time by method, n-length by n-length."""

    name = "methods"
    title = "Methods"
    row = Measurement
    notes = f"""
    Wall seconds: median of the repeats, without compiling and warm-up. `direct` counts the n-lengths 0 … m at once.
    The paper's minutes are those of its Table IV: one P100, its own data of the same size. {PART_NOTE}
    """

    def page(self, rows: list[Measurement]) -> Iterator[Block]:
        """Table IV, with the paper's minutes."""
        first = rows[0]
        sample = f" (a random sample of {first.of:,})" if first.sequences < first.of else ""
        yield f"{first.sequences:,} sequences{sample}, {first.ranks} rank(s) on {first.hardware}."
        yield Check(same(rows, *SAME_PATHWAYS), "totals", "methods")
        rows = sorted(rows, key=lambda row: row.m)
        axes = {"xlabel": "n-length", "ylabel": "wall seconds", "yscale": "log"}
        yield Figure("methods", "seconds by n-length and method", [(lines(rows, "method", "m", seconds), axes)])
        yield _table(rows)


def _table(rows: list[Measurement]) -> str:
    """A line for each n-length, and one for all of them together."""
    repeats = grouped(rows, "method", "m")
    lengths = list(grouped(rows, "m"))

    def wall(method: str, some: Sequence[int]) -> float:
        # One pass of `direct` counts all n-lengths up to its own.
        keys = [(method, m) for m in (some[-1:] if method == "direct" else some)]
        return sum(seconds(repeats[key]) if key in repeats else math.nan for key in keys)

    def cell(method: str, some: Sequence[int]) -> str:
        mark = part_mark(repeats[method, some[0]]) if len(some) == 1 and (method, some[0]) in repeats else ""
        return number(wall(method, some), ".4g") + mark

    def paper(method: str, some: Sequence[int]) -> float:
        return sum(dict(enumerate(PAPER_MINUTES[method])).get(m, math.nan) for m in some)

    return listing(
        [*([m] for m in lengths), lengths],
        {
            "n-length": lambda some: some[0] if len(some) == 1 else "**all**",
            "baseline, s": lambda some: cell("baseline", some),
            "bitwise, s": lambda some: cell("bitwise", some),
            "baseline / bitwise": lambda some: number(wall("baseline", some) / wall("bitwise", some), ".2f"),
            "direct (0 … m), s": lambda some: cell("direct", some),
            "paper: baseline, min": lambda some: number(paper("baseline", some), ".2f"),
            "paper: bit-wise, min": lambda some: number(paper("bitwise", some), ".2f"),
            "paper: ratio": lambda some: number(paper("baseline", some) / paper("bitwise", some), ".2f"),
        },
    )
