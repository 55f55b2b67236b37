"""A small recombination model in IGoR's format, made of the paper's segments, for tests of what reads models."""

import numpy as np

from hpcvdj.recombination.germline import read_germline
from tests.conftest import GERMLINE

MAX_P = 4
LONGEST_INSERTION = 8


def _chances(generator, *shape):
    """Random distributions along the last axis."""
    chances = generator.random(shape) + 0.1
    return chances / chances.sum(axis=-1, keepdims=True)


def _numbers(values):
    return "%" + ",".join(f"{value:.17g}" for value in values)


def _table(name, parents, values):
    """An event of model_marginals.txt; `parents` are the names of the leading axes."""
    lines = [f"@{name}", f"$Dim[{','.join(map(str, values.shape))}]"]
    for place in np.ndindex(*values.shape[: len(parents)]):
        lines.append("#" + ",".join(f"[{parent},{index}]" for parent, index in zip(parents, place, strict=True)))
        lines.append(_numbers(values[place]))
    return lines


def write_model(folder, seed=1):
    """A VDJ model of five V, two D and three J alleles of the mouse; returns the folder."""
    germline = read_germline(GERMLINE)
    generator = np.random.default_rng(seed)
    genes = {"v_choice": germline.of("V")[:5], "d_gene": germline.of("D")[:2], "j_choice": germline.of("J")[:3]}
    # The anchor codons are around the segments of the germline table.
    texts = {
        "v_choice": ["GAGTGT" + segment.sequence for segment in genes["v_choice"]],
        "d_gene": [segment.sequence for segment in genes["d_gene"]],
        "j_choice": [segment.sequence + "TTTGGA" for segment in genes["j_choice"]],
    }
    deletions = range(-MAX_P, 7)
    v, d, j = (len(texts[event]) for event in ("v_choice", "d_gene", "j_choice"))
    params = ["@Event_list"]
    for event, letter in (("v_choice", "V"), ("d_gene", "D"), ("j_choice", "J")):
        params.append(f"#GeneChoice;{letter}_gene;Undefined_side;7;{event}")
        params += [
            f"%{segment.allele};{text};{k}"
            for k, (segment, text) in enumerate(zip(genes[event], texts[event], strict=True))
        ]
    for event in ("v_3_del", "d_3_del", "d_5_del", "j_5_del"):
        params.append(f"#Deletion;gene;side;5;{event}")
        params += [f"%{deleted};{k}" for k, deleted in enumerate(deletions)]
    for event in ("vd_ins", "dj_ins"):
        params.append(f"#Insertion;genes;Undefined_side;4;{event}")
        params += [f"%{length};{length}" for length in range(LONGEST_INSERTION + 1)]
    for event in ("vd_dinucl", "dj_dinucl"):
        params.append(f"#DinucMarkov;genes;Undefined_side;3;{event}")
        params += [f"%{base};{k}" for k, base in enumerate("ACGT")]
    params += ["@Edges", "@ErrorRate", "#SingleErrorRate", "0.001"]
    size = len(deletions)
    tables = [
        *_table("v_choice", [], _chances(generator, v)), *_table("j_choice", [], _chances(generator, j)),
        *_table("d_gene", ["j_choice"], _chances(generator, j, d)),
        *_table("v_3_del", ["v_choice"], _chances(generator, v, size)),
        *_table("d_5_del", ["d_gene"], _chances(generator, d, size)),
        *_table("d_3_del", ["d_gene", "d_5_del"], _possible(texts["d_gene"], _chances(generator, d, size, size))),
        *_table("j_5_del", ["j_choice"], _chances(generator, j, size)),
        *_table("vd_ins", [], _chances(generator, LONGEST_INSERTION + 1)),
        *_table("dj_ins", [], _chances(generator, LONGEST_INSERTION + 1)),
        *_table("vd_dinucl", [], _chances(generator, 4, 4).ravel()),
        *_table("dj_dinucl", [], _chances(generator, 4, 4).ravel()),
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model_params.txt").write_text("\n".join(params) + "\n")
    (folder / "model_marginals.txt").write_text("\n".join(tables) + "\n")
    for name, event, anchors in (
        ("V", "v_choice", [3] * v),
        ("J", "j_choice", [len(t) - 6 for t in texts["j_choice"]]),
    ):
        rows = [f"{segment.allele},{anchor},F" for segment, anchor in zip(genes[event], anchors, strict=True)]
        (folder / f"{name}_gene_CDR3_anchors.csv").write_text("\n".join(["gene,anchor_index,function", *rows]) + "\n")
    return folder


def _possible(segments, chances):
    """No deletions of more bases than a D segment has."""
    left, right = np.indices(chances.shape[1:])
    for own, segment in zip(chances, segments, strict=True):
        own[left + right > len(segment) + 2 * MAX_P] = 0
    return chances / chances.sum(axis=-1, keepdims=True)
