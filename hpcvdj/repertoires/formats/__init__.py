"""Formats of tables, in the order in which they are tried; a table of none of them is taken for an AIRR table."""

from hpcvdj.repertoires.formats import adaptive as adaptive
from hpcvdj.repertoires.formats import airr as airr
from hpcvdj.repertoires.formats import immunarch as immunarch
from hpcvdj.repertoires.formats import vdjtools as vdjtools
from hpcvdj.repertoires.formats.format import (
    BY_HEADER,
    REASON,
    Field,
    Format,
    Opening,
    Translation,
    format_of,
    names_of_headerless,
    readable,
)

__all__ = [
    "BY_HEADER",
    "REASON",
    "Field",
    "Format",
    "Opening",
    "Translation",
    "format_of",
    "names_of_headerless",
    "readable",
]
