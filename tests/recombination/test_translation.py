"""The genetic code, against a table by amino acid."""

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import translate

CODONS = {
    "A": "GCT GCC GCA GCG", "R": "CGT CGC CGA CGG AGA AGG", "N": "AAT AAC", "D": "GAT GAC", "C": "TGT TGC",
    "Q": "CAA CAG", "E": "GAA GAG", "G": "GGT GGC GGA GGG", "H": "CAT CAC", "I": "ATT ATC ATA",
    "L": "TTA TTG CTT CTC CTA CTG", "K": "AAA AAG", "M": "ATG", "F": "TTT TTC", "P": "CCT CCC CCA CCG",
    "S": "TCT TCC TCA TCG AGT AGC", "T": "ACT ACC ACA ACG", "W": "TGG", "Y": "TAT TAC", "V": "GTT GTC GTA GTG",
    "*": "TAA TAG TGA",
}  # fmt: skip


def amino(letters):
    one = {codon: name for name, codons in CODONS.items() for codon in codons.split()}
    return "".join(one[letters[k : k + 3]] for k in range(0, len(letters), 3)) if len(letters) % 3 == 0 else ""


def test_the_genetic_code():
    codons = ["".join(letters) for letters in itertools.product("ACGT", repeat=3)]
    assert translate(codons) == [amino(codon) for codon in codons]
    assert translate(["".join(codons), "", "A", "AC", "TGTA", "ATGGCC"]) == [amino("".join(codons)), *[""] * 4, "MA"]
    assert translate([]) == []


def test_columns_with_missing_sequences():
    """pandas has three kinds of missing values, and pyarrow its own."""
    texts = ["TGT", None, "gcc"]
    for column in (
        texts, pd.Series(texts), pd.Series(texts, dtype="string"), pd.Series(["TGT", np.nan, "gcc"], dtype=object),
        pa.array(texts), pa.chunked_array([texts[:1], texts[1:]]), iter(texts),
    ):  # fmt: skip
        assert translate(column) == ["C", "", "A"]
    for wrong in (3.5, b"TGT", ["TGT"]):
        with pytest.raises(InputError, match=r"translate takes sequences as text; .* is none"):
            translate(["TGT", wrong])
