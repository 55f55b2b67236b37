"""The distribution of rows over ranks: each rank reads some of the tables, and keeps some of the rows of all tables.

A hash of the amino acids of a row decides which rank keeps it.  So equal sequences are on one rank, whether nucleotides
or amino acids are compared, with genes or without.  Where sequences are compared with similar ones, a hash of the V and
J genes and the length decides.  Numbers of an individual are sums over the ranks.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.calls import RARE_ALLELE, SIDES
from hpcvdj.chance.check import contradicting, likely_of_length, limits_of
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.chance.p_values import Counts
from hpcvdj.chance.parts import Part, no_rows, part_of
from hpcvdj.kernels.text import hash_rows
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind, added
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, Repertoire
from hpcvdj.repertoires.genes import (
    Collected,
    amino_acids,
    has_nucleotides,
    kinds_of,
    numbers_of_pairs,
)
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.read_counts import UNKNOWN
from hpcvdj.repertoires.table import Table
from hpcvdj.repertoires.tally import Tally
from hpcvdj.runs.partition import evenly
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.memory import return_freed_memory
from hpcvdj.values.repeated_ids import id_hashes

Alike = Literal["amino acids", "block"]
"""What decides which rank keeps a row: its amino acids, or its V and J genes and length."""

ROWS_AT_ONCE = 1 << 23
"""The largest number of rows that a rank sends at once: below 2 GiB, which older MPI libraries can count."""

EXPLAINED = 0.03
"""A row is excluded only if its junction is more probable with other genes than this share of what the model makes of
its length.  Planted amino acids that random codons spell are hardly ever so probable: results/calibration/explained.csv
compares other shares."""

ROWS_TOGETHER = 1 << 19
"""The approximate number of rows that are processed together to save memory."""


@dataclass(frozen=True)
class Dealt:
    """The rows of tables that this rank keeps.

    parts     the rows of this rank
    samples   the names of the samples of all ranks
    left_out  the number of excluded rows of all ranks, by sample and reason
    tally     what became of the rows of all ranks; on root
    example   a junction of any rank; empty if there is none
    run       the ranks
    """

    parts: list[Part]
    samples: list[str]
    left_out: Counter[tuple[str, str]]
    tally: Tally | None
    example: Repertoire
    run: Run

    @cached_property
    def whole(self) -> Part:
        """All rows of this rank, by gene."""
        return Part.joined([part for part in self.parts if len(part)] or self.parts[:1])

    def of_people(self, subject: Mapping[str, str]) -> "Dealt":
        """Return the same rows, with people in place of their samples.

        subject  the person of each sample; other samples are people of their own
        """
        names = [subject.get(sample, sample) for sample in self.samples]
        people = list(dict.fromkeys(names))
        if people == self.samples:
            return self
        number = np.array([people.index(name) for name in names]).astype(np.min_scalar_type(len(people)))
        left_out: Counter[tuple[str, str]] = Counter()
        for (sample, reason), rows in self.left_out.items():
            left_out[subject.get(sample, sample), reason] += rows
        parts = [replace(part, sample=number[part.sample]) for part in self.parts]
        return replace(self, parts=parts, samples=people, left_out=left_out)

    def collected(self) -> Collected:
        """Return an empty store for junctions of the rows, which are to be added in the order of `by_gene`."""
        width = max(part.repertoire.words.shape[1] for part in self.parts)
        return Collected(sum(map(len, self.parts)), width, self.parts[0].repertoire.letters)

    def by_gene(self) -> Iterator[Part]:
        """Yield the rows of one group of V–J pairs after the other, about `ROWS_TOGETHER` rows each."""
        number = numbers_of_pairs([part.repertoire.pairs for part in self.parts])
        kinds = [np.array([number[pair] for pair in part.repertoire.pairs], dtype=np.int64) for part in self.parts]
        rows = np.zeros(len(number) + 1, dtype=np.int64)
        for kind, part in zip(kinds, self.parts, strict=True):
            rows[kind + 1] += np.diff(part.repertoire.offsets)
        for span in spans(np.cumsum(rows)):
            yield Part.joined(
                [part.of_pairs(*np.searchsorted(kind, span)) for kind, part in zip(kinds, self.parts, strict=True)]
            )


def spans(begins: Counts) -> Iterator[tuple[int, int]]:
    """Divide blocks into spans (first, stop) of about `ROWS_TOGETHER` rows; there is at least one span.

    begins  int64 [blocks + 1]: where the rows of each block begin
    """
    edges = np.flatnonzero(np.diff(begins[1:] // ROWS_TOGETHER)) + 1
    return pairwise([0, *edges.tolist(), len(begins) - 1])


def deal(
    inputs: Inputs, model: Model, run: Run, alike: Alike = "amino acids", *, numbered: bool = True,
    fit: ModelFit = UNCHECKED,
) -> Dealt:  # fmt: skip
    """Read surveyed tables, and distribute their rows over the ranks.

    alike     rows that are equal in this are on one rank
    numbered  whether rows keep the numbers of their data rows
    fit       how the model fits the tables; it says whether calls that contradict the bases exclude rows

    Raises InputError, on every rank, as `Inputs.read` does.
    """
    for apart in (True, False):
        dealt = _deal(inputs, OwnTables(inputs, model, run, fit, apart=apart), run, alike, numbered=numbered)
        if dealt is not None:
            break
    assert dealt is not None
    return dealt


def _deal(inputs: Inputs, tables: "OwnTables", run: Run, alike: Alike, *, numbered: bool) -> Dealt | None:
    """Do what `deal` does; None if rows that ranks read apart must be compared with each other."""
    samples, nothing = inputs.repertoires, no_rows(inputs, numbered=numbered)
    parts = [nothing]
    rounds = [tables.units[first:stop] for first, stop in spans(np.cumsum([0, *(unit.rows for unit in tables.units)]))]
    for k in range(int(run.slowest(len(rounds))[0])):
        parts_read: list[Part] = []

        def read_unit(unit: Inputs, parts_read: list[Part] = parts_read) -> None:
            parts_read.append(tables.part(unit, samples, numbered=numbered))

        run.each(rounds[k] if k < len(rounds) else [], read_unit, NOTHING_YET)
        parts += _exchanged(parts_read or [nothing], run, alike)
        parts_read.clear()
        return_freed_memory()
    if tables.apart and _repeat(tables.rows.ids, run):
        return None
    dealt = _dealt(parts, tables.rows, samples, run)
    # Of rows with the same id, one without reads may be the first.
    missing = Exclusion.of(ExclusionKind.MISSING_COUNT).summary
    return None if tables.apart and any(reason == missing for _, reason in dealt.left_out) else dealt


def _repeat(ids: list[NDArray[np.uint64]], run: Run) -> bool:
    """Whether two ranks have an id in common, or one has it twice.

    ids  hashes of the ids of this rank
    """
    own = np.concatenate([np.empty(0, dtype=np.uint64), *ids])
    owner = own % np.uint64(run.ranks)
    received = np.sort(np.concatenate(run.exchange([own[owner == rank] for rank in range(run.ranks)])))
    return bool(run.sum(np.array([np.count_nonzero(received[1:] == received[:-1])]))[0])


class OwnTables:
    """The surveyed tables that this rank reads.

    units  lists of tables that are read together
    rows   what became of the rows
    apart  whether ranks read rows of the same repertoire
    """

    def __init__(
        self, inputs: Inputs, model: Model, run: Run, fit: ModelFit = UNCHECKED, *, apart: bool = False
    ) -> None:
        """Choose the tables of this rank.

        apart  ranks may read rows of the same repertoire, so that each has about as many
        """
        # Read counts are read only if all tables have them.
        alike = replace(inputs, reading=replace(inputs.reading, reads=inputs.has_reads))
        tables = [table for table in inputs.tables if table.rows]
        units = _units(tables)
        divided = _divided(units, run.ranks) if apart else units
        self.apart = len(divided) > len(units)
        self.units = [replace(alike, tables=tuple(unit)) for unit in shared_out(divided, run.ranks)[run.rank]]
        self.rows, self._model, self._run = ReadRows(), model, run
        self._epsilon = fit.miscall_bound

    def read(self, unit: Inputs) -> Junctions:
        """Read the junctions of a unit."""
        junctions = self._read(unit)
        self.rows.add(junctions)
        return junctions

    def part(self, unit: Inputs, samples: Sequence[str], *, numbered: bool) -> Part:
        """Read the junctions of a unit by gene, once if the run is `keeping`.

        samples   the names of the samples of all tables
        numbered  whether rows keep the numbers of their data rows
        """

        def read() -> tuple[Part, list[str], ReadRows]:
            junctions, rows = self._read(unit), ReadRows()
            rows.add(junctions)
            if self.apart:
                rows.ids.append(id_hashes(junctions, unit.tables)[0])
            part = part_of(junctions, self._model, unit.tables[0].first_row, reads=unit.has_reads)
            if self._epsilon:
                part = rows.without_miscalled(part, junctions.repertoire_ids or [""], self._model, self._epsilon)
            return part, junctions.repertoire_ids or [], rows

        # What is kept serves other questions, whose tables are these and others, or fewer.
        paths = tuple((table.path, table.piece) for table in unit.tables)
        key = str((self._model.facts(selection=False), self._epsilon, self.apart))
        kept = self._run.kept(("rows", paths, replace(unit.reading, reads=True)), key)
        if kept is None or kept[2].counts_exclude:
            kept = self._run.once(("rows", paths, unit.reading), key, read)
        part, of_unit, rows = kept
        assert isinstance(part, Part)
        self.rows.add_all(rows)
        index = {name: k for k, name in enumerate(samples)}
        number = np.array([index[name] for name in of_unit] or [0]).astype(np.min_scalar_type(len(samples)))
        row = part.row + unit.tables[0].first_row if numbered and part.row is not None else None
        return replace(part, sample=number[part.sample], row=row, reads=part.reads if unit.reading.reads else None)

    def _read(self, unit: Inputs) -> Junctions:
        return unit.read(self._model, first_row=unit.tables[0].first_row, between=self._run.raise_if_stopping)


class ReadRows:
    """What became of the rows that a rank has read.

    ids  hashes of the ids of rows that take part, as `id_hashes` returns them; empty if they are not asked for
    """

    def __init__(self) -> None:
        self.rows = self.counted = 0
        self.ids: list[NDArray[np.uint64]] = []
        self.excluded: Counter[tuple[str, Exclusion]] = Counter()
        self.substituted: Counter[tuple[str, str]] = Counter()

    def add(self, junctions: Junctions) -> None:
        """Count the rows of junctions that were read."""
        self.rows += junctions.rows_read
        self.counted += len(junctions)
        excluded = junctions.excluded
        for (sample, code), rows in Counter(zip(excluded.repertoire_id, excluded.code.tolist(), strict=True)).items():
            self.excluded[sample, excluded.exclusions[code]] += rows
        self.substituted.update({(call, allele): rows for call, allele, rows in junctions.substituted})

    @property
    def counts_exclude(self) -> bool:
        """Whether rows are excluded for their read counts."""
        kinds = {exclusion.kind for _, exclusion in self.excluded}
        return not kinds.isdisjoint((ExclusionKind.NO_COUNT, ExclusionKind.MISSING_COUNT))

    def add_all(self, rows: "ReadRows") -> None:
        """Count further rows."""
        self.rows += rows.rows
        self.counted += rows.counted
        self.ids += rows.ids
        self.excluded += rows.excluded
        self.substituted += rows.substituted

    def without_counts(self, sample: str, rows: int) -> None:
        """Exclude rows that have no read counts, while others have."""
        if rows:
            self.excluded[sample, Exclusion.of(ExclusionKind.MISSING_COUNT)] += rows
            self.counted -= rows

    def without_miscalled(self, part: Part, samples: Sequence[str], model: Model, epsilon: float) -> Part:
        """Exclude the rows whose calls contradict their bases, or amino acids, and return the others.

        epsilon  as for `hpcvdj.chance.calls.contradicted`
        """
        names = (PGEN_COLUMNS[0 if has_nucleotides(part.repertoire) else 1],)
        likely = likely_of_length(model, names, EXPLAINED)[part.repertoire.lengths]
        limits = limits_of(model, names)[0], likely
        sides = contradicting(part.repertoire, model, names, limits=limits, epsilon=epsilon)
        wrong = (sides > 0) & (sides < RARE_ALLELE)
        columns = part.sample, kinds_of(part.repertoire), sides
        rows = zip(*(values[wrong].tolist() for values in columns), strict=True)
        for (sample, kind, side), number in Counter(rows).items():
            v, j = part.repertoire.pairs[kind]
            call = {"V": v.allele, "J": j.allele}.get(SIDES[side], f"{v.allele}, {j.allele}")
            exclusion = Exclusion.of(ExclusionKind.MISCALLED, segment=SIDES[side], call=call)
            self.excluded[samples[sample], exclusion] += number
        self.counted -= int(wrong.sum())
        return part.only(np.flatnonzero(~wrong))

    def tally(self, run: Run) -> Tally | None:
        """Add up the counts of all ranks, on root."""
        gathered = run.gather((self.rows, self.counted, self.excluded, self.substituted))
        if gathered is None:
            return None
        read, counted, excluded, substituted = zip(*gathered, strict=True)
        replaced = sum(substituted, Counter[tuple[str, str]]())
        return Tally(
            rows_read=sum(read),
            counted=sum(counted),
            excluded=added([(exclusion, number)] for part in excluded for (_, exclusion), number in part.items()),
            substituted=sorted(((*call, rows) for call, rows in replaced.items()), key=lambda item: (-item[2], item)),
            nonzero=sum(counted),
        )


def shared_out(units: Sequence[list[Table]], ranks: int) -> list[list[list[Table]]]:
    """Assign units of tables to the ranks: the largest first, each to the rank with the fewest rows."""
    rows = [sum(table.rows for table in unit) for unit in units]
    return [[units[k] for k in share] for share in evenly(rows, ranks)]


def _divided(units: Sequence[list[Table]], ranks: int) -> list[list[Table]]:
    """Divide units that have more rows than a rank should read into tables, and large tables into pieces.

    Only files whose rows can be read without those before them are divided.
    """
    most = max(ROWS_TOGETHER, -(-sum(table.rows for unit in units for table in unit) // ranks))
    divided: list[list[Table]] = []
    for unit in units:
        if ranks > 1 and sum(table.rows for table in unit) > most:
            divided += [[piece] for table in unit for piece in _pieces(table, most)]
        else:
            divided.append(unit)
    return divided


def _pieces(table: Table, most: int) -> list[Table]:
    """Divide a table into pieces of at most so many rows, which know the repertoires of the whole table."""
    if not table.open().group_rows:
        return [table]
    edges = np.linspace(0, table.rows, 1 + -(-table.rows // most)).round().astype(int).tolist()
    return [
        replace(table, first_row=table.first_row + first, rows=stop - first, piece=range(first, stop))
        for first, stop in pairwise(edges)
    ]


def _units(tables: Sequence[Table]) -> list[list[Table]]:
    """Group tables that one rank must read, as they have rows of the same repertoire, with the tables between them."""
    last = {name: k for k, table in enumerate(tables) for name in table.repertoires}
    units: list[list[Table]] = []
    stop = -1
    for k, table in enumerate(tables):
        if k > stop:
            units.append([])
        units[-1].append(table)
        stop = max(stop, *(last[name] for name in table.repertoires))
    return units


def _exchanged(parts: list[Part], run: Run, alike: Alike) -> list[Part]:
    """Send the rows of parts to the ranks that keep them, and return the parts that this rank receives."""
    if run.ranks == 1:
        return parts
    owner_of = [owners(part.repertoire, run.ranks, alike) for part in parts]
    first_of = np.cumsum([0, *map(len, parts)])
    received: list[Part] = []
    for k in range(int(run.slowest(-(-int(first_of[-1]) // ROWS_AT_ONCE))[0])):
        sent: list[list[Part]] = [[] for _ in range(run.ranks)]
        for part, owner, before in zip(parts, owner_of, first_of.tolist(), strict=False):
            first = max(0, k * ROWS_AT_ONCE - before)
            of_block = owner[first : max(0, (k + 1) * ROWS_AT_ONCE - before)]
            for rank in range(run.ranks):
                sent[rank].append(part.only(first + np.flatnonzero(of_block == rank)))
        received += [part for of_rank in run.exchange(sent) for part in of_rank if len(part)]
    return received


def owners(repertoire: Repertoire, ranks: int, alike: Alike = "amino acids") -> Counts:
    """Return the rank that keeps each junction, int64 [junctions]."""
    if alike == "block":
        texts = [f"{v.allele}|{j.allele}".encode() for v, j in repertoire.pairs]
        of_pair = np.array([crc32(text) for text in texts], dtype=np.int64)
        return np.asarray((of_pair[kinds_of(repertoire)] + repertoire.lengths) % ranks, np.int64)
    return np.asarray(hashes_of(*amino_acids(repertoire, np.arange(len(repertoire)))) % np.uint64(ranks), np.int64)


def hashes_of(letters: NDArray[np.uint8], lengths: Counts) -> NDArray[np.uint64]:
    """Hash amino-acid sequences, as `amino_acids` returns them, uint64 [sequences]."""
    hashes = np.empty(len(lengths), dtype=np.uint64)
    begins = np.arange(len(lengths)) * letters.shape[1]
    hash_rows(begins, begins + lengths, letters.reshape(-1), hashes)
    # In these hashes, only the last letters decide the lowest bits.
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
    """Leave out the rows without reads if others have reads; without any reads, drop this column."""
    counts = [0 if part.reads is None else np.count_nonzero(part.reads != UNKNOWN) for part in parts]
    if not int(run.sum(np.array([sum(counts)]))[0]):
        return [replace(part, reads=None) for part in parts]
    kept = list(parts)
    for k, part in enumerate(parts):
        if counts[k] < len(part):
            missing = np.asarray(part.reads == UNKNOWN)
            for sample, number in zip(samples, np.bincount(part.sample[missing]).tolist(), strict=False):
                read.without_counts(sample, number)
            kept[k] = part.only(np.flatnonzero(~missing))
    return kept
