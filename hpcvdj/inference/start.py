"""The start of inference: a model, its mixture with a uniform one, or only a germline table."""

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
from hpcvdj.repertoires.genes import kinds_of

UNIFORM_SHARE = 0.05
"""The share of the uniform model in the mixture: without it, probabilities of 0 would stay 0."""

LONGEST_INSERTION = 40
"""The length of the longest insertion of a model that starts from a germline table."""

MOST_DELETED = 20
"""The number of bases that V and J can lose in such a model; D can lose all."""

_CYS, _PHE = "TGT", "TTT"
"""The anchor codons of alleles that no junction shows."""

_SIDES: tuple[tuple[SegmentType, int], ...] = (("V", 0), ("J", 1))

_RESIDUES: dict[SegmentType, str] = {"V": "C", "J": "FW"}
"""The residues of the anchor codons."""

COMMON = 0.1
"""The share of the junctions of the most common anchor codon from which on another codon is no error."""

UNKNOWN = "NNN"
"""The bases before Cys 104, which a germline table does not have."""


def started(model: Model, start: Start, free: frozenset[str]) -> Model:
    """Return the model that the first iteration evaluates; parameters that are not inferred stay as they are."""
    require_choice("start", start, get_args(Start))
    model = _completed(model)
    beginning = uniform(model) if start == "uniform" else mixed(model, UNIFORM_SHARE if start == "mixed" else 0.0)
    return with_fixed(beginning, model, free)


def _completed(model: Model) -> Model:
    """Give V and J alleles without deletions the mean of the other alleles.

    Files have zeros for alleles that were never seen when the model was inferred, such as pseudogenes.
    """
    changes: dict[str, Any] = {}
    allowed = uniform(model)
    for segment, _ in _SIDES:
        name = f"{segment.lower()}_deletions"
        values, even = getattr(model, name), getattr(allowed, name)
        lacks = ~values.any(axis=1) & even.any(axis=1)
        guess = np.where(even > 0, model.p_segment(segment) @ values, 0.0)
        # Where the mean is 0, all deletions are equally likely.
        guess = np.where(guess.any(axis=1, keepdims=True), guess, even)
        guess /= np.maximum(guess.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        changes[name] = np.where(lacks[:, None], guess, values)
    return replace(model, **changes)


def from_germline(germline: Germline) -> Model:
    """Build a model of the alleles of a germline table in which everything is equally likely.

    Alleles that are not functional take part.  Anchor codons are TGT and TTT: see `with_anchors`.  Raises InputError
    for several loci.
    """
    if len(germline.loci) > 1:
        raise InputError(
            f"{germline.name}: has loci {', '.join(germline.loci)}, and a model is of one; keep the rows of one locus"
        )
    (locus,) = germline.loci
    max_p = germline.max_p
    v, j = (tuple(_template(allele, max_p) for allele in germline.of(segment)) for segment in ("V", "J"))
    d = tuple(_template(allele, max_p) for allele in germline.d_segments(locus))
    ends, d_ends = max_p + MOST_DELETED + 1, max((len(template.segment) + max_p + 1 for template in d), default=0)
    insertion = Insertion(np.ones(LONGEST_INSERTION + 1), np.ones((4, 4)), np.full(4, 0.25))
    # `uniform` sets the probabilities.
    model = Model(
        name=germline.name, digest=germline.digest(), v=v, d=d, j=j, v_deletions=np.zeros((len(v), ends)),
        j_deletions=np.zeros((len(j), ends)), d_deletions=np.zeros((len(d), d_ends, d_ends)),
        insertions=(insertion,) * (2 if d else 1), p_v=np.zeros(0), p_dj=np.zeros((0, 0)), p_vj=np.zeros((0, 0)),
    )  # fmt: skip
    return uniform(model)


def _template(allele: Segment, max_p: int, anchor: str = "") -> Template:
    name, sequence, function = allele.allele, allele.sequence, allele.functional
    if allele.segment_type == "D":
        return Template(name, sequence, sequence, extended_d(sequence, max_p), min(max_p, len(sequence)), function)
    if allele.segment_type == "V":
        segment = (anchor or _CYS) + sequence
        return Template(name, UNKNOWN + segment, segment, extended_v(segment, max_p), 0, function)
    segment = sequence + (anchor or _PHE)
    extended = extended_j(segment, max_p)
    return Template(name, segment, segment, extended, len(extended) - len(segment), function)


def with_anchors(model: Model, germline: Germline, repertoire: Repertoire) -> Model:
    """Give a model of `from_germline` the anchor codons that most junctions of each allele have.

    Calls do not distinguish alleles of a gene with the same segment.  Such alleles take the common codons in turn, like
    human TRBJ2-7*01 (TTC) and *02 (GTC).

    repertoire  junctions, with their anchors
    """
    pairs, lengths = kinds_of(repertoire), repertoire.lengths.astype(np.int64)
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
    """Choose the anchor codon of an allele; return an empty text without votes.

    votes     int64 [64]: the number of junctions with each codon
    residues  the conserved ones, whose codons go to the first alleles
    alike     the number of alleles with this segment
    earlier   the number of these that come before the allele
    """
    common = np.argsort(-votes, kind="stable")[:alike]
    common = common[votes[common] > COMMON * votes.max()]
    codons = ["".join(BASES[number >> shift & 3] for shift in (4, 2, 0)) for number in common.tolist()]
    codons.sort(key=lambda codon: AMINO_ACIDS[codon] not in residues)
    return codons[earlier] if earlier < len(codons) else next(iter(codons), "")


_CODONS = 64


def _codons(repertoire: Repertoire, begin: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the codon that begins at a base of each sequence, as a number below `_CODONS`."""
    number = np.zeros(len(begin), dtype=np.int64)
    for k in range(3):
        word, position = np.divmod(begin + k, BASES_PER_WORD)
        words = repertoire.words[np.arange(len(begin)), word]
        number = 4 * number + ((words >> (62 - 2 * position).astype(np.uint64)) & np.uint64(3)).astype(np.int64)
    return number
