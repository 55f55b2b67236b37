"""A result and its input back as one table: every input row, in the input's order, with its counters beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.repertoire import Excluded
from hpcvdj.results import Result, counter_columns
from hpcvdj.storage import atomic_path, require_writable
from hpcvdj.tables import TableWriter, as_strings, file_digest, read_batches, table_suffix

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

    `junctions` is where the input lies now, if not where it was counted; InputError if it is another file.
    `airr` adds the columns of `REQUIRED` that the input lacks, empty.
    """
    target = Path(target)
    suffix = table_suffix(target)
    require_writable(target, overwrite=overwrite)
    with Result(result_path) as result:
        source = counted_table(result, Path(junctions) if junctions else None)
        lookup = Lookup.of(result)
    rows = 0
    with atomic_path(target, overwrite=overwrite) as temporary, open(temporary, "wb") as stream:
        writer = TableWriter(stream, suffix)
        for batch in read_batches(source):
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


def counted_table(result: Result, moved: Path | None = None) -> Path:
    """The table that a result counts, at `moved` if not where it was; InputError if it is gone or another."""
    facts = result.provenance
    path = moved or Path(facts["junctions_path"])
    if not path.is_file():
        raise InputError(f"{path}: the counted table is not there; say where it is with --junctions")
    if file_digest(path) != facts["junctions_sha256"]:
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
        clash = [name for name in added if name in batch.schema.names]
        if clash:
            raise InputError(f"the input has a column {clash[0]} already; rename it, or export from the original table")
        batch = as_strings(batch) if text else batch
        extra = pa.RecordBatch.from_pydict(added)
        extra = as_strings(extra) if text else extra
        return pa.RecordBatch.from_arrays(
            [*batch.columns, *extra.columns], names=[*batch.schema.names, *extra.schema.names]
        )
