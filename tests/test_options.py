"""Each option is declared once; the command line, the Python functions and their texts have what is declared."""

import doctest
import inspect
import re
import typing

import pytest
import typer.main

import hpcvdj
from hpcvdj.api import analysis, cohorts, counting, models, motifs, neighbours, probabilities, results, tables
from hpcvdj.api.parameters import OPTIONS
from hpcvdj.cli import program
from hpcvdj.cli.common import OUTPUTS, TABLE_OUT
from hpcvdj.errors import InputError, OptionError, speaking_shell
from hpcvdj.options import Settings, declared
from tests.commands import error_line, hpcvdj_command
from tests.conftest import ROOT, SMALL

MODULES = (analysis, cohorts, counting, models, motifs, neighbours, probabilities, results, tables)

PYTHON_ALSO = {dict[str, str] | None: typing.get_type_hints(tables.convert)["columns"]}
"""What Python functions take for the type of a setting: any mapping for a dict."""


def commands(command=None, name="hpcvdj"):
    """Every command that has no commands below it, by its words."""
    command = command or typer.main.get_command(program())
    for word, own in getattr(command, "commands", {}).items():
        yield from commands(own, f"{name} {word}") if hasattr(own, "commands") else [(f"{name} {word}", own)]


COMMANDS = dict(commands())


def with_options():
    """The functions that have options, with the settings that declare them."""
    for name, settings in OPTIONS.items():
        module, _, function = name.rpartition(".")
        own = next((each for each in MODULES if each.__name__ == module), None)
        if settings and own is not None:
            yield pytest.param(getattr(own, function), settings, id=function)


def test_functions_with_options_are_among_those_that_are_checked():
    assert len(list(with_options())) > 12


@pytest.mark.parametrize(("function", "settings"), [*with_options()])
def test_signatures_are_those_of_the_settings(function, settings):
    parameters, hints = inspect.signature(function).parameters, typing.get_type_hints(function)
    for kind in settings:
        for name, own in declared(kind).items():
            if not own.option.python:
                continue
            assert parameters[name].default == own.default, name
            if own.kind is not typing.Any:
                assert hints[name] == PYTHON_ALSO.get(own.kind, own.kind), name
            assert re.search(rf"^ *{name}  +\S", function.__doc__, re.MULTILINE), name
    assert "{" not in re.sub(r"\{[^{}]*[\":][^{}]*\}|_n\{max_n\}", "", function.__doc__)


def all_settings(base=Settings):
    for own in base.__subclasses__():
        yield own
        yield from all_settings(own)


@pytest.mark.parametrize("settings", [own for own in all_settings() if own.__module__.startswith("hpcvdj.")])
def test_numbers_out_of_bounds(settings):
    """Just outside each bound there is an error of this option; at a bound that can be reached there is none."""
    for name, own in declared(settings).items():
        option = own.option
        for bound, step, reached in (
            (option.least, -1, True), (option.most, 1, True), (option.above, -1, False), (option.below, 1, False),
        ):  # fmt: skip
            if bound is None:
                continue
            value = bound + step if reached else bound
            with pytest.raises(OptionError) as raised:
                own.require(value)
            assert raised.value.option == name
            assert str(raised.value).startswith(f"{name}={value!r}: give ")
            with speaking_shell(), pytest.raises(OptionError, match=r"^--?[a-z]") as raised:
                own.require(value)
            assert not option.flags or str(raised.value).split()[0] in option.flags.split()
            if reached:
                own.require(own.type(bound))


def test_one_message_for_the_shell_and_for_python(tmp_path):
    for words, options, message in (
        (("--min-individuals", "0"), {"min_individuals": 0}, ": give at least 1"),
        (("--draws", "12"), {"draws": 12}, ": give a number from 1,000 to 100,000,000"),
        (("--q", "1.5"), {"q": 1.5}, ": give a number from 0.001 to 1"),
        (("--unit", "cdr3"), {"unit": "cdr3"}, " must be one of nt, vj-aa, aa (got 'cdr3')"),
        (("--group", "arm"), {"group": "arm"}, None),
    ):
        _, err = hpcvdj_command("sharing", tmp_path, "-m", "human_trb", "-o", tmp_path / "o.tsv", *words, code=2)
        (name, value), flag = next(iter(options.items())), words[0]
        with pytest.raises(InputError) as raised:
            hpcvdj.sharing([tmp_path], "human_trb", **options)
        if message is None:
            assert error_line(err).endswith("--group arm: needs --metadata, the table that has this column")
            assert str(raised.value) == "group='arm': needs metadata, the table that has this column"
            continue
        first = "" if "must be" in message else f" {value}"
        assert error_line(err) == f"hpcvdj: error: {flag}{first}{message}"
        assert str(raised.value) == (name if "must be" in message else f"{name}={value!r}") + message


def test_what_is_no_number(tmp_path):
    _, err = hpcvdj_command("sharing", tmp_path, "-m", "x", "-o", tmp_path / "o.tsv", "--draws", "many", code=2)
    assert error_line(err).endswith("--draws many: give a number from 1,000 to 100,000,000")
    _, err = hpcvdj_command("infer", SMALL, "-m", "human_trb_m15", "-o", tmp_path / "o", "--prior", "many", code=2)
    assert error_line(err).endswith("--prior many: give a number, at least 0")
    _, err = hpcvdj_command("infer", SMALL, "-m", "human_trb_m15", "-o", tmp_path / "o", "--bootstrap", "1", code=2)
    assert error_line(err).endswith("--bootstrap 1: give 2 or more, as one draw has no standard deviation, or 0")
    _, err = hpcvdj_command("convert", SMALL, "-o", tmp_path / "o.tsv", "--columns", "junction", code=2)
    assert "--columns junction: give FIELD=COLUMN, each field once, as in" in error_line(err)
    twice = "v_call=v_call,v_call=j_call"
    _, err = hpcvdj_command("convert", SMALL, "-o", tmp_path / "o.tsv", "--columns", twice, code=2)
    assert f"--columns {twice}: give FIELD=COLUMN, each field once, as in" in error_line(err)


def test_a_misspelled_field(tmp_path):
    _, err = hpcvdj_command("convert", SMALL, "-o", tmp_path / "o.tsv", "--columns", "duplicate_cuont=v_call")
    assert "--columns duplicate_cuont: no field that is read; is duplicate_count meant?" in err
    fields = "c_call,d2_call,cdr1_aa,sequence_alignment_aa,germline_alignment_aa,c_cigar,d2_cigar,j_identity,mine"
    given = ",".join(f"{field}=v_call" for field in fields.split(","))
    _, err = hpcvdj_command("convert", SMALL, "-o", tmp_path / "p.tsv", "--columns", given)
    assert "no field that is read" not in err


@pytest.mark.parametrize("words", COMMANDS)
def test_every_output_is_known_as_one(words):
    """Else it could be a file that the command reads, which it would replace."""
    written = {each.name for each in COMMANDS[words].params if each.metavar in (TABLE_OUT, "FIGURE")}
    assert written <= set(OUTPUTS)


@pytest.mark.parametrize("words", COMMANDS)
def test_the_help_fits_a_screen(words):
    out, _ = hpcvdj_command(*words.split()[1:], "--help", columns=100)
    assert len(out.splitlines()) <= 45
    usage = out.splitlines()[0]
    for own in COMMANDS[words].params:
        if own.required and own.param_type_name == "option":
            assert f" {min(own.opts, key=len)} {own.metavar}" in usage
    everything, _ = hpcvdj_command(*words.split()[1:], "--help-all", columns=100)
    for own in COMMANDS[words].params:
        name = max(own.opts, key=len) if own.param_type_name == "option" else own.metavar
        assert name in out
        assert re.search(rf"^  .*{re.escape(name)}", everything, re.MULTILINE)


def test_formats_are_listed():
    out, _ = hpcvdj_command("formats")
    assert re.search(r"^ *airr +AIRR Rearrangement", out, re.MULTILINE)
    assert re.search(r"^ *10x_all +10x contigs", out, re.MULTILINE)
    assert "migec" not in out


WRONG = (
    'hpcvdj.sharing(["a"], "human_trb", units="aa")',
    'hpcvdj.sharing(["a"], "human_trb", unit="bb")',
    'hpcvdj.contamination(["a"], "human_trb", max_pgen="small")',
    'hpcvdj.count("a", "human_trb", max_n="al")',
    'hpcvdj.pgen("a", "human_trb", genes="some")',
    'hpcvdj.enrich("a", "human_trb", max_q=None)',
    'hpcvdj.infer("a", "human_trb", rows="some")',
    'hpcvdj.infer_selection("a", "human_trb", rows=3)',
    'hpcvdj.generate("human_trb", seed="1")',
    'hpcvdj.simulate("human_trb", n_lengths="0-3")',
    'hpcvdj.motifs.compare("a", top=0.5)',
    'hpcvdj.motifs.cluster("a", algorithm="leiden")',
    'hpcvdj.report("a", "b.html", group=3)',
    'hpcvdj.germline("human_trb", d_alleles="some")',
)


def python_of(page):
    """The Python of a page's blocks, one after the other; of examples with `>>>` what is typed."""
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        if block.startswith(">>>"):
            examples = [own for own in doctest.DocTestParser().get_examples(block) if own.exc_msg is None]
            block = "".join(own.source for own in examples)
        yield block


PREAMBLE = "from typing import Any\nimport hpcvdj\ntable: Any\njunctions: Any\nadata: Any\n"
"""What examples take for granted."""


@pytest.mark.slow
def test_types_of_the_examples_in_the_documentation(tmp_path):
    """mypy accepts all examples of calls, and rejects wrong names and types of arguments.

    Of union-attr it says that an example takes for granted that a gene is there.  It stays enabled, since with other
    options mypy would check the package once more.
    """
    api = pytest.importorskip("mypy.api")
    files = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        code = "\n".join(block for block in python_of(page) if re.search(r"\bhpcvdj\.\w", block))
        if code:
            files.append(tmp_path / f"page_{page.stem}.py")
            files[-1].write_text(f"{PREAMBLE}{code}")
    assert len(files) > 8
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import hpcvdj\n" + "\n".join(WRONG) + "\n")
    out, err, _ = api.run(["--config-file", str(ROOT / "pyproject.toml"), *map(str, [*files, wrong])])
    assert not err
    faults = re.findall(r"(\w+)\.py:(\d+): error: (?!.*\[union-attr\]$)(.*)", out, re.MULTILINE)
    assert [own for own in faults if own[0] != "wrong"] == []
    assert {int(line) for _, line, _ in faults} == set(range(2, len(WRONG) + 2)), out
