"""Which clonotypes expanded from a time to the next in one person: `hpcvdj associate --time`; see docs/associate.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
from hpcvdj.repertoires.genes import amino_acid_column, amino_acids, has_nucleotides, kinds_of, sequences

Times = Mapping[str, Mapping[float, list[str]]]
"""The samples of each subject, by time, ascending."""


@dataclass(frozen=True)
class Pair:
    """A time of a subject and the next one, or two replicates.

    depths      reads of both
    clonotypes  int64 [clonotypes]: those of either, as rows of the cohort
    counted     their reads
    """

    subject: str
    times: tuple[float, float]
    depths: tuple[int, int]
    clonotypes: Counts
    counted: Counted


@dataclass(frozen=True)
class Expansion(Shown):
    """The clonotypes that expanded.

    table       pyarrow, a row for each test with a small p-value: see docs/associate.md for the columns
    pairs       consecutive times of each subject
    noise       how reads vary
    replicates  pairs of replicates from which the noise is estimated; 0 if it is from `pairs`
    pair        int64 [tests]: the place in `pairs`
    p           float64 [tests]
    uniform     float64 [tests]: randomised, uniform if nothing changes
    kept        bool [tests]: which can reach the threshold, and are tested; the others have q-values of 1
    q           float64 [tests]
    max_q       the false discovery rate of hits
    """

    table: pa.Table
    cohort: Cohort
    pairs: list[Pair]
    noise: Noise
    replicates: int
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
    def hits(self) -> int:
        """Clonotypes that expanded, once for each pair of times."""
        return int((self.q <= self.max_q).sum())


def times_of(naming: Donors, names: Sequence[str]) -> Times:
    """The samples of each subject by time; InputError if a time is no number, and if no subject has two."""
    from hpcvdj.repertoires.metadata import column_of

    assert naming.subject is not None
    assert naming.time is not None
    subject = column_of(naming.metadata, naming.subject, names, "subject")
    times: dict[str, dict[float, list[str]]] = {}
    for name, text in column_of(naming.metadata, naming.time, names, "time").items():
        try:
            time = float(text)
        except ValueError:
            time = np.nan
        if not np.isfinite(time):
            raise InputError(f"{option('time', naming.time)}: {name} has {text!r}; give a number, such as of months")
        times.setdefault(subject[name], {}).setdefault(time, []).append(name)
    if all(len(own) < 2 for own in times.values()):
        raise InputError(
            f"{option('time', naming.time)}: no subject has samples of two times; give the tables of both, or "
            f"correct the columns {naming.subject} and {naming.time} of the metadata"
        )
    return {who: dict(sorted(own.items())) for who, own in times.items()}


def expand(cohort: Cohort, times: Times, settings: AssociationSettings) -> Expansion:
    """Test the clonotypes of a cohort whose individuals are samples.

    InputError for a sample without reads.
    """
    from scipy.sparse import csc_array

    has = cohort.has
    assert has.reads is not None
    shape = (len(has.begins) - 1, has.individuals)
    reads = csc_array((has.reads, (has.sequence, has.individual)), shape=shape)
    place = {name: k for k, name in enumerate(cohort.names)}
    depths = np.bincount(has.individual, has.reads, has.individuals)
    empty = next((cohort.names[k] for k in np.flatnonzero(depths == 0)), None)
    if empty is not None:
        raise InputError(f"{empty}: has no productive junctions of the model's genes; leave it out")

    def pair(who: str, ends: tuple[float, float], samples: tuple[list[str], list[str]]) -> Pair:
        columns = [np.array([place[name] for name in own]) for own in samples]
        before, after = (np.asarray(reads[:, own].sum(axis=1)).reshape(-1) for own in columns)
        first, second = (float((depths[own] ** 2).sum() / depths[own].sum() ** 2) for own in columns)
        either = np.flatnonzero(before + after)
        counted = Counted.given(before[either], after[either], (first, second))
        return Pair(who, ends, (int(before.sum()), int(after.sum())), either, counted)

    pairs = [pair(who, ends, (own[ends[0]], own[ends[1]])) for who, own in times.items() for ends in pairwise(own)]
    replicates = [pair(who, (time, time), ([one], [other])) for who, own in times.items()
                  for time, samples in own.items() for one, other in pairwise(samples)]  # fmt: skip
    noise = noise_of([own.counted for own in replicates or pairs])

    def of_clonotypes(values: list[Floats]) -> Floats:
        return np.concatenate([own[each.counted.of] for own, each in zip(values, pairs, strict=True)])

    at_least = of_clonotypes([own.counted.at_least(noise) for own in pairs])
    equal = of_clonotypes([own.counted.probability(noise) for own in pairs])
    least = of_clonotypes([own.counted.at_least(noise, own.counted.total) for own in pairs])
    kept, q = multiplicity.reaching(least, settings.max_q), np.ones(len(at_least))
    q[kept] = multiplicity.q_values(at_least[kept])
    of_pair = np.repeat(np.arange(len(pairs)), [len(own.clonotypes) for own in pairs])
    uniform = randomised(at_least, np.maximum(at_least - equal, 0.0), settings.seed)
    shown = (at_least <= settings.max_p) | (q <= settings.max_q)
    begins = np.searchsorted(of_pair, np.arange(len(pairs)))
    tables = [_rows(cohort, own, noise, np.flatnonzero(shown[of_pair == k]), at_least[begins[k] :], q[begins[k] :],
                    kept[begins[k] :]) for k, own in enumerate(pairs)]  # fmt: skip
    table = pa.concat_tables(tables)
    order = np.lexsort((np.arange(len(table)), table["p_value"].to_numpy()))
    return Expansion(table.take(pa.array(order)), cohort, pairs, noise, len(replicates), of_pair, at_least, uniform,
                     kept, q, settings.max_q)  # fmt: skip


def _rows(cohort: Cohort, pair: Pair, noise: Noise, shown: Counts, p: Floats, q: Floats, kept: Bools) -> pa.Table:
    """The clonotypes of a pair that the table has; p, q and kept begin with its first."""
    own, rows = cohort.repertoire, pair.clonotypes[shown]
    counted, number = pair.counted, len(shown)
    distinct, of = np.unique(counted.of[shown], return_inverse=True)
    fold, low, high = (values[of.reshape(-1)] for values in counted.folds(noise, distinct))
    total, after = counted.total[counted.of[shown]], counted.after[counted.of[shown]]
    kinds = pa.array(kinds_of(own)[rows])
    calls = {name: pa.array([pair[side].allele for pair in own.pairs], pa.string()).take(kinds)
             for name, side in (("v_call", 0), ("j_call", 1))}  # fmt: skip
    columns: dict[str, Any] = {
        "subject": pa.array([pair.subject] * number, pa.string()), **calls,
        **({"junction": sequences(own, rows)} if has_nucleotides(own) else {}),
        **amino_acid_column(own, *amino_acids(own, rows)),
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
