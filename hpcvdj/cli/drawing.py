"""The common part of `hpcvdj simulate` and `hpcvdj generate`: how they write the rows that they draw."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcvdj.cli import common

if TYPE_CHECKING:
    from hpcvdj.runs.run import Run


def write_drawn(run: "Run", batches: Iterable[Any], output: Path, seed: int, *, overwrite: bool) -> None:
    """Write record batches as a table and print the summary, on root.  The other ranks only draw."""
    from hpcvdj.generation.generate import pairs_of
    from hpcvdj.repertoires.writers import require_writable_table, write_table

    pairs: Counter[tuple[str, str]] = Counter()

    def counted() -> Iterator[Any]:
        for batch in batches:
            pairs.update(pairs_of(batch))
            yield batch

    run.on_root(lambda: require_writable_table(output, overwrite=overwrite))
    if not run.is_root:
        for _ in batches:
            pass
        return
    write_table(output, counted(), overwrite=overwrite)
    report_drawn(pairs, output, seed)


def report_drawn(pairs: Counter[tuple[str, str]], output: Path, seed: int) -> None:
    """Print the summary of drawn rows; `pairs` counts their V and J calls."""
    common.say(f"junctions  {pairs.total():,} over {len(pairs):,} V-J pairs, the largest with {max(pairs.values()):,}")
    common.say(f"seed       {seed}")
    common.say(f"written    {output}")
