"""Charts of the tables of a report, in Vega-Lite; a chart refers to its tables by name."""

import json
from functools import cache
from importlib import resources
from textwrap import wrap
from typing import Any

import vl_convert

from hpcvdj.reports.elements import Chart, Figure, PageTable

VEGA_LITE = "6.1"
"""The version of Vega-Lite, as major.minor."""

CONFIG: dict[str, Any] = json.loads(resources.files("hpcvdj.reports").joinpath("templates/figures.json").read_text())
"""The look of all figures: fonts, colours, sizes."""

MOST_COLOURS = 8
"""If there are more samples or groups than this, their lines have one colour, and the tooltip has their names."""

NARROW = 20
"""A heat map with more columns than this does not fit beside other figures."""

_WIDEST, _STEP = 1080, 14
"""Pixels: the most for all cells of a heat map, which leaves room for its labels on the page; the side of a cell."""

_WHITE = "#ffffff"
_LOG = {"type": "log"}
_EXPONENTS = {"grid": False, "format": ".0e", "labelOverlap": True}
"""An axis of powers of ten."""


def heatmap(table: PageTable, x: str, y: str, key: str, orders: tuple[list[Any], list[str]]) -> Chart:
    """A heat map of the column `key` by `x` and `y`, on a logarithmic scale; grey where it is 0.

    orders  of the values of `x` and of `y`

    The axis of `x` has a title if `x` is a number.
    """
    axis: dict[str, Any] = {"labelAngle": -90, "labelOverlap": True}
    title = None
    if table.column(x).kind == "number":
        axis |= {"format": ".0e", "formatType": "number"}
        title = table.column(x).title
    positive = [value for record in table.records() if isinstance(value := record[key], int | float) and value > 0]
    least, most = min(positive, default=1), max(positive, default=1)
    scale = {"type": "log", "domain": [least, most] if least < most else [most / 2, most], "nice": False}
    colour = _column(table, key, scale=scale, legend={"format": ".3~g"})
    cells = _of(
        table, {"type": "rect", "stroke": _WHITE, "strokeWidth": 0.5},
        x=_nominal(x, title=title, sort=orders[0], scale={"domain": orders[0]}, axis=axis),
        y=_nominal(y, sort=orders[1]),
        color={"condition": {"test": f"datum.{key} > 0", **colour}, "value": "#d4d4d4"},
    )  # fmt: skip
    return {**cells, "width": {"step": min(_STEP, _WIDEST / max(1, len(orders[0])))}, "height": {"step": _STEP}}


def lines(table: PageTable, x: str, y: str, *, log_x: bool = False) -> Chart:
    """The column `y` by `x`: a line for each sample, in the colour of its group or of the sample."""
    axis = _EXPONENTS if log_x else {"grid": False}
    scale = {**_LOG, "nice": False} if log_x else {"zero": False, "nice": False, "padding": 4}
    return _of(
        table, {"type": "line", "point": {"size": 14}, "strokeWidth": 1.5, "opacity": 0.8},
        x=_column(table, x, scale=scale, axis=axis), y=_column(table, y), **_by_sample(table),
    )  # fmt: skip


def spectrum(table: PageTable) -> Chart:
    """Sequences by the number of individuals that have them: observed as points, expected as lines with a band."""
    x, y = _individuals(), _number("number", "sequences", scale=_LOG)
    colour = _nominal("series", sort=None, legend={"symbolOpacity": 1})
    dashes = _nominal("series", sort=None, legend=None)
    low = _number("low", "sequences", scale=_LOG)
    return _layers(
        _of(table, {"type": "area", "opacity": 0.25}, "datum.number > 0", "datum.low > 0",
            x=x, y=low, y2={"field": "high"}, color=colour),
        _of(table, {"type": "line", "strokeWidth": 1.5}, "datum.number > 0", "datum.series != 'observed'",
            x=x, y=y, color=colour, strokeDash=dashes),
        _of(table, {"type": "point", "filled": True, "size": 45, "opacity": 1}, "datum.number > 0",
            "datum.series == 'observed'", x=x, y=y, color=colour),
    )  # fmt: skip


def ratio(table: PageTable) -> Chart:
    """Observed over expected sequences by the number of individuals, with the band of the expectation."""
    x = _individuals()
    y, low = (_number(key, "observed / expected", scale=_LOG) for key in ("ratio", "low"))
    return _layers(
        _of(table, {"type": "area", "opacity": 0.25}, x=x, y=low, y2={"field": "high"}),
        _of(table, {"type": "point", "filled": True, "size": 45, "opacity": 1}, "datum.ratio > 0", x=x, y=y),
        _plain(table, {"type": "rule", "strokeDash": [4, 3]}, y={"datum": 1, "scale": _LOG}),
    )


def _individuals() -> Chart:
    """The numbers of individuals as the horizontal axis."""
    return _number("n_individuals", "individuals", axis={"tickMinStep": 1, "grid": False})


def carry_over(table: PageTable) -> Chart:
    """The share of clones that another individual has, by their reads."""
    order = list(dict.fromkeys(str(record["reads of the clone"]) for record in table.records()))
    reads = {"field": "reads of the clone", "type": "ordinal", "sort": order, "axis": {"labelAngle": 0}}
    chart = _of(
        table, {"type": "line", "point": True, "strokeWidth": 1.5}, "datum.rate > 0",
        x=reads, y=_column(table, "rate", scale=_LOG), color=_nominal("series", sort=None),
    )  # fmt: skip
    return {**chart, "width": {"step": 52}}


def roc(table: PageTable) -> Chart:
    """True by false positive rates of predictors."""
    curves = _of(
        table, {"type": "line", "strokeWidth": 1.5, "interpolate": "step-after"},
        x=_column(table, "false"), y=_column(table, "true"),
        color=_nominal("predictor", sort=None, legend={"labelLimit": 400}),
    )  # fmt: skip
    return {**_layers(_dashed(table, x=_number("false"), y=_number("false")), curves), "width": 260, "height": 260}


def quantiles(table: PageTable) -> Chart:
    """−log10 of observed p-values by that of expected ones, with the band that holds without any effect."""
    x, y = _column(table, "expected", axis={"grid": False}), _column(table, "observed")
    return _layers(
        _of(table, {"type": "area", "opacity": 0.3, "color": "#888888"}, x=x, y=_number("low", y["title"]),
            y2={"field": "high"}),
        _dashed(table, x=_number("expected"), y=_number("expected")),
        _of(table, {"type": "line", "point": {"size": 14}, "strokeWidth": 1.2}, x=x, y=y, **_by_sample(table)),
    )  # fmt: skip


def shares(cells: PageTable, hits: PageTable | None = None) -> Chart:
    """Shares of reads after by those before: circles for all clonotypes, points for hits, a line for no change."""
    scale = {**_LOG, "nice": False, "padding": 6}
    x, y = (_column(cells, key, scale=scale, axis=_EXPONENTS) for key in ("share_before", "share_after"))
    size = _number("clonotypes", scale={**_LOG, "range": [6, 160]}, legend={"columns": 4})
    layers = [
        _of(cells, {"type": "circle", "color": "#8a8a8a", "opacity": 0.7}, without=("unchanged",), x=x, y=y, size=size),
        _dashed(cells, x=x, y=_number("unchanged", y["title"], scale=scale)),
    ]
    if hits is not None:
        layers.append(_of(hits, {"type": "point", "filled": True, "size": 40, "opacity": 0.9}, x=x, y=y))
    return _layers(*layers)


def network(nodes: PageTable, edges: PageTable) -> Chart:
    """Clonotypes as circles, with lines between those that differ in at most one residue."""
    x, y = (_number(key, axis=None, scale={"zero": False, "padding": 12}) for key in "xy")
    rules = _plain(edges, {"type": "rule", "color": "#8a8a8a", "strokeWidth": 0.8}, x=x, y=y, x2={"field": "x2"},
                   y2={"field": "y2"})  # fmt: skip
    circles = _of(
        nodes, {"type": "circle", "opacity": 0.9, "stroke": _WHITE, "strokeWidth": 0.5}, without=("x", "y", "colour"),
        x=x, y=y, size=_number("excess", nodes.column("excess").title, scale={**_LOG, "range": [30, 420]}),
        color=_nominal("colour", title="V gene", sort=None, legend={"columns": 4}),
    )  # fmt: skip
    return {**_layers(rules, circles), "width": 560, "height": 420}


@cache
def bundle() -> str:
    """The JavaScript of Vega, Vega-Lite and Vega-Embed."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)


def svg(*figures: Figure) -> bytes:
    return vl_convert.vegalite_to_svg(_picture(figures), vl_version=VEGA_LITE).encode()


def png(*figures: Figure) -> bytes:
    return vl_convert.vegalite_to_png(_picture(figures), vl_version=VEGA_LITE, scale=2.5)


def _picture(figures: tuple[Figure, ...]) -> str:
    """Figures on white as JSON, with their data; several are side by side below their captions."""
    datasets = {table.name: table.records() for figure in figures for table in figure.tables}
    spec: Chart
    if not figures:
        spec = {"data": {"values": [{}]}, "mark": {"type": "text", "text": "There is nothing to draw."}}
    elif len(figures) == 1:
        spec = figures[0].spec
    else:
        titled = [{**figure.spec, "title": {"text": wrap(figure.caption, 60), "anchor": "start"}} for figure in figures]
        resolve = {"scale": dict.fromkeys(("color", "size", "strokeDash"), "independent")}
        spec = {"hconcat": titled, "spacing": 40, "resolve": resolve}
    config = {**CONFIG, "background": _WHITE, "title": {"fontSize": 11, "fontWeight": "normal"}}
    return json.dumps({**spec, "datasets": datasets, "config": config})


def _plain(table: PageTable, mark: Chart, *filters: str, **encoding: Any) -> Chart:
    """A chart of a table: marks of the rows that pass the filters."""
    chosen: Chart = {"transform": [{"filter": text} for text in filters]} if filters else {}
    return {"data": {"name": table.name}, **chosen, "mark": mark, "encoding": encoding}


def _of(table: PageTable, mark: Chart, *filters: str, without: tuple[str, ...] = (), **encoding: Any) -> Chart:
    """A chart of a table, with its columns in the tooltip."""
    tooltip = [
        _column(table, column.key, **({"format": ",.4~g"} if column.kind == "number" else {}))
        for column in table.columns if column.key not in without
    ]  # fmt: skip
    return _plain(table, mark, *filters, **encoding, tooltip=tooltip)


def _dashed(table: PageTable, **encoding: Any) -> Chart:
    """A dashed line."""
    return _plain(table, {"type": "line", "color": "#5c5c5c", "strokeDash": [4, 3]}, **encoding)


def _layers(*charts: Chart) -> Chart:
    return {"layer": list(charts)}


def _column(table: PageTable, key: str, **options: Any) -> Chart:
    """A column as a channel, with its title."""
    column = table.column(key)
    kind = _number if column.kind == "number" else _nominal
    return kind(key, column.title, **options)


def _number(field: str, title: str | None = None, **options: Any) -> Chart:
    """A channel of numbers."""
    return {"field": field, "type": "quantitative", **({} if title is None else {"title": title}), **options}


def _nominal(field: str, title: str | None = None, **options: Any) -> Chart:
    """A channel of names."""
    return {"field": field, "type": "nominal", "title": title, **options}


def _by_sample(table: PageTable) -> dict[str, Any]:
    """A line for each sample, in the colour of its group, or else of the sample; in one colour if there are many."""
    encoding: dict[str, Any] = {"detail": {"field": "sample", "type": "nominal"}}
    for key in ("group", "sample"):
        names = list(dict.fromkeys(row.get(key) for row in table.records()))
        if len(names) > 1:
            coloured = {"color": _nominal(key, sort=list(map(str, names)))} if len(names) <= MOST_COLOURS else {}
            return {**encoding, **coloured}
    return encoding
