"""What a command changes of its libraries, for a faster start.

numba and pyarrow prepare for programs that use more of them than hpcvdj does.  A command has a process to itself, so
what they would prepare for nobody is left out there: never when hpcvdj is imported as a library.  Ranks that start at
once would all compile the same functions; one compiles each, and the others load it.
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
    """Do not load other packages' extensions of numba (awkward's takes 0.3 s): compiled code sees arrays alone."""
    entrypoints.init_all = lambda: None  # type: ignore[attr-defined]


def _without_blas(linalg: ModuleType) -> None:
    """Do not load scipy.linalg (0.2 s): no compiled code multiplies matrices."""

    def ensure_blas() -> None:
        raise ImportError("a command of hpcvdj compiles no linear algebra")

    linalg.ensure_blas = ensure_blas  # type: ignore[attr-defined]


def _without_pandas(pyarrow: ModuleType) -> None:
    """Do not load pandas (0.3 s), which pyarrow does at its first array to recognise columns of pandas."""
    if "pandas" not in sys.modules:
        absent = _Absent()
        sys.meta_path.insert(0, absent)
        try:
            pyarrow.array([0])
        finally:
            sys.meta_path.remove(absent)


class _Absent(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("a command of hpcvdj needs no pandas", name=name)
        return None


class _AfterImport(MetaPathFinder):
    """Runs a function on a module after its import, wherever that is."""

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
                with suppress(AttributeError):  # of another version, which then loads what it loads
                    change(module)

            spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


def load_little() -> None:
    """Leave out, in this process, what no command uses, and compile what no other process compiles."""
    changes = {
        "numba.core.entrypoints": _without_extensions,
        "numba.np.linalg": _without_blas,
        "numba.core.dispatcher": compile_once,
        "pyarrow": _without_pandas,
    }
    sys.meta_path.insert(0, _AfterImport(changes))
