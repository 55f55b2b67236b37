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
from numpy.typing import NDArray
from pgen_gpu import junctions

from hpcvdj.recombination.alphabet import BASES, BASES_PER_WORD
from hpcvdj.recombination.igor import load_model

GROUP_ROWS = 1 << 20


def texts(words: NDArray[np.uint64], lengths: NDArray[np.uint8]) -> pa.Array:
    """The letters of packed sequences."""
    shifts = np.arange(2 * BASES_PER_WORD - 2, -1, -2, dtype=np.uint64)
    codes = (words[:, :, None] >> shifts & np.uint64(3)).reshape(len(words), -1)
    letters = np.frombuffer(BASES.encode(), dtype=np.uint8)[codes][np.arange(codes.shape[1]) < lengths[:, None]]
    ends = np.concatenate(([0], np.cumsum(lengths, dtype=np.int32))).astype(np.int32)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(letters))


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
    with parquet.ParquetWriter(options.table, pa.schema([(name, pa.string()) for name in COLUMNS])) as writer:
        for begin in range(0, len(order), GROUP_ROWS):
            rows = order[begin : begin + GROUP_ROWS]
            columns = [
                pa.array([f"s{row}" for row in rows.tolist()]),
                *(pa.array(own[pair[rows]].tolist()) for own in names),
                texts(drawn.words[rows], drawn.lengths[rows]),
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, names=list(COLUMNS)))


COLUMNS = ("sequence_id", "v_call", "j_call", "junction")


if __name__ == "__main__":
    main()
