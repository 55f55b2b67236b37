"""The reader of AnnData and MuData: chains of cells."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.errors import InputError, installing
from hpcvdj.public import OnFirstUse
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.formats.steps import joined
from hpcvdj.repertoires.read_counts import CELL_READS, READS
from hpcvdj.repertoires.readers import reader
from hpcvdj.repertoires.readers.reader import TableReader, first_line

h5py: Any = OnFirstUse("h5py")


class AnnDataReader(TableReader):
    """AnnData with chains of cells, as of scirpy 0.13 and later: `obsm["airr"]`, cells x chains x AIRR fields.

    Rows are the chains, cell after cell.  `cell_id` is the name of the cell.  A chain without `sequence_id` gets the
    name of the cell and the number of the chain in it.  The texts and categories of `obs`, such as the sample, are
    columns too, but for names that the chains have.
    """

    name = "anndata"
    summary = (
        'chains of cells as scirpy stores them, in `obsm["airr"]` (of the modality `airr`, of MuData); needs '
        "hpcvdj[anndata]"
    )
    suffixes = ()
    perhaps = (".h5ad", ".h5mu")

    GROUPS = "mod/airr/obsm/airr", "obsm/airr"
    """The groups of the chains in MuData, whose own obsm/airr says which cells the modality has, and in AnnData."""

    BEGINS = 0, 512, 1024, 2048
    """Where HDF5 may begin in a file; before it, MuData says what it is."""

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        return any(head.startswith(b"\x89HDF\r\n\x1a\n", begin) for begin in cls.BEGINS)

    @property
    def recognised(self) -> bool:
        try:
            with h5py.File(self.path) as file:
                return any(group in file for group in self.GROUPS)
        except OSError:
            return False

    @cached_property
    def _rows(self) -> pa.Table:
        try:
            with h5py.File(self.path) as file:
                if "hpcvdj" in str(file.attrs.get("format")):
                    raise InputError(f"{self.path}: a result of hpcvdj, not a table; give the table that was computed")
                group = next((group for group in self.GROUPS if group in file), None)
                if group is None:
                    raise InputError(
                        f'{self.path}: an HDF5 file without obsm["airr"], where scirpy 0.13 and later store chains; '
                        "write an AIRR table with scirpy.io.write_airr"
                    )
                return self._chains(file[group], file[group.replace("obsm/airr", "obs")])
        except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
            raise InputError(f"{self.path}: not a readable AnnData file ({first_line(error)})") from None

    def _chains(self, airr: Any, obs: Any) -> pa.Table:
        try:
            import awkward as ak
            from anndata.io import read_elem
        except ImportError:
            raise InputError(f"{self.path}: AnnData needs anndata and awkward; {installing('anndata')}") from None
        array, of_cells = read_elem(airr), read_elem(obs)
        cells = np.asarray(of_cells.index).astype(str)
        chains = ak.to_numpy(ak.num(array, axis=1)).astype(np.int64)
        if len(chains) != len(cells):
            raise ValueError(f"{len(cells)} cells, chains of {len(chains)}")
        number = np.arange(chains.sum()) - np.repeat(np.cumsum(chains) - chains, chains) + 1
        cell = pa.array(np.repeat(cells, chains).tolist(), pa.large_string())
        flat = ak.flatten(array, axis=1)
        fields = {name: ak.to_arrow(flat[name], extensionarray=False) for name in ak.fields(flat)}
        flat_fields = {name: column for name, column in fields.items() if not pa.types.is_nested(column.type)}
        of_chain = np.repeat(np.arange(len(cells)), chains)
        # pyarrow may not know pandas (`cli.startup`), so it gets arrays.
        texts_of_cells = {
            str(name): column.astype(str).where(column.notna(), None).to_numpy()
            for name, column in of_cells.select_dtypes(["object", "string", "category"]).items() if name not in fields
        }  # fmt: skip
        about = {name: pa.array(of_cell, pa.large_string()).take(of_chain) for name, of_cell in texts_of_cells.items()}
        table = as_strings(pa.RecordBatch.from_pydict(flat_fields | about))
        texts = dict(zip(table.schema.names, table.columns, strict=True))
        texts |= [(READS, texts[name]) for name in CELL_READS if name in texts]
        numbered = joined(cell, pa.array(number.astype(str), pa.large_string()))
        ids = texts.get("sequence_id", numbered)
        # Existing columns keep their order; sequence_id and cell_id come first.
        first = {"sequence_id": pc.if_else(pc.equal(ids, ""), numbered, ids), "cell_id": cell}
        return pa.table(first | texts | first)

    @property
    def given_columns(self) -> list[str]:
        return list(self._rows.column_names)

    @property
    def known_rows(self) -> int:
        return int(self._rows.num_rows)

    def given_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self._rows.select(columns).to_batches(max_chunksize=reader.BATCH_ROWS)
