"""The options of users for opening and reading tables, and for the germline table or the model that calls refer to."""

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

from hpcvdj.errors import choices, log, option
from hpcvdj.options import Option, Settings, setting
from hpcvdj.recombination import germline
from hpcvdj.recombination.calls import Policy
from hpcvdj.recombination.repertoire import SequenceField

if TYPE_CHECKING:
    # The help needs this module, and these are slow to import.
    from hpcvdj.repertoires.formats.format import Opening
    from hpcvdj.repertoires.reading import Reading


MISSPELLED = 0.85
"""How like a field, as of `difflib`, a name must be to be taken for a misspelling of it."""


def pairs_in(text: str) -> dict[str, str]:
    """`a=b,c=d` as a dict; ValueError for other texts, and for names that are there twice."""
    pairs = [[part.strip() for part in pair.split("=", 1)] for pair in text.split(",") if pair.strip()]
    if not all(len(pair) == 2 and all(pair) for pair in pairs) or len({pair[0] for pair in pairs}) < len(pairs):
        raise ValueError(text)
    return dict(pairs)


class TableSettings(Settings):
    """How tables are opened."""

    format: str | None = setting("the format of the tables, as `hpcvdj formats` lists them", None, metavar="FORMAT",
                                 unset="by the header")  # fmt: skip
    columns: dict[str, str] | None = setting(
        "which columns are which AIRR fields, as in {junction: cdr3nt, v_call: v}", None,
        shell="which columns are which AIRR fields, as in junction=cdr3nt,v_call=v", metavar="FIELD=COLUMN",
        parse=pairs_in, remedy="give FIELD=COLUMN, each field once, as in junction=cdr3nt,v_call=v")  # fmt: skip

    def opening(self) -> "Opening":
        """How tables are opened; OptionError for an unknown format."""
        from hpcvdj.repertoires.formats.format import OF_AIRR, READ, Opening

        for name in self.columns or {}:
            if name not in (*READ, *OF_AIRR) and (meant := get_close_matches(name, READ, 1, MISSPELLED)):
                log.warning("%s: no field that is read; is %s meant?", option("columns", name), meant[0])
        return Opening(self.format, tuple((self.columns or {}).items()))


Strict = Annotated[bool, Option("fail on the first row that cannot be counted", more=True)]


class RowSettings(Settings, kw_only=True):
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


DForms = Annotated[
    str,
    Option("`paper` counts D forms once for each pair of chew-backs, `distinct` each string once per gene, or per "
           "allele if all take part",
           choices=lambda: choices(germline.DFormConvention), more=True),
]  # fmt: skip
"""How D forms are counted: the name of a `DFormConvention`."""

Joint = Annotated[
    bool, Option("take P(V, D, J) as a model of IGH has it; by default P(V) P(D, J), as in OLGA", more=True)
]


class GermlineSettings(Settings):
    """Which segments a germline table has."""

    d_alleles: germline.DAlleles = setting(
        "D alleles that take part: of each gene the `first` functional one, or `all` functional ones", "first",
        more=True)  # fmt: skip
    max_p: int = setting("the largest number of P-nucleotides at one end of a segment", germline.MAX_P, least=0,
                         most=germline.LARGEST_MAX_P, more=True)  # fmt: skip

    def read(self, table: germline.Tables) -> germline.Germline:
        """Read a germline table, as of `read_germline`."""
        return germline.read_germline(table, max_p=self.max_p, d_alleles=self.d_alleles)
