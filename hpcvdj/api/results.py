"""Results: opened, shown on a page, and searched for junctions that individuals share."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hpcvdj.api.parameters import documented, unfolding
from hpcvdj.api.tables import model_of
from hpcvdj.counting.config import PgenConfig
from hpcvdj.counting.tables import values_of_table
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import Rows
from hpcvdj.reports.page import Grouping, write_report
from hpcvdj.results.reader import Result
from hpcvdj.sharing.convergence import Level, Observations, amino_acid_level, nucleotide_level, read


def open_result(path: str | Path) -> Result:
    """Open a result file of `hpcvdj count` for reading: `hpcvdj.open`.

    path  the result file

    Use it as a context manager, or `close` it.  A result in parts opens by its own name, with the parts beside it.
    """
    return Result(path)


@unfolding(grouping=Grouping)
def report(
    files: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    figures: str | Path | None = None,
    overwrite: bool = False,
    grouping: partial[Grouping],
) -> int:
    """Write a report: what the data support, and the tables and figures behind it, on one HTML page.

    files      outputs of hpcvdj, of any number of samples: results or tables of count and pgen; tables of sharing,
               contamination and enrich, each with its .json beside it
    output     the page to write
    figures    the folder to write each figure to, as PNG and SVG
    overwrite  {overwrite}
    {grouping}

    Returns the number of figures.  Raises InputError for files that a report does not show.
    """
    return write_report(_several(files), output, figures=figures, grouping=grouping(), overwrite=overwrite)


def _several(given: str | Path | Sequence[str | Path]) -> list[Any]:
    return [given] if isinstance(given, str | Path) else list(given)


@dataclass(frozen=True, repr=False)
class Convergence:
    """How many individuals have a junction, and how easily recombination makes it.

    nucleotides   a `Level`: the distinct nucleotide junctions
    amino_acids   a `Level`: the distinct amino-acid junctions
    observations  the rows that were used, and how many were not

    A level's `table` is a pyarrow Table of its junctions, those of most individuals first; `level.aucs(public=2)` says
    how well weight, pathways, length and probability predict which are in so many individuals; `level.write(path)`
    writes the table.
    """

    nucleotides: Level
    amino_acids: Level
    observations: Observations

    def __repr__(self) -> str:
        """How many individuals and junctions there are."""
        numbers = f"{len(self.nucleotides):,} nucleotide and {len(self.amino_acids):,} amino-acid junctions"
        return f"<Convergence of {len(self.observations.individuals):,} individuals: {numbers}>"


@documented
def convergence(
    results: str | Path | Sequence[str | Path],
    *,
    individual: str | None = None,
    rows: Rows = "productive",
    aa_with_genes: bool = False,
    junctions: str | Path | None = None,
    model: Model | str | Path | None = None,
    backend: str = AUTO,
) -> Convergence:
    """Compare the number of individuals that have a junction with how easily recombination makes it.

    results        {results}, counted with the same options
    individual     the column of the counted table that names the individual; by default each table is one, or, counted
                   together, each repertoire_id
    rows           `productive`: rows whose column `productive` is true, if the table has that column; `all`: every row
    aa_with_genes  distinguish amino-acid junctions of different V or J genes
    junctions      where the counted table is now (a folder, for several), if it was moved
    model          {model}; by default junctions are ranked by their weight, with a model by their probability
    backend        {backend}

    Returns a Convergence.  Raises InputError if no row can be used, or if the results were not counted alike.
    """
    paths = _several(results)
    loaded = None if model is None else model_of(model)
    place = None if junctions is None else Path(junctions)
    observations = read(paths, individual=individual, rows=rows, junctions=place)
    if not len(observations):
        remedy = "--rows all uses all counted rows" if observations.not_productive else "see what was excluded, and why"
        raise InputError(f"{paths[0]}: no row can be used: {observations.left_out}; {remedy}")
    levels = [nucleotide_level(observations), amino_acid_level(observations, with_genes=aa_with_genes)]
    if loaded is not None:
        levels = [_with_pgen(level, loaded, backend) for level in levels]
    return Convergence(levels[0], levels[1], observations)


def _with_pgen(level: Level, model: Model, backend: str) -> Level:
    config = PgenConfig((f"pgen_{level.sequence}",), level.genes, backend)
    return level.with_pgen(values_of_table(level.junctions(model), model, config)[0])
