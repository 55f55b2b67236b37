"""Many repertoires in one run: which files, and where the result of each goes; or, together, whose each row is.

Tables that are counted together stand one after another: their data rows are numbered through, from 0.  A row's
repertoire is what the column `repertoire_id` of its table says, or, where there is none, the table's own name.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.errors import InputError
from hpcvdj.repertoires.slices import Slice, ignore, slices, watched
from hpcvdj.repertoires.tables import column_names, file_digest, read_batches, require_columns

log = logging.getLogger(__name__)

SUFFIXES = (".tsv.gz", ".tsv", ".parquet")
"""How a folder's repertoires are told from what else lies there."""

REPERTOIRE = "repertoire_id"
"""AIRR's column for the repertoire of a row."""


def repertoire_name(path: Path) -> str:
    """A repertoire's file name without the suffix of a table."""
    name = path.name
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name) or name


def plan(inputs: Sequence[Path], output: Path) -> list[tuple[Path, Path]]:
    """(repertoire, result file) of each of `inputs`; a folder stands for the tables in it.

    One file goes to the file `output`; several, or a folder, go to the folder `output`, as NAME.h5.  InputError if a
    folder has no table, if two would go to the same file, or if `output` is a file.
    """
    if len(inputs) == 1 and not inputs[0].is_dir():
        return [(inputs[0], output)]
    files = _files(inputs)
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; several repertoires need a folder to go to, or --together")
    if output.suffix in (".h5", ".hdf5") and not output.exists():
        raise InputError(
            f"{output}: several repertoires go to a folder, which should not be called like a file; give another name, "
            "or --together for one result"
        )
    targets: dict[Path, Path] = {}
    for file in files:
        target = output / f"{repertoire_name(file)}.h5"
        if target in targets:
            raise InputError(
                f"{file}: its result would be {target}, like that of {targets[target]}; rename one of them"
            )
        targets[target] = file
    return [(file, target) for target, file in targets.items()]


def _files(inputs: Sequence[Path]) -> list[Path]:
    return [file for path in inputs for file in (_tables(path) if path.is_dir() else [path])]


def _tables(folder: Path) -> list[Path]:
    # A link to nowhere is named when it is read, not left out.
    files = sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIXES) and not path.is_dir())
    if not files:
        raise InputError(f"{folder}: has no table ({', '.join('*' + suffix for suffix in SUFFIXES)})")
    return files


@dataclass(frozen=True)
class Table:
    """One of the tables that are counted together.

    sha256       digest of the file's bytes
    rows         its data rows
    unnamed      how many of them are of the repertoire that has the table's name, as no column says otherwise
    repertoires  rows of each of its repertoires, in the order of the table
    first_row    the number of its first row
    state        the file's state, as root found it before anything was read
    """

    path: Path
    sha256: str
    rows: int
    unnamed: int
    repertoires: dict[str, int]
    first_row: int = 0
    state: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """The repertoire of rows of which no column says it."""
        return repertoire_name(self.path)


def tables_of(inputs: Sequence[Path], columns: Sequence[str]) -> list[Path]:
    """The tables to count together, a folder standing for those in it; InputError unless they have `columns`.

    A file that is named twice, by whatever path, is an InputError too.
    """
    found: dict[tuple[int, int], Path] = {}
    for file in _files(inputs):
        if file.exists() and not file.is_file():
            raise InputError(f"{file}: is no plain file; tables that are counted together are read twice: store it")
        require_columns(file, columns)
        facts = file.stat()
        key = facts.st_dev, facts.st_ino
        if key in found:
            again = "named twice" if found[key] == file else f"is {found[key]} again"
            raise InputError(f"{file}: {again}; name each table once")
        found[key] = file
    return list(found.values())


def survey(path: Path, columns: Sequence[str]) -> Table:
    """Read a table through; InputError if that cannot be done."""
    name = repertoire_name(path)
    rows = unnamed = 0
    found: dict[str, int] = {}
    for batch in _batches(path, columns):
        rows += batch.num_rows
        for one in pc.value_counts(batch.column(REPERTOIRE)).to_pylist():
            unnamed += one["counts"] * (not one["values"])
            whose = one["values"] or name
            found[whose] = found.get(whose, 0) + one["counts"]
    return Table(path, file_digest(path), rows, unnamed, found or {name: 0})


def placed(tables: Sequence[Table]) -> tuple[Table, ...]:
    """The tables one after another, each with its first row.

    InputError if there is no row, or if two tables would be one repertoire for their names alone.
    """
    if not any(table.rows for table in tables):
        raise InputError(f"{', '.join(str(table.path) for table in tables[:3])}: no data rows in any table")
    _require_apart(tables)
    _warn(tables)
    first, out = 0, []
    for table in tables:
        out.append(replace(table, first_row=first))
        first += table.rows
    return tuple(out)


def _require_apart(tables: Sequence[Table]) -> None:
    """A repertoire may be spread over tables, but only if they say so themselves."""
    where: dict[str, list[Table]] = {}
    for table in tables:
        for name in table.repertoires:
            where.setdefault(name, []).append(table)
    for table in tables:
        other = next((one for one in where.get(table.name, ()) if one is not table), None)
        if other and (table.unnamed or not table.rows):
            raise InputError(
                f"{table.path}: its repertoire would be called {table.name}, like one of {other.path}; rename a file, "
                f"or fill the column {REPERTOIRE} of both"
            )
    spread = sum(len(found) > 1 for found in where.values())
    if spread:
        log.info("%s repertoire(s) are spread over several tables", f"{spread:,}")


def _warn(tables: Sequence[Table]) -> None:
    first: dict[str, Path] = {}
    same = []
    for table in tables:
        if not table.rows:
            log.warning("%s: no data rows; repertoire %s is empty", table.path, table.name)
        elif table.sha256 in first:
            same.append(f"{table.path} as {first[table.sha256]}")
        first.setdefault(table.sha256, table.path)
    if same:
        log.warning("the same bytes twice: %s", _few(same))


def changed(path: Path) -> InputError:
    """The error of a table that is not what it was when the run began."""
    return InputError(f"{path}: changed while it was read; start again with --overwrite, when it is complete")


def label(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """`batch` with the column repertoire_id, last if it had none: `name` where it was empty or not there."""
    names = batch.schema.names
    if REPERTOIRE not in names:
        whose = pa.repeat(pa.scalar(name, pa.string()), batch.num_rows)
        return pa.RecordBatch.from_arrays([*batch.columns, whose], names=[*names, REPERTOIRE])
    columns = batch.columns
    place = names.index(REPERTOIRE)
    said = columns[place]
    columns[place] = pc.if_else(pc.equal(said, ""), pa.scalar(name, said.type), said)
    return pa.RecordBatch.from_arrays(columns, names=names)


def rows_of(table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """All rows of a table, with their repertoires; InputError if they are not as many as there were."""
    rows = 0
    for batch in read_batches(table.path, _with_repertoire(table.path, columns)):
        rows += batch.num_rows
        yield label(batch, table.name)
    if rows != table.rows:
        raise changed(table.path)


def _batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of `path`, with an empty column repertoire_id if there is none."""
    return (label(batch, "") for batch in read_batches(path, _with_repertoire(path, columns)))


def _with_repertoire(path: Path, columns: Sequence[str] | None) -> list[str] | None:
    if columns is None:
        return None
    return [*columns, REPERTOIRE] if REPERTOIRE in column_names(path) else list(columns)


@dataclass(frozen=True)
class Share:
    """The rows of one part of a result: `tables` (their places) whole, or slice `piece` of one."""

    index: int
    first_row: int
    rows: int
    tables: tuple[int, ...]
    piece: int | None = None


def cut(tables: Sequence[Table], rows: int) -> list[Share]:
    """Shares of at most `rows` rows that follow each other: whole tables, as many as fit; larger ones in slices."""
    out: list[Share] = []
    for place, table in enumerate(tables):
        last = out[-1] if out else None
        if not table.rows:
            continue
        if last and last.piece is None and last.rows + table.rows <= rows:
            out[-1] = replace(last, rows=last.rows + table.rows, tables=(*last.tables, place))
        elif table.rows <= rows:
            out.append(Share(len(out), table.first_row, table.rows, (place,)))
        else:
            size = _piece_rows(table, rows)
            for piece, first in enumerate(range(0, table.rows, size)):
                taken = min(size, table.rows - first)
                out.append(Share(len(out), table.first_row + first, taken, (place,), piece))
    return out


def _piece_rows(table: Table, rows: int) -> int:
    """Rows of a piece of a table that has more than `rows`: all pieces alike, but for the last."""
    pieces = -(-table.rows // rows)
    return -(-table.rows // pieces)


def dealt(shares: Iterable[Share], rank: int, ranks: int) -> list[Share]:
    """The shares of a rank: all are dealt out like cards, the largest first.

    A round lasts as long as its largest share, which is no larger than any of the round before.  So all rounds last
    as long as the largest share longer, at most, than ranks would with even work.
    """
    return sorted(shares, key=lambda share: (-share.rows, share.index))[rank::ranks]


def read_shares(
    tables: Sequence[Table],
    columns: Sequence[str],
    rows: int,
    mine: Sequence[Share],
    between: Callable[[], None] = ignore,
) -> Iterator[Slice]:
    """The rows of shares that `cut(tables, rows)` made, with their repertoires, in the order of `mine`.

    `between` is called after each batch that is read.
    """
    streams: dict[int, Iterator[Slice]] = {}
    left = Counter(share.tables for share in mine)
    for share in mine:
        if share.piece is None:
            batches = (batch for place in share.tables for batch in rows_of(tables[place], columns))
            yield Slice(share.index, share.first_row, watched(batches, between))
            continue
        place = share.tables[0]
        table = tables[place]
        if place not in streams:
            # Read once: the pieces of a table come in its order.
            wanted = {one.piece for one in mine if one.tables == share.tables}
            names = _with_repertoire(table.path, columns) or []
            streams[place] = slices(table.path, names, _piece_rows(table, rows), wanted.__contains__, between)
        found = next(streams[place], None)
        if found is None:
            raise changed(table.path)
        yield Slice(share.index, share.first_row, _labelled(found.batches, table.name))
        left[share.tables] -= 1
        if not left[share.tables]:
            # Its file is closed with it.
            del streams[place], found


def _labelled(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    return (label(batch, name) for batch in batches)


def folder_of(tables: Sequence[Table]) -> Path:
    """The folder that all tables lie in, at whatever depth."""
    return Path(os.path.commonpath([table.path.resolve().parent for table in tables]))


def digest_of(tables: Sequence[Table]) -> str:
    """SHA-256 of the tables' names and digests, in their order."""
    lines = "".join(f"{table.sha256}  {table.path.name}\n" for table in tables)
    return hashlib.sha256(lines.encode()).hexdigest()


def listed(tables: Sequence[Table]) -> list[list[str]]:
    """Name and digest of each table: what two runs must have in common, their order included."""
    return [[table.path.name, table.sha256] for table in tables]


def difference(theirs: Sequence[Sequence[str]], mine: Sequence[Sequence[str]]) -> str:
    """What became of the tables `theirs`, (name, digest), if `mine` are not the same; empty if they are."""
    was, now = (Counter(map(tuple, one)) for one in (theirs, mine))
    gone, new = ([name for name, _ in (one - other).elements()] for one, other in ((was, now), (now, was)))
    both = [name for name in gone if name in new]
    said = [
        f"{_few(names)} {what}"
        for names, what in (
            (both, "changed"),
            ([name for name in gone if name not in both], "no longer among the tables"),
            ([name for name in new if name not in both], "new among the tables"),
        )
        if names
    ]
    if not said and list(map(tuple, theirs)) != list(map(tuple, mine)):
        said = ["the tables in another order"]
    return ", ".join(said)


def _few(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if names[most:] else "")
