"""Tiles: the rectangles of a comparison, and their distribution over ranks.

A load is a range of columns that a rank holds at the same time.  A tile is a range of rows against a load.  Until the
result is written, each finished tile is a piece in the folder of the run.  So an interrupted run can continue, on any
number of ranks.
"""

import os
from dataclasses import astuple, dataclass

import numpy as np

from hpcvdj.kernels.kmers.methods import KmerMethod
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.runs.partition import block_range

ALIGNED = 512
"""Tiles are cut at multiples of this number of rows and columns."""

_TILES_PER_RANK = 8
"""The smallest number of tiles per rank, so that all ranks end at about the same time."""

_TILE_BYTES = {"cpu": 128 << 20, "cuda": 1 << 30}
_MOST_ROWS = 1 << 15


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
        """Number of pairs of the tile whose column is not before the row."""
        rows = np.arange(self.row, self.row_stop)
        return int(np.maximum(self.column_stop - np.maximum(rows, self.column), 0).sum())

    @property
    def name(self) -> str:
        """The name of the tile in the folder of its run."""
        return "-".join(map(str, ("tile", *astuple(self))))


def layout_of(profile: Profile, method: KmerMethod, memory: int, ranks: int) -> dict[str, int]:
    """Return the columns of a load and the rows of a tile (its height); for `memory` see `MotifConfig`."""
    n, backend = max(1, len(profile)), method.backend
    memory = memory or _memory(backend) // (ranks if backend == "cpu" else 1)
    per_sequence = max(1.0, profile.windows.sum() / n) * method.bytes_per_kmer + method.bytes_per_sequence
    most = method.load_columns(ranks)
    columns = min(n, _down(memory / per_sequence), _down(most) if most else n)
    # With several loads, tiles may be twice as high.  Each tile costs the k-mers of its rows.
    tiles = _TILES_PER_RANK if method.rows_need_tables else _TILES_PER_RANK // 2
    rows = n if ranks == 1 or method.tall_tiles else _down(n / (tiles * ranks))
    height = min(_down(_TILE_BYTES[backend] // (4 * (method.d + 1) * columns)), _MOST_ROWS, rows)
    return {"load": max(ALIGNED, columns), "height": max(ALIGNED, height)}


def _down(number: float) -> int:
    """Return the largest multiple of `ALIGNED` up to `number`, at least `ALIGNED`."""
    return max(1, int(number) // ALIGNED) * ALIGNED


def _memory(backend: str) -> int:
    if backend == "cuda":
        import cupy

        return int(cupy.cuda.Device().mem_info[0]) // 2
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


def plan(n: int, strands: int, load: int, height: int) -> list[Tile]:
    """Return the tiles of all pairs of n sequences, in loads of `load` columns and ranges of `height` rows."""
    return [
        Tile(strand, column, min(n, column + load), row, min(n, column + load, row + height))
        for strand in range(strands)
        for column in range(0, n, load)
        for row in range(0, min(n, column + load), height)
    ]


def tiles_of_rank(tiles: list[Tile], rank: int, ranks: int, *, few_loads: bool = False) -> list[Tile]:
    """Return the tiles of a rank, load by load.

    Each rank has a part of each load, by equation (2) for the tiles of the load, with long and short tiles in turn.  If
    loads have fewer tiles than there are ranks, the equation applies to all tiles together.

    few_loads  each rank has consecutive loads instead, with equal numbers of pairs up to a tile; for methods whose rows
               need no tables
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
    chosen = []
    for group in [sorted(tiles)] if together else loads.values():
        # Upper rows have more columns, so the order is first, last, second, last but one …
        folded = [group[q // 2] if q % 2 == 0 else group[len(group) - 1 - q // 2] for q in range(len(group))]
        first, last = block_range(len(folded), 1, rank, ranks)
        chosen += sorted(folded[first:last]) if together else folded[first:last]
    return chosen
