"""What users of `import hpcvdj` meet: names that are imported when first used, errors and warnings that speak Python.

Messages name options as the command line does (`--max-n -1`).  At the border between the package and a script they are
turned into parameters (`max_n=-1`), so that each message is written once.
"""

import inspect
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pkgutil import resolve_name
from typing import Any, get_args

from hpcvdj.errors import HpcvdjError, HpcvdjWarning

_OPTION = re.compile(
    r"--(?P<name>[a-z](?:[a-z-]*[a-z])?)(?![a-z])"
    r"(?:[ =](?P<value>'[^']*'|[A-Za-z_]+=[^\s;]+|-?(?:\d[\w.,]*|inf)\b|nan\b|[A-Z]+\b|[a-z][\w-]*))?"
)

_ELSEWHERE = {"format": "read_table", "columns": "read_table", "max_p": "germline", "d_alleles": "germline"}
"""The functions that have parameters which the commands have as options of their own."""


def public(namespace: dict[str, Any], name: str, home: str) -> Any:
    """The object at `home` (`hpcvdj.api.counting.count`) as `name` of a package, which keeps it in its `namespace`."""
    found = resolve_name(home)
    if inspect.isfunction(found):
        found = _speaking_python(found)
        # So that the name is where the function is from: pickle looks there for it.
        found.__module__, found.__qualname__ = namespace["__name__"], name
    namespace[name] = found
    return found


def _speaking_python(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def speaking(*args: Any, **options: Any) -> Any:
        outermost, told = not _collectors, _Collector()
        if outermost:
            _collectors.append(told)
            _LOG.addHandler(told)
        try:
            return function(*args, **options)
        except HpcvdjError as error:
            error.args = in_python(str(error), inspect.signature(function).parameters), *error.args[1:]
            raise
        finally:
            if outermost:
                _LOG.removeHandler(told)
                _collectors.remove(told)
                for message in told.messages():
                    said = in_python(message, inspect.signature(function).parameters)
                    warnings.warn(said, HpcvdjWarning, stacklevel=2)

    return speaking


class _Collector(logging.Handler):
    """What is logged as a warning while a function runs: the commands print it, and scripts get Python's warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []
        self.warned: set[str] = set()
        """What the function itself has warned of."""

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())

    def messages(self) -> list[str]:
        """The messages; indented lines belong to the one before them."""
        found: list[list[str]] = []
        for line in self._lines:
            if line.startswith(" ") and found:
                found[-1].append(" ".join(line.split()))
            else:
                found.append([line])
        joined = [f"{head} {', '.join(rest)}" if rest else head for head, *rest in found]
        return [message for message in dict.fromkeys(joined) if message not in self.warned]


_LOG = logging.getLogger("hpcvdj")

_collectors: list[_Collector] = []
"""That of the function which a script has called, while it runs."""


def in_python(message: str, parameters: Mapping[str, inspect.Parameter]) -> str:
    """A message of the command line, in which options are parameters of a function.

    >>> from typing import Literal
    >>> def f(*, max_n: int = 10, strict: bool = False, rows: Literal["all", "some"] = "all"): ...
    >>> in_python("--max-n -1: see --rows, --rows some or --strict", inspect.signature(f).parameters)
    "max_n=-1: see rows, rows='some' or strict=True"
    """

    def parameter(match: re.Match[str]) -> str:
        name, value = match["name"].replace("-", "_"), match["value"] or ""
        rest = match.group()[len("--" + match["name"]) :]
        own = parameters.get(name)
        if own is not None and isinstance(own.default, bool):
            return f"{name}=True{rest}"
        if own is None and name in _ELSEWHERE:
            name = f"hpcvdj.{_ELSEWHERE[name]}: {name}"
        if "=" in value:
            return f"{name}={dict(pair.split('=', 1) for pair in value.split(','))}"
        if value[:1].islower() and value not in ("nan", "inf") and not _takes(own, value):
            return name + rest
        if not value:
            return name
        return f"{name}={value!r}" if value[0].islower() and value not in ("nan", "inf") else f"{name}={value}"

    return _OPTION.sub(parameter, message)


def _takes(parameter: inspect.Parameter | None, word: str) -> bool:
    """Whether a word that follows a parameter's name is its value: one of its choices, or any if it is a text."""
    return parameter is not None and (parameter.annotation is str or word in _choices(parameter.annotation))


def _choices(annotation: Any) -> Iterator[Any]:
    for argument in get_args(annotation):
        yield from (argument,) if isinstance(argument, str) else _choices(argument)


def warn(message: str) -> None:
    """Warn of the line that called hpcvdj, in words of Python."""
    for collector in _collectors:
        collector.warned.add(message)
    frame, level = sys._getframe(1), 2
    parameters: Mapping[str, inspect.Parameter] = {}
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "hpcvdj":
        frame, level = frame.f_back, level + 1
        called = frame.f_locals.get("function") if frame.f_code.co_name == "speaking" else None
        parameters = inspect.signature(called).parameters if called is not None else parameters
    warnings.warn(in_python(message, parameters), HpcvdjWarning, stacklevel=level)
