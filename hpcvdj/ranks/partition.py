"""The partition of work over ranks and threads: pure functions of (tasks, threads per block, rank, ranks).

The paper's section VI.  Two of its formulas are misprinted; what stands here is the intent, and the tests
prove that every task is done exactly once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

THREADS_PER_BLOCK = 64
"""The default block size (the paper, section VIII-A, for n-lengths four to eight)."""


def blocks_per_rank(tasks: int, threads_per_block: int, ranks: int) -> int:
    """Blocks that each rank owns: floor((tasks - 1) / (threads * ranks)) + 1 (equation 2).

    As typeset, (tasks - 1) / (threads * ranks + 1), equation 2 covers too few tasks: for 4^9 tasks, 128 threads
    and 2 GPUs it gives 1020 blocks, and 1024 n-nucleotides are never visited.  The paper's own example says
    1024, which is what this gives.
    """
    _require(threads_per_block > 0 and ranks > 0 and tasks >= 0, "tasks, threads and ranks are counts")
    return (tasks - 1) // (threads_per_block * ranks) + 1 if tasks else 0


def block_range(tasks: int, threads_per_block: int, rank: int, ranks: int) -> tuple[int, int]:
    """The half-open range of tasks [first, last) of `rank`; empty for a rank left without tasks."""
    _require(0 <= rank < ranks, "a rank lies in 0 … ranks - 1")
    share = blocks_per_rank(tasks, threads_per_block, ranks) * threads_per_block
    return min(rank * share, tasks), min((rank + 1) * share, tasks)


def global_index(thread: int, block: int, rank: int, *, threads_per_block: int, blocks_per_rank: int) -> int:
    """The task of a thread: thread + block * blockDim + rank * GPUDim (equation 1).

    GPUDim, which the paper does not define, is a GPU's number of threads: blocks per GPU * threads per block.
    """
    return thread + block * threads_per_block + rank * blocks_per_rank * threads_per_block


def n_nucleotides(task: int, m: int) -> NDArray[np.uint8]:
    """The n-nucleotide string of a task: its k-th base is base-4 digit k of the task, uint8 [m] (Algorithm 3).

    As printed, Algorithm 3 is not a bijection: its index adds the task to the shifted task, and its first shift
    leaves the byte.  Digits give each of the 4^m strings to exactly one task.
    """
    _require(0 <= task < 4**m, "a task lies in 0 … 4^m - 1")
    return np.array([(task >> (2 * k)) & 3 for k in range(m)], dtype=np.uint8)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)
