"""Batches of rows: all values travel as pyarrow record batches of string columns, as in AIRR TSV.

A missing value is the empty string, a boolean is T or F.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.errors import InputError

T = TypeVar("T")
U = TypeVar("U")


def with_columns(batch: pa.RecordBatch, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """`batch` with columns beside its own, in the place of those of the same name."""
    return pa.RecordBatch.from_pydict(dict(zip(batch.schema.names, batch.columns, strict=True)) | columns)


def as_strings(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with every column as AIRR TSV writes it: text, T or F, the empty string for null."""
    return pa.RecordBatch.from_arrays([_as_text(column) for column in batch.columns], names=batch.schema.names)


def _as_text(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = pc.if_else(column, "T", "F")
    if pa.types.is_binary(column.type) or pa.types.is_nested(column.type):
        raise InputError(f"a column of type {column.type} cannot be read as text; drop or convert it")
    text = column.cast(pa.large_string()).fill_null("")
    # Parquet files and tables in memory may hold any bytes as text.
    text.validate(full=True)
    return text


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The items; while one is worked on, another thread makes the next."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, source, end)
        while (item := following.result()) is not end:
            following = thread.submit(next, source, end)
            yield cast(T, item)


def in_threads(work: Callable[[T], U], items: Iterable[T], threads: int = 2) -> Iterator[U]:
    """What `work` makes of the items, in their order; the items are made here, as only this thread may use MPI."""
    with ThreadPoolExecutor(threads) as pool:
        waiting = deque[Future[U]]()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
