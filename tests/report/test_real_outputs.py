"""The report of what the commands write: no layout of the examples stands between them."""

import json

import pytest

import hpcvdj
from hpcvdj.repertoires.writers import write_table
from tests.commands import hpcvdj_command
from tests.report.conftest import Page

MODEL = "human_trb_m15"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Outputs of three individuals, by command; the third has a tenth of the second's clones."""
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "in").mkdir()
    drawn = hpcvdj.generate(MODEL, 28_000, seed=8, productive=True, backend="cpu")
    drawn = drawn.select(["sequence_id", "v_call", "j_call", "junction"]).append_column(
        "duplicate_count", [[str(1 + k % 50) for k in range(drawn.num_rows)]]
    )
    size = drawn.num_rows // 3
    for k, name in enumerate("abc"):
        own = drawn.slice(size * k, size).combine_chunks()
        write_table(folder / "in" / f"{name}.tsv", own.to_batches(), overwrite=False)
    copies = (folder / "in" / "b.tsv").read_text().splitlines(keepends=True)[1 : size // 10]
    with (folder / "in" / "c.tsv").open("a") as stream:
        stream.writelines(f"copy{line}" for line in copies)
    (folder / "meta.tsv").write_text("name\tbatch\na\tx\nb\ty\nc\ty\n")
    groups = ("--metadata", folder / "meta.tsv", "--group", "batch")
    tables = sorted((folder / "in").iterdir())
    given = ("-m", MODEL, "--backend", "cpu")
    hpcvdj_command("contamination", *tables, *given, *groups, "--min-low", "100", "-o", folder / "pairs.tsv")
    hpcvdj_command("sharing", *tables, *given, *groups, "--draws", "5000", "-o", folder / "shared.tsv")
    hpcvdj_command("pgen", tables[0], *given, "-o", folder / "a_pgen.parquet")
    hpcvdj_command("enrich", folder / "a_pgen.parquet", *given, "-o", folder / "a_enriched.tsv")
    return folder, groups


@pytest.mark.exhaustive
def test_their_numbers_are_on_the_page(outputs):
    folder, groups = outputs
    names = ("pairs.tsv", "shared.tsv", "a_enriched.tsv")
    pairs, shared, enriched = (json.loads((folder / f"{name}.json").read_text()) for name in names)
    hpcvdj_command(
        "report", *(folder / name for name in (*names, "a_pgen.parquet")), *groups, "-o", folder / "page.html"
    )
    page = Page((folder / "page.html").read_text())
    assert pairs["standing_out"] == [[1, 2]]
    assert "1 of 3 pairs share more improbable junctions than chance explains: b and c" in page.text
    rates = {
        (row["individual_1"], row["individual_2"]): row["shared_low"] for row in page.rows("contamination_1_pairs")
    }
    assert rates["b", "c"] == pairs["shared_low"][1][2] > 100
    rows = page.rows("sharing_1_spectrum")
    spectrum = {row["n_individuals"]: row["number"] for row in rows if row["series"] == "observed"}
    assert spectrum == {row["individuals"]: row["observed"] for row in shared["spectrum"]}
    assert f"q = {shared['q']:.3g}" in page.text
    assert f"{enriched['kappa']:.3g}" in page.text
    # Each individual once, by the table that was read first.
    assert "Immune repertoire report a and b and c" in page.text
    table = page.rows("samples_table")
    assert {row["sample"]: row["group"] for row in table} == {"a": "x", "b": "y", "c": "y"}
    assert [row["command"] for row in table] == ["pgen", None, None]
    for name, facts in (("a", enriched), ("b", pairs), ("c", shared)):
        sizes = facts["clones"][{"a": "a_pgen"}.get(name, name)]
        reads = sum(size * often for size, often in zip(sizes["reads"], sizes["clonotypes"], strict=True))
        assert next(row["reads"] for row in table if row["sample"] == name) == reads
    assert {row["sample"] for row in page.rows("enrich_samples")} == {"a"}
    assert all(row["made by"].startswith("hpcvdj ") for row in page.rows("files_table"))
