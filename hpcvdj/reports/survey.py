"""The numbers of what `count` or `pgen` wrote, from one pass over it in blocks."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError, speaking_shell, told
from hpcvdj.kernels.quantities import Pathways
from hpcvdj.recombination.alphabet import AMINO_ACIDS
from hpcvdj.recombination.exclusions import ExclusionKind, by_summary
from hpcvdj.repertoires.junctions import REPERTOIRE
from hpcvdj.repertoires.readers import open_table
from hpcvdj.repertoires.tables import repertoire_name
from hpcvdj.results.facts import read_facts, require_described
from hpcvdj.results.reader import Result
from hpcvdj.storage.opening import damage

BLOCK_ROWS = 1 << 18

TOP = 100
"""Junctions of a sample in the list of those with the largest score."""

MOST_ROWS = 5_000_000
"""Above this number of rows in a file, its amino-acid clonotypes are left out: they are kept in memory."""

MEASURES = ("pathways_total", "pgen_nt", "pgen_aa", "pgen_aa_1mm")
SCORES = ("weight", *MEASURES[1:])
"""What junctions are ranked by: the first that a file has."""

LISTED = ("weight", "pgen_aa", *SCORES)
"""What is listed of amino-acid clonotypes, likewise."""

_NT = ("junction", "cdr3")
_AA = ("junction_aa", "cdr3_aa")
_NEEDS = "needs"
_SHIFT = 45
_KEYS = ["sample", "v_call", "j_call", "cdr3"]
_CLONOTYPE_KEYS = ["sample", "v", "j", "cdr3"]


def log_bins(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bin of each value, int64: 0 for 0, then 128 to a doubling, each at most 1 % wide; negative for NaN."""
    bins: NDArray[np.int64] = np.where(values >= 0, np.ascontiguousarray(values).view(np.int64) >> _SHIFT, -1)
    return bins


def bin_start(bins: NDArray[np.int64]) -> NDArray[np.float64]:
    """The smallest value of each bin, float64."""
    return (np.asarray(bins, np.int64) << _SHIFT).view(np.float64)


@dataclass(eq=False)
class Survey:
    """What a report shows of one file.  Tables have a column `sample`, the place in `samples`, and `rows`.

    command     that wrote the file: `count` or `pgen`
    samples     their names; `rows_read` and `counted` are int64 [samples]
    excluded    of left-out rows: (reason, rows, option that includes them, examples)
    measures    the columns of `MEASURES` that the file has; `score` is what junctions are ranked by
    amino       the sequences are amino acids
    facts       the attributes of a result file; `config` says how it was counted
    usage       by genes v, j
    lengths     by length of the CDR3, in letters
    values      by measure and `bin`, of `log_bins`
    reached     by `needs`: the fewest n-nucleotides of a pathway, −1 if there is none; None without pathways
    top         the distinct junctions with the largest score: v_call, j_call, cdr3, score and measures
    clonotypes  distinct CDR3s with their genes v, j, amino acids aa, and the first of `LISTED`; None above `MOST_ROWS`
    """

    path: Path
    command: str
    samples: list[str]
    rows_read: NDArray[np.int64]
    counted: NDArray[np.int64]
    excluded: list[tuple[str, int, str, str]]
    measures: tuple[str, ...]
    score: str
    amino: bool
    facts: dict[str, Any]
    config: dict[str, Any]
    usage: pa.Table
    lengths: pa.Table
    values: pa.Table
    reached: pa.Table | None
    top: pa.Table
    clonotypes: pa.Table | None

    def named(self, table: pa.Table) -> pa.Table:
        """A table with the samples' names in place of their numbers."""
        names = pa.array(self.samples, pa.string()).take(table["sample"].combine_chunks())
        return table.set_column(table.column_names.index("sample"), "sample", names)

    def histogram(self, measure: str, sample: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The bins of a measure and their rows, ascending."""
        own = self.values.filter((pc.field("measure") == measure) & (pc.field("sample") == sample)).sort_by("bin")
        return own["bin"].to_numpy(), own["rows"].to_numpy()

    def median(self, measure: str, sample: int) -> float | None:
        """The lower median of a measure, at most 1 % too low; None without values."""
        bins, rows = self.histogram(measure, sample)
        ends = np.cumsum(rows)
        return float(bin_start(bins[np.searchsorted(ends, (ends[-1] + 1) // 2)])) if len(ends) else None


def merged(parts: list[pa.Table], keys: list[str], **how: str) -> pa.Table:
    """Rows of tables with equal keys made one: `rows` are added up, and other columns combined as `how` says."""
    columns = [("rows", "sum"), *how.items()]
    table = pa.concat_tables(parts).group_by(keys).aggregate(columns)
    return table.select([*keys, *("_".join(pair) for pair in columns)]).rename_columns([*keys, "rows", *how])


def of_genes(calls: pa.ChunkedArray) -> pa.ChunkedArray:
    """Calls without their alleles."""
    coded = calls.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    # A call of a gene has all of its alleles.
    genes = [
        ",".join(dict.fromkeys(name.partition("*")[0] for name in call.split(",")))
        for call in coded.dictionary.to_pylist()
    ]
    return pa.chunked_array([pa.array(genes, pa.string()).take(coded.indices)])


def amino_acids(sequences: pa.ChunkedArray) -> pa.Array:
    """The amino acids of sequences of A, C, G and T; null for one that is out of frame or has other letters."""
    table = np.full(125, b"?", "S1")
    for codon, residue in AMINO_ACIDS.items():
        first, second, third = ("ACGT".index(base) + 1 for base in codon)
        table[25 * first + 5 * second + third] = residue
    codes = np.zeros(256, np.uint8)
    codes[[ord(base) for base in "ACGT"]] = 1, 2, 3, 4
    lengths = pc.utf8_length(sequences).to_numpy()
    width = 3 * (-(-int(lengths.max(initial=0)) // 3) or 1)
    letters = np.array(sequences.to_numpy(), f"S{width}").view(np.uint8).reshape(-1, width)
    read = codes[letters].astype(np.int16)
    codons = 25 * read[:, ::3] + 5 * read[:, 1::3] + read[:, 2::3]
    residues = np.where(letters[:, ::3] > 0, table[codons], b"").copy().view(f"S{width // 3}").ravel()
    known = (lengths % 3 == 0) & ((read > 0) == (letters > 0)).all(axis=1)
    return pc.if_else(pa.array(known), pa.array(residues, pa.binary()).cast(pa.string()), None)


@dataclass
class _Source:
    """A file that is read in blocks: tables with the columns of `_KEYS`, measures and the score."""

    command: str
    samples: list[str]
    columns: list[str]
    amino: bool
    blocks: Iterator[pa.Table]
    facts: dict[str, Any] = field(default_factory=dict)
    excluded: Counter[str] = field(default_factory=Counter)
    """Rows of each reason, of a table."""
    missed: Counter[int] = field(default_factory=Counter)
    """Rows of each sample that have no value."""


def _keeping(kind: ExclusionKind) -> str:
    """The option of the command that keeps such rows, empty if there is none."""
    with speaking_shell():
        return told(kind.option or "")


def survey(path: str | Path) -> Survey:
    """Read a result or a table of `count` or `pgen`; InputError if it is another file, damaged or incomplete."""
    path = Path(path)
    if path.suffix != ".h5":
        return _surveyed(path, _table_source(path))
    with Result(path) as result, damage(path):
        if result.quantity.name not in ("pathways", "pgen"):
            raise InputError(f"{path}: has {result.quantity.name}, not pathways or probabilities, which a report shows")
        seen = _surveyed(path, _result_source(result))
        seen.excluded = [
            (reason, rows, _keeping(group[0][0].kind), "; ".join(f"{each} ({often:,})" for each, often in group[:5]))
            for reason, rows, group in by_summary(result.excluded_counts)
        ]
        left_out = sum(rows for _, rows, *_ in seen.excluded)
        read = result.dataset("/").get("repertoires", {}) if result.together else {}
        known = "rows" in read and len(read["rows"]) == len(seen.samples)
        seen.rows_read = read["rows"][:] if known else seen.counted + (left_out if len(seen.samples) == 1 else 0)
        return seen


def _surveyed(path: Path, source: _Source) -> Survey:
    score, listed = (next(name for name in names if name in source.columns) for names in (SCORES, LISTED))
    measures = tuple(name for name in MEASURES if name in source.columns)
    kept = list(dict.fromkeys((score, *measures)))
    tallies: dict[str, list[pa.Table]] = {"usage": [], "lengths": [], "values": [], "reached": [], "clonotypes": []}
    top: pa.Table | None = None
    rows = 0
    for block in source.blocks:
        rows += block.num_rows
        block = block.append_column("rows", pa.array(np.ones(block.num_rows, np.int64)))
        block = block.append_column("v", of_genes(block["v_call"])).append_column("j", of_genes(block["j_call"]))
        tallies["usage"].append(merged([block], ["sample", "v", "j"]))
        sized = block.append_column("length", pc.utf8_length(block["cdr3"]))
        tallies["lengths"].append(merged([sized], ["sample", "length"]))
        for measure in measures:
            binned = block.select(["sample", "rows"]).append_column(
                "bin", pa.array(log_bins(block[measure].to_numpy()))
            )
            binned = binned.append_column("measure", pa.array([measure] * block.num_rows, pa.string()))
            tallies["values"].append(merged([binned.filter(pc.field("bin") >= 0)], ["sample", "measure", "bin"]))
        if _NEEDS in source.columns:
            tallies["reached"].append(merged([block], ["sample", _NEEDS]))
        distinct = merged([block], [*_KEYS, "v", "j"], **dict.fromkeys(kept, "max"))
        if rows <= MOST_ROWS:
            of_genes_alone = merged([distinct], _CLONOTYPE_KEYS, **{listed: "max"})
            tallies["clonotypes"].append(_with_amino_acids(of_genes_alone, amino=source.amino))
        top = _best(distinct if top is None else pa.concat_tables([top, distinct]), score, kept)
    if top is None:
        raise InputError(f"{path}: has no rows; a report needs a table with rows")
    done = {
        "usage": merged(tallies["usage"], ["sample", "v", "j"]),
        "lengths": merged(tallies["lengths"], ["sample", "length"]),
        "values": merged(tallies["values"], ["sample", "measure", "bin"]),
        "reached": merged(tallies["reached"], ["sample", _NEEDS]) if tallies["reached"] else None,
        "clonotypes": merged(tallies["clonotypes"], [*_CLONOTYPE_KEYS, "aa"], **{listed: "max"})
        if rows <= MOST_ROWS
        else None,
    }  # fmt: skip
    counted = np.bincount(done["usage"]["sample"], done["usage"]["rows"], minlength=len(source.samples)).astype(
        np.int64
    )
    missed = np.array([source.missed[k] for k in range(len(source.samples))], np.int64)
    excluded = [(reason, often, "", "") for reason, often in source.excluded.most_common()]
    return Survey(
        path, source.command, source.samples, counted + missed, counted, excluded, measures, score, source.amino,
        source.facts, json.loads(source.facts.get("config", "{}")), top=top, **done,
    )  # fmt: skip


def _best(distinct: pa.Table, score: str, kept: list[str]) -> pa.Table:
    """The `TOP` junctions of each sample with the largest score above 0, the largest first.

    Blocks have all rows of what they add, and what falls out of the list never returns: the rows are exact.
    """
    distinct = merged([distinct.filter(pc.field(score) > 0)], [*_KEYS, "v", "j"], **dict.fromkeys(kept, "max"))
    order = [("sample", "ascending"), (score, "descending"), *((key, "ascending") for key in _KEYS[1:])]
    distinct = distinct.sort_by(order)
    sample = distinct["sample"].to_numpy()
    place = np.arange(len(sample)) - np.searchsorted(sample, sample)
    return distinct.filter(pa.array(place < TOP))


def _with_amino_acids(distinct: pa.Table, *, amino: bool) -> pa.Table:
    return distinct.append_column(
        "aa", distinct["cdr3"] if amino else pa.chunked_array([amino_acids(distinct["cdr3"])])
    )


def _result_source(result: Result) -> _Source:
    quantity, facts = result.quantity, result.provenance
    names = quantity.columns(result.counters.shape[1])
    pathways = isinstance(quantity, Pathways)
    samples = list(result.repertoires)
    if not result.together and (read := str(facts.get("junctions_path", ""))):
        samples = [repertoire_name(Path(read))]
    columns = ["pathways_total", "weight", _NEEDS] if pathways else list(names)
    amino = str(facts.get("sequence_field", "")) in _AA
    return _Source("count" if pathways else "pgen", samples, columns, amino, _blocks(result, samples, names), facts)


def _blocks(result: Result, samples: list[str], names: list[str]) -> Iterator[pa.Table]:
    pairs = result.pairs
    calls = [pa.array([pair[k] for pair in pairs], pa.string()) for k in (0, 1)]
    stops = np.array([rows.stop for *_, rows in pairs], dtype=np.int64)
    number = {name: k for k, name in enumerate(samples)}
    for first in range(0, max(1, len(result)), BLOCK_ROWS):
        rows = slice(first, min(len(result), first + BLOCK_ROWS))
        values = np.asarray(result.counters[rows])
        columns = dict(zip(names, values.T, strict=True))
        if isinstance(result.quantity, Pathways):
            nonzero = values > 0
            needs = np.where(nonzero.any(axis=1), nonzero.argmax(axis=1), -1)
            columns = {**result.quantity.derived(values), _NEEDS: needs}
        pair = pa.array(np.searchsorted(stops, np.arange(rows.start, rows.stop), side="right"))
        sample = pa.array(np.zeros(len(values), np.int64))
        if result.together:
            coded = pa.array(result.dataset(f"sequences/{REPERTOIRE}")[rows], pa.binary()).cast(pa.string())
            coded = coded.dictionary_encode()
            sample = pa.array([number[name] for name in coded.dictionary.to_pylist()]).take(coded.indices)
        cdr3 = pa.array(np.asarray(result.dataset("sequences/cdr3")[rows], np.bytes_), pa.binary()).cast(pa.string())
        yield pa.table({
            "sample": sample, "v_call": calls[0].take(pair), "j_call": calls[1].take(pair), "cdr3": cdr3,
            **{name: _measured(column, name) for name, column in columns.items()},
        })  # fmt: skip


def _measured(column: NDArray[Any], name: str) -> pa.Array:
    return pa.array(np.ascontiguousarray(column, np.int64 if name == _NEEDS else np.float64))


def _table_source(path: Path) -> _Source:
    reader = open_table(path)
    own = reader.columns
    measures = [name for name in (*MEASURES, "weight") if name in own]
    if not measures:
        raise InputError(
            f"{path}: is not an output of hpcvdj that a report shows; give results or tables of count and pgen, or "
            "tables of sharing, contamination and enrich with their .json beside them"
        )
    command = "count" if "pathways_total" in own else "pgen"
    # Probabilities of amino acids may be those of nucleotides that were translated.
    fields = (*_NT, *_AA) if {"pathways_total", "pgen_nt"} & set(own) else (*_AA, *_NT)
    sequence = next((name for name in fields if name in own), None)
    amino = sequence in _AA
    if sequence is None:
        raise InputError(f"{path}: no column junction or junction_aa; write the table with hpcvdj {command}")
    reason = f"{'pathways' if command == 'count' else 'pgen'}_excluded"
    texts = [name for name in ("v_call", "j_call", REPERTOIRE, reason) if name in own]
    samples, excluded, missed = list[str](), Counter[str](), Counter[int]()
    anchor = 0 if sequence.startswith("cdr3") else 1 if amino else 3

    def blocks() -> Iterator[pa.Table]:
        numbers: dict[str, int] = {}
        for batch in reader.batches([sequence, *texts, *measures]):
            table = pa.Table.from_batches([batch])
            empty = pa.chunked_array([pa.array([""] * table.num_rows, pa.string())])
            text = {name: table[name].cast(pa.string()) if name in texts else empty for name in (*texts, *_KEYS[1:3])}
            coded = (text[REPERTOIRE] if REPERTOIRE in texts else empty).combine_chunks().dictionary_encode()
            coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
            names = [name or repertoire_name(path) for name in coded.dictionary.to_pylist()]
            for name in names:
                numbers.setdefault(name, len(numbers))
            samples[:] = numbers
            sample = pa.array([numbers[name] for name in names], pa.int64()).take(coded.indices)
            read = pc.utf8_upper(table[sequence].cast(pa.string()))
            cdr3 = pc.utf8_slice_codeunits(read, anchor, -anchor) if anchor else read
            columns = {name: _numbers(table[name], path, name) for name in measures}
            kept = pc.is_valid(columns[measures[0]])
            why = text.get(reason, empty).filter(pc.invert(kept))
            for name, often in zip(*(each.to_pylist() for each in why.value_counts().flatten()), strict=True):
                excluded[name or "no value"] += often
            for each in sample.filter(pc.invert(kept).combine_chunks()).to_pylist():
                missed[each] += 1
            made = {"sample": sample, "v_call": text["v_call"], "j_call": text["j_call"], "cdr3": cdr3, **columns}
            yield pa.table({
                name: pc.fill_null(column, float("nan")) if name in measures else column for name,
                column in made.items()
            }).filter(kept)  # fmt: skip

    return _Source(command, samples, measures, amino, blocks(), _facts_beside(path), excluded, missed)


def _facts_beside(table: Path) -> dict[str, Any]:
    """What the facts beside a table say of its model, if there are any; InputError if they are of another table."""
    facts = read_facts(table)
    if facts is None:
        return {}
    require_described(table, facts)
    return {name: facts[name] for name in ("model", "model_sha256", "fit") if name in facts}


def _numbers(column: pa.ChunkedArray, path: Path, name: str) -> pa.ChunkedArray:
    try:
        text = column.cast(pa.string())
        return pc.if_else(pc.equal(text, ""), None, text).cast(pa.float64())
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: column {name} has a value that is not a number ({error})") from None
