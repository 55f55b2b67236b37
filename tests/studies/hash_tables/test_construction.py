"""The tables: chained and sorted construction, merging, variance; and what they hold, against plain Python."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from hpcvdj.errors import InputError, MachineError
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.kernels.kmers.masks import wildcard_masks
from hpcvdj.studies.hash_tables import construction
from hpcvdj.studies.hash_tables.construction import TableOptions, bucket_variance, build, merge_buckets
from hpcvdj.studies.hash_tables.encoding import ENCODINGS as BY_NAME
from hpcvdj.studies.hash_tables.encoding import HASHES, encoding_for
from tests.kernels.kmers.cases import ENCODINGS, hostile, kmers, random_text
from tests.kernels.kmers.reference import kmer_counts
from tests.studies.hash_tables.test_encoding import buckets_of, word_text

pytestmark = pytest.mark.slow


def arrays(tables):
    return [tables.keys.tolist(), tables.counts.tolist(), tables.offsets.tolist()]


def build_by_sorting(kmers, d, options):
    """The same arrays from sorting by sequence, bucket and word."""
    encoding, buckets = encoding_for(options.encoding, kmers.k), options.buckets
    tables = build(kmers, d, options)
    tables = replace(tables, **{name: np.zeros_like(getattr(tables, name)) for name in ("keys", "counts", "offsets")})
    words = encoding.encode(kmers.key, kmers.k)
    sequence = np.repeat(np.arange(len(kmers)), np.diff(kmers.offsets))
    for s, mask in enumerate(mask for m in range(d + 1) for mask in wildcard_masks(kmers.k, m, encoding.bits)):
        masked = words & np.uint64(mask)
        where = sequence * buckets + buckets_of(encoding, options.hash, kmers.k, buckets, masked)
        order = np.lexsort((masked, where))
        masked, where = masked[order], where[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (masked[1:] != masked[:-1]) | (where[1:] != where[:-1])
        runs = np.flatnonzero(new)
        count = np.add.reduceat(kmers.count[order], runs)
        masked, where = masked[runs], where[runs]
        bounds = np.searchsorted(where, np.arange(len(tables) * buckets + 1))
        starts = bounds[:-1].reshape(len(tables), buckets)
        tables.offsets[:, s, :-1] = starts - starts[:, :1]
        tables.offsets[:, s, -1] = bounds[buckets::buckets] - starts[:, 0]
        owner = where // buckets
        place = np.arange(len(where)) - starts[owner, 0]
        tables.keys[owner, s, place], tables.counts[owner, s, place] = masked, count
    return tables


@pytest.mark.parametrize("buckets", [1, 3, 16, 200])
@pytest.mark.parametrize("name", HASHES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_both_constructions_give_the_same_arrays(encoding, name, buckets):
    some, options = kmers(hostile(), 9), TableOptions(encoding, name, buckets)
    assert arrays(build(some, 2, options)) == arrays(build_by_sorting(some, 2, options))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("d", [0, 1, 3])
def test_what_the_tables_hold(encoding, d):
    """Every sub-table of every sequence, k-mer by k-mer, in the right bucket and sorted within it."""
    k, texts = 6, hostile()
    tables = build(kmers(texts, k), d, TableOptions(encoding, "djb2", buckets=5))
    assert tables.keys.shape[1] == tables.ends[-1]
    assert tables.keys.shape[2] % 32 == 0
    masks = [mask for m in range(d + 1) for mask in wildcard_masks(k, m, BY_NAME[encoding].bits)]
    places = [chosen for m in range(d + 1) for chosen in combinations(range(k), m)]
    for i, text in enumerate(texts):
        for s, (mask, wildcards) in enumerate(zip(masks, places, strict=True)):
            expected = Counter()
            for x, f in kmer_counts(text, k).items():
                expected["".join("*" if p in wildcards else base for p, base in enumerate(x))] += f
            end = tables.offsets[i, s, -1]
            words, counts = tables.keys[i, s, :end], tables.counts[i, s, :end]
            shown = [word_text(BY_NAME[encoding], int(word), mask, k) for word in words]
            assert dict(zip(shown, counts.tolist(), strict=True)) == expected
            for b in range(5):
                bucket = words[tables.offsets[i, s, b] : tables.offsets[i, s, b + 1]]
                assert bucket.tolist() == sorted(set(bucket.tolist()))
                assert set(buckets_of(BY_NAME[encoding], "djb2", k, 5, bucket.astype(np.uint64)).tolist()) <= {b}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", ["djb2", "2umt"])
def test_merged_buckets_are_those_of_fewer_buckets(name, encoding):
    some = kmers(hostile(), 7)
    for buckets in (1, 4, 12, 48):
        merged = merge_buckets(build(some, 1, TableOptions(encoding, name, 48)), buckets)
        assert arrays(merged) == arrays(build(some, 1, TableOptions(encoding, name, buckets)))


def test_merging_keeps_every_kmer_and_its_order():
    tables = build(kmers(hostile(), 7), 2, TableOptions(buckets=50))
    merged = merge_buckets(tables, 7)
    assert merged.buckets == 7
    assert np.array_equal(merged.offsets[..., -1], tables.offsets[..., -1])
    for i, s in np.ndindex(tables.keys.shape[:2]):
        end = tables.offsets[i, s, -1]
        pairs = [sorted(zip(t.keys[i, s, :end], t.counts[i, s, :end], strict=True)) for t in (tables, merged)]
        assert pairs[0] == pairs[1]
        for b in range(7):
            part = merged.keys[i, s, merged.offsets[i, s, b] : merged.offsets[i, s, b + 1]]
            assert np.all(part[1:] > part[:-1])


def test_subtables_of_the_thesis():
    tables = [build(kmers(hostile(), k), 2, TableOptions(buckets=1)) for k in (8, 12, 20)]
    assert [some.ends.tolist()[-1] for some in tables] == [some.keys.shape[1] for some in tables] == [37, 79, 211]


def test_variance_tells_fair_from_unfair():
    """2-UMT with 16 buckets sees only the last four bits: three-bit codes fill half of the buckets (section 5.c)."""
    rng = np.random.default_rng(2)
    some = kmers([random_text(rng, 400) for _ in range(6)], 12)
    found = {}
    for name, buckets in (("2umt", 16), ("2umt", 19), ("djb2", 19), ("xor", 19)):
        mean, variance = bucket_variance(build(some, 0, TableOptions("3x64", name, buckets=buckets)))
        assert mean == pytest.approx(389 / buckets, rel=0.02)
        found[name, buckets] = variance / mean
    assert found["2umt", 16] > 5 * max(found[name, 19] for name in ("2umt", "djb2", "xor"))


def test_djb2_sees_only_the_last_base_for_eleven_buckets():
    """33 is a multiple of 11; with k = 8 in 64 bits nothing overflows."""
    rng = np.random.default_rng(2)
    some = kmers([random_text(rng, 400)], 8)
    tables = build(some, 0, TableOptions("3x64", "djb2", buckets=11))
    assert np.count_nonzero(np.diff(tables.offsets[0, 0].astype(int))) == 4


def test_variance_by_hand():
    key = np.array([0, 1, 2, 3], dtype=np.uint64)
    some = Kmers(4, key, np.ones(4, np.uint32), np.array([0, 4]))
    assert bucket_variance(build(some, 0, TableOptions("2x32", "djb2", buckets=1))) == (4.0, 0.0)
    tables = build(some, 0, TableOptions("2x32", "djb2", buckets=8))
    sizes = np.diff(tables.offsets[0, 0].astype(int))
    assert bucket_variance(tables) == (0.5, float(np.var(sizes)))


def test_counts_past_16_bits_are_wide():
    for occurrences, dtype in ((65535, np.uint16), (65536, np.uint32)):
        some = Kmers(4, np.array([27], np.uint64), np.array([occurrences], np.uint32), np.array([0, 1]))
        tables = build(some, 1, TableOptions())
        assert tables.counts.dtype == tables.offsets.dtype == dtype
        assert set(tables.counts[0, :, 0].tolist()) == {occurrences}


def test_tables_beyond_memory_are_one_line(monkeypatch):
    monkeypatch.setattr(construction.os, "sysconf", lambda name: 16)
    with pytest.raises(MachineError, match=r"the hash tables take .* GB \(14 sequences of 64 slots in 29 sub-tables\)"):
        build(kmers(hostile(), 7), 2, TableOptions())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hash": "md5"}, "hash function must be one of djb2, 2umt, xor"),
        ({"kernel": "magic"}, r"kernel must be one of sequential-bucket, .* \(got 'magic'\)"),
        ({"buckets": 0}, "0 buckets"),
        ({"threads_per_block": 48}, "a multiple of 32"),
        ({"chunk": 0}, "0 k-mers a chunk"),
    ],
)
def test_options_that_cannot_be(wrong, message):
    with pytest.raises(InputError, match=message):
        TableOptions(**wrong)
