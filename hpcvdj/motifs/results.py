"""Result files of a comparison, format `hpcvdj-motifs`: written whole or not at all, read piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.motifs.edges import Edges
from hpcvdj.motifs.scores import Scoring, Terms, make_score
from hpcvdj.results.schema import as_text, write_group
from hpcvdj.storage.hdf5 import (
    FILTERS,
    Hdf5Writer,
    PackedDataset,
    atomic_hdf5,
    open_hdf5,
    packed_chunks,
    write_attributes,
)

FORMAT = "hpcvdj-motifs"
VERSION = 2
STRANDS = ("+", "-")
"""The relation of a pair: both as given, or one of them reverse-complemented."""

CHUNK = 256
"""Rows and columns of a chunk of the dense counters."""

_TERMS = ("kmers", "own", "expected", "chance")


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

    def attributes(self) -> dict[str, Any]:
        """The parameters as attributes of the file."""
        parameters = {name: getattr(self, name) for name in ("k", "d", "strands", "distinct")}
        score = self.scoring.score
        return {**parameters, "score": score.name, "weights": list(score.weights)}


class MotifWriter:
    """A result file that is being written: with the counters of all pairs, or with edges."""

    def __init__(self, writer: Hdf5Writer, header: Header, edges: int | None) -> None:
        self._writer, self._header = writer, header
        file, n = writer.file, len(header.names)
        file["sequences/name"] = as_text(header.names)
        file["sequences/length"] = header.lengths
        for strand, terms in enumerate(header.scoring.terms[: header.strands]):
            for name in _TERMS:
                file[f"sequences/terms_{strand}/{name}"] = getattr(terms, name)
        if edges is None:
            self._side = min(CHUNK, n)
            shape, chunks = (header.strands, header.d + 1, n, n), (1, 1, self._side, self._side)
            self._counters = file.create_dataset("counters", shape, np.uint32, chunks=chunks, **FILTERS)
            return
        counters = Edges.none(header.d).columns()
        self._edges = {
            name: PackedDataset(file, f"edges/{name}", (edges, *column.shape[1:]), column.dtype)
            for name, column in counters.items()
        }
        self._put = 0

    def put_tile(self, strand: int, row: int, column: int, counters: NDArray[np.uint32]) -> None:
        """Counters [d + 1, rows, columns] of rows from `row` and columns from `column` on, which begin chunks."""
        side = self._side
        starts, chunks = [], []
        for h, i, j in np.ndindex(len(counters), *(-(-size // side) for size in counters.shape[1:])):
            block = counters[h, i * side : (i + 1) * side, j * side : (j + 1) * side]
            if block.any():
                # Chunks at the border are whole as well; those that are not written are zero.
                chunk = np.zeros((side, side), np.uint32)
                chunk[: block.shape[0], : block.shape[1]] = block
                starts.append((strand, h, row + i * side, column + j * side))
                chunks.append(chunk)
        for start, packed in zip(starts, packed_chunks(chunks), strict=True):
            self._counters.id.write_direct_chunk(start, packed)
        self._writer.check()

    def put_edges(self, edges: Edges) -> None:
        """Append edges."""
        for name, column in edges.columns().items():
            self._edges[name].put(column, self._put)
        self._put += len(edges)
        self._writer.check()

    def finish(self, attributes: dict[str, Any], ranks: list[dict[str, str]]) -> None:
        """Write what is known only at the end: attributes, and the facts of each rank."""
        for dataset in vars(self).get("_edges", {}).values():
            dataset.close()
        known = {"format": FORMAT, "format_version": VERSION, **self._header.attributes()}
        write_attributes(self._writer.file, known | attributes)
        write_group(self._writer.file, "ranks", {name: [facts[name] for facts in ranks] for name in ranks[0]})


@contextmanager
def motif_writer(
    target: Path, header: Header, *, edges: int | None, overwrite: bool = False, temporary: Path | None = None
) -> Iterator[MotifWriter]:
    """Write a result to `target`, which appears if the block succeeds.

    edges  how many there will be; None for the counters of all pairs

    InputError and MachineError as `atomic_hdf5` raises them.
    """
    with atomic_hdf5(target, overwrite=overwrite, temporary=temporary) as writer:
        yield MotifWriter(writer, header, edges)


class MotifResult:
    """A comparison's result file, open for reading.  Use as a context manager, or `close` it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = open_hdf5(self.path, "hpcvdj motifs compare", FORMAT, VERSION)

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
        return np.asarray(self._file["sequences/length"][:])

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
        """1 if sequences were compared as given, 2 if also against the reverse complements."""
        return int(self._file.attrs["strands"])

    @cached_property
    def scoring(self) -> Scoring:
        """How pairs are scored, and what the score knows of each sequence (strand 1: of its reverse complement)."""
        weights = json.loads(self._file.attrs["weights"])
        groups = [self._file[f"sequences/terms_{strand}"] for strand in range(self.strands)]
        terms = [Terms(*(group[name][:] for name in _TERMS)) for group in groups]
        return Scoring(make_score(str(self._file.attrs["score"]), weights, self.k, self.d), terms)

    @property
    def dense(self) -> bool:
        """Whether it has the counters of all pairs, not edges."""
        return "counters" in self._file

    def counters(self, strand: int = 0, rows: slice = slice(None), columns: slice = slice(None)) -> NDArray[np.uint32]:
        """D of a rectangle of pairs, uint32 [d + 1, rows, columns].  InputError if the file has edges."""
        if not self.dense:
            raise InputError(f"{self.path}: has edges only; compare without --min-score and --top for all pairs")
        data = self._file["counters"]
        r0, r1, _ = rows.indices(len(self))
        c0, c1, _ = columns.indices(len(self))
        exact: NDArray[np.uint32] = data[strand, :, r0:r1, c0:c1]
        if c0 < r1:
            # The relation is symmetric, and only what is on or above the diagonal is stored.
            below = np.arange(r0, r1)[:, None] > np.arange(c0, c1)[None, :]
            exact = np.where(below, data[strand, :, c0:c1, r0:r1].transpose(0, 2, 1), exact)
        return exact

    def edges(self, rows: int = 1 << 20) -> Iterator[Edges]:
        """The stored edges, by strand and tile, `rows` at a time; InputError if the file has all pairs."""
        if self.dense:
            raise InputError(f"{self.path}: has all pairs, not edges; choose some with --min-score or --top")
        group = self._file["edges"]
        names = Edges.none(self.d).columns()
        for first in range(0, len(group["row"]), rows):
            yield Edges(**{name: group[name][first : first + rows] for name in names})
