"""The D genes as the `direct` kernels take them: which base each place of the extended segments has."""

import numpy as np

from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import encode
from hpcvdj.recombination.germline import extended_d
from hpcvdj.recombination.repertoire import Problem

WORD_BITS = 64
"""Places in a machine word."""


class DTable:
    """The D genes of each locus as bit masks, and how many empty forms they have.

    ends    uint64 [loci, words, 4]      bit k of ends[l, w, c]: place k of the word is base c
    genes   uint64 [loci, words, genes]  the places of each gene in a word (zero: not in this word)
    words   int64  [loci]                words in use; 0 for a locus without D genes
    empty   int64  [loci]                empty D forms
    """

    def __init__(self, problem: Problem, loci: list[str]) -> None:
        packed = [self._packed(problem, locus) for locus in loci]
        most = max((len(words) for words in packed), default=0)
        per_word = max((len(word) for words in packed for word in words), default=0)
        self.ends = np.zeros((len(loci), max(1, most), 4), dtype=np.uint64)
        self.genes = np.zeros((len(loci), max(1, most), max(1, per_word)), dtype=np.uint64)
        self.words = np.array([len(words) for words in packed], dtype=np.int64)
        self.empty = np.zeros(len(loci), dtype=np.int64)
        for k, words in enumerate(packed):
            for w, word in enumerate(words):
                self._fill(k, w, word, distinct=problem.distinct_d_forms)

    @staticmethod
    def _packed(problem: Problem, locus: str) -> list[list[str]]:
        """Extended D segments in as few words as first fit gives, one free bit between two of them."""
        words: list[list[str]] = []
        for segment in problem.germline.d_segments(locus):
            text = extended_d(segment.sequence, problem.germline.max_p)
            if len(text) > WORD_BITS:
                raise InputError(
                    f"{problem.germline.name}: {segment.allele} with its P-nucleotides has {len(text)} bases, and "
                    f"method direct takes at most {WORD_BITS}; use --method bitwise"
                )
            fits = (w for w in words if sum(map(len, w)) + len(w) + len(text) <= WORD_BITS)
            room = next(fits, None)
            if room is None:
                words.append([text])
            else:
                room.append(text)
        return words

    def _fill(self, locus: int, word: int, texts: list[str], *, distinct: bool) -> None:
        place = 0
        for gene, text in enumerate(texts):
            self.empty[locus] += 1 if distinct else len(text)
            for code in encode(text):
                self.ends[locus, word, code] |= np.uint64(1 << place)
                self.genes[locus, word, gene] |= np.uint64(1 << place)
                place += 1
            place += 1
