"""The options of users for opening and reading tables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from hpcvdj.options import Option, Settings, setting
from hpcvdj.recombination.calls import Policy
from hpcvdj.recombination.repertoire import SequenceField

if TYPE_CHECKING:
    # The help needs this module, and these are slow to import.
    from hpcvdj.repertoires.formats import Opening
    from hpcvdj.repertoires.reading import Reading


def pairs_in(text: str) -> dict[str, str]:
    """`a=b,c=d` as a dict; ValueError for other texts."""
    pairs = [[part.strip() for part in pair.split("=", 1)] for pair in text.split(",") if pair.strip()]
    if not all(len(pair) == 2 and all(pair) for pair in pairs):
        raise ValueError(text)
    return dict(pairs)


@dataclass(frozen=True)
class TableSettings(Settings):
    """How tables are opened."""

    format: str | None = setting("the format of the tables, as `hpcvdj formats` lists them", None, metavar="FORMAT",
                                 unset="by the header")  # fmt: skip
    columns: dict[str, str] | None = setting(
        "which columns are which AIRR fields, as in {junction: cdr3nt, v_call: v}", None,
        shell="which columns are which AIRR fields, as in junction=cdr3nt,v_call=v", metavar="FIELD=COLUMN",
        parse=pairs_in, remedy="give FIELD=COLUMN, as in junction=cdr3nt,v_call=v,j_call=j")  # fmt: skip

    def opening(self) -> "Opening":
        """How tables are opened; OptionError for an unknown format."""
        from hpcvdj.repertoires.formats import Opening

        return Opening(self.format, tuple((self.columns or {}).items()))


Strict = Annotated[bool, Option("fail on the first row that cannot be counted", more=True)]


@dataclass(frozen=True, kw_only=True)
class RowSettings(Settings):
    """How rows are read."""

    sequence_field: SequenceField = setting("the AIRR field to read: `junction`, whose Cys and Phe/Trp codons are "
                                            "removed, or `cdr3`", "junction")  # fmt: skip
    ambiguous_calls: Policy = setting("rows with several calls (TRBV6-1,TRBV6-4) of different segments: `exclude`, or "
                                      "use the `first`", "exclude")  # fmt: skip
    unlisted_alleles: Policy = setting("rows with an allele that the germline table lacks, of a gene that it lists: "
                                       "`exclude`, or use the gene's `first`", "exclude")  # fmt: skip

    def reading(self, **further: Any) -> "Reading":
        """How junctions are read; `further` are parameters of `Reading`."""
        from hpcvdj.recombination.calls import CallPolicy
        from hpcvdj.repertoires.reading import Reading

        return Reading(self.sequence_field, CallPolicy(self.ambiguous_calls, self.unlisted_alleles), **further)
