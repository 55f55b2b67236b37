"""What users of `import hpcvdj` meet: names that are imported on first use, and warnings that name the calling line."""

import inspect
import logging
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pkgutil import resolve_name
from typing import Any

from hpcvdj.errors import HpcvdjWarning, log


def public(namespace: dict[str, Any], name: str, home: str) -> Any:
    """Import the object at `home` (`hpcvdj.api.counting:count`) as `name` into the `namespace` of a package."""
    target = resolve_name(home)
    if inspect.isfunction(target):
        target = _warning(target)
        # pickle looks for the function under this name.
        target.__module__, target.__qualname__ = namespace["__name__"], name
    namespace[name] = target
    return target


class OnFirstUse:
    """A module that is imported when one of its attributes is first used, because it is slow to import."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def _warning(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def warning(*args: Any, **options: Any) -> Any:
        if _collectors:
            return function(*args, **options)
        collector = _Collector()
        _collectors.append(collector)
        log.addHandler(collector)
        try:
            return function(*args, **options)
        finally:
            log.removeHandler(collector)
            _collectors.remove(collector)
            for message in collector.messages():
                warnings.warn(message, HpcvdjWarning, stacklevel=2)

    return warning


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


def _one_line(usual: Callable[..., str]) -> Callable[..., str]:
    """Return `warnings.formatwarning` without code for warnings of hpcvdj, and without file and line in a notebook."""

    def formatted(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if not issubclass(category, HpcvdjWarning):
            return usual(message, category, filename, lineno, line)
        location = "" if in_notebook() else f"{filename}:{lineno}: "
        return f"{location}{category.__name__}: {message}\n"

    return formatted


warnings.formatwarning = _one_line(warnings.formatwarning)


class _Collector(logging.Handler):
    """Collects what a function logs as warnings.  Commands print these lines; scripts get them as Python's warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())

    def messages(self) -> list[str]:
        """Return the messages.  Indented lines belong to the message before them."""
        grouped: list[list[str]] = []
        for line in self._lines:
            if line.startswith(" ") and grouped:
                grouped[-1].append(" ".join(line.split()))
            else:
                grouped.append([line])
        joined = [f"{head} {', '.join(rest)}" if rest else head for head, *rest in grouped]
        return list(dict.fromkeys(joined))


_collectors: list[_Collector] = []
"""The collector of the function that a script has called, while it runs."""
