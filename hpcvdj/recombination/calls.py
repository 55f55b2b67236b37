"""Gene calls of AIRR tables: the names in a call, and the listed segment that it means."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hpcvdj.errors import require_choice
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.germline import Germline, Segment, SegmentType
from hpcvdj.recombination.names import MISSING, imgt_spelling

Policy = Literal["exclude", "first"]

Genes = Literal["call", "any"]
"""Which alleles of a model a row may have: those of its calls, or any."""

Ties = Literal["none", "auto"]
"""Whether V genes that reads hardly tell apart count as one gene."""

MissingAlleles = Literal["exclude", "gene"]
"""What happens to a row whose allele the model lacks although it has the gene."""

_IMGT_NAME = re.compile(r"\b(?:IG[HKL]|TR[ABDG])[VDJ][^\s,()\[\]]*")

_SCORE = re.compile(r"\([^()]*\)$")

_SEVERAL = re.compile(r"/(?=\d|\*|(?:IG[HKL]|TR[ABDG])[VDJ])")
"""The slash between genes of one family, as in TRBV6-2/6-3, unlike the slash of TRAV29/DV5 or TRBV20/OR9-2."""

_BETWEEN = re.compile("[,;|]")
_LOCUS = re.compile(r"(?:IG[HKL]|TR[ABDG])(?=[VDJ])")


def names_in(call: str) -> list[str]:
    """Return the genes and alleles that an AIRR call names, without repeats.

    Some tables have `;` or `|` between them.  IMGT/V-QUEST's `Homsap TRBV6-2*01 F, or Homsap TRBV6-3*01 F` names two
    alleles, `TRBV6-2/6-3` two genes; MiXCR's `TRBV6-2*00(401.5)` names a gene, with a score.

    >>> names_in("Homsap TRBV6-2*01 F, or Homsap TRBV6-3*01 (F)"), names_in("TRBV5,TRBV5*00(12.5) ")
    (['TRBV6-2*01', 'TRBV6-3*01'], ['TRBV5'])
    >>> names_in("TRBV12-3/12-4"), names_in("TRAV29/DV5,TRBV20/OR9-2")
    (['TRBV12-3', 'TRBV12-4'], ['TRAV29/DV5', 'TRBV20/OR9-2'])
    >>> names_in("TRBV12-3/4*01"), names_in("TRBV6-5*01/02"), names_in("IGHV4-30-2/4")
    (['TRBV12-3', 'TRBV12-4*01'], ['TRBV6-5*01', 'TRBV6-5*02'], ['IGHV4-30-2', 'IGHV4-30-4'])
    >>> names_in("TRBV5-4*02;TRBV9*01"), names_in("TRBV20-1|TRBV9")
    (['TRBV5-4*02', 'TRBV9*01'], ['TRBV20-1', 'TRBV9'])
    >>> names_in("NA"), names_in("nan"), names_in("."), names_in("<NA>")
    ([], [], [], [])
    """
    parts = (part.strip() for part in _BETWEEN.split(call))
    named = (name for part in parts for name in (_IMGT_NAME.findall(part) if " " in part else [part]) or [part])
    names = (gene for name in named for gene in _genes(_SCORE.sub("", name)))
    return list(dict.fromkeys(name.removesuffix("*00") for name in names if name and name not in (*MISSING, ".", "-")))


def _genes(name: str) -> list[str]:
    """Return the genes, or alleles, of a name such as `TRBV6-2/6-3`, `TRBV6-2/3` and `TRBV6-2*01/02`."""
    first, *others = _SEVERAL.split(name)
    return [first, *(_full_name(first, other) for other in others)]


def _full_name(first: str, other: str) -> str:
    """Return the name that `other` shortens behind the slash: a gene of the family of `first`, or an allele of it."""
    locus = re.split("[^A-Za-z]", first, maxsplit=1)[0]
    (of_first, _, allele), (gene, *_) = first.partition("*"), other.partition("*")
    begins, parts = of_first.removeprefix(locus).split("-"), gene.split("-")
    if gene[:1].isalpha():
        return other
    if not gene:
        return of_first + other
    if allele and re.fullmatch(r"\d\d", other):
        return f"{of_first}*{other}"
    # In IGHV4-30-2/30-4, the family is left out; in IGHV4-30-4/4-31, it is not.
    shortened = len(parts) < len(begins) and (len(parts) == 1 or parts[0] != begins[0])
    return locus + "-".join([*begins[: -len(parts)], other]) if shortened else locus + other


def meant_by(call: str, find: Callable[[str], Any]) -> list[str]:
    """Return the names in a call, or the call itself if `find` knows it: a table may list `TRBV6-2/6-3` as one gene."""
    name = call.strip()
    return [name] if name and find(name) is not None else names_in(call)


def locus_of(name: str) -> str:
    """Return the locus at the beginning of a gene's name; empty if there is none."""
    match = _LOCUS.match(imgt_spelling(name.strip().upper()))
    return match[0] if match else ""


def other_locus(segment: SegmentType, name: str, loci: Sequence[str], reference: str) -> Exclusion | None:
    """Return the exclusion of a gene whose locus is not among the `loci` of a reference; None for others.

    reference  `germline table` or `model`
    """
    locus = locus_of(name)
    if not locus or not loci or locus in loci:
        return None
    return Exclusion.of(
        ExclusionKind.OTHER_LOCUS, segment=segment, name=name, locus=locus, reference=reference, own=", ".join(loci)
    )


def is_orphon(name: str) -> bool:
    """Return whether a gene is outside its locus, so that it cannot recombine."""
    return "/OR" in imgt_spelling(name.upper())


@dataclass(frozen=True)
class CallPolicy:
    """What happens to calls that do not name one listed allele.

    ambiguous  what to do with calls of several alleles with different segments, such as `TRBV6-1,TRBV6-4`: exclude the
               row, or take the first call
    unlisted   what to do with alleles that the germline does not list although it lists their gene: exclude the row, or
               take the first listed allele of the gene
    """

    ambiguous: Policy = "exclude"
    unlisted: Policy = "exclude"

    def __post_init__(self) -> None:
        require_choice("ambiguous_calls", self.ambiguous, get_args(Policy))
        require_choice("unlisted_alleles", self.unlisted, get_args(Policy))

    def resolve(self, germline: Germline, segment: SegmentType, call: str) -> Segment | Exclusion:
        """Return the segment of an AIRR `v_call` or `j_call`, or the reason why there is none.

        Several calls are not ambiguous if the germline lists all of them with the same segment: the first one counts.
        Unlisted orphons do not count if the germline lists another of the calls, as only genes within the locus
        recombine.
        """
        names = meant_by(call, lambda name: germline.find(segment, name))
        if not names:
            return Exclusion.of(ExclusionKind.NO_CALL, segment=segment)
        meanings = {name: self._segment(germline, segment, name) for name in names}
        listed = [meaning for meaning in meanings.values() if isinstance(meaning, Segment)]
        unlisted = {name: meaning.kind for name, meaning in meanings.items() if isinstance(meaning, Exclusion)}
        orphons = all(kind is ExclusionKind.UNLISTED_GENE and is_orphon(name) for name, kind in unlisted.items())
        if orphons and len({(allele.locus, allele.sequence) for allele in listed}) == 1:
            return listed[0]
        elsewhere = not listed and set(unlisted.values()) == {ExclusionKind.OTHER_LOCUS}
        if len(names) > 1 and self.ambiguous == "exclude" and not elsewhere:
            return Exclusion.of(ExclusionKind.AMBIGUOUS_CALL, segment=segment, call=call)
        return meanings[names[0]]

    def _segment(self, germline: Germline, segment: SegmentType, name: str) -> Segment | Exclusion:
        """Return the segment of a single gene or allele, or the reason why there is none."""
        listed = germline.find(segment, name)
        if listed is not None:
            return listed
        gene, star, _ = name.partition("*")
        first = germline.find(segment, gene)
        if first is None and (elsewhere := other_locus(segment, gene, germline.loci, "germline table")):
            return elsewhere
        if first is None and not star and germline.meant(segment, gene):
            return Exclusion.of(ExclusionKind.FAMILY_CALL, segment=segment, family=gene)
        if first is None:
            return Exclusion.of(ExclusionKind.UNLISTED_GENE, segment=segment, gene=gene)
        if star and self.unlisted == "exclude":
            return Exclusion.of(ExclusionKind.UNLISTED_ALLELE, segment=segment, allele=name, gene=gene)
        return first


def is_replaced(germline: Germline, segment: SegmentType, call: str, used: Segment) -> bool:
    """Return whether a call names anything other than the segment that is used for it."""
    segments = (germline.find(segment, name) for name in meant_by(call, lambda name: germline.find(segment, name)))
    return any(segment_of_name is None or segment_of_name.sequence != used.sequence for segment_of_name in segments)
