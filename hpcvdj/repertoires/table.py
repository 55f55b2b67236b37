"""Tables that a run reads, in files and in memory."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcvdj.repertoires.formats.format import BY_HEADER, Opening
from hpcvdj.repertoires.readers import MemoryReader, TableReader, open_table, possible_suffixes, table_suffixes
from hpcvdj.storage.inputs import State, file_state

REPERTOIRE = "repertoire_id"
"""AIRR's column for the repertoire of a row."""


@dataclass(frozen=True)
class Table:
    """A table that a run reads, or that a result counts: `rows` rows of the input, from `first_row` on.

    sha256         digest of the file's bytes; empty until it is computed
    repertoire_id  the repertoire of rows that do not name theirs
    unnamed        how many rows do not name their repertoire
    repertoires    rows of each of its repertoires, in the order of the table
    state          the file's state before anything was read
    opening        how it is opened
    part           whether the file is part of a table that hpcvdj wrote as a folder of Parquet files
    of_one         whether `repertoire_id` is the repertoire of all rows, even of rows that name another
    piece          the data rows of the file that are read, from 0; None for all
    readers        its reader, once it is open.  A table is opened once: its copies share the reader
    """

    path: Path
    sha256: str = ""
    repertoire_id: str = ""
    first_row: int = 0
    rows: int = 0
    unnamed: int = 0
    repertoires: dict[str, int] = field(default_factory=dict)
    state: State | None = None
    opening: Opening = BY_HEADER
    part: bool = False
    of_one: bool = False
    piece: range | None = None
    readers: list[TableReader] = field(default_factory=list, repr=False, compare=False)

    def open(self) -> TableReader:
        """The reader of the table; InputError if the file cannot be read."""
        if not self.readers:
            self.readers.append(open_table(self.path, self.opening))
        return self.readers[0]

    @property
    def first_of_file(self) -> int:
        """The number that the first row of the file has in the input."""
        return self.first_row - (0 if self.piece is None else self.piece.start)

    @property
    def surveyed(self) -> bool:
        """Whether the rows and repertoires are known."""
        return bool(self.repertoires)

    @property
    def bytes(self) -> int:
        """The size of the file; 0 for a table in memory, or standard input."""
        return 0 if self.state is None else self.state[2]

    @property
    def in_memory(self) -> bool:
        return bool(self.readers) and isinstance(self.readers[0], MemoryReader)

    def __getstate__(self) -> dict[str, Any]:
        # Other ranks open files themselves.
        return {**vars(self), "readers": self.readers if self.in_memory else []}


def table_of(table: Any, opening: Opening = BY_HEADER, individual: str = "") -> Table:
    """A table in memory, as of `as_arrow`; with `individual`, all rows are of this individual."""
    reader = MemoryReader(table, opening, individual)
    name = individual or str(reader.path)
    return Table(reader.path, repertoire_id=name, opening=opening, of_one=bool(individual), readers=[reader])


def table_at(path: Path, opening: Opening = BY_HEADER) -> Table:
    """The table in a file.  Nothing is read yet."""
    return Table(path, repertoire_id=repertoire_name(path), state=file_state(path), opening=opening)


def repertoire_name(path: Path) -> str:
    """The name of a file without the suffix of a table."""
    suffixes = (*table_suffixes(), *possible_suffixes())
    suffix = next((suffix for suffix in suffixes if path.name.lower().endswith(suffix)), "")
    return path.name[: len(path.name) - len(suffix)] or path.name


def source_of(sources: Sequence[Table], row: int) -> tuple[Table, int]:
    """The table that a row comes from, and the number of the data row in it, from 1."""
    source = sources[bisect_right(sources, row, key=lambda source: source.first_row) - 1]
    return source, row - source.first_of_file + 1
