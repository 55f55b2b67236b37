"""Sequences one edit apart, against trying every edit; and the rows that a model is inferred from, in plain Python."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from hpcvdj.errors import InputError
from hpcvdj.inference.rows import TIMES_THE_READS, RowChoice, choose, likely_errors, reads_of, reads_of_table
from hpcvdj.kernels.edits import hashes, largest_near, sorted_by_hash
from hpcvdj.recombination.alphabet import encode, pack, translate
from hpcvdj.recombination.exclusions import ExcludedRows
from hpcvdj.recombination.models import Alleles
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.inputs import tables_of
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.reading import Reading

LENGTHS = [(1, 4), (3, 7), (8, 12), (30, 35), (62, 67), (120, 128)]
"""From the shortest; around the ends of words of 32 bases; up to the longest."""


def exchanges(text: str) -> Iterator[str]:
    for k, own in enumerate(text):
        yield from (text[:k] + base + text[k + 1 :] for base in "ACGT" if base != own)


def insertions_and_deletions(text: str) -> Iterator[str]:
    for k in range(len(text)):
        yield text[:k] + text[k + 1 :]
    for k in range(len(text) + 1):
        yield from (text[:k] + base + text[k:] for base in "ACGT")


def neighbours_of_a_few(rng: np.random.Generator, number: int, shortest: int, longest: int) -> list[str]:
    """Random sequences that are equal to one another, one edit apart or two."""
    roots = ["".join(rng.choice(list("ACGT"), rng.integers(shortest, longest + 1))) for _ in range(4)]
    roots += ["A" * longest, "AC" * (longest // 2), "A" * shortest]
    out = []
    for _ in range(number):
        text = roots[rng.integers(len(roots))]
        for _ in range(rng.integers(0, 3)):
            edits = list(exchanges(text) if rng.random() < 0.4 else insertions_and_deletions(text))
            text = edits[rng.integers(len(edits))][:128] or "C"
        out.append(text)
    return out


def packed(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    words = np.array([pack(encode(text), 4) for text in texts], dtype=np.uint64)
    return words, np.array([len(text) for text in texts], dtype=np.uint8)


@pytest.mark.parametrize("exchanged", [True, False])
@pytest.mark.parametrize("bounds", LENGTHS, ids=str)
def test_largest_near_is_that_of_every_edit(bounds, exchanged):
    edits = exchanges if exchanged else insertions_and_deletions
    hits = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        texts = neighbours_of_a_few(rng, 150, *bounds)
        kinds, values = rng.integers(0, 3, len(texts)), rng.integers(1, 50, len(texts))
        words, lengths = packed(texts)
        looked_at = np.flatnonzero(rng.random(len(texts)) < 0.7)
        rows = np.flatnonzero(rng.random(len(texts)) < 0.7)
        every = np.empty(len(texts), dtype=np.uint64)
        hashes(words, lengths, kinds, every)
        out = np.full(len(rows), -1)
        largest_near(words, lengths, kinds, values, rows, *sorted_by_hash(every, looked_at), exchanged, out)
        best: dict[tuple[int, str], int] = {}
        for other in looked_at:
            key = int(kinds[other]), texts[other]
            best[key] = max(best.get(key, 0), int(values[other]))
        expected = [max((best.get((int(kinds[row]), own), 0) for own in edits(texts[row])), default=0) for row in rows]
        assert out.tolist() == expected
        hits += np.count_nonzero(expected)
    assert hits > 20


def test_equal_hashes_are_not_taken_for_equal_sequences():
    """Rows that all have the hash of an edit of the first one."""
    texts = ["ACGTACGT", "ACGTACGA", "TTTTTTTT", "ACGAACGA"]
    words, lengths = packed(texts)
    kinds, values = np.zeros(4, dtype=np.int64), np.array([1, 5, 9, 9])
    every = np.empty(4, dtype=np.uint64)
    hashes(words, lengths, kinds, every)
    same, out = np.full(3, every[1]), np.zeros(1, dtype=np.int64)
    largest_near(words, lengths, kinds, values, np.array([0]), same, np.array([1, 2, 3]), True, out)
    assert out.tolist() == [5]


Row = tuple[str, int, int, int]
"""Junction, pair, repertoire and reads."""


def junctions_of(rows: list[Row], rng: np.random.Generator) -> Junctions:
    """As they are read: grouped by pair, in any order within."""
    order = sorted(rng.permutation(len(rows)).tolist(), key=lambda k: rows[k][1])
    words, lengths = packed([rows[k][0] for k in order])
    pairs = sorted({row[1] for row in rows})
    offsets = np.cumsum([0, *(sum(row[1] == pair for row in rows) for pair in pairs)]).astype(np.int64)
    alleles = [(Alleles(f"V{pair}", (pair,)), Alleles("J", (0,))) for pair in pairs]
    row = np.array(order, dtype=np.int64)
    own = Repertoire(words, lengths, alleles, offsets)
    repertoires = np.array([rows[k][2] for k in order], dtype=np.int32)
    names = [str(k) for k in range(max((row[2] for row in rows), default=0) + 1)]
    ids = pa.array([str(k) for k in range(len(rows))], pa.large_string())
    return Junctions(
        own, row, ids, row, ExcludedRows.of(np.empty(0, np.int64), [], []), [], len(rows), names, repertoires
    )


def in_plain_python(rows: list[Row], choice: RowChoice, has_reads: bool = True) -> list[int]:
    """The data rows that take part."""

    def productive(text: str) -> bool:
        amino_acids = translate([text])[0] if len(text) % 3 == 0 else "*"
        return "*" not in amino_acids and amino_acids[:1] == "C" and amino_acids[-1:] in ("F", "W")

    def takes_part(text: str) -> bool:
        if choice.rows == "all":
            return True
        return len(text) % 3 > 0 or (choice.rows == "nonproductive" and not productive(text))

    most: dict[tuple[str, int, int], int] = {}
    for text, pair, repertoire, reads in rows:
        most[text, pair, repertoire] = max(most.get((text, pair, repertoire), 0), reads)

    def is_error(text: str, pair: int, repertoire: int, reads: int) -> bool:
        if not len(text) % 3:
            return False
        indels = (most.get((own, pair, repertoire), 0) for own in insertions_and_deletions(text) if not len(own) % 3)
        if max(indels, default=0) > reads:
            return True
        return max((most.get((own, pair, repertoire), 0) for own in exchanges(text)), default=0) >= (
            TIMES_THE_READS * reads
        )

    found, seen = [], set()
    for k, (text, pair, repertoire, reads) in enumerate(rows):
        if not takes_part(text) or (has_reads and not choice.likely_errors and is_error(text, pair, repertoire, reads)):
            continue
        if not choice.duplicates and (text, pair, repertoire) in seen:
            continue
        seen.add((text, pair, repertoire))
        found.append(k)
    return found


CHOICES = [
    RowChoice(rows, duplicates, errors)  # type: ignore[arg-type]
    for rows in ("out-of-frame", "nonproductive", "all") for duplicates in (False, True) for errors in (False, True)
]  # fmt: skip


@pytest.mark.parametrize("bounds", LENGTHS[:5], ids=str)
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_rows_that_take_part(choice, bounds):
    rng = np.random.default_rng(1)
    texts = neighbours_of_a_few(rng, 150, *bounds)
    texts += ["TGTGCCTTT", "TGTGCCTGG", "TGTTAATTT", "TGTGCCGGG", "TTTGCCTTT"]
    rows = [
        (text, int(rng.integers(0, 2)), int(rng.integers(0, 3)), int(rng.choice([1, 2, 5, 6, 10, 50])))
        for text in texts
    ]
    junctions = junctions_of(rows, rng)
    reads = np.array([row[3] for row in rows])
    for own, has_reads in ((reads, True), (None, False)):
        found = choose(junctions, own, choice)
        assert sorted(found.row.tolist()) == in_plain_python(rows, choice, has_reads)
        assert sum(found.left_out.values()) == len(rows) - len(found.row)
        for place, row in enumerate(found.row):
            assert found.repertoire.cdr3(place) == rows[row][0]
            pair = np.searchsorted(found.repertoire.offsets, place, side="right") - 1
            assert found.repertoire.pairs[pair][0].allele == f"V{rows[row][1]}"


def test_likely_errors_of_no_rows():
    words, lengths = packed(["ACG"])
    own = Repertoire(words, lengths, [], np.array([0, 1]))
    nothing = np.empty(0, dtype=np.int64)
    assert not len(likely_errors(own, np.zeros(1, np.int64), np.ones(1, np.int64), nothing))


def test_no_row_left_is_an_input_error():
    junctions = junctions_of([("TGTGCCTTT", 0, 0, 1)], np.random.default_rng(1))
    with pytest.raises(InputError, match=r"no row to infer a model from \(1 not out-of-frame\); see --rows"):
        choose(junctions, None, RowChoice())


READS = {"7": 7, "0": 1, "12.0": 12, "12.5": 1, "": 1, "many": 1, "-3": 1, "1e3": 1, " 5": 1, "0012": 12,
         "9" * 15: 10**15 - 1, "9" * 16: 1, "3.": 3, "NaN": 1}  # fmt: skip
"""Texts, and the reads that they are: 1 for what is not a number."""


def test_reads_are_whole_numbers_or_one(tmp_path):
    table = pa.table({"duplicate_count": list(READS), "junction": ["TGTG"] * len(READS)})
    found = reads_of_table(table)
    assert found is not None
    assert found.tolist() == list(READS.values())
    assert reads_of_table(table.select(["junction"])) is None
    lines = ["sequence_id\tv_call\tj_call\tjunction\tduplicate_count"]
    lines += [f"s{k}\tV\tJ\tTGTG\t{text}" for k, text in enumerate(READS)]
    (tmp_path / "a.tsv").write_text("\n".join([*lines, ""]))
    (tmp_path / "b.tsv").write_text("sequence_id\tv_call\tj_call\tjunction\ns\tV\tJ\tTGTG\n")
    found = reads_of(tables_of([tmp_path / "a.tsv"], Reading()))
    assert found is not None
    assert found.tolist() == list(READS.values())
    assert reads_of(tables_of([tmp_path / "a.tsv", tmp_path / "b.tsv"], Reading())) is None
    assert reads_of_table(pa.table({"duplicate_count": [3, None, 0]})).tolist() == [3, 1, 1]
    assert reads_of_table(pa.table({"duplicate_count": [3.0, np.nan, 2.5]})).tolist() == [3, 1, 1]
