"""Generation probabilities by vdjtools 5: a peer of benchmarks/pgen_peers.py and benchmarks/pgen_cpu.py.

vdjtools (GPL-3.0-or-later) is imported if it is installed; nothing of it is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

VERSION = "5.2.2"

INSTALLED = find_spec("vdjtools") is not None

Call = tuple[str, str]
"""V and J allele; both empty for all genes."""


class Vdjtools:
    """A model of OLGA as vdjtools reads it, and its compiled sums on one thread."""

    def __init__(self, name: str) -> None:
        from vdjtools.model import native
        from vdjtools.model.io import from_olga

        from hpcvdj.recombination.igor import OLGA_FOLDERS, olga_folder

        folder = olga_folder()
        assert folder is not None
        organism, locus = name.split("_")
        self._model = from_olga(folder / OLGA_FOLDERS[name], locus=locus.upper(), organism=organism)
        self._native = native

    def nt(self, junctions: Sequence[str], calls: Sequence[Call]) -> list[float]:
        """Probabilities of nucleotide sequences."""
        return [
            self._native.pgen_nt(self._model, text, v or None, j or None)
            for text, (v, j) in zip(junctions, calls, strict=True)
        ]

    def aa(self, texts: Sequence[str], calls: Sequence[Call], mismatches: int = 0) -> list[float]:
        """Probabilities of amino-acid sequences, or of all within one mismatch."""
        v, j = ([name or None for name in names] for names in zip(*calls, strict=True))
        return list(self._native.pgen_aa_batch(self._model, list(texts), v, j, mismatches=mismatches, threads=1))
