"""The CUDA comparison on the CPU: hpcvdj's kernels compiled by g++, its host code on a stand-in for cupy."""

import sys

from tests.kernels.host import fake_cupy

MODULES = (
    "hpcvdj.kernels.device",
    "hpcvdj.kernels.kmers.kmers_cuda",
    "hpcvdj.kernels.kmers.join_cuda",
    "hpcvdj.kernels.kmers.matrix_cuda",
    "hpcvdj.studies.hash_tables.compare_cuda",
)
"""Modules that import cupy."""


def begin(folder, monkeypatch):
    """Put the stand-in in cupy's place; compiled kernels are kept in `folder`."""
    fake = fake_cupy.Fake(folder)
    forget()
    for name, module in fake.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    from hpcvdj.kernels.backends import CudaBackend

    def open_it(self, local_rank=0):
        self._name, self.device, self.uuid = "host", 0, "GPU-host"

    # Its own way asks the driver, which is not there.
    monkeypatch.setattr(CudaBackend, "__init__", open_it)
    return fake


def forget():
    """Remove the modules that have the stand-in, or the real one, from the imported modules."""
    for name in MODULES:
        sys.modules.pop(name, None)
