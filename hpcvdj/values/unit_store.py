"""Values of all rows at once.  Root has them in memory, and saves finished units in the run's folder."""

from typing import Any

from numpy.typing import NDArray

from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.method import Method
from hpcvdj.runs.driver import Partial
from hpcvdj.runs.folder import RunFolder
from hpcvdj.values.compute import ArrayStore

BEGUN = "part-begun"
"""The piece with the unit that was under way when the run was saved.  The other pieces have finished units."""


class UnitStore(ArrayStore):
    """Values in memory, with checkpoints of finished units."""

    def __init__(self, problem: Any, method: Method, folder: RunFolder) -> None:
        super().__init__(problem, method)
        self._folder = folder
        self._unsaved: list[int] = []

    def begin(self, unit_work: int) -> list[Unit]:
        pieces = self._folder.finished
        # The run that began may have had another backend, but its units are those that are saved.
        self._unit_work = self._folder.read(pieces[0])[0]["unit_work"] if pieces else unit_work
        left = super().begin(self._unit_work)
        for name in pieces:
            with self._folder.damage(name):
                facts, arrays = self._folder.read(name)
                for number, values in arrays.items():
                    unit = self.units[int(number)]
                    if (values.shape, values.dtype) != (self.of(unit).shape, self.of(unit).dtype):
                        raise ValueError("its values are not those of a unit of this run")
                    if name != BEGUN:
                        super().put(unit, values)
                        left.remove(unit)
                    elif unit in left:
                        self.begun = Partial(unit, facts["tasks_done"], values.copy())
                        left = [unit, *(other for other in left if other != unit)]
        return left

    def put(self, unit: Unit, values: NDArray[Any]) -> None:
        super().put(unit, values)
        self._unsaved.append(self.units.index(unit))

    def save(self, partial: Partial | None) -> None:
        """Save the units that were put since the last time, and the unit that is cut here.

        Raises MachineError if the disk is full.
        """
        facts, unsaved = {"unit_work": self._unit_work}, self._unsaved
        if unsaved:
            self._folder.save(f"part-{unsaved[0]:06}", facts, {str(k): self.of(self.units[k]) for k in unsaved})
            self._unsaved = []
        if partial is not None:
            assert partial.values is not None
            number = str(self.units.index(partial.unit))
            self._folder.save(BEGUN, facts | {"tasks_done": partial.tasks_done}, {number: partial.values})
