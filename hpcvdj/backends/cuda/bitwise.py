"""The `bitwise` kernel on a GPU."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.backends.cuda.device import on_gpu
from hpcvdj.backends.cuda.enumerating import EnumeratingKernel
from hpcvdj.backends.forms import WORDS, FormTable


class BitwiseKernel(EnumeratingKernel):
    """Two bits a base: Algorithms 2 and 3."""

    file = "bitwise"
    most_d_forms = 3072

    def sequences(self) -> cupy.ndarray:
        """The paper's 16 bytes a sequence."""
        return on_gpu(self.repertoire.words[:, :WORDS])

    def table(self, forms: FormTable) -> NDArray[Any]:
        """16 bytes a form."""
        return forms.packed

    def constants(self, forms: FormTable) -> tuple[tuple[str, NDArray[Any]], ...]:
        """Words and lengths."""
        return ("d_words", forms.packed), ("d_lengths", forms.lengths.astype(np.uint8))

    def shared(self, rows: int, capacity: int) -> int:
        """24 bytes a start (the sequence behind it, its row and length), 4 its head, 2 whose head; 8 a counter."""
        return (24 + 4 + 2) * capacity + 8 * rows
