"""The page in a browser: no error, no sideways scrolling, tables and controls that work by keyboard, dark mode,
print."""

import base64
import re
import shutil
import time
import zlib

import pytest

from hpcvdj.reports.page import write_report
from hpcvdj.reports.settings import Grouping
from tests.report import examples
from tests.report.test_page import EVIL

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

webdriver = pytest.importorskip("selenium.webdriver")
pytestmark = pytest.mark.skipif(None in (CHROMIUM, DRIVER), reason="no Chromium or no chromedriver")

KEYS = {"tab": "\ue004", "enter": "\ue007", "down": "\ue015"}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser without a network, which downloads to `browser.folder`."""
    folder = tmp_path_factory.mktemp("downloads")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.folder = folder
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser):
    """Open a page in a window of a width, once it is drawn; the script that reads it."""

    def load(path, width=1400, dark=False):
        browser.get("about:blank")
        browser.get_log("browser")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": [scheme]})
        browser.get(path.as_uri())
        wait(lambda: browser.execute_script("return document.documentElement.dataset.drawn"))
        return browser.execute_script

    return load


def wait(condition, seconds=60):
    """Wait until a condition holds, which the browser may bring about after the event that asked for it."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the page did not change within the time limit"
        time.sleep(0.05)


def wait_for(expected, read, seconds=60):
    """Wait until what is read is as expected; a failure shows what was read last."""
    end = time.monotonic() + seconds
    while (state := read()) != expected and time.monotonic() < end:
        time.sleep(0.05)
    assert state == expected


def errors(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def press(browser, text):
    browser.switch_to.active_element.send_keys(text)


LATE_TIMERS = """
const timeout = window.setTimeout;
window.setTimeout = (call, delay = 0, ...rest) => timeout(call, delay + 200, ...rest);
"""
"""Timers of the page run late, as on a busy machine."""

SIDEWAYS = "const page = document.documentElement; return [innerWidth, page.scrollWidth - page.clientWidth]"

UNFITTING = """
return [...document.querySelectorAll(".chart")].flatMap(chart => {
  const svg = chart.querySelector("svg.marks"), edge = svg.getBoundingClientRect();
  const outside = [...svg.querySelectorAll("text, path, line")].map(mark => mark.getBoundingClientRect())
    .filter(({ left, right, width }) => width && (left < edge.left - 1 || right > edge.right + 1)).length;
  const name = chart.closest("figure").id, width = chart.clientWidth;
  return edge.width > width || outside ? [`${name}: ${edge.width} in ${width}, ${outside} marks outside`] : [];
});
"""
"""The figures that are wider than their frame, or have marks outside the drawing."""

COLUMN = """
const table = document.getElementById(arguments[0]);
const heads = [...table.tHead.rows[0].cells].map(cell => cell.querySelector(".dt-column-title").textContent);
return [...table.tBodies[0].rows].map(row => row.cells[heads.indexOf(arguments[1])]?.textContent);
"""

STYLE = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"

IN_VIEW = """
const { top } = document.getElementById(arguments[0]).getBoundingClientRect();
return (-1 <= top && top < innerHeight) || `${arguments[0]} is at ${top} of ${innerHeight}`;
"""

SORTING = """
const heads = [...document.getElementById(arguments[0]).querySelectorAll("th[aria-sort]")];
return heads.map(cell => `${cell.querySelector(".dt-column-title").textContent}: ${cell.ariaSort}`);
"""

CONTRAST = """
const luminance = colour => {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = element => {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    // A tint of a fifth or less changes little.
    if (!/^rgba.*, 0(\\.[01]\\d*)?\\)$/.test(colour)) return colour;
  }
  return getComputedStyle(document.body).backgroundColor;
};
const faults = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
  if (element.closest("svg, script, .disabled")) continue;
  const pair = [getComputedStyle(element).color, behind(element)];
  const [low, high] = pair.map(luminance).sort((a, b) => a - b);
  if ((high + 0.05) / (low + 0.05) < 4.5) faults.push([texts.currentNode.data.trim().slice(0, 30), ...pair]);
}
return faults.slice(0, 5);
"""


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(400, True), (1400, False)])
def test_the_page_is_drawn(browser, opened, whole, width, dark):
    page, path, _ = whole
    script = opened(path, width, dark)
    assert script("return document.querySelectorAll('svg.marks').length") == len(page.specs)
    assert script("return document.documentElement.dataset.theme") == ("dark" if dark else "light")
    for fold in browser.find_elements("tag name", "summary"):
        if fold.is_displayed() and fold.text.startswith("Table:"):
            fold.click()
    wait_for(len(page.data["tables"]), lambda: script("return document.querySelectorAll('.dt-container').length"))
    assert script(SIDEWAYS) == [width, 0]
    assert script(UNFITTING) == []
    assert script(CONTRAST) == []
    script("document.getElementById('theme').click()")
    wait_for("light" if dark else "dark", lambda: script("return document.documentElement.dataset.theme"))
    assert script(CONTRAST) == []
    unnamed = (
        "return [...document.querySelectorAll('button, input, select')].filter(each => "
        "each.checkVisibility() && !(each.ariaLabel || each.textContent.trim() || each.labels?.length || "
        "each.title)).map(each => each.outerHTML)"
    )
    assert script(unnamed) == []
    label = script("return document.querySelector('#network [role=graphics-document]').getAttribute('aria-label')")
    assert label == page.specs["network"]["description"]
    assert errors(browser) == []


def test_tables_work_by_keyboard(browser, opened, whole):
    page, path, _ = whole
    script = opened(path)
    # DataTables sorts, searches and filters in timers.
    script(LATE_TIMERS)
    table = "sharing_1_sequences"
    rows = page.rows(table)

    def column(title):
        return script(COLUMN, table, title)

    def sorting():
        return script(SORTING, table)

    head = (
        "return document.querySelectorAll('#sharing_1_sequences thead tr:first-child "
        "th')[arguments[0]].querySelector('.dt-column-order')"
    )
    keys = [column["key"] for column in page.data["tables"][table]["columns"]]
    # Sort: largest number of variants first, then the smallest.
    script(f"({head.removeprefix('return ')}).focus()".replace("arguments[0]", str(keys.index("nt_variants"))))
    press(browser, KEYS["enter"])
    wait_for([str(number) for number in range(12, 2, -1)], lambda: column("nucleotide variants"))
    wait_for(["nucleotide variants: descending"], sorting)
    press(browser, KEYS["enter"])
    wait_for([str(number) for number in range(1, 11)], lambda: column("nucleotide variants"))
    wait_for(["nucleotide variants: ascending"], sorting)
    # Search: the letters that are typed into the box.
    search = browser.find_element(
        "css selector", "[aria-label='Search in: Shared sequences, the smallest p-value first']"
    )
    search.send_keys("TRBV7-1")
    wait_for({"TRBV7-1"}, lambda: set(column("V")))
    # Filter: the field below the header, and a condition on a number.
    variants = browser.find_elements(
        "css selector", "#sharing_1_sequences [aria-label='Filter by: nucleotide variants']"
    )
    field = next(each for each in variants if each.tag_name == "input")
    kind = next(each for each in variants if each.tag_name == "select")
    script(
        "arguments[0].value = 'greaterOrEqual'; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", kind
    )
    field.send_keys("5")
    expected = [row for row in rows if row["v_call"] == "TRBV7-1" and row["nt_variants"] >= 5]
    wait_for([str(row["nt_variants"]) for row in expected], lambda: column("nucleotide variants"))
    # Download: the rows that are left, with all digits.
    box = "document.getElementById('sharing_1_sequences').closest('.dt-container')"
    script(f"{box}.querySelector('.dt-buttons button').focus()")
    press(browser, KEYS["enter"])
    saved = browser.folder / f"{table}.tsv"
    wait(saved.exists)
    header = [column["title"] for column in page.data["tables"][table]["columns"]]
    written = [header, *([text(row[key]) for key in keys] for row in expected)]
    wait_for(written, lambda: [line.split("\t") for line in saved.read_text().splitlines()])
    assert errors(browser) == []


def text(cell):
    """A number as JavaScript writes it."""
    return str(int(cell)) if isinstance(cell, float) and cell == int(cell) else re.sub("e-0", "e-", str(cell))


def test_links_and_the_order_of_the_keyboard(browser, opened, whole):
    _, path, _ = whole
    script = opened(path)
    press(browser, KEYS["tab"])
    wait_for("skip", lambda: script("return document.activeElement.className"))
    press(browser, KEYS["enter"])
    wait_for("main", lambda: script("return document.activeElement.id"))
    for link in browser.find_elements("css selector", "nav a"):
        link.click()
        target = link.get_attribute("href").rpartition("#")[2]
        wait_for(True, lambda target=target: script(IN_VIEW, target))


def test_printing(browser, opened, whole):
    _, path, _ = whole
    script = opened(path, dark=True)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = (
        "return [...document.querySelectorAll('#theme, nav, .dt-search, .dt-buttons, .dt-length, .vega-embed "
        "summary')].every(each => !each.checkVisibility())"
    )
    wait_for(True, lambda: script(hidden))
    for selector, style, value in (
        ("body", "backgroundColor", "rgb(255, 255, 255)"),
        ("td", "color", "rgb(27, 27, 27)"),
        ("svg.marks", "filter", "none"),
    ):
        wait_for(value, lambda name=(selector, style): script(STYLE, *name))
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 5 <= pages <= 30
    assert (
        sum(len(zlib.decompress(part)) for part in re.findall(rb"stream\r?\n(x.*?)endstream", pdf, re.DOTALL)[:3])
        > 1000
    )


@pytest.mark.slow
def test_hostile_names(browser, opened, tmp_path):
    names = [EVIL, "x" * 300, "a\nb", "<img src=x onerror=alert(1)>"]
    files = [
        examples.contamination(tmp_path / "c.parquet", names=names, groups=names),
        examples.enrichment(tmp_path / "e.tsv"),
        examples.probabilities(tmp_path / "p.tsv"),
    ]
    write_report(files, tmp_path / "r.html", grouping=Grouping(name=["", names[3], EVIL]))
    script = opened(tmp_path / "r.html", 400)
    assert script(COLUMN, "contamination_1_individuals", "individual") == [EVIL, "x" * 300, "a\ufffdb", names[3]]
    assert script("return document.querySelectorAll('img, td b').length") == 0
    assert script(SIDEWAYS) == [400, 0]
    assert errors(browser) == []
