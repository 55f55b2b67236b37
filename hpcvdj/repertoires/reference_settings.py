"""The options of users for the germline table or the model that calls refer to."""

from dataclasses import dataclass
from typing import Annotated

from hpcvdj.errors import choices
from hpcvdj.options import Option, Settings, setting
from hpcvdj.recombination.germline import (
    LARGEST_MAX_P,
    MAX_P,
    DAlleles,
    DFormConvention,
    Germline,
    Tables,
    read_germline,
)

DForms = Annotated[
    str,
    Option("`paper` counts D forms once for each pair of chew-backs, `distinct` each string once per gene",
           choices=lambda: choices(DFormConvention), more=True),
]  # fmt: skip
"""How D forms are counted: the name of a `DFormConvention`."""

Joint = Annotated[
    bool, Option("take P(V, D, J) as a model of IGH has it; by default P(V) P(D, J), as in OLGA", more=True)
]


@dataclass(frozen=True)
class GermlineSettings(Settings):
    """Which segments a germline table has."""

    d_alleles: DAlleles = setting("D alleles that take part: of each gene the `first` functional one, or `all` "
                                  "functional ones", "first", more=True)  # fmt: skip
    max_p: int = setting("the largest number of P-nucleotides at one end of a segment", MAX_P, least=0,
                         most=LARGEST_MAX_P, more=True)  # fmt: skip

    def read(self, table: Tables) -> Germline:
        """Read a germline table, as of `read_germline`."""
        return read_germline(table, max_p=self.max_p, d_alleles=self.d_alleles)
