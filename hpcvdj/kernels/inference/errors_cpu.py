"""Expected counts with sequencing errors, on CPU cores.

A junction's probability is the sum over the D genes, and over q <= e, of Left(q) W(q, e) Right(e), as of
`hpcvdj.kernels.pgen.tables`; but every form fits everywhere, with a factor for each of its bases: 1 - ε if the junction
has it, ε/3 if it has another one.  One pass over all forms of a D gene gives the probability and, but for the division
by it, the counts and the derivatives by Left and Right.  The loops over q are the inner ones, as the processor does
several q at a time.
"""

from typing import Any

import numpy as np
from numba import njit

from hpcvdj.kernels.inference.errors_layout import Weights
from hpcvdj.kernels.inference.expectation_cpu import CHUNK, ExpectationKernel, _back
from hpcvdj.kernels.inference.layout import LEAST
from hpcvdj.kernels.pgen.nt_cpu import base_codes
from hpcvdj.kernels.pgen.tables import ROW_BASES, chains
from hpcvdj.recombination.models import Model


@njit(cache=True, nogil=True)
def _forms(codes, depth, places, texts, deletions, factors, values, misread):  # type: ignore[no-untyped-def]
    """The weight of the forms of 1 … depth bases of the alleles at some places, and how many of their bases differ.

    values, misread  [places, depth + 1]
    """
    templates, sizes = texts
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
def _insertions(codes, length, depth, insertion, chances):  # type: ignore[no-untyped-def]
    """chances[p, t]: the probability of an insertion of the t bases after the first p, for p = 1 … depth."""
    lengths, step, first = insertion
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
        # As in `hpcvdj.kernels.sums`, assigning all at once would take longer to compile.
        for q in range(length + 1):
            value[q] = left[q]
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


@njit(cache=True, nogil=True)
def expected_counts(  # type: ignore[no-untyped-def]
    part, junctions, parts, error_rate, v_masks, j_masks, v_texts, d_texts, j_texts, weights, vd, dj, at, out
):
    """Counts of every `parts`-th chunk of the junctions, from `part` on, into out[part], int64 [counts].

    junctions  as of `ExpectationKernel.junctions`
    at         where each part of the counts begins
    """
    packed, lengths, offsets, row_weights, begin, stop, (unit, log_unit) = junctions
    v_choice, j_choice, v_deletions, j_deletions, d_deletions = weights
    hit, miss = 1.0 - error_rate, error_rate / 3.0
    genes, lefts, columns = d_deletions.shape
    alleles_v, alleles_j, v_rows = v_choice.shape[1], j_choice.shape[1], len(v_choice)
    chunks = (stop - begin + CHUNK - 1) // CHUNK
    longest = np.int64(lengths[begin:stop].max())
    sums = out[part]
    at_v_choice = sums[at.v_choice : at.j_choice].reshape(v_rows, alleles_v)
    at_j_choice = sums[at.j_choice : at.v].reshape(genes, alleles_j)
    at_v = sums[at.v : at.j].reshape(alleles_v, v_deletions.shape[1])
    at_j = sums[at.j : at.d].reshape(alleles_j, j_deletions.shape[1])
    at_d = sums[at.d : at.vd_lengths].reshape(genes, lefts, columns)
    at_vd = sums[at.vd_lengths : at.dj_lengths], sums[at.vd_first :], sums[at.vd_steps :]
    at_dj = sums[at.dj_lengths : at.vd_first], sums[at.dj_first :], sums[at.dj_steps :]
    at_misread, logs, lost = sums[at.misread :], sums[at.logs :], sums[at.lost :]
    wide = longest + 2
    deepest_v, deepest_j = min(v_texts.codes.shape[1], longest), min(j_texts.codes.shape[1], longest)
    codes = np.zeros(longest + ROW_BASES, dtype=np.uint8)
    back = np.zeros(longest + ROW_BASES, dtype=np.uint8)
    factors, wrong = np.zeros((4, wide)), np.zeros((4, wide))
    # Of no more alleles than there are.
    v_values, v_misread, v_by_form = np.zeros((3, alleles_v, deepest_v + 1))
    j_values, j_misread, j_by_form = np.zeros((3, alleles_j, deepest_j + 1))
    v_chances = np.zeros((deepest_v + 1, len(vd.lengths)))
    j_chances = np.zeros((deepest_j + 1, len(dj.lengths)))
    v_ended, j_ended = np.zeros_like(v_chances), np.zeros_like(j_chances)
    v_ends, j_ends = np.zeros((v_rows, deepest_v + 1)), np.zeros((genes, deepest_j + 1))
    left, begun = np.zeros((v_rows, wide)), np.zeros((v_rows, wide))
    right, rbar, bar = np.zeros((genes, wide)), np.zeros((genes, wide)), np.zeros(wide)
    used = np.zeros(genes, dtype=np.bool_)
    counts = np.zeros((genes, lefts, columns))
    misread, buffers, scale = np.zeros(wide), np.zeros((3, wide)), np.zeros(wide)
    # For `_back`, which counts insertions; of the forms, it has no nodes.
    nodes, at_node = np.zeros(wide, dtype=np.int64), np.zeros(1, dtype=np.int64)
    by_length, cover = np.zeros(max(len(vd.lengths), len(dj.lengths))), np.zeros(wide)
    for chunk in range(part, chunks, parts):
        low = begin + chunk * CHUNK
        for row in range(low, min(stop, low + CHUNK)):
            pair = np.searchsorted(offsets, row, side="right") - 1
            vs = v_masks.places[v_masks.first[pair] : v_masks.first[pair + 1]]
            js = j_masks.places[j_masks.first[pair] : j_masks.first[pair + 1]]
            length = np.int64(lengths[row])
            base_codes(packed[row], length, codes)
            for k in range(length):
                back[k] = codes[length - 1 - k]
                for base in range(4):
                    factors[base, k] = hit if codes[k] == base else miss
                    wrong[base, k] = 0.0 if codes[k] == base else 1.0
            v_depth, j_depth = min(deepest_v, length), min(deepest_j, length)
            _forms(codes, v_depth, vs, v_texts, v_deletions, (hit, miss), v_values, v_misread)
            _forms(back, j_depth, js, j_texts, j_deletions, (hit, miss), j_values, j_misread)
            _insertions(codes, length, v_depth, vd, v_chances)
            _insertions(back, length, j_depth, dj, j_chances)
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
                    length, d_texts.lengths[g], d_texts.codes[g], d_deletions[g], factors, wrong, left[v],
                    right[g], begun[v], rbar[g], misread, counts[g], buffers,
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
            _count_deletions(vs, v_texts.lengths, v_depth, v_by_form, unit, weight, at_v)
            _count_deletions(js, j_texts.lengths, j_depth, j_by_form, unit, weight, at_j)
            at_misread[0] += np.int64(errors * unit + 0.5) * weight
            scale[: length + 1] = over
            _back(codes, length, v_depth, nodes, v_ended, scale, unit, weight, at_node, at_vd, by_length, cover)
            _back(back, length, j_depth, nodes, j_ended, scale, unit, weight, at_node, at_dj, by_length, cover)


class ErrorsKernel(ExpectationKernel):
    """The same with the model's error rate."""

    _count = staticmethod(expected_counts)

    def take(self, model: Model) -> None:
        """Count the events of another model with the same alleles."""
        self._error_rate, self._weights = model.error_rate, (Weights.of(model), *chains(model))

    def _tables(self) -> tuple[Any, ...]:
        layout = self.layout
        return self._error_rate, layout.v_masks, layout.j_masks, layout.v, layout.d, layout.j, *self._weights
