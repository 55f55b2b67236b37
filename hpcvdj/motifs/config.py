"""What to compare and how, and the tiles that the counters are cut into."""

from __future__ import annotations

import os
from dataclasses import dataclass

from hpcvdj.kernels.backends import AUTO
from hpcvdj.kernels.kmers.methods import KmerMethod, choose
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.scores import Score, Weights, make_score

ALIGNED = 512
"""Rows and columns at which tiles are cut."""

_TILES_PER_RANK = 8
"""At least: so that the ranks end together."""

_TILE_BYTES = {"cpu": 128 << 20, "cuda": 1 << 30}
_MOST_ROWS = 1 << 15


@dataclass(frozen=True)
class MotifConfig:
    """What to compare and how.

    k, d      bases of a k-mer; the largest Hamming distance
    strands   1: sequences as given; 2: also against the reverse complements
    distinct  count a k-mer once, however often it occurs in a sequence
    method    `auto` or the name of a method; blocks: of `pigeonhole`, 0 for the best number
    score     the name of a score; weights: one for each distance, None for the default
    edges     None: the counters of all pairs; else the edges that this filter keeps
    memory    bytes that a rank's tables may take; 0: a quarter of the host's memory, shared by its ranks, or half of
              the GPU's
    """

    k: int = 12
    d: int = 2
    strands: int = 1
    distinct: bool = False
    method: str = AUTO
    blocks: int = 0
    backend: str = AUTO
    score: str = Weights.name
    weights: tuple[float, ...] | None = None
    edges: EdgeFilter | None = None
    memory: int = 0
    strict_binding: bool = False

    def make_score(self) -> Score:
        """The score; InputError for an unknown name or wrong weights."""
        return make_score(self.score, self.weights, self.k, self.d)

    def choose(self, backend: str, profile: Profile, name: str = "") -> KmerMethod:
        """The method, or another one; InputError for an unknown one, or one that does not take such k-mers."""
        kmers = float(profile.windows.sum() / max(1, len(profile)))
        return choose(name or self.method, self.k, self.d, backend, blocks=self.blocks, kmers=kmers)


def layout_of(profile: Profile, method: KmerMethod, memory: int, ranks: int) -> dict[str, int]:
    """Columns of a load, and rows of a tile (its height); `memory` as of `MotifConfig`."""
    n, backend = max(1, len(profile)), method.backend
    memory = memory or _memory(backend) // (ranks if backend == "cpu" else 1)
    per_sequence = max(1.0, profile.windows.sum() / n) * method.bytes_per_kmer + method.bytes_per_sequence
    columns = min(n, _down(memory / per_sequence), _down(method.load_columns(ranks) or n))
    # Several loads make enough tiles even if these are twice as high; each tile costs the rows' k-mers.
    tiles = _TILES_PER_RANK if method.rows_need_tables else _TILES_PER_RANK // 2
    rows = n if ranks == 1 or method.tall_tiles else _down(n / (tiles * ranks))
    height = min(_down(_TILE_BYTES[backend] // (4 * (method.d + 1) * columns)), _MOST_ROWS, rows)
    return {"load": max(ALIGNED, columns), "height": max(ALIGNED, height)}


def _down(number: float) -> int:
    return max(1, int(number) // ALIGNED) * ALIGNED


def _memory(backend: str) -> int:
    if backend == "cuda":
        import cupy

        return int(cupy.cuda.Device().mem_info[0]) // 2
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
