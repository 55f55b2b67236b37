"""Reference pages made from the code: the commands with their options, and the public names of the package."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer
from typer.models import ArgumentInfo, OptionInfo

import hpcvdj
from hpcvdj.cli import common_options, program
from hpcvdj.cli.helping import filled_in

VALUE_NAMES = {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "PATH"}
"""How the value of an option is called, by its type, unless the option has a metavar."""


def pages() -> dict[str, str]:
    """The Markdown of each page, by its path on the site."""
    return {"reference/commands.md": commands(), "reference/python.md": python()}


def commands() -> str:
    """The page of all commands."""
    lines = [
        "# Commands",
        "",
        "What `hpcvdj COMMAND --help` prints. Results go to the named file, a short summary to stdout, log and "
        "progress to stderr. See also the [exit codes](../cluster.md#5-exit-codes).",
        "",
        "A table may be `-`: an input is then read from standard input; an output, as TSV, goes to standard output, "
        "and the summary to stderr.",
        "",
        "Options of `hpcvdj` itself; `--quiet` and `--verbose` may also come after the name of the command:",
        "",
        *_parameter_table(common_options, OptionInfo),
    ]
    lines += _commands("hpcvdj", program(), 2)
    return filled_in("\n".join(lines)) + "\n"


def _commands(prefix: str, application: typer.Typer, level: int) -> list[str]:
    """The sections of an application's commands and groups, with headings of `level`."""
    lines = []
    for command in application.registered_commands:
        if command.callback is not None and not command.hidden:
            name = command.name or command.callback.__name__.replace("_", "-")
            lines += _command(f"{prefix} {name}", command.callback, level)
    for group in application.registered_groups:
        if group.typer_instance is not None:
            name, inner = f"{prefix} {group.name}", group.typer_instance
            lines += ["#" * level + f" {name}", "", str(inner.info.help), "", *_commands(name, inner, level + 1)]
    return lines


def _command(name: str, function: Callable[..., Any], level: int) -> list[str]:
    arguments = [_value(parameter, kind, info) for parameter, kind, info in _parameters(function, ArgumentInfo)]
    lines = ["#" * level + f" {name}", ""]
    for paragraph in inspect.cleandoc(function.__doc__ or "").split("\n\n"):
        example = paragraph.removeprefix("Example: ")
        if example != paragraph:
            paragraph = f"```sh\n{' '.join(example.split())}\n```"
        lines += [paragraph, ""]
    lines += ["```text", " ".join([name, *arguments, "[OPTIONS]"]), "```", ""]
    return lines + _parameter_table(function, ArgumentInfo) + _parameter_table(function, OptionInfo)


def _parameters(function: Callable[..., Any], info_type: type) -> Iterator[tuple[inspect.Parameter, Any, Any]]:
    """Each parameter whose typer information is an `info_type`: the parameter, its type, and the information."""
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        kind, *extras = hints[parameter.name], parameter.default
        if typing.get_origin(kind) is typing.Annotated:
            kind, *extras = typing.get_args(kind)
        for info in extras:
            if isinstance(info, info_type):
                yield parameter, _value_type(kind), info


def _value_type(kind: Any) -> Any:
    """The type of a single value: Path for `list[Path]` and for `Path | None`."""
    if typing.get_origin(kind) in (list, types.UnionType, typing.Union):
        return _value_type(next(inner for inner in typing.get_args(kind) if inner is not type(None)))
    return kind


def _parameter_table(function: Callable[..., Any], info_type: type) -> list[str]:
    """The table of a command's arguments or of its options; empty if it has none."""
    rows = []
    for parameter, kind, info in _parameters(function, info_type):
        value = _value(parameter, kind, info)
        if info_type is ArgumentInfo:
            rows.append(f"| `{value}` | {_cell(info.help)} |")
        else:
            names = ", ".join(f"`{name}`" for name in _names(parameter, info))
            values = "" if kind is bool else f"`{value.replace('|', '`, `')}`{_limits(info)}"
            rows.append(f"| {names} | {values} | {_default(parameter, info)} | {_cell(info.help)} |")
    if not rows:
        return []
    if info_type is ArgumentInfo:
        return ["| argument | |", "|---|---|", *rows, ""]
    return ["| option | value | default | |", "|---|---|---|---|", *rows, ""]


def _names(parameter: inspect.Parameter, info: Any) -> list[str]:
    """An option's names, the longest first."""
    names = list(info.param_decls or ())
    if parameter.default is not info and isinstance(info.default, str):
        names.append(info.default)  # In an annotation, the first argument of typer.Option is a name, not the default.
    names = [name for pair in names for name in pair.split("/")]  # --selection/--no-selection
    return sorted(names or [f"--{parameter.name.replace('_', '-')}"], key=len, reverse=True)


def _value(parameter: inspect.Parameter, kind: Any, info: Any) -> str:
    """What stands for the value in the usage line: its metavar, its choices, or a word for its type."""
    if info.metavar:
        return str(info.metavar)
    if typing.get_origin(kind) is typing.Literal:
        return "|".join(map(str, typing.get_args(kind)))
    if isinstance(info, ArgumentInfo):
        return parameter.name.upper()
    return VALUE_NAMES.get(kind, parameter.name.upper())


def _limits(info: Any) -> str:
    if info.max is not None:
        return f", {info.min or 0:,} to {info.max:,}"
    return f", at least {info.min:,}" if info.min is not None else ""


def _default(parameter: inspect.Parameter, info: Any) -> str:
    default = parameter.default
    if default is info:  # the form `parameter = typer.Option(default)`
        default = info.default
    if isinstance(info.show_default, str):
        return f"`{info.show_default}`" if re.fullmatch(r"[\w.-]+", info.show_default) else _cell(info.show_default)
    if default is inspect.Parameter.empty or default is ...:
        return "required"
    if default is None or default is False:
        return ""
    return f"`{default}`"


def _cell(text: str | None) -> str:
    """Text for one cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|")


def python() -> str:
    """The page of the package's public names, which mkdocstrings fills."""
    lines = [
        "# Python",
        "",
        "The public names of the package, imported as `hpcvdj.NAME`. [From Python](../api.md) shows how to use them. "
        "Anything else may change between versions.",
        "",
    ]
    for name in hpcvdj.__all__:
        if not name.startswith("__"):
            lines += [f"::: hpcvdj.{hpcvdj._HOMES[name].replace(':', '.').rstrip('.')}", "    options:"]
            lines += ["      heading_level: 2", f"      heading: hpcvdj.{name}", f"      toc_label: hpcvdj.{name}", ""]
    return "\n".join(lines) + "\n"
