"""A recombination model as the kernels take it: sums over alleles and deletions, done once for each set of alleles.

The generation probability of a junction S of L bases is, for one **group** of alleles,

    sum over 1 <= q <= e <= L - 1 of Left(q) W(q, e) Right(e)

Left(q) is the weight of all V forms and VD insertions that end after q bases, Right(e) that of all DJ insertions and J
forms that begin there, and W(q, e) that of the D forms equal to S[q:e].  Within a group the three are independent, and
a junction's probability is the sum over the groups of its sets of V and J alleles.  P(D, J) couples D and J, so a group
is a J allele or a D gene, whichever gives fewer.  A joint P(V, D, J) couples all three: a group is then a V and a J
allele.  Without D genes, P(V, J) couples V and J: a group is then a J allele, W is 1 where q = e, and there is no
insertion before J.

Bases have the codes of `hpcvdj.recombination.alphabet`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.recombination.alphabet import BASES, encode
from hpcvdj.recombination.models import Array, Insertion, Model
from hpcvdj.recombination.scenarios import BASES as MODEL_BASES

ROW_BASES = 4
"""The D forms of up to this many bases are one row of a table, which the next bases of a junction choose."""

ROWS = 4**ROW_BASES

ORDER = [MODEL_BASES.index(base) for base in BASES]

Mask = tuple[int, ...]
"""Places of alleles in a model."""


@dataclass(frozen=True)
class Chain:
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


@dataclass(frozen=True)
class Tries:
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


class _Tree:
    """One prefix tree; `add` texts with the weight of each prefix, in several versions."""

    def __init__(self, versions: int) -> None:
        self.child = [[-1] * 4]
        self.parent, self.depth, self.base = [0], [0], [0]
        self.alone = [np.zeros(versions)]

    def add(self, codes: NDArray[np.uint8], weights: Array) -> None:
        """weights  float64 [versions, len(codes) + 1]"""
        node = 0
        for depth, base in enumerate(codes.tolist(), 1):
            if self.child[node][base] < 0:
                self.child[node][base] = len(self.child)
                self.child.append([-1] * 4)
                self.parent.append(node)
                self.depth.append(depth)
                self.base.append(base)
                self.alone.append(np.zeros(len(weights)))
            node = self.child[node][base]
            self.alone[node] = self.alone[node] + weights[:, depth]

    def beyond(self, chain: Chain) -> Array:
        """`Tries.beyond` of each version, [versions, nodes, lags]."""
        lags, nodes = len(chain.lengths), len(self.child)
        versions = len(self.alone[0])
        # begun[node][:, p]: an insertion that began after p bases of the node's text and has come to its end.
        begun = np.zeros((nodes, versions, max(self.depth) + 1))
        beyond = np.zeros((versions, nodes, lags))
        for node in range(1, nodes):
            parent, base, depth = self.parent[node], self.base[node], self.depth[node]
            if parent:
                begun[node] = begun[parent] * chain.step[self.base[parent], base]
                begun[node][:, depth - 1] = self.alone[parent] * chain.first[base]
            for p in range(max(1, depth - lags + 1), depth):
                rest = lags - (depth - p)
                beyond[:, node, :rest] += begun[node][:, p, None] * chain.lengths[depth - p :]
        return beyond


def _joined(trees: Sequence[_Tree], chain: Chain) -> tuple[Tries, list[int]]:
    """All versions of all trees one after another, and the number of versions before each tree."""
    roots, first, before = [], 0, [0]
    # Sets without alleles have no versions.
    child, alone, beyond = [np.zeros((0, 4), np.int32)], [np.zeros(0)], [np.zeros((0, len(chain.lengths)))]
    for tree in trees:
        links, own, far = np.array(tree.child, dtype=np.int32), np.array(tree.alone).T, tree.beyond(chain)
        for version in range(len(own)):
            roots.append(first)
            child.append(np.where(links >= 0, links + first, -1))
            alone.append(own[version])
            beyond.append(far[version])
            first += len(links)
        before.append(len(roots))
    weights, far = np.concatenate(alone), np.concatenate(beyond)
    ended = weights * chain.lengths[0] + far[:, 0]
    return Tries(np.array(roots, dtype=np.int64), np.concatenate(child).astype(np.int32), weights, ended, far), before


def _prefix_weights(length: int, deletions: Array) -> Array:
    """float64 [length + 1]: P(that many bases are kept); V and J keep at least one."""
    kept = np.zeros(length + 1)
    most = min(length, len(deletions))
    kept[length - most + 1 :] = deletions[:most][::-1]
    kept[0] = 0.0
    return kept


@dataclass(frozen=True)
class DForms:
    """Every distinct D form once, as a prefix tree; node 0 is the empty form.

    child    int32 [nodes, 4]
    weight   float64 [D, nodes]: P(the deletions that leave the form | D), summed over its places in D
    """

    child: NDArray[np.int32]
    weight: Array

    @staticmethod
    def of(model: Model) -> "DForms":
        """The D forms of a model; without D genes, the empty form with weight 1."""
        if not model.has_d:
            return DForms(np.full((1, 4), -1, dtype=np.int32), np.ones((1, 1)))
        child, weight = [[-1] * 4], [np.zeros(len(model.d))]
        lefts, rights = model.d_deletions.shape[1:]
        for place, template in enumerate(model.d):
            codes = encode(template.extended).tolist()
            length = len(codes)
            for left in range(min(length + 1, lefts)):
                node = 0
                for end in range(left, length + 1):
                    if end > left:
                        base = codes[end - 1]
                        if child[node][base] < 0:
                            child[node][base] = len(child)
                            child.append([-1] * 4)
                            weight.append(np.zeros(len(model.d)))
                        node = child[node][base]
                    if length - end < rights:
                        weight[node][place] += model.d_deletions[place, left, length - end]
        return DForms(np.array(child, dtype=np.int32), np.array(weight).T.copy())

    def node(self, codes: Sequence[int]) -> int:
        """The node of a text; -1 if it is no D form, nor the beginning of one."""
        node = 0
        for base in codes:
            node = int(self.child[node, base]) if node >= 0 else -1
        return node

    def of_length(self, length: int, weights: Array) -> Array:
        """float64 [tables, 4, 4, …]: the weight of each text of `length` bases; `weights` is [tables, nodes]."""
        texts = np.ndindex(*(4,) * length)
        found = np.zeros((len(weights), *(4,) * length))
        for codes in texts:
            node = self.node(codes)
            if node >= 0:
                found[:, *codes] = weights[:, node]
        return found


@dataclass(frozen=True)
class Tables:
    """What the kernels need of a model for some (V alleles, J alleles).

    v, j         their tries; J's read from its end
    vd, dj       the insertions after V and before J
    forms        the D forms; weights float64 [tables, nodes], rows float64 [tables, ROWS, ROW_BASES]: the weights of
                 the forms of 1 … ROW_BASES bases with which a text of ROW_BASES bases begins (its first base in the
                 highest bits), and longer int32 [4 * ROWS]: the node of a text of one base more, -1 where no form
                 begins with it
    d_chance     float64 [tables, D]: the probabilities of the D genes in a table
    first_group  int64 [pairs + 1]: the groups of each pair
    group_v, group_j, group_d   int64 [groups]: roots in `v` and `j`, and table of D forms
    """

    model: Model
    v: Tries
    j: Tries
    vd: Chain
    dj: Chain
    forms: DForms
    weights: Array
    rows: Array
    longer: NDArray[np.int32]
    d_chance: Array
    first_group: NDArray[np.int64]
    group_v: NDArray[np.int64]
    group_j: NDArray[np.int64]
    group_d: NDArray[np.int64]

    @staticmethod
    def of(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> "Tables":
        """The tables of a model for pairs of sets of V and J alleles."""
        if not model.has_d:
            return _without_d(model, pairs)
        return _joint(model, pairs) if model.joint else _with_d(model, pairs)


def _tree(model: Model, segment: str, mask: Mask, factors: Array) -> _Tree:
    """The prefixes of the V alleles, or the suffixes of the J alleles, of a mask; `factors` is [versions, alleles]."""
    tree = _Tree(len(factors))
    templates, deletions = (model.v, model.v_deletions) if segment == "V" else (model.j, model.j_deletions)
    for place, factor in zip(mask, factors.T, strict=True):
        codes = encode(templates[place].extended)
        kept = _prefix_weights(len(codes), deletions[place])
        tree.add(codes if segment == "V" else codes[::-1], factor[:, None] * kept)
    return tree


def _with_d(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> Tables:
    vd, dj = map(Chain.of, model.insertions)
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
    group_v = [v.root[v_masks.index(mask)] for (mask, _), own in zip(pairs, groups, strict=True) for _ in own]
    chosen = [group for own in groups for group in own]
    return _tables(model, (v, j, vd, dj), d_chance, list(map(len, groups)), (group_v, j.root[chosen], table[chosen]))


def _joint(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> Tables:
    vd, dj = map(Chain.of, model.insertions)
    chances = model.p_choice
    trees: list[tuple[Tries, dict[int, int]]] = []
    for segment, chain, side in (("V", vd, 0), ("J", dj, 1)):
        alleles = sorted({place for pair in pairs for place in pair[side]})
        tries, _ = _joined([_tree(model, segment, (place,), np.ones((1, 1))) for place in alleles], chain)
        trees.append((tries, dict(zip(alleles, tries.root.tolist(), strict=True))))
    (v, root_v), (j, root_j) = trees
    used = [[(a, b) for a in v_mask for b in j_mask if chances[a, :, b].any()] for v_mask, j_mask in pairs]
    groups = [group for own in used for group in own]
    # Without a group there is still a table.
    rows = np.array([np.zeros(len(model.d)), *(chances[a, :, b] for a, b in groups)])
    d_chance, table = np.unique(rows, axis=0, return_inverse=True)
    roots = [root_v[a] for a, _ in groups], [root_j[b] for _, b in groups], table.reshape(-1)[1:]
    return _tables(model, (v, j, vd, dj), d_chance, list(map(len, used)), roots)


def _without_d(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> Tables:
    vd = Chain.of(model.insertions[0])
    v_masks = list(dict.fromkeys(v for v, _ in pairs))
    alleles = sorted({place for _, mask in pairs for place in mask})
    v, first = _joined([_tree(model, "V", mask, model.p_vj[np.ix_(mask, alleles)].T) for mask in v_masks], vd)
    j, _ = _joined([_tree(model, "J", (place,), np.ones((1, 1))) for place in alleles], NO_INSERTION)
    sizes, group_v, group_j = [], [], []
    for v_mask, j_mask in pairs:
        of_v = first[v_masks.index(v_mask)]
        used = [alleles.index(place) for place in j_mask if model.p_vj[list(v_mask), place].any()]
        sizes.append(len(used))
        group_v += [v.root[of_v + place] for place in used]
        group_j += [j.root[place] for place in used]
    table = np.zeros(len(group_v), dtype=np.int64)
    return _tables(model, (v, j, vd, NO_INSERTION), np.ones((1, 1)), sizes, (group_v, group_j, table))


def _tables(
    model: Model,
    sides: tuple[Tries, Tries, Chain, Chain],
    d_chance: Array,
    sizes: Sequence[int],
    groups: tuple[Any, Any, Any],
) -> Tables:
    """The tables of `groups`, of which each pair has as many as `sizes` says."""
    forms = DForms.of(model)
    weights = d_chance @ forms.weight
    rows = np.zeros((len(weights), ROWS, ROW_BASES))
    for row, codes in enumerate(np.ndindex(*(4,) * ROW_BASES)):
        for length in range(1, ROW_BASES + 1):
            node = forms.node(codes[:length])
            if node >= 0:
                rows[:, row, length - 1] = weights[:, node]
    longer = np.array([forms.node(codes) for codes in np.ndindex(*(4,) * (ROW_BASES + 1))], dtype=np.int32)
    first_group = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    of_groups = (np.array(values, dtype=np.int64) for values in groups)
    return Tables(model, *sides, forms, weights, rows, longer, d_chance, first_group, *of_groups)
