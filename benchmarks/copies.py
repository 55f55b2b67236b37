"""Tables of very many junctions: the rows of a Parquet table again and again, each copy with ids of its own.

python benchmarks/copies.py five_million.parquet FOLDER --copies 200 --files 40

makes 40 Parquet files of five copies each, on all cores.  Copies are not cheaper to count: hpcvdj reads, counts and
writes every row.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

COLUMNS = ["sequence_id", "v_call", "j_call", "junction"]

GROUP_ROWS = 1 << 20


def write(table: Path, target: Path, copies: Iterable[int]) -> int:
    """Write `copies` of the rows of `table` to `target`, atomically; returns the number of rows."""
    rows = parquet.read_table(table, columns=COLUMNS)
    ids = rows["sequence_id"].cast(pa.string())
    rows = rows.set_column(0, "sequence_id", ids)
    made = target.with_name(f"{target.name}.new")
    written = 0
    with parquet.ParquetWriter(made, rows.schema) as writer:
        for copy in copies:
            named = pc.binary_join_element_wise(ids, f"c{copy}", "_")
            writer.write_table(rows.set_column(0, "sequence_id", named), row_group_size=GROUP_ROWS)
            written += len(rows)
    os.replace(made, target)
    return written


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table", metavar="TABLE.parquet", type=Path, help="junctions, as `hpcvdj simulate` writes them")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="new folder for the files")
    for name, default, text in (
        ("copies", 20, "copies of the rows, over all files"),
        ("files", 1, "files to write; each takes a copy in turn"),
        ("processes", os.cpu_count(), "files written at a time"),
    ):
        parser.add_argument(f"--{name}", metavar="N", type=int, default=default, help=f"{text} (default: {default})")
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    digits = len(str(options.files - 1))
    targets = [options.folder / f"part{number:0{digits}}.parquet" for number in range(options.files)]
    shares = [range(number, options.copies, options.files) for number in range(options.files)]
    with ProcessPoolExecutor(options.processes) as pool:
        written = sum(pool.map(write, [options.table] * options.files, targets, shares))
    print(f"{written:,} rows in {options.files} files of {options.folder}")


if __name__ == "__main__":
    main()
