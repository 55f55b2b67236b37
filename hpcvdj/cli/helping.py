"""The help of a command: what most people need; with --help-all everything; descriptions get the width."""

import re
import shutil
from itertools import groupby
from textwrap import wrap
from typing import Any

NEEDED, MORE = "Options", "More options"
"""The two parts; options without a part are needed."""

WIDEST = 110

WIDE, ONE_COLUMN = 100, 70
"""From the first number of columns on, names of options have more room; in fewer than the second, a description begins
below the names of its option."""


def print_help(command: Any, ctx: Any, *, everything: bool = False) -> None:
    """Print usage, description, arguments and options of a command, and the commands of a group.

    everything  describe also what few people need: it is named only otherwise
    """
    from rich.console import Console

    width = min(shutil.get_terminal_size().columns, WIDEST)
    console = Console(width=width, highlight=False, soft_wrap=True)
    usage = _BRACED.sub(r"\1", command.get_usage(ctx))
    console.print(f"[bold]{usage.replace('[', chr(92) + '[')}[/bold]")
    first, *further = (command.help or "").split("\n\n")
    for block in [first, *(own for own in further if everything or own.startswith("Example"))]:
        console.print("\n" + "\n".join(wrap(" ".join(block.split()), width, break_on_hyphens=False)), markup=False)
    described = [(_part(parameter), parameter) for parameter in command.get_params(ctx)]
    shown = [(part, parameter) for part, parameter in described if parameter.get_help_record(ctx) is not None]
    for part, parameters in groupby(sorted(shown, key=lambda item: _PARTS.index(item[0])), lambda item: item[0]):
        console.print(f"\n[bold]{part}[/bold]")
        if part == MORE and not everything:
            names = ", ".join(max(parameter.opts, key=len) for _, parameter in parameters)
            for line in wrap(f"{names}: see {ctx.command_path} --help-all", width - 2, break_on_hyphens=False):
                console.print(f"  {line}", markup=False)
            continue
        for _, parameter in parameters:
            names, description = parameter.get_help_record(ctx)
            text = _DEFAULT.sub(r"default: \1]", " ".join(description.split())).replace(" [required]", "")
            _print_record(console, names, text, width)

    for panel, commands in _commands(command, ctx).items():
        console.print(f"\n[bold]{panel}[/bold]")
        for name, description in commands:
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
    return MORE if parameter.rich_help_panel == MORE or parameter.name == "help" else NEEDED


_DEFAULT = re.compile(r"default: \((.*)\)\]")
_TYPE = re.compile(r" <(\w+)(?:\[\w+\])?(?: range)?>")
_BRACED = re.compile(r"\{([A-Z][\w.]*)\}")
"""An argument that is needed, as click shows it."""

_VALUES = {"int": "N", "float": "X", "str": "TEXT", "Path": "PATH"}
"""What stands for a value of a type."""


def _print_record(console: Any, names: str, description: str, width: int) -> None:
    from rich.text import Text

    indent = 28 if width >= WIDE else 22 if width >= ONE_COLUMN else 6
    names = re.sub(
        r"<(.*)>", r"\1", _TYPE.sub(lambda found: f" {_VALUES.get(found[1], '')}".rstrip(), _BRACED.sub(r"\1", names))
    )
    lines = wrap(description, width - indent, break_on_hyphens=False)
    beside = len(names) + 4 <= indent
    first = f"  {names}".ljust(indent) if beside else f"  {names}"
    console.print(Text(first, style="cyan") + Text(lines.pop(0) if beside and lines else ""))
    for line in lines:
        console.print(" " * indent + line, markup=False)
