"""A figure with the words that say what it shows; as a file, and as an element of a page."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from hpcvdj.report.figures.style import style


@dataclass(frozen=True)
class Drawing:
    """A figure: its file's name, its words for those who do not see it, its caption, and itself."""

    name: str
    alt: str
    caption: str
    figure: Figure
    wide: bool = False


def svg_file(figure: Figure) -> bytes:
    """The figure as an SVG file, the same bytes from the same numbers."""
    stream = io.BytesIO()
    nothing: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with style():
        figure.savefig(stream, format="svg", metadata=nothing)
    return stream.getvalue()


def png_file(figure: Figure) -> bytes:
    """The figure as a PNG file of 200 dots to the inch."""
    stream = io.BytesIO()
    with style():
        figure.savefig(stream, format="png", dpi=200)
    return stream.getvalue()


_ATTRIBUTE = re.compile(r'<[^<>"]*(?:"[^"]*"[^<>"]*)*>')

_ID = re.compile(r'(\bid="|href="#|url\(#)')


def inline_svg(figure: Figure, prefix: str) -> str:
    """The figure as an element for a page: no prolog, no namespaces, ids that no other figure has."""
    text = svg_file(figure).decode()
    text = text[text.index("<svg") :]
    text = _ATTRIBUTE.sub(lambda tag: _ID.sub(lambda match: f"{match[1]}{prefix}-", tag[0]), text)
    head, end, rest = text.partition(">")
    width, height = figure.get_size_inches()
    head = (
        f'<svg viewBox="0 0 {72 * width:g} {72 * height:g}" width="{96 * width:.0f}" height="{96 * height:.0f}" '
        'aria-hidden="true" focusable="false"'
    )
    return head + end + rest.replace("xlink:href", "href")
