"""A repertoire that root has read, on every rank."""

from __future__ import annotations

from hpcvdj.ranks.world import World
from hpcvdj.recombination.germline import Segment
from hpcvdj.repertoires.repertoire import Repertoire


def share(world: World, repertoire: Repertoire | None) -> Repertoire:
    """Root's repertoire on every rank, less the ids and rows that only root needs."""
    pairs: list[tuple[Segment, Segment]] = world.broadcast(repertoire.pairs if repertoire is not None else None)
    words = world.broadcast_array(repertoire.words if repertoire is not None else None)
    lengths = world.broadcast_array(repertoire.lengths if repertoire is not None else None)
    offsets = world.broadcast_array(repertoire.offsets if repertoire is not None else None)
    return repertoire if repertoire is not None else Repertoire(words, lengths, pairs, offsets)
