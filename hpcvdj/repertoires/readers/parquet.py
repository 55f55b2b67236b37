"""The reader of Parquet."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from typing import Any

import pyarrow as pa

from hpcvdj.errors import InputError
from hpcvdj.public import OnFirstUse
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.readers import reader
from hpcvdj.repertoires.readers.reader import TableReader, first_line
from hpcvdj.storage.ahead import in_threads

pq: Any = OnFirstUse("pyarrow.parquet")

DAMAGE = ValueError, OSError, pa.ArrowException
"""The errors of reading a damaged Parquet file."""

FIRST_ROWS = 1 << 14
"""Rows that say which fields a table has, and whether they are filled."""


class ParquetReader(TableReader):
    """Parquet: columns of any type except binary and nested ones."""

    name = "parquet"
    summary = "columns of any type except binary and nested ones are read as text"
    suffixes = (".parquet",)

    @staticmethod
    def recognises(head: bytes) -> bool:
        return head.startswith(b"PAR1")

    @cached_property
    def _metadata(self) -> Any:
        try:
            return pq.read_metadata(self.path)
        except DAMAGE as error:
            raise InputError(f"{self.path}: not a readable Parquet file ({first_line(error)})") from None

    @cached_property
    def given_columns(self) -> list[str]:
        return list(self._metadata.schema.to_arrow_schema().names)

    @property
    def known_rows(self) -> int:
        return int(self._metadata.num_rows)

    @property
    def group_rows(self) -> int:
        groups = range(self._metadata.num_row_groups)
        return max((self._metadata.row_group(group).num_rows for group in groups), default=1)

    def encoded_batches(self, columns: list[str], encoded: Collection[str]) -> Iterator[pa.RecordBatch]:
        with self._opened(columns, encoded=encoded) as batches_of:
            yield from batches_of(range(self.known_rows))

    def _first_rows(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        with self._opened(list(columns), FIRST_ROWS) as batches_of:
            return next(batches_of(range(min(FIRST_ROWS, self.known_rows))), None)

    def ranges(
        self, columns: Sequence[str], ranges: Iterable[range], encoded: Collection[str] = ()
    ) -> Iterator[tuple[range, Iterable[pa.RecordBatch]]]:
        """As of `TableReader.ranges`.  Only the row groups that have the rows are read, each once."""
        self.require(columns)
        may_be_encoded = self._may_be_encoded(columns, encoded)
        with self._opened(self.translation.sources(columns), encoded=may_be_encoded) as batches_of:
            for rows in ranges:
                yield rows, self._translated(batches_of(rows), columns, rows.start)

    @contextmanager
    def _opened(
        self, columns: list[str], batch_rows: int | None = None, encoded: Collection[str] = ()
    ) -> Iterator[Callable[[range], Iterator[pa.RecordBatch]]]:
        """Yield a function that reads ranges of rows, which ascend.

        Several threads read row groups of at most `batch_rows` rows, by default `BATCH_ROWS`; small ones together.
        Larger groups are read from their beginning, once, and cut every `batch_rows` rows.  So the batches of a range
        do not depend on the ranges before it.
        """
        size = batch_rows or reader.BATCH_ROWS
        schema, groups = self._metadata.schema, self._metadata.num_row_groups
        # A list is at another path.
        encoded = {schema.column(number).path for number in range(len(schema))}.intersection(encoded)
        starts = [0, *accumulate(self._metadata.row_group(group).num_rows for group in range(groups))]
        fewer, group, position = "it has fewer rows than it says", -1, 0
        batches: Iterator[Any] = iter(())
        batch: Any = None

        def given(rows: range) -> Iterator[pa.RecordBatch]:
            nonlocal group, position, batches, batch
            if rows and (first := bisect_right(starts, rows.start) - 1) != group:
                group, position, batch = first, starts[first], None
                batches = file.iter_batches(size, row_groups=list(range(first, groups)), columns=columns)
            try:
                while rows and position < rows.stop:
                    batch = batch or next(batches, None)
                    if batch is None:
                        raise ValueError(fewer)
                    low, high = max(rows.start - position, 0), min(rows.stop - position, batch.num_rows)
                    if low < high:
                        yield batch.slice(low, high - low)
                    if high < batch.num_rows:
                        return
                    position, batch = position + batch.num_rows, None
                if position in starts:
                    # The next range begins with another row group.  The reader of this one uses memory.
                    group, batches = -1, iter(())
            except DAMAGE as error:
                raise self._damaged(error) from None

        def opened() -> Any:
            # By default, pyarrow reads whole row groups, and keeps them in memory until the file is closed.
            return pq.ParquetFile(
                self.path, pre_buffer=False, buffer_size=reader.READ_BYTES, read_dictionary=list(encoded),
                page_checksum_verification=True,
            )  # fmt: skip

        def in_text(batch: pa.RecordBatch) -> pa.RecordBatch:
            try:
                return as_strings(batch, encoded)
            except InputError as error:
                raise InputError(f"{self.path}: {error}") from None
            except DAMAGE as error:
                raise self._damaged(error) from None

        def together(rows: range) -> Iterator[range]:
            """Yield the rows in parts, which end with a row group, or where the rows end."""
            while len(rows) > size:
                end = starts[bisect_right(starts, rows.start + size) - 1]
                yield range(rows.start, end)
                rows = range(end, rows.stop)
            if rows:
                yield rows

        def of_groups(rows: range) -> pa.RecordBatch:
            first, last = bisect_right(starts, rows.start) - 1, bisect_left(starts, rows.stop)
            try:
                with opened() as own:
                    read = own.read_row_groups(list(range(first, last)), columns, use_threads=False)
                if read.num_rows != starts[last] - starts[first]:
                    raise ValueError(fewer)
                (batch,) = read.slice(rows.start - starts[first], len(rows)).combine_chunks().to_batches()
            except DAMAGE as error:
                raise self._damaged(error) from None
            return in_text(batch)

        try:
            file = opened()
        except DAMAGE as error:
            raise self._damaged(error) from None
        with file:
            if self.group_rows <= size:
                yield lambda rows: in_threads(of_groups, together(rows))
            else:
                yield lambda rows: in_threads(in_text, given(rows))

    def _damaged(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: the Parquet file is damaged ({first_line(error)})")
