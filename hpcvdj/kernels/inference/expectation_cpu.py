"""Expected counts of events on CPU cores: generation probabilities once forwards, and once back.

A junction's probability is the sum over q <= e of Left(q) W(q, e) Right(e), as of `hpcvdj.kernels.pgen.tables`.  Its
derivatives by Left and Right give every count: those of a side go back through all (form, length of the insertion)
that end at q.
"""

from typing import Any

import numpy as np
from numba import get_num_threads, njit
from numpy.typing import NDArray

from hpcvdj.kernels.inference.layout import LEAST, begins, unit_of
from hpcvdj.kernels.inference.method import InferenceProblem
from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pgen.nt_cpu import base_codes
from hpcvdj.kernels.pgen.tables import ROW_BASES
from hpcvdj.kernels.threads import on_threads
from hpcvdj.recombination.models import Model

CHUNK = 256
"""Junctions that a thread takes at a time."""


@njit(cache=True, nogil=True)
def _forward(codes, length, root, child, alone, chain, nodes, ended, out):  # type: ignore[no-untyped-def]
    """How many bases follow the tree; their nodes into `nodes`.

    codes  of the side, from its end of the junction
    ended  [bases, lags]: the weight of the forms of so many bases, with an insertion of so many after them
    out    [length + 1]: the sum of what ends after q bases
    """
    lengths, step, first = chain
    depth = 0
    node = root
    while depth < length:
        following = child[node, codes[depth]]
        if following < 0:
            break
        node = following
        depth += 1
        nodes[depth] = node
    out[: length + 1] = 0.0
    lags = len(lengths)
    for p in range(1, depth + 1):
        weight = alone[nodes[p]]
        if weight == 0.0:
            nodes[p] = -1
            continue
        most = min(lags - 1, length - p)
        ended[p, 0] = weight * lengths[0]
        out[p] += ended[p, 0]
        if most > 0:
            base = np.int64(codes[p])
            inserted = weight * first[base]
            for t in range(1, most + 1):
                ended[p, t] = inserted * lengths[t]
                out[p + t] += ended[p, t]
                if t < most:
                    last = base
                    base = np.int64(codes[p + t])
                    inserted *= step[last, base]
    return depth


@njit(cache=True, nogil=True)
def _back(  # type: ignore[no-untyped-def]
    codes, length, depth, nodes, ended, bar, unit, weight, at_nodes, at_insertion, by_length, cover
):
    """Add the counts of a side; bar[q] is the posterior weight of what ends after q bases, over out[q].

    at_insertion  the counts of its lengths, of its first base, and of its pairs of bases
    """
    at_lengths, at_first, at_step = at_insertion
    lags = len(at_lengths)
    by_length[:lags] = 0.0
    cover[: length + 2] = 0.0
    firsts = np.zeros(4)
    for p in range(1, depth + 1):
        if nodes[p] < 0:
            continue
        most = min(lags - 1, length - p)
        total = ended[p, 0] * bar[p]
        by_length[0] += total
        inserted = 0.0
        for t in range(1, most + 1):
            z = ended[p, t] * bar[p + t]
            by_length[t] += z
            inserted += z
            # Steps to the bases p + 1 … p + t - 1.
            cover[p + t] -= z
        if inserted > 0.0:
            cover[p + 1] += inserted
            firsts[codes[p]] += inserted
        at_nodes[nodes[p]] += np.int64((total + inserted) * unit + 0.5) * weight
    for t in range(lags):
        if by_length[t] > 0.0:
            at_lengths[t] += np.int64(by_length[t] * unit + 0.5) * weight
    for base in range(4):
        if firsts[base] > 0.0:
            at_first[base] += np.int64(firsts[base] * unit + 0.5) * weight
    steps = np.zeros((4, 4))
    covered = 0.0
    for k in range(2, length):
        covered += cover[k]
        steps[codes[k - 1], codes[k]] += max(covered, 0.0)
    for a in range(4):
        for b in range(4):
            at_step[4 * a + b] += np.int64(steps[a, b] * unit + 0.5) * weight


@njit(cache=True, nogil=True)
def _middle(codes, length, left, right, child, weights, lbar):  # type: ignore[no-untyped-def]
    """The sum over q <= e of left[q] x weights of the D form S[q:e] x right[length - e]; adds W x right to lbar[q]."""
    probability = 0.0
    for q in range(1, length):
        if left[q] == 0.0:
            continue
        node, e, part = 0, q, 0.0
        while True:
            part += weights[node] * right[length - e]
            if e >= length - 1:
                break
            node = child[node, codes[e]]
            if node < 0:
                break
            e += 1
        lbar[q] += part
        probability += left[q] * part
    return probability


@njit(cache=True, nogil=True)
def _middle_back(codes, length, left, right, child, weights, over, unit, weight, at_forms, rbar):  # type: ignore[no-untyped-def]
    """Add the counts of D forms, and left x W to rbar; `over` is 1 over the junction's probability."""
    for q in range(1, length):
        scaled = left[q] * over
        if scaled == 0.0:
            continue
        node, e = 0, q
        while True:
            begun = scaled * weights[node]
            rbar[length - e] += begun
            z = begun * right[length - e]
            if z > 0.0:
                at_forms[node] += np.int64(z * unit + 0.5) * weight
            if e >= length - 1:
                break
            node = child[node, codes[e]]
            if node < 0:
                break
            e += 1


@njit(cache=True, nogil=True)
def expected_counts(part, junctions, parts, most, groups, trees, weights, vd, dj, at, out):  # type: ignore[no-untyped-def]
    """Counts of every `parts`-th chunk of the junctions, from `part` on, into out[part], int64 [counts].

    junctions  as of `ExpectationKernel.junctions`
    most       bases that a tree has, and groups of a pair
    at         where each part of the counts begins
    """
    packed, lengths, offsets, row_weights, begin, stop, (unit, log_unit) = junctions
    depth, most_groups = most
    nodes_d = len(trees.d)
    chunks = (stop - begin + CHUNK - 1) // CHUNK
    longest = np.int64(lengths[begin:stop].max())
    sums = out[part]
    at_v, at_j, at_d = sums[at.v :], sums[at.j :], sums[at.d :]
    vd_lags, dj_lags = len(vd.lengths), len(dj.lengths)
    at_vd = sums[at.vd_lengths :][:vd_lags], sums[at.vd_first :], sums[at.vd_steps :]
    at_dj = sums[at.dj_lengths :][:dj_lags], sums[at.dj_first :], sums[at.dj_steps :]
    logs, lost = sums[at.logs :], sums[at.lost :]
    deepest = min(depth, longest) + 1
    codes = np.zeros(longest + ROW_BASES, dtype=np.uint8)
    back = np.zeros(longest + ROW_BASES, dtype=np.uint8)
    v_nodes = np.zeros((most_groups, deepest), dtype=np.int64)
    j_nodes = np.zeros((most_groups, deepest), dtype=np.int64)
    v_ended = np.zeros((most_groups, deepest, vd_lags))
    j_ended = np.zeros((most_groups, deepest, dj_lags))
    left, right = np.zeros((most_groups, longest + 1)), np.zeros((most_groups, longest + 1))
    lbar, rbar = np.zeros((most_groups, longest + 1)), np.zeros(longest + 1)
    v_depth, j_depth = np.zeros(most_groups, dtype=np.int64), np.zeros(most_groups, dtype=np.int64)
    # The group that has the V side of a group: groups of one set of V alleles share it.
    v_of = np.zeros(most_groups, dtype=np.int64)
    by_length, cover = np.zeros(max(vd_lags, dj_lags)), np.zeros(longest + 2)
    for chunk in range(part, chunks, parts):
        low = begin + chunk * CHUNK
        pair = np.searchsorted(offsets, low, side="right") - 1
        for row in range(low, min(stop, low + CHUNK)):
            while offsets[pair + 1] <= row:
                pair += 1
            length = np.int64(lengths[row])
            base_codes(packed[row], length, codes)
            for k in range(length):
                back[k] = codes[length - 1 - k]
            begun, count = groups.first[pair], groups.first[pair + 1] - groups.first[pair]
            total = 0.0
            for g in range(count):
                group = begun + g
                j_depth[g] = 0
                if length == 0 or trees.j[groups.j[group], back[0]] < 0:
                    continue
                j_depth[g] = _forward(
                    back, length, groups.j[group], trees.j, weights.j, dj, j_nodes[g], j_ended[g], right[g]
                )
                v_of[g] = g
                for other in range(g):
                    if j_depth[other] and groups.v[begun + other] == groups.v[group]:
                        v_of[g] = v_of[other]
                        break
                if v_of[g] == g:
                    v_depth[g] = _forward(
                        codes, length, groups.v[group], trees.v, weights.v, vd, v_nodes[g], v_ended[g], left[g]
                    )
                    lbar[g, : length + 1] = 0.0
                total += _middle(
                    codes, length, left[v_of[g]], right[g], trees.d, weights.d[groups.d[group]], lbar[v_of[g]]
                )
            held = 0 if row_weights[row] > 0 else 1
            weight = np.int64(row_weights[row]) if held == 0 else np.int64(1)
            logs[held] += np.int64(-np.log(max(total, LEAST)) * log_unit + 0.5) * weight
            if total < LEAST:
                lost[held] += weight
            if held or total < LEAST:
                continue
            over = 1.0 / total
            for g in range(count):
                if j_depth[g] == 0:
                    continue
                group = begun + g
                table = groups.d[group]
                rbar[: length + 1] = 0.0
                _middle_back(
                    codes, length, left[v_of[g]], right[g], trees.d, weights.d[table], over, unit, weight,
                    at_d[table * nodes_d :], rbar,
                )  # fmt: skip
                _back(
                    back, length, j_depth[g], j_nodes[g], j_ended[g], rbar, unit, weight, at_j, at_dj, by_length, cover
                )
                if v_of[g] == g:
                    for q in range(length + 1):
                        lbar[g, q] *= over
                    _back(
                        codes, length, v_depth[g], v_nodes[g], v_ended[g], lbar[g], unit, weight, at_v, at_vd,
                        by_length, cover,
                    )  # fmt: skip


class ExpectationKernel(Kernel):
    """Expected counts under the model that it was given last; a task is a junction."""

    def __init__(self, problem: InferenceProblem, threads_per_block: int) -> None:
        self.problem, self.layout = problem, problem.layout
        self.take(problem.model)

    def weigh(self, problem: InferenceProblem) -> None:
        """Count the same junctions with other weights."""
        self.problem = problem

    def take(self, model: Model) -> None:
        """Count the events of another model with the same alleles."""
        self._weights = self.layout.weights(model)

    def junctions(self, first: int, last: int) -> tuple[Any, ...]:
        """Bases, lengths, offsets and weights of all junctions, which of them to count, and the units of counts."""
        repertoire = self.problem.repertoire
        arrays = repertoire.words, repertoire.lengths, repertoire.offsets, self.problem.row_weights
        return *arrays, first, last, unit_of(self.problem.rows)

    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """The counts of junctions first … last-1, int64 [1, counts]."""
        layout = self.layout
        parts = max(1, min(get_num_threads(), -(-(last - first) // CHUNK)))
        out: NDArray[np.int64] = np.zeros((parts, sum(layout.sizes)), dtype=np.int64)
        if last > first:
            junctions = self.junctions(first, last)
            on_threads(self._count, range(parts), junctions, parts, *self._tables(), begins(layout.sizes), out)
        total = out.sum(axis=0, keepdims=True)
        return lambda: total

    _count = staticmethod(expected_counts)

    def _tables(self) -> tuple[Any, ...]:
        """What the kernel takes of the layout and the model."""
        groups = self.layout.groups
        most = max(1, int(np.diff(groups.first).max(initial=0)))
        return (self.layout.depth, most), groups, self.layout.trees, *self._weights
