"""Tables that do not fit a model are refused, or warned of, before anything is computed: `hpcvdj.chance.check`."""

import logging

import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance import check as checking
from hpcvdj.chance.check import check_calls, check_fit, check_model, check_tables
from hpcvdj.chance.first_rows import WITH_OPTION, WITHOUT_COLUMN, lacking_nucleotides
from hpcvdj.chance.model_fit import MANY_IMPOSSIBLE, UNCHECKED, ModelFit
from hpcvdj.chance.settings import Checks
from hpcvdj.cli.common import saying_once
from hpcvdj.errors import InputError
from hpcvdj.inference.settings import InferenceSettings
from hpcvdj.inference.tables import reading_for
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.inputs import read_table, tables_of
from hpcvdj.repertoires.reading import Reading, reading_of
from hpcvdj.repertoires.table import table_of
from hpcvdj.repertoires.writers import write_table
from tests.asked import sample_of_table, warnings_said
from tests.chance.test_fit import fit_of, renamed, renamed_rows, rows_of
from tests.commands import error_line, hpcvdj_command
from tests.loci import LOCI, exhaustive_but


@pytest.mark.parametrize(
    ("junctions", "number"),
    [(["TGTGCC", "TGTGCC", ""], 0), (["TGTGCC", "", ""], 1), (["TGTGCC", "NA", None], 1), (["", None, "TGTGCC"], 2)],
)
def test_rows_without_nucleotides_among_others(junctions, number):
    """One row with nucleotides excluded all rows with amino acids only, without a word about these."""
    table = table_of(pa.table({"junction": junctions, "junction_aa": ["CA", "CA", None]}))
    said = [
        f"the table: {number} of the first 3 rows that were compared have amino acids (junction_aa) but no nucleotides "
        "(junction), and are excluded; sequence_field='junction_aa' reads the amino acids of all rows"
    ]
    assert list(lacking_nucleotides([table], WITH_OPTION)) == said * bool(number)
    assert all(line.endswith(f"; {WITHOUT_COLUMN}") for line in lacking_nucleotides([table], WITHOUT_COLUMN))
    assert not list(lacking_nucleotides([table_of(pa.table({"junction_aa": ["CA"]}))], WITH_OPTION))


@pytest.mark.olga
def test_another_species():
    table, model = rows_of(load_model("human_trb"), productive=True), load_model("mouse_trb")
    sample = sample_of_table(table, model, PgenConfig().reads(Reading()))
    with pytest.raises(
        InputError, match=r"mouse_trb cannot make \d+ % of .* rows: .* or better model='human_trb'; force=True"
    ):
        check_model(Checks(), sample, model)
    with warnings_said() as said:
        fit = check_model(Checks(force=True), sample, model)
    assert fit.impossible > 0.5
    assert fit.better[0] == "human_trb"
    assert 1 <= len(said) <= 2


@pytest.mark.parametrize("field", ["junction", "junction_aa"])
def test_cdr3s_in_a_column_of_junctions(field):
    """They were taken for another species.  Junctions of this model that another one cannot make are no CDR3s."""
    model, ends = load_model("human_trb_m15"), 3 if field == "junction" else 1
    table = hpcvdj.generate(model, 900, seed=5, productive=True, backend="cpu").select(["v_call", "j_call", field])
    cut = pa.array([text[ends:-ends] for text in table[field].to_pylist()])
    reading = PgenConfig().reads(reading_of([field], None, None, strict=False))
    remedy = "give junctions, not CDR3s" if field == "junction" else "columns={'cdr3_aa': 'junction_aa'} says that"
    with pytest.raises(InputError, match=f"most do not begin with Cys 104 .*{remedy}.*force=True goes on$"):
        check_model(Checks(), sample_of_table(table.set_column(2, field, cut), model, reading), model)
    lengthened = pa.array([text[:ends] * 40 + text for text in table[field].to_pylist()])
    with pytest.raises(InputError, match="are they of another species"):
        check_model(Checks(), sample_of_table(table.set_column(2, field, lengthened), model, reading), model)


@pytest.mark.parametrize(("column", "rows"), [("cdr3_aa", 400), ("cdr3_aa", 1), ("aa", 30)])
def test_junctions_in_a_column_of_cdr3s(column, rows, tmp_path):
    """With genes=any, they had probabilities a trillion times too small, and nothing said so."""
    model = load_model("human_trb_m15")
    table = hpcvdj.generate(model, rows, seed=5, productive=True, backend="cpu").select(
        ["v_call", "j_call", "junction_aa"]
    )
    options = [] if column == "cdr3_aa" else ["--columns", f"cdr3_aa={column}"]
    whole, good, bad = table.rename_columns(["v_call", "j_call", column]), tmp_path / "good.tsv", tmp_path / "bad.tsv"
    cdr3s = pa.array([text[1:-1] for text in table["junction_aa"].to_pylist()])
    write_table(good, whole.set_column(2, column, cdr3s).to_batches(), overwrite=False)
    write_table(bad, whole.to_batches(), overwrite=False)
    if rows < 20:
        _, err = hpcvdj_command("pgen", bad, "-m", model.name, "-o", tmp_path / "o.tsv", "--genes", "any")
        assert "bad.tsv: most sequences of cdr3_aa begin with C" in err, "a CDR3 may be like that"
        return
    # Some that lack an end do not hide the others.
    texts = [text[: -(k % 5 == 0) or None] for k, text in enumerate(table["junction_aa"].to_pylist())]
    write_table(bad, whole.set_column(2, column, pa.array(texts)).to_batches(), overwrite=True)
    message = "bad.tsv: most sequences of cdr3_aa begin with C and end with F, V or W: they are junctions, not CDR3s; "
    message += f"--columns junction_aa={column} says so; --force goes on"
    words = ["-m", model.name, "-o", tmp_path / "o.tsv", "--overwrite", *options]
    for genes in ("any", "call"):
        _, err = hpcvdj_command("pgen", bad, *words, "--genes", genes, code=2)
        assert error_line(err) == f"hpcvdj: error: {message}"
        hpcvdj_command("pgen", good, *words, "--genes", genes)
    _, err = hpcvdj_command("sharing", good, bad, *words, "--draws", "1000", code=2)
    assert error_line(err).endswith(message)
    hpcvdj_command("pgen", bad, *words, "--force")


@pytest.mark.olga
@pytest.mark.parametrize("name", ["human_trb", "human_tra", "human_igh", "human_igk", "mouse_trb", "mouse_tra"])
def test_junctions_of_the_other_strand(name):
    """They were taken for CDR3s."""
    model = load_model(name)
    table = rows_of(model, 900, productive=True)
    reverse = str.maketrans("ACGT", "TGCA")
    reversed_ = pa.array([text.translate(reverse)[::-1] for text in table["junction"].to_pylist()])
    table = table.set_column(table.column_names.index("junction"), "junction", reversed_)
    with pytest.raises(InputError, match="most are reverse complements of junctions: give the strand that begins with"):
        check_model(Checks(), sample_of_table(table, model, PgenConfig().reads(Reading())), model)


def test_one_table_of_cdr3s(tmp_path):
    """The others have junctions, and more rows."""
    model = load_model("human_trb_m15")
    table = rows_of(model, 1_500, productive=True)
    cut = pa.array([text[3:-3] for text in table["junction"].to_pylist()])
    tables = {"a.tsv": table, "b.tsv": table.set_column(2, "junction", cut).slice(0, 300)}
    for name, rows in tables.items():
        write_table(tmp_path / name, rows.to_batches(), overwrite=False)
    with pytest.raises(InputError, match=r"^b\.tsv: .* most do not begin with Cys 104 .* give junctions, not CDR3s"):
        check_tables(Checks(), [tables_of([tmp_path], PgenConfig().reads(Reading()))], model)


@pytest.mark.olga
@pytest.mark.parametrize("rows", [19, 20, 300])
def test_a_table_of_another_locus_is_refused_at_once(rows, model, tmp_path):
    """Each command said so several times, and wrote an empty table.  A single row of the locus is enough."""
    other, reading = rows_of(load_model("mouse_tra"), rows), PgenConfig().reads(Reading())
    tables = {"other": other, "mixed": pa.concat_tables([other, rows_of(model, 1)])}
    for name, table in tables.items():
        write_table(tmp_path / f"{name}.tsv", table.to_batches(), overwrite=False)
        inputs = tables_of([tmp_path / f"{name}.tsv"], reading)
        check_tables(Checks(force=True), [inputs], model)
        if name == "mixed" or rows < checking.FEWEST_TO_SAY:
            check_tables(Checks(), [inputs], model)
        else:
            text = f"^other.tsv: {rows} of {rows} rows have .* but mouse_tra.* Give their model; force=True goes on$"
            with pytest.raises(InputError, match=text):
                check_tables(Checks(), [inputs], model)
    alleles = renamed(rows_of(model, rows), "v_call", lambda call: f"{call.partition('*')[0]}*99")
    assert hpcvdj.pgen(alleles, model, backend="cpu")["pgen_excluded"].null_count == 0, "they are of its genes"


@pytest.mark.slow
@pytest.mark.olga
def test_one_table_of_another_species(tmp_path):
    """It is named, though most rows of the cohort fit."""
    model = load_model("human_trb")
    human, mouse = (rows_of(load_model(name), 2_000, productive=True) for name in ("human_trb", "mouse_trb"))
    tables = {"a.tsv": human, "b.tsv": human.slice(1_000), "mouse.tsv": mouse.slice(0, 400)}
    for name, table in tables.items():
        write_table(tmp_path / name, table.to_batches(), overwrite=False)
    inputs = tables_of([tmp_path], PgenConfig().reads(Reading()))
    with pytest.raises(InputError, match=r"^mouse.tsv: human_trb cannot make half or more of their rows.*force=True"):
        check_tables(Checks(), [inputs], model)
    fit = check_tables(Checks(force=True), [inputs], model)
    assert fit.tables == ("mouse.tsv",)
    assert fit.impossible < 0.5
    together = pa.concat_tables([table.append_column("repertoire_id", pa.array([name] * len(table)))
                                 for name, table in tables.items()])  # fmt: skip
    sample = sample_of_table(together, model, PgenConfig().reads(Reading()))
    assert check_fit(sample, model).tables == ("mouse.tsv",)
    (tmp_path / "mouse.tsv").unlink()
    assert check_tables(Checks(), [tables_of([tmp_path], PgenConfig().reads(Reading()))], model).tables == ()


@pytest.mark.olga
def test_some_rows_of_another_species():
    """Mouse genes that the human model lacks count, too: of human rows, few are unfit."""
    human, mouse = (rows_of(load_model(name), 700, productive=True) for name in ("human_trb", "mouse_trb"))
    model, question = load_model("human_trb"), "are they of another species or locus?"
    assert not any(question in line for line in fit_of(human, model).lines())
    mixed = fit_of(pa.concat_tables([human, mouse.slice(480)]), model)
    assert mixed.impossible < MANY_IMPOSSIBLE
    assert any(line.endswith(question) for line in mixed.lines())


def test_few_rows_are_not_judged(model):
    table, reading = rows_of(model, 150, productive=True), PgenConfig().reads(Reading())
    fit = fit_of(table, model)
    assert not fit.compared
    assert fit.rows == 150
    wrong = renamed(table, "junction", lambda text: "TGC" + text[3:-3].replace("T", "G") + "GGG")
    with warnings_said() as said:
        few = check_model(Checks(), sample_of_table(wrong.slice(0, 99), model, reading), model)
    assert few.impossible == 1
    assert any("100 % of" in line and "are impossible under the model" in line for line in said)
    with pytest.raises(InputError, match="100 % of"):
        check_model(Checks(), sample_of_table(wrong, model, reading), model)
    assert fit_of(wrong.slice(0, 19), model) == UNCHECKED


@pytest.mark.slow
def test_messages_have_an_end(model, monkeypatch):
    monkeypatch.setattr(checking, "MOST_LINES", 1)
    table = rows_of(model, 30_000)
    rare = ("TRBV5-1*01", "TRBV20-1*01", "TRBV7-2*01", "TRBV6-5*01", "TRBV7-3*01")
    few = pa.array([v not in rare or k % 40 == 0 for k, v in enumerate(table["v_call"].to_pylist())])
    with warnings_said() as said:
        check_model(Checks(), sample_of_table(table.filter(few), model, PgenConfig().reads(Reading())), model)
    assert len(said) == 3
    hidden = len(check_fit(sample_of_table(table.filter(few), model, PgenConfig().reads(Reading())), model).lines()) - 1
    assert said[-1] == f"findings about how {model.name} fits the rows that are not shown: {hidden}"


def test_wrong_options():
    with pytest.raises(InputError, match="ties must be one of none, auto"):
        Checks(ties="all")


@pytest.mark.slow
def test_a_large_table_is_sampled(model, monkeypatch):
    monkeypatch.setattr(checking, "SAMPLE", 500)
    table = rows_of(model, 2_000, productive=True)
    sample = sample_of_table(table, model, PgenConfig().reads(Reading()))
    assert sample.rows_read == 500
    assert check_fit(sample, model).rows == 500
    whole = read_table(table, model, PgenConfig().reads(Reading()))
    assert check_fit(whole, model).rows == 500


@pytest.mark.olga
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "mouse_trb"))
def test_calls_of_rows_that_a_model_is_inferred_from(name):
    """A model learned a fifth of wrong calls without a word."""
    model = load_model(name)
    table = rows_of(model, 8_000)
    for of, miscalled in ((table, 0), (renamed_rows(table, 5), 1_600)):
        fit = check_calls(sample_of_table(of, model, reading_for(InferenceSettings())).repertoire, model)
        assert fit.calls == len(table)
        # Another gene may make the junction nearly as well: V genes of human IGH end alike (70 are found, else 500).
        assert 0.03 * miscalled <= fit.miscalled <= miscalled
        assert len(fit.lines_of_calls()) == (miscalled > 0)


def test_findings_of_each_table_stay_below_its_heading(caplog, monkeypatch):
    """A finding that another table had, too, was dropped, and the others seemed to be of the table before."""
    monkeypatch.setattr(logging.root, "handlers", [caplog.handler])
    log = logging.getLogger("hpcvdj")
    with saying_once():
        for name, findings in (("a", ["x", "y"]), ("b", ["y", "z"]), ("a", ["x", "y"])):
            log.warning("of %s:", name)
            for finding in findings:
                log.warning("%s", finding, extra={"below": True})
    assert [record.getMessage() for record in caplog.records] == ["of a:", "x", "y", "of b:", "y", "z"]


def test_the_heading_names_the_tables_and_the_findings_are_below_it(model, monkeypatch):
    records = []
    monkeypatch.setattr(checking.log, "warning", lambda *words, **more: records.append((words, more)))
    fit = ModelFit(rows=900, impossible=0.2, compared=True)
    monkeypatch.setattr(checking, "check_fit", lambda *_: fit)
    sample = sample_of_table(rows_of(model, 100), model, PgenConfig().reads(Reading()))
    check_model(Checks(), sample, model, tables="a.tsv")
    (heading, first), (finding, second) = records[-2:]
    assert heading[0] % heading[1:] == (
        f"{model.name} does not fit all of 900 different rows of a.tsv that were compared with what it makes:"
    )
    assert "are impossible under the model" in finding[0] % finding[1:]
    assert (first, second) == ({}, {"extra": {"below": True}})
