"""Sequences drawn from a recombination model, as AIRR rows.

Sequence i depends only on the seed and i, through the random numbers of Philox.  Ranks, threads, slices and the backend
do not change it.  Only scenarios that make a junction are drawn, so the frequency of a junction is its generation
probability, divided by the probability that a recombination makes a junction (`Possible`).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from itertools import accumulate
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError, log, option
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.generation.simulate import sequence_ids
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.generation.draw_cpu import Drawn
from hpcvdj.kernels.generation.letters import productive_rows, unpack_spans
from hpcvdj.kernels.generation.tables import EVENTS, DrawTables
from hpcvdj.kernels.method import on_each_backend
from hpcvdj.kernels.text import translate_rows
from hpcvdj.recombination.alphabet import RESIDUE_OF_CODON
from hpcvdj.recombination.models import Model, Template
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.runs.progress import Progress
from hpcvdj.runs.run import Run
from hpcvdj.values.plain_tables import plain_table

BATCH = 1 << 16
"""The number of sequences that a rank draws at a time, if so many are asked for."""

SMALLEST_BATCH = 1 << 10

BATCHES = 4
"""The number of batches of a slice of a table."""

MOST_RANKS = 32
"""The largest number of ranks that draw for root's memory: they keep root busy."""

MOST_GROWTH = 3
"""The largest factor by which the number of slices grows if too few rows are kept."""


SAMPLERS = on_each_backend("hpcvdj.kernels.generation.draw_{}.Sampler")
"""The kernel of each backend."""

MANY_DRAWS = 100
"""The number of productive draws for each kept one from which on there is a warning that drawing takes long."""


class _Draws:
    """Draws sequences from a model, `size` at a time, as AIRR rows; raises InputError if the model makes none.

    share  the approximate share of the sequences that are kept
    """

    def __init__(self, model: Model, plan: GenerationSettings, backend: Backend, run: Run) -> None:
        if plan.selection:
            plan = replace(plan, productive=True)
            largest = np.exp(model.require_selection().largest)
            if run.is_root and largest > MANY_DRAWS:
                log.warning(
                    "%s: its selection factor is up to %s; one in about so many productive draws is kept, so this "
                    "takes as many times as long", model.name, f"{largest:,.0f}",
                )  # fmt: skip
        self.share = productive_probability(model) if plan.productive else 1.0
        if self.share == 0:
            raise InputError(f"{model.name}: makes no productive junction; leave out {option('productive')}")
        self.plan = plan
        # The same for any number of ranks: Parquet files have a row group for each batch.
        self.size = min(BATCH, max(plan.number, SMALLEST_BATCH))
        self._sampler = resolve_name(SAMPLERS[backend.name])(DrawTables.of(model))
        self._has_d = model.has_d
        self._v, self._d, self._j = (_Segments(templates) for templates in (model.v, model.d, model.j))
        self._factor = model.selection if plan.selection else None
        self._genes = [v.allele for v in model.v for _ in model.j], [j.allele for _ in model.v for j in model.j]

    def batch(self, begin: int) -> pa.RecordBatch | None:
        """Return the rows that are kept of sequences from number `begin` on; None if the plan has no such sequences."""
        count = self.size if self.plan.productive else min(self.size, self.plan.number - begin)
        if count <= 0:
            return None
        drawn: Drawn = self._sampler(begin, count, self.plan.seed)
        numbers = np.arange(begin, begin + len(drawn.lengths))
        productive = np.empty(len(numbers), dtype=bool)
        productive_rows(drawn.words, drawn.lengths, productive)
        if self._factor is not None:
            productive &= self._survives(begin, drawn, productive, self._factor)
        if self.plan.productive:
            drawn = Drawn(drawn.words[productive], drawn.lengths[productive], drawn.events[productive])
            numbers, productive = numbers[productive], productive[productive]
        event = dict(zip(EVENTS, drawn.events.T.astype(np.int64), strict=True))
        lengths = drawn.lengths.astype(np.int64)
        d_call = self._d.alleles.take(pa.array(event["d"])) if self._has_d else pa.nulls(len(numbers), pa.string())
        columns = {
            "sequence_id": sequence_ids(numbers),
            "v_call": self._v.alleles.take(pa.array(event["v"])),
            "d_call": d_call,
            "j_call": self._j.alleles.take(pa.array(event["j"])),
            "junction": _letters(drawn.words, np.zeros_like(lengths), lengths),
            "junction_aa": _residues(drawn.words, lengths),
            "productive": pa.array(productive),
        }
        if self.plan.scenarios:
            columns |= self.scenario(drawn.words, event)
        return pa.RecordBatch.from_pydict(columns)

    def _survives(
        self, begin: int, drawn: Drawn, productive: NDArray[np.bool_], factor: SelectionFactor
    ) -> NDArray[np.bool_]:
        """Return whether each productive sequence is kept, with the probability Q / largest Q."""
        codons = np.where(productive, drawn.lengths, 3).astype(np.int64) // 3
        width = int(codons.max(initial=1))
        letters = np.zeros((len(codons), width), dtype=np.uint8)
        translate_rows(drawn.words, codons, RESIDUE_OF_CODON, np.arange(len(codons)) * width, letters.reshape(-1))
        v, j = (drawn.events[:, EVENTS.index(name)].astype(np.int64) for name in "vj")
        logs = factor.log_factor(*self._genes, v * len(self._j.alleles) + j, letters, codons)
        # Each sequence has a block of four random numbers, by its number; the first one is used.
        key = np.random.SeedSequence([self.plan.seed, 3]).generate_state(2, np.uint64)
        blocks = np.random.Philox(key=key).advance(begin)
        chance = np.random.Generator(blocks).random((len(codons), 4))[:, 0]
        return np.asarray(np.log(chance) < logs - factor.largest)

    def scenario(self, words: NDArray[np.uint64], event: dict[str, NDArray[np.int64]]) -> dict[str, pa.Array]:
        """Return the columns of the scenarios, named as in `hpcvdj explain`; null without D.

        Trims are numbers of bases of the segments, without P-nucleotides.
        """
        v, d, j = self._v, self._d, self._j
        kept = v.extended[event["v"]] - event["v_deleted"]
        columns: dict[str, Any] = {
            "v_trim": np.maximum(v.end[event["v"]] - kept, 0),
            "p3v_length": np.maximum(kept - v.end[event["v"]], 0),
            "n1": _letters(words, kept, event["n1_length"]),
            "n1_length": event["n1_length"],
            **dict.fromkeys(("d_form", "d_trim_5", "d_trim_3", "p5d_length", "p3d_length", "n2", "n2_length")),
            "p5j_length": np.maximum(j.begin[event["j"]] - event["j_deleted"], 0),
            "j_trim": np.maximum(event["j_deleted"] - j.begin[event["j"]], 0),
        }
        if self._has_d:
            begin, end = d.begin[event["d"]], d.end[event["d"]]
            left = event["d_deleted_5"]
            stop = d.extended[event["d"]] - event["d_deleted_3"]
            columns |= {
                "d_form": _letters(words, kept + event["n1_length"], stop - left),
                "d_trim_5": np.clip(left - begin, 0, end - begin),
                "d_trim_3": np.clip(end - stop, 0, end - begin),
                "p5d_length": np.maximum(np.minimum(stop, begin) - left, 0),
                "p3d_length": np.maximum(stop - np.maximum(left, end), 0),
                "n2": _letters(words, kept + event["n1_length"] + stop - left, event["n2_length"]),
                "n2_length": event["n2_length"],
            }
        return {
            name: pa.nulls(len(words), pa.string() if name in ("d_form", "n2") else pa.int16()) if values is None
            else values if isinstance(values, pa.Array) else pa.array(values.astype(np.int16))
            for name, values in columns.items()
        }  # fmt: skip


def generate_table(model: Model, plan: GenerationSettings, backend: Backend, run: Run) -> Counter[tuple[str, str]]:
    """Write the rows of `generate` as the table that is the target of `run`; ranks share slices.

    Returns the number of rows of each V–J pair, on every rank.  Raises StoppedError after a signal; finished slices are
    saved for `resume`.
    """
    draws = _Draws(model, plan, backend, run)
    identity = {**model.facts(), "joint": model.joint, **asdict(draws.plan)}
    with plain_table(run, identity, BATCHES * draws.size) as table:
        files = table.files
        limits = dict[int, int]()

        def batches(index: int, facts: dict[str, Any]) -> Iterator[pa.RecordBatch]:
            left, pairs = limits.get(index, table.size), Counter[tuple[str, str]]()
            # Other ranks draw the slices before this one.
            progress.advance(max(0.0, index * table.size * draws.share - progress.done))
            for begin in range(index * table.size, (index + 1) * table.size, draws.size):
                batch = draws.batch(begin)
                # The first batch is written even without rows, as it has the columns.
                if batch is not None and left and (batch.num_rows or begin == index * table.size):
                    batch = batch.slice(0, left)
                    left -= batch.num_rows
                    pairs += pairs_of(batch)
                    progress.advance(batch.num_rows)
                    yield batch
            facts |= {"rows": pairs.total(), "pairs": [[*pair, rows] for pair, rows in pairs.items()]}

        def draw(index: int) -> None:
            facts: dict[str, Any] = {}
            table.write(index, batches(index, facts), facts)

        def follow(slices: int) -> tuple[int, dict[int, int]]:
            """Return the number of slices as far as is known, and the number of rows to keep of one with too many."""
            rows = [files.read(index)["rows"] for index in range(slices)]
            ends = list(accumulate(rows))
            last = bisect_left(ends, plan.number)
            if last == slices:
                more = -(-(plan.number - ends[-1]) * slices // ends[-1]) if ends[-1] else slices
                return slices + min(more, MOST_GROWTH * slices), {}
            surplus = ends[last] - plan.number
            if surplus:
                files.forget(last)
            return last + 1, {last: rows[last] - surplus} if surplus else {}

        slices, drawn = int(-(-plan.number // (table.size * draws.share))), 0
        with Progress(plan.number, "junctions", shown=run.shown, what="drawing") as progress:
            while slices != drawn or limits:
                finished = run.from_root(lambda: files.finished)
                run.each(filter(files.taken(finished), range(slices)), draw, files.saved)
                drawn = slices
                slices, limits = run.from_root(partial(follow, slices))

        def total() -> Counter[tuple[str, str]]:
            pairs = Counter[tuple[str, str]]()
            for index in range(slices):
                pairs.update({(v, j): rows for v, j, rows in files.read(index)["pairs"]})
            return pairs

        pairs = run.from_root(total)
        table.join(range(slices))
    return pairs


def pairs_of(batch: pa.RecordBatch) -> Counter[tuple[str, str]]:
    counts = pa.Table.from_batches([batch]).group_by(["v_call", "j_call"]).aggregate([([], "count_all")])
    return Counter({(row["v_call"], row["j_call"]): row["count_all"] for row in counts.to_pylist()})


def generate(model: Model, plan: GenerationSettings, backend: Backend, run: Run) -> Iterator[pa.RecordBatch]:
    """Yield the rows as AIRR record batches, in the order of their numbers, on root; all ranks draw.

    Columns: sequence_id (insilico_0, …), v_call, d_call, j_call, junction, junction_aa (empty for a junction out of
    frame), productive; with `scenarios` also those of `_Draws.scenario`.  Raises InputError if the model makes no such
    junction.
    """
    draws = _Draws(model, plan, backend, run)
    workers = min(run.ranks, MOST_RANKS)
    first = done = 0
    with Progress(plan.number, "junctions", shown=run.shown, what="drawing") as progress:
        while done < plan.number:
            drawn = draws.batch(first + run.rank * draws.size) if run.rank < workers else None
            for batch in run.gather(drawn) or []:
                if batch is not None and batch.num_rows and done < plan.number:
                    yield batch.slice(0, plan.number - done)
                    done += batch.num_rows
            done = run.from_root(partial(int, done))
            first += workers * draws.size
            progress.advance(min(done, plan.number) - progress.done)


class _Segments:
    """The alleles of a segment; all arrays may be empty.

    extended    int64 [alleles]: lengths of the extended segments
    begin, end  int64 [alleles]: where the segments themselves begin and end in the extended ones
    """

    def __init__(self, templates: tuple[Template, ...]) -> None:
        self.alleles = pa.array([template.allele for template in templates], pa.string())
        self.extended = np.array([len(template.extended) for template in templates], dtype=np.int64)
        self.begin = np.array([template.p5 for template in templates], dtype=np.int64)
        self.end = self.begin + np.array([len(template.segment) for template in templates], dtype=np.int64)


def _letters(words: NDArray[np.uint64], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> pa.Array:
    return _texts(lengths, partial(unpack_spans, words, begins))


def _residues(words: NDArray[np.uint64], lengths: NDArray[np.int64]) -> pa.Array:
    """Return the amino acids of packed sequences; empty texts for those out of frame."""
    codons = np.where(lengths % 3 == 0, lengths // 3, 0)
    return _texts(codons, partial(translate_rows, words, codons, RESIDUE_OF_CODON))


def _texts(lengths: NDArray[np.int64], fill: Callable[[NDArray[np.int32], NDArray[np.uint8]], None]) -> pa.Array:
    """Return texts of these lengths, which `fill` writes at Arrow's offsets."""
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    letters = np.empty(offsets[-1], dtype=np.uint8)
    fill(offsets, letters)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(letters))
