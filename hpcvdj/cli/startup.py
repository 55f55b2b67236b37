"""Changes to libraries that let a command start faster.

numba, pyarrow and typer prepare for more than hpcvdj uses.  A command has its own process, so it leaves out what it
does not use.  This never happens when a program imports hpcvdj as a library.  Ranks that start together would all
compile the same functions; instead, one rank compiles each function, and the others load it.
"""

import gc
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, get_args, get_origin

from hpcvdj.kernels.compiling import compile_once


def _without_extensions(entrypoints: ModuleType) -> None:
    """Do not load numba extensions of other packages (awkward's takes 0.3 s): compiled code uses only arrays."""
    entrypoints.init_all = lambda: None  # type: ignore[attr-defined]


def _without_blas(linalg: ModuleType) -> None:
    """Do not load scipy.linalg (0.2 s): no compiled code multiplies matrices."""

    def ensure_blas() -> None:
        raise ImportError("a command of hpcvdj compiles no linear algebra")

    linalg.ensure_blas = ensure_blas  # type: ignore[attr-defined]


def _without_compiler(caching: ModuleType) -> None:
    """Do not prepare the compiler (0.15 s) to load what is compiled: numba prepares it, too, when it compiles."""

    def load_overload(cache: Any, signature: Any, context: Any) -> Any:
        from numba.core.runtime import rtsys

        rtsys.initialize(context)
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, context)

    caching.Cache.load_overload = load_overload  # type: ignore[attr-defined]


def _without_library(environment: ModuleType) -> None:
    """Do not load the modules of numba's own functions (0.1 s), which compiled code has called once it is compiled."""

    def module_of(name: str) -> Any:
        is_needless = name.startswith("numba.") and name not in sys.modules
        return SimpleNamespace(__name__=name) if is_needless else import_module(name)

    environment.importlib = SimpleNamespace(import_module=module_of)  # type: ignore[attr-defined]


def _without_pandas(pyarrow: ModuleType) -> None:
    """Do not load pandas (0.3 s), which pyarrow imports at its first array to recognise columns of pandas."""
    if "pandas" not in sys.modules:
        # None in sys.modules would make pyarrow try again later.
        absent = _Absent("pandas")
        sys.meta_path.insert(0, absent)
        try:
            pyarrow.array([0])
        finally:
            sys.meta_path.remove(absent)


def _without_pydoc(compute: ModuleType) -> None:
    """Do not load pydoc (0.04 s), by which pyarrow.compute writes docstrings of its functions."""
    docscrape: Any = ModuleType("pyarrow.vendored.docscrape")
    docscrape.NumpyDocString = lambda text: defaultdict(list)
    sys.modules.setdefault(docscrape.__name__, docscrape)


def _without_pydantic() -> None:
    """Do not load pydantic (0.15 s), by which typer converts arguments, for texts and paths."""
    from typer._coercion import RuntimeParam
    from typer._param_types import coerce_cli_path

    core: Any = import_module("typer.core")
    converter_of = core.build_runtime_param

    @dataclass(frozen=True)
    class Converter(RuntimeParam):
        descriptor: Any

        def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
            info, origin = self.parameter_info, get_origin(self.annotation)
            several = inspect.isclass(origin) and issubclass(origin, list)
            kind = get_args(self.annotation)[0] if several else self.annotation

            def converted(item: Any) -> Any:
                if info.parser is not None:
                    return info.parser(item)
                if kind not in (str, Path) or not isinstance(item, str | kind) or not str(item).isascii():
                    raise ValueError
                return coerce_cli_path(Path(item), info, path_type=Path, param=param, ctx=ctx) if kind is Path else item

            with suppress(ValueError, AssertionError):
                if not several:
                    return converted(value)
                return list(map(converted, value if isinstance(value, list | tuple) else [value]))
            # pydantic converts other values, and says what is wrong.
            return converter_of(self.descriptor)._coerce_value(value, param, ctx)

    core.build_runtime_param = lambda described: Converter(described.parameter_info, described.annotation, described)


class _Absent(MetaPathFinder):
    """Fails to find a library."""

    def __init__(self, library: str) -> None:
        self._library = library

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == self._library:
            raise ModuleNotFoundError(f"a command of hpcvdj needs no {name}", name=name)
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
                with suppress(AttributeError, ImportError):  # in another version, which then loads everything
                    change(module)

            spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


def load_little() -> None:
    """Leave out what no command uses, in this process, and compile only what no other process compiles."""
    changes = {
        "numba.core.entrypoints": _without_extensions,
        "numba.np.linalg": _without_blas,
        "numba.core.caching": _without_compiler,
        "numba.core.environment": _without_library,
        "numba.core.dispatcher": compile_once,
        "pyarrow": _without_pandas,
        "pyarrow._compute": _without_pydoc,
    }
    with suppress(AttributeError, ImportError):  # an older typer needs no pydantic
        _without_pydantic()
    # Collections (0.1 s) free nothing of what a start makes: modules and models stay.
    gc.set_threshold(50_000)
    # numba imports coverage (0.03 s), in case that somebody measures it.
    sys.meta_path[:0] = [_AfterImport(changes), *[_Absent("coverage")] * ("coverage" not in sys.modules)]
