"""Sums over the codons of symbols that the kernels need.

Where a codon is cut, a weight has four components.  After its first base they are indexed by that base.  After its
second base they are indexed by the third base, which is still to come; the first two are summed over all that fit.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.pgen.tables import Chain, DForms
from hpcvdj.kernels.sums import mixed
from hpcvdj.recombination.models import Array
from hpcvdj.recombination.symbols import Alphabet


class CodonSteps(NamedTuple):
    """How an insertion goes through a codon, for each symbol s; read from V, or from J with mirrored codons.

    From the last base x of the codon before: one[0, x, c], two[s, x, c], whole[s, x, c] end after one, two or
    three bases.  At the codon's beginning: first_two[s, c], first_whole[s, c].  After its first base x: rest_two[s, x,
    c], rest_whole[s, x, c].  c is the component of the weight that results; of `whole` it is the last base.

    fits  [symbols, 16, 4]: 1 for a codon of a symbol, by its first two bases and its third
    """

    one: Array
    two: Array
    whole: Array
    first_two: Array
    first_whole: Array
    rest_two: Array
    rest_whole: Array
    fits: Array

    @staticmethod
    def of(codons: Array, chain: Chain, *, mirrored: bool) -> "CodonSteps":
        """The steps of a chain; `codons` is 1 for a codon of a symbol, float64 [symbols, 4, 4, 4]."""
        fits = codons.transpose(0, 3, 2, 1) if mirrored else codons
        step, first = chain.step, chain.first
        # einsum leaves the order of axes to itself; numba would compile each layout.
        return CodonSteps(
            one=step[None],
            two=np.einsum("xa,ab,sabc->sxc", step, step, fits, order="C"),
            whole=np.einsum("xa,ab,bc,sabc->sxc", step, step, step, fits, order="C"),
            first_two=np.einsum("a,ab,sabc->sc", first, step, fits, order="C"),
            first_whole=np.einsum("a,ab,bc,sabc->sc", first, step, step, fits, order="C"),
            rest_two=np.einsum("b,sabc->sac", first, fits, order="C"),
            rest_whole=np.einsum("b,bc,sabc->sac", first, step, fits, order="C"),
            fits=np.ascontiguousarray(fits.reshape(len(fits), 16, 4)),
        )


class CodonForms(NamedTuple):
    """The D forms that have no whole codon, against the codons of symbols s and r.

    By where in a codon they begin and where they end, with the components of the weights on both sides; t is a table
    of D genes, as of `DForms.weights`.

    codons        uint64 [s]           by bits: the codons of each symbol
    first_open    [s, c, 16]           1 for a codon, by its first base and the other two
    last_open     [s, c, 16]           1 for a codon, by its last base and the other two
    empty         [t]                  the empty form
    single        [t, c]               a codon's first base, or its last
    ends_two      [t, s, c]            a codon's first two bases
    one_two       [t, s, c, c]         a codon's second base
    one_three     [t, s, c]            a codon's last two bases
    across        [t, c, c]            the last base of a codon and the first of the next
    one_one       [t, s, c, c]         the last two and the first
    two_two       [t, r, c, c]         the last and the first two
    one_over_two  [t, s, r, c, c]      the last two and the first two
    """

    codons: NDArray[np.uint64]
    first_open: Array
    last_open: Array
    empty: Array
    single: Array
    across: Array
    ends_two: Array
    one_two: Array
    one_three: Array
    one_one: Array
    two_two: Array
    one_over_two: Array

    @staticmethod
    def of(alphabet: Alphabet, forms: DForms) -> "CodonForms":
        """The D forms of a model's tables."""
        fits = alphabet.codons.astype(np.float64)
        w1, w2, w3, w4 = map(forms.of_length, range(1, 5))
        tables, symbols = len(w1), len(fits)
        # By the two bases of a codon that are summed over.
        first_two, last_two = (fits.transpose(axes).reshape(16, -1) for axes in ((1, 2, 0, 3), (2, 3, 0, 1)))
        one_one = mixed(w3.transpose(0, 3, 1, 2).reshape(-1, 16), last_two).reshape(tables, 4, symbols, 4)
        two_two = mixed(w3.reshape(-1, 16), first_two).reshape(tables, 4, symbols, 4)
        last_of_one = mixed(w4.transpose(0, 3, 4, 1, 2).reshape(-1, 16), last_two).reshape(tables, 4, 4, symbols, 4)
        over = mixed(last_of_one.transpose(0, 3, 4, 1, 2).reshape(-1, 16), first_two)
        arrays: dict[str, NDArray[Any]] = {
            "codons": alphabet.codon_sets,
            "first_open": fits.reshape(-1, 4, 16),
            "last_open": fits.transpose(0, 3, 1, 2).reshape(-1, 4, 16),
            "empty": forms.weights[:, 0],
            "single": w1,
            "across": w2,
            "ends_two": mixed(w2.reshape(-1, 16), first_two).reshape(tables, symbols, 4),
            "one_two": mixed(w1, fits.transpose(2, 0, 1, 3).reshape(4, -1)).reshape(tables, symbols, 4, 4),
            "one_three": mixed(w2.reshape(-1, 16), last_two).reshape(tables, symbols, 4),
            "one_one": one_one.transpose(0, 2, 3, 1),
            "two_two": two_two.transpose(0, 2, 1, 3),
            "one_over_two": over.reshape(tables, symbols, 4, symbols, 4).transpose(0, 1, 3, 2, 4),
        }
        return CodonForms(**{name: np.ascontiguousarray(values) for name, values in arrays.items()})
