"""Pages about several loci, cohorts and folders whose samples or files have the same names."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.reports.settings import ReportSettings
from hpcvdj.results.facts import facts_path
from tests.report import examples
from tests.report.conftest import REACHED

PEOPLE = ["s1", "s2"]
READS = {"TRA": {"s1": [9, 2, 1], "s2": [7, 7]}, "TRB": {"s1": [30, 5], "s2": [40, 1, 1, 1]}}
OTHER = {"s1": [3, 1], "s2": [4, 2]}


def of_cohort(write, path, reads, locus, digests=(), **facts):
    """A table of a cohort, with the clones of each individual; `digests` are those of the tables that it read."""
    clones = {name: CloneSizes.of(np.array(own)).recorded() for name, own in reads.items()}
    tables = [[f"{digest}.tsv", digest, 9] for digest in digests]
    known = {"locus": locus, "clones": clones, "tables": tables}
    return write(path, PEOPLE, ["a", "b"], **{**known, **facts})


def of_pgen(path, digest="", model="m", **options):
    """A table of `pgen` that read a table with a digest."""
    facts_path(path).write_text(json.dumps({"model": model, "junctions_path": "x.tsv", "junctions_sha256": digest}))
    return examples.probabilities(path, **options)


def both(folder, write=examples.sharing, name="shared", **facts):
    """The tables of both chains of the same people."""
    return [of_cohort(write, folder / f"{name}_{locus}.tsv", READS[locus], locus, [locus], **facts) for locus in READS]


def reads_of(page):
    """The reads of each row of the table of samples: (name, locus): reads."""
    rows = page.rows("samples_table")
    return {(row["sample"], row.get("locus")): row["reads"] for row in rows}


def total(reads):
    return {name: sum(own) for name, own in reads.items()}


EACH = {(f"{name} ({locus})", locus): sum(own) for locus, people in READS.items() for name, own in people.items()}


def test_both_chains_of_the_same_people(tmp_path, report):
    """The second chain had no row, and its probabilities had the reads of the first."""
    shared = both(tmp_path)
    page = report(shared)
    assert reads_of(page) == EACH
    assert [row["group"] for row in page.rows("samples_table")] == ["a", "a", "b", "b"]
    # Hill numbers of a chain were at the reads of the smallest sample of the other.
    of_locus = "among {} reads of each sample of {}, which is all that s1 ({}) has"
    assert f"{of_locus.format(12, 'TRA', 'TRA')}; {of_locus.format(35, 'TRB', 'TRB')}." in page.text
    at_most = {row["sample"]: (row["hill_0"], row["clonotypes"]) for row in page.rows("samples_table")}
    assert at_most["s1 (TRA)"] == (3, 3)
    assert at_most["s1 (TRB)"] == (2, 2)
    assert at_most["s2 (TRB)"][0] < 4 == at_most["s2 (TRB)"][1]
    assert "report s1 and s2" in page.text
    for label in ("shared_TRA.tsv", "shared_TRB.tsv"):
        assert f"Sharing: {label} A sequence" in page.text
    probable = [of_pgen(tmp_path / f"{locus}.tsv", locus, samples=PEOPLE, loci=[locus]) for locus in ("TRB", "TRA")]
    assert reads_of(report([*shared, *probable])) == EACH
    # Files of other commands are of the same people, and tell the same.
    assert reads_of(report([*shared, *both(tmp_path, examples.contamination, "pairs")])) == EACH


@pytest.mark.parametrize("files", ["shared TRA, pgen TRB", "pgen TRB, shared TRA"])
def test_one_chain_has_not_the_reads_of_the_other(tmp_path, report, files):
    shared, _ = both(tmp_path)
    paths = [shared, of_pgen(tmp_path / "p.tsv", "other", samples=PEOPLE)]
    metadata = tmp_path / "people.tsv"
    metadata.write_text("name\till\ns1\tyes\ns2\tno\n")
    settings = ReportSettings(metadata=metadata, group="ill")
    page = report(paths if files.startswith("shared") else paths[::-1], settings=settings)
    unknown = {("s1 (TRB)", "TRB"): None, ("s2 (TRB)", "TRB"): None}
    assert reads_of(page) == {("s1 (TRA)", "TRA"): 12, ("s2 (TRA)", "TRA"): 14} | unknown
    assert {row["sample"]: row["group"] for row in page.rows("samples_table")} == {
        "s1 (TRA)": "yes", "s2 (TRA)": "no", "s1 (TRB)": "yes", "s2 (TRB)": "no",
    }  # fmt: skip
    assert "Reads are not known of s1 (TRB), s2 (TRB)." in page.text


def test_a_chain_without_reads_has_its_row(tmp_path, report):
    files = [
        of_cohort(examples.sharing, tmp_path / "a.tsv", READS["TRA"], "TRA", ["t"]),
        of_cohort(examples.sharing, tmp_path / "b.tsv", {}, "TRB", ["t"]),
    ]
    page = report(files)
    assert reads_of(page)["s1 (TRB)", "TRB"] is None
    assert "Reads are not known of s1 (TRB), s2 (TRB)." in page.text


def test_chains_of_the_same_table(tmp_path, report, count):
    """Tables of cells have both chains.  The figures of genes and lengths had those of the first file only."""
    shared = [of_cohort(examples.sharing, tmp_path / f"{locus}s.tsv", READS[locus], locus, ["t"]) for locus in READS]
    probable = [of_pgen(tmp_path / f"{locus}.tsv", "t", locus, samples=PEOPLE, loci=[locus]) for locus in READS]
    page = report([*probable, *shared])
    assert reads_of(page) == EACH
    assert "the files have different models (TRA, TRB)." in page.text
    for table in ("v_table", "lengths_table"):
        assert {row["sample"] for row in page.rows(table)} == {name for name, _ in EACH}
    # A file with both chains has the reads of neither.
    mixed = examples.probabilities(tmp_path / "mixed.tsv", samples=PEOPLE, loci=["TRA", "TRA", "TRB", "TRB"])
    assert reads_of(report([mixed, *shared])) == EACH | {
        ("s1 (TRA, TRB)", "TRA, TRB"): None, ("s2 (TRA, TRB)", "TRA, TRB"): None,
    }  # fmt: skip


def test_results_of_count_and_of_pgen_of_two_chains(tmp_path, report, count):
    """Both are called s1: the lengths and genes of the second were missing."""
    counted = count("s1", f"a\t{REACHED}\n")
    page = report([counted, of_pgen(tmp_path / "p.tsv", "t", samples=["s1"], loci=["TRA"])])
    for table in ("v_table", "lengths_table"):
        assert {row["sample"] for row in page.rows(table)} == {"s1 (TRB)", "s1 (TRA)"}


def test_contamination_of_one_chain_says_nothing_of_the_other(tmp_path, report):
    """The page called the samples of both free of each other's junctions."""
    question = "Are the samples free of each other's junctions?"
    alpha, beta = both(tmp_path, examples.contamination, "pairs", standing_out=[])
    shared = both(tmp_path)
    page = report([alpha, *shared])
    assert f"{question} not checked The samples of TRB were not compared" in page.text
    assert f"{question} yes None of 1 pairs stands out." in page.text
    for files in ([alpha, beta, *shared], [alpha, shared[0]]):
        assert "were not compared" not in report(files).text


def test_why_contamination_was_not_done(tmp_path, report):
    """The page advised to run it on samples that do not allow it."""
    question, why = "Are the samples free of each other's junctions? not checked", "no pair has junctions enough"
    advice = "hpcvdj contamination on"
    folders = tmp_path / "alpha", tmp_path / "beta"
    for folder, state, reason in zip(folders, ("left out", "done"), (why, ""), strict=True):
        folder.mkdir()
        shown = of_cohort(examples.sharing, folder / "s.tsv", READS["TRA"], "TRA", ["a1", "a2"]).name
        steps = [{"step": "contamination", "state": state, "reason": reason, "shown": []},
                 {"step": "sharing", "state": "done", "reason": "", "shown": [shown]}]  # fmt: skip
        (folder / "analysis.json").write_text(json.dumps({"command": "analyze", "steps": steps}))
    for page in (report([folders[0]]), report(folders)):
        assert f"{question} No pair has junctions enough." in page.text
        assert advice not in page.text
    text = (folders[0] / "analysis.json").read_text()
    (folders[0] / "analysis.json").write_text(text.replace(why, "not asked for"))
    assert advice in report([folders[0]]).text


def test_pathways_of_other_germline_tables_cannot_be_compared(tmp_path, report):
    files = []
    for name, path, digest in (("a", "human_tra", "1"), ("b", "copy/human_tra", "1"), ("c", "human_trb", "2")):
        files.append(examples.probabilities(tmp_path / f"{name}.tsv"))
        facts_path(files[-1]).write_text(json.dumps({"germline_path": path, "germline_sha256": digest}))
    files.append(examples.probabilities(tmp_path / "unknown.tsv"))
    assert "the files have different germline tables (human_tra, human_trb)." in report([files[0], *files[2:]]).text
    assert "cannot be compared with each other" not in report([files[0], files[1], files[3]]).text


@pytest.mark.parametrize(("reason", "lost"), [
    ("of locus TRB (the model is of TRA)", False), ("of locus TRB (the germline table is of TRA)", False),
    ("V and J of different loci", True),
])  # fmt: skip
def test_rows_of_the_other_chain_are_no_loss(tmp_path, report, reason, lost):
    """Tables of cells have both chains: the page warned that half of the rows were left out."""
    individuals = [{"name": name, "group": "g", "rows": 100, "left_out": {reason: 90}} for name in PEOPLE]
    text = report([examples.sharing(tmp_path / "s.tsv", PEOPLE, ["a", "b"], individuals=individuals)]).text
    verdict = "with care" if lost else "yes"
    assert f"Were most rows used? {verdict} sharing: 380 rows read, 200 used, 180 left out" in text
    assert ("180 left out: 180 of another locus." in text) == (not lost)
    left_out = {"rows_read": 100, "rows_left_out": {}, "rows_excluded": [["other_locus", {}, 90]]}
    text = report([examples.enrichment(tmp_path / "e.tsv", **left_out)]).text
    assert "10 used, 90 left out: 90 of another locus." in text


def test_other_people_of_the_same_names(tmp_path, report):
    """Of one locus: human and mouse, or two cohorts."""
    first = of_cohort(examples.sharing, tmp_path / "a.tsv", READS["TRB"], "TRB", ["a1", "a2"])
    second = of_cohort(examples.sharing, tmp_path / "b.tsv", OTHER, "TRB", ["b1", "b2"])
    named = {
        f"{name} ({path})": sum(reads[name])
        for name in PEOPLE for path, reads in (("a.tsv", READS["TRB"]), ("b.tsv", OTHER))
    }  # fmt: skip
    page = report([first, second])
    assert {row["sample"]: row["reads"] for row in page.rows("samples_table")} == named
    # It is not known of which cohort these are, unless a file of the cohort read the same table.
    for digest, expected in (("?", None), ("b1", 4)):
        page = report([first, second, of_pgen(tmp_path / "p.tsv", digest, samples=["s1"])])
        assert page.rows("samples_table")[0]["sample"] == "s1"
        assert page.rows("samples_table")[0]["reads"] == expected
        assert len(page.rows("samples_table")) == 5 - (expected is not None)


@pytest.mark.parametrize("locus", ["TRB", None])
def test_the_same_tables_with_another_model(tmp_path, report, locus):
    """A model that knows more genes counts more rows: the first file says how many there are."""
    first = of_cohort(examples.contamination, tmp_path / "c.tsv", READS["TRB"], locus, ["a", "b"])
    second = of_cohort(examples.sharing, tmp_path / "s.tsv", OTHER, "TRB", ["a", "b"], model="own")
    page = report([first, second])
    assert {row["sample"]: row["reads"] for row in page.rows("samples_table")} == total(READS["TRB"])


def test_tables_from_before_facts_had_loci(tmp_path, report):
    """The genes of their rows tell the locus."""
    shared = of_cohort(examples.sharing, tmp_path / "b.tsv", READS["TRB"], None, ["t"])
    other = of_cohort(examples.sharing, tmp_path / "a.tsv", READS["TRA"], "TRA", ["t"])
    assert reads_of(report([shared, other])) == EACH


def test_a_table_of_several_samples_has_the_reads_of_each(tmp_path, report):
    """It had the reads of the first of them."""
    clones = {name: CloneSizes.of(np.array(own)).recorded() for name, own in OTHER.items()}
    page = report([examples.enrichment(tmp_path / "e.tsv", clones=clones, tables=[["all.tsv", "t", 9]])])
    assert {row["sample"]: row["reads"] for row in page.rows("samples_table")} == total(OTHER)


def test_files_of_the_same_name_are_told_apart(tmp_path, report):
    """The folders of two analyses: the page called both tables shared.tsv."""
    files = []
    for locus in READS:
        (tmp_path / locus / "enriched").mkdir(parents=True)
        files += [
            of_cohort(examples.sharing, tmp_path / locus / "shared.tsv", READS[locus], locus, [locus]),
            examples.enrichment(tmp_path / locus / "enriched" / "s1.tsv", "s1", locus=locus),
        ]
    page = report([*files, examples.contamination(tmp_path / "pairs.tsv", PEOPLE, ["a", "b"])])
    assert [row["file"] for row in page.rows("files_table")] == [
        "TRA/shared.tsv", "TRA/enriched/s1.tsv", "TRB/shared.tsv", "TRB/enriched/s1.tsv", "pairs.tsv",
    ]  # fmt: skip
    for locus in READS:
        assert f" {locus}/shared.tsv: q = 0.603" in page.text
        assert f"Sharing: {locus}/shared.tsv A sequence" in page.text
    assert "Contamination Junctions with" in page.text
    assert [row["sample"] for row in page.rows("enrich_samples")] == ["s1 (TRA)", "s1 (TRB)"]
