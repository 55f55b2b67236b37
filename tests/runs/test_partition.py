"""hpcvdj.runs.partition: every task is done exactly once, and what the paper misprints."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.kernels.pathways.bitwise_cpu import _n_nucleotides
from hpcvdj.runs.partition import block_range, blocks_per_rank, evenly


@given(tasks=st.integers(0, 5000), threads=st.integers(1, 300), ranks=st.integers(1, 9))
def test_each_task_belongs_to_one_rank(tasks, threads, ranks):
    ranges = [block_range(tasks, threads, rank, ranks) for rank in range(ranks)]
    assert [task for first, last in ranges for task in range(first, last)] == list(range(tasks))
    # Whole blocks, except for the last task.
    assert all(first % threads == 0 or first == tasks for first, _ in ranges)


def test_the_papers_example():
    """4^9 strings, 128 threads: 2048 blocks on one GPU, 1024 on each of two (section VI)."""
    assert blocks_per_rank(4**9, 128, 1) == 2048
    assert blocks_per_rank(4**9, 128, 2) == 1024


def test_equation_2_as_typeset_leaves_tasks_out():
    blocks = (4**9 - 1) // (128 * 2 + 1)
    assert blocks == 1020
    assert 4**9 - blocks * 128 * 2 == 1024


@pytest.mark.parametrize("m", range(9))
def test_the_kernels_task_generator_is_a_bijection(m):
    """Each of the 4^m strings comes from exactly one task: its base k is base-4 digit k (Algorithm 3 as meant)."""
    strings = np.array([_n_nucleotides(task, m) for task in range(4**m)], dtype=np.uint64)
    assert len(np.unique(strings)) == 4**m
    digits = (np.arange(4**m)[:, None] >> (2 * np.arange(m))) & 3
    shifts = 62 - 2 * np.arange(m)
    assert np.array_equal(strings, (digits.astype(np.uint64) << shifts.astype(np.uint64)).sum(axis=1, dtype=np.uint64))


def test_algorithm_3_as_printed_is_no_bijection():
    def printed(task, m):
        """Base k of byte i: {G + G / 4^(4i + (j - 2) / 2)} % 4 with j = 2(k + 1)."""
        return tuple((task + task // 4 ** (4 * (k // 4) + k % 4)) % 4 for k in range(m))

    assert len({printed(task, 3) for task in range(64)}) < 64


def test_sum_of_strings_that_the_paper_misprints():
    assert sum(4**m for m in range(11)) == 1_398_101
    assert 1_398_101 - 4**7 == 1_381_717


@pytest.mark.parametrize(("rank", "ranks"), [(-1, 2), (2, 2), (0, 0)])
def test_a_rank_outside_is_refused(rank, ranks):
    with pytest.raises(ValueError, match="rank"):
        block_range(10, 4, rank, ranks)


@pytest.mark.parametrize(("tasks", "threads"), [(-1, 4), (3, 0)])
def test_impossible_sizes_are_refused(tasks, threads):
    with pytest.raises(ValueError, match="tasks"):
        blocks_per_rank(tasks, threads, 1)


@given(sizes=st.lists(st.integers(0, 50)), ranks=st.integers(1, 5), of_root=st.integers(0, 100))
def test_items_are_shared_evenly(sizes, ranks, of_root):
    own = evenly(sizes, ranks, of_root)
    assert sorted(item for items in own for item in items) == list(range(len(sizes)))
    # Without its last item, which is its smallest, no rank has more than another.
    load = [sum(max(sizes[item], 1) for item in items) + of_root * (rank == 0) for rank, items in enumerate(own)]
    for rank, items in enumerate(own):
        assert not items or load[rank] - max(sizes[items[-1]], 1) <= min(load)
