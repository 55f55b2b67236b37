"""What the tests of the report share: results, and a page's elements."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from hpcvdj.counting.config import Config
from hpcvdj.recombination.germline import read_germline
from hpcvdj.reports.page import write_report
from tests.conftest import GERMLINE, SMALL
from tests.problems import count_to

HEADER = "sequence_id\tv_call\tj_call\tjunction\n"
REACHED = "TRBV1\tTRBJ1-1\tTGTACCTGCAGTGCAGACACAGAAGTCTTCTTT"
UNREACHED = "TRBV1\tTRBJ1-1\tTGT" + "GGATTTTA" * 7 + "TTT"


class Page(HTMLParser):
    """The elements of a page: (tag, attributes); its tables as rows of texts by id; the specs of its figures."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, html):
        super().__init__()
        self.html = html
        self.tags, self.open, self.tables, self.captions, self.text = [], [], {}, {}, ""
        self.specs, self.name = {}, ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("table", "figure"):
            self.name = attributes["id"]
        if tag == "table":
            self.tables[self.name], self.captions[self.name] = [], ""
        elif tag == "tr":
            self.tables[self.name].append([])
        elif tag in ("td", "th"):
            self.tables[self.name][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" in self.open:
            if "figure" in self.open:
                self.specs[self.name] = json.loads(data)
        elif "style" not in self.open:
            self.text += data
        if "caption" in self.open:
            self.captions[self.name] += data
        elif {"td", "th"} & set(self.open):
            self.tables[self.name][-1][-1] += data

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def column(self, table, header):
        """The texts of a column of a table."""
        head, *rows = self.tables[table]
        place = head.index(header)
        return [row[place] for row in rows]

    def facts(self, table):
        """The first two columns of a table."""
        return {row[0]: row[1] for row in self.tables[table]}


@pytest.fixture
def count(tmp_path):
    """Count rows of a table; the result."""

    def count_rows(name, body, max_n=10):
        table = tmp_path / f"{name}.tsv"
        table.write_text(HEADER + body)
        count_to(tmp_path / f"{name}.h5", table, read_germline(GERMLINE), Config(max_n))
        return tmp_path / f"{name}.h5"

    return count_rows


@pytest.fixture
def report(tmp_path):
    """Write the report of results; its page."""

    def write(results, **options):
        write_report(results, tmp_path / "report.html", overwrite=True, **options)
        return Page((tmp_path / "report.html").read_text())

    return write


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The small example, counted."""
    target = tmp_path_factory.mktemp("small") / "small.h5"
    count_to(target, SMALL, read_germline(GERMLINE), Config(10))
    return target
