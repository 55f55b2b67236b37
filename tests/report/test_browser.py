"""The page in a browser: no error, no sideways scrolling, tables and controls that work by keyboard, dark mode,
print."""

import base64
import re
import shutil
import time
import zlib

import pytest

from hpcvdj.reports.page import write_report
from hpcvdj.reports.settings import ReportSettings
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
    # Search: the letters that are typed into the box of the page.
    search = browser.find_element("id", "search")
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
    saved = browser.folder / f"{table}.tsv"
    # That of another test.
    saved.unlink(missing_ok=True)
    press(browser, KEYS["enter"])
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
        "return [...document.querySelectorAll('#theme, nav, .search, .dt-buttons, .dt-length, .vega-embed "
        "summary')].every(each => !each.checkVisibility())"
    )
    wait_for(True, lambda: script(hidden))
    # The names that are folded in cells are no tables that are folded.
    assert script("return [...document.querySelectorAll('td details')].every(each => each.checkVisibility())")
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


def test_one_box_searches_all_tables(browser, opened, whole):
    """Also tables that are opened later; it says how many rows there are, and where there are none."""
    page, path, _ = whole
    script = opened(path)
    assert len(browser.find_elements("css selector", "input[type=search]:not(thead *)")) == 1
    browser.find_element("id", "search").send_keys("donor3 donor4")

    def found(table):
        own = [" ".join(str(cell) for cell in row.values()) for row in page.rows(table)]
        return [row for row in own if "donor3" in row and "donor4" in row]

    open_tables = script("return [...document.querySelectorAll('main > section table')].map(each => each.id)")
    tables = [name for name in page.data["tables"] if name in open_tables and found(name)]
    shown = script("return jQuery.fn.dataTable.tables().map(each => each.id)")
    tables = [name for name in tables if name in shown]
    rows = sum(len(found(name)) for name in tables)
    assert rows > 0
    wait_for(f"{rows} rows in {len(tables)} tables", lambda: script("return document.getElementById('matches').value"))
    # DataTables makes the body anew when it searches.
    wait_for("no rows", lambda: script("return document.querySelector('#files_table tbody')?.textContent.trim()"))
    fold = next(each for each in browser.find_elements("css selector", "section > details > summary")
                if each.text == "Table: Rates of pairs of individuals")  # fmt: skip
    fold.click()
    wait_for(
        len(found("contamination_1_rates")),
        lambda: len(script(COLUMN, "contamination_1_rates", "individual 1") or []),
    )
    assert errors(browser) == []


def test_individuals_are_folded_and_found(browser, opened, tmp_path):
    """The first two of many are shown; all are searched, opened by a key, and downloaded."""
    for path in browser.folder.iterdir():
        path.unlink()
    names = [f"person{k}" for k in range(1, 10)]
    path = examples.sharing(tmp_path / "s.tsv", names, ["x"] * 9, hits=8)
    write_report([path], tmp_path / "r.html")
    script = opened(tmp_path / "r.html")
    table = "sharing_1_sequences"
    cells = script(COLUMN, table, "which individuals")
    assert cells[:2] == ["person1, person2", "person1, person2, person3"]
    assert cells[7] == "9: person1, person2 + 7" + ", ".join(names[2:])
    rest = "return [...document.querySelectorAll('td details')].map(each => each.open)"
    assert script(rest) == [False] * 6
    summary = browser.find_element("css selector", "td summary")
    script("arguments[0].focus()", summary)
    press(browser, KEYS["enter"])
    wait_for([True] + [False] * 5, lambda: script(rest))
    browser.find_element("id", "search").send_keys("person8")
    wait_for(2, lambda: len(script(COLUMN, table, "which individuals")))
    script(f"document.getElementById('{table}').closest('.dt-container').querySelector('.dt-buttons button').click()")
    saved = browser.folder / f"{table}.tsv"
    wait_for(True, lambda: saved.exists() and ", ".join(names) in saved.read_text())
    assert errors(browser) == []


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A page of many samples with many genes, long names and long junctions."""
    folder = tmp_path_factory.mktemp("wide")
    names = [f"a donor with a long name, number {k}".replace(",", "") for k in range(50)]
    files = [
        examples.contamination(folder / "c.tsv", names, ["x", "y"] * 25),
        examples.sharing(folder / "s.tsv", names, ["x", "y"] * 25, hits=20),
        examples.probabilities(folder / "p.tsv", rows=400, samples=names),
        examples.expansion(folder / "x.tsv"), examples.annotation(folder / "a"), examples.enrichment(folder / "e.tsv"),
    ]  # fmt: skip
    write_report(files, folder / "r.html")
    return folder / "r.html"


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1400])
def test_figures_have_the_width_of_the_page(browser, opened, wide, width):
    """None is clipped, or shrunk so that its letters are; those alone in a row have all of it."""
    script = opened(wide, width)
    assert script(SIDEWAYS) == [width, 0]
    assert script(UNFITTING) == []
    drawn = dict(script(SIZES))
    assert all(scale > 0.99 for _, _, scale, _ in drawn.values()), drawn
    content = script("return document.querySelector('main').clientWidth")
    for name in ("network", "overview", "lengths", "annotate_qq", "contamination_1_heatmap"):
        assert drawn[name][0] == pytest.approx(content, abs=2), name
    # Figures in columns leave no column empty.
    for section in script(COLUMNS):
        assert section == pytest.approx(content, abs=2)
    # A window that changes its width draws them again.
    size = {"width": 800, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    content = script("return document.querySelector('main').clientWidth")
    wait_for(content, lambda: round(dict(script(SIZES))["network"][1]))
    wait_for([], lambda: script(UNFITTING))
    assert errors(browser) == []


SIZES = """
return [...document.querySelectorAll("figure")].map(figure => {
  const svg = figure.querySelector("svg.marks"), { width } = svg.getBoundingClientRect();
  return [figure.id, [figure.clientWidth, width, width / svg.viewBox.baseVal.width, figure.className]];
});
"""
"""Of each figure: its width, that of its drawing, and how much the drawing is shrunk."""

COLUMNS = """
return [...document.querySelectorAll(".figures")].map(grid => {
  const sides = [...grid.children].map(each => each.getBoundingClientRect());
  return Math.max(...sides.map(({ right }) => right)) - Math.min(...sides.map(({ left }) => left));
});
"""
"""Of each group of figures, from the left of the first to the right of the last one."""


@pytest.mark.slow
def test_junctions_are_whole_on_paper(browser, opened, wide):
    """On A4 and letter paper, a junction is in one line, and no table is wider than the paper."""
    script = opened(wide)
    for fold in browser.find_elements("css selector", "section > details > summary"):
        fold.click()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    # 210 mm less the margins, in CSS pixels.
    size = {"width": 717, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    lines = """
    return [...document.querySelectorAll("td.code")].filter(cell => cell.textContent.trim() && cell.checkVisibility())
      .map(cell => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getClientRects().length;
      });
    """
    wait(lambda: len(script(lines)) > 20)
    assert set(script(lines)) == {1}
    over = """
    return [...document.querySelectorAll(".dt-layout-table .dt-layout-cell")].filter(each => each.checkVisibility())
      .filter(each => each.querySelector("table").getBoundingClientRect().right > document.body.clientWidth + 1)
      .map(each => `${each.ariaLabel}: ${each.querySelector("table").getBoundingClientRect().width}`);
    """
    assert script(over) == []


@pytest.mark.slow
def test_hostile_names(browser, opened, tmp_path):
    names = [EVIL, "x" * 300, "a\nb", "<img src=x onerror=alert(1)>"]
    files = [
        examples.contamination(tmp_path / "c.parquet", names=names, groups=names),
        examples.enrichment(tmp_path / "e.tsv"),
        examples.probabilities(tmp_path / "p.tsv"),
    ]
    write_report(files, tmp_path / "r.html", settings=ReportSettings(name=["", names[3], EVIL]))
    script = opened(tmp_path / "r.html", 400)
    assert script(COLUMN, "contamination_1_individuals", "individual") == [EVIL, "x" * 300, "a\ufffdb", names[3]]
    assert script("return document.querySelectorAll('img, td b').length") == 0
    assert script(SIDEWAYS) == [400, 0]
    assert errors(browser) == []
