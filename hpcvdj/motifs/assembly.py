"""The result, put together from the tiles that the ranks kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hpcvdj.errors import LostRankError, MachineError
from hpcvdj.motifs.config import MotifConfig
from hpcvdj.motifs.edges import Edges, joined
from hpcvdj.motifs.results import Header, MotifStore
from hpcvdj.motifs.tiles import Tile, TileFolder
from hpcvdj.runs.stopping import StopError, go_on
from hpcvdj.runs.ranks import Watch

_KEPT_EDGES = 1 << 24


class Assembly:
    """Root's work after the comparing.

    header              what the result says of the sequences
    folder, tiles       where the tiles lie; all of them
    attributes, ranks   where the result comes from
    """

    def __init__(
        self,
        target: Path,
        header: Header,
        config: MotifConfig,
        folder: TileFolder,
        tiles: list[Tile],
        attributes: dict[str, Any],
        ranks: list[dict[str, str]],
    ) -> None:
        self._target, self._header, self._config = target, header, config
        self._folder, self._tiles = folder, tiles
        self._attributes, self._ranks = attributes, ranks

    def write(self, watch: Watch, *, overwrite: bool) -> tuple[list[list[int]], int | None] | None:
        """Write the result and remove the folder; pairs that share a k-mer, by strand and distance, and the edges.

        None if a rank wants to stop.  MachineError if the disk is full; the folder stays then.
        """
        pairs = np.zeros((self._config.strands, self._config.d + 1), dtype=np.int64)
        try:
            for tile in self._tiles:
                pairs[tile.strand] += self._folder.pairs(tile)
                go_on(watch)
            edges = self._store(watch, overwrite=overwrite)
        except StopError:
            return None
        except LostRankError:
            raise
        except MachineError as error:
            raise MachineError(f"{error}; what was compared is kept, and --resume puts it together") from None
        self._folder.remove()
        return pairs.tolist(), edges

    def _store(self, watch: Watch, *, overwrite: bool) -> int | None:
        """The number of edges, None for all pairs."""
        config, folder = self._config, self._folder
        selection, edges = config.selection, 0
        dense, temporary = selection is None, folder.result_path
        with MotifStore(self._target, self._header, dense=dense, overwrite=overwrite, temporary=temporary) as store:
            waiting: list[Edges] = []
            for tile in sorted(self._tiles):
                go_on(watch)
                if selection is None:
                    store.put_tile(tile.strand, tile.row, tile.column, folder.counters(tile))
                    continue
                waiting.append(folder.edges(tile))
                if sum(map(len, waiting)) > _KEPT_EDGES:
                    if selection.top is None:
                        edges += store.put_edges(joined(waiting, config.d))
                        waiting = []
                    else:
                        waiting = [selection.finish(joined(waiting, config.d))]
            if selection is not None:
                edges += store.put_edges(selection.finish(joined(waiting, config.d)))
            store.finish(self._attributes, self._ranks)
        return None if selection is None else edges
