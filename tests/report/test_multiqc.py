"""Tables of samples for MultiQC."""

import json

import pytest

from hpcvdj.errors import InputError
from hpcvdj.reports.page import write_report
from hpcvdj.reports.settings import ReportSettings
from tests.report import examples
from tests.report.conftest import Page


def test_each_table_of_samples_is_a_file(tmp_path, findings):
    (tmp_path / "annotated").mkdir()
    annotated = [
        examples.annotation(tmp_path / "annotated" / name, sample=name, hits=hits)
        for name, hits in (("donor1", 9), ("donor2", 4))
    ]
    write_report([*findings, *annotated], tmp_path / "r.html", settings=ReportSettings(multiqc=tmp_path / "mqc"))
    page = Page((tmp_path / "r.html").read_text())
    files = {path.name: json.loads(path.read_text()) for path in (tmp_path / "mqc").iterdir()}
    assert {"hpcvdj_annotate_samples_mqc.json", "hpcvdj_enrich_samples_mqc.json"} < files.keys()
    for name, content in files.items():
        table = page.rows(content["id"].removeprefix("hpcvdj_"))
        assert name == f"{content['id']}_mqc.json"
        assert content["plot_type"] == "table"
        key = next(iter(table[0]))
        assert key in ("sample", "individual")
        # What has no value is left out.
        expected = {row.pop(key): {name: cell for name, cell in row.items() if cell is not None} for row in table}
        assert content["data"] == expected
        assert set().union(*content["data"].values()) <= content["headers"].keys()
    assert files["hpcvdj_annotate_samples_mqc.json"]["data"]["donor2"]["found"] == 4
    # Tables with several rows of a sample say nothing of a sample.
    assert not any("epitopes" in name or "clonotypes" in name for name in files)


def test_files_that_exist_stay(tmp_path, findings):
    (tmp_path / "mqc").mkdir()
    (tmp_path / "mqc" / "hpcvdj_enrich_samples_mqc.json").write_text("mine")
    with pytest.raises(InputError, match=r"hpcvdj_enrich_samples_mqc\.json: exists already"):
        write_report(findings, tmp_path / "r.html", settings=ReportSettings(multiqc=tmp_path / "mqc"))
    assert not (tmp_path / "r.html").exists()
    write_report(findings, tmp_path / "r.html", settings=ReportSettings(multiqc=tmp_path / "mqc"), overwrite=True)
    assert json.loads((tmp_path / "mqc" / "hpcvdj_enrich_samples_mqc.json").read_text())["data"]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file: cannot be made .* name another folder with multiqc"):
        write_report(findings, tmp_path / "r.html", settings=ReportSettings(multiqc=tmp_path / "file"), overwrite=True)
