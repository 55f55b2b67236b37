"""OLGA (GPL-3.0) as a peer: imported if it is installed, nothing of it is copied.

OLGA 1.3.0 does not sum the longest insertion of some models in one reading frame: its loop over codons ends after
(n + 3) // 3 steps, where n is the number of lengths, so that with n = 2 (mod 3) an insertion that begins a codon is
never as long.  Three more zeros after the lengths complete the loop.

`SequenceGeneration` objects of OLGA change the model's arrays in place: none is made here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hpcvdj.recombination.igor import OLGA_FOLDERS, olga_folder

VERSION = "1.3.0"


class Olga:
    """A model of OLGA.

    fast      with the numba-compiled sums of `olga.performance.fast_pgen`
    alphabet  the file of a custom alphabet
    """

    def __init__(self, name: str, *, complete: bool, fast: bool = False, alphabet: Path | None = None) -> None:
        from olga import generation_probability, load_model

        folder = olga_folder()
        assert folder is not None
        folder = folder / OLGA_FOLDERS[name]
        kind = "VDJ" if name.endswith(("trb", "igh")) else "VJ"
        genomic, generative = (
            getattr(load_model, f"GenomicData{kind}")(),
            getattr(load_model, f"GenerativeModel{kind}")(),
        )
        anchors = (str(folder / f"{segment_type}_gene_CDR3_anchors.csv") for segment_type in "VJ")
        genomic.load_igor_genomic_data(str(folder / "model_params.txt"), *anchors)
        generative.load_and_process_igor_model(str(folder / "model_marginals.txt"))
        symbols = str(alphabet) if alphabet else None
        self._model = getattr(generation_probability, f"GenerationProbability{kind}")(generative, genomic, symbols)
        if complete:
            for insertion in ("PinsVD", "PinsDJ") if kind == "VDJ" else ("PinsVJ",):
                setattr(self._model, insertion, np.append(getattr(self._model, insertion), np.zeros(3)))
        if fast:
            from olga.performance.fast_pgen import FastPgen

            self._model = FastPgen(self._model)

    def nt(self, junction: str, v_call: str, j_call: str) -> float:
        """The probability of a junction in frame; calls are lists with commas, and empty for all genes."""
        return float(self._model.compute_nt_CDR3_pgen(junction, *map(_mask, (v_call, j_call)), print_warnings=False))

    def alleles(self, segment_type: str, name: str) -> tuple[int, ...]:
        """The places of the V or J alleles that a name means; all if OLGA does not know it."""
        calls = (name, None) if segment_type == "V" else (None, name)
        masks = self._model.format_usage_masks(*calls, print_warnings=False)
        return tuple(sorted(set(masks["VJ".index(segment_type)])))

    def aa(self, amino_acids: str, v_call: str, j_call: str) -> float:
        """The probability of amino acids."""
        return float(self._model.compute_aa_CDR3_pgen(amino_acids, *map(_mask, (v_call, j_call)), print_warnings=False))


def _mask(call: str) -> Any:
    """A call as OLGA takes it."""
    return call.split(",") if call else None
