"""Sequences drawn from a model, generation probabilities, and the selection factor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.chance.depth import Draws
from hpcvdj.chance.p_values import Floats
from hpcvdj.generation.generate import generate
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.kernels.backends import Backend
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.recombination.repertoire import PgenProblem, Repertoire
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.repertoires.genes import amino_acids, as_read, by_gene, kinds_of
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import Reading, productive_reading
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.values.compute import count_in_memory


@dataclass(frozen=True)
class Chance:
    """A model, and how sequences are drawn from it and its probabilities are computed.

    draws           the number of productive sequences to draw
    seed            of the draws
    backend         where to compute
    strict_binding  two ranks on one GPU are an error, not a warning
    """

    model: Model
    draws: int
    seed: int
    backend: str
    strict_binding: bool

    def drawn(self, run: Run) -> Repertoire | None:
        """Draw sequences with their genes; all ranks draw, and only root gets them.  Once if the run is `keeping`."""

        def draw() -> Repertoire | None:
            plan = GenerationSettings(self.draws, seed=self.seed, productive=True)
            backend = run.bind(self.backend, strict=self.strict_binding)
            return recombined(self.model, plan, productive_reading(), backend, run)

        return run.once(("drawn", self.draws, self.seed), str(self.model.facts(selection=False)), draw)

    def probabilities(self, repertoire: Repertoire | None, names: tuple[str, ...], run: Run) -> Floats | None:
        """Compute generation probabilities of root's junctions, float64 [junctions, names], on root."""
        config = PgenConfig(names, backend=self.backend, strict_binding=self.strict_binding)
        return count_in_memory(PgenProblem(run.broadcast(repertoire), self.model, names), config, run)

    def among_productive(self, repertoire: Repertoire | None, names: tuple[str, ...], run: Run) -> Floats | None:
        """Compute the same probabilities among productive recombinations."""
        values = self.probabilities(repertoire, names, run)
        return None if values is None else values / productive_probability(self.model)

    def sampled(
        self, names: tuple[str, ...], factor: SelectionFactor | None, run: Run, like: Repertoire | None = None
    ) -> tuple[Floats, Draws]:
        """Draw junctions, of which every rank gets the probabilities among productive ones, float64 [draws].

        names  the member of `PGEN_COLUMNS` that is the probability
        like   junctions, as which the draws are read; root knows them
        """
        drawn = self.drawn(run)
        if drawn is not None and like is not None:
            drawn = as_read(drawn, like)
        p = self.among_productive(drawn, names, run)
        root = {"p": p[:, 0], "log_factor": log_factors(factor, drawn)} if drawn is not None and p is not None else None
        shared = run.broadcast(root)
        return shared["p"], Draws.of(**shared)

    def of_ranks(self, repertoires: Sequence[Repertoire], names: tuple[str, ...], run: Run) -> list[Floats]:
        """Compute the same probabilities of this rank's junctions, float64 [junctions, names] for each repertoire.

        The number of repertoires may differ between ranks.
        """
        backend = run.bind(self.backend, strict=self.strict_binding)
        productive = productive_probability(self.model)
        return [values / productive for values in probabilities_of_ranks(repertoires, self.model, names, run, backend)]


def probabilities_of_ranks(
    repertoires: Sequence[Repertoire], model: Model, names: tuple[str, ...], run: Run, backend: Backend
) -> list[Floats]:
    """Compute generation probabilities of this rank's junctions, float64 [junctions, names] for each repertoire.

    The number of repertoires may differ between ranks.
    """
    values_of: list[Floats] = []

    def compute(repertoire: Repertoire) -> None:
        alone = run.alone()
        # Only root shows progress.  With a target, pieces are short, so that signals are noticed.
        alone.shown, alone.target = run.is_root, run.target
        values = np.zeros((0, len(names)))
        if len(repertoire):
            values = count_in_memory(PgenProblem(repertoire, model, names), PgenConfig(names), alone, backend)  # type: ignore[assignment]
        values_of.append(values)

    run.each(repertoires, compute, NOTHING_YET)
    return values_of


def recombined(
    model: Model, plan: GenerationSettings, reading: Reading, backend: Backend, run: Run
) -> Repertoire | None:
    """Draw recombinations and read them, by genes; all ranks draw, and only root gets them."""
    batches = list(generate(model, plan, backend, run))
    if not run.is_root:
        return None
    table = pa.Table.from_batches(batches).select(["v_call", "j_call", "junction"])
    return by_gene(read_table(table, model, reading).repertoire, model)[0]


def log_factors(factor: SelectionFactor | None, repertoire: Repertoire, amino: Any = None) -> Floats:
    """Return log Q of junctions, float64 [junctions]; 0 without a factor.

    amino  the amino acids of the junctions, as `amino_acids` returns them, if they are known
    """
    if factor is None:
        return np.zeros(len(repertoire))
    letters, lengths = amino or amino_acids(repertoire, np.arange(len(repertoire)))
    v_genes, j_genes = [v.allele for v, _ in repertoire.pairs], [j.allele for _, j in repertoire.pairs]
    return factor.log_factor(v_genes, j_genes, kinds_of(repertoire), letters, lengths)
