"""How a comparison is cut: what a rank loads at a time."""

import numpy as np
import pytest

from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.kernels.kmers.sequences import sequence_set
from hpcvdj.motifs.settings import MotifConfig
from hpcvdj.motifs.tiles import layout_of
from tests.kernels.kmers.cases import random_text


@pytest.mark.parametrize(("method", "k", "each"), [("matrix", 9, 3 * 4**9), ("index", 12, 79 * 16 * 89)])
def test_a_load_takes_no_more_of_a_gpu_than_memory_says(method, k, each):
    """`each` bytes of a sequence of 100 bases: the neighbourhoods, or key, payload, position and bucket of an entry."""
    some = profile(sequence_set([random_text(np.random.default_rng(1), 100)] * 8192), k, 2)
    config = MotifConfig(k=k, d=2, method=method, memory=(1 << 29) / 1e9)
    layout = layout_of(some, config.choose("cuda", some), config.memory_bytes, 1)
    assert layout["load"] >= 512
    assert layout["load"] * each <= config.memory_bytes


@pytest.mark.parametrize("number", [700, 1300])
@pytest.mark.parametrize("method", ["index", "pigeonhole"])
def test_one_rank_loads_all_columns_at_once_if_they_fit(method, number):
    """Rows that are not among the loaded columns have to be put into tables once more."""
    some = profile(sequence_set([random_text(np.random.default_rng(1), 100)] * number), 12, 2)
    config = MotifConfig(k=12, d=2, method=method, memory=(1 << 33) / 1e9)
    assert layout_of(some, config.choose("cpu", some), config.memory_bytes, 1)["load"] >= number


def test_the_whole_of_a_profile_is_itself():
    """Its k-mers are then counted once: for the score, and for the comparison."""
    some = profile(sequence_set(["ACGTACGT", "ACGTTTTT"]), 4, 1)
    assert some.part(0, 2) is some
    assert some.part(0, 1).kmers.key.tolist() == some.kmers.part(0, 1).key.tolist()
