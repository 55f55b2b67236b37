"""What the tests of `hpcvdj pgen` share: tables with ids, and the ways in which a run can be divided."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from hpcvdj.errors import MachineError
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.results.outputs import TableOutput
from tests.commands import hpcvdj_command

ROWS = 60
"""Of each table."""

_EXHAUSTIVE = (1, 7), (2, None), (4, None), (4, 13), (7, None), (7, 5)
DIVISIONS = [(3, None), (3, 11), *(pytest.param(division, marks=pytest.mark.exhaustive) for division in _EXHAUSTIVE)]
"""(ranks, rows of a slice): also ranks that do not divide the rows, and more ranks than a slice has V–J pairs."""


def frame_of(rows):
    """The table of (v_call, j_call, junction) with the ids s0, s1, …"""
    frame = pd.DataFrame(rows, columns=["v_call", "j_call", "junction"])
    frame.insert(0, "sequence_id", [f"s{k}" for k in range(len(rows))])
    return frame


def written(frame, folder):
    """The table's file."""
    frame.to_csv(folder / "t.tsv", sep="\t", index=False)
    return folder / "t.tsv"


def computed(path):
    """A table with its values, to the bit; only an empty value is not a number."""
    empty = dict.fromkeys(PGEN_COLUMNS, "")
    return pd.read_csv(path, sep="\t", float_precision="round_trip", keep_default_na=False, na_values=empty)


def makers_of(path):
    """Who makes the junctions of a table, as its facts have it."""
    return json.loads(path.with_name(f"{path.name}.json").read_text())["makers"]


def require_same_on_ranks(on_ranks, table, expected, folder, division, *options):
    """AssertionError unless a run that is divided so writes the bytes of `expected`."""
    ranks, batch_rows = division
    target = folder / "o.tsv"
    slices = () if batch_rows is None else ("--batch-rows", batch_rows)
    on_ranks(ranks, "pgen", table, *options, "-o", target, *slices)
    assert target.read_bytes() == expected.read_bytes()
    assert makers_of(target) == makers_of(expected)


def require_same_together(table, expected, folder, *options):
    """AssertionError unless both halves of a table, taken together, have the values of `expected`."""
    lines = table.read_text().splitlines(keepends=True)
    (folder / "in").mkdir()
    (folder / "in" / "a.tsv").write_text("".join(lines[:21]))
    (folder / "in" / "b.tsv").write_text("".join([lines[0], *lines[21:]]))
    hpcvdj_command("pgen", folder / "in", "--together", *options, "-o", folder / "together.tsv")
    together, frame = computed(folder / "together.tsv"), computed(expected)
    pd.testing.assert_frame_equal(together[frame.columns], frame)
    assert makers_of(folder / "together.tsv") == makers_of(expected)
    assert together["repertoire_id"].tolist() == ["a"] * 20 + ["b"] * (ROWS - 20)


def require_same_after_a_stop(table, expected, folder, *options):
    """AssertionError unless a run goes on whose slices are complete, but which was killed before its table was."""
    target = folder / "o.tsv"

    def full(*arguments, **options):
        raise MachineError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableOutput, "join", full)
        hpcvdj_command("pgen", table, *options, "-o", target, code=MachineError.exit_code)
    assert sorted(path.name for path in folder.iterdir()) == ["o.tsv.parts"]
    hpcvdj_command("pgen", table, *options, "-o", target, "--resume")
    assert target.read_bytes() == expected.read_bytes()
    assert makers_of(target) == makers_of(expected)
    assert sorted(path.name for path in folder.iterdir()) == ["o.tsv", "o.tsv.json"]
