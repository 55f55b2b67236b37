"""The union of the balls of records: every sequence within one exchange of a record, once, with its probability."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.annotation.centres import Centres, Class
from hpcvdj.chance.check import limits_of
from hpcvdj.chance.p_values import Bools, Counts, Floats
from hpcvdj.kernels.distinct import distinct
from hpcvdj.kernels.neighbours.balls import balls, find
from hpcvdj.kernels.neighbours.blocks import blocks, equal_runs
from hpcvdj.kernels.pgen.exchanges_cpu import exchanged
from hpcvdj.kernels.sums import summed
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_of, productive_probability
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem, Repertoire
from hpcvdj.recombination.selection import RESIDUES, SelectionFactor
from hpcvdj.recombination.symbols import Alphabet
from hpcvdj.repertoires.genes import letter_words

Letters = NDArray[np.uint8]
Places = NDArray[np.int32]

PGEN_AA = PGEN_COLUMNS[1:2]

_AT_ONCE = 1 << 20
"""Sequences whose selection factors are computed at once."""


@dataclass(frozen=True)
class Union:
    """The sequences within a number of exchanges of a record, sorted by class, length and letters.

    centres  of the balls
    kind     int32 [members]: the class
    letters  uint8 [members, width]: the amino acids as ASCII
    lengths  int32 [members]: how many
    centre   int32 [links]: a centre whose ball has the member; links are sorted by member
    first    int32 [members]: the first link of each member
    of_epitope, of_member   int32 [pairs]: each epitope with each of its members, once, ascending
    """

    centres: Centres
    kind: Places
    letters: Letters
    lengths: Places
    centre: Places
    first: Places
    of_epitope: Places
    of_member: Places

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def decoy(self) -> Bools:
        """Which epitopes are decoys, bool [epitopes]."""
        return np.array([epitope.decoy for epitope in self.centres.epitopes])

    @cached_property
    def near_decoys(self) -> Counts:
        """The members of epitopes that are decoys, ascending."""
        return distinct(self.of_member[self.decoy[self.of_epitope]].astype(np.int64))

    def text(self, member: int) -> str:
        """The amino acids of a member."""
        return bytes(self.letters[member]).rstrip(b"\0").decode()

    def centres_of(self, member: int) -> list[int]:
        """The centres whose balls have a member."""
        begin, end = np.append(self.first[member : member + 2], len(self.centre))[:2]
        return list(self.centre[begin:end].tolist())

    def find(self, kind: Counts, letters: Letters, lengths: Counts) -> Counts:
        """The member that equals each sequence, int64 [sequences]; -1 if none does.

        letters  uint8 [sequences, width], the width a multiple of 8
        """
        width = self.letters.shape[1]
        # A sequence longer than all members differs from them in length, so its letters may be cut.
        letters = np.pad(letters[:, :width], ((0, 0), (0, max(0, width - letters.shape[1]))))
        return find((self.kind, self.lengths, self.letters), (kind, lengths, letters))

    def by_epitope(self, values: Floats) -> Floats:
        """Values of members, float64 [members], summed over those of each epitope."""
        return summed(self.of_epitope, values[self.of_member], len(self.centres.epitopes))

    def by_centre(self, values: Floats) -> Floats:
        """Values of members, float64 [members], summed over each ball."""
        return summed(self.centre, values[self.linked], len(self.centres.kind))

    @property
    def linked(self) -> Places:
        """The member of each link, int32 [links]."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.first, append=len(self.centre)))

    def smallest(self, of_centre: Counts) -> Counts:
        """The smallest number of the centres whose balls have a member, int64 [members]."""
        return np.asarray(np.minimum.reduceat(of_centre[self.centre], self.first))

    def repertoire(self, rows: Counts | slice = slice(None)) -> Repertoire:
        """Members as junctions in amino acids.

        rows  members, ascending
        """
        return _repertoire(self.centres.classes, self.kind[rows], self.letters[rows], self.lengths[rows])


def _repertoire(classes: list[Class], kind: Any, letters: Letters, lengths: Any) -> Repertoire:
    """Amino acids in ASCII, ascending by class, as junctions."""
    alphabet = Alphabet.of()
    codes = np.where(letters > 0, alphabet.code_of_byte[letters], 0).astype(np.uint8)
    offsets = np.searchsorted(kind, np.arange(len(classes) + 1))
    return Repertoire(letter_words(codes), (3 * lengths).astype(np.uint8), classes, offsets, alphabet)


def union_of(centres: Centres, mismatches: int, model: Model) -> tuple[Union, Floats]:
    """The union of the balls of all centres, which are sorted by class, length and letters.

    Also returns the generation probability of the amino acids of each member with the genes of its class, float64
    [members].  A member of several balls has the probability from the first of them.
    """
    letters, lengths = centres.letters
    residues = np.frombuffer(RESIDUES.encode(), dtype=np.uint8)
    everything, sizes = balls(letters, lengths, residues, mismatches)
    problem = PgenProblem(_repertoire(centres.classes, centres.kind, letters, lengths), model, PGEN_AA)
    pgen, _ = exchanged(problem, RESIDUES * mismatches, kept=1)
    centre = np.repeat(np.arange(len(sizes)), sizes)
    _, starts = blocks(lengths[centre], centres.kind[centre])
    order, first = equal_runs(letter_words(everything), starts)
    member = np.empty(len(order), dtype=np.int64)
    member[order] = np.repeat(np.arange(len(first)), np.diff(first, append=len(order)))
    rows = order[first]
    of_epitope, of_member = _pairs(centres, sizes, member)
    numbers = centres.kind[centre[rows]], lengths[centre[rows]], centre[order], first, of_epitope, of_member
    kind, size, *links = (values.astype(np.int32) for values in numbers)
    return Union(centres, kind, everything[rows], size, *links), pgen[rows]


def _pairs(centres: Centres, sizes: Counts, member: Counts) -> tuple[Counts, Counts]:
    """Each epitope with each member of the balls of its centres, once.

    sizes   int64 [centres]: of the balls
    member  int64: the members of the first ball, then of the second, and so on
    """
    of_epitopes = [epitope.centres for epitope in centres.epitopes]
    epitope = np.repeat(np.arange(len(of_epitopes)), [len(numbers) for numbers in of_epitopes])
    centre = np.concatenate(of_epitopes)
    begins, chosen = (np.cumsum(sizes) - sizes)[centre], sizes[centre]
    within = np.arange(chosen.sum()) - np.repeat(np.cumsum(chosen) - chosen, chosen)
    members = member[np.repeat(begins, chosen) + within]
    pairs = distinct(np.repeat(epitope, chosen) << 32 | members)
    return pairs >> 32, pairs & 0xFFFFFFFF


@dataclass(frozen=True)
class Probabilities:
    """The probabilities of the members of a union, float64 [members].

    pgen     generation probability of the amino acids with the genes of the class
    given    probability among productive junctions of the class, with the selection factor
    post     probability among all productive junctions, with the selection factor
    selected whether the model's selection factor takes part
    limits   of all that the model makes: see `hpcvdj.chance.check.limits_of`
    """

    pgen: Floats
    given: Floats
    post: Floats
    selected: bool
    limits: tuple[float, float]


def probabilities(union: Union, pgen: Floats, model: Model, factor: SelectionFactor | None) -> Probabilities:
    """The probabilities of the members of a union.

    pgen  float64 [members], as of `union_of`
    """
    of_class = productive_of(model, union.centres.classes)[union.kind]
    log_q, relative = _log_factors(factor, union)
    with np.errstate(divide="ignore", invalid="ignore"):
        given = np.where(of_class > 0, pgen * np.exp(relative) / of_class, 0.0)
    post = pgen * np.exp(log_q) / productive_probability(model)
    return Probabilities(pgen, np.minimum(given, 1.0), post, factor is not None, limits_of(model, PGEN_AA))


def _log_factors(factor: SelectionFactor | None, union: Union) -> tuple[Floats, Floats]:
    """ln Q of members, and the same relative to its mean, as of `SelectionFactor.relative`; 0 without a factor."""
    if factor is None:
        return np.zeros(len(union)), np.zeros(len(union))
    v, j = ([pair[side].allele for pair in union.centres.classes] for side in (0, 1))
    kind, lengths = union.kind.astype(np.int64), union.lengths.astype(np.int64)
    logs = [
        factor.log_factor(v, j, kind[rows], union.letters[rows], lengths[rows])
        for rows in (slice(begin, begin + _AT_ONCE) for begin in range(0, len(union), _AT_ONCE))
    ]
    log_q = np.concatenate(logs)
    return log_q, factor.relative(log_q, v, j, kind)
