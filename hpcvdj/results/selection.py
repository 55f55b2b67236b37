"""Sequences chosen from a result: read from its file when they are asked for, in pieces, so that it may be huge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError

if TYPE_CHECKING:
    from hpcvdj.results.file import Result

PIECE_ROWS = 1 << 19
"""A file is searched in pieces of this many rows."""

_MOST_NAMED = 5


class Selection:
    """Sequences of a result, in the order of its file: by V–J pair.

    index  int64 [chosen], ascending: rows of `/counters` and `/sequences`, not of the input
    """

    def __init__(self, result: Result, index: NDArray[np.int64]) -> None:
        self.result, self.index = result, index

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"<{len(self):,} of {len(self.result):,} sequences of {self.result.path}>"

    @property
    def counters(self) -> NDArray[np.uint64]:
        """Pathways, uint64 [chosen, n-lengths]; column m is n-length m."""
        return np.asarray(_take(self.result.counters, self.index))

    @property
    def total(self) -> NDArray[np.uint64]:
        """Pathways of all n-lengths counted, uint64 [chosen]."""
        return np.asarray(self.counters.sum(axis=1, dtype=np.uint64))

    @property
    def row(self) -> NDArray[np.int64]:
        """The 0-based data row of each sequence in the input, int64 [chosen]."""
        return np.asarray(_take(self.result.dataset("sequences/row"), self.index))

    def to_numpy(self) -> NDArray[np.uint64]:
        """`counters`."""
        return self.counters

    def to_table(self) -> pa.Table:
        """A pyarrow table: row, sequence_id, v_call, j_call, cdr3, pathways_n0 …, pathways_total.

        Of tables that were counted together also repertoire_id, before sequence_id.
        """
        from hpcvdj.results.file import counter_columns

        columns: dict[str, Any] = {"row": self.row}
        for name in ["repertoire_id"] * self.result.together + ["sequence_id", "v_call", "j_call", "cdr3"]:
            columns[name] = pa.array(self.texts(name), pa.string())
        return pa.table({**columns, **counter_columns(self.counters)})

    def to_pandas(self) -> Any:
        """The same columns as a pandas DataFrame."""
        require("pandas")
        return self.to_table().to_pandas()

    def texts(self, name: str) -> list[str]:
        """A text column of `/sequences`."""
        return [value.decode() for value in _take(self.result.dataset(f"sequences/{name}"), self.index).tolist()]

    def select(
        self,
        *,
        rows: Iterable[int] | None = None,
        sequence_id: str | Iterable[str] | None = None,
        v_call: str | None = None,
        j_call: str | None = None,
        min_pathways: int | None = None,
        repertoire_id: str | Iterable[str] | None = None,
    ) -> Selection:
        """Those of these sequences that meet every condition given.

        rows          data rows of the input, from 0 (the column `row`)
        sequence_id   one id, or several
        v_call, j_call  an allele, or a gene for all its alleles
        min_pathways  at least so many pathways in all
        repertoire_id  one repertoire, or several

        InputError for a row or an id that is not among them, with the reason if it was excluded.
        """
        keep = np.ones(len(self), dtype=bool)
        if rows is not None:
            keep &= self._among("row", np.fromiter(rows, dtype=np.int64))
        if sequence_id is not None:
            keep &= self._among("sequence_id", _as_bytes(sequence_id))
        if repertoire_id is not None:
            keep &= self._of(_as_bytes(repertoire_id))
        if v_call is not None or j_call is not None:
            keep &= self._called(v_call, j_call)
        if min_pathways is not None and min_pathways > 0:
            keep &= self._at_least(min_pathways)
        return Selection(self.result, self.index[keep])

    def _among(self, name: str, asked: NDArray[Any]) -> NDArray[np.bool_]:
        """Which have one of the values `asked`; InputError if one of these is not there."""
        keep = np.zeros(len(self), dtype=bool)
        found = [asked[:0]]
        for place, piece in _pieces(self.result.dataset(f"sequences/{name}"), self.index):
            keep[place] = np.isin(piece, asked)
            found.append(piece[keep[place]])
        missing = np.setdiff1d(asked, np.concatenate(found))
        if len(missing):
            first = missing[0].decode() if name == "sequence_id" else int(missing[0])
            excluded = self.result.excluded
            listed = excluded.row.tolist() if name == "row" else excluded.sequence_id
            reasons = dict(zip(listed, excluded.reason, strict=True))
            why = f"it was excluded: {reasons[first]}" if first in reasons else "nothing was counted under it"
            raise InputError(f"{self.result.path}: no {name} {first} among these sequences; {why}")
        return keep

    def _of(self, asked: NDArray[np.bytes_]) -> NDArray[np.bool_]:
        """Which are of the repertoires `asked`; InputError if one of these is not in the result."""
        known = self.result.repertoires
        missing = next((text.decode() for text in asked.tolist() if text.decode() not in known), None)
        if missing is not None:
            names = ", ".join(list(known)[:_MOST_NAMED]) + (" …" if len(known) > _MOST_NAMED else "")
            raise InputError(f"{self.result.path}: no repertoire_id {missing}; it has {names}")
        if not self.result.together:
            return np.full(len(self), len(asked) > 0)
        keep = np.zeros(len(self), dtype=bool)
        for place, piece in _pieces(self.result.dataset("sequences/repertoire_id"), self.index):
            keep[place] = np.isin(piece, asked)
        return keep

    def _called(self, v_call: str | None, j_call: str | None) -> NDArray[np.bool_]:
        """Which have these calls: the pairs tell, without reading a call of every sequence."""
        keep = np.zeros(len(self.result), dtype=bool)
        for v, j, rows in self.result.pairs:
            keep[rows] = _is_call(v, v_call) and _is_call(j, j_call)
        return np.asarray(keep[self.index])

    def _at_least(self, pathways: int) -> NDArray[np.bool_]:
        if pathways > np.iinfo(np.uint64).max:
            return np.zeros(len(self), dtype=bool)
        keep = np.zeros(len(self), dtype=bool)
        for place, piece in _pieces(self.result.counters, self.index):
            keep[place] = piece.sum(axis=1, dtype=np.uint64) >= np.uint64(pathways)
        return keep


def _as_bytes(texts: str | Iterable[str]) -> NDArray[np.bytes_]:
    asked = [texts] if isinstance(texts, str) else list(texts)
    return np.array([text.encode() for text in asked], dtype=np.bytes_)


def _is_call(allele: str, call: str | None) -> bool:
    return call is None or call in (allele, allele.partition("*")[0])


def _pieces(dataset: h5py.Dataset, index: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[Any]]]:
    """The rows `index` of a dataset in pieces, each with its place in `index`."""
    first = 0
    while first < len(index):
        stop = int(np.searchsorted(index, index[first] + PIECE_ROWS))
        low, high = int(index[first]), int(index[stop - 1]) + 1
        # HDF5 reads one span many times faster than as many single rows.
        yield slice(first, stop), dataset[low:high][index[first:stop] - low]
        first = stop


def _take(dataset: h5py.Dataset, index: NDArray[np.int64]) -> NDArray[Any]:
    """The rows `index`, ascending, of a dataset."""
    pieces = [piece for _, piece in _pieces(dataset, index)]
    return np.concatenate(pieces) if pieces else dataset[:0]


def require(library: str, extra: str = "") -> None:
    """InputError with the remedy if an optional library is not installed."""
    from importlib.util import find_spec

    if find_spec(library) is None:
        raise InputError(f"{library} is not installed; pip install 'hpcvdj[{extra or library}]'")
