"""Each table is opened once in a run: its columns, its rows and its repertoires come from one reader."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.repertoires import table as tables
from hpcvdj.repertoires.writers import write_table
from tests.commands import hpcvdj_command

MODEL = ("-m", "human_trb_m15", "--backend", "cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text table, a Parquet table, and one that is a table if its columns say so."""
    folder = tmp_path_factory.mktemp("cohort")
    drawn = hpcvdj.generate("human_trb_m15", 6_000, seed=7, productive=True, backend="cpu").select(
        ["sequence_id", "v_call", "j_call", "junction", "junction_aa"]
    )
    drawn = drawn.append_column("duplicate_count", pa.array(np.arange(len(drawn)) % 7 + 1))
    size = len(drawn) // 3
    for number, name in enumerate(("a.tsv", "b.parquet", "c.tsv")):
        write_table(folder / name, drawn.slice(number * size, size).to_batches(), overwrite=False)
    (folder / "c.tsv").rename(folder / "c.txt")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sharing", ["--draws", 1_000]),
        ("contamination", ["--draws", 1_000, "--min-low", 1, "--max-pgen", 1e-6]),
        ("enrich", []),
        pytest.param("infer-selection", [], marks=pytest.mark.exhaustive),
        ("pgen", []),
        ("pgen", ["--together"]),
        ("convert", []),
    ],
)
def test_each_table_is_opened_once(folder, tmp_path, monkeypatch, command, words):
    opened: Counter[str] = Counter()
    right = tables.open_table

    def open_table(path, opening):
        opened[path.name] += 1
        return right(path, opening)

    monkeypatch.setattr(tables, "open_table", open_table)
    several = command in ("enrich", "pgen") and "--together" not in words
    name = "o" if several or command == "infer-selection" else "o.h5" if command == "pgen" else "o.tsv"
    model = MODEL if command != "convert" else ()
    hpcvdj_command(command, folder, *model, *words, "-o", tmp_path / name)
    assert opened == {"a.tsv": 1, "b.parquet": 1, "c.txt": 1}


@pytest.mark.slow
def test_the_control_is_opened_once_for_all_tables(folder, tmp_path, monkeypatch):
    opened: Counter[str] = Counter()
    right = tables.open_table
    monkeypatch.setattr(tables, "open_table", lambda path, opening: opened.update([path.name]) or right(path, opening))
    given = [folder / "a.tsv", folder / "b.parquet"]
    hpcvdj_command("enrich", *given, *MODEL, "--control", folder / "c.txt", "-o", tmp_path / "o")
    assert opened == {"a.tsv": 1, "b.parquet": 1, "c.txt": 1}
