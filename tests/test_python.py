"""The Python functions give what the commands give, for tables of pandas, polars and pyarrow and the path of one."""

import inspect
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv

import hpcvdj
from hpcvdj.cli import program
from hpcvdj.storage.folders import MARK
from tests.commands import hpcvdj_command
from tests.conftest import GERMLINE, ROOT, SMALL
from tests.recombination.igor_files import mouse_files, mouse_junctions

ROWS = 40
KINDS = ("pandas", "polars", "pyarrow", "path")


def text(path, table):
    csv.write_csv(table, path, csv.WriteOptions(delimiter="\t", quoting_style="none"))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("python")


@pytest.fixture(scope="module")
def path(folder):
    """Some rows of the example, one with a V gene that nobody knows, one without junction."""
    table = csv.read_csv(SMALL, parse_options=csv.ParseOptions(delimiter="\t")).slice(0, ROWS).to_pandas()
    table.loc[3, "v_call"] = "TRBV99"
    table.loc[5, "junction"] = ""
    return text(folder / "rows.tsv", pa.Table.from_pandas(table, preserve_index=False))


@pytest.fixture(scope="module")
def model(folder):
    return mouse_files().write(folder / "model")


@pytest.fixture(scope="module")
def modelled(folder, model):
    """Junctions of the model's genes."""
    return in_repertoires(folder / "modelled.tsv", mouse_junctions(hpcvdj.load_model(model), 60))


@pytest.fixture(scope="module")
def made(folder, model):
    """Junctions that the model makes."""
    rows = hpcvdj.generate(model, 60, seed=1).select(["v_call", "j_call", "junction"]).to_pylist()
    return in_repertoires(folder / "made.tsv", [tuple(row.values()) for row in rows])


def in_repertoires(path, rows):
    """A table of 60 rows, the first ones again in another repertoire, and again in the same."""
    rows += rows[:9] + rows[:5]
    columns = dict(zip(("v_call", "j_call", "junction"), zip(*rows, strict=True), strict=True))
    columns["repertoire_id"] = ["a"] * 60 + ["b"] * 9 + ["a"] * 5
    return text(path, pa.table({"sequence_id": [f"s{k}" for k in range(len(rows))], **columns}))


def given(path, kind):
    """A table as a user has it."""
    if kind == "polars":
        return pytest.importorskip("polars").read_csv(path, separator="\t")
    if kind == "pandas":
        return pd.read_csv(path, sep="\t").set_index(pd.Index(range(100, 100 + len(pd.read_csv(path, sep="\t")))))
    return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t")) if kind == "pyarrow" else path


def require_kind(table, original):
    assert isinstance(table, pa.Table if isinstance(original, Path) else type(original))
    if isinstance(original, pd.DataFrame):
        assert table.index.equals(original.index)


def columns(table):
    """The columns as Python values, None for what is missing."""
    if isinstance(table, pd.DataFrame):
        return {name: [None if pd.isna(value) else value for value in table[name].tolist()] for name in table}
    arrow = table if isinstance(table, pa.Table) else table.to_arrow()
    return {name: arrow[name].to_pylist() for name in arrow.column_names}


def same_values(found, expected, prefixes):
    """The columns with these prefixes, in which a text is a number as the command writes it."""
    found, expected = columns(found), columns(expected)
    names = [name for name in found if name.startswith(prefixes)]
    assert len(names) > 1
    assert names == [name for name in expected if name.startswith(prefixes)]
    for name in names:
        assert [value or None for value in found[name]] == [value or None for value in expected[name]], name


@pytest.mark.filterwarnings("ignore::hpcvdj.HpcvdjWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_count(path, kind, tmp_path):
    table = given(path, kind)
    found = hpcvdj.count(table, GERMLINE, max_n=3)
    hpcvdj_command("count", path, "-g", GERMLINE, "--max-n", 3, "-o", tmp_path / "o.parquet")
    require_kind(found, table)
    same_values(found, pa.parquet.read_table(tmp_path / "o.parquet"), ("pathways", "weight"))
    assert columns(found)["pathways_excluded"][3] == "V gene TRBV99 is not in the germline table"
    assert columns(found)["pathways_excluded"][5] == "no junction"


@pytest.mark.filterwarnings("ignore::hpcvdj.HpcvdjWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_pgen(modelled, model, kind, tmp_path):
    table = given(modelled, kind)
    found = hpcvdj.pgen(table, model, mismatches=1)
    hpcvdj_command("pgen", modelled, "-m", model, "--mismatches", 1, "-o", tmp_path / "o.parquet")
    require_kind(found, table)
    same_values(found, pa.parquet.read_table(tmp_path / "o.parquet"), "pgen")


def test_pgen_of_a_series(modelled, model):
    polars = pytest.importorskip("polars")
    junctions = given(modelled, "pandas")["junction"]
    expected = hpcvdj.pgen(junctions, model, genes="any")
    assert expected["pgen_nt"].null_count == 0
    for same in (junctions.tolist(), polars.Series(junctions.tolist())):
        assert hpcvdj.pgen(same, model, genes="any").equals(expected)


@pytest.mark.filterwarnings("ignore::hpcvdj.HpcvdjWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_infer(made, model, kind, folder, tmp_path):
    fit = hpcvdj.infer(given(made, kind), model, rows="all", hold_out=0.0, iterations=2)
    target = folder / "inferred"
    if not target.exists():
        options = ("--rows", "all", "--hold-out", 0, "--iterations", 2)
        hpcvdj_command("infer", made, "-m", model, *options, "-o", target)
    hpcvdj.write_model(fit.model, tmp_path / "own")
    # The mark lists what else the command writes.
    files = [
        path for path in (tmp_path / "own").rglob("*") if path.is_file() and path.name not in (MARK, "origin.json")
    ]
    assert len(files) > 2
    # The command writes more than that.
    assert hpcvdj.load_model(tmp_path / "own").origin == hpcvdj.load_model(target).origin
    for file in files:
        assert file.read_bytes() == (target / file.relative_to(tmp_path / "own")).read_bytes(), file.name


def test_generate_and_simulate(model, tmp_path):
    hpcvdj_command("generate", "-m", model, "-n", 30, "--seed", 4, "-o", tmp_path / "g.parquet")
    assert hpcvdj.generate(model, 30, seed=4).equals(pa.parquet.read_table(tmp_path / "g.parquet"))
    options = ("--n-lengths", "0-3", "--productive")
    hpcvdj_command("simulate", "-g", GERMLINE, "-n", 30, "--seed", 4, *options, "-o", tmp_path / "s.tsv")
    made = hpcvdj.simulate(GERMLINE, 30, seed=4, n_lengths=range(4), productive=True)
    assert made.equals(hpcvdj.read_table(tmp_path / "s.tsv").cast(made.schema))
    assert made.schema.field("n1_length").type == pa.int64()


def test_report(tmp_path):
    for k in (1, 2):
        text(tmp_path / f"{k}.tsv", given(SMALL, "pyarrow").slice(100 * k, 200))
    results = [tmp_path / "counts" / "1.h5", tmp_path / "counts" / "2.h5"]
    tables = [tmp_path / "1.tsv", tmp_path / "2.tsv"]
    hpcvdj_command("count", *tables, "-g", GERMLINE, "--max-n", 2, "-o", tmp_path / "counts")
    for library in ("itables", "jinja2", "networkx", "vl_convert"):
        pytest.importorskip(library)
    drawn = hpcvdj.report(results, tmp_path / "page.html", name=["a", "b"])
    out, _ = hpcvdj_command("report", *results, "--name", "a", "--name", "b", "-o", tmp_path / "c.html")
    assert f"figures    {drawn}" in out
    hpcvdj.report(results[0], tmp_path / "page.html", overwrite=True)
    with pytest.raises(hpcvdj.InputError, match="nothing to report; give outputs of hpcvdj"):
        hpcvdj.report([], tmp_path / "none.html")
    with pytest.raises(hpcvdj.InputError, match="overwrite=True to replace it"):
        hpcvdj.report(results[0], tmp_path / "page.html")


@pytest.mark.parametrize("kind", KINDS)
def test_motifs(kind, path, folder):
    options = {"k": 8, "d": 1, "score": "cosine", "min_score": 0.3}
    flags = ("-k", 8, "-d", 1, "--score", "cosine", "--min-score", 0.3, "--strands", "both")
    target = folder / "motifs.h5"
    if not target.exists():
        hpcvdj_command("motifs", "compare", path, *flags, "-o", target)
        clusters = ("--algorithm", "components", "--min-size", 2, "--min-score", 0.4)
        hpcvdj_command("motifs", "cluster", target, *clusters, "-o", folder / "clusters.parquet")
    with hpcvdj.motifs.compare(given(path, kind), strands="both", **options) as found:
        with hpcvdj.motifs.MotifResult(target) as expected:
            assert found.to_table().equals(expected.to_table())
            assert len(expected.to_table()) > 5
        clustered = hpcvdj.motifs.cluster(found, algorithm="components", min_size=2, min_score=0.4)
        assert f"{ROWS - 1} sequences, k=8, d=1" in repr(found)
    # Sequences that came from memory have no table with their genes.
    written = pa.parquet.read_table(folder / "clusters.parquet")
    assert clustered.equals(written.select(clustered.column_names))
    assert clustered.num_columns == (9 if kind == "path" else 5)
    assert clustered["cluster"].to_numpy().max() > 0


def test_motifs_of_texts_and_to_a_file(tmp_path):
    sequences = ["ACGTACGTAA", "ACGTACGTAC", "GGGGGGGGGG"]
    with hpcvdj.motifs.compare(sequences, tmp_path / "o.h5", k=4, d=0) as found:
        assert found.names == ["1", "2", "3"]
        assert found.counters()[0, 0, 1] > 0 == found.counters()[0, 0, 2]
    fasta = tmp_path / "s.fa"
    fasta.write_text("".join(f">{k}\n{text}\n" for k, text in enumerate(sequences, start=1)))
    with hpcvdj.motifs.compare(str(fasta), k=4, d=0) as same, hpcvdj.motifs.MotifResult(tmp_path / "o.h5") as written:
        assert np.array_equal(same.counters(), written.counters())
    with pytest.raises(hpcvdj.InputError, match="overwrite=True"):
        hpcvdj.motifs.compare(sequences, tmp_path / "o.h5", k=4, d=0)
    assert repr(same) == f"<closed MotifResult of {same.path}>"


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_read_table(path, kind, tmp_path):
    pytest.importorskip(kind)
    table = hpcvdj.read_table(path, kind=kind)
    assert type(table).__module__.partition(".")[0] == kind
    own, expected = columns(table), columns(given(path, "pyarrow"))
    assert own.pop("productive") == [value == "T" for value in expected.pop("productive")]
    for name, values in expected.items():
        assert [value or None for value in own[name]] == [value or None for value in values], name
    vdjtools = tmp_path / "cdr3.csv"
    vdjtools.write_text(
        "id,v,j,seq,reads,in_frame,note\n7,TRBV5,TRBJ2-5,TGTGCCAGCTTT,12,T,\n8,TRBV5,TRBJ2-5,TGTTTT,,F,x\n"
    )
    names = {"sequence_id": "id", "v_call": "v", "j_call": "j", "junction": "seq"}
    read = columns(hpcvdj.read_table(vdjtools, columns=names, kind=kind))
    assert read["sequence_id"] == ["7", "8"]
    assert read["reads"] == [12, None]
    assert read["in_frame"] == [True, False]
    assert read["note"] == ["", "x"]


def test_what_a_table_lacks_is_named_with_its_remedy(tmp_path):
    (tmp_path / "t.tsv").write_text("v_call\tj_call\tseq\nTRBV5\tTRBJ2-5\tTGTTTT\n")
    with pytest.raises(hpcvdj.InputError) as error:
        hpcvdj.count(tmp_path / "t.tsv", GERMLINE)
    assert "t.tsv, line 1: no column junction" in str(error.value)
    assert "hpcvdj.read_table: columns={'junction': 'COLUMN'}" in str(error.value)
    with pytest.raises(hpcvdj.InputError, match=r"format must be one of .*airr"):
        hpcvdj.read_table(SMALL, format="nothing")
    with pytest.raises(hpcvdj.InputError, match="kind must be one of pyarrow, pandas, polars"):
        hpcvdj.read_table(SMALL, kind="numpy")


def test_names_of_what_comes_with_hpcvdj():
    assert hpcvdj.germline("mouse_trb_paper").digest() == hpcvdj.read_germline(GERMLINE).digest()
    assert hpcvdj.germline("mouse_trb", max_p=2).max_p == 2
    assert {"human_trb", "mouse_trb"} <= hpcvdj.germlines().keys()
    for name, place in hpcvdj.models().items():
        assert place.is_dir(), name
    assert hpcvdj.germline(hpcvdj.germline(GERMLINE)).name == str(GERMLINE)


def messages(function, *arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments, **options)
    own = [warning for warning in caught if warning.category is hpcvdj.HpcvdjWarning]
    assert all(warning.filename == __file__ for warning in own)
    return [str(warning.message) for warning in own]


def test_warnings(path):
    table = given(path, "pandas")
    assert messages(hpcvdj.count, table.drop(index=[103, 105]), GERMLINE, max_n=1) == []
    (line,) = messages(hpcvdj.count, table, GERMLINE, max_n=1)
    assert line == (
        "2 of 40 rows excluded: 1 V gene TRBV99 is not in the germline table, 1 no junction; the column "
        "pathways_excluded says why"
    )
    ambiguous = table.assign(v_call="TRBV5,TRBV1")
    excluded, species = messages(hpcvdj.count, ambiguous.head(4), GERMLINE, max_n=1), "TRBV5"
    assert excluded == [
        "no row could be used: 4 of 4 rows excluded: 4 ambiguous V call TRBV5,TRBV1 (ambiguous_calls='first' keeps "
        "them); the column pathways_excluded says why"
    ]
    (replaced,) = messages(hpcvdj.count, ambiguous.head(4), GERMLINE, max_n=1, ambiguous_calls="first")
    assert replaced == f"1 call(s) replaced in 4 rows, such as TRBV5,TRBV1 by {species}*01 in 4"


def test_another_species_is_noticed(path):
    """As the command does: the table of the rows' species is named."""
    excluded, species = messages(hpcvdj.count, given(path, "pandas"), "human_trb", max_n=1)
    assert re.match(r"\d+ of 40 rows excluded: \d+ V gene", excluded)
    assert re.search(r"mouse_trb lists those of \d+: are the rows of that species or locus\?", species)


def test_errors_name_parameters(path):
    for options, message in (
        ({"max_n": -1}, "max_n=-1: give a number from 0 to 128, or all"),
        ({"strict": True}, "leave strict out to exclude and list such rows"),
    ):
        with pytest.raises(hpcvdj.InputError, match=re.escape(message)):
            hpcvdj.count(path, GERMLINE, **options)
    with pytest.raises(hpcvdj.InputError, match="give a model to start from or a germline table, one of the two"):
        hpcvdj.infer(path)
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_m'"):
        hpcvdj.simulate(GERMLINE, 3, max_m=1)
    with pytest.raises(hpcvdj.InputError, match="max_pgen=3: give a finite number above 0, at most 1e-06"):
        hpcvdj.contamination([path], "human_trb", max_pgen=3)


MESSAGES = re.compile(r'(?:Error|warn)\w*\(\s*((?:f?"(?:[^"\\]|\\.)*"\s*)+)', re.DOTALL)


def test_messages_name_options_as_their_caller_does():
    """`option("max_n")` is --max-n for the commands: no message has the words of one of them."""
    messages = 0
    for source in (ROOT / "hpcvdj").rglob("*.py"):
        for match in () if "cli" in source.parts else MESSAGES.finditer(source.read_text()):
            messages += 1
            # A command that is quoted has its options.
            words = re.sub(r"`[^`]+`( with --\w+)?|srun --\w+", "", match[1])
            assert not re.search(r"--[a-z]", words), (source, match[1])
    assert messages > 300


COMMANDS = ("count", "pgen", "infer", "generate", "simulate", "enrich", "sharing", "contamination", "report")
NOT_IN_PYTHON = {
    "together", "format", "columns", "threads_per_block", "strict_binding", "threads", "resume", "batch_rows",
    "checkpoint_every", "patience", "output", "overlap", "junctions_out", "write_clean", "plot", "overwrite",
}  # fmt: skip
"""Options for files, ranks and runs; a table in memory has its columns, and figures are drawn from what is returned."""

OF_THE_GERMLINE = {"max_p", "d_alleles"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_defaults_are_those_of_the_command(name):
    command = next(own.callback for own in program().registered_commands if own.name == name)
    own = inspect.signature(getattr(hpcvdj, name)).parameters
    for option, parameter in inspect.signature(command).parameters.items():
        if option in NOT_IN_PYTHON | OF_THE_GERMLINE:
            continue
        assert option in own, (name, option)
        default, expected = own[option].default, parameter.default
        if option in ("max_n", "n_lengths", "only", "fix", "germline", "name", "model"):
            continue  # A text on the command line, or several.
        assert default == expected, (name, option)


def test_help_is_complete():
    """Every parameter of every function has an entry, and no placeholder is left."""
    functions = {name: getattr(hpcvdj, name) for name in hpcvdj.__all__ if inspect.isfunction(getattr(hpcvdj, name))}
    for name, function in {**functions, "cluster": hpcvdj.motifs.cluster, "compare": hpcvdj.motifs.compare}.items():
        doc = inspect.getdoc(function)
        listed = {own for names in re.findall(r"^(\w+(?:, \w+)*)  +\S", doc, re.MULTILINE) for own in names.split(", ")}
        parameters = set(inspect.signature(function).parameters) - {"options", "between"}
        assert parameters <= listed or len(parameters) == 1 or not parameters, (name, parameters - listed)
        assert not re.search(r"^(\w+  +)?\{\w+\}$", doc, re.MULTILINE), name
        assert all(len(line) <= 120 for line in doc.splitlines()), name


def test_functions_can_be_sent_to_other_processes():
    for function in (hpcvdj.count, hpcvdj.open, hpcvdj.motifs.compare):
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("wrong", [5, 1.5, b"\xff", "\ud800"])
def test_sequences_that_are_no_text_are_refused(model, wrong):
    with pytest.raises(hpcvdj.InputError, match=r"^the sequences are not all text \(.*\); give each as text$"):
        hpcvdj.pgen(["TGTGCCTTC", wrong], model, genes="any")


@pytest.mark.parametrize("wrong", [None, 5, []])
def test_a_result_is_opened_by_its_path(wrong):
    with pytest.raises(hpcvdj.InputError, match=f"by its path, not by {re.escape(repr(wrong))}$"):
        hpcvdj.open(wrong)


def test_a_closed_result_says_so(path, tmp_path):
    hpcvdj_command("count", path, "-g", GERMLINE, "--max-n", 2, "-o", tmp_path / "o.h5")
    with hpcvdj.open(tmp_path / "o.h5") as result:
        counters, chosen = result.counters, result.all()
    for name in ("excluded", "pairs", "repertoires", "row", "max_n", "to_table", "all"):
        with pytest.raises(hpcvdj.InputError, match=r"o\.h5: is closed; open it again"):
            getattr(result, name)()
    for use in (lambda: len(result), chosen.to_table, lambda: counters[:]):
        with pytest.raises(hpcvdj.InputError, match=" is closed; open it again"):
            use()


def test_reprs(path, tmp_path, model):
    hpcvdj_command("count", path, "-g", GERMLINE, "--max-n", 2, "-o", tmp_path / "o.h5")
    with hpcvdj.open(tmp_path / "o.h5") as result:
        assert repr(result) == f"<Result of {tmp_path / 'o.h5'}: 38 sequences, n-lengths 0-2; 2 rows excluded>"
        reasons = "1 V gene that is not in the germline table, 1 no junction"
        assert repr(result.excluded) == f"<2 excluded rows: {reasons}>"
    assert repr(result) == f"<closed Result of {tmp_path / 'o.h5'}>"
    germline = hpcvdj.read_germline(GERMLINE)
    assert repr(germline) == f"<Germline {GERMLINE}: TRB; 20 V, 2 D, 12 J; max_p=4, d_alleles='first'>"
    assert repr(hpcvdj.load_model(model)).startswith(f"<Model {model}: ")
    assert len(repr(hpcvdj.load_model(model))) < 200


def test_a_missing_dependency_is_named():
    """Not "has no attribute": who installed without it must read its name."""
    program = "import sys; sys.modules['pyarrow'] = None; import hpcvdj; hpcvdj.pgen"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of pyarrow")
