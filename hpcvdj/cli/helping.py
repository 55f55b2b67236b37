"""The help of a command: what most people need, then the rest; descriptions get the width."""

import re
import shutil
from itertools import groupby
from textwrap import wrap
from typing import Any

NEEDED, MORE = "Options", "More options"
"""The two parts; options without a part are needed."""

WIDEST = 110

ONE_COLUMN = 70
"""In fewer columns, a description begins below the names of its option."""


def print_help(command: Any, ctx: Any) -> None:
    """Print usage, description, arguments and options of a command, and the commands of a group."""
    from rich.console import Console

    width = min(shutil.get_terminal_size().columns, WIDEST)
    console = Console(width=width, highlight=False, soft_wrap=True)
    usage = _BRACED.sub(r"\1", command.get_usage(ctx))
    console.print(f"[bold]{usage.replace('[', chr(92) + '[')}[/bold]")
    for block in (command.help or "").split("\n\n"):
        console.print("\n" + "\n".join(wrap(" ".join(block.split()), width, break_on_hyphens=False)), markup=False)
    described = [(_part(parameter), parameter.get_help_record(ctx)) for parameter in command.get_params(ctx)]
    shown = [(part, record) for part, record in described if record is not None]
    for part, records in groupby(sorted(shown, key=lambda item: _PARTS.index(item[0])), lambda item: item[0]):
        console.print(f"\n[bold]{part}[/bold]")
        for _, (names, description) in records:
            text = _DEFAULT.sub(r"default: \1\2", " ".join(description.split()))
            _print_record(console, names, _LIMITS.sub("", text), width)

    for panel, names in _commands(command, ctx).items():
        console.print(f"\n[bold]{panel}[/bold]")
        for name, description in names:
            _print_record(console, name, description, width)
    if command.epilog:
        console.print(f"\n{command.epilog}", markup=False)


def _commands(group: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """The names and descriptions of a group's commands, by their panels; of a command none."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for name in group.list_commands(ctx) if hasattr(group, "list_commands") else ():
        own = group.get_command(ctx, name)
        panel = own.rich_help_panel if isinstance(own.rich_help_panel, str) else "Commands"
        panels.setdefault(panel, []).append((name, own.get_short_help_str(limit=300)))
    return panels


_PARTS = ("Arguments", NEEDED, MORE)


def _part(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return _PARTS[0]
    return MORE if parameter.rich_help_panel == MORE else NEEDED


_DEFAULT = re.compile(r"default: \((.*)\)([;\]])")
_TYPE = re.compile(r" <(\w+)(?:\[\w+\])?(?: range)?>")
_BRACED = re.compile(r"\{([A-Z][\w.]*)\}")
"""An argument that is needed, as click shows it."""

_LIMITS = re.compile(r"(; )?\d+<=x<=\d{10,}| \[\d+<=x<=\d{10,}\]")
"""Limits of a number that nobody meets."""

_VALUES = {"int": "N", "float": "X", "str": "TEXT", "Path": "PATH"}
"""What stands for a value of a type."""


def _print_record(console: Any, names: str, description: str, width: int) -> None:
    from rich.text import Text

    indent = 28 if width >= WIDEST else 22 if width >= ONE_COLUMN else 6
    names = _TYPE.sub(lambda found: f" {_VALUES.get(found[1], '')}".rstrip(), _BRACED.sub(r"\1", names))
    lines = wrap(description, width - indent, break_on_hyphens=False)
    beside = len(names) + 4 <= indent
    first = f"  {names}".ljust(indent) if beside else f"  {names}"
    console.print(Text(first, style="cyan") + Text(lines.pop(0) if beside and lines else ""))
    for line in lines:
        console.print(" " * indent + line, markup=False)
