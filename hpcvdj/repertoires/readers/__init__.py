"""Tables: TSV and CSV (plain, gzip or zstd), Parquet, AnnData, and those in memory, read in batches as AIRR fields."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from hpcvdj.errors import InputError, choices
from hpcvdj.repertoires.formats import BY_HEADER, Opening
from hpcvdj.repertoires.readers.cells import AnnDataReader
from hpcvdj.repertoires.readers.memory import MemoryReader, as_arrow
from hpcvdj.repertoires.readers.parquet import ParquetReader
from hpcvdj.repertoires.readers.reader import TableReader
from hpcvdj.repertoires.readers.text import TextReader
from hpcvdj.storage.inputs import require_regular

__all__ = [
    "AnnDataReader",
    "MemoryReader",
    "ParquetReader",
    "TableReader",
    "TextReader",
    "as_arrow",
    "open_table",
    "possible_suffixes",
    "read_batches",
    "table_suffixes",
]

_HEAD_BYTES = 1 << 16


def open_table(path: Path | str, opening: Opening = BY_HEADER) -> TableReader:
    """The reader of a table file; InputError if the file cannot be read."""
    path = Path(path)
    head = _head(path)
    kind = next((kind for kind in choices(TableReader).values() if kind.recognises(head)), TextReader)
    return kind(path, opening)


def table_suffixes() -> tuple[str, ...]:
    """How a folder's tables are distinguished from its other files."""
    return tuple(suffix for kind in choices(TableReader).values() for suffix in kind.suffixes)


def possible_suffixes() -> tuple[str, ...]:
    """Those of a folder's files that may be tables, or something else."""
    return tuple(suffix for kind in choices(TableReader).values() for suffix in kind.perhaps)


def read_batches(
    path: Path | str, columns: Sequence[str] | None = None, opening: Opening = BY_HEADER
) -> Iterator[pa.RecordBatch]:
    """The rows of a table file: `open_table` and `TableReader.batches`."""
    return open_table(path, opening).batches(columns)


def _head(path: Path) -> bytes:
    require_regular(path, "file", "name a text table (plain, gzip or zstd) or Parquet")
    try:
        with open(path, "rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
