"""hpcvdj.reports.page: what is on the page, that it needs nothing else, and that all texts stay texts."""

import html
import importlib.util
import json
import os
import re
from itertools import pairwise

import h5py
import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import read_germline
from hpcvdj.recombination.igor import read_model
from hpcvdj.reports.page import MOST_RESULTS, Highlights, write_report
from hpcvdj.results.reader import Result
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, SMALL
from tests.problems import count_to
from tests.recombination.igor_files import mouse_files, mouse_junctions
from tests.report.conftest import REACHED, UNREACHED, Page
from tests.report.test_survey import VERSION_1


@pytest.fixture(scope="module")
def whole(small, tmp_path_factory):
    """The page of the small example, and the folder of its figures."""
    folder = tmp_path_factory.mktemp("page")
    write_report([small], folder / "r.html", germlines=[GERMLINE], figures=folder / "figures")
    return Page((folder / "r.html").read_text()), folder / "figures"


def number(text):
    return float(text.replace(",", ""))


def test_the_numbers_of_tables(small, whole):
    page, _ = whole
    with Result(small) as result:
        frame = result.to_table().to_pandas()
        counters = result.counters[:]
        provenance = result.provenance
    totals = frame["pathways_total"]
    summary = page.facts("summary_table")
    assert summary["junctions counted"] == "500"
    assert summary["pathways in all"] == f"{totals.sum():,}"
    assert summary["pathways per junction, median"] == f"{np.median(totals):,.1f}".removesuffix(".0")
    assert summary["pathways per junction, most"] == f"{totals.max():,}"
    none = int((counters[:, 0] > 0).sum())
    assert summary["junctions with a pathway without n-nucleotides"] == f"{none:,} ({none / 5:.2f} %)"
    assert page.column("by_n_table", "pathways") == [f"{ways:,}" for ways in counters.sum(axis=0)]
    reached = np.maximum.accumulate(counters > 0, axis=1).sum(axis=0)
    assert page.column("by_n_table", "junctions with a pathway, %") == [f"{junctions / 5:.4g}" for junctions in reached]
    medians = np.sort(counters, axis=0)[249]
    for text, true in zip(page.column("by_n_table", "pathways of a junction, median"), medians, strict=True):
        assert abs(number(text) - true) <= true / 100
    sizes = dict(
        zip(page.column("by_size_table", "CDR3 length, nt"), page.column("by_size_table", "junctions"), strict=True)
    )
    assert {int(size): int(count) for size, count in sizes.items()} == frame["cdr3"].str.len().value_counts().to_dict()
    pairs = [row[:3] for row in page.tables["pairs_table"][1:]]
    genes = frame["v_call"].str.split("*").str[0] + " " + frame["j_call"].str.split("*").str[0]
    assert {f"{v} {j}": int(count) for v, j, count in pairs} == genes.value_counts().to_dict()
    for table in ("distribution_table", "pathways_by_size_table"):
        assert sum(map(number, page.column(table, "junctions"))) == 500
        assert abs(sum(map(number, page.column(table, "share of junctions, %"))) - 100) < 0.1
    assert sum(map(number, page.column("pathways_by_n_table", "junctions"))) == 500 * 11
    facts = page.facts("run_table")
    assert facts["junctions sha256"] == provenance["junctions_sha256"]
    assert facts["method"] == "direct"


def test_the_largest_weights(small, whole):
    page, _ = whole
    with Result(small) as result:
        frame = result.to_table().to_pandas()
    frame["weight"] = sum(frame[f"pathways_n{m}"] / 4**m for m in range(11))
    best = frame.sort_values("weight", ascending=False).iloc[0]
    head, first, *_ = page.tables["top_table"]
    row = dict(zip(head, first, strict=True))
    assert (row["V allele"], row["J allele"], row["CDR3, nucleotides"]) == (
        best["v_call"],
        best["j_call"],
        best["cdr3"],
    )
    assert number(row["weight"]) == pytest.approx(best["weight"], rel=1e-3)
    assert row["pathways"] == f"{best['pathways_total']:,}"
    assert [row[f"n={m}"] for m in range(11)] == [f"{best[f'pathways_n{m}']:,}" for m in range(11)]
    assert len(page.tables["top_table"]) == 101
    assert "not a generation probability" in page.text.replace("\n", " ")
    assert "most easily" not in page.text


def test_the_most_probable_junctions(tmp_path, count, report):
    model = read_model(mouse_files().write(tmp_path / "model"))
    rows = [*mouse_junctions(model, 100), ("TRBV31", "TRBJ1-1", "TGTGCCTTT")]
    result = count("t", "".join("\t".join((f"s{k}", *row)) + "\n" for k, row in enumerate(rows)))
    page = report([result], germlines=[GERMLINE], highlights=Highlights(model=model))
    values = list(map(number, page.column("top_table", "generation probability")))
    assert values == sorted(values, reverse=True)
    assert len(values) > 10
    assert page.captions["top_table"] == "The most probable junctions"
    text = " ".join(page.text.split())
    assert "1 junctions have no probability: V gene TRBV31*01 is not in the model (1)." in text
    assert "t, the most probable junction: s" in text
    assert "Generation probability of a junction, median: " in text


def test_figures_are_drawn_from_tables(small, whole):
    page, folder = whole
    names = sorted({name.rpartition(".")[0] for name in os.listdir(folder)})
    assert names == sorted(page.specs)
    assert sorted(os.listdir(folder)) == sorted(f"{name}.{kind}" for name in names for kind in ("png", "svg"))
    charts = [attributes for attributes in page.of("div") if "data-table" in attributes]
    assert len(charts) == len(page.specs) == 12
    assert all(attributes["data-table"] in page.tables for attributes in charts)
    assert not [spec for spec in page.specs.values() if "datasets" in spec or "$schema" in spec]
    assert all((folder / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in names)
    # A mark for each row of the table.
    for name, table in (("vj_pathways", "pairs_table"), ("pathways_by_n", "pathways_by_n_table")):
        svg = (folder / f"{name}.svg").read_text()
        marks = re.search(r'<g class="mark-rect role-mark.*?</g>', svg)[0]
        assert marks.count("<path") == len(page.tables[table]) - 1
    svg = (folder / "alignment_1_1.svg").read_text()
    cdr3 = page.column("top_table", "CDR3, nucleotides")[0]
    letters = "".join(re.findall(r">([ACGT])</text>", svg))
    assert letters == cdr3 * int(page.tables["alignment_1_1_table"][-1][0])


def test_the_page_needs_nothing_else(whole):
    page, _ = whole
    assert not {"link", "img", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    policy = next(each["content"] for each in page.of("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    own = re.sub(r"<script>.*?</script>", "", page.html, flags=re.DOTALL)
    assert "http:" not in own
    assert "https:" not in own
    assert "@import" not in own
    assert "url(" not in own
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for _, attributes in page.tags if "href" in attributes} <= set(ids)
    assert len(page.html) < 1_500_000


def test_the_page_is_accessible(whole):
    page, _ = whole
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.of("html") == [{"lang": "en"}]
    assert page.of("a")[0]["class"] == "skip"
    assert len(page.specs) == len(page.of("figure")) == len(page.of("figcaption"))
    for spec in page.specs.values():
        assert len(spec["description"]) > 60
        assert re.search(r"\d", spec["description"])
    assert len(page.of("caption")) == len(page.of("table")) == len(page.tables)
    assert all(page.captions.values())
    assert all("scope" in attributes for attributes in page.of("th"))
    scrolling = [each for each in page.of("div") if each.get("class", "").startswith(("scroll", "chart"))]
    assert all(attributes["tabindex"] == "0" for attributes in scrolling)
    assert all("aria-label" in each for each in scrolling if each["class"] != "chart")


def test_hostile_texts_stay_texts(count, report):
    evil = "</script><script>alert(1)</script>"
    body = f"{evil}\t{REACHED}\n\"'&amp;<b>\t{REACHED}\nx\t<i>{evil}\tTRBJ1-1\tTGTTTT\n"
    names = [f"$a_b$ {{n}} {evil} \x1b", "{{ 7 * 7 }}"]
    page = report([count("evil", body)] * 2, germlines=[GERMLINE], names=names)
    # The scripts: a spec for each figure, the configuration, the libraries, and the page's own.
    assert len(page.of("script")) == len(page.specs) + 3
    assert page.html.count("<script") == len(page.of("script"))
    assert {"b", "i"}.isdisjoint(tag for tag, _ in page.tags)
    assert page.text.count(evil) >= 3
    assert "\x1b" not in page.html
    assert f"$a_b$ {{n}} {evil} \ufffd" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert html.escape(evil, quote=False) in page.html
    described = json.dumps([spec["description"] for spec in page.specs.values()])
    assert evil in described


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("one", f"a\t{REACHED}\n", "1 junctions were counted; 100.00 %"),
        ("none_reached", f"a\t{UNREACHED}\nb\t{UNREACHED}\n", "No junction has a pathway"),
        ("all_excluded", "a\tTRBV999\tTRBJ1-1\tTGTTTT\nb\t\tTRBJ1-1\tTGTTTT\n", "there are no figures"),
        ("empty_cdr3", "a\tTRBV1\tTRBJ1-1\tTGTTTT\n", "most direct pathways"),
    ],
)
@pytest.mark.parametrize("max_n", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_the_least_there_can_be(tmp_path, count, report, name, body, says, max_n):
    figures = tmp_path / "figures" if max_n else None
    page = report([count(name, body, max_n)], germlines=[GERMLINE], figures=figures)
    if name != "one" or max_n:
        assert says in page.text
    assert "nan" not in page.text.replace("nant", "")
    assert not figures or len(os.listdir(figures)) == 2 * len(page.specs)


def test_junctions_without_a_pathway_are_shown_apart(count, report):
    body = f"a\t{REACHED}\n" + "".join(f"u{k}\t{UNREACHED}\n" for k in range(3))
    page = report([count("t", body, 3)])
    assert page.tables["distribution_table"][1] == ["0", "0", "3", "75"]
    assert page.facts("summary_table")["junctions without a pathway"] == "3"
    assert "needs the germline table" in page.text


def test_excluded_rows_are_listed_by_reason(count, report):
    rows = [("a", "TRBV999"), ("b", "TRBV999"), ("c", "TRBV998"), ("d", ""), ("e", "TRBV1,TRBV2"), ("f", "TRBV1")]
    page = report([count("t", "".join(f"{name}\t{v}\tTRBJ1-1\tTGTACCTTT\n" for name, v in rows))])
    table = {row[0]: row[1:] for row in page.tables["excluded_table"]}
    gene = table["V gene that is not in the germline table"]
    assert gene[:3] == ["3", "50", "–"]
    assert gene[3].startswith("V gene TRBV999 is not in the germline table (2), V gene TRBV998")
    assert table["ambiguous V call"][:3] == ["1", "16.67", "--ambiguous-calls first"]
    assert page.facts("summary_table")["rows excluded"] == "5 (83.33 %)"


def test_a_result_without_rows(tmp_path, small, report):
    empty = tmp_path / "empty.h5"
    empty.write_bytes(small.read_bytes())
    with h5py.File(empty, "a") as file:
        names = [f"sequences/{name}" for name in file["sequences"]] + ["counters", "pairs/v_call", "pairs/j_call"]
        for name in names:
            shape, dtype = file[name].shape, file[name].dtype
            del file[name]
            file.create_dataset(name, (0, *shape[1:]), dtype)
        del file["pairs/offset"]
        file["pairs/offset"] = np.zeros(1, np.int64)
        file.attrs["rows_read"] = 0
    page = report([empty])
    assert "0 of 0 rows could be counted." in page.text
    assert page.specs == {}
    both = report([empty, small])
    assert both.tables["summary_table"][3][1:] == ["0", "500"]
    assert len(both.specs) == 10


def test_results_beside_each_other(count, report, small):
    other = count("other", f"a\t{REACHED}\nb\t{REACHED}\nc\t{UNREACHED}\n", 4)
    page = report([small, other, small], germlines=[GERMLINE], names=["left", "right", "left"])
    summary = page.tables["summary_table"]
    assert summary[0] == ["", "left (1)", "right", "left (3)"]
    assert [row[1] for row in summary[1:]] == [row[3] for row in summary[1:]]
    assert {row[0]: row[2] for row in summary}["junctions with a pathway"] == "2 (66.67 %)"
    assert "cannot be compared here" in page.text
    assert "the results were counted with different largest n-lengths (10, 4, 10)." in page.text
    by_n = [row[:2] for row in page.tables["by_n_table"][1:]]
    assert by_n == [
        [name, str(m)] for name, n in (("left (1)", 10), ("right", 4), ("left (3)", 10)) for m in range(n + 1)
    ]
    # What was not counted is not 0.
    head, *rows = page.tables["top_table"]
    right = next(row for row in rows if row[0] == "right")
    assert right[head.index("n=5")] == "–" != right[head.index("n=4")]
    panels = page.specs["vj_junctions"]["facet"]
    assert (panels["field"], panels["sort"]) == ("result", ["left (1)", "right", "left (3)"])
    assert {name for name in page.specs if name.startswith("alignment")} == {
        f"alignment_{k}_{kind}" for k in (1, 2, 3) for kind in (1, 2)
    }
    assert "cannot be compared" not in report([small, small]).text


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_eight_results(report, small, tmp_path, drawn):
    page = report([small] * MOST_RESULTS, figures=tmp_path / "figures" if drawn else None)
    assert page.tables["summary_table"][0][1:] == [f"small ({k})" for k in range(1, 9)]
    assert len(page.html) < 5_000_000
    assert not drawn or len(os.listdir(tmp_path / "figures")) == 2 * 10


def test_a_result_in_parts_reads_as_the_whole(tmp_path, report, small):
    target = tmp_path / "many.h5"
    count_to(target, SMALL, read_germline(GERMLINE), Config(10), rows=137)
    left, right = report([small], names=["x"]), report([target], names=["x"])
    alike = set(left.tables) - {"run_table", "times_table"}
    assert {name: left.tables[name] for name in alike} == {name: right.tables[name] for name in alike}
    assert left.specs == right.specs
    next((tmp_path / "many.h5.parts").glob("part-*1.h5")).unlink()
    with pytest.raises(InputError, match=r"its part .*part-000001\.h5 is missing"):
        report([target])


def test_repertoires_of_a_result_of_several_tables(tmp_path, report):
    lines = SMALL.read_text().splitlines(keepends=True)
    for name, rows in (("a", lines[1:201]), ("b", lines[1:101])):
        (tmp_path / f"{name}.tsv").write_text("".join(lines[:1] + rows))
    target = tmp_path / "all.h5"
    count_to(target, [tmp_path / "a.tsv", tmp_path / "b.tsv"], read_germline(GERMLINE), Config(10))
    page = report([target], germlines=[GERMLINE])
    assert page.tables["repertoires_table"][1:] == [["a", "200", "66.67"], ["b", "100", "33.33"]]
    assert page.facts("summary_table")["repertoires"] == "2"
    assert all(re.fullmatch(".+ of [ab]", text) for text in page.column("top_table", "first sequence_id"))


@pytest.mark.parametrize("name", ["whole", "parts", "together"])
def test_results_of_version_1(report, name):
    page = report([VERSION_1 / f"{name}.h5"])
    assert "other reasons" in page.facts("excluded_table")
    assert page.facts("run_table")["file"] == f"{name}.h5"
    assert len(page.specs) == 10


def test_what_is_refused(tmp_path, small):
    target = tmp_path / "r.html"
    cases = [
        (([small], target, {"names": ["a", "b"]}), "2 names for 1 results"),
        (([small] * 9, target, {}), "at most 8"),
        (([small], small, {"overwrite": True}), "is an input of this run"),
        (([tmp_path / "no.h5"], target, {}), "no such result file"),
        (([small], tmp_path / "none" / "r.html", {}), "no such folder"),
        (
            ([small], target, {"germlines": [GERMLINE.with_name("mouse_trb.tsv")]}),
            "none of the results was counted with",
        ),
        (([small], target, {"highlights": Highlights("insilico_1")}), "need --germline"),
        (
            ([small], target, {"highlights": Highlights("nobody"), "germlines": [GERMLINE]}),
            "no such sequence_id was counted",
        ),
        (([small], target, {"figures": small}), "cannot be made"),
    ]
    for (results, to, options), message in cases:
        with pytest.raises(InputError, match=message):
            write_report(results, to, **options)
    assert os.listdir(tmp_path) == []


def test_nothing_is_half_written(tmp_path, small, monkeypatch):
    target = tmp_path / "r.html"
    target.write_text("before")
    with pytest.raises(InputError, match="--overwrite"):
        write_report([small], target)
    figures = tmp_path / "figures"
    figures.mkdir()
    (figures / "lengths.png").write_text("mine")
    with pytest.raises(InputError, match=r"lengths\.png: exists already"):
        write_report([small], tmp_path / "s.html", figures=figures)
    assert sorted(os.listdir(tmp_path)) == ["figures", "r.html"]
    assert os.listdir(figures) == ["lengths.png"]

    def fail(figure):
        raise ZeroDivisionError

    monkeypatch.setattr("hpcvdj.reports.charts.png", fail)
    with pytest.raises(ZeroDivisionError):
        write_report([small], target, figures=figures, overwrite=True)
    assert target.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["figures", "r.html"]
    assert (figures / "lengths.png").read_text() == "mine"


def test_a_missing_library_names_the_extra(tmp_path, small, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "vl_convert" else True)
    with pytest.raises(InputError, match=r"vl_convert is not installed; pip install 'hpcvdj\[report\]'"):
        write_report([small], tmp_path / "r.html")


def test_the_junction_asked_for(report, small):
    page = report([small], germlines=[GERMLINE], highlights=Highlights("insilico_7"))
    assert "the junction asked for: insilico_7" in page.text
    ways = sum(map(number, page.column("alignment_1_1_table", "pathways")))
    with Result(small) as result:
        row = result.to_table().to_pandas().set_index("sequence_id").loc["insilico_7"]
    counters = [row[f"pathways_n{m}"] for m in range(11)]
    assert ways == next(ways for ways in counters if ways)
    tracks = page.column("alignment_1_1_table", "origin of each letter")
    assert {(len(track), track.count("n")) for track in tracks} == {
        (len(row["cdr3"]), next(m for m, ways in enumerate(counters) if ways))
    }


def test_a_result_that_does_not_fit_its_germline_table_is_refused(tmp_path, small, report):
    wrong = tmp_path / "wrong.h5"
    wrong.write_bytes(small.read_bytes())
    with h5py.File(wrong, "a") as file:
        file["counters"][:] = file["counters"][:] + 1
    with pytest.raises(InputError, match="has other pathways than the germline table gives"):
        report([wrong], germlines=[GERMLINE])


def test_the_command(tmp_path, small):
    out, _ = hpcvdj_command("report", small, "-o", tmp_path / "r.html", "-g", GERMLINE, "--name", "mouse")
    assert re.search("results +1\nfigures +12\nwritten +.*r.html", out)
    assert '<h1>Recombination pathways<span class="of"> mouse</span></h1>' in (tmp_path / "r.html").read_text()
    assert (tmp_path / "r.html").read_text().lstrip().startswith("<!DOCTYPE html>")
    _, err = hpcvdj_command("report", small, "-o", tmp_path / "r.html", code=2)
    assert "exists already" in error_line(err)
    _, err = hpcvdj_command("report", SMALL, "-o", tmp_path / "s.html", code=2)
    assert "not a result file, or a damaged one" in error_line(err)
