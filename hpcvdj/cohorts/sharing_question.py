"""The question of `hpcvdj sharing`: its answer, its facts and its summary."""

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.chance.p_values import Floats
from hpcvdj.chance.question import Lines, Rows
from hpcvdj.cohorts.improbable import pairs_text
from hpcvdj.cohorts.question import CohortQuestion, rows_text
from hpcvdj.cohorts.settings import SharingSettings
from hpcvdj.cohorts.sharing import Sharing, share
from hpcvdj.errors import command_name
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.models import Model
from hpcvdj.results.blocks import TableBlocks
from hpcvdj.results.facts import Facts
from hpcvdj.runs.run import Run

MOST_SHOWN = 10
"""The largest number of individuals that has a line of its own in the summary."""

LEAST_SHOWN = 0.5
"""The expected number of sequences from which on a line is shown though nothing was observed."""

DISBELIEVED = "p-values are too small, or there are copies; do not believe the hits"

OVERLAP = "overlap"
"""The name of the table of the sequences that each two individuals share."""


@dataclass(frozen=True)
class SharingQuestion(CohortQuestion[Sharing]):
    """Which sequences do individuals share, and which of them do more individuals share than chance explains?"""

    settings: SharingSettings

    command = "sharing"
    amino_acids = True
    shares_rows = True

    @property
    def genes(self) -> Genes:  # type: ignore[override]
        return self.settings.genes

    @property
    def fewest(self) -> int:
        return self.settings.min_individuals

    def answer_in_blocks(self, rows: Rows, model: Model, run: Run) -> tuple[Sharing | None, TableBlocks]:
        return share(self.cohort(rows, model, run), model, self.settings, run, model.selection, rows.fit)

    def facts(self, answer: Sharing, rows: Rows) -> Facts:
        """Return the facts that docs/sharing.md describes."""
        columns = ("observed", "expected", "low", "high", "expected_q1")
        improbable = answer.improbable
        return {
            "unit": self.settings.unit,
            "q": answer.q,
            "q_interval": answer.q_interval,
            "q_at_bound": answer.q_at_bound,
            "q_refuted": bool(answer.refuted),
            "selection_factor": answer.factor,
            "draws": self.settings.draws,
            "individuals": answer.cohort.described(recombinations=answer.sizes),
            "spectrum": [
                {"individuals": number} | {name: getattr(answer, name)[number].item() for name in columns}
                for number in range(1, len(answer.observed))
            ],
            "overlap": {"shared": answer.shared, "expected": answer.expected_shared},
            "auc": {name: [area.area, *area.interval] for name, area in answer.aucs.items()},
            "tested": answer.tested,
            "not_tested": answer.not_tested,
            "hits": answer.hits,
            "likely_copies": answer.likely_copies,
            "q_individuals": answer.fitted_to,
            "hits_of_contaminated": answer.hits_of_contaminated,
            "copies_shared": int(answer.copied.sum()),
            "max_pgen": improbable.max_pgen if improbable is not None else None,
            "standing_out": improbable.pairs.standing_out if improbable is not None else None,
            "common_source": improbable.common if improbable is not None else None,
            "not_available": answer.not_available,
        }

    def table(self, answer: Sharing, name: str) -> pa.Table:
        return overlap_table(answer) if name == OVERLAP else answer.table

    def curves(self, answer: Sharing) -> dict[str, tuple[Floats, Floats]]:
        return answer.roc_curves()

    def warnings(self, answer: Sharing) -> list[str]:
        lines = []
        if answer.refuted:
            lines.append(f"{answer.refuted}: {DISBELIEVED}")
        if answer.q_at_bound:
            lines.append("the fitted q is 1, its largest: without the hits, no more is shared than recombination makes")
        pairs = pairs_text(answer.cohort, answer.improbable)
        return lines + [f"{line}; see {command_name('contamination')}" for line in pairs]

    def summary(self, answer: Sharing) -> Lines:
        sizes = [individual.rows for individual in answer.cohort.individuals]
        factor = ", with the model's factor of selection" if answer.factor else ""
        interval = ", 95 % interval {:.3g} to {:.3g}".format(*answer.q_interval) if answer.q_interval else ""
        bound = (
            " (the largest: without the hits, no more is shared than recombination makes)" if answer.q_at_bound else ""
        )
        lines = [
            ("individuals", f"{len(sizes):,}, of {min(sizes):,} to {max(sizes):,} junctions"),
            ("rows", f"{rows_text(answer.cohort)}; {answer.tested:,} different sequences"),
            ("q", f"{answer.q:.4g}{bound}{interval}{factor}"),
        ]
        if answer.refuted:
            lines += [("", f"{answer.refuted}:"), ("", DISBELIEVED)]
        if self.settings.q is None:
            lines += _fit_lines(answer)
        lines += _spectrum_lines(answer)
        for group, other, shared, expected in overlap_of_groups(answer):
            lines.append(("overlap", f"{group} with {other}: {shared:,} shared by pairs, {expected:,.1f} expected"))
        for name, area in answer.aucs.items():
            lines.append(("AUC", f"{name:7} {area.text}"))
        for reason, number in answer.not_tested.items():
            if number:
                lines.append(("not tested", f"{number:,} shared sequences: {reason}"))
        if answer.not_available:
            lines.append(("not known", f"for want of nucleotides: {', '.join(answer.not_available)}"))
        copies = f"; {answer.hits - answer.likely_copies:,} without likely copies" if answer.likely_copies else ""
        lines.append(("hits", f"{answer.hits:,} with q_value <= 0.05{copies}"))
        if suspect := answer.hits_of_contaminated:
            lines.append(("", f"{suspect:,} of these may be copies: most individuals share other copies, and have the "
                          "same junction"))  # fmt: skip
        return lines


def _fit_lines(answer: Sharing) -> Lines:
    """Return lines about what q is fitted to."""
    lines: Lines = []
    if answer.fitted_to < len(answer.cohort.individuals):
        lines.append(("", f"fitted to {answer.fitted_to:,} individuals, no two of whom contaminated each other"))
    elif answer.pairs is not None and (answer.pairs.verdicts == "contaminated").any():
        lines.append(("", "too small, as some contaminated each other, and the others share too little for a fit"))
    if answer.copied.any():
        left_out = f"likely copies left out of the fit: {answer.copied.sum():,}"
        lines.append(("", f"{left_out}; others, if there are any, make q too small"))
    return lines


def _spectrum_lines(answer: Sharing) -> Lines:
    """Return a line for each number of individuals, with the number of sequences that so many have."""
    lines = [("individuals", "   observed    expected  95 % interval of the draws   if q = 1")]
    there = (answer.observed > 0) | (answer.expected >= LEAST_SHOWN)
    last = max(2, int(np.flatnonzero(there)[-1]) if there.any() else 0)
    for number in range(1, min(last, MOST_SHOWN) + 1):
        interval = f"{answer.low[number]:,.1f} to {answer.high[number]:,.1f}"
        text = f" {answer.observed[number]:10,}  {answer.expected[number]:10,.1f}  {interval:>25}"
        lines.append((f"{number:>11}", f"{text}  {answer.expected_q1[number]:10,.1f}"))
    if last > MOST_SHOWN:
        more = slice(MOST_SHOWN + 1, None)
        lines.append((f"{'more':>11}", f" {answer.observed[more].sum():10,}  {answer.expected[more].sum():10,.1f}"))
    return lines


def overlap_table(answer: Sharing) -> pa.Table:
    """Return the table of the sequences that two individuals share, a row for each pair."""
    upper = np.triu_indices(len(answer.cohort.individuals), 1)
    of_individuals: dict[str, list[Any]] = {"individual": answer.cohort.names}
    if answer.cohort.groups:
        of_individuals["group"] = [individual.group for individual in answer.cohort.individuals]
    columns: dict[str, Any] = {
        f"{name}_{k + 1}": pa.array(texts, pa.string()).take(pa.array(upper[k]))
        for name, texts in of_individuals.items()
        for k in range(2)
    }
    return pa.table({
        **columns, "shared": answer.shared[upper], "expected": answer.expected_shared[upper],
        "ratio": answer.shared[upper] / answer.expected_shared[upper],
    })  # fmt: skip


def overlap_of_groups(answer: Sharing) -> list[tuple[str, str, int, float]]:
    """Return the shared and expected sequences of all pairs of individuals of each two groups."""
    group_of, groups = answer.cohort.group_of, answer.cohort.groups
    upper = np.triu(np.ones(answer.shared.shape, dtype=bool), 1)
    out = []
    for a, b in combinations_with_replacement(range(len(groups)), 2):
        both = (group_of[:, np.newaxis] == a) & (group_of == b)
        pairs = upper & (both | both.T)
        if pairs.any():
            shared, expected = answer.shared[pairs].sum(), answer.expected_shared[pairs].sum()
            out.append((groups[a], groups[b], int(shared), float(expected)))
    return out
