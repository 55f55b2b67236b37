"""Tables are read in several threads, whatever numba's threading layer."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

READ = """
import numba, numpy as np, pyarrow as pa
from hpcvdj.kernels.generation.letters import productive_rows
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.junctions import read_junctions
from hpcvdj.repertoires.tables import Table
from pathlib import Path
rows = 4_000
row = {"v_call": "TRBV9", "j_call": "TRBJ2-7", "junction": "TGTGCCAGCAGCTACGAGCAGTACTTC"}
batch = pa.RecordBatch.from_pylist([row] * rows)
read = read_junctions([batch] * 60, load_model("human_trb_m15"), productive_reading(), [Table(Path("t"))])
assert len(read) == 60 * rows
productive_rows(read.repertoire.words, read.repertoire.lengths.astype("u2"), np.empty(len(read), bool))
assert numba.threading_layer() == "workqueue"
"""


@pytest.mark.slow
def test_the_layer_that_takes_one_thread_at_a_time():
    """Without libgomp or TBB, as in slim containers, numba ends the process if two threads use its threads."""
    environment = {**os.environ, "NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "4"}
    done = subprocess.run(
        [sys.executable, "-c", READ], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
