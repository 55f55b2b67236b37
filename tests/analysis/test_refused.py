"""A step, or a table of a step, that is refused keeps no other one from being done."""

import itertools
import re
import shutil

import pytest

from hpcvdj.analysis.settings import STEPS
from tests.analysis.drawn import MODEL, state
from tests.commands import error_line, hpcvdj_command

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("few_draws")]


@pytest.mark.slow
def test_a_refused_step_does_not_keep_the_others_from_being_done(cohort, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    for k in range(2):
        # Two tables of one sample.
        (folder / f"d{k}.tsv").write_bytes((cohort / "tables" / "d0.tsv").read_bytes())
    line = "analyze", folder, "-m", MODEL, "--backend", "cpu", "-o", tmp_path / "out"
    wanted = [option for step in ("sharing", "pgen", "report") for option in ("--only", step)]
    said, logged = hpcvdj_command(*line, *wanted, code=2)
    assert state(tmp_path / "out")["sharing"] == "refused"
    assert state(tmp_path / "out")["pgen"] == "done"
    assert "samples of one person share far more than two people" in said
    assert "1 step(s) were refused: sharing" in error_line(logged)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Was everything done that was asked for?" in page
    assert "sharing: d0 and d1" in page
    # It is tried again.
    said, _ = hpcvdj_command(*line, "--only", "sharing", "--resume", code=2)
    assert "refused: " in said


@pytest.mark.slow
def test_a_sample_with_too_few_clonotypes_keeps_no_other_from_being_tested(cohort, tmp_path):
    """The whole step was refused, or ended the run, and no table was on the page."""
    folder, output = tmp_path / "tables", tmp_path / "out"
    shutil.copytree(cohort / "tables", folder)
    header, *rows = (folder / "d3.tsv").read_text().splitlines()
    # Without the last base, no junction is productive.
    at = header.replace('"', "").split("\t").index("junction")
    cut = ["\t".join(text[:-1] if k == at else text for k, text in enumerate(row.split("\t"))) for row in rows[:9]]
    (folder / "d3.tsv").write_text("\n".join([header, *cut]))
    (folder / "d2.tsv").write_text("\n".join([header, *rows[:20]]))
    line = "analyze", folder, "-m", MODEL, "--backend", "cpu", "-o", output
    wanted = [option for step in ("enrich", "report") for option in ("--only", step)]
    said, _ = hpcvdj_command(*line, *wanted)
    assert state(output)["enrich"] == "done"
    assert re.search(r"^enrich +clonotypes +[\d,]+ of 2 individual", said, re.MULTILINE)
    assert "tables were complete" not in said
    page = (output / "report.html").read_text()
    assert "Are there neighbourhoods beyond chance?" in page
    for text in (said, page):
        assert re.search("not tested: d2.tsv: 20 clonotypes, too few.* d3.tsv: no clonotype is left", text)
    (output / "report.html").unlink()
    hpcvdj_command(*line, *wanted, "--resume")
    assert "d3.tsv: no clonotype is left" in (output / "report.html").read_text()
    hpcvdj_command("report", output, "-o", tmp_path / "page.html")
    assert "d3.tsv: no clonotype is left" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_a_table_that_is_refused_keeps_no_other_from_being_tested(cohort, tmp_path):
    """If the κ of one table was at its bound, the finished tables of the others were not on the page."""
    folder, output = tmp_path / "tables", tmp_path / "out"
    shutil.copytree(cohort / "tables", folder)
    header, first, *_ = (folder / "d3.tsv").read_text().splitlines()
    at = [header.replace('"', "").split("\t").index(name) for name in ("sequence_id", "junction")]
    lines, codons = [], [f"{a}{b}T" for a in "ACGT" for b in "ACGT"]
    for k, pair in enumerate(itertools.product(codons, codons)):
        row = first.split("\t")
        row[at[0]], row[at[1]] = str(k), row[at[1]][:15] + "".join(pair) + row[at[1]][21:]
        lines.append("\t".join(row))
    # Each junction has neighbours.
    (folder / "d3.tsv").write_text("\n".join([header, *lines]))
    line = "analyze", folder, "-m", MODEL, "--backend", "cpu", "-o", output
    wanted = [option for step in ("enrich", "report") for option in ("--only", step)]
    for resumed in ([], ["--resume"]):
        said, logged = hpcvdj_command(*line, *wanted, *resumed, code=2)
        assert "1 step(s) were refused: enrich (some tables)" in error_line(logged)
        assert state(output) == dict.fromkeys(STEPS, "left out") | {"enrich": "done", "report": "done"}
        for text in (said, (output / "report.html").read_text()):
            assert re.search("not tested: d3.tsv: 0 of 225 clonotypes have no neighbour", text)
        assert sorted(path.name for path in (output / "enriched").glob("*.tsv")) == ["d0.tsv", "d1.tsv", "d2.tsv"]
