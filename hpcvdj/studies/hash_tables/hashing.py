"""The thesis's hash functions (section 2.f): the bucket of a k-mer in its sub-table.

All work on the word of the encoding, in arithmetic modulo 2^32 or 2^64, the bits of the word.

- `djb2`: from 5381, h = 33 h + group for each base, first to last; h mod buckets.  33 is 0 mod 3 and mod 11: as long as
  h does not overflow, h mod 11 is the last base alone, which is the thesis's spike at 11 buckets.
- `2umt`: ((a XOR word) + b) mod P mod buckets; a, b from a Mersenne Twister, P the largest prime below 2^32 or 2^64.
  The thesis prints "a XOR k + b"; the work it takes this from puts the XOR first.  XOR and addition carry nothing
  downwards, so for 2^q buckets all but the lowest q bits, which are the last bases, are ignored (unless P wraps).
- `xor`: from the whole word, each r-bit group of it XORed in; mod buckets.  r is the bits of a bucket number, at least
  4.  The word's lowest group, with which the start already has it, is XORed in again and cancels: k-mers that differ in
  their last r bits only share a bucket, whatever the number of buckets.  For 2^q buckets, q ≤ r, the bucket is the XOR
  of the groups above; for others what stands above the lowest group counts itself too.  Implemented as printed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import require_choice
from hpcvdj.studies.hash_tables.encoding import Encoding

HASHES = ("djb2", "2umt", "xor")
"""Names, in the thesis's order."""

LARGEST_PRIME = {32: 2**32 - 5, 64: 2**64 - 59}
"""The largest prime below 2^bits."""

FEWEST_GROUP_BITS = 4
"""The thesis has groups of 4 bits for 16 buckets up to 8 bits for 256."""


def group_bits(buckets: int) -> int:
    """r of `xor`: the bits of a bucket number."""
    return max(FEWEST_GROUP_BITS, (buckets - 1).bit_length())


@dataclass(frozen=True)
class HashFunction:
    """A hash function for words of k bases; `seed` matters for `2umt`, `buckets` (of the construction) for `xor`."""

    name: str
    encoding: Encoding
    k: int
    buckets: int
    seed: int = 1

    def __post_init__(self) -> None:
        require_choice("hash function", self.name, HASHES)

    @property
    def parameters(self) -> NDArray[np.uint64]:
        """uint64 [8]: function, k, bits a base, bits a word, r, a, b, P: what `bucket_of` takes."""
        width = self.encoding.width
        twister = random.Random(self.seed)
        a, b = twister.getrandbits(width), twister.getrandbits(width)
        function = HASHES.index(self.name)
        numbers = (function, self.k, self.encoding.bits, width, group_bits(self.buckets), a, b, LARGEST_PRIME[width])
        return np.array(numbers, dtype=np.uint64)


@numba.njit(inline="always")
def bucket_of(word, parameters, buckets):  # type: ignore[no-untyped-def]
    """The bucket, int64, of a word; all arguments uint64."""
    one, width = np.uint64(1), parameters[3]
    full = np.uint64(0xFFFFFFFFFFFFFFFF) >> (np.uint64(64) - width)
    if buckets == one:
        return np.int64(0)
    if parameters[0] == 0:
        bits = parameters[2]
        group = (one << bits) - one
        code, at = np.uint64(5381), bits * parameters[1]
        while at > 0:
            at -= bits
            code = (code * np.uint64(33) + ((word >> at) & group)) & full
    elif parameters[0] == 1:
        code = (((parameters[5] ^ word) + parameters[6]) & full) % parameters[7]
    else:
        r = parameters[4]
        group = (one << r) - one
        code, rest = word, word
        # Groups above the word's last base are zero and change nothing.
        while rest != 0:
            code ^= rest & group
            rest >>= r
    return np.int64(code % buckets)
