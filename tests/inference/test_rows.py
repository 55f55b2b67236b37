"""The rows that a model is inferred from, against plain Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hpcvdj.errors import InputError
from hpcvdj.inference.rows import ChosenRows, choose
from hpcvdj.inference.settings import RowChoice
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.exclusions import ExcludedRows
from hpcvdj.recombination.models import Alleles
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.junctions import Junctions
from tests.kernels.neighbours.plain import LENGTHS, Row, likely_error, packed, similar_rows


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

    found, seen = [], set()
    for k, (text, pair, repertoire, _) in enumerate(rows):
        if not takes_part(text) or (has_reads and not choice.likely_errors and likely_error(rows[k], rows)):
            continue
        if not choice.duplicates and (text, pair, repertoire) in seen:
            continue
        seen.add((text, pair, repertoire))
        found.append(k)
    return found


CHOICES = [
    RowChoice(rows=rows, duplicates=duplicates, likely_errors=errors)  # type: ignore[arg-type]
    for rows in ("out-of-frame", "nonproductive", "all") for duplicates in (False, True) for errors in (False, True)
]  # fmt: skip


@pytest.mark.parametrize("bounds", LENGTHS[:5], ids=str)
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_rows_that_take_part(choice, bounds):
    rng = np.random.default_rng(1)
    rows = similar_rows(1, 150, *bounds)
    rows += [(text, 0, 0, 2) for text in ("TGTGCCTTT", "TGTGCCTGG", "TGTTAATTT", "TGTGCCGGG", "TTTGCCTTT")]
    junctions = junctions_of(rows, rng)
    reads = np.array([row[3] for row in rows])
    for own, has_reads in ((reads[junctions.row], True), (None, False)):
        found = choose(replace(junctions, reads=own), choice)
        assert sorted(found.row.tolist()) == in_plain_python(rows, choice, has_reads)
        assert sum(found.left_out.values()) == len(rows) - len(found.row)
        for place, row in enumerate(found.row):
            assert found.repertoire.cdr3(place) == rows[row][0]
            pair = np.searchsorted(found.repertoire.offsets, place, side="right") - 1
            assert found.repertoire.pairs[pair][0].allele == f"V{rows[row][1]}"


def test_rows_are_drawn_where_there_are_too_many():
    """The same ones, whoever has read them."""
    rng = np.random.default_rng(1)
    junctions = junctions_of(similar_rows(3, 400, *LENGTHS[0]), rng)
    choice = RowChoice(rows="all", duplicates=True, likely_errors=True, max_rows=100)
    whole = choose(junctions, replace(choice, max_rows=1000))
    assert len(whole.row) == 400
    found = ChosenRows.joined([whole], choice, 7)
    assert len(found.row) == len({*found.row.tolist()}) == len(found.repertoire) == 100
    assert found.left_out["not drawn"] == 300
    text = {row: whole.repertoire.cdr3(place) for place, row in enumerate(whole.row.tolist())}
    assert [text[row] for row in found.row.tolist()] == [found.repertoire.cdr3(place) for place in range(100)]
    halves = [np.flatnonzero(whole.row % 2 == k) for k in range(2)]
    for cut in ([np.arange(400)], halves):
        # Each part draws before they are joined.
        parts = [
            choose(
                replace(
                    junctions, repertoire=junctions.repertoire.subset(own), row=junctions.row[own],
                    repertoire_of=junctions.repertoire_of[own],
                ), choice, 7,
            )
            for own in cut
        ]  # fmt: skip
        assert all(len(part.row) == 100 for part in parts)
        joined = ChosenRows.joined(parts, choice, 7)
        assert joined.row.tolist() == found.row.tolist()
        assert joined.left_out["not drawn"] == 300
    other = ChosenRows.joined([whole], choice, 8).row
    assert 10 < len({*other.tolist()} & {*found.row.tolist()}) < 45, "a quarter of 100"


def test_no_row_left_is_an_input_error():
    junctions = junctions_of([("TGTGCCTTT", 0, 0, 1)], np.random.default_rng(1))
    with pytest.raises(InputError, match=r"no row .* \(1 not out-of-frame\); give tables with out-of-frame rows"):
        ChosenRows.joined([choose(junctions, RowChoice())], RowChoice())
