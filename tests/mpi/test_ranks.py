"""Tests that run on every rank: mpiexec -n N python -m mpi4py -m pytest --with-mpi tests/mpi/test_ranks.py

Each test runs on the first rank, then on the first two, and so on up to N: one launch is cheaper than N of them, and
what root alone computes to compare with is computed once. One collective per test, and --timeout, so that a rank that
fails cannot pair with a stuck one in the next test.
"""

import atexit
import json
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.association.question import AssociationQuestion
from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.chance.dealing import OwnTables, deal
from hpcvdj.chance.question import read_rows
from hpcvdj.chance.settings import Checks, ClonotypeChoice
from hpcvdj.cohorts.contamination_question import ContaminationQuestion
from hpcvdj.cohorts.settings import ContaminationSettings, Naming, SharingSettings
from hpcvdj.cohorts.sharing_question import SharingQuestion
from hpcvdj.counting.config import Config
from hpcvdj.counting.verify import reference
from hpcvdj.enrichment.question import EnrichmentQuestion
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import InputError, LostRankError, StoppedError
from hpcvdj.generation.generate import generate
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.inference.parameters import parameters
from hpcvdj.inference.selection_question import SelectionQuestion
from hpcvdj.inference.settings import InferenceSettings, SelectionSettings
from hpcvdj.inference.tables import infer_tables, reading_for
from hpcvdj.kernels.backends import open_backend
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.packaged import model_paths
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.repertoires.formats.format import BY_HEADER
from hpcvdj.repertoires.inputs import Inputs, together_of
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.table import table_at, table_of
from hpcvdj.reports.outputs import read_outputs
from hpcvdj.results.blocks import TableBlocks
from hpcvdj.results.facts import Targets
from hpcvdj.runs import inputs as run_inputs
from hpcvdj.runs.launcher import launched_ranks
from hpcvdj.runs.ordering import Ordered
from hpcvdj.runs.ranks import World, usable_cores, world
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import Agreement
from hpcvdj.storage.folders import folder_digest
from hpcvdj.storage.inputs import file_digest
from hpcvdj.values.compute import ArrayStore, compute
from tests.conftest import SMALL
from tests.problems import METHODS, repertoire_of_file, sample
from tests.report.test_clonotypes import found_by, surveyed

# Without a launcher these tests are skipped, and MPI stays off.
SIZES = range(world().rank + 1, world().size + 1) if launched_ranks() > 1 else [1]
# The size varies fastest, so ranks that are not among the first ones wait for a single test.
pytestmark = [pytest.mark.mpi, pytest.mark.parametrize("size", SIZES)]


@cache
def first_ranks(size):
    """The world of the first `size` ranks, all of which call this."""
    launched = world()
    if size in (1, launched.size):
        return World(None, launched.library) if size == 1 else launched
    from mpi4py import MPI

    group = MPI.COMM_WORLD.Get_group().Incl(range(size))
    first = World(MPI.COMM_WORLD.Create_group(group), launched.library)
    if launched._liveness is not None:
        first.watch()
    atexit.register(first.leave)
    return first


@pytest.fixture
def current(size):
    """The first `size` ranks, which begin a test together."""
    first = first_ranks(size)
    first.barrier()
    return first


@pytest.fixture
def run(current):
    """A computation in memory over the first ranks."""
    return Run(current)


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


@cache
def individuals():
    """Tables of six individuals, of which two have copies of others' improbable junctions, and two share samples."""
    model = load_model(model_paths()["human_trb_m15"])
    drawn = pa.Table.from_batches(
        list(generate(model, GenerationSettings(5_000, seed=3, productive=True), open_backend("cpu"), Run()))
    )
    rng, size = np.random.default_rng(4), len(drawn) // 6
    tables = {}
    for k in range(6):
        own = drawn.slice(k * size, size).select(["v_call", "j_call", "junction"])
        own = own.append_column("duplicate_count", pa.array(2 + rng.geometric(0.02, len(own))))
        copied = drawn.slice((k + 1) % 6 * size, 30 * (k in (1, 3))).select(["v_call", "j_call", "junction"])
        copied = copied.append_column("duplicate_count", pa.array(np.ones(len(copied), dtype=np.int64)))
        own = pa.concat_tables([own, copied])
        tables[f"i{k}"] = own.append_column("sequence_id", pa.array([f"r{row}" for row in range(len(own))]))
    return model, tables


METADATA = pa.table({"name": [f"i{k}" for k in range(6)], "ill": list("nnnyyy"), "age": [3, 1, 4, 1, 5, 9]})

QUESTIONS = {
    "sharing": SharingQuestion(Naming(), SharingSettings(draws=1_000, q=0.5, backend="cpu")),
    "sharing-nt": SharingQuestion(
        Naming(), SharingSettings(unit="nt", min_individuals=1, draws=1_000, q=0.5, backend="cpu")
    ),
    "sharing-aa": SharingQuestion(Naming(), SharingSettings(unit="aa", draws=1_000, backend="cpu")),
    "contamination": ContaminationQuestion(Naming(), ContaminationSettings(draws=1_000, min_low=10, backend="cpu")),
    "associate-ball": AssociationQuestion(
        Donors(metadata=METADATA, case={"ill": "y"}),
        AssociationSettings(unit="ball", min_individuals=2, max_p=1.0, draws=1_000, backend="cpu"),
    ),
    "associate": AssociationQuestion(
        Donors(metadata=METADATA, case={"ill": "y"}, trend="age"),
        AssociationSettings(unit="v-aa", min_individuals=2, max_p=1.0, draws=1_000, backend="cpu"),
    ),
}


def compared(name, run):
    """Root's answer to a question about the individuals, and its facts."""
    question, (model, tables) = QUESTIONS[name], individuals()
    given = [table_of(table, question.opening(), individual) for individual, table in tables.items()]
    rows = read_rows(question, given, model, Checks(), run)
    answer, blocks = question.answer_in_blocks(rows, model, run)
    table = None if blocks is None else blocks.on_root()
    if answer is None:
        return None
    return answer if table is None else replace(answer, table=table), question.facts(answer, rows)


@cache
def compared_alone(name):
    """What root computes without the others."""
    return compared(name, Run())


@pytest.mark.parametrize("name", QUESTIONS)
def test_comparisons_of_individuals_do_not_depend_on_ranks(run, name, monkeypatch):
    """Each rank reads some tables, and has the rows of some amino acids."""
    monkeypatch.setattr("hpcvdj.cohorts.sharing.PRIVATE", 2_000)
    monkeypatch.setattr("hpcvdj.cohorts.sharing.MOST_PUBLIC", 100)
    if name != "associate":
        # Root compares rows with the model, the same for each question: once with so many that draws are compared, too.
        monkeypatch.setattr("hpcvdj.chance.check.SAMPLE", 100)
    with monkeypatch.context() as few:
        few.setattr("hpcvdj.chance.dealing.ROWS_AT_ONCE", 300)
        few.setattr("hpcvdj.chance.dealing.ROWS_TOGETHER", 250)
        few.setattr("hpcvdj.results.blocks.BLOCK_ROWS", 50)
        found = compared(name, run)
    assert (found is not None) == run.is_root
    if found is not None:
        alone = compared_alone(name)
        assert found[0].table.num_rows > 10
        assert found[0].table.equals(alone[0].table)
        assert json.dumps(found[1], default=np.ndarray.tolist) == json.dumps(alone[1], default=np.ndarray.tolist)
        for further in ("junctions", "donors", "copies"):
            if hasattr(alone[0], further):
                assert getattr(found[0], further) == getattr(alone[0], further)


def dealt_rows(inputs, model, run):
    """The rows of all ranks, sorted, and what became of the others, on root."""
    dealt = deal(inputs, model, run)
    whole = dealt.whole
    own = zip(
        whole.row.tolist(), whole.sample.tolist(), whole.reads.tolist(), whole.repertoire.words.tolist(), strict=True
    )
    every = run.gather(list(own))
    return every and (sorted(row for part in every for row in part), dealt.left_out, dealt.tally)


@pytest.mark.parametrize("change", ["", "an id twice", "a missing count"])
def test_ranks_read_pieces_of_a_table(run, tmp_path, change, monkeypatch):
    """Of a Parquet file; together again if rows of two pieces must be compared."""
    monkeypatch.setattr("hpcvdj.chance.dealing.ROWS_TOGETHER", 100)
    model, tables = individuals()

    def written():
        rows = pa.concat_tables(tables.values()).to_pandas()
        rows["sequence_id"] = [f"r{row}" for row in range(len(rows))]
        rows["repertoire_id"] = ["abc"[row % 3] for row in range(len(rows))]
        rows["duplicate_count"] = rows["duplicate_count"].astype("Int64")
        rows.loc[[0, 3_000], "v_call"] = "TRBV99"
        if change == "an id twice":
            rows.loc[4_200, "sequence_id"] = "r6"
        elif change:
            rows.loc[4_200, "duplicate_count"] = pd.NA
        rows.to_parquet(tmp_path / "t.parquet", row_group_size=170)
        return tmp_path / "t.parquet"

    reading = productive_reading(reads=True)
    inputs = run_inputs.surveyed(together_of([table_at(run.from_root(written))], reading), run)
    own = OwnTables(inputs, model, run, apart=True)
    assert own.apart == (run.ranks > 1)
    rows = run.gather(sum(unit.rows for unit in own.units))
    found = dealt_rows(inputs, model, run)
    if run.is_root:
        assert max(rows) - min(rows) <= 1
        assert found == dealt_rows(inputs, model, Run())
        assert sum(found[1].values()) == 2 + bool(change)


@cache
def misread():
    """Junctions of an individual, and copies with another base: some as large, some of another V with few reads."""
    model, tables = individuals()
    rows = tables["i0"].to_pandas()
    copies = rows[rows["duplicate_count"] >= 20].copy()
    copies["junction"] = [text[:12] + "ACGT"["GTCA".index(text[12])] + text[13:] for text in copies["junction"]]
    copies["sequence_id"] += "m"
    near = copies.iloc[:60]
    copies["v_call"] = np.roll(copies["v_call"], 1)
    copies["duplicate_count"] = 1
    return model, pa.Table.from_pandas(pd.concat([rows, copies.iloc[60:], near, rows.iloc[:50]]), preserve_index=False)


def neighbours(run, field, genes, with_control):
    """Root's answer about the neighbours of misread junctions, and its facts."""
    (model, table), (_, tables) = misread(), individuals()
    if field:
        table = table.append_column(field, pa.array(translate(table["junction"].to_pylist()))).drop_columns("junction")
    control = [table_of(tables[name], BY_HEADER, name) for name in ("i1", "i2")] if with_control else []
    kappa = 1.0 if field else None
    settings = EnrichmentSettings(kappa=kappa, min_neighbours=1, genes=genes, seed=1, max_q=0.9, backend="cpu")
    question = EnrichmentQuestion(settings, ClonotypeChoice(), control)
    rows = read_rows(question, [table_of(table, BY_HEADER)], model, Checks(keep_misfits=True), run)
    answer = question.answer(rows, model, run)
    if answer is None:
        return None
    clones = {name: sizes.recorded() for name, sizes in question.clones(answer, rows, model).items()}
    return answer, question.facts(answer, rows), clones


@cache
def neighbours_alone(field, genes, with_control):
    """What root finds without the others."""
    return neighbours(Run(), field, genes, with_control)


@pytest.mark.parametrize(
    ("field", "genes", "with_control"),
    [("", "call", False), ("", "any", False), ("junction_aa", "call", False), ("", "call", True)],
)
def test_neighbours_do_not_depend_on_ranks(run, field, genes, with_control, monkeypatch):
    """Each rank has the junctions of some V, J and length; of errors, any rank may have the original."""
    monkeypatch.setattr("hpcvdj.enrichment.enrich.SAMPLE", 300)
    monkeypatch.setattr("hpcvdj.chance.check.SAMPLE", 100)
    found = neighbours(run, field, genes, with_control)
    assert (found is not None) == run.is_root
    if found is not None:
        alone = neighbours_alone(field, genes, with_control)
        assert found[0].table.equals(alone[0].table)
        assert found[0].table.num_rows > 10
        assert found[1:] == alone[1:]
        assert found[1]["rows_left_out"]["junctions that another row has"] >= 50
        assert field or found[1]["rows_left_out"]["likely sequencing errors"] > 100


def selected(run):
    """What root says of the selection of the individuals' junctions."""
    question, (model, tables) = SelectionQuestion(SelectionSettings(max_junctions=1_000), "cpu"), individuals()
    given = [table_of(table, question.opening(), individual) for individual, table in tables.items()]
    rows = read_rows(question, given, model, Checks(), run)
    answer = question.answer(rows, model, run)
    if answer is None:
        return None
    factor = answer.selection
    return factor.text(""), factor.facts, answer.left_out, question.facts(answer, rows)


@cache
def selected_alone():
    """What root computes without the others."""
    return selected(Run())


def test_a_selection_factor_does_not_depend_on_ranks(run, monkeypatch):
    """Each rank has some of the junctions; which of them take part is drawn."""
    for name, value in {"FRESH": 2_000, "FEWEST_JUNCTIONS": 500, "FEWEST_OF_CLASS": 5}.items():
        monkeypatch.setattr(f"hpcvdj.inference.selection.{name}", value)
    with monkeypatch.context() as few:
        few.setattr("hpcvdj.chance.dealing.ROWS_TOGETHER", 250)
        found = selected(run)
    assert (found is not None) == run.is_root
    if found is not None:
        assert found == selected_alone()
        assert found[1]["rows"] + found[1]["held_out"] == 1_000


@cache
def to_infer_from():
    """A model, how it is inferred, and tables, of which one has no read counts."""
    model = load_model(model_paths()["human_trb_m15"])
    drawn = pa.Table.from_batches(list(generate(model, GenerationSettings(4_000, seed=5), open_backend("cpu"), Run())))
    drawn = drawn.select(["sequence_id", "v_call", "j_call", "junction"])
    plan, tables = InferenceSettings(iterations=2, bootstrap=2, only=("v_choice", "j_choice")), {}
    for k in range(5):
        own = pa.concat_tables([drawn.slice(600 * k, 600), drawn.slice(600 * k, 30)])
        reads = pa.array([None if k == 4 else 2 + row % 7 for row in range(len(own))], pa.int64())
        named = own.set_column(0, "sequence_id", pa.array([f"{k}.{row}" for row in range(len(own))]))
        tables[f"i{k}"] = named.append_column("duplicate_count", reads)
    return model, plan, tables


def inferred(run):
    """The model that root infers."""
    model, plan, tables = to_infer_from()
    reading = reading_for(plan)
    given = [table_of(table, reading.opening, name) for name, table in tables.items()]
    return infer_tables(together_of(given, reading), model, plan, run, "cpu")


@cache
def inferred_alone():
    """What root infers without the others."""
    return inferred(Run())


def test_an_inferred_model_does_not_depend_on_ranks(run):
    """Each rank reads some tables, and chooses rows of these."""
    found = inferred(run)
    assert (found is not None) == run.is_root
    if found is not None:
        alone = inferred_alone()
        for name in ("rows_read", "excluded", "left_out"):
            assert getattr(found, name) == getattr(alone, name)
        assert (found.rows_read, found.excluded) == (5 * 630, 630)
        assert found.left_out["junctions that the repertoire has in another row"] > 50
        for own, other in ((found.fit.model, alone.fit.model), (found.fit.errors, alone.fit.errors)):
            for values, others in zip(parameters(own), parameters(other), strict=True):
                assert np.array_equal(values, others)


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
