"""The slices of an unfinished run: each is a file in the run's folder, and its facts are beside it.

A rank takes a slice by making a file of its name, which only one can.  The facts of a slice are written last, so a
slice that has them is finished.  Finished slices are the run's checkpoint.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import HpcvdjError, InputError, option
from hpcvdj.repertoires.writers import TableWriter, fill_table
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.run import Run
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.inputs import file_digest
from hpcvdj.storage.opening import MISREAD

Facts = dict[str, Any]
"""What is known of a slice, as JSON values."""

SAVED = "part-*"
"""What an unfinished run has saved, in its folder."""

FINISHED = "part-*.json"
"""The facts of finished slices."""

_TAKEN = ".taken-*"
"""A rank works on a slice, or has; what a killed run left of these goes when it is resumed."""

IDS = "sorted_ids"
"""The array of hashes of ids, ascending, and their rows, uint64 [2, sequences]: of a slice whose ids must differ from
those of others."""

HASHES = 1 << 22
"""So many hashes of ids are compared at a time."""


@dataclass(frozen=True)
class SliceFiles:
    """The slices in the folder of their run.

    ending  of the files that have their rows
    """

    folder: RunFolder
    ending: str

    def rows(self, index: int) -> Path:
        """The file that has the rows of slice `index`."""
        return self.folder.path / f"part-{index:06}{self.ending}"

    def _array(self, name: str, index: int) -> Path:
        """The file that has an array of slice `index`."""
        return self.folder.path / f"{name}-{index:06}.npy"

    def facts(self, index: int) -> Path:
        """The file that has the facts of slice `index`, once it is finished."""
        return self.folder.path / FINISHED.replace("*", f"{index:06}")

    def _mark(self, index: int) -> Path:
        """The file that says that a rank has taken slice `index`."""
        return self.folder.path / _TAKEN.replace("*", f"{index:06}")

    @property
    def finished(self) -> list[int]:
        """The slices that are finished, in their order."""
        return sorted(int(path.stem.rpartition("-")[2]) for path in self.folder.path.glob(FINISHED))

    @property
    def saved(self) -> str:
        """The end of the message if a signal stops the run while slices are made."""
        return f"with the part files in {self.folder.path} saved; {option('resume', True)} continues"

    def taken(self, finished: list[int]) -> Callable[[int], bool]:
        """Whether a slice is this rank's: none of those that are `finished`, and the first rank that asks has it."""
        done, own = set(finished), set[int]()

        def take(index: int) -> bool:
            if index in own or index in done:
                return index in own
            try:
                os.close(os.open(self._mark(index), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            except FileExistsError:
                return False
            own.add(index)
            return True

        return take

    @contextmanager
    def kept(self, run: Run) -> Iterator[None]:
        """Leave the folder with what is saved there if the block fails and a run can continue with it."""
        try:
            yield
        except HpcvdjError as error:
            if run.is_root and isinstance(error, InputError) and not run.resume:
                # Nobody continues with another input.
                self.folder.remove()
            elif run.is_root:
                _remove(self.folder, _TAKEN)
                self.folder.leave(SAVED)
                raise self.folder.said_of(error, SAVED) from None
            raise

    def finish(self, index: int, facts: Facts, arrays: Mapping[str, NDArray[Any]] = MappingProxyType({})) -> None:
        """Write what is known of a slice, whose rows are written.

        arrays  what is needed of each sequence once all slices are finished, such as `IDS`
        """
        paths = [self.rows(index)]
        for name, array in arrays.items():
            paths.append(self._array(name, index))
            with atomic_path(paths[-1], overwrite=True) as temporary, open(temporary, "wb") as stream:
                np.save(stream, array)
        record = {"slice": index, "files": {path.name: file_digest(path) for path in paths}, **facts}
        with atomic_path(self.facts(index), overwrite=True) as temporary:
            temporary.write_text(json.dumps({"sha256": self._digest_of(record), **record}))

    def read(self, index: int, made: Callable[[Facts], Any] = dict) -> Any:
        """What is `made` of the facts of a finished slice; InputError if they are damaged, or of another run."""
        with self.damage(self.facts(index)):
            return made(self._record(index)[1])

    def arrays(self, name: str) -> "Arrays":
        """An array of each finished slice."""
        return Arrays(self, [self._array(name, index) for index in self.finished])

    def digests(self, indices: Sequence[int]) -> dict[Path, str]:
        """The files that have the rows of some finished slices, and the SHA-256 of each."""
        return {self.rows(index): self._record(index)[0][self.rows(index).name] for index in indices}

    def write(
        self, index: int, kind: type[TableWriter], rows: Iterable[pa.RecordBatch], between: Callable[[], None]
    ) -> None:
        """Write the rows of a slice as a table of a kind; `between` is called after each batch."""
        with atomic_path(self.rows(index), overwrite=True) as temporary:
            fill_table(temporary, kind, rows, first=index == 0, between=between)

    def require_all_intact(self, run: Run) -> None:
        """Raise InputError, on every rank, unless the files of finished slices are as they were written."""
        finished = run.from_root(lambda: self.finished)
        run.each(finished[run.rank :: run.ranks], self._require_intact, self.saved)

    def _require_intact(self, index: int) -> None:
        with self.damage(self.facts(index)):
            files, _ = self._record(index)
        for name, digest in files.items():
            with self.damage(self.folder.path / name):
                if file_digest(self.folder.path / name) != digest:
                    raise ValueError("its SHA-256 differs")

    def forget(self, index: int) -> None:
        """A slice is to be made again."""
        self.facts(index).unlink()
        self._mark(index).unlink(missing_ok=True)

    def rows_with_repeated_hashes(self, share: int = 0, shares: int = 1) -> NDArray[np.int64]:
        """The rows whose ids have the hash of the id of a row of another slice, int64 [rows].

        share  of `shares`: the rows are in one of them
        """
        stored = self.arrays(IDS)
        groups = shares * max(1, sum(part.shape[1] for part in stored) // (HASHES * shares))
        # Hashes are spread evenly, and sorted, so a group is one piece of each slice.
        edges = np.array([(group << 64) // groups for group in range(1, groups)], dtype=np.uint64)
        rows = [np.empty(0, np.int64)]
        for group in range(share, groups, shares):
            chosen = [np.empty((2, 0), dtype=np.uint64)]
            for part in stored:
                first = int(np.searchsorted(part[0], edges[group - 1])) if group else 0
                stop = int(np.searchsorted(part[0], edges[group])) if group < groups - 1 else part.shape[1]
                chosen.append(np.array(part[:, first:stop]))
            joined = np.concatenate(chosen, axis=1)
            ascending = np.sort(joined[0])
            several = np.isin(joined[0], ascending[1:][ascending[1:] == ascending[:-1]])
            rows.append(joined[1, several].astype(np.int64))
        return np.concatenate(rows)

    def _record(self, index: int) -> tuple[dict[str, str], Facts]:
        """The SHA-256 of the files of a slice, and its facts; one of `MISREAD` if they are damaged."""
        record = json.loads(self.facts(index).read_text())
        if record.pop("sha256") != self._digest_of(record):
            raise ValueError("it is of another run, or was changed")
        if record.pop("slice") != index:
            raise ValueError("it is of another slice")
        return record.pop("files"), record

    def _digest_of(self, record: dict[str, Any]) -> str:
        """SHA-256 of what a file of facts says, and of the identity of its run."""
        return hashlib.sha256(json.dumps([self.folder.identity, record], sort_keys=True).encode()).hexdigest()

    @contextmanager
    def damage(self, path: Path) -> Iterator[None]:
        """Raise InputError for what reading a damaged file raises."""
        try:
            yield
        except MISREAD as error:
            raise self.foreign(path, f"is damaged ({error})") from None

    def foreign(self, path: Path, fault: str) -> InputError:
        """The error to raise for a file that is not what this run left."""
        return InputError(f"{path}: {fault}; {option('overwrite', True)} starts again")


@dataclass(frozen=True)
class Arrays:
    """Arrays in files, one after another: each is in memory while it is used, and no longer.

    InputError, of `files`, if one cannot be read.
    """

    files: SliceFiles
    paths: list[Path]

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for path in self.paths:
            with self.files.damage(path):
                array = np.load(path, mmap_mode="r")
            yield array
            del array


def remove_facts(folder: RunFolder) -> None:
    """Remove what only an unfinished run needs of its slices, which a result in parts keeps."""
    _remove(folder, FINISHED, "*.npy", _TAKEN)


def _remove(folder: RunFolder, *patterns: str) -> None:
    for pattern in patterns:
        for path in folder.path.glob(pattern):
            path.unlink()
