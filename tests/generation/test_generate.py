"""`hpcvdj generate` and `hpcvdj.generate`: the rows, their scenarios, and that nothing but model and seed matters."""

import gzip
import hashlib
import logging
from dataclasses import replace
from functools import partial

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.generation import generate as generation
from hpcvdj.kernels.generation.draw_cpu import Sampler
from hpcvdj.kernels.generation.tables import EVENTS, DrawTables
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.likely import LikelyScenarios, Scenario
from hpcvdj.recombination.possible import Possible
from hpcvdj.recombination.productive import productive_probability
from tests.commands import error_line, hpcvdj_command
from tests.kernels.pgen.problems import OLGA_MODELS, olga_model
from tests.recombination.definition import pgen
from tests.recombination.igor_files import mouse_files, vdj_files, vj_files
from tests.selected import features_of, few_genes, log_factor_of, with_factor

FILES = {
    "VDJ": vdj_files,
    "joint": lambda: vdj_files(heavy=True),
    "VJ": vj_files,
    "mouse": mouse_files,
}

AIRR = ["sequence_id", "v_call", "d_call", "j_call", "junction", "junction_aa", "productive"]

SCENARIO = ["v_trim", "p3v_length", "n1", "n1_length", "d_form", "d_trim_5", "d_trim_3", "p5d_length", "p3d_length",
            "n2", "n2_length", "p5j_length", "j_trim"]  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Models in IGoR's format, by name."""
    place = tmp_path_factory.mktemp("models")
    return {name: make().write(place / name) for name, make in FILES.items()}


@pytest.fixture(scope="module")
def models(folders):
    return {name: hpcvdj.load_model(path) for name, path in folders.items()} | {
        "joint": hpcvdj.load_model(folders["joint"]).with_joint_choice()
    }


@pytest.mark.parametrize("name", FILES)
def test_each_row_is_what_its_scenario_makes(models, name):
    """Read back by the code that describes scenarios to people."""
    model = models[name]
    table = hpcvdj.generate(model, 150, seed=1, scenarios=True)
    assert table.column_names == AIRR + SCENARIO
    drawn = Sampler(DrawTables.of(model))(0, 150, 1)
    for row, values in zip(table.to_pylist(), drawn.events.tolist(), strict=True):
        event = dict(zip(EVENTS, values, strict=True))
        scenario = Scenario(
            event["v"], event["d"] if model.has_d else None, event["j"], event["v_deleted"],
            (event["d_deleted_5"], event["d_deleted_3"]) if model.has_d else None, event["j_deleted"],
            (row["n1"], row["n2"])[: len(model.insertions)], 1.0,
        )  # fmt: skip
        likely = LikelyScenarios(model, row["junction"], 1.0, [scenario])
        described = likely.describe(scenario)
        for column in ("v_call", "d_call", "j_call", *SCENARIO):
            if not column.endswith(("n1_length", "n2_length")):
                assert row[column] == described[column], column
        assert row["n1_length"] == len(row["n1"])
        assert row["n2_length"] == (len(row["n2"]) if model.has_d else None)
        v = model.v[event["v"]].extended
        parts = [v[: len(v) - event["v_deleted"]], row["n1"], row["d_form"] or "", row["n2"] or "",
                 model.j[event["j"]].extended[event["j_deleted"] :]]  # fmt: skip
        assert row["junction"] == "".join(parts)
        assert len(described["track"]) == len(row["junction"])
        if name != "mouse":
            assert pgen(model, row["junction"], (event["v"],), (event["j"],)) > 0


@pytest.mark.parametrize("name", FILES)
def test_amino_acids_and_productive_rows(models, name):
    table = hpcvdj.generate(models[name], 3000, seed=2)
    assert table.column_names == AIRR
    assert table["sequence_id"].to_pylist() == [f"insilico_{k}" for k in range(3000)]
    residues = translate(table["junction"].to_pylist())
    assert table["junction_aa"].to_pylist() == residues
    expected = [len(own) > 1 and own[0] == "C" and own[-1] in "FVW" and "*" not in own for own in residues]
    assert table["productive"].to_pylist() == expected
    productive = hpcvdj.generate(models[name], sum(expected), seed=2, productive=True)
    assert productive.equals(table.filter(pa.array(expected)).combine_chunks())
    assert productive["productive"].to_pylist() == [True] * sum(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mouse", *OLGA_MODELS])
def test_the_share_of_productive_rows_is_the_exact_probability(models, name):
    model = models.get(name) or olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    number = 400_000
    share = productive_probability(model) / Possible.of(model).probability
    found = sum(hpcvdj.generate(model, number, seed=5)["productive"].to_pylist())
    z = (found - number * share) / np.sqrt(number * share * (1 - share))
    print(f"{name}: productive {found / number:.6f}, exact {share:.6f}, z {z:.2f}")
    # One fair draw in 16,000 is further away; the seed is fixed.
    assert abs(z) < 4


def test_fewer_rows_are_the_first_of_more(models):
    for options in ({}, {"productive": True, "scenarios": True}):
        most = hpcvdj.generate(models["mouse"], 2500, seed=3, **options)
        for number in (1, 2, 1023, 1024, 1025, 2499):
            assert hpcvdj.generate(models["mouse"], number, seed=3, **options).equals(most.slice(0, number))
    assert not hpcvdj.generate(models["mouse"], 9, seed=4).equals(hpcvdj.generate(models["mouse"], 9, seed=3))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["o.tsv", "o.tsv.gz", "o.parquet"])
def test_slices_and_threads_do_not_change_a_byte(folders, tmp_path, monkeypatch, name):
    def written(slices=(generation.BATCH, generation.SMALLEST_BATCH), threads=None):
        monkeypatch.setattr(generation, "BATCH", slices[0])
        monkeypatch.setattr(generation, "SMALLEST_BATCH", slices[1])
        threads = () if threads is None else ("--threads", threads)
        hpcvdj_command("generate", "-m", folders["mouse"], "-n", 1500, "--seed", 9, "--productive", "--scenarios",
                       "-o", tmp_path / name, "--overwrite", *threads)  # fmt: skip
        return (tmp_path / name).read_bytes()

    whole = written()
    before = numba.get_num_threads()
    try:
        assert [written(threads=threads) for threads in (1, 2)] == [whole] * 2
    finally:
        numba.set_num_threads(before)
    table = pq.read_table(tmp_path / name) if name == "o.parquet" else None
    for slices in ((1, 1), (7, 7), (1000, 1)) if name == "o.tsv" else ((777, 777),):
        other = written(slices)
        # The row groups of a Parquet file are batches, the members of a gzip file slices.
        if name == "o.tsv.gz":
            other, whole = map(gzip.decompress, (other, whole))
        assert pq.read_table(tmp_path / name).equals(table) if table else other == whole


@pytest.mark.slow
@pytest.mark.parametrize("productive", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_ranks_do_not_change_a_byte(folders, tmp_path, productive, on_ranks):
    digests = set()
    for name, command in (("one", hpcvdj_command), ("three", partial(on_ranks, 3))):
        path = tmp_path / f"{name}.parquet"
        words = ("generate", "-m", folders["mouse"], "-n", 70_000, "--seed", 2, "--scenarios",
                 *(["--productive"] if productive else []), "-o", path)  # fmt: skip
        out, _ = command(*words)
        assert out.count("written") == 1
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1


@pytest.mark.slow
def test_wrong_usage_on_ranks_is_one_line(folders, tmp_path, on_ranks):
    (tmp_path / "o.tsv").touch()
    for words, what in (
        (("-m", folders["mouse"], "-o", tmp_path / "o.tsv"), "--overwrite"),
        (("-m", "nobody", "-o", tmp_path / "n.tsv"), "no folder of a model"),
    ):
        _, err = on_ranks(3, "generate", *words, code=2)
        assert what in error_line(err)


def test_the_command_writes_what_python_returns(folders, models, tmp_path):
    out, err = hpcvdj_command("generate", "-m", folders["joint"], "--joint", "-n", 300, "--seed", 8, "--scenarios",
                              "-o", tmp_path / "o.tsv")  # fmt: skip
    assert not err
    table = hpcvdj.generate(models["joint"], 300, seed=8, scenarios=True)
    head, *lines = (tmp_path / "o.tsv").read_text().splitlines()
    assert head.split("\t") == table.column_names

    def texts(row):
        return ["" if own is None else {True: "T", False: "F"}.get(own, str(own)) if isinstance(own, bool)
                else str(own) for own in row.values()]  # fmt: skip

    assert [line.split("\t") for line in lines] == [texts(row) for row in table.to_pylist()]
    pairs = table.group_by(["v_call", "j_call"]).aggregate([([], "count_all")])
    assert f"junctions  300 over {len(pairs)} V-J pairs, the largest with {max(pairs['count_all'].to_pylist())}" in out
    assert "seed       8\n" in out
    hpcvdj_command("generate", "-m", folders["VJ"], "-n", 3, "-o", tmp_path / "vj.tsv")
    assert [line.split("\t")[2] for line in (tmp_path / "vj.tsv").read_text().splitlines()] == ["d_call", "", "", ""]


def test_what_is_drawn_has_a_generation_probability(folders, tmp_path):
    """From end to end: every row of the table has a probability with the genes that it names."""
    for name in ("joint", "VJ"):
        hpcvdj_command("generate", "-m", folders[name], "-n", 500, "-o", tmp_path / f"{name}.tsv")
        out, _ = hpcvdj_command("pgen", tmp_path / f"{name}.tsv", "-m", folders[name], "-o", tmp_path / "p.parquet",
                                "--overwrite")  # fmt: skip
        assert "500 read = 500 counted + 0 excluded" in out
        assert min(pq.read_table(tmp_path / "p.parquet")["pgen_nt"].to_pylist()) > 0


WRONG = {
    "no rows": (["-n", "0"], "--number 0: give a number from 1 to"),
    "negative seed": (["--seed", "-1"], "--seed -1: give a number from 0 to"),
    "large seed": (["--seed", str(1 << 64)], "give a number from 0 to 18,446,744,073,709,551,615"),
    "backend": (["--backend", "tpu"], "--backend must be one of auto, cuda, cpu"),
    "joint": (["--joint"], "leave out --joint"),
    "name": (["-o", "o.csv"], "must end in .tsv"),
    "folder": (["-o", "nowhere/o.tsv"], "no such folder"),
    "model": (["-m", "nobody"], "no folder of a model"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage(folders, tmp_path, case):
    words, what = WRONG[case]
    model = [] if "-m" in words else ["-m", folders["mouse"]]
    _, err = hpcvdj_command("generate", *model, "-o", "o.tsv", *words, code=2, cwd=tmp_path)
    assert what in err.replace("\n", " ").replace("│", "")
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_wrong_arguments(models):
    for options, what in (
        ({"number": 0}, "number"), ({"number": 2.5}, "number"), ({"number": 1, "seed": -1}, "seed=-1"),
        ({"number": 1, "seed": 1 << 64}, "18,446,744,073,709,551,615"), ({"number": 1, "seed": "x"}, "seed='x'"),
        ({"number": 1, "backend": "x"}, "backend"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=what):
            hpcvdj.generate(models["VJ"], **options)


def test_a_model_without_productive_junctions(tmp_path):
    files = vj_files()
    for event in ("v_choice", "j_choice"):
        files.events[event].realisations = [own.replace("TGT", "AAT") for own in files.events[event].realisations]
    model = hpcvdj.load_model(files.write(tmp_path / "m"))
    assert hpcvdj.generate(model, 10).num_rows == 10
    with pytest.raises(InputError, match="makes no productive junction; leave out productive"):
        hpcvdj.generate(model, 10, productive=True)


@pytest.mark.slow
def test_selection_keeps_in_proportion_to_the_factor(caplog):
    """Shares of features are those of the draws weighted by Q; sequence i does not depend on the others."""
    model = with_factor(few_genes(), {"V_length:TRBV9:14": 1.2, "left:4:G": 0.9, "right:5:P": -2.0})
    drawn = hpcvdj.generate(model, 40_000, seed=2, productive=True, backend="cpu")
    kept = hpcvdj.generate(model, 4_000, seed=3, selection=True, backend="cpu")
    assert set(kept["productive"].to_pylist()) == {True}
    rows = [(row["v_call"].split("*")[0], row["j_call"].split("*")[0], row["junction_aa"]) for row in drawn.to_pylist()]
    weights = np.exp([log_factor_of(model.selection, *row) for row in rows])
    for name in model.selection.weights:
        expected = np.average([name in features_of(*row) for row in rows], weights=weights)
        found = sum(
            name in features_of(row["v_call"].split("*")[0], row["j_call"].split("*")[0], row["junction_aa"])
            for row in kept.to_pylist()
        )
        assert abs(found / len(kept) - expected) < 5 * np.sqrt(expected / len(kept)), name
    fewer = hpcvdj.generate(model, 300, seed=3, selection=True, backend="cpu")
    assert fewer.to_pylist() == kept.slice(0, 300).to_pylist()
    # Nothing is said but what the model is good for.
    said = {record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING}
    assert said == {model.caution}
    wide = replace(model, selection=replace(model.selection, largest=np.log(200.4)))
    assert len(hpcvdj.generate(wide, 3, seed=3, selection=True, backend="cpu")) == 3
    assert "its selection factor is up to 200; one in about so many productive draws is kept" in caplog.text
    with pytest.raises(InputError, match="has no selection factor; infer one with hpcvdj infer-selection"):
        hpcvdj.generate("human_trb_m15", 10, selection=True)


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["generate", "-m", "MODEL", "-n"], "--number 99999999999999: give a number from 1 to 10,000,000,000"),
        (["simulate", "-g", "mouse_trb", "-n"], "--number 99999999999999: give a number from 1 to 1,000,000,000"),
        (["sharing", "t.tsv", "-m", "MODEL", "--draws"], "--draws 99999999999999: give a number from 1,000 to 100,000"),
        (["contamination", "t.tsv", "-m", "MODEL", "--draws"], "--draws 99999999999999: give a number from 1,000 to"),
    ],
)
def test_numbers_beyond_any_machine_are_refused(folders, tmp_path, words, refusal):
    (tmp_path / "t.tsv").write_text("sequence_id\tv_call\tj_call\tjunction\n")
    words = [folders["mouse"] if word == "MODEL" else word for word in words]
    _, err = hpcvdj_command(*words, "99999999999999", "-o", "o.tsv", code=2, cwd=tmp_path)
    assert refusal in error_line(err)
    assert [path.name for path in tmp_path.iterdir()] == ["t.tsv"]
