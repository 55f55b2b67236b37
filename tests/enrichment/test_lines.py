"""What the summary and the warnings of `hpcvdj enrich` say of an answer."""

from dataclasses import replace

import pyarrow as pa
import pytest

from hpcvdj.chance.p_values import Estimate
from hpcvdj.chance.settings import ClonotypeChoice
from hpcvdj.enrichment.enrich import Enrichment, ReadOnce
from hpcvdj.enrichment.question import FAR_ABOVE, NO_SELECTION, EnrichmentQuestion, read_once_lines
from hpcvdj.enrichment.settings import EnrichmentSettings
from tests.enrichment.test_question import SETTINGS

ANSWER = Enrichment(
    pa.table({"v_call": ["TRBV9"] * 7}), 1234, 3, 2, 2.0, None, {}, {}, {"too rare": 0, "not of the model": 4},
    rows_read=5678, excluded=9, left_out={"junctions that another row has": 11, "fewer than 1 reads": 0},
    junctions=1300,
)  # fmt: skip


def lines_of(**changes):
    return EnrichmentQuestion(SETTINGS, ClonotypeChoice()).summary(replace(ANSWER, **changes))


def test_the_summary_of_a_table():
    rows = ("rows", "5,678 read, 9 excluded, 11 junctions that another row has")
    tested = ("clonotypes", "1,234, of which 7 have enough neighbours to be tested")
    hits = ("hits", f"3 with q <= {SETTINGS.max_q:g}, in 2 cluster(s)")
    left = ("", "4 more are not tested: not of the model")
    assert lines_of() == [rows, tested, left, ("kappa", "2.00"), hits]
    assert lines_of(kappa=None, not_tested={}) == [rows, tested, hits]
    known = ("not known", "for want of nucleotides: one thing, another")
    assert lines_of(not_available=("one thing", "another"))[3] == known
    once = ReadOnce(1000, 5)
    assert lines_of(read_once=once)[-2:] == [hits, ("", read_once_lines(replace(ANSWER, read_once=once))[0])]


@pytest.mark.parametrize(("not_available", "said"), [([], " rows, "), (["copies"], " rows of amino acids, ")])
def test_each_of_several_tables_says_if_it_has_amino_acids(not_available, said):
    line = EnrichmentQuestion(SETTINGS, ClonotypeChoice()).line(replace(ANSWER, not_available=not_available))
    assert line.startswith(f"{ANSWER.rows_read:,}{said}")


def test_what_is_said_of_kappa():
    estimate = Estimate(2.0, 1.25, 3.5)
    assert lines_of(estimate=estimate)[3] == ("kappa", "2.00 (95 % interval 1.25 to 3.50)")
    least = "2.00 at most; too few clonotypes have neighbours to say more"
    assert lines_of(estimate=replace(estimate, low=0.0))[3] == ("kappa", least)
    question = EnrichmentQuestion(SETTINGS, ClonotypeChoice())
    for low, said in ((1.25, "kappa 2.00, 3 hits"), (0.0, "kappa 2.00 at most, 3 hits")):
        assert said in question.line(replace(ANSWER, estimate=replace(estimate, low=low)))
    lengths = {12: 2.0, 13: FAR_ABOVE * 2.0}
    by_length = f"2.00; by residues of the junction 12: 2.00, 13: {FAR_ABOVE * 2.0:.2f}"
    assert lines_of(by_length=lengths)[3:-1] == [("kappa", by_length)]
    assert lines_of(by_length={**lengths, 14: FAR_ABOVE * 2.0 + 0.1, 15: FAR_ABOVE * 9.0})[4:-1] == [
        (
            "",
            f"that of 14, 15 residues is more than {FAR_ABOVE} times as large, which selection hardly explains: it may "
            "be of misread sequences (min_reads=2), or of true clusters, some of which it hides",
        )
    ]


def test_a_kappa_that_selection_does_not_make_is_a_warning():
    of_sample = EnrichmentQuestion(EnrichmentSettings(), ClonotypeChoice())
    answer = Enrichment(pa.table({}), 9, 0, 0, kappa=4_613.76)
    (line,) = of_sample.warnings(answer)
    assert line.startswith("kappa is 4,614: selection does not make neighbours so common; families of mutated B cells")
    for kappa in (None, 2.0, NO_SELECTION):
        assert not of_sample.warnings(replace(answer, kappa=kappa))
    assert not EnrichmentQuestion(SETTINGS, ClonotypeChoice()).warnings(answer), "it is given"
    # If no clonotype has a neighbour, it is only a bound.
    assert not of_sample.warnings(replace(answer, estimate=Estimate(4_613.76, 0.0, 4_613.76)))
    assert of_sample.warnings(replace(answer, estimate=Estimate(4_613.76, 2_000.0, 9_000.0)))
