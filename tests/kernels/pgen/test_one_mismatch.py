"""Sums over one mismatch on CPU cores: all models that come with olga, and models in which little is possible."""

from dataclasses import replace
from itertools import product
from math import fsum

import numpy as np
import pytest

from hpcvdj.recombination.alphabet import AMINO_ACIDS, translate
from hpcvdj.recombination.igor import OLGA_FOLDERS
from hpcvdj.recombination.symbols import Alphabet
from tests.kernels.pgen.models import (
    Junction,
    aa_pgens,
    amino_acid_problem,
    codons_of,
    length_distribution,
    mutated,
    pgens,
    queries,
    random_model,
    require_equal,
    values,
)
from tests.kernels.pgen.problems import olga_model
from tests.kernels.pgen.test_pgen_cpu import RESIDUES, fixed_model
from tests.loci import exhaustive_but
from tests.recombination.definition import pgen

QUICK = ("human_trb", "mouse_tra")

LARGEST_DIFFERENCE = 5e-14
"""Relative.  The sum is that with any residue at each position, less as often the sequence itself: its rounding errors
count up to as often as there are codons.  The largest that was measured is 9e-15."""


def ball(amino_acids: str) -> list[str]:
    """A sequence and its neighbours."""
    return [amino_acids] + [
        amino_acids[:place] + letter + amino_acids[place + 1 :]
        for place in range(len(amino_acids)) for letter in RESIDUES if letter != amino_acids[place]
    ]  # fmt: skip


def require_sums(model, rows: list[Junction]) -> np.ndarray:
    """Compare sums over one mismatch with those of `pgen_aa` of each neighbour, and return them."""
    found = pgens(model, rows)[:, 1:]
    neighbours = [ball(text) for text in translate([text for text, *_ in rows])]
    asked = [(own, *masks) for texts, (_, *masks) in zip(neighbours, rows, strict=True) for own in texts]
    parts = iter(values(*amino_acid_problem(model, asked, ("pgen_aa",)))[:, 0])
    expected = np.array([fsum(next(parts) for _ in texts) for texts in neighbours])
    assert np.array_equal(found[:, 1] == 0, expected == 0)
    np.testing.assert_allclose(found[:, 1], expected, rtol=LARGEST_DIFFERENCE, atol=0)
    assert (found[:, 1] >= found[:, 0]).all()
    return found[:, 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive_but(OLGA_FOLDERS, *QUICK))
def test_models_of_olga(name):
    """Drawn, mutated and random junctions with the genes of all kinds of calls; stops, few codons, many codons."""
    model = olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    rows: list[Junction] = []
    for row in queries(model, 24, 5, longest=128):
        calls = (("V", row.v_call), ("J", row.j_call))
        masks = [model.resolve(segment, call).places if call else None for segment, call in calls]
        rows.append((row.junction, *masks))
    v, j = model.contributing("V"), model.contributing("J")
    text = model.v[v[0]].extended
    for hostile in ("TGT", "TAA", "TGTTAGTTT", "TGTTGATAATTT", "T" * 30, "C" * 45, text[: len(text) // 3 * 3]):
        rows += [(hostile, None, None), (hostile, v[:1], j[-1:]), (hostile, v[:2], ())]
    rows.append(("TGT" + "GCAGGATCC" * 15 + "TTT", None, j[:1]))
    assert (require_sums(model, rows) > 0).sum() > 12


@pytest.mark.parametrize("has_d", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_definition(seed, has_d):
    """The sum over the scenarios of every nucleotide sequence of every neighbour."""
    model, alphabet = random_model(seed, has_d), Alphabet.of()
    v, j = model.contributing("V"), model.contributing("J")
    masks = [(None, None), (v[:1], None), (None, j[-1:]), (v[-1:], j[:1])]
    texts = ["TGT", "TGTTTT", "TAATTT"]
    rows = [(text, *mask) for text in texts for mask in masks]
    expected = [
        fsum(
            pgen(model, "".join(codons), *mask)
            for own in ball(translate([text])[0])
            for codons in product(*(codons_of(alphabet, symbol) for symbol in own))
        )
        for text, *mask in rows
    ]
    require_equal(pgens(model, rows)[:, 2], expected)


@pytest.mark.parametrize("d", [None, "GACAGGGACT"])
@pytest.mark.parametrize("longest", [0, 1, 2, 3, 4, 5, 8, 12])
def test_hostile_junctions(longest, d):
    """Insertions that end before the junction does, mutated V and J, V and J alone, all the same base, stops."""
    model, rng = fixed_model("TGTGCCAGC", d, "AACTTT", longest, max_p=2), np.random.default_rng(longest)
    texts = ["TGT", "TTT", "TGTGCCAGC", "AACTTT", "TGTGCCAGCAACTTT", "TGTTAGAACTTT", "TTTTTTTTTTTT", "CCCCCCCCC"]
    for codons in range(8):
        text = "TGTGCCAGC" + "".join(rng.choice(list("ACGT"), 3 * codons)) + "AACTTT"
        texts += [text, mutated(text, rng), mutated(text, rng), mutated(text, rng, 6)]
    assert (require_sums(model, [(text, None, None) for text in texts]) > 0).sum() >= 8


@pytest.mark.parametrize("d", [None, "GACTG"])
@pytest.mark.parametrize("bases", range(3, 9))
def test_what_is_made_in_one_way(bases, d):
    """V, D and J meet anywhere in a codon: only one sequence is possible, so every sum is its probability or 0."""
    text = "TGTGCCAGC"[:bases] + (d or "")
    j = "CATTCTTT"[: 3 - len(text) % 3 + 3]
    model = fixed_model("TGTGCCAGC"[:bases], d, j, 0)
    own = translate([text + j])[0]
    value = aa_pgens(model, [own])[0]
    # Deletions are as likely as none, so shorter ones are possible; not of the same length.
    assert value > 0
    assert value == length_distribution(model, len(text + j))[-1]
    changed = [letter for letter in RESIDUES if letter != own[1]][:3]
    texts = [own, *(own[:1] + letter + own[2:] for letter in changed), *("W" + letter + own[2:] for letter in "WY")]
    sums = values(*amino_acid_problem(model, [(text, None, None) for text in texts]))[:, 1]
    require_equal(sums, [value] * 4 + [0.0] * 2)


@pytest.mark.parametrize("d", [None, "GAC"])
def test_small_probabilities(d):
    """Numbers close to the least that there are; with two insertions the product is too small, and 0."""
    model = fixed_model("TGTGC", d, "GGTTT", 5)
    size = 1e-290 if d is None else 1e-180
    lengths = np.array([0.0, *(size * model.insertions[0].lengths[1:])])
    model = replace(model, insertions=tuple(replace(own, lengths=lengths) for own in model.insertions))
    texts = ["TGTGCAGGTTTT", "TGTGCCGACGGTTTT", "TGTGCCAGGTTT"]
    sums = require_sums(model, [(text, None, None) for text in texts])
    assert (sums > 0).all() == (d is None)
    assert (sums < 1e-280).all()


def test_the_letters_of_the_residues():
    assert set(RESIDUES) == set(AMINO_ACIDS.values()) - {"*"}
