"""The page in a browser: it draws its figures without a network or an error, and its tables can be used."""

import html
import json
import re
import shutil
import subprocess

import pytest

from hpcvdj.reports.page import write_report
from tests.conftest import GERMLINE
from tests.report.conftest import Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")

USE = """
<script>
addEventListener("load", async () => {
  while (!document.documentElement.dataset.drawn) await new Promise(done => setTimeout(done, 20));
  const table = document.getElementById("top_table"), tools = table.parentElement.previousElementSibling;
  const [search, ...inputs] = [tools, table].flatMap(part => [...part.querySelectorAll("input")]);
  const heads = [...table.tHead.rows[0].cells], titles = heads.map(head => head.dataset.title);
  const shown = () => [...table.tBodies[0].rows].filter(row => !row.hidden);
  const cells = title => shown().map(row => row.cells[titles.indexOf(title)].textContent);
  const click = title => heads[titles.indexOf(title)].querySelector("button").click();
  const type = (input, text) => { input.value = text; input.dispatchEvent(new Event("input")); };
  const filter = (title, text) => type(inputs[titles.indexOf(title)], text);
  const seen = {};
  click("pathways");
  seen.down = cells("pathways");
  seen.sort = heads[titles.indexOf("pathways")].getAttribute("aria-sort");
  click("pathways");
  seen.up = cells("pathways");
  click("V allele");
  seen.names = cells("V allele");
  type(search, "TRBV1*01");
  seen.searched = cells("V allele");
  seen.status = tools.querySelector("[role=status]").textContent;
  type(search, "");
  filter("rank", "<= 7");
  seen.ranks = cells("rank");
  filter("J allele", "trbj2");
  seen.both = cells("J allele");
  document.getElementById("theme").click();
  seen.theme = document.documentElement.dataset.theme;
  seen.label = document.querySelector("#vj_junctions [role=graphics-document]").getAttribute("aria-label");
  seen.width = innerWidth;
  seen.figures = document.querySelectorAll("svg.marks").length;
  seen.beyond = document.documentElement.scrollWidth - innerWidth;
  URL.createObjectURL = blob => {
    blob.text().then(text => parent.postMessage({ ...seen, download: text }, "*"));
    return "#";
  };
  [...tools.querySelectorAll("button")].at(-1).click();
});
</script>
"""


FRAME = """<!DOCTYPE html>
<iframe src="use.html" style="width: {width}px; height: 900px; border: none"></iframe>
<script>
onmessage = event => {{
  const text = JSON.stringify(event.data);
  document.body.append(Object.assign(document.createElement("pre"), {{ id: "seen", textContent: text }}));
}};
</script>
"""
"""Browsers have windows of 500 pixels and more."""


def browse(path, tmp_path):
    """The page as the browser has it after its scripts ran, and what the browser logged."""
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1500,1000", "--enable-logging=stderr", "--v=0", "--virtual-time-budget=30000",
            "--dump-dom", path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, re.findall(r'CONSOLE:\d+\] "(.*)"', done.stderr)


def seen(dom):
    """What the script in the page saw."""
    return json.loads(html.unescape(re.search('<pre id="seen">(.*?)</pre>', dom, re.DOTALL)[1]))


def ascending(texts):
    numbers = [int(text.replace(",", "")) for text in texts]
    return numbers == sorted(numbers)


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_works_in_a_browser(tmp_path, small, width):
    write_report([small], tmp_path / "r.html", germlines=[GERMLINE], names=["</script>&lt;b&gt;"])
    page = Page((tmp_path / "r.html").read_text())
    before, end, after = page.html.rpartition("</body>")
    (tmp_path / "use.html").write_text(before + USE + end + after)
    (tmp_path / "frame.html").write_text(FRAME.format(width=width))
    dom, logged = browse(tmp_path / "frame.html", tmp_path)
    assert logged == []
    got = seen(dom)
    assert got["figures"] == len(page.specs) == 12
    assert len(got["down"]) == len(got["up"]) == 100
    assert got["sort"] == "descending"
    assert ascending(got["up"])
    assert got["down"] == got["up"][::-1] or ascending(got["down"][::-1])
    assert got["names"].index("TRBV2*01") < got["names"].index("TRBV12-1*01")
    assert set(got["searched"]) == {"TRBV1*01"}
    assert got["status"] == f"{len(got['searched'])} of 100 rows"
    assert sorted(map(int, got["ranks"])) == [1, 2, 3, 4, 5, 6, 7]
    assert all(name.startswith("TRBJ2") for name in got["both"])
    head, *rows = [line.split("\t") for line in got["download"].rstrip("\n").split("\n")]
    assert head == page.tables["top_table"][0]
    assert [row[head.index("J allele")] for row in rows] == got["both"]
    pathways = {row[0]: row[head.index("pathways")].replace(",", "") for row in page.tables["top_table"][1:]}
    assert all(row[head.index("pathways")] == pathways[row[0]] for row in rows)
    assert got["theme"] == "dark"
    assert got["label"] == page.specs["vj_junctions"]["description"]
    assert (got["width"], got["beyond"] <= 0) == (width, True)


def test_panels_of_several_results(tmp_path, small):
    write_report([small] * 3, tmp_path / "r.html")
    dom, logged = browse(tmp_path / "r.html", tmp_path)
    assert logged == []
    assert len(re.findall('<svg [^>]*class="marks"', dom)) == 10
    figure = re.search('<figure id="vj_junctions".*?</figure>', dom, re.DOTALL)[0]
    assert 'class="wide"' in figure
    assert [f">small ({k})</text>" in figure for k in (1, 2, 3)] == [True] * 3
