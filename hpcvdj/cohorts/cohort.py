"""A cohort: the distinct junctions of several individuals, and the individuals that have each junction."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.chance.clone_sizes import CloneSizes, added, by_name, counted
from hpcvdj.chance.clonotypes import REPEATED
from hpcvdj.chance.dealing import Dealt, spans
from hpcvdj.chance.draws import Chance
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.cohorts import Unit
from hpcvdj.cohorts.holding import Holding, Places, begins_of
from hpcvdj.errors import InputError, few, log, option
from hpcvdj.kernels.neighbours.blocks import blocks
from hpcvdj.kernels.neighbours.blocks import groups as groups_of
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import amino_acids, has_nucleotides, kinds_of, letter_words, merged, numbers_of_pairs
from hpcvdj.runs.run import Run
from hpcvdj.storage.memory import return_freed_memory

SequenceUnit = Unit | Literal["v-aa"]


@dataclass(frozen=True)
class Individual:
    """An individual of a cohort.

    rows      the number of its distinct productive junctions, with their genes
    left_out  the number of its other rows, by the reason for which they are left out
    """

    name: str
    group: str | None
    rows: int
    left_out: dict[str, int]

    def facts(self) -> dict[str, Any]:
        """Return the individual as JSON values."""
        return {
            "name": self.name, "group": self.group, "rows": self.rows,
            "rows_read": self.rows + sum(self.left_out.values()), "left_out": self.left_out,
        }  # fmt: skip


@dataclass(frozen=True)
class People:
    """The individuals and groups that samples belong to.

    subject  the individual of each sample
    group    the group of each individual; None without groups
    """

    subject: Mapping[str, str]
    group: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Origins:
    """The rows of the input that the junctions of a rank come from; several rows may have the same junction.

    row         int64 [rows]: data row of the input
    junction    int32 [rows]
    individual  int32 [rows]
    """

    row: Counts
    junction: NDArray[np.int32]
    individual: NDArray[np.int32]


@dataclass(frozen=True)
class Cohort:
    """Distinct junctions of several individuals; each rank has a part of the junctions.

    individuals     in the order of the input
    sizes           int64 [individuals]: the number of distinct junctions on all ranks
    repertoire      the distinct junctions of this rank, with their V and J genes
    has             the individuals that have each of these junctions
    origins         the rows of the input that they come from; None if they are not asked for
    model           the model whose genes the junctions have
    rows            the number of rows on all ranks, repeated junctions included
    several_genes   the number of rows on all ranks whose calls name several V or several J genes
    example         a junction of any rank
    run             the ranks
    clones          the clone sizes of each individual on all ranks, by its name; empty without read counts
    computed        what `probabilities` returned, by model and column
    """

    individuals: list[Individual]
    sizes: Counts
    repertoire: Repertoire
    has: Holding
    origins: Origins | None
    model: Model
    rows: int
    several_genes: int
    example: Repertoire
    run: Run
    clones: Mapping[str, CloneSizes]
    computed: dict[tuple[Any, ...], Floats] = field(default_factory=dict, repr=False)

    def grouped(self, group_of: Mapping[str, str] | None, run: Run) -> "Cohort":
        """Return the cohort with the groups of its individuals, for a run of the same ranks."""
        individuals = [
            replace(individual, group=(group_of or {}).get(individual.name)) for individual in self.individuals
        ]
        return replace(self, individuals=individuals, run=run)

    def probabilities(self, chance: Chance, column: str) -> Floats:
        """Return P of this rank's junctions, among productive recombinations, float64 [junctions]; computed once."""
        key = str(chance.model.facts(selection=False)), column
        if key not in self.computed:
            self.computed.clear()
            self.computed[key] = chance.of_ranks([self.repertoire], (column,), self.run)[0][:, 0]
        return self.computed[key]

    def described(self, **values: NDArray[Any]) -> list[dict[str, Any]]:
        """Return the individuals as JSON values, with further values, [individuals], by name."""
        return [
            individual.facts() | {name: of_individuals[k].item() for name, of_individuals in values.items()}
            for k, individual in enumerate(self.individuals)
        ]

    @property
    def names(self) -> list[str]:
        """The names of the individuals."""
        return [individual.name for individual in self.individuals]

    @property
    def groups(self) -> list[str]:
        """The different groups, in alphabetical order."""
        return sorted({individual.group for individual in self.individuals if individual.group is not None})

    @property
    def group_of(self) -> Counts:
        """The index in `groups` of each individual's group, int64 [individuals]; 0 without groups."""
        index = {group: k for k, group in enumerate(self.groups)}
        return np.array([index.get(individual.group or "", 0) for individual in self.individuals], dtype=np.int64)

    @property
    def nucleotides(self) -> bool:
        """Whether the junctions are nucleotides, not amino acids."""
        return has_nucleotides(self.example)

    def summed(self, has: Holding) -> Counts:
        """Return the sum over the ranks of `Holding.overlap`, int64 [individuals, individuals]."""
        return self.run.sum(has.overlap())


def cohort_of(dealt: Dealt, model: Model, people: People | None = None, least: int = 2) -> Cohort:
    """Build the cohort of the productive junctions of tables that were read together.

    people  the individuals and groups of the samples; None if each sample is an individual
    least   the least number of individuals

    Raises InputError, on every rank, if fewer individuals have junctions, or if a name has a comma.
    """
    samples, run = dealt.samples, dealt.run
    people = people or People({name: name for name in samples})
    names = list(dict.fromkeys(people.subject[sample] for sample in samples))
    index, number = {name: k for k, name in enumerate(names)}, max(1, len(names))
    of_sample = np.array([index[people.subject[sample]] for sample in samples] or [0], dtype=np.int32)
    junctions, holdings = dealt.collected(), list[Holding]()
    origins = list[tuple[NDArray[Any], ...]]()
    read, several_genes = np.zeros(number, dtype=np.int64), 0
    for rows in dealt.by_gene():
        repertoire, individual = rows.repertoire, of_sample[rows.sample]
        first, junction = groups_of(repertoire.words, repertoire.lengths.astype(np.int64), kinds_of(repertoire))
        holdings.append(Holding.of(junction, individual, len(first), number, rows.reads, np.add))
        if rows.row is not None:
            origins.append((rows.row, (len(junctions) + junction).astype(np.int32), individual))
        several = [any(model.names_several(gene.allele) for gene in pair) for pair in repertoire.pairs]
        several_genes += int(np.diff(repertoire.offsets)[np.array(several, dtype=bool)].sum())
        read += np.bincount(individual, minlength=number)
        junctions.add(repertoire.subset(first))
    has = Holding.one_after_another(holdings)
    sizes, read = run.sum(has.sizes), run.sum(read)
    left_out = {name: Counter[str]() for name in names}
    for (sample, reason), excluded in dealt.left_out.items():
        left_out[people.subject[sample]][reason] += excluded
    for name, repeated in zip(names, (read - sizes).tolist(), strict=False):
        if repeated:
            left_out[name][REPEATED] += repeated
    run.on_root(lambda: _require(least, names, sizes, left_out))
    gathered = run.gather_everywhere(None if has.reads is None else counted(has.individual, has.reads))
    clones = [part for part in gathered if part is not None]
    return Cohort(
        individuals=[
            Individual(name, (people.group or {}).get(name), size, _most_common(left_out[name]))
            for name, size in zip(names, sizes.tolist(), strict=True)
        ],
        sizes=sizes,
        repertoire=junctions.repertoire(),
        has=has,
        origins=Origins(*map(np.concatenate, zip(*origins, strict=True))) if origins else None,
        model=model,
        rows=int(read.sum()),
        several_genes=int(run.sum(np.array([several_genes]))[0]),
        example=dealt.example,
        run=run,
        clones=by_name(added(clones), names) if clones else {},
    )


def require_without_commas(names: Iterable[str]) -> None:
    """Raise InputError if an individual's name has a comma."""
    wrong = next((name for name in names if "," in name), None)
    if wrong is not None:
        raise InputError(f"an individual is called {wrong!r}, and commas separate individuals; rename it")


def _require(least: int, names: list[str], sizes: Counts, left_out: Mapping[str, Counter[str]]) -> None:
    """Raise InputError unless `least` individuals, 1 or 2, have junctions.  Warn of those who have none."""
    require_without_commas(names)
    if not sizes.any():
        reasons = sum(left_out.values(), Counter[str]())
        texts = [f"{reason}: {number:,}" for reason, number in _most_common(reasons).items()]
        raise InputError(
            f"none of the {reasons.total():,} rows can be used ({few(texts)}): correct the tables, or give others"
        )
    if (sizes > 0).sum() < least:
        people_left = few([names[k] for k in np.flatnonzero(sizes)])
        raise InputError(
            f"only {people_left} has productive junctions of the model's genes, and two individuals or more are "
            "compared: give tables of others, whose repertoire_id differs, or name individuals with "
            f"{option('individual', 'COLUMN')}"
        )
    if nobody := [name for name, size in zip(names, sizes.tolist(), strict=True) if not size]:
        log.warning("without a junction that takes part: %s", few(nobody))


def _most_common(reasons: Counter[str]) -> dict[str, int]:
    return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


def names_of_holders(cohort: Cohort, has: Holding, *, reads: bool = False) -> Any:
    """Join the individuals that have each sequence, or their reads, by commas, as a pyarrow Array of text."""
    if reads:
        values = pa.array(has.reads).cast(pa.string())
    else:
        values = pa.array(cohort.names, pa.string()).take(pa.array(has.individual))
    return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(has.begins), values), ",")


@dataclass(frozen=True)
class Sequences:
    """The sequences that individuals are compared by: junctions of a cohort, or their amino acids.

    unit        what counts as one sequence
    repertoire  a junction that spells each sequence
    has         the individuals that have each sequence
    spelled     int32 [junctions of the cohort]: the sequence that each junction spells; -1 if that is left out
    variants    int64 [sequences]: the number of distinct junctions that spell each sequence
    letters, lengths  the amino acids, as `hpcvdj.repertoires.genes.amino_acids` returns them
    """

    unit: SequenceUnit
    repertoire: Repertoire
    has: Holding
    spelled: NDArray[np.int32]
    variants: Counts
    letters: NDArray[np.uint8]
    lengths: Counts

    def only(self, rows: Counts) -> "Sequences":
        """Select some sequences; `rows` ascend."""
        number = np.full(len(self.variants) + 1, -1, dtype=np.int32)
        number[rows] = np.arange(len(rows))
        return Sequences(
            self.unit, self.repertoire.subset(rows), self.has.only(rows), number[self.spelled], self.variants[rows],
            self.letters[rows], self.lengths[rows],
        )  # fmt: skip

    def order(self, run: Run) -> list[NDArray[Any]]:
        """Return what sorts the sequences of all ranks, arrays [sequences], as many on each rank.

        The order is that of `sequences_of`: by genes, then by length, then by letters.
        """
        junctions, words, length = self.repertoire, self.repertoire.words, self.repertoire.lengths.astype(np.int16)
        if self.unit != "nt":
            words, length = letter_words(self.letters), self.lengths.astype(np.int16)
        pairs, widths = zip(*run.gather_everywhere((junctions.pairs, words.shape[1])), strict=True)
        number = numbers_of_pairs(pairs)
        kind = np.array([number[pair] for pair in junctions.pairs], dtype=np.int32)[kinds_of(junctions)]
        wide = np.zeros((len(words), max(widths)), dtype=np.uint64)
        wide[:, : words.shape[1]] = words
        return [kind, length, *wide.T]

    def on_root(self, run: Run, **values: NDArray[Any]) -> "tuple[Sequences, dict[str, NDArray[Any]]] | None":
        """Gather the sequences of all ranks, and values of each sequence, on root; return None on the other ranks.

        The order is that of `sequences_of`, whatever the number of ranks.  `spelled` is then empty.
        """
        nothing = np.empty(0, dtype=np.int32)
        # Root translates the junctions again, which is faster than sending the amino acids.
        sent = replace(self, spelled=nothing, letters=nothing.astype(np.uint8), lengths=nothing.astype(np.int64))
        gathered = run.gather((sent, values))
        if gathered is None:
            return None
        parts, values_of = zip(*gathered, strict=True)
        repertoire, order = merged([part.repertoire for part in parts])
        words, length = repertoire.words, repertoire.lengths.astype(np.int64)
        if self.unit != "nt":
            letters, length = amino_acids(repertoire, np.arange(len(repertoire)))
            words = letter_words(letters)
        first, _ = groups_of(words, length, kinds_of(repertoire))
        repertoire, order = repertoire.subset(first), order[first]
        has = Holding.one_after_another([part.has for part in parts]).only(order)
        together = Sequences(
            self.unit, repertoire, has, nothing, np.concatenate([part.variants for part in parts])[order],
            *amino_acids(repertoire, np.arange(len(repertoire))),
        )  # fmt: skip
        return together, {name: np.concatenate([part[name] for part in values_of])[order] for name in values}


@dataclass(frozen=True)
class Grouping:
    """The sequence that each junction of a cohort spells.

    To save memory, a grouping has no letters: `letters` and `only` compute them for some sequences.

    first    int32 [sequences]: a junction that spells each sequence
    spelled  int32 [junctions of the cohort]: the sequence that each junction spells
    has      the individuals that have each sequence
    """

    cohort: Cohort
    unit: SequenceUnit
    first: NDArray[np.int32]
    spelled: NDArray[np.int32]
    has: Holding

    def letters(self, rows: Counts) -> tuple[NDArray[np.uint8], Counts]:
        """Return the amino acids of some sequences, as `hpcvdj.repertoires.genes.amino_acids` does."""
        return amino_acids(self.cohort.repertoire, self.first[rows])

    def only(self, rows: Counts) -> Sequences:
        """Select some sequences; `rows` ascend."""
        junctions, first = self.cohort.repertoire, self.first[rows]
        if self.unit == "v-aa":
            repertoire = _with_any_j(junctions, first, self.cohort.model)
        elif self.unit == "aa":
            repertoire = with_any_genes(junctions, first, self.cohort.model)
        else:
            repertoire = junctions.subset(first)
        number = np.full(len(self.first), -1, dtype=np.int32)
        number[rows] = np.arange(len(rows))
        spelled = number[self.spelled]
        variants = np.bincount(spelled[spelled >= 0], minlength=len(rows))
        return Sequences(self.unit, repertoire, self.has.only(rows), spelled, variants, *self.letters(rows))


def sequences_of(cohort: Cohort, unit: SequenceUnit) -> Grouping:
    """Find the distinct sequences of a cohort; `unit` says what counts as one sequence."""
    repertoire, has = cohort.repertoire, cohort.has
    if unit == "nt":
        every = np.arange(len(repertoire), dtype=np.int32)
        return Grouping(cohort, unit, every, every, has)
    of_pair = np.zeros(len(repertoire.pairs), dtype=np.int32)
    if unit != "aa":
        of_pair = np.arange(len(repertoire.pairs), dtype=np.int32) if unit == "vj-aa" else _v_genes(repertoire)
    kinds = np.repeat(of_pair, np.diff(repertoire.offsets))
    order, begins = blocks(repertoire.lengths.astype(np.int16), kinds)
    spelled, number = np.empty(len(repertoire), dtype=np.int32), 0
    firsts, holdings = list[NDArray[np.int32]](), list[Holding]()
    for start, stop in spans(begins):
        junctions = np.arange(begins[start], begins[stop])
        if not isinstance(order, slice):
            junctions = order[junctions]
        letters, lengths = amino_acids(repertoire, junctions)
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
    return Grouping(cohort, unit, np.concatenate(firsts), spelled, has)


def _v_genes(repertoire: Repertoire) -> NDArray[np.int32]:
    """Number the V genes of the pairs, which are sorted by V gene, int32 [pairs]."""
    changed = [k > 0 and pair[0] != repertoire.pairs[k - 1][0] for k, pair in enumerate(repertoire.pairs)]
    return np.cumsum(np.array(changed), dtype=np.int32)


def _with_any_j(junctions: Repertoire, rows: Places, model: Model) -> Repertoire:
    """Select some junctions, by their V gene, and let them have any J gene of the model."""
    v_genes = list(dict.fromkeys(v for v, _ in junctions.pairs))
    kinds = _v_genes(junctions)[np.searchsorted(junctions.offsets, rows, side="right") - 1]
    used, sizes = np.unique(kinds, return_counts=True)
    pairs = [(v_genes[kind], model.alleles("J")) for kind in used.tolist()]
    return Repertoire(*junctions.packed(rows), pairs, begins_of(sizes), junctions.letters)


def with_any_genes(junctions: Repertoire, rows: Places, model: Model) -> Repertoire:
    """Select some junctions, and let them have any V and J gene of the model."""
    pair, offsets = (model.alleles("V"), model.alleles("J")), np.array([0, len(rows)], dtype=np.int64)
    return Repertoire(*junctions.packed(rows), [pair], offsets, junctions.letters)
