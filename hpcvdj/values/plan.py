"""What a run computes of each row: the plan that counting and probabilities implement."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.method import Method
from hpcvdj.recombination.repertoire import Repertoire

if TYPE_CHECKING:
    # Slow to import, and the help needs the defaults of plans.
    from hpcvdj.repertoires.reading import Reading


class Plan:
    """What a run computes of its junctions, and how; the same run layer serves all plans.

    method             its name
    backend            the name of a `Backend`, or `auto`
    threads_per_block  tasks in a block; ranks share work in whole blocks
    strict_binding     two ranks on one GPU are an error, not a warning
    identity           what two runs must have in common, by the names of the attributes of results
    """

    method: str
    backend: str
    threads_per_block: int
    strict_binding: bool
    identity: ClassVar[tuple[str, ...]]

    def method_class(self) -> Method:
        """The method; InputError if there is none of that name."""
        raise NotImplementedError

    def reads(self, reading: "Reading") -> "Reading":
        """How junctions are read for it."""
        raise NotImplementedError

    def settled(self, longest: int) -> Self:
        """The plan for junctions of which the longest has `longest` nt; InputError if the method cannot."""
        return self

    @property
    def sliceable(self) -> bool:
        """Whether slices can be computed one by one."""
        try:
            self.require_sliceable()
        except InputError:
            return False
        return True

    def require_sliceable(self) -> None:
        """Raise InputError if slices cannot be computed one by one."""

    def problem(self, repertoire: Repertoire, reference: Any) -> Any:
        """The problem for the kernels, once the plan is settled."""
        raise NotImplementedError

    @property
    def judged(self) -> tuple[str, ...]:
        """The columns of which it is told how many junctions anyone would make, as `Makers` has them."""
        return ()

    def judged_values(self, problem: Any, values: NDArray[Any]) -> NDArray[np.float64]:
        """Those of the productive junctions of a problem, float64 [judged, junctions], as `Makers` takes them.

        values  [junctions, columns]: what was computed
        """
        raise NotImplementedError

    def recorded(self) -> dict[str, Any]:
        """What results record of it."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]
