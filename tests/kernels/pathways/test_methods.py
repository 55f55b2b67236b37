"""Every method against the reference, to the bit, on random and hostile problems."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpcvdj.counting.config import Config
from hpcvdj.counting.verify import reference
from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import Germline, Segment, extended_j, extended_v, from_sequences, read_germline
from hpcvdj.recombination.repertoire import LONGEST_CDR3, PAPER_LONGEST_CDR3, Problem
from tests.conftest import ROOT, TABLES
from tests.problems import METHODS, Case, cases, count_with, method_named, repertoire_of_rows

kinds = pytest.mark.parametrize("kind", ["paper", "distinct"])


@pytest.mark.slow_others("method")
@pytest.mark.parametrize("method", METHODS)
@kinds
@settings(max_examples=40, deadline=None)
@given(case=cases(), ranks=st.integers(1, 5))
@example(Case(from_sequences(["ACG"], [], ["TTG"]), [("V1", "J1", "ACGTTG")]), 2)
@example(Case(from_sequences([""], ["G"], [""]), [("V1", "J1", "G"), ("V1", "J1", "")]), 3)
def test_equals_the_reference(method, kind, case, ranks):
    problem = case.problem(3, kind)
    assert count_with(problem, method, ranks=ranks).tolist() == reference(problem).tolist()


@kinds
@settings(max_examples=40, deadline=None)
@given(case=cases())
def test_direct_at_all_n_lengths(kind, case):
    repertoire = case.problem(0).repertoire
    problem = case.problem(repertoire.longest, kind)
    counters = count_with(problem, "direct")
    assert counters.tolist() == reference(problem).tolist()
    # With as many n-nucleotides as the sequence is long, V, D and J are all chewed away: it always has a pathway.
    full = counters[np.arange(len(counters)), repertoire.lengths]
    assert (full > 0).all()


LENGTHS = (31, 32, 33, 59, 60, 63, 64, 65, 128)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "lengths", "max_n"),
    [
        *((method, LENGTHS, 2 if method_named(method).enumerates else 20) for method in METHODS),
        ("direct", (65,), 65),
        pytest.param("direct", LENGTHS, 128, marks=pytest.mark.exhaustive),
    ],
)
def test_longest_sequences(method, lengths, max_n, paper_germline):
    """Sequences of every length near the methods' limits, on the paper's segments."""
    rng = np.random.default_rng(5)
    longest = method_named(method).longest_cdr3
    v, j = extended_v(paper_germline.of("V")[0].sequence), extended_j(paper_germline.of("J")[0].sequence)
    rows = []
    for length in lengths:
        middle = "".join(rng.choice(list("ACGT"), max(0, length - len(v) - len(j))))
        rows.append((paper_germline.of("V")[0].allele, paper_germline.of("J")[0].allele, (v + middle + j)[:length]))
    repertoire = repertoire_of_rows(paper_germline, rows, longest=longest)
    assert repertoire.longest == min(longest, lengths[-1])
    problem = Problem(repertoire, paper_germline, max_n)
    assert count_with(problem, method).tolist() == reference(problem).tolist()


def test_limits():
    assert method_named("direct").longest_cdr3 == LONGEST_CDR3 >= 120
    assert method_named("bitwise").longest_cdr3 == method_named("baseline").longest_cdr3 == PAPER_LONGEST_CDR3


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, pytest.param(12, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_shipped_locus(path, size):
    """Real segments of each locus: random pairs, sequences cut from them."""
    germline = read_germline(path)
    rng = np.random.default_rng(11)
    rows = []
    for _ in range(size):
        v, j = rng.choice(germline.of("V")), rng.choice(germline.of("J"))
        a, b = extended_v(v.sequence), extended_j(j.sequence)
        genes = germline.d_segments(v.locus)
        d = str(rng.choice(genes).sequence[rng.integers(4) :]) if genes else ""
        n = ["".join(rng.choice(list("ACGT"), rng.integers(4))) for _ in range(2)]
        left, right = a[: rng.integers(len(a) + 1)], b[rng.integers(len(b) + 1) :]
        rows.append((v.allele, j.allele, left + n[0] + d + n[1] + right))
    problem = Problem(repertoire_of_rows(germline, rows), germline, 10)
    expected = reference(problem)
    assert count_with(problem, "direct").tolist() == expected.tolist()
    assert expected.sum() > 0
    short = Problem(repertoire_of_rows(germline, rows, longest=PAPER_LONGEST_CDR3), germline, 1)
    expected = reference(short)
    for method in ("bitwise", "baseline"):
        assert count_with(short, method).tolist() == expected.tolist()


@pytest.mark.parametrize("unit_work", [1, 10, 1 << 20])
@pytest.mark.parametrize("method", METHODS)
def test_units_cover_each_counter_once(paper_germline, method, unit_work):
    rows = [(v.allele, j.allele, "GCC") for v in paper_germline.of("V")[:3] for j in paper_germline.of("J")[:4]]
    problem = Problem(repertoire_of_rows(paper_germline, rows * 3, longest=60), paper_germline, 4)
    chosen, offsets = method_named(method), problem.repertoire.offsets
    covered = np.zeros((len(problem.repertoire), 5), dtype=int)
    for unit in chosen.units(problem, unit_work, range(problem.columns)):
        covered[unit.rows.start : unit.rows.stop, unit.n_lengths.start : unit.n_lengths.stop] += 1
        assert chosen.work(unit) > 0
        assert offsets[unit.pairs.start] <= unit.rows.start
        assert offsets[unit.pairs.stop] >= unit.rows.stop
    assert (covered == 1).all()


def test_direct_cuts_large_repertoires_into_units(paper_germline, monkeypatch):
    monkeypatch.setattr("hpcvdj.kernels.method.UNIT_VALUES", 20)
    rows = [(v.allele, "TRBJ1-1*01", "GCC") for v in paper_germline.of("V")[:6] for _ in range(3)]
    problem = Problem(repertoire_of_rows(paper_germline, rows), paper_germline, 4)
    units = list(method_named("direct").units(problem, 1, range(problem.columns)))
    assert [len(unit.rows) for unit in units] == [4, 4, 4, 4, 2]
    assert [(unit.pairs.start, unit.pairs.stop) for unit in units] == [(0, 2), (1, 3), (2, 4), (4, 6), (5, 6)]
    assert count_with(problem, "direct").tolist() == reference(problem).tolist()


def test_a_d_segment_too_long_for_a_word_is_refused():
    germline = from_sequences(["A"], ["ACGT" * 15], ["C"])
    problem = Problem(repertoire_of_rows(germline, [("V1", "J1", "AC")]), germline, 2)
    with pytest.raises(InputError, match=r"D1\*01 .* has 68 bases.*method='bitwise'"):
        count_with(problem, "direct")


def test_many_d_genes_fill_several_words():
    """Human IGH has more D bases than a machine word has bits."""
    germline = read_germline(ROOT / "inputs" / "germline" / "human_igh.tsv")
    from hpcvdj.kernels.pathways.d_table import DTable

    table = DTable(Problem(repertoire_of_rows(germline, []), germline, 2))
    assert table.words[0] > 1
    places = sum(int(word).bit_count() for word in table.ends[0].ravel())
    assert places == sum(len(s.sequence) + 8 for s in germline.d_segments("IGH")) == table.empty[0]


def test_two_loci_in_one_germline():
    segments = [
        Segment("TRB", "V", "TRBV1*01", "F", "ACG"),
        Segment("TRB", "D", "TRBD1*01", "F", "GG"),
        Segment("TRB", "J", "TRBJ1*01", "F", "TTC"),
        Segment("TRA", "V", "TRAV1*01", "F", "AGG"),
        Segment("TRA", "J", "TRAJ1*01", "F", "CCA"),
    ]
    germline = Germline(tuple(segments))
    rows = [("TRBV1", "TRBJ1", "ACGGGTTC"), ("TRAV1", "TRAJ1", "AGGCCA"), ("TRAV1", "TRBJ1", "AGG")]
    problem = Problem(repertoire_of_rows(germline, rows), germline, 3)
    assert len(problem.repertoire) == 2
    for method in METHODS:
        assert count_with(problem, method).tolist() == reference(problem).tolist()


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_repertoire(method, paper_germline):
    problem = Problem(repertoire_of_rows(paper_germline, []), paper_germline, 3)
    assert count_with(problem, method).shape == (0, 4)


def test_enumeration_stops_where_task_numbers_do():
    with pytest.raises(InputError, match=r"max_n=16 .* use method='direct'"):
        Config(max_n=16, method="bitwise").resolve_max_n(3)
    assert Config(max_n=16, method="direct").resolve_max_n(3) == 16
    assert Config(max_n="all").resolve_max_n(3) == 3
    with pytest.raises(InputError, match="method must be one of direct, bitwise, baseline"):
        Config(max_n=1, method="guess").resolve_max_n(3)


@pytest.mark.parametrize("max_n", [-1, 129])
def test_n_lengths_that_cannot_be(paper_germline, max_n):
    with pytest.raises(InputError, match=f"max_n={max_n}: give a number from 0 to 128, or all"):
        Problem(repertoire_of_rows(paper_germline, []), paper_germline, max_n)
