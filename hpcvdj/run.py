"""A run: read → share → count over the ranks → store, with a checkpoint at the boundaries."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj import parts
from hpcvdj.checkpoint import SAVE_SECONDS, TABLES, Checkpoint, remaining
from hpcvdj.driver import Driver, Partial
from hpcvdj.errors import CompleteError, HpcvdjError, InputError, LostRankError, MachineError, StoppedError
from hpcvdj.germline import DForms, Germline, Segment
from hpcvdj.keeper import CheckpointKeeper, Keeper
from hpcvdj.many import Table, difference, listed, repertoire_name
from hpcvdj.methods import Method, Problem, Unit, method_named
from hpcvdj.methods.base import require_n_length
from hpcvdj.methods.enumerating import LONGEST_N
from hpcvdj.parallel import Watch, World
from hpcvdj.partition import THREADS_PER_BLOCK
from hpcvdj.progress import Progress
from hpcvdj.repertoire import CallPolicy, Repertoire, SequenceField, read_repertoire, read_tables
from hpcvdj.results import Result, ResultWriter, Timings
from hpcvdj.stopping import StopRequest
from hpcvdj.storage import alone, require_apart, require_writable
from hpcvdj.totals import column_sums

if TYPE_CHECKING:
    from hpcvdj.backends import Backend

log = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT_MAX_N = 10
"""The paper's largest n-length, which regenerates 99.5 % of its in vivo set (section II-A)."""


@dataclass(frozen=True)
class Config:
    """How to count.

    max_n           the largest n-length, or `all`: up to the longest sequence's length
    strict_binding  two ranks on one GPU are an error, not a warning
    """

    max_n: int | Literal["all"] = DEFAULT_MAX_N
    method: str = "direct"
    backend: str = "auto"
    d_forms: DForms = "paper"
    threads_per_block: int = THREADS_PER_BLOCK
    strict_binding: bool = False

    def resolve_max_n(self, repertoire: Repertoire) -> int:
        """The largest n-length as a number; InputError if the method cannot go there."""
        max_n = repertoire.longest if self.max_n == "all" else int(self.max_n)
        require_n_length(method_named(self.method), max_n, LONGEST_N)
        return max_n


class Store(Protocol):
    """Where root puts the counters of finished units."""

    def put(self, unit: Unit, counters: NDArray[np.uint64]) -> None:
        """Take uint64 [the unit's rows, its n-lengths]."""
        ...


class ArrayStore:
    """Counters in memory: `counters` uint64 [sequences, n-lengths]."""

    def __init__(self, sequences: int, max_n: int) -> None:
        self.counters = np.zeros((sequences, max_n + 1), dtype=np.uint64)

    def put(self, unit: Unit, counters: NDArray[np.uint64]) -> None:
        """Take a unit's counters."""
        n_lengths = unit.n_lengths
        self.counters[unit.rows.start : unit.rows.stop, n_lengths.start : n_lengths.stop] = counters


@dataclass
class Summary:
    """What a run found and how long it took; complete on root.

    pathways    Python ints: pathways of each n-length over all sequences, exact however many
    reached     bool [sequences]: whether a sequence has any pathway
    tables      tables that were counted together, and their repertoires; 0 of one table alone
    seconds     of each stage: read, prepare, kernel and reduce (max over ranks), save (checkpoints), write, total
    """

    rows_read: int
    counted: int
    excluded: list[tuple[str, int]]
    pairs: int
    max_n: int
    method: str
    hardware: str
    ranks: int
    pathways: list[int]
    reached: NDArray[np.bool_]
    seconds: dict[str, float] = field(default_factory=dict)
    tables: int = 0
    repertoires: int = 0

    @property
    def with_pathway(self) -> int:
        """Sequences with at least one pathway."""
        return int(self.reached.sum())


def root_does(world: World, work: Callable[[], T], watch: Watch | None = None) -> T | None:
    """`work()` on root; an HpcvdjError there is raised on every rank, so that all end alike.

    With a `watch`, which `work` passes between its pieces, the others notice if root hangs.
    """
    result: T | None = None
    error: HpcvdjError | None = None
    if world.is_root:
        try:
            result = work()
        except LostRankError:
            raise
        except HpcvdjError as caught:
            error = caught
    if watch is not None:
        watch.end()
    error = world.broadcast(error)
    if error is not None:
        error.on_every_rank = True
        raise error
    return result


def share(world: World, repertoire: Repertoire | None) -> Repertoire:
    """Root's repertoire on every rank, less the ids and rows that only root needs."""
    pairs: list[tuple[Segment, Segment]] = world.broadcast(repertoire.pairs if repertoire is not None else None)
    words = world.broadcast_array(repertoire.words if repertoire is not None else None)
    lengths = world.broadcast_array(repertoire.lengths if repertoire is not None else None)
    offsets = world.broadcast_array(repertoire.offsets if repertoire is not None else None)
    return repertoire if repertoire is not None else Repertoire(words, lengths, pairs, offsets)


@contextmanager
def alone_with(world: World, target: Path) -> Iterator[None]:
    """`storage.alone`, of root; its InputError on every rank."""
    with ExitStack() as stack:
        root_does(world, lambda: stack.enter_context(alone(target)))
        yield


@dataclass
class Tally:
    """What a count found.  `reached` and `pathways` are complete on root only.

    reached   bool [sequences]: whether a sequence has any pathway
    pathways  Python ints: pathways of each n-length over all sequences
    hardware  this rank's, in words
    software  what compiles and runs its kernels
    prepare   seconds that loading (and, the first time, compiling) the kernel took on the slowest rank
    store     seconds that storing took on this rank
    """

    timings: Timings
    prepare: float
    store: float
    reached: NDArray[np.bool_]
    pathways: list[int]
    hardware: str
    software: str


def count(problem: Problem, config: Config, world: World, store: Store | None, keeper: Keeper | None = None) -> Tally:
    """Count `problem` over the ranks of `world`; root's `store` takes each finished unit.

    `keeper` decides what happens at boundaries.  StoppedError, on every rank, if it has seen a signal.
    """
    return count_loaded(problem, config, world, store, bind(config, world), keeper)


def count_loaded(
    problem: Problem, config: Config, world: World, store: Store | None, backend: Backend, keeper: Keeper | None = None
) -> Tally:
    """`count` on a backend that is open already."""
    start = time.perf_counter()
    method = method_named(config.method)
    kernel = backend.load(method.name, problem, config.threads_per_block)
    prepare = float(world.maximum(np.array([time.perf_counter() - start]))[0])
    reached = np.zeros(len(problem.repertoire), dtype=bool)
    pathways = [0] * (problem.max_n + 1)
    store_seconds = 0.0

    def put(unit: Unit, counters: NDArray[np.uint64]) -> None:
        nonlocal store_seconds
        before = time.perf_counter()
        if store is not None:
            store.put(unit, counters)
        sums = column_sums(counters, reached[unit.rows.start : unit.rows.stop])
        for m, total in zip(unit.n_lengths, sums, strict=True):
            pathways[m] += total
        store_seconds += time.perf_counter() - before

    keeper = keeper or Keeper()
    units = list(method.units(problem, world.broadcast(backend.unit_work)))
    whole = sum(map(method.work, units))
    begun, units = _left(problem, units, keeper, put, world, disjoint=method.disjoint)

    def finish(unit: Unit, counters: NDArray[np.uint64]) -> None:
        put(unit, counters)
        keeper.finished(unit)

    driver = Driver(kernel, method, config.threads_per_block, world, piece_seconds=keeper.piece_seconds)
    with Progress(whole, method.work_name, shown=world.is_root) as progress:
        done_before = whole - sum(map(method.work, units)) + (_work_done(method, begun) if begun else 0.0)
        progress.skip(done_before)
        if done_before:
            log.info("resuming: %.1f %% of the work was done before", 100 * done_before / whole)
        seconds, stopped = driver.run(
            units, finish, advance=progress.advance, boundary=keeper.boundary, stop=keeper.stop, begun=begun
        )
    if stopped:
        root_does(world, keeper.save)
        error = StoppedError(
            f"stopped by {keeper.reason(world)}: {100 * progress.done / (whole or 1):.1f} % is counted and safe; "
            "--resume goes on"
        )
        error.on_every_rank = True
        raise error
    return Tally(
        timings=_timings(world, units, seconds),
        prepare=prepare,
        store=store_seconds,
        reached=reached,
        pathways=pathways,
        hardware=backend.describe(),
        software=backend.software(),
    )


def _left(
    problem: Problem,
    units: list[Unit],
    keeper: Keeper,
    put: Callable[[Unit, NDArray[np.uint64]], None],
    world: World,
    *,
    disjoint: bool,
) -> tuple[Partial | None, list[Unit]]:
    """What an earlier run has left to count: the unit it was in, if any, which comes first, and the units."""
    pairs = len(problem.repertoire.pairs)
    done = begun = None
    if world.is_root:
        done, begun = keeper.restore(put, (problem.max_n + 1, pairs))
    done = world.broadcast_array(done)
    mine = begun
    begun = world.broadcast(Partial(begun.unit, begun.tasks_done, None) if begun else None)
    if begun:
        unit = begun.unit
        done[unit.n_lengths.start : unit.n_lengths.stop, unit.pairs.start : unit.pairs.stop] = True
    offsets = problem.repertoire.offsets
    left = [part for unit in units for part in remaining(unit, done, offsets, disjoint=disjoint)]
    return (mine or begun, [begun.unit, *left]) if begun else (None, left)


def _work_done(method: Method, begun: Partial) -> float:
    return method.work(begun.unit) * begun.tasks_done / begun.unit.tasks


def bind(config: Config, world: World) -> Backend:
    """The backend of this rank; two ranks on one GPU are a warning, with `strict_binding` a MachineError."""
    from hpcvdj.backends import open_backend

    backend = open_backend(config.backend, world.local_rank())
    world.meet()
    uuids = world.gather(getattr(backend, "uuid", ""))
    root_does(world, lambda: _check_binding(uuids or [], strict=config.strict_binding))
    return backend


def _check_binding(uuids: list[str], *, strict: bool) -> None:
    """`uuids` of the ranks' GPUs, empty for a rank without one."""
    users: dict[str, list[int]] = {}
    for rank, uuid in enumerate(uuids):
        users.setdefault(uuid, []).append(rank)
    for uuid, ranks in users.items():
        if uuid and len(ranks) > 1:
            shared = f"ranks {', '.join(map(str, ranks))} share one GPU ({uuid}): start as many ranks as there are GPUs"
            if strict:
                raise MachineError(shared + ", or leave --strict-binding out")
            log.warning("%s", shared)


def _timings(world: World, units: list[Unit], seconds: NDArray[np.float64]) -> Timings:
    slowest = world.maximum(seconds)
    mine = seconds.sum(axis=1)
    per_rank = np.array(world.gather(mine) or [mine])
    return Timings(units, slowest[0], slowest[1], slowest[2], per_rank[:, 0], per_rank[:, 1])


@dataclass(frozen=True)
class Inputs:
    """Which junctions to count, and how to read them.

    tables  those that are counted together; `junctions` is then the folder that has them
    """

    junctions: Path
    sequence_field: SequenceField = "junction"
    calls: CallPolicy = field(default_factory=CallPolicy)
    strict: bool = False
    tables: tuple[Table, ...] = ()

    @property
    def files(self) -> list[Path]:
        """What is read."""
        return [table.path for table in self.tables] or [self.junctions]

    @property
    def repertoires(self) -> list[str]:
        """The repertoires of tables that are counted together."""
        return list(dict.fromkeys(name for table in self.tables for name in table.repertoires))


def count_file(
    inputs: Inputs,
    germline: Germline,
    target: Path,
    config: Config,
    world: World,
    *,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint_every: float = SAVE_SECONDS,
    request: StopRequest | None = None,
) -> Summary:
    """Count a file of junctions into the result file `target`: what `hpcvdj count` does.

    Root reads and writes; every rank counts its share.  `resume` goes on from the checkpoint of `target`, if it has
    one, where what is counted is saved every `checkpoint_every` seconds.

    A signal that `request` has seen ends the run at a boundary: StoppedError, and a checkpoint.  HpcvdjError on
    bad input and on failure; `target` is then what it was before.  CompleteError if `resume` finds it complete.
    """
    started = time.perf_counter()
    request = request or StopRequest()
    method = method_named(config.method)
    mine = root_does(world, lambda: _read(inputs, germline, target, method, overwrite or resume))
    repertoire = share(world, mine)
    # Not before all ranks have it: which n-lengths there are may depend on the sequences.
    max_n = world.broadcast(root_does(world, lambda: config.resolve_max_n(repertoire)))
    if world.is_root:
        _log_calls_and_exclusions(repertoire)
    read = time.perf_counter()
    problem = Problem(repertoire, germline, max_n, config.d_forms)
    attributes = _attributes(world, inputs, germline, config, repertoire, max_n) if world.is_root else {}
    with alone_with(world, target), ExitStack() as stack:
        checkpoint = root_does(
            world, lambda: _checkpoint(inputs, target, attributes, checkpoint_every, resume=resume, overwrite=overwrite)
        )
        if checkpoint is not None:
            stack.callback(checkpoint.leave)
        path = checkpoint.result_path if checkpoint else None
        writer = root_does(
            world,
            lambda: stack.enter_context(ResultWriter(target, repertoire, max_n, overwrite=overwrite, temporary=path)),
        )
        opened = time.perf_counter()
        request.begin_counting()
        tally = count(problem, config, world, writer, CheckpointKeeper(checkpoint, writer, request))
        counted = time.perf_counter()
        ranks = world.gather(facts_of_rank(tally.hardware, tally.software))
        if writer is not None and ranks is not None:
            saving = {"checkpoint_seconds": checkpoint.seconds} if checkpoint else {}
            writer.finish({**attributes, **saving}, ranks, tally.timings, inputs.tables)
        if checkpoint is not None:
            # Called after the writer has closed and the result has its name: the stack unwinds from its end.
            stack.pop_all().close()
            checkpoint.remove()
            if overwrite:
                parts.discard(target)
    world.barrier()
    ended = time.perf_counter()
    return Summary(
        rows_read=repertoire.rows_read,
        counted=len(repertoire),
        excluded=repertoire.excluded.by_reason(),
        pairs=len(repertoire.pairs),
        max_n=max_n,
        method=method.name,
        hardware=tally.hardware,
        ranks=world.size,
        pathways=tally.pathways,
        reached=tally.reached,
        seconds={
            "read": read - started,
            "prepare": tally.prepare,
            "kernel": float(tally.timings.kernel.sum()),
            "reduce": float(tally.timings.reduce.sum()),
            "save": checkpoint.seconds if checkpoint else 0.0,
            "write": opened - read + tally.store + ended - counted,
            "total": ended - started,
        },
        tables=len(inputs.tables),
        repertoires=len(inputs.repertoires),
    )


IDENTITY = (
    "junctions_sha256",
    "sequence_field",
    "germline_sha256",
    "max_p",
    "d_alleles",
    "method",
    "max_n",
    "d_forms",
    "calls",
)
"""What a run has in common with one that goes on with its counters; ranks, threads, blocks and backend may differ."""


def _checkpoint(
    inputs: Inputs, target: Path, attributes: dict[str, Any], save_seconds: float, *, resume: bool, overwrite: bool
) -> Checkpoint:
    identity = identity_of(attributes, inputs.tables)
    if resume and target.exists() and not overwrite:
        already_done(target, identity)
    checkpoint = Checkpoint(target, identity, save_seconds)
    checkpoint.open(resume=resume, overwrite=overwrite)
    return checkpoint


def identity_of(attributes: dict[str, Any], tables: Sequence[Table] = ()) -> dict[str, Any]:
    """The `IDENTITY` of a run; of tables that are counted together each one's, to tell which is another."""
    facts = {**attributes["config"], **attributes}
    identity = {name: facts[name] for name in IDENTITY}
    if tables:
        del identity["junctions_sha256"]
        identity[TABLES] = listed(tables)
    return identity


def already_done(target: Path, identity: dict[str, Any]) -> None:
    """CompleteError if `target` is the result of such a run; InputError, as without `resume`, if it is not."""
    with Result(target) as result:
        theirs = {**json.loads(result.provenance["config"]), **result.provenance}
        names = [name for name in identity if name != TABLES and str(theirs.get(name)) != str(identity[name])]
        tables = [[table.path.name, table.sha256] for table in result.tables] if TABLES in identity else []
    other = difference(tables, identity.get(TABLES, []))
    if names or other:
        what = "; ".join([f"its {', '.join(names)} differ"] * bool(names) + [other] * bool(other))
        raise InputError(f"{target}: exists and holds another run ({what}); give another name, or --overwrite")
    raise CompleteError(f"{target}: is complete already; nothing to resume")


def _read(inputs: Inputs, germline: Germline, target: Path, method: Method, overwrite: bool) -> Repertoire:
    require_writable(target, overwrite=overwrite)
    require_apart(target, *inputs.files, Path(germline.name))
    options: dict[str, Any] = {
        "sequence_field": inputs.sequence_field,
        "calls": inputs.calls,
        "longest": method.longest_cdr3,
        "strict": inputs.strict,
    }
    if inputs.tables:
        return read_tables(inputs.tables, germline, **options)
    return read_repertoire(inputs.junctions, germline, **options)


def facts_of_rank(hardware: str, software: str) -> dict[str, str]:
    from hpcvdj.provenance import rank_facts

    return rank_facts(hardware, software)


def run_attributes(
    world: World, inputs: Inputs, germline: Germline, config: Config, max_n: int, source: dict[str, str]
) -> dict[str, Any]:
    """What a result records of its run; `source` is the table's path, sha256 and field."""
    from hpcvdj.provenance import run_facts

    return {
        **run_facts(world),
        "config": {
            **asdict(config),
            "max_n": max_n,
            "max_n_asked": config.max_n,
            "calls": asdict(inputs.calls),
            "strict": inputs.strict,
        },
        "repertoire_id": "" if inputs.tables else repertoire_name(inputs.junctions),
        "junctions_path": source["path"],
        "junctions_sha256": source["sha256"],
        "sequence_field": source["field"],
        "germline_path": germline.name,
        "germline_sha256": germline.digest(),
        "max_p": germline.max_p,
        "d_alleles": germline.d_alleles,
    }


def _attributes(
    world: World, inputs: Inputs, germline: Germline, config: Config, repertoire: Repertoire, max_n: int
) -> dict[str, Any]:
    facts = run_attributes(world, inputs, germline, config, max_n, repertoire.source)
    return {**facts, "rows_read": repertoire.rows_read, "substituted_calls": repertoire.substituted}


def _log_calls_and_exclusions(repertoire: Repertoire, most: int = 12) -> None:
    substituted = sorted(repertoire.substituted, key=lambda item: -item[2])
    for call, allele, rows in substituted[:most]:
        log.warning("call %s is counted as %s in %s rows", call, allele, f"{rows:,}")
    if substituted[most:]:
        log.warning("and %d other calls; the result file's substituted_calls lists all", len(substituted[most:]))
    reasons = repertoire.excluded.by_reason()
    if not reasons:
        return
    log.warning("%s of %s rows excluded:", f"{len(repertoire.excluded):,}", f"{repertoire.rows_read:,}")
    for reason, rows in reasons[:most]:
        log.warning("  %8s  %s", f"{rows:,}", reason)
    rest: Sequence[tuple[str, int]] = reasons[most:]
    if rest:
        log.warning("  %8s  for %d other reasons", f"{sum(rows for _, rows in rest):,}", len(rest))
    log.warning("every one of them is listed in the result file under /excluded")
