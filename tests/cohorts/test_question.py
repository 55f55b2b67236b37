"""hpcvdj.cohorts.question: the same cohort from files and from a table in memory, and what is said of it."""

import logging
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hpcvdj.chance.draws import Chance
from hpcvdj.chance.question import read_rows
from hpcvdj.chance.settings import Checks
from hpcvdj.cohorts import question as asking
from hpcvdj.cohorts.cohort import REPEATED, names_of_holders, sequences_of
from hpcvdj.cohorts.question import CohortQuestion, rows_text
from hpcvdj.cohorts.settings import Naming, SharingSettings
from hpcvdj.cohorts.sharing_question import SharingQuestion
from hpcvdj.errors import InputError, StoppedError
from hpcvdj.repertoires.folders import tables_in
from hpcvdj.repertoires.formats.format import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.table import table_of
from hpcvdj.repertoires.writers import write_table
from hpcvdj.runs.run import Run
from tests.asked import warnings_said
from tests.chance.test_fit import renamed
from tests.cohorts.drawn import drawn, with_individuals

CHECKS = Checks()

SIZES = [12, 18, 10]
NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def few(model):
    """Three individuals of few rows, with read counts."""
    table = with_individuals(drawn(model, sum(SIZES), 3), SIZES)
    return table.append_column("duplicate_count", pa.array(range(1, len(table) + 1)))


def files_of(table, folder, column="repertoire_id"):
    """A file of each individual, without that column."""
    folder.mkdir()
    for name in sorted(set(table[column].to_pylist())):
        rows = table.filter(pa.compute.equal(table[column], name)).drop_columns(column).combine_chunks()
        write_table(folder / f"{name}.tsv", rows.to_batches(), overwrite=False)
    return sorted(folder.iterdir())


def contents(cohort):
    """All that a cohort has, as lists."""
    has = cohort.has
    reads = None if has.reads is None else has.reads.tolist()
    rows = None if cohort.origins is None else sorted(cohort.origins.row.tolist())
    return cohort.individuals, has.sequence.tolist(), has.individual.tolist(), reads, rows


class Shared(CohortQuestion):
    """Its ranks share the rows."""

    shares_rows = True
    names_rows = True


def read(paths, model, naming=None, checks=CHECKS, opening=BY_HEADER):
    question = Shared(naming or Naming())
    rows = read_rows(question, tables_in(paths, question.opening(opening)), model, checks, Run())
    return rows.inputs, question.cohort(rows, model, Run()), rows.fit


def in_memory(table, model, naming=None, checks=CHECKS):
    question = Shared(naming or Naming())
    with warnings_said() as said:
        rows = read_rows(question, [table_of(table, question.opening())], model, checks, Run())
        return question.cohort(rows, model, Run()), rows.fit, said


@pytest.mark.parametrize("reads", [True, False])
def test_files_and_tables_are_the_same_cohort(few, model, tmp_path, caplog, reads):
    caplog.set_level(logging.INFO, "hpcvdj")
    table = few if reads else few.drop_columns("duplicate_count")
    inputs, cohort, fit = read(files_of(table, tmp_path / "in"), model)
    own, own_fit, said = in_memory(table, model)
    assert contents(own) == contents(cohort)
    assert [(person.name, person.group, person.rows) for person in own.individuals] == [
        (name, None, size) for name, size in zip(NAMES, SIZES, strict=True)
    ]
    assert (own.has.reads is not None) == reads
    assert inputs.repertoires == list(NAMES)
    assert fit.rows == own_fit.rows == sum(SIZES)
    assert said == []
    missing = ": no column duplicate_count; the sizes of clones are not known"
    said = [record.getMessage() for record in caplog.records if record.module == "question"]
    assert said == [f"a.tsv, b.tsv, c.tsv{missing}", f"the table{missing}"] * (not reads)


def test_one_table_without_read_counts(few, model, tmp_path, caplog):
    """The counts of the others were not used, and the message named no table."""
    paths = files_of(few, tmp_path / "in")
    of_b = few.filter(pa.compute.equal(few["repertoire_id"], "b")).drop_columns(["repertoire_id", "duplicate_count"])
    write_table(paths[1], of_b.combine_chunks().to_batches(), overwrite=True)
    caplog.set_level(logging.WARNING, "hpcvdj")
    _, cohort, _ = read(paths, model)
    assert cohort.has.reads is None
    assert caplog.messages == [
        "b.tsv: no column duplicate_count, so that the counts of the other tables are not used; the sizes of clones "
        "are not known"
    ]


def test_a_run_that_keeps_builds_each_cohort_once(few, model, tmp_path, monkeypatch):
    paths, run, built = files_of(few, tmp_path / "in"), Run().keeping(), []
    right = asking.cohort_of
    monkeypatch.setattr(asking, "cohort_of", lambda *of: built.append(1) or right(*of))

    def cohort(naming=None, of=model, run=run):
        question = Shared(naming or Naming())
        return question.cohort(read_rows(question, tables_in(paths), of, Checks(), run), of, run)

    groups = Naming(group={"a": "x", "b": "x", "c": "y"})
    first, grouped = cohort(), cohort(groups)
    assert len(built) == 1
    assert [person.group for person in first.individuals] == [None] * 3
    assert contents(grouped) == contents(cohort(groups, run=Run()))
    built.clear()
    metadata = pa.table({"sample": NAMES, "who": ["p", "p", "q"]})
    assert [person.name for person in cohort(Naming(metadata=metadata, subject="who")).individuals] == ["p", "q"]
    other = replace(model, name="other")
    assert contents(cohort(of=other)) == contents(first)
    assert len(built) == 2, "for other people, and for another model"


def test_probabilities_of_a_cohort_are_computed_once_for_a_model(few, model, monkeypatch):
    cohort, _, _ = in_memory(few, model)
    asked, right = [], Chance.of_ranks
    monkeypatch.setattr(Chance, "of_ranks", lambda *of: asked.append(1) or right(*of))
    chance = Chance(model, 10, 0, "cpu", False)
    p = cohort.probabilities(chance, "pgen_nt")
    assert p.tolist() == cohort.grouped(None, Run()).probabilities(chance, "pgen_nt").tolist()
    assert len(asked) == 1
    assert p.tolist() == right(chance, [cohort.repertoire], ("pgen_nt",), Run())[0][:, 0].tolist()
    amino_acids = cohort.probabilities(chance, "pgen_aa")
    assert (amino_acids >= p).all()
    assert (amino_acids > p).any()
    named = replace(chance, model=replace(model, name="other"))
    assert cohort.probabilities(named, "pgen_aa").tolist() == amino_acids.tolist()
    assert len(asked) == 3


def test_how_the_model_is_checked(few, model, tmp_path):
    checks = Checks(keep_misfits=True, force=True)
    _, _, fit = read(files_of(few, tmp_path / "in"), model, checks=checks)
    _, own, _ = in_memory(few, model, checks=checks)
    assert fit == own
    assert fit.keep_misfits
    assert fit.force


def test_tables_that_cannot_be_read_are_named_before_the_model(few, model, tmp_path, monkeypatch):
    """Though root compares rows with the model first."""

    def refuse(*_, **options):
        raise InputError("the model does not fit")

    monkeypatch.setattr("hpcvdj.chance.question.check_tables", refuse)
    paths = files_of(few, tmp_path / "in")
    with pytest.raises(InputError, match="the model does not fit"):
        read(paths, model)
    with paths[1].open("a") as stream:
        stream.write("cut\tshort\n")
    with pytest.raises(InputError, match=rf"{paths[1].name}: line .*: 2 values for"):
        read(paths, model)


@pytest.mark.parametrize("during", [False, True])
def test_a_signal_while_tables_are_read(few, model, tmp_path, monkeypatch, during):
    """Before their rows are read, or between two of them."""
    run, right = Run(), Inputs.read

    def read_on(*arguments, **options):
        run.request.name = "SIGTERM"
        return right(*arguments, **options)

    monkeypatch.setattr(Inputs, "read", read_on)
    run.request.name = "" if during else "SIGTERM"
    with pytest.raises(StoppedError, match="SIGTERM: stopped before any result; start again with the same command"):
        read_rows(CohortQuestion(Naming()), tables_in(files_of(few, tmp_path / "in")), model, Checks(), run)


def test_what_the_check_says(few, model, tmp_path, caplog):
    """Some junctions are longer than the model makes them."""
    long = iter(["TGT" + number * "GCA" + (60 - number) * "GCT" + "TTC" for number in range(60)])
    table = renamed(few.drop_columns("junction_aa"), "junction", lambda text: next(long) if text[12] in "AG" else text)
    _, fit, said = in_memory(table, model, checks=Checks(force=True))
    assert fit.lines()
    assert said == fit.lines()
    caplog.clear()
    assert read(files_of(table, tmp_path / "in"), model, checks=Checks(force=True))[2] == fit
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == said


def test_a_column_names_the_individuals(few, model, tmp_path):
    """In tables of several individuals, also of a program whose columns are named."""
    named = few.rename_columns(["who" if name == "repertoire_id" else name for name in few.column_names])
    path = tmp_path / "all.tsv"
    write_table(path, named.combine_chunks().to_batches(), overwrite=False)
    expected = contents(in_memory(few, model)[0])
    assert contents(in_memory(named, model, Naming(individual="who"))[0]) == expected
    assert contents(read([path], model, Naming(individual="who"))[1]) == expected
    assert contents(in_memory(few, model, Naming(individual="repertoire_id"))[0]) == expected
    other = named.rename_columns(["nt" if name == "junction" else name for name in named.column_names])
    write_table(path, other.combine_chunks().to_batches(), overwrite=True)
    assert (
        contents(read([path], model, Naming(individual="who"), opening=Opening(columns=(("junction", "nt"),)))[1])
        == expected
    )
    with pytest.raises(InputError, match=r"^the table does not name .*; individual='COLUMN' says which column does$"):
        in_memory(named, model)


def test_rows_without_an_individual(few, model, tmp_path):
    path = tmp_path / "all.tsv"
    blank = renamed(few, "repertoire_id", lambda name: "" if name == "b" else name)
    write_table(path, blank.combine_chunks().to_batches(), overwrite=False)
    # Without the option, too: they would be an individual that has the name of the file.
    for naming in (Naming(individual="repertoire_id"), Naming()):
        with pytest.raises(
            InputError, match=r"all\.tsv: 18 rows have no repertoire_id, and would be an individual; fill"
        ):
            read([path], model, naming)


METADATA = pa.table({"name": ["a", "b", "c"], "batch": ["x", "y", "y"], "person": ["p", "q", "q"]})


def test_groups_and_subjects(few, model, tmp_path):
    paths = files_of(few, tmp_path / "in")
    for naming, expected in (
        (Naming(metadata=METADATA, group="batch"), [("a", "x", 12), ("b", "y", 18), ("c", "y", 10)]),
        (Naming(group={"a": "x", "b": "y", "c": "y"}), [("a", "x", 12), ("b", "y", 18), ("c", "y", 10)]),
        (Naming(metadata=METADATA, subject="person"), [("p", None, 12), ("q", None, 28)]),
        (Naming(metadata=METADATA, group="batch", subject="person"), [("p", "x", 12), ("q", "y", 28)]),
    ):
        for cohort in (read(paths, model, naming)[1], in_memory(few, model, naming)[0]):
            assert [(own.name, own.group, own.rows) for own in cohort.individuals] == expected
    mixed = METADATA.set_column(1, "batch", pa.array(["x", "y", "z"]))
    naming = Naming(metadata=mixed, group="batch", subject="person")
    message = "^q: its samples are of the groups y and z; correct the column batch, or leave subject out$"
    with pytest.raises(InputError, match=message):
        naming.people(NAMES)
    # Before any row is read.
    (tmp_path / "in" / "b.tsv").write_text((tmp_path / "in" / "b.tsv").read_text().replace("\tTGT", "\t!"))
    with pytest.raises(InputError, match=message):
        read(paths, model, naming)
    with pytest.raises(InputError, match="the metadata: no subject for d; it needs"):
        Naming(metadata=METADATA, subject="person").people([*NAMES, "d"])
    with pytest.raises(InputError, match="the metadata: no group for d; it needs"):
        Naming(metadata=METADATA, group="batch").people([*NAMES, "d"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": "g"}, "^group='g': needs metadata, the table that has this column$"),
        ({"subject": "s"}, "^subject='s': needs metadata, the table that has this column$"),
        ({"group": {"a": "x"}, "metadata": METADATA}, "^group is a dict, which has the groups; leave metadata out"),
        ({"metadata": METADATA}, "^metadata: needs group, or subject, the column that has them$"),
    ],
)
def test_options_that_need_each_other(options, message):
    with pytest.raises(InputError, match=message):
        Naming(**options)


def test_how_tables_are_opened():
    given = Opening(columns=(("junction", "nt"),))
    for individual in (None, "repertoire_id"):
        assert Naming(individual=individual).opening(given) is given
        assert Naming(individual=individual).opening() is BY_HEADER
    assert Naming(individual="who").opening(given).columns == (("junction", "nt"), ("repertoire_id", "who"))


@pytest.mark.parametrize(("several", "said_of"), [(2, False), (3, True)])
def test_calls_of_several_genes(few, model, tmp_path, caplog, several, said_of):
    """2 of 40 rows are a twentieth."""
    calls = few["v_call"].to_pylist()
    for row in range(several):
        calls[row] = "TRBV6-5,TRBV9"
    table = few.set_column(few.column_names.index("v_call"), "v_call", pa.array(calls))
    message = (
        f"{several} of 40 rows name several V or several J genes; they are sequences of their own, which drawn ones, "
        "of one V and one J, never are, so fewer seem to be shared than expected; {}, unless given, takes V genes "
        "together that reads hardly tell apart"
    )
    _, _, said = in_memory(table, model)
    read(files_of(table, tmp_path / "in"), model)
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    in_python, in_shell = (message.format(ties) for ties in ("ties='auto'", "--ties auto"))
    assert (in_python in said) == (in_shell in logged or in_python in logged) == said_of


def test_rows_that_are_left_out_and_another_species(few, model, tmp_path, caplog):
    genes = iter(["TRBV13-2"] * 25 + ["TRBV9"] * 15)
    table = renamed(few, "v_call", lambda _: next(genes))
    paths = files_of(table, tmp_path / "in")
    excluded, species = "25 of 40 rows excluded:", f"25 of 40 rows have a V or J call that {model.name} does not list"
    _, _, said = in_memory(table, model)
    assert [line.startswith(excluded) for line in said].count(True) == 1
    assert [line.startswith(species) for line in said].count(True) == 1
    read(paths, model)
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"a.tsv, b.tsv, c.tsv: {excluded}" in logged
    assert [line.startswith(f"a.tsv, b.tsv, c.tsv: {species}") for line in logged].count(True) == 1


def test_what_is_said_of_rows_and_individuals(few, model):
    """Who has how many, and why rows are left out."""
    calls = few["v_call"].to_pylist()
    calls[0] = calls[13] = "TRBV13-2"
    table = few.set_column(few.column_names.index("v_call"), "v_call", pa.array(calls))
    repeated = pa.concat_tables([table, table.slice(1, 1)]).combine_chunks()
    cohort, _, _ = in_memory(repeated, model)
    first, *_ = cohort.individuals
    assert first.left_out[REPEATED] == 1
    assert sum(first.left_out.values()) == 2
    assert first.facts() == {"name": "a", "group": None, "rows": 11, "rows_read": 13, "left_out": first.left_out}
    listed = ", ".join(f"{reason}: {number}" for reason, number in left_out_of(cohort).most_common())
    assert rows_text(cohort) == f"41 read, 3 left out ({listed})"
    assert rows_text(in_memory(few, model)[0]) == "40 read, 0 left out"


def left_out_of(cohort):
    """The rows of all individuals that are left out, by the reason."""
    return sum((Counter(person.left_out) for person in cohort.individuals), Counter())


def test_two_individuals_must_have_junctions(few, model):
    one = few.filter(pa.compute.equal(few["repertoire_id"], "a"))
    remedy = (
        "has productive junctions of the model's genes, and two individuals or more are compared: give tables of "
        r"others, whose repertoire_id differs, or name individuals with individual='COLUMN'"
    )
    with pytest.raises(InputError, match=f"^only a {remedy}$"):
        in_memory(one, model)
    stops = renamed(few, "junction", lambda text: text[:3] + "TAA" + text[6:])
    why = r"^none of the 40 rows can be used \(.* not productive.*: 40\): correct the tables, or give others$"
    with pytest.raises(InputError, match=why):
        in_memory(stops, model, checks=Checks(force=True))


def test_no_more_individuals_are_asked_for_than_there_are(few, model):
    number = len(set(few["repertoire_id"].to_pylist()))
    for asked in (number, number + 1):
        question = SharingQuestion(Naming(), SharingSettings(min_individuals=asked))
        tables = [table_of(few, question.opening())]
        if asked == number:
            assert read_rows(question, tables, model, CHECKS, Run()).inputs.rows == len(few)
        else:
            with pytest.raises(
                InputError, match=f"^min_individuals={asked}: there are {number} individuals; give at most {number}$"
            ):
                read_rows(question, tables, model, CHECKS, Run())


@pytest.mark.parametrize("unit", ["nt", "vj-aa"])
def test_genes_any_is_for_amino_acids(unit):
    message = rf"^genes='any': the unit {unit} has V and J genes; give unit='aa'$"
    with pytest.raises(InputError, match=message):
        SharingSettings(unit=unit, genes="any")
    assert SharingSettings(unit="aa", genes="any").genes == "any"


def test_holders_are_named_with_their_reads(few, model):
    """As columns of texts; of some sequences in another order, too."""
    cohort, _, _ = in_memory(few, model)
    has, rows = cohort.has, few.to_pylist()
    reads = {}
    for row in rows:
        reads.setdefault(row["repertoire_id"], set()).add(str(row["duplicate_count"]))
    names, numbers = names_of_holders(cohort, has).to_pylist(), names_of_holders(cohort, has, reads=True).to_pylist()
    assert Counter(names) == dict(zip(NAMES, SIZES, strict=True))
    assert all(number in reads[name] for name, number in zip(names, numbers, strict=True))
    assert sorted(map(int, numbers)) == list(range(1, 41))
    backwards = has.only(np.arange(len(names))[::-1])
    assert names_of_holders(cohort, backwards).to_pylist() == names[::-1]
    assert backwards.overlap().tolist() == np.diag(SIZES).tolist()
    assert backwards.overlap().dtype == np.int64


def test_sequences_that_are_left_out_spell_nothing(few, model):
    cohort, _, _ = in_memory(few, model)
    every = sequences_of(cohort, "nt")
    some = every.only(np.array([3, 5, 39]))
    assert some.spelled.tolist() == [{3: 0, 5: 1, 39: 2}.get(number, -1) for number in range(40)]
    assert some.only(np.array([1])).spelled.tolist() == [0 if number == 5 else -1 for number in range(40)]
