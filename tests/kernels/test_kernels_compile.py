"""Every kernel compiles for every architecture that hpcvdj supports, without a GPU."""

import pkgutil
import re

import pytest

from hpcvdj.kernels.source import OPTIONS, source
from tests.conftest import ROOT
from tests.kernels.host import fake_cupy
from tests.kernels.nvrtc import compile_for

NARROW, WIDE = (
    "unsigned int, unsigned short, unsigned int",
    "unsigned long long, unsigned int, unsigned long long",
)
"""Types of k-mers, of counters and offsets, and of sums."""

KERNELS = {
    "kernels/pathways/bitwise.cu": (),
    "kernels/pathways/baseline.cu": (),
    "kernels/pathways/direct.cu": tuple(
        f"direct<{width}, {count}>" for width in (2, 4) for count in ("int", "long long")
    ),
    "kernels/generation/draw.cu": tuple(f"draw<{width}>" for width in (1, 3, 5, 8)),
    "kernels/inference/errors.cu": ("expectation_with_errors<2>", "expectation_with_errors<4>"),
    "kernels/inference/expectation.cu": ("expectation<2>", "expectation<4>"),
    "kernels/kmers/join.cu": tuple(
        f"{name}<{key}{raw}>"
        for key in ("u32", "u64")
        for name, raw in (("fill_buckets", ""), ("join", ", false"), ("join", ", true"))
    ),
    "kernels/kmers/matrix.cu": (),
    "kernels/kmers/windows.cu": (),
    "kernels/neighbours/degrees.cu": (),
    "kernels/pgen/nt.cu": tuple(f"nucleotides<{width}, {staged}>" for width in (2, 4) for staged in ("true", "false")),
    "kernels/pgen/aa.cu": tuple(
        f"amino_acids<{width}, {ball}, {symbols}>"
        for symbols, widths in (("false", (2, 4)), ("true", (2, 4, 8)))
        for width in widths
        for ball in ("false", "true")
    ),
    "studies/hash_tables/tables.cu": (
        *(f"compare_buckets<{NARROW}, {team}, true, 128, 6>" for team in (0, 1, 32)),
        f"compare_buckets<{NARROW}, 32, false, 256, 3>",
        f"compare_buckets<{WIDE}, 1, false, 1024, 1>",
        f"compare_pairs<{NARROW}>",
        f"compare_pairs<{WIDE}>",
    ),
}
"""Template instances to compile, by file."""


ARCHITECTURES = [
    "compute_75",
    "sm_100",
    *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("sm_75", "sm_80", "sm_90")),
]
"""The oldest, to PTX, and the newest; what is between them differs only in the machine code.

Which functions an architecture has, and what a warp may do, the compiler checks before it makes machine code. There is
no assembly in the kernels, which it would not check.
"""

HOSTS = {
    "kernels/pathways/bitwise.cu": "hpcvdj.kernels.pathways.enumerating_cuda.BitwiseKernel.constants",
    "kernels/pathways/baseline.cu": "hpcvdj.kernels.pathways.enumerating_cuda.BaselineKernel.constants",
    "kernels/generation/draw.cu": "hpcvdj.kernels.generation.draw_cuda.CONSTANTS",
    "kernels/inference/errors.cu": "hpcvdj.kernels.inference.errors_cuda.CONSTANTS",
    "kernels/inference/expectation.cu": "hpcvdj.kernels.inference.expectation_cuda.CONSTANTS",
    "kernels/kmers/join.cu": "hpcvdj.kernels.kmers.kmers_cuda.CONSTANTS",
    "kernels/kmers/matrix.cu": "hpcvdj.kernels.kmers.kmers_cuda.CONSTANTS",
    "kernels/kmers/windows.cu": "hpcvdj.kernels.kmers.kmers_cuda.CONSTANTS",
    "kernels/pgen/nt.cu": "hpcvdj.kernels.pgen.nt_cuda.CONSTANTS",
    "kernels/pgen/aa.cu": "hpcvdj.kernels.pgen.aa_cuda.CONSTANTS",
}
"""The constants that the host passes to the compiler, by file, if any beside those of all kernels."""


@pytest.fixture
def constants(tmp_path, monkeypatch):
    """What the host passes to a kernel file; its modules import the stand-in for cupy."""

    def constants(name):
        return pkgutil.resolve_name(HOSTS[name]) if name in HOSTS else {}

    with fake_cupy.Fake(tmp_path).installed(monkeypatch):
        yield constants


def test_every_kernel_file_is_listed():
    files = {str(path.relative_to(ROOT / "hpcvdj")) for path in (ROOT / "hpcvdj").rglob("*.cu")}
    assert files == set(KERNELS)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", KERNELS)
def test_it_compiles_without_a_warning(name, architecture, constants):
    cubin, log = compile_for(architecture, source(name, **constants(name)), OPTIONS, KERNELS[name])
    assert cubin.lstrip().startswith(b"//") if architecture.startswith("compute_") else cubin.startswith(b"\x7fELF")
    assert log.strip("\0\n ") == ""


def test_no_kernel_has_assembly():
    """What an architecture lacks of it would show in the machine code only."""
    for path in (ROOT / "hpcvdj").rglob("*.cu*"):
        assert not re.search(r"\b(asm|__asm__)\b", path.read_text()), path


def test_headers_are_in_place_once():
    text = source("kernels/pathways/bitwise.cu", TILE_ROWS=32)
    assert text.startswith("#define TILE_ROWS 32\n")
    assert "#include" not in text
    assert text.count("struct Packed") == 1


def test_what_does_not_compile_fails():
    with pytest.raises(AssertionError, match="error"):
        compile_for("sm_90", "__global__ void kernel() { nothing; }", OPTIONS)


def test_what_the_oldest_architecture_lacks_fails():
    newer = "__global__ void kernel(unsigned *sum) { *sum = __reduce_add_sync(~0u, threadIdx.x); }"
    compile_for("compute_80", newer, OPTIONS)
    with pytest.raises(AssertionError, match="undefined"):
        compile_for("compute_75", newer, OPTIONS)
