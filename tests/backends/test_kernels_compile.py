"""Every kernel compiles for every architecture that hpcvdj supports, without a GPU."""

import pytest

from hpcvdj.kernels.source import OPTIONS, source
from tests.backends.nvrtc import compile_for

NARROW, WIDE = (
    "unsigned int, unsigned short, unsigned short, unsigned int",
    "unsigned long long, unsigned short, unsigned int, unsigned long long",
)
"""Types of k-mers, of counters and offsets of rows and columns, and of sums."""

KERNELS = {
    "bitwise.cu": (),
    "baseline.cu": (),
    "motif_bitslice.cu": (),
    "motif_join.cu": tuple(
        f"{name}<{key}{raw}>"
        for key in ("unsigned", "word")
        for name, raw in (("fill_buckets", ""), ("join", ", false"), ("join", ", true"))
    ),
    "motif_matrix.cu": (),
    "motif_windows.cu": (),
    "direct.cu": tuple(f"direct<{width}, {count}>" for width in (2, 4) for count in ("int", "long long")),
    "motif_tables.cu": (
        *(f"compare_buckets<{NARROW}, {team}, {kept}, true, 1, 1, 128, 1>" for team in (0, 32) for kept in (-1, 0)),
        f"compare_buckets<{NARROW}, 1, 4, true, 4, 4, 256, 3>",
        f"compare_buckets<{WIDE}, 1, 3, false, 2, 3, 1024, 1>",
        f"compare_pairs<{NARROW}>",
        f"compare_pairs<{WIDE}>",
    ),
}


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("name", KERNELS)
def test_it_compiles_without_a_warning(name, architecture):
    cubin, log = compile_for(architecture, source(name), OPTIONS, KERNELS[name])
    assert cubin.startswith(b"\x7fELF")
    assert log.strip("\0\n ") == ""


def test_headers_are_in_place_once():
    text = source("bitwise.cu")
    assert "#include" not in text
    assert text.count("struct Packed") == 1


def test_what_does_not_compile_fails():
    with pytest.raises(AssertionError, match="error"):
        compile_for("sm_90", "__global__ void kernel() { nothing; }", OPTIONS)
