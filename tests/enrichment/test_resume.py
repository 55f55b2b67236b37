"""`hpcvdj enrich --resume`: what is complete is left alone, and nothing else is taken for it."""

import json

import pytest

from hpcvdj.repertoires.writers import write_table
from tests.chance.test_fit import rows_of
from tests.commands import error_line, hpcvdj_command
from tests.selected import few_genes


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    table = tmp_path_factory.mktemp("resume") / "t.tsv"
    write_table(table, rows_of(few_genes(), 800, productive=True).to_batches(), overwrite=False)
    return ["enrich", table, "-m", "human_trb_m15", "--backend", "cpu", "--kappa", "1"]


@pytest.mark.slow
def test_table_and_facts_belong_together(words, tmp_path):
    target, plot = tmp_path / "o.tsv", tmp_path / "f.svg"
    pytest.importorskip("vl_convert")
    given = [*words, "-o", target, "--plot", plot]
    hpcvdj_command(*given)
    content = target.read_bytes()
    _, err = hpcvdj_command(*given, "--resume")
    assert "o.tsv: is complete already; there is nothing to resume" in err
    target.write_bytes(content[: len(content) // 10])
    _, err = hpcvdj_command(*given, "--resume", code=2)
    assert "o.tsv: is not the table that o.tsv.json describes" in error_line(err)
    _, err = hpcvdj_command("report", target, "-o", tmp_path / "r.html", code=2)
    assert "o.tsv: is not the table that o.tsv.json describes" in error_line(err)
    hpcvdj_command(*given, "--resume", "--overwrite")
    assert target.read_bytes() == content
    hpcvdj_command("report", target, "-o", tmp_path / "r.html")
    _, err = hpcvdj_command(*given, "--max-q", "0.5", "--resume", code=2)
    assert "o.tsv: is of another run (max_q was 0.001, is 0.5)" in error_line(err)
    target.unlink()
    plot.unlink()
    hpcvdj_command(*given, "--resume")
    assert target.read_bytes() == content
    assert json.loads((tmp_path / "o.tsv.json").read_text())["outputs"][0][0] == "o.tsv"
