"""The partition of work over ranks: pure functions of (tasks, threads per block, rank, ranks).

The partition is that of the paper's section VI.  Two of its formulas are misprinted.  These functions implement the
intended formulas, and the tests prove that every task is done exactly once.
"""

from collections.abc import Sequence

from hpcvdj.runs.launcher import ROOT


def blocks_per_rank(tasks: int, threads_per_block: int, ranks: int) -> int:
    """Return the blocks of each rank: floor((tasks - 1) / (threads * ranks)) + 1 (equation 2).

    As typeset, (tasks - 1) / (threads * ranks + 1), equation 2 covers too few tasks: for 4^9 tasks, 128 threads
    and 2 GPUs it gives 1020 blocks, and 1024 n-nucleotides are never visited.  The paper's own example says
    1024, which is what this function returns.
    """
    if threads_per_block < 1 or ranks < 1 or tasks < 0:
        raise ValueError(f"{tasks} tasks, {threads_per_block} threads, {ranks} ranks")
    return (tasks - 1) // (threads_per_block * ranks) + 1 if tasks else 0


def block_range(tasks: int, threads_per_block: int, rank: int, ranks: int) -> tuple[int, int]:
    """Return the half-open range of tasks [first, last) of `rank`; empty for a rank without tasks.

    A GPU thread then does task first + thread + block * threads per block (equation 1, in which the paper's undefined
    GPUDim is a GPU's number of threads: blocks per GPU * threads per block).
    """
    if not 0 <= rank < ranks:
        raise ValueError(f"rank {rank} of {ranks}")
    share = blocks_per_rank(tasks, threads_per_block, ranks) * threads_per_block
    return min(rank * share, tasks), min((rank + 1) * share, tasks)


def evenly(sizes: Sequence[int], ranks: int, of_root: int = 0) -> list[list[int]]:
    """Return the items of each rank.  Assign the largest items first, each to the rank with the least work.

    sizes    sizes of the items
    of_root  size of the other work of root

    >>> evenly([10, 900, 20, 500, 400, 30], 2)
    [[1, 5], [3, 4, 2, 0]]
    """
    load, shares = [0] * ranks, list[list[int]]([] for _ in range(ranks))
    load[ROOT] = of_root
    for item in sorted(range(len(sizes)), key=lambda item: (-sizes[item], item)):
        rank = load.index(min(load))
        # All ranks share the items of size 0, too.
        load[rank] += max(sizes[item], 1)
        shares[rank].append(item)
    return shares
