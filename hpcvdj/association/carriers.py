"""Who carries which sequence: the donors that have it, except with a likely copy of another donor's junction."""

from dataclasses import dataclass, replace

import numpy as np

from hpcvdj.chance.p_values import Bools, Counts, Floats
from hpcvdj.cohorts.cohort import Cohort, Sequences
from hpcvdj.cohorts.copies import copies_of, sources_of
from hpcvdj.cohorts.holding import Holding, Places
from hpcvdj.cohorts.improbable import Improbable
from hpcvdj.repertoires.genes import kinds_of
from hpcvdj.runs.run import Run


@dataclass(frozen=True)
class Carriers:
    """The sequences that are tested, and who carries them.

    sequences  sequences that several donors have
    p          float64 [sequences]: probability among productive recombinations
    log_factor float64 [sequences]: ln Q
    has        the carriers; its `reads` say where the junctions of each may come from, as `sources_of` does (0 if one
               is the carrier's own); None without nucleotides
    copy       bool [sequences]: whether it is a likely copy; None without nucleotides
    group      int64 [donors]: those who share copies, -1 of others; None without nucleotides
    members    int64 [sequences]: how many sequences of its ball carriers have; None if units are not balls
    """

    sequences: Sequences
    p: Floats
    log_factor: Floats
    has: Holding
    copy: Bools | None
    group: Counts | None = None
    members: Counts | None = None

    @property
    def log_p(self) -> Floats:
        """ln of the probability after selection; impossible sequences have the smallest probability above 0."""
        smallest = self.p[self.p > 0].min(initial=1.0)
        return np.asarray(np.log(np.maximum(self.p, smallest)) + self.log_factor)

    @property
    def family(self) -> Counts:
        """The family of each sequence, int64 [sequences]; balls of different families have no sequence in common."""
        if self.members is None:
            return np.arange(len(self.p))
        block = np.stack([kinds_of(self.sequences.repertoire), self.sequences.lengths])
        return np.unique(block, axis=1, return_inverse=True)[1].reshape(-1)

    def on_root(self, rows: Counts, run: Run) -> "Carriers | None":
        """The chosen sequences of all ranks, on root; None on the other ranks.

        rows  sequences of this rank
        """
        names = [name for name in ("p", "log_factor", "copy", "members") if getattr(self, name) is not None]
        carried = replace(self.sequences, has=self.has).only(rows)
        gathered = carried.on_root(run, **{name: getattr(self, name)[rows] for name in names})
        if gathered is None:
            return None
        sequences, values = gathered
        return replace(self, sequences=sequences, has=sequences.has, **values)


def carriers_of(
    cohort: Cohort, sequences: Sequences, p: Floats, log_factor: Floats, p_junctions: Floats | None,
    improbable: Improbable | None,
) -> Carriers:  # fmt: skip
    """Who carries the sequences.

    A donor whose only junction is a likely copy is no carrier, unless its clone is larger than all others.

    p_junctions  float64 [junctions of the cohort]: their probabilities; None without nucleotides
    improbable   junctions that individuals share, and pairs that contaminated each other; None without nucleotides
    """
    if p_junctions is None or improbable is None:
        return Carriers(sequences, p, log_factor, sequences.has, None)
    has, spelled = cohort.has, sequences.spelled
    contaminated = improbable.pairs.verdicts == "contaminated"
    copies = copies_of(has, p_junctions, spelled, p, spelled, contaminated, [*cohort.clones.values()])
    likely = copies.likely & (copies.junction >= 0)
    junction = has.sequence
    of_entry = spelled[junction]
    copied = np.zeros(len(spelled), dtype=bool)
    copied[copies.junction[likely]] = True
    carried = ~copied[junction]
    if has.reads is not None:
        # Of equal largest clones, any may be the source.
        is_largest = has.reads == has.reads[has.largest()][junction]
        is_only = np.bincount(junction[is_largest], minlength=len(spelled)) == 1
        carried |= is_largest & is_only[junction]
    kept, group = (of_entry >= 0) & carried, improbable.pairs.group
    source = _doubtful(sources_of(has, group), of_entry, has.individual, group)
    carriers = Holding.of(of_entry[kept], has.individual[kept], len(p), has.individuals, source[kept], np.minimum)
    return Carriers(sequences, p, log_factor, carriers, likely, group)


def _doubtful(source: Counts, sequence: Places, individual: Places, group: Counts) -> Counts:
    """The sources that most carriers in a group have, int64 [entries]; 0 for others.

    sequence  the sequence of each entry

    A copy of a clone is one junction.  Where the carriers in a group have several, none of which most have, they made
    the sequence themselves.
    """
    asked = np.flatnonzero((source > 0) & (sequence >= 0))
    if not len(asked):
        return source
    of_group = sequence * np.int64(len(group) + 1) + group[individual] + 1
    there = np.flatnonzero((group[individual] >= 0) & np.isin(of_group, of_group[asked]))
    carriers = np.unique(of_group[there] * len(group) + individual[there])
    key, number = np.unique(carriers // len(group), return_counts=True)
    doubtful = np.zeros_like(source)
    most = 2 * np.bincount(source)[source[asked]] > number[np.searchsorted(key, of_group[asked])]
    doubtful[asked[most]] = source[asked[most]]
    return doubtful
