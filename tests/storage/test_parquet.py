"""Parquet files that are joined as bytes are the file that one writer makes."""

import datetime
import decimal
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.storage import parquet
from hpcvdj.storage.parquet import join_parquet

COLUMNS = {
    "id": pa.large_string(),
    "call": pa.dictionary(pa.int32(), pa.string()),
    "p": pa.float64(),
    "count": pa.int64(),
    "small": pa.int8(),
    "productive": pa.bool_(),
    "listed": pa.list_(pa.int32()),
    "nested": pa.struct({"a": pa.int16(), "b": pa.binary()}),
    "price": pa.decimal128(9, 2),
    "when": pa.timestamp("us", "UTC"),
    "nothing": pa.null(),
}
MAKERS = {
    "id": lambda chance: "é" * chance.randrange(9) + str(chance.randrange(99)),
    "call": lambda chance: chance.choice(["TRBV1*01", "TRBV2*01"]),
    "p": lambda chance: chance.gauss(),
    "count": lambda chance: chance.randrange(-(2**63), 2**63),
    "small": lambda chance: chance.randrange(-128, 128),
    "productive": lambda chance: chance.random() < 0.5,
    "listed": lambda chance: list(range(chance.randrange(3))),
    "nested": lambda chance: {"a": chance.randrange(9), "b": chance.randbytes(3)},
    "price": lambda chance: decimal.Decimal(chance.randrange(-9999, 9999)) / 100,
    "when": lambda chance: datetime.datetime.fromtimestamp(chance.randrange(10**9), datetime.UTC),
    "nothing": lambda chance: None,
}


def batches_of(schema, sizes, chance):
    """Batches of so many random rows, some of whose values are null."""
    return [
        pa.RecordBatch.from_pylist(
            [{n: MAKERS[n](chance) if chance.random() < 0.8 else None for n in schema.names} for _ in range(rows)],
            schema,
        )
        for rows in sizes
    ]


def write(path, schema, batches, **how):
    with pq.ParquetWriter(path, schema, **how) as writer:
        for batch in batches:
            writer.write_batch(batch)


@settings(deadline=None)
@given(
    names=st.lists(st.sampled_from(list(COLUMNS)), min_size=1, unique=True),
    sizes=st.lists(st.lists(st.integers(0, 40), max_size=3), min_size=1, max_size=20),
    how=st.fixed_dictionaries({
        "compression": st.sampled_from(["snappy", "zstd", "none"]),
        "use_dictionary": st.booleans(),
        "write_statistics": st.booleans(),
    }),
    labelled=st.booleans(),
    chance=st.randoms(use_true_random=False),
)  # fmt: skip
def test_joined_parts_are_the_bytes_of_one_writer(tmp_path_factory, names, sizes, how, labelled, chance):
    schema = pa.schema({name: COLUMNS[name] for name in names}, metadata={"by": "me"} if labelled else None)
    chance = random.Random(chance.randrange(1000))
    parts = [batches_of(schema, own, chance) for own in sizes]
    folder = tmp_path_factory.mktemp("parts")
    paths = [folder / f"{k}.parquet" for k in range(len(parts))]
    for path, batches in zip(paths, parts, strict=True):
        write(path, schema, batches, **how)
    write(folder / "whole.parquet", schema, [batch for batches in parts for batch in batches], **how)
    join_parquet(paths, folder / "joined.parquet", lambda: None)
    assert (folder / "joined.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()


@pytest.fixture
def parts(tmp_path):
    """Three parts with all that a footer may point to, of 40 row groups in total, and their rows."""
    table = pa.table({"n": range(4000), "text": [f"row {k}" for k in range(4000)]})
    paths = []
    for first, last in ((0, 1700), (1700, 1701), (1701, 4000)):
        paths.append(tmp_path / f"{first}.parquet")
        pq.write_table(
            table.slice(first, last - first), paths[-1], row_group_size=100, write_page_index=True, version="2.6",
            bloom_filter_options={"text": {"ndv": 100}} if "bloom_filter_options" in pq.write_table.__doc__ else None,
            sorting_columns=[pq.SortingColumn(0)], write_page_checksum=True, data_page_version="2.0",
        )  # fmt: skip
    return paths, table


def test_readers_find_every_row(parts, tmp_path):
    paths, table = parts
    joined = tmp_path / "joined.parquet"
    join_parquet(paths, joined, lambda: None)
    assert pq.read_table(joined, page_checksum_verification=True).equals(table)
    metadata = pq.read_metadata(joined)
    assert metadata.num_rows == 4000
    assert metadata.num_row_groups == 41
    assert [metadata.row_group(k).column(0).statistics.min for k in (0, 17, 18)] == [0, 1700, 1701]
    assert metadata.row_group(40).sorting_columns == (pq.SortingColumn(0),)
    # By its statistics, one row group is read; by its page index, one page.
    found = ds.dataset(joined).to_table(filter=ds.field("n") == 1700)
    assert found.to_pylist() == [{"n": 1700, "text": "row 1700"}]


@pytest.mark.parametrize("library", ["polars", "duckdb", "fastparquet"])
def test_other_readers(parts, tmp_path, library):
    module = pytest.importorskip(library)
    paths, table = parts
    joined = tmp_path / "joined.parquet"
    join_parquet(paths, joined, lambda: None)
    if library == "polars":
        assert module.read_parquet(joined).to_arrow().cast(table.schema).equals(table)
        assert module.scan_parquet(joined).filter(module.col("n") == 3999).collect()["text"].to_list() == ["row 3999"]
    elif library == "duckdb":
        assert module.sql(f"select * from '{joined}'").fetchall() == [tuple(row.values()) for row in table.to_pylist()]
        assert module.sql(f"select text from '{joined}' where text = 'row 1700'").fetchall() == [("row 1700",)]
    else:
        assert module.ParquetFile(str(joined)).to_pandas()["text"].tolist() == table["text"].to_pylist()


def test_more_row_groups_than_have_a_number(parts, tmp_path, monkeypatch):
    paths, table = parts
    monkeypatch.setattr(parquet, "_MOST_NUMBERED", 5)
    join_parquet(paths, tmp_path / "joined.parquet", lambda: None)
    assert pq.read_table(tmp_path / "joined.parquet").equals(table)


def test_what_cannot_be_joined(parts, tmp_path):
    paths, table = parts
    pq.write_table(table.rename_columns(["n", "words"]), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"other.parquet has another schema than 0.parquet|has another schema"):
        join_parquet([*paths, tmp_path / "other.parquet"], tmp_path / "joined.parquet", lambda: None)
    Path(tmp_path / "cut.parquet").write_bytes(paths[0].read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"cut.parquet is cut short"):
        join_parquet([tmp_path / "cut.parquet"], tmp_path / "joined.parquet", lambda: None)
