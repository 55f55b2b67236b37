"""hpcvdj from a script or a notebook: one function for each question."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from hpcvdj.counting.compute import count_in_memory
from hpcvdj.counting.config import DEFAULT_MAX_N, Config, Normalize, PgenConfig, pgen_names
from hpcvdj.errors import InputError, choices, require_choice, require_integer
from hpcvdj.generation.generate import Generation
from hpcvdj.generation.generate import generate as draw
from hpcvdj.inference.folder import write_files
from hpcvdj.inference.infer import Fit, Plan
from hpcvdj.inference.rows import RowChoice
from hpcvdj.inference.tables import infer_table
from hpcvdj.kernels.backends import AUTO
from hpcvdj.kernels.pathways.methods import Direct
from hpcvdj.kernels.quantities import Pgen
from hpcvdj.recombination.calls import CallPolicy, Genes, Policy
from hpcvdj.recombination.comparison import Comparison, compare
from hpcvdj.recombination.events import events
from hpcvdj.recombination.explanation import Explanation
from hpcvdj.recombination.germline import DFormConvention, Germline, PaperDForms, Tables, read_germline
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.igor_writer import model_texts
from hpcvdj.recombination.likely import LikelyScenarios, most_likely
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.repertoire import JunctionField, Problem, SequenceField
from hpcvdj.recombination.symbols import Alphabet, read_alphabet
from hpcvdj.repertoires.junctions import Reading, read_table, reading_of
from hpcvdj.repertoires.tables import as_arrow
from hpcvdj.results.joining import Lookup, beside, join
from hpcvdj.results.reader import Result
from hpcvdj.results.selection import require
from hpcvdj.runs.run import Run

_CHAIN_FIELDS = ("sequence_id", "v_call", "j_call", "junction", "cdr3")


def count(
    junctions: Any,
    germline: Germline | Tables,
    *,
    max_n: int | Literal["all"] = DEFAULT_MAX_N,
    method: str = Direct.name,
    backend: str = AUTO,
    d_forms: str = PaperDForms.name,
    sequence_field: SequenceField = "junction",
    ambiguous_calls: Policy = "exclude",
    unlisted_alleles: Policy = "exclude",
    strict: bool = False,
) -> Any:
    """Count the recombination pathways of each junction of a table, on this machine.

    junctions         a pandas DataFrame or a pyarrow Table (or any object with the Arrow stream interface) with the
                      AIRR columns v_call, j_call and junction; other columns are kept
    germline          a Germline; or what `read_germline` takes: the name of a germline table (`human_trb`), of a
                      species (`human`, for all its loci), a path, or a list of them
    max_n             the largest number of n-nucleotides; `all` goes up to the longest CDR3's length
    method            `direct`; `bitwise` and `baseline` enumerate as the paper does and return the same counters
    backend           `auto` takes a GPU if there is one, `cuda` requires one, `cpu` does not use it
    d_forms           `paper` counts D forms once for each pair of chew-backs, `distinct` each string once per gene
    sequence_field    the column to read: `junction`, whose Cys and Phe/Trp codons are removed, or `cdr3`
    ambiguous_calls   rows with several calls of different segments: `exclude`, or use the `first`
    unlisted_alleles  rows with an allele that the germline table lacks, of a gene that it lists: `exclude`, or use the
                      gene's `first`
    strict            the first row that cannot be counted is an error

    Returns a table of the same kind, with its rows in the same order and these columns beside them: `pathways_n0` …
    `pathways_n{max_n}` and `pathways_total` (unsigned 64-bit), `weight` (64-bit float: a pathway with m n-nucleotides
    counts 4^-m), null for a row that cannot be counted; and `pathways_excluded` (why it cannot; empty for a row that
    was counted).  Rank junctions by the weight: with many n-lengths, the longest junctions have the most pathways.

    Raises InputError for a missing column or, with `strict`, for the first row that cannot be counted.

    >>> import pyarrow as pa
    >>> from hpcvdj.recombination.germline import from_sequences
    >>> table = pa.table({"v_call": ["V1"], "j_call": ["J1"], "junction": ["TGTGCCTTT"]})
    >>> count(table, from_sequences(["GC"], ["G"], ["C"]), max_n=0)["pathways_total"].to_pylist()
    [8]
    """
    germline = germline if isinstance(germline, Germline) else read_germline(germline)
    config = Config(max_n, method, backend, d_forms)
    longest = config.method_class().longest_cdr3
    table = as_arrow(junctions)
    read = read_table(
        table, germline, Reading(sequence_field, CallPolicy(ambiguous_calls, unlisted_alleles), strict, longest)
    )
    problem = Problem(read.repertoire, germline, config.resolve_max_n(read.repertoire.longest), d_forms)
    values = count_in_memory(problem, config, Run())
    assert values is not None
    lookup = Lookup(config.method_class().quantity(), values, read.row, read.excluded)
    return beside(junctions, table, lookup.columns(0, read.rows_read))


def pgen(
    junctions: Any,
    model: Model | str | Path,
    *,
    sequence: Literal["nt", "aa", "both"] | None = None,
    mismatches: int = 0,
    genes: Genes = "call",
    sequence_field: JunctionField | None = None,
    alphabet: Mapping[str, Iterable[str]] | str | Path | None = None,
    normalize: Normalize = "none",
    joint: bool = False,
    backend: str = AUTO,
    strict: bool = False,
) -> Any:
    """Compute how probable it is that recombination makes each junction of a table, on this machine.

    junctions       a pandas DataFrame or a pyarrow Table (or any object with the Arrow stream interface) with the AIRR
                    columns v_call, j_call and junction or junction_aa; or junctions alone (a list, a Series), with
                    genes="any"
    model           a Model, the name of one (`human_trb`), or a folder in IGoR's format
    sequence        the probability of the nucleotides, `nt`, of their amino acids, `aa`, or `both`; by default all that
                    there is
    mismatches      1: also of all amino-acid sequences within one mismatch, added up
    genes           `call`: of scenarios with the V and J alleles that the calls name; `any`: of all scenarios
    sequence_field  the column to read: `junction`, or `junction_aa`, amino acids in which X, B, J and Z are several;
                    by default `junction_aa` if the table has no `junction`; `junction` of junctions alone
    alphabet        more symbols of amino acids: for each the symbols and codons that it stands for, as in
                    {"x": ["D", "E", "AAA"]}; or the file that defines them
    normalize       the probability among `productive` recombinations (other junctions are excluded), or, `none`, among
                    all
    joint           take P(V, D, J) as a model of IGH has it; by default P(V) P(D, J), as in OLGA
    backend         `auto` takes a GPU if there is one, `cuda` requires one, `cpu` does not use it
    strict          the first row without a probability is an error

    Returns a table of the same kind (of junctions alone: a pyarrow Table), with its rows in the same order and columns
    `pgen_nt`, `pgen_aa`, `pgen_aa_1mm` that were asked for beside them (null for a row without a value, as for the
    amino acids of a junction out of frame) and `pgen_excluded` (why a row has no value).

    Raises InputError for a missing column, for a model that cannot be read, or, with `strict`, for a row without a
    value.

    >>> import pyarrow as pa
    >>> from hpcvdj.recombination.igor import olga_folder
    >>> if olga_folder():  # doctest: +SKIP
    ...     pgen(["TGTGCCAGCAGTTTCGGGACAGGGTTTGAACAGTACTTC"], "human_trb", genes="any")["pgen_nt"].to_pylist()
    """
    if isinstance(junctions, list | tuple) or getattr(junctions, "ndim", 2) == 1:
        if genes != "any":
            raise InputError(
                'junctions alone have no V and J calls; give genes="any", or a table with v_call and j_call'
            )
        junctions = pa.table({sequence_field or "junction": pa.array(list(junctions), pa.string())})
    symbols = None
    if alphabet is not None:
        symbols = Alphabet.of(alphabet) if isinstance(alphabet, Mapping) else read_alphabet(Path(alphabet))
    table = as_arrow(junctions)
    reading = reading_of(table.column_names, sequence_field, symbols, strict=strict)
    names = pgen_names(sequence, mismatches, amino_acids=reading.alphabet is not None)
    config = PgenConfig(names, genes, backend, normalize=normalize, joint=joint)
    loaded = config.model(_loaded(model))
    read = read_table(table, loaded, config.reads(reading))
    values = count_in_memory(config.problem(read.repertoire, loaded), config, Run())
    assert values is not None
    lookup = Lookup(config.method_class().quantity(), values, read.row, read.excluded)
    return beside(junctions, table, lookup.columns(0, read.rows_read))


def generate(
    model: Model | str | Path,
    n: int,
    *,
    seed: int = 0,
    productive: bool = False,
    scenarios: bool = False,
    joint: bool = False,
    backend: str = AUTO,
) -> pa.Table:
    """Draw sequences from a recombination model, on this machine.

    model       as of `pgen`
    n           rows
    seed        a number from 0 to 2^64 - 1; sequence number i depends on the model, the seed and i alone
    productive  keep only productive junctions: in frame, without a stop codon, from Cys 104 to Phe, Trp or Val 118
    scenarios   also return how each junction was made
    joint       as of `pgen`
    backend     as of `pgen`; it does not change the rows

    Returns a pyarrow Table with the columns sequence_id, v_call, d_call, j_call, junction, junction_aa (empty for a
    junction out of frame) and productive; docs/generate.md lists those of `scenarios`.  The number in sequence_id is
    that of the draw, so with `productive` some are left out.

    Raises InputError for a model that cannot be read, or that makes no (productive) junction.
    """
    plan = Generation(n, seed, productive, scenarios)
    run = Run()
    return pa.Table.from_batches(list(draw(_loaded(model, joint=joint), plan, run.bind(backend), run)))


def infer(junctions: Any, start: Model | Germline | str | Path, *, backend: str = AUTO, **options: Any) -> Fit:
    """Infer a recombination model from junctions, on this machine.

    junctions  a pandas DataFrame or a pyarrow Table (or any object with the Arrow stream interface) with the AIRR
               columns v_call, j_call and junction; with duplicate_count, likely sequencing errors are left out
    start      where to start: a Model, the name of one (`human_trb`) or its folder; or, for a locus without a model, a
               Germline or the path of a germline table
    backend    as of `pgen`; the model is the same for any number of threads
    options    as those of `hpcvdj infer`: `rows` ("out-of-frame", "nonproductive", "all"), `duplicates`,
               `likely_errors`, `genes`, `only` and `fixed` (tuples of parameters), `prior`, `iterations`, `tolerance`,
               `hold_out`, `bootstrap`, `seed`, `errors`, and `from_` ("model", "uniform", "mixed") for --start

    Returns a Fit: its `model` (for `pgen`, `generate`, `compare_models`), the `trace` of evaluations, the standard
    `errors` as a model, or None without a bootstrap, and `warnings`; `write_model(fit.model, folder)` writes the model
    in IGoR's format.

    Raises InputError if no row takes part, or if none is possible under the model; TypeError for an unknown option.
    """
    names = {own.name for own in fields(RowChoice)}
    rows = RowChoice(**{name: options.pop(name) for name in names & options.keys()})
    plan = Plan(rows, start=options.pop("from_", None), **options)
    loaded: Any = start
    if not isinstance(start, Model | Germline):
        loaded = read_germline(start, d_alleles="all") if Path(start).is_file() else load_model(start, pseudogenes=True)
    return infer_table(junctions, loaded, plan, backend)


def write_model(model: Model, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write a recombination model to a folder in IGoR's format, which `load_model`, OLGA and others read.

    overwrite  replace a folder that has a model and nothing else

    InputError if there is something else of that name.
    """
    write_files(Path(folder), model_texts(model), overwrite=overwrite)


def model_tables(model: Model | str | Path) -> dict[str, pa.Table]:
    """The parameters of a recombination model: a pyarrow Table for each event, by the event's name.

    model  a Model, the name of one (`human_trb`), or a folder in IGoR's format

    A table has a row for each outcome (given each condition, which comes first) and its `probability`.  docs/pgen.md
    lists the events and their columns.  InputError for a model that cannot be read.
    """
    return {name: event.to_table() for name, event in events(_loaded(model)).items() if not event.derived}


def compare_models(a: Model | str | Path, b: Model | str | Path) -> Comparison:
    """How different two recombination models of one locus are: divergences of each event, in bits.

    a, b  as of `model_tables`

    Returns a Comparison: `rows` (and `to_table()`) with the Jensen-Shannon divergence and both Kullback-Leibler
    divergences of each event and of each condition; `only_a` and `only_b`, the alleles that the other model lacks.
    InputError if the models have no V, D or J allele in common, or if only one of them has D genes.
    """
    return compare(_loaded(a), _loaded(b))


def _loaded(model: Model | str | Path, *, joint: bool = False) -> Model:
    loaded = model if isinstance(model, Model) else load_model(model)
    return loaded.with_joint_choice() if joint else loaded


def explain(
    sequence: str,
    v_call: str,
    j_call: str,
    germline: Germline | Tables,
    *,
    max_n: int | Literal["all"] = DEFAULT_MAX_N,
    d_forms: str = PaperDForms.name,
    sequence_field: SequenceField = "junction",
    ambiguous_calls: Policy = "exclude",
    unlisted_alleles: Policy = "exclude",
) -> Explanation:
    """The pathways of one junction (or CDR3, as `sequence_field` says) with a V and a J call.

    Arguments as of `count`; InputError with the reason if that would exclude the junction.

    >>> from hpcvdj.recombination.germline import from_sequences
    >>> germline = from_sequences(["CA"], ["GA"], ["TC"], max_p=1)
    >>> explanation = explain("CATGATC", "V1", "J1", germline, max_n=1, sequence_field="cdr3")
    >>> explanation.counters
    [3, 18]
    >>> [explanation.track(pathway) for pathway in explanation.most_direct(3)]
    ['VVvDDJJ', 'VVvDDdJ', 'VVvDjJJ']
    """
    reading = Reading(sequence_field, CallPolicy(ambiguous_calls, unlisted_alleles))
    germline = germline if isinstance(germline, Germline) else read_germline(germline)
    require_choice("d_forms", d_forms, choices(DFormConvention))
    row = {"v_call": [v_call], "j_call": [j_call], sequence_field: [sequence]}
    read = read_table(pa.table(row), germline, reading)
    if len(read.excluded):
        raise InputError(
            f"{sequence or 'the empty sequence'} ({v_call}, {j_call}): {read.excluded.exclusion(0)}; give a "
            f"{sequence_field} of A, C, G, T and calls that {germline.name} lists"
        )
    cdr3 = read.repertoire.cdr3(0)
    v, j = read.repertoire.pairs[0]
    largest = len(cdr3) if max_n == "all" else require_integer("max_n", max_n, "give a number, or all")
    return Explanation(cdr3, v, j, germline.d_segments(v.locus), largest, d_forms, germline.max_p)


def likely_scenarios(
    junction: str,
    model: Model | str | Path,
    *,
    v_call: str | None = None,
    j_call: str | None = None,
    number: int = 10,
    joint: bool = False,
) -> LikelyScenarios:
    """The most likely scenarios in which recombination makes one junction, with their posterior probabilities.

    junction        nucleotides, with the codons of Cys 104 and Phe/Trp 118
    model           as of `pgen`
    v_call, j_call  alleles, genes or families, or lists of them; without both, scenarios have any V and J
    number          scenarios to list; `shown` says how much of the posterior probability they have
    joint           as of `pgen`

    InputError if the junction has no generation probability, with the reason, or for one call without the other.
    """
    if (v_call is None) != (j_call is None):
        raise InputError("a V call without a J call, or a J call without a V call: give both, or none")
    loaded = _loaded(model, joint=joint)
    junction = junction.strip().upper()
    row = pa.table({"v_call": [v_call or ""], "j_call": [j_call or ""], "junction": [junction]})
    table = pgen(row, loaded, sequence="nt", genes="any" if v_call is None else "call")
    (reason,) = table[Pgen.excluded].to_pylist()
    if reason:
        raise InputError(f"{junction or 'the empty sequence'}: {reason}; give a junction and calls of {loaded.name}")
    v = loaded.alleles("V") if v_call is None else loaded.resolve("V", v_call)
    j = loaded.alleles("J") if j_call is None else loaded.resolve("J", j_call)
    assert isinstance(v, Alleles)
    assert isinstance(j, Alleles)
    found = most_likely(loaded, junction, v.places, j.places, number)
    return LikelyScenarios(loaded, junction, table["pgen_nt"][0].as_py(), found)


def open_result(path: str | Path) -> Result:
    """Open a result file of `hpcvdj count` for reading: `hpcvdj.open`.

    Use it as a context manager, or `close` it.  A result in parts opens by its own name, with the parts beside it.
    """
    return Result(path)


def primary_chains(
    adata: Any, *, chain: Literal["VDJ", "VJ"] = "VDJ", airr_key: str = "airr", index_key: str = "chain_indices"
) -> Any:
    """The primary chain of each cell as scirpy chose it: a pandas table with a row for each cell that has one.

    Its index has the names of the cells; its columns are those of sequence_id, v_call, j_call, junction and cdr3 that
    `adata.obsm[airr_key]` has.
    """
    require("pandas")
    require("awkward", "anndata")
    import awkward as ak
    import pandas as pd

    for key, remedy in (
        (airr_key, "read the receptors with scirpy.io, or name the modality: mdata['airr']"),
        (index_key, "choose the chains with scirpy.pp.index_chains(adata)"),
    ):
        if key not in adata.obsm:
            raise InputError(f"adata.obsm has no {key!r}; {remedy}")
    chains = adata.obsm[airr_key]
    primary = adata.obsm[index_key][chain][:, 0]
    fields = [name for name in _CHAIN_FIELDS if name in chains.fields]
    picked = {name: ak.to_list(ak.firsts(chains[name][ak.singletons(primary)])) for name in fields}
    has = ~np.asarray(ak.is_none(primary))
    return pd.DataFrame(picked, index=adata.obs_names, dtype=object)[has]


def annotate_cells(
    adata: Any,
    counted: Result | Germline | Tables | None = None,
    *,
    model: Model | str | Path | None = None,
    chain: Literal["VDJ", "VJ"] = "VDJ",
    airr_key: str = "airr",
    index_key: str = "chain_indices",
    **options: Any,
) -> None:
    """Add the pathways of each cell's primary chain, its generation probability, or both to `adata.obs`.

    adata    an AnnData object as scirpy makes it
    counted  a germline table: the chains are counted here, with it and `options` as of `hpcvdj.count`; or a Result,
             which is joined by `sequence_id`
    model    a recombination model, as of `hpcvdj.pgen`: the probabilities are those with the chain's V and J calls

    Adds the columns that `hpcvdj.count` adds, as `VDJ_1_pathways_n0` …, `VDJ_1_pathways_total`, `VDJ_1_weight` and
    `VDJ_1_pathways_excluded`, and those that `hpcvdj.pgen` adds, as `VDJ_1_pgen_nt`, `VDJ_1_pgen_aa` and
    `VDJ_1_pgen_excluded`; with chain="VJ", `VJ_1_…`.  A cell without a value has a null; the column that ends in
    `_excluded` says why.

    InputError if neither `counted` nor `model` is given, or for what `adata` lacks.
    """
    import pandas as pd

    if counted is None and model is None:
        raise InputError("nothing to add: give a germline table or a result, or model=")
    if options and (counted is None or isinstance(counted, Result)):
        raise InputError(f"{next(iter(options))} applies only where a germline table counts the chains; leave it out")
    table = primary_chains(adata, chain=chain, airr_key=airr_key, index_key=index_key)
    # Contigs of several samples may share ids; here every cell is computed by itself.
    own = table.drop(columns="sequence_id", errors="ignore").fillna("")
    missing = next((name for name in ("v_call", "j_call") if name not in table), None)
    if missing and not (isinstance(counted, Result) and model is None):
        raise InputError(f"adata.obsm[{airr_key!r}] has no field {missing}; read the receptors with scirpy.io")
    annotated = []
    if isinstance(counted, Result):
        annotated.append(join(counted, table))
    elif counted is not None:
        annotated.append(count(own, counted, **options))
    if model is not None:
        annotated.append(pgen(own, model))
    for done in annotated:
        for name in done.columns.drop(table.columns, errors="ignore"):
            column = done[name].reindex(adata.obs_names)
            if name.endswith("_excluded"):
                column = pd.Series(column.astype(object).fillna(f"no primary {chain} chain"), dtype=str)
            adata.obs[f"{chain}_1_{name}"] = column
