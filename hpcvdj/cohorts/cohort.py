"""A cohort: the distinct junctions of several individuals, and which individual has which."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.chance.clone_sizes import CloneSizes, SizesOfSamples
from hpcvdj.chance.dealing import Dealt, spans
from hpcvdj.cohorts import Unit
from hpcvdj.errors import InputError, few, option
from hpcvdj.kernels.neighbours.blocks import blocks
from hpcvdj.kernels.neighbours.blocks import groups as groups_of
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import (
    amino_acids,
    has_nucleotides,
    kinds_of,
    letter_words,
    merged,
)
from hpcvdj.runs.run import Run
from hpcvdj.storage.memory import return_freed_memory

Counts = NDArray[np.int64]
Places = NDArray[np.integer[Any]]

SequenceUnit = Unit | Literal["v-aa"]

REPEATED = "junction that another row of the individual has"
"""Why a row is left out that was read."""


@dataclass(frozen=True)
class Individual:
    """One of the cohort.

    rows      its distinct productive junctions, with their genes: so many recombinations were seen of it
    left_out  how many of its other rows are left out, by the reason
    """

    name: str
    group: str | None
    rows: int
    left_out: dict[str, int]

    def facts(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "name": self.name, "group": self.group, "rows": self.rows,
            "rows_read": self.rows + sum(self.left_out.values()), "left_out": self.left_out,
        }  # fmt: skip


@dataclass(frozen=True)
class People:
    """Whose samples are.

    subject  the individual of each sample
    group    the group of each individual; None without groups
    """

    subject: Mapping[str, str]
    group: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Holding:
    """Which individual has which sequence: entries, sorted by sequence, then individual.

    individual  int32 [entries]
    reads       int64 [entries]; None if the input does not say
    begins      int64 [sequences + 1]: a sequence's entries are begins[k]:begins[k + 1]
    """

    individual: NDArray[np.int32]
    reads: Counts | None
    begins: Counts
    individuals: int

    @staticmethod
    def of(
        sequence: Places,
        individual: Places,
        sequences: int,
        individuals: int,
        reads: Counts | None,
        combine: Any,
    ) -> "Holding":
        """That of pairs of a sequence and an individual, which may repeat.

        combine  the reads of repeated pairs: `numpy.add` or `numpy.maximum`
        """
        key = sequence.astype(np.int64) * individuals + individual
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.int64)
        if reads is not None:
            reads = reads.astype(np.int64, copy=False)[order]
            reads = combine.reduceat(reads, starts) if len(starts) else reads
        rows, columns = np.divmod(key[starts], individuals)
        begins = np.zeros(sequences + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=sequences), out=begins[1:])
        return Holding(columns.astype(np.int32), reads, begins, individuals)

    @staticmethod
    def one_after_another(parts: Sequence["Holding"]) -> "Holding":
        """The entries of the sequences of several, those of the first one first."""
        individual, numbers = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("individual", "numbers")
        )
        own = [part.reads for part in parts if part.reads is not None]
        begins = np.zeros(len(numbers) + 1, dtype=np.int64)
        np.cumsum(numbers, out=begins[1:])
        return Holding(individual, np.concatenate(own) if own else None, begins, parts[0].individuals)

    @property
    def numbers(self) -> Counts:
        """How many individuals have each sequence, int64 [sequences]."""
        return np.diff(self.begins)

    @property
    def sequence(self) -> Counts:
        """The sequence of each entry, int64 [entries]."""
        return np.repeat(np.arange(len(self.begins) - 1), self.numbers)

    @property
    def sizes(self) -> Counts:
        """How many sequences each individual has, int64 [individuals]."""
        return np.bincount(self.individual, minlength=self.individuals)

    def only(self, sequences: Counts) -> "Holding":
        """The entries of some sequences, which are numbered anew, in the order that is given."""
        counts = self.numbers[sequences]
        begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entries = np.repeat(self.begins[sequences] - begins[:-1], counts) + np.arange(begins[-1])
        reads = None if self.reads is None else self.reads[entries]
        return Holding(self.individual[entries], reads, begins, self.individuals)

    def overlap(self) -> Counts:
        """How many sequences each two individuals have, int64 [individuals, individuals]; on the diagonal each one."""
        from scipy.sparse import csr_array

        shape = (len(self.begins) - 1, self.individuals)
        own = csr_array((np.ones(len(self.individual), dtype=np.int64), self.individual, self.begins), shape=shape)
        return np.asarray((own.T @ own).todense(), dtype=np.int64)

    def largest_reads(self) -> Counts | None:
        """The largest clone of each sequence, int64 [sequences]."""
        return None if self.reads is None else np.maximum.reduceat(self.reads, self.begins[:-1])


@dataclass(frozen=True)
class Origins:
    """Where the rows are in the input whose junctions a rank has, whether these are repeated or not.

    row         int64 [rows]: data row of the input
    junction    int32 [rows]: its junction
    individual  int32 [rows]: its individual
    """

    row: Counts
    junction: NDArray[np.int32]
    individual: NDArray[np.int32]


@dataclass(frozen=True)
class Cohort:
    """Distinct junctions of several individuals: of those of all ranks, the ones that this rank has.

    individuals     in the order of the input
    sizes           int64 [individuals]: distinct junctions of each, of all ranks
    repertoire      the distinct junctions, with their V and J genes
    has             who has which of them
    origins         where they are in the input; None if nobody asks for it
    rows            how many rows all ranks have, whether their junctions are repeated or not
    several_genes   rows of all ranks whose calls name several V or several J genes
    example         a junction of any rank
    run             the ranks
    clones          how many reads the junctions of each individual have, by its name; on root, if reads are known
    """

    individuals: list[Individual]
    sizes: Counts
    repertoire: Repertoire
    has: Holding
    origins: Origins | None
    rows: int
    several_genes: int
    example: Repertoire
    run: Run
    clones: Mapping[str, CloneSizes]

    @property
    def names(self) -> list[str]:
        """Those of the individuals."""
        return [own.name for own in self.individuals]

    @property
    def groups(self) -> list[str]:
        """The different groups, in alphabetical order."""
        return sorted({own.group for own in self.individuals if own.group is not None})

    @property
    def group_of(self) -> Counts:
        """The place of each individual's group in `groups`, int64 [individuals]; 0 without groups."""
        place = {group: k for k, group in enumerate(self.groups)}
        return np.array([place.get(own.group or "", 0) for own in self.individuals], dtype=np.int64)

    @property
    def nucleotides(self) -> bool:
        """Whether its junctions are nucleotides, not amino acids."""
        return has_nucleotides(self.example)

    def summed(self, has: Holding) -> Counts:
        """How many sequences each two individuals have, of those of all ranks, as of `Holding.overlap`."""
        return self.run.sum(has.overlap())


def cohort_of(dealt: Dealt, model: Model, people: People | None = None) -> Cohort:
    """The cohort of productive junctions of tables that were read together.

    people  whose the samples are; None if each is an individual

    InputError, on every rank, unless two individuals have junctions, and for a name with a comma.
    """
    samples, run = dealt.samples, dealt.run
    people = people or People({name: name for name in samples})
    names = list(dict.fromkeys(people.subject[sample] for sample in samples))
    place, number = {name: k for k, name in enumerate(names)}, max(1, len(names))
    of_sample = np.array([place[people.subject[sample]] for sample in samples] or [0], dtype=np.int32)
    junctions, holdings, origins, clones = dealt.collected(), list[Holding](), list[Origins](), list[SizesOfSamples]()
    read, several_genes = np.zeros(number, dtype=np.int64), 0
    for rows in dealt.by_gene():
        own, individual = rows.repertoire, of_sample[rows.sample]
        first, junction = groups_of(own.words, own.lengths.astype(np.int64), kinds_of(own))
        holdings.append(Holding.of(junction, individual, len(first), number, rows.reads, np.add))
        if (reads := holdings[-1].reads) is not None:
            clones.append(SizesOfSamples.of(holdings[-1].individual, reads))
        if rows.row is not None:
            origins.append(Origins(rows.row, (len(junctions) + junction).astype(np.int32), individual))
        several = [any(model.names_several(gene.allele) for gene in pair) for pair in own.pairs]
        several_genes += int(np.diff(own.offsets)[np.array(several, dtype=bool)].sum())
        read += np.bincount(individual, minlength=number)
        junctions.add(own.subset(first))
    has = Holding.one_after_another(holdings)
    sizes, read = run.sum(has.sizes), run.sum(read)
    run.on_root(lambda: _require_two(names, sizes))
    left_out = {name: Counter[str]() for name in names}
    for (sample, reason), excluded in dealt.left_out.items():
        left_out[people.subject[sample]][reason] += excluded
    for name, repeated in zip(names, (read - sizes).tolist(), strict=False):
        if repeated:
            left_out[name][REPEATED] += repeated
    return Cohort(
        individuals=[
            Individual(name, (people.group or {}).get(name), size, _most_common(left_out[name]))
            for name, size in zip(names, sizes.tolist(), strict=True)
        ],
        sizes=sizes,
        repertoire=junctions.repertoire(),
        has=has,
        origins=_joined(origins),
        rows=int(read.sum()),
        several_genes=int(run.sum(np.array([several_genes]))[0]),
        example=dealt.example,
        run=run,
        clones=_clones(clones, names, run),
    )


def _clones(parts: list[SizesOfSamples], names: list[str], run: Run) -> dict[str, CloneSizes]:
    """The sizes of the clones of each individual, on root, of parts that the ranks have."""
    gathered = run.gather(SizesOfSamples.added(parts) if parts else None)
    known = [part for part in gathered or [] if part is not None]
    return SizesOfSamples.added(known).by_name(names) if known else {}


def _joined(origins: list[Origins]) -> Origins | None:
    if not origins:
        return None
    return Origins(
        *(np.concatenate([getattr(own, name) for own in origins]) for name in ("row", "junction", "individual"))
    )


def _require_two(names: list[str], sizes: Counts) -> None:
    wrong = next((name for name in names if "," in name), None)
    if wrong is not None:
        raise InputError(f"an individual is called {wrong!r}, and commas separate individuals; rename it")
    if (sizes > 0).sum() < 2:
        people_left = few([names[k] for k in np.flatnonzero(sizes)]) or "nobody"
        raise InputError(
            f"only {people_left} has productive junctions of the model's genes, and two individuals or more are "
            "compared: give tables of others, whose repertoire_id differs, or name individuals with "
            f"{option('individual', 'COLUMN')}"
        )


def _most_common(reasons: Counter[str]) -> dict[str, int]:
    return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


def names_of_holders(cohort: Cohort, has: Holding, *, reads: bool = False) -> Any:
    """The individuals of each sequence, or their reads, joined by commas, as a pyarrow Array of text."""
    texts = pa.array(has.reads).cast(pa.string()) if reads else pa.array(cohort.names, pa.string())
    values = texts if reads else texts.take(pa.array(has.individual))
    return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(has.begins), values), ",")


@dataclass(frozen=True)
class Sequences:
    """What is compared: junctions of a cohort, all or some of them, or their amino acids.

    unit        what is one
    repertoire  one junction that spells each
    has         who has which
    spelled     int32 [junctions of the cohort]: the sequence that each spells; -1 for one of those left out
    variants    int64 [sequences]: its distinct junctions, as they are read
    letters, lengths  amino acids, as of `hpcvdj.repertoires.genes.amino_acids`
    """

    unit: SequenceUnit
    repertoire: Repertoire
    has: Holding
    spelled: NDArray[np.int32]
    variants: Counts
    letters: NDArray[np.uint8]
    lengths: Counts

    def only(self, rows: Counts) -> "Sequences":
        """Some of them, ascending."""
        number = np.full(len(self.variants) + 1, -1, dtype=np.int32)
        number[rows] = np.arange(len(rows))
        return Sequences(
            self.unit, self.repertoire.subset(rows), self.has.only(rows), number[self.spelled], self.variants[rows],
            self.letters[rows], self.lengths[rows],
        )  # fmt: skip

    def on_root(self, run: Run, **values: NDArray[Any]) -> "tuple[Sequences, dict[str, NDArray[Any]]] | None":
        """The sequences of all ranks, with values of each, on root; None on the other ranks.

        They are in the order of `sequences_of`, however the ranks divide them; what spells them is not known there.
        """
        nothing = np.empty(0, dtype=np.int32)
        # Their junctions say what the amino acids are.
        sent = replace(self, spelled=nothing, letters=nothing.astype(np.uint8), lengths=nothing.astype(np.int64))
        gathered = run.gather((sent, values))
        if gathered is None:
            return None
        parts, values_of = [part for part, _ in gathered], [own for _, own in gathered]
        repertoire, order = merged([part.repertoire for part in parts])
        words, length = repertoire.words, repertoire.lengths.astype(np.int64)
        if self.unit != "nt":
            letters, length = amino_acids(repertoire, np.arange(len(repertoire)))
            words = letter_words(letters)
        first, _ = groups_of(words, length, kinds_of(repertoire))
        repertoire, order = repertoire.subset(first), order[first]
        starts = np.cumsum([0, *(len(part.variants) for part in parts)])
        sequence = np.concatenate([part.has.sequence + start for part, start in zip(parts, starts, strict=False)])
        individual = np.concatenate([part.has.individual for part in parts])
        reads = None if self.has.reads is None else np.concatenate([part.has.reads for part in parts])  # type: ignore[misc]
        has = Holding.of(np.argsort(order)[sequence], individual, len(order), self.has.individuals, reads, np.maximum)
        together = Sequences(
            self.unit, repertoire, has, nothing, np.concatenate([part.variants for part in parts])[order],
            *amino_acids(repertoire, np.arange(len(repertoire))),
        )  # fmt: skip
        return together, {name: np.concatenate([own[name] for own in values_of])[order] for name in values}


@dataclass(frozen=True)
class Grouping:
    """Which junctions of a cohort are one sequence; what the sequences are is made of some of them, to save memory.

    first    int32 [sequences]: a junction that spells each
    spelled  int32 [junctions of the cohort]: the sequence that each spells
    has      who has which sequence
    """

    cohort: Cohort
    unit: SequenceUnit
    model: Model
    first: NDArray[np.int32]
    spelled: NDArray[np.int32]
    has: Holding

    def letters(self, rows: Counts) -> tuple[NDArray[np.uint8], Counts]:
        """The amino acids of some sequences, as of `hpcvdj.repertoires.genes.amino_acids`."""
        return amino_acids(self.cohort.repertoire, self.first[rows])

    def only(self, rows: Counts) -> Sequences:
        """Some sequences, ascending."""
        own, first = self.cohort.repertoire, self.first[rows]
        if self.unit == "v-aa":
            repertoire = _with_any_j(own, first, self.model)
        elif self.unit == "aa":
            repertoire = with_any_genes(own, first, self.model)
        else:
            repertoire = own.subset(first)
        number = np.full(len(self.first), -1, dtype=np.int32)
        number[rows] = np.arange(len(rows))
        spelled = number[self.spelled]
        variants = np.bincount(spelled[spelled >= 0], minlength=len(rows))
        return Sequences(self.unit, repertoire, self.has.only(rows), spelled, variants, *self.letters(rows))


def sequences_of(cohort: Cohort, unit: SequenceUnit, model: Model) -> Grouping:
    """The different sequences of a cohort; what is one, `unit` says: also amino acids with V genes."""
    own, has = cohort.repertoire, cohort.has
    if unit == "nt":
        every = np.arange(len(own), dtype=np.int32)
        return Grouping(cohort, unit, model, every, every, has)
    of_pair = np.zeros(len(own.pairs), dtype=np.int32)
    if unit != "aa":
        of_pair = np.arange(len(own.pairs), dtype=np.int32) if unit == "vj-aa" else _v_genes(own)
    kinds = np.repeat(of_pair, np.diff(own.offsets))
    order, begins = blocks(own.lengths.astype(np.int16), kinds)
    spelled, number = np.empty(len(own), dtype=np.int32), 0
    firsts, holdings = list[NDArray[np.int32]](), list[Holding]()
    for start, stop in spans(begins):
        junctions = (
            np.arange(begins[start], begins[stop]) if isinstance(order, slice) else order[begins[start] : begins[stop]]
        )
        letters, lengths = amino_acids(own, junctions)
        first, sequence = groups_of(letter_words(letters), lengths, kinds[junctions])
        part = has.only(junctions)
        holdings.append(
            Holding.of(sequence[part.sequence], part.individual, len(first), has.individuals, part.reads, np.maximum)
        )
        spelled[junctions] = number + sequence
        firsts.append(junctions[first].astype(np.int32))
        number += len(first)
    has = Holding.one_after_another(holdings)
    holdings.clear()
    return_freed_memory()
    return Grouping(cohort, unit, model, np.concatenate(firsts), spelled, has)


def junctions_of(cohort: Cohort, rows: Counts) -> Sequences:
    """Some junctions of a cohort, ascending."""
    number = np.full(len(cohort.repertoire), -1, dtype=np.int32)
    number[rows] = np.arange(len(rows))
    own, ones = cohort.repertoire.subset(rows), np.ones(len(rows), dtype=np.int64)
    return Sequences("nt", own, cohort.has.only(rows), number, ones, *amino_acids(own, np.arange(len(rows))))


def _v_genes(own: Repertoire) -> NDArray[np.int32]:
    """The number of the V gene of each pair, int32 [pairs]: pairs are in the order of V genes."""
    changed = [k > 0 and pair[0] != own.pairs[k - 1][0] for k, pair in enumerate(own.pairs)]
    return np.cumsum(np.array(changed), dtype=np.int32)


def _with_any_j(own: Repertoire, rows: Places, model: Model) -> Repertoire:
    """Some junctions, by their V gene, with any J of the model."""
    v_genes = list(dict.fromkeys(v for v, _ in own.pairs))
    kinds = _v_genes(own)[np.searchsorted(own.offsets, rows, side="right") - 1]
    used, sizes = np.unique(kinds, return_counts=True)
    pairs = [(v_genes[kind], model.alleles("J")) for kind in used.tolist()]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Repertoire(own.words[rows], own.lengths[rows], pairs, offsets, own.letters)


def with_any_genes(own: Repertoire, rows: Places, model: Model) -> Repertoire:
    """Some junctions, with any V and J of the model."""
    pair = model.alleles("V"), model.alleles("J")
    return Repertoire(own.words[rows], own.lengths[rows], [pair], np.array([0, len(rows)], dtype=np.int64), own.letters)
