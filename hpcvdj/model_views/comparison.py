"""How different two recombination models are: divergences of their distributions, event by event, in bits.

The Kullback-Leibler divergence of two distributions P and Q is KL(P‖Q) = Σ P log2(P / Q).  It is infinite if Q is 0
where P is not (Kullback and Leibler, Annals of Mathematical Statistics 22, 1951).  The Jensen-Shannon divergence is
JS = (KL(P‖M) + KL(Q‖M)) / 2 with M = (P + Q) / 2.  It is symmetric and at most 1 bit (Lin, IEEE Transactions on
Information Theory 37, 1991).

Alleles are compared by name, as in calls.  Choices are compared over the alleles that both models have, so each choice
is divided by the probability of these.  An event may depend on a condition, as the deletions of V depend on V.  Its
divergence is the mean over the conditions for which both models have a distribution.  KL(A‖B) weighs a condition by its
probability in A, KL(B‖A) by that in B: the divergences of a choice and of the deletions given it then add up to that of
both together.  JS weighs it by the mean of both probabilities, and so is symmetric.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

import pyarrow as pa

from hpcvdj.errors import InputError, few, log
from hpcvdj.recombination.events import CHOICES, Event, Key, events
from hpcvdj.recombination.germline import SEGMENT_TYPES, SegmentType
from hpcvdj.recombination.models import Model, Template
from hpcvdj.recombination.names import normal_name

Distribution = Mapping[Key, float]

Pairs = Sequence[tuple[float, float]]
"""P and Q of each outcome."""

_Values = tuple[float | None, float | None, float | None]

_ROUNDING = 3 * 2.0**-53 / math.log(2)

_NONE: _Values = (None, None, None)


@dataclass(frozen=True)
class Divergence:
    """The divergences of an event, in bits: under one condition, or of the whole event if `condition` is empty.

    event                            the name of the event
    distribution                     the notation for readers, such as P(V)
    condition                        an allele, or the base before
    js_bits, kl_ab_bits, kl_ba_bits  JS, KL(A‖B) and KL(B‖A); None if a model has nothing to compare
    probability_a, probability_b     the probability of the condition; for a whole event, that of all that is compared;
                                     None if a model lacks the condition
    """

    event: str
    distribution: str
    condition: str
    js_bits: float | None
    kl_ab_bits: float | None
    kl_ba_bits: float | None
    probability_a: float | None
    probability_b: float | None


@dataclass(frozen=True)
class Unshared:
    """What only one of two models has.

    alleles      P(allele) of each allele that the other model lacks, of V, then D, then J
    probability  the probability of a recombination with at least one of them
    """

    alleles: dict[str, float]
    probability: float


@dataclass(frozen=True)
class Comparison:
    """Two models, compared.

    rows            a row for each whole event, then a row for each condition that the event depends on
    only_a, only_b  what only A, and only B, has
    """

    rows: tuple[Divergence, ...]
    only_a: Unshared
    only_b: Unshared

    def to_table(self) -> pa.Table:
        """The rows as a pyarrow Table with the fields as columns: text, and float64 that may be null."""
        names = [field.name for field in fields(Divergence)]
        types = [pa.string()] * 3 + [pa.float64()] * 5
        return pa.Table.from_pylist(list(map(asdict, self.rows)), pa.schema(zip(names, types, strict=True)))


def compare(a: Model, b: Model) -> Comparison:
    """Compare two models of one locus, over the alleles that both have.

    The comparison leaves out events that follow from others in both models.  A warning names alleles that have the same
    name and different sequences.  InputError if only one of the models has D genes, if they have no V, D or J allele in
    common, or if alleles of one model have the same name.
    """
    if a.has_d != b.has_d:
        with_d, without = (a, b) if a.has_d else (b, a)
        raise InputError(
            f"{with_d.name} has D genes and {without.name} does not, so they have different events; compare models of "
            "one locus"
        )
    for model in (a, b):
        _require_distinct(model)
    b = _with_names_of(a, b)
    shared = _shared(a, b)
    of_a, of_b = events(a), events(b)
    pairs = [(event, of_b[name]) for name, event in of_a.items() if not (event.derived and of_b[name].derived)]
    rows = tuple(row for pair in pairs for row in _divergences(*pair, shared))
    return Comparison(rows, _unshared(a, of_a, shared), _unshared(b, of_b, shared))


def js(pairs: Pairs) -> float:
    """The Jensen-Shannon divergence of P and Q, in bits."""
    # fsum rounds once, so the order of outcomes does not matter.
    return _rounded(math.fsum(x * math.log2(2 * x / (x + y)) for x, y in (*pairs, *_swapped(pairs)) if x) / 2)


def kl(pairs: Pairs) -> float:
    """The Kullback-Leibler divergence KL(P‖Q), in bits; infinite if Q is 0 where P is not."""
    possible = [(x, y) for x, y in pairs if x]
    if not all(y for _, y in possible):
        return math.inf
    return _rounded(math.fsum(x * math.log2(x / y) for x, y in possible))


def _rounded(value: float) -> float:
    """The divergence, or 0 if it may be rounding error: each term has a ratio, which is exact to about 3 · 2^-53."""
    return value if value > _ROUNDING else 0.0


def paired(p: Distribution, q: Distribution) -> Pairs:
    """The probability of each outcome in P and in Q, 0 where one lacks it.

    Both are normalised, as model files have six digits.
    """
    of_p, of_q = math.fsum(p.values()), math.fsum(q.values())
    pairs = ((p.get(outcome, 0.0), q.get(outcome, 0.0)) for outcome in {**p, **q})
    return [(x / of_p, y / of_q) for x, y in pairs if x or y]


def _swapped(pairs: Pairs) -> Pairs:
    return [(y, x) for x, y in pairs]


def _require_distinct(model: Model) -> None:
    """Raise InputError if two alleles of a model have the same normal name."""
    for segment in SEGMENT_TYPES.values():
        names = Counter(normal_name(template.allele) for template in model.templates(segment))
        if twice := [name for name, count in names.items() if count > 1]:
            raise InputError(f"{model.name} has several alleles of one name ({few(twice)}); give each its own name")


def _with_names_of(a: Model, b: Model) -> Model:
    """`b`, with alleles that both models have spelled as in `a`."""

    def renamed(segment: SegmentType) -> tuple[Template, ...]:
        names = {normal_name(template.allele): template.allele for template in a.templates(segment)}
        return tuple(replace(t, allele=names.get(normal_name(t.allele), t.allele)) for t in b.templates(segment))

    return replace(b, v=renamed("V"), d=renamed("D"), j=renamed("J"))


def _shared(a: Model, b: Model) -> dict[str, set[str]]:
    """The alleles that both models have, by column; InputError if they share none of a segment."""
    shared: dict[str, set[str]] = {}
    differ: list[str] = []
    for segment in SEGMENT_TYPES.values():
        of_a, of_b = ({t.allele: t.segment for t in model.templates(segment)} for model in (a, b))
        both = shared[f"{segment.lower()}_call"] = of_a.keys() & of_b.keys()
        if of_a and not both:
            raise InputError(f"{a.name} and {b.name} have no {segment} allele in common; compare models of one locus")
        differ += [name for name in of_a if name in both and of_a[name] and of_b[name] and of_a[name] != of_b[name]]
    if differ:
        log.warning(
            "%d of the %d alleles that %s and %s both have differ in sequence (%s); are the models of one species?",
            len(differ), sum(map(len, shared.values())), a.name, b.name, few(differ),
        )  # fmt: skip
    return shared


def _distributions(event: Event, shared: Mapping[str, set[str]]) -> dict[Key, Distribution]:
    """The distributions of an event, by condition; a choice only has the alleles that both models have."""
    distributions = event.distributions()
    if event.weights:
        return dict(distributions)

    def is_shared(outcome: Key) -> bool:
        named = zip(event.columns, outcome, strict=True)
        return all(name in shared[column] for column, name in named if column in shared)

    return {(): {outcome: chance for outcome, chance in distributions[()].items() if is_shared(outcome)}}


def _divergences(a: Event, b: Event, shared: Mapping[str, set[str]]) -> Iterator[Divergence]:
    """The row of the whole event, then a row for each of its conditions."""
    p, q = _distributions(a, shared), _distributions(b, shared)
    pairs = {c: paired(p[c], q[c]) for c in p if any(p[c].values()) and any(q.get(c, {}).values())}
    compared = {condition: (js(both), kl(both), kl(_swapped(both))) for condition, both in pairs.items()}
    values: _Values
    if not a.weights:
        values = compared.get((), _NONE)
        yield Divergence(a.name, a.notation, "", *values, math.fsum(p[()].values()), math.fsum(q[()].values()))
        return
    in_a, in_b = ([event.weights[condition] for condition in compared] for event in (a, b))
    of_a, of_b = math.fsum(in_a), math.fsum(in_b)
    weights = [x / of_a + y / of_b for x, y in zip(in_a, in_b, strict=True)] if of_a and of_b else []
    of_js, of_ab, of_ba = zip(*compared.values(), strict=True) if compared else ((), (), ())
    yield Divergence(a.name, a.notation, "", _mean(of_js, weights), _mean(of_ab, in_a), _mean(of_ba, in_b), of_a, of_b)
    for condition in {**p, **q}:
        values = compared.get(condition, _NONE)
        yield Divergence(a.name, a.notation, condition[0], *values, a.weights.get(condition), b.weights.get(condition))


def _mean(values: Sequence[float], weights: Sequence[float]) -> float | None:
    """The weighted mean of divergences; those of weight 0 may be infinite.  None if nothing has weight."""
    total = math.fsum(weights)
    return math.fsum(w * value for value, w in zip(values, weights, strict=True) if w) / total if total else None


def _unshared(model: Model, named: Mapping[str, Event], shared: Mapping[str, set[str]]) -> Unshared:
    """What `model`, whose events are `named`, has and the other model lacks."""
    alleles = {
        template.allele: float(chance)
        for segment in SEGMENT_TYPES.values()
        for template, chance in zip(model.templates(segment), model.p_segment(segment), strict=True)
        if template.allele not in shared[f"{segment.lower()}_call"]
    }
    choices = [named[name] for name in CHOICES if name in named]
    shares = (math.fsum(_distributions(c, shared)[()].values()) / math.fsum(c.probability) for c in choices)
    return Unshared(alleles, 1 - math.prod(shares))
