"""Pairs of chains like receptors of which both chains are known, and how many of them chance makes.

Chains of a cell are nearly independent (Grigaityte et al. 2017; Dupic et al. 2019).  So a cell whose chains have the
genes of a record is within one exchange of both of its sequences with the probability p(A) p(B), where A and B are the
balls.  An epitope has the union of A × B over its pairs of records: each pair of sequences once.  Distinct pairs of
junctions are the trials, and their genes are as they are in the sample.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.annotation import statistics
from hpcvdj.annotation.annotate import classes_in
from hpcvdj.annotation.cache import Prepared
from hpcvdj.annotation.settings import AnnotationSettings
from hpcvdj.annotation.statistics import Kappa
from hpcvdj.chance.p_values import Counts, Floats, benjamini_hochberg
from hpcvdj.errors import option
from hpcvdj.kernels.distinct import distinct
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.databases import Records
from hpcvdj.repertoires.genes import amino_acids, by_gene, kinds_of
from hpcvdj.repertoires.junctions import Junctions

log = logging.getLogger(__name__)

Pair = tuple[int, int]
"""A centre of each chain."""


@dataclass(frozen=True)
class Chains:
    """One chain of each of some cells; -1 of a cell that has none.

    junction  int64 [cells]: which distinct junction with its genes
    kind      int64 [cells]: the class of the union
    member    int64 [cells]: of the union
    """

    junction: Counts
    kind: Counts
    member: Counts


@dataclass(frozen=True)
class PairedAnnotation:
    """What cells with both chains have.

    hits       pyarrow, a row for each distinct pair of junctions, those first that chance hardly makes
    epitopes   pyarrow, a row for each epitope that has pairs, by p-value
    hit_of     int64 [cells]: the row of `hits`; -1 of none
    both       bool [cells]: with both chains
    trials     distinct pairs of junctions
    kappa, dispersion, passed   as of `annotate`; nothing has a q-value or false discovery rate if decoys fail
    """

    hits: pa.Table
    epitopes: pa.Table
    hit_of: Counts
    both: NDArray[np.bool_]
    trials: int
    kappa: Kappa
    dispersion: float
    passed: bool | None


def chains_of(junctions: Junctions, cells: int, model: Model, prepared: Prepared) -> Chains:
    """The chains of cells, the rows of a table, as they are matched with a union."""
    union, _ = prepared
    own, order = by_gene(junctions.repertoire, model)
    letters, lengths = amino_acids(own, np.arange(len(own)))
    _, junction = groups(own.words, own.lengths.astype(np.int64), kinds_of(own))
    kind = classes_in(union, own.pairs)[kinds_of(own)]
    found = np.full((3, cells), -1, dtype=np.int64)
    found[:, junctions.row[order]] = junction, kind, union.find(kind, letters, lengths)
    return Chains(*found)


class _Side:
    """The balls of a chain, by centre: their members, and their probabilities."""

    def __init__(self, prepared: Prepared) -> None:
        self.union, p = prepared
        self.given, self.kind = p.given, self.union.centres.kind
        member = np.repeat(np.arange(len(self.union)), np.diff(self.union.first, append=len(self.union.centre)))
        self._member = member[np.argsort(self.union.centre, kind="stable")]
        self._begins = np.concatenate([[0], np.cumsum(np.bincount(self.union.centre, minlength=len(self.kind)))])
        self.mass = self.union.by_centre(self.given)

    def ball(self, centre: int) -> Counts:
        """Members, ascending."""
        return self._member[self._begins[centre] : self._begins[centre + 1]]

    def centres(self, member: int) -> list[int]:
        """Those whose ball has a member."""
        ends = np.append(self.union.first[member : member + 2], len(self.union.centre))
        return list(self.union.centre[ends[0] : ends[1]].tolist())

    def masses(self, centres: Sequence[int]) -> dict[int, float]:
        """The probability of the union of balls, by class."""
        if len(centres) == 1:
            return {int(self.kind[centres[0]]): float(self.mass[centres[0]])}
        members = distinct(np.concatenate([self.ball(centre) for centre in centres]))
        sums = np.bincount(self.union.kind[members], self.given[members])
        return {kind: float(sums[kind]) for kind in np.flatnonzero(sums).tolist()}

    def parts(self, centres: Sequence[int]) -> list[tuple[list[int], float]]:
        """The union of balls of centres, parted by the centres in whose balls members are; the probability of each."""
        balls = [self.ball(centre) for centre in centres]
        members, at = np.unique(np.concatenate(balls), return_inverse=True)
        # A number for each set of centres; two sets have the same one with a probability of about 1e-19.
        marks = np.random.default_rng(0).integers(1, 1 << 63, len(centres), dtype=np.uint64)
        sets = np.zeros(len(members), dtype=np.uint64)
        np.add.at(sets, at, np.repeat(marks, [len(ball) for ball in balls]))
        _, first, part = np.unique(sets, return_index=True, return_inverse=True)
        mass = np.bincount(part, self.given[members])
        wanted = set(centres)
        return [(sorted(wanted.intersection(self.centres(int(members[k])))), float(mass[number]))
                for number, k in enumerate(first.tolist())]  # fmt: skip


@dataclass(frozen=True)
class _Epitope:
    """Epitopes that have the same pairs, and whether all their records are decoys."""

    name: str
    pairs: list[Pair]
    decoy: bool


def _epitopes(
    records: Records, sides: Sequence[_Side], decoys: Sequence[str]
) -> tuple[list[_Epitope], dict[Pair, str]]:
    """The epitopes with pairs, and the rows of the database of each pair.

    A receptor is a row with both chains, or the rows that have one `receptor_id`.
    """
    wanted = {name.lower() for name in decoys}
    of_row: dict[int, tuple[str | int, str]] = {}
    is_decoy: dict[str, bool] = defaultdict(lambda: bool(wanted))
    for record in records.records:
        of_row[record.row] = (record.receptor_id or record.row, record.epitope)
        names = {record.epitope.lower(), record.antigen.lower(), record.organism.lower()}
        is_decoy[record.epitope] &= not wanted.isdisjoint(names)
    receptors: list[dict[tuple[str | int, str], dict[int, str]]] = [defaultdict(dict), defaultdict(dict)]
    for side, own in zip(sides, receptors, strict=True):
        for centre, rows in enumerate(side.union.centres.rows):
            for row in rows.split(";"):
                own[of_row[int(row) - 1]][centre] = row
    of_name: dict[str, set[Pair]] = defaultdict(set)
    rows_of: dict[Pair, dict[str, None]] = defaultdict(dict)
    for key in receptors[0].keys() & receptors[1].keys():
        for one, row in receptors[0][key].items():
            for other, other_row in receptors[1][key].items():
                of_name[key[1]].add((one, other))
                rows_of[one, other] |= dict.fromkeys((row, other_row))
    alike: dict[frozenset[Pair], list[str]] = defaultdict(list)
    for name in sorted(of_name):
        alike[frozenset(of_name[name])].append(name)
    epitopes = [_Epitope(";".join(names), sorted(pairs), all(is_decoy[name] for name in names))
                for pairs, names in alike.items()]  # fmt: skip
    return epitopes, {pair: ";".join(sorted(rows, key=int)) for pair, rows in rows_of.items()}


def _expected(pairs: Sequence[Pair], sides: Sequence[_Side], n: Counts) -> float:
    """The sum of n p(a) p(b) over the union of A × B, each pair of sequences once."""
    partners: dict[int, set[int]] = defaultdict(set)
    for one, other in pairs:
        partners[one].add(other)
    of_partners: dict[tuple[int, ...], dict[int, float]] = {}
    total = 0.0
    for centres, mass in sides[0].parts(sorted(partners)):
        others = tuple(sorted(set().union(*(partners[centre] for centre in centres))))
        if others not in of_partners:
            of_partners[others] = sides[1].masses(others)
        kind = sides[0].kind[centres[0]]
        total += mass * sum(int(n[kind, other]) * own for other, own in of_partners[others].items())
    return total


def annotate_pairs(
    chains: tuple[Chains, Chains], prepared: tuple[Prepared, Prepared], records: Records, settings: AnnotationSettings
) -> PairedAnnotation:
    """Test the epitopes that have pairs of records; κ is given, of decoys, or 1."""
    sides = [_Side(own) for own in prepared]
    epitopes, rows_of = _epitopes(records, sides, settings.decoys)
    both = (chains[0].junction >= 0) & (chains[1].junction >= 0)
    cells = np.flatnonzero(both)
    keys = chains[0].junction[cells] << 32 | chains[1].junction[cells]
    _, first, trial = np.unique(keys, return_index=True, return_inverse=True)
    kinds, members = ([getattr(chain, name)[cells[first]] for chain in chains] for name in ("kind", "member"))
    n = np.zeros([len(side.union.centres.classes) for side in sides], dtype=np.int64)
    of_records = (kinds[0] >= 0) & (kinds[1] >= 0)
    np.add.at(n, (kinds[0][of_records], kinds[1][of_records]), 1)
    of_pair: dict[Pair, list[int]] = defaultdict(list)
    for number, epitope in enumerate(epitopes):
        for pair in epitope.pairs:
            of_pair[pair].append(number)
    alone = {pair: float(n[sides[0].kind[pair[0]], sides[1].kind[pair[1]]] * sides[0].mass[pair[0]]
                         * sides[1].mass[pair[1]]) for pair in of_pair}  # fmt: skip
    near: dict[int, list[Pair]] = {}
    for row in np.flatnonzero((members[0] >= 0) & (members[1] >= 0)).tolist():
        found = [(one, other) for one in sides[0].centres(int(members[0][row]))
                 for other in sides[1].centres(int(members[1][row])) if (one, other) in of_pair]  # fmt: skip
        if found:
            near[row] = sorted(found, key=lambda pair: (alone[pair], pair))
    k = np.zeros(len(epitopes), dtype=np.int64)
    for pairs in near.values():
        k[sorted({number for pair in pairs for number in of_pair[pair]})] += 1
    mean = np.array([_expected(epitope.pairs, sides, n) for epitope in epitopes])
    decoy = np.array([epitope.decoy for epitope in epitopes], dtype=bool)
    kappa = _kappa(int(k[decoy].sum()), float(mean[decoy].sum()), settings)
    expected = kappa.value * mean
    phi = statistics.dispersion(k[decoy], expected[decoy], null=True)
    table = _epitope_table(epitopes, k, expected, phi)
    called, told = table["q_value"].to_numpy() <= settings.max_q, table["decoy"].to_numpy()
    passed = statistics.decoys_pass(called, told, settings.max_q)
    hits, at = _hits(near, sides, epitopes, of_pair, rows_of, {pair: kappa.value * alone[pair] for pair in alone})
    if passed is False:
        log.warning(
            "pairs: %d epitopes of decoys would be called, so nothing is; use a model of this protocol, or give %s",
            (called & told).sum(), option("kappa"),
        )  # fmt: skip
        table, hits = (_without(own, name) for own, name in ((table, "q_value"), (hits, "fdr")))
    hit_of = np.full(len(both), -1, dtype=np.int64)
    hit_of[cells] = [at.get(row, -1) for row in trial.tolist()]
    return PairedAnnotation(hits, table, hit_of, both, len(first), kappa, phi, passed)


def _without(table: pa.Table, name: str) -> pa.Table:
    """A table whose column `name` has no values."""
    return table.set_column(table.column_names.index(name), name, pa.nulls(len(table), table[name].type))


def _kappa(found: int, expected: float, settings: AnnotationSettings) -> Kappa:
    if settings.kappa is not None:
        return Kappa(settings.kappa)
    if found < statistics.FEWEST_HITS or not expected:
        return Kappa(1.0, source="none")
    low, high = (float(end[0]) / expected for end in statistics.interval(np.array([found])))
    return Kappa(found / expected, low, high, "decoys")


def _epitope_table(epitopes: Sequence[_Epitope], k: Counts, expected: Floats, phi: float) -> pa.Table:
    """A row for each epitope that chance can hit, the smallest p-value first."""
    has = np.flatnonzero(expected > 0)
    p_values, _ = statistics.tail(k[has], expected[has], phi, [None] * len(has))
    order = np.lexsort((-expected[has], p_values))
    rows = has[order]
    low, high = statistics.interval(k[rows])
    return pa.table({
        "epitope": pa.array([epitopes[row].name for row in rows], pa.string()),
        "pairs": pa.array([len(epitopes[row].pairs) for row in rows], pa.int64()),
        "decoy": pa.array([epitopes[row].decoy for row in rows], pa.bool_()),
        "found": k[rows], "expected": expected[rows], "ratio": k[rows] / expected[rows],
        "ratio_low": low / expected[rows], "ratio_high": high / expected[rows], "p_value": p_values[order],
        "q_value": benjamini_hochberg(p_values, len(p_values))[order],
    })  # fmt: skip


def _hits(
    near: Mapping[int, list[Pair]], sides: Sequence[_Side], epitopes: Sequence[_Epitope],
    of_pair: Mapping[Pair, list[int]], rows_of: Mapping[Pair, str], expected: Mapping[Pair, float],
) -> tuple[pa.Table, dict[int, int]]:  # fmt: skip
    """A row for each hit with that record which chance hits least, and the row of each."""
    rows = sorted(near, key=lambda row: (expected[near[row][0]], near[row][0], row))
    best = [near[row][0] for row in rows]
    means = np.array([expected[pair] for pair in best])
    # Sums over records count a pair of sequences that two have twice, so that rates are rather too large.
    every = np.array(list(expected.values()))
    texts = [side.union.centres.texts for side in sides]
    table = pa.table({
        "epitope": pa.array([";".join(epitopes[own].name for own in of_pair[pair]) for pair in best], pa.string()),
        "record": pa.array([f"{texts[0][one]}+{texts[1][other]}" for one, other in best], pa.string()),
        "database_rows": pa.array([rows_of[pair] for pair in best], pa.string()),
        "expected": means, "fdr": statistics.false_discovery_rates(means, every, every) if len(best) else means,
    })  # fmt: skip
    return table, {row: number for number, row in enumerate(rows)}
