"""Rows that are dealt without a table."""

from hpcvdj.chance.dealing import ReadRows, _dealt
from hpcvdj.chance.parts import part_of
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.runs.run import Run


def dealt_of(junctions, model):
    """The rows of junctions, as `deal` returns those of a table that a single rank has read."""
    read = ReadRows()
    read.add(junctions)
    part = part_of(junctions, model, reads=junctions.reads is not None)
    return _dealt([part], read, junctions.repertoire_ids or [], Run())


def read_together(table, model, reading):
    """The junctions of a table in memory whose rows name their repertoires."""
    return Inputs.of_table(table, reading, together=True).read(model)
