"""Counting: tables in, a result out; as a whole, or slice by slice if the input is larger than memory."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.counting.config import Config
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.pathways.methods import Method, Missing, Unit, everything
from hpcvdj.recombination.exclusions import Exclusion, added, by_summary, counts_from_json, counts_json
from hpcvdj.recombination.germline import Germline
from hpcvdj.recombination.repertoire import Problem, Repertoire
from hpcvdj.repertoires.inputs import Inputs, Slice, Table, cut, dealt, numbered, read_slices, repertoire_name, survey
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.tables import open_table
from hpcvdj.results import parts
from hpcvdj.results.reader import Result
from hpcvdj.results.writer import STATE, ResultWriter, result_writer
from hpcvdj.runs.driver import Driver, Partial, Store, Timings
from hpcvdj.runs.folder import Identity, RunFolder
from hpcvdj.runs.progress import Progress
from hpcvdj.runs.run import Run

log = logging.getLogger(__name__)

AUTO_ROWS = 1 << 24
"""Rows above which tables that say how many they have are counted in slices by default."""

SLICE_ROWS = 1 << 22
"""Rows of a slice then: about 1.5 GB of memory for a rank."""

_MOST_LOGGED = 12

STAGES = ("read", "prepare", "kernel", "reduce", "save", "write", "total")
"""What `Summary.seconds` has: kernel and reduce are the maximum over ranks, save is what checkpoints cost."""


@dataclass(frozen=True)
class Summary:
    """What a run found and how long it took; complete on root.

    excluded      the exclusions and their rows, the most frequent first
    pathways      pathways of each n-length over all sequences, exact Python integers
    with_pathway  sequences with at least one pathway
    tables        tables that were counted together, and their repertoires; 0 for one table
    seconds       of each of `STAGES`
    """

    rows_read: int
    counted: int
    excluded: list[tuple[Exclusion, int]]
    pairs: int
    max_n: int
    method: str
    hardware: str
    ranks: int
    pathways: list[int]
    with_pathway: int
    seconds: dict[str, float]
    tables: int = 0
    repertoires: int = 0


class ArrayStore:
    """Values in memory: `values` [sequences, columns]."""

    def __init__(self, problem: Problem, method: Method) -> None:
        self.values = np.zeros((len(problem.repertoire), problem.max_n + 1), dtype=method.quantity.dtype)

    def put(self, unit: Unit, values: NDArray[Any]) -> None:
        """Take a unit's values."""
        n_lengths = unit.n_lengths
        self.values[unit.rows.start : unit.rows.stop, n_lengths.start : n_lengths.stop] = values

    def save(self, partial: Partial | None) -> None:
        """Nothing: a computation in memory has no checkpoint."""


@dataclass(frozen=True)
class Work:
    """What is computed, and on what."""

    problem: Problem
    config: Config
    backend: Backend
    run: Run

    def compute(self, store: Store | None, begun: Partial | None = None, missing: Missing | None = None) -> Computed:
        """Compute what is `missing` (by default everything) into root's `store`; `begun` is the unit under way."""
        method, threads = self.config.method_class(), self.config.threads_per_block
        started = time.perf_counter()
        kernel = self.backend.load(method, self.problem, threads)
        (prepare,) = self.run.slowest(time.perf_counter() - started)
        unit_work = self.run.from_root(lambda: self.backend.unit_work)
        full = everything(self.problem)
        units = list(method.units(self.problem, unit_work, full if missing is None else missing))
        done = 0.0
        if missing is not None:
            done = sum(map(method.work, method.units(self.problem, unit_work, full))) - sum(map(method.work, units))
        if begun is not None:
            units = [begun.unit, *units]
            done -= method.work(begun.unit)
        driver = Driver(kernel, method, threads, self.run)
        timings = driver.compute(units, store, begun, max(0.0, done))
        return Computed(timings, prepare, driver.save_seconds, driver.store_seconds)


@dataclass(frozen=True)
class Computed:
    """Seconds of a computation: of its units, of loading the kernel, of saving and of storing."""

    timings: Timings
    prepare: float
    save: float
    store: float


def count_in_memory(problem: Problem, config: Config, run: Run) -> NDArray[Any] | None:
    """The values of a problem, [sequences, columns], on root; None on the other ranks."""
    config.method_class().require(problem.max_n)
    store = ArrayStore(problem, config.method_class()) if run.is_root else None
    Work(problem, config, run.bind(config.backend, strict=config.strict_binding), run).compute(store)
    return store.values if store is not None else None


def count_tables(
    inputs: Inputs, germline: Germline, config: Config, run: Run, batch_rows: int | None = None
) -> Summary:
    """Count tables into the result file of `run`: what `hpcvdj count` does.

    batch_rows  rows of a slice; 0 counts all rows at once; None does so unless there are more than `AUTO_ROWS`

    As a whole, root reads and writes, and every rank counts its share.  In slices, each slice is read, counted and
    written by one rank; a `sequence_id` that repeats in another slice is not noticed.

    A signal that the run has seen ends it at a boundary: StoppedError, with what is done saved for `resume`.
    HpcvdjError for bad input and failures; the target is then what it was before.  CompleteError if `resume` finds
    the result complete.
    """
    method = config.method_class()
    started = time.perf_counter()
    inputs = replace(inputs, reading=replace(inputs.reading, longest=method.longest_cdr3))
    with run.exclusive(*inputs.files, Path(germline.name)):
        if inputs.together:
            inputs = _surveyed(inputs, run)
        rows = run.from_root(lambda: _slice_rows(inputs, method, batch_rows))
        if rows:
            return _in_slices(inputs, germline, config, run, rows, started)
        return _whole(inputs, germline, config, run, started)


def _slice_rows(inputs: Inputs, method: Method, asked: int | None) -> int:
    """Rows of a slice, or 0 to count all rows at once."""
    if asked is not None:
        return asked
    rows = inputs.rows if inputs.together else open_table(inputs.path).known_rows
    return SLICE_ROWS if rows and rows > AUTO_ROWS and method.disjoint else 0


def _surveyed(inputs: Inputs, run: Run) -> Inputs:
    """The inputs with rows, digests and repertoires of all tables; ranks share the reading, the largest files first.

    InputError, on every rank, that names the first table of the list that cannot be read to its end.
    """
    if run.is_root and inputs.together:
        log.info("reading %s table(s) through before counting", f"{len(inputs.tables):,}")
    order = sorted(range(len(inputs.tables)), key=lambda k: (-(inputs.tables[k].state or (0, 0))[1], k))
    own = {k: _survey(inputs, inputs.tables[k]) for k in order[run.rank :: run.ranks]}
    found = {k: table for part in run.gather_everywhere(own) for k, table in part.items()}

    def place() -> Inputs:
        tables = []
        for k in range(len(found)):
            table = found[k]
            if isinstance(table, InputError):
                raise table
            tables.append(table)
        return numbered(inputs, tables)

    return run.from_root(place)


def _survey(inputs: Inputs, table: Table) -> Table | InputError:
    """The surveyed table, or why it cannot be read: the other ranks wait to hear of it."""
    try:
        return survey(inputs, table)
    except InputError as error:
        return error
    except OSError as error:
        return InputError(f"{table.path}: cannot be read ({error.strerror})")


def _whole(inputs: Inputs, germline: Germline, config: Config, run: Run, started: float) -> Summary:
    """All rows at once, with a checkpoint."""
    junctions = run.on_root(lambda: inputs.read(germline))
    repertoire = _shared(junctions, run)
    max_n = run.from_root(lambda: config.resolve_max_n(repertoire.longest))
    problem = Problem(repertoire, germline, max_n, config.d_forms)
    method, target = config.method_class(), run.target
    assert target is not None
    attributes: dict[str, Any] = {}
    if junctions is not None:
        log_exclusions(junctions)
        inputs = inputs.with_digest()
        attributes = _attributes(inputs, germline, config, max_n, run) | _facts_of(junctions)
    read = time.perf_counter()
    folder, _ = run.open_folder("checkpoint", attributes.get("identity", {}), STATE)
    with ExitStack() as stack:
        stack.callback(lambda: run.is_root and folder.leave(STATE))
        writer, begun, missing = _writer(stack, run, junctions, method, max_n + 1, folder)
        opened = time.perf_counter()
        run.request.begin()
        backend = run.bind(config.backend, strict=config.strict_binding)
        computed = Work(problem, config, backend, run).compute(writer, begun, missing)
        counted = time.perf_counter()
        ranks = run.rank_facts(backend)

        def finish() -> tuple[list[int], int]:
            assert writer is not None
            writer.finish({**attributes, "checkpoint_seconds": computed.save}, ranks, computed.timings, inputs)
            # The result gets its name when the stack unwinds; only then may the checkpoint go.
            stack.pop_all().close()
            folder.remove()
            if run.overwrite:
                parts.discard_parts(target)
            return writer.sums, int(writer.nonzero.sum())

        sums, reached = run.from_root(finish)
    ended = time.perf_counter()
    timings = computed.timings
    seconds = (
        read - started, computed.prepare, float(timings.kernel.sum()), float(timings.reduce.sum()), computed.save,
        opened - read + computed.store + ended - counted, ended - started,
    )  # fmt: skip
    return Summary(
        rows_read=junctions.rows_read if junctions else 0,
        counted=len(repertoire),
        excluded=junctions.excluded.counts() if junctions else [],
        pairs=len(repertoire.pairs),
        max_n=max_n,
        method=method.name,
        hardware=backend.describe(),
        ranks=run.ranks,
        pathways=sums,
        with_pathway=reached,
        seconds=dict(zip(STAGES, seconds, strict=True)),
        tables=len(inputs.tables) * inputs.together,
        repertoires=len(inputs.repertoires),
    )


def _shared(junctions: Junctions | None, run: Run) -> Repertoire:
    """Root's repertoire on every rank."""
    own = junctions.repertoire if junctions else None
    pairs = run.from_root(lambda: own.pairs if own else [])
    arrays = run.share_arrays({"words": own.words, "lengths": own.lengths, "offsets": own.offsets} if own else None)
    return own or Repertoire(pairs=pairs, **arrays)


def _writer(
    stack: ExitStack, run: Run, junctions: Junctions | None, method: Method, width: int, folder: RunFolder
) -> tuple[ResultWriter | None, Partial | None, Missing]:
    """Root's writer, with what an earlier run saved; on every rank the unit that was under way, and what is missing."""

    def open_it() -> ResultWriter:
        assert junctions is not None
        assert run.target is not None
        overwrite = run.overwrite or run.resume
        return stack.enter_context(
            result_writer(run.target, junctions, method, width, overwrite=overwrite, folder=folder)
        )

    writer = run.on_root(open_it)
    own = run.on_root(lambda: writer.restore() if writer else None)
    begun, missing = run.from_root(lambda: (replace(own, values=None) if own else None, writer.missing(own)))  # type: ignore[union-attr]
    return writer, own or begun, missing


def _attributes(inputs: Inputs, germline: Germline, config: Config, max_n: int, run: Run) -> dict[str, Any]:
    """What a result records of its run."""
    recorded = {
        "config": {
            **config.recorded(max_n),
            "calls": asdict(inputs.reading.calls),
            "strict": inputs.reading.strict,
        },
        "repertoire_id": "" if inputs.together else repertoire_name(inputs.path),
        "junctions_path": str(inputs.path.resolve()),
        "junctions_sha256": inputs.digest,
        "sequence_field": inputs.reading.sequence_field,
        "germline_path": germline.name,
        "germline_sha256": germline.digest(),
        "max_p": germline.max_p,
        "d_alleles": germline.d_alleles,
    }
    return {**run.provenance(), **recorded, "identity": _identity(inputs, recorded)}


def _identity(inputs: Inputs, recorded: dict[str, Any]) -> Identity:
    """What two runs must have in common; ranks, threads, blocks, slices and backend may differ."""
    names = ("sequence_field", "germline_sha256", "max_p", "d_alleles", "method", "max_n", "d_forms", "calls")
    facts = {**recorded["config"], **recorded}
    if inputs.together:
        tables: Any = [[table.path.name, table.sha256] for table in inputs.tables]
    else:
        tables = [["the table", recorded["junctions_sha256"]]]
    return {"tables": tables, "together": inputs.together, **{name: facts[name] for name in names}}


def _facts_of(junctions: Junctions) -> dict[str, Any]:
    return {
        "rows_read": junctions.rows_read,
        "substituted_calls": junctions.substituted,
        "excluded_counts": counts_json(junctions.excluded.counts()[:_MOST_COUNTED]),
    }


_MOST_COUNTED = 10_000
"""Different exclusions that a result sums up in its attributes; /excluded has all."""


def _in_slices(inputs: Inputs, germline: Germline, config: Config, run: Run, rows: int, started: float) -> Summary:
    """Slice by slice into the parts of a result; finished parts are the checkpoint."""
    run.from_root(lambda: _require_sliceable(config))
    if not inputs.together:
        inputs = _surveyed(inputs, run)
    target = run.target
    assert target is not None
    attributes = run.from_root(lambda: _attributes(inputs, germline, config, int(config.max_n), run))
    run.on_root(lambda: parts.discard_view(target) if run.overwrite else None)
    folder, facts = run.open_folder(parts.SUFFIX, attributes["identity"], parts.PART, {"slice_rows": rows})
    rows = int(facts["slice_rows"])
    slices = cut(inputs.tables, rows)
    # Root alone looks, before any rank writes: all ranks must see the same parts.
    left = run.from_root(lambda: [part for part in slices if not parts.part_path(folder, part.index).exists()])
    # Slices are mostly read and written, so ranks may share a GPU.
    backend = run.bind(config.backend, strict=config.strict_binding, sharing_pays=True)
    run.request.begin()
    work = _SliceWork(inputs, germline, config, backend, folder, attributes)
    own = dealt(left, run.rank, run.ranks)
    with Progress(sum(part.rows for part in own), "rows", shown=run.shown) as progress:

        def count_slice(item: tuple[Slice, Iterable[pa.RecordBatch]]) -> None:
            work.count(run, *item)
            progress.advance(item[0].rows)

        read = read_slices(inputs, rows, own, run.raise_if_stopping)
        run.each(read, count_slice, f"with the parts in {folder.path} saved; --resume continues")
    slowest = run.slowest(*work.seconds)
    ranks = run.rank_facts(backend)
    begun_joining = time.perf_counter()

    def join() -> Summary:
        inputs.require_unchanged()
        found = _summary_of_parts(inputs, folder, backend, run)
        sums = {"sums": [str(value) for value in found.pathways], "nonzero": found.with_pathway}
        joint = {**attributes, **sums, "rows_read": found.rows_read, "slice_rows": rows, "quantity": work.quantity}
        joint["excluded_counts"] = counts_json(found.excluded[:_MOST_COUNTED])
        parts.join(target, folder, joint, ranks, inputs, overwrite=run.overwrite)
        return found

    summary = run.from_root(join)
    ended = time.perf_counter()
    read_seconds, kernel, write = slowest
    seconds = (read_seconds, 0.0, kernel, 0.0, 0.0, write + ended - begun_joining, ended - started)
    return replace(summary, seconds=dict(zip(STAGES, seconds, strict=True)))


def _require_sliceable(config: Config) -> None:
    method = config.method_class()
    if not method.disjoint:
        raise InputError(f"--batch-rows needs --method direct; {method.name} counts a repertoire as a whole")
    if not isinstance(config.max_n, int):
        raise InputError(
            "--max-n all needs the longest sequence before counting begins; with slices give a number, or count all "
            "rows at once with --batch-rows 0"
        )
    method.require(config.max_n)


class _SliceWork:
    """Reads, counts and writes slices; `seconds` are those of the three."""

    def __init__(
        self,
        inputs: Inputs,
        germline: Germline,
        config: Config,
        backend: Backend,
        folder: RunFolder,
        attributes: dict[str, Any],
    ) -> None:
        self._inputs, self._germline, self._config = inputs, germline, config
        self._backend, self._folder, self._attributes = backend, folder, attributes
        self.quantity = config.method_class().quantity.name
        self.seconds = np.zeros(3)

    def count(self, run: Run, part: Slice, batches: Iterable[pa.RecordBatch]) -> None:
        """Count one slice into its part."""
        begun = time.perf_counter()
        config, method = self._config, self._config.method_class()
        junctions = self._inputs.read(self._germline, batches, part.first_row)
        problem = Problem(junctions.repertoire, self._germline, int(config.max_n), config.d_forms)
        read = time.perf_counter()
        last = part.first_row + part.rows
        tables = tuple(t for t in self._inputs.tables if t.first_row < last and t.first_row + t.rows > part.first_row)
        path = parts.part_path(self._folder, part.index)
        with result_writer(path, junctions, method, problem.max_n + 1) as writer:
            computed = Work(problem, config, self._backend, run.alone()).compute(writer)
            attributes = {**self._attributes, **_facts_of(junctions), "first_row": part.first_row}
            facts = run.alone().rank_facts(self._backend)
            writer.finish(attributes, facts, computed.timings, replace(self._inputs, tables=tables))
        kernel = float(computed.timings.kernel.sum())
        self.seconds += read - begun, kernel, time.perf_counter() - read - kernel
        log.info("rows %s to %s are counted", f"{part.first_row:,}", f"{last:,}")


def _summary_of_parts(inputs: Inputs, folder: RunFolder, backend: Backend, run: Run) -> Summary:
    """What the parts found; InputError if one is damaged or does not fit."""
    rows = counted = reached = 0
    pathways: list[int] = []
    excluded: list[list[tuple[Exclusion, int]]] = []
    pairs: set[tuple[str, str]] = set()
    method = ""
    for path in sorted(folder.path.glob(parts.PART)):
        with Result(path) as part:
            facts = part.provenance
            if int(facts["first_row"]) != rows:
                raise InputError(f"{folder.path}: its parts do not follow each other; start again with --overwrite")
            rows += int(facts["rows_read"])
            counted += len(part)
            reached += int(facts["nonzero"])
            sums = list(map(int, json.loads(facts["sums"])))
            pathways = [a + b for a, b in zip(pathways or [0] * len(sums), sums, strict=True)]
            excluded.append(counts_from_json(json.loads(facts["excluded_counts"])))
            pairs |= {(v, j) for v, j, _ in part.pairs}
            method = json.loads(facts["config"])["method"]
    return Summary(
        rows_read=rows,
        counted=counted,
        excluded=added(excluded),
        pairs=len(pairs),
        max_n=len(pathways) - 1,
        method=method,
        hardware=backend.describe(),
        ranks=run.ranks,
        pathways=pathways,
        with_pathway=reached,
        seconds={},
        tables=len(inputs.tables) * inputs.together,
        repertoires=len(inputs.repertoires),
    )


def log_exclusions(junctions: Junctions) -> None:
    """Warn of calls that were replaced and rows that were excluded, by kind, with the option that lets them in."""
    substituted = sorted(junctions.substituted, key=lambda item: -item[2])
    for call, allele, rows in substituted[:_MOST_LOGGED]:
        log.warning("call %s is counted as %s in %s rows", call, allele, f"{rows:,}")
    if substituted[_MOST_LOGGED:]:
        more = len(substituted) - _MOST_LOGGED
        log.warning("and %d more calls; the attribute substituted_calls of the result lists all", more)
    counts = junctions.excluded.counts()
    if not counts:
        return
    log.warning("%s of %s rows excluded:", f"{len(junctions.excluded):,}", f"{junctions.rows_read:,}")
    for summary, rows, group in by_summary(counts):
        log.warning("  %8s  %s", f"{rows:,}", summary)
        for exclusion, some in group[:_MOST_LOGGED] if len(group) > 1 or str(group[0][0]) != summary else []:
            log.warning("            %8s  %s", f"{some:,}", exclusion)
        if group[_MOST_LOGGED:]:
            rest = sum(some for _, some in group[_MOST_LOGGED:])
            log.warning("            %8s  for %d more reasons", f"{rest:,}", len(group) - _MOST_LOGGED)
        if group[0][0].kind.option:
            log.warning("            %s lets them in", group[0][0].kind.option)
    log.warning("the result lists each of them under /excluded")
