"""The question of `hpcvdj associate`: its answer, tables, facts and summary."""

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hpcvdj.association.associate import Association, associate
from hpcvdj.association.multiplicity import inflation
from hpcvdj.association.phenotypes import phenotypes_of, unmatched_in
from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.association.tested import Tested
from hpcvdj.chance.dealing import Alike
from hpcvdj.chance.p_values import quantiles
from hpcvdj.chance.question import Lines, Rows
from hpcvdj.cohorts.improbable import pairs_text
from hpcvdj.cohorts.question import CohortQuestion, rows_text
from hpcvdj.errors import command_name, few
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.results.facts import Facts
from hpcvdj.runs.run import Run

DONORS = "donors"
"""The name of the table of donors, which has their scores."""

MOST_SHOWN = 10
"""Phenotypes that have a line of their own in the summary."""


@dataclass(frozen=True)
class AssociationQuestion(CohortQuestion[Association]):
    """Which sequences are associated with a phenotype."""

    naming: Donors
    settings: AssociationSettings

    command = "associate"
    amino_acids = True
    shares_rows = True

    @property
    def alike(self) -> Alike:
        return "block" if self.settings.unit == "ball" else "amino acids"

    @property
    def genes(self) -> Genes:  # type: ignore[override]
        return "call"

    def require(self, inputs: Inputs) -> None:
        super().require(inputs)
        phenotypes_of(self.naming, self.naming.people(inputs.repertoires).subject)

    def answer(self, rows: Rows, model: Model, run: Run) -> Association | None:
        subject = self.naming.people(rows.inputs.repertoires).subject
        phenotypes = run.from_root(lambda: phenotypes_of(self.naming, subject))
        answer = associate(self.cohort(rows, model, run), phenotypes, model, self.settings, run, rows.fit)
        return None if answer is None else replace(answer, unmatched=unmatched_in(self.naming, subject, phenotypes))

    def facts(self, answer: Association, rows: Rows) -> Facts:
        """The facts, as docs/associate.md describes them."""
        naming, area = self.naming, answer.auc
        return {
            "asked": {name: getattr(naming, name) for name in ("case", "hla", "trend", "strata", "subject")},
            "individuals": [
                {**individual.facts(), "recombinations": size}
                for individual, size in zip(answer.cohort.individuals, answer.sizes.tolist(), strict=True)
            ],
            "sequences": answer.sequences,
            "likely_copies": answer.likely_copies,
            "unmatched": answer.unmatched or None,
            "tested": sum(int(test.kept.sum()) for test in answer.tested),
            "hits": answer.hits,
            "phenotypes": [self._phenotype(answer, test) for test in answer.tested],
            "auc": None if area is None else [area.area, *area.interval],
            "standing_out": answer.improbable.pairs.standing_out if answer.improbable is not None else None,
        }

    def _phenotype(self, answer: Association, test: Tested) -> dict[str, Any]:
        """The facts of the tests of a phenotype."""
        copy, max_q = answer.carriers.copy, self.settings.max_q
        phenotype, kept = test.phenotype, test.kept
        hits = int(test.is_hit(max_q, copy).sum())
        facts: dict[str, Any] = {
            "phenotype": phenotype.name, "family": phenotype.family, "donors": len(phenotype.donors),
            "cases": None if phenotype.family == "trend" else int(phenotype.case.sum()),
            "strata": len(phenotype.strata), "sequences": test.sequences, "tested": int(kept.sum()), "hits": hits,
            "hits_weighted": int(test.is_hit(max_q, copy, weighted=True).sum()),
            "hits_that_are_copies": int((test.q <= max_q).sum()) - hits,
            "inflation": inflation(test.uniform[kept]), "qq": quantiles(test.uniform[kept]),
        }  # fmt: skip
        if test.fisher is not None:
            facts["inflation_of_fisher"] = inflation(test.fisher[1][kept])
            facts["qq_of_fisher"] = quantiles(test.fisher[1][kept])
        return facts

    def table(self, answer: Association, name: str) -> pa.Table:
        return answer.donors if name == DONORS else answer.table

    def warnings(self, answer: Association) -> list[str]:
        pairs = pairs_text(answer.cohort, answer.improbable)
        unmatched = [answer.unmatched] if answer.unmatched else []
        return [*unmatched, *(f"{line}; see {command_name('contamination')}" for line in pairs)]

    def summary(self, answer: Association) -> Lines:
        sizes = [individual.rows for individual in answer.cohort.individuals]
        lines = [
            ("donors", f"{len(sizes):,}, of {min(sizes):,} to {max(sizes):,} junctions"),
            ("rows", rows_text(answer.cohort)),
            (
                "sequences",
                f"{answer.sequences:,} of {self.settings.min_individuals} donors or more"
                f"{', by their balls' if self.settings.unit == 'ball' else ''}",
            ),
        ]
        if answer.likely_copies:
            lines.append(("", f"{answer.likely_copies:,} likely copies, whose copies are no carriers"))
        most_hits = sorted(answer.tested, key=lambda test: -int((test.q <= answer.max_q).sum()))
        for test in most_hits[:MOST_SHOWN]:
            lines += self._lines(answer, test)
        if len(most_hits) > MOST_SHOWN:
            lines.append(("", f"and {len(most_hits) - MOST_SHOWN:,} more"))
        if answer.auc is not None:
            low, high = answer.auc.interval
            lines.append(("AUC", f"{answer.auc.area:.3f}, 95 % interval {low:.3f} to {high:.3f}: hits that were found "
                          "without a donor tell whether it is a case"))  # fmt: skip
        elif answer.unscored:
            lines.append(("AUC", f"none: without {answer.unscored:,} of the donors nothing is a hit, so hits rest on "
                          "single donors"))  # fmt: skip
        return [*lines, ("hits", f"{answer.hits:,} with q_value <= {answer.max_q:g}")]

    def _lines(self, answer: Association, test: Tested) -> Lines:
        """The lines of the summary for a phenotype."""
        facts = self._phenotype(answer, test)
        cases = "" if facts["cases"] is None else f"{facts['cases']:,} cases among "
        strata = f", {facts['strata']:,} strata" if facts["strata"] > 1 else ""
        having = {*test.phenotype.donors.tolist()}
        without = [name for k, name in enumerate(answer.cohort.names) if k not in having]
        strata += f" ({few(without)} left out, without a value)" if without else ""
        lines = [(facts["phenotype"], f"{cases}{facts['donors']:,} donors{strata}; {facts['tested']:,} of "
                  f"{facts['sequences']:,} sequences can be hits: {facts['hits']:,} hits, {facts['hits_weighted']:,} "
                  "with weights")]  # fmt: skip
        if facts["inflation"] is not None:
            beside = facts.get("inflation_of_fisher")
            fisher = "" if beside is None else f", of Fisher's test {beside:.2f}"
            lines.append(("", f"inflation {facts['inflation']:.2f}{fisher}"))
        return lines
