"""Standard input and output instead of files: `-` on the command line.

Both go through temporary files, because hpcvdj reads tables more than once, and writes output when it is complete.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hpcvdj.errors import InputError, option
from hpcvdj.runs.launcher import launched_ranks
from hpcvdj.storage.files import FULL, write_failure

DASH = Path("-")

_STDIN, _STDOUT = "stdin", "stdout.tsv"

_WORDS = {_STDIN: "standard input", _STDOUT: "standard output"}

_folders: list[str] = []
"""The folder of the temporary files, while a command has one."""

_taken: list[str] = []
"""The output that goes to standard output, if there is one."""


def with_stream_names(text: str) -> str:
    """Return a message with the names of streams instead of those of temporary files."""
    for folder in _folders:
        where = f", which is kept in {Path(folder).parent} (TMPDIR) until it is complete" * (FULL in text)
        for name, words in _WORDS.items():
            text = re.sub(re.escape(f"{folder}/{name}") + r"(\.parts[^:]*)?", words + where, text)
    return text


def is_stream(path: Path) -> bool:
    """Return whether a file stands for standard input or output; it goes when the command ends."""
    return str(path.parent) in _folders


def summary_stream() -> Any:
    """Return where the summary goes: standard output, unless that has the table."""
    return sys.stderr if _taken else sys.stdout


@contextmanager
def standard_streams(values: dict[str, Any], outputs: Iterable[str], tables: Iterable[str]) -> Iterator[None]:
    """Replace `-` among the `values` of a command's parameters by temporary files while the block runs.

    Standard input is read before the block.  Standard output is written after the block, if it succeeds.

    outputs  the parameters that name outputs
    tables   the outputs that are tables, which may be `-`
    """
    reads, writes = list[str](), list[str]()
    for name, value in values.items():
        times = list(value).count(DASH) if isinstance(value, list | tuple) else int(value == DASH)
        (writes if name in outputs else reads).extend([name] * times)
    wrong = next((name for name in writes if name not in tables), None)
    if wrong is not None:
        raise InputError(f"{option(wrong, DASH)}: only a table can be written to standard output; name a file")
    if not reads and not writes:
        yield
        return
    if launched_ranks() > 1:
        raise InputError("-: ranks cannot share standard input and output; name files")
    if len(writes) > 1:
        raise InputError("-: is given for two outputs; name a file for one of them")
    if len(reads) > 1:
        raise InputError("-: is given twice; standard input and standard output are one file each")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hpcvdj-")))
        _folders.append(str(folder))
        stack.callback(_folders.pop)
        for name in reads:
            spooled, value = folder / _STDIN, values[name]
            several = isinstance(value, list | tuple)
            values[name] = [spooled if item == DASH else item for item in value] if several else spooled
            try:
                with open(spooled, "wb") as spool:
                    shutil.copyfileobj(sys.stdin.buffer, spool)
            except OSError as error:
                raise write_failure(Path(f"a copy of standard input in {folder.parent} (TMPDIR)"), error) from None
        for name in writes:
            values[name] = folder / _STDOUT
            _taken.append(name)
            stack.callback(_taken.pop)
        yield
        if writes:
            _copy(folder / _STDOUT)


def _copy(path: Path) -> None:
    with printing(), open(path, "rb") as table:
        shutil.copyfileobj(table, sys.stdout.buffer)
        sys.stdout.flush()


@contextmanager
def printing() -> Iterator[None]:
    """Within the block, raise MachineError if standard output cannot be written."""
    try:
        yield
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (until the program ends)
        # The reader of a closed pipe has seen enough.
        if not isinstance(error, BrokenPipeError):
            raise write_failure(Path("standard output"), error) from None
