"""Rows that are dealt without a table."""

from hpcvdj.chance.dealing import ReadRows, _dealt, _part
from hpcvdj.runs.run import Run


def dealt_of(junctions, model):
    """The rows of junctions, as `deal` returns those of a table that a single rank has read."""
    read = ReadRows()
    read.add(junctions)
    part = _part(junctions, model, reads=junctions.reads is not None)
    return _dealt([part], read, junctions.repertoire_ids or [], Run())
