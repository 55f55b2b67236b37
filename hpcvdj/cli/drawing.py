"""What `hpcvdj simulate` and `hpcvdj generate` do with the rows that they draw."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcvdj.cli import common

if TYPE_CHECKING:
    from hpcvdj.runs.run import Run


def write_drawn(run: "Run", batches: Iterable[Any], output: Path, seed: int, *, overwrite: bool) -> None:
    """Write record batches as a table and print the summary, on root; the other ranks only draw."""
    import pyarrow as pa

    from hpcvdj.repertoires.writers import require_writable_table, write_table

    pairs: Counter[tuple[str, str]] = Counter()

    def counted() -> Iterator[Any]:
        for batch in batches:
            counts = pa.Table.from_batches([batch]).group_by(["v_call", "j_call"]).aggregate([([], "count_all")])
            for row in counts.to_pylist():
                pairs[row["v_call"], row["j_call"]] += row["count_all"]
            yield batch

    run.on_root(lambda: require_writable_table(output, overwrite=overwrite))
    if not run.is_root:
        for _ in batches:
            pass
        return
    number = write_table(output, counted(), overwrite=overwrite)
    common.say(f"junctions  {number:,} over {len(pairs):,} V-J pairs, the largest with {max(pairs.values()):,}")
    common.say(f"seed       {seed}")
    common.say(f"written    {output}")
