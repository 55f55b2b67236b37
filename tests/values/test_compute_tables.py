"""Tables with values: the same bytes for any slices and ranks, whatever was stopped or damaged meanwhile."""

import gzip
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.counting.config import Config
from hpcvdj.errors import CompleteError, InputError, StoppedError
from hpcvdj.repertoires.inputs import Inputs, tables_of
from hpcvdj.repertoires.reading import Reading
from hpcvdj.results.export import export
from hpcvdj.results.facts import read_facts, require_described
from hpcvdj.runs.run import Run
from hpcvdj.storage.folders import folder_digest
from hpcvdj.values import compute_tables as values_tables
from hpcvdj.values import slices
from hpcvdj.values.compute_tables import compute_tables
from tests.commands import hpcvdj_command
from tests.conftest import GERMLINE, SMALL
from tests.problems import count_to
from tests.repertoires.program_tables import TABLES, written
from tests.rows import read_batches

SLICE = 100
"""Rows of a slice: SMALL has five slices."""

REPEATED = {130: "s10", 131: "s10", 250: "s10", 251: "s10", 350: "s200"}
"""Ids that rows have of earlier rows; the first is not counted in row 20."""


def changed_rows():
    """The small example, in which rows have other ids, calls that cannot be counted, and an unlisted gene."""
    header, *rows = [line.split("\t") for line in SMALL.read_text().splitlines()]
    for k, row in enumerate(rows):
        row[0] = f"s{k}"
    for k, name in REPEATED.items():
        rows[k][0] = name
    rows[20][0], rows[20][1], rows[40][0] = "s10", "TRBV999", "s20"
    return [header, *rows]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same rows as text, gzip and Parquet, and in a folder of two tables."""
    folder = tmp_path_factory.mktemp("tables")
    header, *rows = changed_rows()
    text = "".join("\t".join(row) + "\n" for row in [header, *rows])
    (folder / "t.tsv").write_text(text)
    (folder / "t.tsv.gz").write_bytes(gzip.compress(text.encode()))
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "t.parquet", row_group_size=77)
    (folder / "two").mkdir()
    lines = text.splitlines(keepends=True)
    (folder / "two" / "a.tsv").write_text("".join(lines[:231]))
    (folder / "two" / "b.tsv").write_text(lines[0] + "".join(lines[231:]))
    return folder


def inputs_of(path):
    return tables_of([path], Reading()) if path.is_dir() else Inputs.of_file(path, Reading())


def computed(path, target, germline, *, rows=None, run=None, size=SLICE, strict=False, **how):
    """The summary of a table that is computed in slices of `size` rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values_tables, "TABLE_ROWS", size)
        run = (run or Run()).to(target, **how)
        inputs = inputs_of(path)
        inputs = replace(inputs, reading=replace(inputs.reading, strict=strict))
        return compute_tables(inputs, germline, Config(max_n=3), run, rows)


def rows_of(path):
    return [row for batch in read_batches(path) for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def expected(tables, paper_germline, tmp_path_factory):
    """The table that is computed in one slice."""
    target = tmp_path_factory.mktemp("expected") / "o.tsv"
    computed(tables / "t.tsv", target, paper_germline, size=10_000)
    return target


def test_repeated_ids_are_excluded_once(expected):
    excluded = {k: row["pathways_excluded"] for k, row in enumerate(rows_of(expected)) if row["pathways_excluded"]}
    assert excluded.keys() == {20, *REPEATED}
    assert [excluded[k].split("data row ")[1].split()[0] for k in REPEATED] == ["11"] * 4 + ["201"]


@pytest.mark.parametrize("size", [33, 500])
def test_missing_ids_do_not_repeat(tables, paper_germline, tmp_path, size):
    """Rows without an id are rows of their own, however a missing value is written."""
    header, *lines = (tables / "t.tsv").read_text().splitlines()
    missing, column = ("", "NA", "None", "null"), header.split("\t").index("sequence_id")
    for k in range(0, 200, 2):
        if k not in (10, 20):
            values = lines[k].split("\t")
            values[column] = missing[k // 2 % 4]
            lines[k] = "\t".join(values)
    (tmp_path / "t.tsv").write_text("\n".join([header, *lines]) + "\n")
    summary = computed(tmp_path / "t.tsv", tmp_path / "o.tsv", paper_germline, size=size)
    excluded = {
        k: row["pathways_excluded"] for k, row in enumerate(rows_of(tmp_path / "o.tsv")) if row["pathways_excluded"]
    }
    repeated = [k for k in REPEATED if k % 2 or k >= 200]
    assert len(repeated) >= 3
    assert excluded.keys() == {20, *repeated}
    assert summary.counted == 500 - len(excluded)


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz", "t.parquet"])
@pytest.mark.parametrize("size", [33, SLICE, 499, 500])
def test_slices_are_the_table(tables, expected, paper_germline, tmp_path, name, size):
    target = tmp_path / "o.tsv"
    summary = computed(tables / name, target, paper_germline, size=size)
    assert target.read_bytes() == expected.read_bytes()
    assert summary.rows_read == 500
    assert summary.counted == 500 - 1 - len(REPEATED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.tsv", "o.tsv.json"]
    own, other = read_facts(target), read_facts(expected)
    for key in ("rows_read", "sums", "nonzero", "excluded_counts", "substituted_calls", "quantity"):
        assert own[key] == other[key], key


@pytest.mark.parametrize("suffix", [".tsv.gz", ".tsv.zst", ".parquet"])
@pytest.mark.parametrize("size", [SLICE, 500])
def test_other_kinds_of_table_have_the_same_rows(tables, expected, paper_germline, tmp_path, suffix, size):
    target = tmp_path / f"o{suffix}"
    computed(tables / "t.tsv", target, paper_germline, size=size)
    assert rows_of(target) == rows_of(expected)


@pytest.mark.parametrize("size", [SLICE, 500])
def test_a_folder_of_parquet_files(tables, expected, paper_germline, tmp_path, size):
    """Other programs open it as one table; it appears, is replaced and is complete as a file is."""
    target = tmp_path / "o.dataset"
    stopped(tables / "t.tsv", target, paper_germline, 1, size=size if size < 500 else 250)
    computed(tables / "t.tsv", target, paper_germline, overwrite=True, size=size)
    read = pq.read_table(target)
    assert [{name: str(value) for name, value in row.items()} for row in read.select(["sequence_id"]).to_pylist()] == [
        {"sequence_id": row["sequence_id"]} for row in rows_of(expected)
    ]
    excluded = read["pathways_excluded"].to_pylist()
    assert excluded == [row["pathways_excluded"] for row in rows_of(expected)]
    assert len(list(target.glob("*.parquet"))) == 500 // size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.dataset", "o.dataset.json"]
    require_described(target, read_facts(target))
    with pytest.raises(CompleteError):
        computed(tables / "t.tsv", target, paper_germline, resume=True)
    with pytest.raises(InputError, match="exists already"):
        computed(tables / "t.tsv", target, paper_germline)
    computed(tables / "t.tsv", target, paper_germline, overwrite=True)
    (target / "part-000000.parquet").write_bytes(b"changed")
    with pytest.raises(InputError, match=r"is not the table that o\.dataset\.json describes"):
        computed(tables / "t.tsv", target, paper_germline, resume=True)
    with pytest.raises(InputError, match="has files that hpcvdj did not write there"):
        computed(tables / "t.tsv", target, paper_germline, overwrite=True)


@pytest.fixture(scope="module")
def human():
    return hpcvdj.read_germline("human")


def test_the_command_replaces_a_folder_that_it_wrote(tables, tmp_path):
    target = tmp_path / "o.dataset"
    words = ("count", tables / "t.tsv", "-g", GERMLINE, "-o", target, "--max-n", "3")
    hpcvdj_command(*words, "--batch-rows", SLICE)
    _, err = hpcvdj_command(*words, code=2)
    assert "o.dataset: exists already; give another name, or --overwrite to replace it" in err
    hpcvdj_command(*words, "--overwrite")
    assert len(list(target.glob("*.parquet"))) == 1
    (target / "mine").write_text("mine")
    _, err = hpcvdj_command(*words, "--overwrite", code=2)
    assert "has files that hpcvdj did not write there (mine)" in err


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_other_programs(human, tmp_path, name):
    """What `hpcvdj export` makes of the result of a table, of which all rows are read at once."""
    path = written(tmp_path, name)
    count_to(tmp_path / "o.h5", path, human, Config(max_n=3))
    export(tmp_path / "o.h5", tmp_path / "exported.tsv")
    for size in (1, 100):
        computed(path, tmp_path / "o.tsv", human, size=size, overwrite=True)
        assert (tmp_path / "o.tsv").read_bytes() == (tmp_path / "exported.tsv").read_bytes()


def test_tables_together(tables, expected, paper_germline, tmp_path):
    """Ids must be different in a repertoire only, which a table is here."""
    for size in (SLICE, 500):
        computed(tables / "two", tmp_path / f"{size}.tsv", paper_germline, size=size)
    assert (tmp_path / "100.tsv").read_bytes() == (tmp_path / "500.tsv").read_bytes()
    rows = rows_of(tmp_path / "100.tsv")
    assert [row["repertoire_id"] for row in rows] == ["a"] * 230 + ["b"] * 270
    excluded = [k for k, row in enumerate(rows) if row["pathways_excluded"]]
    assert excluded == [20, 130, 131, 251]
    counters = [[(key, row[key]) for key in row if key.startswith("pathways_")] for row in rows]
    for k, row in enumerate(rows_of(expected)):
        if not row["pathways_excluded"]:
            assert counters[k] == [(key, row[key]) for key in row if key.startswith("pathways_")]


def test_an_id_of_a_table_in_an_earlier_slice(tables, paper_germline, tmp_path):
    """The message names that table: here the tables of a repertoire have equal ids."""
    (tmp_path / "in").mkdir()
    for name, first in (("a", 100), ("b", 200), ("c", 100)):
        header, *rows = changed_rows()
        text = "".join("\t".join(row) + "\tr\n" for row in rows[first : first + 10])
        (tmp_path / "in" / f"{name}.tsv").write_text("\t".join([*header, "repertoire_id"]) + "\n" + text)
    for size in (10, 500):
        computed(tmp_path / "in", tmp_path / f"{size}.tsv", paper_germline, size=size)
    assert (tmp_path / "10.tsv").read_bytes() == (tmp_path / "500.tsv").read_bytes()
    assert "data row 1 of a.tsv" in rows_of(tmp_path / "10.tsv")[20]["pathways_excluded"]


def test_numbers_of_rows_in_slices_of_several_tables(paper_germline, tmp_path):
    """Tables of a repertoire without ids have equal numbers of rows: no row repeats another."""
    (tmp_path / "in").mkdir()
    header, *rows = changed_rows()
    for name in "abc":
        text = "".join("\t".join(row[1:]) + "\tr\n" for row in rows[100:110])
        (tmp_path / "in" / f"{name}.tsv").write_text("\t".join([*header[1:], "repertoire_id"]) + "\n" + text)
    for size in (10, 15, 500):
        summary = computed(tmp_path / "in", tmp_path / f"{size}.tsv", paper_germline, size=size)
        assert summary.counted == 30
        assert (tmp_path / f"{size}.tsv").read_bytes() == (tmp_path / "10.tsv").read_bytes()


def test_ids_within_slices_that_are_asked_for(tables, paper_germline, tmp_path):
    computed(tables / "t.tsv", tmp_path / "o.tsv", paper_germline, rows=SLICE)
    excluded = [k for k, row in enumerate(rows_of(tmp_path / "o.tsv")) if row["pathways_excluded"]]
    assert excluded == [20, 131, 251]


def test_strict_names_the_row(tables, paper_germline, tmp_path):
    header, *rows = changed_rows()
    rows[20][1] = rows[21][1]
    for k in (20, 40, 131, 250, 251):
        rows[k][0] = f"s{k}"
    (tmp_path / "t.tsv").write_text("".join("\t".join(row) + "\n" for row in [header, *rows]))
    for size in (SLICE, 500):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(values_tables, "TABLE_ROWS", size)
            inputs = Inputs.of_file(tmp_path / "t.tsv", Reading(strict=True))
            with pytest.raises(InputError, match=r"t\.tsv, data row 131 \(s10\): .* data row 11"):
                compute_tables(inputs, paper_germline, Config(max_n=3), Run().to(tmp_path / "o.tsv"))
        assert [path.name for path in tmp_path.iterdir()] == ["t.tsv"]


def test_a_damaged_table_is_one_line(tables, tmp_path):
    """Where rows are read first to say how many there are about, too."""
    data = (tables / "t.tsv.gz").read_bytes()
    for place in (30, 200, 1000):
        table = tmp_path / f"{place}.tsv.gz"
        table.write_bytes(data[:place] + b"\xff" * 8 + data[place + 8 :])
        _, err = hpcvdj_command("count", table, "-g", GERMLINE, "-o", tmp_path / "o.tsv", code=2)
        assert err.splitlines()[-1].startswith(f"hpcvdj: error: {table}: the gzip stream is damaged")


def stopped(path, target, germline, after, **how):
    """A run that has a signal once so many slices are written."""
    run, right = Run(), slices._SliceWork._compute
    seen = []

    def compute_then_signal(self, part, progress):
        seen.append(part.index)
        rest = right(self, part, progress)
        if len(seen) == after:
            run.request.name = "SIGTERM"
        return rest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices._SliceWork, "_compute", compute_then_signal)
        with pytest.raises(StoppedError, match=r"SIGTERM: stopped with the part files in .* saved"):
            computed(path, target, germline, run=run, **how)
    return seen


@pytest.mark.parametrize("name", ["t.tsv", "t.parquet", "two"])
@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_stopped_run_goes_on(tables, paper_germline, tmp_path, name, after):
    """Also after slices were written again because of their ids (the sixth)."""
    if (name, after) == ("two", 6):
        after = 5
    target = tmp_path / "o.tsv"
    computed(tables / name, tmp_path / "undisturbed.tsv", paper_germline, size=500)
    assert stopped(tables / name, target, paper_germline, after)[:5] == [0, 1, 2, 3, 4][:after]
    assert not target.exists()
    with pytest.raises(InputError, match="has the work of an unfinished run; resume=True"):
        computed(tables / name, target, paper_germline)
    # The first run's slices stay, whatever this one would choose.
    computed(tables / name, target, paper_germline, resume=True, size=17)
    assert target.read_bytes() == (tmp_path / "undisturbed.tsv").read_bytes()
    with pytest.raises(CompleteError):
        computed(tables / name, target, paper_germline, resume=True)


@pytest.mark.parametrize("name", ["o.tsv", "o.dataset"])
def test_a_stopped_run_that_replaces_another_table_goes_on(tables, paper_germline, tmp_path, name):
    """With the remedy that it names; until then the other table stays."""
    target, expected = tmp_path / name, tmp_path / f"expected {name}"
    computed(tables / "t.tsv", expected, paper_germline)
    computed(tables / "two", target, paper_germline)
    before = content(target)
    with pytest.raises(InputError, match="is of another run"):
        computed(tables / "t.tsv", target, paper_germline, resume=True)
    stopped(tables / "t.tsv", target, paper_germline, 2, overwrite=True)
    assert content(target) == before
    with pytest.raises(InputError, match="is of another run"):
        computed(tables / "t.parquet", target, paper_germline, resume=True)
    computed(tables / "t.tsv", target, paper_germline, resume=True)
    assert content(target) == content(expected)


def test_a_strict_run_does_not_go_on_with_one_that_is_not(tables, paper_germline, tmp_path):
    """It said nothing of the rows that were excluded before."""
    target = tmp_path / "o.tsv"
    stopped(tables / "t.tsv", target, paper_germline, 2)
    with pytest.raises(InputError, match=r"belongs to another run .*strict was False, is True"):
        computed(tables / "t.tsv", target, paper_germline, resume=True, strict=True)
    computed(tables / "t.tsv", target, paper_germline, resume=True)
    with pytest.raises(InputError, match=r"is of another run .*strict was False, is True"):
        computed(tables / "t.tsv", target, paper_germline, resume=True, strict=True)


@pytest.mark.parametrize("other", ["notes", "result"])
def test_what_got_the_name_while_a_run_was_stopped_stays(tables, paper_germline, tmp_path, other):
    """It was replaced without a word, and without --overwrite."""
    target, expected = tmp_path / "o.tsv", tmp_path / "expected.tsv"
    computed(tables / "t.tsv", expected, paper_germline)
    stopped(tables / "t.tsv", target, paper_germline, 2)
    if other == "notes":
        target.write_text("my notes\n")
    else:
        computed(tables / "two", tmp_path / "other.tsv", paper_germline)
        for ending in ("", ".json"):
            (tmp_path / f"other.tsv{ending}").rename(tmp_path / f"o.tsv{ending}")
    before = target.read_bytes()
    with pytest.raises(InputError, match=r"exists already|is of another run|do not belong together"):
        computed(tables / "t.tsv", target, paper_germline, resume=True)
    assert target.read_bytes() == before
    for path in tmp_path.glob("o.tsv*"):
        if path.is_file():
            path.unlink()
    computed(tables / "t.tsv", target, paper_germline, resume=True)
    assert target.read_bytes() == expected.read_bytes()


def test_a_run_that_is_stopped_before_a_slice_is_done_says_so(tables, paper_germline, tmp_path):
    """So that its remedy works where another table is to be replaced."""
    target, run = tmp_path / "o.tsv", Run()
    computed(tables / "two", target, paper_germline)
    before = content(target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run.request, "begin", lambda: setattr(run.request, "name", "SIGTERM"))
        with pytest.raises(StoppedError, match=r"^SIGTERM: stopped before any result; start again with the same"):
            computed(tables / "t.tsv", target, paper_germline, run=run, overwrite=True)
    assert content(target) == before
    assert not (tmp_path / "o.tsv.parts").exists()
    with pytest.raises(InputError, match="is of another run"):
        computed(tables / "t.tsv", target, paper_germline, resume=True)


def content(table):
    return folder_digest(table) if table.is_dir() else table.read_bytes()


def parts_after_a_stop(tables, germline, tmp_path):
    stopped(tables / "t.parquet", tmp_path / "o.tsv", germline, 3)
    return tmp_path / "o.tsv.parts"


DAMAGE = {
    "a byte of a part": lambda folder: flipped(folder / "part-000001.tsv"),
    "a part that is cut short": lambda folder: cut_short(folder / "part-000001.tsv"),
    "a part that is missing": lambda folder: (folder / "part-000001.tsv").unlink(),
    "hashes of ids": lambda folder: flipped(folder / "part-000001.state"),
    "facts that are no JSON": lambda folder: (folder / "part-000001.state").write_text("{"),
    "facts of another slice": lambda folder: shutil.copy(folder / "part-000000.state", folder / "part-000001.state"),
    "another number of rows": lambda folder: rewritten(folder / "part-000001.state"),
}


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-1])


def rewritten(path):
    data = path.read_bytes()
    assert b'"rows_read": ' in data
    path.write_bytes(data.replace(b'"rows_read": ', b'"rows_read": 9'))


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_parts_are_refused(tables, expected, paper_germline, tmp_path, damage):
    folder = parts_after_a_stop(tables, paper_germline, tmp_path)
    DAMAGE[damage](folder)
    with pytest.raises(InputError, match=r"o\.tsv\.parts/.* overwrite=True starts again"):
        computed(tables / "t.parquet", tmp_path / "o.tsv", paper_germline, resume=True)
    computed(tables / "t.parquet", tmp_path / "o.tsv", paper_germline, overwrite=True)
    assert (tmp_path / "o.tsv").read_bytes() == expected.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.tsv", "o.tsv.json"]


def test_parts_of_another_run_are_refused(tables, paper_germline, tmp_path):
    """Parts that somebody copied from the folder of another run."""
    folder = parts_after_a_stop(tables, paper_germline, tmp_path)
    (tmp_path / "other").mkdir()
    other = parts_after_a_stop(tables, paper_germline, tmp_path / "other")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values_tables, "TABLE_ROWS", SLICE)
        run = Run().to(tmp_path / "other" / "o.tsv", overwrite=True)
        compute_tables(inputs_of(tables / "t.tsv"), paper_germline, Config(max_n=2), run)
    stopped(tables / "t.tsv", tmp_path / "other" / "o.tsv", paper_germline, 3, overwrite=True)
    for path in other.glob("*000001*"):
        shutil.copy(path, folder)
    with pytest.raises(InputError, match=r"part-000001\.state: is damaged: it was changed, or is of another run"):
        computed(tables / "t.parquet", tmp_path / "o.tsv", paper_germline, resume=True)


def test_a_part_without_facts_is_made_again(tables, expected, paper_germline, tmp_path):
    """What a run leaves that is killed between the two."""
    folder = parts_after_a_stop(tables, paper_germline, tmp_path)
    (folder / "part-000002.state").unlink()
    (folder / "part-000002.tsv").write_text("cut")
    (folder / ".part-000003.tsv.part").write_text("cut")
    computed(tables / "t.parquet", tmp_path / "o.tsv", paper_germline, resume=True)
    assert (tmp_path / "o.tsv").read_bytes() == expected.read_bytes()


def test_a_table_that_changes_is_not_written(tables, paper_germline, tmp_path):
    shutil.copy(tables / "t.tsv", tmp_path / "t.tsv")
    stopped(tmp_path / "t.tsv", tmp_path / "o.tsv", paper_germline, 2)
    lines = (tmp_path / "t.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "t.tsv").write_text("".join(lines[:-1]))
    with pytest.raises(InputError, match="belongs to another run"):
        computed(tmp_path / "t.tsv", tmp_path / "o.tsv", paper_germline, resume=True)


def test_a_table_that_changes_while_it_is_read_leaves_nothing(tables, paper_germline, tmp_path, monkeypatch):
    shutil.copy(tables / "t.tsv", tmp_path / "t.tsv")
    right = slices._SliceWork.compute_all

    def compute_then_change(self):
        right(self)
        with open(tmp_path / "t.tsv", "a") as stream:
            stream.write("\n")

    monkeypatch.setattr(slices._SliceWork, "compute_all", compute_then_change)
    with pytest.raises(InputError, match=r"t\.tsv: changed while it was read"):
        computed(tmp_path / "t.tsv", tmp_path / "o.tsv", paper_germline)
    assert [path.name for path in tmp_path.iterdir()] == ["t.tsv"]


def test_columns_that_a_table_has_already(tables, expected, paper_germline, tmp_path):
    with pytest.raises(InputError, match="has a column pathways_n0 already"):
        computed(expected, tmp_path / "o.tsv", paper_germline)
    assert not list(tmp_path.iterdir())


def test_a_table_without_rows(paper_germline, tmp_path):
    (tmp_path / "t.tsv").write_text(SMALL.read_text().splitlines(keepends=True)[0])
    with pytest.raises(InputError, match=r"t\.tsv: no data rows; the table has names of columns only"):
        computed(tmp_path / "t.tsv", tmp_path / "o.tsv", paper_germline)
    assert [path.name for path in tmp_path.iterdir()] == ["t.tsv"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.tsv", pytest.param("two", marks=pytest.mark.exhaustive)])
def test_any_number_of_ranks_writes_the_same(tables, tmp_path, name, on_ranks):
    together = ["--together"] * (name == "two")
    words = ["count", tables / name, "-g", GERMLINE, "--max-n", 3, *together]
    hpcvdj_command(*words, "-o", tmp_path / "1.tsv")
    for name, rows in (("whole", ()), ("slices", ("--batch-rows", 500))):
        target = tmp_path / f"{name}.tsv"
        on_ranks(3, *words, "-o", target, *rows)
        assert target.read_bytes() == (tmp_path / "1.tsv").read_bytes()


@pytest.mark.slow
def test_other_ranks_go_on(tables, expected, paper_germline, tmp_path, on_ranks):
    """Parts that one rank made are continued by three."""
    stopped(tables / "t.tsv", tmp_path / "o.tsv", paper_germline, 2)
    words = ["count", tables / "t.tsv", "-g", GERMLINE, "--max-n", 3, "-o", tmp_path / "o.tsv", "--resume"]
    on_ranks(3, *words)
    assert (tmp_path / "o.tsv").read_bytes() == expected.read_bytes()
