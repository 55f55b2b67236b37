"""The events of a recombination model, with distributions in the same form whatever they depend on."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from hpcvdj.recombination.germline import SEGMENT_TYPES, SegmentType
from hpcvdj.recombination.models import Array, Insertion, Model, stationary

Key = tuple[Any, ...]

CHOICES = ("v_choice", "dj_choice", "vj_choice")
"""The events that choose the alleles of a recombination."""


@dataclass(frozen=True)
class Event:
    """An event of recombination, with a row for each outcome under each condition that the event depends on.

    name         the name in IGoR; events with joint probabilities are one event: `dj_choice`, `vj_choice`, `d_del`
    notation     the name for readers, such as P(V)
    columns      the values of each row by column: the condition, if there is one, and the outcome
    probability  the probability of each row's outcome given its condition
    weights      the probability of each condition; empty for an event that depends on nothing
    derived      whether the event follows from the others, so that it is no parameter of the model
    """

    name: str
    notation: str
    columns: dict[str, list[Any]]
    probability: list[float]
    weights: dict[Key, float]
    derived: bool = False

    def distributions(self) -> dict[Key, dict[Key, float]]:
        """Return the probability of each outcome, by condition, which is () for an event that depends on nothing."""
        distributions: dict[Key, dict[Key, float]] = defaultdict(dict)
        conditions = 1 if self.weights else 0
        for key, chance in zip(zip(*self.columns.values(), strict=True), self.probability, strict=True):
            distributions[key[:conditions]][key[conditions:]] = chance
        return distributions


def events(model: Model) -> dict[str, Event]:
    """Return the events of a model by name: the choices of alleles, then deletions, then insertions."""
    listed = [*_choices(model), *_deletions(model)]
    for name, insertion in model.named_insertions.items():
        listed += _inserted(name, insertion)
    return {event.name: event for event in listed}


def _choices(model: Model) -> Iterator[Event]:
    if not model.has_d:
        yield _choice(model, "VJ", model.p_vj)
        return
    yield _choice(model, "V", model.p_v)
    yield _choice(model, "DJ", model.p_dj)
    joint = np.multiply.outer(model.p_v, model.p_dj) if model.p_vdj is None else model.p_vdj
    yield _choice(model, "VDJ", joint, derived=model.p_vdj is None)


def _choice(model: Model, segments: str, probability: Array, *, derived: bool = False) -> Event:
    """Return the choice of alleles of `segments`, such as DJ.  The axes of `probability` are the segments."""
    alleles = ([template.allele for template in model.templates(SEGMENT_TYPES[segment])] for segment in segments)
    columns = _columns([f"{segment.lower()}_call" for segment in segments], list(product(*alleles)))
    notation = f"P({', '.join(segments)})"
    return Event(f"{segments.lower()}_choice", notation, columns, probability.ravel().tolist(), {}, derived)


def _columns(names: list[str], rows: list[Key]) -> dict[str, list[Any]]:
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _deletions(model: Model) -> Iterator[Event]:
    yield _deletion(model, "V", "v_3_del", model.v_deletions)
    if model.has_d:
        yield _deletion(model, "D", "d_del", model.d_deletions)
    yield _deletion(model, "J", "j_5_del", model.j_deletions)


def _deletion(model: Model, segment: SegmentType, name: str, probability: Array) -> Event:
    templates, ends = model.templates(segment), _palindromes(model, segment)
    outcomes = ("deleted_5", "deleted_3") if segment == "D" else ("deleted",)
    rows = [
        (templates[allele].allele, *(missing - most for missing, most in zip(index, ends[allele], strict=True)))
        for allele, *index in np.ndindex(probability.shape)
    ]
    columns = _columns([f"{segment.lower()}_call", *outcomes], rows)
    weights = dict(zip(((t.allele,) for t in templates), model.p_segment(segment).tolist(), strict=True))
    return Event(name, f"P({segment} deletions | {segment})", columns, probability.ravel().tolist(), weights)


def _palindromes(model: Model, segment: SegmentType) -> list[tuple[int, ...]]:
    """Return the largest number of P-nucleotides of each allele, at each end that loses bases."""
    templates = model.templates(segment)
    both = [len(template.extended) - len(template.segment) for template in templates]
    if segment == "D":
        return [(template.p5, total - template.p5) for template, total in zip(templates, both, strict=True)]
    # A model also has deletions of alleles whose segment it does not know.
    return [(most if template.segment else max(both),) for most, template in zip(both, templates, strict=True)]


def _inserted(name: str, insertion: Insertion) -> Iterator[Event]:
    """Yield the events of an insertion: its length, its first base, and each later base given the base before it."""
    event, bases = name.lower(), [(base,) for base in "ACGT"]
    lengths = {"length": list(range(len(insertion.lengths)))}
    yield Event(f"{event}_ins", f"P({name} length)", lengths, insertion.lengths.tolist(), {})
    first, derived = insertion.first, np.array_equal(insertion.first, stationary(insertion.transitions))
    yield Event(f"{event}_first", f"P({name} first base)", _columns(["base"], bases), first.tolist(), {}, derived)
    weights = dict(zip(bases, _preceding(insertion).tolist(), strict=True))
    columns = _columns(["base_before", "base"], [(*before, *base) for before, base in product(bases, bases)])
    chances = insertion.transitions.T.ravel().tolist()
    yield Event(f"{event}_dinucl", f"P({name} base | base before)", columns, chances, weights)


def _preceding(insertion: Insertion) -> Array:
    """Return the share of each base among inserted bases that another one follows, float64 [4]; zeros if none."""
    at_least = np.cumsum(insertion.lengths[::-1])[::-1]
    base, expected = insertion.first, np.zeros(4)
    for chance in at_least[2:]:
        expected += chance * base
        base = insertion.transitions @ base
    return np.asarray(expected / (expected.sum() or 1))
