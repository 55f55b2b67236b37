"""The k-mer encodings of the thesis (section 2.c, Figure 3) without reserved bits, and its hash functions (2.f).

name   bits a base  bits a word  largest k  (thesis)  wildcard
3x64   3            64           21         (20)      000
2x32   2            32           16         (15)      00, as A
2x64   2            64           32         -         00, as A

The thesis reserves four bits of the 64-bit word and two bits of the 32-bit word for bookkeeping, which is not needed
here.  The codes of three bits are those of Figure 3: A=100, C=101, G=110, T=111.  The thesis prints no codes of two
bits; here they are those of `alphabet`.  With two bits, a wildcard looks like an A; in the thesis also with three.
Sub-tables tell them apart: each wildcard configuration has its own sub-table, whose k-mers all have wildcards at the
same positions.

All hash functions work on the word of the encoding, in arithmetic modulo 2^32 or 2^64, according to its width.

- `djb2`: from 5381, h = 33 h + group for each base, first to last; h mod buckets.
- `2umt`: ((a XOR word) + b) mod P mod buckets; a, b from a Mersenne Twister, P the largest prime below 2^32 or 2^64.
- `xor`: the word XOR each of its r-bit groups, mod buckets.  r is the number of bits of a bucket number, at least 4.
  As printed in the thesis, the lowest group cancels, as it is in the word, too.

docs/motif_tables.md says which bits each function ignores.
"""

import random
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, require_choice

HASHES = ("djb2", "2umt", "xor")
"""The names of the hash functions, in the order of the thesis."""

LARGEST_PRIME = {32: 2**32 - 5, 64: 2**64 - 59}
"""The largest prime below 2^bits."""

FEWEST_GROUP_BITS = 4
"""The smallest r.  The thesis has groups of 4 bits for 16 buckets up to 8 bits for 256."""


@dataclass(frozen=True)
class KmerEncoding:
    """An encoding of k-mers as words of `width` bits, with `bits` per base and the last base in the lowest bits."""

    name: str
    bits: int
    width: int

    @property
    def largest_k(self) -> int:
        """Number of bases that a word holds."""
        return self.width // self.bits

    @property
    def dtype(self) -> type[np.unsignedinteger[Any]]:
        """uint32 or uint64."""
        return np.uint32 if self.width == 32 else np.uint64

    def encode(self, keys: NDArray[np.uint64], k: int) -> NDArray[np.uint64]:
        """Return the words, uint64 [k-mers], of the `keys` of `kmers.Kmers`.

        >>> [f"{word:012b}" for word in ENCODINGS["3x64"].encode(np.array([0b00011011], dtype=np.uint64), 4)]
        ['100101111110']
        """
        if self.bits == 2:
            return keys
        words = np.zeros_like(keys)
        for p in range(k):
            code = keys >> np.uint64(2 * p) & np.uint64(3)
            # A Gray code turns A, C, T, G = 0, 1, 2, 3 into A, C, G, T = 0, 1, 2, 3 of Figure 3.
            words |= (np.uint64(4) | code ^ code >> np.uint64(1)) << np.uint64(3 * p)
        return words

    def hash_parameters(self, function: str, k: int, buckets: int) -> NDArray[np.uint64]:
        """Return the parameters of `bucket_of`, uint64 [8]: function, k, bits per base, bits per word, r, a, b, P.

        buckets  number of buckets of the construction, which determines r of `xor`
        """
        twister = random.Random(1)
        a, b = twister.getrandbits(self.width), twister.getrandbits(self.width)
        r = max(FEWEST_GROUP_BITS, (buckets - 1).bit_length())
        numbers = (HASHES.index(function), k, self.bits, self.width, r, a, b, LARGEST_PRIME[self.width])
        return np.array(numbers, dtype=np.uint64)


ENCODINGS = {
    encoding.name: encoding
    for encoding in (KmerEncoding("3x64", 3, 64), KmerEncoding("2x32", 2, 32), KmerEncoding("2x64", 2, 64))
}
"""All encodings by name."""


def encoding_for(name: str, k: int) -> KmerEncoding:
    """Return the encoding of that name; `auto` is the narrowest for k.  Raise InputError if k bases do not fit."""
    require_choice("encoding", name, ("auto", *ENCODINGS))
    if name == "auto":
        name = "2x32" if k <= ENCODINGS["2x32"].largest_k else "2x64"
    encoding = ENCODINGS[name]
    if k > encoding.largest_k:
        raise InputError(f"-k {k}: encoding {name} takes up to {encoding.largest_k} bases; use encoding 2x64")
    return encoding


@numba.njit(forceinline=True)
def bucket_of(word, parameters, buckets):  # type: ignore[no-untyped-def]
    """Return the bucket of a word, int64; all arguments are uint64."""
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
