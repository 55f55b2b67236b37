"""The drawing kernel on CPU cores: the random numbers, the tables, and how often everything is drawn."""

from collections import Counter
from dataclasses import replace

import numba
import numpy as np
import pytest

from hpcvdj.errors import InputError
from hpcvdj.kernels.generation.draw_cpu import Sampler, philox, pick
from hpcvdj.kernels.generation.tables import EVENTS, DrawTables, _alias, _distributions, _thresholds
from hpcvdj.kernels.pgen.tables import Chain
from hpcvdj.recombination.alphabet import decode, unpack
from hpcvdj.recombination.possible import Possible
from tests.kernels.generation.cases import LEAST, MODELS, NAMES, chi_square, drawn_of, model_of, same
from tests.kernels.pgen.models import NT, pgens_of
from tests.kernels.pgen.problems import olga_model, small_model
from tests.recombination.test_productive import every_junction, small

KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000 00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
"""philox4x32-10 of Random123's kat_vectors: counter and key, result."""

LAST = (1 << 64) - 1


def junctions(drawn):
    return [decode(unpack(words, int(size))) for words, size in zip(drawn.words, drawn.lengths, strict=True)]


def counted(*columns):
    """How often each combination of values occurs."""
    return Counter(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize(("given", "expected"), KNOWN_ANSWERS)
def test_philox_gives_the_published_numbers(given, expected):
    words = [np.uint64(int(word, 16)) for word in given.split()]
    assert [f"{int(word):08x}" for word in philox(*words)] == expected.split()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 2898])
def test_alias_tables_have_the_probabilities_exactly(size):
    """Counted in the slots, not drawn: to 2^-64 for each slot and the rounding of doubles."""
    rng = np.random.default_rng(size)
    for chances in (rng.random(size), rng.random(size) ** 12 + 1e-12, np.ones(size)):
        slots = _alias(np.arange(size, dtype=np.uint64), chances)
        found = [0] * size
        for cut, outcomes in slots.tolist():
            found[outcomes & 0xFFFFFFFF] += cut
            found[outcomes >> 32] += (1 << 64) - cut
        np.testing.assert_allclose([own / (size << 64) for own in found], chances / chances.sum(), rtol=0, atol=1e-15)


def test_a_random_number_chooses_slot_and_remainder():
    """In whole numbers of any size, the definition; numba's have 64 bits."""
    rng = np.random.default_rng(1)
    for size in (1, 3, 441, 2898, (1 << 20) + 7):
        slots = np.stack([rng.integers(0, LAST, size, np.uint64), np.arange(size, dtype=np.uint64) + (5 << 32)], 1)
        first = np.array([0, size])
        for number in (0, LAST, *map(int, rng.integers(0, LAST, 300, np.uint64))):
            slot, remainder = divmod(number * size, 1 << 64)
            expected = slot if remainder < int(slots[slot, 0]) else 5
            assert pick(np.uint64(number >> 32), np.uint64(number & 0xFFFFFFFF), 0, slots, first) == expected


def test_impossible_bases_are_never_drawn():
    chain = Chain(np.ones(1), np.array([[0, 0, 0, 1.0], [1, 0, 0, 0], [0, 0.3, 0, 0.7], [0, 1, 0, 0]]), np.full(4, 0.1))
    top = 1 << 32
    rows = _thresholds(chain).tolist()
    assert rows[:2] == [[0, 0, 0], [top, top, top]]
    assert rows[2][0] == 0
    assert rows[2][1] == rows[2][2] == round(0.3 * top)
    assert rows[4] == [top // 4, top // 2, top // 4 * 3]


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_the_model_without_the_impossible(name):
    model = model_of(name)
    if model is None:
        pytest.skip("olga is not installed")
    possible = Possible.of(model)
    for place in range(len(model.v)):
        size = len(model.v[place].extended) if model.v[place].segment else 0
        assert not possible.v_deletions[place, size:].any()
        assert np.array_equal(possible.v_deletions[place, :size], model.v_deletions[place, :size])
    # All that the definition of Pgen sums over, by another way: the lengths of all junctions.
    from tests.kernels.pgen.models import length_distribution

    if name != "human_igh":
        assert length_distribution(model, DrawTables.of(model).longest).sum() == pytest.approx(
            possible.probability, rel=1e-12
        )
    number = sum(1 for _ in _distributions(possible, []))
    assert number == 1 + len(model.v) + max(1, len(model.d)) + len(model.j)


@pytest.mark.slow_others("has_d")
@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
@pytest.mark.parametrize("seed", range(6))
def test_every_junction_is_as_frequent_as_the_definition_says(seed, has_d):
    model = small(seed, has_d)
    expected = every_junction(model)
    assert sum(expected.values()) == pytest.approx(Possible.of(model).probability, rel=1e-12)
    found = Counter(junctions(drawn_of(model, 0, 30_000, seed)))
    assert len(found) > 3
    assert chi_square(found, expected) > LEAST


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("name", ["VDJ", "human_igh"])
def test_genes_that_are_chosen_together(name, joint):
    model = model_of(name)
    if model is None:
        pytest.skip("olga is not installed")
    if name == "VDJ":
        rng = np.random.default_rng(1)
        p_vdj = rng.random((len(model.v), len(model.d), len(model.j))) ** 4
        p_vdj /= p_vdj.sum()
        model = replace(model, p_vdj=p_vdj, p_v=p_vdj.sum(axis=(1, 2)), p_dj=p_vdj.sum(axis=0))
    other = model.with_joint_choice()
    own = other if joint else model
    drawn = drawn_of(own, 0, 400_000, 5)
    found = counted(*drawn.events[:, :3].T)
    assert chi_square(found, dict(np.ndenumerate(Possible.of(own).choice))) > LEAST
    # That would show if it took the other one.
    assert chi_square(found, dict(np.ndenumerate(Possible.of(model if joint else other).choice))) < 1e-30


@pytest.mark.parametrize("name", ["VDJ", "VJ", *NAMES[len(MODELS) :]])
def test_every_event_is_as_frequent_as_the_model_says(name):
    """Expected: the model's own tables, multiplied out and without the scenarios that make no junction."""
    model = model_of(name)
    if model is None:
        pytest.skip("olga is not installed")
    drawn = drawn_of(model, 0, 200_000, 11)
    event = dict(zip(EVENTS, drawn.events.T, strict=True))
    made_v, made_j = (
        [
            sum(float(chance) for k, chance in enumerate(own) if template.segment and k < len(template.extended))
            for template, own in zip(templates, deletions, strict=True)
        ]
        for templates, deletions in ((model.v, model.v_deletions), (model.j, model.j_deletions))
    )
    expected = {}
    for segment, templates, deletions in (("v", model.v, model.v_deletions), ("j", model.j, model.j_deletions)):
        alleles = Counter(event[segment].tolist())
        for place, rows in alleles.most_common(8):
            chosen = event[segment] == place
            size = len(templates[place].extended)
            expected[segment, place] = (
                counted(event[f"{segment}_deleted"][chosen]),
                {(k,): float(chance) for k, chance in enumerate(deletions[place]) if k < size},
            )
            assert rows == chosen.sum()
    if model.has_d:
        made_d = [
            sum(float(own[k]) for k in np.ndindex(own.shape) if sum(k) <= len(template.extended))
            for template, own in zip(model.d, model.d_deletions, strict=True)
        ]
        weights = {
            (v, d, j): float(model.p_v[v] * model.p_dj[d, j] * made_v[v] * made_d[d] * made_j[j])
            for v, d, j in np.ndindex(len(model.v), len(model.d), len(model.j))
        }
        for place, _ in Counter(event["d"].tolist()).most_common(3):
            chosen = event["d"] == place
            expected["d", place] = (
                counted(event["d_deleted_5"][chosen], event["d_deleted_3"][chosen]),
                {
                    key: float(chance)
                    for key, chance in np.ndenumerate(model.d_deletions[place])
                    if sum(key) <= len(model.d[place].extended)
                },
            )
    else:
        weights = {(v, 0, j): float(own * made_v[v] * made_j[j]) for (v, j), own in np.ndenumerate(model.p_vj)}
        assert not event["d"].any()
        assert not event["n2_length"].any()
    expected["genes"] = counted(event["v"], event["d"], event["j"]), weights
    for place, own in enumerate(model.insertions, 1):
        expected[f"n{place}"] = (
            counted(event[f"n{place}_length"]),
            {(k,): float(chance) for k, chance in enumerate(own.lengths)},
        )
    chances = {key: chi_square(*pair) for key, pair in expected.items()}
    assert min(chances.values()) > LEAST, chances


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mouse_trb", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("human_trb", "human_tra"))]
)
def test_the_commonest_junctions_are_as_frequent_as_their_pgen_says(name):
    """z-scores of 300 junctions, chosen by their Pgen from another draw: counts of the same draw would be biased."""
    model = olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    number = 2_000_000
    sampler = Sampler(DrawTables.of(model))

    def tally(seed):
        found: Counter[bytes] = Counter()
        for first in range(0, number, 500_000):
            drawn = sampler(first, 500_000, seed)
            keys = np.column_stack([drawn.words, drawn.lengths.astype(np.uint64)])
            found.update(keys.view(f"V{8 * keys.shape[1]}").ravel().tolist())
        return found

    common = [key for key, _ in tally(2).most_common(4000)]
    rows = [np.frombuffer(key, np.uint64) for key in common]
    texts = [decode(unpack(row[:-1], int(row[-1]))) for row in rows]
    expected = number * pgens_of(model, texts, NT) / Possible.of(model).probability
    chosen = np.argsort(-expected)[:300]
    found = tally(1)
    expected, observed = expected[chosen], np.array([found[common[place]] for place in chosen])
    assert expected.min() > 0.5
    z = (observed - expected) / np.sqrt(expected * (1 - expected / number))
    between = f"{expected.min():.1f} to {expected.max():.1f}"
    print(f"{name}: {between} expected; mean z {z.mean():.3f}, sd {z.std():.3f}")
    # Of 300, the mean has the standard deviation 0.058, and their standard deviation one of 0.04 to 0.05.
    assert abs(z.mean()) < 0.26
    assert abs(z.std() - 1) < 0.19


@pytest.mark.parametrize("name", NAMES)
def test_slices_and_threads_do_not_change_a_bit(name):
    model = model_of(name)
    if model is None:
        pytest.skip("olga is not installed")
    sampler = Sampler(DrawTables.of(model))
    threads = numba.get_num_threads()
    for begin in (0, (1 << 32) - 1500, LAST - 3000):
        whole = sampler(begin, 3000, LAST - 5)
        try:
            numba.set_num_threads(1)
            assert same(whole, sampler(begin, 3000, LAST - 5))
        finally:
            numba.set_num_threads(threads)
        for first, last in ((0, 1), (1, 8), (8, 1032), (1032, 3000)):
            part = sampler(begin + first, last - first, LAST - 5)
            assert np.array_equal(part.words, whole.words[first:last])
            assert np.array_equal(part.lengths, whole.lengths[first:last])
            assert np.array_equal(part.events, whole.events[first:last])
    assert not same(whole, sampler(LAST - 3000, 3000, LAST - 6))
    assert not same(whole, sampler(LAST - 3000, 3000, (LAST - 5) & 0xFFFFFFFF))


def test_the_same_numbers_as_ever():
    """A seed is to give the same sequences in every version."""
    found = junctions(drawn_of(small_model(1), 0, 4, 7))
    assert found == GOLDEN


GOLDEN = [
    "TGTACTACATAGTTGTATCCTACACTTT",
    "TGTGCCAGCCTTTAATTCCTCAGTTTCCGGAATTT",
    "TGTGCCAGCCGTTACTACCTAGCTAAAAGTCCGGAATTT",
    "TGTGCCAGCCTTTACGCATGCCTCCGGAATTT",
]


def test_a_model_that_makes_no_junction():
    model = small_model(1)
    with pytest.raises(InputError, match="makes no junction"):
        DrawTables.of(replace(model, v_deletions=np.zeros_like(model.v_deletions)))


def test_a_model_that_is_too_large():
    model = small_model(1)
    long = replace(model.insertions[0], lengths=np.full(33_000, 1 / 33_000))
    with pytest.raises(InputError, match="more than 32,767 alleles, or bases"):
        DrawTables.of(replace(model, insertions=(long, model.insertions[1])))
