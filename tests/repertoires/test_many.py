"""hpcvdj.repertoires.many: which repertoires go where, and who counts which of their rows."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.errors import InputError
from hpcvdj.repertoires.many import Table, cut, dealt, difference, placed, plan, repertoire_name


@pytest.mark.parametrize(
    ("file", "name"),
    [("a.tsv", "a"), ("a.b.tsv.gz", "a.b"), ("x/a.parquet", "a"), ("a.csv", "a.csv"), (".tsv", ".tsv")],
)
def test_names(file, name):
    assert repertoire_name(Path(file)) == name


def test_one_file_goes_to_a_file():
    assert plan([Path("a.tsv")], Path("o.h5")) == [(Path("a.tsv"), Path("o.h5"))]


def test_several_files_and_folders_go_to_a_folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("b.tsv.gz", "a.parquet", "notes.txt"):
        (folder / name).touch()
    out = tmp_path / "out"
    assert plan([folder], out) == [(folder / "a.parquet", out / "a.h5"), (folder / "b.tsv.gz", out / "b.h5")]
    assert plan([Path("c.tsv"), folder], out)[0] == (Path("c.tsv"), out / "c.h5")


def test_what_cannot_be(tmp_path):
    with pytest.raises(InputError, match="has no table"):
        plan([tmp_path], tmp_path / "out")
    with pytest.raises(InputError, match="like that of"):
        plan([Path("x/a.tsv"), Path("y/a.parquet")], tmp_path / "out")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="need a folder"):
        plan([Path("a.tsv"), Path("b.tsv")], tmp_path / "file")
    with pytest.raises(InputError, match=r"o\.h5: several repertoires go to a folder.*--together"):
        plan([Path("a.tsv"), Path("b.tsv")], tmp_path / "o.h5")
    (tmp_path / "o.h5").mkdir()
    assert len(plan([Path("a.tsv"), Path("b.tsv")], tmp_path / "o.h5")) == 2, "it is a folder already"


def test_a_link_to_nowhere_is_not_left_out(tmp_path):
    folder = tmp_path / "in"
    (folder / "b.tsv").mkdir(parents=True)
    (folder / "a.tsv").symlink_to(tmp_path / "nowhere")
    assert plan([folder], tmp_path / "out") == [(folder / "a.tsv", tmp_path / "out" / "a.h5")]


def of_sizes(sizes):
    return placed([Table(Path(f"{k}.tsv"), str(k), n, n, {str(k): n}) for k, n in enumerate(sizes)])


def test_shares_are_whole_tables_or_even_pieces():
    shares = cut(of_sizes([3, 4, 0, 4, 25, 1, 10]), 10)
    assert [(share.first_row, share.rows, share.tables, share.piece) for share in shares] == [
        (0, 7, (0, 1), None), (7, 4, (3,), None), (11, 9, (4,), 0), (20, 9, (4,), 1), (29, 7, (4,), 2),
        (36, 1, (5,), None), (37, 10, (6,), None),
    ]  # fmt: skip
    assert [share.index for share in shares] == list(range(7))


@given(st.lists(st.integers(0, 300), min_size=1, max_size=30).filter(any), st.integers(1, 120), st.integers(1, 9))
def test_every_share_is_dealt_once_and_ranks_end_together(sizes, rows, ranks):
    shares = cut(of_sizes(sizes), rows)
    assert all(0 < share.rows <= rows for share in shares)
    ends = np.cumsum([share.rows for share in shares])
    assert [share.first_row for share in shares] == [0, *ends[:-1]]
    assert ends[-1] == sum(sizes)
    hands = [dealt(shares, rank, ranks) for rank in range(ranks)]
    assert sorted(share.index for hand in hands for share in hand) == list(range(len(shares)))
    rounds = max(map(len, hands))
    largest = [max(hand[k].rows for hand in hands if k < len(hand)) for k in range(rounds)]
    assert sum(largest) <= largest[0] + sum(sizes) / ranks
    for hand in hands:  # A table's pieces come in its order: it is read once.
        pieces = {}
        for share in hand:
            assert pieces.get(share.tables, -1) < (share.piece or 0) or share.piece is None
            pieces[share.tables] = share.piece or 0


def test_differences_are_told():
    one = [["a", "1"], ["b", "2"], ["c", "3"]]
    assert difference(one, one) == ""
    assert difference(one, [["a", "9"], ["b", "2"], ["d", "3"]]) == (
        "a changed, c no longer among the tables, d new among the tables"
    )
    assert difference([], [[str(k), "1"] for k in range(9)]) == "0, 1, 2 and 6 more new among the tables"
