"""The encodings and hash functions, against plain Python."""

import numba
import numpy as np
import pytest

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.masks import wildcard_masks
from hpcvdj.recombination.alphabet import BASES
from hpcvdj.studies.hash_tables.encoding import ENCODINGS, HASHES, LARGEST_PRIME, bucket_of, encoding_for
from tests.kernels.kmers.cases import kmers, random_text

CONSTANTS = {32: [577090037, 2444712010], 64: [10499958131665514997, 14799178230035213023]}
"""a and b of `2umt`; those of the results in the repository."""

THESIS_CODES = {"A": 0b100, "C": 0b101, "G": 0b110, "T": 0b111, "*": 0}


@numba.njit
def _buckets_of(words, parameters, buckets, out):
    for p in range(len(words)):
        out[p] = bucket_of(words[p], parameters, buckets)


def buckets_of(encoding, name, k, buckets, words):
    """The bucket of each word, int64 [words]."""
    out = np.empty(len(words), dtype=np.int64)
    parameters = encoding.hash_parameters(name, k, buckets)
    _buckets_of(np.ascontiguousarray(words, dtype=np.uint64), parameters, np.uint64(buckets), out)
    return out


def word_text(encoding, word, mask, k):
    """The letters of a word of the sub-table with that mask, * for a wildcard."""
    letters = BASES if encoding.bits == 2 else "????ACGT"
    group = (1 << encoding.bits) - 1
    shifts = [encoding.bits * (k - 1 - p) for p in range(k)]
    return "".join(letters[word >> at & group] if mask >> at & group else "*" for at in shifts)


def one_word(encoding, text):
    (word,) = encoding.encode(kmers([text], len(text)).key, len(text))
    return int(word)


def test_the_example_of_figure_3():
    assert f"{one_word(ENCODINGS['3x64'], 'ACTTGCCA'):b}" == "100101111111110101101100"


@pytest.mark.parametrize("name", ENCODINGS)
def test_wildcards_and_bases_of_every_length(name):
    encoding = ENCODINGS[name]
    rng = np.random.default_rng(1)
    for k in range(4, encoding.largest_k + 1):
        text = random_text(rng, k)
        word = one_word(encoding, text)
        assert word < 1 << encoding.width
        for m in (0, 1, 2):
            masks = wildcard_masks(k, m, encoding.bits)
            shown = [word_text(encoding, word & mask, mask, k) for mask in masks]
            assert len(set(masks)) == len(masks)
            assert all(one.count("*") == m for one in shown)
            assert all(a in ("*", b) for one in shown for a, b in zip(one, text, strict=True))
            if m == 1:
                assert shown[0] == "*" + text[1:]
            if name == "3x64":
                assert word & masks[0] == sum(THESIS_CODES[c] << 3 * p for p, c in enumerate(reversed(shown[0])))


@pytest.mark.parametrize(("name", "k"), [("3x64", 22), ("2x32", 17)])
def test_a_k_that_does_not_fit(name, k):
    with pytest.raises(InputError, match=rf"-k {k}: encoding {name} takes up to {k - 1} bases"):
        encoding_for(name, k)


def test_the_narrowest_encoding():
    assert [encoding_for("auto", k).name for k in (4, 16, 17, 32)] == ["2x32", "2x32", "2x64", "2x64"]
    with pytest.raises(InputError, match="encoding must be one of auto, 3x64, 2x32, 2x64"):
        encoding_for("ascii", 8)


def hashed(encoding, name, k, buckets, word):
    """The pseudocode of section 2.f, read line by line."""
    width, bits = encoding.width, encoding.bits
    groups = [word >> bits * (k - 1 - p) & (1 << bits) - 1 for p in range(k)]
    if name == "djb2":
        code = 5381
        for group in groups:
            code = (code * 33 + group) % 2**width
    elif name == "2umt":
        a, b, prime = (int(number) for number in encoding.hash_parameters(name, k, buckets)[5:])
        code = ((a ^ word) + b) % 2**width % prime
    else:
        r = max(4, len(f"{buckets - 1:b}"))
        code = word
        for low in range(0, width, r):
            code ^= word >> low & (1 << r) - 1
    return code % buckets


@pytest.mark.parametrize("buckets", [1, 2, 11, 12, 16, 100, 256, 1000])
@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("name", HASHES)
def test_every_hash_function(name, encoding, buckets):
    rng = np.random.default_rng(buckets)
    for k in (4, 9, encoding.largest_k):
        mask = np.uint64(wildcard_masks(k, 2, encoding.bits)[-1])
        words = encoding.encode(kmers([random_text(rng, 60)], k).key, k)
        for some in (words, words & mask):
            expected = [hashed(encoding, name, k, buckets, int(word)) for word in some]
            assert buckets_of(encoding, name, k, buckets, some).tolist() == expected


def test_the_primes_are_the_largest():
    """Fermat to a few bases: none above passes, the primes do."""
    for bits, prime in LARGEST_PRIME.items():
        passing = [n for n in range(prime, 2**bits) if all(pow(b, n - 1, n) == 1 for b in (2, 3, 5, 7, 11))]
        assert passing == [prime]


def test_the_constants_are_always_the_same():
    assert ENCODINGS["2x32"].hash_parameters("2umt", 8, 16)[5:7].tolist() == CONSTANTS[32]
    assert ENCODINGS["2x64"].hash_parameters("2umt", 8, 16)[5:7].tolist() == CONSTANTS[64]


@pytest.mark.parametrize(("buckets", "r"), [(2, 4), (16, 4), (17, 5), (251, 8), (256, 8), (1000, 10)])
def test_xor_ignores_its_lowest_group(buckets, r):
    """What starting from the whole key does (section 2.f.3), whatever the number of buckets."""
    encoding = ENCODINGS["2x32"]
    assert encoding.hash_parameters("xor", 16, buckets)[4] == r
    words = np.uint64(0b10_0111_0010 << r) + np.arange(1 << r, dtype=np.uint64)
    assert len(set(buckets_of(encoding, "xor", 16, buckets, words).tolist())) == 1
    next_group = np.arange(1 << r, dtype=np.uint64) << np.uint64(r)
    found = buckets_of(encoding, "xor", 16, buckets, next_group).tolist()
    assert len(set(found)) > 1
    if buckets == 1 << r:
        assert found == list(range(buckets))
