"""hpcvdj from Python."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv

import hpcvdj
from tests.conftest import GERMLINE, SMALL


@pytest.fixture(scope="module")
def table():
    return csv.read_csv(SMALL, parse_options=csv.ParseOptions(delimiter="\t"))


def test_a_data_frame_in_and_out(table):
    frame = table.to_pandas().set_index(pd.Index(np.arange(500)[::-1]))
    frame.loc[frame.index[3], "v_call"] = "TRBV99"
    counted = hpcvdj.count(frame, GERMLINE, max_n=3)
    assert counted.index.equals(frame.index)
    assert counted[list(frame.columns)].equals(frame)
    assert str(counted["pathways_total"].dtype) == "UInt64"
    assert counted["pathways_total"].isna().sum() == 1
    assert counted["pathways_excluded"].iloc[3] == "V gene TRBV99 is not in the germline table"
    assert "pathways_n3" in counted
    assert "pathways_n4" not in counted


def test_arrow_and_pandas_agree_with_the_file(table, tmp_path, paper_germline):
    counted = hpcvdj.count(table, paper_germline)
    assert isinstance(counted, pa.Table)
    frame = hpcvdj.count(table.to_pandas(), paper_germline)
    assert counted["pathways_total"].to_pylist() == frame["pathways_total"].tolist()
    by_method = hpcvdj.count(table.slice(0, 20), paper_germline, method="bitwise", max_n=2)
    assert by_method["pathways_n2"].to_pylist() == counted["pathways_n2"].to_pylist()[:20]


def test_counting_twice_replaces_the_columns(table):
    once = hpcvdj.count(table, GERMLINE, max_n=2)
    assert hpcvdj.count(once, GERMLINE, max_n=2).equals(once)


def test_errors(table):
    with pytest.raises(hpcvdj.InputError, match="no such germline table"):
        hpcvdj.count(table, "none.tsv")
    with pytest.raises(hpcvdj.InputError, match="no column v_call"):
        hpcvdj.count(table.drop_columns(["v_call"]), GERMLINE)
    with pytest.raises(hpcvdj.InputError, match="data row 1"):
        hpcvdj.count(pa.table({"v_call": ["X"], "j_call": ["Y"], "junction": ["TGTTTT"]}), GERMLINE, strict=True)
    with pytest.raises(AttributeError):
        hpcvdj.nothing  # noqa: B018


def test_names():
    assert set(hpcvdj.__all__) <= set(dir(hpcvdj))
    for name in hpcvdj.__all__:
        assert getattr(hpcvdj, name) is not None
