"""The help of a command: the options that most users need, or all options with --help-all."""

import shutil
from itertools import groupby
from textwrap import fill
from typing import Any

NEEDED, MORE = "Options", "More options"
"""The two parts of the help.  Options without a part belong to the first."""

WIDEST = 110

WIDE, ONE_COLUMN = 100, 70
"""From WIDE columns on, the names of options have more room.  With fewer columns than ONE_COLUMN, a description begins
below the names of its option."""


def print_help(command: Any, ctx: Any, *, everything: bool = False) -> None:
    """Print usage, description, arguments and options of a command, and the commands of a group.

    everything  describe also the options that few users need; otherwise the help only names them
    """
    from rich.console import Console

    width = min(shutil.get_terminal_size().columns, WIDEST)
    console = Console(width=width, highlight=False, markup=False, soft_wrap=True)
    console.print(command.get_usage(ctx), style="bold")
    first, *further = filled_in(command.help or "").split("\n\n")
    for block in [first, *(block for block in further if everything or block.startswith("Example"))]:
        console.print(f"\n{fill(' '.join(block.split()), width, break_on_hyphens=False)}")
    described = [parameter for parameter in command.get_params(ctx) if not getattr(parameter, "hidden", False)]
    # A group of commands has no --help-all.
    everything = everything or not any("--help-all" in parameter.opts for parameter in described)
    for part, parameters in groupby(sorted(described, key=lambda parameter: _PARTS.index(_part(parameter))), _part):
        console.print(f"\n{part}", style="bold")
        if part == MORE and not everything:
            names = ", ".join(max(parameter.opts, key=len) for parameter in parameters)
            text = f"{names}: see {ctx.command_path} --help-all"
            console.print(fill(text, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
            continue
        for parameter in parameters:
            _print_record(console, _names(parameter), _description(parameter), width)

    for panel, commands in _commands(command, ctx).items():
        console.print(f"\n{panel}", style="bold")
        for name, description in commands:
            _print_record(console, name, description, width)
    if command.epilog:
        console.print(f"\n{command.epilog}")


def filled_in(text: str) -> str:
    """Fill in a help text: for `{tables}` the endings of input tables, whose module is slow to import."""
    if "{tables}" in text:
        from hpcvdj.repertoires.readers import table_suffixes

        text = text.replace("{tables}", ", ".join(f"*{suffix}" for suffix in table_suffixes()))
    return text


def _commands(group: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Return the names and descriptions of a group's commands, by panel; empty for a command."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for name in group.list_commands(ctx) if hasattr(group, "list_commands") else ():
        command = group.get_command(ctx, name)
        panel = command.rich_help_panel if isinstance(command.rich_help_panel, str) else "Commands"
        panels.setdefault(panel, []).append((name, command.get_short_help_str(limit=300)))
    return panels


_PARTS = ("Arguments", NEEDED, MORE)


def _part(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return _PARTS[0]
    return MORE if parameter.rich_help_panel == MORE or parameter.name == "help" else NEEDED


def _names(parameter: Any) -> str:
    """Return the names of a parameter: `-o, --output OUT`, `--selection / --no-selection`, `JUNCTIONS`."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    flags = (", ".join(sorted(names, key=len)) for names in (parameter.opts, parameter.secondary_opts) if names)
    return " / ".join(flags) + f" {parameter.metavar}" * (not parameter.is_flag)


def _description(parameter: Any) -> str:
    default = getattr(parameter, "show_default", None)
    return " ".join(filled_in(parameter.help or "").split()) + f" [default: {default}]" * isinstance(default, str)


def _print_record(console: Any, names: str, description: str, width: int) -> None:
    from rich.text import Text

    margin = " " * (28 if width >= WIDE else 22 if width >= ONE_COLUMN else 6)
    first = f"  {names}"
    begin = first.ljust(len(margin)) if len(first) + 2 <= len(margin) else f"{first}\n{margin}"
    text = fill(description, width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
    console.print(Text(begin, style="cyan") + Text(text.lstrip()))
