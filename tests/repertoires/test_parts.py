"""What several threads do, each with a part of the rows: the parts are together what one part is."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.packaged import model_paths
from hpcvdj.repertoires.genes import as_text, letter_words, merged
from hpcvdj.repertoires.inputs import tables_of
from hpcvdj.repertoires.reading import Reading
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run


@pytest.fixture(params=[7, 64, 1 << 16])
def at_once(request, monkeypatch):
    """Rows of the smallest part."""
    for module in ("genes", "junctions"):
        monkeypatch.setattr(f"hpcvdj.repertoires.{module}.TAKEN_AT_ONCE", request.param)
    monkeypatch.setattr("hpcvdj.kernels.neighbours.blocks.TAKEN_AT_ONCE", request.param)
    return request.param


def test_letters_as_texts_and_numbers(at_once):
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 17, 300)
    letters = rng.integers(65, 91, (300, 16)).astype(np.uint8) * (np.arange(16) < lengths[:, None])
    texts = as_text(letters, lengths)
    texts.validate(full=True)
    assert texts.to_pylist() == [bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)]
    assert as_text(letters[:, 1:], np.maximum(lengths - 1, 0))[5].as_py() == texts[5].as_py()[1:]
    assert letter_words(letters).tolist() == [
        [int.from_bytes(row[k : k + 8].tobytes(), "big") for k in (0, 8)] for row in letters
    ]
    assert as_text(letters[:0], lengths[:0]).to_pylist() == []
    assert letter_words(letters[:0]).shape == (0, 2)


def test_junctions_are_read_and_merged(at_once, tmp_path):
    """In the order of pairs of V and J, then of rows; of repeated ids the first row counts."""
    model = load_model(model_paths()["human_trb_m15"])
    drawn = hpcvdj.generate(model, 400, seed=4, backend="cpu").select(["v_call", "j_call", "junction"])
    ids = [f"r{k}" for k in range(400)]
    ids[300], ids[399], ids[7] = ids[3], ids[3], ids[250]
    pq.write_table(drawn.append_column("sequence_id", pa.array(ids)), tmp_path / "t.parquet", row_group_size=150)
    junctions = surveyed(tables_of([tmp_path / "t.parquet"], Reading()), Run()).read(model)
    repertoire, rows = junctions.repertoire, junctions.row.tolist()
    assert sorted([*rows, *junctions.excluded.row.tolist()]) == list(range(400))
    assert junctions.excluded.row.tolist() == [250, 300, 399]
    seen = [tuple(drawn[name][row].as_py() for name in ("v_call", "j_call")) for row in rows]
    pairs = [(v.allele, j.allele) for v, j in repertoire.pairs]
    for pair in range(len(pairs)):
        own = list(repertoire.rows_of(pair))
        assert {seen[row] for row in own} == {pairs[pair]}
        assert [rows[row] for row in own] == sorted(rows[row] for row in own)
    assert [f"TGT{repertoire.cdr3(k)}"[3:] for k in range(5)] == [
        drawn["junction"][row].as_py()[3:-3] for row in rows[:5]
    ]
    again, order = merged([repertoire])
    keys = [(*pair, int(again.lengths[row])) for k, pair in enumerate(
        (v.allele, j.allele) for v, j in again.pairs) for row in again.rows_of(k)]  # fmt: skip
    assert keys == sorted(keys)
    assert again.words.tolist() == repertoire.words[order].tolist()
