"""A table in parts: each slice of the input with its values is a file in the run's folder, and its facts are beside it.

The facts of a part are written last, so a part that has them is finished.  Finished parts are the run's checkpoint.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.kernels.quantities import Quantity
from hpcvdj.repertoires.writers import COPIED_BYTES, TableWriter
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.runs.folder import RunFolder
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.opening import MISREAD

FINISHED = "part-*.json"
"""The facts of finished parts, in the run's folder."""

HASHES = 1 << 22
"""So many hashes of ids are compared at a time."""


@dataclass(frozen=True)
class PartTables:
    """The parts of a table in the folder of its run.

    kind      of the table; its parts may be of another
    quantity  whose values it has
    """

    folder: RunFolder
    kind: type[TableWriter]
    quantity: Quantity

    def table(self, index: int) -> Path:
        """The file that has the rows of slice `index`."""
        return self.folder.path / f"part-{index:06}{self.kind.of_parts().endings[0]}"

    def ids(self, index: int) -> Path:
        """The file that has the hashes of the ids of slice `index`, and their rows."""
        return self.folder.path / f"ids-{index:06}.npy"

    def facts(self, index: int) -> Path:
        """The file that has the facts of slice `index`, once it is finished."""
        return self.folder.path / FINISHED.replace("*", f"{index:06}")

    @property
    def finished(self) -> list[int]:
        """The slices that are finished, in their order."""
        return sorted(int(path.stem.rpartition("-")[2]) for path in self.folder.path.glob(FINISHED))

    def write(
        self, index: int, batches: Iterable[pa.RecordBatch], facts: SliceFacts, ids: NDArray[np.uint64] | None
    ) -> None:
        """Write a finished slice.

        ids  uint64 [2, sequences]: hashes of the ids and the rows, if ids must be different in all slices
        """
        paths = [self.table(index)]
        kind = self.kind.of_parts()
        with atomic_path(paths[0], overwrite=True) as temporary, kind(temporary, first=index == 0) as writer:
            for batch in batches:
                writer.write(batch)
        if ids is not None:
            paths.append(self.ids(index))
            with atomic_path(paths[1], overwrite=True) as temporary, open(temporary, "wb") as stream:
                np.save(stream, ids)
        files = {path.name: _checksum(path) for path in paths}
        record = {"slice": index, "files": files, **facts.recorded()}
        with atomic_path(self.facts(index), overwrite=True) as temporary:
            temporary.write_text(json.dumps({"checksum": self._checksum_of(record), **record}))

    def read(self, index: int) -> SliceFacts:
        """The facts of a finished slice; InputError if they are damaged, or of another run."""
        with self._damage(self.facts(index)):
            return SliceFacts.from_recorded(self._record(index)[1], self.quantity)

    def require_intact(self, index: int) -> None:
        """Raise InputError unless the files of a finished slice are as they were written."""
        with self._damage(self.facts(index)):
            files, _ = self._record(index)
        for name, checksum in files.items():
            with self._damage(self.folder.path / name):
                if _checksum(self.folder.path / name) != checksum:
                    raise ValueError("its checksum differs")

    def forget(self, index: int) -> None:
        """A slice is to be computed again."""
        self.facts(index).unlink()

    def total(self, rows: int) -> SliceFacts:
        """The facts of all slices; InputError unless they have each of the `rows` of the input once."""
        slices, first = [], 0
        for index in self.finished:
            slices.append(self.read(index))
            if slices[-1].first_row != first:
                raise self._foreign(self.facts(index), "the part before it is missing")
            first += slices[-1].rows_read
        if first != rows:
            raise self._foreign(self.folder.path, f"its parts lack {rows - first:,} rows")
        return SliceFacts.total(slices)

    def join(self, target: Path, between: Callable[[], None]) -> None:
        """Make the table `target` of all parts."""
        self.kind.join([self.table(index) for index in self.finished], target, between)

    def rows_with_repeated_hashes(self) -> NDArray[np.int64]:
        """The rows whose ids have the hash of the id of a row of another slice, int64 [rows]."""
        stored = [np.load(self.ids(index), mmap_mode="r") for index in self.finished]
        groups = max(1, sum(part.shape[1] for part in stored) // HASHES)
        rows = [np.empty(0, np.int64)]
        for group in range(groups):
            chosen = [part[:, part[0] % groups == group] if groups > 1 else part for part in stored]
            joined = np.concatenate(chosen, axis=1)
            ascending = np.sort(joined[0])
            several = np.isin(joined[0], ascending[1:][ascending[1:] == ascending[:-1]])
            rows.append(joined[1, several].astype(np.int64))
        return np.concatenate(rows)

    def _record(self, index: int) -> tuple[dict[str, int], dict[str, Any]]:
        """The checksums of the files of a slice, and its facts; one of `MISREAD` if they are damaged."""
        record = json.loads(self.facts(index).read_text())
        if record.pop("checksum") != self._checksum_of(record):
            raise ValueError("it is of another run, or was changed")
        if record.pop("slice") != index:
            raise ValueError("it is of another slice")
        return record.pop("files"), record

    def _checksum_of(self, record: dict[str, Any]) -> int:
        """The checksum of what a file of facts says, and of the identity of its run."""
        return zlib.crc32(json.dumps([self.folder.identity, record], sort_keys=True).encode())

    @contextmanager
    def _damage(self, path: Path) -> Iterator[None]:
        try:
            yield
        except MISREAD as error:
            raise self._foreign(path, f"is damaged ({error})") from None

    def _foreign(self, path: Path, fault: str) -> InputError:
        return InputError(f"{path}: {fault}; {option('overwrite', True)} starts again")


def _checksum(path: Path) -> int:
    """CRC-32 of a file's bytes."""
    checksum = 0
    with open(path, "rb") as stream:
        while data := stream.read(COPIED_BYTES):
            checksum = zlib.crc32(data, checksum)
    return checksum
