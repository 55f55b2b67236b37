"""Problems for the kernels of generation probabilities: models, and junctions of every kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

from hpcvdj.kernels.kernel import Kernel
from hpcvdj.kernels.pgen import pgen_cpu
from hpcvdj.probabilities import selected
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import load_model, olga_folder
from hpcvdj.recombination.models import Alleles, Insertion, Model, Template
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, SELECTION_COLUMNS, PgenProblem, Repertoire
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.recombination.symbols import Alphabet
from tests.kernels.pgen.models import (
    amino_acid_problem,
    extended_of,
    joint_model,
    mutated,
    packed,
    problem_of,
    random_model,
    sample,
    unit_of,
)

OLGA_MODELS = ("mouse_trb", "human_trb", "human_tra", "human_igh")


@cache
def olga_model(name: str) -> Model | None:
    """A model of an installed olga; None without it."""
    return None if olga_folder() is None else load_model(name)


def _normalised(values: np.ndarray, axes: int = 1) -> np.ndarray:
    return values / values.sum(axis=tuple(range(-axes, 0)), keepdims=True)


def small_model(seed: int = 1, *, has_d: bool = True) -> Model:
    """A model of few short random alleles, with zeros in its distributions: the same in every version.

    `hpcvdj generate` is tested to draw the same from it in every version, too.
    """
    rng = np.random.default_rng(seed)

    def text(size: int) -> str:
        return "".join(rng.choice(list("ACGT"), size))

    def templates(segment_type: str, texts: Iterable[str]) -> tuple[Template, ...]:
        named = [(f"TRB{segment_type}{k}*01", own) for k, own in enumerate(texts, 1)]
        extended = {own: extended_of(own, segment_type, max_p=2) for _, own in named}
        return tuple(
            Template(name, own, own, extended[own], {"V": 0, "D": 2}.get(segment_type, len(extended[own]) - len(own)))
            for name, own in named
        )

    v_text = "TGTGCCAGC" + text(6)
    v = templates("V", (v_text, v_text[:10] + "T" + v_text[11:], "TGC" + text(5), "TGT"))
    j = templates("J", (text(size) + "TTT" for size in (9, 4, 8)))
    d = templates("D", (text(size) for size in (7, 8))) if has_d else ()

    def insertion(longest: int) -> Insertion:
        lengths, steps, first = rng.random(longest + 1), rng.random((4, 4)), rng.random(4)
        return Insertion(_normalised(lengths), _normalised(steps).T, _normalised(first))

    d_deletions = rng.random((len(d), 8, 8))
    for k, own in enumerate(d):
        d_deletions[k][np.add.outer(range(8), range(8)) > len(own.extended)] = 0
    shape = (len(d), len(j)) if has_d else (0, 0)
    return Model(
        name="small", digest="", v=v, d=d, j=j, v_deletions=_normalised(rng.random((len(v), 6))),
        j_deletions=_normalised(rng.random((len(j), 7)) * (rng.random((len(j), 7)) < 0.8)),
        d_deletions=_normalised(d_deletions, 2),
        insertions=tuple(insertion(size) for size in ((5, 8) if has_d else (7,))),
        p_v=_normalised(rng.random(len(v))) if has_d else np.zeros(0),
        p_dj=_normalised(rng.random(shape), 2) if has_d else np.zeros(shape),
        p_vj=np.zeros((0, 0)) if has_d else _normalised(rng.random((len(v), len(j))), 2),
    )  # fmt: skip


def junctions(model: Model, count: int, longest: int, seed: int = 1) -> list[tuple[int, int, str]]:
    """(V, J, junction) that the segments of a model spell with insertions between them; some with a wrong base."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        v, j = rng.choice(model.contributing("V")), rng.choice(model.contributing("J"))
        parts = [model.v[v].extended[: rng.integers(3, len(model.v[v].extended) + 1)], _bases(rng, 6)]
        if model.has_d:
            d = model.d[rng.integers(len(model.d))].extended
            begin = rng.integers(len(d) + 1)
            parts += [d[begin : rng.integers(begin, len(d) + 1)], _bases(rng, 6)]
        own = model.j[j].extended
        text = "".join([*parts, own[rng.integers(len(own) - 2) :]])
        if rng.random() < 0.2:
            place = rng.integers(len(text))
            text = text[:place] + _bases(rng, 1, 1) + text[place + 1 :]
        if rng.random() < 0.8:
            middle = len(text) // 2
            text = text[:middle] + text[middle + len(text) % 3 :]
        if len(text) <= longest:
            found.append((int(v), int(j), text))
    return found


def _bases(rng: np.random.Generator, most: int, least: int = 0) -> str:
    return "".join(rng.choice(list("ACGT"), rng.integers(least, most + 1)))


def pgen_problem(
    model: Model, rows: list[tuple[int, int, str]], given: str = "both", names: tuple[str, ...] = PGEN_COLUMNS
) -> PgenProblem:
    """The problem of (V, J, junction) rows; `given` are the genes that are known: both, V, mixed or none."""
    known = [("both", "V", "none")[k % 3] if given == "mixed" else given for k in range(len(rows))]
    asked = [
        (text, (v,) if own != "none" else None, (j,) if own == "both" else None)
        for own, (v, j, text) in zip(known, rows, strict=True)
    ]
    return problem_of(model, asked, names)[0]


def amino_acids(problem: PgenProblem, letters: str = "", alphabet: Alphabet | None = None) -> PgenProblem:
    """The problem of the amino acids of junctions in frame; every second has up to three of `letters` in it."""
    own, model, alphabet = problem.repertoire, problem.model, alphabet or Alphabet.of()
    rng = np.random.default_rng(len(own))
    found = own.subset(np.flatnonzero(own.lengths % 3 == 0))
    texts = translate(map(found.cdr3, range(len(found))))
    for k, text in enumerate(texts):
        symbols = list(text)
        for place in rng.choice(len(text), min(len(text), 3 * (k % 2) * bool(letters)), replace=False):
            symbols[place] = rng.choice(list(letters))
        texts[k] = "".join(symbols)
    repertoire = Repertoire(packed(texts, alphabet), found.lengths, found.pairs, found.offsets, alphabet)
    return PgenProblem(repertoire, model, tuple(name for name in problem.names if name != "pgen_nt"))


def values_of(kernel: Kernel, problem: PgenProblem, cuts: tuple[int, ...] = ()) -> np.ndarray:
    """All values, computed in ranges of rows that end at `cuts`."""
    rows, unit = len(problem.repertoire), unit_of(problem)
    values = np.zeros((rows, problem.columns))
    for first, last in zip((0, *cuts), (*cuts, rows), strict=True):
        part = kernel(unit, first, last)
        values[first:last] = part[first:last]
    return values


def on_cpu(problem: PgenProblem) -> np.ndarray:
    """The values that the CPU kernel computes."""
    return values_of(pgen_cpu.PgenKernel(problem, 0), problem)


ALLOWED = {"pgen_nt": 5e-15, "pgen_aa": 2e-14, "pgen_aa_1mm": 2e-13}
"""Relative differences between kernels.

Amino acids are sums of positive terms in different orders: 5e-15 was seen.  With a mismatch, a difference of two such
sums multiplies that by up to twice the number of codons: 6e-14 was seen, with IGH.
"""


def largest_difference(values: np.ndarray, expected: np.ndarray) -> float:
    """The largest relative difference; infinite where only one is zero or not a number."""
    same = (values == expected) | (np.isnan(values) & np.isnan(expected))
    if not np.array_equal(values == 0, expected == 0) or not np.array_equal(np.isnan(values), np.isnan(expected)):
        return float("inf")
    return float((np.abs(values - expected)[~same] / expected[~same]).max(initial=0.0))


def require_same(values: np.ndarray, expected: np.ndarray, names: tuple[str, ...] = PGEN_COLUMNS) -> None:
    """AssertionError unless the values of each column differ by no more than `ALLOWED`."""
    for name, own, wanted in zip(names, values.T, expected.T, strict=True):
        difference = largest_difference(own, wanted)
        assert difference <= ALLOWED[name], (name, difference)


def mixed_lengths_problem() -> PgenProblem:
    """Junctions of many lengths, one of them much longer than the others."""
    model = small_model(5)
    longest = model.v[0].extended + "ACGTTG" * 12 + model.j[0].extended
    return pgen_problem(model, [*junctions(model, 60, 64, 8), (0, 0, longest)], "mixed")


def hostile_problems(seed: int) -> list[PgenProblem]:
    """Amino acids as nucleotides and as symbols, of models in which little is possible.

    Stops, one codon and none, the most codons of the kernels and one more, many ambiguous symbols, rows without a
    scenario; genes of all kinds of calls, among them none and those of one row.
    """
    rng, made = np.random.default_rng(seed), []
    for model in (random_model(seed, True), random_model(seed, False, 7), joint_model(seed), small_model(seed)):
        v, j = model.contributing("V"), model.contributing("J")
        masks = [(None, None), (v[:1], None), (None, j[-1:]), (v[-1:], j[:1]), ((), None), (None, ())]
        drawn = [text for text in (sample(model, rng).junction for _ in range(24)) if text]
        text = model.v[v[0]].extended + "GACAGGCTA" * 20 if v else "GACAGGCTA" * 20
        texts = ["TGT", "TAA", "TG", "TGTTAGTTT", "TGTTGATAATTT", "T" * 30, "C" * 44, text[:126], text[:129]]
        texts += [*drawn, *(mutated(own, rng) for own in drawn)]
        letters = ["", "X", "*", "XX", "CX*", "XBXZX", "X" * 9, "CA" + "X" * 9, "J" * 42, "C" + 42 * "A"]
        letters += translate(own[: len(own) // 3 * 3] for own in drawn)
        for own, of_rows in ((texts, problem_of), (letters, amino_acid_problem)):
            # The last mask has one row.
            rows = [(text, *masks[k % 5]) for k, text in enumerate(own)] + [(own[-1], *masks[5])]
            made.append(of_rows(model, rows, PGEN_COLUMNS[1:])[0])
    return made


def with_little_shared_memory(monkeypatch) -> None:
    """Let blocks of the CUDA kernels have enough for short sequences only, which are launched by themselves."""
    from hpcvdj.kernels.pgen import pgen_cuda

    monkeypatch.setattr(pgen_cuda, "CLASSES", dict.fromkeys(PGEN_COLUMNS, (12, 24, 128)))
    monkeypatch.setattr(pgen_cuda, "shared_limit", lambda: 24_000)


def require_same_selection():
    """The selection factor beside the CUDA kernel's probabilities, also in ranges of rows, for amino acids and ties."""
    model = replace(small_model(4), selection=SelectionFactor({"left:1:A": 0.5, "right:2:L": -1.0}, 0.1, -1.0, 0.5))
    names = (*PGEN_COLUMNS[1:], *SELECTION_COLUMNS)
    nucleotides = pgen_problem(model, junctions(model, 80, 64, 5), "both", names)
    genes = list(dict.fromkeys(own.allele.partition("*")[0] for own in model.v))[:2]
    either = Alleles(",".join(genes), tuple(k for gene in genes for k in model.find("V", gene)))
    pairs = [(either, j) if k % 2 else (v, j) for k, (v, j) in enumerate(nucleotides.repertoire.pairs)]
    tied = replace(
        nucleotides, model=replace(model, ties=(tuple(genes),)), repertoire=replace(nucleotides.repertoire, pairs=pairs)
    )
    for problem in (nucleotides, amino_acids(nucleotides, "XB"), tied):
        expected = values_of(selected.cpu(problem, 0), problem)
        values = values_of(selected.cuda(problem, 32), problem, cuts=(7, 20))
        require_same(values[:, :2], expected[:, :2], names[:2])
        np.testing.assert_allclose(values[:, 2:], expected[:, 2:], rtol=2e-14)
        assert (expected[:, 3] > 0).any()
