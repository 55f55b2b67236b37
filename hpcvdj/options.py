"""Options, which annotated fields of settings classes declare.

    class SharingSettings(Settings, kw_only=True):
        q: float | None = setting("the share of sequences that survive selection", None, least=1e-3, most=1)

An option that several classes share may be a type: `Seed = Annotated[int, Option("seed of what is drawn", least=0)]`.

The command line makes an option of each field, and hands the settings to its commands.  Python functions have a
parameter for each field, and their docstrings have its text.  Settings check their values when they are created.
"""

import inspect
import math
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from hpcvdj.errors import OptionError, require_choice, speaking_shell, told

REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Option:
    """What an option means, and what it can be.

    text     text for docstrings and the help; `{max_n}` in it names another option
    shell    text of the help, if it differs from `text`
    flags    flags of the command line, such as `-n --number`; by default the name of the field
    metavar  word that stands for the value in the help
    unset    meaning of None
    least, most    bounds that a number may reach
    above, below   bounds that a number may not reach
    choices  returns the texts that the option accepts
    parse    makes the value from the text that users type, where the type alone cannot
    remedy   what to type instead if `parse` fails
    infinite whether a number can be infinite
    several  whether users may repeat the option; its value is then a tuple
    more     whether the option is in the second part of the help
    python   whether Python functions have the option
    """

    text: str
    shell: str = ""
    flags: str = ""
    metavar: str = ""
    unset: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: Callable[[], Iterable[str]] | None = None
    parse: Callable[[str], Any] | None = None
    remedy: str = ""
    infinite: bool = False
    several: bool = False
    more: bool = False
    python: bool = True

    def described(self) -> str:
        """Return the text for a docstring."""
        return told(self.text) + f"; by default {self.unset}" * bool(self.unset)

    def sentence(self) -> str:
        """Return the text for the help: a sentence without the marks of Markdown."""
        with speaking_shell():
            text = told(self.shell or self.text)
        # Capitalize before removing the backticks: a value at the beginning keeps its case.
        return (text[:1].upper() + text[1:]).replace("`", "") + "." * (not text.endswith("."))


def setting(text: str, default: Any, **about: Any) -> Any:
    """Return an option: the field of a settings class, or the default of a parameter of a command.

    about  other fields of the `Option`
    """
    return field(default=default, metadata={"option": Option(text, **about)})


class Declared(NamedTuple):
    """An option of a settings class or of a command.  An option without a default is required."""

    name: str
    kind: Any
    default: Any
    option: Option

    @property
    def optional(self) -> bool:
        """Whether None is a value."""
        return NoneType in self._kinds

    @property
    def type(self) -> Any:
        """The first type of its values other than None: `int`, a `Literal`, …"""
        return next(kind for kind in self._kinds if kind is not NoneType)

    @property
    def _kinds(self) -> tuple[Any, ...]:
        return get_args(self.kind) if get_origin(self.kind) in (Union, UnionType) else (self.kind,)

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that it accepts; empty if it accepts any text or no text."""
        of_types = (word for kind in self._kinds if get_origin(kind) is Literal for word in get_args(kind))
        return (*of_types, *(self.option.choices() if self.option.choices else ()))

    def parsed(self, text: str) -> Any:
        """Return the value of a text that users type, or the text itself, which `require` refuses, if it has none."""
        kind, parse = self.type, self.option.parse
        if parse is None and kind not in (int, float):
            return text
        try:
            return (parse or kind)(text)
        except ValueError:
            return text

    def require(self, value: Any) -> None:
        """Raise OptionError for a value that the option cannot have."""
        if value is None and self.optional:
            return
        kind, words = self.type, self.choices
        if self.option.remedy and isinstance(value, str) and value not in words:
            raise OptionError.of(self.name, value, self.option.remedy)
        if self.option.several or self.option.parse:
            return
        if words and kind not in (int, float):
            require_choice(self.name, value, words)
        elif kind in (int, float) and value not in words:
            number = Integral if kind is int else Real
            if not isinstance(value, number) or isinstance(value, bool) or not self._within(value):
                flag = next((flag for flag in self.option.flags.split() if flag.startswith("--")), "")
                remedy = f"give {self.limits(named=isinstance(value, str))}{''.join(f', or {word}' for word in words)}"
                raise OptionError.of(self.name, value, remedy, flag)
        elif kind in (bool, str) and not isinstance(value, kind):
            raise OptionError.of(self.name, value, "give True or False" if kind is bool else "give a text")

    def _within(self, value: Any) -> bool:
        bounds = self.option
        return (
            (math.isfinite(value) or (bounds.infinite and value > 0))
            and (bounds.least is None or value >= bounds.least)
            and (bounds.most is None or value <= bounds.most)
            and (bounds.above is None or value > bounds.above)
            and (bounds.below is None or value < bounds.below)
        )

    def limits(self, *, named: bool = False) -> str:
        """Return which numbers it can be in words: `a number from 1 to 5`.

        named  whether the words always say that it is a number
        """
        bounds, integer = self.option, self.type is int
        least, most, above, below = (
            None if bound is None else f"{bound:,}" if integer or bound == int(bound) else f"{bound:g}"
            for bound in (bounds.least, bounds.most, bounds.above, bounds.below)
        )
        if least and most:
            return f"a number from {least} to {most}"
        if least and below:
            return f"a number from {least} to less than {below}"
        if above and below:
            return f"a number between {above} and {below}"
        if above:
            return f"a finite number above {above}" + f", at most {most}" * bool(most)
        number = "a whole number" if integer else "a number"
        if least:
            return f"{number}, at least {least}" if named else f"at least {least}"
        return number


@typing.dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Settings:
    """What users choose; each class that derives from it is a frozen dataclass.

    Raises OptionError, which names the option, for a value that the option cannot have.
    """

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=kw_only)(cls)

    def __post_init__(self) -> None:
        for option in declared(type(self)).values():  # type: ignore[arg-type]
            option.require(getattr(self, option.name))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings of values by name; values of other settings are ignored."""
        chosen = {field.name: values[field.name] for field in fields(cls) if field.init and field.name in values}
        for name, entry in declared(cls).items():  # type: ignore[arg-type]
            text = chosen.get(name)
            if isinstance(text, str) and entry.option.several:
                # A single text is one value, not a sequence of letters.
                chosen[name] = (text,)
            elif isinstance(text, str) and (entry.option.remedy or get_origin(entry.type) is Sequence):
                # Python functions, too, accept what users type on the command line.
                chosen[name] = entry.parsed(text)
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()})


@cache
def declared(settings: type[Settings]) -> dict[str, Declared]:
    """Return the options of a settings class, by name, in the order of its fields."""
    hints = get_type_hints(settings, include_extras=True)
    entries: dict[str, Declared] = {}
    for own in fields(settings):
        entry = declaration(own.name, hints[own.name], own)
        if entry is not None:
            entries[own.name] = entry
    return entries


def declaration(name: str, hint: Any, default: Any = REQUIRED) -> Declared | None:
    """Return the option that a type hint or a `setting` declares, or None for others.

    default  the value, or the field that has it
    """
    if isinstance(default, Field):
        option, default = default.metadata.get("option"), REQUIRED if default.default is MISSING else default.default
        if option is not None:
            return Declared(name, hint, default, option)
    if get_origin(hint) is not Annotated:
        return None
    kind, *extras = get_args(hint)
    return next((Declared(name, kind, default, extra) for extra in extras if isinstance(extra, Option)), None)
