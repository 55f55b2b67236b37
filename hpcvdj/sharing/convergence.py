"""Convergent recombination: do junctions with more pathways occur in more individuals?

An observation is a counted row of a result with the individual that it is of.  Observations are gathered by nucleotide
junction (V allele, J allele, CDR3) and by amino-acid junction (translated CDR3), each with its pathways, its weight and
the number of individuals that have it.

The **weight** of a junction is Σ count[m] · 4^−m over its n-lengths m: its pathways, each n-nucleotide string of a
length as likely as any other.  It is no generation probability: forms, genes and n-lengths are not weighted.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.sharing.ranking import Auc, auc
from hpcvdj.errors import InputError
from hpcvdj.repertoires.many import REPERTOIRE
from hpcvdj.repertoires.tables import TableWriter, column_names, read_batches, table_suffix
from hpcvdj.results.export import counted_tables
from hpcvdj.results.reader import CountedTable, Result
from hpcvdj.storage import atomic_path

log = logging.getLogger(__name__)

Rows = Literal["productive", "all"]

ROWS_AT_ONCE = 1 << 18
"""Counters are read in pieces of this many rows."""

PRODUCTIVE = "productive"
_TRUE = ("t", "true", "1")

GENETIC_CODE = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
"""The standard genetic code, NCBI's translation table 1: codons in the order TTT, TTC, TTA, TTG, TCT …; * is a stop."""

_CODE_ORDER = "TCAG"


def weights(counters: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Σ counters[:, m] · 4^−m, float64 [rows], of counters uint64 [rows, n-lengths].

    >>> weights(np.array([[3, 18, 42]], dtype=np.uint64)).tolist()
    [10.125]
    """
    # Summed n-length by n-length, so that trailing columns of zeros cannot change the last digit.
    total = np.zeros(len(counters))
    for m in range(counters.shape[1]):
        total += counters[:, m] * 0.25**m
    return total


def translate(sequences: Sequence[str]) -> list[str]:
    """The amino acids of CDR3s in A, C, G, T; the empty string if the length is no multiple of three.

    >>> translate(["GCCAGCAGT", "GCCTGA", "GCCA"])
    ['ASS', 'A*', '']
    """
    if not sequences:
        return []
    letters = np.array([sequence.encode() for sequence in sequences], dtype=np.bytes_)
    width = -(-max(1, letters.dtype.itemsize) // 3) * 3
    values = np.full(256, 255, dtype=np.uint8)
    values[np.frombuffer(_CODE_ORDER.encode(), np.uint8)] = np.arange(4)
    bases = values[letters.astype(f"S{width}").view(np.uint8).reshape(len(letters), width)].reshape(-1, width // 3, 3)
    whole = (bases != 255).all(axis=2)
    codons = np.where(whole, bases @ np.array([16, 4, 1], dtype=np.uint8), 0)
    amino = np.where(whole, np.frombuffer(GENETIC_CODE.encode(), np.uint8)[codons], 0).astype(np.uint8)
    texts = amino.view(f"S{width // 3}").reshape(-1).tolist()
    return ["" if len(sequence) % 3 else text.decode() for sequence, text in zip(sequences, texts, strict=True)]


@dataclass
class Observations:
    """Rows that go in, one after another over all results.

    v, j, cdr3, individual  dictionaries: names, and int64 codes [rows]
    pathways                uint64 [rows], n-lengths 0 to `max_n`
    weight                  float64 [rows]
    """

    v: tuple[list[str], NDArray[np.int64]]
    j: tuple[list[str], NDArray[np.int64]]
    cdr3: tuple[list[str], NDArray[np.int64]]
    individual: tuple[list[str], NDArray[np.int64]]
    pathways: NDArray[np.uint64]
    weight: NDArray[np.float64]
    max_n: int
    results: int
    counted: int
    not_productive: int
    without_individual: int
    productive_column: bool

    def __len__(self) -> int:
        return len(self.pathways)


def read(
    results: Sequence[str | Path],
    *,
    individual: str | None = None,
    rows: Rows = "productive",
    junctions: Path | None = None,
) -> Observations:
    """The observations of result files.

    individual  the column of the counted table that names the individual; None: each row's `repertoire_id`, so that
                a table is one individual unless tables that were counted together say otherwise
    rows        `productive`: rows whose column `productive` is true, if the table has that column; `all`: every row
    junctions   where the counted table lies now (a folder, for several), if not where it was counted

    InputError if a table is needed and is not there, or if the results were not counted alike.
    """
    if not results:
        raise InputError("no result files; name those that `hpcvdj count` wrote")
    parts: list[_Part] = []
    alike: tuple[str, dict[str, tuple[Any, str]]] | None = None
    for path in results:
        with Result(path) as result:
            found = _how_counted(result)
            if alike is None:
                alike = str(path), found
            _require_alike(alike, str(path), found)
            parts.append(_part(result, individual, rows, junctions, several=len(results) > 1))
    _warn_of_namesakes(results, parts, individual)
    return Observations(
        v=_encode([part.v for part in parts]),
        j=_encode([part.j for part in parts]),
        cdr3=_encode([part.cdr3 for part in parts]),
        individual=_encode([part.individual for part in parts]),
        pathways=np.concatenate([part.pathways for part in parts]),
        weight=np.concatenate([part.weight for part in parts]),
        max_n=max(part.max_n for part in parts),
        results=len(parts),
        counted=sum(part.counted for part in parts),
        not_productive=sum(part.not_productive for part in parts),
        without_individual=sum(part.without_individual for part in parts),
        productive_column=any(part.productive_column for part in parts),
    )


@dataclass
class _Part:
    """The observations of one result; texts as pyarrow string arrays."""

    v: Any
    j: Any
    cdr3: Any
    individual: Any
    pathways: NDArray[np.uint64]
    weight: NDArray[np.float64]
    max_n: int
    counted: int
    not_productive: int
    without_individual: int
    productive_column: bool


def _how_counted(result: Result) -> dict[str, tuple[Any, str]]:
    """What results must have in common, and how to call it."""
    facts = result.provenance
    config = json.loads(facts.get("config", "{}"))
    digest = str(facts.get("germline_sha256"))
    # Counted to the end, tables of different longest sequences differ in columns of zeros only.
    n_lengths = "all" if config.get("max_n_asked") == "all" else f"0-{result.max_n}"
    return {
        "germline table": (digest, f"{facts.get('germline_path')} (SHA-256 {digest[:12]}…)"),
        "D forms": (config.get("d_forms"), str(config.get("d_forms"))),
        "n-lengths": (n_lengths, n_lengths),
    }


def _require_alike(first: tuple[str, dict[str, tuple[Any, str]]], path: str, found: dict[str, tuple[Any, str]]) -> None:
    for name, (value, said) in found.items():
        theirs, theirs_said = first[1][name]
        if value != theirs:
            raise InputError(
                f"{path}: was not counted like {first[0]}: {name} {said}, there {theirs_said}; count them alike"
            )


def _part(result: Result, individual: str | None, rows: Rows, junctions: Path | None, *, several: bool) -> _Part:
    total = len(result)
    keep = np.ones(total, dtype=bool)
    if individual == REPERTOIRE and result.together:
        individual = None
    productive, names, has_column = _from_tables(result, individual, rows, junctions, several=several)
    if productive is not None:
        keep &= productive
    not_productive = int(total - keep.sum())
    if names is None:
        names = pa.array([text.decode() for text in result.repertoire_id.tolist()], pa.string())
    nameless = keep & ~np.asarray(pc.greater(pc.utf8_length(names), 0).to_numpy(zero_copy_only=False), dtype=bool)
    keep &= ~nameless
    pathways, weight = np.empty(total, np.uint64), np.empty(total)
    for first in range(0, total, ROWS_AT_ONCE):
        piece = slice(first, min(total, first + ROWS_AT_ONCE))
        counters = result.counters[piece]
        pathways[piece], weight[piece] = counters.sum(axis=1, dtype=np.uint64), weights(counters)
    chosen = pa.array(keep)
    v, j = _calls(result)
    cdr3 = pa.array(result.cdr3).cast(pa.string())
    return _Part(
        v.filter(chosen), j.filter(chosen), cdr3.filter(chosen), names.filter(chosen), pathways[keep], weight[keep],
        result.max_n, total, not_productive, int(nameless.sum()), has_column,
    )  # fmt: skip


def _calls(result: Result) -> tuple[Any, Any]:
    """V and J allele of each row."""
    pairs = result.pairs
    sizes = [rows.stop - rows.start for _, _, rows in pairs]
    which = pa.array(np.repeat(np.arange(len(pairs)), sizes))
    v, j = (pa.array([pair[k] for pair in pairs], pa.string()).take(which) for k in (0, 1))
    return v, j


def _from_tables(
    result: Result, individual: str | None, rows: Rows, junctions: Path | None, *, several: bool
) -> tuple[NDArray[np.bool_] | None, Any, bool]:
    """Of each counted row, from the counted tables: whether it is productive, and its individual; None if not asked.

    Also whether a table says what is productive.
    """
    if rows == "all" and individual is None:
        return None, None, False
    if junctions is not None and several and not junctions.is_dir():
        raise InputError(f"{junctions}: is one table, for several results; name the folder that holds their tables")
    found = [_from_table(table, individual, rows) for table in counted_tables(result, junctions)]
    productive = np.concatenate([one for one, _, _ in found])[result.row]
    names = None
    if individual is not None:
        names = pa.chunked_array([one for _, one, _ in found], pa.string()).take(pa.array(result.row)).combine_chunks()
    return productive, names, any(has for _, _, has in found)


def _from_table(table: CountedTable, individual: str | None, rows: Rows) -> tuple[NDArray[np.bool_], Any, bool]:
    """Of each row of a table whether it is productive, and its individual; whether the table says the former."""
    has_column = rows == "productive" and PRODUCTIVE in column_names(table.path)
    if rows == "productive" and not has_column:
        log.info("%s: no column %s; every counted row goes in", table.path, PRODUCTIVE)
    wanted = [PRODUCTIVE] * has_column + ([individual] if individual is not None else [])
    productive, names = np.ones(table.rows, dtype=bool), pa.array([], pa.string())
    if not wanted or not table.rows:
        return productive, names, has_column
    read = pa.Table.from_batches(read_batches(table.path, wanted))
    if has_column:
        truth = pc.is_in(pc.utf8_lower(read.column(0)), value_set=pa.array(_TRUE, read.column(0).type))
        productive = np.asarray(truth.to_numpy(), dtype=bool)
    if individual is not None:
        names = read.column(len(wanted) - 1).combine_chunks().cast(pa.string())
    return productive, names, has_column


def _warn_of_namesakes(results: Sequence[str | Path], parts: list[_Part], individual: str | None) -> None:
    if individual is not None:
        return
    first: dict[str, str | Path] = {}
    for path, part in zip(results, parts, strict=True):
        for name in part.individual.unique().to_pylist():
            if name in first:
                log.warning("%s and %s both have repertoire_id %s: taken as one individual", first[name], path, name)
            first.setdefault(name, path)


def _encode(columns: list[Any]) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct texts in ascending order, and the place of each row's among them."""
    # Above 2 GiB a column comes in chunks, and 32 bits do not number the bytes of all.
    pieces = [piece.cast(pa.large_string()) for column in columns for piece in getattr(column, "chunks", [column])]
    encoded = pa.chunked_array(pieces, pa.large_string()).combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    place = np.empty(len(order), dtype=np.int64)
    place[order.to_numpy()] = np.arange(len(order))
    return encoded.dictionary.take(order).to_pylist(), place[encoded.indices.to_numpy(zero_copy_only=False)]


@dataclass
class Level:
    """Junctions of one kind, those of most individuals first, then of most pathways.

    columns      the table: numpy arrays [junctions] or lists of str
    individuals  int64 [junctions]
    scores       name of each predictor and its values [junctions]; higher is taken to mean more individuals
    """

    name: str
    columns: dict[str, Any]
    individuals: NDArray[np.int64]
    scores: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.individuals)

    def aucs(self, public: int = 2) -> dict[str, Auc]:
        """Of each predictor, the AUC for occurring in at least `public` individuals; none if all or no junction is."""
        areas = {name: auc(score, self.individuals >= public) for name, score in self.scores.items()}
        return {name: area for name, area in areas.items() if area is not None}

    def table(self) -> pa.RecordBatch:
        """The columns as one record batch."""
        return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in self.columns.items()})

    def write(self, target: Path, *, overwrite: bool = False) -> None:
        """Write the table to `target` (.tsv, .tsv.gz or .parquet)."""
        suffix = table_suffix(target)
        with atomic_path(target, overwrite=overwrite) as temporary, open(temporary, "wb") as stream:
            writer = TableWriter(stream, suffix)
            writer.write(self.table())
            writer.close()


PATHWAYS, WEIGHT, LENGTH = "pathways", "weight", "length"
PATHWAYS_SUM, WEIGHT_SUM = "pathways, summed", "weight, summed"
PATHWAYS_MEAN, WEIGHT_MEAN = "pathways, mean", "weight, mean"


def nucleotide_level(seen: Observations) -> Level:
    """Distinct (V allele, J allele, CDR3)."""
    first, which = _distinct(_nucleotide_key(seen))
    individuals = _individuals(which, seen.individual)
    order = _most_first(individuals, seen.pathways[first])
    first, individuals = first[order], individuals[order]
    sequences = _texts(seen.cdr3, first)
    columns: dict[str, Any] = {
        "v_call": _texts(seen.v, first),
        "j_call": _texts(seen.j, first),
        "cdr3": sequences,
        "cdr3_aa": translate(sequences),
        "individuals": individuals,
        "rows": np.bincount(which)[order],
        "pathways_total": seen.pathways[first],
        "weight": seen.weight[first],
    }
    scores = {
        PATHWAYS: columns["pathways_total"],
        WEIGHT: columns["weight"],
        LENGTH: -np.array([len(text) for text in sequences], dtype=np.int64),
    }
    return Level("nucleotide", columns, individuals, scores)


def amino_acid_level(seen: Observations, *, with_genes: bool = False) -> Level:
    """Distinct translated CDR3s, those out of frame left out; `with_genes`: distinct with their V and J gene.

    Pathways and weights are summed over the observed nucleotide junctions.  The sum grows with the number of those,
    and so with the individuals that a junction was seen in; the mean over them does not.
    """
    names, amino = _places(translate(seen.cdr3[0]))
    v_names, v_gene = _places([allele.partition("*")[0] if with_genes else "" for allele in seen.v[0]])
    j_names, j_gene = _places([allele.partition("*")[0] if with_genes else "" for allele in seen.j[0]])
    v, j, letters = v_gene[seen.v[1]], j_gene[seen.j[1]], amino[seen.cdr3[1]]
    in_frame = np.array([name != "" for name in names], dtype=bool)
    kept = np.flatnonzero(in_frame[letters])
    first, which = _distinct(((v * len(j_names) + j) * len(names) + letters)[kept])
    individuals = _individuals(which, (seen.individual[0], seen.individual[1][kept]))
    # Each nucleotide junction adds what it has once, however many rows and individuals it is of.
    once = np.zeros(len(seen), dtype=bool)
    once[_distinct(_nucleotide_key(seen))[0]] = True
    adds = once[kept]
    junctions = np.bincount(which[adds], minlength=len(first))
    pathways = np.zeros(len(first), dtype=np.uint64)
    np.add.at(pathways, which[adds], seen.pathways[kept[adds]])
    weight = np.bincount(which[adds], seen.weight[kept[adds]], minlength=len(first))
    order = _most_first(individuals, pathways)
    place = kept[first][order]
    genes = {"v_gene": _texts((v_names, v), place), "j_gene": _texts((j_names, j), place)}
    columns: dict[str, Any] = {
        **(genes if with_genes else {}),
        "cdr3_aa": _texts((names, letters), place),
        "individuals": individuals[order],
        "rows": np.bincount(which, minlength=len(first))[order],
        "nucleotide_junctions": junctions[order],
        "pathways_total": pathways[order],
        "weight": weight[order],
        "pathways_mean": (pathways / junctions)[order],
        "weight_mean": (weight / junctions)[order],
    }
    scores = {
        PATHWAYS_SUM: columns["pathways_total"],
        WEIGHT_SUM: columns["weight"],
        PATHWAYS_MEAN: columns["pathways_mean"],
        WEIGHT_MEAN: columns["weight_mean"],
        LENGTH: -np.array([len(text) for text in columns["cdr3_aa"]], dtype=np.int64),
    }
    return Level("amino acid", columns, columns["individuals"], scores)


def _nucleotide_key(seen: Observations) -> NDArray[np.int64]:
    """A number for each row, the same for the same (V allele, J allele, CDR3); ascending in that order."""
    return (seen.v[1] * len(seen.j[0]) + seen.j[1]) * len(seen.cdr3[0]) + seen.cdr3[1]


def _distinct(key: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first row of each distinct key, in ascending order of keys, and the place of each row's key among them."""
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return first, which


def _places(texts: list[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct texts in ascending order, and the place of each text among them."""
    return _encode([pa.array(texts, pa.string())])


def _texts(column: tuple[list[str], NDArray[np.int64]], rows: NDArray[np.int64]) -> list[str]:
    names, codes = column
    return [names[k] for k in codes[rows]]


def _individuals(which: NDArray[np.int64], individual: tuple[list[str], NDArray[np.int64]]) -> NDArray[np.int64]:
    """In how many individuals each junction is; `which` is the junction of each row, `individual` its individual."""
    names, codes = individual
    met = np.unique(which * max(1, len(names)) + codes)
    return np.asarray(np.bincount(met // max(1, len(names))), dtype=np.int64)


def _most_first(individuals: NDArray[np.int64], pathways: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The order of the tables: most individuals, then most pathways, then as the keys are."""
    return np.lexsort((np.iinfo(np.uint64).max - pathways, -individuals))
