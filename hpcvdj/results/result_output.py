"""A result file as the output of a run."""

from collections.abc import Sequence
from pathlib import Path

from hpcvdj.errors import CompleteError, InputError, option
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.results import parts
from hpcvdj.results.facts import Facts
from hpcvdj.results.outputs import ComputedRows, Output, Ranks
from hpcvdj.results.reader import Result
from hpcvdj.results.slice_files import SliceFiles
from hpcvdj.results.writer import write_result
from hpcvdj.runs.folder import Identity, RunFolder, raise_if_complete


class ResultOutput(Output):
    """A result file with the values by V-J pair.  In slices, it is a view of the files of the slices."""

    has_rows = False
    ending = ".h5"

    def folder(self, identity: Identity) -> RunFolder:
        # The old result keeps its parts until the new result is complete.
        return RunFolder(parts.free_folder(self.target), identity)

    def begin(self, folder: RunFolder, files: Sequence[Path]) -> None:
        self.overwrite = self.run.overwrite
        if self.run.resume and not self.run.overwrite:
            try:
                raise_if_complete(self.target, folder)
            except CompleteError:
                self._require_undamaged()
                raise
            self.overwrite = self.target.exists()

    def _require_undamaged(self) -> None:
        """Raise InputError unless a complete result, and each of its parts, can be read."""
        try:
            with Result(self.target) as result:
                files = [self.target, *result.parts]
            for path in files:
                parts.require_readable(path)
        except InputError as error:
            raise InputError(f"{error}; {option('overwrite', True)} starts again") from None
        # A run that was killed after it joined its slices left their facts.
        if files[1:]:
            RunFolder(files[1].parent, {}).forget()

    def write_slice(self, files: SliceFiles, index: int, rows: ComputedRows, facts: Facts, ranks: Ranks) -> None:
        write_result(files.rows(index), rows, facts | {"first_row": rows.first_row}, ranks, overwrite=True)

    def join(self, files: SliceFiles, inputs: Inputs, facts: Facts, ranks: Ranks, rows: int) -> None:
        joint = {**facts, **self.quantity.attributes(), "slice_rows": rows}
        parts.join(self.target, files.folder, joint, ranks, inputs, overwrite=self.overwrite)
        files.folder.forget()
        if self.overwrite:
            parts.discard_parts(self.target)

    def write(self, rows: ComputedRows, facts: Facts, ranks: Ranks) -> None:
        write_result(self.target, rows, facts, ranks, overwrite=self.overwrite)
        if self.overwrite:
            parts.discard_parts(self.target)
