"""A process that compiles the kernels and one that loads them give the same bytes."""

import os
import subprocess
import sys

import pytest

from hpcvdj import kernels
from tests.conftest import ROOT

PRINTED = """
import hashlib, numpy, hpcvdj
from hpcvdj.kernels.pgen import aa_cpu
rows = hpcvdj.generate("mouse_tra", 2000, seed=5, backend="cpu")
values = numpy.asarray(hpcvdj.pgen(rows, "mouse_tra", sequence="aa", backend="cpu")["pgen_aa"], float)
print(hashlib.sha256(values.tobytes()).hexdigest(), bool(aa_cpu.amino_acid_rows.stats.cache_hits))
"""


@pytest.mark.exhaustive
def test_a_fresh_cache_gives_the_same_bytes(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    (compiled, from_cache), (loaded, from_cache_later) = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PRINTED],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert (from_cache, from_cache_later) == ("False", "True")
    assert compiled == loaded


def test_no_kernel_leaves_rounding_to_the_compiler():
    """`fastmath` is how the last bit came to differ; `hpcvdj.kernels.fused` says which products are added in one."""
    (folder,) = kernels.__path__
    with_it = [path.name for path in ROOT.joinpath(folder).rglob("*.py") if "fastmath" in path.read_text("utf-8")]
    assert with_it == []


NOT_COMPILED = """
import hpcvdj, pyarrow
rows = pyarrow.table({"v_call": ["TRBV12-3/12-4"], "j_call": ["TRBJ1-1"],
                      "junction": ["TGTGCCAGCAGTTTAGGACAGAACACTGAAGCTTTCTTT"]})
made = hpcvdj.pgen(rows, "human_trb_m15", sequence="both", mismatches=1, backend="cpu")
print(*(made[name][0].as_py() for name in ("pgen_nt", "pgen_aa", "pgen_aa_1mm")))
"""


@pytest.mark.slow
def test_kernels_that_are_not_compiled_give_the_same_numbers():
    """For debuggers: numba's NUMBA_DISABLE_JIT; products are then rounded before they are added."""
    plain, compiled = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", NOT_COMPILED],
            env=os.environ | {"PYTHONPATH": str(ROOT), **disabled},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for disabled in ({"NUMBA_DISABLE_JIT": "1"}, {})
    )
    assert len(plain) == 3
    assert [float(value) for value in plain] == pytest.approx([float(value) for value in compiled], rel=1e-13)
