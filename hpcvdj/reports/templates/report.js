"use strict";
// Dark or light: as the reader's system, until the button says otherwise.
const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
const useTheme = on => { root.dataset.theme = on ? "dark" : "light"; };
useTheme(dark.matches);
dark.addEventListener("change", () => useTheme(dark.matches));
document.getElementById("theme").addEventListener("click", () => useTheme(root.dataset.theme !== "dark"));

// The data of a chart are the rows of its table.
const numeric = text => (text === "–" ? null : Number(text.replaceAll(",", "")));
function records(table) {
  const heads = [...table.tHead.rows[0].cells];
  const value = (head, text) => (head.classList.contains("number") ? numeric(text) : text);
  return [...table.tBodies[0].rows].map(row =>
    Object.fromEntries(heads.map((head, k) => [head.dataset.key, value(head, row.cells[k].textContent)])));
}
async function draw() {
  const config = JSON.parse(document.getElementById("config").textContent);
  for (const figure of document.querySelectorAll("figure")) {
    const chart = figure.querySelector(".chart");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    spec.datasets = { [chart.dataset.table]: records(document.getElementById(chart.dataset.table)) };
    if (spec.facet) {
      figure.classList.add("wide");
      spec.columns = Math.max(1, Math.floor(figure.clientWidth / 370));
    }
    config.view.continuousWidth = spec.facet ? 270 : figure.clientWidth - 80;
    await vegaEmbed(chart, spec, {
      mode: "vega-lite", renderer: "svg", config, downloadFileName: figure.id,
      actions: { export: true, source: false, compiled: false, editor: false },
    }).catch(error => { chart.textContent = `This figure cannot be drawn (${error.message}).`; });
    Object.assign(chart.querySelector("summary") ?? {}, { ariaLabel: "Save this figure", title: "Save this figure" });
  }
  root.dataset.drawn = "yes";
}

// Tables can be searched, filtered by column, sorted and downloaded.
function make(tag, properties, parent) {
  const element = Object.assign(document.createElement(tag), properties);
  parent.append(element);
  return element;
}
function matches(text, filter, number) {
  const range = number && filter.match(/^([<>]=?|=)?\s*([\d.]+)$/);
  if (!range) return text.toLowerCase().includes(filter.toLowerCase());
  const value = numeric(text), limit = Number(range[2]);
  if (value === null) return false;
  return { "<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit }[range[1]] ?? value === limit;
}
function addTools(table) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const name = table.caption.textContent;
  const tools = document.createElement("div");
  tools.className = "tools";
  table.parentElement.before(tools);
  const search = make("input", { type: "search", placeholder: "Search", ariaLabel: `Search in: ${name}` }, tools);
  const toggle = make("button", { type: "button", textContent: "Filter columns", ariaExpanded: "false" }, tools);
  const save = make("button", { type: "button", textContent: "Download" }, tools);
  const shown = make("span", { role: "status" }, tools);
  const filters = heads.map(head => {
    const title = head.textContent, number = head.classList.contains("number");
    head.textContent = "";
    head.dataset.title = title;
    const sort = make("button", { type: "button", textContent: title, title: "Sort" }, head);
    sort.addEventListener("click", () => order(head));
    return make("input", { placeholder: number ? "> 10" : "text", ariaLabel: `Filter by: ${title}` }, head);
  });
  function order(head) {
    const k = heads.indexOf(head), number = head.classList.contains("number");
    // Numbers start with the largest.
    const down = head.ariaSort ? head.ariaSort === "ascending" : number;
    for (const other of heads) other.removeAttribute("aria-sort");
    head.ariaSort = down ? "descending" : "ascending";
    const key = row => row.cells[k].textContent;
    const compare = number
      ? (a, b) => (numeric(key(a)) ?? -Infinity) - (numeric(key(b)) ?? -Infinity)
      : (a, b) => key(a).localeCompare(key(b), undefined, { numeric: true });
    body.append(...rows.sort((a, b) => (down ? compare(b, a) : compare(a, b))));
  }
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/);
    const columns = [...filters.entries()].filter(([, input]) => input.value.trim());
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(words.every(word => text.includes(word)) && columns.every(([k, input]) =>
        matches(row.cells[k].textContent, input.value.trim(), heads[k].classList.contains("number"))));
    }
    shown.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length} rows`;
  }
  for (const input of [search, ...filters]) input.addEventListener("input", filter);
  toggle.addEventListener("click", () => { toggle.ariaExpanded = String(table.classList.toggle("filters")); });
  save.addEventListener("click", () => {
    const cells = row => [...row.cells].map((cell, k) =>
      heads[k].classList.contains("number") ? numeric(cell.textContent) ?? "" : cell.textContent);
    const titles = heads.map(head => head.dataset.title);
    const lines = [titles, ...rows.filter(row => !row.hidden).map(cells)].map(line => line.join("\t"));
    const url = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/tab-separated-values" }));
    make("a", { href: url, download: `${table.id}.tsv` }, tools).click();
    tools.lastChild.remove();
  });
  filter();
}
draw();
for (const table of document.querySelectorAll("table.sortable")) addTools(table);
