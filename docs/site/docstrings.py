"""The house's docstrings as Markdown, which would join their lists of parameters: columns of plain text."""

from __future__ import annotations

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^(\w+(?:, \w+)*)  +(\S.*)$")
"""A parameter, or several, and behind two blanks or more what it is."""


class Columns(griffe.Extension):
    """Turns every column list of a docstring into a Markdown list, and doctests into code blocks."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text: str) -> str:
    """A docstring's text as Markdown."""
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
            out += ([] if in_list else [""]) + [
                f"- {', '.join(f'`{name}`' for name in entry.group(1).split(', '))}: {entry.group(2)}"
            ]
            in_list = True
        elif in_list and line.startswith("  "):
            out.append("    " + line.strip())
        else:
            in_list = False
            out.append(line)
    if in_code:
        out.append("```")
    return "\n".join(out)
