"""A rank's tiles, compared one after another and kept beside the result."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import HpcvdjError, LostRankError
from hpcvdj.kernels.kmers.profile import Comparison, Profile, array_module
from hpcvdj.motifs.config import MotifConfig
from hpcvdj.kernels.kmers.costs import Choice
from hpcvdj.kernels.kmers.tile_cpu import clear_before, pairs_of
from hpcvdj.motifs.edges import Edges, TopScores
from hpcvdj.kernels.kmers.methods import load, rows_need_no_tables
from hpcvdj.runs.pacing import Pace
from hpcvdj.motifs.scores import Scoring, Terms
from hpcvdj.motifs.tiles import Tile, TileFolder, of_rank
from hpcvdj.runs.progress import Progress
from hpcvdj.runs.stopping import StopError, StopRequest, go_on, stopped
from hpcvdj.runs.ranks import Watch, World


class Work:
    """A rank's tiles, done one after another."""

    def __init__(
        self,
        forward: Profile,
        config: MotifConfig,
        choice: Choice,
        backend: str,
        marks: Scoring,
        terms: tuple[Terms, ...],
        folder: TileFolder,
        world: World,
        request: StopRequest,
    ) -> None:
        self._forward, self._config, self._choice, self._backend = forward, config, choice, backend
        self._marks, self._terms, self._folder = marks, terms, folder
        self._world, self._request = world, request
        self._best = TopScores(len(forward), config.selection.top if config.selection else None)
        # Root's, as ranks may differ in their backends, and all must share the tiles alike.
        self._few_loads = world.broadcast(rows_need_no_tables(choice, backend))
        self._left = 0
        self._failure: HpcvdjError | None = None
        self.load_seconds = self.compare_seconds = 0.0

    def do(self, tiles: list[Tile]) -> None:
        """All of this rank's tiles that are not done.

        StoppedError, on every rank, if one was told to stop; so with the failure of a rank, when all have left their
        work.
        """
        watch = self._world.watch(lambda: self._failure is not None or self._request.asked())
        try:
            self._do_mine(tiles, watch)
        except StopError:
            pass
        except LostRankError:
            raise
        except HpcvdjError as error:
            self._failure = error
        watch.end()
        self._leave_ifstopped(tiles)

    def _do_mine(self, tiles: list[Tile], watch: Watch) -> None:
        done = self._folder.done(tiles)
        mine = of_rank(tiles, self._world.rank, self._world.size, few_loads=self._few_loads)
        todo = [tile for tile in mine if tile not in done]
        self._left = len(todo)
        pace = Pace(partial(go_on, watch))
        loaded: tuple[int, int] | None = None
        comparison: Comparison | None = None
        with Progress(sum(tile.pairs for tile in todo), "pairs", shown=self._world.is_root) as progress:
            for tile in todo:
                pace.between()
                begun = time.perf_counter()
                if comparison is None or loaded != (tile.strand, tile.column):
                    comparison = None
                    comparison = load(self._choice, self._columns(tile), self._config.d, self._backend, pace)
                    loaded = (tile.strand, tile.column)
                    self.load_seconds += time.perf_counter() - begun
                    begun = time.perf_counter()
                self._folder.save(tile, *self._compare(comparison, tile))
                self._left -= 1
                self.compare_seconds += time.perf_counter() - begun
                progress.advance(tile.pairs)

    def _leave_ifstopped(self, tiles: list[Tile]) -> None:
        # Each rank's own word: a network's file system may show root another's last tile only after a while.
        every = self._world.broadcast(self._world.gather((self._failure, self._left)))
        for failure, _ in every:
            if failure is not None:
                failure.on_every_rank = True
                raise failure
        done = len(tiles) - sum(left for _, left in every)
        if done < len(tiles):
            where = f"with {done} of {len(tiles)} tiles done; --resume goes on from there"
            raise stopped(self._world, self._request, where)

    def _columns(self, tile: Tile) -> Profile:
        part = self._forward.part(tile.column, tile.column_stop)
        return part if tile.strand == 0 else part.reverse_complement()

    def _compare(self, comparison: Comparison, tile: Tile) -> tuple[Any, NDArray[np.int64]]:
        """The tile's counters on the host, or its edges; its pairs that share a k-mer, by distance."""
        first = tile.row - tile.column if tile.row >= tile.column else None
        if tile.strand == 0 and first is not None:
            counters = comparison.counters(None, first, tile.row_stop - tile.column)
        else:
            counters = comparison.counters(self._forward.part(tile.row, tile.row_stop), first)
        if array_module(counters) is np:
            return self._keep_on_cpu(np.ascontiguousarray(counters, dtype=np.uint32), tile)
        return self._keep_on_gpu(counters, tile)

    def _keep_on_cpu(self, counters: NDArray[np.uint32], tile: Tile) -> tuple[Any, NDArray[np.int64]]:
        pairs = clear_before(counters, tile.row, tile.column)
        selection = self._config.selection
        if selection is None:
            return counters, pairs
        i, j, some = pairs_of(counters, tile.row, tile.column)
        edges = Edges(
            (i + tile.row).astype(np.int32),
            (j + tile.column).astype(np.int32),
            np.full(len(i), tile.strand, np.int8),
            np.ascontiguousarray(some.T),
            self._marks.of_pairs(some, *self._terms_of(tile), i, j),
        )
        edges = selection.from_pairs(edges, *self._least(tile), tile.row, tile.column)
        self._best.learn(edges)
        return edges, pairs

    def _keep_on_gpu(self, counters: Any, tile: Tile) -> tuple[Any, NDArray[np.int64]]:
        xp = array_module(counters)
        rows = xp.arange(tile.row, tile.row_stop)[:, None]
        columns = xp.arange(tile.column, tile.column_stop)[None, :]
        counters *= columns >= rows
        pairs = np.array([int(xp.count_nonzero((plane != 0) & (columns > rows))) for plane in counters])
        selection = self._config.selection
        if selection is None:
            return counters.get(), pairs
        score = self._marks.of(counters, *self._terms_of(tile))
        edges = selection.from_tile(counters, score, tile.row, tile.column, tile.strand, *self._least(tile))
        self._best.learn(edges)
        return edges, pairs

    def _terms_of(self, tile: Tile) -> tuple[Terms, Terms]:
        return (
            self._terms[0].part(tile.row, tile.row_stop),
            self._terms[tile.strand].part(tile.column, tile.column_stop),
        )

    def _least(self, tile: Tile) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        return self._best.of(tile.row, tile.row_stop), self._best.of(tile.column, tile.column_stop)
