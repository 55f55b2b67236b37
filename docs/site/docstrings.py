"""Docstrings as Markdown: lists of parameters, which are columns of plain text, become Markdown lists."""

from __future__ import annotations

import inspect
import re
from pkgutil import resolve_name
from typing import Any

import griffe

ENTRY = re.compile(r"^(\w+(?:, \w+)*)  +(\S.*)$")
"""One or several parameter names, two or more spaces, and their meaning."""


class Columns(griffe.Extension):
    """Converts the docstring of every object that griffe reads."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace the object's docstring by its Markdown."""
        if obj.docstring:
            text = obj.docstring.value
            if obj.is_function and obj.path.startswith("hpcvdj.api."):
                # Descriptions that functions share are put in when the module is imported.
                function = resolve_name(obj.path)
                text = inspect.getdoc(function) or text
                # So are the parameters that settings declare.
                obj.parameters = griffe.Parameters(*map(parameter, inspect.signature(function).parameters.values()))
            obj.docstring.value = markdown(text)


def parameter(own: inspect.Parameter) -> griffe.Parameter:
    """A parameter as griffe reads it from source."""
    required, any_type = own.default is own.empty, own.annotation is own.empty
    return griffe.Parameter(
        own.name, annotation=None if any_type else inspect.formatannotation(own.annotation),
        kind=griffe.ParameterKind(own.kind.description), default=None if required else repr(own.default),
    )  # fmt: skip


def markdown(text: str) -> str:
    """A docstring as Markdown: parameter columns as a list, doctests as code blocks."""
    out: list[str] = []
    in_list = in_code = False
    for line in text.splitlines():
        entry = ENTRY.match(line)
        if in_code and not line.strip():
            out.append("```")
            in_code = False
        elif not in_code and line.startswith(">>> "):
            out.append("```pycon")
            in_code = True
        if in_code:
            out.append(line)
        elif entry:
            names = ", ".join(f"`{name}`" for name in entry.group(1).split(", "))
            out += [] if in_list else [""]
            out.append(f"- {names}: {entry.group(2)}")
            in_list = True
        elif in_list and line.startswith("  "):
            out.append("    " + line.strip())
        else:
            in_list = False
            out.append(line)
    if in_code:
        out.append("```")
    return "\n".join(out)
