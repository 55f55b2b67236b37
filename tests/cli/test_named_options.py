"""Messages name options that commands have."""

import ast
import re

import typer.main

from hpcvdj.cli import program
from tests.commands import error_line, hpcvdj_command
from tests.conftest import ROOT

OTHERS = {
    "--install-completion", "--show-completion", "--help", "--mpi", "--signal",  # of typer, srun and sbatch
}  # fmt: skip


def options(command):
    """The options of a command and of those below it."""
    found = {name for own in command.params for name in (*own.opts, *own.secondary_opts)}
    return found.union(*(options(own) for own in getattr(command, "commands", {}).values()))


def texts(path):
    """The texts of a module; those that are joined by values in braces as one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_options_in_messages_exist():
    known = options(typer.main.get_command(program())) | OTHERS
    named = {
        (name, path.name)
        for path in sorted((ROOT / "hpcvdj").rglob("*.py"))
        for text in texts(path)
        for name in re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*\w(?!\{)", text)
    }
    assert len(named) > 50
    assert {own for own in named if own[0] not in known} == set()


def test_options_of_several_words(tmp_path):
    """A parameter write_clean is the option --write-clean."""
    _, err = hpcvdj_command("contamination", tmp_path, "-m", "human_trb_m15", "-o", "-", "--write-clean", "-", code=2)
    assert "--write-clean -: only a table" in error_line(err)
