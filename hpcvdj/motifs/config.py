"""What to compare and how; by which method; which tiles its counters are cut into."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

import numba

from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.kmers.costs import Choice, estimates
from hpcvdj.kernels.kmers.matrix_cpu import WIDTH
from hpcvdj.motifs.edges import Selection
from hpcvdj.kernels.kmers.methods import bytes_for, default_blocks, require_method, rows_need_no_tables, widest_load
from hpcvdj.motifs.scores import Scoring, scoring
from hpcvdj.motifs.tiles import ALIGNED
from hpcvdj.runs.ranks import World

log = logging.getLogger(__name__)

_TILES_PER_RANK = 8
"""At least: so that the ranks end together, and a signal is heard soon."""

_TILE_BYTES = {"cpu": 128 << 20, "cuda": 1 << 30}
_MOST_ROWS = 1 << 15


@dataclass(frozen=True)
class MotifConfig:
    """What to compare and how.

    k, d        bases of a k-mer; the largest Hamming distance
    strands     1: sequences as given; 2: against the reverse complements too
    distinct    count a k-mer once however often it occurs in a sequence
    method      `auto` or a name of `methods.METHODS`; blocks: runs of `pigeonhole`, 0 for the best
    score       a kind of `scores.SCORES`; weights: one for each distance, None for the default
    selection   None: the counters of all pairs; else edges
    memory      bytes that a rank's tables may take; 0: a quarter of the machine's, shared by the ranks of the host
    """

    k: int = 12
    d: int = 2
    strands: int = 1
    distinct: bool = False
    method: str = "auto"
    blocks: int = 0
    backend: str = "auto"
    score: str = "weights"
    weights: tuple[float, ...] | None = None
    selection: Selection | None = None
    memory: int = 0
    strict_binding: bool = False

    def scoring(self) -> Scoring:
        """How pairs are scored; InputError for a score or weights that cannot be."""
        return scoring(self.score, list(self.weights) if self.weights else None, self.k, self.d)


def choose(some: Profile, config: MotifConfig, backend: str) -> Choice:
    """The method that `config` names, or the one of the least estimated cost."""
    if config.method != "auto":
        require_method(config.method, config.k, backend)
        blocks = (config.blocks or default_blocks(config.k, config.d)) if config.method == "pigeonhole" else 0
        return Choice(config.method, float("nan"), blocks)
    found = estimates(some, config.d, backend, numba.get_num_threads())
    best = [next(c for c in found if c.method == name) for name in dict.fromkeys(c.method for c in found)]
    log.info("auto: %s, by estimate (%s)", best[0], ", ".join(str(other) for other in best[1:]))
    return best[0]


def layout_of(some: Profile, config: MotifConfig, choice: Choice, backend: str, world: World) -> dict[str, int]:
    n = max(1, len(some))
    memory = config.memory or _memory(backend) // (world.size if backend == "cpu" else 1)
    per_sequence = max(1.0, len(some.kmers.key) / n) * bytes_for(choice, config.k, config.d, backend)
    if choice.method == "matrix" and backend == "cuda":
        per_sequence += (config.d + 1) * 4**config.k
    columns = min(n, _down(memory / per_sequence))
    tiles = _TILES_PER_RANK
    if world.size > 1 and rows_need_no_tables(choice, backend):
        # Several loads: tiles twice as high are still more than enough, and each costs the rows' k-mers.
        columns, tiles = min(columns, _down(widest_load(config.d))), tiles // 2
    most = _down(n / (tiles * world.size)) if world.size > 1 else n
    if choice.method == "matrix" and backend == "cpu":
        # Each tile makes its columns' neighbourhoods anew, which many rows share; a thread takes WIDTH columns.
        columns, most = min(columns, max(ALIGNED, _down(WIDTH * numba.get_num_threads()))), n
    height = min(_down(_TILE_BYTES[backend] // (4 * (config.d + 1) * columns)), _MOST_ROWS, most)
    return {"load": max(ALIGNED, columns), "height": max(ALIGNED, height)}


def _down(number: float) -> int:
    return max(1, int(number) // ALIGNED) * ALIGNED


def _memory(backend: str) -> int:
    if backend == "cuda":
        import cupy

        return int(cupy.cuda.Device().mem_info[0]) // 2
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
