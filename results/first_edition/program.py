"""The program that measure.py runs: its commands, how they end, and the inputs that several of them are given."""

from __future__ import annotations

import csv
import gzip
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
GERMLINE = ROOT / "inputs" / "germline" / "mouse_trb_paper.tsv"
SMALL = ROOT / "inputs" / "mouse_trb" / "small.tsv"
SECONDS = 60
"""A command that has not ended then is ended."""

HEADER = "sequence_id\tv_call\tj_call\tjunction\n"
CALLS = "TRBV1*01\tTRBJ1-1*01"
SECRET = b"the content of another file"
PRECIOUS = "years of work"
COLUMNS = ("line", "input", "ended", "seconds", "megabytes", "said", "then")


class Program:
    """The program; `rows` has what its commands did."""

    def __init__(self, path: Path, output: Path) -> None:
        self.path, self.line, self.folder = path, 0, Path()
        self.stream = open(output, "w", newline="")  # noqa: SIM115
        self.writer = csv.writer(self.stream, lineterminator="\n")
        self.writer.writerow(COLUMNS)

    def start(self, *words: Any, before: tuple[Any, ...] = (), **options: Any) -> subprocess.Popen[bytes]:
        """A command in a session of its own; `before` starts it, such as mpiexec."""
        environment = {**os.environ, "COLUMNS": "200", "NUMBA_NUM_THREADS": "1", **options.pop("env", {})}
        return subprocess.Popen(
            [*map(str, before), str(self.path), "-q", *map(str, words)], stdin=subprocess.DEVNULL, env=environment,
            start_new_session=True, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options},
        )  # fmt: skip

    def end(self, process: subprocess.Popen[bytes], what: str, then: Callable[[str], str] = lambda said: "") -> str:
        """Wait for a command and note how it ended; `then` says what came of it.  Returns its stderr."""
        begun = time.monotonic()
        said: list[bytes] = []
        reader = threading.Thread(target=lambda: said.append(process.stderr.read() if process.stderr else b""))
        reader.start()
        timer = threading.Timer(SECONDS, lambda: os.killpg(process.pid, signal.SIGKILL))
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds, hung = time.monotonic() - begun, not timer.is_alive()
        timer.cancel()
        process.returncode = code = os.waitstatus_to_exitcode(status)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # stopped ranks
        reader.join()
        text = b"".join(said).decode(errors="replace")
        ended = f"no end in {SECONDS} s" if hung else f"exit {code}" if code >= 0 else f"signal {-code}"
        if "Traceback" in text:
            ended += ", traceback"
        text = text.replace(f"{self.folder}/", "").replace(f"{ROOT}/", "")
        last = text.strip().splitlines()[-1] if text.strip() else ""
        row = (self.line, what, ended, f"{seconds:.1f}", usage.ru_maxrss >> 10, last[-160:], then(text))
        self.writer.writerow(row)
        self.stream.flush()
        print(*row, sep=" | ")
        return text

    def run(self, what: str, *words: Any, then: Callable[[str], str] = lambda said: "", **options: Any) -> str:
        """Run a command, note how it ended, and remove the files that it made."""
        before = set(self.folder.iterdir())
        said = self.end(self.start(*words, **options), what, then)
        for path in set(self.folder.iterdir()) - before:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return said

    def prepared(self, *words: Any) -> None:
        """Run a command that must succeed."""
        process = self.start(*words)
        _, err = process.communicate()
        assert process.returncode == 0, err.decode()


LINES: list[Callable[[Program, Path], None]] = []


def line(function: Callable[[Program, Path], None]) -> Callable[[Program, Path], None]:
    """Register what shows the next line of the issue's tables."""
    LINES.append(function)
    return function


def count(folder: Path, table: Any = SMALL, target: str = "o.h5", *options: Any) -> tuple[Any, ...]:
    """The words of a counting command."""
    return ("count", table, "-g", GERMLINE, "-o", folder / target, "--max-n", 4, *options)


def exists(path: Path) -> Callable[[str], str]:
    """Says whether a file is there."""
    return lambda said: f"{path.name} was written" if path.exists() else f"no {path.name}"


def big_table(path: Path, seed: int, rows: int = 60_000) -> None:
    """A table of as many bytes for every seed."""
    chance = np.random.default_rng(seed)
    middles = ["".join(row) for row in np.array(list("ACGT"))[chance.integers(0, 4, (rows, 12))]]
    columns = {
        "sequence_id": [f"s{k}" for k in range(rows)], "v_call": ["TRBV1*01"] * rows, "j_call": ["TRBJ1-1*01"] * rows,
        "junction": [f"TGTACTTGT{middle}TTT" for middle in middles],
    }  # fmt: skip
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path, compression="none", row_group_size=1000, use_dictionary=False)
    else:
        path.write_text(HEADER + "".join("\t".join(row) + "\n" for row in zip(*columns.values(), strict=True)))


def bomb(path: Path, head: bytes, size: int = 5 << 30) -> Path:
    """A gzip file that unpacks to `head` and `size` letters A."""
    block = b"A" * (1 << 26)
    member = gzip.compress(block, 9)
    path.write_bytes(gzip.compress(head) + member * (size // len(block)))
    return path


def wait_for(found: Callable[[], Any], process: subprocess.Popen[bytes], seconds: float = SECONDS) -> bool:
    """Wait until something is found; whether it was before the process ended."""
    deadline = time.monotonic() + seconds
    ended = os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
    while not found() and not os.waitid(*ended) and time.monotonic() < deadline:
        time.sleep(0.002)
    return bool(found())


def in_place(path: Path, data: bytes) -> None:
    """Overwrite a file in place, with its times as they were."""
    state = path.stat()
    with open(path, "r+b") as stream:
        stream.write(data)
        stream.truncate()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def sequences(path: Path) -> np.ndarray:
    """The sequences of a result by row."""
    with h5py.File(path) as file:
        return np.asarray(file["sequences/cdr3"][:][np.argsort(file["sequences/row"][:])])


def raw_text(*values: bytes) -> pa.Array:
    """Text that is not checked."""
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(b"".join(values)))


def two_rows(path: Path, **columns: Any) -> Path:
    """A Parquet table of two rows."""
    defaults = {"sequence_id": ["a", "b"], "v_call": ["TRBV1*01"] * 2, "j_call": ["TRBJ1-1*01"] * 2,
                "junction": ["TGTACTTGTTTT", "TGTACTTGTTTA"]}  # fmt: skip
    pq.write_table(pa.table(defaults | columns), path)
    return path


def replace(file: h5py.File, name: str, data: Any = None, **options: Any) -> None:
    """Another dataset in the place of one."""
    del file[name]
    file.create_dataset(name, data=data, **options)


def tampered(clean: Path, path: Path, change: Callable[[h5py.File], Any]) -> Path:
    """A changed copy of a result."""
    shutil.copy(clean, path)
    with h5py.File(path, "r+") as file:
        change(file)
    return path
