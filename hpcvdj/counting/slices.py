"""Input larger than memory: each slice is read, counted and written into a part of the result by one rank."""

import json
import logging
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.counting.compute import Work
from hpcvdj.counting.config import Config
from hpcvdj.counting.summary import MOST_COUNTED, STAGES, Summary, attributes_of, facts_of, log_exclusions
from hpcvdj.errors import HpcvdjError, InputError
from hpcvdj.kernels.backends import Backend
from hpcvdj.recombination.exclusions import Exclusion, added, counts_json
from hpcvdj.recombination.germline import Germline
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.repertoires.inputs import Inputs, Slice, Table, cut, dealt, numbered, read_slices, survey
from hpcvdj.results import parts
from hpcvdj.results.reader import Result
from hpcvdj.results.writer import result_writer
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.progress import Progress
from hpcvdj.runs.run import Run

log = logging.getLogger(__name__)


def surveyed(inputs: Inputs, run: Run) -> Inputs:
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


def count_in_slices(inputs: Inputs, germline: Germline, config: Config, run: Run, rows: int, started: float) -> Summary:
    """Slice by slice into the parts of a result; finished parts are the checkpoint."""
    run.from_root(lambda: _require_sliceable(config))
    if not inputs.together:
        inputs = surveyed(inputs, run)
    target = run.target
    assert target is not None
    attributes = run.from_root(lambda: attributes_of(inputs, germline, config, int(config.max_n), run))
    folder, facts = run.open_folder(
        parts.SUFFIX,
        attributes["identity"],
        parts.PART,
        {"slice_rows": rows},
        permanent=True,
        before_removal=lambda: parts.discard_view(target),
    )
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
        try:
            run.each(read, count_slice, f"with the part files in {folder.path} saved; --resume continues")
        except HpcvdjError:
            if run.is_root:
                folder.leave(parts.PART)
            raise
    slowest = run.slowest(*work.seconds)
    ranks = run.rank_facts(backend)
    begun_joining = time.perf_counter()

    def join() -> Summary:
        inputs.require_unchanged()
        found, substituted = _summary_of_parts(inputs, folder, backend, run)
        log_exclusions(found.rows_read, found.excluded, substituted)
        joint = {
            **attributes,
            "rows_read": found.rows_read,
            "slice_rows": rows,
            "quantity": work.quantity,
            "sums": [str(value) for value in found.pathways],
            "nonzero": found.with_pathway,
            "substituted_calls": substituted,
            "excluded_counts": counts_json(found.excluded[:MOST_COUNTED]),
        }
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
            attributes = {**self._attributes, **facts_of(junctions), "first_row": part.first_row}
            facts = run.alone().rank_facts(self._backend)
            writer.finish(attributes, facts, computed.timings, replace(self._inputs, tables=tables))
        kernel = float(computed.timings.kernel.sum())
        self.seconds += read - begun, kernel, time.perf_counter() - read - kernel
        log.info("rows %s to %s are counted", f"{part.first_row:,}", f"{last:,}")


def _summary_of_parts(
    inputs: Inputs, folder: RunFolder, backend: Backend, run: Run
) -> tuple[Summary, list[tuple[str, str, int]]]:
    """What the parts found, and the calls that were replaced; InputError if a part is damaged or does not fit."""
    rows = counted = reached = 0
    pathways: list[int] = []
    excluded: list[list[tuple[Exclusion, int]]] = []
    substituted: Counter[tuple[str, str]] = Counter()
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
            excluded.append(part.excluded_counts)
            for call, allele, replaced in json.loads(facts["substituted_calls"]):
                substituted[call, allele] += replaced
            pairs |= {(v, j) for v, j, _ in part.pairs}
            method = json.loads(facts["config"])["method"]
    summary = Summary(
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
    return summary, [(*replaced, rows) for replaced, rows in substituted.items()]
