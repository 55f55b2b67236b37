"""hpcvdj.counting.doubt: what is said of a germline table of another species or locus, and when nothing is."""

import pytest

from hpcvdj.counting.doubt import doubt
from hpcvdj.recombination.germline import read_germline
from tests.cli.test_commands import hpcvdj_command
from tests.conftest import GERMLINE, SMALL

FOLDER = GERMLINE.parent
MOUSE = FOLDER / "mouse_trb.tsv"


def gene(name, kind="V"):
    return f"{kind} gene {name} is not in the germline table"


def asked(excluded, rows, counted, reached=None, max_n=10):
    return doubt(excluded, rows, counted, counted if reached is None else reached, max_n, read_germline(MOUSE))


def test_the_table_that_lists_the_calls_is_named():
    said = asked([(gene("TRBV7-9"), 6), (gene("TRBV20-1"), 1), (gene("TRBV99"), 0)], 10, 3)
    assert said == (
        f"7 of 10 rows have a V or J call that {MOUSE} does not list, and {FOLDER / 'human_trb.tsv'} lists that of 7: "
        "are they of another species or locus?"
    )
    assert str(FOLDER / "mouse_tra.tsv") in asked([(gene("TRAV7-2"), 9), (gene("TRAJ9", "J"), 1)], 10, 0)
    allele = "V allele TRBV7-9*01 is not in the germline table, other alleles of TRBV7-9 are"
    assert "human_trb.tsv" in asked([(allele, 10)], 10, 0)


def test_an_allele_that_neither_table_lists_speaks_for_neither():
    allele = "V allele TRBV19*99 is not in the germline table, other alleles of TRBV19 are"
    assert "human_trb.tsv lists that of 6" in asked([(gene("TRBV7-9"), 6), (allele, 4)], 10, 0)
    assert "human_trb.tsv" not in asked([(gene("TRBV7-9"), 4), (allele, 6)], 10, 0)
    foreign = "V allele TRBV7-9*99 is not in the germline table, other alleles of TRBV7-9 are"
    assert "human_trb.tsv lists that of 10" in asked([(foreign, 10)], 10, 0)


def test_no_table_is_named_that_does_not_list_them():
    assert asked([(gene("TRBV99"), 9)], 10, 1).endswith("does not list: are they of another species or locus?")
    assert asked([(gene("TRBV99"), 6), (gene("TRBV7-9"), 1)], 10, 3) is None


def test_nothing_is_said_of_what_is_usual():
    assert asked([], 10, 10) is None
    assert asked([(gene("TRBV7-9"), 4)], 10, 6) is None
    assert asked([("ambiguous V call TRBV1,TRBV2", 10)], 10, 0) is None
    assert asked([], 10, 10, reached=1, max_n=10) is None


@pytest.mark.parametrize(("max_n", "says"), [(10, True), (7, False)])
def test_junctions_that_no_segment_fits(max_n, says):
    said = asked([], 100, 100, reached=9, max_n=max_n)
    assert (said is not None) == says
    assert not says or said.startswith("only 9 of 100 junctions have a pathway: ")


def test_the_command_warns_and_goes_on(tmp_path):
    _, err = hpcvdj_command("-q", "count", SMALL, "-g", FOLDER / "human_trb.tsv", "-o", tmp_path / "o.h5")
    assert f"{FOLDER / 'mouse_trb.tsv'} lists that of" in err
    assert (tmp_path / "o.h5").exists()
    _, err = hpcvdj_command("-q", "count", SMALL, "-g", GERMLINE, "-o", tmp_path / "p.h5")
    assert "species" not in err
