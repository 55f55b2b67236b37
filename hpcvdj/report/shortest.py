"""The most direct pathways of a junction: those with the fewest n-nucleotides, listed by the definition.

They follow `hpcvdj.pathways`: a V form that is a prefix, a J form that is a suffix, a D form between them; what is left
over are the n-nucleotides.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hpcvdj.germline import DForms, Germline, Segment, extended_d, extended_j, extended_v
from hpcvdj.germline import d_forms as forms_of


@dataclass(frozen=True)
class Pathway:
    """One way to divide a CDR3 of `size` nt, and how many pathways (equal D strings apart) share it.

    The V form is its first `v` nt, the J form its last `j` nt, D lies at [d_start, d_stop).  `..._p` are a form's
    P-nucleotides, `..._lost` the bases of its segment that were chewed off; `d_left` and `d_right` are both of an end
    of D, None where several pairs of chew-backs give the form.
    """

    size: int
    v: int
    v_p: int
    v_lost: int
    d_gene: str
    d_start: int
    d_stop: int
    d_left: tuple[int, int] | None
    d_right: tuple[int, int] | None
    j: int
    j_p: int
    j_lost: int
    pathways: int

    @property
    def n_nucleotides(self) -> int:
        """n-nucleotides on both sides of D."""
        return self.size - self.v - self.j - (self.d_stop - self.d_start)


def prefix_length(sequence: str, extended: str) -> int:
    """Bases that the starts of two sequences share."""
    pairs = enumerate(zip(sequence, extended, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(sequence), len(extended)))


def shortest(
    cdr3: str, v: Segment, j: Segment, germline: Germline, d_forms: DForms, max_n: int
) -> tuple[int, list[Pathway]] | None:
    """The fewest n-nucleotides that `cdr3` needs, and the pathways with so many; None if it needs above `max_n`.

    Pathways are in order of the V form's length, the longest first, then of D's place.
    """
    longest_v = prefix_length(cdr3, extended_v(v.sequence, germline.max_p))
    longest_j = prefix_length(cdr3[::-1], extended_j(j.sequence, germline.max_p)[::-1])
    genes = germline.d_segments(v.locus)
    by_length: dict[int, list[_DForm]] = {0: [("", "", None, 1)]}
    if genes:
        by_length = _d_forms_by_length(genes, germline.max_p, d_forms)
    for m in range(min(max_n, len(cdr3)) + 1):
        found = [
            pathway
            for a in range(longest_v, -1, -1)
            for b in range(min(longest_j, len(cdr3) - a), -1, -1)
            for pathway in _between(cdr3, a, b, m, by_length, v, j)
        ]
        if found:
            return m, found
    return None


_Ends = tuple[tuple[int, int], tuple[int, int]]
_DForm = tuple[str, str, _Ends | None, int]
"""A D form: its gene, its letters, (P-nucleotides, bases lost) of its ends if known, how often it stands."""


def _d_forms_by_length(genes: tuple[Segment, ...], max_p: int, kind: DForms) -> dict[int, list[_DForm]]:
    out: dict[int, list[_DForm]] = {}
    for segment in genes:
        extended = extended_d(segment.sequence, max_p)
        most_p = min(max_p, len(segment.sequence))
        for form, often in Counter(forms_of(segment.sequence, kind, max_p)).items():
            first = extended.find(form)
            last = len(extended) - first - len(form)
            single = form != "" and extended.find(form, first + 1) < 0
            ends = ((max(0, most_p - first), max(0, first - most_p)), (max(0, most_p - last), max(0, last - most_p)))
            out.setdefault(len(form), []).append((segment.gene, form, ends if single else None, often))
    return out


def _between(
    cdr3: str, a: int, b: int, m: int, by_length: dict[int, list[_DForm]], v: Segment, j: Segment
) -> list[Pathway]:
    """The pathways with V and J forms of `a` and `b` nt and `m` n-nucleotides."""
    length = len(cdr3) - a - b - m
    out = []
    for d_gene, form, ends, often in by_length.get(length, []):
        # Without D genes there is nothing to cut the n-nucleotides: they count once.
        for place in range(a, a + m + 1) if d_gene else (a + m,):
            if cdr3.startswith(form, place):
                v_p, v_lost = max(0, a - len(v.sequence)), max(0, len(v.sequence) - a)
                j_p, j_lost = max(0, b - len(j.sequence)), max(0, len(j.sequence) - b)
                left, right = ends or (None, None)
                stop = place + length
                out.append(Pathway(len(cdr3), a, v_p, v_lost, d_gene, place, stop, left, right, b, j_p, j_lost, often))
    return out
