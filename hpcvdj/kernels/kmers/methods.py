"""The methods by name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.buckets import bytes_per_kmer
from hpcvdj.kernels.kmers.profile import Comparison, Profile
from hpcvdj.kernels.kmers.costs import Choice
from hpcvdj.kernels.kmers.masks import block_masks, wildcard_masks
from hpcvdj.runs.pacing import Pace
from hpcvdj.studies.hash_tables import TablesComparison

METHODS = ("pigeonhole", "index", "matrix", "bitslice", "tables")
"""`tables` is the thesis's system; the others are this program's."""

LONGEST_K = {"matrix": {"cpu": 11, "cuda": 9}}


def require_method(name: str, k: int, backend: str) -> None:
    """InputError if there is no such method, or none for this k."""
    if name not in METHODS:
        raise InputError(f"no method {name!r}; there are auto, {', '.join(METHODS)}")
    longest = LONGEST_K.get(name, {}).get(backend, k)
    if k > longest:
        raise InputError(f"--method {name} on {backend}: its tables have 4^k rows, for k up to {longest}; not {k}")


def default_blocks(k: int, d: int) -> int:
    """Runs that `pigeonhole` cuts a k-mer into, if nothing speaks for another number."""
    return min(k, d + 3)


def bytes_for(choice: Choice, k: int, d: int, backend: str) -> int:
    """Bytes of memory for each k-mer of the columns, about."""
    if choice.method == "pigeonhole":
        tables = len(block_masks(k, d, choice.blocks or default_blocks(k, d))[1])
    elif choice.method in ("index", "tables"):
        tables = sum(len(wildcard_masks(k, m)) for m in range(d + 1))
    else:
        tables = 1
    # A GPU's have positions too, and up to two buckets for an entry.
    each = bytes_per_kmer(k) + (12 if backend == "cuda" else 0)
    # What sorting needs beside the tables themselves.
    return tables * each + 64


def rows_need_no_tables(choice: Choice, backend: str) -> bool:
    """Whether comparing costs nothing more if the rows are not among the columns loaded."""
    return backend == "cuda" and choice.method in ("pigeonhole", "index")


def widest_load(d: int) -> int:
    """Columns that such a method takes at a time anyway."""
    from hpcvdj.kernels.kmers.join_cuda import widest_shard

    return widest_shard(d)


class _Tables:
    """The thesis's system under the interface of the other methods."""

    def __init__(self, columns: Profile, d: int, backend: str, pace: Pace | None) -> None:
        self._d, self._backend, self._pace = d, backend, pace or Pace()
        # Building has a pace of its own: a sequence takes another time there.
        building = Pace(self._pace.between)
        self._columns, self._tables = columns, TablesComparison(columns.kmers, d, backend=backend, pace=building)

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> NDArray[np.uint32]:
        """D of `rows` against the columns."""
        begin, end = first or 0, len(self._columns) if last is None else last
        mine = self._columns.kmers.part(begin, end) if rows is None else rows.kmers
        # The tables' `first` takes rows for columns, which those of the other strand are not.
        own = begin if rows is None and first is not None else None
        if self._backend == "cuda":
            return self._tables.counters(mine, own).astype(np.uint32, copy=False)
        found = np.empty((self._d + 1, len(mine), len(self._columns)), dtype=np.uint32)
        for a, b in self._pace.pieces(len(mine), 1):
            found[:, a:b] = self._tables.counters(mine.part(a, b), None if own is None else own + a)
        return found


def load(choice: Choice, columns: Profile, d: int, backend: str, pace: Pace | None = None) -> Comparison:
    """The method loaded with `columns`; on a CPU it works in pieces, at `pace`."""
    name, k = choice.method, columns.k
    require_method(name, k, backend)
    blocks = choice.blocks or default_blocks(k, d)
    if name == "pigeonhole" and not d < blocks <= k:
        raise InputError(f"--blocks {blocks}: between d + 1 = {d + 1} and k = {k}")
    if name == "tables":
        return _Tables(columns, d, backend, pace)
    if backend == "cuda":
        from hpcvdj.kernels.device import failures_named
        from hpcvdj.motifs.cuda import bitslice as gpu_bitslice
        from hpcvdj.motifs.cuda import join as gpu_join
        from hpcvdj.motifs.cuda import matrix as gpu_matrix

        with failures_named():
            if name == "pigeonhole":
                return gpu_join.Pigeonhole(columns, d, blocks)
            if name == "index":
                return gpu_join.Index(columns, d)
            return gpu_matrix.Matrix(columns, d) if name == "matrix" else gpu_bitslice.Bitslice(columns, d)
    from hpcvdj.motifs.cpu import bitslice, join, matrix

    if name == "pigeonhole":
        return join.Pigeonhole(columns, d, blocks, pace)
    if name == "index":
        return join.Index(columns, d, pace)
    return matrix.Matrix(columns, d, pace) if name == "matrix" else bitslice.Bitslice(columns, d, pace)
