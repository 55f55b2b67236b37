"""The rows of a table file, as readers read them."""

from hpcvdj.repertoires.formats.format import BY_HEADER
from hpcvdj.repertoires.readers import open_table


def read_batches(path, columns=None, opening=BY_HEADER):
    """The batches of `TableReader.batches`."""
    return open_table(path, opening).batches(columns)
