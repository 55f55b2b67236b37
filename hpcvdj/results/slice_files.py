"""The slices of an unfinished run: each has a file of rows, and is a piece of work in the folder of the run.

A rank takes a slice when it creates the mark of the slice, which only one rank can do.  It saves the piece last, so a
slice with a piece is finished.  Finished slices are the checkpoint of the run.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import MachineError, option
from hpcvdj.repertoires.writers import TableWriter, fill_table
from hpcvdj.results.facts import Facts
from hpcvdj.runs.folder import RunFolder, save_failure
from hpcvdj.runs.run import Run
from hpcvdj.storage.damage import damage
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.inputs import file_digest


@dataclass(frozen=True)
class SliceFiles:
    """The slices in the folder of their run.

    ending  ending of the files with their rows
    """

    folder: RunFolder
    ending: str

    def rows(self, index: int) -> Path:
        """Return the file with the rows of slice `index`."""
        return self.folder.path / f"{self.piece(index)}{self.ending}"

    def piece(self, index: int) -> str:
        """Return the name of slice `index` in the folder."""
        return f"part-{index:06}"

    def _mark(self, index: int) -> Path:
        # When a killed run is resumed, hidden files are removed.
        return self.folder.path / f".taken-{index:06}"

    @property
    def finished(self) -> list[int]:
        """The finished slices, in their order."""
        return sorted(int(name.rpartition("-")[2]) for name in self.folder.finished)

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

    def finish(self, index: int, facts: Facts, arrays: Mapping[str, NDArray[Any]] = MappingProxyType({})) -> None:
        """Save the facts of a slice whose rows are written.

        arrays  values of sequences that the run needs once all slices are finished
        """
        self.folder.save(self.piece(index), {"rows": file_digest(self.rows(index)), "facts": facts}, arrays)

    def read(self, index: int, convert: Callable[[Facts], Any] = dict) -> Any:
        """Return the facts of a finished slice, converted by `convert`.

        Raises InputError if the facts are damaged, or of another run.
        """
        with self.folder.damage(self.piece(index)):
            return convert(self.folder.read(self.piece(index), checked=False)[0]["facts"])

    def digests(self, indices: Sequence[int]) -> dict[Path, str]:
        """Return the files with the rows of finished slices, and the SHA-256 of each."""
        return {self.rows(index): self.folder.read(self.piece(index), checked=False)[0]["rows"] for index in indices}

    def write(
        self,
        index: int,
        kind: type[TableWriter],
        rows: Iterable[pa.RecordBatch],
        between: Callable[[], None] = lambda: None,
    ) -> None:
        """Write the rows of a slice as a table of a kind.  Call `between` after each batch."""
        try:
            with atomic_path(self.rows(index), overwrite=True) as temporary:
                fill_table(temporary, kind, rows, first=index == 0, between=between)
        except MachineError as error:
            raise save_failure(error) from None

    def require_all_intact(self, run: Run) -> None:
        """Raise InputError, on every rank, if a file of a finished slice has changed."""
        finished = run.from_root(lambda: self.finished)
        run.each(finished[run.rank :: run.ranks], self._require_intact, self.saved)

    def _require_intact(self, index: int) -> None:
        facts, _ = self.folder.read(self.piece(index))
        with damage(self.rows(index), self.remedy):
            if file_digest(self.rows(index)) != facts["rows"]:
                raise ValueError("its SHA-256 differs")

    def forget(self, index: int) -> None:
        """Let the run compute a slice again."""
        self.folder.forget(self.folder.file(self.piece(index)).name, self._mark(index).name)

    @property
    def remedy(self) -> str:
        """The remedy for rows that this run did not leave in this state."""
        return f"{option('overwrite', True)} starts again"


@dataclass(frozen=True)
class SliceArrays:
    """The array `name` of each finished slice.  Iteration keeps none of them in memory.

    Raises InputError if an array cannot be read.
    """

    files: SliceFiles
    name: str

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for index in self.files.finished:
            piece = self.files.piece(index)
            with self.files.folder.damage(piece):
                array = self.files.folder.read(piece, checked=False)[1][self.name]
            yield array
            del array
