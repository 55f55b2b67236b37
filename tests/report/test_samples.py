"""The table of samples: reads, clonality and Hill numbers from the facts of any question; and the overview."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hpcvdj
from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.chance.diversity import ORDERS, clonality, hill_number
from hpcvdj.errors import InputError
from hpcvdj.reports.elements import shown
from hpcvdj.results.facts import facts_path
from hpcvdj.storage.inputs import file_digest
from tests.commands import hpcvdj_command
from tests.report import examples
from tests.report.conftest import REACHED

READS = {"donor1": [40, 9, 9, 2, 1, 1], "donor2": [5, 5, 5, 5], "donor3": [100, 1], "donor4": []}
CLONES = {name: CloneSizes.of(np.array(reads, dtype=np.int64)).recorded() for name, reads in READS.items()}


def require_right(row, reads, depth):
    """AssertionError unless a row of the table has the numbers of these clonotypes, at a depth."""
    sizes = CloneSizes.of(np.array(reads))
    assert (row["reads"], row["clonotypes"]) == (sum(reads), len(reads))
    assert row["clonality"] == clonality(sizes)
    for order in ORDERS:
        own = hill_number(sizes, order, depth)
        assert row[f"hill_{order}"] == own.value
        assert row[f"hill_{order}_interval"] == f"{shown(own.low)} to {shown(own.high)}"


def test_reads_and_diversity_beside_what_was_read(tmp_path, report):
    """Of samples that `pgen` has, and of individuals that only `sharing` has; at the reads of the smallest."""
    files = [
        examples.sharing(tmp_path / "s.tsv", clones=CLONES),
        examples.probabilities(tmp_path / "p.tsv", samples=["donor1", "other"]),
        # The first file that knows an individual says what it has.
        examples.enrichment(tmp_path / "e.tsv", "donor1", clones={"donor1": {"reads": [7], "clonotypes": [1]}}),
        examples.enrichment(tmp_path / "f.tsv", "donor5", clones={"donor5": {"reads": [3, 30], "clonotypes": [9, 1]}}),
    ]
    page = report(files)
    rows = {row["sample"]: row for row in page.rows("samples_table")}
    assert list(rows) == ["donor1", "other", "donor2", "donor3", "donor4", "donor5"]
    for name, reads in {**READS, "donor5": [30] + [3] * 9}.items():
        if reads:
            require_right(rows[name], reads, sum(READS["donor2"]))
    assert rows["donor1"]["counted"] + rows["other"]["counted"] == 61
    assert rows["donor2"]["group"] == "patients"
    assert rows["donor2"]["counted"] is None
    assert [rows[name]["reads"] for name in ("other", "donor4")] == [None, None]
    assert "among 20 reads of each sample, which is all that donor2 has." in page.text
    assert "Reads are not known of other, donor4." in page.text
    assert page.text.index("Samples") < page.text.index("Sharing A sequence")


def test_a_sample_alone_is_compared_at_all_of_its_reads(tmp_path, report):
    page = report([examples.annotation(tmp_path / "donor1", clones={"donor1": CLONES["donor1"]})])
    (row,) = page.rows("samples_table")
    require_right(row, READS["donor1"], sum(READS["donor1"]))
    assert row["hill_0"] == row["clonotypes"] == 6


@pytest.mark.parametrize("clones", [{}, None, {"donor4": CLONES["donor4"]}])
def test_without_read_counts_the_page_says_so(tmp_path, report, clones):
    page = report([examples.sharing(tmp_path / "s.tsv", clones=clones), examples.probabilities(tmp_path / "p.tsv")])
    assert "no file of this page says how many reads clonotypes have" in page.text
    assert "reads" not in page.rows("samples_table")[0]


@pytest.mark.parametrize("wrong", [
    3, {"donor1": 3}, {"donor1": {"reads": [1]}}, {"donor1": {"reads": [1, 2], "clonotypes": [1]}},
    {"donor1": {"reads": [2, 1], "clonotypes": [1, 1]}}, {"donor1": {"reads": [0], "clonotypes": [1]}},
    {"donor1": {"reads": [1], "clonotypes": [-1]}}, {"donor1": {"reads": ["x"], "clonotypes": [1]}},
])  # fmt: skip
def test_damaged_sizes_of_clones_name_the_file(tmp_path, report, wrong):
    with pytest.raises(InputError, match=r"s\.tsv\.json: is damaged"):
        report([examples.sharing(tmp_path / "s.tsv", clones=wrong)])


def test_the_overview_has_the_doublings_of_each_sample(tmp_path, report):
    path = examples.probabilities(tmp_path / "p.tsv", rows=300, samples=["a", "b", "c"])
    page = report([path])
    head, *lines = [line.split("\t") for line in path.read_text().splitlines()]
    rows = [dict(zip(head, line, strict=True)) for line in lines if line[head.index("pgen_aa")]]
    expected = {}
    for row in rows:
        key = row["repertoire_id"], 2.0 ** np.floor(np.log2(float(row["pgen_aa"])))
        expected[key] = expected.get(key, 0) + 1
    table = page.rows("overview_table")
    assert {(row["sample"], row["low"]): row["rows"] for row in table} == expected
    of_sample = {name: sum(row["repertoire_id"] == name for row in rows) for name in "abc"}
    assert [row["share"] for row in table] == pytest.approx(
        [100 * row["rows"] / of_sample[row["sample"]] for row in table]
    )
    x = page.specs["overview"]["encoding"]["x"]
    # Doublings without a junction have their place, too.
    assert x["sort"] == [2.0**power for power in range(-50, -13)]
    assert x["scale"]["domain"] == x["sort"]
    assert {row["low"] for row in table} < set(x["sort"])


def test_there_is_no_overview_of_pathways_or_of_one_sample(tmp_path, report, small):
    page = report([small])
    assert "overview" not in page.specs
    assert "overview" not in report([examples.probabilities(tmp_path / "p.tsv")]).specs
    assert len(page.rows("samples_table")) == 1


def source(path, digest="5a"):
    """As the facts of `enrich` and `annotate` have a table that was read."""
    return {"tables": [[str(path), digest, 3000]]}


def of_pgen(path, table, digest="5a", **options):
    """A table of `pgen` with the facts that say what it was made of."""
    facts = {"junctions_path": str(table), "junctions_sha256": digest, "model": "m"}
    facts_path(path).write_text(json.dumps(facts))
    return examples.probabilities(path, **options)


def names(page):
    """The samples that a page names in its tables."""
    tables = ("samples_table", "enrich_samples", "annotate_samples", "pgen_nt_values")
    return {row["sample"] for name in tables if name in page.data["tables"] for row in page.rows(name)}


def test_outputs_of_one_table_have_the_name_of_its_rows(tmp_path, report, count):
    """A sample was called M15 by `enrich` and count's results, and as its rows by `annotate` and pgen's tables."""
    result = count("M15", "".join(f"s{k}\t{REACHED}\n" for k in range(9)))
    digest = file_digest(tmp_path / "M15.tsv")
    enriched = examples.enrichment(tmp_path / "e.tsv", **source("M15.tsv", digest))
    annotated = examples.annotation(tmp_path / "own", "own", samples=["own"], **source("elsewhere/M15.tsv", digest))
    probable = of_pgen(tmp_path / "p.tsv", "/data/M15.tsv", digest, samples=["own"])
    with_reads = {"clones": {"own": CLONES["donor1"]}, **source("M15.tsv", digest)}
    assert names(report([result, enriched])) == {"M15"}
    for files in ([result, enriched, annotated], [enriched, result, probable], [probable, annotated, enriched]):
        assert names(report(files)) == {"own"}
    page = report([examples.enrichment(tmp_path / "f.tsv", **with_reads), annotated, probable, result])
    assert names(page) == {"own"}
    assert [row["reads"] for row in page.rows("samples_table")] == [sum(READS["donor1"])] * 2


def test_the_table_of_several_samples_is_none_of_them(tmp_path, report):
    annotated = [examples.annotation(tmp_path / name, name, samples=["a", "b"], **source("all.tsv")) for name in "ab"]
    both = {"clones": {"a": CLONES["donor1"], "b": CLONES["donor2"]}}
    enriched = examples.enrichment(tmp_path / "e.tsv", **both, **source("all.tsv"))
    page = report([*annotated, enriched])
    assert {row["sample"] for row in page.rows("enrich_samples")} == {"all"}
    assert {row["sample"] for row in page.rows("annotate_samples")} == {"a", "b"}


@pytest.mark.parametrize("digest", ["5a", ""])
def test_copies_of_a_table_and_tables_in_memory_keep_their_names(tmp_path, report, digest):
    """Two tables of the same bytes have two names; tables in memory have no digest and one name."""
    tables = ("A.tsv", "B.tsv") if digest else ("memory", "memory")
    files = []
    for own, table in zip("AB", tables, strict=True):
        files += [
            examples.enrichment(tmp_path / f"e{own}.tsv", own, clones={own: CLONES["donor1"]}, **source(table, digest)),
            examples.annotation(tmp_path / own, own, samples=[own], **source(table, digest)),
        ]
    page = report(files)
    assert [row["sample"] for row in page.rows("enrich_samples")] == ["A", "B"]
    assert [row["sample"] for row in page.rows("annotate_samples")] == ["A", "B"]


@pytest.mark.slow
def test_a_folder_of_parts_has_its_name(tmp_path, report, write_parts):
    """Its only part gave a sample "part-000000", and so did the first part of a table of `enrich`."""
    drawn = hpcvdj.generate("human_trb_m15", 300, seed=8, productive=True, backend="cpu")
    for name, rows, ending in (("A", 300, "h5"), ("M", 150, "tsv")):
        write_parts(tmp_path / f"{name}.dataset", drawn, rows)
        words = [tmp_path / f"{name}.dataset", "-m", "human_trb_m15", "--backend", "cpu", "-o"]
        files = [tmp_path / f"pgen_{name}.{ending}", tmp_path / f"enrich_{name}.tsv"]
        hpcvdj_command("pgen", *words, files[0])
        hpcvdj_command("enrich", *words, files[1])
        assert names(report(files)) == {name}
    with hpcvdj.open(tmp_path / "pgen_A.h5") as result:
        assert result.repertoires == {"A": 300}


def test_the_table_of_older_facts_has_the_name_of_its_file(tmp_path, report):
    for k, table in enumerate((["a/part-000000.parquet", "5a", 9, "A"], ["a/B.tsv", "5a", 9])):
        page = report([examples.enrichment(tmp_path / f"{k}.tsv", tables=[table])])
        assert names(page) == {"AB"[k]}


def test_rows_without_a_repertoire_are_of_the_table(tmp_path, report):
    """NA was a sample."""
    path = examples.probabilities(tmp_path / "p.tsv", samples=["NA", "donor2", "", "None"])
    assert names(report([path])) == {"p", "donor2"}


def test_groups_that_files_do_not_agree_on_are_not_shown(tmp_path, report, caplog):
    """Those of the last file were on the page, also where the other file's numbers were of other groups."""
    others = ["other"] * len(examples.NAMES)
    files = [examples.sharing(tmp_path / "s.tsv"), examples.contamination(tmp_path / "c.tsv", groups=others)]
    for order in (files, files[::-1]):
        page = report(order)
        assert "groups of different columns" in caplog.text
        caplog.clear()
        assert {row.get("group") or "" for row in page.rows("sharing_1_individuals")} == {""}
    report([files[0], examples.contamination(tmp_path / "d.tsv")])
    assert "groups of different columns" not in caplog.text
