"""A table that is written, the tables beside it, and its facts: the file OUT.json beside the table OUT.

The facts name each table by the SHA-256 of its bytes, so that a table is never taken for that of other facts, whatever
happened to one of them.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpcvdj.errors import CompleteError, InputError, option
from hpcvdj.repertoires.writers import fill_table, is_table, new_table, require_writable_table, writer_of
from hpcvdj.runs.folder import Identity, differences
from hpcvdj.storage.files import atomic_path, require_distinct, require_writable
from hpcvdj.storage.folders import folder_digest, mark_written
from hpcvdj.storage.inputs import TEXT_BYTES, file_digest, require_regular
from hpcvdj.storage.json_text import json_text
from hpcvdj.storage.opening import damage

Facts = dict[str, Any]

Rows = Any
"""A pyarrow Table, or an iterable of its batches, or a function that writes it into a file."""

_DIGEST = "facts_sha256"
"""Of the facts: the SHA-256 of all others."""

_OUTPUTS = "outputs"
"""Of the facts: the name and the SHA-256 of each table, the one that has the facts first."""


def facts_path(table: Path) -> Path:
    """Where the facts of a table are."""
    return table.with_name(table.name + ".json")


def read_facts(table: Path) -> Facts | None:
    """What the file of facts beside a table says; None without one, InputError if it is damaged."""
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
        # Those of older versions name neither their tables nor what they say.
        if digest != (_digest_of(facts) if _OUTPUTS in facts or digest is not None else None):
            raise ValueError("it was changed since hpcvdj wrote it")
    return facts


def _digest_of(facts: Facts) -> str:
    """SHA-256 of what facts say, whatever their layout."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def require_described(table: Path, facts: Facts, further: Sequence[Path] = ()) -> None:
    """Raise InputError unless the facts are those of the table; facts of older versions do not name their table.

    further  tables that were written with it, and are read, too
    """
    path = facts_path(table)
    for each in (table, *further):
        if not (is_table(each) and writer_of(each).is_folder and each.is_dir()):
            require_regular(each, "table", f"give that which {path.name} describes, or move the facts away")
        with damage(path):
            outputs = facts.get(_OUTPUTS, [["", None]])
            digest = outputs[0][1] if each == table else dict(outputs).get(each.name)
        if digest is not None and digest != _table_digest(each):
            raise InputError(
                f"{each}: is not the table that {path.name} describes (its SHA-256 differs); write both again with the "
                f"command that made them and {option('overwrite', True)}"
            )


def _table_digest(table: Path) -> str:
    """SHA-256 of the bytes of a table."""
    return folder_digest(table) if table.is_dir() else file_digest(table)


@dataclass(frozen=True)
class Targets:
    """The files of a run.

    table    of `Run.target`
    further  others that the run writes
    """

    table: Path
    further: tuple[Path, ...] = ()

    @property
    def facts(self) -> Path:
        return facts_path(self.table)

    def require(self, inputs: Sequence[Path], *, overwrite: bool) -> None:
        """Raise InputError unless they can be written, and are none of the inputs."""
        require_writable_table(self.table, overwrite=overwrite)
        for path in (self.facts, *self.further):
            require_writable(path, overwrite=overwrite)
        for path in (self.table, self.facts, *self.further):
            require_distinct(path, *inputs)

    def resume(self, identity: Identity, *, overwrite: bool) -> bool:
        """Whether a run with --resume may replace what is there: with `overwrite`, or what this run left when killed.

        identity  what decides the numbers

        CompleteError if the files are complete, and of this run.  Without `overwrite`, InputError if they are of
        another one, or table and facts do not belong together.
        """
        try:
            facts = read_facts(self.table)
            if facts is None:
                return overwrite
            with damage(self.facts):
                changes = differences(dict(facts.get("identity") or {}), json.loads(json.dumps(identity)))
            if self.table.exists():
                require_described(self.table, facts)
        except InputError:
            if overwrite:
                return True
            raise
        if self.table.exists() and not changes and all(path.exists() for path in self.further):
            raise CompleteError(f"{self.table}: is complete already; there is nothing to resume")
        if changes and not overwrite:
            raise InputError(
                f"{self.table}: is of another run ({changes}); give another name, or {option('overwrite', True)}"
            )
        return True

    def write(self, facts: Facts, tables: Mapping[Path, Rows], *, overwrite: bool) -> None:
        """Write the tables, that of `table` first, and their facts; none appears before all are written."""
        with ExitStack() as stack:
            outputs = []
            for path, table in tables.items():
                temporary = stack.enter_context(new_table(path, overwrite=overwrite))
                if callable(table):
                    table(temporary)
                else:
                    fill_table(temporary, writer_of(path), _batches(table) if isinstance(table, pa.Table) else table)
                digest = mark_written(temporary) if temporary.is_dir() else file_digest(temporary)
                outputs.append([path.name, digest])
            # The last to be entered is renamed first: a table never lacks its facts.
            temporary = stack.enter_context(atomic_path(self.facts, overwrite=overwrite))
            # As they are after a round trip.
            said = json.loads(json_text({**facts, _OUTPUTS: outputs}))
            text = json_text({**said, _DIGEST: _digest_of(said)})
            # Names of files may not be UTF-8.
            temporary.write_text(text, "utf-8", errors="backslashreplace")


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    # A table without rows has a header, too.
    return [pa.RecordBatch.from_pylist([], table.schema), *table.combine_chunks().to_batches()]
