"""A comparison: read → share → compare tile by tile over the ranks → put the result together."""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import CompleteError, HpcvdjError, InputError, LostRankError, MachineError, StoppedError
from hpcvdj.motifs.comparison import Comparison, Profile, array_module, profile
from hpcvdj.motifs.costs import Choice, estimates
from hpcvdj.motifs.cpu.matrix import WIDTH
from hpcvdj.motifs.cpu.survey import clear_before, pairs_of
from hpcvdj.motifs.edges import Edges, Selection, TopScores, joined
from hpcvdj.motifs.kmers import require_parameters
from hpcvdj.motifs.methods import (
    bytes_for,
    default_blocks,
    load,
    require_method,
    rows_need_no_tables,
    widest_load,
)
from hpcvdj.motifs.pace import Pace
from hpcvdj.motifs.results import Header, MotifResult, MotifStore
from hpcvdj.motifs.scores import Scoring, Terms, base_frequencies, scoring, terms_of, without_terms
from hpcvdj.motifs.sequences import SequenceSet, read_sequences
from hpcvdj.motifs.tiles import ALIGNED, Tile, TileFolder, of_rank, plan
from hpcvdj.parallel import Watch, World
from hpcvdj.partition import block_range
from hpcvdj.progress import Progress
from hpcvdj.run import Config, alone_with, bind, root_does
from hpcvdj.stopping import StopRequest
from hpcvdj.storage import require_apart, require_writable
from hpcvdj.tables import file_digest, file_state

log = logging.getLogger(__name__)

_TILES_PER_RANK = 8
"""At least: so that the ranks end together, and a signal is heard soon."""

_TILE_BYTES = {"cpu": 128 << 20, "cuda": 1 << 30}
_MOST_ROWS = 1 << 15
_KEPT_EDGES = 1 << 24


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

    def read() -> tuple[SequenceSet, str]:
        require_parameters(config.k, config.d)
        scoring(config.score, list(config.weights) if config.weights else None, config.k, config.d)
        require_writable(target, overwrite=overwrite or resume)
        require_apart(target, path)
        before = file_state(path)
        sequences = read_sequences(path, sequence_field)
        digest = file_digest(path)
        if file_state(path) != before:
            raise InputError(f"{path}: changed while it was read; start again when it is complete")
        return sequences, digest

    sequences, digest = root_does(world, read) or (None, "")
    request.begin_counting()
    world.meet()
    sequences = share(world, sequences)
    read_seconds = time.perf_counter() - started
    backend = bind(Config(backend=config.backend, strict_binding=config.strict_binding), world)
    forward = profile(sequences, config.k, config.d, distinct=config.distinct)
    root_does(world, forward.require_countable)
    choice = world.broadcast(root_does(world, lambda: choose(forward, config, backend.name)))
    marks = scoring(config.score, list(config.weights) if config.weights else None, config.k, config.d)
    terms = shared_terms(forward, config, marks, world, request)
    identity = _identity(config, digest, sequence_field, marks)
    folder = TileFolder(target)

    def open_folder() -> dict[str, int]:
        if resume and target.exists() and not overwrite:
            _require_same_result(target, identity)
            # A run that was killed right after the result had its name leaves the folder.
            folder.remove()
            raise CompleteError(f"{target}: is complete already; nothing to resume")
        return folder.open(
            identity, _layout(forward, config, choice, backend.name, world), resume=resume, overwrite=overwrite
        )

    with alone_with(world, target):
        layout = world.broadcast(root_does(world, open_folder))
        try:
            tiles = plan(len(sequences), config.strands, **layout)
            work = _Work(forward, config, choice, backend.name, marks, terms, folder, world, request)
            work.do(tiles)
            compared = time.perf_counter()
            slowest = world.maximum(np.array([work.load_seconds, work.compare_seconds]))
            ranks = world.gather(_facts(backend)) or []
            header = Header(
                sequences.names, sequences.lengths, config.k, config.d, config.strands, config.distinct, marks, terms
            )
            attributes = _attributes(world, path, digest, sequence_field, config, choice) if world.is_root else {}
            watch = world.watch(request.asked)

            def put_together() -> tuple[list[list[int]], int | None] | None:
                counts = np.zeros((config.strands, config.d + 1), dtype=np.int64)
                try:
                    for tile in tiles:
                        counts[tile.strand] += folder.pairs(tile)
                        _go_on(watch)
                    edges = _store(target, header, config, folder, tiles, attributes, ranks, watch, overwrite=overwrite)
                except _StopError:
                    return None
                except LostRankError:
                    raise
                except MachineError as error:
                    raise MachineError(f"{error}; what was compared is kept, and --resume puts it together") from None
                folder.remove()
                return counts.tolist(), edges

            found = world.broadcast(root_does(world, put_together, watch))
            if found is None:
                raise _stopped(world, request, "while the result was put together; --resume does that")
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


def share(world: World, sequences: SequenceSet | None) -> SequenceSet:
    """Root's sequences on every rank."""
    names = world.broadcast(sequences.names if sequences is not None else None)
    codes = world.broadcast_array(sequences.codes if sequences is not None else None)
    offsets = world.broadcast_array(sequences.offsets if sequences is not None else None)
    return SequenceSet(names, codes, offsets)


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
    with suppress(_StopError):
        for strand in range(config.strands):
            some = part if strand == 0 else part.reverse_complement()
            pieces = Pace(partial(_go_on, watch)).pieces(len(some), numba.get_num_threads())
            parts = [terms_of(some.part(a, b), config.d, frequencies) for a, b in pieces]
            mine.append(Terms.of_parts(parts or [terms_of(some, config.d, frequencies)]))
    if watch.end():
        raise _stopped(world, request, "before anything was compared; start again with the same command")
    every: list[list[Terms]] = world.broadcast(world.gather(mine))
    return tuple(Terms.of_parts(list(parts)) for parts in zip(*every, strict=True))


class _StopError(Exception):
    """A rank wants all to stop."""


def _go_on(watch: Watch) -> None:
    """Between two pieces of work."""
    if watch.passed():
        raise _StopError


def _stopped(world: World, request: StopRequest, where: str) -> StoppedError:
    """What every rank is to raise."""
    names = world.broadcast(world.gather(request.name))
    why = " and ".join(sorted({name for name in names if name})) or "a signal"
    error = StoppedError(f"{why}: stopped {where}")
    error.on_every_rank = True
    return error


def _layout(some: Profile, config: MotifConfig, choice: Choice, backend: str, world: World) -> dict[str, int]:
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


class _Work:
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
        except _StopError:
            pass
        except LostRankError:
            raise
        except HpcvdjError as error:
            self._failure = error
        watch.end()
        self._leave_if_stopped(tiles)

    def _do_mine(self, tiles: list[Tile], watch: Watch) -> None:
        done = self._folder.done(tiles)
        mine = of_rank(tiles, self._world.rank, self._world.size, few_loads=self._few_loads)
        todo = [tile for tile in mine if tile not in done]
        self._left = len(todo)
        pace = Pace(partial(_go_on, watch))
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

    def _leave_if_stopped(self, tiles: list[Tile]) -> None:
        # Each rank's own word: a network's file system may show root another's last tile only after a while.
        every = self._world.broadcast(self._world.gather((self._failure, self._left)))
        for failure, _ in every:
            if failure is not None:
                failure.on_every_rank = True
                raise failure
        done = len(tiles) - sum(left for _, left in every)
        if done < len(tiles):
            where = f"with {done} of {len(tiles)} tiles done; --resume goes on from there"
            raise _stopped(self._world, self._request, where)

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


def _store(
    target: Path,
    header: Header,
    config: MotifConfig,
    folder: TileFolder,
    tiles: list[Tile],
    attributes: dict[str, Any],
    ranks: list[dict[str, str]],
    watch: Watch,
    *,
    overwrite: bool,
) -> int | None:
    """Put the result together; the number of edges, None for all pairs."""
    selection, edges = config.selection, 0
    dense, temporary = selection is None, folder.result_path
    with MotifStore(target, header, dense=dense, overwrite=overwrite, temporary=temporary) as store:
        waiting: list[Edges] = []
        for tile in sorted(tiles):
            _go_on(watch)
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
        store.finish(attributes, ranks)
    return None if selection is None else edges


def _facts(backend: Any) -> dict[str, str]:
    from hpcvdj.provenance import rank_facts

    return rank_facts(backend.describe(), backend.software())


def _identity(config: MotifConfig, digest: str, sequence_field: str, marks: Scoring) -> dict[str, Any]:
    """What a run has in common with one that goes on with its tiles; ranks, method and backend may differ."""
    selection = asdict(config.selection) if config.selection else "all pairs"
    return {
        "sequences_sha256": digest,
        "sequence_field": sequence_field,
        "k": config.k,
        "d": config.d,
        "strands": config.strands,
        "distinct": config.distinct,
        "score": marks.kind,
        "weights": list(marks.weights),
        "selection": selection,
    }


def _attributes(
    world: World, path: Path, digest: str, sequence_field: str, config: MotifConfig, choice: Choice
) -> dict[str, Any]:
    from hpcvdj.provenance import run_facts

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


def _require_same_result(target: Path, identity: dict[str, Any]) -> None:
    import json

    with MotifResult(target) as result:
        theirs = result.provenance
    differing = []
    for name, mine in identity.items():
        found = theirs.get(name)
        if isinstance(mine, dict | list) and isinstance(found, str):
            found = json.loads(found)
        if found != mine:
            differing.append(name)
    if differing:
        raise InputError(
            f"{target}: exists and holds another run (its {', '.join(differing)} differ); give another name, or "
            "--overwrite"
        )
