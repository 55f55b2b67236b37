"""One run for a cohort: its steps do what their commands do, go on where a run was stopped, and lose nothing."""

import json
import re
import shutil

import pyarrow as pa
import pyarrow.csv as csv
import pytest

import hpcvdj
from hpcvdj.analysis import analyze as analysing
from hpcvdj.analysis.settings import STEPS
from hpcvdj.analysis.steps import STEP
from hpcvdj.errors import InputError, StoppedError
from tests.analysis.drawn import COLUMNS, DRAWS, MODEL, state
from tests.commands import error_line, hpcvdj_command
from tests.selected import few_genes, with_factor

# In a fresh clone, the first test compiles the kernels of all steps.
pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("few_draws")]


def written(folder):
    """The bytes of every file in a folder, by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }  # fmt: skip


def words(cohort, output, *further):
    about = "--metadata", cohort / "people.tsv", "--group", "batch", "--case", "ill=yes"
    return "analyze", cohort / "tables", "-m", MODEL, *about, "--backend", "cpu", "-o", output, *further


@pytest.fixture(scope="module")
def analysed(cohort):
    """What the command wrote, and said."""
    output = cohort / "analysis"
    said, logged = hpcvdj_command(*words(cohort, output, "--without", "annotate"))
    return output, said, logged


@pytest.mark.slow
def test_what_a_cohort_allows_is_done_and_the_rest_has_its_reason(analysed):
    output, said, logged = analysed
    assert state(output) == {
        "contamination": "done", "infer": "left out", "infer-selection": "done", "pgen": "done", "sharing": "done",
        "associate": "done", "enrich": "done", "annotate": "left out", "report": "done",
    }  # fmt: skip
    (line,) = [line for line in said.splitlines() if line.startswith("infer ")]
    # All rows are productive.
    assert "left out: no row to infer a model from" in line
    # Several steps read the same tables, and say the same of them.
    lines = [line for line in logged.splitlines() if not line.startswith("hpcvdj:  ")]
    told = [line.removeprefix("hpcvdj: ") for line in lines if line.startswith("hpcvdj: step ")]
    assert [line.partition(":")[0] for line in told] == [f"step {k} of 8" for k in range(1, 9)]
    assert len(set(lines)) == len(lines)
    # What was not asked for is not mentioned.
    assert "annotate" not in said
    assert "Samples" in (output / "report.html").read_text()


ALONE = {
    "contamination": ("contamination.tsv", ["--group", "batch"]),
    "sharing": ("shared.tsv", ["--group", "batch"]),
    "associate": ("associated.tsv", ["--case", "ill=yes"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", ALONE)
def test_a_step_writes_what_its_command_writes(step, cohort, analysed, tmp_path):
    name, options = ALONE[step]
    model = analysed[0] / "model_selected"
    uses = model if json.loads((analysed[0] / "analysis.json").read_text())["steps"][2]["model"] else MODEL
    used = MODEL if step == "contamination" else uses
    hpcvdj_command(
        step, cohort / "tables", "-m", used, "--metadata", cohort / "people.tsv", *options, "--backend", "cpu",
        "--draws", DRAWS, "-o", tmp_path / "alone.tsv",
    )  # fmt: skip
    assert (tmp_path / "alone.tsv").read_bytes() == (analysed[0] / name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("step", "name"), [("pgen", "pgen/d2.tsv.gz"), ("enrich", "enriched/d2.tsv")])
def test_a_table_of_an_individual_is_that_of_its_command(step, name, cohort, analysed, tmp_path):
    recorded = json.loads((analysed[0] / "analysis.json").read_text())["steps"]
    selected = bool(recorded[2]["model"])
    used = analysed[0] / "model_selected" if selected else MODEL
    options = ["--selection"] if selected and step == "pgen" else []
    target = tmp_path / name.rpartition("/")[2]
    hpcvdj_command(step, cohort / "tables" / "d2.tsv", "-m", used, *options, "--backend", "cpu", "-o", target)
    assert target.read_bytes() == (analysed[0] / name).read_bytes()


@pytest.mark.slow
def test_tables_in_memory_and_parquet(cohort, analysed, tmp_path):
    """Each table but the first of a folder of Parquet was refused by pgen: "its parts lack 1,200 rows"."""
    tables = {path.stem: csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t"))
              for path in sorted((cohort / "tables").iterdir())}  # fmt: skip
    answer = hpcvdj.analyze(tables, MODEL, tmp_path / "a", only=["pgen"], backend="cpu")
    (outcome,) = [own for own in answer.outcomes if own.step == "pgen"]
    assert (outcome.state, outcome.reason) == ("done", "")
    for name in tables:
        own, other = (csv.read_csv(folder / "pgen" / f"{name}.tsv.gz", parse_options=csv.ParseOptions(delimiter="\t"))
                      for folder in (tmp_path / "a", analysed[0]))  # fmt: skip
        assert own["pgen_nt"] == other["pgen_nt"]


class StoppingError(StoppedError):
    """As a signal would stop a run."""

    on_every_rank = True


@pytest.mark.slow
def test_a_stopped_run_goes_on_and_ends_with_the_same(cohort, analysed, tmp_path, monkeypatch):
    output, without = tmp_path / "out", ["--without", "annotate"]

    def stop(job):
        raise StoppingError("SIGTERM")

    with monkeypatch.context() as patched:
        patched.setitem(STEP, "sharing", analysing.replace(STEP["sharing"], do=stop))
        _, err = hpcvdj_command(*words(cohort, output, *without), code=75)
    assert "stopped at the step sharing; --resume continues" in err
    assert list(state(output)) == list(STEPS[:5])
    assert state(output)["sharing"] == "begun"
    before = {path: path.stat().st_mtime_ns for path in (output / "pgen").iterdir()}
    # A run was killed when it had written a table, and not yet recorded it.
    shutil.copy(analysed[0] / "shared.tsv", output / "shared.tsv")
    hpcvdj_command(*words(cohort, output, *without, "--resume"))
    assert {path: path.stat().st_mtime_ns for path in (output / "pgen").iterdir()} == before
    assert state(output) == state(analysed[0])
    tables = {name: text for name, text in written(output).items() if name.endswith((".tsv", ".gz"))}
    assert tables == {name: text for name, text in written(analysed[0]).items() if name.endswith((".tsv", ".gz"))}


@pytest.fixture
def copied(analysed, tmp_path):
    return shutil.copytree(analysed[0], tmp_path / "copied")


@pytest.mark.slow
def test_resuming_does_what_was_not_asked_for_before(cohort, copied):
    database = copied.parent / "records.tsv"
    first = csv.read_csv(cohort / "tables" / "d0.tsv", parse_options=csv.ParseOptions(delimiter="\t")).slice(0, 40)
    rows = first.append_column("junction_aa", pa.array(hpcvdj.translate(first["junction"].to_pylist())))
    rows = rows.append_column("epitope", pa.array(["GILGFVFTL"] * 40)).drop_columns(["junction", "duplicate_count"])
    csv.write_csv(rows, database, csv.WriteOptions(delimiter="\t"))
    named = "--database", database, "--database-columns", "epitope=epitope,junction_aa=junction_aa"
    before = written(copied)
    hpcvdj_command(*words(cohort, copied, *named, "--resume"))
    assert state(copied)["annotate"] == "done"
    after = written(copied)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"analysis.json", "report.html"}
    assert {name.partition("/")[0] for name in after.keys() - before.keys()} == {"annotated"}
    # The planted records are of the first person.
    hits = {k: csv.read_csv(copied / "annotated" / f"d{k}.hits.tsv", parse_options=csv.ParseOptions(delimiter="\t"))
            for k in (0, 1)}  # fmt: skip
    assert hits[0].num_rows >= 40 > hits[1].num_rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"MODEL": "mouse"}, "its contamination is of another run"),
        ({"--case": "ill=no"}, "its associate is of another run (case was ill=yes, is ill=no)"),
        # Steps whose metadata were corrected are done again: contamination and sharing were, before the refusal.
        ({"--case": "ill=no", "--metadata": "other.tsv"}, "its associate is of another run (case was ill=yes"),
    ],
)
def test_another_run_is_not_continued(change, message, cohort, copied):
    (cohort / "other.tsv").write_text((cohort / "people.tsv").read_text() + "\n")
    line = [*words(cohort, copied, "--resume", "--without", "annotate")]
    if "--case" in change:
        line[line.index("--case") + 1] = change["--case"]
        line[line.index("--metadata") + 1] = cohort / change.get("--metadata", "people.tsv")
    else:
        table = cohort.parent / "other"
        shutil.copytree(cohort / "tables", table, dirs_exist_ok=True)
        (table / "d0.tsv").write_bytes((cohort / "tables" / "d1.tsv").read_bytes())
        line[1] = table
    before = {name: text for name, text in written(copied).items() if name != "analysis.json"}
    assert message in error_line(hpcvdj_command(*line, code=2)[1])
    assert {name: text for name, text in written(copied).items() if name != "analysis.json"} == before


@pytest.mark.slow
def test_the_same_run_is_continued_with_the_factor_that_it_inferred(tmp_path):
    """Later steps have the facts of the factor, which the model of the command lacks: the run was refused."""
    (tmp_path / "tables").mkdir()
    drawn = hpcvdj.generate(MODEL, 12_000, seed=4, productive=True, backend="cpu").to_pandas()
    selected = drawn[drawn["junction_aa"].str.len().between(12, 15)]
    for k in range(2):
        rows = selected.iloc[k::2].assign(duplicate_count=5)
        rows[["v_call", "j_call", "junction", "duplicate_count"]].to_csv(
            tmp_path / "tables" / f"d{k}.tsv", sep="\t", index=False
        )
    line = ["analyze", tmp_path / "tables", "-m", MODEL, "--backend", "cpu", "-o", tmp_path / "out"]
    line += ["--only", "infer-selection", "--only", "pgen"]
    hpcvdj_command(*line)
    steps = {step["step"]: step for step in json.loads((tmp_path / "out" / "analysis.json").read_text())["steps"]}
    assert steps["pgen"]["identity"]["selection_sha256"]
    before = {name: text for name, text in written(tmp_path / "out").items() if name != "analysis.json"}
    hpcvdj_command(*line, "--resume")
    assert {name: text for name, text in written(tmp_path / "out").items() if name != "analysis.json"} == before


def test_a_comma_in_a_name_is_refused_before_the_first_step(cohort, tmp_path):
    """Steps about cohorts were refused, after those before them were done."""
    shutil.copytree(cohort / "tables", tmp_path / "tables")
    (tmp_path / "tables" / "d3.tsv").rename(tmp_path / "tables" / "d, 3.tsv")
    line = ["analyze", tmp_path / "tables", "-m", MODEL, "--backend", "cpu", "-o", tmp_path / "out", "--only", "pgen"]
    err = hpcvdj_command(*line, "--only", "sharing", code=2)[1]
    assert "an individual is called 'd, 3', and commas separate individuals; rename it" in error_line(err)
    assert not (tmp_path / "out").exists()
    hpcvdj_command(*line)


@pytest.mark.slow
def test_a_refused_resume_forgets_no_file(cohort, tmp_path):
    """A sample that was taken out of the folder stayed on the page: --overwrite, which the error names, kept it."""
    folder, output = tmp_path / "tables", tmp_path / "out"
    shutil.copytree(cohort / "tables", folder)
    only = [option for step in ("pgen", "report") for option in ("--only", step)]
    line = ["analyze", folder, "-m", MODEL, "--backend", "cpu", "-o", output, *only]
    hpcvdj_command(*line)
    recorded = state(output)
    (folder / "d3.tsv").unlink()
    assert "d3.tsv no longer among the tables" in error_line(hpcvdj_command(*line, "--resume", code=2)[1])
    assert state(output) == recorded
    # A step that is not asked for, and whose tables are others, is no longer done, but its files are known.
    hpcvdj_command(*line[:-4], "--only", "report", "--only", "contamination", "--resume")
    assert state(output)["pgen"] == "left out"
    hpcvdj_command(*line, "--overwrite")
    assert sorted(path.name for path in (output / "pgen").glob("*.gz")) == [f"d{k}.tsv.gz" for k in range(3)]


@pytest.mark.slow
def test_a_table_that_was_changed_is_made_again(cohort, analysed, copied):
    (copied / "shared.tsv").write_text("changed")
    hpcvdj_command(*words(cohort, copied, "--resume", "--without", "annotate"))
    assert (copied / "shared.tsv").read_bytes() == (analysed[0] / "shared.tsv").read_bytes()


@pytest.mark.slow
def test_what_was_done_before_and_is_not_asked_for_now_stays_on_the_page(cohort, copied):
    """The page lost the associations, whose tables stayed in the folder."""
    before = written(copied)
    line = ["analyze", cohort / "tables", "-m", MODEL, "--backend", "cpu", "-o", copied, "--without", "annotate"]
    line += ["--metadata", cohort / "people.tsv", "--group", "batch", "--resume"]
    hpcvdj_command(*line)
    assert state(copied)["associate"] == "done"
    after = written(copied)
    assert {name for name in before if before[name] != after[name]} == {"analysis.json"}
    (copied / "associated.tsv").write_text("mine")
    hpcvdj_command(*line)
    assert state(copied)["associate"] == "left out", "it is no longer what was done"


def test_a_table_without_rows_is_refused_before_the_first_step(cohort, tmp_path):
    """It counted as an individual that shares nothing, and pgen was refused for all."""
    shutil.copytree(cohort / "tables", tmp_path / "tables")
    (tmp_path / "tables" / "d9.tsv").write_text("\t".join([*COLUMNS, "duplicate_count"]) + "\n")
    line = ["analyze", tmp_path / "tables", "-m", MODEL, "-o", tmp_path / "out", "--backend", "cpu"]
    assert "d9.tsv: no data rows; leave such tables out" in error_line(hpcvdj_command(*line, code=2)[1])
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_overwriting_leaves_nothing_of_the_run_before_and_nothing_foreign_goes(cohort, copied):
    (copied / "notes.txt").write_text("mine")
    hpcvdj_command(*words(cohort, copied, "--overwrite", "--only", "pgen"))
    names = {path.name for path in copied.iterdir()}
    assert names == {"analysis.json", "pgen", "notes.txt"}
    (copied / "pgen" / "d0.tsv.gz").write_text("mine")
    error = error_line(hpcvdj_command(*words(cohort, copied, "--overwrite", "--only", "pgen"), code=2)[1])
    assert "pgen/d0.tsv.gz changed since hpcvdj wrote it" in error
    assert (copied / "pgen" / "d0.tsv.gz").read_text() == "mine"


@pytest.mark.slow
def test_what_is_there_stays(cohort, copied, tmp_path):
    before = written(copied)
    assert "--resume continues it" in error_line(hpcvdj_command(*words(cohort, copied), code=2)[1])
    assert written(copied) == before
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    assert "is not of an analysis" in error_line(hpcvdj_command(*words(cohort, foreign, "--overwrite"), code=2)[1])
    assert [path.name for path in foreign.iterdir()] == ["thesis.txt"]
    file = tmp_path / "file"
    file.write_text("mine")
    assert "is a file" in error_line(hpcvdj_command(*words(cohort, file), code=2)[1])
    inside = cohort / "tables" / "out"
    assert "input of this run" in error_line(hpcvdj_command(*words(cohort, inside), code=2)[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "share"], "--only must be one of contamination, infer"),
        (["--only", "pgen", "--without", "infer"], "give --only or this, not both"),
        (["--decoys", "SARS-CoV-2"], "names records of --database, which is not given"),
        (["--metadata", "people.tsv"], "--metadata: say what its columns are for"),
        (["--case", "ill=yes"], "--metadata: is needed"),
    ],
)
def test_wrong_options_are_said_at_once(options, message, cohort, tmp_path):
    line = ["analyze", cohort / "tables", "-m", MODEL, "-o", tmp_path / "out", *options]
    assert message in error_line(hpcvdj_command(*line, code=2)[1])
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_one_individual_is_compared_with_nobody(cohort, tmp_path, caplog):
    caplog.set_level("INFO")
    done = hpcvdj.analyze(
        [cohort / "tables" / "d0.tsv"], MODEL, tmp_path / "out", without=["infer", "infer-selection"], backend="cpu"
    )
    reasons = {own.step: own.reason for own in done.outcomes if own.state == "left out"}
    assert reasons["sharing"] == reasons["contamination"] == "it compares individuals, and there is one"
    assert "no database is given" in reasons["annotate"]
    assert set(done.answers) == {"pgen", "enrich", "report"}
    steps_told = [line for line in caplog.messages if line.startswith("step ")]
    assert steps_told == ["step 1 of 3: pgen", "step 2 of 3: enrich", "step 3 of 3: report"]
    assert not done.refused


@pytest.mark.slow
def test_metadata_are_looked_at_before_the_first_step_and_may_be_corrected(cohort, copied, tmp_path):
    """A wrong name was told when the steps before had been done, and a corrected table began nothing again.

    The folder that a refused command left kept the corrected one from running.
    """
    wrong = tmp_path / "wrong.tsv"
    wrong.write_text((cohort / "people.tsv").read_text().replace("d1", "d9"))
    line = [*words(cohort, tmp_path / "new", "--without", "annotate")]
    line[line.index("--metadata") + 1] = wrong
    assert "no group for d1" in error_line(hpcvdj_command(*line, code=2)[1])
    assert not (tmp_path / "new").exists()
    corrected = tmp_path / "corrected.tsv"
    corrected.write_text((cohort / "people.tsv").read_text().replace("d1\tno", "d1\tyes"))
    line = [*words(cohort, copied, "--without", "annotate", "--resume")]
    line[line.index("--metadata") + 1] = corrected
    before = {path: path.stat().st_mtime_ns for path in (copied / "pgen").iterdir()}
    hpcvdj_command(*line)
    assert {path: path.stat().st_mtime_ns for path in (copied / "pgen").iterdir()} == before
    assert json.loads((copied / "associated.tsv.json").read_text())["phenotypes"][0]["cases"] == 3


@pytest.mark.olga
def test_a_model_of_another_locus_is_refused_before_the_first_step(cohort, tmp_path):
    """Eight steps said the same, and left a folder with empty tables."""
    line = [*words(cohort, tmp_path / "out", "--without", "annotate")]
    line[line.index("-m") + 1] = "mouse_tra"
    said, logged = hpcvdj_command(*line, code=2)
    assert "d0.tsv, d1.tsv, d2.tsv and 1 more: 4,800 of 4,800 rows have a V or J call that" in error_line(logged)
    assert "step 1" not in logged + said
    assert not (tmp_path / "out").exists()


def test_visits_of_one_person_are_compared_with_each_other_alone(cohort, tmp_path):
    """`sharing` and `contamination` were refused, with exit code 2, where nobody could have asked for them."""
    (tmp_path / "visits.tsv").write_text("sample\tdonor\tmonth\nd0\tX\t0\nd1\tX\t6\n")
    done = hpcvdj.analyze(
        [cohort / "tables" / f"d{k}.tsv" for k in (0, 1)], MODEL, tmp_path / "out", metadata=tmp_path / "visits.tsv",
        subject="donor", time="month", only=["contamination", "sharing", "associate"], backend="cpu",
    )  # fmt: skip
    states = {own.step: own.state for own in done.outcomes if own.reason != "not asked for"}
    assert states == {"contamination": "left out", "sharing": "left out", "associate": "done"}


@pytest.mark.slow
def test_selection_is_inferred_from_people_not_samples(cohort, tmp_path):
    (tmp_path / "samples.tsv").write_text("sample\tdonor\nd0\tX\nd1\tX\nd2\tY\nd3\tY\n")
    done = hpcvdj.analyze(
        cohort / "tables", MODEL, tmp_path / "out", metadata=tmp_path / "samples.tsv", subject="donor",
        only=["infer-selection"], backend="cpu",
    )  # fmt: skip
    assert done.answers["infer-selection"].individuals == 2


@pytest.mark.slow
def test_tables_in_memory_are_kept_and_give_the_same(cohort, tmp_path):
    tables = {
        path.stem: csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t")).to_pandas()
        for path in sorted((cohort / "tables").iterdir())
    }
    options = {"only": ["sharing"], "backend": "cpu"}
    memory = hpcvdj.analyze(tables, MODEL, tmp_path / "memory", **options)
    files = hpcvdj.analyze(cohort / "tables", MODEL, tmp_path / "files", **options)
    assert memory.answers["sharing"].table == files.answers["sharing"].table
    again = hpcvdj.analyze(tables, MODEL, tmp_path / "memory", resume=True, **options)
    assert again.answers == {}
    with pytest.raises(InputError, match="as a dict"):
        hpcvdj.analyze(tables["d0"], MODEL, tmp_path / "one")


@pytest.mark.slow
def test_amino_acids_only(cohort, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    for path in sorted((cohort / "tables").iterdir()):
        table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t"))
        texts = pa.array(hpcvdj.translate(table["junction"].to_pylist()))
        table = table.append_column("junction_aa", texts).drop_columns(["junction", "duplicate_count"])
        csv.write_csv(table, folder / path.name, csv.WriteOptions(delimiter="\t"))
    without = ["infer-selection", "enrich", "report"]
    done = hpcvdj.analyze(folder, MODEL, tmp_path / "out", without=without, backend="cpu")
    states = {own.step: own.state for own in done.outcomes}
    assert states["pgen"] == states["sharing"] == "done"
    reasons = {own.step: own.reason for own in done.outcomes}
    assert reasons["contamination"] == reasons["infer"] == "the tables have amino acids only"


@pytest.mark.slow
def test_cdr3s_and_a_model_with_a_selection_factor(tmp_path):
    """No probabilities after selection, for want of the last amino acid; and no hits, of which nobody has any."""
    model = with_factor(few_genes(), {})
    drawn = hpcvdj.generate(model, 300, seed=1, productive=True, backend="cpu")
    cdr3s = pa.array([text[1:-1] for text in drawn["junction_aa"].to_pylist()])
    table = drawn.select(["v_call", "j_call"]).append_column("cdr3_aa", cdr3s)
    without = [step for step in STEPS if step not in ("pgen", "enrich")]
    done = hpcvdj.analyze({"a": table}, model, tmp_path / "out", without=without, backend="cpu")
    said = {own.step: own.said for own in done.outcomes if own.state == "done"}
    assert said["pgen"][-1] == ("pgen_aa", "300 of 300 junctions have a probability above 0")
    assert said["enrich"] == [("clonotypes", "300 of 1 individual(s)"), ("hits", "0")]


def test_rows_out_of_frame_give_a_model_that_later_steps_take(tmp_path, monkeypatch):
    monkeypatch.setattr("hpcvdj.analysis.steps.FEWEST_TO_INFER", 500)
    folder = tmp_path / "tables"
    folder.mkdir()
    for k in range(2):
        drawn = hpcvdj.generate(MODEL, 1_500, seed=50 + k, backend="cpu").select(COLUMNS)
        drawn = drawn.append_column("duplicate_count", pa.array([3] * len(drawn)))
        csv.write_csv(drawn, folder / f"d{k}.tsv", csv.WriteOptions(delimiter="\t", quoting_style="none"))
    output = tmp_path / "out"
    only = [option for step in ("infer", "infer-selection", "pgen") for option in ("--only", step)]
    hpcvdj_command("analyze", folder, "-m", MODEL, "--backend", "cpu", "-o", output, *only)
    outcomes = {own["step"]: own for own in json.loads((output / "analysis.json").read_text())["steps"]}
    assert outcomes["infer"]["model"] == "model"
    # Too few productive rows for a factor.
    assert outcomes["infer-selection"]["state"] == "left out"
    facts = json.loads((output / "pgen" / "d0.tsv.gz.json").read_text())
    assert facts["model_sha256"] == hpcvdj.load_model(output / "model").digest
    assert facts["model_sha256"] != hpcvdj.load_model(MODEL).digest


def test_steps_without_tables_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "has no table" in error_line(
        hpcvdj_command("analyze", tmp_path / "empty", "-m", MODEL, "-o", tmp_path / "out", code=2)[1]
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_summary_of_a_resumed_step_says_which_numbers_it_lacks(cohort, copied):
    """It told the numbers of the tables that it computed as those of all."""
    for path in (copied / "enriched").glob("d0.tsv*"):
        path.unlink()
    out, _ = hpcvdj_command(*words(cohort, copied, "--resume"))
    tables = len([*(cohort / "tables").iterdir()])
    assert re.search(r"^enrich +clonotypes +[\d,]+ of 1 individual", out, re.MULTILINE)
    assert f"{tables - 1} further tables were complete; their numbers are not among these" in out
