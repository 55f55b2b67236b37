"""The definition of what is counted, in slow and obvious Python.  All methods are tested against it.

A pathway of an in vivo sequence S is a tuple (V form, D form, J form, n-nucleotide string of length m, cut p)
whose concatenation V + n[:p] + D + n[p:] + J equals S.  In a locus without D genes it is (V form, J form,
n-nucleotide string): there is no cut, and `d_forms` is None below.
"""

from collections.abc import Sequence
from itertools import product


def algorithm_1(
    in_vivo: Sequence[str], v_forms: Sequence[str], d_forms: Sequence[str] | None, j_forms: Sequence[str], m: int
) -> list[int]:
    """Count the pathways of each in vivo sequence with n-length `m`: the paper's Algorithm 1 taken literally.

    The function builds and compares every combination.  The work grows as 4^m, so this is for small `m` and small sets.
    A dictionary look-up replaces the innermost loop over the in vivo sequences.
    """
    generated = dict.fromkeys(in_vivo, 0)
    # The middles are the same for all V and J.  Making them once saves two thirds of the time.
    middles = [middle for n in map("".join, product("ACGT", repeat=m)) for middle in _middles(n, d_forms)]
    for v in v_forms:
        for j in j_forms:
            for middle in middles:
                combination = v + middle + j
                if combination in generated:
                    generated[combination] += 1
    return [generated[sequence] for sequence in in_vivo]


def _middles(n: str, d_forms: Sequence[str] | None) -> list[str]:
    """Return all sequences between V and J with the n-nucleotides `n`."""
    if d_forms is None:
        return [n]
    return [n[:p] + d + n[p:] for d in d_forms for p in range(len(n) + 1)]


def direct_sum(
    sequence: str, v_forms: Sequence[str], d_forms: Sequence[str] | None, j_forms: Sequence[str], max_n: int
) -> list[int]:
    """Count the pathways of an in vivo sequence for each n-length 0 … `max_n`, without enumerating n-nucleotides.

    The V form, the J form, the D form and its position in the sequence determine the n-nucleotides between them, so
    only their number matters.
    """
    lefts = [len(v) for v in v_forms if sequence.startswith(v)]
    rights = [len(j) for j in j_forms if sequence.endswith(j)]
    counts = [0] * (max_n + 1)
    for a in lefts:
        for b in rights:
            gap = len(sequence) - a - b
            if gap < 0:
                continue
            if d_forms is None and gap <= max_n:
                counts[gap] += 1
            between = sequence[a : a + gap]
            for d in d_forms or ():
                m = gap - len(d)
                if 0 <= m <= max_n:
                    counts[m] += sum(between.startswith(d, q) for q in range(m + 1))
    return counts
