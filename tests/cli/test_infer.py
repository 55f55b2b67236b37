"""`hpcvdj infer`: the folder that it writes, the same for any ranks and threads, stopped, killed and resumed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import hpcvdj
from hpcvdj.inference.folder import ERRORS, FACTS, ITERATIONS, UNEXPLAINED
from hpcvdj.recombination.igor import FILES, load_model
from hpcvdj.recombination.possible import Possible
from hpcvdj.storage.folders import MARK
from tests.cli.test_mpiexec import MPIEXEC
from tests.cli.test_resume import end
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, TABLES
from tests.kernels.pgen.models import pgens
from tests.kernels.pgen.olga_peer import Olga
from tests.recombination.igor_files import mouse_files, mouse_junctions

ROWS = 900

FEW = ["--iterations", "4", "--tolerance", "0"]

EVERY_FILE = sorted([*FILES, FACTS, ITERATIONS, MARK])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return mouse_files().write(tmp_path_factory.mktemp("model") / "mouse")


@pytest.fixture(scope="module")
def table(tmp_path_factory, model):
    """Junctions of the model's genes, in and out of frame, some of which the model cannot make; one is not readable."""
    folder = tmp_path_factory.mktemp("table")
    made = folder / "made.tsv"
    hpcvdj_command("generate", "-m", model, "-n", ROWS - 100, "--seed", "1", "-o", made, "--backend", "cpu")
    columns = ["v_call", "j_call", "junction"]
    others = pd.DataFrame(mouse_junctions(load_model(model), 100), columns=columns)
    frame = pd.concat([pd.read_csv(made, sep="\t")[columns], others], ignore_index=True)
    frame.insert(0, "sequence_id", [f"s{k}" for k in range(ROWS)])
    # No scenario has so long an insertion: data rows 2 and 5, of which one is long.
    for row, text in ((1, "ACGT" * 20), (4, "CC")):
        frame.loc[row, "junction"] = text
    frame.loc[7, "junction"] = "TGTNNN"
    path = folder / "t.tsv"
    frame.to_csv(path, sep="\t", index=False)
    return path


def words(table, model, output, *options):
    own = ["infer", table, "-m", model, "-o", output, "--start", "uniform", "--backend", "cpu", *options]
    return list(map(str, own))


def files(folder, names=FILES):
    return {name: (folder / name).read_bytes() for name in names}


def test_a_run_from_a_model(tmp_path, table, model):
    out, err = hpcvdj_command(*words(table, model, tmp_path / "m", *FEW, "--bootstrap", "2"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m"]
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == sorted([*EVERY_FILE, ERRORS, UNEXPLAINED])
    assert f"{ROWS} read, 1 excluded" in out
    assert err.count("iteration ") == 4
    facts = json.loads((tmp_path / "m" / FACTS).read_text())
    assert facts["rows_read"] == ROWS
    assert facts["iterations"] == 4
    assert facts["model_sha256"] == load_model(tmp_path / "m").digest
    trace = pd.read_csv(tmp_path / "m" / ITERATIONS, sep="\t", float_precision="round_trip")
    assert trace["iteration"].tolist() == [1, 2, 3, 4]
    assert trace["log_likelihood"].is_monotonic_increasing
    assert trace["held_out"].max() == facts["held_out_log_likelihood_per_row"]
    taken = facts["rows_counted"] + facts["rows_held_out"]
    assert taken + sum(facts["rows_left_out"].values()) + sum(own[-1] for own in facts["rows_excluded"]) == ROWS
    errors = pd.read_csv(tmp_path / "m" / ERRORS, sep="\t", float_precision="round_trip")
    inferred = load_model(tmp_path / "m")
    of_v = errors[errors["event"] == "v_choice"].set_index("outcome")["probability"]
    assert of_v.to_dict() == {t.allele: p for t, p in zip(inferred.v, inferred.p_v, strict=True) if p}


def test_without_rows_that_are_held_out_the_facts_are_json(tmp_path, table, model):
    hpcvdj_command(*words(table, model, tmp_path / "m", "--hold-out", "0", "--iterations", "2"))
    facts = json.loads((tmp_path / "m" / FACTS).read_text(), parse_constant=pytest.fail)
    assert facts["held_out_log_likelihood_per_row"] is None
    assert [own["held_out"] for own in facts["first_and_last_evaluation"]] == [None, None]


def test_rows_with_probability_0_are_listed(tmp_path, table, model):
    out, _ = hpcvdj_command(*words(table, model, tmp_path / "m", *FEW))
    found = pd.read_csv(tmp_path / "m" / UNEXPLAINED, sep="\t")
    hpcvdj_command("pgen", table, "-m", tmp_path / "m", "-o", tmp_path / "o.tsv", "--backend", "cpu")
    frame = pd.read_csv(tmp_path / "o.tsv", sep="\t")
    own = frame[~frame.duplicated(["v_call", "j_call", "junction"]) & (frame["junction"].str.len() % 3 > 0)]
    zero = own[own["pgen_nt"] == 0]
    expected = list(zip(zero.index + 1, zero["junction"], strict=True))
    assert {2, 5} <= {place for place, _ in expected}
    assert list(zip(found["data_row"], found["junction"], strict=True)) == expected
    assert re.search(rf"{len(expected)} rows \([0-9.]+ %\) have probability 0", out)


def test_a_run_from_a_germline_table(tmp_path, table):
    rows = pd.read_csv(table, sep="\t").drop(index=[1, 4])
    rows.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    options = ["-g", GERMLINE, "-o", tmp_path / "m", *FEW, "--backend", "cpu"]
    hpcvdj_command("infer", tmp_path / "t.tsv", *options)
    assert sorted(set(EVERY_FILE) - {path.name for path in (tmp_path / "m").iterdir()}) == []
    own = load_model(tmp_path / "m")
    assert len(own.v) == 20
    # The codons that the junctions have.
    used = rows["v_call"].iloc[0]
    assert own.v[own.find("V", used)[0]].segment[:3] == rows["junction"].iloc[0][:3]
    hpcvdj_command("pgen", tmp_path / "t.tsv", "-m", tmp_path / "m", "-o", tmp_path / "o.tsv", "--backend", "cpu")
    probabilities = pd.read_csv(tmp_path / "o.tsv", sep="\t")["pgen_nt"]
    assert (probabilities > 0).mean() > 0.9


@pytest.mark.slow
@pytest.mark.olga
def test_olga_reads_it_and_gives_the_same_probabilities(tmp_path, table, model, monkeypatch):
    hpcvdj_command(*words(table, model, tmp_path / "m", *FEW))
    monkeypatch.setattr("tests.kernels.pgen.olga_peer.olga_folder", lambda: tmp_path)
    monkeypatch.setattr("tests.kernels.pgen.olga_peer.OLGA_FOLDERS", {"own_trb": "m"})
    olga, own = Olga("own_trb", complete=True), load_model(tmp_path / "m")
    frame = pd.read_csv(table, sep="\t")
    rows = [row for row in frame.itertuples() if len(row.junction) % 3 == 0 and "N" not in row.junction][:80]
    masks = [(row.junction, own.find("V", row.v_call), own.find("J", row.j_call)) for row in rows]
    values = pgens(own, masks, ("pgen_nt",))[:, 0]
    np.testing.assert_allclose([olga.nt(row.junction, row.v_call, row.j_call) for row in rows], values, rtol=1e-12)
    assert np.count_nonzero(values) > 40


@pytest.fixture(scope="module")
def expected(tmp_path_factory, table, model):
    folder = tmp_path_factory.mktemp("serial") / "m"
    hpcvdj_command(*words(table, model, folder, *FEW, "--threads", "1"))
    return files(folder)


def process(arguments, ranks=1, **options):
    launcher = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
    return subprocess.Popen(
        [*launcher, sys.executable, "-m", "hpcvdj", "-q", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "NUMBA_NUM_THREADS": "1", "COLUMNS": "200", **options},
    )  # fmt: skip


@pytest.mark.slow
def test_threads_do_not_change_a_byte(tmp_path, table, model, expected):
    code, _, err = end(process(words(table, model, tmp_path / "m", *FEW, "--threads", "2"), NUMBA_NUM_THREADS="2"))
    assert code == 0, err
    assert files(tmp_path / "m") == expected


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.exhaustive) for ranks in (2, 4, 7))])
def test_ranks_do_not_change_a_byte(tmp_path, table, model, expected, ranks, on_ranks):
    on_ranks(ranks, *words(table, model, tmp_path / "m", *FEW))
    assert files(tmp_path / "m") == expected


LONG = ["--iterations", "20", "--tolerance", "0", "--hold-out", "0", "--rows", "all", "--bootstrap", "2"]


@pytest.fixture(scope="module")
def long_run(tmp_path_factory, table, model):
    folder = tmp_path_factory.mktemp("long") / "m"
    hpcvdj_command(*words(table, model, folder, *LONG))
    return files(folder, [*FILES, ERRORS])


def stopped(running, output, number):
    """Send the signal once the first iteration is saved."""
    state = output.with_name(output.name + ".inference") / "search.state"
    for _ in range(3000):
        if state.exists():
            break
        time.sleep(0.01)
    os.kill(running.pid, number)
    return end(running)


@pytest.mark.slow
def test_stopped_and_resumed(tmp_path, table, model, long_run):
    output = tmp_path / "m"
    code, _, err = stopped(process(words(table, model, output, *LONG)), output, signal.SIGTERM)
    assert code == 75, err
    assert "SIGTERM: stopped after iteration" in err.splitlines()[-1]
    assert err.endswith("; --resume continues\n")
    assert not output.exists()
    state = tmp_path / "m.inference" / "search.state"
    assert "has the work of an unfinished run" in refused(*words(table, model, output, *LONG))
    other = refused(*words(table, model, output, *LONG, "--prior", "2", "--resume"))
    assert "belongs to another run (prior was 0.0, is 2.0)" in other
    whole = state.read_bytes()
    state.write_bytes(whole[: len(whole) // 2])
    damaged = refused(*words(table, model, output, *LONG, "--resume"))
    assert "m.inference/search.state: is damaged" in damaged
    state.write_bytes(whole)
    hpcvdj_command(*words(table, model, output, *LONG, "--resume"))
    assert files(output, [*FILES, ERRORS]) == long_run
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m"]
    _, err = hpcvdj_command(*words(table, model, output, *LONG, "--resume"))
    assert "is complete already" in err
    assert "is of another run" in refused(*words(table, model, output, *FEW, "--resume"))


@pytest.mark.slow
def test_a_stopped_run_that_replaces_a_model_goes_on(tmp_path, table, model, long_run):
    """With the remedy that it names; until then the other model stays."""
    output = tmp_path / "m"
    hpcvdj_command(*words(table, model, output, *FEW))
    before = files(output, EVERY_FILE)
    code, _, err = stopped(process(words(table, model, output, *LONG, "--overwrite")), output, signal.SIGTERM)
    assert code == 75, err
    assert files(output, EVERY_FILE) == before
    (output / "notes.txt").write_text("mine")
    assert "has files that hpcvdj did not write there" in refused(*words(table, model, output, *LONG, "--resume"))
    (output / "notes.txt").unlink()
    assert files(output, EVERY_FILE) == before
    hpcvdj_command(*words(table, model, output, *LONG, "--resume"))
    assert files(output, [*FILES, ERRORS]) == long_run
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m"]


@pytest.mark.slow
def test_killed_and_resumed(tmp_path, table, model, long_run):
    output = tmp_path / "m"
    code, _, err = stopped(process(words(table, model, output, *LONG)), output, signal.SIGKILL)
    assert code == -signal.SIGKILL, err
    assert not output.exists()
    hpcvdj_command(*words(table, model, output, *LONG, "--resume"))
    assert files(output, [*FILES, ERRORS]) == long_run
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m"]


def refused(*arguments):
    """The one line of a command that refuses its input; no line of another kind but warnings before it."""
    out, err = hpcvdj_command("-q", *arguments, code=2)
    assert not out
    assert "unexpected" not in err
    return error_line(err)


def test_what_is_there_is_left_alone(tmp_path, table, model):
    own = [*FEW, "--only", "v_choice"]
    (tmp_path / "file").write_text("mine")
    (tmp_path / "foreign").mkdir()
    for overwrite, message in (
        ([], "exists already; give another name"),
        (["--overwrite"], "exists, and is not a folder that hpcvdj wrote"),
        (["--resume"], "exists, and is not the folder of an inferred model"),
    ):
        for name in ("file", "foreign"):
            line = refused(*words(table, model, tmp_path / name, *own, *overwrite))
            assert f"{name}: {message}" in line
    shutil.copytree(model, tmp_path / "published")
    assert "not a folder that hpcvdj wrote" in refused(
        *words(table, model, tmp_path / "published", *own, "--overwrite")
    )
    assert files(tmp_path / "published") == files(model)
    hpcvdj_command(*words(table, model, tmp_path / "m", *own))
    before = files(tmp_path / "m", EVERY_FILE)
    assert "--overwrite to replace it" in refused(*words(table, model, tmp_path / "m", *own))
    assert files(tmp_path / "m", EVERY_FILE) == before
    shutil.copytree(tmp_path / "m", tmp_path / "changed")
    with open(tmp_path / "changed" / FILES[1], "a") as marginals:
        marginals.write("\n")
    line = refused(*words(table, model, tmp_path / "changed", *own, "--resume"))
    assert f"changed: {FILES[1]} changed since hpcvdj wrote it" in line
    shutil.rmtree(tmp_path / "changed")
    hpcvdj_command(*words(table, model, tmp_path / "m", *FEW, "--overwrite"))
    assert files(tmp_path / "m") != {name: before[name] for name in FILES}
    assert "no such folder" in refused(*words(table, model, tmp_path / "none" / "m", *own))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "foreign", "m", "published"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_overwrite_leaves_the_model(tmp_path, table, model):
    hpcvdj_command(*words(table, model, tmp_path / "m", *FEW))
    before = files(tmp_path / "m", EVERY_FILE)
    (tmp_path / "t.tsv").write_text("sequence_id\tv_call\tj_call\tjunction\n")
    refused(*words(tmp_path / "t.tsv", model, tmp_path / "m", *FEW, "--overwrite"))
    assert files(tmp_path / "m", EVERY_FILE) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "t.tsv"]


BAD = {
    "--only nothing": (["--only", "v_gene"], "parameter 'v_gene'"),
    "--fix nothing": (["--fix", "vj_ins"], "parameter 'vj_ins'"),
    "all fixed": (["--only", "v_choice", "--fix", "v_choice"], "nothing to infer"),
    "hold-out": (["--hold-out", "1"], "hold-out 1.0"),
    "hold-out nan": (["--hold-out", "nan"], "hold-out nan"),
    "prior inf": (["--prior", "inf"], "--prior inf: give at least 0"),
    "germline too": (["-g", GERMLINE], "one of the two"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_are_one_line(tmp_path, table, model, name):
    options, said = BAD[name]
    assert said in refused(*words(table, model, tmp_path / "m", *options))
    assert not list(tmp_path.iterdir())


def test_bad_inputs_are_one_line(tmp_path, table, model):
    target = tmp_path / "m"
    assert "one of the two" in refused("infer", table, "-o", target)
    human = next(path for path in TABLES if path.stem == "human_trb")
    two = tmp_path / "two.tsv"
    pd.concat([pd.read_csv(path, sep="\t", dtype=str) for path in (human, human.with_stem("human_tra"))]).to_csv(
        two, sep="\t", index=False
    )
    assert "has loci TRB, TRA, and a model is of one" in refused("infer", table, "-g", two, "-o", target)
    assert "--start mixed needs a model" in refused("infer", table, "-g", human, "-o", target, "--start", "mixed")
    empty, in_frame = tmp_path / "empty.tsv", tmp_path / "in_frame.tsv"
    empty.write_text("sequence_id\tv_call\tj_call\tjunction\n")
    assert "no data rows in any table" in refused(*words(empty, model, target))
    in_frame.write_text(empty.read_text() + "s\tTRBV1*01\tTRBJ1-1*01\tTGTGCCTTT\n")
    said = refused(*words(in_frame, model, target))
    assert "no row to infer a model from (1 not out-of-frame); give tables with out-of-frame rows" in said
    impossible = tmp_path / "impossible.tsv"
    impossible.write_text(empty.read_text() + f"s\tTRBV1*01\tTRBJ1-1*01\t{'ACGT' * 20}\n")
    assert "no junction has a probability above 0" in refused(*words(impossible, model, target))
    unreadable = tmp_path / "unreadable.tsv"
    unreadable.write_text(empty.read_text() + "s\tTRBV1*01\tTRBJ1-1*01\tTGTNT\n")
    assert "no row to infer a model from (no row could be read)" in refused(*words(unreadable, model, target))
    assert "no folder of a model" in refused(*words(table, tmp_path / "none", target))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "empty.tsv", "impossible.tsv", "in_frame.tsv", "two.tsv", "unreadable.tsv",
    ]  # fmt: skip


@pytest.mark.slow
def test_bad_input_is_one_line_on_ranks(tmp_path, model, on_ranks):
    (tmp_path / "t.tsv").write_text("sequence_id\tv_call\tj_call\tjunction\ns\tTRBV1*01\tTRBJ1-1*01\tTGTGCCTTT\n")
    out, err = on_ranks(3, *words(tmp_path / "t.tsv", model, tmp_path / "m"), "-q", code=2)
    assert not out
    assert len(err.strip().splitlines()) == 1, err
    assert "no row to infer a model from" in error_line(err)


def test_a_model_of_another_species_is_said(tmp_path, table, model):
    """In the words of count and pgen."""
    frame = pd.read_csv(table, sep="\t").iloc[10:50]
    frame.loc[20:, "v_call"] = [f"TRBV6-{2 + k % 4}*01" for k in range(30)]
    path = tmp_path / "t.tsv"
    frame.to_csv(path, sep="\t", index=False)
    said = r"30 of 40 rows have a V or J call that \S* ?does not list"
    _, err = hpcvdj_command(*words(path, model, tmp_path / "m", "--rows", "all", "--iterations", 1))
    assert re.search(said, err.replace(str(model) + " ", ""))
    with pytest.warns(hpcvdj.HpcvdjWarning, match="30 of 40 rows have a V or J call") as warned:
        hpcvdj.infer(path, model, rows="all", iterations=1, start="uniform")
    assert any("rows are few" in str(own.message) for own in warned)


def test_few_rows_infer_gene_usage(tmp_path, table, model):
    own = ["infer", table, "-m", model, "-o", tmp_path / "m", "--backend", "cpu", *FEW, "--start", "model"]
    out, err = hpcvdj_command(*own)
    assert "only P(V) and P(J) are inferred" in out
    assert "only P(V) and P(J) are inferred" in err
    before, found = load_model(model, pseudogenes=True), load_model(tmp_path / "m", pseudogenes=True)
    for name in ("v_deletions", "j_deletions"):
        assert np.array_equal(getattr(found, name), getattr(before, name))
    assert not np.array_equal(found.p_v, before.p_v)
    line = refused(*own[:4], "-o", tmp_path / "n", "--fix", "v_choice", "--fix", "j_choice")
    assert "v_choice, j_choice are fixed, so there is nothing to infer" in line


@pytest.fixture(scope="module")
def inferred(tmp_path_factory, table, model):
    """A model with standard errors."""
    folder = tmp_path_factory.mktemp("inferred") / "m"
    hpcvdj_command(*words(table, model, folder, *FEW, "--bootstrap", "3"))
    return folder


@pytest.mark.slow
def test_a_model_says_where_it_comes_from(inferred, tmp_path):
    pytest.importorskip("matplotlib")
    facts = json.loads((inferred / FACTS).read_text())
    out, _ = hpcvdj_command("models", "show", inferred, "-o", tmp_path / "m.svg")
    assert f"inferred   from {facts['rows_counted']:,} rows" in out
    assert f"{facts['held_out_log_likelihood_per_row']:.5f} of {facts['rows_held_out']} rows held out" in out
    page = inferred_page(inferred)
    assert f"Inferred from {facts['rows_counted']:,} rows" in page._suptitle.get_text()
    titles = [axes.get_title() for part in page.subfigs for axes in part.axes]
    assert titles[-1] == "Convergence"
    # Error bars are collections of lines: of P(V), and of the two lengths.
    bars = {axes.get_title(): len(axes.containers) for part in page.subfigs for axes in part.axes}
    assert (bars["V usage"], bars["Inserted n-nucleotides"], bars["J usage"]) == (2, 2, 1)


def inferred_page(folder):
    from matplotlib import pyplot as plt

    from hpcvdj.model_views.page import InferenceRecord, page

    figure = page(load_model(folder), InferenceRecord.read(folder))
    plt.close(figure)
    return figure


@pytest.mark.slow
def test_models_are_compared_on_rows(inferred, model, table, tmp_path):
    """The mean of ln(Pgen / P(a junction is made)) over rows that both can make; known rows are a warning."""
    frame = pd.read_csv(table, sep="\t", dtype=str, keep_default_na=False)
    found = []
    for folder in (model, inferred):
        own = load_model(folder)
        found.append(hpcvdj.pgen(frame, own, sequence="nt")["pgen_nt"].to_numpy(float) / Possible.of(own).probability)
    both = (found[0] > 0) & (found[1] > 0)
    gain = np.log(found[1][both] / found[0][both]).mean()
    out, _ = hpcvdj_command("models", "compare", model, inferred, "--likelihood-of", table)
    assert f"rows       {len(frame):,} read, {both.sum():,} that both models can make" in out
    assert f"likelihood A: {np.log(found[0][both]).mean():.5f} nats per row; {(found[0] == 0).sum()} with" in out
    assert f"B - A: {gain:+.5f} ±" in out
    assert f"{table} is what model B was inferred from" in out
    other = tmp_path / "other.tsv"
    frame.iloc[:0].to_csv(other, sep="\t", index=False)
    _, err = hpcvdj_command("models", "compare", model, inferred, "--likelihood-of", other, code=2)
    assert err.splitlines()[-1] == f"hpcvdj: error: {other}: no data rows; the table has names of columns only"
    frame.iloc[1:].to_csv(other, sep="\t", index=False)
    assert "was inferred from" not in hpcvdj_command("models", "compare", model, inferred, "--likelihood-of", other)[0]


def test_rows_in_frame_are_warned_of(inferred, model, table, tmp_path):
    frame = pd.read_csv(table, sep="\t")
    frame[frame["junction"].str.len() % 3 == 0].head(20).to_csv(tmp_path / "in.tsv", sep="\t", index=False)
    out, _ = hpcvdj_command("models", "compare", model, inferred, "--likelihood-of", tmp_path / "in.tsv")
    # Both models lack an allele of one of them.
    assert "warning    19 of 19 junctions are in frame" in out
    out, _ = hpcvdj_command("models", "compare", model, inferred, "--likelihood-of", table)
    assert "are in frame" not in out


@pytest.mark.parametrize("junction", ["", "   ", "TGTNNNTTC", "TGT-CATTC"])
def test_rows_that_cannot_be_read_are_not_in_frame(inferred, model, table, tmp_path, junction):
    frame = pd.read_csv(table, sep="\t")
    rows = frame[frame["junction"].str.len() % 3 > 0].head(4)
    rows = pd.concat([rows, rows.assign(junction=junction), rows.assign(junction=junction)])
    rows.assign(sequence_id=range(len(rows))).to_csv(tmp_path / "out.tsv", sep="\t", index=False)
    out, _ = hpcvdj_command("models", "compare", model, inferred, "--likelihood-of", tmp_path / "out.tsv")
    assert "8 excluded" in out
    assert "are in frame" not in out


def test_a_fit_is_shown_in_a_line(table, model):
    fit = hpcvdj.infer(pd.read_csv(table, sep="\t", dtype=str, keep_default_na=False), model, iterations=2)
    assert f"{fit.counted[0]:,} rows counted, {fit.counted[1]:,} held out, evaluation" in repr(fit)
    assert len(repr(fit)) < 200
