"""The tables that a run reads, in files or in memory: one, or several that are counted together; whole, or in slices.

The data rows of tables that are counted together are numbered through, from 0.  A row's repertoire is what the column
`repertoire_id` of its table says, or, without that column, the table's own name.
"""

import hashlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.errors import InputError, few, option
from hpcvdj.repertoires.batches import ahead, with_columns
from hpcvdj.repertoires.formats import BY_HEADER, REASON, Opening
from hpcvdj.repertoires.junctions import REPERTOIRE, Junctions, Reference, read_junctions
from hpcvdj.repertoires.read_counts import READS
from hpcvdj.repertoires.readers import MemoryReader, possible_suffixes, table_suffixes
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.tables import Table, repertoire_name, table_at, table_of
from hpcvdj.repertoires.writers import endings_in_words, is_table
from hpcvdj.storage.inputs import changed, file_digest, require_unchanged

log = logging.getLogger(__name__)


def tables_in(paths: Sequence[Path], opening: Opening = BY_HEADER) -> list[Table]:
    """The tables at `paths`, where a folder means all tables in it; InputError for a folder without tables."""
    return [
        table for path in paths for table in (_tables_in(path, opening) if path.is_dir() else [table_at(path, opening)])
    ]


def _tables_in(folder: Path, opening: Opening) -> list[Table]:
    # A broken link is named when it is read, not left out.
    tables, unknown = [], []
    for path in sorted(path for path in folder.iterdir() if not path.is_dir()):
        table = table_at(path, opening)
        perhaps = path.name.endswith(possible_suffixes()) and not path.name.endswith(table_suffixes())
        if perhaps and path.is_file() and not table.open().recognised:
            unknown.append(table)
        elif path.name.endswith((*table_suffixes(), *possible_suffixes())):
            tables.append(table)
    if not tables:
        raise InputError(f"{folder}: has no table ({', '.join('*' + suffix for suffix in table_suffixes())})")
    near = {table.path: text for table in unknown if (text := table.open().resembles)}
    for path, text in near.items():
        log.warning("%s: %s, left out", path, text)
    if others := [table.path.name for table in unknown if table.path not in near]:
        log.warning("%s: %s: not tables of junctions, left out", folder, few(others))
    return tables


SAMPLED_TABLES = 16
"""Tables of which a sample has rows, at most."""

RESULT_SUFFIXES = (".h5", ".hdf5")


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
) -> list[tuple[Table, Path]]:
    """(table, its output) for each of several repertoires that are computed one after another.

    One file goes to the file `output`; several, or a folder, go to the folder `output`, as NAME and `suffix`.

    tables   those at `paths`
    require  raises InputError unless a file may have that name
    alone    what else to do with several repertoires; by default, take them together

    InputError if two would go to the same file, or if `output` is a file or called like one.
    """
    if len(paths) == 1 and not paths[0].is_dir():
        require(output)
        return [(tables[0], output)]
    alone = alone or f"{option('together', True)} for one result"
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; several repertoires need an output folder, or {alone}")
    if (output.suffix in RESULT_SUFFIXES or is_table(output)) and not output.exists():
        raise InputError(
            f"{output}: the results of several repertoires go to a folder, which should not be named like a file; give "
            f"another name, or {alone}"
        )
    targets: dict[Path, Table] = {}
    for table in tables:
        target = output / f"{repertoire_name(table.path)}{suffix}"
        if target in targets:
            raise InputError(
                f"{table.path}: its result would be {target}, like that of {targets[target].path}; rename one of the "
                "tables"
            )
        targets[target] = table
    return [(table, target) for target, table in targets.items()]


@dataclass(frozen=True)
class Inputs:
    """The tables that a run reads, all in files or all in memory, and how it reads their junctions.

    together  tables are counted together: their rows keep their repertoires
    """

    tables: tuple[Table, ...]
    reading: Reading = field(default_factory=Reading)
    together: bool = False

    @staticmethod
    def of_file(path: Path, reading: Reading | None = None) -> "Inputs":
        """One table."""
        reading = reading or Reading()
        return Inputs((table_at(path, reading.opening),), reading)

    @staticmethod
    def of_table(table: Any, reading: Reading, *, together: bool = False) -> "Inputs":
        """One table in memory, as of `as_arrow`."""
        return Inputs((table_of(table, reading.opening),), reading, together)

    @property
    def in_memory(self) -> bool:
        """Whether the tables are no files: their rows have no ids, and do not change."""
        return any(table.in_memory for table in self.tables)

    @property
    def files(self) -> list[Path]:
        """The table files."""
        return [table.path for table in self.tables if not table.in_memory]

    @property
    def names(self) -> str:
        """Those of the files, for messages about rows; empty in memory."""
        return few([path.name for path in self.files])

    @property
    def path(self) -> Path:
        """The table, or the folder that has all tables, at any depth."""
        if not self.together:
            return self.tables[0].path
        return Path(os.path.commonpath([table.path.resolve().parent for table in self.tables]))

    @property
    def rows(self) -> int:
        """Data rows of all tables, once they are surveyed."""
        return sum(table.rows for table in self.tables)

    @property
    def recorded(self) -> list[list[Any]]:
        """What facts have of the tables: path, SHA-256 and rows."""
        return [[str(table.path), table.sha256, table.rows] for table in self.tables]

    @property
    def repertoires(self) -> list[str]:
        """The repertoires of tables that are counted together."""
        return list(dict.fromkeys(name for table in self.tables for name in table.repertoires))

    @cached_property
    def has_reads(self) -> bool:
        """Whether read counts are read: all tables must have them."""
        return self.reading.reads and all(READS in table.open().columns for table in self.tables)

    @property
    def digest(self) -> str:
        """SHA-256 of the table; together, of lines `SHA256  NAME`."""
        if not self.together:
            return self.tables[0].sha256 or file_digest(self.path, self.tables[0].state)
        lines = "".join(f"{table.sha256}  {table.path.name}\n" for table in self.tables)
        return hashlib.sha256(lines.encode()).hexdigest()

    def require_unchanged(self) -> None:
        """Raise InputError if a file is not what it was when the run began."""
        for table in self.tables:
            if not table.in_memory:
                require_unchanged(table.path, table.state)

    def read(
        self,
        germline: Reference,
        batches: Iterable[pa.RecordBatch] | None = None,
        first_row: int = 0,
        between: Callable[[], None] = lambda: None,
    ) -> Junctions:
        """The junctions of all tables, or of `batches`, whose first row is row `first_row`.

        between  called after each batch

        InputError if files have no data row, or if one is not what it was when the run began.
        """
        known = self.repertoires if self.together and batches is None else []
        everything = (batch for table in self.tables for batch in self.rows_of(table))
        rows = ahead(everything) if batches is None else batches
        junctions = read_junctions(
            _followed(rows, between), germline, self.reading, self.tables, first_row, known if self.together else None
        )
        self.require_unchanged()
        if junctions.rows_read == 0 and not self.in_memory:
            raise InputError(f"{self.path}: no data rows; the table has a header line only")
        return junctions

    def sample(self, reference: Reference, rows: int) -> Junctions:
        """Junctions of at most `rows` rows, whether they are productive or not.

        Of files, the first rows of some, whose names are the repertoires; in memory, rows that are drawn at random.
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
            # What cannot be read is named when all of it is read.
            with suppress(InputError):
                reader = table.open()
                # Without ids, which different tables may have in common.
                columns = [*reading.columns[1:], *[REASON] * reader.explains]
                # Text is read in large blocks, of which few rows are needed.
                head = list(reader.first_batches(columns))
                enough = sum(batch.num_rows for batch in head) >= left
                for batch in head if enough else reader.batches(columns):
                    label = pa.repeat(pa.scalar(table.path.name, pa.string()), batch.num_rows)
                    yield with_columns(batch, {REPERTOIRE: label}).slice(0, left)
                    left -= batch.num_rows
                    if left <= 0:
                        return

        sampled = (batch for table in tables for batch in first_rows(table))
        return read_junctions(sampled, reference, reading, tables, repertoires=())

    def _drawn_rows(self, columns: list[str], rows: int, *, named: bool) -> Iterator[pa.RecordBatch]:
        """Rows of tables in memory, drawn at random from all; `named` by their repertoires."""
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

    def rows_of(self, table: Table) -> Iterator[pa.RecordBatch]:
        """The columns that are read of one table; InputError if it has other rows than were found before."""
        rows = 0
        for batch in table.open().batches(self.columns_of(table)):
            rows += batch.num_rows
            yield self.labelled(batch, table)
        if self.together and rows != table.rows and not table.in_memory:
            raise changed(table.path)

    def columns_of(self, table: Table) -> list[str]:
        """The columns that are read of a table."""
        reader = table.open()
        reader.require(self.reading.columns)
        further = [
            *[REPERTOIRE] * (self.together and names_repertoires(table)),
            *[REASON] * reader.explains, *[READS] * self.has_reads,
        ]  # fmt: skip
        return [*self.reading.columns[int(table.in_memory) :], *further]

    def labelled(self, batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
        """A batch of a table with its repertoires, if tables are counted together."""
        return with_repertoire(batch, table.repertoire_id) if self.together else batch


def read_table(table: Any, reference: Reference, reading: Reading, *, together: bool = False) -> Junctions:
    """The junctions of a table in memory; `together`, each row is of its repertoire_id."""
    return Inputs.of_table(table, reading, together=together).read(reference)


def names_repertoires(table: Table) -> bool:
    """Whether the rows of a table name their repertoires."""
    return not table.of_one and REPERTOIRE in table.open().columns


def with_repertoire(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """`batch` with the column repertoire_id, last if it had none: `name` where it was empty or missing."""
    if REPERTOIRE in batch.schema.names:
        named = batch.column(REPERTOIRE)
        column = pc.if_else(pc.equal(named, ""), pa.scalar(name, named.type), named)
    else:
        column = pa.repeat(pa.scalar(name, pa.string()), batch.num_rows)
    return with_columns(batch, {REPERTOIRE: column})


def columns_of_all(tables: Sequence[Table]) -> list[str]:
    """The columns of tables, in their order, each once; repertoire_id is the last if no table has it."""
    return list(dict.fromkeys([*(name for table in tables for name in table.open().columns), REPERTOIRE]))


def in_columns(tables: Sequence[Table], names: Sequence[str], *, fill: bool = True) -> Iterator[pa.RecordBatch]:
    """The rows of tables in the columns `names`, of which one may be `REASON`, empty where a table lacks one.

    fill  rows that name no repertoire get that of their table
    """
    for table in tables:
        reader = table.open()
        for batch in reader.batches([*reader.columns, *[REASON] * (reader.explains and REASON in names)]):
            yield in_text(with_repertoire(batch, table.repertoire_id) if fill else batch, names)


def in_text(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The columns `names` of a batch, empty where it lacks one.

    All are text of one type, whatever the kind of table: a Parquet file has one schema.
    """
    empty = pa.repeat(pa.scalar("", pa.large_string()), batch.num_rows)
    has = batch.schema.names
    columns = [batch.column(name).cast(pa.large_string()) if name in has else empty for name in names]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def together_of(tables: Sequence[Table], reading: Reading) -> Inputs:
    """Tables to count together; they are not surveyed yet.

    InputError if a table lacks a column, or if a file is named twice, under any path.
    """
    inputs = Inputs(tuple(tables), reading, together=True)
    for table in tables:
        table.open().require(reading.columns)
    require_different_files(inputs.files)
    return inputs


def tables_of(paths: Sequence[Path], reading: Reading) -> Inputs:
    """The tables at `paths` to count together, a folder meaning those in it; as of `together_of`."""
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
    """A table with its digest, rows and repertoires; reads it through unless the file says how many rows it has.

    between  called after each batch
    """
    reader = table.open()
    columns, rows = inputs.columns_of(table), reader.known_rows
    named: Counter[str] = Counter()
    if rows is None or REPERTOIRE in columns:
        # A table that says how many rows it has is read only for the repertoires that they name.
        for batch in _followed(reader.batches(columns if rows is None else [REPERTOIRE]), between):
            for entry in pc.value_counts(with_repertoire(batch, "").column(REPERTOIRE)).to_pylist():
                named[entry["values"]] += entry["counts"]
        rows = named.total()
    elif rows:
        named[""] = rows
    repertoires: Counter[str] = Counter()
    for name, number in named.items():
        repertoires[name or table.repertoire_id] += number
    known = dict(repertoires) or {table.repertoire_id: 0}
    digest = "" if table.in_memory else file_digest(table.path, table.state)
    return replace(table, sha256=digest, rows=rows, unnamed=named[""], repertoires=known)


def numbered(inputs: Inputs, tables: Sequence[Table]) -> Inputs:
    """The inputs with their surveyed tables, one after another, each with its first row.

    InputError if there is no row, or if two tables would be one repertoire only because of their names.
    """
    if not any(table.rows or table.in_memory for table in tables):
        raise InputError(f"{few(str(table.path) for table in tables)}: no data rows in any table")
    if inputs.together:
        _require_different_repertoires(tables)
        _warn(tables)
    first_rows = accumulate((table.rows for table in tables), initial=0)
    placed = tuple(replace(table, first_row=first) for table, first in zip(tables, first_rows, strict=False))
    return replace(inputs, tables=placed)


def _require_different_repertoires(tables: Sequence[Table]) -> None:
    """A repertoire may be spread over several tables, but only if they say so themselves."""
    holders: dict[str, list[Table]] = {}
    for table in tables:
        for name in table.repertoires:
            holders.setdefault(name, []).append(table)
    for table in tables:
        other = next((holder for holder in holders.get(table.repertoire_id, ()) if holder is not table), None)
        if other and (table.unnamed or not table.rows):
            raise InputError(
                f"{table.path}: its repertoire would be called {table.repertoire_id}, like one of {other.path}; rename "
                f"a file, or fill the column {REPERTOIRE} of both"
            )
    spread = sum(len(several) > 1 for several in holders.values())
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
    if same:
        log.warning("tables with the same content: %s", few(same))


def _followed(batches: Iterable[pa.RecordBatch], between: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        between()
