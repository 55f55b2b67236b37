"""Writing a result file: chunks are packed as values arrive, and chunks in the file are the checkpoint."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, MachineError, option
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.method import Method, Missing
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import REPERTOIRE, Junctions
from hpcvdj.results.attributes import declared
from hpcvdj.results.schema import FORMAT, TEXT, VERSION, as_array, columns, values_of, write_group
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.runs.driver import Partial, Timings
from hpcvdj.runs.folder import Identity, RunFolder, save_failure
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.hdf5 import Hdf5Writer, atomic_hdf5, write_attributes
from hpcvdj.storage.packed import PackedDataset, write_packed
from hpcvdj.storage.states import DAMAGED_STATE, read_state, state_bytes

BLOCK_BYTES = 1 << 26
"""Columns of sequences are written in blocks of this many bytes."""

STATE = "state.npz"
"""The checkpoint: which chunks of which file are complete, what is held of other chunks, and the unit under way."""

_DATA = "result-*.part"


class ResultWriter:
    """A result that is being written; root's store of values.

    sums     the sums of the columns, exact for integers
    nonzero  bool [sequences]: whether a sequence has any value other than 0

    identity  what a run must have in common with this one to continue it
    """

    def __init__(
        self,
        writer: Hdf5Writer,
        junctions: Junctions,
        method: Method,
        columns: int,
        path: Path,
        identity: Identity | None = None,
    ) -> None:
        self._writer, self._junctions, self._path, self._identity = writer, junctions, path, identity
        self.quantity = method.quantity()
        shape = len(junctions), columns
        # Enumerating methods finish one column after another, so a chunk is of one column.
        self._values = PackedDataset(
            writer.file, self.quantity.dataset, shape, self.quantity.dtype, columns=1 if method.enumerates else None
        )
        self.sums: list[Any] = [self.quantity.number()] * columns
        self.nonzero = np.zeros(len(junctions), dtype=bool)

    def put(self, unit: Unit, values: NDArray[Any]) -> None:
        """Store the values of a finished unit, [its rows, its n-lengths]."""
        self._values.put(values, unit.rows.start, unit.n_lengths.start)
        sums = self.quantity.sums(values, self.nonzero[unit.rows.start : unit.rows.stop])
        for column, value in zip(unit.n_lengths, sums, strict=True):
            self.sums[column] += value
        self._writer.check()

    def missing(self, begun: Partial | None = None) -> Missing:
        """(n-lengths, rows) that were not put and are not those of the unit under way."""
        missing = self._values.missing()
        if begun is not None:
            columns, stop = begun.unit.n_lengths, begun.unit.rows.stop
            missing = [(put, range(stop, rows.stop) if put == columns else rows) for put, rows in missing]
        return [(columns, rows) for columns, rows in missing if rows]

    def save(self, partial: Partial | None) -> None:
        """Make what was put, and the unit that is cut here, safe from a crash; MachineError if the disk is full."""
        try:
            arrays = {**self._values.state(), "nonzero": np.packbits(self.nonzero)}
            self._writer.sync()
            meta: dict[str, Any] = {"file": self._path.name, "sums": [str(value) for value in self.sums]}
            if partial is not None and partial.values is not None:
                unit = partial.unit
                meta["unit"] = [[part.start, part.stop] for part in (unit.pairs, unit.rows, unit.n_lengths)]
                meta["tasks"], meta["tasks_done"] = unit.tasks, partial.tasks_done
                arrays["partial"] = partial.values
            with atomic_path(self._path.with_name(STATE), overwrite=True) as path:
                path.write_bytes(state_bytes(meta, arrays, self._identity))
        except OSError as error:
            raise save_failure(MachineError(f"{self._path}: writing failed ({error.strerror})")) from None
        except MachineError as error:
            raise save_failure(error) from None

    def restore(self) -> Partial | None:
        """Take over what an earlier run saved beside this file; the unit that was under way, if there is one.

        InputError if it is damaged.
        """
        path = self._path.with_name(STATE)
        begun = None
        if path.exists():
            try:
                meta, arrays = read_state(path.read_bytes(), self._identity)
                nonzero, partial = arrays.pop("nonzero"), arrays.pop("partial", None)
                self._values.restore(arrays, path.with_name(Path(meta["file"]).name))
                sums = list(map(self.quantity.number, meta["sums"]))
                if len(sums) != len(self.sums) or nonzero.shape != np.packbits(self.nonzero).shape:
                    raise ValueError("its sums are of another run")
                self.sums = sums
                self.nonzero = np.unpackbits(nonzero, count=len(self.nonzero)).astype(bool)
                if partial is not None:
                    pairs, rows, n_lengths = (range(*part) for part in meta["unit"])
                    begun = Partial(Unit(pairs, rows, n_lengths, meta["tasks"]), meta["tasks_done"], partial)
                    self._require_own(begun)
            except DAMAGED_STATE as error:
                raise InputError(f"{path}: is damaged ({error}); {option('overwrite', True)} starts again") from None
            self.save(begun)
        for other in self._path.parent.glob(_DATA):
            if other != self._path:
                other.unlink()
        return begun

    def _require_own(self, begun: Partial) -> None:
        """Raise ValueError unless a unit under way, with its values, is one of this result."""
        unit, values = begun.unit, begun.values
        inside = 0 <= unit.rows.start <= unit.rows.stop <= len(self.nonzero)
        inside &= 0 <= unit.n_lengths.start < unit.n_lengths.stop <= len(self.sums)
        offsets = self._junctions.repertoire.offsets.tolist()
        # Only methods that enumerate cut units.
        inside &= 0 <= unit.pairs.start < unit.pairs.stop < len(offsets) and len(unit.n_lengths) == 1
        inside &= inside and offsets[unit.pairs.start] <= unit.rows.start
        inside &= inside and unit.rows.stop <= offsets[unit.pairs.stop]
        inside &= unit.tasks == 4**unit.n_lengths.start and isinstance(begun.tasks_done, int)
        shape = len(unit.rows), len(unit.n_lengths)
        fits = values is not None and values.shape == shape and values.dtype == self.quantity.dtype
        if not (inside and fits and 0 <= begun.tasks_done <= unit.tasks):
            raise ValueError("the unit under way is not one of this run")

    def write_junctions(self) -> None:
        """Write what is known of the sequences, the excluded rows and the V–J pairs."""
        junctions, file = self._junctions, self._writer.file
        rows = len(junctions)
        for column in columns("sequences", junctions):
            width = column.values(junctions, slice(0, 0)).itemsize
            dtype = h5py.string_dtype("utf-8", width) if column.dtype is TEXT else column.dtype
            packed = PackedDataset(file, f"sequences/{column.name}", (rows,), dtype)
            step = max(1, BLOCK_BYTES // np.dtype(dtype).itemsize)
            for first in range(0, rows, step):
                values = column.values(junctions, slice(first, min(rows, first + step)))
                packed.put(values.astype(dtype, copy=False), first)
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
        self._writer.check()

    def facts(self) -> SliceFacts:
        """What became of the rows."""
        return SliceFacts.of(self._junctions, self.sums, int(self.nonzero.sum()))

    def finish(self, attributes: dict[str, Any], ranks: list[dict[str, str]], timings: Timings, inputs: Inputs) -> None:
        """Write what is known only at the end: values that are held, provenance and times."""
        self._values.close()
        file = self._writer.file
        known = {"format": FORMAT, "format_version": VERSION, **self.quantity.attributes()}
        write_attributes(file, declared({**known, **self.facts().attributes(), **attributes}))
        write_group(file, "ranks", values_of("ranks", ranks))
        seconds = ("kernel", "reduce", "wall", "rank_kernel", "rank_reduce")
        measured = {f"{name}_seconds": getattr(timings, name) for name in seconds}
        write_group(file, "timings", values_of("timings", timings.units) | measured)
        if inputs.together:
            write_group(file, "tables", values_of("tables", inputs.tables))
        file.flush()
        self._writer.check()


@contextmanager
def result_writer(
    target: Path,
    junctions: Junctions,
    method: Method,
    columns: int,
    *,
    overwrite: bool = False,
    folder: RunFolder | None = None,
) -> Iterator[ResultWriter]:
    """Write a result with so many `columns` of values to `target`, which appears if the block succeeds.

    folder  where the file is written and `save` leaves the checkpoint; without one there is no checkpoint

    InputError and MachineError as `atomic_hdf5` raises them.
    """
    path = None
    if folder is not None:
        numbers = [int(part.stem.rpartition("-")[2]) for part in folder.path.glob(_DATA)]
        path = folder.path / f"result-{max(numbers, default=0) + 1:06}.part"
    with atomic_hdf5(target, overwrite=overwrite, temporary=path, keep=folder is not None) as writer:
        result = ResultWriter(writer, junctions, method, columns, path or target, folder.identity if folder else None)
        result.write_junctions()
        yield result
