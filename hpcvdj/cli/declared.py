"""Options of commands that settings declare.  A command gets the settings as parameters."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from hpcvdj.cli.common import Command, Group, begin
from hpcvdj.cli.helping import MORE
from hpcvdj.errors import HpcvdjError
from hpcvdj.options import REQUIRED, Declared, Settings, declaration, declared

VALUES = {int: "N", float: "X", Path: "PATH"}
"""The metavar of a value of a type."""


class App(typer.Typer):
    """A group of commands whose parameters are settings."""

    def __init__(self, **about: Any) -> None:
        super().__init__(cls=Group, no_args_is_help=True, **about)

    def command(  # type: ignore[override]
        self, name: str | None = None, *, of_root: bool = False, **about: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add a command, or a command `of_root`, in which the other ranks do nothing."""
        add = super().command(name, cls=Command, **about)

        def adding(function: Callable[..., Any]) -> Callable[..., Any]:
            add(unfolded(_on_root(function) if of_root else function))
            return function

        return adding


def _on_root(function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def called(**values: Any) -> None:
        if begin().is_root:
            function(**values)

    return called


def unfolded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with an option for each field of its settings, which calls `function` with the settings."""
    hints = get_type_hints(function, include_extras=True)
    settings: dict[str, type[Settings]] = {}
    alone: list[Declared] = []
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if inspect.isclass(hints[name]) and issubclass(hints[name], Settings):
            settings[name] = hints[name]
            for option in declared(hints[name]).values():
                parameters.setdefault(option.name, _parameter(option))
        elif entry := declaration(name, hints[name], parameter.default):
            alone.append(entry)
            parameters[name] = _parameter(entry)
        else:
            parameters[name] = parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name])

    @wraps(function)
    def called(**values: Any) -> Any:
        try:
            for option in alone:
                option.require(values[option.name])
            chosen = {name: kind.of(values) for name, kind in settings.items()}
        except HpcvdjError as error:
            error.on_every_rank = True
            raise
        return function(**{name: value for name, value in values.items() if name in hints}, **chosen)

    called.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    called.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return called


def _parameter(entry: Declared) -> inspect.Parameter:
    """Return an option of the command line.  The settings check its value later."""
    option, words = entry.option, entry.choices
    flags = option.flags.split() or [f"--{entry.name.replace('_', '-')}"]
    if entry.type is bool and entry.default is True:
        flags = [f"{flags[0]}/--no-{flags[0][2:]}"]
    about: dict[str, Any] = {
        "help": option.sentence(), "rich_help_panel": MORE if option.more else None, "show_default": _default(entry),
    }  # fmt: skip
    kind: Any = entry.type if entry.type in (bool, Path) else str
    if entry.type is not bool:
        about["metavar"] = option.metavar or "|".join(words) or VALUES.get(entry.type, "TEXT")
        about["autocompletion"] = lambda incomplete: [word for word in words if word.startswith(incomplete)]
    if kind is str:
        about["parser"] = lambda value: entry.parsed(value) if isinstance(value, str) else value
    default = entry.default
    if option.several:
        kind, default = list[kind], list(default) if isinstance(default, tuple) else default
    info = typer.Option(*flags, **about)
    hint: Any = Annotated[kind | None if entry.optional else kind, info]  # type: ignore[valid-type]
    return inspect.Parameter(entry.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _default(entry: Declared) -> str | bool:
    """Return what the help shows as the default; False for nothing."""
    default = entry.default
    if default is REQUIRED or default is None or default is False or default == ():
        return entry.option.unset.replace("`", "") or False
    if isinstance(default, range):
        return f"{default[0]}-{default[-1]}"
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
