"""What the parts of a model add up to, for every text of amino acids that they can have.

V with the insertion after it, J with its own, and the D forms are prefix trees of symbols.

A sequence follows the nucleotides of some V segments for a few codons only.  Up to there, the weights within its codons
depend on its first symbols alone; so do, behind the last codon that a segment reaches, the weights of all insertions
that are under way.  Both are computed once for each set of alleles, in a prefix tree of symbols.  Behind a leaf all
insertions take the same steps, which the kernels multiply once for all of them.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
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
"""Instead of the child of a node: every text that goes on so has probability 0; it has too many ambiguous symbols."""

MOST_BYTES = 1 << 33
"""Of the prefix trees of one side."""


@dataclass(frozen=True)
class Ambiguous:
    """Symbols for several amino acids that texts may have, at most so many in one text."""

    symbols: str = ""
    most: int = 0

    @staticmethod
    def of(problem: PgenProblem, *, ball: bool) -> "Ambiguous":
        """Those of a problem's sequences, and for sums over one mismatch (`ball`) an X in the place of any symbol."""
        symbols, most = "", 0
        alphabet = problem.symbols
        if alphabet is not None:
            is_ambiguous = _ambiguous(alphabet)
            occurs = np.zeros(256, dtype=np.bool_)
            # Behind the end of a sequence there is symbol 0, an amino acid.
            packed = np.ascontiguousarray(problem.repertoire.words).view(np.uint8)
            most = int(_survey(packed, np.pad(is_ambiguous, (0, 256 - len(is_ambiguous))), occurs))
            symbols = "".join(sorted(s for k, s in enumerate(alphabet.symbols) if is_ambiguous[k] and occurs[k]))
        if symbols:
            log.info("preparing the tables for %s, up to %d in a sequence; more take longer", ", ".join(symbols), most)
        return Ambiguous("".join(sorted({*symbols, ANY_RESIDUE})), most + 1) if ball else Ambiguous(symbols, most)

    def among(self, alphabet: Alphabet) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which symbols of an alphabet texts may have, and which are ambiguous, bool [symbols] each."""
        is_ambiguous = _ambiguous(alphabet)
        return ~is_ambiguous | np.array([symbol in self.symbols for symbol in alphabet.symbols]), is_ambiguous

    def check(self, size: int) -> None:
        """InputError if prefix trees of `size` bytes are too large."""
        if size > MOST_BYTES:
            raise InputError(
                f"the tables of amino acids for these V and J calls and up to {self.most} ambiguous symbols in one "
                f"sequence need more than {MOST_BYTES / 1e9:.1f} GB; take fewer rows at a time (--batch-rows), or "
                "leave out mismatches and sequences with many ambiguous symbols"
            )


def _ambiguous(alphabet: Alphabet) -> NDArray[np.bool_]:
    """Which symbols of an alphabet are ambiguous, bool [symbols]."""
    return np.array([symbol not in STANDARD for symbol in alphabet.symbols])


@njit(cache=True, nogil=True)
def _survey(rows, is_ambiguous, occurs):  # type: ignore[no-untyped-def]
    """The most ambiguous symbols of any row, uint8 [rows, symbols]; sets which symbols occur, bool [256]."""
    most = 0
    for row in range(len(rows)):
        own = 0
        for symbol in rows[row]:
            own += is_ambiguous[symbol]
            occurs[symbol] = True
        most = max(most, own)
    return most


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
        model, codons = tables.model, alphabet.codons.astype(np.float64)
        v_steps = CodonSteps.of(codons, tables.vd, mirrored=False)
        j_steps = CodonSteps.of(codons, tables.dj, mirrored=True)
        return (
            _trees(tables.v, tables.vd, v_steps, model.v, alphabet, ambiguous),
            _trees(tables.j, tables.dj, j_steps, model.j, alphabet, ambiguous),
        )


def _trees(
    tries: Tries, chain: Chain, steps: CodonSteps, templates: tuple[Template, ...], alphabet: Alphabet,
    ambiguous: Ambiguous,
) -> SymbolTries:  # fmt: skip
    """The trees of one side."""
    allowed, is_ambiguous = ambiguous.among(alphabet)
    reach = max((len(own.extended) for own in templates), default=0)
    lengths = np.pad(chain.lengths, (0, 3))
    symbols, codons = len(alphabet.symbols), max(0, len(chain.lengths) // 3)
    arguments = (
        tries.root, tries.child, tries.alone, max(1, len(templates)), reach // 3 + 1, allowed, is_ambiguous,
        ambiguous.most, lengths, chain.first, steps.one, steps.two, steps.whole, steps.first_two, steps.first_whole,
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
    allowed, is_ambiguous, most_ambiguous, lengths, *steps,
):  # fmt: skip
    """Make the trees from `begin` (nodes, inner nodes, leaves) on; or only count, into the rows after the first."""
    symbols = len(allowed)
    for tree in prange(len(root)):
        # Of the text that is being made, after each of its symbols.
        paths = np.empty((most_depth + 2, most_paths), dtype=np.int32)
        count, inner, next_symbol, ambiguous = np.zeros((4, most_depth + 2), dtype=np.int64)
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
            ambiguous[depth + 1] = ambiguous[depth] + is_ambiguous[symbol]
            if not allowed[symbol] or ambiguous[depth + 1] > most_ambiguous:
                continue
            made, own = depth + 1, rows[depth + 1]
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
                ended[node] = own_ended
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
        builder = _FormBuilder(tables, alphabet, ambiguous)
        for cut, form in _cuts(tables.forms.child, 0):
            builder.add(0, form, cut, 0)
        found = np.array(builder.found, dtype=np.int64).reshape(-1, 2)
        keys, places = np.unique(found[:, 0], return_inverse=True)
        weight = np.zeros((len(keys), len(tables.weights)))
        np.add.at(weight, places, tables.weights[:, found[:, 1]].T)
        nodes, before, after = keys // CUTS**2, keys // CUTS % CUTS, keys % CUTS
        return FormTrie(
            child=np.array(builder.child, dtype=np.int32),
            first=np.searchsorted(nodes, np.arange(len(builder.child) + 1)).astype(np.int64),
            before=before.astype(np.uint8), after=after.astype(np.uint8), weight=np.ascontiguousarray(weight.T),
        )  # fmt: skip


def _cuts(child: NDArray[np.int32], form: int) -> Iterator[tuple[int, int]]:
    """(what `FormTrie` calls the bases, node) of a form with no, one and two bases more, as far as there are such."""
    yield 0, form
    for a in range(4):
        if (longer := int(child[form, a])) >= 0:
            yield 1 + a, longer
            for b in range(4):
                if (longest := int(child[longer, b])) >= 0:
                    yield 5 + 4 * a + b, longest


class _FormBuilder:
    """Nodes of a `FormTrie`, and the forms found: (CUTS^2 node + CUTS before + after, node of the form)."""

    def __init__(self, tables: Tables, alphabet: Alphabet, ambiguous: Ambiguous) -> None:
        self.forms = tables.forms.child
        self.used: NDArray[np.bool_] = np.asarray((tables.weights > 0).any(axis=0))
        self.ambiguous = ambiguous
        allowed, self.is_ambiguous = ambiguous.among(alphabet)
        self.symbols = [
            [int(s) for s in np.flatnonzero(codons & allowed)] for codons in alphabet.codons.reshape(-1, 64).T
        ]
        self.nothing = [-1] * len(alphabet.symbols)
        self.child = [list(self.nothing)]
        self.found: list[tuple[int, int]] = []

    def add(self, node: int, form: int, before: int, ambiguous: int) -> None:
        """Add the forms that have whole codons behind those of a node."""
        for codon, bases in enumerate(product(range(4), repeat=3)):
            longer = form
            for base in bases:
                longer = int(self.forms[longer, base]) if longer >= 0 else -1
            if longer < 0:
                continue
            for symbol in self.symbols[codon]:
                symbols = ambiguous + int(self.is_ambiguous[symbol])
                if symbols <= self.ambiguous.most:
                    self.add_codon(node, symbol, longer, before, symbols)

    def add_codon(self, node: int, symbol: int, form: int, before: int, ambiguous: int) -> None:
        """Add the forms that have a symbol behind those of a node."""
        following = self.child[node][symbol]
        if following < 0:
            following = self.child[node][symbol] = len(self.child)
            self.child.append(list(self.nothing))
        for after, longer in _cuts(self.forms, form):
            if self.used[longer]:
                self.found.append((CUTS * (CUTS * following + before) + after, longer))
        self.ambiguous.check(100 * len(self.found) + 8 * len(self.nothing) * len(self.child))
        self.add(following, form, before, ambiguous)
