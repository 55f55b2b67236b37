"""Small models in IGoR's format, written by the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hpcvdj.recombination.germline import read_germline
from hpcvdj.recombination.models import Model
from tests.conftest import GERMLINE

DINUCLEOTIDES = [[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25], [0.4, 0.3, 0.2, 0.1], [0.0, 0.5, 0.5, 0.0]]
"""P(next base) after A, C, G, T."""

KINDS = {"choice": "GeneChoice", "gene": "GeneChoice", "del": "Deletion", "ins": "Insertion", "dinucl": "DinucMarkov"}


@dataclass
class Event:
    """An event: its realisations in the order of their indices, its parents and its probabilities."""

    realisations: list[str]
    probabilities: np.ndarray
    parents: list[str] = field(default_factory=list)


@dataclass
class Files:
    """What a model's folder has."""

    events: dict[str, Event]
    anchors: dict[str, list[str]]

    def params(self) -> str:
        """model_params.txt: the lines of each event in the reverse order of their indices, as some models have them."""
        lines = ["@Event_list"]
        for name, event in self.events.items():
            lines.append(f"#{KINDS[name.split('_')[-1]]};Undefined_gene;Undefined_side;1;{name}")
            lines += [f"%{value};{index}" for index, value in reversed(list(enumerate(event.realisations)))]
        return "\n".join([*lines, "@Edges", "%a;b", "@ErrorRate", "#SingleErrorRate", "0.001", ""])

    def marginals(self) -> str:
        """model_marginals.txt."""
        lines = []
        for name, event in self.events.items():
            values = np.asarray(event.probabilities)
            lines += [f"@{name}", f"$Dim[{','.join(map(str, values.shape))}]"]
            for where in np.ndindex(values.shape[:-1]):
                parents = ",".join(f"[{parent},{place}]" for parent, place in zip(event.parents, where, strict=True))
                lines += [f"#{parents}", "%" + ",".join(f"{value:.10g}" for value in values[where])]
        return "\n".join([*lines, ""])

    def write(self, folder: Path, changes: Mapping[str, tuple[str, str]] | None = None) -> Path:
        """Write the folder; `changes` replaces a text in a file by another."""
        folder.mkdir(exist_ok=True)
        texts = {"model_params.txt": self.params(), "model_marginals.txt": self.marginals()}
        for segment_type, rows in self.anchors.items():
            texts[f"{segment_type}_gene_CDR3_anchors.csv"] = "\n".join(["gene,anchor_index,function", *rows, ""])
        for name, (old, new) in (changes or {}).items():
            assert old in texts[name], f"{old!r} is not in {name}"
            texts[name] = texts[name].replace(old, new)
        for name, text in texts.items():
            (folder / name).write_text(text)
        return folder


def numbers(first: int, last: int) -> list[str]:
    return [str(value) for value in range(first, last + 1)]


def vj_files() -> Files:
    """2 V and 2 J alleles of TRA; up to 2 P-nucleotides, 2 deletions, 3 inserted bases of which the last is a zero."""
    return Files(
        {
            "v_choice": Event(["TRAV1*01;GGTGTGCC", "TRAV2/DV4*01;GTGTA"], np.array([0.75, 0.25])),
            "j_choice": Event(
                ["TRAJ1*01;ATTTGG", "TRAJ2*01;CCTTCGG"], np.array([[0.5, 0.5], [0.25, 0.75]]), ["v_choice"]
            ),
            "v_3_del": Event(
                numbers(-2, 2), np.array([[0.1, 0.1, 0.4, 0.2, 0.2], [0.0, 0.5, 0.5, 0.0, 0.0]]), ["v_choice"]
            ),
            "j_5_del": Event(
                numbers(-2, 1), np.array([[0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 1.0, 0.0]]), ["j_choice"]
            ),
            "vj_ins": Event(numbers(0, 3), np.array([0.5, 0.3, 0.2, 0.0])),
            "vj_dinucl": Event(list("ACGT"), np.array(DINUCLEOTIDES).ravel()),
        },
        {"V": ["TRAV1*01,2,F", "TRAV2/DV4*01,1,(F)"], "J": ["TRAJ1*01,1,F", "TRAJ2*01,2,F"]},
    )  # fmt: skip


def vdj_files(heavy: bool = False) -> Files:
    """2 V, 2 D and 2 J alleles of TRB, one D shorter than the P-nucleotides.

    heavy  J and D depend on V, as in the models of IGH
    """
    d_5, d_3 = np.zeros((2, 4)), np.zeros((2, 4, 4))
    d_5[:] = [0.25, 0.25, 0.5, 0.0]
    d_3[:, :, :2] = 0.5
    p_dj = np.array([[0.75, 0.25], [0.5, 0.5]])
    p_j = np.array([0.4, 0.6])
    j_choice, d_gene = (
        Event(["TRBJ1-1*01;ATTTGG", "TRBJ1-2*01;CTTCGG"], p_j),
        Event([" TRBD1*01;GGG", "TRBD2*01;G"], p_dj, ["j_choice"]),
    )
    if heavy:
        j_choice.parents, j_choice.probabilities = ["v_choice"], np.array([[0.4, 0.6], [0.8, 0.2]])
        d_gene.parents, d_gene.probabilities = ["v_choice", "j_choice"], np.array([p_dj, p_dj[::-1]])
    chain = np.array(DINUCLEOTIDES).ravel()
    return Files(
        {
            "v_choice": Event(["TRBV1*01;GGTGTGCC", "TRBV2*01;GTGTA"], np.array([0.7, 0.3])),
            "j_choice": j_choice,
            "d_gene": d_gene,
            "v_3_del": Event(numbers(-2, 1), np.full((2, 4), 0.25), ["v_choice"]),
            "j_5_del": Event(numbers(-2, 1), np.full((2, 4), 0.25), ["j_choice"]),
            "d_5_del": Event(numbers(-2, 1), d_5, ["d_gene"]),
            "d_3_del": Event(numbers(-2, 1), d_3, ["d_gene", "d_5_del"]),
            "vd_ins": Event(numbers(0, 2), np.array([0.5, 0.5, 0.0])),
            "vd_dinucl": Event(list("ACGT"), chain),
            "dj_ins": Event(numbers(0, 2), np.array([0.2, 0.3, 0.5])),
            "dj_dinucl": Event(list("ACGT"), chain),
        },
        {"V": ["TRBV1*01,2,F", "TRBV2*01,1,F"], "J": ["TRBJ1-1*01,1,F", "TRBJ1-2*01,1,F"]},
    )  # fmt: skip


def gene_files(v: Sequence[str], functions: Mapping[str, str] | None = None) -> Files:
    """A VJ model with these V alleles, each as likely as the others."""
    files = vj_files()
    functions = functions or {}
    files.events["v_choice"] = Event([f"{allele};GTGTGCC" for allele in v], np.full(len(v), 1 / len(v)))
    files.events["j_choice"].probabilities = np.tile([0.5, 0.5], (len(v), 1))
    files.events["v_3_del"].probabilities = np.tile([0.1, 0.1, 0.4, 0.2, 0.2], (len(v), 1))
    files.anchors["V"] = [f"{allele},1,{functions.get(allele, 'F')}" for allele in v]
    return files


def mouse_junctions(model: Model, rows: int, seed: int = 3) -> list[tuple[str, str, str]]:
    """Random (V allele, J gene, junction), made of parts of the genes of a model and up to five random bases."""
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(rows):
        v, j = model.v[generator.integers(len(model.v))], model.j[generator.integers(len(model.j))]
        middle = "".join(generator.choice(list("ACGT"), size=generator.integers(0, 6)))
        d = model.d[generator.integers(2)].sequence[: generator.integers(0, 9)]
        kept = generator.integers(4, len(v.segment)), generator.integers(4, len(j.segment))
        junction = v.segment[: kept[0]] + d + middle + j.segment[len(j.segment) - kept[1] :]
        made.append((v.allele, j.allele.partition("*")[0], junction))
    return made


def mouse_files(seed: int = 1) -> Files:
    """5 V, 2 D and 3 J alleles of the paper's mouse, with random probabilities."""
    rng, germline = np.random.default_rng(seed), read_germline(GERMLINE)
    v, d, j = germline.of("V")[:5], germline.of("D")[:2], germline.of("J")[:3]
    deletions = numbers(-4, 6)

    def chances(*shape: int) -> np.ndarray:
        values = rng.random(shape) + 0.1
        return values / values.sum(axis=-1, keepdims=True)

    d_3 = chances(len(d), len(deletions), len(deletions))
    left, right = np.indices(d_3.shape[1:])
    for own, segment in zip(d_3, d, strict=True):
        own[left + right > len(segment.sequence) + 8] = 0
    d_3 /= d_3.sum(axis=-1, keepdims=True)
    lengths, bases = numbers(0, 8), list("ACGT")
    # The anchor codons are around the segments of the germline table.
    return Files(
        {
            "v_choice": Event([f"{own.allele};GAGTGT{own.sequence}" for own in v], chances(len(v))),
            "j_choice": Event([f"{own.allele};{own.sequence}TTTGGA" for own in j], chances(len(j))),
            "d_gene": Event([f"{own.allele};{own.sequence}" for own in d], chances(len(j), len(d)), ["j_choice"]),
            "v_3_del": Event(deletions, chances(len(v), len(deletions)), ["v_choice"]),
            "d_5_del": Event(deletions, chances(len(d), len(deletions)), ["d_gene"]),
            "d_3_del": Event(deletions, d_3, ["d_gene", "d_5_del"]),
            "j_5_del": Event(deletions, chances(len(j), len(deletions)), ["j_choice"]),
            "vd_ins": Event(lengths, chances(len(lengths))),
            "dj_ins": Event(lengths, chances(len(lengths))),
            "vd_dinucl": Event(bases, chances(4, 4).ravel()),
            "dj_dinucl": Event(bases, chances(4, 4).ravel()),
        },
        {"V": [f"{own.allele},3,F" for own in v], "J": [f"{own.allele},{len(own.sequence)},F" for own in j]},
    )  # fmt: skip
