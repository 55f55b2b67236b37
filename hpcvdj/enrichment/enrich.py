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

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.chance import check
from hpcvdj.chance.clonotypes import Clonotypes
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.chance.p_values import Counts, Estimate, Floats, benjamini_hochberg, poisson_tail, quantiles, randomised
from hpcvdj.chance.shown import Shown
from hpcvdj.enrichment import statistics
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.kernels.threads import taken
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_of
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.repertoires.genes import gene_columns, has_nucleotides, letter_words, stacked, without_genes
from hpcvdj.runs.run import Run
from hpcvdj.values.compute import count_in_memory

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

    def __repr__(self) -> str:
        """The numbers of clonotypes, hits and clusters."""
        return f"<Enrichment of {self.clonotypes:,} clonotypes: {self.hits:,} hits in {self.clusters:,} clusters>"


def enrich(
    clonotypes: Clonotypes | None,
    model: Model,
    settings: EnrichmentSettings,
    run: Run,
    backend: Backend,
    fit: ModelFit = UNCHECKED,
) -> Enrichment | None:
    """Test the clonotypes of root against a model; None on the other ranks, which compute probabilities.

    fit  how the model fits the table: genes that the model makes wrongly and calls that contradict the bases are not
         tested
    """
    # Root counts all neighbours.  It takes a tenth of the processor time of their probabilities.
    counted = run.on_root(_counted, clonotypes, settings, backend)
    values = _probabilities(clonotypes, counted[-1] if counted is not None else None, model, settings, run, backend)
    return run.on_root(_against_model, clonotypes, counted, values, model, settings, fit)


def _against_model(
    clonotypes: Clonotypes,
    counted: tuple[Counts, ...],
    values: Floats,
    model: Model,
    settings: EnrichmentSettings,
    fit: ModelFit,
) -> Enrichment:
    """Test clonotypes against a model.

    counted  as `_counted` returns it
    values   float64 [rows, 3]: the probabilities of its rows, as `_probabilities` returns them
    """
    size, neighbours, tested, drawn, rows = counted
    by_class = productive_of(model, clonotypes.classes)
    # The other junctions are distinct from the clonotype's own.
    others = values[:, 2] - values[:, 0]
    # If the model cannot make the neighbourhood or the genes, the probability 0 is a fault of the model, no evidence.
    possible = (others > ROUNDING * values[:, 2]) & (by_class[clonotypes.kind[rows]] > 0)
    sound = without_genes(clonotypes.repertoire, fit.broken)[rows]
    not_tested = {
        check.IMPOSSIBLE: int(np.isin(tested, rows[sound & ~possible]).sum()),
        check.BROKEN_GENE: int(np.isin(tested, rows[~sound]).sum()),
    }
    rows, values = rows[possible & sound], values[possible & sound]
    tested, drawn = tested[np.isin(tested, rows)], drawn[np.isin(drawn, rows)]
    factor = model.selection if settings.selection and settings.genes == "call" else None
    relative = np.ones(len(rows)) if factor is None else _relative(clonotypes, rows, factor)
    expected = (size[rows] - 1) * others[possible & sound] / by_class[clonotypes.kind[rows]] * relative
    at = np.searchsorted(rows, drawn)
    common, estimate, by_length = settings.kappa, None, dict[int, float]()
    if common is None:
        estimate, by_length = statistics.selection_by_length(
            clonotypes.lengths[drawn], neighbours[drawn], expected[at], clonotypes.variants[drawn],
            len(drawn) / len(neighbours),
        )  # fmt: skip
        common = estimate.value
    factors = np.array([by_length.get(length, common) for length in range(clonotypes.letters.shape[1] + 1)])[
        clonotypes.lengths[rows]
    ]
    expected *= factors
    p_values = poisson_tail(neighbours[rows], expected)
    more = poisson_tail(neighbours[drawn] + 1, expected[at])
    qq = quantiles(randomised(p_values[at], more, settings.seed))
    # A call that contradicts the amino acids makes a neighbourhood improbable, so small p-values are checked for it.
    small = tested[p_values[np.searchsorted(rows, tested)] <= settings.max_q]
    if fit.keep_misfits or settings.genes == "any":
        small = small[:0]
    side = check.contradicting(clonotypes.repertoire.subset(small), model, PGEN_COLUMNS[1:2])
    tested = tested[~np.isin(tested, small[side > 0])]
    not_tested |= check.by_reason(side)
    at = np.searchsorted(rows, tested)
    return _tested(
        clonotypes, tested, settings,
        {
            "neighbours": neighbours[tested],
            "class_size": size[tested],
            "pgen_itself": values[at, 0],
            "pgen_aa": values[at, 1],
            "pgen_ball": values[at, 2],
            "p_productive_vj": by_class[clonotypes.kind[tested]],
            **({} if factor is None else {"q_factor": relative[at]}),
            "kappa": factors[at],
            "expected": expected[at],
            "p_value": p_values[at],
        },
        kappa=common, estimate=estimate, by_length=by_length, qq=qq, not_tested=not_tested,
    )  # fmt: skip


def enrich_over(
    clonotypes: Clonotypes, controls: Sequence[Clonotypes], settings: EnrichmentSettings, backend: Backend
) -> Enrichment:
    """Test clonotypes against those of other people, the controls, in place of a model (as TCRNET does).

    A clonotype that several controls have counts for each of them.  The controls have the selection of people, so there
    is no κ.  The test compares two rates, so it takes into account that a small control may lack neighbours by chance.
    """
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
        shared = (weights[group, 1] - before >= clonotypes.variants).mean()
        if shared >= ITSELF and len(clonotypes) >= FEWEST_TO_TELL:
            raise InputError(
                f"the control has {shared:.0%} of the clonotypes that are tested, so it has the individual itself; "
                "give a control of other people"
            )
    kind, variants = kinds[len(clonotypes) :], variants[len(clonotypes) :]
    counts = _degrees_on(backend)(letters[rows], lengths[rows], kinds[rows], weights)[group]
    neighbours, of_control = counts[:, 0] - 1, counts[:, 1]
    size = _class_sizes(clonotypes.kind, clonotypes.variants, len(clonotypes.classes))[clonotypes.kind]
    size_of_control = _class_sizes(kind, variants, len(clonotypes.classes))[clonotypes.kind]
    sizes = size - 1, of_control, size_of_control
    at_least, more = (statistics.two_rates_tail(neighbours + k, *sizes) for k in (0, 1))
    drawn = np.intersect1d(_drawn(clonotypes, settings), np.flatnonzero(size_of_control))
    qq = quantiles(randomised(at_least[drawn], more[drawn], settings.seed))
    tested = np.flatnonzero(neighbours >= settings.min_neighbours)
    rate = of_control[tested] / np.maximum(size_of_control[tested], 1)
    return _tested(
        clonotypes, tested, settings,
        {
            "neighbours": neighbours[tested],
            "class_size": size[tested],
            "control_neighbours": of_control[tested],
            "control_size": size_of_control[tested],
            "expected": (size[tested] - 1) * rate,
            "p_value": at_least[tested],
        },
        qq=qq,
    )  # fmt: skip


def _degrees_on(backend: Backend) -> Any:
    """The function that counts neighbours on a backend."""
    return resolve_name(f"hpcvdj.kernels.neighbours.degrees_{backend.name}.degrees")


def _counted(clonotypes: Clonotypes, settings: EnrichmentSettings, backend: Backend) -> tuple[Counts, ...]:
    """The class size and the neighbours of each clonotype; the clonotypes to test, those drawn at random, and both.

    Each list of clonotypes ascends.
    """
    with ThreadPoolExecutor(1) as thread:
        drawing = thread.submit(_drawn, clonotypes, settings)
        counts = _degrees_on(backend)(
            clonotypes.letters, clonotypes.lengths, clonotypes.kind, clonotypes.variants[:, np.newaxis]
        )[:, 0]
    size = _class_sizes(clonotypes.kind, clonotypes.variants, len(clonotypes.classes))[clonotypes.kind]
    tested, drawn = np.flatnonzero(counts - 1 >= settings.min_neighbours), drawing.result()
    # Much faster than np.union1d.
    wanted = np.zeros(len(counts), dtype=bool)
    wanted[tested] = wanted[drawn] = True
    return size, counts - 1, tested, drawn, np.flatnonzero(wanted)


def _drawn(clonotypes: Clonotypes, settings: EnrichmentSettings) -> Counts:
    """Draw clonotypes at random; ascending."""
    return np.sort(np.random.default_rng(settings.seed).permutation(len(clonotypes))[:SAMPLE])


def _class_sizes(kind: Counts, variants: Counts, classes: int) -> Counts:
    """The number of distinct nucleotide junctions of each class."""
    return np.bincount(kind, variants, classes).astype(np.int64)


def _probabilities(
    clonotypes: Clonotypes | None,
    rows: Counts | None,
    model: Model,
    settings: EnrichmentSettings,
    run: Run,
    backend: Backend,
) -> Floats | None:
    """Probabilities of the clonotypes `rows`, float64 [rows, 3], on root; None on the other ranks.

    The columns are P of the junction that stands for the clonotype (of its amino acids, if no more is known), P of its
    amino acids, and P of all amino acids within one exchange.
    """
    of_root = clonotypes.repertoire.subset(rows) if clonotypes is not None and rows is not None else None
    repertoire = run.broadcast(of_root)
    columns = PGEN_COLUMNS if has_nucleotides(repertoire) else PGEN_COLUMNS[1:]
    config = PgenConfig(columns, backend=settings.backend, strict_binding=settings.strict_binding)
    values = count_in_memory(PgenProblem(repertoire, model, columns), config, run, backend)
    return None if values is None else values[:, [0, -2, -1]]


def _relative(clonotypes: Clonotypes, rows: Counts, selection: SelectionFactor) -> Floats:
    """The selection factor of the clonotypes `rows`, relative to its mean."""
    v, j = ([pair[k].allele for pair in clonotypes.classes] for k in (0, 1))
    kind = clonotypes.kind[rows]
    logs = selection.log_factor(v, j, kind, clonotypes.letters[rows], clonotypes.lengths[rows])
    return np.exp(selection.relative(logs, v, j, kind))


def _tested(
    clonotypes: Clonotypes, tested: Counts, settings: EnrichmentSettings, columns: dict[str, Any], **chance: Any
) -> Enrichment:
    """Add q-values, clusters of hits, genes and sequences to the columns of tested clonotypes; sort by p-value.

    chance  further fields of the Enrichment, such as `kappa` and `qq`
    """
    order = np.argsort(columns["p_value"], kind="stable")
    tested, columns = taken(tested, order), {name: taken(values, order) for name, values in columns.items()}
    q = benjamini_hochberg(columns["p_value"], len(clonotypes))
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
    return Enrichment(table, len(clonotypes), len(hits), int(cluster.max(initial=0)), not_available=missing, **chance)
