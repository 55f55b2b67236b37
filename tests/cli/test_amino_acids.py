"""`hpcvdj pgen` and `hpcvdj.pgen` of tables that have amino acids only."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.symbols import Alphabet
from hpcvdj.results.reader import Result
from tests.cli.pgen_tables import (
    ROWS,
    computed,
    frame_of,
    require_same_after_a_stop,
    require_same_on_ranks,
    require_same_together,
    written,
)
from tests.commands import error_line, hpcvdj_command
from tests.recombination.igor_files import mouse_junctions

EXCLUDED = {
    3: "V gene TRBV99*01 is not in the model",
    5: "junction_aa has a stop (*)",
    9: "junction_aa contains '_', as of a junction that is out of frame",
    11: "no junction_aa",
    13: "junction_aa of 65 amino acids is longer than 64",
    16: "sequence_id repeats that of data row 16",
}
"""Why rows of `table` have no value."""


@pytest.fixture(scope="module")
def nucleotides(model):
    """Junctions in frame and without stops, of the model's genes."""
    rows = [row for row in mouse_junctions(hpcvdj.load_model(model), 8 * ROWS) if len(row[2]) % 3 == 0]
    kept = [row for row in rows if "*" not in translate([row[2]])[0]][:ROWS]
    assert len(kept) == ROWS
    return frame_of(kept)


@pytest.fixture(scope="module")
def ambiguous_rows(nucleotides, model):
    """Rows of `table` with ambiguous symbols; without these, their probability is above 0."""
    values = hpcvdj.pgen(nucleotides, model, sequence="aa")["pgen_aa"]
    return [row for row in range(max(EXCLUDED) + 1, ROWS) if values[row] > 0][:4]


@pytest.fixture(scope="module")
def table(nucleotides, ambiguous_rows, tmp_path_factory):
    """Their amino acids; some ambiguous, some that cannot be."""
    frame = nucleotides.assign(junction_aa=translate(nucleotides["junction"])).drop(columns="junction")
    for row, letters, place in zip(ambiguous_rows, ["X", "XX", "BJZX", "X"], [3, 2, 1, 0], strict=True):
        text = frame.loc[row, "junction_aa"]
        frame.loc[row, "junction_aa"] = text[:place] + letters + text[place + len(letters) :]
    frame.loc[3, "v_call"], frame.loc[5, "junction_aa"], frame.loc[9, "junction_aa"] = "TRBV99*01", "CAS*F", "CA_F"
    frame.loc[11, "junction_aa"], frame.loc[13, "junction_aa"], frame.loc[16, "sequence_id"] = "", "C" * 65, "s15"
    return written(frame, tmp_path_factory.mktemp("table"))


@pytest.fixture(scope="module")
def whole(table, model, tmp_path_factory):
    """The table with its values, and what was printed."""
    target = tmp_path_factory.mktemp("whole") / "o.tsv"
    out, err = hpcvdj_command("pgen", table, "-m", model, "-o", target, "--mismatches", 1)
    return target, out, err


def test_every_row_has_its_value_or_its_reason(whole, nucleotides, ambiguous_rows, model):
    """The values are, to the bit, those of nucleotides that they translate."""
    path, out, err = whole
    frame = computed(path)
    assert list(frame)[-3:] == ["pgen_aa", "pgen_aa_1mm", "pgen_excluded"]
    assert {row: text for row, text in enumerate(frame["pgen_excluded"]) if text} == EXCLUDED
    assert f"{ROWS} read = {ROWS - 6} counted + 6 excluded" in out
    assert f"pgen_aa    {(frame['pgen_aa'] > 0).sum()} of {ROWS - 6} junctions have a probability above 0" in out
    assert all(message in err for message in EXCLUDED.values())
    known = hpcvdj.pgen(nucleotides, model, sequence="aa", mismatches=1)
    same = [row for row in range(ROWS) if row not in {*EXCLUDED, *ambiguous_rows}]
    names = ["pgen_aa", "pgen_aa_1mm"]
    assert np.array_equal(frame.loc[same, names].astype(float), known.loc[same, names])
    others = frame.loc[ambiguous_rows, names].astype(float)
    assert (others["pgen_aa"] > 0).tolist() == [True, True, False, True]
    assert (others["pgen_aa"] >= known.loc[ambiguous_rows, "pgen_aa"]).tolist() == [True, True, False, True]
    assert (others["pgen_aa_1mm"] >= others["pgen_aa"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("division", [(3, None), pytest.param((5, 11), marks=pytest.mark.exhaustive)])
def test_ranks_and_slices(tmp_path, model, table, whole, division, on_ranks):
    require_same_on_ranks(on_ranks, table, whole[0], tmp_path, division, "-m", model, "--mismatches", 1)


@pytest.mark.slow
def test_tables_together(tmp_path, model, table, whole):
    require_same_together(table, whole[0], tmp_path, "-m", model, "--mismatches", 1)


def test_any_genes(tmp_path, model, table):
    hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "o.tsv", "--genes", "any")
    frame = computed(tmp_path / "o.tsv")
    texts = frame["junction_aa"].tolist()
    listed = hpcvdj.pgen(texts, model, genes="any", sequence_field="junction_aa")
    # There are no ids in a list, and no calls.
    rows = [row for row in range(ROWS) if row != 16]
    assert np.array_equal(frame["pgen_aa"][rows], np.array(listed["pgen_aa"], dtype=float)[rows], equal_nan=True)
    assert (frame["pgen_aa"] > 0).sum() > 5
    assert listed.column_names == ["junction_aa", "pgen_aa", "pgen_excluded"]


def test_a_result_and_what_it_records(tmp_path, model, table, whole):
    (tmp_path / "a.txt").write_text("x: A, TGT\nB: C\n")
    hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "o.h5", "--alphabet", tmp_path / "a.txt")
    with Result(tmp_path / "o.h5") as result:
        texts = computed(table)["junction_aa"]
        assert result.all().texts("cdr3") == [texts[row][1:-1] for row in result.row]
        assert result.provenance["sequence_field"] == "junction_aa"
        config = json.loads(result.provenance["config"])
        assert config["alphabet"] == Alphabet.of({"x": ["A", "TGT"], "B": ["C"]}).definitions()
        joined = result.join(pd.read_csv(table, sep="\t"), on="row")
        assert joined["pgen_aa"].notna().sum() == len(result) == ROWS - 6
    (tmp_path / "a.txt").write_text("x: A\n")
    words = "pgen", table, "-m", model, "-o", tmp_path / "o.h5", "--resume"
    for more in ([], ["--alphabet", tmp_path / "a.txt"]):
        _, err = hpcvdj_command(*words, *more, code=2)
        assert "alphabet" in error_line(err)


def test_a_stopped_run_goes_on(tmp_path, model, table, whole):
    require_same_after_a_stop(table, whole[0], tmp_path, "-m", model, "--mismatches", 1)


def test_a_custom_alphabet(tmp_path, model, nucleotides, ambiguous_rows):
    """The sum over what its symbols mean; an amino acid by its codons has the same value but for rounding."""
    path = tmp_path / "a.txt"
    path.write_text("x: A, S\n%: GCA, GCC, GCG, GCT\n$: x, T\n")
    (text,) = translate([nucleotides["junction"][ambiguous_rows[0]]])
    place = len(text) // 2
    texts = [text[:place] + letter + text[place + 1 :] for letter in "ASTx%$"]
    values = hpcvdj.pgen(texts, model, genes="any", sequence_field="junction_aa", alphabet=path, mismatches=1)
    a, s, t, x, codons, all_three = values["pgen_aa"].to_pylist()
    assert min(a, s, t) > 0
    assert [x, codons, all_three] == pytest.approx([a + s, a, a + s + t], rel=1e-13)
    as_dict = {"x": ["A", "S"], "%": ["GCA", "GCC", "gcg", "GCT"], "$": "xT"}
    again = hpcvdj.pgen(texts, model, genes="any", sequence_field="junction_aa", alphabet=as_dict, mismatches=1)
    assert again.equals(values)


def test_which_column_is_read(tmp_path, model, nucleotides):
    both = nucleotides.assign(junction_aa="CXXXF")
    known = hpcvdj.pgen(both, model)
    assert (known["pgen_nt"] > 0).any()
    amino_acids = hpcvdj.pgen(both, model, sequence_field="junction_aa")
    assert list(amino_acids)[-2:] == ["pgen_aa", "pgen_excluded"]
    pd.testing.assert_frame_equal(
        hpcvdj.pgen(both.drop(columns="junction"), model)[["pgen_aa"]], amino_acids[["pgen_aa"]]
    )
    both.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    hpcvdj_command("pgen", tmp_path / "t.tsv", "-m", model, "-o", tmp_path / "o.tsv", "--sequence-field", "junction_aa")
    assert np.array_equal(computed(tmp_path / "o.tsv")["pgen_aa"], amino_acids["pgen_aa"])


def test_wrong_usage(tmp_path, model, table, nucleotides):
    target, alphabet, both = tmp_path / "o.tsv", tmp_path / "a.txt", tmp_path / "both.tsv"
    nucleotides.assign(junction_aa="CF").to_csv(both, sep="\t", index=False)
    (tmp_path / "n.tsv").write_text("sequence_id\tv_call\tj_call\tjunction\na\tV\tJ\tTGT\n")
    for text, arguments, message in (
        ("x: A", [both, "--alphabet", alphabet], "choose --sequence-field junction_aa, or leave --alphabet out"),
        ("x: A", [table, "--alphabet", tmp_path / "no.txt"], "no.txt: no such alphabet file"),
        ("x: A\nx: C", [table, "--alphabet", alphabet], "a.txt, line 2: symbol 'x' is defined twice"),
        ("x: A", [table, "--alphabet", alphabet, "--sequence", "nt"], "sequence nt: amino acids (junction_aa) are"),
        ("x: A", [table, "--sequence", "both"], "sequence both: amino acids (junction_aa) are read"),
        ("X: A", [table, "--alphabet", alphabet, "--mismatches", 1], "the alphabet defines X"),
        ("x: *", [table, "--alphabet", alphabet, "--mismatches", 1], "symbol 'x' of the alphabet has a stop codon"),
        ("x: A", [table, "--sequence-field", "junction"], "no column junction"),
        ("x: A", [table, tmp_path / "n.tsv", "--together"], "n.tsv, line 1: no column junction_aa"),
        ("x: A", [table, "--strict"], "data row 4 (s3): V gene TRBV99*01"),
    ):
        alphabet.write_text(text)
        _, err = hpcvdj_command("pgen", *arguments, "-m", model, "-o", target, code=2)
        assert message in error_line(err), arguments
    _, err = hpcvdj_command("pgen", table, "-m", model, "-o", alphabet, "--alphabet", alphabet, code=2)
    assert "is an input of this run" in error_line(err)
    assert alphabet.read_text() == "x: A"
    assert not target.exists()
    with pytest.raises(hpcvdj.InputError, match="sequence='nt'"):
        hpcvdj.pgen(pa.table({"junction_aa": ["CF"]}), model, genes="any", sequence="nt")
