"""Seconds to read tables of every format: those fields that `hpcvdj count` needs, beside other readers.

python benchmarks/reading.py --output results/reading/raw.csv

Tables have random junctions and genes of human TRB, with the columns that each program writes.  `hpcvdj` makes AIRR
fields of them: sequence_id, v_call, j_call, junction and the reasons of rows without one.  `pandas` and `polars` (if
installed) read the columns that these fields are made of, as text, and make nothing of them; `airr` is the AIRR
library's reader.  Wall seconds and processor seconds (of all threads) of each pass are listed; the AIRR library, which
is slower, gets a tenth of the rows.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
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
from _common import write_rates

from hpcvdj.repertoires.formats import REASON
from hpcvdj.repertoires.readers import open_table

FIELDS = ("format", "program", "rows", "megabytes", "pass", "wall_s", "cpu_s", "load")


def columns(rows: int, seed: int = 1) -> dict[str, pa.Array]:
    """Random junctions of 36 to 60 bases, their genes and numbers."""
    random = np.random.default_rng(seed)
    letters = random.choice(np.frombuffer(b"ACGT", np.uint8), (rows, 60))
    lengths = 3 * random.integers(12, 21, rows)
    letters[np.arange(60) >= lengths[:, np.newaxis]] = 0
    junction = pa.array(letters.view("S60").reshape(-1).astype(str))
    amino = random.choice(np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", np.uint8), (rows, 20))
    amino[np.arange(20) >= lengths[:, np.newaxis] // 3] = 0
    count = pa.array(random.geometric(0.3, rows).astype(str))
    v = pa.array([f"TRBV{k}-1" for k in range(1, 41)]).take(pa.array(random.integers(0, 40, rows)))
    j = pa.array([f"TRBJ{k}-{m}" for k in (1, 2) for m in range(1, 7)]).take(pa.array(random.integers(0, 12, rows)))
    ids = pa.array(np.arange(rows).astype(str))
    scores = pa.array(np.round(random.random(rows) * 400, 1).astype(str))
    return {"id": ids, "v": v, "j": j, "nt": junction, "count": count, "score": scores,
            "aa": pa.array(amino.view("S20").reshape(-1).astype(str))}  # fmt: skip


def tables(made: dict[str, pa.Array]) -> Iterator[tuple[str, str, pa.Table, bool]]:
    """(format, name of the file, its columns, whether it has a header)."""
    rows = len(made["id"])

    def repeated(text: str) -> pa.Array:
        return pa.repeat(pa.scalar(text), rows)

    def hits(genes: pa.Array) -> pa.Array:
        one = pc.binary_join_element_wise(genes, "*00(", made["score"], ")", "")
        two = pc.binary_join_element_wise(one, ",TRBV30*00(1.5)", "")
        return pc.if_else(pc.equal(made["count"], "1"), two, one)

    contig = pc.binary_join_element_wise("AAACGGGTCAAAC", made["id"], "-1_contig_1", "")
    empty, true = repeated(""), repeated("true")
    airr = {
        "sequence_id": made["id"], "sequence": empty, "rev_comp": repeated("F"), "productive": repeated("T"),
        "v_call": made["v"], "d_call": empty, "j_call": made["j"], "sequence_alignment": empty,
        "germline_alignment": empty, "junction": made["nt"], "junction_aa": made["aa"], "v_cigar": empty,
        "d_cigar": empty, "j_cigar": empty, "duplicate_count": made["count"],
    }  # fmt: skip
    yield "airr", "a.tsv", pa.table(airr), True
    yield "airr, gzip", "a.tsv.gz", pa.table(airr), True
    yield "airr, Parquet", "a.parquet", pa.table(airr), True
    igblast = {"sequence_id": made["id"], "sequence": empty, "locus": repeated("TRB"), "stop_codon": repeated("F"),
               "vj_in_frame": repeated("T"), **{name: airr[name] for name in list(airr)[2:]}}  # fmt: skip
    yield "airr of IgBLAST", "a.tsv", pa.table(igblast), True
    yield "vdjtools", "a.txt", pa.table({
        "count": made["count"], "freq": made["score"], "cdr3nt": made["nt"], "cdr3aa": made["aa"], "v": made["v"],
        "d": repeated("."), "j": made["j"], "VEnd": repeated("13"), "DStart": repeated("-1"), "DEnd": repeated("-1"),
        "JStart": repeated("28"),
    }), True  # fmt: skip
    yield "mixcr", "a.tsv", pa.table({
        "cloneId": made["id"], "readCount": pc.binary_join_element_wise(made["count"], ".0", ""),
        "readFraction": made["score"], "targetSequences": made["nt"], "targetQualities": made["nt"],
        "allVHitsWithScore": hits(made["v"]), "allDHitsWithScore": empty, "allJHitsWithScore": hits(made["j"]),
        "allCHitsWithScore": empty, "nSeqCDR3": made["nt"], "minQualCDR3": repeated("34"), "aaSeqCDR3": made["aa"],
        "refPoints": repeated(":::::::::0:13:::28:45:::"),
    }), True  # fmt: skip
    names = (
        "barcode is_cell contig_id high_confidence length chain v_gene d_gene j_gene c_gene full_length productive "
        "cdr3 cdr3_nt reads umis raw_clonotype_id raw_consensus_id"
    )
    tenx = dict.fromkeys(names.split(), empty) | {
        "barcode": contig, "is_cell": true, "contig_id": contig, "high_confidence": true, "chain": repeated("TRB"),
        "v_gene": made["v"], "j_gene": made["j"], "full_length": true, "productive": true, "cdr3": made["aa"],
        "cdr3_nt": made["nt"], "reads": made["count"], "umis": made["count"],
    }  # fmt: skip
    yield "10x", "a.csv", pa.table(tenx), True
    yield "trust4", "a.tsv", pa.table({
        "#count": made["count"], "frequency": made["score"], "CDR3nt": made["nt"], "CDR3aa": made["aa"], "V": made["v"],
        "D": repeated("."), "J": made["j"], "C": repeated("TRBC2"), "cid": made["id"], "cid_full_length": repeated("1"),
    }), True  # fmt: skip
    yield "changeo", "a.tab", pa.table({
        "SEQUENCE_ID": made["id"], "FUNCTIONAL": repeated("T"), "V_CALL": made["v"], "D_CALL": empty,
        "J_CALL": made["j"], "JUNCTION": made["nt"], "DUPCOUNT": made["count"],
    }), True  # fmt: skip
    yield "olga", "a.tsv", pa.table({"nt": made["nt"], "aa": made["aa"], "v": made["v"], "j": made["j"]}), False
    yield "tcrdist3", "a.csv", pa.table({
        "subject": repeated("d1"), "count": made["count"], "v_b_gene": made["v"], "j_b_gene": made["j"],
        "cdr3_b_aa": made["aa"], "cdr3_b_nucseq": made["nt"],
    }), True  # fmt: skip


def write(path: Path, table: pa.Table, header: bool) -> None:
    """A table as text, gzip or Parquet, by its name."""
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    options = pacsv.WriteOptions(
        include_header=False, delimiter="," if path.suffix == ".csv" else "\t", quoting_style="needed"
    )
    stream = pa.CompressedOutputStream(str(path), "gzip") if path.suffix == ".gz" else pa.OSFile(str(path), "wb")
    with stream:
        if header:
            stream.write((options.delimiter.join(table.column_names) + "\n").encode())
        # Arrow quotes all text of a column of which one value needs it; only CSV has such columns here.
        if path.suffix == ".csv":
            pacsv.write_csv(table, stream, options)
        else:
            lines = pc.binary_join_element_wise(*table.columns, "\t").to_pylist()
            stream.write("".join(f"{line}\n" for line in lines).encode())


def readers(path: Path) -> dict[str, Callable[[], int]]:
    """Each program's reading of a table; returns the rows."""
    reader = open_table(path)
    wanted = ["sequence_id", "v_call", "j_call", "junction", *[REASON] * reader.explains]
    sources = reader._sources(wanted)
    delimiter = "," if path.suffix == ".csv" else "\t"
    header = None if reader.own_columns[0].startswith("olga") else 0
    places = [reader.own_columns.index(name) for name in sources]

    def with_hpcvdj() -> int:
        return sum(batch.num_rows for batch in open_table(path).batches(wanted))

    def with_pandas() -> int:
        if path.suffix == ".parquet":
            return len(modules["pandas"].read_parquet(path, columns=sources))
        return len(
            modules["pandas"].read_csv(
                path, sep=delimiter, header=header, usecols=places, dtype=str, keep_default_na=False
            )
        )

    def with_polars() -> int:
        polars = modules["polars"]
        if path.suffix == ".parquet":
            return len(polars.read_parquet(path, columns=sources))
        text = {"infer_schema_length": 0, "quote_char": None}
        return len(polars.read_csv(path, separator=delimiter, has_header=header == 0, columns=places, **text))

    def with_airr() -> int:
        return sum(1 for _ in modules["airr"].read_rearrangement(str(path)))

    programs = {"hpcvdj": with_hpcvdj, "pandas": with_pandas, "polars": with_polars, "airr": with_airr}
    if path.suffix != ".tsv" or "rev_comp" not in reader.own_columns:
        del programs["airr"]
    modules: dict[str, Any] = {}
    for name in programs:
        with suppress(ImportError):
            modules[name] = import_module(name)
    return {name: read for name, read in programs.items() if name in modules}


def measured(rows: int, passes: int, folder: Path) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    for of in (rows, rows // 10):
        for name, file, table, header in tables(columns(of)):
            path = folder / file
            write(path, table, header)
            for program, read in readers(path).items():
                # The AIRR library makes a dict of every row in Python.
                if (program == "airr") != (of != rows):
                    continue
                for number in range(1, passes + 1):
                    wall, cpu = time.perf_counter(), time.process_time()
                    if read() != of:
                        raise SystemExit(f"{program} reads other rows of {name}")
                    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                    size, load = path.stat().st_size / 1e6, os.getloadavg()[0]
                    times = f"{size:.0f}", number, f"{wall:.3f}", f"{cpu:.3f}", f"{load:.1f}"
                    yield dict(zip(FIELDS, (name, program, of, *times), strict=True))
            path.unlink()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", metavar="CSV", type=Path, required=True, help="file of raw rows")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each table")
    parser.add_argument("--passes", type=int, default=3, help="passes over each table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_rates(options.output, FIELDS, measured(options.rows, options.passes, Path(folder)))


if __name__ == "__main__":
    main()
