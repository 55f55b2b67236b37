"""The probability of each neighbour of an amino-acid sequence: against the kernel of one sequence at a time."""

from itertools import product
from math import fsum

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.kernels.neighbours.balls import balls
from hpcvdj.kernels.pgen.exchanges_cpu import exchanged
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import OLGA_FOLDERS
from hpcvdj.recombination.repertoire import PgenProblem, Repertoire
from hpcvdj.recombination.symbols import Alphabet
from tests.kernels.pgen.models import (
    Junction,
    amino_acid_problem,
    codons_of,
    joint_model,
    models,
    mutated,
    pgens,
    queries,
    random_model,
    require_equal,
    sample,
    values,
)
from tests.kernels.pgen.problems import olga_model, small_model
from tests.kernels.pgen.test_pgen_cpu import FEW, RESIDUES, fixed_model, in_frame
from tests.loci import exhaustive_but
from tests.recombination.definition import pgen

QUICK = ("human_trb", "mouse_tra")

AA = ("pgen_aa",)


def neighbours(text: str, kept: int, residues: str = RESIDUES) -> list[str]:
    """A sequence and those with one residue exchanged."""
    return [text] + [
        text[:place] + letter + text[place + 1 :]
        for place in range(kept, len(text) - kept) for letter in residues if letter != text[place]
    ]  # fmt: skip


def by_row(model, rows: list[Junction], kept: int, residues: str = RESIDUES) -> list[np.ndarray]:
    """The values of each row and its neighbours."""
    problem, row_of = amino_acid_problem(model, rows, AA)
    found, begins = exchanged(problem, residues, kept)
    assert begins[-1] == len(found)
    return [found[begins[row] : begins[row + 1]] for row in row_of.tolist()]


def require_each(model, rows: list[Junction], kept: int, residues: str = RESIDUES) -> np.ndarray:
    """Compare with `pgen_aa` of each sequence: the same zeros, the same values but for the order of summation."""
    asked = [(own, *masks) for text, *masks in rows for own in neighbours(text, kept, residues)]
    expected = values(*amino_acid_problem(model, asked, AA))[:, 0]
    found = np.concatenate(by_row(model, rows, kept, residues))
    require_equal(found, expected)
    return found


def masks_of(model) -> list[tuple]:
    v, j = model.contributing("V"), model.contributing("J")
    return [(None, None), (v[:1], None), (None, j[-1:]), (v[-1:], j[:1]), ((), None), (v, ())]


@FEW
@given(model=models, seed=st.integers(0, 99), kept=st.integers(0, 2))
def test_random_models(model, seed, kept):
    """Drawn, mutated and random junctions; one to three residues, of which some are kept; stops."""
    texts = [*translate(in_frame(model, seed, 9, number=4)), "C", "CF", "CAF", "*", "C*F", "**A*"]
    require_each(model, [(text, *masks) for text in texts for masks in masks_of(model)], kept)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [joint_model, small_model, lambda seed: random_model(seed, False, 7)])
def test_models_of_other_kinds(make, seed):
    model, rng = make(seed), np.random.default_rng(seed)
    drawn = [text for text in (sample(model, rng).junction for _ in range(12)) if text]
    texts = translate([own[: len(own) // 3 * 3] for text in drawn for own in (text, mutated(text, rng))])
    rows = [(text, *masks) for text in texts if text for masks in masks_of(model)[:4]]
    require_each(model, rows, 1)


@pytest.mark.parametrize("has_d", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_definition(seed, has_d):
    """The sum over the scenarios of every nucleotide sequence of every neighbour."""
    model, alphabet = random_model(seed, has_d), Alphabet.of()
    rows = [(text, *masks) for text in ("CF", "CAF") for masks in masks_of(model)[:4]]
    expected = [
        fsum(
            pgen(model, "".join(codons), *masks)
            for codons in product(*(codons_of(alphabet, letter) for letter in own))
        )
        for text, *masks in rows for own in neighbours(text, 0, "CGS")
    ]  # fmt: skip
    require_equal(np.concatenate(by_row(model, rows, 0, "CGS")), expected)


@pytest.mark.parametrize("d", [None, "G", "GA", "GAC", "GACAGGGACT"])
@pytest.mark.parametrize("longest", [0, 1, 2, 3, 4, 5, 8, 12])
def test_hostile_junctions(longest, d):
    """Insertions that end before the junction does, mutated V and J, V and J alone, stops, few and many codons."""
    model, rng = fixed_model("TGTGCCAGC", d, "AACTTT", longest, max_p=2), np.random.default_rng(longest)
    texts = ["TGT", "TTT", "TGTGCCAGC", "AACTTT", "TGTGCCAGCAACTTT", "TGTTAGAACTTT", "TTTTTTTTTTTT", "CCCCCCCCC"]
    for codons in (0, 1, 2, 3, 5, 8, 36):
        text = "TGTGCCAGC" + "".join(rng.choice(list("ACGT"), 3 * codons)) + "AACTTT"
        texts += [text, mutated(text, rng), mutated(text, rng, 6)]
    rows = [(text, None, None) for text in translate(texts)]
    assert (require_each(model, rows, 0) > 0).sum() > 12
    assert (require_each(model, rows, 1, "") > 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive_but(OLGA_FOLDERS, *QUICK))
def test_models_of_olga(name):
    """With the genes of all kinds of calls, as `annotate` asks: by V and J, by V, with none; ends kept."""
    model = olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    rows: list[Junction] = []
    for row in queries(model, 24, 5, longest=128):
        if len(row.junction) % 3 == 0:
            v, j = (model.resolve(segment, call).places if call else None
                    for segment, call in (("V", row.v_call), ("J", row.j_call)))  # fmt: skip
            text = translate([row.junction])[0]
            rows += [(text, v, j), (text, v, None), (text, None, None)]
    assert (require_each(model, rows, 1) > 0).sum() > 1_000


def test_other_letters_have_no_value():
    """Nor do they change the values of other rows."""
    model = small_model(1)
    rows = [(text, None, None) for text in ("CASSF", "CAXSF", "BASSF", "CAS*F")]
    plain, *others, stop = by_row(model, rows, 1)
    assert all(np.isnan(own).all() for own in others)
    assert [len(own) for own in (plain, *others, stop)] == [58, 59, 58, 59]
    assert plain.tobytes() == by_row(model, rows[:1], 1)[0].tobytes()
    assert stop[0] > 0
    assert not np.isnan(stop).any()


def test_the_order_is_that_of_balls():
    problem, row_of = amino_acid_problem(small_model(2), [("CASSF", None, None), ("CAF", None, None)], AA)
    letters = np.zeros((2, 8), dtype=np.uint8)
    for row, text in zip(row_of.tolist(), ("CASSF", "CAF"), strict=True):
        letters[row, : len(text)] = list(text.encode())
    rows, sizes = balls(letters, (letters > 0).sum(axis=1), np.frombuffer(RESIDUES.encode(), np.uint8), 1)
    found, begins = exchanged(problem, RESIDUES, 1)
    assert np.diff(begins).tolist() == sizes.tolist()
    texts = [bytes(row).rstrip(b"\0").decode() for row in rows]
    require_equal(found, values(*amino_acid_problem(small_model(2), [(text, None, None) for text in texts], AA))[:, 0])


def test_the_bits_do_not_depend_on_threads_or_on_other_rows():
    model, rng = small_model(3), np.random.default_rng(3)
    drawn = [text for text in (sample(model, rng).junction for _ in range(400)) if text]
    rows = [(text, None, None) for text in translate([text[: len(text) // 3 * 3] for text in drawn]) if text]
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = by_row(model, rows, 1)
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        together = by_row(model, rows, 1)
    finally:
        numba.set_num_threads(before)
    assert len(rows) > 64
    for row, own, other in zip(rows[:80], alone, together, strict=False):
        assert own.tobytes() == other.tobytes() == by_row(model, [row], 1)[0].tobytes()


def test_no_rows():
    model = small_model(1)
    none = Repertoire(np.zeros((0, 1), np.uint64), np.zeros(0, np.uint8), [], np.zeros(1, np.int64), Alphabet.of())
    found, begins = exchanged(PgenProblem(none, model, AA), RESIDUES, 1)
    assert len(found) == 0
    assert begins.tolist() == [0]


def test_models_that_make_nothing_have_zeros():
    """V alleles that are never chosen left their trees unfilled, and sums over one mismatch had no value."""
    model = random_model(5, False)
    assert not model.p_vj[:2].any()
    assert pgens(model, [("TGTGCAGCA", None, None)]).tolist() == [[0.0, 0.0, 0.0]]
    require_each(model, [("CAA", None, None), ("CAF", None, None)], 0)
