"""hpcvdj.reports.page: what is on the page, that it needs nothing else, and that all texts stay texts."""

import importlib.util
import itertools
import json
import os
import re
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import read_germline
from hpcvdj.reports import elements, findings, sections
from hpcvdj.reports.elements import shown
from hpcvdj.reports.outputs import read_outputs
from hpcvdj.reports.page import write_report
from hpcvdj.reports.settings import ReportSettings
from hpcvdj.results.reader import Result
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, SMALL
from tests.problems import count_to
from tests.report import examples
from tests.report.conftest import REACHED, UNREACHED, Page

FIGURES = {
    "contamination_1_heatmap", "contamination_1_carried", "sharing_1_sharing", "sharing_1_ratio", "sharing_1_pairs",
    "qq",
    "network", "v_genes", "j_genes", "pathways_total_distribution", "reached", "pgen_nt_distribution",
    "pgen_aa_distribution", "lengths",
}  # fmt: skip
EVIL = "</script><script>alert(1)</script><b>&amp;\"'"


def test_the_numbers_of_results(small, report):
    page = report([small])
    with Result(small) as result:
        frame = result.to_table().to_pandas()
        counters = result.counters[:]
    (row,) = page.rows("samples_table")
    assert (row["sample"], row["read"], row["counted"]) == ("small", 500, 500)
    assert row["pathways_total_none"] == 100 * (counters.sum(axis=1) == 0).mean()
    pairs = {(each["v"], each["j"]): each["rows"] for each in page.rows("pairs_table")}
    genes = zip(frame["v_call"].str.split("*").str[0], frame["j_call"].str.split("*").str[0], strict=True)
    assert pairs == Counter(genes)
    reached = np.maximum.accumulate(counters > 0, axis=1).mean(axis=0)
    assert [each["reached"] for each in page.rows("reached_table")] == pytest.approx(100 * reached)
    values = {each["low"]: each["rows"] for each in page.rows("pathways_total_values")}
    totals = frame["pathways_total"][frame["pathways_total"] > 0]
    assert values == Counter((2.0 ** np.floor(np.log2(totals.astype(float)))).tolist())
    sizes = {each["length"]: each["rows"] for each in page.rows("lengths_table")}
    assert sizes == frame["cdr3"].str.len().value_counts().to_dict()
    best = frame.sort_values("weight", ascending=False).iloc[0]
    first = page.rows("count_top_weight")[0]
    assert (first["v_call"], first["cdr3"], first["weight"]) == (best["v_call"], best["cdr3"], best["weight"])
    (made,) = page.rows("files_table")
    assert (made["file"], made["command"]) == ("small.h5", "count")
    assert "count: 500 rows read, 500 used, 0 left out (0 %)" in page.text
    assert "Run hpcvdj contamination" in page.text


def test_amino_acid_clonotypes_are_summed_over_samples(tmp_path, report):
    files = [examples.probabilities(tmp_path / f"{name}.tsv", 400, seed=seed) for name, seed in (("a", 1), ("b", 2))]
    page = report(files)
    groups = {}
    for path in files:
        for line in path.read_text().splitlines()[1:]:
            _, v, j, junction, _, aa, excluded = line.split("\t")
            if not excluded:
                from hpcvdj.recombination.alphabet import translate

                key = v.partition("*")[0], j.partition("*")[0], translate([junction[3:-3]])[0]
                own = groups.setdefault(key, [set(), set(), 0, 0.0])
                own[0].add(path.stem)
                own[1].add(junction)
                own[2] += 1
                own[3] = max(own[3], float(aa))
    expected = {key: (len(own[0]), len(own[1]), *own[2:]) for key, own in groups.items()}
    rows = page.rows("pgen_clonotypes_pgen_aa")
    names = ("n_samples", "nt_variants", "rows", "value")
    assert {(row["v"], row["j"], row["aa"]): tuple(row[name] for name in names) for row in rows} == expected
    assert max(row["n_samples"] for row in rows) == 2
    order = [(-row["n_samples"], -row["nt_variants"], -row["value"]) for row in rows]
    assert order == sorted(order)


def test_the_numbers_of_findings(findings, whole):
    page, *_ = whole
    for path, table in ((findings[0], "contamination_1_pairs"), (findings[1], "sharing_1_sequences")):
        head, *lines = [line.split("\t") for line in path.read_text().splitlines()]
        for row, line in zip(page.rows(table), lines, strict=True):
            for name, text in zip(head, line, strict=True):
                cell = row[name]
                assert (cell.replace(", ", ",") == text) if isinstance(cell, str) else cell == float(text), name
    facts = [json.loads(path.with_name(path.name + ".json").read_text()) for path in findings]
    rates = {(row["individual_1"], row["individual_2"]): row["value"] for row in page.rows("contamination_1_rates")}
    names = examples.NAMES
    assert rates == {(names[i], names[j]): facts[0]["rate"][i][j] for i, j in itertools.permutations(range(4), 2)}
    spectrum = page.rows("sharing_1_spectrum")
    assert [row["number"] for row in spectrum if row["series"] == "observed"] == [
        own["observed"] for own in facts[1]["spectrum"]
    ]
    assert [(row["low"], row["number"], row["high"]) for row in spectrum if row["series"] == "expected, q = 0.603"] == [
        (own["low"], own["expected"], own["high"]) for own in facts[1]["spectrum"]
    ]
    ratios = [own["observed"] / own["expected"] for own in facts[1]["spectrum"][1:]]
    assert [row["ratio"] for row in page.rows("sharing_1_ratios")] == ratios
    quantiles = [row for row in page.rows("qq_table") if row["sample"] == "donor3"]
    for name in ("expected", "observed", "low", "high"):
        assert [row[name] for row in quantiles] == pytest.approx((-np.log10(facts[3]["qq"][name])).tolist())
    assert [row["kappa"] for row in page.rows("enrich_samples")] == [3.12, 4.5]
    assert [row["group"] for row in page.rows("enrich_samples")] == ["patients", "controls"]
    assert [row["left_out"] for row in page.rows("sharing_1_individuals")] == [1, 11, 21, 31]


def test_the_network_has_the_hits_and_their_neighbours(whole):
    page, *_ = whole
    nodes, edges = page.rows("network_nodes"), page.rows("network_edges")
    assert len(nodes) == 3 * 6 + 2 * 6
    assert not [row for row in nodes if "NOHIT" in row["junction_aa"]]

    def near(a, b):
        same = (a["v_call"], a["j_call"], len(a["junction_aa"])) == (b["v_call"], b["j_call"], len(b["junction_aa"]))
        return same and sum(x != y for x, y in zip(a["junction_aa"], b["junction_aa"], strict=True)) <= 1

    expected = [frozenset((a["x"], b["x"])) for a, b in itertools.combinations(nodes, 2) if near(a, b)]
    assert Counter(frozenset((row["x"], row["x2"])) for row in edges) == Counter(expected)
    assert all(row["excess"] == row["neighbours"] / row["expected"] for row in nodes)
    graph = nx.Graph([(row["x"], row["x2"]) for row in edges])
    assert f"{len(expected)} pairs of neighbours, {nx.number_connected_components(graph)} connected groups" in page.text
    places = np.array([(row["x"], row["y"]) for row in nodes])
    assert min(np.hypot(*(a - b)) for a, b in itertools.combinations(places, 2)) > 0.05


def test_to_what_q_is_fitted(tmp_path, report):
    """To all individuals, to those that did not contaminate each other, or not at all."""

    def text(**facts):
        return report([examples.sharing(tmp_path / "s.tsv", **facts)]).text

    interval = "0.603 (95 % interval 0.551 to 0.66)"
    small = "too small, as some individuals contaminated each other, and the others share too little for a fit"
    assert f"fitted to all sequences: {interval}." in text(q_individuals=4)
    found = text(q_individuals=3, copies_shared=1200, standing_out=[[0, 1]])
    of = "3 individuals, no two of whom contaminated each other, without 1,200 likely copies"
    assert f"fitted to {of}: {interval}." in found
    assert "too small" not in found
    found = text(q_individuals=4, standing_out=[[0, 1]])
    assert f"fitted to all sequences: {interval}; {small}." in found
    assert "q is too small, as some contaminated each other, and the others share too little for a fit." in found
    found = text(q_individuals=4, standing_out=[[0, 1]], settings={"q": 0.603}, q_interval=None)
    assert "which was given: 0.603." in found
    assert "too small" not in found
    assert "q is fitted" not in found


def test_amino_acids_do_not_tell_copies(tmp_path, report):
    text = report([examples.sharing(tmp_path / "s.tsv", not_available=["likely copies"])]).text
    assert "Amino acids alone do not tell copies: that needs nucleotides." in text
    assert "Run hpcvdj contamination" not in text
    assert "Run hpcvdj contamination" in report([examples.sharing(tmp_path / "t.tsv")]).text


@pytest.mark.parametrize(("lacking", "verdict"), [(0, "yes"), (2, "with-care"), (6, "not-checked")])
def test_pairs_without_power_are_not_clean(tmp_path, report, lacking, verdict):
    page = report([examples.contamination(tmp_path / "c.tsv", standing_out=[], no_power=lacking)])
    assert [each["class"] for each in page.of("div") if each.get("class") in ("yes", "with-care", "no",
    "not-checked")][-1] == verdict  # fmt: skip
    without = f"In {lacking} of 6 pairs, copies would hardly be seen, for want of improbable junctions."
    assert (without in page.text) == (lacking > 0)


def test_what_the_data_support(findings, small, tmp_path, report):
    text = report([*findings, small]).text
    assert "1 of 6 pairs share more improbable junctions than chance explains: donor1 and donor2" in text
    assert "q = 0.603; 12 of 4,100 sequences" in text
    assert "fitted to all sequences: 0.603 (95 % interval 0.551 to 0.66)" in text
    assert "30 hits with a q-value of at most 0.001 in 2 of 2 sample(s). κ = 3.12 to 4.5." in text
    clean = [
        examples.contamination(tmp_path / "c.tsv", standing_out=[]),
        examples.sharing(tmp_path / "s.tsv", q_at_bound=True),
        examples.enrichment(
            tmp_path / "e.tsv", clusters=0, kappa=None, hits=0, rows_read=10_000, rows_left_out={"no V": 9000}
        ),
    ]
    page = report(clean)
    assert "None of 6 pairs stands out." in page.text
    assert "This is the largest q: without the hits, no more is shared than recombination makes." in page.text
    assert "There is no κ: the comparison is with a control." in page.text
    assert "There is no hit, so there is no network." in page.text
    assert "enrich: 10,000 rows read, 1,000 used, 9,000 left out (90 %)" in page.text
    assert [each["class"] for each in page.of("div") if each.get("class") in ("yes", "with-care", "no",
    "not-checked")] == [
        "with-care", "yes", "yes", "with-care", "no",
    ]  # fmt: skip
    assert (
        "Files with different models cannot be compared"
        in report([*findings, examples.enrichment(tmp_path / "f.tsv", model="other", model_sha256="1")]).text
    )


def test_figures_are_drawn_from_tables(whole):
    page, _, folder = whole
    assert set(page.specs) == FIGURES
    assert sorted(os.listdir(folder)) == sorted(f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg"))
    charts = [attributes for attributes in page.of("div") if "data-tables" in attributes]
    assert len(charts) == len(FIGURES)
    assert all(name in page.data["tables"] for chart in charts for name in chart["data-tables"].split())
    assert all((folder / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in FIGURES)
    # A mark for each row of the table.
    for name, table in (("contamination_1_heatmap", "contamination_1_rates"), ("v_genes", "v_table")):
        marks = re.search(r'<g class="mark-rect role-mark.*?</g>', (folder / f"{name}.svg").read_text())[0]
        assert marks.count("<path") == len(page.rows(table))
    assert (folder / "network.svg").read_text().count("<line") >= len(page.rows("network_edges"))


def test_the_page_needs_nothing_else(whole):
    page, *_ = whole
    assert not {"link", "img", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    policy = next(each["content"] for each in page.of("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for _, attributes in page.tags if "href" in attributes} <= set(ids)
    assert len(page.html) < 2_500_000


def test_the_page_is_accessible(whole):
    page, *_ = whole
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels == [1] + [2] * (len(levels) - 1)
    assert page.of("html") == [{"lang": "en"}]
    assert page.of("a")[0]["class"] == "skip"
    assert len(page.specs) == len(page.of("figure")) == len(page.of("figcaption"))
    for spec in page.specs.values():
        assert len(spec["description"]) > 60
        assert re.search(r"\d", spec["description"])
    assert len(page.of("caption")) == len(page.of("table")) == len(page.data["tables"])
    assert all("scope" in attributes for attributes in page.of("th"))
    assert all(each["tabindex"] == "0" for each in page.of("div") if each.get("class") == "chart")


def test_hostile_texts_stay_texts(count, tmp_path, report):
    names = [EVIL, "x" * 3000, "a\nb\x1b\t", "Zoë 研究 \u2028"]
    result = count("evil", f"{EVIL}\t{REACHED}\n\"'&amp;<b>\t{REACHED}\nx\t<i>{EVIL}\tTRBJ1-1\tTGTTTT\n")
    files = [
        examples.contamination(tmp_path / "c.parquet", names=names, groups=[EVIL, "b", "", "\r\n"]),
        examples.enrichment(tmp_path / "e.tsv", sample=EVIL.replace("/", "")),
    ]
    page = report([result, *files], settings=ReportSettings(name=["{{ 7 * 7 }} $a_b$", "", EVIL]))
    # The scripts: the data, two libraries, and the page's own.
    assert len(page.of("script")) == 4
    assert {"b", "i"}.isdisjoint(tag for tag, _ in page.tags)
    assert page.text.count(EVIL) >= 2
    assert "\x1b" not in page.html
    assert "\u2028" not in page.html
    assert [row["individual"] for row in page.rows("contamination_1_individuals")] == [
        EVIL, "x" * 3000, "a\ufffdb\ufffd\ufffd", "Zoë 研究 \ufffd",
    ]  # fmt: skip
    assert page.rows("samples_table")[0]["sample"] == "{{ 7 * 7 }} $a_b$"
    assert EVIL in json.dumps(page.rows("left_out_table"), ensure_ascii=False).replace('\\"', '"')
    assert EVIL in page.specs["contamination_1_heatmap"]["description"]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("one", f"a\t{REACHED}\n"),
        ("none_reached", f"a\t{UNREACHED}\nb\t{UNREACHED}\n"),
        ("all_excluded", "a\tTRBV999\tTRBJ1-1\tTGTTTT\nb\t\tTRBJ1-1\tTGTTTT\n"),
        ("empty_cdr3", "a\tTRBV1\tTRBJ1-1\tTGTTTT\n"),
    ],
)
def test_the_least_there_can_be(tmp_path, count, report, name, body):
    page = report([count(name, body, 0)], settings=ReportSettings(figures=tmp_path / "figures"))
    assert "nan" not in page.text.replace("nant", "").lower()
    assert len(os.listdir(tmp_path / "figures")) == 2 * len(page.specs)
    (row,) = page.rows("samples_table")
    assert (row["read"], row["counted"]) == (body.count("\n"), 0 if name == "all_excluded" else body.count("\n"))


def test_rows_left_out_are_listed_by_reason(count, report):
    rows = [("a", "TRBV999"), ("b", "TRBV999"), ("c", "TRBV998"), ("d", ""), ("e", "TRBV1,TRBV2"), ("f", "TRBV1")]
    page = report([count("t", "".join(f"{name}\t{v}\tTRBJ1-1\tTGTACCTTT\n" for name, v in rows))])
    table = {row["reason"]: row for row in page.rows("left_out_table")}
    gene = table["V gene that is not in the germline table"]
    assert (gene["rows"], gene["of_rows"], gene.get("option")) == (3, 50, None)
    assert gene["examples"].startswith("V gene TRBV999 is not in the germline table (2); V gene TRBV998")
    assert table["ambiguous V call"]["option"] == "--ambiguous-calls first"
    assert "count: 6 rows read, 1 used, 5 left out (83 %)" in page.text


def test_samples_and_groups(tmp_path, count, report, small):
    other = count("other", f"a\t{REACHED}\nb\t{REACHED}\nc\t{UNREACHED}\n", 4)
    table = tmp_path / "m.tsv"
    table.write_text("age\tdonor\tdisease\n40\tsmall\tMS\n50\tother\t\n60\tthird\tnone\n")
    page = report([small, other], settings=ReportSettings(metadata=table, group="disease"))
    assert [(row["sample"], row["group"]) for row in page.rows("samples_table")] == [("small", "MS"), ("other", None)]
    assert "Samples without a group: other." in page.text
    assert "cannot be compared with each other: the files have different largest n-lengths (10, 4)" in page.text
    assert {row["sample"] for row in page.rows("v_table")} == {"small", "other"}
    rows = [row for row in page.rows("reached_table") if row["sample"] == "other"]
    assert rows[-1]["reached"] == pytest.approx(200 / 3)
    # The same sample twice is told apart by the files.
    again = tmp_path / "again.h5"
    again.write_bytes(small.read_bytes())
    page = report([small, again, other])
    assert [row["sample"] for row in page.rows("samples_table")] == ["small (small.h5)", "small (again.h5)", "other"]
    # It is one individual with its group, and both files are of one table.
    page = report([small, again, other], settings=ReportSettings(metadata=table, group="disease"))
    assert [row["group"] for row in page.rows("samples_table")] == ["MS", "MS", None]
    assert "Immune repertoire report small and other" in page.text
    assert {row["sample"] for row in page.rows("v_table")} == {"small (small.h5)", "other"}
    named = report([small, again], settings=ReportSettings(name=["left", "right"]))
    assert [row["sample"] for row in named.rows("samples_table")] == ["left", "right"]


def test_many_samples_are_drawn_as_groups(tmp_path, report):
    names = [f"d{k}" for k in range(sections.MOST_SERIES + 5)]
    path = examples.probabilities(tmp_path / "all.tsv", 800, samples=names)
    table = tmp_path / "m.tsv"
    table.write_text("sample\tgroup\n" + "".join(f"{name}\t{'ab'[k % 2]}\n" for k, name in enumerate(names)))
    page = report([path], settings=ReportSettings(metadata=table, group="group"))
    assert len(page.rows("samples_table")) == len(names)
    assert {row["sample"] for row in page.rows("lengths_table")} == {"a", "b"}
    assert sum(row["rows"] for row in page.rows("lengths_table")) == 801
    assert [sum(row["share"] for row in page.rows("j_table") if row["sample"] == name) for name in "ab"] == [100, 100]
    assert {row["sample"] for row in report([path]).rows("lengths_table")} == {"samples without a group"}


def test_long_tables_say_what_they_lack(tmp_path, report, monkeypatch):
    for module in ("clonotypes", "elements", "outputs"):
        monkeypatch.setattr(f"hpcvdj.reports.{module}.MOST_LISTED", 5)
    monkeypatch.setattr(findings, "MOST_IN_MATRIX", 2)
    page = report([
        examples.sharing(tmp_path / "s.tsv", hits=8), examples.enrichment(tmp_path / "e.tsv"),
        examples.contamination(tmp_path / "c.tsv"), examples.probabilities(tmp_path / "p.tsv"),
    ])  # fmt: skip
    assert len(page.rows("sharing_1_sequences")) == len(page.rows("enrich_clonotypes")) == elements.MOST_LISTED == 5
    assert "The first 5 of 8; all are in s.tsv." in page.text
    assert "The first 5 of 20; all are in e.tsv." in page.text
    assert len(page.rows("pgen_clonotypes_pgen_aa")) == 5
    assert {row["individual_1"] for row in page.rows("contamination_1_rates")} == {"donor1", "donor2"}
    assert "The 2 of 4 individuals with the largest values." in page.text


def test_a_folder_stands_for_its_files(tmp_path, small, report):
    folder = tmp_path / "all"
    folder.mkdir()
    examples.enrichment(folder / "e.tsv")
    examples.sharing(folder / "s.tsv", hits=2)
    (folder / "r.h5").write_bytes(small.read_bytes())
    (folder / "notes.txt").write_text("no output")
    (folder / "r.h5.parts").mkdir()
    listed = [row["file"] for row in report([folder]).rows("files_table")]
    assert sorted(listed) == ["e.tsv", "r.h5", "s.tsv"]
    assert report([folder]).rows("count_top_weight") == report([folder / "r.h5"]).rows("count_top_weight")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match=r"none: has no result or table \(\*\.h5"):
        report([tmp_path / "none"])


def test_a_table_of_enrich_without_rows(tmp_path, report):
    path = examples.enrichment(tmp_path / "e.tsv", clusters=0, tested=0, hits=0)
    path.write_bytes(b"")
    assert report([path]).data["tables"].keys() == {
        "samples_table", "enrich_samples", "qq_table", "files_table",
    }  # fmt: skip


def test_a_result_in_parts_reads_as_the_whole(tmp_path, report, small):
    count_to(tmp_path / "many.h5", SMALL, read_germline(GERMLINE), Config(max_n=10), rows=137)
    left, right = report([small]), report([tmp_path / "many.h5"])
    del left.data["tables"]["files_table"], right.data["tables"]["files_table"]
    left.data["tables"]["samples_table"]["rows"][0][2] = "many.h5"
    assert left.data == right.data
    next((tmp_path / "many.h5.parts").glob("part-*1.h5")).unlink()
    with pytest.raises(InputError, match=r"its part .*part-000001\.h5 is missing"):
        report([tmp_path / "many.h5"])


def test_what_is_refused(tmp_path, small, findings):
    target, table = tmp_path / "out" / "r.html", tmp_path / "m.tsv"
    target.parent.mkdir()
    table.write_text("name\tgroup\nnobody\tx\n")
    bad = examples.sharing(tmp_path / "s.tsv")
    bad.with_name("s.tsv.json").write_text("{")
    cases = [
        (([small], target, {"settings": ReportSettings(name=["a", "b"])}), "2 names for 1 files"),
        (([small], target, {"settings": ReportSettings(group="x")}), "metadata and group belong together"),
        (
            ([small], target, {"settings": ReportSettings(metadata=table, group="x")}),
            r"no column x \(group\); there are name, group",
        ),
        (([small], target, {"settings": ReportSettings(metadata=table, group="group")}), "no column names the samples"),
        (([small], small, {"overwrite": True}), "is an input of this run"),
        (([findings[0], SMALL], target, {}), "small.tsv: is not an output of hpcvdj that a report shows"),
        (([bad], target, {}), r"s\.tsv\.json: is damaged"),
        (([tmp_path / "no.h5"], target, {}), "no such result file"),
        (([small], tmp_path / "none" / "r.html", {}), "no such folder"),
        (([small], target, {"settings": ReportSettings(figures=small)}), "cannot be made"),
    ]
    for (files, to, options), message in cases:
        with pytest.raises(InputError, match=message):
            write_report(files, to, **options)
    assert os.listdir(target.parent) == []


@pytest.mark.parametrize("damage", [{"individuals": 3}, {"spectrum": None}, {"overlap": {}}, {"q": "x"}])
def test_facts_of_another_layout_are_refused(tmp_path, report, damage):
    path = examples.sharing(tmp_path / "s.tsv", **damage)
    with pytest.raises(InputError, match=r"s\.tsv\.json: is damaged"):
        report([path])


def test_nothing_is_half_written(tmp_path, small, monkeypatch):
    target = tmp_path / "r.html"
    target.write_text("before")
    with pytest.raises(InputError, match="overwrite=True"):
        write_report([small], target)
    figures = tmp_path / "figures"
    figures.mkdir()
    (figures / "lengths.png").write_text("mine")
    with pytest.raises(InputError, match=r"lengths\.png: exists already"):
        write_report([small], tmp_path / "s.html", settings=ReportSettings(figures=figures))
    assert sorted(os.listdir(tmp_path)) == ["figures", "r.html"]
    assert os.listdir(figures) == ["lengths.png"]

    def fail(figure):
        raise ZeroDivisionError

    monkeypatch.setattr("hpcvdj.reports.charts.png", fail)
    with pytest.raises(ZeroDivisionError):
        write_report([small], target, settings=ReportSettings(figures=figures), overwrite=True)
    assert target.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["figures", "r.html"]
    assert (figures / "lengths.png").read_text() == "mine"


@pytest.mark.parametrize("missing", ["vl_convert", "itables"])
def test_a_missing_library_names_the_extra(tmp_path, small, monkeypatch, missing):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else True)
    with pytest.raises(InputError, match=rf"{missing} is not installed; pip install 'hpcvdj\[report\]'"):
        write_report([small], tmp_path / "r.html")


def test_the_command(tmp_path, small, findings):
    out, _ = hpcvdj_command(
        "report", small, *findings, "-o", tmp_path / "r.html", "--name", "mouse", *["--name", "x"] * 4
    )
    assert re.search("files +5\nfigures +11\nwritten +.*r.html", out)
    page = Page((tmp_path / "r.html").read_text())
    assert page.rows("samples_table")[0]["sample"] == "mouse"
    assert page.html.startswith("<!DOCTYPE html>")
    _, err = hpcvdj_command("report", small, "-o", tmp_path / "r.html", code=2)
    assert "exists already" in error_line(err)


def test_words_for_numbers():
    assert [shown(cell) for cell in (None, 1234567, 0.12345, 12345.6, "x")] == [
        "–",
        "1,234,567",
        "0.123",
        "12,346",
        "x",
    ]
    assert [elements.percent(part, 1000) for part in (0, 1, 25, 999, 1000)] == [
        "0 %",
        "0.1 %",
        "2.5 %",
        "99.9 %",
        "100 %",
    ]
    table = elements.PageTable.of("t", "", "a b", [{"a": 2**60, "b": float("nan")}, {"a": np.int64(3), "b": None}])
    assert [column.key for column in table.columns] == ["a"]
    assert table.rows == [[float(2**60)], [3]]
    assert read_outputs([]).groups == {}


def test_rates_of_0_are_not_drawn(tmp_path, report):
    """Of clean samples, an axis without values was as wide as the largest number, and no PNG could be made."""
    clean = [{"reads": reads, "clones": 50, "met_same_group": 0.0, "met_other_group": None} for reads in ("1", "2-3")]
    page = report([examples.contamination(tmp_path / "c.tsv", carry_over=clean)])
    assert "contamination_1_carried" not in page.specs
    assert "contamination_1_heatmap" in page.specs
