"""hpcvdj.kernels.pgen on CPU cores, against the definition and its invariants."""

from dataclasses import replace
from itertools import islice, pairwise, product

import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpcvdj.kernels.pgen import nt_cpu
from hpcvdj.kernels.pgen.ambiguous_texts import Ambiguous
from hpcvdj.kernels.pgen.pgen_cpu import PgenKernel
from hpcvdj.kernels.pgen.symbol_tries import amino_acid_tables
from hpcvdj.kernels.pgen.tables import Tables
from hpcvdj.recombination.alphabet import AMINO_ACIDS, translate
from hpcvdj.recombination.models import Insertion, Model, Template
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.symbols import Alphabet
from tests.kernels.pgen.models import (
    AA,
    BALL,
    NT,
    OTHERS,
    aa_pgens,
    amino_acid_problem,
    extended_of,
    length_distribution,
    models,
    mutated,
    pgens,
    pgens_of,
    problem_of,
    random_model,
    require_equal,
    sample,
    sum_over_codons,
    unit_of,
    values,
)
from tests.recombination.definition import pgen

SETTINGS = settings(max_examples=25, deadline=None, derandomize=True)
FEW = settings(SETTINGS, max_examples=8)

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
ANY_CODON = Alphabet.of({"?": ["".join(codon) for codon in product("ACGT", repeat=3)]})


def junctions_of(model: Model, seed: int, number: int, longest: int = 40) -> list[str]:
    """Junctions of up to `longest` bases: drawn from the model, the same with mutations, and random ones."""
    rng = np.random.default_rng(seed)
    out = []
    for k in range(number):
        text = sample(model, rng).junction or "TGTACGTTT"
        if k % 4 == 1:
            text = mutated(text, rng)
        if k % 4 == 2:
            text = "".join(rng.choice(list("ACGT"), rng.integers(1, 14)))
        out.append(text[:longest])
    return out


def in_frame(model: Model, seed: int, most_codons: int, number: int = 3) -> list[str]:
    """Some junctions of whole codons, and a short one at random."""
    texts = [text for text in junctions_of(model, seed, 60) if len(text) % 3 == 0 and len(text) <= 3 * most_codons]
    return [*texts[:number], "TGTTGG"[: 3 * most_codons]]


def subset(places: tuple[int, ...], seed: int) -> tuple[int, ...]:
    """Some of the places, or none."""
    rng = np.random.default_rng(seed)
    return tuple(place for place in places if rng.random() < 0.6)


def nucleotides_of(amino_acids: str) -> str:
    """A nucleotide sequence of amino acids."""
    codon = {amino_acid: codon for codon, amino_acid in AMINO_ACIDS.items()}
    return "".join(codon[letter] for letter in amino_acids)


@SETTINGS
@given(model=models, seed=st.integers(0, 99))
def test_nucleotides_are_the_sum_over_scenarios(model, seed):
    v, j = model.contributing("V"), model.contributing("J")
    rows = [(text, None, None) for text in junctions_of(model, seed, 12)]
    rows += [
        (text, subset(v, seed + k) if k % 2 else None, subset(j, seed - k + 99)) for k, (text, _, _) in enumerate(rows)
    ]
    require_equal(pgens(model, rows, ("pgen_nt",))[:, 0], [pgen(model, *row) for row in rows])


@FEW
@given(model=models, seed=st.integers(0, 99))
def test_amino_acids_are_the_sum_over_codons(model, seed):
    texts = in_frame(model, seed, 5)
    expected = [sum_over_codons(model, amino_acids) for amino_acids in translate(texts)]
    require_equal(pgens_of(model, texts, AA), expected)


@pytest.mark.slow
@FEW
@given(model=models, seed=st.integers(0, 99))
def test_ambiguous_and_custom_symbols(model, seed):
    """B, J, X, Z and a symbol of codons and amino acids."""
    alphabet = Alphabet.of({"%": ["A", "TGT", "B", "tgg"]})
    texts = translate(in_frame(model, seed, 4))
    texts = [letter + text[1:] for text in texts for letter in "BX"] + [text[:1] + "%" + text[2:] for text in texts]
    texts += ["JZ", "XJ", "%"]
    require_equal(aa_pgens(model, texts, alphabet), [sum_over_codons(model, text, alphabet) for text in texts])


@SETTINGS
@given(model=models)
def test_any_codons_are_the_distribution_of_lengths(model):
    values = aa_pgens(model, ["?" * codons for codons in range(1, 15)], ANY_CODON)
    require_equal(values, length_distribution(model, 42)[3::3])


@pytest.mark.slow
@SETTINGS
@given(model=models, seed=st.integers(0, 99))
def test_single_alleles_add_up_to_all(model, seed):
    texts = in_frame(model, seed, 13, number=6)
    pairs = list(product(model.contributing("V"), model.contributing("J")))
    parts = pgens(model, [(text, (v,), (j,)) for text in texts for v, j in pairs], PGEN_COLUMNS[:2])
    require_equal(
        pgens(model, [(text, None, None) for text in texts], PGEN_COLUMNS[:2]),
        parts.reshape(len(texts), -1, 2).sum(axis=1),
    )


@FEW
@given(model=models, seed=st.integers(0, 99))
@example(model=random_model(200, True), seed=0)  # its D forms have one or two bases
def test_one_mismatch_is_the_sum_over_the_neighbours(model, seed):
    """19 n + 1 sequences; where there is a stop, 20 residues are its neighbours."""
    texts = [*in_frame(model, seed, 8), "TGTTAATTT", "TAA"]
    expected = []
    for own in translate(texts):
        neighbours = [
            own[:place] + letter + own[place + 1 :]
            for place in range(len(own)) for letter in RESIDUES if letter != own[place]
        ]  # fmt: skip
        expected.append(pgens_of(model, list(map(nucleotides_of, [own, *neighbours])), AA).sum())
    require_equal(pgens_of(model, texts, BALL), expected)


@FEW
@given(model=models, seed=st.integers(0, 99))
def test_one_mismatch_is_the_sum_of_single_x(model, seed):
    """Less the sequence itself, which each of them has; the difference is taken of numbers of the same size."""
    texts = [text for text in in_frame(model, seed, 10) if "*" not in translate([text])[0]]
    own = pgens_of(model, texts, AA)
    for text, amino_acids, value in zip(texts, translate(texts), own, strict=True):
        with_x = aa_pgens(model, [amino_acids[:k] + "X" + amino_acids[k + 1 :] for k in range(len(amino_acids))])
        require_equal(pgens_of(model, [text], BALL), [with_x.sum() - (len(amino_acids) - 1) * value])


@pytest.mark.parametrize("has_d", [False, True])
def test_rows_out_of_frame_have_no_amino_acids(has_d):
    model = random_model(3, has_d)
    values = pgens(model, [("TGTTT"[:bases], None, None) for bases in range(1, 6)])
    assert np.isnan(values[:, AA]).tolist() == np.isnan(values[:, BALL]).tolist() == [True, True, False, True, True]
    assert not np.isnan(values[:, NT]).any()


@FEW
@given(model=models, seed=st.integers(0, 99))
def test_amino_acid_sequences_have_the_bits_of_what_they_translate(model, seed):
    """Also those that have others with ambiguous symbols beside them."""
    texts = in_frame(model, seed, 9, number=8)
    masks = [(None, None), (subset(model.contributing("V"), seed), None)]
    names = PGEN_COLUMNS[1:]
    expected = pgens(model, [(text, *masks[k % 2]) for k, text in enumerate(texts)], names)
    rows = [(text, *masks[k % 2]) for k, text in enumerate(translate(texts))]
    assert values(*amino_acid_problem(model, rows)).tobytes() == expected.tobytes()
    beside = values(*amino_acid_problem(model, [*rows, *((f"XB{text}Z", *own) for text, *own in rows)]))
    assert beside[: len(rows)].tobytes() == expected.tobytes()


@pytest.mark.slow
@FEW
@given(model=models, seed=st.integers(0, 99))
def test_one_mismatch_of_ambiguous_symbols(model, seed):
    """All sequences in which at most one symbol is another than those that the text allows."""
    alphabet = Alphabet.of({"%": ["A", "B", "C"], "j": ["X"]})
    parts = {"X": RESIDUES, "j": RESIDUES, "%": "ADNC", "B": "DN", "J": "IL", "Z": "EQ"}
    texts = ["B", "XX", "%C", "CBX", "CjJ", *(f"{text[0]}{letter}{text[-1]}" for text in ["CF"] for letter in "%BX")]
    values_of_texts = values(*amino_acid_problem(model, [(text, None, None) for text in texts], alphabet=alphabet))
    known = {}
    for text, ball in zip(texts, values_of_texts[:, 1], strict=True):
        allowed = [parts.get(symbol, symbol) for symbol in text]
        neighbours = [
            "".join(residues) for residues in product(RESIDUES, repeat=len(text))
            if sum(residue not in own for residue, own in zip(residues, allowed, strict=True)) <= 1
        ]  # fmt: skip
        if len(text) not in known:
            everything = ["".join(residues) for residues in product(RESIDUES, repeat=len(text))]
            known[len(text)] = dict(zip(everything, aa_pgens(model, everything), strict=True))
        require_equal([ball], [sum(known[len(text)][own] for own in neighbours)])


def fixed_model(v: str, d: str | None, j: str, longest: int, max_p: int = 0) -> Model:
    """A model of one allele each that loses any number of bases and inserts 0 … `longest`, with zeros in the chain."""
    transitions = np.array([[0.0, 0.5, 0.2, 0.1], [0.4, 0.0, 0.3, 0.2], [0.6, 0.5, 0.1, 0.7], [0.0, 0.0, 0.4, 0.0]])
    lengths = np.arange(1.0, longest + 2)
    chain = Insertion(lengths / lengths.sum(), transitions, np.array([0.0, 0.3, 0.3, 0.4]))

    def of(segment: str, segment_type: str) -> tuple[Template, ...]:
        return (Template(f"TRB{segment_type}1*01", segment, segment, extended_of(segment, segment_type, max_p)),)

    def deletions(template: Template) -> np.ndarray:
        return np.full((1, len(template.extended)), 1 / len(template.extended))

    own_v, own_j = of(v, "V"), of(j, "J")
    common = {"name": "fixed", "digest": "", "v": own_v, "j": own_j}
    common |= {"v_deletions": deletions(own_v[0]), "j_deletions": deletions(own_j[0])}
    empty, one = np.zeros((0, 0)), np.ones((1, 1))
    if d is None:
        return Model(
            **common, d=(), d_deletions=np.zeros((0, 0, 0)), insertions=(chain,), p_v=np.zeros(0), p_dj=empty, p_vj=one
        )
    own_d = of(d, "D")
    sizes = np.add(*np.indices((len(own_d[0].extended) + 1,) * 2))
    d_deletions = (sizes <= len(own_d[0].extended)).astype(float)[None]
    return Model(
        **common, d=own_d, d_deletions=d_deletions / d_deletions.sum(), insertions=(chain, chain), p_v=np.ones(1),
        p_dj=one, p_vj=empty,
    )  # fmt: skip


@pytest.mark.parametrize("d", [None, "GG", "GACAGG"])
def test_hostile_junctions(d):
    """Of 1 to 5 bases, wholly inside V or J, with no J, V and J overlapping, all the same base."""
    model = fixed_model("TGTGCCAGC", d, "AACTTT", 5, max_p=2)
    texts = ["TGTTT"[:bases] for bases in range(1, 6)] + ["TGTGCC", "TGTGCCAGC", "AACTTT", "TGTGCCA"]
    texts += ["TGTGCCGGG", "TGTGCCAGCAACTTT", "TGTGCCAGCGCTGTTAACTTT", "TTTTTTTTTTTT", "CCCCCC", "TGTAACTTTAAATTT"]
    require_equal(pgens_of(model, texts, NT), [pgen(model, text) for text in texts])
    short = [text for text in texts if len(text) in (3, 6, 9)]
    require_equal(pgens_of(model, short, AA), [sum_over_codons(model, own) for own in translate(short)])


@pytest.mark.parametrize("d", [None, "G"])
@pytest.mark.parametrize("longest", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("v", ["TGT", "TGTG", "TGTGC"])
def test_the_longest_insertion_at_each_frame(v, longest, d):
    """Only the longest is possible; OLGA 1.3.0 loses it where it begins a codon and has one base more than codons."""
    model = fixed_model(v, d, "TTT", longest)
    lengths = np.eye(longest + 1)[longest]
    model = replace(model, insertions=tuple(replace(own, lengths=lengths) for own in model.insertions))
    most = len(v) + 3 + longest * len(model.insertions) + (d is not None)
    values = aa_pgens(model, ["?" * codons for codons in range(1, most // 3 + 2)], ANY_CODON)
    expected = length_distribution(model, 3 * (most // 3 + 1))[3::3]
    require_equal(values, expected)
    assert expected.any()
    rng = np.random.default_rng(longest)
    texts = [sample(model, rng).junction for _ in range(20)]
    require_equal(pgens_of(model, texts, NT), [pgen(model, text) for text in texts])
    assert pgens_of(model, texts, NT).all()


@pytest.mark.slow
@pytest.mark.parametrize("bases", [63, 64, 65, 126, 127, 128])
@pytest.mark.parametrize("d", [None, "GAC"])
def test_junctions_as_long_as_their_words(bases, d):
    model = fixed_model("TGTGC", d, "GGTTT", bases if d is None else bases // 2)
    rng = np.random.default_rng(bases)
    drawn = (sample(model, rng).junction for _ in range(10_000))
    texts = list(islice((text for text in drawn if len(text) == bases), 2))
    values = pgens_of(model, texts, NT)
    require_equal(values, [pgen(model, text) for text in texts])
    assert values.all()
    codons = bases // 3
    require_equal(aa_pgens(model, ["?" * codons], ANY_CODON), length_distribution(model, 3 * codons)[-1:])
    if bases % 3 == 0:
        amino_acids = [pgens_of(model, texts, column) for column in (AA, BALL)]
        assert (values <= amino_acids[0]).all()
        assert (amino_acids[0] <= amino_acids[1]).all()


@pytest.mark.parametrize("has_d", [False, True])
def test_sets_without_alleles(has_d):
    """A gene that cannot contribute: the row is there, and its probability is 0."""
    model = random_model(12, has_d)
    v, j = model.contributing("V"), model.contributing("J")
    rows = [("TGTTTT", masks[0], masks[1]) for masks in [((), j), (v, ()), ((), ()), (v, j)]]
    for chosen in (rows[:3], rows):
        assert not pgens(model, chosen)[:3].any()


@pytest.mark.parametrize("has_d", [False, True])
def test_an_empty_repertoire(has_d):
    assert pgens(random_model(12, has_d), []).shape == (0, 3)


def test_kernels_are_compiled_once():
    """The arguments have the same types and layouts, whatever the model and the sets of alleles."""
    types: dict[str, set[tuple[str, ...]]] = {}
    for seed in range(8):
        model = random_model(seed, bool(seed % 2))
        v, j = model.contributing("V"), model.contributing("J")
        for pairs in ([], [((), ())], [(v, j)], [((v_place,), (j_place,)) for v_place, j_place in product(v, j)]):
            tables = Tables.of(model, pairs)
            texts = [("CXXBF", None, None), ("CF", None, None)][: seed % 3 if pairs else 0]
            ambiguous = Ambiguous.of(amino_acid_problem(model, texts)[0], ball=seed % 4 < 2)
            arguments = {"aa": amino_acid_tables(tables, Alphabet.of(), ambiguous), "nt": nt_cpu.arguments(tables)}
            for kernel, own in arguments.items():
                types.setdefault(kernel, set()).add(tuple(str(numba.typeof(value)) for value in own))
    assert [len(own) for own in types.values()] == [1, 1]


@pytest.mark.parametrize("has_d", [False, True])
def test_any_slice_and_any_number_of_threads_give_the_same_bits(has_d):
    """More sequences than a chunk, in several sets of alleles."""
    model = random_model(21, has_d)
    texts = junctions_of(model, 5, 1300)
    masks = [(None, None), (subset(model.contributing("V"), 1), None), (None, (model.contributing("J")[0],))]
    problem, _ = problem_of(model, [(text, *masks[k % 3]) for k, text in enumerate(texts)])
    kernel, unit = PgenKernel(problem, 1), unit_of(problem)
    expected = kernel(unit, 0, len(texts))
    most = numba.get_num_threads()
    try:
        for threads in {1, most}:
            numba.set_num_threads(threads)
            for bounds in ([0, 1300], [0, 1, 2, 513, 1299, 1300], [0, 433, 867, 1300]):
                parts = [kernel(unit, first, last)[first:last] for first, last in pairwise(bounds)]
                assert np.array_equal(np.concatenate(parts), expected, equal_nan=True)
    finally:
        numba.set_num_threads(most)
    assert (expected[:, NT] > 0).any()


@SETTINGS
@given(model=models, seed=st.integers(0, 99))
def test_other_rows_do_not_change_a_rows_bits(model, seed):
    """A table, a slice and the rows of a rank have other genes beside a row's own."""
    v, j, rng = model.contributing("V"), model.contributing("J"), np.random.default_rng(seed)
    texts = [text for text in (sample(model, rng).junction for _ in range(12)) if text] or ["TGTTTT"]
    calls = [
        (None, None),
        *(((a,), None) for a in v),
        *((None, (b,)) for b in j),
        *(((a,), (b,)) for a in v for b in j),
    ]
    rows = [(text, *own) for text in texts for own in calls]
    together = pgens(model, rows)
    for own in calls:
        chosen = [k for k, row in enumerate(rows) if row[1:] == own]
        assert np.array_equal(pgens(model, [rows[k] for k in chosen]), together[chosen], equal_nan=True)


def test_a_unit_that_is_a_part_of_the_rows():
    model = random_model(21, True)
    problem, _ = problem_of(model, [(text, None, None) for text in junctions_of(model, 5, 40)])
    kernel, unit = PgenKernel(problem, 1), unit_of(problem)
    part = replace(unit, rows=range(7, 31), tasks=24)
    assert np.array_equal(kernel(part, 0, 24), kernel(unit, 0, 40)[7:31], equal_nan=True)


def test_columns_do_not_depend_on_each_other():
    model = random_model(8, True)
    rows = [(text, None, None) for text in junctions_of(model, 5, 40)]
    together = pgens(model, rows)
    for column, name in enumerate(PGEN_COLUMNS):
        assert np.array_equal(pgens(model, rows, (name,))[:, 0], together[:, column], equal_nan=True)


def test_as_many_symbols_as_there_may_be():
    custom = dict.fromkeys(OTHERS[:39], "C")
    model = random_model(4, True)
    assert aa_pgens(model, [OTHERS[38] * 2], Alphabet.of(custom)) == aa_pgens(model, ["CC"])
