"""Prefix trees of symbols: what they refuse, what they do not hold, and the D forms in them."""

import inspect
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from hpcvdj.errors import InputError
from hpcvdj.kernels.pgen import ambiguous_texts, form_trie, symbol_tries
from hpcvdj.kernels.pgen.aa_cpu import amino_acid_rows
from hpcvdj.kernels.pgen.ambiguous_texts import NO_SYMBOL, Ambiguous
from hpcvdj.kernels.pgen.form_trie import FormTrie
from hpcvdj.kernels.pgen.symbol_tries import SymbolTries, amino_acid_tables
from hpcvdj.kernels.pgen.tables import Tables
from hpcvdj.recombination.alphabet import AMINO_ACIDS, BASES
from hpcvdj.recombination.models import kept_with_model
from hpcvdj.recombination.symbols import Alphabet
from tests.kernels.pgen.models import (
    amino_acid_problem,
    joint_model,
    problem_of,
    product_model,
    random_model,
    require_equal,
)

ALPHABET = Alphabet.of()


def tables_of(seed: int, has_d: bool = True) -> Tables:
    """The tables of a random model, all alleles taken."""
    model = random_model(seed, has_d, longest=9)
    return Tables.of(model, [(model.contributing("V"), model.contributing("J"))])


def ambiguous(texts=(), *, ball=False):
    """The ambiguous texts of a problem of these sequences, all alleles taken."""
    rows = [(text, None, None) for text in texts]
    return Ambiguous.of(amino_acid_problem(random_model(1, True), rows)[0], ball=ball)


def words_of(owned):
    """(owner, text) of sorted texts; - where a text has ended."""
    letters = {**dict(enumerate(ALPHABET.symbols)), NO_SYMBOL: "-"}
    return [(int(owner), "".join(letters[symbol] for symbol in text)) for owner, text in zip(*owned, strict=True)]


def test_sequences_with_ambiguous_symbols():
    found = ambiguous(["CASX", "CASSF", "CZXFB", "CF"])
    assert words_of((found.pair, found.symbols[:, :6])) == [(0, "CASX--"), (0, "CZXFB-")]
    assert not len(ambiguous(["CASSF", ""]).symbols)
    assert not len(Ambiguous.of(problem_of(random_model(1, True), [("TGTTTT", None, None)])[0], ball=True).symbols)


@pytest.mark.parametrize("ball", [False, True])
def test_needed_texts_are_in_order_and_each_is_there_once(ball):
    rng = np.random.default_rng(2)
    letters = np.array([ALPHABET.symbols.index(letter) for letter in "CAXB"], dtype=np.uint8)
    texts = rng.choice(letters, (300, 4))
    texts[np.arange(4) >= rng.integers(1, 5, 300)[:, None]] = NO_SYMBOL
    owner = rng.integers(0, 700, 300)
    expected = {(own, text) for own, text in words_of((owner, texts)) if {*text} & {*"XB"}}
    if ball:
        changed = [(own, text, k) for own, text in expected for k in range(4) if text[k] != "-"]
        expected |= {(own, text[:k] + "X" + text[k + 1 :]) for own, text, k in changed}
    found = ambiguous(ball=ball).sorted(ALPHABET, owner, texts)
    keys = [(own, *text.tolist()) for own, text in zip(*found, strict=True)]
    assert keys == sorted(set(keys))
    assert set(words_of(found)) == expected


@pytest.mark.parametrize("trees", [SymbolTries, FormTrie])
def test_trees_that_are_too_large_are_refused(monkeypatch, trees):
    for module in (ambiguous_texts, symbol_tries, form_trie):
        monkeypatch.setattr(module, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match=r"2 sequences with ambiguous symbols need more .* \(batch_rows\)"):
        trees.of(tables_of(1), ALPHABET, ambiguous(["CXXXF", "CBF"], ball=True))


@pytest.mark.parametrize("has_d", [False, True])
def test_texts_that_no_sequence_needs_have_no_value(has_d):
    """A number would be too small."""
    tables = tables_of(3, has_d)
    symbols = np.array([[ALPHABET.symbols.index(letter) for letter in "XXAX"]] * 3, dtype=np.uint8)
    codons = np.array([4, 2, 1], dtype=np.uint8)
    out = {}
    for texts in ((), ("X",), ("XX",), ("XXAX", "X", "XX")):
        out[texts] = np.zeros(3)
        values = amino_acid_tables(tables, ALPHABET, ambiguous(texts))
        amino_acid_rows((0, 3), symbols, codons, np.array([0, 3]), out[texts], *values)
    assert [np.isnan(values).tolist() for values in out.values()] == [
        [True] * 3, [True, True, False], [True, False, False], [False] * 3,
    ]  # fmt: skip
    *_, everything = out.values()
    assert everything[1:].all()
    for values in out.values():
        assert np.array_equal(values[~np.isnan(values)], everything[~np.isnan(values)])


@pytest.mark.slow_others("most_bytes")
@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("most_bytes", [0, 20_000, 1 << 28])
@pytest.mark.parametrize("model", [random_model(5, True), joint_model(7), random_model(3, False), product_model(3)])
def test_trees_that_are_kept_are_those_that_are_made(monkeypatch, model, most_bytes, ball):
    """For any sets of alleles, one after another, and with sequences between that need other trees."""
    rng, model = np.random.default_rng(0), replace(model)
    sides = model.contributing("V"), model.contributing("J")
    kept = []
    for turn in range(7):
        monkeypatch.setattr(symbol_tries, "MOST_KEPT_BYTES", most_bytes)
        chosen = [tuple(np.flatnonzero(rng.random((2, 4))[side][: len(own)] < 0.6)) for side, own in enumerate(sides)]
        pairs = [(sides[0], sides[1]), tuple(map(tuple, chosen))][turn % 2 :]
        texts = ambiguous(["XXAX"] if turn % 5 == 4 else [], ball=ball)
        made = amino_acid_tables(Tables.of(replace(model), pairs), ALPHABET, texts)
        for one, other in zip(amino_acid_tables(Tables.of(model, pairs), ALPHABET, texts), made, strict=True):
            for name in one._fields:
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        kept.append(len(symbol_tries._known(model, "V", ALPHABET.codons.tobytes(), ball)))
    assert kept == sorted(kept)
    assert (kept[-1] == 0) == (most_bytes == 0)


def test_trees_of_one_alphabet_are_not_those_of_another():
    """With the same letters for other codons."""
    model = random_model(5, True)
    other = replace(ALPHABET, codons=ALPHABET.codons[::-1].copy())
    tables_of_all = Tables.of(model, [(model.contributing("V"), model.contributing("J"))])
    made = [SymbolTries.of(tables_of_all, own, ambiguous())[1] for own in (ALPHABET, other)]
    (fresh,) = (SymbolTries.of(replace(tables_of_all, model=replace(model)), own, ambiguous())[1] for own in [other])
    assert not np.array_equal(made[0].child, made[1].child)
    np.testing.assert_array_equal(made[1].child, fresh.child)


def test_what_is_kept_goes_with_its_model():
    made = []
    function = kept_with_model(lambda model, key: made.append((model.name, key)) or len(made))
    first, second = random_model(1, True), random_model(2, True)
    assert [function(first, 1), function(second, 1), function(first, 2), function(first, 1)] == [1, 2, 3, 1]
    assert made == [("random 1", 1), ("random 2", 1), ("random 1", 2)]
    of_models = inspect.getclosurevars(function).nonlocals["of_models"]
    assert set(of_models) == {id(first), id(second)}
    del first
    assert set(of_models) == {id(second)}


def test_one_tree_serves_all_j_if_v_and_j_are_independent():
    """Up to rounding; of alleles of which they are not, each J has its own."""
    model = product_model(9)
    everything = [(model.contributing("V"), model.contributing("J"))]
    assert [len(places) for places in everything[0]] == [3, 2]
    assert len(Tables.of(model, everything).v.root) == 1
    p_vj = model.p_vj.copy()
    p_vj[0, 0] *= 1 + 1e-14
    changed = replace(model, p_vj=p_vj)
    assert len(Tables.of(changed, everything).v.root) == 2
    assert len(Tables.of(changed, [((0,), everything[0][1])]).v.root) == 1


@pytest.mark.parametrize("most", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_forms_are_those_of_the_model(seed, most):
    """Every D form in each frame, by its symbols and the bases around them."""
    tables = tables_of(seed)
    expected: dict[tuple[str, str, str], np.ndarray] = defaultdict(lambda: np.zeros(len(tables.forms.weights)))
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
    found = dict(listed(FormTrie.of(tables, ALPHABET, ambiguous(ball=bool(most))), 0, ""))
    assert found.keys() == expected.keys()
    for key, weight in found.items():
        require_equal(weight, expected[key])


def forms_of(tables, node, text):
    """(text, weights) of all D forms."""
    yield text, tables.forms.weights[:, node]
    for base in range(4):
        if tables.forms.child[node, base] >= 0:
            yield from forms_of(tables, tables.forms.child[node, base], text + BASES[base])


def listed(trie, node, text):
    """((symbols, bases before, bases after), weights) of all forms of a tree."""
    for form in range(trie.first[node], trie.first[node + 1]):
        yield (text, cut(trie.cuts[form] >> 8), cut(trie.cuts[form] & 255)), trie.weight[:, form]
    for symbol, following in zip(ALPHABET.symbols, trie.child[node], strict=True):
        if following >= 0:
            yield from listed(trie, following, text + symbol)


def cut(number):
    """The bases that a number of `FormTrie` means."""
    if number < 5:
        return BASES[number - 1] if number else ""
    return BASES[(number - 5) // 4] + BASES[(number - 5) % 4]
