"""Choosing sequences of a result and joining them to other tables, from one file and from parts."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.counting.config import Config
from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import d_forms, j_forms, v_forms
from hpcvdj.recombination.pathways import direct_sum
from hpcvdj.results import selection
from tests.commands import hpcvdj_command
from tests.conftest import GERMLINE, SMALL
from tests.problems import count_to

MAX_N = 5
EXCLUDED = (3, 140, 410)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The small example with three rows that cannot be counted."""
    header, *rows = SMALL.read_text().splitlines(keepends=True)
    for k in EXCLUDED:
        cells = rows[k].split("\t")
        cells[1] = "TRBV999"
        rows[k] = "\t".join(cells)
    path = tmp_path_factory.mktemp("table") / "t.tsv"
    path.write_text(header + "".join(rows))
    return path


@pytest.fixture(scope="module", params=["one file", "parts"])
def path(request, table, paper_germline, tmp_path_factory):
    """A result of one file, and the same of parts."""
    target = tmp_path_factory.mktemp("result") / "out.h5"
    in_parts = request.param == "parts"
    count_to(target, table, paper_germline, Config(max_n=MAX_N), rows=137 * in_parts)
    assert target.with_name("out.h5.parts").is_dir() == in_parts
    return target


@pytest.fixture
def result(path):
    with hpcvdj.open(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def frame(table):
    return pd.read_csv(table, sep="\t")


@pytest.fixture(scope="module")
def expected(frame, paper_germline):
    """Counters of the input's rows by the definition, row by row; None for those that cannot be counted."""

    def counters(record):
        v, j = (paper_germline.find(kind, record[f"{kind.lower()}_call"]) for kind in "VJ")
        if v is None:
            return None
        d = [form for segment in paper_germline.d_segments("TRB") for form in d_forms(segment.sequence)]
        return direct_sum(record["junction"][3:-3], v_forms(v.sequence), d, j_forms(j.sequence), MAX_N)

    return [counters(record) if k < 60 or k in EXCLUDED else ... for k, record in enumerate(frame.to_dict("records"))]


@pytest.mark.slow
def test_a_pair_is_whole(result, frame):
    counters = result.counters[:]
    for v, j in {(v, j) for v, j, _ in result.pairs}:
        chosen = result.pair(v, j)
        rows = np.flatnonzero((frame.v_call == v) & (frame.j_call == j))
        assert sorted(chosen.row.tolist()) == rows.tolist()
        assert chosen.counters.dtype == np.uint64
        assert chosen.counters.shape == (len(rows), MAX_N + 1)
        assert chosen.to_numpy().tolist() == counters[chosen.index].tolist()
        assert set(chosen.to_pandas().v_call) == {v}


def test_a_pair_that_is_not_there(result):
    v, j, _ = result.pairs[0]
    with pytest.raises(InputError, match=r"no sequence was counted with TRBV1\*99 and .*; of TRBV1 it has TRBV1\*01"):
        result.pair("TRBV1*99", j)
    with pytest.raises(InputError, match=r"result\.pairs lists all"):
        result.pair("TRBV999*01", j)
    with pytest.raises(InputError, match="no sequence was counted"):
        result.pair(v.partition("*")[0], j)


def test_chosen_by_rows_of_the_input(result, frame, expected):
    chosen = result.select(rows=[0, 7, 59, 59])
    assert len(chosen) == 3
    records = chosen.to_pandas().set_index("row")
    for row in (0, 7, 59):
        assert records.loc[row, "sequence_id"] == frame.sequence_id[row]
        assert records.loc[row, "cdr3"] == frame.junction[row][3:-3]
        assert [records.loc[row, f"pathways_n{m}"] for m in range(MAX_N + 1)] == expected[row]
        assert records.loc[row, "pathways_total"] == sum(expected[row])
    with pytest.raises(InputError, match=r"no row 3 among .*it was excluded: V gene TRBV999 is not in the germline"):
        result.select(rows=[0, 3])
    with pytest.raises(InputError, match=r"no row 500 among .*nothing was counted under it"):
        result.select(rows=np.array([500]))
    assert len(result.select(rows=[])) == 0
    assert result.select(rows=range(0)).counters.shape == (0, MAX_N + 1)


@pytest.mark.parametrize(
    "rows",
    [np.array([False, True, True]), [True, False], [1.5], ["1"], [None], 1, [[1]], pd.Series([True, False])],
)
def test_rows_that_are_no_numbers_of_rows(result, rows):
    """A mask selected rows 0 and 1."""
    with pytest.raises(InputError, match=r"^rows: give a list of data rows, .* of a mask, numpy.flatnonzero\(mask\)$"):
        result.select(rows=rows)


def test_rows_in_any_list(result):
    known = result.select().column("row")[:3].tolist()
    for rows in (known, iter(known), np.array(known, np.uint64), pd.Index(known), pd.Series(known)):
        assert len(result.select(rows=rows)) == 3
    assert len(result.select(rows=[])) == 0
    with pytest.raises(InputError, match="min_pathways: give a number, not NaN"):
        result.select(min_pathways=float("nan"))


def test_chosen_by_id(result, frame):
    ids = frame.sequence_id[[9, 200]].tolist()
    assert sorted(result.select(sequence_id=ids).texts("sequence_id")) == sorted(ids)
    assert len(result.select(sequence_id=ids[0])) == 1
    with pytest.raises(InputError, match="no sequence_id nobody among"):
        result.select(sequence_id="nobody")
    with pytest.raises(InputError, match="it was excluded: V gene"):
        result.select(sequence_id=frame.sequence_id[3])


def test_chosen_by_pathways_and_calls(result, frame, monkeypatch, caplog):
    monkeypatch.setattr(selection, "BLOCK_BYTES", 4400)
    totals = result.counters[:].sum(axis=1)
    for least in (0, 1, 1000, int(np.median(totals)), int(totals.max()), int(totals.max()) + 1, 1 << 70):
        chosen = result.select(min_pathways=least)
        assert chosen.index.tolist() == np.flatnonzero([int(total) >= least for total in totals]).tolist()
        assert chosen.total.tolist() == totals[chosen.index].tolist()
    least = int(np.median(totals))
    chosen = result.select(v_call="TRBV1", min_pathways=least)
    assert 0 < len(chosen) < len(result.select(v_call="TRBV1*01"))
    assert chosen.index.tolist() == result.select(min_pathways=least).select(v_call="TRBV1*01").index.tolist()
    several = result.select(v_call=["TRBV1", "TRBV2*01"])
    assert len(several) == len(result.select(v_call="TRBV1")) + len(result.select(v_call="TRBV2*01"))
    assert len(result.select(v_call="TRBV2*01")) > 0
    assert not caplog.messages
    assert len(result.select(j_call="TRBJ9")) == 0
    assert "nothing was counted with the j_call TRBJ9; it has TRBJ1-1, TRBJ1-2, " in caplog.text
    gene = [call.partition("*")[0] == "TRBV1" for call in frame.v_call]
    assert len(result.select(v_call="TRBV1")) == sum(gene) - sum(gene[k] for k in EXCLUDED)


def test_all_of_it(result, monkeypatch):
    table = result.to_table()
    monkeypatch.setattr(selection, "BLOCK_BYTES", 600)
    assert isinstance(table, pa.Table)
    assert result.to_table().equals(table)
    assert result.to_pandas().equals(table.to_pandas())
    assert result.to_numpy().tolist() == result.counters[:].tolist()
    assert table["pathways_total"].to_pylist() == result.all().total.tolist()
    assert repr(result.select(rows=[0])) == f"<1 of 497 sequences of {result.path}>"


def test_joined_by_id_in_any_order(result, frame, expected):
    shuffled = frame.sample(frac=1, random_state=1)
    extra = pd.DataFrame({"sequence_id": ["stranger", None]}, index=[1000, 1001])
    joined = result.join(pd.concat([shuffled, extra]))
    assert joined.index.tolist() == [*shuffled.index, 1000, 1001]
    assert str(joined.pathways_total.dtype) == "UInt64"
    for row, value in enumerate(expected):
        if value is None:
            assert pd.isna(joined.pathways_total[row])
            assert joined.pathways_excluded[row].startswith("V gene TRBV999")
        elif value is not ...:
            assert [joined[f"pathways_n{m}"][row] for m in range(MAX_N + 1)] == value
            assert joined.pathways_excluded[row] == ""
    assert joined.pathways_excluded[[1000, 1001]].tolist() == ["not in the result"] * 2
    assert joined.pathways_total.isna().sum() == 5
    assert result.join(joined).equals(joined)


def test_joined_by_row_is_what_count_gives(result, frame, paper_germline):
    counted = hpcvdj.count(frame, paper_germline, max_n=MAX_N)
    assert result.join(frame, on="row").equals(counted)
    assert result.join(frame.drop(columns="sequence_id"), on="row")["pathways_n3"].equals(counted["pathways_n3"])


def test_a_join_that_would_be_wrong(result, frame):
    with pytest.raises(InputError, match=r"row 5 of the table has the junction \w+, but another was counted"):
        result.join(frame.assign(junction=[*frame.junction[:5], "TGTTTT", *frame.junction[6:]]))
    with pytest.raises(InputError, match=r"row 0 of the table has the junction \w+, but another"):
        result.join(frame[::-1], on="row")
    with pytest.raises(InputError, match="is of a table of 500 rows, but this table has 499"):
        result.join(frame[1:], on="row")
    with pytest.raises(InputError, match="no column sequence_id"):
        result.join(frame.drop(columns="sequence_id"))
    with pytest.raises(InputError, match="on must be one of sequence_id, row"):
        result.join(frame, on="junction")
    with pytest.raises(InputError, match="cannot read junctions from a list"):
        result.join(["a"])


def test_calls_of_other_genes_than_were_counted_are_told(result, frame, caplog):
    result.join(frame)
    spelled = frame.v_call.str.replace("TRBV", "TCRBV0").str.split("*").str[0]
    result.join(frame.assign(v_call=spelled, j_call=frame.j_call.str.replace("*01", "*02", regex=False)))
    assert caplog.text == ""
    result.join(frame.assign(v_call=[None, "NA"] * (len(frame) // 2), j_call=""))
    assert caplog.text == "", "no call is of another gene"
    other = frame.j_call.where(frame.index % 2 == 0, "TRBJ2-7*01")
    counted = result.row[[call.partition("*")[0] != "TRBJ2-7" for call in result.all().texts("j_call")]]
    joined = result.join(frame.assign(j_call=other))
    assert (
        f": {(counted % 2).sum()} rows of the table have a V or J call of another gene than was counted" in caplog.text
    )
    assert "such as TRBJ2-7*01 for TRBJ" in caplog.text
    assert joined.pathways_total.equals(result.join(frame).pathways_total)


def test_a_join_of_arrow(result, frame):
    joined = result.join(pa.Table.from_pandas(frame))
    totals = result.join(frame)["pathways_total"]
    assert joined["pathways_total"].to_pylist() == [None if pd.isna(total) else total for total in totals]


def test_a_repeated_id_is_not_a_key(tmp_path, paper_germline, frame):
    twice = frame.head(10).copy()
    twice.loc[9, "sequence_id"] = twice.loc[0, "sequence_id"]
    twice.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    count_to(tmp_path / "o.h5", tmp_path / "t.tsv", paper_germline)
    with hpcvdj.open(tmp_path / "o.h5") as result:
        with pytest.raises(InputError, match=r"several rows .* have sequence_id insilico_0; join on='row'"):
            result.join(twice)
        assert result.join(twice, on="row").pathways_excluded[9].startswith("sequence_id repeats")
        assert result.join(twice[1:9]).pathways_total.notna().sum() == 7


def test_an_id_that_repeats_in_another_part_is_not_a_key(tmp_path, paper_germline, frame):
    """Slices do not see each other's ids."""
    twice = frame.head(10).copy()
    twice.loc[9, "sequence_id"] = twice.loc[0, "sequence_id"]
    twice.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    count_to(tmp_path / "o.h5", tmp_path / "t.tsv", paper_germline, rows=5)
    with hpcvdj.open(tmp_path / "o.h5") as result:
        assert len(result.select(sequence_id=twice.sequence_id[0])) == 2
        with pytest.raises(InputError, match="several rows of the counted table have"):
            result.join(twice)
        counted = hpcvdj.count(twice.drop(columns="sequence_id"), paper_germline, max_n=2)
        joined = result.join(twice[1:9])
        for name in ("pathways_n2", "pathways_total"):
            assert [v for v in joined[name] if v is not pd.NA] == [v for v in counted[name][1:9] if v is not pd.NA]


def test_a_result_without_its_parts_is_refused(path, tmp_path):
    """HDF5 would read zeros."""
    if not path.with_name("out.h5.parts").is_dir():
        pytest.skip("one file")
    alone = tmp_path / "out.h5"
    alone.write_bytes(path.read_bytes())
    with pytest.raises(
        InputError, match=r"its part .*part-000000\.h5 is missing; keep out\.h5 and out\.h5\.parts together"
    ):
        hpcvdj.open(alone)


def test_a_library_that_is_missing(result, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pandas is not installed; pip install 'hpcvdj\[pandas\]'"):
        result.to_pandas()


@pytest.mark.parametrize("together", [False, True])
def test_ids_that_look_like_numbers_join(tmp_path, frame, together):
    """pandas reads them as integers, or as floats if one is missing, of which none was in the result."""
    rows = frame.head(20).drop(index=3).assign(sequence_id=range(1, 20), repertoire_id=7)
    rows.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    further = ["--together"] * together
    hpcvdj_command("count", tmp_path / "t.tsv", "-g", GERMLINE, "--max-n", "2", "-o", tmp_path / "o.h5", *further)
    read = pd.read_csv(tmp_path / "t.tsv", sep="\t")
    with hpcvdj.open(tmp_path / "o.h5") as result:
        joined = result.join(read)
        assert joined.pathways_total.notna().all()
        lacking = result.join(read.assign(sequence_id=[None, *read.sequence_id[1:]]))
    assert lacking.pathways_total[1:].equals(joined.pathways_total[1:])
    assert lacking.pathways_excluded[0] == "not in the result"
