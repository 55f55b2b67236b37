"""Parquet."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from hpcvdj.errors import InputError
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.readers import reader
from hpcvdj.repertoires.readers.reader import TableReader, first_line

DAMAGE = ValueError, OSError, pa.ArrowException
"""What reading a damaged Parquet file raises."""


class ParquetReader(TableReader):
    """Parquet: columns of any type except binary and nested ones."""

    name = "parquet"
    summary = "columns of any type except binary and nested ones are read as text"
    suffixes = (".parquet",)

    @staticmethod
    def recognises(head: bytes) -> bool:
        return head.startswith(b"PAR1")

    @cached_property
    def _metadata(self) -> pq.FileMetaData:
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

    def given_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        return self._of_row_groups(columns, range(self.known_rows))

    def ranges(self, columns: Sequence[str], ranges: Sequence[range]) -> Iterator[Iterable[pa.RecordBatch]]:
        """Only the row groups that have the rows are read."""
        self.require(columns)
        sources = self._sources(columns)
        return (self._translated(self._of_row_groups(sources, rows), columns, rows.start) for rows in ranges)

    def _of_row_groups(self, columns: list[str], rows: range) -> Iterator[pa.RecordBatch]:
        sizes = [self._metadata.row_group(k).num_rows for k in range(self._metadata.num_row_groups)]
        starts = [0, *accumulate(sizes)]
        groups = [k for k in range(len(sizes)) if starts[k] < rows.stop and starts[k + 1] > rows.start]
        position = starts[groups[0]] if groups else rows.start
        try:
            # By default pyarrow reads a row group at once, and keeps all that it read until the file is closed.
            with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=reader.READ_BYTES) as file:
                for batch in file.iter_batches(reader.BATCH_ROWS, row_groups=groups, columns=columns):
                    low, high = max(rows.start - position, 0), min(rows.stop - position, batch.num_rows)
                    position += batch.num_rows
                    if low < high:
                        yield as_strings(batch.slice(low, high - low).select(columns))
        except DAMAGE as error:
            raise InputError(f"{self.path}: the Parquet file is damaged ({first_line(error)})") from None
