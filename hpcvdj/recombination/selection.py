"""The selection factor Q of productive junctions: the ratio of their frequency after and before selection.

Q(s) is the exponential of a sum of weights.  Each feature of a junction has a weight: its V with its J, V and J each
with the length, and the residue at each of nine positions from either end (the left-right features of Sethna et al.,
PLoS Computational Biology 16:e1008394, 2020).  A feature that was absent from the inference has weight 0.  The sum is
clipped to the range that occurred in the inference.  The mean of Q over productive junctions of the model is 1, so
P(s | productive) Q(s) is a probability, too.  Q is 1 for junctions of genes that were left out of the inference.
Factors of SONIA have other features (`SONIA`).

The factor of a model is in `selection.tsv` in the model's folder.  Other programs ignore this file.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.storage.inputs import read_text

FILE = "selection.tsv"
"""The file of the factor in a model's folder."""

SIDE = 9
"""How many positions from either end are features of `HPCVDJ`, not counting the conserved residues at the ends."""

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"

_HEAD = "#hpcvdj-selection "
_COLUMNS = "feature\tvalue"
_NUMBERS = ("intercept", "smallest", "largest")
_MEAN, _LEFT_OUT = "mean", "left_out"
_WITH_LEFT_OUT = 3
"""The version of files of `HPCVDJ` with genes that were left out."""
_REMEDY = "copy the file again, or make it again with `hpcvdj infer-selection` or `hpcvdj models from-sonia`"

Genes = tuple[str, str]
"""A V gene and a J gene."""

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Scheme:
    """The features of a factor, besides V with J.

    version      the version of files with these features
    with_length  whether V and J each with the length are features; otherwise V, J and the length alone are
    positions    the positions whose residues are features, by their distance from the residue at the end
    ends         how many residues at the other end are no features
    names        a regular expression that the names of the features match
    """

    version: int
    with_length: bool
    positions: range
    ends: int
    names: str


_PAIRS = f"(V_J|{_MEAN}):[^:]+:[^:]+"

HPCVDJ = Scheme(
    1, True, range(1, SIDE + 1), 1,
    rf"{_PAIRS}|{_LEFT_OUT}:[^:]+|[VJ]_length:[^:]+:\d+|(left|right):[1-{SIDE}]:[{RESIDUES}]",
)  # fmt: skip
"""The features that `hpcvdj infer-selection` infers."""

SONIA = Scheme(
    2, False, range(50), 0,
    rf"{_PAIRS}|[VJ]:[^:]+|length:\d+|(left|right):[1-4]?\d:[{RESIDUES}]",
)  # fmt: skip
"""The left-right features of SONIA, which infers 25 positions by default."""


def genes_of(alleles: str) -> str:
    """Return the genes of alleles, without repeats.

    >>> genes_of("TRBV6-2*01,TRBV6-3*01,TRBV6-2*02")
    'TRBV6-2,TRBV6-3'
    """
    return ",".join(dict.fromkeys(name.partition("*")[0] for name in alleles.split(",")))


def features(
    genes: Sequence[Genes], pair: Counts, letters: NDArray[np.uint8], lengths: Counts, scheme: Scheme = HPCVDJ
) -> Iterator[tuple[list[str], Counts]]:
    """Yield the features of junctions, kind by kind: names, and the index of each junction's feature among them, or -1.

    genes    a V and a J gene for each pair
    pair     int64 [junctions]: the pair of each junction
    letters  uint8 [junctions, width]: the amino acids as ASCII, padded with zeros
    lengths  int64 [junctions]: the number of amino acids
    scheme   which features to use
    """
    yield [f"V_J:{v}:{j}" for v, j in genes], pair
    sizes = range(int(lengths.max(initial=0)) + 1)
    for kind, of_pair in zip("VJ", zip(*genes, strict=True), strict=False):
        names = sorted(set(of_pair))
        index = np.array([names.index(name) for name in of_pair], dtype=np.int64)[pair]
        if scheme.with_length:
            yield [f"{kind}_length:{name}:{size}" for name in names for size in sizes], index * len(sizes) + lengths
        else:
            yield [f"{kind}:{name}" for name in names], index
    if not scheme.with_length:
        yield [f"length:{size}" for size in sizes], lengths
    rows = np.arange(len(lengths))
    for side in ("left", "right"):
        for position in scheme.positions[: len(sizes)]:
            at = np.full_like(lengths, position) if side == "left" else lengths - 1 - position
            inside = position < lengths - scheme.ends
            letter = letters[rows, np.where(inside, at, 0)].astype(np.int64)
            yield [f"{side}:{position}:{chr(code)}" for code in range(256)], np.where(inside, letter, -1)


def _equal(genes: Genes) -> float:
    return 1.0


@dataclass(frozen=True, eq=False)
class SelectionFactor:
    """The selection factor of a model.

    weights            the weight of each feature, a natural logarithm
    intercept          a weight of all junctions, which makes the mean of Q 1
    smallest, largest  the range of ln Q
    means              the mean of Q over productive junctions that the model makes with a V and a J gene, for pairs of
                       genes that it makes often enough
    left_out           genes that took no part in the inference: Q of their junctions is 1
    facts              the facts about the inference
    scheme             which features the factor has
    usage              returns how often productive recombinations have a V and a J gene: the weights of several genes
    """

    weights: Mapping[str, float]
    intercept: float
    smallest: float
    largest: float
    means: Mapping[Genes, float] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    facts: Mapping[str, Any] = field(default_factory=dict)
    scheme: Scheme = HPCVDJ
    usage: Callable[[Genes], float] = _equal

    def __repr__(self) -> str:
        return f"<Selection: {len(self.weights):,} features>"

    @property
    def digest(self) -> str:
        """SHA-256 of the numbers."""
        return _digest(self._lines())

    def log_factor(
        self, v_genes: Sequence[str], j_genes: Sequence[str], pair: Counts, letters: NDArray[np.uint8], lengths: Counts
    ) -> Floats:
        """Return ln Q of productive junctions, float64 [junctions].

        v_genes  the V gene of each pair; for several genes with commas between them, Q is the mean over the genes,
                 weighted by `usage`
        j_genes  the J gene of each pair, likewise
        pair     int64 [junctions]: the pair of each junction
        letters  uint8 [junctions, width]: the amino acids as ASCII, with the conserved ends, padded with zeros
        lengths  int64 [junctions]: the number of amino acids
        """
        listed = self._weighted(v_genes, j_genes)
        number = np.array([len(pairs) for pairs in listed], dtype=np.int64)
        total = np.full(len(pair), -np.inf)
        for turn in range(number.max(initial=0)):
            rows = np.flatnonzero(number[pair] > turn)
            genes, weights = zip(*(pairs[turn % len(pairs)] for pairs in listed), strict=True)
            logs = self._sum(genes, pair[rows], letters[rows], lengths[rows]).clip(self.smallest, self.largest)
            logs[np.array([not self.left_out.isdisjoint(own) for own in genes], dtype=bool)[pair[rows]]] = 0.0
            total[rows] = np.logaddexp(total[rows], logs + np.log(weights)[pair[rows]])
        return total

    def log_mean(self, v_genes: Sequence[str], j_genes: Sequence[str]) -> Floats:
        """Return ln of the mean of Q over junctions with the genes of each pair, float64 [pairs]; NaN if not known."""

        def mean(pair: Genes) -> float:
            return self.means.get(pair, np.nan) if self.left_out.isdisjoint(pair) else 1.0

        listed = self._weighted(v_genes, j_genes)
        return np.array([np.log(sum(weight * mean(pair) for pair, weight in of)) for of in listed])

    def _weighted(self, v_genes: Sequence[str], j_genes: Sequence[str]) -> list[list[tuple[Genes, float]]]:
        """Return all combinations of V and J genes for each pair, with weights that add up to 1.

        Alleles count as their genes.  Genes that are never made count only if no others are named.
        """
        listed = []
        for vs, js in zip(v_genes, j_genes, strict=True):
            pairs = list(product(genes_of(vs).split(","), genes_of(js).split(",")))
            usage = [self.usage(pair) for pair in pairs] if len(pairs) > 1 else [1.0]
            usage = usage if any(usage) else [1.0] * len(pairs)
            listed.append([(pair, p / sum(usage)) for pair, p in zip(pairs, usage, strict=True) if p > 0])
        return listed

    def relative(self, log_factor: Floats, v_genes: Sequence[str], j_genes: Sequence[str], pair: Counts) -> Floats:
        """Return ln Q less that of the mean over the junctions with the genes of a pair; 0 if the mean is not known."""
        return np.nan_to_num(log_factor - self.log_mean(v_genes, j_genes)[pair])

    def _sum(self, genes: Sequence[Genes], pair: Counts, letters: NDArray[np.uint8], lengths: Counts) -> Floats:
        """Return the sum of the weights for pairs with one V and one J gene; the order of summation is fixed."""
        total = np.full(len(pair), self.intercept)
        for names, index in features(genes, pair, letters, lengths, self.scheme):
            # The last weight is for index -1.
            total += np.array([*(self.weights.get(name, 0.0) for name in names), 0.0])[index]
        return total

    def _lines(self) -> list[str]:
        numbers = {
            **{name: getattr(self, name) for name in _NUMBERS},
            **{f"{_LEFT_OUT}:{gene}": 1.0 for gene in sorted(self.left_out)},
            **{":".join((_MEAN, *genes)): mean for genes, mean in sorted(self.means.items())},
            **dict(sorted(self.weights.items())),
        }
        return [f"{name}\t{value!r}" for name, value in numbers.items()]

    def text(self, model_digest: str) -> str:
        """Return the text of the file in a model's folder.

        model_digest  the digest of the model, to which the factor belongs
        """
        lines = self._lines()
        facts = {**self.facts, "model_sha256": model_digest, "lines_sha256": _digest(lines)}
        # Older versions of hpcvdj cannot read genes that were left out.
        head = f"{_HEAD}{_WITH_LEFT_OUT if self.left_out else self.scheme.version}"
        return "\n".join([head, f"#{json.dumps(facts, sort_keys=True)}", _COLUMNS, *lines, ""])


def read_selection(path: Path, model_digest: str) -> SelectionFactor:
    """Read the factor of the model with this digest.  Raise InputError, with the line, for other files."""

    def error(number: int, what: str, remedy: str = _REMEDY) -> InputError:
        return InputError(f"{path}, line {number}: {what}; {remedy}")

    lines = read_text(path, "selection factor", _REMEDY).split("\n")
    versions = {HPCVDJ.version: HPCVDJ, SONIA.version: SONIA, _WITH_LEFT_OUT: HPCVDJ}
    scheme = next((scheme for version, scheme in versions.items() if lines[0] == f"{_HEAD}{version}"), None)
    if scheme is None:
        remedy = "update hpcvdj" if lines[0].startswith(_HEAD) else _REMEDY
        raise error(1, f"not '{_HEAD}{HPCVDJ.version}' or {SONIA.version}", remedy)
    facts, body = _facts(lines[1] if len(lines) > 1 else ""), lines[3:-1]
    if facts is None:
        raise error(2, "not a JSON object with model_sha256 and lines_sha256")
    if facts.pop("model_sha256") != model_digest:
        raise error(2, "is the factor of another model", "infer one of this model with `hpcvdj infer-selection`")
    if lines[2:3] != [_COLUMNS]:
        raise error(3, "not the columns feature and value")
    numbers_by_name: dict[str, float] = {}
    for number, line in enumerate(body, start=4):
        name, _, text = line.partition("\t")
        value = finite_number(text)
        if value is None or not (name in _NUMBERS or re.fullmatch(scheme.names, name)):
            raise error(number, f"not a feature and a number: {line[:60]!r}")
        if name in numbers_by_name:
            raise error(number, f"{name} is there twice")
        numbers_by_name[name] = value
    missing = [name for name in _NUMBERS if name not in numbers_by_name]
    if missing or lines[-1] or facts.pop("lines_sha256") != _digest(body):
        raise error(len(lines) - 1, "the lines are not those that were written: some are missing or changed")
    means = {}
    for name in [name for name in numbers_by_name if name.startswith(f"{_MEAN}:")]:
        _, v, j = name.split(":")
        means[v, j] = numbers_by_name.pop(name)
    left_out = frozenset(name.partition(":")[2] for name in numbers_by_name if name.startswith(f"{_LEFT_OUT}:"))
    for gene in left_out:
        numbers_by_name.pop(f"{_LEFT_OUT}:{gene}")
    numbers: dict[str, Any] = {name: numbers_by_name.pop(name) for name in _NUMBERS}
    if numbers["smallest"] > numbers["largest"] or any(mean <= 0 for mean in means.values()):
        raise error(4, "the range of the factor is empty, or a mean is not above 0")
    return SelectionFactor(numbers_by_name, **numbers, means=means, left_out=left_out, facts=facts, scheme=scheme)


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def _facts(line: str) -> dict[str, Any] | None:
    try:
        facts = json.loads(line.removeprefix("#"))
    except ValueError:
        return None
    valid = isinstance(facts, dict) and all(isinstance(facts.get(f"{of}_sha256"), str) for of in ("model", "lines"))
    return facts if valid else None


def finite_number(text: str) -> float | None:
    """Return the number in a text; None if there is none, or if it is infinite or NaN."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
