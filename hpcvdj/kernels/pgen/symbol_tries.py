"""What the parts of a model add up to, for every text of amino acids that they can have.

V with the insertion after it, J with its own, and the D forms are prefix trees of symbols.

A sequence follows the nucleotides of some V segments for a few codons only.  Up to there, the weights within its codons
depend on its first symbols alone; so do, behind the last codon that a segment reaches, the weights of all insertions
that are under way.  Both are computed once for each set of alleles, in a prefix tree of symbols.  Behind a leaf all
insertions take the same steps, which the kernels multiply once for all of them.

The trees have every text of amino acids that can be made.  Of those with ambiguous symbols, which are many more, they
have what the sequences need, and for sums over one mismatch all with a single X.
"""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.pgen.codons import CodonSteps
from hpcvdj.kernels.pgen.tables import Chain, Tables, Tries
from hpcvdj.recombination.alphabet import AMINO_ACIDS
from hpcvdj.recombination.models import Array, Template
from hpcvdj.recombination.repertoire import PgenProblem
from hpcvdj.recombination.symbols import ANY_RESIDUE, Alphabet

log = logging.getLogger(__name__)

ENDED = 9
"""Weights within a codon: 4 after its first base, 4 after its second, 1 at its end."""

STANDARD = frozenset(AMINO_ACIDS.values())
"""Amino acids and the stop."""

NO_WEIGHT, NOT_MADE = -1, -2
"""Instead of the child of a node: every text that goes on so has probability 0; no sequence needs it."""

NO_SYMBOL = 255
"""Behind the end of a sequence."""

MOST_BYTES = 1 << 33
"""Of the prefix trees of one side."""


@dataclass(frozen=True)
class Ambiguous:
    """Which texts with ambiguous symbols there are.

    symbols  uint8 [sequences, codons]: the sequences with such symbols, NO_SYMBOL behind their end
    pair     int64 [sequences]: their V–J pairs
    ball     for sums over one mismatch: every text has an X in the place of any one of its symbols, too
    """

    symbols: NDArray[np.uint8]
    pair: NDArray[np.int64]
    ball: bool

    @staticmethod
    def of(problem: PgenProblem, *, ball: bool) -> "Ambiguous":
        """The texts of a problem."""
        alphabet, own = problem.symbols, problem.repertoire
        if alphabet is None:
            return Ambiguous(np.zeros((0, 0), np.uint8), np.zeros(0, np.int64), ball)
        # Behind the end of a sequence there is symbol 0, an amino acid.
        packed = np.ascontiguousarray(own.words).view(np.uint8)
        chosen = np.zeros(len(packed), dtype=np.bool_)
        _choose(packed, is_ambiguous(alphabet), chosen)
        rows = np.flatnonzero(chosen)
        if len(rows):
            log.info("preparing the tables for %s sequence(s) with ambiguous symbols", f"{len(rows):,}")
        symbols = own.words[rows].astype(">u8").view(np.uint8)
        symbols[np.arange(symbols.shape[1]) >= (own.lengths[rows] // np.uint8(alphabet.bases))[:, None]] = NO_SYMBOL
        return Ambiguous(symbols, np.searchsorted(own.offsets, rows, side="right") - 1, ball)

    def free(self, alphabet: Alphabet) -> int:
        """The symbol that any text may have once; -1 for none."""
        return alphabet.symbols.index(ANY_RESIDUE) if self.ball else -1

    def sorted(
        self, alphabet: Alphabet, owner: NDArray[np.int64], texts: NDArray[np.uint8]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Owners and texts [texts, codons], of those with ambiguous symbols, each once and in their order.

        With those that have an X in the place of one symbol, for sums over one mismatch.
        """
        marked = np.append(is_ambiguous(alphabet), np.zeros(256 - len(alphabet.symbols), np.bool_))
        kept = marked[texts].any(axis=1)
        owner, texts = _unique(owner[kept], texts[kept])
        if self.ball:
            changed = np.repeat(texts[None], texts.shape[1] + 1, axis=0)
            for k in range(texts.shape[1]):
                changed[k + 1, texts[:, k] != NO_SYMBOL, k] = self.free(alphabet)
            owner, texts = _unique(np.tile(owner, len(changed)), changed.reshape(-1, texts.shape[1]))
        return owner, texts

    def check(self, size: int) -> None:
        """InputError if prefix trees of `size` bytes are too large."""
        if size > MOST_BYTES:
            raise InputError(
                f"the tables of amino acids for these V and J calls and {len(self.symbols):,} sequences with ambiguous "
                f"symbols need more than {MOST_BYTES / 1e9:.1f} GB; take fewer rows at a time (--batch-rows), or leave "
                "out mismatches"
            )


def is_ambiguous(alphabet: Alphabet) -> NDArray[np.bool_]:
    """Which symbols of an alphabet are ambiguous, bool [symbols]."""
    return np.array([symbol not in STANDARD for symbol in alphabet.symbols])


@njit(cache=True, nogil=True)
def _choose(rows, is_ambiguous, chosen):  # type: ignore[no-untyped-def]
    """Set, in bool [rows], which rows, uint8 [rows, symbols], have an ambiguous symbol."""
    for row in range(len(rows)):
        for symbol in rows[row]:
            chosen[row] |= is_ambiguous[symbol]


def _cut(symbols: NDArray[np.uint8], first: int, width: int) -> NDArray[np.uint8]:
    """`width` symbols of each sequence from place `first` on, NO_SYMBOL where it has ended."""
    part = symbols[:, first : first + width]
    return np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=NO_SYMBOL)


def _reversed(symbols: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Sequences from their ends."""
    out = np.full_like(symbols, NO_SYMBOL)
    codons = (symbols != NO_SYMBOL).sum(axis=1)
    rows, places = np.nonzero(symbols != NO_SYMBOL)
    out[rows, codons[rows] - 1 - places] = symbols[rows, places]
    return out


def _unique(owner: NDArray[np.int64], texts: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Different (owner, text), ordered by owner, then by text."""
    # Eight bytes at a time are sorted faster than one.
    filled = np.pad(texts, ((0, 0), (0, -texts.shape[1] % 8))).view(">u8").astype(np.uint64)
    keys = np.hstack([owner.astype(np.uint64)[:, None], filled])
    order = np.lexsort(keys.T[::-1])
    keys = keys[order]
    chosen = order[np.append(True, (keys[1:] != keys[:-1]).any(axis=1))[: len(keys)]]
    return owner[chosen], texts[chosen]


@njit(cache=True, nogil=True)
def _range_of(symbol, texts, place, first, last):  # type: ignore[no-untyped-def]
    """Which of the sorted texts first … last-1, which begin alike, have `symbol` at `place`: first and last + 1."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if texts[middle, place] < symbol:
            low = middle + 1
        else:
            high = middle
    stop, high = low, last
    while stop < high:
        middle = (stop + high) // 2
        if texts[middle, place] <= symbol:
            stop = middle + 1
        else:
            high = middle
    return low, stop


PLAIN, ONE_FREE, NEEDED = range(3)
"""Texts of amino acids; those with one X, which any text may have; others, which are made if a sequence needs them."""


@njit(cache=True, nogil=True)
def _kind(before, symbol, is_ambiguous, free):  # type: ignore[no-untyped-def]
    """The kind of a text that goes on with `symbol`."""
    if not is_ambiguous[symbol]:
        return before
    return ONE_FREE if before == PLAIN and symbol == free else NEEDED


@dataclass(frozen=True)
class SymbolTries:
    """Prefix trees of symbols, one for each tree of `Tries`, and how insertions go on behind their leaves.

    root    int64 [trees]: the root of the tree of nucleotides, ascending
    first   int64 [trees]: the row in `child` of the empty text
    child   int32 [inner nodes, symbols]: the next node, NO_WEIGHT or NOT_MADE
    after   int32 [nodes]: the node's row in `child`, or, of a leaf, ~(its row in `beyond`)
    ended   float64 [nodes, ENDED]: weights within the last codon of the node's text
    beyond  float64 [leaves, codons, 3, 4]: weights, by last base, of insertions that come to the end of the leaf's text
            and end after one, two and three bases of the codons behind it, without the probabilities of these bases
    steps   of the insertion through a codon

    `hpcvdj.kernels.pgen.codons` says what the components are.  Trees of J are read from its end.
    """

    root: NDArray[np.int64]
    first: NDArray[np.int64]
    child: NDArray[np.int32]
    after: NDArray[np.int32]
    ended: Array
    beyond: Array
    steps: CodonSteps

    def row_of(self, roots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows in `child` of the empty text, of the trees with these roots."""
        return self.first[np.searchsorted(self.root, roots)]

    @staticmethod
    def of(tables: Tables, alphabet: Alphabet, ambiguous: Ambiguous) -> "tuple[SymbolTries, SymbolTries]":
        """The trees of V and of J.  InputError if ambiguous symbols make them too large."""
        codons = alphabet.codons.astype(np.float64)
        sides = (
            _Side(tables.v, tables.vd, tables.model.v, tables.group_v, ambiguous.symbols),
            _Side(tables.j, tables.dj, tables.model.j, tables.group_j, _reversed(ambiguous.symbols)),
        )
        # The sequences of a pair need the trees of its groups.
        first, groups = tables.first_group[ambiguous.pair], np.diff(tables.first_group)[ambiguous.pair]
        sequence = np.repeat(np.arange(len(groups)), groups)
        group = np.arange(len(sequence)) + np.repeat(first - groups.cumsum() + groups, groups)
        v, j = (
            _trees(side, CodonSteps.of(codons, side.chain, mirrored=mirrored), alphabet, ambiguous, sequence, group)
            for side, mirrored in zip(sides, (False, True), strict=True)
        )
        return v, j


@dataclass(frozen=True)
class _Side:
    """V, or J with what is read from the end: see `Tables` and `Ambiguous`."""

    tries: Tries
    chain: Chain
    templates: tuple[Template, ...]
    group: NDArray[np.int64]
    symbols: NDArray[np.uint8]


def _trees(
    side: _Side, steps: CodonSteps, alphabet: Alphabet, ambiguous: Ambiguous, sequence: NDArray[np.int64],
    group: NDArray[np.int64],
) -> SymbolTries:  # fmt: skip
    """The trees of one side; sequences with ambiguous symbols need those of the groups beside them."""
    tries, chain = side.tries, side.chain
    reach = max((len(own.extended) for own in side.templates), default=0)
    owner, needed = ambiguous.sorted(
        alphabet, np.searchsorted(tries.root, side.group[group]), _cut(side.symbols, 0, reach // 3 + 1)[sequence]
    )
    first_needed = np.searchsorted(owner, np.arange(len(tries.root) + 1))
    lengths = np.pad(chain.lengths, (0, 3))
    symbols, codons = len(alphabet.symbols), max(0, len(chain.lengths) // 3)
    arguments = (
        tries.root, tries.child, tries.alone, max(1, len(side.templates)), reach // 3 + 1, is_ambiguous(alphabet),
        ambiguous.free(alphabet), needed, first_needed, lengths, chain.first, steps.one, steps.two, steps.whole,
        steps.first_two, steps.first_whole,
        steps.rest_two, steps.rest_whole, steps.fits,
    )  # fmt: skip
    begin = np.zeros((len(tries.root) + 1, 3), dtype=np.int64)
    # Each has a row of `child`, or of `beyond`.
    most_nodes = MOST_BYTES // min(4 * symbols, 96 * codons + 4)

    def filled(nodes: int, inner: int, leaves: int) -> tuple[NDArray[Any], ...]:
        size = 4 * inner * symbols + nodes * (4 + 8 * ENDED) + 96 * leaves * codons
        ambiguous.check(size)
        arrays = (
            np.full((inner, symbols), NOT_MADE, dtype=np.int32), np.empty(nodes, dtype=np.int32),
            np.empty((nodes, ENDED)), np.empty((leaves, codons, 3, 4)),
        )  # fmt: skip
        _fill(bool(nodes), begin, most_nodes, *arrays, *arguments)
        return arrays

    # Once to see how many there are.
    filled(0, 0, 0)
    begin = np.cumsum(begin, axis=0)
    child, after, ended, beyond = filled(*map(int, begin[-1]))
    return SymbolTries(tries.root, begin[:-1, 1].copy(), child, after, ended, beyond, steps)


@njit(cache=True, nogil=True, parallel=True)
def _fill(  # type: ignore[no-untyped-def]
    fills, begin, most_nodes, all_children, after, ended, beyond, root, nt_child, alone, most_paths, most_depth,
    is_ambiguous, free, needed, first_needed, lengths, *steps,
):  # fmt: skip
    """Make the trees from `begin` (nodes, inner nodes, leaves) on; or only count, into the rows after the first."""
    symbols = len(is_ambiguous)
    for tree in prange(len(root)):
        # Of the text that is being made, after each of its symbols.
        paths = np.empty((most_depth + 2, most_paths), dtype=np.int32)
        # Of the texts that are needed, those from `low` to `high` begin with it.
        count, inner, next_symbol, kind, low, high = np.zeros((6, most_depth + 2), dtype=np.int64)
        low[0], high[0] = first_needed[tree], first_needed[tree + 1]
        rows = np.zeros((most_depth + 2, 3 * most_depth + 7, 4))
        own_ended = np.empty(ENDED)
        node = row = leaf = np.int64(0)
        if fills:
            node, row, leaf = begin[tree, 0], begin[tree, 1], begin[tree, 2]
        first_node = node
        paths[0, 0], count[0], inner[0] = root[tree], 1, row
        row += 1
        depth = 0
        while depth >= 0 and node - first_node < most_nodes:
            symbol = next_symbol[depth]
            if symbol == symbols:
                depth -= 1
                continue
            next_symbol[depth] += 1
            made, own = depth + 1, rows[depth + 1]
            kind[made] = _kind(kind[depth], symbol, is_ambiguous, free)
            low[made], high[made] = _range_of(symbol, needed, depth, low[depth], high[depth])
            if kind[made] == NEEDED and low[made] == high[made]:
                continue
            count[made] = _codon(
                depth, symbol, paths[depth, : count[depth]], rows[depth], paths[made], own, own_ended, nt_child, alone,
                lengths, *steps,
            )  # fmt: skip
            if count[made] == 0 and not own_ended.any() and not own[: 3 * made].any():
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
                                beyond[leaf, k // 3, k % 3, c] += lengths[length] * own[p, c]
            leaf += 1
        if not fills:
            begin[tree + 1, 0], begin[tree + 1, 1], begin[tree + 1, 2] = node, row, leaf


@njit(cache=True, nogil=True)
def _codon(  # type: ignore[no-untyped-def]
    depth, s, paths, rows, new_paths, new_rows, ended, child, alone, lengths, first, one, two, whole, first_two,
    first_whole, rest_two, rest_whole, fits,
):  # fmt: skip
    """Go one codon further, with symbol s, from a text of `depth` symbols; the number of `new_paths`.

    paths  nodes of the tree of nucleotides
    rows   [p] is the weight of insertions that began after p bases; of segments alone for the last p
    ended  see `SymbolTries`
    """
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
            ended[c] += longer_by_one[x] * one[x, c]
        for p in range(1, q + 3):
            if q + 3 - p < len(lengths):
                ended[8] += lengths[q + 3 - p] * new_rows[p, c]
    ended[8] += lengths[0] * new_rows[q + 3, 0]
    return count


CUTS = 1 + 4 + 16
"""What a D form may have before its first whole codon, or behind its last: no base, one or two."""


@dataclass(frozen=True)
class FormTrie:
    """The D forms with whole codons, by the symbols of these, in a prefix tree.

    child   int32 [nodes, symbols]: the next node or -1; node 0 is the empty text
    first   int64 [nodes + 1]: the forms of node n are first[n] … first[n + 1] - 1
    before, after   uint8 [forms]: the bases before the first and behind the last whole codon: 0 if none, 1 + a if one,
            5 + 4 a + b if two
    weight  float64 [t, forms]; t is a table of D genes, as of `Tables.weights`
    """

    child: NDArray[np.int32]
    first: NDArray[np.int64]
    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    weight: Array

    @staticmethod
    def of(tables: Tables, alphabet: Alphabet, ambiguous: Ambiguous) -> "FormTrie":
        """The tree of a model's D forms.  InputError if ambiguous symbols make it too large."""
        depth = max((len(own.extended) for own in tables.model.d), default=0) // 3 + 1
        firsts = range(ambiguous.symbols.shape[1])
        texts = np.concatenate([np.zeros((0, depth), np.uint8), *(_cut(ambiguous.symbols, k, depth) for k in firsts)])
        _, needed = ambiguous.sorted(alphabet, np.zeros(len(texts), np.int64), texts)
        symbols = len(alphabet.symbols)
        arguments = (
            tables.forms.child, np.asarray((tables.weights > 0).any(axis=0)), depth, alphabet.codons,
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
        weight = np.zeros((len(keys), len(tables.weights)))
        np.add.at(weight, places, tables.weights[:, form].T)
        nodes, before, after = keys // CUTS**2, keys // CUTS % CUTS, keys % CUTS
        return FormTrie(
            child=child, first=np.searchsorted(nodes, np.arange(len(child) + 1)).astype(np.int64),
            before=before.astype(np.uint8), after=after.astype(np.uint8), weight=np.ascontiguousarray(weight.T),
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
        kind[made] = _kind(kind[depth], symbol, is_ambiguous, free)
        low[made], high[made] = _range_of(symbol, needed, depth, low[depth], high[depth])
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
