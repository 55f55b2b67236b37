"""How fast are tables of every format read: those fields that `hpcvdj count` needs, beside other readers?

python benchmarks/reading.py --output results/reading/raw.csv

Tables are those of the tests, as the programs write them, with drawn junctions and genes of human TRB.  `hpcvdj` makes
AIRR fields of them: sequence_id, v_call, j_call, junction and the reasons of rows without one.  `pandas` and `polars`
(if installed) read the columns that these fields are made of, as text, and make nothing of them; `airr` is the AIRR
library's reader.  The AIRR library, which is slower, gets a tenth of the rows.
"""

import argparse
import gzip
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from _common import record, timed

import hpcvdj
from hpcvdj.repertoires.formats.format import REASON
from hpcvdj.repertoires.readers import open_table
from tests.repertoires.program_tables import AA, NT, TABLES

FORMATS = TABLES | {
    f"airr, {name}": (file, TABLES["airr"][1]) for name, file in (("gzip", "a.tsv.gz"), ("Parquet", "a.parquet"))
}
"""The name of a file, and a table of two rows or more."""


def values(rows: int) -> list[tuple[str, str, str, str, int]]:
    """Drawn junctions, their amino acids, V and J genes, and lengths."""
    drawn = hpcvdj.generate("human_trb_m15", rows, seed=1, productive=True, backend="cpu")
    nt, aa, v, j = (drawn[name].to_pylist() for name in ("junction", "junction_aa", "v_call", "j_call"))
    v, j = ([call.partition("*")[0] for call in calls] for calls in (v, j))
    return list(zip(nt, aa, v, j, map(len, nt), strict=True))


def write(path: Path, text: str, made: list[tuple[str, str, str, str, int]]) -> None:
    """The first row of a table again and again, with drawn junctions and genes in the place of its own."""
    head, row = text.splitlines()[:2]
    if head.startswith(NT):  # OLGA writes no header
        head, row = "", head
    for own, name in ((NT, "{0}"), (AA, "{1}"), ("TRBV2", "{2}"), ("TRBJ2-7", "{3}"), ("\t24\t", "\t{4}\t")):
        row = row.replace(own, name)
    table = (f"{head}\n" if head else "") + "".join(f"{row.format(*own)}\n" for own in made)
    if path.suffix == ".parquet":
        pq.write_table(pacsv.read_csv(BytesIO(table.encode()), parse_options=pacsv.ParseOptions(delimiter="\t")), path)
    else:
        path.write_bytes(gzip.compress(table.encode(), 6) if path.suffix == ".gz" else table.encode())


def readers(path: Path) -> Iterator[tuple[str, Callable[[], int]]]:
    """Each program's reading of a table, which returns the rows."""
    reader = open_table(path)
    wanted = ["sequence_id", "v_call", "j_call", "junction", *[REASON] * reader.explains]
    sources = reader.translation.sources(wanted)
    delimiter = "," if path.suffix == ".csv" else "\t"
    header = None if reader.given_columns[0].startswith("olga") else 0
    places = [reader.given_columns.index(name) for name in sources]
    yield "hpcvdj", lambda: sum(batch.num_rows for batch in open_table(path).batches(wanted))
    with suppress(ImportError):
        pandas = import_module("pandas")
        text: dict[str, Any] = {"sep": delimiter, "dtype": str, "keep_default_na": False}
        yield "pandas", lambda: len(
            pandas.read_parquet(path, columns=sources) if path.suffix == ".parquet"
            else pandas.read_csv(path, header=header, usecols=places, **text)
        )  # fmt: skip
    with suppress(ImportError):
        polars = import_module("polars")
        words: dict[str, Any] = {"separator": delimiter, "infer_schema_length": 0, "quote_char": None}
        yield "polars", lambda: len(
            polars.read_parquet(path, columns=sources) if path.suffix == ".parquet"
            else polars.read_csv(path, has_header=header == 0, columns=places, **words)
        )  # fmt: skip
    if path.suffix == ".tsv" and "rev_comp" in reader.given_columns:
        with suppress(ImportError):
            airr = import_module("airr")
            yield "airr", lambda: sum(1 for _ in airr.read_rearrangement(str(path)))


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    with tempfile.TemporaryDirectory() as folder:
        for of in (options.rows, options.rows // 10):
            made = values(of)
            for name, (file, spec) in FORMATS.items():
                path = Path(folder) / file
                write(path, spec, made)
                for program, read in readers(path):
                    # The AIRR library makes a dict of every row in Python.
                    if (program == "airr") != (of != options.rows):
                        continue
                    for number in range(1, options.passes + 1):
                        rows, times = timed(read)
                        if rows != of:
                            sys.exit(f"{program} reads other rows of {name}")
                        size, load = round(path.stat().st_size / 1e6), os.getloadavg()[0]
                        what = {"format": name, "program": program, "rows": of, "megabytes": size, "pass": number}
                        yield what | times | {"load": load}
                path.unlink()


if __name__ == "__main__":
    record(
        __doc__, measured,
        rows=(1_000_000, "rows of each table"),
        passes=(3, "passes over each table"),
    )  # fmt: skip
