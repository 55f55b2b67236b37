"""Commands as a user types them, run in this process: starting Python anew takes longer than most commands."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

from hpcvdj import cli
from hpcvdj.cli import common
from hpcvdj.runs.ranks import World


def hpcvdj_command(*arguments, code=0, cwd=None, stdin=b"", columns=200):
    """Run the command as a world of one rank; its stdout and stderr, once its exit code is `code`.

    stdin    the bytes of its standard input
    columns  the width of its terminal
    """
    words = ["hpcvdj", *map(str, arguments)]
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="", write_through=True) for _ in range(2))
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with (
        mock.patch.object(sys, "argv", words),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
        mock.patch.dict(os.environ, COLUMNS=str(columns)),
        mock.patch.object(cli, "abort"),
        mock.patch.object(common, "world", World),
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as end:
            left = end.code or 0
        finally:
            root.handlers, root.level = handlers, level
    printed, logged = (stream.buffer.getvalue().decode() for stream in (out, err))
    assert left == code, printed + logged
    return printed, logged


def new_process(*arguments, code=0, env=None, **options):
    """Run the command in a process of its own, without the marks of a launcher; its stdout and stderr."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "HYD", "MPI"))}
    done = subprocess.run(
        [sys.executable, "-m", "hpcvdj", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**environment, "COLUMNS": "200", **(env or {})},
        check=False,
        **options,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def error_line(stderr):
    """The one error line there is; no traceback."""
    lines = [line for line in stderr.splitlines() if "error:" in line]
    assert len(lines) == 1, stderr
    assert "Traceback" not in stderr
    return lines[0]


LITTLE = """
from hpcvdj.cli.startup import load_little
load_little()
"""
"""Begins a program that imports the package before it runs a command, which would leave out what it does not use."""

COMMANDS = """
if __name__ == "__main__":
    import contextlib, io, json, sys
    from hpcvdj.__main__ import main
    ended = []
    for words in json.loads(sys.argv[1]):
        sys.argv, out, err = ["hpcvdj", *words], io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as end:
                ended.append([end.code or 0, out.getvalue(), err.getvalue()])
    # Ranks above root print nothing.
    if any(out for code, out, err in ended) or any(err for code, out, err in ended):
        print(json.dumps(ended))
"""
"""One command after another: starting Python for each would take longer than most of them."""


def run(program, *commands, launcher=(), timeout=None):
    """Exit code, stdout and stderr of each command in one process, or one for each rank, that has a class more."""
    words = json.dumps([list(map(str, command)) for command in commands])
    done = subprocess.run(
        [*launcher, sys.executable, "-c", LITTLE + program + COMMANDS, words],
        capture_output=True, text=True, check=False, timeout=timeout, stdin=subprocess.DEVNULL,
        env={"COLUMNS": "200", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def succeeded(code, out, err):
    """The output of a command, which must succeed."""
    assert code == 0, err
    return out


def refused(code, out, err):
    """The one line with which a command refuses its arguments."""
    assert code == 2, err
    assert err.count("\n") == 1
    return err
