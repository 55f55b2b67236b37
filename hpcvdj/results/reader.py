"""Result files, open for reading.  docs/file_format.md describes the format `hpcvdj-counts`."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError, choice
from hpcvdj.kernels.quantities import Pathways, Quantity
from hpcvdj.recombination.exclusions import ExcludedRows, Exclusion, counts_from_json
from hpcvdj.repertoires.formats.format import Opening
from hpcvdj.repertoires.table import REPERTOIRE, Table
from hpcvdj.results.attributes import FORMAT, VERSION
from hpcvdj.results.joining import join
from hpcvdj.results.parts import hold_parts, parts_of
from hpcvdj.results.schema import WRITTEN_BY, columns, read_group, require_layout, strings
from hpcvdj.results.selection import Selection
from hpcvdj.storage.damage import damage, damaged
from hpcvdj.storage.opening import OpenFile


class Result(OpenFile):
    """A result file, open for reading.  Use it as a context manager, or `close` it."""

    _command, _form, _version = WRITTEN_BY, FORMAT, VERSION

    def _begin(self) -> None:
        require_layout(self.path, self._file, self.counters, self.quantity.dtype)
        width = self.counters.shape[1]
        if len(self.quantity.columns(width)) != width:
            raise damaged(self.path, f"{self.counters.name} has {width:,} columns, not those of its names")
        self._release_parts = hold_parts(self, self.path, self._file)

    @property
    def parts(self) -> list[Path]:
        """The files of a result in parts; empty for other results."""
        return parts_of(self.path, self._file)

    def close(self) -> None:
        """Close the file.  Arrays read so far stay usable, datasets do not."""
        super().close()
        self._release_parts()

    def __len__(self) -> int:
        return int(self.counters.shape[0])

    def __repr__(self) -> str:
        """Return the path, the number of sequences, and the computed values."""
        if not self._file:
            return f"<closed Result of {self.path}>"
        excluded = len(self._file["excluded/row"])
        values = ", ".join(self.quantity.columns(self.counters.shape[1]))
        if isinstance(self.quantity, Pathways):
            values = f"n-lengths 0-{self.max_n}"
        return f"<Result of {self.path}: {len(self):,} sequences, {values}; {excluded:,} rows excluded>"

    @property
    def quantity(self) -> Quantity:
        """The computed quantity."""
        kind = choice(Quantity, str(self._file.attrs.get("quantity", Pathways.name)), "the result's quantity")
        return kind.recorded(self._file.attrs)

    def pathways(self) -> Pathways:
        """Return the quantity of a result of pathways.  Raise InputError if the result has another quantity."""
        if not isinstance(self.quantity, Pathways):
            raise InputError(f"{self.path}: has {self.quantity.name}, not pathways; give a result of pathways")
        return self.quantity

    @property
    def max_n(self) -> int:
        """The largest n-length counted.  Raises InputError if the values are not pathways."""
        self.pathways()
        return int(self.counters.shape[1]) - 1

    @property
    def counters(self) -> h5py.Dataset:
        """The values [sequences, columns]: rows grouped by V–J pair, column m is n-length m."""
        return self._file[self.quantity.dataset]

    def dataset(self, name: str) -> Any:
        """Return a dataset or group by its path in docs/file_format.md, such as `sequences/cdr3`.

        It is usable until the file is closed.
        """
        return self._file[name]

    @property
    def row(self) -> NDArray[np.int64]:
        """The data row of each sequence in the input, from 0, int64 [sequences].

        Raises InputError if two sequences have the same row.
        """
        row, excluded = (np.asarray(self._file[f"{group}/row"][:]) for group in ("sequences", "excluded"))
        first, rows = (int(self._file.attrs.get(name, 0)) for name in ("first_row", "rows_read"))
        named = np.concatenate([row, excluded])
        inside = not len(named) or (named.min() >= first and named.max() < first + rows)
        if not inside or np.bincount(named - first, minlength=1).max() > 1 or (np.diff(excluded) < 0).any():
            raise damaged(self.path, "/sequences/row does not name each row of the table once")
        return row

    @property
    def cdr3(self) -> NDArray[np.bytes_]:
        """The CDR3 of each sequence, in A, C, G, T: fixed-width bytes [sequences]."""
        return np.asarray(self._file["sequences/cdr3"][:], dtype=np.bytes_)

    @property
    def columns(self) -> list[str]:
        """The columns of /sequences, in the order of tables.  Columns of later versions of hpcvdj come last."""
        known = [column.name for column in columns("sequences")]
        present = list(self._file["sequences"])
        return [name for name in known if name in present] + sorted(set(present) - set(known))

    @property
    def provenance(self) -> dict[str, Any]:
        """The file's attributes: format, versions, command line, configuration, inputs, machine."""
        attributes = self._file.attrs.items()
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in attributes}

    @property
    def excluded(self) -> ExcludedRows:
        """The rows that were not counted, and why."""
        with damage(self.path):
            group = read_group(self._file, "excluded")
            pairs = list(zip(strings(group["kind"]), strings(group["details"]), strict=True))
            exclusion_of = {pair: Exclusion.from_json(*pair) for pair in set(pairs)}
            exclusions = [exclusion_of[pair] for pair in pairs]
            repertoires = strings(group[REPERTOIRE]) if self.together else []
            rows = ExcludedRows.of(group["row"], strings(group["sequence_id"]), exclusions, repertoires)
            # Make all messages now: a message that lacks a detail raises an error.
            list(map(str, rows.exclusions))
            return rows

    @property
    def excluded_counts(self) -> list[tuple[Exclusion, int]]:
        """Each exclusion and its number of rows, the most frequent first."""
        with damage(self.path):
            counts = counts_from_json(json.loads(self._file.attrs.get("excluded_counts", "[]")))
            if sum(rows for _, rows in counts) == len(self._file["excluded/row"]):
                list(map(str, dict(counts)))
                return counts
        return self.excluded.counts()  # too many for the attribute

    @property
    def together(self) -> bool:
        """Whether tables were counted together.  Each sequence then has its repertoire."""
        return REPERTOIRE in self._file["sequences"]

    @property
    def repertoire_id(self) -> NDArray[np.bytes_]:
        """The repertoire of each sequence: fixed-width UTF-8 bytes [sequences]."""
        if self.together:
            return np.asarray(self._file["sequences"][REPERTOIRE][:], dtype=np.bytes_)
        return np.full(len(self), next(iter(self.repertoires)).encode())

    @property
    def repertoires(self) -> dict[str, int]:
        """The number of counted sequences of each repertoire, in the order of the input."""
        if self.together:
            with damage(self.path):
                group = read_group(self._file, "repertoires")
                return dict(zip(strings(group[REPERTOIRE]), group["sequences"].tolist(), strict=True))
        return {str(self.provenance.get(REPERTOIRE) or self.path.stem): len(self)}

    @property
    def tables(self) -> list[Table]:
        """The counted tables, in order."""
        if self.together:
            with damage(self.path):
                group = read_group(self._file, "tables")
                paths = [Path(os.fsdecode(path)) for path in group["path"].tolist()]
                texts = [strings(group[name]) for name in ("sha256", REPERTOIRE)]
                numbers = [group[name].tolist() for name in ("first_row", "rows")]
                tables = [Table(*facts) for facts in zip(paths, *texts, *numbers, strict=True)]
            return [replace(table, opening=self.opening) for table in tables]
        facts = self.provenance
        path, digest, name = (str(facts.get(key, "")) for key in ("junctions_path", "junctions_sha256", REPERTOIRE))
        return [Table(Path(path), digest, name, 0, int(facts["rows_read"]), opening=self.opening)]

    @property
    def opening(self) -> Opening:
        """How the counted tables are opened."""
        config = json.loads(self.provenance.get("config", "{}"))
        return Opening.from_recorded(config["opening"]) if "opening" in config else Opening()

    @property
    def pairs(self) -> list[tuple[str, str, slice]]:
        """(V allele, J allele, its rows) of each V–J pair."""
        group = read_group(self._file, "pairs")
        offset = group["offset"].tolist()
        with damage(self.path):
            alleles = [*zip(strings(group["v_call"]), strings(group["j_call"]), strict=True)]
        return [(v, j, slice(offset[k], offset[k + 1])) for k, (v, j) in enumerate(alleles)]

    def all(self) -> Selection:
        """Return all sequences, in the order of the file."""
        return Selection(self, np.arange(len(self), dtype=np.int64))

    def pair(self, v_call: str, j_call: str) -> Selection:
        """Return the sequences of a V–J pair, by its alleles.  Raise InputError if none was counted.

        A result in parts has a pair once for each part; this selection has the sequences of all parts.
        """
        runs = [rows for v, j, rows in self.pairs if (v, j) == (v_call, j_call)]
        if not runs:
            alleles = sorted({v for v, _, _ in self.pairs if v.partition("*")[0] == v_call.partition("*")[0]})
            has = f"of {v_call.partition('*')[0]} it has {', '.join(alleles)}" if alleles else "result.pairs lists all"
            raise InputError(f"{self.path}: no sequence was counted with {v_call} and {j_call}; {has}")
        return Selection(self, np.concatenate([np.arange(rows.start, rows.stop, dtype=np.int64) for rows in runs]))

    def select(self, **conditions: Any) -> Selection:
        """Return the sequences that meet every condition: see `Selection.select`."""
        return self.all().select(**conditions)

    def join(self, table: Any, on: Literal["sequence_id", "row"] = "sequence_id") -> Any:
        """Return an AIRR table (pandas, polars or pyarrow) with the values: see `hpcvdj.results.joining.join`."""
        return join(self, table, on)

    def to_numpy(self) -> NDArray[Any]:
        """Return all values in memory, [sequences, columns]."""
        return np.asarray(self.counters[:])

    def to_table(self) -> pa.Table:
        """Return all sequences as a pyarrow table, by V–J pair: row, ids, calls, cdr3, and the values."""
        return self.all().to_table()

    def to_pandas(self) -> Any:
        """Return the same columns as a pandas DataFrame."""
        return self.all().to_pandas()
