"""What is done about a model that does not fit a table, and how many sequences say what chance makes."""

from dataclasses import dataclass
from typing import Annotated

from hpcvdj.options import Option, Settings
from hpcvdj.recombination.calls import Ties
from hpcvdj.recombination.models import Model

MOST_DRAWS = 10**8
"""Sequences to draw at most: root keeps all, with their probabilities, which takes tens of gigabytes."""

Draws = Annotated[
    int,
    Option("productive sequences to draw from the model, to find out what chance makes", least=1000, most=MOST_DRAWS),
]
TiesOption = Annotated[
    Ties, Option("`auto`: V genes that reads hardly tell apart, such as TRBV12-3 and TRBV12-4, are taken together")
]
KeepMisfits = Annotated[
    bool,
    Option("test what does not fit the model, too: genes that it makes wrongly, rare alleles, contradicted calls",
           more=True),
]  # fmt: skip
Force = Annotated[bool, Option("go on if the model cannot make half of the rows", more=True)]


@dataclass(frozen=True)
class Checks(Settings):
    """What is done about a model that does not fit the table."""

    ties: TiesOption = "none"
    keep_misfits: KeepMisfits = False
    force: Force = False

    def model(self, model: Model) -> Model:
        """The model whose probabilities are computed."""
        return model.with_ties() if self.ties == "auto" else model


CHECKS = Checks()
"""What is done by default."""
