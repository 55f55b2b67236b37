"""Tiles: the rectangles that a comparison is cut into, which rank computes which, and the files of finished tiles.

A load is a range of columns that a rank holds at a time; a tile is a range of rows against a load.  Each finished tile
is a file in the folder of the run, whole or absent, until the result is written: an interrupted run continues from
there, on any number of ranks.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, MachineError
from hpcvdj.runs.folder import save_failure
from hpcvdj.runs.partition import block_range
from hpcvdj.storage.files import atomic_path

TILES = "tile-*.npz"
"""The files of finished tiles."""


@dataclass(frozen=True, order=True)
class Tile:
    """Rows row … row_stop-1 against columns column … column_stop-1, on the same strands (0) or opposite ones (1)."""

    strand: int
    column: int
    column_stop: int
    row: int
    row_stop: int

    @property
    def pairs(self) -> int:
        """Pairs of the tile whose column is not before the row."""
        rows = np.arange(self.row, self.row_stop)
        return int(np.maximum(self.column_stop - np.maximum(rows, self.column), 0).sum())

    @property
    def file_name(self) -> str:
        """Of the tile's file."""
        return TILES.replace("*", "-".join(map(str, astuple(self))))


def plan(n: int, strands: int, load: int, height: int) -> list[Tile]:
    """The tiles of all pairs of n sequences, in loads of `load` columns and ranges of `height` rows."""
    return [
        Tile(strand, column, min(n, column + load), row, min(n, column + load, row + height))
        for strand in range(strands)
        for column in range(0, n, load)
        for row in range(0, min(n, column + load), height)
    ]


def tiles_of_rank(tiles: list[Tile], rank: int, ranks: int, *, few_loads: bool = False) -> list[Tile]:
    """The tiles of one rank, load by load.

    Every rank has its part of each load: equation (2) on the load's tiles, long and short ones in turn; or on all
    tiles together if loads have fewer tiles than there are ranks.

    few_loads  every rank has consecutive loads instead, with the same number of pairs to the nearest tile; for
               methods whose rows need no tables
    """
    if few_loads:
        pairs = np.array([tile.pairs for tile in tiles], dtype=np.float64)
        middles = np.cumsum(pairs) - pairs / 2
        owners = np.minimum(middles * ranks // max(1.0, pairs.sum()), ranks - 1)
        return [tile for tile, owner in zip(tiles, owners, strict=True) if owner == rank]
    loads: dict[tuple[int, int], list[Tile]] = {}
    for tile in sorted(tiles):
        loads.setdefault((tile.strand, tile.column), []).append(tile)
    together = max(map(len, loads.values()), default=0) < ranks
    own = []
    for group in [sorted(tiles)] if together else loads.values():
        # Upper rows have more columns to their right: first, last, second, last but one …
        folded = [group[q // 2] if q % 2 == 0 else group[len(group) - 1 - q // 2] for q in range(len(group))]
        first, last = block_range(len(folded), 1, rank, ranks)
        own += sorted(folded[first:last]) if together else folded[first:last]
    return own


class TileFiles:
    """The files of finished tiles, in a folder that every rank writes to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, tile: Tile, arrays: dict[str, NDArray[Any]]) -> None:
        """Write the file of a tile.  MachineError if the disk is full."""
        try:
            with atomic_path(self.folder / tile.file_name, overwrite=True) as path, open(path, "wb") as stream:
                np.savez(stream, **arrays)  # type: ignore[arg-type]
        except MachineError as error:
            raise save_failure(error) from None

    def read(self, tile: Tile, names: Iterable[str]) -> dict[str, NDArray[Any]]:
        """Some arrays of a tile.  InputError if its file is damaged."""
        path = self.folder / tile.file_name
        try:
            with np.load(path) as arrays:
                return {name: arrays[name] for name in names}
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(f"{path}: is damaged ({error}); remove it, and --resume compares it again") from None

    def missing(self, tiles: list[Tile]) -> list[Tile]:
        """Those of `tiles` that have no file."""
        done = {path.name for path in self.folder.glob(TILES)}
        return [tile for tile in tiles if tile.file_name not in done]
