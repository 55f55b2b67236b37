"""The thesis's k-mer encodings (section 2.c, Figure 3), without its reserved bits.

name   bits a base  bits a word  largest k  (thesis)  wildcard
3x64   3            64           21         (20)      000
2x32   2            32           16         (15)      00, as A
2x64   2            64           32         -         00, as A

The thesis reserves four bits of its 64-bit word and two of its 32-bit word for bookkeeping, which is not needed here.
Three bits are the codes of Figure 3: A=100, C=101, G=110, T=111.  For two bits the thesis prints no codes; they are
those of `alphabet`.  A wildcard then looks like an A, in the thesis with three bits too.  The sub-table tells them
apart: every wildcard configuration has its own, so all k-mers of a sub-table have wildcards in the same places.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, require_choice


@dataclass(frozen=True)
class Encoding:
    """How a k-mer is written as a word of `width` bits: `bits` a base, the last base in the lowest bits."""

    name: str
    bits: int
    width: int

    @property
    def largest_k(self) -> int:
        """Bases that a word holds."""
        return self.width // self.bits

    @property
    def dtype(self) -> type[np.unsignedinteger[Any]]:
        """uint32 or uint64."""
        return np.uint32 if self.width == 32 else np.uint64

    def encode(self, keys: NDArray[np.uint64], k: int) -> NDArray[np.uint64]:
        """Words, uint64 [k-mers], of `keys` as `kmers.Kmers` holds them; InputError if k bases do not fit.

        >>> [f"{word:012b}" for word in ENCODINGS["3x64"].encode(np.array([0b00011011], dtype=np.uint64), 4)]
        ['100101111110']
        """
        self.require(k)
        if self.bits == 2:
            return keys
        words = np.zeros_like(keys)
        for p in range(k):
            code = keys >> np.uint64(2 * p) & np.uint64(3)
            # A, C, T, G = 0, 1, 2, 3 become A, C, G, T = 0, 1, 2, 3 of Figure 3 by a Gray code.
            words |= (np.uint64(4) | code ^ code >> np.uint64(1)) << np.uint64(3 * p)
        return words

    def masks(self, k: int, m: int) -> NDArray[np.uint64]:
        """uint64 [C(k, m)]: what to AND a word with for each of the sub-tables of meta-table m."""
        group, all_bases = (1 << self.bits) - 1, (1 << self.bits * k) - 1
        chosen = combinations(range(k), m)
        masks = [all_bases - sum(group << self.bits * (k - 1 - p) for p in wildcards) for wildcards in chosen]
        return np.array(masks, dtype=np.uint64)

    def masks_up_to(self, k: int, d: int) -> NDArray[np.uint64]:
        """Those of meta-tables 0 … d, one after another."""
        return np.concatenate([self.masks(k, m) for m in range(d + 1)])

    def require(self, k: int) -> None:
        """InputError unless k bases fit."""
        if k > self.largest_k:
            raise InputError(f"-k {k}: encoding {self.name} takes up to {self.largest_k} bases; use encoding 2x64")


ENCODINGS = {
    encoding.name: encoding for encoding in (Encoding("3x64", 3, 64), Encoding("2x32", 2, 32), Encoding("2x64", 2, 64))
}
"""Every encoding by name."""


def encoding_for(name: str, k: int) -> Encoding:
    """The encoding of that name, or for `auto` the narrowest for k bases; InputError if k bases do not fit."""
    require_choice("encoding", name, ("auto", *ENCODINGS))
    if name == "auto":
        name = "2x32" if k <= ENCODINGS["2x32"].largest_k else "2x64"
    ENCODINGS[name].require(k)
    return ENCODINGS[name]
