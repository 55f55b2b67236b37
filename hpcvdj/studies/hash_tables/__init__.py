"""The thesis's system: multi-level hash tables, compared pair by pair (docs/motif_tables.md)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hpcvdj.errors import InputError, choices, require_choice
from hpcvdj.kernels.backends import Backend, open_backend
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.kernels.kmers.masks import exact_from_raw
from hpcvdj.studies.hash_tables.compare_cpu import compare
from hpcvdj.studies.hash_tables.construction import Tables, build, merge_buckets
from hpcvdj.studies.hash_tables.options import TableOptions

__all__ = ["TableOptions", "TablesComparison"]


class TablesComparison:
    """The tables of a set of sequences, `columns`, to compare with others, or with each other."""

    def __init__(self, columns: Kmers, d: int, options: TableOptions | None = None, backend: str = "cpu") -> None:
        """Builds the tables and, for `cuda`, uploads them.

        InputError for k, d and options out of range, MachineError for too little memory or no GPU.
        """
        require_choice("backend", backend, choices(Backend))
        self.d, self.options, self._backend = d, options or TableOptions(), backend
        self.tables = self._build(columns)
        self._gpu: Any = None
        if backend == "cuda":
            open_backend(backend)
            from hpcvdj.studies.hash_tables.compare_cuda import CudaTables

            self._gpu = CudaTables(self.tables, self.options)

    def counters(self, rows: Kmers, first: int | None = None) -> NDArray[Any]:
        """D, uint32 or uint64 [d + 1, rows, columns]: position pairs at Hamming distance exactly h.

        first  the rows are the columns from `first` on, and only the columns c ≥ first + r of row r are compared; the
               other counters are 0
        """
        return exact_from_raw(self.raw(rows, first), self.tables.k)

    def raw(self, rows: Kmers, first: int | None = None) -> NDArray[Any]:
        """R, the sums over the sub-tables of each meta-table; shape and `first` as of `counters`."""
        if rows.k != self.tables.k:
            raise InputError(f"k-mers of {rows.k} and of {self.tables.k} bases cannot be compared")
        if first is not None and first + len(rows) > len(self.tables):
            raise InputError(f"rows {first} to {first + len(rows) - 1} of {len(self.tables)} columns")
        others = self.tables if first is not None else self._build(rows)
        chosen = range(first or 0, (first or 0) + len(rows))
        if self._gpu is not None:
            counters: NDArray[Any] = self._gpu.compare(others, chosen, first)
            return counters
        return compare(others, chosen, self.tables, range(len(self.tables)), first)

    def _build(self, kmers: Kmers) -> Tables:
        return merge_buckets(build(kmers, self.d, self.options), self.options.compared_with(self._backend))
