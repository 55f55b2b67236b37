"""Threads per block, the paper's Figure 4: the fastest block size for each n-length."""

from collections.abc import Iterator

from hpcvdj.studies.measuring import PART_NOTE, SAME_PATHWAYS, Measurement, part_mark, seconds
from hpcvdj.studies.pages import Block, Check, Figure, Study
from hpcvdj.studies.tables import grouped, lines, pivot, same


class Blocks(Study):
    """Time by block size and n-length, relative to the fastest size."""

    name = "blocks"
    title = "Threads per block"
    row = Measurement
    notes = f"Median wall seconds and, in brackets, relative to the fastest of the row. {PART_NOTE}"

    def page(self, rows: list[Measurement]) -> Iterator[Block]:
        """Figure 4 and its table."""
        rows = sorted(rows, key=lambda row: (row.m, row.threads_per_block))
        walls = {
            m: {size: seconds(part) for size, part in grouped(of_m, "threads_per_block").items()}
            for m, of_m in grouped(rows, "m").items()
        }

        def relative(repeats: list[Measurement]) -> float:
            return seconds(repeats) / min(walls[repeats[0].m].values())

        first = rows[0]
        yield f"`{first.method}`, {first.sequences:,} sequences, {first.ranks} rank(s) on {first.hardware}."
        complete = [row for row in rows if row.parts == 1]
        yield Check(same(complete, *SAME_PATHWAYS), "totals of complete passes", "block sizes")
        axes = {"xlabel": "n-length", "ylabel": "time / fastest"}
        sizes = sorted(rows, key=lambda row: row.threads_per_block)
        panel = lines(sizes, "threads_per_block", "m", relative), axes
        yield Figure("blocks", "time relative to the fastest block size", [panel], legend="threads per block")
        yield pivot(
            rows, "m", "threads_per_block",
            lambda repeats: f"{seconds(repeats):.4g} ({relative(repeats):.3f}){part_mark(repeats)}", "n-length",
        )  # fmt: skip
