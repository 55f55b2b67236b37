"""The common part of `hpcvdj count` and `hpcvdj pgen`: how they compute tables, and what they print."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcvdj.cli import common
from hpcvdj.cli.streams import is_stream
from hpcvdj.errors import InputError, few, log
from hpcvdj.runs.settings import Started

if TYPE_CHECKING:
    from hpcvdj.repertoires.inputs import Inputs
    from hpcvdj.repertoires.junctions import Reference
    from hpcvdj.repertoires.reading import Reading
    from hpcvdj.repertoires.table import Table
    from hpcvdj.runs.run import Run
    from hpcvdj.values.plan import Plan
    from hpcvdj.values.summary import Summary


def compute_each(
    run: "Run",
    plan: "Callable[[], list[tuple[Inputs, Path]]]",
    reference: "Reference",
    config: "Plan",
    started: Started,
    check: "Callable[[list[Inputs]], dict[str, Any]] | None" = None,
) -> None:
    """Compute the tables of a plan one after another.  Tables that cannot be read do not stop the others.

    check  raises InputError unless the reference fits the tables; returns what results record of that

    At the end, raises InputError with the names of tables that could not be computed, or had no row that could be.
    """
    from hpcvdj.values.compute_tables import MOST_UNEVEN, compute_tables
    from hpcvdj.values.summary import total_of

    with run.request:
        work = run.from_root(plan)

        def checked() -> dict[str, Any]:
            return check([inputs for inputs, _ in work]) if check is not None else {}

        if len(work) > 1:
            # Check all tables at once, and compute none if the reference does not fit them.
            checked = partial(dict, run.from_root(checked))

        def compute(item: "tuple[Inputs, Path]", run: "Run") -> "Summary":
            inputs, target = item
            seconds = started.checkpoint_every
            to_target = run.to(target, resume=started.resume, overwrite=started.overwrite, save_seconds=seconds)
            summary = compute_tables(inputs, reference, config, to_target, started.batch_rows, checked)
            if run.is_root and len(work) > 1:
                common.say(f"{inputs.path.name}: {_rows(summary)}, {target}")
            return summary

        sizes = [sum(table.bytes for table in inputs.tables) for inputs, _ in work]
        done, errors = run.deal(work, compute, sizes, common.complain, most_uneven=MOST_UNEVEN)
    computed = [(inputs, summary) for (inputs, _), summary in done]
    refused = [inputs.path.name for (inputs, _), _ in errors]
    refused += [inputs.path.name for inputs, summary in computed if not summary.counted]
    if run.is_root and computed:
        folder, target = len(work) > 1, work[0][1]
        warn(computed, reference)
        report(
            total_of([summary for _, summary in computed]) if folder else computed[0][1],
            target.parent if folder else target,
        )
    if refused:
        failure = not_all(refused, len(work), "counted")
        if len(work) == 1:
            inputs, target = work[0]
            failure = InputError(f"{inputs.path}: no row could be counted; {target} has the reason of each")
        raise failure.everywhere()


def not_all(refused: list[str], number: int, done: str) -> InputError:
    """Return the error, for every rank, that some of a number of repertoires were not `done`."""
    return InputError(f"{len(refused)} of {number} repertoires were not {done}: {few(refused, 20)}").everywhere()


def planned(
    junctions: list[Path], tables: "list[Table]", output: Path, reading: "Reading", *, together: bool
) -> "list[tuple[Inputs, Path]]":
    """Return the inputs to compute and their targets, of the `tables` at `junctions`.  Make the folder of targets."""
    from hpcvdj.repertoires.inputs import Inputs, require_result, targets_of, together_of
    from hpcvdj.repertoires.writers import is_table

    if any(map(is_stream, junctions)) and not is_table(output):
        log.warning(
            "%s: hpcvdj export cannot add these values to their table, because standard input is not kept; -o "
            "TABLE.tsv writes the table with its values", output,
        )  # fmt: skip
    if together:
        require_result(output)
        return [(together_of(tables, reading), output)]
    targets = targets_of(junctions, tables, output)
    make_folder_of_several(junctions, output, [target for _, target in targets])
    return [(Inputs((*parts,), reading, together=len(parts) > 1), target) for parts, target in targets]


def make_folder_of_several(junctions: list[Path], output: Path, targets: list[Path]) -> None:
    """Make the folder `output` if each of several tables has an output; warn of outputs of other runs in it."""
    from hpcvdj.repertoires.inputs import RESULT_SUFFIXES, is_one
    from hpcvdj.results.facts import facts_path
    from hpcvdj.storage.folders import make_folder

    if len(junctions) == 1 and is_one(junctions[0]):
        return
    make_folder(output)
    others = sorted(
        path.name
        for path in output.iterdir()
        if path not in targets
        and not path.name.startswith(".")
        and (path.suffix in RESULT_SUFFIXES or facts_path(path).is_file())
    )
    if others:
        log.warning(
            "%s: %s: of another run; hpcvdj report of this folder shows all, so remove those of tables that are gone",
            output, few(others),
        )  # fmt: skip


def _rows(summary: "Summary") -> str:
    excluded = summary.rows_read - summary.counted
    return f"{summary.rows_read:,} read = {summary.counted:,} counted + {excluded:,} excluded"


def report(summary: "Summary", output: Path) -> None:
    """Print the summary."""
    from hpcvdj.repertoires.writers import is_table
    from hpcvdj.values.summary import STAGES

    seconds = summary.seconds
    rate = summary.counted / seconds["kernel"] if seconds["kernel"] else 0.0
    if summary.tables:
        common.say(f"tables     {summary.tables:,}, of {summary.repertoires:,} repertoire(s)")
    common.say(f"rows       {_rows(summary)}")
    if summary.pairs:
        common.say(f"V-J pairs  {summary.pairs:,}")
    for word, text in summary.quantity.summary(summary.sums, summary.nonzero, summary.counted).items():
        common.say(f"{word:<10} {text}")
    for word, text in (summary.makers.summary() if summary.makers is not None else {}).items():
        common.say(f"{word:<10} {text}")
    for line in _advice(summary):
        common.say(f"           {line}")
    common.say(f"method     {summary.method} on {summary.hardware}, {summary.ranks} rank(s)")
    stages = ", ".join(f"{name} {seconds[name]:.2f} s" for name in STAGES)
    common.say(f"time       {stages} ({rate:,.0f} junctions/s in the kernel)")
    if summary.counted < summary.rows_read:
        column = summary.quantity.excluded
        where = f"its column {column}" if is_table(output) else f"hpcvdj export adds a column, {column}, that"
        common.say(f"excluded   {where} says why")
    common.say(f"result     {output}")


NEARLY_ALL_REACHED = 0.9
"""If fewer junctions have a pathway, the summary advises what to do about the others."""


def _advice(summary: "Summary") -> list[str]:
    """Return lines that advise what to do about junctions without a pathway."""
    from hpcvdj.kernels.quantities import Pathways

    unreached = summary.counted - summary.nonzero
    if not isinstance(summary.quantity, Pathways) or unreached <= (1 - NEARLY_ALL_REACHED) * summary.counted:
        return []
    return [
        f"{unreached:,} junctions need more than {summary.max_n} n-nucleotides: --max-n all counts every pathway.",
        "To rank junctions use weight, a column of the table, with --max-n all, or hpcvdj pgen.",
    ]


MOST_WARNED = 3
"""The most tables of another species that warnings name."""


def warn(computed: "list[tuple[Inputs, Summary]]", reference: "Reference") -> None:
    """Warn of excluded rows of all tables together, of tables without a countable row, and of other species."""
    from hpcvdj.repertoires.species import species_warning
    from hpcvdj.repertoires.tally import log_exclusions
    from hpcvdj.values.summary import total_of

    total = total_of([summary for _, summary in computed])
    name = computed[0][0].path.name if len(computed) == 1 else f"{len(computed):,} tables"
    log_exclusions(name, total)
    if len(computed) > 1:
        for inputs, summary in computed:
            if not summary.counted:
                log.warning("%s: no row could be counted", inputs.path)
    warnings = [(inputs.path, text) for inputs, summary in computed if (text := species_warning(summary, reference))]
    for path, text in warnings[:MOST_WARNED]:
        log.warning("%s: %s", path, text)
    if warnings[MOST_WARNED:]:
        log.warning("likewise: %s", few([path.name for path, _ in warnings[MOST_WARNED:]], 20))
