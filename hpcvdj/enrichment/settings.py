"""The settings of enrichment: how neighbourhoods are tested."""

from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.options import Settings, setting
from hpcvdj.recombination.calls import Genes

FEWEST_NEIGHBOURS = 2
"""Clonotypes with fewer neighbours are not tested by default; their p-value counts as 1."""


class EnrichmentSettings(Settings, kw_only=True):
    """How neighbourhoods are tested."""

    kappa: float | None = setting("by how much selection makes neighbourhoods denser than recombination alone: 1 for "
                                  "generated junctions", None, unset="estimated for each length", above=0)  # fmt: skip
    min_neighbours: int = setting("test clonotypes with at least so many neighbours", FEWEST_NEIGHBOURS, least=1)
    max_q: float = setting("the false discovery rate up to which clonotypes are hits, which form clusters", 0.001,
                           above=0, below=1)  # fmt: skip
    seed: int = setting("seed of the clonotypes that are drawn to estimate kappa, and of randomised p-values", 0,
                        shell="seed of what is drawn", least=0)  # fmt: skip
    selection: bool = setting("take the model's selection factor (hpcvdj infer-selection) into account, if it has one",
                              True, shell="take the model's selection factor into account, if it has one")  # fmt: skip
    genes: Genes = setting("`call`: neighbours have the V and J genes of a clonotype; `any`: calls are not read, as of "
                           "a list of CDR3s, and all junctions are of one class, without a selection factor", "call",
                           shell="`any`: without calls, as of a list of CDR3s")  # fmt: skip
    backend: BackendName = AUTO
    strict_binding: StrictBinding = False
