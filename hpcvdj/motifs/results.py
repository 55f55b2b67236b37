"""The HDF5 file of a comparison, format `hpcvdj-motifs`: written whole or not at all, opened, read tile by tile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.motifs.edges import Edges
from hpcvdj.kernels.kmers.masks import raw_from_exact
from hpcvdj.motifs.scores import Scoring, Terms
from hpcvdj.storage import AtomicHdf5, open_result, write_provenance

FORMAT = "hpcvdj-motifs"
VERSION = 1
STRANDS = ("+", "-")
"""The relation of a pair: both as given, or one of them reverse-complemented."""

_EDGE_CHUNK = 1 << 14
_SYNC_BYTES = 1 << 28

CHUNK = 256
"""Rows and columns of a chunk of the dense counters."""


@dataclass(frozen=True)
class Header:
    """What a result says of its sequences and parameters."""

    names: list[str]
    lengths: NDArray[np.int64]
    k: int
    d: int
    strands: int
    distinct: bool
    scoring: Scoring
    terms: tuple[Terms, ...]


class MotifStore:
    """Writes a result file; it appears under its name when all went well.

    Dense counters (`put_tile`) and edges (`put_edges`) exclude each other.
    """

    def __init__(
        self, target: Path, header: Header, *, dense: bool, overwrite: bool = False, temporary: Path | None = None
    ) -> None:
        self._header, self._dense = header, dense
        self._atomic = AtomicHdf5(target, overwrite=overwrite, temporary=temporary)
        self._unsynced = 0

    def __enter__(self) -> MotifStore:
        self._file = self._atomic.__enter__()
        header = self._header
        group = self._file.create_group("sequences")
        group.create_dataset("name", data=header.names, dtype=h5py.string_dtype())
        group.create_dataset("length", data=header.lengths)
        for s, terms in enumerate(header.terms):
            part = group.create_group(f"terms_{s}")
            for name in ("kmers", "own", "expected", "chance"):
                part.create_dataset(name, data=getattr(terms, name))
        if self._dense:
            n = len(header.names)
            shape = (header.strands, header.d + 1, n, n)
            chunk = min(CHUNK, max(1, n))
            options: dict[str, Any] = {"chunks": (1, 1, chunk, chunk), "compression": "lzf", "shuffle": True}
            self._counters = self._file.create_dataset("counters", shape, np.uint32, **(options if n else {}))
        return self

    def put_tile(self, strand: int, row: int, column: int, counters: NDArray[np.uint32]) -> None:
        """Counters [d + 1, rows, columns] of rows from `row` and columns from `column` on; whole chunks."""
        _, rows, columns = counters.shape
        self._counters[strand, :, row : row + rows, column : column + columns] = counters
        self._wrote(counters.nbytes)

    def _wrote(self, size: int) -> None:
        self._atomic.check()
        self._unsynced += size
        if self._unsynced > _SYNC_BYTES:
            self._atomic.sync()
            self._unsynced = 0

    def put_edges(self, edges: Edges) -> int:
        """Append edges; how many."""
        group = self._file.require_group("edges")
        for name in Edges.__dataclass_fields__:
            values = getattr(edges, name)
            if name not in group:
                group.create_dataset(
                    name, data=values, maxshape=(None, *values.shape[1:]), chunks=(_EDGE_CHUNK, *values.shape[1:]),
                    compression="lzf", shuffle=True,
                )  # fmt: skip
                continue
            data = group[name]
            first = data.shape[0]
            data.resize(first + len(values), axis=0)
            data[first:] = values
        self._wrote(sum(getattr(edges, name).nbytes for name in Edges.__dataclass_fields__))
        return len(edges)

    def finish(self, attributes: dict[str, Any], ranks: list[dict[str, str]]) -> None:
        """Write what is known only at the end."""
        header = self._header
        known = {
            "format": FORMAT,
            "format_version": VERSION,
            "k": header.k,
            "d": header.d,
            "strands": header.strands,
            "distinct": header.distinct,
            "score": header.scoring.kind,
            "weights": list(header.scoring.weights),
        }
        write_provenance(self._file, {**known, **attributes}, ranks)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._atomic.__exit__(kind, value, trace)


class MotifResult:
    """A comparison's result file, open for reading.  Use as a context manager, or `close` it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = open_result(self.path, "hpcvdj motifs compare", FORMAT, VERSION)

    def __enter__(self) -> MotifResult:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __len__(self) -> int:
        """Sequences."""
        return int(self._file["sequences/length"].shape[0])

    @property
    def names(self) -> list[str]:
        """The sequences' names."""
        return [name.decode() for name in self._file["sequences/name"][:].tolist()]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bases of each sequence, int64 [sequences]."""
        found: NDArray[np.int64] = self._file["sequences/length"][:]
        return found

    @property
    def provenance(self) -> dict[str, Any]:
        """The file's attributes: parameters, versions, command line, input, machine."""
        return {name: value.item() if hasattr(value, "item") else value for name, value in self._file.attrs.items()}

    @property
    def k(self) -> int:
        """Bases of a k-mer."""
        return int(self._file.attrs["k"])

    @property
    def d(self) -> int:
        """The largest Hamming distance."""
        return int(self._file.attrs["d"])

    @property
    def strands(self) -> int:
        """1 if sequences were compared as given, 2 if against the reverse complements too."""
        return int(self._file.attrs["strands"])

    @property
    def scoring(self) -> Scoring:
        """How pairs are scored."""
        return Scoring(self._file.attrs["score"], tuple(json.loads(self._file.attrs["weights"])))

    @property
    def dense(self) -> bool:
        """Whether the counters of all pairs are there, not edges only."""
        return "counters" in self._file

    def terms(self, strand: int = 0) -> Terms:
        """What the scores know of each sequence (strand 1: of its reverse complement)."""
        group = self._file[f"sequences/terms_{strand}"]
        return Terms(*(group[name][:] for name in ("kmers", "own", "expected", "chance")))

    def counters(
        self, strand: int = 0, rows: slice = slice(None), columns: slice = slice(None), *, raw: bool = False
    ) -> NDArray[np.uint32] | NDArray[np.uint64]:
        """D of a rectangle of pairs, uint32 [d + 1, rows, columns]; with `raw` R, uint64.

        InputError if the file has edges only.
        """
        if not self.dense:
            raise InputError(f"{self.path}: has edges only; compare without --min-score and --top for all pairs")
        data = self._file["counters"]
        r0, r1, _ = rows.indices(len(self))
        c0, c1, _ = columns.indices(len(self))
        # Only what lies on or above the diagonal is stored; the relation is symmetric.
        upper = data[strand, :, r0:r1, c0:c1]
        lower = data[strand, :, c0:c1, r0:r1].transpose(0, 2, 1)
        below = np.arange(r0, r1)[:, None] > np.arange(c0, c1)[None, :]
        exact: NDArray[np.uint32] = np.where(below, lower, upper)
        return raw_from_exact(exact.astype(np.uint64), self.k) if raw else exact

    def scores(self, strand: int = 0, rows: slice = slice(None), columns: slice = slice(None)) -> NDArray[np.float64]:
        """Scores of a rectangle of pairs, float64 [rows, columns]; for dense results."""
        r0, r1, _ = rows.indices(len(self))
        c0, c1, _ = columns.indices(len(self))
        counters = self.counters(strand, rows, columns)
        found: NDArray[np.float64] = self.scoring.of(
            counters, self.terms(0).part(r0, r1), self.terms(strand).part(c0, c1)
        )
        return found

    def edges(self, rows: int = 1 << 20) -> Iterator[Edges]:
        """The stored edges, by strand and tile, `rows` at a time; InputError if the result is dense."""
        if self.dense:
            raise InputError(f"{self.path}: has all pairs, not edges; select some with --min-score or --top")
        group = self._file["edges"]
        for first in range(0, group["row"].shape[0], rows):
            yield Edges(*(group[name][first : first + rows] for name in Edges.__dataclass_fields__))
