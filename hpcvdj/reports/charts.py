"""Charts of the tables of a report, in Altair; a chart refers to its tables by name."""

import json
from functools import cache
from importlib import resources
from textwrap import wrap
from typing import Any

import altair as alt
import vl_convert

from hpcvdj.reports.elements import Figure, PageTable

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
"""The version of Vega-Lite that Altair writes, as major.minor."""

CONFIG: dict[str, Any] = json.loads(resources.files("hpcvdj.reports").joinpath("templates/figures.json").read_text())
"""The look of all figures: fonts, colours, sizes."""

MOST_COLOURS = 8
"""If there are more samples or groups than this, their lines have one colour, and the tooltip has their names."""

NARROW = 20
"""A heat map with more columns than this does not fit beside other figures."""

_WIDEST, _STEP = 1080, 14
"""Pixels: the most for all cells of a heat map, which leaves room for its labels on the page; the side of a cell."""

_WHITE = "#ffffff"
_LOG = alt.Scale(type="log")


def heatmap(table: PageTable, x: str, y: str, key: str, orders: tuple[list[Any], list[str]]) -> Any:
    """A heat map of the column `key` by `x` and `y`, on a logarithmic scale; grey where it is 0.

    orders  of the values of `x` and of `y`

    The axis of `x` has a title if `x` is a number.
    """
    column = table.column(x)
    axis: dict[str, Any] = {"labelAngle": -90, "labelOverlap": True}
    title = None
    if column.kind == "number":
        axis |= {"format": ".0e", "formatType": "number"}
        title = column.title
    cells = _of(table, width=alt.Step(min(_STEP, _WIDEST / max(1, len(orders[0])))), height=alt.Step(_STEP)).mark_rect(
        stroke=_WHITE, strokeWidth=0.5
    )
    positive = [value for record in table.records() if isinstance(value := record[key], int | float) and value > 0]
    least, most = min(positive, default=1), max(positive, default=1)
    scale = alt.Scale(type="log", domain=[least, most] if least < most else [most / 2, most], nice=False)
    return cells.encode(
        x=alt.X(f"{x}:N", title=title, sort=orders[0], scale=alt.Scale(domain=orders[0]), axis=axis),
        y=alt.Y(f"{y}:N", title=None, sort=orders[1]),
        color=alt.condition(
            f"datum.{key} > 0", _column(alt.Color, table, key, scale=scale, legend=alt.Legend(format=".3~g")),
            alt.value("#d4d4d4"),
        ),
    )  # fmt: skip


def lines(table: PageTable, x: str, y: str, *, log_x: bool = False) -> Any:
    """The column `y` by `x`: a line for each sample, in the colour of its group or of the sample."""
    axis = alt.Axis(grid=False, format=".0e", labelOverlap=True) if log_x else alt.Axis(grid=False)
    scale = alt.Scale(type="log", nice=False) if log_x else alt.Scale(zero=False, nice=False, padding=4)
    chart = _of(table).mark_line(point=alt.OverlayMarkDef(size=14), strokeWidth=1.5, opacity=0.8)
    return chart.encode(
        _column(alt.X, table, x, scale=scale, axis=axis), _column(alt.Y, table, y), alt.Detail("sample:N"),
        *_colours(table),
    )  # fmt: skip


def spectrum(table: PageTable) -> Any:
    """Sequences by the number of individuals that have them: observed as points, expected as lines with a band."""
    base = _of(table).transform_filter("datum.number > 0")
    x, y = _individuals(), alt.Y("number:Q", title="sequences", scale=_LOG)
    colour = alt.Color("series:N", title=None, sort=None, legend=alt.Legend(symbolOpacity=1))
    band = base.transform_filter("datum.low > 0").mark_area(opacity=0.25).encode(
        x=x, y=alt.Y("low:Q", scale=_LOG, title="sequences"), y2="high:Q", color=colour
    )  # fmt: skip
    expected = base.transform_filter("datum.series != 'observed'").mark_line(strokeWidth=1.5)
    observed = base.transform_filter("datum.series == 'observed'").mark_point(filled=True, size=45, opacity=1)
    dashes = alt.StrokeDash("series:N", sort=None, legend=None)
    return alt.layer(
        band, expected.encode(x=x, y=y, color=colour, strokeDash=dashes), observed.encode(x=x, y=y, color=colour)
    )


def ratio(table: PageTable) -> Any:
    """Observed over expected sequences by the number of individuals, with the band of the expectation."""
    base, x = _of(table), _individuals()
    y, low = (alt.Y(f"{key}:Q", title="observed / expected", scale=_LOG) for key in ("ratio", "low"))
    return alt.layer(
        base.mark_area(opacity=0.25).encode(x=x, y=low, y2="high:Q"),
        base.transform_filter("datum.ratio > 0").mark_point(filled=True, size=45, opacity=1).encode(x=x, y=y),
        alt.Chart(alt.NamedData(table.name)).mark_rule(strokeDash=[4, 3]).encode(y=alt.YDatum(1, scale=_LOG)),
    )  # fmt: skip


def _individuals() -> Any:
    """The numbers of individuals as the horizontal axis."""
    return alt.X("n_individuals:Q", title="individuals", axis=alt.Axis(tickMinStep=1, grid=False))


def carry_over(table: PageTable) -> Any:
    """The share of clones that another individual has, by their reads."""
    order = list(dict.fromkeys(str(record["reads of the clone"]) for record in table.records()))
    base = _of(table, width=alt.Step(52)).transform_filter("datum.rate > 0")
    return base.mark_line(point=True, strokeWidth=1.5).encode(
        x=alt.X("reads of the clone:O", sort=order, axis=alt.Axis(labelAngle=0)),
        y=_column(alt.Y, table, "rate", scale=_LOG), color=alt.Color("series:N", title=None, sort=None),
    )  # fmt: skip


def roc(table: PageTable) -> Any:
    """True by false positive rates of predictors."""
    curves = _of(table, width=260, height=260).mark_line(strokeWidth=1.5, interpolate="step-after")
    color = alt.Color("predictor:N", title=None, sort=None, legend=alt.Legend(labelLimit=400))
    return alt.layer(
        _dashed(table).encode(x="false:Q", y="false:Q"),
        curves.encode(_column(alt.X, table, "false"), _column(alt.Y, table, "true"), color),
    )


def quantiles(table: PageTable) -> Any:
    """−log10 of observed p-values by that of expected ones, with the band that holds without any effect."""
    base = _of(table)
    x = _column(alt.X, table, "expected", axis=alt.Axis(grid=False))
    y = _column(alt.Y, table, "observed")
    band = base.mark_area(opacity=0.3, color="#888888").encode(
        x=x, y=alt.Y("low:Q", title=table.column("observed").title), y2="high:Q"
    )
    points = base.mark_line(point=alt.OverlayMarkDef(size=14), strokeWidth=1.2)
    return alt.layer(
        band, _dashed(table).encode(x="expected:Q", y="expected:Q"),
        points.encode(x, y, alt.Detail("sample:N"), *_colours(table)),
    )  # fmt: skip


def _dashed(table: PageTable) -> Any:
    """A dashed line, of which only the axes are missing."""
    return alt.Chart(alt.NamedData(table.name)).mark_line(color="#5c5c5c", strokeDash=[4, 3])


def shares(cells: PageTable, hits: PageTable | None = None) -> Any:
    """Shares of reads after by those before: circles for all clonotypes, points for hits, a line for no change."""
    axis = alt.Axis(grid=False, format=".0e", labelOverlap=True)
    scale = alt.Scale(type="log", nice=False, padding=6)
    x = _column(alt.X, cells, "share_before", scale=scale, axis=axis)
    y = _column(alt.Y, cells, "share_after", scale=scale, axis=axis)
    size = alt.Size("clonotypes:Q", scale=alt.Scale(type="log", range=[6, 160]), legend=alt.Legend(columns=4))
    same = alt.Y("unchanged:Q", title=cells.column("share_after").title, scale=scale)
    layers = [
        _of(cells, without=("unchanged",)).mark_circle(color="#8a8a8a", opacity=0.7).encode(x, y, size),
        _dashed(cells).encode(x, same),
    ]
    if hits is not None:
        layers.append(_of(hits).mark_point(filled=True, size=40, opacity=0.9).encode(x, y))
    return alt.layer(*layers)


def network(nodes: PageTable, edges: PageTable) -> Any:
    """Clonotypes as circles, with lines between those that differ in at most one residue."""
    position: dict[str, Any] = {"axis": None, "scale": alt.Scale(zero=False, padding=12)}
    x, y = alt.X("x:Q", **position), alt.Y("y:Q", **position)
    rules = alt.Chart(alt.NamedData(edges.name)).mark_rule(color="#8a8a8a", strokeWidth=0.8)
    circles = _of(nodes, without=("x", "y", "colour")).mark_circle(opacity=0.9, stroke=_WHITE, strokeWidth=0.5)
    size = alt.Size("excess:Q", title=nodes.column("excess").title, scale=alt.Scale(type="log", range=[30, 420]))
    colour = alt.Color("colour:N", title="V gene", sort=None, legend=alt.Legend(columns=4))
    return alt.layer(
        rules.encode(x=x, y=y, x2="x2:Q", y2="y2:Q"), circles.encode(x=x, y=y, size=size, color=colour)
    ).properties(width=560, height=420)  # fmt: skip


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
    spec: dict[str, Any]
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


def _of(table: PageTable, *, without: tuple[str, ...] = (), **size: Any) -> alt.Chart:
    """A chart of a table, with its columns in the tooltip."""
    tooltip = [_column(alt.Tooltip, table, column.key) for column in table.columns if column.key not in without]
    return alt.Chart(alt.NamedData(table.name), **size).encode(tooltip=tooltip)


def _column(channel: Any, table: PageTable, key: str, **options: Any) -> Any:
    """A column as a channel, such as `alt.X`, with its title."""
    column = table.column(key)
    if column.kind == "number" and channel is alt.Tooltip:
        options["format"] = ",.4~g"
    return channel(f"{key}:{'Q' if column.kind == 'number' else 'N'}", title=column.title, **options)


def _colours(table: PageTable) -> list[Any]:
    """The channel that gives lines the colour of their group, or else of their sample; none if there are many."""
    for key in ("group", "sample"):
        names = list(dict.fromkeys(row.get(key) for row in table.records()))
        if len(names) > 1:
            return [alt.Color(f"{key}:N", title=None, sort=list(map(str, names)))] if len(names) <= MOST_COLOURS else []
    return []
