"""Sequences chosen from a result, which may be huge: their values are read in blocks, when they are needed."""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError, few, log
from hpcvdj.results.frames import require
from hpcvdj.results.lookup import value_columns
from hpcvdj.results.schema import as_bytes, strings
from hpcvdj.storage.damage import damage

if TYPE_CHECKING:
    from hpcvdj.results.reader import Result


BLOCK_BYTES = 1 << 26
"""Bytes of the blocks in which a file is searched."""


class Selection:
    """Sequences of a result, in the order of its file: by V–J pair.

    index  int64 [sequences], ascending: rows of `/counters` and `/sequences`, not of the input
    """

    def __init__(self, result: "Result", index: NDArray[np.int64]) -> None:
        self.result, self.index = result, index

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"<{len(self):,} of {len(self.result):,} sequences of {self.result.path}>"

    @property
    def counters(self) -> NDArray[Any]:
        """Values [sequences, columns]; pathways are uint64, and column m is n-length m."""
        return np.asarray(_take(self.result.counters, self.index))

    @property
    def total(self) -> NDArray[Any]:
        """The sum of each sequence's values [sequences]: pathways of all n-lengths counted, uint64."""
        return self.result.quantity.totals(self.counters)

    @property
    def row(self) -> NDArray[np.int64]:
        """The 0-based data row of each sequence in the input, int64 [sequences]."""
        return np.asarray(_take(self.result.dataset("sequences/row"), self.index))

    def to_numpy(self) -> NDArray[Any]:
        """Return `counters`."""
        return self.counters

    def to_table(self) -> pa.Table:
        """Return a pyarrow table of /sequences (row, sequence_id, v_call, j_call, cdr3) and the values."""
        columns = {name: self.column(name) for name in self.result.columns}
        return pa.table({**columns, **value_columns(self.result.quantity, self.counters)})

    def column(self, name: str) -> Any:
        """Return a column of /sequences: text as a pyarrow string Array, numbers as a NumPy array."""
        values = _take(self.result.dataset(f"sequences/{name}"), self.index)
        with damage(self.result.path):
            return pa.array(strings(values), pa.string()) if values.dtype.kind == "S" else values

    def to_pandas(self) -> Any:
        """Return the same columns as a pandas DataFrame."""
        require("pandas")
        return self.to_table().to_pandas()

    def texts(self, name: str) -> list[str]:
        """Return a text column of /sequences."""
        texts: list[str] = self.column(name).to_pylist()
        return texts

    def select(
        self,
        *,
        rows: Iterable[int] | None = None,
        sequence_id: str | Iterable[str] | None = None,
        v_call: str | Iterable[str] | None = None,
        j_call: str | Iterable[str] | None = None,
        min_pathways: int | None = None,
        repertoire_id: str | Iterable[str] | None = None,
    ) -> "Selection":
        """Return those of these sequences that meet every condition.

        rows            data rows of the input, from 0 (the column `row`)
        sequence_id     an id, or several
        v_call, j_call  an allele, or a gene for all its alleles, or several
        min_pathways    the least number of pathways, all n-lengths together
        repertoire_id   a repertoire, or several

        Logs a warning of a call with which nothing was counted.  Raises InputError for a row or an id that is not among
        these sequences, with the reason if it was excluded, and for rows that are no whole numbers.
        """
        keep = np.ones(len(self), dtype=bool)
        if rows is not None:
            keep &= self._among("row", _whole_numbers(rows))
        if sequence_id is not None:
            keep &= self._among("sequence_id", as_bytes(_several(sequence_id)))
        if repertoire_id is not None:
            keep &= self._of(as_bytes(_several(repertoire_id)))
        for segment, calls in enumerate((v_call, j_call)):
            if calls is not None:
                keep &= self._called(segment, _several(calls))
        if min_pathways is not None and math.isnan(min_pathways):
            raise InputError("min_pathways: give a number, not NaN")
        if min_pathways is not None and min_pathways > 0:
            least, totals = int(min_pathways), self.result.pathways().totals
            keep &= _take(self.result.counters, self.index, lambda block: totals(block) >= least)
        return Selection(self.result, self.index[keep])

    def _among(self, name: str, asked: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which sequences have a value among `asked`.  Raise InputError if a value does not occur."""
        seen = []

        def is_asked(block: NDArray[Any]) -> NDArray[np.bool_]:
            asked_here = np.isin(block, asked)
            seen.append(block[asked_here])
            return asked_here

        keep = _take(self.result.dataset(f"sequences/{name}"), self.index, is_asked)
        missing = np.setdiff1d(asked, np.concatenate(seen))
        if not len(missing):
            return keep
        excluded = self.result.excluded
        value = missing[0].decode() if name == "sequence_id" else int(missing[0])
        values = excluded.row.tolist() if name == "row" else list(excluded.sequence_id)
        why = "nothing was counted under it"
        if value in values:
            why = f"it was excluded: {excluded.exclusion(values.index(value))}"
        raise InputError(f"{self.result.path}: no {name} {value} among these sequences; {why}")

    def _of(self, asked: NDArray[np.bytes_]) -> NDArray[np.bool_]:
        """Return which sequences are of the repertoires `asked`.  Raise InputError if the result lacks a repertoire."""
        names = self.result.repertoires
        missing = next((text.decode() for text in asked.tolist() if text.decode() not in names), None)
        if missing is not None:
            raise InputError(f"{self.result.path}: no repertoire_id {missing}; it has {few(names, 5)}")
        if not self.result.together:
            return np.full(len(self), len(asked) > 0)
        return _take(self.result.dataset("sequences/repertoire_id"), self.index, lambda block: np.isin(block, asked))

    def _called(self, segment: int, calls: list[str]) -> NDArray[np.bool_]:
        """Return which sequences have one of the calls, by their V–J pairs, without reading the calls of sequences.

        segment  0 for V, 1 for J
        """
        keep, names = np.zeros(len(self.result), dtype=bool), set[str]()
        for *pair, rows in self.result.pairs:
            of_pair = {pair[segment], pair[segment].partition("*")[0]}
            names |= of_pair
            keep[rows] = not of_pair.isdisjoint(calls)
        if unknown := [call for call in calls if call not in names]:
            log.warning(
                "%s: nothing was counted with the %s %s; it has %s", self.result.path, ("v_call", "j_call")[segment],
                few(unknown), few(sorted(name for name in names if "*" not in name)),
            )  # fmt: skip
        return np.asarray(keep[self.index])


def _several(values: str | Iterable[str]) -> list[str]:
    return [values] if isinstance(values, str) else list(values)


def _take(
    dataset: h5py.Dataset, index: NDArray[np.int64], of_block: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
) -> NDArray[Any]:
    """Return the rows `index`, ascending, of a dataset, or what `of_block` returns for each block of them."""
    blocks, first = [of_block(dataset[:0])], 0
    rows = max(1, BLOCK_BYTES // max(1, dataset.dtype.itemsize * math.prod(dataset.shape[1:])))
    while first < len(index):
        stop = int(np.searchsorted(index, index[first] + rows))
        low, high = int(index[first]), int(index[stop - 1]) + 1
        # HDF5 reads a span many times faster than single rows.
        blocks.append(of_block(dataset[low:high][index[first:stop] - low]))
        first = stop
    return np.concatenate(blocks)


def _whole_numbers(rows: Iterable[int]) -> NDArray[np.int64]:
    """Return data rows, int64 [rows]; raises InputError if they are no whole numbers, as those of a mask are not."""
    try:
        numbers = np.array(list(rows))
    except TypeError:
        numbers = np.array(rows)
    if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
        raise InputError("rows: give a list of data rows, whole numbers from 0; of a mask, numpy.flatnonzero(mask)")
    return numbers.astype(np.int64)
