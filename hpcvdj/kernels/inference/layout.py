"""Where the expected counts of a model's parameters are collected, and how they become those of the parameters.

For a parameter t of the model, the expected number of times that it took part in making the junctions S is

    sum over S of t · d log Pgen(S) / d t

Kernels collect it by the nodes of prefix trees, as generation probabilities are computed by them: the weight of a node
is the sum over its **entries**, each a product of the probability of an allele and that of a deletion.  What a node
collects is the posterior probability that a junction's V, D or J form is the node's, so that it is divided among the
entries by their weights, once for all junctions.

Counts are integers: multiples of `1 / unit_of(rows)`.  Their sums do not depend on an order, so a model that is
inferred is the same for any number of threads and ranks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.pgen.tables import ORDER, Chain, DEntries, Groups, Mask, TextTree, chains, columns
from hpcvdj.kernels.sums import mixed, summed
from hpcvdj.recombination.alphabet import encode
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import Array, Model

Ints = NDArray[np.int64]

MOST_BITS = 62
"""Sums stay below 2^62."""

ROW_BITS = 7
"""At most 2^7 of an event are in a junction: bases of an insertion."""

LOG_BITS = 10
"""Logarithms of probabilities are above -2^10."""

ONE, NONE = -1, -2
"""In place of a choice's place: what is always taken, and what never is."""

LEAST = 1e-100
"""A probability below it, 0 among them, counts as this one in log-likelihoods, and the row is lost: nothing is counted.

Of a junction, 4^-128 is 1e-77."""


@dataclass(frozen=True)
class TreeSide:
    """The prefix trees of the V side, or of the J side with all texts reversed.

    child     int32 [nodes, 4]
    node      int64 [entries]: a form's node
    choice    int64 [entries]: place of the probability of its allele in the flat array of choices; ONE for 1
    deletion  int64 [entries]: place of the probability of its deletion in the flat array of deletions
    """

    child: NDArray[np.int32]
    node: Ints
    choice: Ints
    deletion: Ints

    def entry_weights(self, choices: Array, deletions: Array) -> Array:
        """The weight of each entry, float64 [entries]."""
        return np.asarray(_chosen(choices, self.choice) * deletions.reshape(-1)[self.deletion])

    def node_weights(self, choices: Array, deletions: Array) -> Array:
        """The weight of each node, float64 [nodes]."""
        return summed(self.node, self.entry_weights(choices, deletions), len(self.child))

    def spread(self, counts: Array, choices: Array, deletions: Array) -> tuple[Array, Array]:
        """The counts of nodes as those of the choices and of the deletions, in the shapes of their arrays."""
        weights = self.entry_weights(choices, deletions)
        of_node = summed(self.node, weights, len(self.child))
        shares = weights * _ratio(counts, of_node)[self.node]
        of_deletions = summed(self.deletion, shares, deletions.size)
        return _of_choices(self.choice, shares, choices), of_deletions.reshape(deletions.shape)


def _chosen(choices: Array, choice: Ints) -> Array:
    """The probabilities at places in the flat array of choices; 1 for ONE, 0 for NONE."""
    return np.asarray(np.append(choices, (0.0, 1.0))[choice])


def _of_choices(choice: Ints, shares: Array, choices: Array) -> Array:
    """The sums of the shares of each choice, in the shape of `choices`."""
    added = summed(choice.reshape(-1) - NONE, shares.reshape(-1), choices.size - NONE)
    return added[-NONE:].reshape(choices.shape)


def _ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0)


class _SideBuilder(TextTree):
    """Makes a `TreeSide`."""

    def __init__(self, model: Model, segment: SegmentType) -> None:
        super().__init__()
        self._segment, self._templates = segment, model.templates(segment)
        self._columns = (model.v_deletions if segment == "V" else model.j_deletions).shape[1]
        self._entries: list[tuple[int, int, int]] = []
        self._roots: dict[Any, int] = {}

    def root_of(self, key: Any, alleles: Sequence[tuple[int, int]]) -> int:
        """The root of the tree of some (allele, place of its choice or ONE); made if there is none of that key yet."""
        if key not in self._roots:
            self._roots[key] = root = self.root()
            for allele, choice in alleles:
                self._add(root, allele, choice)
        return self._roots[key]

    def _add(self, root: int, allele: int, choice: int) -> None:
        codes = encode(self._templates[allele].extended).tolist()
        for kept, node in enumerate(self.path(root, codes if self._segment == "V" else codes[::-1]), 1):
            if len(codes) - kept < self._columns:
                self._entries.append((node, choice, allele * self._columns + len(codes) - kept))

    def side(self) -> TreeSide:
        return TreeSide(self.links(), *columns(self._entries, 3))


class Trees(NamedTuple):
    """The prefix trees of V, of J reversed, and of the D forms: int32 [nodes, 4]."""

    v: NDArray[np.int32]
    j: NDArray[np.int32]
    d: NDArray[np.int32]


class NodeWeights(NamedTuple):
    """The weights of the nodes: float64 [nodes] of V and of J, and [tables, nodes] of the D forms."""

    v: Array
    j: Array
    d: Array


class Counts(NamedTuple):
    """What is counted, in this order: how much there is of each, or where it begins.

    Nodes of V and of J, D forms in each table; of both insertions lengths, first bases and pairs of bases, without
    anything between them; log-likelihoods of rows that are counted and of those held out, and how many are lost.  With
    sequencing errors, the first are those of `errors_layout.Weights` instead, and there are misread bases.
    """

    v_choice: int
    j_choice: int
    v: int
    j: int
    d: int
    vd_lengths: int
    dj_lengths: int
    vd_first: int
    dj_first: int
    vd_steps: int
    dj_steps: int
    misread: int
    logs: int
    lost: int


OF_INSERTIONS = {"vd_first": 4, "dj_first": 4, "vd_steps": 16, "dj_steps": 16, "logs": 2, "lost": 2}
"""How many counts there are of what is the same in every layout."""


def begins(sizes: Counts) -> Counts:
    """Where each part of counts of these sizes begins."""
    return Counts(*map(int, np.cumsum(sizes) - sizes))


def named_parts(counts: NDArray[np.int64], sizes: Counts) -> dict[str, NDArray[np.int64]]:
    """The parts of the counts by name."""
    return dict(zip(sizes._fields, np.split(counts, np.cumsum(sizes)[:-1]), strict=True))


@dataclass(frozen=True)
class Expected:
    """Expected numbers of events, in the shapes of the model's arrays and the order of its bases.

    choices      of V of a locus with D genes, else of V and J
    dj           of D and J, [D, J]; empty without D genes
    v, j, d      of deletions
    lengths      of the lengths of each insertion
    first        of its first base, [4]
    transitions  of the base `to` after the base `from`, [to, from]
    log_likelihood, lost             of the rows that were counted, and those with probability 0; as `LEAST`
    held_log_likelihood, held_lost   of the other rows
    errors       template bases that are misread, and that are not, [2]; zeros if errors are not taken into account
    """

    choices: Array
    dj: Array
    v: Array
    j: Array
    d: Array
    lengths: tuple[Array, ...]
    first: tuple[Array, ...]
    transitions: tuple[Array, ...]
    log_likelihood: float
    lost: int
    held_log_likelihood: float
    held_lost: int
    errors: Array = field(default_factory=lambda: np.zeros(2))


@dataclass(frozen=True)
class Layout:
    """What does not change while a model is inferred: trees, groups and where counts go.

    A group is a set of V alleles with a J allele or a D gene, as of `hpcvdj.kernels.pgen.tables`.

    v, j, d      the sides, and the D forms
    table_choice int64 [tables, D]: places of the D genes' probabilities in the flat array of P(D, J), or ONE; NONE for
                 genes that the table does not have
    groups       of each pair
    depth        the most bases that a tree has
    lags         lengths of insertions, after V and before J
    """

    v: TreeSide
    j: TreeSide
    d: DEntries
    table_choice: Ints
    groups: Groups
    depth: int
    lags: tuple[int, int]

    @staticmethod
    def of(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> "Layout":
        """The layout for pairs of sets of V and J alleles."""
        v, j = _SideBuilder(model, "V"), _SideBuilder(model, "J")
        tables: dict[tuple[str, int], int] = {}
        groups: list[tuple[int, int, int]] = []
        sizes = []
        alleles, genes = len(model.j), max(1, len(model.d))
        for v_mask, j_mask in pairs:
            # A group is a J allele, or a D gene; without D genes, V has a tree for each J allele.
            by_allele = not model.has_d or len(j_mask) <= genes
            members = j_mask if by_allele else range(genes)
            for place in members if v_mask else ():
                if model.has_d:
                    v_root = v.root_of(v_mask, [(a, a) for a in v_mask])
                else:
                    v_root = v.root_of((v_mask, place), [(a, a * alleles + place) for a in v_mask])
                if by_allele:
                    j_root = j.root_of(place, [(place, ONE)])
                else:
                    j_root = j.root_of((j_mask, place), [(b, place * alleles + b) for b in j_mask])
                key = ("J" if by_allele else "D", place) if model.has_d else ("D", 0)
                groups.append((v_root, j_root, tables.setdefault(key, len(tables))))
            sizes.append(len(members) if v_mask else 0)
        table_choice = np.full((len(tables), genes), NONE, dtype=np.int64)
        for (kind, place), table in tables.items():
            if kind == "J":
                table_choice[table] = np.arange(genes) * alleles + place
            else:
                table_choice[table, place] = ONE
        depth = max(len(template.extended) for template in (*model.v, *model.j))
        vd, dj = (len(chain.lengths) for chain in chains(model))
        return Layout(
            v.side(), j.side(), DEntries.of(model), table_choice, Groups.of(sizes, *columns(groups, 3)), depth,
            (vd, dj),
        )  # fmt: skip

    @property
    def trees(self) -> Trees:
        """All trees."""
        return Trees(self.v.child, self.j.child, self.d.child)

    @property
    def sizes(self) -> Counts:
        """How many counts there are of each."""
        v, j, forms = map(len, self.trees)
        vd, dj = self.lags
        return Counts(
            v_choice=0, j_choice=0, v=v, j=j, d=len(self.table_choice) * forms, vd_lengths=vd, dj_lengths=dj, misread=0,
            **OF_INSERTIONS,
        )  # fmt: skip

    def weights(self, model: Model) -> tuple[NodeWeights, Chain, Chain]:
        """The weights and insertions of a model with the same alleles."""
        choices = model.p_v if model.has_d else model.p_vj
        weights = NodeWeights(
            self.v.node_weights(choices, model.v_deletions), self.j.node_weights(model.p_dj, model.j_deletions),
            mixed(_chosen(model.p_dj, self.table_choice), self.d.weights(model)),
        )  # fmt: skip
        return weights, *chains(model)

    def expected(self, counts: NDArray[np.int64], model: Model, rows: int) -> Expected:
        """The expected numbers of events of `model` from the sum of the kernels' counts of so many rows."""
        parts = named_parts(counts, self.sizes)
        v, j, d = (parts[name] / unit_of(rows)[0] for name in "vjd")
        choices, v_deletions = self.v.spread(v, model.p_v if model.has_d else model.p_vj, model.v_deletions)
        dj, j_deletions = self.j.spread(j, model.p_dj, model.j_deletions)
        d_deletions = np.zeros_like(model.d_deletions)
        if model.has_d:
            more, d_deletions = self._spread_forms(d.reshape(len(self.table_choice), -1), model)
            dj = dj + more
        return Expected(
            choices=choices, dj=dj, v=v_deletions, j=j_deletions, d=d_deletions, **common_parts(parts, model, rows)
        )

    def _spread_forms(self, counts: Array, model: Model) -> tuple[Array, Array]:
        chances, forms = _chosen(model.p_dj, self.table_choice), self.d.weights(model)
        ratio = _ratio(counts, chances @ forms)
        of_d = chances * (ratio @ forms.T)
        dj = _of_choices(self.table_choice, of_d, model.p_dj)
        per_form = chances.T @ ratio
        shares = model.d_deletions.reshape(-1)[self.d.deletion] * per_form[self.d.gene, self.d.node]
        deletions = summed(self.d.deletion, shares, model.d_deletions.size)
        return dj, deletions.reshape(model.d_deletions.shape)


ORDER_BACK = np.argsort(ORDER)
"""The place of each of a model's bases in our codes."""


def unit_of(rows: int) -> tuple[float, float]:
    """What one is in counts, and in log-likelihoods, of so many rows: powers of two."""
    bits = max(1, int(rows)).bit_length()
    return 2.0 ** (MOST_BITS - bits - ROW_BITS), 2.0 ** (MOST_BITS - bits - LOG_BITS)


def common_parts(parts: Mapping[str, NDArray[np.int64]], model: Model, rows: int) -> dict[str, Any]:
    """The fields of `Expected` that every layout counts alike: insertions and likelihoods."""
    unit, log_unit = unit_of(rows)
    names = ("vd", "dj")[: len(model.insertions)]
    steps = [(parts[f"{name}_steps"] / unit).reshape(4, 4).T for name in names]
    logs, lost = parts["logs"], parts["lost"]
    return {
        "lengths": tuple(parts[f"{name}_lengths"] / unit for name in names),
        "first": tuple((parts[f"{name}_first"] / unit)[ORDER_BACK] for name in names),
        "transitions": tuple(step[np.ix_(ORDER_BACK, ORDER_BACK)] for step in steps),
        "log_likelihood": -float(logs[0] / log_unit), "lost": int(lost[0]),
        "held_log_likelihood": -float(logs[1] / log_unit), "held_lost": int(lost[1]),
    }  # fmt: skip
