"""Junctions of amino acids: every row is read, or excluded with its reason."""

import numpy as np
import pyarrow as pa
import pytest

from hpcvdj.errors import InputError
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.recombination.symbols import Alphabet
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import Reading, productive_reading, reading_of
from hpcvdj.repertoires.sequence_fields import common_fields
from hpcvdj.repertoires.table import table_at
from tests.kernels.pgen.models import random_model

ALPHABET = Alphabet.of({"%": "AC", "c": ["W"]})


def read(texts, alphabet=ALPHABET, longest=192):
    """The junctions of a table of amino acids, all genes taken."""
    reading = Reading("junction_aa", longest=longest, anchors=True, genes="any", alphabet=alphabet)
    return read_table(pa.table({"junction_aa": pa.array(texts, pa.string())}), random_model(1, True), reading)


def sequences_of(junctions):
    """The sequences of a repertoire, in their order, from their packed symbols."""
    own = junctions.repertoire
    symbols = own.words.astype(">u8").view(np.uint8)
    return [
        "".join(ALPHABET.symbols[code] for code in row[: length // 3])
        for row, length in zip(symbols, own.lengths.tolist(), strict=True)
    ]


def test_sequences_are_those_of_the_table():
    rng = np.random.default_rng(1)
    letters = sorted({*ALPHABET.symbols} - {"*"})
    for most, width in ((16, 2), (17, 4), (32, 4), (33, 8), (64, 8)):
        texts = ["".join(rng.choice(letters, size)) for size in [most, *rng.integers(1, most + 1, 40)]]
        junctions = read(texts)
        assert sequences_of(junctions) == texts
        assert junctions.repertoire.words.shape == (41, width)
        assert not len(junctions.excluded)
        cut = [text[1:-1] for text in texts]
        assert [own.decode() for own in junctions.cdr3_bytes(slice(0, 41))] == cut


def test_lower_case_is_read_as_upper_case():
    """Unless it is a symbol of its own."""
    assert sequences_of(read(["cassF", "%x"])) == ["cASSF", "%X"]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", "NO_SEQUENCE", "no junction_aa"),
        (None, "NO_SEQUENCE", "no junction_aa"),
        ("CAS*F", "STOP_CODON", "junction_aa has a stop (*)"),
        ("CAS_F", "OUT_OF_FRAME", "junction_aa contains '_', as of a junction that is out of frame"),
        ("CAS F", "OTHER_SYMBOL", "junction_aa contains ' '"),
        ("CA\u00c9F*", "OTHER_SYMBOL", "junction_aa contains '\u00c9'"),
        ("CAO\u00c9", "OTHER_SYMBOL", "junction_aa contains 'O'"),
        ("C" * 65, "LONG_AMINO_ACIDS", "junction_aa of 65 amino acids is longer than 64"),
        ("C" * 200, "LONG_AMINO_ACIDS", "junction_aa of 200 amino acids is longer than 64"),
        ("C" * 200 + "*", "STOP_CODON", "junction_aa has a stop (*)"),
    ],
)
def test_rows_that_are_excluded(text, kind, message):
    junctions = read(["CASSF", text, "C"])
    assert sequences_of(junctions) == ["CASSF", "C"]
    assert junctions.row.tolist() == [0, 2]
    assert junctions.excluded.exclusions[0].kind is ExclusionKind[kind]
    assert junctions.excluded.messages[0].startswith(message)


def test_symbols_that_only_a_custom_alphabet_has():
    assert read(["CA%F"], Alphabet.of()).excluded.messages == [
        "junction_aa contains '%', no amino acid and no symbol of the alphabet"
    ]


def test_a_subset_has_its_letters():
    own = read(["CAXSF", "CC", "CAB"]).repertoire
    part = own.subset(np.array([0, 2]))
    assert part.letters is own.letters is ALPHABET
    assert np.array_equal(part.words, own.words[[0, 2]])


def test_an_empty_table():
    junctions = read([])
    assert len(junctions) == 0
    assert junctions.repertoire.letters is ALPHABET


@pytest.mark.parametrize(
    ("columns", "asked", "expected"),
    [
        (["junction"], None, "junction"),
        (["junction", "junction_aa"], None, "junction"),
        (["junction_aa"], None, "junction_aa"),
        (["junction", "junction_aa"], "junction_aa", "junction_aa"),
        (["junction_aa"], "junction", "junction"),
        ([], None, "junction"),
    ],
)
def test_which_column_is_read(columns, asked, expected):
    reading = reading_of(columns, asked, None, strict=False)
    assert reading.sequence_field == expected
    assert (reading.alphabet is not None) == (expected == "junction_aa")
    if expected == "junction":
        with pytest.raises(InputError, match="an alphabet is for amino acids"):
            reading_of(columns, asked, ALPHABET, strict=False)
    else:
        assert reading_of(columns, asked, ALPHABET, strict=False).alphabet is ALPHABET


def test_fields_and_alphabets_that_do_not_fit():
    with pytest.raises(InputError, match="sequence_field must be one of junction, cdr3"):
        Reading("junction_aa")
    with pytest.raises(InputError, match="sequence_field must be one of junction_aa"):
        Reading("junction", alphabet=ALPHABET)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)])
def test_tables_of_which_some_have_nucleotides(tmp_path, caplog, order):
    """The line names one of each kind, whichever is first."""
    texts = [
        "junction\tjunction_aa\nTGTGCC\tCA\n",
        "junction\tjunction_aa\n\tCA\n",
        "junction\tjunction_aa\nTGTGCC\tCA\n",
    ]
    tables = []
    for k in order:
        (tmp_path / f"{k}.tsv").write_text(texts[k])
        tables.append(table_at(tmp_path / f"{k}.tsv"))
    with caplog.at_level("WARNING"):
        assert productive_reading(common_fields(tables)).sequence_field == "junction_aa"
        assert common_fields(tables[2:]) == ["junction", "junction_aa"]
    named = tmp_path / "0.tsv"
    assert caplog.messages == [
        f"{tmp_path / '1.tsv'} has no junction in nucleotides, and {named} has; "
        "leave such tables out to read nucleotides",
        "amino acids are read, from junction_aa: for nucleotides, all tables need a filled column junction",
    ]
