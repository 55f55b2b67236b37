"""hpcvdj.report.page: what stands on the page, that it needs nothing else, and that nothing gets out of its place."""

import html
import os
import re
from html.parser import HTMLParser
from itertools import pairwise

import h5py
import numpy as np
import pytest

from hpcvdj.counting.batched import count_in_slices
from hpcvdj.counting.config import Config, Inputs
from hpcvdj.counting.whole import count_file
from hpcvdj.errors import InputError
from hpcvdj.runs.ranks import World
from hpcvdj.recombination.germline import read_germline
from hpcvdj.report import page
from hpcvdj.report.page import write_report
from hpcvdj.results import parts
from hpcvdj.results.reader import Result
from tests.cli.test_commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, SMALL

HEADER = "sequence_id\tv_call\tj_call\tjunction\n"
REACHED = "TRBV1\tTRBJ1-1\tTGTACCTGCAGTGCAGACACAGAAGTCTTCTTT"
UNREACHED = "TRBV1\tTRBJ1-1\tTGT" + "GGATTTTA" * 7 + "TTT"


class Page(HTMLParser):
    """The elements of a page: (tag, attributes), its tables as rows of texts, and whether all are closed in order."""

    VOID = frozenset({"meta", "path", "use", "rect", "stop", "br"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.tables, self.text, self.loose = [], [], {}, "", []
        self.rows, self.caption = None, ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.rows, self.caption = [], ""
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        assert self.open.pop() == tag
        if tag == "table":
            self.tables[self.caption] = self.rows

    def handle_data(self, data):
        if not {"style", "svg"} & set(self.open):
            self.text += data
        if "caption" in self.open:
            self.caption += data
        elif {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def count(folder, name, body, max_n=10, germline=GERMLINE):
    table = folder / f"{name}.tsv"
    table.write_text(HEADER + body)
    count_file(Inputs(table), read_germline(germline), folder / f"{name}.h5", Config(max_n), World())
    return folder / f"{name}.h5"


def report(results, folder, **options):
    target = folder / "report.html"
    write_report(results, target, overwrite=True, **options)
    return Page(target.read_text()), target.read_text()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    target = tmp_path_factory.mktemp("small") / "small.h5"
    count_file(Inputs(SMALL), read_germline(GERMLINE), target, Config(10), World())
    return target


@pytest.fixture(scope="module")
def whole(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_report([small], folder / "r.html", germlines=[GERMLINE], figures=folder / "figures")
    return folder


def test_the_numbers_on_the_page(small, whole):
    found = Page((whole / "r.html").read_text())
    with Result(small) as result:
        frame = result.to_table().to_pandas()
        counters = result.counters[:]
    totals = frame["pathways_total"]
    summary = {row[0]: row[1] for row in found.tables["Summary of what was counted"]}
    assert summary["junctions counted"] == "500"
    assert summary["pathways in all"] == f"{totals.sum():,}"
    assert summary["pathways per junction, median"] == f"{np.median(totals):,.1f}".removesuffix(".0")
    assert summary["pathways per junction, most"] == f"{totals.max():,}"
    none = int((counters[:, 0] > 0).sum())
    assert summary["junctions with a pathway without n-nucleotides"] == f"{none:,} ({none / 5:.2f} %)"
    by_n = found.tables["Junctions and pathways by number of n-nucleotides"][1:]
    assert [row[3] for row in by_n] == [f"{ways:,}" for ways in counters.sum(axis=0)]
    reached = np.maximum.accumulate(counters > 0, axis=1).sum(axis=0)
    assert [row[2] for row in by_n] == [f"{junctions / 5:.2f} %" for junctions in reached]
    by_size = found.tables["Junctions and their pathways by CDR3 length"][1:]
    assert {int(row[0]): int(row[1]) for row in by_size} == frame["cdr3"].str.len().value_counts().to_dict()
    distribution = found.tables["Junctions by number of pathways"][1:]
    assert sum(int(row[1].replace(",", "")) for row in distribution) == 500
    convergent = next(rows for caption, rows in found.tables.items() if caption.startswith("The 20 junctions"))
    best = frame.sort_values("pathways_total", ascending=False).iloc[0]
    assert convergent[1][2:6] == [best["v_call"], best["j_call"], "1", f"{best['pathways_total']:,}"]
    assert convergent[1][6:17] == [f"{best[f'pathways_n{m}']:,}" for m in range(11)]
    facts = {row[0]: row[1] for row in found.tables["Facts of the run, as the result file records them"]}
    with Result(small) as result:
        assert facts["junctions, SHA-256 of the file"] == result.provenance["junctions_sha256"]
    assert facts["GPUs"] == "none"


def test_the_page_needs_nothing_else(whole):
    text = (whole / "r.html").read_text()
    assert "http:" not in text
    assert "https:" not in text
    found = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base"} & {tag for tag, _ in found.tags}
    for _, attributes in found.tags:
        assert "src" not in attributes
        # Colour bars are small pictures within the page.
        assert attributes.get("href", "#").startswith(("#", "data:image/png;base64,"))
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {attributes["href"][1:] for _, attributes in found.tags if attributes.get("href", "")[:1] == "#"}
    targets |= set(re.findall(r"url\(#([^)]+)\)", text))
    assert targets <= set(ids)


def test_the_page_is_accessible(whole):
    found = Page((whole / "r.html").read_text())
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert found.of("html") == [{"lang": "en"}]
    first_link = found.of("a")[0]
    assert first_link["class"] == "skip"
    drawings = [attributes for attributes in found.of("div") if attributes.get("role") == "img"]
    assert len(drawings) == len(found.of("figure")) == len(found.of("figcaption")) >= 10
    assert all(
        len(attributes["aria-label"]) > 60 and re.search(r"\d", attributes["aria-label"]) for attributes in drawings
    )
    assert len(found.of("caption")) == len(found.of("table")) == len(found.tables)
    assert all("scope" in attributes for attributes in found.of("th"))
    scrolling = [attributes for attributes in found.of("div") if attributes.get("class") == "scroll"]
    assert all("tabindex" in attributes and "aria-label" in attributes for attributes in scrolling)


def test_figures_as_files(whole):
    names = sorted(os.listdir(whole / "figures"))
    assert {name.rpartition(".")[2] for name in names} == {"svg", "png"}
    assert len(names) == 2 * len(Page((whole / "r.html").read_text()).of("figure"))
    assert (whole / "figures" / "vj_junctions_1.png").read_bytes().startswith(b"\x89PNG")
    svg = (whole / "figures" / "pathways_per_junction.svg").read_text()
    assert svg.startswith("<?xml")
    assert "share of junctions" in svg


def test_hostile_texts_stay_texts(tmp_path):
    evil = "<script>alert(1)</script>"
    body = f"{evil}\t{REACHED}\n\"'&amp;<b>\t{REACHED}\nx\t<i>{evil}\tTRBJ1-1\tTGTTTT\n"
    result = count(tmp_path, "evil", body)
    found, text = report([result], tmp_path, germlines=[GERMLINE], names=[f"$a_b$ {evil} \x1b"])
    assert "<script" not in text
    assert {"script", "b", "i"}.isdisjoint(tag for tag, _ in found.tags)
    assert found.text.count(evil) >= 3
    assert "\x1b" not in text
    assert "$a_b$" in found.text
    assert html.escape(evil, quote=False) in text


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("one", f"a\t{REACHED}\n", "1 junctions, 100.00 %"),
        ("none_reached", f"a\t{UNREACHED}\nb\t{UNREACHED}\n", "No junction has a pathway"),
        ("all_excluded", "a\tTRBV999\tTRBJ1-1\tTGTTTT\nb\t\tTRBJ1-1\tTGTTTT\n", "nothing to draw"),
        ("empty_cdr3", "a\tTRBV1\tTRBJ1-1\tTGTTTT\n", "most direct pathways"),
    ],
)
def test_the_least_there_can_be(tmp_path, name, body, says):
    for max_n in (0, 3):
        found, _ = report([count(tmp_path, f"{name}{max_n}", body, max_n)], tmp_path, germlines=[GERMLINE])
        if name != "one" or max_n:
            assert says in found.text
        assert "nan" not in found.text.replace("nant", "")


def test_junctions_without_a_pathway_are_shown_apart(tmp_path):
    body = f"a\t{REACHED}\n" + "".join(f"u{k}\t{UNREACHED}\n" for k in range(3))
    found, _ = report([count(tmp_path, "t", body, 3)], tmp_path)
    distribution = found.tables["Junctions by number of pathways"]
    assert distribution[1] == ["none", "3", "75.00 %"]
    summary = {row[0]: row[1] for row in found.tables["Summary of what was counted"]}
    assert summary["junctions without a pathway"] == "3"
    assert "needs the germline table" in found.text


def test_a_result_without_rows(tmp_path, small):
    empty = tmp_path / "empty.h5"
    empty.write_bytes(small.read_bytes())
    with h5py.File(empty, "a") as file:
        for name in ("counters", "sequences/row", "sequences/sequence_id", "sequences/v_call", "sequences/j_call",
                     "sequences/cdr3"):  # fmt: skip
            shape, dtype = file[name].shape, file[name].dtype
            del file[name]
            file.create_dataset(name, (0, *shape[1:]), dtype)
        for name in ("v_call", "j_call"):
            dtype = file[f"pairs/{name}"].dtype
            del file[f"pairs/{name}"]
            file.create_dataset(f"pairs/{name}", (0,), dtype)
        del file["pairs/offset"]
        file["pairs/offset"] = np.zeros(1, np.int64)
    found, _ = report([empty], tmp_path)
    assert "The table has no rows." in found.text
    both, _ = report([empty, small], tmp_path)
    assert both.tables["Summary of what was counted"][2][1:] == ["0", "500"]


def test_results_beside_each_other(tmp_path, small):
    other = count(tmp_path, "other", f"a\t{REACHED}\nb\t{REACHED}\nc\t{UNREACHED}\n", 4)
    found, text = report([small, other, small], tmp_path, germlines=[GERMLINE], names=["left", "right", "left"])
    summary = found.tables["Summary of what was counted"]
    assert summary[0] == ["", "left (1)", "right", "left (3)"]
    assert [row[1] for row in summary[1:]] == [row[3] for row in summary[1:]]
    assert {row[0]: row[2] for row in summary}["junctions with a pathway"] == "2 (66.67 %)"
    assert "cannot be compared here: the results were counted with different n-lengths (0–10, 0–4, 0–10)." in found.text
    by_n = found.tables["Junctions and pathways by number of n-nucleotides"]
    assert by_n[6][5:9] == ["–"] * 4  # n = 5 was not counted there
    titles = re.findall(r"<h3>(.*?)</h3>", text)
    assert titles.count("right") >= 3


def test_a_result_in_parts_reads_as_the_whole(tmp_path, small):
    target = tmp_path / "many.h5"
    count_in_slices(Inputs(SMALL), read_germline(GERMLINE), target, Config(10), World(), 137)
    left, _ = report([small], tmp_path, germlines=[GERMLINE], names=["x"])
    assert "cannot be compared" not in left.text
    right, _ = report([target], tmp_path, germlines=[GERMLINE], names=["x"])
    ordered = [caption for caption in left.tables if caption.startswith(("Summary", "Junctions", "V–J"))]
    assert len(ordered) == 5
    for caption in ordered:
        assert left.tables[caption] == right.tables[caption]
    parts.part_path(target, 1).unlink()
    with pytest.raises(InputError, match=r"its part .*part-000001\.h5 is missing"):
        report([target], tmp_path)


def test_what_is_refused(tmp_path, small):
    target = tmp_path / "r.html"
    cases = [
        (([small], target, {"names": ["a", "b"]}), "2 names for 1 results"),
        (([small] * 9, target, {}), "at most 8"),
        (([small], small, {"overwrite": True}), "is the result itself"),
        (([tmp_path / "no.h5"], target, {}), "no such result file"),
        (([small], tmp_path / "none" / "r.html", {}), "no such folder"),
        (([small], target, {"germlines": [GERMLINE.with_name("mouse_trb.tsv")]}), "no result was counted with it"),
        (([small], target, {"junction": "insilico_1"}), "need --germline"),
        (([small], target, {"junction": "nobody", "germlines": [GERMLINE]}), "no such sequence_id was counted"),
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

    monkeypatch.setattr("hpcvdj.report.figures.drawing.png_file", fail)
    with pytest.raises(ZeroDivisionError):
        write_report([small], target, figures=figures, overwrite=True)
    assert target.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["figures", "r.html"]


def test_a_missing_library_names_the_extra(tmp_path, small, monkeypatch):
    monkeypatch.setattr(page, "find_spec", lambda name: None if name == "jinja2" else True)
    with pytest.raises(InputError, match=r"a report needs jinja2: install hpcvdj\[report\]"):
        write_report([small], tmp_path / "r.html")


def test_the_junction_asked_for(tmp_path, small):
    found, _ = report([small], tmp_path, germlines=[GERMLINE], junction="insilico_7")
    assert "the junction asked for: insilico_7" in found.text
    lines = next(rows for caption, rows in found.tables.items() if caption.startswith("The lines of the picture"))
    with Result(small) as result:
        row = result.to_table().to_pandas().set_index("sequence_id").loc["insilico_7"]
    counters = [row[f"pathways_n{m}"] for m in range(11)]
    assert sum(int(line[-1]) for line in lines[1:]) == next(ways for ways in counters if ways)


def test_the_command(tmp_path, small):
    out, _ = hpcvdj_command("report", small, "-o", tmp_path / "r.html", "-g", GERMLINE, "--figures", tmp_path / "f")
    assert re.search(r"figures +12, PNG and SVG in", out)
    assert (tmp_path / "r.html").read_text().lstrip().startswith("<!DOCTYPE html>")
    _, err = hpcvdj_command("report", small, "-o", tmp_path / "r.html", code=2)
    assert "exists already" in error_line(err)
    _, err = hpcvdj_command("report", SMALL, "-o", tmp_path / "s.html", code=2)
    assert "not a readable HDF5" in error_line(err)
