"""Gene calls of AIRR tables: the names in them, and the listed segment that they mean."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hpcvdj.errors import require_choice
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.germline import Germline, Segment, SegmentType
from hpcvdj.recombination.names import imgt_spelling

Policy = Literal["exclude", "first"]

Genes = Literal["call", "any"]
"""Which alleles of a model a row is taken to have: those of its calls, or any."""

Ties = Literal["none", "auto"]
"""Whether V genes that reads hardly tell apart are taken together."""

MissingAlleles = Literal["exclude", "gene"]
"""What is done about rows with an allele that a model lacks, of a gene that it has."""

_IMGT_NAME = re.compile(r"\b(?:IG[HKL]|TR[ABDG])[VDJ][^\s,()\[\]]*")

_SCORE = re.compile(r"\([^()]*\)$")

_SEVERAL = re.compile(r"/(?=\d)")
"""The slash between genes of one family, as in TRBV6-2/6-3; not that of TRAV29/DV5 or TRBV20/OR9-2."""

_LOCUS = re.compile(r"(?:IG[HKL]|TR[ABDG])(?=[VDJ])")

_FAMILY = re.compile(r"[A-Za-z]*")


def names_in(call: str) -> list[str]:
    """The different genes and alleles that an AIRR call names.

    IMGT/V-QUEST's `Homsap TRBV6-2*01 F, or Homsap TRBV6-3*01 F` names two alleles, `TRBV6-2/6-3` two genes; MiXCR's
    `TRBV6-2*00(401.5)` names a gene, with a score.

    >>> names_in("Homsap TRBV6-2*01 F, or Homsap TRBV6-3*01 (F)"), names_in("TRBV5,TRBV5*00(12.5) ")
    (['TRBV6-2*01', 'TRBV6-3*01'], ['TRBV5'])
    >>> names_in("TRBV12-3/12-4"), names_in("TRAV29/DV5,TRBV20/OR9-2")
    (['TRBV12-3', 'TRBV12-4'], ['TRAV29/DV5', 'TRBV20/OR9-2'])
    """
    parts = (part.strip() for part in call.split(","))
    named = (name for part in parts for name in (_IMGT_NAME.findall(part) if " " in part else [part]) or [part])
    names = (name for each in named for name in _genes(_SCORE.sub("", each)))
    return list(dict.fromkeys(name.removesuffix("*00") for name in names if name))


def _genes(name: str) -> list[str]:
    """The genes of `TRBV6-2/6-3`."""
    first, *others = _SEVERAL.split(name)
    family = _FAMILY.match(first)
    return [first, *(f"{family[0] if family else ''}{other}" for other in others)]


def meant_by(call: str, find: Callable[[str], Any]) -> list[str]:
    """The names in a call; the call itself if `find` knows it, as in a table that lists `TRBV6-2/6-3` as one gene."""
    name = call.strip()
    return [name] if name and find(name) is not None else names_in(call)


def locus_of(name: str) -> str:
    """The locus that a gene's name begins with; empty if it begins with none."""
    match = _LOCUS.match(imgt_spelling(name.strip().upper()))
    return match[0] if match else ""


def other_locus(segment: SegmentType, name: str, own: Sequence[str], reference: str) -> Exclusion | None:
    """Why a gene that a germline table or a model lacks has no segment, if it is of a locus that is not its `own`."""
    locus = locus_of(name)
    if not locus or not own or locus in own:
        return None
    return Exclusion.of(
        ExclusionKind.OTHER_LOCUS, segment=segment, name=name, locus=locus, reference=reference, own=", ".join(own)
    )


def is_orphon(name: str) -> bool:
    """Whether a gene is outside its locus, where it cannot be recombined."""
    return "/OR" in imgt_spelling(name.upper())


@dataclass(frozen=True)
class CallPolicy:
    """What happens to calls that do not name one listed allele.

    ambiguous  calls of several alleles with different segments, such as `TRBV6-1,TRBV6-4`: exclude the row, or take
               the first call
    unlisted   alleles that the germline does not list, though it lists their gene: exclude the row, or take the
               gene's first listed allele
    """

    ambiguous: Policy = "exclude"
    unlisted: Policy = "exclude"

    def __post_init__(self) -> None:
        require_choice("ambiguous_calls", self.ambiguous, get_args(Policy))
        require_choice("unlisted_alleles", self.unlisted, get_args(Policy))

    def resolve(self, germline: Germline, segment: SegmentType, call: str) -> Segment | Exclusion:
        """The segment of an AIRR `v_call` or `j_call`, or the reason why it has none.

        Several calls are not ambiguous if the germline lists all of them, with one and the same segment: the first is
        taken.  Orphons that it does not list are left out, if it lists another of the calls: only genes within the
        locus are recombined.
        """
        names = meant_by(call, lambda name: germline.find(segment, name))
        if not names:
            return Exclusion.of(ExclusionKind.NO_CALL, segment=segment)
        each = [(name, self._segment(germline, segment, name)) for name in names]
        kept = [meaning for name, meaning in each if not (is_orphon(name) and _is_unlisted_gene(meaning))]
        listed = [meaning for meaning in kept if isinstance(meaning, Segment)]
        if listed and len(listed) == len(kept) and len({(meaning.locus, meaning.sequence) for meaning in listed}) == 1:
            return listed[0]
        if all(isinstance(meaning, Exclusion) and meaning.kind is ExclusionKind.OTHER_LOCUS for _, meaning in each):
            return each[0][1]
        if len(names) > 1 and self.ambiguous == "exclude":
            return Exclusion.of(ExclusionKind.AMBIGUOUS_CALL, segment=segment, call=call)
        return each[0][1]

    def _segment(self, germline: Germline, segment: SegmentType, name: str) -> Segment | Exclusion:
        """The segment of one gene or allele."""
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


def _is_unlisted_gene(meaning: Segment | Exclusion) -> bool:
    return isinstance(meaning, Exclusion) and meaning.kind is ExclusionKind.UNLISTED_GENE


def is_replaced(germline: Germline, segment: SegmentType, call: str, used: Segment) -> bool:
    """Whether a call names anything but the segment that is used for it."""
    segments = (germline.find(segment, name) for name in meant_by(call, lambda name: germline.find(segment, name)))
    return any(segment_of_name is None or segment_of_name.sequence != used.sequence for segment_of_name in segments)
