"""What the parts of a model add up to, for every text of amino acids that they can have.

V with the insertion after it and J with its own are prefix trees of symbols; so are the D forms (`form_trie`).

A sequence follows the nucleotides of some V segments for a few codons only.  Up to there, the weights within its codons
depend on its first symbols alone; so do, behind the last codon that a segment reaches, the weights of all insertions
that are under way.  Both are computed once for each set of alleles, in a prefix tree of symbols.  Behind a leaf all
insertions take the same steps, which the kernels multiply once for all of them.

The tree of a set of alleles is kept for the next table or slice, unless sequences with ambiguous symbols add to it.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.pgen.ambiguous_texts import (
    MOST_BYTES,
    NEEDED,
    Ambiguous,
    cut,
    is_ambiguous,
    kind_of,
    range_of,
    reversed_texts,
)
from hpcvdj.kernels.pgen.codons import CodonForms, CodonSteps
from hpcvdj.kernels.pgen.form_trie import FormTrie
from hpcvdj.kernels.pgen.tables import Groups, Tables
from hpcvdj.kernels.threads import on_threads
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import Array, Model, kept_with_model
from hpcvdj.recombination.symbols import Alphabet

ENDED = 9
"""Weights within a codon: 4 after its first base, 4 after its second, 1 at its end."""

MOST_KEPT_BYTES = 1 << 28
"""Of the trees of one side that are kept for other tables: those of all alleles of human TRB have 46 MB at most."""

NO_WEIGHT, NOT_MADE = -1, -2
"""Instead of the child of a node: every text that goes on so has probability 0; no sequence needs it."""


class SymbolTries(NamedTuple):
    """Prefix trees of symbols, one for each tree of `Tries`, and how insertions go on behind their leaves.

    child   int32 [inner nodes, symbols]: the next node, NO_WEIGHT or NOT_MADE
    after   int32 [nodes]: the node's row in `child`, or, of a leaf, ~(its row in `beyond`)
    ended   float64 [nodes, ENDED]: weights within the last codon of the node's text
    beyond  float64 [leaves, codons, 3, 4]: weights, by last base, of insertions that come to the end of the leaf's text
            and end after one, two and three bases of the codons behind it, without the probabilities of these bases
    one, two, whole   the steps of the insertion through a codon: see `CodonSteps`

    `hpcvdj.kernels.pgen.codons` says what the components are.  Trees of J are read from its end.
    """

    child: NDArray[np.int32]
    after: NDArray[np.int32]
    ended: Array
    beyond: Array
    one: Array
    two: Array
    whole: Array

    @staticmethod
    def of(tables: Tables, alphabet: Alphabet, ambiguous: Ambiguous) -> "tuple[Groups, SymbolTries, SymbolTries]":
        """The groups, whose roots are rows in `child`, and the trees of V and of J.

        InputError if ambiguous symbols make them too large.
        """
        groups = tables.groups
        # The sequences of a pair need the trees of its groups.
        first, sizes = groups.first[ambiguous.pair], np.diff(groups.first)[ambiguous.pair]
        sequence = np.repeat(np.arange(len(sizes)), sizes)
        group = np.arange(len(sequence)) + np.repeat(first - sizes.cumsum() + sizes, sizes)
        backwards = reversed_texts(ambiguous.symbols)
        rows_v, v = _trees(tables, "V", alphabet, ambiguous, groups.v, group, ambiguous.symbols[sequence])
        rows_j, j = _trees(tables, "J", alphabet, ambiguous, groups.j, group, backwards[sequence])
        return groups._replace(v=rows_v, j=rows_j), v, j


AminoAcidTables = tuple[Groups, SymbolTries, SymbolTries, CodonForms, FormTrie]
"""What the kernels for amino acids take: groups, V, J, and the D forms without and with whole codons."""


def amino_acid_tables(tables: Tables, alphabet: Alphabet, ambiguous: Ambiguous) -> AminoAcidTables:
    """The tables of a model.  InputError if ambiguous symbols make them too large."""
    tries = SymbolTries.of(tables, alphabet, ambiguous)
    return *tries, CodonForms.of(alphabet, tables.forms), FormTrie.of(tables, alphabet, ambiguous)


def _trees(
    tables: Tables, segment: SegmentType, alphabet: Alphabet, ambiguous: Ambiguous, roots: NDArray[np.int64],
    group: NDArray[np.int64], symbols_needed: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], SymbolTries]:  # fmt: skip
    """The row in `child` of the empty text of each group's tree, and the trees of V or of J.

    roots           of the groups
    group           of sequences with ambiguous symbols, each of which needs the tree of its group
    symbols_needed  of these sequences
    """
    templates = tables.model.templates(segment)
    tries, chain = (tables.v, tables.vd) if segment == "V" else (tables.j, tables.dj)
    steps = CodonSteps.of(alphabet.codons.astype(np.float64), chain, mirrored=segment == "J")
    # Trees that no such sequence adds to, by their nodes and weights; those that are made are added.
    known = _known(tables.model, segment, alphabet.codons.tobytes(), ambiguous.ball)
    reach = max((len(template.extended) for template in templates), default=0)
    tree_of = np.searchsorted(tries.root, roots)
    owner, needed = ambiguous.sorted(alphabet, tree_of[group], cut(symbols_needed, 0, reach // 3 + 1))
    first_needed = np.searchsorted(owner, np.arange(len(tries.root) + 1))
    lengths = np.pad(chain.lengths, (0, 3))
    symbols, codons = len(alphabet.symbols), max(0, len(chain.lengths) // 3)
    arguments = (
        tries, max(1, len(templates)), reach // 3 + 1, is_ambiguous(alphabet), ambiguous.free(alphabet), needed,
        first_needed, lengths, chain.first, steps,
    )  # fmt: skip
    # Each has a row of `child`, or of `beyond`.
    most_nodes = MOST_BYTES // min(4 * symbols, 96 * codons + 4)

    def empty(sizes: NDArray[np.int64]) -> _Trees:
        nodes, inner, leaves = sizes.tolist()
        ambiguous.check(4 * inner * symbols + nodes * (4 + 8 * ENDED) + 96 * leaves * codons)
        return _Trees(
            np.full((inner, symbols), NOT_MADE, dtype=np.int32), np.empty(nodes, dtype=np.int32),
            np.empty((nodes, ENDED)), np.empty((leaves, codons, 3, 4)),
        )  # fmt: skip

    names: list[Any] = list(range(len(tries.root)))
    if not len(needed):
        for number, (first, end) in enumerate(pairwise([*tries.root.tolist(), len(tries.child)])):
            links = tries.child[first:end]
            names[number] = np.where(links < 0, links, links - first).tobytes(), tries.alone[first:end].tobytes()
    missing = {name: number for number, name in enumerate(names) if name not in known}
    sizes = {name: tree.sizes for name, tree in known.items()}
    made: dict[Any, _Trees] = {}

    def measure(name: Any) -> None:
        sizes[name] = np.array(_fill(missing[name], False, most_nodes, *empty(np.zeros(3, np.int64)), *arguments))

    def make(name: Any) -> None:
        made[name] = empty(sizes[name])
        _fill(missing[name], True, most_nodes, *made[name], *arguments)

    on_threads(measure, list(missing))
    begin = np.cumsum([np.zeros(3, dtype=np.int64), *(sizes[name] for name in names)], axis=0)
    trees = empty(begin[-1])
    on_threads(make, list(missing))
    for name, first, end in zip(names, begin, begin[1:], strict=False):
        trees.put(known.get(name) or made[name], first, end)
        if len(needed):
            del made[name]
    if sum(part.nbytes for tree in (*known.values(), *made.values()) for part in tree) <= MOST_KEPT_BYTES:
        known.update(made)
    return begin[tree_of, 1], SymbolTries(*trees, steps.one, steps.two, steps.whole)


@kept_with_model
def _known(model: Model, segment: str, codons: bytes, ball: bool) -> "dict[tuple[bytes, bytes], _Trees]":
    """The trees of a segment that are kept, with the codons of the symbols of an alphabet: none at first."""
    return {}


class _Trees(NamedTuple):
    """Trees one after another, or one by itself, as of `SymbolTries`."""

    child: NDArray[np.int32]
    after: NDArray[np.int32]
    ended: Array
    beyond: Array

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([len(self.after), len(self.child), len(self.beyond)])

    def put(self, tree: "_Trees", first: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        """Put a tree to its place, from `first` to `end`: numbers of nodes, inner nodes and leaves."""
        (nodes, inner, leaves), (nodes_end, inner_end, leaves_end) = first, end
        self.child[inner:inner_end] = np.where(tree.child < 0, tree.child, tree.child + nodes)
        self.after[nodes:nodes_end] = np.where(tree.after < 0, tree.after - leaves, tree.after + inner)
        self.ended[nodes:nodes_end], self.beyond[leaves:leaves_end] = tree.ended, tree.beyond


@njit(cache=True, nogil=True)
def _fill(  # type: ignore[no-untyped-def]
    tree, fills, most_nodes, all_children, after, ended, beyond, tries, most_paths, most_depth, is_ambiguous, free,
    needed, first_needed, lengths, first, steps,
):  # fmt: skip
    """Make a tree, or only count its nodes, inner nodes and leaves, which are returned."""
    symbols = len(is_ambiguous)
    # Of the text that is being made, after each of its symbols.
    paths = np.empty((most_depth + 2, most_paths), dtype=np.int32)
    # Of the texts that are needed, those from `low` to `high` begin with it.
    count, inner, next_symbol, kind, low, high = np.zeros((6, most_depth + 2), dtype=np.int64)
    low[0], high[0] = first_needed[tree], first_needed[tree + 1]
    rows = np.zeros((most_depth + 2, 3 * most_depth + 7, 4))
    own_ended = np.empty(ENDED)
    node = leaf = depth = np.int64(0)
    paths[0, 0], count[0], row = tries.root[tree], 1, np.int64(1)
    while depth >= 0 and node < most_nodes:
        symbol = next_symbol[depth]
        if symbol == symbols:
            depth -= 1
            continue
        next_symbol[depth] += 1
        made, deeper = depth + 1, rows[depth + 1]
        kind[made] = kind_of(kind[depth], symbol, is_ambiguous, free)
        low[made], high[made] = range_of(symbol, needed, depth, low[depth], high[depth])
        if kind[made] == NEEDED and low[made] == high[made]:
            continue
        count[made] = _codon(
            depth, symbol, paths[depth, : count[depth]], rows[depth], paths[made], deeper, own_ended, tries.child,
            tries.alone, lengths, first, steps,
        )  # fmt: skip
        if count[made] == 0 and not own_ended.any() and not deeper[: 3 * made].any():
            if fills:
                all_children[inner[depth], symbol] = NO_WEIGHT
            continue
        if fills:
            all_children[inner[depth], symbol] = node
            # One by one: numba takes seconds to compile what an assignment says of arrays that do not fit.
            for c in range(ENDED):
                ended[node, c] = own_ended[c]
            after[node] = row if count[made] else ~leaf
        node += 1
        if count[made]:
            next_symbol[made], inner[made] = 0, row
            row += 1
            depth = made
            continue
        if fills:
            beyond[leaf] = 0.0
            for k in range(3 * beyond.shape[1]):
                for p in range(1, 3 * made):
                    length = k + 1 + 3 * made - p
                    if length < len(lengths):
                        for c in range(4):
                            beyond[leaf, k // 3, k % 3, c] += lengths[length] * deeper[p, c]
        leaf += 1
    return node, row, leaf


@njit(cache=True, nogil=True)
def _codon(  # type: ignore[no-untyped-def]
    depth, s, paths, rows, new_paths, new_rows, ended, child, alone, lengths, first, steps
):
    """Go one codon further, with symbol s, from a text of `depth` symbols; the number of `new_paths`.

    paths  nodes of the tree of nucleotides
    rows   [p] is the weight of insertions that began after p bases; of segments alone for the last p
    ended  see `SymbolTries`
    """
    one, two, whole, first_two, first_whole, rest_two, rest_whole, fits = steps
    q, count = 3 * depth, 0
    ended[:] = 0.0
    new_rows[: q + 4] = 0.0
    for k in range(len(paths)):
        for a in range(4):
            after_one = child[paths[k], a]
            if after_one < 0 or not fits[s, 4 * a : 4 * a + 4].any():
                continue
            ended[a] += alone[after_one]
            for b in range(4):
                after_two = child[after_one, b]
                if after_two < 0:
                    continue
                for c in range(4):
                    if fits[s, 4 * a + b, c] == 0.0:
                        continue
                    ended[4 + c] += alone[after_two]
                    last = child[after_two, c]
                    if last >= 0:
                        new_rows[q + 3, 0] += alone[last]
                        new_paths[count] = last
                        count += 1
    # Insertions that began before the codon, at its first base, after its first and its second base.
    longer_by_one, longer_by_two, two_bases = np.zeros((3, 4))
    for p in range(1, q):
        for x in range(4):
            if q + 1 - p < len(lengths):
                longer_by_one[x] += lengths[q + 1 - p] * rows[p, x]
            if q + 2 - p < len(lengths):
                longer_by_two[x] += lengths[q + 2 - p] * rows[p, x]
            for c in range(4):
                new_rows[p, c] += rows[p, x] * whole[s, x, c]
    for c in range(4):
        for x in range(4):
            two_bases[c] += longer_by_two[x] * two[s, x, c] + lengths[1] * ended[x] * rest_two[s, x, c]
            new_rows[q + 1, c] += ended[x] * rest_whole[s, x, c]
        new_rows[q + 2, c] = ended[4 + c] * first[c]
        if q > 0:
            two_bases[c] += lengths[2] * rows[q, 0] * first_two[s, c]
            new_rows[q, c] = rows[q, 0] * first_whole[s, c]
    for c in range(4):
        ended[4 + c] = lengths[0] * ended[4 + c] + two_bases[c]
        ended[c] *= lengths[0]
        if q > 0:
            ended[c] += lengths[1] * rows[q, 0] * first[c]
        for x in range(4):
            ended[c] += longer_by_one[x] * one[0, x, c]
        for p in range(1, q + 3):
            if q + 3 - p < len(lengths):
                ended[8] += lengths[q + 3 - p] * new_rows[p, c]
    ended[8] += lengths[0] * new_rows[q + 3, 0]
    return count
