"""Output tables and their facts: the file OUT.json beside the table OUT.

The facts have the SHA-256 of each table, so that hpcvdj notices if a table and a file of facts do not belong together.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpcvdj.errors import InputError, option
from hpcvdj.repertoires.writers import fill_table, is_table, new_table, require_writable_table, writer_of
from hpcvdj.runs.folder import Identity, complete, is_of_another_run
from hpcvdj.storage.damage import damage
from hpcvdj.storage.files import atomic_path, require_distinct, require_writable
from hpcvdj.storage.folders import folder_digest, mark_written
from hpcvdj.storage.inputs import TEXT_BYTES, file_digest, require_regular
from hpcvdj.storage.json_text import json_text

Facts = dict[str, Any]

Rows = Any
"""A pyarrow Table, an iterable of its batches, or a function that writes it to a file."""

_DIGEST = "facts_sha256"
"""The fact that has the SHA-256 of all other facts."""

_OUTPUTS = "outputs"
"""The fact that has the name and the SHA-256 of each table; the table of the facts comes first."""


def facts_path(table: Path) -> Path:
    """Return the path of the facts of a table."""
    return table.with_name(table.name + ".json")


def read_facts(table: Path) -> Facts | None:
    """Return the facts beside a table, or None without a file of facts.  Raise InputError if the file is damaged."""
    path = facts_path(table)
    if not path.is_file():
        return None
    if path.stat().st_size > TEXT_BYTES:
        raise InputError(f"{path}: is too large to be the facts of a table; move it away")
    with damage(path):
        facts = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(facts, dict):
            raise ValueError("it is not an object")
        digest = facts.pop(_DIGEST, None)
        # Facts of older versions have no digest and no outputs.
        if digest != (_digest_of(facts) if _OUTPUTS in facts or digest is not None else None):
            raise ValueError("it was changed since hpcvdj wrote it")
    return facts


def _digest_of(facts: Facts) -> str:
    """Return the SHA-256 of the content of facts, whatever their layout."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def require_described(table: Path, facts: Facts, further: Sequence[Path] = ()) -> None:
    """Raise InputError unless the facts describe the table.  Facts of older versions do not name their table.

    further  tables that the same run wrote, to check as well
    """
    described_in = facts_path(table)
    for path in (table, *further):
        if not (is_table(path) and writer_of(path).is_folder and path.is_dir()):
            require_regular(path, "table", f"give that which {described_in.name} describes, or move the facts away")
        with damage(described_in):
            outputs = facts.get(_OUTPUTS, [["", None]])
            digest = outputs[0][1] if path == table else dict(outputs).get(path.name)
        if digest is not None and digest != (folder_digest(path) if path.is_dir() else file_digest(path)):
            raise InputError(
                f"{path}: is not the table that {described_in.name} describes (its SHA-256 differs); write both again "
                f"with the command that made them and {option('overwrite', True)}"
            )


@dataclass(frozen=True)
class Targets:
    """The files that a run writes.

    table    the table at `Run.target`
    further  other files
    """

    table: Path
    further: tuple[Path, ...] = ()

    @property
    def facts(self) -> Path:
        return facts_path(self.table)

    def require(self, inputs: Sequence[Path], *, overwrite: bool) -> None:
        """Raise InputError unless the files can be written, and none of them is an input."""
        require_writable_table(self.table, overwrite=overwrite)
        for path in (self.facts, *self.further):
            require_writable(path, overwrite=overwrite)
        for path in (self.table, self.facts, *self.further):
            require_distinct(path, *inputs)

    def resume(self, identity: Identity, *, overwrite: bool) -> bool:
        """Return whether a run with --resume may replace what is there.

        It may with `overwrite`, and it may replace what the same run left when it was killed.

        identity  what decides the numbers of a run

        Raises CompleteError if the files are complete and of this run.  Without `overwrite`, raises InputError if they
        are of another run, or if table and facts do not belong together.
        """
        try:
            facts = read_facts(self.table)
            if facts is None:
                return overwrite
            with damage(self.facts):
                theirs = dict(facts.get("identity") or {})
            if self.table.exists():
                require_described(self.table, facts)
        except InputError:
            if overwrite:
                return True
            raise
        other = is_of_another_run(self.table, theirs, identity, replace=overwrite)
        if not other and self.table.exists() and all(path.exists() for path in self.further):
            raise complete(self.table)
        return True

    def write(self, facts: Facts, tables: Mapping[Path, Rows], *, overwrite: bool) -> None:
        """Write the tables, `table` first, and their facts.  No file appears before all are complete."""
        with ExitStack() as stack:
            outputs = []
            for path, table in tables.items():
                temporary = stack.enter_context(new_table(path, overwrite=overwrite))
                if callable(table):
                    table(temporary)
                else:
                    fill_table(temporary, writer_of(path), as_batches(table) if isinstance(table, pa.Table) else table)
                digest = mark_written(temporary) if temporary.is_dir() else file_digest(temporary)
                outputs.append([path.name, digest])
            # The file that is entered last is renamed first, so a table never lacks its facts.
            temporary = stack.enter_context(atomic_path(self.facts, overwrite=overwrite))
            # Take the digest of the facts as a reader will see them.
            written = json.loads(json_text({**facts, _OUTPUTS: outputs}))
            text = json_text({**written, _DIGEST: _digest_of(written)})
            # Names of files may not be UTF-8.
            temporary.write_text(text, "utf-8", errors="backslashreplace")


def as_batches(table: pa.Table) -> list[pa.RecordBatch]:
    """Return the batches of a table, after an empty one: a table without rows still has a header."""
    return [pa.RecordBatch.from_pylist([], table.schema), *table.combine_chunks().to_batches()]
