"""Charts of the tables of a report, in Altair: the data of a chart is a table, by its name.

Several results are panels beside each other, or lines in one panel.  Axes of numbers of pathways are logarithmic,
with a place for no pathway before 1.
"""

import json
import math
from functools import cache
from importlib import resources
from typing import Any, Literal

import altair as alt
import vl_convert

from hpcvdj.reports.elements import Figure, Table

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
"""The version of Vega-Lite that Altair writes."""

CONFIG: dict[str, Any] = json.loads(resources.files("hpcvdj.reports").joinpath("templates/figures.json").read_text())
"""What all figures look like: fonts, colours, sizes."""

_INK, _WHITE = "#1b1b1b", "#ffffff"
_PARTS = {"V": "#9ecae9", "D": "#ffbf79", "J": "#9fd8c1", "n": _WHITE}
_LOG = alt.Scale(type="log")
_FIT = alt.Scale(zero=False, nice=False)
_NO_PATHWAY = -0.8
_BINS = {
    "start": "datum.low > 0 ? log(datum.low) / LN10 : -1",
    "stop": "datum.low > 0 ? log(datum.high + 1) / LN10 : -0.6",
}
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def pairs(table: Table, key: str, v: list[str], j: list[str]) -> Any:
    """A heatmap of the column `key` by V and J gene, in these orders; grey where it is 0."""
    cells = _of(table, width=alt.Step(15), height=alt.Step(15)).mark_rect(stroke=_WHITE, strokeWidth=0.5)
    cells = cells.encode(
        x=alt.X("j:N", title=None, sort=j, axis=alt.Axis(labelAngle=-90)),
        y=alt.Y("v:N", title=None, sort=v),
        color=alt.condition(f"datum.{key} > 0", _column(alt.Color, table, key, scale=_LOG), alt.value("#d4d4d4")),
    )
    return _panels(cells, table, x="independent", y="independent")


def distribution(table: Table) -> Any:
    """The share of junctions in each bin of numbers of pathways."""
    bars = _of(table).transform_calculate(**_BINS).mark_bar(stroke=_WHITE, strokeWidth=0.5)
    x = alt.X("start:Q", **_pathways(table))
    return _panels(bars.encode(x=x, x2="stop:Q", y=_column(alt.Y, table, "share"), y2=alt.Y2Datum(0)), table)


def lengths(table: Table) -> Any:
    """The share of junctions of each CDR3 length."""
    x = _column(alt.X, table, "size", scale=alt.Scale(zero=False, nice=False, padding=4), axis=alt.Axis(grid=False))
    return _panels(_of(table).mark_bar(width=3).encode(x=x, y=_column(alt.Y, table, "share")), table)


def lines(table: Table, key: str, scale: Literal["linear", "log"] = "linear") -> Any:
    """The column `key` by n-length: a line with points for each result."""
    chart = _of(table).transform_filter(f"datum.{key} > 0 || '{scale}' != 'log'")
    return chart.mark_line(point=True, strokeWidth=1.5).encode(
        _column(alt.X, table, "n", axis=alt.Axis(tickMinStep=1, grid=False)),
        _column(alt.Y, table, key, scale=alt.Scale(type=scale), axis=alt.Axis(tickCount=4)),
        *(channel("result:N", sort=None, title=None) for channel in (alt.Color, alt.StrokeDash) if _several(table)),
    )


def spread(table: Table, key: str) -> Any:
    """A heatmap of the histograms of numbers of pathways at each value of `key`, with circles for the medians."""
    own = _of(table)
    cells = own.transform_calculate(**_BINS, left=f"datum.{key} - 0.5", right=f"datum.{key} + 0.5").mark_rect()
    circles = (
        own.transform_aggregate(median="min(median)", share="sum(share)", groupby=[key])
        .transform_filter("datum.share >= 0.1")
        .transform_calculate(height=f"datum.median > 0 ? log(datum.median) / LN10 : {_NO_PATHWAY}")
        .mark_point(filled=True, fill=_WHITE, stroke=_INK, strokeWidth=1, size=20, opacity=1)
    )
    x = alt.X("left:Q", title=table.column(key).title, scale=_FIT, axis=alt.Axis(grid=False))
    y = alt.Y("start:Q", **_pathways(table))
    layers = (
        cells.encode(x=x, x2="right:Q", y=y, y2="stop:Q", color=_column(alt.Color, table, "share", scale=_LOG)),
        circles.encode(x=f"{key}:Q", y="height:Q", tooltip=_column(alt.Tooltip, table, "median")),
    )
    return _panels(alt.layer(*layers), table)


def top_junctions(table: Table, keys: list[str], most: int) -> Any:
    """A heatmap of the pathways of the first `most` junctions by n-length: the columns `keys`."""
    cells = (
        _of(table, width=alt.Step(22), height=alt.Step(18))
        .transform_filter(f"datum.rank <= {most}")
        .transform_calculate(label="datum.rank + '  ' + datum.aa")
        .transform_fold(list(keys), as_=["n", "count"])
        .transform_filter("datum.count > 0")
        .mark_rect(stroke=_WHITE, strokeWidth=0.5)
    )
    axis = alt.Axis(labelAngle=0, labelExpr="replace(datum.label, 'n=', '')")
    cells = cells.encode(
        x=alt.X("n:N", title="n-nucleotides", scale=alt.Scale(domain=keys), axis=axis),
        y=alt.Y("label:N", title=None, sort=alt.EncodingSortField("rank")),
        color=alt.Color("count:Q", title="pathways", scale=_LOG),
    )
    return _panels(cells, table, y="independent")


def alignment(table: Table, cdr3: str) -> Any:
    """The letters of a CDR3, once for each line of the table, in the colours of the parts that they come from."""
    lines = alt.Chart(alt.NamedData(table.name), width=alt.Step(13), height=alt.Step(20))
    lines = lines.transform_aggregate(pathways="sum(pathways)", groupby=["line", "track"])
    lines = lines.encode(y=alt.Y("line:O", title=None, axis=alt.Axis(domain=False, ticks=False)))
    letters = (
        lines.transform_calculate(
            base=f"split('{cdr3}', '')", form="split(datum.track, '')", place="sequence(1, length(datum.track) + 1)"
        )
        .transform_flatten(["base", "form", "place"])
        .transform_calculate(part="datum.form == 'n' ? 'n' : upper(datum.form)")
    )
    places = alt.Axis(orient="top", values=[1, *range(10, len(cdr3) + 1, 10)], domain=False, labelAngle=0)
    letters = letters.encode(x=alt.X("place:O", title=None, axis=places))
    label = "datum.label + (datum.label == 'n' ? '-nucleotide' : '')"
    legend = alt.Legend(columns=4, labelExpr=label, symbolStrokeColor=_INK, symbolStrokeWidth=0.5)
    parts = alt.Scale(domain=list(_PARTS), range=list(_PARTS.values()))
    colour = alt.Color("part:N", title=None, legend=legend, scale=parts)
    return alt.layer(
        letters.mark_rect(stroke=_WHITE, strokeWidth=0.5).encode(color=colour),
        letters.transform_filter("datum.form == 'n'").mark_rect(filled=False, stroke=_INK, strokeWidth=0.7),
        letters.mark_text(font="DejaVu Sans Mono, Menlo, Consolas, monospace", fontSize=11).encode(text="base:N"),
        letters.transform_filter("datum.form != datum.part")
        .mark_tick(orient="horizontal", thickness=2, yOffset=8, color=_INK),
        lines.transform_calculate(count="'× ' + format(datum.pathways, ',')")
        .mark_text(align="left", dx=6).encode(x=alt.value("width"), text="count:N"),
    )  # fmt: skip


@cache
def bundle() -> str:
    """The JavaScript of Vega, Vega-Lite and Vega-Embed."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)


def svg(figure: Figure) -> bytes:
    return vl_convert.vegalite_to_svg(_whole(figure), vl_version=VEGA_LITE).encode()


def png(figure: Figure) -> bytes:
    return vl_convert.vegalite_to_png(_whole(figure), vl_version=VEGA_LITE, scale=2.5)


def _whole(figure: Figure) -> str:
    """The figure on white, with its data, as JSON."""
    config = {**CONFIG, "background": _WHITE}
    return json.dumps({**figure.spec, "datasets": {figure.table.name: figure.table.records()}, "config": config})


def _of(table: Table, **size: Any) -> alt.Chart:
    """A chart of a table, with all columns in the tooltip."""
    tooltip = [_column(alt.Tooltip, table, column.key) for column in table.columns]
    return alt.Chart(alt.NamedData(table.name), **size).encode(tooltip=tooltip)


def _column(channel: Any, table: Table, key: str, **options: Any) -> Any:
    """A column as a channel, with its title."""
    column = table.column(key)
    if column.kind == "number" and channel is alt.Tooltip:
        options["format"] = ","
    return channel(f"{key}:{'Q' if column.kind == 'number' else 'N'}", title=column.title, **options)


def _several(table: Table) -> bool:
    return table.columns[0].key == "result"


def _panels(chart: Any, table: Table, **scales: Any) -> Any:
    """A panel for each result, if there are several; `scales` says which are not the same for all."""
    if not _several(table):
        return chart
    names = list(dict.fromkeys(str(row[0]) for row in table.rows))
    return chart.facet(alt.Facet("result:N", title=None, sort=names), columns=3).resolve_scale(**scales)


def _pathways(table: Table) -> dict[str, Any]:
    """The axis of numbers of pathways, to the end of the last bin: powers of ten, and no pathway."""
    end = max([1.0, *(math.log10(record["high"] + 1) for record in table.records())])
    powers = range(int(end) + 1)
    labels = [f"{10**power:,}" if power < 4 else f"10{str(power).translate(_SUPERSCRIPTS)}" for power in powers]
    text = f"datum.value < 0 ? 'none' : {labels}[datum.value]"
    axis = alt.Axis(values=[_NO_PATHWAY, *powers], labelExpr=text, grid=False, labelOverlap=False)
    return {"axis": axis, "scale": alt.Scale(domain=[-1, end], nice=False), "title": "pathways of a junction"}
