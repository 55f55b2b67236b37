"""Ids of rows: their hashes, and the scope in which each must be unique."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.kernels import text
from hpcvdj.repertoires.formats.format import ROW_ID
from hpcvdj.repertoires.table import Table

SCATTER = np.uint64(0x9E3779B97F4A7C15)
"""Factor of the hash of a repertoire and a scope, so that equal ids in different ones do not count as repeated."""

SCOPE_SHIFT = np.uint64(32)
"""Bits of the number of a repertoire, below those of the scope."""


def id_scopes(sources: Sequence[Table], rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The scope within which the id of each row must be unique, uint64 [rows].

    0 is all tables.  Without the AIRR column `sequence_id`, ids are numbers of rows or clones, which begin again in
    each table: the scope is the table.
    """
    scopes = [
        0 if table.open().has_ids or ROW_ID in dict(table.opening.columns) else table.first_of_file + 1
        for table in sources
    ]
    table_of_row = np.searchsorted([table.first_row for table in sources], rows, side="right") - 1
    return np.array(scopes, dtype=np.uint64)[table_of_row]


def text_hashes(texts: pa.Array) -> NDArray[np.uint64]:
    """Hashes of texts, uint64 [rows]."""
    hashes = np.empty(len(texts), dtype=np.uint64)
    offsets, data = text.text_buffers(texts)
    text.hash_rows(offsets[:-1], offsets[1:], data, hashes)
    return hashes


def hashes_of_ids(ids: pa.Array, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hashes of the ids of rows, uint64 [rows].  A missing id is like no other."""
    hashes = text_hashes(ids)
    missing = pc.equal(pc.binary_length(ids), 0).to_numpy(zero_copy_only=False)
    if missing.any():
        hashes[missing] = rows[missing].astype(np.uint64) * SCATTER
    return hashes
