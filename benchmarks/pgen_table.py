"""A Parquet table of junctions drawn from a model, for whole commands.

python benchmarks/pgen_table.py human_trb junctions.parquet --rows 10000000

Columns are those of an AIRR table that hpcvdj reads: sequence_id, v_call, j_call, junction.  The rows are in random
order.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from pgen_gpu import junctions

from hpcvdj.recombination.alphabet import BASES, unpack
from hpcvdj.recombination.igor import load_model

GROUP_ROWS = 1 << 20


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="name or folder of a model with D genes")
    parser.add_argument("table", type=Path, help="Parquet file to write")
    parser.add_argument("--rows", type=int, default=10_000_000, help="junctions")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draws and of the order")
    options = parser.parse_args()
    model = load_model(options.model)
    drawn = junctions(model, options.rows, options.seed)
    pair = np.repeat(np.arange(len(drawn.pairs)), np.diff(drawn.offsets))
    order = np.random.default_rng(options.seed).permutation(len(drawn))
    names = [
        np.array([model.templates(segment)[own[side].places[0]].allele for own in drawn.pairs])
        for side, segment in enumerate("VJ")
    ]
    letters = np.frombuffer(BASES.encode(), dtype=np.uint8)
    with parquet.ParquetWriter(options.table, pa.schema([(name, pa.string()) for name in COLUMNS])) as writer:
        for begin in range(0, len(order), GROUP_ROWS):
            rows = order[begin : begin + GROUP_ROWS]
            texts = [letters[unpack(drawn.words[row], int(drawn.lengths[row]))].tobytes().decode() for row in rows]
            columns = [
                pa.array([f"s{row}" for row in rows.tolist()]),
                *(pa.array(own[pair[rows]].tolist()) for own in names),
                pa.array(texts),
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, names=list(COLUMNS)))


COLUMNS = ("sequence_id", "v_call", "j_call", "junction")


if __name__ == "__main__":
    main()
