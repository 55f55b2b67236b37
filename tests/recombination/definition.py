"""The definition of the generation probability: the sum over all scenarios that give a junction, one by one.

The code is slow.  The kernels are tested against it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hpcvdj.recombination import likely
from hpcvdj.recombination.likely import insertion_probability
from hpcvdj.recombination.models import Array, Model, Template


@dataclass(frozen=True)
class Scenario(likely.Scenario):
    """A scenario, and how many bases of V, D and J differ from the junction; 0 without sequencing errors."""

    misread: int = 0


def misread(template: str, bases: str) -> int:
    """Return how many bases of a template differ from those of a junction; both have the same length."""
    return sum(letter != read for letter, read in zip(template, bases, strict=True))


def reading_probability(template: str, bases: str, error_rate: float) -> float:
    """Return P(the bases are read | the template); each is misread with probability `error_rate`, as any other base.

    This is the error model of IGoR (Marcou et al. 2018).
    """
    errors = misread(template, bases)
    return (1 - error_rate) ** (len(template) - errors) * (error_rate / 3) ** errors


def scenarios(
    model: Model, junction: str, v: Iterable[int], j: Iterable[int], error_rate: float = 0.0
) -> Iterator[Scenario]:
    """Yield all scenarios with P > 0 that give `junction`, with these V and J alleles.

    junction    bases A, C, G, T in upper case, including the codons of Cys 104 and Phe/Trp 118
    v, j        indices of the alleles in the model
    error_rate  P(a base of V, D or J, including P-nucleotides, is misread); inserted bases are never misread, as a
                misread base looks like another insertion
    """
    j = list(j)
    for v_allele in v:
        v_template, v_deletions = model.v[v_allele], model.v_deletions[v_allele]
        for kept_v, p_v in kept_lengths(v_template, v_deletions, junction, at_start=True, error_rate=error_rate):
            v_misread = misread(v_template.extended[:kept_v], junction[:kept_v])
            for j_allele in j:
                j_template, j_deletions = model.j[j_allele], model.j_deletions[j_allele]
                for kept_j, p_j in kept_lengths(
                    j_template, j_deletions, junction, at_start=False, error_rate=error_rate
                ):
                    if kept_v + kept_j > len(junction):
                        continue
                    middle, end = junction[kept_v : len(junction) - kept_j], junction[len(junction) - kept_j :]
                    deleted = len(v_template.extended) - kept_v, len(j_template.extended) - kept_j
                    sides = v_misread + misread(j_template.extended[deleted[1] :], end)
                    for d, d_deleted, inserted, p_middle, errors in _middles(
                        model, middle, v_allele, j_allele, error_rate
                    ):
                        probability = p_v * p_j * p_middle
                        if probability > 0:
                            yield Scenario(
                                v_allele, d, j_allele, deleted[0], d_deleted, deleted[1], inserted, probability,
                                sides + errors,
                            )  # fmt: skip


def pgen(
    model: Model,
    junction: str,
    v: Iterable[int] | None = None,
    j: Iterable[int] | None = None,
    error_rate: float = 0.0,
) -> float:
    """Return the generation probability of a junction: the sum over its scenarios, by default with all alleles."""
    v = model.contributing("V") if v is None else v
    j = model.contributing("J") if j is None else j
    return sum(scenario.probability for scenario in scenarios(model, junction, v, j, error_rate))


def kept_lengths(
    template: Template, deletions: Array, junction: str, *, at_start: bool, error_rate: float = 0.0
) -> Iterator[tuple[int, float]]:
    """Yield (bases kept, P(deletion and reading the junction)) of the forms of a V or J segment that fit the junction.

    A form has at least one base.
    """
    extended = template.extended
    for kept in range(1, min(len(extended), len(junction)) + 1):
        deleted = len(extended) - kept
        form, bases = (extended[:kept], junction[:kept]) if at_start else (extended[deleted:], junction[-kept:])
        reading = reading_probability(form, bases, error_rate)
        if reading > 0 and deleted < len(deletions):
            yield kept, float(deletions[deleted]) * reading


def _middles(
    model: Model, middle: str, v: int, j: int, error_rate: float
) -> Iterator[tuple[int | None, tuple[int, int] | None, tuple[str, ...], float, int]]:
    """Yield (D, its deletions, insertions, probability, misread bases) of all that can be between V and J.

    The probability includes that of the choice of V, D and J.
    """
    if not model.has_d:
        yield None, None, (middle,), float(model.p_vj[v, j]) * insertion_probability(middle, model.insertions[0]), 0
        return
    vd, dj = model.insertions
    chances = model.p_choice[v, :, j]
    for d, template in enumerate(model.d):
        chance = float(chances[d])
        length = len(template.extended)
        for left in range(model.d_deletions.shape[1]):
            for right in range(model.d_deletions.shape[2]):
                kept = length - left - right
                p_deletions = float(model.d_deletions[d, left, right])
                if kept < 0 or p_deletions == 0:
                    continue
                form = template.extended[left : length - right]
                for start in range(len(middle) - kept + 1):
                    bases = middle[start : start + kept]
                    reading = reading_probability(form, bases, error_rate)
                    if reading > 0:
                        before, after = middle[:start], middle[start + kept :]
                        inserted = insertion_probability(before, vd) * insertion_probability(after[::-1], dj)
                        probability = chance * p_deletions * inserted * reading
                        yield d, (left, right), (before, after), probability, misread(form, bases)
