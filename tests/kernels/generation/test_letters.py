"""The loops over packed junctions against the text: translation, and which junctions are productive."""

from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hpcvdj.kernels.generation.letters import productive_rows
from hpcvdj.kernels.text import translate_rows
from hpcvdj.recombination.alphabet import AMINO_ACIDS, NUCLEOTIDES, RESIDUE_OF_CODON, encode, pack, translate
from hpcvdj.recombination.models import BASES
from hpcvdj.recombination.productive import PRODUCTIVE


def packed(texts):
    """(words, lengths) of junctions."""
    width = NUCLEOTIDES.words_for(max(map(len, texts)))
    words = np.array([pack(encode(text), width) for text in texts])
    return words, np.array([len(text) for text in texts], dtype=np.uint16)


def hostile_junctions():
    """Every first and last codon, every codon at every place across three words, and every length."""
    codons = ["".join(bases) for bases in product(BASES, repeat=3)]
    texts = ["", *codons, *(first + last for first, last in product(codons, repeat=2))]
    for place in range(1, 33):
        texts += ["TGT" + (place - 1) * "GCA" + codon + (32 - place) * "GAC" + "TTC" for codon in codons]
    rng = np.random.default_rng(1)
    for length in range(130):
        texts += [("TGC" + "".join(rng.choice(list("ACGT"), length)) + "TGG")[: length + 6] for _ in range(20)]
        texts.append("TGC" + length * "A" + "TGG")
    return texts


def test_productive_rows_are_those_that_the_regular_expressions_of_tables_match():
    texts = hostile_junctions()
    words, lengths = packed(texts)
    productive = np.empty(len(texts), dtype=bool)
    productive_rows(words, lengths, productive)
    assert 1000 < productive.sum() < len(texts) - 1000
    for name, column in (("junction", texts), ("junction_aa", translate(texts))):
        matched = pc.match_substring_regex(pa.array(column), PRODUCTIVE[name], ignore_case=True)
        assert matched.to_pylist() == productive.tolist(), name


@pytest.mark.parametrize("gap", [0, 3])
def test_translation(gap):
    texts = hostile_junctions()
    residues = translate(texts)
    assert set(AMINO_ACIDS.values()) == {letter for text in residues for letter in text}
    words, _ = packed(texts)
    codons = np.array([len(text) for text in residues])
    begins = np.concatenate(([0], (codons + gap).cumsum()))
    out = np.full(begins[-1], ord("."), dtype=np.uint8)
    translate_rows(words, codons, RESIDUE_OF_CODON, begins, out)
    assert out.tobytes().decode() == "".join(text + gap * "." for text in residues)
