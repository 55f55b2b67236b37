"""What the tests of several kernels share."""

from __future__ import annotations

import pytest

from tests.kernels.host import fake_cupy


@pytest.fixture
def cuda_on_host(kernels, monkeypatch):
    """The CUDA backend on the host."""
    fake = fake_cupy.Fake(kernels)
    with fake.installed(monkeypatch):
        yield fake
