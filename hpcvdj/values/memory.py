"""Compute the values of tables in memory."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from hpcvdj.recombination.makers import Makers
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Reference
from hpcvdj.repertoires.tally import Tally, tally_of
from hpcvdj.results.lookup import Lookup
from hpcvdj.runs.run import Run
from hpcvdj.values.compute import count_in_memory
from hpcvdj.values.plan import Plan


def values_of(inputs: Inputs, reference: Reference, config: Plan) -> tuple[pa.Table, Tally, Makers | None]:
    """Compute the values of each row of a table, on this machine, as columns of a pyarrow Table.

    Returns also what became of the rows and, if probabilities are computed, who makes the junctions.  Raises InputError
    for bad input.
    """
    read = inputs.read(reference)
    config = config.settled(read.repertoire.longest)
    method = config.method_class()
    problem = config.problem(read.repertoire, reference)
    values = count_in_memory(problem, config, Run())
    assert values is not None
    nonzero = np.zeros(len(values), dtype=bool)
    method.quantity().sums(values, nonzero)
    tally = replace(tally_of(read), max_n=getattr(config, "max_n", 0), nonzero=int(nonzero.sum()))
    columns = Lookup(method.quantity(), values, read.row, read.excluded).columns(0, read.rows_read)
    makers = Makers.of(config.judged, [config.judged_values(problem, values)]) if config.judged else None
    return pa.table(columns), tally, makers
