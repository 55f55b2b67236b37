"""How fast are tables of every format read: those fields that `hpcvdj count` needs, beside other readers?

python benchmarks/reading.py --output results/reading/raw.csv

Tables have random junctions and genes of human TRB, with the columns that each program writes.  `hpcvdj` makes AIRR
fields of them: sequence_id, v_call, j_call, junction and the reasons of rows without one.  `pandas` and `polars` (if
installed) read the columns that these fields are made of, as text, and make nothing of them; `airr` is the AIRR
library's reader.  The AIRR library, which is slower, gets a tenth of the rows.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from _common import record, timed

from hpcvdj.repertoires.formats.format import REASON
from hpcvdj.repertoires.readers import open_table

AIRR = (
    "sequence_id=ID sequence= rev_comp=F productive=T v_call=V d_call= j_call=J sequence_alignment= "
    "germline_alignment= junction=NT junction_aa=AA v_cigar= d_cigar= j_cigar= duplicate_count=COUNT"
)

FORMATS = {
    "airr": ("a.tsv", AIRR),
    "airr, gzip": ("a.tsv.gz", AIRR),
    "airr, Parquet": ("a.parquet", AIRR),
    "airr of IgBLAST": ("a.tsv", AIRR.replace("rev_comp=F", "locus=TRB stop_codon=F vj_in_frame=T rev_comp=F")),
    "vdjtools": ("a.txt", "count=COUNT freq=SCORE cdr3nt=NT cdr3aa=AA v=V d=. j=J VEnd=13 DStart=-1 DEnd=-1 JStart=28"),
    "mixcr": (
        "a.tsv",
        "cloneId=ID readCount=READS readFraction=SCORE targetSequences=NT targetQualities=NT allVHitsWithScore=VHITS "
        "allDHitsWithScore= allJHitsWithScore=JHITS allCHitsWithScore= nSeqCDR3=NT minQualCDR3=34 aaSeqCDR3=AA "
        "refPoints=:::::::::0:13:::28:45:::",
    ),
    "10x": (
        "a.csv",
        "barcode=CONTIG is_cell=true contig_id=CONTIG high_confidence=true length= chain=TRB v_gene=V d_gene= "
        "j_gene=J c_gene= full_length=true productive=true cdr3=AA cdr3_nt=NT reads=COUNT umis=COUNT "
        "raw_clonotype_id= raw_consensus_id=",
    ),
    "trust4": (
        "a.tsv", "#count=COUNT frequency=SCORE CDR3nt=NT CDR3aa=AA V=V D=. J=J C=TRBC2 cid=ID cid_full_length=1"
    ),
    "changeo": (
        "a.tab", "SEQUENCE_ID=ID FUNCTIONAL=T V_CALL=V D_CALL= J_CALL=J JUNCTION=NT DUPCOUNT=COUNT"
    ),
    "olga": ("a.tsv", "nt=NT aa=AA v=V j=J"),
    "tcrdist3": ("a.csv", "subject=d1 count=COUNT v_b_gene=V j_b_gene=J cdr3_b_aa=AA cdr3_b_nucseq=NT"),
}  # fmt: skip
"""The name of a file, and column=text or column=VALUES, which `values` makes."""


def values(rows: int, seed: int = 1) -> dict[str, pa.Array]:
    """Random junctions of 36 to 60 bases, their genes and numbers."""
    random = np.random.default_rng(seed)
    lengths = 3 * random.integers(12, 21, rows)

    def words(letters: bytes, longest: int, sizes: Any) -> pa.Array:
        made = random.choice(np.frombuffer(letters, np.uint8), (rows, longest))
        made[np.arange(longest) >= sizes[:, np.newaxis]] = 0
        return pa.array(made.view(f"S{longest}").reshape(-1).astype(str))

    def hits(genes: pa.Array) -> pa.Array:
        one = pc.binary_join_element_wise(genes, "*00(", score, ")", "")
        return pc.if_else(pc.equal(count, "1"), pc.binary_join_element_wise(one, ",TRBV30*00(1.5)", ""), one)

    ids, count = pa.array(np.arange(rows).astype(str)), pa.array(random.geometric(0.3, rows).astype(str))
    score = pa.array(np.round(random.random(rows) * 400, 1).astype(str))
    v = pa.array([f"TRBV{k}-1" for k in range(1, 41)]).take(pa.array(random.integers(0, 40, rows)))
    j = pa.array([f"TRBJ{k}-{m}" for k in (1, 2) for m in range(1, 7)]).take(pa.array(random.integers(0, 12, rows)))
    return {
        "ID": ids, "COUNT": count, "READS": pc.binary_join_element_wise(count, ".0", ""), "SCORE": score,
        "V": v, "J": j, "VHITS": hits(v), "JHITS": hits(j),
        "NT": words(b"ACGT", 60, lengths), "AA": words(b"ACDEFGHIKLMNPQRSTVWY", 20, lengths // 3),
        "CONTIG": pc.binary_join_element_wise("AAACGGGTCAAAC", ids, "-1_contig_1", ""),
    }  # fmt: skip


def write(path: Path, spec: str, made: dict[str, pa.Array]) -> None:
    """A table as text, gzip or Parquet, by its name."""
    columns = dict(word.split("=", 1) for word in spec.split())
    rows = len(made["ID"])
    table = pa.table({name: made.get(text, pa.repeat(text, rows)) for name, text in columns.items()})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    delimiter = "," if path.suffix == ".csv" else "\t"
    stream = pa.CompressedOutputStream(str(path), "gzip") if path.suffix == ".gz" else pa.OSFile(str(path), "wb")
    with stream:
        if not spec.startswith("nt="):  # OLGA writes no header
            stream.write((delimiter.join(columns) + "\n").encode())
        # Arrow quotes all text of a column of which one value needs it; only CSV has such columns here.
        if delimiter == ",":
            pacsv.write_csv(table, stream, pacsv.WriteOptions(include_header=False, quoting_style="needed"))
        else:
            lines = pc.binary_join_element_wise(*table.columns, "\t").to_pylist()
            stream.write("".join(f"{line}\n" for line in lines).encode())


def readers(path: Path) -> Iterator[tuple[str, Callable[[], int]]]:
    """Each program's reading of a table, which returns the rows."""
    reader = open_table(path)
    wanted = ["sequence_id", "v_call", "j_call", "junction", *[REASON] * reader.explains]
    sources = reader._sources(wanted)
    delimiter = "," if path.suffix == ".csv" else "\t"
    header = None if reader.own_columns[0].startswith("olga") else 0
    places = [reader.own_columns.index(name) for name in sources]
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
    if path.suffix == ".tsv" and "rev_comp" in reader.own_columns:
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
