"""The tables that a run reads: one, or several that are counted together; whole, or in slices.

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
from hpcvdj.repertoires.readers import TableReader, open_table, possible_suffixes, table_suffixes
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.tables import Table, repertoire_name, table_at
from hpcvdj.repertoires.writers import endings_in_words, is_table
from hpcvdj.storage.inputs import changed, file_digest, require_unchanged

log = logging.getLogger(__name__)


def files_of(paths: Sequence[Path], opening: Opening = BY_HEADER, *, warn: bool = True) -> list[Path]:
    """The files at `paths`, where a folder means all tables in it; InputError for a folder without tables.

    warn  of files in a folder that may be tables by their names, and are none
    """
    return [file for path in paths for file in (_tables_in(path, opening, warn=warn) if path.is_dir() else [path])]


def _tables_in(folder: Path, opening: Opening, *, warn: bool) -> list[Path]:
    # A broken link is named when it is read, not left out.
    named = sorted(path for path in folder.iterdir() if not path.is_dir())
    certain = [path for path in named if path.name.endswith(table_suffixes())]
    perhaps = [path for path in named if path.name.endswith(possible_suffixes())]
    others = [path for path in perhaps if path.is_file() and not open_table(path, opening).recognised]
    files = sorted({*certain, *perhaps} - {*others})
    near = {path: text for path in others if (text := open_table(path, opening).resembles)}
    if files and warn:
        for path, text in near.items():
            log.warning("%s: %s, left out", path, text)
        if unknown := [path.name for path in others if path not in near]:
            log.warning("%s: %s: not tables of junctions, left out", folder, few(unknown))
    if not files:
        raise InputError(f"{folder}: has no table ({', '.join('*' + suffix for suffix in table_suffixes())})")
    return files


SAMPLED_TABLES = 16
"""Tables of which a sample has rows, at most."""

RESULT_SUFFIXES = (".h5", ".hdf5")


def require_result(output: Path) -> None:
    """Raise InputError unless a result or a table may have the name `output`."""
    if output.suffix not in RESULT_SUFFIXES and not is_table(output) and not output.is_dir():
        raise InputError(f"{output}: the name must end in .h5 for a result, or in {endings_in_words()} for a table")


def targets_of(
    paths: Sequence[Path],
    output: Path,
    opening: Opening = BY_HEADER,
    *,
    suffix: str = ".h5",
    require: Callable[[Path], object] = require_result,
    alone: str = "",
) -> list[tuple[Path, Path]]:
    """(table, its output) for each of several repertoires that are computed one after another.

    One file goes to the file `output`; several, or a folder, go to the folder `output`, as NAME and `suffix`.

    require  raises InputError unless a file may have that name
    alone    what else to do with several repertoires; by default, take them together

    InputError if two would go to the same file, or if `output` is a file or called like one.
    """
    if len(paths) == 1 and not paths[0].is_dir():
        require(output)
        return [(paths[0], output)]
    alone = alone or f"{option('together', True)} for one result"
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; several repertoires need an output folder, or {alone}")
    if (output.suffix in RESULT_SUFFIXES or is_table(output)) and not output.exists():
        raise InputError(
            f"{output}: the results of several repertoires go to a folder, which should not be named like a file; give "
            f"another name, or {alone}"
        )
    targets: dict[Path, Path] = {}
    for file in files_of(paths, opening):
        target = output / f"{repertoire_name(file)}{suffix}"
        if target in targets:
            raise InputError(
                f"{file}: its result would be {target}, like that of {targets[target]}; rename one of the tables"
            )
        targets[target] = file
    return [(file, target) for target, file in targets.items()]


@dataclass(frozen=True)
class Inputs:
    """The tables that a run reads, and how it reads their junctions.

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

    @property
    def files(self) -> list[Path]:
        """The table files."""
        return [table.path for table in self.tables]

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
        """Raise InputError if a table is not what it was when the run began."""
        for table in self.tables:
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

        InputError if there is no data row, or if a table is not what it was when the run began.
        """
        known = self.repertoires if self.together and batches is None else []
        own = (batch for table in self.tables for batch in self.rows_of(table))
        rows = ahead(own) if batches is None else batches
        junctions = read_junctions(
            _followed(rows, between), germline, self.reading, self.tables, first_row, known if self.together else None
        )
        self.require_unchanged()
        if junctions.rows_read == 0:
            raise InputError(f"{self.path}: no data rows; the table has a header line only")
        return junctions

    def sample(self, reference: Reference, rows: int) -> Junctions:
        """Junctions of the first rows of some tables, at most `rows` in all, whether they are productive or not.

        Their repertoires are the names of the tables.
        """
        places = np.linspace(0, len(self.tables) - 1, min(len(self.tables), SAMPLED_TABLES)).round().astype(int)
        tables = [self.tables[place] for place in places.tolist()]
        reading = replace(self.reading, productive=None, strict=False)

        def first_rows(table: Table) -> Iterator[pa.RecordBatch]:
            left = max(1, rows // len(tables))
            # What cannot be read is named when all of it is read.
            with suppress(InputError):
                reader = table.open()
                # Without ids, which different tables may have in common.
                columns = [*reading.columns[1:], *[REASON] * reader.explains]
                for batch in reader.batches(columns):
                    label = pa.repeat(pa.scalar(table.path.name, pa.string()), batch.num_rows)
                    yield with_columns(batch, {REPERTOIRE: label}).slice(0, left)
                    left -= batch.num_rows
                    if left <= 0:
                        return

        batches = (batch for table in tables for batch in first_rows(table))
        return read_junctions(batches, reference, reading, tables, repertoires=())

    def rows_of(self, table: Table) -> Iterator[pa.RecordBatch]:
        """The columns that are read of one table; InputError if it has other rows than were found before."""
        rows = 0
        reader = table.open()
        for batch in reader.batches(self.columns_of(reader)):
            rows += batch.num_rows
            yield self.labelled(batch, table)
        if self.together and rows != table.rows:
            raise changed(table.path)

    def columns_of(self, reader: TableReader) -> list[str]:
        """The columns that are read of a table."""
        reader.require(self.reading.columns)
        has_repertoire = self.together and REPERTOIRE in reader.columns
        further = [*[REPERTOIRE] * has_repertoire, *[REASON] * reader.explains, *[READS] * self.has_reads]
        return [*self.reading.columns, *further]

    def labelled(self, batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
        """A batch of a table with its repertoires, if tables are counted together."""
        return with_repertoire(batch, table.repertoire_id) if self.together else batch


def with_repertoire(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """`batch` with the column repertoire_id, last if it had none: `name` where it was empty or missing."""
    if REPERTOIRE in batch.schema.names:
        own = batch.column(REPERTOIRE)
        column = pc.if_else(pc.equal(own, ""), pa.scalar(name, own.type), own)
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
            named = with_repertoire(batch, table.repertoire_id) if fill else batch
            empty = pa.repeat(pa.scalar("", pa.large_string()), batch.num_rows)
            own = named.schema.names
            # One type, whatever the kind of table: a Parquet file has one schema.
            columns = [named.column(name).cast(pa.large_string()) if name in own else empty for name in names]
            yield pa.RecordBatch.from_arrays(columns, names=list(names))


def tables_of(paths: Sequence[Path], reading: Reading) -> Inputs:
    """The tables at `paths` to count together, a folder meaning those in it; they are not surveyed yet.

    InputError if a table lacks a column, or if a file is named twice, under any path.
    """
    tables = []
    for file in files_of(paths, reading.opening):
        table = table_at(file, reading.opening)
        table.open().require(reading.columns)
        tables.append(table)
    require_different_files(table.path for table in tables)
    return Inputs(tuple(tables), reading, together=True)


def require_different_files(paths: Iterable[Path]) -> None:
    """Raise InputError if a file is named twice, under any path."""
    found: dict[tuple[int, int], Path] = {}
    for path in paths:
        facts = path.stat()
        key = facts.st_dev, facts.st_ino
        if key in found:
            again = "is named twice" if found[key] == path else f"is the same file as {found[key]}"
            raise InputError(f"{path}: {again}; name each table once")
        found[key] = path


def survey(inputs: Inputs, table: Table, between: Callable[[], None] = lambda: None) -> Table:
    """A table with its digest, rows and repertoires; reads it through unless the file says how many rows it has.

    between  called after each batch
    """
    reader = table.open()
    columns, rows = inputs.columns_of(reader), reader.known_rows
    found: Counter[str] = Counter()
    if rows is None or REPERTOIRE in columns:
        # A file that says how many rows it has is read only for the repertoires that they name.
        own = columns if rows is None else [REPERTOIRE]
        for batch in _followed(reader.batches(own), between):
            for entry in pc.value_counts(with_repertoire(batch, "").column(REPERTOIRE)).to_pylist():
                found[entry["values"]] += entry["counts"]
        rows = found.total()
    elif rows:
        found[""] = rows
    repertoires: Counter[str] = Counter()
    for name, number in found.items():
        repertoires[name or table.repertoire_id] += number
    known = dict(repertoires) or {table.repertoire_id: 0}
    return replace(table, sha256=file_digest(table.path, table.state), rows=rows, unnamed=found[""], repertoires=known)


def numbered(inputs: Inputs, tables: Sequence[Table]) -> Inputs:
    """The inputs with their surveyed tables, one after another, each with its first row.

    InputError if there is no row, or if two tables would be one repertoire only because of their names.
    """
    if not any(table.rows for table in tables):
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
    spread = sum(len(found) > 1 for found in holders.values())
    if spread:
        log.info("%s repertoire(s) are spread over several tables", f"{spread:,}")


def _warn(tables: Sequence[Table]) -> None:
    first: dict[str, Path] = {}
    same = []
    for table in tables:
        if not table.rows:
            log.warning("%s: no data rows; repertoire %s is empty", table.path, table.repertoire_id)
        elif table.sha256 in first:
            same.append(f"{table.path} and {first[table.sha256]}")
        first.setdefault(table.sha256, table.path)
    if same:
        log.warning("tables with the same content: %s", few(same))


@dataclass(frozen=True)
class Slice:
    """A slice of the input: the rows of one part file of the result.

    tables  places of the tables it has as a whole; for a piece of a large table, that table's
    piece   the number of the piece; None for whole tables
    """

    index: int
    first_row: int
    rows: int
    tables: tuple[int, ...]
    piece: int | None = None


def cut(tables: Sequence[Table], rows: int) -> list[Slice]:
    """Slices of at most `rows` rows that follow each other: whole tables, as many as fit; larger tables in pieces."""
    slices: list[Slice] = []
    for place, table in enumerate(tables):
        last = slices[-1] if slices else None
        if not table.rows:
            continue
        if last and last.piece is None and last.rows + table.rows <= rows:
            slices[-1] = replace(last, rows=last.rows + table.rows, tables=(*last.tables, place))
        elif table.rows <= rows:
            slices.append(Slice(len(slices), table.first_row, table.rows, (place,)))
        else:
            pieces = -(-table.rows // rows)
            size = -(-table.rows // pieces)
            for piece, first in enumerate(range(0, table.rows, size)):
                taken = min(size, table.rows - first)
                slices.append(Slice(len(slices), table.first_row + first, taken, (place,), piece))
    return slices


def dealt(slices: Iterable[Slice], rank: int, ranks: int) -> list[Slice]:
    """The slices of a rank: all are dealt out like cards, the largest first.

    A round takes as long as its largest slice, which is no larger than any of the round before.  So all rounds take
    at most one largest slice longer than ranks with even work would.
    """
    return sorted(slices, key=lambda part: (-part.rows, part.index))[rank::ranks]


def read_slices(
    inputs: Inputs, slices: Sequence[Slice], between: Callable[[], None]
) -> Iterator[tuple[Slice, Iterable[pa.RecordBatch]]]:
    """The batches of slices that `cut` made, in their order; `between` is called after each batch.

    A large table is opened once for all of its pieces, which come in its order.
    """
    streams: dict[tuple[int, ...], Iterator[Iterable[pa.RecordBatch]]] = {}
    last = {part.tables: part for part in slices}
    for part in slices:
        if part.piece is None:
            tables = [inputs.tables[place] for place in part.tables]
            batches: Iterable[pa.RecordBatch] = (batch for table in tables for batch in inputs.rows_of(table))
        else:
            if part.tables not in streams:
                pieces = [other for other in slices if other.tables == part.tables]
                streams[part.tables] = _read_pieces(inputs, inputs.tables[part.tables[0]], pieces)
            batches = next(streams[part.tables])
        yield part, _followed(batches, between)
        if part is last[part.tables]:
            # The table's file is closed with its stream.
            streams.pop(part.tables, None)


def _read_pieces(inputs: Inputs, table: Table, pieces: Sequence[Slice]) -> Iterator[Iterable[pa.RecordBatch]]:
    reader = table.open()
    starts = [piece.first_row - table.first_row for piece in pieces]
    ranges = [range(start, start + piece.rows) for start, piece in zip(starts, pieces, strict=True)]
    for batches in reader.ranges(inputs.columns_of(reader), ranges):
        yield (inputs.labelled(batch, table) for batch in batches)


def _followed(batches: Iterable[pa.RecordBatch], between: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        between()
