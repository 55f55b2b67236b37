"""Writing a result file: chunks are packed as values arrive, and chunks in the file are the checkpoint."""

import io
import json
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, MachineError
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.pathways.methods import Method, Missing
from hpcvdj.repertoires.inputs import Inputs, Table
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.results.schema import (
    FORMAT,
    TEXT,
    VERSION,
    as_text,
    excluded_columns,
    sequence_columns,
    text_type,
    write_group,
)
from hpcvdj.runs.driver import Partial, Timings
from hpcvdj.runs.folder import RunFolder, save_failure
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.hdf5 import Hdf5Writer, PackedDataset, atomic_hdf5, write_attributes

TEXT_ROWS = 1 << 19
"""Columns of sequences are written in blocks of this many rows."""

STATE = "state.npz"
"""The checkpoint: which chunks of which file are complete, what is held of other chunks, and the unit under way."""

_DATA = "result-*.part"


class ResultWriter:
    """A result that is being written; root's store of values.

    sums     the sums of the columns, exact for integers
    nonzero  bool [sequences]: whether a sequence has any value other than 0
    """

    def __init__(self, writer: Hdf5Writer, junctions: Junctions, method: Method, width: int, path: Path) -> None:
        self._writer, self._junctions, self._path = writer, junctions, path
        self.quantity = method.quantity()
        shape = len(junctions), width
        # Enumerating methods finish one column after another, so a chunk is of one column.
        self._values = PackedDataset(
            writer.file, self.quantity.dataset, shape, self.quantity.dtype, columns=1 if method.enumerates else None
        )
        self.sums: list[Any] = [0] * width
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
        if begun is None:
            return missing
        unit = begun.unit
        return [
            (columns, range(unit.rows.stop, rows.stop) if columns == unit.n_lengths else rows)
            for columns, rows in missing
            if columns != unit.n_lengths or unit.rows.stop < rows.stop
        ]

    def save(self, partial: Partial | None) -> None:
        """Make what was put, and the unit that is cut here, safe from a crash; MachineError if the disk is full."""
        try:
            state = self._values.state()
            self._writer.sync()
            meta: dict[str, Any] = {"file": self._path.name, "sums": [str(value) for value in self.sums]}
            arrays = {**state, "nonzero": np.packbits(self.nonzero)}
            if partial is not None and partial.values is not None:
                unit = partial.unit
                ranges = (unit.pairs, unit.rows, unit.n_lengths)
                meta["unit"] = [[part.start, part.stop] for part in ranges]
                meta["tasks"], meta["tasks_done"] = unit.tasks, partial.tasks_done
                arrays["partial"] = partial.values
            with atomic_path(self._path.with_name(STATE), overwrite=True) as path, open(path, "wb") as stream:
                np.savez(stream, meta=np.array(json.dumps(meta)), **arrays)  # type: ignore[arg-type]
        except OSError as error:
            raise save_failure(MachineError(f"{self._path}: writing failed ({error.strerror})")) from None
        except MachineError as error:
            raise save_failure(error) from None

    def restore(self) -> Partial | None:
        """Take over what an earlier run saved beside this file; the unit that was under way, if there is one.

        InputError if it is damaged.
        """
        begun = self._restored(self._path.with_name(STATE))
        for path in self._path.parent.glob(_DATA):
            if path != self._path:
                path.unlink()
        return begun

    def _restored(self, path: Path) -> Partial | None:
        if not path.exists():
            return None
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as state:
                arrays = dict(state)
            meta = json.loads(str(arrays.pop("meta")))
            nonzero, partial = arrays.pop("nonzero"), arrays.pop("partial", None)
            self._values.restore(arrays, path.with_name(Path(meta["file"]).name))
            self.sums = [int(value) for value in meta["sums"]]
            self.nonzero = np.unpackbits(nonzero, count=len(self.nonzero)).astype(bool)
            begun = None
            if partial is not None:
                pairs, rows, n_lengths = (range(*part) for part in meta["unit"])
                begun = Partial(Unit(pairs, rows, n_lengths, meta["tasks"]), meta["tasks_done"], partial)
        except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile) as error:
            raise InputError(f"{path}: is damaged ({error}); --overwrite starts again") from None
        self.save(begun)
        return begun

    def write_junctions(self) -> None:
        """Write what is known of the sequences, the excluded rows and the V–J pairs."""
        junctions, file = self._junctions, self._writer.file
        rows, together = len(junctions), junctions.repertoire_ids is not None
        for column in sequence_columns(together=together):
            dtype = text_type(column.width(junctions)) if column.dtype is TEXT else column.dtype
            packed = PackedDataset(file, f"sequences/{column.name}", (rows,), dtype)
            for first in range(0, rows, TEXT_ROWS):
                values = column.values(junctions, slice(first, min(rows, first + TEXT_ROWS)))
                packed.put(values.astype(dtype, copy=False), first)
            packed.close()
        for excluded in excluded_columns(together=together):
            found = excluded.values(junctions.excluded)
            array = as_text(found) if excluded.dtype is TEXT else np.asarray(found, dtype=excluded.dtype)
            packed = PackedDataset(file, f"excluded/{excluded.name}", array.shape, array.dtype)
            packed.put(array)
            packed.close()
        pairs = junctions.repertoire.pairs
        calls = {f"{kind}_call": [pair[k].allele for pair in pairs] for k, kind in enumerate("vj")}
        write_group(file, "pairs", {**calls, "offset": junctions.repertoire.offsets})
        if junctions.repertoire_ids is not None:
            self._write_repertoires(junctions.repertoire_ids)
        self._writer.check()

    def _write_repertoires(self, names: list[str]) -> None:
        excluded = Counter(self._junctions.excluded.repertoire_id)
        counted = np.bincount(self._junctions.repertoire_of, minlength=len(names)).tolist()
        rows = [sequences + excluded[name] for name, sequences in zip(names, counted, strict=True)]
        write_group(self._writer.file, "repertoires", {"repertoire_id": names, "rows": rows, "sequences": counted})

    def finish(self, attributes: dict[str, Any], ranks: list[dict[str, str]], timings: Timings, inputs: Inputs) -> None:
        """Write what is known only at the end: values that are held, provenance and times."""
        self._values.close()
        file = self._writer.file
        totals = {"sums": [str(value) for value in self.sums], "nonzero": int(self.nonzero.sum())}
        known = {"format": FORMAT, "format_version": VERSION, "quantity": self.quantity.name, **totals}
        write_attributes(file, {**known, **attributes})
        write_group(file, "ranks", {name: [facts[name] for facts in ranks] for name in ranks[0]})
        units = timings.units
        values = {
            "pair_first": [u.pairs.start for u in units],
            "pair_stop": [u.pairs.stop for u in units],
            "n_first": [u.n_lengths.start for u in units],
            "n_stop": [u.n_lengths.stop for u in units],
            "sequences": [len(u.rows) for u in units],
            "tasks": [u.tasks for u in units],
        }
        seconds = ("kernel", "reduce", "wall", "rank_kernel", "rank_reduce")
        write_group(file, "timings", values | {f"{name}_seconds": getattr(timings, name) for name in seconds})
        if inputs.together:
            write_tables(file, inputs.tables)
        file.flush()
        self._writer.check()


def write_tables(file: Any, tables: tuple[Table, ...]) -> None:
    """Write /tables: those that were counted together."""
    values = {
        "path": [os.fsencode(table.path.resolve()) for table in tables],
        "sha256": [table.sha256 for table in tables],
        "repertoire_id": [table.name for table in tables],
        "first_row": [table.first_row for table in tables],
        "rows": [table.rows for table in tables],
    }
    write_group(file, "tables", values)


@contextmanager
def result_writer(
    target: Path,
    junctions: Junctions,
    method: Method,
    width: int,
    *,
    overwrite: bool = False,
    folder: RunFolder | None = None,
) -> Iterator[ResultWriter]:
    """Write a result of `width` columns to `target`, which appears if the block succeeds.

    folder  where the file is written and `save` leaves the checkpoint; without one there is no checkpoint

    InputError and MachineError as `atomic_hdf5` raises them.
    """
    path = None
    if folder is not None:
        numbers = [int(part.stem.rpartition("-")[2]) for part in folder.path.glob(_DATA)]
        path = folder.path / f"result-{max(numbers, default=0) + 1:06}.part"
    with atomic_hdf5(target, overwrite=overwrite, temporary=path, keep=folder is not None) as writer:
        result = ResultWriter(writer, junctions, method, width, path or target)
        result.write_junctions()
        yield result
