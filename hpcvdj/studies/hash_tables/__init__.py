"""The thesis's system: multi-level hash tables, compared pair by pair (docs/motif_tables.md)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.kernels.kmers.masks import exact_from_raw
from hpcvdj.runs.pacing import Pace
from hpcvdj.studies.hash_tables.compare_cpu import compare
from hpcvdj.studies.hash_tables.construction import Tables, build, merge_buckets
from hpcvdj.studies.hash_tables.options import TableOptions

__all__ = ["TableOptions", "TablesComparison"]


class TablesComparison:
    """The tables of a set of sequences, `columns`, to compare others with, or its own."""

    def __init__(
        self,
        columns: Kmers,
        d: int,
        options: TableOptions | None = None,
        backend: str = "cpu",
        pace: Pace | None = None,
    ) -> None:
        """Builds the tables, at `pace`, and, for `cuda`, uploads them.

        InputError for k, d and options that cannot be, MachineError for too little memory or no GPU.
        """
        if backend not in ("cpu", "cuda"):
            raise InputError(f"backend {backend!r}: choose cpu or cuda")
        self.d = d
        self.options = options or TableOptions()
        self._backend = backend
        self._pace = pace
        self.tables = self._build(columns)
        self._gpu: Any = None
        if backend == "cuda":
            from hpcvdj.kernels.cuda import CudaBackend, device_count

            if device_count() == 0:
                CudaBackend()  # says what is missing
            from hpcvdj.studies.hash_tables.compare_cuda import CudaTables

            self._gpu = CudaTables(self.tables, self.options)

    def counters(self, rows: Kmers, first: int | None = None) -> NDArray[Any]:
        """D, uint32 or uint64 [d + 1, rows, columns]: position pairs at Hamming distance exactly h.

        With `first`, `rows` are the columns from `first` on, and only the columns c ≥ first + r of row r are compared;
        the rest is 0.
        """
        return exact_from_raw(self.raw(rows, first), self.tables.k)

    def raw(self, rows: Kmers, first: int | None = None) -> NDArray[Any]:
        """R, the sums over the sub-tables of each meta-table, in the shape and with the `first` of `counters`."""
        if rows.k != self.tables.k:
            raise InputError(f"k-mers of {rows.k} and of {self.tables.k} bases cannot be compared")
        if first is not None and first + len(rows) > len(self.tables):
            raise InputError(f"rows {first} to {first + len(rows) - 1} of {len(self.tables)} columns")
        others = self.tables if first is not None else self._build(rows)
        some = range(first, first + len(rows)) if first is not None else range(len(rows))
        if self._gpu is not None:
            result: NDArray[Any] = self._gpu.compare(others, some, first)
            return result
        return compare(others, some, self.tables, range(len(self.tables)), first)

    def _build(self, kmers: Kmers) -> Tables:
        return merge_buckets(build(kmers, self.d, self.options, self._pace), self.options.compared_with(self._backend))
