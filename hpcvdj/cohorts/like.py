"""Generated cohorts that have the individuals, sizes and read counts of a real one."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hpcvdj.chance import DRAWS
from hpcvdj.chance.draws import Chance
from hpcvdj.cohorts.cohort import Cohort
from hpcvdj.cohorts.holding import Holding
from hpcvdj.cohorts.question import CohortQuestion
from hpcvdj.cohorts.survivors import recombinations
from hpcvdj.generation.generate import generate
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.repertoires.read_counts import READS
from hpcvdj.repertoires.table import REPERTOIRE
from hpcvdj.runs.run import Run


class LikeQuestion(CohortQuestion[None]):
    """Who is in a cohort, and how many junctions each individual has; nobody is compared."""

    least = 1


def cohort_like(
    cohort: Cohort | None, model: Model, plan: GenerationSettings, run: Run, backend: str
) -> Iterator[pa.RecordBatch]:
    """Generate productive rows of individuals like those of root's cohort, as `generate` does.

    Each individual has as many recombinations as its number of distinct junctions takes.  The rows have `repertoire_id`
    and, if the cohort has reads, `duplicate_count`, drawn from the reads of the individual.  The `number` of the plan
    does not matter.  Only root gets rows; the other ranks help to draw.
    """
    chance = Chance(model, min(DRAWS, 100_000), plan.seed, backend, strict_binding=False)
    _, draws = chance.sampled(PGEN_COLUMNS[:1], model.selection if plan.selection else None, run)
    numbers = [round(n) for n in run.from_root(recombinations, cohort, draws, 0.0).tolist()]
    # Another seed than that of the draws above.
    seed = int(np.random.SeedSequence([plan.seed, 3]).generate_state(1, np.uint64)[0])
    plan = replace(plan, number=max(1, sum(numbers)), seed=seed, productive=True)
    owner = np.repeat(np.arange(len(numbers)), numbers)
    first = 0
    for batch in generate(model, plan, run.bind(backend, sharing_pays=True), run):
        assert cohort is not None
        individuals = owner[first : first + batch.num_rows]
        names = pa.array(cohort.names, pa.string()).take(pa.array(individuals))
        batch = batch.slice(0, len(individuals)).append_column(REPERTOIRE, names)
        if cohort.has.reads is not None:
            batch = batch.append_column(READS, pa.array(_reads(cohort.has, individuals, [plan.seed, first])))
        first += batch.num_rows
        yield batch


def _reads(has: Holding, individuals: np.ndarray, seed: list[int]) -> np.ndarray:
    """Draw the reads of a random clone of the individual of each row."""
    rng, reads = np.random.default_rng(seed), np.zeros(len(individuals), dtype=np.int64)
    assert has.reads is not None
    for individual in np.unique(individuals).tolist():
        rows = np.flatnonzero(individuals == individual)
        reads[rows] = rng.choice(has.reads[has.individual == individual], len(rows))
    return reads
