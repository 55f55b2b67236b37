"""Tables of very many junctions: the rows of a Parquet table again and again, each copy with ids of its own.

python benchmarks/copies.py five_million.parquet FOLDER --copies 200 --files 40

makes 40 Parquet files of five copies each, on all cores.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet


def write(table: Path, target: Path, copies: range) -> int:
    """Write `copies` of the rows of `table` to `target`; returns the number of rows."""
    rows = parquet.read_table(table, columns=["sequence_id", "v_call", "j_call", "junction"])
    ids = rows["sequence_id"].cast(pa.string())
    with parquet.ParquetWriter(target, rows.schema.set(0, pa.field("sequence_id", pa.string()))) as writer:
        for copy in copies:
            named = pc.binary_join_element_wise(ids, f"c{copy}", "_")
            writer.write_table(rows.set_column(0, "sequence_id", named), row_group_size=1 << 20)
    return len(rows) * len(copies)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="junctions, as `hpcvdj generate` writes them in Parquet")
    parser.add_argument("folder", type=Path, help="new folder for the files")
    parser.add_argument("--copies", type=int, default=20, help="copies of the rows, over all files")
    parser.add_argument("--files", type=int, default=1, help="files to write; each takes a copy in turn")
    parser.add_argument("--processes", type=int, help="files written at a time; by default, as many as there are cores")
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    targets = [options.folder / f"part{number:04}.parquet" for number in range(options.files)]
    shares = [range(number, options.copies, options.files) for number in range(options.files)]
    with ProcessPoolExecutor(options.processes) as pool:
        print(f"{sum(pool.map(write, [options.table] * options.files, targets, shares)):,} rows in {options.folder}")
