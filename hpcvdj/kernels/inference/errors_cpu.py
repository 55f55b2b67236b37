"""Expected counts with sequencing errors, on CPU cores.

A junction's probability is the sum over the D genes, and over q <= e, of Left(q) W(q, e) Right(e), as of
`hpcvdj.kernels.pgen.tables`; but every form fits everywhere, with a factor for each of its bases: 1 - ε if the junction
has it, ε/3 if it has another one.  One pass over all forms of a D gene gives the probability and, but for the division
by it, the counts and the derivatives by Left and Right.  The loops over q are the inner ones, as the processor does
several q at a time.
"""

from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from hpcvdj.kernels.inference.errors_layout import Weights
from hpcvdj.kernels.inference.expectation_cpu import CHUNK, _back
from hpcvdj.kernels.inference.layout import LEAST
from hpcvdj.kernels.inference.method import InferenceProblem
from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pgen.nt_cpu import base_codes
from hpcvdj.kernels.pgen.tables import ROW_BASES
from hpcvdj.recombination.models import Model


@njit(cache=True, nogil=True)
def _forms(codes, depth, places, templates, sizes, deletions, factors, values, misread):  # type: ignore[no-untyped-def]
    """The weight of the forms of 1 … depth bases of the alleles at some places, and how many of their bases differ.

    values, misread  [places, depth + 1]
    """
    for k in range(len(places)):
        allele = places[k]
        size, value, errors = sizes[allele], 1.0, 0.0
        for p in range(1, depth + 1):
            values[k, p] = 0.0
            if p > size:
                continue
            if codes[p - 1] == templates[allele, p - 1]:
                value *= factors[0]
            else:
                value *= factors[1]
                errors += 1.0
            misread[k, p] = errors
            if size - p < deletions.shape[1]:
                values[k, p] = value * deletions[allele, size - p]


@njit(cache=True, nogil=True)
def _insertions(codes, length, depth, lengths, step, first, chances):  # type: ignore[no-untyped-def]
    """chances[p, t]: the probability of an insertion of the t bases after the first p, for p = 1 … depth."""
    for p in range(1, depth + 1):
        chances[p, 0] = lengths[0]
        chain = 1.0
        for t in range(1, min(len(lengths) - 1, length - p) + 1):
            base = np.int64(codes[p + t - 1])
            chain *= first[base] if t == 1 else step[np.int64(codes[p + t - 2]), base]
            chances[p, t] = chain * lengths[t]


@njit(cache=True, nogil=True)
def _ends(places, choice, values, depth, length, chances, ends, out):  # type: ignore[no-untyped-def]
    """ends[p]: the weight of all forms of p bases; out[q]: of what ends after q bases, insertions included.

    choice  [alleles]: their probabilities

    Returns whether there is any.
    """
    ends[: depth + 1] = 0.0
    out[: length + 1] = 0.0
    some = False
    for k in range(len(places)):
        weight = choice[places[k]]
        if weight > 0.0:
            some = True
            for p in range(1, depth + 1):
                ends[p] += weight * values[k, p]
    if some:
        for p in range(1, depth + 1):
            if ends[p] > 0.0:
                for t in range(min(chances.shape[1], length - p + 1)):
                    out[p + t] += ends[p] * chances[p, t]
    return some


@njit(cache=True, nogil=True)
def _ends_back(  # type: ignore[no-untyped-def]
    places, choice, values, misread, depth, length, chances, ends, bar, over, unit, weight, at_choice, ended, by_form
):  # fmt: skip
    """Count the choices of alleles, and add to the counts of insertions and of forms; the number of misread bases.

    bar      the derivative by what ends after q bases; `over` is 1 over the junction's probability
    ended    [depth + 1, lags]: what is counted of (bases of the form, bases inserted)
    by_form  [places, depth + 1]
    """
    errors = 0.0
    for p in range(1, depth + 1):
        if ends[p] == 0.0:
            continue
        bar_p = 0.0
        for t in range(min(chances.shape[1], length - p + 1)):
            part = chances[p, t] * bar[p + t]
            bar_p += part
            ended[p, t] += ends[p] * part
        # The derivative by ends[p] takes its place.
        ends[p] = bar_p
    for k in range(len(places)):
        allele = places[k]
        chosen = 0.0
        if choice[allele] > 0.0:
            for p in range(1, depth + 1):
                z = choice[allele] * values[k, p] * ends[p] * over
                chosen += z
                by_form[k, p] += z
                errors += z * misread[k, p]
        at_choice[allele] += np.int64(chosen * unit + 0.5) * weight
    return errors


@njit(cache=True, nogil=True)
def _count_deletions(places, sizes, depth, by_form, unit, weight, at):  # type: ignore[no-untyped-def]
    """at  [alleles, deletions]"""
    for k in range(len(places)):
        size = sizes[places[k]]
        for p in range(1, min(depth, size) + 1):
            if by_form[k, p] > 0.0:
                at[places[k], size - p] += np.int64(by_form[k, p] * unit + 0.5) * weight


@njit(cache=True, nogil=True)
def _sum(values):  # type: ignore[no-untyped-def]
    """In four parts, which need not wait for each other; the same on every machine."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = len(values) - len(values) % 4
    for i in range(0, whole, 4):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
    for i in range(whole, len(values)):
        a += values[i]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)
def _middle(  # type: ignore[no-untyped-def]
    length, size, template, deletions, factors, wrong, left, right, begun, rbar, misread, counts, buffers
):  # fmt: skip
    """The forms of a D gene at all places of a junction.

    factors, wrong  [4, length]: of each base of the junction if the template has this one: the probability of reading
                    it, and whether it is misread
    left, right     by the place of the border, from the start
    begun           by this place, to which the weight of the scenarios is added whose D begins there
    rbar            likewise, to which the derivative by `right` is added
    misread         likewise, to which that weight times the misread bases of D is added
    counts          [l, r]: the weight of the forms with these deletions
    """
    value, errors, made = buffers[0], buffers[1], buffers[2]
    for lost in range(min(size + 1, deletions.shape[0])):
        value[: length + 1] = left[: length + 1]
        errors[: length + 1] = 0.0
        for kept in range(min(size - lost, length - 2) + 1):
            stop = length - kept
            if kept > 0:
                # Loops that write one array each: the compiler then does several q at a time.
                factor, more = factors[template[lost + kept - 1]], wrong[template[lost + kept - 1]]
                for q in range(1, stop):
                    value[q] *= factor[q + kept - 1]
                for q in range(1, stop):
                    errors[q] += more[q + kept - 1]
            rest = size - lost - kept
            if rest >= deletions.shape[1] or deletions[lost, rest] == 0.0:
                continue
            chance = deletions[lost, rest]
            for q in range(1, stop):
                rbar[q + kept] += value[q] * chance
            for q in range(1, stop):
                made[q] = value[q] * right[q + kept] * chance
            for q in range(1, stop):
                begun[q] += made[q]
            for q in range(1, stop):
                misread[q] += made[q] * errors[q]
            counts[lost, rest] = _sum(made[1:stop])


@njit(cache=True, nogil=True)
def _turned(values, length, out):  # type: ignore[no-untyped-def]
    """values[0 … length] from the other end."""
    for q in range(length + 1):
        out[q] = values[length - q]


@njit(cache=True, nogil=True, parallel=True)
def expected_counts(  # type: ignore[no-untyped-def]
    packed, lengths, offsets, row_weights, begin, stop, units, parts, error_rate,
    v_first, v_places, j_first, j_places, most, v_codes, v_sizes, d_codes, d_sizes, j_codes, j_sizes, sizes,
    v_choice, j_choice, v_deletions, j_deletions, d_deletions,
    vd_lengths, vd_step, vd_first, dj_lengths, dj_step, dj_first, out,
):  # fmt: skip
    """Counts of the junctions begin … stop-1 into `out` int64 [parts, counts], one row for each thread.

    units  what one is in counts, and in log-likelihoods
    most   alleles of a set, V and J
    """
    unit, log_unit = units
    hit, miss = 1.0 - error_rate, error_rate / 3.0
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    for k in range(len(sizes)):
        starts[k + 1] = starts[k] + sizes[k]
    genes, lefts, columns = d_deletions.shape
    alleles_v, alleles_j, v_rows = v_choice.shape[1], j_choice.shape[1], len(v_choice)
    chunks = (stop - begin + CHUNK - 1) // CHUNK
    longest: Any = 0
    for row in range(begin, stop):
        longest = max(longest, np.int64(lengths[row]))
    for part in prange(parts):
        own = out[part]
        at_v_choice = own[starts[0] : starts[1]].reshape(v_rows, alleles_v)
        at_j_choice = own[starts[1] : starts[2]].reshape(genes, alleles_j)
        at_v = own[starts[2] : starts[3]].reshape(alleles_v, v_deletions.shape[1])
        at_j = own[starts[3] : starts[4]].reshape(alleles_j, j_deletions.shape[1])
        at_d = own[starts[4] : starts[5]].reshape(genes, lefts, columns)
        vd_at_lengths, dj_at_lengths = own[starts[5] : starts[6]], own[starts[6] : starts[7]]
        vd_at_first, dj_at_first = own[starts[7] :], own[starts[8] :]
        vd_at_step, dj_at_step = own[starts[9] :], own[starts[10] :]
        at_misread, logs, lost = own[starts[11] :], own[starts[12] :], own[starts[13] :]
        wide = longest + 2
        deepest_v, deepest_j = min(v_codes.shape[1], longest), min(j_codes.shape[1], longest)
        codes = np.zeros(longest + ROW_BASES, dtype=np.uint8)
        back = np.zeros(longest + ROW_BASES, dtype=np.uint8)
        factors, wrong = np.zeros((4, wide)), np.zeros((4, wide))
        v_values, v_misread = np.zeros((most[0], deepest_v + 1)), np.zeros((most[0], deepest_v + 1))
        j_values, j_misread = np.zeros((most[1], deepest_j + 1)), np.zeros((most[1], deepest_j + 1))
        v_by_form, j_by_form = np.zeros((most[0], deepest_v + 1)), np.zeros((most[1], deepest_j + 1))
        v_chances = np.zeros((deepest_v + 1, len(vd_lengths)))
        j_chances = np.zeros((deepest_j + 1, len(dj_lengths)))
        v_ended, j_ended = np.zeros_like(v_chances), np.zeros_like(j_chances)
        v_ends, j_ends = np.zeros((v_rows, deepest_v + 1)), np.zeros((genes, deepest_j + 1))
        left, begun = np.zeros((v_rows, wide)), np.zeros((v_rows, wide))
        right, rbar, bar = np.zeros((genes, wide)), np.zeros((genes, wide)), np.zeros(wide)
        used = np.zeros(genes, dtype=np.bool_)
        counts = np.zeros((genes, lefts, columns))
        misread, buffers, scale = np.zeros(wide), np.zeros((3, wide)), np.zeros(wide)
        # For `_back`, which counts insertions; of the forms, it has no nodes.
        nodes, at_node = np.zeros(wide, dtype=np.int64), np.zeros(1, dtype=np.int64)
        by_length, cover = np.zeros(max(len(vd_lengths), len(dj_lengths))), np.zeros(wide)
        for chunk in range(part, chunks, parts):
            low = begin + chunk * CHUNK
            pair = np.searchsorted(offsets, low, side="right") - 1
            for row in range(low, min(stop, low + CHUNK)):
                while offsets[pair + 1] <= row:
                    pair += 1
                vs = v_places[v_first[pair] : v_first[pair + 1]]
                js = j_places[j_first[pair] : j_first[pair + 1]]
                length = np.int64(lengths[row])
                base_codes(packed[row], length, codes)
                for k in range(length):
                    back[k] = codes[length - 1 - k]
                    for base in range(4):
                        factors[base, k] = hit if codes[k] == base else miss
                        wrong[base, k] = 0.0 if codes[k] == base else 1.0
                v_depth, j_depth = min(deepest_v, length), min(deepest_j, length)
                _forms(codes, v_depth, vs, v_codes, v_sizes, v_deletions, (hit, miss), v_values, v_misread)
                _forms(back, j_depth, js, j_codes, j_sizes, j_deletions, (hit, miss), j_values, j_misread)
                _insertions(codes, length, v_depth, vd_lengths, vd_step, vd_first, v_chances)
                _insertions(back, length, j_depth, dj_lengths, dj_step, dj_first, j_chances)
                misread[: length + 1] = 0.0
                total = 0.0
                for g in range(genes):
                    used[g] = _ends(js, j_choice[g], j_values, j_depth, length, j_chances, j_ends[g], bar)
                    if g < v_rows and (used[g] or v_rows == 1):
                        _ends(vs, v_choice[g], v_values, v_depth, length, v_chances, v_ends[g], left[g])
                        begun[g, : length + 1] = 0.0
                    if not used[g]:
                        continue
                    _turned(bar, length, right[g])
                    rbar[g, : length + 1] = 0.0
                    counts[g] = 0.0
                    v = g % v_rows
                    _middle(
                        length, d_sizes[g], d_codes[g], d_deletions[g], factors, wrong, left[v], right[g], begun[v],
                        rbar[g], misread, counts[g], buffers,
                    )  # fmt: skip
                    total += _sum(counts[g].reshape(-1))
                held = 0 if row_weights[row] > 0 else 1
                weight = np.int64(row_weights[row]) if held == 0 else np.int64(1)
                logs[held] += np.int64(-np.log(max(total, LEAST)) * log_unit + 0.5) * weight
                if total < LEAST:
                    lost[held] += weight
                if held or total < LEAST:
                    continue
                over = 1.0 / total
                errors = _sum(misread[:length]) * over
                v_by_form[: len(vs)] = 0.0
                j_by_form[: len(js)] = 0.0
                v_ended[:] = 0.0
                j_ended[:] = 0.0
                for g in range(genes):
                    if not used[g]:
                        continue
                    for a in range(lefts):
                        for b in range(columns):
                            if counts[g, a, b] > 0.0:
                                at_d[g, a, b] += np.int64(counts[g, a, b] * over * unit + 0.5) * weight
                    _turned(rbar[g], length, bar)
                    errors += _ends_back(
                        js, j_choice[g], j_values, j_misread, j_depth, length, j_chances, j_ends[g], bar, over, unit,
                        weight, at_j_choice[g], j_ended, j_by_form,
                    )  # fmt: skip
                for v in range(v_rows):
                    if v_rows == 1 or used[v]:
                        for q in range(1, length):
                            bar[q] = begun[v, q] / left[v, q] if left[v, q] > 0.0 else 0.0
                        bar[length] = 0.0
                        errors += _ends_back(
                            vs, v_choice[v], v_values, v_misread, v_depth, length, v_chances, v_ends[v], bar, over,
                            unit, weight, at_v_choice[v], v_ended, v_by_form,
                        )  # fmt: skip
                _count_deletions(vs, v_sizes, v_depth, v_by_form, unit, weight, at_v)
                _count_deletions(js, j_sizes, j_depth, j_by_form, unit, weight, at_j)
                at_misread[0] += np.int64(errors * unit + 0.5) * weight
                scale[: length + 1] = over
                _back(
                    codes, length, v_depth, nodes, v_ended, scale, unit, weight, at_node, vd_at_lengths, vd_at_first,
                    vd_at_step, by_length, cover,
                )  # fmt: skip
                _back(
                    back, length, j_depth, nodes, j_ended, scale, unit, weight, at_node, dj_at_lengths, dj_at_first,
                    dj_at_step, by_length, cover,
                )  # fmt: skip


class ErrorsKernel(Kernel):
    """Expected counts under the model that it was given last, with its error rate; a task is a junction."""

    def __init__(self, problem: InferenceProblem, threads_per_block: int) -> None:
        self.problem, self.layout = problem, problem.layout
        self.take(problem.model)

    def weigh(self, problem: InferenceProblem) -> None:
        """Count the same junctions with other weights."""
        self.problem = problem

    def take(self, model: Model) -> None:
        """Count the events of another model with the same alleles."""
        self._error_rate, self._weights = model.error_rate, Weights.of(model)

    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """The counts of junctions first … last-1, int64 [1, counts]."""
        own, layout, weights = self.problem.repertoire, self.layout, self._weights
        parts = max(1, min(get_num_threads(), -(-(last - first) // CHUNK)))
        out: NDArray[np.int64] = np.zeros((parts, sum(layout.sizes)), dtype=np.int64)
        if last > first:
            v_masks, j_masks, vd, dj = layout.v_masks, layout.j_masks, weights.vd, weights.dj
            expected_counts(
                own.words, own.lengths, own.offsets, self.problem.row_weights, first, last,
                layout.unit(self.problem.rows), parts, self._error_rate, v_masks.first, v_masks.places, j_masks.first,
                j_masks.places, (v_masks.most, j_masks.most), layout.v.codes, layout.v.lengths, layout.d.codes,
                layout.d.lengths, layout.j.codes, layout.j.lengths, np.array(layout.sizes), weights.v_choice,
                weights.j_choice, weights.v, weights.j, weights.d, vd.lengths, vd.step, vd.first, dj.lengths, dj.step,
                dj.first, out,
            )  # fmt: skip
        total = out.sum(axis=0, keepdims=True)
        return lambda: total
