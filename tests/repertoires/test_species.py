"""hpcvdj.repertoires.species: when a germline table of another species or locus is suspected, and when not."""

from types import SimpleNamespace

from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.germline import read_germline
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.species import species_warning
from tests.commands import hpcvdj_command
from tests.conftest import GERMLINE, SMALL
from tests.recombination.igor_files import mouse_files, vj_files

FOLDER = GERMLINE.parent
MOUSE = FOLDER / "mouse_trb.tsv"


def gene(name, segment="V"):
    return Exclusion.of(ExclusionKind.UNLISTED_GENE, segment=segment, gene=name)


def allele(name, segment="V"):
    return Exclusion.of(ExclusionKind.UNLISTED_ALLELE, segment=segment, allele=name, gene=name.partition("*")[0])


def warning(excluded, rows, counted, reached=None, max_n=10):
    found = SimpleNamespace(
        excluded=excluded, rows_read=rows, counted=counted, nonzero=counted if reached is None else reached,
        max_n=max_n,
    )  # fmt: skip
    return species_warning(found, read_germline(MOUSE))


def test_the_table_that_lists_the_calls_is_named():
    text = warning([(gene("TRBV7-9"), 6), (gene("TRBV20-1"), 1), (gene("TRBV99"), 0)], 10, 3)
    assert text == (
        f"7 of 10 rows have a V or J call that {MOUSE} does not list, but {FOLDER / 'human_trb.tsv'} lists those of 7: "
        "are the rows of that species or locus?"
    )
    assert str(FOLDER / "mouse_tra.tsv") in warning([(gene("TRAV7-2"), 9), (gene("TRAJ9", "J"), 1)], 10, 0)
    assert "human_trb.tsv" in warning([(allele("TRBV7-9*01"), 10)], 10, 0)


def test_a_third_is_enough_if_another_table_lists_them():
    assert "human_trb.tsv lists those of 4" in warning([(gene("TRBV7-9"), 4)], 12, 8)


def test_an_allele_that_neither_table_lists_speaks_for_neither():
    unlisted = allele("TRBV19*99")
    assert "human_trb.tsv lists those of 6" in warning([(gene("TRBV7-9"), 6), (unlisted, 4)], 10, 0)
    assert "human_trb.tsv" not in warning([(gene("TRBV7-9"), 4), (unlisted, 6)], 10, 0)
    assert "human_trb.tsv lists those of 10" in warning([(allele("TRBV7-9*99"), 10)], 10, 0)


def test_no_table_is_named_that_does_not_list_them():
    assert warning([(gene("TRBV99"), 9)], 10, 1).endswith("does not list: are they of another species or locus?")
    assert warning([(gene("TRBV99"), 4), (gene("TRBV7-9"), 1)], 10, 5).endswith("of another species or locus?")


def test_no_warning_of_what_is_usual():
    assert warning([], 10, 10) is None
    assert warning([(gene("TRBV7-9"), 4)], 13, 9) is None
    assert warning([(gene("TRBV99"), 4)], 10, 6) is None
    ambiguous = Exclusion.of(ExclusionKind.AMBIGUOUS_CALL, segment="V", call="TRBV1,TRBV2")
    assert warning([(ambiguous, 10)], 10, 0) is None
    assert warning([], 10, 10, reached=1, max_n=10) is None


def test_junctions_that_no_segment_fits():
    text = warning([], 100, 100, reached=9, max_n=8)
    assert text.startswith("only 9 of 100 junctions have a pathway: ")
    assert warning([], 100, 100, reached=9, max_n=7) is None
    assert warning([], 100, 100, reached=10, max_n=8) is None


def test_the_command_warns_and_goes_on(tmp_path):
    _, err = hpcvdj_command("-q", "count", SMALL, "-g", FOLDER / "human_trb.tsv", "-o", tmp_path / "o.h5")
    assert f"{FOLDER / 'mouse_trb.tsv'} lists those of" in err
    assert (tmp_path / "o.h5").exists()
    _, err = hpcvdj_command("-q", "count", SMALL, "-g", GERMLINE, "-o", tmp_path / "p.h5")
    assert "species" not in err


def test_calls_of_exchanged_columns_are_said(tmp_path):
    text = warning([(gene("TRBJ1-1"), 3), (gene("TRBV1", "J"), 1)], 12, 8)
    assert text.startswith("4 of 12 rows have a J gene as v_call or a V gene as j_call")
    assert warning([(gene("TRBJ1-1"), 3)], 10, 7) is None
    path, drawn = tmp_path / "t.tsv", tmp_path / "drawn.tsv"
    hpcvdj_command("generate", "-m", "human_trb_m15", "-n", 100, "--productive", "-o", drawn)
    header, rows = drawn.read_text().split("\n", 1)
    path.write_text(header.replace("v_call", "V").replace("j_call", "v_call").replace("V", "j_call") + "\n" + rows)
    remedy = "--columns v_call=j_call,j_call=v_call"
    said = f"100 of 100 rows have a J gene as v_call or a V gene as j_call: {remedy} exchanges the columns"
    _, err = hpcvdj_command("pgen", path, "-m", "human_trb_m15", "-o", tmp_path / "p.tsv", code=2)
    assert f"{said}; --force goes on" in err
    assert said in hpcvdj_command("count", path, "-g", "human_trb", "-o", tmp_path / "c.tsv", code=2)[1]
    _, err = hpcvdj_command("pgen", path, "-m", "human_trb_m15", "-o", tmp_path / "o.tsv", *remedy.split())
    assert "gene as" not in err


def lacking(name, segment="V"):
    return Exclusion.of(ExclusionKind.NOT_IN_MODEL, segment=segment, name=name)


def test_a_model_of_another_species(tmp_path, monkeypatch):
    mouse = mouse_files().write(tmp_path / "mouse")
    monkeypatch.setattr("hpcvdj.repertoires.species.model_folders", lambda: {"mouse": mouse})
    known = load_model(mouse).v[0].allele
    model = load_model(vj_files().write(tmp_path / "other"))
    found = SimpleNamespace(excluded=[(lacking(known), 9)], rows_read=10, counted=1, nonzero=1)
    assert "but mouse lists those of 9" in species_warning(found, model)
    found.excluded = [(lacking("TRBV99"), 9)]
    assert species_warning(found, model).endswith("are they of another species or locus?")
    found.excluded = [(lacking("TRBV99"), 4)]
    assert species_warning(found, model) is None


def test_junctions_that_a_model_hardly_makes(tmp_path):
    model = load_model(vj_files().write(tmp_path / "m"))
    found = SimpleNamespace(excluded=[], rows_read=100, counted=100, nonzero=9)
    assert species_warning(found, model).startswith("only 9 of 100 junctions have a probability above 0: ")
    found.nonzero = 10
    assert species_warning(found, model) is None
