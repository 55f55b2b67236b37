"""Tests that run on every rank: mpiexec -n N python -m mpi4py -m pytest --with-mpi tests/mpi

Each test runs on the first rank, then on the first two, and so on up to N: one launch is cheaper than N of them, and
what root alone computes to compare with is computed once. One collective per test, and --timeout, so that a rank that
fails cannot pair with a stuck one in the next test.
"""

import time
from contextlib import ExitStack
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.counting.config import Config
from hpcvdj.counting.verify import reference
from hpcvdj.errors import InputError, LostRankError, StoppedError
from hpcvdj.kernels.backends import open_backend
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.reports.outputs import read_outputs
from hpcvdj.results.blocks import TableBlocks
from hpcvdj.results.facts import Targets
from hpcvdj.runs.ordering import Ordered
from hpcvdj.runs.ranks import World, usable_cores
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import Agreement
from hpcvdj.storage.folders import folder_digest
from hpcvdj.storage.inputs import file_digest
from hpcvdj.values.compute import ArrayStore, compute
from tests.conftest import SMALL
from tests.mpi.ranks import ON_RANKS
from tests.problems import METHODS, repertoire_of_file, sample
from tests.report.test_clonotypes import found_by, surveyed

pytestmark = ON_RANKS


def problem_of(paper_germline, max_n, size=12):
    """A sample of the small example, read by each rank for itself."""
    whole = repertoire_of_file(SMALL, paper_germline, longest=60)
    return Problem(sample(whole, size, 3), paper_germline, max_n)


@cache
def expected_values(paper_germline, max_n, size=12):
    """The reference of `problem_of`, which takes longer than the kernels."""
    return reference(problem_of(paper_germline, max_n, size)).tolist()


def counted(problem, config, run):
    """Root's values, and the timings, of a count."""
    store = ArrayStore(problem, config.method_class()) if run.is_root else None
    timings, _ = compute(problem, config, open_backend("cpu"), run, store)
    return store.values.tolist() if store else None, timings


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threads_per_block", [1, 64])
def test_counters_do_not_depend_on_ranks(paper_germline, run, method, threads_per_block):
    """With 64 tasks to a block and 4^3 tasks, ranks above root have none."""
    problem = problem_of(paper_germline, 3)
    values, _ = counted(problem, Config(max_n=3, method=method, threads_per_block=threads_per_block), run)
    if run.is_root:
        assert values == expected_values(paper_germline, 3)


def test_more_ranks_than_tasks(paper_germline, run):
    problem = problem_of(paper_germline, 0, size=1)
    values, timings = counted(problem, Config(max_n=0, method="bitwise"), run)
    assert timings.kernel.shape == (1,)
    if run.is_root:
        assert values == expected_values(paper_germline, 0, size=1)


def test_the_repertoire_of_root_is_every_ranks(paper_germline, run):
    own = run.on_root(lambda: Inputs.of_file(SMALL).read(paper_germline).repertoire)
    shared = run.broadcast(own)
    whole = repertoire_of_file(SMALL, paper_germline)
    for name in ("words", "lengths", "offsets"):
        assert np.array_equal(getattr(shared, name), getattr(whole, name))
    assert shared.pairs == whole.pairs


def test_broadcast_in_pieces(current, monkeypatch):
    monkeypatch.setattr("hpcvdj.runs.ranks._BROADCAST_BYTES", 100)
    monkeypatch.setattr("hpcvdj.runs.ranks._LARGE_BYTES", 300)
    array = np.arange(77, dtype=np.int64).reshape(7, 11)
    constant = array.view()
    constant.flags.writeable = False
    arrays = [array, constant, array.T, array[:, ::2], array[:0]]
    found = current.broadcast(arrays if current.is_root else None)
    assert all(map(np.array_equal, found, arrays))
    assert found[0].flags.writeable


def test_an_error_of_root_is_every_ranks(run):
    def fail():
        raise InputError("file: no")

    with pytest.raises(InputError, match="file: no") as caught:
        run.on_root(fail)
    assert caught.value.on_every_rank


def test_counters_past_32_bits_add_up(current):
    counters = np.array([2**61 + current.rank, current.rank], dtype=np.uint64)
    ranks = range(current.size)
    assert current.sum(counters).tolist() == [2**61 * len(ranks) + sum(ranks), sum(ranks)]


def test_maximum(current):
    assert current.maximum(np.array([float(current.rank)]))[0] == current.size - 1


def test_cores_are_shared(current):
    """Ranks that see the same cores take equal shares of them, one at least; a bound rank has its own."""
    cores = len(usable_cores())
    assert current.cores() in (max(1, cores // current.size), cores)


def test_a_round_ends_when_all_have_ended(current):
    """Ranks with as many steps as their number, from none on."""
    agreement = Agreement(current, lambda: False)
    assert not any(agreement.passed() for _ in range(current.rank))
    assert not agreement.end()


def test_one_rank_stops_all(current):
    """A rank hears it between its steps, or at the end."""
    last = current.size - 1
    agreement = Agreement(current, lambda: current.rank == last)
    steps = 0
    while not agreement.passed():
        steps += 1
        time.sleep(0.01)
    assert steps == 0 or current.rank != last
    assert agreement.end()


def test_a_rank_that_hangs_is_noticed(current):
    """The last rank sleeps longer than the others have patience, which then comes back."""
    patience = current.patience
    agreement = Agreement(current, lambda: False)
    current.patience = 0.5
    try:
        if current.size > 1 and current.rank < current.size - 1:
            with pytest.raises(LostRankError, match=r"waited \d s for the other ranks"):
                agreement.end()
        elif current.size > 1:
            time.sleep(current.size + 2)
    finally:
        current.patience = patience
    agreement.end()


@pytest.mark.parametrize(("victim", "seconds"), [("root", 2), ("last", 1)])
def test_a_rank_at_work_is_waited_for(run, victim, seconds):
    """However long its step takes: the others hear that its process computes.

    Without that, root would give up after half a second, and rank 1 a second later.
    """
    current, patience = run.world, run.world.patience
    at_work = 0 if victim == "root" else run.ranks - 1

    def compute():
        end = time.monotonic() + seconds * (run.ranks > 1)
        while time.monotonic() < end:
            np.sort(np.random.default_rng(1).random(100_000))

    current.patience = 0.5
    try:
        if victim == "root":
            run.on_root(compute)
        elif run.rank == at_work:
            compute()
        assert current.sum(np.array([1])) == run.ranks
    finally:
        current.patience = patience
    run.barrier()


def test_arrays_and_values_of_root_are_every_ranks(run):
    arrays = {"a": np.arange(5), "b": np.ones((2, 3), dtype=np.uint64)} if run.is_root else None
    shared = run.broadcast(arrays)
    assert shared["a"].tolist() == list(range(5))
    assert shared["b"].tolist() == [[1, 1, 1], [1, 1, 1]]
    assert run.from_root(lambda: {"x": run.rank}) == {"x": 0}
    assert run.gather_everywhere(run.rank) == list(range(run.ranks))
    assert run.slowest(float(run.rank), 1.0) == [run.ranks - 1.0, 1.0]


def test_each_leaves_together_with_the_failure_of_one_rank(run):
    def work(item):
        if run.rank == run.ranks - 1:
            raise InputError("file: no")
        time.sleep(0.01)

    with pytest.raises(InputError, match="file: no") as caught:
        run.each(range(200), work, "")
    assert caught.value.on_every_rank


@pytest.mark.parametrize("rows", [(0,) * 4, (1, 0, 0, 0), (0, 3, 700, 1), (200, 190, 210, 205)])
def test_the_order_of_the_rows_of_all_ranks(run, rows):
    """Of many equal first keys, and of ranks without rows: as one rank sorts the rows of all."""
    rng = np.random.default_rng(sum(rows))
    every = [(rng.choice([0.0, 1e-9, 0.5, 1.0], n), -rng.integers(2, 5, n), rng.permutation(n) * 4 + k)
             for k, n in enumerate(rows[: run.ranks])]  # fmt: skip
    own = every[run.rank]
    ordered = Ordered.of(own, [own[2] % 4], run)
    p, number, other, rank = map(np.concatenate, zip(*run.gather_everywhere(ordered.columns), strict=True))
    expected = [np.concatenate(column) for column in zip(*every, strict=True)]
    expected = [column[np.lexsort(expected[::-1])] for column in expected]
    for column, same in zip((p, number, other), expected, strict=True):
        np.testing.assert_array_equal(column, same)
    np.testing.assert_array_equal(rank, other % 4)
    places, texts = ordered.back(ordered.places(), ordered.columns[2].astype("U9"))
    np.testing.assert_array_equal(expected[2][places], own[2])
    np.testing.assert_array_equal(texts, own[2].astype("U9"))
    sizes = run.gather_everywhere(len(ordered.columns[0]))
    assert max(sizes) <= sum(sizes) / run.ranks * 1.5 + 1 or min(rows) < 190


@cache
def scattered():
    """The places of rows that four ranks have, and a table of all rows."""
    places = np.random.default_rng(5).permutation(23)
    table = pa.table({"name": [f"row {k}" for k in range(23)], "n": range(23), "none": pa.nulls(23, pa.float64())})
    return places, table


@pytest.mark.parametrize("ending", [".tsv", ".tsv.gz", ".tsv.zst", ".parquet", ".dataset"])
def test_blocks_of_all_ranks_are_one_table(run, ending, monkeypatch, tmp_path):
    """The same bytes for any number of ranks, also with more ranks than blocks; nothing is left beside the table."""
    monkeypatch.setattr("hpcvdj.results.blocks.BLOCK_ROWS", 7)
    places, table = scattered()
    folder = run.from_root(lambda: tmp_path)
    target = folder / f"table{ending}"
    own = places[run.rank :: run.ranks]
    blocks = TableBlocks(own, lambda rows: table.take(own[rows]), run)
    whole = blocks.on_root()
    with ExitStack() as stack:
        join = blocks.written(target, stack)

        def write():
            assert whole.equals(table)
            Targets(target).write({}, {target: join}, overwrite=False)

        run.on_root(write)
    if run.is_root:
        assert {path.name for path in folder.iterdir()} == {target.name, f"{target.name}.json"}
        written = pq.read_table(target) if target.is_dir() else hpcvdj.read_table(target)
        assert written["name"].to_pylist() == table["name"].to_pylist()
        digest = folder_digest(target) if target.is_dir() else file_digest(target)
        assert WRITTEN.setdefault(ending, digest) == digest
    run.barrier()


WRITTEN = {}
"""The digest of each kind of table, which one rank wrote first."""


def test_blocks_that_cannot_be_written(run, tmp_path):
    """A value of the last rank fails on every rank; a table without rows has its columns."""
    folder = run.from_root(lambda: tmp_path)
    wrong = TableBlocks(np.array([run.rank]), lambda rows: pa.table({"a": ["x\ty"] * len(rows)}), run)
    with ExitStack() as stack, pytest.raises(InputError, match="has a tab"):
        wrong.written(folder / "wrong.tsv", stack)
    nothing = TableBlocks(np.empty(0, dtype=np.int64), lambda rows: pa.table({"a": pa.array([], pa.string())}), run)
    with ExitStack() as stack:
        join = nothing.written(folder / "empty.tsv", stack)
        if run.is_root:
            join(folder / "empty.tsv")
            assert (folder / "empty.tsv").read_text() == "a\n"
    if run.is_root:
        assert [path.name for path in folder.iterdir()] == ["empty.tsv"]
    run.barrier()


def test_what_is_sent_arrives(run):
    """One rank may send nothing, another much."""
    sent = [np.arange(1_000 * run.rank * to) for to in range(run.ranks)]
    received = run.exchange(sent)
    assert [own.tolist() for own in received] == [list(range(1_000 * k * run.rank)) for k in range(run.ranks)]


def test_items_dealt_to_ranks(run):
    """Each is computed once, by one rank on its own if there are enough; one that is refused stops no other."""
    told = []
    for items in (1, run.ranks, 3 * run.ranks + 1):

        def work(item, alone, items=items):
            assert alone.ranks == (1 if run.ranks <= items else run.ranks)
            assert alone.provenance()["mpi_size"] == run.ranks
            if item == 2:
                error = InputError("no rows")
                error.on_every_rank = True
                raise error
            return item, run.rank

        done, refused = run.deal(list(range(items)), work, [5] * items, lambda error: told.append(str(error)))
        assert [(item, str(error)) for item, error in refused] == [(2, "no rows")] * (items > 2)
        values = [outcome for _, outcome in done]
        if run.is_root:
            assert [item for item, _ in values] == [item for item in range(items) if item != 2]
        by_rank = [item for item, rank in values if rank == run.rank]
        shared = run.gather_everywhere(by_rank if 1 < run.ranks <= items else by_rank * run.is_root)
        assert sorted(item for own in shared for item in own) == [item for item in range(items) if item != 2]
    refusals = 1 + (run.ranks > 2)
    assert sum(len(own) for own in run.gather_everywhere(told)) == refusals


def test_items_of_very_different_sizes_are_computed_together(run):
    """Where one rank would have much more than the others, unless that does not matter."""
    sizes = [100] + [1] * run.ranks
    for most_uneven, ranks in ((1.25, run.ranks), (1000.0, 1)):
        done, _ = run.deal(sizes, lambda size, alone: alone.ranks, sizes, most_uneven=most_uneven)
        assert {own for _, own in done} == {ranks}
    done, _ = run.deal([1] * run.ranks, lambda size, alone: alone.ranks, [7] * run.ranks, most_uneven=1.25)
    assert {own for _, own in done} == {1}


def test_items_dealt_to_ranks_are_computed_on_the_device_of_each(run, monkeypatch):
    opened = []

    def noting(name, device):
        opened.append(device)
        return open_backend(name, device)

    monkeypatch.setattr("hpcvdj.runs.run.open_backend", noting)
    run.deal(list(range(run.ranks)), lambda item, alone: alone.bind("cpu").name, sizes=[1] * run.ranks)
    assert opened == [run.world.local_rank()]


def test_a_signal_while_items_are_dealt(run):
    def work(item, alone):
        if run.rank == run.ranks - 1:
            run.request.name = "SIGTERM"
        alone.each([item], int, "before any result")

    with pytest.raises(
        StoppedError, match=r"^SIGTERM: stopped (before any|after \d+ of 40 repertoires; --resume)"
    ) as e:
        run.deal([str(item) for item in range(40)], work, sizes=[1] * 40)
    assert len(set(run.gather_everywhere(str(e.value)))) == 1, "what all ranks have done"


@pytest.mark.parametrize("rows", [1, 1 << 13])
@pytest.mark.parametrize("how", ["exchange", "gather", "gather_everywhere", "gather_rows", "broadcast", "sum"])
def test_large_data_move_without_naps(current, monkeypatch, how, rows):
    """Once all ranks are there: before, a rank that waits leaves its core to others."""
    napped, right = [], World.wait

    def wait(self, request, begun=None, *, naps=True):
        napped.append(naps)
        right(self, request, begun, naps=naps)

    monkeypatch.setattr(World, "wait", wait)
    values = np.ones((rows * current.size, 8), dtype=np.int64)
    own = [(rows * rank, rows * (rank + 1)) for rank in range(current.size)]
    arguments = {"exchange": [[values] * current.size], "gather_rows": [values, own]}.get(how, [values])
    found = getattr(current, how)(*arguments)
    if how == "sum":
        assert (found == current.size).all()
    if current.size > 1:
        assert napped[0]
        assert napped[-1] == (rows == 1 and how != "exchange")


@pytest.mark.parametrize("most", [3, 1000])
def test_ranks_list_the_clonotypes_that_one_rank_lists(run, monkeypatch, most):
    monkeypatch.setattr("hpcvdj.reports.clonotypes.MOST_LISTED", most)
    rng = np.random.default_rng(7)
    surveys = [surveyed(rng, "pgen_nt", samples) for samples in (["a", "b"], ["c"], ["a", "d", "e"])]
    found, wanted = found_by(surveys, run), found_by(surveys, Run())
    assert found == (wanted if run.is_root else {})


def test_a_report_names_the_first_file_that_cannot_be_read(run, tmp_path):
    """Whichever rank reads it."""
    files = [tmp_path / f"{name}.tsv" for name in "abcde"]
    for number, file in enumerate(files):
        # The largest files are read first.
        rows = f"TGTGCCTTC\tTRBV1\tTRBJ1-1\t{number}e-9\n" * (number + 1)
        file.write_text(f"junction\tv_call\tj_call\tpgen_nt\n{rows}")
    alone, together = read_outputs(files), read_outputs(files, run=run)
    if run.is_root:
        assert [survey.path for survey in together.surveys] == files
        assert together.clonotypes == alone.clonotypes
    for file in files[1:4]:
        file.write_text("junction\tpgen_nt\nTGTGCCTTC\tx\n")
    with pytest.raises(InputError, match=r"b\.tsv: column pgen_nt has a value that is not a number") as caught:
        read_outputs(files, run=run)
    assert caught.value.on_every_rank
