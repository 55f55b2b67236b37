"""What users of `import hpcvdj` meet: names that are imported when first used, and warnings of the line that called."""

import inspect
import logging
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from pkgutil import resolve_name
from typing import Any

from hpcvdj.errors import HpcvdjWarning


def public(namespace: dict[str, Any], name: str, home: str) -> Any:
    """The object at `home` (`hpcvdj.api.counting:count`) as `name` of a package, which keeps it in its `namespace`."""
    target = resolve_name(home)
    if inspect.isfunction(target):
        target = _warning(target)
        # So that the name is where the function is from: pickle looks there for it.
        target.__module__, target.__qualname__ = namespace["__name__"], name
    namespace[name] = target
    return target


def _warning(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def warning(*args: Any, **options: Any) -> Any:
        if _collectors:
            return function(*args, **options)
        told = _Collector()
        _collectors.append(told)
        _LOG.addHandler(told)
        try:
            return function(*args, **options)
        finally:
            _LOG.removeHandler(told)
            _collectors.remove(told)
            for message in told.messages():
                warnings.warn(message, HpcvdjWarning, stacklevel=2)

    return warning


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


def _one_line(usual: Callable[..., str]) -> Callable[..., str]:
    """`warnings.formatwarning` without the line of code for warnings of hpcvdj, and in a notebook without a place."""

    def formatted(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if not issubclass(category, HpcvdjWarning):
            return usual(message, category, filename, lineno, line)
        place = "" if in_notebook() else f"{filename}:{lineno}: "
        return f"{place}{category.__name__}: {message}\n"

    return formatted


warnings.formatwarning = _one_line(warnings.formatwarning)


class _Collector(logging.Handler):
    """What is logged as a warning while a function runs: the commands print it, and scripts get Python's warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())

    def messages(self) -> list[str]:
        """The messages; indented lines belong to the one before them."""
        grouped: list[list[str]] = []
        for line in self._lines:
            if line.startswith(" ") and grouped:
                grouped[-1].append(" ".join(line.split()))
            else:
                grouped.append([line])
        joined = [f"{head} {', '.join(rest)}" if rest else head for head, *rest in grouped]
        return list(dict.fromkeys(joined))


_LOG = logging.getLogger("hpcvdj")

_collectors: list[_Collector] = []
"""That of the function which a script has called, while it runs."""
