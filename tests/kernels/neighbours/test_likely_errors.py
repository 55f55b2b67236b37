"""Likely sequencing errors against plain Python, on random and hostile rows."""

import itertools
import time
from dataclasses import replace

import numba
import numpy as np
import pytest

from hpcvdj.kernels.neighbours import exchanges, indels
from hpcvdj.kernels.neighbours.blocks import fill
from hpcvdj.kernels.neighbours.counted import CountedSequences, buckets_for
from hpcvdj.kernels.neighbours.indels import one_indel_away
from hpcvdj.kernels.neighbours.likely_errors import likely_errors
from tests.kernels.neighbours.plain import LENGTHS, counted, likely_error, similar_rows


def found_in(rows, asked=None, words=4):
    every, pairs = counted(rows, words)
    return likely_errors(every, pairs, np.arange(len(rows)) if asked is None else asked).tolist()


@pytest.mark.parametrize("bounds", LENGTHS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_as_in_plain_python(bounds, seed):
    rows = similar_rows(seed, 300, *bounds)
    asked = np.random.default_rng(seed).permutation(300)[:200]
    expected = [likely_error(rows[k], rows) for k in asked]
    assert found_in(rows, asked) == expected
    assert 20 < sum(expected) < 180


@pytest.mark.slow
@pytest.mark.parametrize("most_compared", [0, 1, 3])
@pytest.mark.parametrize("many_parts", [4, 9, 24])
def test_as_in_plain_python_however_often_rows_are_looked_up(monkeypatch, most_compared, many_parts):
    monkeypatch.setattr(exchanges, "MOST_COMPARED", most_compared)
    monkeypatch.setattr(exchanges, "MANY_PARTS", many_parts)
    monkeypatch.setattr(exchanges, "LISTING", 0)
    for bounds in LENGTHS[2:5]:
        rows = similar_rows(7, 120, *bounds)
        assert found_in(rows) == [likely_error(row, rows) for row in rows]


def exchanged(text, number):
    """With the first bases exchanged."""
    return "".join("CGTA"["ACGT".index(base)] if k < number else base for k, base in enumerate(text))


LARGE = "TGTGCCAGCAGTTACTCGGTACGAACGGATTACGAGCAGTACTTC"
OTHER = "TGTGCCTTAGGCATCCATTGCAAGGTCCGATACCAGTTCGAATTC"


@pytest.mark.slow_others("text")
@pytest.mark.parametrize("text", [LARGE, LARGE + LARGE[:19], LARGE + LARGE[:20], LARGE * 2 + "ACG" * 12])
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("reads", [1, 7])
def test_twenty_times_the_reads_for_each_exchanged_base(text, number, reads):
    """Wherever the bases are, whatever V and J are; also with two words, up to 64 bases."""
    for words in (2, 4) if len(text) <= 64 else (4,):
        enough = 20**number * reads
        copies = [exchanged(text, number), exchanged(text[::-1], number)[::-1]]
        for copy, pair in itertools.product(copies, (0, 1)):
            for times, expected in ((enough, 1 <= number <= 3), (enough - 1, False), (10**15, 1 <= number <= 3)):
                rows = [(text, 0, 0, max(1, times)), (copy, pair, 0, reads)]
                assert found_in(rows, words=words) == [False, expected], (number, times)
                assert found_in(rows[::-1], words=words) == [expected, False]
                assert found_in([rows[0], (copy, pair, 1, reads)], words=words) == [False, False], "someone else's"


def test_each_row_is_compared_by_its_own_reads():
    """Rows of the same bases are not added up, and are no errors of each other."""
    copy = exchanged(LARGE, 1)
    assert found_in([(LARGE, 0, 0, 399), (LARGE, 1, 0, 400), (copy, 0, 0, 20), (copy, 1, 0, 21)]) == [
        False, False, True, False,
    ]  # fmt: skip
    assert found_in([(LARGE, pair, 0, reads) for pair, reads in ((0, 10**6), (1, 1), (1, 1))]) == [False] * 3


def test_errors_of_errors():
    """The original of an error may be a likely error itself: what counts are the reads."""
    first, second = exchanged(LARGE, 2), exchanged(LARGE, 4)
    assert found_in([(LARGE, 0, 0, 160_000), (first, 0, 0, 400), (second, 0, 0, 1)]) == [False, True, True]


@pytest.mark.parametrize("text", [LARGE, "A" * 45, "AC" * 24, LARGE * 2, LARGE[:3]])
def test_an_inserted_or_deleted_base(text):
    """A row out of frame with fewer reads than one in frame, with the same V and J."""
    for place in range(len(text) + 1):
        edited = [text[:place] + base + text[place:] for base in "ACGT"]
        edited += [text[:place] + text[place + 1 :]] * (place < len(text))
        for copy in edited:
            assert found_in([(text, 0, 0, 3), (copy, 0, 0, 2)]) == [False, True]
    for pair, individual, reads in ((0, 0, 3), (1, 0, 2), (0, 1, 2)):
        assert not any(found_in([(text, 0, 0, 3), (copy, pair, individual, reads)]))
    # The longer one is not in frame, or the shorter one; or two bases are too many.
    for a, b in itertools.permutations(("A" + text, "AC" + text, "ACGT" + text), 2):
        assert not any(found_in([(a, 0, 0, 3), (b, 0, 0, 2)]))
    assert not any(found_in([(text, 0, 0, 3), ("AC" + text, 0, 0, 2)])) or text in ("A" * 45, "AC" * 24)


def test_rows_in_frame_are_no_insertions_or_deletions():
    assert found_in([(LARGE[:-1], 0, 0, 9), (LARGE, 0, 0, 2), (LARGE + "A", 0, 0, 1)]) == [False, False, True]
    assert not any(found_in([(LARGE[:-1], 0, 0, 9), (LARGE, 0, 0, 1)]))


@pytest.mark.parametrize(
    ("original", "others"),
    [("ACGTACG", ("TTTTTTT", "ACGTACGTA")), ("ACGTACGTA", ("TTTTTTTTT", "ACGTACTTA", "ACGTACG"))],
)
def test_equal_hashes_are_told_apart(monkeypatch, original, others):
    """All others have the hash of an edit of the row, and more reads; or someone else has the original."""
    row, _ = counted([("ACGTACGT", 0, 0, 5)])
    wrong = [(text, 0, 0, 9) for text in others] + [(original, 0, 1, 9)]
    every, _ = counted([*wrong, (original, 0, 0, 6)])
    value, of_hash = np.empty(1, dtype=np.uint64), indels._hashes
    of_hash((0, 1), every.words[-1:], every.lengths[-1:], *np.zeros((2, 1), np.int64), np.array([63], np.uint64), value,
            np.empty(1, np.int64))  # fmt: skip

    def equal(part, words, lengths, individuals, first, shifts, out, bucket):
        out[:] = value[0]
        bucket[:] = first[individuals] + (out >> shifts[individuals]).astype(np.int64)

    monkeypatch.setattr(indels, "_hashes", equal)
    assert one_indel_away(row, every).tolist() == [True]
    assert one_indel_away(row, every[: len(wrong)]).tolist() == [False]
    assert one_indel_away(replace(row, reads=np.array([6])), every).tolist() == [False], "it has as many reads"


def test_many_rows_out_of_frame():
    """More than a thread takes at once."""
    texts = ["".join(letters) for letters in np.random.default_rng(1).choice(list("ACGT"), (1500, 45))]
    rows = [(text, 0, 0, 2) for text in texts] + [
        (text[:20] + text[21:], 0, 0, 1 + k % 2) for k, text in enumerate(texts)
    ]
    assert found_in(rows) == [False] * 1500 + [True, False] * 750


@pytest.mark.parametrize("asked", [0, 3])
def test_nothing_to_find(asked):
    rows = [(LARGE, 0, 0, 5), (OTHER, 0, 0, 5), (LARGE[:-1], 0, 0, 5)]
    assert found_in(rows, np.arange(asked)) == [False] * asked
    assert found_in([]) == []


def many_rows(seed=3, number=30_000):
    """Codes uint8 [number, 45] of groups of similar sequences, and reads."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (300, 45))[rng.integers(0, 300, number)].astype(np.uint8)
    for _ in range(4):
        places = rng.integers(0, 45, number)
        codes[np.arange(number), places] = rng.integers(0, 4, number)
    return codes, np.floor(rng.pareto(0.5, number) + 1).clip(max=10**9).astype(np.int64)


def counted_codes(codes, reads, individuals=0):
    letters = np.zeros((len(codes), 64), dtype=np.uint64)
    letters[:, : codes.shape[1]] = codes
    words = (letters.reshape(-1, 2, 32) << np.arange(62, -2, -2).astype(np.uint64)).sum(axis=2)
    lengths = np.full(len(codes), codes.shape[1], dtype=np.uint8)
    return CountedSequences(words, lengths, reads, np.full(len(codes), individuals))


def test_any_order_and_any_number_of_threads():
    every = counted_codes(*many_rows())
    pairs, asked = np.zeros(len(every), dtype=np.int64), np.arange(len(every))
    expected = likely_errors(every, pairs, asked)
    assert 1_000 < expected.sum() < len(every) - 1_000
    order = np.random.default_rng(5).permutation(len(every))
    np.testing.assert_array_equal(likely_errors(every[order], pairs, asked), expected[order])
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        np.testing.assert_array_equal(likely_errors(every, pairs, asked), expected)
    finally:
        numba.set_num_threads(threads)
    # Some rows against all others, without any index.
    codes, reads = many_rows()
    for row in order[:300]:
        exchanges_of = (codes != codes[row]).sum(axis=1)
        limits = reads // 20 ** exchanges_of.clip(max=3)
        near = (exchanges_of > 0) & (exchanges_of < 4)
        assert expected[row] == bool((limits[near] >= reads[row]).any())


def one_part_equal(rng, number):
    codes = rng.integers(0, 4, (number, 45))
    codes[:, ::4] = 0
    return codes


def one_part_varies(rng, number):
    codes = np.zeros((number, 45), dtype=np.int64)
    codes[:, ::4] = rng.integers(0, 4, (number, 12))
    return codes


ALIKE = {
    "all equal": lambda rng, number: np.zeros((number, 45), dtype=np.int64),
    "one part of four equal": one_part_equal,
    "one part of four varies": one_part_varies,
    "twelve bases vary": lambda rng, number: np.pad(rng.integers(0, 4, (number, 12)), ((0, 0), (20, 13))),
    "two bases": lambda rng, number: rng.integers(0, 2, (number, 45)),
    "a thousandth are far from a thousand": lambda rng, number: np.where(
        np.arange(number)[:, np.newaxis] % 1000 == 0, 1, one_part_equal(rng, number)
    ),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ALIKE)
def test_sequences_that_are_alike_do_not_take_long(name):
    """Half of the rows may be the originals of the others: comparing all pairs takes 40 s."""
    number = 200_000
    codes = ALIKE[name](np.random.default_rng(1), number).astype(np.uint8)
    every = counted_codes(codes, np.where(np.arange(number) % 2, 10**6, 1))
    likely_errors(every[np.arange(10)], np.zeros(10, dtype=np.int64), np.arange(10))
    before = time.process_time()
    found = likely_errors(every, np.zeros(number, dtype=np.int64), np.arange(number))
    assert time.process_time() - before < 20
    assert not found[1::2].any()
    originals = np.unique(codes[1::2], axis=0)
    for row in np.random.default_rng(2).choice(number // 2, 100, replace=False) * 2:
        exchanges_of = (originals != codes[row]).sum(axis=1)
        assert found[row] == bool(((exchanges_of > 0) & (exchanges_of < 4)).any())


def test_each_sequence_of_an_individual_once_the_largest_first():
    rows = [(LARGE, 0, 0, 5), (OTHER, 0, 0, 7), (LARGE, 1, 0, 9), (LARGE, 0, 1, 8), (OTHER, 0, 0, 7), (LARGE, 0, 0, 9)]
    every, _ = counted(rows)
    own = every.largest_first()
    assert own.reads.tolist() == [9, 8, 7]
    assert own.individuals.tolist() == [0, 1, 0]
    assert own.words.tolist() == every.words[[2, 3, 1]].tolist()


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 1000])
def test_lists_of_buckets(number):
    buckets = 1 << buckets_for(number)
    assert max(2, number) <= buckets <= max(2, 2 * number)
    bucket = np.random.default_rng(1).integers(0, buckets, number)
    starts, members = np.zeros(buckets + 1, dtype=np.int64), np.empty(number, dtype=np.int64)
    fill(bucket, starts, members)
    for own, (first, stop) in enumerate(itertools.pairwise(starts)):
        assert members[first:stop].tolist() == np.flatnonzero(bucket == own).tolist()
