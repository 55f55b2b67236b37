"""Gene calls of AIRR tables: the names in them, and the listed segment that they mean."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from hpcvdj.errors import require_choice
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.germline import Germline, Segment, SegmentType

Policy = Literal["exclude", "first"]

Genes = Literal["call", "any"]
"""Which alleles of a model a row is taken to have: those of its calls, or any."""

_IMGT_NAME = re.compile(r"\b(?:IG[HKL]|TR[ABDG])[VDJ][^\s,()\[\]]*")


def names_in(call: str) -> list[str]:
    """The different genes and alleles that an AIRR call names.

    IMGT/V-QUEST's `Homsap TRBV6-2*01 F, or Homsap TRBV6-3*01 F` names two alleles; MiXCR's `TRBV6-2*00` names a gene.

    >>> names_in("Homsap TRBV6-2*01 F, or Homsap TRBV6-3*01 (F)"), names_in("TRBV5,TRBV5*00 ")
    (['TRBV6-2*01', 'TRBV6-3*01'], ['TRBV5'])
    """
    parts = (part.strip() for part in call.split(","))
    names = (name for part in parts for name in (_IMGT_NAME.findall(part) if " " in part else [part]) or [part])
    return list(dict.fromkeys(name.removesuffix("*00") for name in names if name))


@dataclass(frozen=True)
class CallPolicy:
    """What happens to calls that do not name one listed allele.

    ambiguous  calls of several alleles, such as `TRBV6-2,TRBV6-3`: exclude the row, or take the first call
    unlisted   alleles that the germline does not list, though it lists their gene: exclude the row, or take the
               gene's first listed allele
    """

    ambiguous: Policy = "exclude"
    unlisted: Policy = "exclude"

    def __post_init__(self) -> None:
        require_choice("ambiguous_calls", self.ambiguous, get_args(Policy))
        require_choice("unlisted_alleles", self.unlisted, get_args(Policy))

    def resolve(self, germline: Germline, segment: SegmentType, call: str) -> Segment | Exclusion:
        """The segment of an AIRR `v_call` or `j_call`, or the reason why it has none."""
        names = names_in(call)
        if not names:
            return Exclusion.of(ExclusionKind.NO_CALL, segment=segment)
        if len(names) > 1 and self.ambiguous == "exclude":
            return Exclusion.of(ExclusionKind.AMBIGUOUS_CALL, segment=segment, call=call)
        listed = germline.find(segment, names[0])
        if listed is not None:
            return listed
        gene, star, _ = names[0].partition("*")
        first = germline.find(segment, gene)
        if first is None:
            return Exclusion.of(ExclusionKind.UNLISTED_GENE, segment=segment, gene=gene)
        if star and self.unlisted == "exclude":
            return Exclusion.of(ExclusionKind.UNLISTED_ALLELE, segment=segment, allele=names[0], gene=gene)
        return first
