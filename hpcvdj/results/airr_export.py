"""A result and its input back as one table: every input row, in the input's order, with its counters beside it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.repertoires.many import REPERTOIRE, label
from hpcvdj.repertoires.repertoire import Excluded
from hpcvdj.repertoires.tables import TableWriter, as_strings, column_names, file_digest, read_batches, table_suffix
from hpcvdj.results.file import CountedTable, Result, counter_columns
from hpcvdj.storage import atomic_path, require_apart, require_writable

EXCLUDED_COLUMN = "pathways_excluded"
"""Why a row has no counters; empty for a row that has."""

REQUIRED = (
    "sequence_id", "sequence", "rev_comp", "productive", "v_call", "d_call", "j_call", "sequence_alignment",
    "germline_alignment", "junction", "junction_aa", "v_cigar", "d_cigar", "j_cigar",
)  # fmt: skip
"""The columns that an AIRR Rearrangement file must have, though they may be empty (the schema's `required`)."""


def export(
    result_path: str | Path,
    target: str | Path,
    *,
    junctions: str | Path | None = None,
    airr: bool = False,
    overwrite: bool = False,
) -> int:
    """Write the input of a result with its counters to `target` (.tsv, .tsv.gz or .parquet); returns the rows.

    Tables that were counted together stand one after another, with the columns of all of them and `repertoire_id`.

    `junctions` is where the input lies now, a folder for several tables, if not where it was counted; InputError if it
    is another.  `airr` adds the columns of `REQUIRED` that the input lacks, empty.
    """
    target = Path(target)
    suffix = table_suffix(target)
    require_writable(target, overwrite=overwrite)
    with Result(result_path) as result:
        tables = counted_tables(result, Path(junctions) if junctions else None)
        together = result.together
        lookup = Lookup.of(result)
    require_apart(target, *(table.path for table in tables))
    for table in tables:
        _require_absent(table.path, lookup.columns(0, 0))
    rows = 0
    with atomic_path(target, overwrite=overwrite) as temporary, open(temporary, "wb") as stream:
        writer = TableWriter(stream, suffix)
        for batch in _in_columns_of_all(tables) if together else read_batches(tables[0].path):
            whole = with_required(batch) if airr else batch
            writer.write(lookup.beside(whole, rows, text=suffix != ".parquet"))
            rows += batch.num_rows
        writer.close()
    return rows


def with_required(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` with those columns of `REQUIRED` behind its own that it lacks, empty."""
    missing = [name for name in REQUIRED if name not in batch.schema.names]
    empty = pa.nulls(batch.num_rows, pa.string())
    names = [*batch.schema.names, *missing]
    return pa.RecordBatch.from_arrays([*batch.columns, *[empty] * len(missing)], names=names)


def _require_absent(path: Path, names: Iterable[str]) -> None:
    has = column_names(path)
    clash = next((name for name in names if name in has), None)
    if clash is not None:
        raise InputError(f"{path}: has a column {clash} already; rename it, or count the original table")


def _in_columns_of_all(tables: Sequence[CountedTable]) -> Iterator[pa.RecordBatch]:
    """The rows of tables that were counted together: the columns of each, empty where it has none, and repertoire_id.

    Columns are in the order in which the tables bring them; repertoire_id is the last if none does.
    """
    names = list(dict.fromkeys(name for table in tables for name in column_names(table.path)))
    names += [REPERTOIRE] * (REPERTOIRE not in names)
    for table in tables:
        for batch in read_batches(table.path):
            named = label(batch, table.repertoire_id)
            nothing = pa.repeat(pa.scalar("", pa.large_string()), batch.num_rows)
            has = dict(zip(named.schema.names, named.columns, strict=True))
            # One type, whatever the kind of table: a Parquet file has one schema.
            whole = [has[name].cast(pa.large_string()) if name in has else nothing for name in names]
            yield pa.RecordBatch.from_arrays(whole, names=names)


def counted_tables(result: Result, moved: Path | None = None) -> list[CountedTable]:
    """The tables that a result counts, where they lie now; InputError if one is gone or another.

    `moved` is where, if not where they were: the one table, or a folder.
    """
    tables = result.tables
    if moved is not None and len(tables) > 1 and not moved.is_dir():
        raise InputError(f"{moved}: {result.path} counts {len(tables):,} tables; name the folder that holds them")
    return [replace(table, path=_there(result, table, moved)) for table in tables]


def _there(result: Result, table: CountedTable, moved: Path | None) -> Path:
    path = moved or table.path
    if moved is not None and moved.is_dir():
        # Tables of one name lie in different folders, as they did.
        whole = moved / os.path.relpath(table.path, result.provenance["junctions_path"]) if result.together else moved
        path = whole if whole.is_file() else moved / table.path.name
    if not path.is_file():
        raise InputError(f"{path}: the counted table is not there; say where it is with --junctions")
    if file_digest(path) != table.sha256:
        raise InputError(
            f"{path}: not the table that {result.path} counts (its SHA-256 differs); name that one with --junctions, "
            "or count again"
        )
    return path


class Lookup:
    """Counters by input row.

    counters  uint64 [counted, n-lengths]; place int64 [counted] sorted input rows; order their rows in counters
    """

    def __init__(self, counters: NDArray[np.uint64], row: NDArray[np.int64], excluded: Excluded) -> None:
        self.counters = counters
        self.order = np.argsort(row, kind="stable")
        self.place = row[self.order]
        self.reasons = dict(zip(excluded.row.tolist(), excluded.reason, strict=True))
        self.excluded_row = excluded.row

    @classmethod
    def of(cls, result: Result) -> Lookup:
        """The counters of a result file, all of them in memory."""
        return cls(result.counters[:], result.row, result.excluded)

    def columns(self, first: int, rows: int) -> dict[str, pa.Array]:
        """The columns pathways_n0 … pathways_total, pathways_excluded of input rows `first` … `first + rows - 1`."""
        low, high = np.searchsorted(self.place, (first, first + rows))
        counters = np.zeros((rows, self.counters.shape[1]), dtype=np.uint64)
        counted = np.zeros(rows, dtype=bool)
        places = self.place[low:high] - first
        counters[places] = self.counters[self.order[low:high]]
        counted[places] = True
        reasons = np.full(rows, "", dtype=object)
        low, high = np.searchsorted(self.excluded_row, (first, first + rows))
        for row in self.excluded_row[low:high]:
            reasons[row - first] = self.reasons[int(row)]
        return {**counter_columns(counters, counted), EXCLUDED_COLUMN: pa.array(reasons, pa.string())}

    def beside(self, batch: pa.RecordBatch, first: int, *, text: bool) -> pa.RecordBatch:
        """`batch`, whose first row is input row `first`, with the columns beside it (all as text, or typed)."""
        added = self.columns(first, batch.num_rows)
        batch = as_strings(batch) if text else batch
        extra = pa.RecordBatch.from_pydict(added)
        extra = as_strings(extra) if text else extra
        return pa.RecordBatch.from_arrays(
            [*batch.columns, *extra.columns], names=[*batch.schema.names, *extra.schema.names]
        )
