"""`hpcvdj pgen` and `hpcvdj.pgen`: every row has the value of the definition, however the work is cut."""

import json
import math
import re

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.results.outputs import TableOutput
from hpcvdj.results.reader import Result
from hpcvdj.runs.folder import RunFolder
from tests.cli.pgen_tables import (
    DIVISIONS,
    ROWS,
    computed,
    frame_of,
    makers_of,
    require_same_after_a_stop,
    require_same_on_ranks,
    require_same_together,
    written,
)
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, SMALL
from tests.recombination.definition import pgen as defined
from tests.recombination.igor_files import mouse_files, mouse_junctions


@pytest.fixture(scope="module")
def table(tmp_path_factory, model):
    """Junctions of the model's genes, some of them changed, out of frame, of other genes or not readable."""
    loaded = hpcvdj.load_model(model)
    frame = frame_of(mouse_junctions(loaded, ROWS))
    frame.loc[3, "v_call"], frame.loc[5, "junction"] = "TRBV99*01", "TGTNNN"
    frame.loc[7, ["v_call", "j_call"]] = ",".join(t.allele for t in loaded.v[:2]), loaded.j[0].allele
    return written(frame, tmp_path_factory.mktemp("table"))


@pytest.fixture(scope="module")
def expected(model, table):
    """The definition's value of each row; NaN for a row that has none."""
    loaded, frame = hpcvdj.load_model(model), pd.read_csv(table, sep="\t")
    values = []
    for row in frame.itertuples():
        sets = [[k for name in call.split(",") for k in loaded.find(segment, name) or ()]
                for segment, call in (("V", row.v_call), ("J", row.j_call))]  # fmt: skip
        known = all(sets) and set(row.junction) <= set("ACGT")
        values.append(defined(loaded, row.junction, *sets) if known else np.nan)
    return np.array(values)


def test_a_table_with_probabilities(tmp_path, model, table, expected):
    out, err = hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "o.tsv", "--mismatches", 1)
    assert f"{ROWS} read = {ROWS - 2} counted + 2 excluded" in out
    assert "V gene TRBV99*01 is not in the model" in err
    frame = computed(tmp_path / "o.tsv")
    assert frame["sequence_id"].tolist() == [f"s{k}" for k in range(ROWS)]
    # At most 20 roundings of sums of positive numbers lie between the two orders of addition.
    np.testing.assert_allclose(frame["pgen_nt"], expected, rtol=1e-13)
    assert (frame["pgen_nt"] == 0).sum() == (expected == 0).sum()
    in_frame = frame["junction"].str.len() % 3 == 0
    assert frame["pgen_aa"].notna().tolist() == (in_frame & frame["pgen_nt"].notna()).tolist()
    some = frame[frame["pgen_aa"].notna()]
    assert (some["pgen_aa"] >= some["pgen_nt"]).all()
    assert (some["pgen_aa_1mm"] >= some["pgen_aa"]).all()
    positive = (frame["pgen_nt"] > 0).sum()
    assert f"pgen_nt    {positive} of {ROWS - 2} junctions have a probability above 0" in out
    assert (frame["pgen_excluded"] != "").sum() == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.tsv", "o.tsv.json"]


def test_every_kind_of_output_has_the_same_values(tmp_path, model, table):
    for name in ("o.tsv", "o.tsv.gz", "o.parquet", "o.h5"):
        hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / name)
    frame = computed(tmp_path / "o.tsv")
    pd.testing.assert_frame_equal(computed(tmp_path / "o.tsv.gz"), frame)
    parquet = pq.read_table(tmp_path / "o.parquet").to_pandas()
    for name in ("pgen_nt", "pgen_aa"):
        assert np.array_equal(parquet[name], frame[name], equal_nan=True)
    with Result(tmp_path / "o.h5") as result:
        values = np.full((ROWS, 2), np.nan)
        values[result.row] = result.to_numpy()
        assert np.array_equal(values, frame[["pgen_nt", "pgen_aa"]], equal_nan=True)
        facts = result.provenance
        assert facts["model_sha256"] == hpcvdj.load_model(model).digest
        assert json.loads(facts["config"])["genes"] == "call"
        # As for pathways, the column has no anchor codons.
        junctions = frame["junction"].tolist()
        assert result.all().texts("cdr3") == [junctions[row][3:-3] for row in result.row]
    hpcvdj_command("export", tmp_path / "o.h5", "-o", tmp_path / "e.tsv")
    pd.testing.assert_frame_equal(computed(tmp_path / "e.tsv"), frame)


def test_columns_that_are_asked_for(tmp_path, model, table):
    both = hpcvdj.pgen(computed(table), model, mismatches=1)
    for options, names in (
        (["--sequence", "nt"], ["pgen_nt"]),
        (["--sequence", "aa"], ["pgen_aa"]),
        (["--sequence", "aa", "--mismatches", 1], ["pgen_aa", "pgen_aa_1mm"]),
    ):
        hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "o.tsv", "--overwrite", *options)
        frame = computed(tmp_path / "o.tsv")
        assert list(frame)[4:] == [*names, "pgen_excluded"]
        assert np.array_equal(frame[names], both[names], equal_nan=True)


def test_any_genes(tmp_path, model, table):
    """Calls are then not read: the sum over all pairs of alleles."""
    loaded, frame = hpcvdj.load_model(model), computed(table)
    values = hpcvdj.pgen(frame[["junction"]], model, genes="any", sequence="nt")["pgen_nt"]
    for row in range(0, ROWS, 9):
        assert values[row] == pytest.approx(defined(loaded, frame["junction"][row]), rel=1e-13)
    assert values.isna().tolist() == [row == 5 for row in range(ROWS)]
    listed = hpcvdj.pgen(frame["junction"].tolist(), loaded, genes="any", sequence="nt")
    assert hpcvdj.pgen(frame["junction"], loaded, genes="any", sequence="nt").equals(listed)
    with pytest.raises(InputError, match='give genes="any"'):
        hpcvdj.pgen(frame["junction"], loaded)
    assert listed["pgen_nt"].to_pandas().equals(values)


MISMATCHES = "--mismatches", 1


@pytest.fixture(scope="module")
def whole(table, model, tmp_path_factory):
    """The table with its values, of one rank and one slice."""
    target = tmp_path_factory.mktemp("whole") / "whole.tsv"
    hpcvdj_command("pgen", table, "-m", model, "-o", target, *MISMATCHES)
    return target


@pytest.mark.slow
@pytest.mark.parametrize("division", DIVISIONS)
def test_ranks_and_slices(tmp_path, model, table, whole, division, on_ranks):
    require_same_on_ranks(on_ranks, table, whole, tmp_path, division, "-m", model, *MISMATCHES)


def test_slices_and_tables_together(tmp_path, model, table, whole):
    target = tmp_path / "slices.tsv"
    hpcvdj_command("pgen", table, "--batch-rows", 7, "-m", model, *MISMATCHES, "-o", target)
    assert target.read_bytes() == whole.read_bytes()
    assert makers_of(target) == makers_of(whole)
    require_same_together(table, whole, tmp_path, "-m", model, *MISMATCHES)


def test_a_stopped_run_goes_on(tmp_path, model, table, whole):
    require_same_after_a_stop(table, whole, tmp_path, "-m", model, *MISMATCHES)


@pytest.mark.slow
def test_a_complete_table_is_not_made_again(tmp_path, model, table):
    target, facts = tmp_path / "o.tsv", tmp_path / "o.tsv.json"
    words = ["pgen", table, "-m", model, "-o", target]
    hpcvdj_command(*words)
    content, state = target.read_bytes(), (target.stat().st_ino, target.stat().st_mtime_ns)
    _, err = hpcvdj_command(*words, "--resume")
    assert "o.tsv: is complete already; there is nothing to resume" in err
    assert (target.stat().st_ino, target.stat().st_mtime_ns) == state
    _, err = hpcvdj_command(*words, "--normalize", "productive", "--resume", code=2)
    assert "o.tsv: is of another run (normalize was none, is productive)" in error_line(err)
    # A run that was killed after the table was written left the folder of its parts.
    RunFolder(tmp_path / "o.tsv.parts", json.loads(facts.read_text())["identity"]).open(
        {}, resume=False, overwrite=False
    )
    hpcvdj_command(*words, "--resume")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.tsv", "o.tsv.json"]
    target.unlink()
    hpcvdj_command(*words, "--resume")
    assert target.read_bytes() == content
    target.write_bytes(content[:-1])
    _, err = hpcvdj_command(*words, "--resume", code=2)
    assert "is not the table that o.tsv.json describes" in error_line(err)
    facts.unlink()
    _, err = hpcvdj_command(*words, "--resume", code=2)
    assert "o.tsv: exists already" in error_line(err)


def test_a_folder_of_the_user_is_not_removed(tmp_path, model, table):
    """One that is called like the parts of the table."""
    (tmp_path / "o.tsv.parts").mkdir()
    (tmp_path / "o.tsv.parts" / "mine").write_text("mine")
    for options in ([], ["--overwrite"], ["--resume"]):
        _, err = hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "o.tsv", *options, code=2)
        assert "o.tsv.parts: is not the folder of a run" in error_line(err)
    assert [path.name for path in tmp_path.iterdir()] == ["o.tsv.parts"]
    assert (tmp_path / "o.tsv.parts" / "mine").read_text() == "mine"


@pytest.mark.parametrize("names", ['["pgen_nt"]', '["pgen_aa", "pgen_nt"]', "[1, 2]", "3"])
def test_columns_that_a_result_cannot_have(tmp_path, model, table, names):
    hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "o.h5")
    with h5py.File(tmp_path / "o.h5", "r+") as file:
        file.attrs["columns"] = names
    _, err = hpcvdj_command("export", tmp_path / "o.h5", "-o", tmp_path / "o.tsv", code=2)
    assert "o.h5: is damaged" in error_line(err)


@pytest.mark.parametrize("name", ["o.tsv", "o.h5"])
def test_an_output_that_exists_is_refused_before_the_model_is_compared(tmp_path, model, name):
    rows = [(v, j, f"TGT{'A' * k}TTT") for k, (v, j, _) in enumerate(mouse_junctions(hpcvdj.load_model(model), 120))]
    wrong, output = written(frame_of(rows), tmp_path), tmp_path / name
    _, err = hpcvdj_command("pgen", wrong, "-m", model, "-o", output, code=2)
    assert "cannot make" in error_line(err)
    output.write_text("mine")
    _, err = hpcvdj_command("pgen", wrong, "-m", model, "-o", output, code=2)
    assert "exists already" in error_line(err)
    assert output.read_text() == "mine"


@pytest.mark.parametrize("how", [["--method", "bitwise", "--max-n", 1], ["--max-n", "all"]])
def test_a_table_that_is_computed_at_once(tmp_path, how, monkeypatch):
    """It is what a result has; and a run that is stopped before its table is written goes on."""
    (tmp_path / "result").mkdir()
    words = ["count", SMALL, "-g", GERMLINE, *how, "-o"]
    hpcvdj_command(*words, tmp_path / "result" / "o.h5")
    hpcvdj_command("export", tmp_path / "result" / "o.h5", "-o", tmp_path / "result" / "o.tsv")
    content = (tmp_path / "result" / "o.tsv").read_bytes()

    def stopped(self, *arguments, **options):
        self.run.request.name = "SIGTERM"
        self.run.raise_if_stopping()

    with monkeypatch.context() as patch:
        patch.setattr(TableOutput, "write", stopped)
        _, err = hpcvdj_command(*words, tmp_path / "o.tsv", code=75)
    assert "SIGTERM: stopped while" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.tsv.parts", "result"]
    assert "has the work of an unfinished run" in hpcvdj_command(*words, tmp_path / "o.tsv", code=2)[1]
    hpcvdj_command(*words, tmp_path / "o.tsv", "--resume")
    assert (tmp_path / "o.tsv").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.tsv", "o.tsv.json", "result"]
    hpcvdj_command(*words, tmp_path / "o.tsv", "--overwrite")
    assert (tmp_path / "o.tsv").read_bytes() == content


def test_results_of_another_model_are_not_continued(tmp_path, model, table):
    other = mouse_files(seed=2).write(tmp_path / "other")
    hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "o.h5")
    _, err = hpcvdj_command("pgen", table, "-m", other, "-o", tmp_path / "o.h5", "--resume", code=2)
    assert "model_sha256" in error_line(err)


def test_wrong_usage(tmp_path, model, table):
    target = tmp_path / "o.tsv"
    for arguments, message in (
        (["pgen", table, "-m", "klingon_trb", "-o", target], "no model of that name; there are human_tra"),
        (["pgen", table, "-m", GERMLINE, "-o", target], "no folder of a model"),
        (["pgen", tmp_path / "no.tsv", "-m", model, "-o", target], "no.tsv"),
        (["pgen", SMALL, "-m", model, "-o", target, "--strict"], "is not in the model"),
        (["pgen", table, "-m", model, "-o", table], "is an input of this run"),
    ):
        _, err = hpcvdj_command(*arguments, code=2)
        assert message in error_line(err), arguments
    assert not target.exists()


def test_among_productive_recombinations(tmp_path, model, table):
    """Divided by P(productive); other junctions are excluded, with their reason and what keeps them."""
    hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "all.tsv")
    _, err = hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "p.tsv", "--normalize", "productive")
    of_all, frame = computed(tmp_path / "all.tsv"), computed(tmp_path / "p.tsv")
    residues = [hpcvdj_translated(text) for text in frame["junction"]]
    productive = np.array([re.fullmatch("C[^*]*[FVW]", text) is not None for text in residues])
    counted = productive & of_all["pgen_nt"].notna()
    assert 0 < counted.sum() < of_all["pgen_nt"].notna().sum()
    assert frame["pgen_nt"].notna().tolist() == counted.tolist()
    chance = productive_probability(hpcvdj.load_model(model))
    for name in ("pgen_nt", "pgen_aa"):
        np.testing.assert_allclose(frame[name][counted], of_all[name][counted] / chance, rtol=1e-13)
    assert "junction is not productive" in err
    assert "--normalize none keeps them" in err
    from_python = hpcvdj.pgen(pd.read_csv(table, sep="\t"), model, normalize="productive")
    assert from_python["pgen_nt"].tolist() == pytest.approx(frame["pgen_nt"].tolist(), rel=0, nan_ok=True)


@pytest.mark.slow
def test_who_makes_the_junctions(tmp_path, model, table, whole):
    """Of productive junctions, by their probabilities among these; in every output, and however it is normalized."""
    frame, chance = computed(whole), productive_probability(hpcvdj.load_model(model))
    residues = [hpcvdj_translated(text) for text in frame["junction"]]
    productive = np.array([re.fullmatch("C[^*]*[FVW]", text) is not None for text in residues])
    own = frame[productive & frame["pgen_nt"].notna()]
    anyone, hardly = {}, {}
    for name in ("pgen_nt", "pgen_aa"):
        shares = [1 - math.exp(-len(own) * p / chance) for p in own[name]]
        anyone[name] = sum(share >= 0.5 for share in shares)
        hardly[name] = sum(share < 1e-6 for share in shares)
    expected = {"recombinations": len(own), "anyone": anyone, "hardly_anybody": hardly}
    assert 0 < hardly["pgen_aa"] <= hardly["pgen_nt"] < len(own) < ROWS
    assert makers_of(whole) == expected
    out, _ = hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "p.tsv", "--normalize", "productive")
    assert makers_of(tmp_path / "p.tsv") == expected
    assert f"anyone     pgen_nt {anyone['pgen_nt']}, pgen_aa {anyone['pgen_aa']} of {len(own)} productive" in out
    assert f"hardly     pgen_nt {hardly['pgen_nt']}, pgen_aa {hardly['pgen_aa']}: fewer than one in a million" in out
    for rows in ((), ("--batch-rows", 7)):
        hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "o.h5", "--overwrite", *rows)
        with Result(tmp_path / "o.h5") as result:
            assert json.loads(result.provenance["makers"]) == expected
    hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "aa.tsv", "--sequence", "aa")
    assert makers_of(tmp_path / "aa.tsv")["hardly_anybody"] == {"pgen_aa": hardly["pgen_aa"]}
    given = pd.read_csv(table, sep="\t")
    assert hpcvdj.pgen(given, model).attrs["hpcvdj"]["makers"] == expected
    arrow = hpcvdj.pgen(pa.Table.from_pandas(given), model)
    assert json.loads(arrow.schema.metadata[b"hpcvdj"])["makers"] == expected
    assert b"pandas" in arrow.schema.metadata
    for rows in ([0, 1, 2], []):
        alone = given.iloc[rows].assign(junction_aa=[residues[row] for row in rows]).drop(columns="junction")
        values = hpcvdj.pgen(alone, model, sequence_field="junction_aa")
        assert values.attrs["hpcvdj"]["makers"]["recombinations"] == productive[rows].sum()


def test_who_makes_the_junctions_of_several_tables(tmp_path, model, table, whole):
    """Each table is judged by its own number of junctions, and the summary adds them up."""
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.tsv").write_bytes(table.read_bytes())
    out, _ = hpcvdj_command("pgen", tmp_path / "in", "-m", model, "-o", tmp_path / "out")
    own = makers_of(whole)
    assert f"of {2 * own['recombinations']} productive junctions" in out
    assert f"hardly     pgen_nt {2 * own['hardly_anybody']['pgen_nt']}, " in out


def hpcvdj_translated(junction):
    (residues,) = translate([junction]) if len(junction) % 3 == 0 and set(junction) <= set("ACGT") else ("",)
    return residues


def test_what_cannot_be_normalized_or_is_not_in_the_model(tmp_path, model, table):
    refused = {
        ("--normalize", "productive", "--mismatches", 1): "adds up sequences that are not productive",
        ("--joint",): "has no P(V, D, J), only P(V) and P(D, J); leave out --joint",
    }
    for options, message in refused.items():
        _, err = hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "o.tsv", *options, code=2)
        assert message in error_line(err)
    assert not list(tmp_path.iterdir())


def test_alleles_that_the_model_lacks(tmp_path, model):
    """The option that keeps them was not named, and could not be recorded."""
    rows = mouse_junctions(hpcvdj.load_model(model), 2)
    path = written(frame_of([(f"{rows[0][0].partition('*')[0]}*99", *rows[0][1:]), rows[1]]), tmp_path)
    for name in ("o.tsv", "o.h5"):
        hpcvdj_command("pgen", path, "-m", model, "-o", tmp_path / name, "--missing-alleles", "gene")
    assert computed(tmp_path / "o.tsv")["pgen_nt"].notna().all()
    _, err = hpcvdj_command("pgen", path, "-m", model, "-o", tmp_path / "p.tsv")
    assert "1  V allele" in err
    assert "--missing-alleles gene keeps them, in commands that have it" in err
    with Result(tmp_path / "o.h5") as result:
        assert json.loads(result.provenance["identity"])["missing_alleles"] == "gene"


def test_runs_with_other_normalization_are_other_runs(tmp_path, model, table):
    hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "o.h5")
    with Result(tmp_path / "o.h5") as result:
        recorded = json.loads(result.provenance["identity"])
    assert (recorded["normalize"], recorded["joint"]) == ("none", False)


@pytest.mark.parametrize("letters", [1, 2, 5])
def test_junctions_that_are_shorter_than_their_anchors(model, tmp_path, letters):
    """Columns of texts were as wide as the longest junction: with one base, writing never ended."""
    table = written(frame_of([("TRBV1", "TRBJ1-1", "TGTGC"[:letters])] * 3), tmp_path)
    hpcvdj_command("pgen", table, "-m", model, "--genes", "any", "-o", tmp_path / "o.h5")
    with Result(tmp_path / "o.h5") as result:
        own = result.to_table()
    assert own["cdr3"].to_pylist() == [""] * 3
    assert own["anchors"].to_pylist() == ["TGTGC"[:letters]] * 3
