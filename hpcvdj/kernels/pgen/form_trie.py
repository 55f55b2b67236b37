"""The D forms with whole codons, in a prefix tree of symbols; see `symbol_tries`."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.pgen.ambiguous_texts import MOST_BYTES, NEEDED, Ambiguous, cut, is_ambiguous, kind_of, range_of
from hpcvdj.kernels.pgen.tables import Tables
from hpcvdj.recombination.models import Array
from hpcvdj.recombination.symbols import Alphabet

CUTS = 1 + 4 + 16
"""What a D form may have before its first whole codon, or behind its last: no base, one or two."""


class FormTrie(NamedTuple):
    """The D forms with whole codons, by the symbols of these, in a prefix tree.

    child   int32 [nodes, symbols]: the next node or -1; node 0 is the empty text
    first   int64 [nodes + 1]: the forms of node n are first[n] … first[n + 1] - 1
    cuts    uint16 [forms]: 256 before + after, the bases before the first and behind the last whole codon: 0 if none,
            1 + a if one, 5 + 4 a + b if two
    weight  float64 [t, forms]; t is a table of D genes, as of `DForms.weights`
    """

    child: NDArray[np.int32]
    first: NDArray[np.int64]
    cuts: NDArray[np.uint16]
    weight: Array

    @staticmethod
    def of(tables: Tables, alphabet: Alphabet, ambiguous: Ambiguous) -> "FormTrie":
        """The tree of a model's D forms.  InputError if ambiguous symbols make it too large."""
        depth = max((len(template.extended) for template in tables.model.d), default=0) // 3 + 1
        firsts = range(ambiguous.symbols.shape[1])
        texts = np.concatenate([np.zeros((0, depth), np.uint8), *(cut(ambiguous.symbols, k, depth) for k in firsts)])
        _, needed = ambiguous.sorted(alphabet, np.zeros(len(texts), np.int64), texts)
        symbols = len(alphabet.symbols)
        arguments = (
            tables.forms.child, np.asarray((tables.forms.weights > 0).any(axis=0)), depth, alphabet.codons,
            is_ambiguous(alphabet), ambiguous.free(alphabet), needed,
        )  # fmt: skip

        def filled(nodes: int, forms: int) -> tuple[tuple[int, int], tuple[NDArray[Any], ...]]:
            ambiguous.check(100 * forms + 8 * symbols * nodes)
            arrays = np.full((nodes, symbols), -1, np.int32), np.empty(forms, np.int64), np.empty(forms, np.int32)
            return _fill_forms(bool(nodes), MOST_BYTES // 100 + 1, *arrays, *arguments), arrays

        # Once to see how many there are.
        sizes, _ = filled(0, 0)
        _, (child, found, form) = filled(*sizes)
        keys, places = np.unique(found, return_inverse=True)
        weight = np.zeros((len(keys), len(tables.forms.weights)))
        np.add.at(weight, places, tables.forms.weights[:, form].T)
        nodes, before, after = keys // CUTS**2, keys // CUTS % CUTS, keys % CUTS
        return FormTrie(
            child=child, first=np.searchsorted(nodes, np.arange(len(child) + 1)).astype(np.int64),
            cuts=(before << 8 | after).astype(np.uint16), weight=np.ascontiguousarray(weight.T),
        )  # fmt: skip


@njit(cache=True, nogil=True)
def _cuts(child, form, nodes):  # type: ignore[no-untyped-def]
    """Into nodes [CUTS]: those of a form with no, one and two bases more, as `FormTrie` calls the bases, or -1."""
    nodes[:] = -1
    nodes[0] = form
    for a in range(4):
        longer = child[form, a]
        nodes[1 + a] = longer
        if longer >= 0:
            for b in range(4):
                nodes[5 + 4 * a + b] = child[longer, b]


@njit(cache=True, nogil=True)
def _fill_forms(  # type: ignore[no-untyped-def]
    fills, most_found, all_children, found, found_form, child, used, most_depth, codons, is_ambiguous, free, needed
):
    """Make the tree of forms, or only count: its nodes, and the forms in it.

    found       CUTS^2 node + CUTS before + after of each form, and in `found_form` its node in `child`
    used        bool [nodes of `child`]: whether a form has a weight
    most_depth  symbols of a text, at most
    """
    symbols = len(is_ambiguous)
    # Of the text that is being made, after each of its symbols; forms in each of three frames.
    forms, befores = np.empty((2, most_depth + 1, 3 * len(child)), dtype=np.int32)
    count, node, next_symbol, kind, low, high = np.zeros((6, most_depth + 1), dtype=np.int64)
    high[0] = len(needed)
    cuts = np.empty(CUTS, dtype=np.int64)
    _cuts(child, 0, cuts)
    for before in range(CUTS):
        if cuts[before] >= 0:
            forms[0, count[0]], befores[0, count[0]] = cuts[before], before
            count[0] += 1
    nodes, number, depth = 1, 0, 0
    while depth >= 0 and number < most_found:
        symbol = next_symbol[depth]
        if symbol == symbols or depth == most_depth:
            depth -= 1
            continue
        next_symbol[depth] += 1
        made = depth + 1
        kind[made] = kind_of(kind[depth], symbol, is_ambiguous, free)
        low[made], high[made] = range_of(symbol, needed, depth, low[depth], high[depth])
        if kind[made] == NEEDED and low[made] == high[made]:
            continue
        count[made] = 0
        for k in range(count[depth]):
            for a in range(4):
                one = child[forms[depth, k], a]
                for b in range(4):
                    two = child[one, b] if one >= 0 else -1
                    for c in range(4):
                        if two >= 0 and codons[symbol, a, b, c] and child[two, c] >= 0:
                            forms[made, count[made]], befores[made, count[made]] = child[two, c], befores[depth, k]
                            count[made] += 1
        if count[made] == 0:
            continue
        if fills:
            all_children[node[depth], symbol] = nodes
        node[made], next_symbol[made] = nodes, 0
        nodes += 1
        for k in range(count[made]):
            _cuts(child, forms[made, k], cuts)
            for after in range(CUTS):
                if cuts[after] >= 0 and used[cuts[after]]:
                    if fills:
                        found[number] = CUTS * (CUTS * node[made] + befores[made, k]) + after
                        found_form[number] = cuts[after]
                    number += 1
        depth = made
    return nodes, number
