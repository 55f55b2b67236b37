"""Recombination models for the tests: small random ones, sampling by the definition, and kernels on a few junctions."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from hypothesis import strategies as st

from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.pgen.pgen_cpu import PgenKernel
from hpcvdj.recombination.alphabet import NUCLEOTIDES, Letters, decode, encode, pack, reverse_complement, translate
from hpcvdj.recombination.models import BASES, Alleles, Insertion, Model, Template
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem, Repertoire
from hpcvdj.recombination.symbols import Alphabet

Junction = tuple[str, tuple[int, ...] | None, tuple[int, ...] | None]
"""A junction with the places of its V and of its J alleles; None for all."""

OTHERS = string.ascii_lowercase + "!#$%&()+-./<=>?@^_|~"
"""Letters that a custom alphabet may define."""

NT, AA, BALL = range(len(PGEN_COLUMNS))
"""The columns of `pgens`."""

LARGEST_DIFFERENCE = 1e-14
"""Relative, between two orders of the same sum of positive numbers.

The largest that was measured in the tests of test_pgen_cpu.py is 2.5e-15.
"""


def require_equal(values, expected) -> None:
    """The same zeros, and the same values but for the order of summation."""
    values, expected = np.asarray(values), np.asarray(expected)
    assert np.array_equal(values == 0, expected == 0)
    np.testing.assert_allclose(values, expected, rtol=LARGEST_DIFFERENCE, atol=0)


def distribution(rng: np.random.Generator, shape: int | tuple[int, ...], zeros: float = 0.3) -> np.ndarray:
    """Random probabilities that add up to 1; a part of them is 0."""
    values = rng.random(shape) * (rng.random(shape) >= zeros)
    values.flat[rng.integers(values.size)] += 0.1
    return values / values.sum()


def insertion(rng: np.random.Generator, longest: int, zeros: float = 0.3) -> Insertion:
    """An insertion of 0 … `longest` bases, its first base not that of the stationary distribution."""
    lengths = distribution(rng, longest + 1)
    lengths[-1] += 0.1
    transitions = np.array([distribution(rng, 4, zeros) for _ in range(4)]).T
    return Insertion(lengths / lengths.sum(), transitions, distribution(rng, 4, zeros))


def extended_of(segment: str, segment_type: str, max_p: int) -> str:
    """A segment with its P-nucleotides."""
    left = reverse_complement(segment)[max(0, len(segment) - max_p) :] if segment_type in "DJ" else ""
    right = reverse_complement(segment)[:max_p] if segment_type in "VD" else ""
    return left + segment + right


def _templates(rng: np.random.Generator, segment_type: str, most: int, longest: int, max_p: int) -> list[Template]:
    """Alleles of which the later ones differ from the first in one base or in length."""
    out: list[Template] = []
    for place in range(rng.integers(1, most + 1)):
        if place and rng.random() < 0.7:
            letters = list(out[0].segment)
            letters[rng.integers(len(letters))] = BASES[rng.integers(4)]
            segment = "".join(letters)[: rng.integers(1, longest + 1)]
        else:
            segment = "".join(rng.choice(list(BASES), rng.integers(1, longest + 1)))
        name = f"TRB{segment_type}{place + 1}*01"
        p5 = min(max_p, len(segment)) if segment_type in "DJ" else 0
        out.append(Template(name, segment, segment, extended_of(segment, segment_type, max_p), p5))
    return out


def _deletions(rng: np.random.Generator, templates: Sequence[Template], width: int) -> np.ndarray:
    return np.array([distribution(rng, width) for _ in templates])


def _d_deletions(rng: np.random.Generator, templates: Sequence[Template], lefts: int, rights: int) -> np.ndarray:
    """Only deletions of what there is; D may vanish."""
    out = np.zeros((len(templates), lefts, rights))
    left, right = np.indices((lefts, rights))
    for own, template in zip(out, templates, strict=True):
        own[:] = distribution(rng, (lefts, rights)) * (left + right <= len(template.extended))
        own[0, 0] += 0.1
        own /= own.sum()
    return out


def random_model(seed: int, has_d: bool, longest_insertion: int = 4, longest: int = 6) -> Model:
    """A model of up to 3 V, 3 D and 3 J alleles with short segments, many zeros, and deletions beyond the segments."""
    rng = np.random.default_rng(seed)
    max_p = int(rng.integers(0, 4))
    v, j = (tuple(_templates(rng, segment, 3, longest, max_p)) for segment in "VJ")
    v_deletions, j_deletions = (_deletions(rng, own, int(rng.integers(1, longest + max_p + 3))) for own in (v, j))
    common = {"name": f"random {seed}", "digest": "", "v": v, "j": j}
    common |= {"v_deletions": v_deletions, "j_deletions": j_deletions}
    lengths = rng.integers(0, longest_insertion + 1, 2)
    if not has_d:
        return Model(
            **common, d=(), d_deletions=np.zeros((0, 0, 0)), insertions=(insertion(rng, lengths[0]),),
            p_v=np.zeros(0), p_dj=np.zeros((0, 0)), p_vj=distribution(rng, (len(v), len(j))),
        )  # fmt: skip
    d = tuple(_templates(rng, "D", 3, longest, max_p))
    d_deletions = _d_deletions(rng, d, *rng.integers(1, longest + 4, 2))
    return Model(
        **common, d=d, d_deletions=d_deletions, insertions=tuple(insertion(rng, length) for length in lengths),
        p_v=distribution(rng, len(v)), p_dj=distribution(rng, (len(d), len(j))), p_vj=np.zeros((0, 0)),
    )  # fmt: skip


def joint_model(seed: int) -> Model:
    """A random model of which V, D and J are chosen together, with zeros in P(V, D, J)."""
    model = random_model(seed, True)
    p_vdj = distribution(np.random.default_rng(seed), (len(model.v), len(model.d), len(model.j)), zeros=0.5)
    marginals = {"p_v": p_vdj.sum(axis=(1, 2)), "p_dj": p_vdj.sum(axis=0)}
    return replace(model, p_vdj=p_vdj, **marginals).with_joint_choice()


def product_model(seed: int) -> Model:
    """A random model without D genes of which V and J are chosen independently of each other."""
    model, rng = random_model(seed, False), np.random.default_rng(seed)
    return replace(model, p_vj=np.outer(*(distribution(rng, len(templates)) for templates in (model.v, model.j))))


seeds = st.integers(0, 10**6)
models = st.builds(random_model, seeds, st.booleans()) | st.builds(joint_model, seeds) | st.builds(product_model, seeds)


def _drawn(rng: np.random.Generator, chances: np.ndarray) -> tuple[int, ...]:
    """The index of one entry; the entries need not add up to 1."""
    flat = chances.ravel()
    place = rng.choice(len(flat), p=flat / flat.sum())
    return tuple(int(index) for index in np.unravel_index(place, chances.shape))


def _inserted(rng: np.random.Generator, own: Insertion) -> str:
    bases: list[int] = []
    for _ in range(_drawn(rng, own.lengths)[0]):
        bases += _drawn(rng, own.transitions[:, bases[-1]] if bases else own.first)
    return "".join(BASES[base] for base in bases)


@dataclass(frozen=True)
class Sampled:
    """A junction drawn from a model, and its V and J; the junction is empty if V, D or J has fewer bases."""

    junction: str
    v: int
    j: int


def sample(model: Model, rng: np.random.Generator) -> Sampled:
    """Draw one scenario, event by event."""
    if model.has_d:
        (v,), (d, j) = _drawn(rng, model.p_v), _drawn(rng, model.p_dj)
    else:
        v, j = _drawn(rng, model.p_vj)
        d = -1
    if not (model.v[v].segment and model.v_deletions[v].any() and model.j[j].segment and model.j_deletions[j].any()):
        return Sampled("", v, j)
    kept_v = len(model.v[v].extended) - _drawn(rng, model.v_deletions[v])[0]
    deleted_j = _drawn(rng, model.j_deletions[j])[0]
    if kept_v < 1 or deleted_j >= len(model.j[j].extended):
        return Sampled("", v, j)
    if model.has_d:
        left, right = _drawn(rng, model.d_deletions[d])
        form = model.d[d].extended
        if left + right > len(form):
            return Sampled("", v, j)
        vd, dj = (_inserted(rng, own) for own in model.insertions)
        middle = vd + form[left : len(form) - right] + dj[::-1]
    else:
        middle = _inserted(rng, model.insertions[0])
    return Sampled(model.v[v].extended[:kept_v] + middle + model.j[j].extended[deleted_j:], v, j)


def mutated(junction: str, rng: np.random.Generator, most: int = 3) -> str:
    """A junction with 1 … `most` bases drawn again."""
    letters = list(junction)
    for _ in range(rng.integers(1, most + 1)):
        letters[rng.integers(len(letters))] = BASES[rng.integers(4)]
    return "".join(letters)


def packed(texts: Sequence[str], letters: Letters) -> np.ndarray:
    """Packed sequences, uint64 [sequences, words], of one of the widths that the kernels take."""
    words = letters.words_for(max(map(len, texts), default=0))
    is_symbols = isinstance(letters, Alphabet)
    width = next(width for width in ((2, 4, 8) if is_symbols else (2, 4, 6, 8)) if words <= width)
    rows = [_pack_symbols(text, width, letters) if is_symbols else pack(encode(text), width) for text in texts]
    return np.array(rows, dtype=np.uint64).reshape(-1, width)


def _pack_symbols(text: str, words: int, alphabet: Letters) -> np.ndarray:
    """A packed amino-acid sequence, eight symbols a word, the first in the most significant bits."""
    symbols = bytes(alphabet.symbols.index(letter) for letter in text)
    return np.frombuffer(symbols.ljust(8 * words, b"\0"), dtype=">u8").astype(np.uint64)


def amino_acid_problem(
    model: Model, rows: Sequence[Junction], names: tuple[str, ...] = PGEN_COLUMNS[1:], alphabet: Alphabet | None = None
) -> tuple[PgenProblem, np.ndarray]:
    """The problem of some amino-acid sequences, and the row of each in its repertoire."""
    return problem_of(model, rows, names, alphabet or Alphabet.of())


def problem_of(
    model: Model,
    rows: Sequence[Junction],
    names: tuple[str, ...] = PGEN_COLUMNS,
    letters: Letters = NUCLEOTIDES,
) -> tuple[PgenProblem, np.ndarray]:
    """The problem of some junctions, and the row of each in its repertoire."""
    masks = [
        (model.contributing("V") if v is None else v, model.contributing("J") if j is None else j) for _, v, j in rows
    ]
    pairs = {pair: place for place, pair in enumerate(dict.fromkeys(masks))}
    order = sorted(range(len(rows)), key=lambda row: pairs[masks[row]])
    row_of = np.empty(len(rows), dtype=np.int64)
    row_of[order] = np.arange(len(rows))
    texts = [rows[row][0] for row in order]
    lengths = np.array([letters.bases * len(text) for text in texts], dtype=np.uint8)
    offsets = np.cumsum([0, *Counter(masks).values()]).astype(np.int64)
    alleles = [(Alleles("", v), Alleles("", j)) for v, j in pairs]
    return PgenProblem(Repertoire(packed(texts, letters), lengths, alleles, offsets, letters), model, names), row_of


def unit_of(problem: PgenProblem) -> Unit:
    """All of a problem."""
    rows = len(problem.repertoire)
    return Unit(range(len(problem.repertoire.pairs)), range(rows), range(problem.columns), rows)


def pgens(model: Model, rows: Sequence[Junction], names: tuple[str, ...] = PGEN_COLUMNS) -> np.ndarray:
    """The kernels' values of some junctions, float64 [junctions, names]."""
    return values(*problem_of(model, rows, names))


def pgens_of(model: Model, junctions: Sequence[str], column: int) -> np.ndarray:
    """One column of the kernels' values, all alleles taken."""
    return pgens(model, [(text, None, None) for text in junctions], (PGEN_COLUMNS[column],))[:, 0]


def values(problem: PgenProblem, row_of: np.ndarray) -> np.ndarray:
    """The CPU kernel's values of a problem, in the order in which its rows were given."""
    return PgenKernel(problem, 1)(unit_of(problem), 0, len(row_of))[row_of]


def aa_pgens(model: Model, texts: Sequence[str], alphabet: Alphabet | None = None) -> np.ndarray:
    """The amino-acid kernel's values of symbols, all alleles taken."""
    rows = [(text, None, None) for text in texts]
    return values(*amino_acid_problem(model, rows, ("pgen_aa",), alphabet))[:, 0]


def codons_of(alphabet: Alphabet, symbol: str) -> list[str]:
    """The codons of a symbol."""
    return [decode(codes) for codes in np.argwhere(alphabet.codons[alphabet.symbols.index(symbol)])]


def sum_over_codons(model: Model, text: str, alphabet: Alphabet | None = None) -> float:
    """The definition of an amino-acid sequence's probability: the sum over its nucleotide sequences."""
    alphabet = alphabet or Alphabet.of()
    codons = [codons_of(alphabet, symbol) for symbol in text]
    return float(pgens_of(model, ["".join(parts) for parts in product(*codons)], NT).sum())


def length_distribution(model: Model, longest: int) -> np.ndarray:
    """P(length of a junction), float64 [longest + 1], by convolution, all alleles taken."""
    total = np.zeros(longest + 1)

    def kept(template: Template, deletions: np.ndarray) -> np.ndarray:
        out = np.zeros(longest + 1)
        for bases in range(1, min(longest, len(template.extended)) + 1):
            if len(template.extended) - bases < len(deletions):
                out[bases] = deletions[len(template.extended) - bases]
        return out

    def added(*parts: np.ndarray) -> np.ndarray:
        out = np.ones(1)
        for part in parts:
            out = np.convolve(out, part)[: longest + 1]
        return out

    for v, j in product(model.contributing("V"), model.contributing("J")):
        sides = kept(model.v[v], model.v_deletions[v]), kept(model.j[j], model.j_deletions[j])
        lengths = [own.lengths for own in model.insertions]
        if not model.has_d:
            part = model.p_vj[v, j] * added(*sides, *lengths)
            total[: len(part)] += part
        for d, template in enumerate(model.d):
            form = np.zeros(longest + 1)
            for left, right in np.ndindex(model.d_deletions.shape[1:]):
                if 0 <= len(template.extended) - left - right <= longest:
                    form[len(template.extended) - left - right] += model.d_deletions[d, left, right]
            part = model.p_choice[v, d, j] * added(*sides, form, *lengths)
            total[: len(part)] += part
    return total


MASKS = ("allele", "gene", "list", "none")
"""How much the calls of a row say."""


@dataclass(frozen=True)
class Query:
    """A junction of whole codons with its calls.

    origin  drawn, mutated or random
    """

    junction: str
    v_call: str
    j_call: str
    mask: str
    origin: str


def queries(model: Model, number: int, seed: int, longest: int = 90) -> list[Query]:
    """Junctions of up to `longest` bases: half drawn from the model, a third mutated, a sixth random.

    The masks take turns; a list has the allele's gene and other genes.
    """
    rng = np.random.default_rng(seed)
    genes = {
        segment_type: sorted({model.templates(segment_type)[place].allele.partition("*")[0] for place in places})
        for segment_type, places in (("V", model.contributing("V")), ("J", model.contributing("J")))
    }
    out: list[Query] = []
    while len(out) < number:
        drawn = sample(model, rng)
        text, origin = drawn.junction, "drawn"
        if not text or len(text) % 3 or len(text) > longest:
            continue
        if len(out) % 6 in (1, 4):
            text, origin = mutated(text, rng), "mutated"
        if len(out) % 6 == 5:
            text, origin = "TGT" + "".join(rng.choice(list(BASES), 3 * rng.integers(3, 14))) + text[-6:], "random"
        mask = MASKS[(len(out) + len(out) // 12) % len(MASKS)]
        calls = []
        for segment_type, place in (("V", drawn.v), ("J", drawn.j)):
            allele = model.templates(segment_type)[place].allele
            own = allele.partition("*")[0]
            others = rng.choice(genes[segment_type], min(3, len(genes[segment_type])), replace=False)
            listed = ",".join(dict.fromkeys([own, *map(str, others)]))
            calls.append({"allele": allele, "gene": own, "list": listed, "none": ""}[mask])
        out.append(Query(text, *calls, mask, origin))
    return out


def ambiguous_queries(rows: Sequence[Query], letters: str, seed: int, most: int = 4) -> list[Query]:
    """Queries for amino acids: those of `rows`, in which up to `most` are replaced by one of `letters`.

    Every third has none of them, and random or repeated letters take the place of some.
    """
    rng = np.random.default_rng(seed)
    out = []
    for k, row in enumerate(rows):
        text = list(translate([row.junction])[0].replace("*", "W"))
        for place in rng.choice(len(text), min(len(text), int(rng.integers(1, most + 1)) if k % 3 else 0), False):
            text[place] = rng.choice(list(letters))
        if k % 7 == 3:
            text = [*text[:1], *rng.choice(list("ACDEFGHIKLMNPQRSTVWY" + letters[:1]), len(text) - 2), *text[-1:]]
        if k % 13 == 5:
            text = list(rng.choice(list(letters), rng.integers(1, most + 1)))
        out.append(replace(row, junction="".join(text)))
    return out


def values_of(model: Model, rows: Sequence[Query], alphabet: Alphabet | None = None) -> np.ndarray:
    """pgen_nt and pgen_aa of queries, float64 [queries, 2], their calls resolved as those of a table.

    alphabet  of amino-acid sequences, which have pgen_aa only
    """
    junctions: list[Junction] = []
    for row in rows:
        masks: list[tuple[int, ...] | None] = []
        for segment_type, call in (("V", row.v_call), ("J", row.j_call)):
            alleles = model.resolve(segment_type, call) if call else model.alleles(segment_type)
            assert isinstance(alleles, Alleles), f"{call}: {alleles}"
            masks.append(alleles.places)
        junctions.append((row.junction, *masks))
    if alphabet is not None:
        return values(*amino_acid_problem(model, junctions, ("pgen_aa",), alphabet))
    return pgens(model, junctions, PGEN_COLUMNS[:2])
