"""FastSK's kernel of sequences in a file: the peer of benchmarks/motifs.py.

FastSK (Apache-2.0) is imported; nothing of it is copied.  It has a process of its own, since it keeps the memory of
every kernel and prints to stdout.

python benchmarks/_fastsk.py SEQUENCES.npz TARGET.npz K M THREADS
"""

import sys
import time
from itertools import pairwise

import numpy as np

CHECKED = 500
"""The largest number of sequences whose kernel comes back: FastSK returns it as Python lists."""


def main(source: str, target: str, k: int, m: int, threads: int) -> None:
    """Time FastSK from letters as lists of numbers, which it takes, to its normalised kernel, left where it is."""
    from fastsk import FastSK

    with np.load(source) as stored:
        codes, offsets = stored["codes"], stored["offsets"]
    # Its counting sort needs letters 0, 1, … without a gap.
    letters = np.unique(codes, return_inverse=True)[1]
    texts = [letters[first:last].tolist() for first, last in pairwise(offsets)]
    program = FastSK(g=k, m=m, t=threads)
    start, cpu = time.perf_counter(), time.process_time()
    program.compute_train(texts)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    kernel = program.get_train_kernel() if len(texts) <= CHECKED else []
    np.savez(target, seconds=seconds, cpu_seconds=cpu_seconds, kernel=np.array(kernel))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
