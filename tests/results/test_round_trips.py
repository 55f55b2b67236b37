"""The exported table in other people's hands: the airr library's validator, pandas, scirpy."""

import gzip
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.recombination.germline import read_germline
from hpcvdj.results.export import REQUIRED, export
from hpcvdj.results.reader import Result
from tests.conftest import GERMLINE, ROOT, SMALL
from tests.problems import count_to

REAL = ROOT.parent / "shared" / "data"
REPERTOIRES = {
    "simulated": (SMALL, GERMLINE),
    "human TRB": (REAL / "human_TRB_minervina_M15_CD8.tsv.gz", GERMLINE.with_name("human_trb.tsv")),
    "mouse TRA": (REAL / "mouse_TRA_dash2017.tsv.gz", GERMLINE.with_name("mouse_tra.tsv")),
    "mouse TRB": (REAL / "mouse_TRB_dash2017.tsv.gz", GERMLINE.with_name("mouse_trb.tsv")),
}
ROWS = 1000


@pytest.fixture(scope="module", params=REPERTOIRES)
def counted(request, tmp_path_factory):
    """A result of the first rows of a repertoire."""
    source, germline = REPERTOIRES[request.param]
    if not source.exists():
        pytest.skip(f"no {source}")
    folder = tmp_path_factory.mktemp("round_trip")
    with (gzip.open if source.suffix == ".gz" else open)(source, "rt") as stream:
        (folder / "in.tsv").write_text("".join(islice(stream, 1 + ROWS)))
    count_to(folder / "o.h5", folder / "in.tsv", read_germline(germline), Config(max_n=4))
    return folder / "o.h5"


def expected(path):
    """pathways_total by sequence_id, of the rows that were counted."""
    with Result(path) as result:
        frame = result.to_table().to_pandas()
    return dict(zip(frame["sequence_id"], frame["pathways_total"].astype(object), strict=True))


def test_the_airr_library_takes_the_export(counted, tmp_path):
    airr = pytest.importorskip("airr")
    assert list(REQUIRED) == airr.schema.RearrangementSchema.required
    export(counted, tmp_path / "t.tsv", airr=True)
    assert airr.validate_rearrangement(tmp_path / "t.tsv")
    export(counted, tmp_path / "t.tsv.gz", airr=True)
    with gzip.open(tmp_path / "t.tsv.gz", "rb") as stream:
        assert stream.read() == (tmp_path / "t.tsv").read_bytes()
    with open(tmp_path / "t.tsv") as stream:
        rows = list(airr.io.RearrangementReader(stream, validate=True))
    source = pd.read_csv(counted.with_name("in.tsv"), sep="\t", dtype=str)
    assert [row["junction"] for row in rows] == source["junction"].tolist()
    totals = {row["sequence_id"]: int(row["pathways_total"]) for row in rows if not row["pathways_excluded"]}
    assert totals == expected(counted)


def test_the_airr_library_loads_the_export(counted, tmp_path):
    airr = pytest.importorskip("airr")
    # Without --airr: load_rearrangement wants booleans without gaps, and the column rev_comp would be empty.
    export(counted, tmp_path / "t.tsv.gz")
    frame = airr.load_rearrangement(tmp_path / "t.tsv.gz")
    source = pd.read_csv(counted.with_name("in.tsv"), sep="\t", dtype=str)
    assert frame["sequence_id"].tolist() == source["sequence_id"].tolist()
    some = frame[frame["pathways_excluded"].fillna("") == ""]
    # It reads columns that it does not know as floats if they have gaps, and hands them on as text.
    totals = pd.to_numeric(some["pathways_total"]).astype(int)
    assert dict(zip(some["sequence_id"], totals, strict=True)) == expected(counted)


def test_pandas_reads_the_export(counted, tmp_path):
    export(counted, tmp_path / "t.tsv.gz")
    frame = pd.read_csv(tmp_path / "t.tsv.gz", sep="\t", dtype={"pathways_total": "UInt64", "pathways_n4": "UInt64"})
    source = pd.read_csv(counted.with_name("in.tsv"), sep="\t")
    pd.testing.assert_frame_equal(frame[source.columns], source)
    with Result(counted) as result:
        assert frame["pathways_total"].notna().sum() == len(result)
        assert frame["pathways_excluded"].notna().sum() == len(frame) - len(result)
        counters = result.counters[:][np.argsort(result.row)]
    assert frame["pathways_n4"].dropna().tolist() == counters[:, 4].tolist()


def test_scirpy_reads_the_export_with_its_counters(counted, tmp_path):
    scirpy = pytest.importorskip("scirpy")
    export(counted, tmp_path / "t.tsv", airr=True)
    # Bulk tables name neither cells nor loci: each chain is a cell of its own here.
    frame = pd.read_csv(tmp_path / "t.tsv", sep="\t", dtype=str)
    frame = frame.assign(cell_id=frame["sequence_id"], locus=frame["v_call"].str[:3])
    frame.to_csv(tmp_path / "cells.tsv", sep="\t", index=False)
    adata = scirpy.io.read_airr(tmp_path / "cells.tsv")
    found = {}
    for cell, chains in zip(adata.obs_names, adata.obsm["airr"], strict=True):
        (chain,) = chains.to_list()
        if chain["pathways_total"] not in (None, ""):
            found[cell] = int(chain["pathways_total"])
    assert found == expected(counted)
