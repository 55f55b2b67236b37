"""Tables without values of a quantity, which ranks write slice by slice: `hpcvdj generate` and `hpcvdj convert`.

As tables with values are: finished slices are the checkpoint, and root joins them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpcvdj.repertoires.writers import TableWriter, new_table, require_writable_table, writer_of
from hpcvdj.results.slice_files import SAVED, Facts, SliceFiles
from hpcvdj.runs.folder import Identity, RunFolder
from hpcvdj.runs.run import Run
from hpcvdj.values.task import while_written


class PlainTable:
    """A table that ranks write slice by slice.

    files      the slices
    size       of a slice, as the run began
    overwrite  whether what is at the target is replaced
    """

    def __init__(self, run: Run, files: SliceFiles, size: int, *, overwrite: bool) -> None:
        assert run.target is not None
        self.files, self.size = files, size
        self._run, self._target, self._overwrite = run, run.target, overwrite

    @property
    def _kind(self) -> type[TableWriter]:
        return writer_of(self._target)

    def write(self, index: int, batches: Iterable[pa.RecordBatch], facts: Facts) -> None:
        """Write the rows of a slice, then its `facts`, which may change until all batches are written."""
        self.files.write(index, self._kind.of_parts(), batches, self._run.raise_if_stopping)
        self.files.finish(index, facts)

    def join(self, indices: Sequence[int]) -> None:
        """Make the table of some finished slices; only then does the folder that has them go."""

        def join() -> None:
            with new_table(self._target, overwrite=self._overwrite) as path:
                self._kind.join(self.files.digests(indices), path, self._run.raise_if_stopping)
            self.files.folder.remove()

        self._run.root_works(join, while_written(self._target))


@contextmanager
def plain_table(run: Run, identity: Identity, size: int, inputs: Sequence[Path] = ()) -> Iterator[PlainTable]:
    """A table at the target of `run`, which the block writes and joins.

    identity  what two runs must have in common for one to continue the other
    size      of a slice, unless an unfinished run has another
    inputs    files that must not be the target

    InputError if the table may not be written, and as of `RunFolder.open`.
    """
    target = run.target
    assert target is not None
    kind = writer_of(target)
    with run.exclusive(*inputs, folder=kind.is_folder):
        folder = RunFolder(target.with_name(f"{target.name}.parts"), identity)

        def begin() -> tuple[dict[str, Any], bool]:
            # A run that was stopped may have begun to replace another table, or have been killed once it was written.
            overwrite = run.overwrite or (run.resume and folder.has(SAVED))
            require_writable_table(target, overwrite=overwrite)
            return folder.open(SAVED, {"size": size}, resume=run.resume, overwrite=run.overwrite), overwrite

        begun, overwrite = run.from_root(begin)
        files = SliceFiles(folder, kind.of_parts().endings[0])
        with files.kept(run):
            files.require_all_intact(run)
            run.request.begin()
            yield PlainTable(run, files, int(begun["size"]), overwrite=overwrite)
