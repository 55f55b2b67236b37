"""Recombination models: the probability of every event of V(D)J recombination (Marcou et al. 2018; Sethna et al. 2019).

A **scenario** is one way to make a junction.  Its probability is

    VDJ:  P(V) P(deletion | V) P(D, J) P(deletions | D) P(deletion | J) I_VD I_DJ
    VJ:   P(V, J) P(deletion | V) P(deletion | J) I_VJ

where an insertion of the bases m_1 … m_k has I = P(k) first[m_1] Π transitions[m_i, m_{i-1}].  The DJ insertion is read
from J leftwards: its m_1 is the base next to J.  A junction is AIRR's, with the codons of Cys 104 and Phe/Trp 118.

A deletion index k counts the bases that are missing from a segment *extended* by all its P-nucleotides: P-nucleotides
are deletions that did not happen.  V and J keep at least one base; D may vanish.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.recombination.calls import is_orphon, locus_of, meant_by, other_locus
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.germline import SEGMENT_TYPES, SegmentType
from hpcvdj.recombination.names import alleles_by_name, normal_name
from hpcvdj.recombination.origin import Origin, species_in
from hpcvdj.recombination.parts import letters
from hpcvdj.recombination.selection import Selection

Array = NDArray[np.float64]

ALLOWED_ERROR = 1e-3
"""How far the sum of a distribution may be from 1: files have six digits."""


MOST_LOST = 0.5
"""The largest share of a gene's recombinations that may leave nothing of it."""


@dataclass(frozen=True)
class Template:
    """An allele of a model.

    allele    its name
    sequence  as the model has it, upper case
    segment   its part in the junction; empty if it cannot contribute: it is not functional, or its anchor is unknown
    extended  `segment` with all P-nucleotides that it can have; D at both ends
    p5        how many of them are before `segment`
    function  IMGT's: F, ORF or P, in parentheses or brackets where it is not certain
    """

    allele: str
    sequence: str
    segment: str
    extended: str
    p5: int = 0
    function: str = "F"

    def letters(self, segment: SegmentType) -> str:
        """A letter for each base of `extended`, as of `parts`; `segment` is V, D or J."""
        return letters(segment, len(self.segment), self.p5, len(self.extended) - len(self.segment) - self.p5)


ANY = "any"
"""What the set of all V or J alleles is called: that of rows without calls."""


@dataclass(frozen=True)
class Alleles:
    """A set of V or J alleles of a model.

    allele  what it is called in results: the names of the alleles
    places  of the alleles in the model, ascending; those that cannot make a junction are left out
    """

    allele: str
    places: tuple[int, ...]
    locus: str = ""


@dataclass(frozen=True)
class Insertion:
    """The distribution of inserted bases between two segments; bases in the order A, C, G, T.

    lengths      float64 [longest + 1]: P(length), without zeros at its end
    transitions  float64 [4, 4]: P(base `to` after base `from`) is transitions[to, from]
    first        float64 [4]: P(first base)
    """

    lengths: Array
    transitions: Array
    first: Array

    @property
    def mean_length(self) -> float:
        """The mean number of inserted bases."""
        return float(np.arange(len(self.lengths)) @ self.lengths / self.lengths.sum())


@dataclass(frozen=True)
class Model:
    """A recombination model of one locus.

    name         for messages and results
    digest       SHA-256 of what it was read from
    v, d, j      its alleles; `d` is empty for a locus without D genes
    v_deletions  float64 [V, k]: P(k bases missing from the extended segment | V)
    j_deletions  float64 [J, k]
    d_deletions  float64 [D, l, r]: P(l missing on the left, r on the right | D)
    insertions   of VD and DJ, or of VJ alone
    p_v          float64 [V]: P(V) of a locus with D genes
    p_dj         float64 [D, J]: P(D, J), likewise
    p_vj         float64 [V, J]: P(V, J) of a locus without D genes
    p_vdj        float64 [V, D, J]: where D and J depend on V; `p_v` and `p_dj` are then its marginals, which is what
                 OLGA takes
    joint        take P(V, D, J) = `p_vdj` in the place of P(V) P(D, J)
    error_rate   P(a base of V, D or J, P-nucleotides included, is misread), with which the model was inferred; a
                 property of the sequencing, which generation probabilities do not take
    selection    the selection factor of its productive junctions, if one was inferred
    ties         groups of V genes that are taken together: a call of one means all of them
    by_gene      a call of an allele that the model lacks means all alleles of its gene
    corrected    what was wrong in its files with each allele that was corrected
    faults       what is wrong with each allele that was not: do not rest a test on junctions with such an allele.  A
                 fault that is not certain begins with `perhaps`
    origin       what it was inferred from, and what it is good for
    """

    name: str
    digest: str
    v: tuple[Template, ...]
    d: tuple[Template, ...]
    j: tuple[Template, ...]
    v_deletions: Array
    j_deletions: Array
    d_deletions: Array
    insertions: tuple[Insertion, ...]
    p_v: Array
    p_dj: Array
    p_vj: Array
    p_vdj: Array | None = None
    joint: bool = False
    error_rate: float = 0.0
    selection: Selection | None = None
    ties: tuple[tuple[str, ...], ...] = ()
    by_gene: bool = False
    corrected: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)

    def __repr__(self) -> str:
        """Its name, and how many alleles of each segment it has."""
        numbers = ", ".join(f"{len(self.templates(kind))} {kind}" for kind in SEGMENT_TYPES.values())
        return f"<Model {self.name}: {numbers} alleles{', P(V, D, J)' * self.joint}>"

    def with_joint_choice(self) -> "Model":
        """The model with its own P(V, D, J); InputError if it has none."""
        if self.p_vdj is None:
            raise InputError(f"{self.name}: has no P(V, D, J), only P(V) and P(D, J); leave out {option('joint')}")
        return replace(self, joint=True)

    def with_ties(self) -> "Model":
        """The model with V genes that reads hardly tell apart taken together, as of `twin_genes`."""
        return replace(self, ties=tuple(twin_genes(self.v)))

    def require_selection(self) -> Selection:
        """Its selection factor; InputError if it has none."""
        if self.selection is None:
            raise InputError(
                f"{self.name}: has no selection factor; infer one with hpcvdj infer-selection, or leave out "
                f"{option('selection')}"
            )
        return self.selection

    @cached_property
    def p_choice(self) -> Array:
        """P(V, D, J), float64 [V, D, J], of a locus with D genes."""
        if self.joint and self.p_vdj is not None:
            return self.p_vdj
        return np.asarray(self.p_v[:, None, None] * self.p_dj)

    def facts(self) -> dict[str, str | int]:
        """What results record of it."""
        factor = {} if self.selection is None else {"selection_sha256": self.selection.digest}
        ties = {"ties": ";".join(map(",".join, self.ties))} if self.ties else {}
        by_gene = {"missing_alleles": "gene"} if self.by_gene else {}
        corrected = {"model_corrected": listed(self.corrected)} if self.corrected else {}
        named = {"model": self.name, "model_sha256": self.digest}
        return {**named, **corrected, **self.origin.facts(), **factor, **ties, **by_gene}

    @property
    def species(self) -> str:
        """Its species, if that is known: as the model says that it was inferred from, or as its name says."""
        return self.origin.species or species_in(self.name)

    @property
    def caution(self) -> str | None:
        """Why not to trust tests that rest on it, or None."""
        return self.origin.caution(self.name)

    @property
    def has_d(self) -> bool:
        """Whether the locus has D genes."""
        return bool(self.d)

    @property
    def named_insertions(self) -> dict[str, Insertion]:
        """The insertions by the segments that they join: VD and DJ, or VJ."""
        return dict(zip(("VD", "DJ") if self.has_d else ("VJ",), self.insertions, strict=True))

    def p_segment(self, segment: SegmentType) -> Array:
        """P(allele), float64 [alleles], of V, D or J."""
        if segment == "V":
            return self.p_v if self.has_d else self.p_vj.sum(axis=1)
        if segment == "D":
            return np.asarray(self.p_dj.sum(axis=1))
        return np.asarray(self.p_dj.sum(axis=0) if self.has_d else self.p_vj.sum(axis=0))

    def templates(self, segment: SegmentType) -> tuple[Template, ...]:
        """The alleles of V, D or J."""
        return {"V": self.v, "D": self.d, "J": self.j}[segment]

    @cached_property
    def _contributing(self) -> dict[SegmentType, tuple[int, ...]]:
        def places(segment: SegmentType) -> tuple[int, ...]:
            chance = self.p_segment(segment)
            return tuple(k for k, template in enumerate(self.templates(segment)) if template.segment and chance[k] > 0)

        return {segment: places(segment) for segment in SEGMENT_TYPES.values()}

    def contributing(self, segment: SegmentType) -> tuple[int, ...]:
        """Places of the alleles that can make a junction: those with a segment and P > 0."""
        return self._contributing[segment]

    @cached_property
    def _names(self) -> dict[SegmentType, dict[str, tuple[int, ...]]]:
        kinds = SEGMENT_TYPES.values()
        return {segment: alleles_by_name(t.allele for t in self.templates(segment)) for segment in kinds}

    def find(self, segment: SegmentType, name: str) -> tuple[int, ...] | None:
        """Places of the alleles that a name means: an allele, a gene, a family; None if the model lacks it.

        Names are compared in lower case, without leading zeros and '/': TRBV07-01*02 is TRBV7-1*02.  A gene without
        '-' is also its own first member: TRBV2-1 is TRBV2.
        """
        indices = self._names[segment].get(normal_name(name))
        gene, star, _ = name.partition("*")
        if indices is None and star and self.by_gene and self._is_gene(segment, gene):
            indices = self._names[segment][normal_name(gene)]
        if indices is None or not self.ties or segment != "V":
            return indices
        return tuple(sorted({tied for index in indices for tied in self._tied[index]}))

    def _is_gene(self, segment: SegmentType, name: str) -> bool:
        """Whether a name is that of one gene of the model."""
        known = self._names[segment].get(normal_name(name), ())
        return len({self.templates(segment)[index].allele.partition("*")[0] for index in known}) == 1

    @cached_property
    def _tied(self) -> list[tuple[int, ...]]:
        """For each V allele, the alleles of all genes that are taken together with its gene."""
        genes = [template.allele.partition("*")[0] for template in self.v]
        group = {gene: ties for ties in self.ties for gene in ties}
        return [tuple(k for k, other in enumerate(genes) if other in group.get(gene, (gene,))) for gene in genes]

    def names_several(self, alleles: str) -> bool:
        """Whether alleles or genes, joined by commas, are of several genes that are not taken together."""
        genes = {name.partition("*")[0] for name in alleles.split(",")}
        return len(genes) > 1 and not any(genes <= {*ties} for ties in self.ties)

    def alleles(self, segment: SegmentType, places: Iterable[int] | None = None) -> Alleles:
        """The alleles at some places, all by default; those that cannot contribute have a name, but no place."""
        if places is None:
            return Alleles(ANY, self.contributing(segment))
        indices = sorted(set(places))
        names = ",".join(self.templates(segment)[index].allele for index in indices)
        return Alleles(names, tuple(index for index in indices if index in self.contributing(segment)))

    def resolve(self, segment: SegmentType, call: str) -> Alleles | Exclusion:
        """The alleles of an AIRR `v_call` or `j_call`, or why there are none.

        A call may be a list: the union of its names.  Orphons that the model lacks are left out if it has another one.
        """
        names = self._meant(segment, call)
        if not names:
            return Exclusion.of(ExclusionKind.NO_CALL, segment=segment)
        each = [(name, self.find(segment, name)) for name in names]
        lacking = [name for name, found in each if found is None]
        if lacking and not (len(lacking) < len(names) and all(map(is_orphon, lacking))):
            name = next((name for name in lacking if not is_orphon(name)), lacking[0])
            loci = tuple(dict.fromkeys(locus for t in self.templates(segment) if (locus := locus_of(t.allele))))
            elsewhere = other_locus(segment, name, loci, "model")
            gene, star, _ = name.partition("*")
            if star and self._is_gene(segment, gene):
                return Exclusion.of(ExclusionKind.ALLELE_NOT_IN_MODEL, segment=segment, allele=name, gene=gene)
            if elsewhere or len(names) == 1:
                return elsewhere or Exclusion.of(ExclusionKind.NOT_IN_MODEL, segment=segment, name=name)
            return Exclusion.of(ExclusionKind.TIE_NOT_IN_MODEL, segment=segment, name=name, call=call)
        return self.alleles(segment, {index for _, found in each for index in found or ()})

    def lacks(self, segment: SegmentType, call: str) -> bool:
        """Whether a call names a gene or allele that the model lacks."""
        return any(self.find(segment, name) is None for name in self._meant(segment, call))

    def _meant(self, segment: SegmentType, call: str) -> list[str]:
        return meant_by(call, lambda name: self.find(segment, name))


READ_BASES = 100
"""Bases of V before Cys 104 that reads are taken to cover.  Of human TRBV genes, this makes TRBV12-3 and TRBV12-4 one,
and TRBV6-2 and TRBV6-3."""


def twin_genes(templates: Sequence[Template]) -> list[tuple[str, ...]]:
    """Groups of V genes that reads hardly tell apart: alleles of them are equal from `READ_BASES` before Cys 104 on.

    Programs that align reads call one of such genes out of habit, or each in turn.  Where one of two alleles is
    shorter, they are compared as far as it goes.  Groups are those that pairs connect.
    """
    ends: dict[str, set[tuple[str, str]]] = {}
    for template in templates:
        if template.segment:
            before = template.sequence[: template.sequence.rfind(template.segment)]
            ends.setdefault(template.allele.partition("*")[0], set()).add((before[-READ_BASES:], template.segment))
    group = {gene: gene for gene in ends}

    def first(gene: str) -> str:
        while group[gene] != gene:
            gene = group[gene]
        return gene

    for one, other in combinations(ends, 2):
        if any(_equal(a, b) for a in ends[one] for b in ends[other]):
            group[max(first(one), first(other))] = min(first(one), first(other))
    members: dict[str, list[str]] = {}
    for gene in ends:
        members.setdefault(first(gene), []).append(gene)
    return [tuple(genes) for genes in members.values() if len(genes) > 1]


def _equal(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two V alleles, of bases before the junction and in it, are equal as far as both are known."""
    (before, behind), (other_before, other_behind) = one, other
    known = min(len(before), len(other_before))
    return before[len(before) - known :] == other_before[len(other_before) - known :] and (
        behind.startswith(other_behind) or other_behind.startswith(behind)
    )


def listed(alleles: Mapping[str, str]) -> str:
    """Alleles and what is wrong with them, in one line."""
    return ", ".join(f"{allele} ({what})" for allele, what in alleles.items())


def stationary(transitions: Array) -> Array:
    """The distribution of bases, float64 [4], that `transitions` leaves as it is."""
    reached = np.linalg.matrix_power(np.eye(4) + (transitions > 0), 4) > 0
    # A base to which there is no way back from where it leads has no part in it; it would come out as ±1e-17.
    kept = np.flatnonzero((reached <= reached.T).all(axis=0))
    equations = np.vstack([transitions[np.ix_(kept, kept)] - np.eye(len(kept)), np.ones(len(kept))])
    solution: Array = np.zeros(4)
    solution[kept] = np.linalg.lstsq(equations, np.eye(len(kept) + 1)[-1], rcond=None)[0]
    return np.maximum(solution, 0.0)


def vanishing(model: Model) -> dict[str, str]:
    """Alleles of V and J genes of which the deletions leave nothing in most recombinations: these make no junction."""
    faults: dict[str, str] = {}
    sides: tuple[tuple[SegmentType, Array], ...] = (("V", model.v_deletions), ("J", model.j_deletions))
    for segment, deletions in sides:
        templates, chance = model.templates(segment), model.p_segment(segment)
        kept = [p[: len(template.extended)].sum() for template, p in zip(templates, deletions, strict=True)]
        genes: dict[str, list[int]] = {}
        for index in model.contributing(segment):
            genes.setdefault(templates[index].allele.partition("*")[0], []).append(index)
        for indices in genes.values():
            lost = 1 - sum(chance[k] * kept[k] for k in indices) / chance[indices].sum()
            if lost > MOST_LOST:
                why = f"by its deletions, {100 * lost:.0f} % of the gene's recombinations make no junction"
                faults |= {templates[index].allele: why for index in indices}
    return faults


def require_probabilities(model: Model) -> None:
    """Raise InputError, which names the event, unless every distribution of the model is one."""

    def require(values: Array, what: str) -> None:
        if not np.isfinite(values).all() or (values < 0).any():
            raise InputError(f"{model.name}: {what} has values that are no probabilities; read the file again")
        if abs(values.sum() - 1) > ALLOWED_ERROR:
            raise InputError(f"{model.name}: {what} adds up to {values.sum():.6g}, not 1; correct the file")

    # Not of a rate that is not a number, either.
    if not 0 <= model.error_rate < 1:
        raise InputError(f"{model.name}: the error rate is {model.error_rate:.3g}, no probability; read the file again")
    if model.has_d:
        require(model.p_v, "P(V)")
        require(model.p_dj, "P(D, J)")
    else:
        require(model.p_vj, "P(V, J)")
    sides: tuple[tuple[SegmentType, Array], ...] = (
        ("V", model.v_deletions), ("J", model.j_deletions), ("D", model.d_deletions),
    )  # fmt: skip
    for segment, deletions in sides:
        for index in model.contributing(segment):
            # Zeros only: the allele was never seen when the model was inferred, and is never made.
            if deletions[index].any():
                require(deletions[index], f"the deletions of {model.templates(segment)[index].allele}")
    for what, insertion in model.named_insertions.items():
        require(insertion.lengths, f"the lengths of {what} insertions")
        require(insertion.first, f"the first base of {what} insertions")
        for base, column in zip("ACGT", insertion.transitions.T, strict=True):
            require(column, f"the base after {base} in {what} insertions")
    left, right = np.indices(model.d_deletions.shape[1:])
    for index in model.contributing("D"):
        template = model.d[index]
        lost = model.d_deletions[index][left + right > len(template.extended)].sum()
        if lost > ALLOWED_ERROR:
            raise InputError(
                f"{model.name}: deletes more of {template.allele} than it has, with probability {lost:.3g}; correct "
                "the file"
            )
