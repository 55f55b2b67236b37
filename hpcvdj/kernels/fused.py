"""Products that are added and rounded once, in the order that is written.

numba's flag `contract` leaves it to the compiler which products are fused, and a process may have two compiled
copies of a function, of which the first to be loaded is called: the last bit of a sum then depends on what was
compiled before.  Kernels that are not compiled (NUMBA_DISABLE_JIT=1, for debuggers) round each product.
"""

from typing import Any

from numba import config, types
from numba.extending import intrinsic


def _fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once; a machine without such an instruction calls the C library."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


def _weighted(typing_context: Any, w: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """w[0] a + w[1] b + w[2] c + w[3] d, each product added to the sum of those before it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        weights, first, *others = arguments
        total = builder.fmul(builder.extract_value(weights, 0), first)
        for number, factor in enumerate(others, start=1):
            total = builder.fma(builder.extract_value(weights, number), factor, total)
        return total

    four = types.UniTuple(types.float64, 4)
    return types.float64(four, types.float64, types.float64, types.float64, types.float64), generate


def _plain_fma(a: float, b: float, c: float) -> float:
    return a * b + c


def _plain_weighted(w: tuple[float, float, float, float], a: float, b: float, c: float, d: float) -> float:
    return w[0] * a + w[1] * b + w[2] * c + w[3] * d


fma = _plain_fma if config.DISABLE_JIT else intrinsic(_fma)
weighted = _plain_weighted if config.DISABLE_JIT else intrinsic(_weighted)
