"""Commands as a user types them, run in this process: starting Python anew takes longer than most commands."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

from hpcvdj import cli
from hpcvdj.cli import common
from hpcvdj.runs.ranks import World


def hpcvdj_command(*arguments, code=0, cwd=None):
    """Run the command as a world of one rank; its stdout and stderr, once its exit code is `code`."""
    words = ["hpcvdj", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with (
        mock.patch.object(sys, "argv", words),
        mock.patch.dict(os.environ, COLUMNS="200"),
        mock.patch.object(cli, "world", World),
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
    assert left == code, out.getvalue() + err.getvalue()
    return out.getvalue(), err.getvalue()


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
