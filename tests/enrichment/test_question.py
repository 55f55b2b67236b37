"""hpcvdj.enrichment.question on few rows: the same from files and in memory, the facts, what is said and refused."""

import hashlib
import json
import logging
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance.check import check_fit
from hpcvdj.chance.question import ask
from hpcvdj.chance.settings import Checks, ClonotypeChoice
from hpcvdj.enrichment.enrich import ReadOnce
from hpcvdj.enrichment.question import EnrichmentQuestion, read_once_lines
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import CompleteError, InputError, StoppedError
from hpcvdj.repertoires.formats.format import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.table import table_at
from hpcvdj.repertoires.writers import write_table
from hpcvdj.reports.plots import PlottedTable
from hpcvdj.runs.run import Run
from hpcvdj.storage.files import exclusive_lock
from tests.asked import enrich_table, sample_of_table, warnings_said
from tests.chance.test_fit import renamed, rows_of
from tests.selected import few_genes

CHECKS = Checks()

SETTINGS = EnrichmentSettings(kappa=1.0, min_neighbours=1, backend="cpu")
TEXT = "TGTGCCAGCAGTTACTCGGTACGAACGGATTACGAGCAGTACTTC"


@pytest.fixture(scope="module")
def model():
    return few_genes()


@pytest.fixture(scope="module")
def table(model):
    """90 drawn rows with 2 reads, and a junction of 5 reads with eight neighbours of one, each with another base."""
    drawn = rows_of(model, 90, productive=True)
    near = [TEXT, *(TEXT[: 3 * k] + "GCA" + TEXT[3 * k + 3 :] for k in range(3, 11))]
    ids = [f"near{k}" for k in range(len(near))]
    genes = [["TRBV6-5*01"] * len(near), ["TRBJ2-7*01"] * len(near)]
    added = pa.table(dict(zip(("sequence_id", "v_call", "j_call", "junction"), (ids, *genes, near), strict=True)))
    rows = pa.concat_tables([drawn, added.select(drawn.column_names).cast(drawn.schema)])
    return rows.append_column("duplicate_count", pa.array([2] * 90 + [5] + [1] * 8)).combine_chunks()


@pytest.fixture(scope="module")
def control(model):
    rows = rows_of(model, 400, seed=9, productive=True)
    return rows.append_column("duplicate_count", pa.array([2] * 400)).combine_chunks()


def in_memory(table, model, choice=None, control=None, settings=SETTINGS, checks=CHECKS):
    settings = replace(settings, kappa=None) if control is not None else settings
    with warnings_said() as said:
        return enrich_table(table, model, settings, choice, control, checks), said


def written(tables, folder):
    """A file of each table."""
    paths = [folder / f"{name}.tsv" for name in "ab"[: len(tables)]]
    for path, table in zip(paths, tables, strict=True):
        write_table(path, table.to_batches(), overwrite=True)
    return paths


def of_files(paths, model, target, choice=None, settings=SETTINGS, opening=BY_HEADER, checks=CHECKS, run=None, **how):
    table, *control = (table_at(path, opening) for path in paths)
    settings = replace(settings, kappa=None) if control else settings
    question = EnrichmentQuestion(settings, choice or ClonotypeChoice(), control)
    return ask(question, [table], model, checks, run or Run(), PlottedTable(target, **how))


def warnings_of(caplog):
    return [own.getMessage() for own in caplog.records if own.levelno == logging.WARNING]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("with_control", [False, True])
@pytest.mark.parametrize(
    "choice", [ClonotypeChoice(), ClonotypeChoice(min_reads=2), ClonotypeChoice(likely_errors=True)], ids=repr
)
def test_files_and_tables_have_the_same_results(table, control, model, tmp_path, caplog, with_control, choice):
    caplog.set_level(logging.WARNING, "hpcvdj")
    tables = [table, control][: 1 + with_control]
    paths, target = written(tables, tmp_path), tmp_path / "o.tsv"
    found, said = in_memory(table, model, choice, control if with_control else None)
    own = of_files(paths, model, target, choice)
    assert own.table.equals(found.table)
    assert said == warnings_of(caplog) == []
    assert replace(own, table=None, estimate=None, control=[]) == replace(found, table=None, estimate=None)
    assert found.kappa == (None if with_control else 1)
    near = 9 if choice.min_reads == 1 else 1
    assert found.clonotypes == own.junctions == 90 + near
    assert (own.rows_read, own.excluded) == (99, 0)
    assert own.left_out["junctions that another row has"] == 0
    assert own.left_out[f"fewer than {choice.min_reads} reads"] == 9 - near
    assert ("likely sequencing errors" in own.left_out) == (not choice.likely_errors)
    head, *rows = (line.split("\t") for line in target.read_text().splitlines())
    assert [row[head.index("junction_aa")] for row in rows] == found.table["junction_aa"].to_pylist()
    facts = json.loads(target.with_name("o.tsv.json").read_text())
    fit = facts.pop("fit")
    assert fit["rows"] == 99
    settings = {"min_neighbours": 1, "max_q": 0.001, "seed": 0, "selection": True, "genes": "call"}
    settings["kappa"] = None if with_control else 1.0
    chosen = {"min_reads": choice.min_reads, "likely_errors": choice.likely_errors}
    expected = {
        "command": "enrich",
        "sequence_field": "junction",
        "tables": [[str(paths[0]), digest(paths[0]), 99, "a"]],
        "control": [[str(path), digest(path), 400, "b"] for path in paths[1:]],
        "settings": {**settings, "backend": "cpu", "strict_binding": False},
        "choice": chosen,
        "rows_read": 99,
        "rows_excluded": [],
        "rows_left_out": own.left_out,
        "junctions": 90 + near,
        "clonotypes": found.clonotypes,
        "tested": found.table.num_rows,
        "not_tested": found.not_tested,
        "kappa": found.kappa,
        "kappa_interval": None,
        "kappa_by_length": found.by_length,
        "qq": found.qq,
        "hits": found.hits,
        "clusters": found.clusters,
        "not_available": [],
        "read_once": None,
        **model.facts(),
    }
    assert {name: facts[name] for name in expected} == expected
    identity = facts["identity"]
    assert identity.pop("tables") == [[path.name, digest(path)] for path in paths]
    assert identity.pop("opening") == BY_HEADER.recorded()
    checks = {"ties": "none", "keep_misfits": False, "force": False, "missing_alleles": "exclude"}
    assert identity.pop("hpcvdj") == facts["hpcvdj_version"] == hpcvdj.__version__
    facts_of_model = {name: value for name, value in model.facts().items() if name != "model"}
    assert identity == {**facts_of_model, **settings, **chosen, **checks}


def test_the_interval_of_kappa(table, model, tmp_path):
    """Estimated from more rows."""
    rows = rows_of(model, 3_000, productive=True)
    target = tmp_path / "o.tsv"
    found = of_files(written([rows], tmp_path), model, target, settings=EnrichmentSettings(backend="cpu"))
    facts = json.loads(target.with_name("o.tsv.json").read_text())
    assert facts["kappa_interval"] == [found.estimate.low, found.estimate.high]
    assert facts["kappa"] == found.kappa == found.estimate.value


def test_resume(table, control, model, tmp_path):
    paths, target, plot = written([table, control], tmp_path), tmp_path / "o.tsv", tmp_path / "f.svg"
    options = {"plot": plot}
    of_files(paths, model, target, **options)
    assert plot.exists()
    content = target.read_bytes()
    with pytest.raises(InputError, match=r"o\.tsv: exists already"):
        of_files(paths, model, target, **options)
    complete = pytest.raises(CompleteError, match=r"o\.tsv: is complete already; there is nothing to resume")
    with complete:
        of_files(paths, model, target, resume=True, **options)
    # What does not change numbers.
    with complete:
        of_files(paths, model, target, resume=True, settings=replace(SETTINGS, strict_binding=True), **options)
    for change, message in (
        ({"settings": replace(SETTINGS, max_q=0.5)}, "max_q was 0.001, is 0.5"),
        ({"choice": ClonotypeChoice(min_reads=2)}, "min_reads was 1, is 2"),
        ({"checks": Checks(keep_misfits=True)}, "keep_misfits was False, is True"),
        ({"opening": Opening(format="airr")}, "opening was "),
    ):
        with pytest.raises(InputError, match=rf"o\.tsv: is of another run \({message}"):
            of_files(paths, model, target, resume=True, **options, **change)
    with pytest.raises(InputError, match=r"o\.tsv: is of another run \(.*b\.tsv"):
        of_files(paths[:1], model, target, resume=True, **options)
    target.unlink()
    plot.write_bytes(b"my figure")
    with pytest.raises(InputError, match=r"f\.svg: exists already"):
        of_files(paths, model, target, resume=True, **options)
    assert plot.read_bytes() == b"my figure"
    plot.unlink()
    of_files(paths, model, target, resume=True, **options)
    assert target.read_bytes() == content
    of_files(paths, model, target, overwrite=True, choice=ClonotypeChoice(min_reads=2), **options)
    assert target.read_bytes() != content
    of_files(paths, model, target, resume=True, overwrite=True, **options)
    assert target.read_bytes() == content
    (tmp_path / "o.tsv.json").unlink()
    with pytest.raises(InputError, match=r"o\.tsv: exists already"):
        of_files(paths, model, target, resume=True, **options)


def test_two_runs_do_not_write_one_result(table, model, tmp_path):
    """Both computed everything, and the last one won."""
    paths, target = written([table], tmp_path), tmp_path / "o.tsv"
    with exclusive_lock(target), pytest.raises(InputError, match=r"o\.tsv: another run is writing it"):
        of_files(paths, model, target, overwrite=True)
    of_files(paths, model, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tsv", "o.tsv", "o.tsv.json"]


@pytest.mark.parametrize("name", ["a.tsv", "b.tsv"])
def test_inputs_are_not_overwritten(table, control, model, tmp_path, name):
    paths = written([table, control], tmp_path)
    for target, further in ((tmp_path / name, {}), (tmp_path / "o.tsv", {"other": tmp_path / name})):
        with pytest.raises(InputError, match=f"{name}: is an input of this run"):
            of_files(paths, model, target, further=further, overwrite=True)
    assert not (tmp_path / "o.tsv").exists()


def test_columns_are_named(table, model, tmp_path):
    """Of a program that calls them otherwise."""
    other = table.rename_columns(["nt" if name == "junction" else name for name in table.column_names])
    opening = Opening(columns=(("junction", "nt"),))
    own = of_files(written([other], tmp_path), model, tmp_path / "o.tsv", opening=opening)
    assert own.table.equals(in_memory(table, model)[0].table)
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    assert facts["identity"]["opening"] == {"format": opening.format, "columns": {"junction": "nt"}}


def with_repertoires(table, *names):
    return table.append_column("repertoire_id", pa.array([names[k % len(names)] for k in range(len(table))]))


def test_tables_are_of_one_individual(table, control, model, tmp_path):
    two, one = with_repertoires(table, "y", "x"), with_repertoires(table, "x")
    said = r"has 2 repertoires \((x, y|y, x)\); neighbours are those of one individual, so give each its own table$"
    with pytest.raises(InputError, match=f"^the table: {said}"):
        in_memory(two, model)
    with pytest.raises(InputError, match=rf"^{tmp_path / 'a'}\.tsv: {said}"):
        of_files(written([two], tmp_path), model, tmp_path / "o.tsv")
    assert in_memory(one, model)[0].table.equals(in_memory(table, model)[0].table)
    paths = written([one, with_repertoires(control, "x")], tmp_path)
    with pytest.raises(InputError, match=rf"^{paths[1]}: has the individual that is tested; give a control"):
        of_files(paths, model, tmp_path / "o.tsv")
    assert not (tmp_path / "o.tsv").exists()


def test_a_control_of_several_people(table, control, model, tmp_path, caplog):
    """A junction that two of them have counts twice; without their names, it is one junction of one person."""
    twice = pa.concat_tables([control, control]).combine_chunks()
    two = twice.append_column("repertoire_id", pa.array(["x"] * len(control) + ["y"] * len(control)))
    once, of_two, unnamed = (in_memory(table, model, control=given)[0].table for given in (control, two, twice))
    for name in ("control_neighbours", "control_size"):
        assert of_two[name].to_pylist() == [2 * number for number in once[name].to_pylist()]
        assert unnamed[name].to_pylist() == once[name].to_pylist()
    paths = written([table, control], tmp_path)
    again = tmp_path / "c.tsv"
    again.write_bytes(paths[1].read_bytes())
    caplog.set_level(logging.INFO, "hpcvdj")
    assert of_files([*paths, again], model, tmp_path / "o.tsv").table.equals(of_two)
    # The folder was named.
    assert "the control, b.tsv, c.tsv, is compared with the model, too" in caplog.messages
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    assert [path for path, *_ in facts["control"]] == [str(paths[1]), str(again)]


def test_a_control_with_wrong_calls(table, model):
    """The control is checked by itself: its rows with such calls are excluded, unless they are to stay."""
    rows = rows_of(model, 4_000, seed=9, productive=True)
    calls = rows["v_call"].to_pylist()
    wrong = ["TRBV5-1*01" if k % 3 == 0 and call.startswith("TRBV20-1") else call for k, call in enumerate(calls)]
    rows = rows.set_column(rows.column_names.index("v_call"), "v_call", pa.array(wrong))
    for keep in (False, True):
        _, said = in_memory(table, model, control=rows, checks=Checks(keep_misfits=keep))
        assert any("V call TRBV5-1 contradicts the bases" in line for line in said) != keep


def test_a_control_leaves_no_kappa(table, control, model):
    with pytest.raises(InputError, match=r"kappa=2.0: a control has the selection of its people, so there is no kappa"):
        enrich_table(table, model, replace(SETTINGS, kappa=2.0), None, control, CHECKS)


def test_without_read_counts(table, control, model, tmp_path, caplog):
    caplog.set_level(logging.WARNING, "hpcvdj")
    unknown = table.drop_columns("duplicate_count")
    paths, target = written([unknown], tmp_path), tmp_path / "o.tsv"
    for choice, expected in ((ClonotypeChoice(), 1), (ClonotypeChoice(likely_errors=True), 0)):
        caplog.clear()
        _, said = in_memory(unknown, model, choice)
        caplog.clear()
        of_files(paths, model, target, choice, overwrite=True)
        line = ": no column duplicate_count; likely sequencing errors cannot be told, and take part"
        assert said == [f"the table{line}"] * expected
        assert warnings_of(caplog) == [f"a.tsv{line}"] * expected
    place = table.column_names.index("duplicate_count")
    caplog.clear()
    (tmp_path / "invalid").mkdir()
    invalid = written([table.set_column(place, "duplicate_count", pa.array(["4,5e+07"] * 99))], tmp_path / "invalid")
    with pytest.raises(InputError, match="no clonotype is left"):
        of_files(invalid, model, tmp_path / "i.tsv")
    assert "99 of 99 rows excluded" in caplog.text
    assert "no column" not in caplog.text
    message = "no column duplicate_count, which min_reads=2 needs; leave it out$"
    with pytest.raises(InputError, match=f"^the table: {message}"):
        in_memory(unknown, model, ClonotypeChoice(min_reads=2))
    with pytest.raises(InputError, match=rf"^a\.tsv: {message}"):
        of_files(paths, model, tmp_path / "p.tsv", ClonotypeChoice(min_reads=2))
    for reads in (0, -1):
        with pytest.raises(InputError, match=f"^min_reads={reads}: give at least 1$"):
            ClonotypeChoice(min_reads=reads)


def test_rows_that_are_left_out_and_another_species(table, model, tmp_path, caplog):
    caplog.set_level(logging.WARNING, "hpcvdj")
    genes = iter(["TRBV13-2"] * 20 + ["TRBV6-5"] * 9)
    mouse = renamed(table.slice(70), "v_call", lambda _: next(genes))
    excluded, species = "20 of 29 rows excluded:", f"20 of 29 rows have a V or J call that {model.name} does not list"
    checks = Checks(force=True, keep_misfits=True)
    found, said = in_memory(mouse, model, checks=checks)
    own = of_files(written([mouse], tmp_path), model, tmp_path / "o.tsv", checks=checks)
    assert (own.rows_read, own.excluded) == (29, 20)
    assert own.table.equals(found.table)
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    assert facts["fit"]["keep_misfits"]
    assert facts["fit"]["force"]
    assert [rows for *_, rows in facts["rows_excluded"]] == [20]
    assert [line.startswith((excluded, species)) for line in said].count(True) == 2
    logged = warnings_of(caplog)
    assert f"a.tsv: {excluded}" in logged
    assert [line.startswith(f"a.tsv: {species}") for line in logged].count(True) == 1


@pytest.mark.parametrize("when", ["before", "while", "after"])
def test_a_signal_while_a_table_is_read(table, model, tmp_path, monkeypatch, when):
    run, right = Run(), Inputs.read

    def read(*arguments, **options):
        run.request.name = "" if when == "after" else "SIGTERM"
        junctions = right(*arguments, **options)
        run.request.name = "SIGTERM"
        return junctions

    monkeypatch.setattr(Inputs, "read", read)
    run.request.name = "SIGTERM" if when == "before" else ""
    with pytest.raises(StoppedError, match="SIGTERM: stopped before any result; start again with the same command"):
        of_files(written([table], tmp_path), model, tmp_path / "o.tsv", run=run)
    assert not (tmp_path / "o.tsv").exists()


def test_what_the_check_says(table, model, tmp_path, caplog):
    """Some junctions are longer than the model makes them."""
    caplog.set_level(logging.WARNING, "hpcvdj")
    long = iter(["TGT" + number * "GCA" + (60 - number) * "GCT" + "TTC" for number in range(60)])
    wrong = renamed(table, "junction", lambda text: next(long) if text[12] in "AG" else text)
    lines = check_fit(sample_of_table(wrong, model, productive_reading()), model).lines()
    assert lines
    _, said = in_memory(wrong, model, checks=Checks(force=True))
    assert said[: len(lines)] == lines
    of_files(written([wrong], tmp_path), model, tmp_path / "o.tsv", checks=Checks(force=True))
    assert set(lines) <= set(warnings_of(caplog))


@pytest.mark.slow
@pytest.mark.parametrize("with_control", [False, True])
def test_most_junctions_have_one_read(table, control, model, tmp_path, with_control):
    """Both tables are tested again, with two reads or more; without them if the control has no read counts."""
    position = table.column_names.index("duplicate_count")
    once = table.set_column(position, "duplicate_count", pa.array([1] * 60 + [2] * 39))
    few = control.set_column(position, "duplicate_count", pa.array([1, 2] * 200))
    other = few if with_control else None
    settings = replace(SETTINGS, max_q=0.5)
    found, _ = in_memory(once, model, control=other, settings=settings)
    hits = in_memory(once, model, ClonotypeChoice(min_reads=2), other, settings)[0].hits
    assert found.read_once == ReadOnce(60, hits)
    assert hits > 0
    line = "most junctions (60 of 99) have one read, as many sequencing errors do; consider min_reads=2, with which"
    assert read_once_lines(found) == [f"{line} there are {hits} hits"]
    target = tmp_path / "o.tsv"
    own = of_files(written([once, few][: 1 + with_control], tmp_path), model, target, settings=settings)
    assert own.read_once == found.read_once
    facts = json.loads(target.with_name("o.tsv.json").read_text())
    assert facts["read_once"] == asdict(found.read_once) == {"junctions": 60, "hits_without": hits}
    assert facts["hits"] == found.hits
    assert facts["clonotypes"] == 99
    assert in_memory(once, model, ClonotypeChoice(min_reads=2), other, settings)[0].read_once is None
    without = control.drop_columns("duplicate_count")
    assert in_memory(once, model, control=without, settings=settings)[0].read_once is None


def test_the_others_cannot_be_tested(table, model, caplog):
    caplog.set_level(logging.DEBUG, "hpcvdj")
    once = table.set_column(table.column_names.index("duplicate_count"), "duplicate_count", pa.array([1] * 99))
    found, _ = in_memory(once, model)
    assert found.read_once == ReadOnce(99, None)
    line = (
        "most junctions (99 of 99) have one read, as many sequencing errors do; the others alone (min_reads=2) cannot"
    )
    assert read_once_lines(found) == [f"{line} be tested"]
    assert "of two reads or more: no clonotype is left (99 fewer than 2 reads)" in caplog.text


def test_numbers_have_separators(table, model):
    found = replace(in_memory(table, model)[0], read_once=ReadOnce(2_000, 1_234), junctions=3_000)
    assert read_once_lines(found) == [
        "most junctions (2,000 of 3,000) have one read, as many sequencing errors do; consider min_reads=2, with "
        "which there are 1,234 hits"
    ]


def test_repeated_junctions(table, model, tmp_path):
    twice = pa.concat_tables([table, table.slice(0, 10)]).combine_chunks()
    own = of_files(written([twice], tmp_path), model, tmp_path / "o.tsv", settings=SETTINGS)
    assert own.left_out["junctions that another row has"] == 10
    assert own.junctions == 99
    assert np.isfinite(own.table["p_value"].to_numpy()).all()


@pytest.mark.parametrize("rows", [1, 2])
def test_a_table_without_read_counts_says_so(table, model, rows):
    """Also of one row."""
    few = table.drop_columns("duplicate_count").slice(0, rows)
    message = "the table: no column duplicate_count; likely sequencing errors cannot be told, and take part"
    assert in_memory(few, model)[1][-1:] == [message]


@pytest.mark.parametrize("of_control", [False, True])
def test_the_control_or_the_sample_without_read_counts(table, control, model, tmp_path, caplog, of_control):
    caplog.set_level(logging.WARNING, "hpcvdj")
    tables = [table, control]
    tables[of_control] = tables[of_control].drop_columns("duplicate_count")
    of_files(written(tables, tmp_path), model, tmp_path / "o.tsv")
    lines = [line for line in warnings_of(caplog) if "duplicate_count" in line]
    name = "the control, b.tsv" if of_control else "a.tsv"
    assert lines == [f"{name}: no column duplicate_count; likely sequencing errors cannot be told, and take part"]


def test_read_counts_of_no_row(table, model):
    """The column is there, and empty."""
    place = table.column_names.index("duplicate_count")
    empty = table.set_column(place, "duplicate_count", pa.array([""] * len(table)))
    message = "the table: no row has a duplicate_count; likely sequencing errors cannot be told, and take part"
    assert in_memory(empty, model)[1][-1:] == [message]
