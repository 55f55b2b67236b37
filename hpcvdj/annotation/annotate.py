"""Which clonotypes are like receptors of known specificity, and how many of them recombination makes by chance.

A clonotype is a V gene, a J gene and an amino-acid sequence σ.  It is a hit if it lies within one exchange of a record
with its genes.  At least one of n recombinations with these genes makes σ with the probability
π = 1 - (1 - p(σ | V, J))^(κ n).  An epitope has the union of the balls of its records.  Its expected number of hits
is the sum of π over that union: each sequence counts once, however many records it is near.  Its p-value is the
probability of as many hits or more, in which κ is uncertain.  The q-values (Benjamini and Hochberg) are over all
epitopes of all samples.

κ accounts for selection, gene usage and errors of the model.  Decoys estimate it: records of antigens that the donors
cannot have met.  Without decoys, the median of the epitopes estimates it.  Many decoys, or else the epitopes, estimate
the dispersion φ of the numbers of hits, because repertoires have clusters of their own.  If φ is above 1, a p-value is
the larger of those with and without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hpcvdj.annotation import statistics
from hpcvdj.annotation.centres import Class, Epitope, joined
from hpcvdj.annotation.depth import Depth
from hpcvdj.annotation.judged import Judged
from hpcvdj.annotation.settings import AnnotationSettings
from hpcvdj.annotation.statistics import Difference, HitKappa
from hpcvdj.annotation.union import Probabilities, Union
from hpcvdj.chance.clonotypes import Clonotypes
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.chance.p_values import (
    Bools,
    Counts,
    Floats,
    benjamini_hochberg,
    poisson_tail,
    quantiles,
    randomised,
    two_rates_tail,
)  # fmt: skip
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.recombination.models import ANY, Model
from hpcvdj.repertoires.genes import letter_words
from hpcvdj.reports.outputs import DIFFERS, NO_KAPPA

OF_ITSELF = ("given", "decoys", "epitopes")
"""The sources of a κ for which a sample needs no other sample."""

FEWEST_OF_ITSELF = 20.0
"""Hits of decoys that chance must make in a sample whose decoys tell κ, if there are other samples.  Among samples in
which it makes fewer, those with ten hits or more are those with the most by luck."""

FEWEST_SAMPLES = 3
"""Samples from whose records κ of the others can be told, as their median: a single strange one does not decide."""

_TEXTS = {"epitope": "name", "antigen": "antigen", "organism": "organism", "mhc": "mhc"}
"""The columns of tables that describe epitopes, and the fields of `Epitope` that fill them."""


@dataclass(frozen=True)
class Sample:
    """The clonotypes of an individual, matched with a union; genes that need not match are ignored.

    n         float64 [classes of the union]: recombinations with the genes of each
    member    int64 [matched]: the member of the union that each clonotype is
    reads     int64 [matched]: their reads; None if the input does not say
    variants  int64 [matched]: their nucleotide junctions
    size      clonotypes of the individual
    others    those of them with genes that no record has
    several   those of the others whose calls name several genes that do not count as one
    """

    name: str
    n: Floats
    member: Counts
    reads: Counts | None
    variants: Counts
    size: int
    others: int
    several: int = 0


@dataclass(frozen=True)
class OfTheOthers:
    """κ of the records of the other samples, and the chance of so many hits as a sample has with it."""

    kappa: float
    p_value: float


@dataclass(frozen=True)
class SampleAnnotation:
    """The hits and epitopes of one sample.

    hits        pyarrow, a row for each hit, the least probable first: see docs/annotate.md
    epitopes    pyarrow, a row for each epitope, by p-value
    found       number of hits
    expected    number of hits that chance makes
    called      epitopes with a q-value, and hits with a false discovery rate, of at most `max_q`
    decoys      numbers of decoys: epitopes, hits found and expected, epitopes with p <= 0.05, and what is called;
                empty without decoys
    passed      whether chance explains how much of what is called is of decoys; None without decoys
    uniform     float64 [epitopes tested]: randomised p-values, which are uniform if chance makes all hits
    qq          quantiles of `uniform`: see `hpcvdj.chance.p_values.quantiles`
    by          found and expected hits by length, V gene and decade of p
    kappa_by    whether κ differs by these, among decoys if there are any
    clonotypes, others, several   as `size`, `others` and `several` of `Sample`
    left_out    number of rows that take no part, by reason; `junctions` is the number of those that do
    of_the_others  κ of the other samples, if κ is fitted to far more hits than they have
    """

    name: str
    hits: pa.Table
    epitopes: pa.Table
    found: int
    expected: float
    called: tuple[int, int]
    kappa: HitKappa
    kappa_of_epitopes: HitKappa | None
    dispersion: float
    decoys: Mapping[str, float]
    passed: bool | None
    uniform: Floats
    qq: Mapping[str, list[float]]
    by: Mapping[str, Mapping[str, list[float]]]
    kappa_by: Mapping[str, Difference]
    not_tested: Mapping[str, int]
    clonotypes: int
    others: int
    several: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    junctions: int = 0
    of_the_others: OfTheOthers | None = None


def sample_of(name: str, clonotypes: Clonotypes, union: Union, depth: Depth, model: Model) -> Sample:
    """Match the clonotypes of an individual with the union."""
    distinct = np.bincount(clonotypes.kind, clonotypes.variants, len(clonotypes.classes)).astype(np.int64)
    recombinations = depth.recombinations(distinct, [(v.allele, j.allele) for v, j in clonotypes.classes])
    of_class = classes_in(union, clonotypes.classes)
    shared = of_class >= 0
    n = np.bincount(of_class[shared], recombinations[shared], len(union.centres.classes)).astype(np.float64)
    kind = of_class[clonotypes.kind]
    alike = np.flatnonzero(kind >= 0)
    first, group = groups(letter_words(clonotypes.letters[alike]), clonotypes.lengths[alike], kind[alike])
    rows = alike[first]
    member = union.find(kind[rows], clonotypes.letters[rows], clonotypes.lengths[rows])
    matched = np.flatnonzero(member >= 0)
    order = matched[np.argsort(member[matched])]

    def summed(values: Counts) -> Counts:
        return np.bincount(group, values[alike], len(first)).astype(np.int64)[order]

    reads = None if clonotypes.reads is None else summed(clonotypes.reads)
    several = np.array([any(model.names_several(gene.allele) for gene in pair) for pair in clonotypes.classes], bool)
    return Sample(
        name, n, member[order], reads, summed(clonotypes.variants), len(clonotypes), len(clonotypes) - len(alike),
        int((several & ~shared)[clonotypes.kind].sum()),
    )  # fmt: skip


def classes_in(union: Union, pairs: Sequence[Class]) -> Counts:
    """The class of the union that has each pair of V and J genes, int64 [pairs]; -1 if none has it."""
    classes = union.centres.classes
    any_v, any_j = (alleles.allele == ANY for alleles in classes[0])
    numbers = {(v.allele, j.allele): number for number, (v, j) in enumerate(classes)}
    names = [(ANY if any_v else v.allele, ANY if any_j else j.allele) for v, j in pairs]
    return np.array([numbers.get(name, -1) for name in names], dtype=np.int64)


@dataclass(frozen=True)
class TestedSample:
    """The test of a sample before its q-values.

    usable    bool [members]: the model can make them, and makes their genes rightly
    rows      int64: the matched clonotypes of the sample that are usable
    chance    float64 [members]: π
    k, expected, at_least, more   [epitopes]: hits, expected hits, P(K >= k) and P(K > k)
    alone     float64 [epitopes]: expected hits with κ = 1
    of_decoys, of_records  hits of decoys, and of all records: found, and expected with κ = 1
    """

    sample: Sample
    usable: Bools
    rows: Counts
    chance: Floats
    kappa: HitKappa
    of_epitopes: HitKappa | None
    phi: float
    k: Counts
    expected: Floats
    at_least: Floats
    more: Floats
    not_tested: dict[str, int]
    alone: Floats
    of_decoys: tuple[int, float]
    of_records: tuple[int, float]

    @property
    def testable(self) -> Bools:
        """Which epitopes chance can hit, bool [epitopes]."""
        return np.asarray(self.expected > 0)


def annotate(
    samples: Sequence[Sample], union: Union, p: Probabilities, model: Model, settings: AnnotationSettings,
    fit: ModelFit = UNCHECKED,
) -> list[SampleAnnotation]:  # fmt: skip
    """Test the epitopes of samples; q-values are over the epitopes of all samples.

    fit  how the model fits the tables: genes that it makes wrongly, and calls that contradict the bases, are not tested
    """
    judged = Judged.by(fit, union, p, model, settings)
    tests = [_tested(sample, judged, settings) for sample in samples]
    common = _common_kappa(tests, union, settings)
    if common is not None:
        enough = (*OF_ITSELF, "bound", *(["records"] if common.source == "records" else []))
        tests = [
            test if test.kappa.source in enough and not _by_luck(test, common)
            else _tested(test.sample, judged, settings, common)
            for test in tests
        ]  # fmt: skip
    p_values = np.concatenate([test.at_least[test.testable] for test in tests])
    q_values = benjamini_hochberg(p_values, len(p_values))
    # Drawn for all samples at once, so that no two samples share a random number.
    uniform = randomised(p_values, np.concatenate([test.more[test.testable] for test in tests]), settings.seed)
    ends = np.cumsum([test.testable.sum() for test in tests])[:-1]
    return [
        replace(_annotation(test, q, of_chance, union, p, settings), of_the_others=_of_the_others(tests, test))
        for test, q, of_chance in zip(tests, np.split(q_values, ends), np.split(uniform, ends), strict=True)
    ]


def _tested(
    sample: Sample, judged: Judged, settings: AnnotationSettings, common: HitKappa | None = None
) -> TestedSample:
    """Test a sample, with the κ that samples have in `common` if it has too few hits for a κ of its own."""
    union, p, usable = judged.union, judged.p, judged.usable
    rows, not_tested = judged.tested(sample.member)
    rates = statistics.times_made(sample.n[union.kind], p.given)
    rates[~usable] = 0.0
    seen = np.zeros(len(union))
    seen[sample.member[rows]] = 1
    decoy, near = union.decoy, union.near_decoys
    k = union.by_epitope(seen).astype(np.int64)
    of_one = statistics.chance_of(rates, 1.0)
    alone = union.by_epitope(of_one)
    of_epitopes = statistics.kappa_of_epitopes(k[~decoy], alone[~decoy])
    kappa = common or _kappa(seen.astype(np.int64), rates, near, of_epitopes, settings)
    if kappa.source != "given" and kappa.value >= statistics.LARGEST_KAPPA:
        # The expected numbers would be too small.
        kappa = replace(kappa, source="bound")
    chance = statistics.chance_of(rates, kappa.value)
    expected, squares = union.by_epitope(chance), union.by_epitope(chance**2)
    phi = statistics.dispersion(k, expected, decoy)
    # `of_epitope` is sorted.
    ends = np.searchsorted(union.of_epitope, np.arange(len(decoy) + 1))
    indicators = [
        chance[union.of_member[ends[row] : ends[row + 1]]] if far_from_poisson else None
        for row, far_from_poisson in enumerate(squares >= statistics.EXACT * np.maximum(expected, 1e-300))
    ]
    at_least, more = statistics.tail(k, expected, phi, indicators, kappa.doubt(phi))
    return TestedSample(
        sample, usable, rows, chance, kappa, of_epitopes, phi, k, expected, at_least, more, not_tested, alone,
        of_decoys=(int(seen[near].sum()), float(of_one[near].sum())),
        of_records=(int(seen.sum()), float(of_one.sum())),
    )  # fmt: skip


def _of_the_others(tests: Sequence[TestedSample], tested: TestedSample) -> OfTheOthers | None:
    """κ by the records of all other samples, if κ of a sample is fitted to its own records and it has far more hits."""
    if tested.kappa.source not in ("records", "bound"):
        return None
    hits, expected = (sum(test.of_records[k] for test in tests if test is not tested) for k in (0, 1))
    if hits < statistics.FEWEST_HITS or not expected:
        return None
    p_value = float(two_rates_tail(*tested.of_records, int(hits), expected))
    return OfTheOthers(hits / expected, p_value) if p_value < DIFFERS else None


def _common_kappa(tests: Sequence[TestedSample], union: Union, settings: AnnotationSettings) -> HitKappa | None:
    """κ for samples with too few hits for one of their own; None if users give κ, or if all hits together are too few.

    It is that of the decoys of all samples together, or, if these are too few, the median of the samples that have a κ.
    If none has one, it is that of the epitopes of all samples together.  If these are too few, it is that of the
    records of all samples with too few hits, among which no single one decides; or the median of those of at least
    `FEWEST_SAMPLES` others.
    """
    if settings.kappa is not None or len(tests) < 2:
        return None
    if (of_decoys := _of_decoys(tests)) is not None or all(test.kappa.source in OF_ITSELF for test in tests):
        return of_decoys
    if values := [test.kappa for test in tests if test.kappa.source in OF_ITSELF]:
        return statistics.shared(values, "samples")
    k, alone = (np.sum([getattr(test, name) for test in tests], axis=0)[~union.decoy] for name in ("k", "alone"))
    together = statistics.kappa_of_epitopes(k, alone)
    if together is not None:
        return replace(together, source="samples")
    hits, expected = (sum(test.of_records[k] for test in tests if test.kappa.source == "none") for k in (0, 1))
    if (of_records := statistics.kappa_of_ratio(int(hits), expected, "records")) is not None:
        return of_records
    values = [test.kappa for test in tests if test.kappa.source == "records"]
    return statistics.shared(values, "records") if len(values) >= FEWEST_SAMPLES else None


def _of_decoys(tests: Sequence[TestedSample]) -> HitKappa | None:
    """κ by the decoys of all samples together, without samples that have far more hits than the others."""
    found, expected = map(np.array, zip(*(test.of_decoys for test in tests), strict=True))
    kept, differs = np.ones(len(tests), dtype=bool), True
    while differs:
        of_others, chance = found[kept].sum() - found, expected[kept].sum() - expected
        known = kept & (of_others >= statistics.FEWEST_HITS) & (chance > 0)
        p_values = np.where(known, two_rates_tail(found, expected, of_others, chance), 1.0)
        worst = int(np.argmin(p_values))
        differs = bool(p_values[worst] < DIFFERS)
        kept[worst] &= not differs
    hits, of_chance = int(found[kept].sum()), float(expected[kept].sum())
    return statistics.kappa_of_ratio(hits, of_chance, "samples")


def _by_luck(tested: TestedSample, common: HitKappa) -> bool:
    """Whether κ is that of few decoys, and differs from that of all samples no more than chance makes it."""
    found, expected = tested.of_decoys
    likely = expected * common.value
    few = tested.kappa.source == "decoys" and likely < FEWEST_OF_ITSELF
    return few and bool(poisson_tail(found, likely) >= DIFFERS)


def _kappa(
    seen: Counts, rates: Floats, near_decoys: Counts, of_epitopes: HitKappa | None, settings: AnnotationSettings
) -> HitKappa:
    """κ from the first source that has one: users, decoys, the median epitope, all records; 1 if there are few hits."""
    if settings.kappa is not None:
        return HitKappa(settings.kappa)
    return (
        statistics.kappa_of_members(seen[near_decoys], rates[near_decoys], "decoys")
        or of_epitopes
        or statistics.kappa_of_members(seen, rates, "records")
        or HitKappa(1.0, source="none")
    )


def _annotation(
    tested: TestedSample,
    q_values: Floats,
    of_chance: Floats,
    union: Union,
    p: Probabilities,
    settings: AnnotationSettings,
) -> SampleAnnotation:
    """The annotation of a sample by its q-values and randomised p-values, float64 [testable epitopes]."""
    q = np.full(len(tested.k), np.nan)
    q[tested.testable] = q_values
    called = q <= settings.max_q
    hits = _hits(tested, union, p)
    called_hits = hits["fdr"].to_numpy() <= settings.max_q
    all_called = int(called.sum()), int(called_hits.sum())
    of_decoys = int((called & union.decoy).sum()), int((hits["decoy"].to_numpy() & called_hits).sum())
    passed = None
    if union.decoy.any():
        each = zip(all_called, of_decoys, strict=True)
        passed = all(statistics.decoys_pass(number, wrong, settings.max_q) for number, wrong in each)
    refused = passed is False or tested.kappa.source in NO_KAPPA
    numbers: dict[str, float] = {}
    if union.decoy.any():
        decoys = union.decoy & tested.testable
        numbers = {
            "epitopes": int(decoys.sum()), "found": tested.of_decoys[0],
            "expected": float(tested.chance[union.near_decoys].sum()),
            "p_below_0.05": int((tested.at_least[decoys] <= 0.05).sum()),
            "called": of_decoys[0], "hits_called": of_decoys[1],
        }  # fmt: skip
    return SampleAnnotation(
        tested.sample.name, without_values(hits, "fdr") if refused else hits,
        _epitope_table(tested, q, union, p, refused=refused), len(tested.rows), float(tested.chance.sum()),
        (0, 0) if refused else all_called, tested.kappa, tested.of_epitopes,
        tested.phi, numbers, passed, of_chance, quantiles(of_chance), *_by(tested, union, p), tested.not_tested,
        tested.sample.size, tested.sample.others, tested.sample.several,
    )  # fmt: skip


def without_values(table: pa.Table, name: str) -> pa.Table:
    """The table with nulls in the column `name`."""
    return table.set_column(table.column_names.index(name), name, pa.nulls(len(table), table[name].type))


def _epitope_table(tested: TestedSample, q: Floats, union: Union, p: Probabilities, *, refused: bool) -> pa.Table:
    """A row for each testable epitope, the smallest p-value first."""
    rows = np.flatnonzero(tested.testable)
    rows = rows[np.lexsort((-tested.expected[rows], tested.at_least[rows]))]
    epitopes = [union.centres.epitopes[row] for row in rows.tolist()]
    return pa.table({
        **{column: pa.array([getattr(epitope, name) for epitope in epitopes], pa.string())
           for column, name in _TEXTS.items()},
        "records": pa.array([len(epitope.centres) for epitope in epitopes], pa.int64()),
        "decoy": pa.array([epitope.decoy for epitope in epitopes], pa.bool_()),
        **statistics.ratio_columns(tested.k[rows], tested.expected[rows]), "p_value": tested.at_least[rows],
        "q_value": pa.array(q[rows], mask=np.full(len(rows), refused)),
        "precursor_frequency": union.by_epitope(np.where(tested.usable, p.post, 0.0))[rows],
    })  # fmt: skip


def _hits(tested: TestedSample, union: Union, p: Probabilities) -> pa.Table:
    """A row for each hit with its nearest record, the least probable hits first."""
    sample, centres = tested.sample, union.centres
    of_centre = union.by_centre(tested.chance)
    # Ranks stand for values: sequences with the same value are added up before they are compared with hits.
    values, rank = np.unique(of_centre, return_inverse=True)
    smallest = union.smallest(rank)
    member = sample.member[tested.rows]
    first = values[smallest[member]]
    chance = np.bincount(smallest, tested.chance, len(values)).astype(np.float64)
    rates = statistics.false_discovery_rates(first, values, chance)
    order = np.lexsort((tested.chance[member], first))
    rows, member, first = tested.rows[order], member[order], first[order]
    nearest = [_nearest(union, number, of_centre) for number in member.tolist()]
    epitopes_of: list[list[Epitope]] = [[] for _ in centres.kind]
    for epitope in centres.epitopes:
        for centre in epitope.centres.tolist():
            epitopes_of[centre].append(epitope)

    def described(name: str) -> pa.Array:
        texts = [joined(getattr(epitope, name) for epitope in epitopes_of[centre]) for centre, _ in nearest]
        return pa.array(texts, pa.string())

    def of_record(texts: list[str]) -> pa.Array:
        return pa.array([texts[centre] for centre, _ in nearest], pa.string())

    def genes(side: int) -> pa.Array:
        names = [None if pair[side].allele == ANY else pair[side].allele for pair in centres.classes]
        return pa.array(names, pa.string()).take(pa.array(union.kind[member]))

    # A record may have several epitopes; it is a decoy if all of them are.
    decoy = [all(epitope.decoy for epitope in epitopes_of[centre]) for centre, _ in nearest]
    return pa.table({
        "v_call": genes(0), "j_call": genes(1),
        "junction_aa": pa.array([union.text(number) for number in member.tolist()], pa.string()),
        **({} if sample.reads is None else {"duplicate_count": sample.reads[rows]}),
        "nt_variants": sample.variants[rows],
        **{column: described(name) for column, name in _TEXTS.items()},
        "decoy": pa.array(decoy, pa.bool_()),
        "record": of_record(centres.texts),
        "distance": pa.array([distance for _, distance in nearest], pa.int64()),
        "reference": of_record(centres.references),
        "database_rows": of_record(centres.rows),
        "pgen_aa": p.pgen[member], "p_post": p.post[member], "expected": first,
        "fdr": rates[order],
        **({"species": of_record(centres.species)} if any(centres.species) else {}),
    })  # fmt: skip


def _nearest(union: Union, member: int, of_centre: Floats) -> tuple[int, int]:
    """The centre nearest to a member, of equally near centres the one with the fewest chance hits; and its distance."""
    text = union.text(member)

    def distance(centre: int) -> int:
        return sum(a != b for a, b in zip(text, union.centres.texts[centre], strict=True))

    nearest = min(union.centres_of(member), key=lambda centre: (distance(centre), of_centre[centre], centre))
    return nearest, distance(nearest)


def _by(
    tested: TestedSample, union: Union, p: Probabilities
) -> tuple[dict[str, dict[str, list[float]]], dict[str, Difference]]:
    """Hits found and expected by length, V gene, and decade of the probability; and whether κ differs by these."""
    member = tested.sample.member[tested.rows]
    with np.errstate(divide="ignore"):
        decade = np.floor(np.log10(p.given)).clip(-30, 0).astype(np.int64)
    v = [pair[0].allele for pair in union.centres.classes]
    names = list(dict.fromkeys(v))
    of_v = np.array([names.index(name) for name in v])[union.kind]
    null = np.full(len(union), 0.0 if union.decoy.any() else 1.0)
    null[union.near_decoys] = 1.0
    by, differ = {}, {}
    for what, values, text in (("length", union.lengths, str), ("v_gene", of_v, names.__getitem__),
                               ("log10_p", decade + 30, lambda k: str(k - 30))):  # fmt: skip
        hits = np.bincount(values[member], minlength=int(values.max(initial=0)) + 1)
        expected = np.bincount(values, tested.chance, len(hits)).astype(np.float64)
        by[what] = {text(k): [int(hits[k]), float(expected[k])] for k in np.flatnonzero(expected > 0).tolist()}
        of_null = np.bincount(values[member], null[member], len(hits)).astype(np.int64)
        means = np.bincount(values, tested.chance * null, len(hits)).astype(np.float64)
        differ[what] = statistics.difference(of_null, means, tested.phi)
    return by, differ
