"""Prefix trees of symbols: what they refuse, what they do not hold, and the D forms in them."""

from collections import defaultdict

import numpy as np
import pytest

from hpcvdj.errors import InputError
from hpcvdj.kernels.pgen import symbol_tries
from hpcvdj.kernels.pgen.aa_cpu import amino_acid_rows, arguments
from hpcvdj.kernels.pgen.symbol_tries import Ambiguous, FormTrie, SymbolTries
from hpcvdj.kernels.pgen.tables import Tables
from hpcvdj.recombination.alphabet import AMINO_ACIDS, BASES
from hpcvdj.recombination.symbols import Alphabet
from tests.kernels.pgen.models import amino_acid_problem, problem_of, random_model, require_equal

ALPHABET = Alphabet.of()


def tables_of(seed: int, has_d: bool = True) -> Tables:
    """The tables of a random model, all alleles taken."""
    model = random_model(seed, has_d, longest=9)
    return Tables.of(model, [(model.contributing("V"), model.contributing("J"))])


@pytest.mark.parametrize(
    ("texts", "expected", "of_ball"),
    [
        (["CASX", "CZXF", "CASS"], ("XZ", 2), ("XZ", 3)),
        (["CASBF", "CF"], ("B", 1), ("BX", 2)),
        (["CASSF"], ("", 0), ("X", 1)),
        ([], ("", 0), ("X", 1)),
    ],
)
def test_ambiguous_symbols_of_sequences(texts, expected, of_ball):
    problem, _ = amino_acid_problem(random_model(1, True), [(text, None, None) for text in texts])
    assert Ambiguous.of(problem, ball=False) == Ambiguous(*expected)
    assert Ambiguous.of(problem, ball=True) == Ambiguous(*of_ball)


def test_translated_sequences_have_no_ambiguous_symbols():
    problem, _ = problem_of(random_model(1, True), [("TGTTTT", None, None)])
    assert Ambiguous.of(problem, ball=False) == Ambiguous("", 0)
    assert Ambiguous.of(problem, ball=True) == Ambiguous("X", 1)


@pytest.mark.parametrize("trees", [SymbolTries, FormTrie])
def test_trees_that_are_too_large_are_refused(monkeypatch, trees):
    monkeypatch.setattr(symbol_tries, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match=r"up to 3 ambiguous symbols in one sequence need more .* \(--batch-rows\)"):
        trees.of(tables_of(1), ALPHABET, Ambiguous("X", 3))


@pytest.mark.parametrize("has_d", [False, True])
def test_more_ambiguous_symbols_than_asked_for_have_no_value(has_d):
    """A number would be too small."""
    tables = tables_of(3, has_d)
    symbols = np.array([[ALPHABET.symbols.index("X")] * 4] * 3, dtype=np.uint8)
    out, codons = np.zeros((2, 3)), np.array([4, 2, 1], dtype=np.uint8)
    for most, values in zip((1, 4), out, strict=True):
        amino_acid_rows(
            symbols, codons, np.array([0, 3]), 0, 3, -1, 0, values, *arguments(tables, ALPHABET, Ambiguous("X", most))
        )
    assert np.isnan(out[0]).tolist() == [True, True, False]
    assert not np.isnan(out[1]).any()
    assert out[1].any()
    assert out[0, 2] == out[1, 2]


@pytest.mark.parametrize("most", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_forms_are_those_of_the_model(seed, most):
    """Every D form in each frame, by its symbols and the bases around them."""
    tables = tables_of(seed)
    expected: dict[tuple[str, str, str], np.ndarray] = defaultdict(lambda: np.zeros(len(tables.weights)))
    for form, weight in forms_of(tables, 0, ""):
        for frame in range(3):
            whole = (len(form) - frame) // 3
            if whole < 1 or not weight.any():
                continue
            end = frame + 3 * whole
            text = "".join(AMINO_ACIDS[form[k : k + 3]] for k in range(frame, end, 3))
            texts = [text]
            if most:
                texts += [text[:k] + "X" + text[k + 1 :] for k in range(whole) if text[k] != "*"]
            for own in texts:
                expected[own, form[:frame], form[end:]] += weight
    found = dict(listed(FormTrie.of(tables, ALPHABET, Ambiguous("X", most)), 0, ""))
    assert found.keys() == expected.keys()
    for key, weight in found.items():
        require_equal(weight, expected[key])


def forms_of(tables, node, text):
    """(text, weights) of all D forms."""
    yield text, tables.weights[:, node]
    for base in range(4):
        if tables.forms.child[node, base] >= 0:
            yield from forms_of(tables, tables.forms.child[node, base], text + BASES[base])


def listed(trie, node, text):
    """((symbols, bases before, bases after), weights) of all forms of a tree."""
    for form in range(trie.first[node], trie.first[node + 1]):
        yield (text, cut(trie.before[form]), cut(trie.after[form])), trie.weight[:, form]
    for symbol, following in zip(ALPHABET.symbols, trie.child[node], strict=True):
        if following >= 0:
            yield from listed(trie, following, text + symbol)


def cut(number):
    """The bases that a number of `FormTrie` means."""
    if number < 5:
        return BASES[number - 1] if number else ""
    return BASES[(number - 5) // 4] + BASES[(number - 5) % 4]
