"""The layout of result files: every dataset, declared once.

The writer, the parts, the reader, the export and the test of docs/file_format.md, which says what they mean, read these
declarations.  A new column of /sequences or /excluded needs one entry in `LAYOUT`.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.recombination.exclusions import ExcludedRows, Exclusion
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.table import REPERTOIRE
from hpcvdj.results.attributes import VERSION, require_attributes
from hpcvdj.storage.damage import damaged
from hpcvdj.storage.packed import write_packed

WRITTEN_BY = "hpcvdj count` or `hpcvdj pgen"
"""The commands that write results; `open_hdf5` puts them between backticks."""

TOGETHER = "[together](#together)"
"""Condition of columns that only results of tables counted together have."""

ANCHORED = "with probabilities"
"""Condition of columns that only results of junctions with their anchors have."""

TEXT = "text"
"""The type of zero-padded UTF-8 text.  Its fixed width is that of the longest value."""


@dataclass(frozen=True)
class Column:
    """A dataset: a column of a group.

    name    name of the dataset, and of the column in tables
    dtype   type of NumPy, or TEXT
    shape   its number of rows, as the documentation calls it
    values  function that returns the values.  In /sequences it takes the junctions and a slice of them (TEXT: bytes as
            wide as the longest value of all), in /excluded the ExcludedRows (TEXT: str), elsewhere an item for
            `values_of`.  None if callers give the values to `write_group`
    only    condition for a result to have the column: `TOGETHER`, `ANCHORED`; empty if all results have it
    """

    name: str
    dtype: Any
    shape: str
    values: Any = None
    only: str = ""


def _calls(segment: int, junctions: Junctions, rows: slice) -> NDArray[np.bytes_]:
    """Return the values of a call (V: 0, J: 1).  The sequences of a V–J pair are consecutive."""
    repertoire = junctions.repertoire
    first, last, _ = rows.indices(len(repertoire))
    alleles = as_bytes(pair[segment].allele for pair in repertoire.pairs)
    sizes = np.asarray(np.diff(np.clip(repertoire.offsets, first, last)), dtype=np.int64)
    return np.repeat(alleles, sizes)


def _by_row(excluded: ExcludedRows, describe: Callable[[Exclusion], str]) -> list[str]:
    texts = [describe(exclusion) for exclusion in excluded.exclusions]
    return [texts[code] for code in excluded.code.tolist()]


LAYOUT: dict[str, list[Column]] = {
    "sequences": [
        Column("row", np.int64, "S", lambda junctions, rows: junctions.row[rows]),
        Column(
            REPERTOIRE, TEXT, "S",
            lambda junctions, rows: as_bytes(junctions.repertoire_ids)[junctions.repertoire_of[rows]], only=TOGETHER,
        ),
        Column("sequence_id", TEXT, "S", Junctions.id_bytes),
        Column("v_call", TEXT, "S", partial(_calls, 0)),
        Column("j_call", TEXT, "S", partial(_calls, 1)),
        Column("cdr3", TEXT, "S", Junctions.cdr3_bytes),
        Column("anchors", TEXT, "S", Junctions.anchor_bytes, only=ANCHORED),
    ],
    "excluded": [
        Column("row", np.int64, "X", attrgetter("row")),
        Column(REPERTOIRE, TEXT, "X", attrgetter("repertoire_id"), only=TOGETHER),
        Column("sequence_id", TEXT, "X", attrgetter("sequence_id")),
        Column("kind", TEXT, "X", lambda excluded: _by_row(excluded, lambda exclusion: exclusion.kind.name.lower())),
        Column("details", TEXT, "X", lambda excluded: _by_row(excluded, Exclusion.details_json)),
    ],
    "pairs": [
        Column("v_call", TEXT, "P"),
        Column("j_call", TEXT, "P"),
        Column("offset", np.int64, "P + 1"),
    ],
    "timings": [
        Column("pair_first", np.int64, "U", attrgetter("pairs.start")),
        Column("pair_stop", np.int64, "U", attrgetter("pairs.stop")),
        Column("n_first", np.int64, "U", attrgetter("n_lengths.start")),
        Column("n_stop", np.int64, "U", attrgetter("n_lengths.stop")),
        Column("sequences", np.int64, "U", lambda unit: len(unit.rows)),
        Column("tasks", np.int64, "U", attrgetter("tasks")),
        Column("kernel_seconds", np.float64, "U"),
        Column("reduce_seconds", np.float64, "U"),
        Column("wall_seconds", np.float64, "U"),
        Column("rank_kernel_seconds", np.float64, "R"),
        Column("rank_reduce_seconds", np.float64, "R"),
    ],
    "repertoires": [
        Column(REPERTOIRE, TEXT, "Q"),
        Column("rows", np.int64, "Q"),
        Column("sequences", np.int64, "Q"),
    ],
    "tables": [
        Column("path", TEXT, "T", lambda table: os.fsencode(table.path.resolve())),
        Column("sha256", TEXT, "T", attrgetter("sha256")),
        Column(REPERTOIRE, TEXT, "T", attrgetter("repertoire_id")),
        Column("first_row", np.int64, "T", attrgetter("first_row")),
        Column("rows", np.int64, "T", attrgetter("rows")),
    ],
    "ranks": [Column(name, TEXT, "R", itemgetter(name)) for name in ("host", "pid", "hardware", "software")],
}  # fmt: skip
"""The columns of each group."""


def columns(group: str, junctions: Junctions | None = None) -> list[Column]:
    """Return the columns of /sequences or /excluded, in the order of tables, for the junctions or for any result."""
    absent = set()
    if junctions is not None:
        has = {TOGETHER: junctions.repertoire_ids is not None, ANCHORED: junctions.anchor_letters > 0}
        absent = {name for name, present in has.items() if not present}
    return [column for column in LAYOUT[group] if column.only not in absent]


def require_layout(path: Path, file: h5py.File, values: h5py.Dataset, dtype: Any) -> None:
    """Raise InputError unless a result has the datasets of its layout, with matching shapes and types.

    values, dtype  the dataset of the quantity, and its type
    """
    if int(file.attrs["format_version"]) < VERSION:
        raise InputError(f"{path}: is of hpcvdj 0.1, which this hpcvdj does not read; count the table again")
    rows = len(values)
    if values.ndim != 2 or not values.shape[1] or values.dtype != dtype:
        raise damaged(path, f"{values.name} is of type {values.dtype}, shape {values.shape}")
    lengths = {"S": rows}
    for name in LAYOUT:
        if REPERTOIRE in file["sequences"] or name not in ("repertoires", "tables"):
            _require_columns(path, file, name, lengths)
    require_attributes(path, file.attrs)
    pairs = read_group(file, "pairs")
    offset = pairs["offset"]
    if (
        not len(pairs["v_call"]) == len(pairs["j_call"]) == len(offset) - 1
        or (offset[0], offset[-1]) != (0, rows)
        or (np.diff(offset) < 0).any()
    ):
        raise damaged(path, "/pairs does not say which rows each V-J pair has")
    read, excluded = int(file.attrs["rows_read"]), len(file["excluded/row"])
    if read != rows + excluded:
        raise damaged(path, f"of {read:,} rows it has {rows:,} counted and {excluded:,} excluded")


def _require_columns(path: Path, file: h5py.File, name: str, lengths: dict[str, int]) -> None:
    """Raise InputError unless the columns of a group have their types, and columns of one shape are of equal lengths.

    lengths  the lengths of shapes, as far as they are known
    """
    for column in LAYOUT[name]:
        dataset = file.get(f"{name}/{column.name}")
        if dataset is None and (column.only or name == "timings"):
            continue  # parts have no times of ranks
        if not isinstance(dataset, h5py.Dataset):
            raise damaged(path, f"/{name} lacks {column.name}")
        if dataset.ndim != 1 or dataset.dtype.kind != ("S" if column.dtype is TEXT else np.dtype(column.dtype).kind):
            raise damaged(path, f"{dataset.name} is of type {dataset.dtype}, shape {dataset.shape}")
        if lengths.setdefault(column.shape, len(dataset)) != len(dataset):
            raise damaged(path, f"the columns of /{name} are of different lengths")
    # Later versions may have further columns.
    if name in ("sequences", "excluded") and len({dataset.shape for dataset in file[name].values()}) > 1:
        raise damaged(path, f"the columns of /{name} are of different lengths")


def as_bytes(texts: Iterable[str | bytes]) -> NDArray[np.bytes_]:
    """Return texts as bytes of fixed width, in UTF-8."""
    return np.array([text if isinstance(text, bytes) else text.encode() for text in texts], dtype=np.bytes_)


def as_text(values: Iterable[str | bytes]) -> NDArray[Any]:
    """Return texts as an array of the type of HDF5."""
    encoded = as_bytes(values)
    return encoded.astype(h5py.string_dtype("utf-8", encoded.itemsize))


def as_array(column: Column, values: Any) -> NDArray[Any]:
    """Return the values of a column as an array of its type.  TEXT is as wide as its longest value."""
    return as_text(values) if column.dtype is TEXT else np.asarray(values, dtype=column.dtype)


def values_of(group: str, items: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the values of a small group that its items have: units, tables or ranks."""
    return {column.name: list(map(column.values, items)) for column in LAYOUT[group] if column.values}


def write_group(file: h5py.File, group: str, values: Mapping[str, Any]) -> None:
    """Write a small group as it is declared.  Columns without a value are left out."""
    declared = {column.name: column for column in LAYOUT[group]}
    for name, data in values.items():
        write_packed(file, f"{group}/{name}", as_array(declared[name], data))


def read_group(file: h5py.File, group: str) -> dict[str, NDArray[Any]]:
    """Return the values of a small group as arrays, TEXT as bytes."""
    return {name: dataset[:] for name, dataset in file[group].items()}


def strings(values: NDArray[Any]) -> list[str]:
    """Return TEXT values as str."""
    return [value.decode() for value in values.tolist()]
