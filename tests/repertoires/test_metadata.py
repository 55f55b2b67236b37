"""hpcvdj.repertoires.metadata: what a table says of samples, from a file and in memory, and what is refused."""

import pandas as pd
import pyarrow as pa
import pytest

from hpcvdj.errors import InputError
from hpcvdj.repertoires.metadata import column_of, listed_in, others_in

NAMES = ("a", "b", "c")
COLUMNS = {"file": ["a.tsv.gz", "b.tsv", "in/c.parquet"], "year": [2019, 2020, 2020], "arm": ["x", "y", "y"]}


def path_of(folder, columns):
    """A text table with these columns."""
    path = folder / "meta.tsv"
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join("\t".join(map(str, row)) for row in (tuple(columns), *rows)) + "\n")
    return path


@pytest.mark.parametrize("in_memory", [True, False])
def test_names_are_those_of_files_and_values_are_texts(tmp_path, in_memory):
    metadata = pa.table(COLUMNS) if in_memory else path_of(tmp_path, COLUMNS)
    assert listed_in(metadata, "arm", NAMES) == {"a": "x", "b": "y", "c": "y"}
    assert column_of(metadata, "year", NAMES) == {"a": "2019", "b": "2020", "c": "2020"}
    assert listed_in(metadata, "arm", ("a", "z")) == {"a": "x"}
    assert listed_in(metadata, "arm", ()) == {}


def test_the_column_with_most_of_the_names_counts_and_of_equal_ones_that_of_airr():
    mixed = pa.table({"who": ["b", "a", "x"], "repertoire_id": ["a", "b", "y"], "arm": ["1", "2", "3"]})
    assert listed_in(mixed, "arm", NAMES) == {"a": "1", "b": "2"}
    more = mixed.append_column("other", pa.array(["c", "b", "a"]))
    assert listed_in(more, "arm", NAMES) == {"c": "1", "b": "2", "a": "3"}


@pytest.mark.parametrize("order", [["age", "rank", "sample"], ["sample", "age", "rank"], ["rank", "sample", "age"]])
def test_a_column_with_other_values_does_not_hide_the_next_one(order):
    columns = {"age": ["60", "61", "62"], "sample": ["1", "2", "3"], "rank": ["3", "2", "1"], "arm": ["x", "y", "z"]}
    with pytest.raises(InputError, match=r"the columns (rank and sample|sample and rank) both have names of tables"):
        listed_in(pa.table({name: columns[name] for name in [*order, "arm"]}), "arm", ("1", "2", "3"))


def test_the_column_of_other_spellings_may_be_any():
    metadata = pa.table({"age": ["60", "61"], "who": ["P1", "P2"], "arm": ["x", "y"]})
    with pytest.raises(InputError, match=r"P1 names no table, and P01 has no row \(and 1 more like this\)"):
        listed_in(metadata, "arm", ("P01", "P02"))
    with pytest.raises(InputError, match=r"no column of it \(strata\); there are age, who, arm"):
        column_of(metadata, "of it", ("P1",), "strata")


@pytest.mark.parametrize("first", [True, False])
def test_columns_with_nearly_the_same_names_in_other_rows(first):
    """Donors 1 to 4, who are in another order in a column of ranks: whichever column came first had the names."""
    names = ("1", "2", "3", "4")
    sample, rank = ["1", "2", "3", "9"], ["4", "3", "2", "1"]
    columns = {"sample": sample, "rank": rank} if first else {"rank": rank, "sample": sample}
    metadata = pa.table(columns | {"arm": ["x", "x", "y", "y"]})
    with pytest.raises(
        InputError,
        match="the columns rank and sample both have names of tables, in different rows; rename the right one to rep",
    ):
        listed_in(metadata, "arm", names)
    assert listed_in(metadata, "rank", names) == {"1": "4", "2": "3", "3": "2"}
    assert others_in(metadata, names, "sample") == ["9"]
    right = metadata.rename_columns(["repertoire_id" if name == "sample" else name for name in metadata.column_names])
    assert listed_in(right, "arm", names) == {"1": "x", "2": "x", "3": "y"}
    # The same names in the same rows, and half of the names, as of donors with two samples each, are no other answer.
    same = pa.table({"file": ["a.tsv", "b.tsv", "c"], "who": ["a", "b", ""], "arm": ["x", "y", "z"]})
    assert listed_in(same, "arm", NAMES) == {"a": "x", "b": "y", "c": "z"}
    paired = pa.table({"who": ["a", "a", "b", "b"], "sample": ["a", "a_2", "b", "b_2"], "arm": ["w", "x", "y", "z"]})
    assert listed_in(paired, "arm", ("a", "a_2", "b", "b_2"))["a_2"] == "x"


@pytest.mark.parametrize("first", [True, False])
def test_numbers_of_batches_are_no_names(first):
    """Donors 1 to 4, a fifth whose table is not given, and three batches."""
    names, columns = ("1", "2", "3", "4"), {"donor": ["1", "2", "3", "4", "5"], "batch": ["1", "1", "2", "3", "2"]}
    metadata = pa.table(dict(sorted(columns.items(), reverse=first)) | {"arm": ["v", "w", "x", "y", "z"]})
    assert listed_in(metadata, "arm", names) == {"1": "v", "2": "w", "3": "x", "4": "y"}
    # Visits 1 to 6 of donors 1 to 3: either may be meant.
    visits = pa.table({"visit": list("123456"), "donor": list("112233"), "arm": list("uvwxyz")})
    with pytest.raises(InputError, match="the columns visit and donor both have names of tables, in different rows"):
        listed_in(visits, "arm", ("1", "2", "3"))


def test_columns_that_say_the_same_are_not_refused():
    """A column of samples, the first of which are called like their donors; and a column with some of the names."""
    visits = {"donor": ["D1", "D1", "D2", "D2"], "sample": ["D1", "D1b", "D2", "D2b"], "arm": ["x", "x", "y", "y"]}
    for columns in (visits, dict(sorted(visits.items(), key=lambda column: column[0] != "sample"))):
        assert listed_in(pa.table(columns), "arm", ("D1", "D2")) == {"D1": "x", "D2": "y"}
    partial = pa.table({"file": ["a", "b", "c", "d"], "who": ["a", "b", "c", "other"], "arm": ["x", "y", "x", "y"]})
    assert listed_in(partial, "arm", ("a", "b", "c", "d")) == {"a": "x", "b": "y", "c": "x", "d": "y"}


def test_messages_name_the_column_of_names():
    with pytest.raises(
        InputError, match=r"no group for 3; .* in one column \(id has most of them\) and its group in g"
    ):
        column_of(pa.table({"g": ["1", "2", "3"], "id": ["1", "2", "9"]}), "g", ("1", "2", "3"))
    with pytest.raises(InputError, match=r"no group for D1, D2; .* in one column \(no column has any of them\)"):
        column_of(pa.table({"age": ["60", "61"], "sample": ["S1", "S2"], "g": ["x", "y"]}), "g", ("D1", "D2"))


def test_whole_numbers_with_a_point(tmp_path):
    """pandas writes a column of numbers so that once lacked one; ages were the names."""
    metadata = path_of(tmp_path, {"id": ["1.0", "2.0", "3.0"], "age": ["3", "40", "50"], "arm": ["x", "y", "z"]})
    assert listed_in(metadata, "arm", ("1", "2", "3")) == {"1": "x", "2": "y", "3": "z"}
    assert listed_in(metadata, "arm", ("1.0", "2", "3")) == {"1.0": "x", "2": "y", "3": "z"}


def test_blanks_around_values_do_not_count(tmp_path):
    columns = {"who": [" a", "b ", "c"], "arm": ["x ", " x", "NA "]}
    for metadata in (pa.table(columns), path_of(tmp_path, columns)):
        assert listed_in(metadata, "arm", NAMES) == {"a": "x", "b": "x"}


def test_rows_without_a_name_or_a_group():
    some = pa.table({"who": ["a", "", None, "b", "a"], "arm": ["x", "y", "y", "", "x"]})
    assert listed_in(some, "arm", NAMES) == {"a": "x"}
    with pytest.raises(InputError, match=r"^the metadata: no arm of it for b, c; it needs a row for each individual"):
        column_of(some, "arm", NAMES, "arm of it")


def test_what_is_refused_names_the_table(tmp_path):
    path = path_of(tmp_path, COLUMNS)
    with pytest.raises(InputError, match=r"meta\.tsv: no column batch \(group\); there are file, year, arm$"):
        listed_in(path, "batch", NAMES)
    with pytest.raises(InputError, match=r"^the metadata: no column batch \(subject\); there are file, year, arm$"):
        listed_in(pa.table(COLUMNS), "batch", NAMES, "subject")
    with pytest.raises(InputError, match=r"meta\.tsv: no group for z; .* one column \(file has most of them\) and its"):
        column_of(path, "arm", ("a", "z"))
    semicolons = tmp_path / "semicolons.tsv"
    semicolons.write_text("who;arm\na;x\n")
    with pytest.raises(InputError, match=r"semicolons\.tsv: no column arm \(group\); .*semicolon"):
        listed_in(semicolons, "arm", NAMES)
    twice = pa.table({"who": ["a", "a"], "arm": ["x", "y"]})
    with pytest.raises(InputError, match=r"^the metadata: a has the groups x and y; correct the column arm$"):
        listed_in(twice, "arm", NAMES)


@pytest.mark.parametrize(
    ("name", "what", "refused"),
    [
        ("individuals", "group", True), ("individuals", "subject", False), ("x\ty", "group", True),
        ("x\ny", "subject", True), ("x y", "group", False),
    ],
)  # fmt: skip
def test_values_that_name_columns(name, what, refused):
    metadata = pa.table({"who": ["a"], "arm": [name]})
    if not refused:
        assert listed_in(metadata, "arm", NAMES, what) == {"a": name}
        return
    message = rf"^the metadata: a {what} cannot be called .*, as columns are named by it; rename it$"
    with pytest.raises(InputError, match=message):
        listed_in(metadata, "arm", NAMES, what)


@pytest.mark.parametrize("written", ["P3", "p03", "P-3", "p 003"])
def test_a_name_in_another_spelling_is_refused(written):
    metadata = pa.table({"who": ["P1", written, "P20"], "arm": ["x", "y", "y"]})
    with pytest.raises(InputError) as raised:
        listed_in(metadata, "arm", ("P1", "P03", "P20"))
    assert str(raised.value) == (
        f"the metadata: {written} names no table, and P03 has no row; write P03 for {written}, or, if they are "
        "different, add a row for P03, which may be empty"
    )
    row = pa.table({"who": ["P03"], "arm": [""]})
    assert listed_in(pa.concat_tables([metadata, row]), "arm", ("P1", "P03", "P20")) == {"P1": "x", "P20": "y"}


def test_other_names_are_not_other_spellings():
    metadata = pa.table({"who": ["P1_3", "P30", "Q3", "P", "3"], "arm": ["x"] * 5})
    assert listed_in(metadata, "arm", ("P13", "P03", "P3_0")) == {}
    both = pa.table({"who": ["P3", "P03"], "arm": ["x", "y"]})
    assert listed_in(both, "arm", ("P3", "P03")) == {"P3": "x", "P03": "y"}
    assert listed_in(both, "arm", ("P3",)) == {"P3": "x"}
    assert listed_in(both.slice(0, 1), "arm", ("P3", "P03")) == {"P3": "x"}, "it names a table of its own"


def test_other_misspelt_names_are_counted():
    metadata = pa.table({"who": ["P1", "p2", "P3"], "arm": ["x", "y", "y"]})
    with pytest.raises(InputError, match=r"p2 names no table, and P02 has no row \(and 1 more like this\)"):
        listed_in(metadata, "arm", ("P1", "P02", "P03"))


@pytest.mark.parametrize(
    "index", [["a", "b", "c"], pd.Index(["a", "b", "c"], name="donor"), pd.Index(list("abc"), name="arm")]
)
def test_names_in_the_index_of_a_data_frame(index):
    metadata = pd.DataFrame({"arm": ["x", "y", "y"]}, index=index)
    assert listed_in(metadata, "arm", NAMES) == {"a": "x", "b": "y", "c": "y"}


def test_numbers_in_the_index_are_no_names():
    metadata = pd.DataFrame({"who": ["1", "0"], "arm": ["x", "y"]})
    assert listed_in(metadata, "arm", ("0", "1")) == {"1": "x", "0": "y"}
    assert others_in(metadata.set_index("arm"), ("0", "1"), "who") == []
