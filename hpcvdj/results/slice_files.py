"""The slices of an unfinished run: each is a file in the run's folder, with its facts beside it.

A rank takes a slice when it creates the mark of the slice, which only one rank can do.  The facts of a slice are
written last, so a slice with facts is finished.  Finished slices are the checkpoint of the run.
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
from hpcvdj.results.facts import Facts
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.run import Run
from hpcvdj.storage.damage import MISREAD
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.inputs import file_digest

SAVED = "part-*"
"""The files that an unfinished run has saved in its folder."""

FINISHED = "part-*.json"
"""The files with the facts of finished slices."""

_TAKEN = ".taken-*"
"""The marks of slices that a rank has taken.  When a killed run is resumed, its marks are removed."""

IDS = "sorted_ids"
"""The array of hashes of ids, ascending, and their rows, uint64 [2, sequences].  A slice has it if its ids must differ
from those of other slices."""

HASHES = 1 << 22
"""Hashes of ids that are compared at a time."""


@dataclass(frozen=True)
class SliceFiles:
    """The slices in the folder of their run.

    ending  ending of the files with their rows
    """

    folder: RunFolder
    ending: str

    def rows(self, index: int) -> Path:
        """Return the file with the rows of slice `index`."""
        return self.folder.path / f"part-{index:06}{self.ending}"

    def _array(self, name: str, index: int) -> Path:
        return self.folder.path / f"{name}-{index:06}.npy"

    def facts(self, index: int) -> Path:
        """Return the file that has the facts of slice `index` once the slice is finished."""
        return self.folder.path / FINISHED.replace("*", f"{index:06}")

    def _mark(self, index: int) -> Path:
        return self.folder.path / _TAKEN.replace("*", f"{index:06}")

    @property
    def finished(self) -> list[int]:
        """The finished slices, in their order."""
        return sorted(int(path.stem.rpartition("-")[2]) for path in self.folder.path.glob(FINISHED))

    @property
    def saved(self) -> str:
        """The end of the message if a signal stops the run while ranks work on slices."""
        return f"with the part files in {self.folder.path} saved; {option('resume', True)} continues"

    def taken(self, finished: list[int]) -> Callable[[int], bool]:
        """Return a function that says whether this rank gets a slice.

        The first rank that asks for a slice gets it, unless the slice is `finished`.
        """
        done, taken = set(finished), set[int]()

        def take(index: int) -> bool:
            if index in taken or index in done:
                return index in taken
            try:
                os.close(os.open(self._mark(index), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            except FileExistsError:
                return False
            taken.add(index)
            return True

        return take

    @contextmanager
    def kept(self, run: Run) -> Iterator[None]:
        """If the block fails, keep the folder with its saved files for a run that can continue with them."""
        try:
            yield
        except HpcvdjError as error:
            if run.is_root and isinstance(error, InputError) and not run.resume:
                # No run can continue: the user has to correct the input first.
                self.folder.remove()
            elif run.is_root:
                _remove(self.folder, _TAKEN)
                self.folder.leave(SAVED)
                raise self.folder.error_for(error, SAVED) from None
            raise

    def finish(self, index: int, facts: Facts, arrays: Mapping[str, NDArray[Any]] = MappingProxyType({})) -> None:
        """Write the facts of a slice whose rows are written.

        arrays  values of sequences that the run needs once all slices are finished, such as `IDS`
        """
        paths = [self.rows(index)]
        for name, array in arrays.items():
            paths.append(self._array(name, index))
            with atomic_path(paths[-1], overwrite=True) as temporary, open(temporary, "wb") as stream:
                np.save(stream, array)
        record = {"slice": index, "files": {path.name: file_digest(path) for path in paths}, **facts}
        with atomic_path(self.facts(index), overwrite=True) as temporary:
            temporary.write_text(json.dumps({"sha256": self._digest_of(record), **record}))

    def read(self, index: int, convert: Callable[[Facts], Any] = dict) -> Any:
        """Return the facts of a finished slice, converted by `convert`.

        Raises InputError if the facts are damaged, or of another run.
        """
        with self.damage(self.facts(index)):
            return convert(self._record(index)[1])

    def arrays(self, name: str) -> "Arrays":
        """Return an array of each finished slice."""
        return Arrays(self, [self._array(name, index) for index in self.finished])

    def digests(self, indices: Sequence[int]) -> dict[Path, str]:
        """Return the files with the rows of finished slices, and the SHA-256 of each."""
        return {self.rows(index): self._record(index)[0][self.rows(index).name] for index in indices}

    def write(
        self,
        index: int,
        kind: type[TableWriter],
        rows: Iterable[pa.RecordBatch],
        between: Callable[[], None] = lambda: None,
    ) -> None:
        """Write the rows of a slice as a table of a kind.  Call `between` after each batch."""
        with atomic_path(self.rows(index), overwrite=True) as temporary:
            fill_table(temporary, kind, rows, first=index == 0, between=between)

    def require_all_intact(self, run: Run) -> None:
        """Raise InputError, on every rank, if a file of a finished slice has changed."""
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
        """Let the run compute a slice again."""
        self.facts(index).unlink()
        self._mark(index).unlink(missing_ok=True)

    def rows_with_repeated_hashes(self, share: int = 0, shares: int = 1) -> NDArray[np.int64]:
        """Return the rows whose ids have the same hash as the id of a row in another slice, int64 [rows].

        share, shares  return only one of `shares` parts of the rows
        """
        stored = self.arrays(IDS)
        groups = shares * max(1, sum(part.shape[1] for part in stored) // (HASHES * shares))
        # Hashes are sorted and evenly distributed, so a group is one piece of each slice.
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
        """Return the SHA-256 of the files of a slice, and its facts.  Raise one of `MISREAD` if they are damaged."""
        record = json.loads(self.facts(index).read_text())
        if record.pop("sha256") != self._digest_of(record):
            raise ValueError("it is of another run, or was changed")
        if record.pop("slice") != index:
            raise ValueError("it is of another slice")
        return record.pop("files"), record

    def _digest_of(self, record: dict[str, Any]) -> str:
        """Return the SHA-256 of the content of a file of facts, and of the identity of its run."""
        return hashlib.sha256(json.dumps([self.folder.identity, record], sort_keys=True).encode()).hexdigest()

    @contextmanager
    def damage(self, path: Path) -> Iterator[None]:
        """Within the block, raise InputError if reading a damaged file fails."""
        try:
            yield
        except MISREAD as error:
            raise self.foreign(path, f"is damaged ({error})") from None

    def foreign(self, path: Path, fault: str) -> InputError:
        """Return the error to raise for a file that this run did not leave in this state."""
        return InputError(f"{path}: {fault}; {option('overwrite', True)} starts again")


@dataclass(frozen=True)
class Arrays:
    """Arrays in files.  Iteration reads one array at a time, and keeps none of them in memory.

    Raises InputError if an array cannot be read.
    """

    files: SliceFiles
    paths: list[Path]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for path in self.paths:
            with self.files.damage(path):
                array = np.load(path, mmap_mode="r")
            yield array
            del array


def remove_facts(folder: RunFolder) -> None:
    """Remove the files that only an unfinished run needs.  A result in parts keeps the slices."""
    _remove(folder, FINISHED, "*.npy", _TAKEN)


def _remove(folder: RunFolder, *patterns: str) -> None:
    for pattern in patterns:
        for path in folder.path.glob(pattern):
            path.unlink()
