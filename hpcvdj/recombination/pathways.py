"""What is counted, in slow and obvious Python: the reference that every method is tested against.

A pathway of an in vivo sequence S is a tuple (V form, D form, J form, n-nucleotide string of length m, cut p)
whose concatenation V + n[:p] + D + n[p:] + J equals S.  In a locus without D genes it is (V form, J form,
n-nucleotide string): there is no cut, and `d_forms` is None below.
"""

from collections.abc import Sequence
from itertools import product


def algorithm_1(
    in_vivo: Sequence[str],
    v_forms: Sequence[str],
    d_forms: Sequence[str] | None,
    j_forms: Sequence[str],
    m: int,
) -> list[int]:
    """Pathways of each in vivo sequence with n-length `m`: the paper's Algorithm 1 taken literally.

    Every combination is built and compared; the work grows as 4^m, so this is for small `m` and small sets.
    The innermost loop over the in vivo sequences is a dictionary look-up.
    """
    generated = dict.fromkeys(in_vivo, 0)
    # What is between V and J is the same for all of them: making it once takes two thirds of the time off.
    middles = [middle for n in map("".join, product("ACGT", repeat=m)) for middle in _middles(n, d_forms)]
    for v in v_forms:
        for j in j_forms:
            for middle in middles:
                combination = v + middle + j
                if combination in generated:
                    generated[combination] += 1
    return [generated[sequence] for sequence in in_vivo]


def _middles(n: str, d_forms: Sequence[str] | None) -> list[str]:
    if d_forms is None:
        return [n]
    return [n[:p] + d + n[p:] for d in d_forms for p in range(len(n) + 1)]


def direct_sum(
    sequence: str,
    v_forms: Sequence[str],
    d_forms: Sequence[str] | None,
    j_forms: Sequence[str],
    max_n: int,
) -> list[int]:
    """Pathways of one in vivo sequence for each n-length 0 … `max_n`, without enumerating n-nucleotides.

    Once the V form, the J form, the D form and the place of the D form in the sequence are chosen, the
    n-nucleotides are what is left between them: they are determined, and only their number matters.
    """
    lefts = [len(v) for v in v_forms if sequence.startswith(v)]
    rights = [len(j) for j in j_forms if sequence.endswith(j)]
    counts = [0] * (max_n + 1)
    for a in lefts:
        for b in rights:
            gap = len(sequence) - a - b
            if gap < 0:
                continue
            if d_forms is None:
                if gap <= max_n:
                    counts[gap] += 1
                continue
            between = sequence[a : a + gap]
            for d in d_forms:
                m = gap - len(d)
                if 0 <= m <= max_n:
                    counts[m] += sum(between.startswith(d, q) for q in range(m + 1))
    return counts
