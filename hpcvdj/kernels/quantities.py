"""Quantities: what kernels return for each junction, and the columns that it has in results and tables."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.recombination.repertoire import PGEN_COLUMNS, SELECTION_COLUMNS


class Quantity:
    """What a kernel returns: values [junctions, columns] of one dtype.

    name      in the attributes of results
    dataset   of result files
    dtype     of the values
    axis      the columns, for the documentation
    meaning   likewise
    excluded  column of exported tables that says why a row has no values
    number    the Python type of a sum of values
    """

    name: ClassVar[str]
    dataset: ClassVar[str]
    dtype: ClassVar[type[np.generic]]
    axis: ClassVar[str]
    meaning: ClassVar[str]
    excluded: ClassVar[str]
    number: ClassVar[type[int] | type[float]] = int

    def width(self, problem: Any) -> int:
        """How many columns there are for a problem."""
        return int(problem.columns)

    def recorded(self, attributes: Mapping[str, Any]) -> "Quantity":
        """The quantity of a result with these attributes."""
        return self

    def attributes(self) -> dict[str, Any]:
        """What results record of it."""
        return {"quantity": self.name}

    def columns(self, width: int) -> list[str]:
        """The names of `width` columns in exported tables."""
        raise NotImplementedError

    def derived(self, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Further columns of exported tables, made from the values."""
        return {}

    def totals(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sum of each junction's values, [junctions], in the dtype of the values."""
        return np.asarray(values.sum(axis=1, dtype=self.dtype))

    def summary(self, sums: list[Any], nonzero: int, junctions: int) -> dict[str, str]:
        """What `hpcvdj count` prints: a word and what to say of it.

        sums     of the columns
        nonzero  how many of the `junctions` have a value other than 0
        """
        return {self.name: f"{nonzero:,} of {junctions:,} junctions have a value other than 0"}

    def sums(self, values: NDArray[Any], nonzero: NDArray[np.bool_]) -> list[Any]:
        """The sums of the columns; sets `nonzero`, bool [junctions], where a junction has a value other than 0."""
        nonzero |= (values != 0).any(axis=1)
        sums: list[Any] = values.sum(axis=0).tolist()
        return sums


class Pathways(Quantity):
    """Recombination pathways by number of n-nucleotides."""

    name = "pathways"
    dataset = "counters"
    dtype = np.uint64
    axis = "N + 1"
    meaning = "pathways of each junction; column m has those with m n-nucleotides"
    excluded = "pathways_excluded"

    def columns(self, width: int) -> list[str]:
        """pathways_n0, pathways_n1, …"""
        return [f"pathways_n{m}" for m in range(width)]

    def derived(self, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """pathways_total: pathways of all n-lengths counted; weight: those of `weights`."""
        return {"pathways_total": self.totals(values), "weight": self.weights(values)}

    def weights(self, values: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The weight of each junction, Σ values[:, m] · 4^−m, float64 [junctions], of values uint64 [junctions, N + 1].

        A pathway with m n-nucleotides makes a junction only if all m bases are the right ones, which is one in 4^m if
        all strings of n-nucleotides are equally likely.  It is not a generation probability: genes, forms and n-lengths
        all count the same.  It sums the n-lengths that were counted, so it grows with the largest one.

        >>> Pathways().weights(np.array([[3, 18, 42]], dtype=np.uint64)).tolist()
        [10.125]
        """
        # Summed n-length by n-length, so that trailing columns of zeros cannot change the last digit.
        total = np.zeros(len(values))
        for m in range(values.shape[1]):
            total += values[:, m] * 0.25**m
        return total

    def summary(self, sums: list[Any], nonzero: int, junctions: int) -> dict[str, str]:
        """All pathways, and the junctions that have one."""
        lines = {"pathways": f"{sum(sums):,} in all, n-lengths 0-{len(sums) - 1}"}
        if junctions:
            share = 100 * nonzero / junctions
            lines["reached"] = f"{nonzero:,} junctions ({share:.2f} %) have at least one pathway"
        return lines

    def sums(self, values: NDArray[Any], nonzero: NDArray[np.bool_]) -> list[Any]:
        """Exact sums, as Python integers, however large."""
        from hpcvdj.kernels.sums import exact_column_sums  # compiled by numba, which is slow to import

        return exact_column_sums(values, nonzero)


SELECTION_REASONS = (
    "",
    "out of frame",
    "not productive",
    "has symbols for several amino acids",
    "several V or J genes",
)
"""Why a junction has no selection factor; the column `q_excluded` of results has the place of the reason."""


class Pgen(Quantity):
    """Generation probabilities; `names` are those of `PGEN_COLUMNS` that were computed, and `SELECTION_COLUMNS`."""

    name = "pgen"
    dataset = "pgen"
    dtype = np.float64
    axis = "names"
    meaning = "generation probabilities of each junction; NaN where it has none"
    excluded = "pgen_excluded"

    def __init__(self, names: tuple[str, ...] = PGEN_COLUMNS) -> None:
        self.names = names

    def recorded(self, attributes: Mapping[str, Any]) -> "Pgen":
        """With the names of the result; ValueError if they are others than there can be."""
        names = json.loads(attributes["columns"])
        known = (*PGEN_COLUMNS, *SELECTION_COLUMNS)
        if not isinstance(names, list) or [name for name in known if name in names] != names:
            raise ValueError(f"columns are {names!r}")
        return Pgen(tuple(names))

    def attributes(self) -> dict[str, Any]:
        """With the names of the columns."""
        return {"quantity": self.name, "columns": list(self.names)}

    def columns(self, width: int) -> list[str]:
        """The names."""
        return list(self.names)

    def derived(self, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The reasons of `q_excluded` in words."""
        if "q_excluded" not in self.names:
            return {}
        place = values[:, self.names.index("q_excluded")].astype(np.int64)
        return {"q_excluded": np.array(SELECTION_REASONS)[place]}

    def sums(self, values: NDArray[Any], nonzero: NDArray[np.bool_]) -> list[Any]:
        """How many values above 0 each column has: sums of probabilities would depend on the order of rows."""
        probabilities = [place for place, name in enumerate(self.names) if name in PGEN_COLUMNS]
        nonzero |= (values[:, probabilities] > 0).any(axis=1)
        positive: list[Any] = (values > 0).sum(axis=0).tolist()
        return positive

    def summary(self, sums: list[Any], nonzero: int, junctions: int) -> dict[str, str]:
        """How many junctions can be made."""
        frame = "" if "pgen_nt" not in self.names else "; those out of frame have no amino acids"
        said = {name: f"have a probability above 0{frame * (name != 'pgen_nt')}" for name in PGEN_COLUMNS} | {
            "q_factor": "have a selection factor"
        }
        return {
            name: f"{positive:,} of {junctions:,} junctions {said[name]}"
            for name, positive in zip(self.names, sums, strict=True)
            if name in said
        }
