"""The sections of `associate` and `associate --time`: pairs of times, their shares and hits, and what they support."""

import json

import numpy as np
import pytest

from tests.report import examples


def test_the_numbers_of_expansions(tmp_path, report):
    path = examples.expansion(tmp_path / "t.tsv")
    page, facts = report([path]), json.loads(path.with_name("t.tsv.json").read_text())
    # Of three hits and two others of an earlier pair of times; no interval has an upper end without reads before.
    head, *lines = [line.split("\t") for line in path.read_text().splitlines()]
    for row, line in zip(page.rows("expansion_1_tests"), lines, strict=True):
        for name, text in zip(head, line, strict=True):
            assert row[name] == (text if isinstance(row[name], str) else float(text) if text else None), name
    first, last = facts["pairs"]
    compared = page.rows("expansion_1_pairs")
    assert [row["hits"] for row in compared] == [3, 0]
    for row, pair in zip(compared, (last, first), strict=True):
        assert [row["subject"], row["time_before"], row["time_after"]] == ["anna", *pair["times"]]
        assert [row["depth_before"], row["depth_after"], row["depth_ratio"]] == [*pair["depths"], pair["depth_ratio"]]
        assert [row["clonotypes"], row["tested"]] == [pair["clonotypes"], pair["tested"]]
    for k, pair in ((1, last), (2, first)):
        rows = page.rows(f"expansion_1_shares_{k}_all")
        assert [[row["reads_before"], row["reads_after"], row["clonotypes"]] for row in rows] == pair["reads"]
        for row in rows:
            assert row["share_before"] == pytest.approx((row["reads_before"] + 0.5) / pair["depths"][0])
            assert row["share_after"] == pytest.approx((row["reads_after"] + 0.5) / pair["depths"][1])
            expected = (row["reads_before"] + 0.5) * pair["depth_ratio"] / pair["depths"][1]
            assert row["unchanged"] == pytest.approx(expected)
    hits = page.rows("expansion_1_shares_1_hits")
    assert [row["reads_after"] for row in hits] == [400, 401, 402]
    assert hits[0]["share_before"] == pytest.approx(0.5 / 5000)
    assert "expansion_1_shares_2_hits" not in page.data["tables"]
    quantiles = page.rows("expansion_1_qq_table")
    assert [row["observed"] for row in quantiles] == pytest.approx((-np.log10(facts["qq"]["observed"])).tolist())
    assert [row["left_out"] for row in page.rows("expansion_1_individuals")] == [0, 1, 2]
    assert set(page.specs) == {"expansion_1_shares_1", "expansion_1_shares_2", "expansion_1_qq"}
    assert (
        "The variance of m reads is 1.25 m + 0.31 m². It is that of replicates (2 pairs). Inflation: 1.02." in page.text
    )
    assert "3 hits among 1,401 tests, in 2 pair(s) of times." in page.text
    assert "associate --time: 9,003 rows read, 9,000 used, 3 left out" in page.text


def verdict(page):
    verdicts = ("yes", "with-care", "no", "not-checked")
    return [each["class"] for each in page.of("div") if each.get("class") in verdicts][-1]


def test_what_expansions_support(tmp_path, report):
    page = report([examples.expansion(tmp_path / "t.tsv")])
    assert verdict(page) == "with-care"
    noise = {"linear": 0.1, "quadratic": 2.5, "pairs_of_replicates": 0}
    page = report([examples.expansion(tmp_path / "t.tsv", hits=1, noise=noise, inflation=1.5)])
    assert "There are no replicates: what changed between times counts as noise" in page.text
    assert "P-values are inflated (1.5)" in page.text
    page = report([examples.expansion(tmp_path / "u.tsv", pairs=[], tested=0, qq=None, hits=0)])
    assert verdict(page) == "not-checked"
    assert "Nothing could be tested: too few clonotypes have enough reads. The variance" in page.text
    assert page.specs == {}
    page = report([examples.expansion(tmp_path / "v.tsv", hits=0)])
    assert verdict(page) == "no"
    assert "Noise explains the changes." in page.text


@pytest.mark.parametrize("kind", ["sharing", "association", "expansion", "enrichment", "annotation"])
def test_where_nothing_can_be_tested_chance_explains_nothing(tmp_path, report, kind):
    """Of two cases and two controls the page said "no": "0 hits among 0 tests. Chance explains it."."""
    facts = {"hits_called": 0, "epitopes_called": 0} if kind == "annotation" else {}
    page = report([getattr(examples, kind)(tmp_path / "t.tsv", hits=0, tested=0, **facts)])
    assert verdict(page) == "not-checked"
    assert "not checked" in page.text
    assert "Nothing could be tested: " in page.text
    first = page.text[page.text.index("Read this first") : page.text.index("Reads, clonality and Hill numbers")]
    for conclusion in ("hance explains", "Noise explains", "recombination explains", "No more than chance"):
        assert conclusion not in first


def test_samples_of_which_some_cannot_be_tested(tmp_path, report):
    files = [examples.enrichment(tmp_path / f"{name}.tsv", name, hits=0, tested=tested)
             for name, tested in (("a", 0), ("b", 20))]  # fmt: skip
    page = report(files)
    assert verdict(page) == "no"
    assert (
        "0 hits with a q-value of at most 0.001 in 0 of 2 sample(s). a: Nothing could be tested: too few" in page.text
    )
    none = {"hits": 0, "hits_called": 0, "epitopes_called": 0}
    (tmp_path / "annotated").mkdir()
    for k in range(9):
        examples.annotation(tmp_path / "annotated" / f"d{k}", f"d{k}", tested=0 if k < 2 else 4, **none)
    page = report([tmp_path / "annotated"])
    assert verdict(page) == "no"
    assert "d0, d1: Nothing could be tested: too few clonotypes have the V and J genes of a record." in page.text
    for k in range(2, 9):
        examples.annotation(tmp_path / "annotated" / f"d{k}", f"d{k}", tested=0, **none)
    page = report([tmp_path / "annotated"])
    assert verdict(page) == "not-checked"
    assert "No more than chance" not in page.text


def test_few_tests_without_a_hit_explain_nothing(tmp_path, report):
    """Of one test, the page said "0 hits among 1 tests … Chance explains it."."""
    page = report([examples.association(tmp_path / "a.tsv", tested=1, hits=0)])
    assert "0 hits among 1 test. " in page.text
    assert "So few tests say little of other sequences." in page.text
    assert "Chance explains it" not in page.text
    assert "Chance explains it." in report([examples.association(tmp_path / "a.tsv", tested=10, hits=0)]).text


def test_without_a_hit_the_page_says_what_one_needs(tmp_path, report):
    needed = "A single hit needs 4 cases among 4 carriers (2.0 expected), or 7 among 8."
    assert needed in report([examples.association(tmp_path / "a.tsv", hits=0)]).text
    assert "single hit needs" not in report([examples.association(tmp_path / "a.tsv", hits=1)]).text


def test_a_bound_of_kappa_is_no_estimate(tmp_path, report):
    of_samples = {"a": (1.5, [1.2, 1.9]), "b": (6.69, [0.0, 6.69]), "c": (2.0, None)}
    page = report(
        [
            examples.enrichment(tmp_path / f"{name}.tsv", name, hits=0, tested=20, kappa=kappa, kappa_interval=interval)
            for name, (kappa, interval) in of_samples.items()
        ]
    )
    assert "κ = 1.5 to 2. b: too few neighbours; κ is an upper bound." in page.text
    assert "There is no κ" not in page.text


def test_junctions_of_a_common_source_need_care(tmp_path, report):
    """As docs/report.md says; the page said yes."""
    source = {"people": 4, "junctions": 5, "listed": []}
    for common, expected in ((source, "with-care"), ({**source, "junctions": 0}, "yes")):
        page = report([examples.contamination(tmp_path / "c.tsv", standing_out=[], common_source=common)])
        assert verdict(page) == expected


def test_few_tests_tell_no_inflation(tmp_path, report):
    """Of one test, whose p-value is small, the page said that p-values are inflated (21)."""
    for tested, told in ((1, False), (99, False), (100, True)):
        page = report([examples.association(tmp_path / "a.tsv", tested=tested, hits=1, inflation=21.0)])
        assert ("P-values of disease=MS are inflated (21)" in page.text) == told
        page = report([examples.expansion(tmp_path / "e.tsv", clonotypes=tested, inflation=21.0)])
        assert ("P-values are inflated (21)" in page.text) == told
        assert ("Inflation: 21." in page.text) == told
    assert "Inflation: –" not in report([examples.expansion(tmp_path / "e.tsv", inflation=None)]).text


def test_pairs_with_the_most_hits_are_drawn(tmp_path, report, monkeypatch):
    monkeypatch.setattr("hpcvdj.reports.associations.MOST_PAIRS", 1)
    page = report([examples.expansion(tmp_path / "t.tsv")])
    assert set(page.specs) == {"expansion_1_shares_1", "expansion_1_qq"}
    assert "anna, 1.5 to 12: shares" in page.specs["expansion_1_shares_1"]["description"]


def test_a_table_before_its_facts_had_reads(tmp_path, report):
    path = examples.expansion(tmp_path / "t.tsv")
    facts = json.loads(path.with_name("t.tsv.json").read_text())
    for pair in facts["pairs"]:
        del pair["reads"]
    path.with_name("t.tsv.json").write_text(json.dumps(facts))
    assert set(report([path]).specs) == {"expansion_1_qq"}


@pytest.mark.parametrize(("copies", "doubted", "said"), [
    (0, 0, ""), (1, 0, "1 more is a likely copy. "), (4, 0, "4 more are likely copies. "),
    (0, 2, "2 more may be copies, of one junction in donors that share others. "),
])  # fmt: skip
@pytest.mark.parametrize("hits", [0, 2])
def test_copies_among_the_hits_are_counted(tmp_path, report, copies, doubted, said, hits):
    """Not those of the whole cohort, of which there are 30."""
    path = examples.association(tmp_path / "a.tsv", likely_copies=30, hits=hits)
    facts = json.loads(path.with_name("a.tsv.json").read_text())
    facts["phenotypes"][0] |= {"hits_that_are_copies": copies, "hits_that_may_be_copies": doubted}
    path.with_name("a.tsv.json").write_text(json.dumps(facts))
    then = "A hit goes with the phenotype" if hits else f"Chance explains {'the others' if said else 'it'}."
    assert f"{hits} hits among 150 tests. {said}{then}" in report([path]).text
