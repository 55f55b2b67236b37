"""Junctions by their V and J genes, and the amino acids that they code for."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.kernels.neighbours.blocks import blocks
from hpcvdj.kernels.text import text_buffers, translate_rows, unpack_rows
from hpcvdj.kernels.threads import TAKEN_AT_ONCE, on_threads, parts_of, taken
from hpcvdj.recombination import alphabet
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import ANY, Alleles, Model
from hpcvdj.recombination.repertoire import CDR3_ENDS, Repertoire
from hpcvdj.recombination.symbols import Alphabet

Counts = NDArray[np.int64]
Rows = NDArray[np.integer[Any]] | slice
Letters = NDArray[np.uint8]

_NO_RESIDUE = "?"


def by_gene(repertoire: Repertoire, model: Model) -> tuple[Repertoire, Counts]:
    """The junctions with all alleles of their genes, as of `merged`, and the row of each in the repertoire.

    Calls name alleles or genes, but junctions are compared by genes.  Junctions without calls keep any gene.
    """
    v_of = {v: with_all_alleles(model, "V", v) for v in {v for v, _ in repertoire.pairs}}
    j_of = {j: with_all_alleles(model, "J", j) for j in {j for _, j in repertoire.pairs}}
    return merged([replace(repertoire, pairs=[(v_of[v], j_of[j]) for v, j in repertoire.pairs])])


def merged(parts: Sequence[Repertoire]) -> tuple[Repertoire, Counts]:
    """The junctions of repertoires, sorted by pair and length, and the row of each in the concatenated `parts`.

    The parts have the same letters, and a pair may be in several of them.  The order of pairs does not depend on the
    order of rows.
    """
    pairs = numbers_of_pairs([part.pairs for part in parts])
    of_parts = [np.array([pairs[pair] for pair in part.pairs], dtype=np.int64) for part in parts]
    pair = np.concatenate(
        [np.repeat(of_part, np.diff(part.offsets)) for of_part, part in zip(of_parts, parts, strict=True)]
    )
    words, lengths = stacked([part.words for part in parts]), np.concatenate([part.lengths for part in parts])
    order, _ = blocks(lengths.astype(np.int64), pair)
    if isinstance(order, slice):
        order = np.arange(len(lengths))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=len(pairs)))]).astype(np.int64)
    return Repertoire(taken(words, order), taken(lengths, order), list(pairs), offsets, parts[0].letters), order


def numbers_of_pairs(parts: Sequence[Sequence[tuple[Any, Any]]]) -> dict[tuple[Any, Any], int]:
    """The distinct pairs of some lists of pairs, in the order of `merged`, and the index of each."""
    pairs = {pair for part in parts for pair in part}
    return {pair: kind for kind, pair in enumerate(sorted(pairs, key=lambda pair: (pair[0].allele, pair[1].allele)))}


class Collected:
    """Collects junctions without a further copy of them at the end."""

    def __init__(self, rows: int, words: int, letters: alphabet.Letters) -> None:
        """Collect at most `rows` junctions of at most `words` words; memory is used for the collected ones only."""
        self._words, self._lengths = np.empty((rows, words), dtype=np.uint64), np.empty(rows, dtype=np.uint8)
        self._pairs, self._offsets, self._letters = list[tuple[Any, Any]](), [0], letters

    def add(self, part: Repertoire) -> None:
        """Add junctions whose pairs are not among the collected ones."""
        rows, width = slice(len(self), len(self) + len(part)), part.words.shape[1]
        self._words[rows, :width], self._words[rows, width:], self._lengths[rows] = part.words, 0, part.lengths
        self._offsets += (len(self) + part.offsets[1:]).tolist()
        self._pairs += part.pairs

    def __len__(self) -> int:
        return self._offsets[-1]

    def repertoire(self) -> Repertoire:
        rows, offsets = slice(len(self)), np.array(self._offsets, dtype=np.int64)
        return Repertoire(self._words[rows], self._lengths[rows], self._pairs, offsets, self._letters)


def stacked(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The rows of several matrices, padded with zeros to the width of the widest."""
    if len(parts) == 1:
        return parts[0]
    rows = np.empty((sum(map(len, parts)), max(part.shape[1] for part in parts)), dtype=parts[0].dtype)
    firsts = accumulate(map(len, parts), initial=0)

    def copy(place: tuple[int, NDArray[Any]]) -> None:
        first, part = place
        of_part = rows[first : first + len(part)]
        of_part[:, : part.shape[1]], of_part[:, part.shape[1] :] = part, 0

    on_threads(copy, list(zip(firsts, parts, strict=False)))
    return rows


def with_all_alleles(model: Model, segment: SegmentType, alleles: Alleles) -> Alleles:
    """All alleles of the genes of `alleles`, named by the genes."""
    if alleles.allele == ANY:
        return alleles
    names = dict.fromkeys(name.partition("*")[0] for name in alleles.allele.split(","))
    indices = {index for name in names for index in model.find(segment, name) or ()}
    return Alleles(",".join(names), tuple(sorted(indices & {*model.contributing(segment)})))


def kinds_of(repertoire: Repertoire) -> Counts:
    """The index in `pairs` of each junction's pair, int64 [junctions]."""
    return np.repeat(np.arange(len(repertoire.pairs)), np.diff(repertoire.offsets))


def has_nucleotides(repertoire: Repertoire) -> bool:
    """Whether junctions are nucleotides, not amino acids."""
    return not isinstance(repertoire.letters, Alphabet)


def unpacked(repertoire: Repertoire, rows: Rows, width: int) -> tuple[Letters, Counts]:
    """Junctions as letters: uint8 [rows, width], ASCII, padded with zeros; and their lengths, int64 [rows]."""
    letters = repertoire.letters
    lengths = repertoire.lengths[rows] // np.uint8(letters.bases)
    out = np.zeros((len(lengths), width), dtype=np.uint8)
    symbols = np.frombuffer(letters.symbols.encode(), dtype=np.uint8)
    unpack_rows(repertoire.words[rows], lengths, symbols, letters.bits, out)
    return out, lengths.astype(np.int64)


def amino_acids(repertoire: Repertoire, rows: NDArray[np.integer[Any]]) -> tuple[Letters, Counts]:
    """Junctions as amino acids: uint8 [rows, width], ASCII, padded with zeros; and their lengths, int64 [rows].

    The width is a multiple of 8.
    """
    words, lengths = taken(repertoire.words, rows), taken(repertoire.lengths, rows)
    codons = lengths.astype(np.int64) // 3
    width = -(-int(codons.max(initial=1)) // 8) * 8
    if not has_nucleotides(repertoire):
        return unpacked(repertoire, rows, width)
    letters = np.zeros((len(rows), width), dtype=np.uint8)
    translate_rows(words, codons, alphabet.RESIDUE_OF_CODON, np.arange(len(rows)) * width, letters.reshape(-1))
    return letters, codons


def translated(sequences: pa.Array) -> pa.Array:
    """The amino acids of sequences of A, C, G and T; null for one that is out of frame or has other letters."""
    offsets, data = text_buffers(sequences)
    lengths = np.diff(offsets)
    read = lengths % 3 == 0
    # Of sequences in frame, one behind the other, every third letter begins a codon.
    codons = alphabet.CODE_OF_BYTE[data[offsets[0] : offsets[-1]][np.repeat(read, lengths)]].reshape(-1, 3)
    ends = np.where(read, lengths, 0).cumsum() // 3
    residues = alphabet.RESIDUE_OF_CODON[(codons & 3) @ np.array([16, 4, 1], np.uint8)]
    residues[(codons == alphabet.INVALID).any(axis=1)] = ord(_NO_RESIDUE)
    buffers = [None, pa.py_buffer(np.append(0, ends)), pa.py_buffer(residues)]
    texts = pa.Array.from_buffers(pa.large_string(), len(read), buffers)
    known = pc.and_(pa.array(read), pc.invert(pc.match_substring(texts, _NO_RESIDUE)))
    return pc.if_else(known, texts.cast(pa.string()), None)


def as_read(drawn: Repertoire, like: Repertoire) -> Repertoire:
    """Junctions in nucleotides, with the letters and the ends of another repertoire.

    like  a repertoire of nucleotides, for which `drawn` does not change, or of amino acids whose only ambiguous symbol
          is the end of `CDR3_ENDS`
    """
    if has_nucleotides(like):
        return drawn
    letters, codons = amino_acids(drawn, np.arange(len(drawn)))
    if ends_open(like):
        letters[np.arange(len(drawn)), codons - 1] = ord(CDR3_ENDS[1])
    codes = np.where(letters > 0, like.letters.code_of_byte[letters], 0).astype(np.uint8)
    return Repertoire(letter_words(codes), drawn.lengths, drawn.pairs, drawn.offsets, like.letters)


def ends_open(repertoire: Repertoire) -> bool:
    """Whether the repertoire has amino acids of CDR3s only.  The first junction decides, as all have the same ends."""
    if has_nucleotides(repertoire) or not len(repertoire):
        return False
    letters, codons = amino_acids(repertoire, np.arange(1))
    return bool(letters[0, codons[0] - 1] == ord(CDR3_ENDS[1]))


def gene_columns(pairs: Sequence[tuple[Any, Any]], kinds: NDArray[Any]) -> dict[str, pa.Array]:
    """Return the columns v_call and j_call of rows; `kinds` are the indices of their pairs of V and J."""
    names, rows = ("v_call", "j_call"), pa.array(kinds)
    genes = ([pair[side].allele for pair in pairs] for side in (0, 1))
    return {name: pa.array(of_side, pa.string()).take(rows) for name, of_side in zip(names, genes, strict=True)}


def amino_acid_column(repertoire: Repertoire, letters: Letters, lengths: Counts) -> dict[str, Any]:
    """The column of a table with amino acids of a repertoire: cdr3_aa if only CDR3s are known, else junction_aa."""
    if not ends_open(repertoire):
        return {"junction_aa": as_text(letters, lengths)}
    return {"cdr3_aa": as_text(letters[:, 1:], lengths - 2)}


def letter_words(letters: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Letters uint8 [rows, width] as numbers of the same order, uint64 [rows, width / 8]; 8 divides the width."""
    words = letters.view(">u8")
    numbers = np.empty(words.shape, dtype=np.uint64)

    def convert(part: tuple[int, int]) -> None:
        numbers[slice(*part)] = words[slice(*part)]

    on_threads(convert, parts_of(len(words), TAKEN_AT_ONCE))
    return numbers


def as_text(letters: Letters, lengths: Counts) -> Any:
    """Zero-padded ASCII as a pyarrow Array of text."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    data, places = np.empty(offsets[-1], dtype=np.uint8), np.arange(letters.shape[1])

    def copy(part: tuple[int, int]) -> None:
        first, stop = part
        of_part = letters[first:stop][places < lengths[first:stop, np.newaxis]]
        data[offsets[first] : offsets[stop]] = of_part

    on_threads(copy, parts_of(len(lengths), TAKEN_AT_ONCE))
    return pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(data))


def sequences(repertoire: Repertoire, rows: Counts) -> Any:
    """The letters of junctions as a pyarrow Array of text."""
    return as_text(*unpacked(repertoire, rows, max(1, repertoire.longest // repertoire.letters.bases)))


def without_genes(repertoire: Repertoire, left_out: Collection[str]) -> NDArray[np.bool_]:
    """Which junctions have none of the genes `left_out`, bool [junctions]."""
    kept = [{*v.allele.split(","), *j.allele.split(",")}.isdisjoint(left_out) for v, j in repertoire.pairs]
    return np.array(kept, dtype=bool)[kinds_of(repertoire)] if kept else np.ones(len(repertoire), dtype=bool)
