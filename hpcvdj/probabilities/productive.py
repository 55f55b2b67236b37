"""The probabilities of productive junctions, among productive recombinations."""

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.generation.letters import productive_rows
from hpcvdj.probabilities.selected import FIRST_RESIDUE, LAST_RESIDUE, amino_acids_of
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.recombination.repertoire import CDR3_ENDS, PgenProblem

AMONG_PRODUCTIVE = "p_post"
"""The column whose values are probabilities among productive recombinations already."""

_LAST = LAST_RESIDUE | np.isin(np.arange(256), list(CDR3_ENDS[1].encode()))


def among_productive(
    problem: PgenProblem, values: NDArray[np.float64], names: tuple[str, ...], *, divided: bool
) -> NDArray[np.float64]:
    """The probabilities of the productive junctions of a problem among productive recombinations.

    values   float64 [junctions, columns]: what was computed
    names    of the columns that are wanted
    divided  the model's probabilities are divided by P(productive) already

    Returns float64 [names, productive junctions].
    """
    chance = 1.0 if divided else productive_probability(problem.model)
    # A model that makes no productive junction says nothing of them.
    rows = is_productive(problem) & (chance > 0)
    chosen = [problem.names.index(name) for name in names]
    divisors = [1.0 if name == AMONG_PRODUCTIVE else chance or 1.0 for name in names]
    return np.ascontiguousarray((values[rows][:, chosen] / divisors).T)


def is_productive(problem: PgenProblem) -> NDArray[np.bool_]:
    """Whether each junction is productive, bool [junctions]; amino acids whose last residue is not known may be."""
    repertoire = problem.repertoire
    if problem.symbols is None:
        productive = np.empty(len(repertoire), dtype=bool)
        productive_rows(repertoire.words, repertoire.lengths.astype(np.uint16), productive)
        return productive
    letters, lengths = amino_acids_of(problem, slice(0, len(repertoire)))
    last = letters[np.arange(len(letters)), np.maximum(lengths - 1, 0)]
    # No stop can be packed.
    return np.asarray((lengths > 1) & FIRST_RESIDUE[letters[:, 0]] & _LAST[last])
