"""What the tests of the report share: results, and a page's elements."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from hpcvdj.counting.config import Config
from hpcvdj.recombination.germline import read_germline
from hpcvdj.reports.page import write_report
from hpcvdj.reports.settings import ReportSettings
from tests.conftest import GERMLINE, SMALL
from tests.problems import count_to
from tests.report import examples

HEADER = "sequence_id\tv_call\tj_call\tjunction\n"
REACHED = "TRBV1\tTRBJ1-1\tTGTACCTGCAGTGCAGACACAGAAGTCTTCTTT"
UNREACHED = "TRBV1\tTRBJ1-1\tTGT" + "GGATTTTA" * 7 + "TTT"


class Page(HTMLParser):
    """The elements of a page: (tag, attributes); its text; its tables as rows of cells by column; its figures'
    specs."""

    VOID = frozenset({"meta", "br", "input"})

    def __init__(self, html):
        super().__init__()
        self.html = html
        self.tags, self.open, self.text, self.data = [], [], "", {}
        self.feed(html)
        assert self.open == []
        self.text = " ".join(self.text.split())
        self.specs = self.data["specs"]

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.text += data + " "
        elif self.open[-1] == "script" and self.tags[-1][1].get("id") == "data":
            self.data = json.loads(data)

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def rows(self, table):
        """The rows of a table: {key: cell}."""
        keys = [column["key"] for column in self.data["tables"][table]["columns"]]
        return [dict(zip(keys, row, strict=True)) for row in self.data["tables"][table]["rows"]]


@pytest.fixture
def count(tmp_path):
    """Count rows of a table; the result."""

    def count_rows(name, body, max_n=10):
        table = tmp_path / f"{name}.tsv"
        table.write_text(HEADER + body)
        count_to(tmp_path / f"{name}.h5", table, read_germline(GERMLINE), Config(max_n=max_n))
        return tmp_path / f"{name}.h5"

    return count_rows


@pytest.fixture
def report(tmp_path):
    """Write the report of files; its page."""

    def write(files, **options):
        write_report(files, tmp_path / "report.html", overwrite=True, **options)
        return Page((tmp_path / "report.html").read_text())

    return write


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The small example, counted."""
    target = tmp_path_factory.mktemp("small") / "small.h5"
    count_to(target, SMALL, read_germline(GERMLINE), Config(max_n=10))
    return target


@pytest.fixture(scope="session")
def findings(tmp_path_factory):
    """Tables of contamination, sharing and enrich (two individuals)."""
    folder = tmp_path_factory.mktemp("findings")
    return [
        examples.contamination(folder / "contamination.tsv"),
        examples.sharing(folder / "sharing.tsv"),
        examples.enrichment(folder / "enriched1.tsv"),
        examples.enrichment(folder / "enriched2.tsv", "donor3", clusters=2, kappa=4.5),
    ]


@pytest.fixture(scope="session")
def whole(small, findings, tmp_path_factory):
    """A page of all kinds of files, its path, and the folder of its figures."""
    folder = tmp_path_factory.mktemp("page")
    files = [*findings, small, examples.probabilities(folder / "donor1.tsv")]
    write_report(files, folder / "r.html", settings=ReportSettings(figures=folder / "figures"))
    return Page((folder / "r.html").read_text()), folder / "r.html", folder / "figures"
