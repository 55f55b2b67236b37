"""Tiles: the rectangles that a comparison is cut into, who does which, and the files in which they wait.

A load is a range of columns that a rank holds at a time; a tile is a run of rows against a load.  Each tile that is
done lies as a file in the folder NAME.checkpoint beside the result NAME, whole or not at all, until the result is
put together: a run that ended early goes on with what is there, on any number of ranks.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.runs.checkpoint import folder_of, require_same_run, result_path, save_fault, says_another_run
from hpcvdj.errors import InputError
from hpcvdj.motifs.edges import Edges
from hpcvdj.runs.partition import block_range
from hpcvdj.storage import write_whole

ALIGNED = 512
"""Rows and columns at which tiles are cut."""

_TILES = "tile-*.npz"


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
        """Pairs of the tile with the column after the row or on it."""
        rows = np.arange(self.row, self.row_stop)
        return int(np.maximum(self.column_stop - np.maximum(rows, self.column), 0).sum())


def plan(n: int, strands: int, load: int, height: int) -> list[Tile]:
    """The tiles of all pairs of n sequences, in loads of `load` columns and runs of `height` rows."""
    return [
        Tile(strand, column, min(n, column + load), row, min(n, column + load, row + height))
        for strand in range(strands)
        for column in range(0, n, load)
        for row in range(0, min(n, column + load), height)
    ]


def of_rank(tiles: list[Tile], rank: int, ranks: int, *, few_loads: bool = False) -> list[Tile]:
    """The tiles of one rank, load by load.

    Every rank has its part of each load: equation (2) on the load's tiles, long and short ones in turn, or on all
    tiles together where loads have fewer than there are ranks.  `few_loads`: every rank has a run of loads instead,
    with as many pairs as another's to the nearest tile; for methods whose rows need no tables.
    """
    if few_loads:
        pairs = np.array([tile.pairs for tile in tiles], dtype=np.float64)
        middles = np.cumsum(pairs) - pairs / 2
        owners = np.minimum(middles * ranks // max(1.0, pairs.sum()), ranks - 1)
        return [tile for tile, owner in zip(tiles, owners, strict=True) if owner == rank]
    loads: dict[tuple[int, int], list[Tile]] = {}
    for tile in sorted(tiles):
        loads.setdefault((tile.strand, tile.column), []).append(tile)
    few = max(map(len, loads.values()), default=0) < ranks
    mine = []
    for these in [sorted(tiles)] if few else loads.values():
        # Upper rows have more columns to come: first, last, second, last but one …
        folded = [these[q // 2] if q % 2 == 0 else these[len(these) - 1 - q // 2] for q in range(len(these))]
        first, last = block_range(len(folded), 1, rank, ranks)
        mine += sorted(folded[first:last]) if few else folded[first:last]
    return mine


class TileFolder:
    """The checkpoint folder of a result, which every rank writes to."""

    def __init__(self, target: Path) -> None:
        self.folder = folder_of(target)

    def open(
        self, identity: dict[str, Any], layout: dict[str, int], *, resume: bool, overwrite: bool
    ) -> dict[str, int]:
        """Root: make the folder, or take up the one that is there; the layout that holds, an earlier run's if any.

        InputError as `checkpoint.Checkpoint.open`.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder}: is no folder, but that is where a checkpoint belongs; move it away")
        if any(self.folder.glob(_TILES)) and not overwrite:
            if not resume:
                raise InputError(
                    f"{self.folder}: holds an unfinished run; --resume goes on with it, --overwrite starts anew"
                )
            earlier = self._read_layout()
            require_same_run(self.folder, {**identity, "layout": earlier})
            return earlier
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            self.folder.mkdir()
            text = json.dumps({**identity, "layout": layout}, indent=1)
            write_whole(self.folder / "run.json", lambda path: path.write_text(text))
        except OSError as error:
            raise save_fault(self.folder, error) from None
        return layout

    def remove_if_of_this_run(self, identity: dict[str, Any]) -> None:
        """The result is complete; a folder of another run, which would replace it, stays."""
        try:
            whole = {**identity, "layout": self._read_layout()}
        except InputError:
            whole = identity
        if not says_another_run(self.folder, whole):
            self.remove()

    def _read_layout(self) -> dict[str, int]:
        try:
            return dict(json.loads((self.folder / "run.json").read_text())["layout"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self.folder / 'run.json'}: cannot be read ({error}); --overwrite starts anew") from None

    def path(self, tile: Tile) -> Path:
        """Where a tile lies when it is done."""
        return self.folder / ("tile-" + "-".join(str(value) for value in asdict(tile).values()) + ".npz")

    def save(self, tile: Tile, content: NDArray[np.uint32] | Edges, pairs: NDArray[np.int64]) -> None:
        """Keep a tile that is done, and its numbers of pairs.  MachineError if the disk is full."""
        arrays: dict[str, Any] = {"counters": content} if isinstance(content, np.ndarray) else _columns(content)
        arrays["pairs"] = pairs

        def fill(path: Path) -> None:
            with open(path, "wb") as stream:
                np.savez(stream, **arrays)

        try:
            write_whole(self.path(tile), fill)
        except OSError as error:
            raise save_fault(self.folder, error) from None

    def pairs(self, tile: Tile) -> NDArray[np.int64]:
        """Pairs of a tile that is done, by distance, int64 [d + 1]."""
        found: NDArray[np.int64] = self._read(tile, ["pairs"])[0]
        return found

    def counters(self, tile: Tile) -> NDArray[np.uint32]:
        """The counters of a tile that is done."""
        found: NDArray[np.uint32] = self._read(tile, ["counters"])[0]
        return found

    def edges(self, tile: Tile) -> Edges:
        """The edges of a tile that is done."""
        return Edges(*self._read(tile, [field.name for field in fields(Edges)]))

    def _read(self, tile: Tile, names: list[str]) -> list[NDArray[Any]]:
        path = self.path(tile)
        try:
            with np.load(path) as arrays:
                return [arrays[name] for name in names]
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{path}: is damaged ({error}); remove it, and --resume compares its sequences again"
            ) from None

    def done(self, tiles: list[Tile]) -> set[Tile]:
        """Which of `tiles` are done."""
        there = {path.name for path in self.folder.glob(_TILES)}
        return {tile for tile in tiles if self.path(tile).name in there}

    @property
    def result_path(self) -> Path:
        """Where the result file is made."""
        return result_path(self.folder)

    def leave(self) -> None:
        """The run ends without a result: keep the tiles; without any, remove the folder."""
        if not any(self.folder.glob(_TILES)):
            self.remove()

    def remove(self) -> None:
        """The result is complete, or there is none."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _columns(edges: Edges) -> dict[str, Any]:
    return {field.name: getattr(edges, field.name) for field in fields(Edges)}
