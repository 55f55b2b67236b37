"""Cohorts that are drawn from a model, for several tests."""

import numpy as np
import pyarrow as pa

import hpcvdj
from hpcvdj.cohorts.cohort import People, cohort_of
from hpcvdj.repertoires.reading import productive_reading
from tests.dealt import dealt_of, read_together

COLUMNS = ["sequence_id", "v_call", "j_call", "junction"]

SIZES = [4_000, 16_000, 8_000, 12_000, 10_000]
"""Junctions of the individuals of the fixture `table`."""


def drawn(model, number, seed):
    """Productive junctions."""
    return hpcvdj.generate(model, number, seed=seed, productive=True, backend="cpu").select([*COLUMNS, "junction_aa"])


def with_individuals(rows, sizes):
    """The rows, given to individuals a, b, … one after another."""
    names = np.repeat([chr(ord("a") + k) for k in range(len(sizes))], sizes)
    return rows.slice(0, len(names)).append_column("repertoire_id", pa.array(names))


def cohort_in(table, model, groups=None):
    """The cohort of a table in memory."""
    junctions = read_together(table, model, productive_reading(reads=True))
    people = None if groups is None else People({name: name for name in groups}, groups)
    return cohort_of(dealt_of(junctions, model), model, people)
