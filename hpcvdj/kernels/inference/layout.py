"""Where the expected counts of a model's parameters are collected, and how they become those of the parameters.

For a parameter t of the model, the expected number of times that it took part in making the junctions S is

    sum over S of t · d log Pgen(S) / d t

Kernels collect it by the nodes of prefix trees, as generation probabilities are computed by them: the weight of a node
is the sum over its **entries**, each a product of the probability of an allele and that of a deletion.  What a node
collects is the posterior probability that a junction's V, D or J form is the node's, so that it is divided among the
entries by their weights, once for all junctions.

Counts are integers: multiples of `1 / Layout.unit(rows)`.  Their sums do not depend on an order, so a model that is
inferred is the same for any number of threads and ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.pgen.tables import NO_INSERTION, ORDER, Chain, DForms, Mask
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

LEAST = 1e-100
"""A probability below it, 0 among them, counts as this one in log-likelihoods, and the row is lost: nothing is counted.

Of a junction, 4^-128 is 1e-77."""


@dataclass(frozen=True)
class Side:
    """The prefix trees of the V side, or of the J side with all texts reversed.

    child     int32 [nodes, 4]
    node      int64 [entries]: a form's node
    choice    int64 [entries]: place of the probability of its allele in the flat array of choices; -1 for 1
    deletion  int64 [entries]: place of the probability of its deletion in the flat array of deletions
    """

    child: NDArray[np.int32]
    node: Ints
    choice: Ints
    deletion: Ints

    def entry_weights(self, choices: Array, deletions: Array) -> Array:
        """The weight of each entry, float64 [entries]."""
        return np.asarray(_or_one(choices)[self.choice] * deletions.reshape(-1)[self.deletion])

    def node_weights(self, choices: Array, deletions: Array) -> Array:
        """The weight of each node, float64 [nodes]."""
        weights = self.entry_weights(choices, deletions)
        return _summed(self.node, weights, len(self.child))

    def spread(self, counts: Array, choices: Array, deletions: Array) -> tuple[Array, Array]:
        """The counts of nodes as those of the choices and of the deletions, in the shapes of their arrays."""
        weights = self.entry_weights(choices, deletions)
        of_node = _summed(self.node, weights, len(self.child))
        shares = weights * _ratio(counts, of_node)[self.node]
        of_deletions = _summed(self.deletion, shares, deletions.size)
        return _of_choices(self.choice, shares, choices), of_deletions.reshape(deletions.shape)


def _columns(rows: Sequence[Sequence[int]], width: int) -> list[Ints]:
    """The columns of a table of so many."""
    return [np.ascontiguousarray(own) for own in np.array(rows, dtype=np.int64).reshape(-1, width).T]


def _summed(places: Ints, values: Array, size: int) -> Array:
    """float64 [size]: the sum of the values at each place."""
    return np.bincount(places, values, minlength=size).astype(np.float64)


def _or_one(choices: Array) -> Array:
    """Choices in a flat array, the last of which, number -1, is 1."""
    return np.append(choices, 1.0)


def _of_choices(choice: Ints, shares: Array, choices: Array) -> Array:
    """The sums of the shares of each choice, in the shape of `choices`."""
    added = _summed(choice.reshape(-1) + 1, shares.reshape(-1), choices.size + 1)
    return added[1:].reshape(choices.shape)


def _ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0)


class _Trees:
    """Makes a `Side`."""

    def __init__(self, model: Model, segment: SegmentType) -> None:
        self._segment, self._templates = segment, model.templates(segment)
        self._columns = (model.v_deletions if segment == "V" else model.j_deletions).shape[1]
        self._child: list[list[int]] = []
        self._entries: list[tuple[int, int, int]] = []
        self._roots: dict[Any, int] = {}

    def root(self, key: Any, alleles: Sequence[tuple[int, int]]) -> int:
        """The root of the tree of some (allele, place of its choice or -1); made if there is none of that key yet."""
        if key not in self._roots:
            self._roots[key] = root = self._new()
            for allele, choice in alleles:
                self._add(root, allele, choice)
        return self._roots[key]

    def _new(self) -> int:
        self._child.append([-1] * 4)
        return len(self._child) - 1

    def _add(self, node: int, allele: int, choice: int) -> None:
        codes = encode(self._templates[allele].extended).tolist()
        for kept, base in enumerate(codes if self._segment == "V" else codes[::-1], 1):
            if self._child[node][base] < 0:
                self._child[node][base] = self._new()
            node = self._child[node][base]
            if len(codes) - kept < self._columns:
                self._entries.append((node, choice, allele * self._columns + len(codes) - kept))

    def side(self) -> Side:
        return Side(np.array(self._child, dtype=np.int32).reshape(-1, 4), *_columns(self._entries, 3))


@dataclass(frozen=True)
class Weights:
    """A model's numbers for the kernels.

    v, j      float64 [nodes] of the sides
    d         float64 [tables, nodes]: of the D forms
    vd, dj    the insertions after V and before J
    """

    v: Array
    j: Array
    d: Array
    vd: Chain
    dj: Chain


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

    v, j         the sides
    forms        the D forms, [nodes, 4]; form_node, form_d, form_deletion int64 [entries]: an entry's node, D gene and
                 place in the flat array of deletions
    table_d      bool [tables, D]: the D genes of each table; table_choice int64 [tables, D]: places of their
                 probabilities in the flat array of P(D, J), -1 for 1
    first_group  int64 [pairs + 1]
    group_v, group_j, group_d  int64 [groups]: roots, and table
    depth        the most bases that a tree has
    lags         lengths of insertions, after V and before J
    """

    v: Side
    j: Side
    forms: NDArray[np.int32]
    form_node: Ints
    form_d: Ints
    form_deletion: Ints
    table_d: NDArray[np.bool_]
    table_choice: Ints
    first_group: Ints
    group_v: Ints
    group_j: Ints
    group_d: Ints
    depth: int
    lags: tuple[int, int]

    @staticmethod
    def of(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> "Layout":
        """The layout for pairs of sets of V and J alleles."""
        v, j = _Trees(model, "V"), _Trees(model, "J")
        tables: dict[tuple[str, int], int] = {}
        groups: list[tuple[int, int, int]] = []
        sizes = []
        alleles, genes = len(model.j), max(1, len(model.d))
        for v_mask, j_mask in pairs:
            before = len(groups)
            if not model.has_d:
                for b in j_mask:
                    root = v.root((v_mask, b), [(a, a * alleles + b) for a in v_mask])
                    groups.append((root, j.root(b, [(b, -1)]), tables.setdefault(("none", 0), len(tables))))
            elif v_mask and len(j_mask) <= genes:
                root = v.root(v_mask, [(a, a) for a in v_mask])
                for b in j_mask:
                    groups.append((root, j.root(b, [(b, -1)]), tables.setdefault(("J", b), len(tables))))
            elif v_mask:
                root = v.root(v_mask, [(a, a) for a in v_mask])
                for d in range(genes):
                    own = j.root((j_mask, d), [(b, d * alleles + b) for b in j_mask])
                    groups.append((root, own, tables.setdefault(("D", d), len(tables))))
            sizes.append(len(groups) - before)
        table_d = np.zeros((len(tables), genes), dtype=bool)
        table_choice = np.full((len(tables), genes), -1, dtype=np.int64)
        for (kind, place), table in tables.items():
            if kind == "J":
                table_d[table] = True
                table_choice[table] = np.arange(genes) * alleles + place
            else:
                table_d[table, place] = True
        forms, (form_node, form_d, form_deletion) = _forms(model)
        group_v, group_j, group_d = _columns(groups, 3)
        depth = max(len(own.extended) for own in (*model.v, *model.j))
        lags = [len(own.lengths) for own in model.insertions]
        return Layout(
            v.side(), j.side(), forms, form_node, form_d, form_deletion, table_d, table_choice,
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64), group_v, group_j, group_d, depth,
            (lags[0], lags[-1] if model.has_d else 1),
        )  # fmt: skip

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many counts there are of: V nodes, J nodes, D forms, lengths, first bases and pairs of bases of both
        insertions, and log-likelihoods and lost rows."""
        nodes = len(self.v.child), len(self.j.child), len(self.table_d) * len(self.forms)
        return (*nodes, *self.lags, 4, 4, 16, 16, 2, 2)

    @staticmethod
    def unit(rows: int) -> tuple[float, float]:
        """What one is in counts, and in log-likelihoods, of so many rows: powers of two."""
        bits = max(1, int(rows)).bit_length()
        return 2.0 ** (MOST_BITS - bits - ROW_BITS), 2.0 ** (MOST_BITS - bits - LOG_BITS)

    def weights(self, model: Model) -> Weights:
        """The numbers of a model with the same alleles."""
        choices = model.p_v if model.has_d else model.p_vj
        vd = Chain.of(model.insertions[0])
        dj = Chain.of(model.insertions[1]) if model.has_d else NO_INSERTION
        return Weights(
            self.v.node_weights(choices, model.v_deletions), self.j.node_weights(model.p_dj, model.j_deletions),
            self._chances(model) @ self._form_weights(model), vd, dj,
        )  # fmt: skip

    def _chances(self, model: Model) -> Array:
        """float64 [tables, D]: the probability of each D gene in each table."""
        return np.asarray(self.table_d * _or_one(model.p_dj)[self.table_choice])

    def _form_weights(self, model: Model) -> Array:
        """float64 [D, nodes]."""
        genes, nodes = self.table_d.shape[1], len(self.forms)
        if not model.has_d:
            return np.ones((1, 1))
        weights = model.d_deletions.reshape(-1)[self.form_deletion]
        return _summed(self.form_d * nodes + self.form_node, weights, genes * nodes).reshape(genes, nodes)

    def expected(self, counts: NDArray[np.int64], model: Model, rows: int) -> Expected:
        """The expected numbers of events of `model` from the sum of the kernels' counts of so many rows."""
        unit, log_unit = self.unit(rows)
        parts = np.split(counts, np.cumsum(self.sizes)[:-1])
        v, j, d, *chains, logs, lost = parts
        values = [part / unit for part in (v, j, d, *chains)]
        choices, v_deletions = self.v.spread(values[0], model.p_v if model.has_d else model.p_vj, model.v_deletions)
        dj, j_deletions = self.j.spread(values[1], model.p_dj, model.j_deletions)
        d_deletions = np.zeros_like(model.d_deletions)
        if model.has_d:
            more, d_deletions = self._spread_forms(values[2].reshape(len(self.table_d), -1), model)
            dj = dj + more
        kept = 2 if model.has_d else 1
        return Expected(
            choices, dj, v_deletions, j_deletions, d_deletions, tuple(values[3:5][:kept]),
            tuple(own[ORDER_BACK] for own in values[5:7][:kept]),
            tuple(own.reshape(4, 4).T[np.ix_(ORDER_BACK, ORDER_BACK)] for own in values[7:9][:kept]),
            -float(logs[0] / log_unit), int(lost[0]), -float(logs[1] / log_unit), int(lost[1]),
        )  # fmt: skip

    def _spread_forms(self, counts: Array, model: Model) -> tuple[Array, Array]:
        chances, forms = self._chances(model), self._form_weights(model)
        ratio = _ratio(counts, chances @ forms)
        of_d = chances * (ratio @ forms.T)
        dj = _of_choices(self.table_choice, of_d, model.p_dj)
        per_form = chances.T @ ratio
        shares = model.d_deletions.reshape(-1)[self.form_deletion] * per_form[self.form_d, self.form_node]
        deletions = _summed(self.form_deletion, shares, model.d_deletions.size)
        return dj, deletions.reshape(model.d_deletions.shape)


ORDER_BACK = np.argsort(ORDER)
"""The place of each of a model's bases in our codes."""


def _forms(model: Model) -> tuple[NDArray[np.int32], list[Ints]]:
    """The tree of all D forms, and its entries."""
    forms = DForms.of(model)
    entries: list[tuple[int, int, int]] = []
    _, lefts, rights = model.d_deletions.shape
    for place, template in enumerate(model.d):
        codes = encode(template.extended).tolist()
        for left in range(min(len(codes) + 1, lefts)):
            node: Any = 0
            for end in range(left, len(codes) + 1):
                node = int(forms.child[node, codes[end - 1]]) if end > left else node
                right = len(codes) - end
                if right < rights:
                    entries.append((node, place, (place * lefts + left) * rights + right))
    return forms.child, _columns(entries, 3)
