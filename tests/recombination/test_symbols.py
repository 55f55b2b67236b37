"""Symbols of amino-acid sequences, and the files that define them."""

from itertools import product

import numpy as np
import pytest

from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import AMINO_ACIDS, INVALID, NUCLEOTIDES
from hpcvdj.recombination.symbols import AMBIGUOUS, Alphabet, read_alphabet
from tests.kernels.pgen.models import OTHERS, codons_of


def test_the_standard_alphabet():
    """Each symbol has its codons by the genetic code, an ambiguous one those of its amino acids."""
    alphabet = Alphabet.of()
    for symbol in alphabet.symbols:
        expected = AMBIGUOUS.get(symbol, symbol)
        assert sorted(codons_of(alphabet, symbol)) == sorted(c for c, own in AMINO_ACIDS.items() if own in expected)
    assert len(codons_of(alphabet, "X")) == 61


@pytest.mark.parametrize(
    ("custom", "message"),
    [
        ({"A": ["C"]}, "symbol 'A': is an amino acid or a stop; choose another one"),
        ({"*": ["C"]}, r"symbol '\*': is an amino acid or a stop; choose another one"),
        *(({symbol: ["C"]}, "must be one printable ASCII character") for symbol in ("ab", "", "é", "4", "[", " ")),
        ({"%": ["TGTT"]}, "symbol '%': 'TGTT' is no symbol and no codon; correct it"),
        ({"%": ["&"], "&": ["C"]}, "symbol '%': '&' is no symbol and no codon; correct it"),
        ({"%": []}, "symbol '%': has no codon"),
        (dict.fromkeys(OTHERS[:40], "C"), "65 symbols; at most 64 can be used"),
    ],
)
def test_symbols_that_cannot_be(custom, message):
    with pytest.raises(InputError, match=message):
        Alphabet.of(custom)


def read(tmp_path, text: str) -> Alphabet:
    path = tmp_path / "alphabet.txt"
    path.write_text(text, encoding="utf-8")
    return read_alphabet(path)


FILES = {
    "parts": "x: D, E, AAA\n",
    "blanks and brackets": "  x :\t[ D ,E,\taaa ]\n\n&:x,K;\n",
    "defined before": "x: B, I\ny: x, TTT\nz:y,y,x",
    "standard symbols": "B: C\nX: A, B, C\nJ: TGA, *",
    "no end of line": "#: *",
    "carriage returns": "x: D\r\ny: E\r\n",
    "empty parts": "x: ,D,,E,",
    "a lower-case and an upper-case letter": "u: C\nU: D\n",
    "byte order mark": "\ufeffx: D\n",
}
"""Alphabet files that are read."""


def test_symbols_of_a_file(tmp_path):
    alphabet = read(tmp_path, FILES["blanks and brackets"])
    assert codons_of(alphabet, "x") == codons_of(Alphabet.of({"x": ["D", "E", "AAA"]}), "x")
    assert sorted(codons_of(alphabet, "&")) == sorted([*codons_of(alphabet, "x"), "AAG"])
    assert alphabet.definitions() == {"x": codons_of(alphabet, "x"), "&": codons_of(alphabet, "&")}
    assert read(tmp_path, "X: A\n").definitions() == {"X": codons_of(Alphabet.of(), "A")}
    assert Alphabet.of().definitions() == read(tmp_path, "B: N, D").definitions() == {}


@pytest.mark.olga
@pytest.mark.parametrize("name", FILES)
def test_olga_reads_the_same_symbols(tmp_path, name):
    from olga.utils import construct_codons_dict

    alphabet = read(tmp_path, FILES[name])
    # Without empty lines, at which OLGA ends with an IndexError, and without the mark.
    (tmp_path / "alphabet.txt").write_text(FILES[name].replace("\n\n", "\n").removeprefix("\ufeff"))
    peer = construct_codons_dict(str(tmp_path / "alphabet.txt"))
    own = {symbol: set(codons_of(alphabet, symbol)) for symbol in alphabet.symbols}
    # OLGA has a symbol for each codon as well, beyond ASCII.
    assert own == {symbol: set(codons) for symbol, codons in peer.items() if symbol.isascii()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "defines no symbol; write lines"),
        ("\n \n", "defines no symbol"),
        ("x: D\n\nx D, E\n", "line 3: no colon"),
        ("x: D\nx: E\n", "line 2: symbol 'x' is defined twice"),
        ("x: D, QQ\n", "line 1: symbol 'x': 'QQ' is no symbol and no codon"),
        ("x: y\ny: D\n", "line 1: symbol 'x': 'y' is no symbol"),
        ("x:\n", "line 1: symbol 'x': has no codon"),
        ("x: D:E\n", "line 1: symbol 'x': 'D:E' is no symbol"),
        ("C: D\n", "line 1: symbol 'C': is an amino acid"),
        ("xy: D\n", "line 1: symbol 'xy': must be one"),
        (": D\n", "line 1: symbol '': must be one"),
        ("7: D\n", "line 1: symbol '': must be one"),
        ("é: D\n", "line 1: symbol 'é': must be one"),
        ("".join(f"{symbol}: C\n" for symbol in OTHERS[:40]), "line 40: 65 symbols"),
    ],
)
def test_files_that_are_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=f"alphabet.txt.*{message}"):
        read(tmp_path, text)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="no such alphabet file; give a file with lines such as"):
        read_alphabet(tmp_path / "no.txt")
    (tmp_path / "latin1.txt").write_bytes("é: D\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        read_alphabet(tmp_path / "latin1.txt")


@pytest.mark.parametrize(
    ("custom", "message"),
    [
        ({"X": ["A", "C"]}, "the alphabet defines X"),
        ({"%": ["A", "*"]}, "symbol '%' of the alphabet has a stop codon"),
        ({"B": ["TGA"]}, "symbol 'B' of the alphabet has a stop codon"),
    ],
)
def test_alphabets_without_sums_over_a_mismatch(custom, message):
    with pytest.raises(InputError, match=message):
        Alphabet.of(custom).require_mismatches()


def test_alphabets_with_sums_over_a_mismatch():
    for custom in ({}, {"%": ["A", "TGT"]}, {"B": ["C"]}, {"X": AMBIGUOUS["X"][::-1]}):
        Alphabet.of(custom).require_mismatches()


def test_letters_that_tables_may_have():
    """Lower case is read, unless it is a symbol of its own; a stop is not read."""
    codes = Alphabet.of({"c": ["W"], "%": ["A"]})
    known = {chr(byte): codes.symbols[code] for byte, code in enumerate(codes.code_of_byte) if code != INVALID}
    letters = set(codes.symbols) - {"*"}
    assert known == {letter: letter for letter in letters} | {
        letter.lower(): letter for letter in letters if letter.isalpha() and letter not in "cC"
    }
    known = {chr(byte): "ACTG"[code] for byte, code in enumerate(NUCLEOTIDES.code_of_byte) if code != INVALID}
    assert known == {letter: letter.upper() for letter in "ACGTacgt"}


def test_symbols_and_codons_are_where_kernels_look_for_them():
    """Whatever the alphabet defines, the symbols that kernels know are at the same place."""
    first, second = Alphabet.of(), Alphabet.of({"X": "A", "x": "XC", "B": "D"})
    assert second.symbols.startswith(first.symbols)
    assert first.symbols[0] not in {*AMBIGUOUS, "*"}
    assert np.array_equal(first.of_codon, second.of_codon)
    assert [first.symbols[code] for code in first.of_codon] == [
        AMINO_ACIDS["".join(codon)] for codon in product("ACTG", repeat=3)
    ]
