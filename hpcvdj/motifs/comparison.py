"""Compare sequences: read them, compare tile by tile on all ranks, and put the result together."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hpcvdj
from hpcvdj.errors import MachineError, few, log, option
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.kmers.methods import KmerMethod, LoadedMethod, array_module
from hpcvdj.kernels.kmers.profile import Profile, profile
from hpcvdj.kernels.kmers.sequences import SequenceSet
from hpcvdj.kernels.pacing import Pacer
from hpcvdj.motifs.edges import EdgeFinder, Edges, edge_type, edges_of, joined
from hpcvdj.motifs.results import MotifWriter
from hpcvdj.motifs.scores import Cosine, Score, Scoring, Terms, WeightedSum, base_frequencies, kmer_totals, terms_of
from hpcvdj.motifs.sequences import Input, InputSet, read_inputs
from hpcvdj.motifs.settings import MotifConfig
from hpcvdj.motifs.tiles import Tile, layout_of, plan, tiles_of_rank
from hpcvdj.repertoires.inputs import require_hdf5
from hpcvdj.runs.folder import Identity, RunFolder, raise_if_complete, save_failure
from hpcvdj.runs.partition import block_range
from hpcvdj.runs.progress import Progress
from hpcvdj.runs.run import Run
from hpcvdj.storage.hdf5 import atomic_hdf5

_KEPT_EDGES = 1 << 24
"""How many edges are collected before they are sorted and written."""


@dataclass(frozen=True)
class Task:
    """What to compare, and how; the same on all ranks, except for the backend."""

    profile: Profile
    config: MotifConfig
    method: KmerMethod
    backend: Backend
    scoring: Scoring


@dataclass(frozen=True)
class MotifSummary:
    """The outcome of a comparison and the time it took; complete on root.

    task     what was compared; its settings have the name of the score, and say which rows of tables were read
    inputs   the inputs, with facts about what was read
    pairs    by strand and distance h: number of pairs of different sequences that share a k-mer at distance h
    edges    number of edges; None if the result has all pairs
    seconds  time of each stage: read, load (tables; maximum over ranks), compare (maximum over ranks), store, total
    """

    task: Task
    inputs: tuple[Input, ...]
    ranks: int
    pairs: list[list[int]]
    edges: int | None
    seconds: dict[str, float]


def compare_sequences(source: SequenceSet | Sequence[Input], config: MotifConfig, run: Run) -> MotifSummary:
    """Compare all sequences of inputs, or of a set in memory, with all others, as `hpcvdj motifs compare` does.

    Root reads the sequences.  Each rank compares its tiles and keeps them beside the target of `run`.  Root puts the
    result together.

    Raise StoppedError within seconds of a signal; the finished tiles are kept for `resume`.  Raise HpcvdjError for bad
    input and failures, and CompleteError if `resume` finds a complete result.
    """
    started = time.perf_counter()
    assert run.target is not None
    require_hdf5(run.target)
    with run.exclusive(*_files(source)):
        if not run.is_root:
            # If a signal comes while root reads, root ends the run.
            run.request.begin()
        read_set = run.root_steps(lambda: _read(source, config, run), "before anything was compared")
        run.request.begin()
        run.barrier()
        tables = run.from_root(lambda: read_set is not None and read_set.are_tables)
        # From here on, the score has a name, and `rows` says which rows were read.  Junctions differ in length.
        score = config.score or (Cosine if tables else WeightedSum).name
        config = replace(config, score=score, rows=config.rows if tables else "all")
        task = _task(read_set.sequences if read_set else None, config, run)
        read = time.perf_counter()
        identity: Identity = {}
        if read_set is not None:
            if not task.profile.windows.any():
                names = few(map(str, read_set.inputs))
                log.warning("%s: no sequence has %d bases A, C, G, T in a row, so none has a k-mer", names, config.k)
            identity = _identity(task, read_set)
        layout = layout_of(task.profile, task.method, config.memory_bytes, run.ranks) if run.is_root else {}
        folder = RunFolder(run.target.with_name(f"{run.target.name}.checkpoint"), run.from_root(lambda: identity))
        if run.resume and not run.overwrite:
            run.on_root(partial(raise_if_complete, run.target, folder))
        with run.continuing(folder, layout) as layout:
            tiles = plan(len(task.profile), config.relations, **layout)
            work = _TileWork(task, folder, run)
            work.compute_all(tiles)
            compared = time.perf_counter()
            load_seconds, compare_seconds = run.slowest(work.load_seconds, work.compare_seconds)
            ranks = run.rank_facts(task.backend)
            files = _files(read_set.inputs) if read_set else []
            facts = {"sequences_path": str(files[0]) if len(files) == 1 else "", **identity, "method": task.method.name}
            attributes = {**run.provenance(), **facts, "blocks": task.method.blocks, "identity": identity}
            pairs, edges = run.root_works(
                lambda: _put_together(task, read_set, tiles, folder, run, attributes, ranks),
                f"while the result was put together; {option('resume', True)} does that",
            )
    ended = time.perf_counter()
    seconds = (read - started, load_seconds, compare_seconds, ended - compared, ended - started)
    stages = dict(zip(("read", "load", "compare", "store", "total"), seconds, strict=True))
    return MotifSummary(task, read_set.inputs if read_set else (), run.ranks, pairs, edges, stages)


def _files(source: SequenceSet | Sequence[Input]) -> list[Path]:
    return [] if isinstance(source, SequenceSet) else [item.path for item in source if item.path is not None]


def _read(source: SequenceSet | Sequence[Input], config: MotifConfig, run: Run) -> InputSet:
    """Read the sequences.  Raise InputError if they cannot be compared with this configuration."""
    config.make_score()
    if isinstance(source, SequenceSet):
        return InputSet.in_memory(source)
    return read_inputs(source, config.sequence_field, config.rows, between=run.raise_if_stopping)


def _task(sequences: SequenceSet | None, config: MotifConfig, run: Run) -> Task:
    shared: SequenceSet = run.broadcast(sequences)
    backend = run.bind(config.backend, strict=config.strict_binding)
    forward = profile(shared, config.k, config.d, distinct=config.distinct)
    run.on_root(forward.require_countable)
    # Root chooses the method for all ranks, as their backends may differ.
    name = run.from_root(lambda: config.choose(backend.name, forward).name)
    method = config.choose(backend.name, forward, name)
    score = config.make_score()
    if run.is_root and config.method != name:
        log.info("%s: the method is %s", config.method, method)
    return Task(forward, config, method, backend, Scoring(score, _terms(forward, config, score, run)))


def _terms(forward: Profile, config: MotifConfig, score: Score, run: Run) -> list[Terms]:
    """Compute the terms of each strand that the score needs, a part on each rank; errors are those of `Run.each`.

    A reverse complement has the terms of its sequence, since frequencies are then those of both strands.
    """
    if not (score.normalised or score.centred):
        return [kmer_totals(forward, config.d)] * config.relations
    import numba

    frequencies = base_frequencies(forward, both_strands=config.relations == 2)
    part = forward.part(*block_range(len(forward), 1, run.rank, run.ranks))
    pacer = Pacer(between=run.raise_if_stopping)
    terms: list[Terms] = []

    def compute(side: Profile) -> None:
        side.kmers  # noqa: B018 (once for all steps; on one rank also for the comparison)
        steps = pacer.steps(len(side), numba.get_num_threads())
        parts = [terms_of(side.part(a, b), config.d, frequencies) for a, b in steps]
        terms.append(Terms.joined(parts or [terms_of(side, config.d, frequencies)]))

    run.each([part], compute, "before anything was compared; start again with the same command")
    return [Terms.joined([of for (of,) in run.gather_everywhere(terms)])] * config.relations


def _identity(task: Task, read: InputSet) -> Identity:
    """Return the facts that two runs must have in common to resume; ranks, method, tiles and backend may differ."""
    config, score = task.config, task.scoring.score
    digests = [[source.name, source.sha256] for source in read.inputs if source.sha256]
    digest = {"sequences_sha256": digests[0][1] if digests else read.sequences.digest}
    return {
        "hpcvdj": hpcvdj.__version__,
        **({"inputs": digests} if len(digests) > 1 else digest),
        "sequence_field": config.sequence_field,
        "rows": config.rows,
        "k": config.k,
        "d": config.d,
        "strands": config.relations,
        "distinct": config.distinct,
        "score": score.name,
        "weights": list(score.weights),
        "edges": asdict(config.edges) if config.edges else "all pairs",
    }


class _TileWork:
    """Computes the tiles of a rank one after another, and keeps the loaded columns as long as tiles need them."""

    def __init__(self, task: Task, folder: RunFolder, run: Run) -> None:
        self._task, self._folder, self._run = task, folder, run
        self._pacer = Pacer(between=run.raise_if_stopping)
        edges = task.config.edges
        self._finder = EdgeFinder(task.scoring, edges, len(task.profile)) if edges else None
        self._loaded: tuple[int, int] | None = None
        self._comparison: LoadedMethod | None = None
        self.load_seconds = self.compare_seconds = 0.0

    def compute_all(self, tiles: list[Tile]) -> None:
        """Compute all unfinished tiles, on all ranks; errors are those of `Run.each`."""
        run, task = self._run, self._task
        # Root decides, as backends may differ, but all ranks must distribute the tiles in the same way.
        few_loads = run.from_root(lambda: not task.method.rows_need_tables)
        finished = set(self._folder.finished)
        own = tiles_of_rank(tiles, run.rank, run.ranks, few_loads=few_loads)
        unfinished = [tile for tile in own if tile.name not in finished]
        with Progress(sum(tile.pairs for tile in unfinished), "pairs", shown=run.shown, what="comparing") as progress:

            def compute(tile: Tile) -> None:
                self.compute(tile)
                progress.advance(tile.pairs)

            run.each(unfinished, compute, f"with the finished tiles saved; {option('resume', True)} continues")

    def compute(self, tile: Tile) -> None:
        """Compare the sequences of one tile and save it."""
        begun = time.perf_counter()
        comparison = self._load(tile)
        loaded = time.perf_counter()
        first = tile.row - tile.column if tile.row >= tile.column else None
        if tile.strand == 0 and first is not None:
            counters = comparison.counters(None, first, tile.row_stop - tile.column)
        else:
            counters = comparison.counters(self._task.profile.part(tile.row, tile.row_stop), first)
        self._folder.save(tile.name, *self._content(counters, tile))
        self.load_seconds += loaded - begun
        self.compare_seconds += time.perf_counter() - loaded

    def _load(self, tile: Tile) -> LoadedMethod:
        if self._comparison is None or self._loaded != (tile.strand, tile.column):
            self._comparison = None
            columns = self._task.profile.part(tile.column, tile.column_stop)
            if tile.strand:
                columns = columns.reverse_complement()
            self._comparison = self._task.method.load(columns, self._pacer)
            self._loaded = tile.strand, tile.column
        return self._comparison

    def _content(self, counters: Any, tile: Tile) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what to save of a tile: number of pairs that share a k-mer, by distance, and counters or edges."""
        pairs, in_rows = _count_pairs(counters, tile)
        if self._finder is None:
            counters = counters if isinstance(counters, np.ndarray) else counters.get()
            return {"pairs": pairs.tolist()}, {"counters": counters}
        edges = self._finder.of_tile(counters, tile.strand, tile.row, tile.column, in_rows)
        columns = {name: edges[name] for name in edges.dtype.names or ()}
        return {"pairs": pairs.tolist(), "edges": len(edges)}, columns


def _count_pairs(counters: Any, tile: Tile) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Clear the counters below the diagonal, and count the pairs above it by distance and, on a CPU, by row."""
    xp = array_module(counters)
    if xp is np:
        from hpcvdj.kernels.kmers.tile_cpu import clear_lower  # compiled by numba, which is slow to import

        by_distance, by_row = clear_lower(counters, tile.row, tile.column)
        return by_distance.sum(axis=0), by_row
    rows = xp.arange(tile.row, tile.row_stop)[:, None]
    columns = xp.arange(tile.column, tile.column_stop)[None, :]
    counters *= columns >= rows
    return np.array([int(xp.count_nonzero((plane != 0) & (columns > rows))) for plane in counters]), None


def _put_together(
    task: Task,
    read_set: InputSet | None,
    tiles: list[Tile],
    folder: RunFolder,
    run: Run,
    attributes: dict[str, Any],
    ranks: list[dict[str, str]],
) -> tuple[list[list[int]], int | None]:
    """Write the result on root and remove the folder.  Return the pairs that share a k-mer, and the number of edges."""
    config, tiles = task.config, sorted(tiles)
    assert run.target is not None
    assert read_set is not None
    pairs = np.zeros((config.relations, config.d + 1), dtype=np.int64)
    number: int | None = None
    pieces: Iterable[Edges] = ()
    if config.edges is not None:
        number, pieces = _edges_of_tiles(task, tiles, folder, run)
    try:
        with atomic_hdf5(run.target, overwrite=run.overwrite or run.resume) as file:
            writer = MotifWriter(file, read_set, task.scoring, number)
            for piece in pieces:
                writer.put_edges(piece)
            for tile in tiles:
                run.raise_if_stopping()
                facts, arrays = folder.read(tile.name, checked=config.edges is None)
                pairs[tile.strand] += facts["pairs"]
                if config.edges is None:
                    writer.put_tile(tile.strand, tile.row, tile.column, arrays["counters"])
            writer.finish(attributes, ranks)
    except MachineError as error:
        raise save_failure(error) from None
    folder.remove()
    return pairs.tolist(), number


def _edges_of_tiles(task: Task, tiles: list[Tile], folder: RunFolder, run: Run) -> tuple[int, Iterator[Edges]]:
    def batches() -> Iterator[Edges]:
        """Yield the edges of the tiles, some millions at a time."""
        waiting: list[Edges] = []
        for tile in tiles:
            run.raise_if_stopping()
            waiting.append(edges_of(folder.read(tile.name)[1]))
            if sum(map(len, waiting)) > _KEPT_EDGES or tile == tiles[-1]:
                yield joined(waiting)
                waiting = []

    if task.config.edges is None or task.config.edges.top is None:
        return sum(folder.read(tile.name, checked=False)[0]["edges"] for tile in tiles), batches()
    best = np.empty(0, edge_type(task.config.d))
    for batch in batches():
        best = task.config.edges.best(joined([best, batch]))
    return len(best), iter((best,))
