"""Compute how probable recombination makes a junction, list its scenarios, and draw junctions by chance."""

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpcvdj.api.individuals import given_tables
from hpcvdj.api.parameters import InOneProcess, OfModel, documented, taking
from hpcvdj.api.tables import Given, listed, model_of, typed, used_model
from hpcvdj.api.tables import germline as germline_of
from hpcvdj.chance.check import check_tables
from hpcvdj.chance.first_rows import WITH_OPTION
from hpcvdj.chance.question import read_rows
from hpcvdj.chance.settings import Checks
from hpcvdj.cohorts.like import LikeQuestion, cohort_like
from hpcvdj.cohorts.settings import Naming, require_like
from hpcvdj.errors import InputError
from hpcvdj.generation.generate import generate as draw
from hpcvdj.generation.settings import PAPER_SEQUENCES, GenerationSettings, SimulationSettings
from hpcvdj.generation.simulate import simulate as make
from hpcvdj.kernels.backends import AUTO
from hpcvdj.kernels.quantities import Pgen
from hpcvdj.options import Settings, setting
from hpcvdj.probabilities.settings import PgenConfig, PgenSettings
from hpcvdj.recombination.germline import Germline, Tables
from hpcvdj.recombination.likely import LikelyScenarios, most_likely
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.symbols import Alphabet, read_alphabet
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.readers.memory import is_column
from hpcvdj.repertoires.reading import Reading, reading_of
from hpcvdj.repertoires.sequence_fields import fields_of
from hpcvdj.repertoires.species import warn_of_rows
from hpcvdj.repertoires.table import table_of
from hpcvdj.results.frames import with_facts
from hpcvdj.runs.run import Run
from hpcvdj.values.compute import values_of
from hpcvdj.values.task import recorded_makers


class _Pgen(InOneProcess, Checks, PgenSettings):
    """The arguments of `pgen`."""

    junctions: Any
    model: Model | str | Path
    strict: bool = field(default=False, kw_only=True)
    keep_misfits: bool = field(default=False, init=False)


@taking(_Pgen)
def pgen(junctions: Any, model: Model | str | Path, *, strict: bool, **options: Any) -> Any:
    """Compute how probable it is that recombination makes each junction of a table, on this machine.

    junctions       a table as of `count`, with junction or junction_aa; or junctions alone (a list, a Series), with
                    genes="any"
    model           {model}
    {options}
    strict          the first row without a probability is an error

    Returns a table of the same kind (of a path, or of junctions alone: a pyarrow Table), with its rows in the same
    order and columns `pgen_nt`, `pgen_aa`, `pgen_aa_1mm` that were asked for beside them (null for a row without a
    value, as for the amino acids of a junction out of frame) and `pgen_excluded` (why a row has no value).  They
    replace columns of these names.  How many junctions anyone would make, and how many hardly anybody (docs/pgen.md),
    is in `table.attrs["hpcvdj"]["makers"]` of a pandas DataFrame, and in `table.schema.metadata[b"hpcvdj"]` of a
    pyarrow Table, as JSON; polars has no place for it.

    Warns (HpcvdjWarning) of rows without a value, and of what does not fit the model: genes, lengths, calls.  Raises
    InputError for a missing column, for a model that cannot be read, for one that cannot make half of the rows (unless
    `force`), or, with `strict`, for a row without a value.
    """
    settings, checks = PgenSettings.of(options), Checks.of(options)
    if is_column(junctions):
        if settings.genes != "any":
            raise InputError(
                'junctions alone have no V and J calls; give genes="any", or a table with v_call and j_call'
            )
        junctions = listed(junctions, settings.sequence_field)
    symbols, alphabet = None, settings.alphabet
    if alphabet is not None:
        symbols = Alphabet.of(alphabet) if isinstance(alphabet, Mapping) else read_alphabet(Path(alphabet))
    original = Given.of(junctions)
    table = table_of(original.arrow)
    reading = reading_of(fields_of(table), settings.sequence_field, symbols, strict=strict)
    config = settings.config(amino_acids=reading.alphabet is not None)
    reference = config.model(checks.adapted(used_model(model), settings.genes))
    inputs = Inputs((table,), config.reads(reading))
    original.require(inputs.reading.columns)
    check_tables(checks, [inputs], reference, config.names[0], remedy=WITH_OPTION)
    values, tally, makers = values_of(inputs, reference, config)
    warn_of_rows(tally, reference, column=Pgen.excluded)
    return with_facts(original.beside(values), recorded_makers(makers))


@documented()
def likely_scenarios(
    junction: str,
    model: Model | str | Path,
    *,
    v_call: str | None = None,
    j_call: str | None = None,
    number: int = 10,
    joint: bool = False,
) -> LikelyScenarios:
    """Return the most likely scenarios in which recombination makes a junction, with their posterior probabilities.

    junction        nucleotides, with the codons of Cys 104 and Phe/Trp 118
    model           {model}
    v_call, j_call  alleles, genes or families, or lists of them; without both, scenarios have any V and J
    number          number of scenarios to list; `shown` is their share of the posterior probability
    joint           {joint}

    Raises InputError if the junction has no generation probability, with the reason, or for a V call without a J call
    or the reverse.
    """
    _Scenarios.of(locals())
    if (v_call is None) != (j_call is None):
        raise InputError("a V call without a J call, or a J call without a V call: give both, or none")
    loaded = model_of(model, joint=joint)
    junction = junction.strip().upper()
    row = pa.table({"v_call": [v_call or ""], "j_call": [j_call or ""], "junction": [junction]})
    config = PgenConfig(("pgen_nt",), "any" if v_call is None else "call")
    table, *_ = values_of(Inputs.of_table(row, config.reads(Reading())), loaded, config)
    (reason,) = table[Pgen.excluded].to_pylist()
    if reason:
        raise InputError(
            f"{junction or 'the empty sequence'}: {reason}; explain takes nucleotides: give a junction of A, C, G, T "
            f"and calls of {loaded.name}"
        )
    v = loaded.alleles("V") if v_call is None else loaded.resolve("V", v_call)
    j = loaded.alleles("J") if j_call is None else loaded.resolve("J", j_call)
    assert isinstance(v, Alleles)
    assert isinstance(j, Alleles)
    scenarios = most_likely(loaded, junction, v.places, j.places, number)
    return LikelyScenarios(loaded, junction, table["pgen_nt"][0].as_py(), scenarios)


class _Scenarios(Settings):
    """The arguments of `likely_scenarios` that have bounds."""

    junction: str = setting("nucleotides", "")
    v_call: str | None = setting("V alleles", None)
    j_call: str | None = setting("J alleles", None)
    number: int = setting("number of scenarios", 10, least=0)


class _Generate(GenerationSettings, OfModel):
    """The arguments of `generate`."""

    like: Any = field(default=None, kw_only=True)
    individual: str | None = field(default=None, kw_only=True)
    force: bool = field(default=False, kw_only=True)
    joint: bool = field(default=False, kw_only=True)
    backend: str = field(default=AUTO, kw_only=True)


@taking(_Generate)
def generate(model: Model | str | Path, *, like: Any, joint: bool, backend: str, **options: Any) -> pa.Table:
    """Draw sequences from a recombination model, on this machine.

    model       {model}
    number      junctions to draw; with `productive`, productive ones
    like        a cohort, as of `sharing`: draw a cohort like it, with as many productive recombinations for each
                individual; `number` does not matter
    individual  the column of `like` that names the individual of each row
    force       {force}
    joint       {joint}
    backend     {backend}
    {options}

    Returns a pyarrow Table with the columns sequence_id, v_call, d_call, j_call, junction, junction_aa (empty for a
    junction out of frame) and productive; docs/generate.md lists those of `scenarios`.  The number in sequence_id is
    the number of the draw, so with `productive` some numbers are missing.

    The backend does not change the rows.  Raises InputError for a model that cannot be read, or that makes no
    (productive) junction.
    """
    require_like(options["individual"], like)
    plan, run = GenerationSettings.of(options), Run()
    loaded = used_model(model, joint=joint)
    if like is not None:
        question = LikeQuestion(Naming(individual=options["individual"]))
        checks = replace(Checks.of(options), keep_misfits=True)
        rows = read_rows(question, given_tables(like, question.opening()), loaded, checks, run)
        batches = cohort_like(question.cohort_on_root(rows, loaded, run), loaded, plan, run, backend)
    else:
        batches = draw(loaded, plan, run.bind(backend), run)
    return pa.Table.from_batches(list(batches))


@documented(SimulationSettings)
def simulate(
    germline: Germline | Tables,
    number: int = PAPER_SEQUENCES,
    *,
    seed: int = 0,
    n_lengths: range = range(11),
    productive: bool = False,
    orf: bool = False,
) -> pa.Table:
    """Make in silico junctions: V, D and J forms and n-nucleotides drawn at random.

    germline       {germline}
    {options}

    Returns a pyarrow Table with the columns sequence_id, v_call, d_call, j_call, junction, productive, n1_length and
    n2_length.  Every pathway of a V-J pair and one n-length is equally likely; `generate` draws from a recombination
    model instead.  Raises InputError for a plan that cannot be met.
    """
    drawn = make(germline_of(germline), SimulationSettings.of(locals()))
    return typed(pa.Table.from_batches(list(drawn)))
