"""Checkpoints: the counters of finished units, safe on disk while a run goes on.

Everything that is not the result yet lies in the folder `NAME.checkpoint` beside the result file NAME:

run.json         what is counted: a checkpoint is good for the same inputs and parameters alone
part-000001.zip  counters of units that were finished, and of the unit that was cut; written whole or not at all
result.part      the result file as far as it is; made anew by each run

A part appears under its name by a rename after fsync, so that a run killed at any moment leaves whole parts only.
"""

from __future__ import annotations

import errno
import json
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.counting.driver import Partial
from hpcvdj.errors import InputError, MachineError
from hpcvdj.methods import Unit
from hpcvdj.repertoires.many import difference
from hpcvdj.storage import write_whole

SAVE_SECONDS = 20.0
"""How long finished units may wait for the next save."""

SAVE_BYTES = 1 << 30
"""How many bytes of counters may wait."""

TABLES = "tables"
"""Name of the tables that are counted together among what two runs must have in common."""

_MANIFEST = "manifest.json"
_PART = "part-*.zip"


def folder_of(target: Path) -> Path:
    """Where the checkpoint of the result file `target` lies."""
    return target.with_name(target.name + ".checkpoint")


def result_path(folder: Path) -> Path:
    """Where the result file is made, in the checkpoint `folder`."""
    return folder / "result.part"


def require_same_run(folder: Path, identity: dict[str, Any]) -> None:
    """InputError, with what differs, unless the run.json of `folder` has this identity."""
    identity = json.loads(json.dumps(identity))
    try:
        theirs = json.loads((folder / "run.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / 'run.json'}: cannot be read ({error}); --overwrite starts anew") from None
    names = [name for name in {**theirs, **identity} if theirs.get(name) != identity.get(name)]
    if TABLES in names and "junctions_sha256" in names:
        names.remove("junctions_sha256")
    if names:
        changes = "; ".join(_change(name, theirs.get(name), identity.get(name)) for name in names)
        raise InputError(f"{folder}: is of another run ({changes}); start it as it was, or --overwrite")


def says_another_run(folder: Path, identity: dict[str, Any]) -> bool:
    """Whether the run.json of `folder` is another run's; a folder without one is half removed, and nobody's."""
    if not (folder / "run.json").exists():
        return False
    try:
        require_same_run(folder, identity)
    except InputError:
        return True
    return False


def _change(name: str, was: Any, now: Any) -> str:
    if name == TABLES and was and now:
        return difference(was, now)
    if name == TABLES:
        return "of tables counted together" if now is None else "of one table alone"
    return f"{name} was {was}, is {now}"


def save_fault(folder: Path, error: OSError) -> MachineError:
    """What to tell when saving into the checkpoint `folder` failed."""
    full = error.errno == errno.ENOSPC
    return MachineError(
        f"{folder}: {'the disk is full' if full else f'writing failed ({error})'}; what was saved before is whole: "
        "free space, then start again with --resume"
    )


class Checkpoint:
    """Root's keeper of finished units.

    identity      name → value, JSON: what two runs must have in common for one to go on with the other's counters
    save_seconds  how long finished units may wait for the next save

    `seconds` is the time that saving took so far.
    """

    def __init__(self, target: Path, identity: dict[str, Any], save_seconds: float = SAVE_SECONDS) -> None:
        self.folder = folder_of(target)
        self.save_seconds = save_seconds
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._waiting: list[Unit] = []
        self._waiting_bytes = 0
        self._partial: Partial | None = None
        self._saved = time.monotonic()
        self.seconds = 0.0

    @property
    def result_path(self) -> Path:
        """Where the result file is made."""
        return result_path(self.folder)

    def parts(self) -> list[Path]:
        """The parts on disk, in the order in which they were written."""
        return sorted(self.folder.glob(_PART))

    def open(self, *, resume: bool, overwrite: bool) -> None:
        """Make the folder, or take up the one that is there.

        InputError if it holds counters and neither `resume` nor `overwrite` says what is to become of them, or if
        they are another run's.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder}: is no folder, but that is where a checkpoint belongs; move it away")
        if self.parts() and not overwrite:
            if not resume:
                raise InputError(
                    f"{self.folder}: holds the counters of an unfinished run; --resume goes on with it, --overwrite "
                    "starts anew"
                )
            require_same_run(self.folder, self.identity)
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            self.folder.mkdir()
            write_whole(self.folder / "run.json", lambda path: path.write_text(json.dumps(self.identity, indent=1)))
        except OSError as error:
            raise save_fault(self.folder, error) from None

    def restore(
        self, put: Callable[[Unit, NDArray[np.uint64]], None], shape: tuple[int, int]
    ) -> tuple[NDArray[np.bool_], Partial | None]:
        """`put` every finished unit on disk; which (n-length, V–J pair) are done, bool of `shape`, and the cut unit.

        InputError if a part is damaged.
        """
        done = np.zeros(shape, dtype=bool)
        partial: Partial | None = None
        for path in self.parts():
            try:
                partial = self._restore_part(path, put, done) or partial
            except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
                raise InputError(
                    f"{path}: is damaged ({error}); remove it to count its units again, or --overwrite to start anew"
                ) from None
        if partial is not None and _cells(done, partial.unit).all():
            partial = None
        return done, partial

    @staticmethod
    def _restore_part(
        path: Path, put: Callable[[Unit, NDArray[np.uint64]], None], done: NDArray[np.bool_]
    ) -> Partial | None:
        partial = None
        with zipfile.ZipFile(path) as archive:
            for k, entry in enumerate(json.loads(archive.read(_MANIFEST))):
                pairs, rows, n_lengths = (range(*entry[name]) for name in ("pairs", "rows", "n_lengths"))
                unit = Unit(pairs, rows, n_lengths, entry["tasks"])
                with archive.open(f"{k}.npy") as stream:
                    counters = np.lib.format.read_array(stream, allow_pickle=False)
                if counters.shape != (len(unit.rows), len(unit.n_lengths)):
                    raise ValueError(f"unit {k} has counters of shape {counters.shape}")
                if "tasks_done" in entry:
                    partial = Partial(unit, entry["tasks_done"], counters)
                elif not _cells(done, unit).any():
                    put(unit, counters)
                    _cells(done, unit)[:] = True
        return partial

    def add(self, unit: Unit) -> None:
        """`unit` is finished."""
        self._waiting.append(unit)
        self._waiting_bytes += 8 * len(unit.rows) * len(unit.n_lengths)

    def cut_at(self, partial: Partial | None) -> None:
        """What of the unit under way is counted."""
        self._partial = partial

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() - self._saved > self.save_seconds or self._waiting_bytes > SAVE_BYTES

    def save(self, read: Callable[[Unit], NDArray[np.uint64]]) -> None:
        """Write what is not on disk yet as a new part; `read` gives the counters of a finished unit.

        MachineError if the disk is full; the parts before stay as they are.
        """
        started = time.monotonic()
        if self._waiting or self._partial:
            numbers = [int(path.stem.removeprefix("part-")) for path in self.parts()]
            name = f"part-{max(numbers, default=0) + 1:06}.zip"
            try:
                write_whole(self.folder / name, lambda path: self._write_part(path, read))
            except OSError as error:
                raise save_fault(self.folder, error) from None
        self._waiting, self._waiting_bytes, self._partial = [], 0, None
        self._saved = time.monotonic()
        self.seconds += self._saved - started

    def _write_part(self, path: Path, read: Callable[[Unit], NDArray[np.uint64]]) -> None:
        entries: list[dict[str, Any]] = []
        with zipfile.ZipFile(path, "w") as archive:
            for unit in self._waiting:
                self._write_unit(archive, entries, unit, read(unit))
            if self._partial is not None and self._partial.counters is not None:
                self._write_unit(archive, entries, self._partial.unit, self._partial.counters)
                entries[-1]["tasks_done"] = self._partial.tasks_done
            archive.writestr(_MANIFEST, json.dumps(entries))

    @staticmethod
    def _write_unit(
        archive: zipfile.ZipFile, entries: list[dict[str, Any]], unit: Unit, counters: NDArray[np.uint64]
    ) -> None:
        with archive.open(f"{len(entries)}.npy", "w", force_zip64=True) as stream:
            np.lib.format.write_array(stream, np.ascontiguousarray(counters), allow_pickle=False)
        ranges = {name: (part.start, part.stop) for name, part in vars(unit).items() if isinstance(part, range)}
        entries.append({**ranges, "tasks": unit.tasks})

    def leave(self) -> None:
        """The run ends without a result: keep the parts; without any, remove the folder."""
        if not self.parts():
            self.remove()

    def remove(self) -> None:
        """The result is complete, or there is none."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def remove_if_of_this_run(self) -> None:
        """The result is complete; a folder of another run, which would replace it, stays."""
        if not says_another_run(self.folder, self.identity):
            self.remove()


def _cells(done: NDArray[np.bool_], unit: Unit) -> NDArray[np.bool_]:
    return done[unit.n_lengths.start : unit.n_lengths.stop, unit.pairs.start : unit.pairs.stop]


def remaining(unit: Unit, done: NDArray[np.bool_], offsets: NDArray[np.int64], *, disjoint: bool) -> list[Unit]:
    """What of `unit` is not `done` (bool [n-lengths, pairs]): its runs of V–J pairs that are to be counted yet."""
    left = ~_cells(done, unit).all(axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], left.view(np.int8), [0]])))
    units = []
    for first, last in edges.reshape(-1, 2).tolist():
        pairs = range(unit.pairs.start + first, unit.pairs.start + last)
        rows = range(int(offsets[pairs.start]), int(offsets[pairs.stop]))
        units.append(Unit(pairs, rows, unit.n_lengths, len(rows) if disjoint else unit.tasks))
    return units
