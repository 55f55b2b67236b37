"""The list of amino-acid clonotypes of many samples, of which there may be tens of millions."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.kernels.text import hash_rows, text_buffers
from hpcvdj.reports.elements import MOST_LISTED, Table
from hpcvdj.reports.survey import LISTED, Survey, decoded, merged

_KEYS = ["v", "j", "aa"]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_TITLES = {"weight": "weight, sum of the variants", "pgen_nt": "Pgen, sum of the variants"}


def listed_score(survey: Survey) -> str:
    """What is listed of the clonotypes of a file that has them."""
    assert survey.clonotypes is not None
    return next(name for name in LISTED if name in survey.clonotypes.column_names)


def listed_clonotypes(surveys: list[Survey], command: str) -> Table:
    """Amino-acid clonotypes of all samples: those in most samples first, then those with most nucleotide variants.

    All files have one `listed_score`.
    """
    score = listed_score(surveys[0])
    numbers: dict[str, int] = {}
    parts = []
    for survey in surveys:
        assert survey.clonotypes is not None
        part = survey.clonotypes.filter(pc.is_valid(survey.clonotypes["aa"]))
        number_of = pa.array([numbers.setdefault(name, len(numbers)) for name in survey.samples], pa.int64())
        sample = number_of.take(part["sample"].combine_chunks())
        parts.append(part.set_column(part.column_names.index("sample"), "sample", sample))
    number, parts = _first(parts)
    table = pa.concat_tables(map(decoded, parts))
    spelled = merged([table], [*_KEYS, "cdr3"], **{score: "max"})
    how = "max" if score.startswith("pgen_aa") else "sum"
    by_nt = spelled.group_by(_KEYS).aggregate([("cdr3", "count"), ("rows", "sum"), (score, how)])
    by_sample = table.group_by(_KEYS).aggregate([("sample", "count_distinct")])
    joined = by_nt.join(by_sample, _KEYS, join_type="inner")
    listed = pa.table({
        **{key: joined[key] for key in _KEYS}, "n_samples": joined["sample_count_distinct"],
        "nt_variants": joined["cdr3_count"], "rows": joined["rows_sum"], "value": joined[f"{score}_{how}"],
    })  # fmt: skip
    descending = [(key, "descending") for key in ("n_samples", "nt_variants", "value")]
    best = listed.sort_by([*descending, *((key, "ascending") for key in _KEYS)]).slice(0, MOST_LISTED).to_pylist()
    titles = {"n_samples": "samples", "value": _TITLES.get(score, "Pgen, amino acids")}
    name = f"{command}_clonotypes_{score}"
    made = Table.of(name, "Amino-acid clonotypes", listed.column_names, best, **titles)
    return made.first(number, "the files: group them by V gene, J gene and amino acids")


def _first(parts: list[pa.Table]) -> tuple[int, list[pa.Table]]:
    """How many clonotypes there are, and the rows of those that may be listed, which are few of many samples' rows.

    Clonotypes are told by 64-bit numbers, so that text is compared of few.  If two have the same number, which of 2·10⁷
    happens once in 10⁵ times, the list is still right, as some more are kept than it has.
    """
    of_part = [_hashes(part, _KEYS) for part in parts]
    spelled = np.concatenate([_hashes(part, ["cdr3"]) for part in parts])
    samples = np.concatenate([part["sample"].to_numpy() for part in parts])
    keys = np.concatenate(of_part)
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

    rank = different(samples[rows]) << 32 | different(spelled[rows])
    if len(rank) > 2 * MOST_LISTED:
        least = np.partition(rank, -2 * MOST_LISTED)[-2 * MOST_LISTED]
        kept = keys[order][begins][rank >= least]
        parts = [part.filter(pa.array(np.isin(hashes, kept))) for hashes, part in zip(of_part, parts, strict=True)]
    return len(rank), parts


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
        hashes = np.zeros(len(texts), np.uint64)
        hash_rows(*text_buffers(texts), hashes)
        combined = (combined ^ (hashes if texts is column else hashes[column.indices.to_numpy()])) * _ODD
    return combined
