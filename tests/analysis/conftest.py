"""A drawn cohort, and few draws in each step."""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

import hpcvdj
from hpcvdj.analysis import steps
from tests.analysis.drawn import COLUMNS, DRAWS, MODEL


@pytest.fixture(scope="module")
def few_draws():
    """Each step draws anew; a tenth of the draws is enough to see what a step writes, and when it is done again."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("ContaminationSettings", "SharingSettings", "AssociationSettings"):
            patched.setattr(steps, name, partial(getattr(steps, name), draws=DRAWS))
        yield


@pytest.fixture(scope="session")
def cohort(tmp_path_factory):
    """The tables of four people of one model, and what is known of them."""
    folder = tmp_path_factory.mktemp("cohort")
    (folder / "tables").mkdir()
    drawn = hpcvdj.generate(MODEL, 4_800, seed=5, productive=True, backend="cpu").select(COLUMNS)
    reads = pa.array(2 + np.random.default_rng(1).geometric(0.05, len(drawn)))
    drawn = drawn.append_column("duplicate_count", reads)
    for k in range(4):
        csv.write_csv(
            drawn.slice(1_200 * k, 1_200), folder / "tables" / f"d{k}.tsv",
            csv.WriteOptions(delimiter="\t", quoting_style="none"),
        )  # fmt: skip
    (folder / "people.tsv").write_text("donor\till\tbatch\nd0\tyes\tx\nd1\tno\tx\nd2\tyes\ty\nd3\tno\ty\n")
    return folder
