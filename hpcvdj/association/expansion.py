"""Which clonotypes of a person expanded from one time to the next: `hpcvdj associate --time`; see docs/associate.md."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.association import multiplicity
from hpcvdj.association.noise import Counted, Noise, noise_of
from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.chance.p_values import Bools, Counts, Floats, randomised
from hpcvdj.chance.shown import Shown
from hpcvdj.cohorts.cohort import Cohort
from hpcvdj.errors import InputError, option
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.recombination.selection import finite_number
from hpcvdj.repertoires.genes import amino_acid_column, amino_acids, gene_columns, has_nucleotides, kinds_of, sequences

Times = Mapping[str, Mapping[float, list[str]]]
"""The samples of each subject by time, in ascending order."""


@dataclass(frozen=True)
class Pair:
    """A time of a subject and the next time, or two replicates.

    depths      reads of both
    clonotypes  int64 [clonotypes]: the rows of the cohort that either of them has
    counted     the reads of these clonotypes
    largest_shared  how many of 20 large improbable clonotypes before are seen after, and the reverse; None if they were
                not compared: see `hpcvdj.association.people`
    """

    subject: str
    times: tuple[float, float]
    depths: tuple[int, int]
    clonotypes: Counts
    counted: Counted
    largest_shared: tuple[int, int] | None = None


@dataclass(frozen=True)
class Expansion(Shown):
    """The clonotypes that expanded.

    table       pyarrow, a row for each test with a small p-value: see docs/associate.md for the columns
    pairs       consecutive times of each subject
    noise       how reads vary
    replicated  pairs of replicates, from which the noise is estimated; without any it is estimated from `pairs`
    pair        int64 [tests]: the index in `pairs`
    p           float64 [tests]
    uniform     float64 [tests]: randomised p-values, which are uniform if nothing changes
    kept        bool [tests]: whether it can reach the threshold, and is tested; the others have q-values of 1
    q           float64 [tests]
    max_q       the false discovery rate of hits
    """

    table: pa.Table
    cohort: Cohort
    pairs: list[Pair]
    noise: Noise
    replicated: list[Pair]
    pair: Counts
    p: Floats
    uniform: Floats
    kept: Bools
    q: Floats
    max_q: float

    def __repr__(self) -> str:
        """How many pairs and hits there are."""
        return f"<Expansion of {len(self.pairs):,} pairs of times: {self.hits:,} of {len(self.p):,} clonotypes>"

    @property
    def replicates(self) -> int:
        """The number of pairs of replicates."""
        return len(self.replicated)

    @property
    def hits(self) -> int:
        """The number of clonotypes that expanded, over all pairs of times."""
        return int((self.q <= self.max_q).sum())


def times_of(naming: Donors, names: Sequence[str]) -> Times:
    """The samples of each subject by time; InputError if a time is no number, or if no subject has two times."""
    from hpcvdj.repertoires.metadata import column_of

    assert naming.subject is not None
    assert naming.time is not None
    subject = column_of(naming.metadata, naming.subject, names, "subject")
    times: dict[str, dict[float, list[str]]] = {}
    for name, text in column_of(naming.metadata, naming.time, names, "time").items():
        time = finite_number(text)
        if time is None:
            raise InputError(f"{option('time', naming.time)}: {name} has {text!r}; give a number, such as of months")
        times.setdefault(subject[name], {}).setdefault(time, []).append(name)
    if all(len(of_subject) < 2 for of_subject in times.values()):
        raise InputError(
            f"{option('time', naming.time)}: no subject has samples of two times; give the tables of both, or "
            f"correct the columns {naming.subject} and {naming.time} of the metadata"
        )
    return {who: dict(sorted(of_subject.items())) for who, of_subject in times.items()}


def expand(cohort: Cohort, times: Times, settings: AssociationSettings) -> Expansion:
    """Test the clonotypes of a cohort whose individuals are samples; InputError for a sample without reads."""
    from scipy.sparse import csc_array

    has = cohort.has
    assert has.reads is not None
    shape = (len(has.begins) - 1, has.individuals)
    column_of = {name: k for k, name in enumerate(cohort.names)}
    sequence = has.sequence.astype(np.int64)
    for samples in times.values():
        own = np.isin(has.individual, [column_of[name] for names in samples.values() for name in names])
        rows, place = np.unique(sequence[own], return_inverse=True)
        sequence[own] = united(cohort.repertoire, rows, np.bincount(place, has.reads[own]).astype(np.int64))[place]
    reads = csc_array((has.reads, (sequence, has.individual)), shape=shape)
    depths = np.bincount(has.individual, has.reads, has.individuals)
    empty = next((cohort.names[k] for k in np.flatnonzero(depths == 0)), None)
    if empty is not None:
        raise InputError(f"{empty}: has no productive junctions of the model's genes; leave it out")

    def pair(who: str, ends: tuple[float, float], samples: tuple[list[str], list[str]]) -> Pair:
        columns = [np.array([column_of[name] for name in names]) for names in samples]
        before, after = (np.asarray(reads[:, column].sum(axis=1)).reshape(-1) for column in columns)
        first, second = (float((depths[column] ** 2).sum() / depths[column].sum() ** 2) for column in columns)
        either = np.flatnonzero(before + after)
        counted = Counted.given(before[either], after[either], (first, second))
        return Pair(who, ends, (int(before.sum()), int(after.sum())), either, counted)

    pairs = [pair(who, (first, second), (samples[first], samples[second]))
             for who, samples in times.items() for first, second in pairwise(samples)]  # fmt: skip
    replicates = [pair(who, (time, time), ([a], [b])) for who, samples in times.items()
                  for time, names in samples.items() for a, b in pairwise(sorted(names))]  # fmt: skip
    noise = noise_of([part.counted for part in replicates or pairs])

    def of_clonotypes(values_of: Callable[[Counted], Floats]) -> Floats:
        return np.concatenate([values_of(part.counted)[part.counted.of] for part in pairs])

    at_least = of_clonotypes(lambda counted: counted.at_least(noise))
    equal = of_clonotypes(lambda counted: counted.probability(noise))
    least = of_clonotypes(lambda counted: counted.at_least(noise, counted.total))
    kept, q = multiplicity.reaching(least, settings.max_q), np.ones(len(at_least))
    q[kept] = multiplicity.q_values(at_least[kept])
    sizes = [len(part.clonotypes) for part in pairs]
    of_pair = np.repeat(np.arange(len(pairs)), sizes)
    uniform = randomised(at_least, np.maximum(at_least - equal, 0.0), settings.seed)
    shown = (at_least <= settings.max_p) | (q <= settings.max_q)
    parts = zip(*(np.split(values, np.cumsum(sizes)[:-1]) for values in (shown, at_least, q, kept)), strict=True)
    table = pa.concat_tables([_rows(cohort, part, noise, *values) for part, values in zip(pairs, parts, strict=True)])
    order = np.lexsort((np.arange(len(table)), table["p_value"].to_numpy()))
    return Expansion(table.take(pa.array(order)), cohort, pairs, noise, replicates, of_pair, at_least, uniform,
                     kept, q, settings.max_q)  # fmt: skip


def united(repertoire: Repertoire, rows: Counts, reads: Counts) -> Counts:
    """The sequence that stands for the clonotype of each sequence of a subject: the one of it with the most reads.

    A clonotype has one junction, and calls that overlap: of TRBV6-2, TRBV6-2,TRBV6-3 and TRBV6-3 at different times.

    rows   int64 [sequences]: the sequences of the subject in the repertoire, ascending
    reads  int64 [sequences]

    Returns int64 [sequences], members of `rows`.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    calls = [(frozenset(v.allele.split(",")), frozenset(j.allele.split(","))) for v, j in repertoire.pairs]
    kinds = kinds_of(repertoire)[rows]
    is_tie = np.array([len(v) + len(j) > 2 for v, j in calls], dtype=bool)[kinds]
    if not is_tie.any():
        return rows
    words, lengths = repertoire.packed(rows)
    _, junction = groups(words, lengths.astype(np.int64), np.zeros(len(rows), dtype=np.int64))
    of_tie = np.zeros(len(rows), dtype=bool)
    of_tie[junction[is_tie]] = True
    places = np.flatnonzero(of_tie[junction])
    places = places[np.argsort(junction[places], kind="stable")]
    edges: list[tuple[int, int]] = []
    for alike in np.split(places, np.flatnonzero(np.diff(junction[places])) + 1):
        edges += [
            (place, other) for place, other in combinations(alike.tolist(), 2)
            if all(own & others for own, others in zip(calls[kinds[place]], calls[kinds[other]], strict=True))
        ]  # fmt: skip
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = csr_array((np.ones(len(edges)), (ends[0], ends[1])), shape=(len(rows),) * 2)
    clonotype = connected_components(graph, directed=False)[1]
    # The last one of each clonotype has the most reads, and is the first of those with as many.
    order = np.lexsort((-np.arange(len(rows)), reads, clonotype))
    last = np.append(np.flatnonzero(np.diff(clonotype[order])), len(order) - 1)
    return np.asarray(rows[order[last][clonotype]])


def _rows(cohort: Cohort, pair: Pair, noise: Noise, shown: Bools, p: Floats, q: Floats, kept: Bools) -> pa.Table:
    """The rows of the table for a pair; `shown` to `kept` are [clonotypes of the pair]."""
    repertoire, rows = cohort.repertoire, pair.clonotypes[shown]
    counted, number = pair.counted, len(rows)
    distinct, of = np.unique(counted.of[shown], return_inverse=True)
    fold, low, high = (values[of.reshape(-1)] for values in counted.folds(noise, distinct))
    total, after = counted.total[counted.of[shown]], counted.after[counted.of[shown]]
    columns: dict[str, Any] = {
        "subject": pa.array([pair.subject] * number, pa.string()),
        **gene_columns(repertoire.pairs, kinds_of(repertoire)[rows]),
        **({"junction": sequences(repertoire, rows)} if has_nucleotides(repertoire) else {}),
        **amino_acid_column(repertoire, *amino_acids(repertoire, rows)),
        "time_before": np.full(number, pair.times[0]), "time_after": np.full(number, pair.times[1]),
        "reads_before": total - after, "reads_after": after,
        "depth_before": np.full(number, pair.depths[0]), "depth_after": np.full(number, pair.depths[1]),
        "expected": total * (counted.ratio / (counted.ratio + 1)),
        "log2_fold_change": fold,
        "log2_fold_change_low": pa.array(low, mask=~np.isfinite(low)),
        "log2_fold_change_high": pa.array(high, mask=~np.isfinite(high)),
        "p_value": p[shown], "q_value": pa.array(q[shown], mask=~kept[shown]),
    }  # fmt: skip
    return pa.table(columns)
