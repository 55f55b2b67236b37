"""Convergent recombination: do junctions that are made more easily occur in more individuals?

An observation is a counted row of a result, and the individual that it comes from.  Observations are grouped by
nucleotide junction (V allele, J allele, CDR3) and by amino-acid junction (translated CDR3), each with its pathways, its
weight (that of `hpcvdj.kernels.quantities.Pathways`) and the number of individuals that have it.  Junctions are ranked
by their weight or, with a recombination model, by their generation probability.
"""

import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError, few
from hpcvdj.kernels.quantities import Pgen
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import Rows
from hpcvdj.repertoires.junctions import REPERTOIRE
from hpcvdj.repertoires.productive import COLUMN as PRODUCTIVE
from hpcvdj.repertoires.productive import productive_rows
from hpcvdj.repertoires.tables import write_table
from hpcvdj.results.export import counted_tables
from hpcvdj.results.reader import Result
from hpcvdj.runs.progress import Progress
from hpcvdj.sharing.ranking import Auc, auc
from hpcvdj.storage.inputs import require_unchanged

log = logging.getLogger(__name__)

ROWS_AT_ONCE = 1 << 18
"""Counters are read in blocks of this many rows."""

MOST_COLUMNS = 60
"""Columns that a message lists."""

_JUNCTION = ["v_call", "j_call", "cdr3"]
"""The columns that distinguish nucleotide junctions."""

_PATHWAYS = [("pathways", "max"), ("weight", "max")]
"""The pathways and weight of a nucleotide junction: all its rows have the same."""

LENGTH = "length"
"""The predictor that needs neither pathways nor a model."""

EXCLUDED = Pgen.excluded
"""The column that says why a junction has no generation probability."""


@dataclass(repr=False)
class Observations:
    """Observations of all results, one after another.

    rows               v_call, j_call, cdr3 and individual as codes (int64), pathways (uint64, n-lengths 0 to `max_n`)
                       and weight (float64)
    texts              the distinct texts of each coded column, ascending: a code is an index
    counted            rows that were counted; those not used are `not_productive` or `without_individual`
    productive_column  whether a counted table says which rows are productive
    """

    rows: pa.Table
    texts: dict[str, pa.Array]
    max_n: int
    counted: int
    not_productive: int
    without_individual: int
    productive_column: bool

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def left_out(self) -> str:
        """How many rows were counted, and how many of them were not used."""
        without = f"{self.without_individual:,} without individual"
        return f"{self.counted:,} counted, {self.not_productive:,} not productive, {without}"

    def __repr__(self) -> str:
        """How many rows there are."""
        return f"<Observations: {len(self):,} rows of {len(self.individuals):,} individuals, of {self.left_out}>"

    @property
    def individuals(self) -> list[str]:
        """The names of the individuals, ascending."""
        names: list[str] = self.texts["individual"].to_pylist()
        return names


def read(
    results: Sequence[str | Path],
    *,
    individual: str | None = None,
    rows: Rows = "productive",
    junctions: Path | None = None,
) -> Observations:
    """The observations of result files.

    individual  the column of the counted table that names the individual; None: each row's `repertoire_id`, so that
                a table is one individual unless tables were counted together
    rows        `productive`: rows whose column `productive` is true, if the table has that column; `all`: every row
    junctions   where the counted table is now (a folder, for several results), if it was moved

    InputError if a table is needed and missing, or if the results were not counted alike.
    """
    if junctions is not None and len(results) > 1 and not junctions.is_dir():
        raise InputError(f"{junctions}: is one table, for several results; name the folder that has their tables")
    parts: list[pa.Table] = []
    first: dict[str, tuple[Any, str]] = {}
    max_n = 0
    with Progress(len(results), "results", shown=True, what="reading") as progress:
        for path in results:
            with Result(path) as result:
                how_counted = _how_counted(result)
                first = first or how_counted
                for name, (value, shown) in how_counted.items():
                    if value != first[name][0]:
                        raise InputError(
                            f"{path}: was counted with different {name} ({shown}) than {results[0]} "
                            f"({first[name][1]}); count both with the same options"
                        )
                parts.append(_observations(result, individual, rows, junctions))
                max_n = max(max_n, result.max_n)
            progress.advance(1)
    if individual is None:
        _warn_of_namesakes(results, parts)
    table = pa.concat_tables(parts)
    productive = pc.fill_null(table[PRODUCTIVE], True)
    named = pc.not_equal(table["individual"], "")
    used = table.filter(pc.and_(productive, named)).drop_columns([PRODUCTIVE])
    texts = {}
    for k, name in enumerate(used.column_names):
        if pa.types.is_large_string(used[name].type):
            codes, texts[name] = _encoded(used[name])
            used = used.set_column(k, name, pa.array(codes))
    return Observations(
        used,
        texts,
        max_n,
        counted=len(table),
        not_productive=len(table) - pc.sum(productive, min_count=0).as_py(),
        without_individual=pc.sum(pc.and_not(productive, named), min_count=0).as_py(),
        productive_column=table[PRODUCTIVE].null_count < len(table),
    )


def _encoded(texts: pa.ChunkedArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Codes of texts, and the distinct texts in ascending order: a code is an index."""
    encoded = texts.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    return rank[encoded.indices.to_numpy()], encoded.dictionary.take(order)


def _how_counted(result: Result) -> dict[str, tuple[Any, str]]:
    """What results must have in common, and how messages show it."""
    facts = result.provenance
    config = json.loads(facts.get("config", "{}"))
    digest = str(facts.get("germline_sha256"))
    # With all n-lengths, tables of different longest sequences differ in columns of zeros only.
    n_lengths = "all" if config.get("max_n_asked") == "all" else f"0-{result.max_n}"
    return {
        "germline segments": (digest, f"{facts.get('germline_path')} (SHA-256 {digest[:12]}…)"),
        "D forms": (config.get("d_forms"), str(config.get("d_forms"))),
        "n-lengths": (n_lengths, n_lengths),
    }


def _warn_of_namesakes(results: Sequence[str | Path], parts: Sequence[pa.Table]) -> None:
    first: dict[str, str | Path] = {}
    for path, part in zip(results, parts, strict=True):
        for name in part["individual"].unique().to_pylist():
            if name in first:
                log.warning("%s and %s both have repertoire_id %s: taken as one individual", first[name], path, name)
            first.setdefault(name, path)


def _observations(result: Result, individual: str | None, rows: Rows, junctions: Path | None) -> pa.Table:
    """All counted rows with the columns of `Observations.rows`, and `productive`, null if the table does not say it."""
    if individual == REPERTOIRE and result.together:
        individual = None
    wanted = (PRODUCTIVE if rows == "productive" else None, individual)
    names = list(dict.fromkeys(name for name in wanted if name is not None))
    given = _from_tables(result, names, junctions) if names else {}
    said = given[PRODUCTIVE] if rows == "productive" else pa.nulls(len(result), pa.large_string())
    quantity = result.pathways()
    pathways, weight = np.empty(len(result), quantity.dtype), np.empty(len(result))
    for first in range(0, len(result), ROWS_AT_ONCE):
        block = slice(first, min(len(result), first + ROWS_AT_ONCE))
        counters = result.counters[block]
        pathways[block], weight[block] = quantity.totals(counters), quantity.weights(counters)
    return pa.table(
        {
            **{name: _texts(result.dataset(f"sequences/{name}")[:]) for name in _JUNCTION},
            "individual": _texts(result.repertoire_id) if individual is None else given[individual].fill_null(""),
            "pathways": pathways,
            "weight": weight,
            PRODUCTIVE: productive_rows(said, PRODUCTIVE),
        }
    )


def _texts(values: NDArray[Any]) -> pa.Array:
    return pa.array(values.astype(np.bytes_), pa.large_binary()).cast(pa.large_string())


def _from_tables(result: Result, names: Sequence[str], junctions: Path | None) -> dict[str, pa.ChunkedArray]:
    """Columns of the counted tables, for each counted row; `productive` is null where a table does not have it."""
    chunks: dict[str, list[pa.Array]] = {name: [] for name in names}
    for table in counted_tables(result, junctions):
        reader = table.open()
        lacking = next((name for name in names if name not in (*reader.columns, PRODUCTIVE)), None)
        if lacking is not None:
            raise InputError(
                f"{table.path}: no column {lacking} to name the individuals (--individual); it has "
                + few(reader.columns, MOST_COLUMNS)
            )
        present = [name for name in names if name != PRODUCTIVE or name in reader.columns]
        for name in set(names) - set(present):
            log.info("%s: no column %s; every counted row is used", table.path, name)
            chunks[name].append(pa.nulls(table.rows, pa.large_string()))
        for batch in reader.batches(present) if present else ():
            for name in present:
                chunks[name].append(batch[name].cast(pa.large_string()))
        require_unchanged(table.path, table.state)
    row = pa.array(result.row)
    return {name: pa.chunked_array(arrays, pa.large_string()).take(row) for name, arrays in chunks.items()}


@dataclass(frozen=True, repr=False)
class Level:
    """Junctions of one kind, sorted by the number of individuals that have them, then by score, the largest first.

    name        of the kind
    table       a row for each junction; column `individuals` counts those that have it
    keys        columns that distinguish junctions
    predictors  columns that should grow with the number of individuals, by the name of the predictor; the first is the
                score
    members     a nucleotide junction of each: cdr3, and v_call and j_call as generation probabilities take them
    sequence    `nt` or `aa`: the sequence whose generation probability ranks the junctions, as in `hpcvdj.pgen`
    genes       `call` or `any`: the genes of its scenarios, likewise
    """

    name: str
    table: pa.Table
    keys: list[str]
    predictors: dict[str, str]
    members: pa.Table
    sequence: Literal["nt", "aa"]
    genes: Genes

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        """How many junctions there are, and what ranks them."""
        return f"<Level: {len(self):,} {self.name} junctions, ranked by individuals and {self.score}>"

    def column(self, name: str) -> NDArray[Any]:
        return np.asarray(self.table[name].to_numpy())

    @property
    def score(self) -> str:
        """The name of the predictor that junctions are ranked and described by."""
        return next(iter(self.predictors))

    @property
    def scores(self) -> dict[str, NDArray[Any]]:
        """The values [junctions] of each predictor, and of length: shorter junctions are shared by more individuals."""
        sequences = self.table["cdr3" if "cdr3" in self.table.column_names else "cdr3_aa"]
        length = -pc.utf8_length(sequences).to_numpy()
        return {name: self.column(column) for name, column in self.predictors.items()} | {LENGTH: length}

    def aucs(self, public: int = 2) -> dict[str, Auc]:
        """The AUC of each predictor for being in at least `public` individuals; empty if all junctions are, or none."""
        areas = {name: auc(score, self.column("individuals") >= public) for name, score in self.scores.items()}
        return {name: area for name, area in areas.items() if area is not None}

    def junctions(self, model: Model) -> pa.Table:
        """v_call, j_call and junction of each, for `hpcvdj.pgen`; the anchor codons are those of the model's genes."""
        v, j, cdr3 = (self.members[name].to_pylist() for name in _JUNCTION)
        return pa.table({"v_call": v, "j_call": j, "junction": model.junctions(v, j, cdr3)})

    def with_pgen(self, values: pa.Table) -> "Level":
        """The same junctions, ranked by generation probability: `values`, from `hpcvdj.pgen` of `junctions`."""
        name = f"pgen_{self.sequence}"
        table = self.table.append_column(name, values[name]).append_column(EXCLUDED, values[EXCLUDED])
        order = pc.sort_indices(table, _order(self.keys, "individuals", name))
        predictors = {name: name, **self.predictors}
        return replace(self, table=table.take(order), members=self.members.take(order), predictors=predictors)

    @property
    def scored(self) -> "Level":
        """The junctions that have a score; with a model, those that have a generation probability."""
        return self.filter(pc.is_valid(self.table[self.predictors[self.score]]))

    def filter(self, chosen: Any) -> "Level":
        """The junctions for which `chosen`, bool [junctions], is true."""
        mask = pa.array(chosen) if isinstance(chosen, np.ndarray) else chosen
        return replace(self, table=self.table.filter(mask), members=self.members.filter(mask))

    @property
    def excluded(self) -> dict[str, int]:
        """How many junctions have no score for each reason, the most frequent reason first."""
        reasons = self.table[EXCLUDED].to_pylist() if EXCLUDED in self.table.column_names else []
        return dict(Counter(filter(None, reasons)).most_common())

    def write(self, target: Path, *, overwrite: bool = False) -> None:
        """Write the table to `target` (.tsv, .tsv.gz or .parquet)."""
        batches = self.table.combine_chunks().to_batches()
        write_table(target, batches or [pa.RecordBatch.from_pylist([], self.table.schema)], overwrite=overwrite)


def nucleotide_level(observations: Observations) -> Level:
    """Distinct (V allele, J allele, CDR3)."""
    groups = _ordered(_grouped(observations.rows, _JUNCTION, _PATHWAYS), _JUNCTION, "weight_max")
    texts = _texts_of(observations, groups, _JUNCTION)
    columns = {
        **texts,
        "cdr3_aa": pa.array(translate(texts["cdr3"].to_pylist()), pa.large_string()),
        "individuals": groups["individual_count_distinct"],
        "rows": groups["count_all"],
        "pathways_total": groups["pathways_max"],
        "weight": groups["weight_max"],
    }
    predictors = {"weight": "weight", "pathways": "pathways_total"}
    return Level("nucleotide", pa.table(columns), _JUNCTION, predictors, pa.table(texts), "nt", "call")


def amino_acid_level(observations: Observations, *, with_genes: bool = False) -> Level:
    """Distinct translated CDR3s, without those out of frame; `with_genes`: distinct with their V and J gene.

    Pathways and weights are summed over the observed nucleotide junctions.  The sum grows with their number, and so
    with the number of individuals; the mean over them does not, and is the score.
    """
    rows, texts = observations.rows, {}
    sources = {"v_gene": "v_call", "j_gene": "j_call", "cdr3_aa": "cdr3"} if with_genes else {"cdr3_aa": "cdr3"}
    for name, source in sources.items():
        distinct = observations.texts[source].to_pylist()
        derived = translate(distinct) if source == "cdr3" else [allele.partition("*")[0] for allele in distinct]
        codes, texts[name] = _encoded(pa.chunked_array([derived], pa.large_string()))
        rows = rows.append_column(name, pa.array(codes[rows[source].to_numpy()]))
    keys = list(sources)
    rows = rows.filter(pc.not_equal(texts["cdr3_aa"].take(rows["cdr3_aa"]), ""))
    # One thread adds weights in the order of the texts: the last digit depends on neither the machine nor the rows.
    junctions = _grouped(rows, [*keys, *_JUNCTION], _PATHWAYS).sort_by([(name, "ascending") for name in _JUNCTION])
    combined = [([], "count_all"), ("pathways_max", "sum"), ("weight_max", "sum")]
    combined += [(name, "first") for name in _JUNCTION]
    sums = junctions.group_by(keys, use_threads=False).aggregate(combined)
    groups = _grouped(rows, keys, []).join(sums, keys, right_suffix="_junctions")
    groups = groups.append_column("mean", pc.divide(groups["weight_max_sum"], groups["count_all_junctions"]))
    groups = _ordered(groups, keys, "mean")
    count, pathways = (groups[name].to_numpy() for name in ("count_all_junctions", "pathways_max_sum"))
    columns = {
        **{name: texts[name].take(groups[name]) for name in keys},
        "individuals": groups["individual_count_distinct"],
        "rows": groups["count_all"],
        "nucleotide_junctions": count,
        "pathways_total": pathways,
        "weight": groups["weight_max_sum"],
        "pathways_mean": pathways / count,
        "weight_mean": groups["mean"],
    }
    predictors = {
        "weight, mean": "weight_mean",
        "weight, summed": "weight",
        "pathways, mean": "pathways_mean",
        "pathways, summed": "pathways_total",
    }
    members = _texts_of(observations, groups, _JUNCTION, "_first")
    if with_genes:
        members |= {"v_call": columns["v_gene"], "j_call": columns["j_gene"]}
    genes: Genes = "call" if with_genes else "any"
    return Level("amino acid", pa.table(columns), keys, predictors, pa.table(members), "aa", genes)


def _texts_of(observations: Observations, groups: pa.Table, names: list[str], suffix: str = "") -> dict[str, pa.Array]:
    """The texts of coded columns of `groups`."""
    return {name: observations.texts[name].take(groups[name + suffix]) for name in names}


def _grouped(rows: pa.Table, keys: list[str], values: list[tuple[str, str]]) -> pa.Table:
    """Distinct individuals, number of rows, and combined `values` of rows with equal keys."""
    return rows.group_by(keys).aggregate([("individual", "count_distinct"), ([], "count_all"), *values])


def _ordered(groups: pa.Table, keys: list[str], score: str) -> pa.Table:
    """The groups sorted by individuals and by score, the largest first, then by their keys."""
    return groups.sort_by(_order(keys, "individual_count_distinct", score))


def _order(keys: list[str], individuals: str, score: str) -> list[tuple[str, str]]:
    return [(individuals, "descending"), (score, "descending"), *((key, "ascending") for key in keys)]
