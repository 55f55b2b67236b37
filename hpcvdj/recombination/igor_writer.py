"""Write recombination models in IGoR's format, so that OLGA, IGoR and other programs can read them."""

from collections.abc import Iterator, Sequence

import numpy as np

from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.igor import FILES
from hpcvdj.recombination.models import BASES, Array, Insertion, Model


def model_texts(model: Model) -> dict[str, str]:
    """Return the texts of a model's files, by their names; numbers have all their digits.

    An anchor that is not known is 0, as in OLGA.
    """
    texts = _params(model), _marginals(model), _anchors(model, "V"), _anchors(model, "J")
    return {name: "\n".join([*lines, ""]) for name, lines in zip(FILES, texts, strict=True)}


def _params(model: Model) -> Iterator[str]:
    # In IGoR, an event must come after those that it depends on.
    priority = {"V": 7 if model.p_vdj is None else 8, "J": 7 if model.has_d else 6}
    yield "@Event_list"
    alleles = {"V": model.v, "D": model.d, "J": model.j}
    for segment, templates in alleles.items():
        if templates:
            name = "d_gene" if segment == "D" else f"{segment.lower()}_choice"
            yield f"#GeneChoice;{segment}_gene;Undefined_side;{priority.get(segment, 6)};{name}"
            yield from (f"%{template.allele};{template.sequence};{index}" for index, template in enumerate(templates))
    for gene, side, name, most, size in _deletions(model):
        yield f"#Deletion;{gene};{side};5;{name}"
        yield from (f"%{index - most};{index}" for index in range(size))
    for order, (name, insertion) in zip((4, 2), model.named_insertions.items(), strict=False):
        yield f"#Insertion;{name}_genes;Undefined_side;{order};{name.lower()}_ins"
        yield from (f"%{length};{length}" for length in range(len(insertion.lengths)))
        yield f"#DinucMarkov;{name}_genes;Undefined_side;{order - 1};{name.lower()}_dinucl"
        yield from (f"%{base};{index}" for index, base in enumerate(BASES))
    yield "@Edges"
    choice = {
        segment: f"GeneChoice_{segment}_gene_Undefined_side_prio{priority.get(segment, 6)}_size{len(templates)}"
        for segment, templates in alleles.items()
    }
    if model.has_d:
        yield f"%{choice['J']};{choice['D']}"
    if model.p_vdj is not None:
        yield f"%{choice['V']};{choice['D']}"
    if model.p_vdj is not None or not model.has_d:
        yield f"%{choice['V']};{choice['J']}"
    deletion = {
        (gene, side): f"Deletion_{gene}_{side}_prio5_size{size}" for gene, side, _, _, size in _deletions(model)
    }
    for (gene, side), text in deletion.items():
        yield f"%{choice[gene[0]]};{text}"
        if gene[0] == "D" and side == "Three_prime":
            yield f"%{deletion[gene, 'Five_prime']};{text}"
    yield from ("@ErrorRate", "#SingleErrorRate", repr(model.error_rate))


def _deletions(model: Model) -> Iterator[tuple[str, str, str, int, int]]:
    """Yield (gene, side, name, largest number of P-nucleotides, number of values) of each deletion."""
    most_v, most_j = (max(len(t.extended) - len(t.segment) for t in alleles) for alleles in (model.v, model.j))
    yield "V_gene", "Three_prime", "v_3_del", most_v, model.v_deletions.shape[1]
    yield "J_gene", "Five_prime", "j_5_del", most_j, model.j_deletions.shape[1]
    if model.has_d:
        most_5 = max(template.p5 for template in model.d)
        most_3 = max(len(template.extended) - len(template.segment) - template.p5 for template in model.d)
        yield "D_gene", "Five_prime", "d_5_del", most_5, model.d_deletions.shape[1]
        yield "D_gene", "Three_prime", "d_3_del", most_3, model.d_deletions.shape[2]


def _marginals(model: Model) -> Iterator[str]:
    yield from _event("v_choice", model.p_segment("V"))
    if model.p_vdj is not None:
        yield from _event("j_choice", _conditional(model.p_vdj.sum(axis=1)), ("v_choice",))
        yield from _event("d_gene", _conditional(model.p_vdj.transpose(0, 2, 1)), ("v_choice", "j_choice"))
    elif model.has_d:
        yield from _event("j_choice", model.p_segment("J"))
        yield from _event("d_gene", _conditional(model.p_dj.T), ("j_choice",))
    else:
        yield from _event("j_choice", _conditional(model.p_vj), ("v_choice",))
    yield from _event("v_3_del", model.v_deletions, ("v_choice",))
    yield from _event("j_5_del", model.j_deletions, ("j_choice",))
    if model.has_d:
        yield from _event("d_5_del", model.d_deletions.sum(axis=2), ("d_gene",))
        yield from _event("d_3_del", _conditional(model.d_deletions), ("d_gene", "d_5_del"))
    for name, insertion in model.named_insertions.items():
        yield from _event(f"{name.lower()}_ins", insertion.lengths)
        yield from _event(f"{name.lower()}_dinucl", _steps(insertion))


def _conditional(joint: Array) -> Array:
    """Return probabilities of the last axis given the others: each row divided by its sum, or zeros if that is 0."""
    sums = joint.sum(axis=-1, keepdims=True)
    return np.asarray(joint / np.where(sums > 0, sums, 1.0))


def _steps(insertion: Insertion) -> Array:
    """Return P(base | base before), with the base before as the first axis.

    After a base that no other one follows, all bases are equally likely, as every row must add up to 1.
    """
    steps = insertion.transitions.T.copy()
    steps[steps.sum(axis=1) == 0] = 0.25
    return steps.reshape(-1)


def _event(name: str, values: Array, parents: Sequence[str] = ()) -> Iterator[str]:
    yield f"@{name}"
    yield f"$Dim[{','.join(map(str, values.shape))}]"
    for indices in np.ndindex(values.shape[: len(parents)]):
        yield "#" + ",".join(f"[{parent},{index}]" for parent, index in zip(parents, indices, strict=True))
        yield "%" + ",".join(map(repr, values[indices].tolist()))


def _anchors(model: Model, segment: SegmentType) -> Iterator[str]:
    yield "gene,anchor_index,function"
    for template in model.templates(segment):
        size = len(template.segment)
        anchor = len(template.sequence) - size if segment == "V" else size - 3
        yield f"{template.allele},{anchor if size else template.anchor},{template.function or 'P'}"
