"""The `baseline` kernel on a GPU."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.backends.cuda.device import on_gpu
from hpcvdj.backends.cuda.enumerating import EnumeratingKernel
from hpcvdj.backends.forms import FormTable
from hpcvdj.recombination.alphabet import unpack

PADDED = 64
"""Bytes of an in vivo sequence (the paper, section V-A)."""


class BaselineKernel(EnumeratingKernel):
    """One byte a base."""

    file = "baseline"
    most_d_forms = 1024

    def sequences(self) -> cupy.ndarray:
        """64 bytes a sequence."""
        out = np.zeros((len(self.repertoire), PADDED), dtype=np.uint8)
        for row, length in enumerate(self.repertoire.lengths):
            out[row, :length] = unpack(self.repertoire.words[row], int(length))
        return on_gpu(out)

    def table(self, forms: FormTable) -> NDArray[Any]:
        """64 bytes a form."""
        return np.pad(forms.codes, ((0, 0), (0, PADDED - forms.codes.shape[1])))

    def constants(self, forms: FormTable) -> tuple[tuple[str, NDArray[Any]], ...]:
        """Codes, 60 bytes a form, and lengths."""
        return ("d_codes", forms.codes), ("d_lengths", forms.lengths.astype(np.uint8))

    def shared(self, rows: int, capacity: int) -> int:
        """8 bytes a counter, 6 a start, 64 a sequence, 64 a thread for its nDn'."""
        return 8 * rows + 6 * capacity + PADDED * rows + PADDED * self.threads
