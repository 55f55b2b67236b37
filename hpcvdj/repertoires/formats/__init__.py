"""Formats of tables, in the order in which they are tried.  A table that none recognises is read as an AIRR table."""

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
from hpcvdj.repertoires.formats.airr import REQUIRED as REQUIRED
from hpcvdj.repertoires.formats.format import AIRR as AIRR
from hpcvdj.repertoires.formats.format import BY_HEADER as BY_HEADER
from hpcvdj.repertoires.formats.format import REASON as REASON
from hpcvdj.repertoires.formats.format import Format as Format
from hpcvdj.repertoires.formats.format import Opening as Opening
from hpcvdj.repertoires.formats.format import RowError as RowError
from hpcvdj.repertoires.formats.format import Translation as Translation
from hpcvdj.repertoires.formats.format import format_of as format_of
from hpcvdj.repertoires.formats.format import may_lack_from as may_lack_from
from hpcvdj.repertoires.formats.format import names_of_headerless as names_of_headerless
from hpcvdj.repertoires.formats.format import readable as readable
from hpcvdj.repertoires.formats.format import resembled as resembled
