"""Junctions by their V and J genes, and the amino acids that they code for."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.kernels.generation.letters import RESIDUES
from hpcvdj.kernels.text import translate_rows, unpack_rows
from hpcvdj.recombination import alphabet
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import ANY, Alleles, Model
from hpcvdj.recombination.repertoire import CDR3_ENDS, Repertoire
from hpcvdj.recombination.symbols import Alphabet

Counts = NDArray[np.int64]
Places = NDArray[np.integer[Any]]
Letters = NDArray[np.uint8]


def by_gene(repertoire: Repertoire, model: Model) -> tuple[Repertoire, Counts]:
    """The junctions with all alleles of their genes, by length, and the row of each among those of the repertoire.

    Calls name alleles or genes; what is compared across junctions is of genes.  Junctions without calls keep any.
    """
    v_genes, j_genes = (dict.fromkeys(pair[side] for pair in repertoire.pairs) for side in (0, 1))
    v_of = {v: with_all_alleles(model, "V", v) for v in v_genes}
    j_of = {j: with_all_alleles(model, "J", j) for j in j_genes}
    return merged([replace(repertoire, pairs=[(v_of[v], j_of[j]) for v, j in repertoire.pairs])])


def merged(parts: Sequence[Repertoire]) -> tuple[Repertoire, Counts]:
    """The junctions of repertoires of the same letters by pair and length, and the row of each among those of all.

    Pairs may repeat; they are in an order that does not depend on that of the rows.
    """
    found = numbers_of_pairs(parts)
    # Narrow types are sorted faster.
    narrow = np.min_scalar_type(len(found))
    kind = np.concatenate([
        np.repeat(np.array([found[pair] for pair in part.pairs], dtype=narrow), np.diff(part.offsets)) for part in parts
    ])  # fmt: skip
    words, lengths = stacked([part.words for part in parts]), np.concatenate([part.lengths for part in parts])
    order = np.lexsort((lengths, kind))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(kind, minlength=len(found)))]).astype(np.int64)
    return Repertoire(words[order], lengths[order], list(found), offsets, parts[0].letters), order


def numbers_of_pairs(parts: Sequence[Repertoire]) -> dict[tuple[Any, Any], int]:
    """The different pairs of repertoires, in the order of `merged`, and the number of each."""
    pairs = {pair for part in parts for pair in part.pairs}
    return {pair: kind for kind, pair in enumerate(sorted(pairs, key=lambda pair: (pair[0].allele, pair[1].allele)))}


class Collected:
    """Junctions that are collected, of at most so many words, which are not copied once more at the end.

    rows    how many there are at most; memory is taken for those that there are
    """

    def __init__(self, rows: int, words: int, letters: alphabet.Letters) -> None:
        self._words, self._lengths = np.empty((rows, words), dtype=np.uint64), np.empty(rows, dtype=np.uint8)
        self._pairs, self._offsets, self._letters = list[tuple[Any, Any]](), [0], letters

    def add(self, part: Repertoire) -> None:
        """Take junctions of other pairs than those before."""
        rows, width = slice(len(self), len(self) + len(part)), part.words.shape[1]
        self._words[rows, :width], self._words[rows, width:], self._lengths[rows] = part.words, 0, part.lengths
        self._offsets += (len(self) + part.offsets[1:]).tolist()
        self._pairs += part.pairs

    def __len__(self) -> int:
        return self._offsets[-1]

    def repertoire(self) -> Repertoire:
        """What was collected."""
        rows, offsets = slice(len(self)), np.array(self._offsets, dtype=np.int64)
        return Repertoire(self._words[rows], self._lengths[rows], self._pairs, offsets, self._letters)


def stacked(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The rows of several arrays; those of narrower ones end with zeros."""
    if len(parts) == 1:
        return parts[0]
    rows = np.zeros((sum(map(len, parts)), max(part.shape[1] for part in parts)), dtype=parts[0].dtype)
    first = 0
    for part in parts:
        rows[first : first + len(part), : part.shape[1]] = part
        first += len(part)
    return rows


def with_all_alleles(model: Model, segment: SegmentType, alleles: Alleles) -> Alleles:
    """All alleles of the genes of some, named by the genes."""
    if alleles.allele == ANY:
        return alleles
    names = dict.fromkeys(name.partition("*")[0] for name in alleles.allele.split(","))
    places = {place for name in names for place in model.find(segment, name) or ()}
    return Alleles(",".join(names), tuple(sorted(places & {*model.contributing(segment)})))


def kinds_of(repertoire: Repertoire) -> Counts:
    """The place of each junction's pair in `pairs`, int64 [junctions]."""
    return np.repeat(np.arange(len(repertoire.pairs)), np.diff(repertoire.offsets))


def has_nucleotides(repertoire: Repertoire) -> bool:
    """Whether junctions are nucleotides, not amino acids."""
    return not isinstance(repertoire.letters, Alphabet)


def amino_acids(repertoire: Repertoire, rows: Places) -> tuple[Letters, Counts]:
    """Some junctions in amino acids: uint8 [rows, width], ASCII, zero-padded to whole words; int64 [rows], lengths."""
    codons = repertoire.lengths[rows].astype(np.int64) // 3
    width = -(-int(codons.max(initial=1)) // 8) * 8
    letters = np.zeros((len(rows), width), dtype=np.uint8)
    if not has_nucleotides(repertoire):
        symbols = np.frombuffer(repertoire.letters.symbols.encode(), dtype=np.uint8)
        unpack_rows(repertoire.words[rows], codons.astype(np.uint8), symbols, repertoire.letters.bits, letters)
        return letters, codons
    translate_rows(repertoire.words[rows], codons, RESIDUES, np.arange(len(rows)) * width, letters.reshape(-1))
    return letters, codons


def as_read(drawn: Repertoire, like: Repertoire) -> Repertoire:
    """Junctions in nucleotides as those of another repertoire were read: its letters, and its ends.

    like  nucleotides, which changes nothing, or amino acids without symbols for several but the end of `CDR3_ENDS`
    """
    if has_nucleotides(like):
        return drawn
    letters, codons = amino_acids(drawn, np.arange(len(drawn)))
    if ends_open(like):
        letters[np.arange(len(drawn)), codons - 1] = ord(CDR3_ENDS[1])
    codes = np.where(letters > 0, like.letters.code_of_byte[letters], 0).astype(np.uint8)
    return Repertoire(letter_words(codes), drawn.lengths, drawn.pairs, drawn.offsets, like.letters)


def ends_open(repertoire: Repertoire) -> bool:
    """Whether only the CDR3s of junctions are known, in amino acids, as all are then."""
    if has_nucleotides(repertoire) or not len(repertoire):
        return False
    letters, codons = amino_acids(repertoire, np.arange(1))
    return bool(letters[0, codons[0] - 1] == ord(CDR3_ENDS[1]))


def amino_acid_column(repertoire: Repertoire, letters: Letters, lengths: Counts) -> dict[str, Any]:
    """The column of tables that has some amino acids of a repertoire: junction_aa, or cdr3_aa if no more is known."""
    if not ends_open(repertoire):
        return {"junction_aa": as_text(letters, lengths)}
    return {"cdr3_aa": as_text(letters[:, 1:], lengths - 2)}


def letter_words(letters: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Letters uint8 [rows, width], the width a multiple of 8, as numbers of the same order, uint64 [rows, words]."""
    return letters.view(">u8").astype(np.uint64)


def as_text(letters: Letters, lengths: Counts) -> Any:
    """Zero-padded ASCII as a pyarrow Array of text."""
    width = letters.shape[1]
    data = letters[np.arange(width) < lengths[:, np.newaxis]]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(data))


def sequences(repertoire: Repertoire, rows: Counts) -> Any:
    """The letters of some junctions as a pyarrow Array of text."""
    bases = repertoire.letters.bases
    lengths = repertoire.lengths[rows] // np.uint8(bases)
    letters = np.zeros((len(rows), max(1, repertoire.longest // bases)), dtype=np.uint8)
    symbols = np.frombuffer(repertoire.letters.symbols.encode(), dtype=np.uint8)
    unpack_rows(repertoire.words[rows], lengths, symbols, repertoire.letters.bits, letters)
    return as_text(letters, lengths.astype(np.int64))


def without_genes(repertoire: Repertoire, left_out: Collection[str]) -> NDArray[np.bool_]:
    """Which junctions have none of some genes, bool [junctions]."""
    kept = [{*v.allele.split(","), *j.allele.split(",")}.isdisjoint(left_out) for v, j in repertoire.pairs]
    return np.array(kept, dtype=bool)[kinds_of(repertoire)] if kept else np.ones(len(repertoire), dtype=bool)
