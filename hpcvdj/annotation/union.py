"""The union of the balls of records: every sequence within one exchange of a record, once, with its probability."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.annotation.centres import Centres, Class
from hpcvdj.chance.check import limits_of
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.kernels.neighbours.balls import balls, find, sums
from hpcvdj.kernels.neighbours.blocks import blocks, equal_runs
from hpcvdj.kernels.pgen.exchanges_cpu import exchanged
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_choice
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem, Repertoire
from hpcvdj.recombination.selection import RESIDUES, Selection
from hpcvdj.recombination.symbols import Alphabet
from hpcvdj.repertoires.genes import letter_words

Letters = NDArray[np.uint8]
Places = NDArray[np.int32]

PGEN_AA = PGEN_COLUMNS[1:2]

_AT_ONCE = 1 << 20
"""Sequences whose selection factors are computed at once."""


@dataclass(frozen=True)
class Union:
    """Sequences within so many exchanges of a record, sorted by class, length and letters.

    centres  of the balls
    kind     int32 [members]: the class
    letters  uint8 [members, width]: the amino acids as ASCII
    lengths  int32 [members]: how many
    centre   int32 [links]: a centre, ascending by member; each has the members of its ball
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

    def find(self, kind: Counts, letters: Letters, lengths: Counts) -> Counts:
        """The member that each of some sequences is, int64 [sequences]; -1 for others.  Letters in whole words."""
        width = self.letters.shape[1]
        # What is longer than all members differs in length.
        own = np.pad(letters[:, :width], ((0, 0), (0, max(0, width - letters.shape[1]))))
        return find((self.kind, self.lengths, self.letters), (kind, lengths, own))

    def by_epitope(self, values: Floats) -> Floats:
        """Values of members, float64 [members], summed over those of each epitope."""
        return sums(self.of_epitope, self.of_member, values, len(self.centres.epitopes))

    def by_centre(self, values: Floats) -> Floats:
        """Values of members, float64 [members], summed over each ball."""
        member = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.first, append=len(self.centre)))
        return sums(self.centre, member, values, len(self.centres.kind))

    def smallest(self, of_centre: Counts) -> Counts:
        """The smallest number of the centres whose balls have a member, int64 [members]."""
        return np.asarray(np.minimum.reduceat(of_centre[self.centre], self.first))

    def repertoire(self, rows: Counts | slice = slice(None)) -> Repertoire:
        """Members, all or some, ascending, as junctions in amino acids."""
        return _repertoire(self.centres.classes, self.kind[rows], self.letters[rows], self.lengths[rows])


def _repertoire(classes: list[Class], kind: Any, letters: Letters, lengths: Any) -> Repertoire:
    """Amino acids in ASCII, ascending by class, as junctions."""
    alphabet = Alphabet.of()
    codes = np.where(letters > 0, alphabet.code_of_byte[letters], 0).astype(np.uint8)
    offsets = np.searchsorted(kind, np.arange(len(classes) + 1))
    return Repertoire(letter_words(codes), (3 * lengths).astype(np.uint8), classes, offsets, alphabet)


def union_of(centres: Centres, mismatches: int, model: Model) -> tuple[Union, Floats]:
    """The union of the balls of all centres, which are sorted by class, length and letters.

    Also the generation probability of the amino acids of each member with the genes of its class, float64 [members],
    as the first of the balls that have it gives it.
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
    member  int64: of the first ball, of the second, ...
    """
    own = np.concatenate([epitope.centres for epitope in centres.epitopes])
    epitope = np.repeat(np.arange(len(centres.epitopes)), [len(each.centres) for each in centres.epitopes])
    begins, chosen = (np.cumsum(sizes) - sizes)[own], sizes[own]
    within = np.arange(chosen.sum()) - np.repeat(np.cumsum(chosen) - chosen, chosen)
    members = member[np.repeat(begins, chosen) + within]
    # np.unique hashes, which takes a hundred times as long as sorting.
    pairs = np.sort(np.repeat(epitope, chosen) << 32 | members)
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    return pairs >> 32, pairs & 0xFFFFFFFF


@dataclass(frozen=True)
class Probabilities:
    """Of the members of a union, float64 [members].

    pgen     generation probability of the amino acids with the class's genes
    given    probability among productive junctions of the class, with the selection factor
    post     among all productive junctions, likewise
    selected whether the selection factor is in them
    limits   of all that the model makes: see `hpcvdj.chance.check.limits_of`
    """

    pgen: Floats
    given: Floats
    post: Floats
    selected: bool
    limits: tuple[float, float]


def probabilities(union: Union, pgen: Floats, model: Model, factor: Selection | None) -> Probabilities:
    """The probabilities of the members of a union, by those of `union_of`."""
    chance = productive_choice(model)
    of_class = np.array([chance[np.ix_(v.places, j.places)].sum() for v, j in union.centres.classes])[union.kind]
    log_q, log_mean = _log_factors(factor, union)
    with np.errstate(divide="ignore", invalid="ignore"):
        given = np.where(of_class > 0, pgen * np.exp(log_q - log_mean) / of_class, 0.0)
    post = pgen * np.exp(log_q) / chance.sum()
    return Probabilities(pgen, np.minimum(given, 1.0), post, factor is not None, limits_of(model, PGEN_AA))


def _log_factors(factor: Selection | None, union: Union) -> tuple[Floats, Floats]:
    """ln Q of members, and ln of its mean over what the model makes with their genes; 0 where that is not known."""
    if factor is None:
        return np.zeros(len(union)), np.zeros(len(union))
    v, j = ([pair[k].allele for pair in union.centres.classes] for k in (0, 1))
    kind, lengths = union.kind.astype(np.int64), union.lengths.astype(np.int64)
    logs = [
        factor.log_factor(v, j, kind[rows], union.letters[rows], lengths[rows])
        for begin in range(0, len(union), _AT_ONCE)
        for rows in [slice(begin, begin + _AT_ONCE)]
    ]
    mean = factor.log_mean(v, j)
    log_q = np.concatenate(logs)
    return log_q, np.where(np.isnan(mean)[union.kind], log_q, np.nan_to_num(mean)[union.kind])
