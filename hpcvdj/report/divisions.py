"""The most direct pathways of a junction: those with the fewest n-nucleotides, grouped by what each letter comes from.

`hpcvdj.recombination.explanation` says what the pathways are.
"""

from collections import Counter
from typing import Any

from hpcvdj.recombination.explanation import Explanation, Pathway

FACTS = ("v_trim", "n1", "d_call", "d_form", "d_trim_5", "d_trim_3", "n2", "j_trim")
"""What of `Explanation.describe` tells groups of pathways apart."""


def most_direct(explanation: Explanation) -> tuple[int, Counter[tuple[Any, ...]]]:
    """The fewest n-nucleotides that the CDR3 needs, and the pathways with that many: {(track, *FACTS): pathways}.

    A track has one letter for each base, as of `Explanation.track`.  The longest V forms come first, then the longest
    J forms, then D genes and D's positions in their order.  (0, {}) for a CDR3 without a pathway.
    """
    m = next((m for m, pathways in enumerate(explanation.counters) if pathways), 0)
    alleles = [segment.allele for segment in explanation.d]

    def order(pathway: Pathway) -> tuple[int, int, int, int]:
        d = alleles.index(pathway.d.segment.allele) if pathway.d else 0
        return -pathway.v_length, -pathway.j_length, d, pathway.d_at or 0

    groups: Counter[tuple[Any, ...]] = Counter()
    for pathway in sorted(explanation.with_n(m), key=order):
        facts = explanation.describe(pathway)
        groups[explanation.track(pathway), *(facts[name] for name in FACTS)] += pathway.multiplicity
    return m, groups
