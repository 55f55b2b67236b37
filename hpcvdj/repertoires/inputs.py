"""The tables that a run reads, in files or in memory: one, or several that are counted together.

The data rows of tables that are counted together have consecutive numbers, from 0.  A row's repertoire is its value in
the column `repertoire_id`, or the name of its table if it has none.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.errors import InputError, few, log, option
from hpcvdj.recombination.names import MISSING
from hpcvdj.repertoires.batches import distinct_texts, with_columns
from hpcvdj.repertoires.folders import tables_in
from hpcvdj.repertoires.formats.format import REASON
from hpcvdj.repertoires.junctions import FirstRows, Junctions, Reference, read_junctions
from hpcvdj.repertoires.productive import COLUMN
from hpcvdj.repertoires.read_counts import READS
from hpcvdj.repertoires.readers import MemoryReader
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.table import REPERTOIRE, Table, repertoire_name, table_at, table_of
from hpcvdj.repertoires.writers import endings_in_words, is_table
from hpcvdj.storage.ahead import ahead
from hpcvdj.storage.folders import MARK
from hpcvdj.storage.inputs import changed, file_digest, require_unchanged

SAMPLED_TABLES = 16
"""The largest number of tables of which a sample has rows."""

RESULT_SUFFIXES = (".h5", ".hdf5")


def require_hdf5(output: Path) -> None:
    """Raise InputError unless a result in HDF5 may have the name `output`."""
    if output.suffix not in RESULT_SUFFIXES and not output.is_dir():
        raise InputError(f"{output}: the name must end in .h5")


def require_result(output: Path) -> None:
    """Raise InputError unless a result or a table may have the name `output`."""
    if output.suffix not in RESULT_SUFFIXES and not is_table(output) and not output.is_dir():
        raise InputError(f"{output}: the name must end in .h5 for a result, or in {endings_in_words()} for a table")


def targets_of(
    paths: Sequence[Path],
    tables: Sequence[Table],
    output: Path,
    *,
    suffix: str = ".h5",
    require: Callable[[Path], object] = require_result,
    alone: str = "",
) -> list[tuple[list[Table], Path]]:
    """The output of each repertoire, as (tables, path), if repertoires are computed one after another.

    Only a table that hpcvdj wrote as a folder of Parquet has several tables, its parts.  The output of one file, or of
    such a folder, is the file `output`.  Several of these, or another folder, have outputs in the folder `output`: the
    names of the tables with `suffix`.

    tables   the tables at `paths`
    require  raises InputError unless a file may have the name of the output
    alone    the alternative that messages offer for several repertoires; by default, to count them together

    InputError if two outputs would be the same file, or if `output` exists as a file or is named like one.
    """
    if len(paths) == 1 and is_one(paths[0]):
        require(output)
        return [(repertoires_of(tables)[0], output)]
    alone = alone or f"{option('together', True)} for one result"
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; several repertoires need an output folder, or {alone}")
    if (output.suffix in RESULT_SUFFIXES or is_table(output)) and not output.exists():
        raise InputError(
            f"{output}: the results of several repertoires go to a folder, which should not be named like a file; give "
            f"another name, or {alone}"
        )
    return targets_in(output, tables, suffix)


def targets_in(folder: Path, tables: Sequence[Table], suffix: str) -> list[tuple[list[Table], Path]]:
    """The output of each repertoire, as of `targets_of`, in a folder of outputs.

    InputError if two outputs would be the same file.
    """
    targets: dict[Path, list[Table]] = {}
    for repertoire in repertoires_of(tables):
        first = repertoire[0]
        target = folder / f"{first.repertoire_id if first.part else repertoire_name(first.path)}{suffix}"
        if target in targets:
            raise InputError(
                f"{name_of(repertoire)}: its result would be {target}, like that of {name_of(targets[target])}; rename "
                "one of the tables"
            )
        targets[target] = repertoire
    return [(repertoire, target) for target, repertoire in targets.items()]


def is_one(path: Path) -> bool:
    """Whether a path is one table: a file, or a folder of Parquet that hpcvdj wrote."""
    return not path.is_dir() or (path / MARK).is_file()


def name_of(tables: Sequence[Table]) -> Path:
    """The path of a table, or of the folder whose parts tables are."""
    return tables[0].path.parent if tables[0].part else tables[0].path


def repertoires_of(tables: Sequence[Table]) -> list[list[Table]]:
    """The tables; parts of one folder together."""
    together: list[list[Table]] = []
    for table in tables:
        if together and table.part and name_of(together[-1]) == table.path.parent:
            together[-1].append(table)
        else:
            together.append([table])
    return together


@dataclass(frozen=True)
class Inputs:
    """The tables that a run reads, all in files or all in memory, and how it reads their junctions.

    together  whether tables are counted together: rows then keep their repertoires
    """

    tables: tuple[Table, ...]
    reading: Reading = field(default_factory=Reading)
    together: bool = False

    @staticmethod
    def of_file(path: Path, reading: Reading | None = None) -> "Inputs":
        reading = reading or Reading()
        return Inputs((table_at(path, reading.opening),), reading)

    @staticmethod
    def of_table(table: Any, reading: Reading, *, together: bool = False) -> "Inputs":
        """One table in memory, as of `as_arrow`."""
        return Inputs((table_of(table, reading.opening),), reading, together)

    @property
    def in_memory(self) -> bool:
        """Whether the tables are in memory: their rows have no ids, and do not change."""
        return any(table.in_memory for table in self.tables)

    @property
    def files(self) -> list[Path]:
        """The table files."""
        return [table.path for table in self.tables if not table.in_memory]

    @property
    def names(self) -> str:
        """The names of the files, for messages about rows; empty for tables in memory."""
        return few([path.name for path in self.files])

    @property
    def path(self) -> Path:
        """The path of the table, or the deepest folder that contains all tables."""
        if not self.together:
            return self.tables[0].path
        return Path(os.path.commonpath([table.path.resolve().parent for table in self.tables]))

    @cached_property
    def all_columns(self) -> list[str]:
        """The columns of the table, or those of all tables that are counted together, as of `columns_of_all`."""
        return columns_of_all(self.tables) if self.together else self.tables[0].open().columns

    @property
    def rows(self) -> int:
        """Data rows of all tables; the tables must be surveyed."""
        return sum(table.rows for table in self.tables)

    @property
    def recorded(self) -> list[list[Any]]:
        """Path, SHA-256, rows and name of each table, for facts.  A part of a folder has the name of the folder."""
        return [[str(table.path), table.sha256, table.rows, table.repertoire_id] for table in self.tables]

    @property
    def repertoires(self) -> list[str]:
        """The repertoires of tables that are counted together."""
        return list(dict.fromkeys(name for table in self.tables for name in table.repertoires))

    @cached_property
    def has_reads(self) -> bool:
        """Whether read counts are read, which all tables must have."""
        return self.reading.reads and not self.without_reads

    @cached_property
    def without_reads(self) -> list[str]:
        """The names of the tables without the column of read counts."""
        return [table.path.name for table in self.tables if READS not in table.open().columns]

    @property
    def lacking_reads(self) -> str:
        """Say why reads are not known: which tables lack the column, or that it is empty."""
        if not self.without_reads:
            return f"{few(table.path.name for table in self.tables)}: no row has a {READS}"
        others = len(self.without_reads) < len(self.tables)
        ignored = ", so that the counts of the other tables are not used" * others
        return f"{few(self.without_reads)}: no column {READS}{ignored}"

    @property
    def digest(self) -> str:
        """SHA-256 of the table; for tables that are counted together, of lines `SHA256  NAME`."""
        if not self.together:
            return self.tables[0].sha256 or file_digest(self.path, self.tables[0].state)
        lines = "".join(f"{table.sha256}  {table.path.name}\n" for table in self.tables)
        return hashlib.sha256(lines.encode()).hexdigest()

    def require_unchanged(self) -> None:
        """Raise InputError if a file changed since the run began."""
        for table in self.tables:
            if not table.in_memory:
                require_unchanged(table.path, table.state)

    def read(
        self,
        germline: Reference,
        batches: Iterable[pa.RecordBatch] | None = None,
        first_row: int = 0,
        between: Callable[[], None] = lambda: None,
        first_rows: FirstRows = MappingProxyType({}),
    ) -> Junctions:
        """The junctions of all tables, or of `batches`, whose first row is row `first_row`.

        between     called after each batch
        first_rows  as of `read_junctions`

        InputError if files have no data row, or if a file changed since the run began.
        """
        repertoires: list[str] = []
        if batches is None:
            repertoires = self.repertoires
            batches = ahead(batch for table in self.tables for batch in self.rows_of(table))
        junctions = read_junctions(
            _followed(batches, between), germline, self.reading, self.tables, first_row,
            repertoires if self.together else None, first_rows,
        )  # fmt: skip
        self.require_unchanged()
        if junctions.rows_read == 0 and not self.in_memory:
            raise without_rows(self.path)
        return junctions

    def sample(self, reference: Reference, rows: int) -> Junctions:
        """Junctions of at most `rows` rows, productive or not.

        The sample of files is the first rows of at most `SAMPLED_TABLES` files, whose names are the repertoires.  The
        sample of tables in memory is drawn at random.
        """
        reading = replace(self.reading, productive=None, strict=False)
        if self.in_memory:
            named = any(map(names_repertoires, self.tables)) or len(self.tables) > 1
            batches = self._drawn_rows(reading.columns[1:], rows, named=named)
            return read_junctions(batches, reference, reading, self.tables, repertoires=() if named else None)
        chosen = np.linspace(0, len(self.tables) - 1, min(len(self.tables), SAMPLED_TABLES)).round().astype(int)
        tables = [self.tables[number] for number in chosen.tolist()]

        def first_rows(table: Table) -> Iterator[pa.RecordBatch]:
            left = max(1, rows // len(tables))
            # A table that cannot be read is ignored: reading all of it raises the error later.
            with suppress(InputError):
                reader = table.open()
                # Ids are not read, because different tables may have the same.
                columns = [*reading.columns[1:], *[REASON] * reader.explains]
                # The first rows are often enough, and text is otherwise read in large blocks.
                head = list(reader.first_batches(columns))
                enough = sum(batch.num_rows for batch in head) >= left
                for batch in head if enough else reader.batches(columns):
                    yield with_repertoire(batch, table.path.name).slice(0, left)
                    left -= batch.num_rows
                    if left <= 0:
                        return

        sampled = (batch for table in tables for batch in first_rows(table))
        return read_junctions(sampled, reference, reading, tables, repertoires=())

    def _drawn_rows(self, columns: list[str], rows: int, *, named: bool) -> Iterator[pa.RecordBatch]:
        """Rows of tables in memory, drawn at random from all tables; with their repertoires if they are `named`."""
        sizes = [table.open().known_rows or 0 for table in self.tables]
        chosen = np.arange(sum(sizes))
        if len(chosen) > rows:
            chosen = np.sort(np.random.default_rng(0).permutation(len(chosen))[:rows])
        for table, first, size in zip(self.tables, accumulate(sizes, initial=0), sizes, strict=False):
            reader = table.open()
            assert isinstance(reader, MemoryReader)
            further = [*[REPERTOIRE] * names_repertoires(table), *[REASON] * reader.explains]
            of_table = chosen[(chosen >= first) & (chosen < first + size)] - first
            for batch in reader.taken(of_table, [*columns, *further]):
                yield with_repertoire(batch, table.repertoire_id) if named else batch

    def all_rows(self, between: Callable[[], None]) -> Iterator[pa.RecordBatch]:
        """All rows with `all_columns`; InputError if a file changed since the run began.

        between  called after each batch
        """
        rows = in_columns(self.tables, self.all_columns) if self.together else self.tables[0].open().batches()
        yield from _followed(ahead(rows), between)
        self.require_unchanged()

    def rows_of(self, table: Table) -> Iterator[pa.RecordBatch]:
        """The rows of a table with the columns to read; InputError if the number of rows changed since the survey."""
        rows, columns, encoded = 0, self.columns_of(table), ("v_call", "j_call")
        if table.piece is not None:
            ranges = table.open().ranges(columns, [table.piece], encoded)
            yield from (self.labelled(batch, table) for _, batches in ranges for batch in batches)
            return
        for batch in table.open().batches(columns, encoded):
            rows += batch.num_rows
            yield self.labelled(batch, table)
        if self.together and rows != table.rows and not table.in_memory:
            raise changed(table.path)

    def columns_of(self, table: Table) -> list[str]:
        reader = table.open()
        reader.require(self.reading.columns)
        further = [
            *[REPERTOIRE] * (self.together and names_repertoires(table)),
            *[REASON] * reader.explains, *[READS] * self.has_reads,
            *[COLUMN] * (self.reading.leaves_out_marked and COLUMN in reader.columns),
        ]  # fmt: skip
        return [*self.reading.columns[int(table.in_memory) :], *further]

    def labelled(self, batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
        """A batch of a table with its repertoires, if tables are counted together."""
        return with_repertoire(batch, table.repertoire_id) if self.together else batch


def without_rows(path: Path) -> InputError:
    return InputError(f"{path}: no data rows; the table has names of columns only")


def read_table(table: Any, reference: Reference, reading: Reading) -> Junctions:
    """The junctions of a table in memory."""
    return Inputs.of_table(table, reading).read(reference)


def names_repertoires(table: Table) -> bool:
    """Whether the rows of a table name their repertoires."""
    return not table.of_one and REPERTOIRE in table.open().columns


def with_repertoire(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """A batch with the column repertoire_id, which has `name` where it was missing; a new column is the last."""
    texts, rows = [name], np.zeros(batch.num_rows, dtype=np.int32)
    if REPERTOIRE in batch.schema.names:
        given, rows = distinct_texts(batch.column(REPERTOIRE))
        texts = [name if text in ("", *MISSING) else text for text in given]
    return with_columns(batch, {REPERTOIRE: pa.DictionaryArray.from_arrays(rows, pa.array(texts, pa.large_string()))})


def columns_of_all(tables: Sequence[Table]) -> list[str]:
    """The distinct columns of tables, in their order; repertoire_id is the last if no table has it."""
    return list(dict.fromkeys([*(name for table in tables for name in table.open().columns), REPERTOIRE]))


def in_columns(tables: Sequence[Table], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of tables with the columns `names`, which are empty in a table that lacks them.

    `REASON` may be one of the names.  Rows that name no repertoire get that of their table.
    """
    for table in tables:
        reader = table.open()
        for batch in reader.batches([*reader.columns, *[REASON] * (reader.explains and REASON in names)]):
            yield in_text(with_repertoire(batch, table.repertoire_id), names)


def in_text(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The columns `names` of a batch, empty if it lacks them.

    All columns are large strings, because a Parquet file has one schema for tables of all kinds.
    """
    empty = pa.repeat(pa.scalar("", pa.large_string()), batch.num_rows)
    has = batch.schema.names
    columns = [batch.column(name).cast(pa.large_string()) if name in has else empty for name in names]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def together_of(tables: Sequence[Table], reading: Reading) -> Inputs:
    """Inputs of tables to count together.  They are not surveyed yet.

    InputError if a table lacks a column, or if a file is named twice, under any path.
    """
    inputs = Inputs(tuple(tables), reading, together=True)
    for table in tables:
        table.open().require(reading.columns)
    require_different_files(inputs.files)
    return inputs


def tables_of(paths: Sequence[Path], reading: Reading) -> Inputs:
    """Inputs of the tables at `paths`, as of `tables_in`, to count together, as of `together_of`."""
    return together_of(tables_in(paths, reading.opening), reading)


def require_different_files(paths: Iterable[Path]) -> None:
    """Raise InputError if a file is named twice, under any path."""
    named: dict[tuple[int, int], Path] = {}
    for path in paths:
        facts = path.stat()
        key = facts.st_dev, facts.st_ino
        if key in named:
            again = "is named twice" if named[key] == path else f"is the same file as {named[key]}"
            raise InputError(f"{path}: {again}; name each table once")
        named[key] = path


def survey(inputs: Inputs, table: Table, between: Callable[[], None] = lambda: None) -> Table:
    """A table with its digest, rows and repertoires.  All rows are read unless the file states their number.

    between  called after each batch
    """
    reader = table.open()
    columns, rows = inputs.columns_of(table), reader.known_rows
    named: Counter[str] = Counter()
    if rows is None or REPERTOIRE in columns:
        # Only the repertoires are read if the number of rows is known.
        for batch in _followed(reader.batches(columns if rows is None else [REPERTOIRE]), between):
            for entry in pc.value_counts(with_repertoire(batch, "").column(REPERTOIRE)).to_pylist():
                named[entry["values"]] += entry["counts"]
        rows = named.total()
    elif rows:
        named[""] = rows
    repertoires: Counter[str] = Counter()
    for name, number in named.items():
        repertoires[name or table.repertoire_id] += number
    digest = "" if table.in_memory else file_digest(table.path, table.state)
    of_table = dict(repertoires) or {table.repertoire_id: 0}
    return replace(table, sha256=digest, rows=rows, unnamed=named[""], repertoires=of_table)


def numbered(inputs: Inputs, tables: Sequence[Table]) -> Inputs:
    """The inputs with surveyed tables, each with the number of its first row.

    InputError if no table has rows, or if two tables have the same name and their rows name no repertoire.
    """
    if not any(table.rows or table.in_memory for table in tables):
        raise InputError(f"{few(str(table.path) for table in tables)}: no data rows in any table")
    if inputs.together:
        _require_different_repertoires(tables)
        _warn(tables)
    first_rows = accumulate((table.rows for table in tables), initial=0)
    in_order = tuple(replace(table, first_row=first) for table, first in zip(tables, first_rows, strict=False))
    return replace(inputs, tables=in_order)


def _require_different_repertoires(tables: Sequence[Table]) -> None:
    """Raise InputError if tables share a repertoire that the rows of one of them do not name."""
    holders: dict[str, list[Table]] = {}
    for table in tables:
        for name in table.repertoires:
            holders.setdefault(name, []).append(table)
    for table in tables:
        others = (holder for holder in holders.get(table.repertoire_id, ()) if holder is not table)
        # The parts of one folder share a repertoire.
        other = next((o for o in others if not (o.part and table.part and o.path.parent == table.path.parent)), None)
        if other and (table.unnamed or not table.rows):
            raise InputError(
                f"{table.path}: its repertoire would be called {table.repertoire_id}, like one of {other.path}; rename "
                f"a file, or fill the column {REPERTOIRE} of both"
            )
    spread = sum(len(of_repertoire) > 1 for of_repertoire in holders.values())
    if spread:
        log.info("%s repertoire(s) are spread over several tables", f"{spread:,}")


def _warn(tables: Sequence[Table]) -> None:
    first: dict[str, Path] = {}
    same = []
    for table in tables:
        if not table.rows:
            log.warning("%s: no data rows; repertoire %s is empty", table.path, table.repertoire_id)
        elif table.sha256 and table.sha256 in first:
            same.append(f"{table.path} and {first[table.sha256]}")
        first.setdefault(table.sha256, table.path)
        if 0 < table.unnamed < table.rows:
            log.warning(
                "%s: %s rows have no %s, and are a repertoire of their own, %s; fill it", table.path,
                f"{table.unnamed:,}", REPERTOIRE, table.repertoire_id,
            )  # fmt: skip
    if same:
        log.warning("tables with the same content: %s", few(same))


def _followed(batches: Iterable[pa.RecordBatch], between: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        between()
