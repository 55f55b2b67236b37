"""Values of all rows at once.  Root has them in memory, and saves finished units in the run's folder."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hpcvdj.errors import InputError, MachineError, option
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.method import Method, Missing
from hpcvdj.runs.driver import Partial
from hpcvdj.runs.folder import RunFolder, save_failure
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.states import DAMAGED_STATE, read_state, state_bytes
from hpcvdj.values.compute import ArrayStore

_FINISHED = "part-[0-9]*.npz"
"""Files with finished units, one for each time that the run was saved."""

BEGUN = "part-begun.npz"
"""The file with the unit that was under way when the run was saved."""


class UnitStore(ArrayStore):
    """Values in memory, with checkpoints of finished units."""

    def __init__(self, problem: Any, method: Method, folder: RunFolder) -> None:
        super().__init__(problem, method)
        self._folder = folder
        # A method that enumerates finishes one column after another.
        self._step = 1 if method.enumerates else self.values.shape[1]
        self._finished: list[Unit] = []
        self._saved = 0

    def put(self, unit: Unit, values: NDArray[Any]) -> None:
        super().put(unit, values)
        self._finished.append(unit)

    def save(self, partial: Partial | None) -> None:
        """Save the units that were put since the last time, and the unit that is cut here.

        Raises MachineError if the disk is full.
        """
        unsaved = self._finished[self._saved :]
        try:
            if unsaved:
                number = len(list(self._folder.path.glob(_FINISHED)))
                self._write(self._folder.path / f"part-{number:06}.npz", unsaved)
            if partial is not None:
                values = partial.values
                assert values is not None
                self._write(self._folder.path / BEGUN, [partial.unit], values, partial.tasks_done)
        except OSError as error:
            raise save_failure(MachineError(f"{self._folder.path}: writing failed ({error.strerror})")) from None
        except MachineError as error:
            raise save_failure(error) from None
        self._saved = len(self._finished)

    def _write(self, path: Path, units: list[Unit], begun: NDArray[Any] | None = None, tasks_done: int = 0) -> None:
        """Write units with their values; for a unit under way, `begun` has its values."""
        meta = {"units": list(map(_recorded, units)), "tasks_done": tasks_done}
        values = [self.values[_slices_of(unit)] for unit in units] if begun is None else [begun]
        arrays = {str(number): array for number, array in enumerate(values)}
        with atomic_path(path, overwrite=True) as temporary:
            temporary.write_bytes(state_bytes(meta, arrays, self._folder.identity))

    def restore(self) -> Partial | None:
        """Load what an earlier run saved, and return the unit that was under way, if there is one.

        Raises InputError if the saved state is damaged.
        """
        for path in sorted(self._folder.path.glob(_FINISHED)):
            for partial in self._read(path):
                assert partial.values is not None
                self.put(partial.unit, partial.values)
        self._saved = len(self._finished)
        if not (self._folder.path / BEGUN).exists():
            return None
        (begun,) = self._read(self._folder.path / BEGUN)
        unit = begun.unit
        is_missing = any(columns == unit.n_lengths and unit.rows.start in rows for columns, rows in self.missing())
        return begun if unit.rows and is_missing else None

    def _read(self, path: Path) -> list[Partial]:
        """Return the units in a file.  Raise InputError if the file is damaged."""
        try:
            meta, arrays = read_state(path.read_bytes(), self._folder.identity)
            units = [
                Unit(range(pair, last_pair), range(row, last_row), range(n, last_n), tasks)
                for pair, last_pair, row, last_row, n, last_n, tasks in meta["units"]
            ]
            read = [Partial(unit, meta["tasks_done"], arrays[str(number)]) for number, unit in enumerate(units)]
            for partial in read:
                expected, values = self.values[_slices_of(partial.unit)], partial.values
                if values is None or values.shape != expected.shape or values.dtype != expected.dtype:
                    raise ValueError("its values are not those of a unit of this run")
        except DAMAGED_STATE as error:
            raise InputError(f"{path}: is damaged ({error}); {option('overwrite', True)} starts again") from None
        return read

    def missing(self, begun: Partial | None = None) -> Missing:
        """Return the (columns, rows) that were not put and are not those of the unit under way."""
        rows, width = self.values.shape
        taken = [*self._finished, *([begun.unit] if begun is not None else [])]
        missing = []
        for first in range(0, width, self._step):
            columns, stop = range(first, first + self._step), 0
            for part in sorted((unit.rows for unit in taken if unit.n_lengths == columns), key=lambda part: part.start):
                missing.append((columns, range(stop, part.start)))
                stop = part.stop
            missing.append((columns, range(stop, rows)))
        return [(columns, part) for columns, part in missing if part]


def _recorded(unit: Unit) -> list[int]:
    parts = unit.pairs, unit.rows, unit.n_lengths
    return [*(number for part in parts for number in (part.start, part.stop)), unit.tasks]


def _slices_of(unit: Unit) -> tuple[slice, slice]:
    """Return where the values of a unit are among those of all rows."""
    return slice(unit.rows.start, unit.rows.stop), slice(unit.n_lengths.start, unit.n_lengths.stop)
