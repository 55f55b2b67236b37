"""Tables without values of a quantity: the output of `hpcvdj generate` and `hpcvdj convert`.

As for tables with values, ranks write slices, finished slices are the checkpoint, and root joins them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from hpcvdj.repertoires.writers import new_table, require_writable_table, writer_of
from hpcvdj.results.facts import Facts
from hpcvdj.results.slice_files import SliceFiles
from hpcvdj.runs.folder import Identity, RunFolder, complete
from hpcvdj.runs.run import Run
from hpcvdj.values.task import while_written


class PlainTable:
    """A table that ranks write slice by slice.

    files      the slices
    size       rows of a slice, as the run began
    overwrite  whether to replace what is at the target
    """

    def __init__(self, run: Run, files: SliceFiles, size: int, *, overwrite: bool) -> None:
        assert run.target is not None
        self.files, self.size = files, size
        self._run, self._target, self._overwrite = run, run.target, overwrite
        self._kind = writer_of(run.target)

    def write(self, index: int, batches: Iterable[pa.RecordBatch], facts: Facts) -> None:
        """Write the rows of a slice, then its `facts`.  These may change until all batches are written."""
        self.files.write(index, self._kind.of_parts(), batches, self._run.raise_if_stopping)
        self.files.finish(index, facts)

    def join(self, indices: Sequence[int]) -> None:
        """Join finished slices to the table, then remove the folder that has them."""

        def join() -> None:
            with new_table(self._target, overwrite=self._overwrite) as path:
                self._kind.join(self.files.digests(indices), path, self._run.raise_if_stopping)
                self.files.folder.record_result(path)
            self.files.folder.finish()

        self._run.root_works(join, while_written(self._target))


@contextmanager
def plain_table(run: Run, identity: Identity, size: int, inputs: Sequence[Path] = ()) -> Iterator[PlainTable]:
    """Yield a table at the target of `run`.  The block writes its slices and joins them.

    identity  what two runs must have in common for one to continue the other
    size      rows of a slice, unless an unfinished run has another size
    inputs    files that must not be the target

    Raises InputError if the table may not be written, and the errors of `RunFolder.open`.
    """
    target = run.target
    assert target is not None
    kind = writer_of(target)
    with run.exclusive(*inputs, folder=kind.is_folder):
        folder = RunFolder(target.with_name(f"{target.name}.parts"), identity)

        def begin() -> bool:
            if run.resume and target.exists() and folder.is_complete():
                folder.remove()
                raise complete(target)
            # A stopped run may have begun to replace another table, or may have been killed once it was written.
            overwrite = run.overwrite or (run.resume and folder.may_replace(target))
            require_writable_table(target, overwrite=overwrite)
            return overwrite

        overwrite = run.from_root(begin)
        files = SliceFiles(folder, kind.of_parts().endings[0])
        with run.continuing(folder, {"size": size}, reads=True) as begun:
            files.require_all_intact(run)
            run.request.begin()
            yield PlainTable(run, files, int(begun["size"]), overwrite=overwrite)
