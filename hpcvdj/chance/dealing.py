"""Rows of a cohort's tables on ranks: each rank reads some of the tables, and keeps some of the rows of all tables.

A hash of the amino acids of a row says which rank keeps it.  So equal sequences are on one rank, whether nucleotides or
amino acids are compared, with genes or without.  Where sequences are compared with similar ones, it is a hash of the V
and J genes and the length.  Numbers of an individual are sums over the ranks.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.text import hash_letters
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind, added
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import Collected, amino_acids, by_gene, kinds_of, merged, numbers_of_pairs
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.read_counts import UNKNOWN
from hpcvdj.repertoires.tables import Table
from hpcvdj.repertoires.tally import Tally
from hpcvdj.runs.partition import evenly
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.memory import return_freed_memory

Counts = NDArray[np.int64]

Alike = Literal["amino acids", "block"]
"""What rows of one rank have in common: their amino acids; or their V and J genes and length."""

ROWS_AT_ONCE = 1 << 23
"""Rows that a rank sends at once, at most: below 2 GiB, of which older MPI libraries can count the bytes."""

ROWS_TOGETHER = 1 << 19
"""About as many rows are worked on together where all at once would take much memory."""


@dataclass(frozen=True)
class Part:
    """Some rows.

    repertoire  their junctions, by gene
    sample      integers [rows]: place of the sample in `Dealt.samples`
    row         int64 [rows]: data row of the input; None if nobody asks for it
    reads       integers [rows]; `UNKNOWN` where the input does not say; None if no row has any
    """

    repertoire: Repertoire
    sample: NDArray[Any]
    row: Counts | None
    reads: NDArray[Any] | None

    def __len__(self) -> int:
        return len(self.sample)

    def only(self, rows: Counts) -> "Part":
        """Some of them, ascending."""
        return self._of(self.repertoire.subset(rows), rows)

    def of_pairs(self, first: int, stop: int) -> "Part":
        """Those of `pairs[first:stop]`, which are not copied."""
        own = self.repertoire
        offsets = own.offsets[first : stop + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        chosen = Repertoire(
            own.words[rows], own.lengths[rows], own.pairs[first:stop], offsets - offsets[0], own.letters
        )
        return self._of(chosen, rows)

    def _of(self, repertoire: Repertoire, rows: Any) -> "Part":
        row, reads = (None if values is None else values[rows] for values in (self.row, self.reads))
        return Part(repertoire, self.sample[rows], row, reads)

    @staticmethod
    def joined(parts: Sequence["Part"]) -> "Part":
        """All rows of several parts, by gene."""
        repertoire, order = merged([part.repertoire for part in parts])
        sample, row, reads = (
            None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])[order]
            for name in ("sample", "row", "reads")
        )
        assert sample is not None
        return Part(repertoire, sample, row, reads)


@dataclass(frozen=True)
class Dealt:
    """The rows of a cohort's tables that this rank has.

    parts     its own rows
    samples   of all ranks
    left_out  how many rows of each sample were excluded, by the reason, of all ranks
    tally     what became of the rows of all ranks; on root
    example   a junction of any rank, or none if there is none
    run       the ranks
    """

    parts: list[Part]
    samples: list[str]
    left_out: Counter[tuple[str, str]]
    tally: Tally | None
    example: Repertoire
    run: Run

    @property
    def reads(self) -> bool:
        """Whether read counts are known."""
        return self.parts[0].reads is not None

    def collected(self) -> Collected:
        """A place for some of the rows, to be taken in the order of `by_gene`."""
        width = max(part.repertoire.words.shape[1] for part in self.parts)
        return Collected(sum(map(len, self.parts)), width, self.parts[0].repertoire.letters)

    def by_gene(self) -> Iterator[Part]:
        """The rows, those of some V–J pairs after those of others, about `ROWS_TOGETHER` at once."""
        number = numbers_of_pairs([part.repertoire for part in self.parts])
        kinds = [np.array([number[pair] for pair in part.repertoire.pairs], dtype=np.int64) for part in self.parts]
        rows = np.zeros(len(number) + 1, dtype=np.int64)
        for kind, part in zip(kinds, self.parts, strict=True):
            rows[kind + 1] += np.diff(part.repertoire.offsets)
        for span in spans(np.cumsum(rows)):
            yield Part.joined(
                [part.of_pairs(*np.searchsorted(kind, span)) for kind, part in zip(kinds, self.parts, strict=True)]
            )


def spans(begins: Counts) -> Iterator[tuple[int, int]]:
    """The first of some blocks and the one after the last, of about `ROWS_TOGETHER` rows each; at least one of all.

    begins  int64 [blocks + 1]: where the rows of each begin
    """
    edges = np.flatnonzero(np.diff(begins[1:] // ROWS_TOGETHER)) + 1
    return pairwise([0, *edges.tolist(), len(begins) - 1])


def deal(inputs: Inputs, model: Model, run: Run, alike: Alike = "amino acids", *, numbered: bool = True) -> Dealt:
    """The rows of surveyed tables, dealt to the ranks.

    alike     rows that are alike in this are on one rank
    numbered  with their data rows

    InputError, on every rank, as of `Inputs.read`.
    """
    samples, own = inputs.repertoires, OwnTables(inputs, model, run)
    nothing = _nothing(inputs, numbered=numbered)
    parts = [nothing]
    rounds = [own.units[first:stop] for first, stop in spans(np.cumsum([0, *(unit.rows for unit in own.units)]))]
    for k in range(int(run.slowest(len(rounds))[0])):
        mine: list[Part] = []

        def read_unit(unit: Inputs, mine: list[Part] = mine) -> None:
            mine.append(_part(own.read(unit), model, samples, reads=inputs.has_reads, numbered=numbered))

        run.each(rounds[k] if k < len(rounds) else [], read_unit, NOTHING_YET)
        parts += _exchanged(mine or [nothing], run, alike)
        mine.clear()
        return_freed_memory()
    return _dealt(parts, own.rows, samples, run)


def dealt_of(junctions: Junctions, model: Model, run: Run | None = None) -> Dealt:
    """The rows of junctions that this rank alone has read."""
    samples, read = junctions.repertoire_ids or [], ReadRows()
    read.add(junctions)
    part = _part(junctions, model, samples, reads=junctions.reads is not None, numbered=True)
    return _dealt([part], read, samples, run or Run())


class OwnTables:
    """The tables that this rank reads, of several that are surveyed.

    units  tables that are read together
    rows   what became of their rows
    """

    def __init__(self, inputs: Inputs, model: Model, run: Run) -> None:
        # What a table lacks, all tables do without.
        within = replace(inputs, reading=replace(inputs.reading, reads=inputs.has_reads))
        own = shared_out([table for table in inputs.tables if table.rows], run.ranks)[run.rank]
        self.units = [replace(within, tables=tuple(unit)) for unit in own]
        self.rows, self._model, self._run = ReadRows(), model, run

    def read(self, unit: Inputs) -> Junctions:
        """The junctions of a unit."""
        junctions = unit.read(self._model, first_row=unit.tables[0].first_row, between=self._run.raise_if_stopping)
        self.rows.add(junctions)
        return junctions


class ReadRows:
    """What became of the rows that a rank has read."""

    def __init__(self) -> None:
        self.rows = self.counted = 0
        self.excluded: Counter[tuple[str, Exclusion]] = Counter()
        self.substituted: Counter[tuple[str, str]] = Counter()

    def add(self, junctions: Junctions) -> None:
        """Count the rows of a part."""
        self.rows += junctions.rows_read
        self.counted += len(junctions)
        excluded = junctions.excluded
        for (sample, code), rows in Counter(zip(excluded.repertoire_id, excluded.code.tolist(), strict=True)).items():
            self.excluded[sample, excluded.exclusions[code]] += rows
        self.substituted.update({(call, allele): rows for call, allele, rows in junctions.substituted})

    def without_counts(self, sample: str, rows: int) -> None:
        """Count rows that were read, and have no read counts, where others have."""
        if rows:
            self.excluded[sample, Exclusion.of(ExclusionKind.MISSING_COUNT)] += rows
            self.counted -= rows

    def tally(self, run: Run) -> Tally | None:
        """Of the rows of all ranks, on root."""
        excluded = added([[(exclusion, number)] for (_, exclusion), number in self.excluded.items()])
        substituted = [(*replaced, number) for replaced, number in self.substituted.items()]
        own = Tally(rows_read=self.rows, counted=self.counted, excluded=excluded, substituted=substituted)
        tallies = run.gather(own)
        return None if tallies is None else _added(tallies)


def shared_out(tables: Sequence[Table], ranks: int) -> list[list[list[Table]]]:
    """What each rank reads: tables that are read together; the largest first, each by the rank with the fewest rows."""
    units = _units(tables)
    return [[units[k] for k in own] for own in evenly(list(map(_rows, units)), ranks)]


def _units(tables: Sequence[Table]) -> list[list[Table]]:
    """Tables that one rank reads: those from the first to the last that has a repertoire, whose ids may not repeat."""
    last = {name: k for k, table in enumerate(tables) for name in table.repertoires}
    units: list[list[Table]] = []
    stop = -1
    for k, table in enumerate(tables):
        if k > stop:
            units.append([])
        units[-1].append(table)
        stop = max(stop, *(last[name] for name in table.repertoires))
    return units


def _rows(unit: list[Table]) -> int:
    return sum(table.rows for table in unit)


def _nothing(inputs: Inputs, *, numbered: bool) -> Part:
    none = np.empty(0, dtype=np.uint8)
    empty = Repertoire(np.zeros((0, 2), np.uint64), none, [], np.zeros(1, np.int64), inputs.reading.letters)
    return Part(empty, none, none.astype(np.int64) if numbered else None, none if inputs.has_reads else None)


def _part(junctions: Junctions, model: Model, samples: Sequence[str], *, reads: bool, numbered: bool) -> Part:
    repertoire, order = by_gene(junctions.repertoire, model)
    place = {name: k for k, name in enumerate(samples)}
    of_sample = np.array([place[name] for name in junctions.repertoire_ids or []] or [0], dtype=np.int64)
    counts = None
    if reads:
        counts = np.full(len(order), UNKNOWN) if junctions.reads is None else junctions.reads[order]
    return Part(
        repertoire,
        of_sample.astype(np.min_scalar_type(len(samples)))[junctions.repertoire_of[order]],
        junctions.row[order] if numbered else None,
        counts if counts is None else counts.astype(np.min_scalar_type(counts.max(initial=0))),
    )


def _exchanged(parts: list[Part], run: Run, alike: Alike) -> list[Part]:
    """What the ranks send to this one, of parts that each has read."""
    if run.ranks == 1:
        return parts
    # Few parts of many rows are worked on faster than many of few.
    part = Part.joined(parts) if len(parts) > 1 else parts[0]
    owner = owners(part.repertoire, run.ranks, alike)
    received: list[Part] = []
    for k in range(int(run.slowest(-(-len(owner) // ROWS_AT_ONCE))[0])):
        first = k * ROWS_AT_ONCE
        of_block = owner[first : first + ROWS_AT_ONCE]
        received += run.exchange([part.only(first + np.flatnonzero(of_block == rank)) for rank in range(run.ranks)])
    return received


def owners(repertoire: Repertoire, ranks: int, alike: Alike = "amino acids") -> Counts:
    """The rank that has each junction, int64 [junctions]."""
    if alike == "block":
        texts = [f"{v.allele}|{j.allele}".encode() for v, j in repertoire.pairs]
        of_pair = np.array([crc32(text) for text in texts], dtype=np.int64)
        return np.asarray((of_pair[kinds_of(repertoire)] + repertoire.lengths) % ranks, np.int64)
    return np.asarray(hashes_of(*amino_acids(repertoire, np.arange(len(repertoire)))) % np.uint64(ranks), np.int64)


def hashes_of(letters: NDArray[np.uint8], lengths: Counts) -> NDArray[np.uint64]:
    """A number for each amino-acid sequence, uint64 [sequences], as of `amino_acids`."""
    hashes = np.empty(len(lengths), dtype=np.uint64)
    hash_letters(letters, lengths, hashes)
    # The last letters alone decide the lowest bits.
    hashes ^= hashes >> np.uint64(32)
    hashes *= np.uint64(0xD6E8FEB86659FD93)
    return hashes ^ (hashes >> np.uint64(32))


def _dealt(parts: list[Part], read: ReadRows, samples: list[str], run: Run) -> Dealt:
    parts = _with_reads(parts, read, samples, run)
    left_out: Counter[tuple[str, str]] = Counter()
    for (sample, exclusion), number in read.excluded.items():
        left_out[sample, exclusion.summary] += number
    first = next((part for part in parts if len(part)), parts[0])
    everywhere = run.gather_everywhere((left_out, first.repertoire.subset(np.arange(min(1, len(first))))))
    examples = [example for _, example in everywhere]
    return Dealt(
        parts=parts,
        samples=samples,
        left_out=sum((part for part, _ in everywhere), Counter()),
        tally=read.tally(run),
        example=next((example for example in examples if len(example)), examples[0]),
        run=run,
    )


def _with_reads(parts: list[Part], read: ReadRows, samples: list[str], run: Run) -> list[Part]:
    """The parts without rows that have no reads, if others have, or without any reads."""
    known = [0 if part.reads is None else np.count_nonzero(part.reads != UNKNOWN) for part in parts]
    if not int(run.sum(np.array([sum(known)]))[0]):
        return [replace(part, reads=None) for part in parts]
    kept = list(parts)
    for k, part in enumerate(parts):
        if known[k] < len(part):
            missing = np.asarray(part.reads == UNKNOWN)
            for place, number in enumerate(np.bincount(part.sample[missing], minlength=len(samples)).tolist()):
                read.without_counts(samples[place], number)
            kept[k] = part.only(np.flatnonzero(~missing))
    return kept


def _added(tallies: Sequence[Tally]) -> Tally:
    substituted: Counter[tuple[str, str]] = Counter()
    for tally in tallies:
        substituted.update({(call, allele): rows for call, allele, rows in tally.substituted})
    counted = sum(tally.counted for tally in tallies)
    return Tally(
        rows_read=sum(tally.rows_read for tally in tallies),
        counted=counted,
        excluded=added(tally.excluded for tally in tallies),
        substituted=sorted(
            ((*replaced, rows) for replaced, rows in substituted.items()), key=lambda own: (-own[2], own)
        ),
        nonzero=counted,
    )
