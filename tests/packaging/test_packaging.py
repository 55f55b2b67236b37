"""Recipes and modules for other systems: what they ask of hpcvdj exists, and their commands run."""

import configparser
import re
import shlex
import sys
import types
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import hpcvdj
from hpcvdj.recombination.igor import OLGA_FOLDERS, model_folders
from tests.commands import hpcvdj_command
from tests.conftest import ROOT
from tests.test_options import COMMANDS

FOLDER = ROOT / "packaging"
FILES = [path for path in sorted(FOLDER.rglob("*")) if path.is_file() and path.suffix not in (".md", ".tsv")]
DATA = FOLDER / "test-data"
CONDA_NAMES = {"isal": "python-isal"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_commands_have_the_options_that_are_given(path):
    """A renamed option would break every pipeline."""
    text = re.sub(r"\\\n|\"\n\s*\"", " ", path.read_text())
    for part in re.split(r"\bhpcvdj (?=[a-z])", text)[1:]:
        name, given = f"hpcvdj {part.split()[0]}", re.findall(r"(?<![\w-])--[a-z][\w-]*", part.split("\n\n")[0])
        if name in COMMANDS:
            known = {word for parameter in COMMANDS[name].params for word in parameter.opts}
            # What Docker and Apptainer take.
            own = [word for word in given if word not in ("--rm", "--gpus", "--build-arg", "--nv", "--mpi", "--ntasks")]
            assert not set(own) - known, path


def test_the_recipe_needs_what_the_package_needs():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    needed = config["options"]["install_requires"] + config["options.extras_require"]["report"]
    wanted = {}
    for line in needed.split("\n"):
        if found := re.match(r"([\w.-]+)(?:\[.*?\])? *([^;]*)", line.strip()):
            wanted[CONDA_NAMES.get(found[1], found[1])] = found[2].replace(" ", "")
    recipe = (FOLDER / "bioconda" / "meta.yaml").read_text()
    run = recipe.split("  run:\n", 1)[1].split("\n\n")[0]
    listed = {found[1]: found[2] for found in re.finditer(r"    - ([\w-]+) ?(\S*)\n?", f"{run}\n")}
    assert listed.pop("python") == config["options"]["python_requires"]
    assert listed == wanted


def test_all_have_this_version():
    found = {
        path: re.findall(r"(?:version = \"|hpcvdj ?=+|hpcvdj:|TOOL_VERSION@\">)(\d+\.\d+\.\d+)", path.read_text())
        for path in FILES
    }
    told = {path: versions for path, versions in found.items() if versions}
    assert len(told) > 7
    assert {version for versions in told.values() for version in versions} == {hpcvdj.__version__}


@pytest.mark.parametrize("path", sorted((FOLDER / "galaxy").glob("hpcvdj_*.xml")), ids=lambda path: path.stem)
def test_galaxy_tools(path):
    tool = ElementTree.parse(path).getroot()
    command = tool.findtext("command")
    params = [param.get("name") or param.get("argument").strip("-").replace("-", "_") for param in tool.iter("param")]
    inputs = params[: len(tool.findall("inputs//param"))]
    assert all(f"${name}" in command for name in inputs)
    macros = ElementTree.parse(path.with_name("macros.xml")).getroot()
    models = [option.get("value") for option in macros.findall(".//option")]
    assert set(models) <= {*OLGA_FOLDERS, *model_folders()}
    # Each file that a test names is there.
    for value in (param.get("value") for param in tool.findall("tests//param")):
        assert not value.endswith(".tsv") or (DATA / value).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pgen", "enrich", "annotate"])
def test_wrappers_of_snakemake_write_what_they_say(name, tmp_path, monkeypatch):
    folder = FOLDER / "snakemake" / name
    called = []
    shell = types.ModuleType("snakemake.shell")
    workflow = SimpleNamespace(
        input=SimpleNamespace(tables=DATA / "repertoire.tsv", database=DATA / "records.tsv"),
        output=SimpleNamespace(table=tmp_path / "out.tsv", folder=tmp_path / "out"),
        params=SimpleNamespace(model="human_trb_m15", get=lambda name, default: "--backend cpu --force"),
        threads=1,
        log_fmt_shell=lambda **streams: "",
    )
    shell.shell = lambda text: called.append(text.format(snakemake=workflow, extra="--backend cpu --force", log=""))
    monkeypatch.setitem(sys.modules, "snakemake", types.ModuleType("snakemake"))
    monkeypatch.setitem(sys.modules, "snakemake.shell", shell)
    exec(compile((folder / "wrapper.py").read_text(), "wrapper.py", "exec"), {"snakemake": workflow})
    (command,) = called
    program, *words = shlex.split(command)
    assert program == "hpcvdj"
    hpcvdj_command(*words, *(() if name == "pgen" else ("--kappa", "1")))
    assert (tmp_path / ("out" if name == "annotate" else "out.tsv")).exists()


@pytest.mark.parametrize("name", ["pgen", "enrich", "annotate"])
def test_modules_of_nextflow_describe_their_channels(name):
    folder = FOLDER / "nf-core" / name
    module, about = (folder / "main.nf").read_text(), (folder / "meta.yml").read_text()
    channels = re.findall(r"emit: (\w+)", module)
    assert len(channels) >= 3
    described = about.split("\noutput:\n")[1]
    assert all(re.search(rf"^  {channel}:$", described, re.MULTILINE) for channel in channels)
    assert module.count("{") == module.count("}")
    assert f"process HPCVDJ_{name.upper()} " in module
    assert f'process "HPCVDJ_{name.upper()}"' in (folder / "tests" / "main.nf.test").read_text()
