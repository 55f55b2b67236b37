"""A result file as the output of a run."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hpcvdj.errors import CompleteError, InputError, option
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.table import REPERTOIRE
from hpcvdj.results import parts
from hpcvdj.results.attributes import FORMAT, VERSION, declared
from hpcvdj.results.facts import Facts
from hpcvdj.results.outputs import ComputedRows, Output, Ranks
from hpcvdj.results.reader import Result
from hpcvdj.results.schema import TEXT, as_array, columns, values_of, write_group
from hpcvdj.results.slice_files import SliceFiles
from hpcvdj.runs.folder import Identity, RunFolder, raise_if_complete
from hpcvdj.storage.hdf5 import atomic_hdf5, write_attributes
from hpcvdj.storage.packed import PackedDataset, write_packed

BLOCK_BYTES = 1 << 26
"""Bytes of the blocks in which columns of sequences are written."""


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


def write_result(
    target: Path, rows: ComputedRows, attributes: dict[str, Any], ranks: Ranks, *, overwrite: bool
) -> None:
    """Write a result file of rows and their values.  Errors are those of `atomic_hdf5`.

    attributes  attributes to record besides those of the rows and their quantity
    """
    timings = rows.timings
    with atomic_hdf5(target, overwrite=overwrite) as writer:
        file = writer.file
        write_packed(file, rows.quantity.dataset, rows.values)
        writer.check()
        _write_junctions(file, rows.junctions)
        writer.check()
        of_format = {"format": FORMAT, "format_version": VERSION, **rows.quantity.attributes()}
        write_attributes(file, declared({**of_format, **rows.facts.attributes(), **attributes}))
        write_group(file, "ranks", values_of("ranks", ranks))
        seconds = ("kernel", "reduce", "wall", "rank_kernel", "rank_reduce")
        measured = {f"{name}_seconds": getattr(timings, name) for name in seconds}
        write_group(file, "timings", values_of("timings", timings.units) | measured)
        if rows.inputs.together:
            write_group(file, "tables", values_of("tables", rows.inputs.tables))
        file.flush()
        writer.check()


def _write_junctions(file: h5py.File, junctions: Junctions) -> None:
    rows = len(junctions)
    for column in columns("sequences", junctions):
        width = column.values(junctions, slice(0, 0)).itemsize
        dtype = h5py.string_dtype("utf-8", width) if column.dtype is TEXT else column.dtype
        packed = PackedDataset(file, f"sequences/{column.name}", (rows,), dtype)
        step = max(1, BLOCK_BYTES // np.dtype(dtype).itemsize)
        for first in range(0, rows, step):
            values = column.values(junctions, slice(first, min(rows, first + step)))
            packed.put(values.astype(dtype, copy=False))
        packed.close()
    for column in columns("excluded", junctions):
        write_packed(file, f"excluded/{column.name}", as_array(column, column.values(junctions.excluded)))
    pairs = junctions.repertoire.pairs
    calls = {f"{kind}_call": [pair[k].allele for pair in pairs] for k, kind in enumerate("vj")}
    write_group(file, "pairs", {**calls, "offset": junctions.repertoire.offsets})
    if junctions.repertoire_ids is not None:
        names, excluded = junctions.repertoire_ids, Counter(junctions.excluded.repertoire_id)
        counted = np.bincount(junctions.repertoire_of, minlength=len(names)).tolist()
        read = [sequences + excluded[name] for name, sequences in zip(names, counted, strict=True)]
        write_group(file, "repertoires", {REPERTOIRE: names, "rows": read, "sequences": counted})
