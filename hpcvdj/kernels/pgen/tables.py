"""A recombination model as the kernels take it: sums over alleles and deletions, done once for each set of alleles.

The generation probability of a junction S of L bases is, for one **group** of alleles,

    sum over 1 <= q <= e <= L - 1 of Left(q) W(q, e) Right(e)

Left(q) is the weight of all V forms and VD insertions that end after q bases, Right(e) that of all DJ insertions and J
forms that begin there, and W(q, e) that of the D forms equal to S[q:e].  Within a group the three are independent, and
a junction's probability is the sum over the groups of its sets of V and J alleles.  P(D, J) couples D and J, so a group
is a J allele or a D gene, whichever gives fewer.  A joint P(V, D, J) couples all three: a group is then a V and a J
allele.  Without D genes, P(V, J) couples V and J: a group is then a J allele, W is 1 where q = e, and there is no
insertion before J.  Where P(V, J) of the V alleles is a product of something of V and something of J, as that of one
allele, or of the alleles of a gene, is, all J alleles have one tree of V, and the groups have what is of J as weights:
human TRA has 103 such trees, and 7,004 with a tree for each V and J.

Bases have the codes of `hpcvdj.recombination.alphabet`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.sums import mixed, summed
from hpcvdj.recombination.alphabet import BASES, encode
from hpcvdj.recombination.models import BASES as MODEL_BASES
from hpcvdj.recombination.models import Array, Insertion, Model, kept_with_model

ROW_BASES = 4
"""The D forms of up to this many bases are one row of a table, which the next bases of a junction choose."""

ROWS = 4**ROW_BASES

ROUNDING = 4 * np.finfo(np.float64).eps
"""Relative: P(V, J) that is so near to a product is taken for one, as rounding alone makes such differences."""

ORDER = [MODEL_BASES.index(base) for base in BASES]

Mask = tuple[int, ...]
"""Places of alleles in a model."""


class Chain(NamedTuple):
    """An insertion in our base codes.

    lengths  float64 [lags]: P(length)
    step     float64 [4, 4]: P(base `to` after base `from`) is step[from, to]
    first    float64 [4]: P(first base)
    """

    lengths: Array
    step: Array
    first: Array

    @staticmethod
    def of(insertion: Insertion) -> "Chain":
        """The chain of an insertion of a model."""
        step = insertion.transitions[np.ix_(ORDER, ORDER)].T
        return Chain(insertion.lengths, np.ascontiguousarray(step), insertion.first[ORDER])


NO_INSERTION = Chain(np.ones(1), np.full((4, 4), 0.25), np.full(4, 0.25))


def chains(model: Model) -> tuple[Chain, Chain]:
    """The insertions after V and before J; without D genes there is none before J."""
    vd, dj = [*map(Chain.of, model.insertions), NO_INSERTION][:2]
    return vd, dj


class Groups(NamedTuple):
    """The groups of each pair of sets of alleles.

    first    int64 [pairs + 1]: those of pair p are first[p] … first[p + 1] - 1
    v, j, d  int64 [groups]: roots of the trees of V and of J, and table of D forms
    weight   float64 [groups]: what the sum of a group is multiplied with
    """

    first: NDArray[np.int64]
    v: NDArray[np.int64]
    j: NDArray[np.int64]
    d: NDArray[np.int64]
    weight: Array

    @staticmethod
    def of(sizes: Sequence[int], v: Any, j: Any, d: Any, weight: Any = None) -> "Groups":
        """The groups, of which each pair has as many as `sizes` says; their weight is 1 if none is given."""
        first = np.concatenate(([0], np.cumsum(sizes)))
        weights = np.ones(len(v)) if weight is None else np.array(weight, dtype=np.float64)
        first, v, j, d = (np.array(values, dtype=np.int64) for values in (first, v, j, d))
        return Groups(first, v, j, d, weights)


class TextTree:
    """Prefix trees of texts in base codes.

    child  [nodes]: the next node by base; -1 where there is none
    """

    def __init__(self) -> None:
        self.child: list[list[int]] = []

    def root(self) -> int:
        """The node of another tree's empty text."""
        self.child.append([-1] * 4)
        return len(self.child) - 1

    def path(self, node: int, codes: Sequence[int]) -> list[int]:
        """The nodes after each base of a text that begins at a node; those that there are not yet are made."""
        nodes = []
        for base in codes:
            if self.child[node][base] < 0:
                self.child[node][base] = self.root()
            node = self.child[node][base]
            nodes.append(node)
        return nodes

    def links(self) -> NDArray[np.int32]:
        """`child` as an array."""
        return np.array(self.child, dtype=np.int32).reshape(-1, 4)


class Tries(NamedTuple):
    """Prefix trees of weighted texts, in one array of nodes.

    root    int64 [trees]
    child   int32 [nodes, 4]: the next node by base; -1 where there is none
    alone   float64 [nodes]: weight of the texts' prefixes that end at the node
    ended   float64 [nodes]: the same with the insertions that end there
    beyond  float64 [nodes, lags]: weight of insertions that began within the node's text and go on for `lag` bases
            after it, without the probabilities of these bases and of the first step out of the text
    """

    root: NDArray[np.int64]
    child: NDArray[np.int32]
    alone: Array
    ended: Array
    beyond: Array


@njit(cache=True, nogil=True)
def _fill_beyond(child, alone, lengths, step, first, begun, beyond):  # type: ignore[no-untyped-def]
    """Set `Tries.beyond` of each version of a tree, [versions, nodes, lags].

    alone  float64 [versions, nodes]
    begun  [versions, nodes, bases + 1], scratch: an insertion that began after so many bases of the node's text and has
           come to its end
    """
    # Nodes come after their parents.
    depths, last = np.zeros((2, len(child)), dtype=np.int64)
    for parent in range(len(child)):
        for base in range(4):
            node = child[parent, base]
            if node < 0:
                continue
            depth = depths[parent] + 1
            depths[node], last[node] = depth, base
            for version in range(len(alone) if parent else 0):
                for p in range(1, depth - 1):
                    begun[version, node, p] = begun[version, parent, p] * step[last[parent], base]
                begun[version, node, depth - 1] = alone[version, parent] * first[base]
                for p in range(max(1, depth - len(lengths) + 1), depth):
                    for lag in range(len(lengths) - (depth - p)):
                        beyond[version, node, lag] += begun[version, node, p] * lengths[depth - p + lag]


def _joined(trees: Sequence["_Grown"], chain: Chain) -> tuple[Tries, list[int]]:
    """All versions of all trees one after another, and the number of versions before each tree."""
    roots, first, before = [], 0, [0]
    # Sets without alleles have no versions.
    child, alone, beyond = [np.zeros((0, 4), np.int32)], [np.zeros(0)], [np.zeros((0, len(chain.lengths)))]
    for tree in trees:
        for itself, far in zip(tree.alone, tree.beyond, strict=True):
            roots.append(first)
            child.append(np.where(tree.links >= 0, tree.links + first, -1))
            alone.append(itself)
            beyond.append(far)
            first += len(tree.links)
        before.append(len(roots))
    weights, far = np.concatenate(alone), np.concatenate(beyond)
    ended = weights * chain.lengths[0] + far[:, 0]
    return Tries(np.array(roots, dtype=np.int64), np.concatenate(child).astype(np.int32), weights, ended, far), before


class _Grown(NamedTuple):
    """A tree with all its texts.

    links   int32 [nodes, 4]: as of `Tries.child`
    alone   float64 [versions, nodes]
    beyond  float64 [versions, nodes, lags]
    """

    links: NDArray[np.int32]
    alone: Array
    beyond: Array


def _prefix_weights(length: int, deletions: Array) -> Array:
    """float64 [length]: P(1, 2, … bases are kept); V and J keep at least one."""
    kept = np.zeros(length)
    most = min(length, len(deletions))
    kept[length - most :] = deletions[:most][::-1]
    return kept


class DEntries(NamedTuple):
    """All deletions of D genes, by the D form that they leave.

    child     int32 [nodes, 4]: the prefix tree of the forms; node 0 is the empty form
    node      int64 [entries]: the node of an entry's form
    gene      int64 [entries]: its place in D
    deletion  int64 [entries]: the place of its probability in the flat array of deletions
    """

    child: NDArray[np.int32]
    node: NDArray[np.int64]
    gene: NDArray[np.int64]
    deletion: NDArray[np.int64]

    @staticmethod
    def of(model: Model) -> "DEntries":
        """The entries of a model; none without D genes."""
        tree = TextTree()
        entries: list[tuple[int, int, int]] = []
        root = tree.root()
        _, lefts, rights = model.d_deletions.shape
        for gene, template in enumerate(model.d):
            codes = encode(template.extended).tolist()
            for left in range(min(len(codes) + 1, lefts)):
                for kept, node in enumerate([root, *tree.path(root, codes[left:])]):
                    right = len(codes) - left - kept
                    if right < rights:
                        entries.append((node, gene, (gene * lefts + left) * rights + right))
        return DEntries(tree.links(), *columns(entries, 3))

    def weights(self, model: Model) -> Array:
        """float64 [D, nodes]: P(the deletions that leave the form | D); without D genes, 1 for the empty form."""
        if not model.has_d:
            return np.ones((1, 1))
        genes, nodes = len(model.d), len(self.child)
        chances = model.d_deletions.reshape(-1)[self.deletion]
        return summed(self.gene * nodes + self.node, chances, genes * nodes).reshape(genes, nodes)


def columns(rows: Sequence[Sequence[int]], width: int) -> list[NDArray[np.int64]]:
    """The columns of a table of so many."""
    return [np.ascontiguousarray(column) for column in np.array(rows, dtype=np.int64).reshape(-1, width).T]


class DForms(NamedTuple):
    """Every distinct D form once, against bases.

    child    int32 [nodes, 4]: their prefix tree; node 0 is the empty form
    weights  float64 [tables, nodes]
    rows     float64 [tables, ROWS, ROW_BASES]: the weights of the forms of 1 … ROW_BASES bases with which a text of
             ROW_BASES bases begins (its first base in the highest bits)
    longer   int32 [4 * ROWS]: the node of a text of one base more, -1 where no form begins with it
    """

    child: NDArray[np.int32]
    weights: Array
    rows: Array
    longer: NDArray[np.int32]

    @staticmethod
    def of(model: Model, d_chance: Array) -> "DForms":
        """The D forms of a model; `d_chance` is the probability of each D gene in each table."""
        child, of_d, nodes, longer = _d_forms(model)
        weights = mixed(d_chance, of_d)
        rows = np.ascontiguousarray(np.where(nodes >= 0, weights[:, nodes], 0.0))
        return DForms(child, weights, rows, longer)

    def of_length(self, length: int) -> Array:
        """float64 [tables, 4, 4, …]: the weight of each text of `length` bases."""
        found = np.zeros((len(self.weights), *(4,) * length))
        for codes in np.ndindex(*(4,) * length):
            node = _node(self.child, codes)
            if node >= 0:
                found[:, *codes] = self.weights[:, node]
        return found


def _node(child: NDArray[np.int32], codes: Sequence[int]) -> int:
    """The node of a text; -1 if it is no D form, nor the beginning of one."""
    node = 0
    for base in codes:
        node = int(child[node, base]) if node >= 0 else -1
    return node


@kept_with_model
def _d_forms(model: Model) -> tuple[NDArray[np.int32], Array, NDArray[np.int64], NDArray[np.int32]]:
    """What `DForms` of any table have: `child`, their weights [D, nodes], the nodes [ROWS, ROW_BASES], and `longer`."""
    entries = DEntries.of(model)
    rows = list(np.ndindex(*(4,) * ROW_BASES))
    nodes = [[_node(entries.child, codes[:length]) for length in range(1, ROW_BASES + 1)] for codes in rows]
    longer = [_node(entries.child, codes) for codes in np.ndindex(*(4,) * (ROW_BASES + 1))]
    return entries.child, entries.weights(model), np.array(nodes), np.array(longer, dtype=np.int32)


@dataclass(frozen=True)
class Tables:
    """What the kernels need of a model for some (V alleles, J alleles).

    groups  of each pair; roots in `v` and `j`
    v, j    their tries; J's read from its end
    vd, dj  the insertions after V and before J
    forms   the D forms
    """

    model: Model
    groups: Groups
    v: Tries
    j: Tries
    vd: Chain
    dj: Chain
    forms: DForms

    @staticmethod
    def of(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> "Tables":
        """The tables of a model for pairs of sets of V and J alleles."""
        if not model.has_d:
            return _without_d(model, pairs)
        return _joint(model, pairs) if model.joint else _with_d(model, pairs)


def _tree(model: Model, segment: str, mask: Mask, factors: Array) -> _Grown:
    """The prefixes of the V alleles, or the suffixes of the J alleles, of a mask; `factors` is [versions, alleles]."""
    return _grown(model, segment, mask, len(factors), factors.astype(np.float64).tobytes())


@kept_with_model
def _grown(model: Model, segment: str, mask: Mask, versions: int, factors: bytes) -> _Grown:
    """`_tree`, with the factors as bytes."""
    tree, texts, (vd, dj) = TextTree(), [], chains(model)
    root = tree.root()
    sides = {"V": (model.v, model.v_deletions, vd), "J": (model.j, model.j_deletions, dj)}
    templates, deletions, chain = sides[segment]
    of_alleles = np.frombuffer(factors).reshape(versions, len(mask)).T
    for place, factor in zip(mask, of_alleles, strict=True):
        codes = encode(templates[place].extended)
        nodes = tree.path(root, (codes if segment == "V" else codes[::-1]).tolist())
        texts.append((nodes, factor[:, None] * _prefix_weights(len(codes), deletions[place])))
    links, alone = tree.links(), np.zeros((versions, len(tree.child)))
    for nodes, weights in texts:
        # No node is there twice.
        alone[:, nodes] += weights
    begun = np.zeros((*alone.shape, 1 + max((len(nodes) for nodes, _ in texts), default=0)))
    beyond = np.zeros((*alone.shape, len(chain.lengths)))
    _fill_beyond(links, alone, *map(np.ascontiguousarray, chain), begun, beyond)
    return _Grown(links, alone, beyond)


def _with_d(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> Tables:
    vd, dj = chains(model)
    v_masks = list(dict.fromkeys(v for v, _ in pairs))
    j_masks = list(dict.fromkeys(j for _, j in pairs))
    v, _ = _joined([_tree(model, "V", mask, model.p_v[None, list(mask)]) for mask in v_masks], vd)
    trees, chances = [], []
    for mask in j_masks:
        p_dj = model.p_dj[:, list(mask)]
        by_allele = len(mask) <= len(model.d)
        # A group is a J allele, with the D genes that it takes; or a D gene, with the J alleles that take it.
        trees.append(_tree(model, "J", mask, np.eye(len(mask)) if by_allele else p_dj))
        chances.append(p_dj.T if by_allele else np.eye(len(model.d)))
    j, first = _joined(trees, dj)
    chances.append(np.zeros((0, len(model.d))))
    d_chance, table = np.unique(np.concatenate(chances), axis=0, return_inverse=True)
    table = table.reshape(-1)
    groups = [range(first[place], first[place + 1]) for place in map(j_masks.index, (j for _, j in pairs))]
    group_v = [v.root[v_masks.index(mask)] for (mask, _), members in zip(pairs, groups, strict=True) for _ in members]
    chosen = [group for members in groups for group in members]
    of_pairs = Groups.of([*map(len, groups)], group_v, j.root[chosen], table[chosen])
    return Tables(model, of_pairs, v, j, vd, dj, DForms.of(model, d_chance))


def _joint(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> Tables:
    vd, dj = chains(model)
    chances = model.p_choice
    trees: list[tuple[Tries, dict[int, int]]] = []
    for segment, chain, side in (("V", vd, 0), ("J", dj, 1)):
        alleles = sorted({place for pair in pairs for place in pair[side]})
        tries, _ = _joined([_tree(model, segment, (place,), np.ones((1, 1))) for place in alleles], chain)
        trees.append((tries, dict(zip(alleles, tries.root.tolist(), strict=True))))
    (v, root_v), (j, root_j) = trees
    used = [[(a, b) for a in v_mask for b in j_mask if chances[a, :, b].any()] for v_mask, j_mask in pairs]
    groups = [group for members in used for group in members]
    # Without a group there is still a table.
    rows = np.array([np.zeros(len(model.d)), *(chances[a, :, b] for a, b in groups)])
    d_chance, table = np.unique(rows, axis=0, return_inverse=True)
    of_groups = [root_v[a] for a, _ in groups], [root_j[b] for _, b in groups], table.reshape(-1)[1:]
    return Tables(model, Groups.of([*map(len, used)], *of_groups), v, j, vd, dj, DForms.of(model, d_chance))


def _without_d(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> Tables:
    vd, dj = chains(model)
    v_masks = {mask: number for number, mask in enumerate(dict.fromkeys(v for v, _ in pairs))}
    alleles = sorted({place for _, mask in pairs for place in mask})
    # Of all J alleles, so that a pair has the same numbers to the bit whatever other pairs there are.
    parts = [_factors(model.p_vj[[*mask]]) for mask in v_masks]
    parts = [(of_v if len(of_v) == 1 else of_v[alleles], of_j) for of_v, of_j in parts]
    v, first = _joined([_tree(model, "V", mask, of_v) for mask, (of_v, _) in zip(v_masks, parts, strict=True)], vd)
    j, _ = _joined([_tree(model, "J", (place,), np.ones((1, 1))) for place in alleles], dj)
    sizes, groups = [], []
    for v_mask, j_mask in pairs:
        number = v_masks[v_mask]
        of_v, of_j = parts[number]
        used = [allele for allele in j_mask if of_j[allele]]
        sizes.append(len(used))
        for allele in used:
            place = alleles.index(allele)
            groups.append((first[number] + (place if len(of_v) > 1 else 0), place, of_j[allele]))
    trees_v, trees_j, weights = zip(*groups, strict=True) if groups else ((), (), ())
    of_pairs = Groups.of(sizes, v.root[list(trees_v)], j.root[list(trees_j)], [0] * len(groups), weights)
    return Tables(model, of_pairs, v, j, vd, dj, DForms.of(model, np.ones((1, 1))))


def _factors(p_vj: Array) -> tuple[Array, Array]:
    """What the V alleles of each tree are multiplied with, [trees, V], and the groups of each J allele, [J].

    One tree serves all J alleles if P(V, J) is a product, up to rounding; else each has its own.

    >>> of_v, of_j = _factors(np.array([[0.25, 0.5], [0.0, 0.0]]))
    >>> of_v.tolist(), of_j.tolist()
    ([[1.0, 0.0]], [0.25, 0.5])
    """
    of_v, of_j = p_vj[:, p_vj.sum(axis=0).argmax()] if p_vj.size else p_vj.sum(axis=1), p_vj.sum(axis=0)
    of_v = of_v / max(of_v.sum(), np.finfo(np.float64).tiny)
    if np.allclose(np.outer(of_v, of_j), p_vj, rtol=ROUNDING, atol=0.0):
        return of_v[None], of_j
    return p_vj.T, np.where(p_vj.any(axis=0), 1.0, 0.0)
