"""Messages name options that commands have."""

import ast
import re

import pytest
import typer.main

from hpcvdj.cli import program
from tests.commands import error_line, hpcvdj_command
from tests.conftest import ROOT

OTHERS = {
    "install-completion", "show-completion", "help", "mpi", "signal", "kill-on-bad-exit",  # of typer, srun and sbatch
    "on", "kind", "no",  # of Python alone, and the first part of a name
}  # fmt: skip


def options(command):
    """The options of a command and of those below it."""
    found = {name for own in command.params for name in (*own.opts, *own.secondary_opts)}
    return found.union(*(options(own) for own in getattr(command, "commands", {}).values()))


def named_in(path):
    """The options that a module names: in calls of `option`, in texts as `{name=value}`, and as `--name`."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option" and node.args:
            if isinstance(node.args[0], ast.Constant):
                yield node.args[0].value.replace("_", "-")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"(?<![\w-])--([a-zA-Z][\w-]*\w)", node.value)
            yield from (name.replace("_", "-") for name in re.findall(r"\{(\w+)=\w", node.value))


@pytest.mark.slow
def test_options_in_messages_exist():
    known = {name.lstrip("-") for name in options(typer.main.get_command(program()))} | OTHERS
    named = {(name, path.name) for path in sorted((ROOT / "hpcvdj").rglob("*.py")) for name in named_in(path)}
    assert len(named) > 150
    assert {own for own in named if own[0] not in known} == set()


def test_options_of_several_words(tmp_path):
    """A parameter write_clean is the option --write-clean."""
    _, err = hpcvdj_command("contamination", tmp_path, "-m", "human_trb_m15", "-o", "-", "--write-clean", "-", code=2)
    assert "--write-clean -: only a table" in error_line(err)
