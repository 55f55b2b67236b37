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

const records = ({ columns, rows }) => rows.map(row => Object.fromEntries(columns.map(({ key }, k) => [key, row[k]])));
async function draw() {
  for (const figure of document.querySelectorAll("figure")) {
    const chart = figure.querySelector(".chart"), spec = specs[figure.id];
    spec.datasets = Object.fromEntries(chart.dataset.tables.trim().split(" ").map(name => [name, records(tables[name])]));
    config.view.continuousWidth = Math.max(200, figure.clientWidth - 80);
    // A figure of a fixed width, the network, gets narrower on a narrow screen.
    if (typeof spec.width === "number") spec.width = Math.min(spec.width, chart.clientWidth - 10);
    await vegaEmbed(chart, spec, {
      mode: "vega-lite", renderer: "svg", config, downloadFileName: figure.id,
      actions: { export: true, source: false, compiled: false, editor: false },
    }).catch(error => { chart.textContent = `This figure cannot be drawn (${error.message}).`; });
    Object.assign(chart.querySelector("summary") ?? {}, { ariaLabel: "Save this figure", title: "Save this figure" });
  }
}

// Texts come from users' files: they are never read as HTML.
const escaped = text => text.replace(/[&<>"]/g, letter => `&#${letter.charCodeAt(0)};`);
function shown(value) {
  if (value === null) return "–";
  if (typeof value === "string") return escaped(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1000 ? Math.round(value).toLocaleString("en") : size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}
function make(table) {
  const { columns, rows } = tables[table.id], caption = table.caption.textContent;
  const made = jQuery(table).DataTable({
    data: rows, order: [], deferRender: true, autoWidth: false, titleRow: 0, pageLength: 10, lengthMenu: [10, 50, 200, 1000],
    columns: columns.map(({ kind }) => ({
      className: kind, type: kind === "number" ? "num" : "string",
      render: (value, purpose) => (purpose === "display" ? shown(value) : value ?? ""),
      orderSequence: kind === "number" ? ["desc", "asc"] : ["asc", "desc"],
    })),
    columnControl: [{ target: 1, content: ["search"] }],
    ordering: { indicators: true, handler: true },
    language: { search: "Search", lengthMenu: "Rows: _MENU_", emptyTable: "no rows" },
    buttons: [{
      extend: "csvHtml5", text: "Download", filename: table.id, extension: ".tsv", fieldSeparator: "\t", fieldBoundary: "",
      bom: false, header: false, footer: false, exportOptions: { orthogonal: "export", stripHtml: false, decodeEntities: false },
      customize: text => `${columns.map(({ title }) => title).join("\t")}\n${text}`.trimEnd() + "\n",
    }],
    layout: { topStart: rows.length > 10 ? ["pageLength", "buttons"] : "buttons", topEnd: "search", bottomStart: "info",
      bottomEnd: rows.length > 10 ? "paging" : null },
  });
  const box = made.table().container();
  Object.assign(box.querySelector(".dt-layout-table .dt-layout-cell"), { tabIndex: 0, role: "region", ariaLabel: caption });
  box.querySelector("input[type=search]").ariaLabel = `Search in: ${caption}`;
  const second = box.querySelectorAll("thead tr")[1];
  for (const [k, { title }] of columns.entries())
    for (const field of second?.cells[k]?.querySelectorAll("input, select") ?? []) field.ariaLabel = `Filter by: ${title}`;
}
for (const table of document.querySelectorAll("main > section > table")) make(table);
// Folded tables are made when they are opened.
for (const fold of document.querySelectorAll("main details")) {
  fold.addEventListener("toggle", () => make(fold.querySelector("table")), { once: true });
}
await draw();
root.dataset.drawn = "yes";
