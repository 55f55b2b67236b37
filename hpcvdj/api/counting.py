"""Count the pathways of junctions, and explain them."""

from dataclasses import field
from typing import Any

import pyarrow as pa

from hpcvdj.api.parameters import InOneProcess, taking
from hpcvdj.api.tables import Given
from hpcvdj.api.tables import germline as germline_of
from hpcvdj.counting.config import Config
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import AUTO
from hpcvdj.kernels.method import THREADS_PER_BLOCK
from hpcvdj.kernels.pathways.methods import Direct
from hpcvdj.kernels.quantities import Pathways
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.recombination.explanation import Explanation
from hpcvdj.recombination.germline import Germline, Tables
from hpcvdj.repertoires.inputs import Inputs, read_table
from hpcvdj.repertoires.settings import RowSettings
from hpcvdj.repertoires.species import warn_of_rows
from hpcvdj.values.compute import values_of


class _Count(InOneProcess, RowSettings, Config):
    """The arguments of `count`."""

    junctions: Any
    germline: Germline | Tables
    strict: bool = field(default=False, kw_only=True)
    threads_per_block: int = field(default=THREADS_PER_BLOCK, init=False)


@taking(_Count)
def count(junctions: Any, germline: Germline | Tables, *, strict: bool, **options: Any) -> Any:
    """Count the recombination pathways of each junction of a table, on this machine.

    junctions         {junctions}
    germline          {germline}
    {options}
    strict            the first row that cannot be counted is an error

    Returns a table of the same kind (of a path: a pyarrow Table), with its rows in the same order and these columns
    beside them: `pathways_n0` … `pathways_n{max_n}` and `pathways_total` (unsigned 64-bit), `weight` (64-bit float: a
    pathway with m n-nucleotides counts 4^-m), null for a row that cannot be counted; and `pathways_excluded` (why it
    cannot; empty for a row that was counted).  Rank junctions by the weight: with many n-lengths, the longest junctions
    have the most pathways.

    Warns (HpcvdjWarning) of calls that were replaced, of excluded rows, and of a germline table that seems to be of
    another species or locus.  Raises InputError for a missing column or, with `strict`, for the first row that cannot
    be counted.

    >>> import pyarrow as pa
    >>> from hpcvdj.recombination.germline import from_sequences
    >>> table = pa.table({"v_call": ["V1"], "j_call": ["J1"], "junction": ["TGTGCCTTT"]})
    >>> count(table, from_sequences(["GC"], ["G"], ["C"]), max_n=0)["pathways_total"].to_pylist()
    [8]
    """
    config, reading = Config.of(options), RowSettings.of(options).reading(strict=strict)
    reference = germline_of(germline)
    table = Given.of(junctions)
    table.require(reading.columns)
    inputs = Inputs.of_table(table.arrow, config.reads(reading))
    values, tally, _ = values_of(inputs, reference, config)
    warn_of_rows(tally, reference, column=Pathways.excluded)
    return table.beside(values)


class _Explain(InOneProcess, RowSettings, Config):
    """The arguments of `explain`."""

    sequence: str
    v_call: str
    j_call: str
    germline: Germline | Tables
    method: str = field(default=Direct.name, init=False)
    backend: str = field(default=AUTO, init=False)
    threads_per_block: int = field(default=THREADS_PER_BLOCK, init=False)


@taking(_Explain)
def explain(sequence: str, v_call: str, j_call: str, germline: Germline | Tables, **options: Any) -> Explanation:
    """Return the pathways of a junction (or CDR3, as `sequence_field` says) with a V and a J call.

    sequence          nucleotides
    v_call, j_call    an allele or a gene
    germline          {germline}
    {options}

    Raises InputError with the reason if `count` would exclude the junction.

    >>> from hpcvdj.recombination.germline import from_sequences
    >>> germline = from_sequences(["CA"], ["GA"], ["TC"], max_p=1)
    >>> explanation = explain("CATGATC", "V1", "J1", germline, max_n=1, sequence_field="cdr3")
    >>> explanation.counters
    [3, 18]
    >>> [explanation.track(pathway) for pathway in explanation.most_direct(3)]
    ['VVvDDJJ', 'VVvDDdJ', 'VVvDjJJ']
    """
    config, reading = Config.of(options), RowSettings.of(options).reading()
    reference, sequence_field = germline_of(germline), options["sequence_field"]
    row = {"v_call": [v_call], "j_call": [j_call], sequence_field: [sequence]}
    read = read_table(pa.table(row), reference, reading)
    if len(read.excluded):
        fault = read.excluded.exclusion(0)
        takes = "explain takes nucleotides: " if fault.kind is ExclusionKind.AMINO_ACIDS else ""
        raise InputError(
            f"{sequence or 'the empty sequence'} ({v_call}, {j_call}): {fault}; {takes}give a {sequence_field} of A, "
            f"C, G, T and calls that {reference.name} lists"
        )
    cdr3 = read.repertoire.cdr3(0)
    v, j = read.repertoire.pairs[0]
    largest = config.resolve_max_n(len(cdr3))
    return Explanation(cdr3, v, j, reference.d_segments(v.locus), largest, config.d_forms, reference.max_p)
