"""Pairs of chains like receptors with two known chains, and how many of them recombination makes by chance.

The chains of a cell are nearly independent (Grigaityte et al. 2017; Dupic et al. 2019).  Let A and B be the balls of
the two sequences of a record.  A cell whose chains have the genes of the record is within one exchange of both
sequences with the probability p(A) p(B).  An epitope has the union of A × B over its pairs of records: each pair of
sequences counts once.  The trials are the distinct pairs of junctions in the sample.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.annotation import statistics
from hpcvdj.annotation.annotate import classes_in, without_values
from hpcvdj.annotation.judged import Judged
from hpcvdj.annotation.settings import AnnotationSettings
from hpcvdj.annotation.statistics import HitKappa
from hpcvdj.annotation.union import Places, Union
from hpcvdj.chance.clonotypes import distinct_junctions
from hpcvdj.chance.p_values import Counts, Floats, benjamini_hochberg
from hpcvdj.chance.parts import Part
from hpcvdj.chance.settings import ClonotypeChoice
from hpcvdj.errors import log, option
from hpcvdj.kernels.distinct import distinct
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.databases import Records
from hpcvdj.repertoires.genes import amino_acids, by_gene, kinds_of
from hpcvdj.repertoires.junctions import Junctions

Pair = tuple[int, int]
"""A centre of the first chain, and one of the second."""


@dataclass(frozen=True)
class Chains:
    """One chain of each cell; -1 for a cell without the chain.

    junction  int64 [cells]: the number of the distinct junction with its genes
    kind      int64 [cells]: the class of the union; -1 if it has none
    member    int64 [cells]: the member of the union; -1 if it has none
    """

    junction: Counts
    kind: Counts
    member: Counts


@dataclass(frozen=True)
class PairedAnnotation:
    """The hits and epitopes of cells with both chains.

    hits       pyarrow, a row for each distinct pair of junctions that is a hit, the least probable first
    epitopes   pyarrow, a row for each epitope that has pairs, by p-value
    hit_of     int64 [cells]: the row of `hits`; -1 if the cell is no hit
    both       bool [cells]: whether the cell has both chains
    trials     number of distinct pairs of junctions
    kappa, dispersion, passed   as of `annotate`; if decoys fail, q-values and false discovery rates are null
    """

    hits: pa.Table
    epitopes: pa.Table
    hit_of: Counts
    both: NDArray[np.bool_]
    trials: int
    kappa: HitKappa
    dispersion: float
    passed: bool | None


def chains_of(junctions: Junctions, cells: int, model: Model, union: Union, choice: ClonotypeChoice) -> Chains:
    """Match the chains of cells, which are the rows of a table, with a union.

    choice  which junctions take part; a cell has no chain if its junction does not
    """
    repertoire, order = by_gene(junctions.repertoire, model)
    reads = None if junctions.reads is None else junctions.reads[order]
    # Distinct junctions are in the order of groups.
    distinct = distinct_junctions(Part(repertoire, np.zeros(len(order)), None, reads), errors=choice.likely_errors)
    pair = kinds_of(repertoire)
    letters, lengths = amino_acids(repertoire, np.arange(len(repertoire)))
    _, junction = groups(repertoire.words, repertoire.lengths.astype(np.int64), pair)
    junction = np.where(distinct.kept(choice.min_reads)[junction], junction, -1)
    kind = classes_in(union, repertoire.pairs)[pair]
    numbers = np.full((3, cells), -1, dtype=np.int64)
    numbers[:, junctions.row[order]] = junction, kind, union.find(kind, letters, lengths)
    return Chains(*numbers)


class _Side:
    """The balls of a chain.

    p     float64 [members]: probability among productive junctions of the class
    kind  int64 [centres]: the class
    mass  float64 [centres]: the probability of the ball
    """

    def __init__(self, judged: Judged) -> None:
        self.union, self.kind = judged.union, judged.union.centres.kind
        self.p = np.where(judged.usable, judged.p.given, 0.0)
        self._member = self.union.linked[np.argsort(self.union.centre, kind="stable")]
        self._begins = np.concatenate([[0], np.cumsum(np.bincount(self.union.centre, minlength=len(self.kind)))])
        self.mass = self.union.by_centre(self.p)

    def ball(self, centre: int) -> Places:
        """The members of the ball of a centre, ascending."""
        return self._member[self._begins[centre] : self._begins[centre + 1]]

    def masses(self, centres: Sequence[int]) -> dict[int, float]:
        """The probability of the union of the balls of centres, by class."""
        if len(centres) == 1:
            return {int(self.kind[centres[0]]): float(self.mass[centres[0]])}
        members = distinct(np.concatenate([self.ball(centre) for centre in centres]))
        sums = np.bincount(self.union.kind[members], self.p[members])
        return {kind: float(sums[kind]) for kind in np.flatnonzero(sums).tolist()}

    def parts(self, centres: Sequence[int]) -> list[tuple[list[int], float]]:
        """The union of the balls of centres, divided by the centres that a member is near; and the probabilities."""
        balls = [self.ball(centre) for centre in centres]
        members, index = np.unique(np.concatenate(balls), return_inverse=True)
        # Sums of random numbers identify sets of centres; two sets have the same sum with a probability of about 1e-19.
        keys = np.random.default_rng(0).integers(1, 1 << 63, len(centres), dtype=np.uint64)
        sets = np.zeros(len(members), dtype=np.uint64)
        np.add.at(sets, index, np.repeat(keys, [len(ball) for ball in balls]))
        _, first, part = np.unique(sets, return_index=True, return_inverse=True)
        masses = np.bincount(part, self.p[members]).tolist()
        wanted = set(centres)
        return [(sorted(wanted.intersection(self.union.centres_of(member))), mass)
                for member, mass in zip(members[first].tolist(), masses, strict=True)]  # fmt: skip


@dataclass(frozen=True)
class _Epitope:
    """Epitopes with the same pairs, and whether all their records are decoys."""

    name: str
    pairs: list[Pair]
    decoy: bool


def _epitopes(
    records: Records, sides: Sequence[_Side], decoys: Sequence[str]
) -> tuple[list[_Epitope], dict[Pair, str]]:
    """The epitopes with pairs, and the rows of the database that have each pair.

    A receptor is a row with both chains, or all rows with the same `receptor_id`.
    """
    wanted = {name.lower() for name in decoys}
    taking_part = {row for side in sides for rows in side.union.centres.rows for row in rows.split(";")}
    of_row: dict[str, list[tuple[str | int, str]]] = defaultdict(list)
    is_decoy: dict[str, bool] = defaultdict(lambda: bool(wanted))
    for record in records.records:
        if (row := str(record.row + 1)) in taking_part:
            of_row[row] += product(record.receptor_id or [record.row], [record.epitope])
            is_decoy[record.epitope] &= not wanted.isdisjoint(record.targets)
    receptors: list[dict[tuple[str | int, str], dict[int, str]]] = [defaultdict(dict), defaultdict(dict)]
    for side, centres_of in zip(sides, receptors, strict=True):
        for centre, rows in enumerate(side.union.centres.rows):
            for row in rows.split(";"):
                for receptor in of_row[row]:
                    centres_of[receptor][centre] = row
    of_name: dict[str, set[Pair]] = defaultdict(set)
    rows_of: dict[Pair, dict[str, None]] = defaultdict(dict)
    for key in receptors[0].keys() & receptors[1].keys():
        for (a, row_a), (b, row_b) in product(*(centres_of[key].items() for centres_of in receptors)):
            of_name[key[1]].add((a, b))
            rows_of[a, b] |= dict.fromkeys((row_a, row_b))
    alike: dict[frozenset[Pair], list[str]] = defaultdict(list)
    for name in sorted(of_name):
        alike[frozenset(of_name[name])].append(name)
    epitopes = [_Epitope(";".join(names), sorted(pairs), all(is_decoy[name] for name in names))
                for pairs, names in alike.items()]  # fmt: skip
    return epitopes, {pair: ";".join(sorted(rows, key=int)) for pair, rows in rows_of.items()}


def _expected(pairs: Sequence[Pair], sides: Sequence[_Side], n: Counts) -> float:
    """The sum of n p(a) p(b) over the union of A × B, in which each pair of sequences counts once."""
    partners: dict[int, set[int]] = defaultdict(set)
    for a, b in pairs:
        partners[a].add(b)
    of_partners: dict[tuple[int, ...], dict[int, float]] = {}
    total = 0.0
    for centres, mass in sides[0].parts(sorted(partners)):
        others = tuple(sorted(set().union(*(partners[centre] for centre in centres))))
        if others not in of_partners:
            of_partners[others] = sides[1].masses(others)
        kind = sides[0].kind[centres[0]]
        total += mass * sum(int(n[kind, kind_b]) * mass_b for kind_b, mass_b in of_partners[others].items())
    return total


def annotate_pairs(
    chains: tuple[Chains, Chains], judged: tuple[Judged, Judged], records: Records, settings: AnnotationSettings
) -> PairedAnnotation:
    """Test the epitopes that have pairs of records; κ is that of the settings, of decoys, or 1.

    judged  which members of the unions are tested
    """
    sides = [_Side(chain) for chain in judged]
    epitopes, rows_of = _epitopes(records, sides, settings.decoys)
    if not epitopes:
        log.warning("pairs: no receptor of the database has both chains among the records that take part, so no cell "
                    "is like one")  # fmt: skip
    both = (chains[0].junction >= 0) & (chains[1].junction >= 0)
    cells = np.flatnonzero(both)
    keys = chains[0].junction[cells] << 32 | chains[1].junction[cells]
    _, first, trial = np.unique(keys, return_index=True, return_inverse=True)
    kinds, members = ([getattr(chain, name)[cells[first]] for chain in chains] for name in ("kind", "member"))
    for of_chain, member in zip(judged, members, strict=True):
        found = np.flatnonzero(member >= 0)
        tested, _ = of_chain.tested(member[found])
        member[np.delete(found, tested)] = -1
    n = np.zeros([len(side.union.centres.classes) for side in sides], dtype=np.int64)
    of_records = (kinds[0] >= 0) & (kinds[1] >= 0)
    np.add.at(n, (kinds[0][of_records], kinds[1][of_records]), 1)
    of_pair: dict[Pair, list[int]] = defaultdict(list)
    for number, epitope in enumerate(epitopes):
        for pair in epitope.pairs:
            of_pair[pair].append(number)
    alone = {(a, b): float(n[sides[0].kind[a], sides[1].kind[b]] * sides[0].mass[a] * sides[1].mass[b])
             for a, b in of_pair}  # fmt: skip
    near: dict[int, list[Pair]] = {}
    for row in np.flatnonzero((members[0] >= 0) & (members[1] >= 0)).tolist():
        centres = (side.union.centres_of(int(member[row])) for side, member in zip(sides, members, strict=True))
        if pairs := [pair for pair in product(*centres) if pair in of_pair]:
            near[row] = sorted(pairs, key=lambda pair: (alone[pair], pair))
    k = np.zeros(len(epitopes), dtype=np.int64)
    for pairs in near.values():
        k[sorted({number for pair in pairs for number in of_pair[pair]})] += 1
    mean = np.array([_expected(epitope.pairs, sides, n) for epitope in epitopes])
    decoy = np.array([epitope.decoy for epitope in epitopes], dtype=bool)
    kappa = _kappa(int(k[decoy].sum()), float(mean[decoy].sum()), settings)
    expected = kappa.value * mean
    phi = statistics.dispersion(k, expected, decoy)
    table = _epitope_table(epitopes, k, expected, phi, kappa)
    hits, row_of = _hits(near, sides, epitopes, of_pair, rows_of, {pair: kappa.value * alone[pair] for pair in alone})
    called = [(own[name].to_numpy() <= settings.max_q, own["decoy"].to_numpy())
              for own, name in ((table, "q_value"), (hits, "fdr"))]  # fmt: skip
    numbers = [(int(each.sum()), int((each & of_decoy).sum())) for each, of_decoy in called]
    passed = None
    if table["decoy"].to_numpy().any():
        passed = all(statistics.decoys_pass(number, wrong, settings.max_q) for number, wrong in numbers)
    if passed is False:
        log.warning(
            "pairs: %d epitopes and %d hits of decoys would be called, so nothing is; use a model of this protocol, or "
            "give %s", numbers[0][1], numbers[1][1], option("kappa"),
        )  # fmt: skip
        table, hits = without_values(table, "q_value"), without_values(hits, "fdr")
    hit_of = np.full(len(both), -1, dtype=np.int64)
    hit_of[cells] = [row_of.get(row, -1) for row in trial.tolist()]
    return PairedAnnotation(hits, table, hit_of, both, len(first), kappa, phi, passed)


def _kappa(hits: int, expected: float, settings: AnnotationSettings) -> HitKappa:
    """κ from users or decoys, of which there are so many hits; 1 if these are too few."""
    if settings.kappa is not None:
        return HitKappa(settings.kappa)
    return statistics.kappa_of_ratio(hits, expected, "decoys") or HitKappa(1.0, source="none")


def _epitope_table(epitopes: Sequence[_Epitope], k: Counts, expected: Floats, phi: float, kappa: HitKappa) -> pa.Table:
    """A row for each epitope that chance can hit, the smallest p-value first."""
    has = np.flatnonzero(expected > 0)
    p_values, _ = statistics.tail(k[has], expected[has], phi, [None] * len(has), kappa.doubt(phi))
    order = np.lexsort((-expected[has], p_values))
    rows = has[order]
    return pa.table({
        "epitope": pa.array([epitopes[row].name for row in rows], pa.string()),
        "pairs": pa.array([len(epitopes[row].pairs) for row in rows], pa.int64()),
        "decoy": pa.array([epitopes[row].decoy for row in rows], pa.bool_()),
        **statistics.ratio_columns(k[rows], expected[rows]), "p_value": p_values[order],
        "q_value": benjamini_hochberg(p_values, len(p_values))[order],
    })  # fmt: skip


def _hits(
    near: Mapping[int, list[Pair]], sides: Sequence[_Side], epitopes: Sequence[_Epitope],
    of_pair: Mapping[Pair, list[int]], rows_of: Mapping[Pair, str], expected: Mapping[Pair, float],
) -> tuple[pa.Table, dict[int, int]]:  # fmt: skip
    """A row for each hit, with the record that chance hits least, and the row of each trial that is a hit."""
    rows = sorted(near, key=lambda row: (expected[near[row][0]], near[row][0], row))
    best = [near[row][0] for row in rows]
    means = np.array([expected[pair] for pair in best])
    # The sum over records counts a pair of sequences once for each record near it, so rates are rather too large.
    every = np.array(list(expected.values()))
    texts = [side.union.centres.texts for side in sides]
    table = pa.table({
        "epitope": pa.array([";".join(epitopes[k].name for k in of_pair[pair]) for pair in best], pa.string()),
        "record": pa.array([f"{texts[0][a]}+{texts[1][b]}" for a, b in best], pa.string()),
        "database_rows": pa.array([rows_of[pair] for pair in best], pa.string()),
        "decoy": pa.array([all(epitopes[k].decoy for k in of_pair[pair]) for pair in best], pa.bool_()),
        "expected": means, "fdr": statistics.false_discovery_rates(means, every, every) if len(best) else means,
    })  # fmt: skip
    return table, {row: number for number, row in enumerate(rows)}
