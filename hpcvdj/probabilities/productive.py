"""The probabilities of productive junctions, among productive recombinations."""

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.generation.letters import productive_rows
from hpcvdj.recombination.productive import FIRST, LAST, productive_probability
from hpcvdj.recombination.repertoire import CDR3_ENDS, PgenProblem, Repertoire
from hpcvdj.recombination.symbols import PRODUCTIVE_END
from hpcvdj.repertoires.genes import amino_acids, has_nucleotides

AMONG_PRODUCTIVE = "p_post"
"""The column whose values are always probabilities among productive recombinations."""


def among_productive(
    problem: PgenProblem, values: NDArray[np.float64], names: tuple[str, ...], *, divided: bool
) -> NDArray[np.float64]:
    """Return the probabilities of productive junctions among productive recombinations.

    values   float64 [junctions, columns]: the computed values
    names    the columns to return
    divided  whether the model's probabilities are already divided by P(productive)

    Returns float64 [names, productive junctions].
    """
    chance = 1.0 if divided else productive_probability(problem.model)
    # A model without productive junctions has no probabilities among them.
    rows = is_productive(problem.repertoire) & (chance > 0)
    chosen = [problem.names.index(name) for name in names]
    divisors = [1.0 if name == AMONG_PRODUCTIVE else chance or 1.0 for name in names]
    return np.ascontiguousarray((values[rows][:, chosen] / divisors).T)


def is_productive(repertoire: Repertoire) -> NDArray[np.bool_]:
    """Return whether each junction is productive, bool [junctions]; the last amino acid may be unknown."""
    if has_nucleotides(repertoire):
        productive = np.empty(len(repertoire), dtype=bool)
        productive_rows(repertoire.words, repertoire.lengths.astype(np.uint16), productive)
        return productive
    # Amino acids with a stop cannot be packed, so only the ends decide.
    letters, lengths = amino_acids(repertoire, np.arange(len(repertoire)))
    last = letters[np.arange(len(letters)), np.maximum(lengths - 1, 0)]
    ends = (
        np.isin(letters[:, 0], list(FIRST.encode())),
        np.isin(last, list((LAST + CDR3_ENDS[1] + PRODUCTIVE_END).encode())),
    )
    return np.asarray((lengths > 1) & ends[0] & ends[1])
