"""The commands of pages run in order and print exactly what the page shows below them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"

INFERENCE = ROOT / "docs" / "infer.md"

EXAMPLES = ROOT / "docs" / "examples.md"

STEP = re.compile(r"^```sh\n(.*?)^```\n(?:\n((?:    [^\n]*\n|\n(?=    ))+))?", re.MULTILINE | re.DOTALL)
"""A block of commands and, if it prints something, the indented block below it."""

END_OF_STEP = "--- end of step ---"

OMITTED = "…"

DIFFERS_BY_MACHINE = ("method ", "time ")
"""Lines that start with these words differ from machine to machine."""


def steps(text):
    """(commands, expected lines) of each block."""
    for commands, output in STEP.findall(text):
        yield commands, [line.removeprefix("    ") for line in output.splitlines()]


def comparable(lines):
    """The lines without what differs from machine to machine."""
    return [next((start for start in DIFFERS_BY_MACHINE if line.startswith(start)), line.rstrip()) for line in lines]


def sections(lines):
    """The lines, divided where some are omitted."""
    divided = [[]]
    for line in lines:
        if line == OMITTED:
            divided.append([])
        else:
            divided[-1].append(line)
    return divided


def require_what_is_shown(blocks, folder):
    """Run the commands of all blocks in one shell, in a folder with the inputs; they print what is expected."""
    (folder / "inputs").symlink_to(ROOT / "inputs")
    script = "".join(f"{commands}echo '{END_OF_STEP}'\n" for commands, _ in blocks)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Tests that run beside each other get a terminal of 80 columns.
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"PATH": path}
    done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    outputs = done.stdout.split(f"{END_OF_STEP}\n")
    for (commands, expected), output in zip(blocks, outputs, strict=False):
        lines = comparable(output.splitlines())
        for section in sections(comparable(expected)):
            starts = [k for k in range(len(lines) - len(section) + 1) if lines[k : k + len(section)] == section]
            assert starts, f"{commands}\nprints\n{output}\nwithout\n" + "\n".join(section)
            lines = lines[starts[0] + len(section) :]
        assert OMITTED in expected or not lines, f"{commands}\nprints more than the page shows:\n{lines}"


@pytest.mark.exhaustive
@pytest.mark.olga
@pytest.mark.timeout(240)
def test_the_tutorial_prints_what_it_shows(tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    install, *rest = steps(TUTORIAL.read_text())
    assert "pip install" in install[0]
    assert len(rest) > 8
    require_what_is_shown(rest, tmp_path)
    assert not (tmp_path / "tutorial").exists()


@pytest.mark.exhaustive
@pytest.mark.olga
@pytest.mark.timeout(240)
def test_a_species_without_a_model_from_germline_table_to_probabilities(tmp_path):
    section = INFERENCE.read_text().split("\n## A species without a model\n")[1].split("\n## ")[0]
    blocks = list(steps(section))
    assert [len(expected) > 2 for _, expected in blocks] == [True] * 3
    require_what_is_shown(blocks, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_command_prints_what_the_page_of_examples_shows(tmp_path):
    pytest.importorskip("jinja2")
    blocks = list(steps(EXAMPLES.read_text()))
    assert len(blocks) > 15
    require_what_is_shown(blocks, tmp_path)
    assert not (tmp_path / "examples").exists()
