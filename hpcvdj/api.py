"""Counting from a script or a notebook: a table of junctions in, the same table with counters out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from hpcvdj.counting.config import DEFAULT_MAX_N, Config
from hpcvdj.counting.count import ArrayStore
from hpcvdj.counting.count import count as run_count
from hpcvdj.methods import Problem, method_named
from hpcvdj.ranks.world import World
from hpcvdj.recombination.germline import DForms, Germline, read_germline
from hpcvdj.repertoires.repertoire import CallPolicy, SequenceField, repertoire_of
from hpcvdj.repertoires.tables import as_arrow
from hpcvdj.results.airr_export import Lookup
from hpcvdj.results.file import Result


def count(
    junctions: Any,
    germline: Germline | str | Path,
    *,
    max_n: int | Literal["all"] = DEFAULT_MAX_N,
    method: str = "direct",
    backend: str = "auto",
    d_forms: DForms = "paper",
    sequence_field: SequenceField = "junction",
    ambiguous_calls: Literal["exclude", "first"] = "exclude",
    unlisted_alleles: Literal["exclude", "first"] = "exclude",
    strict: bool = False,
) -> Any:
    """Count the recombination pathways of each junction of a table, on this machine's cores.

    junctions         a pandas DataFrame or a pyarrow Table (or anything with the Arrow stream interface) with the AIRR
                      columns v_call, j_call and junction; further columns are kept
    germline          a Germline, or the path of a germline table
    max_n             largest number of n-nucleotides, 10 unless given; `all` goes up to the longest CDR3's length
    method            `direct`; `bitwise` and `baseline` enumerate as the paper does and count the same
    backend           `auto` takes a GPU if there is one, `cuda` insists on it, `cpu` declines
    d_forms           `paper` counts D forms once for each pair of chew-backs, `distinct` each string once per gene
    sequence_field    column to read: `junction`, whose Cys and Phe/Trp codons are taken off, or `cdr3`
    ambiguous_calls   rows with several calls: `exclude`, or take the `first`
    unlisted_alleles  rows with an allele that the table lacks, of a gene that it lists: `exclude`, or take the
                      gene's `first`
    strict            the first row that cannot be counted is an error

    Returns a table of the same kind with its rows in the same order and these columns beside: `pathways_n0` …
    `pathways_n{max_n}` and `pathways_total` (unsigned 64-bit, null for a row that cannot be counted) and
    `pathways_excluded` (why it cannot; empty for a row that was counted).

    Raises InputError for a missing column or, with `strict`, for the first row that cannot be counted.

    >>> import pyarrow as pa
    >>> from hpcvdj.recombination.germline import from_sequences
    >>> table = pa.table({"v_call": ["V1"], "j_call": ["J1"], "junction": ["TGTGCCTTT"]})
    >>> count(table, from_sequences(["GC"], ["G"], ["C"]), max_n=0)["pathways_total"].to_pylist()
    [8]
    """
    germline = germline if isinstance(germline, Germline) else read_germline(germline)
    table = as_arrow(junctions)
    repertoire = repertoire_of(
        table,
        germline,
        sequence_field=sequence_field,
        calls=CallPolicy(ambiguous_calls, unlisted_alleles),
        longest=method_named(method).longest_cdr3,
        strict=strict,
    )
    config = Config(max_n, method, backend, d_forms)
    problem = Problem(repertoire, germline, config.resolve_max_n(repertoire), d_forms)
    store = ArrayStore(len(repertoire), problem.max_n)
    run_count(problem, config, World(), store)
    columns = Lookup(store.counters, repertoire.row, repertoire.excluded).columns(0, repertoire.rows_read)
    return _beside(junctions, table, columns)


def _beside(original: Any, table: pa.Table, columns: dict[str, pa.Array]) -> Any:
    if type(original).__module__.partition(".")[0] == "pandas":
        from hpcvdj.results.joining import beside

        return beside(original, columns)
    for name, column in columns.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, column)
    return table


def open_result(path: str | Path) -> Result:
    """Open a result file of `hpcvdj count` for reading: `hpcvdj.open`.

    Use it as a context manager, or `close` it.  A result of parts opens by its own name, the parts beside it.

    >>> import tempfile
    >>> from hpcvdj.recombination.germline import from_sequences
    >>> from hpcvdj.ranks.world import World
    >>> from hpcvdj.counting.config import Inputs
    >>> from hpcvdj.counting.whole import count_file
    >>> folder = tempfile.TemporaryDirectory()
    >>> junctions, out = Path(folder.name, "j.tsv"), Path(folder.name, "out.h5")
    >>> rows = ["sequence_id v_call j_call junction", "a V1 J1 TGTGCCTTT", "b V1 J2 TGTGAATTT"]
    >>> _ = junctions.write_text("\\n".join(rows).replace(" ", "\\t"))
    >>> _ = count_file(Inputs(junctions), from_sequences(["GC"], ["G"], ["C", "A"]), out, Config(1), World())
    >>> with open_result(out) as result:
    ...     result.pair("V1*01", "J1*01").counters.tolist()
    ...     result.select(sequence_id="b").to_table()["pathways_total"].to_pylist()
    ...     len(result.select(min_pathways=1_000_000))
    [[8, 20]]
    [7]
    0
    """
    return Result(path)
