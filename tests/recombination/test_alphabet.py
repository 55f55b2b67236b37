"""hpcvdj.recombination.alphabet"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.recombination import alphabet

dna = st.text("ACGT", max_size=130)


def test_the_papers_codes():
    assert [alphabet.encode(base)[0] for base in "ACTG"] == [0b00, 0b01, 0b10, 0b11]


@given(dna)
def test_encode_and_decode(text):
    assert alphabet.decode(alphabet.encode(text)) == text
    assert alphabet.decode(alphabet.encode(text.lower())) == text


@given(dna)
def test_pack_and_unpack(text):
    words = alphabet.pack(alphabet.encode(text), alphabet.NUCLEOTIDES.words_for(len(text)))
    assert alphabet.decode(alphabet.unpack(words, len(text))) == text


@pytest.mark.slow
@given(st.text("ACGT", max_size=60))
def test_packing_is_the_papers_byte_for_byte(text):
    """Four bases to a byte, the first in the upper bits, zeros after the last (section V-A)."""
    bytes_ = bytearray(16)
    for k, base in enumerate(text):
        bytes_[k // 4] |= "ACTG".index(base) << (6 - 2 * (k % 4))
    assert alphabet.pack(alphabet.encode(text), 2).astype(">u8").tobytes() == bytes(bytes_)


@pytest.mark.parametrize(("length", "size"), [(0, 0), (1, 1), (4, 1), (5, 2), (60, 15)])
def test_packed_bytes(length, size):
    assert alphabet.packed_bytes(length) == size


@given(dna)
def test_reverse_complement_is_its_own_inverse(text):
    assert alphabet.reverse_complement(alphabet.reverse_complement(text)) == text
    assert alphabet.reverse_complement("AACG") == "CGTT"


@pytest.mark.parametrize(("text", "place"), [("ACN", 3), ("-ACG", 1), ("ACGU", 4), ("AÇG", 2)])
def test_encode_names_the_first_other_letter(text, place):
    with pytest.raises(ValueError, match=f"position {place} "):
        alphabet.encode(text)


def test_pack_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="could not broadcast"):
        alphabet.pack(np.zeros(65, dtype=np.uint8), 2)
