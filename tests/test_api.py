"""hpcvdj from Python."""

import json
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv

import hpcvdj
from hpcvdj.recombination.symbols import Alphabet
from tests.commands import hpcvdj_command
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


@pytest.mark.slow
def test_a_folder_is_one_table(tmp_path, write_parts):
    """Of several individuals, or of one in parts."""
    model = "human_trb_m15"
    table = hpcvdj.generate(model, 500, productive=True).select(["v_call", "j_call", "junction", "junction_aa"])
    tables = tmp_path / "tables"
    tables.mkdir()
    for name, part in {"a": table.slice(0, 200), "b": table.slice(200).append_column("age", [["9"] * 300])}.items():
        csv.write_csv(part, tables / f"{name}.tsv", csv.WriteOptions(delimiter="\t"))
    read = hpcvdj.read_table(tables)
    assert read["repertoire_id"].to_pylist() == ["a"] * 200 + ["b"] * 300
    assert read["age"].to_pylist() == [None] * 200 + [9] * 300
    expected = hpcvdj.count(table, "human", max_n=2)
    counted = hpcvdj.count(tables, "human", max_n=2)
    assert counted.column_names == [*read.column_names, *expected.column_names[table.num_columns :]]
    assert counted["weight"].to_pylist() == expected["weight"].to_pylist()
    write_parts(tmp_path / "parts.dataset", table, 150)
    for folder, names in ((tables, "a b"), (tmp_path / "parts.dataset", "parts")):
        of_folder, of_table = (hpcvdj.pgen(given, model) for given in (folder, table))
        assert of_folder["pgen_nt"].to_pylist() == of_table["pgen_nt"].to_pylist()
        assert " ".join(dict.fromkeys(of_folder["repertoire_id"].to_pylist())) == names
    parts = hpcvdj.enrich(tmp_path / "parts.dataset", model, kappa=1, min_neighbours=1)
    assert parts.table.equals(hpcvdj.enrich(table, model, kappa=1, min_neighbours=1).table)
    assert parts.clonotypes > 400
    with pytest.raises(hpcvdj.InputError, match="2 repertoires"):
        hpcvdj.enrich(tables, model, kappa=1)
    fits = [hpcvdj.infer(given, model, iterations=1, hold_out=0, rows="all") for given in (tables, table)]
    assert fits[0].trace[-1].log_likelihood == fits[1].trace[-1].log_likelihood
    (tables / "b.tsv").write_text("v_call\tjunction\nTRBV1\tTGT\n")
    with pytest.raises(hpcvdj.InputError, match=r"b\.tsv, line 1: no column j_call"):
        hpcvdj.pgen(tables, model)


def test_productive_cdr3s_end_with_phe_val_or_trp(tmp_path):
    """Their probabilities add up to at most 1; with any residue at the end, junctions that are not productive count."""
    model, options = "human_trb_m15", {"genes": "any", "normalize": "productive", "force": True}

    def pgen(**columns):
        return hpcvdj.pgen(pa.table(columns), model, **options)["pgen_aa"].to_pylist()

    cdr3s = ["ASSLGETQY", "ASSXBJZQY", "AMSGDYSNNRLT", "A"]
    for cdr3, found in zip(cdr3s, pgen(cdr3_aa=cdr3s), strict=True):
        assert found == pytest.approx(sum(pgen(junction_aa=[f"C{cdr3}{last}" for last in "FVW"])), rel=1e-13, abs=0)
    every = sum(value or 0 for value in pgen(cdr3_aa=["X" * length for length in range(60)]))
    assert 0.99999 < every <= 1 + 1e-12
    assert hpcvdj.pgen(pa.table({"cdr3_aa": ["ASS\x1e"]}), model, genes="any")["pgen_aa"].to_pylist() == [None]
    (tmp_path / "c.tsv").write_text("cdr3_aa\nASSLGETQY\n")
    words = "pgen", tmp_path / "c.tsv", "-m", model, "--genes", "any", "--normalize", "productive", "--force"
    hpcvdj_command(*words, "-o", tmp_path / "c.h5")
    with hpcvdj.open(tmp_path / "c.h5") as result:
        assert (result.all().texts("cdr3"), result.all().texts("anchors")) == (["ASSLGETQY"], ["CX"])
        assert result.to_numpy()[0].tolist() == pgen(cdr3_aa=["ASSLGETQY"])
        assert json.loads(result.provenance["config"])["alphabet"] == {}
    assert Alphabet.of({"x": ["D"]}).with_productive_end().definitions() == {"x": ["GAC", "GAT"]}


def test_the_weight_is_the_sum_of_the_columns(table):
    counted = hpcvdj.count(table, GERMLINE, max_n=3)
    columns = [counted[f"pathways_n{m}"].to_pylist() for m in range(4)]
    expected = [float(sum(Fraction(count, 4**m) for m, count in enumerate(row))) for row in zip(*columns, strict=True)]
    assert counted["weight"].to_pylist() == expected
    assert counted.schema.field("weight").type == pa.float64()
    fewer = hpcvdj.count(table, GERMLINE, max_n=2)["weight"].to_pylist()
    assert all(less <= more for less, more in zip(fewer, expected, strict=True))
    assert fewer != expected


def test_counting_twice_replaces_the_columns(table):
    once = hpcvdj.count(table, GERMLINE, max_n=2)
    assert hpcvdj.count(once, GERMLINE, max_n=2).equals(once)


def test_a_frame_without_rows_has_the_same_columns(table):
    frame = table.to_pandas()
    empty, counted = (hpcvdj.count(part, GERMLINE, max_n=2) for part in (frame.head(0), frame))
    assert len(empty) == 0
    added = [name for name in counted if name not in frame]
    assert empty[added].dtypes.astype(str).tolist() == counted[added].dtypes.astype(str).tolist()


def test_what_is_no_model_or_no_list(table):
    with pytest.raises(hpcvdj.InputError, match="read_table reads a file, not a Table; functions take tables as they"):
        hpcvdj.read_table(table)
    sparse = table.to_pandas().assign(more=pd.arrays.SparseArray([0] * len(table)))
    with pytest.raises(hpcvdj.InputError, match=r"a column of the table cannot be read .*more.*; convert it"):
        hpcvdj.count(sparse, GERMLINE)
    with pytest.raises(hpcvdj.InputError, match="None is no model; give a Model, the name of one, or its folder"):
        hpcvdj.pgen(table, None)
    with pytest.raises(hpcvdj.InputError, match=r"not one; give \[sequence\]"):
        hpcvdj.translate("TGTGCC")


def test_errors(table):
    with pytest.raises(hpcvdj.InputError, match="no such germline table"):
        hpcvdj.count(table, "none.tsv")
    with pytest.raises(hpcvdj.InputError, match="no column v_call"):
        hpcvdj.count(table.drop_columns(["v_call"]), GERMLINE)
    with pytest.raises(hpcvdj.InputError, match="data row 1"):
        hpcvdj.count(pa.table({"v_call": ["X"], "j_call": ["Y"], "junction": ["TGTTTT"]}), GERMLINE, strict=True)
    with pytest.raises(AttributeError):
        hpcvdj.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_forms": "Distinct"}, "d_forms must be one of paper, distinct (got 'Distinct')"),
        ({"unlisted_alleles": "frist"}, "unlisted_alleles must be one of exclude, first (got 'frist')"),
        ({"ambiguous_calls": True}, "ambiguous_calls must be one of exclude, first (got True)"),
        ({"sequence_field": "cdr3_nt"}, "sequence_field must be one of junction, cdr3 (got 'cdr3_nt')"),
        ({"max_n": 3.5}, "max_n=3.5: give a number from 0 to 128, or all"),
        ({"max_n": "ALL"}, "max_n='ALL': give a number from 0 to 128, or all"),
        ({"max_n": -1}, "max_n=-1: give a number from 0 to 128, or all"),
        ({"method": "fast"}, "fast"),
        ({"backend": "gpu"}, "backend must be one of auto, cuda, cpu (got 'gpu')"),
    ],
)
def test_wrong_choices(table, options, message):
    with pytest.raises(hpcvdj.InputError, match=re.escape(message)):
        hpcvdj.count(table.slice(0, 5), GERMLINE, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_p": -1}, "max_p=-1: give a number from 0 to 10"),
        ({"max_p": 11}, "max_p=11: give a number from 0 to 10"),
        ({"max_p": 2.5}, "max_p=2.5: give a number from 0 to 10"),
        ({"d_alleles": "x"}, "d_alleles must be one of first, all (got 'x')"),
    ],
)
def test_wrong_germline_options(options, message):
    with pytest.raises(hpcvdj.InputError, match=re.escape(message)):
        hpcvdj.read_germline(GERMLINE, **options)


@pytest.mark.parametrize("options", [{"d_forms": "q"}, {"max_n": "foo"}, {"sequence_field": "x"}])
def test_wrong_options_of_explain(paper_germline, options):
    with pytest.raises(hpcvdj.InputError, match=next(iter(options))):
        hpcvdj.explain("TGTGCCTTT", "TRBV26", "TRBJ2-5", paper_germline, **options)


def test_a_list_with_missing_sequences():
    """A missing value of pandas was an error of pyarrow."""
    junction = "TGTGCCAGCAGTTTCGGGACAGGGTACGAGCAGTACTTC"
    for missing in (None, float("nan"), pd.NA):
        for given in ([junction, missing], pd.Series([junction, missing])):
            first, second = hpcvdj.pgen(given, "human_trb_m15", genes="any", backend="cpu").to_pylist()
            assert (first["pgen_nt"] > 0, first["pgen_excluded"]) == (True, "")
            assert (second["pgen_nt"], second["pgen_excluded"]) == (None, "no junction")


def test_a_column_of_mixed_types(table):
    frame = table.to_pandas().head(4)
    frame["junction"] = [None, "", float("nan"), 5]
    with pytest.raises(hpcvdj.InputError, match=r"a column of mixed types .*junction"):
        hpcvdj.count(frame, GERMLINE)


def test_a_number_beyond_64_bits(table):
    """It was an OverflowError of pyarrow."""
    frame = table.to_pandas().head(4).assign(note=[10**25] * 4)
    with pytest.raises(hpcvdj.InputError, match="a column of the table cannot be read"):
        hpcvdj.count(frame, GERMLINE)


def test_two_columns_of_one_name(table):
    frame = table.to_pandas().head(4)
    twice = frame[[*frame.columns, "v_call"]]
    with pytest.raises(hpcvdj.InputError, match=r"several columns of one name \(v_call\)"):
        hpcvdj.count(twice, GERMLINE)


def test_names():
    assert set(hpcvdj.__all__) <= set(dir(hpcvdj))
    for name in hpcvdj.__all__:
        assert getattr(hpcvdj, name) is not None


@pytest.mark.parametrize(("function", "further"), [
    ("sharing", ("human_igk",)), ("contamination", ("human_igk",)), ("infer_selection", ("human_igk",)),
    ("enrich", ("human_igk",)), ("analyze", ("human_igk", "analysis")), ("convert", ("converted.tsv",)),
])  # fmt: skip
def test_no_table_is_refused(function, further, tmp_path, monkeypatch):
    """It was an IndexError, or another error that named no cause."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hpcvdj.InputError, match="no table is given; give the paths of tables"):
        getattr(hpcvdj, function)([], *further)
