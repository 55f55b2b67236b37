"""The D genes as the `direct` kernels take them: which base each place of the extended segments has."""

import numpy as np

from hpcvdj.errors import InputError, option
from hpcvdj.recombination.alphabet import encode
from hpcvdj.recombination.germline import extended_d
from hpcvdj.recombination.repertoire import Problem

WORD_BITS = 64
"""Places in a machine word."""


class DTable:
    """The D genes of each locus as bit masks, and how many empty forms they have.

    locus   int64  [pairs]               the locus of each V–J pair
    ends    uint64 [loci, words, 4]      bit k of ends[l, w, c]: place k of the word is base c
    genes   uint64 [loci, words, genes]  the places of each gene in a word (zero: not in this word)
    words   int64  [loci]                words in use; 0 for a locus without D genes
    empty   int64  [loci]                empty D forms
    """

    def __init__(self, problem: Problem) -> None:
        loci = problem.germline.loci
        self.locus = np.array([loci.index(locus) for locus in problem.loci], dtype=np.int64)
        packed = [self._packed(problem, locus) for locus in loci]
        most = max([1, *map(len, packed)])
        per_word = max((len(word) for words in packed for word in words), default=1)
        self.ends = np.zeros((len(loci), most, 4), dtype=np.uint64)
        self.genes = np.zeros((len(loci), most, per_word), dtype=np.uint64)
        self.words = np.array([len(words) for words in packed], dtype=np.int64)
        self.empty = np.zeros(len(loci), dtype=np.int64)
        for k, words in enumerate(packed):
            for w, word in enumerate(words):
                bit = 0
                for gene, text in enumerate(word):
                    self.empty[k] += 1 if problem.distinct_d_forms else len(text)
                    for code in encode(text):
                        self.ends[k, w, code] |= np.uint64(1 << bit)
                        self.genes[k, w, gene] |= np.uint64(1 << bit)
                        bit += 1
                    bit += 1

    @staticmethod
    def _packed(problem: Problem, locus: str) -> list[list[str]]:
        """Extended D segments in as few words as first fit gives, one free bit between two of them."""
        words: list[list[str]] = []
        for segment in problem.germline.d_segments(locus):
            text = extended_d(segment.sequence, problem.germline.max_p)
            if len(text) > WORD_BITS:
                raise InputError(
                    f"{problem.germline.name}: {segment.allele} with its P-nucleotides has {len(text)} bases, and "
                    f"method direct takes at most {WORD_BITS}; use {option('method', 'bitwise')}"
                )
            room = next((w for w in words if sum(map(len, w)) + len(w) + len(text) <= WORD_BITS), None)
            if room is None:
                words.append(room := [])
            room.append(text)
        return words
