"""Arguments of kernels, declared once: as NamedTuples, which numba takes, and as the same structs in CUDA C++."""

from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import DTypeLike

TABLE = """
// Values that no kernel changes, which the compiler does not see of pointers in a struct.
template <typename T>
struct Values {
    const T *at;

    __device__ __forceinline__ T operator[](long long k) const { return __ldg(at + k); }
    __device__ __forceinline__ Values operator+(long long k) const { return {at + k}; }
};

template <typename T>
struct Table : Values<T> {
    int rows, width;  // its first dimension, and the product of the others

    __device__ __forceinline__ Values<T> row(long long k) const { return *this + k * width; }
};
"""
"""Arrays in structs."""

POINTER = np.dtype([("at", np.uint64), ("rows", np.int32), ("width", np.int32)], align=True)
"""The same for the host."""

NAMES = {
    np.float64: "double", np.int64: "int", np.int32: "int", np.uint64: "unsigned long long", np.uint32: "unsigned int",
    np.uint16: "unsigned short", np.uint8: "unsigned char",
}  # fmt: skip
"""What CUDA C++ calls the elements of arrays; places in tables have 32 bits on a GPU."""


def declarations(structs: dict[str, type]) -> str:
    """The structs of NamedTuples, whose fields are arrays or integers, under the names that the kernels know."""
    text = TABLE if structs else ""
    for name, struct in structs.items():
        kinds = {field: element(hint) for field, hint in get_type_hints(struct).items()}
        lines = (f"    {f'Table<{NAMES[kind]}>' if kind else 'int'} {field};\n" for field, kind in kinds.items())
        text += f"struct {name} {{\n{''.join(lines)}}};\n"
    return text


def element(hint: Any) -> type[np.generic] | None:
    """The type of the elements of an array, from its annotation; None of an integer."""
    if hint is int:
        return None
    # `dtype[int64]`, or `int64` itself: from Python 3.12 on, `NDArray` is an alias with the latter as its argument.
    last = get_args(hint)[-1]
    kept: type[np.generic] = (get_args(last) or (last,))[0]
    return kept


def struct_type(struct: type) -> np.dtype[Any]:
    """The struct as a type of NumPy's."""
    kinds: list[tuple[str, DTypeLike]] = [
        (name, POINTER if element(hint) else np.int32) for name, hint in get_type_hints(struct).items()
    ]
    return np.dtype(kinds, align=True)


def places(sizes: NamedTuple) -> tuple[Any, int]:
    """Where parts of these sizes begin, one after another, each at a multiple of 16, and the size of all."""
    padded = np.array([-(-size // 16) * 16 for size in sizes], dtype=np.int64)
    return type(sizes)(*map(int, padded.cumsum() - padded)), int(padded.sum())  # type: ignore[call-overload]
