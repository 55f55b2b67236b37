"""A cohort: the distinct junctions of several individuals, and which individual has which."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.cohorts import Unit
from hpcvdj.errors import InputError
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
        """The entries of some sequences, ascending, which are numbered anew."""
        kept = np.zeros(len(self.begins) - 1, dtype=bool)
        kept[sequences] = True
        entries = kept[self.sequence]
        begins = np.concatenate([[0], np.cumsum(self.numbers[sequences])]).astype(np.int64)
        number = np.repeat(np.arange(len(sequences)), np.diff(begins))
        reads = None if self.reads is None else self.reads[entries]
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


def cohort_of(
    junctions: Junctions, reads: Counts | None, model: Model, groups: Mapping[str, str] | None = None
) -> Cohort:
    """The cohort of productive junctions of tables that were read together.

    reads   int64 [data rows] of the input, at least 1; None if it does not say
    groups  the group of each individual

    InputError unless two individuals have junctions, and for a name with a comma.
    """
    names = junctions.repertoire_ids or []
    wrong = next((name for name in names if "," in name), None)
    if wrong is not None:
        raise InputError(f"an individual is called {wrong!r}, and commas separate individuals; rename it")
    own, order = by_gene(junctions.repertoire, model)
    individual, row = junctions.repertoire_of[order].astype(np.int64), junctions.row[order]
    first, sequence = groups_of(own.words, own.lengths.astype(np.int64), kinds_of(own))
    of_row = None if reads is None else reads[row]
    has = Holding.of(sequence, individual, len(first), max(1, len(names)), of_row, np.add)
    if (has.sizes > 0).sum() < 2:
        raise InputError(
            f"{int((has.sizes > 0).sum())} individual(s) with productive junctions of the model's genes, and sharing "
            "takes two or more; give several tables, or --individual COLUMN of a table that has several"
        )
    left_out = _left_out(junctions.excluded, names)
    for name, size, read in zip(names, has.sizes.tolist(), np.bincount(individual).tolist(), strict=False):
        if read > size:
            left_out[name][REPEATED] += read - size
    several = np.array([any("," in gene.allele for gene in pair) for pair in own.pairs], dtype=bool)
    return Cohort(
        [
            Individual(name, groups[name] if groups is not None else None, size, dict(left_out[name].most_common()))
            for name, size in zip(names, has.sizes.tolist(), strict=True)
        ],
        own.subset(first),
        has,
        row,
        sequence,
        individual,
        int(np.diff(own.offsets)[several].sum()),
    )  # fmt: skip


def _left_out(excluded: ExcludedRows, names: list[str]) -> dict[str, Counter[str]]:
    """How many rows of each individual were excluded, by the kind of the reason."""
    found = {name: Counter[str]() for name in names}
    pairs = Counter(zip(excluded.repertoire_id, excluded.code.tolist(), strict=True))
    for (name, code), rows in pairs.items():
        found[name][excluded.exclusions[code].summary] += rows
    return found


@dataclass(frozen=True)
class Sequences:
    """What is compared: junctions of a cohort, all or some of them, or their amino acids.

    repertoire  one junction that spells each
    has         who has which
    variants    int64 [sequences]: its distinct junctions
    letters, lengths  amino acids, as of `hpcvdj.repertoires.genes.amino_acids`
    """

    repertoire: Repertoire
    has: Holding
    variants: Counts
    letters: NDArray[np.uint8]
    lengths: Counts

    def only(self, rows: Counts) -> "Sequences":
        """Some of them, ascending."""
        return Sequences(
            self.repertoire.subset(rows), self.has.only(rows), self.variants[rows], self.letters[rows],
            self.lengths[rows],
        )  # fmt: skip


def sequences_of(cohort: Cohort, unit: Unit, model: Model) -> Sequences:
    """The different sequences of a cohort; what is one, `unit` says."""
    own, has = cohort.repertoire, cohort.has
    letters, lengths = amino_acids(own, np.arange(len(own)))
    if unit == "nt":
        return Sequences(own, has, np.ones(len(own), dtype=np.int64), letters, lengths)
    kinds = kinds_of(own) if unit == "vj-aa" else np.zeros(len(own), dtype=np.int64)
    first, group = groups_of(letter_words(letters), lengths, kinds)
    has = Holding.of(group[has.sequence], has.individual, len(first), has.individuals, has.reads, np.maximum)
    spelled = own.subset(first) if unit == "vj-aa" else with_any_genes(own, first, model)
    return Sequences(spelled, has, np.bincount(group), letters[first], lengths[first])


def with_any_genes(own: Repertoire, rows: Counts, model: Model) -> Repertoire:
    """Some junctions, with any V and J of the model."""
    pair = model.alleles("V"), model.alleles("J")
    return Repertoire(own.words[rows], own.lengths[rows], [pair], np.array([0, len(rows)], dtype=np.int64), own.letters)
