"""A comparison: read → share → compare tile by tile over the ranks → put the result together."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

from hpcvdj.errors import CompleteError, InputError
from hpcvdj.motifs.assembly import Assembly
from hpcvdj.kernels.kmers.profile import Profile, profile
from hpcvdj.motifs.config import MotifConfig, choose, layout_of
from hpcvdj.kernels.kmers.costs import Choice
from hpcvdj.motifs.identity import identity_of, require_same_result
from hpcvdj.kernels.kmers.kmers import require_parameters
from hpcvdj.runs.pacing import Pace
from hpcvdj.motifs.results import Header
from hpcvdj.motifs.scores import Scoring, Terms, base_frequencies, terms_of, without_terms
from hpcvdj.motifs.sequences import SequenceSet, read_sequences
from hpcvdj.motifs.tiles import TileFolder, plan
from hpcvdj.motifs.work import Work
from hpcvdj.runs.binding import bind
from hpcvdj.runs.lock import alone_with
from hpcvdj.runs.partition import block_range
from hpcvdj.runs.stopping import StopError, StopRequest, go_on, stopped
from hpcvdj.runs.ranks import World, root_does
from hpcvdj.repertoires.tables import file_digest, file_state
from hpcvdj.storage import require_apart, require_writable

log = logging.getLogger(__name__)


@dataclass
class MotifSummary:
    """What a comparison found and how long it took; complete on root.

    pairs    pairs of different sequences, each once, that share a k-mer at distance h: by strand, by h
    seconds  of each stage: read, load (tables; max over ranks), compare (likewise), store, total
    """

    sequences: int
    bases: int
    skipped: int
    choice: Choice
    hardware: str
    ranks: int
    edges: int | None
    pairs: list[list[int]]
    seconds: dict[str, float] = field(default_factory=dict)


def compare_file(
    path: Path,
    target: Path,
    config: MotifConfig,
    world: World,
    *,
    sequence_field: str = "junction",
    overwrite: bool = False,
    resume: bool = False,
    request: StopRequest | None = None,
) -> MotifSummary:
    """Compare all sequences of a file with all others: what `hpcvdj motifs compare` does.

    Root reads, each rank compares its tiles and keeps them beside `target`, root puts the result together.  `resume`
    goes on from the tiles of an earlier run.  A signal that `request` has seen ends the run within seconds:
    StoppedError, the tiles kept.  HpcvdjError on bad input and on failure.  CompleteError if `resume` finds the
    result complete.
    """
    started = time.perf_counter()
    request = request or StopRequest()
    if not world.is_root:
        # Reading is left by root, for all; the others take note.
        request.begin_counting()

    replace = overwrite or resume
    sequences, digest = root_does(world, lambda: _read(path, target, config, sequence_field, replace)) or (None, "")
    request.begin_counting()
    world.meet()
    sequences = share(world, sequences)
    read_seconds = time.perf_counter() - started
    backend = bind(config.backend, world, strict=config.strict_binding)
    forward = profile(sequences, config.k, config.d, distinct=config.distinct)
    root_does(world, forward.require_countable)
    if world.is_root and not len(forward.kmers.key):
        log.warning("%s: no sequence has %d bases A, C, G, T in a row, so none has a k-mer", path, config.k)
    choice = world.broadcast(root_does(world, lambda: choose(forward, config, backend.name)))
    marks = config.scoring()
    terms = shared_terms(forward, config, marks, world, request)
    identity = identity_of(config, digest, sequence_field, marks)
    folder = TileFolder(target)

    def open_folder() -> dict[str, int]:
        if resume and target.exists() and not overwrite:
            require_same_result(target, identity)
            # A run that was killed right after the result had its name leaves the folder.
            folder.remove_if_of_this_run(identity)
            raise CompleteError(f"{target}: is complete already; nothing to resume")
        return folder.open(
            identity, layout_of(forward, config, choice, backend.name, world), resume=resume, overwrite=overwrite
        )

    with alone_with(world, target):
        layout = world.broadcast(root_does(world, open_folder))
        try:
            tiles = plan(len(sequences), config.strands, **layout)
            work = Work(forward, config, choice, backend.name, marks, terms, folder, world, request)
            work.do(tiles)
            compared = time.perf_counter()
            slowest = world.maximum(np.array([work.load_seconds, work.compare_seconds]))
            ranks = world.gather(_facts(backend)) or []
            header = Header(
                sequences.names, sequences.lengths, config.k, config.d, config.strands, config.distinct, marks, terms
            )
            attributes = _attributes(world, path, digest, sequence_field, config, choice) if world.is_root else {}
            assembly = Assembly(target, header, config, folder, tiles, attributes, ranks)
            watch = world.watch(request.asked)
            found = world.broadcast(root_does(world, lambda: assembly.write(watch, overwrite=overwrite), watch))
            if found is None:
                raise stopped(world, request, "while the result was put together; --resume does that")
            counts, edges = found
        finally:
            if world.is_root and folder.folder.exists():
                folder.leave()
    ended = time.perf_counter()
    return MotifSummary(
        sequences=len(sequences),
        bases=len(sequences.codes),
        skipped=forward.kmers.skipped,
        choice=choice,
        hardware=backend.describe(),
        ranks=world.size,
        edges=edges,
        pairs=counts,
        seconds={
            "read": read_seconds,
            "load": float(slowest[0]),
            "compare": float(slowest[1]),
            "store": ended - compared,
            "total": ended - started,
        },
    )


def _read(
    path: Path, target: Path, config: MotifConfig, sequence_field: str, overwrite: bool
) -> tuple[SequenceSet, str]:
    """Root: the sequences and the file's SHA-256, once it is clear that they can be compared into `target`."""
    require_parameters(config.k, config.d)
    config.scoring()
    require_writable(target, overwrite=overwrite)
    require_apart(target, path)
    before = file_state(path)
    sequences = read_sequences(path, sequence_field)
    digest = file_digest(path)
    if file_state(path) != before:
        raise InputError(f"{path}: changed while it was read; start again when it is complete")
    return sequences, digest


def share(world: World, sequences: SequenceSet | None) -> SequenceSet:
    """Root's sequences on every rank."""
    names = world.broadcast(sequences.names if sequences is not None else None)
    codes = world.broadcast_array(sequences.codes if sequences is not None else None)
    offsets = world.broadcast_array(sequences.offsets if sequences is not None else None)
    return SequenceSet(names, codes, offsets)


def shared_terms(
    forward: Profile, config: MotifConfig, marks: Scoring, world: World, request: StopRequest
) -> tuple[Terms, ...]:
    """The terms of each strand, made by the ranks together; only what the score needs.  StoppedError after a signal."""
    if marks.kind == "weights":
        return tuple(without_terms(forward, config.d) for _ in range(config.strands))
    frequencies = base_frequencies(forward, both_strands=config.strands == 2)
    first, last = block_range(len(forward), 1, world.rank, world.size)
    part = forward.part(first, last)
    watch = world.watch(request.asked)
    mine: list[Terms] = []
    with suppress(StopError):
        for strand in range(config.strands):
            some = part if strand == 0 else part.reverse_complement()
            pieces = Pace(partial(go_on, watch)).pieces(len(some), numba.get_num_threads())
            parts = [terms_of(some.part(a, b), config.d, frequencies) for a, b in pieces]
            mine.append(Terms.of_parts(parts or [terms_of(some, config.d, frequencies)]))
    if watch.end():
        raise stopped(world, request, "before anything was compared; start again with the same command")
    every: list[list[Terms]] = world.broadcast(world.gather(mine))
    return tuple(Terms.of_parts(list(parts)) for parts in zip(*every, strict=True))


def _facts(backend: Any) -> dict[str, str]:
    from hpcvdj.runs.provenance import rank_facts

    return rank_facts(backend.describe(), backend.software())


def _attributes(
    world: World, path: Path, digest: str, sequence_field: str, config: MotifConfig, choice: Choice
) -> dict[str, Any]:
    from hpcvdj.runs.provenance import run_facts

    selection = asdict(config.selection) if config.selection else "all pairs"
    return {
        **run_facts(world),
        "sequences_path": str(path),
        "sequences_sha256": digest,
        "sequence_field": sequence_field,
        "selection": selection,
        "method": choice.method,
        "blocks": choice.blocks,
    }
