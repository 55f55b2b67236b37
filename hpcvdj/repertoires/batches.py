"""Batches of rows: pyarrow record batches of string columns, with values as in AIRR TSV.

A missing value is the empty string, a boolean is T or F.
"""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.recombination.names import MISSING

_TEXTS = (pa.string(), pa.large_string())


def with_columns(batch: pa.RecordBatch, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """A batch with further columns, which replace those of the same name."""
    return pa.RecordBatch.from_pydict(dict(zip(batch.schema.names, batch.columns, strict=True)) | columns)


def as_strings(batch: pa.RecordBatch, encoded: Collection[str] = ()) -> pa.RecordBatch:
    """The batch with all values as AIRR TSV writes them: text, T or F, lists with commas, the empty string for null.

    encoded  columns that are still dictionaries of text afterwards, if they are dictionaries
    """
    columns = [
        _with_texts(column) if name in encoded and pa.types.is_dictionary(column.type) else _as_text(column, name)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def distinct_texts(column: pa.Array) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct texts of a column, in the order of the rows, and the index of each row's text, int32 [rows]."""
    encoded = pc.dictionary_encode(column)
    if len(encoded.dictionary) == 1 and not encoded.null_count:
        return encoded.dictionary.to_pylist(), np.zeros(len(encoded), dtype=np.int32)
    # The dictionary of a file may have texts that these rows do not have, and in any order.
    used = encoded.indices.dictionary_encode()
    texts = encoded.dictionary.take(used.dictionary).to_pylist()
    return texts, used.indices.to_numpy(zero_copy_only=False)


def _with_texts(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """A dictionary with values as of `_as_text`."""
    texts = pa.concat_arrays([_as_text(column.dictionary), pa.array([""], pa.large_string())])
    return pa.DictionaryArray.from_arrays(column.indices.fill_null(len(texts) - 1), texts)


def _as_text(column: pa.Array, name: str = "") -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = pc.if_else(column, "T", "F")
    if isinstance(column, pa.ListArray | pa.LargeListArray) and column.type.value_type in _TEXTS:
        # Not pc.binary_join, to which a list with a missing value is a missing list.
        lists = column.to_pylist()
        column = pa.array([None if texts is None else ",".join(filter(None, texts)) for texts in lists], pa.string())
    if pa.types.is_binary(column.type) or pa.types.is_nested(column.type):
        raise InputError(f"the column {name} is of type {column.type}, no text; convert it, or leave it out")
    text = column.cast(pa.large_string()).fill_null("")
    # Parquet files and tables in memory may hold any bytes as text.
    text.validate(full=True)
    return text


def without_missing(column: pa.Array) -> pa.Array:
    """A column of text in which missing values are empty, however they are written."""
    # Few texts are as short as these words.
    short = column.filter(pc.less_equal(pc.binary_length(column), max(map(len, MISSING))))
    words = pa.array(MISSING, column.type)
    if not len(short) or not pc.any(pc.is_in(short, value_set=words)).as_py():
        return column
    missing = pc.is_in(column, value_set=words)
    return pc.if_else(missing, pa.scalar("", column.type), column)


def by_text(column: pa.Array, function: Callable[[str], str]) -> pa.Array:
    """`function` of each text of a column, as large strings.  It is called once for equal texts."""
    texts, rows = distinct_texts(column)
    return pa.array(list(map(function, texts)), pa.large_string()).take(pa.array(rows))


def numbers_by_text(column: pa.Array, function: Callable[[str], int], dtype: Any = np.int64) -> NDArray[Any]:
    """`function` of each text of a column, `dtype` [rows].  It is called once for equal texts."""
    texts, rows = distinct_texts(column)
    return np.asarray(np.array(list(map(function, texts)), dtype=dtype)[rows])
