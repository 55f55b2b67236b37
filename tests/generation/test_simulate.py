"""hpcvdj.generation.simulate: what is drawn is what was asked for."""

import collections
import gzip

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.counting.verify import reference
from hpcvdj.errors import InputError
from hpcvdj.generation.settings import PAPER_LARGEST_PAIR, PAPER_SEQUENCES, SimulationSettings
from hpcvdj.generation.simulate import pair_sizes, simulate
from hpcvdj.recombination.germline import from_sequences, read_germline
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.repertoires.junctions import read_junctions
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.table import Table
from tests.conftest import GERMLINE, ROOT, SMALL
from tests.problems import repertoire_of_file

EXAMPLE = ROOT / "inputs" / "mouse_trb" / "repertoire.tsv.gz"


def read(batches, germline, **options):
    return read_junctions(batches, germline, Reading(**options), [Table(SMALL)])


def table(germline, **plan):
    return pa.Table.from_batches(simulate(germline, SimulationSettings(**plan)))


@settings(max_examples=60)
@given(st.integers(1, 5000), st.integers(1, 300), st.floats(0.001, 1))
def test_pair_sizes(count, pairs, largest):
    sizes = pair_sizes(count, pairs, largest)
    assert sizes.sum() == count
    assert sizes.min() >= 0
    assert sizes.max() == max(round(count * largest), -(-count // pairs))


def test_the_papers_sizes():
    sizes = pair_sizes(PAPER_SEQUENCES, 240, PAPER_LARGEST_PAIR / PAPER_SEQUENCES)
    assert (sizes.sum(), sizes.max()) == (101_822, 3_249)
    assert sizes.min() > 0


def test_same_seed_same_rows(paper_germline):
    first = table(paper_germline, number=300, seed=3)
    assert first.equals(table(paper_germline, number=300, seed=3))
    assert not first.equals(table(paper_germline, number=300, seed=4))


def test_rows_are_distinct_within_pairs_and_have_pathways(paper_germline):
    made = table(paper_germline, number=400, seed=1, orf=True)
    rows = made.select(["v_call", "j_call", "junction"]).to_pylist()
    assert len({tuple(row.values()) for row in rows}) == 400
    assert len(set(made["sequence_id"].to_pylist())) == 400
    assert len(read(made.to_batches(), paper_germline, longest=60)) == 400
    few = read(made.slice(0, 40).to_batches(), paper_germline)
    counters = reference(Problem(few.repertoire, paper_germline, 10))
    n = np.array(
        [int(a) + int(b) for a, b in zip(*(made[c].to_pylist()[:40] for c in ("n1_length", "n2_length")), strict=True)]
    )
    assert (counters[np.arange(40), n[few.row]] > 0).all()


@pytest.mark.exhaustive
def test_every_pathway_is_equally_likely():
    """Counts of draws against counters, on a germline so small that each sequence is drawn often."""
    germline = from_sequences(["A"], ["G"], ["C"], max_p=0)
    forms = 2 * 2 * 2
    # Distinct within pairs, so a draw of one is a draw: repeat it under many seeds.
    drawn = collections.Counter(
        table(germline, number=1, seed=seed, n_lengths=range(1))["junction"][0].as_py() for seed in range(1600)
    )
    sequences = sorted(drawn)
    batch = pa.RecordBatch.from_pydict(
        {"v_call": ["V1"] * len(sequences), "j_call": ["J1"] * len(sequences), "junction": sequences}
    )
    counters = reference(Problem(read([batch], germline).repertoire, germline, 0))[:, 0]
    assert counters.sum() == forms
    expected = 1600 * counters / forms
    observed = np.array([drawn[s] for s in sequences])
    # Chi square with at most 7 degrees of freedom: above 29.9 in 1 of 10,000 fair runs; the seeds are fixed.
    assert ((observed - expected) ** 2 / expected).sum() < 29.9


def test_productive(paper_germline):
    made = table(paper_germline, number=300, seed=2, productive=True)
    stops = {"TAA", "TAG", "TGA"}
    for junction in made["junction"].to_pylist():
        assert len(junction) % 3 == 0
        assert not stops & {junction[k : k + 3] for k in range(0, len(junction), 3)}
    mixed = table(paper_germline, number=300, seed=2)["productive"].to_pylist()
    assert {"T", "F"} == set(mixed)


def test_n_lengths(paper_germline):
    made = table(paper_germline, number=600, seed=2, n_lengths=range(2, 6))
    parts = [made[name].to_pylist() for name in ("n1_length", "n2_length")]
    numbers = collections.Counter(int(a) + int(b) for a, b in zip(*parts, strict=True))
    assert set(numbers) == {2, 3, 4, 5}
    # Equally likely: five standard deviations of 600 draws with a chance of 1 in 4.
    assert all(abs(number - 150) < 53 for number in numbers.values())


def test_a_locus_without_d():
    germline = read_germline(ROOT / "inputs" / "germline" / "mouse_igl.tsv")
    made = table(germline, number=50, seed=1)
    assert set(made["d_call"].to_pylist()) == {""}
    assert set(made["n2_length"].to_pylist()) == {"0"}


def test_impossible_plans(paper_germline):
    with pytest.raises(InputError, match="does not give"):
        table(from_sequences(["A"], ["G"], ["C"]), number=100, n_lengths=range(1))
    with pytest.raises(InputError, match="give a range of n-lengths"):
        table(paper_germline, n_lengths=range(0))


@pytest.mark.parametrize(
    ("path", "count"), [pytest.param(EXAMPLE, PAPER_SEQUENCES, marks=pytest.mark.exhaustive), (SMALL, 500)]
)
def test_the_shipped_examples_are_what_their_readme_says(path, count):
    germline = read_germline(GERMLINE)
    plan = SimulationSettings(number=count, seed=2019, productive=True, orf=True)
    lines = ["\t".join(row.values()) for batch in simulate(germline, plan) for row in batch.to_pylist()]
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    assert text.splitlines()[1:] == lines


def test_the_example_has_the_papers_shape(paper_germline):
    repertoire = repertoire_of_file(EXAMPLE, paper_germline, longest=60)
    assert len(repertoire) == 101_822
    assert len(repertoire.pairs) == 240
    assert np.diff(repertoire.offsets).max() == 3_249


def test_more_junctions_than_there_are_is_an_error_before_anything_is_drawn(paper_germline, monkeypatch):
    """It took minutes."""
    monkeypatch.setattr("hpcvdj.generation.simulate._draw", lambda *_: pytest.fail("draws"))
    with pytest.raises(InputError, match=r"does not give \d+ distinct CDR3s .*; ask for fewer junctions"):
        table(paper_germline, number=10**8, n_lengths=range(1))


def test_all_junctions_that_there_are():
    made = table(from_sequences(["A"], ["G"], ["C"], max_p=0), number=8, n_lengths=range(1))
    assert {junction[3:-3] for junction in made["junction"].to_pylist()} == {"", "A", "G", "C", "AG", "AC", "GC", "AGC"}
