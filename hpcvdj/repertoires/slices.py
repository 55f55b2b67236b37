"""Slices of a table of junctions: the rows of one batch each, read by the rank that counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hpcvdj.errors import InputError
from hpcvdj.repertoires.tables import as_strings, is_parquet, open_parquet, read_batches

_READ_ROWS = 1 << 16


def ignore() -> None:
    """Do nothing between batches."""


def watched(batches: Iterable[pa.RecordBatch], between: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    """The batches; `between` is called after each, when the next is asked for."""
    for batch in batches:
        yield batch
        between()


@dataclass(frozen=True)
class Slice:
    """Consecutive data rows of a table, from row `first_row` (0-based), as batches of string columns."""

    index: int
    first_row: int
    batches: Iterable[pa.RecordBatch]


def slices(
    path: Path, columns: Sequence[str], rows: int, mine: Callable[[int], bool], between: Callable[[], None] = ignore
) -> Iterator[Slice]:
    """The slices of `rows` rows whose index is `mine`, in order; `between` is called after each batch that is read.

    Of a Parquet file only their row groups are read; text is read from its beginning, and what is not wanted dropped.
    InputError as `read_batches` raises it.
    """
    if is_parquet(path):
        next(read_batches(path, columns), None)  # its errors: missing columns, no Parquet at all
        with open_parquet(path) as file:
            starts = [0]
            for k in range(file.num_row_groups):
                starts.append(starts[-1] + file.metadata.row_group(k).num_rows)
            for index in range(-(-starts[-1] // rows)):
                if mine(index):
                    first, last = index * rows, min(starts[-1], (index + 1) * rows)
                    batches = _of_row_groups(path, file, starts, list(columns), first, last)
                    yield Slice(index, first, watched(batches, between))
        return
    index, held, size = 0, list[pa.RecordBatch](), 0
    for batch in watched(read_batches(path, columns), between):
        while batch.num_rows:
            taken = batch.slice(0, rows - size)
            batch = batch.slice(taken.num_rows)
            size += taken.num_rows
            if mine(index):
                held.append(taken)
            if size == rows:
                if mine(index):
                    yield Slice(index, index * rows, held)
                index, held, size = index + 1, [], 0
    if size and mine(index):
        yield Slice(index, index * rows, held)


def _of_row_groups(
    path: Path, file: pq.ParquetFile, starts: list[int], columns: list[str], first: int, last: int
) -> Iterator[pa.RecordBatch]:
    """Rows `first` … `last`-1 of a Parquet file whose row groups begin at `starts`."""
    groups = [k for k in range(len(starts) - 1) if starts[k] < last and starts[k + 1] > first]
    place = starts[groups[0]] if groups else first
    try:
        for batch in file.iter_batches(_READ_ROWS, row_groups=groups, columns=columns):
            low, high = max(first - place, 0), min(last - place, batch.num_rows)
            place += batch.num_rows
            if low < high:
                yield as_strings(batch.slice(low, high - low).select(columns))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: the Parquet file is damaged ({str(error).splitlines()[0]})") from None
