"""Who carries which sequence: the donors that have it, except with a likely copy of another donor's junction."""

from dataclasses import dataclass, replace

import numpy as np

from hpcvdj.chance.p_values import Bools, Counts, Floats
from hpcvdj.cohorts.cohort import Cohort, Sequences
from hpcvdj.cohorts.copies import connected_alike, copies_of
from hpcvdj.cohorts.holding import Holding
from hpcvdj.cohorts.improbable import Improbable
from hpcvdj.repertoires.genes import kinds_of
from hpcvdj.runs.run import Run


@dataclass(frozen=True)
class Carriers:
    """The sequences that are tested, and who carries them.

    sequences  sequences that several donors have
    p          float64 [sequences]: probability among productive recombinations
    log_factor float64 [sequences]: ln Q
    has        the carriers
    copy       bool [sequences]: whether it is a likely copy; None without nucleotides
    alike      int64 [sequences]: the most donors that have the same junction, and whose copies of other junctions
               connect them; None without nucleotides
    linked     bool [donors, donors]: whether two donors share copies; None without nucleotides
    members    int64 [sequences]: how many sequences of its ball carriers have; None if units are not balls
    """

    sequences: Sequences
    p: Floats
    log_factor: Floats
    has: Holding
    copy: Bools | None
    alike: Counts | None = None
    linked: Bools | None = None
    members: Counts | None = None

    @property
    def perhaps_copy(self) -> Bools | None:
        """Whether each sequence may be a copy, but its junction is too probable for one to be told.

        bool [sequences]: more than half of the carriers have the same junction, and copies of others connect them.
        None without nucleotides.
        """
        if self.copy is None or self.alike is None:
            return None
        return ~self.copy & (2 * self.alike > self.has.numbers)

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
        names = [name for name in ("p", "log_factor", "copy", "alike", "members") if getattr(self, name) is not None]
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
    kept = (of_entry >= 0) & carried
    carriers = Holding.of(of_entry[kept], has.individual[kept], len(p), has.individuals, None, np.maximum)
    linked = improbable.pairs.linked
    return Carriers(sequences, p, log_factor, carriers, likely, connected_alike(has, spelled, linked, len(p)), linked)
