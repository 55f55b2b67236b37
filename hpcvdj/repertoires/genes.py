"""Junctions by their V and J genes, and the amino acids that they code for."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.kernels.generation.letters import RESIDUES
from hpcvdj.kernels.text import translate_rows, unpack_rows
from hpcvdj.recombination.models import ANY, Alleles, Model
from hpcvdj.recombination.repertoire import CDR3_ENDS, Repertoire
from hpcvdj.recombination.symbols import Alphabet

Counts = NDArray[np.int64]
Letters = NDArray[np.uint8]


def by_gene(own: Repertoire, model: Model) -> tuple[Repertoire, Counts]:
    """The junctions with all alleles of their genes, by length, and the row of each among those of `own`.

    Calls name alleles or genes; what is compared across junctions is of genes.  Junctions without calls keep any.
    """

    def genes(segment: str, alleles: Alleles) -> Alleles:
        if alleles.allele == ANY:
            return alleles
        names = dict.fromkeys(name.partition("*")[0] for name in alleles.allele.split(","))
        places = {place for name in names for place in model.find(segment, name) or ()}  # type: ignore[arg-type]
        return Alleles(",".join(names), tuple(sorted(places & {*model.contributing(segment)})))  # type: ignore[arg-type]

    pairs = [(genes("V", v), genes("J", j)) for v, j in own.pairs]
    # In an order that does not depend on that of the rows.
    ordered = sorted(set(pairs), key=lambda pair: (pair[0].allele, pair[1].allele))
    found = {pair: kind for kind, pair in enumerate(ordered)}
    of_pair = [found[pair] for pair in pairs]
    # Narrow types are sorted faster.
    kind = np.repeat(np.array(of_pair, dtype=np.min_scalar_type(len(found))), np.diff(own.offsets))
    order = np.lexsort((own.lengths, kind))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(kind, minlength=len(found)))]).astype(np.int64)
    return Repertoire(own.words[order], own.lengths[order], list(found), offsets, own.letters), order


def kinds_of(own: Repertoire) -> Counts:
    """The place of each junction's pair in `pairs`, int64 [junctions]."""
    return np.repeat(np.arange(len(own.pairs)), np.diff(own.offsets))


def has_nucleotides(own: Repertoire) -> bool:
    """Whether junctions are nucleotides, not amino acids."""
    return not isinstance(own.letters, Alphabet)


def amino_acids(own: Repertoire, rows: Counts) -> tuple[Letters, Counts]:
    """Some junctions in amino acids: uint8 [rows, width], ASCII, zero-padded to whole words; int64 [rows], lengths."""
    codons = own.lengths[rows].astype(np.int64) // 3
    width = -(-int(codons.max(initial=1)) // 8) * 8
    letters = np.zeros((len(rows), width), dtype=np.uint8)
    if not has_nucleotides(own):
        symbols = np.frombuffer(own.letters.symbols.encode(), dtype=np.uint8)
        unpack_rows(own.words[rows], codons.astype(np.uint8), symbols, own.letters.bits, letters)
        return letters, codons
    translate_rows(own.words[rows], codons, RESIDUES, np.arange(len(rows)) * width, letters.reshape(-1))
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


def ends_open(own: Repertoire) -> bool:
    """Whether only the CDR3s of junctions are known, in amino acids, as all are then."""
    if has_nucleotides(own) or not len(own):
        return False
    letters, codons = amino_acids(own, np.arange(1))
    return bool(letters[0, codons[0] - 1] == ord(CDR3_ENDS[1]))


def amino_acid_column(own: Repertoire, letters: Letters, lengths: Counts) -> dict[str, Any]:
    """The column of tables that has some amino acids of a repertoire: junction_aa, or cdr3_aa if no more is known."""
    if not ends_open(own):
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


def sequences(own: Repertoire, rows: Counts) -> Any:
    """The letters of some junctions as a pyarrow Array of text."""
    bases = own.letters.bases
    lengths = own.lengths[rows] // np.uint8(bases)
    letters = np.zeros((len(rows), max(1, own.longest // bases)), dtype=np.uint8)
    symbols = np.frombuffer(own.letters.symbols.encode(), dtype=np.uint8)
    unpack_rows(own.words[rows], lengths, symbols, own.letters.bits, letters)
    return as_text(letters, lengths.astype(np.int64))


def without_genes(own: Repertoire, left_out: Collection[str]) -> NDArray[np.bool_]:
    """Which junctions have none of some genes, bool [junctions]."""
    kept = [{*v.allele.split(","), *j.allele.split(",")}.isdisjoint(left_out) for v, j in own.pairs]
    return np.array(kept, dtype=bool)[kinds_of(own)] if kept else np.ones(len(own), dtype=bool)
