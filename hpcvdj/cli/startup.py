"""Changes to libraries that let a command start faster.

numba and pyarrow prepare for more than hpcvdj uses.  A command has its own process, so it leaves out what it does not
use.  This never happens when a program imports hpcvdj as a library.  Ranks that start together would all compile the
same functions; instead, one rank compiles each function, and the others load it.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from hpcvdj.kernels.compiling import compile_once


def _without_extensions(entrypoints: ModuleType) -> None:
    """Do not load numba extensions of other packages (awkward's takes 0.3 s): compiled code uses only arrays."""
    entrypoints.init_all = lambda: None  # type: ignore[attr-defined]


def _without_blas(linalg: ModuleType) -> None:
    """Do not load scipy.linalg (0.2 s): no compiled code multiplies matrices."""

    def ensure_blas() -> None:
        raise ImportError("a command of hpcvdj compiles no linear algebra")

    linalg.ensure_blas = ensure_blas  # type: ignore[attr-defined]


def _without_pandas(pyarrow: ModuleType) -> None:
    """Do not load pandas (0.3 s), which pyarrow imports at its first array to recognise columns of pandas."""
    if "pandas" not in sys.modules:
        # None in sys.modules would make pyarrow try again later.
        absent = _Absent()
        sys.meta_path.insert(0, absent)
        try:
            pyarrow.array([0])
        finally:
            sys.meta_path.remove(absent)


class _Absent(MetaPathFinder):
    """Fails to find pandas."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("a command of hpcvdj needs no pandas", name=name)
        return None


class _AfterImport(MetaPathFinder):
    """Changes modules right after their import."""

    def __init__(self, changes: dict[str, Callable[[ModuleType], None]]) -> None:
        self._changes = changes

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        change = self._changes.pop(name, None)
        if change is None:
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, others), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_change(module: ModuleType) -> Any:
                execute(module)
                with suppress(AttributeError):  # in another version, which then loads everything
                    change(module)

            spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


def load_little() -> None:
    """Leave out what no command uses, in this process, and compile only what no other process compiles."""
    changes = {
        "numba.core.entrypoints": _without_extensions,
        "numba.np.linalg": _without_blas,
        "numba.core.dispatcher": compile_once,
        "pyarrow": _without_pandas,
    }
    sys.meta_path.insert(0, _AfterImport(changes))
