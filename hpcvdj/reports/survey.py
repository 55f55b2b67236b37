"""The numbers of what `count` or `pgen` wrote, from one pass over it in blocks."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError, speaking_shell, told
from hpcvdj.kernels.quantities import Pathways
from hpcvdj.recombination.calls import locus_of
from hpcvdj.recombination.exclusions import ExclusionKind, by_summary
from hpcvdj.recombination.names import MISSING
from hpcvdj.recombination.selection import genes_of
from hpcvdj.repertoires.genes import translated
from hpcvdj.repertoires.ids import text_hashes
from hpcvdj.repertoires.readers import open_table
from hpcvdj.repertoires.table import REPERTOIRE, repertoire_name
from hpcvdj.results.attributes import facts_of_result
from hpcvdj.results.facts import Facts, read_facts, require_described
from hpcvdj.results.reader import Result
from hpcvdj.storage.damage import damage

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
_NEEDS, _REASON = "needs", "reason"
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
    """What a report shows of one file.  Tables have a column `sample`, the number in `samples`, and `rows`.

    command     that wrote the file: `count` or `pgen`
    samples     their names; `rows_read` and `counted` are int64 [samples]
    excluded    of left-out rows: (reason, rows, option that includes them, examples)
    measures    the columns of `MEASURES` that the file has; `score` is what junctions are ranked by
    amino       the sequences are amino acids
    facts       the attributes of a result file, or the facts beside a table
    usage       by genes v, j
    lengths     by length of the CDR3, in letters
    values      by measure and `bin`, of `log_bins`
    reached     by `needs`: the fewest n-nucleotides of a pathway, −1 if there is none; None without pathways
    top         the distinct junctions with the largest score: v_call, j_call, cdr3, score and measures
    listed      the first of `LISTED`; empty above `MOST_ROWS`
    clonotypes  distinct CDR3s that have amino acids aa, with their genes v, j (dictionary arrays) and `listed`; None
                without it, and where another rank has them
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
    facts: Facts
    usage: pa.Table
    lengths: pa.Table
    values: pa.Table
    reached: pa.Table | None
    top: pa.Table
    listed: str
    clonotypes: pa.Table | None

    def loci(self, sample: int) -> frozenset[str]:
        """The loci of a sample's J genes, or of its V genes if those tell none; empty if no gene tells one."""
        usage = self.usage.filter(pc.field("sample") == sample)
        return loci_of(*(pc.unique(usage[gene]).to_pylist() for gene in ("j", "v")))

    @property
    def tables(self) -> frozenset[str]:
        """The SHA-256 of the tables that were read, and of those that were written; empty if they are not known."""
        read = dict(self.facts.get("identity") or {}).get("tables", [])
        digests = [str(self.facts.get("junctions_sha256") or "")]
        digests += [str(digest) for _, digest in [*read, *self.facts.get("outputs", [])]]
        return frozenset(filter(None, digests))

    def histogram(self, measure: str, sample: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The bins of a measure and their rows, ascending."""
        bins = self.values.filter((pc.field("measure") == measure) & (pc.field("sample") == sample)).sort_by("bin")
        return bins["bin"].to_numpy(), bins["rows"].to_numpy()

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


def _merged_cdr3(parts: list[pa.Table], **how: str) -> pa.Table:
    """As `merged` by `_CLONOTYPE_KEYS`, in another order: most CDR3s are in one row, so that few need be compared."""
    table = pa.concat_tables(parts).combine_chunks()
    hashes = text_hashes(table["cdr3"].combine_chunks())
    order = np.argsort(hashes)
    same = hashes[order[1:]] == hashes[order[:-1]]
    repeated = np.zeros(len(table), bool)
    repeated[order[1:][same]] = repeated[order[:-1][same]] = True
    once = table.filter(pa.array(~repeated)).select([*_CLONOTYPE_KEYS, "rows", *how])
    return pa.concat_tables([once, merged([table.filter(pa.array(repeated))], _CLONOTYPE_KEYS, **how)])


def decoded(table: pa.Table) -> pa.Table:
    """A table with texts in place of dictionary arrays, which differ from table to table."""
    return table.cast(pa.schema([
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]))  # fmt: skip


def loci_of(*calls: Iterable[str]) -> frozenset[str]:
    """The loci of the first of these groups of calls that tells any; empty if none does."""
    return next(filter(None, (frozenset(filter(None, map(locus_of, group))) for group in calls)), frozenset())


@dataclass(frozen=True)
class _Source:
    """A file that is read in blocks.

    sample   that of rows without a repertoire_id; `samples` are known before the file is read
    columns  measures and what junctions are ranked by; a row without a value in the first is left out
    blocks   v_call, j_call, cdr3, `columns`; if the file has them, repertoire_id and `_REASON`
    """

    command: str
    sample: str
    samples: Sequence[str]
    columns: list[str]
    amino: bool
    facts: Facts
    blocks: Iterator[pa.Table]


def _keeping(kind: ExclusionKind) -> str:
    """The option of the command that keeps such rows, empty if there is none."""
    with speaking_shell():
        return told(kind.option or "")


def survey(path: str | Path, facts: Facts | None = None) -> Survey:
    """Read a result or a table of `count` or `pgen`; InputError if it is another file, damaged or incomplete.

    facts  of a table, if they were read already
    """
    path = Path(path)
    if path.suffix != ".h5":
        return _surveyed(path, _table_source(path, described(path) if facts is None else facts))
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


def described(table: Path) -> Facts:
    """The facts beside a table, empty without any; InputError if they are of another table."""
    facts = read_facts(table)
    if facts is not None:
        require_described(table, facts)
    return facts or {}


def name_read(facts: Facts, path: Path) -> str:
    """The name of the table that a command read to write the file `path`; older versions record its path only."""
    return str(facts.get(REPERTOIRE) or repertoire_name(Path(str(facts.get("junctions_path") or path))))


def _surveyed(path: Path, source: _Source) -> Survey:
    score, listed = (next(name for name in names if name in source.columns) for names in (SCORES, LISTED))
    measures = tuple(name for name in MEASURES if name in source.columns)
    kept = list(dict.fromkeys((score, *measures)))
    samples = {name: k for k, name in enumerate(source.samples)}
    # Groups are formed by numbers: pyarrow takes several times as long for texts.
    genes: dict[str, dict[str, int]] = {"v": {}, "j": {}}
    missed, excluded = Counter[int](), Counter[str]()
    tallies: dict[str, list[pa.Table]] = {"usage": [], "lengths": [], "values": [], "reached": [], "clonotypes": []}
    top: pa.Table | None = None
    rows = 0
    for block in source.blocks:
        block = block.append_column("sample", _sample_numbers(block, source.sample, samples))
        valued = pc.is_valid(block[source.columns[0]])
        if _REASON in block.column_names:
            lacking = block.filter(pc.invert(valued))
            missed.update(lacking["sample"].to_pylist())
            excluded.update(reason or "no value" for reason in lacking[_REASON].to_pylist())
            block = block.filter(valued)
        rows += block.num_rows
        block = block.append_column("rows", pa.array(np.ones(block.num_rows, np.int64)))
        for gene, numbers in genes.items():
            block = block.append_column(gene, _numbered(block[f"{gene}_call"], numbers, genes_of))
        tallies["usage"].append(merged([block], ["sample", "v", "j"]))
        sized = block.append_column("length", pc.utf8_length(block["cdr3"]))
        tallies["lengths"].append(merged([sized], ["sample", "length"]))
        for measure in measures:
            binned = block.select(["sample", "rows"]).append_column(
                "bin", pa.array(log_bins(block[measure].to_numpy()))
            )
            binned = merged([binned.filter(pc.field("bin") >= 0)], ["sample", "bin"])
            tallies["values"].append(binned.append_column("measure", pa.array([measure] * len(binned), pa.string())))
        if _NEEDS in source.columns:
            tallies["reached"].append(merged([block], ["sample", _NEEDS]))
        if rows <= MOST_ROWS:
            tallies["clonotypes"].append(block.select([*_CLONOTYPE_KEYS, "rows", listed]))
        best = merged([_candidates(block, score)], _KEYS, **dict.fromkeys(kept, "max"))
        top = _best(best if top is None else merged([top, best], _KEYS, **dict.fromkeys(kept, "max")), score)
    if top is None:
        raise InputError(f"{path}: has no rows; a report needs a table with rows")
    usage = _with_genes(merged(tallies["usage"], ["sample", "v", "j"]), genes)
    counted = np.bincount(usage["sample"], usage["rows"], minlength=len(samples)).astype(np.int64)
    clonotypes = None
    if rows <= MOST_ROWS:
        whole = _merged_cdr3(tallies["clonotypes"], **{listed: "max"})
        named = _with_genes(whole, genes, coded=True)
        residues = named["cdr3"] if source.amino else translated(named["cdr3"].combine_chunks())
        clonotypes = named.append_column("aa", residues)
        clonotypes = clonotypes if source.amino else clonotypes.filter(residues.is_valid())
    return Survey(
        path, source.command, list(samples), counted + np.array([missed[k] for k in range(len(samples))], np.int64),
        counted, [(reason, often, "", "") for reason, often in excluded.most_common()], measures, score, source.amino,
        source.facts, usage, lengths=merged(tallies["lengths"], ["sample", "length"]),
        values=merged(tallies["values"], ["sample", "measure", "bin"]),
        reached=merged(tallies["reached"], ["sample", _NEEDS]) if tallies["reached"] else None, top=top,
        listed="" if clonotypes is None else listed, clonotypes=clonotypes,
    )  # fmt: skip


def _sample_numbers(block: pa.Table, sample: str, numbers: dict[str, int]) -> pa.Array:
    """The number of each row's sample, where `numbers` has or gets it."""
    if REPERTOIRE not in block.column_names:
        return pa.array(np.full(block.num_rows, numbers.setdefault(sample, len(numbers))))
    return _numbered(block[REPERTOIRE], numbers, lambda name: sample if name in ("", *MISSING) else name)


def _numbered(texts: pa.ChunkedArray, numbers: dict[str, int], name_of: Callable[[str], str]) -> pa.Array:
    """The number of what each text names, where `numbers` has or gets it."""
    coded = texts.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    known = [numbers.setdefault(name_of(text), len(numbers)) for text in coded.dictionary.to_pylist()]
    return pa.array(known, pa.int64()).take(coded.indices)


def _with_genes(table: pa.Table, genes: dict[str, dict[str, int]], *, coded: bool = False) -> pa.Table:
    """A table with the names of genes v and j in place of their numbers; `coded`: as dictionary arrays."""
    for gene, numbers in genes.items():
        names, numbered = pa.array(list(numbers), pa.string()), table[gene].combine_chunks()
        named = pa.DictionaryArray.from_arrays(numbered.cast(pa.int32()), names) if coded else names.take(numbered)
        table = table.set_column(table.column_names.index(gene), gene, named)
    return table


def _candidates(block: pa.Table, score: str) -> pa.Table:
    """The rows among which the `TOP` junctions of each sample are: few, so that texts are compared of few."""
    sample, values = block["sample"].to_numpy(), block[score].to_numpy()
    kept = values > 0
    for number in np.unique(sample):
        # As many different values as there are junctions to list: rows with less are of none of these.
        of_sample = np.flatnonzero(kept & (sample == number))
        largest = np.unique(values[of_sample])[-TOP:]
        kept[of_sample] = values[of_sample] >= largest.min(initial=np.inf)
    return block.filter(pa.array(kept))


def _best(distinct: pa.Table, score: str) -> pa.Table:
    """The `TOP` junctions of each sample with the largest score, the largest first.

    Blocks have all rows of what they add, and what falls out of the list never returns: the rows are exact.
    """
    order = [("sample", "ascending"), (score, "descending"), *((key, "ascending") for key in _KEYS[1:])]
    distinct = distinct.sort_by(order)
    sample = distinct["sample"].to_numpy()
    rank = np.arange(len(sample)) - np.searchsorted(sample, sample)
    return distinct.filter(pa.array(rank < TOP))


def _result_source(result: Result) -> _Source:
    names = result.quantity.columns(result.counters.shape[1])
    pathways = isinstance(result.quantity, Pathways)
    facts = facts_of_result(result.provenance)
    samples = list(result.repertoires)
    if not result.together:
        samples = [name_read(facts, result.path)]
    columns = ["pathways_total", "weight", _NEEDS] if pathways else list(names)
    amino = str(facts.get("sequence_field", "")) in _AA
    command = "count" if pathways else "pgen"
    return _Source(command, samples[0], samples, columns, amino, facts, _blocks_of_result(result, names))


def _blocks_of_result(result: Result, names: Sequence[str]) -> Iterator[pa.Table]:
    pairs = result.pairs
    calls = [pa.array([pair[k] for pair in pairs], pa.string()) for k in (0, 1)]
    stops = np.array([rows.stop for *_, rows in pairs], dtype=np.int64)
    for first in range(0, max(1, len(result)), BLOCK_ROWS):
        rows = slice(first, min(len(result), first + BLOCK_ROWS))
        values = np.asarray(result.counters[rows])
        columns = dict(zip(names, values.T, strict=True))
        if isinstance(result.quantity, Pathways):
            nonzero = values > 0
            needs = np.where(nonzero.any(axis=1), nonzero.argmax(axis=1), -1)
            columns = {**result.quantity.derived(values), _NEEDS: needs}
        pair = pa.array(np.searchsorted(stops, np.arange(rows.start, rows.stop), side="right"))
        texts = {name: np.asarray(result.dataset(f"sequences/{name}")[rows], np.bytes_)
                 for name in ("cdr3", *[REPERTOIRE] * result.together)}  # fmt: skip
        yield pa.table({
            "v_call": calls[0].take(pair), "j_call": calls[1].take(pair),
            **{name: pa.array(column, pa.binary()).cast(pa.string()) for name, column in texts.items()},
            **{name: np.ascontiguousarray(column, np.int64 if name == _NEEDS else np.float64)
               for name, column in columns.items()},
        })  # fmt: skip


def _table_source(path: Path, facts: Facts) -> _Source:
    reader = open_table(path)
    measures = [name for name in (*MEASURES, "weight") if name in reader.columns]
    if not measures or {"record", "fdr"} <= set(reader.columns):
        raise InputError(
            f"{path}: is not an output of hpcvdj that a report shows; give results or tables of count and pgen, or "
            "tables of sharing, contamination, associate, enrich and annotate (NAME.epitopes.tsv) with their .json "
            "beside them"
        )
    command = "count" if "pathways_total" in measures else "pgen"
    # Probabilities of amino acids may be those of nucleotides that were translated.
    fields = (*_NT, *_AA) if {"pathways_total", "pgen_nt"} & set(measures) else (*_AA, *_NT)
    sequence = next((name for name in fields if name in reader.columns), None)
    if sequence is None:
        raise InputError(f"{path}: no column junction or junction_aa; write the table with hpcvdj {command}")
    amino = sequence in _AA
    anchor = 0 if sequence.startswith("cdr3") else 1 if amino else 3
    reason = f"{'pathways' if command == 'count' else 'pgen'}_excluded"
    columns = [name for name in (sequence, "v_call", "j_call", REPERTOIRE, reason) if name in reader.columns]

    def blocks() -> Iterator[pa.Table]:
        for batch in reader.batches([*columns, *measures]):
            texts = {name: batch[name].cast(pa.string()) for name in columns}
            empty = pa.array([""] * batch.num_rows, pa.string())
            letters = pc.ascii_upper(texts[sequence])
            yield pa.table({
                "cdr3": pc.utf8_slice_codeunits(letters, anchor, -anchor) if anchor else letters,
                "v_call": texts.get("v_call", empty), "j_call": texts.get("j_call", empty),
                _REASON: texts.get(reason, empty), REPERTOIRE: texts.get(REPERTOIRE, empty),
                **{name: _numbers(batch[name], path, name) for name in measures},
            })  # fmt: skip

    return _Source(command, name_read(facts, path), (), measures, amino, facts, blocks())


def _numbers(column: pa.Array, path: Path, name: str) -> pa.Array:
    try:
        # Most tables have a value in each row.
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    try:
        text = column.cast(pa.string())
        return pc.if_else(pc.equal(text, ""), None, text).cast(pa.float64())
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: column {name} has a value that is not a number ({error})") from None
