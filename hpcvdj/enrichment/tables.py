"""Enrichment of the clonotypes of a table: rows in, tested clonotypes and what is said of them out."""

import hashlib
import json
import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import hpcvdj
from hpcvdj.counting.slices import NOTHING_YET, surveyed
from hpcvdj.counting.species import species_warning
from hpcvdj.counting.summary import log_exclusions, tally_of
from hpcvdj.counting.tables import productive_reading
from hpcvdj.enrichment.clonotypes import Clonotypes, clonotypes_of
from hpcvdj.enrichment.enrich import Enrichment, Settings, enrich, enrich_over
from hpcvdj.errors import CompleteError, InputError, few
from hpcvdj.inference.rows import reads_of, reads_of_table
from hpcvdj.recombination.exclusions import counts_json
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.formats import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import Inputs, tables_of
from hpcvdj.repertoires.junctions import REPERTOIRE, Junctions, read_table
from hpcvdj.repertoires.tables import as_arrow, table_suffix, write_table
from hpcvdj.runs.run import Run
from hpcvdj.storage.files import atomic_path, require_distinct, require_writable
from hpcvdj.storage.inputs import file_digest
from hpcvdj.storage.opening import damage

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ClonotypeChoice:
    """Which junctions take part.

    min_reads   that a nucleotide junction must have
    likely_errors  likely sequencing errors take part as well
    """

    min_reads: int = 1
    likely_errors: bool = False

    def __post_init__(self) -> None:
        if self.min_reads < 1:
            raise InputError(f"--min-reads {self.min_reads}: give at least 1")


@dataclass(frozen=True)
class Enriched:
    """A table's enrichment, and what was read for it."""

    enrichment: Enrichment
    rows_read: int
    excluded: int
    left_out: dict[str, int]


def enrich_table(
    table: Any,
    model: Model,
    settings: Settings,
    choice: ClonotypeChoice,
    control: Any = None,
    warn: Callable[[str], None] = log.warning,
) -> Enrichment:
    """Test the clonotypes of a pandas DataFrame or a pyarrow Table, on this machine.

    warn  called with each warning
    """

    def read(given: Any) -> Clonotypes:
        names = as_arrow(given).column_names
        if REPERTOIRE in names and len(found := set(map(str, as_arrow(given)[REPERTOIRE].to_pylist()))) > 1:
            raise _several("the table", sorted(found))
        junctions = read_table(given, model, productive_reading())
        tally = tally_of(junctions)
        for message in filter(None, (tally.substitutions, tally.exclusions, species_warning(tally, model))):
            warn(message)
        return _clonotypes(junctions, reads_of_table(given), model, choice, warn)

    if control is not None:
        return enrich_over(read(table), read(control), settings, Run().bind(settings.backend))
    found = enrich(read(table), model, settings, Run())
    assert found is not None
    return found


def enrich_file(
    path: Path, model: Model, settings: Settings, choice: ClonotypeChoice, run: Run, opening: Opening = BY_HEADER,
    control: Path | None = None,
) -> Enriched | None:  # fmt: skip
    """Test the clonotypes of a table of one individual, and write them to the target of `run`, beside a file of facts.

    The result on root, None on the other ranks.  HpcvdjError for bad input and failures; the target is then what it was
    before.  CompleteError if the run resumes, and the target is of the same tables and settings.
    """
    target = run.target
    assert target is not None
    facts_path = target.with_name(target.name + ".json")
    given = [path, *([control] if control is not None else [])]

    def check() -> None:
        table_suffix(target)
        if run.resume and target.exists() and facts_path.exists():
            with damage(facts_path):
                made_of = json.loads(facts_path.read_text(encoding="utf-8")).get("asked")
            if made_of == _asked([file_digest(own) for own in given], model, settings, choice):
                raise CompleteError(f"{target}: is complete already; there is nothing to resume")
        for place in (target, facts_path):
            require_writable(place, overwrite=run.overwrite)
            require_distinct(place, *given)

    run.on_root(check)
    inputs, junctions, own = _read(path, model, choice, run, opening)
    run.request.begin()
    if control is None:
        found = enrich(own, model, settings, run)
        of_control = None
    else:
        of_control, _, others = _read(control, model, choice, run, opening)

        def tested() -> Enrichment:
            assert own is not None
            assert others is not None
            if of_control is not None and set(of_control.repertoires) & set(inputs.repertoires):
                raise InputError(f"{control}: has the individual that is tested; give a control of other people")
            return enrich_over(own, others, settings, backend)

        backend = run.bind(settings.backend, strict=settings.strict_binding)
        found = run.on_root(tested)

    def finish() -> Enriched:
        assert found is not None
        assert junctions is not None
        assert own is not None
        facts = {
            "command": "enrich",
            **run.provenance(),
            "tables": _recorded(inputs),
            "control": _recorded(of_control) if of_control is not None else [],
            **model.facts(),
            "settings": asdict(settings),
            "choice": asdict(choice),
            "asked": _asked(
                [table.sha256 for part in (inputs, of_control) if part is not None for table in part.tables],
                model,
                settings,
                choice,
            ),
            "rows_read": junctions.rows_read,
            "rows_excluded": counts_json(junctions.excluded.counts()),
            "rows_left_out": own.left_out,
            "junctions": int(own.variants.sum()),
            "clonotypes": found.clonotypes,
            "tested": found.table.num_rows,
            "impossible": found.impossible,
            "kappa": found.kappa,
            "kappa_interval": [found.estimate.low, found.estimate.high] if found.estimate is not None else None,
            "kappa_by_length": found.by_length,
            "qq": found.qq,
            "hits": found.hits,
            "clusters": found.clusters,
        }
        with ExitStack() as stack:
            temporary = stack.enter_context(atomic_path(facts_path, overwrite=run.overwrite))
            temporary.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
            # A table without rows has a header, too.
            header = pa.RecordBatch.from_pylist([], found.table.schema)
            write_table(target, [header, *found.table.to_batches()], overwrite=run.overwrite)
        return Enriched(found, junctions.rows_read, len(junctions.excluded), own.left_out)

    return run.on_root(finish)


def _asked(digests: list[str], model: Model, settings: Settings, choice: ClonotypeChoice) -> str:
    """SHA-256 of what decides the numbers: the program, the tables, the model, the settings."""
    where = {"backend", "strict_binding"}
    numbers = {name: value for name, value in asdict(settings).items() if name not in where}
    said = json.dumps([hpcvdj.__version__, digests, model.facts(), numbers, asdict(choice)], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def _recorded(inputs: Inputs) -> list[list[Any]]:
    return [[str(table.path), table.sha256, table.rows] for table in inputs.tables]


def _read(
    path: Path, model: Model, choice: ClonotypeChoice, run: Run, opening: Opening
) -> tuple[Inputs, Junctions | None, Clonotypes | None]:
    """The inputs, and root's junctions and clonotypes."""
    inputs = surveyed(run.from_root(lambda: tables_of([path], productive_reading(opening))), run)

    def one_individual() -> None:
        if len(inputs.repertoires) > 1:
            raise _several(path, inputs.repertoires)

    run.on_root(one_individual)
    junctions = run.root_steps(lambda: inputs.read(model, between=run.raise_if_stopping), NOTHING_YET)

    def made() -> Clonotypes:
        assert junctions is not None
        log_exclusions(path.name, junctions.rows_read, junctions.excluded.counts(), junctions.substituted)
        other = species_warning(tally_of(junctions), model)
        if other is not None:
            log.warning("%s: %s", path.name, other)
        return _clonotypes(junctions, reads_of(inputs), model, choice)

    return inputs, junctions, run.root_steps(made, NOTHING_YET)


def _several(place: Path | str, repertoires: list[str]) -> InputError:
    found = f"{len(repertoires):,} repertoires ({few(repertoires)})"
    return InputError(f"{place}: has {found}; neighbours are those of one individual, so give each its own table")


def _clonotypes(
    junctions: Junctions,
    reads: Any,
    model: Model,
    choice: ClonotypeChoice,
    warn: Callable[[str], None] = log.warning,
) -> Clonotypes:
    if reads is None and choice.min_reads > 1:
        raise InputError(f"--min-reads {choice.min_reads}: the table has no column duplicate_count; leave it out")
    if reads is None and not choice.likely_errors:
        warn("no column duplicate_count: likely sequencing errors cannot be told, and take part")
    return clonotypes_of(junctions, reads, model, min_reads=choice.min_reads, errors=choice.likely_errors)
