// Dark or light: as the reader's system, until the button says otherwise.
const root = document.documentElement, theme = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
function useTheme(on) {
  root.dataset.theme = on ? "dark" : "light";
  root.classList.toggle("dark", on); // for DataTables
  theme.ariaPressed = String(on);
}
useTheme(dark.matches);
dark.addEventListener("change", () => useTheme(dark.matches));
theme.addEventListener("click", () => useTheme(root.dataset.theme !== "dark"));

const { config, specs, tables } = JSON.parse(document.getElementById("data").textContent);

// On paper, two figures are beside each other, or one has the whole width.
const PRINTED = { half: 330, whole: 700 };
const views = new Map();
const available = figure => figure.querySelector(".chart").clientWidth;

const records = ({ columns, rows }) => rows.map(row => Object.fromEntries(columns.map(({ key }, k) => [key, row[k]])));
async function draw() {
  for (const figure of document.querySelectorAll("figure")) {
    const chart = figure.querySelector(".chart"), spec = specs[figure.id];
    spec.datasets = Object.fromEntries(chart.dataset.tables.trim().split(" ").map(name => [name, records(tables[name])]));
    // Labels and legends are within the width. Cells of heat maps need no more than twice their size in pictures.
    const widest = spec.width?.step ? Math.max(480, spec.encoding.x.sort.length * 2 * spec.width.step + 240) : Infinity;
    if (spec.height?.step) spec.height = spec.encoding.y.sort.length * spec.height.step;
    const width = () => Math.min(widest, available(figure));
    spec.autosize = { type: "fit-x", contains: "padding" };
    spec.width = width();
    config.axis.labelLimit = Math.min(160, spec.width * 0.35);
    config.legend.labelLimit = Math.min(220, spec.width - config.axis.labelLimit - 40);
    config.legend.gradientLength = Math.min(200, config.legend.labelLimit - 20);
    config.view.continuousHeight = Math.min(340, Math.max(210, spec.width * 0.3));
    const drawn = await vegaEmbed(chart, spec, {
      mode: "vega-lite", renderer: "svg", config, downloadFileName: figure.id,
      actions: { export: true, source: false, compiled: false, editor: false },
    }).catch(error => { chart.textContent = `This figure cannot be drawn (${error.message}).`; });
    if (drawn) views.set(figure, { view: drawn.view, width });
    Object.assign(chart.querySelector("summary") ?? {}, { ariaLabel: "Save this figure", title: "Save this figure" });
  }
}

function fit(widthOf) {
  for (const [figure, { view, width }] of views) view.width(widthOf(figure, width)).run();
}
addEventListener("beforeprint", () => fit(figure => PRINTED[figure.classList.contains("wide") ? "whole" : "half"]));
addEventListener("afterprint", () => fit((figure, width) => width()));
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => fit((figure, width) => width()), 150);
});

// Texts come from users' files: they are never read as HTML.
const escaped = text => text.replace(/[&<>"]/g, letter => `&#${letter.charCodeAt(0)};`);
function shown(value) {
  if (value === null) return "–";
  if (typeof value === "string") return escaped(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1000 ? Math.round(value).toLocaleString("en") : size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}
function folded(value) {
  const names = value?.split(", ") ?? [];
  if (names.length < 4) return shown(value);
  const [first, rest] = [names.slice(0, 2), names.slice(2)].map(part => escaped(part.join(", ")));
  return `<details><summary>${names.length}: ${first} + ${names.length - 2}</summary>${rest}</details>`;
}

// One box searches all tables, also folded ones, once they are opened.
const search = document.getElementById("search"), matches = document.getElementById("matches"), grids = [];
function find() {
  for (const grid of grids) grid.search(search.value).draw();
  const rows = grids.map(grid => grid.page.info().recordsDisplay).filter(Boolean);
  matches.value = search.value && `${rows.reduce((sum, more) => sum + more, 0).toLocaleString("en")} rows in ${rows.length} tables`;
}
let typed;
search.addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(find, 200);
});

function make(table) {
  const { columns, rows } = tables[table.id], caption = table.caption.textContent;
  const made = jQuery(table).DataTable({
    data: rows, order: [], deferRender: true, autoWidth: false, titleRow: 0, pageLength: 10, lengthMenu: [10, 50, 200, 1000],
    columns: columns.map(({ kind }) => ({
      className: kind, type: kind === "number" ? "num" : "string",
      render: (value, purpose) => (purpose !== "display" ? value ?? "" : kind === "names" ? folded(value) : shown(value)),
      orderSequence: kind === "number" ? ["desc", "asc"] : ["asc", "desc"],
    })),
    columnControl: [{ target: 1, content: ["search"] }],
    ordering: { indicators: true, handler: true },
    language: { lengthMenu: "Rows: _MENU_", emptyTable: "no rows", zeroRecords: "no rows" },
    buttons: [{
      extend: "csvHtml5", text: "Download", filename: table.id, extension: ".tsv", fieldSeparator: "\t", fieldBoundary: "",
      bom: false, header: false, footer: false, exportOptions: { orthogonal: "export", stripHtml: false, decodeEntities: false },
      customize: text => `${columns.map(({ title }) => title).join("\t")}\n${text}`.trimEnd() + "\n",
    }],
    layout: { topStart: rows.length > 10 ? ["pageLength", "buttons"] : "buttons", topEnd: null, bottomStart: "info",
      bottomEnd: rows.length > 10 ? "paging" : null },
  });
  const box = made.table().container();
  Object.assign(box.querySelector(".dt-layout-table .dt-layout-cell"), { tabIndex: 0, role: "region", ariaLabel: caption });
  const second = box.querySelectorAll("thead tr")[1];
  for (const [k, { title }] of columns.entries())
    for (const field of second?.cells[k]?.querySelectorAll("input, select") ?? []) field.ariaLabel = `Filter by: ${title}`;
  grids.push(made);
  if (search.value) find();
}
for (const table of document.querySelectorAll("main > section > table")) make(table);
// Folded tables are made when they are opened.
for (const fold of document.querySelectorAll("main > section > details")) {
  fold.addEventListener("toggle", () => make(fold.querySelector("table")), { once: true });
}
await draw();
root.dataset.drawn = "yes";
