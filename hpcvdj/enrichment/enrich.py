"""Neighbourhood enrichment: clonotypes with more neighbours of their V and J than recombination and selection explain.

The neighbours of a clonotype are the nucleotide junctions of its V and J genes whose amino acids differ from it in at
most one place, itself left out.  Of n junctions of the class, the others are within one exchange with probability
P(ball) = Σ Pgen(σ'; V, J) / P(productive; V, J), so their number is Poisson with mean λ = (n - 1) κ P(ball).  κ, by
which selection makes neighbourhoods denser than recombination alone, comes from the clonotypes without neighbours, for
each length.  After ALICE (Pogorelyy et al., PLoS Biology 17:e3000314, 2019), with three differences: the probability
is conditional on V and J, the clonotype itself is not counted, and q-values are over all clonotypes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.counting.compute import count_in_memory, shared_repertoire
from hpcvdj.counting.config import PgenConfig
from hpcvdj.enrichment import statistics
from hpcvdj.enrichment.clonotypes import Clonotypes, Counts
from hpcvdj.enrichment.statistics import Floats
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import AUTO
from hpcvdj.kernels.neighbours.degrees_cpu import degrees
from hpcvdj.kernels.neighbours.equal import grouped
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_choice
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem
from hpcvdj.repertoires.genes import packed
from hpcvdj.runs.run import Run

FEWEST_NEIGHBOURS = 2
"""By default, clonotypes with fewer neighbours are not tested: their p-value counts as 1."""

SAMPLE = 20_000
"""Clonotypes drawn to estimate κ."""

COLUMNS = PGEN_COLUMNS[1:]


@dataclass(frozen=True)
class Settings:
    """How neighbourhoods are tested.

    kappa              the selection factor; None estimates it, for each length
    min_neighbours  clonotypes with fewer are not tested
    max_q              the false discovery rate of hits, which form clusters
    seed               of the clonotypes that are drawn to estimate κ
    backend            where probabilities are computed
    strict_binding     two ranks on one GPU are an error, not a warning
    """

    kappa: float | None = None
    min_neighbours: int = FEWEST_NEIGHBOURS
    max_q: float = 0.001
    seed: int = 0
    backend: str = AUTO
    strict_binding: bool = False

    def __post_init__(self) -> None:
        if self.kappa is not None and not self.kappa > 0:
            raise InputError(f"--kappa {self.kappa}: give a number above 0")
        if self.min_neighbours < 1:
            raise InputError(f"--min-neighbours {self.min_neighbours}: give at least 1")
        if not 0 < self.max_q < 1:
            raise InputError(f"--max-q {self.max_q}: give a number between 0 and 1")


@dataclass(frozen=True)
class Enrichment:
    """Tested clonotypes.

    table       pyarrow, a row for each, by p-value: see docs/enrich.md for the columns
    clonotypes  how many there are in all: the family of the q-values
    kappa       the selection factor of all lengths; with a control, None
    by_length   that of each length that has enough clonotypes
    hits        clonotypes with a q-value of at most `Settings.max_q`
    clusters    of the hits
    """

    table: pa.Table
    clonotypes: int
    kappa: float | None
    by_length: dict[int, float]
    hits: int
    clusters: int


def enrich(own: Clonotypes | None, model: Model, settings: Settings, run: Run) -> Enrichment | None:
    """Test the clonotypes of root against a model; None on the other ranks, which compute probabilities."""
    size, neighbours, tested, drawn = run.from_root(lambda: _counted(own, settings))
    rows = np.union1d(tested, drawn)
    values = _probabilities(own, rows, model, settings, run)
    if own is None:
        return None
    assert values is not None
    by_class = _productive(own, model)
    expected = (size[rows] - 1) * values[:, 1] / by_class[own.kind[rows]]
    kappa, by_length = settings.kappa, dict[int, float]()
    if kappa is None:
        at = np.searchsorted(rows, drawn)
        kappa, by_length = statistics.selection_by_length(own.lengths[drawn], neighbours[drawn], expected[at])
    at = np.searchsorted(rows, tested)
    factors = np.array([by_length.get(length, kappa) for length in own.lengths[tested].tolist()])
    expected = factors * expected[at]
    return _tested(
        own, tested, settings, kappa, by_length,
        {
            "neighbours": neighbours[tested],
            "class_size": size[tested],
            "pgen_aa": values[at, 0],
            "pgen_ball": values[at, 1],
            "p_productive_vj": by_class[own.kind[tested]],
            "kappa": factors,
            "expected": expected,
            "p_value": statistics.poisson_tail(neighbours[tested], expected),
        },
    )  # fmt: skip


def enrich_over(own: Clonotypes, control: Clonotypes, settings: Settings) -> Enrichment:
    """Test clonotypes against those of a control, of other people, in place of a model (as TCRNET does).

    The control brings its own selection, so there is no κ.  The test is that of two rates, so a control without
    neighbours is no certainty.
    """
    names = {(v.allele, j.allele): kind for kind, (v, j) in enumerate(own.classes)}
    kind = np.array([names.get((v.allele, j.allele), -1) for v, j in control.classes], dtype=np.int64)[control.kind]
    known = kind >= 0
    width = max(own.letters.shape[1], control.letters.shape[1])
    letters = np.concatenate([
        np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (own.letters, control.letters[known])
    ])  # fmt: skip
    lengths = np.concatenate([own.lengths, control.lengths[known]])
    kinds = np.concatenate([own.kind, kind[known]])
    first, group = grouped(packed(letters, lengths, kinds))
    weights = np.zeros((len(first), 2), dtype=np.int64)
    np.add.at(weights[:, 0], group[: len(own)], own.variants)
    np.add.at(weights[:, 1], group[len(own) :], control.variants[known])
    counts = degrees(letters[first], lengths[first], kinds[first], weights)[group[: len(own)]]
    neighbours, of_control = counts[:, 0] - 1, counts[:, 1]
    size = _class_sizes(own.kind, own.variants, len(own.classes))[own.kind]
    size_of_control = _class_sizes(kind[known], control.variants[known], len(own.classes))[own.kind]
    tested = np.flatnonzero(neighbours >= settings.min_neighbours)
    p_values = statistics.two_rates_tail(
        neighbours[tested], size[tested] - 1, of_control[tested], size_of_control[tested]
    )
    rate = of_control[tested] / np.maximum(size_of_control[tested], 1)
    return _tested(
        own, tested, settings, None, {},
        {
            "neighbours": neighbours[tested],
            "class_size": size[tested],
            "control_neighbours": of_control[tested],
            "control_size": size_of_control[tested],
            "expected": (size[tested] - 1) * rate,
            "p_value": p_values,
        },
    )  # fmt: skip


def _counted(own: Clonotypes | None, settings: Settings) -> tuple[Counts, Counts, Counts, Counts]:
    """Of each clonotype the size of its class and its neighbours; those to test, and those to estimate κ from."""
    assert own is not None
    counts = degrees(own.letters, own.lengths, own.kind, own.variants[:, np.newaxis])[:, 0]
    size = _class_sizes(own.kind, own.variants, len(own.classes))[own.kind]
    tested = np.flatnonzero(counts - 1 >= settings.min_neighbours)
    drawn = np.empty(0, dtype=np.int64)
    if settings.kappa is None:
        order = np.random.default_rng(settings.seed).permutation(len(own))
        drawn = np.sort(order[:SAMPLE])
    return size, counts - 1, tested, drawn


def _class_sizes(kind: Counts, variants: Counts, classes: int) -> Counts:
    """Distinct nucleotide junctions of each class."""
    sizes = np.zeros(classes, dtype=np.int64)
    np.add.at(sizes, kind, variants)
    return sizes


def _probabilities(own: Clonotypes | None, rows: Counts, model: Model, settings: Settings, run: Run) -> Floats | None:
    """P of the amino acids of some clonotypes and of all within one exchange, float64 [rows, 2], on root."""
    config = PgenConfig(COLUMNS, backend=settings.backend, strict_binding=settings.strict_binding)
    repertoire = shared_repertoire(own.only(rows) if own is not None else None, run)
    return count_in_memory(PgenProblem(repertoire, model, COLUMNS), config, run)


def _productive(own: Clonotypes, model: Model) -> Floats:
    """P(V, J and productive) of each class."""
    chance = productive_choice(model)
    return np.array([chance[np.ix_(v.places, j.places)].sum() for v, j in own.classes])


def _tested(
    own: Clonotypes, tested: Counts, settings: Settings, kappa: float | None, by_length: dict[int, float],
    columns: dict[str, Any],
) -> Enrichment:  # fmt: skip
    """With q-values, clusters of hits, and what the clonotypes are, by p-value."""
    q = statistics.benjamini_hochberg(columns["p_value"], len(own))
    hits = np.flatnonzero(q <= settings.max_q)
    cluster = np.zeros(len(tested), dtype=np.int64)
    found = tested[hits]
    cluster[hits] = statistics.clusters(own.letters[found], own.lengths[found], own.kind[found])
    order = np.lexsort((np.arange(len(tested)), columns["p_value"]))
    of_class = [(v.allele, j.allele) for v, j in own.classes]
    names = [of_class[kind] for kind in own.kind[tested].tolist()]
    facts: dict[str, Any] = {
        "v_call": [v for v, _ in names],
        "j_call": [j for _, j in names],
        "junction_aa": [own.text(row) for row in tested.tolist()],
        **({} if own.reads is None else {"duplicate_count": own.reads[tested]}),
        "nt_variants": own.variants[tested],
        **columns,
        "q_value": q,
        "cluster": pa.array(cluster, mask=cluster == 0),
    }
    table = pa.table(facts).take(pa.array(order))
    return Enrichment(table, len(own), kappa, by_length, len(hits), int(cluster.max(initial=0)))
