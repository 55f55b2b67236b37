"""The question of `hpcvdj associate --time`: its answer, facts and summary."""

from dataclasses import dataclass

from hpcvdj.association.expansion import Expansion, expand, times_of
from hpcvdj.association.multiplicity import inflation
from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.chance.p_values import quantiles
from hpcvdj.chance.question import Lines, Rows
from hpcvdj.cohorts.question import CohortQuestion, rows_text
from hpcvdj.errors import InputError, option
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.read_counts import READS
from hpcvdj.results.facts import Facts
from hpcvdj.runs.run import Run


@dataclass(frozen=True)
class ExpansionQuestion(CohortQuestion[Expansion]):
    """Which clonotypes of a person expanded from one time to the next."""

    naming: Donors
    settings: AssociationSettings

    command = "associate --time"
    amino_acids = True

    def require(self, inputs: Inputs) -> None:
        super().require(inputs)
        times_of(self.naming, inputs.repertoires)
        if not inputs.has_reads:
            lacking = next(table for table in inputs.tables if READS not in table.open().columns)
            raise InputError(
                f"{lacking.path}: no column {READS}; reads tell what expanded: give tables with counts of reads or "
                f"UMIs, or name their column with {option('columns', {READS: 'COLUMN'})}"
            )
        if (self.settings.unit, self.settings.depth) != ("vj-aa", "recombinations"):
            raise InputError(
                f"{option('time', self.naming.time)}: clonotypes are junctions as they are read, and their reads are "
                f"compared at their depths; leave out {option('unit')} and {option('depth')}"
            )

    def answer(self, rows: Rows, model: Model, run: Run) -> Expansion | None:
        cohort = self.cohort_on_root(rows, model, run)

        def expanded() -> Expansion:
            assert cohort is not None
            assert rows.on_root is not None
            return expand(cohort, times_of(self.naming, rows.on_root.samples), self.settings)

        return run.on_root(expanded)

    def facts(self, answer: Expansion, rows: Rows) -> Facts:
        """The facts, as docs/associate.md describes them."""
        return {
            "asked": {"subject": self.naming.subject, "time": self.naming.time},
            "individuals": [individual.facts() for individual in answer.cohort.individuals],
            "noise": {"linear": answer.noise.linear, "quadratic": answer.noise.quadratic,
                      "pairs_of_replicates": answer.replicates},
            "pairs": [
                {
                    "subject": pair.subject, "times": pair.times, "depths": pair.depths,
                    "depth_ratio": pair.counted.ratio, "clonotypes": len(pair.clonotypes),
                    "tested": int(answer.kept[answer.pair == k].sum()),
                    "hits": int((answer.q[answer.pair == k] <= answer.max_q).sum()),
                    "reads": pair.counted.rounded(),
                }
                for k, pair in enumerate(answer.pairs)
            ],
            "clonotypes": len(answer.p), "tested": int(answer.kept.sum()), "hits": answer.hits,
            "inflation": inflation(answer.uniform), "qq": quantiles(answer.uniform),
        }  # fmt: skip

    def warnings(self, answer: Expansion) -> list[str]:
        if answer.replicates:
            return []
        return ["no replicates, which are samples of one subject and time: changes between times count as noise, too, "
                "so fewer clonotypes are found"]  # fmt: skip

    def summary(self, answer: Expansion) -> Lines:
        depths = [depth for pair in answer.pairs for depth in pair.depths]
        source = f"from replicates (pairs: {answer.replicates:,})" if answer.replicates else (
            "from all clonotypes between times, as there are no replicates: conservative"
        )  # fmt: skip
        noise = f"variance {1 + answer.noise.linear:.3g} m + {answer.noise.quadratic:.3g} m^2 of m reads, {source}"
        factor = inflation(answer.uniform)
        inflated = "" if factor is None else f"; inflation {factor:.2f}"
        ratios = [pair.counted.ratio for pair in answer.pairs]
        subjects = {pair.subject for pair in answer.pairs}
        return [
            ("subjects", f"{len(subjects):,}; pairs of consecutive times: {len(answer.pairs):,}"),
            ("rows", rows_text(answer.cohort)),
            ("depths", f"{min(depths):,} to {max(depths):,} reads of a time; after over before {min(ratios):.3g} to "
             f"{max(ratios):.3g}"),
            ("noise", noise),
            ("clonotypes", f"{len(answer.p):,}, of which {int(answer.kept.sum()):,} can be hits{inflated}"),
            ("hits", f"{answer.hits:,} with q_value <= {answer.max_q:g}"),
        ]  # fmt: skip
