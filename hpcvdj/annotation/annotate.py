"""Annotation: clonotypes within one exchange of records of known specificity, and how many of them chance makes.

A clonotype is V, J and amino acids.  Of n recombinations with the genes of a record, a sequence σ is there with the
probability π = 1 - (1 - p(σ | V, J))^(κ n).  An epitope has the union of the balls of its records, and the number of
its clonotypes by chance is the sum of π over that union: each sequence once, however many records it is near.  The
p-value is the probability of as many or more; q-values (Benjamini and Hochberg) are over all epitopes of all samples.

κ is what selection, usage and the model's errors leave: by decoys, which are records of antigens that the donors cannot
have met, or else by the median of the epitopes.  Both also tell the dispersion φ of the numbers of hits, as repertoires
have clusters of their own; above 1, numbers are taken for negative binomial.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hpcvdj.annotation import statistics
from hpcvdj.annotation.centres import Class
from hpcvdj.annotation.depth import Depth
from hpcvdj.annotation.settings import AnnotationSettings
from hpcvdj.annotation.statistics import Difference, Kappa
from hpcvdj.annotation.union import PGEN_AA, Probabilities, Union
from hpcvdj.chance.calls import RARE_ALLELE
from hpcvdj.chance.check import (
    BROKEN_GENE,
    CONTRADICTED_CALL,
    IMPOSSIBLE,
    OF_RARE_ALLELE,
    UNCHECKED,
    ModelFit,
    contradicting,
)
from hpcvdj.chance.clonotypes import Clonotypes
from hpcvdj.chance.p_values import Bools, Counts, Floats, benjamini_hochberg, quantiles, randomised
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.recombination.models import ANY, Model
from hpcvdj.repertoires.genes import letter_words

OFTEN = 0.05
"""The p-value of which the share of decoy epitopes is compared with chance."""


@dataclass(frozen=True)
class Sample:
    """Clonotypes of an individual as they are matched: without the genes that may differ.

    n        float64 [classes of the union]: recombinations of each
    member   int64 [matched]: the members of the union that it has
    reads    int64 [matched]: their reads; None if the input does not say
    variants int64 [matched]: their nucleotide junctions
    size     its clonotypes, and how many of them are of no class that records have
    others   clonotypes of other classes
    """

    name: str
    n: Floats
    member: Counts
    reads: Counts | None
    variants: Counts
    size: int
    others: int


@dataclass(frozen=True)
class SampleAnnotation:
    """What one sample has.

    hits        pyarrow, a row for each hit, those first that chance hardly makes: see docs/annotate.md
    epitopes    pyarrow, a row for each epitope, by p-value
    found       hits
    expected    how many chance makes
    called      hits and epitopes with a q-value, or a false discovery rate, of at most `max_q`
    decoys      epitopes of decoys, hits found and expected, epitopes with p <= 0.05, and called, and hits called; empty
                without
    passed      whether decoys, and hits of them, are called at their nominal share at most; None without decoys
    uniform     float64 [epitopes tested]: randomised p-values, which are uniform if all is chance
    qq          quantiles of these: see `hpcvdj.chance.p_values.quantiles`
    by          found and expected hits by length, V gene and decade of p
    kappa_by    whether κ differs by these; of decoys, if there are any
    """

    name: str
    hits: pa.Table
    epitopes: pa.Table
    found: int
    expected: float
    called: tuple[int, int]
    kappa: Kappa
    kappa_of_epitopes: Kappa | None
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
    left_out: Mapping[str, int] = field(default_factory=dict)


def sample_of(name: str, own: Clonotypes, union: Union, depth: Depth) -> Sample:
    """The clonotypes of an individual, matched with the union."""
    distinct = np.bincount(own.kind, own.variants, len(own.classes)).astype(np.int64)
    made = depth.recombinations(distinct, [(v.allele, j.allele) for v, j in own.classes])
    of_class = classes_in(union, own.classes)
    kind = of_class[own.kind]
    known = np.flatnonzero(kind >= 0)
    n = np.bincount(of_class[of_class >= 0], made[of_class >= 0], len(union.centres.classes)).astype(np.float64)
    first, group = groups(letter_words(own.letters[known]), own.lengths[known], kind[known])
    rows = known[first]
    member = union.find(kind[rows], own.letters[rows], own.lengths[rows])
    matched = np.flatnonzero(member >= 0)
    order = matched[np.argsort(member[matched])]
    sums = [
        None if values is None else np.bincount(group, values[known], len(first)).astype(np.int64)[order]
        for values in (own.reads, own.variants)
    ]
    assert sums[1] is not None
    return Sample(name, n, member[order], sums[0], sums[1], len(own), len(own) - len(known))


def classes_in(union: Union, pairs: Sequence[Class]) -> Counts:
    """The class of the union that V and J genes are of, int64 [pairs]; -1 of none."""
    classes = union.centres.classes
    any_v, any_j = (bool(classes) and classes[0][side].allele == ANY for side in (0, 1))
    names = {(v.allele, j.allele): number for number, (v, j) in enumerate(classes)}
    found = [names.get((ANY if any_v else v.allele, ANY if any_j else j.allele), -1) for v, j in pairs]
    return np.array(found, dtype=np.int64)


KNOWN = ("given", "decoys", "epitopes")
"""Where a κ comes from that is a sample's own."""


@dataclass(frozen=True)
class Tested:
    """Numbers of a sample before q-values are known.

    usable    bool [members]: the model can make them, and makes their genes rightly
    rows      int64: of the sample's matched clonotypes, those that are usable
    chance    float64 [members]: π
    k, expected, at_least, more   of each epitope
    alone     float64 [epitopes]: expected with κ = 1
    of_decoys, of_records  hits of decoys, and of all records, and those expected with κ = 1
    """

    sample: Sample
    usable: Bools
    rows: Counts
    chance: Floats
    kappa: Kappa
    of_epitopes: Kappa | None
    phi: float
    k: Counts
    expected: Floats
    at_least: Floats
    more: Floats
    not_tested: dict[str, int]
    alone: Floats
    of_decoys: tuple[int, float]
    of_records: tuple[int, float]


def annotate(
    samples: Sequence[Sample], union: Union, p: Probabilities, model: Model, settings: AnnotationSettings,
    fit: ModelFit = UNCHECKED,
) -> list[SampleAnnotation]:  # fmt: skip
    """Test the epitopes of samples, whose q-values are over all of them.

    fit  how the model fits the tables: genes that it makes wrongly are not tested, nor calls that contradict the bases
    """
    broken = np.array(
        [not {*v.allele.split(","), *j.allele.split(",")}.isdisjoint(fit.broken) for v, j in union.centres.classes]
    )[union.kind]
    tested = [_tested(sample, union, p, broken, model, settings, fit) for sample in samples]
    common = _common_kappa(tested, union, settings)
    if common is not None:
        enough = (*KNOWN, "records") if common.source == "records" else KNOWN
        tested = [
            each if each.kappa.source in enough
            else _tested(each.sample, union, p, broken, model, settings, fit, common)
            for each in tested
        ]  # fmt: skip
    has = [each.expected > 0 for each in tested]
    p_values = np.concatenate([each.at_least[own] for each, own in zip(tested, has, strict=True)])
    q_values = benjamini_hochberg(p_values, len(p_values))
    # Of all samples at once: two of them have no random number in common.
    more = np.concatenate([each.more[own] for each, own in zip(tested, has, strict=True)])
    uniform = randomised(p_values, more, settings.seed)
    ends = np.cumsum([own.sum() for own in has])[:-1]
    return [
        _annotation(each, own, q, of_chance, union, p, settings)
        for each, own, q, of_chance in zip(tested, has, np.split(q_values, ends), np.split(uniform, ends), strict=True)
    ]


def _tested(
    sample: Sample, union: Union, p: Probabilities, broken: Bools, model: Model, settings: AnnotationSettings,
    fit: ModelFit, common: Kappa | None = None,
) -> Tested:  # fmt: skip
    """Numbers of a sample; with the κ that samples have in `common`, if it has too few hits for one of its own."""
    possible = p.given > 0
    usable = possible & ~broken
    rows = np.flatnonzero(usable[sample.member])
    not_tested = {
        IMPOSSIBLE: int((~possible[sample.member]).sum()),
        BROKEN_GENE: int((possible & broken)[sample.member].sum()),
    }
    if settings.match == "vj" and not fit.keep_misfits:
        # A call that contradicts the amino acids makes a sequence improbable.
        hits = sample.member[rows]
        side = contradicting(union.repertoire(hits), model, PGEN_AA, p.pgen[hits], p.limits)
        not_tested[OF_RARE_ALLELE] = int((side >= RARE_ALLELE).sum())
        not_tested[CONTRADICTED_CALL] = int((side > 0).sum()) - not_tested[OF_RARE_ALLELE]
        rows = rows[side == 0]
    made = statistics.times_made(sample.n[union.kind], p.given)
    made[~usable] = 0.0
    seen = np.zeros(len(union))
    seen[sample.member[rows]] = 1
    decoy = np.array([epitope.decoy for epitope in union.centres.epitopes])
    k = union.by_epitope(seen).astype(np.int64)
    of_one = statistics.chance_of(made, 1.0)
    alone = union.by_epitope(of_one)
    of_epitopes = statistics.kappa_of_epitopes(k[~decoy], alone[~decoy])
    kappa = common or _kappa(union, seen, made, decoy, of_epitopes, settings)
    near = np.unique(union.of_member[decoy[union.of_epitope]])
    of_decoys, of_records = ((int(seen[own].sum()), float(of_one[own].sum())) for own in (near, np.arange(len(union))))
    chance = statistics.chance_of(made, kappa.value)
    expected, squares = union.by_epitope(chance), union.by_epitope(chance**2)
    null = bool(decoy.any())
    told = decoy if null else np.ones(len(decoy), dtype=bool)
    phi = statistics.dispersion(k[told], expected[told], null=null)
    # `of_epitope` is sorted.
    ends = np.searchsorted(union.of_epitope, np.arange(len(decoy) + 1))
    many = [
        chance[union.of_member[ends[row] : ends[row + 1]]] if own and phi <= 1 else None
        for row, own in enumerate(squares >= statistics.EXACT * np.maximum(expected, 1e-300))
    ]
    at_least, more = statistics.tail(k, expected, phi, many)
    return Tested(
        sample, usable, rows, chance, kappa, of_epitopes, phi, k, expected, at_least, more, not_tested, alone,
        of_decoys, of_records,
    )  # fmt: skip


def _common_kappa(tested: Sequence[Tested], union: Union, settings: AnnotationSettings) -> Kappa | None:
    """κ for samples with too few hits for one of their own; None if it is given, or if all together have too few.

    The median of those samples that have one; else that of the decoys, the epitopes or the records of all samples.
    """
    if settings.kappa is not None or len(tested) < 2 or all(each.kappa.source in KNOWN for each in tested):
        return None
    if known := [each.kappa.value for each in tested if each.kappa.source in KNOWN]:
        return Kappa(float(np.median(known)), source="samples")
    found, expected = (sum(each.of_decoys[k] for each in tested) for k in (0, 1))
    if found >= statistics.FEWEST_HITS and expected:
        return Kappa(found / expected, source="samples")
    other = np.array([not epitope.decoy for epitope in union.centres.epitopes])
    k = np.sum([each.k for each in tested], axis=0)
    together = statistics.kappa_of_epitopes(k[other], np.sum([each.alone for each in tested], axis=0)[other])
    if together is not None:
        return replace(together, source="samples")
    found, expected = (sum(each.of_records[k] for each in tested) for k in (0, 1))
    return Kappa(found / expected, source="records") if found >= statistics.FEWEST_HITS and expected else None


def _kappa(
    union: Union, seen: Floats, made: Floats, decoy: Bools, of_epitopes: Kappa | None, settings: AnnotationSettings
) -> Kappa:
    """κ as users give it; of decoys; of the median epitope; of all records; or 1 for want of hits."""
    if settings.kappa is not None:
        return Kappa(settings.kappa)
    of_decoys = np.unique(union.of_member[decoy[union.of_epitope]])
    found = seen.astype(np.int64)
    if len(of_decoys) and (kappa := statistics.kappa_of_members(found[of_decoys], made[of_decoys], "decoys")):
        return kappa
    return of_epitopes or statistics.kappa_of_members(found, made, "records") or Kappa(1.0, source="none")


def _annotation(
    tested: Tested, has: Bools, q_values: Floats, of_chance: Floats, union: Union, p: Probabilities,
    settings: AnnotationSettings,
) -> SampleAnnotation:  # fmt: skip
    """What one sample has, by its q-values and randomised p-values, float64 [epitopes that chance can hit]."""
    decoy = np.array([epitope.decoy for epitope in union.centres.epitopes])
    q = np.full(len(has), np.nan)
    q[has] = q_values
    called = has & (q <= settings.max_q)
    passed = statistics.decoys_pass(called, decoy, settings.max_q)
    hits, rates = _hits(tested, union, p)
    of_decoys = int((hits["decoy"].to_numpy() & (hits["fdr"].to_numpy() <= settings.max_q)).sum())
    if passed and not statistics.decoy_hits_pass(int((rates <= settings.max_q).sum()), of_decoys, settings.max_q):
        passed = False
    # Without a κ nobody knows what chance makes.
    refused = passed is False or tested.kappa.source == "none"
    if refused:
        unknown = pa.nulls(len(hits), pa.float64())
        hits = hits.set_column(hits.column_names.index("fdr"), "fdr", unknown)
    told = decoy & has
    numbers: dict[str, float] = {}
    if decoy.any():
        often = tested.at_least[told] <= OFTEN
        near = np.unique(union.of_member[decoy[union.of_epitope]])
        numbers = {
            "epitopes": int(told.sum()), "found": int(np.isin(tested.sample.member[tested.rows], near).sum()),
            "expected": float(tested.chance[near].sum()), "p_below_0.05": int(often.sum()),
            "called": int((called & decoy).sum()), "hits_called": of_decoys,
        }  # fmt: skip
    return SampleAnnotation(
        tested.sample.name, hits, _epitope_table(tested, q, has, union, p, refused=refused), len(tested.rows),
        float(tested.chance.sum()), (0, 0) if refused else (int(called.sum()), int((rates <= settings.max_q).sum())),
        tested.kappa, tested.of_epitopes, tested.phi, numbers, passed, of_chance, quantiles(of_chance),
        *_by(tested, union, p, decoy), tested.not_tested, tested.sample.size, tested.sample.others,
    )  # fmt: skip


def _epitope_table(tested: Tested, q: Floats, has: Bools, union: Union, p: Probabilities, *, refused: bool) -> pa.Table:
    """A row for each epitope that can be tested, the smallest p-value first."""
    rows = np.flatnonzero(has)
    rows = rows[np.lexsort((-tested.expected[rows], tested.at_least[rows]))]
    epitopes = [union.centres.epitopes[row] for row in rows.tolist()]
    low, high = statistics.interval(tested.k[rows])
    expected = tested.expected[rows]
    return pa.table({
        **{name: pa.array([getattr(own, name) for own in epitopes], pa.string())
           for name in ("antigen", "organism", "mhc")},
        "records": pa.array([len(own.centres) for own in epitopes], pa.int64()),
        "decoy": pa.array([own.decoy for own in epitopes], pa.bool_()),
        "found": tested.k[rows], "expected": expected, "ratio": tested.k[rows] / expected,
        "ratio_low": low / expected, "ratio_high": high / expected, "p_value": tested.at_least[rows],
        "q_value": pa.array(q[rows], mask=np.full(len(rows), refused)),
        "precursor_frequency": union.by_epitope(np.where(tested.usable, p.post, 0.0))[rows],
    }).add_column(0, "epitope", pa.array([own.name for own in epitopes], pa.string()))  # fmt: skip


def _hits(tested: Tested, union: Union, p: Probabilities) -> tuple[pa.Table, Floats]:
    """A row for each hit with its nearest record, those that chance hardly makes first; and false discovery rates."""
    sample, centres = tested.sample, union.centres
    of_centre = union.by_centre(tested.chance)
    # Ranks in the place of values: sequences with the same one are added up before they are compared with hits.
    values, rank = np.unique(of_centre, return_inverse=True)
    smallest = union.smallest(rank)
    member = sample.member[tested.rows]
    first = values[smallest[member]]
    chance = np.bincount(smallest, tested.chance, len(values)).astype(np.float64)
    rates = statistics.false_discovery_rates(first, values, chance)
    order = np.lexsort((tested.chance[member], first))
    rows, member, first = tested.rows[order], member[order], first[order]
    nearest = [_nearest(union, own, of_centre) for own in member.tolist()]
    centre, distance = np.array(nearest, dtype=np.int64).reshape(-1, 2).T
    names: list[list[int]] = [[] for _ in centres.kind]
    for number, epitope in enumerate(centres.epitopes):
        for own in epitope.centres.tolist():
            names[own].append(number)

    def joined(field: str) -> pa.Array:
        texts = [[getattr(centres.epitopes[number], field) for number in names[own]] for own in centre.tolist()]
        return pa.array([";".join(dict.fromkeys(filter(None, own))) for own in texts], pa.string())

    def genes(side: int) -> pa.Array:
        known = [pair[side].allele for pair in centres.classes]
        texts = [None if known[own] == ANY else known[own] for own in union.kind[member].tolist()]
        return pa.array(texts, pa.string())

    # A record may be of several epitopes; it is a decoy if all of them are.
    decoy = [all(centres.epitopes[number].decoy for number in names[own]) for own in centre.tolist()]
    texts = [bytes(row).rstrip(b"\0").decode() for row in union.letters[member]]
    reads = {} if sample.reads is None else {"duplicate_count": sample.reads[rows]}
    table = pa.table({
        "v_call": genes(0), "j_call": genes(1), "junction_aa": pa.array(texts, pa.string()), **reads,
        "nt_variants": sample.variants[rows],
        **{name: joined(source) for name, source in
           (("epitope", "name"), ("antigen", "antigen"), ("organism", "organism"), ("mhc", "mhc"))},
        "decoy": pa.array(decoy, pa.bool_()),
        "record": pa.array([centres.texts[own] for own in centre.tolist()], pa.string()),
        "distance": distance,
        "reference": pa.array([centres.references[own] for own in centre.tolist()], pa.string()),
        "database_rows": pa.array([centres.rows[own] for own in centre.tolist()], pa.string()),
        "pgen_aa": p.pgen[member], "p_post": p.post[member], "expected": first,
        "fdr": rates[order],
    })  # fmt: skip
    if any(centres.species):
        table = table.append_column("species", pa.array([centres.species[own] for own in centre.tolist()], pa.string()))
    return table, rates


def _nearest(union: Union, member: int, of_centre: Floats) -> tuple[int, int]:
    """The centre that is nearest to a member, of several that which chance hits least; and its distance."""
    last = union.first[member + 1] if member + 1 < len(union) else len(union.centre)
    centres = union.centre[union.first[member] : last].tolist()
    text = bytes(union.letters[member]).rstrip(b"\0").decode()

    def distance(centre: int) -> int:
        return sum(own != other for own, other in zip(text, union.centres.texts[centre], strict=True))

    nearest = min(centres, key=lambda centre: (distance(centre), of_centre[centre], centre))
    return nearest, distance(nearest)


def _by(
    tested: Tested, union: Union, p: Probabilities, decoy: Bools
) -> tuple[dict[str, dict[str, list[float]]], dict[str, Difference]]:
    """Hits found and expected by length, V gene, and decade of the probability; and whether κ differs by these."""
    member = tested.sample.member[tested.rows]
    with np.errstate(divide="ignore"):
        decade = np.floor(np.log10(p.given)).clip(-30, 0).astype(np.int64)
    v = [pair[0].allele for pair in union.centres.classes]
    names = list(dict.fromkeys(v))
    of_v = np.array([names.index(name) for name in v])[union.kind]
    null = np.ones(len(union)) if not decoy.any() else np.zeros(len(union))
    null[union.of_member[decoy[union.of_epitope]]] = 1.0
    by, differ = {}, {}
    for what, values, text in (("length", union.lengths, str), ("v_gene", of_v, names.__getitem__),
                               ("log10_p", decade + 30, lambda k: str(k - 30))):  # fmt: skip
        found = np.bincount(values[member], minlength=int(values.max(initial=0)) + 1)
        expected = np.bincount(values, tested.chance, len(found)).astype(np.float64)
        by[what] = {text(k): [int(found[k]), float(expected[k])] for k in np.flatnonzero(expected > 0).tolist()}
        of_null = np.bincount(values[member], null[member], len(found)).astype(np.int64)
        means = np.bincount(values, tested.chance * null, len(found)).astype(np.float64)
        differ[what] = statistics.difference(of_null, means, tested.phi)
    return by, differ
