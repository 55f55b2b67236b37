"""The list of amino-acid clonotypes of many samples, of which there may be tens of millions.

The rows stay on the ranks that read them.  Ranks tell each other numbers in place of the text, and send root the rows
that may be listed, which are few of many samples' rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.repertoires.ids import SCATTER, text_hashes
from hpcvdj.reports.elements import MOST_LISTED, PageTable
from hpcvdj.reports.survey import Survey, decoded, merged
from hpcvdj.runs.run import Run

_KEYS = ["v", "j", "aa"]
_TITLES = {"weight": "weight, sum of the variants", "pgen_nt": "Pgen, sum of the variants"}


@dataclass(frozen=True)
class ListedClonotypes:
    """The amino-acid clonotypes of the files of a command that have the same `Survey.listed`.

    number  how many there are
    rows    the rows of those that may be listed: sample (a number, the same for samples of one name), v, j, aa, cdr3,
            rows, and the score
    """

    number: int
    rows: pa.Table


def listed_clonotypes(found: ListedClonotypes, command: str, score: str) -> PageTable:
    """Amino-acid clonotypes of all samples: those in most samples first, then those with most nucleotide variants."""
    spelled = merged([found.rows], [*_KEYS, "cdr3"], **{score: "max"})
    how = "max" if score.startswith("pgen_aa") else "sum"
    by_nt = spelled.group_by(_KEYS).aggregate([("cdr3", "count"), ("rows", "sum"), (score, how)])
    by_sample = found.rows.group_by(_KEYS).aggregate([("sample", "count_distinct")])
    joined = by_nt.join(by_sample, _KEYS, join_type="inner")
    listed = pa.table({
        **{key: joined[key] for key in _KEYS}, "n_samples": joined["sample_count_distinct"],
        "nt_variants": joined["cdr3_count"], "rows": joined["rows_sum"], "value": joined[f"{score}_{how}"],
    })  # fmt: skip
    descending = [(key, "descending") for key in ("n_samples", "nt_variants", "value")]
    best = listed.sort_by([*descending, *((key, "ascending") for key in _KEYS)]).slice(0, MOST_LISTED).to_pylist()
    titles = {"n_samples": "samples", "value": _TITLES.get(score, "Pgen, amino acids")}
    name = f"{command}_clonotypes_{score}"
    made = PageTable.of(name, "Amino-acid clonotypes", listed.column_names, best, **titles)
    return made.first(found.number, "the files: group them by V gene, J gene and amino acids")


def clonotypes_of(
    surveys: Sequence[Survey] | None, own: Mapping[Path, pa.Table], run: Run
) -> dict[tuple[str, str], ListedClonotypes]:
    """The clonotypes by command and `Survey.listed`, on root; empty on the other ranks.

    surveys  those of all files, on root, with the names that samples have on the page; the other ranks pass None
    own      `Survey.clonotypes` of the files that this rank has read
    """

    def files() -> dict[tuple[str, str], dict[Path, list[int]]]:
        groups: dict[tuple[str, str], dict[Path, list[int]]] = {}
        numbers: dict[str, int] = {}
        for survey in surveys or []:
            if survey.listed:
                of_samples = [numbers.setdefault(name, len(numbers)) for name in survey.samples]
                groups.setdefault((survey.command, survey.listed), {})[survey.path] = of_samples
        return groups

    found = {}
    for group, samples_of in run.from_root(files).items():
        parts = {}
        for path in filter(own.__contains__, samples_of):
            samples = pa.array(samples_of[path], pa.int32()).take(own[path]["sample"].combine_chunks())
            parts[path] = own[path].set_column(own[path].column_names.index("sample"), "sample", samples)
        number, chosen = _chosen(list(parts.values()), run)
        gathered = run.gather(dict(zip(parts, map(decoded, chosen), strict=True)))
        if gathered is not None:
            of_file = {path: part for of_rank in gathered for path, part in of_rank.items()}
            found[group] = ListedClonotypes(number, pa.concat_tables([of_file[path] for path in samples_of]))
    return found


def _chosen(parts: list[pa.Table], run: Run) -> tuple[int, list[pa.Table]]:
    """The number of clonotypes of all ranks, and the rows of this rank's parts that may be listed.

    Clonotypes are told by 64-bit numbers, so that text is compared of few.  If two have the same number, which of 2·10⁷
    happens once in 10⁵ times, the list is still right, as some more are kept than it has.
    """
    of_part = [_hashes(part, _KEYS) for part in parts]
    nothing = np.zeros(0, np.uint64)
    keys = np.concatenate([nothing, *of_part])
    spelled = np.concatenate([nothing, *(_hashes(part, ["cdr3"]) for part in parts)])
    samples = np.concatenate([np.zeros(0, np.int32), *(part["sample"].to_numpy() for part in parts)])
    # All rows of a clonotype go to one rank.
    owner = (keys >> np.uint64(32)) % np.uint64(run.ranks)
    sent = [np.flatnonzero(owner == rank) for rank in range(run.ranks)] if run.ranks > 1 else [slice(None)]
    received = run.exchange([(keys[rows], spelled[rows], samples[rows]) for rows in sent])
    distinct, rank = _ranked(*(np.concatenate(columns) for columns in zip(*received, strict=True)))
    best = np.sort(np.concatenate(run.gather_everywhere(np.sort(rank)[-2 * MOST_LISTED :])))
    kept = rank >= best[-2 * MOST_LISTED :].min(initial=np.iinfo(np.int64).max)
    number, left_out = (int(total) for total in run.sum(np.array([len(rank), np.count_nonzero(~kept)])))
    if left_out:
        among = np.concatenate(run.gather_everywhere(distinct[kept]))
        parts = [part.filter(pa.array(np.isin(hashes, among))) for hashes, part in zip(of_part, parts, strict=True)]
    return number, parts


def _ranked(
    keys: NDArray[np.uint64], spelled: NDArray[np.uint64], samples: NDArray[np.int32]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The distinct keys, and a number of each that is the larger, the more samples and spellings it has."""
    order = np.argsort(keys)
    begins = _changes(keys[order])
    number = np.cumsum(begins) - 1
    sizes = np.bincount(number)
    # Most clonotypes have one row.  The others are sorted once more, as few as they are.
    several = sizes[number] > 1
    own, rows = number[several], order[several]

    def different(values: NDArray[Any]) -> NDArray[np.int64]:
        in_turn = np.lexsort((values, own))
        differs = _changes(own[in_turn]) | _changes(values[in_turn])
        return np.maximum(np.bincount(own, differs, minlength=len(sizes)).astype(np.int64), 1)

    return keys[order][begins], different(samples[rows]) << 32 | different(spelled[rows])


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a value is another than the one before; the first is."""
    changes = np.ones(len(values), dtype=bool)
    changes[1:] = values[1:] != values[:-1]
    return changes


def _hashes(table: pa.Table, names: list[str]) -> NDArray[np.uint64]:
    """A number of the text in these columns, uint64 [rows]."""
    combined = np.zeros(table.num_rows, np.uint64)
    for name in names:
        column = table[name].combine_chunks()
        texts = column.dictionary if pa.types.is_dictionary(column.type) else column
        hashes = text_hashes(texts)
        combined = (combined ^ (hashes if texts is column else hashes[column.indices.to_numpy()])) * SCATTER
    return combined
