"""The questions of `hpcvdj associate`, without and with --time: their answers, tables, facts and summaries."""

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hpcvdj.association.associate import Association, associate
from hpcvdj.association.expansion import Expansion, expand, times_of
from hpcvdj.association.multiplicity import inflation
from hpcvdj.association.people import compared, of_two_people
from hpcvdj.association.phenotypes import column_of_names, phenotypes_of, unmatched_in
from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.association.tested import Tested
from hpcvdj.chance.dealing import Alike, Dealt
from hpcvdj.chance.p_values import copies_text, needs_text, quantiles
from hpcvdj.chance.question import Lines, Rows
from hpcvdj.cohorts.cohort import Cohort
from hpcvdj.cohorts.improbable import pairs_text
from hpcvdj.cohorts.question import CohortQuestion, rows_text
from hpcvdj.errors import InputError, command_name, few, option
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.read_counts import READS
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

    def require(self, inputs: Inputs) -> None:
        super().require(inputs)
        phenotypes_of(self.naming, self.naming.people(inputs.repertoires).subject)

    @property
    def fewest(self) -> int:
        return self.settings.min_individuals

    def answer(self, rows: Rows, model: Model, run: Run) -> Association | None:
        subject = self.naming.people(rows.inputs.repertoires).subject
        cohort = self.cohort(rows, model, run)
        empty = {name for name, size in zip(cohort.names, cohort.sizes.tolist(), strict=True) if not size}
        phenotypes = run.from_root(lambda: phenotypes_of(self.naming, subject, empty=empty, told=True))
        answer = associate(cohort, phenotypes, model, self.settings, run, rows.fit)
        if answer is None:
            return None
        return replace(answer, unmatched=unmatched_in(self.naming, subject, phenotypes, empty))

    def facts(self, answer: Association, rows: Rows) -> Facts:
        """The facts, as docs/associate.md describes them."""
        naming, area, improbable = self.naming, answer.auc, answer.improbable
        phenotypes = [self._phenotype(answer, test) for test in answer.tested]
        return {
            "asked": {
                **{name: getattr(naming, name) for name in ("case", "hla", "trend", "strata", "subject")},
                "names": column_of_names(naming, rows.inputs.repertoires),
            },
            "individuals": answer.cohort.described(recombinations=answer.sizes),
            "sequences": answer.sequences,
            "likely_copies": answer.likely_copies,
            "unmatched": answer.unmatched or None,
            "gene_usage": answer.gene_usage or None,
            "tested": sum(phenotype["tested"] for phenotype in phenotypes),
            "hits": answer.hits,
            "phenotypes": phenotypes,
            "auc": None if area is None else [area.area, *area.interval],
            "standing_out": None if improbable is None else improbable.pairs.standing_out,
            "common_source": None if improbable is None else improbable.common,
        }

    def _phenotype(self, answer: Association, test: Tested) -> dict[str, Any]:
        """The facts of the tests of a phenotype."""
        copy, max_q, phenotype = answer.carriers.copy, self.settings.max_q, test.phenotype
        kept = test.kept if copy is None else test.kept & ~copy[test.rows]
        hits = int(test.is_hit(max_q, copy).sum())
        facts: dict[str, Any] = {
            "phenotype": phenotype.name, "family": phenotype.family, "donors": len(phenotype.donors),
            "cases": None if phenotype.family == "trend" else int(phenotype.case.sum()),
            "controls": phenotype.controls or None, "strata": len(phenotype.strata),
            "donors_in_strata_of_one_value": phenotype.alike, "sequences": test.sequences,
            "tested": int(kept.sum()), "hits": hits,
            "hits_weighted": int(test.is_hit(max_q, copy, weighted=True).sum()),
            **self._copies(answer, test),
            "inflation": inflation(test.uniform[kept]), "qq": quantiles(test.uniform[kept]),
        }  # fmt: skip
        if test.fisher is not None:
            facts["a_hit_needs"] = test.needed(max_q / max(test.in_family, 1))
            facts["inflation_of_fisher"] = inflation(test.fisher[1][kept])
            facts["qq_of_fisher"] = quantiles(test.fisher[1][kept])
        return facts

    def _copies(self, answer: Association, test: Tested) -> dict[str, int | None]:
        """How many tests are no hits as they are, or may be, copies; None if that is not known."""
        copy, max_q = answer.carriers.copy, self.settings.max_q
        if copy is None:
            return dict.fromkeys(("hits_that_are_copies", "hits_that_may_be_copies"))
        return {
            "hits_that_are_copies": int(((test.q <= max_q) & copy[test.rows]).sum()),
            "hits_that_may_be_copies": int(test.may_be_copies(max_q).sum()),
        }

    def table(self, answer: Association, name: str) -> pa.Table:
        return answer.donors if name == DONORS else answer.table

    def warnings(self, answer: Association) -> list[str]:
        pairs = pairs_text(answer.cohort, answer.improbable)
        said = [line for line in (answer.unmatched, answer.gene_usage) if line]
        return [*said, *(f"{line}; see {command_name('contamination')}" for line in pairs)]

    def summary(self, answer: Association) -> Lines:
        sizes = [individual.rows for individual in answer.cohort.individuals]
        lines = [
            ("donors", f"{len(sizes):,}, of {min(sizes):,} to {max(sizes):,} junctions"),
            ("rows", rows_text(answer.cohort)),
            (
                "sequences",
                f"{answer.sequences:,} that {self.settings.min_individuals} donors or more have"
                f"{', by their balls' if self.settings.unit == 'ball' else ''}",
            ),
        ]
        if answer.improbable is None:
            lines.append(("not known", "for want of nucleotides: likely copies, and samples of one person"))
        if answer.likely_copies:
            lines.append(("", f"{answer.likely_copies:,} likely copies, whose copies are no carriers"))
        most_hits = sorted(answer.tested, key=lambda test: -int((test.q <= answer.max_q).sum()))
        for test in most_hits[:MOST_SHOWN]:
            lines += self._lines(answer, test)
        if len(most_hits) > MOST_SHOWN:
            lines.append(("", f"and {len(most_hits) - MOST_SHOWN:,} more"))
        if answer.auc is not None:
            lines.append(("AUC", f"{answer.auc.text}: hits that were found without a donor tell whether it is a case"))
        elif answer.unscored:
            lines.append(("AUC", f"none: without {answer.unscored:,} of the donors nothing is a hit, so hits rest on "
                          "single donors"))  # fmt: skip
        more = copies_text([self._copies(answer, test) for test in answer.tested])
        return [*lines, ("hits", f"{answer.hits:,} with q_value <= {answer.max_q:g}{more and f'; {more}'}")]

    def _lines(self, answer: Association, test: Tested) -> Lines:
        """The lines of the summary for a phenotype."""
        facts = self._phenotype(answer, test)
        cases = "" if facts["cases"] is None else f"{facts['cases']:,} cases among "
        strata = f", {facts['strata']:,} strata" if facts["strata"] > 1 else ""
        if alike := facts["donors_in_strata_of_one_value"]:
            strata += f" ({alike:,} of the donors in strata of one value, which say nothing)"
        having = {*test.phenotype.donors.tolist()}
        left_out = [k for k in range(len(answer.cohort.names)) if k not in having]
        for lacks, of in (("value", answer.cohort.sizes > 0), ("junction", answer.cohort.sizes == 0)):
            without = [answer.cohort.names[k] for k in left_out if of[k]]
            strata += f" ({few(without)} left out, without a {lacks})" if without else ""
        lines = [(facts["phenotype"], f"{cases}{facts['donors']:,} donors{strata}; {facts['tested']:,} of "
                  f"{facts['sequences']:,} sequences can be hits: {facts['hits']:,} hits, {facts['hits_weighted']:,} "
                  "with weights")]  # fmt: skip
        if needed := facts.get("a_hit_needs"):
            lines.append(("", f"a single hit needs {needs_text(needed)}"))
        if facts["controls"] is not None:
            listed = [f"{value} ({number:,})" for value, number in facts["controls"].items()]
            lines.append(("", f"controls: {few(listed, 5)}"))
        if facts["inflation"] is not None:
            beside = facts.get("inflation_of_fisher")
            fisher = "" if beside is None else f", of Fisher's test {beside:.2f}"
            lines.append(("", f"inflation {facts['inflation']:.2f}{fisher}"))
        return lines


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
        of_donors = ("unit", "depth", "min_individuals")
        if any(getattr(self.settings, name) != getattr(AssociationSettings(), name) for name in of_donors):
            raise InputError(
                f"{option('time', self.naming.time)}: clonotypes are junctions as they are read, and their reads are "
                f"compared at their depths; leave out {', '.join(map(option, of_donors))}"
            )

    def answer(self, rows: Rows, model: Model, run: Run) -> Expansion | None:
        cohort = self.cohort_on_root(rows, model, run)

        def expanded(cohort: Cohort, dealt: Dealt) -> Expansion:
            times = times_of(self.naming, dealt.samples)
            return compared(expand(cohort, times, self.settings), model, run.alone())

        return run.on_root(expanded, cohort, rows.on_root)

    def facts(self, answer: Expansion, rows: Rows) -> Facts:
        """The facts, as docs/associate.md describes them."""
        return {
            "asked": {"subject": self.naming.subject, "time": self.naming.time,
                      "names": column_of_names(self.naming, rows.inputs.repertoires)},
            "individuals": answer.cohort.described(),
            "noise": {"linear": answer.noise.linear, "quadratic": answer.noise.quadratic,
                      "pairs_of_replicates": answer.replicates},
            "pairs": [
                {
                    "subject": pair.subject, "times": pair.times, "depths": pair.depths,
                    "depth_ratio": pair.counted.ratio, "clonotypes": len(pair.clonotypes),
                    "tested": int(answer.kept[answer.pair == k].sum()),
                    "hits": int((answer.q[answer.pair == k] <= answer.max_q).sum()),
                    "reads": pair.counted.rounded(), "largest_shared": pair.largest_shared,
                }
                for k, pair in enumerate(answer.pairs)
            ],
            "of_two_people": [[pair.subject, *pair.times] for pair in of_two_people(answer)],
            "clonotypes": len(answer.p), "tested": int(answer.kept.sum()), "hits": answer.hits,
            "inflation": inflation(answer.uniform), "qq": quantiles(answer.uniform),
        }  # fmt: skip

    def warnings(self, answer: Expansion) -> list[str]:
        lines = [
            f"{pair.subject}, {self.naming.time} {pair.times[0]:g} and {pair.times[1]:g}: large clonotypes of one time "
            "are not seen at the other one, as if these were two people: does the column "
            f"{self.naming.subject} of the metadata name the right one?"
            for pair in of_two_people(answer)
        ]
        if not answer.replicates:
            lines.append("no replicates, which are samples of one subject and time: changes between times count as "
                         "noise, too, so fewer clonotypes are found")  # fmt: skip
        return lines

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


def question_of(naming: Donors, settings: AssociationSettings) -> AssociationQuestion | ExpansionQuestion:
    """Return the question that users ask: that of `time`, if it is given."""
    return (AssociationQuestion if naming.time is None else ExpansionQuestion)(naming, settings)
