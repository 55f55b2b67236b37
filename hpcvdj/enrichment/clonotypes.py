"""Clonotypes: the amino-acid junctions of each V and J gene, and the nucleotide junctions that spell them."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.generation.letters import RESIDUES
from hpcvdj.kernels.neighbours.blocks import blocks, equal_runs
from hpcvdj.kernels.neighbours.misread import misread
from hpcvdj.kernels.text import translate_rows
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.junctions import Junctions

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Clonotypes:
    """Clonotypes, sorted by class, length and letters.

    classes   (V genes, J genes) as alleles of the model, of each class
    kind      int64 [clonotypes]: the class
    letters   uint8 [clonotypes, width]: the amino acids as ASCII
    lengths   int64 [clonotypes]: how many
    variants  int64 [clonotypes]: distinct nucleotide junctions
    reads     int64 [clonotypes]: their reads added up; None if the input does not say
    repertoire one of the nucleotide junctions of each clonotype
    left_out  rows that take no part, by the reason
    """

    classes: list[tuple[Alleles, Alleles]]
    kind: Counts
    letters: NDArray[np.uint8]
    lengths: Counts
    variants: Counts
    reads: Counts | None
    repertoire: Repertoire
    left_out: dict[str, int]

    def __len__(self) -> int:
        return len(self.kind)

    def texts(self, rows: Counts) -> pa.StringArray:
        """The amino acids of some clonotypes."""
        lengths = self.lengths[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        letters = self.letters[rows][np.arange(self.letters.shape[1]) < lengths[:, np.newaxis]]
        return pa.LargeStringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(letters)).cast(
            pa.string()
        )


def by_gene(own: Repertoire, model: Model) -> tuple[Repertoire, Counts]:
    """The junctions with all alleles of their genes, by length, and the row of each among those of `own`.

    Calls name alleles or genes; neighbours share genes.
    """

    def genes(segment: str, alleles: Alleles) -> Alleles:
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


def clonotypes_of(
    junctions: Junctions, reads: Counts | None, model: Model, *, min_reads: int = 1, errors: bool = False
) -> Clonotypes:
    """The clonotypes of productive junctions.

    reads         int64 [data rows] of the input, at least 1; None if it does not say
    min_reads  that a nucleotide junction must have
    errors        keep likely sequencing errors

    InputError if none is left.
    """
    own, order = by_gene(junctions.repertoire, model)
    kind = np.repeat(np.arange(len(own.pairs)), np.diff(own.offsets))
    lengths = own.lengths.astype(np.int64)
    same, first = equal_runs(own.words, blocks(lengths, kind)[1])
    rows = same[first]
    of_row = np.ones(len(own), dtype=np.int64) if reads is None else reads[junctions.row[order[same]]]
    summed = np.add.reduceat(of_row, first) if len(first) else of_row
    left_out = {"junctions that another row has": len(own) - len(rows)}
    keep = summed >= min_reads
    left_out[f"fewer than {min_reads} reads"] = int((~keep).sum())
    if reads is not None and not errors:
        wrong = misread(own.words[rows], summed, blocks(lengths[rows], kind[rows])[1])
        left_out["likely sequencing errors"] = int((wrong & keep).sum())
        keep &= ~wrong
    if not keep.any():
        said = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items() if number)
        raise InputError(f"no clonotype is left ({said or 'no row could be read'})")
    return _translated(own, rows[keep], kind[rows[keep]], summed[keep] if reads is not None else None, left_out)


def letter_words(letters: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Letters uint8 [rows, width], the width a multiple of 8, as numbers of the same order, uint64 [rows, words]."""
    return letters.view(">u8").astype(np.uint64)


def _translated(
    own: Repertoire, rows: Counts, kind: Counts, reads: Counts | None, left_out: dict[str, int]
) -> Clonotypes:
    """The clonotypes of distinct junctions: the `rows` of `own`, in blocks."""
    codons = own.lengths[rows].astype(np.int64) // 3
    width = -(-int(codons.max()) // 8) * 8
    letters = np.zeros((len(rows), width), dtype=np.uint8)
    translate_rows(own.words[rows], codons, RESIDUES, np.arange(len(rows)) * width, letters.reshape(-1))
    same, first = equal_runs(letter_words(letters), blocks(codons, kind)[1])
    chosen = same[first]
    offsets = np.searchsorted(kind[chosen], np.arange(len(own.pairs) + 1))
    spelled = Repertoire(own.words[rows[chosen]], own.lengths[rows[chosen]], own.pairs, offsets, own.letters)
    return Clonotypes(
        own.pairs, kind[chosen], letters[chosen], codons[chosen], np.diff(np.append(first, len(rows))),
        None if reads is None else np.add.reduceat(reads[same], first), spelled, left_out,
    )  # fmt: skip
