"""docs/tutorial.md: its commands run in their order, and print what stands below them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"

STEP = re.compile(r"^```sh\n(.*?)^```\n(?:\n((?:    [^\n]*\n|\n(?=    ))+))?", re.MULTILINE | re.DOTALL)
"""A block of commands and, if it prints something, the indented block below it."""

MARK = "--- next block ---"

LEFT_OUT = "…"

OF_THE_MACHINE = ("method ", "time ")
"""What begins so differs from machine to machine."""


def steps():
    """(commands, lines printed) of each block."""
    for commands, shown in STEP.findall(TUTORIAL.read_text()):
        yield commands, [line.removeprefix("    ") for line in shown.splitlines()]


def comparable(lines):
    return [next((start for start in OF_THE_MACHINE if line.startswith(start)), line.rstrip()) for line in lines]


def pieces(lines):
    """The runs of lines between those that say that something is left out."""
    runs = [[]]
    for line in lines:
        if line == LEFT_OUT:
            runs.append([])
        else:
            runs[-1].append(line)
    return runs


@pytest.mark.timeout(240)
def test_the_tutorial_prints_what_it_says(tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    install, *rest = steps()
    assert "pip install" in install[0]
    assert len(rest) > 8
    (tmp_path / "inputs").symlink_to(ROOT / "inputs")
    script = "".join(f"{commands}echo '{MARK}'\n" for commands, _ in rest)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PATH": path}
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{MARK}\n")
    for (commands, shown), text in zip(rest, printed, strict=False):
        found = comparable(text.splitlines())
        whole = LEFT_OUT not in shown
        for piece in pieces(comparable(shown)):
            places = [at for at in range(len(found) - len(piece) + 1) if found[at : at + len(piece)] == piece]
            assert places, f"{commands}\nprints\n{text}\nwithout\n" + "\n".join(piece)
            found = found[places[0] + len(piece) :]
        assert not (whole and found), f"{commands}\nprints more than the tutorial shows:\n{found}"
    assert not (tmp_path / "tutorial").exists()
