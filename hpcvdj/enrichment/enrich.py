"""Neighbourhood enrichment: clonotypes with more neighbours of their V and J than recombination and selection explain.

The neighbours of a clonotype are the other nucleotide junctions with its V and J genes whose amino acids differ from
its own in at most one position.  The class of V and J has n distinct junctions.  Each of the n - 1 others is within one
exchange of junction σ with probability P(ball) = (Σ Pgen(σ'; V, J) - Pgen(σ; V, J)) / P(productive; V, J), so their
number is Poisson with mean λ = (n - 1) κ P(ball).  The factor κ says how much denser selection makes neighbourhoods
than recombination alone.  It is estimated for each length, from the junctions without neighbours.  If the model has a
selection factor, λ is multiplied by that of the clonotype, scaled to mean 1 over what recombination makes with its
genes, and κ accounts for the rest of selection.

In tables of amino acids only, each clonotype counts as one junction, and σ is its amino acids.

The method follows ALICE (Pogorelyy et al., PLoS Biology 17:e3000314, 2019), with three differences: the probability is
conditional on V and J, the clonotype itself is not counted, and q-values are over all clonotypes.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.chance import check
from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.chance.clonotypes import Clonotypes
from hpcvdj.chance.draws import probabilities_of_ranks
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.chance.p_values import (
    Counts,
    Estimate,
    Floats,
    ascending,
    benjamini_hochberg,
    poisson_tail,
    quantiles,
    randomised,
    two_rates_tail,
)  # fmt: skip
from hpcvdj.chance.shown import Shown
from hpcvdj.enrichment import statistics
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.kernels.threads import by_parts, taken
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_of
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.repertoires.genes import gene_columns, letter_words, stacked, without_genes
from hpcvdj.repertoires.tally import Tally
from hpcvdj.runs.run import Run

WITHOUT_NUCLEOTIDES = ("likely sequencing errors", "nucleotide variants")
"""What cannot be known if only the amino acids of clonotypes are known."""

SAMPLE = 20_000
"""How many clonotypes are drawn to estimate κ and to compare p-values with uniform ones."""

ROUNDING = 1e-12
"""If the neighbours have less than this part of the probability of a neighbourhood, it is only rounding error."""

ITSELF, FEWEST_TO_TELL = 0.95, 20
"""A control that has this share of the clonotypes, of at least this many, contains the individual that is tested.
Controls of other people, even of many in one table, have a small part of the clonotypes."""


@dataclass(frozen=True)
class ReadOnce:
    """A sample in which most junctions have one read, as many sequencing errors do.

    junctions     how many have one read, without likely sequencing errors
    hits_without  hits among the other junctions, tested by themselves; None if they cannot be tested
    """

    junctions: int
    hits_without: int | None


@dataclass(frozen=True)
class Enrichment(Shown):
    """Tested clonotypes.

    table       pyarrow Table with a row for each, by p-value: see docs/enrich.md for the columns
    clonotypes  number of all clonotypes, tested or not: the family of the q-values
    hits        number of clonotypes with a q-value of at most `EnrichmentSettings.max_q`
    clusters    number of clusters of hits
    kappa       κ of all lengths; None with a control
    estimate    the estimate of κ with its interval; None if the user gave κ, or with a control
    by_length   κ of each length that has enough clonotypes
    qq          quantiles of randomised p-values of clonotypes drawn at random, and those expected without enrichment:
                see `hpcvdj.chance.p_values.quantiles`
    not_tested  number of clonotypes that have enough neighbours and are not tested, by the reason
    read_once   set if most junctions have one read and `min_reads` is 1; else None
    not_available  what is not known without nucleotides; empty with them
    rows_read   number of rows of the table
    excluded    number of rows that cannot be read
    left_out    number of rows that take no part, by the reason
    junctions   number of distinct junctions that take part
    control     path, SHA-256 and number of rows of each control table that is a file
    clones      the clone sizes of the individual, by the name of its sample; empty without read counts
    tally       what became of the rows of the table, by the reason
    """

    table: pa.Table
    clonotypes: int
    hits: int
    clusters: int
    kappa: float | None = None
    estimate: Estimate | None = None
    by_length: dict[int, float] = field(default_factory=dict)
    qq: dict[str, list[float]] = field(default_factory=dict)
    not_tested: dict[str, int] = field(default_factory=dict)
    read_once: ReadOnce | None = None
    not_available: tuple[str, ...] = ()
    rows_read: int = 0
    excluded: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    junctions: int = 0
    control: list[list[Any]] = field(default_factory=list)
    clones: Mapping[str, CloneSizes] = field(default_factory=dict, repr=False, compare=False)
    tally: Tally | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """The numbers of clonotypes, hits and clusters."""
        return f"<Enrichment of {self.clonotypes:,} clonotypes: {self.hits:,} hits in {self.clusters:,} clusters>"


@dataclass(frozen=True)
class Places:
    """The clonotypes of this rank among those of all ranks.

    number  int64 [clonotypes]: where each is, in the order of class, length and letters
    size    int64 [clonotypes]: the number of distinct junctions of its class
    total   the number of clonotypes
    """

    number: Counts
    size: Counts
    total: int

    @staticmethod
    def of(clonotypes: Clonotypes, run: Run) -> "Places":
        size = _class_sizes(clonotypes.kind, clonotypes.variants, len(clonotypes.classes), run)[clonotypes.kind]
        number = np.arange(len(clonotypes))
        if run.ranks == 1:
            return Places(number, size, len(number))
        # The clonotypes of a class and length are all on one rank.
        width = 1 + int(run.slowest(clonotypes.lengths.max(initial=0))[0])
        block = clonotypes.kind * width + clonotypes.lengths
        of_rank = np.bincount(block, minlength=len(clonotypes.classes) * width)
        ends, ends_of_rank = np.cumsum(run.sum(of_rank)), np.cumsum(of_rank)
        return Places(number + (ends - ends_of_rank)[block], size, int(ends[-1]))


def enrich(
    clonotypes: Clonotypes,
    model: Model,
    settings: EnrichmentSettings,
    run: Run,
    backend: Backend,
    fit: ModelFit = UNCHECKED,
) -> Enrichment | None:
    """Test the clonotypes of all ranks against a model, on root; None on the other ranks.

    fit  how the model fits the table: genes that the model makes wrongly and calls that contradict the bases are not
         tested
    """
    places = Places.of(clonotypes, run)
    neighbours, tested, drawn, rows = _counted(clonotypes, places, settings, backend)
    values, by_class = _probabilities(clonotypes, rows, model, run, backend), productive_of(model, clonotypes.classes)
    # The other junctions are distinct from the clonotype's own.
    others = values[:, 2] - values[:, 0]
    # If the model cannot make the neighbourhood or the genes, the probability 0 is a fault of the model, no evidence.
    possible = (others > ROUNDING * values[:, 2]) & (by_class[clonotypes.kind[rows]] > 0)
    sound = without_genes(clonotypes.repertoire, fit.broken)[rows]
    is_tested = _is_among(rows, tested, len(clonotypes))
    not_tested = {
        check.IMPOSSIBLE: int((is_tested & sound & ~possible).sum()),
        check.BROKEN_GENE: int((is_tested & ~sound).sum()),
    }
    kept = possible & sound
    rows, values, is_tested = rows[kept], values[kept], is_tested[kept]
    tested, drawn = rows[is_tested], drawn[_is_among(drawn, rows, len(clonotypes))]
    factor = model.selection if settings.selection and settings.genes == "call" else None
    relative = np.ones(len(rows)) if factor is None else _relative(clonotypes, rows, factor)
    expected = (places.size[rows] - 1) * others[kept] / by_class[clonotypes.kind[rows]] * relative
    at = np.searchsorted(rows, drawn)
    of_drawn = clonotypes.lengths[drawn], neighbours[drawn], expected[at], clonotypes.variants[drawn]

    def selection(
        lengths: Counts, number: Counts, expected: Floats, junctions: Counts
    ) -> tuple[float, Estimate | None, dict[int, float]]:
        if settings.kappa is not None:
            return settings.kappa, None, {}
        share = len(lengths) / places.total
        estimate, by_length = statistics.selection_by_length(lengths, number, expected, junctions, share)
        return estimate.value, estimate, by_length

    common, estimate, by_length = run.from_root(selection, *_in_order(places.number[drawn], of_drawn, run))
    factors = np.array([by_length.get(length, common) for length in range(clonotypes.letters.shape[1] + 1)])[
        clonotypes.lengths[rows]
    ]
    expected *= factors
    p_values = by_parts(poisson_tail, neighbours[rows], expected)
    more = poisson_tail(neighbours[drawn] + 1, expected[at])
    qq = _quantiles(places.number[drawn], (p_values[at], more), settings, run)
    # A call that contradicts the amino acids makes a neighbourhood improbable, so small p-values are checked for it.
    small = tested[p_values[is_tested] <= settings.max_q]
    if fit.keep_misfits or settings.genes == "any":
        small = small[:0]
    side = check.contradicting(clonotypes.repertoire.subset(small), model, PGEN_COLUMNS[1:2])
    at = np.flatnonzero(is_tested & ~_is_among(rows, small[side > 0], len(clonotypes)))
    tested = rows[at]
    not_tested |= check.by_reason(side)
    return _tested(
        clonotypes, tested, places.total, settings, run,
        {
            "neighbours": neighbours[tested],
            "class_size": places.size[tested],
            "pgen_itself": values[at, 0],
            "pgen_aa": values[at, 1],
            "pgen_ball": values[at, 2],
            "p_productive_vj": by_class[clonotypes.kind[tested]],
            **({} if factor is None else {"q_factor": relative[at]}),
            "kappa": factors[at],
            "expected": expected[at],
            "p_value": p_values[at],
        },
        kappa=common, estimate=estimate, by_length=by_length, qq=qq, not_tested=_added(not_tested, run),
    )  # fmt: skip


def enrich_over(
    clonotypes: Clonotypes, controls: Sequence[Clonotypes], settings: EnrichmentSettings, run: Run, backend: Backend
) -> Enrichment | None:
    """Test clonotypes against those of other people, the controls, in place of a model (as TCRNET does).

    A clonotype that several controls have counts for each of them.  The controls have the selection of people, so there
    is no κ.  The test compares two rates, so it takes into account that a small control may lack neighbours by chance.
    Root returns the result, other ranks return None.
    """
    places = Places.of(clonotypes, run)
    names = {(v.allele, j.allele): kind for kind, (v, j) in enumerate(clonotypes.classes)}
    people = [(clonotypes.letters, clonotypes.lengths, clonotypes.kind, clonotypes.variants)]
    for control in controls:
        kind = np.array([names.get((v.allele, j.allele), -1) for v, j in control.classes], dtype=np.int64)[control.kind]
        known = kind >= 0
        people.append((control.letters[known], control.lengths[known], kind[known], control.variants[known]))
    of_letters, *others = zip(*people, strict=True)
    letters, (lengths, kinds, variants) = stacked(of_letters), map(np.concatenate, others)
    rows, group = groups(letter_words(letters), lengths, kinds)
    group, *of_controls = np.split(group, np.cumsum([len(person[1]) for person in people])[:-1])
    weights = np.zeros((len(rows), 2), dtype=np.int64)
    weights[group, 0] = clonotypes.variants
    for of_control, (*_, numbers) in zip(of_controls, people[1:], strict=True):
        before = weights[group, 1]
        weights[of_control, 1] += numbers
        shared = int(run.sum(np.array([(weights[group, 1] - before >= clonotypes.variants).sum()]))[0]) / places.total
        if shared >= ITSELF and places.total >= FEWEST_TO_TELL:
            raise InputError(
                f"the control has {shared:.0%} of the clonotypes that are tested, so it has the individual itself; "
                "give a control of other people"
            ).everywhere()
    counts = _degrees_on(backend)(letters[rows], lengths[rows], kinds[rows], weights)[group]
    neighbours, of_control = counts[:, 0] - 1, counts[:, 1]
    kinds, variants = kinds[len(clonotypes) :], variants[len(clonotypes) :]
    size_of_control = _class_sizes(kinds, variants, len(clonotypes.classes), run)[clonotypes.kind]
    sizes = places.size - 1, of_control, size_of_control
    at_least, more = (by_parts(two_rates_tail, neighbours + k, *sizes) for k in (0, 1))
    drawn = np.intersect1d(_drawn(places, settings), np.flatnonzero(size_of_control))
    qq = _quantiles(places.number[drawn], (at_least[drawn], more[drawn]), settings, run)
    tested = np.flatnonzero(neighbours >= settings.min_neighbours)
    rate = of_control[tested] / np.maximum(size_of_control[tested], 1)
    return _tested(
        clonotypes, tested, places.total, settings, run,
        {
            "neighbours": neighbours[tested],
            "class_size": places.size[tested],
            "control_neighbours": of_control[tested],
            "control_size": size_of_control[tested],
            "expected": (places.size[tested] - 1) * rate,
            "p_value": at_least[tested],
        },
        qq=qq,
    )  # fmt: skip


def _degrees_on(backend: Backend) -> Any:
    """The function that counts neighbours on a backend."""
    return resolve_name(f"hpcvdj.kernels.neighbours.degrees_{backend.name}.degrees")


def _counted(
    clonotypes: Clonotypes, places: Places, settings: EnrichmentSettings, backend: Backend
) -> tuple[Counts, ...]:
    """The neighbours of each clonotype; the clonotypes to test, those drawn at random, and both.

    Each list of clonotypes ascends.
    """
    with ThreadPoolExecutor(1) as thread:
        drawing = thread.submit(_drawn, places, settings)
        counts = _degrees_on(backend)(
            clonotypes.letters, clonotypes.lengths, clonotypes.kind, clonotypes.variants[:, np.newaxis]
        )[:, 0]
    tested, drawn = np.flatnonzero(counts - 1 >= settings.min_neighbours), drawing.result()
    # Much faster than np.union1d.
    wanted = np.zeros(len(counts), dtype=bool)
    wanted[tested] = wanted[drawn] = True
    return counts - 1, tested, drawn, np.flatnonzero(wanted)


def _is_among(rows: Counts, others: Counts, clonotypes: int) -> NDArray[np.bool_]:
    """Which of some clonotypes are among others, bool [rows]."""
    # Much faster than np.isin.
    is_other = np.zeros(clonotypes, dtype=bool)
    is_other[others] = True
    return np.asarray(is_other[rows])


def _drawn(places: Places, settings: EnrichmentSettings) -> Counts:
    """Draw clonotypes of all ranks at random, and return those of this rank; ascending."""
    drawn = np.sort(np.random.default_rng(settings.seed).permutation(places.total)[:SAMPLE])
    # The numbers ascend.
    at = np.searchsorted(places.number, drawn)
    at, drawn = at[at < len(places.number)], drawn[at < len(places.number)]
    return np.asarray(at[places.number[at] == drawn])


def _class_sizes(kind: Counts, variants: Counts, classes: int, run: Run) -> Counts:
    """The number of distinct nucleotide junctions of each class on all ranks."""
    return run.sum(np.bincount(kind, variants, classes).astype(np.int64))


def _in_order(number: Counts, columns: Sequence[NDArray[Any]], run: Run) -> list[NDArray[Any]]:
    """Columns of clonotypes of all ranks, in the order of their numbers, on root; an empty list on the other ranks."""
    gathered = run.gather((number, *columns))
    if gathered is None:
        return []
    number, *of_ranks = map(np.concatenate, zip(*gathered, strict=True))
    return [column[np.argsort(number)] for column in of_ranks]


def _quantiles(
    number: Counts, p_values: Sequence[Floats], settings: EnrichmentSettings, run: Run
) -> dict[str, list[float]]:
    """Quantiles of the randomised p-values of drawn clonotypes, on root.

    p_values  as of `randomised`
    """
    columns = _in_order(number, p_values, run)
    return run.on_root(lambda: quantiles(randomised(columns[0], columns[1], settings.seed))) or {}


def _added(numbers: dict[str, int], run: Run) -> dict[str, int]:
    """Add up numbers of all ranks, on root."""
    gathered = run.gather(numbers) or []
    names = dict.fromkeys(name for part in gathered for name in part)
    return {name: sum(part.get(name, 0) for part in gathered) for name in names}


def _probabilities(clonotypes: Clonotypes, rows: Counts, model: Model, run: Run, backend: Backend) -> Floats:
    """Probabilities of the clonotypes `rows`, float64 [rows, 3].

    The columns are P of the junction that stands for the clonotype (of its amino acids, if no more is known), P of its
    amino acids, and P of all amino acids within one exchange.
    """
    names = PGEN_COLUMNS if clonotypes.nucleotides else PGEN_COLUMNS[1:]
    (values,) = probabilities_of_ranks([clonotypes.repertoire.subset(rows)], model, names, run, backend)
    return values[:, [0, -2, -1]]


def _relative(clonotypes: Clonotypes, rows: Counts, selection: SelectionFactor) -> Floats:
    """The selection factor of the clonotypes `rows`, relative to its mean."""
    v, j = ([pair[k].allele for pair in clonotypes.classes] for k in (0, 1))
    kind = clonotypes.kind[rows]
    logs = selection.log_factor(v, j, kind, clonotypes.letters[rows], clonotypes.lengths[rows])
    return np.exp(selection.relative(logs, v, j, kind))


def _tested(
    clonotypes: Clonotypes, tested: Counts, total: int, settings: EnrichmentSettings, run: Run,
    columns: dict[str, Any], **chance: Any,
) -> Enrichment | None:  # fmt: skip
    """Add q-values, clusters of hits, genes and sequences to the columns of tested clonotypes; sort by p-value.

    tested   clonotypes of this rank; ascending
    total    number of clonotypes of all ranks
    columns  of the tested ones of this rank
    chance   further fields of the Enrichment, such as `kappa` and `qq`

    Root returns the result, other ranks return None.
    """
    joined, gathered = clonotypes.on_root(tested, run), run.gather(columns)
    if joined is None or gathered is None:
        return None
    clonotypes, tested, by_rank = joined
    if run.ranks > 1:
        columns = {name: np.concatenate([part[name] for part in gathered])[by_rank] for name in columns}
    order = ascending(columns["p_value"])
    tested, columns = taken(tested, order), {name: taken(values, order) for name, values in columns.items()}
    q = benjamini_hochberg(columns["p_value"], total)
    is_hit = q <= settings.max_q
    hits, place = np.unique(tested[is_hit], return_inverse=True)
    cluster = np.zeros(len(tested), dtype=np.int64)
    of_hits = statistics.clusters(clonotypes.letters[hits], clonotypes.lengths[hits], clonotypes.kind[hits])
    cluster[is_hit] = of_hits[place]
    table = pa.table({
        **gene_columns(clonotypes.classes, clonotypes.kind[tested]),
        **clonotypes.texts(tested),
        **({} if clonotypes.reads is None else {"duplicate_count": clonotypes.reads[tested]}),
        "nt_variants": clonotypes.variants[tested] if clonotypes.nucleotides else pa.nulls(len(tested), pa.int64()),
        **columns,
        "q_value": q,
        "cluster": pa.array(cluster, mask=cluster == 0),
    })  # fmt: skip
    missing = () if clonotypes.nucleotides else WITHOUT_NUCLEOTIDES
    return Enrichment(table, total, len(hits), int(cluster.max(initial=0)), not_available=missing, **chance)
