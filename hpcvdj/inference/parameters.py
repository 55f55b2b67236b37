"""The parameters of a model that inference changes: the M step, starting points, and extrapolated steps.

The M step takes the share of each event among the expected counts of its kind.  The first base of an insertion is not a
parameter in files of IGoR's format: it has the stationary distribution of the steps from base to base.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hpcvdj.errors import InputError
from hpcvdj.kernels.inference.layout import Expected
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.igor import FUNCTIONAL
from hpcvdj.recombination.models import Array, Insertion, Model, stationary
from hpcvdj.recombination.possible import allowed_deletions
from hpcvdj.runs.run import Run

SMALLEST = 1e-300
"""The smallest probability that is not 0."""

GENE_USAGE = ("v_choice", "j_choice")

ROWS_OF_START = 10.0
"""The rows that are counted in addition for each V allele in P(J | V)."""

_LARGEST_CHANGE = 3.0
"""The largest change of the logarithm of a probability by an extrapolated step, relative to the last step of EM."""

_DELETIONS = {"v_3_del": "v_deletions", "j_5_del": "j_deletions", "d_del": "d_deletions"}
"""The field of a model that each parameter of deletions is."""

PARAMETERS = (
    "v_choice", "j_choice", "d_gene", "v_3_del", "d_del", "j_5_del", "vd_ins", "dj_ins", "vd_dinucl", "dj_dinucl",
    "vj_ins", "vj_dinucl",
)  # fmt: skip
"""The parameters that can be inferred or fixed: IGoR's events, and `d_del` for the deletions at both ends of D."""


def parameter_names(model: Model) -> tuple[str, ...]:
    """Return the members of `PARAMETERS` that a model has."""
    lacks = ("vj_",) if model.has_d else ("d", "vd_")
    return tuple(name for name in PARAMETERS if not name.startswith(lacks))


def free_parameters(model: Model, only: Sequence[str] = (), fixed: Sequence[str] = ()) -> frozenset[str]:
    """Return the parameters that are inferred; raises InputError for an unknown name, or if none is left."""
    names = parameter_names(model)
    for name in (*only, *fixed):
        if name not in names:
            raise InputError(f"parameter {name!r}: {model.name} has {', '.join(names)}; name one of these")
    free = frozenset(only or names) - frozenset(fixed)
    if not free:
        raise InputError(f"{', '.join(only or names)} are fixed, so there is nothing to infer; fix fewer")
    return free


def functional(model: Model, segment: SegmentType) -> Array:
    """Return 1 for each allele that is functional and has a segment, else 0; float64 [alleles]."""
    return np.array(
        [float(bool(template.segment) and template.function in FUNCTIONAL) for template in model.templates(segment)]
    )


def pairs_of(start: Model, expected: Expected) -> Array | None:
    """Return the rows that are counted in addition for P(J | V), float64 [V, J]; None with D genes.

    P(J | V) has so many parameters that most rare pairs are in no row, and would become impossible.  A V allele has J
    in the proportions of the start, times how much more common each J is among the rows than at the start.

    expected  the counts under the start
    """
    if start.has_d:
        return None
    of_j = start.p_vj.sum(axis=0)
    pairs = start.p_vj * (expected.choices.sum(axis=0) / np.where(of_j > 0, of_j, 1.0))
    return ROWS_OF_START * _shares(pairs, np.zeros_like(pairs), 1)


def log_prior(model: Model, prior: float, pairs: Array | None = None) -> float:
    """Return the logarithm of the prior that `maximised` takes, up to a constant.

    It is a Dirichlet prior of P(V) and P(J), and one of P(J | V).
    """
    of_pairs = 0.0
    if pairs is not None:
        conditional = _shares(model.p_vj, np.ones_like(model.p_vj), 1)
        of_pairs = float((pairs * np.log(np.maximum(conditional, SMALLEST))).sum())
    total = 0.0
    for segment in ("V", "J"):
        chances = model.p_segment(segment)[functional(model, segment) > 0]  # type: ignore[arg-type]
        total += float(np.log(np.maximum(chances, SMALLEST)).sum())
    return of_pairs + (prior * total if prior else 0.0)


def maximised(
    model: Model, expected: Expected, free: frozenset[str], prior: float = 0.0, pairs: Array | None = None
) -> Model:
    """Take the M step: return the model whose free parameters are most likely, given expected counts.

    prior  count that is added for each functional V and J allele
    pairs  counts that are added for P(J | V), as `pairs_of` returns them

    Parameters without counts stay as they are.
    """
    insertions = []
    counts = zip(expected.lengths, expected.first, expected.transitions, strict=True)
    for (name, insertion), (lengths, first, steps) in zip(model.named_insertions.items(), counts, strict=True):
        changed = insertion
        if f"{name.lower()}_ins" in free:
            changed = replace(changed, lengths=_shares(lengths, insertion.lengths))
        if f"{name.lower()}_dinucl" in free:
            transitions = most_likely_steps(insertion.transitions, first, steps)
            changed = replace(changed, transitions=transitions, first=stationary(transitions))
        insertions.append(changed)
    deletions = {
        "v_deletions": _shares(expected.v, model.v_deletions, 1),
        "j_deletions": _shares(expected.j, model.j_deletions, 1),
        "d_deletions": _shares(expected.d, model.d_deletions, (1, 2)),
    }
    changes: dict[str, Any] = {field: deletions[field] for name, field in _DELETIONS.items() if name in free}
    changes |= _choices(model, expected, free, prior, pairs)
    error_rate = float(_shares(expected.errors, errors(model))[0])
    return replace(model, insertions=tuple(insertions), error_rate=error_rate, **changes)


def _shares(counts: Array, before: Array, axes: int | tuple[int, ...] | None = None) -> Array:
    """Divide counts by their sums over `axes`; keep `before` where a sum is 0."""
    sums = counts.sum(axis=axes, keepdims=True)
    return np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), before)


def _choices(
    model: Model, expected: Expected, free: frozenset[str], prior: float, pairs: Array | None
) -> dict[str, Any]:
    """Return P(V) and P(D, J), or P(V, J)."""
    v_prior, j_prior = (prior * functional(model, segment) for segment in ("V", "J"))  # type: ignore[arg-type]
    if not model.has_d:
        of_j = (0.0 if pairs is None else pairs.T), j_prior
        return {"p_vj": _product(model.p_vj.T, expected.choices.T, free, ("j_choice", "v_choice"), *of_j, v_prior).T}
    of_d = 0.0, np.zeros(len(model.d))
    choices = {"p_dj": _product(model.p_dj, expected.dj, free, ("d_gene", "j_choice"), *of_d, j_prior)}
    if "v_choice" in free:
        choices["p_v"] = _shares(expected.choices + v_prior, model.p_v)
    return choices


def _product(
    before: Array, counts: Array, free: frozenset[str], names: tuple[str, str], added: Array | float, row_prior: Array,
    column_prior: Array,
) -> Array:  # fmt: skip
    """Return P(column) P(row | column), of which either factor may be fixed.

    names      the parameters of rows and of columns
    added      counts that are added for P(row | column) alone
    row_prior  the prior of rows, which is divided among the columns by the row's share in each of them
    """
    if not free.intersection(names):
        return before
    columns = before.sum(axis=0)
    conditional = _shares(before, np.zeros_like(before), 0)
    if row_prior.any():
        sums = before.sum(axis=1, keepdims=True)
        counts = counts + row_prior[:, None] * (before / np.where(sums > 0, sums, 1.0))
    if names[0] in free:
        conditional = _shares(counts + added, conditional, 0)
    if names[1] in free:
        # A column without rows is impossible, and its prior would be lost to the others.
        columns = _shares((counts.sum(axis=0) + column_prior) * conditional.any(axis=0), columns)
    return np.asarray(columns * conditional)


def most_likely_steps(before: Array, first: Array, steps: Array) -> Array:
    """Return probabilities R of steps between bases, [to, from], with a larger Σ steps · log R + Σ first · log π(R).

    before  the probabilities of steps until now
    first   expected counts of first bases, [4]
    steps   expected counts of steps, [to, from]

    π is the stationary distribution of R.
    """

    def value(transitions: Array) -> float:
        chances = np.concatenate((transitions.ravel(), stationary(transitions)))
        counts = np.concatenate((steps.ravel(), first))
        counted = counts > 0
        return float(counts[counted] @ np.log(np.maximum(chances[counted], SMALLEST)))

    # To count a first base as a step from a base before it comes near the maximum, and usually improves the value.
    at = stationary(before)
    reverse = before * at / np.where(at > 0, at, 1.0)[:, None]
    near = _shares(steps + reverse * first[:, None], before, 0)
    if value(near) >= value(before):
        return near
    from scipy.optimize import minimize

    minimum = minimize(lambda logs: -value(_columns(logs, before)), np.zeros(16), method="L-BFGS-B")
    refined = _columns(minimum.x, before)
    return refined if value(refined) > value(before) else before


def _columns(logs: Array, base: Array) -> Array:
    """Multiply each probability of `base` by an exponential, and let columns add up to 1."""
    out = base * np.exp(np.clip(logs.reshape(4, 4), -50, 50))
    return np.asarray(out / out.sum(axis=0))


def uniform(model: Model) -> Model:
    """Return the model with the same alleles and sizes in which all possible outcomes are equally likely."""

    def of(allowed: Array, axes: int | tuple[int, ...] | None = None) -> Array:
        return _shares(allowed, np.zeros_like(allowed), axes)

    v, j = (
        np.array([float(bool(template.segment)) for template in model.templates(segment)]) for segment in ("V", "J")
    )  # type: ignore[arg-type]
    of_v, of_d, of_j = allowed_deletions(model)
    changes: dict[str, Any] = {"v_deletions": of(of_v, 1), "j_deletions": of(of_j, 1)}
    if model.has_d:
        changes["d_deletions"] = of(of_d, (1, 2))
        changes |= {"p_v": of(v), "p_dj": of(np.ones((len(model.d), 1)) * j)}
    else:
        changes["p_vj"] = of(v[:, None] * j)
    insertions = tuple(
        Insertion(of(np.ones(len(insertion.lengths))), np.full((4, 4), 0.25), np.full(4, 0.25))
        for insertion in model.insertions
    )
    return replace(model, insertions=insertions, p_vdj=None, joint=False, **changes)


def mixed(model: Model, share: float) -> Model:
    """Mix each distribution of a model with a share of the uniform one, as a probability of 0 would stay 0."""
    arrays = zip(parameters(model), parameters(uniform(model)), strict=True)
    values = [(1 - share) * array + share * even for array, even in arrays]
    return with_parameters(model, normalised(values, model))


def with_fixed(model: Model, other: Model, free: frozenset[str]) -> Model:
    """Return `model` with the parameters of `other` that are not free."""
    insertions = []
    for (name, insertion), before in zip(model.named_insertions.items(), other.insertions, strict=True):
        changed = insertion if f"{name.lower()}_ins" in free else replace(insertion, lengths=before.lengths)
        if f"{name.lower()}_dinucl" not in free:
            changed = replace(changed, transitions=before.transitions, first=before.first)
        insertions.append(changed)
    changes: dict[str, Any] = {field: getattr(other, field) for name, field in _DELETIONS.items() if name not in free}
    if not model.has_d:
        changes["p_vj"] = _product_of(model.p_vj.T, other.p_vj.T, free, ("j_choice", "v_choice")).T
    else:
        changes["p_dj"] = _product_of(model.p_dj, other.p_dj, free, ("d_gene", "j_choice"))
        if "v_choice" not in free:
            changes["p_v"] = other.p_v
    return replace(model, insertions=tuple(insertions), **changes)


def _product_of(inferred: Array, other: Array, free: frozenset[str], names: tuple[str, str]) -> Array:
    """Return P(column) P(row | column), each factor from `inferred` if it is free, else from `other`.

    names  the parameters of rows and of columns

    If a column is 0 in the source of P(row | column), the other model's P(row | column) is taken.
    """
    if not free.intersection(names):
        return other
    row_source, column_source = (inferred if name in free else other for name in names)
    rest = other if row_source is inferred else inferred
    conditional = _shares(row_source, _shares(rest, np.zeros_like(rest), 0), 0)
    return np.asarray(column_source.sum(axis=0) * conditional)


def errors(model: Model) -> Array:
    """Return P(a template base is misread) and P(it is not), [2]."""
    return np.array([model.error_rate, 1 - model.error_rate])


def parameters(model: Model) -> list[Array]:
    """Return the arrays of a model's parameters."""
    return [
        model.p_v, model.p_dj, model.p_vj, model.v_deletions, model.d_deletions, model.j_deletions, errors(model),
        *(insertion.lengths for insertion in model.insertions),
        *(insertion.transitions for insertion in model.insertions),
    ]  # fmt: skip


def shared_model(of_root: Model | None, like: Model, run: Run) -> Model:
    """Share root's model with every rank; the other ranks pass None.

    like  a model of the same alleles
    """
    return with_parameters(of_root or like, run.broadcast(parameters(of_root) if of_root is not None else None))


def with_parameters(model: Model, values: Sequence[Array]) -> Model:
    """Return `model` with other arrays, in the order of `parameters`."""
    p_v, p_dj, p_vj, v, d, j, reading, *chains = values
    number = len(model.insertions)
    insertions = tuple(
        Insertion(lengths, steps, stationary(steps))
        for lengths, steps in zip(chains[:number], chains[number:], strict=True)
    )
    return replace(
        model, insertions=insertions, p_vdj=None, joint=False, p_v=p_v, p_dj=p_dj, p_vj=p_vj, v_deletions=v,
        d_deletions=d, j_deletions=j, error_rate=float(reading[0]),
    )  # fmt: skip


def normalised(values: Sequence[Array], model: Model) -> list[Array]:
    """Divide each distribution by its sum; the arrays are in the order of `parameters`."""
    number = len(model.insertions)
    axes = [None, None, None, 1, (1, 2), 1, None, *[None] * number, *[0] * number]
    return [_shares(value, value, axis) for value, axis in zip(values, axes, strict=True)]  # type: ignore[arg-type]


def extrapolated(points: Sequence[Model], expected: Expected, longest: float) -> tuple[Model, float]:
    """Extrapolate three points of successive EM steps to a step that is worth many; also return its length.

    This is the squared extrapolation of Varadhan and Roland (Scandinavian Journal of Statistics 35, 2008), of the
    logarithms of probabilities.  Differences are weighted by expected counts, which is the metric of the likelihood.

    expected  the counts at the second point
    longest   the largest length, in steps of EM; a length of 1 gives the third point
    """
    logs = [[np.log(np.maximum(value, SMALLEST)) for value in parameters(point)] for point in points]
    counts = [expected.choices, expected.dj, expected.choices, expected.v, expected.d, expected.j, expected.errors]
    counts += [*expected.lengths, *expected.transitions]
    if points[0].has_d:
        counts[2] = points[0].p_vj
    else:
        counts[0] = points[0].p_v
    first = [b - a for a, b in zip(logs[0], logs[1], strict=True)]
    second = [c - 2 * b + a for a, b, c in zip(*logs, strict=True)]

    def norm(differences: Sequence[Array]) -> float:
        return sum(float((w * change * change).sum()) for w, change in zip(counts, differences, strict=True))

    curvature = norm(second)
    step = min(longest, max(1.0, float(np.sqrt(norm(first) / curvature)))) if curvature > 0 else 1.0
    out = []
    for a, r, v, c in zip(logs[0], first, second, logs[2], strict=True):
        far = a + 2 * step * r + step * step * v
        out.append(
            np.where(c > np.log(SMALLEST) + 1, np.exp(np.clip(far, c - _LARGEST_CHANGE, c + _LARGEST_CHANGE)), 0.0)
        )
    return with_parameters(points[0], normalised(out, points[0])), step
