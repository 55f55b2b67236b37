"""Formats of tables, in the order in which they are tried; a table of none of them is taken for an AIRR table."""

from hpcvdj.repertoires.formats import airr as airr

# A table with AIRR fields is an AIRR table, whatever other columns it has.
# isort: split
from hpcvdj.repertoires.formats import adaptive as adaptive
from hpcvdj.repertoires.formats import changeo as changeo
from hpcvdj.repertoires.formats import immunarch as immunarch
from hpcvdj.repertoires.formats import listed as listed
from hpcvdj.repertoires.formats import mixcr as mixcr
from hpcvdj.repertoires.formats import olga as olga
from hpcvdj.repertoires.formats import refused as refused
from hpcvdj.repertoires.formats import tcrdist as tcrdist
from hpcvdj.repertoires.formats import tenx as tenx
from hpcvdj.repertoires.formats import trust4 as trust4
from hpcvdj.repertoires.formats import vdjtools as vdjtools
from hpcvdj.repertoires.formats.airr import REQUIRED
from hpcvdj.repertoires.formats.format import (
    AIRR,
    BY_HEADER,
    REASON,
    Field,
    Format,
    Opening,
    RowError,
    Translation,
    format_of,
    may_lack_from,
    names_of_headerless,
    readable,
    resembled,
)

__all__ = [
    "AIRR",
    "BY_HEADER",
    "REASON",
    "REQUIRED",
    "Field",
    "Format",
    "Opening",
    "RowError",
    "Translation",
    "format_of",
    "may_lack_from",
    "names_of_headerless",
    "readable",
    "resembled",
]
