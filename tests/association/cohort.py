"""A cohort of 40 drawn donors, half of them cases, in whom eight sequences are planted; and how it is asked."""

from types import SimpleNamespace

import numpy as np

import hpcvdj
from tests.association.drawn import GENES, metadata

DONORS = 40
CASE = np.arange(DONORS) % 2 == 0
BATCH = np.repeat(["x", "y"], DONORS // 2)
SIZES = np.where(CASE, 500, 250)


def asked(tables, model, *, columns=None, **options):
    given = {"case": {"disease": "ill"}, "draws": 2_000, "backend": "cpu", "max_p": 1.0, **options}
    about = metadata(CASE, lane=BATCH, age=range(DONORS), **(columns or {}))
    return hpcvdj.associate(tables, model, metadata=about, **given)


def carriers_by_loops(tables):
    """The donors of each V, J and amino acids."""
    has = {}
    for k, table in enumerate(tables.values()):
        columns = [table[name].to_pylist() for name in GENES]
        texts = hpcvdj.translate(columns[2])
        for v, j, text in zip(columns[0], columns[1], texts, strict=True):
            has.setdefault((v.partition("*")[0], j.partition("*")[0], text), set()).add(k)
    return has


def rows_of(answer):
    """What facts need of rows: the names of the donors."""
    return SimpleNamespace(inputs=SimpleNamespace(repertoires=answer.cohort.names))
