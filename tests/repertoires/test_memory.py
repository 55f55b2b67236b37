"""Reading a Parquet table takes as much memory as one row group, however many there are."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hpcvdj.repertoires import readers

GROUP_ROWS, GROUPS = 10_000, 30
GROUP_BYTES = 100 * GROUP_ROWS
COLUMNS = ["junction"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """30 row groups of 1 MB that do not pack."""
    path = tmp_path_factory.mktemp("tables") / "t.parquet"
    rng = np.random.default_rng(1)
    schema = pa.schema({"junction": pa.string()})
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for _ in range(GROUPS):
            texts = rng.integers(33, 127, (GROUP_ROWS, 100), dtype=np.uint8).view("S100").reshape(-1).astype("U100")
            writer.write_table(pa.table({"junction": texts.tolist()}, schema))
    assert path.stat().st_size > GROUPS * GROUP_BYTES / 2
    return path


def test_a_table_read_through(table, monkeypatch):
    monkeypatch.setattr(readers.reader, "BATCH_ROWS", GROUP_ROWS)
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for batch in readers.open_table(table).batches(COLUMNS):
        rows += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == GROUPS * GROUP_ROWS
    assert 0 < most < 8 * GROUP_BYTES


def test_tables_of_which_a_rank_reads_a_slice_each(table, monkeypatch):
    """They stay open: the rank may have another slice of theirs."""
    monkeypatch.setattr(readers.reader, "BATCH_ROWS", GROUP_ROWS)
    before = pa.total_allocated_bytes()
    second_slice = range(5 * GROUP_ROWS, 10 * GROUP_ROWS)
    streams = [readers.open_table(table).ranges(COLUMNS, [second_slice]) for _ in range(10)]
    for stream in streams:
        assert sum(batch.num_rows for batch in next(stream)[1]) == 5 * GROUP_ROWS
    assert pa.total_allocated_bytes() - before < 5 * GROUP_BYTES
