"""Tables in and out: those that a run reads, in files or in memory, and those that are written."""

import gzip
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hpcvdj.errors import InputError
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.formats import BY_HEADER, Opening
from hpcvdj.repertoires.readers import MemoryReader, TableReader, open_table, possible_suffixes, reader, table_suffixes
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.inputs import State, file_state


@dataclass(frozen=True)
class Table:
    """One of the tables that a run reads, or that a result counts: `rows` rows of the input, from `first_row` on.

    sha256         digest of the file's bytes; empty until it is known
    repertoire_id  the repertoire of rows that do not name theirs
    unnamed        how many rows do not
    repertoires    rows of each of its repertoires, in the order of the table
    state          the file's state before anything was read
    opening        how it is opened
    of_one         its name is the repertoire of all its rows, whatever they say themselves
    readers        its reader, once it is open: a table is opened once, and what is made of it shares the reader
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
    of_one: bool = False
    readers: list[TableReader] = field(default_factory=list, repr=False, compare=False)

    def open(self) -> TableReader:
        """Its reader; InputError if the file cannot be read."""
        if not self.readers:
            self.readers.append(open_table(self.path, self.opening))
        return self.readers[0]

    @property
    def in_memory(self) -> bool:
        """Whether it is no file."""
        return bool(self.readers) and isinstance(self.readers[0], MemoryReader)

    def __getstate__(self) -> dict[str, Any]:
        # Other ranks open files themselves.
        return {**vars(self), "readers": self.readers if self.in_memory else []}


def table_of(table: Any, opening: Opening = BY_HEADER, individual: str = "") -> Table:
    """A table in memory, as of `as_arrow`; all of one `individual`, if that is given."""
    reader = MemoryReader(table, opening, individual)
    name = individual or str(reader.path)
    return Table(reader.path, repertoire_id=name, opening=opening, of_one=bool(individual), readers=[reader])


def table_at(path: Path, opening: Opening = BY_HEADER) -> Table:
    """The table in a file, of which nothing was read yet."""
    return Table(path, repertoire_id=repertoire_name(path), state=file_state(path), opening=opening)


def repertoire_name(path: Path) -> str:
    """A repertoire's file name without the suffix of a table."""
    name = path.name
    suffixes = (*table_suffixes(), *possible_suffixes())
    return next((name.removesuffix(suffix) for suffix in suffixes if name.endswith(suffix)), name) or name


def write_table(target: Path, batches: Iterable[pa.RecordBatch], *, overwrite: bool) -> int:
    """Write batches of one schema as an AIRR table, by the suffix of its name; returns the number of rows.

    InputError for another suffix, and as `atomic_path` raises it.
    """
    suffix = table_suffix(target)
    with atomic_path(target, overwrite=overwrite) as temporary:
        return fill_table(temporary, suffix, batches)


def fill_table(path: Path, suffix: str, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches of one schema to a file as a table of a suffix of `table_suffix`; returns the number of rows."""
    rows = 0
    parquet: pq.ParquetWriter | None = None
    schema: pa.Schema | None = None
    with ExitStack() as stack:
        stream: Any = stack.enter_context(open(path, "wb"))
        if suffix == ".gz":
            stream = stack.enter_context(gzip.GzipFile("", "wb", 6, stream, mtime=0))
        for number, batch in enumerate(batches):
            rows += batch.num_rows
            if suffix == ".parquet":
                # Rows tell which columns are dictionaries; a table without any has its columns from an empty batch.
                schema = batch.schema
                if batch.num_rows:
                    parquet = parquet or stack.enter_context(
                        pq.ParquetWriter(stream, schema, use_dictionary=_repetitive(batch))
                    )
                    parquet.write_batch(batch)
                continue
            if number == 0:
                stream.write("\t".join(batch.schema.names).encode() + b"\n")
            if batch.num_rows:
                stream.write(_lines(as_strings(batch)))
        if suffix == ".parquet" and parquet is None and schema is not None:
            stack.enter_context(pq.ParquetWriter(stream, schema))
    return rows


def _repetitive(batch: pa.RecordBatch) -> list[str]:
    """Columns with few different values in the first rows; for others, making a dictionary takes time for nothing."""
    first = batch.slice(0, reader.BATCH_ROWS)
    named = zip(first.schema.names, first.columns, strict=True)
    return [name for name, column in named if pc.count_distinct(column).as_py() <= first.num_rows // 4]


def _lines(batch: pa.RecordBatch) -> memoryview:
    """The lines of a batch of text; InputError for a value that has a tab or a line end."""
    # pyarrow.csv cannot write a quote character unquoted, as AIRR TSV does; joined columns are the file's bytes.
    joined = pc.binary_join_element_wise(*batch.columns, pa.scalar("\t", pa.large_string()))
    ended = pc.binary_join_element_wise(joined, *[pa.scalar(text, pa.large_string()) for text in ("", "\n")])
    lines = memoryview(ended.buffers()[2])
    values = np.frombuffer(lines, np.uint8)
    separators = [np.count_nonzero(values == byte) for byte in b"\t\n\r"]
    if separators != [(batch.num_columns - 1) * batch.num_rows, batch.num_rows, 0]:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if pc.any(pc.match_substring_regex(column, "[\t\n\r]")).as_py():
                raise InputError(f"a {name} has a tab or a line end, which a TSV cannot hold; write .parquet")
    return lines


def is_table(path: Path) -> bool:
    """Whether a file is called like a table that can be written."""
    return path.name.lower().endswith((".tsv", ".tsv.gz", ".parquet"))


def table_suffix(path: Path) -> str:
    """`.tsv`, `.gz` or `.parquet`; InputError for another suffix."""
    name = path.name.lower()
    for ending, suffix in ((".tsv.gz", ".gz"), (".tsv", ".tsv"), (".parquet", ".parquet")):
        if name.endswith(ending):
            return suffix
    raise InputError(f"{path}: the name must end in .tsv, .tsv.gz or .parquet")
