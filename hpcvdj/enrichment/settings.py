"""The settings of enrichment: how neighbourhoods are tested."""

from dataclasses import dataclass
from typing import Annotated

from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.options import Option, Settings
from hpcvdj.recombination.calls import Genes

FEWEST_NEIGHBOURS = 2
"""Clonotypes with fewer neighbours are not tested by default; their p-value counts as 1."""


@dataclass(frozen=True, kw_only=True)
class EnrichmentSettings(Settings):
    """How neighbourhoods are tested."""

    kappa: Annotated[
        float | None,
        Option("by how much selection makes neighbourhoods denser than recombination alone: 1 for generated junctions",
               unset="estimated for each length", above=0),
    ] = None  # fmt: skip
    min_neighbours: Annotated[int, Option("test clonotypes with at least so many neighbours", least=1)] = (
        FEWEST_NEIGHBOURS
    )
    max_q: Annotated[
        float, Option("the false discovery rate up to which clonotypes are hits, which form clusters", above=0, below=1)
    ] = 0.001
    seed: Annotated[
        int,
        Option("seed of the clonotypes that are drawn to estimate kappa, and of randomised p-values",
               shell="seed of what is drawn", least=0),
    ] = 0  # fmt: skip
    selection: Annotated[
        bool,
        Option("take the model's selection factor (hpcvdj infer-selection) into account, if it has one",
               shell="take the model's selection factor into account, if it has one"),
    ] = True  # fmt: skip
    genes: Annotated[
        Genes,
        Option("`call`: neighbours have the V and J genes of a clonotype; `any`: calls are not read, as of a list of "
               "CDR3s, and all junctions are of one class, without a selection factor",
               shell="`any`: without calls, as of a list of CDR3s"),
    ] = "call"  # fmt: skip
    backend: BackendName = AUTO
    strict_binding: StrictBinding = False
