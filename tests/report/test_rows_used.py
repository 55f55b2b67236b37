"""How many rows a page says that a command read, used and left out."""

import pytest

from tests.report import examples

TOGETHER = "A row with a junction that another row has counts together with it."
LEFT_OUT = {"junction that another row of the individual has": 900, "out of frame": 40, "not productive": 5}
REPEATED = {"junctions that another row has": 700, "likely sequencing errors": 20, "fewer than 1 reads": 0}


@pytest.mark.parametrize("kind", ["sharing", "contamination", "association", "expansion"])
def test_rows_of_individuals_are_used_or_left_out(tmp_path, report, kind):
    """Rows that count with another were used at the top of the page, and left out in the table below."""
    individuals = [
        {"name": name, "group": "g", "rows": 1000, "low": 9, "zero": 0, "left_out": LEFT_OUT} for name in examples.NAMES
    ]
    page = report([getattr(examples, kind)(tmp_path / "s.tsv", individuals=individuals)])
    assert (
        ": 7,780 rows read, 4,000 used, 3,780 left out: 3,600 with a junction that another row has, 20 not productive, "
        "160 for other reasons (2.1 %). "
    ) in page.text
    assert TOGETHER in page.text
    assert "Were most rows used? yes" in page.text
    table = {"association": "associate"}.get(kind, kind)
    for row in page.rows(f"{table}_1_individuals"):
        assert (row["rows_read"], row["rows"], row["left_out"]) == (1945, 1000, 945)
        assert row["reason"] == "; ".join(f"{reason}: {rows}" for reason, rows in LEFT_OUT.items())


def test_rows_of_enrich_are_used_or_left_out(tmp_path, report):
    excluded = [["unproductive", {"field": "junction"}, 100]]
    page = report([examples.enrichment(tmp_path / "e.tsv", rows_read=1000, rows_left_out=REPEATED,
                                       rows_excluded=excluded)])  # fmt: skip
    assert (
        "enrich: 1,000 rows read, 180 used, 820 left out: 700 with a junction that another row has, 100 not "
        "productive, 20 for other reasons (2.2 %)."
    ) in page.text
    (row,) = page.rows("enrich_samples")
    assert (row["rows_read"], row["rows"], row["left_out"]) == (1000, 180, 820)
    assert row["reason"] == "not productive: 100; junctions that another row has: 700; likely sequencing errors: 20"
    page = report([examples.enrichment(tmp_path / "f.tsv", rows_left_out={})])
    assert "enrich: 3,000 rows read, 3,000 used, 0 left out (0 %)." in page.text
    assert TOGETHER not in page.text


def test_rows_of_runs_of_annotate_are_used_or_left_out(tmp_path, report):
    """Of two runs with the same tables, as for both chains, one did not count."""
    run = {"tables": [["all.tsv", "1", 6000]], "rows_read": 6000, "rows_excluded": [["no_v_call", {}, 500]],
           "rows_left_out": REPEATED}  # fmt: skip
    own = {"donor1": 3000, "donor2": 1060}
    (tmp_path / "other").mkdir()
    files = [
        examples.annotation(folder / name, name, model_sha256=model, junctions=junctions, **run)
        for folder, model in ((tmp_path, "1"), (tmp_path / "other", "2")) for name, junctions in own.items()
    ]  # fmt: skip
    assert (
        "annotate: 12,000 rows read, 8,120 used, 3,880 left out: 2,800 with a junction that another row has, 1,080 for "
        "other reasons (9 %)."
    ) in report(files).text
    # A page of one sample of the run.
    assert (
        "annotate: 6,000 rows read, 3,000 used, 3,000 left out: 700 with a junction that another row has, 1,780 of "
        "samples that the page lacks, 520 for other reasons (12 %)."
    ) in report(files[:1]).text
    older = examples.annotation(tmp_path / "older", **{**run, "rows_left_out": {}})
    assert "annotate: 6,000 rows read, 5,500 used, 500 left out (8.3 %)." in report([older]).text
