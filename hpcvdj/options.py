"""Options: each is declared once, as an annotated field of a settings class.

    @dataclass(frozen=True)
    class SharingSettings(Settings):
        q: Annotated[float | None, Option("the share of sequences that survive selection", least=1e-3, most=1)] = None

The command line makes an option of each field, and hands its commands the settings; Python functions have a parameter
of each, and their docstrings its text.  What a value can be is checked here, when settings are made.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from hpcvdj.errors import OptionError, require_choice, speaking_shell, told

REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Option:
    """What an option means, and what it can be.

    text     for docstrings and the help; `{max_n}` in it is another option
    shell    the text of the help, where it differs
    flags    of the command line, by default the name of the field: `-n --number`
    metavar  what stands for its value in the help
    unset    what None means
    least, most, above, below  bounds: the first two can be reached, the others not
    choices  the values that there are, of a text
    parse    the value of what is typed, where its type does not tell
    remedy   what else to type where that fails
    infinite whether a number can be infinite
    several  it may be repeated: its values are the items of a tuple
    more     it is in the second part of the help
    python   whether Python functions have it
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
        """The text for a docstring."""
        return told(self.text) + f"; by default {self.unset}" * bool(self.unset)

    def sentence(self) -> str:
        """The text for the help: a sentence without the marks of Markdown."""
        with speaking_shell():
            text = told(self.shell or self.text)
        # A text that begins with a value begins as that does.
        return (text[:1].upper() + text[1:]).replace("`", "") + "." * (not text.endswith("."))


class Declared(NamedTuple):
    """An option of a settings class, or of a command; without a default it is required."""

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
        """The type of its values other than None: `int`, a `Literal`, …; of several the first."""
        return next(kind for kind in self._kinds if kind is not NoneType)

    @property
    def _kinds(self) -> tuple[Any, ...]:
        return get_args(self.kind) if get_origin(self.kind) in (Union, UnionType) else (self.kind,)

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that it can be; empty if it can be any, or none."""
        of_types = (word for kind in self._kinds if get_origin(kind) is Literal for word in get_args(kind))
        return (*of_types, *(self.option.choices() if self.option.choices else ()))

    def parsed(self, text: str) -> Any:
        """The value of what is typed; the text itself if it is none, which `require` refuses."""
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
                raise OptionError.of(
                    self.name, value, f"give {self.limits()}{''.join(f', or {word}' for word in words)}"
                )
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

    def limits(self) -> str:
        """Which numbers it can be: `a number from 1 to 5`."""
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
        if least:
            return f"at least {least}"
        return "a whole number" if integer else "a number"


@dataclass(frozen=True)
class Settings:
    """What users choose; raises OptionError, which names the option, for values that there are not."""

    def __post_init__(self) -> None:
        for option in declared(type(self)).values():  # type: ignore[arg-type]
            option.require(getattr(self, option.name))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The settings of values by name, of which those of other settings are ignored."""
        given = {field.name: values[field.name] for field in fields(cls) if field.init and field.name in values}
        # One text where several can be given is that one, not its letters.
        one = {name for name, own in declared(cls).items() if own.option.several and isinstance(given.get(name), str)}  # type: ignore[arg-type]
        given |= {name: (given[name],) for name in one}
        # What one would type for it is understood in Python, too.
        typed = {name: own for name, own in declared(cls).items() if own.option.remedy}  # type: ignore[arg-type]
        given |= {name: own.parsed(given[name]) for name, own in typed.items() if isinstance(given.get(name), str)}
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})


@cache
def declared(settings: type[Settings]) -> dict[str, Declared]:
    """The options of a settings class, by name, in the order of its fields."""
    hints = get_type_hints(settings, include_extras=True)
    defaults = {field.name: REQUIRED if field.default is MISSING else field.default for field in fields(settings)}
    made = ((name, declaration(name, hints[name], default)) for name, default in defaults.items())
    return {name: option for name, option in made if option is not None}


def declaration(name: str, hint: Any, default: Any = REQUIRED) -> Declared | None:
    """The option that a type hint declares; None for other hints."""
    if get_origin(hint) is not Annotated:
        return None
    kind, *extras = get_args(hint)
    return next((Declared(name, kind, default, extra) for extra in extras if isinstance(extra, Option)), None)
