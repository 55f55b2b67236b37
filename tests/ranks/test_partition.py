"""hpcvdj.runs.partition: every task exactly once, whatever the numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.ranks import partition

counts = {"tasks": st.integers(0, 5000), "threads": st.integers(1, 300), "ranks": st.integers(1, 9)}


@given(**counts)
def test_each_task_belongs_to_one_rank(tasks, threads, ranks):
    ranges = [partition.block_range(tasks, threads, rank, ranks) for rank in range(ranks)]
    assert [task for first, last in ranges for task in range(first, last)] == list(range(tasks))


@given(**counts)
def test_global_index_reaches_each_task_once(tasks, threads, ranks):
    """Equation (1) over equation (2)'s blocks: all threads below the number of tasks, none twice."""
    blocks = partition.blocks_per_rank(tasks, threads, ranks)
    thread, block, rank = np.meshgrid(np.arange(threads), np.arange(blocks), np.arange(ranks), indexing="ij")
    index = partition.global_index(thread, block, rank, threads_per_block=threads, blocks_per_rank=blocks)
    assert np.array_equal(np.unique(index[index < tasks]), np.arange(tasks))
    assert len(np.unique(index)) == index.size


def test_the_papers_example():
    """4^9 strings, 128 threads: 2048 blocks on one GPU, 1024 on each of two (section VI)."""
    assert partition.blocks_per_rank(4**9, 128, 1) == 2048
    assert partition.blocks_per_rank(4**9, 128, 2) == 1024


def test_equation_2_as_typeset_leaves_tasks_out():
    blocks = (4**9 - 1) // (128 * 2 + 1)
    assert blocks == 1020
    assert 4**9 - blocks * 128 * 2 == 1024


@pytest.mark.parametrize("m", range(11))
def test_the_task_generator_is_a_bijection(m):
    """Each of the 4^m strings comes from exactly one task (Algorithm 3 as meant)."""
    tasks = np.arange(4**m)
    digits = (tasks[:, None] >> (2 * np.arange(m))) & 3
    assert len(np.unique(digits, axis=0)) == 4**m
    for task in {0, 4**m // 3, 4**m - 1}:
        assert partition.n_nucleotides(task, m).tolist() == digits[task].tolist()


def test_algorithm_3_as_printed_is_no_bijection():
    def printed(task, m):
        """Base k of byte i: {G + G / 4^(4i + (j - 2) / 2)} % 4 with j = 2(k + 1)."""
        return tuple((task + task // 4 ** (4 * (k // 4) + k % 4)) % 4 for k in range(m))

    assert len({printed(task, 3) for task in range(64)}) < 64


def test_sum_of_strings_that_the_paper_misprints():
    assert sum(4**m for m in range(11)) == 1_398_101
    assert 1_398_101 - 4**7 == 1_381_717


@pytest.mark.parametrize(("rank", "ranks"), [(-1, 2), (2, 2)])
def test_a_rank_outside_is_refused(rank, ranks):
    with pytest.raises(ValueError, match="rank"):
        partition.block_range(10, 4, rank, ranks)


def test_a_task_outside_is_refused():
    with pytest.raises(ValueError, match="task"):
        partition.n_nucleotides(16, 2)
