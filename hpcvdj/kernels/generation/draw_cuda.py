"""Drawing scenarios on a GPU."""

from typing import Any

import cupy
import numpy as np

from hpcvdj.kernels.device import ROWS, DeviceClock, Struct, compile_kernels, gpu_errors, in_batches
from hpcvdj.kernels.generation.draw_cpu import Drawn
from hpcvdj.kernels.generation.tables import BASE_BLOCK, EVENTS, FIRST_BASE, PAIR, DrawTables

FILE = "kernels/generation/draw.cu"

CONSTANTS: dict[str, int | type] = {
    "EVENTS": len(EVENTS), "BASE_BLOCK": BASE_BLOCK, "FIRST_BASE": FIRST_BASE, "PAIR": PAIR, "DrawTables": DrawTables,
}  # fmt: skip
"""What host and device share."""

THREADS = 256

MOST_BLOCKS = 1 << 20


class Sampler:
    """As `hpcvdj.kernels.generation.draw_cpu.Sampler`, and with the same results."""

    @gpu_errors()
    def __init__(self, tables: DrawTables) -> None:
        self.clock = DeviceClock()
        self._width, self._rows = tables.width, ROWS
        self._tables = Struct(tables)
        name = f"draw<{tables.width}>"
        self._kernel = compile_kernels(FILE, (name,), **CONSTANTS).get_function(name)

    @gpu_errors()
    def __call__(self, first: int, count: int, seed: int) -> Drawn:
        """Sequences first … first+count-1."""
        drawn = Drawn.empty(count, self._width)

        def batch(begin: int, end: int) -> None:
            arrays: tuple[Any, ...] = drawn
            for there, here in zip(self.on_device(first + begin, end - begin, seed), arrays, strict=True):
                there.get(out=here[begin:end])
            self.clock.pending(drawn.words)()

        self._rows = in_batches(batch, 0, count, self._rows)
        return drawn

    def on_device(self, first: int, count: int, seed: int) -> tuple[Any, ...]:
        """The same sequences, as arrays on the GPU."""
        out = Drawn.empty(count, self._width, cupy)
        blocks = min(MOST_BLOCKS, -(-count // THREADS))
        arguments = (np.uint64(first), np.uint64(seed), self._tables, np.int64(count), *out)
        self.clock.launch(self._kernel, (blocks,), THREADS, arguments, 0)
        return out
