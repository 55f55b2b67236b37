"""The pathways of a junction, one by one: which forms, which n-nucleotides, how many ways.

`hpcvdj.recombination.pathways` defines pathways (docs/algorithm.md, sections 2 and 4).  Once a D form and its position
in the CDR3 are chosen, only the lengths of the V and the J form are left to choose.  The bases between the three forms
are the n-nucleotides.  So the pathways of a junction are the **placements** of D forms, each with a range of V and J
lengths.  Sums over placements have a closed form.  Single pathways are listed only on demand.

Positions are 0-based bases of the CDR3 (IMGT 105–117), lengths are nucleotides.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from os.path import commonprefix
from typing import Any

from hpcvdj.recombination.germline import PaperDForms, Segment, extended_d, extended_j, extended_v
from hpcvdj.recombination.parts import Parts, letters

_OF_N1 = "n1", "n1_length", "np1", "np1_length"

_DESCRIBED = (
    "pathways", "n_length", "v_trim", "p3v_length", "d_call", "n", *_OF_N1, "d_form", "d_chew_backs",
    "d_chew_5", "d_chew_3", "d_trim_5", "d_trim_3", "p5d_length", "p3d_length", "n2", "n2_length", "np2", "np2_length",
    "p5j_length", "j_trim",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DForm:
    """A form of a D gene: bases `start` to `stop` of its extended segment, which has `p5` P-nucleotides at its 5' end.

    `chew_backs` is the number of pairs (bases lost 5', bases lost 3') of the extended segment that this form stands
    for.  Under `paper`, it is 1, or all pairs if the form is empty.  Under `distinct`, it is 1 if the form is empty,
    else the number of pairs that give these letters; the form shows the pair that loses the fewest bases.
    """

    segment: Segment
    start: int
    stop: int
    p5: int
    chew_backs: int

    @property
    def empty(self) -> bool:
        """Whether D is chewed away, so that its two trims are not defined."""
        return self.start == self.stop

    @property
    def letters(self) -> str:
        """A letter for each base of the extended segment, as in `hpcvdj.recombination.parts`."""
        # The P-nucleotides mirror the gene, so both ends have equally many.
        return letters("D", len(self.segment.sequence), self.p5, self.p5)

    @property
    def lost(self) -> int:
        """Bases of the gene that are not in the form; P-nucleotides do not count."""
        return len(self.segment.sequence) - self.letters[self.start : self.stop].count("D")


@dataclass(frozen=True, slots=True)
class Placement:
    """A D form at a position of the CDR3, with all V forms up to `longest_v` and J forms up to `longest_j` that fit.

    form  the form; None in a locus without D
    at    its first base in the CDR3; None if it has no bases, so that it is at any of the n-length + 1 cuts
    gap   bases that V, J and n-nucleotides share: the length of the CDR3 minus that of the form
    """

    form: DForm | None
    at: int | None
    gap: int
    longest_v: int
    longest_j: int

    def v_lengths(self, n_length: int) -> range:
        """Return the lengths of V forms that leave `n_length` n-nucleotides; J takes the rest of the gap."""
        templated = self.gap - n_length
        return range(max(0, templated - self.longest_j), min(self.longest_v, templated) + 1)

    def multiplicity(self, n_length: int) -> int:
        """Pathways for each of `v_lengths`: cuts × empty forms if D is chewed away, otherwise 1."""
        if self.form is None or not self.form.empty:
            return 1
        return (n_length + 1) * self.form.chew_backs


@dataclass(frozen=True, slots=True)
class Pathway:
    """A group of `multiplicity` pathways that differ only in how D was chewed away and where it stood.

    v_length, j_length  nucleotides of the V and J form, including P-nucleotides
    d                   the D form; None if there is no D
    d_at                its first base in the CDR3; None if the form is empty
    """

    n_length: int
    v_length: int
    j_length: int
    d: DForm | None
    d_at: int | None
    multiplicity: int


@dataclass(frozen=True)
class GeneCounts:
    """Pathways of a D allele by n-length, list[int] of length max_n + 1: with bases of the allele, and without any."""

    allele: str
    with_bases: list[int]
    chewed_away: list[int]

    @property
    def total(self) -> int:
        """Pathways of the allele over all n-lengths."""
        return sum(self.with_bases) + sum(self.chewed_away)

    @property
    def fewest_n(self) -> int | None:
        """The smallest n-length of a pathway with bases of the allele; None if there is none."""
        return next((m for m, count in enumerate(self.with_bases) if count), None)


@dataclass(frozen=True)
class Explanation:
    """A junction, its segments, and all settings that its pathways depend on."""

    cdr3: str
    v: Segment
    j: Segment
    d: tuple[Segment, ...]
    max_n: int
    d_forms: str
    max_p: int

    @cached_property
    def longest_v(self) -> int:
        """How many first bases the CDR3 and the extended V segment have in common."""
        return _common_prefix(self.cdr3, extended_v(self.v.sequence, self.max_p))

    @cached_property
    def longest_j(self) -> int:
        """How many last bases the CDR3 and the extended J segment have in common."""
        return _common_prefix(self.cdr3[::-1], extended_j(self.j.sequence, self.max_p)[::-1])

    @cached_property
    def placements(self) -> tuple[Placement, ...]:
        """All placements that leave at most `max_n` n-nucleotides with some V and J form."""
        length, a, b = len(self.cdr3), self.longest_v, self.longest_j
        if not self.d:
            return (Placement(None, None, length, a, b),)
        placements = []
        for segment in self.d:
            extended = extended_d(segment.sequence, self.max_p)
            p5 = min(self.max_p, len(segment.sequence))
            ways = len(extended) if self.d_forms == PaperDForms.name else 1
            placements.append(Placement(DForm(segment, 0, 0, p5, ways), None, length, a, b))
            for at in range(length):
                if at - a > self.max_n:
                    break
                for form in self._forms_at(segment, extended, p5, at):
                    stop = at + form.stop - form.start
                    placement = Placement(form, at, length - stop + at, min(a, at), min(b, length - stop))
                    if placement.gap - placement.longest_v - placement.longest_j <= self.max_n:
                        placements.append(placement)
        return tuple(placements)

    def _forms_at(self, segment: Segment, extended: str, p5: int, at: int) -> Iterator[DForm]:
        """Yield the forms of a gene that the CDR3 reads from base `at` on, without the empty form."""
        rest = self.cdr3[at:]
        matches = [(start, _common_prefix(rest, extended[start:])) for start in range(len(extended))]
        if self.d_forms == PaperDForms.name:
            for start, most in matches:
                for size in range(1, most + 1):
                    yield DForm(segment, start, start + size, p5, 1)
            return
        for size in range(1, max(most for _, most in matches) + 1):
            starts = [start for start, most in matches if most >= size]
            forms = [DForm(segment, start, start + size, p5, len(starts)) for start in starts]
            yield min(forms, key=lambda form: form.lost)

    @cached_property
    def genes(self) -> tuple[GeneCounts, ...]:
        """Pathways by D allele and n-length; one entry with an empty name in a locus without D."""
        alleles = [segment.allele for segment in self.d] or [""]
        counts = {allele: ([0] * (self.max_n + 1), [0] * (self.max_n + 1)) for allele in alleles}
        for placement in self.placements:
            form = placement.form
            into = counts[form.segment.allele if form else ""][1 if form is None or form.empty else 0]
            first = placement.gap - placement.longest_v - placement.longest_j
            for m in range(max(0, first), min(self.max_n, placement.gap) + 1):
                into[m] += len(placement.v_lengths(m)) * placement.multiplicity(m)
        return tuple(GeneCounts(allele, *both) for allele, both in counts.items())

    @cached_property
    def counters(self) -> list[int]:
        """Pathways by n-length, list[int] of length max_n + 1: the counters of `hpcvdj count`."""
        return [sum(gene.with_bases[m] + gene.chewed_away[m] for gene in self.genes) for m in range(self.max_n + 1)]

    def pathways(self) -> Iterator[Pathway]:
        """Yield all pathways, by n-length; those that differ only in how D was chewed away and cut form a group.

        There may be millions.  `most_direct` gives the first ones.
        """
        for m in range(self.max_n + 1):
            yield from self.with_n(m)

    def with_n(self, m: int) -> Iterator[Pathway]:
        """Yield the `pathways` with exactly `m` n-nucleotides."""
        for placement in self.placements:
            multiplicity = placement.multiplicity(m)
            for v_length in placement.v_lengths(m):
                j_length = placement.gap - m - v_length
                yield Pathway(m, v_length, j_length, placement.form, placement.at, multiplicity)

    def most_direct(self, number: int) -> list[Pathway]:
        """Return the first `number` of `pathways`: fewest n-nucleotides first, then fewest bases lost by V, D and J."""
        listed: list[Pathway] = []
        for m in range(self.max_n + 1):
            if len(listed) >= number:
                break
            listed += heapq.nsmallest(number - len(listed), self.with_n(m), key=self._order)
        return listed

    def _order(self, pathway: Pathway) -> tuple[int, int, str, int, int]:
        lost_v = max(0, len(self.v.sequence) - pathway.v_length)
        lost_j = max(0, len(self.j.sequence) - pathway.j_length)
        form = pathway.d
        lost = lost_v + lost_j + (form.lost if form else 0)
        return lost, -pathway.v_length, form.segment.allele if form else "", pathway.d_at or 0, pathway.j_length

    def _parts(self, pathway: Pathway) -> Parts:
        v, j, form = len(self.v.sequence), len(self.j.sequence), pathway.d
        of_v, of_j = letters("V", v, 0, min(v, self.max_p)), letters("J", j, min(j, self.max_p))
        ends = self.cdr3, of_v, pathway.v_length, of_j, pathway.j_length
        return Parts(*ends) if form is None else Parts(*ends, form.letters, slice(form.start, form.stop), pathway.d_at)

    def track(self, pathway: Pathway) -> str:
        """Return one letter for each base of the CDR3: see `Parts.track`."""
        return self._parts(pathway).track()

    def describe(self, pathway: Pathway) -> dict[str, Any]:
        """Return a pathway in words (see `Parts.describe`), with its number, its n-nucleotides and its D allele.

        A value is None if the pathways of a group differ in it (n1, n2 and the trims of a D that is chewed away), or if
        there is no D.
        """
        facts, form = self._parts(pathway).describe(), pathway.d
        facts |= {"pathways": pathway.multiplicity, "n_length": pathway.n_length}
        facts["n"] = facts["n1"] + facts.get("n2", "")
        if form is not None:
            facts |= {"d_call": form.segment.allele, "d_chew_backs": form.chew_backs}
            if form.empty:
                facts |= {**dict.fromkeys(_OF_N1), "d_form": "", "p5d_length": 0, "p3d_length": 0}
        return {name: facts.get(name) for name in _DESCRIBED}

    def as_json(self, number: int) -> dict[str, Any]:
        """Return all facts and the `number` most direct pathways, as JSON values."""
        listed = self.most_direct(number)
        return {
            "cdr3": self.cdr3,
            "v_call": self.v.allele,
            "j_call": self.j.allele,
            "locus": self.v.locus,
            "max_n": self.max_n,
            "max_p": self.max_p,
            "d_forms": self.d_forms,
            "pathways_total": sum(self.counters),
            "pathways_by_n_length": self.counters,
            "pathways_by_d_call": [
                {
                    "d_call": gene.allele or None,
                    "pathways": gene.total,
                    "by_n_length_with_d_bases": gene.with_bases,
                    "by_n_length_without_d_bases": gene.chewed_away,
                }
                for gene in self.genes
            ],
            "listed_groups": len(listed),
            "listed_pathways": sum(pathway.multiplicity for pathway in listed),
            "listed": [{**self.describe(pathway), "track": self.track(pathway)} for pathway in listed],
        }


def _common_prefix(one: str, other: str) -> int:
    return len(commonprefix((one, other)))  # noqa: RUF071
