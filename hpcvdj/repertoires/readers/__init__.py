"""Readers of tables as AIRR fields: TSV and CSV (plain, gzip or zstd), Parquet, AnnData, tables in memory."""

from pathlib import Path

from hpcvdj.errors import InputError, choices
from hpcvdj.repertoires.formats.format import BY_HEADER, Opening
from hpcvdj.repertoires.readers.cells import AnnDataReader as AnnDataReader
from hpcvdj.repertoires.readers.memory import MemoryReader as MemoryReader
from hpcvdj.repertoires.readers.memory import as_arrow as as_arrow
from hpcvdj.repertoires.readers.parquet import ParquetReader as ParquetReader
from hpcvdj.repertoires.readers.reader import TableReader as TableReader
from hpcvdj.repertoires.readers.text import TextReader as TextReader
from hpcvdj.storage.inputs import require_regular


def open_table(path: Path | str, opening: Opening = BY_HEADER) -> TableReader:
    """The reader of a table file; InputError if the file cannot be read."""
    path = Path(path)
    if path.is_dir() and any(path.glob("*.parquet")):
        raise InputError(
            f"{path}: is a folder; give the table that pandas.read_parquet makes of it, or name a file in it"
        )
    require_regular(path, "file", "name a text table (plain, gzip or zstd) or Parquet")
    try:
        with open(path, "rb") as stream:
            head = stream.read(1 << 16)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    kind = next((kind for kind in choices(TableReader).values() if kind.recognises(head)), TextReader)
    return kind(path, opening)


def table_suffixes() -> tuple[str, ...]:
    """The suffixes of files in a folder that are tables."""
    return tuple(suffix for kind in choices(TableReader).values() for suffix in kind.suffixes)


def possible_suffixes() -> tuple[str, ...]:
    """The suffixes of files in a folder that may be tables."""
    return tuple(suffix for kind in choices(TableReader).values() for suffix in kind.perhaps)
