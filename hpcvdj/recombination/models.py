"""Recombination models: the probability of every event of V(D)J recombination (Marcou et al. 2018; Sethna et al. 2019).

A **scenario** is one way to make a junction.  Its probability is

    VDJ:  P(V) P(deletion | V) P(D, J) P(deletions | D) P(deletion | J) I_VD I_DJ
    VJ:   P(V, J) P(deletion | V) P(deletion | J) I_VJ

where I = P(k) first[m_1] Π transitions[m_i, m_{i-1}] is the probability of inserting the bases m_1 … m_k.  The DJ
insertion is read from J leftwards, so its m_1 is the base next to J.  A junction includes the codons of Cys 104 and
Phe/Trp 118, as in AIRR.

The index k of a deletion is the number of bases missing from a segment that is *extended* by all its P-nucleotides: a
P-nucleotide is a deletion that did not happen.  V and J keep at least one base.  D may vanish.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from itertools import chain, combinations
from typing import Any, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.recombination.calls import is_orphon, locus_of, meant_by, other_locus
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.germline import SEGMENT_TYPES, V_AND_J, SegmentType
from hpcvdj.recombination.names import alleles_by_name, normal_name
from hpcvdj.recombination.origin import Origin, species_in
from hpcvdj.recombination.parts import letters
from hpcvdj.recombination.selection import SelectionFactor

Array = NDArray[np.float64]

T = TypeVar("T")

BASES = "ACGT"
"""The order of bases in the arrays of a model."""

ALLOWED_ERROR = 1e-3
"""How far the sum of a distribution may be from 1: files have six digits."""

MOST_LOST = 0.5
"""The largest share of a gene's recombinations that may delete all of it."""


@dataclass(frozen=True)
class Template:
    """An allele of a model.

    allele    the name
    sequence  the sequence in the model, upper case
    segment   the part in the junction; empty if the allele is not functional or its anchor is unknown: it then cannot
              contribute
    extended  `segment` with all P-nucleotides that it can have; those of D are at both ends
    p5        how many P-nucleotides are before `segment`
    function  F, ORF or P, as in IMGT; in parentheses or brackets if that is not certain
    anchor    of an allele without `segment`, where the codon of Cys 104 or Phe/Trp 118 begins in `sequence`; 0 if that
              is not known
    """

    allele: str
    sequence: str
    segment: str
    extended: str
    p5: int = 0
    function: str = "F"
    anchor: int = 0

    def letters(self, segment: SegmentType) -> str:
        """Return a letter for each base of `extended`, as in `parts`; `segment` is V, D or J."""
        return letters(segment, len(self.segment), self.p5, len(self.extended) - len(self.segment) - self.p5)


NEVER = 1e-6
"""An allele that is so much less probable than another one of its gene is one that a model never chooses.  Inference
leaves 5e-12 (TRBV15*01) and 6e-29 (IGHV7-4-1*01) in OLGA's models; the next larger ratio in these is 7e-5."""

ANY = "any"
"""The name of the set of all V or J alleles, which rows without calls have."""


@dataclass(frozen=True)
class Alleles:
    """A set of V or J alleles of a model.

    allele  its name in results: the names of the alleles
    places  the indices of the alleles in the model, ascending, without those that cannot make a junction
    """

    allele: str
    places: tuple[int, ...]
    locus: str = ""

    def __hash__(self) -> int:
        # Python keeps the hash of a text; that of all fields would be computed millions of times for a cohort.
        return hash(self.allele)


@dataclass(frozen=True)
class Insertion:
    """The distribution of inserted bases between two segments; bases are in the order A, C, G, T.

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


def kept_with_model(function: Callable[..., T]) -> Callable[..., T]:
    """Keep what a function makes of a model, its first argument, as long as there is the model.

    Slices and tables have the same alleles.
    """
    of_models: dict[int, dict[Any, T]] = {}

    @wraps(function)
    def known(model: "Model", *key: Any) -> T:
        if id(model) not in of_models:
            of_models[id(model)] = {}
            finalize(model, of_models.pop, id(model), None)
        made = of_models[id(model)]
        if key not in made:
            made[key] = function(model, *key)
        return made[key]

    return known


@dataclass(frozen=True)
class Model:
    """A recombination model of one locus.

    name         the name in messages and results
    digest       SHA-256 of the files of the model
    v, d, j      the alleles; `d` is empty for a locus without D genes
    v_deletions  float64 [V, k]: P(k bases missing from the extended segment | V)
    j_deletions  float64 [J, k]
    d_deletions  float64 [D, l, r]: P(l missing on the left, r on the right | D)
    insertions   the insertions VD and DJ, or VJ alone
    p_v          float64 [V]: P(V) of a locus with D genes
    p_dj         float64 [D, J]: P(D, J) of a locus with D genes
    p_vj         float64 [V, J]: P(V, J) of a locus without D genes
    p_vdj        float64 [V, D, J]: P(V, D, J) if D and J depend on V; `p_v` and `p_dj` are then its marginals, which
                 OLGA uses
    joint        use P(V, D, J) = `p_vdj` instead of P(V) P(D, J)
    error_rate   P(a base of V, D or J, including P-nucleotides, is misread) in the rows that the model was inferred
                 from; it is a property of the sequencing, and generation probabilities do not use it
    selection    the selection factor of productive junctions, if one was inferred
    ties         groups of V genes that count as one gene: a call of one means all of them
    by_gene      a call of an allele that the model lacks, or (nearly) never chooses, means all alleles of its gene
    corrected    what was wrong in the files with each corrected allele
    faults       what is wrong with each allele that was not corrected: do not rest a test on junctions with such an
                 allele.  A fault that is not certain begins with `perhaps`
    origin       what the model was inferred from, and its purpose
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
    selection: SelectionFactor | None = None
    ties: tuple[tuple[str, ...], ...] = ()
    by_gene: bool = False
    corrected: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{len(self.templates(kind))} {kind}" for kind in SEGMENT_TYPES.values())
        return f"<Model {self.name}: {numbers} alleles{', P(V, D, J)' * self.joint}>"

    def with_joint_choice(self) -> "Model":
        """Return the model that uses its P(V, D, J).  Raise InputError if it has none."""
        if self.p_vdj is None:
            only = "P(V) and P(D, J)" if self.has_d else "P(V, J), as there is no D gene"
            raise InputError(f"{self.name}: has no P(V, D, J), only {only}; leave out {option('joint')}")
        return replace(self, joint=True)

    def with_ties(self) -> "Model":
        """Return the model in which V genes that reads hardly tell apart count as one gene: see `twin_genes`.

        Raises InputError if the model lacks the bases that tell them apart, as after inference from a germline table.
        """
        if not any(map(_read_before, self.v)):
            raise InputError(
                f"{self.name}: {option('ties', 'auto')} compares the {READ_BASES} bases of V genes before Cys 104, and "
                "this model does not have them; leave it out"
            )
        return replace(self, ties=tuple(twin_genes(self.v)))

    def require_selection(self) -> SelectionFactor:
        """Return the selection factor.  Raise InputError if there is none."""
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

    def facts(self, *, selection: bool = True) -> dict[str, str | int]:
        """Return the facts that results record; without `selection`, those that decide what recombination makes."""
        factor = {} if self.selection is None or not selection else {"selection_sha256": self.selection.digest}
        ties = {"ties": ";".join(map(",".join, self.ties))} if self.ties else {}
        by_gene = {"missing_alleles": "gene"} if self.by_gene else {}
        corrected = {"model_corrected": listed(self.corrected)} if self.corrected else {}
        named = {"model": self.name, "model_sha256": self.digest}
        return {**named, **corrected, **self.origin.facts(), **factor, **ties, **by_gene}

    @property
    def locus(self) -> str:
        """The locus of the J genes, such as TRB; empty if their names do not tell it."""
        return next(filter(None, (locus_of(template.allele) for template in self.j)), "")

    @property
    def species(self) -> str:
        """The species, from the facts about the inference or else from the name; empty if it is not known."""
        return self.origin.species or species_in(self.name)

    @property
    def caution(self) -> str | None:
        """A reason not to trust tests that rest on the model, or None."""
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
        """Return P(allele), float64 [alleles], of V, D or J."""
        if segment == "V":
            return self.p_v if self.has_d else self.p_vj.sum(axis=1)
        if segment == "D":
            return np.asarray(self.p_dj.sum(axis=1))
        return np.asarray(self.p_dj.sum(axis=0) if self.has_d else self.p_vj.sum(axis=0))

    def templates(self, segment: SegmentType) -> tuple[Template, ...]:
        """Return the alleles of V, D or J."""
        return {"V": self.v, "D": self.d, "J": self.j}[segment]

    @kept_with_model
    def contributing(self, segment: SegmentType) -> tuple[int, ...]:
        """Return indices of the alleles with a segment and P > 0."""
        alleles = enumerate(zip(self.templates(segment), self.p_segment(segment), strict=True))
        return tuple(k for k, (template, chance) in alleles if template.segment and chance > 0)

    @cached_property
    def _names(self) -> dict[SegmentType, dict[str, tuple[int, ...]]]:
        kinds = SEGMENT_TYPES.values()
        return {segment: alleles_by_name(t.allele for t in self.templates(segment)) for segment in kinds}

    def find(self, segment: SegmentType, name: str) -> tuple[int, ...] | None:
        """Return the indices of the alleles that a name (allele, gene, family) means; None if the model lacks it.

        Case, leading zeros and '/' do not matter: TRBV07-01*02 is TRBV7-1*02.  A gene without '-' is also the first
        member of its family: TRBV2-1 is TRBV2.
        """
        indices = self._names[segment].get(normal_name(name))
        if self.by_gene and not self.makes(segment, indices or ()):
            indices = self.of_gene(segment, name) or indices
        if indices is None or not self.ties or segment != "V":
            return indices
        return tuple(sorted({tied for index in indices for tied in self._tied[index]}))

    @cached_property
    def _chosen(self) -> dict[SegmentType, set[int]]:
        """The alleles that are at least `NEVER` times as probable as the most probable one of their gene."""
        chosen: dict[SegmentType, set[int]] = {"V": set(), "J": set()}
        for segment, indices in chosen.items():
            p, genes = self.p_segment(segment), [t.allele.partition("*")[0] for t in self.templates(segment)]
            most: dict[str, float] = {}
            for k in self.contributing(segment):
                most[genes[k]] = max(most.get(genes[k], 0.0), p[k])
            indices.update(k for k in self.contributing(segment) if p[k] >= NEVER * most[genes[k]])
        return chosen

    def makes(self, segment: SegmentType, indices: Iterable[int]) -> bool:
        """Return whether the model makes junctions with one of these V or J alleles, and not hardly ever."""
        return not self._chosen[segment].isdisjoint(indices)

    def of_gene(self, segment: SegmentType, allele: str) -> tuple[int, ...]:
        """Return the indices of all alleles of the gene of an allele; none for another name, or if none is made."""
        gene, star, _ = allele.partition("*")
        indices = self._names[segment][normal_name(gene)] if star and self._is_gene(segment, gene) else ()
        return indices if self.makes(segment, indices) else ()

    def _is_gene(self, segment: SegmentType, name: str) -> bool:
        """Return whether the name is that of a single gene of the model."""
        indices = self._names[segment].get(normal_name(name), ())
        return len({self.templates(segment)[index].allele.partition("*")[0] for index in indices}) == 1

    @cached_property
    def _tied(self) -> list[tuple[int, ...]]:
        """For each V allele, the alleles of all genes that count as one with its gene; of other genes, itself alone."""
        genes = [template.allele.partition("*")[0] for template in self.v]
        group = {gene: ties for ties in self.ties for gene in ties}
        return [
            tuple(k for k, other in enumerate(genes) if other in group[gene]) if gene in group else (index,)
            for index, gene in enumerate(genes)
        ]

    def names_several(self, alleles: str) -> bool:
        """Return whether alleles or genes, joined by commas, are of several genes that do not count as one."""
        genes = {name.partition("*")[0] for name in alleles.split(",")}
        return len(genes) > 1 and not any(genes <= {*ties} for ties in self.ties)

    def alleles(self, segment: SegmentType, places: Iterable[int] | None = None) -> Alleles:
        """Return the alleles at these indices, by default all; those that cannot contribute are in the name only."""
        if places is None:
            return Alleles(ANY, self.contributing(segment))
        indices = sorted(set(places))
        names = ",".join(self.templates(segment)[index].allele for index in indices)
        return Alleles(names, tuple(index for index in indices if index in self.contributing(segment)))

    def resolve(self, segment: SegmentType, call: str) -> Alleles | Exclusion:
        """Return the alleles of an AIRR `v_call` or `j_call`, or the reason why there are none.

        A call with several names means all of them.  Orphons that the model lacks do not count if it has another name
        of the call.
        """
        names = self._meant(segment, call)
        if not names:
            return Exclusion.of(ExclusionKind.NO_CALL, segment=segment)
        indices = {name: self.find(segment, name) for name in names}
        lacking = [name for name in names if indices[name] is None]
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
        return self.alleles(segment, chain.from_iterable(filter(None, indices.values())))

    def lacks(self, segment: SegmentType, call: str) -> bool:
        """Return whether a call names a gene or allele that the model lacks."""
        return any(self.find(segment, name) is None for name in self._meant(segment, call))

    def _meant(self, segment: SegmentType, call: str) -> list[str]:
        # `find` would take a tie for one allele, of the gene that it names first.
        return meant_by(call, lambda name: self._names[segment].get(normal_name(name)))


READ_BASES = 100
"""Bases of V before Cys 104 that reads are assumed to cover.  Among human TRBV genes, TRBV12-3 and TRBV12-4 then count
as one gene, and so do TRBV6-2 and TRBV6-3."""


def twin_genes(templates: Sequence[Template]) -> list[tuple[str, ...]]:
    """Return groups of V genes that reads hardly tell apart: they are equal from `READ_BASES` before Cys 104 on.

    Programs that align reads call one of these genes out of habit, or all in turn.  In the junction, two alleles are
    compared over the length of the shorter one.  Pairs of genes that have a gene in common are in the same group.
    """
    ends: dict[str, set[tuple[str, str]]] = {}
    for template in templates:
        if before := _read_before(template):
            ends.setdefault(template.allele.partition("*")[0], set()).add((before, template.segment))
    group = {gene: {gene} for gene in ends}
    for gene, other in combinations(ends, 2):
        if any(_equal(a, b) for a in ends[gene] for b in ends[other]):
            joined = group[gene] | group[other]
            group |= dict.fromkeys(joined, joined)
    groups = dict.fromkeys(tuple(other for other in ends if other in group[gene]) for gene in ends)
    return [genes for genes in groups if len(genes) > 1]


def _read_before(template: Template) -> str:
    """Return the `READ_BASES` bases of a V allele before the junction; empty if they are not all known."""
    before = template.sequence[: template.sequence.rfind(template.segment)][-READ_BASES:] if template.segment else ""
    return before if len(before) == READ_BASES and set(before) <= set("ACGT") else ""


def _equal(allele: tuple[str, str], other: tuple[str, str]) -> bool:
    """Return whether two V alleles, (bases before the junction, bases in it), are equal."""
    (before, inside), (other_before, other_inside) = allele, other
    return before == other_before and (inside.startswith(other_inside) or other_inside.startswith(inside))


def listed(alleles: Mapping[str, str]) -> str:
    """Return the alleles and their faults, in one line."""
    return ", ".join(f"{allele} ({what})" for allele, what in alleles.items())


def stationary(transitions: Array) -> Array:
    """Return the distribution of bases, float64 [4], that `transitions` leaves unchanged."""
    reached = np.linalg.matrix_power(np.eye(4) + (transitions > 0), 4) > 0
    # A base is transient if no way leads back to it.  Its probability is 0, which the equations give as ±1e-17.
    kept = np.flatnonzero((reached <= reached.T).all(axis=0))
    equations = np.vstack([transitions[np.ix_(kept, kept)] - np.eye(len(kept)), np.ones(len(kept))])
    solution: Array = np.zeros(4)
    solution[kept] = np.linalg.lstsq(equations, np.eye(len(kept) + 1)[-1], rcond=None)[0]
    return np.maximum(solution, 0.0)


def vanishing(model: Model) -> dict[str, str]:
    """Return the alleles of genes that make no junction in most recombinations, as deletions leave nothing of them."""
    faults: dict[str, str] = {}
    for segment, deletions in zip(V_AND_J, (model.v_deletions, model.j_deletions), strict=True):
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
    """Raise InputError, which names the event, unless all distributions of the model add up to 1."""

    def require(values: Array, what: str) -> None:
        if not np.isfinite(values).all() or (values < 0).any():
            raise InputError(f"{model.name}: {what} has values that are no probabilities; read the file again")
        if abs(values.sum() - 1) > ALLOWED_ERROR:
            raise InputError(f"{model.name}: {what} adds up to {values.sum():.6g}, not 1; correct the file")

    # This is false for NaN, too.
    if not 0 <= model.error_rate < 1:
        raise InputError(f"{model.name}: the error rate is {model.error_rate:.3g}, no probability; read the file again")
    if model.has_d:
        require(model.p_v, "P(V)")
        require(model.p_dj, "P(D, J)")
    else:
        require(model.p_vj, "P(V, J)")
    all_deletions = model.v_deletions, model.j_deletions, model.d_deletions
    for segment, deletions in zip((*V_AND_J, SEGMENT_TYPES["D"]), all_deletions, strict=True):
        for index in model.contributing(segment):
            # If all are zero, the inference never saw the allele, and the model never makes it.
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
