"""Raw rows: the measurements of a launch of a study or benchmark, as CSV below comment lines with facts.

Tables and plots need raw files only, so any machine can make them again.
"""

import csv
import platform
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import Backend, open_backend
from hpcvdj.runs.provenance import library_versions
from hpcvdj.runs.ranks import usable_cores
from hpcvdj.runs.run import Run
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.inputs import read_text

COMMENT = "# "

Row = TypeVar("Row")


def launch_facts(study: str, command: Sequence[str], run: Run) -> dict[str, str]:
    """Return the facts about a launch, which become the comment lines of a raw file.

    command  the command line without an MPI launcher
    """
    provenance, processor, fastest = run.provenance(), open_backend("cpu"), open_backend()
    launcher = ["mpiexec", "-n", str(run.ranks)] if run.ranks > 1 else []
    return {
        "study": study,
        "command": shlex.join([*launcher, *command]),
        "date": provenance["created_utc"],
        "mpi": provenance["mpi_library"],
        "processor": f"{processor.describe()}, {len(usable_cores())} core(s) usable",
        "gpu": f"{fastest.describe()}, {fastest.software()}" if fastest.uuid else "none",
        "platform": platform.platform(),
        "python": platform.python_version(),
        "hpcvdj": hpcvdj.__version__,
        **library_versions(),
    }


def hardware(backend: Backend) -> str:
    """Return the processor in raw rows, without the number and UUID of a GPU, which differ between ranks."""
    return backend.describe().partition(", device")[0]


def write_rows(path: Path, facts: dict[str, str], rows: Sequence[Any]) -> None:
    """Write `rows`, dataclass instances or dictionaries, below the `facts`.  An existing file is replaced.

    Each name in a row gets a column, which is empty in rows without that name.
    Raise InputError if there are no rows, or if the file cannot be written.
    """
    if not rows:
        raise InputError(f"{path}: nothing was measured; ask for other methods or lengths")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path, overwrite=True) as temporary, open(temporary, "w", newline="") as stream:
        # The name of an MPI library may have line breaks.
        stream.writelines(f"{COMMENT}{name}: {' '.join(value.split())}\n" for name, value in facts.items())
        tables = [row if isinstance(row, dict) else asdict(row) for row in rows]
        writer = csv.DictWriter(stream, dict.fromkeys(chain.from_iterable(tables)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(tables)


@dataclass(frozen=True)
class RawFile:
    """A raw file as text: the facts in its comment lines, and the lines of its table."""

    path: Path
    facts: dict[str, str]
    table: list[str]

    @staticmethod
    def read(path: Path) -> "RawFile":
        """Read a raw file.  Raise InputError if it is not readable text."""
        lines = read_text(path, "raw file", "measure first").splitlines()
        comments = list(takewhile(lambda line: line.startswith(COMMENT), lines))
        facts = dict(line.removeprefix(COMMENT).partition(": ")[::2] for line in comments)
        return RawFile(path, facts, lines[len(comments) :])

    def rows(self, kind: type[Row]) -> list[Row]:
        """Return the rows as instances of the dataclass `kind`, whose fields are str, int or float.

        Ignore other columns.  Raise InputError, with the line, for a missing column or value, or a damaged number.
        """
        types = {field.name: get_type_hints(kind)[field.name] for field in fields(kind)}  # type: ignore[arg-type]
        reader = csv.DictReader(self.table)
        missing = [name for name in types if name not in (reader.fieldnames or ())]
        if missing:
            raise InputError(f"{self.path}: no column {missing[0]!r}; render raw files with the command that made them")
        rows = []
        for values in reader:
            try:
                if None in values.values():
                    raise ValueError("the line has too few values")
                rows.append(kind(**{name: parse(values[name]) for name, parse in types.items()}))
            except ValueError as error:
                line = reader.line_num + len(self.facts)
                raise InputError(f"{self.path}, line {line}: {error}; the file is damaged, measure again") from None
        return rows
