"""The options for models that do not fit a table, for junctions that take part, and for draws."""

from dataclasses import replace
from typing import Annotated

from hpcvdj.errors import InputError, option
from hpcvdj.options import Option, Settings, setting
from hpcvdj.recombination.calls import Genes, MissingAlleles, Ties
from hpcvdj.recombination.models import Model

MOST_DRAWS = 10**8
"""The largest number of draws: root keeps them with their probabilities, which takes tens of gigabytes."""

Draws = Annotated[
    int,
    Option("productive sequences to draw from the model, to find out what chance makes", least=1000, most=MOST_DRAWS,
           shell="productive sequences to draw from the model"),
]  # fmt: skip
TiesOption = Annotated[
    Ties, Option("`auto`: V genes that reads hardly tell apart, such as TRBV12-3 and TRBV12-4, are taken together")
]
MissingAllelesOption = Annotated[
    MissingAlleles,
    Option("rows with an allele that the model lacks or never makes, of a gene that it makes: `exclude` them (or give "
           "them probability 0), or take all alleles of the `gene`", more=True),
]  # fmt: skip
KeepMisfits = Annotated[
    bool,
    Option("test what does not fit the model, too: genes that it makes wrongly, rare alleles, contradicted calls",
           more=True),
]  # fmt: skip
Force = Annotated[bool, Option("go on if the model cannot make half of the rows", more=True)]


class Checks(Settings, kw_only=True):
    """What is done if the model does not fit the table."""

    ties: TiesOption = "none"
    keep_misfits: KeepMisfits = False
    force: Force = False
    missing_alleles: MissingAllelesOption = "exclude"

    def adapted(self, model: Model, genes: Genes = "call") -> Model:
        """Return the model whose probabilities are computed.

        Raises InputError for options about genes if no calls are read, which `genes` says.
        """
        for name, value, without in (("ties", self.ties, "none"), ("missing_alleles", self.missing_alleles, "exclude")):
            if genes == "any" and value != without:
                raise InputError(f"{option(name, value)}: no V and J calls are read; leave it out")
        if self.missing_alleles == "gene":
            model = replace(model, by_gene=True)
        return model.with_ties() if self.ties == "auto" else model


class ClonotypeChoice(Settings, kw_only=True):
    """Which junctions take part."""

    min_reads: int = setting("leave out nucleotide junctions with fewer reads", 1, least=1)
    likely_errors: bool = setting(
        "keep likely sequencing errors: junctions that differ in one base from another one of any V and J with 20 "
        "times as many reads (duplicate_count), in two bases from one with 400 times, or in three from one with 8,000 "
        "times", False, shell="keep likely sequencing errors, as docs/enrich.md defines them")  # fmt: skip

    def require_reads(self, lacking: str) -> None:
        """Raise InputError, as every rank must, if reads are needed; `lacking` says why they are not known."""
        if self.min_reads > 1:
            needs = f"which {option('min_reads', self.min_reads)} needs; leave it out"
            raise InputError(f"{lacking}, {needs}").everywhere()
