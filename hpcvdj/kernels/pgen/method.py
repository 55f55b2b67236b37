"""The method that computes generation probabilities."""

from hpcvdj.kernels.method import Method, on_each_backend
from hpcvdj.kernels.quantities import Pgen
from hpcvdj.recombination.repertoire import PGEN_COLUMNS


class ForwardSum(Method):
    """Sums over all scenarios at once, from both ends to D; see `hpcvdj.kernels.pgen.tables`."""

    name = "forward-sum"
    kernels = on_each_backend("hpcvdj.kernels.pgen.pgen_{}.PgenKernel")

    def __init__(self, names: tuple[str, ...] = PGEN_COLUMNS) -> None:
        self.names = names

    def quantity(self) -> Pgen:
        """Generation probabilities."""
        return Pgen(self.names)


class SelectedSum(ForwardSum):
    """The same, with the selection factor of the model."""

    kernels = on_each_backend("hpcvdj.probabilities.selected.{}")
