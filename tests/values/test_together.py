"""Tables counted together give what each gives alone, and every row keeps its repertoire."""

import gzip
import json
import os
import re
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.counting.config import Config
from hpcvdj.errors import CompleteError, InputError, StoppedError
from hpcvdj.repertoires.inputs import Inputs, tables_of
from hpcvdj.repertoires.reading import Reading
from hpcvdj.reports.survey import survey
from hpcvdj.results.reader import Result
from hpcvdj.runs.run import Run
from hpcvdj.storage.inputs import file_digest
from hpcvdj.values import compute_tables as values_tables
from hpcvdj.values import slices
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, SMALL
from tests.problems import count_to
from tests.repertoires.test_inputs import of_sizes
from tests.rows import read_batches

MAX_N = 3
ROWS = {"a": 60, "b": 110, "c": 90, "e": 0}
COUNTERS = [f"pathways_n{m}" for m in range(MAX_N + 1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Text, gzip, Parquet with other columns and repertoires of its own, no rows; the same ids in each; bad rows."""
    folder = tmp_path_factory.mktemp("together")
    header, *lines = SMALL.read_text().splitlines()
    names = header.split("\t")
    rows = [dict(zip(names, line.split("\t"), strict=True)) for line in lines]
    for k, row in enumerate(rows):
        row["sequence_id"] = f"s{k % 110}"
        row["productive"] = "FT"[k % 5 > 0]
    rows[3]["v_call"] = rows[70]["v_call"] = rows[180]["v_call"] = "TRBV999"
    rows[200]["junction"] = ""
    write(folder / "a.tsv", rows[:60], names)
    b = [{**row, "cell": str(k)} for k, row in enumerate(rows[40:150])]
    write(folder / "b.tsv.gz", b, [*names[:5], "cell"])
    c = [{**row, "repertoire_id": ("mouse 1", "mouse 2", "")[k % 3], "time": k} for k, row in enumerate(rows[140:230])]
    pq.write_table(pa.Table.from_pylist(c).select(["time", *names[:5], "repertoire_id"]), folder / "c.parquet")
    write(folder / "e.tsv", [], names)
    return folder


def write(path, rows, names):
    text = "".join("\t".join(line) + "\n" for line in [names, *([row.get(name, "") for name in names] for row in rows)])
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def counted_together(paths, germline, target, config=None, **options):
    return count_to(target, list(paths), germline, config or Config(max_n=MAX_N), **options)


def surveyed(*paths):
    return values_tables.surveyed(tables_of(list(paths), Reading()), Run())


@pytest.fixture(scope="module", params=[0, 40, 10_000])
def path(request, folder, paper_germline, tmp_path_factory):
    """The result: one file, parts of pieces of tables, one part of all tables."""
    target = tmp_path_factory.mktemp("result") / "all.h5"
    counted_together([folder], paper_germline, target, rows=request.param)
    assert target.with_name("all.h5.parts").is_dir() == bool(request.param)
    return target


@pytest.fixture(scope="module")
def expected(folder, paper_germline):
    """Every row of every table with its counters, each table counted alone in memory; and its repertoire."""
    frames = []
    for name, size in ROWS.items():
        file = next(folder.glob(f"{name}.*"))
        frame = pa.Table.from_batches(read_batches(file)).to_pandas() if size else pd.DataFrame()
        assert len(frame) == size
        if size:
            frame = hpcvdj.count(frame, paper_germline, max_n=MAX_N)
            own = frame.get("repertoire_id", pd.Series([""] * size))
            frames.append(frame.assign(repertoire_id=own.where(own != "", name)))
    return pd.concat(frames, ignore_index=True)


def test_every_row_has_its_counters_and_its_repertoire(path, expected):
    with hpcvdj.open(path) as result:
        table, excluded = result.to_pandas().set_index("row").sort_index(), result.excluded
        assert result.together
        assert table.columns[0] == "repertoire_id"
        assert [text.decode() for text in result.repertoire_id] == result.to_table()["repertoire_id"].to_pylist()
    there = expected[expected.pathways_total.notna()]
    assert table.index.tolist() == there.index.tolist()
    for name in ("sequence_id", "repertoire_id", *COUNTERS, "pathways_total", "weight"):
        assert table[name].tolist() == there[name].tolist(), name
    left = expected[expected.pathways_total.isna()]
    assert excluded.row.tolist() == left.index.tolist()
    assert len(left) > 2
    assert excluded.repertoire_id == left.repertoire_id.tolist()
    assert excluded.messages == left.pathways_excluded.tolist()


def test_repertoires_and_tables_are_listed(path, folder, expected):
    with hpcvdj.open(path) as result:
        counted = expected[expected.pathways_total.notna()].groupby("repertoire_id").size().to_dict()
        assert result.repertoires == {**counted, "e": 0}
        assert list(result.repertoires) == ["a", "b", "mouse 1", "mouse 2", "c", "e"]
        rows = result.dataset("repertoires/rows")[:].tolist()
        assert rows == [*(int((expected.repertoire_id == name).sum()) for name in list(result.repertoires)[:-1]), 0]
        assert [(table.path.name, table.first_row, table.rows) for table in result.tables] == [
            ("a.tsv", 0, 60), ("b.tsv.gz", 60, 110), ("c.parquet", 170, 90), ("e.tsv", 260, 0)
        ]  # fmt: skip
        for table in result.tables:
            assert table.path.parent == folder.resolve()
            assert table.sha256 == file_digest(table.path)
        facts = result.provenance
        assert (facts["rows_read"], facts["repertoire_id"], facts["junctions_path"]) == (260, "", str(folder.resolve()))


@pytest.mark.slow
def test_enumerating_methods_count_together_too(folder, expected, paper_germline, tmp_path):
    counted_together([folder], paper_germline, tmp_path / "o.h5", config=Config(max_n=MAX_N, method="bitwise"))
    with Result(tmp_path / "o.h5") as result:
        table = result.to_pandas().set_index("row").sort_index()
    there = expected[expected.pathways_total.notna()]
    assert table[COUNTERS].to_numpy().tolist() == there[COUNTERS].to_numpy().tolist()
    with pytest.raises(InputError, match="batch_rows needs method='direct'"):
        counted_together(
            [folder], paper_germline, tmp_path / "p.h5", config=Config(max_n=MAX_N, method="bitwise"), rows=40
        )


@pytest.mark.parametrize("suffix", [".tsv", ".parquet"])
def test_export_gives_all_tables_back(path, expected, tmp_path, suffix):
    target = tmp_path / f"o{suffix}"
    hpcvdj.export(path, target)
    found = pa.Table.from_batches(read_batches(target)).to_pandas()
    names = ["sequence_id", "v_call", "d_call", "j_call", "junction", "productive", "n1_length", "n2_length", "cell",
             "time", "repertoire_id"]  # fmt: skip
    assert found.columns.tolist() == [*names, *COUNTERS, "pathways_total", "weight", "pathways_excluded"]
    assert [float(text) if text else None for text in found["weight"]] == [
        None if pd.isna(value) else value for value in expected["weight"].tolist()
    ]
    for name in found.columns.drop(["time", "weight"]):
        there = ["" if pd.isna(value) else str(value) for value in expected[name].tolist()]
        assert found[name].tolist() == there, name
    assert found["time"].tolist() == [""] * 170 + [str(k) for k in range(90)]
    if suffix == ".parquet":
        assert pq.read_schema(target).field("pathways_total").type == pa.uint64()
        assert pq.read_schema(target).field("weight").type == pa.float64()


def test_export_of_a_folder_that_moved(path, folder, tmp_path):
    moved = tmp_path / "moved"
    moved.mkdir()
    with pytest.raises(InputError, match=r"a\.tsv: no such counted table; say where"):
        hpcvdj.export(path, tmp_path / "o.tsv", junctions=moved)
    for file in folder.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    assert hpcvdj.export(path, tmp_path / "o.tsv", junctions=moved) == 260
    with pytest.raises(InputError, match="counts 4 tables; name the folder"):
        hpcvdj.export(path, tmp_path / "p.tsv", junctions=moved / "a.tsv")
    (moved / "c.parquet").write_bytes((folder / "a.tsv").read_bytes())
    with pytest.raises(InputError, match=r"c\.parquet: is not the table that"):
        hpcvdj.export(path, tmp_path / "p.tsv", junctions=moved)


def test_choosing_by_repertoire(path, expected):
    with hpcvdj.open(path) as result:
        for names in ("mouse 2", ["a", "c"], ["e"]):
            chosen = result.select(repertoire_id=names)
            wanted = expected[expected.repertoire_id.isin([names] if isinstance(names, str) else names)]
            assert sorted(chosen.row.tolist()) == wanted.index[wanted.pathways_total.notna()].tolist()
        both = result.select(sequence_id="s41")
        assert len(both) > 1
        assert len(both.select(repertoire_id="a")) == 1
        with pytest.raises(InputError, match=r"no repertoire_id mouse 3; it has a, b, mouse 1, mouse 2, c and 1 more"):
            result.select(repertoire_id="mouse 3")


def test_one_table_alone_is_one_repertoire(folder, paper_germline, tmp_path):
    count_to(tmp_path / "c.h5", folder / "c.parquet", paper_germline)
    with hpcvdj.open(tmp_path / "c.h5") as result:
        assert not result.together
        assert "repertoire_id" not in result.to_table().column_names
        assert result.repertoires == {"c": len(result)}
        assert set(result.repertoire_id) == {b"c"}
        assert len(result.select(repertoire_id="c")) == len(result)
        with pytest.raises(InputError, match="no repertoire_id mouse 1"):
            result.select(repertoire_id="mouse 1")


def test_joining_by_repertoire_and_id(path, expected):
    shuffled = expected[["sequence_id", "repertoire_id", "junction"]].sample(frac=1, random_state=1)
    with hpcvdj.open(path) as result:
        joined = result.join(shuffled)
        for name in [*COUNTERS, "pathways_excluded"]:
            assert joined[name].fillna(0).tolist() == expected.loc[shuffled.index, name].fillna(0).tolist(), name
        strange = result.join(shuffled.assign(repertoire_id="x").drop(columns="junction"))
        assert set(strange.pathways_excluded) == {"not in the result"}
        with pytest.raises(InputError, match="give the table a column repertoire_id, or join on='row'"):
            result.join(shuffled.drop(columns="repertoire_id"))
        assert result.join(expected[["junction"]], on="row").pathways_n0.notna().sum() == len(result)


def test_the_report_knows_the_repertoires(path):
    found = survey(path)
    assert len(found.samples) == 6
    with Result(path) as result:
        assert dict(zip(found.samples, found.counted.tolist(), strict=True)) == result.repertoires


def small(path, ids, junction="TGTGCCAGCAGTTTT", **columns):
    rows = [{"sequence_id": one, "v_call": "TRBV1", "j_call": "TRBJ1-1", "junction": junction} for one in ids]
    for name, values in columns.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    write(path, rows, ["sequence_id", "v_call", "j_call", "junction", *columns])
    return path


@pytest.mark.parametrize("rows", [0, 100])
def test_an_id_is_unique_within_a_repertoire(tmp_path, paper_germline, rows):
    a = small(tmp_path / "a.tsv", ["x", "y", "x", "z"], repertoire_id=["m", "m", "n", ""])
    b = small(tmp_path / "b.tsv", ["w", "y", "z", "z"], repertoire_id=["", "m", "n", "n"])
    counted_together([a, b], paper_germline, tmp_path / "o.h5", rows=rows)
    with Result(tmp_path / "o.h5") as result:
        assert result.excluded.row.tolist() == [5, 7]
        assert result.excluded.messages == [
            "sequence_id repeats that of data row 2 of a.tsv", "sequence_id repeats that of data row 3"
        ]  # fmt: skip
        assert result.excluded.repertoire_id == ["m", "n"]
        assert result.repertoires == {"m": 2, "n": 2, "a": 1, "b": 1}


@pytest.mark.parametrize("rows", [0, 2, 100])
def test_rows_of_tables_without_ids_are_not_repeats(tmp_path, paper_germline, rows):
    """Their ids are numbers of rows, or of clones, which begin again in each table."""
    without, clones = tmp_path / "a.tsv", tmp_path / "c.tsv"
    lines = ["v_call\tj_call\tjunction\trepertoire_id", *["TRBV1\tTRBJ1-1\tTGTGCCAGCAGTTTT\tm"] * 3]
    without.write_text("\n".join(lines))
    (tmp_path / "b.tsv").write_text("\n".join(lines))
    mixcr = ["cloneId\tnSeqCDR3\tallVHitsWithScore\tallJHitsWithScore\trepertoire_id"]
    clones.write_text("\n".join(mixcr + [f"{k}\tTGTGCCAGCAGTTTT\tTRBV1*00(5)\tTRBJ1-1*00(5)\tm" for k in (1, 2, 2)]))
    named = small(tmp_path / "d.tsv", "12", repertoire_id="mm")
    again = small(tmp_path / "e.tsv", "3", repertoire_id="m")
    last = small(tmp_path / "f.tsv", "1", repertoire_id="m")
    tables = [without, tmp_path / "b.tsv", clones, named, again, last]
    counted_together(tables, paper_germline, tmp_path / "o.h5", rows=rows)
    with Result(tmp_path / "o.h5") as result:
        # With slices of given rows, repeats in other slices are not noticed.
        assert result.excluded.row.tolist() == ([8, 12] if rows != 2 else [])


def test_strict_names_the_table_and_its_row(tmp_path, paper_germline):
    tables = [small(tmp_path / "a.tsv", "xyz"), small(tmp_path / "b.tsv", "x"), small(tmp_path / "c.tsv", "x", "TG")]
    for rows in (0, 2):
        with pytest.raises(InputError, match=r"c\.tsv, data row 1 \(x\): junction of 2 nt"):
            counted_together(tables, paper_germline, tmp_path / f"o{rows}.h5", rows=rows, strict=True)


def test_what_cannot_be_told_apart_is_refused(tmp_path):
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        small(tmp_path / name / "a.tsv", ["s"])
    a, b = tmp_path / "x" / "a.tsv", tmp_path / "y" / "a.tsv"
    (tmp_path / "link.tsv").symlink_to(a)
    for paths, message in (
        ([a, a], r"a\.tsv: is named twice; name each table once"),
        ([a.parent, a], r"a\.tsv: is named twice"),
        ([a, tmp_path / "link.tsv"], r"link\.tsv: is the same file as .*a\.tsv"),
        ([a, b], r"x/a\.tsv: its repertoire would be called a, like one of .*y/a\.tsv; rename a file"),
        ([a, small(tmp_path / "c.tsv", ["s"], repertoire_id=["a"])], "its repertoire would be called a, like one of"),
    ):
        with pytest.raises(InputError, match=message):
            surveyed(*paths)
    for file, name in ((a, "m"), (b, "n")):
        small(file, ["s"], repertoire_id=[name])
    assert surveyed(a, b).repertoires == ["m", "n"]
    # Nobody is called m for the name of m.tsv, so that m is the other table's alone.
    m = small(tmp_path / "m.tsv", ["s"], repertoire_id=["o"])
    assert surveyed(a, m).repertoires == ["m", "o"]


def test_the_same_bytes_are_warned_of(tmp_path, caplog):
    inputs = surveyed(*(small(tmp_path / f"{name}.tsv", ["s"]) for name in "ab"))
    assert inputs.repertoires == ["a", "b"]
    assert re.search(r"(?m)tables with the same content: \S*b\.tsv and \S*a\.tsv$", caplog.text)


def test_a_table_that_cannot_be_read_is_named_before_anything_is_written(folder, tmp_path):
    good, cut_short = tmp_path / "a.tsv", tmp_path / "b.tsv.gz"
    good.write_bytes((folder / "a.tsv").read_bytes())
    many = gzip.compress(b"sequence_id\tv_call\tj_call\tjunction\n" + os.urandom(60000).hex().encode() + b"\n")
    for spoil, message in (
        (lambda: cut_short.write_bytes(many[:-4000]), r"b.tsv.gz: the gzip stream is damaged or cut short"),
        (lambda: write(cut_short, [], ["sequence_id", "v_call"]), "b.tsv.gz, line 1: no column j_call, junction"),
        (lambda: cut_short.write_bytes(b""), "b.tsv.gz: the file is empty"),
        (cut_short.unlink, "b.tsv.gz: no such file"),
    ):
        spoil()
        with pytest.raises(InputError, match=re.escape(message)):
            surveyed(good, cut_short)
    for rows in (0, 50):
        arguments = ["count", good, cut_short, "-g", GERMLINE, "-o", tmp_path / "o.h5", "--batch-rows", rows]
        _, err = hpcvdj_command(*arguments, "--together", code=2)
        assert message in error_line(err)
        assert not list(tmp_path.glob("*o.h5*"))


def test_tables_without_rows(tmp_path, caplog):
    empty = small(tmp_path / "e.tsv", [])
    with pytest.raises(InputError, match="no data rows in any table"):
        surveyed(empty)
    inputs = surveyed(empty, small(tmp_path / "f.tsv", ["s"]))
    assert inputs.repertoires == ["e", "f"]
    assert "e.tsv: no data rows; repertoire e is empty" in caplog.text


@pytest.mark.parametrize("rows", [0, 40])
@pytest.mark.parametrize("added", [b"", b"x\tTRBV1\t\tTRBJ1-1\tTGTTTT\tT\t0\t0\n"])
def test_a_table_that_changes_meanwhile_is_refused(folder, paper_germline, tmp_path, monkeypatch, rows, added):
    table, target = tmp_path / "a.tsv", tmp_path / "o.h5"
    table.write_bytes((folder / "a.tsv").read_bytes())
    right = values_tables.surveyed

    def change_then(inputs, run):
        found = right(inputs, run)
        table.write_bytes(table.read_bytes() + added)
        os.utime(table, ns=(1, 1))
        return found

    monkeypatch.setattr(values_tables, "surveyed", change_then)
    with pytest.raises(InputError, match=r"a\.tsv: changed while it was read"):
        counted_together([table, folder / "b.tsv.gz"], paper_germline, target, rows=rows)
    assert not target.exists()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 40])
def test_a_complete_result_is_known_by_its_tables(folder, paper_germline, tmp_path, rows):
    copy = tmp_path / "in"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    target = tmp_path / "o.h5"

    def again(*paths):
        counted_together(paths or [copy], paper_germline, target, rows=rows, resume=True)

    again()
    with pytest.raises(CompleteError):
        again()
    a, b, c, e = (copy / name for name in ("a.tsv", "b.tsv.gz", "c.parquet", "e.tsv"))
    for paths, message in (
        ([a, c, e], r"is of another run \(b\.tsv\.gz no longer among the tables\)"),
        ([copy, small(tmp_path / "f.tsv", ["s"])], r"\(f\.tsv new among the tables\)"),
        ([b, a, c, e], r"\(the tables in another order\)"),
    ):
        with pytest.raises(InputError, match=message):
            again(*paths)
    a.write_text(a.read_text().replace("T\t0", "T\t1"))
    with pytest.raises(InputError, match=r"is of another run \(a\.tsv changed\)"):
        again()
    with pytest.raises(InputError, match=r"is of another run \(other tables; together was True, is False\)"):
        count_to(target, a, paper_germline, Config(max_n=MAX_N), resume=True)


@pytest.mark.slow
def test_a_checkpoint_is_known_by_its_tables(folder, paper_germline, tmp_path):
    target = tmp_path / "o.h5"
    checkpoint = tmp_path / "o.h5.parts"
    run = Run()
    run.request.begin = lambda: setattr(run.request, "name", "SIGTERM")
    config = Config(max_n=MAX_N, method="bitwise")
    with pytest.raises(StoppedError):
        counted_together([folder], paper_germline, target, config, run=run, save_seconds=0.0)
    saved = json.loads((checkpoint / "run.json").read_text())
    assert [name for name, _ in saved["identity"]["tables"]] == ["a.tsv", "b.tsv.gz", "c.parquet", "e.tsv"]
    with pytest.raises(InputError, match=r"to another run \(c\.parquet, e\.tsv no longer among the tables\)"):
        counted_together([folder / "a.tsv", folder / "b.tsv.gz"], paper_germline, target, config, resume=True)
    with pytest.raises(InputError, match=r"to another run \(other tables; together"):
        count_to(target, folder / "a.tsv", paper_germline, config, resume=True)
    counted_together([folder], paper_germline, target, config, resume=True)
    assert not checkpoint.exists()


@pytest.mark.slow
def test_a_stopped_run_continues_with_its_parts(folder, paper_germline, tmp_path, signal_after_a_slice):
    target = tmp_path / "o.h5"
    run, counted = signal_after_a_slice
    with pytest.raises(StoppedError):
        counted_together([folder], paper_germline, target, rows=40, run=run)
    assert len(counted) == 1
    some = [folder / "a.tsv", folder / "c.parquet", folder / "e.tsv"]
    with pytest.raises(InputError, match=r"to another run \(b\.tsv\.gz no longer among the tables\)"):
        counted_together(some, paper_germline, target, rows=40, resume=True)
    counted_together([folder], paper_germline, target, rows=35, resume=True)
    assert sorted(counted) == list(range(len(counted)))
    with Result(target) as result:
        assert result.provenance["slice_rows"] == 40
        assert result.row.tolist() != sorted(result.row.tolist())
        assert sorted([*result.row.tolist(), *result.excluded.row.tolist()]) == list(range(260))


def test_added_or_missing_rows_are_noticed(tmp_path):
    """Where another rank's view of the file is an old one, its state does not tell."""
    inputs = surveyed(small(tmp_path / "a.tsv", "xyz"))
    (table,) = inputs.tables
    assert sum(batch.num_rows for batch in inputs.rows_of(table)) == 3
    for ids in ("xy", "wxyz"):
        small(table.path, ids)
        with pytest.raises(InputError, match="changed while it was read"):
            list(inputs.rows_of(table))


def test_more_rows_than_one_rank_should_hold_are_counted_in_parts():
    half = values_tables.AT_ONCE_ROWS // 2
    result, table = SimpleNamespace(has_rows=False), SimpleNamespace(has_rows=True)
    every, several = values_tables.ALL_ROWS, [half, half, 1]
    for sizes, config, output, asked, rows in (
        ([half, half], Config(), result, None, every),
        (several, Config(), result, None, values_tables.RESULT_ROWS),
        (several, Config(method="bitwise"), result, None, every),
        (several, Config(max_n="all"), table, None, every),
        (several, Config(), result, 0, every),
        ([1, 1], Config(), result, 7, 7),
        ([1, 1], Config(), table, None, values_tables.FEWEST_ROWS),
        ([1_600_000, 1], Config(), table, None, 100_001),
        (several, Config(), table, None, values_tables.TABLE_ROWS),
    ):
        inputs = Inputs(of_sizes(sizes), together=True)
        assert values_tables.slice_rows(inputs, asked, config, output) == rows


def test_the_command(folder, tmp_path):
    arguments = [folder, "-g", GERMLINE, "--max-n", MAX_N, "--together"]
    out, err = hpcvdj_command("count", *arguments, "-o", tmp_path / "o.h5")
    assert "tables     4, of 6 repertoire(s)" in out
    assert "rows       260 read = 256 counted + 4 excluded" in out
    assert "e.tsv: no data rows; repertoire e is empty" in err
    _, err = hpcvdj_command("count", *arguments, "-o", tmp_path / "o.h5", code=2)
    assert "exists already" in error_line(err)
    _, err = hpcvdj_command("count", *arguments, "-o", tmp_path, code=2)
    assert "is a folder; name a file" in error_line(err)
    _, err = hpcvdj_command("count", *arguments, "-o", tmp_path / "p.h5", "--batch-rows", 50, "--max-n", "all", code=2)
    assert "--batch-rows 0" in error_line(err)
    _, err = hpcvdj_command("count", *arguments[:-1], "-o", tmp_path / "o.h5", code=2)
    assert "or --together" in error_line(err)


def test_a_table_of_many_repertoires_alone(tmp_path, paper_germline):
    """--together is how one table's own column is kept."""
    table = small(tmp_path / "t.tsv", "sss", repertoire_id=["m", "n", ""])
    counted_together([table], paper_germline, tmp_path / "o.h5")
    with Result(tmp_path / "o.h5") as result:
        assert result.repertoires == {"m": 1, "n": 1, "t": 1}
    assert hpcvdj.export(tmp_path / "o.h5", tmp_path / "e.tsv", junctions=table) == 3


@pytest.mark.parametrize("rows", [0, 2])
def test_no_row_can_be_counted(tmp_path, paper_germline, rows):
    tables = [small(tmp_path / f"{name}.tsv", "xyz", "TG") for name in "ab"]
    summary = counted_together(tables, paper_germline, tmp_path / "o.h5", rows=rows)
    assert (summary.rows_read, summary.counted, [rows for _, rows in summary.excluded]) == (6, 0, [6])
    with Result(tmp_path / "o.h5") as result:
        assert (len(result), len(result.excluded), result.repertoires) == (0, 6, {"a": 0, "b": 0})
        assert result.repertoire_id.tolist() == result.to_table()["repertoire_id"].to_pylist() == []
        assert result.excluded.repertoire_id == [*"aaabbb"]
    assert hpcvdj.export(tmp_path / "o.h5", tmp_path / "e.tsv") == 6


@pytest.mark.slow
def test_tables_that_are_cut_do_not_stay_open(paper_germline, tmp_path, monkeypatch):
    """A rank opens one after another, however many there are."""
    header, *lines = SMALL.read_text().splitlines()
    for k in range(12):
        name = tmp_path / f"t{k}.tsv"
        name.write_text("\n".join([header, *lines[8 * k : 8 * k + 8]]) + "\n")
    right, opened = slices._SliceWork._compute, []

    def watched(*arguments):
        opened.append(len(os.listdir("/proc/self/fd")))
        return right(*arguments)

    monkeypatch.setattr(slices._SliceWork, "_compute", watched)
    counted_together(sorted(tmp_path.glob("*.tsv")), paper_germline, tmp_path / "o.h5", rows=5)
    assert len(opened) == 20
    assert max(opened) <= opened[0] + 1
