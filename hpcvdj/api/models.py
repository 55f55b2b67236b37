"""Infer recombination models from junctions, write them, show them as tables, and compare them."""

from dataclasses import field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpcvdj.api.individuals import answered, given_tables
from hpcvdj.api.parameters import OfTables, documented, taking
from hpcvdj.api.tables import germline as germline_of
from hpcvdj.api.tables import model_of
from hpcvdj.chance.settings import Checks
from hpcvdj.errors import InputError, log, option
from hpcvdj.inference.folder import named, texts_of, write_files
from hpcvdj.inference.infer import Fit
from hpcvdj.inference.selection import SelectionFit, sonia_model
from hpcvdj.inference.selection_question import SelectionQuestion
from hpcvdj.inference.settings import InferenceSettings, RowChoice, SelectionSettings
from hpcvdj.inference.tables import infer_tables, reading_for
from hpcvdj.kernels.backends import AUTO
from hpcvdj.model_views.comparison import Comparison, compare
from hpcvdj.recombination.calls import Ties
from hpcvdj.recombination.events import events
from hpcvdj.recombination.germline import Germline, Tables
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.origin import Origin
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.runs.run import Run
from hpcvdj.storage.folders import exclusive_folder


class _Infer(RowChoice, InferenceSettings):  # type: ignore[misc]
    """The arguments of `infer`."""

    junctions: Any
    model: Model | str | Path | None = None
    germline: Germline | Tables | None = field(default=None, kw_only=True)
    backend: str = field(default=AUTO, kw_only=True)


@taking(_Infer)
def infer(junctions: Any, model: Model | str | Path | None, **options: Any) -> Fit:
    """Infer a recombination model from junctions, on this machine.

    junctions   {junctions}; with duplicate_count, likely sequencing errors are left out
    model       where to start: {model}
    germline    or, for a locus without a model: {germline}
    backend     {backend}
    {options}

    Returns a Fit: its `model` (for `pgen`, `generate`, `compare_models`), the `trace` of evaluations, the standard
    `errors` as a model, or None without a bootstrap, and `warnings`; `write_model(fit.model, folder)` writes the model
    in IGoR's format.

    Warns (HpcvdjWarning) of excluded rows, of a model of another species, and of `Fit.warnings`.  Raises InputError if
    no row takes part, or if fewer than a quarter are possible under the model.
    """
    germline = options["germline"]
    if (model is None) == (germline is None):
        raise InputError(f"give a {option('model')} to start from or a {option('germline')} table, one of the two")
    plan = InferenceSettings.of({**options, "rows": RowChoice.of(options)})
    first: Any = germline_of(germline, d_alleles="all") if germline is not None else None
    if model is not None:
        first = model_of(model, pseudogenes=True)
    inputs = Inputs(tuple(given_tables(junctions)), reading_for(plan), together=True)
    inferred = infer_tables(inputs, first, plan, Run(), options["backend"])
    assert inferred is not None
    fit = inferred.fit
    origin = Origin(rows=fit.counted[0], species=fit.model.species)
    return replace(fit, model=replace(named(fit.model, "inferred"), origin=origin))


class _InferSelection(Checks, SelectionSettings, OfTables):
    """The arguments of `infer_selection`."""

    ties: Ties = field(default="none", init=False)
    backend: str = field(default=AUTO, kw_only=True)


@taking(_InferSelection)
def infer_selection(tables: Any, model: Model | str | Path, *, backend: str, **options: Any) -> SelectionFit:
    """Infer the selection factor Q of a model from the productive junctions of a cohort, on this machine.

    tables   the paths of tables, each of one individual, or a folder of them; a dict with the table in memory of each
             individual; or one table in memory, of one individual unless its rows name theirs (repertoire_id)
    model    {model}
    backend  {backend}
    {options}

    Returns a SelectionFit: its `model` has the factor (for `pgen`, `generate`, `enrich` and `write_model`); `gain`, its
    standard `error` and `auc` say what the factor explains of a tenth of the junctions, which was held out.

    Warns (HpcvdjWarning) of excluded rows, of genes that the model makes wrongly, of too few rows, and of a factor that
    explains nothing. Raises InputError if the model cannot make half of the rows (unless `force`), for fewer than 1,000
    distinct junctions, and for individuals with more junctions than the model makes.
    """
    question = SelectionQuestion(SelectionSettings.of(options), backend)
    fit = answered(question, given_tables(tables), model, Checks.of(options))
    for line in fit.warnings:
        log.warning("%s", line)
    return fit


@documented()
def model_from_sonia(folder: str | Path, *, backend: str = AUTO) -> Model:
    """Return a recombination model with the selection factor that SONIA or soNNia inferred.

    folder   folder of a linear model: IGoR's files, features.tsv and log.txt
    backend  {backend}

    Returns a Model with a `selection`, for `pgen`, `generate`, `enrich`, `annotate`, `associate` and `write_model`.
    Its alleles are those of the folder, because Q was inferred with these.

    Warns (HpcvdjWarning) of features that take no part, of genes without features, and if the mean of Q over junctions
    that the model makes is not about 1.  Raises InputError for a file that is missing or wrong, and for neural and
    paired models.
    """
    return sonia_model(Path(folder), backend)


@documented()
def write_model(model: Model, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write a recombination model to a folder in IGoR's format, which `load_model`, OLGA and other programs read.

    The folder has files with the selection factor, if there is one, and with what is known of the model's origin, such
    as from how few rows it was inferred.  Other programs ignore them.

    model      a Model
    folder     the folder to write
    overwrite  replace a folder that hpcvdj wrote, if nothing else is in it

    Raises InputError if there is something else of that name.
    """
    with exclusive_folder(Path(folder), overwrite=overwrite):
        write_files(Path(folder), texts_of(model), overwrite=overwrite)


@documented()
def model_tables(model: Model | str | Path) -> dict[str, pa.Table]:
    """Return the parameters of a recombination model: a pyarrow Table for each event, by the event's name.

    model  {model}

    A table has a row for each outcome and its `probability`; the columns of a condition come first.  docs/pgen.md lists
    the events and their columns.  Raises InputError for a model that cannot be read.
    """
    return {
        name: pa.table({**event.columns, "probability": event.probability})
        for name, event in events(model_of(model)).items()
        if not event.derived
    }


@documented()
def compare_models(a: Model | str | Path, b: Model | str | Path) -> Comparison:
    """Compare two recombination models of a locus by the divergences of each event, in bits.

    a, b  {model}

    Returns a Comparison: `rows` (and `to_table()`) with the Jensen-Shannon divergence and both Kullback-Leibler
    divergences of each event and of each condition; `only_a` and `only_b`, the alleles that the other model lacks.
    Raises InputError if the models have no V, D or J allele in common, or if only one of them has D genes.
    """
    return compare(model_of(a), model_of(b))
