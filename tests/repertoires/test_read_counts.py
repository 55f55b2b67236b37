"""Read counts as programs write them: each is a count, missing, or a reason to exclude the row."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcvdj
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.formats import steps
from hpcvdj.repertoires.inputs import read_table, tables_of
from hpcvdj.repertoires.read_counts import MOST, UNKNOWN, read_counts
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.species import warn_of_rows
from hpcvdj.repertoires.tally import tally_of
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from tests.commands import hpcvdj_command

COUNTS = {
    "7": 7, "1e+05": 100_000, "1E5": 100_000, " 900 ": 900, "12.0": 12, "3.": 3, "0012": 12, "1.5e1": 15,
    str(MOST): MOST, "1e15": MOST, "9" * 15: 10**15 - 1,
}  # fmt: skip
MISSING = ["", " ", "NA", "NaN", "nan", "None", "null", "N/A"]
WRONG = [
    "1,000",
    "-5",
    "0",
    "0.0",
    "12.5",
    "many",
    "1e-1",
    "9" * 19,
    "1e16",
    "1e99",
    "inf",
    "0x10",
    "1_000",
    "٣",
    "1 2",
    ".",
]


@pytest.mark.parametrize("with_text", [False, True])
def test_every_text(with_text):
    texts = [*COUNTS, *MISSING, *WRONG] if with_text else ["7", "0012", "9" * 15, "0"]
    counts, wrong = read_counts(pa.array(texts))
    for row, text in enumerate(texts):
        assert counts[row] == COUNTS.get(text, UNKNOWN), text
        assert (row in wrong) == (text in WRONG), text
        if row in wrong:
            assert str(wrong[row]) == f"duplicate_count {text!r} is no whole number from 1 to 10^15"


@given(st.integers(1, MOST), st.sampled_from(["{}", "{}.0", " {}", "{}.", "{:.15e}"]))
def test_any_number_however_it_is_written(number, form):
    assert read_counts(pa.array([form.format(number), "x"]))[0].tolist() == [number, UNKNOWN]


def test_none():
    counts, wrong = read_counts(pa.array([None, "4"], pa.string()))
    assert counts.tolist() == [UNKNOWN, 4]
    assert not wrong
    counts, wrong = read_counts(pa.array([], pa.string()))
    assert len(counts) == len(wrong) == 0


@pytest.fixture(scope="module")
def rows():
    model = load_model("human_trb_m15")
    return hpcvdj.generate(model, 8, seed=1, productive=True).select(["sequence_id", "v_call", "j_call", "junction"])


def read(table):
    return read_table(table, load_model("human_trb_m15"), productive_reading(reads=True))


def test_rows_without_a_valid_count_are_excluded(rows):
    counts = ["1e+05", "NA", "1,000", "4", "7.0", "2", "-1", "3"]
    found = read(rows.append_column("duplicate_count", pa.array(counts)))
    assert found.reads.tolist() == [{0: 100_000, 3: 4, 4: 7, 5: 2, 7: 3}[row] for row in found.row.tolist()]
    excluded = {found.excluded.row[k]: str(found.excluded.exclusion(k)) for k in range(len(found.excluded))}
    assert excluded == {
        1: "no duplicate_count, which other rows have",
        2: "duplicate_count '1,000' is no whole number from 1 to 10^15",
        6: "duplicate_count '-1' is no whole number from 1 to 10^15",
    }


@pytest.mark.parametrize(("zeros", "said"), [(2, False), (3, True), (8, True)])
def test_counts_that_begin_at_zero_are_said(rows, zeros, said, caplog):
    counts = ["0"] * (zeros - 1) + ["0.0"] + ["2"] * (8 - zeros)
    found = read(rows.append_column("duplicate_count", pa.array(counts)))
    assert len(found) == 8 - zeros
    for names in ("a.tsv", ""):
        caplog.clear()
        warn_of_rows(tally_of(found), load_model("human_trb_m15"), names)
        message = f"{zeros} of 8 rows with a duplicate_count have 0: if counts begin at 0, add 1 to each"
        assert (message in caplog.text) == said


def test_a_column_without_any_count_is_none(rows):
    assert read(rows).reads is None
    for counts in (["", "NA", " "] + ["nan"] * 5, [None] * 8, [float("nan")] * 8):
        found = read(rows.append_column("duplicate_count", pa.array(counts)))
        assert found.reads is None
        assert len(found) == 8


def test_numbers_in_memory(rows):
    for counts in ([1, 2, 3, 4, 5, 6, 7, 100_000], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 1e5]):
        found = read(rows.append_column("duplicate_count", pa.array(counts)))
        assert sorted(found.reads.tolist()) == [1, 2, 3, 4, 5, 6, 7, 100_000]


def test_all_tables_must_have_counts(rows, tmp_path):
    paths = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    tables = [rows.append_column("duplicate_count", pa.array(range(1, 9))), rows]
    for path, table in zip(paths, tables, strict=True):
        lines = ["\t".join(table.column_names)]
        lines += ["\t".join(map(str, row.values())) for row in table.to_pylist()]
        path.write_text("\n".join([*lines, ""]))
    reading, model = productive_reading(reads=True), load_model("human_trb_m15")

    def reads(paths, reading):
        return surveyed(tables_of(paths, reading), Run()).read(model).reads

    assert sorted(reads(paths[:1], reading).tolist()) == list(range(1, 9))
    assert reads(paths, reading) is None
    assert reads(paths[:1], productive_reading()) is None


@pytest.mark.slow
@pytest.mark.parametrize("large", ["100000", "1e+05", "1e+05 ", "100000.0"])
def test_the_source_of_copies_keeps_its_rows(large, tmp_path):
    """R writes 100000 as 1e+05: taken for one read, the source loses its rows to the copies."""
    model = load_model("human_trb_m15")
    drawn = hpcvdj.generate(model, 6_000, seed=2, productive=True).to_pandas()
    halves = [drawn.iloc[:3_000].copy(), drawn.iloc[3_000:].copy()]
    for half in halves:
        half["duplicate_count"] = "2"
    source = hpcvdj.pgen(halves[0], model)["pgen_nt"].nsmallest(60).index
    halves[0].loc[source, "duplicate_count"] = large
    copies = halves[0].loc[source].assign(duplicate_count="3", sequence_id=[f"c{k}" for k in range(60)])
    tables = {"a": halves[0], "b": halves[1]._append(copies)}
    folder = tmp_path / "cohort"
    folder.mkdir()
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.tsv", sep="\t", index=False)
    hpcvdj_command(
        "contamination", folder, "-m", "human_trb_m15", "-o", tmp_path / "o.tsv", "--write-clean", tmp_path / "clean",
        "--draws", 20_000, "--max-pgen", "1e-9",
    )  # fmt: skip
    kept = (tmp_path / "clean" / "a.tsv").read_text()
    assert all(drawn.loc[row, "junction"] in kept for row in source)
    assert "\nc0\t" not in (tmp_path / "clean" / "b.tsv").read_text()


def test_frequencies_are_not_counts_of_0():
    """They were rounded to 0, and the message said that counts may begin at 0."""
    texts = ["0.0017", "0.49", "0", "0.5", "2.5", "12", "1e2", "."]
    assert steps.counts(pa.array(texts)).to_pylist() == ["0.0017", "0.49", "0", "1", "3", "12", "100", ""]
    assert "'0.0017'" in str(read_counts(pa.array(["0.0017"]))[1][0])
