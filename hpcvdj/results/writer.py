"""Write result files."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.table import REPERTOIRE
from hpcvdj.results.attributes import FORMAT, VERSION, declared
from hpcvdj.results.outputs import ComputedRows
from hpcvdj.results.schema import TEXT, as_array, columns, values_of, write_group
from hpcvdj.storage.hdf5 import atomic_hdf5, write_attributes
from hpcvdj.storage.packed import PackedDataset, write_packed

BLOCK_BYTES = 1 << 26
"""Bytes of the blocks in which columns of sequences are written."""


def write_result(
    target: Path, rows: ComputedRows, attributes: dict[str, Any], ranks: Sequence[dict[str, str]], *, overwrite: bool
) -> None:
    """Write a result file of rows and their values.  Errors are those of `atomic_hdf5`.

    attributes  attributes to record besides those of the rows and their quantity
    """
    timings = rows.timings
    with atomic_hdf5(target, overwrite=overwrite) as writer:
        file = writer.file
        write_packed(file, rows.quantity.dataset, rows.values)
        writer.check()
        _write_junctions(file, rows.junctions)
        writer.check()
        of_format = {"format": FORMAT, "format_version": VERSION, **rows.quantity.attributes()}
        write_attributes(file, declared({**of_format, **rows.facts.attributes(), **attributes}))
        write_group(file, "ranks", values_of("ranks", ranks))
        seconds = ("kernel", "reduce", "wall", "rank_kernel", "rank_reduce")
        measured = {f"{name}_seconds": getattr(timings, name) for name in seconds}
        write_group(file, "timings", values_of("timings", timings.units) | measured)
        if rows.inputs.together:
            write_group(file, "tables", values_of("tables", rows.inputs.tables))
        file.flush()
        writer.check()


def _write_junctions(file: h5py.File, junctions: Junctions) -> None:
    rows = len(junctions)
    for column in columns("sequences", junctions):
        width = column.values(junctions, slice(0, 0)).itemsize
        dtype = h5py.string_dtype("utf-8", width) if column.dtype is TEXT else column.dtype
        packed = PackedDataset(file, f"sequences/{column.name}", (rows,), dtype)
        step = max(1, BLOCK_BYTES // np.dtype(dtype).itemsize)
        for first in range(0, rows, step):
            values = column.values(junctions, slice(first, min(rows, first + step)))
            packed.put(values.astype(dtype, copy=False), first)
        packed.close()
    for column in columns("excluded", junctions):
        write_packed(file, f"excluded/{column.name}", as_array(column, column.values(junctions.excluded)))
    pairs = junctions.repertoire.pairs
    calls = {f"{kind}_call": [pair[k].allele for pair in pairs] for k, kind in enumerate("vj")}
    write_group(file, "pairs", {**calls, "offset": junctions.repertoire.offsets})
    if junctions.repertoire_ids is not None:
        names, excluded = junctions.repertoire_ids, Counter(junctions.excluded.repertoire_id)
        counted = np.bincount(junctions.repertoire_of, minlength=len(names)).tolist()
        read = [sequences + excluded[name] for name, sequences in zip(names, counted, strict=True)]
        write_group(file, "repertoires", {REPERTOIRE: names, "rows": read, "sequences": counted})
