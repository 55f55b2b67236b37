"""The CUDA comparison on the CPU: hpcvdj's kernels compiled by g++, its host code on a stand-in for cupy."""

import sys

from tests.backends.host import fake_cupy

FOLDERS = ("hpcvdj.kernels.cuda", "hpcvdj.motifs.cuda", "hpcvdj.studies.hash_tables.compare_cuda")


def begin(kernels, monkeypatch):
    """The stand-in in cupy's place; `kernels` is a folder of compiled kernels."""
    fake = fake_cupy.Fake(kernels)
    forget()
    for name, module in fake.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    return fake


def forget():
    """Modules that hold the stand-in, or the real one."""
    for name in [name for name in sys.modules if name.startswith(FOLDERS)]:
        del sys.modules[name]
