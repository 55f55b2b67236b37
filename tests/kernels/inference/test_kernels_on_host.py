"""The CUDA kernel of the E step executed on the CPU, against the CPU kernel.

See tests/kernels/pathways/test_kernels_on_host.py for what that shows.
"""
import numpy as np, pytest
from tests.kernels.host import fake_cupy
from tests.kernels.inference.test_expectation import problem, random_rows, raw_counts
from tests.kernels.pgen.models import random_model

@pytest.fixture
def host(kernels, monkeypatch):
    fake = fake_cupy.Fake(kernels)
    with fake.installed(monkeypatch):
        yield fake

@pytest.mark.parametrize("has_d", [True, False])
def test_small(host, has_d):
    from hpcvdj.kernels.inference.expectation_cuda import ExpectationKernel
    for seed in range(4):
        model, rng = random_model(seed, has_d), np.random.default_rng(seed)
        own = problem(model, random_rows(model, rng, 60), rng.integers(0, 4, 60))
        a, b = raw_counts(own), raw_counts(own, ExpectationKernel)
        ends=np.cumsum(own.layout.sizes); 
        for part, x, y in zip(range(11), np.split(a, ends), np.split(b, ends)):
            print(seed, part, np.abs(x-y).max(initial=0), x.max(initial=0))
    assert 0
