"""What a run computes for each row: the plan that counting and probabilities implement."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.method import Method
from hpcvdj.recombination.repertoire import Repertoire

if TYPE_CHECKING:
    # This module is slow to import, and the help needs the defaults of plans.
    from hpcvdj.repertoires.reading import Reading


class Plan:
    """What a run computes for its junctions, and how.  The same run layer serves all plans.

    method             the name of the method
    backend            the name of a `Backend`, or `auto`
    threads_per_block  tasks in a block; ranks share work in whole blocks
    strict_binding     two ranks on one GPU are an error, not a warning
    identity           the attributes of results that two runs must have in common, by name
    """

    method: str
    backend: str
    threads_per_block: int
    strict_binding: bool
    identity: ClassVar[tuple[str, ...]]

    def method_class(self) -> Method:
        """Return the method.  Raise InputError if there is none of that name."""
        raise NotImplementedError

    def reads(self, reading: "Reading") -> "Reading":
        """Return how to read junctions for the plan."""
        raise NotImplementedError

    def settled(self, longest: int) -> Self:
        """Return the plan for junctions of at most `longest` nt.  Raise InputError if the method cannot take them."""
        return self

    @property
    def sliceable(self) -> bool:
        """Whether each slice can be computed by itself."""
        try:
            self.require_sliceable()
        except InputError:
            return False
        return True

    def require_sliceable(self) -> None:
        """Raise InputError if slices cannot be computed by themselves."""

    def problem(self, repertoire: Repertoire, reference: Any) -> Any:
        """Return the problem for the kernels, once the plan is settled."""
        raise NotImplementedError

    @property
    def judged(self) -> tuple[str, ...]:
        """The columns for which the summary says how many junctions anyone would make; see `Makers`."""
        return ()

    def judged_values(self, problem: Any, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the values of the productive junctions of a problem for `Makers`, float64 [judged, junctions].

        values  [junctions, columns]: the computed values
        """
        raise NotImplementedError

    def recorded(self) -> dict[str, Any]:
        """Return what results record of the plan."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]
