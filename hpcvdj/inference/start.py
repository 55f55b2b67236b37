"""Where inference starts: a model, a mixture of it with a uniform one, or a germline table alone."""

from collections import Counter
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, require_choice
from hpcvdj.inference.parameters import mixed, uniform, with_fixed
from hpcvdj.inference.settings import Start
from hpcvdj.recombination.alphabet import AMINO_ACIDS, BASES, BASES_PER_WORD
from hpcvdj.recombination.germline import Germline, Segment, SegmentType, extended_d, extended_j, extended_v
from hpcvdj.recombination.models import Insertion, Model, Template
from hpcvdj.recombination.repertoire import Repertoire

UNIFORM_SHARE = 0.05
"""Of the mixture: probabilities of 0 never become larger."""

LONGEST_INSERTION = 40
"""Bases of the longest insertion, where a germline table is all that is known."""

MOST_DELETED = 20
"""Bases that V and J can lose then; D can lose all."""

_CYS, _PHE = "TGT", "TTT"
"""The anchor codons of alleles that no junction shows."""

_SIDES: tuple[tuple[SegmentType, int], ...] = (("V", 0), ("J", 1))

_RESIDUES: dict[SegmentType, str] = {"V": "C", "J": "FW"}
"""What the anchor codons code for."""

COMMON = 0.1
"""An anchor codon is no error if so many times the junctions of the most common one have it."""

UNKNOWN = "NNN"
"""What a germline table does not have of a gene: the bases before Cys 104."""


def started(model: Model, start: Start, free: frozenset[str]) -> Model:
    """The model that the first iteration evaluates; parameters that are not inferred stay as they are."""
    require_choice("start", start, get_args(Start))
    model = _completed(model)
    beginning = uniform(model) if start == "uniform" else mixed(model, UNIFORM_SHARE if start == "mixed" else 0.0)
    return with_fixed(beginning, model, free)


def _completed(model: Model) -> Model:
    """The model with deletions of V and J alleles that have none: the mean of the other alleles.

    Files have zeros for alleles that were never seen when the model was inferred, such as pseudogenes.
    """
    changes: dict[str, Any] = {}
    allowed = uniform(model)
    for segment, _ in _SIDES:
        name = f"{segment.lower()}_deletions"
        values = getattr(model, name)
        lacks = ~values.any(axis=1) & getattr(allowed, name).any(axis=1)
        mean = model.p_segment(segment) @ values
        guess = np.where(getattr(allowed, name) > 0, mean, 0.0)
        # Where the mean has nothing, what is equally likely.
        guess = np.where(guess.any(axis=1, keepdims=True), guess, getattr(allowed, name))
        guess /= np.maximum(guess.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        changes[name] = np.where(lacks[:, None], guess, values)
    return replace(model, **changes)


def from_germline(germline: Germline) -> Model:
    """A model of the alleles of a germline table in which everything is equally likely; InputError for several loci.

    Alleles that are not functional take part.  Anchor codons are TGT and TTT: see `with_anchors`.
    """
    if len(germline.loci) > 1:
        raise InputError(
            f"{germline.name}: has loci {', '.join(germline.loci)}, and a model is of one; keep the rows of one locus"
        )
    (locus,) = germline.loci
    max_p = germline.max_p
    v, j = (tuple(_template(allele, max_p) for allele in germline.of(segment)) for segment in ("V", "J"))
    d = tuple(_template(allele, max_p) for allele in germline.d_segments(locus))
    widest = max((len(template.segment) for template in d), default=0) + max_p + 1
    insertion = Insertion(np.ones(LONGEST_INSERTION + 1), np.ones((4, 4)), np.full(4, 0.25))
    sizes = len(v), len(d), len(j)
    common: dict[str, Any] = {"name": germline.name, "digest": germline.digest(), "v": v, "d": d, "j": j}
    common |= {
        f"{side}_deletions": np.zeros((size, max_p + MOST_DELETED + 1))
        for side, size in (("v", sizes[0]), ("j", sizes[2]))
    }
    if d:
        shapes = {"d_deletions": (sizes[1], widest, widest), "p_v": sizes[0], "p_dj": sizes[1:], "p_vj": (0, 0)}
    else:
        shapes = {"d_deletions": (0, 0, 0), "p_v": 0, "p_dj": (0, 0), "p_vj": (sizes[0], sizes[2])}
    arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in shapes.items()}
    return uniform(Model(**common, **arrays, insertions=(insertion,) * (2 if d else 1)))


def _template(known: Segment, max_p: int, anchor: str = "") -> Template:
    if known.segment_type == "D":
        extended = extended_d(known.sequence, max_p)
        return Template(
            known.allele, known.sequence, known.sequence, extended, min(max_p, len(known.sequence)), known.functional
        )
    if known.segment_type == "V":
        segment = (anchor or _CYS) + known.sequence
        return Template(known.allele, UNKNOWN + segment, segment, extended_v(segment, max_p), 0, known.functional)
    segment = known.sequence + (anchor or _PHE)
    extended = extended_j(segment, max_p)
    return Template(known.allele, segment, segment, extended, len(extended) - len(segment), known.functional)


def with_anchors(model: Model, germline: Germline, repertoire: Repertoire) -> Model:
    """A model of `from_germline` with the anchor codons that most junctions of each allele have.

    Calls of a gene do not tell alleles with the same segment apart: these take the codons that are common in turn, as
    human TRBJ2-7*01 (TTC) and *02 (GTC).

    repertoire  junctions, with their anchors
    """
    pairs = np.repeat(np.arange(len(repertoire.pairs)), np.diff(repertoire.offsets))
    lengths = repertoire.lengths.astype(np.int64)
    changes: dict[str, Any] = {}
    for segment, side in _SIDES:
        codons = _codons(repertoire, np.zeros_like(lengths) if segment == "V" else np.maximum(lengths - 3, 0))
        seen = lengths >= 6
        by_pair = np.bincount(pairs[seen] * _CODONS + codons[seen], minlength=len(repertoire.pairs) * _CODONS)
        votes = np.zeros((len(model.templates(segment)), _CODONS), dtype=np.int64)
        for pair, codon_counts in zip(repertoire.pairs, by_pair.reshape(-1, _CODONS), strict=True):
            votes[list(pair[side].places)] += codon_counts
        segments = germline.of(segment)
        alike = Counter((allele.gene, allele.sequence) for allele in segments)
        earlier: Counter[tuple[str, str]] = Counter()
        templates = []
        for allele, vote in zip(segments, votes, strict=True):
            kind = allele.gene, allele.sequence
            anchor = _anchor(vote, _RESIDUES[segment], alike[kind], earlier[kind])
            templates.append(_template(allele, germline.max_p, anchor))
            earlier[kind] += 1
        changes[segment.lower()] = tuple(templates)
    return uniform(replace(model, **changes))


def _anchor(votes: NDArray[np.int64], residues: str, alike: int, earlier: int) -> str:
    """The anchor codon of an allele; empty without votes.

    votes     int64 [64]: of how many junctions it is the codon
    residues  conserved ones: their codons go to the first alleles
    alike     alleles with this segment, of which so many come `earlier`
    """
    common = np.argsort(-votes, kind="stable")[:alike]
    common = common[votes[common] > COMMON * votes.max()]
    codons = sorted((_codon(int(number)) for number in common), key=lambda codon: AMINO_ACIDS[codon] not in residues)
    return codons[earlier] if earlier < len(codons) else next(iter(codons), "")


_CODONS = 64


def _codons(repertoire: Repertoire, begin: NDArray[np.int64]) -> NDArray[np.int64]:
    """The codon that begins at a base of each sequence, as a number below `_CODONS`."""
    number = np.zeros(len(begin), dtype=np.int64)
    for k in range(3):
        word, position = np.divmod(begin + k, BASES_PER_WORD)
        words = repertoire.words[np.arange(len(begin)), word]
        number = 4 * number + ((words >> (62 - 2 * position).astype(np.uint64)) & np.uint64(3)).astype(np.int64)
    return number


def _codon(number: int) -> str:
    return "".join(BASES[number >> shift & 3] for shift in (4, 2, 0))
