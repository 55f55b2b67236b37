"""Improbable junctions that two individuals have: coincidences of these are so rare that they show contamination.

Of junctions with a probability below a threshold, chance puts n_i n_j Σ p² into both of two individuals with n_i and
n_j junctions.  Selection makes it more: about four times in pairs of human TRB repertoires of different studies
(docs/contamination.md).  The test allows for ten times.
"""

from dataclasses import dataclass

import numpy as np

from hpcvdj.chance.depth import Floats
from hpcvdj.cohorts.cohort import Counts

MAX_PGEN = 1e-11
"""Junctions of smaller probability (among productive ones) are improbable."""

SELECTION = 10
"""By how much selection may multiply the expected number."""

MAX_Q = 0.001
"""The q-value up to which a pair stands out."""

DUPLICATE = 0.5
"""Two individuals that share a larger part of the improbable junctions of one are the same sample."""

FEWEST = 50
"""Shared improbable junctions from which on this can be told."""


@dataclass(frozen=True)
class Pairs:
    """Improbable junctions of each two individuals, float64 or int64 [individuals, individuals].

    shared    that both have; on the diagonal those of each
    expected  by chance, without selection
    p_value   P(at least so many | Poisson with `SELECTION` times the expected number); 1 on the diagonal
    q_value   by Benjamini and Hochberg over the pairs; likewise
    """

    shared: Counts
    expected: Floats
    p_value: Floats
    q_value: Floats

    @staticmethod
    def of(shared: Counts, sizes: Counts, mean: float) -> "Pairs":
        """Of shared junctions [individuals, individuals], and the sizes of individuals.

        mean  Σ p² of improbable junctions
        """
        from scipy.special import gammainc
        from scipy.stats import false_discovery_control

        expected = np.asarray(np.multiply.outer(sizes, sizes) * mean, dtype=np.float64)
        upper = np.triu_indices(len(sizes), 1)
        own = np.where(shared[upper] > 0, gammainc(np.maximum(shared[upper], 1), SELECTION * expected[upper]), 1.0)
        p_value: Floats = np.ones(shared.shape)
        q_value: Floats = np.ones(shared.shape)
        for matrix, values in ((p_value, own), (q_value, false_discovery_control(own))):
            matrix[upper] = values
            matrix.T[upper] = values
        return Pairs(shared, expected, p_value, q_value)

    @property
    def standing_out(self) -> list[tuple[int, int]]:
        """Pairs that share more than chance and selection explain, the most improbable first."""
        found = np.argwhere(np.triu(self.q_value <= MAX_Q, 1))
        order = np.lexsort((*found.T[::-1], -self.shared[tuple(found.T)], self.p_value[tuple(found.T)]))
        return [(int(i), int(j)) for i, j in found[order]]

    def duplicate(self, low: Floats | Counts) -> tuple[int, int] | None:
        """Two individuals of which one has more than half of the other's improbable junctions.

        low  how many each has
        """
        share = np.where(self.shared >= FEWEST, self.shared, 0) / np.maximum(low, 1)[:, np.newaxis]
        np.fill_diagonal(share, 0)
        if share.max() <= DUPLICATE:
            return None
        i, j = np.unravel_index(share.argmax(), share.shape)
        return int(i), int(j)
