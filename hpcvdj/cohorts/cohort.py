"""A cohort: the distinct junctions of several individuals, and which individual has which."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.cohorts import Unit
from hpcvdj.errors import InputError, few, option
from hpcvdj.kernels.neighbours.blocks import groups as groups_of
from hpcvdj.recombination.exclusions import ExcludedRows
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import amino_acids, by_gene, kinds_of, letter_words
from hpcvdj.repertoires.junctions import Junctions

Counts = NDArray[np.int64]

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

    sequence    int64 [entries]
    individual  int64 [entries]
    reads       int64 [entries]; None if the input does not say
    begins      int64 [sequences + 1]: a sequence's entries are begins[k]:begins[k + 1]
    """

    sequence: Counts
    individual: Counts
    reads: Counts | None
    begins: Counts
    individuals: int

    @staticmethod
    def of(
        sequence: Counts, individual: Counts, sequences: int, individuals: int, reads: Counts | None, combine: Any
    ) -> "Holding":
        """That of pairs of a sequence and an individual, which may repeat.

        combine  the reads of repeated pairs: `numpy.add` or `numpy.maximum`
        """
        key = sequence * individuals + individual
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.int64)
        entry_reads = None if reads is None else combine.reduceat(reads[order], starts) if len(starts) else reads[:0]
        rows, columns = np.divmod(key[starts], individuals)
        begins = np.zeros(sequences + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=sequences), out=begins[1:])
        return Holding(rows, columns, entry_reads, begins, individuals)

    @cached_property
    def numbers(self) -> Counts:
        """How many individuals have each sequence, int64 [sequences]."""
        return np.diff(self.begins)

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
        number = np.repeat(np.arange(len(sequences)), counts)
        return Holding(number, self.individual[entries], reads, begins, self.individuals)

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
class Cohort:
    """Distinct junctions of several individuals.

    individuals     in the order of the input
    repertoire      the distinct junctions, with their V and J genes
    has             who has which of them
    row             int64 [rows]: data row of the input of each row that was read, whether its junction is repeated or
                    not
    sequence_of     int64 [rows]: its junction
    individual_of   int64 [rows]: its individual
    several_genes   rows whose calls name several V or several J genes
    """

    individuals: list[Individual]
    repertoire: Repertoire
    has: Holding
    row: Counts
    sequence_of: Counts
    individual_of: Counts
    several_genes: int

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


def cohort_of(junctions: Junctions, model: Model, people: People | None = None) -> Cohort:
    """The cohort of productive junctions of tables that were read together.

    people  whose the samples are; None if each is an individual

    InputError unless two individuals have junctions, and for a name with a comma.
    """
    samples = junctions.repertoire_ids or []
    people = people or People({name: name for name in samples})
    names = list(dict.fromkeys(people.subject[sample] for sample in samples))
    wrong = next((name for name in names if "," in name), None)
    if wrong is not None:
        raise InputError(f"an individual is called {wrong!r}, and commas separate individuals; rename it")
    own, order = by_gene(junctions.repertoire, model)
    place = {name: k for k, name in enumerate(names)}
    of_sample = np.array([place[people.subject[sample]] for sample in samples] or [0], dtype=np.int64)
    individual, row = of_sample[junctions.repertoire_of[order]], junctions.row[order]
    first, sequence = groups_of(own.words, own.lengths.astype(np.int64), kinds_of(own))
    of_row = None if junctions.reads is None else junctions.reads[order]
    has = Holding.of(sequence, individual, len(first), max(1, len(names)), of_row, np.add)
    if (has.sizes > 0).sum() < 2:
        people_left = few([names[k] for k in np.flatnonzero(has.sizes)]) or "nobody"
        raise InputError(
            f"only {people_left} has productive junctions of the model's genes, and two individuals or more are "
            "compared: give tables of others, whose repertoire_id differs, or name individuals with "
            f"{option('individual', 'COLUMN')}"
        )
    left_out = _left_out(junctions.excluded, people, names)
    for name, size, read in zip(names, has.sizes.tolist(), np.bincount(individual).tolist(), strict=False):
        if read > size:
            left_out[name][REPEATED] += read - size
    several = np.array([any(model.names_several(gene.allele) for gene in pair) for pair in own.pairs], dtype=bool)
    return Cohort(
        [
            Individual(name, (people.group or {}).get(name), size, dict(left_out[name].most_common()))
            for name, size in zip(names, has.sizes.tolist(), strict=True)
        ],
        own.subset(first),
        has,
        row,
        sequence,
        individual,
        int(np.diff(own.offsets)[several].sum()),
    )  # fmt: skip


def names_of_holders(cohort: Cohort, has: Holding, *, reads: bool = False) -> Any:
    """The individuals of each sequence, or their reads, joined by commas, as a pyarrow Array of text."""
    texts = pa.array(has.reads).cast(pa.string()) if reads else pa.array(cohort.names, pa.string())
    values = texts if reads else texts.take(pa.array(has.individual))
    return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(has.begins), values), ",")


def _left_out(excluded: ExcludedRows, people: People, names: list[str]) -> dict[str, Counter[str]]:
    """How many rows of each individual were excluded, by the kind of the reason."""
    found = {name: Counter[str]() for name in names}
    pairs = Counter(zip(excluded.repertoire_id, excluded.code.tolist(), strict=True))
    for (sample, code), rows in pairs.items():
        found[people.subject[sample]][excluded.exclusions[code].summary] += rows
    return found


@dataclass(frozen=True)
class Sequences:
    """What is compared: junctions of a cohort, all or some of them, or their amino acids.

    repertoire  one junction that spells each
    has         who has which
    spelled     int64 [junctions of the cohort]: the sequence that each spells; -1 for one of those left out
    variants    int64 [sequences]: its distinct junctions, as they are read
    letters, lengths  amino acids, as of `hpcvdj.repertoires.genes.amino_acids`
    """

    repertoire: Repertoire
    has: Holding
    spelled: Counts
    variants: Counts
    letters: NDArray[np.uint8]
    lengths: Counts

    def only(self, rows: Counts) -> "Sequences":
        """Some of them, ascending."""
        number = np.full(len(self.variants) + 1, -1, dtype=np.int64)
        number[rows] = np.arange(len(rows))
        return Sequences(
            self.repertoire.subset(rows), self.has.only(rows), number[self.spelled], self.variants[rows],
            self.letters[rows], self.lengths[rows],
        )  # fmt: skip


def sequences_of(cohort: Cohort, unit: Unit, model: Model) -> Sequences:
    """The different sequences of a cohort; what is one, `unit` says."""
    own, has = cohort.repertoire, cohort.has
    letters, lengths = amino_acids(own, np.arange(len(own)))
    if unit == "nt":
        return Sequences(own, has, np.arange(len(own)), np.ones(len(own), dtype=np.int64), letters, lengths)
    kinds = kinds_of(own) if unit == "vj-aa" else np.zeros(len(own), dtype=np.int64)
    first, group = groups_of(letter_words(letters), lengths, kinds)
    has = Holding.of(group[has.sequence], has.individual, len(first), has.individuals, has.reads, np.maximum)
    spelled = own.subset(first) if unit == "vj-aa" else with_any_genes(own, first, model)
    return Sequences(spelled, has, group, np.bincount(group), letters[first], lengths[first])


def with_any_genes(own: Repertoire, rows: Counts, model: Model) -> Repertoire:
    """Some junctions, with any V and J of the model."""
    pair = model.alleles("V"), model.alleles("J")
    return Repertoire(own.words[rows], own.lengths[rows], [pair], np.array([0, len(rows)], dtype=np.int64), own.letters)
