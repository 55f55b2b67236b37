"""Result files of a comparison in the format `hpcvdj-motifs`; they appear complete and are read piece by piece."""

import json
from collections.abc import Iterator
from dataclasses import fields
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.kernels.kmers.kmers import require_parameters
from hpcvdj.motifs.edges import STRANDS, Edges, edge_type, edges_of
from hpcvdj.motifs.scores import Scoring, Terms, make_score
from hpcvdj.motifs.sequences import Compared, Input, InputSet, table_lists
from hpcvdj.results.schema import as_text, write_group
from hpcvdj.storage.damage import damage, damaged
from hpcvdj.storage.hdf5 import Hdf5Writer, write_attributes
from hpcvdj.storage.opening import OpenFile
from hpcvdj.storage.packed import PackedDataset, filters, packed_chunks, write_packed

FORMAT = "hpcvdj-motifs"
VERSION = 2

TEXT = "S"
"""Text of any width."""

_OF_INPUTS = {
    "name": TEXT, "path": TEXT, "sha256": TEXT, "told_by": TEXT,
    "rows": "i8", "without": "i8", "not_productive": "i8",
}  # fmt: skip
"""The fields of an `Input` that a file has, and their types."""

_OF_TERMS = {"kmers": ("i8", "N"), "own": ("f8", "DN"), "expected": ("f8", "DN"), "chance": ("f8", "D")}


def datasets(strands: int, d: int, *, dense: bool, several: bool) -> dict[str, tuple[str, str]]:
    """Return the types and shapes of a file's datasets, except those of /ranks.

    A shape has a letter for each dimension: I inputs, N sequences, D distances 0 … d, S strand relations, E edges.

    several  whether several inputs were compared
    """
    declared = {"sequences/name": (TEXT, "N"), "sequences/length": ("i8", "N")}
    for strand in range(strands):
        declared |= {f"sequences/terms_{strand}/{name}": term for name, term in _OF_TERMS.items()}
    if dense:
        declared["counters"] = "u4", "SDNN"
    else:
        for name, (column, *_) in (edge_type(d).fields or {}).items():
            declared[f"edges/{name}"] = column.base.str, "ED" if column.shape else "E"
    declared |= {f"inputs/{name}": (dtype, "I") for name, dtype in _OF_INPUTS.items()}
    return declared | ({"sequences/inputs": ("u1", "NI")} if several else {})


CHUNK = 256
"""Number of rows and of columns of a chunk of dense counters."""


def edge_batch(edges: Edges, named: dict[str, pa.Array], **further: Any) -> pa.RecordBatch:
    """Return edges as columns name_1, name_2, strand, d0 … dd (counters), score, tables_1, tables_2 and `further`.

    named  see `MotifResult.named`
    """
    sides = {"1": pa.array(edges["row"]), "2": pa.array(edges["column"])}
    columns = {
        **{f"name_{side}": named["name"].take(rows) for side, rows in sides.items()},
        "strand": pa.array(STRANDS).take(pa.array(edges["strand"])),
        **{f"d{h}": plane for h, plane in enumerate(edges["counters"].T)},
        "score": edges["score"],
        **{f"tables_{side}": named["tables"].take(rows) for side, rows in sides.items() if "tables" in named},
        **further,
    }
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def _described(read: InputSet, scoring: Scoring) -> dict[str, NDArray[Any]]:
    """Return the values of the datasets about the compared sequences, by name."""
    values: dict[str, NDArray[Any]] = {
        "sequences/name": as_text(read.sequences.names),
        "sequences/length": read.sequences.lengths,
        "sequences/inputs": read.member.astype(np.uint8),
    }
    for name, dtype in _OF_INPUTS.items():
        column = [getattr(source, name) for source in read.inputs]
        text = dtype == TEXT
        values[f"inputs/{name}"] = as_text(str(value or "") for value in column) if text else np.array(column, dtype)
    for strand, terms in enumerate(scoring.terms):
        values |= {f"sequences/terms_{strand}/{name}": np.asarray(term) for name, term in vars(terms).items()}
    return values


class MotifWriter:
    """Writes a result file, with the counters of all pairs or with edges.

    edges  number of edges that will come; None for the counters of all pairs
    """

    def __init__(self, writer: Hdf5Writer, read: InputSet, scoring: Scoring, edges: int | None) -> None:
        self._writer = writer
        file, n, d = writer.file, len(read.sequences), len(scoring.score.weights) - 1
        values = _described(read, scoring)
        self._edges: dict[str, PackedDataset] = {}
        self._side = min(CHUNK, n)
        several = len(read.inputs) > 1
        sizes = {"N": n, "D": d + 1, "S": len(scoring.terms), "E": edges or 0}
        for name, (dtype, letters) in datasets(len(scoring.terms), d, dense=edges is None, several=several).items():
            if name in values:
                write_packed(file, name, values[name])
                continue
            shape = tuple(sizes[letter] for letter in letters)
            if name == "counters":
                chunks = 1, 1, self._side, self._side
                self._counters = file.create_dataset(name, shape, dtype, chunks=chunks, **filters(dtype))
            else:
                self._edges[name.removeprefix("edges/")] = PackedDataset(file, name, shape, np.dtype(dtype))

    def put_tile(self, strand: int, row: int, column: int, counters: NDArray[np.uint32]) -> None:
        """Write counters [d + 1, rows, columns] from `row` and `column` on, at which chunks begin."""
        side = self._side
        starts, chunks = [], []
        for h, i, j in np.ndindex(len(counters), *(-(-size // side) for size in counters.shape[1:])):
            block = counters[h, i * side : (i + 1) * side, j * side : (j + 1) * side]
            if block.any():
                # Chunks at the border have full size, too.  Chunks that are not written are zero.
                chunk = np.zeros((side, side), np.uint32)
                chunk[: block.shape[0], : block.shape[1]] = block
                starts.append((strand, h, row + i * side, column + j * side))
                chunks.append(chunk)
        for start, packed in zip(starts, packed_chunks(chunks), strict=True):
            self._counters.id.write_direct_chunk(start, packed)
        self._writer.check()

    def put_edges(self, edges: Edges) -> None:
        """Append edges."""
        for name, dataset in self._edges.items():
            dataset.put(edges[name])
        self._writer.check()

    def finish(self, attributes: dict[str, Any], ranks: list[dict[str, str]]) -> None:
        """Write the attributes and the facts of each rank."""
        for dataset in self._edges.values():
            dataset.close()
        write_attributes(self._writer.file, {"format": FORMAT, "format_version": VERSION, **attributes})
        write_group(self._writer.file, "ranks", {name: [facts[name] for facts in ranks] for name in ranks[0]})


class MotifResult(OpenFile):
    """The result file of a comparison, open for reading.  Use it as a context manager, or `close` it.

    k, d     bases of a k-mer; the largest Hamming distance
    strands  1 if sequences were compared as given, 2 if also with the reverse complements
    dense    whether the file has the counters of all pairs instead of edges
    """

    _command, _form, _version = "hpcvdj motifs compare", FORMAT, VERSION

    def _begin(self) -> None:
        if self._file.attrs["format_version"] < VERSION:
            raise InputError(f"{self.path}: an earlier version of hpcvdj wrote it; compare again")
        self.k, self.d, self.strands = (int(self._file.attrs[name]) for name in ("k", "d", "strands"))
        self.dense = "counters" in self._file
        require_parameters(self.k, self.d)
        if self.strands not in (1, 2):
            raise damaged(self.path, f"it compares {self.strands} strands")
        inputs = len(self._file["inputs/name"])
        edges = 0 if self.dense else len(self._file["edges/row"])
        sizes = {"I": inputs, "N": len(self), "D": self.d + 1, "S": self.strands, "E": edges}
        declared = datasets(self.strands, self.d, dense=self.dense, several=inputs > 1)
        for name, (dtype, letters) in declared.items():
            dataset = self._file[name]
            # Values must not change when they are read.
            fits = dataset.dtype.kind == TEXT if dtype == TEXT else np.can_cast(dataset.dtype, dtype, "safe")
            if dataset.shape != tuple(sizes[letter] for letter in letters) or not fits:
                raise damaged(self.path, f"/{name} is of type {dataset.dtype}, shape {dataset.shape}")
        if not isinstance(json.loads(self._file.attrs["weights"]), list):
            raise damaged(self.path, "its weights are not a JSON array")
        self.scoring  # noqa: B018 (checks the score and keeps it)

    def __len__(self) -> int:
        return int(self._file["sequences/length"].shape[0])

    @property
    def compared(self) -> Compared:
        """The inputs of the comparison."""
        field, rows = (str(self._file.attrs.get(name, "")) for name in ("sequence_field", "rows"))
        inputs = []
        with damage(self.path):
            columns = {name: self._file[f"inputs/{name}"][:].tolist() for name in _OF_INPUTS}
            for values in zip(*columns.values(), strict=True):
                texts = (value.decode() if isinstance(value, bytes) else value for value in values)
                facts: dict[str, Any] = dict(zip(columns, texts, strict=True))
                inputs.append(Input(**facts | {"path": Path(facts["path"]) if facts["path"] else None}))
        return Compared(tuple(inputs), field, "productive" if rows == "productive" else "all")

    @property
    def tables(self) -> list[str]:
        """For each sequence, the names of its tables with commas between them; empty if only one table was compared."""
        inputs = self.compared.inputs
        if len(inputs) < 2:
            return []
        with damage(self.path):
            member = self._file["sequences/inputs"][:] != 0
        return table_lists(member, [source.name for source in inputs])

    @property
    def named(self) -> dict[str, pa.Array]:
        """The `name` of each sequence and, if several tables were compared, its `tables`."""
        columns = {"name": self.names, "tables": self.tables}
        return {name: pa.array(texts, pa.string()) for name, texts in columns.items() if texts or name == "name"}

    @property
    def names(self) -> list[str]:
        """The names of the sequences."""
        with damage(self.path):
            return [name.decode() for name in self._file["sequences/name"][:].tolist()]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bases of each sequence, int64 [sequences]."""
        return np.asarray(self._file["sequences/length"][:])

    @cached_property
    def scoring(self) -> Scoring:
        """The score of pairs, and its terms of each sequence (strand 1: of its reverse complement)."""
        weights = json.loads(self._file.attrs["weights"])
        groups = [self._file[f"sequences/terms_{strand}"] for strand in range(self.strands)]
        terms = [Terms(**{field.name: group[field.name][:] for field in fields(Terms)}) for group in groups]
        return Scoring(make_score(str(self._file.attrs["score"]), weights, self.k, self.d), terms)

    def counters(self, strand: int = 0, rows: slice = slice(None), columns: slice = slice(None)) -> NDArray[np.uint32]:
        """Return D of a rectangle of pairs, uint32 [d + 1, rows, columns].  Raise InputError if the file has edges."""
        if not self.dense:
            raise InputError(
                f"{self.path}: has edges only; compare without {option('min_score')} and {option('top')} for all pairs"
            )
        data = self._file["counters"]
        r0, r1, _ = rows.indices(len(self))
        c0, c1, _ = columns.indices(len(self))
        exact: NDArray[np.uint32] = data[strand, :, r0:r1, c0:c1]
        if c0 < r1:
            # Counters are symmetric, and the file has only those on or above the diagonal.
            below = np.arange(r0, r1)[:, None] > np.arange(c0, c1)[None, :]
            exact = np.where(below, data[strand, :, c0:c1, r0:r1].transpose(0, 2, 1), exact)
        return exact

    def __repr__(self) -> str:
        """The file, and a summary of what was compared."""
        if not self._file:
            return f"<closed MotifResult of {self.path}>"
        content = "all pairs" if self.dense else f"{len(self._file['edges/row']):,} edges"
        return f"<MotifResult of {self.path}: {len(self):,} sequences, k={self.k}, d={self.d}, {content}>"

    def edges(self, rows: int = 1 << 20) -> Iterator[Edges]:
        """Yield the stored edges by strand and tile, `rows` at a time.  Raise InputError if the file has all pairs."""
        if self.dense:
            raise InputError(
                f"{self.path}: has all pairs, not edges; choose some with {option('min_score')} or {option('top')}"
            )
        group = self._file["edges"]
        for first in range(0, len(group["row"]), rows):
            edges = edges_of({name: group[name][first : first + rows] for name in edge_type(self.d).names or ()})
            inside = (edges["row"] >= 0) & (edges["row"] < edges["column"]) & (edges["column"] < len(self))
            if not (inside & np.isin(edges["strand"], range(self.strands))).all():
                raise damaged(self.path, "/edges has a pair of sequences that there are not")
            yield edges

    def to_table(self) -> pa.Table:
        """Return the stored edges as a pyarrow Table.

        The columns are name_1, name_2, strand, d0 … dd, score and, if several tables were compared, tables_1 and
        tables_2.  Raise InputError if the file has all pairs.
        """
        named = self.named
        nothing = np.empty(0, edge_type(self.d))
        return pa.Table.from_batches([edge_batch(edges, named) for edges in chain([nothing], self.edges())])
