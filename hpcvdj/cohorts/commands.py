"""The runs of `hpcvdj sharing` and `hpcvdj contamination`: tables in, tables, facts and figures out."""

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.chance.settings import Checks
from hpcvdj.cohorts.cohort import Cohort
from hpcvdj.cohorts.contamination import Contamination, contaminate
from hpcvdj.cohorts.files import cohort_of_files
from hpcvdj.cohorts.improbable import COMMON, SEEN, SELECTION, Improbable, Pairs
from hpcvdj.cohorts.settings import ContaminationSettings, Naming, SharingSettings
from hpcvdj.cohorts.sharing import Sharing, share
from hpcvdj.errors import InputError, few, option
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.filtering import require_filterable, write_without
from hpcvdj.repertoires.formats import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.results.facts import Targets
from hpcvdj.runs.run import Run
from hpcvdj.storage.files import require_apart
from hpcvdj.storage.folders import atomic_folder, exclusive_folder

log = logging.getLogger(__name__)

MOST_LISTED = 100
"""Junctions of a common source that OUT.json lists."""


def share_files(
    paths: Sequence[Path], model: Model, settings: SharingSettings, naming: Naming, checks: Checks, run: Run,
    opening: Opening = BY_HEADER, overlap: Path | None = None,
) -> Sharing | None:  # fmt: skip
    """Test the sequences that individuals share, and write them to the target of `run`, beside a file of facts.

    overlap  where to write the sequences that each two individuals share

    The result on root, None on the other ranks.  HpcvdjError for bad input and failures; the target is then what it was
    before.
    """
    assert run.target is not None
    targets = Targets(run.target, (overlap,) if overlap is not None else ())
    model = checks.model(model)
    run.on_root(lambda: targets.require(paths, overwrite=run.overwrite))
    inputs, cohort, fit = cohort_of_files(paths, model, naming, checks, run, opening, settings.genes)
    _begin(inputs, run, targets)
    found = share(cohort, model, settings, run, model.selection, fit)

    def finish() -> Sharing:
        assert found is not None
        facts = {
            "command": "sharing", **run.provenance(), **model.facts(), "tables": inputs.recorded,
            "sequence_field": inputs.reading.sequence_field, "settings": asdict(settings), "checks": asdict(checks),
            **fit.facts(), **sharing_facts(found, settings),
        }  # fmt: skip
        tables = {targets.table: found.table} | ({overlap: overlap_table(found)} if overlap is not None else {})
        targets.write(facts, tables, overwrite=run.overwrite)
        for line in pairs_text(found.cohort, found.improbable):
            log.warning("%s; see hpcvdj contamination", line)
        return found

    return run.on_root(finish)


@dataclass(frozen=True)
class Further:
    """What `contaminate_files` writes beside the pairs.

    clean      the folder to write the tables to, without the copies of improbable junctions
    junctions  where to write the improbable junctions that several individuals have
    """

    clean: Path | None = None
    junctions: Path | None = None


NOTHING_FURTHER = Further()


def contaminate_files(
    paths: Sequence[Path], model: Model, settings: ContaminationSettings, naming: Naming, checks: Checks, run: Run,
    opening: Opening = BY_HEADER, further: Further = NOTHING_FURTHER,
) -> Contamination | None:  # fmt: skip
    """Compare the improbable junctions of individuals, and write the pairs to the target of `run`, beside facts.

    Returns and raises as `share_files`.
    """
    assert run.target is not None
    clean, junctions = further.clean, further.junctions
    targets = Targets(run.target, (junctions,) if junctions is not None else ())
    model = checks.model(model)
    with ExitStack() as stack:
        if clean is not None:
            own = exclusive_folder(clean, *paths, overwrite=run.overwrite)
            run.on_root(lambda: stack.enter_context(own))
        run.on_root(lambda: targets.require(paths, overwrite=run.overwrite))
        inputs, cohort, fit = cohort_of_files(paths, model, naming, checks, run, opening)
        _begin(inputs, run, targets)
        if clean is not None:
            run.on_root(lambda: _require_clean(inputs, cohort, clean))
        found = contaminate(cohort, model, settings, run, fit)

        def finish() -> Contamination:
            assert found is not None
            facts = {
                "command": "contamination", **run.provenance(), **model.facts(), "tables": inputs.recorded,
                "settings": asdict(settings), "checks": asdict(checks), **fit.facts(), **contamination_facts(found),
            }  # fmt: skip
            tables = {targets.table: found.table} | ({junctions: found.junctions} if junctions is not None else {})
            with atomic_folder(clean, overwrite=run.overwrite) if clean is not None else nullcontext() as folder:
                if folder is not None:
                    _write_clean(inputs, found, folder)
                    facts["removed"] = _removed(inputs, found)
                targets.write(facts, tables, overwrite=run.overwrite)
            return found

        return run.on_root(finish)


def _begin(inputs: Inputs, run: Run, targets: Targets) -> None:
    # A folder of tables may have a target that is one of them.
    run.on_root(lambda: targets.require(inputs.files, overwrite=run.overwrite))
    run.request.begin()


def sharing_facts(found: Sharing, settings: SharingSettings) -> dict[str, Any]:
    """What OUT.json has of shared sequences; docs/sharing.md describes it."""
    columns = ("observed", "expected", "low", "high", "expected_q1")
    spectrum = [
        {"individuals": number} | {name: getattr(found, name)[number].item() for name in columns}
        for number in range(1, len(found.observed))
    ]
    return {
        "unit": settings.unit,
        "q": found.q,
        "q_at_bound": found.q_at_bound,
        "q_refuted": found.refuted,
        "selection_factor": found.factor,
        "draws": settings.draws,
        "individuals": [
            {**own.facts(), "recombinations": size}
            for own, size in zip(found.cohort.individuals, found.sizes.tolist(), strict=True)
        ],
        "spectrum": spectrum,
        "overlap": {"shared": found.shared, "expected": found.expected_shared},
        "auc": {name: [own.area, *own.interval] for name, own in found.aucs.items()},
        "tested": found.tested,
        "not_tested": found.not_tested,
        "hits": found.hits,
        "likely_copies": found.likely_copies,
        "max_pgen": found.improbable.max_pgen if found.improbable is not None else None,
        "standing_out": found.improbable.pairs.standing_out if found.improbable is not None else None,
        "common_source": len(found.improbable.common) if found.improbable is not None else None,
        "not_available": found.not_available,
    }


def overlap_table(found: Sharing) -> pa.Table:
    """The sequences that each two individuals share, a row for each pair."""
    upper = np.triu_indices(len(found.cohort.individuals), 1)
    names = pa.array(found.cohort.names, pa.string())
    columns: dict[str, Any] = {
        "individual_1": names.take(pa.array(upper[0])), "individual_2": names.take(pa.array(upper[1])),
    }  # fmt: skip
    if found.cohort.groups:
        groups = pa.array([own.group for own in found.cohort.individuals], pa.string())
        columns |= {f"group_{k + 1}": groups.take(pa.array(upper[k])) for k in range(2)}
    return pa.table({
        **columns, "shared": found.shared[upper], "expected": found.expected_shared[upper],
        "ratio": found.shared[upper] / found.expected_shared[upper],
    })  # fmt: skip


def overlap_of_groups(found: Sharing) -> list[tuple[str, str, int, float]]:
    """Shared and expected sequences of all pairs of individuals of each two groups."""
    place, groups = found.cohort.group_of, found.cohort.groups
    upper = np.triu(np.ones(found.shared.shape, dtype=bool), 1)
    out = []
    for a in range(len(groups)):
        for b in range(a, len(groups)):
            both = (place[:, np.newaxis] == a) & (place == b)
            pairs = upper & (both | both.T)
            if pairs.any():
                out.append(
                    (groups[a], groups[b], int(found.shared[pairs].sum()), float(found.expected_shared[pairs].sum()))
                )
    return out


def contamination_facts(found: Contamination) -> dict[str, Any]:
    """What OUT.json has of improbable junctions; docs/contamination.md describes it."""
    numbers = zip(found.low.tolist(), found.zero.tolist(), found.sizes.tolist(), strict=True)
    return {
        "max_pgen": found.max_pgen,
        "selection_allowed": SELECTION,
        "individuals": [
            {**own.facts(), "low": low, "zero": zero, "recombinations": size}
            for own, (low, zero, size) in zip(found.cohort.individuals, numbers, strict=True)
        ],
        "rate": found.rate,
        "shared_low": np.where(np.eye(len(found.low), dtype=bool), found.low, found.pairs.shared),
        "expected_low": found.pairs.expected,
        "carry_over": [
            {
                "reads": own.reads, "clones": own.clones, "met_same_group": own.same_group,
                "met_other_group": own.other_group,
            }
            for own in found.carry_over
        ],
        "standing_out": found.pairs.standing_out,
        "of_one_person": found.pairs.of_one_person,
        "no_power": int(np.triu(found.pairs.verdicts == "no power", 1).sum()),
        "common_source": {
            "people": COMMON, "junctions": len(found.improbable.common),
            "listed": found.junctions.slice(0, min(len(found.improbable.common), MOST_LISTED)).to_pylist(),
        },
        "left_out": found.left_out,
    }  # fmt: skip


def left_out_text(cohort: Cohort) -> str:
    """How many rows were left out of all individuals, and why."""
    reasons: Counter[str] = Counter()
    for own in cohort.individuals:
        reasons.update(own.left_out)
    listed = few([f"{reason}: {number:,}" for reason, number in reasons.most_common() if number])
    return f"{reasons.total():,} left out{f' ({listed})' if reasons.total() else ''}"


def pairs_text(cohort: Cohort, improbable: Improbable | None, most: int = 5) -> list[str]:
    """Pairs that stand out, a line for each, and how many more there are; and junctions of a common source."""
    if improbable is None:
        return []
    pairs = improbable.pairs
    found = pairs.standing_out
    lines = [
        f"{cohort.names[i]} and {cohort.names[j]}: {int(pairs.shared[i, j]):,} improbable junctions shared, "
        f"{float(pairs.expected[i, j]):.2g} expected"
        for i, j in found[:most]
    ]
    lines += [f"and {len(found) - most:,} more pairs"] * (len(found) > most)
    if len(improbable.common):
        lines.append(
            f"{len(improbable.common):,} improbable junctions are in {COMMON} people or more, of a common source"
        )
    return lines


def power_text(cohort: Cohort, pairs: Pairs) -> str:
    """Individuals with which copies cannot be seen, in a line; empty if there are none."""
    lacking = np.triu(pairs.verdicts == "no power", 1)
    if not lacking.any():
        return ""
    often = np.argsort(-(lacking | lacking.T).sum(axis=0), kind="stable")
    names = [cohort.names[k] for k in often.tolist() if (lacking | lacking.T)[k].sum() > len(cohort.names) / 2]
    return (
        f"in {int(lacking.sum()):,} pairs, copies of {100 * SEEN:.0f} % of a sample would not be seen, for want of "
        f"improbable junctions{f': of {few(names)}' if names else ''}"
    )


def _require_clean(inputs: Inputs, cohort: Cohort | None, folder: Path) -> None:
    """Raise InputError unless tables can be written without some rows, into one folder."""
    assert cohort is not None
    # A folder of tables may have links to tables elsewhere.
    require_apart(folder, *inputs.files)
    if cohort.has.reads is None:
        raise InputError(
            f"{option('write_clean')}: keeps the largest clone of copies, and not all tables have a column "
            "duplicate_count"
        )
    first: dict[str, Path] = {}
    for table in inputs.tables:
        require_filterable(table)
        if table.path.name in first:
            raise InputError(
                f"{option('write_clean')}: {first[table.path.name]} and {table.path} have one name; rename one"
            )
        first[table.path.name] = table.path


def _removed(inputs: Inputs, found: Contamination) -> dict[str, Any]:
    """The rows that are left out, by table; data rows are numbered from 1."""
    starts = np.array([table.first_row for table in inputs.tables])
    copies, names = found.copies or [], found.cohort.names
    of_table = (np.searchsorted(starts, [copy.row for copy in copies], side="right") - 1).tolist()
    listed = [
        {
            "table": str(inputs.tables[place].path), "data_row": copy.row - int(starts[place]) + 1,
            "individual": names[copy.individual], "duplicate_count": copy.reads, "largest_individual": names[copy.of],
            "largest_duplicate_count": copy.of_reads,
        }
        for place, copy in zip(of_table, copies, strict=True)
    ]  # fmt: skip
    rows = {str(table.path): of_table.count(place) for place, table in enumerate(inputs.tables)}
    return {"rows": len(copies), "by_table": rows, "listed": listed}


def _write_clean(inputs: Inputs, found: Contamination, folder: Path) -> None:
    rows = np.array([copy.row for copy in found.copies or []], dtype=np.int64)
    for table in inputs.tables:
        own = rows[(rows >= table.first_row) & (rows < table.first_row + table.rows)] - table.first_row
        write_without(table, own, folder / table.path.name)
