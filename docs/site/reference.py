"""Reference pages made from the code when the site is built: the commands, and the names of the package."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer
from typer.models import ArgumentInfo, OptionInfo

import hpcvdj
from hpcvdj.cli import app, options

NAMED = {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "PATH"}
"""What stands for a value whose option does not name it."""


def pages() -> dict[str, str]:
    """The text of each page by its path on the site."""
    return {"reference/commands.md": commands(), "reference/python.md": python()}


def commands() -> str:
    lines = [
        "# Commands",
        "",
        "Made from the program itself: what `hpcvdj COMMAND --help` says. Results go to the named file, a short "
        "summary to stdout, log and progress to stderr; [exit codes](../cluster.md#5-exit-codes).",
        "",
        "Options of `hpcvdj` itself stand before the command's name:",
        "",
        *_parameters(options, OptionInfo),
    ]
    lines += _commands("hpcvdj", app, 2)
    return "\n".join(lines) + "\n"


def _commands(prefix: str, application: typer.Typer, level: int) -> list[str]:
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
    arguments = [_metavar(parameter, kind, info) for parameter, kind, info in _declared(function, ArgumentInfo)]
    lines = ["#" * level + f" {name}", ""]
    for paragraph in inspect.cleandoc(function.__doc__ or "").split("\n\n"):
        example = paragraph.removeprefix("Example: ")
        if example != paragraph:
            paragraph = f"```sh\n{' '.join(example.split())}\n```"
        lines += [paragraph, ""]
    lines += ["```text", " ".join([name, *arguments, "[OPTIONS]"]), "```", ""]
    return lines + _parameters(function, ArgumentInfo) + _parameters(function, OptionInfo)


def _declared(function: Callable[..., Any], wanted: type) -> Iterator[tuple[inspect.Parameter, Any, Any]]:
    """Each parameter with its type and what typer was told of it."""
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        kind, *told = hints[parameter.name], parameter.default
        if typing.get_origin(kind) is typing.Annotated:
            kind, *told = typing.get_args(kind)
        for info in told:
            if isinstance(info, wanted):
                yield parameter, _bare(kind), info


def _bare(kind: Any) -> Any:
    """The type of one value: of `list[Path]` and of `Path | None`, Path."""
    if typing.get_origin(kind) in (list, types.UnionType, typing.Union):
        return _bare(next(inner for inner in typing.get_args(kind) if inner is not type(None)))
    return kind


def _parameters(function: Callable[..., Any], wanted: type) -> list[str]:
    rows = []
    for parameter, kind, info in _declared(function, wanted):
        value = _metavar(parameter, kind, info)
        if wanted is ArgumentInfo:
            rows.append(f"| `{value}` | {_cell(info.help)} |")
        else:
            shown = ", ".join(f"`{name}`" for name in _names(parameter, info))
            limits = f"`{value.replace('|', '`, `')}`{_limits(info)}" if kind is not bool else ""
            rows.append(f"| {shown} | {limits} | {_default(parameter, info)} | {_cell(info.help)} |")
    if not rows:
        return []
    if wanted is ArgumentInfo:
        return ["| argument | |", "|---|---|", *rows, ""]
    return ["| option | value | default | |", "|---|---|---|---|", *rows, ""]


def _names(parameter: inspect.Parameter, info: Any) -> list[str]:
    """An option's names, the long ones first."""
    names = list(info.param_decls or ())
    if parameter.default is not info and isinstance(info.default, str):
        names.append(info.default)  # In an annotation typer.Option's first argument is a name, not the default.
    return sorted(names or [f"--{parameter.name.replace('_', '-')}"], key=len, reverse=True)


def _metavar(parameter: inspect.Parameter, kind: Any, info: Any) -> str:
    if info.metavar:
        return str(info.metavar)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    return parameter.name.upper() if isinstance(info, ArgumentInfo) else NAMED.get(kind, parameter.name.upper())


def _limits(info: Any) -> str:
    if info.max is not None:
        return f", {info.min or 0:,} to {info.max:,}"
    return f", at least {info.min:,}" if info.min is not None else ""


def _default(parameter: inspect.Parameter, info: Any) -> str:
    default = parameter.default
    if default is info:  # the older form, `= typer.Option(default)`
        default = info.default
    if isinstance(info.show_default, str):
        return _cell(info.show_default)
    if default is inspect.Parameter.empty or default is ...:
        return "required"
    if default is None or default is False:
        return ""
    return f"`{default.value if isinstance(default, Enum) else default}`"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def python() -> str:
    lines = [
        "# Python",
        "",
        "Made from the code. [From Python](../api.md) shows the names at work. Whatever is not listed here may change.",
        "",
        "All of it is imported as `hpcvdj.NAME`.",
        "",
    ]
    for name in hpcvdj.__all__:
        if not name.startswith("__"):
            thing = getattr(hpcvdj, name)
            lines += [f"::: {thing.__module__}.{thing.__qualname__}", "    options:"]
            lines += ["      heading_level: 2", f"      heading: hpcvdj.{name}", f"      toc_label: hpcvdj.{name}", ""]
    return "\n".join(lines) + "\n"
