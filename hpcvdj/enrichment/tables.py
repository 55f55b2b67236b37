"""Enrichment of the clonotypes of a table: rows in, tested clonotypes and what is said of them out."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import hpcvdj
from hpcvdj.chance.check import ModelFit, check_model, check_tables, sample_of_table
from hpcvdj.chance.settings import CHECKS, Checks
from hpcvdj.enrichment.clonotypes import Clonotypes, DistinctJunctions, distinct_junctions
from hpcvdj.enrichment.enrich import Enrichment, ReadOnce, enrich, enrich_over
from hpcvdj.enrichment.settings import ClonotypeChoice, Settings
from hpcvdj.errors import InputError, few, option
from hpcvdj.recombination.exclusions import counts_json
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.formats import BY_HEADER, Opening
from hpcvdj.repertoires.genes import has_nucleotides
from hpcvdj.repertoires.inputs import Inputs, tables_of
from hpcvdj.repertoires.junctions import REPERTOIRE, Junctions, read_table
from hpcvdj.repertoires.reading import Reading, productive_reading
from hpcvdj.repertoires.sequence_fields import common_fields, fields_of_table
from hpcvdj.repertoires.species import species_warning
from hpcvdj.repertoires.tables import as_arrow
from hpcvdj.repertoires.tally import log_exclusions, tally_of
from hpcvdj.results.facts import Targets
from hpcvdj.runs.folder import Identity
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.inputs import file_digest

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Enriched:
    """A table's enrichment, and what was read for it."""

    enrichment: Enrichment
    rows_read: int
    excluded: int
    left_out: dict[str, int]
    junctions: int


def enrich_table(
    table: Any,
    model: Model,
    settings: Settings,
    choice: ClonotypeChoice,
    control: Any = None,
    warn: Callable[[str], None] = log.warning,
    checks: Checks = CHECKS,
) -> Enrichment:
    """Test the clonotypes of a pandas DataFrame or a pyarrow Table, on this machine.

    warn    called with each warning
    checks  what is done if the model does not fit the table
    """

    def read(given: Any) -> DistinctJunctions:
        names = as_arrow(given).column_names
        if REPERTOIRE in names and len(found := set(map(str, as_arrow(given)[REPERTOIRE].to_pylist()))) > 1:
            raise _several("the table", sorted(found))
        junctions = read_table(given, model, reading)
        tally = tally_of(junctions)
        for message in filter(None, (tally.substitutions, tally.exclusions, species_warning(tally, model))):
            warn(message)
        return _distinct(junctions, model, choice, warn)

    tables = [given for given in (table, control) if given is not None]
    has = [fields_of_table(given) for given in tables]
    reading = productive_reading([name for name in has[0] if name in has[-1]], reads=True, genes=settings.genes)
    fit = check_model(checks, sample_of_table(table, model, replace(reading, reads=False)), model, warn)
    own = [read(given) for given in tables]
    found = _tested(own, model, settings, choice, Run(), fit)
    assert found is not None
    if found[1].read_once is not None:
        warn(said_of_read_once(found[1].read_once, int(found[0].variants.sum())))
    return found[1]


def enrich_file(
    given: Sequence[Path], model: Model, settings: Settings, choice: ClonotypeChoice, run: Run,
    opening: Opening = BY_HEADER, checks: Checks = CHECKS, further: Sequence[Path] = (),
) -> Enriched | None:  # fmt: skip
    """Test the clonotypes of a table of one individual, and write them to the target of `run`, beside a file of facts.

    given    the table, and the control if there is one
    further  other files that the caller writes of the result

    The result on root, None on the other ranks.  HpcvdjError for bad input and failures; the target is then what it was
    before.  CompleteError if the run resumes, and the target is of the same tables and settings.
    """
    target = run.target
    assert target is not None
    path, control = (*given, None)[:2]
    assert path is not None
    targets = Targets(target, tuple(further))

    def identity(tables: list[list[str]]) -> Identity:
        return {"tables": tables, "opening": opening.recorded(), **_numbers(model, settings, choice, checks)}

    def check() -> bool:
        replaces = run.overwrite
        if run.resume and targets.facts.exists():
            tables = [table.path for own in given for table in tables_of([own], reading).tables]
            replaces = targets.resume(identity([[own.name, file_digest(own)] for own in tables]), overwrite=replaces)
        targets.require(given, overwrite=replaces)
        return replaces

    reading = run.from_root(
        lambda: productive_reading(common_fields(given, opening), opening, reads=True, genes=settings.genes)
    )
    overwrite = run.from_root(check)
    inputs, junctions, own = _read(path, model, choice, run, reading)
    fit = run.from_root(lambda: check_tables(checks, [inputs], model, log.warning))
    run.request.begin()
    of_control, others = None, []
    if control is not None:
        of_control, _, distinct = _read(control, model, choice, run, reading)
        others = [distinct]
        same = set(of_control.repertoires) & set(inputs.repertoires)

        def require_others() -> None:
            if same:
                raise InputError(f"{control}: has the individual that is tested; give a control of other people")

        run.on_root(require_others)
    tested = _tested([own, *others], model, settings, choice, run, fit)

    def finish() -> Enriched:
        assert tested is not None
        assert junctions is not None
        own, found = tested
        facts = {
            "command": "enrich",
            "sequence_field": reading.sequence_field,
            **run.provenance(),
            "tables": inputs.recorded,
            "control": of_control.recorded if of_control is not None else [],
            **model.facts(),
            **fit.facts(),
            "settings": asdict(settings),
            "choice": asdict(choice),
            "identity": identity(
                [[table.path.name, table.sha256] for part in (inputs, of_control) if part for table in part.tables]
            ),
            "rows_read": junctions.rows_read,
            "rows_excluded": counts_json(junctions.excluded.counts()),
            "rows_left_out": own.left_out,
            "junctions": int(own.variants.sum()),
            "clonotypes": found.clonotypes,
            "tested": found.table.num_rows,
            "not_tested": found.not_tested,
            "kappa": found.kappa,
            "kappa_interval": [found.estimate.low, found.estimate.high] if found.estimate is not None else None,
            "kappa_by_length": found.by_length,
            "qq": found.qq,
            "hits": found.hits,
            "clusters": found.clusters,
            "not_available": found.not_available,
            "read_once": asdict(found.read_once) if found.read_once is not None else None,
        }
        targets.write(facts, {target: found.table}, overwrite=overwrite)
        return Enriched(found, junctions.rows_read, len(junctions.excluded), own.left_out, facts["junctions"])

    return run.on_root(finish)


def _numbers(model: Model, settings: Settings, choice: ClonotypeChoice, checks: Checks) -> Identity:
    """What decides the numbers, besides the tables: the program, the model, the settings."""
    elsewhere = {"model", "backend", "strict_binding"}
    own = {**model.facts(), **asdict(settings), **asdict(choice), **asdict(checks)}
    return {"hpcvdj": hpcvdj.__version__} | {name: value for name, value in own.items() if name not in elsewhere}


def _read(
    path: Path, model: Model, choice: ClonotypeChoice, run: Run, reading: Reading
) -> tuple[Inputs, Junctions | None, DistinctJunctions | None]:
    """The inputs, and root's junctions of all rows and distinct ones."""
    inputs = surveyed(run.from_root(lambda: tables_of([path], reading)), run)

    def one_individual() -> None:
        if len(inputs.repertoires) > 1:
            raise _several(path, inputs.repertoires)

    run.on_root(one_individual)
    junctions = run.root_steps(lambda: inputs.read(model, between=run.raise_if_stopping), NOTHING_YET)

    def made() -> DistinctJunctions:
        assert junctions is not None
        log_exclusions(path.name, junctions.rows_read, junctions.excluded.counts(), junctions.substituted)
        other = species_warning(tally_of(junctions), model)
        if other is not None:
            log.warning("%s: %s", path.name, other)
        return _distinct(junctions, model, choice)

    return inputs, junctions, run.root_steps(made, NOTHING_YET)


def _several(place: Path | str, repertoires: list[str]) -> InputError:
    found = f"{len(repertoires):,} repertoires ({few(repertoires)})"
    return InputError(f"{place}: has {found}; neighbours are those of one individual, so give each its own table")


def _distinct(
    junctions: Junctions,
    model: Model,
    choice: ClonotypeChoice,
    warn: Callable[[str], None] = log.warning,
) -> DistinctJunctions:
    unknown = junctions.reads is None and len(junctions.row) > 0
    if unknown and choice.min_reads > 1:
        raise InputError(
            f"{option('min_reads', choice.min_reads)}: the table has no column duplicate_count; leave it out"
        )
    if not choice.likely_errors and not has_nucleotides(junctions.repertoire):
        warn("amino acids only: likely sequencing errors cannot be told, and take part")
    elif unknown and not choice.likely_errors:
        warn("no column duplicate_count: likely sequencing errors cannot be told, and take part")
    return distinct_junctions(junctions, model, errors=choice.likely_errors)


def _tested(
    read: Sequence[DistinctJunctions | None],
    model: Model,
    settings: Settings,
    choice: ClonotypeChoice,
    run: Run,
    fit: ModelFit,
) -> tuple[Clonotypes, Enrichment] | None:
    """The clonotypes of a table that root has read, and their test; None on the other ranks.

    read  the table, and the control if there is one
    fit   how the model fits the table
    """
    backend = run.bind(settings.backend, strict=settings.strict_binding)

    def test(min_reads: int) -> tuple[Clonotypes, Enrichment] | None:
        own = run.on_root(lambda: [part.clonotypes(min_reads) for part in read if part is not None])
        if len(read) == 1:
            found = enrich(own[0] if own is not None else None, model, settings, run, backend, fit)
        else:
            found = run.on_root(lambda: enrich_over(own[0], own[1], settings, backend) if own is not None else None)
        return (own[0], found) if own is not None and found is not None else None

    def read_once() -> int:
        known = all(part is not None and part.reads is not None for part in read)
        return read[0].read_once() if read[0] is not None and known and choice.min_reads == 1 else 0

    tested = test(choice.min_reads)
    once = run.from_root(read_once)
    if not once:
        return tested
    hits = None
    try:
        others = test(2)
        hits = others[1].hits if others is not None else None
    except InputError as error:
        log.debug("of two reads or more: %s", error)
    return (tested[0], replace(tested[1], read_once=ReadOnce(once, hits))) if tested is not None else None


def said_of_read_once(own: ReadOnce, junctions: int) -> str:
    """What users hear if most of their junctions have one read."""
    said = f"most junctions ({own.junctions:,} of {junctions:,}) have one read, as many sequencing errors do"
    if own.hits_without is None:
        return f"{said}; the others alone ({option('min_reads', 2)}) cannot be tested"
    return f"{said}; consider {option('min_reads', 2)}, with which there are {own.hits_without:,} hits"
