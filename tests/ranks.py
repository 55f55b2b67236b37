"""Ranks that stay, for one command after another: to launch ranks takes longer than most commands.

A launch for each command is for tests of how ranks start and end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection, Listener
from pathlib import Path

from tests.commands import LITTLE
from tests.conftest import ROOT

PROGRAM = f"""{LITTLE}
import contextlib, io, logging, sys
from multiprocessing.connection import Client
from unittest import mock
from hpcvdj.__main__ import main
from hpcvdj.chance import check
from hpcvdj.inference import selection
from hpcvdj.runs.ranks import world

# As in the fixture fewer_draws.
check.DRAWN, selection.FRESH = 20_000, 30_000
with Client(sys.argv[1]) as test:
    test.send(world().rank)
    with contextlib.suppress(EOFError):
        while True:
            sys.argv[1:], patched = test.recv()
            root = logging.getLogger()
            handlers, level = root.handlers[:], root.level
            out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="", write_through=True) for _ in range(2))
            with contextlib.ExitStack() as stack:
                stack.enter_context(contextlib.redirect_stdout(out))
                stack.enter_context(contextlib.redirect_stderr(err))
                for name, value in patched.items():
                    stack.enter_context(mock.patch(name, value))
                try:
                    main()
                except SystemExit as end:
                    code = end.code or 0
            root.handlers, root.level = handlers, level
            test.send((code, *(stream.buffer.getvalue().decode() for stream in (out, err))))
"""


class Ranks:
    """Ranks of one launch, from the first command on.

    launcher  the program that launches them
    size      how many
    """

    def __init__(self, launcher: str, size: int) -> None:
        self.size = size
        self._launcher = launcher
        self._process: subprocess.Popen[str] | None = None
        self._connections: list[Connection] = []

    def __call__(self, *words: object, code: int = 0, patched: dict[str, object] | None = None) -> tuple[str, str]:
        """Run a command; what all ranks print to stdout and to stderr, once each rank's exit code is `code`.

        patched  what stands for names of the package meanwhile

        A rank that ends all others, as one that fails alone does, is an AssertionError.
        """
        if self._process is None:
            self._launch()
        try:
            for connection in self._connections:
                connection.send(([str(word) for word in words], patched or {}))
            ended = [connection.recv() for connection in self._connections]
        except BaseException as error:
            err = self.end(at_once=True)
            if isinstance(error, (EOFError, OSError)):
                raise AssertionError(f"the ranks ended: {err}") from None
            raise
        codes, outs, errs = zip(*ended, strict=True)
        out, err = "".join(outs), "".join(errs)
        assert codes == (code,) * self.size, out + err
        return out, err

    def _launch(self) -> None:
        with tempfile.TemporaryDirectory() as folder, Listener(str(Path(folder) / "test")) as listener:
            words = [self._launcher, "-n", str(self.size), sys.executable, "-c", PROGRAM, str(listener.address)]
            # Ranks of a test share few cores; one thread each keeps them from treading on one another.
            environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "COLUMNS": "200"}
            self._process = subprocess.Popen(
                words, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            accepted = [listener.accept() for _ in range(self.size)]
            self._connections = [own for _, own in sorted((own.recv(), own) for own in accepted)]

    def end(self, *, at_once: bool = False) -> str:
        """Let the ranks leave; what they printed that was no command's."""
        if self._process is None:
            return ""
        for connection in self._connections:
            connection.close()
        process, self._process, self._connections = self._process, None, []
        if at_once:
            process.terminate()
        try:
            return process.communicate(timeout=30)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[0]
